/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* When ranks help one another: ranks of a node whose kernels take given times, and what they would measure. */
#include "trl_test.h"

#include <math.h>

#include "help_choice_impl.h"

enum { RANKS = 4 };

typedef struct node {
    double cost[RANKS]; /* of a step's kernels, at one's own speed */
    double price;       /* of work that another rank does, over the same at home, */
    double cut;         /* and of an offer: such a part of the costs */
    trli_help_choice choice[RANKS];
    trli_help_window before[RANKS];
    int windows, helped; /* with any help */
    double step;         /* of the last window */
} node;

/* What is offered goes to those that have the least to do, perhaps the rank itself; a step takes as long as the rank
 * with the most. */
static void measure(const node *n, trli_help_window window[RANKS], double *step)
{
    static const double piece = 0.01;
    double busy[RANKS];
    for (int i = 0; i < RANKS; ++i) {
        const double share = trli_help_share_of(&n->choice[i]) / (double)TRLI_HELP_WHOLE;
        busy[i] = n->cost[i] * (share > 0 ? 1 - share + n->cut : 1);
        window[i].share = trli_help_share_of(&n->choice[i]);
    }
    for (int of = 0; of < RANKS; ++of) {
        const double offered = n->cost[of] * trli_help_share_of(&n->choice[of]) / TRLI_HELP_WHOLE;
        double taken = 0;
        for (double left = offered; left > 0; left -= piece) {
            int least = of;
            for (int i = 0; i < RANKS; ++i)
                if (busy[i] < busy[least]) least = i;
            busy[least] += least == of ? piece : piece * n->price;
            if (least != of) taken += piece;
        }
        window[of].taken = offered > 0 ? fmin(1, taken / offered) : 0;
    }
    *step = 0;
    for (int i = 0; i < RANKS; ++i) *step = fmax(*step, busy[i]);
    for (int i = 0; i < RANKS; ++i) {
        window[i].waited = 1 - busy[i] / *step;
        window[i].step = *step;
    }
}

static void go_on(node *n, int windows)
{
    for (int w = 0; w < windows; ++w, ++n->windows) {
        trli_help_window window[RANKS];
        bool any = false;
        measure(n, window, &n->step);
        for (int i = 0; i < RANKS; ++i) any |= window[i].share > 0;
        n->helped += any;
        for (int i = 0; i < RANKS && n->windows > 0; ++i) {
            trli_help_choose(&n->choice[i], RANKS, n->before, i);
            ck_assert_int_eq(n->choice[i].state, n->choice[0].state);
            ck_assert_int_eq(n->choice[i].helps, n->choice[0].helps);
        }
        for (int i = 0; i < RANKS; ++i) n->before[i] = window[i];
    }
}

static double mean_of(const node *n)
{
    double mean = 0;
    for (int i = 0; i < RANKS; ++i) mean += n->cost[i] / RANKS;
    return mean;
}

START_TEST(leaves_ranks_alone_that_are_even)
{
    node n = {.cost = {1, 0.95, 0.9, 1}, .price = 1};
    go_on(&n, 1000);
    ck_assert_int_eq(n.helped, 0);
}
END_TEST

START_TEST(gives_away_what_the_slowest_have_too_much)
{
    static const double cost[][RANKS] = {{1.8, 1, 1, 1}, {1, 1.5, 1, 1.5}, {1, 1, 1, 3}, {0.7, 0.9, 1.3, 1.1}};
    node n = {.price = 1.02};
    for (int i = 0; i < RANKS; ++i) n.cost[i] = cost[_i][i];
    go_on(&n, 40);
    ck_assert_int_eq(n.choice[0].state, TRLI_HELP_SHARED);
    ck_assert_double_lt(n.step, 1.12 * mean_of(&n));
    const int before = n.helped;
    go_on(&n, 1000);
    ck_assert_int_gt(n.helped - before, 900);
}
END_TEST

START_TEST(ends_when_ranks_are_even_again)
{
    node n = {.cost = {1, 1, 1.8, 1}, .price = 1};
    go_on(&n, 40);
    n.cost[2] = 1;
    go_on(&n, 20);
    ck_assert_int_eq(n.choice[0].state, TRLI_HELP_APART);
    const int before = n.helped;
    go_on(&n, 1000);
    ck_assert_int_eq(n.helped, before);
}
END_TEST

START_TEST(follows_another_rank_that_becomes_slow)
{
    node n = {.cost = {1, 1, 1.8, 1}, .price = 1};
    go_on(&n, 40);
    n.cost[2] = 1;
    n.cost[0] = 1.7;
    go_on(&n, 60);
    ck_assert_int_gt(trli_help_share_of(&n.choice[0]), 0);
    ck_assert_int_eq(trli_help_share_of(&n.choice[2]), 0);
    ck_assert_double_lt(n.step, 1.12 * mean_of(&n));
}
END_TEST

START_TEST(tries_seldom_where_help_makes_steps_no_faster)
{
    node n = {.cost = {1, 1, 1, 1.5}, .price = 1, .cut = 0.6};
    go_on(&n, 3000);
    ck_assert_int_gt(n.helped, 0);
    ck_assert_int_lt(n.helped, 150);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, leaves_ranks_alone_that_are_even);
    tcase_add_loop_test(tc, gives_away_what_the_slowest_have_too_much, 0, 4);
    tcase_add_test(tc, ends_when_ranks_are_even_again);
    tcase_add_test(tc, follows_another_rank_that_becomes_slow);
    tcase_add_test(tc, tries_seldom_where_help_makes_steps_no_faster);
}

TRL_TEST_MAIN("help_choice", add_tests)

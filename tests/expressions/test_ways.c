// ctest: np=1,2,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* By which way ranks of a node exchange: what is measured is kept, the same on all ranks, and better ones count. */
#include "trl_test.h"

#include <dirent.h>
#include <math.h>
#include <time.h>

#include "cache_impl.h"
#include "ways_impl.h"

static void set_up(void)
{
    static char folder[64];
    snprintf(folder, sizeof folder, "ways-XXXXXX");
    if (trl_context_rank(test_ctx) == 0) ck_assert_ptr_nonnull(mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    setenv("TRELLIS_CACHE_DIR", folder, 1);
    unsetenv("TRL_EXCHANGE");
}

static trli_ways find(void)
{
    trli_ways w, first;
    ck_ok(trli_ways_find(test_ctx, &w));
    first = w;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    int same = w.known == first.known && w.message_s == first.message_s && w.message_byte_s == first.message_byte_s &&
               w.shared_s == first.shared_s && w.shared_byte_s == first.shared_byte_s;
    MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert(same);
    return w;
}

static bool is_same(const trli_ways *a, const trli_ways *b)
{
    return a->message_s == b->message_s && a->message_byte_s == b->message_byte_s && a->shared_s == b->shared_s &&
           a->shared_byte_s == b->shared_byte_s;
}

START_TEST(what_is_measured_is_kept)
{
    set_up();
    const trli_ways w = find(), again = find();
    ck_assert(w.known == (trl_context_ranks(test_ctx) > 1) && is_same(&w, &again));
    if (w.known) ck_assert(w.message_s > 0 && w.shared_s > 0);
}
END_TEST

/* Replace what rank 0 keeps by times that are `factor` as long, as if kept so long ago. False: nothing is kept. */
static bool put(const trli_ways *w, double factor, long long ago)
{
    int found = 0;
    if (trl_context_rank(test_ctx) == 0) {
        trli_cache cache;
        char line[200], name[256] = "";
        trli_cache_open(&cache);
        DIR *list = opendir(cache.path);
        for (struct dirent *e; list && (e = readdir(list));)
            if (strstr(e->d_name, ".ways")) snprintf(name, sizeof name, "%s", e->d_name);
        if (list) closedir(list);
        found = name[0] != 0;
        snprintf(line, sizeof line, "%a %a %a %a %lld 1\n", factor * w->message_s, factor * w->message_byte_s,
                 factor * w->shared_s, factor * w->shared_byte_s, (long long)time(NULL) - ago);
        if (found) trli_cache_keep(&cache, name, line);
        trli_cache_close(&cache);
    }
    MPI_Bcast(&found, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return found;
}

START_TEST(old_figures_are_measured_again)
{
    const long long day = 86400;
    const double huge = 65536; /* no load makes up for it */
    set_up();
    trli_ways w = find();
    if (!w.known) return;
    w.message_s = fmax(w.message_s, 1e-6); /* what is left of a difference may be next to nothing */
    w.shared_s = fmax(w.shared_s, 1e-6);
    ck_assert(put(&w, huge, day / 2));
    const trli_ways kept = find();
    ck_assert(kept.message_s == huge * w.message_s && kept.shared_s == huge * w.shared_s);
    ck_assert(put(&w, huge, 2 * day));
    const trli_ways slow = find();
    ck_assert(slow.message_s < kept.message_s && slow.shared_s < kept.shared_s);
    ck_assert(put(&w, 1 / huge, 2 * day));
    const trli_ways fast = find();
    ck_assert(fast.message_s == w.message_s / huge && fast.shared_s == w.shared_s / huge);
    ck_assert(put(&w, 1 / huge, 31 * day));
    const trli_ways anew = find();
    ck_assert(anew.message_s > fast.message_s && anew.shared_s > fast.shared_s);
}
END_TEST

START_TEST(given_figures_take_the_place_of_any)
{
    set_up();
    setenv("TRL_EXCHANGE", "1e-6,2e-10,3e-6,4e-11", 1);
    const trli_ways w = find(), given = {true, 1e-6, 2e-10, 3e-6, 4e-11};
    if (trl_context_ranks(test_ctx) > 1) ck_assert(w.known && is_same(&w, &given));
    setenv("TRL_EXCHANGE", _i ? "1,2,3" : "1e-6,-1,1e-6,1e-10", 1);
    trli_ways wrong;
    ck_fails(trli_ways_find(test_ctx, &wrong), TRL_ERR_INPUT, "is not four times");
    unsetenv("TRL_EXCHANGE");
}
END_TEST

/* Long messages through memory, short ones by messages; a tie, and what is not known, through memory. */
START_TEST(the_faster_way_is_taken)
{
    const trli_ways w = {true, 1e-6, 2e-10, 3e-6, 4e-11}, tie = {true, 1e-6, 1e-10, 1.05e-6, 1.05e-10}, none = {0};
    ck_assert(!trli_ways_share(&w, 1e3) && trli_ways_share(&w, 1e5));
    ck_assert(trli_ways_share(&tie, 1e3) && trli_ways_share(&tie, 1e6) && trli_ways_share(&none, 1));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, what_is_measured_is_kept);
    tcase_add_test(tc, old_figures_are_measured_again);
    tcase_add_loop_test(tc, given_figures_take_the_place_of_any, 0, 2);
    tcase_add_test(tc, the_faster_way_is_taken);
}

TRL_TEST_MAIN("ways", add_tests)

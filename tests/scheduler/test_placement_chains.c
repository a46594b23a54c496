// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Chains of tasks for devices, and the ways to deal them out. */
#include "trl_test.h"

#include "place_graph.h"

enum { A, B, C, D, E };

/* A task that reads what those before it wrote. */
static void add(place_graph *g, int reads, const int32_t *read)
{
    const int32_t t = place_task(g, 1.0);
    for (int k = 0; k < reads; ++k) place_access(g, read[k], TRL_READ);
    place_access(g, t, TRL_WRITE);
}

/* The graph of Robison (2014), appendix: A->(B,C), B->(D,E), C->E. */
static place_graph *make_example(int executors)
{
    place_graph *g = place_graph_new(5, 5, 16, 16, executors);
    add(g, 0, NULL);
    add(g, 1, (const int32_t[]){A});
    add(g, 1, (const int32_t[]){A});
    add(g, 1, (const int32_t[]){B});
    add(g, 2, (const int32_t[]){B, C});
    place_depend_by_accesses(g);
    place_finish(g);
    return g;
}

static void expect_chains(const place_graph *g, int32_t chains, const int32_t *expected)
{
    int32_t chain[16], n;
    ck_ok(trli_chains(test_ctx, &g->graph, chain, &n));
    ck_assert_int_eq(n, chains);
    for (int32_t t = 0; t < g->graph.tasks; ++t) ck_assert_int_eq(chain[t], expected[t]);
}

START_TEST(makes_the_chains_of_the_example)
{
    place_graph *g = make_example(2);
    expect_chains(g, 2, (const int32_t[]){0, 0, 1, 0, 1});
    place_graph_free(g);
}
END_TEST

START_TEST(begins_a_chain_behind_a_task_for_the_cpu_alone)
{
    place_graph *g = make_example(2);
    g->eligible[A] = 1;
    expect_chains(g, 2, (const int32_t[]){-1, 0, 1, 0, 1});
    g->eligible[B] = 1;
    expect_chains(g, 2, (const int32_t[]){-1, -1, 0, 1, 0});
    for (int t = 0; t < 5; ++t) g->eligible[t] = 1;
    expect_chains(g, 0, (const int32_t[]){-1, -1, -1, -1, -1});
    place_graph_free(g);
}
END_TEST

/* A path of tasks of which some may be done by one device alone. */
START_TEST(keeps_a_chain_to_tasks_that_one_device_may_do)
{
    place_graph *g = place_graph_new(6, 6, 16, 16, 3);
    add(g, 0, NULL);
    for (int32_t t = 1; t < 6; ++t) add(g, 1, (const int32_t[]){t - 1});
    place_depend_by_accesses(g);
    place_finish(g);
    expect_chains(g, 1, (const int32_t[]){0, 0, 0, 0, 0, 0});
    g->eligible[1] = 3;
    g->eligible[4] = 4;
    expect_chains(g, 2, (const int32_t[]){0, 0, 0, 0, 1, 1});
    place_graph_free(g);
}
END_TEST

static int degree(const place_graph *g, int32_t task, bool in)
{
    int n = 0;
    for (int32_t i = 0; i < g->edges; ++i) n += (in ? g->edge[i].after : g->edge[i].before) == task;
    return n;
}

static bool has_edge(const place_graph *g, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < g->edges; ++i)
        if (g->edge[i].before == from && g->edge[i].after == to) return true;
    return false;
}

static void check_random_chains(uint64_t seed)
{
    uint64_t state = seed;
    int32_t chain[40], length[40] = {0}, last[40], n;
    const int32_t tasks = 1 + place_below(&state, 40);
    const bool alike = seed % 2;
    place_graph *g = place_graph_new(tasks, 1, 1, tasks * tasks, 3);
    for (int32_t t = 0; t < tasks; ++t) {
        place_task(g, 1.0);
        g->eligible[t] = alike ? 7 : (uint16_t)(1 + place_below(&state, 7));
        for (int k = 0; t && k < 1 + place_below(&state, 3); ++k) {
            const int32_t before = place_below(&state, t);
            if (!has_edge(g, before, t)) place_depend(g, before, t);
        }
    }
    place_finish(g);
    ck_ok(trli_chains(test_ctx, &g->graph, chain, &n));
    for (int32_t t = 0; t < tasks; ++t) {
        ck_assert_int_eq(chain[t] < 0, g->eligible[t] < 2);
        ck_assert_int_lt(chain[t], n);
        if (chain[t] >= 0 && length[chain[t]]++) ck_assert(has_edge(g, last[chain[t]], t));
        if (chain[t] >= 0) last[chain[t]] = t;
    }
    for (int32_t c = 0; c < n; ++c) ck_assert_int_gt(length[c], 0);
    for (int32_t i = 0; i < g->edges; ++i) {
        const int32_t a = g->edge[i].before, b = g->edge[i].after;
        if (alike && degree(g, a, false) == 1 && degree(g, b, true) == 1) ck_assert_int_eq(chain[a], chain[b]);
    }
    place_graph_free(g);
}

START_TEST(makes_paths_that_hold_every_task_for_devices_once)
{
    for (uint64_t seed = 1; seed <= 500; ++seed) check_random_chains(seed);
}
END_TEST

/* ---- dealing them out ---- */

static int64_t count_transfers(const place_graph *g, const trli_platform *machine, const uint8_t *executor)
{
    trli_transfers transfers;
    ck_ok(trli_transfers_find(test_ctx, &g->graph, machine, executor, &transfers));
    const int64_t n = transfers.list.count;
    trli_transfers_free(&transfers);
    return n;
}

/* The example with a path of three tasks behind D. Task by task to one device after the other: the results of A, B and
 * of two tasks of the path are copied; chain by chain: those of A, for C, and of B, for E. */
START_TEST(copies_less_between_chains_than_between_tasks)
{
    const trli_platform machine = place_machine(3, 1.0, 1.0);
    uint8_t executor[8];
    place_graph *g = place_graph_new(8, 8, 32, 32, 3);
    add(g, 0, NULL);
    add(g, 1, (const int32_t[]){A});
    add(g, 1, (const int32_t[]){A});
    add(g, 1, (const int32_t[]){B});
    add(g, 2, (const int32_t[]){B, C});
    for (int32_t t = 5; t < 8; ++t) add(g, 1, (const int32_t[]){t == 5 ? D : t - 1});
    place_depend_by_accesses(g);
    place_finish(g);
    ck_assert_int_eq(count_transfers(g, &machine, (const uint8_t[]){1, 2, 1, 2, 1, 2, 1, 2}), 4);
    ck_ok(trli_assign(test_ctx, &g->graph, &machine, TRLI_PLACE_round_robin, executor));
    ck_assert_mem_eq(executor, ((const uint8_t[]){1, 1, 2, 1, 2, 1, 1, 1}), 8);
    ck_assert_int_eq(count_transfers(g, &machine, executor), 2);
    place_graph_free(g);
}
END_TEST

/* Chains of 3, 1, 1 and 1 tasks. */
static place_graph *make_paths(void)
{
    place_graph *g = place_graph_new(6, 6, 16, 16, 3);
    add(g, 0, NULL);
    add(g, 1, (const int32_t[]){0});
    add(g, 1, (const int32_t[]){1});
    for (int t = 3; t < 6; ++t) add(g, 0, NULL);
    place_depend_by_accesses(g);
    place_finish(g);
    return g;
}

START_TEST(deals_chains_in_turn_or_to_the_device_with_least)
{
    const trli_platform machine = place_machine(3, 1.0, 1.0);
    uint8_t executor[6];
    place_graph *g = make_paths();
    ck_ok(trli_assign(test_ctx, &g->graph, &machine, TRLI_PLACE_round_robin, executor));
    ck_assert_mem_eq(executor, ((const uint8_t[]){1, 1, 1, 2, 1, 2}), 6);
    ck_ok(trli_assign(test_ctx, &g->graph, &machine, TRLI_PLACE_min_load, executor));
    ck_assert_mem_eq(executor, ((const uint8_t[]){1, 1, 1, 2, 2, 2}), 6);
    g->eligible[3] = 3;
    g->eligible[4] = 1;
    ck_ok(trli_assign(test_ctx, &g->graph, &machine, TRLI_PLACE_round_robin, executor));
    ck_assert_mem_eq(executor, ((const uint8_t[]){1, 1, 1, 1, 0, 2}), 6);
    place_graph_free(g);
}
END_TEST

START_TEST(leaves_all_to_the_cpu_where_there_is_no_device)
{
    const trli_platform machine = place_machine(1, 1.0, 1.0);
    uint8_t executor[6];
    place_graph *g = make_paths();
    for (int t = 0; t < 6; ++t) g->eligible[t] = 7;
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) {
        ck_ok(trli_assign(test_ctx, &g->graph, &machine, (trli_placement_kind)kind, executor));
        ck_assert_mem_eq(executor, ((const uint8_t[6]){0}), 6);
    }
    place_graph_free(g);
}
END_TEST

START_TEST(places_a_graph_without_tasks)
{
    const trli_platform machine = place_machine(2, 1.0, 1.0);
    uint8_t executor[1];
    place_graph *g = place_graph_new(0, 1, 0, 0, 2);
    expect_chains(g, 0, NULL);
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind)
        ck_ok(trli_assign(test_ctx, &g->graph, &machine, (trli_placement_kind)kind, executor));
    ck_assert_int_eq(count_transfers(g, &machine, executor), 0);
    place_graph_free(g);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, makes_the_chains_of_the_example);
    tcase_add_test(tc, begins_a_chain_behind_a_task_for_the_cpu_alone);
    tcase_add_test(tc, keeps_a_chain_to_tasks_that_one_device_may_do);
    tcase_add_test(tc, makes_paths_that_hold_every_task_for_devices_once);
    tcase_add_test(tc, copies_less_between_chains_than_between_tasks);
    tcase_add_test(tc, deals_chains_in_turn_or_to_the_device_with_least);
    tcase_add_test(tc, leaves_all_to_the_cpu_where_there_is_no_device);
    tcase_add_test(tc, places_a_graph_without_tasks);
}

TRL_TEST_MAIN("placement_chains", add_tests)

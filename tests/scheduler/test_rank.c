// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Priorities: critical-path weights from costs and measured times, classes of urgency, the order of lists, and when to
 * rank again. */
#include "trl_test.h"

#include "../../scheduler/rank_impl.h"

#include <math.h>

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    return TRL_OK;
}

static trl_graph *make_graph(void)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "ranked", &graph));
    return graph;
}

/* Adds a task; returns its number. */
static int32_t add(trl_graph *graph, double cost, int chunks, unsigned flags, int priority)
{
    trl_task task;
    int32_t number = graph->task_count;
    ck_ok(trl_graph_add_task(graph,
                             &(trl_task_desc){.name = "t",
                                              .variant = {{do_nothing}},
                                              .chunks = chunks,
                                              .flags = flags,
                                              .cost = cost,
                                              .priority = priority},
                             &task));
    return number;
}

static int32_t add_cost(trl_graph *graph, double cost)
{
    return add(graph, cost, 1, 0, 0);
}

static void depend(trl_graph *graph, int32_t before, int32_t after)
{
    ck_ok(trl_graph_add_dependency(graph, trli_graph_public(graph, before), trli_graph_public(graph, after)));
}

static int urgency(const trl_graph *graph, int32_t task)
{
    return trli_graph_records(graph)[task].urgency;
}

/* Always the same numbers, 0 <= r < n. */
static uint32_t next_random(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

/* The longest path from a task on, by its definition. */
static double longest_path(const trl_graph *graph, int32_t task)
{
    const trli_task_record *record = &trli_graph_records(graph)[task];
    double behind = 0.0;
    for (int32_t i = record->first; i < record->end; ++i)
        behind = fmax(behind, longest_path(graph, graph->successors[i]));
    return behind + trli_graph_info(graph)[task].cost;
}

START_TEST(weights_are_the_longest_paths_to_the_end_of_the_graph)
{
    enum { TASKS = 40 };
    uint32_t state = 7;
    trl_graph *graph = make_graph();
    double tau_inf = 0.0;
    for (int i = 0; i < TASKS; ++i) {
        add_cost(graph, 1 + next_random(&state, 100));
        for (int k = 0; k < 2 && i > 0; ++k) depend(graph, (int32_t)next_random(&state, (uint32_t)i), i);
    }
    ck_ok(trl_graph_freeze(graph));
    for (int32_t t = 0; t < TASKS; ++t) {
        double expected = longest_path(graph, t);
        ck_assert_double_eq_tol(graph->weight[t], expected, 1e-12 * expected);
        tau_inf = fmax(tau_inf, expected);
    }
    ck_assert_double_eq_tol(graph->ranked_tau_inf, tau_inf, 1e-12 * tau_inf);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(without_costs_and_times_every_task_counts_as_one)
{
    trl_graph *graph = make_graph();
    for (int i = 0; i < 5; ++i) add_cost(graph, 0.0);
    for (int i = 1; i < 4; ++i) depend(graph, i - 1, i);
    ck_ok(trl_graph_freeze(graph));
    for (int i = 0; i < 4; ++i) ck_assert_double_eq(graph->weight[i], 4 - i);
    ck_assert_double_eq(graph->weight[4], 1);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(measured_times_count_more_than_costs_and_tell_the_unit_of_costs)
{
    trl_graph *graph = make_graph();
    add_cost(graph, 10.0);
    add_cost(graph, 30.0);
    add_cost(graph, 20.0);
    add_cost(graph, 0.0);
    ck_ok(trl_graph_freeze(graph));
    graph->mean_s[TRL_KIND_CPU][0] = 1e-6;
    graph->mean_s[TRL_KIND_CPU][1] = 3e-6;
    trli_graph_rank(graph);
    ck_assert_double_eq_tol(graph->weight[0], 1e-6, 1e-18);
    ck_assert_double_eq_tol(graph->weight[1], 3e-6, 1e-18);
    ck_assert_double_eq_tol(graph->weight[2], 2e-6, 1e-18); /* 1e-7 s for each unit, as of the others */
    ck_assert_double_eq(graph->weight[3], 0.0);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(chunks_of_a_wide_task_count_as_running_at_once_up_to_the_workers)
{
    trl_graph *graph = make_graph();
    trl_graph_stats stats;
    ck_ok(trl_context_set_threads(test_ctx, 4));
    add(graph, 12.0, 2, 0, 0);
    add(graph, 12.0, 4, 0, 0);
    add(graph, 12.0, 12, 0, 0);
    depend(graph, 0, 1);
    depend(graph, 1, 2);
    ck_ok(trl_graph_freeze(graph));
    ck_assert_double_eq(graph->weight[2], 3.0);
    ck_assert_double_eq(graph->weight[1], 6.0);
    ck_assert_double_eq(graph->weight[0], 12.0);
    trl_graph_get_stats(graph, &stats);
    ck_assert_double_eq(stats.tau_1, 36.0);
    ck_assert_double_eq(stats.tau_inf, 6.0 + 3.0 + 1.0); /* with any number of workers */
    trl_graph_destroy(&graph);
    ck_ok(trl_context_set_threads(test_ctx, 0));
}
END_TEST

START_TEST(classes_of_urgency_are_equal_ranges_of_weight_between_the_fixed_ones)
{
    enum { TASKS = 60 };
    trl_graph *graph = make_graph();
    for (int i = 0; i < TASKS; ++i) add_cost(graph, TASKS - i);
    int32_t last = add(graph, 1000.0, 1, 0, -1), first = add(graph, 0.5, 1, 0, 1);
    int32_t poll = add(graph, 0.5, 1, TRL_TASK_POLL, 0), last_poll = add(graph, 0.5, 1, TRL_TASK_POLL, -1);
    ck_ok(trl_graph_freeze(graph));
    ck_assert_int_eq(urgency(graph, first), 0);
    ck_assert_int_eq(urgency(graph, poll), 0);
    ck_assert_int_eq(urgency(graph, last), TRL_URGENCIES - 1);
    ck_assert_int_eq(urgency(graph, last_poll), TRL_URGENCIES - 1);
    for (int t = 0; t < TASKS; ++t) ck_assert_int_eq(urgency(graph, t), 1 + t * (TRL_URGENCIES - 2) / TASKS);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(a_graph_in_which_nothing_takes_time_is_ranked_too)
{
    trl_graph *graph = make_graph();
    add_cost(graph, 0.0);
    add_cost(graph, 1.0);
    ck_ok(trl_graph_freeze(graph));
    ck_assert_int_eq(urgency(graph, 0), TRL_URGENCIES - 2);
    ck_assert_int_eq(urgency(graph, 1), 1);
    trl_graph_destroy(&graph);
    graph = make_graph();
    ck_ok(trl_graph_freeze(graph));
    ck_assert_double_eq(graph->ranked_tau_inf, 0.0);
    ck_assert(!trli_graph_ranks_drifted(graph));
    trl_graph_destroy(&graph);
}
END_TEST

/* A list holds `count` tasks from `from` on, each once, in the order of urgency and weight. */
static void check_list(const trl_graph *graph, const int32_t *list, int32_t from, int count)
{
    char seen[4096] = {0};
    for (int i = 0; i < count; ++i) {
        ck_assert_int_ge(list[i], from);
        ck_assert_int_lt(list[i], from + count);
        ck_assert(!seen[list[i] - from]);
        seen[list[i] - from] = 1;
        if (i == 0) continue;
        ck_assert_int_le(urgency(graph, list[i - 1]), urgency(graph, list[i]));
        if (urgency(graph, list[i - 1]) != urgency(graph, list[i])) continue;
        const int before = trli_graph_info(graph)[list[i - 1]].priority,
                  here = trli_graph_info(graph)[list[i]].priority;
        if (urgency(graph, list[i]) == 0) ck_assert_int_ge(before, here);
        if (urgency(graph, list[i]) > 0 || before == here)
            ck_assert_double_ge(graph->weight[list[i - 1]], graph->weight[list[i]]);
    }
}

/* The roots are the tasks 0..count, by class, and within one in the order in which they were added. */
static void check_roots(const trl_graph *graph, int count)
{
    const int32_t *list = graph->roots;
    int64_t sum = 0;
    ck_assert_int_eq(graph->nroots, count);
    for (int i = 0; i < count; ++i) {
        sum += list[i];
        if (i == 0) continue;
        int before = urgency(graph, list[i - 1]), here = urgency(graph, list[i]);
        ck_assert(before < here || (before == here && list[i - 1] < list[i]));
    }
    ck_assert_int_eq(sum, (int64_t)count * (count - 1) / 2);
}

START_TEST(successors_are_sorted_by_urgency_then_weight_and_roots_by_urgency)
{
    static const int counts[] = {1, 2, 3, 7, 16, 17, 18, 100, 2047, 2048};
    uint32_t state = 1;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
        int n = counts[c];
        trl_graph *graph = make_graph();
        for (int i = 0; i < n; ++i) add_cost(graph, 1 + next_random(&state, 50));
        int32_t root = add_cost(graph, 1.0), first = root + 1;
        for (int i = 0; i < n; ++i) {
            unsigned flags = next_random(&state, 10) ? 0 : TRL_TASK_POLL;
            add(graph, 1 + next_random(&state, 50), 1, flags, (int)next_random(&state, 3) - 1);
            depend(graph, root, first + i);
        }
        ck_ok(trl_graph_freeze(graph));
        for (int round = 0; round < 3; ++round) {
            check_list(graph, graph->successors + trli_graph_records(graph)[root].first, first, n);
            check_roots(graph, n + 1);
            for (int32_t t = 0; t < graph->task_count; ++t)
                graph->mean_s[TRL_KIND_CPU][t] = 1e-6 * (1 + next_random(&state, 50));
            trli_graph_rank(graph);
        }
        trl_graph_destroy(&graph);
    }
}
END_TEST

START_TEST(of_equal_tasks_the_one_with_more_consumers_goes_first_then_the_one_added_first)
{
    trl_graph *graph = make_graph();
    for (int i = 0; i < 8; ++i) add_cost(graph, 1.0);
    for (int i = 3; i >= 0; --i) depend(graph, 7, i);
    for (int i = 0; i < 4; ++i) depend(graph, i, 4);
    depend(graph, 2, 5);
    depend(graph, 2, 6);
    depend(graph, 3, 5);
    ck_ok(trl_graph_freeze(graph));
    const int32_t expected[] = {2, 3, 0, 1}, *list = graph->successors + trli_graph_records(graph)[7].first;
    for (int i = 0; i < 4; ++i) ck_assert_int_eq(list[i], expected[i]);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(ranks_drift_when_times_move_by_a_tenth_of_the_critical_path)
{
    trl_graph *graph = make_graph();
    for (int i = 0; i < 3; ++i) add_cost(graph, 1.0);
    depend(graph, 0, 1);
    ck_ok(trl_graph_freeze(graph));
    ck_assert(!trli_graph_ranks_drifted(graph));
    const double first[] = {50e-6, 50e-6, 10e-6};
    memcpy(graph->mean_s[TRL_KIND_CPU], first, sizeof first);
    ck_assert(trli_graph_ranks_drifted(graph)); /* from units of cost to seconds */
    trli_graph_rank(graph);
    ck_assert(!trli_graph_ranks_drifted(graph));
    graph->mean_s[TRL_KIND_CPU][2] = 19e-6;
    ck_assert(!trli_graph_ranks_drifted(graph));
    graph->mean_s[TRL_KIND_CPU][2] = 21e-6; /* off the path */
    ck_assert(trli_graph_ranks_drifted(graph));
    graph->mean_s[TRL_KIND_CPU][2] = 10e-6;
    graph->mean_s[TRL_KIND_CPU][0] = 59e-6;
    ck_assert(!trli_graph_ranks_drifted(graph));
    graph->mean_s[TRL_KIND_CPU][0] = 61e-6; /* the path itself */
    ck_assert(trli_graph_ranks_drifted(graph));
    graph->mean_s[TRL_KIND_CPU][0] = 65e-6; /* a path of the same length, but split in another way */
    graph->mean_s[TRL_KIND_CPU][1] = 35e-6;
    ck_assert(trli_graph_ranks_drifted(graph));
    trli_graph_rank(graph);
    ck_assert(!trli_graph_ranks_drifted(graph));
    ck_ok(trl_graph_set_cost(graph, trli_graph_public(graph, 0), 1.0));
    ck_assert(trli_graph_ranks_drifted(graph));
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(times_of_runs_are_averaged_and_nonsense_is_left_out)
{
    trl_graph *graph = make_graph();
    _Atomic int64_t ns[2] = {1000, 0};
    for (int i = 0; i < 2; ++i) add_cost(graph, 1.0);
    ck_ok(trl_graph_freeze(graph));
    trli_graph_average_times(graph, ns);
    ck_assert_double_eq_tol(graph->mean_s[TRL_KIND_CPU][0], 1e-6, 1e-18); /* the first one whole */
    ck_assert_double_eq(graph->mean_s[TRL_KIND_CPU][1], 0.0);             /* not measured */
    ck_assert_int_eq(atomic_load(&ns[0]), 0);
    atomic_store(&ns[0], 2000);
    trli_graph_average_times(graph, ns);
    ck_assert_double_eq_tol(graph->mean_s[TRL_KIND_CPU][0], 1.3e-6, 1e-18);
    const int64_t nonsense[] = {0, -5, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; ++i) {
        atomic_store(&ns[0], nonsense[i]);
        trli_graph_average_times(graph, ns);
        ck_assert_double_eq_tol(graph->mean_s[TRL_KIND_CPU][0], 1.3e-6, 1e-18);
        ck_assert_int_eq(atomic_load(&ns[0]), 0);
    }
    trl_graph_destroy(&graph);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, weights_are_the_longest_paths_to_the_end_of_the_graph);
    tcase_add_test(tc, without_costs_and_times_every_task_counts_as_one);
    tcase_add_test(tc, measured_times_count_more_than_costs_and_tell_the_unit_of_costs);
    tcase_add_test(tc, chunks_of_a_wide_task_count_as_running_at_once_up_to_the_workers);
    tcase_add_test(tc, classes_of_urgency_are_equal_ranges_of_weight_between_the_fixed_ones);
    tcase_add_test(tc, a_graph_in_which_nothing_takes_time_is_ranked_too);
    tcase_add_test(tc, successors_are_sorted_by_urgency_then_weight_and_roots_by_urgency);
    tcase_add_test(tc, of_equal_tasks_the_one_with_more_consumers_goes_first_then_the_one_added_first);
    tcase_add_test(tc, ranks_drift_when_times_move_by_a_tenth_of_the_critical_path);
    tcase_add_test(tc, times_of_runs_are_averaged_and_nonsense_is_left_out);
}
TRL_TEST_MAIN("rank", add_tests)

// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Building and freezing task graphs, the dependencies of data handles, cycles and statistics. */
#include "trl_test.h"

#include <math.h>
#include <time.h>
#include <trl_graph.h>

/* A task notes its number when it runs. */
typedef struct journal {
    int entry[64], count;
} journal;

typedef struct note {
    journal *journal;
    int number;
} note;

static trl_err write_note(void *data, const trl_task_args *args, bool *done)
{
    note *n = data;
    (void)args;
    (void)done;
    n->journal->entry[n->journal->count++] = n->number;
    return TRL_OK;
}

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    return TRL_OK;
}

static trl_task add(trl_graph *graph, const char *name)
{
    trl_task task = -1;
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = name, .variant = {{do_nothing}}, .chunks = 1}, &task));
    return task;
}

/* Their names are consecutive; returns the first. */
static trl_task add_many(trl_graph *graph, int count)
{
    trl_task first = add(graph, "t");
    for (int i = 1; i < count; ++i) ck_assert_int_eq(add(graph, "t"), first + i);
    return first;
}

static void run_serial(trl_graph *graph)
{
    trl_workers *workers;
    ck_ok(trl_workers_create(test_ctx, "serial", &workers));
    ck_ok(trl_graph_run(graph, workers, NULL));
    trl_workers_destroy(&workers);
}

static int64_t count_dependencies(const trl_graph *graph)
{
    trl_graph_stats stats;
    trl_graph_get_stats(graph, &stats);
    return stats.dependencies;
}

START_TEST(runs_tasks_in_topological_order_first_in_first_out)
{
    trl_graph *graph;
    journal j = {.count = 0};
    note notes[5];
    trl_task task[5];
    int expected[] = {1, 3, 0, 2, 4};
    ck_ok(trl_graph_create(test_ctx, "order", &graph));
    for (int i = 0; i < 5; ++i) {
        notes[i] = (note){&j, i};
        ck_ok(trl_graph_add_task(
            graph, &(trl_task_desc){.name = "t", .variant = {{write_note}}, .data = &notes[i], .chunks = 1}, &task[i]));
        ck_assert_int_eq(task[i], task[0] + i);
    }
    ck_ok(trl_graph_add_dependency(graph, task[1], task[0]));
    ck_ok(trl_graph_add_dependency(graph, task[3], task[2]));
    ck_ok(trl_graph_add_dependency(graph, task[0], task[4]));
    ck_ok(trl_graph_add_dependency(graph, task[2], task[4]));
    ck_ok(trl_graph_freeze(graph));
    run_serial(graph);
    ck_assert_int_eq(j.count, 5);
    ck_assert_mem_eq(j.entry, expected, sizeof expected);
    trl_graph_destroy(&graph);
    ck_assert_ptr_null(graph);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(runs_an_empty_graph)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "empty", &graph));
    ck_ok(trl_graph_freeze(graph));
    run_serial(graph);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(names_the_tasks_on_a_cycle_in_order)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    trl_task lead = add(graph, "lead"), a = add(graph, "a"), b = add(graph, "b"), c = add(graph, "c"),
             tail = add(graph, "tail");
    ck_ok(trl_graph_add_dependency(graph, lead, a));
    ck_ok(trl_graph_add_dependency(graph, a, b));
    ck_ok(trl_graph_add_dependency(graph, b, c));
    ck_ok(trl_graph_add_dependency(graph, c, a));
    ck_ok(trl_graph_add_dependency(graph, c, tail));
    ck_fails(trl_graph_freeze(graph), TRL_ERR_INPUT, "graph 'step': tasks wait for each other in a cycle: ");
    const char *m = test_messages();
    ck_assert_msg(strstr(m, "cycle: 'a' -> 'b' -> 'c' -> 'a';") || strstr(m, "cycle: 'b' -> 'c' -> 'a' -> 'b';") ||
                      strstr(m, "cycle: 'c' -> 'a' -> 'b' -> 'c';"),
                  "%s", m);
    ck_fails(trl_graph_freeze(graph), TRL_ERR_USAGE, "graph 'step' is frozen");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(names_a_task_that_waits_for_itself)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    trl_task a = add(graph, "alone");
    ck_ok(trl_graph_add_dependency(graph, a, a));
    ck_fails(trl_graph_freeze(graph), TRL_ERR_INPUT, "cycle: 'alone' -> 'alone';");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(shortens_the_middle_of_a_long_cycle)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "ring", &graph));
    trl_task first = add_many(graph, 1000);
    for (int i = 0; i < 1000; ++i) ck_ok(trl_graph_add_dependency(graph, first + i, first + (i + 1) % 1000));
    ck_fails(trl_graph_freeze(graph), TRL_ERR_INPUT, "... (900 more) ... -> ");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(counts_repeated_dependencies_once)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "repeated", &graph));
    trl_task a = add(graph, "a"), b = add(graph, "b"), c = add(graph, "c");
    for (int i = 0; i < 3; ++i) {
        ck_ok(trl_graph_add_dependency(graph, a, b));
        ck_ok(trl_graph_add_dependency(graph, a, c));
    }
    ck_ok(trl_graph_add_dependency(graph, b, c));
    ck_ok(trl_graph_freeze(graph));
    ck_assert_int_eq(count_dependencies(graph), 3);
    run_serial(graph);
    trl_graph_destroy(&graph);
}
END_TEST

/* Freeze, write as dot, and check that exactly the edges listed as "t0 -> t1;" are there. */
static void check_edges(trl_graph *graph, const char *const *edges, int count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_write_dot(graph, out));
    fclose(out);
    for (int i = 0; i < count; ++i) ck_assert_msg(strstr(text, edges[i]) != NULL, "'%s' not in: %s", edges[i], text);
    ck_assert_int_eq(count_dependencies(graph), count);
    free(text);
}

START_TEST(handles_make_readers_follow_the_writer_and_writers_follow_the_readers)
{
    trl_graph *graph;
    trl_handle field;
    const char *edges[] = {"t0 -> t1;", "t0 -> t2;", "t1 -> t3;", "t2 -> t3;", "t3 -> t4;", "t4 -> t5;"};
    ck_ok(trl_graph_create(test_ctx, "handles", &graph));
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field));
    trl_access access[] = {TRL_WRITE, TRL_READ, TRL_READ, TRL_WRITE, TRL_READ_WRITE, TRL_WRITE};
    for (int i = 0; i < 6; ++i) {
        trl_task task = add(graph, "t");
        ck_ok(trl_graph_add_access(graph, task, field, access[i]));
    }
    check_edges(graph, edges, 6);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(a_task_may_access_a_handle_twice_without_waiting_for_itself)
{
    trl_graph *graph;
    trl_handle field;
    const char *edges[] = {"t0 -> t1;", "t1 -> t2;"};
    ck_ok(trl_graph_create(test_ctx, "twice", &graph));
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field));
    for (int i = 0; i < 3; ++i) {
        trl_task task = add(graph, "t");
        ck_ok(trl_graph_add_access(graph, task, field, TRL_READ));
        ck_ok(trl_graph_add_access(graph, task, field, TRL_WRITE));
        ck_ok(trl_graph_add_access(graph, task, field, TRL_READ));
    }
    check_edges(graph, edges, 2);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(readers_before_any_writer_depend_on_nothing)
{
    trl_graph *graph;
    trl_handle field;
    const char *edges[] = {"t0 -> t2;", "t1 -> t2;"};
    ck_ok(trl_graph_create(test_ctx, "first", &graph));
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field));
    for (int i = 0; i < 3; ++i) {
        trl_task task = add(graph, "t");
        ck_ok(trl_graph_add_access(graph, task, field, i < 2 ? TRL_READ : TRL_WRITE));
    }
    check_edges(graph, edges, 2);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(a_graph_leaves_no_memory_of_its_building_and_its_runs_behind)
{
    trl_graph *graph;
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    trl_task first = add_many(graph, 100);
    for (int i = 0; i + 1 < 100; ++i) ck_ok(trl_graph_add_dependency(graph, first + i, first + i + 1));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 3; ++run) run_serial(graph); /* each time with other workers */
    trl_graph_destroy(&graph);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(before.bytes, after.bytes);
}
END_TEST

START_TEST(tau_and_amdahl_score_follow_from_costs)
{
    trl_graph *graph;
    trl_graph_stats stats;
    trl_task task[4];
    double costs[] = {1.0, 4.0, 2.0, 1.0};
    ck_ok(trl_graph_create(test_ctx, "diamond", &graph));
    for (int i = 0; i < 4; ++i) {
        int chunks = i == 1 ? 4 : 1; /* its chunks may run at once: 1 on the longest path */
        trl_task_desc desc = {.name = "t", .variant = {{do_nothing}}, .chunks = chunks, .cost = costs[i]};
        ck_ok(trl_graph_add_task(graph, &desc, &task[i]));
    }
    ck_ok(trl_graph_add_dependency(graph, task[0], task[1]));
    ck_ok(trl_graph_add_dependency(graph, task[0], task[2]));
    ck_ok(trl_graph_add_dependency(graph, task[1], task[3]));
    ck_ok(trl_graph_add_dependency(graph, task[2], task[3]));
    ck_ok(trl_graph_freeze(graph));
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.tasks, 4);
    ck_assert_int_eq(stats.dependencies, 4);
    ck_assert_int_eq(stats.runs, 0);
    ck_assert_double_eq(stats.tau_1, 8.0);
    ck_assert_double_eq(stats.tau_inf, 4.0);
    ck_assert_double_eq(trl_amdahl_score(stats.tau_1, stats.tau_inf, 2), 1.0);
    ck_assert_double_eq(trl_amdahl_score(8.0, 2.0, 4), 1.0);
    ck_assert_double_eq(trl_amdahl_score(8.0, 1.0, 4), 1.0); /* more parallel than there are workers */
    ck_assert_double_eq_tol(trl_amdahl_score(8.0, 6.0, 4), 1.0 / 3.0, 1e-15);
    ck_assert_double_eq(trl_amdahl_score(8.0, 8.0, 4), 0.0);
    ck_assert_double_eq(trl_amdahl_score(8.0, 4.0, 1), 0.0);
    ck_assert_double_eq(trl_amdahl_score(0.0, 0.0, 4), 0.0);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(without_costs_every_task_counts_as_one)
{
    trl_graph *graph;
    trl_graph_stats stats;
    ck_ok(trl_graph_create(test_ctx, "shape", &graph));
    trl_task first = add_many(graph, 6);
    ck_ok(trl_graph_add_dependency(graph, first, first + 1));
    ck_ok(trl_graph_add_dependency(graph, first + 1, first + 2));
    ck_ok(trl_graph_freeze(graph));
    trl_graph_get_stats(graph, &stats);
    ck_assert_double_eq(stats.tau_1, 6.0);
    ck_assert_double_eq(stats.tau_inf, 3.0);
    trl_graph_destroy(&graph);
}
END_TEST

/* Works for as many nanoseconds as data says. */
static trl_err spin(void *data, const trl_task_args *args, bool *done)
{
    struct timespec a, b;
    (void)args;
    (void)done;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < *(long *)data);
    return TRL_OK;
}

START_TEST(timed_runs_replace_the_estimates)
{
    trl_graph *graph;
    trl_graph_stats stats;
    trl_task task[3];
    trl_workers *workers;
    long ns = 200000;
    ck_ok(trl_graph_create(test_ctx, "timed", &graph));
    for (int i = 0; i < 3; ++i) {
        trl_task_desc desc = {.name = "t", .variant = {{spin}}, .data = &ns, .chunks = i == 2 ? 2 : 1, .cost = 100.0};
        ck_ok(trl_graph_add_task(graph, &desc, &task[i]));
    }
    ck_ok(trl_graph_add_dependency(graph, task[0], task[1]));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_workers_create(test_ctx, "serial", &workers));
    trl_graph_get_stats(graph, &stats);
    ck_assert_double_eq(stats.tau_1, 300.0);
    ck_assert_double_eq(stats.overhead_ns, 0.0);
    for (int run = 0; run < 4; ++run) {
        trl_graph_set_timing(graph, run < 3);
        ck_ok(trl_graph_run(graph, workers, NULL));
    }
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.runs, 4);
    ck_assert_int_eq(stats.spawned, 0);
    ck_assert_double_ge(stats.tau_1, 4 * 200e-6); /* lower bounds only: the machine may be busy */
    ck_assert_double_lt(stats.tau_1, 100.0);
    ck_assert_double_ge(stats.tau_inf, 2 * 200e-6);
    ck_assert_double_le(stats.tau_inf, stats.tau_1);
    ck_assert_double_gt(stats.overhead_ns, 0.0);
    trl_workers_destroy(&workers);
    trl_graph_destroy(&graph);
}
END_TEST

/* A root and two tasks after it, the first of which has the higher cost; then the other one gets a higher one. The next
 * run has the order of the new costs, whether times were measured before or not, and whether the two are successors or
 * roots. */
START_TEST(new_costs_change_the_order_of_the_next_run)
{
    const int before = _i % 3;      /* runs */
    const bool roots = _i / 3 == 1; /* the two are roots */
    const double costs[] = {1.0, 2.0, 1.0};
    trl_graph *graph;
    trl_workers *workers;
    trl_task task[3];
    journal j = {.count = 0};
    note notes[3];
    ck_ok(trl_graph_create(test_ctx, "costs", &graph));
    for (int i = 0; i < 3; ++i) {
        notes[i] = (note){&j, i};
        trl_task_desc desc = {.name = "t", .variant = {{write_note}}, .data = &notes[i], .chunks = 1, .cost = costs[i]};
        ck_ok(trl_graph_add_task(graph, &desc, &task[i]));
        if (i > 0 && !roots) ck_ok(trl_graph_add_dependency(graph, task[0], task[i]));
    }
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_context_set_threads(test_ctx, 1));
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    for (int run = 0; run < before; ++run) ck_ok(trl_graph_run(graph, workers, NULL));
    int second_before = before > 0 ? j.entry[roots ? 0 : 1] : 1;
    j.count = 0;
    ck_ok(trl_graph_set_cost(graph, task[2], 1e6)); /* above what the machine's hiccups make of the other one */
    ck_ok(trl_graph_run(graph, workers, NULL));
    trl_workers_destroy(&workers);
    trl_graph_destroy(&graph);
    ck_assert_int_eq(second_before, 1);
    ck_assert_int_eq(j.count, 3);
    ck_assert_int_eq(j.entry[roots ? 0 : 1], 2);
}
END_TEST

START_TEST(builds_and_freezes_a_large_graph)
{
    enum { TASKS = 100000 };
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "large", &graph));
    trl_task first = add_many(graph, TASKS);
    for (int i = 0; i < TASKS; ++i) {
        if (i >= 1) ck_ok(trl_graph_add_dependency(graph, first + i - 1, first + i));
        if (i >= 300) ck_ok(trl_graph_add_dependency(graph, first + i - 300, first + i));
    }
    ck_ok(trl_graph_freeze(graph));
    ck_assert_int_eq(count_dependencies(graph), TASKS - 1 + TASKS - 300);
    run_serial(graph);
    trl_graph_destroy(&graph);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, runs_tasks_in_topological_order_first_in_first_out);
    tcase_add_test(tc, runs_an_empty_graph);
    tcase_add_test(tc, names_the_tasks_on_a_cycle_in_order);
    tcase_add_test(tc, names_a_task_that_waits_for_itself);
    tcase_add_test(tc, shortens_the_middle_of_a_long_cycle);
    tcase_add_test(tc, counts_repeated_dependencies_once);
    tcase_add_test(tc, handles_make_readers_follow_the_writer_and_writers_follow_the_readers);
    tcase_add_test(tc, a_task_may_access_a_handle_twice_without_waiting_for_itself);
    tcase_add_test(tc, readers_before_any_writer_depend_on_nothing);
    tcase_add_test(tc, a_graph_leaves_no_memory_of_its_building_and_its_runs_behind);
    tcase_add_test(tc, tau_and_amdahl_score_follow_from_costs);
    tcase_add_test(tc, without_costs_every_task_counts_as_one);
    tcase_add_test(tc, timed_runs_replace_the_estimates);
    tcase_add_loop_test(tc, new_costs_change_the_order_of_the_next_run, 0, 6);
    tcase_add_test(tc, builds_and_freezes_a_large_graph);
}

TRL_TEST_MAIN("graph", add_tests)

// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What building a task graph refuses: bad values, names of other graphs, and additions to a frozen graph. */
#include "trl_test.h"

#include <float.h>
#include <math.h>
#include <trl_graph.h>

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

START_TEST(refuses_bad_tasks_and_says_why)
{
    trl_graph *graph;
    trl_task task;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    ck_fails(trl_graph_add_task(graph, &(trl_task_desc){.name = "t", .chunks = 1}, &task), TRL_ERR_USAGE,
             "task 't' of graph 'g' is refused: it needs a name and a function");
    ck_fails(trl_graph_add_task(graph, &(trl_task_desc){.variant = {{do_nothing}}, .chunks = 1}, &task), TRL_ERR_USAGE,
             "it needs a name and a function");
    ck_fails(trl_graph_add_task(graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}}, &task), TRL_ERR_USAGE,
             "it needs at least 1 chunk");
    ck_fails(trl_graph_add_task(
                 graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 1, .flags = 64}, &task),
             TRL_ERR_USAGE, "it has unknown flags");
    ck_fails(trl_graph_add_task(
                 graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 2, .flags = TRL_TASK_POLL},
                 &task),
             TRL_ERR_USAGE, "a poll task has 1 chunk");
    ck_fails(trl_graph_add_task(
                 graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 1, .cost = -1.0}, &task),
             TRL_ERR_USAGE, "its cost is negative, infinite or not a number");
    ck_fails(trl_graph_add_task(
                 graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 1, .cost = NAN}, &task),
             TRL_ERR_USAGE, "its cost is negative, infinite or not a number");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(reserves_room_and_outgrows_it)
{
    trl_graph *graph;
    trl_graph_stats stats;
    trl_task last = -1;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    ck_fails(trl_graph_reserve(graph, -1, 0), TRL_ERR_USAGE, "a negative number of tasks or dependencies");
    ck_fails(trl_graph_reserve(graph, 0, -1), TRL_ERR_USAGE, "a negative number of tasks or dependencies");
    ck_ok(trl_graph_reserve(graph, 40, 0));
    for (int t = 0; t < 100; ++t) {
        trl_task task = add(graph, "t");
        if (t > 0) ck_ok(trl_graph_add_dependency(graph, last, task));
        last = task;
    }
    ck_ok(trl_graph_freeze(graph));
    ck_fails(trl_graph_reserve(graph, 1, 1), TRL_ERR_USAGE, "is frozen");
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.tasks, 100);
    ck_assert_int_eq(stats.dependencies, 99);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_values_out_of_range)
{
    static const struct {
        trl_task_desc desc;
        const char *fault;
    } bad[] = {
        {{.type = -1}, "its type is not in 0..255"},
        {{.type = TRL_TASK_TYPES}, "its type is not in 0..255"},
        {{.priority = -2}, "its priority is not -1, 0 or 1"},
        {{.priority = 2}, "its priority is not -1, 0 or 1"},
        {{.signals = -1}, "it waits for a negative or absurd number of signals"},
        {{.signals = INT64_MAX}, "it waits for a negative or absurd number of signals"},
        {{.signals = (int64_t)1 << 32}, "it waits for a negative or absurd number of signals"},
        {{.cost = INFINITY}, "its cost is negative, infinite or not a number"},
    };
    trl_graph *graph;
    trl_task task;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char text[128];
        trl_task_desc desc = bad[i].desc;
        desc.name = "t";
        desc.variant[TRL_KIND_CPU].run = do_nothing;
        desc.chunks = 1;
        snprintf(text, sizeof text, "task 't' of graph 'g' is refused: %s", bad[i].fault);
        trl_context_clear_diagnostics(test_ctx);
        ck_fails(trl_graph_add_task(graph, &desc, &task), TRL_ERR_USAGE, text);
    }
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(accepts_values_at_the_ends_of_their_ranges)
{
    trl_graph *graph;
    trl_task task;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    for (int priority = -1; priority <= 1; ++priority) {
        for (int end = 0; end < 2; ++end) {
            trl_task_desc desc = {.name = "t",
                                  .chunks = 1 + end,
                                  .type = end * (TRL_TASK_TYPES - 1),
                                  .priority = priority,
                                  .variant = {{do_nothing}, {end ? do_nothing : NULL}}};
            ck_ok(trl_graph_add_task(graph, &desc, &task));
        }
    }
    ck_ok(trl_graph_freeze(graph));
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_an_access_that_is_none)
{
    trl_graph *graph;
    trl_handle field;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    trl_task a = add(graph, "a");
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field));
    ck_fails(trl_graph_add_access(graph, a, field, (trl_access)(TRL_ADD + 1)), TRL_ERR_USAGE,
             "graph 'g': an access must be read, write, both, write a part or add");
    trl_graph_destroy(&graph);
}
END_TEST

/* A call failed since graph 'g' has no such thing. */
static void check_no_such(trl_err err, const char *kind, int64_t name)
{
    char text[128];
    snprintf(text, sizeof text, "graph 'g' has no %s %lld: it belongs to another graph or to none", kind,
             (long long)name);
    ck_fails(err, TRL_ERR_USAGE, text);
    trl_context_clear_diagnostics(test_ctx);
}

/* Names beside the right ones, and such as were no names of any graph. */
START_TEST(refuses_unknown_tasks_and_handles)
{
    trl_graph *graph;
    trl_handle field;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    trl_task a = add(graph, "a");
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field));
    const int64_t unknown[] = {a + 1, a - 1, a ^ INT64_MIN, a + ((int64_t)1 << 31), a & INT32_MAX, -1, 1, INT64_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; ++i) {
        int64_t u = unknown[i];
        check_no_such(trl_graph_add_dependency(graph, a, u), "task", u);
        check_no_such(trl_graph_add_dependency(graph, u, a), "task", u);
        check_no_such(trl_graph_add_access(graph, u, field, TRL_READ), "task", u);
        check_no_such(trl_graph_add_access(graph, a, u, TRL_READ), "data handle", u);
        check_no_such(trl_graph_set_cost(graph, u, 1.0), "task", u);
    }
    ck_ok(trl_graph_add_access(graph, a, field, TRL_READ));
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_to_rotate_data_twice)
{
    trl_graph *graph;
    trl_handle h[4];
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    for (int i = 0; i < 4; ++i)
        ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = (const char *[]){"a", "b", "c", "d"}[i]}, &h[i]));
    ck_ok(trl_graph_rotate(graph, 0, NULL));
    ck_ok(trl_graph_rotate(graph, 2, h));
    ck_fails(trl_graph_rotate(graph, 2, h + 1), TRL_ERR_USAGE, "data handle 'b' is in two rotations, or twice in one");
    ck_fails(trl_graph_rotate(graph, 2, (trl_handle[]){h[3], h[3]}), TRL_ERR_USAGE, "data handle 'd' is in two");
    ck_fails(trl_graph_rotate(graph, 2, (trl_handle[]){h[3], h[3] + 1}), TRL_ERR_USAGE, "has no data handle");
    ck_ok(trl_graph_freeze(graph));
    ck_fails(trl_graph_rotate(graph, 2, h + 2), TRL_ERR_USAGE, "is frozen");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_tasks_and_handles_of_another_graph)
{
    trl_graph *graph, *other;
    trl_graph_stats stats;
    trl_handle field, foreign_field;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    ck_ok(trl_graph_create(test_ctx, "other", &other));
    trl_task a = add(graph, "a"), foreign = add(other, "b");
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field));
    ck_ok(trl_graph_add_handle(other, &(trl_handle_desc){.name = "T"}, &foreign_field));
    ck_assert_int_ne(a, foreign);
    ck_assert_int_ne(field, foreign_field);
    check_no_such(trl_graph_add_dependency(graph, a, foreign), "task", foreign);
    check_no_such(trl_graph_add_dependency(graph, foreign, a), "task", foreign);
    check_no_such(trl_graph_add_access(graph, foreign, field, TRL_WRITE), "task", foreign);
    check_no_such(trl_graph_add_access(graph, a, foreign_field, TRL_WRITE), "data handle", foreign_field);
    check_no_such(trl_graph_set_cost(graph, foreign, 1.0), "task", foreign);
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.dependencies, 0);
    trl_graph_destroy(&graph);
    ck_ok(trl_graph_add_dependency(other, foreign, add(other, "c")));
    trl_graph_destroy(&other);
}
END_TEST

/* A name outlives its graph, but is nobody's then. */
START_TEST(refuses_tasks_of_a_graph_that_is_gone)
{
    trl_graph *graph;
    trl_task old[3], a = -1;
    for (int i = 0; i < 3; ++i) {
        ck_ok(trl_graph_create(test_ctx, "g", &graph));
        old[i] = a = add(graph, "a");
        for (int j = 0; j < i; ++j) check_no_such(trl_graph_add_dependency(graph, old[j], a), "task", old[j]);
        trl_graph_destroy(&graph);
    }
}
END_TEST

START_TEST(refuses_additions_to_a_frozen_graph)
{
    trl_graph *graph;
    trl_task task;
    trl_handle field;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    trl_task a = add(graph, "a");
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field));
    ck_ok(trl_graph_freeze(graph));
    const char *text = "graph 'g' is frozen: nothing can be added to it";
    ck_fails(trl_graph_add_task(graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 1}, &task),
             TRL_ERR_USAGE, text);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_graph_add_dependency(graph, a, a), TRL_ERR_USAGE, text);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "T"}, &field), TRL_ERR_USAGE, text);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_graph_add_access(graph, a, field, TRL_READ), TRL_ERR_USAGE, text);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_graph_add_phase(graph, "p", 0, 1), TRL_ERR_USAGE, text);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_costs_that_are_none)
{
    trl_graph *graph;
    trl_graph_stats stats;
    const double bad[] = {-1.0, -DBL_MIN, NAN, -INFINITY, INFINITY};
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    trl_task a = add(graph, "a");
    for (int frozen = 0; frozen < 2; ++frozen) {
        if (frozen) ck_ok(trl_graph_freeze(graph));
        ck_ok(trl_graph_set_cost(graph, a, 3.0));
        for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
            trl_context_clear_diagnostics(test_ctx);
            ck_fails(trl_graph_set_cost(graph, a, bad[i]), TRL_ERR_USAGE,
                     "task 'a' of graph 'g': a cost is negative, infinite or not a number");
        }
    }
    trl_graph_get_stats(graph, &stats);
    ck_assert_double_eq(stats.tau_1, 3.0);
    trl_graph_destroy(&graph);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, refuses_bad_tasks_and_says_why);
    tcase_add_test(tc, reserves_room_and_outgrows_it);
    tcase_add_test(tc, refuses_values_out_of_range);
    tcase_add_test(tc, accepts_values_at_the_ends_of_their_ranges);
    tcase_add_test(tc, refuses_an_access_that_is_none);
    tcase_add_test(tc, refuses_costs_that_are_none);
    tcase_add_test(tc, refuses_unknown_tasks_and_handles);
    tcase_add_test(tc, refuses_to_rotate_data_twice);
    tcase_add_test(tc, refuses_tasks_and_handles_of_another_graph);
    tcase_add_test(tc, refuses_tasks_of_a_graph_that_is_gone);
    tcase_add_test(tc, refuses_additions_to_a_frozen_graph);
}

TRL_TEST_MAIN("graph_refusals", add_tests)

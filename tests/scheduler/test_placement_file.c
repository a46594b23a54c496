// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placements in files: what is read, what is refused, and what is written. */
#include "trl_test.h"

#include <placement_file_impl.h>

static trl_err nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    return TRL_OK;
}

static trl_task add(trl_graph *graph, const char *name, bool devices)
{
    const trl_task_desc desc = {.name = name,
                                .variant = {[TRL_KIND_CPU] = {nothing}, [TRL_KIND_MOCK] = {devices ? nothing : NULL}},
                                .chunks = 1};
    trl_task task;
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    return task;
}

/* Tasks "a b", "half", "half", of which the last two make a value together, and "host", for workers only. */
static trl_graph *make_graph(void)
{
    const trl_handle_desc desc = {.name = "value", .bytes = 8};
    trl_graph *graph;
    trl_handle value;
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    ck_ok(trl_graph_add_handle(graph, &desc, &value));
    (void)add(graph, "a b", true);
    for (int i = 0; i < 2; ++i) ck_ok(trl_graph_add_access(graph, add(graph, "half", true), value, TRL_WRITE_PART));
    ck_ok(trl_graph_add_access(graph, add(graph, "host", false), value, TRL_READ));
    ck_ok(trl_graph_freeze(graph));
    return graph;
}

static const trli_platform machine = {
    .executors = 3, .kind = {TRL_KIND_CPU, TRL_KIND_MOCK, TRL_KIND_MOCK}, .parallel = {1, 1, 1}};

static trl_err read_text(trl_graph *graph, const char *text, uint8_t executor[4])
{
    const trli_placement_file file = {.path = "f", .text = text, .graph = "step"};
    return trli_placement_file_read(graph, &machine, &file, executor);
}

START_TEST(places_the_tasks_that_a_file_names_and_leaves_the_others_to_workers)
{
    trl_graph *graph = make_graph();
    uint8_t executor[4] = {9, 9, 9, 9};
    ck_ok(read_text(graph, "# by hand\r\n\n  a b   1   device 1  \r\n host 1 workers", executor));
    ck_assert_int_eq(executor[0], 2);
    for (int t = 1; t < 4; ++t) ck_assert_int_eq(executor[t], 0);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(reads_what_it_has_written)
{
    trl_graph *graph = make_graph();
    const uint8_t placed[4] = {2, 1, 1, 0};
    uint8_t executor[4];
    char text[512] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    ck_assert_ptr_nonnull(out);
    ck_ok(trli_placement_file_write(graph, placed, out));
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "half                        2  device 0\n"));
    ck_ok(read_text(graph, text, executor));
    ck_assert_mem_eq(executor, placed, sizeof placed);
    trl_graph_destroy(&graph);
}
END_TEST

/* The message of a text that is refused, as "f:line:1: message". */
static void refuses(trl_graph *graph, const char *text, int line, const char *message)
{
    const trl_diagnostic *list;
    uint8_t executor[4];
    trl_context_clear_diagnostics(test_ctx);
    ck_assert_int_eq(read_text(graph, text, executor), TRL_ERR_INPUT);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 1);
    ck_assert_str_eq(list[0].file, "f");
    ck_assert_int_eq(list[0].line, line);
    ck_assert_str_eq(list[0].text, message);
    trl_context_clear_diagnostics(test_ctx);
}

START_TEST(refuses_executors_that_may_not_do_a_task)
{
    trl_graph *graph = make_graph();
    refuses(graph, "a b 1 workers\nhost 1 device 0\n", 2, "device 0 cannot do task 'host'");
    refuses(graph, "half 1 device 3", 1, "there is no device 3; the last one is device 1");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_several_executors_for_tasks_that_make_one_value)
{
    trl_graph *graph = make_graph();
    refuses(graph, "half 1 device 0\nhalf 2 device 1\n", 2,
            "tasks 'half' and 'half' make one value together and need one executor; give both the same");
    refuses(graph, "half 1 device 0\n", 1,
            "tasks 'half' and 'half' make one value together and need one executor; give both the same");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(passes_over_the_tasks_of_other_ranks)
{
    trl_graph *graph = make_graph();
    uint8_t executor[4];
    ck_ok(read_text(graph, "rank 0 of 1\na b 1 device 0\nrank 1 of 1\nsomething 1 device 7\n", executor));
    ck_assert_int_eq(executor[0], 1);
    refuses(graph, "rank 0 of 4\na b 1 device 0\n", 1, "this is a placement for 4 ranks, not for 1");
    trl_graph_destroy(&graph);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, places_the_tasks_that_a_file_names_and_leaves_the_others_to_workers);
    tcase_add_test(tc, reads_what_it_has_written);
    tcase_add_test(tc, refuses_executors_that_may_not_do_a_task);
    tcase_add_test(tc, refuses_several_executors_for_tasks_that_make_one_value);
    tcase_add_test(tc, passes_over_the_tasks_of_other_ranks);
}

TRL_TEST_MAIN("placement file", add_tests)

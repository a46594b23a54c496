// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Task graphs as Graphviz and as lines of text. */
#include "trl_test.h"

#include "../../scheduler/graph_impl.h"

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    return TRL_OK;
}

static trl_task add(trl_graph *graph, const char *name, int chunks, unsigned flags, double cost)
{
    trl_task task = -1;
    ck_ok(trl_graph_add_task(
        graph,
        &(trl_task_desc){
            .name = name, .variant = {{do_nothing}}, .chunks = chunks, .flags = flags, .cost = cost, .type = chunks},
        &task));
    return task;
}

/* Two tasks before a wide one, a poll task, and one on its own. Once frozen, the second task's lock of a resource and
 * use of the one above it count as a lock of the upper one. */
static trl_graph *make_graph(void)
{
    trl_graph *graph;
    trl_resource cells, left;
    ck_ok(trl_context_set_threads(test_ctx, 2));
    ck_ok(trl_graph_create(test_ctx, "a \"graph\"", &graph));
    ck_ok(trl_graph_add_resource(graph, &(trl_resource_desc){.name = "cells", .parent = TRL_NO_PARENT}, &cells));
    ck_ok(trl_graph_add_resource(graph, &(trl_resource_desc){.name = "left\"", .parent = cells}, &left));
    trl_task odd = add(graph, "first \\ \"one\"\nline", 1, 0, 4.0), second = add(graph, "zweit\xc3\xa9", 1, 0, 1.0);
    trl_task wide = add(graph, "wide", 8, 0, 16.0), poll = add(graph, "poll", 1, TRL_TASK_POLL, 1.0);
    add(graph, "alone", 1, TRL_TASK_POLL, 0.5);
    ck_ok(trl_graph_add_dependency(graph, odd, wide));
    ck_ok(trl_graph_add_dependency(graph, second, wide));
    ck_ok(trl_graph_add_dependency(graph, wide, poll));
    /* The last task's first: the order of adding is not the order of tasks. */
    ck_ok(trl_graph_add_use(graph, poll, left));
    ck_ok(trl_graph_add_use(graph, second, cells));
    ck_ok(trl_graph_add_lock(graph, second, left));
    ck_ok(trl_graph_add_phase(graph, "main", 1, 3));
    return graph;
}

/* What a writer writes; the caller frees it. */
static char *text_of(const trl_graph *graph, trl_err (*write)(const trl_graph *, FILE *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ck_ok(write(graph, out));
    fclose(out);
    return text;
}

static void check_text(const trl_graph *graph, trl_err (*write)(const trl_graph *, FILE *), const char *expected)
{
    char *text = text_of(graph, write);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(dot_text_before_freeze_has_names_costs_chunks_locks_and_edges)
{
    trl_graph *graph = make_graph();
    check_text(graph, trl_graph_write_dot,
               "digraph \"a \\\"graph\\\"\" {\n"
               "    label=\"a \\\"graph\\\"\\ntau_1 22.5 (estimates: nothing is measured yet)\";\n"
               "    labelloc=t;\n"
               "    node [shape=box];\n"
               "    t0 [label=\"first \\\\ \\\"one\\\"\\nline\\ncost 4\"];\n"
               "    t1 [label=\"zweit\xc3\xa9\\ncost 1\\nlocks left\\\"\\nuses cells\"];\n"
               "    t2 [label=\"wide\\ncost 16\\n8 chunks\"];\n"
               "    t3 [label=\"poll\\ncost 1\\nuses left\\\"\", style=\"dashed\"];\n"
               "    t4 [label=\"alone\\ncost 0.5\", style=\"dashed\"];\n"
               "    t0 -> t2;\n"
               "    t1 -> t2;\n"
               "    t2 -> t3;\n"
               "}\n");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(dot_text_after_freeze_shows_the_critical_path_and_measured_times)
{
    trl_graph *graph = make_graph();
    ck_ok(trl_graph_freeze(graph));
    const double means[] = {2e-3, 3e-3, 8e-6, 1.25e-6, 0.0};
    memcpy(graph->mean_s[TRL_KIND_CPU], means, sizeof means);
    check_text(graph, trl_graph_write_dot,
               "digraph \"a \\\"graph\\\"\" {\n"
               "    label=\"a \\\"graph\\\"\\ntau_1 5.12 ms, tau_inf 3 ms, P(G) 0.828 on 2 workers\";\n"
               "    labelloc=t;\n"
               "    node [shape=box];\n"
               "    t0 [label=\"first \\\\ \\\"one\\\"\\nline\\n2 ms\"];\n"
               "    t1 [label=\"zweit\xc3\xa9\\n3 ms\\nlocks cells\", style=\"bold\", color=red];\n"
               "    t2 [label=\"wide\\n8 us\\n8 chunks\", style=\"bold\", color=red];\n"
               "    t3 [label=\"poll\\n1.25 us\\nuses left\\\"\", style=\"bold,dashed\", color=red];\n"
               "    t4 [label=\"alone\\n~114 us\", style=\"dashed\"];\n"
               "    t0 -> t2;\n"
               "    edge [style=bold, color=red];\n"
               "    t1 -> t2;\n"
               "    t2 -> t3;\n"
               "}\n");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(plain_text_lists_tasks_in_columns)
{
    trl_graph *graph = make_graph();
    check_text(
        graph, trl_graph_write_text,
        "graph 'a \"graph\"': 5 tasks, 3 dependencies, 0 runs\n"
        "tau_1 22.5 (estimates: nothing is measured yet)\n"
        "phase 'main': types 1 to 2\n"
        "     task  name                 type chunks      cost    weight before  resources\n"
        "        0  first \\\\ \"one\"\\nline    1      1         4         -      0\n"
        "        1  zweit\xc3\xa9                  1      1         1         -      0  locks left\"; uses cells\n"
        "        2  wide                    8      8        16         -      2\n"
        "        3  poll                    1      1         1         -      1  uses left\"\n"
        "        4  alone                   1      1       0.5         -      0\n");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(frozen_tasks_are_in_topological_order_with_stars_on_the_critical_path)
{
    trl_graph *graph;
    ck_ok(trl_context_set_threads(test_ctx, 4));
    ck_ok(trl_graph_create(test_ctx, "chain", &graph));
    trl_task last = add(graph, "last", 1, 0, 1.0), first = add(graph, "first", 2, 0, 6.0);
    add(graph, "beside", 1, 0, 2.0);
    ck_ok(trl_graph_add_dependency(graph, first, last));
    ck_ok(trl_graph_freeze(graph));
    check_text(graph, trl_graph_write_text,
               "graph 'chain': 3 tasks, 1 dependencies, 0 runs\n"
               "tau_1 9, tau_inf 4, P(G) 0.741 on 4 workers (estimates: nothing is measured yet)\n"
               "     task  name   type chunks      cost    weight before  resources\n"
               "*       1  first     2      2         6         4      0\n"
               "        2  beside    1      1         2         2      0\n"
               "*       0  last      1      1         1         1      1\n");
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(control_characters_of_names_stay_on_their_line)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "bell", &graph));
    add(graph, "a\x07\tb", 1, 0, 1.0);
    char *dot = text_of(graph, trl_graph_write_dot), *plain = text_of(graph, trl_graph_write_text);
    ck_assert_msg(strstr(dot, "t0 [label=\"a\\\\x07\\\\x09b\\ncost 1\"];") != NULL, "%s", dot);
    ck_assert_msg(strstr(plain, "  a\\x07\\x09b ") != NULL, "%s", plain);
    free(dot);
    free(plain);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(an_empty_graph_can_be_written)
{
    trl_graph *graph;
    for (int frozen = 0; frozen < 2; ++frozen) {
        ck_ok(trl_graph_create(test_ctx, "empty", &graph));
        if (frozen) ck_ok(trl_graph_freeze(graph));
        free(text_of(graph, trl_graph_write_dot));
        free(text_of(graph, trl_graph_write_text));
        trl_graph_destroy(&graph);
    }
}
END_TEST

START_TEST(reports_a_full_disk)
{
    trl_graph *graph;
    FILE *full = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(full);
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    ck_fails(trl_graph_write_dot(graph, full), TRL_ERR_IO,
             "cannot write the dot text of graph 'g': No space left on device");
    ck_fails(trl_graph_write_text(graph, full), TRL_ERR_IO, "cannot write the plain text of graph 'g': ");
    fclose(full);
    trl_graph_destroy(&graph);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, dot_text_before_freeze_has_names_costs_chunks_locks_and_edges);
    tcase_add_test(tc, dot_text_after_freeze_shows_the_critical_path_and_measured_times);
    tcase_add_test(tc, plain_text_lists_tasks_in_columns);
    tcase_add_test(tc, frozen_tasks_are_in_topological_order_with_stars_on_the_critical_path);
    tcase_add_test(tc, control_characters_of_names_stay_on_their_line);
    tcase_add_test(tc, an_empty_graph_can_be_written);
    tcase_add_test(tc, reports_a_full_disk);
}
TRL_TEST_MAIN("dump", add_tests)

// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Resources that are refused. test_locks.c tests what they do. */
#include "trl_test.h"

#include <stdint.h>
#include <trl_graph.h>

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    return TRL_OK;
}

static const trl_resource_desc plain = {.name = "plain", .parent = TRL_NO_PARENT};

START_TEST(refuses_resources_and_tasks_of_another_graph_or_of_none)
{
    trl_graph *graph, *other;
    trl_resource mine, foreign;
    trl_task task, foreign_task;
    trl_task_desc desc = {.name = "t", .variant = {{do_nothing}}, .chunks = 1};
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    ck_ok(trl_graph_create(test_ctx, "other", &other));
    ck_ok(trl_graph_add_resource(graph, &plain, &mine));
    ck_ok(trl_graph_add_resource(other, &plain, &foreign));
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_add_task(other, &desc, &foreign_task));
    const trl_resource bad[] = {foreign, mine + 1, -1, 0, -5};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char text[100];
        trl_resource_desc below = {.name = "below", .parent = bad[i]};
        trl_resource resource;
        snprintf(text, sizeof text, "graph 'g' has no resource %lld: it belongs to another graph or to none",
                 (long long)bad[i]);
        ck_fails(trl_graph_add_lock(graph, task, bad[i]), TRL_ERR_USAGE, text);
        test_clear();
        ck_fails(trl_graph_add_use(graph, task, bad[i]), TRL_ERR_USAGE, text);
        test_clear();
        if (bad[i] == TRL_NO_PARENT) continue;
        ck_fails(trl_graph_add_resource(graph, &below, &resource), TRL_ERR_USAGE, text);
        test_clear();
    }
    ck_fails(trl_graph_add_lock(graph, foreign_task, mine), TRL_ERR_USAGE, "graph 'g' has no task ");
    ck_fails(trl_graph_add_use(graph, task + 1, mine), TRL_ERR_USAGE, ": it belongs to another graph or to none");
    ck_ok(trl_graph_freeze(graph));
    trl_graph_destroy(&graph);
    trl_graph_destroy(&other);
}
END_TEST

START_TEST(refuses_resources_and_wants_after_freeze)
{
    trl_graph *graph;
    trl_resource resource;
    trl_task task;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    ck_ok(trl_graph_add_resource(graph, &plain, &resource));
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 1}, &task));
    ck_ok(trl_graph_freeze(graph));
    const char *text = "graph 'g' is frozen: nothing can be added to it";
    ck_fails(trl_graph_add_resource(graph, &plain, &resource), TRL_ERR_USAGE, text);
    test_clear();
    ck_fails(trl_graph_add_lock(graph, task, resource), TRL_ERR_USAGE, text);
    test_clear();
    ck_fails(trl_graph_add_use(graph, task, resource), TRL_ERR_USAGE, text);
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_resources_without_sense)
{
    static char memory[64];
    trl_graph *graph;
    trl_resource whole, part, empty;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    trl_resource_desc desc = {.name = NULL, .parent = TRL_NO_PARENT};
    ck_fails(trl_graph_add_resource(graph, &desc, &whole), TRL_ERR_USAGE,
             "a resource of graph 'g' is refused: it needs a name");
    desc = (trl_resource_desc){.name = "w", .parent = TRL_NO_PARENT, .bytes = 3};
    ck_fails(trl_graph_add_resource(graph, &desc, &whole), TRL_ERR_USAGE,
             "resource 'w' of graph 'g' is refused: it has 3 bytes and no data");
    desc = (trl_resource_desc){.name = "whole", .parent = TRL_NO_PARENT, .data = memory + 8, .bytes = 32};
    ck_ok(trl_graph_add_resource(graph, &desc, &whole));
    const size_t bad[][2] = {{7, 4}, {8, 33}, {39, 2}, {41, 1}, {0, 4}, {9, SIZE_MAX - 4}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        desc = (trl_resource_desc){.name = "part", .parent = whole, .data = memory + bad[i][0], .bytes = bad[i][1]};
        ck_fails(trl_graph_add_resource(graph, &desc, &part), TRL_ERR_USAGE,
                 "resource 'part' of graph 'g' is refused: its data are not inside those of 'whole'");
        test_clear();
    }
    desc = (trl_resource_desc){.name = "no data", .parent = whole};
    ck_ok(trl_graph_add_resource(graph, &desc, &empty));
    desc = (trl_resource_desc){.name = "part", .parent = empty, .data = memory + 39, .bytes = 2};
    ck_fails(trl_graph_add_resource(graph, &desc, &part), TRL_ERR_USAGE, "its data are not inside those of 'whole'");
    desc.bytes = 1;
    ck_ok(trl_graph_add_resource(graph, &desc, &part));
    trl_graph_destroy(&graph);
}
END_TEST

START_TEST(refuses_more_than_64_levels_of_resources)
{
    trl_graph *graph;
    trl_resource_desc desc = plain;
    trl_task task;
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    for (int level = 0; level < 64; ++level) ck_ok(trl_graph_add_resource(graph, &desc, &desc.parent));
    trl_resource deepest = desc.parent;
    desc.name = "deeper";
    ck_fails(trl_graph_add_resource(graph, &desc, &desc.parent), TRL_ERR_USAGE,
             "resource 'deeper' of graph 'g' is refused: it is more than 64 levels deep");
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 1}, &task));
    ck_ok(trl_graph_add_lock(graph, task, deepest));
    ck_ok(trl_graph_freeze(graph));
    trl_graph_destroy(&graph);
}
END_TEST

/* Ten neighbours in an order without sense, all well but perhaps one. */
static trl_err freeze_neighbours(int longer, bool roots)
{
    static char memory[100];
    trl_graph *graph;
    trl_resource above, resource;
    trl_resource_desc whole = {.name = "whole", .parent = TRL_NO_PARENT, .data = memory, .bytes = sizeof memory};
    ck_ok(trl_graph_create(test_ctx, "g", &graph));
    if (!roots) ck_ok(trl_graph_add_resource(graph, &whole, &above));
    for (int i = 0; i < 10; ++i) {
        int place = i * 7 % 10;
        char name[] = {'n', (char)('0' + place), 0};
        trl_resource_desc desc = {.name = name,
                                  .parent = roots ? TRL_NO_PARENT : above,
                                  .data = memory + (ptrdiff_t)10 * place,
                                  .bytes = place == longer ? 11 : 10};
        ck_ok(trl_graph_add_resource(graph, &desc, &resource));
    }
    trl_err err = trl_graph_freeze(graph);
    trl_graph_destroy(&graph);
    return err;
}

START_TEST(refuses_siblings_with_overlapping_data)
{
    for (int roots = 0; roots < 2; ++roots) {
        ck_ok(freeze_neighbours(-1, roots));
        ck_fails(freeze_neighbours(3, roots), TRL_ERR_USAGE,
                 "graph 'g': the data of resources 'n4' and 'n3' overlap, but neither is above the other");
        test_clear();
        ck_fails(freeze_neighbours(6, roots), TRL_ERR_USAGE, "resources 'n7' and 'n6' overlap");
        test_clear();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, refuses_resources_and_tasks_of_another_graph_or_of_none);
    tcase_add_test(tc, refuses_resources_and_wants_after_freeze);
    tcase_add_test(tc, refuses_resources_without_sense);
    tcase_add_test(tc, refuses_more_than_64_levels_of_resources);
    tcase_add_test(tc, refuses_siblings_with_overlapping_data);
}

TRL_TEST_MAIN("resources", add_tests)

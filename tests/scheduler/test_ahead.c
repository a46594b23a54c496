// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A task that does the work of those after it, once these wait for nothing else; and chunks of tasks with a priority,
 * which go before those of a task that has begun. */
#include "trl_test.h"

#include <ahead_impl.h>

#include "policy_settings.h"

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_OK;
}

static trl_task add(trl_graph *graph, trl_task_fn run, void *data)
{
    trl_task task;
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "task", .variant = {{run}}, .data = data, .chunks = 1},
                             &task));
    return task;
}

enum { RIMS = 2 };

typedef struct looks {
    trl_task rim[RIMS], unrelated, later;
    int both, first, second, with_unrelated, with_later;
} looks;

static trl_err look(void *data, const trl_task_args *args, bool *done)
{
    looks *l = data;
    (void)done;
    l->both += trli_run_may_do(args->run, RIMS, l->rim);
    l->first += trli_run_may_do(args->run, 1, &l->rim[0]);
    l->second += trli_run_may_do(args->run, 1, &l->rim[1]);
    l->with_unrelated += trli_run_may_do(args->run, 1, &l->unrelated);
    l->with_later += trli_run_may_do(args->run, 1, &l->later);
    return TRL_OK;
}

START_TEST(a_task_knows_who_waits_for_it_alone)
{
    enum { RUNS = 3 };
    const setting one = {"priority", 1};
    trl_workers *workers = make_workers(&one);
    trl_graph *graph;
    looks l = {0};
    ck_ok(trl_graph_create(test_ctx, "ahead", &graph));
    const trl_task before = add(graph, do_nothing, NULL), task = add(graph, look, &l);
    const trl_task beside = add(graph, do_nothing, NULL);
    for (int i = 0; i < RIMS; ++i) {
        l.rim[i] = add(graph, do_nothing, NULL);
        ck_ok(trl_graph_add_dependency(graph, task, l.rim[i]));
        ck_ok(trl_graph_add_dependency(graph, before, l.rim[i]));
    }
    ck_ok(trl_graph_add_dependency(graph, l.rim[0], l.rim[1]));
    l.unrelated = add(graph, do_nothing, NULL);
    l.later = add(graph, do_nothing, NULL);
    ck_ok(trl_graph_add_dependency(graph, before, task));
    ck_ok(trl_graph_add_dependency(graph, task, beside));
    ck_ok(trl_graph_add_dependency(graph, task, l.later));
    ck_ok(trl_graph_add_dependency(graph, beside, l.later));
    ck_ok(trl_graph_add_dependency(graph, l.rim[0], l.unrelated));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_eq(l.both, RUNS);
    ck_assert_int_eq(l.first, RUNS);
    ck_assert_int_eq(l.second, 0); /* it waits for the first */
    ck_assert_int_eq(l.with_unrelated, 0);
    ck_assert_int_eq(l.with_later, 0);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

enum { CHUNKS = 8, AT = 2 };

typedef struct order {
    trl_task urgent;
    int begun, urgent_after[2]; /* chunks of the long task before each of the urgent one's */
} order;

static trl_err long_chunk(void *data, const trl_task_args *args, bool *done)
{
    order *o = data;
    (void)done;
    ++o->begun;
    return args->chunk == AT ? trl_run_signal_task(args->run, o->urgent, 1) : TRL_OK;
}

static trl_err urgent_chunk(void *data, const trl_task_args *args, bool *done)
{
    order *o = data;
    (void)done;
    o->urgent_after[args->chunk] = o->begun;
    return TRL_OK;
}

START_TEST(chunks_with_a_priority_go_first)
{
    const setting one = {"priority", 1};
    trl_workers *workers = make_workers(&one);
    for (int priority = 0; priority < 2; ++priority) {
        trl_graph *graph;
        trl_task task;
        order o = {0};
        ck_ok(trl_graph_create(test_ctx, "order", &graph));
        const trl_task_desc all = {.name = "long", .variant = {{long_chunk}}, .data = &o, .chunks = CHUNKS};
        const trl_task_desc urgent = {
            .name = "urgent", .variant = {{urgent_chunk}}, .data = &o, .chunks = 2, .priority = priority, .signals = 1};
        ck_ok(trl_graph_add_task(graph, &all, &task));
        ck_ok(trl_graph_add_task(graph, &urgent, &o.urgent));
        ck_ok(trl_graph_freeze(graph));
        ck_ok(trl_graph_run(graph, workers, NULL));
        for (int i = 0; i < 2; ++i) ck_assert_int_eq(o.urgent_after[i], priority ? AT + 1 : CHUNKS);
        trl_graph_destroy(&graph);
    }
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_task_knows_who_waits_for_it_alone);
    tcase_add_test(tc, chunks_with_a_priority_go_first);
}

TRL_TEST_MAIN("ahead", add_tests)

// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls: tasks that run a graph, once or until a function says that it is enough, in a frame of its own. */
#include "trl_test.h"

#include "call_body.h"

static trl_err refill(void *data, const trl_task_args *args, bool *done)
{
    frame *f = data, fresh = start(f->limit);
    (void)args, (void)done;
    memcpy(f->x, fresh.x, sizeof f->x);
    return TRL_OK;
}

/* Refill, call, double: by accesses, in the order added. */
START_TEST(a_call_goes_round_between_what_comes_before_and_after_it)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = halving_body(), *graph = app_graph("outer");
    frame f = start(1e-6);
    trl_graph_stats stats;
    const trl_handle x = app_handle(graph, "x");
    const trl_task before = add(graph, "refill", refill, &f, 1, 0), call = add_call(graph, "call", body, &f, 100),
                   after = add(graph, "double", double_all, &f, 1, 0);
    ck_ok(trl_graph_add_access(graph, before, x, TRL_WRITE));
    ck_ok(trl_graph_add_access(graph, call, x, TRL_READ_WRITE));
    ck_ok(trl_graph_add_access(graph, after, x, TRL_READ_WRITE));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) {
        ck_ok(trl_graph_run(graph, workers, NULL));
        for (int i = 0; i < POINTS; ++i) f.x[i] *= 0.5;
        check(&f, f.limit);
    }
    ck_assert_int_eq(f.begun, RUNS);
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.tasks, 6); /* with the body's two, and the end of a round */
    ck_assert_int_eq(stats.repeated, RUNS * (f.rounds - 1) * 3);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(two_calls_of_one_body_have_frames_of_their_own)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = halving_body(), *graph = app_graph("outer");
    frame a, b;
    add_call(graph, "a", body, &a, 100);
    add_call(graph, "b", body, &b, 100);
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) {
        a = start(1e-3), b = start(1e-7);
        ck_ok(trl_graph_run(graph, workers, NULL));
        check(&a, 1e-3);
        check(&b, 1e-7);
    }
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

static trl_err lower_limit(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data, (void)done;
    f->inner->limit = f->limit *= 0.125;
    return TRL_OK;
}

/* Three rounds, each of which halves until a limit that is an eighth of the one before, in the frame of the frame. */
START_TEST(bodies_have_calls)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = halving_body(), *middle = app_graph("middle"), *graph = app_graph("outer");
    frame inner, outer;
    trl_task call;
    const trl_task lower = add(middle, "lower", lower_limit, NULL, 1, 0);
    ck_ok(trl_graph_add_dependency(middle, lower, add_call(middle, "inner", body, NULL, 100)));
    ck_ok(trl_graph_freeze(middle));
    ck_ok(trl_graph_add_call(
        graph,
        &(trl_call_desc){
            .name = "middle", .body = middle, .data = &outer, .begin = enter, .again = three_times, .rounds = 3},
        &call));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) {
        inner = start(0), outer = start(100);
        outer.inner = &inner;
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(inner.begun, 3);
        ck_assert(outer.limit == 100 * 0x1p-9 && inner.limit == outer.limit);
        inner.rounds = inner.begun = 0;
        for (double factor = 1; POINTS * factor > outer.limit; factor *= 0.5) ++inner.rounds;
        check(&inner, outer.limit);
    }
    trl_graph_destroy(&graph);
    trl_graph_destroy(&middle);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- what a body may do ---- */

static trl_err spawn_two(void *data, const trl_task_args *args, bool *done)
{
    trl_err err;
    const trl_resource *lock = data;
    trl_spawn_desc desc = {.name = "spawned", .variant = {{count_spawned}}, .nlocks = 1, .locks = lock};
    (void)done;
    TRL_TRY(trl_run_spawn(args->run, &desc, NULL));
    TRL_TRY(trl_run_spawn(args->run, &desc, NULL));
done:
    return err;
}

static trl_err signal_waiter(void *data, const trl_task_args *args, bool *done)
{
    (void)done;
    return trl_run_signal_task(args->run, *(trl_task *)data, 2);
}

/* All that was spawned, in the round and before, is complete when it ends. */
static trl_err all_spawned(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    frame *f = args->frame;
    (void)data;
    *again = round < 50;
    return atomic_load(&f->spawned) == 2 * round ? TRL_OK : TRL_ERR_NUMERICS;
}

START_TEST(a_round_waits_for_what_its_tasks_spawn_and_signal)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = app_graph("spawning"), *graph = app_graph("outer");
    frame f;
    trl_task waiter, call;
    /* Resources and tasks of the graph of other numbers than those of the body. */
    (void)app_resource(graph, "another", TRL_NO_PARENT);
    trl_resource lock = app_resource(body, "lock", TRL_NO_PARENT);
    lock = app_resource(body, "below", lock);
    ck_ok(trl_graph_add_lock(body, add(body, "spawns", spawn_two, &lock, 1, 0), lock));
    add(body, "signals", signal_waiter, &waiter, 1, 0);
    ck_ok(trl_graph_add_task(
        body, &(trl_task_desc){.name = "waits", .variant = {{scale}}, .chunks = CHUNKS, .signals = 2}, &waiter));
    ck_ok(trl_graph_freeze(body));
    add(graph, "other", nothing, NULL, 1, 0);
    const trl_call_desc desc = {
        .name = "call", .body = body, .data = &f, .begin = enter, .again = all_spawned, .rounds = 50};
    ck_ok(trl_graph_add_call(graph, &desc, &call));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) {
        f = start(0);
        f.factor = 1;
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(atomic_load(&f.spawned), 100);
    }
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

static _Atomic bool happened;

static trl_err happen(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    atomic_store(&happened, true);
    return TRL_OK;
}

/* Of the graph around the body, in the third round. */
static trl_err signal_outside(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)done;
    return ++f->rounds == 3 ? trl_run_signal_task(args->run, *(trl_task *)data, 1) : TRL_OK;
}

static trl_err until_happened(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    (void)data, (void)args;
    *again = round < 3 || !atomic_load(&happened);
    return TRL_OK;
}

/* A worker that goes round takes what is more urgent in between. The plugin takes the last task first. */
START_TEST(what_is_urgent_has_its_turn_between_rounds)
{
    if (strstr(settings[_i].policy, "lifo")) return;
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = app_graph("body"), *graph = app_graph("outer");
    frame f;
    trl_task call, urgent;
    const int64_t most = trl_workers_count(workers) == 1 ? 100 : INT64_C(1) << 40; /* others may sleep */
    add(body, "signals", signal_outside, &urgent, 1, 0);
    ck_ok(trl_graph_freeze(body));
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = "urgent", .variant = {{happen}}, .chunks = 1, .priority = 1, .signals = 1},
        &urgent));
    const trl_call_desc desc = {
        .name = "call", .body = body, .data = &f, .begin = enter, .again = until_happened, .rounds = most};
    ck_ok(trl_graph_add_call(graph, &desc, &call));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) {
        f = start(0);
        atomic_store(&happened, false);
        ck_ok(trl_graph_run(graph, workers, NULL));
    }
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

static _Atomic int inside; /* the lock's holder: 1 the call, 2 another task */

static trl_err take_lock(void *data, const trl_task_args *args, void **at)
{
    (void)args, (void)at, (void)data;
    return atomic_exchange(&inside, 1) == 0 ? TRL_OK : TRL_ERR_NUMERICS;
}

static trl_err keep_lock(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    (void)data, (void)args;
    *again = round < 30;
    return atomic_exchange(&inside, *again) == 1 ? TRL_OK : TRL_ERR_NUMERICS;
}

static trl_err want_lock(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    if (atomic_exchange(&inside, 2) != 0) return TRL_ERR_NUMERICS;
    atomic_store(&inside, 0);
    return TRL_OK;
}

static trl_err come_later(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return atomic_load(&inside) == 1 ? TRL_ERR_NUMERICS : TRL_OK;
}

/* The call is in phase 0, as those that come before phase 1; its body's tasks have types of phase 1. */
START_TEST(a_call_keeps_its_locks_and_its_phase)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = app_graph("body"), *graph = app_graph("outer");
    trl_task call;
    app_task(body, "typed", nothing, NULL, 15);
    ck_ok(trl_graph_freeze(body));
    ck_ok(trl_graph_add_phase(graph, "first", 0, 10));
    ck_ok(trl_graph_add_phase(graph, "second", 10, 20));
    const trl_resource lock = app_resource(graph, "lock", TRL_NO_PARENT);
    for (int i = 0; i < 20; ++i)
        ck_ok(trl_graph_add_lock(graph, app_task(graph, "wants", want_lock, NULL, i < 10 ? i : 200), lock));
    const trl_call_desc desc = {
        .name = "call", .body = body, .begin = take_lock, .again = keep_lock, .rounds = 30, .type = 3};
    ck_ok(trl_graph_add_call(graph, &desc, &call));
    ck_ok(trl_graph_add_lock(graph, call, lock));
    app_task(graph, "later", come_later, NULL, 12);
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) {
        const trl_err err = trl_graph_run(graph, workers, NULL);
        ck_assert_msg(err == TRL_OK, "%s", test_messages());
    }
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_call_goes_round_between_what_comes_before_and_after_it, 0, SETTINGS);
    tcase_add_loop_test(tc, two_calls_of_one_body_have_frames_of_their_own, 0, SETTINGS);
    tcase_add_loop_test(tc, bodies_have_calls, 0, SETTINGS);
    tcase_add_loop_test(tc, a_round_waits_for_what_its_tasks_spawn_and_signal, 0, SETTINGS);
    tcase_add_loop_test(tc, what_is_urgent_has_its_turn_between_rounds, 0, SETTINGS);
    tcase_add_loop_test(tc, a_call_keeps_its_locks_and_its_phase, 0, SETTINGS);
}

TRL_TEST_MAIN("calls", add_tests)

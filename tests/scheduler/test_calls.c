// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls: tasks that run a graph, once or until a function says that it is enough, in a frame of its own. */
#include "trl_test.h"

#include <stdatomic.h>

#include "app_support.h"
#include "mock_support.h"

enum { CHUNKS = 5, POINTS = 40, RUNS = 20 };

/* What a body works on: halve x until it is small. */
typedef struct frame {
    double x[POINTS], factor, limit, largest;
    struct frame *inner;
    int64_t rounds, begun;
    trl_err result; /* of the task that looks, in round `when` */
    int64_t when;
    _Atomic int spawned;
} frame;

static trl_err scale(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data, (void)done;
    for (int i = args->chunk; i < POINTS; i += args->chunks) f->x[i] *= f->factor;
    return TRL_OK;
}

static trl_err look(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data, (void)done;
    f->largest = 0;
    for (int i = 0; i < POINTS; ++i) f->largest = f->x[i] > f->largest ? f->x[i] : f->largest;
    return f->rounds + 1 == f->when ? f->result : TRL_OK;
}

static trl_task add(trl_graph *graph, const char *name, trl_task_fn run, void *data, int chunks, unsigned flags)
{
    trl_task task;
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = name, .variant = {{run}}, .data = data, .chunks = chunks, .flags = flags},
        &task));
    return task;
}

static trl_graph *halving_body(void)
{
    trl_graph *body = app_graph("halve");
    const trl_handle x = app_handle(body, "x");
    const trl_task scales = add(body, "scale", scale, NULL, CHUNKS, 0), looks = add(body, "look", look, NULL, 1, 0);
    ck_ok(trl_graph_add_access(body, scales, x, TRL_READ_WRITE));
    ck_ok(trl_graph_add_access(body, looks, x, TRL_READ));
    ck_ok(trl_graph_freeze(body));
    return body;
}

/* data: the frame, or NULL: `inner` of the caller's. */
static trl_err enter(void *data, const trl_task_args *args, void **at)
{
    frame *f = data ? data : ((frame *)args->frame)->inner;
    f->rounds = 0;
    ++f->begun;
    *at = f;
    return TRL_OK;
}

static trl_err until_small(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    frame *f = args->frame;
    (void)data;
    ck_assert_int_eq(round, ++f->rounds);
    *again = f->largest > f->limit;
    return TRL_OK;
}

static trl_task add_call(trl_graph *graph, const char *name, trl_graph *body, frame *f, int64_t most)
{
    trl_task task;
    ck_ok(trl_graph_add_call(
        graph,
        &(trl_call_desc){.name = name, .body = body, .data = f, .begin = enter, .again = until_small, .rounds = most},
        &task));
    return task;
}

static frame start(double limit)
{
    frame f = {.factor = 0.5, .limit = limit, .when = -1};
    for (int i = 0; i < POINTS; ++i) f.x[i] = 1 + i;
    return f;
}

/* What a loop would give. */
static void check(const frame *f, double limit)
{
    double factor = 1;
    int64_t rounds = 0;
    for (; rounds == 0 || POINTS * factor > limit; ++rounds) factor *= 0.5;
    ck_assert_int_eq(f->rounds, rounds);
    for (int i = 0; i < POINTS; ++i) ck_assert(f->x[i] == (1 + i) * factor);
}

static trl_err refill(void *data, const trl_task_args *args, bool *done)
{
    frame *f = data, fresh = start(f->limit);
    (void)args, (void)done;
    memcpy(f->x, fresh.x, sizeof f->x);
    return TRL_OK;
}

static trl_err double_all(void *data, const trl_task_args *args, bool *done)
{
    frame *f = data;
    (void)args, (void)done;
    for (int i = 0; i < POINTS; ++i) f->x[i] *= 2;
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

static trl_err three_times(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    (void)data, (void)args;
    *again = round < 3;
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

static trl_err nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_OK;
}

static trl_err count_spawned(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data, (void)done;
    atomic_fetch_add(&f->spawned, 1);
    return TRL_OK;
}

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

/* ---- errors ---- */

START_TEST(an_error_in_a_body_ends_the_call_and_the_run)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = halving_body(), *graph = app_graph("outer");
    frame f = start(1e-6), after = start(0);
    const trl_task call = add_call(graph, "solve", body, &f, 100);
    ck_ok(trl_graph_add_dependency(graph, call, add(graph, "double", double_all, &after, 1, 0)));
    ck_ok(trl_graph_freeze(graph));
    f.result = TRL_ERR_IO;
    f.when = 7;
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_IO, "task 'solve/look' of graph 'outer' failed");
    ck_assert_str_eq(trl_graph_failed_task(graph), "solve/look");
    ck_assert_int_eq(f.rounds, 6);
    ck_assert(after.x[0] == 1);
    f = start(1e-6);
    ck_ok(trl_graph_run(graph, workers, NULL));
    check(&f, 1e-6);
    ck_assert(after.x[0] == 2);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(too_many_rounds_are_an_error)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = halving_body(), *graph = app_graph("outer");
    frame f = start(1e-6);
    add_call(graph, "solve", body, &f, 9);
    ck_ok(trl_graph_freeze(graph));
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_NUMERICS,
             "call 'solve' of graph 'outer' is not over after 9 rounds, the most that it may have");
    ck_assert_int_eq(f.rounds, 9);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

/* A rank that has failed goes on with what communicates until all leave. */
START_TEST(a_call_that_decides_always_goes_on_after_an_error)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = app_graph("body"), *graph = app_graph("outer");
    frame f = start(0);
    trl_task call;
    const trl_task looks = add(body, "look", look, NULL, 1, 0);
    ck_ok(trl_graph_add_dependency(body, looks, add(body, "counts", count_spawned, NULL, 1, TRL_TASK_ALWAYS)));
    ck_ok(trl_graph_freeze(body));
    const trl_call_desc desc = {.name = "call",
                                .body = body,
                                .data = &f,
                                .begin = enter,
                                .again = three_times,
                                .rounds = 3,
                                .flags = TRL_TASK_ALWAYS};
    ck_ok(trl_graph_add_call(graph, &desc, &call));
    ck_ok(trl_graph_freeze(graph));
    f.result = TRL_ERR_IO;
    f.when = 1;
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_IO, "'call/look'");
    ck_assert_int_eq(atomic_load(&f.spawned), 3);
    ck_ok(trl_graph_drain(graph, workers, NULL)); /* in its frame all the same */
    ck_assert_int_eq(atomic_load(&f.spawned), 6);
    ck_assert_int_eq(f.begun, 2);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
}
END_TEST

static trl_err spawn_one(void *data, const trl_task_args *args, void **at)
{
    (void)data, (void)at;
    return trl_run_spawn(args->run, &(trl_spawn_desc){.name = "spawned", .variant = {{nothing}}}, NULL);
}

START_TEST(refuses_what_calls_cannot_be)
{
    trl_workers *workers = make_workers(&settings[0]);
    trl_graph *open = app_graph("open"), *phased = app_graph("phased"), *body = halving_body(),
              *graph = app_graph("outer");
    trl_task task;
    ck_ok(trl_graph_add_phase(phased, "phase", 0, 1));
    ck_ok(trl_graph_freeze(phased));
    const struct {
        trl_call_desc desc;
        const char *message;
    } bad[] = {
        {{.name = "c"}, "call 'c' of graph 'outer' is refused: it needs a name and a body"},
        {{.name = "c", .body = open}, "its body is not frozen; call trl_graph_freeze for it first"},
        {{.name = "c", .body = phased}, "its body has phases"},
        {{.name = "c", .body = body, .again = three_times}, "'rounds' does not say how often at most"},
        {{.name = "c", .body = body, .flags = TRL_TASK_POLL}, "of flags it may have TRL_TASK_ALWAYS alone"},
        {{.name = "c", .body = body, .type = -1}, "its type is not in 0..255"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        ck_fails(trl_graph_add_call(graph, &bad[i].desc, &task), TRL_ERR_USAGE, bad[i].message);
        test_clear();
    }
    ck_ok(trl_graph_add_call(graph, &(trl_call_desc){.name = "c", .body = body, .begin = spawn_one}, &task));
    ck_ok(trl_graph_freeze(graph));
    ck_fails(trl_graph_run(graph, workers, &(frame){.factor = 1}), TRL_ERR_USAGE,
             "task 'spawned' cannot be spawned: the functions of a call spawn nothing");
    test_clear();
    ck_fails(trl_graph_add_call(graph, &(trl_call_desc){.name = "c", .body = body}, &task), TRL_ERR_USAGE, "is frozen");
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_graph_destroy(&phased);
    trl_graph_destroy(&open);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- devices ---- */

static int nowhere(void *data, void *at, int64_t key, int32_t part, int space, trl_memory_box piece[TRL_MEMORY_BOXES])
{
    (void)data, (void)at, (void)key, (void)part, (void)space, (void)piece;
    return 0;
}

/* Without a memory the workers do it, with devices beside them; with one it is refused. */
START_TEST(devices_do_no_calls)
{
    const setting hybrid = {"hybrid", 2};
    trl_workers *workers = make_workers(&hybrid);
    trl_graph *body = halving_body(), *graph = app_graph("outer");
    frame f = start(1e-6);
    open_mocks("2:speed=2");
    ck_ok(trl_workers_set_devices(workers, devices));
    add_call(graph, "call", body, &f, 100);
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, workers, NULL));
    check(&f, 1e-6);
    trl_graph_destroy(&graph);
    ck_ok(trl_graph_set_memory(body, &(trl_graph_memory){.locate = nowhere}));
    graph = app_graph("outer");
    add_call(graph, "call", body, &f, 100);
    ck_ok(trl_graph_freeze(graph));
    static const char message[] = "graph 'outer' cannot run on workers that have devices: its call 'call' goes round "
                                  "within the run, and where tasks of 'halve' are done is decided for whole runs";
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE, message);
    test_clear();
    ck_fails(trl_graph_prepare(graph, workers), TRL_ERR_USAGE, message);
    ck_ok(trl_workers_set_devices(workers, NULL));
    f = start(1e-6);
    ck_ok(trl_graph_run(graph, workers, NULL));
    check(&f, 1e-6);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- pictures ---- */

static char *text_of(const trl_graph *graph, trl_err (*write)(const trl_graph *, FILE *))
{
    static char text[20000];
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    ck_ok(write(graph, out));
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    return text;
}

START_TEST(dumps_show_calls)
{
    trl_graph *body = halving_body(), *graph = app_graph("outer");
    add_call(graph, "call", body, NULL, 100);
    ck_ok(trl_graph_freeze(graph));
    const char *dot = text_of(graph, trl_graph_write_dot);
    ck_assert_ptr_nonnull(strstr(dot, "subgraph cluster0 {"));
    ck_assert_ptr_nonnull(strstr(dot, "label=\"call: halve, at most 100 rounds\";"));
    ck_assert_ptr_nonnull(strstr(dot, "t3 -> t0 [style=dotted, constraint=false];"));
    ck_assert_ptr_nonnull(strstr(dot, "t1 [label=\"call/scale\\n"));
    const char *text = text_of(graph, trl_graph_write_text);
    ck_assert_ptr_nonnull(strstr(text, "call 'call': tasks 1 to 2 of 'halve', at most 100 rounds, each ended by 3\n"));
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
}
END_TEST

START_TEST(traces_show_each_round)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *body = halving_body(), *graph = app_graph("outer");
    frame f = start(1);
    trl_trace *trace;
    int looks = 0;
    char line[400];
    add_call(graph, "call", body, &f, 100);
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_trace_create(test_ctx, trl_workers_count(workers), 1000, &trace));
    ck_ok(trl_workers_set_trace(workers, trace));
    ck_ok(trl_graph_run(graph, workers, NULL));
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    ck_ok(trl_trace_write(trace, out));
    rewind(out);
    while (fgets(line, sizeof line, out)) looks += strstr(line, "\"call/look\"") != NULL;
    fclose(out);
    ck_assert_int_eq(looks, f.rounds);
    ck_assert_int_gt(looks, 1);
    ck_ok(trl_workers_set_trace(workers, NULL));
    trl_trace_destroy(&trace);
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
    tcase_add_loop_test(tc, a_call_keeps_its_locks_and_its_phase, 0, SETTINGS);
    tcase_add_loop_test(tc, an_error_in_a_body_ends_the_call_and_the_run, 0, SETTINGS);
    tcase_add_loop_test(tc, too_many_rounds_are_an_error, 0, SETTINGS);
    tcase_add_loop_test(tc, a_call_that_decides_always_goes_on_after_an_error, 0, SETTINGS);
    tcase_add_test(tc, refuses_what_calls_cannot_be);
    tcase_add_test(tc, devices_do_no_calls);
    tcase_add_test(tc, dumps_show_calls);
    tcase_add_loop_test(tc, traces_show_each_round, 0, SETTINGS);
}

TRL_TEST_MAIN("calls", add_tests)

// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How calls end, well or with an error; which are refused; and how they are shown. */
#include "trl_test.h"

#include "call_body.h"
#include "mock_support.h"

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

/* Without a memory the workers do it, with devices beside them; where only the body has one it is refused. */
START_TEST(devices_do_no_bodies)
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
    static const char message[] = "graph 'outer' cannot run on workers that have devices: devices may have data of "
                                  "'halve', the body of its call 'call', and the graph has no memory";
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE, message);
    test_clear();
    ck_fails(trl_graph_prepare(graph, workers), TRL_ERR_USAGE, message);
    ck_ok(trl_workers_set_devices(workers, NULL));
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    ck_ok(trl_graph_write_placement(graph, workers, out));
    fclose(out);
    f = start(1e-6);
    ck_ok(trl_graph_run(graph, workers, NULL));
    check(&f, 1e-6);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

static trl_handle add_data(trl_graph *graph, int64_t key)
{
    trl_handle handle;
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){"data", 8, key, key}, &handle));
    return handle;
}

/* What a body does with a piece of data, and what its call says; TRL_ADD: nothing. */
static const struct {
    trl_access body, call;
    bool well;
} said[] = {{TRL_READ, TRL_READ, true},        {TRL_READ, TRL_READ_WRITE, true},
            {TRL_READ, TRL_WRITE, false}, /* nothing would be copied to where it is read */
            {TRL_READ, TRL_ADD, false},        {TRL_WRITE, TRL_READ, false},
            {TRL_WRITE, TRL_WRITE, true},      {TRL_READ_WRITE, TRL_READ_WRITE, true},
            {TRL_READ_WRITE, TRL_READ, false}, {TRL_WRITE, TRL_ADD, false}};
enum { SAID = sizeof said / sizeof *said };

static trl_err provide_nothing(void *data, void *at, int64_t key, int space)
{
    (void)data, (void)at, (void)key, (void)space;
    return TRL_OK;
}

static uint32_t *valid_on_host(void *data, void *at, int64_t key)
{
    static uint32_t valid[2];
    (void)data, (void)at;
    valid[key] = 1;
    return &valid[key];
}

START_TEST(calls_say_what_their_bodies_do_with_data)
{
    const setting hybrid = {"hybrid", 2};
    const trl_graph_memory memory = {.provide = provide_nothing, .locate = nowhere, .valid = valid_on_host};
    const trl_task_desc desc = {.name = "touch", .variant = {{nothing}}, .chunks = 1};
    trl_workers *workers = make_workers(&hybrid);
    trl_graph *body = app_graph("body"), *graph = app_graph("outer");
    trl_task task;
    open_mocks("1");
    ck_ok(trl_workers_set_devices(workers, devices));
    ck_ok(trl_graph_add_task(body, &desc, &task));
    ck_ok(trl_graph_add_access(body, task, add_data(body, 1), said[_i].body));
    ck_ok(trl_graph_freeze(body));
    ck_ok(trl_graph_add_call(graph, &(trl_call_desc){.name = "call", .body = body}, &task));
    ck_ok(trl_graph_add_access(graph, task, add_data(graph, 0), TRL_READ_WRITE));
    if (said[_i].call != TRL_ADD) ck_ok(trl_graph_add_access(graph, task, add_data(graph, 1), said[_i].call));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_set_memory(graph, &memory));
    if (said[_i].well)
        ck_ok(trl_graph_run(graph, workers, NULL));
    else
        ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE,
                 "graph 'outer' cannot run on workers that have devices: its call 'call' does not say that the body "
                 "touches 'data', or how; add that access to the call");
    test_clear();
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- calls that may not go on at once ---- */

static const char *same_room(const void *data, const void *other, bool siblings)
{
    (void)siblings;
    return data == other ? "they are in one room" : NULL;
}

/* Whatever they are in: other calls, or the graph. */
START_TEST(calls_that_may_not_go_on_at_once_are_refused_unless_they_are_put_in_order)
{
    char rooms[2];
    trl_graph *body = halving_body();
    for (int i = 0; i < 4; ++i) {
        const bool one = i % 2, ordered = i / 2;
        const trl_call_desc first = {.name = "first", .body = body, .data = &rooms[0], .apart = same_room},
                            second = {.name = "second", .body = body, .data = &rooms[!one], .apart = same_room};
        trl_graph *inner = app_graph("inner"), *graph = app_graph("outer");
        trl_task tasks[2];
        ck_ok(trl_graph_add_call(inner, &first, &tasks[0]));
        ck_ok(trl_graph_freeze(inner));
        ck_ok(trl_graph_add_call(graph, &(trl_call_desc){.name = "around", .body = inner}, &tasks[0]));
        ck_ok(trl_graph_add_call(graph, &second, &tasks[1]));
        if (ordered) ck_ok(trl_graph_add_dependency(graph, tasks[0], tasks[1]));
        if (one && !ordered)
            ck_fails(trl_graph_freeze(graph), TRL_ERR_USAGE,
                     "calls 'second' and 'around/first' of graph 'outer' may not go on at once: they are in one room; "
                     "add a dependency between them");
        else
            ck_ok(trl_graph_freeze(graph));
        test_clear();
        trl_graph_destroy(&graph);
        trl_graph_destroy(&inner);
    }
    trl_graph_destroy(&body);
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
    tcase_add_loop_test(tc, an_error_in_a_body_ends_the_call_and_the_run, 0, SETTINGS);
    tcase_add_loop_test(tc, too_many_rounds_are_an_error, 0, SETTINGS);
    tcase_add_loop_test(tc, a_call_that_decides_always_goes_on_after_an_error, 0, SETTINGS);
    tcase_add_test(tc, refuses_what_calls_cannot_be);
    tcase_add_test(tc, devices_do_no_bodies);
    tcase_add_loop_test(tc, calls_say_what_their_bodies_do_with_data, 0, SAID);
    tcase_add_test(tc, calls_that_may_not_go_on_at_once_are_refused_unless_they_are_put_in_order);
    tcase_add_test(tc, dumps_show_calls);
    tcase_add_loop_test(tc, traces_show_each_round, 0, SETTINGS);
}

TRL_TEST_MAIN("ends of calls", add_tests)

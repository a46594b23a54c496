// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Bodies of calls on devices: what is copied in their rounds, how devices fail in them, and which are left to workers.
 * That they have the bits of a plain loop, however placed, is tested in test_placed_graphs.c. */
#include "trl_test.h"

#include "app_support.h"
#include "mock_support.h"

enum { SPACES = 3, VALUES = 50, SOLVES = 2, RUNS = 4, MOST = 1000 };

/* Data of a solve, and the coefficient of all. */
enum { OLD, NEW, SUM, OF_SOLVE, COEFFICIENT = SOLVES * OF_SOLVE, KEYS };

typedef struct numbers {
    double *at[SPACES][KEYS];
    uint32_t valid[KEYS];
    double sum[SOLVES], result[SOLVES]; /* of the host's tasks */
    int64_t rounds;
} numbers;

/* ---- memory ---- */

static trl_err provide(void *data, void *frame, int64_t key, int space)
{
    numbers *n = frame;
    void *memory;
    (void)data;
    if (space == 0 || n->at[space][key]) return TRL_OK;
    const trl_err err = mock(space - 1)->ops->allocate(mock(space - 1), VALUES * sizeof(double), &memory);
    if (err == TRL_OK) n->at[space][key] = memory;
    return err;
}

static int locate(void *data, void *frame, int64_t key, int32_t part, int space, trl_memory_box piece[TRL_MEMORY_BOXES])
{
    numbers *n = frame;
    (void)data, (void)part;
    piece[0] = (trl_memory_box){.at = n->at[space][key], .row = VALUES * sizeof(double), .rows = 1, .planes = 1};
    return 1;
}

static uint32_t *valid(void *data, void *frame, int64_t key)
{
    (void)data;
    return &((numbers *)frame)->valid[key];
}

static const trl_graph_memory memory = {NULL, provide, locate, valid};

static numbers *new_numbers(void)
{
    numbers *n = app_calloc(1, sizeof *n);
    for (int k = 0; k < KEYS; ++k) {
        n->at[0][k] = app_calloc(VALUES, sizeof(double));
        n->valid[k] = 1;
    }
    return n;
}

static void free_numbers(numbers *n)
{
    for (int s = 1; s < SPACES; ++s)
        for (int k = 0; k < KEYS; ++k)
            if (n->at[s][k]) mock(s - 1)->ops->release(mock(s - 1), n->at[s][k]);
    for (int k = 0; k < KEYS; ++k) free(n->at[0][k]);
    free(n);
}

/* ---- tasks; data: the number of a solve ---- */

static int numbered[SOLVES] = {0, 1};

static double *of_solve(const numbers *n, const void *data, int which, int space)
{
    return n->at[space][*(const int *)data * OF_SOLVE + which];
}

static trl_err make(void *data, const trl_task_args *args, bool *done)
{
    numbers *n = args->frame;
    (void)data, (void)done;
    for (int i = 0; i < VALUES; ++i) {
        n->at[0][COEFFICIENT][i] = 1 - 0.01 * i;
        for (int k = 0; k < SOLVES; ++k) of_solve(n, &k, OLD, 0)[i] = 1 + k + i;
    }
    return TRL_OK;
}

static trl_err step(void *data, const trl_task_args *args, bool *done)
{
    const numbers *n = args->frame;
    const double *old = of_solve(n, data, OLD, args->space), *c = n->at[args->space][COEFFICIENT];
    double *next = of_solve(n, data, NEW, args->space);
    (void)done;
    for (int i = 0; i < VALUES; ++i) next[i] = c[i] * old[i];
    return TRL_OK;
}

static trl_err add_up(void *data, const trl_task_args *args, bool *done)
{
    const numbers *n = args->frame;
    double *sum = of_solve(n, data, SUM, args->space);
    (void)done;
    sum[0] = 0;
    for (int i = 0; i < VALUES; ++i) sum[0] += of_solve(n, data, NEW, args->space)[i];
    return TRL_OK;
}

static trl_err look(void *data, const trl_task_args *args, bool *done)
{
    numbers *n = args->frame;
    (void)done;
    n->sum[*(const int *)data] = of_solve(n, data, SUM, 0)[0];
    return TRL_OK;
}

static trl_err read_result(void *data, const trl_task_args *args, bool *done)
{
    numbers *n = args->frame;
    (void)done;
    n->result[*(const int *)data] = of_solve(n, data, OLD, 0)[7];
    return TRL_OK;
}

/* After a round: what is new is the old of the next one. */
static trl_err exchange(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    numbers *n = args->frame;
    const int a = *(const int *)data * OF_SOLVE + OLD, b = a - OLD + NEW;
    const uint32_t was = n->valid[a];
    n->valid[a] = n->valid[b];
    n->valid[b] = was;
    for (int s = 0; s < SPACES; ++s) {
        double *at = n->at[s][a];
        n->at[s][a] = n->at[s][b];
        n->at[s][b] = at;
    }
    *again = round < n->rounds;
    return TRL_OK;
}

static trl_err stay(void *data, const trl_task_args *args, void **frame)
{
    (void)data, (void)args, (void)frame;
    return TRL_OK;
}

static trl_err leave(void *data, const trl_task_args *args, void **frame)
{
    static numbers other;
    (void)data, (void)args;
    *frame = &other;
    return TRL_OK;
}

/* ---- graphs ---- */

static void access_data(trl_graph *graph, trl_task task, trl_handle *handle, int64_t key, trl_access access)
{
    const trl_handle_desc desc = {"data", VALUES * sizeof(double), key, key};
    if (handle[key] < 0) ck_ok(trl_graph_add_handle(graph, &desc, &handle[key]));
    ck_ok(trl_graph_add_access(graph, task, handle[key], access));
}

static trl_task add_task(trl_graph *graph, const char *name, trl_task_fn run, int *solve, bool on_mocks)
{
    const trl_task_desc desc = {.name = name,
                                .variant = {[TRL_KIND_CPU] = {run}, [TRL_KIND_MOCK] = {on_mocks ? run : NULL}},
                                .data = solve,
                                .chunks = 1};
    trl_task task;
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    return task;
}

static trl_graph *make_body(int *solve)
{
    trl_graph *body = app_graph("body");
    trl_handle handle[KEYS];
    const int64_t first = (int64_t)*solve * OF_SOLVE;
    for (int k = 0; k < KEYS; ++k) handle[k] = -1;
    trl_task task = add_task(body, "step", step, solve, true);
    access_data(body, task, handle, COEFFICIENT, TRL_READ);
    access_data(body, task, handle, first + OLD, TRL_READ);
    access_data(body, task, handle, first + NEW, TRL_WRITE);
    task = add_task(body, "add up", add_up, solve, true);
    access_data(body, task, handle, first + NEW, TRL_READ);
    access_data(body, task, handle, first + SUM, TRL_WRITE);
    task = add_task(body, "look", look, solve, false);
    access_data(body, task, handle, first + SUM, TRL_READ);
    ck_ok(trl_graph_freeze(body));
    ck_ok(trl_graph_set_memory(body, &memory));
    return body;
}

typedef struct solves {
    trl_graph *graph, *body[SOLVES];
    numbers *n;
    trl_workers *workers;
} solves;

/* Solves beside each other, in calls as a description says, with the same coefficient. */
static solves make_solves(const char *mocks, const char *placement, int threads, const trl_call_desc *how)
{
    solves s = {.graph = app_graph("solves"), .n = new_numbers()};
    trl_handle handle[KEYS];
    trl_task task = add_task(s.graph, "make", make, NULL, false);
    for (int k = 0; k < KEYS; ++k) handle[k] = -1;
    access_data(s.graph, task, handle, COEFFICIENT, TRL_WRITE);
    for (int k = 0; k < SOLVES; ++k) access_data(s.graph, task, handle, k * OF_SOLVE + OLD, TRL_WRITE);
    for (int k = 0; k < SOLVES; ++k) {
        trl_call_desc call = *how;
        call.name = "solve";
        call.body = s.body[k] = make_body(&numbered[k]);
        call.data = &numbered[k];
        ck_ok(trl_graph_add_call(s.graph, &call, &task));
        access_data(s.graph, task, handle, k * OF_SOLVE + OLD, TRL_READ_WRITE);
        access_data(s.graph, task, handle, k * OF_SOLVE + NEW, TRL_READ_WRITE);
        access_data(s.graph, task, handle, k * OF_SOLVE + SUM, TRL_WRITE);
        access_data(s.graph, task, handle, COEFFICIENT, TRL_READ);
        task = add_task(s.graph, "read", read_result, &numbered[k], false);
        access_data(s.graph, task, handle, k * OF_SOLVE + OLD, TRL_READ);
    }
    ck_ok(trl_graph_freeze(s.graph));
    ck_ok(trl_graph_set_memory(s.graph, &memory));
    open_mocks(mocks);
    s.workers = make_workers(&(setting){"hybrid", threads});
    ck_ok(trl_workers_set_devices(s.workers, devices));
    ck_ok(trl_workers_set_placement(s.workers, placement));
    return s;
}

static void free_solves(solves *s)
{
    trl_workers_destroy(&s->workers);
    trl_graph_destroy(&s->graph);
    for (int k = 0; k < SOLVES; ++k) trl_graph_destroy(&s->body[k]);
    free_numbers(s->n);
    close_mocks();
}

static void check_results(const numbers *n)
{
    for (int k = 0; k < SOLVES; ++k) {
        double value[VALUES], sum = 0;
        for (int i = 0; i < VALUES; ++i) value[i] = 1 + k + i;
        for (int64_t r = 0; r < n->rounds; ++r)
            for (int i = 0; i < VALUES; ++i) value[i] = (1 - 0.01 * i) * value[i];
        for (int i = 0; i < VALUES; ++i) sum += value[i];
        ck_assert_double_eq(n->result[k], value[7]);
        ck_assert_double_eq(n->sum[k], sum);
    }
}

static const trl_call_desc in_rounds = {.again = exchange, .rounds = MOST}, once = {.begin = stay},
                           once_here = {.begin = stay, .in_frame = true},
                           elsewhere = {.begin = leave, .in_frame = true};

/* ---- copies ---- */

/* The coefficient goes to the device once, for both; the old values once for each solve; from it the sums of each
 * round, and what is read in the end. */
START_TEST(values_of_a_body_stay_on_a_device_and_what_is_only_read_is_brought_once)
{
    solves s = make_solves("1", "devices", 1 + _i, &in_rounds);
    trl_placement_stats stats;
    int64_t rounds = 0;
    for (int run = 0; run < RUNS; ++run) {
        rounds += s.n->rounds = 1 + 5 * run;
        ck_ok(trl_graph_run(s.graph, s.workers, s.n));
        check_results(s.n);
    }
    trl_graph_get_placement(s.graph, &stats);
    ck_assert_int_eq(stats.tasks[1], 2 * SOLVES);
    ck_assert_int_eq(stats.done[1], 2 * SOLVES * RUNS);
    ck_assert_int_eq(stats.copies[TRL_WAY_IN], (1 + SOLVES) * RUNS);
    ck_assert_int_eq(stats.copies[TRL_WAY_OUT], SOLVES * (rounds + RUNS));
    free_solves(&s);
}
END_TEST

START_TEST(bodies_may_be_on_several_devices)
{
    static const char *const rules[] = {"random:3", "devices", "auto"};
    solves s = make_solves("2", rules[_i], 2, &in_rounds);
    trl_placement_stats stats;
    for (int run = 0; run < 6 * RUNS; ++run) {
        s.n->rounds = 1 + run % 5;
        ck_ok(trl_graph_run(s.graph, s.workers, s.n));
        check_results(s.n);
    }
    trl_graph_get_placement(s.graph, &stats);
    ck_assert_int_gt(stats.done[1] + stats.done[2], 2 * RUNS);
    free_solves(&s);
}
END_TEST

/* ---- errors ---- */

/* The run ends with the device's error; the next one is made by the other device. */
START_TEST(a_device_that_fails_in_a_body_ends_the_call_and_the_run)
{
    static const char *const faults[] = {"1:fail=call@9;1", "1:fail=lost@90;1", "1:fail=copy@60;1"};
    solves s = make_solves(faults[_i], "random:5", 2, &in_rounds);
    trl_err err = TRL_OK;
    s.n->rounds = 4;
    for (int run = 0; run < 6 * RUNS && err == TRL_OK; ++run) {
        err = trl_graph_run(s.graph, s.workers, s.n);
        if (err == TRL_OK) check_results(s.n);
    }
    ck_assert_int_eq(err, TRL_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(test_messages(), "mock device 0"));
    ck_assert_int_eq(strncmp(trl_graph_failed_task(s.graph), "solve/", 6), 0);
    test_clear();
    for (int run = 0; run < RUNS; ++run) {
        ck_ok(trl_graph_run(s.graph, s.workers, s.n));
        check_results(s.n);
    }
    free_solves(&s);
}
END_TEST

START_TEST(a_body_in_another_frame_than_its_call_says_is_refused)
{
    solves s = make_solves("1", "devices", 1, &elsewhere);
    ck_fails(trl_graph_run(s.graph, s.workers, s.n), TRL_ERR_USAGE,
             "call 'solve' of graph 'solves' says by 'in_frame' that its body runs in the frame of the graph, and its "
             "function 'begin' sets another one; leave the frame as it is, or take 'in_frame' away");
    test_clear();
    free_solves(&s);
}
END_TEST

/* ---- what workers do ---- */

/* Whether a function sets another frame is not known before it is called. */
START_TEST(workers_do_bodies_that_may_be_in_other_frames)
{
    for (int here = 0; here < 2; ++here) {
        solves s = make_solves("1", "devices", 1, here ? &once_here : &once);
        trl_placement_stats stats;
        ck_ok(trl_graph_run(s.graph, s.workers, s.n));
        trl_graph_get_placement(s.graph, &stats);
        ck_assert_int_eq(stats.tasks[1], here ? 2 * SOLVES : 0);
        ck_assert_int_eq(stats.copies[TRL_WAY_IN], here ? 1 + SOLVES : 0);
        free_solves(&s);
    }
}
END_TEST

/* A call in a body that devices may do says what its own body touches, too. */
START_TEST(calls_in_bodies_that_devices_do_say_what_they_touch)
{
    trl_graph *inner = make_body(&numbered[0]), *body = app_graph("middle"), *graph = app_graph("outer");
    trl_workers *workers = make_workers(&(setting){"hybrid", 1});
    trl_handle handle[KEYS];
    trl_task task;
    for (int k = 0; k < KEYS; ++k) handle[k] = -1;
    open_mocks("1");
    ck_ok(trl_workers_set_devices(workers, devices));
    ck_ok(trl_graph_add_call(body, &(trl_call_desc){.name = "inner", .body = inner}, &task));
    ck_ok(trl_graph_freeze(body));
    ck_ok(trl_graph_set_memory(body, &memory));
    ck_ok(trl_graph_add_call(graph, &(trl_call_desc){.name = "call", .body = body}, &task));
    for (int k = OLD; k < OF_SOLVE; ++k) access_data(graph, task, handle, k, TRL_READ_WRITE);
    access_data(graph, task, handle, COEFFICIENT, TRL_READ);
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_set_memory(graph, &memory));
    ck_fails(trl_graph_prepare(graph, workers), TRL_ERR_USAGE,
             "graph 'middle' cannot run on workers that have devices: its call 'inner' does not say that the body "
             "touches 'data', or how; add that access to the call");
    test_clear();
    trl_graph_destroy(&graph);
    trl_graph_destroy(&body);
    trl_graph_destroy(&inner);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, values_of_a_body_stay_on_a_device_and_what_is_only_read_is_brought_once, 0, 2);
    tcase_add_loop_test(tc, bodies_may_be_on_several_devices, 0, 3);
    tcase_add_loop_test(tc, a_device_that_fails_in_a_body_ends_the_call_and_the_run, 0, 3);
    tcase_add_test(tc, a_body_in_another_frame_than_its_call_says_is_refused);
    tcase_add_test(tc, workers_do_bodies_that_may_be_in_other_frames);
    tcase_add_test(tc, calls_in_bodies_that_devices_do_say_what_they_touch);
}

TRL_TEST_MAIN("call devices", add_tests)

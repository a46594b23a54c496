// ctest: np=1 timeout=60
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Workers: pinning, sleeping and waking, sharing wide tasks, pools, and what they refuse. */
#include "trl_test.h"

#include "policy_settings.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

START_TEST(the_calling_thread_gets_its_binding_back)
{
    cpu_set_t before, after;
    trl_workers *workers, *later;
    sched_getaffinity(0, sizeof before, &before);
    ck_ok(trl_context_set_threads(test_ctx, 0));
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    sched_getaffinity(0, sizeof after, &after);
    ck_assert_int_le(CPU_COUNT(&after), CPU_COUNT(&before));
    trl_workers_destroy(&workers);
    sched_getaffinity(0, sizeof after, &after);
    ck_assert(CPU_EQUAL(&before, &after));
    /* Those that came first may go first. */
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    ck_ok(trl_workers_create(test_ctx, "priority", &later));
    trl_workers_destroy(&workers);
    trl_workers_destroy(&later);
    sched_getaffinity(0, sizeof after, &after);
    ck_assert(CPU_EQUAL(&before, &after));
}
END_TEST

/* Waits inside a chunk until another chunk is running: possible only when two workers share the task. */
static trl_err wait_for_other_chunk(void *data, const trl_task_args *args, bool *done)
{
    _Atomic int *running = data;
    (void)done;
    if (args->chunk > 1) return TRL_OK;
    atomic_fetch_add(running, 1);
    while (atomic_load(running) < 2) sched_yield();
    return TRL_OK;
}

START_TEST(chunks_of_a_wide_task_run_at_once)
{
    const setting two = {"priority", 2};
    trl_workers *workers = make_workers(&two);
    trl_graph *graph;
    trl_task task;
    _Atomic int running = 0;
    ck_ok(trl_graph_create(test_ctx, "wide", &graph));
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = "wide", .variant = {{wait_for_other_chunk}}, .data = &running, .chunks = 10},
        &task));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 20; ++run) {
        atomic_store(&running, 0);
        ck_ok(trl_graph_run(graph, workers, NULL));
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* What the calls of a wide task covered. */
typedef struct coverage {
    _Atomic int calls, parts; /* parts: in twelfths */
    _Atomic bool polled;
} coverage;

static trl_err cover(void *data, const trl_task_args *args, bool *done)
{
    coverage *c = data;
    (void)done;
    if (args->chunk < 0 || args->chunk >= args->chunks) return TRL_ERR_BUG;
    atomic_fetch_add(&c->calls, 1);
    atomic_fetch_add(&c->parts, 12 / args->chunks);
    return TRL_OK;
}

START_TEST(a_worker_alone_calls_a_wide_task_that_allows_it_once_for_all_chunks)
{
    trl_workers *workers = make_workers(&settings[_i]);
    for (unsigned flags = 0; flags <= TRL_TASK_WHOLE; flags += TRL_TASK_WHOLE) {
        coverage c = {0};
        trl_graph *graph;
        trl_task task;
        const trl_task_desc desc = {.name = "wide", .variant = {{cover}}, .data = &c, .chunks = 6, .flags = flags};
        ck_ok(trl_graph_create(test_ctx, "whole", &graph));
        ck_ok(trl_graph_add_task(graph, &desc, &task));
        ck_ok(trl_graph_freeze(graph));
        ck_ok(trl_graph_run(graph, workers, NULL));
        const bool alone = flags && trl_workers_count(workers) == 1;
        ck_assert_int_eq(atomic_load(&c.calls), alone ? 1 : 6);
        ck_assert_int_eq(atomic_load(&c.parts), 12);
        trl_graph_destroy(&graph);
    }
    trl_workers_destroy(&workers);
}
END_TEST

/* Waits until five of six chunks of a task beside it are computed. */
static trl_err await_chunks(void *data, const trl_task_args *args, bool *done)
{
    coverage *c = data;
    (void)args;
    atomic_store(&c->polled, true);
    *done = atomic_load(&c->calls) >= 5 || atomic_load(&c->parts) == 12;
    return TRL_OK;
}

/* Not the whole task once a poll task waits. Chunks take longer than polls wait for one another. */
static trl_err cover_slowly(void *data, const trl_task_args *args, bool *done)
{
    static const struct timespec nap = {.tv_nsec = 200000};
    const coverage *c = data;
    if (args->chunks == 1 && atomic_load(&c->polled)) return TRL_ERR_BUG;
    nanosleep(&nap, NULL);
    return cover(data, args, done);
}

START_TEST(a_worker_alone_looks_after_messages_between_the_chunks_of_a_task)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    trl_task task, after;
    coverage c = {0}, last = {0};
    const trl_task_desc poll = {
        .name = "message", .variant = {{await_chunks}}, .data = &c, .chunks = 1, .flags = TRL_TASK_POLL};
    const trl_task_desc wide = {
        .name = "wide", .variant = {{cover_slowly}}, .data = &c, .chunks = 6, .flags = TRL_TASK_WHOLE};
    const trl_task_desc whole = {
        .name = "after", .variant = {{cover}}, .data = &last, .chunks = 6, .flags = TRL_TASK_WHOLE};
    ck_ok(trl_graph_create(test_ctx, "messages", &graph));
    ck_ok(trl_graph_add_task(graph, &poll, &task));
    ck_ok(trl_graph_add_task(graph, &wide, &after));
    ck_ok(trl_graph_add_task(graph, &whole, &after));
    ck_ok(trl_graph_add_dependency(graph, task, after));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_eq(atomic_load(&c.parts), 12);
    if (strcmp(settings[_i].policy, "priority") == 0) ck_assert_int_eq(atomic_load(&c.calls), 6);
    ck_assert_int_eq(atomic_load(&last.parts), 12);
    ck_assert_int_eq(atomic_load(&last.calls), trl_workers_count(workers) == 1 ? 1 : 6);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(sleeping_workers_wake_for_the_next_run)
{
    const setting four = {"priority", 4};
    struct timespec nap = {.tv_nsec = 3000000};
    trl_workers *workers = make_workers(&four);
    trl_graph *graph;
    trl_task task;
    _Atomic int running = 0;
    ck_ok(trl_graph_create(test_ctx, "wide", &graph));
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = "wide", .variant = {{wait_for_other_chunk}}, .data = &running, .chunks = 2},
        &task));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 5; ++run) {
        nanosleep(&nap, NULL);
        atomic_store(&running, 0);
        ck_ok(trl_graph_run(graph, workers, NULL));
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static trl_err take_a_nap(void *data, const trl_task_args *args, bool *done)
{
    struct timespec nap = {.tv_nsec = 5000000};
    (void)data;
    (void)args;
    (void)done;
    nanosleep(&nap, NULL);
    return TRL_OK;
}

/* Waits until four calls are under way. */
static trl_err wait_for_four(void *data, const trl_task_args *args, bool *done)
{
    _Atomic int *running = data;
    (void)args;
    (void)done;
    atomic_fetch_add(running, 1);
    while (atomic_load(running) < 4) sched_yield();
    return TRL_OK;
}

/* While the first task naps the other workers fall asleep; then all are needed, for four tasks or for four chunks. */
START_TEST(workers_that_fell_asleep_during_a_run_wake_for_new_work)
{
    const setting four = {"priority", 4};
    trl_workers *workers = make_workers(&four);
    trl_graph *graph;
    trl_task first, task;
    _Atomic int running = 0;
    int tasks = _i == 0 ? 4 : 1;
    ck_ok(trl_graph_create(test_ctx, "asleep", &graph));
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "nap", .variant = {{take_a_nap}}, .chunks = 1}, &first));
    for (int i = 0; i < tasks; ++i) {
        trl_task_desc desc = {.name = "meet", .variant = {{wait_for_four}}, .data = &running, .chunks = 4 / tasks};
        ck_ok(trl_graph_add_task(graph, &desc, &task));
        ck_ok(trl_graph_add_dependency(graph, first, task));
    }
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 5; ++run) {
        atomic_store(&running, 0);
        ck_ok(trl_graph_run(graph, workers, NULL));
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(refuses_an_unknown_policy_and_lists_the_known)
{
    trl_workers *workers;
    ck_fails(trl_workers_create(test_ctx, "fast", &workers), TRL_ERR_INPUT,
             "unknown scheduler 'fast'; known are: serial priority hybrid");
    ck_assert_ptr_null(workers);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(refuses_to_run_or_prepare_a_graph_that_is_not_frozen_or_not_its_own)
{
    const setting one = {"serial", 1};
    trl_workers *workers = make_workers(&one);
    trl_context *other;
    trl_graph *graph;
    const char *text = "graph 'loose' is not frozen; call trl_graph_freeze first";
    ck_ok(trl_graph_create(test_ctx, "loose", &graph));
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE, text);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_graph_prepare(graph, workers), TRL_ERR_USAGE, text);
    trl_graph_destroy(&graph);
    text = "graph 'foreign' and the workers belong to different contexts";
    ck_ok(trl_context_create(MPI_COMM_WORLD, NULL, &other));
    ck_ok(trl_graph_create(other, "foreign", &graph));
    ck_ok(trl_graph_freeze(graph));
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE, text);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_graph_prepare(graph, workers), TRL_ERR_USAGE, text);
    trl_graph_destroy(&graph);
    trl_context_destroy(&other);
    trl_workers_destroy(&workers);
}
END_TEST

typedef struct nested {
    trl_graph *graph;
    trl_workers *workers;
} nested;

static trl_err run_inside(void *data, const trl_task_args *args, bool *done)
{
    nested *n = data;
    (void)args;
    (void)done;
    return trl_graph_run(n->graph, n->workers, NULL);
}

START_TEST(refuses_to_run_a_graph_inside_its_own_run)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    trl_task task;
    nested n = {.workers = workers};
    ck_ok(trl_graph_create(test_ctx, "nested", &graph));
    n.graph = graph;
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "t", .variant = {{run_inside}}, .data = &n, .chunks = 1},
                             &task));
    ck_ok(trl_graph_freeze(graph));
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE,
             "graph 'nested' cannot run inside a task: spawn tasks instead");
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* A task that runs from the call of one thread until another thread lets it go. */
typedef struct hold {
    trl_graph *graph;
    trl_workers *workers;
    _Atomic bool started, release;
    _Atomic int *refused; /* how many runs were, or NULL; one lets all go */
    trl_err result;
    pthread_t thread;
} hold;

static trl_err poll_until_released(void *data, const trl_task_args *args, bool *done)
{
    hold *h = data;
    (void)args;
    atomic_store(&h->started, true);
    *done = h->refused ? atomic_load(h->refused) > 0 : atomic_load(&h->release);
    return TRL_OK;
}

static void *run_held(void *data)
{
    hold *h = data;
    h->result = trl_graph_run(h->graph, h->workers, NULL);
    if (h->refused && h->result != TRL_OK) atomic_fetch_add(h->refused, 1);
    return NULL;
}

static void make_hold(hold *h, const char *name, trl_workers *workers)
{
    trl_task task;
    h->workers = workers;
    ck_ok(trl_graph_create(test_ctx, name, &h->graph));
    ck_ok(trl_graph_add_task(
        h->graph,
        &(trl_task_desc){
            .name = "held", .variant = {{poll_until_released}}, .data = h, .chunks = 1, .flags = TRL_TASK_POLL},
        &task));
    ck_ok(trl_graph_freeze(h->graph));
}

START_TEST(refuses_a_graph_that_runs_already_on_another_thread)
{
    trl_workers *workers = make_workers(&settings[_i]);
    hold h = {.started = false};
    make_hold(&h, "held", workers);
    ck_assert_int_eq(pthread_create(&h.thread, NULL, run_held, &h), 0);
    while (!atomic_load(&h.started)) sched_yield();
    trl_err run = trl_graph_run(h.graph, workers, NULL), prepare = trl_graph_prepare(h.graph, workers),
            pools = trl_workers_set_pools(workers, 0, 0);
    atomic_store(&h.release, true);
    pthread_join(h.thread, NULL);
    ck_ok(h.result);
    ck_fails(run, TRL_ERR_USAGE, "graph 'held' cannot run: it is running");
    ck_assert_int_eq(prepare, TRL_ERR_USAGE);
    ck_fails(pools, TRL_ERR_USAGE, "the workers cannot change: they are running a graph");
    ck_ok(trl_graph_run(h.graph, workers, NULL));
    ck_ok(trl_workers_set_pools(workers, 0, 0));
    trl_graph_destroy(&h.graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* Sixteen wait until the seventeenth is refused, whichever that is. */
START_TEST(refuses_more_than_sixteen_runs_at_once)
{
    enum { RUNS = 17 };
    trl_workers *workers = make_workers(&settings[_i]);
    _Atomic int refused = 0;
    hold h[RUNS];
    int failed = 0;
    for (int i = 0; i < RUNS; ++i) {
        h[i] = (hold){.refused = &refused};
        make_hold(&h[i], "held", workers);
    }
    for (int i = 0; i < RUNS; ++i) ck_assert_int_eq(pthread_create(&h[i].thread, NULL, run_held, &h[i]), 0);
    for (int i = 0; i < RUNS; ++i) pthread_join(h[i].thread, NULL);
    for (int i = 0; i < RUNS; ++i) failed += h[i].result != TRL_OK;
    ck_assert_int_eq(failed, 1);
    ck_assert_ptr_nonnull(strstr(test_messages(), "graph 'held' cannot run: the workers are at 16 other jobs"));
    for (int i = 0; i < RUNS; ++i) {
        ck_ok(trl_graph_run(h[i].graph, workers, NULL)); /* the refused one, too */
        trl_graph_destroy(&h[i].graph);
    }
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- pools ---- */

static trl_err count_chunk(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    (void)done;
    atomic_fetch_add((_Atomic int *)data, 1);
    return TRL_OK;
}

static void check_pools(const trl_workers *workers, int tasks, int operators)
{
    int t, o;
    trl_workers_get_pools(workers, &t, &o);
    ck_assert_int_eq(t, tasks);
    ck_assert_int_eq(o, operators);
}

START_TEST(refuses_pools_that_are_not_its_workers)
{
    static const int bad[][2] = {{4, 0}, {0, 2}, {1, 1}, {-1, 4}, {4, -1}, {INT_MAX, INT_MAX}};
    const setting three = {"priority", 3};
    trl_workers *workers = make_workers(&three);
    ck_ok(trl_workers_set_pools(workers, 1, 2));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char text[128];
        snprintf(text, sizeof text, "%d task and %d operator workers are not 3 workers", bad[i][0], bad[i][1]);
        trl_context_clear_diagnostics(test_ctx);
        ck_fails(trl_workers_set_pools(workers, bad[i][0], bad[i][1]), TRL_ERR_USAGE, text);
        check_pools(workers, 1, 2);
    }
    trl_workers_destroy(&workers);
}
END_TEST

/* Pools are preferences: with any split all work is done, also what nobody prefers. */
START_TEST(pools_that_were_set_stay_and_others_adapt)
{
    enum { CHAINS = 40, CHUNKS = 7, RUNS = 10 };
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    trl_task wide, narrow;
    _Atomic int calls = 0;
    int count = trl_workers_count(workers), expected = 0, t, o;
    ck_ok(trl_graph_create(test_ctx, "pools", &graph));
    for (int i = 0; i < CHAINS; ++i) {
        trl_task_desc desc = {.name = "t", .variant = {{count_chunk}}, .data = &calls, .chunks = 1};
        ck_ok(trl_graph_add_task(graph, &desc, &narrow));
        desc.chunks = CHUNKS;
        ck_ok(trl_graph_add_task(graph, &desc, &wide));
        ck_ok(trl_graph_add_dependency(graph, narrow, wide));
    }
    ck_ok(trl_graph_freeze(graph));
    for (int tasks = 0; tasks <= count; ++tasks) {
        ck_ok(trl_workers_set_pools(workers, tasks, count - tasks));
        for (int run = 0; run < RUNS; ++run) {
            ck_ok(trl_graph_run(graph, workers, NULL));
            ck_assert_int_eq(atomic_load(&calls), expected += CHAINS * (1 + CHUNKS));
            check_pools(workers, tasks, count - tasks);
        }
    }
    ck_ok(trl_workers_set_pools(workers, 0, 0));
    for (int run = 0; run < RUNS; ++run) {
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(atomic_load(&calls), expected += CHAINS * (1 + CHUNKS));
        trl_workers_get_pools(workers, &t, &o);
        ck_assert_int_eq(t + o, count);
        ck_assert_int_ge(t, 1);
        ck_assert_int_ge(o, 0);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(refuses_new_thread_counts_while_workers_exist)
{
    trl_workers *workers = make_workers(&settings[_i]);
    ck_fails(trl_context_set_threads(test_ctx, 1), TRL_ERR_USAGE,
             "the number of threads cannot change while workers exist");
    trl_workers_destroy(&workers);
    ck_ok(trl_context_set_threads(test_ctx, 1));
}
END_TEST

START_TEST(reports_threads_that_cannot_start)
{
    pthread_attr_t normal, huge;
    trl_workers *workers;
    ck_ok(trl_context_set_threads(test_ctx, 3));
    ck_assert_int_eq(pthread_getattr_default_np(&normal), 0);
    ck_assert_int_eq(pthread_attr_init(&huge), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&huge, (size_t)1 << 46), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&huge), 0);
    trl_err err = trl_workers_create(test_ctx, "priority", &workers);
    ck_assert_int_eq(pthread_setattr_default_np(&normal), 0);
    ck_fails(err, TRL_ERR_MEMORY, "cannot start thread 2 of 3: ");
    ck_assert_ptr_null(workers);
    pthread_attr_destroy(&normal);
    pthread_attr_destroy(&huge);
    ck_ok(trl_context_set_threads(test_ctx, 1)); /* no workers are left behind */
}
END_TEST

static void add_tests(TCase *tc)
{
    /* First: a binding that stays would hide behind another. */
    tcase_add_test(tc, the_calling_thread_gets_its_binding_back);
    tcase_add_test(tc, chunks_of_a_wide_task_run_at_once);
    tcase_add_loop_test(tc, a_worker_alone_calls_a_wide_task_that_allows_it_once_for_all_chunks, 0, SETTINGS);
    tcase_add_loop_test(tc, a_worker_alone_looks_after_messages_between_the_chunks_of_a_task, 0, SETTINGS);
    tcase_add_test(tc, sleeping_workers_wake_for_the_next_run);
    tcase_add_loop_test(tc, workers_that_fell_asleep_during_a_run_wake_for_new_work, 0, 2);
    tcase_add_test(tc, refuses_an_unknown_policy_and_lists_the_known);
    tcase_add_test(tc, refuses_to_run_or_prepare_a_graph_that_is_not_frozen_or_not_its_own);
    tcase_add_loop_test(tc, refuses_to_run_a_graph_inside_its_own_run, 0, SETTINGS);
    tcase_add_loop_test(tc, refuses_a_graph_that_runs_already_on_another_thread, 0, SETTINGS);
    tcase_add_loop_test(tc, refuses_more_than_sixteen_runs_at_once, 0, SETTINGS);
    tcase_add_test(tc, refuses_pools_that_are_not_its_workers);
    tcase_add_loop_test(tc, pools_that_were_set_stay_and_others_adapt, 0, SETTINGS);
    tcase_add_loop_test(tc, refuses_new_thread_counts_while_workers_exist, 0, SETTINGS);
    tcase_add_test(tc, reports_threads_that_cannot_start);
}

TRL_TEST_MAIN("workers", add_tests)

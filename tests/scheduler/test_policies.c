// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* One suite for all policies and numbers of threads: each task exactly once, every dependency respected, wide and poll
 * tasks, failure and running again. */
#include "trl_test.h"

#include "policy_settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Random graphs. A task checks with plain loads that its predecessors are complete: the policy alone orders them, so
 * that ThreadSanitizer sees every edge that is not respected. */
enum { PREDECESSORS = 4, WIDEST = 5 };

typedef struct node {
    struct dag *dag;
    int index;
    int predecessor[PREDECESSORS], predecessors;
    int chunks;
    bool poll;
    int chunk_calls[WIDEST]; /* how often each chunk was called in this run */
    int polls_left, result;
} node;

typedef struct dag {
    node *nodes;
    int count, workers;
    int fail_at; /* the node that fails in this run, or -1 */
    _Atomic int wrong;
} dag;

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* What is wrong with a call: its arguments, and chunks of predecessors that were not called exactly once. */
static int check_node(const node *n, const trl_task_args *args)
{
    int wrong = args->chunks != n->chunks || args->chunk < 0 || args->chunk >= n->chunks;
    wrong += args->worker < 0 || args->worker >= n->dag->workers;
    for (int i = 0; i < n->predecessors; ++i) {
        const node *before = &n->dag->nodes[n->predecessor[i]];
        for (int c = 0; c < before->chunks; ++c) wrong += before->chunk_calls[c] != 1;
    }
    return wrong;
}

static trl_err run_node(void *data, const trl_task_args *args, bool *done)
{
    node *n = data;
    int wrong = check_node(n, args);
    if (n->poll && n->polls_left-- > 0) {
        *done = false;
    } else {
        ++n->chunk_calls[args->chunk];
    }
    if (wrong) atomic_fetch_add(&n->dag->wrong, wrong);
    return n->index == n->dag->fail_at ? TRL_ERR_NUMERICS : TRL_OK;
}

static void make_dag(dag *d, trl_graph *graph, int count, unsigned seed)
{
    d->count = count;
    d->nodes = calloc((size_t)count, sizeof *d->nodes);
    d->fail_at = -1;
    trl_task task, first = 0; /* names are consecutive */
    for (int i = 0; i < count; ++i) {
        node *n = &d->nodes[i];
        unsigned kind = next_random(&seed) % 16;
        *n = (node){.dag = d, .index = i, .chunks = kind < 2 ? 2 + (int)kind * 3 : 1, .poll = kind == 2};
        trl_task_desc desc = {.name = "node",
                              .variant = {{run_node}},
                              .data = n,
                              .chunks = n->chunks,
                              .flags = n->poll ? TRL_TASK_POLL : 0};
        ck_ok(trl_graph_add_task(graph, &desc, &task));
        if (i == 0) first = task;
        n->predecessors = i ? (int)(next_random(&seed) % (PREDECESSORS + 1)) : 0;
        for (int k = 0; k < n->predecessors; ++k) {
            unsigned reach = next_random(&seed) % 4 ? 20u : (unsigned)i; /* mostly near, now and then far */
            n->predecessor[k] = i - 1 - (int)(next_random(&seed) % (reach > (unsigned)i ? (unsigned)i : reach));
            ck_ok(trl_graph_add_dependency(graph, first + n->predecessor[k], task));
        }
    }
    ck_ok(trl_graph_freeze(graph));
}

static void reset_dag(dag *d)
{
    for (int i = 0; i < d->count; ++i) {
        memset(d->nodes[i].chunk_calls, 0, sizeof d->nodes[i].chunk_calls);
        d->nodes[i].polls_left = i % 4;
    }
}

/* Chunks of all nodes that were not called exactly (complete: once; else: at most once). */
static int miscalled(const dag *d, bool complete)
{
    int wrong = 0;
    for (int i = 0; i < d->count; ++i) {
        for (int c = 0; c < d->nodes[i].chunks; ++c) {
            int calls = d->nodes[i].chunk_calls[c];
            wrong += complete ? calls != 1 : calls > 1;
        }
    }
    return wrong;
}

START_TEST(random_graphs_run_every_task_once_after_its_predecessors)
{
    trl_workers *workers = make_workers(&settings[_i]);
    for (unsigned seed = 1; seed <= 12; ++seed) {
        trl_graph *graph;
        dag d = {.workers = trl_workers_count(workers)};
        ck_ok(trl_graph_create(test_ctx, "random", &graph));
        make_dag(&d, graph, seed % 4 == 0 ? 2000 : 150, seed);
        for (int run = 0; run < 8; ++run) {
            reset_dag(&d);
            ck_ok(trl_graph_run(graph, workers, NULL));
            ck_assert_int_eq(miscalled(&d, true), 0);
            ck_assert_int_eq(atomic_load(&d.wrong), 0);
        }
        trl_graph_destroy(&graph);
        free(d.nodes);
    }
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(random_graphs_drain_after_an_error_and_run_again)
{
    trl_workers *workers = make_workers(&settings[_i]);
    for (unsigned seed = 1; seed <= 6; ++seed) {
        trl_graph *graph;
        dag d = {.workers = trl_workers_count(workers)};
        ck_ok(trl_graph_create(test_ctx, "random", &graph));
        make_dag(&d, graph, 300, seed);
        for (int run = 0; run < 6; ++run) {
            reset_dag(&d);
            d.fail_at = run % 2 ? -1 : (int)seed * 40 + run;
            atomic_store(&d.wrong, 0);
            trl_err err = trl_graph_run(graph, workers, NULL);
            ck_assert_int_eq(err, d.fail_at < 0 ? TRL_OK : TRL_ERR_NUMERICS);
            ck_assert_int_eq(miscalled(&d, d.fail_at < 0), 0);
            if (d.fail_at < 0) ck_assert_int_eq(atomic_load(&d.wrong), 0);
        }
        trl_graph_destroy(&graph);
        free(d.nodes);
    }
    trl_workers_destroy(&workers);
}
END_TEST

/* Small tasks that count their calls. */
typedef struct counted {
    _Atomic int calls, failed_calls;
    int polls;             /* calls of a poll task that ask for another one */
    trl_err result;        /* of the last call */
    _Atomic int *sequence; /* if not NULL, where `when` is taken from */
    int when;
} counted;

static trl_err count_call(void *data, const trl_task_args *args, bool *done)
{
    counted *c = data;
    int calls = atomic_fetch_add(&c->calls, 1) + 1;
    if (args->failed) atomic_fetch_add(&c->failed_calls, 1);
    if (c->sequence) c->when = atomic_fetch_add(c->sequence, 1);
    *done = calls > c->polls;
    return *done ? c->result : TRL_OK;
}

static trl_task add_counted(trl_graph *graph, counted *c, unsigned flags, trl_task after)
{
    trl_task task;
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = "counted", .variant = {{count_call}}, .data = c, .chunks = 1, .flags = flags},
        &task));
    if (after >= 0) ck_ok(trl_graph_add_dependency(graph, after, task));
    return task;
}

START_TEST(after_an_error_only_always_tasks_are_called_in_dependency_order)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    _Atomic int sequence = 0;
    counted before = {.result = TRL_OK}, bad = {.result = TRL_ERR_IO}, normal = {.result = TRL_OK},
            always = {.sequence = &sequence}, second = {.result = TRL_ERR_BUG, .sequence = &sequence},
            poll = {.polls = 3, .sequence = &sequence};
    ck_ok(trl_graph_create(test_ctx, "failing", &graph));
    trl_task t = add_counted(graph, &before, 0, -1);
    t = add_counted(graph, &bad, 0, t);
    t = add_counted(graph, &normal, 0, t);
    t = add_counted(graph, &always, TRL_TASK_ALWAYS, t);
    t = add_counted(graph, &second, TRL_TASK_ALWAYS, t);
    t = add_counted(graph, &poll, TRL_TASK_ALWAYS | TRL_TASK_POLL, t);
    add_counted(graph, &normal, TRL_TASK_POLL, t);
    ck_ok(trl_graph_freeze(graph));
    ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_IO); /* the first of two errors */
    ck_assert_int_eq(before.calls, 1);
    ck_assert_int_eq(before.failed_calls, 0);
    ck_assert_int_eq(bad.failed_calls, 0);
    ck_assert_int_eq(normal.calls, 0);
    ck_assert_int_eq(always.failed_calls, 1);
    ck_assert_int_eq(second.failed_calls, 1);
    ck_assert_int_eq(poll.calls, 4);
    ck_assert_int_eq(poll.failed_calls, 4);
    ck_assert_int_lt(always.when, second.when);
    ck_assert_int_lt(second.when, poll.when);
    bad.result = second.result = TRL_OK;
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_eq(normal.calls, 2);
    ck_assert_int_eq(always.calls, 2);
    ck_assert_int_eq(always.failed_calls, 1);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* A poll task that waits for a flag; a normal task that fails once the poll task has started. */
typedef struct handshake {
    _Atomic bool started, failed;
    _Atomic int calls_after_failure;
} handshake;

static trl_err poll_until_failed(void *data, const trl_task_args *args, bool *done)
{
    handshake *h = data;
    atomic_store(&h->started, true);
    *done = args->failed && atomic_fetch_add(&h->calls_after_failure, 1) == 4;
    return TRL_OK;
}

static trl_err fail_when_started(void *data, const trl_task_args *args, bool *done)
{
    handshake *h = data;
    (void)args;
    *done = atomic_load(&h->started);
    return *done ? TRL_ERR_DEVICE : TRL_OK;
}

START_TEST(a_started_poll_task_runs_to_completion_after_an_error)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    trl_task task;
    handshake h = {.started = false};
    ck_ok(trl_graph_create(test_ctx, "handshake", &graph));
    trl_task_desc fails = {
        .name = "fails", .variant = {{fail_when_started}}, .data = &h, .chunks = 1, .flags = TRL_TASK_POLL};
    trl_task_desc polls = {
        .name = "polls", .variant = {{poll_until_failed}}, .data = &h, .chunks = 1, .flags = TRL_TASK_POLL};
    ck_ok(trl_graph_add_task(graph, &fails, &task));
    ck_ok(trl_graph_add_task(graph, &polls, &task));
    ck_ok(trl_graph_freeze(graph));
    ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_DEVICE);
    ck_assert_int_eq(h.calls_after_failure, 5);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* A poll task that others release while a long task runs on the same thread. */
typedef struct progress {
    _Atomic bool stop;
    _Atomic int polls;
} progress;

static trl_err poll_progress(void *data, const trl_task_args *args, bool *done)
{
    progress *p = data;
    (void)args;
    *done = atomic_load(&p->stop);
    atomic_fetch_add(&p->polls, 1);
    return TRL_OK;
}

/* So that a policy which takes the other tasks first does not leave the poll task to the end. */
static trl_err await_first_poll(void *data, const trl_task_args *args, bool *done)
{
    progress *p = data;
    (void)args;
    *done = atomic_load(&p->polls) > 0;
    return TRL_OK;
}

static trl_err work_a_little(void *data, const trl_task_args *args, bool *done)
{
    struct timespec ten_us = {.tv_nsec = 10000};
    (void)data;
    (void)args;
    (void)done;
    nanosleep(&ten_us, NULL);
    return TRL_OK;
}

static trl_err stop_progress(void *data, const trl_task_args *args, bool *done)
{
    progress *p = data;
    (void)args;
    (void)done;
    atomic_store(&p->stop, true);
    return TRL_OK;
}

START_TEST(poll_tasks_are_tested_between_other_tasks)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    trl_task task, before;
    progress p = {.polls = 0};
    trl_task_desc poll = {
        .name = "poll", .variant = {{poll_progress}}, .data = &p, .chunks = 1, .flags = TRL_TASK_POLL};
    trl_task_desc first = {
        .name = "first", .variant = {{await_first_poll}}, .data = &p, .chunks = 1, .flags = TRL_TASK_POLL};
    trl_task_desc stop = {.name = "stop", .variant = {{stop_progress}}, .data = &p, .chunks = 1};
    ck_ok(trl_graph_create(test_ctx, "progress", &graph));
    ck_ok(trl_graph_add_task(graph, &poll, &task));
    ck_ok(trl_graph_add_task(graph, &first, &before));
    for (int i = 0; i < 50; ++i) {
        ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "work", .variant = {{work_a_little}}, .chunks = 1},
                                 &task));
        ck_ok(trl_graph_add_dependency(graph, before, task));
        before = task;
    }
    ck_ok(trl_graph_add_task(graph, &stop, &task));
    ck_ok(trl_graph_add_dependency(graph, before, task));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_ge(atomic_load(&p.polls),
                     3); /* beside the first and the last: a busy machine may hold up who tests */
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(runs_of_a_prepared_graph_allocate_nothing)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    trl_memory_stats before, after;
    dag d = {.workers = trl_workers_count(workers)};
    ck_ok(trl_graph_create(test_ctx, "random", &graph));
    make_dag(&d, graph, 200, 7);
    ck_ok(trl_graph_prepare(graph, workers));
    trl_memory_get_stats(test_ctx, &before);
    for (int run = 0; run < 3; ++run) {
        trl_graph_set_timing(graph, run == 2);
        reset_dag(&d);
        ck_ok(trl_graph_run(graph, workers, NULL));
    }
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_int_eq(before.allocations, after.allocations);
    trl_graph_destroy(&graph);
    free(d.nodes);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(only_the_first_run_with_other_workers_allocates)
{
    trl_graph *graph;
    trl_memory_stats first, second, third;
    dag d = {.nodes = NULL};
    ck_ok(trl_graph_create(test_ctx, "random", &graph));
    make_dag(&d, graph, 200, 7);
    for (int turn = 0; turn < 3; ++turn) {
        trl_workers *workers = make_workers(&settings[turn == 1 ? SETTINGS - 1 - _i : _i]);
        d.workers = trl_workers_count(workers);
        for (int run = 0; run < 3; ++run) {
            trl_memory_get_stats(test_ctx, run == 0 ? &first : run == 1 ? &second : &third);
            reset_dag(&d);
            ck_ok(trl_graph_run(graph, workers, NULL));
            ck_assert_int_eq(miscalled(&d, true), 0);
        }
        ck_assert_int_lt(first.allocations, second.allocations);
        ck_assert_int_eq(second.allocations, third.allocations);
        trl_workers_destroy(&workers);
    }
    ck_assert_int_eq(atomic_load(&d.wrong), 0);
    trl_graph_destroy(&graph);
    free(d.nodes);
}
END_TEST

/* One of the threads that run graphs on the same workers at once. */
typedef struct runner {
    trl_graph *graph;
    trl_workers *workers;
    dag dag;
    int runs, bad_results, miscalled;
    pthread_t thread;
} runner;

static void *run_often(void *data)
{
    runner *r = data;
    for (int run = 0; run < r->runs; ++run) {
        bool fails = run % 5 == 4;
        reset_dag(&r->dag);
        r->dag.fail_at = fails ? r->dag.count / 3 + run : -1;
        int wrong = atomic_load(&r->dag.wrong);
        r->bad_results += trl_graph_run(r->graph, r->workers, NULL) != (fails ? TRL_ERR_NUMERICS : TRL_OK);
        r->miscalled += miscalled(&r->dag, !fails);
        if (fails) atomic_store(&r->dag.wrong, wrong); /* predecessors that were not called are no fault */
    }
    return NULL;
}

START_TEST(several_threads_run_graphs_on_the_same_workers_at_once)
{
    enum { THREADS = 3 };
    trl_workers *workers = make_workers(&settings[_i]);
    runner r[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        r[i] = (runner){.workers = workers, .runs = 40, .dag = {.workers = trl_workers_count(workers)}};
        ck_ok(trl_graph_create(test_ctx, "random", &r[i].graph));
        make_dag(&r[i].dag, r[i].graph, 150 + 100 * i, 11 + (unsigned)i);
    }
    for (int i = 1; i < THREADS; ++i) ck_assert_int_eq(pthread_create(&r[i].thread, NULL, run_often, &r[i]), 0);
    run_often(&r[0]);
    for (int i = 1; i < THREADS; ++i) pthread_join(r[i].thread, NULL);
    for (int i = 0; i < THREADS; ++i) {
        trl_graph_stats stats;
        trl_graph_get_stats(r[i].graph, &stats);
        ck_assert_int_eq(stats.runs, r[i].runs);
        ck_assert_int_eq(r[i].bad_results, 0);
        ck_assert_int_eq(r[i].miscalled, 0);
        ck_assert_int_eq(atomic_load(&r[i].dag.wrong), 0);
        trl_graph_destroy(&r[i].graph);
        free(r[i].dag.nodes);
    }
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(one_worker_takes_poll_tasks_then_deep_ones_then_those_with_many_consumers)
{
    const setting one = {"priority", 1};
    enum { ROOT, SHALLOW, FEW, MANY, DEEP, POLL, END_1, END_2, END_3, SIDE, DEEP_1, DEEP_2, DEEP_3, TASKS };
    static const int edges[][2] = {{ROOT, SHALLOW}, {ROOT, FEW},      {ROOT, MANY},  {ROOT, DEEP},  {ROOT, POLL},
                                   {FEW, END_1},    {MANY, END_1},    {MANY, END_2}, {MANY, END_3}, {DEEP, SIDE},
                                   {DEEP, DEEP_1},  {DEEP_1, DEEP_2}, {SIDE, END_1}, {SIDE, END_2}, {DEEP_2, DEEP_3}};
    trl_workers *workers = make_workers(&one);
    trl_graph *graph;
    _Atomic int sequence = 0;
    counted tasks[TASKS];
    trl_task name[TASKS];
    ck_ok(trl_graph_create(test_ctx, "urgency", &graph));
    for (int i = 0; i < TASKS; ++i) {
        tasks[i] = (counted){.sequence = &sequence};
        name[i] = add_counted(graph, &tasks[i], i == POLL ? TRL_TASK_POLL : 0, -1);
    }
    for (size_t i = 0; i < sizeof edges / sizeof *edges; ++i)
        ck_ok(trl_graph_add_dependency(graph, name[edges[i][0]], name[edges[i][1]]));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, workers, NULL));
    int order[] = {ROOT, POLL, DEEP, DEEP_1, DEEP_2, DEEP_3, MANY, FEW, SHALLOW};
    for (size_t i = 1; i < sizeof order / sizeof *order; ++i) {
        ck_assert_msg(tasks[order[i - 1]].when < tasks[order[i]].when, "%d after %d", order[i - 1], order[i]);
    }
    ck_assert_int_lt(tasks[DEEP_1].when, tasks[SIDE].when); /* though SIDE has more consumers */
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, random_graphs_run_every_task_once_after_its_predecessors, 0, SETTINGS);
    tcase_add_loop_test(tc, random_graphs_drain_after_an_error_and_run_again, 0, SETTINGS);
    tcase_add_loop_test(tc, after_an_error_only_always_tasks_are_called_in_dependency_order, 0, SETTINGS);
    tcase_add_loop_test(tc, a_started_poll_task_runs_to_completion_after_an_error, 0, SETTINGS);
    tcase_add_loop_test(tc, poll_tasks_are_tested_between_other_tasks, 0, SETTINGS);
    tcase_add_loop_test(tc, runs_of_a_prepared_graph_allocate_nothing, 0, SETTINGS);
    tcase_add_loop_test(tc, only_the_first_run_with_other_workers_allocates, 0, SETTINGS);
    tcase_add_loop_test(tc, several_threads_run_graphs_on_the_same_workers_at_once, 0, SETTINGS);
    tcase_add_test(tc, one_worker_takes_poll_tasks_then_deep_ones_then_those_with_many_consumers);
}

TRL_TEST_MAIN("policies", add_tests)

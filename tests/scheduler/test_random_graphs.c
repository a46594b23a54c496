// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Random graphs with everything that graphs can have, each run checked from times that its tasks took: well, with
 * errors, cancelled, and several at once. */
#include "trl_test.h"

#include "app_support.h"

#include "random_graph.h"

#include "random_frame.h"

#include "check_graph.h"

#include <pthread.h>
#include <time.h>

/* Of how many random graphs in the long form; the short one has one of a few. */
enum {
    GRAPHS = 1000,
    FAILING_GRAPHS = 200,
    CANCELLED_GRAPHS = 100,
    GRAPHS_AT_ONCE = 3,
    FRAMES_AT_ONCE = 4, /* at the most */
    ROUNDS_AT_ONCE = 60,
    RUNS = 3,
};

#if defined __SANITIZE_THREAD__
enum { FEWER = 8 };
#else
enum { FEWER = APP_SANITIZED ? 16 : 5 };
#endif

static uint64_t some(int all)
{
    return (uint64_t)(test_long() ? all : all / FEWER);
}

static const setting random_settings[] = {{"serial", 1},   {"priority", 1}, {"priority", 2},
                                          {"priority", 4}, {"priority", 8}, {"priority", MOST_WORKERS}};
enum { RANDOM_SETTINGS = sizeof random_settings / sizeof *random_settings };

static void check_or_abort(const random_frame *f, const setting *s, int run, bool all)
{
    run_check c = check_run(f, all);
    if (c.fault[0])
        ck_abort_msg("seed %llu, policy %s, %d workers, run %d: %s", (unsigned long long)f->graph->seed, s->policy,
                     s->threads, run, c.fault);
}

static trl_err run_anew(random_frame *f, trl_workers *workers)
{
    clear_random_frame(f);
    return trl_graph_run(f->graph->graph, workers, f);
}

static void run_well(random_frame *f, trl_workers *workers, const setting *s, int run)
{
    const random_graph *g = f->graph;
    trl_err err = run_anew(f, workers);
    if (err != TRL_OK)
        ck_abort_msg("seed %llu, policy %s, %d workers, run %d: %s: %s", (unsigned long long)g->seed, s->policy,
                     s->threads, run, trl_err_name(err), test_messages());
    if (trl_graph_failed_task(g->graph)) ck_abort_msg("%s failed", trl_graph_failed_task(g->graph));
    check_or_abort(f, s, run, true);
}

static void free_both(random_graph *g, random_frame *f)
{
    free_random_frame(f);
    free_random_graph(g);
}

/* In a run. */
static int64_t count_spawned(const random_graph *g)
{
    int64_t spawned = g->count - g->own;
    for (int i = 0; i < g->own; ++i)
        if (g->nodes[i].body) spawned += g->nodes[i].rounds * count_spawned(g->nodes[i].body);
    return spawned;
}

START_TEST(runs_keep_every_promise)
{
    const setting *s = &random_settings[_i];
    trl_workers *workers = make_workers(s);
    const int graphs = (int)some(GRAPHS);
    int64_t tasks = 0;
    int shared_rooms = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)graphs; ++seed) {
        random_graph *g = make_random_graph(seed);
        random_frame *f = new_random_frame(g);
        trl_graph_stats stats;
        for (int run = 0; run < RUNS; ++run) run_well(f, workers, s, run);
        trl_graph_get_stats(g->graph, &stats);
        if (stats.spawned != RUNS * count_spawned(g)) ck_abort_msg("%lld spawned", (long long)stats.spawned);
        tasks += g->count;
        shared_rooms += g->shared_rooms;
        free_both(g, f);
    }
    ck_assert_int_gt(tasks, (int64_t)20 * graphs);
    ck_assert_int_gt(shared_rooms, graphs / 4);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- errors ---- */

static const trl_err errors[] = {TRL_ERR_NUMERICS, TRL_ERR_IO, TRL_ERR_DEVICE};

/* One to three nodes fail in the first run, none in the second. */
static void choose_failures(random_graph *g)
{
    int failures = 1 + app_below(&g->state, 3);
    for (int k = 0; k < failures; ++k) g->nodes[app_below(&g->state, g->count)].result = errors[k];
}

static void check_failure(const random_graph *g, const setting *s, trl_err err)
{
    const char *name = trl_graph_failed_task(g->graph);
    for (int i = 0; i < g->count; ++i) {
        const random_node *n = &g->nodes[i];
        const size_t length = strlen(n->name);
        const bool named = name && strncmp(n->name, name, length) == 0 && (name[length] == 0 || name[length] == '/');
        if (named && n->result == err && err != TRL_OK) return;
    }
    ck_abort_msg("seed %llu, policy %s, %d workers: the run returned %s, the task that failed is %s",
                 (unsigned long long)g->seed, s->policy, s->threads, trl_err_name(err), name ? name : "none");
}

static bool wants(const random_node *n)
{
    return n->nlocks + n->nuses > 0;
}

/* Those of the graph start even after an error, if they wait for nothing that tasks left out should have signalled. A
 * body may wait for that, too, and the call keeps what it has locked. */
static void check_always(const random_frame *f)
{
    const random_graph *g = f->graph;
    bool *certain = app_calloc((size_t)g->own, sizeof *certain), calls_want = false;
    for (int i = 0; i < g->own; ++i) calls_want |= g->nodes[i].body && wants(&g->nodes[i]);
    for (int i = 0; i < g->own; ++i) {
        const random_node *n = &g->nodes[i];
        certain[i] = n->signals == 0 && g->phases == 0 && !n->body && !(calls_want && wants(n));
        for (int k = 0; k < i && certain[i]; ++k)
            certain[i] = !waits_for(n, &g->nodes[k]) || (certain[k] && !(g->nodes[k].flags & TRL_TASK_SCOPE));
        if (certain[i] && n->flags & TRL_TASK_ALWAYS && !node_complete(f, n))
            ck_abort_msg("seed %llu: %s was not called after an error", (unsigned long long)g->seed, n->name);
    }
    free(certain);
}

/* What comes after a task that failed or cancelled the run is left out, unless it runs always. */
static void check_left_out(const random_frame *f)
{
    const random_graph *g = f->graph;
    bool *late = app_calloc((size_t)g->count, sizeof *late);
    for (int i = 0; i < g->count; ++i) {
        const random_node *n = &g->nodes[i];
        const bool own = n->spawner == NONE;
        late[i] = !own && late[n->spawner];
        for (int k = 0; own ? k < i : k < n->nbefore; ++k) {
            const random_node *before = &g->nodes[own ? k : n->before[k]];
            if (own && !waits_for(n, before)) continue;
            bool ended_run = before->result != TRL_OK || before->index == g->cancel_at;
            late[i] = late[i] || late[before->index] || (ended_run && f->run[before->index].end[0] > 0);
        }
        if (late[i] && first_start(f, n) > 0 && !(n->flags & TRL_TASK_ALWAYS))
            ck_abort_msg("seed %llu: %s was called after the run had ended", (unsigned long long)g->seed, n->name);
    }
    free(late);
}

START_TEST(the_first_error_ends_a_run_and_the_next_run_is_well)
{
    const setting *s = &random_settings[_i];
    trl_workers *workers = make_workers(s);
    for (uint64_t seed = 10001; seed <= 10000 + some(FAILING_GRAPHS); ++seed) {
        random_graph *g = make_random_graph(seed);
        random_frame *f = new_random_frame(g);
        for (int run = 0; run < RUNS; ++run) {
            choose_failures(g);
            check_failure(g, s, run_anew(f, workers));
            check_or_abort(f, s, run, false);
            check_always(f);
            check_left_out(f);
            test_clear();
            for (int i = 0; i < g->count; ++i) g->nodes[i].result = TRL_OK;
            run_well(f, workers, s, run);
        }
        free_both(g, f);
    }
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- cancelling ---- */

typedef struct canceller {
    random_graph *g;
    random_gate gate;
    long wait_ns; /* without a gate */
} canceller;

static void *cancel_run(void *data)
{
    canceller *c = data;
    struct timespec wait = {.tv_nsec = c->wait_ns};
    /* Relaxed: nothing else is passed on. */
    if (c->g->gate) {
        while (!atomic_load_explicit(&c->gate.reached, memory_order_relaxed)) sched_yield();
    } else {
        nanosleep(&wait, NULL);
    }
    trl_graph_cancel(c->g->graph);
    atomic_store_explicit(&c->gate.cancelled, true, memory_order_relaxed);
    return NULL;
}

/* sure: while a task is running; else at any time, also before the run and after it. */
static trl_err cancel_from_thread(random_frame *f, trl_workers *workers, bool sure)
{
    random_graph *g = f->graph;
    canceller c = {.g = g, .wait_ns = app_below(&g->state, 200000)};
    pthread_t thread;
    g->gate = sure ? &c.gate : NULL;
    clear_random_frame(f);
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_run, &c), 0);
    trl_err err = trl_graph_run(g->graph, workers, f);
    pthread_join(thread, NULL);
    g->gate = NULL;
    return err;
}

START_TEST(a_run_can_be_cancelled_from_another_thread)
{
    const setting *s = &random_settings[_i];
    trl_workers *workers = make_workers(s);
    for (uint64_t seed = 20001; seed <= 20000 + some(CANCELLED_GRAPHS); ++seed) {
        random_graph *g = make_random_graph(seed);
        random_frame *f = new_random_frame(g);
        for (int run = 0; run < 2; ++run) {
            bool sure = run == 1;
            trl_err err = cancel_from_thread(f, workers, sure);
            if (err != TRL_ERR_INTERRUPTED && (sure || err != TRL_OK))
                ck_abort_msg("seed %llu, %d workers: %s", (unsigned long long)seed, s->threads, trl_err_name(err));
            check_or_abort(f, s, run, err == TRL_OK);
            ck_assert_ptr_null(trl_graph_failed_task(g->graph));
            test_clear();
            run_well(f, workers, s, run);
        }
        free_both(g, f);
    }
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(a_task_can_cancel_its_run)
{
    const setting *s = &random_settings[_i];
    trl_workers *workers = make_workers(s);
    for (uint64_t seed = 30001; seed <= 30000 + some(CANCELLED_GRAPHS); ++seed) {
        random_graph *g = make_random_graph(seed);
        random_frame *f = new_random_frame(g);
        g->cancel_at = app_below(&g->state, g->count);
        trl_err err = run_anew(f, workers);
        if (err != TRL_ERR_INTERRUPTED) ck_abort_msg("seed %llu: %s", (unsigned long long)seed, trl_err_name(err));
        check_or_abort(f, s, 0, false);
        check_left_out(f);
        test_clear();
        g->cancel_at = NONE;
        run_well(f, workers, s, 1);
        free_both(g, f);
    }
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- several runs at once ---- */

typedef struct runner {
    random_frame *frame;
    trl_workers *workers;
    trl_err err;
    run_check check;
} runner;

static void *run_repeatedly(void *data)
{
    runner *r = data;
    for (int run = 0; run < RUNS && r->err == TRL_OK && !r->check.fault[0]; ++run) {
        r->err = run_anew(r->frame, r->workers);
        r->check = check_run(r->frame, r->err == TRL_OK);
    }
    return NULL;
}

/* Run all at once, from a thread each. */
static void run_at_once(runner *runners, int n, const setting *s)
{
    pthread_t threads[GRAPHS_AT_ONCE + FRAMES_AT_ONCE];
    for (int i = 1; i < n; ++i) ck_assert_int_eq(pthread_create(&threads[i], NULL, run_repeatedly, &runners[i]), 0);
    run_repeatedly(&runners[0]);
    for (int i = 1; i < n; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < n; ++i) {
        const runner *r = &runners[i];
        if (r->err != TRL_OK || r->check.fault[0])
            ck_abort_msg("seed %llu, policy %s, %d workers, frame %d of %d: %s: %s %s",
                         (unsigned long long)r->frame->graph->seed, s->policy, s->threads, i, n, trl_err_name(r->err),
                         r->check.fault, test_messages());
    }
}

START_TEST(several_threads_run_several_graphs_on_the_same_workers)
{
    const setting *s = &random_settings[_i];
    trl_workers *workers = make_workers(s);
    for (uint64_t round = 0; round < some(ROUNDS_AT_ONCE); ++round) {
        runner runners[GRAPHS_AT_ONCE];
        for (int i = 0; i < GRAPHS_AT_ONCE; ++i) {
            random_graph *g = make_random_graph(40000 + GRAPHS_AT_ONCE * round + (uint64_t)i);
            runners[i] = (runner){.frame = new_random_frame(g), .workers = workers};
        }
        run_at_once(runners, GRAPHS_AT_ONCE, s);
        for (int i = 0; i < GRAPHS_AT_ONCE; ++i) free_both(runners[i].frame->graph, runners[i].frame);
    }
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(a_graph_runs_in_several_frames_at_once)
{
    const setting *s = &random_settings[_i];
    trl_workers *workers = make_workers(s);
    for (uint64_t round = 0; round < some(ROUNDS_AT_ONCE); ++round) {
        runner runners[FRAMES_AT_ONCE];
        random_graph *g = make_random_graph(50000 + round);
        const int n = 2 + app_below(&g->state, FRAMES_AT_ONCE - 1);
        for (int i = 0; i < n; ++i) runners[i] = (runner){.frame = new_random_frame(g), .workers = workers};
        run_at_once(runners, n, s);
        for (int i = 0; i < n; ++i) free_random_frame(runners[i].frame);
        free_random_graph(g);
    }
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, runs_keep_every_promise, 0, RANDOM_SETTINGS);
    tcase_add_loop_test(tc, the_first_error_ends_a_run_and_the_next_run_is_well, 0, RANDOM_SETTINGS);
    tcase_add_loop_test(tc, a_run_can_be_cancelled_from_another_thread, 0, RANDOM_SETTINGS);
    tcase_add_loop_test(tc, a_task_can_cancel_its_run, 0, RANDOM_SETTINGS);
    tcase_add_loop_test(tc, several_threads_run_several_graphs_on_the_same_workers, 0, RANDOM_SETTINGS);
    tcase_add_loop_test(tc, a_graph_runs_in_several_frames_at_once, 0, RANDOM_SETTINGS);
}

TRL_TEST_MAIN("random graphs", add_tests)

// ctest: np=1 timeout=120
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Frames: one graph in several runs at once. A chain of steps of x' = -r x + t with wide and narrow tasks, all of whose
 * state is in the frame, has the results of a plain loop, whatever the other frames do. */
#include "trl_test.h"

#include "policy_settings.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { POINTS = 24, SWEEPS = 6, RUNS = 200, FRAMES = 3, CHUNKS = 4 };

typedef struct frame {
    double x[POINTS], rate[POINTS];
    double t, dt, sum;
    bool fails;          /* one of its tasks does */
    _Atomic bool waits;  /* one of its tasks does, until this is false */
    _Atomic int started; /* runs that came to their first task */
} frame;

static trl_err begin(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data;
    (void)done;
    atomic_fetch_add(&f->started, 1);
    while (atomic_load(&f->waits)) sched_yield();
    return f->fails ? TRL_ERR_NUMERICS : TRL_OK;
}

static void range(const trl_task_args *args, int *lo, int *hi)
{
    *lo = POINTS * args->chunk / args->chunks;
    *hi = POINTS * (args->chunk + 1) / args->chunks;
}

static trl_err find_rates(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    int lo, hi;
    (void)data;
    (void)done;
    range(args, &lo, &hi);
    for (int i = lo; i < hi; ++i) f->rate[i] = -(1 + i) * f->x[i] + f->t;
    return TRL_OK;
}

static trl_err advance(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    int lo, hi;
    (void)data;
    (void)done;
    range(args, &lo, &hi);
    for (int i = lo; i < hi; ++i) f->x[i] += f->dt * f->rate[i];
    return TRL_OK;
}

static trl_err end_sweep(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data;
    (void)done;
    f->t += f->dt;
    for (int i = 0; i < POINTS; ++i) f->sum += f->x[i];
    return TRL_OK;
}

static trl_graph *make_graph(void)
{
    trl_graph *graph;
    trl_task before, task;
    ck_ok(trl_graph_create(test_ctx, "decay", &graph));
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "begin", .variant = {{begin}}, .chunks = 1}, &before));
    for (int s = 0; s < SWEEPS; ++s) {
        const trl_task_desc parts[] = {{.name = "rates", .variant = {{find_rates}}, .chunks = CHUNKS},
                                       {.name = "advance", .variant = {{advance}}, .chunks = CHUNKS},
                                       {.name = "end", .variant = {{end_sweep}}, .chunks = 1}};
        for (int p = 0; p < 3; ++p) {
            ck_ok(trl_graph_add_task(graph, &parts[p], &task));
            ck_ok(trl_graph_add_dependency(graph, before, task));
            before = task;
        }
    }
    ck_ok(trl_graph_freeze(graph));
    return graph;
}

static frame start(int which)
{
    frame f = {.t = which, .dt = 1e-3 * (which + 1)};
    for (int i = 0; i < POINTS; ++i) f.x[i] = 1.0 + which + i;
    return f;
}

static frame serial(int which)
{
    frame f = start(which);
    for (int s = 0; s < SWEEPS * RUNS; ++s) {
        for (int i = 0; i < POINTS; ++i) f.rate[i] = -(1 + i) * f.x[i] + f.t;
        for (int i = 0; i < POINTS; ++i) f.x[i] += f.dt * f.rate[i];
        f.t += f.dt;
        for (int i = 0; i < POINTS; ++i) f.sum += f.x[i];
    }
    return f;
}

static void check_result(const frame *f, int which)
{
    const frame right = serial(which);
    ck_assert(memcmp(f->x, right.x, sizeof f->x) == 0);
    ck_assert(f->t == right.t && f->sum == right.sum);
}

typedef struct caller {
    trl_graph *graph;
    trl_workers *workers;
    frame *f;
    pthread_t thread;
    int failed;
} caller;

static void *run_all(void *arg)
{
    caller *c = arg;
    for (int r = 0; r < RUNS; ++r) c->failed += trl_graph_run(c->graph, c->workers, c->f) != TRL_OK;
    return NULL;
}

START_TEST(runs_of_one_graph_in_several_frames_at_once_have_the_results_of_each_alone)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph = make_graph();
    frame f[FRAMES];
    caller c[FRAMES];
    for (int i = 0; i < FRAMES; ++i) {
        f[i] = start(i);
        c[i] = (caller){.graph = graph, .workers = workers, .f = &f[i]};
    }
    for (int i = 0; i < FRAMES; ++i) ck_assert_int_eq(pthread_create(&c[i].thread, NULL, run_all, &c[i]), 0);
    for (int i = 0; i < FRAMES; ++i) pthread_join(c[i].thread, NULL);
    for (int i = 0; i < FRAMES; ++i) {
        ck_assert_int_eq(c[i].failed, 0);
        check_result(&f[i], i);
    }
    trl_graph_stats stats;
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.runs, FRAMES * RUNS);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(an_error_ends_the_run_in_its_frame_and_no_other)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph = make_graph();
    frame f[2] = {start(0), start(1)};
    caller c[2];
    f[1].fails = true;
    for (int i = 0; i < 2; ++i) c[i] = (caller){.graph = graph, .workers = workers, .f = &f[i]};
    for (int i = 0; i < 2; ++i) ck_assert_int_eq(pthread_create(&c[i].thread, NULL, run_all, &c[i]), 0);
    for (int i = 0; i < 2; ++i) pthread_join(c[i].thread, NULL);
    ck_assert_int_eq(c[0].failed, 0);
    ck_assert_int_eq(c[1].failed, RUNS);
    ck_assert_double_eq(f[1].sum, 0);
    check_result(&f[0], 0);
    ck_assert_ptr_nonnull(strstr(test_messages(), "task 'begin' of graph 'decay' failed"));
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(refuses_a_frame_that_is_in_a_run)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph = make_graph();
    frame f = start(0), other = start(1);
    caller c = {.graph = graph, .workers = workers, .f = &f};
    atomic_store(&f.waits, true);
    ck_assert_int_eq(pthread_create(&c.thread, NULL, run_all, &c), 0);
    while (atomic_load(&f.started) == 0) sched_yield();
    trl_err same = trl_graph_run(graph, workers, &f);
    atomic_store(&f.waits, false);
    trl_err another = trl_graph_run(graph, workers, &other);
    pthread_join(c.thread, NULL);
    ck_fails(same, TRL_ERR_USAGE, "graph 'decay' cannot run: it is running in this frame");
    ck_ok(another);
    ck_assert_int_eq(c.failed, 0);
    check_result(&f, 0);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(cancels_the_runs_in_all_frames)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph = make_graph();
    frame f[2] = {start(0), start(1)};
    caller c[2];
    for (int i = 0; i < 2; ++i) {
        c[i] = (caller){.graph = graph, .workers = workers, .f = &f[i]};
        atomic_store(&f[i].waits, true);
    }
    const bool at_once = trl_workers_count(workers) > 1;
    for (int i = 0; i < 2; ++i) ck_assert_int_eq(pthread_create(&c[i].thread, NULL, run_all, &c[i]), 0);
    while (atomic_load(&f[0].started) + atomic_load(&f[1].started) < (at_once ? 2 : 1)) sched_yield();
    trl_graph_cancel(graph);
    for (int i = 0; i < 2; ++i) atomic_store(&f[i].waits, false);
    for (int i = 0; i < 2; ++i) pthread_join(c[i].thread, NULL);
    ck_assert_int_ge(c[0].failed + c[1].failed, at_once ? 2 : 1);
    ck_assert_ptr_nonnull(strstr(test_messages(), "the run of graph 'decay' was cancelled"));
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, runs_of_one_graph_in_several_frames_at_once_have_the_results_of_each_alone, 0, SETTINGS);
    tcase_add_loop_test(tc, an_error_ends_the_run_in_its_frame_and_no_other, 0, SETTINGS);
    tcase_add_loop_test(tc, refuses_a_frame_that_is_in_a_run, 0, SETTINGS);
    tcase_add_loop_test(tc, cancels_the_runs_in_all_frames, 0, SETTINGS);
}

TRL_TEST_MAIN("frames", add_tests)

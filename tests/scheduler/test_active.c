/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How many workers take part: what is learned from times that are known, and graphs that adapt. */
#include "trl_test.h"

#include <math.h>
#include <stdatomic.h>

#include <trl_graph.h>

#include "active_impl.h"

/* ns of a run by so many workers, from `start` ns on. */
typedef double (*run_time)(int active, double start);

/* Time of so many runs relative to the same with the best number of workers. */
static double relative_cost(int workers, int64_t runs, run_time time, int *last)
{
    trli_active a = {0};
    double now = 0, best = INFINITY;
    for (int64_t run = 0; run < runs; ++run) {
        *last = trli_active_workers(&a, workers);
        ck_assert(*last >= 1 && *last <= workers);
        const double ns = time(*last, now);
        trli_active_learn(&a, workers, (int64_t)ns);
        now += ns;
    }
    for (int n = 1; n <= workers; ++n) {
        double then = 0;
        for (int64_t run = 0; run < runs; ++run) then += time(n, then);
        best = fmin(best, then);
    }
    return now / best;
}

static double too_small(int active, double start)
{
    (void)start;
    return 1000 + 3000 * (active - 1);
}

static double large(int active, double start)
{
    (void)start;
    return 100 + 3e6 / active;
}

/* Five workers are fastest; four are nearly so, and the number that halving finds. */
static double middling(int active, double start)
{
    (void)start;
    return 100000.0 / active + 4000 * active;
}

/* Another program has one of the cores for 4 of each 12 ms, and a worker that it stops holds up the run. */
static double disturbed(int active, double start)
{
    const double period = 12e6, busy = 4e6, at = fmod(start, period), ns = 20000.0 / active;
    return active > 1 && at < busy ? busy - at + ns : ns;
}

/* The same, from the first second on. */
static double disturbed_later(int active, double start)
{
    return start < 1e9 ? 20000.0 / active : disturbed(active, start);
}

START_TEST(learns_from_times)
{
    int last;
    ck_assert_double_le(relative_cost(2, 2000, too_small, &last), 1.1);
    ck_assert_int_eq(last, 1);
    ck_assert_double_le(relative_cost(64, 20000, too_small, &last), 2);
    ck_assert_double_le(relative_cost(2, 10000, large, &last), 1.05);
    ck_assert_double_le(relative_cost(128, 100, large, &last), 1.15);
    ck_assert_double_le(relative_cost(16, 100000, middling, &last), 1.1);
    ck_assert_int_eq(last, 4);
    if (TEST_SANITIZED) return; /* the rest is more of the same */
    ck_assert_double_le(relative_cost(64, 200000, too_small, &last), 1.1);
    ck_assert_double_le(relative_cost(128, 100000, large, &last), 1.05);
    ck_assert_double_le(relative_cost(2, 1000000, disturbed, &last), 1.1);
    ck_assert_double_le(relative_cost(2, 1000000, disturbed_later, &last), 1.1);
    ck_assert_double_le(relative_cost(1, 10, too_small, &last), 1);
}
END_TEST

static _Atomic int calls;

static trl_err count_call(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    atomic_fetch_add(&calls, 1);
    return TRL_OK;
}

/* Workers come and go between the runs of two graphs, one of which is never worth a second worker. */
START_TEST(runs_every_task_once)
{
    enum { TASKS = 40, RUNS = 700 };
    trl_graph *graph[2];
    trl_workers *workers;
    trl_graph_stats stats;
    const int before = trl_context_threads(test_ctx);
    ck_assert_int_eq(trl_context_set_threads(test_ctx, 4), TRL_OK);
    ck_assert_int_eq(trl_workers_create(test_ctx, "priority", &workers), TRL_OK);
    trl_workers_set_adaptive(workers, true);
    for (int g = 0; g < 2; ++g) {
        trl_task task = 0, last;
        ck_assert_int_eq(trl_graph_create(test_ctx, "adaptive", &graph[g]), TRL_OK);
        for (int t = 0; t < TASKS; ++t) {
            last = task;
            const trl_task_desc desc = {.name = "t", .variant = {{count_call}}, .chunks = 1 + g * t % 3};
            ck_assert_int_eq(trl_graph_add_task(graph[g], &desc, &task), TRL_OK);
            if (g == 1 && t > 0) ck_assert_int_eq(trl_graph_add_dependency(graph[g], last, task), TRL_OK);
        }
        ck_assert_int_eq(trl_graph_freeze(graph[g]), TRL_OK);
        trl_graph_get_stats(graph[g], &stats);
        ck_assert_int_eq(stats.active, 0);
    }
    for (int run = 0, chunks[2] = {TASKS, 0}; run < RUNS; ++run) {
        const int g = run / 7 % 2;
        for (int t = 0; run == 0 && t < TASKS; ++t) chunks[1] += 1 + t % 3;
        atomic_store(&calls, 0);
        ck_assert_int_eq(trl_graph_run(graph[g], workers, NULL), TRL_OK);
        ck_assert_int_eq(atomic_load(&calls), chunks[g]);
        trl_graph_get_stats(graph[g], &stats);
        ck_assert(stats.active >= 1 && stats.active <= 4);
    }
    for (int g = 0; g < 2; ++g) trl_graph_destroy(&graph[g]);
    trl_workers_destroy(&workers);
    ck_assert_int_eq(trl_context_set_threads(test_ctx, before), TRL_OK);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, learns_from_times);
    tcase_add_test(tc, runs_every_task_once);
}
TRL_TEST_MAIN("active workers", add_tests)

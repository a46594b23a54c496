// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What is learnt from the times of runs, which are made up: no task is run. */
#include "trl_test.h"

#include <placement_run_impl.h>
#include <workers_impl.h>

#include "app_support.h"
#include "mock_support.h"

enum { RUNS = 300, TRIALS = 12, LOOKS = 32, PATIENCE = 8 }; /* most runs of a trial, and of a look at means */

static trl_err nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_OK;
}

/* One task, of workers or a device. */
static trl_graph *make_one(void)
{
    trl_graph *graph;
    trl_task task;
    const trl_task_desc desc = {
        .name = "one", .variant = {[TRL_KIND_CPU] = {nothing}, [TRL_KIND_MOCK] = {nothing}}, .chunks = 1};
    ck_ok(trl_graph_create(test_ctx, "one", &graph));
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_freeze(graph));
    return graph;
}

/* ns of a run by an executor: in its trial, and later on, where every other one takes twice as long and the others
 * what those of the trial take. */
typedef struct pace {
    int64_t trial, later;
} pace;

static int64_t ns_of(const pace *pace, const trli_placement *p, int run)
{
    if (p->stage < p->platform.executors) return pace->trial;
    return run % 2 ? 2 * pace->later - pace->trial : pace->trial;
}

/* The executor of the last run, and how many runs each has made. */
static int learn(const pace pace[2], int made[2])
{
    int executor = -1;
    open_mocks("1");
    trl_workers *workers = make_workers(&(setting){"hybrid", 2});
    ck_ok(trl_workers_set_devices(workers, devices));
    trl_graph *graph = make_one();
    made[0] = made[1] = 0;
    for (int run = 0; run < RUNS; ++run) {
        trli_placed *placed;
        bool apart;
        ck_ok(trli_placement_begin(graph, &workers->placing, NULL, &placed, &apart));
        trli_placement *p = graph->placement;
        executor = p->executor[0];
        p->latest[0] = 1e-9 * (double)pace[executor].trial;
        ++made[executor];
        trli_placement_end(graph, TRL_OK, ns_of(&pace[executor], p, run), true);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    close_mocks();
    return executor;
}

START_TEST(means_of_runs_decide_where_the_least_times_of_trials_mislead)
{
    int made[2];
    ck_assert_int_eq(learn((pace[]){{10000, 100000}, {20000, 20000}}, made), 1);
    ck_assert_int_le(made[0], TRIALS + LOOKS);
    ck_assert_int_eq(learn((pace[]){{20000, 20000}, {10000, 100000}}, made), 0);
    ck_assert_int_le(made[1], TRIALS + LOOKS);
}
END_TEST

START_TEST(an_executor_that_is_slower_in_the_mean_is_left_again)
{
    int made[2];
    ck_assert_int_eq(learn((pace[]){{10000, 100000}, {20000, 300000}}, made), 0);
    ck_assert_int_gt(made[1], LOOKS);
    ck_assert_int_le(made[1], TRIALS + LOOKS);
}
END_TEST

START_TEST(a_slower_executor_is_timed_and_no_more)
{
    int made[2];
    ck_assert_int_eq(learn((pace[]){{10000, 10000}, {20000, 20000}}, made), 0);
    ck_assert_int_le(made[1], TRIALS);
    ck_assert_int_eq(learn((pace[]){{20000, 20000}, {10000, 10000}}, made), 1);
    ck_assert_int_le(made[0], TRIALS);
}
END_TEST

/* Runs of workers, behind those of other graphs that leave data on the device, until executors are timed again. */
static int runs_until_timed(trl_graph *graph, trl_workers *workers, bool fetches)
{
    trli_placement *p = graph->placement;
    int run = 0;
    p->stage = p->platform.executors;
    p->single = 0;
    trli_placement_drop(p);
    for (; run < RUNS && p->stage == p->platform.executors; ++run) {
        trli_placed *placed;
        bool apart;
        ck_ok(trli_placement_begin(graph, &workers->placing, NULL, &placed, &apart));
        placed->copies[TRL_WAY_OUT] += fetches;
        trli_placement_end(graph, TRL_OK, 10000, false);
    }
    return run;
}

START_TEST(workers_that_fetch_data_for_each_run_are_timed_again)
{
    open_mocks("1");
    trl_workers *workers = make_workers(&(setting){"hybrid", 2});
    ck_ok(trl_workers_set_devices(workers, devices));
    trl_graph *graph = make_one();
    trli_placed *placed;
    bool apart;
    ck_ok(trli_placement_begin(graph, &workers->placing, NULL, &placed, &apart));
    trli_placement_end(graph, TRL_OK, 10000, true);
    ck_assert_int_eq(runs_until_timed(graph, workers, false), RUNS);
    ck_assert_int_eq(runs_until_timed(graph, workers, true), PATIENCE);
    ck_assert_int_eq(runs_until_timed(graph, workers, true), 4 * PATIENCE);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, means_of_runs_decide_where_the_least_times_of_trials_mislead);
    tcase_add_test(tc, an_executor_that_is_slower_in_the_mean_is_left_again);
    tcase_add_test(tc, a_slower_executor_is_timed_and_no_more);
    tcase_add_test(tc, workers_that_fetch_data_for_each_run_are_timed_again);
}

TRL_TEST_MAIN("placement learn", add_tests)

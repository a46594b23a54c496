// ctest: np=1,2,3 emulated=1 timeout=240 sanitize=2
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs that call others on workers and devices, which do tasks of both. */
#include "trl_test.h"

#include <context_impl.h>
#include <device_impl.h>
#include <placement_run_impl.h>
#include <tasks_impl.h>

#include "called_solve.h"
#include "program_tree.h"

enum { SEEDS = 5, RUNS = 3 };

static const struct {
    const char *mocks, *placement;
    int threads;
} hybrids[] = {{"1", "devices", 1},
               {"2", "devices", 2},
               {"2", "random:1", 2},
               {"1:latency=20us", "random:2", 1},
               {"2", "auto", 2}};
enum { HYBRIDS = sizeof hybrids / sizeof *hybrids, MORE_RUNS = 8, MOST_ROUNDS = 20 };

/* Of a model's programs, in their runs so far; [0]: by workers. called: those of bodies, in the last run. */
static void count_tasks(const program_tree *t, int64_t done[2], int64_t called[2], int64_t *copies)
{
    for (int i = 0; i < t->nprograms; ++i) {
        const trl_graph *graph = t->program[i].program->run->graph;
        trl_placement_stats stats;
        trl_graph_get_placement(graph, &stats);
        for (int k = 0; graph->call_of && graph->placement && graph->placement->runs > 0 && k < graph->task_count; ++k)
            if (graph->call_of[k] >= 0) ++called[graph->placement->executor[k] > 0];
        for (int e = 0; e < stats.executors; ++e) done[e > 0] += stats.done[e];
        for (int way = 0; way < TRL_WAYS; ++way) *copies += stats.copies[way];
    }
}

START_TEST(programs_that_call_others_run_on_devices_beside_workers)
{
    static program_tree t, pieces;
    trl_devices *devices;
    trl_workers *one, *workers;
    const bool gpus = trli_device_backend_count() > 0; /* in place of mock devices */
    int64_t done[2] = {0}, called[2] = {0}, copies = 0;
    open_alone();
    ck_assert_int_eq(trl_workers_create(alone, "serial", &one), TRL_OK);
    if (!gpus) ck_assert_int_eq(setenv("TRL_MOCK_DEVICES", hybrids[_i].mocks, 1), 0);
    ck_ok(trl_devices_open(test_ctx, gpus ? "gpu" : "auto", &devices));
    ck_ok(trl_context_set_threads(test_ctx, hybrids[_i].threads));
    ck_ok(trl_workers_create(test_ctx, "hybrid", &workers));
    ck_ok(trl_workers_set_devices(workers, devices));
    ck_ok(trl_workers_set_placement(workers, hybrids[_i].placement));
    /* In the short form one of two, in turn, as kinds of hybrids and numbers of ranks are. */
    const uint64_t first = test_long() ? 1 : 1 + (uint64_t)((_i + trl_context_ranks(test_ctx)) % 2);
    for (uint64_t seed = first; seed <= (test_long() ? SEEDS : first); ++seed) {
        tree_compile = gpus ? TRL_COMPILE_ALWAYS : TRL_COMPILE_NEVER;
        tree_open(&t, test_ctx, workers, seed, false);
        tree_compile = TRL_COMPILE_NEVER;
        tree_open(&pieces, alone, one, seed, true);
        tree_program *root = tree_add_deep(&t), *root_in_pieces = tree_add_deep(&pieces);
        tree_freeze(&t);
        tree_freeze(&pieces);
        tree_set_all(&t, t.frame);
        tree_set_all(&pieces, pieces.frame);
        for (int run = 0; run < (gpus ? 2 : MORE_RUNS); ++run) {
            tree_run_often(root, RUNS);
            tree_run_often(root_in_pieces, RUNS);
            ck_assert_msg(tree_ran_as(&t, &pieces), "seed %d, run %d: other values than in pieces", (int)seed, run);
        }
        count_tasks(&t, done, called, &copies);
        tree_close(&t);
        tree_close(&pieces);
    }
    ck_assert_int_gt(done[0], 20);
    ck_assert_int_gt(called[0], 20);
    if (strcmp(hybrids[_i].placement, "auto") != 0) ck_assert_int_gt(done[1], 20);
    if (strcmp(hybrids[_i].placement, "auto") != 0) ck_assert_int_gt(called[1], 20);
    if (strcmp(hybrids[_i].placement, "auto") != 0) ck_assert_int_gt(copies, 20);
    trl_workers_destroy(&one);
    trl_workers_destroy(&workers);
    trl_devices_close(&devices);
    unsetenv("TRL_MOCK_DEVICES");
    close_alone();
}
END_TEST

/* A program that goes round on its own, and one that calls it. */
static void add_iteration(program_tree *t, tree_program **called, tree_program **root)
{
    trli_ir_value mixed = trli_ir_field(&t->model->ir, t->source);
    *called = tree_begin_program(t);
    (*called)->rounds = MOST_ROUNDS;
    for (int i = 0; i < 3; ++i) tree_add_temporary(t, *called, &mixed);
    tree_end_program(t, *called, mixed);
    *root = tree_begin_program(t);
    mixed = trli_ir_field(&t->model->ir, t->source);
    tree_add_call(t, *root, *called, &mixed);
    tree_end_program(t, *root, mixed);
    tree_freeze(t);
    tree_set_all(t, t->frame);
}

static int64_t copies_of(const tree_program *root, int64_t *bytes)
{
    trl_placement_stats stats;
    int64_t copies = *bytes = 0;
    trl_graph_get_placement(root->program->run->graph, &stats);
    for (int way = 0; way < TRL_WAYS; ++way) {
        copies += stats.copies[way];
        *bytes += stats.bytes[way];
    }
    return copies;
}

/* What the host brings together comes to it in each round, and nothing else: a share of each patch, of each sum. */
static void check_rounds(program_tree *t, tree_program *called, tree_program *root)
{
    int64_t bytes[3], copies[3], done[3];
    const int sums = (called->sum >= 0) + (called->middle >= 0);
    for (int i = 0; i < 3; ++i) {
        called->rounds = i == 2 ? MOST_ROUNDS : 2;
        tree_run_often(root, 1);
        copies[i] = copies_of(root, &bytes[i]);
        done[i] = called->done;
    }
    const int64_t extra = done[2] - done[1] - (done[1] - done[0]), shares = extra * sums * t->layout->nlocal;
    ck_assert_int_ge(extra, MOST_ROUNDS - 3);
    ck_assert_int_eq(copies[2] - copies[1] - (copies[1] - copies[0]), shares);
    ck_assert_int_le(bytes[2] - bytes[1] - (bytes[1] - bytes[0]), shares * (int64_t)sizeof(trli_partial));
}

START_TEST(values_of_a_called_program_stay_on_a_device_from_round_to_round)
{
    static program_tree t;
    trl_devices *devices;
    trl_workers *workers;
    const bool gpus = trli_device_backend_count() > 0;
    if (!gpus) ck_assert_int_eq(setenv("TRL_MOCK_DEVICES", "1", 1), 0);
    ck_ok(trl_devices_open(test_ctx, gpus ? "0" : "auto", &devices));
    ck_ok(trl_context_set_threads(test_ctx, 1));
    ck_ok(trl_workers_create(test_ctx, "hybrid", &workers));
    ck_ok(trl_workers_set_devices(workers, devices));
    ck_ok(trl_workers_set_placement(workers, "devices"));
    for (uint64_t seed = 2; seed <= 8 && trl_context_ranks(test_ctx) == 1; seed += 2) {
        tree_program *called, *root;
        tree_compile = gpus ? TRL_COMPILE_ALWAYS : TRL_COMPILE_NEVER;
        tree_open(&t, test_ctx, workers, seed, false);
        add_iteration(&t, &called, &root);
        check_rounds(&t, called, root);
        tree_close(&t);
    }
    trl_workers_destroy(&workers);
    trl_devices_close(&devices);
    unsetenv("TRL_MOCK_DEVICES");
}
END_TEST

/* ---- a device that fails ---- */

enum { FAULTS = 4 };

/* In a called program, on one rank: all ranks leave after as many rounds, and the next run is made without the device
 * as if nothing had been. */
START_TEST(a_device_that_fails_in_a_called_program_on_one_rank_ends_all)
{
    static program_tree t, pieces;
    trl_devices *devices;
    trl_workers *one, *workers;
    tree_program *called, *root, *called_in_pieces, *root_in_pieces;
    const bool fails = trl_context_rank(test_ctx) == trl_context_ranks(test_ctx) - 1;
    char mocks[32] = "1";
    if (trli_device_backend_count() > 0) return; /* GPUs fail when they like */
    if (fails) snprintf(mocks, sizeof mocks, "1:fail=%s@%d", _i % 2 ? "lost" : "call", 60 + 17 * _i);
    open_alone();
    ck_assert_int_eq(trl_workers_create(alone, "serial", &one), TRL_OK);
    ck_assert_int_eq(setenv("TRL_MOCK_DEVICES", mocks, 1), 0);
    ck_ok(trl_devices_open(test_ctx, "auto", &devices));
    ck_ok(trl_context_set_threads(test_ctx, 1));
    ck_ok(trl_workers_create(test_ctx, "hybrid", &workers));
    ck_ok(trl_workers_set_devices(workers, devices));
    ck_ok(trl_workers_set_placement(workers, "devices"));
    tree_compile = TRL_COMPILE_NEVER;
    tree_open(&t, test_ctx, workers, 2 + (uint64_t)_i, false);
    tree_open(&pieces, alone, one, 2 + (uint64_t)_i, true);
    add_iteration(&t, &called, &root);
    add_iteration(&pieces, &called_in_pieces, &root_in_pieces);
    const trl_err err = trli_program_run(root->program, t.frame);
    int64_t done[2] = {called->done, -called->done};
    MPI_Allreduce(MPI_IN_PLACE, done, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    ck_assert_int_eq(done[0], -done[1]);
    int good = err == (fails ? TRL_ERR_DEVICE : TRL_OK);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%s: %s", trl_err_name(err), test_messages());
    ck_assert_int_eq(trl_context_agree(test_ctx, err), TRL_ERR_DEVICE);
    if (fails) ck_assert_int_eq(strncmp(trl_graph_failed_task(root->program->run->graph), "call/", 5), 0);
    test_clear();
    trli_notice_forget(test_ctx);
    for (int i = 0; i < t.nprograms; ++i) trli_reductions_clear(t.frame, t.program[i].program);
    tree_set_all(&t, t.frame);
    tree_run_often(root, RUNS);
    tree_run_often(root_in_pieces, RUNS);
    ck_assert(tree_ran_as(&t, &pieces));
    tree_close(&t);
    tree_close(&pieces);
    trl_workers_destroy(&one);
    trl_workers_destroy(&workers);
    trl_devices_close(&devices);
    unsetenv("TRL_MOCK_DEVICES");
    close_alone();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_device_that_fails_in_a_called_program_on_one_rank_ends_all, 0, FAULTS);
    tcase_add_test(tc, values_of_a_called_program_stay_on_a_device_from_round_to_round);
    tcase_add_loop_test(tc, programs_that_call_others_run_on_devices_beside_workers, 0, HYBRIDS);
}

TRL_TEST_MAIN("called devices", add_tests)

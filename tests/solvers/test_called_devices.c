// ctest: np=1,2,3 emulated=1 timeout=240
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs that call others on workers and devices: workers do what is called, devices what callers do themselves. */
#include "trl_test.h"

#include <device_impl.h>

#include "called_solve.h"
#include "program_tree.h"

enum { SEEDS = TEST_SANITIZED ? 3 : 10, RUNS = 3 };

static const struct {
    const char *mocks, *placement;
    int threads;
} hybrids[] = {{"1", "devices", 1},
               {"2", "devices", 2},
               {"2", "random:1", 2},
               {"1:latency=20us", "random:2", 1},
               {"2", "auto", 2}};
enum { HYBRIDS = sizeof hybrids / sizeof *hybrids, MORE_RUNS = 8 };

/* Of a model's programs, in their runs so far; [0]: by workers. */
static void count_tasks(const program_tree *t, int64_t done[2], int64_t *copies)
{
    for (int i = 0; i < t->nprograms; ++i) {
        trl_placement_stats stats;
        trl_graph_get_placement(t->program[i].program->run->graph, &stats);
        for (int e = 0; e < stats.executors; ++e) done[e > 0] += stats.done[e];
        for (int way = 0; way < TRL_WAYS; ++way) *copies += stats.copies[way];
    }
}

/* Devices do what callers do themselves, and workers what they call. */
START_TEST(programs_that_call_others_run_on_devices_beside_workers)
{
    static program_tree t, pieces;
    trl_devices *devices;
    trl_workers *one, *workers;
    const bool gpus = trli_device_backend_count() > 0; /* in place of mock devices */
    int64_t done[2] = {0}, copies = 0;
    open_alone();
    ck_assert_int_eq(trl_workers_create(alone, "serial", &one), TRL_OK);
    if (!gpus) ck_assert_int_eq(setenv("TRL_MOCK_DEVICES", hybrids[_i].mocks, 1), 0);
    ck_ok(trl_devices_open(test_ctx, gpus ? "gpu" : "auto", &devices));
    ck_ok(trl_context_set_threads(test_ctx, hybrids[_i].threads));
    ck_ok(trl_workers_create(test_ctx, "hybrid", &workers));
    ck_ok(trl_workers_set_devices(workers, devices));
    ck_ok(trl_workers_set_placement(workers, hybrids[_i].placement));
    for (uint64_t seed = 1; seed <= (gpus || trl_context_ranks(test_ctx) > 1 ? 2 : SEEDS); ++seed) {
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
        count_tasks(&t, done, &copies);
        tree_close(&t);
        tree_close(&pieces);
    }
    ck_assert_int_gt(done[0], 20);
    if (strcmp(hybrids[_i].placement, "auto") != 0) ck_assert_int_gt(done[1], 20);
    if (strcmp(hybrids[_i].placement, "auto") != 0) ck_assert_int_gt(copies, 20);
    trl_workers_destroy(&one);
    trl_workers_destroy(&workers);
    trl_devices_close(&devices);
    unsetenv("TRL_MOCK_DEVICES");
    close_alone();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, programs_that_call_others_run_on_devices_beside_workers, 0, HYBRIDS);
}

TRL_TEST_MAIN("called devices", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A rank that cannot make a run tells the others, who wait for its messages: all ranks end within seconds. */
// ctest: np=2,4
#include "trl_test.h"

#include "context_impl.h"
#include <trl_graph.h>

static trl_context *ctx;
static bool comes; /* the message does, at last */

/* A receive that ends with the rank, as those of exchanges do. */
static trl_err receive(void *data, const trl_task_args *args, bool *done)
{
    const double *until = data;
    (void)args;
    *done = comes && MPI_Wtime() > *until;
    return trl_context_lost(ctx) ? TRL_ERR_MPI : TRL_OK;
}

static trl_err run_receive(double seconds)
{
    double until = MPI_Wtime() + seconds;
    trl_workers *workers = NULL;
    trl_graph *graph = NULL;
    trl_task task;
    const trl_task_desc desc = {.name = "receive",
                                .variant[TRL_KIND_CPU] = {receive},
                                .data = &until,
                                .chunks = 1,
                                .flags = TRL_TASK_POLL | TRL_TASK_ALWAYS};
    ck_ok(trl_workers_create(ctx, "priority", &workers));
    ck_ok(trl_graph_create(ctx, "receives", &graph));
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_freeze(graph));
    const trl_err err = trl_graph_run(graph, workers, NULL);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    return err;
}

/* Rank 1 fails before the run, the others are in it. */
static trl_err fail_one(double seconds)
{
    trl_context_begin_phase(ctx);
    trl_err err = TRL_OK;
    if (trl_context_rank(ctx) == 1) {
        err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for the run");
        trli_notice_post(ctx);
    } else
        err = run_receive(seconds);
    return trl_context_end_phase(ctx, err);
}

START_TEST(ranks_that_need_nothing_of_the_failed_one_meet_it)
{
    ctx = test_ctx;
    comes = true;
    for (int i = 0; i < 3; ++i) {
        ck_fails(fail_one(0.1 * i), TRL_ERR_MEMORY, "no memory for the run");
        ck_assert(!trl_context_lost(ctx));
        test_clear();
        ck_ok(trl_context_rank(ctx) == 1 ? TRL_OK : run_receive(i == 1 ? 0.7 : 0)); /* the notice is old */
        ck_ok(trl_context_agree(ctx, TRL_OK));
    }
}
END_TEST

/* The context cannot be freed: messages to it may be under way. */
START_TEST(ranks_that_wait_for_the_failed_one_are_lost_with_it)
{
    static trl_context *own;
    const double start = MPI_Wtime();
    const trl_diagnostic *list;
    comes = false;
    ck_assert_int_eq(trl_context_create(MPI_COMM_WORLD, NULL, &own), TRL_OK);
    ctx = own;
    const trl_err err = fail_one(0);
    ck_assert_int_eq(err, trl_context_rank(ctx) == 1 ? TRL_ERR_MEMORY : TRL_ERR_MPI);
    ck_assert(trl_context_lost(ctx));
    ck_assert_double_lt(MPI_Wtime() - start, 4.5);
    ck_assert_int_gt(trl_context_diagnostics(ctx, &list), 0);
    if (trl_context_rank(ctx) == 0)
        ck_assert_str_eq(list[0].text, "rank 1 failed, and rank 0 waits in vain for what it would have sent");
    ctx = test_ctx;
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, ranks_that_need_nothing_of_the_failed_one_meet_it);
    tcase_add_test(tc, ranks_that_wait_for_the_failed_one_are_lost_with_it);
}

TRL_TEST_MAIN("notice", add_tests)

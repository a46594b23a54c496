// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The third example of docs/scheduler.md: the largest eigenvalue of a matrix by the power method, until it is known. */
#include "trl_test.h"

#include <math.h>

#include <trl_graph.h>

enum { N = 200, CHUNKS = 8 };

typedef struct vectors {
    double v[N], next[N], eigenvalue, before;
} vectors;

/* next = A v, where A is the second difference, with 2 on the diagonal and -1 beside it. */
static trl_err multiply(void *data, const trl_task_args *args, bool *done)
{
    vectors *f = args->frame;
    (void)data, (void)done;
    for (int i = N * args->chunk / args->chunks; i < N * (args->chunk + 1) / args->chunks; ++i)
        f->next[i] = 2 * f->v[i] - (i > 0 ? f->v[i - 1] : 0) - (i + 1 < N ? f->v[i + 1] : 0);
    return TRL_OK;
}

static trl_err normalise(void *data, const trl_task_args *args, bool *done)
{
    vectors *f = args->frame;
    double sum = 0;
    (void)data, (void)done;
    for (int i = 0; i < N; ++i) sum += f->next[i] * f->next[i];
    f->before = f->eigenvalue;
    f->eigenvalue = sqrt(sum);
    for (int i = 0; i < N; ++i) f->v[i] = f->next[i] / f->eigenvalue;
    return TRL_OK;
}

static trl_err build_iteration(trl_context *ctx, trl_graph **iteration)
{
    trl_err err;
    trl_task product, scale;
    TRL_TRY(trl_graph_create(ctx, "iteration", iteration));
    TRL_TRY(trl_graph_add_task(
        *iteration, &(trl_task_desc){.name = "multiply", .variant = {{multiply}}, .chunks = CHUNKS}, &product));
    TRL_TRY(trl_graph_add_task(*iteration, &(trl_task_desc){.name = "normalise", .variant = {{normalise}}, .chunks = 1},
                               &scale));
    TRL_TRY(trl_graph_add_dependency(*iteration, product, scale));
    TRL_TRY(trl_graph_freeze(*iteration));
done:
    return err;
}

/* Before the first round: whose vectors the body works on. */
static trl_err begin(void *data, const trl_task_args *args, void **frame)
{
    vectors *f = data;
    (void)args;
    for (int i = 0; i < N; ++i) f->v[i] = i % 2 ? -1 : 1.1;
    *frame = f;
    return TRL_OK;
}

/* After each round. */
static trl_err until_known(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    const vectors *f = args->frame;
    (void)data;
    *again = round == 1 || fabs(f->eigenvalue - f->before) > 1e-12 * f->eigenvalue;
    return TRL_OK;
}

static trl_err find(trl_context *ctx, trl_workers *workers, vectors *found)
{
    trl_err err;
    trl_graph *iteration = NULL, *graph = NULL;
    trl_task task;
    TRL_TRY(build_iteration(ctx, &iteration));
    TRL_TRY(trl_graph_create(ctx, "power method", &graph));
    const trl_call_desc call = {
        .name = "iterate", .body = iteration, .data = found, .begin = begin, .again = until_known, .rounds = 100000};
    TRL_TRY(trl_graph_add_call(graph, &call, &task));
    TRL_TRY(trl_graph_freeze(graph));
    TRL_TRY(trl_graph_run(graph, workers, NULL));
done:
    trl_graph_destroy(&graph);
    trl_graph_destroy(&iteration);
    return err;
}

START_TEST(the_third_example_of_the_guide)
{
    static vectors found;
    trl_workers *workers;
    ck_ok(trl_context_set_threads(test_ctx, 1 + _i));
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    ck_ok(find(test_ctx, workers, &found));
    ck_assert_double_eq_tol(found.eigenvalue, 4 * pow(sin(acos(-1) * N / (2 * (N + 1))), 2), 1e-6);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, the_third_example_of_the_guide, 0, 2);
}

TRL_TEST_MAIN("call example", add_tests)

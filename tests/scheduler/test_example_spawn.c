// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The second example of docs/scheduler.md: an integral whose intervals are halved where that is needed. */
#include "trl_test.h"

#include <math.h>
#include <stdlib.h>

#include <trl_graph.h>

enum { WORKERS = 4 };

static double sum[WORKERS], integral;

static double simpson(double a, double b)
{
    return (b - a) / 6 * (sqrt(a) + 4 * sqrt((a + b) / 2) + sqrt(b));
}

typedef struct interval {
    double a, b;
} interval;

static trl_err integrate(void *data, const trl_task_args *args, bool *done);

static trl_err spawn(trl_run *run, double a, double b, unsigned flags, trl_event *done)
{
    interval *part = malloc(sizeof *part);
    if (!part) return TRL_ERR_MEMORY;
    *part = (interval){a, b};
    trl_spawn_desc desc = {.name = "integrate", .variant = {{integrate}}, .data = part, .flags = flags};
    return trl_run_spawn(run, &desc, done);
}

/* Nobody waits for the halves: what follows the scope does. */
static trl_err integrate(void *data, const trl_task_args *args, bool *done)
{
    trl_err err = TRL_OK;
    interval i = *(interval *)data;
    double middle = (i.a + i.b) / 2, better = simpson(i.a, middle) + simpson(middle, i.b);
    (void)done;
    free(data);
    if (fabs(better - simpson(i.a, i.b)) < 1e-10) {
        sum[args->worker] += better;
        return TRL_OK;
    }
    TRL_TRY(spawn(args->run, i.a, middle, 0, NULL));
    TRL_TRY(spawn(args->run, middle, i.b, 0, NULL));
done:
    return err;
}

static trl_err add_up(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    integral = 0;
    for (int w = 0; w < WORKERS; ++w) integral += sum[w];
    return TRL_OK;
}

/* The only task of the graph. */
static trl_err start(void *data, const trl_task_args *args, bool *done)
{
    trl_err err;
    trl_event whole;
    (void)data, (void)done;
    TRL_TRY(spawn(args->run, 0, 1, TRL_TASK_SCOPE, &whole)); /* fires when all that comes of it is complete */
    trl_spawn_desc after = {.name = "add up", .variant = {{add_up}}, .nwaits = 1, .waits = &whole};
    TRL_TRY(trl_run_spawn(args->run, &after, NULL));
done:
    return err;
}

START_TEST(an_adaptive_integral_is_right_in_every_run)
{
    trl_graph *graph;
    trl_workers *workers;
    trl_task task;
    trl_task_desc desc = {.name = "start", .variant = {{start}}, .chunks = 1};
    ck_ok(trl_context_set_threads(test_ctx, WORKERS));
    ck_ok(trl_graph_create(test_ctx, "integral", &graph));
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    for (int run = 0; run < 5; ++run) {
        for (int w = 0; w < WORKERS; ++w) sum[w] = 0;
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_double_eq_tol(integral, 2.0 / 3, 1e-8);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static void add(TCase *tc)
{
    tcase_add_test(tc, an_adaptive_integral_is_right_in_every_run);
}

TRL_TEST_MAIN("example_spawn", add)

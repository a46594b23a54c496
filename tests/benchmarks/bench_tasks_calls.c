/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a round costs: small graphs, run again by a loop of the host, or as the body of a call in one graph. */
#include "bench_tasks_impl.h"

enum { ROUNDS = 20000, QUICK_ROUNDS = 100 };

typedef struct rounds {
    trl_graph *body;
    trl_workers *workers;
    int64_t count;
} rounds;

static trl_err run_again(void *data)
{
    const rounds *r = data;
    trl_err err = TRL_OK;
    for (int64_t i = 0; i < r->count && err == TRL_OK; ++i) err = trl_graph_run(r->body, r->workers, NULL);
    return err;
}

static trl_err until_last(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    const rounds *r = data;
    (void)args;
    *again = round < r->count;
    return TRL_OK;
}

static trl_err build_call(trl_context *ctx, rounds *r, trl_graph **graph)
{
    const trl_call_desc desc = {.name = "call", .body = r->body, .data = r, .again = until_last, .rounds = r->count};
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(trl_graph_create(ctx, "calls", graph));
    TRL_TRY(trl_graph_add_call(*graph, &desc, &task));
    TRL_TRY(trl_graph_freeze(*graph));
done:
    return err;
}

static trl_err play(trli_tasks *tasks, const char *name, int32_t n)
{
    trl_context *ctx = tasks->bench->ctx;
    rounds r = {.workers = tasks->workers, .count = tasks->bench->quick ? QUICK_ROUNDS : ROUNDS};
    trli_dag dag = {0};
    trl_err err = TRL_OK;
    tasks->name = name;
    tasks->tasks = (int32_t)r.count;
    TRL_TRY(trli_dag_wavefront(ctx, n, &dag));
    TRL_TRY(trli_dag_build(ctx, &dag, trli_tasks_nothing, NULL, 0, &r.body));
    trli_way *loop = trli_tasks_add(tasks, "loop of runs", 1);
    loop->loop = run_again;
    loop->data = &r;
    trli_way *call = trli_tasks_add(tasks, "Trellis", 1);
    TRL_TRY(build_call(ctx, &r, &call->graph));
    TRL_TRY(run_again(&r));
    TRL_TRY(trli_tasks_warm(call));
    TRL_TRY(trli_tasks_measure(tasks));
done:
    trli_tasks_clear(tasks); /* before the body goes */
    trl_graph_destroy(&r.body);
    trli_dag_destroy(&dag);
    return err;
}

trl_err trli_tasks_rounds(trli_tasks *tasks)
{
    trl_err err = TRL_OK;
    TRL_TRY(play(tasks, "round of 1 task", 1));
    TRL_TRY(play(tasks, "round of 4 x 4 tasks", 4));
    TRL_TRY(play(tasks, "round of 16 x 16 tasks", 16));
done:
    return err;
}

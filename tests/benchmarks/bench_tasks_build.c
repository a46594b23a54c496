/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>

#include "bench_tasks_impl.h"

/* A graph that is made in a round and destroyed, untimed, at its end. */
typedef struct making {
    trli_tasks *tasks;
    const trli_dag *dag;
    trli_dag_view view;
    trl_graph *graph;
    const trli_baseline *baseline;
    void *made;
} making;

static trl_err make_graph(void *data)
{
    making *m = data;
    return trli_dag_build(m->tasks->bench->ctx, m->dag, trli_tasks_nothing, NULL, 0, &m->graph);
}

static trl_err drop_graph(void *data)
{
    making *m = data;
    trl_graph_stats stats;
    trl_graph_get_stats(m->graph, &stats);
    trl_graph_destroy(&m->graph);
    if (stats.tasks == m->dag->tasks && stats.dependencies == m->dag->dependencies) return TRL_OK;
    return trl_fail(m->tasks->bench->ctx, TRL_ERR_BUG, NULL, "a graph has %lld tasks and %lld dependencies",
                    (long long)stats.tasks, (long long)stats.dependencies);
}

static trl_err make_other(void *data)
{
    making *m = data;
    m->made = m->baseline->create(&m->view, trli_tasks_nothing_plain, NULL);
    return m->made ? TRL_OK : TRL_ERR_MEMORY;
}

static trl_err drop_other(void *data)
{
    making *m = data;
    m->baseline->destroy(m->made);
    return TRL_OK;
}

static trl_err build(trli_tasks *tasks, const char *name, const trli_dag *dag, trli_tasks_score *score)
{
    making own = {.tasks = tasks, .dag = dag}, other[TRLI_BASELINES_MAX];
    trl_err err = TRL_OK;
    tasks->name = name;
    tasks->tasks = dag->tasks + dag->dependencies;
    trli_tasks_add(tasks, "Trellis", 1);
    tasks->contender[0] = (trli_contender){.run = make_graph, .check = drop_graph, .data = &own};
    for (int b = 0; b < tasks->baselines->count; ++b) {
        if (!tasks->baselines->list[b]->keeps) continue;
        other[b] = own;
        other[b].baseline = tasks->baselines->list[b];
        other[b].view = (trli_dag_view){dag->tasks, dag->pred_first, dag->predecessors};
        trli_tasks_add(tasks, other[b].baseline->name, 1);
        tasks->contender[tasks->ways - 1] = (trli_contender){.run = make_other, .check = drop_other, .data = &other[b]};
    }
    TRL_TRY(trli_tasks_measure(tasks));
    double ns = 1e9 * trli_tasks_seconds(tasks, "Trellis") / tasks->tasks;
    if (!(ns <= score->construction)) score->construction = ns; /* the worst of several, NAN before the first */
done:
    trli_tasks_clear(tasks);
    return err;
}

trl_err trli_tasks_construct(trli_tasks *tasks, trli_tasks_score *score)
{
    trl_context *ctx = tasks->bench->ctx;
    int32_t n = tasks->bench->quick ? 1000 : 100000;
    trli_dag independent = {0}, chain = {0}, random = {0};
    trl_err err = TRL_OK;
    puts("construction, from create to freeze, ns per task and dependency");
    TRL_TRY(trli_dag_independent(ctx, 10 * n, &independent));
    TRL_TRY(build(tasks, "independent", &independent, score));
    TRL_TRY(trli_dag_chain(ctx, n, &chain));
    TRL_TRY(build(tasks, "chain", &chain, score));
    TRL_TRY(trli_dag_random(ctx, n, 1000, &random));
    TRL_TRY(build(tasks, "random", &random, score));
done:
    trli_dag_destroy(&independent);
    trli_dag_destroy(&chain);
    trli_dag_destroy(&random);
    return err;
}

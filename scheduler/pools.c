/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How many workers prefer tasks, and how many prefer chunks of wide tasks (Robison 2014, sec. 3.5 and 4.3). These
 * are only preferences: a serialising wide task gets all workers, since no worker waits while chunks are left. */
#include <math.h>

#include "engine_impl.h"
#include "rank_impl.h"

/* The share of time spent in wide tasks, and the parallelism of the graph when each wide task counts as one task. */
static void measure(const trl_graph *graph, double *wide, double *parallelism)
{
    const trli_task_record *record = trli_graph_records(graph);
    trli_times times = trli_graph_times(graph);
    double sum = 0, in_wide = 0, longest = trli_graph_weights(graph, &times, 1, graph->path);
    for (int32_t t = 0; t < graph->task_count; ++t) {
        double seconds = trli_task_time(graph, t, &times);
        sum += seconds;
        if (record[t].chunks > 1) in_wide += seconds;
    }
    *wide = sum > 0 ? in_wide / sum : 0;
    *parallelism = longest > 0 ? sum / longest : 1;
}

static bool prefers_operators(const trli_worker *worker)
{
    return atomic_load_explicit(&worker->operators, memory_order_relaxed);
}

/* A pool whose workers mostly take from the other pool has one worker too many. */
static int balance(const trli_run_state *run, int count, trli_worker *worker, int tasks)
{
    int64_t of_tasks = 0, of_operators = 0;
    for (int i = 0; i < count; ++i) {
        const int64_t foreign = atomic_load_explicit(&worker[i].foreign, memory_order_relaxed);
        if (foreign > 0) atomic_store_explicit(&worker[i].foreign, 0, memory_order_relaxed);
        if (prefers_operators(&worker[i]))
            of_operators += foreign;
        else
            of_tasks += foreign;
    }
    if (of_tasks > 4 * of_operators + run->view.tasks && tasks > 1) return tasks - 1;
    if (of_operators > 4 * of_tasks + run->view.tasks && tasks < count) return tasks + 1;
    return tasks;
}

void trli_pools_adapt(const trli_run_state *run, int count, trli_worker *worker)
{
    double wide, parallelism;
    int tasks = 0;
    if (run->wide.count == 0 || run->alone) return;
    for (int i = 0; i < count; ++i) tasks += !prefers_operators(&worker[i]);
    if (run->watched) {
        measure(run->graph, &wide, &parallelism);
        /* No more task workers than tasks at once, nor more than the tasks' share of the time. */
        double most = fmin(ceil(parallelism), count - floor(wide * count));
        tasks = most < 1 ? 1 : (int)most;
    } else {
        tasks = balance(run, count, worker, tasks);
    }
    for (int i = 0; i < count; ++i) atomic_store_explicit(&worker[i].operators, i >= tasks, memory_order_relaxed);
}

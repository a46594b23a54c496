/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Numbers about a graph and its runs. */
#include <limits.h>

#include "engine_impl.h"
#include "rank_impl.h"

void trl_graph_set_timing(trl_graph *graph, bool on)
{
    graph->timing = on;
}

/* Tasks of a run, including those that it creates or repeats. */
static double tasks_per_run(const trl_graph *graph)
{
    double more = graph->runs > 0 ? (double)(graph->spawned + graph->repeated) / (double)graph->runs : 0.0;
    return graph->task_count + more;
}

void trl_graph_get_stats(const trl_graph *graph, trl_graph_stats *stats)
{
    *stats = (trl_graph_stats){.tasks = graph->task_count,
                               .dependencies = graph->edges.count,
                               .runs = graph->runs,
                               .spawned = graph->spawned,
                               .repeated = graph->repeated};
    if (!graph->frozen) return;
    const trli_task_record *record = trli_graph_records(graph);
    trli_times times = trli_graph_times(graph);
    for (int32_t t = 0; t < graph->task_count; ++t) {
        stats->dependencies += record[t].end - record[t].first;
        stats->tau_1 += trli_task_time(graph, t, &times);
    }
    stats->tau_inf = trli_graph_weights(graph, &times, INT_MAX, graph->path);
    stats->outstanding = 1e-9 * (double)graph->outstanding_ns;
    if (graph->runs > 0) stats->active = trli_active_workers(&graph->active, graph->workers);
    stats->idle = 1e-9 * graph->idle_share;
    stats->late = 1e-9 * graph->late_share;
    if (graph->timed_wall > 0.0) stats->busy = graph->timed_share / graph->timed_wall;
    if (graph->timed_runs > 0 && tasks_per_run(graph) > 0.0) {
        double per_run = (graph->timed_wall - graph->timed_share) / (double)graph->timed_runs;
        stats->overhead_ns = per_run * 1e9 / tasks_per_run(graph);
    }
}

double trl_graph_task_seconds(const trl_graph *graph, trl_task task, trl_kind kind)
{
    const bool known = kind < TRL_KINDS && graph->mean_s[kind] && trli_graph_owns(graph, task, graph->task_count);
    return known ? graph->mean_s[kind][task & INT32_MAX] : 0.0;
}

double trl_amdahl_score(double tau_1, double tau_inf, int n)
{
    if (n <= 1 || !(tau_1 > 0.0)) return 0.0;
    double score = (1.0 - tau_inf / tau_1) / (1.0 - 1.0 / n);
    return score > 1.0 ? 1.0 : score > 0.0 ? score : 0.0;
}

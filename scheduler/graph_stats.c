/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <string.h>

#include "graph_impl.h"

void trl_graph_set_timing(trl_graph *graph, bool on)
{
    graph->timing = on;
}

/* Where no task has a cost, each counts as 1, so that tau_1 / tau_inf is still the parallelism of the graph's shape. */
static double unknown_cost(const trl_graph *graph)
{
    const double *cost = graph->costs.data;
    for (trl_task t = 0; t < graph->task_count; ++t) {
        if (cost[t] > 0.0) return 0.0;
    }
    return 1.0;
}

static double task_seconds(const trl_graph *graph, trl_task task, double unknown)
{
    double cost = ((const double *)graph->costs.data)[task];
    if (graph->timed_runs == 0) return cost > 0.0 ? cost : unknown;
    int64_t ns = atomic_load_explicit(&graph->task_ns[task], memory_order_relaxed);
    return 1e-9 * (double)ns / (double)graph->timed_runs;
}

/* Longest path: the time until a task ends is the latest end of its predecessors plus its own; chunks run at once. */
static void find_paths(const trl_graph *graph, trl_graph_stats *stats)
{
    const trli_task_record *record = trli_graph_records(graph);
    double unknown = unknown_cost(graph);
    memset(graph->path, 0, (size_t)graph->task_count * sizeof *graph->path);
    for (int32_t at = 0; at < graph->task_count; ++at) {
        trl_task t = graph->order[at];
        double seconds = task_seconds(graph, t, unknown), end = graph->path[t] + seconds / record[t].chunks;
        stats->tau_1 += seconds;
        if (end > stats->tau_inf) stats->tau_inf = end;
        for (int32_t i = record[t].first; i < record[t].end; ++i) {
            double *start = &graph->path[graph->successors[i]];
            if (end > *start) *start = end;
        }
    }
}

void trl_graph_get_stats(const trl_graph *graph, trl_graph_stats *stats)
{
    const trli_task_record *record = trli_graph_records(graph);
    *stats = (trl_graph_stats){.tasks = graph->task_count, .dependencies = graph->edges.count, .runs = graph->runs};
    if (!graph->frozen) return;
    for (trl_task t = 0; t < graph->task_count; ++t) stats->dependencies += record[t].end - record[t].first;
    find_paths(graph, stats);
    stats->outstanding = 1e-9 * (double)atomic_load_explicit(&graph->outstanding_ns, memory_order_relaxed);
    stats->idle = 1e-9 * graph->idle_share;
    if (graph->timed_runs > 0 && graph->task_count > 0) {
        double per_run = (graph->timed_wall - graph->timed_share) / (double)graph->timed_runs;
        stats->overhead_ns = per_run * 1e9 / graph->task_count;
    }
}

double trl_amdahl_score(double tau_1, double tau_inf, int n)
{
    if (n <= 1 || !(tau_1 > 0.0)) return 0.0;
    double score = (1.0 - tau_inf / tau_1) / (1.0 - 1.0 / n);
    return score < 1.0 ? score : 1.0;
}

static void write_quoted(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text; ++text) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if (*text == '\n') {
            fputs("\\n", out);
        } else {
            fputc(*text, out);
        }
    }
    fputc('"', out);
}

trl_err trl_graph_write_dot(const trl_graph *graph, FILE *out)
{
    const trli_task_record *record = trli_graph_records(graph);
    const trli_edge *edge = graph->edges.data;
    fputs("digraph ", out);
    write_quoted(graph->name, out);
    fputs(" {\n    node [shape=box];\n", out);
    for (trl_task t = 0; t < graph->task_count; ++t) {
        fprintf(out, "    t%d [label=", t);
        write_quoted(trli_graph_task_name(graph, t), out);
        if (record[t].chunks > 1) fprintf(out, ", xlabel=\"%d chunks\"", record[t].chunks);
        fputs(record[t].flags & TRL_TASK_POLL ? ", style=dashed];\n" : "];\n", out);
    }
    for (int64_t i = 0; i < graph->edges.count; ++i) fprintf(out, "    t%d -> t%d;\n", edge[i].before, edge[i].after);
    for (trl_task t = 0; graph->frozen && t < graph->task_count; ++t) {
        for (int32_t i = record[t].first; i < record[t].end; ++i)
            fprintf(out, "    t%d -> t%d;\n", t, graph->successors[i]);
    }
    fputs("}\n", out);
    if (fflush(out) == 0 && !ferror(out)) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_IO, NULL, "cannot write the dot text of graph '%s': %s", graph->name,
                    strerror(errno));
}

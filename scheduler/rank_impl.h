/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Times of tasks and what follows from them, for ranking, statistics and pictures of a graph. */
#ifndef TRL_RANK_IMPL_H
#define TRL_RANK_IMPL_H

#include "graph_impl.h"

/* How times of tasks are derived from what is known now. */
typedef struct trli_times {
    bool measured;   /* some task was measured: times are seconds, else units of cost */
    double per_cost; /* time per unit of cost of a task that was not measured */
    double unknown;  /* time of a task about which nothing is known */
} trli_times;

trli_times trli_graph_times(const trl_graph *graph);

/* Mean time of a task by the kind of executor that runs it, s; 0: not measured. */
static inline double trli_graph_mean(const trl_graph *graph, int32_t task)
{
    const double *mean = graph->mean_s[trli_graph_info(graph)[task].kind];
    return mean ? mean[task] : 0.0;
}

static inline double trli_task_time(const trl_graph *graph, int32_t task, const trli_times *times)
{
    const double mean = trli_graph_mean(graph, task);
    if (mean > 0.0) return mean;
    if (!graph->costs) return times->unknown;
    double cost = trli_graph_info(graph)[task].cost;
    return cost > 0.0 ? times->per_cost * cost : times->unknown;
}

/* The longest path from the start of each task of a frozen graph to the end of the graph, with at most `workers`
 * chunks of a wide task running at once. Returns the maximum, tau_inf. Linear in tasks and dependencies. */
double trli_graph_weights(const trl_graph *graph, const trli_times *times, int workers, double *weight);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From times to priorities: weights on the critical path, classes of urgency, and lists in their order. */
#include "arithmetic_impl.h"
#include "rank_impl.h"

#include <math.h>

/* Weight of the latest run in an average. */
static const double latest = 0.3;
/* Part of the critical path by which a time must change before the tasks are ranked again. */
static const double drift = 0.1;

enum {
    FIRST_CLASS = 1,               /* of tasks whose urgency is their weight; before it:
                      priority 1 and poll tasks */
    LAST_CLASS = TRL_URGENCIES - 2 /* of those tasks; behind it: priority -1 */
};

/* Costs have any unit: where tasks with costs were measured, the ratio of the sums gives the value of the unit. */
trli_times trli_graph_times(const trl_graph *graph)
{
    const trli_task_info *info = trli_graph_info(graph);
    double seconds = 0.0, units = 0.0;
    bool measured = false, estimated = false;
    if (!graph->frozen && !graph->costs) return (trli_times){.per_cost = 1.0, .unknown = 1.0};
    for (int32_t t = 0; t < graph->task_count; ++t) {
        const double mean = trli_graph_mean(graph, t);
        const bool has_mean = mean > 0.0;
        measured = measured || has_mean;
        estimated = estimated || info[t].cost > 0.0;
        if (!has_mean || !(info[t].cost > 0.0)) continue;
        seconds += mean;
        units += info[t].cost;
    }
    return (trli_times){
        .measured = measured,
        .per_cost = units > 0.0 ? seconds / units : 1.0,
        .unknown = measured || estimated ? 0.0 : 1.0,
    };
}

/* The larger of two numbers, neither of them NaN: fmax is a call, because it handles NaN. */
double trli_graph_weights(const trl_graph *graph, const trli_times *times, int workers, double *weight)
{
    const trli_task_record *record = trli_graph_records(graph);
    double longest = 0.0;
    for (int32_t at = graph->task_count - 1; at >= 0; --at) {
        int32_t t = graph->order[at];
        int parallel = record[t].chunks < workers ? record[t].chunks : workers;
        double behind = 0.0, time = trli_task_time(graph, t, times);
        for (int32_t i = record[t].first; i < record[t].end; ++i)
            behind = trli_max_double(behind, weight[graph->successors[i]]);
        weight[t] = behind + (parallel > 1 ? time / parallel : time);
        longest = trli_max_double(longest, weight[t]);
    }
    return longest;
}

/* ---- lists ---- */

/* Whether task a is served before task b. A total order, so that equal times give the same lists everywhere. */
static bool precedes(const trl_graph *graph, int32_t a, int32_t b)
{
    const trli_task_record *ra = &trli_graph_records(graph)[a], *rb = &trli_graph_records(graph)[b];
    if (ra->urgency != rb->urgency) return ra->urgency < rb->urgency;
    if (ra->urgency == 0) { /* poll tasks without a priority come last */
        const trli_task_info *info = trli_graph_info(graph);
        if (info[a].priority != info[b].priority) return info[a].priority > info[b].priority;
    }
    if (graph->weight[a] != graph->weight[b]) return graph->weight[a] > graph->weight[b];
    /* More successors make more work ready. */
    int32_t na = ra->end - ra->first, nb = rb->end - rb->first;
    return na != nb ? na > nb : a < b;
}

/* One step of a heap sort, whose root is the task to be served last. */
static void sift_down(const trl_graph *graph, int32_t *list, int32_t at, int32_t n)
{
    int32_t task = list[at];
    for (int32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && precedes(graph, list[child], list[child + 1])) ++child;
        if (!precedes(graph, task, list[child])) break;
        list[at] = list[child];
        at = child;
    }
    list[at] = task;
}

static void sort_long(const trl_graph *graph, int32_t *list, int32_t n)
{
    for (int32_t at = n / 2 - 1; at >= 0; --at) sift_down(graph, list, at, n);
    for (int32_t end = n - 1; end > 0; --end) {
        int32_t last = list[0];
        list[0] = list[end];
        list[end] = last;
        sift_down(graph, list, 0, end);
    }
}

static void sort_short(const trl_graph *graph, int32_t *list, int32_t n)
{
    for (int32_t i = 1; i < n; ++i) {
        int32_t task = list[i], at = i;
        for (; at > 0 && precedes(graph, task, list[at - 1]); --at) list[at] = list[at - 1];
        list[at] = task;
    }
}

/* In place, n log n. Most lists are short, and most others are still in order from the last time. */
static void sort(const trl_graph *graph, int32_t *list, int32_t n)
{
    enum { SHORT = 16 };
    int32_t sorted = 1;
    while (sorted < n && precedes(graph, list[sorted - 1], list[sorted])) ++sorted;
    if (sorted >= n) return;
    if (n <= SHORT)
        sort_short(graph, list, n);
    else
        sort_long(graph, list, n);
}

/* ---- ranking ---- */

/* The class of a task that does not depend on its weight, or -1. The user's priority takes precedence over sending
 * messages early. */
static int fixed_class(const trl_graph *graph, int32_t task)
{
    if (!(trli_graph_records(graph)[task].flags & TRLI_TASK_RANKED)) return -1;
    int priority = trli_graph_info(graph)[task].priority;
    return priority < 0 ? TRL_URGENCIES - 1 : 0;
}

/* Also counts the roots of each class. */
static void find_classes(trl_graph *graph, int32_t roots[TRL_URGENCIES])
{
    enum { CLASSES = LAST_CLASS - FIRST_CLASS + 1 };
    trli_task_record *record = trli_graph_records(graph);
    double highest = graph->flags & TRLI_TASK_RANKED ? 0.0 : graph->ranked_tau_inf;
    for (int32_t t = 0; graph->flags & TRLI_TASK_RANKED && t < graph->task_count; ++t) {
        if (fixed_class(graph, t) < 0) highest = trli_max_double(highest, graph->weight[t]);
    }
    const double classes_per_weight = highest > 0.0 ? CLASSES / highest : 0.0;
    for (int32_t t = 0; t < graph->task_count; ++t) {
        int urgency = fixed_class(graph, t);
        if (urgency < 0) {
            int below = (int)(classes_per_weight * (highest - graph->weight[t]));
            urgency = FIRST_CLASS + (below < CLASSES ? below : CLASSES - 1);
        }
        record[t].urgency = (uint8_t)urgency;
        roots[urgency] += trli_graph_is_root(graph, t);
    }
}

/* By class; within a class in the order in which the tasks were added, which is usually the order of their data in
 * memory: the topological order begins with the tasks without predecessors in that order. */
static void list_roots(trl_graph *graph, const int32_t count[TRL_URGENCIES])
{
    const trli_task_record *record = trli_graph_records(graph);
    int32_t start[TRL_URGENCIES], listed = 0;
    int only = -1; /* the common class of all */
    for (int c = 0; c < TRL_URGENCIES; ++c) {
        if (count[c] == graph->nroots) only = c;
        start[c] = listed;
        listed += count[c];
    }
    for (int32_t at = 0, n = 0; n < graph->nroots; ++at) {
        int32_t task = graph->order[at];
        if (!trli_graph_is_root(graph, task)) continue;
        graph->roots[start[only >= 0 ? only : record[task].urgency]++] = task;
        ++n;
    }
}

void trli_graph_rank(trl_graph *graph)
{
    const trli_task_record *record = trli_graph_records(graph);
    trli_times times = trli_graph_times(graph);
    int32_t roots[TRL_URGENCIES] = {0};
    bool has_edges = graph->nroots < graph->task_count;
    graph->ranked_tau_inf = trli_graph_weights(graph, &times, graph->ctx->threads, graph->weight);
    find_classes(graph, roots);
    for (int32_t t = 0; has_edges && t < graph->task_count; ++t)
        if (record[t].end - record[t].first > 1)
            sort(graph, graph->successors + record[t].first, record[t].end - record[t].first);
    list_roots(graph, roots);
}

/* Ranking only compares weights, so changes of weights relative to the critical path count; the length of the
 * critical path counts, too, since policies see the weights. */
bool trli_graph_ranks_drifted(const trl_graph *graph)
{
    /* A mean change below this time is noise of the clock. */
    const double shortest = 0.5e-6;
    trli_times times = trli_graph_times(graph);
    double before = graph->ranked_tau_inf, sum = 0.0;
    for (int32_t t = 0; t < graph->task_count; ++t) sum += trli_task_time(graph, t, &times);
    if (times.measured && sum < shortest * graph->task_count) return false;
    double now = trli_graph_weights(graph, &times, graph->ctx->threads, graph->path);
    if (!(before > 0.0) || !(now > 0.0)) return before != now;
    if (fabs(now - before) > drift * before) return true;
    for (int32_t t = 0; t < graph->task_count; ++t) {
        if (fabs(graph->path[t] / now - graph->weight[t] / before) > drift) return true;
    }
    return false;
}

void trli_graph_average_time(trl_graph *graph, int32_t task, trl_kind kind, double seconds)
{
    /* Not a time: nothing was measured (the run failed before), a clock was set back, or the machine slept. */
    const double longest = 1e6;
    double *mean = graph->mean_s[kind] ? &graph->mean_s[kind][task] : NULL;
    if (!mean || !(seconds > 0) || seconds > longest) return;
    *mean = *mean > 0.0 ? (1.0 - latest) * *mean + latest * seconds : seconds;
}

void trli_graph_average_times(trl_graph *graph, _Atomic int64_t *run_ns)
{
    for (int32_t t = 0; t < graph->task_count; ++t) {
        /* Relaxed: the end of the run made everything visible. */
        const int64_t ns = atomic_exchange_explicit(&run_ns[t], 0, memory_order_relaxed);
        trli_graph_average_time(graph, t, trli_graph_info(graph)[t].kind, 1e-9 * (double)ns);
    }
}

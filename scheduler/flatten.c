/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From a list of edges to flat arrays, every step linear in tasks and dependencies. */
#include <stdlib.h>
#include <string.h>

#include "graph_impl.h"

/* Lists of tasks, one per task, in one array: list t is item[first[t]..first[t + 1]). */
typedef struct task_lists {
    int32_t *first;
    trl_task *item;
} task_lists;

/* Work arrays of a flattening; released at its end, whatever happens. */
typedef struct flattening {
    trl_graph *graph;
    int32_t tasks, edges;
    task_lists after, before; /* successors and predecessors */
    int32_t *mark;            /* per task */
    int32_t *height;          /* per task: longest path to an end, in tasks */
    trl_task *by_urgency;     /* the tasks, most urgent first */
    int32_t *bucket;          /* per value of a sort key */
} flattening;

static trl_err alloc_int32(trl_graph *graph, int64_t count, int32_t **result)
{
    void *memory;
    trl_err err = trl_memory_alloc(graph->ctx, (size_t)count * sizeof **result, "task graph", &memory);
    if (err == TRL_OK) *result = memset(memory, 0, (size_t)count * sizeof **result);
    return err;
}

static trl_err alloc_work(flattening *f)
{
    trl_err err;
    int64_t n = f->tasks, e = f->edges;
    int32_t **const per_task[] = {&f->after.first, &f->before.first, &f->mark,         &f->height,
                                  &f->by_urgency,  &f->bucket,       &f->graph->order, &f->graph->predecessors};
    int32_t **const per_edge[] = {&f->after.item, &f->before.item, &f->graph->successors};
    for (size_t i = 0; i < sizeof per_task / sizeof *per_task; ++i) TRL_TRY(alloc_int32(f->graph, n + 3, per_task[i]));
    for (size_t i = 0; i < sizeof per_edge / sizeof *per_edge; ++i) TRL_TRY(alloc_int32(f->graph, e + 1, per_edge[i]));
done:
    return err;
}

static void free_work(flattening *f)
{
    int32_t *const work[] = {f->after.first, f->after.item, f->before.first, f->before.item,
                             f->mark,        f->height,     f->by_urgency,   f->bucket};
    for (size_t i = 0; i < sizeof work / sizeof *work; ++i) {
        void *memory = work[i];
        trl_memory_free(f->graph->ctx, &memory);
    }
}

/* Counts in first[t + 1] become offsets in first[t]. */
static void accumulate(int32_t *first, int32_t n)
{
    for (int32_t t = 0; t < n; ++t) first[t + 1] += first[t];
}

/* Successor lists from the edges, in the order in which they were added. */
static void list_successors(flattening *f)
{
    const trli_edge *edge = f->graph->edges.data;
    int32_t *first = f->after.first;
    /* One place further on than usual: first[t + 1] is where list t is filled, and ends as the start of list t + 1. */
    for (int32_t i = 0; i < f->edges; ++i) ++first[edge[i].before + 2];
    accumulate(first, f->tasks + 1);
    for (int32_t i = 0; i < f->edges; ++i) f->after.item[first[edge[i].before + 1]++] = edge[i].after;
}

/* Remove repeated successors; mark[s] is the last task, plus one, that s was a successor of. */
static void remove_duplicates(flattening *f)
{
    int32_t *first = f->after.first, kept = 0, start = 0;
    for (trl_task t = 0; t < f->tasks; ++t) {
        int32_t end = first[t + 1];
        first[t] = kept;
        for (int32_t i = start; i < end; ++i) {
            trl_task s = f->after.item[i];
            if (f->mark[s] == t + 1) continue;
            f->mark[s] = t + 1;
            f->after.item[kept++] = s;
            ++f->graph->predecessors[s];
        }
        start = end;
    }
    first[f->tasks] = kept;
    f->edges = kept;
}

/* Kahn's algorithm: topological order, first in first out. Leaves in mark what each task still waits for; returns how
 * many tasks got a place. */
static int32_t sort_topologically(flattening *f)
{
    trl_task *order = f->graph->order;
    int32_t placed = 0;
    memcpy(f->mark, f->graph->predecessors, (size_t)f->tasks * sizeof *f->mark);
    for (trl_task t = 0; t < f->tasks; ++t) {
        if (f->mark[t] == 0) order[placed++] = t;
    }
    for (int32_t at = 0; at < placed; ++at) {
        for (int32_t i = f->after.first[order[at]]; i < f->after.first[order[at] + 1]; ++i) {
            trl_task s = f->after.item[i];
            if (--f->mark[s] == 0) order[placed++] = s;
        }
    }
    return placed;
}

/* The names of path[0..n) and of the first again, joined by arrows; of a long path its ends. NULL without memory. */
static char *join_names(const trl_graph *graph, const trl_task *path, int32_t n)
{
    enum { END = 50 };
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) return NULL;
    for (int32_t i = 0; i < n; ++i) {
        if (n > 2 * END && i == END) {
            fprintf(out, "... (%d more) ... -> ", n - 2 * END);
            i = n - END;
        }
        fprintf(out, "'%s' -> ", trli_graph_task_name(graph, path[i]));
    }
    fprintf(out, "'%s'", trli_graph_task_name(graph, path[0]));
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

/* Every task without a place waits for another such task: going back along those must come to a task seen before. */
static trl_err report_cycle(flattening *f)
{
    trl_graph *graph = f->graph;
    int32_t *waits_for = f->height, *step = f->bucket, length = 0;
    trl_task *path = f->by_urgency, task = -1;
    char *names;
    for (trl_task t = 0; t < f->tasks; ++t) {
        if (f->mark[t] == 0) continue;
        task = t;
        for (int32_t i = f->after.first[t]; i < f->after.first[t + 1]; ++i) waits_for[f->after.item[i]] = t;
    }
    for (; step[task] == 0; task = waits_for[task]) step[task] = ++length;
    int32_t cycle = length - step[task] + 1;
    for (int32_t i = cycle; i > 0; task = waits_for[task]) path[--i] = waits_for[task];
    names = join_names(graph, path, cycle);
    trl_err err = trl_fail(graph->ctx, TRL_ERR_INPUT, NULL,
                           "graph '%s': tasks wait for each other in a cycle: %s; remove one of these dependencies",
                           graph->name, names ? names : "");
    free(names);
    return err;
}

static int32_t find_heights(flattening *f)
{
    int32_t highest = 0;
    memset(f->height, 0, (size_t)f->tasks * sizeof *f->height);
    for (int32_t at = f->tasks - 1; at >= 0; --at) {
        trl_task t = f->graph->order[at];
        for (int32_t i = f->after.first[t]; i < f->after.first[t + 1]; ++i) {
            int32_t above = f->height[f->after.item[i]] + 1;
            if (above > f->height[t]) f->height[t] = above;
        }
        if (f->height[t] > highest) highest = f->height[t];
    }
    return highest;
}

/* Stable counting sort of the tasks in `from` by falling key, 0 <= key[t] <= most < tasks + 1. */
static void sort_falling(flattening *f, const int32_t *key, int32_t most, const trl_task *from, trl_task *to)
{
    memset(f->bucket, 0, ((size_t)most + 2) * sizeof *f->bucket);
    for (int32_t i = 0; i < f->tasks; ++i) ++f->bucket[most - key[i] + 1];
    accumulate(f->bucket, most + 1);
    for (int32_t i = 0; i < f->tasks; ++i) to[f->bucket[most - key[from[i]]]++] = from[i];
}

/* Priorities from depth (the longest path to an end), then from the number of consumers; poll tasks come first. */
static void find_urgencies(flattening *f)
{
    trl_graph *graph = f->graph;
    trli_task_record *record = trli_graph_records(graph);
    int32_t highest = find_heights(f), most = 0;
    for (trl_task t = 0; t < f->tasks; ++t) {
        f->mark[t] = f->after.first[t + 1] - f->after.first[t];
        if (f->mark[t] > most) most = f->mark[t];
        if (f->mark[t] == 0) ++graph->sinks;
        int64_t below = highest - f->height[t];
        bool poll = record[t].flags & TRL_TASK_POLL;
        record[t].urgency = (uint8_t)(poll ? 0 : 1 + below * (TRLI_URGENCIES - 1) / (highest + 1));
        ++graph->urgency_count[record[t].urgency];
    }
    /* Least significant key first; the lists of predecessors are not made yet and lend their memory. */
    trl_task *half = f->before.first;
    sort_falling(f, f->mark, most, graph->order, f->by_urgency);
    sort_falling(f, f->height, highest, f->by_urgency, half);
    for (trl_task t = 0; t < f->tasks; ++t) f->mark[t] = record[t].flags & TRL_TASK_POLL ? 1 : 0;
    sort_falling(f, f->mark, 1, half, f->by_urgency);
    memset(half, 0, ((size_t)f->tasks + 1) * sizeof *half);
}

/* Successor lists in the order of urgency: each task, the most urgent first, puts itself on the lists of its
 * predecessors. */
static void list_by_urgency(flattening *f)
{
    trli_task_record *record = trli_graph_records(f->graph);
    int32_t *first = f->before.first, *fill = f->mark;
    for (trl_task t = 0; t < f->tasks; ++t) first[t + 1] = f->graph->predecessors[t];
    accumulate(first, f->tasks);
    memcpy(fill, first, (size_t)f->tasks * sizeof *fill);
    for (trl_task t = 0; t < f->tasks; ++t) {
        record[t].first = record[t].end = f->after.first[t];
        for (int32_t i = f->after.first[t]; i < f->after.first[t + 1]; ++i)
            f->before.item[fill[f->after.item[i]]++] = t;
    }
    for (int32_t at = 0; at < f->tasks; ++at) {
        trl_task t = f->by_urgency[at];
        for (int32_t i = first[t]; i < first[t + 1]; ++i) {
            f->graph->successors[record[f->before.item[i]].end++] = t;
        }
    }
}

trl_err trli_graph_flatten(trl_graph *graph)
{
    trl_err err;
    flattening f = {.graph = graph, .tasks = graph->task_count};
    if (graph->edges.count > INT32_MAX - 1 || graph->task_count > INT32_MAX - 2) {
        return trl_fail(graph->ctx, TRL_ERR_INPUT, NULL,
                        "graph '%s' has more than %d tasks or dependencies; use fewer patches", graph->name,
                        INT32_MAX - 2);
    }
    f.edges = (int32_t)graph->edges.count;
    TRL_TRY(alloc_work(&f));
    list_successors(&f);
    remove_duplicates(&f);
    if (sort_topologically(&f) < f.tasks) TRL_TRY(report_cycle(&f));
    find_urgencies(&f);
    list_by_urgency(&f);
done:
    free_work(&f);
    return err;
}

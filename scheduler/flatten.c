/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From a list of edges to flat arrays. Every step takes time linear in tasks and dependencies. */
#include <string.h>

#include "graph_impl.h"
#include "memstream_impl.h"

/* Lists of tasks, one per task, in one array: list t is item[first[t]..first[t + 1]). */
typedef struct task_lists {
    int32_t *first;
    int32_t *item;
} task_lists;

/* Work arrays of a flattening, freed at its end in any case. */
typedef struct flattening {
    trl_graph *graph;
    int32_t tasks, edges;
    task_lists after; /* successors; the items stay with the graph */
    int32_t *mark;    /* per task */
} flattening;

/* Memory is not cleared. */
static trl_err alloc_int32(trl_graph *graph, int64_t count, int32_t **result)
{
    void *memory;
    trl_err err = trl_memory_alloc(graph->ctx, (size_t)count * sizeof **result, "task graph", &memory);
    if (err == TRL_OK) *result = memory;
    return err;
}

static void free_int32(trl_graph *graph, int32_t *array)
{
    void *memory = array;
    trl_memory_free(graph->ctx, &memory);
}

static trl_err alloc_arrays(flattening *f)
{
    trl_err err;
    TRL_TRY(alloc_int32(f->graph, f->tasks + 3, &f->after.first));
    TRL_TRY(alloc_int32(f->graph, f->tasks + 1, &f->mark));
    TRL_TRY(alloc_int32(f->graph, f->tasks + 1, &f->graph->order));
    TRL_TRY(alloc_int32(f->graph, f->tasks + 1, &f->graph->predecessors));
    TRL_TRY(alloc_int32(f->graph, f->edges + 1, &f->graph->successors));
    f->after.item = f->graph->successors;
    memset(f->after.first, 0, ((size_t)f->tasks + 3) * sizeof *f->after.first);
    memset(f->mark, 0, ((size_t)f->tasks + 1) * sizeof *f->mark);
    memset(f->graph->predecessors, 0, ((size_t)f->tasks + 1) * sizeof *f->mark);
done:
    return err;
}

/* Turn the counts in first[t + 1] into offsets in first[t]. */
static void accumulate(int32_t *first, int32_t n)
{
    for (int32_t t = 0; t < n; ++t) first[t + 1] += first[t];
}

/* Make lists of successors from the edges, in the order in which these were added. */
static void list_successors(flattening *f)
{
    const trli_dependency *edge = f->graph->edges.data;
    int32_t *first = f->after.first;
    /* Shifted by one: first[t + 1] is where list t is filled, and ends as the start of list t + 1. */
    for (int32_t i = 0; i < f->edges; ++i) ++first[edge[i].before + 2];
    accumulate(first, f->tasks + 1);
    for (int32_t i = 0; i < f->edges; ++i) f->after.item[first[edge[i].before + 1]++] = edge[i].after;
}

/* Remove repeated successors. mark[s]: the last task, plus one, with successor s. */
static void remove_duplicates(flattening *f)
{
    int32_t *first = f->after.first, kept = 0, start = 0;
    for (int32_t t = 0; t < f->tasks; ++t) {
        int32_t end = first[t + 1];
        first[t] = kept;
        for (int32_t i = start; i < end; ++i) {
            int32_t s = f->after.item[i];
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

/* Kahn's algorithm: topological order, first in first out. Leaves in mark what each task still waits for; returns
 * how many tasks were ordered. */
static int32_t sort_topologically(flattening *f)
{
    int32_t *order = f->graph->order;
    int32_t placed = 0;
    memcpy(f->mark, f->graph->predecessors, (size_t)f->tasks * sizeof *f->mark);
    for (int32_t t = 0; t < f->tasks; ++t) {
        if (f->mark[t] == 0) order[placed++] = t;
    }
    for (int32_t at = 0; at < placed; ++at) {
        for (int32_t i = f->after.first[order[at]]; i < f->after.first[order[at] + 1]; ++i) {
            int32_t s = f->after.item[i];
            if (--f->mark[s] == 0) order[placed++] = s;
        }
    }
    return placed;
}

/* The names of path[0..n) and of its first task again, joined by arrows; a long path is shortened to its ends. NULL
 * without memory. */
static char *join_names(const trl_graph *graph, const int32_t *path, int32_t n)
{
    enum { END = 50 };
    trli_memstream stream;
    if (!trli_memstream_open(graph->ctx, &stream)) return NULL;
    FILE *out = stream.out;
    for (int32_t i = 0; i < n; ++i) {
        if (n > 2 * END && i == END) {
            fprintf(out, "... (%d more) ... -> ", n - 2 * END);
            i = n - END;
        }
        fprintf(out, "'%s' -> ", trli_graph_task_name(graph, path[i]));
    }
    fprintf(out, "'%s'", trli_graph_task_name(graph, path[0]));
    return trli_memstream_close(&stream) ? stream.text : NULL;
}

/* Every task that is not ordered waits for another such task: following these backwards must return to a task seen
 * before. */
static trl_err report_cycle(const flattening *f)
{
    trl_graph *graph = f->graph;
    int32_t *waits_for = NULL, *step = NULL, *path = NULL, length = 0, task = -1;
    trl_err err;
    TRL_TRY(alloc_int32(graph, f->tasks, &waits_for));
    TRL_TRY(alloc_int32(graph, f->tasks, &step));
    TRL_TRY(alloc_int32(graph, f->tasks + 1, &path));
    memset(step, 0, (size_t)f->tasks * sizeof *step);
    for (int32_t t = 0; t < f->tasks; ++t) {
        if (f->mark[t] == 0) continue;
        task = t;
        for (int32_t i = f->after.first[t]; i < f->after.first[t + 1]; ++i) waits_for[f->after.item[i]] = t;
    }
    for (; step[task] == 0; task = waits_for[task]) step[task] = ++length;
    int32_t cycle = length - step[task] + 1;
    for (int32_t i = cycle; i > 0; task = waits_for[task]) path[--i] = waits_for[task];
    char *names = join_names(graph, path, cycle);
    err = trl_fail(graph->ctx, TRL_ERR_INPUT, NULL,
                   "graph '%s': tasks wait for each other in a cycle: %s; remove one of these dependencies",
                   graph->name, names ? names : "");
    trli_free(names);
done:
    free_int32(graph, waits_for);
    free_int32(graph, step);
    free_int32(graph, path);
    return err;
}

/* Where the successors of each task lie. */
static void set_ranges(const flattening *f)
{
    trli_task_record *record = trli_graph_records(f->graph);
    for (int32_t t = 0; t < f->tasks; ++t) {
        record[t].first = f->after.first[t];
        record[t].end = f->after.first[t + 1];
    }
}

/* Without dependencies the order of addition is topological, and there is nothing to count. */
static trl_err flatten_unordered(trl_graph *graph, int32_t tasks)
{
    trl_err err;
    TRL_TRY(alloc_int32(graph, tasks + 1, &graph->order));
    TRL_TRY(alloc_int32(graph, tasks + 1, &graph->predecessors));
    TRL_TRY(alloc_int32(graph, 1, &graph->successors));
    for (int32_t t = 0; t < tasks; ++t) graph->order[t] = t;
    memset(graph->predecessors, 0, ((size_t)tasks + 1) * sizeof *graph->predecessors);
done:
    return err;
}

trl_err trli_graph_flatten(trl_graph *graph)
{
    trl_err err;
    flattening f = {.graph = graph, .tasks = graph->task_count};
    if (graph->edges.count > INT32_MAX - 1) {
        return trl_fail(graph->ctx, TRL_ERR_INPUT, NULL, "graph '%s' has more than %d dependencies; use fewer patches",
                        graph->name, INT32_MAX - 1);
    }
    f.edges = (int32_t)graph->edges.count;
    if (f.edges == 0) return flatten_unordered(graph, f.tasks);
    TRL_TRY(alloc_arrays(&f));
    list_successors(&f);
    remove_duplicates(&f);
    if (sort_topologically(&f) < f.tasks) TRL_TRY(report_cycle(&f));
    set_ranges(&f);
done:
    free_int32(graph, f.after.first);
    free_int32(graph, f.mark);
    return err;
}

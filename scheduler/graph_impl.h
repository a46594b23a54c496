/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of a task graph: what freeze leaves for the policies. Everything is a flat array, tasks are int32 indices. */
#ifndef TRL_GRAPH_IMPL_H
#define TRL_GRAPH_IMPL_H

#include <stdatomic.h>
#include <time.h>

#include <trl_graph.h>

#include "context_impl.h"
#include "policy_impl.h"

/* What a run reads of a task: half a cache line. */
typedef struct trli_task_record {
    trl_task_fn run;
    void *data;
    int32_t first, end; /* its successors: graph->successors[first..end), the most urgent first */
    int32_t chunks;
    uint8_t flags;
    uint8_t urgency; /* class of its priority: 0 is served first */
} trli_task_record;

/* Priority classes: poll tasks, then equal ranges of the length of the longest path to an end of the graph. */
enum { TRLI_URGENCIES = 9 };

typedef struct trli_edge {
    trl_task before, after;
} trli_edge;

/* A data handle while the graph is built. */
typedef struct trli_handle {
    int64_t name;    /* offset in graph->names */
    trl_task writer; /* the last one; -1: none yet */
    int32_t readers; /* first of the readers since, an index in graph->readers; -1: none */
} trli_handle;

typedef struct trli_reader {
    trl_task task;
    int32_t next; /* -1: end of the list */
} trli_reader;

struct trl_graph {
    trl_context *ctx;
    char *name;
    bool sealed, frozen; /* freeze was called; it succeeded */
    bool timing;
    int32_t task_count, polls;             /* tasks; those with TRL_TASK_POLL */
    int32_t sinks;                         /* tasks without successors: all tasks are complete when these are */
    int32_t urgency_count[TRLI_URGENCIES]; /* tasks of each class */

    /* Growing while the graph is built; the last three are released by freeze. */
    trli_array records; /* trli_task_record */
    trli_array costs;   /* double */
    trli_array name_at; /* int64_t: offset in names */
    trli_array names;   /* char: all names, NUL between them */
    trli_array edges;   /* trli_edge */
    trli_array handles; /* trli_handle */
    trli_array readers; /* trli_reader */

    /* Made by freeze. */
    int32_t *successors;
    int32_t *predecessors; /* how many a task has */
    trl_task *order;       /* topological, first in first out */
    double *path;          /* scratch of trl_graph_get_stats */
    void *state[TRLI_POLICIES];

    /* The run in progress. Relaxed throughout: a task that must see an error is ordered after it by its dependencies,
     * for all others seeing it late only means work that nobody needs. */
    _Atomic int error;

    /* Timing. Relaxed: the counters are read when no run is in progress. */
    _Atomic int64_t *task_ns;
    /* Of all runs, the time with poll tasks started and not complete. Of the last run, the time of workers idle meanwhile. */
    _Atomic int64_t outstanding_ns, idle_ns;
    double idle_share; /* ns: of all runs, divided by the number of workers */
    int64_t runs, timed_runs;
    double timed_wall, timed_share; /* s: of timed runs; of their tasks divided by the number of workers */
};

static inline trli_task_record *trli_graph_records(const trl_graph *graph)
{
    return graph->records.data;
}

const char *trli_graph_task_name(const trl_graph *graph, trl_task task);

/* Flatten the edges into successors, predecessors and order, and set each task's range, urgency and the counts. */
TRL_NODISCARD trl_err trli_graph_flatten(trl_graph *graph);

/* Call a task, or skip it after an error, and record its error and time. Returns whether it is complete; `again`: it
 * was called in this run before and asked for more. Thread: any worker inside the run. */
bool trli_task_call(trl_graph *graph, trli_worker *worker, trl_task task, int chunk, bool again);

/* A poll task waits and none did before; none waits any more. In either order from two threads the sum is right. */
void trli_outstanding_begin(trl_graph *graph);
void trli_outstanding_end(trl_graph *graph);

static inline int64_t trli_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif

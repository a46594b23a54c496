/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Task graphs: built once, frozen, run many times by a policy on the workers of a context. Knows no PDE. */
#ifndef TRL_GRAPH_H
#define TRL_GRAPH_H

#include <stdio.h>

#include <trl_context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_graph trl_graph;
typedef struct trl_workers trl_workers;
typedef int32_t trl_task;   /* index of a task in its graph */
typedef int32_t trl_handle; /* index of a data handle in its graph */

/* What a task function gets. */
typedef struct trl_task_args {
    int chunk, chunks; /* this call's share of a wide task: 0 <= chunk < chunks */
    int worker;        /* 0 <= worker < number of workers: index for thread scratch */
    bool failed;       /* an error was recorded in this run: only TRL_TASK_ALWAYS tasks are still called */
} trl_task_args;

/* Does the work and sets *done (true on entry). A TRL_TASK_POLL task may set *done = false: it is called again later
 * and no worker waits for it; once called, it is called until it is done, after an error of another task too. Any error
 * completes the task and stops the run's other work; the first one is returned by trl_graph_run. */
typedef trl_err (*trl_task_fn)(void *data, const trl_task_args *args, bool *done);

enum {
    TRL_TASK_POLL = 1,   /* may ask to be called again (communication) */
    TRL_TASK_ALWAYS = 2, /* starts even after an error, so that no other rank waits for it */
};

typedef struct trl_task_desc {
    const char *name; /* copied */
    trl_task_fn run;
    void *data; /* not owned */
    int chunks; /* 1: narrow; more: a wide task, whose chunks may run at once on several workers */
    unsigned flags;
    double cost; /* estimated seconds or any consistent unit; 0: unknown */
} trl_task_desc;

typedef enum trl_access { TRL_READ, TRL_WRITE, TRL_READ_WRITE } trl_access;

TRL_API TRL_NODISCARD trl_err trl_graph_create(trl_context *ctx, const char *name, trl_graph **graph);
TRL_API void trl_graph_destroy(trl_graph **graph);

/* Before freeze. Tasks are added in a valid serial order when accesses are used. */
TRL_API TRL_NODISCARD trl_err trl_graph_add_task(trl_graph *graph, const trl_task_desc *desc, trl_task *task);
TRL_API TRL_NODISCARD trl_err trl_graph_add_dependency(trl_graph *graph, trl_task before, trl_task after);
/* A data handle stands for a piece of data. add_access derives the dependencies of sequential consistency in the order
 * in which accesses are added: a reader after the last writer, a writer after the last writer and all readers since. */
TRL_API TRL_NODISCARD trl_err trl_graph_add_handle(trl_graph *graph, const char *name, trl_handle *handle);
TRL_API TRL_NODISCARD trl_err trl_graph_add_access(trl_graph *graph, trl_task task, trl_handle handle,
                                                   trl_access access);
/* Check (a cycle is an INPUT error that names the tasks on its path) and flatten; repeated dependencies count once.
 * Linear in tasks and dependencies. Once per graph; after a failure the graph can only be destroyed. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_graph_freeze(trl_graph *graph);

/* The workers of a context: one pinned thread per core of the rank's share, the caller of trl_graph_run being worker 0.
 * policy: "serial" (topological FIFO, no atomics, caller only), "priority" or "hybrid" (ready queue on all workers).
 * Unknown names are an INPUT error that lists the known ones. count: 1 for serial, else the threads of the context;
 * policy: the name given. Create and destroy on the thread that runs graphs: it is pinned in between. */
TRL_API TRL_NODISCARD trl_err trl_workers_create(trl_context *ctx, const char *policy, trl_workers **workers);
TRL_API void trl_workers_destroy(trl_workers **workers);
TRL_API int trl_workers_count(const trl_workers *workers);
TRL_API const char *trl_workers_policy(const trl_workers *workers);

/* Run a frozen graph to the end. Allocates nothing. Collective only as far as its tasks communicate. Thread: one run at
 * a time per workers and per graph. Returns the first error of a task; then the graph may be run again. */
TRL_API TRL_NODISCARD trl_err trl_graph_run(trl_graph *graph, trl_workers *workers);

typedef struct trl_graph_stats {
    int64_t tasks, dependencies, runs;
    double tau_1;   /* sum of the tasks' mean times, s; before the first timed run: of costs (all unknown: 1 each) */
    double tau_inf; /* longest path, s; the chunks of a wide task count as running at once */
    double outstanding; /* s in all runs with poll tasks (communication) started and not complete */
    double idle;        /* s of it that workers had nothing else to do, mean over the workers */
    double overhead_ns; /* mean over timed runs of (wall time - time in tasks / workers) / tasks */
} trl_graph_stats;
/* Time every task of following runs (two clock reads per task; of a poll task the last call). Off at first. */
TRL_API void trl_graph_set_timing(trl_graph *graph, bool on);
TRL_API void trl_graph_get_stats(const trl_graph *graph, trl_graph_stats *stats);
/* Amdahl score (1 - 1/S_inf)/(1 - 1/n) with S_inf = tau_1/tau_inf, n workers, at most 1 (Robison 2014, sec. 3.5).
 * 0 for n = 1. */
TRL_API double trl_amdahl_score(double tau_1, double tau_inf, int n);

/* Graphviz text of the task graph, edges producer -> consumer. Fails with IO. */
TRL_API TRL_NODISCARD trl_err trl_graph_write_dot(const trl_graph *graph, FILE *out);

#ifdef __cplusplus
}
#endif
#endif

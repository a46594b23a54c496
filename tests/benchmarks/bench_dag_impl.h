/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Task graphs as data, and the ways to run them: what the benchmarks of the task runtime share. */
#ifndef TRLI_BENCH_DAG_IMPL_H
#define TRLI_BENCH_DAG_IMPL_H

#include <stdatomic.h>

#include <trl_graph.h>

#include "bench_baseline.h"
#include "bench_impl.h"

/* ---- bench_dag.c: shapes ---- */

/* Tasks in a valid serial order. All zero: empty, and safe to destroy. */
typedef struct trli_dag {
    int32_t tasks, dependencies, resources;
    int32_t *pred_first, *predecessors; /* as in trli_dag_view */
    int32_t *first, *successors;        /* the same edges from their other end */
    int32_t *parent;                    /* [resources] or -1 */
    int32_t *lock_first, *locks;        /* of a task, as predecessors; NULL: none */
    trl_task *names;                    /* [tasks] scratch of trli_dag_build */
    trl_resource *resource_names;       /* [resources] likewise */
} trli_dag;

/* All fail with MEMORY; the dag is always safe to destroy. */
TRL_NODISCARD trl_err trli_dag_independent(trl_context *ctx, int32_t n, trli_dag *dag);
TRL_NODISCARD trl_err trli_dag_chain(trl_context *ctx, int32_t n, trli_dag *dag);
/* n x n tasks, each after its left and its upper neighbour. */
TRL_NODISCARD trl_err trli_dag_wavefront(trl_context *ctx, int32_t n, trli_dag *dag);
/* Each task after 1 to 5 of the `window` before it, 3 in the mean. */
TRL_NODISCARD trl_err trli_dag_random(trl_context *ctx, int32_t n, int32_t window, trli_dag *dag);
/* `width` points, `steps` times: each after itself and its neighbours in the step before. */
TRL_NODISCARD trl_err trli_dag_stencil(trl_context *ctx, int32_t width, int32_t steps, trli_dag *dag);
/* Let each task lock 1 or 2 of `roots` resources and their `children` each; one lock in 16 is of a root. */
TRL_NODISCARD trl_err trli_dag_add_locks(trl_context *ctx, int32_t roots, int32_t children, trli_dag *dag);
/* The same tasks; whoever has a conflict with an earlier one waits for it instead. */
TRL_NODISCARD trl_err trli_dag_order_conflicts(trl_context *ctx, const trli_dag *dag, trli_dag *ordered);
void trli_dag_destroy(trli_dag *dag);

/* A frozen graph whose task t gets data + t*stride. */
TRL_NODISCARD trl_err trli_dag_build(trl_context *ctx, const trli_dag *dag, trl_task_fn run, void *data, size_t stride,
                                     trl_graph **graph);

/* A number below n, from a sequence. */
int32_t trli_draw(uint64_t *sequence, int32_t n);

/* ---- bench_runtime.c: ways to run them ---- */

/* The floor: one thread, a FIFO array, atomic counters of predecessors. */
typedef struct trli_replay {
    const trli_dag *dag;
    _Atomic int32_t *missing;
    int32_t *queue;
    trl_task_fn run;
} trli_replay;
TRL_NODISCARD trl_err trli_replay_create(trl_context *ctx, const trli_dag *dag, trl_task_fn run, trli_replay *replay);
void trli_replay_destroy(trli_replay *replay);
void trli_replay_run(trli_replay *replay);

enum { TRLI_BASELINES_MAX = 4 };
typedef struct trli_baselines {
    int count;
    const trli_baseline *list[TRLI_BASELINES_MAX];
} trli_baselines;
/* Load those that the build found, for good, and print which it did not find. */
void trli_baselines_load(trli_bench *bench, trli_baselines *baselines);
/* Start them all, on pinned threads where those of Trellis are. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_baselines_start(trl_context *ctx, const trli_baselines *baselines, int threads);
void trli_baselines_stop(const trli_baselines *baselines);

/* Seconds in which a cache line goes from the first core to another one and back. */
TRL_NODISCARD trl_err trli_round_trip(trl_context *ctx, int other, double *seconds);
/* Print and report how busy the machine is, and the seconds in which a cache line goes from the first core to the
 * second and back (the result; 0 for one thread), and to the last of `threads`. `key`: "before", "after". */
TRL_NODISCARD trl_err trli_round_trips(trli_bench *bench, int threads, const char *key, double *seconds);
/* Print a caution if the cores moved between two measurements. */
void trli_round_trips_compare(double before, double after);

/* Counts of threads to measure with: 1, 2, 4, .. and all. Returns how many; at most `max`. */
int trli_thread_counts(const trli_bench *bench, int *counts, int max);

/* ---- bench_busy.c: tasks that take time ---- */

/* Multiply and add n times, each from the result before. */
double trli_busy(int64_t n, double x);
/* How many of them fill a second, measured. */
double trli_busy_rate(bool quick);

/* ---- gates ---- */

/* A value that must not be above (or, for a rate, below) a limit. NAN: not measured. */
typedef struct trli_gate {
    const char *what;
    double value, limit;
    bool at_least;
} trli_gate;
bool trli_gate_met(const trli_gate *gate);
/* One line each, "ok" or "MISSED", and the list under "gates" of the report. */
void trli_gates_report(trli_bench *bench, const trli_gate *gate, int n);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of the benchmark `tasks`: what its parts share. */
#ifndef TRLI_BENCH_TASKS_IMPL_H
#define TRLI_BENCH_TASKS_IMPL_H

#include "bench_dag_impl.h"

enum { TRLI_WAYS_MAX = 3 + TRLI_BASELINES_MAX };

/* A way to run a graph; which members are set says how. */
typedef struct trli_way {
    const char *name;
    int repeats; /* runs in a round: short ones would measure the clock and waking up */
    trl_graph *graph;
    trl_workers *workers;
    trli_replay *replay;
    const trli_baseline *baseline;
    void *made; /* by the baseline */
    trl_err (*loop)(void *data);
    void *data; /* of loop */
} trli_way;

/* One measurement: ways that take turns, the first of them being the floor. */
typedef struct trli_tasks {
    trli_bench *bench;
    trl_workers *workers;
    const trli_baselines *baselines;
    const char *name; /* of the case */
    int threads, rounds, ways;
    int32_t tasks; /* in a run; what numbers are divided by */
    trli_way way[TRLI_WAYS_MAX];
    trli_contender contender[TRLI_WAYS_MAX];
    char shares[TRLI_WAYS_MAX][64]; /* of the workers, in words */
} trli_tasks;

/* What gates look at; NAN where nothing was measured. */
typedef struct trli_tasks_score {
    double chain, wavefront, independent, wide, locks, conflicts, construction;
} trli_tasks_score;

/* ---- bench_tasks.c ---- */

/* An empty task. */
trl_err trli_tasks_nothing(void *data, const trl_task_args *args, bool *done);
void trli_tasks_nothing_plain(void *data, int32_t task);

trli_way *trli_tasks_add(trli_tasks *tasks, const char *name, int repeats);
/* Run a graph of Trellis, untimed, until the workers no longer time each of its tasks: they do so in the first runs. */
TRL_NODISCARD trl_err trli_tasks_warm(trli_way *way);
/* Measure, then print and report a line for each way. */
TRL_NODISCARD trl_err trli_tasks_measure(trli_tasks *tasks);
/* Time of a way over that of another, the median of the rounds; NAN: the name is unknown. */
double trli_tasks_ratio(const trli_tasks *tasks, const char *name, const char *other);
/* Median seconds of a round of a way. */
double trli_tasks_seconds(const trli_tasks *tasks, const char *name);
/* Destroy what the ways hold. */
void trli_tasks_clear(trli_tasks *tasks);

/* ---- each a part of the benchmark, on workers that are started ---- */

TRL_NODISCARD trl_err trli_tasks_construct(trli_tasks *tasks, trli_tasks_score *score); /* bench_tasks_build.c */
TRL_NODISCARD trl_err trli_tasks_dynamic(trli_tasks *tasks);                            /* bench_tasks_spawn.c */
TRL_NODISCARD trl_err trli_tasks_loops(trli_tasks *tasks);                              /* bench_tasks_loop.c */
TRL_NODISCARD trl_err trli_tasks_rounds(trli_tasks *tasks);                             /* bench_tasks_calls.c */
TRL_NODISCARD trl_err trli_tasks_conflicts(trli_tasks *tasks, trli_tasks_score *score); /* bench_tasks_conflicts.c */

#endif

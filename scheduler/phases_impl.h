/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Phases in a run: groups of task types whose tasks never overlap in time. */
#ifndef TRL_PHASES_IMPL_H
#define TRL_PHASES_IMPL_H

#include "worker_impl.h"

struct trli_run_state;

/* Of a graph. */
typedef struct trli_phase {
    int64_t name;
    int first_type, end_type;
} trli_phase;

typedef struct trli_phases {
    int count;
    int16_t of_type[TRL_TASK_TYPES]; /* phase or TRLI_NONE */
    _Atomic int current;
    _Atomic int64_t *open; /* [count] tasks that exist and are not complete */
    int64_t *at_start;     /* [count] of the graph */
    int32_t *held;         /* [count] ready tasks of phases whose turn it is not, by their links */
    pthread_mutex_t lock;  /* guards `held` and the turn */
} trli_phases;

TRL_NODISCARD trl_err trli_phases_create(struct trli_run_state *run);
void trli_phases_destroy(struct trli_run_state *run);
void trli_phases_start(struct trli_run_state *run);
/* Whether it is the turn of a ready task's phase; if not, the task is held back. */
bool trli_phase_admits(struct trli_run_state *run, int32_t task);
/* A task of a type was spawned; one is complete. */
void trli_phase_enter(struct trli_run_state *run, trli_worker *worker, int type);
void trli_phase_leave(struct trli_run_state *run, trli_worker *worker, int type);

#endif

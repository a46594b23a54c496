/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Resources in a run: which tasks hold them, which wait. */
#ifndef TRL_LOCKS_IMPL_H
#define TRL_LOCKS_IMPL_H

#include "graph_impl.h"
#include "worker_impl.h"

struct trli_run_state;

/* Modes in which a task wants a resource, beside TRLI_USE and TRLI_LOCK: the task wants a descendant. Wants of
 * spawned tasks are stored without ancestors, which TRLI_UNFOLD says. */
enum { TRLI_USE_BELOW = 2, TRLI_LOCK_BELOW = 3, TRLI_MODES = 4, TRLI_UNFOLD = 8 };
enum { TRLI_RESOURCE_LEVELS = 64, TRLI_SPAWN_WANTS = 4 /* wants that a spawned task has room for in its node */ };

/* A resource in a run, see locks.c. */
typedef struct trli_lock {
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t state; /* what is granted here and below; modes for which tasks wait */
    _Atomic bool busy;                               /* guards the following members */
    int8_t turn;                                     /* mode whose list is looked at first */
    int32_t first[TRLI_MODES], last[TRLI_MODES];     /* lists of waiting tasks, by their links */
} trli_lock;

TRL_NODISCARD trl_err trli_locks_create(struct trli_run_state *run);
void trli_locks_destroy(struct trli_run_state *run);
void trli_locks_start(struct trli_run_state *run);
/* Take all of n wants at once (true), or leave the task waiting at the first resource that is not free, holding
 * nothing (false). A waiting task comes back through trli_hand_over and must then come here again, after an error
 * too; when this returns false the task may already be complete. */
bool trli_locks_acquire(struct trli_run_state *run, trli_worker *worker, int32_t task, int32_t n,
                        const trli_want *want);
void trli_locks_release(struct trli_run_state *run, trli_worker *worker, int32_t n, const trli_want *want);

/* Add the ancestors to the normalised wants of a task: each resource once with its mode, ascending. There is room.
 * Returns their number. */
int32_t trli_graph_unfold_wants(const trl_graph *graph, int32_t n, trli_want *want);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The operator pool: chunks of wide tasks. */
#ifndef TRL_WIDE_IMPL_H
#define TRL_WIDE_IMPL_H

#include "share_impl.h"

struct trli_run_state;

/* Wide tasks in the order in which they became ready: a ring with room for all of them. */
typedef struct trli_wide_queue {
    alignas(TRLI_CACHE_LINE) _Atomic uint32_t head; /* next position to take from */
    alignas(TRLI_CACHE_LINE) _Atomic uint32_t tail; /* next position to fill */
    _Atomic uint64_t *slot; /* [mask + 1] of position p, at p & mask: the task, and p + 1 in the upper half */
    uint32_t mask;
} trli_wide_queue;

/* The operator pool: tasks with a priority before all others, whose chunks they wait for one at a time. */
enum { TRLI_WIDE_FIRST, TRLI_WIDE_OTHER, TRLI_WIDE_QUEUES };
typedef struct trli_wide_pool {
    trli_wide_queue queue[TRLI_WIDE_QUEUES];
    int32_t count, shares; /* number of wide tasks; shares of each */
    int32_t *first_share;  /* [tasks] of wide tasks, in `share` */
    trli_share *share;
} trli_wide_pool;

TRL_NODISCARD trl_err trli_wide_create(struct trli_run_state *run);
void trli_wide_destroy(struct trli_run_state *run);
void trli_wide_start(struct trli_run_state *run);
/* Make a task's chunks available. */
void trli_wide_open(struct trli_run_state *run, int32_t task);
/* Take `count` chunks from `chunk` on, and their task; TRLI_NONE: none are left. */
int32_t trli_wide_take(struct trli_run_state *run, const trli_worker *worker, int *chunk, int *count);
bool trli_wide_visible(const struct trli_run_state *run);
/* So many chunks are done; returns whether they were the last of their task. */
bool trli_wide_done(struct trli_run_state *run, int32_t task, int count);

#endif

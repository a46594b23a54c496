/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Poll tasks in a run. */
#ifndef TRL_POLLS_IMPL_H
#define TRL_POLLS_IMPL_H

#include "worker_impl.h"

struct trli_run_state;

/* Started poll tasks. */
typedef struct trli_polls {
    alignas(TRLI_CACHE_LINE) _Atomic int32_t open; /* started and not complete */
    _Atomic bool owned;                            /* a worker tests them, and owns `waiting` */
    _Atomic int64_t tested_ns;                     /* when a round ended last */
    _Atomic int32_t started;                       /* not yet seen by an owner, by their links */
    int32_t waiting;                               /* the others, by their links */
} trli_polls;

void trli_polls_start(struct trli_run_state *run);
/* A poll task asked for more. */
void trli_poll_later(struct trli_run_state *run, int32_t task);
/* Become the one who tests poll tasks, if there are any and nobody does. */
bool trli_polls_own(struct trli_run_state *run);
void trli_polls_disown(struct trli_run_state *run);
/* ns of all runs so far with poll tasks open; negative: unknown just now, one worker notes an end and another a
 * beginning. */
int64_t trli_polls_outstanding(const struct trli_run_state *run);
/* Call all started poll tasks once. Only by their owner. */
void trli_polls_round(struct trli_run_state *run, trli_worker *worker);
/* Between two tasks: a round, when the last one is long ago. */
void trli_polls_if_due(struct trli_run_state *run, trli_worker *worker);

#endif

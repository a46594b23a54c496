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
    _Atomic bool owned;                            /* a worker tests the tasks, and owns `waiting` */
    _Atomic int64_t tested_ns;                     /* end of the last round */
    _Atomic int32_t started;                       /* tasks that no owner has seen yet, by their links */
    int32_t waiting;                               /* the other tasks, by their links */
} trli_polls;

void trli_polls_start(struct trli_run_state *run);
/* A poll task asked to be called again. */
void trli_poll_later(struct trli_run_state *run, int32_t task);
/* Become the owner of the poll tasks, if there are any and they have none. */
bool trli_polls_own(struct trli_run_state *run);
void trli_polls_disown(struct trli_run_state *run);
/* ns with poll tasks open in all runs so far; negative: unknown at this moment, since one worker is noting an end
 * and another one a start. */
int64_t trli_polls_outstanding(const struct trli_run_state *run);
/* Call all started poll tasks once. Only by their owner. */
void trli_polls_round(struct trli_run_state *run, trli_worker *worker);
/* Whether something is under way that calls between tasks, or between chunks of one, bring on. */
bool trli_polls_wanted(const struct trli_run_state *run);
/* Called between two tasks: test all tasks, and the messages of a late agreement, if the last round ended long ago. */
void trli_polls_if_due(struct trli_run_state *run, trli_worker *worker);

#endif

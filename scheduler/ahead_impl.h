/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tasks that do the work of those that come after them. */
#ifndef TRL_AHEAD_IMPL_H
#define TRL_AHEAD_IMPL_H

#include <trl_graph.h>

/* From a task of a run: whether these tasks of its graph wait for the present task, and for nothing else but one
 * another. What they read is there then, and all that comes after them still waits, so the present task may do their
 * work. Never where devices take part. Thread: any that runs a task. */
bool trli_run_may_do(const trl_run *here, int n, const trl_task *task);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Building the tasks of a program: what its files share. */
#ifndef TRLI_TASKS_BUILD_IMPL_H
#define TRLI_TASKS_BUILD_IMPL_H

#include "cost_impl.h"
#include "tasks_impl.h"

typedef struct trli_tasks_builder {
    trli_program *program;
    trli_model *model;
    struct trli_task_data *data;
    trli_task_builder tasks;
    unsigned char *awaits; /* [local patches] axes beyond whose sides others have points in some exchange so far */
    bool tells;            /* GPUs may tell the results of reductions (told_sums_impl.h) */
    int late_share;        /* in whose place there are late scalars, or what is told */
    trl_handle *called; /* [local patches][reductions of the model] shares of called programs; NULL: none is called */
} trli_tasks_builder;

/* ---- tasks_build.c ---- */

/* n tasks of a step, in a row; or one. */
TRL_NODISCARD trl_err trli_next_tasks(trli_tasks_builder *b, const trli_step *step, int patch, int n,
                                      trli_step_task **task);
TRL_NODISCARD trl_err trli_next_task(trli_tasks_builder *b, const trli_step *step, int patch, trli_step_task **task);
/* Plugins are told the time and dt. */
TRL_NODISCARD trl_err trli_access_plugin(trli_tasks_builder *b, trl_task task, const trli_opaque *called);
double trli_seconds_of(const trli_tasks_builder *b, const trli_work *work, int64_t points);
/* Seconds of a task that computes the points of a step in a box. */
double trli_estimate(const trli_tasks_builder *b, const trli_step *s, const trl_box *box);
/* What devices go by that nothing was timed on. */
TRL_NODISCARD trl_err trli_set_work(trli_tasks_builder *b, trl_task task, const trli_work *work, int64_t points);

/* ---- tasks_call.c ---- */

/* The task of a step that calls another program, whose task graph is built. */
TRL_NODISCARD trl_err trli_add_call(trli_tasks_builder *b, const trli_step *s);

/* ---- tasks_reduce.c ---- */

/* Find the groups that a launch of a GPU brings together, which has all of their points: those whose results one GPU
 * finds, or tells. */
void trli_find_at_once(const trli_tasks_builder *b);
/* What the task of a group writes then besides. */
TRL_NODISCARD trl_err trli_access_found(trli_tasks_builder *b, trl_task task, const trli_reduction_group *group);
/* The tasks of a batch, in place of its first reduction; of others none. */
TRL_NODISCARD trl_err trli_add_reduction(trli_tasks_builder *b, const trli_step *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A kernel whose patch waits for messages of other ranks is cut: inner points need no ghosts that come from other
 * patches, and what is left lies along the sides, a box each. Rows stay whole. What waits for messages no more when a
 * part of the inner points begins is computed with that part. */
#ifndef TRLI_RIMS_IMPL_H
#define TRLI_RIMS_IMPL_H

#include "tasks_impl.h"

enum { TRLI_RIMS_MOST = 7 };

/* Cut the box of a step on a patch; box[0]: the inner points. Returns how many boxes there are; 1: it is not cut. axes:
 * a bit each, beyond whose sides other ranks have points; then those beyond whose sides points are waited for. */
int trli_rims_cut(const trli_program *program, const trli_step *step, int patch, unsigned *axes,
                  trl_box box[TRLI_RIMS_MOST]);
/* Add what a task touches that computes one of the boxes. They may run at once. */
TRL_NODISCARD trl_err trli_rims_access(trli_task_builder *builder, trl_task task, const trli_step_task *of,
                                       unsigned axes);
/* The same of what a group of reductions goes over, on ranks without devices; then no axes if it is not cut. Tasks of
 * all boxes add to one share. */
int trli_rims_cut_reductions(const trli_model *model, const trli_reduction_group *group, int patch, unsigned *axes,
                             trl_box box[TRLI_RIMS_MOST]);
/* Add the fields that it reads. */
TRL_NODISCARD trl_err trli_rims_access_reductions(trli_task_builder *builder, trl_task task, const trli_step_task *of,
                                                  unsigned axes);

/* Cut the box of a kernel's task that has rims, around them, which takes so long; returns the number of parts. Where
 * too few would begin once messages may have come, the rims have all of theirs (nrims 0). */
int trli_rims_parts(const trli_model *model, trli_step_task *task, double seconds);
/* What a call of a kernel's task has to compute, box by box: of its own points and, where ghosts have come, of the rims
 * beside them; of a rim what was left to it. *next: 0 before the first box. False: there is none left. */
bool trli_rims_next(const trli_step_task *task, const trl_task_args *args, int *next, trl_box *box);

#endif

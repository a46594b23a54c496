/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A kernel whose patch waits for messages of other ranks is cut: inner points need no ghosts that come from other
 * patches, and what is left lies along the sides, a box each. Rows stay whole. */
#ifndef TRLI_RIMS_IMPL_H
#define TRLI_RIMS_IMPL_H

#include "builder_impl.h"

enum { TRLI_RIMS_MOST = 5 };

/* Cut the box of a step on a patch; box[0]: the inner points. Returns how many boxes there are; 1: it is not cut. */
int trli_rims_cut(const trli_program *program, const trli_step *step, int patch, trl_box box[TRLI_RIMS_MOST]);
/* Add what a task touches that computes one of the boxes; inner: the first. They may run at once. */
TRL_NODISCARD trl_err trli_rims_access(trli_task_builder *builder, trl_task task, const trli_program *program,
                                       const trli_step *step, int patch, const trl_box *box, bool inner);

#endif

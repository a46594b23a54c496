/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Into how many parts the box of a task is cut: the chunks of a wide task. */
#ifndef TRLI_TASK_PARTS_IMPL_H
#define TRLI_TASK_PARTS_IMPL_H

#include "model_impl.h"

/* Cut a box, which takes so long, for the workers, or only its planes and their rows; returns the number of parts. */
int trli_task_parts(const trli_model *model, const trl_box *box, double seconds, bool whole_rows, int parts[3]);
/* How many planes of a box, or rows along *axis, a single worker computes before it looks whether ghosts have come from
 * ranks of its node: 0 if it is not worth it, or does not depend on that. */
trl_lidx trli_task_lead(const trli_model *model, const trl_box *box, double seconds, int *axis);

#endif

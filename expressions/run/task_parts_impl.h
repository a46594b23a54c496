/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Into how many parts the box of a task is cut: the chunks of a wide task. */
#ifndef TRLI_TASK_PARTS_IMPL_H
#define TRLI_TASK_PARTS_IMPL_H

#include "model_impl.h"

/* Cut a box, which takes so long, for the workers, or only its planes and their rows; returns the number of parts. */
int trli_task_parts(const trli_model *model, const trl_box *box, double seconds, bool whole_rows, int parts[3]);
/* Whether there are messages of MPI: those through the memory of a node are there when they are sent. */
bool trli_awaits_mpi(const trli_model *model);

#endif

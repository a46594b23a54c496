/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "tasks_impl.h"

void trli_note_at_once(const trli_frame *frame, const trli_program *program, const trli_reduction_group *group,
                       bool at_once)
{
    trli_reduction_run *run = frame->reduction + program->run->reductions.first + group->first;
    for (int r = 0; r < group->n; ++r) run[r].at_once = at_once;
}

bool trli_is_done_at_once(const trli_frame *frame, const trli_program *program, const trli_reduction_batch *batch)
{
    const trli_reduction_run *run = frame->reduction + program->run->reductions.first + batch->first;
    bool all = true;
    for (int r = 0; r < batch->n; ++r) all &= run[r].at_once;
    return all;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields as arrays: where the slot table of a frame has them now. */
#include "frame_impl.h"
#include "model_impl.h"
#include "slot_plan_impl.h"

trl_array trli_frame_array(const trli_frame *frame, int field, int local_patch)
{
    const trli_model *model = frame->model;
    size_t i = (size_t)field * (size_t)model->layout->nlocal + (size_t)local_patch;
    trl_array a = model->slots->geometry[i];
    a.at = (double *)frame->base[model->field[field].slot][local_patch] + model->slots->origin[i];
    return a;
}

void trli_frame_swap(trli_frame *frame, int field_a, int field_b)
{
    const trli_model *model = frame->model;
    void ***a = &frame->base[model->field[field_a].slot], ***b = &frame->base[model->field[field_b].slot];
    void **base = *a;
    *a = *b;
    *b = base;
}

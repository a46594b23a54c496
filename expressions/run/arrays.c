/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields as arrays: where the slot table of a frame has them now. */
#include "builder_impl.h"
#include "frame_impl.h"
#include "model_impl.h"
#include "slot_plan_impl.h"

trl_array trli_frame_array(const trli_frame *frame, int field, int local_patch, int space)
{
    const trli_model *model = frame->model;
    const size_t i = trli_slot_plan_index(model->slots, field, local_patch);
    trl_array a = model->slots->geometry[i];
    a.at = (double *)frame->base[space][model->field[field].slot][local_patch] + model->slots->origin[i];
    return a;
}

void trli_frame_swap(trli_frame *frame, int field_a, int field_b)
{
    const trli_model *model = frame->model;
    const int a = model->field[field_a].slot, b = model->field[field_b].slot;
    for (int s = 0; s < TRL_SPACES_MAX; ++s) {
        if (!frame->base[s]) continue;
        void **base = frame->base[s][a];
        frame->base[s][a] = frame->base[s][b];
        frame->base[s][b] = base;
    }
    trl_block **block = frame->block[a];
    frame->block[a] = frame->block[b];
    frame->block[b] = block;
    uint32_t *valid = frame->valid[a];
    frame->valid[a] = frame->valid[b];
    frame->valid[b] = valid;
}

void trli_frame_patch_written_in(const trli_frame *frame, int field, int patch, int space)
{
    uint32_t *valid = &frame->valid[frame->model->field[field].slot][(ptrdiff_t)patch * TRLI_POINTS];
    for (int i = 0; i < TRLI_POINTS; ++i) valid[i] = UINT32_C(1) << space;
}

void trli_frame_written_in(const trli_frame *frame, int field, int space)
{
    for (int p = 0; p < frame->model->layout->nlocal; ++p) trli_frame_patch_written_in(frame, field, p, space);
}

void trli_frame_written(const trli_frame *frame, int field)
{
    trli_frame_written_in(frame, field, 0);
}

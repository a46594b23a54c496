/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields as arrays: where the slot table has them now. */
#include "model_run_impl.h"
#include "slot_plan_impl.h"

trl_array trli_model_array(const trli_model *model, int field, int local_patch)
{
    size_t i = (size_t)field * (size_t)model->layout->nlocal + (size_t)local_patch;
    trl_array a = model->slots->geometry[i];
    a.at = (double *)model->run->base[model->field[field].slot][local_patch] + model->slots->origin[i];
    return a;
}

void trli_model_swap(trli_model *model, int field_a, int field_b)
{
    void ***a = &model->run->base[model->field[field_a].slot], ***b = &model->run->base[model->field[field_b].slot];
    void **base = *a;
    *a = *b;
    *b = base;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps of plugin entries. */
#include "plugin_step_impl.h"
#include "sides_impl.h"

trl_err trli_plugin_add(trli_instance *instance, int e)
{
    trli_model *model = instance->model;
    trli_entry *entry = &model->front->entry[e];
    const trl_expression_entry *deck = entry->deck;
    int *inputs, *outputs = trli_model_keep(model, (size_t)entry->ncomputed * sizeof *outputs);
    trl_err err = TRL_OK;
    if (!outputs) return model->ir.err;
    TRL_TRY(trli_plugin_inputs(instance, e, &inputs));
    for (int i = 0; i < entry->ncomputed; ++i) {
        outputs[i] = trli_model_add_field(model, entry->computed[i].tag, entry->computed[i].location);
        if (outputs[i] < 0) return model->ir.err;
        trli_model_field *f = &model->field[outputs[i]];
        f->exchanged = !(deck->type->flags & TRL_EXPR_POINTWISE) || entry->has_boundary;
        f->boundary =
            (trli_boundary_source){entry->has_boundary ? deck->boundary : NULL, deck->names, deck->name, deck->place};
    }
    trli_step *step = trli_program_append(instance->program, TRLI_STEP_PLUGIN, deck->name);
    if (!step) return model->ir.err;
    step->nout = entry->ncomputed;
    step->field = outputs;
    step->plugin = (trli_plugin_step){entry->opaque, inputs};
    step->time_scalar = instance->time_scalar;
    step->stage = instance->stage;
    instance->plugin_field[e] = outputs;
    for (int i = 0; i < entry->ncomputed; ++i)
        if (model->field[outputs[i]].exchanged) TRL_TRY(trli_instance_fill_field(instance, outputs[i]));
done:
    return err;
}

trl_err trli_plugin_stable_dt(trli_instance *instance, int e, int *scalar)
{
    trli_model *model = instance->model;
    trli_entry *entry = &model->front->entry[e];
    int *inputs;
    trl_err err = TRL_OK;
    TRL_TRY(trli_plugin_inputs(instance, e, &inputs));
    *scalar = trli_model_add_scalar(model, 0);
    trli_step *step = trli_program_append(instance->program, TRLI_STEP_STABLE_DT, entry->deck->name);
    if (*scalar < 0 || !step) return model->ir.err;
    step->scalar = *scalar;
    step->plugin = (trli_plugin_step){entry->opaque, inputs};
    step->time_scalar = instance->time_scalar;
done:
    return err;
}

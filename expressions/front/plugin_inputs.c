/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The fields that hold what plugin entries require. */
#include "plugin_step_impl.h"

trl_err trli_plugin_input(trli_instance *in, const trli_entry *entry, const trli_advertised *r, trli_operand *input)
{
    trli_model *model = in->model;
    trli_operand operand;
    trl_err err = TRL_OK;
    const trl_place *place = &entry->deck->place;
    TRL_TRY(trli_lower_symbol(in, &model->front->symbol[r->symbol], &operand));
    int c = r->component < 0 ? 0 : r->component;
    if (operand.components && r->component < 0)
        return trl_fail(model->ctx, TRL_ERR_INPUT, place,
                        "'%s' is a vector, and type '%s' requires a scalar: name a component, %s.x", r->tag,
                        entry->deck->type->name, r->tag);
    if (operand.location[c] != TRLI_ANYWHERE && operand.location[c] != (int)r->location)
        return trl_fail(model->ctx, TRL_ERR_INPUT, place, "'%s' is at %s, and type '%s' requires it at %s", r->tag,
                        trli_location_text(in->model, operand.location[c]), entry->deck->type->name,
                        trli_location_text(in->model, (int)r->location));
    *input = trli_operand_scalar((int)r->location, trli_ir_place(&model->ir, operand.value[c], r->location));
    err = model->ir.err;
done:
    return err;
}

static trl_err input_field(trli_instance *in, const trli_entry *entry, const trli_advertised *r, int *field)
{
    trli_model *model = in->model;
    trli_operand input;
    trl_err err = TRL_OK;
    TRL_TRY(trli_plugin_input(in, entry, r, &input));
    const trli_ir_value v = input.value[0];
    const trli_node *n = trli_ir_node(&model->ir, v);
    if (n->op == TRLI_OP_FIELD)
        *field = n->index;
    else
        TRL_TRY(trli_program_store(in->program, r->tag, "a plugin reads it", v, r->location, NULL, field));
done:
    return err;
}

trl_err trli_plugin_inputs(trli_instance *instance, int e, int **fields)
{
    trli_entry *entry = &instance->model->front->entry[e];
    trl_err err = TRL_OK;
    *fields = trli_model_keep(instance->model, ((size_t)entry->nrequired + 1) * sizeof **fields);
    if (!*fields) return instance->model->ir.err;
    for (int i = 0; i < entry->nrequired; ++i)
        TRL_TRY(input_field(instance, entry, &entry->required[i], &(*fields)[i]));
done:
    return err;
}

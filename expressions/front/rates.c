/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "memory_impl.h"
#include "rates_impl.h"

/* Values whose time derivatives are asked for: one, and those of the stored values that it reads. */
typedef struct asked {
    const trli_instance *in;
    int n, capacity;
    trli_ir_value *value;
    trli_walk walk;
} asked;

static trl_err ask(asked *a, trli_ir_value value)
{
    trl_context *ctx = a->in->model->ctx;
    for (int i = 0; i < a->n; ++i)
        if (a->value[i] == value) return TRL_OK;
    if (!trli_make_room(ctx, &a->value, a->n, 1, &a->capacity, sizeof *a->value))
        return trli_no_memory(ctx, NULL, "for %d values", a->n + 1);
    a->value[a->n++] = value;
    return TRL_OK;
}

static bool has_rate(const trli_model *model, int variable)
{
    for (int v = 0; v < model->nvariables; ++v)
        if (model->variable[v].is_rate && model->variable[v].of == variable) return true;
    return false;
}

/* A field or scalar that the values read. */
static trl_err look_at(asked *a, const trli_node *node, bool *known)
{
    const trli_instance *in = a->in;
    int which;
    trl_err err = TRL_OK;
    for (int v = 0; node->op == TRLI_OP_FIELD && v < in->model->nvariables; ++v) {
        if (in->old && in->old->variable[v] == node->index) return TRL_OK; /* it does not change in the step */
        if (in->variable[v] != node->index) continue;
        *known &= has_rate(in->model, v);
        return TRL_OK;
    }
    const trli_step *producer = trli_program_producer(in->program, node, &which);
    if (!producer || producer->kind == TRLI_STEP_STABLE_DT) return TRL_OK;
    if (producer->kind == TRLI_STEP_PLUGIN)
        *known = false;
    else
        TRL_TRY(ask(a, producer->value[which]));
done:
    return err;
}

trl_err trli_rate_is_known(const trli_instance *in, trli_ir_value value, bool *known)
{
    asked a = {.in = in};
    trl_err err = TRL_OK;
    *known = true;
    TRL_TRY(ask(&a, value));
    for (int i = 0; i < a.n; ++i) {
        TRL_TRY(trli_ir_walk(&in->model->ir, &a.walk, 1, &a.value[i]));
        for (int k = 0; k < a.walk.count; ++k) {
            const trli_node *node = trli_ir_node(&in->model->ir, a.walk.list[k]);
            if (node->op == TRLI_OP_FIELD || node->op == TRLI_OP_SCALAR) TRL_TRY(look_at(&a, node, known));
        }
    }
done:
    trli_walk_free(&a.walk);
    trli_free(a.value);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Device-neutral types: what their evaluate applies, as values. */
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "nodes_impl.h"
#include "operators_impl.h"
#include "plugin_values_impl.h"

struct trl_evaluation {
    trli_lowering lw;
    const trli_entry *entry;
    trli_operand *output; /* [entry->ncomputed] */
    bool *is_set;         /* [entry->ncomputed] */
};

#define EVALUATION_FAIL(e, ...) trl_fail((e)->lw.model->ctx, TRL_ERR_PLUGIN, &(e)->entry->deck->place, __VA_ARGS__)

static trl_evaluation *evaluation_of(const trl_eval_args *args)
{
    return args ? args->evaluation : NULL;
}

static const char *type_of(const trl_evaluation *e)
{
    return e->entry->deck->type->name;
}

static const char *place_name(const trl_evaluation *e, int location)
{
    return trli_location_text(e->lw.model, location);
}

/* What a plugin hands back must be a value that it got. */
static trl_err check_value(const trl_evaluation *e, const trl_eval_value *v, const char *where)
{
    const bool good = v && v->node >= 0 && v->node < e->lw.ir->count && v->location >= TRLI_ANYWHERE &&
                      v->location <= (int32_t)TRL_NODE;
    return good ? TRL_OK : EVALUATION_FAIL(e, "type '%s' passes %s something that is no value", type_of(e), where);
}

static trl_err give(trl_evaluation *e, int location, trli_ir_value node, trl_eval_value *value)
{
    *value = (trl_eval_value){node, location};
    return e->lw.ir->err;
}

trl_err trl_eval_required(const trl_eval_args *args, int position, trl_eval_value *value)
{
    trl_evaluation *e = evaluation_of(args);
    trli_operand operand;
    if (!e || !value) return TRL_ERR_USAGE;
    if (position < 0 || position >= e->entry->nrequired)
        return EVALUATION_FAIL(e, "type '%s' takes required tag %d of %d; trl_binding_required gives positions",
                               type_of(e), position, e->entry->nrequired);
    const trl_err err = trli_plugin_input(e->lw.instance, e->entry, &e->entry->required[position], &operand);
    return err != TRL_OK ? err : give(e, operand.location[0], operand.value[0], value);
}

trl_err trl_eval_number(const trl_eval_args *args, double number, trl_eval_value *value)
{
    trl_evaluation *e = evaluation_of(args);
    if (!e || !value) return TRL_ERR_USAGE;
    return give(e, TRLI_ANYWHERE, trli_ir_constant(e->lw.ir, number), value);
}

trl_err trl_eval_apply(const trl_eval_args *args, const trl_operator *op, const trl_eval_value *in, trl_eval_value *out)
{
    trl_evaluation *e = evaluation_of(args);
    trli_ir_value input[3], result;
    trl_err err = TRL_OK;
    if (!e || !in || !out) return TRL_ERR_USAGE;
    if (!op) return EVALUATION_FAIL(e, "type '%s' applies no operator; trl_binding_operator gives one", type_of(e));
    for (int i = 0; i < op->ninputs; ++i) {
        TRL_TRY(check_value(e, &in[i], op->name));
        if (in[i].location != TRLI_ANYWHERE && in[i].location != (int)op->from[i])
            return EVALUATION_FAIL(e, "type '%s' applies a %s to a value at %s; it takes one at %s", type_of(e),
                                   op->name, place_name(e, in[i].location), place_name(e, (int)op->from[i]));
        input[i] = trli_ir_place(e->lw.ir, in[i].node, op->from[i]);
    }
    TRL_TRY(trli_lower_apply(&e->lw, op->name, op, input, &result));
    err = give(e, (int)op->to, result, out);
done:
    return err;
}

/* ---- functions of points ---- */

static trl_err fail_function(const trl_evaluation *e, const char *function, int n)
{
    return EVALUATION_FAIL(e, "type '%s' calls '%s' of %d value%s; there is no such function", type_of(e), function, n,
                           n == 1 ? "" : "s");
}

/* The operation that a word stands for, of so many operands; TRLI_OP_COUNT: none. */
static trli_op operation_of(const char *word, int n)
{
    for (int op = 0; op < TRLI_OP_COUNT; ++op) {
        const trli_op_info *info = trli_op_find((trli_op)op);
        const bool arithmetic = info->kind == TRLI_OP_IS_SAME || info->kind == TRLI_OP_IS_TEST ||
                                info->kind == TRLI_OP_IS_CASE || op == TRLI_OP_POW;
        if (arithmetic && trli_op_operands((trli_op)op) == n && strcmp(info->word, word) == 0) return (trli_op)op;
    }
    return TRLI_OP_COUNT;
}

static trli_ir_value operate(trli_ir *ir, trli_op op, int n, const trli_ir_value *v)
{
    if (op == TRLI_OP_POW) return trli_ir_power(ir, v[0], v[1]);
    if (n == 1) return trli_ir_unary(ir, op, v[0]);
    return n == 2 ? trli_ir_binary(ir, op, v[0], v[1]) : trli_ir_select(ir, v[0], v[1], v[2]);
}

/* The name of a time, coordinate or width. */
static trl_err name_value(trl_evaluation *e, const char *name, trl_eval_value *out)
{
    trli_operand operand;
    int axis;
    if (!trli_lower_reserved(&e->lw, name, &operand, &axis)) return fail_function(e, name, 0);
    if (axis >= 0) return EVALUATION_FAIL(e, "type '%s' uses '%s', and this grid is %d-D", type_of(e), name, e->lw.dim);
    return give(e, TRLI_ANYWHERE, operand.value[0], out);
}

trl_err trl_eval_function(const trl_eval_args *args, const char *function, int n, const trl_eval_value *in,
                          trl_eval_value *out)
{
    trl_evaluation *e = evaluation_of(args);
    int location = TRLI_ANYWHERE;
    trli_ir_value v[3];
    if (!e || !function || (n && !in) || !out) return TRL_ERR_USAGE;
    if (n == 0) return name_value(e, function, out);
    if (n < 0 || n > 3) return fail_function(e, function, n);
    for (int i = 0; i < n; ++i) {
        trl_err err = check_value(e, &in[i], function);
        if (err != TRL_OK) return err;
        const int before = location;
        if (!trli_location_join(before, in[i].location, &location))
            return EVALUATION_FAIL(e, "type '%s' calls '%s' of values at %s and %s; apply an interpolant to one",
                                   type_of(e), function, place_name(e, before), place_name(e, in[i].location));
    }
    for (int i = 0; i < n; ++i) {
        v[i] = in[i].node;
        if (location != TRLI_ANYWHERE) v[i] = trli_ir_place(e->lw.ir, v[i], (trl_location)location);
    }
    const trli_op op = operation_of(function, n);
    if (op != TRLI_OP_COUNT) return give(e, location, operate(e->lw.ir, op, n, v), out);
    const trl_function *f = trl_function_find(function);
    if (!f || f->arity != n) return fail_function(e, function, n);
    return give(e, location, trli_lower_function_value(e->lw.ir, f, v[0], n > 1 ? v[1] : TRLI_NO_VALUE), out);
}

/* ---- results ---- */

trl_err trl_eval_set(const trl_eval_args *args, int position, trl_eval_value value)
{
    trl_evaluation *e = evaluation_of(args);
    trl_err err = TRL_OK;
    if (!e) return TRL_ERR_USAGE;
    if (position < 0 || position >= e->entry->ncomputed)
        return EVALUATION_FAIL(e, "type '%s' sets computed tag %d of %d; trl_binding_computed gives positions",
                               type_of(e), position, e->entry->ncomputed);
    const trli_advertised *tag = &e->entry->computed[position];
    TRL_TRY(check_value(e, &value, "trl_eval_set"));
    if (e->is_set[position]) return EVALUATION_FAIL(e, "type '%s' sets '%s' twice", type_of(e), tag->own_name);
    if (value.location != TRLI_ANYWHERE && value.location != (int)tag->location)
        return EVALUATION_FAIL(e, "type '%s' sets '%s' to a value at %s; it advertised %s", type_of(e), tag->own_name,
                               place_name(e, value.location), place_name(e, (int)tag->location));
    e->is_set[position] = true;
    e->output[position] = trli_operand_scalar((int)tag->location, trli_ir_place(e->lw.ir, value.node, tag->location));
    err = e->lw.ir->err;
done:
    return err;
}

trl_err trli_plugin_values(trli_instance *instance, const trli_entry *entry, trli_operand *output)
{
    trli_model *model = instance->model;
    const trl_expression_entry *deck = entry->deck;
    static const trl_patch no_patch;
    const trl_box empty = {{0}, {0}};
    const size_t narrays = (size_t)(entry->ncomputed + entry->nrequired);
    trl_array *arrays = trli_new(model->ctx, narrays, sizeof *arrays);
    trl_evaluation e = {.lw = {.instance = instance, .model = model, .ir = &model->ir, .dim = model->layout->grid.dim},
                        .entry = entry,
                        .output = output,
                        .is_set = trli_new(model->ctx, (size_t)entry->ncomputed, sizeof *e.is_set)};
    const trl_eval_args args = {.size = sizeof args,
                                .ctx = model->ctx,
                                .grid = &model->layout->grid,
                                .patch = &no_patch,
                                .t = NAN,
                                .t_step = NAN,
                                .dt = NAN,
                                .stage = instance->stage,
                                .computed = arrays,
                                .required = arrays ? arrays + entry->ncomputed : NULL,
                                .axis = -1,
                                .side = -1,
                                .evaluation = &e};
    trl_err err = TRL_OK;
    if (!arrays || !e.is_set) {
        err = trli_no_memory(model->ctx, &deck->place, "for the tags of type '%s'", deck->type->name);
        goto done;
    }
    (void)trli_diagnostics_said(); /* earlier messages are not this call's */
    err = deck->type->evaluate(entry->state, &args, &empty);
    if (err == TRL_OK) err = model->ir.err;
    if (err != TRL_OK) {
        err = trli_plugin_failed(model, entry, "evaluate", err);
        goto done;
    }
    for (int i = 0; i < entry->ncomputed && err == TRL_OK; ++i)
        if (!e.is_set[i])
            err = EVALUATION_FAIL(&e, "evaluate of type '%s' does not set '%s'; use trl_eval_set", deck->type->name,
                                  entry->computed[i].own_name);
done:
    trli_free(arrays);
    trli_free(e.is_set);
    return err;
}

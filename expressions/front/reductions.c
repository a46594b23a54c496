/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* integral, norm, domain_max, domain_min and probe: values over the domain to scalars. */
#include <math.h>

#include "operators_impl.h"
#include "parameters_impl.h"
#include "spatialops_impl.h"
#include "symbols_impl.h"

typedef struct mask_search {
    trli_lowering *lw;
    int location;
    trli_ir_value mask; /* product of the masks found, or TRLI_NO_VALUE */
} mask_search;

static trl_err find_mask(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    mask_search *s = data;
    trli_lowering *lw = s->lw;
    const trli_symbol *symbol = trli_symbol_find(lw->model, name);
    (void)text, (void)node;
    if (symbol->kind != TRLI_SYMBOL_VARIABLE) return TRL_OK;
    const trli_variable *v = &lw->model->variable[symbol->index];
    trli_ir_value mask;
    if (!v->mask || (int)v->location != s->location) return TRL_OK;
    trl_err err = trli_lower_at(lw->instance, v->mask, v->names, v->location, &mask);
    if (err != TRL_OK || mask == s->mask) return err;
    s->mask = s->mask < 0 ? mask : trli_ir_binary(lw->ir, TRLI_OP_AND, s->mask, mask);
    return TRL_OK;
}

/* The mask of the equations that a formula names at its own location. */
static trl_err mask_of(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, int location,
                       trli_ir_value *mask)
{
    const trl_formula part = {.root = node, .text = *lw->text};
    mask_search s = {lw, location, TRLI_NO_VALUE};
    trl_err err = trli_visit_again(lw->model, &part, scope, find_mask, &s);
    *mask = s.mask;
    return err;
}

static trl_err sum_over(trli_lowering *lw, const char *label, trli_ir_value value, int location, trli_ir_value *sum)
{
    int scalar;
    trl_err err = trli_program_reduce(lw->instance->program, label, value, (trl_location)location, TRLI_REDUCE_SUM,
                                      true, NULL, &scalar);
    if (err == TRL_OK) *sum = trli_ir_scalar(lw->ir, scalar);
    return err;
}

static trl_err lower_norm(trli_lowering *lw, trli_ir_value value, trli_ir_value mask, int location, trli_ir_value *norm)
{
    trli_ir *ir = lw->ir;
    trli_ir_value zero = trli_ir_constant(ir, 0), squares, weights;
    trl_err err = TRL_OK;
    double cells = 1;
    trli_ir_value square = trli_ir_binary(ir, TRLI_OP_MUL, value, value);
    if (mask >= 0) square = trli_ir_select(ir, mask, square, zero);
    TRL_TRY(sum_over(lw, "norm", square, location, &squares));
    /* Points on a side count half, so that the weights of all points add up to the cells, at any location. */
    for (int a = 0; a < 3; ++a) cells *= (double)ir->grid->cells[a];
    weights = trli_ir_constant(ir, cells);
    if (mask >= 0)
        TRL_TRY(sum_over(lw, "norm", trli_ir_select(ir, mask, trli_ir_constant(ir, 1), zero), location, &weights));
    *norm = trli_ir_unary(ir, TRLI_OP_SQRT, trli_ir_binary(ir, TRLI_OP_DIV, squares, weights));
done:
    return err;
}

trl_err trli_lower_reduction(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                             const trl_scope *scope, trli_operand *operand)
{
    trli_ir *ir = lw->ir;
    trli_operand f;
    trli_ir_value mask, result = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, true, &f));
    TRL_TRY(mask_of(lw, node->arg[0], scope, f.location[0], &mask));
    if (op->id == TRL_FORMULA_INTEGRAL) {
        double volume = 1;
        for (int a = 0; a < lw->dim; ++a) volume *= ir->grid->spacing[a];
        trli_ir_value value = mask < 0 ? f.value[0] : trli_ir_select(ir, mask, f.value[0], trli_ir_constant(ir, 0));
        TRL_TRY(sum_over(lw, "integral", value, f.location[0], &result));
        result = trli_ir_binary(ir, TRLI_OP_MUL, result, trli_ir_constant(ir, volume));
    } else if (op->id == TRL_FORMULA_NORM) {
        TRL_TRY(lower_norm(lw, f.value[0], mask, f.location[0], &result));
    } else {
        bool max = op->id == TRL_FORMULA_DOMAIN_MAX;
        trli_ir_value value =
            mask < 0 ? f.value[0]
                     : trli_ir_select(ir, mask, f.value[0], trli_ir_constant(ir, max ? -INFINITY : INFINITY));
        int scalar;
        TRL_TRY(trli_program_reduce(lw->instance->program, op->name, value, (trl_location)f.location[0],
                                    max ? TRLI_REDUCE_MAX : TRLI_REDUCE_MIN, false, NULL, &scalar));
        result = trli_ir_scalar(ir, scalar);
    }
    *operand = trli_operand_scalar(TRLI_ANYWHERE, result);
done:
    return err;
}

trl_err trli_lower_probe(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, const trl_scope *scope,
                         trli_operand *operand)
{
    const trl_ast *where = node->arg[1];
    trli_ir *ir = lw->ir;
    trli_operand f;
    trl_gidx point[3] = {0, 0, 0};
    int scalar;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, true, &f));
    TRL_TRY(trli_check_position(lw, op, where));
    trli_ir_value value = f.value[0];
    for (int a = 0; a < lw->dim; ++a) {
        double coordinate, weight = 0;
        int by = 0;
        TRL_TRY(trli_lower_coordinate(lw, where, a, scope, &coordinate));
        trli_locate(ir->grid, a, f.location[0], coordinate, &point[a], &by, &weight);
        trli_ir_value low = trli_ir_shift(ir, value, a, by), high = trli_ir_shift(ir, value, a, by + 1);
        if (weight == 0) {
            value = low; /* exactly on a point: the next one may not even exist */
            continue;
        }
        value = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, 1 - weight), low),
                               trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, weight), high));
    }
    TRL_TRY(trli_program_reduce(lw->instance->program, op->name, value, (trl_location)f.location[0], TRLI_REDUCE_POINT,
                                false, point, &scalar));
    *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_scalar(ir, scalar));
done:
    return err;
}

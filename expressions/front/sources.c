/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* noise and point_source: values that a formula adds at cells and steps, or around a point. */
#include "operators_impl.h"
#include "parameters_impl.h"
#include "spatialops_impl.h"

static double cell_volume(const trli_lowering *lw)
{
    double volume = 1;
    for (int a = 0; a < lw->dim; ++a) volume *= lw->ir->grid->spacing[a];
    return volume;
}

trl_err trli_lower_noise(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, const trl_scope *scope,
                         trli_operand *operand)
{
    trli_ir *ir = lw->ir;
    double seed;
    (void)op;
    trl_err err = trli_lower_number(lw, node->arg[0], scope, &seed);
    if (err != TRL_OK) return err;
    const trli_ir_value one = trli_ir_constant(ir, 1), volume = trli_ir_constant(ir, cell_volume(lw));
    const trli_ir_value each = trli_ir_binary(ir, TRLI_OP_MUL, volume, trli_ir_scalar(ir, TRLI_SCALAR_DT));
    const trli_ir_value deviation = trli_ir_binary(ir, TRLI_OP_DIV, one, trli_ir_unary(ir, TRLI_OP_SQRT, each));
    const trli_ir_value normal =
        trli_ir_normal(ir, trli_ir_point(ir), trli_ir_scalar(ir, TRLI_SCALAR_STEP), trli_ir_constant(ir, seed));
    *operand =
        trli_operand_scalar(TRLI_ANYWHERE, lw->instance->averages ? trli_ir_constant(ir, 0)
                                                                  : trli_ir_binary(ir, TRLI_OP_MUL, deviation, normal));
    return ir->err;
}

trl_err trli_lower_coordinate(trli_lowering *lw, const trl_ast *where, int axis, const trl_scope *scope,
                              double *coordinate)
{
    const trl_grid *g = lw->ir->grid;
    const double lo = g->origin[axis], hi = lo + g->length[axis];
    trl_err err = trli_lower_number(lw, where->arg[axis], scope, coordinate);
    if (err != TRL_OK || trli_in_domain(g, axis, coordinate)) return err;
    return trli_lower_fail(lw, where->arg[axis], "%c = %g lies outside the domain, %g to %g", 'x' + axis, *coordinate,
                           lo, hi);
}

trl_err trli_check_position(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *where)
{
    static const char *const position[] = {"x", "x, y", "x, y, z"};
    if (where->kind == TRL_AST_VECTOR && where->nargs == lw->dim) return TRL_OK;
    return trli_lower_fail(lw, where, "%s needs one coordinate per axis of the grid: [%s]", op->name,
                           position[lw->dim - 1]);
}

trl_err trli_lower_point_source(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                const trl_scope *scope, trli_operand *operand)
{
    trli_ir *ir = lw->ir;
    trl_err err = TRL_OK;
    if (lw->instance->at_side)
        return trli_lower_fail(lw, node,
                               "point_source(s, p) is a source inside of the domain, and this is read by a boundary "
                               "condition: put it into `ddt`");
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, false, operand));
    if (operand->location[0] != TRLI_ANYWHERE || trli_ir_node(ir, operand->value[0])->varies)
        return trli_lower_fail(lw, node->arg[0],
                               "the strength of a point source is one number, and this varies over the domain: use t, "
                               "parameters, probe(f, p) or integral(f)");
    TRL_TRY(trli_check_position(lw, op, node->arg[1]));
    for (int a = 0; a < lw->dim; ++a) {
        double where;
        TRL_TRY(trli_lower_coordinate(lw, node->arg[1], a, scope, &where));
        operand->value[0] =
            trli_ir_binary(ir, TRLI_OP_MUL, operand->value[0], trli_ir_share(ir, a, TRLI_UNPLACED, where));
    }
    err = ir->err;
done:
    return err;
}

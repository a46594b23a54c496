/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The strain rate (grad(v) + its transpose)/2 of a vector v on the faces around a centre: on the diagonal at the
 * centre, beside it at the edges between two axes, so that the divergence of a row is where its component of v is. */
#include <string.h>

#include "operators_impl.h"

/* A vector and the centre of its faces. */
typedef struct face_vector {
    trli_operand v;
    int centre;
} face_vector;

static trl_err read_vector(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, face_vector *f)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_vector(lw, node->arg[0], scope, &f->v));
    f->centre = TRLI_ANYWHERE;
    for (int a = 0; a < lw->dim; ++a) {
        const int at = f->v.location[a];
        if (at != TRLI_ANYWHERE && !trli_location_join(f->centre, at ^ 1 << a, &f->centre))
            return trli_lower_fail(lw, node->arg[0],
                                   "strain needs a vector on faces, and the %c-component of this one is at %s: use "
                                   "at(..., faces)",
                                   "xyz"[a], trli_location_text(lw->model, at));
    }
    if (f->centre == TRLI_ANYWHERE) f->centre = TRL_CELL;
    for (int a = 0; a < lw->dim; ++a) f->v.value[a] = trli_operand_at(lw, &f->v, a, f->centre ^ 1 << a);
done:
    return err;
}

static trl_err derivative(trli_lowering *lw, const face_vector *f, int of, int along, trli_ir_value *result)
{
    const int from = f->centre ^ 1 << of;
    trl_operator *op;
    const trl_operator_desc desc = {
        .kind = TRL_GRADIENT, .from = (trl_location)from, .to = (trl_location)(from ^ 1 << along), .axis = along};
    trl_err err = trl_operator_create(lw->model->ctx, lw->ir->grid, &desc, &op);
    if (err != TRL_OK) return err;
    err = trli_lower_apply(lw, "strain", op, &f->v.value[of], result);
    trl_operator_destroy(&op);
    return err;
}

static trl_err entry(trli_lowering *lw, const face_vector *f, int a, int b, trli_ir_value *result)
{
    trli_ir_value one, other;
    trl_err err = TRL_OK;
    if (a == b) return derivative(lw, f, a, a, result);
    /* In the same order from either row, so that the two share it. */
    TRL_TRY(derivative(lw, f, a < b ? a : b, a < b ? b : a, &one));
    TRL_TRY(derivative(lw, f, a < b ? b : a, a < b ? a : b, &other));
    *result = trli_ir_binary(lw->ir, TRLI_OP_MUL, trli_ir_constant(lw->ir, 0.5),
                             trli_ir_binary(lw->ir, TRLI_OP_ADD, one, other));
done:
    return err;
}

/* sqrt(2 S:S) at the centre, squares beside the diagonal being the means of those at edges: with it twice a viscosity
 * times S:S is the energy that the divergence of the stress takes. Where it is 0, so is its derivative. */
static trl_err magnitude(trli_lowering *lw, const face_vector *f, trli_operand *operand)
{
    trli_ir *ir = lw->ir;
    trli_ir_value sum = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    for (int a = 0; a < lw->dim; ++a)
        for (int b = a; b < lw->dim; ++b) {
            const int at = a == b ? f->centre : f->centre ^ 1 << a ^ 1 << b;
            trli_ir_value s, term;
            TRL_TRY(entry(lw, f, a, b, &s));
            term = trli_ir_binary(ir, TRLI_OP_MUL, s, s);
            TRL_TRY(trli_operator_result(lw, "strain", trli_interpolate(lw, term, at, f->centre), f->centre, &term));
            term = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, a == b ? 2 : 4), term);
            sum = sum < 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum, term);
        }
    *operand = trli_operand_scalar(
        f->centre, trli_ir_select(ir, sum, trli_ir_unary(ir, TRLI_OP_SQRT, sum), trli_ir_constant(ir, 0)));
done:
    return err;
}

static trl_err read_axis(trli_lowering *lw, const trl_ast *node, int *axis)
{
    static const char *const names[] = {"x", "y", "z"};
    for (int a = 0; a < 3; ++a) {
        if (node->kind != TRL_AST_NAME || node->nparts != 1 || node->part[0].index) break;
        if (strcmp(node->part[0].text, names[a]) != 0) continue;
        *axis = a;
        if (a >= lw->dim) return trli_lower_fail_axis(lw, node, names[a], a);
        return TRL_OK;
    }
    return trli_lower_fail(lw, node, "this is no axis: a row of the strain rate is that of x, y or z");
}

trl_err trli_lower_strain(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                          const trl_scope *scope, trli_operand *operand)
{
    face_vector f;
    int row = 0;
    trl_err err = TRL_OK;
    (void)op;
    TRL_TRY(read_vector(lw, node, scope, &f));
    if (node->nargs == 1) return magnitude(lw, &f, operand);
    TRL_TRY(read_axis(lw, node->arg[1], &row));
    *operand = (trli_operand){.components = lw->dim};
    for (int a = 0; a < lw->dim; ++a) {
        operand->location[a] = a == row ? f.centre : f.centre ^ 1 << a ^ 1 << row;
        TRL_TRY(entry(lw, &f, row, a, &operand->value[a]));
    }
done:
    return err;
}

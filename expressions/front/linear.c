/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Linear operators of the formula language: each call becomes one of spatialops' operators, and that becomes IR. */
#include <math.h>
#include <string.h>

#include "operators_impl.h"
#include "parameters_impl.h"

/* An operator's result. A wide one of several passes along axes keeps what each pass gives: computing it again for
 * every point that the next pass reads would cost more than a trip to memory. */
trl_err trli_lower_apply(trli_lowering *lw, const char *name, const trl_operator *op, const trli_ir_value *inputs,
                         trli_ir_value *result)
{
    const trl_term *only = &op->term[0];
    const int widest_inline = 4; /* points */
    trl_err err = TRL_OK;
    trli_ir_value v = inputs[0];
    if (op->nterms > 1 || only->npasses == 1 || only->pass[0].npoints <= widest_inline)
        return trli_operator_result(lw, name, trli_ir_operator(lw->ir, op, inputs), op->to, result);
    for (int i = 0; i < only->npasses; ++i) {
        v = trli_ir_pass(lw->ir, &only->pass[i], v);
        TRL_TRY(i == only->npasses - 1
                    ? trli_operator_result(lw, name, v, op->to, &v)
                    : trli_operator_stored(lw, name, "the next pass of a wide operator reads it", v, op->to, &v));
    }
    *result = v;
done:
    return err;
}

static trl_err apply_new(trli_lowering *lw, const char *name, const trl_operator_desc *desc,
                         const trli_ir_value *inputs, trli_ir_value *result)
{
    trl_operator *op;
    trl_err err = trl_operator_create(lw->model->ctx, lw->ir->grid, desc, &op);
    if (err != TRL_OK) return err;
    err = trli_lower_apply(lw, name, op, inputs, result);
    trl_operator_destroy(&op);
    return err;
}

trl_err trli_lower_grad(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, const trl_scope *scope,
                        trli_operand *operand)
{
    trli_operand s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, true, &s));
    *operand = (trli_operand){.components = lw->dim};
    for (int a = 0; a < lw->dim; ++a) {
        operand->location[a] = s.location[0] ^ 1 << a;
        const trl_operator_desc desc = {
            .kind = op->kind, .from = (trl_location)s.location[0], .to = (trl_location)operand->location[a]};
        TRL_TRY(apply_new(lw, op->name, &desc, s.value, &operand->value[a]));
    }
done:
    return err;
}

trl_err trli_lower_along_axis(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                              const trl_scope *scope, trli_operand *operand)
{
    const trl_operator_kind kind = op->kind;
    const int axis = op->axis;
    trli_operand s;
    trl_err err = TRL_OK;
    if (axis >= lw->dim) return trli_lower_fail_axis(lw, node, op->name, axis);
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, true, &s));
    int to = kind == TRL_GRADIENT ? s.location[0] ^ 1 << axis : s.location[0];
    const trl_operator_desc desc = {
        .kind = kind, .from = (trl_location)s.location[0], .to = (trl_location)to, .axis = axis};
    *operand = trli_operand_scalar(to, TRLI_NO_VALUE);
    TRL_TRY(apply_new(lw, op->name, &desc, s.value, &operand->value[0]));
done:
    return err;
}

trl_err trli_lower_laplacian(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                             const trl_scope *scope, trli_operand *operand)
{
    trli_operand s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, true, &s));
    const trl_operator_desc desc = {
        .kind = op->kind, .from = (trl_location)s.location[0], .to = (trl_location)s.location[0]};
    *operand = trli_operand_scalar(s.location[0], TRLI_NO_VALUE);
    TRL_TRY(apply_new(lw, op->name, &desc, s.value, &operand->value[0]));
done:
    return err;
}

trl_err trli_lower_div(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, const trl_scope *scope,
                       trli_operand *operand)
{
    trli_operand v;
    trli_ir_value component[3];
    int target = TRLI_ANYWHERE;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_vector(lw, node->arg[0], scope, &v));
    for (int a = 0; a < lw->dim; ++a) {
        if (v.location[a] == TRLI_ANYWHERE) continue;
        int to = v.location[a] ^ 1 << a;
        if (!trli_location_join(target, to, &target))
            return trli_lower_fail(lw, node,
                                   "the components of this vector have no common centre: its %c-component is at %s, "
                                   "where %s gives %s, another gives %s",
                                   "xyz"[a], trli_location_text(lw->model, v.location[a]), op -> name,
                                   trli_location_text(lw->model, to), trli_location_text(lw->model, target));
    }
    if (target == TRLI_ANYWHERE) target = TRL_CELL;
    const trl_operator_desc desc = {.kind = op->kind, .to = (trl_location)target};
    for (int a = 0; a < lw->dim; ++a) component[a] = trli_operand_at(lw, &v, a, target ^ 1 << a);
    *operand = trli_operand_scalar(target, TRLI_NO_VALUE);
    TRL_TRY(apply_new(lw, op->name, &desc, component, &operand->value[0]));
done:
    return err;
}

static trl_err curl_component(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                              const trli_operand *v, int c, int *location, trli_ir_value *value)
{
    int a = (c + 1) % 3, b = (c + 2) % 3;
    if (v->location[a] == TRLI_ANYWHERE || v->location[b] == TRLI_ANYWHERE)
        return trli_lower_fail(lw, node, "the argument of curl needs a location: use at(..., faces)");
    *location = v->location[b] ^ 1 << a;
    if (*location != (v->location[a] ^ 1 << b))
        return trli_lower_fail(lw, node, "curl needs a vector on faces or on edges");
    const trl_operator_desc desc = {.kind = op->kind, .to = (trl_location)*location, .axis = c};
    return apply_new(lw, op->name, &desc, (const trli_ir_value[]){v->value[a], v->value[b]}, value);
}

trl_err trli_lower_curl(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, const trl_scope *scope,
                        trli_operand *operand)
{
    trli_operand v;
    trl_err err = TRL_OK;
    if (lw->dim == 1) return trli_lower_fail(lw, node, "curl needs a 2-D or 3-D grid");
    TRL_TRY(trli_lower_vector(lw, node->arg[0], scope, &v));
    *operand = (trli_operand){.components = lw->dim == 3 ? 3 : 0};
    if (lw->dim == 2) return curl_component(lw, op, node, &v, 2, &operand->location[0], &operand->value[0]);
    for (int c = 0; c < 3; ++c) TRL_TRY(curl_component(lw, op, node, &v, c, &operand->location[c], &operand->value[c]));
done:
    return err;
}

/* ---- interpolation ---- */

/* The second argument of at, at4 and harmonic: a location, or `faces` (-1). */
static trl_err read_location(trli_lowering *lw, const trl_ast *node, int *location)
{
    static const char *const words[] = {"cell", "xface", "yface", "zface", "xedge", "yedge", "zedge", "node", "faces"};
    const char *given = trli_lower_word(node);
    trl_location l;
    if (given && strcmp(given, "faces") == 0) {
        *location = -1;
        return TRL_OK;
    }
    if (given && trl_location_parse(given, &l)) {
        trli_model_note_location(lw->model, l);
        *location = (int)trl_location_on(l, lw->dim);
        return TRL_OK;
    }
    return trli_lower_fail_word(lw, node, "location", words, sizeof words / sizeof *words);
}

static trli_ir_value harmonic_pair(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    trli_ir_value sum = trli_ir_binary(ir, TRLI_OP_ADD, a, b);
    trli_ir_value twice =
        trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, 2), trli_ir_binary(ir, TRLI_OP_MUL, a, b));
    trli_ir_value zero = trli_ir_binary(ir, TRLI_OP_EQ, sum, trli_ir_constant(ir, 0));
    return trli_ir_select(ir, zero, trli_ir_constant(ir, 0), trli_ir_binary(ir, TRLI_OP_DIV, twice, sum));
}

static trli_ir_value harmonic_mean(trli_lowering *lw, trli_ir_value v, int from, int to)
{
    for (int a = 0; a < lw->dim; ++a) {
        int bit = from >> a & 1;
        if ((from ^ to) >> a & 1)
            v = harmonic_pair(lw->ir, trli_ir_shift(lw->ir, v, a, bit - 1), trli_ir_shift(lw->ir, v, a, bit));
    }
    return v;
}

static trl_err interpolate(trli_lowering *lw, const trl_formula_operator *op, trli_ir_value v, int from, int to,
                           trli_ir_value *result)
{
    const trl_operator_desc desc = {.kind = op->kind, .from = (trl_location)from, .to = (trl_location)to};
    if (op->id == TRL_FORMULA_HARMONIC)
        return trli_operator_result(lw, op->name, harmonic_mean(lw, v, from, to), to, result);
    *result = v;
    return from == to ? TRL_OK : apply_new(lw, op->name, &desc, &v, result);
}

trl_err trli_lower_interpolation(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                 const trl_scope *scope, trli_operand *operand)
{
    trli_operand f;
    int location = TRL_CELL;
    trl_err err = TRL_OK;
    TRL_TRY(op->id == TRL_FORMULA_HARMONIC ? trli_lower_scalar(lw, node->arg[0], scope, true, &f)
                                           : trli_lower_node(lw, node->arg[0], scope, &f));
    TRL_TRY(read_location(lw, node->arg[1], &location));
    bool faces = location < 0;
    *operand = (trli_operand){.components = faces ? lw->dim : f.components};
    for (int c = 0; c < trli_operand_count(operand); ++c) {
        int from = f.location[f.components ? c : 0], to = location;
        /* A scalar goes to the faces around its own location, a vector's component to the face of a cell. */
        if (faces) to = (f.components || from == TRLI_ANYWHERE ? TRL_CELL : from) ^ 1 << c;
        operand->location[c] = to;
        if (from == TRLI_ANYWHERE)
            operand->value[c] = trli_operand_at(lw, &f, c, to);
        else
            TRL_TRY(interpolate(lw, op, f.value[f.components ? c : 0], from, to, &operand->value[c]));
    }
done:
    return err;
}

/* ---- filters, extrapolation, the problem's own stencils: scalars, and vectors by component ---- */

static trl_err read_width(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, bool odd_only, int *width)
{
    const trl_ast *given = node->arg[1];
    const int widest = 15; /* of spatialops' filters */
    double w;
    trl_err err = trli_lower_number(lw, given, scope, &w);
    if (err != TRL_OK) return err;
    if (!(w >= 1 && w <= widest) || w != floor(w) || (odd_only && fmod(w, 2) == 0))
        return trli_lower_fail(lw, given, "the width of '%s' is %s from 1 to %d, not %g", node->part[0].text,
                               odd_only ? "an odd number of cells" : "a whole number of cells", widest, w);
    *width = (int)w;
    return TRL_OK;
}

trl_err trli_lower_filter(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                          const trl_scope *scope, trli_operand *operand)
{
    bool box = op->kind == TRL_BOX_FILTER;
    int width = 1;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_placed(lw, node->arg[0], scope, operand));
    TRL_TRY(read_width(lw, node, scope, box, &width));
    for (int c = 0; c < trli_operand_count(operand); ++c) {
        const trl_operator_desc desc = {.kind = op->kind,
                                        .from = (trl_location)operand->location[c],
                                        .to = (trl_location)operand->location[c],
                                        .width = width};
        trli_ir_value v = operand->value[c];
        TRL_TRY(apply_new(lw, op->name, &desc, &v, &operand->value[c]));
    }
done:
    return err;
}

trl_err trli_lower_extrapolation(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                 const trl_scope *scope, trli_operand *operand)
{
    const trl_ast *side = node->arg[1];
    trl_err err = TRL_OK;
    if (side->axis >= lw->dim)
        return trli_lower_fail_axis(
            lw, side, (char[]){(char)('x' + side->axis), side->op == TRL_AST_ADD ? '+' : '-', 0}, side->axis);
    TRL_TRY(trli_lower_placed(lw, node->arg[0], scope, operand));
    for (int c = 0; c < trli_operand_count(operand); ++c) {
        const trl_operator_desc desc = {.kind = op->kind,
                                        .from = (trl_location)operand->location[c],
                                        .to = (trl_location)(operand->location[c] ^ 1 << side->axis),
                                        .side = side->op == TRL_AST_ADD};
        trli_ir_value v = operand->value[c];
        operand->location[c] = desc.to;
        TRL_TRY(apply_new(lw, op->name, &desc, &v, &operand->value[c]));
    }
done:
    return err;
}

trl_err trli_lower_stencil(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, const trl_operator *stencil,
                           trli_operand *operand)
{
    const char *from = trli_location_text(lw->model, (int)stencil->from[0]);
    trl_err err = TRL_OK;
    if (node->nargs != 1)
        return trli_lower_fail(lw, node, "stencil '%s' takes 1 argument, not %d", stencil->name, node->nargs);
    TRL_TRY(trli_lower_placed(lw, node->arg[0], scope, operand));
    for (int c = 0; c < trli_operand_count(operand); ++c) {
        trli_ir_value v = operand->value[c];
        if (operand->location[c] != (int)stencil->from[0])
            return trli_lower_fail(lw, node->arg[0],
                                   "stencil '%s' takes values at %s, and this is at %s: interpolate with at(..., %s)",
                                   stencil->name, from, trli_location_text(lw->model, operand->location[c]), from);
        operand->location[c] = stencil->to;
        TRL_TRY(trli_lower_apply(lw, stencil->name, stencil, &v, &operand->value[c]));
    }
done:
    return err;
}

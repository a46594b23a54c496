/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The table of the operators of the formula language; products of vectors, old values, random numbers. */
#include <string.h>

#include <trl_formula_operators.h>

#include "instance_impl.h"
#include "lower_impl.h"

trl_err trli_operator_result(trli_lowering *lw, const char *name, trli_value value, int location, trli_value *result)
{
    *result = value;
    const bool far = trli_ir_reaches_far(lw->ir, value);
    if (lw->model->settings.fusion != TRL_FUSION_NONE && !far) return lw->ir->err;
    return trli_operator_stored(lw, name, far ? trli_far_text : "run.fusion is none", value, location, result);
}

trl_err trli_operator_stored(trli_lowering *lw, const char *name, const char *why, trli_value value, int location,
                             trli_value *result)
{
    const trli_node *n = trli_ir_node(lw->ir, value);
    *result = value;
    if (lw->instance->inline_only) return lw->ir->err;
    if (n->unplaced || !n->varies || n->op == TRLI_OP_FIELD) return lw->ir->err;
    int field;
    trl_err err = trli_program_store(lw->instance->program, name, why, value, (trl_location)location, NULL, &field);
    if (err == TRL_OK) *result = trli_ir_field(lw->ir, field);
    return err;
}

trl_err trli_lower_vector(trli_lowering *lw, const trl_ast *node, const trl_scope *names, trli_operand *v)
{
    trl_err err = trli_lower_node(lw, node, names, v);
    if (err != TRL_OK || v->components) return err;
    if (lw->dim > 1) return trli_lower_fail(lw, node, "a vector is needed here, not a scalar");
    v->components = 1;
    return TRL_OK;
}

static trl_err lower_product_of_vectors(trli_lowering *lw, const trl_ast *node, const trl_scope *names,
                                        trli_operand *operand)
{
    trli_operand v[2];
    trl_err err = TRL_OK;
    trli_ir *ir = lw->ir;
    bool cross = strcmp(node->part[0].text, "cross") == 0;
    for (int i = 0; i < node->nargs; ++i) TRL_TRY(trli_lower_vector(lw, node->arg[i], names, &v[i]));
    if (node->nargs == 1) v[1] = v[0];
    int location = TRLI_ANYWHERE;
    for (int i = 0; i < 2; ++i)
        for (int a = 0; a < lw->dim; ++a)
            if (!trli_location_join(location, v[i].location[a], &location))
                return trli_lower_fail(
                    lw, node, "'%s' needs all components at one location, for example at(..., cell): here %s and %s",
                    node->part[0].text, trli_location_text(location), trli_location_text(v[i].location[a]));
    if (cross && lw->dim != 3) return trli_lower_fail(lw, node, "cross needs a 3-D grid");
    *operand = (trli_operand){.components = cross ? 3 : 0, .location = {location, location, location}};
    for (int c = 0; cross && c < 3; ++c) {
        int a = (c + 1) % 3, b = (c + 2) % 3;
        trli_value p = trli_ir_binary(ir, TRLI_OP_MUL, trli_operand_at(lw, &v[0], a, location),
                                      trli_operand_at(lw, &v[1], b, location));
        trli_value q = trli_ir_binary(ir, TRLI_OP_MUL, trli_operand_at(lw, &v[0], b, location),
                                      trli_operand_at(lw, &v[1], a, location));
        operand->value[c] = trli_ir_binary(ir, TRLI_OP_SUB, p, q);
    }
    for (int a = 0; !cross && a < lw->dim; ++a) {
        trli_value p = trli_ir_binary(ir, TRLI_OP_MUL, trli_operand_at(lw, &v[0], a, location),
                                      trli_operand_at(lw, &v[1], a, location));
        operand->value[0] = a == 0 ? p : trli_ir_binary(ir, TRLI_OP_ADD, operand->value[0], p);
    }
    if (node->nargs == 1) operand->value[0] = trli_ir_unary(ir, TRLI_OP_SQRT, operand->value[0]);
done:
    return err;
}

static trl_err lower_old(trli_lowering *lw, const trl_ast *node, const trl_scope *names, trli_operand *operand)
{
    trli_lowering then = *lw;
    trl_err err = trli_instance_old(lw->instance, &then.instance);
    return err == TRL_OK ? trli_lower_node(&then, node->arg[0], names, operand) : err;
}

static trl_err lower_random(trli_lowering *lw, const trl_ast *node, const trl_scope *names, trli_operand *operand)
{
    double seed;
    trl_err err = trli_lower_number(lw, node->arg[0], names, &seed);
    if (err == TRL_OK) *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_random(lw->ir, seed));
    return err;
}

static const struct {
    trl_formula_operator shown;
    int least, most; /* arguments */
    trli_operator_fn lower;
} table[] = {
    {{"grad", "grad(s)", "gradient: component a at s's location with bit a flipped; second order"},
     1,
     1,
     trli_lower_grad},
    {{"div", "div(v)", "divergence of a vector of face values; second order"}, 1, 1, trli_lower_div},
    {{"laplacian", "laplacian(s)", "sum of second derivatives, at s's location; second order"},
     1,
     1,
     trli_lower_laplacian},
    {{"curl", "curl(v)", "curl: faces to edges, edges to faces; in 2-D a face vector to the scalar at zedge"},
     1,
     1,
     trli_lower_curl},
    {{"ddx", "ddx(s)", "derivative along x; flips that bit of the location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"ddy", "ddy(s)", "derivative along y; flips that bit of the location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"ddz", "ddz(s)", "derivative along z; flips that bit of the location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"d2dx", "d2dx(s)", "second derivative along x, at s's location; second order"}, 1, 1, trli_lower_along_axis},
    {{"d2dy", "d2dy(s)", "second derivative along y, at s's location; second order"}, 1, 1, trli_lower_along_axis},
    {{"d2dz", "d2dz(s)", "second derivative along z, at s's location; second order"}, 1, 1, trli_lower_along_axis},
    {{"cddx", "cddx(s)",
      "difference of the two neighbours along x over twice the spacing, at s's location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"cddy", "cddy(s)",
      "difference of the two neighbours along y over twice the spacing, at s's location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"cddz", "cddz(s)",
      "difference of the two neighbours along z over twice the spacing, at s's location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"cmeanx", "cmeanx(s)", "mean of the two neighbours along x, at s's location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"cmeany", "cmeany(s)", "mean of the two neighbours along y, at s's location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"cmeanz", "cmeanz(s)", "mean of the two neighbours along z, at s's location; second order"},
     1,
     1,
     trli_lower_along_axis},
    {{"at", "at(f, L)", "linear interpolation to a location, or to `faces`"}, 2, 2, trli_lower_interpolation},
    {{"harmonic", "harmonic(s, L)", "harmonic mean 2ab/(a+b) of the points on both sides; 0 where a+b = 0"},
     2,
     2,
     trli_lower_interpolation},
    {{"left", "left(s[, limiter])", "face values reconstructed from the minus side"}, 1, 2, trli_lower_reconstruction},
    {{"right", "right(s[, limiter])", "face values reconstructed from the plus side"}, 1, 2, trli_lower_reconstruction},
    {{"advective_flux", "advective_flux(phi, u[, limiter])",
      "u*phi at faces: central, or upwind minmod vanleer superbee mc koren charm ospre smart"},
     2,
     3,
     trli_lower_advective_flux},
    {{"dot", "dot(v, w)", "scalar product; all components at one location"}, 2, 2, lower_product_of_vectors},
    {{"cross", "cross(v, w)", "vector product in 3-D; all components at one location"}, 2, 2, lower_product_of_vectors},
    {{"mag", "mag(v)", "length of a vector; all components at one location"}, 1, 1, lower_product_of_vectors},
    {{"integral", "integral(s)", "integral over the domain: each point with its volume"}, 1, 1, trli_lower_reduction},
    {{"norm", "norm(s)", "sqrt(integral(s^2)/V)"}, 1, 1, trli_lower_reduction},
    {{"domain_max", "domain_max(s)", "largest value over the domain"}, 1, 1, trli_lower_reduction},
    {{"domain_min", "domain_min(s)", "smallest value over the domain"}, 1, 1, trli_lower_reduction},
    {{"probe", "probe(s, [x, y, z])", "value at a point, by linear interpolation"}, 2, 2, trli_lower_probe},
    {{"old", "old(f)", "f from the values at the start of the step"}, 1, 1, lower_old},
    {{"random", "random(seed)", "uniform in [0, 1), from seed and global cell only"}, 1, 1, lower_random},
    {{"grad4", "grad4(s)", "gradient: component a at s's location with bit a flipped; fourth order"},
     1,
     1,
     trli_lower_grad},
    {{"div4", "div4(v)", "divergence of a vector of face values; fourth order"}, 1, 1, trli_lower_div},
    {{"at4", "at4(f, L)", "cubic interpolation to a location, or to `faces`; fourth order"},
     2,
     2,
     trli_lower_interpolation},
    {{"box_filter", "box_filter(f, w)", "mean over w points along each axis; w odd, from 1 to 15"},
     2,
     2,
     trli_lower_filter},
    {{"tophat_filter", "tophat_filter(f, w)",
      "mean of the linear interpolant over a width of w cells along each axis; w from 1 to 15"},
     2,
     2,
     trli_lower_filter},
    {{"extrapolate", "extrapolate(f, side)",
      "linear extrapolation along an axis from the two points on one side: x- x+ y- y+ z- z+"},
     2,
     2,
     trli_lower_extrapolation},
};

const trl_formula_operator *trl_formula_operator_at(int i)
{
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? &table[i].shown : NULL;
}

trl_err trli_lower_operator(trli_lowering *lw, const trl_ast *node, const trl_scope *names, trli_operand *operand,
                            bool *known)
{
    const char *name = node->part[0].text;
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        if (strcmp(name, table[i].shown.name) != 0) continue;
        *known = true;
        if (node->nargs < table[i].least || node->nargs > table[i].most)
            return trli_lower_fail(lw, node, "'%s' takes %d argument%s, not %d: %s", name,
                                   node->nargs < table[i].least ? table[i].least : table[i].most,
                                   (node->nargs < table[i].least ? table[i].least : table[i].most) == 1 ? "" : "s",
                                   node->nargs, table[i].shown.signature);
        return table[i].lower(lw, node, names, operand);
    }
    *known = false;
    return TRL_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Linear operators of the formula language on top of the stencil tables. */
#include <string.h>

#include <trl_formula_operators.h>

#include "lower_impl.h"

trli_value trli_interpolate(trli_lowering *lw, trli_value value, int from, int to)
{
    for (int a = 0; a < lw->dim; ++a)
        if ((from ^ to) >> a & 1) value = trli_ir_stencil(lw->ir, TRL_STENCIL_INTERPOLANT, a, from >> a & 1, value);
    return value;
}

trl_err trli_operator_result(trli_lowering *lw, const char *name, trli_value value, int location, trli_value *result)
{
    const trli_node *n = trli_ir_node(lw->ir, value);
    *result = value;
    if (lw->model->fusion != TRLI_FUSION_NONE && !trli_ir_reaches_far(lw->ir, value)) return lw->ir->err;
    if (lw->instance->inline_only) return lw->ir->err;
    if (n->unplaced || !n->varies || n->op == TRLI_OP_FIELD) return lw->ir->err;
    int field;
    trl_err err = trli_program_store(lw->instance->program, name, value, (trl_location)location, NULL, &field);
    if (err == TRL_OK) *result = trli_ir_field(lw->ir, field);
    return err;
}

/* Apply a stencil along an axis and give its result. */
static trl_err derive(trli_lowering *lw, const char *name, int stencil, int axis, int location, trli_value value,
                      int *to, trli_value *result)
{
    *to = trl_stencil_get((trl_stencil_id)stencil)->flips ? location ^ 1 << axis : location;
    return trli_operator_result(lw, name, trli_ir_stencil(lw->ir, stencil, axis, location >> axis & 1, value), *to,
                                result);
}

static trl_err lower_grad(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    trli_typed s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], names, true, &s));
    *typed = (trli_typed){.components = lw->dim};
    for (int a = 0; a < lw->dim; ++a)
        TRL_TRY(derive(lw, "grad", TRL_STENCIL_DERIVATIVE, a, s.location[0], s.value[0], &typed->location[a],
                       &typed->value[a]));
done:
    return err;
}

/* The axis that the last letter of "ddx" or of the first part of "d2dx" names. */
static int axis_of_name(const char *name)
{
    return name[strlen(name) - 1] - 'x';
}

static trl_err lower_derivative(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    trli_typed s;
    trl_err err = TRL_OK;
    const char *name = node->part[0].text;
    int axis = axis_of_name(name);
    int stencil = name[1] == '2' ? TRL_STENCIL_SECOND : TRL_STENCIL_DERIVATIVE;
    if (axis >= lw->dim)
        return trli_lower_fail(lw, node, "'%s' needs an axis that this %d-D grid lacks", name, lw->dim);
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], names, true, &s));
    *typed = (trli_typed){0};
    TRL_TRY(derive(lw, name, stencil, axis, s.location[0], s.value[0], &typed->location[0], &typed->value[0]));
done:
    return err;
}

static trl_err lower_laplacian(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    trli_typed s;
    trli_value sum = TRLI_NO_VALUE, result;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], names, true, &s));
    for (int a = 0; a < lw->dim; ++a) {
        trli_value d = trli_ir_stencil(lw->ir, TRL_STENCIL_SECOND, a, 0, s.value[0]);
        sum = a == 0 ? d : trli_ir_binary(lw->ir, TRLI_OP_ADD, sum, d);
    }
    TRL_TRY(trli_operator_result(lw, "laplacian", sum, s.location[0], &result));
    *typed = trli_typed_scalar(s.location[0], result);
done:
    return err;
}

/* A vector argument; in 1-D a scalar stands for its only component. */
static trl_err lower_vector_argument(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *v)
{
    trl_err err = trli_lower_node(lw, node, names, v);
    if (err != TRL_OK || v->components) return err;
    if (lw->dim > 1) return trli_lower_fail(lw, node, "a vector is needed here, not a scalar");
    v->components = 1;
    return TRL_OK;
}

static trl_err lower_div(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    trli_typed v;
    int target = TRLI_ANYWHERE;
    trli_value sum = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    TRL_TRY(lower_vector_argument(lw, node->arg[0], names, &v));
    for (int a = 0; a < lw->dim; ++a) {
        if (v.location[a] == TRLI_ANYWHERE) continue;
        int to = v.location[a] ^ 1 << a;
        if (!trli_location_join(target, to, &target))
            return trli_lower_fail(lw, node,
                                   "the components of this vector have no common centre: its %c-component is at %s, "
                                   "where div gives %s, another gives %s",
                                   "xyz"[a], trli_location_text(v.location[a]), trli_location_text(to),
                                   trli_location_text(target));
    }
    if (target == TRLI_ANYWHERE) target = TRL_CELL;
    for (int a = 0; a < lw->dim; ++a) {
        int from = target ^ 1 << a, to;
        trli_value d;
        TRL_TRY(derive(lw, "div", TRL_STENCIL_DERIVATIVE, a, from, trli_typed_at(lw, &v, a, from), &to, &d));
        sum = sum < 0 ? d : trli_ir_binary(lw->ir, TRLI_OP_ADD, sum, d);
    }
    *typed = trli_typed_scalar(target, sum);
done:
    return err;
}

/* d v_b / da - d v_a / db */
static trl_err curl_component(trli_lowering *lw, const trl_ast *node, const trli_typed *v, int a, int b, int *location,
                              trli_value *value)
{
    int first, second;
    trli_value p, q;
    trl_err err = TRL_OK;
    if (v->location[a] == TRLI_ANYWHERE || v->location[b] == TRLI_ANYWHERE)
        return trli_lower_fail(lw, node, "the argument of curl needs a location: use at(..., faces)");
    TRL_TRY(derive(lw, "curl", TRL_STENCIL_DERIVATIVE, a, v->location[b], v->value[b], &first, &p));
    TRL_TRY(derive(lw, "curl", TRL_STENCIL_DERIVATIVE, b, v->location[a], v->value[a], &second, &q));
    if (first != second) return trli_lower_fail(lw, node, "curl needs a vector on faces or on edges");
    *location = first;
    *value = trli_ir_binary(lw->ir, TRLI_OP_SUB, p, q);
done:
    return err;
}

static trl_err lower_curl(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    trli_typed v;
    trl_err err = TRL_OK;
    if (lw->dim == 1) return trli_lower_fail(lw, node, "curl needs a 2-D or 3-D grid");
    TRL_TRY(lower_vector_argument(lw, node->arg[0], names, &v));
    *typed = (trli_typed){.components = lw->dim == 3 ? 3 : 0};
    if (lw->dim == 2) return curl_component(lw, node, &v, 0, 1, &typed->location[0], &typed->value[0]);
    for (int c = 0; c < 3; ++c)
        TRL_TRY(curl_component(lw, node, &v, (c + 1) % 3, (c + 2) % 3, &typed->location[c], &typed->value[c]));
done:
    return err;
}

/* The second argument of at and harmonic: a location, or `faces` (-1). */
static trl_err read_location(trli_lowering *lw, const trl_ast *node, int *location)
{
    trl_location l;
    if (node->kind == TRL_AST_NAME && node->nparts == 1 && !node->part[0].index) {
        if (strcmp(node->part[0].text, "faces") == 0) {
            *location = -1;
            return TRL_OK;
        }
        if (trl_location_parse(node->part[0].text, &l)) {
            *location = trl_location_on(l, lw->dim);
            return TRL_OK;
        }
    }
    return trli_lower_fail(lw, node,
                           "this is no location: cell, xface, yface, zface, xedge, yedge, zedge, node or faces");
}

static trli_value harmonic_pair(trli_ir *ir, trli_value a, trli_value b)
{
    trli_value sum = trli_ir_binary(ir, TRLI_OP_ADD, a, b);
    trli_value twice = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, 2), trli_ir_binary(ir, TRLI_OP_MUL, a, b));
    trli_value zero = trli_ir_binary(ir, TRLI_OP_EQ, sum, trli_ir_constant(ir, 0));
    return trli_ir_select(ir, zero, trli_ir_constant(ir, 0), trli_ir_binary(ir, TRLI_OP_DIV, twice, sum));
}

static trli_value harmonic_mean(trli_lowering *lw, trli_value v, int from, int to)
{
    for (int a = 0; a < lw->dim; ++a) {
        int bit = from >> a & 1;
        if ((from ^ to) >> a & 1)
            v = harmonic_pair(lw->ir, trli_ir_shift(lw->ir, v, a, bit - 1), trli_ir_shift(lw->ir, v, a, bit));
    }
    return v;
}

static trl_err lower_at(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    trli_typed f;
    int location = TRL_CELL;
    bool harmonic = strcmp(node->part[0].text, "harmonic") == 0;
    trl_err err = TRL_OK;
    TRL_TRY(harmonic ? trli_lower_scalar(lw, node->arg[0], names, true, &f)
                     : trli_lower_node(lw, node->arg[0], names, &f));
    TRL_TRY(read_location(lw, node->arg[1], &location));
    bool faces = location < 0;
    *typed = (trli_typed){.components = faces ? lw->dim : f.components};
    for (int c = 0; c < trli_typed_count(typed); ++c) {
        int from = f.location[f.components ? c : 0], to = location;
        /* A scalar goes to the faces around its own location, a vector's component to the face of a cell. */
        if (faces) to = (f.components || from == TRLI_ANYWHERE ? TRL_CELL : from) ^ 1 << c;
        typed->location[c] = to;
        if (from == TRLI_ANYWHERE) {
            typed->value[c] = trli_typed_at(lw, &f, c, to);
            continue;
        }
        trli_value v = f.value[f.components ? c : 0];
        v = harmonic ? harmonic_mean(lw, v, from, to) : trli_interpolate(lw, v, from, to);
        TRL_TRY(trli_operator_result(lw, harmonic ? "harmonic" : "at", v, to, &typed->value[c]));
    }
done:
    return err;
}

static trl_err lower_product_of_vectors(trli_lowering *lw, const trl_ast *node, const trl_names *names,
                                        trli_typed *typed)
{
    trli_typed v[2];
    trl_err err = TRL_OK;
    trli_ir *ir = lw->ir;
    bool cross = strcmp(node->part[0].text, "cross") == 0;
    for (int i = 0; i < node->nargs; ++i) TRL_TRY(lower_vector_argument(lw, node->arg[i], names, &v[i]));
    if (node->nargs == 1) v[1] = v[0];
    int location = TRLI_ANYWHERE;
    for (int i = 0; i < 2; ++i)
        for (int a = 0; a < lw->dim; ++a)
            if (!trli_location_join(location, v[i].location[a], &location))
                return trli_lower_fail(
                    lw, node, "'%s' needs all components at one location, for example at(..., cell): here %s and %s",
                    node->part[0].text, trli_location_text(location), trli_location_text(v[i].location[a]));
    if (cross && lw->dim != 3) return trli_lower_fail(lw, node, "cross needs a 3-D grid");
    *typed = (trli_typed){.components = cross ? 3 : 0, .location = {location, location, location}};
    for (int c = 0; cross && c < 3; ++c) {
        int a = (c + 1) % 3, b = (c + 2) % 3;
        trli_value p = trli_ir_binary(ir, TRLI_OP_MUL, trli_typed_at(lw, &v[0], a, location),
                                      trli_typed_at(lw, &v[1], b, location));
        trli_value q = trli_ir_binary(ir, TRLI_OP_MUL, trli_typed_at(lw, &v[0], b, location),
                                      trli_typed_at(lw, &v[1], a, location));
        typed->value[c] = trli_ir_binary(ir, TRLI_OP_SUB, p, q);
    }
    for (int a = 0; !cross && a < lw->dim; ++a) {
        trli_value p = trli_ir_binary(ir, TRLI_OP_MUL, trli_typed_at(lw, &v[0], a, location),
                                      trli_typed_at(lw, &v[1], a, location));
        typed->value[0] = a == 0 ? p : trli_ir_binary(ir, TRLI_OP_ADD, typed->value[0], p);
    }
    if (node->nargs == 1) typed->value[0] = trli_ir_unary(ir, TRLI_OP_SQRT, typed->value[0]);
done:
    return err;
}

static trl_err lower_old(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    trli_lowering then = *lw;
    if (lw->instance->old) then.instance = (trli_instance *)lw->instance->old;
    return trli_lower_node(&then, node->arg[0], names, typed);
}

static trl_err lower_random(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    double seed;
    trl_err err = trl_ast_number(lw->model->ctx, lw->text, node->arg[0], names, &seed);
    if (err == TRL_OK) *typed = trli_typed_scalar(TRLI_ANYWHERE, trli_ir_random(lw->ir, seed));
    return err;
}

static trl_err lower_later(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed)
{
    (void)names, (void)typed;
    return trli_lower_fail(lw, node, "'%s' is not available yet in this version", node->part[0].text);
}

static const struct {
    trl_formula_operator shown;
    int least, most; /* arguments */
    trli_operator_fn lower;
} table[] = {
    {{"grad", "grad(s)", "gradient: component a at s's location with bit a flipped; second order"}, 1, 1, lower_grad},
    {{"div", "div(v)", "divergence of a vector of face values; second order"}, 1, 1, lower_div},
    {{"laplacian", "laplacian(s)", "sum of second derivatives, at s's location; second order"}, 1, 1, lower_laplacian},
    {{"curl", "curl(v)", "curl: faces to edges, edges to faces; in 2-D a face vector to the scalar at zedge"},
     1,
     1,
     lower_curl},
    {{"ddx", "ddx(s)", "derivative along x; flips that bit of the location; second order"}, 1, 1, lower_derivative},
    {{"ddy", "ddy(s)", "derivative along y; flips that bit of the location; second order"}, 1, 1, lower_derivative},
    {{"ddz", "ddz(s)", "derivative along z; flips that bit of the location; second order"}, 1, 1, lower_derivative},
    {{"d2dx", "d2dx(s)", "second derivative along x, at s's location; second order"}, 1, 1, lower_derivative},
    {{"d2dy", "d2dy(s)", "second derivative along y, at s's location; second order"}, 1, 1, lower_derivative},
    {{"d2dz", "d2dz(s)", "second derivative along z, at s's location; second order"}, 1, 1, lower_derivative},
    {{"at", "at(f, L)", "linear interpolation to a location, or to `faces`"}, 2, 2, lower_at},
    {{"harmonic", "harmonic(s, L)", "harmonic mean 2ab/(a+b) of the points on both sides; 0 where a+b = 0"},
     2,
     2,
     lower_at},
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
    {{"grad4", "grad4(s)", "fourth-order gradient (later version)"}, 1, 1, lower_later},
    {{"div4", "div4(v)", "fourth-order divergence (later version)"}, 1, 1, lower_later},
    {{"at4", "at4(f, L)", "fourth-order interpolation (later version)"}, 2, 2, lower_later},
    {{"box_filter", "box_filter(s, w)", "box filter of width w cells (later version)"}, 2, 2, lower_later},
    {{"tophat_filter", "tophat_filter(s, w)", "top-hat filter of width w cells (later version)"}, 2, 2, lower_later},
    {{"extrapolate", "extrapolate(s, side)", "one-sided extrapolation (later version)"}, 2, 2, lower_later},
};

const trl_formula_operator *trl_formula_operator_at(int i)
{
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? &table[i].shown : NULL;
}

trl_err trli_lower_operator(trli_lowering *lw, const trl_ast *node, const trl_names *names, trli_typed *typed,
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
        return table[i].lower(lw, node, names, typed);
    }
    *known = false;
    return TRL_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Face reconstructions and advective fluxes. */
#include <string.h>

#include <trl_limiter_body.h>

#include "boundary_impl.h"
#include "operators_impl.h"
#include "symbols_impl.h"

#define CENTRAL (-1)

static trl_err read_limiter(trli_lowering *lw, const trl_ast *node, int *limiter)
{
    const char *words[TRL_LIMITER_COUNT], *given = trli_lower_word(node);
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        words[l] = trli_limiter_name(l);
        if (given && strcmp(given, words[l]) == 0) {
            *limiter = l;
            return TRL_OK;
        }
    }
    return trli_lower_fail_word(lw, node, "limiter", words, TRL_LIMITER_COUNT);
}

trl_err trli_lower_reconstruction(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                  const trl_scope *scope, trli_operand *operand)
{
    trli_operand s;
    int limiter = TRL_LIMITER_UPWIND;
    trl_err err = TRL_OK;
    bool right = op->id == TRL_FORMULA_RIGHT;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, true, &s));
    if (node->nargs > 1) TRL_TRY(read_limiter(lw, node->arg[1], &limiter));
    *operand = (trli_operand){.components = lw->dim};
    for (int a = 0; a < lw->dim; ++a) {
        operand->location[a] = s.location[0] ^ 1 << a;
        TRL_TRY(trli_operator_result(lw, op->name,
                                     trli_ir_reconstruct(lw->ir, s.value[0], s.location[0], a, limiter, right),
                                     operand->location[a], &operand->value[a]));
    }
done:
    return err;
}

/* Component a of the velocity at the face between two points of phi. */
static trl_err velocity_at_face(trli_lowering *lw, const trl_ast *node, const trli_operand *u, int a, int phi,
                                trli_ir_value *value)
{
    int face = phi ^ 1 << a, from = u->location[a];
    trl_err err = TRL_OK;
    *value = trli_operand_at(lw, u, a, face);
    if (from == TRLI_ANYWHERE || from == face) return TRL_OK;
    if (from == phi) {
        TRL_TRY(trli_operator_result(lw, "at", trli_interpolate(lw, u->value[a], from, face), face, value));
        return TRL_OK;
    }
    err = trli_lower_fail(
        lw, node,
        "the %c-velocity is at %s; it must be at %s, like the advected value, or at %s, its face: use at(..., %s)",
        "xyz"[a], trli_location_text(lw->model, from), trli_location_text(lw->model, phi),
        trli_location_text(lw->model, face), trli_location_text(lw->model, face));
done:
    return err;
}

/* Whose boundary conditions the advected value has, if it is a plain name. */
static const trli_boundary_source *find_boundary(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                                 trli_boundary_source *source)
{
    char name[256];
    if (node->kind != TRL_AST_NAME ||
        trl_name_expand(lw->model->ctx, lw->text, node, scope, name, sizeof name) != TRL_OK)
        return NULL;
    const trli_symbol *symbol = trli_symbol_find(lw->model, name);
    if (!symbol) return NULL;
    if (symbol->kind == TRLI_SYMBOL_VARIABLE) {
        const trli_variable *v = &lw->model->variable[symbol->index];
        if (lw->instance->initial || v->direction || v->is_rate) return NULL;
        *source = (trli_boundary_source){v->boundary, v->names, v->name, v->place};
        return source;
    }
    const trli_entry *e = &lw->model->front->entry[symbol->index];
    if (!e->has_boundary) return NULL;
    *source = (trli_boundary_source){e->deck->boundary, e->deck->names, e->deck->name, e->deck->place};
    return source;
}

static trl_err apply_dirichlet(trli_lowering *lw, const trli_boundary_source *source, int axis, int phi,
                               trli_ir_value *face)
{
    trl_err err = TRL_OK;
    if (!source || phi >> axis & 1 || lw->model->layout->grid.periodic[axis]) return TRL_OK;
    trli_ir_value inside = *face;
    for (int side = 0; side < 2; ++side) {
        trli_ir_value at_side;
        TRL_TRY(trli_boundary_face_value(lw->instance, source, axis, side, (trl_location)(phi ^ 1 << axis), inside,
                                         &at_side));
        if (at_side != inside) *face = trli_ir_select(lw->ir, trli_ir_at_side(lw->ir, axis, side), at_side, *face);
    }
done:
    return err;
}

trl_err trli_lower_advective_flux(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                  const trl_scope *scope, trli_operand *operand)
{
    trli_operand phi, u;
    trli_boundary_source storage;
    int limiter = CENTRAL;
    trl_err err = TRL_OK;
    trli_ir *ir = lw->ir;
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, true, &phi));
    TRL_TRY(trli_lower_node(lw, node->arg[1], scope, &u));
    if (!u.components && lw->dim > 1)
        return trli_lower_fail(lw, node->arg[1],
                               "the velocity is a scalar, and this grid has %d axes: write [%s], a component for each",
                               lw->dim, lw->dim == 2 ? "a, b" : "a, b, c");
    if (node->nargs > 2) TRL_TRY(read_limiter(lw, node->arg[2], &limiter));
    const trli_boundary_source *source = find_boundary(lw, node->arg[0], scope, &storage);
    *operand = (trli_operand){.components = lw->dim};
    for (int a = 0; a < lw->dim; ++a) {
        trli_ir_value velocity, face;
        int at = phi.location[0];
        operand->location[a] = at ^ 1 << a;
        TRL_TRY(velocity_at_face(lw, node->arg[1], &u, a, at, &velocity));
        if (limiter == CENTRAL) {
            face = trli_interpolate(lw, phi.value[0], at, operand->location[a]);
        } else {
            face = trli_ir_upwind(ir, phi.value[0], at, a, limiter, velocity);
        }
        TRL_TRY(apply_dirichlet(lw, source, a, at, &face));
        TRL_TRY(trli_operator_result(lw, op->name, trli_ir_binary(ir, TRLI_OP_MUL, velocity, face),
                                     operand->location[a], &operand->value[a]));
    }
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary conditions as values of the IR. A condition is lowered once, in the frame of its side: at the interior point
 * next to the side (or on it, for a location with points there), with the coordinate across the side fixed. A ghost
 * layer reads it shifted (program/side.c). */
#include <string.h>

#include "boundary_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "plugin_step_impl.h"
#include "rates_impl.h"
#include "symbols_impl.h"

/* A formula's value in the frame of a side, for a target location. */
static trl_err frame_value(trli_instance *in, const trl_text *text, const trl_scope *scope, trl_location target,
                           int axis, int which, trli_ir_value *value)
{
    trli_model *model = in->model;
    const trl_grid *g = &model->layout->grid;
    trl_formula *formula = NULL;
    trli_operand operand;
    trl_err err = TRL_OK;
    TRL_TRY(trl_formula_parse(model->ctx, text, &formula));
    TRL_TRY(trli_lower(in, formula, scope, &operand));
    const trl_ast *root = formula->root;
    if (operand.components) {
        err = trli_text_fail(model->ctx, text, root->begin, root->end, "a boundary value is a scalar, not a vector");
        goto done;
    }
    int from = operand.location[0], bit = target >> axis & 1;
    *value = trli_ir_place(&model->ir, operand.value[0], target);
    *value =
        trli_ir_fix_coordinate(&model->ir, *value, axis, which ? g->origin[axis] + g->length[axis] : g->origin[axis]);
    if (from != TRLI_ANYWHERE) {
        if ((from ^ (int)target) & ~(1 << axis)) {
            err = trli_text_fail(model->ctx, text, root->begin, root->end,
                                 "this is at %s, and the condition is for values at %s: interpolate with at(...)",
                                 trli_location_text(model, from), trli_location_text(model, (int)target));
            goto done;
        }
        /* On the plus side the last points of the two locations have different indices. */
        if (which) *value = trli_ir_shift(&model->ir, *value, axis, (from >> axis & 1) - bit);
    }
    err = model->ir.err;
done:
    trl_formula_destroy(&formula);
    return err;
}

/* The modifier, or the symbol, that a piece names. A modifier names no tag of its own. */
static trl_err modifier_of(trli_model *model, const trl_bc_piece *deck, int *entry, const trli_symbol **symbol)
{
    *entry = -1;
    *symbol = NULL;
    for (int e = 0; e < model->front->nentries; ++e) {
        const trli_entry *candidate = &model->front->entry[e];
        if (candidate->nformulas || strcmp(candidate->deck->name, deck->expression) != 0) continue;
        if (!(candidate->deck->type->flags & TRL_EXPR_MODIFIER)) continue;
        *entry = e;
        if (candidate->deck->ncomputes == 0) return TRL_OK;
        return trl_fail(
            model->ctx, TRL_ERR_INPUT, &candidate->deck->place,
            "'%s' is a modifier: it changes the field of the side it is attached to and takes no `computes`",
            candidate->deck->name);
    }
    *symbol = trli_symbol_find(model, deck->expression);
    if (!*symbol) return trli_symbol_missing(model, &deck->place, deck->expression);
    return TRL_OK;
}

/* A modifier must be made for the target's location. */
static trl_err check_modifier(trli_model *model, const trli_opaque *modifier, trl_location target,
                              const trl_bc_piece *deck)
{
    if (modifier->location == target) return TRL_OK;
    return trl_fail(model->ctx, TRL_ERR_INPUT, &deck->place, "modifier '%s' is for fields at %s, and this one is at %s",
                    modifier->name, trli_location_text(model, (int)modifier->location),
                    trli_location_text(model, (int)target));
}

static trl_err lower_piece(trli_instance *in, const trli_boundary_source *source, const trl_bc_piece *deck,
                           trl_location target, int axis, int which, trli_piece *piece)
{
    trl_err err = TRL_OK;
    *piece = (trli_piece){.kind = deck->kind,
                          .where = TRLI_NO_VALUE,
                          .a = TRLI_NO_VALUE,
                          .b = TRLI_NO_VALUE,
                          .c = TRLI_NO_VALUE,
                          .da = TRLI_NO_VALUE,
                          .db = TRLI_NO_VALUE,
                          .dc = TRLI_NO_VALUE,
                          .modifier = NULL,
                          .place = deck->place};
    if (deck->where.chars) TRL_TRY(frame_value(in, &deck->where, source->names, target, axis, which, &piece->where));
    if (deck->kind == TRL_BC_EXPRESSION) {
        const trli_symbol *symbol;
        int e;
        TRL_TRY(modifier_of(in->model, deck, &e, &symbol));
        if (symbol) {
            const trl_text name = {deck->expression, deck->place, false};
            TRL_TRY(frame_value(in, &name, source->names, target, axis, which, &piece->a));
        } else {
            piece->modifier = in->model->front->entry[e].opaque;
            TRL_TRY(trli_plugin_inputs(in, e, &piece->inputs));
        }
        return TRL_OK;
    }
    const trl_value *const value[3] = {&deck->value, &deck->b, &deck->c};
    trli_ir_value *const result[3] = {&piece->a, &piece->b, &piece->c};
    for (int i = 0; i < 3; ++i) {
        if (value[i]->count == 0) continue;
        if (value[i]->count > 1)
            return trl_fail(in->model->ctx, TRL_ERR_INPUT, &value[i]->place,
                            "a boundary value of '%s' is a scalar, not a list", source->name);
        TRL_TRY(frame_value(in, value[i]->text, source->names, target, axis, which, result[i]));
    }
    /* robin with b = 0 is dirichlet c/a */
    if (piece->kind == TRL_BC_ROBIN) {
        if (trli_ir_is_zero(&in->model->ir, piece->a) && trli_ir_is_zero(&in->model->ir, piece->b))
            return trl_fail(in->model->ctx, TRL_ERR_INPUT, &value[0]->place,
                            "robin with a = 0 and b = 0 says nothing of '%s': one of them has to be another number",
                            source->name);
        if (trli_ir_is_zero(&in->model->ir, piece->b)) {
            piece->kind = TRL_BC_DIRICHLET;
            piece->a = trli_ir_binary(&in->model->ir, TRLI_OP_DIV, piece->c, piece->a);
        }
    }
done:
    return err;
}

static trl_err lower_side(trli_instance *in, const trli_boundary_source *source, const trl_bc_side *deck,
                          trl_location target, int axis, int which, trli_side *side)
{
    trl_err err = TRL_OK;
    if (deck->npieces == 0) return TRL_OK;
    side->piece = trli_new(in->model->ctx, (size_t)deck->npieces, sizeof *side->piece);
    if (!side->piece) return trli_no_memory(in->model->ctx, NULL, "for boundary conditions");
    side->npieces = deck->npieces;
    for (int i = 0; i < deck->npieces; ++i) {
        TRL_TRY(lower_piece(in, source, &deck->piece[i], target, axis, which, &side->piece[i]));
        if (side->piece[i].modifier && deck->npieces > 1)
            return trl_fail(in->model->ctx, TRL_ERR_INPUT, &deck->piece[i].place,
                            "a modifier sets its whole side: '%s' cannot stand beside other pieces",
                            deck->piece[i].expression);
    }
    if (deck->piece[deck->npieces - 1].where.chars)
        return trl_fail(in->model->ctx, TRL_ERR_INPUT, &deck->piece[deck->npieces - 1].place,
                        "the last piece of a side needs no `where`: it is the condition everywhere else");
done:
    return err;
}

/* Whether a field is a tangent: of which field, along which direction. */
static bool is_tangent(const trli_instance *in, int field, int *direction, int *primal)
{
    const trli_model *model = in->model;
    *direction = model->field[field].direction;
    *primal = model->field[field].primal;
    for (int v = 0; model->ndirections && !*direction && v < model->nvariables; ++v)
        if (model->variable[v].direction && in->variable[v] == field) {
            *direction = model->variable[v].direction;
            *primal = in->variable[model->variable[v].of];
        }
    return *direction != 0;
}

/* The derivative of a condition's value. */
static trl_err differentiate(trli_instance *in, int direction, int axis, trli_ir_value value, trli_ir_value *derivative)
{
    if (value < 0) return TRL_OK;
    in->across = axis;
    return trli_tangent(in, direction, value, derivative);
}

/* A modifier of a field that does not change inside, and of others that do not change, sets nothing that changes. */
static trl_err drop_constant(trli_instance *in, int direction, int axis, trli_piece *p)
{
    trl_err err = TRL_OK;
    for (int r = 0; r < p->modifier->ninputs; ++r) {
        trli_ir_value inner;
        TRL_TRY(differentiate(in, direction, axis, trli_ir_field(&in->model->ir, p->inputs[r]), &inner));
        if (inner >= 0) return TRL_OK;
    }
    p->modifier = NULL;
    p->kind = TRL_BC_DIRICHLET;
    p->a = trli_ir_constant(&in->model->ir, 0);
done:
    return err;
}

static trl_err differentiate_side(trli_instance *in, int direction, const trli_boundary_source *source, bool only_sides,
                                  int axis, trli_side *side)
{
    const trli_direction *along = &in->model->direction[direction - 1];
    trl_err err = TRL_OK;
    for (int i = 0; i < side->npieces; ++i) {
        trli_piece *p = &side->piece[i];
        if (p->modifier && only_sides) TRL_TRY(drop_constant(in, direction, axis, p));
        if (p->modifier && along->solved)
            return trl_fail(in->model->ctx, TRL_ERR_INPUT, &p->place,
                            "solving for '%s' needs the derivative of this condition of '%s', and a modifier has none: "
                            "write the condition as a formula",
                            along->solved, source->name);
        if (p->modifier)
            return trl_fail(in->model->ctx, TRL_ERR_INPUT, &p->place,
                            "the sensitivity of '%s' to '%s' needs the derivative of this condition, and a modifier "
                            "has none: write the condition as a formula",
                            source->name, along->name);
        TRL_TRY(differentiate(in, direction, axis, p->a, &p->da));
        TRL_TRY(differentiate(in, direction, axis, p->b, &p->db));
        TRL_TRY(differentiate(in, direction, axis, p->c, &p->dc));
    }
done:
    return err;
}

/* Where the time derivative of a condition cannot be formed, the rate has no condition, which is an error only if
 * something reads beyond the side. Points on the side that the condition sets need it. */
static trl_err drop_unknown_rate(const trli_instance *in, trl_location target, int axis, trli_side *side)
{
    bool all = true;
    trl_err err = TRL_OK;
    for (int i = 0; i < side->npieces; ++i) {
        const trli_piece *p = &side->piece[i];
        const trli_ir_value value[] = {p->a, p->b, p->c};
        if (target >> axis & 1 && p->kind == TRL_BC_DIRICHLET) return TRL_OK;
        all &= !p->modifier;
        for (int k = 0; k < 3; ++k) {
            bool known = true;
            if (value[k] >= 0) TRL_TRY(trli_rate_is_known(in, value[k], &known));
            all &= known;
        }
    }
    if (!all) side->npieces = 0;
done:
    return err;
}

trl_err trli_boundary_lower_side(trli_instance *instance, int field, int s, trli_side *side)
{
    trli_model *model = instance->model;
    const trli_boundary_source source = model->field[field].boundary;
    trl_location target = model->field[field].location;
    trl_err err = TRL_OK;
    int direction, primal;
    *side = (trli_side){0};
    if (!source.side || model->layout->grid.periodic[s / 2]) return TRL_OK;
    TRL_TRY(lower_side(instance, &source, &source.side[s], target, s / 2, s % 2, side));
    for (int i = 0; i < side->npieces; ++i)
        if (side->piece[i].modifier)
            TRL_TRY(check_modifier(model, side->piece[i].modifier, target, &source.side[s].piece[i]));
    side->tangent = is_tangent(instance, field, &direction, &primal);
    side->primal = primal;
    if (side->tangent && model->direction[direction - 1].time)
        TRL_TRY(drop_unknown_rate(instance, target, s / 2, side));
    if (side->tangent)
        TRL_TRY(differentiate_side(instance, direction, &source, model->field[field].only_sides, s / 2, side));
done:
    return err;
}

trl_err trli_boundary_lower(trli_instance *instance, int field, trli_side sides[6])
{
    trl_err err = TRL_OK;
    memset(sides, 0, 6 * sizeof *sides);
    for (int s = 0; s < 2 * instance->model->layout->grid.dim; ++s)
        TRL_TRY(trli_boundary_lower_side(instance, field, s, &sides[s]));
done:
    return err;
}

trl_err trli_boundary_face_value(trli_instance *instance, const trli_boundary_source *boundary, int axis, int side,
                                 trl_location face, trli_ir_value inside, trli_ir_value *value)
{
    const trl_bc_side *deck = boundary->side ? &boundary->side[2 * axis + side] : NULL;
    trli_side lowered = {0};
    trli_instance *sides;
    trl_err err = TRL_OK;
    *value = inside;
    if (!deck || deck->npieces == 0) return TRL_OK;
    TRL_TRY(trli_instance_sides(instance, &sides));
    TRL_TRY(lower_side(sides, boundary, deck, face, axis, side, &lowered));
    for (int i = lowered.npieces - 1; i >= 0; --i) {
        const trli_piece *p = &lowered.piece[i];
        trli_ir_value here = p->kind == TRL_BC_DIRICHLET ? p->a : inside;
        *value = p->where < 0 ? here : trli_ir_select(&instance->model->ir, p->where, here, *value);
    }
done:
    trli_free(lowered.piece);
    return err;
}

/* A modifier sets what it likes by itself. */
static trl_err set_on_side(trli_instance *sides, const trli_boundary_source *boundary, trl_location location, int s,
                           trli_ir_value *value)
{
    trli_ir *ir = &sides->model->ir;
    trli_side lowered = {0};
    trli_ir_value on_side = *value;
    trl_err err = TRL_OK;
    TRL_TRY(lower_side(sides, boundary, &boundary->side[s], location, s / 2, s % 2, &lowered));
    for (int i = lowered.npieces - 1; i >= 0; --i) {
        const trli_piece *p = &lowered.piece[i];
        const trli_ir_value here = trli_sets_points(p) && !p->modifier ? p->a : *value;
        on_side = p->where < 0 ? here : trli_ir_select(ir, p->where, here, on_side);
    }
    *value = trli_ir_select(ir, trli_ir_at_side(ir, s / 2, s % 2), on_side, *value);
    err = ir->err;
done:
    trli_free(lowered.piece);
    return err;
}

trl_err trli_boundary_set_points(trli_instance *instance, const trli_boundary_source *boundary, trl_location location,
                                 trli_ir_value *value)
{
    const trl_grid *grid = &instance->model->layout->grid;
    trli_instance *sides;
    trl_err err = TRL_OK;
    for (int s = 0; s < 2 * grid->dim; ++s) {
        if (!(location >> s / 2 & 1) || grid->periodic[s / 2] || !trli_side_may_set(&boundary->side[s])) continue;
        TRL_TRY(trli_instance_sides(instance, &sides));
        TRL_TRY(set_on_side(sides, boundary, location, s, value));
    }
done:
    return err;
}

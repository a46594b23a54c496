/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values of ghost layers: the operator of a condition is inverted for the ghost, layer by layer. A lowered side is in
 * the frame of the interior point next to the side (or on it, for a location with points there); a layer reads it
 * shifted. */
#include "model_impl.h"

#define TRL_GHOST trli_ir_value
#define TRL_GHOST_ENV trli_ir *
#define TRL_GHOST_NUMBER(ir, x) trli_ir_constant(ir, x)
#define TRL_GHOST_ADD(ir, p, q) trli_ir_binary(ir, TRLI_OP_ADD, p, q)
#define TRL_GHOST_SUB(ir, p, q) trli_ir_binary(ir, TRLI_OP_SUB, p, q)
#define TRL_GHOST_MUL(ir, p, q) trli_ir_binary(ir, TRLI_OP_MUL, p, q)
#define TRL_GHOST_DIV(ir, p, q) trli_ir_binary(ir, TRLI_OP_DIV, p, q)
#include <trl_boundary_body.h>

trli_ir_value trli_ir_ghost(trli_ir *ir, trl_bc_kind kind, bool on_side, double distance, trli_ir_value mirror,
                            trli_ir_value nearest, const trli_ir_value values[3])
{
    return trl_ghost_value(ir, kind, on_side, distance, mirror, nearest, values[0], values[1], values[2]);
}

/* A side in the frame of one of its layers. */
typedef struct frame {
    trli_ir *ir;
    bool on_side;
    double distance;
    int axis, to_mirror, to_nearest; /* offsets from the ghost */
} frame;

static trli_ir_value ghost_of(const frame *f, const trli_piece *p, trli_ir_value field, trli_ir_value a,
                              trli_ir_value b, trli_ir_value c)
{
    trli_ir_value mirror = trli_ir_shift(f->ir, field, f->axis, f->to_mirror);
    trli_ir_value nearest = trli_ir_shift(f->ir, field, f->axis, f->to_nearest);
    return trl_ghost_value(f->ir, p->kind, f->on_side, f->distance, mirror, nearest, a, b, c);
}

static trli_ir_value or_zero(trli_ir *ir, trli_ir_value v)
{
    return v < 0 ? trli_ir_constant(ir, 0) : v;
}

/* The ghost of a tangent: the rule is linear in the field, with the derivatives of its values. Of a T + b dT/dn = c
 * that is a T' + b dT'/dn = c' - a' T - b' dT/dn. a ... dc: the piece's values, seen from the ghost. */
static trli_ir_value tangent_ghost(const frame *f, const trli_piece *p, trli_ir_value field, trli_ir_value primal,
                                   const trli_ir_value v[6])
{
    trli_ir *ir = f->ir;
    trli_ir_value c = or_zero(ir, v[5]);
    if (p->kind != TRL_BC_ROBIN) return ghost_of(f, p, field, or_zero(ir, v[3]), TRLI_NO_VALUE, TRLI_NO_VALUE);
    trli_ir_value ghost = ghost_of(f, p, primal, v[0], v[1], v[2]);
    trli_ir_value mirror = trli_ir_shift(ir, primal, f->axis, f->to_mirror);
    if (v[3] >= 0) {
        trli_ir_value mean =
            trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, 0.5), trli_ir_binary(ir, TRLI_OP_ADD, ghost, mirror));
        trli_ir_value here = f->on_side ? trli_ir_shift(ir, primal, f->axis, f->to_nearest) : mean;
        c = trli_ir_binary(ir, TRLI_OP_SUB, c, trli_ir_binary(ir, TRLI_OP_MUL, v[3], here));
    }
    if (v[4] >= 0) {
        trli_ir_value slope = trli_ir_binary(ir, TRLI_OP_DIV, trli_ir_binary(ir, TRLI_OP_SUB, ghost, mirror),
                                             trli_ir_constant(ir, f->distance));
        c = trli_ir_binary(ir, TRLI_OP_SUB, c, trli_ir_binary(ir, TRLI_OP_MUL, v[4], slope));
    }
    return ghost_of(f, p, field, v[0], v[1], c);
}

trl_err trli_side_layer(trli_model *model, int field, const trli_side *side, int axis, int which, int m,
                        trli_ir_value *value)
{
    trli_ir *ir = &model->ir;
    bool on_side = model->field[field].location >> axis & 1;
    int inward = which ? -1 : 1;
    int span = trl_ghost_span(on_side, m);
    trli_ir_value f = trli_ir_field(ir, field),
                  primal = side->tangent ? trli_ir_field(ir, side->primal) : TRLI_NO_VALUE;
    const frame at = {ir, on_side, span * model->layout->grid.spacing[axis], axis, inward * span, inward * m};
    *value = m == 0 ? f : TRLI_NO_VALUE;
    for (int i = side->npieces - 1; i >= 0; --i) {
        const trli_piece *p = &side->piece[i];
        trli_ir_value v[7] = {p->a, p->b, p->c, p->da, p->db, p->dc, p->where}, here;
        for (int j = 0; j < 7; ++j) v[j] = v[j] < 0 ? v[j] : trli_ir_shift(ir, v[j], axis, inward * m);
        if (m > 0)
            here = side->tangent ? tangent_ghost(&at, p, f, primal, v) : ghost_of(&at, p, f, v[0], v[1], v[2]);
        else if (trli_sets_points(p))
            here = side->tangent ? or_zero(ir, v[3]) : v[0];
        else
            here = f;
        *value = v[6] < 0 ? here : trli_ir_select(ir, v[6], here, *value);
    }
    return ir->err;
}

bool trli_sets_points(const trli_piece *piece)
{
    return piece->kind == TRL_BC_DIRICHLET || piece->kind == TRL_BC_EXPRESSION;
}

int trli_piece_values(const trli_side *side, const trli_piece *p, bool on, trli_ir_value value[TRLI_PIECE_VALUES])
{
    const bool all = !on || trli_sets_points(p);
    const bool solved = all && (!side->tangent || p->kind == TRL_BC_ROBIN); /* robin is solved for a tangent, too */
    const bool linear = side->tangent && p->da < 0 && p->db < 0;            /* without the ghost of the other field */
    const trli_ir_value each[TRLI_PIECE_VALUES] = {p->where,
                                                   solved ? p->a : TRLI_NO_VALUE,
                                                   solved && !on ? p->b : TRLI_NO_VALUE,
                                                   solved && !on && !linear ? p->c : TRLI_NO_VALUE,
                                                   all ? p->da : TRLI_NO_VALUE,
                                                   on ? TRLI_NO_VALUE : p->db,
                                                   on ? TRLI_NO_VALUE : p->dc};
    int n = 0;
    for (int i = 0; i < TRLI_PIECE_VALUES; ++i)
        if (each[i] >= 0) value[n++] = each[i];
    return n;
}

trl_err trli_side_visit(trli_model *model, const trli_side *side, trl_err (*visit)(void *data, trli_ir_value value),
                        void *data)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < side->npieces; ++i) {
        const trli_piece *p = &side->piece[i];
        trli_ir_value value[TRLI_PIECE_VALUES];
        const int n = trli_piece_values(side, p, false, value);
        for (int k = 0; k < n; ++k) TRL_TRY(visit(data, value[k]));
        for (int r = 0; p->modifier && r < p->modifier->ninputs; ++r)
            TRL_TRY(visit(data, trli_ir_field(&model->ir, p->inputs[r])));
    }
done:
    return err;
}

bool trli_side_is_fixed(const trl_bc_side *side)
{
    for (int i = 0; i < side->npieces; ++i)
        if (side->piece[i].kind != TRL_BC_DIRICHLET && side->piece[i].kind != TRL_BC_EXPRESSION) return false;
    return side->npieces > 0;
}

bool trli_side_may_set(const trl_bc_side *side)
{
    bool may = false;
    for (int i = 0; i < side->npieces; ++i) {
        const trl_bc_kind kind = side->piece[i].kind;
        may |= kind == TRL_BC_DIRICHLET || kind == TRL_BC_EXPRESSION || kind == TRL_BC_ROBIN;
    }
    return may;
}

bool trli_sides_are_zero(const trli_side sides[6])
{
    for (int s = 0; s < 6; ++s)
        for (int i = 0; i < sides[s].npieces; ++i)
            if (sides[s].piece[i].da >= 0 || sides[s].piece[i].db >= 0 || sides[s].piece[i].dc >= 0) return false;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Conditions at the sides of a field, lowered. */
#ifndef TRLI_SIDE_IMPL_H
#define TRLI_SIDE_IMPL_H

#include "ir_impl.h"
#include "opaque_impl.h"
#include "variable_impl.h"

/* The lowered pieces of one side, in the frame of the side: combined into one value per layer when depths are known. */
typedef struct trli_piece {
    trl_bc_kind kind;
    trli_ir_value where;         /* TRLI_NO_VALUE: always */
    trli_ir_value a, b, c;       /* robin a, b, c; otherwise the value in a */
    trli_ir_value da, db, dc;    /* their derivatives on the side of a tangent; TRLI_NO_VALUE: zero */
    const trli_opaque *modifier; /* NULL: none */
    int *inputs;                 /* fields it requires; owned by the instance's model */
    trl_place place;
} trli_piece;

enum { TRLI_PIECE_VALUES = 7 }; /* where, and all of a ... dc */

typedef struct trli_side {
    int npieces;
    trli_piece *piece;
    bool tangent; /* the condition is the derivative of that of field primal */
    int primal;
} trli_side;

/* The points of a field on one side. */
typedef struct trli_plane {
    int of; /* index among a step's fields */
    int8_t axis, side;
} trli_plane;

typedef struct trli_model trli_model;

/* The value of a ghost by the rule of a kind (trl_boundary_body.h). */
trli_ir_value trli_ir_ghost(trli_ir *ir, trl_bc_kind kind, bool on_side, double distance, trli_ir_value mirror,
                            trli_ir_value nearest, const trli_ir_value values[3]);
/* The value of a ghost layer (1, 2, ...) or of the plane on the side (layer 0). */
TRL_NODISCARD trl_err trli_side_layer(trli_model *model, int field, const trli_side *side, int axis, int which,
                                      int layer, trli_ir_value *value);
/* The values that ghosts follow from by a piece, beside the field itself and a tangent's primal one; on: that points on
 * the side follow from. Returns how many. A modifier's inputs are not among them. */
int trli_piece_values(const trli_side *side, const trli_piece *piece, bool on, trli_ir_value value[TRLI_PIECE_VALUES]);
/* Call a function for each value that the ghosts of a side follow from, and for each field that a modifier requires. */
TRL_NODISCARD trl_err trli_side_visit(trli_model *model, const trli_side *side,
                                      trl_err (*visit)(void *data, trli_ir_value value), void *data);
/* Whether a piece sets points on the side. */
bool trli_sets_points(const trli_piece *piece);
/* Whether conditions may set points on the side: robin with b = 0 is dirichlet. */
bool trli_side_may_set(const trl_bc_side *side);
/* Whether the side's points are set by a Dirichlet condition everywhere. */
bool trli_side_is_fixed(const trl_bc_side *side);
/* Whether a tangent's conditions are all zero: the derivatives of conditions that do not change along its direction. */
bool trli_sides_are_zero(const trli_side sides[6]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Conditions at the sides of a field, lowered. */
#ifndef TRLI_SIDE_IMPL_H
#define TRLI_SIDE_IMPL_H

#include "entry_impl.h"
#include "ir_impl.h"

/* The lowered pieces of one side, in the frame of the side: combined into one value per layer when depths are known. */
typedef struct trli_piece {
    trl_bc_kind kind;
    trli_value where;      /* TRLI_NO_VALUE: always */
    trli_value a, b, c;    /* robin a, b, c; otherwise the value in a */
    trli_value da, db, dc; /* their derivatives on the side of a tangent; TRLI_NO_VALUE: zero */
    int modifier;          /* entry of a modifier plugin, or -1 */
    int *inputs;           /* fields it requires; owned by the instance's model */
    trl_place place;
} trli_piece;

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

#endif

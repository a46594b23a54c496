/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of boundary conditions: pieces as they were added, with what their operators say. */
#ifndef TRLI_BOUNDARY_IMPL_H
#define TRLI_BOUNDARY_IMPL_H

#include <context_impl.h>
#include <trl_boundary.h>

#include "spatialops_impl.h"

/* An operator along one axis, solved for its outermost ghost. Offsets count outward from the point of the result, whose
 * own index along the axis counts outward from the first ghost's inner neighbour. */
typedef struct trli_inversion {
    trl_bc_kind base; /* the rule of the other layers: dirichlet or neumann, with value * factor */
    double factor;
    int at;        /* the result's index: 0 at the outermost interior point of the input, 1 at the first ghost, ... */
    int layer;     /* that is solved for */
    double weight; /* of its ghost */
} trli_inversion;

typedef struct trli_piece_bc {
    trl_bc bc;
    trl_bc_dependency *dependency; /* [bc.ndependencies] */
    trli_inversion inversion;      /* OPERATOR */
} trli_piece_bc;

/* The pieces of a side, in the order they were added. */
typedef struct trli_pieces {
    trli_piece_bc *piece; /* [n] */
    int32_t n, capacity;
} trli_pieces;

struct trl_boundary {
    const trl_layout *layout;
    trl_location location;
    trli_pieces side[6]; /* x- x+ y- y+ z- z+ */
};

/* ---- one side of one patch, as it is filled ---- */

typedef struct trli_side_fill {
    const trl_boundary *boundary;
    const trl_patch *patch;
    int local, axis, side, row_axis;
    int npieces;
    const trli_piece_bc *piece;
    trl_array target;
    trl_lidx edge;   /* index of the outermost interior point: on the side, or next to it */
    int layers;      /* to set; 0: the points on the side */
    trl_lidx inside; /* interior points along the axis that are valid */
    double t, spacing;
    trl_field_device *device; /* where the target is; NULL: the host */
} trli_side_fill;

/* Consecutive points of a side, from `at` (at[axis] is the edge) along row_axis. */
enum { TRLI_RUN_POINTS = 256 };
typedef struct trli_side_run {
    trl_lidx at[3];
    trl_lidx n;
} trli_side_run;

/* Index along the axis, in a location with or without points on the side, of the point on the side or else next to it.
 */
trl_lidx trli_side_edge(const trli_side_fill *fill, trl_location location);
/* Whether a piece's own condition holds at a point. */
bool trli_side_holds(const trli_side_fill *fill, const trl_bc *bc, const trl_lidx at[3]);
/* Whether a piece sets anything now: of the points on a side only those that it fixes. */
bool trli_side_takes_part(const trli_side_fill *fill, const trl_bc *bc);
bool trli_bc_is_zero(const trl_bc_value *value);
TRL_NODISCARD trl_err trli_side_values(const trli_side_fill *fill, const trl_bc_value *value, const trli_side_run *run,
                                       double values[TRLI_RUN_POINTS]);

/* boundary_device.c: set the layers, or points, where the target is. range: the side's own axes. *done = false: the
 * host has to. */
TRL_NODISCARD trl_err trli_side_there(const trli_side_fill *fill, const trl_box *range, bool *done);

static inline bool trli_on_side(trl_location location, int axis)
{
    return (int)location >> axis & 1;
}

#endif

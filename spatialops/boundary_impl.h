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

static inline bool trli_on_side(trl_location location, int axis)
{
    return (int)location >> axis & 1;
}

#endif

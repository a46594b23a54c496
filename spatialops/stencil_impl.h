/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Linear operators along one axis as tables of (offset, weight): the one definition of each stencil. */
#ifndef TRLI_STENCIL_IMPL_H
#define TRLI_STENCIL_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#define TRLI_STENCIL_POINTS 17 /* of the widest filter */

/* result(i) = scale * (sum over the points, in order, of weight * f(i + offset)), scale = factor / spacing^order.
 * A flipping operator maps location bit b of its axis to 1 - b: its offsets are given for bit 0 -> 1 (cell to face,
 * face i lying between cells i-1 and i); for bit 1 -> 0 each offset is one more. */
typedef struct trli_stencil {
    int npoints;
    int8_t offset[TRLI_STENCIL_POINTS];
    double weight[TRLI_STENCIL_POINTS];
    double factor;
    int order;  /* power of 1/spacing */
    bool flips; /* changes the axis' location bit */
} trli_stencil;

typedef enum trli_stencil_id {
    TRLI_STENCIL_INTERPOLANT,         /* (f(i-1) + f(i)) / 2 */
    TRLI_STENCIL_DERIVATIVE,          /* (f(i) - f(i-1)) / h: gradient and divergence */
    TRLI_STENCIL_SECOND,              /* (f(i-1) + f(i+1) - 2 f(i)) / h^2 */
    TRLI_STENCIL_CENTRAL_INTERPOLANT, /* (f(i-1) + f(i+1)) / 2 */
    TRLI_STENCIL_CENTRAL_DERIVATIVE,  /* (f(i+1) - f(i-1)) / 2h */
    TRLI_STENCIL_INTERPOLANT4,        /* (9 f(i-1) + 9 f(i) - f(i-2) - f(i+1)) / 16 */
    TRLI_STENCIL_DERIVATIVE4,         /* (27 f(i) - 27 f(i-1) - f(i+1) + f(i-2)) / 24h */
    TRLI_STENCIL_EXTRAPOLANT_MINUS,   /* 1.5 f(i-1) - 0.5 f(i-2) */
    TRLI_STENCIL_EXTRAPOLANT_PLUS,    /* 1.5 f(i) - 0.5 f(i+1) */
    TRLI_STENCIL_COUNT
} trli_stencil_id;

/* The table of an operator. Thread: any. */
const trli_stencil *trli_stencil_get(trli_stencil_id id);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Linear operators along one axis as tables of (offset, weight): the one definition of each stencil. */
#ifndef TRL_STENCIL_H
#define TRL_STENCIL_H

#include <stdbool.h>
#include <stdint.h>

#include <trl_err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRL_STENCIL_POINTS 17 /* of the widest filter */

/* result(i) = scale * (sum over the points, in order, of weight * f(i + offset)), scale = factor / spacing^order.
 * A flipping operator maps location bit b of its axis to 1 - b: its offsets are given for bit 0 -> 1 (cell to face, face i lying
 * between cells i-1 and i); for bit 1 -> 0 each offset is one more. */
typedef struct trl_stencil {
    int npoints;
    int8_t offset[TRL_STENCIL_POINTS];
    double weight[TRL_STENCIL_POINTS];
    double factor;
    int order;  /* power of 1/spacing */
    bool flips; /* changes the axis' location bit */
} trl_stencil;

typedef enum trl_stencil_id {
    TRL_STENCIL_INTERPOLANT,         /* (f(i-1) + f(i)) / 2 */
    TRL_STENCIL_DERIVATIVE,          /* (f(i) - f(i-1)) / h: gradient and divergence */
    TRL_STENCIL_SECOND,              /* (f(i-1) + f(i+1) - 2 f(i)) / h^2 */
    TRL_STENCIL_CENTRAL_INTERPOLANT, /* (f(i-1) + f(i+1)) / 2 */
    TRL_STENCIL_CENTRAL_DERIVATIVE,  /* (f(i+1) - f(i-1)) / 2h */
    TRL_STENCIL_INTERPOLANT4,        /* (9 f(i-1) + 9 f(i) - f(i-2) - f(i+1)) / 16 */
    TRL_STENCIL_DERIVATIVE4,         /* (27 f(i) - 27 f(i-1) - f(i+1) + f(i-2)) / 24h */
    TRL_STENCIL_EXTRAPOLANT_MINUS,   /* 1.5 f(i-1) - 0.5 f(i-2) */
    TRL_STENCIL_EXTRAPOLANT_PLUS,    /* 1.5 f(i) - 0.5 f(i+1) */
    TRL_STENCIL_COUNT
} trl_stencil_id;

/* The table of an operator. Thread: any. */
TRL_API const trl_stencil *trl_stencil_get(trl_stencil_id id);

#ifdef __cplusplus
}
#endif
#endif

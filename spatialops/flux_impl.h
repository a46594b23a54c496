/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Advective fluxes, for the direct path and for formulas. */
#ifndef TRLI_FLUX_IMPL_H
#define TRLI_FLUX_IMPL_H

#include <trl_grid.h>
#include <trl_limiter_body.h>

/* Points that the value at a face follows from, where `phi` is the location of the values: their offsets along the
 * axis, of the two points beside the face, minus side first, then of the next point beyond each of these. A flow from
 * the minus side has at[2], at[0] and at[1] far upwind, upwind and downwind; one from the plus side at[3], at[1] and
 * at[0]. Returns how many are read, 2 or 4. limiter: below 0 for the central flux. */
static inline int trli_flux_points(int limiter, trl_location phi, int axis, int8_t at[4])
{
    const int8_t minus = (int8_t)(((int)phi >> axis & 1) - 1);
    at[0] = minus;
    at[1] = (int8_t)(minus + 1);
    at[2] = (int8_t)(minus - 1);
    at[3] = (int8_t)(minus + 2);
    return limiter > TRL_LIMITER_UPWIND ? 4 : 2;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stddef.h>

#include "stencil_impl.h"

/* Exact weights first and one rounded factor, so that a constant keeps its value and has no derivative. */
static const trli_stencil stencils[TRLI_STENCIL_COUNT] = {
    [TRLI_STENCIL_INTERPOLANT] = {.npoints = 2, .offset = {-1, 0}, .weight = {1, 1}, .factor = 0.5, .flips = true},
    [TRLI_STENCIL_DERIVATIVE] =
        {.npoints = 2, .offset = {0, -1}, .weight = {1, -1}, .factor = 1, .order = 1, .flips = true},
    [TRLI_STENCIL_SECOND] = {.npoints = 3, .offset = {-1, 1, 0}, .weight = {1, 1, -2}, .factor = 1, .order = 2},
    [TRLI_STENCIL_CENTRAL_INTERPOLANT] = {.npoints = 2, .offset = {-1, 1}, .weight = {1, 1}, .factor = 0.5},
    [TRLI_STENCIL_CENTRAL_DERIVATIVE] = {.npoints = 2, .offset = {1, -1}, .weight = {1, -1}, .factor = 0.5, .order = 1},
    [TRLI_STENCIL_INTERPOLANT4] =
        {.npoints = 4, .offset = {-1, 0, -2, 1}, .weight = {9, 9, -1, -1}, .factor = 1.0 / 16, .flips = true},
    [TRLI_STENCIL_DERIVATIVE4] = {.npoints = 4,
                                  .offset = {0, -1, 1, -2},
                                  .weight = {27, -27, -1, 1},
                                  .factor = 1.0 / 24,
                                  .order = 1,
                                  .flips = true},
    [TRLI_STENCIL_EXTRAPOLANT_MINUS] =
        {.npoints = 2, .offset = {-1, -2}, .weight = {1.5, -0.5}, .factor = 1, .flips = true},
    [TRLI_STENCIL_EXTRAPOLANT_PLUS] =
        {.npoints = 2, .offset = {0, 1}, .weight = {1.5, -0.5}, .factor = 1, .flips = true},
};

const trli_stencil *trli_stencil_get(trli_stencil_id id)
{
    return id < TRLI_STENCIL_COUNT ? &stencils[id] : NULL;
}

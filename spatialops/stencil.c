/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stddef.h>

#include <trl_stencil.h>

static const trl_stencil stencils[TRL_STENCIL_COUNT] = {
    [TRL_STENCIL_INTERPOLANT] = {.name = "interpolant",
                                 .doc = "linear interpolation halfway between two points; second order",
                                 .npoints = 2,
                                 .offset = {-1, 0},
                                 .weight = {1, 1},
                                 .factor = 0.5,
                                 .flips = true},
    [TRL_STENCIL_DERIVATIVE] = {.name = "derivative",
                                .doc = "difference of two points over the spacing; second order",
                                .npoints = 2,
                                .offset = {0, -1},
                                .weight = {1, -1},
                                .factor = 1,
                                .order = 1,
                                .flips = true},
    [TRL_STENCIL_SECOND] = {.name = "second derivative",
                            .doc = "three-point second derivative; second order",
                            .npoints = 3,
                            .offset = {-1, 1, 0},
                            .weight = {1, 1, -2},
                            .factor = 1,
                            .order = 2},
};

const trl_stencil *trl_stencil_get(trl_stencil_id id)
{
    return id < TRL_STENCIL_COUNT ? &stencils[id] : NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the files of spatialops/ share and nobody else sees. */
#ifndef TRL_SPATIALOPS_IMPL_H
#define TRL_SPATIALOPS_IMPL_H

#include <trl_grid.h>

static inline char trli_axis_name(int axis)
{
    return "xyz"[axis];
}

/* First element of part i when n elements are cut into parts as evenly as possible, the larger parts first. */
trl_gidx trli_cut_first(trl_gidx n, trl_gidx parts, trl_gidx i);
/* The part that holds an element. Needs parts <= n. */
trl_gidx trli_cut_part(trl_gidx n, trl_gidx parts, trl_gidx element);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "arithmetic_impl.h"
#include "spatialops_impl.h"

enum { LONG_ROW = 64 }; /* rows from this length on begin at a cache line with their first owned point */

static ptrdiff_t rounded(ptrdiff_t n, trli_cache_line line)
{
    return trli_ceil_div(n, line) * line;
}

int64_t trli_lay_out(trl_array *a, int dim, trli_cache_line line, ptrdiff_t *origin)
{
    const bool is_long = a->held.hi[0] - a->held.lo[0] >= LONG_ROW;
    const ptrdiff_t ghosts = a->owned.lo[0] - a->held.lo[0], lead = is_long ? rounded(ghosts, line) - ghosts : 0;
    ptrdiff_t stride = 1;
    for (int axis = 0; axis < dim; ++axis) {
        a->stride[axis] = stride;
        stride *= a->held.hi[axis] - a->held.lo[axis];
        if (axis == 0 && is_long) stride = rounded(stride, line);
    }
    *origin = lead - trl_array_offset(a, a->held.lo[0], a->held.lo[1], a->held.lo[2]);
    return lead + stride;
}

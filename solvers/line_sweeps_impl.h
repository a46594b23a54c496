/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Lines of a grid along an axis, each of which is solved by elimination. They cross patches and ranks: of a line each
 * patch has a part, which goes on from what the one before has left. */
#ifndef TRLI_LINE_SWEEPS_IMPL_H
#define TRLI_LINE_SWEEPS_IMPL_H

#include "grid_level_impl.h"

typedef struct trli_line_sweeps trli_line_sweeps;

/* Whether the last point along an axis has a colour of its own: it is a neighbour of the first one, and would have its
 * colour. */
static inline bool trli_colour_is_odd(const trl_grid *grid, trl_location location, int axis)
{
    return grid->periodic[axis] && trl_grid_points(grid, location, axis) % 2 == 1 &&
           trl_grid_points(grid, location, axis) > 1;
}

/* Of one unknown on a grid that has vectors. */
TRL_NODISCARD trl_err trli_line_sweeps_create(const trli_grid_level *level, int axis, trli_line_sweeps **sweeps);
void trli_line_sweeps_destroy(trli_line_sweeps **sweeps);
/* Of lines: neighbouring ones differ. */
int trli_line_sweeps_colours(const trli_line_sweeps *sweeps);
/* Find the entries of all lines, by products of the level's operator: r = J z. Goes on after an error, as other ranks
 * do. Collective: yes. */
TRL_NODISCARD trl_err trli_line_sweeps_find(trli_line_sweeps *sweeps, trl_err (*multiply)(void *data), void *data,
                                            trl_loop *loop);
/* Add to z what solves the lines of a colour for a right-hand side; fields. Likewise. Collective: yes. */
TRL_NODISCARD trl_err trli_line_sweeps_run(trli_line_sweeps *sweeps, int right, int z, int colour, trl_loop *loop);
/* What all colours read and write, in bytes. */
double trli_line_sweeps_bytes(const trli_line_sweeps *sweeps);

#endif

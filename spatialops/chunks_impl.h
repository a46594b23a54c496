/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How work on a box is cut into chunks for the workers: 3-D tiles with long rows. */
#ifndef TRLI_CHUNKS_IMPL_H
#define TRLI_CHUNKS_IMPL_H

#include <trl_grid.h>

/* Chunks that `workers` should share the work on so many points in: 1 to spare itself the trouble. */
int64_t trli_chunks_wanted(int64_t points, int64_t workers);
/* Parts along each axis, about as many as wanted, so that all workers end together; rows are cut last. Returns how
 * many. */
int trli_box_cut(const trl_box *box, int64_t wanted, int parts[3]);
/* One of these parts. */
trl_box trli_box_part(const trl_box *box, const int parts[3], int chunk);
/* Where a loop deals one chunk to each of its workers, 2 at least, its caller begins before the others have heard of
 * it, and waits until it has heard of their end. So it takes the first so many planes along the last axis, and the
 * others share the rest; 0: all share all. `values`: read for a point. */
trl_lidx trli_planes_ahead(const trl_box *box, int64_t workers, int values);
/* The first so many planes, and the rest. */
void trli_box_split(const trl_box *box, trl_lidx planes, trl_box *first, trl_box *rest);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How work on a box is cut into chunks for the workers: 3-D tiles with long rows. */
#ifndef TRLI_CHUNKS_IMPL_H
#define TRLI_CHUNKS_IMPL_H

#include <trl_grid.h>

/* Chunks that `workers` should share the work on so many points in: 1 to spare itself the trouble. */
int64_t trli_chunks_wanted(int64_t points, int64_t workers);
/* Parts along each axis, about as many as wanted, so that all workers end together; rows are cut last. Returns how many. */
int trli_box_cut(const trl_box *box, int64_t wanted, int parts[3]);
/* One of these parts. */
trl_box trli_box_part(const trl_box *box, const int parts[3], int chunk);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How work on a box is cut into chunks for the workers: 3-D tiles with long rows. */
#ifndef TRLI_CHUNKS_IMPL_H
#define TRLI_CHUNKS_IMPL_H

#include <trl_grid.h>

/* The number of chunks into which `workers` should divide the work on so many points; 1 if sharing does not pay. */
int64_t trli_chunks_wanted(int64_t points, int64_t workers);
/* Parts along each axis, about as many as wanted, so that all workers end together; rows are cut last. Returns how
 * many. */
int trli_box_cut(const trl_box *box, int64_t wanted, int parts[3]);
/* One of these parts. */
trl_box trli_box_part(const trl_box *box, const int parts[3], int chunk);
/* The number of planes along the last axis that the caller of a loop takes for itself, where the loop has one chunk for
 * each of 2 or more workers. The caller starts before the other workers see the loop, and ends after it sees that they
 * are done, so its chunk is larger; the others share the remaining planes. 0: all chunks are alike. `values`: that are
 * read for a point. */
trl_lidx trli_planes_ahead(const trl_box *box, int64_t workers, int values);
/* The first so many planes, and the rest. */
void trli_box_split(const trl_box *box, trl_lidx planes, trl_box *first, trl_box *rest);

#endif

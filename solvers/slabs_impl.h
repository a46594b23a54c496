/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The grid in two distributions over the ranks. */
#ifndef TRLI_SLABS_IMPL_H
#define TRLI_SLABS_IMPL_H

#include "direct_impl.h"
#include "node_slab_impl.h"
#include "slabs_gpu_impl.h"

/* Points lo to hi of lines along the last axis. */
typedef struct trli_slab_piece {
    int lo, hi;
    trli_view view; /* of the grid's indices; rows are as those of planes */
} trli_slab_piece;

struct trli_slabs {
    trl_context *ctx;
    trl_simulation *sim;
    trl_loop *loop;
    int last, first[3];
    bool direct; /* the planes are the only patch: residual and solution are moved on the way */
    trli_node_slab *memory;
    bool *reach;             /* [ranks] whether the planes of a rank are in reach */
    trli_view *planes;       /* [ranks] where; rows begin at cache lines and are filled up to whole ones */
    trli_view own;           /* this rank's, */
    int n[3];                /* so many points */
    trli_shuffle_part lines; /* that this rank works on */
    trli_slab_piece *piece;  /* [pieces] of these, in their order */
    int pieces;
    trli_slabs_gpu *gpu;            /* NULL: there are none */
    trli_shuffle *outside, *inside; /* from patches to planes; from planes to lines; NULL: not needed */
    trli_view *residual, *solution; /* [local patches]; and of ghosts, if solutions may bring these along */
    bool brings;
    double **scratch; /* [workers] */
    size_t values;    /* of each */
    void *scratch_memory;
    const trli_direct_plan *plan;
    void (*visit)(void *data, int worker, const trli_spectral_lines *lines); /* NULL: a run solves */
    void *visitor;
    bool back, add; /* of the present run */
    double mean;    /* of the solution, if that is free */
};

/* ---- slabs_lines.c ---- */

/* Work on the lines of this rank, in chunks of a loop over slabs. */
TRL_NODISCARD trl_err trli_slabs_work_on_lines(void *slabs, int chunk, int chunks, int worker);

#endif

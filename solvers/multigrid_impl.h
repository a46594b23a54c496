/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Geometric multigrid: the equation of a system on coarser and coarser grids, each a model of its own. */
#ifndef TRLI_MULTIGRID_IMPL_H
#define TRLI_MULTIGRID_IMPL_H

#include <trl_loop.h>

#include "krylov_impl.h"

enum { TRLI_TRANSFER_MOST = 6, TRLI_TRANSFER_DEPTH = 2 };

/* ---- level.c ---- */

/* A problem on a coarser grid, with fields for its equations and no programs yet. Every rank has all of it. */
typedef struct trli_level {
    trl_problem problem;
    trl_simulation *sim;
} trli_level;

TRL_NODISCARD trl_err trli_level_create(trl_simulation *fine, const trl_grid *grid, trli_level **level);
/* Once its programs are there; directions: of a solver, which change places. Collective: yes. */
TRL_NODISCARD trl_err trli_level_freeze(trli_level *level, trli_solver *solver, const trli_vector *directions);
void trli_level_destroy(trli_level **level);

/* ---- transfer.c ---- */

/* Linear interpolation from coarse to fine cells along an axis, and its transpose. Beyond a side values go on with a
 * factor: 1, or -1 where they are zero on it. Along periodic axes indices go beyond the ends. */
typedef struct trli_axis_transfer {
    int fine, coarse; /* cells */
    int (*from)[2];   /* [fine] coarse cells, and */
    double (*weight)[2];
    int *first, *count;                 /* [coarse] fine cells that a coarse one takes from */
    int *centre;                        /* [coarse] the fine cell in which its centre lies */
    double (*back)[TRLI_TRANSFER_MOST]; /* [coarse] their weights */
} trli_axis_transfer;

typedef struct trli_grid_transfer {
    trli_axis_transfer axis[3];
    bool gathers;  /* patches of the fine grid are thinner than it reaches */
    double **line; /* [workers] a row of values */
    double *lines;
    double *buffer; /* of values of all ranks; NULL: none are brought together */
} trli_grid_transfer;

/* layout: of the fine grid; NULL: every rank has all of it. factor: by side, x- x+ ... */
TRL_NODISCARD trl_err trli_transfer_create(trl_context *ctx, const trl_layout *layout, const trl_grid *fine,
                                           const trl_grid *coarse, const double factor[6], int workers,
                                           trli_grid_transfer **transfer);
void trli_transfer_destroy(trli_grid_transfer **transfer);
/* Restrict a field of the fine frame, with two layers of ghosts where its layout is cut, to one of the coarse frame.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_restrict(const trli_grid_transfer *t, trl_simulation *fine, int from, trl_simulation *coarse,
                                    int to, trl_loop *loop);
/* Interpolate the other way. Collective: no. */
TRL_NODISCARD trl_err trli_prolong(const trli_grid_transfer *t, trl_simulation *coarse, int from, trl_simulation *fine,
                                   int to, trl_loop *loop);

#endif

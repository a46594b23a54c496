/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Geometric multigrid: the equation of a system on coarser and coarser grids, each a model of its own. */
#ifndef TRLI_MULTIGRID_IMPL_H
#define TRLI_MULTIGRID_IMPL_H

#include <trl_loop.h>

#include "gpu_row_impl.h"
#include "krylov_impl.h"

enum {
    TRLI_TRANSFER_MOST = 6,
    TRLI_TRANSFER_DEPTH = 2,
    TRLI_TRANSFER_LINES = TRLI_TRANSFER_MOST + 1,
    TRLI_TRANSFER_LANES = 8,
    TRLI_TRANSFER_FEW = 4 /* fine points that most coarse ones take from at most */
};

/* ---- level.c ---- */

/* A problem on a coarser grid, with fields for its equations and no programs yet. */
typedef struct trli_level {
    trl_problem problem;
    trl_simulation *sim;
} trli_level;

/* Kernels of grids with fewer cells are interpreted, but for GPUs: they are not worth a compiler's time. */
enum { TRLI_LEVEL_CELLS_COMPILED = 20000 };
/* layout: of the coarser grid, which it takes, even if it fails. */
TRL_NODISCARD trl_err trli_level_create(trl_simulation *fine, trl_layout **layout, trli_level **level);
/* Once its programs are there. Fails with INPUT, on all ranks, where patches or periods are thinner than these read.
 * Collective: no (the same on every rank). */
TRL_NODISCARD trl_err trli_level_plan(trli_level *level);
/* Once planned, and vectors that change places have one shape. Collective: yes. */
TRL_NODISCARD trl_err trli_level_freeze(trli_level *level, trli_solver *solver);
void trli_level_destroy(trli_level **level);

/* ---- multigrid.c ---- */

/* While a method is compiled: cycles will be for a vector of its own, too. */
TRL_NODISCARD trl_err trli_multigrid_take(struct trli_multigrid *m, const trli_vector *residual);
/* While a method is compiled: the last step of a cycle for r makes two products with its solution, of r and of `other`,
 * scalars; and such a cycle. Collective: yes. */
TRL_NODISCARD trl_err trli_multigrid_compile_sums(struct trli_multigrid *m, const int *other, int *with_r,
                                                  int *with_other);
TRL_NODISCARD trl_err trli_multigrid_cycle_with_sums(struct trli_multigrid *m);
/* Whether coarser grids always have entries in place of equations. */
bool trli_multigrid_by_entries(const struct trli_multigrid *m);
/* Coarser grids by entries; NULL: there are none. */
const struct trli_galerkin *trli_multigrid_galerkin(const struct trli_multigrid *m);
/* Of an operator that is not symmetric, once entries are found: whether neighbours count with both signs; and so much
 * that auto does without cycles. */
bool trli_multigrid_has_both_signs(const struct trli_multigrid *m);
bool trli_multigrid_is_mixed(const struct trli_multigrid *m);
int trli_multigrid_levels(const struct trli_multigrid *m);
const trl_grid *trli_multigrid_grid(const struct trli_multigrid *m, int level);
const trl_simulation *trli_multigrid_simulation(const struct trli_multigrid *m, int level);
/* What this rank's kernels and transfers read and write in a V cycle whose coarser grids have equations, in bytes. */
double trli_multigrid_cycle_bytes(const struct trli_multigrid *m);

/* ---- coarsen.c ---- */

/* The next coarser grid; false: there is none. s: of the fine grid; held: axes that stay as they are. */
bool trli_coarsen(const trli_solver *s, const trl_grid *fine, const bool held[3], trl_grid *coarse);
/* Why coarser grids need entries; NULL: they do not. Where coefficients vary or points are left out they need to know
 * of each point, and where there is advection, which central differences of a coarser grid would not stand; and where
 * values may be constant along an axis that has few cells long before others. */
const char *trli_multigrid_needs_entries(const trli_solver *s);
/* Why they have them where present values decide (trli_solver_finds_contrast); NULL: they have the equation. */
const char *trli_multigrid_wants_entries(const trli_solver *s);
/* How it is cut: like the finer one, or so that several of its patches are one where some would be thinner than
 * *thinnest, if this spares each rank enough points; else every rank has all of it. *thinnest grows, for another call
 * where patches are too thin nevertheless. */
TRL_NODISCARD trl_err trli_coarse_layout(const trli_solver *finest, const trl_layout *fine, const trl_grid *grid,
                                         trl_lidx *thinnest, trl_layout **coarse);

/* ---- transfer_axis.c ---- */

/* Linear interpolation from coarse to fine points along an axis, and its transpose, or means. Beyond a side values at
 * cells go on with a factor: 1, or -1 where they are zero on it. Along periodic axes indices go beyond the ends. */
typedef struct trli_axis_transfer {
    int fine_cells, coarse_cells;
    bool on_faces, periodic;
    int fine, coarse; /* points */
    int *from[2];     /* [fine] coarse points, and */
    double *weight[2];
    int steady[2];                      /* from the first to before the second each of `from` grows by 0 or 1 */
    int *first, *count;                 /* [coarse] fine points that a coarse one takes from */
    int *centre;                        /* [coarse] the fine cell in which it lies, or before which its face does */
    double (*back)[TRLI_TRANSFER_MOST]; /* [coarse] their weights */
    double *few[TRLI_TRANSFER_FEW];     /* [coarse] the first of these, one by one; 0: none */
    int even[2]; /* from the first to before the second coarse points take from few, and `first` grows by up to 2 */
} trli_axis_transfer;

/* Once cells and kinds are set. mean: fine values are averaged, else restricted by the transpose. */
TRL_NODISCARD trl_err trli_axis_transfer_make(trl_context *ctx, trli_axis_transfer *t, bool mean,
                                              const double factor[2]);
void trli_axis_transfer_free(trli_axis_transfer *t);

/* ---- transfer_rows.c: rows are indexed by points along x ---- */

/* Rows that a sum takes from, and their weights. */
typedef struct trli_weighted_rows {
    int n;
    const double *row[TRLI_TRANSFER_MOST], *weight;
} trli_weighted_rows;

/* line[i] = the sum of rows from i + shift on, in their order. ahead: points by which the last two are asked for. */
void trli_transfer_sum(const trli_weighted_rows *of, double *line, int n, int shift, int ahead);
/* line[i + shift] = the sum of four rows. */
void trli_transfer_join(double *line, int begin, int end, int shift, double *const from[4], const double weight[4]);
/* Add to a fine row, from lo to before hi, what is interpolated of a coarse line, behind which there is room for
 * vectors. */
void trli_transfer_add(const trli_axis_transfer *x, double *fine, const double *line, int lo, int hi);
/* A coarse row of a fine line, behind which there is room for vectors. No negative zero: sums over ranks have none. */
void trli_transfer_restrict(const trli_axis_transfer *x, double *coarse, const double *line, int lo, int hi);

/* ---- transfer.c ---- */

typedef struct trli_transfer_gpu trli_transfer_gpu;
typedef struct trli_merging_parts trli_merging_parts;

typedef struct trli_grid_transfer {
    trli_axis_transfer axis[3];
    bool gathers;  /* patches of the fine grid are thinner than it reaches */
    bool shared;   /* the coarse grid is cut where the fine one is; else all ranks have all of it */
    int room;      /* of a row of values */
    double **line; /* [workers] TRLI_TRANSFER_LINES of them */
    double *lines;
    double *buffer;            /* of values of all ranks; NULL: none are brought together */
    trli_merging_parts *parts; /* where several patches of the fine grid are one of the coarse; NULL: none are */
    trli_transfer_gpu *gpu;    /* what a GPU has of it; NULL: none does it */
} trli_grid_transfer;

typedef struct trli_transfer_request {
    const trl_layout *fine, *coarse;
    trl_location location;
    bool mean;        /* of coefficients; else of residuals and corrections */
    double factor[6]; /* by side, x- x+ ... */
    int workers;
} trli_transfer_request;

/* Whether patches are thinner than ghosts that transfers read. */
bool trli_transfer_gathers(const trl_layout *layout);
TRL_NODISCARD trl_err trli_transfer_create(trl_context *ctx, const trli_transfer_request *request,
                                           trli_grid_transfer **transfer);
void trli_transfer_destroy(trli_grid_transfer **transfer);
/* Restrict a field of the fine frame, with two layers of ghosts where its layout is cut, to one of the coarse frame.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_restrict(const trli_grid_transfer *t, trl_simulation *fine, int from, trl_simulation *coarse,
                                    int to, trl_loop *loop);
/* Add what is interpolated the other way, with one layer of ghosts where the coarse layout is cut. Collective: no. */
TRL_NODISCARD trl_err trli_prolong(const trli_grid_transfer *t, trl_simulation *coarse, int from, trl_simulation *fine,
                                   int to, trl_loop *loop);

/* ---- transfer_merge.c: ranks whose patches of the fine grid are one of the coarse grid exchange its values ---- */

/* *parts: NULL where none are one. */
TRL_NODISCARD trl_err trli_merging_create(trl_context *ctx, const trli_transfer_request *request,
                                          trli_merging_parts **parts);
void trli_merging_destroy(trli_merging_parts **parts);
/* Points of the coarse patch, in its local indices, that this rank restricts to. */
const trl_box *trli_merging_own(const trli_merging_parts *parts);
/* Exchange them, even after an error, which it returns: the other ranks do not know. Collective: yes. */
TRL_NODISCARD trl_err trli_merging_join(const trli_merging_parts *parts, trl_context *ctx, trl_err err,
                                        const trl_array *coarse);

/* ---- transfer_gpu.c: the same by the GPU that has the values, between grids that are one patch each. *done: it did;
 * else nothing has changed. Not collective; fail with DEVICE, MEMORY. ---- */

extern const char trli_transfer_restrict_text[], trli_transfer_prolong_text[]; /* of their kernels */
TRL_NODISCARD trl_err trli_transfer_gpu_create(trl_context *ctx, trli_transfer_gpu **gpu);
void trli_transfer_gpu_destroy(trli_transfer_gpu **gpu);
TRL_NODISCARD trl_err trli_restrict_on_gpu(const trli_grid_transfer *t, const trl_simulation *fine, int from,
                                           const trl_simulation *coarse, int to, bool *done);
/* The way that the last restriction went. */
TRL_NODISCARD trl_err trli_prolong_on_gpu(const trli_grid_transfer *t, const trl_simulation *coarse, int from,
                                          const trl_simulation *fine, int to, bool *done);
/* Add one of them to a row. */
void trli_restrict_in_row(const trli_grid_transfer *t, const trl_simulation *fine, int from,
                          const trl_simulation *coarse, int to, trli_gpu_row *row);
void trli_prolong_in_row(const trli_grid_transfer *t, const trl_simulation *coarse, int from,
                         const trl_simulation *fine, int to, trli_gpu_row *row);

/* ---- coarsen.c ---- */

/* Why a system cannot have multigrid; NULL: it can. */
const char *trli_multigrid_missing(const trli_solver *s);
/* Why a system does not get it unless the deck asks for it; NULL: it does. */
const char *trli_multigrid_unasked(const trli_solver *s);

#endif

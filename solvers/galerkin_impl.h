/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids by their numbers alone: the entries of the operator on the first grid are found by products, and each
 * coarser one's are those of P^T A P, where the interpolation P follows from the entries. On the second grid are points
 * that are even along axes of strong coupling (Alcouffe, Brandt, Dendy & Painter 1981; Dendy 1982); on coarser ones
 * points are chosen by the entries (algebraic_impl.h). Ranks find the entries of their own patches, and have the rows
 * of the coarse points in these. Of a system each unknown has grids of its own, which know of no other (Clees 2005:
 * the unknown-based approach); the first grid couples them. */
#ifndef TRLI_GALERKIN_IMPL_H
#define TRLI_GALERKIN_IMPL_H

#include "algebraic_impl.h"
#include "grid_level_impl.h"
#include "multigrid_impl.h"
#include "row_owners_impl.h"
#include "sparse_impl.h"

enum { TRLI_ENTRIES_MOST = 7, TRLI_AROUND = 27 };

/* What a rank knows of one of its patches: a box of its points and two more beyond it along each axis, x fastest. */
typedef struct trli_patch_box {
    int first[3], n[3];     /* of its points in the grid */
    int ghosts[3], size[3]; /* layers beyond it, and points of the box, along each axis */
    double *entry;          /* [box][entries] 0 where they would be of points beyond a side */
    int8_t *left_out;       /* [box] bits of axes along which a point is left out; -1: it is no unknown */
    int *number;            /* [box] of coarse points, among those that this rank knows; else -1 */
    int *row;               /* [box] of coarse points in the patch, in `back`; else -1 */
    trli_sparse p;          /* [box] interpolation from coarse points, but of points at the box's rim; columns: points
                             * of the box, and once all matrices are made places in the solution */
    trli_sparse back;       /* from the patch to its coarse points, in their order; columns: points of the box */
    trli_sparse product;    /* rows of P^T A P, likewise */
    int *coarse;            /* [rows of back] numbers of these */
    ptrdiff_t *place;       /* [entries of back] in the array or the values that are restricted */
    int coarse_room, place_room;
} trli_patch_box;

/* The derivatives of an equation by its own unknown on the first grid. Points whose own entry is 0 are no unknowns. */
typedef struct trli_entries {
    trli_solver *s;
    int unknown;
    const trli_grid_level *level; /* whose residual brings ghosts */
    int n[3];
    bool periodic[3];
    int entries;
    int offset[TRLI_ENTRIES_MOST][3]; /* the first is 0 0 0 */
    trli_patch_box *part;             /* [local patches] */
    double *whole;                    /* [points] where patches are thinner than ghosts: all values; else NULL */
    trli_sparse_crew *crew;
} trli_entries;

static inline int64_t trli_entries_points(const trli_entries *a)
{
    return (int64_t)a->n[0] * a->n[1] * a->n[2];
}

/* ---- entries.c ---- */

/* Of a solver whose first grid this is; level: that one. For trli_entries_free, even if it fails. */
TRL_NODISCARD trl_err trli_entries_create(trli_solver *s, int unknown, const trli_grid_level *level,
                                          trli_sparse_crew *crew, trli_entries *a);
void trli_entries_free(trli_entries *a);
/* All of them are of nearest points along axes. Collective: yes. */
TRL_NODISCARD trl_err trli_entries_find(trli_entries *a);

/* Once they are found: of all rows the largest sum of entries that have the sign of the row's own, over that.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_entries_mixed(const trli_entries *a, double *mixed);

/* ---- patch_boxes.c ---- */

/* The point of the grid at a place in a part's box; false: there is none. */
bool trli_patch_box_point(const trli_entries *a, const trli_patch_box *part, const int box[3], int at[3]);
static inline int64_t trli_patch_box_index(const trli_patch_box *part, const int box[3])
{
    return box[0] + (int64_t)part->size[0] * (box[1] + (int64_t)part->size[1] * box[2]);
}
/* Whether a place of the box is in the patch. */
static inline bool trli_patch_box_owns(const trli_patch_box *part, const int box[3])
{
    bool own = true;
    for (int c = 0; c < 3; ++c) own &= box[c] >= part->ghosts[c] && box[c] < part->ghosts[c] + part->n[c];
    return own;
}
/* All ranks get all values of a field, [points], x fastest; after an error of any of them none does. Collective:
 * yes. */
TRL_NODISCARD trl_err trli_entries_collect(const trli_entries *a, trl_err err, int field, double *values);
/* Bring what patches have of an entry to the boxes of others. Collective: yes. */
TRL_NODISCARD trl_err trli_entries_exchange(const trli_entries *a, int entry);

/* ---- entries_split.c ---- */

/* Once there are entries: coarse points and interpolation. rows: get the points of this rank, and those in boxes around
 * its patches. Collective: no. */
TRL_NODISCARD trl_err trli_entries_split(trli_entries *a, trli_row_owners *rows);

/* ---- entries_product.c ---- */

/* Rows of P^T A P, those of this rank. Collective: no. */
TRL_NODISCARD trl_err trli_entries_product(trli_entries *a, const trli_row_owners *rows, trli_sparse *product);
/* Once all coarser matrices are made: interpolation is from their solution. */
void trli_entries_read(trli_entries *a, const trli_algebraic *rest);

/* ---- sparse_transfer.c: between the first grid and coarse points ---- */

/* [own coarse points] from a field with ghosts where its layout is cut; after an error of any
 * rank none does. Collective: yes. */
TRL_NODISCARD trl_err trli_sparse_restrict(const trli_entries *a, int field, double *to, trl_loop *loop);
/* Add to it what is interpolated of the solution on coarse points. Collective: no. */
TRL_NODISCARD trl_err trli_sparse_prolong(const trli_entries *a, const double *from, int field, trl_loop *loop);

/* ---- galerkin.c ---- */

typedef struct trli_galerkin trli_galerkin;

/* Why a system's coarser grids are not made this way; NULL: they can be. */
const char *trli_galerkin_missing(const trli_solver *s);
/* level: the first grid, with programs. Fails with INPUT where a rank has too many points. */
TRL_NODISCARD trl_err trli_galerkin_create(trli_solver *s, const trli_grid_level *level, trl_loop *loop,
                                           trli_galerkin **galerkin);
void trli_galerkin_destroy(trli_galerkin **galerkin);
/* Once the coefficients are there. Collective: yes. */
TRL_NODISCARD trl_err trli_galerkin_prepare(trli_galerkin *st);
/* Of an operator that is not symmetric, once it is prepared: the largest sum of entries of a row that have the sign of
 * its own one, over that; else 0. Where auto would have to stand too much of it coarser grids are not made. */
double trli_galerkin_mixed(const trli_galerkin *st);
bool trli_galerkin_is_mixed(const trli_galerkin *st);
/* All grids of an unknown but the first; NULL: they are not made yet. */
const trli_algebraic *trli_galerkin_rest(const trli_galerkin *st, int unknown);
/* One cycle of the coarser grids for residuals of the first, [unknowns] fields with ghosts where its layout is cut.
 * What is interpolated of its solutions is added to those of the first. Collective: yes. */
TRL_NODISCARD trl_err trli_galerkin_cycle(trli_galerkin *st, trl_solve_cycle kind, const int *residual,
                                          const int *solution);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids by their numbers alone: the entries of the operator on the first grid are found by products, and each
 * coarser one's are those of P^T A P, where the interpolation P follows from the entries. On the second grid are points
 * that are even along axes of strong coupling (Alcouffe, Brandt, Dendy & Painter 1981; Dendy 1982); on coarser ones
 * points are chosen by the entries (algebraic_impl.h). */
#ifndef TRLI_GALERKIN_IMPL_H
#define TRLI_GALERKIN_IMPL_H

#include "multigrid_impl.h"
#include "sparse_impl.h"

enum { TRLI_ENTRIES_MOST = 7, TRLI_AROUND = 27 };

/* Entries of all points of a grid, [point][entry], x fastest; 0 where they would be of points beyond a side. Points
 * whose own entry is 0 are no unknowns. */
typedef struct trli_entries {
    int n[3];
    bool periodic[3];
    int entries;
    int offset[TRLI_ENTRIES_MOST][3]; /* the first is 0 0 0 */
    double *entry;
} trli_entries;

static inline int64_t trli_entries_points(const trli_entries *a)
{
    return (int64_t)a->n[0] * a->n[1] * a->n[2];
}

/* ---- entries.c ---- */

/* Entries of one unknown's operator, all of which are of nearest points along axes. Collective: yes. */
TRL_NODISCARD trl_err trli_entries_find(trli_solver *s, trli_entries *a);
/* All ranks get all values of a field, [points], x fastest; after an error of any of them none does. Collective:
 * yes. */
TRL_NODISCARD trl_err trli_entries_collect(const trl_simulation *sim, trl_err err, int field, const int n[3],
                                           double *values);

/* ---- entries_split.c ---- */

TRL_NODISCARD trl_err trli_entries_sparse(trl_context *ctx, const trli_entries *a, trli_sparse *m);
/* number: [points], -1 of points that the next grid lacks; p: interpolation from the others. */
TRL_NODISCARD trl_err trli_entries_split(trl_context *ctx, const trli_entries *a, int *number, trli_sparse *p);

/* ---- sparse_transfer.c: between the first grid and points chosen among its own ---- */

/* All zero: none. */
typedef struct trli_sparse_transfer {
    int n[3];            /* points of the first grid */
    int *number;         /* [points] of the coarse ones; -1: left out */
    trli_sparse p, back; /* interpolation, and its transpose */
    double *whole;       /* [points] NULL, or patches are too thin for ghosts: all values */
} trli_sparse_transfer;

/* For the caller to free, even if it fails. */
TRL_NODISCARD trl_err trli_sparse_transfer_create(trl_simulation *sim, const trli_entries *a, trli_sparse_transfer *t);
void trli_sparse_transfer_free(trli_sparse_transfer *t);
/* [coarse points] from a field with ghosts where its layout is cut. Collective: yes. */
TRL_NODISCARD trl_err trli_sparse_restrict(const trli_sparse_transfer *t, trl_simulation *sim, int field, double *to,
                                           trl_loop *loop);
TRL_NODISCARD trl_err trli_sparse_prolong(const trli_sparse_transfer *t, const double *from, trl_simulation *sim,
                                          int field, trl_loop *loop);

/* ---- galerkin.c ---- */

typedef struct trli_galerkin trli_galerkin;

/* Why a system's coarser grids are not made this way; NULL: they can be. */
const char *trli_galerkin_missing(const trli_solver *s);
TRL_NODISCARD trl_err trli_galerkin_create(trli_solver *s, trl_loop *loop, trli_galerkin **galerkin);
void trli_galerkin_destroy(trli_galerkin **galerkin);
/* Once the coefficients are there. Collective: yes. */
TRL_NODISCARD trl_err trli_galerkin_prepare(trli_galerkin *st);
/* One cycle of the coarser grids for a residual of the first, with two layers of ghosts where its layout is cut; its
 * solution, interpolated. Collective: yes. */
TRL_NODISCARD trl_err trli_galerkin_cycle(trli_galerkin *st, trl_solve_cycle kind, int residual, int solution);

#endif

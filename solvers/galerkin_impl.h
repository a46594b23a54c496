/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids by their numbers alone: the entries of the operator on the first grid are found by products, and each
 * coarser grid's are those of P^T A P, where the interpolation P follows from the entries (Alcouffe, Brandt, Dendy &
 * Painter 1981; Dendy 1982). Coarse points are every second fine one. */
#ifndef TRLI_GALERKIN_IMPL_H
#define TRLI_GALERKIN_IMPL_H

#include "multigrid_impl.h"

enum { TRLI_ENTRIES_MOST = 27, TRLI_CORNERS = 8 };

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

/* ---- entries_coarsen.c ---- */

/* Axes along which the next grid has half of the points; false: there is none. */
bool trli_entries_halved(const trli_entries *a, bool halved[3]);
/* [points][8]: the weight of a point in what is interpolated from the coarse points around it: of axes that are halved
 * bit a is 1 at the upper of two. */
TRL_NODISCARD trl_err trli_entries_shares(const trli_entries *a, const bool halved[3], trl_loop *loop, double *share);
/* The entries of the next grid, whose n, periodic, entries, offset are set. */
TRL_NODISCARD trl_err trli_entries_product(const trli_entries *a, const bool halved[3], const double *share,
                                           trl_loop *loop, trli_entries *coarse);
/* All points within one of the origin, along axes with more than one point. */
void trli_entries_compact(trli_entries *a);

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

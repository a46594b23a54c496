/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Cycles on coarser and coarser matrices whose points lie on no common grid: where neighbours are coupled strongly
 * along one axis here, and along another there, each region is made coarser along its own. Every rank has all of
 * them. */
#ifndef TRLI_ALGEBRAIC_IMPL_H
#define TRLI_ALGEBRAIC_IMPL_H

#include <trl_solver.h>

#include "sparse_impl.h"

typedef struct trli_algebraic trli_algebraic;

/* axes: along which the first grid has points. The crew outlives it. */
TRL_NODISCARD trl_err trli_algebraic_create(trl_context *ctx, trli_sparse_crew *crew, int axes,
                                            trli_algebraic **algebraic);
void trli_algebraic_destroy(trli_algebraic **algebraic);
/* The finest matrix, for the caller to make or to make anew; its rows have their own entry first. */
trli_sparse *trli_algebraic_finest(trli_algebraic *st);
/* Once it is made: all others, in the memory of former ones as far as that goes. */
TRL_NODISCARD trl_err trli_algebraic_make(trli_algebraic *st);
int trli_algebraic_levels(const trli_algebraic *st);
/* [rows] of the finest matrix: the right-hand side of a cycle, which changes it, and its solution. */
double *trli_algebraic_residual(const trli_algebraic *st);
double *trli_algebraic_solution(const trli_algebraic *st);
TRL_NODISCARD trl_err trli_algebraic_cycle(trli_algebraic *st, trl_solve_cycle kind);

#endif

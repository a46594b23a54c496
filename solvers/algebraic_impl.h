/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Cycles on coarser and coarser matrices whose points lie on no common grid: where neighbours are coupled strongly
 * along one axis here, and along another there, each region is made coarser along its own. Of large ones each rank has
 * the rows of the points in its patches, of small ones all. */
#ifndef TRLI_ALGEBRAIC_IMPL_H
#define TRLI_ALGEBRAIC_IMPL_H

#include <trl_solver.h>

#include "row_owners_impl.h"
#include "sparse_impl.h"

typedef struct trli_algebraic trli_algebraic;

/* axes: along which the first grid has points. lost: of trli_eliminate. The crew outlives it. */
TRL_NODISCARD trl_err trli_algebraic_create(trl_context *ctx, trli_sparse_crew *crew, int axes, double lost,
                                            trli_algebraic **algebraic);
void trli_algebraic_destroy(trli_algebraic **algebraic);
/* The finest matrix, of which the caller makes this rank's rows, or makes them anew. Each has its own entry first. */
trli_sparse *trli_algebraic_finest(trli_algebraic *st);
/* Whose its rows are, and others that this rank reads, of the matrix and of the solution, for the caller to say. */
trli_row_owners *trli_algebraic_owners(trli_algebraic *st);
/* Once both are made: all others, in the memory of former ones as far as that goes. Collective: yes. */
TRL_NODISCARD trl_err trli_algebraic_make(trli_algebraic *st);
int trli_algebraic_levels(const trli_algebraic *st);
/* Of a level's matrix, those that this rank has; and the memory of the entries of all matrices, in bytes. */
int trli_algebraic_rows(const trli_algebraic *st, int level);
double trli_algebraic_bytes(const trli_algebraic *st);
/* Where the solution has the value of a row of these. */
int trli_algebraic_row(const trli_algebraic *st, int row);
/* Of the finest matrix: the right-hand side of a cycle, which changes it, of this rank's rows; and its solution. */
double *trli_algebraic_residual(const trli_algebraic *st);
double *trli_algebraic_solution(const trli_algebraic *st);
/* Collective: yes, behind an agreement since which no rank can have failed, whatever it did. */
TRL_NODISCARD trl_err trli_algebraic_cycle(trli_algebraic *st, trl_solve_cycle kind);

#endif

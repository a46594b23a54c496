/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The diagonal of a system's Jacobian, and what its entries tell of it. */
#ifndef TRLI_DIAGONAL_IMPL_H
#define TRLI_DIAGONAL_IMPL_H

#include "krylov_impl.h"

/* ---- diagonal.c ---- */

/* Which of the unknowns a variable of the model is; -1: none. */
int trli_solver_unknown_of(const trli_solver *s, int variable);
/* *sum, unless it is TRLI_NO_VALUE yet, and |v|. */
void trli_add_magnitude(trli_ir *ir, trli_ir_value *sum, trli_ir_value v);
/* The program that finds the inverse of the diagonal. */
TRL_NODISCARD trl_err trli_solver_compile_diagonal(trli_solver *s);
/* After its run: the largest sum of a bounded row's magnitudes, or of those of its own unknown, over its diagonal. */
double trli_solver_largest_row(const trli_solver *s);
double trli_solver_largest_own_row(const trli_solver *s);
/* Whether what follows decides if coarser grids have the equation or entries: where coefficients change in steps or in
 * Newton's method, where smoothing is in colours and no point is left out, and of several unknowns, as entries do not
 * couple them. */
bool trli_solver_finds_contrast(const trli_solver *s);
/* After its run, in such cases: how many times larger an unknown's diagonal is at one point than at another. */
double trli_solver_contrast(const trli_solver *s);
/* Along how many axes the numbers of a row are others on one side than on the other. */
int trli_solver_drifts(const trli_solver *s);

/* inverse_value of an unknown from its diagonal, in a program that has the instance. */
TRL_NODISCARD trl_err trli_solver_invert(trli_solver *s, trli_instance *in, int i, trli_ir_value diagonal);

/* ---- saddle.c ---- */

/* Of a saddle point: s->constraint, inverses of the diagonals of A and of the Schur complement, and of each of their
 * rows the sum of magnitudes over it, [n]. Else nothing changes. */
TRL_NODISCARD trl_err trli_solver_find_saddle(trli_solver *s, const trli_solver_rows *rows, trli_ir_value *all,
                                              trli_ir_value *own);

/* ---- block_diagonal.c ---- */

/* Where few unknowns are coupled at their points: s->block_value; and of each row of its product with the Jacobian the
 * sum of all magnitudes, and of those of the row's own unknown, [n]. Else nothing changes.
 * By the program of the diagonal, which stores what is no number of the former. */
TRL_NODISCARD trl_err trli_solver_find_blocks(trli_solver *s, const trli_solver_rows *rows, trli_ir_value *all,
                                              trli_ir_value *own);

/* ---- block_factors.c ---- */

enum { TRLI_FACTORS_MOST = 24 };

/* Of the derivatives at a point, entry [n][n], those of the `count` unknowns of a block by each other: their factors,
 * with the inverse of pivots, become values of s->block_value; these unknowns the next ones of s->eliminated. */
TRL_NODISCARD trl_err trli_solver_factor(trli_solver *s, trli_instance *in, const trli_ir_value *entry, int count,
                                         const int *unknown);
/* z of these unknowns from r. */
void trli_solver_use_factors(const trli_solver *s, const trli_ir_value *r, trli_ir_value *z);

/* ---- coupling.c ---- */

/* entry: [n][n] the derivatives of equations by unknowns at the same point. *known: formulas give all of them. */
TRL_NODISCARD trl_err trli_solver_find_point_rows(trli_solver *s, const trli_solver_rows *rows, trli_ir_value *entry,
                                                  bool *known);
/* Append: store a matrix of each point, [n][n] values, which become fields where they are no numbers; scalars: what
 * varies nowhere becomes one. */
TRL_NODISCARD trl_err trli_solver_store_matrix(trli_solver *s, trli_program *program, const char *what, bool scalars,
                                               trli_ir_value *entry);
/* The program that finds what couples the unknowns of a point, if they are coupled, at one location and few. */
TRL_NODISCARD trl_err trli_solver_compile_coupling(trli_solver *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sparse factors of a matrix, by SuiteSparse's KLU: lower and upper triangles, with pivots where the diagonal would not
 * do (Davis & Palamadai Natarajan 2010). The same on all ranks that have the same matrix. */
#ifndef TRLI_FACTORS_IMPL_H
#define TRLI_FACTORS_IMPL_H

#include "matrix_impl.h"

typedef struct trli_factors trli_factors;

/* The library's name and version; NULL: this build has none. */
const char *trli_factors_library(void);
/* operations: no more are tried. *why: why there are none, in words that follow "because"; or NULL. *factors: made
 * anew; NULL at first. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_factors_make(trl_context *ctx, const trli_columns *columns, double operations,
                                        trli_factors **factors, const char **why);
/* x = what the matrix makes x from. */
void trli_factors_solve(trli_factors *factors, double *x);
void trli_factors_destroy(trli_factors **factors);

#endif

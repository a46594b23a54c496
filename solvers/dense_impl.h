/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values inside a step. */
#ifndef TRLI_DENSE_IMPL_H
#define TRLI_DENSE_IMPL_H

#include "compile_impl.h"

enum { TRLI_DENSE_SUMS = 3 };

/* Of an IMEX method, with theta = (t - t_n)/dt and a degree p of at most 4,
 *     u(t) = u_n + theta^p (u_{n+1} - u_n) + dt sum over j < p of (theta^j - theta^p) S_j,
 * where sum S_j is that of weight[j-1][k] f_k over the stages k. */
typedef struct trli_dense_formula {
    int degree;
    double weight[TRLI_DENSE_SUMS][TRL_STAGES_MAX];
} trli_dense_formula;

/* dense_weights.c */
void trli_dense_weights(const trl_integrator *m, trli_dense_formula *formula);

/* dense.c: the weight of the slope of a stage in a sum of an equation; 0 where there is no such sum. */
double trli_dense_factor(const trl_simulation *sim, int v, int sum, int stage);
/* Append what keeps a sum of an equation; TRLI_NO_VALUE: it is zero. */
TRL_NODISCARD trl_err trli_dense_add_sum(trl_simulation *sim, trli_program *program, int v, int sum,
                                         trli_ir_value value);

#endif

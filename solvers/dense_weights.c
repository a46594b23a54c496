/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Weights of slopes for values inside a step of an IMEX method, u(t) = u_n + dt sum over k of b_k f_k with polynomials
 * b_k of theta = (t - t_n)/dt that become the method's own weights at 1. They integrate powers of the stages' times, as
 * many as there are stages but one. One condition is for stiff terms, for which |dt lambda| is large: with the stages'
 * matrix A = (0 0; a A'), u(t)/u_n is bounded only if b_0 = b' A'^-1 a. Then it is below 1.21, for all lambda of the
 * left half plane. Rates at the ends of the step would not do: they have the error of u times lambda. */
#include "dense_impl.h"
#include "sparse_impl.h"

enum { MOST = TRL_STAGES_MAX };

/* A'^-1 a. */
static void find_limit(const trl_integrator *m, double limit[MOST])
{
    const int n = m->stages - 1;
    double matrix[MOST * MOST];
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) matrix[i * n + j] = m->diagonal[i + 1][j + 1];
        limit[i] = m->diagonal[i + 1][0];
    }
    trli_eliminate(n, matrix, TRLI_LOST);
    trli_eliminated_solve(n, matrix, limit);
}

void trli_dense_weights(const trl_integrator *m, trli_dense_formula *formula)
{
    int n = 0, stage[MOST];
    double limit[MOST], matrix[MOST * MOST], b[MOST];
    *formula = (trli_dense_formula){0};
    for (int k = 0; k < m->stages; ++k) /* the second stage has a lower order, where the method does without it */
        if (k != 1 || m->diagonal[m->stages - 1][k] != 0) stage[n++] = k;
    find_limit(m, limit);
    formula->degree = n - 1;
    for (int i = 0; i < n; ++i) {
        double power = 1;
        for (int e = 0; e < n - 1; ++e, power *= m->c[stage[i]]) matrix[e * n + i] = power;
        matrix[(n - 1) * n + i] = i == 0 ? 1 : -limit[stage[i] - 1];
    }
    trli_eliminate(n, matrix, TRLI_LOST);
    for (int j = 1; j < n - 1; ++j) {
        for (int e = 0; e < n; ++e) b[e] = e + 1 == j ? 1.0 / j : 0;
        trli_eliminated_solve(n, matrix, b);
        for (int i = 0; i < n; ++i) formula->weight[j - 1][stage[i]] = b[i];
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The spectral radius of small non-negative matrices. */
#ifndef TRLI_SPECTRUM_IMPL_H
#define TRLI_SPECTRUM_IMPL_H

#include <trl_context.h>

/* A sparse pattern by rows: row i has the columns column[start[i]] ... column[start[i + 1] - 1]. */
typedef struct trli_pattern {
    int n;
    const int *start, *column;
} trli_pattern;

/* The strongly connected components of a pattern: component[i] from 0 to the returned number - 1, or -1 without memory.
 */
int trli_components(trl_context *ctx, const trli_pattern *pattern, int *component);

/* The spectral radius of a dense non-negative n x n matrix by rows, which is overwritten; exact to rounding for n = 1
 * and 2, otherwise an upper bound within 1e-9 of it (Collatz 1942, Wielandt 1950), or as close as 10,000 iterations
 * come. Infinite entries give infinity, NaN gives NaN. work: [2 n]. */
double trli_spectral_radius(int n, double *matrix, double *work);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sparse patterns of matrices. */
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

#endif

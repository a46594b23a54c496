/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Trigonometric transforms of lines of values (transform.c). */
#ifndef TRLI_TRANSFORM_IMPL_H
#define TRLI_TRANSFORM_IMPL_H

#include <trl_context.h>

#include "transform_plan_body.h"

enum { TRLI_LANES = 8 /* lines that are transformed at once: a cache line of values */ };

/* Both directions for lines of n points. The bits of a line depend on that line alone: not on those beside it, and not
 * on the machine. Fails with MEMORY. Thread: main. */
TRL_NODISCARD trl_err trli_transform_create(trl_context *ctx, trli_transform_kind kind, int n,
                                            trli_transform **transform);
void trli_transform_destroy(trli_transform **transform);
/* Doubles of the scratch memory of one call, which begins at a cache line. */
size_t trli_transform_scratch(const trli_transform *transform);
/* Transform TRLI_LANES lines that lie beside one another: their points are at `from`, `step` doubles further on, and so
 * forth, at cache lines, as they are at `to`, which may be the same lines, but not overlap in another way. There and
 * back gives lines times trli_transform_norm. Thread: any. */
void trli_transform_lines(const trli_transform *transform, bool back, const double *from, ptrdiff_t step, double *to,
                          ptrdiff_t to_step, double *scratch);
/* Likewise 1 to TRLI_LANES lines of which each lies by itself, at any address of a double. add: to what is there. */
void trli_transform_rows(const trli_transform *transform, bool back, int rows, const double *const *from,
                         double *const *to, bool add, double *scratch);
double trli_transform_norm(const trli_transform *transform);
/* Operations there and back, of one line. */
double trli_transform_operations(const trli_transform *transform);

/* Lay rows of n values side by side, at a cache line, where lanes without a row get the first one; and back. */
void trli_rows_take(int rows, const double *const *row, int n, double *to);
void trli_rows_give(int rows, double *const *row, int n, const double *from);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The largest rate as text for GPUs. */
#ifndef TRLI_BOUND_TEXT_IMPL_H
#define TRLI_BOUND_TEXT_IMPL_H

#include <stdio.h>

#include "limit_impl.h"

/* The text of trl_spectrum_body.h and trl_bound_body.h. */
extern const char trli_bound_prelude[];

/* Whether it is of a size that kernels have room for, and its constants are finite: else the host finds the rate. */
bool trli_bound_may_be_text(const trli_rates *rates);
/* Write a function for trli_late_scalars.rate. value: [scalars of the model] becomes the scalars that reductions give,
 * in the order in which it has them. Returns their number, or -1: there are too many. */
int trli_bound_write(const trli_rates *rates, int *value, FILE *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#ifndef TRL_ARITHMETIC_IMPL_H
#define TRL_ARITHMETIC_IMPL_H

#include <stdint.h>

static inline int64_t trli_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t trli_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The second argument if one is NaN. */
static inline double trli_max_double(double a, double b)
{
    return a > b ? a : b;
}

/* NaN if one is. */
static inline double trli_max_or_nan(double a, double b)
{
    return a != a || a > b ? a : b;
}

/* a/b, rounded up; a >= 0 and b > 0. */
static inline int64_t trli_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif

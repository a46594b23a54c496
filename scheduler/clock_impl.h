/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Time that only moves forward, from an unknown origin. */
#ifndef TRL_CLOCK_IMPL_H
#define TRL_CLOCK_IMPL_H

#include <stdint.h>
#include <time.h>

static inline int64_t trli_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* In seconds. */
static inline double trli_clock(void)
{
    return 1e-9 * (double)trli_now_ns();
}

#endif

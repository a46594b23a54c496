/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* One number of a whole field: sums, extremes and norms, the same bits on any decomposition and any number of workers.
 */
#ifndef TRL_REDUCTION_H
#define TRL_REDUCTION_H

#include <trl_mask.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(KIND, name, doc) of the values f with weights w. Any NaN among the values gives NaN. Zeros lose their sign. */
#define TRL_REDUCTION_LIST(X)                                                              \
    X(SUM, "sum", "the sum of w f, rounded once; over volumes the integral")               \
    X(MIN, "min", "the least value; infinity of no points")                                \
    X(MAX, "max", "the greatest value; -infinity of no points")                            \
    X(L1, "l1", "the sum of w |f| over the sum of w; NaN of no points")                    \
    X(L2, "l2", "the square root of the sum of w f^2 over the sum of w; NaN of no points") \
    X(LINF, "linf", "the greatest |f|; -infinity of no points")
typedef enum trl_reduction {
#define TRL_REDUCTION_ENUM(kind, name, doc) TRL_REDUCE_##kind,
    TRL_REDUCTION_LIST(TRL_REDUCTION_ENUM)
#undef TRL_REDUCTION_ENUM
        TRL_REDUCTIONS
} trl_reduction;
TRL_API const char *trl_reduction_name(trl_reduction kind);

typedef enum trl_weights {
    TRL_OVER_POINTS, /* every point 1 */
    TRL_OVER_VOLUMES /* every point its volume: half of a cell's per axis on the sides of the domain */
} trl_weights;

/* Of the owned points of all ranks, or of those of them that a mask holds (NULL: all). Fails with USAGE on all ranks if
 * the owned points are not valid on one, or the mask is of another layout or location. Allocates nothing. Collective:
 * yes. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_field_reduce(trl_field *field, trl_loop *loop, trl_reduction kind,
                                               trl_weights weights, const trl_mask *mask, double *result);

#ifdef __cplusplus
}
#endif
#endif

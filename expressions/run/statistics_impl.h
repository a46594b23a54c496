/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Statistics of a field between runs, made by the GPU that has its values. */
#ifndef TRLI_STATISTICS_IMPL_H
#define TRLI_STATISTICS_IMPL_H

#include "frame_impl.h"

/* Sums over the points of a field: of values, squares, what points count, and of errors, and their squares. */
enum { TRLI_SUM_PLAIN, TRLI_SUM_SQUARE, TRLI_SUM_WEIGHT, TRLI_SUM_ERROR, TRLI_SUM_ERROR_SQUARE, TRLI_SUMS };

typedef struct trli_tally {
    trl_sum sum[TRLI_SUMS];
    double extreme[3]; /* of -value, value and error the largest, NaN aside */
    bool invalid;      /* a NaN was counted */
    uint64_t hash;
} trli_tally;

/* A field, and where they are used: that which is 0 where points do not count, and that of exact values; or -1. */
typedef struct trli_counted {
    int field, mask, exact;
    trl_location location;
} trli_counted;

/* Ask for the kernel. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_request_statistics(struct trli_model *model);
/* Add a patch to a tally, if a GPU has the values and can: *done. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_frame_count(trli_frame *frame, const trli_counted *counted, int patch, trli_tally *tally,
                                       bool *done);

#endif

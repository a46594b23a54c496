/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After trl_kernel_body.h: what kernels for GPUs and the program that launches them share. */
#ifndef TRL_KERNEL_LAUNCH_BODY_H
#define TRL_KERNEL_LAUNCH_BODY_H

#ifndef TRL_KERNEL_BODY_H /* before it in the text of a kernel */
#include "trl_kernel_body.h"
#endif

#define TRL_KERNEL_THREADS 256 /* of a block, at most */
#ifndef TRL_KERNEL_MERGING
#define TRL_KERNEL_MERGING 128 /* of each block of a kernel that merges values */
#endif
#define TRL_KERNEL_VALUES 8 /* of results that a launch finds at once, at most */

/* What a device makes of a patch for a reduction, as the host has it (trli_partial). */
typedef struct trl_kernel_partial {
    long long word[70], special[3]; /* of an exact sum: 32 bits each, and more; of infinities and NaN, how many */
    long long pending;
    double extreme;
    long long invalid; /* a NaN was seen */
} trl_kernel_partial;

/* The launch of a kernel: blocks and threads cover lo <= i < hi, those along z `planes` points each,
 * at a time where they go through all points. */
typedef struct trl_kernel_launch {
    trl_kernel_grid grid;
    long long lo[3], hi[3];
    long long planes;
    long long low[3]; /* along each axis, no array has a point below */
    /* Of kernels that compute ghosts: along each axis, points from[a] <= i < to[a] of inputs are none. Of kernels that
     * merge values: points from[a] and to[a] are on sides. */
    long long from[3], to[3];
    int *nonfinite; /* set to 1 if an output is infinite or NaN, by kernels that check for that */
    /* By result, of kernels that merge values. Blocks add to what is gathered, which is empty before a launch and after
     * it: the last block lets it go to `share`, whatever was there, and to `told`, unless this is NULL. If nothing is
     * gathered (NULL), they add to `share`. */
    trl_kernel_partial *share, *gathered, *told;
    /* Where the last block stores values, for a launch that has all of each result: by number, twice; or NULL. */
    double *value[2];
    int number[TRL_KERNEL_VALUES];
    const double *late;  /* where late scalars are (trli_emit_request.late); NULL: all are given */
    const double *found; /* by scalar, where those are that GPUs found (trli_emit_request.found) */
} trl_kernel_launch;

#ifdef __cplusplus /* the text of kernels for GPUs */

/* The lowest address of an array that has no point below these. */
TRL_BODY char *trl_kernel_lowest(const trl_kernel_array *array, const long long low[3])
{
    return (char *)(array->at + low[0] + low[1] * array->stride[1] + low[2] * array->stride[2]);
}

/* The value some bytes above an address. */
template <typename place> TRL_BODY double trl_kernel_load(const char *at, place bytes)
{
    return *(const double *)(at + bytes);
}

template <typename place> TRL_BODY void trl_kernel_store(char *at, place bytes, double value)
{
    *(double *)(at + bytes) = value;
}

/* The second argument of a kernel: its inputs, then its outputs. */
template <int n> struct trl_kernel_arrays {
    trl_kernel_array array[n];
};

/* The third: the scalars that it reads, in the order of their numbers' list. */
template <int n> struct trl_kernel_scalars {
    double value[n];
};

#endif

#ifdef __CUDACC__

/* Before a loop over planes: unrolled, it would take so many registers that a multiprocessor runs half as many threads.
 */
#define TRL_KERNEL_PLANES _Pragma("unroll 1")
/* Before a loop over some planes that are computed together. */
#define TRL_KERNEL_TOGETHER _Pragma("unroll")

#endif

#endif

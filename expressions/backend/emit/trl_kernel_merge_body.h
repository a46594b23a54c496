/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After trl_kernel_body.h: how kernels merge values of reductions instead of storing them. */
#ifndef TRL_KERNEL_MERGE_BODY_H
#define TRL_KERNEL_MERGE_BODY_H

#ifndef TRL_KERNEL_BODY_H /* before it in the text of a kernel */
#include "trl_kernel_body.h"
#endif

#ifndef __CUDACC__

TRL_BODY void trl_kernel_begin(trl_kernel_total *t, const trl_kernel_merged *merged)
{
    t->high = trl_lanes_of(merged ? merged->start[0] : 0);
    t->low = trl_lanes_of(merged ? merged->start[1] : 0);
    t->changed = t->left = (trl_kernel_bits){0};
}

/* The bits of `so_far`, and those in which x and y differ. */
TRL_BODY trl_kernel_bits trl_kernel_differ(trl_kernel_bits so_far, trl_kernel_lanes x, trl_kernel_lanes y)
{
#if defined(__AVX512F__)
    __asm__("vpternlogq $0xf6, %2, %1, %0" : "+v"(so_far) : "v"(x), "v"(y)); /* gcc 12 makes two operations of it */
    return so_far;
#else
    return so_far | ((trl_kernel_bits)x ^ (trl_kernel_bits)y);
#endif
}

/* Each addition is exact, with what it rounds off (Dekker, 1971): a total is not smaller than what it takes, as long as
 * it keeps the exponent that it starts with. */
TRL_BODY void trl_kernel_merge_sum(trl_kernel_total *t, trl_kernel_lanes x)
{
    const trl_kernel_lanes high = t->high + x, more = x - (high - t->high);
    const trl_kernel_lanes low = t->low + more, none = more - (low - t->low);
    t->changed = trl_kernel_differ(t->changed, high, t->high);
    t->left |= (trl_kernel_bits)none;
    t->high = high;
    t->low = low;
}

/* The greater, or with `least` the smaller, of a value and the extreme so far, which stays if the value is NaN. */
TRL_BODY void trl_kernel_merge_extreme(trl_kernel_total *t, trl_kernel_lanes x, int least)
{
#if defined(__x86_64__) && defined(__AVX__) /* as a choice, it would be two operations or three */
    if (least)
        __asm__("vminpd %0, %1, %0" : "+v"(t->high) : "v"(x));
    else
        __asm__("vmaxpd %0, %1, %0" : "+v"(t->high) : "v"(x));
#else
    t->high = trl_lanes_choose(least ? x < t->high : x > t->high, x, t->high);
#endif
}

/* Note whether a value is finite. */
TRL_BODY void trl_kernel_merge_check(trl_kernel_total *t, trl_kernel_lanes x)
{
    t->low += x;
}

/* Of the last lanes of a row, those that no lanes before have had; of others all. */
TRL_BODY trl_kernel_lanes trl_kernel_fresh(trl_kernel_lanes x, long long i, long long n)
{
    long long had = i % TRL_KERNEL_LANES ? TRL_KERNEL_LANES - n % TRL_KERNEL_LANES : 0;
    trl_kernel_bits lane;
    int l;
    for (l = 0; l < TRL_KERNEL_LANES; ++l) lane[l] = l;
    return (trl_kernel_lanes)((trl_kernel_bits)x & (lane >= had));
}

/* One value of a sum, and nothing in the other lanes. */
TRL_BODY trl_kernel_lanes trl_kernel_single(double x)
{
    return (trl_kernel_lanes){x};
}

TRL_BODY void trl_kernel_end_sum(trl_kernel_merged *merged, const trl_kernel_total *t)
{
    const trl_kernel_bits high = (trl_kernel_bits)t->high, high_start = (trl_kernel_bits)trl_lanes_of(merged->start[0]);
    const trl_kernel_bits low = (trl_kernel_bits)t->low, low_start = (trl_kernel_bits)trl_lanes_of(merged->start[1]);
    unsigned long long units[2] = {0, 0}, changed = 0, left = 0; /* units of failed ones may run over */
    int l;
    for (l = 0; l < TRL_KERNEL_LANES; ++l) {
        units[0] += (unsigned long long)high[l] - (unsigned long long)high_start[l];
        units[1] += (unsigned long long)low[l] - (unsigned long long)low_start[l];
        changed |= (unsigned long long)t->changed[l];
        left |= (unsigned long long)t->left[l];
    }
    merged->units[0] = (long long)units[0];
    merged->units[1] = (long long)units[1];
    merged->failed = changed >> 52 != 0 || left << 1 != 0;
}

TRL_BODY void trl_kernel_end_extreme(trl_kernel_merged *merged, const trl_kernel_total *t, int least)
{
    double extreme = merged->start[0], sum = 0;
    int l;
    for (l = 0; l < TRL_KERNEL_LANES; ++l) {
        const double x = t->high[l];
        if (least ? x < extreme : x > extreme) extreme = x;
        sum += t->low[l];
    }
    merged->extreme = extreme;
    merged->failed = trl_kernel_excess(sum) < 0;
}

#endif

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The value of an exact sum (sum.c), for C and CUDA compilers alike. C code includes <stdint.h> before it. In the text
 * of kernels it is for GPUs alone. */
#if !defined(TRL_SUM_BODY_H) && (!defined(TRL_KERNEL_BODY_H) || defined(__CUDACC__) || defined(TRL_KERNEL_WARP))
#define TRL_SUM_BODY_H

/* Qualifiers of every function here; CUDA code defines it as `static __device__ __forceinline__` before it includes
 * this file. */
#ifndef TRL_BODY
#define TRL_BODY static inline __attribute__((always_inline))
#endif

#if defined(__CUDACC__) || defined(TRL_KERNEL_WARP)
typedef long long trl_sum_word;
#else
typedef int64_t trl_sum_word;
#endif

/* Let each of the words [first, end) but the last have 32 bits, and none that is negative; the last one keeps the
 * sign. */
TRL_BODY void trl_sum_carry(trl_sum_word *word, int first, int end)
{
    trl_sum_word carry = 0;
    int i;
    for (i = first; i < end - 1; ++i) {
        const trl_sum_word sum = word[i] + carry, low = sum & 0xffffffffLL;
        carry = (sum - low) / (1LL << 32);
        word[i] = low;
    }
    word[end - 1] += carry;
}

/* The bits of the double nearest to the total of carried words, none of which is negative, in units of 2^-1075, ties to
 * even. Those before the first are 0. */
TRL_BODY unsigned long long trl_sum_round(const trl_sum_word *word, int first, int end)
{
    int top = end - 1, lead = 31, rest = 0, i;
    while (top > first && word[top] == 0) --top;
    if (word[top] == 0) return 0;
    while (!((unsigned long long)word[top] >> lead & 1)) --lead;
    const int highest = 32 * top + lead, shift = 31 - lead;
    const unsigned long long most = (unsigned long long)word[top];
    const unsigned long long second = top > 0 ? (unsigned long long)word[top - 1] : 0;
    const unsigned long long third = top > 1 ? (unsigned long long)word[top - 2] : 0;
    if (highest <= 53) return (top > 0 ? most << 32 | second : most) >> 1; /* the total is even: exact */

    const unsigned long long window = (most << 32 | second) << shift | third >> (32 - shift);
    rest = (third << shift & 0xffffffffULL) != 0;
    for (i = first; i < top - 2; ++i) rest |= word[i] != 0;

    const unsigned long long dropped = window & 0x7ff, significand = window >> 11;
    const unsigned long long exponent = (unsigned long long)(highest - 52);
    if (exponent >= 0x7ff) return 0x7ffULL << 52;
    /* The leading bit adds one to the exponent field; rounding up carries into the exponent, up to infinity. */
    const unsigned long long bits = ((exponent - 1) << 52) + significand;
    return bits + (dropped > 0x400 || (dropped == 0x400 && (rest || (significand & 1))));
}

/* The bits of the value of n words, of which those before `first` and from `end` on are 0. special: how many infinities
 * of each sign, and NaNs, were added. Changes the words. */
TRL_BODY unsigned long long trl_sum_bits(trl_sum_word *word, int first, int end, int n, const trl_sum_word *special)
{
    const unsigned long long infinity = 0x7ffULL << 52, minus = 1ULL << 63, no_number = 0x7ff8ULL << 48;
    const int last = end + 2 < n ? end + 2 : n; /* carries, and the sign */
    int negative, i;
    if (special[2] > 0 || (special[0] > 0 && special[1] > 0)) return no_number;
    if (special[0] > 0) return infinity;
    if (special[1] > 0) return minus | infinity;
    if (first >= end) return 0;
    trl_sum_carry(word, first, last);
    negative = word[last - 1] < 0;
    if (negative) {
        for (i = first; i < last; ++i) word[i] = -word[i];
        trl_sum_carry(word, first, last);
    }
    const unsigned long long bits = trl_sum_round(word, first, last);
    return bits && negative ? bits | minus : bits;
}

#endif

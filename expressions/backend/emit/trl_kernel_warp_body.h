/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After trl_kernel_body.h: how kernels for GPUs merge values of reductions instead of storing them. The threads of a
 * warp do it together, all of them. */
#if (defined(__CUDACC__) || defined(TRL_KERNEL_WARP)) && !defined(TRL_KERNEL_WARP_BODY_H)
#define TRL_KERNEL_WARP_BODY_H

#ifndef TRL_KERNEL_WARP
#define TRL_KERNEL_WARP 32
#endif
#define TRL_KERNEL_ALL 0xffffffffu
#ifndef TRL_KERNEL_APART /* what kernels seldom do, and would become long by */
#define TRL_KERNEL_APART static __device__ __noinline__
#endif

/* A sum as a thread makes it: two totals that start at the same numbers in all threads of a warp, 0 where none suits
 * the values. Of values below 2^(t + 1) the first, from 1.5 * 2^(t + 13) on, takes multiples of 2^(t - 39), the second,
 * from 1.5 * 2^(t - 28) on, of 2^(t - 80). As long as they keep sign and exponent, each addition is exact (Dekker,
 * 1971), with what the second leaves. */
typedef struct trl_kernel_sum {
    double high, low, start[2];
} trl_kernel_sum;

/* Add a number to a share, exactly: three pieces below 2^33, of which a word has room for 2^30. */
TRL_KERNEL_APART void trl_kernel_partial_add(trl_kernel_partial *share, double x)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x), low_half = 0xffffffffull;
    const unsigned field = (unsigned)(bits >> 52) & 0x7ff, subnormal = field == 0, exponent = field + subnormal;
    const unsigned long long significand = (bits & 0xfffffffffffffull) | (unsigned long long)(1 - subnormal) << 52;
    if (bits << 1 == 0) return;
    if (field == 0x7ff) {
        atomicAdd((unsigned long long *)&share->special[bits << 12 ? 2 : bits >> 63], 1ull);
        return;
    }
    const unsigned long long least = (significand & low_half) << (exponent & 31);
    const unsigned long long most = (significand >> 32) << (exponent & 31);
    const unsigned long long piece[3] = {least & low_half, (least >> 32) + (most & low_half), most >> 32};
    for (int i = 0; i < 3; ++i)
        if (piece[i])
            atomicAdd((unsigned long long *)&share->word[(exponent >> 5) + i], bits >> 63 ? 0 - piece[i] : piece[i]);
}

/* All threads of a block together, before and after its warps add to n shares of the block: these begin with nothing,
 * and what they have goes to a share of the launch. Thousands of warps that add to that one would wait for each other.
 */
TRL_BODY void trl_kernel_block_begin(trl_kernel_partial *block, int n)
{
    const int threads = (int)(blockDim.x * blockDim.y), words = n * (int)(sizeof *block / sizeof block->word[0]);
    long long *const word = (long long *)block; /* all members are as large as one */
    for (int i = (int)(threadIdx.x + threadIdx.y * blockDim.x); i < words; i += threads) word[i] = 0;
    __syncthreads();
}

TRL_BODY void trl_kernel_block_end(trl_kernel_partial *block, trl_kernel_partial *share)
{
    const int threads = (int)(blockDim.x * blockDim.y);
    const int words = (int)((sizeof block->word + sizeof block->special) / sizeof block->word[0]); /* one by one */
    const unsigned long long *const from = (const unsigned long long *)block;
    unsigned long long *const to = (unsigned long long *)share;
    __syncthreads();
    for (int i = (int)(threadIdx.x + threadIdx.y * blockDim.x); i < words; i += threads)
        if (from[i] != 0) atomicAdd(&to[i], from[i]);
}

/* All threads of a warp together: let what they have go to the share. Each total is two numbers, and a thread for each
 * adds it. */
TRL_KERNEL_APART void trl_kernel_sum_empty(const trl_kernel_sum s, trl_kernel_partial *share)
{
    const int lane = (int)((threadIdx.x + threadIdx.y * blockDim.x) % TRL_KERNEL_WARP);
    long long high = __double_as_longlong(s.high) - __double_as_longlong(s.start[0]);
    long long low = __double_as_longlong(s.low) - __double_as_longlong(s.start[1]);
    if (!__any_sync(TRL_KERNEL_ALL, (high | low) != 0)) return;
    for (int d = TRL_KERNEL_WARP / 2; d > 0; d /= 2) {
        high += __shfl_xor_sync(TRL_KERNEL_ALL, high, d);
        low += __shfl_xor_sync(TRL_KERNEL_ALL, low, d);
    }
    for (int part = lane; part < 4; part += TRL_KERNEL_WARP) {
        const long long units = part < 2 ? high : low, lower = units & 0xffffffffll;
        const double start = part < 2 ? s.start[0] : s.start[1];
        const double unit = __longlong_as_double(__double_as_longlong(start) + 1) - start;
        trl_kernel_partial_add(share, (double)(part % 2 ? units - lower : lower) * unit);
    }
}

/* Suit values like these. */
TRL_BODY void trl_kernel_sum_choose(trl_kernel_sum *s, double x)
{
    int field = __double2hiint(x) >> 20 & 0x7ff;
    if (field == 0x7ff) field = 0;
    for (int d = TRL_KERNEL_WARP / 2; d > 0; d /= 2) {
        const int other = __shfl_xor_sync(TRL_KERNEL_ALL, field, d);
        if (other > field) field = other;
    }
    const long long half = 1ll << 51;
    const bool suits = field >= 64 && field <= 2030;
    s->high = s->start[0] = suits ? __longlong_as_double((long long)(field + 13) << 52 | half) : 0;
    s->low = s->start[1] = suits ? __longlong_as_double((long long)(field - 28) << 52 | half) : 0;
}

/* Whether two numbers have one sign and exponent. */
TRL_BODY bool trl_kernel_alike(double x, double y)
{
    return ((__double2hiint(x) ^ __double2hiint(y)) & 0xfff00000) == 0;
}

/* Add x where the totals have room; what they leave of it. */
TRL_BODY double trl_kernel_sum_take(trl_kernel_sum *s, double x, bool *fits)
{
    const double high = s->high + x, more = x - (high - s->high);
    const double low = s->low + more, none = more - (low - s->low);
    *fits = trl_kernel_alike(high, s->start[0]) && trl_kernel_alike(low, s->start[1]);
    if (!*fits) return x;
    s->high = high;
    s->low = low;
    return none;
}

/* All threads of a warp together: begin anew, with totals that suit what is left, or most of it. */
TRL_KERNEL_APART trl_kernel_sum trl_kernel_sum_anew(trl_kernel_sum s, trl_kernel_partial *share, double left)
{
    bool fits;
    trl_kernel_sum_empty(s, share);
    trl_kernel_sum_choose(&s, left);
    left = trl_kernel_sum_take(&s, left, &fits);
    if (left != 0) trl_kernel_partial_add(share, left);
    return s;
}

/* All threads of a warp together: add a value each. Where many of them leave something, the totals begin anew. */
TRL_BODY void trl_kernel_merge_sum(trl_kernel_sum *s, trl_kernel_partial *share, double x)
{
    bool fits;
    const double left = trl_kernel_sum_take(s, x, &fits);
    const unsigned lanes = __ballot_sync(TRL_KERNEL_ALL, left != 0);
    if (lanes == 0) return;
    if (__any_sync(TRL_KERNEL_ALL, !fits) || __popc(lanes) > TRL_KERNEL_WARP / 4)
        *s = trl_kernel_sum_anew(*s, share, left);
    else if (left != 0)
        trl_kernel_partial_add(share, left);
}

/* An extreme as a thread makes it. */
typedef struct trl_kernel_extreme {
    double extreme;
    bool invalid;
} trl_kernel_extreme;

TRL_BODY void trl_kernel_merge_extreme(trl_kernel_extreme *e, double x, bool least)
{
    if (least ? x < e->extreme : x > e->extreme) e->extreme = x;
    e->invalid |= x != x;
}

/* All threads of a warp together. Numbers of one sign compare as their bits do. */
TRL_BODY void trl_kernel_end_extreme(const trl_kernel_extreme *e, trl_kernel_partial *share, bool least)
{
    double extreme = e->extreme;
    const bool invalid = __any_sync(TRL_KERNEL_ALL, e->invalid);
    for (int d = TRL_KERNEL_WARP / 2; d > 0; d /= 2) {
        const double other = __shfl_xor_sync(TRL_KERNEL_ALL, extreme, d);
        if (least ? other < extreme : other > extreme) extreme = other;
    }
    if ((threadIdx.x + threadIdx.y * blockDim.x) % TRL_KERNEL_WARP != 0) return;
    const long long bits = __double_as_longlong(extreme);
    if (invalid) share->invalid = 1;
    if (bits >= 0)
        least ? atomicMin((long long *)&share->extreme, bits) : atomicMax((long long *)&share->extreme, bits);
    else
        least ? atomicMax((unsigned long long *)&share->extreme, (unsigned long long)bits)
              : atomicMin((unsigned long long *)&share->extreme, (unsigned long long)bits);
}

/* Part of what values count, at points on sides. */
TRL_BODY double trl_kernel_weight(const trl_kernel_launch *call, int axis, long long i)
{
    return i == call->from[axis] || i == call->to[axis] ? 0.5 : 1.0;
}

/* As trl_hash_mix in spatialops/hash.c. */
TRL_BODY unsigned long long trl_kernel_scramble(unsigned long long x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

TRL_BODY unsigned long long trl_kernel_hash(unsigned long long point, double value)
{
    const unsigned long long nan = 0x7ff8000000000000ull;
    const unsigned long long bits = value != value ? nan : (unsigned long long)__double_as_longlong(value);
    return trl_kernel_scramble(bits ^ trl_kernel_scramble(point + 0x9e3779b97f4a7c15ull));
}

/* n / d, below 2^32 in half of the time. */
TRL_BODY long long trl_kernel_quotient(long long n, long long d)
{
    return n >> 32 ? n / d : (long long)((unsigned)n / (unsigned)d);
}

#endif

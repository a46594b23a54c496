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

TRL_BODY int trl_kernel_thread(void)
{
    return (int)(threadIdx.x + threadIdx.y * blockDim.x);
}

/* All threads of a warp together. */
TRL_BODY long long trl_kernel_warp_sum(long long x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned low = __reduce_add_sync(TRL_KERNEL_ALL, (unsigned)x & 0x3fffff);
    const unsigned middle = __reduce_add_sync(TRL_KERNEL_ALL, (unsigned)(x >> 22) & 0x3fffff);
    return ((long long)__reduce_add_sync(TRL_KERNEL_ALL, (int)(x >> 44)) << 44) + ((long long)middle << 22) + low;
#else
    for (int d = TRL_KERNEL_WARP / 2; d > 0; d /= 2) x += __shfl_xor_sync(TRL_KERNEL_ALL, x, d);
    return x;
#endif
}

TRL_BODY int trl_kernel_warp_max(int x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(TRL_KERNEL_ALL, x);
#else
    for (int d = TRL_KERNEL_WARP / 2; d > 0; d /= 2) {
        const int other = __shfl_xor_sync(TRL_KERNEL_ALL, x, d);
        if (other > x) x = other;
    }
    return x;
#endif
}

/* What the totals of a warp have got: high * 2^41 + low units of 2^(at - 1075). */
typedef struct trl_kernel_units {
    long long high, low;
    int at;
} trl_kernel_units;

/* All threads of a warp together: all of them get it. */
TRL_BODY trl_kernel_units trl_kernel_sum_units(const trl_kernel_sum s)
{
    const long long high = trl_kernel_warp_sum(__double_as_longlong(s.high) - __double_as_longlong(s.start[0]));
    const long long low = trl_kernel_warp_sum(__double_as_longlong(s.low) - __double_as_longlong(s.start[1]));
    const trl_kernel_units none_suited = {0, high, 1}, all = {high, low, __double2hiint(s.start[1]) >> 20};
    return s.start[0] == 0 ? none_suited : all; /* subnormal numbers alone */
}

/* All threads of a warp together: add what it has, a thread for each piece. */
TRL_BODY void trl_kernel_units_add(const trl_kernel_units all, trl_kernel_partial *share)
{
    const unsigned long long part = (unsigned long long)all.high << 41, low = part + (unsigned long long)all.low;
    const long long high = (all.high >> 23) + (all.low >> 63) + (low < part);
    const unsigned long long low_half = 0xffffffffull;
    const int shift = all.at & 31;
    for (int k = trl_kernel_thread() % TRL_KERNEL_WARP; k < 5; k += TRL_KERNEL_WARP) {
        const unsigned long long window = k == 0   ? low << shift
                                          : k == 1 ? low >> (32 - shift)
                                          : k == 2 ? (unsigned long long)high << shift | low >> 32 >> (32 - shift)
                                                   : (unsigned long long)(high >> (32 - shift));
        const unsigned long long piece = k < 4 ? window & low_half : (unsigned long long)(high >> 32 >> (32 - shift));
        if (piece) atomicAdd((unsigned long long *)&share->word[(all.at >> 5) + k], piece);
    }
}

/* A sum as a block makes it: what its warps cannot keep in their totals, and these in the end. */
typedef struct trl_kernel_block {
    trl_kernel_partial share;
    trl_kernel_units warp[TRL_KERNEL_MERGING / TRL_KERNEL_WARP];
    int first, end; /* words of a sum that are not 0 lie between */
} trl_kernel_block;

/* All threads of a block together, before its warps add to n sums: these begin with nothing. */
TRL_BODY void trl_kernel_block_begin(trl_kernel_block *block, int n)
{
    const int words = (int)(sizeof block->share / sizeof(long long));
    for (int r = 0; r < n; ++r) {
        long long *const word = (long long *)&block[r].share; /* all members are as large as one */
        for (int i = trl_kernel_thread(); i < words; i += TRL_KERNEL_MERGING) word[i] = 0;
    }
    __syncthreads();
}

/* All threads of a warp together, at its end: leave what it has to one that adds it with what others have left. */
TRL_BODY void trl_kernel_sum_leave(const trl_kernel_sum s, trl_kernel_block *block)
{
    const trl_kernel_units all = trl_kernel_sum_units(s);
    const int thread = trl_kernel_thread();
    if (thread % TRL_KERNEL_WARP == 0) block->warp[thread / TRL_KERNEL_WARP] = all;
}

/* All threads of a block together, after its warps have left what they have: the sum goes to the launch's share. Blocks
 * are many, so each adds few words: warps that began alike count as one. by: a warp that is to do it. */
TRL_BODY void trl_kernel_block_end(const trl_kernel_block *block, trl_kernel_partial *share, int by)
{
    const int warps = TRL_KERNEL_MERGING / TRL_KERNEL_WARP;
    const int words = (int)((sizeof share->word + sizeof share->special) / sizeof(long long)); /* one by one */
    const unsigned long long *const from = (const unsigned long long *)&block->share;
    unsigned long long *const to = (unsigned long long *)share;
    __syncthreads();
    for (int i = trl_kernel_thread(); i < words; i += TRL_KERNEL_MERGING)
        if (from[i] != 0) atomicAdd(&to[i], from[i]);
    if (trl_kernel_thread() / TRL_KERNEL_WARP != by % warps) return;
    trl_kernel_units all = block->warp[0];
    for (int w = 1; w < warps; ++w) {
        const trl_kernel_units next = block->warp[w];
        if (next.at != all.at) {
            trl_kernel_units_add(all, share);
            all = next;
        } else {
            all.high += next.high;
            all.low += next.low;
        }
    }
    trl_kernel_units_add(all, share);
}

/* All threads of a warp together: let what they have go to a share. */
TRL_KERNEL_APART void trl_kernel_sum_empty(const trl_kernel_sum s, trl_kernel_partial *share)
{
    const bool none = s.high == s.start[0] && s.low == s.start[1];
    if (__any_sync(TRL_KERNEL_ALL, !none)) trl_kernel_units_add(trl_kernel_sum_units(s), share);
}

/* Suit values like these. */
TRL_BODY void trl_kernel_sum_choose(trl_kernel_sum *s, double x)
{
    const int own = __double2hiint(x) >> 20 & 0x7ff, field = trl_kernel_warp_max(own == 0x7ff ? 0 : own);
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
    if (trl_kernel_thread() % TRL_KERNEL_WARP != 0) return;
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

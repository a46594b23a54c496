/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After trl_kernel_warp_body.h and trl_sum_body.h: what the last block of a kernel that merges values does with what
 * all blocks have brought together. */
#if (defined(__CUDACC__) || defined(TRL_KERNEL_WARP)) && !defined(TRL_KERNEL_LAST_BODY_H)
#define TRL_KERNEL_LAST_BODY_H

/* All threads of a block together, after all that the block adds: whether all other blocks were here before. What they
 * have added is there then. */
TRL_BODY bool trl_kernel_is_last(long long *arrived)
{
    __shared__ bool last;
    __syncthreads();
    if (trl_kernel_thread() == 0) {
        const unsigned long long before = (unsigned long long)gridDim.x * gridDim.y * gridDim.z - 1;
        __threadfence();
        last = atomicAdd((unsigned long long *)arrived, 1ull) == before;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* The value of a result, of which `block` has all. */
TRL_BODY double trl_kernel_value(trl_kernel_block *block, bool sum)
{
    trl_kernel_partial *const all = &block->share;
    const int words = (int)(sizeof all->word / sizeof *all->word);
    if (sum)
        return __longlong_as_double((long long)trl_sum_bits(all->word, block->first, block->end, words, all->special));
    return all->invalid ? TRL_FN_NAN : all->extreme + 0.0;
}

/* All threads of a block together, at the end of a kernel with n results, for a launch in which they are gathered: the
 * last block lets them go, and leaves them empty for the next launch. sums, least: of results a bit each. block: [n]
 * memory of the block that is used no more. */
TRL_KERNEL_APART void trl_kernel_let_go(const trl_kernel_launch &call, trl_kernel_block *block, int n, unsigned sums,
                                        unsigned least)
{
    enum {
        ALL = sizeof(trl_kernel_partial) / sizeof(long long), /* all members are as large as one */
        WORDS = sizeof block->share.word / sizeof(long long),
        PENDING = WORDS + 3, /* of the first result: blocks that have arrived */
        EXTREME
    };
    const unsigned long long lowest = 0xfffull << 52, highest = 0x7ffull << 52; /* infinities */
    unsigned long long *const from = (unsigned long long *)call.gathered, *const to = (unsigned long long *)call.share;
    const int thread = trl_kernel_thread();
    for (int r = thread; r < n; r += TRL_KERNEL_MERGING) {
        block[r].first = WORDS;
        block[r].end = 0;
    }
    if (!trl_kernel_is_last(&call.gathered->pending)) return;
    for (int i = thread; i < n * ALL; i += TRL_KERNEL_MERGING) {
        const int r = i / ALL, w = i % ALL;
        const unsigned long long empty = w != EXTREME ? 0 : least >> r & 1 ? highest : lowest;
        const unsigned long long had = atomicExch(&from[i], empty), word = w == PENDING ? 0 : had;
        to[i] = word;
        if (call.told) ((unsigned long long *)call.told)[i] = word;
        ((unsigned long long *)&block[r].share)[w] = word;
        if (w >= WORDS || word == 0) continue;
        atomicMin(&block[r].first, w);
        atomicMax(&block[r].end, w + 1);
    }
    __syncthreads();
    for (int r = thread / TRL_KERNEL_WARP; r < n && call.value[0]; r += TRL_KERNEL_MERGING / TRL_KERNEL_WARP) {
        if (thread % TRL_KERNEL_WARP != 0) continue;
        const double value = trl_kernel_value(&block[r], sums >> r & 1);
        call.value[0][call.number[r]] = call.value[1][call.number[r]] = value;
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The chunks of a loop, shared out among workers. */
#ifndef TRL_SHARE_IMPL_H
#define TRL_SHARE_IMPL_H

#include "worker_impl.h"

/* Chunks fall into one share of neighbours per worker. A worker hands itself those of its own share, then of the
 * others': from task to task it meets the same part of the data, which its cache still holds. */
typedef struct trli_share {
    /* Chunks handed out, and in the high half the generation that they are of; in any other one none is handed out yet.
     */
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t handed_out;
    int32_t first, count;     /* chunks */
    _Atomic int32_t complete; /* chunks of the whole wide task; in the first share only */
    TRLI_APART(after);
} trli_share;

/* Deal chunks evenly to shares, and begin to count generations. */
void trli_shares_deal(trli_share *share, int32_t shares, int64_t chunks);
/* The next chunks for a worker: the first, and how many; or TRLI_NONE. Each is handed out once in a generation; a
 * generation begins, with the next number, when all have left the one before. */
int32_t trli_shares_take(trli_share *share, int32_t shares, uint32_t generation, int worker, int *count);
/* Whether all chunks of a share are handed out. */
bool trli_share_over(const trli_share *share, uint32_t generation);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The chunks of a loop, divided among workers. */
#ifndef TRL_SHARE_IMPL_H
#define TRL_SHARE_IMPL_H

#include "worker_impl.h"

/* Each worker has one share of neighbouring chunks. A worker takes chunks of its own share first, then of the
 * others': from task to task it works on the same part of the data, which its cache still holds. */
typedef struct trli_share {
    /* Number of chunks handed out; in the high half, the generation to which that number belongs: in any other
     * generation none is handed out yet. */
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t handed_out;
    int32_t first, count; /* chunks */
    /* Of a wide task, only in the first share: */
    _Atomic int32_t complete;  /* chunks */
    _Atomic uint32_t openings; /* the generation of its chunks */
    uint32_t position;         /* where the last opening stands, */
    int32_t queue;             /* and in which queue */
    TRLI_APART(after);
} trli_share;

/* Deal chunks evenly to shares: the next generation is the one after this number. */
void trli_shares_deal(trli_share *share, int32_t shares, int64_t chunks, uint32_t generation);
/* The next chunks for a worker: the first, and their count; or TRLI_NONE. Each chunk is handed out once in a
 * generation. The next generation begins with the next number, when all chunks of the one before are handed out: who
 * still asks for that one gets none. */
int32_t trli_shares_take(trli_share *share, int32_t shares, uint32_t generation, int worker, int *count);
/* Whether all chunks of a share are handed out. */
bool trli_share_over(const trli_share *share, uint32_t generation);

#endif

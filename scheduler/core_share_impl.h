/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which cores of a node each of its ranks has, whatever its launcher let them use. */
#ifndef TRLI_CORE_SHARE_IMPL_H
#define TRLI_CORE_SHARE_IMPL_H

#include "context_impl.h"

/* Cores have numbers; a set is a bit for each. */
typedef struct trli_core_sets {
    int n, words;  /* ranks, and words of a set */
    uint64_t *set; /* [n][words] what each rank may use */
} trli_core_sets;

typedef struct trli_core_share {
    uint64_t *dealt; /* [words] cores that ranks with the same set share; for trli_free */
    int words;
    int first, last;              /* of those, in the order of the machine: [first, last) */
    bool shared;                  /* others may use them, too */
    int crowd_ranks, crowd_cores; /* ranks that outnumber their cores, this one among them; 0: there are none */
} trli_core_share;

/* Ranks with the same set share it evenly, but for what ranks with smaller sets need: of two ranks, one that may use
 * core 0 alone and one that may use 0 and 1, the second has core 1. quota: processors that a cgroup grants; 0: there is
 * none. Fails with MEMORY. Collective: no. */
TRL_NODISCARD trl_err trli_core_share_of(trl_context *ctx, const trli_core_sets *sets, int rank, int quota,
                                         trli_core_share *share);
bool trli_core_is_dealt(const trli_core_share *share, int core);

#endif

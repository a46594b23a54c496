/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What this machine can do in a second, measured once and kept: what the cost model and the plan reckon with. */
#ifndef TRLI_BALANCE_IMPL_H
#define TRLI_BALANCE_IMPL_H

#include <trl_graph.h>

/* Of all workers of a rank at once, while the other ranks do the same. Loops over doubles, by the widest vectors. */
typedef struct trli_balance {
    double memory;      /* bytes/s of a copy past the caches, read and written */
    double cache;       /* bytes/s of a copy within the last-level cache */
    double operations;  /* additions and multiplications a second, in registers */
    double division;    /* additions that take as long as a division or a square root */
    double exponential; /* and as an exp */
    double caches;      /* bytes of the last-level cache, the workers' parts together */
} trli_balance;

/* The figures of rank 0, for all ranks the same: from the cache if it has them for this processor, number of workers and number of ranks;
 * else all ranks measure, which takes some tens of ms, and rank 0 keeps its own. Collective: yes. Fails with MEMORY, MPI. */
TRL_NODISCARD trl_err trli_balance_find(trl_context *ctx, trl_workers *workers, trli_balance *balance);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Measuring what this machine can do in a second, for all runs. */
#ifndef TRLI_BALANCE_IMPL_H
#define TRLI_BALANCE_IMPL_H

#include <trl_graph.h>

#include "machine_impl.h"

/* The figures of rank 0, for all ranks the same: those of TRL_BALANCE if it is set; else from the cache if it has them
 * for this processor, number of workers and number of ranks, of which one is measured again, in a millisecond, to find
 * whether the machine was busy when they were; else all ranks measure, which takes some tens of ms, and rank 0 keeps
 * its own. Kept ones are measured again now and then, and the best count. Collective: yes. Fails with INPUT, MEMORY,
 * MPI. */
TRL_NODISCARD trl_err trli_balance_find(trl_context *ctx, trl_workers *workers, trli_balance *balance);

#endif

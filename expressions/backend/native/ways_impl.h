/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Measuring which way ranks of a node exchange faster: by messages of MPI, or through memory that they share. */
#ifndef TRLI_WAYS_IMPL_H
#define TRLI_WAYS_IMPL_H

#include <trl_context.h>

#include "machine_impl.h"

/* What an exchange takes by both ways, on all ranks the same: the four numbers of TRL_EXCHANGE if it is set; else from
 * rank 0's cache, if it has them for this processor and so many ranks; else all ranks measure, in some ms, the slowest
 * one counts, and rank 0 keeps it. Kept ones are measured again after a day, when the better ones count, and begin anew
 * after a month. Not known where no node has several ranks, or memory cannot be shared. Collective: yes. Fails with
 * INPUT, MEMORY, MPI. */
TRL_NODISCARD trl_err trli_ways_find(trl_context *ctx, trli_ways *ways);
/* Whether ranks exchange messages of so many bytes through memory: unless it is known that messages are faster, by more
 * than measurements differ. */
bool trli_ways_share(const trli_ways *ways, double bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A slab of each rank, which the other ranks of its node read and write where it is, and where these ranks wait for one
 * another. */
#ifndef TRLI_NODE_SLAB_IMPL_H
#define TRLI_NODE_SLAB_IMPL_H

#include <trl_context.h>

typedef struct trli_node_slab trli_node_slab;

/* bytes: of this rank's slab, all zero. shares: the same on all ranks; false: no rank reaches another one's slab, nor
 * does any where the system of a node refuses. Fails with MEMORY, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_node_slab_create(trl_context *ctx, bool shares, size_t bytes, trli_node_slab **slab);
/* Others may still use it. */
void trli_node_slab_destroy(trli_node_slab **slab);
/* A rank's slab, at a cache line; NULL: this rank does not reach it. */
double *trli_node_slab_of(const trli_node_slab *slab, int rank);

/* A barrier of the ranks that reach one another's slabs, in two parts: this rank has come there; and wait until all
 * have come as often. What they did to slabs before is seen then. Waiting brings late agreements on, and fails if the
 * rank is lost. Thread: main. */
void trli_node_slab_arrive(trli_node_slab *slab);
TRL_NODISCARD trl_err trli_node_slab_wait(trli_node_slab *slab);

#endif

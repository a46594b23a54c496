/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory in which each rank of a node posts numbers that the others read. A message comes while its receiver calls MPI,
 * which a rank that is in a kernel does not; what is posted is there for all at once. A board has several slots, in
 * each of which all ranks post round after round, counted from 1 on. A slot has room for two rounds: a rank posts a
 * round when it has read all ranks' numbers of the one before, or been told what follows from them; so when it posts,
 * all are done with what its place held. */
#ifndef TRL_NODE_BOARD_IMPL_H
#define TRL_NODE_BOARD_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <trl_context.h>

typedef struct trli_node_board trli_node_board;

/* count: [slots] numbers of each, on all ranks alike. *board: NULL where some rank of any node gets no memory, or there
 * is one rank. Collective: yes. Fails with MPI, MEMORY. */
TRL_NODISCARD trl_err trli_node_board_create(trl_context *ctx, int slots, const size_t *count, trli_node_board **board);
/* Collective, unless the context is lost: then its memory stays. */
void trli_node_board_destroy(trl_context *ctx, trli_node_board **board);

/* Ranks of this node, and the place of this one among them; how many nodes there are, and this one's number; the first
 * rank of a node, and whether this one is. */
int trli_node_board_size(const trli_node_board *board);
int trli_node_board_place(const trli_node_board *board);
int trli_node_board_nodes(const trli_node_board *board, int *own);
int trli_node_board_leader(const trli_node_board *board, int node);
bool trli_node_board_leads(const trli_node_board *board);

/* Where this rank's numbers of a round belong, and that they are there. */
int64_t *trli_node_board_room(const trli_node_board *board, int slot, int64_t round);
void trli_node_board_post(const trli_node_board *board, int slot, int64_t round);
/* Those of a rank, by its place in the node, from 0 on; NULL: it has not posted them. */
const int64_t *trli_node_board_read(const trli_node_board *board, int place, int slot, int64_t round);

#endif

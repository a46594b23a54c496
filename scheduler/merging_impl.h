/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Numbers of all ranks that are merged while nobody waits: of agreements, and of reductions. Ranks of a node post them
 * on a board that all of them read. Of several nodes the first ranks bring them together by messages, and tell the
 * others; without a board all ranks do. What any merge gives has to be independent of order. */
#ifndef TRL_MERGING_IMPL_H
#define TRL_MERGING_IMPL_H

#include <mpi.h>

#include "node_board_impl.h"

enum { TRLI_MERGING_SLOTS = 2 /* of a board, for as many numbers each */ };

/* What this rank waits for. */
typedef enum trli_merging_stage {
    TRLI_MERGING_NODE,   /* numbers of the node's ranks */
    TRLI_MERGING_ROUNDS, /* messages between all ranks, or of one of each node */
    TRLI_MERGING_LEADER  /* what that one tells */
} trli_merging_stage;

typedef struct trli_merging trli_merging;
struct trli_merging {
    /* Before the first time. */
    MPI_Comm comm;
    int tag;                      /* of no other messages there */
    const trli_node_board *board; /* or NULL, */
    int slot;                     /* where ranks say their numbers; in the next one the leader tells the result */
    int n;                        /* the same on all ranks */
    int64_t *value, *received;    /* [n] this rank's numbers, and then what they give; another one's */
    void (*merge)(const void *how, int64_t *value, const int64_t *part);
    const void *how;
    /* The present one, or the last. */
    bool under_way;
    trli_merging_stage stage;
    int64_t number; /* it is the so manieth */
    int heard;      /* ranks of the node that have said theirs */
    int distance;   /* between places that exchange messages; 0: before, with those beyond a power of two */
    MPI_Request request[2];
    trli_merging *next; /* trli_merging_leave */
};

/* Begin: none is under way. Look once whether it is over, which under_way says. Fails with MPI. Under a lock that
 * guards the rank's calls of MPI where it makes some. */
TRL_NODISCARD trl_err trli_merging_begin(trl_context *ctx, trli_merging *merging);
TRL_NODISCARD trl_err trli_merging_look(trl_context *ctx, trli_merging *merging);
/* Whether this rank sends messages, with a board or NULL; else it calls no MPI. */
bool trli_merging_sends(const trl_context *ctx, const trli_node_board *board);

/* Leave one that is under way to the polls of later runs, until it is taken back. Thread: main. */
void trli_merging_leave(trl_context *ctx, trli_merging *merging);
void trli_merging_take_back(trl_context *ctx, trli_merging *merging);
/* Look at all that are left, under the polls' lock. */
TRL_NODISCARD trl_err trli_mergings_go_on(trl_context *ctx);

#endif

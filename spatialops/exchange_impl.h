/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan of a ghost exchange: which boxes go where, in an order that both ends of every message derive alike. */
#ifndef TRL_EXCHANGE_IMPL_H
#define TRL_EXCHANGE_IMPL_H

#include <stdalign.h>
#include <stdatomic.h>

#include <trl_field.h>

#include "spatialops_impl.h"

/* One box of one field that a patch (source) owns and another, or the same across a periodic axis, holds as ghosts
 * (target). */
typedef struct trli_exchange_piece {
    int peer;                       /* the rank at the other end; this rank itself: a copy */
    int field, direction;           /* direction: where the ghosts are, seen from the target */
    int source, target;             /* ids of patches */
    int source_local, target_local; /* indices among this rank's patches, or -1 */
    trl_lidx from[3], to[3], extent[3];
    size_t value_bytes, offset; /* bytes of one value; bytes from the start of the buffer */
} trli_exchange_piece;

/* Consecutive transfers to or from one rank. */
typedef struct trli_message {
    int peer;
    int first, n;         /* transfers */
    size_t offset, words; /* in the buffer: bytes from its start; 8-byte words */
    bool open, started;   /* in the exchange under way: not complete; a send: begun */
    /* In memory that ranks of a node share (exchange_node.c); NULL: messages of MPI. */
    struct trli_node_slot *slot;
    unsigned char *room[2]; /* of even rounds, of odd ones */
    int64_t round;          /* complete ones */
} trli_message;

/* All that moves one way. */
typedef struct trli_traffic {
    int ntransfers, nmessages;
    trli_exchange_piece *transfer; /* by (peer, target, field, direction) */
    trli_message *message;         /* by peer */
    size_t bytes;                  /* of all messages */
} trli_traffic;

struct trl_exchange {
    trl_context *ctx;
    int tag;
    trli_traffic receives, sends, copies;
    unsigned char *receive_buffer, *send_buffer;
    MPI_Request *request; /* receives, then sends */
    int nrequests;        /* those created so far */
    MPI_Win window;       /* of shared memory; MPI_WIN_NULL: none */
    bool connected;       /* on all ranks */
    bool halfway;         /* trl_exchange_begin was called, and trl_exchange_finish was not done */
    bool leaves_copies;   /* between patches of this rank: others do them */
    _Atomic int open;     /* messages of the exchange under way that are not complete */
    int64_t begun;        /* exchanges since creation */
};

/* Fill receives, sends and copies. Local: no communication. Fails as trl_exchange_create. */
trl_err trli_exchange_plan(trl_exchange *exchange, const trl_layout *layout, int nfields,
                           const trl_exchange_field *fields);

/* What an exchange would move, without what moves it: to be destroyed, not to be begun. Local. Fails as
 * trl_exchange_create. */
TRL_NODISCARD trl_err trli_exchange_plan_only(trl_context *ctx, const trl_layout *layout, int nfields,
                                              const trl_exchange_field *fields, trl_exchange **exchange);
/* From now on trl_exchange_begin copies nothing between patches of this rank: the caller does, by trli_exchange_copy.
 */
void trli_exchange_leave_copies(trl_exchange *exchange);
void trli_exchange_copy(const trli_exchange_piece *piece, const trl_array *source, const trl_array *target);

/* From now on messages between ranks of a node go through memory that they share: the same bits, without MPI. If some
 * rank gets none, all is as before. Collective: yes. Fails with MPI, MEMORY. */
TRL_NODISCARD trl_err trli_exchange_share(trl_exchange *exchange);

/* ---- an exchange message by message: post, then pack and send each, receive and unpack each, in any order. No call
 * waits: *done = false asks for another one. Messages are counted as in sends and receives; calls for different ones
 * may be at once. ---- */

/* Once the buffers are free. */
TRL_NODISCARD trl_err trli_exchange_post(trl_exchange *exchange, bool *done);
/* The rows of a transfer that are the chunk-th of so many parts. */
void trli_exchange_pack(const trl_exchange *exchange, int message, int transfer, int chunk, int chunks,
                        const trl_array *source);
void trli_exchange_unpack(const trl_exchange *exchange, int message, int transfer, int chunk, int chunks,
                          const trl_array *target);
/* *done: the buffer may be written again. */
TRL_NODISCARD trl_err trli_exchange_send(trl_exchange *exchange, int message, bool *done);
/* *done: it may be unpacked. */
TRL_NODISCARD trl_err trli_exchange_receive(trl_exchange *exchange, int message, bool *done);

/* ---- exchange_node.c ---- */

/* A message in shared memory that its sender owns. Rounds of it that are packed, and that are unpacked and no longer
 * needed: two rounds have room of their own. */
typedef struct trli_node_slot {
    alignas(64) _Atomic int64_t sent;
    alignas(64) _Atomic int64_t taken;
    int peer;          /* who receives it */
    ptrdiff_t room[2]; /* from the start of the sender's memory */
} trli_node_slot;

#endif

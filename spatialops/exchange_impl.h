/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan of a ghost exchange: which boxes go where, in an order that both ends of every message derive alike. */
#ifndef TRL_EXCHANGE_IMPL_H
#define TRL_EXCHANGE_IMPL_H

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
    size_t offset, words; /* in the buffer: bytes from its start; 8-byte words */
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
    MPI_Comm comm;
    trli_traffic receives, sends, copies;
    unsigned char *receive_buffer, *send_buffer;
    MPI_Request *request; /* receives, then sends */
    int nrequests;        /* those created so far */
    bool leaves_copies;   /* between patches of this rank: others do them */
    bool under_way;
    int64_t begun; /* exchanges since creation */
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

#endif

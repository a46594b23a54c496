/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan of a ghost exchange: which boxes go where, in an order that both ends of every message derive alike. */
#ifndef TRL_EXCHANGE_IMPL_H
#define TRL_EXCHANGE_IMPL_H

#include <stdalign.h>
#include <stdatomic.h>

#include <trl_field.h>

#include <executor_impl.h>
#include <open_memory_impl.h>

#include "residence_impl.h"
#include "spatialops_impl.h"

/* One box of one field that a patch (source) owns and another, or the same across a periodic axis, holds as ghosts
 * (target). */
typedef struct trli_exchange_piece {
    int peer;                       /* the rank at the other end; this rank itself: a copy */
    int label;                      /* of the message: ranks may have several for one another */
    int field, direction;           /* direction: where the ghosts are, seen from the target */
    int source, target;             /* ids of patches */
    int source_local, target_local; /* indices among this rank's patches, or -1 */
    trl_lidx from[3], to[3], extent[3];
    size_t value_bytes, offset; /* bytes of one value; bytes from the start of the buffer */
} trli_exchange_piece;

/* Along an axis: -1 below the target, 1 above, 0 neither. */
static inline int trli_exchange_step(int direction, int axis)
{
    static const int place[3] = {1, 3, 9};
    return direction / place[axis] % 3 - 1;
}

/* Where a transfer lies in memory that ranks of a node share. */
typedef struct trli_node_piece {
    bool lent;           /* in a field of the sender; else packed in the message's room */
    ptrdiff_t at;        /* bytes from the start of the sender's memory (open_memory_impl.h), or of the room */
    ptrdiff_t stride[3]; /* bytes */
} trli_node_piece;

/* Consecutive transfers to or from one rank, of one label. */
typedef struct trli_message {
    int peer, label;
    int first, n;         /* transfers */
    size_t offset, words; /* in the buffer: bytes from its start; 8-byte words */
    bool open, started;   /* in the exchange under way: not complete; a send: begun */
    /* In memory that ranks of a node share (exchange_node.c); NULL: messages of MPI. */
    struct trli_node_slot *slot;
    unsigned char *room[2];      /* of even rounds, of odd ones */
    trli_node_piece *piece;      /* [n] of lent ones those of the present round */
    bool lends;                  /* some are lent: a send is complete once the receiver has read them */
    const unsigned char *lender; /* a receive: the sender's memory, as this rank has it mapped */
    int64_t round;               /* complete ones */
    int64_t sent_ns;             /* of what was received last: when it was sent, by trli_now_ns; 0: not known */
    /* In memory of GPUs (exchange_device.c); NULL: there is none. */
    unsigned char *near[2]; /* this rank's, of even rounds, of odd ones; of a send one, from which it is copied */
    unsigned char *far[2];  /* a send: the receiver's */
} trli_message;

/* All that moves one way. */
typedef struct trli_traffic {
    int ntransfers, nmessages;
    trli_exchange_piece *transfer; /* by (peer, label, target, field, direction) */
    trli_message *message;         /* by (peer, label) */
    size_t bytes;                  /* of all messages */
} trli_traffic;

struct trl_exchange {
    trl_context *ctx;
    int labels; /* on all ranks, those of messages are less */
    bool late;  /* messages are read, and what is unpacked, when they would have left the caches: they are streamed */
    int tag;    /* of messages of label 0 */
    int64_t layout; /* what trli_layout_digest says of the layout; 0: a plan of pieces */
    trli_traffic receives, sends, copies;
    unsigned char *receive_buffer, *send_buffer;
    MPI_Request *request;           /* receives, then sends */
    int nrequests;                  /* those created so far */
    MPI_Win window;                 /* of shared memory; MPI_WIN_NULL: none */
    const struct trli_loans *loans; /* by which ranks of the node read fields of each other; NULL: all is packed */
    bool connected;                 /* on all ranks */
    bool halfway;                   /* trl_exchange_begin was called, and trl_exchange_finish was not done */
    bool follows_plan;              /* transfers are a plan's */
    trl_device *device;             /* a GPU that packs and unpacks; NULL: none */
    _Atomic int open;               /* messages of the exchange under way that are not complete */
    int64_t begun;                  /* exchanges since creation */
};

/* Fill receives, sends and copies. Local: no communication. Fails as trl_exchange_create. */
trl_err trli_exchange_plan(trl_exchange *exchange, const trl_layout *layout, int nfields,
                           const trl_exchange_field *fields);

/* What a piece takes in a buffer: its values, up to the next word. */
size_t trli_exchange_piece_bytes(const trli_exchange_piece *piece);

/* Fill receives and sends with pieces. Local. Fails as trl_exchange_create. */
TRL_NODISCARD trl_err trli_exchange_take_pieces(trl_exchange *exchange, int nreceives,
                                                const trli_exchange_piece *receive, int nsends,
                                                const trli_exchange_piece *send);

/* What an exchange would move, without what moves it: to be destroyed, not to be begun. Local. Fails as
 * trl_exchange_create. */
TRL_NODISCARD trl_err trli_exchange_plan_only(trl_context *ctx, const trl_layout *layout, int nfields,
                                              const trl_exchange_field *fields, trl_exchange **exchange);
/* A plan of pieces that the caller has listed, with peers and labels below a number that is the same on all ranks; both
 * ends of a message list its pieces with the same targets, fields and directions, no two of which are the same. Local.
 * Fails as trl_exchange_create. */
TRL_NODISCARD trl_err trli_exchange_plan_pieces(trl_context *ctx, int labels, int nreceives,
                                                const trli_exchange_piece *receive, int nsends,
                                                const trli_exchange_piece *send, trl_exchange **exchange);
/* An exchange of a plan's messages, which leaves copies between patches of this rank to the caller
 * (trli_exchange_copy). The plan outlives it. Collective: yes. Fails with MPI, MEMORY. */
TRL_NODISCARD trl_err trli_exchange_create_from(const trl_exchange *plan, trl_exchange **exchange);
/* The rows of a piece that are the chunk-th of so many parts. */
void trli_exchange_copy(const trli_exchange_piece *piece, int chunk, int chunks, const trl_array *source,
                        const trl_array *target);

/* Memory of this rank that the others of its node may read, and with `writes` write to, and theirs, mapped. own: what
 * this rank has of it outlives the loans; NULL: nothing. *loans: NULL where a rank of a node has nothing, or cannot map
 * the others'. Collective: yes. Fails with MPI, MEMORY. */
typedef struct trli_loans trli_loans;
TRL_NODISCARD trl_err trli_loans_create(trl_context *ctx, const trli_open_memory *own, bool writes, trli_loans **loans);
void trli_loans_destroy(trli_loans **loans);
const trli_open_memory *trli_loans_own(const trli_loans *loans);
/* Another rank's memory; NULL: it is not of this node. */
unsigned char *trli_loans_of(const trli_loans *loans, int rank);

/* From now on messages between ranks of a node go through memory that they share: the same bits, without MPI. If some
 * rank gets none, all is as before. loans: arrays that are packed are all in this rank's memory of them, and the
 * receiver reads rows of them there, so that a send is not done before; NULL: all is packed. Collective: yes. Fails
 * with MPI, MEMORY. */
TRL_NODISCARD trl_err trli_exchange_share(trl_exchange *exchange, const trli_loans *loans);

/* ---- an exchange message by message: post, then pack and send each, receive and unpack each, in any order. No call
 * waits: *done = false asks for another one. Messages are counted as in sends and receives; calls for different ones
 * may be at once. ---- */

/* Once the buffers are free. */
TRL_NODISCARD trl_err trli_exchange_post(trl_exchange *exchange, bool *done);
/* The rows of a transfer that are the chunk-th of so many parts. What is lent is not copied: where it lies is noted. */
void trli_exchange_pack(const trl_exchange *exchange, int message, int transfer, int chunk, int chunks,
                        const trl_array *source);
void trli_exchange_unpack(const trl_exchange *exchange, int message, int transfer, int chunk, int chunks,
                          const trl_array *target);
/* *done: the buffer may be written again, and what was lent. */
TRL_NODISCARD trl_err trli_exchange_send(trl_exchange *exchange, int message, bool *done);
/* *done: it may be unpacked. */
TRL_NODISCARD trl_err trli_exchange_receive(trl_exchange *exchange, int message, bool *done);

/* ---- exchange_node.c ---- */

/* A message in shared memory that its sender owns. Rounds of it that are packed or lent, and that are unpacked and no
 * longer needed: two rounds have room of their own. */
typedef struct trli_node_slot {
    alignas(64) _Atomic int64_t sent;
    alignas(64) _Atomic int64_t taken;
    int peer, label;          /* who receives it */
    ptrdiff_t room[2], piece; /* from the start of the slots' memory */
    /* Of even rounds, of odd ones: the message lies in the memory of the receiver's GPU. Written before `sent`. */
    _Atomic bool far[2];
    _Atomic int64_t sent_ns[2]; /* when they were sent, by trli_now_ns. Written before `sent`. */
    /* Of the receiver: its GPU's memory, and where in it the message has room, before the first round; and whether the
     * GPU has failed, between runs. */
    bool offered;
    trli_gpu_handle handle;
    ptrdiff_t device_room[2];
    _Atomic bool refused;
} trli_node_slot;

/* ---- exchange_device.c: messages whose points a GPU has. It packs them, into the memory of the receiver's GPU, if
 * that is one of the same machine whose memory it can reach; else into its own, from where they are copied to the
 * host's, and then go as other messages do. ---- */

/* trli_rooms: room for the messages of many exchanges in the memory of this rank's GPU, and the memory of others. */
/* Whether GPUs of each node's ranks can open one another's memory. device: as below. Collective: yes. Fails with MPI,
 * MEMORY. */
TRL_NODISCARD trl_err trli_rooms_probe(trl_context *ctx, trl_device *device, bool *reach);
/* After trli_exchange_share. device: a GPU; NULL: this rank has none, or more than one. open: let GPUs write to each
 * other's memory. If a rank cannot open another one's memory, none does. Collective: yes. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_rooms_create(trl_context *ctx, trl_device *device, bool open, int n,
                                        trl_exchange *const *exchanges, trli_rooms **rooms);
/* Between runs: if the GPU has failed, others may no longer write to it; they know it after the next agreement. */
void trli_rooms_look(const trli_rooms *rooms);
/* Before the exchanges are destroyed. Collective: yes. */
void trli_rooms_destroy(trli_rooms **rooms);
/* Messages that this rank sends into the memory of other GPUs, of one exchange. */
int trli_exchange_far_messages(const trl_exchange *exchange);

/* Where a GPU packs a message of the present round. */
unsigned char *trli_exchange_target(const trl_exchange *exchange, int message);
/* After it, on the same stream: copy the message to the host, if it was packed into this rank's memory. Fails with
 * DEVICE. */
TRL_NODISCARD trl_err trli_exchange_packed(const trl_exchange *exchange, int message, void *stream);
/* Where a GPU finds a received message, which is copied there on this stream, if the host has it. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_exchange_source(const trl_exchange *exchange, int message, void *stream,
                                           unsigned char **source);
/* Before workers unpack: bring a message to the host, if a GPU has it. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_exchange_fetch(const trl_exchange *exchange, int message);
/* A received message is unpacked, after an error or not: its memory may be written again. */
void trli_exchange_release(const trl_exchange *exchange, int message);

#endif

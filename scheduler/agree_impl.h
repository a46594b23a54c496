/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Agreements of all ranks, and the collective calls behind them; docs/architecture.md says how failures travel. */
#ifndef TRL_AGREE_IMPL_H
#define TRL_AGREE_IMPL_H

#include <mpi.h>

#include <trl_context.h>

/* What agreements carry of each rank besides what they are about. */
typedef enum trli_carried {
    TRLI_CARRIED_SIGNAL, /* the one that it got */
    TRLI_CARRIED_FILES,  /* minus how much of its files it has written */
    TRLI_CARRIED_SHARES, /* how far it is with what its share follows from */
    TRLI_CARRIED
} trli_carried;

enum {
    TRLI_AGREED_CALLER = 3,                             /* numbers of an agreement that are the caller's */
    TRLI_AGREED = 2 + TRLI_CARRIED + TRLI_AGREED_CALLER /* all */
};

/* Let ranks of a node agree through memory that they share, if they get it. Collective: yes. Fails with MPI, MEMORY. */
TRL_NODISCARD trl_err trli_agree_on_node(trl_context *ctx);
/* trl_context_agree; in addition each of n <= TRLI_AGREED_CALLER values becomes its maximum over all ranks. After an
 * error the values mean nothing. */
TRL_NODISCARD trl_err trli_agree_max(trl_context *ctx, trl_err local, int n, int64_t *values);
/* The same, but without waiting: the result is that of trli_agree_at_last, before which no other agreement may be
 * begun later. One at once completes this one before, and fails where it failed. After an error the messages that this
 * rank recorded meanwhile are dropped. On several ranks. */
TRL_NODISCARD trl_err trli_agree_later(trl_context *ctx, trl_err local, int n, const int64_t *values);
TRL_NODISCARD trl_err trli_agree_at_last(trl_context *ctx, int n, int64_t *values);
/* Whether the ranks agreed on an error and have not met since. Thread: main. */
bool trli_agree_failed(const trl_context *ctx);
/* Whether an agreement begun later waits for messages. Thread: any. */
bool trli_agree_goes_on(const trl_context *ctx);
/* Let it make progress, if there is one. Thread: any. */
void trli_agree_go_on(trl_context *ctx);
/* Between two looks for what comes without MPI: messages of others may need this rank's calls. Fails with MPI. */
TRL_NODISCARD trl_err trli_agree_call_mpi(trl_context *ctx);
/* Between two looks for a message, of which so many were in vain. A rank that waits long lets others have its core, and
 * one whose core others want does so at once: MPI_Waitall would keep it from those that it waits for. Where cores are
 * shared, a rank that has yielded for long sleeps: who yields is still given its share of the core. */
void trli_agree_rest(const trl_context *ctx, int looks);
/* From now on agreements carry a number of each rank, asked for when they begin; NULL: none. The largest in the last
 * one is the same on all ranks that ask between the same agreements; one rank asks at once. */
void trli_agree_carry(trl_context *ctx, trli_carried what, int64_t (*number)(const void *data), const void *data);
int64_t trli_agree_carried(const trl_context *ctx, trli_carried what);
/* Collective calls of MPI, each behind an agreement, so that no rank waits for one that failed before. In place.
 * Thread: main. */
TRL_NODISCARD trl_err trli_allreduce(trl_context *ctx, void *values, int n, MPI_Datatype type, MPI_Op op);
/* The same after work of this rank that ended so: if some rank's failed, none reduces. */
TRL_NODISCARD trl_err trli_allreduce_after(trl_context *ctx, trl_err local, void *values, int n, MPI_Datatype type,
                                           MPI_Op op);
TRL_NODISCARD trl_err trli_broadcast(trl_context *ctx, void *values, int n, MPI_Datatype type, int root);
/* Exchange one number, or as many elements as the counts say from given offsets, between each pair of ranks. */
TRL_NODISCARD trl_err trli_alltoall(trl_context *ctx, const int *sent, int *received);
TRL_NODISCARD trl_err trli_alltoallv(trl_context *ctx, const void *sent, const int *nsent, const int *sent_begin,
                                     void *received, const int *nreceived, const int *received_begin,
                                     MPI_Datatype type);
/* The same behind an agreement since which no rank can have failed, whatever it did. */
TRL_NODISCARD trl_err trli_alltoallv_further(trl_context *ctx, const void *sent, const int *nsent,
                                             const int *sent_begin, void *received, const int *nreceived,
                                             const int *received_begin, MPI_Datatype type);
/* Likewise, without waiting; and wait until it is over, seconds: no longer than that, 0: as long as it takes. What it
 * reads and writes stays until then; a lost rank gets an error, and keeps it. */
TRL_NODISCARD trl_err trli_alltoallv_begin(trl_context *ctx, const void *sent, const int *nsent, const int *sent_begin,
                                           void *received, const int *nreceived, const int *received_begin,
                                           MPI_Datatype type, MPI_Request *request);
TRL_NODISCARD trl_err trli_request_await(trl_context *ctx, MPI_Request *request, double seconds);
/* Begin to send values to a rank of the context. They stay until the request has ended. Thread: main. */
TRL_NODISCARD trl_err trli_send_begin(trl_context *ctx, const void *values, int n, MPI_Datatype type, int to, int tag,
                                      MPI_Request *request);
/* What this rank has sent to others by these calls, from one to one or to all. */
typedef struct trli_sent {
    int64_t messages, bytes;
} trli_sent;
/* Likewise: all get the elements of each rank, where it has put them: so many from there on. */
TRL_NODISCARD trl_err trli_allgatherv_further(trl_context *ctx, void *values, const int *count, const int *begin,
                                              MPI_Datatype type);
/* The largest values of all ranks; and until all ranks have come. */
TRL_NODISCARD trl_err trli_max_further(trl_context *ctx, int64_t *values, int n);
TRL_NODISCARD trl_err trli_barrier_further(trl_context *ctx);
/* Of the ranks of a part alone, in place. */
TRL_NODISCARD trl_err trli_part_allreduce_further(trl_context *ctx, MPI_Comm part, void *values, int n,
                                                  MPI_Datatype type, MPI_Op op);
/* A duplicate of the context's communicator that returns errors. */
TRL_NODISCARD trl_err trli_comm_create(trl_context *ctx, MPI_Comm *comm);
/* One of the ranks of each colour, by key, then by rank; MPI_COMM_NULL for those without one (MPI_UNDEFINED). */
TRL_NODISCARD trl_err trli_comm_split(trl_context *ctx, int colour, int key, MPI_Comm *comm);
void trli_comm_free(trl_context *ctx, MPI_Comm *comm);

#endif

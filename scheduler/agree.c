/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How a failure of one rank reaches the others. Every collective call of Trellis is made here, or between two
 * agreements, and an agreement precedes each call. A rank that failed goes to the next agreement on its way back and
 * meets the other ranks there, wherever their next agreement is: all agreements send the same message, so that any
 * two match. From then on, until the end of the innermost phase that all ranks are in, agreements return the error
 * without a message: ranks unwind at their own pace and meet again at the end of that phase. Two failures are left:
 * messages themselves fail, or a failure keeps a rank from work that the others wait for. Then the rank is lost, and
 * the creator of the context ends all ranks. */
#include <string.h>
#include <time.h>

#include "clock_impl.h"
#include "context_impl.h"

enum { FAILED_WAIT_S = 10 /* that a rank which failed waits for the others */ };

/* The numbers of an agreement. */
enum {
    KEY,        /* error codes of the ranks */
    SHALLOWEST, /* minus the phases that the rank is in */
    CALLERS     /* those of trli_agree_max */
};

trl_err trli_context_lose(trl_context *ctx, trl_err err)
{
    /* Relaxed: no other data depends on the flag. */
    if (atomic_exchange_explicit(&ctx->lost, true, memory_order_relaxed)) return err;
    if (ctx->options.lost) ctx->options.lost(ctx, err);
    return err;
}

bool trl_context_lost(const trl_context *ctx)
{
    return atomic_load_explicit(&ctx->lost, memory_order_relaxed);
}

trl_err trli_mpi_check(trl_context *ctx, int status, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (status == MPI_SUCCESS) return TRL_OK;
    MPI_Error_string(status, text, &length);
    return trli_context_lose(ctx, trl_fail(ctx, TRL_ERR_MPI, NULL, "%s failed on rank %d: %s", call, ctx->rank, text));
}

/* ---- agreement ---- */

/* The largest code wins, then the lowest rank: both are packed into one number, whose maximum decides. */
static int64_t key_of(trl_err err, int rank)
{
    return (int64_t)err << 32 | (INT32_MAX - rank);
}

/* A rank that failed does not wait for ever: the others may be waiting for a message that it will never send. */
static trl_err wait_impatiently(trl_context *ctx, trl_err local, MPI_Request request[2], double deadline)
{
    int complete = 0;
    for (;;) {
        int status = MPI_Testall(2, request, &complete, MPI_STATUSES_IGNORE);
        if (status != MPI_SUCCESS) return trli_mpi_check(ctx, status, "MPI_Testall");
        if (complete) return TRL_OK;
        if (trli_clock() > deadline) {
            trl_warn(ctx, NULL, "rank %d failed where the other ranks wait for it: all are ended", ctx->rank);
            return trli_context_lose(ctx, local);
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

/* Every rank learns the maxima. After round k a rank knows the maxima of 2^k ranks, of which it is the last; a
 * maximum may count a rank twice, so any number of ranks will do. MPI's own collective calls are not used: a
 * blocking one cannot be left, and the others are slow. */
static trl_err share_largest(trl_context *ctx, trl_err local, int64_t values[TRLI_AGREED])
{
    const double deadline = local == TRL_OK ? 0 : trli_clock() + FAILED_WAIT_S;
    trli_agreement *a = &ctx->agreement;
    trl_err err = TRL_OK;
    a->under_way = true;
    for (int round = 0, distance = 1; distance < ctx->ranks; ++round, distance *= 2) {
        int to = (ctx->rank + distance) % ctx->ranks, from = (ctx->rank - distance + ctx->ranks) % ctx->ranks;
        MPI_Request request[2];
        memcpy(a->sent, values, sizeof a->sent);
        TRL_TRY(trli_mpi_check(ctx, MPI_Irecv(a->received, TRLI_AGREED, MPI_INT64_T, from, round, a->comm, &request[0]),
                               "MPI_Irecv"));
        TRL_TRY(trli_mpi_check(ctx, MPI_Isend(a->sent, TRLI_AGREED, MPI_INT64_T, to, round, a->comm, &request[1]),
                               "MPI_Isend"));
        if (local == TRL_OK)
            TRL_TRY(trli_mpi_check(ctx, MPI_Waitall(2, request, MPI_STATUSES_IGNORE), "MPI_Waitall"));
        else
            TRL_TRY(wait_impatiently(ctx, local, request, deadline));
        for (int i = 0; i < TRLI_AGREED; ++i)
            if (a->received[i] > values[i]) values[i] = a->received[i];
    }
    a->under_way = false;
done:
    return err;
}

trl_err trli_context_stopped(trl_context *ctx)
{
    const char *by = ctx->options.stop ? ctx->options.stop() : NULL;
    return by ? trl_fail(ctx, TRL_ERR_INTERRUPTED, NULL, "stopped by %s before the first step", by) : TRL_OK;
}

trl_err trli_agree_max(trl_context *ctx, trl_err local, int n, int64_t *values)
{
    trli_agreement *a = &ctx->agreement;
    int64_t all[TRLI_AGREED];
    trl_err err = local;
    if (a->failed != TRL_OK) return a->failed;
    if (trl_context_lost(ctx)) return local != TRL_OK ? local : TRL_ERR_MPI;
    if (local == TRL_OK) err = local = trli_context_stopped(ctx);
    if (local != TRL_OK) trli_diagnostics_unique(&ctx->diagnostics);
    if (ctx->ranks == 1) goto done;
    all[KEY] = key_of(local, ctx->rank);
    all[SHALLOWEST] = -a->depth;
    for (int i = 0; i < TRLI_AGREED - CALLERS; ++i) all[CALLERS + i] = i < n ? values[i] : INT64_MIN;
    TRL_TRY(share_largest(ctx, local, all));
    for (int i = 0; i < n; ++i) values[i] = all[CALLERS + i];
    err = (trl_err)(all[KEY] >> 32);
    if (err == TRL_OK) goto done;
    a->failed_depth = (int)-all[SHALLOWEST];
    if (a->failed_depth > 0) a->failed = err;
    trl_err shared = trli_diagnostics_share(ctx, INT32_MAX - (int)(all[KEY] & INT32_MAX));
    if (shared != TRL_OK) err = shared;
done:
    return err;
}

trl_err trl_context_agree(trl_context *ctx, trl_err local)
{
    trli_diagnostics_unique(&ctx->diagnostics); /* of warnings too */
    return trli_agree_max(ctx, local, 0, NULL);
}

void trl_context_begin_phase(trl_context *ctx)
{
    ++ctx->agreement.depth;
}

trl_err trl_context_end_phase(trl_context *ctx, trl_err local)
{
    trli_agreement *a = &ctx->agreement;
    trl_err err = trl_context_agree(ctx, local);
    if (a->depth == a->failed_depth) a->failed = TRL_OK; /* all ranks are here */
    --a->depth;
    return err;
}

void trl_context_set_stop(trl_context *ctx, const char *(*stop)(void))
{
    ctx->options.stop = stop;
}

/* ---- collective calls ---- */

trl_err trli_allreduce(trl_context *ctx, void *values, int n, MPI_Datatype type, MPI_Op op)
{
    trl_err err;
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    if (ctx->ranks > 1)
        err = trli_mpi_check(ctx, MPI_Allreduce(MPI_IN_PLACE, values, n, type, op, ctx->comm), "MPI_Allreduce");
done:
    return err;
}

trl_err trli_broadcast(trl_context *ctx, void *values, int n, MPI_Datatype type, int root)
{
    trl_err err;
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    if (ctx->ranks > 1) err = trli_mpi_check(ctx, MPI_Bcast(values, n, type, root, ctx->comm), "MPI_Bcast");
done:
    return err;
}

trl_err trli_alltoall(trl_context *ctx, const int *sent, int *received)
{
    trl_err err;
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    err = trli_mpi_check(ctx, MPI_Alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, ctx->comm), "MPI_Alltoall");
done:
    return err;
}

trl_err trli_alltoallv(trl_context *ctx, const void *sent, const int *nsent, const int *sent_begin, void *received,
                       const int *nreceived, const int *received_begin, MPI_Datatype type)
{
    trl_err err;
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    err = trli_mpi_check(
        ctx, MPI_Alltoallv(sent, nsent, sent_begin, type, received, nreceived, received_begin, type, ctx->comm),
        "MPI_Alltoallv");
done:
    return err;
}

trl_err trli_comm_create(trl_context *ctx, MPI_Comm *comm)
{
    trl_err err;
    *comm = MPI_COMM_NULL;
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_dup(ctx->comm, comm), "MPI_Comm_dup"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
done:
    return err;
}

/* Not while messages may still arrive: a lost rank keeps its communicators until the program ends. */
void trli_comm_free(trl_context *ctx, MPI_Comm *comm)
{
    if (*comm == MPI_COMM_NULL || trl_context_lost(ctx)) return;
    (void)!trli_mpi_check(ctx, MPI_Comm_free(comm), "MPI_Comm_free");
}

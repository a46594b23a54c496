/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How a failure of one rank reaches the others. Every collective call of Trellis is made here, or between two
 * agreements, and an agreement precedes each call. A rank that failed goes to the next agreement on its way back and
 * meets the other ranks there, wherever their next agreement is: all agreements send the same message, so that any
 * two match. From then on, until the end of the innermost phase that all ranks are in, agreements return the error
 * without a message: ranks unwind at their own pace and meet again at the end of that phase. Two failures are left:
 * messages themselves fail, or a failure keeps a rank from work that the others wait for. Then the rank is lost, and
 * the creator of the context ends all ranks. */
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "clock_impl.h"
#include "context_impl.h"

enum { FAILED_WAIT_S = 10 /* that a rank which failed waits for the others */ };

/* The numbers of an agreement. */
enum {
    KEY,                             /* error codes of the ranks */
    SHALLOWEST,                      /* minus the phases that the rank is in */
    CARRIED,                         /* of trli_agree_carry, one of each kind */
    CALLERS = CARRIED + TRLI_CARRIED /* those of trli_agree_max */
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

static const struct timespec nap = {.tv_nsec = 50000};

void trli_agree_rest(const trl_context *ctx, int looks)
{
    enum { SPINS = 2000, YIELDS = 100 };
    const bool yields = trli_context_yields(ctx);
    if (yields && looks > YIELDS)
        nanosleep(&nap, NULL);
    else if (yields || looks > SPINS)
        sched_yield();
}

static void add(const void *how, int64_t *value, const int64_t *part)
{
    (void)how;
    for (int i = 0; i < TRLI_AGREED; ++i)
        if (part[i] > value[i]) value[i] = part[i];
}

trl_err trli_agree_on_node(trl_context *ctx)
{
    trli_agreement *a = &ctx->agreement;
    trl_err err;
    TRL_TRY(trli_node_board_create(ctx, TRLI_MERGING_SLOTS, (const size_t[]){TRLI_AGREED, TRLI_AGREED}, &a->node));
    a->all.board = a->node;
done:
    return err;
}

static trl_err begin(trl_context *ctx, trl_err local, int n, const int64_t *values)
{
    trli_agreement *a = &ctx->agreement;
    a->local = local;
    a->value[KEY] = key_of(local, ctx->rank);
    a->value[SHALLOWEST] = -a->depth;
    for (int i = 0; i < TRLI_CARRIED; ++i)
        a->value[CARRIED + i] = a->carried[i].number ? a->carried[i].number(a->carried[i].data) : 0;
    for (int i = 0; i < TRLI_AGREED - CALLERS; ++i) a->value[CALLERS + i] = i < n ? values[i] : INT64_MIN;
    a->all.comm = a->comm;
    a->all.n = TRLI_AGREED;
    a->all.value = a->value;
    a->all.received = a->received;
    a->all.merge = add;
    return trli_merging_begin(ctx, &a->all);
}

trl_err trli_agree_call_mpi(trl_context *ctx)
{
    int come;
    return trli_mpi_check(ctx, MPI_Iprobe(MPI_ANY_SOURCE, 0, ctx->agreement.comm, &come, MPI_STATUS_IGNORE),
                          "MPI_Iprobe");
}

/* Between two looks in vain: work of other ranks, or a rest. */
static void wait(trl_context *ctx, int looks, int64_t *since)
{
    if (trli_aid_may_be_wanted(ctx)) {
        const int64_t now = trli_now_ns();
        if (*since == 0) *since = now;
        if (trli_aid_give(ctx, &(trli_idler){.ns = now - *since})) return;
    }
    trli_agree_rest(ctx, looks);
}

/* Wait for its end. A rank that failed does not wait for ever: the others may be waiting for a message that it will
 * never send. */
static trl_err complete(trl_context *ctx)
{
    trli_agreement *a = &ctx->agreement;
    const double deadline = a->local == TRL_OK ? 0 : trli_clock() + FAILED_WAIT_S;
    int64_t since = 0;
    trl_err err = TRL_OK;
    for (int looks = 0; a->all.under_way; looks += looks < INT_MAX) {
        TRL_TRY(trli_merging_look(ctx, &a->all));
        if (!a->all.under_way) break;
        if (a->all.stage != TRLI_MERGING_ROUNDS) TRL_TRY(trli_agree_call_mpi(ctx));
        if (a->local == TRL_OK) {
            wait(ctx, looks, &since);
            continue;
        }
        if (trli_clock() > deadline || trli_notice_answered(ctx)) {
            trl_warn(ctx, NULL, "rank %d failed where the other ranks wait for it: all are ended", ctx->rank);
            TRL_TRY(trli_context_lose(ctx, a->local));
        }
        nanosleep(&nap, NULL);
    }
done:
    return err;
}

/* What follows from the numbers of all ranks: they all return the same error, and the messages of one of them. */
static trl_err conclude(trl_context *ctx)
{
    trli_agreement *a = &ctx->agreement;
    trl_err err = (trl_err)(a->value[KEY] >> 32);
    for (int i = 0; i < TRLI_CARRIED; ++i) a->carried[i].most = a->value[CARRIED + i];
    if (err == TRL_OK) return TRL_OK;
    trli_notice_forget(ctx);
    a->failed_depth = (int)-a->value[SHALLOWEST];
    if (a->failed_depth > 0) a->failed = err;
    trl_err shared = trli_diagnostics_share(ctx, INT32_MAX - (int)(a->value[KEY] & INT32_MAX));
    return shared != TRL_OK ? shared : err;
}

/* ---- agreements that are late ---- */

trl_err trli_agree_later(trl_context *ctx, trl_err local, int n, const int64_t *values)
{
    trli_agreement *a = &ctx->agreement;
    const trl_diagnostic *list;
    trl_err err;
    if (a->failed != TRL_OK) return a->failed;
    if (trl_context_lost(ctx)) return local != TRL_OK ? local : TRL_ERR_MPI;
    if (local != TRL_OK) trli_diagnostics_unique(&ctx->diagnostics);
    a->said = trl_context_diagnostics(ctx, &list);
    ++a->later;
    TRL_TRY(begin(ctx, local, n, values));
    atomic_store_explicit(&a->late, TRLI_LATE_BEGUN, memory_order_relaxed); /* no worker is inside of a run */
done:
    return err;
}

bool trli_agree_goes_on(const trl_context *ctx)
{
    return atomic_load_explicit(&ctx->agreement.late, memory_order_relaxed) == TRLI_LATE_BEGUN;
}

/* The lock guards all that a look changes. */
void trli_agree_go_on(trl_context *ctx)
{
    trli_agreement *a = &ctx->agreement;
    const bool late = trli_agree_goes_on(ctx);
    if ((!late && !ctx->left) || trl_context_lost(ctx) || !trli_polls_enter(ctx)) return;
    trl_err err = trli_mergings_go_on(ctx);
    if (late && err == TRL_OK) err = trli_merging_look(ctx, &a->all);
    if (late && err == TRL_OK && !a->all.under_way)
        atomic_store_explicit(&a->late, TRLI_LATE_KNOWN, memory_order_relaxed);
    trli_polls_leave(ctx);
}

/* Complete a late agreement; its result is kept for trli_agree_at_last. What was said since it began follows from
 * the failure. */
static trl_err end_late(trl_context *ctx)
{
    trli_agreement *a = &ctx->agreement;
    const trli_late late = atomic_load_explicit(&a->late, memory_order_relaxed);
    if (late != TRLI_LATE_BEGUN && late != TRLI_LATE_KNOWN) return TRL_OK;
    a->late_err = trl_context_lost(ctx) ? TRL_ERR_MPI : complete(ctx);
    if (a->late_err == TRL_OK) {
        if (a->value[KEY] >> 32 != TRL_OK) trli_diagnostics_drop(ctx, a->said);
        a->late_err = conclude(ctx);
    }
    memcpy(a->late_value, a->value + CALLERS, sizeof a->late_value);
    atomic_store_explicit(&a->late, TRLI_LATE_ENDED, memory_order_relaxed);
    return a->late_err;
}

trl_err trli_agree_at_last(trl_context *ctx, int n, int64_t *values)
{
    trli_agreement *a = &ctx->agreement;
    (void)!end_late(ctx);
    atomic_store_explicit(&a->late, TRLI_LATE_NONE, memory_order_relaxed);
    for (int i = 0; i < n; ++i) values[i] = a->late_value[i];
    return a->late_err;
}

void trli_agree_carry(trl_context *ctx, trli_carried what, int64_t (*number)(const void *data), const void *data)
{
    ctx->agreement.carried[what].number = number;
    ctx->agreement.carried[what].data = data;
    ctx->agreement.carried[what].most = 0;
}

int64_t trli_agree_carried(const trl_context *ctx, trli_carried what)
{
    const trli_agreement *a = &ctx->agreement;
    const bool at_once = ctx->ranks == 1 && a->carried[what].number;
    return at_once ? a->carried[what].number(a->carried[what].data) : a->carried[what].most;
}

/* ---- agreements at once ---- */

trl_err trli_context_stopped(trl_context *ctx)
{
    const char *by = ctx->options.stop ? ctx->options.stop() : NULL;
    return by ? trl_fail(ctx, TRL_ERR_INTERRUPTED, NULL, "stopped by %s before the first step", by) : TRL_OK;
}

trl_err trli_agree_max(trl_context *ctx, trl_err local, int n, int64_t *values)
{
    trli_agreement *a = &ctx->agreement;
    trl_err err = local;
    if (a->failed != TRL_OK) return a->failed;
    if (trl_context_lost(ctx)) return local != TRL_OK ? local : TRL_ERR_MPI;
    TRL_TRY(end_late(ctx));
    if (local == TRL_OK) local = trli_context_stopped(ctx);
    if (local != TRL_OK) trli_diagnostics_unique(&ctx->diagnostics);
    if (ctx->ranks == 1) return local;
    ++a->at_once;
    TRL_TRY(begin(ctx, local, n, values));
    TRL_TRY(complete(ctx));
    for (int i = 0; i < n; ++i) values[i] = a->value[CALLERS + i];
    err = conclude(ctx);
done:
    return err;
}

bool trli_agree_failed(const trl_context *ctx)
{
    return ctx->agreement.failed != TRL_OK;
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
    return trli_allreduce_after(ctx, TRL_OK, values, n, type, op);
}

trl_err trli_allreduce_after(trl_context *ctx, trl_err local, void *values, int n, MPI_Datatype type, MPI_Op op)
{
    trl_err err;
    TRL_TRY(trl_context_agree(ctx, local));
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
    err = trli_alltoallv_further(ctx, sent, nsent, sent_begin, received, nreceived, received_begin, type);
done:
    return err;
}

static void count_sent(trl_context *ctx, int to, int n, MPI_Datatype type)
{
    int size = 0;
    if (n == 0 || to == ctx->rank || MPI_Type_size(type, &size) != MPI_SUCCESS) return;
    ++ctx->sent.messages;
    ctx->sent.bytes += (int64_t)n * size;
}

trl_err trli_send_begin(trl_context *ctx, const void *values, int n, MPI_Datatype type, int to, int tag,
                        MPI_Request *request)
{
    count_sent(ctx, to, n, type);
    return trli_mpi_check(ctx, MPI_Isend(values, n, type, to, tag, ctx->comm, request), "MPI_Isend");
}

trl_err trli_alltoallv_further(trl_context *ctx, const void *sent, const int *nsent, const int *sent_begin,
                               void *received, const int *nreceived, const int *received_begin, MPI_Datatype type)
{
    for (int r = 0; r < ctx->ranks; ++r) count_sent(ctx, r, nsent[r], type);
    return trli_mpi_check(
        ctx, MPI_Alltoallv(sent, nsent, sent_begin, type, received, nreceived, received_begin, type, ctx->comm),
        "MPI_Alltoallv");
}

trl_err trli_alltoallv_begin(trl_context *ctx, const void *sent, const int *nsent, const int *sent_begin,
                             void *received, const int *nreceived, const int *received_begin, MPI_Datatype type,
                             MPI_Request *request)
{
    for (int r = 0; r < ctx->ranks; ++r) count_sent(ctx, r, nsent[r], type);
    return trli_mpi_check(
        ctx,
        MPI_Ialltoallv(sent, nsent, sent_begin, type, received, nreceived, received_begin, type, ctx->comm, request),
        "MPI_Ialltoallv");
}

trl_err trli_request_await(trl_context *ctx, MPI_Request *request, double seconds)
{
    const double deadline = trli_clock() + seconds;
    int complete = *request == MPI_REQUEST_NULL;
    trl_err err = TRL_OK;
    for (int looks = 0; !complete && (seconds == 0 || trli_clock() < deadline); looks += looks < INT_MAX) {
        if (trl_context_lost(ctx)) return TRL_ERR_MPI;
        TRL_TRY(trli_mpi_check(ctx, MPI_Test(request, &complete, MPI_STATUS_IGNORE), "MPI_Test"));
        if (complete) break;
        trli_agree_go_on(ctx);
        trli_notice_look(ctx, false);
        trli_agree_rest(ctx, looks);
    }
done:
    return err;
}

trl_err trli_allgatherv_further(trl_context *ctx, void *values, const int *count, const int *begin, MPI_Datatype type)
{
    if (ctx->ranks == 1) return TRL_OK;
    return trli_mpi_check(ctx,
                          MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, count, begin, type, ctx->comm),
                          "MPI_Allgatherv");
}

trl_err trli_max_further(trl_context *ctx, int64_t *values, int n)
{
    return trli_mpi_check(ctx, MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_INT64_T, MPI_MAX, ctx->comm),
                          "MPI_Allreduce");
}

trl_err trli_barrier_further(trl_context *ctx)
{
    return trli_mpi_check(ctx, MPI_Barrier(ctx->comm), "MPI_Barrier");
}

trl_err trli_part_allreduce_further(trl_context *ctx, MPI_Comm part, void *values, int n, MPI_Datatype type, MPI_Op op)
{
    return trli_mpi_check(ctx, MPI_Allreduce(MPI_IN_PLACE, values, n, type, op, part), "MPI_Allreduce");
}

trl_err trli_comm_split(trl_context *ctx, int colour, int key, MPI_Comm *comm)
{
    trl_err err;
    *comm = MPI_COMM_NULL;
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_split(ctx->comm, colour, key, comm), "MPI_Comm_split"));
    if (*comm != MPI_COMM_NULL)
        err = trli_mpi_check(ctx, MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
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

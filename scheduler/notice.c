/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A rank that could not make a run goes to the next agreement; others are in that run, wait for its messages, and would
 * never come. So it posts a notice, which reaches the polls of all others from rank to rank. Whoever has heard of a
 * failure, and then sees no message arrive for a while, answers: then the failed rank knows that it is waited for in
 * vain, and is lost at once, with its own message. Whoever gets no end for its answer is lost, too. */
#include "clock_impl.h"
#include "context_impl.h"

enum { NOTICE = 1000, ANSWER }; /* behind the rounds of agreements */

static const double patience = 0.5;  /* s without a message, after which a rank answers */
static const double last_wait = 2.0; /* s after its answer, until it is lost */
static const double interval = 1e-3; /* s between looks */

static bool has_come(trl_context *ctx, int from, int tag, int64_t *number, int *who)
{
    MPI_Status status;
    int come = 0;
    if (MPI_Iprobe(from, tag, ctx->agreement.comm, &come, &status) != MPI_SUCCESS || !come) return false;
    *who = status.MPI_SOURCE;
    return MPI_Recv(number, 1, MPI_INT64_T, *who, tag, ctx->agreement.comm, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* A message of a number that nobody looks after: it is as short as can be, and what fails here is told elsewhere. */
static void send(trl_context *ctx, int to, int tag, const int64_t *number)
{
    MPI_Request request;
    if (MPI_Isend(number, 1, MPI_INT64_T, to, tag, ctx->agreement.comm, &request) == MPI_SUCCESS)
        (void)MPI_Request_free(&request);
}

/* To the ranks at distances 1, 2, 4, ..: they pass it on. */
static void spread(trl_context *ctx)
{
    for (int distance = 1; distance < ctx->ranks; distance *= 2)
        send(ctx, (ctx->rank + distance) % ctx->ranks, NOTICE, &ctx->notice.number);
}

/* A notice is of the failure after so many, and of a rank. */
static int64_t number_of(int64_t failures, int rank)
{
    return failures << 32 | rank;
}

void trli_notice_post(trl_context *ctx)
{
    trli_notice *n = &ctx->notice;
    if (ctx->ranks == 1 || n->known == n->failures + 1) return;
    n->known = n->failures + 1;
    n->number = number_of(n->known, ctx->rank);
    spread(ctx);
}

bool trli_notice_answered(trl_context *ctx)
{
    const trli_notice *n = &ctx->notice;
    int64_t number;
    int who;
    while (has_come(ctx, MPI_ANY_SOURCE, ANSWER, &number, &who))
        if (number == n->number && n->number == number_of(n->failures + 1, ctx->rank)) return true;
    return false;
}

/* Old notices are of failures that all ranks know of. */
static void hear(trl_context *ctx, double now)
{
    trli_notice *n = &ctx->notice;
    int64_t number;
    int who;
    while (has_come(ctx, MPI_ANY_SOURCE, NOTICE, &number, &who)) {
        if (number >> 32 != n->failures + 1 || n->known == n->failures + 1) continue;
        n->known = n->failures + 1;
        n->number = number;
        n->moved = now;
        n->answered = false;
        spread(ctx);
    }
}

/* Returns whether the rank is to be lost. */
static bool look(trl_context *ctx, double now)
{
    trli_notice *n = &ctx->notice;
    hear(ctx, now);
    if (n->known != n->failures + 1 || now < n->moved + patience) return false;
    if (!n->answered) send(ctx, (int)(n->number & INT32_MAX), ANSWER, &n->number);
    n->answered = true;
    return now > n->moved + patience + last_wait;
}

void trli_notice_look(trl_context *ctx, bool moved)
{
    trli_notice *n = &ctx->notice;
    if (ctx->ranks == 1) return;
    const double now = trli_clock();
    if (moved) n->moved = now;
    if (now < n->looked + interval || trl_context_lost(ctx) || !trli_polls_enter(ctx)) return;
    n->looked = now;
    const bool vain = look(ctx, now);
    trli_polls_leave(ctx);
    if (vain)
        (void)trli_context_lose(ctx, trl_fail(ctx, TRL_ERR_MPI, NULL,
                                              "rank %d failed, and rank %d waits in vain for what it would have sent",
                                              (int)(n->number & INT32_MAX), ctx->rank));
}

void trli_notice_forget(trl_context *ctx)
{
    ++ctx->notice.failures;
}

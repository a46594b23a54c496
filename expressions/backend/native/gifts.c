/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Each item is one message from its maker to each other rank of the node, whether it is made, fails, or its maker
 * ends before: so whoever waits for all messages waits for no rank that has nothing to say. A rank may end what it
 * shares while others still compute. It says so and goes on; what was sent and received meanwhile is settled when
 * contexts end, where all ranks come. */
#include <sched.h>
#include <string.h>

#include "context_impl.h"
#include "gifts_impl.h"
#include "memory_impl.h"

enum { ANNOUNCEMENT, FIRST_ITEM /* tags */, ITEMS_MOST = 32767 - FIRST_ITEM /* the least that MPI's tags may have */ };

struct trli_gifts {
    trli_leftover leftover; /* first */
    trl_context *ctx;
    trli_node_ranks node;
    int place, n;
    bool *settled;           /* [n] given, or taken */
    unsigned char **content; /* [n] of what is being sent or received */
    size_t *bytes;           /* [n] of it, received */
    MPI_Request *request;    /* [n][size] to each rank; of items of others the first */
};

static int maker_of(const trli_gifts *s, int item)
{
    return item % s->node.size;
}

bool trli_gifts_is_mine(const trli_gifts *s, int item)
{
    return maker_of(s, item) == s->place;
}

static MPI_Request *request_of(const trli_gifts *s, int item)
{
    return s->request + (size_t)item * (size_t)s->node.size;
}

static void free_share(trli_gifts *s)
{
    for (int i = 0; s->content && i < s->n; ++i) trli_free(s->content[i]);
    trli_comm_free(s->ctx, &s->node.comm);
    trli_free(s->node.rank);
    trli_free(s->settled);
    trli_free(s->content);
    trli_free(s->bytes);
    trli_free(s->request);
    trli_free(s);
}

static trl_err make_room(trli_gifts *s)
{
    const size_t size = (size_t)s->node.size, n = (size_t)s->n;
    s->settled = trli_new(s->ctx, n, sizeof *s->settled);
    s->content = trli_new(s->ctx, n, sizeof *s->content);
    s->bytes = trli_new(s->ctx, n, sizeof *s->bytes);
    s->request = trli_new(s->ctx, n * size, sizeof *s->request);
    if (!s->settled || !s->content || !s->bytes || !s->request)
        return trli_no_memory(s->ctx, NULL, "for %d kernels of a node", s->n);
    for (size_t i = 0; i < n * size; ++i) s->request[i] = MPI_REQUEST_NULL;
    while (s->node.rank[s->place] != s->ctx->rank) ++s->place;
    return TRL_OK;
}

/* Whether all ranks have the same items, and there are nodes with several ranks. */
static trl_err compare(trl_context *ctx, int n, const uint64_t digest[2], bool *same)
{
    const int64_t mixed = (int64_t)((digest[0] ^ digest[1] ^ (uint64_t)n) >> 1);
    int64_t most[3] = {mixed, -mixed, ctx->topology.node_ranks};
    trl_err err;
    *same = false;
    TRL_TRY(trli_agree_max(ctx, TRL_OK, 3, most));
    *same = ctx->ranks > 1 && most[0] == -most[1] && most[2] > 1 && n > 0 && n <= ITEMS_MOST;
done:
    return err;
}

trl_err trli_gifts_create(trl_context *ctx, int n, const uint64_t digest[2], trli_gifts **share)
{
    trli_gifts *s = NULL;
    bool same;
    trl_err err;
    *share = NULL;
    TRL_TRY(compare(ctx, n, digest, &same));
    if (!same) return TRL_OK;
    trl_context_begin_phase(ctx);
    s = trli_new(ctx, 1, sizeof *s);
    if (s) {
        *s = (trli_gifts){.ctx = ctx, .node = {.comm = MPI_COMM_NULL}, .n = n};
        err = trli_topology_node(ctx, &s->node);
        if (err == TRL_OK) err = make_room(s);
    } else {
        err = trli_no_memory(ctx, NULL, "for what the ranks of a node share");
    }
    err = trl_context_end_phase(ctx, err);
    if (err != TRL_OK && s) free_share(s);
    if (err == TRL_OK) *share = s;
done:
    return err;
}

/* ---- messages ---- */

/* Free what has arrived; returns whether all has. */
static bool end_sends(trli_gifts *s)
{
    bool all_done = true;
    for (int i = 0; i < s->n; ++i) {
        int done = 0;
        if (!trli_gifts_is_mine(s, i) || !s->settled[i]) continue;
        if (trli_mpi_check(s->ctx, MPI_Testall(s->node.size, request_of(s, i), &done, MPI_STATUSES_IGNORE),
                           "MPI_Testall") != TRL_OK)
            return false;
        all_done = all_done && done;
        if (!done || !s->content[i]) continue;
        trli_free(s->content[i]);
        s->content[i] = NULL;
    }
    return all_done;
}

void trli_gifts_give(trli_gifts *s, int item, trli_gift_kind kind, const void *content, size_t bytes)
{
    static const unsigned char failed = TRLI_GIFT_FAILED; /* without a reason: there is no memory for one */
    const unsigned char *message = &failed;
    if (trl_context_lost(s->ctx)) return;
    (void)end_sends(s);
    s->content[item] = bytes < INT32_MAX ? trli_new(s->ctx, bytes + 1, 1) : NULL;
    if (s->content[item]) {
        s->content[item][0] = (unsigned char)kind;
        if (bytes > 0) memcpy(s->content[item] + 1, content, bytes);
        message = s->content[item];
    }
    s->settled[item] = true;
    for (int r = 0; r < s->node.size; ++r)
        if (r != s->place && trli_mpi_check(s->ctx,
                                            MPI_Isend(message, s->content[item] ? (int)bytes + 1 : 1, MPI_BYTE, r,
                                                      FIRST_ITEM + item, s->node.comm, request_of(s, item) + r),
                                            "MPI_Isend") != TRL_OK)
            return;
}

/* Whether the message about an item is there, and its length. */
static bool has_come(const trli_gifts *s, int item, int *bytes)
{
    MPI_Status status;
    int come = 0;
    trl_err err;
    TRL_TRY(trli_mpi_check(s->ctx, MPI_Iprobe(maker_of(s, item), FIRST_ITEM + item, s->node.comm, &come, &status),
                           "MPI_Iprobe"));
    if (come) TRL_TRY(trli_mpi_check(s->ctx, MPI_Get_count(&status, MPI_BYTE, bytes), "MPI_Get_count"));
done:
    return err == TRL_OK && come;
}

/* Begin to receive an item. Nothing waits for the rest of a long message: its sender may wait for this rank, and then
 * sends no more. */
static bool begin_receive(trli_gifts *s, int item, int bytes)
{
    unsigned char *content = trli_new(s->ctx, (size_t)bytes, 1);
    if (!content) return false;
    s->content[item] = content;
    s->bytes[item] = (size_t)bytes;
    return trli_mpi_check(s->ctx,
                          MPI_Irecv(content, bytes, MPI_BYTE, maker_of(s, item), FIRST_ITEM + item, s->node.comm,
                                    request_of(s, item)),
                          "MPI_Irecv") == TRL_OK;
}

static bool end_receive(trli_gifts *s, int item)
{
    int done = 0;
    return trli_mpi_check(s->ctx, MPI_Test(request_of(s, item), &done, MPI_STATUS_IGNORE), "MPI_Test") == TRL_OK &&
           done;
}

bool trli_gifts_take(trli_gifts *s, int item, trli_gift *gift)
{
    int bytes;
    *gift = (trli_gift){.kind = TRLI_GIFT_FAILED};
    if (trl_context_lost(s->ctx)) return true;
    if (!s->content[item]) {
        if (!has_come(s, item, &bytes)) return trl_context_lost(s->ctx);
        if (!begin_receive(s, item, bytes)) return true; /* without memory, when the context ends */
    }
    if (!end_receive(s, item)) return trl_context_lost(s->ctx);
    unsigned char *content = s->content[item];
    s->content[item] = NULL;
    s->settled[item] = true;
    gift->kind = (trli_gift_kind)content[0];
    gift->bytes = s->bytes[item] - 1;
    gift->content = content;
    memmove(content, content + 1, gift->bytes);
    return true;
}

/* ---- announcements ---- */

trl_err trli_gifts_announce(trli_gifts *s, bool *given)
{
    const size_t n = (size_t)s->n;
    MPI_Request request = MPI_REQUEST_NULL;
    bool *told = trli_new(s->ctx, 2 * n, sizeof *told), *heard = told ? told + n : NULL;
    trl_err err = told ? TRL_OK : trli_no_memory(s->ctx, NULL, "for %d kernels of a node", s->n);
    memset(given, 0, n * sizeof *given);
    TRL_TRY(trl_context_agree(s->ctx, err));
    for (int i = 0; i < s->n; ++i) told[i] = given[i] = trli_gifts_is_mine(s, i) && s->settled[i];
    for (int d = 1; d < s->node.size; ++d) {
        const int to = (s->place + d) % s->node.size, from = (s->place - d + s->node.size) % s->node.size;
        TRL_TRY(trli_mpi_check(s->ctx, MPI_Isend(told, s->n, MPI_C_BOOL, to, ANNOUNCEMENT, s->node.comm, &request),
                               "MPI_Isend"));
        TRL_TRY(trli_mpi_check(s->ctx,
                               MPI_Recv(heard, s->n, MPI_C_BOOL, from, ANNOUNCEMENT, s->node.comm, MPI_STATUS_IGNORE),
                               "MPI_Recv"));
        TRL_TRY(trli_mpi_check(s->ctx, MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait"));
        for (int i = 0; i < s->n; ++i) given[i] |= heard[i];
    }
done:
    if (request == MPI_REQUEST_NULL) trli_free(told);
    return err;
}

/* ---- the end ---- */

/* Receive what nobody waits for any more. */
static bool drop(trli_gifts *s, int item)
{
    trli_gift gift;
    const bool done = trli_gifts_take(s, item, &gift) && s->settled[item];
    trli_free(gift.content);
    return done;
}

static bool end(trli_leftover *leftover)
{
    trli_gifts *s = (trli_gifts *)leftover;
    bool done = end_sends(s);
    for (int i = 0; i < s->n; ++i)
        if (!s->settled[i] && !drop(s, i)) done = false;
    if (done) free_share(s);
    return done;
}

void trli_gifts_destroy(trli_gifts **share)
{
    trli_gifts *s = *share;
    *share = NULL;
    if (!s) return;
    for (int i = 0; i < s->n; ++i)
        if (trli_gifts_is_mine(s, i) && !s->settled[i]) trli_gifts_give(s, i, TRLI_GIFT_ENDED, NULL, 0);
    s->leftover.end = end;
    trli_context_leave(s->ctx, &s->leftover);
}

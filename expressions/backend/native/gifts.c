/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Each item is one message on each edge of its tree, whether it is made, fails, or its maker or a rank on its way ends
 * before: so whoever waits for all messages waits for no rank that has nothing to say. A rank may end what it shares
 * while others still compute. It says so and goes on; what was sent and received meanwhile is settled when contexts
 * end, where all ranks come. */
#include <limits.h>
#include <string.h>

#include "context_impl.h"
#include "gifts_impl.h"
#include "memory_impl.h"

enum { FIRST_ITEM, ITEMS_MOST = 32767 - FIRST_ITEM /* the least that MPI's tags may have */ };

struct trli_gifts {
    trli_leftover leftover; /* first */
    trl_context *ctx;
    MPI_Comm comm; /* of the ranks that share: node by node, the makers first */
    int place, size, makers;
    int n, edges;            /* items; messages that a rank has at most of one */
    bool *settled;           /* [n] given, or taken */
    bool *told;              /* [n] it was sent on, or will not be */
    unsigned char **content; /* [n] of what is being sent or received, its kind first */
    size_t *bytes;           /* [n] of it */
    MPI_Request *request;    /* [n][edges] to each rank, and the last one while the item is received */
};

static int maker_of(const trli_gifts *s, int item)
{
    return item % s->makers;
}

bool trli_gifts_is_mine(const trli_gifts *s, int item)
{
    return maker_of(s, item) == s->place;
}

static MPI_Request *request_of(const trli_gifts *s, int item)
{
    return s->request + (size_t)item * (size_t)s->edges;
}

static MPI_Request *receive_of(const trli_gifts *s, int item)
{
    return request_of(s, item) + s->edges - 1;
}

/* An item's tree is binomial over the places from its maker's on: a place gets the item from the one that lacks its
 * lowest bit, and sends it on to those that have a lower bit in addition. Ranks of a node are neighbours, so that few
 * of its edges lead to other nodes. */
static int place_in_tree(const trli_gifts *s, int item)
{
    return (s->place - maker_of(s, item) + s->size) % s->size;
}

static int rank_in_tree(const trli_gifts *s, int item, int place)
{
    return (place + maker_of(s, item)) % s->size;
}

static int giver_of(const trli_gifts *s, int item)
{
    const int place = place_in_tree(s, item);
    return rank_in_tree(s, item, place & (place - 1));
}

/* To which ranks this one sends an item; returns how many. */
static int takers_of(const trli_gifts *s, int item, int taker[])
{
    const int place = place_in_tree(s, item), end = place ? place & -place : s->size;
    int n = 0;
    for (int bit = 1; bit < end && place + bit < s->size; bit *= 2) taker[n++] = rank_in_tree(s, item, place + bit);
    return n;
}

static void free_share(trli_gifts *s)
{
    for (int i = 0; s->content && i < s->n; ++i) trli_free(s->content[i]);
    trli_comm_free(s->ctx, &s->comm);
    trli_free(s->settled);
    trli_free(s->told);
    trli_free(s->content);
    trli_free(s->bytes);
    trli_free(s->request);
    trli_free(s);
}

static trl_err make_room(trli_gifts *s)
{
    const size_t n = (size_t)s->n;
    for (s->edges = 1; 1 << (s->edges - 1) < s->size;) ++s->edges;
    s->settled = trli_new(s->ctx, n, sizeof *s->settled);
    s->told = trli_new(s->ctx, n, sizeof *s->told);
    s->content = trli_new(s->ctx, n, sizeof *s->content);
    s->bytes = trli_new(s->ctx, n, sizeof *s->bytes);
    s->request = trli_new(s->ctx, n * (size_t)s->edges, sizeof *s->request);
    if (!s->settled || !s->told || !s->content || !s->bytes || !s->request)
        return trli_no_memory(s->ctx, NULL, "for %d kernels that ranks share", s->n);
    for (size_t i = 0; i < n * (size_t)s->edges; ++i) s->request[i] = MPI_REQUEST_NULL;
    return TRL_OK;
}

/* Find who shares with this rank, and who of them makes items. *same: all have the same ones. Ranks of other digests
 * meet where their colours are equal by chance, and share nothing. Collective. */
static trl_err meet(trli_gifts *s, const uint64_t digest[2], bool *same)
{
    trl_context *ctx = s->ctx;
    const int64_t mixed = (int64_t)((digest[0] ^ digest[1]) >> 1);
    const int first = ctx->topology.node_first, colour = (int)((mixed ^ mixed >> 31) & INT_MAX);
    int64_t most[5] = {mixed, -mixed, s->n, -s->n, -first};
    trl_err err;
    *same = false;
    TRL_TRY(trli_comm_split(ctx, s->n > 0 && s->n <= ITEMS_MOST ? colour : MPI_UNDEFINED, first, &s->comm));
    if (s->comm == MPI_COMM_NULL) goto done;
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_size(s->comm, &s->size), "MPI_Comm_size"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_rank(s->comm, &s->place), "MPI_Comm_rank"));
    TRL_TRY(trli_part_allreduce_further(ctx, s->comm, most, 5, MPI_INT64_T, MPI_MAX));
    s->makers = first == -most[4];
    TRL_TRY(trli_part_allreduce_further(ctx, s->comm, &s->makers, 1, MPI_INT, MPI_SUM));
    *same = s->size > 1 && most[0] == -most[1] && most[2] == -most[3];
done:
    return err;
}

trl_err trli_gifts_create(trl_context *ctx, int n, const uint64_t digest[2], trli_gifts **share)
{
    trli_gifts *s = NULL;
    int64_t most = n;
    bool same = false;
    trl_err err;
    *share = NULL;
    if (trl_context_ranks(ctx) == 1) return TRL_OK;
    trl_context_begin_phase(ctx);
    s = trli_new(ctx, 1, sizeof *s);
    if (s) *s = (trli_gifts){.ctx = ctx, .comm = MPI_COMM_NULL, .n = n};
    err = s ? TRL_OK : trli_no_memory(ctx, NULL, "for what ranks share");
    TRL_TRY(trli_agree_max(ctx, err, 1, &most));
    if (most > 0) TRL_TRY(meet(s, digest, &same));
    if (same) err = make_room(s);
done:
    err = trl_context_end_phase(ctx, err);
    if (s && (err != TRL_OK || !same)) {
        free_share(s);
        s = NULL;
    }
    *share = s;
    return err;
}

/* ---- messages ---- */

/* Free what has arrived; returns whether all has. */
static bool end_sends(trli_gifts *s)
{
    bool all_done = true;
    for (int i = 0; i < s->n; ++i) {
        int done = 0;
        if (!s->settled[i]) continue;
        if (trli_mpi_check(s->ctx, MPI_Testall(s->edges, request_of(s, i), &done, MPI_STATUSES_IGNORE),
                           "MPI_Testall") != TRL_OK)
            return false;
        all_done = all_done && done;
        if (!done || !s->content[i]) continue;
        trli_free(s->content[i]);
        s->content[i] = NULL;
    }
    return all_done;
}

/* Send a message about an item to those who get it from this rank, once. It stays where it is until it has arrived. */
static void tell(trli_gifts *s, int item, const unsigned char *message, size_t bytes)
{
    int taker[32];
    const int n = s->told[item] ? 0 : takers_of(s, item, taker);
    s->told[item] = true;
    for (int i = 0; i < n; ++i)
        if (trli_mpi_check(
                s->ctx,
                MPI_Isend(message, (int)bytes, MPI_BYTE, taker[i], FIRST_ITEM + item, s->comm, request_of(s, item) + i),
                "MPI_Isend") != TRL_OK)
            return;
}

static const unsigned char failed = TRLI_GIFT_FAILED; /* without a reason: there is no memory for one */
static const unsigned char ended = TRLI_GIFT_ENDED;

void trli_gifts_give(trli_gifts *s, int item, trli_gift_kind kind, const void *content, size_t bytes)
{
    if (trl_context_lost(s->ctx)) return;
    (void)end_sends(s);
    s->content[item] = bytes < INT32_MAX ? trli_new(s->ctx, bytes + 1, 1) : NULL;
    if (s->content[item]) {
        s->content[item][0] = (unsigned char)kind;
        if (bytes > 0) memcpy(s->content[item] + 1, content, bytes);
    }
    s->settled[item] = true;
    tell(s, item, s->content[item] ? s->content[item] : &failed, s->content[item] ? bytes + 1 : 1);
}

/* Whether the message about an item is there, and its length. */
static bool has_come(const trli_gifts *s, int item, int *bytes)
{
    MPI_Status status;
    int come = 0;
    trl_err err;
    TRL_TRY(trli_mpi_check(s->ctx, MPI_Iprobe(giver_of(s, item), FIRST_ITEM + item, s->comm, &come, &status),
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
    return trli_mpi_check(
               s->ctx,
               MPI_Irecv(content, bytes, MPI_BYTE, giver_of(s, item), FIRST_ITEM + item, s->comm, receive_of(s, item)),
               "MPI_Irecv") == TRL_OK;
}

static bool end_receive(trli_gifts *s, int item)
{
    int done = 0;
    return trli_mpi_check(s->ctx, MPI_Test(receive_of(s, item), &done, MPI_STATUS_IGNORE), "MPI_Test") == TRL_OK &&
           done;
}

bool trli_gifts_take(trli_gifts *s, int item, trli_gift *gift)
{
    int bytes;
    *gift = (trli_gift){.kind = TRLI_GIFT_FAILED};
    if (trl_context_lost(s->ctx)) return true;
    if (!s->content[item]) {
        if (!has_come(s, item, &bytes)) return trl_context_lost(s->ctx);
        if (!begin_receive(s, item, bytes)) { /* without memory: when the context ends */
            tell(s, item, &failed, 1);
            return true;
        }
    }
    if (!end_receive(s, item)) return trl_context_lost(s->ctx);
    const unsigned char *content = s->content[item];
    s->settled[item] = true;
    tell(s, item, content, s->bytes[item]);
    bytes = (int)s->bytes[item] - 1;
    gift->content = trli_new(s->ctx, (size_t)bytes + 1, 1);
    if (!gift->content) return true;
    gift->kind = (trli_gift_kind)content[0];
    gift->bytes = (size_t)bytes;
    memcpy(gift->content, content + 1, gift->bytes);
    (void)end_sends(s);
    return true;
}

trl_err trli_gifts_announce(trli_gifts *s, bool *given)
{
    for (int i = 0; i < s->n; ++i) given[i] = trli_gifts_is_mine(s, i) && s->settled[i];
    return trli_part_allreduce_further(s->ctx, s->comm, given, s->n, MPI_C_BOOL, MPI_LOR);
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
    bool done = true;
    for (int i = 0; i < s->n; ++i)
        if (!s->settled[i] && !drop(s, i)) done = false;
    done = end_sends(s) && done;
    if (done) free_share(s);
    return done;
}

void trli_gifts_destroy(trli_gifts **share)
{
    trli_gifts *s = *share;
    *share = NULL;
    if (!s) return;
    for (int i = 0; i < s->n; ++i) {
        s->settled[i] |= trli_gifts_is_mine(s, i);
        if (!trl_context_lost(s->ctx)) tell(s, i, &ended, 1);
    }
    s->leftover.end = end;
    trli_context_leave(s->ctx, &s->leftover);
}

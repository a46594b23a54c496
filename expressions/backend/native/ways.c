/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Each rank of a node sends to the next one, and gets from the one before, what ghosts are: by messages, which are
 * packed and unpacked, and through memory, out of which the receiver copies, and says so. */
#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "machine_record_impl.h"
#include "memory_impl.h"
#include "ways_impl.h"

enum { MESSAGES, SHARED, WAYS };
enum { SMALL, LARGE, SIZES };
enum {
    LINE = 64,
    ROUNDS = 6, /* the first one touches memory */
    DAY = 86400,
    MONTH = 30 * DAY
};
static const size_t size_of[SIZES] = {[SMALL] = 2 << 10, [LARGE] = 128 << 10};
static const trli_record_kind kind = {.suffix = "ways",
                                      .version = "ways 2",
                                      .n = 4,
                                      .least = 0,
                                      .most = 1e6,
                                      .variable = "TRL_EXCHANGE",
                                      .meaning = "four times: seconds of a message and of a byte in it, and of an "
                                                 "exchange through shared memory and of a byte in it"};
static const double clearly = 1.1; /* so much slower is no accident */

/* At the start of each rank's memory. */
typedef struct post {
    alignas(LINE) _Atomic uint32_t there; /* rounds that this rank's values are there for */
    alignas(LINE) _Atomic uint32_t read;  /* and those that the next rank has read */
    alignas(LINE) unsigned char values[];
} post;

typedef struct ring {
    trl_context *ctx;
    trli_node_ranks node;
    int place;
    MPI_Win window;
    post *mine, *before; /* of this rank, and of that which sends to it */
    unsigned char *field, *ghosts, *packed;
    uint32_t round;
} ring;

/* ---- rounds ---- */

static void wait_for(const ring *r, _Atomic uint32_t *count)
{
    for (int looks = 0; (int32_t)(atomic_load_explicit(count, memory_order_acquire) - r->round) < 0; ++looks) {
        if (trl_context_lost(r->ctx)) return;
        trli_agree_rest(r->ctx, looks);
    }
}

static trl_err by_memory(ring *r, size_t bytes)
{
    ++r->round;
    atomic_store_explicit(&r->mine->there, r->round, memory_order_release);
    wait_for(r, &r->before->there);
    memcpy(r->ghosts, r->before->values, bytes);
    atomic_store_explicit(&r->before->read, r->round, memory_order_release);
    wait_for(r, &r->mine->read);
    return TRL_OK;
}

static trl_err by_messages(ring *r, size_t bytes)
{
    const int n = r->node.size, to = (r->place + 1) % n, from = (r->place + n - 1) % n;
    MPI_Request request[2];
    int done = 0;
    trl_err err;
    memcpy(r->packed, r->field, bytes);
    TRL_TRY(trli_mpi_check(
        r->ctx, MPI_Irecv(r->packed + bytes, (int)bytes, MPI_BYTE, from, 0, r->node.comm, &request[0]), "MPI_Irecv"));
    TRL_TRY(trli_mpi_check(r->ctx, MPI_Isend(r->packed, (int)bytes, MPI_BYTE, to, 0, r->node.comm, &request[1]),
                           "MPI_Isend"));
    for (int looks = 0; !done; ++looks) {
        TRL_TRY(trli_mpi_check(r->ctx, MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE), "MPI_Testall"));
        if (!done) trli_agree_rest(r->ctx, looks);
    }
    memcpy(r->ghosts, r->packed + bytes, bytes);
done:
    return err;
}

/* The least time of both ways, which take turns: what else the machine does meets both. */
static trl_err time_size(ring *r, size_t bytes, double least[WAYS])
{
    static trl_err (*const call[WAYS])(ring *, size_t) = {[MESSAGES] = by_messages, [SHARED] = by_memory};
    trl_err err = TRL_OK;
    least[MESSAGES] = least[SHARED] = INFINITY;
    for (int i = 0; i < ROUNDS; ++i)
        for (int way = 0; way < WAYS; ++way) {
            /* Values are new in each round: what the receiver's caches have of the last one is of no use. */
            memset(way == SHARED ? r->mine->values : r->field, i + 1, bytes);
            const double started = trli_clock();
            TRL_TRY(call[way](r, bytes));
            const double took = trli_clock() - started;
            if (i > 0 && took < least[way]) least[way] = took;
        }
done:
    return err;
}

/* ---- memory ---- */

/* Collective. *possible: all nodes give it. */
static trl_err open_ring(ring *r, int64_t *possible)
{
    const size_t most = size_of[LARGE];
    const MPI_Aint bytes = (MPI_Aint)(sizeof(post) + most + LINE);
    void *memory = NULL;
    MPI_Aint size;
    int unit;
    int64_t refused;
    trl_err err;
    TRL_TRY(trli_topology_node(r->ctx, &r->node));
    while (r->node.rank[r->place] != r->ctx->rank) ++r->place;
    r->field = trli_new(r->ctx, 4 * most, 1);
    TRL_TRY(trl_context_agree(r->ctx, r->field ? TRL_OK : trli_no_memory(r->ctx, NULL, "to measure exchanges")));
    r->ghosts = r->field + most;
    r->packed = r->ghosts + most;
    if (MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, r->node.comm, (void *)&memory, &r->window) != MPI_SUCCESS)
        r->window = MPI_WIN_NULL;
    refused = r->window == MPI_WIN_NULL;
    TRL_TRY(trli_agree_max(r->ctx, TRL_OK, 1, &refused));
    *possible = !refused;
    if (refused) goto done;
    const int from = (r->place + r->node.size - 1) % r->node.size;
    void *other = NULL;
    TRL_TRY(trli_mpi_check(r->ctx, MPI_Win_shared_query(r->window, from, &size, &unit, (void *)&other),
                           "MPI_Win_shared_query"));
    r->mine = (post *)(((uintptr_t)memory + LINE - 1) / LINE * LINE);
    r->before = (post *)(((uintptr_t)other + LINE - 1) / LINE * LINE);
    atomic_store_explicit(&r->mine->there, 0, memory_order_relaxed);
    atomic_store_explicit(&r->mine->read, 0, memory_order_relaxed);
done:
    return err;
}

/* Where all ranks come, after a failure too: no window is freed on a rank that is lost. */
static void close_ring(ring *r)
{
    if (r->window != MPI_WIN_NULL && !trl_context_lost(r->ctx)) (void)MPI_Win_free(&r->window);
    trli_comm_free(r->ctx, &r->node.comm);
    trli_free(r->node.rank);
    trli_free(r->field);
}

/* ---- figures ---- */

/* From the least times of sizes: a time for each exchange, and for each byte. */
static void fit(int64_t ps[SIZES][WAYS], trli_ways *w)
{
    double *const each[WAYS] = {[MESSAGES] = &w->message_s, [SHARED] = &w->shared_s};
    double *const byte[WAYS] = {[MESSAGES] = &w->message_byte_s, [SHARED] = &w->shared_byte_s};
    for (int way = 0; way < WAYS; ++way) {
        const double small = 1e-12 * (double)ps[SMALL][way], large = 1e-12 * (double)ps[LARGE][way];
        *byte[way] = fmax(0, large - small) / (double)(size_of[LARGE] - size_of[SMALL]);
        *each[way] = fmax(1e-9, small - *byte[way] * (double)size_of[SMALL]);
    }
}

/* All ranks measure, and the slowest one counts. */
static trl_err measure(trl_context *ctx, trli_ways *w)
{
    ring r = {.ctx = ctx, .node = {.comm = MPI_COMM_NULL}, .window = MPI_WIN_NULL};
    int64_t ps[SIZES][WAYS] = {{0}}, possible = 0;
    trl_err err;
    trl_context_begin_phase(ctx);
    TRL_TRY(open_ring(&r, &possible));
    if (!possible) goto done;
    TRL_TRY(trl_context_agree(ctx, TRL_OK)); /* counts are zero */
    for (int s = 0; s < SIZES; ++s) {
        double least[WAYS];
        if (r.node.size > 1) TRL_TRY(time_size(&r, size_of[s], least));
        for (int way = 0; way < WAYS && r.node.size > 1; ++way) ps[s][way] = (int64_t)(1e12 * least[way]);
        TRL_TRY(trli_agree_max(ctx, TRL_OK, WAYS, ps[s]));
    }
    fit(ps, w);
    w->known = true;
done:
    err = trl_context_end_phase(ctx, err);
    close_ring(&r);
    return err;
}

/* ---- keeping ---- */

static trli_ways ways_of(const trli_machine_record *r)
{
    return (trli_ways){.known = r->times > 0,
                       .message_s = r->number[0],
                       .message_byte_s = r->number[1],
                       .shared_s = r->number[2],
                       .shared_byte_s = r->number[3]};
}

/* What else the machine does makes both slower: the better of several measurements counts. */
static void take(trli_machine_record *r, const trli_ways *now)
{
    const double number[] = {now->message_s, now->message_byte_s, now->shared_s, now->shared_byte_s};
    for (int i = 0; i < kind.n; ++i) r->number[i] = r->times > 0 ? fmin(r->number[i], number[i]) : number[i];
    ++r->times;
}

/* Rank 0's record, measured by all ranks where it is to be. */
static trl_err find(trl_context *ctx, const trli_cache *cache, trli_machine_record *r)
{
    const int counts[2] = {ctx->topology.node_ranks, ctx->topology.cores};
    char entry[TRLI_ENTRY_ROOM];
    const long long now = (long long)time(NULL);
    trli_ways measured = {0};
    int due;
    trl_err err;
    trli_record_name(&kind, counts, entry);
    trli_record_load(&kind, cache, entry, now, MONTH, r);
    if (now < r->at) *r = (trli_machine_record){0};
    due = r->times == 0 || now - r->at > DAY;
    TRL_TRY(trli_broadcast(ctx, &due, 1, MPI_INT, 0));
    if (!due) goto done;
    TRL_TRY(measure(ctx, &measured));
    if (!measured.known) goto done;
    take(r, &measured);
    r->at = now;
    trli_record_keep(&kind, cache, entry, r);
done:
    return err;
}

trl_err trli_ways_find(trl_context *ctx, trli_ways *w)
{
    trli_cache cache = {.folder = -1};
    trli_machine_record r = {0};
    int64_t of_node = ctx->topology.node_ranks;
    bool given;
    int any;
    trl_err err;
    *w = (trli_ways){0};
    TRL_TRY(trli_agree_max(ctx, trli_record_read_given(ctx, &kind, &given, &r), 1, &of_node));
    any = given;
    TRL_TRY(trli_broadcast(ctx, &any, 1, MPI_INT, 0));
    if (of_node == 1) goto done;
    if (!any) {
        if (trl_context_rank(ctx) == 0) trli_cache_open(&cache);
        TRL_TRY(find(ctx, &cache, &r));
    }
    *w = ways_of(&r);
    err = trli_broadcast(ctx, w, sizeof *w, MPI_BYTE, 0);
done:
    trli_cache_close(&cache);
    return err;
}

bool trli_ways_share(const trli_ways *w, double bytes)
{
    return !w->known || w->shared_s + bytes * w->shared_byte_s <= clearly * (w->message_s + bytes * w->message_byte_s);
}

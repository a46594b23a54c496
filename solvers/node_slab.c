/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "node_slab_impl.h"

#include <limits.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "context_impl.h"
#include "exchange_impl.h"
#include "memory_impl.h"

enum { APART = 128 /* bytes: neighbouring lines are fetched in pairs */ };

/* The first block of each rank's memory, with which that begins; the second one is the slab. */
typedef struct gate {
    alignas(APART) _Atomic int64_t arrivals;
    alignas(APART) int64_t slab; /* where it begins, from the start of the memory on */
} gate;

struct trli_node_slab {
    trl_context *ctx;
    trli_open_memory *open; /* NULL: no other rank reaches the slab, */
    void *alone;            /* which is this memory */
    trli_loans *loans;
    gate *gate;   /* this rank's */
    gate **other; /* [others] those of the other ranks of the node */
    int others;
    double *own;
    int64_t arrivals;
};

/* A refusal is no failure. */
static void open_own(trli_node_slab *s, size_t bytes)
{
    const size_t room = trli_open_memory_room(sizeof(gate)) + trli_open_memory_room(bytes);
    s->open = trli_open_memory_create(s->ctx, room, false);
    if (!s->open) return;
    s->gate = trli_open_memory_take(s->open, sizeof(gate));
    s->own = s->gate ? trli_open_memory_take(s->open, bytes) : NULL;
    if (!s->own) {
        trli_open_memory_destroy(&s->open);
        return;
    }
    trli_open_memory_settle(s->open, s->own, bytes);
    memset(s->own, 0, bytes);
    atomic_init(&s->gate->arrivals, 0);
    s->gate->slab = trli_open_memory_offset(s->open, s->own);
}

static trl_err keep_alone(trli_node_slab *s, size_t bytes)
{
    trl_err err;
    trli_open_memory_destroy(&s->open);
    s->gate = NULL;
    TRL_TRY(trl_memory_alloc(s->ctx, bytes, "a direct solver", &s->alone));
    s->own = memset(s->alone, 0, bytes);
done:
    return err;
}

static trl_err find_others(trli_node_slab *s)
{
    const int ranks = trl_context_ranks(s->ctx);
    s->other = trli_new(s->ctx, (size_t)ranks, sizeof(gate *));
    if (!s->other) return trli_no_memory(s->ctx, NULL, "for a direct solver");
    for (int r = 0; r < ranks; ++r) {
        void *memory = trli_loans_of(s->loans, r);
        if (memory) s->other[s->others++] = memory;
    }
    return TRL_OK;
}

trl_err trli_node_slab_create(trl_context *ctx, bool shares, size_t bytes, trli_node_slab **slab)
{
    trl_err err = TRL_OK;
    trli_node_slab *s = *slab = trli_new(ctx, 1, sizeof *s);
    trl_context_begin_phase(ctx);
    err = trl_context_agree(ctx, s ? TRL_OK : trli_no_memory(ctx, NULL, "for a direct solver"));
    if (err == TRL_OK) {
        s->ctx = ctx;
        if (shares && ctx->topology.node_ranks > 1) open_own(s, bytes);
        if (shares) err = trli_loans_create(ctx, s->open, true, &s->loans);
    }
    if (err == TRL_OK && s->loans) err = find_others(s);
    if (err == TRL_OK && s->others == 0) err = keep_alone(s, bytes);
    return trl_context_end_phase(ctx, err);
}

void trli_node_slab_destroy(trli_node_slab **slab)
{
    trli_node_slab *s = *slab;
    *slab = NULL;
    if (!s) return;
    trli_loans_destroy(&s->loans);
    trli_open_memory_destroy(&s->open);
    trl_memory_free(s->ctx, &s->alone);
    trli_free(s->other);
    trli_free(s);
}

double *trli_node_slab_of(const trli_node_slab *s, int rank)
{
    if (rank == trl_context_rank(s->ctx)) return s->own;
    unsigned char *memory = s->loans ? trli_loans_of(s->loans, rank) : NULL;
    if (!memory) return NULL;
    return (double *)(void *)(memory + ((const gate *)(const void *)memory)->slab);
}

/* Release, and acquire: of values in slabs. */
void trli_node_slab_arrive(trli_node_slab *s)
{
    ++s->arrivals;
    if (s->gate) atomic_store_explicit(&s->gate->arrivals, s->arrivals, memory_order_release);
}

trl_err trli_node_slab_wait(trli_node_slab *s)
{
    for (int i = 0; i < s->others; ++i)
        for (int looks = 0; atomic_load_explicit(&s->other[i]->arrivals, memory_order_acquire) < s->arrivals;
             looks += looks < INT_MAX) {
            if (trl_context_lost(s->ctx)) return TRL_ERR_MPI;
            trli_agree_go_on(s->ctx);
            trli_notice_look(s->ctx, false);
            trli_agree_rest(s->ctx, looks);
        }
    return TRL_OK;
}

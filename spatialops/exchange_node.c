/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages between ranks of a node, through memory that they share (MPI_Win_allocate_shared). Each rank owns the memory
 * of what it sends: a slot for each message, where each of its pieces lies, then room for two rounds of those that are
 * packed. Rows of a line and more are lent, where loans allow it: the receiver copies them out of the sender's field.
 * Shorter rows are packed: each value in a line of its own would travel with the line. The sender counts the rounds
 * that are there, the receiver those that it needs no more. A round is packed when the one before the last is not
 * needed, and the send of what is lent lasts until the receiver has read it; so no value is written while another rank
 * reads it. */
#include <stdint.h>
#include <string.h>

#include <context_impl.h>

#include "exchange_impl.h"

enum {
    LINE = 64,
#ifdef TRL_SMALL_SIZES
    LENT_ROW = 1 /* builds for testing: short rows are lent, too */
#else
    LENT_ROW = LINE /* bytes of a row, at least */
#endif
};

/* At the start of each rank's memory. */
typedef struct node_memory {
    alignas(LINE) int nslots;
    trli_node_slot slot[];
} node_memory;

/* The place of a rank among those of the node, or -1. */
static int place_of(const trli_node_ranks *n, int rank)
{
    for (int i = 0; i < n->size; ++i)
        if (n->rank[i] == rank) return i;
    return -1;
}

static size_t aligned(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Of MPI's memory, which begins anywhere: all ranks map it at a page, so they find the same line. */
static node_memory *first_line(void *memory)
{
    return (node_memory *)(((uintptr_t)memory + LINE - 1) / LINE * LINE);
}

static size_t header_bytes(int slots)
{
    return aligned(sizeof(node_memory) + (size_t)slots * sizeof(trli_node_slot));
}

static bool is_lent(const trl_exchange *exchange, const trli_exchange_piece *t)
{
    return exchange->loans && (size_t)t->extent[0] * t->value_bytes >= LENT_ROW;
}

/* Pieces of a message, and bytes of those that are packed. */
static size_t lay_out(const trl_exchange *exchange, const trli_message *m, trli_node_piece *piece)
{
    size_t packed = 0;
    for (int i = 0; i < m->n; ++i) {
        const trli_exchange_piece *t = &exchange->sends.transfer[m->first + i];
        const bool lent = is_lent(exchange, t);
        if (piece) piece[i] = (trli_node_piece){.lent = lent, .at = lent ? 0 : (ptrdiff_t)packed};
        if (!lent) packed += trli_exchange_piece_bytes(t);
    }
    return packed;
}

static size_t piece_bytes(const trli_message *m)
{
    return aligned((size_t)m->n * sizeof(trli_node_piece));
}

/* Slots and bytes of what this rank sends to others of the node. */
static size_t memory_bytes(const trl_exchange *exchange, const trli_node_ranks *n, int *slots)
{
    size_t bytes = 0;
    *slots = 0;
    for (int i = 0; i < exchange->sends.nmessages; ++i) {
        const trli_message *m = &exchange->sends.message[i];
        if (place_of(n, m->peer) < 0) continue;
        ++*slots;
        bytes += piece_bytes(m) + 2 * aligned(lay_out(exchange, m, NULL));
    }
    return LINE + header_bytes(*slots) + bytes;
}

/* A refusal is no failure: then there are messages. */
static trl_err allocate(trl_exchange *exchange, const trli_node_ranks *n, size_t bytes, void **memory)
{
    trl_context *ctx = exchange->ctx;
    MPI_Info info = MPI_INFO_NULL;
    trl_err err;
    TRL_TRY(trli_mpi_check(ctx, MPI_Info_create(&info), "MPI_Info_create"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set"));
    if (MPI_Win_allocate_shared((MPI_Aint)bytes, 1, info, n->comm, memory, &exchange->window) != MPI_SUCCESS)
        exchange->window = MPI_WIN_NULL;
done:
    if (info != MPI_INFO_NULL) (void)!MPI_Info_free(&info);
    return err;
}

/* Lay out this rank's memory: others find their messages in it. */
static void describe(const trl_exchange *exchange, const trli_node_ranks *n, node_memory *memory, int slots)
{
    size_t at = header_bytes(slots);
    memory->nslots = 0;
    for (int i = 0; i < exchange->sends.nmessages; ++i) {
        trli_message *m = &exchange->sends.message[i];
        if (place_of(n, m->peer) < 0) continue;
        trli_node_slot *slot = &memory->slot[memory->nslots++];
        memset(slot, 0, sizeof *slot);
        slot->peer = m->peer;
        slot->label = m->label;
        slot->piece = (ptrdiff_t)at;
        m->piece = (trli_node_piece *)(void *)((unsigned char *)memory + at);
        at += piece_bytes(m);
        const size_t packed = lay_out(exchange, m, m->piece);
        for (int i = 0; i < m->n; ++i) m->lends |= m->piece[i].lent;
        for (int k = 0; k < 2; ++k) {
            slot->room[k] = (ptrdiff_t)at;
            m->room[k] = (unsigned char *)memory + at;
            memset(m->room[k], 0, packed);
            at += aligned(packed);
        }
    }
}

/* Find what a rank of the node sends to this one. */
static trl_err find_message(const trl_exchange *exchange, const trli_node_ranks *n, trli_message *m,
                            trli_node_slot **found)
{
    MPI_Aint size;
    int unit;
    void *start = NULL;
    trl_err err;
    TRL_TRY(trli_mpi_check(exchange->ctx,
                           MPI_Win_shared_query(exchange->window, place_of(n, m->peer), &size, &unit, (void *)&start),
                           "MPI_Win_shared_query"));
    node_memory *memory = first_line(start);
    for (int i = 0; i < memory->nslots; ++i) {
        trli_node_slot *slot = &memory->slot[i];
        if (slot->peer != exchange->ctx->rank || slot->label != m->label) continue;
        *found = slot;
        m->piece = (trli_node_piece *)(void *)((unsigned char *)memory + slot->piece);
        m->lender = exchange->loans ? trli_loans_of(exchange->loans, m->peer) : NULL;
        for (int k = 0; k < 2; ++k) m->room[k] = (unsigned char *)memory + slot->room[k];
    }
done:
    return err;
}

static trl_err connect(const trl_exchange *exchange, const trli_node_ranks *n, node_memory *memory)
{
    const trli_traffic *receives = &exchange->receives, *sends = &exchange->sends;
    trl_err err = TRL_OK;
    for (int i = 0; i < receives->nmessages; ++i)
        if (place_of(n, receives->message[i].peer) >= 0)
            TRL_TRY(find_message(exchange, n, &receives->message[i], &receives->message[i].slot));
    for (int i = 0, slot = 0; i < sends->nmessages; ++i)
        if (place_of(n, sends->message[i].peer) >= 0) sends->message[i].slot = &memory->slot[slot++];
done:
    return err;
}

trl_err trli_exchange_share(trl_exchange *exchange, const trli_loans *loans)
{
    trl_context *ctx = exchange->ctx;
    trli_node_ranks n = {.comm = MPI_COMM_NULL};
    void *memory = NULL;
    int slots = 0;
    int64_t refused = 0;
    trl_err err;
    exchange->loans = loans;
    /* Kernels between two exchanges need the rest of the cache. */
    exchange->late |= loans && exchange->receives.bytes > trl_context_cache_bytes(ctx, 2) / 4;
    trl_context_begin_phase(ctx);
    err = trli_topology_node(ctx, &n);
    if (err == TRL_OK) err = trl_context_agree(ctx, TRL_OK);
    if (err == TRL_OK) err = allocate(exchange, &n, memory_bytes(exchange, &n, &slots), &memory);
    if (err == TRL_OK && exchange->window != MPI_WIN_NULL) describe(exchange, &n, first_line(memory), slots);
    refused = exchange->window == MPI_WIN_NULL;
    err = trli_agree_max(ctx, err, 1, &refused);
    if (err == TRL_OK && !refused) err = connect(exchange, &n, first_line(memory));
    trli_free(n.rank);
    trli_comm_free(ctx, &n.comm);
    return trl_context_end_phase(ctx, err);
}

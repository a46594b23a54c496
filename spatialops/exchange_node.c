/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages between ranks of a node, through memory that they share (MPI_Win_allocate_shared). Each rank owns the memory
 * of what it sends: a slot for each message, then room for two rounds of it. The sender counts the rounds that are
 * packed, the receiver those that it needs no more; a round is packed when the one before the last is not needed, so no
 * value is written while another rank reads it. */
#include <stdint.h>
#include <string.h>

#include <context_impl.h>

#include "exchange_impl.h"

enum { LINE = 64 };

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

/* Slots and bytes of what this rank sends to others of the node. */
static size_t memory_bytes(const trl_exchange *exchange, const trli_node_ranks *n, int *slots)
{
    size_t bytes = 0;
    *slots = 0;
    for (int i = 0; i < exchange->sends.nmessages; ++i) {
        const trli_message *m = &exchange->sends.message[i];
        if (place_of(n, m->peer) < 0) continue;
        ++*slots;
        bytes += 2 * aligned(m->words * 8);
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
        for (int k = 0; k < 2; ++k) {
            slot->room[k] = (ptrdiff_t)at;
            m->room[k] = (unsigned char *)memory + at;
            memset(m->room[k], 0, m->words * 8);
            at += aligned(m->words * 8);
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

trl_err trli_exchange_share(trl_exchange *exchange)
{
    trl_context *ctx = exchange->ctx;
    trli_node_ranks n = {.comm = MPI_COMM_NULL};
    void *memory = NULL;
    int slots = 0;
    int64_t refused = 0;
    trl_err err;
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

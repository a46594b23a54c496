/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages in the memory of GPUs. The receiver offers memory of its GPU, with room for two rounds of each message, in
 * the message's slot in shared memory; the sender opens it (CUDA IPC), and its kernel packs straight into it. The slot
 * counts rounds as of messages in the host's memory: those that are there, after the kernel has ended, and those that
 * are unpacked, before the next one is packed into the same room. So no device waits for another rank's. */
#include <string.h>

#include <context_impl.h>
#include <memory_impl.h>

#include "exchange_impl.h"

enum { ROOM_LINE = 256 };

/* Another rank's memory. */
typedef struct opened {
    int peer;
    void *at;
} opened;

struct trli_rooms {
    trl_context *ctx;
    trl_device *device;
    int n;
    trl_exchange **exchange;
    unsigned char *memory; /* of the GPU */
    opened *opened;
    int nopened;
    void **pinned; /* buffers of messages on the host */
    int npinned;
    bool connected; /* on all ranks */
};

static size_t lines(size_t bytes)
{
    return (bytes + ROOM_LINE - 1) / ROOM_LINE * ROOM_LINE;
}

/* Lay rooms out from an address on; NULL: only count their bytes. */
static size_t lay_out(const trli_rooms *r, unsigned char *memory)
{
    size_t at = 0;
    for (int e = 0; e < r->n; ++e) {
        const trli_traffic *all[2] = {&r->exchange[e]->receives, &r->exchange[e]->sends};
        for (int i = 0; i < 2; ++i)
            for (int n = 0; n < all[i]->nmessages; ++n)
                for (int k = 0; k < 2 - i; ++k) {
                    trli_message *m = &all[i]->message[n];
                    if (memory) m->near[k] = memory + at;
                    at += lines(m->words * 8);
                }
    }
    return at;
}

static trl_err allocate(trli_rooms *r)
{
    const size_t unit = TRLI_GPU_SHARED_UNIT, bytes = (lay_out(r, NULL) + unit - 1) / unit * unit;
    void *memory = NULL;
    if (!r->device || bytes == 0) return TRL_OK;
    const trl_err err = r->device->ops->allocate(r->device, bytes, &memory);
    if (err == TRL_ERR_MEMORY)
        return trli_no_memory(r->ctx, NULL, "of a GPU for %zu bytes of messages between ranks", bytes);
    if (err != TRL_OK) return err;
    r->memory = memory;
    (void)lay_out(r, r->memory);
    for (int e = 0; e < r->n; ++e) r->exchange[e]->device = r->device;
    return TRL_OK;
}

/* Messages of MPI go through buffers: GPUs copy from and to them by themselves where they stay in place. */
static void pin(trli_rooms *r, void *memory, size_t bytes)
{
    if (r->memory && memory && trli_gpu_pin(r->device, memory, bytes)) r->pinned[r->npinned++] = memory;
}

static trl_err pin_buffers(trli_rooms *r)
{
    r->pinned = trli_new(r->ctx, 2 * (size_t)r->n + 1, sizeof *r->pinned);
    if (!r->pinned) return trli_no_memory(r->ctx, NULL, "for messages");
    for (int e = 0; e < r->n; ++e) {
        pin(r, r->exchange[e]->receive_buffer, r->exchange[e]->receives.bytes);
        pin(r, r->exchange[e]->send_buffer, r->exchange[e]->sends.bytes);
    }
    return TRL_OK;
}

/* Say in the slots where others may write. */
static bool offer(const trli_rooms *r)
{
    trli_gpu_handle handle;
    if (!r->memory) return true;
    if (!trli_gpu_offer(r->device, r->memory, &handle)) return false;
    for (int e = 0; e < r->n; ++e)
        for (int n = 0; n < r->exchange[e]->receives.nmessages; ++n) {
            const trli_message *m = &r->exchange[e]->receives.message[n];
            if (!m->slot) continue;
            m->slot->handle = handle;
            for (int k = 0; k < 2; ++k) m->slot->device_room[k] = m->near[k] - r->memory;
            m->slot->offered = true;
        }
    return true;
}

/* The memory of a rank, opened once. */
static unsigned char *open_memory(trli_rooms *r, const trli_message *m)
{
    void *memory = NULL;
    for (int i = 0; i < r->nopened; ++i)
        if (r->opened[i].peer == m->peer) return r->opened[i].at;
    if (!trli_gpu_open_memory(r->device, &m->slot->handle, &memory)) return NULL;
    r->opened[r->nopened++] = (opened){m->peer, memory};
    return memory;
}

static bool open_all(trli_rooms *r)
{
    for (int e = 0; e < r->n && r->memory; ++e)
        for (int n = 0; n < r->exchange[e]->sends.nmessages; ++n) {
            trli_message *m = &r->exchange[e]->sends.message[n];
            if (!m->slot || !m->slot->offered) continue;
            unsigned char *memory = open_memory(r, m);
            if (!memory) return false;
            for (int k = 0; k < 2; ++k) m->far[k] = memory + m->slot->device_room[k];
        }
    return true;
}

static void close_all(trli_rooms *r)
{
    for (int e = 0; e < r->n; ++e)
        for (int n = 0; n < r->exchange[e]->sends.nmessages; ++n)
            r->exchange[e]->sends.message[n].far[0] = r->exchange[e]->sends.message[n].far[1] = NULL;
    for (int i = 0; i < r->nopened; ++i) trli_gpu_close_memory(r->device, r->opened[i].at);
    r->nopened = 0;
}

static trl_err make_lists(trli_rooms *r, trl_exchange *const *exchanges)
{
    size_t messages = 1;
    for (int e = 0; e < r->n; ++e) messages += (size_t)exchanges[e]->sends.nmessages;
    r->exchange = trli_new(r->ctx, (size_t)r->n + 1, sizeof(trl_exchange *));
    r->opened = trli_new(r->ctx, messages, sizeof *r->opened);
    if (!r->exchange || !r->opened) return trli_no_memory(r->ctx, NULL, "for messages");
    for (int e = 0; e < r->n; ++e) r->exchange[e] = exchanges[e];
    return TRL_OK;
}

trl_err trli_rooms_create(trl_context *ctx, trl_device *device, bool open, int n, trl_exchange *const *exchanges,
                          trli_rooms **result)
{
    trl_err err = TRL_OK;
    trli_rooms *r = trli_new(ctx, 1, sizeof *r);
    int64_t refused = !open;
    *result = NULL;
    trl_context_begin_phase(ctx);
    if (r) {
        *r = (trli_rooms){.ctx = ctx, .device = device, .n = n};
        err = make_lists(r, exchanges);
        if (err == TRL_OK) err = allocate(r);
        if (err == TRL_OK) err = pin_buffers(r);
        if (err == TRL_OK && open) refused = !offer(r);
    } else {
        err = trli_no_memory(ctx, NULL, "for messages");
    }
    err = trli_agree_max(ctx, err, 1, &refused); /* then slots say what is offered */
    if (err == TRL_OK && !refused) {
        refused = !open_all(r);
        err = trli_agree_max(ctx, TRL_OK, 1, &refused);
    }
    if (r && refused) close_all(r);
    err = trl_context_end_phase(ctx, err);
    if (err == TRL_OK) r->connected = true;
    if (err != TRL_OK) trli_rooms_destroy(&r);
    *result = r;
    return err;
}

/* ---- what can be reached ---- */

/* Handles of ranks of this node, each in its place among all ranks; a rank without a GPU sends none. */
typedef struct probe {
    trl_device *device;
    void *memory;
    trli_gpu_handle own, *other; /* [received] */
    int *count;                  /* bytes sent and where they begin, received and where: [4][ranks] */
} probe;

static trl_err make_probe(trl_context *ctx, probe *p, bool *offers)
{
    const size_t ranks = (size_t)trl_context_ranks(ctx);
    p->count = trli_new(ctx, 4 * ranks, sizeof *p->count);
    p->other = trli_new(ctx, ranks, sizeof *p->other);
    if (!p->count || !p->other) return trli_no_memory(ctx, NULL, "for messages between ranks");
    *offers = p->device && p->device->ops->allocate(p->device, TRLI_GPU_SHARED_UNIT, &p->memory) == TRL_OK &&
              trli_gpu_offer(p->device, p->memory, &p->own);
    return TRL_OK;
}

static trl_err exchange_handles(trl_context *ctx, const probe *p, bool offers)
{
    const int ranks = trl_context_ranks(ctx);
    int *sent = p->count, *sent_begin = sent + ranks, *received = sent_begin + ranks, *begin = received + ranks;
    trli_node_ranks node = {.comm = MPI_COMM_NULL};
    trl_err err;
    TRL_TRY(trli_topology_node(ctx, &node));
    for (int i = 0; i < node.size; ++i)
        if (node.rank[i] != ctx->rank && offers) sent[node.rank[i]] = (int)sizeof p->own;
    TRL_TRY(trli_alltoall(ctx, sent, received));
    for (int r = 1; r < ranks; ++r) begin[r] = begin[r - 1] + received[r - 1];
    err = trli_alltoallv(ctx, &p->own, sent, sent_begin, p->other, received, begin, MPI_BYTE);
done:
    trli_free(node.rank);
    trli_comm_free(ctx, &node.comm);
    return err;
}

static bool opens_all(const trl_context *ctx, const probe *p)
{
    const int ranks = trl_context_ranks(ctx), *received = p->count + 2 * ranks;
    bool all = true;
    for (int r = 0, n = 0; r < ranks && p->device; ++r) {
        void *memory = NULL;
        if (received[r] == 0) continue;
        if (trli_gpu_open_memory(p->device, &p->other[n++], &memory))
            trli_gpu_close_memory(p->device, memory);
        else
            all = false;
    }
    return all;
}

trl_err trli_rooms_probe(trl_context *ctx, trl_device *device, bool *reach)
{
    probe p = {.device = device};
    bool offers = false;
    int64_t refused = 0;
    trl_err err;
    trl_context_begin_phase(ctx);
    err = make_probe(ctx, &p, &offers);
    if (err == TRL_OK) err = exchange_handles(ctx, &p, offers);
    if (err == TRL_OK) refused = device && (!offers || !opens_all(ctx, &p));
    err = trli_agree_max(ctx, err, 1, &refused); /* then nobody has the memory open */
    *reach = err == TRL_OK && !refused;
    if (p.memory) device->ops->release(device, p.memory);
    trli_free(p.count);
    trli_free(p.other);
    return trl_context_end_phase(ctx, err);
}

void trli_rooms_look(const trli_rooms *r)
{
    if (!r || !r->device || trli_device_usable(r->device)) return;
    for (int e = 0; e < r->n; ++e)
        for (int n = 0; n < r->exchange[e]->receives.nmessages; ++n) {
            const trli_message *m = &r->exchange[e]->receives.message[n];
            if (m->slot) atomic_store_explicit(&m->slot->refused, true, memory_order_release);
        }
}

/* Memory is given back when nobody has it open. */
void trli_rooms_destroy(trli_rooms **rooms)
{
    trli_rooms *r = *rooms;
    *rooms = NULL;
    if (!r) return;
    const bool lost = trl_context_lost(r->ctx);
    if (r->device) r->device->ops->finish(r->device);
    if (r->exchange && !lost) close_all(r);
    if (r->connected && !lost) (void)!trl_context_agree(r->ctx, TRL_OK);
    for (int i = 0; i < r->npinned; ++i) trli_gpu_unpin(r->device, r->pinned[i]);
    if (r->memory && !lost) r->device->ops->release(r->device, r->memory);
    trli_free(r->exchange);
    trli_free(r->opened);
    trli_free(r->pinned);
    trli_free(r);
}

int trli_exchange_far_messages(const trl_exchange *exchange)
{
    int n = 0;
    for (int i = 0; i < exchange->sends.nmessages; ++i) n += exchange->sends.message[i].far[0] != NULL;
    return n;
}

/* ---- a round ---- */

static bool is_far(const trli_message *m)
{
    return m->far[0] && !atomic_load_explicit(&m->slot->refused, memory_order_acquire);
}

unsigned char *trli_exchange_target(const trl_exchange *exchange, int message)
{
    const trli_message *m = &exchange->sends.message[message];
    return is_far(m) ? m->far[m->round & 1] : m->near[0];
}

/* Where the host has a message. */
static unsigned char *on_host(unsigned char *buffer, const trli_message *m, int64_t round)
{
    return m->slot ? m->room[round & 1] : buffer + m->offset;
}

trl_err trli_exchange_packed(const trl_exchange *exchange, int message, void *stream)
{
    const trli_message *m = &exchange->sends.message[message];
    const bool far = is_far(m);
    if (m->slot) atomic_store_explicit(&m->slot->far[m->round & 1], far, memory_order_relaxed);
    if (far) return TRL_OK;
    return trli_gpu_copy_bytes(exchange->device, on_host(exchange->send_buffer, m, m->round), m->near[0], m->words * 8,
                               stream);
}

/* Of the round that was received last. */
static bool came_far(const trli_message *m)
{
    return m->slot && atomic_load_explicit(&m->slot->far[(m->round - 1) & 1], memory_order_relaxed);
}

trl_err trli_exchange_source(const trl_exchange *exchange, int message, void *stream, unsigned char **source)
{
    const trli_message *m = &exchange->receives.message[message];
    *source = m->near[(m->round - 1) & 1];
    if (came_far(m)) return TRL_OK;
    return trli_gpu_copy_bytes(exchange->device, *source, on_host(exchange->receive_buffer, m, m->round - 1),
                               m->words * 8, stream);
}

trl_err trli_exchange_fetch(const trl_exchange *exchange, int message)
{
    const trli_message *m = &exchange->receives.message[message];
    if (!came_far(m)) return TRL_OK;
    return trli_gpu_copy_and_wait(exchange->device, on_host(exchange->receive_buffer, m, m->round - 1),
                                  m->near[(m->round - 1) & 1], m->words * 8);
}

void trli_exchange_release(const trl_exchange *exchange, int message)
{
    const trli_message *m = &exchange->receives.message[message];
    if (m->slot) atomic_store_explicit(&m->slot->taken, m->round, memory_order_release);
}

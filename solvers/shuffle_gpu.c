/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages that GPUs pack and unpack. Where all ranks are on one node, and their GPUs reach one another, a rank packs
 * into memory of its own GPU, which the others have opened (CUDA IPC) and read; else into memory of the host. A message
 * is packed anew only after another one, before which its reader was waited for. */
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "shuffle_impl.h"

/* What a rank tells another one. */
typedef struct offer {
    trli_gpu_handle handle;
    int64_t begin[2]; /* of messages for it in the memory, in doubles: there, back */
} offer;

/* [ranks] each. */
typedef struct offers {
    offer *sent, *received;
    int *bytes, *at;
} offers;

static trl_err make_room(trli_shuffle *s, offers *o)
{
    const size_t ranks = (size_t)trl_context_ranks(s->ctx);
    s->opened = trli_new(s->ctx, ranks, sizeof(void *));
    s->far[0] = trli_new(s->ctx, 2 * ranks, sizeof(double *));
    s->far[1] = s->far[0] + ranks;
    o->sent = trli_new(s->ctx, 2 * ranks, sizeof *o->sent);
    o->bytes = trli_new(s->ctx, 2 * ranks, sizeof *o->bytes);
    if (!s->opened || !s->far[0] || !o->sent || !o->bytes) return trli_no_memory(s->ctx, NULL, "for messages");
    o->received = o->sent + ranks;
    o->at = o->bytes + ranks;
    return TRL_OK;
}

/* Returns whether that was possible. */
static bool make_offers(trli_shuffle *s, const offers *o)
{
    const size_t unit = TRLI_GPU_SHARED_UNIT, values = (size_t)(s->away[0].values + s->away[1].values + 1);
    const size_t bytes = (values * sizeof(double) + unit - 1) / unit * unit;
    trli_gpu_handle handle;
    void *memory;
    if (s->device->ops->allocate(s->device, bytes, &memory) != TRL_OK) return false;
    s->near = memory;
    if (!trli_gpu_offer(s->device, memory, &handle)) return false;
    for (int r = 0; r < trl_context_ranks(s->ctx); ++r) {
        o->sent[r] = (offer){handle, {s->away[0].begin[r], s->away[0].values + s->away[1].begin[r]}};
        o->bytes[r] = (int)sizeof(offer);
        o->at[r] = r * (int)sizeof(offer);
    }
    return true;
}

static bool open_all(trli_shuffle *s, const offers *o)
{
    for (int r = 0; r < trl_context_ranks(s->ctx); ++r) {
        if (r == trl_context_rank(s->ctx)) continue;
        if (!trli_gpu_open_memory(s->device, &o->received[r].handle, &s->opened[r])) return false;
        for (int back = 0; back < 2; ++back) s->far[back][r] = (double *)s->opened[r] + o->received[r].begin[back];
    }
    return true;
}

static trl_err make_buffers(trli_shuffle *s)
{
    trl_err err = TRL_OK;
    for (int side = 0; side < 2; ++side) {
        void *memory = NULL;
        TRL_TRY(trli_gpu_host_allocate(s->device, (size_t)(s->away[side].values + 1) * sizeof(double), &memory));
        s->away[side].buffer = memory;
    }
done:
    return err;
}

/* *shared: all ranks read the others' memory. Collective: yes. */
static trl_err share(trli_shuffle *s, bool *shared)
{
    offers o = {0};
    trl_err err = make_room(s, &o);
    int64_t refused = err == TRL_OK && !make_offers(s, &o);
    *shared = false;
    TRL_TRY(trli_agree_max(s->ctx, err, 1, &refused));
    if (refused) goto done;
    s->connected = true;
    TRL_TRY(trli_alltoallv(s->ctx, o.sent, o.bytes, o.at, o.received, o.bytes, o.at, MPI_BYTE));
    refused = !open_all(s, &o);
    TRL_TRY(trli_agree_max(s->ctx, TRL_OK, 1, &refused));
    *shared = !refused;
done:
    trli_free(o.sent);
    trli_free(o.bytes);
    return err;
}

trl_err trli_shuffle_connect(trli_shuffle *s, bool near)
{
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(s->ctx, &list);
    bool shared = false;
    trl_err err = TRL_OK;
    if (!s->messages) return TRL_OK;
    trl_context_begin_phase(s->ctx);
    if (near) err = share(s, &shared);
    if (err == TRL_OK && !shared) {
        trli_shuffle_disconnect(s);
        trli_diagnostics_forgive(s->ctx, said);
        err = make_buffers(s);
    }
    return trl_context_end_phase(s->ctx, err);
}

/* Memory is given back when nobody has it open. */
void trli_shuffle_disconnect(trli_shuffle *s)
{
    const bool lost = trl_context_lost(s->ctx);
    for (int r = 0; s->opened && r < trl_context_ranks(s->ctx) && !lost; ++r)
        if (s->opened[r]) trli_gpu_close_memory(s->device, s->opened[r]);
    if (s->connected && !lost) (void)!trl_context_agree(s->ctx, TRL_OK);
    if (s->near && !lost) s->device->ops->release(s->device, s->near);
    trli_free(s->opened);
    trli_free(s->far[0]);
    s->near = NULL;
    s->connected = false;
    s->opened = NULL;
    s->far[0] = s->far[1] = NULL;
    for (int side = 0; side < 2; ++side) {
        if (s->away[side].buffer) trli_gpu_host_release(s->device, s->away[side].buffer);
        s->away[side].buffer = NULL;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How messages between ranks go where GPUs have what is sent: all ranks choose the same way, before tasks are built. */
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "exchange_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"

static const char *const words[] = {
#define WORD(name, word) word,
    TRLI_MESSAGES_LIST(WORD)
#undef WORD
};
enum { NWORDS = sizeof words / sizeof *words };

/* The most that TRELLIS_GPU_IPC of this rank allows. */
static trl_err read_allowed(trl_context *ctx, int64_t *way)
{
    const char *text = getenv("TRELLIS_GPU_IPC");
    for (*way = NWORDS - 1; text && *way >= 0 && strcmp(text, words[*way]) != 0;) --*way;
    if (*way >= 0) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "TRELLIS_GPU_IPC is '%s': use 'on', 'staging' or 'off'", text);
}

/* What packs messages, if their points are on it; NULL: workers do. */
static trl_device *find_packer(const trli_model *model)
{
    const trl_devices *devices = trl_workers_devices(model->run->workers);
    const bool one = devices && devices->n == 1 && devices->device[0]->kind == TRL_KIND_GPU;
    return one && trli_gpu_does_halos(model) ? devices->device[0] : NULL;
}

bool trli_gpu_does_messages(const trli_model *model)
{
    return model->run->messages != TRLI_MESSAGES_HOST && find_packer(model);
}

/* Where GPUs of a node do not reach each other. Planes across the last axis are copied to the host as they lie, and
 * packed there; values of others are rows or points far apart, and are packed by the GPU before they are copied. */
static trli_messages_way find_fallback(const trl_layout *layout)
{
    for (int a = 0; a < layout->grid.dim - 1; ++a)
        if (layout->counts[a] > 1) return TRLI_MESSAGES_STAGED;
    return TRLI_MESSAGES_HOST;
}

trl_err trli_gpu_choose_messages(trli_model *model, trl_err local)
{
    enum { LESS, PACKS, NAGREED };
    trl_context *ctx = model->ctx;
    int64_t way = TRLI_MESSAGES_HOST, agreed[NAGREED];
    bool reach;
    trl_err err = local;
    if (trl_context_ranks(ctx) == 1 || model->run->exchanged_axes == 0) return err;
    trl_context_begin_phase(ctx);
    if (err == TRL_OK) err = read_allowed(ctx, &way);
    agreed[LESS] = -way;
    agreed[PACKS] = find_packer(model) != NULL;
    TRL_TRY(trli_agree_max(ctx, err, NAGREED, agreed));
    way = agreed[PACKS] ? -agreed[LESS] : TRLI_MESSAGES_HOST;
    if (way == TRLI_MESSAGES_DIRECT) {
        TRL_TRY(trli_rooms_probe(ctx, find_packer(model), &reach));
        if (!reach) way = find_fallback(model->layout);
    }
    model->run->messages = (trli_messages_way)way;
done:
    return trl_context_end_phase(ctx, err);
}

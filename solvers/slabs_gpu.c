/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct solutions on the GPUs that have the patches of the right-hand side, of one rank or of all: what they need, the
 * ranks' agreement that all can, and what is said where the CPU solves. */
#include "slabs_gpu_impl.h"

#include <string.h>

#include "context_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"

struct trli_slabs_gpu {
    trl_context *ctx;
    trli_slab_grid grid;
    trli_slab_kernels kernels;
    trli_slab_memory memory;
    int *count;                     /* [2][ranks] GPUs of each; and scratch */
    int *space;                     /* [local patches] whose memory has them */
    trli_view *residual, *solution; /* [local patches] */
    const char *why;                /* this rank has no distribution, and makes none; NULL: it may */
    const char *missing;            /* as trli_slabs_gpu_missing has it */
    bool warned;                    /* that the CPU solves what GPUs should */
};

static trl_err create(const trli_slab_grid *grid, trli_slabs_gpu **gpu)
{
    const trl_layout *layout = grid->sim->layout;
    trl_context *ctx = grid->sim->ctx;
    const size_t local = (size_t)layout->nlocal;
    trli_slabs_gpu *g = *gpu = trli_new(ctx, 1, sizeof *g);
    if (!g) return trli_no_memory(ctx, NULL, "for a direct solver");
    g->ctx = ctx;
    g->grid = *grid;
    g->kernels.plan = grid->plan;
    g->count = trli_new(ctx, 2 * (size_t)trl_context_ranks(ctx), sizeof *g->count);
    g->space = trli_new(ctx, local + 1, sizeof *g->space);
    g->residual = trli_new(ctx, local + 1, sizeof *g->residual);
    g->solution = trli_new(ctx, local + 1, sizeof *g->solution);
    return g->count && g->space && g->residual && g->solution ? TRL_OK
                                                              : trli_no_memory(ctx, NULL, "for a direct solver");
}

trl_err trli_slabs_gpu_create(const trli_slab_grid *grid, trli_slabs_gpu **gpu)
{
    const bool has = grid->sim->model->run->gpu_kernels != NULL;
    int64_t none = !has;
    trl_err err;
    *gpu = NULL;
    TRL_TRY(trli_agree_max(grid->sim->ctx, has ? create(grid, gpu) : TRL_OK, 1, &none));
done:
    if (err != TRL_OK || none) trli_slabs_gpu_destroy(gpu);
    return err;
}

void trli_slabs_gpu_destroy(trli_slabs_gpu **gpu)
{
    trli_slabs_gpu *g = *gpu;
    *gpu = NULL;
    if (!g) return;
    trli_slab_memory_destroy(&g->memory);
    trli_free(g->count);
    trli_free(g->space);
    trli_free(g->residual);
    trli_free(g->solution);
    trli_free(g);
}

const char *trli_slabs_gpu_missing(const trli_slabs_gpu *g)
{
    return g->missing;
}

/* ---- where the right-hand side is ---- */

/* One GPU of some spaces; 0: there is none that can be used. */
static int gpu_of(const trl_simulation *sim, uint32_t spaces)
{
    const trl_devices *devices = trl_workers_devices(sim->model->run->workers);
    for (int i = 0; devices && i < devices->n; ++i) {
        const trl_device *device = devices->device[i];
        if (spaces >> device->space & 1 && device->kind == TRL_KIND_GPU && trli_device_usable(device))
            return device->space;
    }
    return 0;
}

/* The GPU that solves for each patch: which has it, or where none has, the first one that has another, or any. *held:
 * some patch is on GPUs alone. Returns their spaces; 0: there is no GPU. */
static uint32_t find_patches(trli_slabs_gpu *g, const trli_slabs_request *r, bool *held)
{
    uint32_t spaces = 0;
    *held = false;
    for (int p = 0; p < r->sim->layout->nlocal; ++p) {
        const uint32_t all = trli_frame_spaces(r->sim->frame, r->from, p);
        g->space[p] = gpu_of(r->sim, all);
        if (g->space[p] == 0) continue;
        *held |= !(all & 1);
        spaces |= UINT32_C(1) << g->space[p];
    }
    const int other = gpu_of(r->sim, spaces ? spaces : UINT32_MAX);
    for (int p = 0; p < r->sim->layout->nlocal; ++p)
        if (g->space[p] == 0) g->space[p] = other;
    return spaces || other == 0 ? spaces : UINT32_C(1) << other;
}

/* Bring what the host has of a field on a patch. */
static trl_err bring(const trl_simulation *sim, int field, int patch, int space)
{
    trl_err err = TRL_OK;
    if (trli_frame_spaces(sim->frame, field, patch) >> space & 1) return TRL_OK;
    TRL_TRY(trli_frame_fetch_patch(sim->frame, field, patch));
    err = trli_frame_send_patch(sim->frame, field, patch, space);
done:
    return err;
}

/* Memory for the solution, with what is there if it is added to, or is at points that are not unknown; and where all
 * is. */
static trl_err find_views(trli_slabs_gpu *g, const trli_slabs_request *r)
{
    const trl_simulation *sim = r->sim;
    trl_err err = TRL_OK;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const int space = g->space[p];
        TRL_TRY(bring(sim, r->from, p, space));
        TRL_TRY(r->add || !trli_patch_is_unknown(sim->layout, p, g->grid.location, g->grid.line)
                    ? bring(sim, r->to, p, space)
                    : trli_frame_provide_patch(sim->frame, r->to, p, space));
        g->residual[p] = trli_patch_view(sim, r->first, r->from, p, space);
        g->solution[p] = trli_patch_view(sim, r->first, r->to, p, space);
    }
done:
    return err;
}

/* ---- what the ranks agree on ---- */

/* What a rank lacks: the most of all ranks. And whether GPUs of some rank have what its host has not. */
enum { IS_READY, HAS_CHANGED /* GPUs of it have other patches than before */, REFUSES };
enum { LACKS, HELD, NAGREED };

static trl_err agree(trl_simulation *sim, int64_t value[NAGREED])
{
    trl_err err = TRL_OK;
    if (trl_context_ranks(sim->ctx) == 1) return TRL_OK;
    TRL_TRY(trli_agree_within(sim, TRL_OK));
    err = trli_max_further(sim->ctx, value, NAGREED);
done:
    return err;
}

/* Distribute the grid over other GPUs, if that is possible on this rank. Collective: yes. */
static trl_err distribute(trli_slabs_gpu *g, uint32_t spaces)
{
    const trl_simulation *sim = g->grid.sim;
    const int ranks = trl_context_ranks(g->ctx);
    int *own = g->count + ranks, parts = 0;
    trl_err err;
    trli_slab_memory_destroy(&g->memory);
    for (int r = 0; r < ranks; ++r) own[r] = __builtin_popcount(spaces);
    g->count[0] = own[0];
    err = ranks > 1 ? trli_alltoall(g->ctx, own, g->count) : TRL_OK;
    if (err != TRL_OK) return err;
    for (int r = 0; r < ranks; ++r) parts += g->count[r];
    err = trli_slab_kernels_provide(g->ctx, &g->kernels, trl_workers_devices(sim->model->run->workers), parts,
                                    sim->model->run->gpu_kernels);
    if (err != TRL_OK && err != TRL_ERR_MEMORY) return err; /* MEMORY: they say so */
    g->why = g->kernels.why;
    if (g->why) return TRL_OK;
    const trl_err local = trli_slab_memory_create(&g->grid, spaces, g->count, trli_slab_kernels_take_rows(&g->kernels),
                                                  &g->memory, &g->why);
    if (local != TRL_OK) g->why = "a GPU has no memory left for them, or has failed";
    if (g->why) trli_slab_memory_destroy(&g->memory);
    return TRL_OK;
}

/* Once. */
static void warn(trli_slabs_gpu *g, const char *why)
{
    if (!g->warned) trl_warn(g->ctx, NULL, "direct solutions are made by the CPU, not by GPUs: %s", why);
    g->warned = true;
}

/* All ranks have a distribution: for messages. *lacks: all refuse if that fails on any. Collective: yes. */
static trl_err connect(trli_slabs_gpu *g, int64_t *lacks)
{
    const int ranks = trl_context_ranks(g->ctx);
    bool near = g->grid.sim->model->run->messages == TRLI_MESSAGES_DIRECT && g->ctx->topology.node_ranks == ranks;
    for (int r = 0; r < ranks; ++r) near &= g->count[r] == 1;
    const trl_err err = trli_slab_memory_connect(&g->memory, near);
    if (err != TRL_ERR_MEMORY && err != TRL_ERR_DEVICE) return err;
    trli_slab_memory_destroy(&g->memory);
    g->why = "there is no memory for messages between ranks";
    *lacks = REFUSES;
    return TRL_OK;
}

/* All ranks are ready, or none is. *placed: of this rank so far. */
static trl_err prepare(trli_slabs_gpu *g, const trli_slabs_request *r, int64_t value[NAGREED], trl_err *placed)
{
    bool held;
    const uint32_t spaces = find_patches(g, r, &held);
    trl_err err = TRL_OK;
    *placed = TRL_OK;
    if (held && !g->why) *placed = find_views(g, r);
    const bool refuses = spaces == 0 || *placed != TRL_OK;
    for (int tries = 0; tries < 2; ++tries) {
        value[LACKS] = refuses || g->why ? REFUSES : g->memory.spaces != spaces ? HAS_CHANGED : IS_READY;
        value[HELD] = held;
        TRL_TRY(agree(g->grid.sim, value));
        if (value[LACKS] != HAS_CHANGED || !value[HELD]) break;
        TRL_TRY(distribute(g, spaces));
    }
    if (value[LACKS] == IS_READY && value[HELD] && !g->memory.connected) TRL_TRY(connect(g, &value[LACKS]));
    if (value[LACKS] == IS_READY && value[HELD] && !held) *placed = find_views(g, r);
    if (value[LACKS] == REFUSES && value[HELD])
        g->missing = g->why    ? g->why
                     : *placed ? "a GPU has no memory left for them, or has failed"
                               : "some rank cannot";
done:
    return err;
}

/* One rank solves by the CPU if a GPU has failed. Several end: others do not wait to hear of it. */
static trl_err solve(trli_slabs_gpu *g, const trli_slabs_request *r, bool *done)
{
    const trl_simulation *sim = r->sim;
    int64_t value[NAGREED] = {0};
    trl_err err, local;
    TRL_TRY(prepare(g, r, value, &local));
    if (value[LACKS] != IS_READY || !value[HELD]) return TRL_OK;
    trli_slab_job job = {.kernels = &g->kernels,
                         .memory = &g->memory,
                         .compiled = sim->model->run->gpu_kernels,
                         .request = r,
                         .space = g->space,
                         .residual = g->residual,
                         .solution = g->solution};
    local = trli_slab_job_do(&job, local);
    if (trl_context_ranks(g->ctx) > 1) {
        TRL_TRY(local == TRL_ERR_MPI ? local : trli_agree_within(g->grid.sim, local));
    } else if (local != TRL_OK) {
        g->missing = "a GPU has failed";
        return r->add && job.wrote ? local : TRL_OK;
    }
    for (int p = 0; p < sim->layout->nlocal; ++p) trli_frame_patch_written_in(sim->frame, r->to, p, g->space[p]);
    *done = true;
done:
    return err;
}

trl_err trli_slabs_gpu_solve(trli_slabs_gpu *g, const trli_slabs_request *request, bool *done)
{
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(g->ctx, &list);
    *done = false;
    g->missing = NULL;
    const trl_err err = solve(g, request, done);
    if (err != TRL_OK || *done) return err;
    trli_diagnostics_forgive(g->ctx, said); /* the host solves, if devices give it the values */
    if (g->missing) warn(g, g->missing);
    return TRL_OK;
}

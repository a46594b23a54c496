/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The first write to memory, by the workers that will use it. */
#include <string.h>

#include "field_manager_impl.h"
#include "spatialops_impl.h"

void trli_poison(void *values, size_t bytes, trl_scalar_type type)
{
    static const uint64_t wide = 0x7ff4000000000bad;
    static const uint32_t narrow = 0x7fa00bad;
    char *at = values;
    if (trl_scalar_size(type) == sizeof wide)
        for (size_t i = 0; i + sizeof wide <= bytes; i += sizeof wide) memcpy(at + i, &wide, sizeof wide);
    else
        for (size_t i = 0; i + sizeof narrow <= bytes; i += sizeof narrow) memcpy(at + i, &narrow, sizeof narrow);
}

/* Part i of n of every block. Blocks hold the layers of their slowest axis one after the other, and that is the axis by
 * which kernels are cut first. */
typedef struct share {
    const trl_field_manager *manager;
    int nblocks;
    trl_block *const *block;
    int i, n;
} share;

static bool is_open(const trl_field_manager *m, const void *memory)
{
    return m->open && trli_open_memory_offset(m->open, memory) >= 0;
}

static trl_err touch_share(void *data, const trl_task_args *args, bool *done)
{
    enum { LINE = 64 };
    const share *s = data;
    const trl_context *ctx = s->manager->ctx;
    (void)args, (void)done;
    for (int b = 0; b < s->nblocks; ++b) {
        const trli_extent *extent = s->block[b]->copy[0].extent;
        size_t lines = extent->wanted / LINE, i = (size_t)s->i, n = (size_t)s->n;
        size_t begin = lines * i / n * LINE, end = i + 1 < n ? lines * (i + 1) / n * LINE : extent->wanted;
        char *memory = extent->memory;
        if (trl_context_pinned(ctx)) trli_topology_bind(&ctx->topology, s->i, memory + begin, end - begin);
        if (is_open(s->manager, memory)) trli_open_memory_settle(s->manager->open, memory + begin, end - begin);
        trli_poison(memory + begin, end - begin, s->block[b]->type);
    }
    return TRL_OK;
}

/* Narrow tasks: roots are dealt out to the workers in shares, as chunks are, and the workers' pools learn nothing from
 * them. */
trl_err trl_field_manager_touch(trl_field_manager *m, trl_workers *workers, int nblocks, trl_block *const *blocks)
{
    trl_graph *graph = NULL;
    trl_task task;
    trl_err err = TRL_OK;
    int n = workers ? trl_workers_count(workers) : 1;
    share *s = trli_new(m->ctx, (size_t)n, sizeof *s);
    if (!s) return trli_no_memory(m->ctx, NULL, "to touch %d blocks", nblocks);
    for (int b = 0; b < nblocks; ++b)
        if (!blocks[b]->copy[0].extent)
            TRL_TRY(trli_block_fail(blocks[b], TRL_ERR_USAGE, "has no memory to be touched: acquire it first"));
    for (int i = 0; i < n; ++i) s[i] = (share){m, nblocks, blocks, i, n};
    if (n == 1) {
        err = touch_share(s, NULL, NULL);
        goto done;
    }
    TRL_TRY(trl_graph_create(m->ctx, "touch", &graph));
    for (int i = 0; i < n; ++i) {
        const trl_task_desc desc = {.name = "touch", .variant = {{touch_share}}, .data = &s[i], .chunks = 1, .cost = 1};
        TRL_TRY(trl_graph_add_task(graph, &desc, &task));
    }
    TRL_TRY(trl_graph_freeze(graph));
    TRL_TRY(trl_graph_run(graph, workers, NULL));
done:
    trl_graph_destroy(&graph);
    trli_free(s);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The first write to memory, by those who will use it. */
#include <string.h>

#include "field_manager_impl.h"
#include "spatialops_impl.h"

void trli_poison(void *values, size_t bytes, trl_scalar_type type)
{
    static const uint64_t wide = 0x7ff4000000000bad;
    static const uint32_t narrow = 0x7fa00bad;
    size_t size = trl_scalar_size(type), n = bytes / size;
    const void *pattern = size == sizeof wide ? (const void *)&wide : &narrow;
    for (size_t i = 0; i < n; ++i) memcpy((char *)values + i * size, pattern, size);
}

typedef struct touching {
    const trl_field_manager *manager;
    int nblocks;
    trl_block *const *block;
} touching;

/* Part `chunk` of `chunks` of every block. Blocks hold the layers of their slowest axis one after the other, and that is the axis by
 * which kernels are cut first. */
static trl_err touch_share(void *data, const trl_task_args *args, bool *done)
{
    enum { LINE = 64 };
    const touching *t = data;
    const trli_topology *topology = &t->manager->ctx->topology;
    (void)done;
    for (int i = 0; i < t->nblocks; ++i) {
        const trli_extent *extent = t->block[i]->copy[0].extent;
        size_t lines = extent->wanted / LINE, chunk = (size_t)args->chunk, chunks = (size_t)args->chunks;
        size_t begin = lines * chunk / chunks * LINE, end = lines * (chunk + 1) / chunks * LINE;
        char *memory = extent->memory;
        if (chunk + 1 == chunks) end = extent->wanted;
        if (trl_context_pinned(t->manager->ctx)) trli_topology_bind(topology, args->chunk, memory + begin, end - begin);
        trli_poison(memory + begin, end - begin, t->block[i]->type);
    }
    return TRL_OK;
}

trl_err trl_field_manager_touch(trl_field_manager *m, trl_workers *workers, int nblocks, trl_block *const *blocks)
{
    touching t = {m, nblocks, blocks};
    const trl_task_desc desc = {
        .name = "touch", .run = touch_share, .data = &t, .chunks = workers ? trl_workers_count(workers) : 1, .cost = 1};
    trl_graph *graph = NULL;
    trl_task task;
    trl_err err = TRL_OK;
    for (int i = 0; i < nblocks; ++i)
        if (!blocks[i]->copy[0].extent)
            return trli_block_fail(blocks[i], TRL_ERR_USAGE, "has no memory to be touched: acquire it first");
    if (desc.chunks == 1) {
        bool done = true;
        return touch_share(&t, &(trl_task_args){.chunks = 1}, &done);
    }
    TRL_TRY(trl_graph_create(m->ctx, "touch", &graph));
    TRL_TRY(trl_graph_add_task(graph, &desc, &task));
    TRL_TRY(trl_graph_freeze(graph));
    TRL_TRY(trl_graph_run(graph, workers));
done:
    trl_graph_destroy(&graph);
    return err;
}

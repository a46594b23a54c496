/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory of the nodes of a run: blocks that never move. Each worker has free nodes of its own. */
#include <string.h>

#include "nodes_impl.h"

enum { KEEP = 4 * TRLI_NODES_FIRST /* free nodes that a worker keeps for itself */ };

trli_task_record *trli_node_record(const trli_run_state *run, int32_t task)
{
    return &trli_node_of(run, task)->record;
}

int32_t *trli_node_link(const trli_run_state *run, int32_t task)
{
    return &trli_node_of(run, task)->link;
}

const char *trli_node_name(const trli_run_state *run, int32_t task)
{
    return trli_node_of(run, task)->name;
}

int32_t trli_node_accesses(const trli_run_state *run, int32_t task, const trl_spawn_access **access)
{
    const trli_run_node *self = trli_node_of(run, task);
    *access = self->accesses;
    return self->naccesses;
}

int32_t trli_node_wants(const trli_run_state *run, int32_t task, const trli_want **want)
{
    const trli_run_node *self = trli_node_of(run, task);
    *want = self->nwants <= TRLI_SPAWN_WANTS ? self->want : self->many;
    return self->nwants;
}

void trli_nodes_destroy(trli_run_state *run)
{
    struct trli_nodes *nodes = run->nodes;
    trl_context *ctx = run->graph->ctx;
    if (nodes == NULL) return;
    for (int32_t i = 0; i < trli_nodes_start(nodes->blocks); ++i) {
        void *many = trli_node_at(run, i)->many;
        trl_memory_free(ctx, &many);
    }
    for (int32_t b = 0; b < nodes->blocks; ++b) {
        void *block = atomic_load_explicit(&nodes->block[b], memory_order_relaxed); /* no run is in progress */
        trl_memory_free(ctx, &block);
    }
    pthread_mutex_destroy(&nodes->lock);
    void *memory[] = {nodes->own, nodes};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) trl_memory_free(ctx, &memory[i]);
    run->nodes = NULL;
}

trl_err trli_nodes_create(trli_run_state *run)
{
    trl_err err;
    void *memory, *own = NULL;
    size_t workers = (size_t)run->view.workers;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, workers * sizeof(trli_free_nodes), "spawned tasks", &own));
    TRL_TRY(trl_memory_alloc(run->graph->ctx, sizeof(struct trli_nodes), "spawned tasks", &memory));
    run->nodes = memset(memory, 0, sizeof *run->nodes);
    run->nodes->own = memset(own, 0, workers * sizeof(trli_free_nodes));
    run->nodes->common = TRLI_NONE;
    for (size_t w = 0; w < workers; ++w) run->nodes->own[w].first = TRLI_NONE;
    pthread_mutex_init(&run->nodes->lock, NULL);
    own = NULL;
done:
    trl_memory_free(run->graph->ctx, &own);
    return err;
}

/* Make a block of new nodes for a worker. The lock is held. */
static trl_err grow(trli_run_state *run, trli_free_nodes *own)
{
    trl_err err;
    struct trli_nodes *nodes = run->nodes;
    void *memory;
    if (nodes->blocks == TRLI_NODES_BLOCKS)
        return trl_fail(run->graph->ctx, TRL_ERR_MEMORY, NULL,
                        "graph '%s': more than %d spawned tasks and events at once", run->graph->name,
                        trli_nodes_start(TRLI_NODES_BLOCKS));
    int32_t start = trli_nodes_start(nodes->blocks), size = trli_nodes_start(nodes->blocks + 1) - start;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, (size_t)size * sizeof(trli_run_node), "spawned tasks", &memory));
    trli_run_node *block = memset(memory, 0, (size_t)size * sizeof(trli_run_node));
    for (int32_t i = size - 1; i >= 0; --i) {
        block[i].link = own->first;
        own->first = start + i;
        /* Relaxed: published with the block. */
        atomic_store_explicit(&block[i].count, (uint64_t)1 << 32, memory_order_relaxed);
        atomic_store_explicit(&block[i].list, (uint64_t)1 << 32, memory_order_relaxed);
    }
    own->count += size;
    atomic_store_explicit(&nodes->block[nodes->blocks++], block, memory_order_release);
done:
    return err;
}

/* Move free nodes from the common list to a worker, or make new ones. */
static trl_err refill(trli_run_state *run, trli_free_nodes *own)
{
    struct trli_nodes *nodes = run->nodes;
    trl_err err = TRL_OK;
    pthread_mutex_lock(&nodes->lock);
    while (nodes->common != TRLI_NONE && own->count < TRLI_NODES_FIRST) {
        int32_t index = nodes->common;
        nodes->common = trli_node_at(run, index)->link;
        trli_node_at(run, index)->link = own->first;
        own->first = index;
        ++own->count;
    }
    if (own->first == TRLI_NONE) err = grow(run, own);
    pthread_mutex_unlock(&nodes->lock);
    return err;
}

trl_err trli_node_take(trli_run_state *run, const trli_worker *worker, int32_t *index)
{
    trl_err err = TRL_OK;
    trli_free_nodes *own = &run->nodes->own[worker->index];
    if (own->first == TRLI_NONE) TRL_TRY(refill(run, own));
    *index = own->first;
    own->first = trli_node_at(run, *index)->link;
    --own->count;
    ++own->live;
done:
    return err;
}

void trli_node_free(trli_run_state *run, const trli_worker *worker, int32_t index)
{
    struct trli_nodes *nodes = run->nodes;
    trli_free_nodes *own = &nodes->own[worker->index];
    trli_node_at(run, index)->link = own->first;
    own->first = index;
    --own->live;
    if (++own->count < KEEP) return;
    /* A worker that frees more nodes than it takes gives half of them back, in one piece. */
    int32_t first = own->first, last = first;
    for (int i = 1; i < KEEP / 2; ++i) last = trli_node_at(run, last)->link;
    own->first = trli_node_at(run, last)->link;
    own->count -= KEEP / 2;
    pthread_mutex_lock(&nodes->lock);
    trli_node_at(run, last)->link = nodes->common;
    nodes->common = first;
    pthread_mutex_unlock(&nodes->lock);
}

/* ---- the end of a run ---- */

int64_t trli_nodes_finish(trli_run_state *run)
{
    int64_t live = 0, spawned = 0;
    for (int w = 0; run->nodes && w < run->view.workers; ++w) {
        live += run->nodes->own[w].live;
        spawned += run->nodes->own[w].spawned;
        run->nodes->own[w].spawned = 0;
    }
    if (live != 0) run->dirty = true; /* events that never fired */
    return spawned;
}

void trli_nodes_clear(trli_run_state *run)
{
    struct trli_nodes *nodes = run->nodes;
    if (nodes == NULL) return;
    nodes->common = TRLI_NONE;
    for (int w = 0; w < run->view.workers; ++w) nodes->own[w] = (trli_free_nodes){.first = TRLI_NONE};
    for (int32_t i = trli_nodes_start(nodes->blocks) - 1; i >= 0; --i) {
        trli_run_node *self = trli_node_at(run, i);
        /* Relaxed: no worker is inside. */
        uint64_t next = trli_next_generation(atomic_load_explicit(&self->list, memory_order_relaxed));
        atomic_store_explicit(&self->count, next, memory_order_relaxed);
        atomic_store_explicit(&self->list, next, memory_order_relaxed);
        self->link = nodes->common;
        nodes->common = i;
    }
}

void trli_nodes_report(const trli_run_state *run, FILE *out, int most)
{
    int said = 0;
    for (int32_t i = 0; i < trli_nodes_start(run->nodes->blocks) && said < most; ++i) {
        const trli_run_node *self = trli_node_at(run, i);
        uint32_t missing = (uint32_t)atomic_load_explicit(&self->count, memory_order_relaxed);
        if (missing == 0) continue;
        if (self->record.flags & TRLI_TASK_EVENT)
            fprintf(out, "; an event waits for %u more signal%s", missing, missing == 1 ? "" : "s");
        else
            fprintf(out, "; '%s' waits for %u more event%s", self->name, missing, missing == 1 ? "" : "s");
        ++said;
    }
}

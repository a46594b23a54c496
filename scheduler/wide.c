/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The operator pool: wide tasks first in, first out. A task stays at the head until its chunks are handed out.
 *
 * A slot is stored and loaded with seq_cst: that publishes what the opening worker knows to be complete, and orders it with the activity of a
 * run. Head, tail and chunk counters only share out indices, so they are relaxed. */
#include <string.h>

#include "engine_impl.h"

/* No more shares than chunks. */
static int32_t shares_of(const trli_run *run, int32_t task)
{
    int32_t chunks = trli_graph_records(run->graph)[task].chunks;
    return chunks < run->wide.shares ? chunks : run->wide.shares;
}

trl_err trli_wide_create(trli_run *run)
{
    static const char what[] = "operator pool";
    trl_err err = TRL_OK;
    trli_wide_pool *wide = &run->wide;
    const trli_task_record *record = trli_graph_records(run->graph);
    size_t tasks = (size_t)run->graph->task_count;
    void *memory;
    int32_t n = 0;
    size_t shares = 0;
    wide->shares = run->view.workers;
    for (size_t t = 0; t < tasks; ++t) n += record[t].chunks > 1;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, ((size_t)n + 1) * sizeof *wide->slot, what, &memory));
    wide->slot = memory;
    if (n == 0) goto done;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, tasks * sizeof *wide->first_share, what, &memory));
    wide->first_share = memory;
    wide->count = n;
    for (size_t t = 0; t < tasks; ++t) {
        if (record[t].chunks == 1) continue;
        wide->first_share[t] = (int32_t)shares;
        shares += (size_t)shares_of(run, (int32_t)t);
    }
    TRL_TRY(trl_memory_alloc(run->graph->ctx, shares * sizeof *wide->share, what, &memory));
    wide->share = memory;
done:
    return err;
}

void trli_wide_destroy(trli_run *run)
{
    void *blocks[] = {(void *)run->wide.slot, run->wide.first_share, run->wide.share};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) trl_memory_free(run->graph->ctx, &blocks[i]);
}

void trli_wide_start(trli_run *run)
{
    trli_wide_pool *wide = &run->wide;
    atomic_store_explicit(&wide->head, 0, memory_order_relaxed);
    atomic_store_explicit(&wide->tail, 0, memory_order_relaxed);
    for (int32_t i = 0; i <= wide->count; ++i) atomic_store_explicit(&wide->slot[i], TRLI_NONE, memory_order_relaxed);
}

void trli_wide_open(trli_run *run, int32_t task)
{
    trli_share *share = &run->wide.share[run->wide.first_share[task]];
    for (int i = 0, n = shares_of(run, task); i < n;
         ++i) /* relaxed: published by the slot; a task is opened once in a run */
        atomic_store_explicit(&share[i].handed_out, 0, memory_order_relaxed);
    atomic_store_explicit(&share->complete, 0, memory_order_relaxed);
    int32_t at = atomic_fetch_add_explicit(&run->wide.tail, 1, memory_order_relaxed);
    atomic_store_explicit(&run->wide.slot[at], task, memory_order_seq_cst);
}

enum {
    BATCHES = 8,
    BATCH_MOST = 128
}; /* parts in which a share is taken, when there are many chunks; chunks taken at once */

int32_t trli_shares_take(trli_share *share, int32_t shares, int64_t chunks, int worker, int *count)
{
    for (int32_t i = 0; i < shares; ++i) {
        int32_t n = (worker + i) % shares;
        int32_t first = (int32_t)(chunks * n / shares), end = (int32_t)(chunks * (n + 1) / shares);
        _Atomic int32_t *handed_out = &share[n].handed_out;
        int32_t left = end - first - atomic_load_explicit(handed_out, memory_order_relaxed);
        if (left <= 0) continue;
        int32_t most = left / BATCHES < 1 ? 1 : left / BATCHES < BATCH_MOST ? left / BATCHES : BATCH_MOST;
        int32_t chunk = first + atomic_fetch_add_explicit(handed_out, most, memory_order_relaxed);
        *count = end - chunk < most ? end - chunk : most;
        if (chunk >= end) continue;
        if (chunk + most >= end) __builtin_prefetch(&share[(n + 1) % shares]); /* where it will look next */
        return chunk;
    }
    return TRLI_NONE;
}

/* A stale head only finds what is handed out already: then the exchange fails, or no chunk is left. */
int32_t trli_wide_take(trli_run *run, const trli_worker *worker, int *chunk, int *count)
{
    trli_wide_pool *wide = &run->wide;
    int32_t head = atomic_load_explicit(&wide->head, memory_order_relaxed);
    for (;;) {
        int32_t task = atomic_load_explicit(&wide->slot[head], memory_order_seq_cst);
        if (task == TRLI_NONE) return TRLI_NONE;
        *chunk = trli_shares_take(&wide->share[wide->first_share[task]], shares_of(run, task),
                                  trli_graph_records(run->graph)[task].chunks, worker->index, count);
        if (*chunk != TRLI_NONE) return task;
        /* Relaxed: the slot was loaded with acquire. */
        if (atomic_compare_exchange_strong_explicit(&wide->head, &head, head + 1, memory_order_relaxed,
                                                    memory_order_relaxed))
            ++head;
    }
}

bool trli_wide_visible(const trli_run *run)
{
    int32_t head = atomic_load_explicit(&run->wide.head, memory_order_relaxed);
    return atomic_load_explicit(&run->wide.slot[head], memory_order_seq_cst) != TRLI_NONE;
}

/* Release these chunks' writes; the last one acquires those of all. */
bool trli_wide_done(trli_run *run, int32_t task, int count)
{
    _Atomic int32_t *complete = &run->wide.share[run->wide.first_share[task]].complete;
    int32_t before = atomic_fetch_add_explicit(complete, count, memory_order_acq_rel);
    return before + count == trli_graph_records(run->graph)[task].chunks;
}

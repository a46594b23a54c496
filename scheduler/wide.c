/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The operator pool: wide tasks, first in, first out, in two queues. A task stays at the head until its chunks are
 * handed out.
 *
 * A slot is stored and loaded with seq_cst: that publishes everything that the opening worker knows to be complete,
 * and orders the slot with the activity of a run. Head, tail and chunk counters only deal out indices, so they are
 * relaxed. */
#include "engine_impl.h"

/* No more shares than chunks. */
static int32_t shares_of(const trli_run_state *run, int32_t task)
{
    int32_t chunks = trli_graph_records(run->graph)[task].chunks;
    return chunks < run->wide.shares ? chunks : run->wide.shares;
}

trl_err trli_wide_create(trli_run_state *run)
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
    for (int q = 0; q < TRLI_WIDE_QUEUES; ++q) {
        TRL_TRY(trl_memory_alloc(run->graph->ctx, ((size_t)n + 1) * sizeof *wide->queue[q].slot, what, &memory));
        wide->queue[q].slot = memory;
    }
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
    for (size_t t = 0; t < tasks; ++t)
        if (record[t].chunks > 1)
            trli_shares_deal(&wide->share[wide->first_share[t]], shares_of(run, (int32_t)t), record[t].chunks);
done:
    return err;
}

void trli_wide_destroy(trli_run_state *run)
{
    trli_wide_queue *queue = run->wide.queue;
    void *blocks[] = {(void *)queue[TRLI_WIDE_FIRST].slot, (void *)queue[TRLI_WIDE_OTHER].slot, run->wide.first_share,
                      run->wide.share};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) trl_memory_free(run->graph->ctx, &blocks[i]);
}

void trli_wide_start(trli_run_state *run)
{
    trli_wide_pool *wide = &run->wide;
    ++wide->generation;
    for (int q = 0; q < TRLI_WIDE_QUEUES; ++q) {
        trli_wide_queue *queue = &wide->queue[q];
        atomic_store_explicit(&queue->head, 0, memory_order_relaxed);
        atomic_store_explicit(&queue->tail, 0, memory_order_relaxed);
        for (int32_t i = 0; i <= wide->count; ++i)
            atomic_store_explicit(&queue->slot[i], TRLI_NONE, memory_order_relaxed);
    }
}

void trli_wide_open(trli_run_state *run, int32_t task)
{
    trli_share *share = &run->wide.share[run->wide.first_share[task]];
    atomic_store_explicit(&share->complete, 0, memory_order_relaxed); /* published by the slot */
    const bool first = trli_graph_records(run->graph)[task].urgency == 0;
    trli_wide_queue *queue = &run->wide.queue[first ? TRLI_WIDE_FIRST : TRLI_WIDE_OTHER];
    int32_t at = atomic_fetch_add_explicit(&queue->tail, 1, memory_order_relaxed);
    atomic_store_explicit(&queue->slot[at], task, memory_order_seq_cst);
}

void trli_shares_deal(trli_share *share, int32_t shares, int64_t chunks)
{
    for (int32_t n = 0; n < shares; ++n) {
        atomic_store_explicit(&share[n].handed_out, 0, memory_order_relaxed);
        share[n].first = (int32_t)(chunks * n / shares);
        share[n].count = (int32_t)(chunks * (n + 1) / shares) - share[n].first;
    }
}

static int32_t left_of(const trli_share *share, uint64_t handed_out, uint32_t generation)
{
    return handed_out >> 32 == generation ? share->count - (int32_t)(uint32_t)handed_out : share->count;
}

bool trli_share_over(const trli_share *share, uint32_t generation)
{
    return left_of(share, atomic_load_explicit(&share->handed_out, memory_order_seq_cst), generation) == 0;
}

enum {
    BATCHES = 8,     /* parts in which a share is taken if it has many chunks */
    BATCH_MOST = 128 /* chunks taken at once */
};

int32_t trli_shares_take(trli_share *share, int32_t shares, uint32_t generation, int worker, int *count)
{
    for (int32_t i = 0; i < shares; ++i) {
        const int32_t n = (worker + i) % shares;
        uint64_t before = atomic_load_explicit(&share[n].handed_out, memory_order_relaxed);
        for (int32_t left; (left = left_of(&share[n], before, generation)) > 0;) {
            const int32_t most = left / BATCHES < 1 ? 1 : left / BATCHES < BATCH_MOST ? left / BATCHES : BATCH_MOST;
            const uint64_t after = (uint64_t)generation << 32 | (uint32_t)(share[n].count - left + most);
            if (!atomic_compare_exchange_weak_explicit(&share[n].handed_out, &before, after, memory_order_relaxed,
                                                       memory_order_relaxed))
                continue;
            if (most == left) __builtin_prefetch(&share[(n + 1) % shares]); /* the share that it will look at next */
            *count = most;
            return share[n].first + share[n].count - left;
        }
    }
    return TRLI_NONE;
}

/* A stale head only finds tasks that are handed out already: then the exchange fails, or no chunk is left. */
static int32_t take(trli_run_state *run, trli_wide_queue *queue, const trli_worker *worker, int *chunk, int *count)
{
    trli_wide_pool *wide = &run->wide;
    int32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    for (;;) {
        int32_t task = atomic_load_explicit(&queue->slot[head], memory_order_seq_cst);
        if (task == TRLI_NONE) return TRLI_NONE;
        *chunk = trli_shares_take(&wide->share[wide->first_share[task]], shares_of(run, task), wide->generation,
                                  worker->index, count);
        if (*chunk != TRLI_NONE) return task;
        /* Relaxed: the slot was loaded with acquire. */
        if (atomic_compare_exchange_strong_explicit(&queue->head, &head, head + 1, memory_order_relaxed,
                                                    memory_order_relaxed))
            ++head;
    }
}

int32_t trli_wide_take(trli_run_state *run, const trli_worker *worker, int *chunk, int *count)
{
    int32_t task = take(run, &run->wide.queue[TRLI_WIDE_FIRST], worker, chunk, count);
    return task == TRLI_NONE ? take(run, &run->wide.queue[TRLI_WIDE_OTHER], worker, chunk, count) : task;
}

static bool is_visible(const trli_wide_queue *queue)
{
    int32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    return atomic_load_explicit(&queue->slot[head], memory_order_seq_cst) != TRLI_NONE;
}

bool trli_wide_visible(const trli_run_state *run)
{
    return is_visible(&run->wide.queue[TRLI_WIDE_FIRST]) || is_visible(&run->wide.queue[TRLI_WIDE_OTHER]);
}

/* Release the writes of these chunks; the last call acquires those of all. */
bool trli_wide_done(trli_run_state *run, int32_t task, int count)
{
    _Atomic int32_t *complete = &run->wide.share[run->wide.first_share[task]].complete;
    int32_t before = atomic_fetch_add_explicit(complete, count, memory_order_acq_rel);
    return before + count == trli_graph_records(run->graph)[task].chunks;
}

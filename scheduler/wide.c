/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The operator pool: wide tasks, first in, first out, in two queues. A task stays at the head until its chunks are
 * handed out: only those of the head are. Calls (calls.c) open a task again, perhaps while it still stands at the head,
 * with all of its chunks handed out: who opens it moves the head past it first. So each task is in a queue once.
 *
 * A slot is stored and loaded with seq_cst: that publishes everything that the opening worker knows to be complete, and
 * orders the slot, and the head, with the activity of a run. A worker that sees a later opening of a task than that at
 * the head also sees that the head has moved. Chunk counters only deal out indices, so they are relaxed. */
#include <string.h>

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
    size_t shares = 0, slots = 1;
    wide->shares = run->view.workers;
    for (size_t t = 0; t < tasks; ++t) n += record[t].chunks > 1;
    while (slots <= (size_t)n) slots *= 2;
    for (int q = 0; q < TRLI_WIDE_QUEUES; ++q) {
        trli_wide_queue *queue = &wide->queue[q];
        TRL_TRY(trl_memory_alloc(run->graph->ctx, slots * sizeof *queue->slot, what, &memory));
        queue->slot = memset(memory, 0, slots * sizeof *queue->slot);
        queue->mask = (uint32_t)slots - 1;
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
    wide->share = memset(memory, 0, shares * sizeof *wide->share);
    for (size_t t = 0; t < tasks; ++t)
        if (record[t].chunks > 1)
            trli_shares_deal(&wide->share[wide->first_share[t]], shares_of(run, (int32_t)t), record[t].chunks, 0);
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

/* What stands in the queues is handed out. Relaxed: no worker is inside. */
void trli_wide_start(trli_run_state *run)
{
    for (int q = 0; q < TRLI_WIDE_QUEUES; ++q) {
        trli_wide_queue *queue = &run->wide.queue[q];
        atomic_store_explicit(&queue->head, atomic_load_explicit(&queue->tail, memory_order_relaxed),
                              memory_order_relaxed);
    }
}

static void pass(trli_wide_queue *queue, uint32_t position)
{
    atomic_compare_exchange_strong_explicit(&queue->head, &position, position + 1, memory_order_seq_cst,
                                            memory_order_seq_cst);
}

/* Release: who sees the opening sees that the head has passed the one before. */
void trli_wide_open(trli_run_state *run, int32_t task)
{
    trli_wide_pool *wide = &run->wide;
    trli_share *share = &wide->share[wide->first_share[task]];
    const uint32_t openings = atomic_load_explicit(&share->openings, memory_order_relaxed); /* own */
    if (openings > 0) pass(&wide->queue[share->queue], share->position);
    atomic_store_explicit(&share->complete, 0, memory_order_relaxed); /* published by the opening and the slot */
    atomic_store_explicit(&share->openings, openings + 1, memory_order_release);
    share->queue = trli_graph_records(run->graph)[task].urgency == 0 ? TRLI_WIDE_FIRST : TRLI_WIDE_OTHER;
    trli_wide_queue *queue = &wide->queue[share->queue];
    share->position = atomic_fetch_add_explicit(&queue->tail, 1, memory_order_relaxed);
    atomic_store_explicit(&queue->slot[share->position & queue->mask],
                          (uint64_t)(share->position + 1) << 32 | (uint32_t)task, memory_order_seq_cst);
}

void trli_shares_deal(trli_share *share, int32_t shares, int64_t chunks, uint32_t generation)
{
    for (int32_t n = 0; n < shares; ++n) {
        atomic_store_explicit(&share[n].handed_out, (uint64_t)generation << 32, memory_order_relaxed);
        share[n].first = (int32_t)(chunks * n / shares);
        share[n].count = (int32_t)(chunks * (n + 1) / shares) - share[n].first;
    }
}

static int32_t left_of(const trli_share *share, uint64_t handed_out, uint32_t generation)
{
    const int32_t later = (int32_t)((uint32_t)(handed_out >> 32) - generation);
    return later < 0 ? share->count : later > 0 ? 0 : share->count - (int32_t)(uint32_t)handed_out;
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

/* The task at the head; TRLI_NONE: the queue is empty. */
static int32_t at_head(const trli_wide_queue *queue, uint32_t *head)
{
    for (;;) {
        *head = atomic_load_explicit(&queue->head, memory_order_seq_cst);
        const uint64_t slot = atomic_load_explicit(&queue->slot[*head & queue->mask], memory_order_seq_cst);
        if ((uint32_t)(slot >> 32) == *head + 1) return (int32_t)(uint32_t)slot;
        if (atomic_load_explicit(&queue->head, memory_order_seq_cst) == *head) return TRLI_NONE;
    }
}

static int32_t take(trli_run_state *run, trli_wide_queue *queue, const trli_worker *worker, int *chunk, int *count)
{
    trli_wide_pool *wide = &run->wide;
    uint32_t head;
    for (int32_t task; (task = at_head(queue, &head)) != TRLI_NONE;) {
        trli_share *share = &wide->share[wide->first_share[task]];
        const uint32_t openings = atomic_load_explicit(&share->openings, memory_order_acquire);
        if (atomic_load_explicit(&queue->head, memory_order_seq_cst) != head) continue; /* of a later opening */
        *chunk = trli_shares_take(share, shares_of(run, task), openings, worker->index, count);
        if (*chunk != TRLI_NONE) return task;
        pass(queue, head);
    }
    return TRLI_NONE;
}

int32_t trli_wide_take(trli_run_state *run, const trli_worker *worker, int *chunk, int *count)
{
    int32_t task = take(run, &run->wide.queue[TRLI_WIDE_FIRST], worker, chunk, count);
    return task == TRLI_NONE ? take(run, &run->wide.queue[TRLI_WIDE_OTHER], worker, chunk, count) : task;
}

static bool is_visible(const trli_wide_queue *queue)
{
    uint32_t head;
    return at_head(queue, &head) != TRLI_NONE;
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

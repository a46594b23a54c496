/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A ready queue shared by all workers. Each class of urgency is a row of slots, one for every task of the class, so
 * that a task enters by taking the next slot and nothing ever wraps or grows. A worker runs the successor that it just
 * released before it looks at the queue. A wide task stays at the head of its row until its chunks are handed out. */
#include <string.h>

#include "graph_impl.h"

enum {
    EMPTY = -1,
    TAKE_MOST = 16, /* tasks taken from the queue at once, where many are ready */
    SPINS = 4000,   /* looks at the queue before a worker sleeps */
};

typedef struct ready_row {
    alignas(TRLI_CACHE_LINE) _Atomic int32_t head; /* next slot to take from */
    alignas(TRLI_CACHE_LINE) _Atomic int32_t tail; /* next slot to fill */
    int32_t start;                                 /* first slot; behind the last one lies a slot that stays empty */
} ready_row;

/* A wide task's chunks fall into one share of neighbours per worker. A worker hands itself those of its own share, then of the
 * others': from task to task it meets the same part of the data, which its cache still holds. */
typedef struct chunk_share {
    alignas(TRLI_CACHE_LINE) _Atomic int32_t handed_out;
    _Atomic int32_t complete; /* chunks of the whole task; in the first share only */
} chunk_share;

typedef struct priority_state {
    ready_row row[TRLI_URGENCIES];
    alignas(TRLI_CACHE_LINE) _Atomic int32_t open_sinks; /* ends of the graph that are not complete */
    alignas(TRLI_CACHE_LINE) _Atomic int32_t poll_tasks; /* started and not complete */
    _Atomic bool polling;                                /* a worker owns `polls` and `started_seen` */
    _Atomic int64_t polled_ns;                           /* when a round ended last */
    _Atomic int32_t started_count;                       /* next place in started */
    alignas(TRLI_CACHE_LINE) trli_polls polls;
    int32_t started_seen;
    _Atomic trl_task *started; /* poll tasks in the order of their first calls; EMPTY: not yet */
    _Atomic int32_t *missing;  /* per task: predecessors that are not complete */
    _Atomic trl_task *slot;
    int32_t *wide; /* per task: the first of its shares */
    chunk_share *share;
    int32_t wide_count, shares; /* wide tasks; shares of each */
} priority_state;

/* The queue. A slot is stored and loaded with seq_cst: that publishes what the pushing worker knows to be complete
 * (release, acquire), and orders it with the count of sleepers, see trli_workers_sleep. Head, tail and chunk counters
 * only share out indices, so they are relaxed. */

static void push(priority_state *s, trl_workers *workers, trl_task task, uint8_t urgency)
{
    int32_t at = atomic_fetch_add_explicit(&s->row[urgency].tail, 1, memory_order_relaxed);
    atomic_store_explicit(&s->slot[at], task, memory_order_seq_cst);
    if (workers) trli_workers_wake_one(workers);
}

static bool visible(priority_state *s)
{
    for (int i = 0; i < TRLI_URGENCIES; ++i) {
        int32_t head = atomic_load_explicit(&s->row[i].head, memory_order_relaxed);
        if (atomic_load_explicit(&s->slot[head], memory_order_seq_cst) != EMPTY) return true;
    }
    return false;
}

/* How many narrow tasks to take at the head: few enough that every worker finds more. */
static int32_t count_takeable(const trl_graph *graph, priority_state *s, ready_row *row, int32_t head, int workers)
{
    int32_t ready = atomic_load_explicit(&row->tail, memory_order_relaxed) - head, most = ready / (4 * workers),
            count = 1;
    if (most > TAKE_MOST) most = TAKE_MOST;
    for (; count < most; ++count) {
        trl_task task = atomic_load_explicit(&s->slot[head + count], memory_order_seq_cst);
        if (task == EMPTY || trli_graph_records(graph)[task].chunks > 1) break;
    }
    return count;
}

/* The next chunk of a wide task for a worker, or -1. */
static int take_chunk(const trl_graph *graph, priority_state *s, trl_task task, int worker)
{
    int64_t chunks = trli_graph_records(graph)[task].chunks;
    for (int32_t i = 0; i < s->shares; ++i) {
        int32_t n = (worker + i) % s->shares;
        int32_t first = (int32_t)(chunks * n / s->shares), end = (int32_t)(chunks * (n + 1) / s->shares);
        _Atomic int32_t *handed_out = &s->share[s->wide[task] + n].handed_out;
        if (atomic_load_explicit(handed_out, memory_order_relaxed) >= end - first) continue;
        int32_t chunk = first + atomic_fetch_add_explicit(handed_out, 1, memory_order_relaxed);
        if (chunk < end) return chunk;
    }
    return -1;
}

/* Take a narrow task, or a chunk of a wide one, from a row. Returns the task or EMPTY. A stale head only finds what is
 * already taken: then the exchange fails, or the chunks are all handed out. */
static trl_task take_from(const trl_graph *graph, priority_state *s, ready_row *row, trli_worker *worker, int *chunk)
{
    int32_t head = atomic_load_explicit(&row->head, memory_order_relaxed);
    for (;;) {
        trl_task task = atomic_load_explicit(&s->slot[head], memory_order_seq_cst);
        if (task == EMPTY) return EMPTY;
        int chunks = trli_graph_records(graph)[task].chunks;
        int32_t count = 1;
        if (chunks > 1) {
            *chunk = take_chunk(graph, s, task, worker->index);
            if (*chunk >= 0) return task;
        } else {
            *chunk = 0;
            count = count_takeable(graph, s, row, head, trl_workers_count(worker->workers));
        }
        /* Relaxed: the slot was loaded with acquire. */
        bool moved = atomic_compare_exchange_strong_explicit(&row->head, &head, head + count, memory_order_relaxed,
                                                             memory_order_relaxed);
        if (chunks == 1 && moved) {
            worker->taken = head + 1;
            worker->taken_end = head + count;
            return task;
        }
        if (moved) head += count;
    }
}

/* The next thing to do: the successor just released, what was taken before, then the queue. */
static trl_task take(const trl_graph *graph, priority_state *s, trli_worker *worker, int *chunk)
{
    trl_task task = worker->next;
    *chunk = 0;
    worker->next = EMPTY;
    if (task != EMPTY) return task;
    if (worker->taken < worker->taken_end) {
        return atomic_load_explicit(&s->slot[worker->taken++], memory_order_relaxed); /* acquired when it was taken */
    }
    for (int i = 0; task == EMPTY && i < TRLI_URGENCIES; ++i) task = take_from(graph, s, &s->row[i], worker, chunk);
    return task;
}

static void task_done(trl_graph *graph, void *state, trli_worker *worker, trl_task task)
{
    priority_state *s = state;
    const trli_task_record *records = trli_graph_records(graph), *record = &records[task];
    if (record->first == record->end) ++worker->sinks;
    for (int32_t i = record->first; i < record->end; ++i) {
        trl_task after = graph->successors[i];
        /* Release what this task wrote; the last one to arrive acquires what the others wrote. */
        if (atomic_fetch_sub_explicit(&s->missing[after], 1, memory_order_acq_rel) > 1) continue;
        if (worker->next == EMPTY && records[after].chunks == 1) {
            worker->next = after;
        } else {
            push(s, worker->workers, after, records[after].urgency);
        }
    }
}

/* Polling. The owner of `polling` tests all started poll tasks; an idle worker owns it for as long as it is idle, so
 * that the other idle ones can sleep. */

/* Exchange and store are seq_cst: acquire and release of what the owner works on, and ordered with the count of
 * sleepers. */
static bool own_polling(priority_state *s)
{
    if (atomic_load_explicit(&s->poll_tasks, memory_order_relaxed) == 0) return false;
    if (atomic_load_explicit(&s->polling, memory_order_relaxed)) return false;
    return !atomic_exchange_explicit(&s->polling, true, memory_order_seq_cst);
}

/* Somebody idle must take over while poll tasks are left. */
static void disown_polling(priority_state *s, trl_workers *workers)
{
    atomic_store_explicit(&s->polling, false, memory_order_seq_cst);
    if (atomic_load_explicit(&s->poll_tasks, memory_order_relaxed) > 0) trli_workers_wake_one(workers);
}

static void poll_round(trl_graph *graph, priority_state *s, trli_worker *worker)
{
    for (; s->started_seen < graph->polls; ++s->started_seen) {
        /* Acquire: the first call, perhaps by another worker, happened before. */
        trl_task task = atomic_load_explicit(&s->started[s->started_seen], memory_order_acquire);
        if (task == EMPTY) break;
        s->polls.waiting[s->polls.count++] = task;
    }
    int32_t done = trli_polls_round(&s->polls, &trli_policy_priority, graph, s, worker);
    /* A hint: nothing is read on its account. */
    int32_t before = atomic_fetch_sub_explicit(&s->poll_tasks, done, memory_order_relaxed);
    if (done > 0 && before == done) trli_outstanding_end(graph);
    atomic_store_explicit(&s->polled_ns, s->polls.tested_ns, memory_order_relaxed);
}

/* A poll task asked for more: leave it to the owner of polling. */
static void start_polling(trl_graph *graph, priority_state *s, trl_workers *workers, trl_task task)
{
    int32_t at = atomic_fetch_add_explicit(&s->started_count, 1, memory_order_relaxed);
    atomic_store_explicit(&s->started[at], task, memory_order_release); /* publishes what the first call did */
    /* Ordered with the count of sleepers. */
    if (atomic_fetch_add_explicit(&s->poll_tasks, 1, memory_order_seq_cst) == 0) trli_outstanding_begin(graph);
    if (!atomic_load_explicit(&s->polling, memory_order_relaxed)) trli_workers_wake_one(workers);
}

/* Between two tasks, when the last round is long ago. */
static void poll_if_due(trl_graph *graph, priority_state *s, trli_worker *worker)
{
    if (atomic_load_explicit(&s->poll_tasks, memory_order_relaxed) == 0) return;
    int64_t since = trli_now_ns() - atomic_load_explicit(&s->polled_ns, memory_order_relaxed);
    if (since < TRLI_POLL_INTERVAL_NS || !own_polling(s)) return;
    poll_round(graph, s, worker);
    disown_polling(s, worker->workers);
}

/* Workers. */

static void execute(trl_graph *graph, priority_state *s, trli_worker *worker, trl_task task, int chunk)
{
    int chunks = trli_graph_records(graph)[task].chunks;
    bool done = trli_task_call(graph, worker, task, chunk, false);
    if (chunks > 1) {
        /* Release this chunk's writes; the last one acquires those of all. */
        _Atomic int32_t *complete = &s->share[s->wide[task]].complete;
        if (atomic_fetch_add_explicit(complete, 1, memory_order_acq_rel) < chunks - 1) return;
    }
    if (done) {
        task_done(graph, s, worker, task);
    } else {
        start_polling(graph, s, worker->workers, task);
    }
}

/* Count the ends of the graph that this worker completed. Returns whether the run is over. Release and acquire: whoever
 * sees zero sees all that the tasks wrote. seq_cst: ordered with the count of sleepers. */
static bool run_is_over(priority_state *s, trli_worker *worker)
{
    int32_t sinks = worker->sinks;
    worker->sinks = 0;
    if (sinks == 0) return atomic_load_explicit(&s->open_sinks, memory_order_acquire) == 0;
    if (atomic_fetch_sub_explicit(&s->open_sinks, sinks, memory_order_seq_cst) > sinks) return false;
    trli_workers_wake_all(worker->workers);
    return true;
}

/* What an idle worker must not sleep through. */
static bool something_to_do(void *state)
{
    priority_state *s = state;
    if (visible(s) || atomic_load_explicit(&s->open_sinks, memory_order_seq_cst) == 0) return true;
    return atomic_load_explicit(&s->poll_tasks, memory_order_seq_cst) > 0 &&
           !atomic_load_explicit(&s->polling, memory_order_seq_cst);
}

/* Wait for work, testing poll tasks. Returns false at the end of the run. */
static bool wait_for_work(trl_graph *graph, priority_state *s, trli_worker *worker)
{
    bool owner = false, over, found = false;
    int64_t since = 0; /* idle with poll tasks outstanding */
    for (int spins = 0; !(over = run_is_over(s, worker)) && !found; ++spins) {
        owner = owner || own_polling(s);
        if (since == 0 && atomic_load_explicit(&s->poll_tasks, memory_order_relaxed) > 0) since = trli_now_ns();
        if (owner) poll_round(graph, s, worker);
        found = worker->next != EMPTY || visible(s);
        if (found) continue;
        if (owner || spins < SPINS) {
            trli_workers_pause(worker->workers);
        } else {
            trli_workers_sleep(worker->workers, something_to_do, s);
            worker->woken = true;
            spins = 0;
        }
    }
    if (since) atomic_fetch_add_explicit(&graph->idle_ns, trli_now_ns() - since, memory_order_relaxed);
    if (owner) disown_polling(s, worker->workers);
    return !over;
}

static void run(trl_graph *graph, void *state, trli_worker *worker)
{
    priority_state *s = state;
    worker->next = EMPTY;
    worker->taken = worker->taken_end = 0;
    do {
        int chunk;
        for (trl_task task; (task = take(graph, s, worker, &chunk)) != EMPTY;) {
            /* One is woken for each push; whoever was, and leaves something behind, wakes the next. */
            if (worker->woken && visible(s)) trli_workers_wake_one(worker->workers);
            worker->woken = false;
            execute(graph, s, worker, task, chunk);
            if (graph->polls > 0) poll_if_due(graph, s, worker);
        }
    } while (wait_for_work(graph, s, worker));
}

/* Setup. Relaxed stores: the workers enter a run after its caller opened it with release. */

static void get_ready(trl_graph *graph, void *state)
{
    priority_state *s = state;
    int32_t start = 0, slots = graph->task_count + TRLI_URGENCIES;
    for (int32_t i = 0; i < slots; ++i) atomic_store_explicit(&s->slot[i], EMPTY, memory_order_relaxed);
    for (int i = 0; i < TRLI_URGENCIES; ++i) {
        atomic_store_explicit(&s->row[i].head, start, memory_order_relaxed);
        atomic_store_explicit(&s->row[i].tail, start, memory_order_relaxed);
        start += graph->urgency_count[i] + 1;
    }
    for (int32_t i = 0; i < s->wide_count * s->shares; ++i) {
        atomic_store_explicit(&s->share[i].handed_out, 0, memory_order_relaxed);
        atomic_store_explicit(&s->share[i].complete, 0, memory_order_relaxed);
    }
    for (int32_t i = 0; i < graph->polls; ++i) atomic_store_explicit(&s->started[i], EMPTY, memory_order_relaxed);
    atomic_store_explicit(&s->started_count, 0, memory_order_relaxed);
    s->started_seen = s->polls.count = 0;
    atomic_store_explicit(&s->poll_tasks, 0, memory_order_relaxed);
    atomic_store_explicit(&s->open_sinks, graph->sinks, memory_order_relaxed);
    for (trl_task t = 0; t < graph->task_count; ++t) {
        atomic_store_explicit(&s->missing[t], graph->predecessors[t], memory_order_relaxed);
        if (graph->predecessors[t] == 0) push(s, NULL, t, trli_graph_records(graph)[t].urgency);
    }
}

static void invalidate(trl_graph *graph, void **state)
{
    priority_state *s = *state;
    if (s == NULL) return;
    void *parts[] = {(void *)s->started, (void *)s->missing, (void *)s->slot, s->wide, s->share, s->polls.waiting};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) trl_memory_free(graph->ctx, &parts[i]);
    trl_memory_free(graph->ctx, state);
}

static trl_err alloc_arrays(trl_graph *graph, priority_state *s)
{
    static const char what[] = "priority policy";
    trl_err err;
    trl_context *ctx = graph->ctx;
    size_t tasks = (size_t)graph->task_count, polls = (size_t)graph->polls;
    void *memory;
    TRL_TRY(trl_memory_alloc(ctx, polls * sizeof *s->started, what, &memory));
    s->started = memory;
    TRL_TRY(trl_memory_alloc(ctx, polls * sizeof *s->polls.waiting, what, &memory));
    s->polls.waiting = memory;
    TRL_TRY(trl_memory_alloc(ctx, tasks * sizeof *s->missing, what, &memory));
    s->missing = memory;
    TRL_TRY(trl_memory_alloc(ctx, (tasks + TRLI_URGENCIES) * sizeof *s->slot, what, &memory));
    s->slot = memory;
    TRL_TRY(trl_memory_alloc(ctx, tasks * sizeof *s->wide, what, &memory));
    s->wide = memory;
    TRL_TRY(trl_memory_alloc(ctx, (size_t)s->wide_count * (size_t)s->shares * sizeof *s->share, what, &memory));
    s->share = memory;
done:
    return err;
}

static trl_err setup(trl_graph *graph, void **state)
{
    trl_err err;
    const trli_task_record *records = trli_graph_records(graph);
    TRL_TRY(trl_memory_alloc(graph->ctx, sizeof(priority_state), "priority policy", state));
    priority_state *s = memset(*state, 0, sizeof *s);
    for (trl_task t = 0; t < graph->task_count; ++t) s->wide_count += records[t].chunks > 1;
    s->shares = graph->ctx->threads;
    TRL_TRY(alloc_arrays(graph, s));
    int32_t wide = 0;
    for (trl_task t = 0; t < graph->task_count; ++t) s->wide[t] = records[t].chunks > 1 ? s->shares * wide++ : -1;
    get_ready(graph, s);
done:
    return err;
}

const trli_policy trli_policy_priority = {
    .parallel = true,
    .setup = setup,
    .invalidate = invalidate,
    .run = run,
    .task_done = task_done,
    .finish = get_ready,
};

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Topological, first in first out, on the caller alone: the reference that every other policy must match. */
#include <string.h>

#include "graph_impl.h"

typedef struct serial_state {
    int32_t *missing; /* per task: predecessors that are not complete */
    trl_task *queue;  /* every task passes through it once */
    int32_t head, tail, complete;
    trli_polls polls;
} serial_state;

static void get_ready(trl_graph *graph, void *data)
{
    serial_state *s = data;
    s->head = s->tail = s->complete = s->polls.count = 0;
    if (graph->task_count > 0) memcpy(s->missing, graph->predecessors, (size_t)graph->task_count * sizeof *s->missing);
    for (trl_task t = 0; t < graph->task_count; ++t) {
        if (s->missing[t] == 0) s->queue[s->tail++] = t;
    }
}

static void invalidate(trl_graph *graph, void **state)
{
    serial_state *s = *state;
    if (s == NULL) return;
    void *parts[] = {s->missing, s->queue, s->polls.waiting};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) trl_memory_free(graph->ctx, &parts[i]);
    trl_memory_free(graph->ctx, state);
}

static trl_err setup(trl_graph *graph, void **state)
{
    trl_err err;
    size_t n = (size_t)graph->task_count;
    void *memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, sizeof(serial_state), "serial policy", state));
    serial_state *s = memset(*state, 0, sizeof *s);
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *s->missing, "serial policy", &memory));
    s->missing = memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *s->queue, "serial policy", &memory));
    s->queue = memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, (size_t)graph->polls * sizeof *s->polls.waiting, "serial policy", &memory));
    s->polls.waiting = memory;
    get_ready(graph, s);
done:
    return err;
}

static void task_done(trl_graph *graph, void *state, trli_worker *worker, trl_task task)
{
    (void)worker;
    serial_state *s = state;
    const trli_task_record *record = &trli_graph_records(graph)[task];
    for (int32_t i = record->first; i < record->end; ++i) {
        trl_task after = graph->successors[i];
        if (--s->missing[after] == 0) s->queue[s->tail++] = after;
    }
    ++s->complete;
}

/* Call the task at the head of the queue. */
static void execute(trl_graph *graph, serial_state *s, trli_worker *worker)
{
    trl_task task = s->queue[s->head++];
    int chunks = trli_graph_records(graph)[task].chunks;
    bool done = true;
    for (int chunk = 0; chunk < chunks; ++chunk) done = trli_task_call(graph, worker, task, chunk, false);
    if (done) {
        task_done(graph, s, worker, task);
        return;
    }
    if (s->polls.count == 0) trli_outstanding_begin(graph);
    s->polls.waiting[s->polls.count++] = task;
}

/* Test poll tasks; with nothing else to do, until one is complete. */
static void poll(trl_graph *graph, serial_state *s, trli_worker *worker)
{
    bool idle = s->head == s->tail;
    int64_t since = trli_now_ns();
    if (!idle && since - s->polls.tested_ns < TRLI_POLL_INTERVAL_NS) return;
    while (trli_polls_round(&s->polls, &trli_policy_serial, graph, s, worker) == 0 && idle)
        trli_workers_pause(worker->workers);
    if (idle) atomic_fetch_add_explicit(&graph->idle_ns, trli_now_ns() - since, memory_order_relaxed);
    if (s->polls.count == 0) trli_outstanding_end(graph);
}

static void run(trl_graph *graph, void *state, trli_worker *worker)
{
    serial_state *s = state;
    while (s->complete < graph->task_count) {
        if (s->head < s->tail) execute(graph, s, worker);
        if (s->polls.count > 0) poll(graph, s, worker);
    }
}

const trli_policy trli_policy_serial = {
    .parallel = false,
    .setup = setup,
    .invalidate = invalidate,
    .run = run,
    .task_done = task_done,
    .finish = get_ready,
};

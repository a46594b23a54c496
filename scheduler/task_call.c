/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "graph_impl.h"

static void keep_first_error(trl_graph *graph, trl_err err)
{
    int none = TRL_OK;
    atomic_compare_exchange_strong_explicit(&graph->error, &none, (int)err, memory_order_relaxed, memory_order_relaxed);
}

/* A started poll task is never dropped: what it waits for (a message under way) must arrive before its memory is used
 * again. */
bool trli_task_call(trl_graph *graph, trli_worker *worker, trl_task task, int chunk, bool again)
{
    const trli_task_record *record = &trli_graph_records(graph)[task];
    bool failed = atomic_load_explicit(&graph->error, memory_order_relaxed) != TRL_OK;
    if (failed && !again && !(record->flags & TRL_TASK_ALWAYS)) return true;
    trl_task_args args = {.chunk = chunk, .chunks = record->chunks, .worker = worker->index, .failed = failed};
    bool done = true;
    int64_t start = graph->timing ? trli_now_ns() : 0;
    trl_err err = record->run(record->data, &args, &done);
    if (err != TRL_OK) keep_first_error(graph, err);
    done = done || err != TRL_OK || !(record->flags & TRL_TASK_POLL);
    /* Of a poll task only the last call counts: the others are waiting. */
    if (graph->timing && done) {
        atomic_fetch_add_explicit(&graph->task_ns[task], trli_now_ns() - start, memory_order_relaxed);
    }
    return done;
}

void trli_outstanding_begin(trl_graph *graph)
{
    atomic_fetch_sub_explicit(&graph->outstanding_ns, trli_now_ns(), memory_order_relaxed);
}

void trli_outstanding_end(trl_graph *graph)
{
    atomic_fetch_add_explicit(&graph->outstanding_ns, trli_now_ns(), memory_order_relaxed);
}

int32_t trli_polls_round(trli_polls *polls, const trli_policy *policy, trl_graph *graph, void *state,
                         trli_worker *worker)
{
    int32_t tested = polls->count, kept = 0;
    for (int32_t i = 0; i < tested; ++i) {
        trl_task task = polls->waiting[i];
        if (trli_task_call(graph, worker, task, 0, true)) {
            policy->task_done(graph, state, worker, task);
        } else {
            polls->waiting[kept++] = task;
        }
    }
    polls->count = kept;
    polls->tested_ns = trli_now_ns();
    return tested - kept;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Poll tasks that asked to be called again. Their owner tests all of them in turns: an idle worker for as long as it
 * is idle, else a busy worker at intervals between two tasks, so that other idle workers can sleep. */
#include "context_impl.h"
#include "engine_impl.h"

enum { INTERVAL_NS = 20000 };

void trli_polls_start(trli_run_state *run)
{
    trli_polls *polls = &run->polls; /* relaxed: no worker is inside yet */
    atomic_store_explicit(&polls->open, 0, memory_order_relaxed);
    atomic_store_explicit(&polls->owned, false, memory_order_relaxed);
    atomic_store_explicit(&polls->started, TRLI_NONE, memory_order_relaxed);
    polls->waiting = TRLI_NONE;
}

/* The time from the start of the first waiting task to the end of the last one is the sum of the ends minus the
 * starts: the sum is right in either order, from two threads. Relaxed: read after the run, or for the time so far. */
static void add_outstanding(trli_run_state *run, int64_t ns)
{
    atomic_fetch_add_explicit(&run->outstanding_ns, ns, memory_order_relaxed);
}

/* While poll tasks are open the sum lacks its last end, which is at least the present time. The clock is read before
 * the sum: the result never exceeds the later one. */
int64_t trli_polls_outstanding(const trli_run_state *run)
{
    const _Atomic int64_t *sum = &run->outstanding_ns;
    int64_t ns = atomic_load_explicit(sum, memory_order_relaxed);
    if (ns >= 0) return ns;
    int64_t now = trli_now_ns();
    ns = atomic_load_explicit(sum, memory_order_relaxed);
    return ns < 0 ? ns + now : ns;
}

/* seq_cst: a worker that finds a run quiet has seen the count. Release: the owner acquires the work of the first
 * call. */
void trli_poll_later(trli_run_state *run, int32_t task)
{
    trli_polls *polls = &run->polls;
    int64_t now = trli_now_ns();
    if (atomic_fetch_add_explicit(&polls->open, 1, memory_order_seq_cst) == 0) add_outstanding(run, -now);
    int32_t first = atomic_load_explicit(&polls->started, memory_order_relaxed);
    do *trli_link(run, task) = first;
    while (!atomic_compare_exchange_weak_explicit(&polls->started, &first, task, memory_order_release,
                                                  memory_order_relaxed));
}

/* Acquire and release of the data that the owner works on. */
bool trli_polls_own(trli_run_state *run)
{
    trli_polls *polls = &run->polls;
    if (atomic_load_explicit(&polls->open, memory_order_relaxed) == 0) return false;
    if (atomic_load_explicit(&polls->owned, memory_order_relaxed)) return false;
    return !atomic_exchange_explicit(&polls->owned, true, memory_order_acquire);
}

/* Another idle worker looks for poll tasks without an owner before it sleeps, and again after the longest sleep. */
void trli_polls_disown(trli_run_state *run)
{
    atomic_store_explicit(&run->polls.owned, false, memory_order_release);
    if (atomic_load_explicit(&run->polls.open, memory_order_relaxed) > 0) trli_workers_wake_one(run->workers);
}

void trli_polls_round(trli_run_state *run, trli_worker *worker)
{
    trli_polls *polls = &run->polls;
    int32_t fresh = atomic_exchange_explicit(&polls->started, TRLI_NONE, memory_order_acquire);
    while (fresh != TRLI_NONE) {
        int32_t next = *trli_link(run, fresh);
        *trli_link(run, fresh) = polls->waiting;
        polls->waiting = fresh;
        fresh = next;
    }
    int32_t done = 0, kept = TRLI_NONE;
    for (int32_t task = polls->waiting; task != TRLI_NONE;) {
        int32_t next = *trli_link(run, task);
        if (trli_task_call(run, worker, task, 0, true)) {
            trli_complete(run, worker, task);
            ++done;
        } else {
            *trli_link(run, task) = kept;
            kept = task;
        }
        task = next;
    }
    polls->waiting = kept;
    trli_agree_go_on(run->graph->ctx);
    trli_notice_look(run->graph->ctx, done > 0);
    /* After the successors were released: a run with open poll tasks is not quiet. */
    if (done > 0 && atomic_fetch_sub_explicit(&polls->open, done, memory_order_seq_cst) == done)
        add_outstanding(run, trli_now_ns());
    atomic_store_explicit(&polls->tested_ns, trli_now_ns(), memory_order_relaxed); /* only a hint when to test again */
}

bool trli_polls_wanted(const trli_run_state *run)
{
    return atomic_load_explicit(&run->polls.open, memory_order_relaxed) > 0 || trli_agree_goes_on(run->graph->ctx);
}

void trli_polls_if_due(trli_run_state *run, trli_worker *worker)
{
    trli_polls *polls = &run->polls;
    trl_context *ctx = run->graph->ctx;
    const bool open = atomic_load_explicit(&polls->open, memory_order_relaxed) > 0;
    if (!open && !trli_agree_goes_on(ctx)) return;
    const int64_t now = trli_now_ns();
    if (now - atomic_load_explicit(&polls->tested_ns, memory_order_relaxed) < INTERVAL_NS) return;
    if (!open) {
        atomic_store_explicit(&polls->tested_ns, now, memory_order_relaxed);
        trli_agree_go_on(ctx);
    } else if (trli_polls_own(run)) {
        trli_polls_round(run, worker);
        trli_polls_disown(run);
    }
}

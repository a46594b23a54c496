/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "graph_impl.h"

enum {
    OPEN = 1,     /* bit of the gate: workers may enter the run */
    INSIDE = 2,   /* added to the gate by each worker inside the run */
    SPINS = 2000, /* looks at the gate between runs before a worker sleeps */
};

struct trl_workers {
    trl_context *ctx;
    const char *name;
    const trli_policy *policy;
    trli_policy_index index;
    int count, started; /* workers, the caller of trl_graph_run among them; threads started */
    bool yields, pins;
    hwloc_bitmap_t caller_binding; /* of the creating thread, before it was pinned */
    trli_worker *worker;
    trl_graph *graph; /* of the run behind the gate */

    alignas(TRLI_CACHE_LINE) _Atomic int gate;
    _Atomic bool stopping, busy;
    alignas(TRLI_CACHE_LINE) _Atomic int sleepers;
    pthread_mutex_t lock; /* for going to sleep and waking up */
    pthread_cond_t wake;
};

const trli_policy *trli_policy_get(trli_policy_index index)
{
    static const trli_policy *const table[TRLI_POLICIES] = {
        [TRLI_SERIAL] = &trli_policy_serial,
        [TRLI_PRIORITY] = &trli_policy_priority,
    };
    return table[index];
}

/* Waiting. */

void trli_workers_pause(const trl_workers *workers)
{
    if (workers->yields) {
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* seq_cst here and at the stores that ready() looks at: of a worker going to sleep and one that makes work, at least
 * one sees the other. The lock is held from the count to the wait, so a waker that saw the count cannot signal in
 * between. */
void trli_workers_sleep(trl_workers *workers, bool (*ready)(void *arg), void *arg)
{
    pthread_mutex_lock(&workers->lock);
    atomic_fetch_add_explicit(&workers->sleepers, 1, memory_order_seq_cst);
    if (!ready(arg)) pthread_cond_wait(&workers->wake, &workers->lock);
    atomic_fetch_sub_explicit(&workers->sleepers, 1, memory_order_relaxed); /* too high a count only costs a signal */
    pthread_mutex_unlock(&workers->lock);
}

void trli_workers_wake_one(trl_workers *workers)
{
    if (atomic_load_explicit(&workers->sleepers, memory_order_seq_cst) == 0) return;
    pthread_mutex_lock(&workers->lock);
    pthread_cond_signal(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
}

void trli_workers_wake_all(trl_workers *workers)
{
    if (atomic_load_explicit(&workers->sleepers, memory_order_seq_cst) == 0) return;
    pthread_mutex_lock(&workers->lock);
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
}

/* Threads. */

static bool gate_open_or_stopping(void *arg)
{
    trl_workers *w = arg;
    return (atomic_load_explicit(&w->gate, memory_order_seq_cst) & OPEN) ||
           atomic_load_explicit(&w->stopping, memory_order_seq_cst);
}

/* Acquire: what the caller of the run wrote before it opened the gate. */
static bool enter(trl_workers *w)
{
    int gate = atomic_load_explicit(&w->gate, memory_order_relaxed);
    while (gate & OPEN) {
        if (atomic_compare_exchange_weak_explicit(&w->gate, &gate, gate + INSIDE, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void *work(void *arg)
{
    trli_worker *worker = arg;
    trl_workers *w = worker->workers;
    if (w->pins) trli_topology_pin(&w->ctx->topology, worker->index);
    for (int spins = 0; !atomic_load_explicit(&w->stopping, memory_order_relaxed); ++spins) {
        if (enter(w)) {
            w->policy->run(w->graph, w->graph->state[w->index], worker);
            /* Release: this worker's last look at the graph comes before the caller's return. */
            atomic_fetch_sub_explicit(&w->gate, INSIDE, memory_order_release);
            spins = 0;
        } else if (spins < SPINS) {
            trli_workers_pause(w);
        } else {
            trli_workers_sleep(w, gate_open_or_stopping, w);
            worker->woken = true;
            spins = 0;
        }
    }
    return NULL;
}

static trl_err start_threads(trl_workers *w)
{
    for (int i = 1; i < w->count; ++i) {
        int status = pthread_create(&w->worker[i].thread, NULL, work, &w->worker[i]);
        if (status != 0) {
            return trl_fail(w->ctx, TRL_ERR_MEMORY, NULL, "cannot start thread %d of %d: %s; use fewer threads", i + 1,
                            w->count, strerror(status));
        }
        w->started = i;
    }
    return TRL_OK;
}

/* The creating thread is worker 0; its own binding comes back when the workers go. */
static void pin_caller(trl_workers *w)
{
    hwloc_topology_t machine = w->ctx->topology.machine;
    w->caller_binding = hwloc_bitmap_alloc();
    if (w->caller_binding && hwloc_get_cpubind(machine, w->caller_binding, HWLOC_CPUBIND_THREAD) == 0) {
        trli_topology_pin(&w->ctx->topology, 0);
    }
}

static void unpin_caller(trl_workers *w)
{
    if (w->caller_binding == NULL) return;
    if (!hwloc_bitmap_iszero(w->caller_binding)) {
        hwloc_set_cpubind(w->ctx->topology.machine, w->caller_binding, HWLOC_CPUBIND_THREAD);
    }
    hwloc_bitmap_free(w->caller_binding);
}

/* Creation. */

typedef struct policy_row {
    const char *name;
    trli_policy_index index;
} policy_row;

static trl_err find_policy(trl_context *ctx, const char *name, const policy_row **row)
{
    static const policy_row table[] = {
#define POLICY_ROW(name, index) {#name, TRLI_##index},
        TRLI_POLICY_LIST(POLICY_ROW)
#undef POLICY_ROW
    };
#define POLICY_NAME(name, index) " " #name
    static const char known[] = TRLI_POLICY_LIST(POLICY_NAME);
#undef POLICY_NAME
    *row = NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        if (strcmp(name, table[i].name) == 0) *row = &table[i];
    }
    return *row ? TRL_OK : trl_fail(ctx, TRL_ERR_INPUT, NULL, "unknown scheduler '%s'; known are:%s", name, known);
}

static void free_workers(trl_workers *w)
{
    trl_context *ctx = w->ctx;
    void *memory = w;
    atomic_store_explicit(&w->stopping, true, memory_order_seq_cst); /* seen by gate_open_or_stopping */
    trli_workers_wake_all(w);
    for (int i = 1; i <= w->started; ++i) pthread_join(w->worker[i].thread, NULL);
    unpin_caller(w);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    --ctx->workers_alive;
    void *array = w->worker;
    trl_memory_free(ctx, &array);
    trl_memory_free(ctx, &memory);
}

trl_err trl_workers_create(trl_context *ctx, const char *policy, trl_workers **result)
{
    trl_err err;
    trl_workers *w = NULL;
    const policy_row *row;
    void *memory;
    *result = NULL;
    TRL_TRY(find_policy(ctx, policy, &row));
    TRL_TRY(trl_memory_alloc(ctx, sizeof *w, "workers", &memory));
    w = memset(memory, 0, sizeof *w);
    w->ctx = ctx;
    w->name = row->name;
    w->index = row->index;
    w->policy = trli_policy_get(row->index);
    w->count = w->policy->parallel ? ctx->threads : 1;
    w->yields = ctx->topology.shared || ctx->threads > ctx->topology.cores;
    w->pins = w->policy->parallel && trl_context_pinned(ctx);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    ++ctx->workers_alive;
    TRL_TRY(trl_memory_alloc(ctx, (size_t)w->count * sizeof *w->worker, "workers", &memory));
    w->worker = memset(memory, 0, (size_t)w->count * sizeof *w->worker);
    for (int i = 0; i < w->count; ++i) w->worker[i] = (trli_worker){.workers = w, .index = i};
    TRL_TRY(start_threads(w));
    if (w->pins) pin_caller(w);
    *result = w;
    w = NULL;
done:
    if (w) free_workers(w);
    return err;
}

void trl_workers_destroy(trl_workers **workers)
{
    if (*workers) free_workers(*workers);
    *workers = NULL;
}

int trl_workers_count(const trl_workers *workers)
{
    return workers->count;
}

const char *trl_workers_policy(const trl_workers *workers)
{
    return workers->name;
}

/* Runs. */

static void run_with_all(trl_graph *graph, trl_workers *w, void *state)
{
    bool others = w->count > 1;
    w->graph = graph;
    if (others) {
        /* Release: the state of the graph, ready for this run. seq_cst: see trli_workers_sleep. */
        atomic_fetch_or_explicit(&w->gate, OPEN, memory_order_seq_cst);
        trli_workers_wake_all(w);
    }
    w->policy->run(graph, state, &w->worker[0]);
    if (others) {
        atomic_fetch_and_explicit(&w->gate, ~OPEN, memory_order_relaxed); /* from here on nobody enters */
        /* Acquire: the last looks of the others at the graph. */
        while (atomic_load_explicit(&w->gate, memory_order_acquire) != 0) trli_workers_pause(w);
    }
    w->graph = NULL;
}

static trl_err check_run(trl_graph *graph, trl_workers *w)
{
    if (!graph->frozen) {
        return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "graph '%s' is not frozen; call trl_graph_freeze first",
                        graph->name);
    }
    if (graph->ctx != w->ctx) {
        return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "graph '%s' and the workers belong to different contexts",
                        graph->name);
    }
    /* Relaxed: only keeps out misuse; a caller that may run hands over by its own means. */
    if (atomic_exchange_explicit(&w->busy, true, memory_order_relaxed)) {
        return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "graph '%s' cannot run: these workers are running a graph",
                        graph->name);
    }
    return TRL_OK;
}

static double summed_task_seconds(const trl_graph *graph)
{
    int64_t ns = 0;
    for (trl_task t = 0; t < graph->task_count; ++t)
        ns += atomic_load_explicit(&graph->task_ns[t], memory_order_relaxed);
    return 1e-9 * (double)ns;
}

trl_err trl_graph_run(trl_graph *graph, trl_workers *w)
{
    trl_err err;
    TRL_TRY(check_run(graph, w));
    void *state = graph->state[w->index];
    double before = graph->timing ? summed_task_seconds(graph) : 0.0;
    int64_t start = graph->timing ? trli_now_ns() : 0;
    atomic_store_explicit(&graph->error, TRL_OK, memory_order_relaxed); /* published by the gate */
    atomic_store_explicit(&graph->idle_ns, 0, memory_order_relaxed);
    run_with_all(graph, w, state);
    graph->idle_share += (double)atomic_load_explicit(&graph->idle_ns, memory_order_relaxed) / w->count;
    if (graph->timing) {
        graph->timed_wall += 1e-9 * (double)(trli_now_ns() - start);
        graph->timed_share += (summed_task_seconds(graph) - before) / w->count;
        ++graph->timed_runs;
    }
    ++graph->runs;
    w->policy->finish(graph, state);
    err = (trl_err)atomic_load_explicit(&graph->error, memory_order_relaxed);
    atomic_store_explicit(&w->busy, false, memory_order_relaxed);
done:
    return err;
}

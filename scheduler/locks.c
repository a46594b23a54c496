/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Locks and uses of resources: multi-granularity locking (Gray, Lorie, Putzolu, Traiger 1976) by tasks that never
 * block a worker.
 *
 * A task takes what it locks and uses, and every ancestor of these in mode USE_BELOW or LOCK_BELOW: each resource
 * once, in ascending order. So any two tasks that exclude each other meet in the word of one resource, and taking a
 * resource means adding one to a count in its word if no other count forbids that.
 *
 * A waiting task holds nothing: a task that cannot have one resource gives back those it took before and puts itself
 * on the list of that resource, and the worker continues with another task. Whoever takes a task off the list makes
 * it ready; the task then starts over.
 *
 * No wake-up is lost. Call a mode of a resource *due* when tasks wait for it and the counts allow it; the word shows
 * both. (1) A mode becomes due only by a release, one atomic operation on the word: a task sets its waiting bit by
 * an exchange that fails if the counts have come to allow its mode, and taking only adds to the counts. (2) A
 * release leaves a word that shows whether a mode is due; if so, the releasing task wakes one waiting task. The bits
 * and the lists agree under `busy`, which a task that is about to wait holds from before the exchange until it is on
 * the list: whoever sees the bit finds the task. (3) A task woken at q starts over, after an error too, and looks at
 * q again in every case: if it fails before it came to q, it looks at all resources that it did not come to; if it
 * fails at q, it looks once it is on the list; if it fails later, it gives q back, which is (2); if it gets
 * everything, it looks after taking; and a lock of q leaves nothing due until its release. A task that finds a mode
 * due wakes the next task. So while a mode of q is due, a task is between finding that and waking another, or a task
 * woken at q has not started over yet. In a run in which no task is ready or running no resource is held, so every
 * mode that is waited for is due; by the above no mode is due, so no task waits. (3) is needed before the end of a
 * run, too: a poll task may hold a resource until another task has run.
 *
 * Many children of q come and go while a task waits to lock q: each release but the last leaves other counts, so
 * nothing is due and no task is woken; the last one wakes the task. Other tasks may take q before it does: then it
 * waits again. The tasks of a run are finite in number, so this ends; the order among different modes only affects
 * speed.
 *
 * No two tasks make each other start over for ever, because all take in ascending order. A task that fails at q
 * fails because of one that got past q, and that one either has everything soon or fails at a resource above q; at
 * the highest resource that any task wants, it has everything.
 *
 * tests/scheduler/models/park_wake.pml is a model of this. */
#include <assert.h>
#include <string.h>

#include "engine_impl.h"
#include "trace_impl.h"

/* The word: a bit for each mode that tasks wait for; whether the resource is locked; how many tasks use it, and how
 * many hold what is below. A full count forbids one more like any other conflict. */
enum { LOCKED_AT = TRLI_MODES, USES_AT = LOCKED_AT + 1, USES_BELOW_AT = 24, LOCKS_BELOW_AT = 44 };

#define ONE(at) ((uint64_t)1 << (at))
#define BITS(at, end) ((ONE((end)-1) << 1) - ONE(at)) /* bits from `at` to below `end` */

static const uint64_t one[TRLI_MODES] = {
    [TRLI_USE] = ONE(USES_AT),
    [TRLI_LOCK] = ONE(LOCKED_AT),
    [TRLI_USE_BELOW] = ONE(USES_BELOW_AT),
    [TRLI_LOCK_BELOW] = ONE(LOCKS_BELOW_AT),
};
static const uint64_t all_of[TRLI_MODES] = {
    [TRLI_USE] = BITS(USES_AT, USES_BELOW_AT),
    [TRLI_LOCK] = BITS(LOCKED_AT, USES_AT),
    [TRLI_USE_BELOW] = BITS(USES_BELOW_AT, LOCKS_BELOW_AT),
    [TRLI_LOCK_BELOW] = BITS(LOCKS_BELOW_AT, 64),
};
/* The bits of a word that forbid a mode. */
static const uint64_t against[TRLI_MODES] = {
    [TRLI_USE] = BITS(LOCKED_AT, USES_AT) | BITS(LOCKS_BELOW_AT, 64),
    [TRLI_LOCK] = BITS(LOCKED_AT, 64),
    [TRLI_USE_BELOW] = BITS(LOCKED_AT, USES_AT),
    [TRLI_LOCK_BELOW] = BITS(LOCKED_AT, USES_BELOW_AT),
};

static inline bool allows(uint64_t word, int32_t mode)
{
    return (word & against[mode]) == 0 && (word & all_of[mode]) != all_of[mode];
}

static inline bool is_due(uint64_t word, int32_t mode)
{
    return (word & ONE(mode)) != 0 && allows(word, mode);
}

static inline bool any_due(uint64_t word)
{
    if ((word & BITS(0, TRLI_MODES)) == 0) return false;
    return is_due(word, TRLI_USE) || is_due(word, TRLI_LOCK) || is_due(word, TRLI_USE_BELOW) ||
           is_due(word, TRLI_LOCK_BELOW);
}

trl_err trli_locks_create(trli_run_state *run)
{
    trl_err err = TRL_OK;
    size_t n = (size_t)run->graph->resources.count;
    void *memory;
    if (n == 0) return TRL_OK;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, n * sizeof *run->lock, "resources", &memory));
    run->lock = memory;
done:
    return err;
}

void trli_locks_destroy(trli_run_state *run)
{
    void *memory = run->lock;
    trl_memory_free(run->graph->ctx, &memory);
    run->lock = NULL;
}

/* Relaxed: no worker is inside yet. */
void trli_locks_start(trli_run_state *run)
{
    for (int64_t i = 0; i < run->graph->resources.count; ++i) {
        trli_lock *lock = &run->lock[i];
        atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
        atomic_store_explicit(&lock->busy, false, memory_order_relaxed);
        lock->turn = 0;
        for (int mode = 0; mode < TRLI_MODES; ++mode) lock->first[mode] = lock->last[mode] = TRLI_NONE;
    }
}

/* ---- the lists ---- */

/* Acquire and release of the lists and links. Held for a few instructions, never during anything else. */
static void enter_lists(const trli_run_state *run, trli_lock *lock)
{
    while (atomic_exchange_explicit(&lock->busy, true, memory_order_acquire)) (void)trli_workers_pause(run->workers);
}

static void leave_lists(trli_lock *lock)
{
    atomic_store_explicit(&lock->busy, false, memory_order_release);
}

/* Put a task on the list of a mode; false: the mode has become possible meanwhile. The task may run elsewhere as
 * soon as it is on the list. *word: the last word seen. */
static bool wait_for(const trli_run_state *run, trli_lock *lock, int32_t mode, int32_t task, uint64_t *word)
{
    enter_lists(run, lock);
    /* Relaxed: this only decides the bit, and a thread that sees the bit enters the lists, which order the rest. A
     * bit that is set stays set while this thread holds `busy`, so any release that the loaded word does not show
     * yet sees the bit. */
    uint64_t now = atomic_load_explicit(&lock->state, memory_order_relaxed);
    while (!allows(now, mode) && (now & ONE(mode)) == 0) {
        if (atomic_compare_exchange_weak_explicit(&lock->state, &now, now | ONE(mode), memory_order_relaxed,
                                                  memory_order_relaxed))
            now |= ONE(mode);
    }
    *word = now;
    bool waits = !allows(now, mode);
    if (waits) {
        *trli_link(run, task) = TRLI_NONE;
        if (lock->first[mode] == TRLI_NONE)
            lock->first[mode] = task;
        else
            *trli_link(run, lock->last[mode]) = task;
        lock->last[mode] = task;
    }
    leave_lists(lock);
    return waits;
}

/* Make one waiting task ready whose mode the counts allow. Modes take turns; tasks of one mode are first in, first
 * out. */
static void wake_one(trli_run_state *run, trli_worker *worker, trli_lock *lock)
{
    int32_t task = TRLI_NONE;
    enter_lists(run, lock);
    /* Relaxed: as in wait_for. */
    uint64_t now = atomic_load_explicit(&lock->state, memory_order_relaxed);
    for (int i = 0; i < TRLI_MODES && task == TRLI_NONE; ++i) {
        int mode = (lock->turn + i) % TRLI_MODES;
        if (!is_due(now, mode)) continue;
        task = lock->first[mode];
        lock->first[mode] = *trli_link(run, task);
        if (lock->first[mode] == TRLI_NONE) atomic_fetch_and_explicit(&lock->state, ~ONE(mode), memory_order_relaxed);
        lock->turn = (mode + 1) % TRLI_MODES;
    }
    leave_lists(lock);
    if (task != TRLI_NONE) trli_hand_over(run, worker, task);
}

/* Relaxed: a release after this load that leaves something due sees that itself, and what woke this task is visible
 * here. */
static void wake_if_due(trli_run_state *run, trli_worker *worker, trli_lock *lock)
{
    if (any_due(atomic_load_explicit(&lock->state, memory_order_relaxed))) wake_one(run, worker, lock);
}

/* ---- taking and giving back ---- */

/* Acquire: what earlier holders wrote. All changes of the word are read-modify-writes, so each release of it is
 * seen, however many other changes came in between. */
static bool take(trli_lock *lock, int32_t mode, uint64_t *word)
{
    uint64_t now = atomic_load_explicit(&lock->state, memory_order_relaxed);
    do {
        if (!allows(now, mode)) return false;
    } while (!atomic_compare_exchange_weak_explicit(&lock->state, &now, now + one[mode], memory_order_acquire,
                                                    memory_order_relaxed));
    *word = now + one[mode];
    return true;
}

/* Take as many wants as possible in sequence; returns how many. */
static int32_t take_all(trli_run_state *run, trli_worker *worker, int32_t n, const trli_want *want)
{
    bool due = false;
    for (int32_t i = 0; i < n; ++i) {
        uint64_t word;
        if (!take(&run->lock[want[i].resource], want[i].mode, &word)) return i;
        due = due || any_due(word);
    }
    for (int32_t i = 0; due && i < n; ++i) wake_if_due(run, worker, &run->lock[want[i].resource]);
    return n;
}

/* Release: what the task wrote. Descendants before ancestors: a task that finds the ancestor free does not fail at
 * the descendant. */
static void release_all(trli_run_state *run, trli_worker *worker, int32_t n, const trli_want *want)
{
    for (int32_t i = n - 1; i >= 0; --i) {
        trli_lock *lock = &run->lock[want[i].resource];
        uint64_t unit = one[want[i].mode];
        if (any_due(atomic_fetch_sub_explicit(&lock->state, unit, memory_order_release) - unit))
            wake_one(run, worker, lock);
    }
}

static void note_wait(const trli_run_state *run, const trli_worker *worker, int32_t resource)
{
    const trli_resource *list = run->graph->resources.data;
    int64_t now = trli_now_ns();
    trli_trace_add(worker->lane, TRLI_TRACE_PARK, trli_graph_text(run->graph, list[resource].name), 0, now, now);
}

static bool acquire(trli_run_state *run, trli_worker *worker, int32_t task, int32_t n, const trli_want *want)
{
    for (;;) {
        int32_t taken = take_all(run, worker, n, want);
        if (taken == n) return true;
        trli_lock *lock = &run->lock[want[taken].resource];
        int32_t mode = want[taken].mode;
        uint64_t word;
        release_all(run, worker, taken, want);
        for (int32_t i = taken + 1; i < n; ++i) wake_if_due(run, worker, &run->lock[want[i].resource]);
        if (!wait_for(run, lock, mode, task, &word)) continue;
        if (worker->lane) note_wait(run, worker, want[taken].resource);
        /* The task may be running by now, and its wants freed. */
        if (any_due(word)) wake_one(run, worker, lock);
        return false;
    }
}

/* ---- spawned tasks ---- */

enum { MOST = TRLI_SPAWN_WANTS * TRLI_RESOURCE_LEVELS };

static inline bool is_folded(int32_t n, const trli_want *want)
{
    return n > 0 && (want[0].mode & TRLI_UNFOLD);
}

static int32_t unfold(const trli_run_state *run, int32_t n, const trli_want *want, trli_want *all)
{
    assert(n <= TRLI_SPAWN_WANTS);
    memcpy(all, want, (size_t)n * sizeof *want);
    return trli_graph_unfold_wants(run->graph, n, all);
}

static bool acquire_folded(trli_run_state *run, trli_worker *worker, int32_t task, int32_t n, const trli_want *want)
{
    trli_want all[MOST];
    n = unfold(run, n, want, all);
    return acquire(run, worker, task, n, all);
}

static void release_folded(trli_run_state *run, trli_worker *worker, int32_t n, const trli_want *want)
{
    trli_want all[MOST];
    n = unfold(run, n, want, all);
    release_all(run, worker, n, all);
}

bool trli_locks_acquire(trli_run_state *run, trli_worker *worker, int32_t task, int32_t n, const trli_want *want)
{
    if (is_folded(n, want)) return acquire_folded(run, worker, task, n, want);
    return acquire(run, worker, task, n, want);
}

void trli_locks_release(trli_run_state *run, trli_worker *worker, int32_t n, const trli_want *want)
{
    if (is_folded(n, want))
        release_folded(run, worker, n, want);
    else
        release_all(run, worker, n, want);
}

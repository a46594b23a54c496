/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "trace_impl.h"
#include "workers_impl.h"

enum {
    SPINS = 2000,    /* times that a worker looks for openings between jobs before it sleeps */
    VISIT = 250,     /* looks that a vain visit to a job counts as, */
    YIELD = 20,      /* and a yield: it takes as long, and others want the core */
    KEEP = 2,        /* looks between two times that a worker takes its lines back */
    NAP_NS = 1000000 /* longest sleep */
};

/* Of trl_workers.open: the bit of a place, and the count of one more opening. */
#define OPEN(place) ((uint64_t)1 << (place))
#define OPENING OPEN(TRLI_JOBS)

static uint64_t openings_of(uint64_t open)
{
    return open / OPENING;
}

/* ---- waiting ---- */

int trli_workers_pause(const trl_workers *workers)
{
    if (workers->yields) {
        sched_yield();
        return YIELD;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    return 1;
}

static struct timespec after_nap(long ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        ++t.tv_sec;
    }
    return t;
}

/* seq_cst here and at the state that is checked: of a worker going to sleep and one that ends a job, at least one
 * sees the other. The lock is held from the count to the wait, so a thread that saw the count cannot signal in
 * between. */
static void sleep_at(trl_workers *workers, const trli_job *job, long longest_ns)
{
    struct timespec until = after_nap(longest_ns);
    pthread_mutex_lock(&workers->lock);
    atomic_fetch_add_explicit(&workers->sleepers, 1, memory_order_seq_cst);
    if (!job->over(job)) pthread_cond_timedwait(&workers->wake, &workers->lock, &until);
    atomic_fetch_sub_explicit(&workers->sleepers, 1,
                              memory_order_relaxed); /* a count that is too high only costs a signal */
    pthread_mutex_unlock(&workers->lock);
}

void trli_workers_sleep(trl_workers *workers, const trli_job *job)
{
    sleep_at(workers, job, NAP_NS);
}

int trli_workers_rest(trl_workers *workers, const trli_job *job, int looks)
{
    enum { REST_NS = 50000 };
    if (looks < SPINS) return trli_workers_pause(workers);
    if (workers->yields)
        sleep_at(workers, job, REST_NS);
    else
        (void)trli_workers_pause(workers);
    return 0;
}

/* Sleep until a place is opened after those seen; or for a while, then go back to a job that had no work. */
static void sleep_between_jobs(trl_workers *w, uint64_t seen, bool again)
{
    struct timespec until = after_nap(NAP_NS);
    pthread_mutex_lock(&w->lock);
    atomic_fetch_add_explicit(&w->sleepers, 1, memory_order_seq_cst);
    const bool news = openings_of(atomic_load_explicit(&w->open, memory_order_seq_cst)) != seen ||
                      atomic_load_explicit(&w->stopping, memory_order_seq_cst);
    if (!news && again)
        pthread_cond_timedwait(&w->wake, &w->lock, &until);
    else if (!news)
        pthread_cond_wait(&w->wake, &w->lock);
    atomic_fetch_sub_explicit(&w->sleepers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&w->lock);
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

/* Relaxed: a hint. */
bool trli_workers_wanted_elsewhere(const trl_workers *workers)
{
    const uint32_t claimed = atomic_load_explicit(&workers->claimed, memory_order_relaxed);
    return (claimed & (claimed - 1)) != 0;
}

/* A worker that is not active waits until it is. */
static void rest(trl_workers *w, const trli_worker *worker)
{
    pthread_mutex_lock(&w->lock);
    while (worker->index >= atomic_load_explicit(&w->active, memory_order_relaxed) &&
           !atomic_load_explicit(&w->stopping, memory_order_relaxed))
        pthread_cond_wait(&w->more, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* Under the lock, so that no worker goes to rest in between. */
static void wake_resting(trl_workers *w)
{
    pthread_mutex_lock(&w->lock);
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
}

/* ---- threads ---- */

/* Release: this worker's last access to the job happens before the caller's return. */
static void leave(trli_worker *worker)
{
    atomic_store_explicit(&worker->at, NULL, memory_order_release);
}

/* A worker announces its job before it checks that the place is still open; a caller closes the place before it
 * checks which workers are at its job. seq_cst, here and where places are opened and closed: at least one of the two
 * sees the other. Acquire: the state of the job; the place may still be open for the job before. */
static bool enter(trl_workers *w, trli_worker *worker, int at, trli_job *job)
{
    atomic_store_explicit(&worker->at, job, memory_order_seq_cst);
    if (atomic_load_explicit(&w->open, memory_order_seq_cst) & OPEN(at) &&
        atomic_load_explicit(&w->place[at].job, memory_order_acquire) == job) {
        worker->generation = w->place[at].generation;
        return true;
    }
    leave(worker);
    return false;
}

typedef struct visit {
    bool worked, again; /* the worker did something; it left a job that is not over */
    int vain;           /* jobs visited in vain */
} visit;

/* Visit all jobs that were open, starting at a place of this worker's own. */
static visit visit_jobs(trl_workers *w, trli_worker *worker, uint64_t open)
{
    visit v = {0};
    __builtin_prefetch(worker->shared[0]); /* harmless if the address is not mapped any more */
    __builtin_prefetch(worker->shared[1]);
    trli_prefetch_to_write(worker->own);
    for (int i = 0; i < TRLI_JOBS; ++i) {
        const int at = (i + worker->index) % TRLI_JOBS;
        if (!(open & OPEN(at))) continue;
        trli_job *job = atomic_load_explicit(&w->place[at].job, memory_order_relaxed);
        if (!enter(w, worker, at, job)) continue;
        worker->own = NULL;
        const int came = job->work(job, worker);
        v.worked |= (came & TRLI_WORKED) != 0;
        v.vain += !(came & TRLI_WORKED);
        v.again |= (came & TRLI_NOT_OVER) != 0;
        leave(worker);
    }
    return v;
}

/* Between jobs a worker fetches the lines that a caller looked at back: it will begin the next job by writing them. */
static void keep_lines(trli_worker *worker)
{
    leave(worker);
    trli_prefetch_to_write(worker->own);
}

static void *work(void *arg)
{
    trli_worker *worker = arg;
    trl_workers *w = worker->workers;
    if (w->pins) trli_topology_pin(&w->ctx->topology, worker->index);
    uint64_t seen = 0; /* openings */
    bool again = false;
    for (int spins = 0; !atomic_load_explicit(&w->stopping, memory_order_relaxed);) {
        if (worker->index >= atomic_load_explicit(&w->active, memory_order_relaxed)) rest(w, worker);
        /* Acquire: the jobs of the openings that are counted, or later ones. */
        const uint64_t open = atomic_load_explicit(&w->open, memory_order_acquire);
        visit v = {0};
        if (openings_of(open) != seen || again) v = visit_jobs(w, worker, open);
        seen = openings_of(open);
        again = v.again;
        spins += VISIT * v.vain;
        if (v.worked) {
            spins = 0;
        } else if (spins < SPINS) {
            if (spins % KEEP == 0) keep_lines(worker);
            spins += trli_workers_pause(w);
        } else {
            sleep_between_jobs(w, seen, again);
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

/* The creating thread is worker 0, perhaps of several trl_workers, destroyed in any order: its own binding is what it
 * had before the first of them, and restored with the last. */
static _Thread_local struct {
    hwloc_bitmap_t own;
    int pins;
} caller;

static void pin_caller(trl_workers *w)
{
    if (caller.pins == 0) {
        caller.own = hwloc_bitmap_alloc();
        if (!caller.own) return;
        if (hwloc_get_cpubind(w->ctx->topology.machine, caller.own, HWLOC_CPUBIND_THREAD) != 0)
            hwloc_bitmap_zero(caller.own);
    }
    ++caller.pins;
    w->pinned_caller = true;
    if (!hwloc_bitmap_iszero(caller.own)) trli_topology_pin(&w->ctx->topology, 0);
}

static void unbind_caller(const trl_workers *w)
{
    if (w->pinned_caller && !hwloc_bitmap_iszero(caller.own))
        hwloc_set_cpubind(w->ctx->topology.machine, caller.own, HWLOC_CPUBIND_THREAD);
}

static void unpin_caller(trl_workers *w)
{
    if (!w->pinned_caller || !pthread_equal(pthread_self(), w->creator) || --caller.pins > 0) return;
    unbind_caller(w);
    hwloc_bitmap_free(caller.own);
}

/* ---- creation ---- */

static void free_workers(trl_workers *w)
{
    trl_context *ctx = w->ctx;
    atomic_store_explicit(&w->stopping, true, memory_order_seq_cst); /* seen by sleep_between_jobs */
    trli_workers_wake_all(w);
    wake_resting(w);
    for (int i = 1; i <= w->started; ++i) pthread_join(w->worker[i].thread, NULL);
    unpin_caller(w);
    pthread_cond_destroy(&w->wake);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    trli_policy_close(w->library);
    --ctx->workers_alive;
    void *memory[] = {w->worker, w->name, w};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) trl_memory_free(ctx, &memory[i]);
}

static void init_sleep(trl_workers *w)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attributes);
    pthread_cond_init(&w->more, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&w->lock, NULL);
}

static uint64_t next_serial(void)
{
    static _Atomic uint64_t last; /* relaxed: only has to be another number each time */
    return 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
}

trl_err trl_workers_create(trl_context *ctx, const char *policy, trl_workers **result)
{
    trl_err err;
    trl_workers *w = NULL;
    void *memory;
    *result = NULL;
    TRL_TRY(trl_memory_alloc(ctx, sizeof *w, "workers", &memory));
    w = memset(memory, 0, sizeof *w);
    w->ctx = ctx;
    w->serial = next_serial();
    w->creator = pthread_self();
    w->yields = trli_context_yields(ctx);
    init_sleep(w);
    ++ctx->workers_alive;
    TRL_TRY(trl_memory_alloc(ctx, strlen(policy) + 1, "workers", &memory));
    w->name = strcpy(memory, policy);
    trli_policies policies;
    TRL_TRY(trli_policy_find(ctx, policy, &policies));
    w->policy = policies.queue;
    w->library = policies.library;
    w->placing.policy = policies.placement;
    w->count = w->policy->serial ? 1 : ctx->threads;
    w->pins = !w->policy->serial && trl_context_pinned(ctx);
    atomic_store_explicit(&w->active, w->count, memory_order_relaxed);
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

void trl_workers_set_adaptive(trl_workers *workers, bool on)
{
    workers->adapts = on && workers->count > 1;
}

const char *trl_workers_policy(const trl_workers *workers)
{
    return workers->name;
}

const char *trl_workers_running_policy(const trl_workers *workers)
{
    const bool plugin = workers->library && workers->policy != &trli_policy_priority;
    return plugin ? workers->name : workers->policy->name;
}

trl_err trli_workers_check_idle(const trl_workers *w)
{
    /* Relaxed: this only detects misuse. */
    if (atomic_load_explicit(&w->claimed, memory_order_relaxed) == 0) return TRL_OK;
    return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "the workers cannot change: they are running a graph");
}

trl_err trl_workers_set_pools(trl_workers *workers, int tasks, int operators)
{
    trl_err err;
    TRL_TRY(trli_workers_check_idle(workers));
    bool adapt = tasks == 0 && operators == 0;
    if (!adapt && (tasks < 0 || operators < 0 || (int64_t)tasks + operators != workers->count))
        return trl_fail(workers->ctx, TRL_ERR_USAGE, NULL, "%d task and %d operator workers are not %d workers", tasks,
                        operators, workers->count);
    workers->tasks = tasks;
    workers->operators = operators;
    for (int i = 0; i < workers->count; ++i)
        atomic_store_explicit(&workers->worker[i].operators, !adapt && i >= tasks, memory_order_relaxed);
done:
    return err;
}

void trl_workers_get_pools(const trl_workers *workers, int *tasks, int *operators)
{
    *operators = 0;
    for (int i = 0; i < workers->count; ++i)
        *operators += atomic_load_explicit(&workers->worker[i].operators, memory_order_relaxed);
    *tasks = workers->count - *operators;
}

trl_err trl_workers_set_trace(trl_workers *workers, trl_trace *trace)
{
    trl_err err;
    TRL_TRY(trli_workers_check_idle(workers));
    if (trace && trace->workers != workers->count)
        return trl_fail(workers->ctx, TRL_ERR_USAGE, NULL, "a trace for %d workers cannot record %d", trace->workers,
                        workers->count);
    if (trace && workers->placing.devices) TRL_TRY(trli_trace_add_devices(trace, workers->placing.devices->n));
    workers->trace = trace;
    for (int i = 0; i < workers->count; ++i) workers->worker[i].lane = trace ? &trace->lane[i] : NULL;
done:
    return err;
}

/* ---- jobs ---- */

int trli_workers_claim(trl_workers *w)
{
    uint32_t claimed = atomic_load_explicit(&w->claimed, memory_order_relaxed);
    for (int at = 0; at < TRLI_JOBS;) {
        const uint32_t bit = (uint32_t)1 << at;
        if (claimed & bit)
            ++at;
        else if (atomic_compare_exchange_weak_explicit(&w->claimed, &claimed, claimed | bit, memory_order_acquire,
                                                       memory_order_relaxed))
            return at;
    }
    return TRLI_NONE;
}

static void give_back(trl_workers *w, int at)
{
    /* Release: what the caller read and wrote of the place. */
    atomic_fetch_and_explicit(&w->claimed, ~((uint32_t)1 << at), memory_order_release);
}

static void open_place(trl_workers *w, int at, trli_job *job, uint32_t generation)
{
    w->place[at].generation = generation;
    /* Release: the job is ready. seq_cst: see enter, and trli_workers_sleep. */
    atomic_store_explicit(&w->place[at].job, job, memory_order_release);
    atomic_fetch_add_explicit(&w->open, OPENING + OPEN(at), memory_order_seq_cst);
    trli_workers_wake_all(w);
}

/* From here on no worker begins with the job; wait for those that are at it: see enter. */
static void close_place(trl_workers *w, int at, const trli_job *job)
{
    trli_prefetch_to_write(&w->open); /* those that are waking up */
    for (int i = 1; i < w->count; ++i) __builtin_prefetch(&w->worker[i].at);
    atomic_fetch_sub_explicit(&w->open, OPEN(at), memory_order_seq_cst);
    for (int i = 1; i < w->count; ++i)
        while (atomic_load_explicit(&w->worker[i].at, memory_order_seq_cst) == job) (void)trli_workers_pause(w);
}

/* Work as worker 0, if no other caller does; a caller that finds the seat taken sleeps until it is free or its own
 * job is over. Acquire and release of the worker. */
static void work_or_sleep(trl_workers *w, trli_job *job, uint32_t generation)
{
    while (!job->over(job)) {
        if (!atomic_exchange_explicit(&w->seat, true, memory_order_acquire)) {
            w->worker[0].generation = generation;
            (void)job->work(job, &w->worker[0]);
            atomic_store_explicit(&w->seat, false, memory_order_release);
            if (trli_workers_wanted_elsewhere(w)) trli_workers_wake_all(w);
        }
        if (!job->over(job)) trli_workers_sleep(w, job); /* another caller gets the seat */
    }
}

void trli_workers_do_alone(trl_workers *w, int at, trli_job *job)
{
    work_or_sleep(w, job, 0);
    give_back(w, at);
}

void trli_workers_do(trl_workers *w, int at, trli_job *job, uint32_t generation)
{
    open_place(w, at, job, generation);
    work_or_sleep(w, job, generation);
    close_place(w, at, job);
    give_back(w, at);
}

trl_trace *trli_workers_trace(const trl_workers *workers)
{
    return workers->trace;
}

/* ---- how many take part ---- */

/* If not all workers are active, the caller runs wherever the operating system finds a core: its own core may be
 * busy with other programs. */
void trli_workers_set_active(trl_workers *w, int size)
{
    const int before = atomic_exchange_explicit(&w->active, size, memory_order_relaxed);
    if (before == size) return;
    if (before < size) wake_resting(w);
    if (!w->pins || !pthread_equal(pthread_self(), w->creator)) return;
    if (size == w->count)
        trli_topology_pin(&w->ctx->topology, 0);
    else if (before == w->count)
        unbind_caller(w);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include <trl_loop.h>

#include "share_impl.h"
#include "trace_impl.h"

/* A job without a graph: a run without dependencies and resources, whose start costs less than the shortest loop. A
 * worker reads few lines of memory of other threads: the line of the opening, and those of its own lines that a
 * caller looked into. */
struct trl_loop {
    /* One line, which workers read, and which a caller writes only if it changes. */
    trli_job job;
    trl_loop_fn fn;
    void *data;
    int32_t chunks, shares;
    trli_share *share; /* [shares] one of each worker */
    uint32_t asker;    /* of the messages of its chunks */
    _Atomic int error; /* the first */

    TRLI_APART(before_busy);
    alignas(TRLI_CACHE_LINE) _Atomic bool busy;
    uint32_t generation; /* generation of the shares: a run */
    bool explained;      /* a message was recorded with the error */
    int failed;          /* chunk */
    trl_context *ctx;
    trl_workers *workers;
};

/* ---- chunks ---- */

static void fail(trl_loop *loop, int chunk, trl_err err)
{
    int none = TRL_OK;
    bool explained = trli_diagnostics_said();
    /* Relaxed: only the first failing thread writes it; it is read when all have left. */
    if (!atomic_compare_exchange_strong_explicit(&loop->error, &none, (int)err, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    loop->explained = explained;
    loop->failed = chunk;
}

static void run_chunks(trl_loop *loop, int first, int count, int worker)
{
    for (int chunk = first; chunk < first + count; ++chunk) {
        if (atomic_load_explicit(&loop->error, memory_order_relaxed) != TRL_OK) return;
        trl_err err = loop->fn(loop->data, chunk, loop->chunks, worker);
        if (err != TRL_OK) fail(loop, chunk, err);
    }
}

static void run_traced(trl_loop *loop, int first, int count, const trli_worker *worker)
{
    int64_t start = worker->lane ? trli_now_ns() : 0;
    run_chunks(loop, first, count, worker->index);
    if (worker->lane) trli_trace_add(worker->lane, TRLI_TRACE_TASK, "chunks", 0, start, trli_now_ns());
}

static int work(trli_job *job, trli_worker *worker)
{
    trl_loop *loop = (trl_loop *)job;
    bool worked = false;
    int count = 0;
    worker->shared[0] = loop;
    worker->shared[1] = loop->data;
    worker->own = &loop->share[worker->index];
    trli_set_inside(true);
    (void)trli_diagnostics_said(); /* earlier messages belong to no chunk */
    trli_diagnostics_work_for(loop->asker);
    for (int32_t chunk; (chunk = trli_shares_take(loop->share, loop->shares, worker->generation, worker->index,
                                                  &count)) != TRLI_NONE;) {
        run_traced(loop, chunk, count, worker);
        worked = true;
    }
    trli_set_inside(false);
    if (worked) trli_workers_wake_all(worker->workers); /* a caller that is not worker 0 may sleep */
    return worked ? TRLI_WORKED : 0;
}

/* All chunks are handed out: only waiting is left. Only callers ask. */
static bool over(const trli_job *job)
{
    const trl_loop *loop = (const trl_loop *)job;
    for (int32_t s = 0; s < loop->shares; ++s)
        if (!trli_share_over(&loop->share[s], loop->generation)) return false;
    return true;
}

/* ---- loops ---- */

trl_err trl_loop_create(trl_context *ctx, trl_workers *workers, trl_loop **result)
{
    trl_err err;
    trl_loop *loop = NULL;
    void *memory;
    *result = NULL;
    TRL_TRY(trl_memory_alloc(ctx, sizeof *loop, "a parallel loop", &memory));
    loop = memory;
    *loop = (trl_loop){.job = {work, over}, .ctx = ctx, .workers = workers, .shares = trl_workers_count(workers)};
    TRL_TRY(trl_memory_alloc(ctx, (size_t)loop->shares * sizeof *loop->share, "a parallel loop", &memory));
    loop->share = memset(memory, 0, (size_t)loop->shares * sizeof *loop->share);
    *result = loop;
    loop = NULL;
done:
    trl_loop_destroy(&loop);
    return err;
}

void trl_loop_destroy(trl_loop **loop)
{
    if (*loop == NULL) return;
    trl_context *ctx = (*loop)->ctx;
    void *blocks[] = {(*loop)->share, *loop};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) trl_memory_free(ctx, &blocks[i]);
    *loop = NULL;
}

static trl_err run_in_order(int chunks, trl_loop_fn fn, void *data)
{
    trl_err err = TRL_OK;
    for (int chunk = 0; chunk < chunks; ++chunk) TRL_TRY(fn(data, chunk, chunks, 0));
done:
    return err;
}

static trl_err run_alone(const trl_loop *loop)
{
    trli_set_inside(true);
    trl_err err = run_in_order(loop->chunks, loop->fn, loop->data);
    trli_set_inside(false);
    return err;
}

static trl_err run_by_all(trl_loop *loop)
{
    trl_workers *workers = loop->workers;
    trl_trace *trace = trli_workers_trace(workers);
    int64_t start = trace ? trli_now_ns() : 0;
    ++loop->generation;
    int place = trli_workers_claim(workers);
    if (place == TRLI_NONE) return run_alone(loop);
    trli_workers_do(workers, place, &loop->job, loop->generation);
    trli_prefetch_to_write(&loop->share[0]); /* the next run begins by writing it */
    if (trace) trli_trace_add_run(trace, "loop", start, trli_now_ns());
    const trl_err err = (trl_err)atomic_load_explicit(&loop->error, memory_order_relaxed);
    if (err == TRL_OK || loop->explained) return err;
    return trl_fail(loop->ctx, err, NULL, "chunk %d of %d of a loop failed: %s", loop->failed, loop->chunks,
                    trl_err_meaning(err));
}

/* Usually the next run is like the one before. */
static void prepare(trl_loop *loop, int chunks, trl_loop_fn fn, void *data)
{
    if (loop->fn != fn) loop->fn = fn;
    if (loop->data != data) loop->data = data;
    if (loop->asker != trli_diagnostics_asker()) loop->asker = trli_diagnostics_asker();
    if (loop->chunks != chunks) {
        trli_shares_deal(loop->share, loop->shares, chunks, loop->generation);
        loop->chunks = chunks;
    }
    if (atomic_load_explicit(&loop->error, memory_order_relaxed) != TRL_OK)
        atomic_store_explicit(&loop->error, TRL_OK, memory_order_relaxed);
}

trl_err trl_loop_run(trl_loop *loop, int chunks, trl_loop_fn fn, void *data)
{
    trl_err err;
    if (loop == NULL) return run_in_order(chunks, fn, data);
    if (trli_is_inside())
        return trl_fail(loop->ctx, TRL_ERR_USAGE, NULL, "a loop cannot run inside a task or another loop");
    /* Acquire and release: the end of the previous run, perhaps on another thread. */
    if (atomic_exchange_explicit(&loop->busy, true, memory_order_acquire))
        return trl_fail(loop->ctx, TRL_ERR_USAGE, NULL, "a loop cannot run: it is running");
    prepare(loop, chunks, fn, data);
    err = loop->shares > 1 && chunks > 1 ? run_by_all(loop) : run_alone(loop);
    atomic_store_explicit(&loop->busy, false, memory_order_release);
    return err;
}

int trl_loop_workers(const trl_loop *loop)
{
    return loop ? loop->shares : 1;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The copy after McCalpin, "Memory bandwidth and machine balance in current high performance computers", 1995, with
 * streaming stores, so that the bytes named are the bytes moved. Arithmetic works on rows in the first-level cache. The
 * fastest of several passes counts: what else the machine does only makes them slower. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <trl_functions_body.h>
#include <trl_loop.h>

#include "balance_impl.h"
#include "clock_impl.h"
#include "context_impl.h"
#include "machine_record_impl.h"
#include "vector_impl.h"

/* What is measured, in a second: the rates of a balance. */
typedef enum rate { MEMORY, CACHE, OPERATIONS, DIVISIONS, EXPONENTIALS, RATES } rate;
static const trli_record_kind kind = {.suffix = "balance",
                                      .version = "balance 4",
                                      .n = RATES,
                                      .least = 0.5,
                                      .most = 1e18,
                                      .variable = "TRL_BALANCE",
                                      .meaning = "five rates: bytes/s of memory and caches, additions, divisions and "
                                                 "exponentials a second"};

enum {
    PASSES = 4,
    CHUNKS_PER_WORKER = 4,
    ROW = 512,        /* doubles; two of them stay in a first-level cache */
    DEGREE = 16,      /* of the polynomial of a row: twice as many operations for a value */
    ROWS = 200,       /* of a chunk of polynomials */
    COSTLY_ROWS = 50, /* of a chunk of divisions or functions */
    CACHE_ROUNDS = 4,
    PERIOD = 60,         /* s from the first measurement to the second, */
    GROWTH = 8,          /* so many times as long to each further one, */
    PERIODS = 30 * 86400 /* and what is older than so many s counts no more */
};
#define CHUNK_BYTES_MIN ((size_t)16 << 10) /* more than a row and a line */
#define ARRAY_BYTES_MIN ((size_t)32 << 20)
#define ARRAY_BYTES_MAX ((size_t)256 << 20)
/* A kept rate gives way to one that is so much better: plans, and kernels with them, stay as they are else. */
static const double better = 1.1;
/* Where one rate is found so much better, all were measured while the machine did something else. */
static const double disturbed = 1.25;

/* ---- loops ---- */

#define LOOPS(width, attribute)                                                                                       \
    attribute static void copy_near##width(double *a, const double *b, ptrdiff_t n)                                   \
    {                                                                                                                 \
        for (ptrdiff_t i = 0; i < n; i += (width)) *(trli_vector##width *)&a[i] = *(const trli_vector##width *)&b[i]; \
    }                                                                                                                 \
    attribute static void polynomial##width(double *a, const double *b, ptrdiff_t n)                                  \
    {                                                                                                                 \
        for (ptrdiff_t i = 0; i < n; i += (ptrdiff_t)4 * (width)) {                                                   \
            const trli_vector##width *x = (const trli_vector##width *)&b[i];                                          \
            trli_vector##width *y = (trli_vector##width *)&a[i];                                                      \
            trli_vector##width p = x[0], q = x[1], r = x[2], s = x[3];                                                \
            for (int k = 0; k < DEGREE; ++k) {                                                                        \
                p = p * x[0] + 0.5;                                                                                   \
                q = q * x[1] + 0.5;                                                                                   \
                r = r * x[2] + 0.5;                                                                                   \
                s = s * x[3] + 0.5;                                                                                   \
            }                                                                                                         \
            y[0] = p, y[1] = q, y[2] = r, y[3] = s;                                                                   \
        }                                                                                                             \
    }                                                                                                                 \
    attribute static void divide##width(double *a, const double *b, ptrdiff_t n)                                      \
    {                                                                                                                 \
        for (ptrdiff_t i = 0; i < n; i += (width))                                                                    \
            *(trli_vector##width *)&a[i] = 1.5 / *(const trli_vector##width *)&b[i];                                  \
    }
TRLI_STREAM_VARIANTS(TRLI_STREAM_COPY)
TRLI_STREAM_VARIANTS(LOOPS)

TRLI_CLONES static void exponential(double *restrict a, const double *restrict b, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) a[i] = trl_fn_exp(b[i]);
}

typedef struct arrays {
    double *a, *b;
    ptrdiff_t n, near; /* doubles; near: of the piece that stays in a worker's part of the last-level cache */
} arrays;

static void share_of(const arrays *p, int chunk, int chunks, ptrdiff_t *first, ptrdiff_t *n)
{
    const ptrdiff_t lines = p->n / 64;
    *first = lines * chunk / chunks * 64;
    *n = lines * (chunk + 1) / chunks * 64 - *first;
}

static trl_err fill_chunk(void *data, int chunk, int chunks, int worker)
{
    const arrays *p = data;
    ptrdiff_t first, n;
    (void)worker;
    share_of(p, chunk, chunks, &first, &n);
    for (ptrdiff_t i = first; i < first + n; ++i)
        p->a[i] = p->b[i] = 0.25 + 1e-9 * (double)i; /* zeros may share one page */
    return TRL_OK;
}

static trl_err copy_chunk(void *data, int chunk, int chunks, int worker)
{
    const arrays *p = data;
    ptrdiff_t first, n;
    (void)worker;
    share_of(p, chunk, chunks, &first, &n);
    TRLI_STREAM_CALL(copy, &p->a[first], &p->b[first], n);
    return TRL_OK;
}

#define CHUNK(name, rounds, length, loop)                                              \
    static trl_err name(void *data, int chunk, int chunks, int worker)                 \
    {                                                                                  \
        const arrays *p = data;                                                        \
        ptrdiff_t first, n;                                                            \
        (void)worker;                                                                  \
        share_of(p, chunk, chunks, &first, &n);                                        \
        for (int r = 0; r < (rounds); ++r) loop(&p->a[first], &p->b[first], (length)); \
        return TRL_OK;                                                                 \
    }
#define STREAM_NEAR(...) TRLI_STREAM_CALL(copy_near, __VA_ARGS__)
#define STREAM_POLYNOMIAL(...) TRLI_STREAM_CALL(polynomial, __VA_ARGS__)
#define STREAM_DIVIDE(...) TRLI_STREAM_CALL(divide, __VA_ARGS__)
CHUNK(near_chunk, CACHE_ROUNDS, p->near, STREAM_NEAR)
CHUNK(polynomial_chunk, ROWS, ROW, STREAM_POLYNOMIAL)
CHUNK(division_chunk, COSTLY_ROWS, ROW, STREAM_DIVIDE)
CHUNK(exponential_chunk, COSTLY_ROWS, ROW, exponential)

/* ---- measuring ---- */

/* Seconds of the fastest pass; the first warms up. On a machine that is so busy that it uses up the time alone, it has
 * to do. */
static trl_err time_of(trl_loop *loop, trl_loop_fn fn, arrays *p, int chunks, double *seconds)
{
    trl_err err = TRL_OK;
    *seconds = INFINITY;
    const double limit = 0.01, begun = trli_clock();
    for (int pass = 0; pass <= PASSES; ++pass) {
        const double start = trli_clock();
        TRL_TRY(trl_loop_run(loop, chunks, fn, p));
        const double end = trli_clock(), took = end - start;
        if (pass == 1 || took < *seconds) *seconds = took;
        if (end - begun > limit) break;
    }
done:
    return err;
}

static trl_err measure_operations(trl_loop *loop, arrays *p, int chunks, double *rate)
{
    double seconds;
    const trl_err err = time_of(loop, polynomial_chunk, p, chunks, &seconds);
    if (err == TRL_OK) *rate = 2.0 * DEGREE * ROW * ROWS * chunks / seconds;
    return err;
}

static trl_err measure_others(trl_loop *loop, arrays *p, int chunks, double rate[RATES])
{
    const double costly = (double)ROW * COSTLY_ROWS * chunks;
    double seconds;
    trl_err err = TRL_OK;
    TRL_TRY(time_of(loop, copy_chunk, p, chunks, &seconds));
    rate[MEMORY] = 2.0 * sizeof(double) * (double)p->n / seconds;
    TRL_TRY(time_of(loop, near_chunk, p, chunks, &seconds));
    rate[CACHE] = 2.0 * sizeof(double) * (double)p->near * CACHE_ROUNDS * chunks / seconds;
    TRL_TRY(time_of(loop, division_chunk, p, chunks, &seconds));
    rate[DIVISIONS] = costly / seconds;
    TRL_TRY(time_of(loop, exponential_chunk, p, chunks, &seconds));
    rate[EXPONENTIALS] = costly / seconds;
done:
    return err;
}

/* Two arrays of some bytes, or of fewer where memory is short. */
static trl_err allocate(trl_context *ctx, size_t least, size_t *bytes, void **a, void **b)
{
    static const char what[] = "the measurement of this machine";
    trl_err err = TRL_OK;
    for (; *bytes / 2 >= least; *bytes /= 2) {
        *a = trli_memory_try(ctx, *bytes);
        *b = *a ? trli_memory_try(ctx, *bytes) : NULL;
        if (*b) return TRL_OK;
        trl_memory_free(ctx, a);
    }
    TRL_TRY(trl_memory_alloc(ctx, *bytes, what, a));
    TRL_TRY(trl_memory_alloc(ctx, *bytes, what, b));
done:
    return err;
}

static size_t array_bytes(size_t caches)
{
    const size_t bytes = 2 * caches;
    return bytes < ARRAY_BYTES_MIN ? ARRAY_BYTES_MIN : bytes > ARRAY_BYTES_MAX ? ARRAY_BYTES_MAX : bytes;
}

/* Measure all rates, or that of operations alone, which takes a millisecond: nothing fills arrays that are larger than
 * the caches. whole: with arrays as long as they should be. */
static trl_err measure(trl_context *ctx, trl_workers *workers, bool all, double rate[RATES], bool *whole)
{
    const int count = trl_workers_count(workers), chunks = CHUNKS_PER_WORKER * count;
    const size_t share = trl_context_cache_bytes(ctx, 0), least = (size_t)chunks * CHUNK_BYTES_MIN;
    const size_t wanted = all ? array_bytes(share * (size_t)count) : least;
    size_t bytes = wanted;
    void *a = NULL, *b = NULL;
    trl_loop *loop = NULL;
    trl_memory_stats before;
    trl_err err = TRL_OK;
    trl_memory_get_stats(ctx, &before);
    TRL_TRY(allocate(ctx, least, &bytes, &a, &b));
    *whole = bytes == wanted;
    TRL_TRY(trl_loop_create(ctx, workers, &loop));
    arrays p = {a, b, (ptrdiff_t)(bytes / sizeof(double)), ROW};
    /* A quarter of the cache for each of the two pieces, in whole rows. */
    if (share / 4 > ROW * sizeof(double)) p.near = (ptrdiff_t)(share / 4 / (ROW * sizeof(double)) * ROW);
    if (p.near > p.n / chunks - 64) p.near = ROW;
    TRL_TRY(trl_loop_run(loop, chunks, fill_chunk, &p));
    TRL_TRY(measure_operations(loop, &p, chunks, &rate[OPERATIONS]));
    if (all) TRL_TRY(measure_others(loop, &p, chunks, rate));
done:
    trl_loop_destroy(&loop);
    trl_memory_free(ctx, &a);
    trl_memory_free(ctx, &b);
    trli_memory_set_peak(ctx, before.peak_bytes); /* of the problem's memory */
    return err;
}

/* ---- which rates count ---- */

/* What else the machine does makes rates worse, and never better: so the best of several measurements counts. They
 * become rarer and rarer, and begin anew in the end: the machine may be another one. */
static bool is_due(const trli_machine_record *r, long long now)
{
    long long wait = PERIOD;
    for (int i = 1; i < r->times && wait < PERIODS; ++i) wait *= GROWTH;
    return now < r->at || now - r->at >= wait;
}

static void take(trli_machine_record *r, const double rate[RATES])
{
    for (int i = 0; i < RATES; ++i)
        if (rate[i] > (r->times > 0 ? better * r->number[i] : 0)) r->number[i] = rate[i];
}

/* What is measured is not slower than what it contains: where it seems to be, others were at work. */
static trli_balance balance_of(const trl_context *ctx, const trl_workers *workers, const double rate[RATES])
{
    const size_t last = trl_context_cache_bytes(ctx, 0) * (size_t)trl_workers_count(workers);
    return (trli_balance){.memory = rate[MEMORY],
                          .cache = fmax(rate[CACHE], rate[MEMORY]),
                          .operations = rate[OPERATIONS],
                          .division = fmax(1, rate[OPERATIONS] / rate[DIVISIONS]),
                          .exponential = fmax(1, rate[OPERATIONS] / rate[EXPONENTIALS]),
                          .caches = last > 0 ? (double)last : 1};
}

/* Whether one rate is much better than it was. */
static trl_err look_again(trl_context *ctx, trl_workers *workers, trli_machine_record *r, bool *again)
{
    double rate[RATES];
    bool whole;
    const trl_err err = trl_context_agree(ctx, measure(ctx, workers, false, rate, &whole));
    *again = err == TRL_OK && rate[OPERATIONS] > disturbed * r->number[OPERATIONS];
    if (*again) r->number[OPERATIONS] = rate[OPERATIONS];
    return err;
}

/* Rank 0's record, measured by all ranks where it is to be. */
static trl_err find(trl_context *ctx, trl_workers *workers, const trli_cache *cache, const char *entry,
                    trli_machine_record *r)
{
    enum { KEPT, DUE, NONE };
    const long long now = (long long)time(NULL);
    double rate[RATES];
    bool again = false, whole;
    int state;
    trl_err err = TRL_OK;
    trli_record_load(&kind, cache, entry, now, PERIODS, r);
    state = r->times == 0 ? NONE : is_due(r, now) ? DUE : KEPT;
    TRL_TRY(trli_broadcast(ctx, &state, 1, MPI_INT, 0));
    if (state == KEPT) {
        TRL_TRY(look_again(ctx, workers, r, &again));
        if (again) state = DUE;
        TRL_TRY(trli_broadcast(ctx, &state, 1, MPI_INT, 0));
    }
    if (state == KEPT) goto done;
    TRL_TRY(trl_context_agree(ctx, measure(ctx, workers, true, rate, &whole)));
    take(r, rate);
    r->at = now;
    ++r->times;
    if (whole) trli_record_keep(&kind, cache, entry, r);
done:
    return err;
}

trl_err trli_balance_find(trl_context *ctx, trl_workers *workers, trli_balance *balance)
{
    enum { NUMBERS = sizeof *balance / sizeof(double) };
    trli_cache cache = {.folder = -1};
    const int counts[2] = {trl_workers_count(workers), trl_context_ranks(ctx)};
    char entry[TRLI_ENTRY_ROOM];
    trli_machine_record r = {0};
    bool given;
    int any;
    trl_err err;
    TRL_TRY(trl_context_agree(ctx, trli_record_read_given(ctx, &kind, &given, &r)));
    any = given;
    TRL_TRY(trli_broadcast(ctx, &any, 1, MPI_INT, 0));
    if (!any) {
        if (trl_context_rank(ctx) == 0) trli_cache_open(&cache);
        trli_record_name(&kind, counts, entry);
        TRL_TRY(find(ctx, workers, &cache, entry, &r));
    }
    *balance = balance_of(ctx, workers, r.number);
    err = trli_broadcast(ctx, balance, NUMBERS, MPI_DOUBLE, 0);
done:
    trli_cache_close(&cache);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How compiled kernels go through their boxes. Which variant is the fastest depends on caches, prefetchers and what
 * else uses the memory, as no table of sizes tells: the first calls try several, and the fastest stays. The results do
 * not depend on it. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "clock_impl.h"
#include "memory_impl.h"
#include "sweep_impl.h"

enum {
    SHARED_ROWS_LEAST = 4,
    VARIANTS_MOST = 16,
    SAMPLES = 5, /* up to TRLI_SAMPLES_MOST */
    AHEAD = 4,
    LINE_ROOM = 32,
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems go all variants */
    EVERY_VARIANT = true,
    ROWS_LEAST = 2,
    PLANES = 2 /* of a try, at least, if there are as many */
#else
    EVERY_VARIANT = false,
    ROWS_LEAST = 64,
    PLANES = 16
#endif
};

typedef struct variant {
    int interleave; /* planes whose rows are interleaved */
    bool streaming; /* by streaming stores */
    int ahead;      /* rows of the next plane that are prefetched */
    bool blocked;   /* as many rows at a time as the second-level cache holds the planes of */
    int depth;      /* planes that a part goes through before the next one does; 0: all */
} variant;

struct trli_tuning {
    int nvariants;
    variant variant[VARIANTS_MOST];
    double ns[VARIANTS_MOST][SAMPLES]; /* per point */
    long long block;                   /* rows, of variants that are blocked */
    _Atomic int begun, ended;          /* calls that try a variant */
    _Atomic int best;                  /* until all have ended: the first */
    _Atomic double point_ns;           /* of it, as noted last; 0: not yet */
    const trli_cache *cache;     /* where the best is kept for runs to come; NULL: nowhere, or it comes from there */
    char entry[TRLI_ENTRY_ROOM]; /* of the cache */
    int before;                  /* the best of the run before, not sure yet; -1: none */
};

/* What one row of a point of the box touches of all arrays, and whether some input is read on several planes. */
static size_t rows_of(int nout, const trli_reads *reads, bool *planes)
{
    size_t rows = (size_t)nout;
    *planes = false;
    for (int i = 0; i < reads->nfields; ++i) {
        const trl_offsets hull = trl_footprint_hull(&reads->footprint[i]);
        rows += (size_t)(1 + hull.hi[2] - hull.lo[2]);
        *planes |= hull.hi[2] > hull.lo[2];
    }
    return rows;
}

/* interleave: the most planes whose rows the kernel interleaves. */
static void add_variant(trli_tuning *t, int interleave, variant w)
{
    if (w.interleave <= interleave) t->variant[t->nvariants++] = w;
}

/* streaming: the data outgrow the caches, so streaming stores may pay. */
static void list_variants(trli_tuning *t, int interleave, bool planes, bool streaming)
{
    static const int planes_at_once[] = {2, 1, 4};
    if (!planes) {
        add_variant(t, 1, (variant){.interleave = 1, .streaming = streaming});
        if (streaming) add_variant(t, 1, (variant){.interleave = 1});
        return;
    }
    for (size_t i = 0; i < sizeof planes_at_once / sizeof *planes_at_once; ++i) {
        if (streaming) add_variant(t, interleave, (variant){.interleave = planes_at_once[i], .streaming = true});
        add_variant(t, interleave, (variant){.interleave = planes_at_once[i]});
    }
    if (!streaming) return;
    add_variant(t, interleave, (variant){.interleave = 1, .streaming = true, .ahead = AHEAD});
    add_variant(t, interleave, (variant){.interleave = 1, .streaming = true, .ahead = AHEAD, .blocked = true});
    add_variant(t, interleave, (variant){.interleave = 2, .streaming = true, .ahead = AHEAD});
    add_variant(t, interleave, (variant){.interleave = 2, .streaming = true, .ahead = AHEAD, .blocked = true});
    add_variant(t, interleave, (variant){.interleave = 4, .streaming = true, .ahead = AHEAD});
    add_variant(t, interleave, (variant){.interleave = 1, .ahead = AHEAD});
    add_variant(t, interleave, (variant){.interleave = 2, .streaming = true, .blocked = true});
    add_variant(t, interleave, (variant){.interleave = 2, .blocked = true});
}

/* Parts that read the same fields alternate after a few planes, maybe of a block of rows: what one part read is then
 * in a cache for the next one. */
static void list_shared(trli_tuning *t, int interleave, bool planes, bool streaming)
{
    static const variant each[] = {{.interleave = 2, .depth = 2},
                                   {.interleave = 2, .depth = 2, .blocked = true},
                                   {.interleave = 2, .depth = 8, .blocked = true},
                                   {.interleave = 2},
                                   {.interleave = 1, .depth = 1, .blocked = true},
                                   {.interleave = 4, .depth = 4}};
    for (size_t i = 0; i < sizeof each / sizeof *each; ++i)
        for (int on = streaming; on >= 0; --on) {
            variant w = each[i];
            w.streaming = on;
            if (!planes) w.interleave = 1;
            if (planes || i < 2) add_variant(t, interleave, w);
        }
    if (!streaming || !planes) return;
    add_variant(t, interleave, (variant){.interleave = 2, .streaming = true, .ahead = AHEAD, .depth = 2});
    add_variant(t, interleave,
                (variant){.interleave = 1, .streaming = true, .ahead = AHEAD, .depth = 1, .blocked = true});
}

/* What the best variant depends on, beside the kernel. */
typedef struct size {
    int64_t points, row; /* of all patches; of the longest row */
    int threads, nvariants, samples, planes;
} size;

static int tries_of(const trli_tuning *t)
{
    return t->nvariants > 1 ? t->nvariants * SAMPLES : 0;
}

/* The best variant of two runs that agreed: what one finds on a busy machine should not stay. Else where to keep it. */
static void look_up(trli_tuning *t, const trl_context *ctx, const trli_tuning_request *request)
{
    char line[LINE_ROOM];
    size key;
    int best, runs;
    memset(&key, 0, sizeof key); /* padding, too */
    key.points = request->points;
    key.row = request->row;
    key.threads = trl_context_threads(ctx);
    key.nvariants = t->nvariants;
    key.samples = SAMPLES;
    key.planes = PLANES;
    if (EVERY_VARIANT || tries_of(t) == 0 || !request->text || !request->compiler) return;
    const trli_cache *cache = trli_compiler_entry(request->compiler, request->text, &key, sizeof key, t->entry);
    if (!cache) return;
    const bool known = trli_cache_load(cache, t->entry, line, sizeof line) &&
                       sscanf(line, "%d %d", &best, &runs) == 2 && best >= 0 && best < t->nvariants;
    if (known && runs > 1) {
        t->begun = t->ended = tries_of(t);
        t->best = best;
        return;
    }
    t->before = known ? best : -1;
    t->cache = cache;
}

trl_err trli_tuning_create(trl_context *ctx, const trli_tuning_request *request, trli_tuning **tuning)
{
    const size_t second = trl_context_cache_bytes(ctx, 2);
    bool planes;
    trli_tuning *t = *tuning = trli_new(ctx, 1, sizeof *t);
    if (!t) return trli_no_memory(ctx, NULL, "to tune kernel '%s'", request->label);
    size_t rows = rows_of(request->nout, request->reads, &planes);
    const bool shared = request->nparts > 1 && request->shared_rows > 0;
    if (request->nparts > 1)
        rows = (size_t)request->shared_rows + rows_of(request->part_nout, request->part_reads, &(bool){false});
    t->block = (long long)(second / 2 / (rows * (size_t)request->row * sizeof(double)));
    const long long least = shared && SHARED_ROWS_LEAST < ROWS_LEAST ? SHARED_ROWS_LEAST : ROWS_LEAST;
    if (t->block < least || EVERY_VARIANT) t->block = least;
    if (shared)
        list_shared(t, request->interleave, planes, request->streaming);
    else
        list_variants(t, request->interleave, planes, request->streaming);
    look_up(t, ctx, request);
    return TRL_OK;
}

void trli_tuning_follow(trli_tuning *t, const trli_tuning *other)
{
    t->cache = NULL;
    memcpy(t->variant, other->variant, sizeof t->variant);
    t->nvariants = other->nvariants;
    t->begun = t->ended = tries_of(t);
    t->best = other->best;
}

void trli_tuning_destroy(trli_tuning **tuning)
{
    trli_tuning *t = *tuning;
    char line[LINE_ROOM];
    *tuning = NULL;
    if (!t) return;
    if (t->cache && t->ended >= tries_of(t)) {
        snprintf(line, sizeof line, "%d %d\n", t->best, t->best == t->before ? 2 : 1);
        trli_cache_keep(t->cache, t->entry, line);
    }
    trli_free(t);
}

double trli_median(const double *samples, int n)
{
    double sorted[TRLI_SAMPLES_MOST];
    for (int i = 0, at; i < n; ++i) {
        for (at = i; at > 0 && sorted[at - 1] > samples[i]; --at) sorted[at] = sorted[at - 1];
        sorted[at] = samples[i];
    }
    return sorted[n / 2];
}

static void note(trli_tuning *t, int call, double ns)
{
    int best = 0;
    t->ns[call % t->nvariants][call / t->nvariants] = ns;
    /* Acquire and release: the last one to end sees all times. */
    if (atomic_fetch_add_explicit(&t->ended, 1, memory_order_acq_rel) + 1 < t->nvariants * SAMPLES) return;
    for (int w = 1; w < t->nvariants; ++w)
        if (trli_median(t->ns[w], SAMPLES) < trli_median(t->ns[best], SAMPLES)) best = w;
    atomic_store_explicit(&t->best, best, memory_order_relaxed);
}

static trli_sweep_way way_of(const trli_tuning *t, const variant *w)
{
    return (trli_sweep_way){.interleave = w->interleave,
                            .streaming = w->streaming,
                            .ahead = w->ahead,
                            .depth = w->depth,
                            .block = w->blocked ? t->block : 0};
}

trli_sweep_way trli_tuning_best(const trli_tuning *t)
{
    return way_of(t, &t->variant[atomic_load_explicit(&t->best, memory_order_relaxed)]);
}

/* Only a hint. */
double trli_tuning_ns(const trli_tuning *t)
{
    return atomic_load_explicit(&t->point_ns, memory_order_relaxed);
}

void trli_tuning_note(trli_tuning *t, double ns)
{
    atomic_store_explicit(&t->point_ns, ns, memory_order_relaxed);
}

/* Planes and rows of the box. */
static bool go_part(const trli_native_part *part, const trli_sweep_way *way, long long block, const long long y[2],
                    const long long z[2])
{
    trl_kernel_call call = part->call;
    call.lo[1] = y[0];
    call.hi[1] = y[1];
    call.lo[2] = z[0];
    call.hi[2] = z[1];
    call.interleave = way->interleave;
    call.streaming = way->streaming;
    call.ahead = way->ahead;
    call.block = block;
    part->native(&call);
    return call.nonfinite == 0;
}

bool trli_sweep_planes(const trli_native_part *part, int nparts, const trli_sweep_way *way, long long first,
                       long long end)
{
    const long long lo = part->call.lo[1], hi = part->call.hi[1];
    const long long block = way->block > 0 && hi - lo > way->block ? way->block : hi - lo;
    const long long depth = way->depth > 0 ? way->depth : end - first;
    bool finite = true;
    if (nparts == 1) return go_part(part, way, block, (const long long[]){lo, hi}, (const long long[]){first, end});
    for (long long y = lo; y < hi; y += block)
        for (long long z = first; z < end; z += depth) {
            const long long rows[] = {y, y + block < hi ? y + block : hi};
            const long long planes[] = {z, z + depth < end ? z + depth : end};
            for (int p = 0; p < nparts; ++p) finite &= go_part(&part[p], way, block, rows, planes);
        }
    return finite;
}

/* The next try, or -1: all have begun. Relaxed: only shares them out. */
static int next_try(trli_tuning *t)
{
    const int tries = tries_of(t);
    if (atomic_load_explicit(&t->begun, memory_order_relaxed) >= tries) return -1;
    const int try = atomic_fetch_add_explicit(&t->begun, 1, memory_order_relaxed);
    return try < tries ?
    try:
        -1;
}

long long trli_sweep_try(const trli_native_part *part, int nparts, trli_tuning *t, bool *finite)
{
    const trl_kernel_call *call = &part->call;
    const long long end = call->hi[2], rows = (call->hi[0] - call->lo[0]) * (call->hi[1] - call->lo[1]);
    long long plane = call->lo[2];
    for (int try; plane < end && (try = next_try(t)) >= 0;) {
        const trli_sweep_way way = way_of(t, &t->variant[try % t->nvariants]);
        const long long stop = end - plane < 2LL * PLANES ? end : plane + PLANES;
        const int64_t start = trli_now_ns();
        *finite &= trli_sweep_planes(part, nparts, &way, plane, stop);
        note(t, try, (double)(trli_now_ns() - start) / (double)((stop - plane) * rows));
        plane = stop;
    }
    return plane;
}

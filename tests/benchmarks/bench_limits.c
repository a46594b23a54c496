/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Copy and triad after McCalpin, "Memory bandwidth and machine balance in current high performance computers", 1995,
 * with streaming stores, so that the bytes named are the bytes moved. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_impl.h"
#include "vector_impl.h"

enum { PASSES = 10, QUICK_PASSES = 2 };
#define ARRAY_BYTES_MIN ((size_t)64 << 20)

#define TRIAD(width, attribute)                                                                                      \
    attribute static void triad##width(double *a, const double *b, const double *c, ptrdiff_t n)                     \
    {                                                                                                                \
        for (ptrdiff_t i = 0; i < n; i += (width))                                                                   \
            TRLI_STREAM_STORE##width(&a[i],                                                                          \
                                     *(const trli_vector##width *)&b[i] + 3.0 * *(const trli_vector##width *)&c[i]); \
        TRLI_STREAM_FENCE();                                                                                         \
    }
TRLI_STREAM_VARIANTS(TRLI_STREAM_COPY)
TRLI_STREAM_VARIANTS(TRIAD)

typedef struct passes {
    double *a, *b, *c;
    ptrdiff_t n;
    int count;
    double copy, triad; /* seconds of the fastest pass */
} passes;

static double least(double best, double seconds)
{
    return best == 0 || seconds < best ? seconds : best;
}

static void work(trli_team *team, int member, void *data)
{
    passes *p = data;
    ptrdiff_t begin, end;
    trli_team_share(team, member, p->n / 8, &begin, &end); /* whole vectors */
    begin *= 8;
    end *= 8;
    for (ptrdiff_t i = begin; i < end; ++i) p->b[i] = p->c[i] = 1.0 + (double)i; /* zeros may share one page */
    for (int pass = 0; pass < p->count; ++pass) {
        trli_team_barrier(team);
        double start = trli_bench_clock();
        TRLI_STREAM_CALL(copy, &p->a[begin], &p->b[begin], end - begin);
        trli_team_barrier(team);
        double middle = trli_bench_clock();
        TRLI_STREAM_CALL(triad, &p->a[begin], &p->b[begin], &p->c[begin], end - begin);
        trli_team_barrier(team);
        if (member > 0) continue;
        p->copy = least(p->copy, middle - start);
        p->triad = least(p->triad, trli_bench_clock() - middle);
    }
}

static trl_err measure(trli_bench *bench, passes *p, int threads, trli_limits *limits)
{
    p->copy = p->triad = 0;
    trl_err err = trli_team_run(bench->ctx, threads, work, p);
    if (err != TRL_OK) return err;
    double bytes = (double)p->n * sizeof(double);
    *limits = (trli_limits){threads, 2 * bytes / p->copy, 3 * bytes / p->triad};
    if (p->a[p->n - 1] != p->b[p->n - 1] + 3.0 * p->c[p->n - 1])
        return trl_fail(bench->ctx, TRL_ERR_BUG, NULL,
                        "the triad that measures the memory's speed computes wrong numbers");
    printf("memory, %d thread%s: copy %.1f GB/s, triad %.1f GB/s\n", threads, threads > 1 ? "s" : "",
           1e-9 * limits->copy, 1e-9 * limits->triad);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "threads");
    trli_json_integer(bench->json, threads);
    trli_json_key(bench->json, "copy_bytes_per_s");
    trli_json_number(bench->json, limits->copy);
    trli_json_key(bench->json, "triad_bytes_per_s");
    trli_json_number(bench->json, limits->triad);
    trli_json_end_object(bench->json);
    return TRL_OK;
}

trl_err trli_limits_measure(trli_bench *bench, trli_limits *one, trli_limits *all)
{
    size_t cache = 2 * trl_context_cache_bytes(bench->ctx, 0) * (size_t)trl_context_cores(bench->ctx);
    size_t bytes = cache > ARRAY_BYTES_MIN ? cache : ARRAY_BYTES_MIN;
    passes p = {.n = (ptrdiff_t)(bytes / 64 * 8), .count = bench->quick ? QUICK_PASSES : PASSES};
    trl_err err = TRL_OK;
    TRL_TRY(trli_bench_alloc(bench->ctx, (size_t)p.n, &p.a));
    TRL_TRY(trli_bench_alloc(bench->ctx, (size_t)p.n, &p.b));
    TRL_TRY(trli_bench_alloc(bench->ctx, (size_t)p.n, &p.c));
    trli_json_key(bench->json, "limits");
    trli_json_begin_array(bench->json);
    TRL_TRY(measure(bench, &p, 1, one));
    *all = *one;
    if (bench->threads > 1) TRL_TRY(measure(bench, &p, bench->threads, all));
    trli_json_end_array(bench->json);
done:
    free(p.a);
    free(p.b);
    free(p.c);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include "memory_impl.h"
#include "point_blocks_impl.h"

enum { CHUNK = 1024 };

static void factor(int n, double *a, unsigned char *pivot)
{
    for (int k = 0; k < n; ++k) {
        int p = k;
        for (int i = k + 1; i < n; ++i)
            if (fabs(a[i * n + k]) > fabs(a[p * n + k])) p = i;
        pivot[k] = (unsigned char)p;
        for (int j = 0; j < n && p != k; ++j) {
            const double swapped = a[k * n + j];
            a[k * n + j] = a[p * n + j];
            a[p * n + j] = swapped;
        }
        if (a[k * n + k] == 0) a[k * n + k] = 1;
        for (int i = k + 1; i < n; ++i) {
            const double f = a[i * n + k] /= a[k * n + k];
            for (int j = k + 1; j < n && f != 0; ++j) a[i * n + j] -= f * a[k * n + j];
        }
    }
}

static void solve(int n, const double *a, const unsigned char *pivot, double *x)
{
    for (int k = 0; k < n; ++k) {
        const double swapped = x[pivot[k]];
        x[pivot[k]] = x[k];
        x[k] = swapped;
    }
    for (int i = 1; i < n; ++i)
        for (int j = 0; j < i; ++j) x[i] -= a[i * n + j] * x[j];
    for (int i = n - 1; i >= 0; --i) {
        for (int j = i + 1; j < n; ++j) x[i] -= a[i * n + j] * x[j];
        x[i] /= a[i * n + i];
    }
}

typedef struct job {
    const trli_point_blocks *blocks;
    const double *r; /* NULL: blocks are factored */
    double *z;
} job;

static trl_err run_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const trli_point_blocks *b = w->blocks;
    const int n = b->n;
    double x[TRLI_BLOCK_MOST];
    (void)worker;
    for (int64_t k = b->points * chunk / chunks; k < b->points * (chunk + 1) / chunks; ++k) {
        double *entry = b->entry + k * n * n;
        if (!w->r) {
            factor(n, entry, b->pivot + k * n);
            continue;
        }
        for (int i = 0; i < n; ++i) x[i] = w->r[i * b->points + k];
        solve(n, entry, b->pivot + k * n, x);
        for (int i = 0; i < n; ++i) w->z[i * b->points + k] = x[i];
    }
    return TRL_OK;
}

static trl_err run(job *w)
{
    const int64_t chunks = (w->blocks->points + CHUNK - 1) / CHUNK, most = 4 * trl_loop_workers(w->blocks->loop);
    return trl_loop_run(w->blocks->loop, (int)(chunks < most ? chunks : most), run_chunk, w);
}

trl_err trli_point_blocks_create(trl_context *ctx, trl_loop *loop, int n, int64_t points, trli_point_blocks *blocks)
{
    const size_t all = (size_t)n * (size_t)points;
    trl_err err = TRL_OK;
    *blocks = (trli_point_blocks){.ctx = ctx, .loop = loop, .n = n, .points = points};
    TRL_TRY(trl_memory_alloc(ctx, sizeof(double) * (all * (size_t)n + 1), "matrices of points", &blocks->memory[0]));
    TRL_TRY(trl_memory_alloc(ctx, all + 1, "matrices of points", &blocks->memory[1]));
    blocks->entry = blocks->memory[0];
    blocks->pivot = blocks->memory[1];
done:
    return err;
}

void trli_point_blocks_destroy(trli_point_blocks *blocks)
{
    for (int i = 0; i < 2 && blocks->ctx; ++i) trl_memory_free(blocks->ctx, &blocks->memory[i]);
    *blocks = (trli_point_blocks){0};
}

trl_err trli_point_blocks_factor(trli_point_blocks *blocks)
{
    return run(&(job){.blocks = blocks});
}

trl_err trli_point_blocks_solve(const trli_point_blocks *blocks, const double *r, double *z)
{
    return run(&(job){blocks, r, z});
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Trigonometric transforms by FFTW (Frigo & Johnson 2005). Its plans are estimated, not measured: they, and so the
 * bits, are the same in each run. */
#include <string.h>

#include <fftw3.h>

#include "memory_impl.h"
#include "transform_impl.h"

struct trli_transform {
    fftw_plan line[2], lines[2]; /* there, back */
    double norm;
};

typedef struct kinds {
    fftw_r2r_kind there, back;
    int norm, more; /* there and back multiply by norm*(n + more) */
} kinds;

static const kinds table[TRLI_TRANSFORMS] = {
    [TRLI_TRANSFORM_PERIODIC] = {FFTW_R2HC, FFTW_HC2R, 1, 0},
    [TRLI_TRANSFORM_EVEN] = {FFTW_REDFT10, FFTW_REDFT01, 2, 0},
    [TRLI_TRANSFORM_ODD] = {FFTW_RODFT10, FFTW_RODFT01, 2, 0},
    [TRLI_TRANSFORM_EVEN_ODD] = {FFTW_REDFT11, FFTW_REDFT11, 2, 0},
    [TRLI_TRANSFORM_ODD_EVEN] = {FFTW_RODFT11, FFTW_RODFT11, 2, 0},
    [TRLI_TRANSFORM_POINT_EVEN] = {FFTW_REDFT00, FFTW_REDFT00, 2, -1},
    [TRLI_TRANSFORM_POINT_ODD] = {FFTW_RODFT00, FFTW_RODFT00, 2, 1},
    [TRLI_TRANSFORM_POINT_EVEN_ODD] = {FFTW_REDFT01, FFTW_REDFT10, 2, 0},
    [TRLI_TRANSFORM_POINT_ODD_EVEN] = {FFTW_RODFT01, FFTW_RODFT10, 2, 0},
};

const char *trli_transform_library(void)
{
    return strncmp(fftw_version, "fftw-", 5) ? fftw_version : fftw_version + 5;
}

static fftw_plan make_plan(double *memory, int n, int lines, fftw_r2r_kind kind)
{
    return fftw_plan_many_r2r(1, &n, lines, memory, NULL, lines, 1, memory, NULL, lines, 1, &kind, FFTW_ESTIMATE);
}

trl_err trli_transform_create(trl_context *ctx, trli_transform_kind kind, int n, trli_transform **transform)
{
    const kinds *k = &table[kind];
    void *memory = NULL;
    trl_err err = TRL_OK;
    trli_transform *t = *transform = trli_new(ctx, 1, sizeof *t);
    if (!t) return trli_no_memory(ctx, NULL, "for transforms of lines of %d points", n);
    t->norm = (double)k->norm * (n + k->more);
    TRL_TRY(trl_memory_alloc(ctx, sizeof(double) * TRLI_LANES * (size_t)n, "lines to be transformed", &memory));
    for (int back = 0; back < 2; ++back) {
        t->line[back] = make_plan(memory, n, 1, back ? k->back : k->there);
        t->lines[back] = make_plan(memory, n, TRLI_LANES, back ? k->back : k->there);
        if (!t->line[back] || !t->lines[back])
            TRL_TRY(trli_no_memory(ctx, NULL, "for FFTW's transforms of lines of %d points", n));
    }
done:
    trl_memory_free(ctx, &memory);
    return err;
}

void trli_transform_destroy(trli_transform **transform)
{
    trli_transform *t = *transform;
    *transform = NULL;
    for (int back = 0; t && back < 2; ++back) {
        if (t->line[back]) fftw_destroy_plan(t->line[back]);
        if (t->lines[back]) fftw_destroy_plan(t->lines[back]);
    }
    trli_free(t);
}

void trli_transform_line(const trli_transform *transform, bool back, double *line)
{
    fftw_execute_r2r(transform->line[back], line, line);
}

void trli_transform_lines(const trli_transform *transform, bool back, double *lines)
{
    fftw_execute_r2r(transform->lines[back], lines, lines);
}

double trli_transform_norm(const trli_transform *transform)
{
    return transform->norm;
}

double trli_transform_operations(const trli_transform *transform)
{
    double sum = 0, add, multiply, fused;
    for (int back = 0; back < 2; ++back) {
        fftw_flops(transform->lines[back], &add, &multiply, &fused);
        sum += (add + multiply + 2 * fused) / TRLI_LANES;
    }
    return sum;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Trigonometric transforms by FFTW (Frigo & Johnson 2005). Its plans are estimated, not measured: they, and so the
 * bits, are the same in each run. */
#include <string.h>

#include <fftw3.h>

#include "memory_impl.h"
#include "transform_impl.h"
#include "vector_impl.h"

/* Periodic lines are transformed as complex numbers, for which FFTW has vector code: a line by itself to half of its
 * spectrum, and paired lines as real and imaginary parts. */
struct trli_transform {
    int n;
    trli_transform_kind kind;
    bool periodic;
    trli_line_pairs pairs;       /* NONE: lines are not periodic, or single */
    fftw_plan line[2], lines[2]; /* there, back */
    double norm;
};

typedef struct kinds {
    fftw_r2r_kind there, back;
    int norm, more; /* there and back multiply by norm*(n + more) */
} kinds;

static const kinds table[TRLI_TRANSFORMS] = {
    [TRLI_TRANSFORM_PERIODIC] = {FFTW_R2HC, FFTW_HC2R, 1, 0},
    [TRLI_TRANSFORM_COMPLEX] = {FFTW_R2HC, FFTW_HC2R, 1, 0},
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

static fftw_plan make_periodic(double *memory, double *scratch, int n, bool back)
{
    fftw_complex *half = (fftw_complex *)scratch;
    return back ? fftw_plan_dft_c2r_1d(n, half, memory, FFTW_ESTIMATE)
                : fftw_plan_dft_r2c_1d(n, memory, half, FFTW_ESTIMATE);
}

static fftw_plan make_paired(double *memory, int n, bool back)
{
    enum { PAIRS = TRLI_LANES / 2 };
    fftw_complex *z = (fftw_complex *)memory;
    return fftw_plan_many_dft(1, &n, PAIRS, z, NULL, PAIRS, 1, z, NULL, PAIRS, 1, back ? FFTW_BACKWARD : FFTW_FORWARD,
                              FFTW_ESTIMATE);
}

trl_err trli_transform_create(trl_context *ctx, trli_transform_kind kind, int n, trli_line_pairs pairs,
                              trli_transform **transform)
{
    const kinds *k = &table[kind];
    const size_t points = (size_t)n + 2;
    void *memory = NULL;
    trl_err err = TRL_OK;
    trli_transform *t = *transform = trli_new(ctx, 1, sizeof *t);
    if (!t) return trli_no_memory(ctx, NULL, "for transforms of lines of %d points", n);
    t->n = n;
    t->kind = kind;
    t->periodic = kind == TRLI_TRANSFORM_PERIODIC || kind == TRLI_TRANSFORM_COMPLEX;
    t->pairs = t->periodic ? pairs : TRLI_PAIRS_NONE;
    t->norm = (double)k->norm * (n + k->more);
    TRL_TRY(trl_memory_alloc(ctx, 2 * sizeof(double) * TRLI_LANES * points, "lines to be transformed", &memory));
    double *scratch = (double *)memory + TRLI_LANES * points;
    for (int back = 0; back < 2; ++back) {
        const fftw_r2r_kind r2r = back ? k->back : k->there;
        t->line[back] = t->periodic ? make_periodic(memory, scratch, n, back) : make_plan(memory, n, 1, r2r);
        t->lines[back] = t->pairs ? make_paired(memory, n, back) : make_plan(memory, n, TRLI_LANES, r2r);
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

/* ---- one line ---- */

static void split(const double *half, int n, double *line)
{
    line[0] = half[0];
    for (int k = 1; 2 * k <= n; ++k) line[k] = half[2 * k];
    for (int k = 1; 2 * k < n; ++k) line[n - k] = half[2 * k + 1];
}

static void join(const double *line, int n, double *half)
{
    half[0] = line[0];
    half[1] = half[n / 2 * 2 + 1] = 0;
    for (int k = 1; 2 * k <= n; ++k) half[2 * k] = line[k];
    for (int k = 1; 2 * k < n; ++k) half[2 * k + 1] = line[n - k];
}

/* As FFTW has half a spectrum, with the last wave in place of what is zero. */
static void transform_complex(const trli_transform *t, bool back, double *from, double *to, double *half)
{
    const size_t bytes = (size_t)t->n * sizeof *half;
    if (back) {
        memcpy(half, from, bytes);
        half[t->n] = half[1];
        half[1] = half[t->n + 1] = 0;
        fftw_execute_dft_c2r(t->line[1], (fftw_complex *)half, to);
    } else {
        fftw_execute_dft_r2c(t->line[0], from, (fftw_complex *)half);
        half[1] = half[t->n];
        memcpy(to, half, bytes);
    }
}

void trli_transform_line(const trli_transform *transform, bool back, double *line, double *scratch)
{
    fftw_complex *half = (fftw_complex *)scratch;
    if (transform->kind == TRLI_TRANSFORM_COMPLEX) {
        transform_complex(transform, back, line, line, scratch);
    } else if (!transform->periodic) {
        fftw_execute_r2r(transform->line[back], line, line);
    } else if (back) {
        join(line, transform->n, scratch);
        fftw_execute_dft_c2r(transform->line[1], half, line);
    } else {
        fftw_execute_dft_r2c(transform->line[0], line, half);
        split(scratch, transform->n, line);
    }
}

/* FFTW's plans are for memory that begins where that of others did which they were made with. */
void trli_transform_row(const trli_transform *transform, bool back, double *from, double *to, double *scratch)
{
    const size_t bytes = (size_t)transform->n * sizeof *to;
    if (transform->kind == TRLI_TRANSFORM_COMPLEX && fftw_alignment_of(back ? to : from) == 0) {
        transform_complex(transform, back, from, to, scratch);
        return;
    }
    if (!back) memcpy(to, from, bytes);
    trli_transform_line(transform, back, back ? from : to, scratch);
    if (back) memcpy(to, from, bytes);
}

/* ---- several lines ---- */

/* The spectra of two real lines from that of the first plus i times the second, and back. lanes: of all lines, or of
 * the first two. */
static inline void separate_lanes(double *lines, int n, int lanes)
{
    for (int k = 1; 2 * k < n; ++k) {
        double *restrict p = lines + (ptrdiff_t)k * TRLI_LANES, *restrict q = lines + (ptrdiff_t)(n - k) * TRLI_LANES;
        for (int l = 0; l < lanes; l += 2) {
            const double re = p[l], im = p[l + 1], other_re = q[l], other_im = q[l + 1];
            p[l] = 0.5 * (re + other_re);
            p[l + 1] = 0.5 * (im + other_im);
            q[l] = 0.5 * (im - other_im);
            q[l + 1] = 0.5 * (other_re - re);
        }
    }
}

static inline void unite_lanes(double *lines, int n, int lanes)
{
    for (int k = 1; 2 * k < n; ++k) {
        double *restrict p = lines + (ptrdiff_t)k * TRLI_LANES, *restrict q = lines + (ptrdiff_t)(n - k) * TRLI_LANES;
        for (int l = 0; l < lanes; l += 2) {
            const double first_re = p[l], second_re = p[l + 1], first_im = q[l], second_im = q[l + 1];
            p[l] = first_re - second_im;
            p[l + 1] = first_im + second_re;
            q[l] = first_re + second_im;
            q[l + 1] = second_re - first_im;
        }
    }
}

TRLI_CLONES static void separate(double *lines, int n)
{
    separate_lanes(lines, n, TRLI_LANES);
}

TRLI_CLONES static void unite(double *lines, int n)
{
    unite_lanes(lines, n, TRLI_LANES);
}

void trli_transform_lines(const trli_transform *transform, bool back, bool first, double *lines)
{
    const trli_transform *t = transform;
    const bool all = t->pairs == TRLI_PAIRS_REAL;
    if (t->pairs == TRLI_PAIRS_NONE) {
        fftw_execute_r2r(t->lines[back], lines, lines);
        return;
    }
    if (back && all) unite(lines, t->n);
    if (back && !all && first) unite_lanes(lines, t->n, 2);
    fftw_execute_dft(t->lines[back], (fftw_complex *)lines, (fftw_complex *)lines);
    if (!back && all) separate(lines, t->n);
    if (!back && !all && first) separate_lanes(lines, t->n, 2);
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
    if (transform->pairs == TRLI_PAIRS_REAL) sum += 3 * transform->n; /* to separate lines, and unite them */
    return sum;
}

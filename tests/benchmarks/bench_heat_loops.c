/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdlib.h>

#include "bench_heat_impl.h"
#include "vector_impl.h"

enum {
    LINE = 8, /* doubles in a cache line */
    /* By which arrays begin at different places of a page: else stores look as if they hit the loads that follow. */
    APART = 11 * LINE
};

void trli_heat_shape(trli_heat *heat)
{
    heat->stride[0] = 1;
    /* a ghost on each side, the minus one at a line's end */
    heat->stride[1] = (ptrdiff_t)((heat->n[0] + 2 * LINE) / LINE) * LINE;
    heat->stride[2] = heat->stride[1] * (heat->n[1] + 2);
    heat->origin = LINE + heat->stride[1] + heat->stride[2];
    heat->points = LINE + heat->stride[2] * (heat->n[2] + 2);
}

/* Planes of a member: [*begin, *end). */
static void planes(const trli_team *team, int member, const trli_heat *h, ptrdiff_t *begin, ptrdiff_t *end)
{
    trli_team_share(team, member, h->n[2], begin, end);
}

/* Ghosts beyond T = 0: 2*0 - T. Each member fills the x and y sides of its planes, the outer members the z sides. */
void trli_heat_fill_sides(trli_team *team, int member, const trli_heat *h, double *t)
{
    ptrdiff_t begin, end, sy = h->stride[1], sz = h->stride[2], nx = h->n[0], ny = h->n[1], nz = h->n[2];
    planes(team, member, h, &begin, &end);
    for (ptrdiff_t k = begin; k < end; ++k) {
        double *p = t + k * sz;
        for (ptrdiff_t j = 0; j < ny; ++j) {
            p[j * sy - 1] = 0.0 - p[j * sy];
            p[j * sy + nx] = 0.0 - p[j * sy + nx - 1];
        }
        for (ptrdiff_t i = 0; i < nx; ++i) {
            p[i - sy] = 0.0 - p[i];
            p[i + ny * sy] = 0.0 - p[i + (ny - 1) * sy];
        }
    }
    for (ptrdiff_t j = 0; j < ny && member == 0; ++j)
        for (ptrdiff_t i = 0; i < nx; ++i) t[i + j * sy - sz] = 0.0 - t[i + j * sy];
    for (ptrdiff_t j = 0; j < ny && member + 1 == trli_team_size(team); ++j)
        for (ptrdiff_t i = 0; i < nx; ++i) t[i + j * sy + nz * sz] = 0.0 - t[i + j * sy + (nz - 1) * sz];
    trli_team_barrier(team);
}

/* ---- one loop per operator ---- */

TRLI_CLONES static void difference_row(double *restrict out, const double *a, const double *b, double scale,
                                       ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) out[i] = (a[i] - b[i]) * scale;
}

TRLI_CLONES static void scale_row(double *restrict out, const double *restrict a, double scale, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) out[i] = scale * a[i];
}

TRLI_CLONES static void flux_update_row(double *restrict out, const double *restrict t, const double *restrict x,
                                        const double *restrict y, const double *restrict z, double dt, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) out[i] = t[i] + dt * -(x[i] + y[i] + z[i]);
}

TRLI_CLONES static void laplacian_row(double *restrict out, const double *restrict t, ptrdiff_t sy, ptrdiff_t sz,
                                      const double scale[3], ptrdiff_t n)
{
    double sx2 = scale[0], sy2 = scale[1], sz2 = scale[2];
    for (ptrdiff_t i = 0; i < n; ++i) {
        double twice = 2.0 * t[i];
        out[i] = (t[i - 1] + t[i + 1] - twice) * sx2 + (t[i - sy] + t[i + sy] - twice) * sy2 +
                 (t[i - sz] + t[i + sz] - twice) * sz2;
    }
}

TRLI_CLONES static void laplacian_update_row(double *restrict out, const double *restrict t, const double *restrict l,
                                             double k, double dt, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) out[i] = t[i] + dt * (k * l[i]);
}

/* Along axis a, points 0..n of faces where the axis is the field's own. */
typedef struct sweep {
    const trli_heat *h;
    ptrdiff_t begin, end; /* planes of the member */
    bool last;            /* whose planes are the highest: it also has the final plane of z-faces */
} sweep;

static ptrdiff_t rows_of(const sweep *s, int axis, int faces)
{
    return s->h->n[1] + (faces && axis == 1);
}

static ptrdiff_t end_of(const sweep *s, int axis, int faces)
{
    return s->end + (faces && axis == 2 && s->last);
}

static void flux_step(trli_team *team, int member, trli_heat_loops *loops)
{
    const trli_heat *h = loops->heat;
    sweep s = {.h = h, .last = member + 1 == trli_team_size(team)};
    ptrdiff_t sy = h->stride[1], sz = h->stride[2], nx = h->n[0];
    planes(team, member, h, &s.begin, &s.end);
    trli_heat_fill_sides(team, member, h, loops->now);
    for (int a = 0; a < 3; ++a) /* gradients */
        for (ptrdiff_t k = s.begin; k < end_of(&s, a, 1); ++k)
            for (ptrdiff_t j = 0; j < rows_of(&s, a, 1); ++j) {
                const double *t = loops->now + j * sy + k * sz;
                difference_row(loops->work[a] + j * sy + k * sz, t, t - h->stride[a], 1.0 / h->spacing[a],
                               nx + (a == 0));
            }
    trli_team_barrier(team);
    for (int a = 0; a < 3; ++a) /* fluxes */
        for (ptrdiff_t k = s.begin; k < end_of(&s, a, 1); ++k)
            for (ptrdiff_t j = 0; j < rows_of(&s, a, 1); ++j)
                scale_row(loops->work[3 + a] + j * sy + k * sz, loops->work[a] + j * sy + k * sz, -h->k, nx + (a == 0));
    trli_team_barrier(team);
    for (int a = 0; a < 3; ++a) /* the parts of the divergence */
        for (ptrdiff_t k = s.begin; k < s.end; ++k)
            for (ptrdiff_t j = 0; j < h->n[1]; ++j) {
                const double *q = loops->work[3 + a] + j * sy + k * sz;
                difference_row(loops->work[a] + j * sy + k * sz, q + h->stride[a], q, 1.0 / h->spacing[a], nx);
            }
    trli_team_barrier(team);
    for (ptrdiff_t k = s.begin; k < s.end; ++k)
        for (ptrdiff_t j = 0; j < h->n[1]; ++j) {
            ptrdiff_t at = j * sy + k * sz;
            flux_update_row(loops->next + at, loops->now + at, loops->work[0] + at, loops->work[1] + at,
                            loops->work[2] + at, h->dt, nx);
        }
}

static void scales_of_laplacian(const trli_heat *h, double scale[3])
{
    for (int a = 0; a < 3; ++a) scale[a] = 1.0 / h->spacing[a] / h->spacing[a];
}

static void laplacian_step(trli_team *team, int member, trli_heat_loops *loops)
{
    const trli_heat *h = loops->heat;
    ptrdiff_t begin, end, sy = h->stride[1], sz = h->stride[2];
    double scale[3];
    scales_of_laplacian(h, scale);
    planes(team, member, h, &begin, &end);
    trli_heat_fill_sides(team, member, h, loops->now);
    for (ptrdiff_t k = begin; k < end; ++k)
        for (ptrdiff_t j = 0; j < h->n[1]; ++j)
            laplacian_row(loops->work[0] + j * sy + k * sz, loops->now + j * sy + k * sz, sy, sz, scale, h->n[0]);
    trli_team_barrier(team);
    for (ptrdiff_t k = begin; k < end; ++k)
        for (ptrdiff_t j = 0; j < h->n[1]; ++j) {
            ptrdiff_t at = j * sy + k * sz;
            laplacian_update_row(loops->next + at, loops->now + at, loops->work[0] + at, h->k, h->dt, h->n[0]);
        }
}

/* ---- one loop for the whole step ---- */

void trli_heat_set_coefficients(const trli_heat *h, trli_heat_coefficients *c)
{
    *c = (trli_heat_coefficients){.k = h->k, .dt = h->dt, .sy = h->stride[1], .sz = h->stride[2], .n = h->n[0]};
    scales_of_laplacian(h, c->scale);
}

TRLI_CLONES static void fused_row(double *restrict out, const double *restrict t, const trli_heat_coefficients *c)
{
    ptrdiff_t sy = c->sy, sz = c->sz, n = c->n;
    double sx2 = c->scale[0], sy2 = c->scale[1], sz2 = c->scale[2], k = c->k, dt = c->dt;
    for (ptrdiff_t i = 0; i < n; ++i) {
        double twice = 2.0 * t[i];
        double l = (t[i - 1] + t[i + 1] - twice) * sx2 + (t[i - sy] + t[i + sy] - twice) * sy2 +
                   (t[i - sz] + t[i + sz] - twice) * sz2;
        out[i] = t[i] + dt * (k * l);
    }
}

void trli_heat_row(double *restrict out, const double *restrict t, const trli_heat_coefficients *c)
{
    fused_row(out, t, c);
}

#define AT(width, p) (*(const trli_loose##width *)(p))
#define FUSED_VECTOR(width, result)                                                                      \
    trli_vector##width middle = AT(width, &t[i]), twice = 2.0 * middle;                                  \
    trli_vector##width l = (AT(width, &t[i - 1]) + AT(width, &t[i + 1]) - twice) * c->scale[0] +         \
                           (AT(width, &t[i - c->sy]) + AT(width, &t[i + c->sy]) - twice) * c->scale[1] + \
                           (AT(width, &t[i - c->sz]) + AT(width, &t[i + c->sz]) - twice) * c->scale[2];  \
    result = middle + c->dt * (c->k * l)
/* out is on a cache line; ahead: what to prefetch, or NULL. */
#define FUSED_STREAM_ROW(width, attribute)                                                                       \
    attribute static void stream_row##width(double *restrict out, const double *restrict t, const double *ahead, \
                                            const trli_heat_coefficients *c)                                     \
    {                                                                                                            \
        ptrdiff_t whole = c->n / LINE * LINE;                                                                    \
        for (ptrdiff_t line = 0; line < whole; line += LINE) {                                                   \
            if (ahead) __builtin_prefetch(&ahead[line]);                                                         \
            for (ptrdiff_t i = line; i < line + LINE; i += (width)) {                                            \
                trli_vector##width value;                                                                        \
                FUSED_VECTOR(width, value);                                                                      \
                TRLI_STREAM_STORE##width(&out[i], value);                                                        \
            }                                                                                                    \
        }                                                                                                        \
        trli_heat_coefficients rest = *c;                                                                        \
        rest.n -= whole;                                                                                         \
        if (rest.n > 0) fused_row(out + whole, t + whole, &rest);                                                \
    }
TRLI_STREAM_VARIANTS(FUSED_STREAM_ROW)

static void fused_row_of(const trli_heat_loops *loops, ptrdiff_t j, ptrdiff_t k, const trli_heat_coefficients *c)
{
    const trli_heat_way *way = loops->way;
    const double *t = loops->now + j * c->sy + k * c->sz;
    double *out = loops->next + j * c->sy + k * c->sz;
    if (way->streaming)
        TRLI_STREAM_CALL(stream_row, out, t, way->ahead ? t + c->sz + way->ahead * c->sy : NULL, c);
    else
        fused_row(out, t, c);
}

static void fused_step(trli_team *team, int member, trli_heat_loops *loops)
{
    const trli_heat *h = loops->heat;
    const trli_heat_way *way = loops->way;
    ptrdiff_t begin, end, block = way->block ? way->block : h->n[1], interleave = way->interleave ? way->interleave : 1;
    trli_heat_coefficients c;
    trli_heat_set_coefficients(h, &c);
    planes(team, member, h, &begin, &end);
    trli_heat_fill_sides(team, member, h, loops->now);
    for (ptrdiff_t first = 0; first < h->n[1]; first += block) {
        ptrdiff_t after = first + block < h->n[1] ? first + block : h->n[1];
        for (ptrdiff_t plane = begin; plane < end; plane += interleave)
            for (ptrdiff_t j = first; j < after; ++j)
                for (ptrdiff_t k = plane; k < plane + interleave && k < end; ++k) fused_row_of(loops, j, k, &c);
    }
    if (way->streaming) TRLI_STREAM_FENCE();
}

const trli_heat_way *trli_heat_ways(int *count)
{
    static const trli_heat_way table[] = {
        {.name = "unfused, fluxes", .arrays = 6, .step = flux_step},
        {.name = "unfused, laplacian", .laplacian = true, .arrays = 1, .step = laplacian_step},
        {.name = "fused", .laplacian = true, .step = fused_step},
        {.name = "fused, streaming", .laplacian = true, .step = fused_step, .streaming = true},
        {.name = "fused, two planes interleaved", .laplacian = true, .step = fused_step, .interleave = 2},
        {.name = "fused, four planes interleaved", .laplacian = true, .step = fused_step, .interleave = 4},
        {.name = "fused, streaming, two planes interleaved",
         .laplacian = true,
         .step = fused_step,
         .streaming = true,
         .interleave = 2},
        {.name = "fused, streaming, prefetch, two planes interleaved",
         .laplacian = true,
         .step = fused_step,
         .streaming = true,
         .ahead = 4,
         .interleave = 2},
        {.name = "fused, streaming, prefetch, four planes interleaved",
         .laplacian = true,
         .step = fused_step,
         .streaming = true,
         .ahead = 4,
         .interleave = 4},
        {.name = "fused, streaming, prefetch", .laplacian = true, .step = fused_step, .streaming = true, .ahead = 4},
        {.name = "fused, streaming, prefetch, blocks of 16 rows",
         .laplacian = true,
         .step = fused_step,
         .streaming = true,
         .ahead = 4,
         .block = 16},
        {.name = "fused, streaming, prefetch, blocks of 64 rows",
         .laplacian = true,
         .step = fused_step,
         .streaming = true,
         .ahead = 4,
         .block = 64},
        {.name = "fused, 8 steps in a pass, blocks of 16 rows", .laplacian = true, .steps = 8, .block = 16},
        {.name = "fused, 8 steps in a pass, blocks of 32 rows", .laplacian = true, .steps = 8, .block = 32},
        {.name = "fused, 8 steps in a pass, blocks of 64 rows", .laplacian = true, .steps = 8, .block = 64},
        {.name = "fused, 4 steps in a pass, blocks of 32 rows", .laplacian = true, .steps = 4, .block = 32},
    };
    *count = (int)(sizeof table / sizeof *table);
    return table;
}

trl_err trli_heat_loops_create(trl_context *ctx, const trli_heat *heat, const trli_heat_way *way,
                               trli_heat_loops *loops)
{
    trl_err err = TRL_OK;
    *loops = (trli_heat_loops){.ctx = ctx, .heat = heat, .way = way};
    for (int i = 0; i < 2 + way->arrays; ++i) {
        const ptrdiff_t apart = (ptrdiff_t)i * APART;
        TRL_TRY(trli_bench_alloc(ctx, (size_t)(heat->points + apart), &loops->memory[i]));
        double *first = loops->memory[i] + heat->origin + apart;
        if (i == 0) loops->now = first;
        if (i == 1) loops->next = first;
        if (i > 1) loops->work[i - 2] = first;
    }
    loops->fronts = calloc(TRLI_HEAT_BLOCKS_MOST, sizeof *loops->fronts);
    if (!loops->fronts) err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark");
done:
    return err;
}

void trli_heat_loops_destroy(trli_heat_loops *loops)
{
    for (size_t i = 0; i < sizeof loops->memory / sizeof *loops->memory; ++i) free(loops->memory[i]);
    free(loops->fronts);
    *loops = (trli_heat_loops){0};
}

static void steps(trli_team *team, int member, void *data)
{
    trli_heat_loops *loops = data;
    if (loops->way->steps > 0) trli_heat_fill_sides(team, member, loops->heat, loops->now);
    for (int s = 0, left, taken; (left = loops->heat->steps - s) > 0; s += taken) {
        taken = loops->way->steps == 0 ? 1 : left < loops->way->steps ? left : loops->way->steps;
        if (loops->way->steps > 0)
            trli_heat_pass(team, member, loops, taken);
        else
            loops->way->step(team, member, loops);
        trli_team_barrier(team);
        if (member == 0 && taken % 2) {
            double *now = loops->now;
            loops->now = loops->next;
            loops->next = now;
        }
        trli_team_barrier(team);
    }
}

trl_err trli_heat_loops_run(void *data)
{
    trli_heat_loops *loops = data;
    return trli_team_run(loops->ctx, loops->heat->threads, steps, loops);
}

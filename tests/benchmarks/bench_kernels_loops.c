/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The arithmetic of each case by hand, in the order of the formulas' operations. */
#include <string.h>

#include <trl_functions_body.h>

#include "bench_kernels_impl.h"
#include "operator_impl.h"
#include "vector_impl.h"

enum { LINE = 8, BLOCK = 16, AHEAD = 4 };

#define DIFFUSIVITY 0.01 /* of transport, and the viscosity of burgers */
#define FEED 0.037
#define REMOVAL 0.06

/* ---- points: macros of a kind of number, where V(row, offset) reads ---- */

#define SCALED_DIFFERENCE(lo, hi, h) (((hi) - (lo)) * (h))
#define MEAN(lo, hi) (((lo) + (hi)) * 0.5)
#define SEVEN(V, real, p) \
    const real m = V(p, 0), xl = V(p, -1), xh = V(p, 1), yl = V(p, -sy), yh = V(p, sy), zl = V(p, -sz), zh = V(p, sz)
#define FLUXES(flux)                                              \
    (((flux(m, xh, k, kxh, hx) - flux(xl, m, kxl, k, hx)) * hx +  \
      (flux(m, yh, k, kyh, hy) - flux(yl, m, kyl, k, hy)) * hy) + \
     (flux(m, zh, k, kzh, hz) - flux(zl, m, kzl, k, hz)) * hz)

#define LINEAR_FLUX(tl, th, kl, kh, h) (MEAN(kl, kh) * SCALED_DIFFERENCE(tl, th, h))
#define HEAT(V, STORE, real, flux)                                                                           \
    const double *c = r->coefficient[0];                                                                     \
    SEVEN(V, real, r->in[0]);                                                                                \
    const real k = V(c, 0), kxl = V(c, -1), kxh = V(c, 1), kyl = V(c, -sy), kyh = V(c, sy), kzl = V(c, -sz), \
               kzh = V(c, sz);                                                                               \
    STORE(0, m + dt * FLUXES(flux))
#define HEAT_K(V, STORE, real) HEAT(V, STORE, real, LINEAR_FLUX)

#define HARMONIC(a, b) ((a) + (b) == 0 ? 0 : 2.0 * ((a) * (b)) / ((a) + (b)))
#define HARMONIC_FLUX(tl, th, kl, kh, h) (HARMONIC(kl, kh) * SCALED_DIFFERENCE(tl, th, h))
#define HARMONIC_K(V, STORE, real) HEAT(V, STORE, real, HARMONIC_FLUX)

#define ADVECTED(lo, hi, u) ((u)*MEAN(lo, hi))
#define DIFFUSED(lo, hi, h) (DIFFUSIVITY * SCALED_DIFFERENCE(lo, hi, h))
#define TRANSPORT(V, STORE, real)                                                                               \
    const double *cu = r->coefficient[0], *cv = r->coefficient[1], *cw = r->coefficient[2];                     \
    SEVEN(V, real, r->in[0]);                                                                                   \
    const real advected = ((ADVECTED(m, xh, V(cu, 1)) - ADVECTED(xl, m, V(cu, 0))) * hx +                       \
                           (ADVECTED(m, yh, V(cv, sy)) - ADVECTED(yl, m, V(cv, 0))) * hy) +                     \
                          (ADVECTED(m, zh, V(cw, sz)) - ADVECTED(zl, m, V(cw, 0))) * hz;                        \
    const real diffused =                                                                                       \
        ((DIFFUSED(m, xh, hx) - DIFFUSED(xl, m, hx)) * hx + (DIFFUSED(m, yh, hy) - DIFFUSED(yl, m, hy)) * hy) + \
        (DIFFUSED(m, zh, hz) - DIFFUSED(zl, m, hz)) * hz;                                                       \
    STORE(0, m + dt * (diffused - advected))

#define COUPLED(V, STORE, real)                                                                  \
    SEVEN(V, real, r->in[0]);                                                                    \
    const real diffused = ((SCALED_DIFFERENCE(m, xh, hx) - SCALED_DIFFERENCE(xl, m, hx)) * hx +  \
                           (SCALED_DIFFERENCE(m, yh, hy) - SCALED_DIFFERENCE(yl, m, hy)) * hy) + \
                          (SCALED_DIFFERENCE(m, zh, hz) - SCALED_DIFFERENCE(zl, m, hz)) * hz;    \
    STORE(0, m + dt * (diffused + V(r->more, 0)))

/* Ten reactions, in half of which the unknown itself takes part. */
#define KINETICS(V, STORE, real)                                                                                \
    const double *const *o = r->other;                                                                          \
    SEVEN(V, real, r->in[0]);                                                                                   \
    const real diffused =                                                                                       \
        ((DIFFUSED(m, xh, hx) - DIFFUSED(xl, m, hx)) * hx + (DIFFUSED(m, yh, hy) - DIFFUSED(yl, m, hy)) * hy) + \
        (DIFFUSED(m, zh, hz) - DIFFUSED(zl, m, hz)) * hz;                                                       \
    STORE(0, m + dt * (diffused + 1.1 * V(o[0], 0) * V(o[1], 0) - 0.9 * m * V(o[2], 0) +                        \
                       0.7 * V(o[3], 0) * V(o[4], 0) - 0.8 * m * V(o[5], 0) + 1.3 * V(o[6], 0) * V(o[7], 0) -   \
                       0.6 * m * V(o[8], 0) + 0.3 * V(o[9], 0) * V(o[10], 0) - 0.4 * m * V(o[11], 0) +          \
                       0.2 * V(o[12], 0) * V(o[13], 0) - 1.2 * m * V(o[14], 0)))

/* Spacings are 1. */
#define GRAY_SCOTT(V, STORE, real)                                                             \
    const double *pu = r->in[0], *pv = r->in[1];                                               \
    const real u = V(pu, 0), v = V(pv, 0), u2 = 2.0 * u, v2 = 2.0 * v, reaction = u * (v * v); \
    const real lu = (V(pu, -1) + V(pu, 1) - u2) + (V(pu, -sy) + V(pu, sy) - u2);               \
    const real lv = (V(pv, -1) + V(pv, 1) - v2) + (V(pv, -sy) + V(pv, sy) - v2);               \
    STORE(0, u + dt * (0.16 * lu - reaction + FEED * (1.0 - u)));                              \
    STORE(1, v + dt * (0.08 * lv + reaction - (FEED + REMOVAL) * v))

#define CARRIED(V, p, f)                                                                                           \
    (DIFFUSIVITY * ((V(p, -1) + V(p, 1) - 2.0 * (f)) * r->h2[0] + (V(p, -sy) + V(p, sy) - 2.0 * (f)) * r->h2[1]) - \
     (u * MEAN(SCALED_DIFFERENCE(V(p, -1), f, hx), SCALED_DIFFERENCE(f, V(p, 1), hx)) +                            \
      v * MEAN(SCALED_DIFFERENCE(V(p, -sy), f, hy), SCALED_DIFFERENCE(f, V(p, sy), hy))))
#define BURGERS(V, STORE, real)                                \
    const double *pu = r->in[0], *pv = r->in[1];               \
    const real u = V(pu, 0), v = V(pv, 0);                     \
    const real du = CARRIED(V, pu, u), dv = CARRIED(V, pv, v); \
    STORE(0, u + dt * du);                                     \
    STORE(1, v + dt * dv)

/* ---- rows ---- */

#define LOCALS                                                         \
    const double hx = r->h[0], hy = r->h[1], hz = r->h[2], dt = r->dt; \
    const ptrdiff_t sy = r->sy, sz = r->sz;                            \
    (void)hx, (void)hy, (void)hz, (void)dt, (void)sy, (void)sz

#define PLAIN_VALUE(p, offset) (p)[i + (offset)]
#define PLAIN_STORE(o, value) r->out[o][i] = value
#define PLAIN_ROW(POINT, name)                           \
    TRLI_CLONES static void name(const trli_hand_row *r) \
    {                                                    \
        LOCALS;                                          \
        const ptrdiff_t n = r->n;                        \
        TRLI_INDEPENDENT                                 \
        for (ptrdiff_t i = 0; i < n; ++i) {              \
            POINT(PLAIN_VALUE, PLAIN_STORE, double);     \
        }                                                \
    }

/* The same point of two planes at once: the flux between them is computed, and what both read is loaded, once. */
#define ABOVE_VALUE(p, offset) (p)[i + sz + (offset)]
#define LOWER(o, value) lower = value
#define UPPER(o, value) upper = value
#define PLAIN_PAIR(POINT, name)                          \
    TRLI_CLONES static void name(const trli_hand_row *r) \
    {                                                    \
        LOCALS;                                          \
        const ptrdiff_t n = r->n;                        \
        TRLI_INDEPENDENT                                 \
        for (ptrdiff_t i = 0; i < n; ++i) {              \
            double lower, upper;                         \
            {                                            \
                POINT(PLAIN_VALUE, LOWER, double);       \
            }                                            \
            {                                            \
                POINT(ABOVE_VALUE, UPPER, double);       \
            }                                            \
            r->out[0][i] = lower;                        \
            r->out[0][i + sz] = upper;                   \
        }                                                \
    }

#define VALUE1(p, offset) *(const trli_loose1 *)&(p)[i + (offset)]
#define VALUE2(p, offset) *(const trli_loose2 *)&(p)[i + (offset)]
#define VALUE4(p, offset) *(const trli_loose4 *)&(p)[i + (offset)]
#define VALUE8(p, offset) *(const trli_loose8 *)&(p)[i + (offset)]
#define STORE1(o, value) TRLI_STREAM_STORE1(&r->out[o][i], value)
#define STORE2(o, value) TRLI_STREAM_STORE2(&r->out[o][i], value)
#define STORE4(o, value) TRLI_STREAM_STORE4(&r->out[o][i], value)
#define STORE8(o, value) TRLI_STREAM_STORE8(&r->out[o][i], value)

/* Whole lines by streaming stores; results begin on a line. Returns how many points. */
#define STREAM_LINES(width, attribute, POINT, name)                                     \
    attribute static ptrdiff_t name##width(const trli_hand_row *r)                      \
    {                                                                                   \
        LOCALS;                                                                         \
        const ptrdiff_t whole = r->n / LINE * LINE;                                     \
        for (ptrdiff_t line = 0; line < whole; line += LINE) {                          \
            for (int a = 0; a < r->nahead; ++a) __builtin_prefetch(&r->ahead[a][line]); \
            for (ptrdiff_t i = line; i < line + LINE; i += (width)) {                   \
                POINT(VALUE##width, STORE##width, trli_vector##width);                  \
            }                                                                           \
        }                                                                               \
        return whole;                                                                   \
    }
#define ABOVE1(p, offset) *(const trli_loose1 *)&(p)[i + sz + (offset)]
#define ABOVE2(p, offset) *(const trli_loose2 *)&(p)[i + sz + (offset)]
#define ABOVE4(p, offset) *(const trli_loose4 *)&(p)[i + sz + (offset)]
#define ABOVE8(p, offset) *(const trli_loose8 *)&(p)[i + sz + (offset)]
#define STREAM_PAIRS(width, attribute, POINT, name)                   \
    attribute static ptrdiff_t name##width(const trli_hand_row *r)    \
    {                                                                 \
        LOCALS;                                                       \
        const ptrdiff_t whole = r->n / LINE * LINE;                   \
        for (ptrdiff_t line = 0; line < whole; line += LINE) {        \
            for (int a = 0; a < r->nahead; ++a) {                     \
                __builtin_prefetch(&r->ahead[a][line]);               \
                __builtin_prefetch(&r->ahead[a][line + sz]);          \
            }                                                         \
            for (ptrdiff_t i = line; i < line + LINE; i += (width)) { \
                trli_vector##width lower, upper;                      \
                {                                                     \
                    POINT(VALUE##width, LOWER, trli_vector##width);   \
                }                                                     \
                {                                                     \
                    POINT(ABOVE##width, UPPER, trli_vector##width);   \
                }                                                     \
                TRLI_STREAM_STORE##width(&r->out[0][i], lower);       \
                TRLI_STREAM_STORE##width(&r->out[0][i + sz], upper);  \
            }                                                         \
        }                                                             \
        return whole;                                                 \
    }
#define HEAT_K_PAIRS(width, attribute) STREAM_PAIRS(width, attribute, HEAT_K, heat_k_pair_lines)
#define TRANSPORT_PAIRS(width, attribute) STREAM_PAIRS(width, attribute, TRANSPORT, transport_pair_lines)
TRLI_STREAM_VARIANTS(HEAT_K_PAIRS)
TRLI_STREAM_VARIANTS(TRANSPORT_PAIRS)
#define HEAT_K_LINES(width, attribute) STREAM_LINES(width, attribute, HEAT_K, heat_k_lines)
#define TRANSPORT_LINES(width, attribute) STREAM_LINES(width, attribute, TRANSPORT, transport_lines)
#define COUPLED_LINES(width, attribute) STREAM_LINES(width, attribute, COUPLED, coupled_lines)
#define KINETICS_LINES(width, attribute) STREAM_LINES(width, attribute, KINETICS, kinetics_lines)
#define GRAY_SCOTT_LINES(width, attribute) STREAM_LINES(width, attribute, GRAY_SCOTT, gray_scott_lines)
#define BURGERS_LINES(width, attribute) STREAM_LINES(width, attribute, BURGERS, burgers_lines)
TRLI_STREAM_VARIANTS(HEAT_K_LINES)
TRLI_STREAM_VARIANTS(TRANSPORT_LINES)
TRLI_STREAM_VARIANTS(COUPLED_LINES)
TRLI_STREAM_VARIANTS(KINETICS_LINES)
TRLI_STREAM_VARIANTS(GRAY_SCOTT_LINES)
TRLI_STREAM_VARIANTS(BURGERS_LINES)

/* A row without its first points. */
static trli_hand_row rest_of(const trli_hand_row *r, ptrdiff_t points)
{
    trli_hand_row rest = *r;
    for (int u = 0; u < 2; ++u) {
        rest.in[u] += points;
        rest.out[u] += points;
    }
    for (int c = 0; c < TRLI_COEFFICIENTS_MOST; ++c) rest.coefficient[c] += points;
    for (int o = 0; o < TRLI_OTHERS_MOST; ++o) rest.other[o] += points;
    rest.more += points;
    rest.n -= points;
    return rest;
}

/* Both kinds of row of a case. */
#define ROWS(POINT, name)                                         \
    PLAIN_ROW(POINT, plain_##name)                                \
    static void stream_##name(const trli_hand_row *r)             \
    {                                                             \
        const ptrdiff_t done = TRLI_STREAM_CALL(name##_lines, r); \
        const trli_hand_row rest = rest_of(r, done);              \
        if (rest.n > 0) plain_##name(&rest);                      \
    }
ROWS(HEAT_K, heat_k)
ROWS(TRANSPORT, transport)
ROWS(COUPLED, coupled)
ROWS(KINETICS, kinetics)
ROWS(GRAY_SCOTT, gray_scott)
ROWS(BURGERS, burgers)
PLAIN_ROW(HARMONIC_K, plain_harmonic)

#define PAIRS(POINT, name)                                             \
    PLAIN_PAIR(POINT, plain_##name##_pair)                             \
    static void stream_##name##_pair(const trli_hand_row *r)           \
    {                                                                  \
        const ptrdiff_t done = TRLI_STREAM_CALL(name##_pair_lines, r); \
        const trli_hand_row rest = rest_of(r, done);                   \
        if (rest.n > 0) plain_##name##_pair(&rest);                    \
    }
PAIRS(HEAT_K, heat_k)
PAIRS(TRANSPORT, transport)

/* ---- sweeps by rows ---- */

static void call_row(const trli_hand_sweep *sweep, void (*work)(const trli_hand_row *row), int first, ptrdiff_t at)
{
    trli_hand_row row = sweep->row;
    trli_hand_point(sweep, first, at, &row);
    work(&row);
}

/* All unknowns of a row, then the next row. */
static void sweep_rows(trli_hand_sweep *sweep, const ptrdiff_t row[2], const ptrdiff_t plane[2])
{
    const trli_hand_way *way = sweep->way;
    const int unknowns = sweep->state->size->what->unknowns;
    sweep->row.more = sweep->scratch;
    for (ptrdiff_t k = plane[0]; k < plane[1]; ++k)
        for (ptrdiff_t j = row[0]; j < row[1]; ++j)
            for (int u = 0; u < unknowns; u += way->together) {
                const ptrdiff_t at = j * sweep->row.sy + k * sweep->row.sz;
                if (way->common && (u == 0 || way->faithful)) way->common(sweep, at, sweep->scratch);
                call_row(sweep, way->row, u, at);
            }
}

/* All rows of a plane's block, or of two, then the next unknown. */
static void sweep_unknowns(trli_hand_sweep *sweep, const ptrdiff_t row[2], const ptrdiff_t plane[2])
{
    const trli_hand_way *way = sweep->way;
    const ptrdiff_t sy = sweep->row.sy, sz = sweep->row.sz;
    const int unknowns = sweep->state->size->what->unknowns;
    for (ptrdiff_t k = plane[0]; k < plane[1]; ++k) {
        const bool pair = way->pair && k + 1 < plane[1];
        for (ptrdiff_t j = row[0]; j < row[1] && way->common; ++j)
            way->common(sweep, j * sy + k * sz, sweep->scratch + (j - row[0]) * sy);
        for (int u = 0; u < unknowns; u += way->together)
            for (ptrdiff_t j = row[0]; j < row[1]; ++j) {
                sweep->row.more = sweep->scratch + (j - row[0]) * sy;
                call_row(sweep, pair ? way->pair : way->row, u, j * sy + k * sz);
            }
        k += pair;
    }
}

TRLI_CLONES static void times_exp(double *restrict product, const double *restrict f, ptrdiff_t n, bool first)
{
    if (first)
        for (ptrdiff_t i = 0; i < n; ++i) product[i] = trl_fn_exp(f[i]);
    else
        for (ptrdiff_t i = 0; i < n; ++i) product[i] *= trl_fn_exp(f[i]);
}

static void product_row(const trli_hand_sweep *sweep, ptrdiff_t at, double *product)
{
    const trli_hand_state *s = sweep->state;
    for (int u = 0; u < s->size->what->unknowns; ++u) times_exp(product, s->now[u] + at, s->n[0], u == 0);
}

/* ---- a flux once per face ---- */

#define FACE(FLUX, name)                                                                                 \
    TRLI_CLONES static void name(double *restrict q, const double *restrict t, const double *restrict k, \
                                 ptrdiff_t back, double h, ptrdiff_t n)                                  \
    {                                                                                                    \
        for (ptrdiff_t i = 0; i < n; ++i) q[i] = FLUX(t[i - back], t[i], k[i - back], k[i], h);          \
    }
FACE(LINEAR_FLUX, linear_face)
FACE(HARMONIC_FLUX, harmonic_face)

TRLI_CLONES static void join_fluxes(double *restrict out, const double *restrict t, const double *restrict x,
                                    const double *const y[2], const double *const z[2], const trli_hand_row *r)
{
    const double hx = r->h[0], hy = r->h[1], hz = r->h[2], dt = r->dt;
    const double *restrict yl = y[0], *restrict yh = y[1], *restrict zl = z[0], *restrict zh = z[1];
    const ptrdiff_t n = r->n;
    for (ptrdiff_t i = 0; i < n; ++i)
        out[i] = t[i] + dt * (((x[i + 1] - x[i]) * hx + (yh[i] - yl[i]) * hy) + (zh[i] - zl[i]) * hz);
}

static void swap(const double **pair)
{
    const double *first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

/* Fluxes along y are kept for the next row, those along z for the next plane. */
static void sweep_faces(trli_hand_sweep *sweep, const ptrdiff_t row[2], const ptrdiff_t plane[2])
{
    const trli_hand_way *way = sweep->way;
    const trli_hand_state *s = sweep->state;
    const ptrdiff_t sy = s->sy, sz = s->sz, n = s->n[0], rows = row[1] - row[0];
    const double *h = sweep->row.h;
    double *buffer = sweep->scratch, *x = buffer + sy, *first_y = x + sy, *first_z = first_y + 2 * sy;
    const double *z[2] = {first_z, first_z + rows * sy};
    for (ptrdiff_t j = 0; j < rows; ++j) {
        const ptrdiff_t at = (row[0] + j) * sy + plane[0] * sz;
        way->face(first_z + j * sy, s->now[0] + at, s->coefficient[0] + at, sz, h[2], n);
    }
    for (ptrdiff_t k = plane[0]; k < plane[1]; ++k) {
        const double *y[2] = {first_y, first_y + sy};
        const ptrdiff_t start = row[0] * sy + k * sz;
        way->face(first_y, s->now[0] + start, s->coefficient[0] + start, sy, h[1], n);
        for (ptrdiff_t j = 0; j < rows; ++j) {
            trli_hand_row r = sweep->row;
            trli_hand_point(sweep, 0, start + j * sy, &r);
            const double *t = r.in[0], *c = r.coefficient[0];
            for (int a = 0; a < r.nahead; ++a)
                for (ptrdiff_t i = 0; i < n; i += LINE) __builtin_prefetch(&r.ahead[a][i]);
            way->face(x, t, c, 1, h[0], n + 1);
            way->face((double *)y[1], t + sy, c + sy, sy, h[1], n);
            way->face((double *)z[1] + j * sy, t + sz, c + sz, sz, h[2], n);
            const double *const both[2] = {z[0] + j * sy, z[1] + j * sy};
            join_fluxes(way->streaming ? buffer : r.out[0], t, x, y, both, &r);
            if (way->streaming) trli_stream_rows(r.out[0], 0, buffer, 0, n, 1);
            swap(y);
        }
        swap(z);
    }
}

/* ---- the limit ---- */

static void copy_row(const trli_hand_row *r)
{
    memcpy(r->out[0], r->in[0], (size_t)r->n * sizeof(double));
}

static void stream_row(const trli_hand_row *r)
{
    trli_stream_rows(r->out[0], 0, r->in[0], 0, r->n, 1);
}

const trli_hand_way *trli_hand_copy(bool streaming)
{
    static const trli_hand_way ways[2] = {
        {.name = "copy", .sweep = sweep_unknowns, .row = copy_row, .together = 1},
        {.name = "streaming copy", .sweep = sweep_unknowns, .row = stream_row, .together = 1, .streaming = true},
    };
    return &ways[streaming];
}

/* ---- all ways ---- */

#define PLAIN(case_, unknowns) .sweep = sweep_rows, .row = plain_##case_, .together = unknowns
#define STREAM(case_, unknowns) .sweep = sweep_rows, .row = stream_##case_, .together = unknowns, .streaming = true
#define FETCH .streaming = true, .ahead = AHEAD
#define PLAIN_UNKNOWNS(case_) .sweep = sweep_unknowns, .row = plain_##case_, .together = 1
#define STREAM_UNKNOWNS(case_) .sweep = sweep_unknowns, .row = stream_##case_, .together = 1, FETCH
#define FACES(flux) .sweep = sweep_faces, .face = flux##_face, .together = 1

static const trli_hand_way heat_k_ways[] = {
    {.name = "plain", PLAIN(heat_k, 1)},
    {.name = "plain, blocks of 16 rows", PLAIN(heat_k, 1), .block = 16},
    {.name = "plain, two planes at once", PLAIN_UNKNOWNS(heat_k), .pair = plain_heat_k_pair},
    {.name = "streaming, prefetch", STREAM(heat_k, 1), .ahead = AHEAD},
    {.name = "streaming, prefetch, blocks of 16 rows", STREAM(heat_k, 1), .ahead = AHEAD, .block = 16},
    {.name = "streaming, prefetch, blocks of 64 rows", STREAM(heat_k, 1), .ahead = AHEAD, .block = 64},
    {.name = "streaming, prefetch, blocks of 64 rows, two planes",
     STREAM_UNKNOWNS(heat_k),
     .pair = stream_heat_k_pair,
     .block = 64},
    {.name = "fluxes once, blocks of 16 rows", FACES(linear), .block = 16},
};
static const trli_hand_way harmonic_ways[] = {
    {.name = "plain", PLAIN(harmonic, 1)},
    {.name = "plain, blocks of 16 rows", PLAIN(harmonic, 1), .block = 16},
    {.name = "fluxes once", FACES(harmonic)},
    {.name = "fluxes once, blocks of 16 rows", FACES(harmonic), .block = 16},
    {.name = "fluxes once, streaming, prefetch, blocks of 16 rows", FACES(harmonic), FETCH, .block = 16},
    {.name = "fluxes once, streaming, prefetch, blocks of 64 rows", FACES(harmonic), FETCH, .block = 64},
};
static const trli_hand_way transport_ways[] = {
    {.name = "plain", PLAIN(transport, 1)},
    {.name = "plain, two planes at once", PLAIN_UNKNOWNS(transport), .pair = plain_transport_pair},
    {.name = "streaming, prefetch, blocks of 16 rows", STREAM(transport, 1), .ahead = AHEAD, .block = 16},
    {.name = "the same, rows of an equation together", STREAM_UNKNOWNS(transport), .block = 16},
    {.name = "the same, blocks of 64 rows", STREAM_UNKNOWNS(transport), .block = 64},
    {.name = "the same, without blocks", STREAM_UNKNOWNS(transport)},
    {.name = "the same, two planes at once", STREAM_UNKNOWNS(transport), .pair = stream_transport_pair},
};
static const trli_hand_way coupled_ways[] = {
    {.name = "product in each equation", PLAIN(coupled, 1), .common = product_row, .faithful = true},
    {.name = "product once, plain", PLAIN(coupled, 1), .common = product_row},
    {.name = "product once, streaming, prefetch, blocks of 16 rows",
     STREAM(coupled, 1),
     .common = product_row,
     .ahead = AHEAD,
     .block = 16},
    {.name = "the same, rows of an equation together", STREAM_UNKNOWNS(coupled), .common = product_row, .block = 16},
    {.name = "the same, blocks of 64 rows", STREAM_UNKNOWNS(coupled), .common = product_row, .block = 64},
};
static const trli_hand_way kinetics_ways[] = {
    {.name = "plain", PLAIN(kinetics, 1)},
    {.name = "plain, blocks of 16 rows", PLAIN(kinetics, 1), .block = 16},
    {.name = "streaming, prefetch, blocks of 16 rows", STREAM(kinetics, 1), .ahead = AHEAD, .block = 16},
    {.name = "the same, rows of an equation together", STREAM_UNKNOWNS(kinetics), .block = 16},
    {.name = "the same, blocks of 64 rows", STREAM_UNKNOWNS(kinetics), .block = 64},
};
static const trli_hand_way gray_scott_ways[] = {
    {.name = "plain", PLAIN(gray_scott, 2)},
    {.name = "streaming", STREAM(gray_scott, 2)},
    {.name = "streaming, prefetch", STREAM(gray_scott, 2), .ahead = AHEAD},
};
static const trli_hand_way burgers_ways[] = {
    {.name = "plain", PLAIN(burgers, 2)},
    {.name = "streaming", STREAM(burgers, 2)},
    {.name = "streaming, prefetch", STREAM(burgers, 2), .ahead = AHEAD},
};

const trli_hand_way *trli_hand_ways(trli_system name, int *count)
{
#define WAYS(name)                                                   \
    {                                                                \
        name##_ways, (int)(sizeof name##_ways / sizeof *name##_ways) \
    }
    static const struct {
        const trli_hand_way *way;
        int count;
    } all[] = {[TRLI_SYSTEM_HEAT_K] = WAYS(heat_k),       [TRLI_SYSTEM_HARMONIC] = WAYS(harmonic),
               [TRLI_SYSTEM_TRANSPORT] = WAYS(transport), [TRLI_SYSTEM_COUPLED] = WAYS(coupled),
               [TRLI_SYSTEM_KINETICS] = WAYS(kinetics),   [TRLI_SYSTEM_GRAY_SCOTT] = WAYS(gray_scott),
               [TRLI_SYSTEM_BURGERS] = WAYS(burgers)};
#undef WAYS
    *count = all[name].count;
    return all[name].way;
}

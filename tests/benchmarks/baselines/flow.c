/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Incompressible flow by hand: central differences on staggered faces, a pressure by FFTW, ghosts around each field. */
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_flow_peer.h"

typedef struct made {
    trli_vortices problem;
    ptrdiff_t stride[3], origin, points, wide; /* wide: doubles in a row of p */
    double *now[3], *stage[3], *star[3];
    double *p, *eigenvalue;
    fftw_plan there, back;
} made;

static double *alloc(ptrdiff_t points)
{
    double *values = fftw_malloc((size_t)points * sizeof *values);
    if (values) memset(values, 0, (size_t)points * sizeof *values);
    return values;
}

/* Ghosts across an axis; those of earlier axes are copied with the rest. */
static void wrap(const made *m, double *f, int axis)
{
    const int n = m->problem.n;
    const ptrdiff_t s = m->stride[axis], across = axis == 2 ? m->stride[1] : m->stride[2];
    const ptrdiff_t length = axis == 0 ? 1 : m->stride[1];
    double *first = f + m->origin - (axis == 0 ? 0 : 1);
    for (int k = -1; k <= n; ++k) {
        double *at = first + k * across;
        if (axis == 0)
            for (int j = -1; j <= n; ++j) {
                at[j * m->stride[1] - 1] = at[j * m->stride[1] + n - 1];
                at[j * m->stride[1] + n] = at[j * m->stride[1]];
            }
        else {
            memcpy(at - s, at + (n - 1) * s, (size_t)length * sizeof *at);
            memcpy(at + n * s, at, (size_t)length * sizeof *at);
        }
    }
}

static void fill(const made *m, double *const f[3])
{
    for (int c = 0; c < 3; ++c)
        for (int axis = 0; axis < 3; ++axis) wrap(m, f[c], axis);
}

/* What carries a component f across its own axis, at the cell above a point. */
static inline double flux_cell(const double *f, ptrdiff_t own)
{
    const double mean = 0.5 * (f[0] + f[own]);
    return mean * mean;
}

/* ..., and across another axis, whose component is g, at the edge below it. */
static inline double flux_edge(const double *f, const double *g, ptrdiff_t own, ptrdiff_t other)
{
    return 0.25 * (f[0] + f[-other]) * (g[0] + g[-own]);
}

/* to = a*first + b*(f + dt*(-advection + viscosity)), a row of component f; g, h: the others. */
static inline void advance_row(const made *m, const double *restrict f, const double *restrict g,
                               const double *restrict h, ptrdiff_t own, ptrdiff_t sg, ptrdiff_t sh, double a, double b,
                               const double *restrict first, double *restrict to)
{
    const int n = m->problem.n;
    const double inverse = n / (2 * M_PI), dt = m->problem.dt, nu = m->problem.viscosity * inverse * inverse;
    for (int i = 0; i < n; ++i) {
        const double *q = f + i, *qg = g + i, *qh = h + i;
        const double along = flux_cell(q, own) - flux_cell(q - own, own);
        const double by_g = flux_edge(q + sg, qg + sg, own, sg) - flux_edge(q, qg, own, sg);
        const double by_h = flux_edge(q + sh, qh + sh, own, sh) - flux_edge(q, qh, own, sh);
        const double around = q[own] + q[-own] + q[sg] + q[-sg] + q[sh] + q[-sh];
        to[i] = a * first[i] + b * (q[0] + dt * (nu * (around - 6 * q[0]) - inverse * (along + by_g + by_h)));
    }
}

static void advance(const made *m, double *const from[3], double a, double b)
{
    const int n = m->problem.n;
    const ptrdiff_t *s = m->stride;
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) {
            const ptrdiff_t at = m->origin + j * s[1] + k * s[2];
            const double *u = from[0] + at, *v = from[1] + at, *w = from[2] + at;
            advance_row(m, u, v, w, 1, s[1], s[2], a, b, m->now[0] + at, m->star[0] + at);
            advance_row(m, v, u, w, s[1], 1, s[2], a, b, m->now[1] + at, m->star[1] + at);
            advance_row(m, w, u, v, s[2], 1, s[1], a, b, m->now[2] + at, m->star[2] + at);
        }
}

/* The spectrum of the divergence to that of what the velocities are less by. */
static void divide(const made *m)
{
    const int n = m->problem.n;
    const double *e = m->eigenvalue, scale = 1 / ((double)n * n * n);
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) {
            double *row = m->p + ((ptrdiff_t)k * n + j) * m->wide;
            const double other = e[j] + e[k];
            for (int i = j == 0 && k == 0; i <= n / 2; ++i) {
                const double factor = scale / (e[i] + other);
                row[2 * i] *= factor;
                row[2 * i + 1] *= factor;
            }
            if (j == 0 && k == 0) row[0] = row[1] = 0;
        }
}

/* to = the part of the star velocities that is free of divergence, times h. */
static void project(const made *m, double *const to[3])
{
    const int n = m->problem.n;
    const ptrdiff_t *s = m->stride;
    double *const *f = m->star;
    fill(m, f);
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) {
            const ptrdiff_t at = m->origin + j * s[1] + k * s[2];
            const double *u = f[0] + at, *v = f[1] + at, *w = f[2] + at;
            double *restrict row = m->p + ((ptrdiff_t)k * n + j) * m->wide;
            for (int i = 0; i < n; ++i) row[i] = u[i + 1] - u[i] + v[i + s[1]] - v[i] + w[i + s[2]] - w[i];
        }
    fftw_execute(m->there);
    divide(m);
    fftw_execute(m->back);
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) {
            const ptrdiff_t at = m->origin + j * s[1] + k * s[2];
            const double *p = m->p + ((ptrdiff_t)k * n + j) * m->wide;
            const double *below = m->p + ((ptrdiff_t)k * n + (j + n - 1) % n) * m->wide;
            const double *under = m->p + ((ptrdiff_t)((k + n - 1) % n) * n + j) * m->wide;
            double *restrict u = to[0] + at, *restrict v = to[1] + at, *restrict w = to[2] + at;
            u[0] = f[0][at] - (p[0] - p[n - 1]);
            for (int i = 1; i < n; ++i) u[i] = f[0][at + i] - (p[i] - p[i - 1]);
            for (int i = 0; i < n; ++i) v[i] = f[1][at + i] - (p[i] - below[i]);
            for (int i = 0; i < n; ++i) w[i] = f[2][at + i] - (p[i] - under[i]);
        }
    fill(m, to);
}

static void step(void *data)
{
    made *m = data;
    advance(m, m->now, 0, 1);
    project(m, m->stage);
    advance(m, m->stage, 0.75, 0.25);
    project(m, m->stage);
    advance(m, m->stage, 1.0 / 3, 2.0 / 3);
    project(m, m->now);
}

static void start(const made *m)
{
    const int n = m->problem.n;
    const double h = 2 * M_PI / n;
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < n; ++i) {
                const ptrdiff_t at = m->origin + i + j * m->stride[1] + k * m->stride[2];
                const double z = cos((k + 0.5) * h);
                m->star[0][at] = sin(i * h) * cos((j + 0.5) * h) * z;
                m->star[1][at] = -cos((i + 0.5) * h) * sin(j * h) * z;
            }
    project(m, m->now);
}

static void *create(const trli_vortices *problem)
{
    const int n = problem->n;
    made *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->problem = *problem;
    m->stride[0] = 1;
    m->stride[1] = (n + 2 + 7) / 8 * 8;
    m->stride[2] = m->stride[1] * (n + 2);
    m->origin = 1 + m->stride[1] + m->stride[2];
    m->points = m->stride[2] * (n + 2);
    m->wide = 2 * (n / 2 + 1);
    for (int c = 0; c < 3; ++c) {
        m->now[c] = alloc(m->points);
        m->stage[c] = alloc(m->points);
        m->star[c] = alloc(m->points);
        if (!m->now[c] || !m->stage[c] || !m->star[c]) return NULL;
    }
    m->p = alloc(m->wide * n * n);
    m->eigenvalue = malloc((size_t)n * sizeof(double));
    if (!m->p || !m->eigenvalue) return NULL;
    for (int k = 0; k < n; ++k) m->eigenvalue[k] = -4 * pow(sin(M_PI * k / n), 2);
    m->there = fftw_plan_dft_r2c_3d(n, n, n, m->p, (fftw_complex *)m->p, FFTW_MEASURE);
    m->back = fftw_plan_dft_c2r_3d(n, n, n, (fftw_complex *)m->p, m->p, FFTW_MEASURE);
    if (!m->there || !m->back) return NULL;
    start(m);
    return m;
}

static void copy(const void *data, double *u)
{
    const made *m = data;
    const int n = m->problem.n;
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j, u += n)
            memcpy(u, m->now[0] + m->origin + j * m->stride[1] + k * m->stride[2], (size_t)n * sizeof *u);
}

static void destroy(void *data)
{
    made *m = data;
    fftw_destroy_plan(m->there);
    fftw_destroy_plan(m->back);
    for (int c = 0; c < 3; ++c) {
        fftw_free(m->now[c]);
        fftw_free(m->stage[c]);
        fftw_free(m->star[c]);
    }
    fftw_free(m->p);
    free(m->eigenvalue);
    free(m);
}

const trli_flow_peer *trli_flow_peer_export(void)
{
    static const trli_flow_peer peer = {"staggered step by hand, with FFTW", create, step, copy, destroy};
    return &peer;
}

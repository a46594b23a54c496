/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* FFTW by hand: a sine transform in three directions, a division, and its inverse. Planned by measurement. */
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_solve_peer.h"

typedef struct made {
    const trli_poisson *problem;
    fftw_plan there, back;
    double *value, *eigenvalue;
} made;

static size_t points(const trli_poisson *problem)
{
    return (size_t)problem->n * (size_t)problem->n * (size_t)problem->n;
}

static void *create(const trli_poisson *problem)
{
    const int n = problem->n;
    made *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->problem = problem;
    m->value = fftw_malloc(points(problem) * sizeof(double));
    m->eigenvalue = malloc((size_t)n * sizeof(double));
    if (!m->value || !m->eigenvalue) return NULL;
    for (int k = 0; k < n; ++k) m->eigenvalue[k] = 4.0 * n * n * pow(sin(0.5 * M_PI * (k + 1) / n), 2);
    m->there = fftw_plan_r2r_3d(n, n, n, m->value, m->value, FFTW_RODFT10, FFTW_RODFT10, FFTW_RODFT10, FFTW_MEASURE);
    m->back = fftw_plan_r2r_3d(n, n, n, m->value, m->value, FFTW_RODFT01, FFTW_RODFT01, FFTW_RODFT01, FFTW_MEASURE);
    return m->there && m->back ? m : NULL;
}

static int solve(void *data, int *iterations)
{
    made *m = data;
    const int n = m->problem->n;
    const double scale = 1 / (8.0 * n * n * n);
    memcpy(m->value, m->problem->f, points(m->problem) * sizeof(double));
    fftw_execute(m->there);
    double *at = m->value;
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j, at += n) {
            const double other = m->eigenvalue[j] + m->eigenvalue[k];
            for (int i = 0; i < n; ++i) at[i] *= scale / (m->eigenvalue[i] + other);
        }
    fftw_execute(m->back);
    *iterations = 1;
    return 0;
}

static void copy(void *data, double *p)
{
    const made *m = data;
    memcpy(p, m->value, points(m->problem) * sizeof(double));
}

static void destroy(void *data)
{
    made *m = data;
    fftw_destroy_plan(m->there);
    fftw_destroy_plan(m->back);
    fftw_free(m->value);
    free(m->eigenvalue);
    free(m);
}

const trli_solve_peer *trli_solve_peer_export(void)
{
    static const trli_solve_peer list[] = {{"FFTW, transforms by hand", create, solve, copy, destroy}, {0}};
    return list;
}

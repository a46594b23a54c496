/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* FFTW by hand: a sine transform in three directions, a division, and its inverse. Planned by measurement; with threads
 * on one rank, by planes on several. */
#include <fftw3-mpi.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_solve_peer.h"

typedef struct made {
    const trli_poisson *problem;
    fftw_plan there, back;
    double *value, *eigenvalue, *f;
    ptrdiff_t first[2], planes[2]; /* of this rank along z, and of what is transformed along y */
    bool ranks;                    /* there are several */
} made;

static trli_solve_box box_of(const made *m)
{
    const int n = m->problem->n;
    return (trli_solve_box){{0, 0, (int)m->first[0]}, {n, n, (int)(m->first[0] + m->planes[0])}};
}

static bool plan_ranks(made *m)
{
    const ptrdiff_t n = m->problem->n;
    const MPI_Comm comm = m->problem->comm;
    fftw_mpi_init();
    const ptrdiff_t room =
        fftw_mpi_local_size_3d_transposed(n, n, n, comm, &m->planes[0], &m->first[0], &m->planes[1], &m->first[1]);
    m->value = fftw_alloc_real((size_t)room);
    if (!m->value) return false;
    m->there = fftw_mpi_plan_r2r_3d(n, n, n, m->value, m->value, comm, FFTW_RODFT10, FFTW_RODFT10, FFTW_RODFT10,
                                    FFTW_MEASURE | FFTW_MPI_TRANSPOSED_OUT);
    m->back = fftw_mpi_plan_r2r_3d(n, n, n, m->value, m->value, comm, FFTW_RODFT01, FFTW_RODFT01, FFTW_RODFT01,
                                   FFTW_MEASURE | FFTW_MPI_TRANSPOSED_IN);
    return true;
}

/* Plans that others make in this process have one thread again. */
static bool plan_threads(made *m)
{
    const int n = m->problem->n;
    m->planes[0] = m->planes[1] = n;
    m->value = fftw_alloc_real((size_t)n * (size_t)n * (size_t)n);
    if (!m->value || !fftw_init_threads()) return false;
    fftw_plan_with_nthreads(m->problem->threads);
    m->there = fftw_plan_r2r_3d(n, n, n, m->value, m->value, FFTW_RODFT10, FFTW_RODFT10, FFTW_RODFT10, FFTW_MEASURE);
    m->back = fftw_plan_r2r_3d(n, n, n, m->value, m->value, FFTW_RODFT01, FFTW_RODFT01, FFTW_RODFT01, FFTW_MEASURE);
    fftw_plan_with_nthreads(1);
    return true;
}

static void *create(const trli_poisson *problem)
{
    const int n = problem->n;
    int ranks;
    made *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->problem = problem;
    MPI_Comm_size(problem->comm, &ranks);
    m->ranks = ranks > 1;
    m->eigenvalue = malloc((size_t)n * sizeof(double));
    if (!m->eigenvalue || !(m->ranks ? plan_ranks(m) : plan_threads(m))) return NULL;
    for (int k = 0; k < n; ++k) m->eigenvalue[k] = 4.0 * n * n * pow(sin(0.5 * M_PI * (k + 1) / n), 2);
    const trli_solve_box box = box_of(m);
    m->f = malloc(trli_solve_box_points(&box) * sizeof *m->f + 1);
    if (!m->f) return NULL;
    trli_solve_box_fill(&box, problem, m->f);
    return m->there && m->back ? m : NULL;
}

static int solve(void *data, int *iterations)
{
    made *m = data;
    const int n = m->problem->n;
    const double scale = 1 / (8.0 * n * n * n);
    const trli_solve_box box = box_of(m);
    memcpy(m->value, m->f, trli_solve_box_points(&box) * sizeof(double));
    fftw_execute(m->there);
    double *at = m->value;
    for (ptrdiff_t k = m->first[1]; k < m->first[1] + m->planes[1]; ++k) /* in a cube y may stand for z */
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
    const trli_solve_box box = box_of(m);
    trli_solve_box_copy(&box, m->problem->n, m->value, p);
}

static void destroy(void *data)
{
    made *m = data;
    fftw_destroy_plan(m->there);
    fftw_destroy_plan(m->back);
    fftw_free(m->value);
    free(m->eigenvalue);
    free(m->f);
    free(m);
}

const trli_solve_peer *trli_solve_peer_export(void)
{
    static const trli_solve_peer list[] = {{"FFTW, transforms by hand", true, create, solve, copy, destroy}, {0}};
    return list;
}

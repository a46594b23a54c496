/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a solver to compare with provides. Each library's are a shared object of its own, NAME.so, loaded by the
 * benchmark: neither the library nor the command depends on what it links with. */
#ifndef TRLI_BENCH_SOLVE_PEER_H
#define TRLI_BENCH_SOLVE_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

/* -laplacian(p) = f on n^3 cells of the unit cube, p = 0 on its sides: second differences, with ghosts that are minus
 * the value inside. The first index runs fastest. */
typedef struct trli_poisson {
    int n;
    double tolerance; /* the residual wanted, relative to f; both as sums of squares */
    MPI_Comm comm;    /* whose ranks solve together, each with the part that the solver chooses */
    int threads;      /* of each rank */
    double (*f)(int n, int i, int j, int k);
} trli_poisson;

typedef struct trli_solve_peer {
    const char *name; /* NULL: the end of a list */
    bool threads;     /* it makes use of several of a rank */
    /* Everything that can be done before f is known, and this rank's part of f. NULL: failed. Collective: yes. */
    void *(*create)(const trli_poisson *problem);
    /* Solve from zero. Nonzero: failed. Collective: yes. */
    int (*solve)(void *made, int *iterations);
    /* This rank's part of the solution, into an array [n^3] of all. */
    void (*copy)(void *made, double *p);
    void (*destroy)(void *made);
} trli_solve_peer;

/* A box of the cube, from lo up to but not including hi. */
typedef struct trli_solve_box {
    int lo[3], hi[3];
} trli_solve_box;

static inline size_t trli_solve_box_points(const trli_solve_box *b)
{
    size_t points = 1;
    for (int a = 0; a < 3; ++a) points *= (size_t)(b->hi[a] - b->lo[a]);
    return points;
}

/* f in a box; and the values of a box put where they are in the cube. */
static inline void trli_solve_box_fill(const trli_solve_box *b, const trli_poisson *problem, double *f)
{
    for (int k = b->lo[2]; k < b->hi[2]; ++k)
        for (int j = b->lo[1]; j < b->hi[1]; ++j)
            for (int i = b->lo[0]; i < b->hi[0]; ++i) *f++ = problem->f(problem->n, i, j, k);
}

static inline void trli_solve_box_copy(const trli_solve_box *b, int n, const double *value, double *p)
{
    for (int k = b->lo[2]; k < b->hi[2]; ++k)
        for (int j = b->lo[1]; j < b->hi[1]; ++j)
            for (int i = b->lo[0]; i < b->hi[0]; ++i)
                p[((size_t)k * (size_t)n + (size_t)j) * (size_t)n + (size_t)i] = *value++;
}

/* What the shared object exports. */
__attribute__((visibility("default"))) const trli_solve_peer *trli_solve_peer_export(void);

#endif

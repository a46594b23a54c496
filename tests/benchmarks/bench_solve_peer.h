/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a solver to compare with provides. Each library's are a shared object of its own, NAME.so, loaded by the
 * benchmark: neither the library nor the command depends on what it links with. */
#ifndef TRLI_BENCH_SOLVE_PEER_H
#define TRLI_BENCH_SOLVE_PEER_H

/* -laplacian(p) = f on n^3 cells of the unit cube, p = 0 on its sides: second differences, with ghosts that are minus
 * the value inside. The first index runs fastest. */
typedef struct trli_poisson {
    int n;
    double tolerance; /* the residual wanted, relative to f; both as sums of squares */
    const double *f;
} trli_poisson;

typedef struct trli_solve_peer {
    const char *name; /* NULL: the end of a list */
    /* Everything that can be done before f is known, on one thread. NULL: failed. */
    void *(*create)(const trli_poisson *problem);
    /* Solve from zero. Nonzero: failed. */
    int (*solve)(void *made, int *iterations);
    /* The solution. */
    void (*copy)(void *made, double *p);
    void (*destroy)(void *made);
} trli_solve_peer;

/* What the shared object exports. */
__attribute__((visibility("default"))) const trli_solve_peer *trli_solve_peer_export(void);

#endif

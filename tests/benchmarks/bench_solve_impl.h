/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The parts of `trellis bench solve`. Each is measured on the ranks that run it together. */
#ifndef TRLI_BENCH_SOLVE_IMPL_H
#define TRLI_BENCH_SOLVE_IMPL_H

#include "bench_impl.h"
#include "krylov_impl.h"

/* What parts are measured with, and share. */
typedef struct trli_solve_study {
    trli_bench *bench;
    double one_rank; /* seconds that one rank takes in its box of weak scaling, of the first size; 0: not measured */
} trli_solve_study;

/* Measure with so many cells along an axis and so many threads of each rank, and append rows to the open array of the
 * report. Collective: yes. */
typedef trl_err (*trli_solve_part)(trli_solve_study *study, int cells, int threads);
TRL_NODISCARD trl_err trli_bench_solve_poisson(trli_solve_study *study, int cells, int threads);
TRL_NODISCARD trl_err trli_bench_solve_cycle(trli_solve_study *study, int cells, int threads);
TRL_NODISCARD trl_err trli_bench_solve_products(trli_solve_study *study, int cells, int threads);
TRL_NODISCARD trl_err trli_bench_solve_weak(trli_solve_study *study, int cells, int threads);

/* Poisson's equation with p = 0 on all sides. */
#define TRLI_BENCH_POISSON_TEXT                                                        \
    "equations:\n"                                                                     \
    "  p: {initial: 0, solve: \"-laplacian(p) = 1 + 5*sin(13*x*y + z)\", solver: s,\n" \
    "      boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0},\n"   \
    "                 y+: {dirichlet: 0}, z-: {dirichlet: 0}, z+: {dirichlet: 0}}}\n"  \
    "run: {compile: always}\n"

/* The system of a case: that of equations with `solve`, else that of implicit terms. */
trli_solver *trli_bench_solver_of(const trli_case *c);
/* Put the initial values in the place of the solution. Collective: yes. */
TRL_NODISCARD trl_err trli_bench_clear(const trli_case *c);
/* Begin a row: an object with this name and how many cells, ranks and threads of each it is of. */
void trli_bench_begin_row(const trli_bench *bench, const char *name, int cells, int threads);

#endif

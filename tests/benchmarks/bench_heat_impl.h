/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Hand-written explicit Euler steps of T_t = k lap(T) with T = 0 on all sides: what an experienced C programmer would
 * have written instead of a deck, with the arithmetic in the deck's order, so that the bits agree. */
#ifndef TRLI_BENCH_HEAT_IMPL_H
#define TRLI_BENCH_HEAT_IMPL_H

#include "bench_impl.h"

typedef struct trli_heat {
    int n[3]; /* cells */
    double k, dt, spacing[3];
    int threads, steps; /* of one run */
    ptrdiff_t stride[3], points,
        origin; /* of every array: rows begin on a cache line at cell 0, and a layer of ghosts */
} trli_heat;

/* Set the strides for n cells. */
void trli_heat_shape(trli_heat *heat);

/* One hand-written way and its state. */
typedef struct trli_heat_loops {
    trl_context *ctx;
    const trli_heat *heat;
    const struct trli_heat_way *way;
    double *memory[8];
    double *now, *next;  /* levels; at cell (0,0,0) */
    double *work[6];     /* values between kernels; likewise */
    _Atomic int *fronts; /* of ways with several steps in a pass: by block of rows, those that are done */
} trli_heat_loops;

typedef struct trli_heat_way {
    const char *name;
    bool laplacian; /* k*lap(T) in one stencil, else -div(-k*grad(T)) */
    int arrays;     /* between kernels */
    void (*step)(trli_team *team, int member, trli_heat_loops *loops);
    bool streaming; /* fused: streaming stores */
    int ahead;      /* fused: rows that the next plane's prefetch runs ahead, 0: none */
    int block;      /* fused: rows of a y-block, 0: all */
    int interleave; /* fused: planes whose rows are interleaved, 0: one */
    int steps;      /* of a pass over memory, 0: one */
} trli_heat_way;

/* The ways: unfused first, one per form. */
const trli_heat_way *trli_heat_ways(int *count);

TRL_NODISCARD trl_err trli_heat_loops_create(trl_context *ctx, const trli_heat *heat, const trli_heat_way *way,
                                             trli_heat_loops *loops);
void trli_heat_loops_destroy(trli_heat_loops *loops);
/* What the file of several steps in a pass shares with that of the others. */
typedef struct trli_heat_coefficients {
    double scale[3], k, dt;
    ptrdiff_t sy, sz, n;
} trli_heat_coefficients;
void trli_heat_set_coefficients(const trli_heat *heat, trli_heat_coefficients *c);
void trli_heat_row(double *restrict out, const double *restrict t, const trli_heat_coefficients *c);
/* Ghosts of a level, by all members, and a barrier. */
void trli_heat_fill_sides(trli_team *team, int member, const trli_heat *heat, double *t);
/* As many steps as one pass takes, from now to next, or to now if they are even. now has its ghosts, and the result
 * gets them. */
void trli_heat_pass(trli_team *team, int member, trli_heat_loops *loops, int steps);
enum { TRLI_HEAT_BLOCKS_MOST = 64 };

/* heat->steps steps on heat->threads threads; data: a trli_heat_loops. */
TRL_NODISCARD trl_err trli_heat_loops_run(void *data);

#endif

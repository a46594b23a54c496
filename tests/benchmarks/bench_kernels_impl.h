/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* One Euler step of systems of equations on a grid, periodic as a rule: as a model of formulas, and by hand, with the
 * operations in the order of the compiled kernel, so that the bits agree. Coefficients lie in fields and do not
 * change. */
#ifndef TRLI_BENCH_KERNELS_IMPL_H
#define TRLI_BENCH_KERNELS_IMPL_H

#include "bench_dag_impl.h"
#include "bench_impl.h"
#include "frame_impl.h"

enum { TRLI_UNKNOWNS_MOST = 200, TRLI_COEFFICIENTS_MOST = 3, TRLI_OTHERS_MOST = 15, TRLI_WAYS_MOST = 8 };

typedef enum trli_system {
    TRLI_SYSTEM_HEAT_K,
    TRLI_SYSTEM_HARMONIC,
    TRLI_SYSTEM_TRANSPORT,
    TRLI_SYSTEM_COUPLED,
    TRLI_SYSTEM_KINETICS,
    TRLI_SYSTEM_GRAY_SCOTT,
    TRLI_SYSTEM_BURGERS
} trli_system;

/* What is computed. Unknowns are f1, f2, ... at cells. */
typedef struct trli_kernel_case {
    const char *name;
    int dim, unknowns, coefficients;
    int cells;              /* along each axis; 0: as of the other cases */
    const char *formula[2]; /* of f1 and of all others, # being the number, #+k that of the k-th after it, round;
                               NULL: as that of f1 */
    int nothers, other[TRLI_OTHERS_MOST];            /* those that it reads at the point */
    const char *coefficient[TRLI_COEFFICIENTS_MOST]; /* their names */
    trl_location at[TRLI_COEFFICIENTS_MOST];
    double length[3]; /* 0: as many as cells */
    double dt;        /* over the square of the smallest spacing */
    double lo, hi;    /* of values */
    trli_system by_hand;
    double gate;                 /* least ratio to the best by hand */
    const trl_bc_side *boundary; /* of unknowns, on all sides; NULL: periodic */
} trli_kernel_case;

/* A case of some size. */
typedef struct trli_kernel_size {
    const trli_kernel_case *what;
    trl_grid grid;
    double dt;
    int threads, steps; /* of one run */
} trli_kernel_size;

void trli_kernel_size_set(const trli_kernel_case *what, int cells, trli_kernel_size *size);
/* The first value of unknown f or coefficient c = f - unknowns, at any cell or face, also beyond the sides. */
double trli_kernel_value(const trli_kernel_size *size, int f, int i, int j, int k);

/* ---- bench_model.c: as a model of formulas ---- */

typedef struct trli_formulas {
    trl_context *ctx;
    const trli_kernel_size *size;
    trl_layout *layout;
    trl_workers *workers;
    char name[TRLI_UNKNOWNS_MOST][16];
    trl_formula *formula[TRLI_UNKNOWNS_MOST];
    trli_model *model;
    trli_frame *frame;
    trli_program *step;
    trli_program *stale; /* the same on the same fields, whose ghosts nobody sets; NULL without conditions */
    int now[TRLI_UNKNOWNS_MOST + TRLI_COEFFICIENTS_MOST], next[TRLI_UNKNOWNS_MOST]; /* fields */
} trli_formulas;

/* Compile a case, let its kernel settle on a way, and set the first values. Always safe to destroy. */
TRL_NODISCARD trl_err trli_formulas_create(trl_context *ctx, const trli_kernel_size *size, trli_formulas *formulas);
void trli_formulas_destroy(trli_formulas *formulas);
/* size->steps steps; data: a trli_formulas. */
TRL_NODISCARD trl_err trli_formulas_run(void *data);
/* The same with ghosts that keep their first values, in the same way through the box. */
TRL_NODISCARD trl_err trli_formulas_run_stale(void *data);

/* ---- bench_kernels_hand.c: by hand ---- */

/* A row of one or two unknowns: pointers are at x = 0. */
typedef struct trli_hand_row {
    double *out[2];
    const double *in[2], *coefficient[TRLI_COEFFICIENTS_MOST];
    const double *other[TRLI_OTHERS_MOST];
    const double *ahead[2 + TRLI_COEFFICIENTS_MOST]; /* what to prefetch beside */
    int nahead;
    const double *more; /* what the row of all unknowns has in common */
    ptrdiff_t sy, sz, n;
    double h[3], h2[3], dt; /* 1/spacing, and once more */
} trli_hand_row;

typedef struct trli_hand_sweep trli_hand_sweep;

/* A hand-written way. */
typedef struct trli_hand_way {
    const char *name;
    void (*sweep)(trli_hand_sweep *sweep, const ptrdiff_t row[2], const ptrdiff_t plane[2]); /* a block */
    void (*row)(const trli_hand_row *row);
    void (*pair)(const trli_hand_row *row);                                   /* of two planes, or NULL */
    void (*common)(const trli_hand_sweep *sweep, ptrdiff_t at, double *more); /* or NULL */
    void (*face)(double *q, const double *t, const double *k, ptrdiff_t back, double h, ptrdiff_t n); /* or NULL */
    int together; /* unknowns of a row */
    int ahead;    /* rows that the prefetch of the next plane runs ahead; 0: none */
    int block;    /* rows; 0: all */
    bool streaming;
    bool faithful; /* each equation computes all of its own: shown beside the best, not one of them */
} trli_hand_way;

/* bench_kernels_loops.c: ways of a case. */
const trli_hand_way *trli_hand_ways(trli_system name, int *count);
/* Copies unknowns, with streaming stores or without. */
const trli_hand_way *trli_hand_copy(bool streaming);

/* A way and its state. */
typedef struct trli_hand_state {
    trl_context *ctx;
    const trli_kernel_size *size;
    const trli_hand_way *way;
    double *memory, *scratch; /* scratch: of all threads */
    size_t scratch_each;
    double *now[TRLI_UNKNOWNS_MOST], *next[TRLI_UNKNOWNS_MOST], *coefficient[TRLI_COEFFICIENTS_MOST]; /* at (0,0,0) */
    ptrdiff_t n[3], sy, sz;
} trli_hand_state;

/* A thread's view of it. */
struct trli_hand_sweep {
    const trli_hand_state *state;
    const trli_hand_way *way;
    trli_hand_row row; /* what all rows share */
    double *scratch;
};

TRL_NODISCARD trl_err trli_hand_create(trl_context *ctx, const trli_kernel_size *size, const trli_hand_way *way,
                                       trli_hand_state *state);
void trli_hand_destroy(trli_hand_state *state);
/* size->steps steps on size->threads threads; data: a trli_hand_state. */
TRL_NODISCARD trl_err trli_hand_run(void *data);

/* Point a row at unknowns from `first`, and at the coefficients. */
void trli_hand_point(const trli_hand_sweep *sweep, int first, ptrdiff_t at, trli_hand_row *row);

/* ---- bench_reductions.c ---- */

enum { TRLI_VERDICTS_MOST = 64 };

typedef struct trli_verdicts {
    trli_gate gate[TRLI_VERDICTS_MOST];
    char what[TRLI_VERDICTS_MOST][128];
    int n;
} trli_verdicts;
/* Add a gate unless there is no more room. */
void trli_verdict_add(trli_verdicts *v, const char *of, const char *what, double value, double limit, bool at_least);

/* Reductions of fields on cells^3. */
TRL_NODISCARD trl_err trli_reductions_play(trli_bench *bench, int cells, int threads, trli_verdicts *v);

#endif

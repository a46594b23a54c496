/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A grid of multigrid, whose programs are those of its equations. */
#ifndef TRLI_GRID_LEVEL_IMPL_H
#define TRLI_GRID_LEVEL_IMPL_H

#include "multigrid_impl.h"

enum { TRLI_LOCATIONS = 8 };

/* Smoothing of points or lines of one colour after those of another. */
typedef struct trli_relaxation trli_relaxation;

typedef struct trli_grid_level {
    trl_simulation *sim;
    trli_level *own;     /* NULL: the first grid, the problem's */
    trli_solver *solver; /* whose vectors and tangents these are */
    trli_vector z;       /* the solution, */
    trli_vector before;  /* and that before the last step of smoothing */
    const int *b;        /* [unknowns] the right-hand side: of a coarser grid a vector of its own */
    trli_vector r;       /* the residual that is restricted */
    trli_vector part;    /* of a saddle point: what smoothing makes of one kind of equations for the other */
    int *old_field;      /* [equations] of a coarser grid: the state at the start of the step, where it is read */
    trli_program *begin, *first, *smooth, *residual, *clip;
    struct {
        trli_program *from_zero, *others, *constraints;
    } saddle; /* what goes before a step of smoothing: one of the first two, and the last; NULL: nothing does */
    trli_program *last;                  /* smooth, with sums; NULL: not asked for */
    trli_program *start;                 /* begin and first at once; NULL: they are not one sweep */
    trli_relaxation *relaxation;         /* in place of these programs; NULL: steps are Chebyshev's */
    trli_program *ghosts, *coefficients; /* residuals and coefficients for restriction; NULL: ghosts are not read */
    trli_program *solutions;             /* for interpolation, likewise */
    int old, new;                        /* scalars: factors of what there is and of the residual */
    trli_grid_transfer **transfer;       /* [unknowns] to the next coarser one */
    trli_grid_transfer *mean[TRLI_LOCATIONS]; /* of coefficients, where there are any */
    double largest; /* eigenvalue of the inverse diagonal times the operator: not more than this */
    double own_row; /* the largest sum of a row's magnitudes that are of its own unknown */
} trli_grid_level;

/* Vectors and programs of a grid that has a solver. */
TRL_NODISCARD trl_err trli_grid_level_add_vectors(trli_grid_level *level);
TRL_NODISCARD trl_err trli_grid_level_compile(trli_grid_level *level);
/* Of a coarser grid: fields for the coefficients that the Jacobian of the first grid's solver reads, which outlive
 * programs. */
TRL_NODISCARD trl_err trli_grid_level_add_coefficients(trli_grid_level *level, const trli_solver *finest);
/* `smooth`, with the products of the new solution with the right-hand side and another vector. */
TRL_NODISCARD trl_err trli_grid_level_compile_last(trli_grid_level *level, const int *other, int *with_b,
                                                   int *with_other);
/* Bytes of a vector of all unknowns, on this rank. */
double trli_grid_level_bytes(const trli_grid_level *level);
/* Once the diagonal is there. finer: has the bounds of one that knows none; else OPTIONAL. */
void trli_grid_level_find_largest(trli_grid_level *level, const trli_grid_level *finer);
/* Vectors that change places have one shape. */
void trli_grid_level_equalise(const trli_grid_level *level);
/* A program that brings `depth` layers of neighbours' values to where patches meet: restriction and interpolation read
 * them. */
TRL_NODISCARD trl_err trli_grid_level_read(trli_grid_level *level, const char *name, trli_program **program, int depth,
                                           int n, const int *field);
/* Values of the residual b - J z, and of J z, in an instance of the solver. */
TRL_NODISCARD trl_err trli_grid_level_residuals(const trli_grid_level *l, trli_instance *in, trli_ir_value *value);
TRL_NODISCARD trl_err trli_grid_level_products(const trli_grid_level *l, trli_instance *in, const int *with,
                                               trli_ir_value *value);
/* What stands beyond a side, relative to what is inside. */
void trli_grid_level_factors(const trli_solver *s, int unknown, double factor[6]);

/* ---- coarse_levels.c ---- */

/* Whether the Jacobian reads values of an equation, at present or at the start of the step; and where a grid has them.
 */
bool trli_level_reads(const trli_solver *finest, int v, bool old);
int trli_level_coefficient(const trli_grid_level *l, int v, bool old);
/* What restriction reads of neighbours, where patches meet. coefficients: they are restricted, too. */
TRL_NODISCARD trl_err trli_level_read_neighbours(const trli_solver *finest, trli_grid_level *l, bool coefficients);
/* Make a coarser grid, with programs. Where patches would be thinner than these read, they are made thicker, or every
 * rank has all of it; *fits false: then, too, and nothing is made. fine: how the next finer one is cut. Collective:
 * yes. */
TRL_NODISCARD trl_err trli_level_make(trli_solver *finest, const trl_layout *fine, const trl_grid *grid,
                                      trli_grid_level *l, bool *fits);
void trli_level_end(trli_grid_level *l);

/* ---- smoothing.c ---- */

/* How a grid is smoothed. */
typedef struct trli_smoothing {
    bool coarsest;     /* until it is as good as solved */
    bool from_zero;    /* whatever z is */
    bool adjoint;      /* steps in the opposite order, where they have one */
    bool sums;         /* the last step makes them */
    trli_gpu_row *row; /* to which steps are added; NULL: they are done */
} trli_smoothing;

/* Goes on after an error, as the other ranks do, and returns the first. Collective: yes. */
TRL_NODISCARD trl_err trli_smooth(const trli_grid_level *l, const trli_smoothing *how, trl_loop *loop);
/* What it reads and writes, in bytes, for all visits of a V cycle. */
double trli_smoothing_bytes(const trli_grid_level *l, bool coarsest);

/* ---- saddle_smoothing.c ---- */

/* Of a saddle point; else nothing is done. */
TRL_NODISCARD trl_err trli_saddle_add_part(trli_grid_level *l);
TRL_NODISCARD trl_err trli_saddle_compile(trli_grid_level *l);
/* factor times the correction that these programs have prepared, [n] values. */
TRL_NODISCARD trl_err trli_saddle_change(trli_grid_level *l, trli_instance *in, trli_ir_value factor,
                                         trli_ir_value *value);

/* ---- relaxation.c ---- */

/* Why a system cannot be smoothed so; NULL: it can. */
const char *trli_relaxation_missing(const trli_solver *s);
/* Axes along which lines are, a bit each: that of the strongest coupling where the operator's numbers say so, else all;
 * of those that are long enough. */
unsigned trli_line_axes(const trli_solver *s, const trl_grid *grid);
/* With programs, in the place of a grid's own. */
TRL_NODISCARD trl_err trli_relaxation_compile(trli_grid_level *l);
void trli_relaxation_destroy(trli_relaxation **relaxation);
/* The last step of a cycle makes products with its solution. */
TRL_NODISCARD trl_err trli_relaxation_compile_last(trli_grid_level *l, const int *other, int *with_b, int *with_other);
/* Once coefficients are there. Collective: yes. */
TRL_NODISCARD trl_err trli_relaxation_prepare(const trli_grid_level *l, trl_loop *loop);
/* As trli_smooth. */
TRL_NODISCARD trl_err trli_relax(const trli_grid_level *l, const trli_smoothing *how, trl_loop *loop);
double trli_relaxation_bytes(const trli_grid_level *l, bool coarsest);
/* That residuals stay where these programs run: what they follow. */
void trli_relaxation_follow(const trli_grid_level *l);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A grid of multigrid, whose programs are those of its equations. */
#ifndef TRLI_GRID_LEVEL_IMPL_H
#define TRLI_GRID_LEVEL_IMPL_H

#include "multigrid_impl.h"

enum { TRLI_LOCATIONS = 8 };

typedef struct trli_grid_level {
    trl_simulation *sim;
    trli_level *own;     /* NULL: the first grid, the problem's */
    trli_solver *solver; /* whose vectors and tangents these are */
    trli_vector z;       /* the solution, */
    trli_vector before;  /* and that before the last step of smoothing */
    const int *b;        /* [unknowns] the right-hand side: of a coarser grid a vector of its own */
    trli_vector r;       /* the residual that is restricted */
    int *old_field;      /* [equations] of a coarser grid: the state at the start of the step, where it is read */
    trli_program *begin, *first, *smooth, *residual, *clip;
    trli_program *last;                  /* smooth, with sums; NULL: not asked for */
    trli_program *start;                 /* begin and first at once; NULL: they are not one sweep */
    trli_program *ghosts, *coefficients; /* residuals and coefficients for restriction; NULL: ghosts are not read */
    trli_program *solutions;             /* for interpolation, likewise */
    int old, new;                        /* scalars: factors of what there is and of the residual */
    trli_grid_transfer **transfer;       /* [unknowns] to the next coarser one */
    trli_grid_transfer *mean[TRLI_LOCATIONS]; /* of coefficients, where there are any */
    double largest; /* eigenvalue of the inverse diagonal times the operator: not more than this */
} trli_grid_level;

/* Vectors and programs of a grid that has a solver. */
TRL_NODISCARD trl_err trli_grid_level_add_vectors(trli_grid_level *level);
TRL_NODISCARD trl_err trli_grid_level_compile(trli_grid_level *level);
/* `smooth`, with the products of the new solution with the right-hand side and another vector. */
TRL_NODISCARD trl_err trli_grid_level_compile_last(trli_grid_level *level, const int *other, int *with_b,
                                                   int *with_other);
/* Vectors that change places have one shape. */
void trli_grid_level_equalise(const trli_grid_level *level);
/* A program that brings `depth` layers of neighbours' values to where patches meet: restriction and interpolation read
 * them. */
TRL_NODISCARD trl_err trli_grid_level_read(trli_grid_level *level, const char *name, trli_program **program, int depth,
                                           int n, const int *field);
/* What stands beyond a side, relative to what is inside. */
void trli_grid_level_factors(const trli_solver *s, int unknown, double factor[6]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The matrix of a system's Jacobian, found by products with vectors that are one at points far from each other. All
 * ranks have all of it, with the same bits, and vectors as long. */
#ifndef TRLI_MATRIX_IMPL_H
#define TRLI_MATRIX_IMPL_H

#include "solve_impl.h"

typedef struct trli_matrix trli_matrix;

/* Columns one after the other, each with its rows in order: that of column j are from begin[j] to begin[j + 1]. */
typedef struct trli_columns {
    int n;
    int *begin, *row;
    double *value;
} trli_columns;

/* Unknowns of all ranks; more than INT32_MAX count as that. */
int trli_matrix_unknowns(const trli_solver *s);
/* Once the simulation has a frame. Fails with MEMORY. Collective: yes. */
TRL_NODISCARD trl_err trli_matrix_create(trli_solver *s, trli_matrix **matrix);
void trli_matrix_destroy(trli_matrix **matrix);
/* Find the entries at the present state; d and q are overwritten. Points that are no unknowns have a one. Where
 * constants of an unknown are in the null space the matrix has a border: a further unknown, which is a constant in the
 * equations of that one, and an equation that one of its points is zero. *why: why there are none, in words that follow
 * "because"; or NULL. Fails with MEMORY, DEVICE. Collective: yes. */
TRL_NODISCARD trl_err trli_matrix_find(trli_matrix *m, trli_columns *columns, const char **why);
/* A vector's values at all points, [n], and zeros of what borders have; and the other way. Fails with DEVICE.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_matrix_gather(trli_matrix *m, const int *field, double *values);
TRL_NODISCARD trl_err trli_matrix_scatter(trli_matrix *m, const double *values, const int *field);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sparse matrices by rows, which each rank has as a whole. */
#ifndef TRLI_SPARSE_IMPL_H
#define TRLI_SPARSE_IMPL_H

#include <trl_context.h>
#include <trl_loop.h>

/* Row i has the entries from begin[i] to begin[i + 1]. All zero: no matrix. */
typedef struct trli_sparse {
    int rows, columns;
    int *begin; /* [rows + 1] */
    int *column;
    double *value;
    int32_t begins, columns_room, values_room; /* that there is memory for: a matrix made anew keeps it */
} trli_sparse;

void trli_sparse_free(trli_sparse *a);

/* A matrix in the making, row after row. */
typedef struct trli_sparse_rows {
    trl_context *ctx;
    trli_sparse *made;
    int row; /* the present one */
} trli_sparse_rows;

/* Begin a matrix with known numbers of rows and columns in place of another one, or of none. The caller frees it, even
 * if its making fails. Fails with MEMORY, as all that follow. */
TRL_NODISCARD trl_err trli_sparse_begin(trl_context *ctx, int rows, int columns, trli_sparse *a,
                                        trli_sparse_rows *making);
/* Append an entry to the present row. */
TRL_NODISCARD trl_err trli_sparse_entry(trli_sparse_rows *making, int column, double value);
void trli_sparse_end_row(trli_sparse_rows *making);
/* Add to the present row's entry in a column, or append it. place: [columns] -1 before the first row, for all rows. */
TRL_NODISCARD trl_err trli_sparse_add(trli_sparse_rows *making, int *place, int column, double value);
/* Make room for entries. */
TRL_NODISCARD trl_err trli_sparse_reserve(trl_context *ctx, trli_sparse *a, int entries);

TRL_NODISCARD trl_err trli_sparse_transpose(trl_context *ctx, const trli_sparse *a, trli_sparse *transposed);
/* P^T A P, whose entries are added up in the order of rows; back: the transpose of P. */
TRL_NODISCARD trl_err trli_sparse_product(trl_context *ctx, const trli_sparse *a, const trli_sparse *p,
                                          const trli_sparse *back, trli_sparse *product);
/* y = A x */
TRL_NODISCARD trl_err trli_sparse_multiply(const trli_sparse *a, const double *x, double *y, trl_loop *loop);

/* ---- splitting.c: which points are left out of the next coarser grid, and their interpolation (Ruge & Stüben 1987)
 * ---- */

/* Interpolation from points of the next grid, which are some of these; columns 0: there is none. */
TRL_NODISCARD trl_err trli_split(trl_context *ctx, const trli_sparse *a, trli_sparse *p);

/* ---- elimination.c ---- */

/* Factors of a full matrix [n][n], in place. A pivot that rounding leaves stands for a null space, or no unknown: it
 * becomes 0, and so does its unknown. */
void trli_eliminate(int n, double *m);
/* x = what the matrix of these factors makes x from. */
void trli_eliminated_solve(int n, const double *m, double *x);

#endif

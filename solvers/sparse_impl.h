/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sparse matrices by rows. */
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
/* Make room for one more behind so many entries. */
TRL_NODISCARD trl_err trli_sparse_grow(trl_context *ctx, trli_sparse *a, int entries);

/* Append an entry to the present row. */
TRL_NODISCARD static inline trl_err trli_sparse_entry(trli_sparse_rows *making, int column, double value)
{
    trli_sparse *a = making->made;
    int *count = &a->begin[making->row + 1];
    if (*count >= a->columns_room || *count >= a->values_room) {
        const trl_err err = trli_sparse_grow(making->ctx, a, *count);
        if (err != TRL_OK) return err;
    }
    a->column[*count] = column;
    a->value[(*count)++] = value;
    return TRL_OK;
}

/* Add to the present row's entry in a column, or append it. place: [columns] -1 before the first row, for all rows. */
TRL_NODISCARD static inline trl_err trli_sparse_add(trli_sparse_rows *making, int *place, int column, double value)
{
    trli_sparse *a = making->made;
    if (place[column] < a->begin[making->row]) {
        place[column] = a->begin[making->row + 1];
        return trli_sparse_entry(making, column, value);
    }
    a->value[place[column]] += value;
    return TRL_OK;
}

static inline void trli_sparse_end_row(trli_sparse_rows *making)
{
    trli_sparse *a = making->made;
    ++making->row;
    if (making->row < a->rows) a->begin[making->row + 1] = a->begin[making->row];
}

/* Once all rows are there: give back memory of which less than 4 in 5 is used, but for some that a matrix made anew may
 * need. */
void trli_sparse_trim(trl_context *ctx, trli_sparse *a);
/* Make room for entries. */
TRL_NODISCARD trl_err trli_sparse_reserve(trl_context *ctx, trli_sparse *a, int entries);

/* ---- sparse_crew.c: matrices whose rows are made by all workers ---- */

/* Workers, and what making a matrix keeps from one to the next. */
typedef struct trli_sparse_crew trli_sparse_crew;
/* replicate: of a solver's settings. */
TRL_NODISCARD trl_err trli_sparse_crew_create(trl_context *ctx, trl_loop *loop, int64_t replicate,
                                              trli_sparse_crew **crew);
void trli_sparse_crew_destroy(trli_sparse_crew **crew);
trl_loop *trli_sparse_crew_loop(const trli_sparse_crew *crew);
/* Into how many runs so many rows are cut. */
int trli_sparse_crew_chunks(const trli_sparse_crew *crew, int64_t rows);
/* Append a row's entries. place: [columns] for trli_sparse_add. Thread: any, for different rows. */
typedef trl_err (*trli_sparse_row_fn)(const void *data, trli_sparse_rows *making, int *place, int row);
/* Make a matrix in place of another one, or of none. */
TRL_NODISCARD trl_err trli_sparse_make(trli_sparse_crew *crew, int rows, int columns, trli_sparse_row_fn fn,
                                       const void *data, trli_sparse *a);

/* Whether ranks share work that takes as long as a step of smoothing at so many points of a grid with an equation. */
bool trli_sparse_crew_shares(const trli_sparse_crew *crew, int64_t points);
/* The same matrix on all ranks; where they share its rows each makes a run of them. Collective: yes. */
TRL_NODISCARD trl_err trli_sparse_make_together(trli_sparse_crew *crew, int rows, int columns, trli_sparse_row_fn fn,
                                                const void *data, trli_sparse *a);

/* ---- sparse.c ---- */

/* Make room for the pattern of a matrix: it has no values. */
TRL_NODISCARD trl_err trli_sparse_reserve_pattern(trl_context *ctx, trli_sparse *a, int rows, int columns, int entries);
/* That of a pattern is one. */
TRL_NODISCARD trl_err trli_sparse_transpose(trl_context *ctx, const trli_sparse *a, trli_sparse *transposed);
/* Matrices whose product P^T A P is made; back: the transpose of P, or some of its rows. */
typedef struct trli_sparse_factors {
    const trli_sparse *a, *p, *back;
} trli_sparse_factors;
/* Append a row of the product, whose entries are added up in the order of the rows of A: a trli_sparse_row_fn for
 * factors. */
TRL_NODISCARD trl_err trli_sparse_product_row(const void *factors, trli_sparse_rows *making, int *place, int row);
/* y = A x */
TRL_NODISCARD trl_err trli_sparse_multiply(const trli_sparse *a, const double *x, double *y, trl_loop *loop);

/* ---- choosing.c ---- */

/* Of two that say a different one of a point the larger is right. A point elsewhere is not to be decided here. */
typedef enum trli_point_state { TRLI_UNDECIDED, TRLI_FINE, TRLI_COARSE, TRLI_ELSEWHERE } trli_point_state;

/* Which points stay on the next coarser grid; what it keeps from one matrix to the next. All zero: nothing. */
typedef struct trli_choosing {
    const trli_sparse *strong; /* a row: the points that a point depends on strongly, and */
    trli_sparse influence;     /* that depend on it; both without values */
    int *memory;               /* of all that follow: */
    int room;
    int *state;       /* [points] trli_point_state */
    int *is_open;     /* [points] whether it was undecided */
    int *measure;     /* of undecided points: how much they would do as coarse ones */
    int *head;        /* [measures] lists of undecided points; -1: none */
    int *next, *last; /* [points] in these lists */
    int *stamp;       /* [points] of the coarse points around the one that is looked at */
    int most;         /* no larger measure has points */
} trli_choosing;

/* Begin with all points undecided; the caller may then set states of some. */
TRL_NODISCARD trl_err trli_choosing_begin(trl_context *ctx, const trli_sparse *strong, trli_choosing *c);
/* All undecided points become coarse ones, which stay, or fine ones; of others that these have to do with a fine one
 * may become a coarse one. */
void trli_choose(trli_choosing *c);
void trli_choosing_free(trli_choosing *c);

/* ---- splitting.c: which points are left out of the next coarser grid, and their interpolation (Ruge & Stüben 1987)
 * ---- */

/* What splitting keeps from one matrix to the next. */
typedef struct trli_splitting trli_splitting;
TRL_NODISCARD trl_err trli_splitting_create(trl_context *ctx, trli_sparse_crew *crew, trli_splitting **splitting);
void trli_splitting_destroy(trli_splitting **splitting);
/* Interpolation from points of the next grid, which are some of these; columns 0: there is none. All ranks have the
 * matrix. Collective: yes. */
TRL_NODISCARD trl_err trli_split(trli_splitting *s, const trli_sparse *a, trli_sparse *p);
/* Of a matrix that has only some rows: the points that these depend on strongly, until the next call. */
TRL_NODISCARD trl_err trli_split_strong(trli_splitting *s, const trli_sparse *a, const trli_sparse **strong);
/* Interpolation of its first rows, once there are rows of all that these depend on strongly. number: [columns] of
 * points of the next grid, or -1. */
TRL_NODISCARD trl_err trli_split_rows(trli_splitting *s, int rows, const int *number, int coarse, trli_sparse *p);

/* ---- elimination.c ---- */

#define TRLI_LOST 1e-11 /* what rounding leaves of sums of few terms */
/* Factors of a full matrix [n][n], in place. A pivot that is less than `lost` of what it was before stands for a null
 * space, or no unknown: it becomes 0, and so does its unknown. */
void trli_eliminate(int n, double *m, double lost);
/* x = what the matrix of these factors makes x from. */
void trli_eliminated_solve(int n, const double *m, double *x);

#endif

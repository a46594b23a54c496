/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Matrices whose rows the ranks share: each has its own rows, and of others' those values that its rows read. A row is
 * known to all ranks by its point of the first grid, whose patch says which rank owns it; a rank numbers its own rows
 * first, in the order of points, and others' behind them. */
#ifndef TRLI_ROW_OWNERS_IMPL_H
#define TRLI_ROW_OWNERS_IMPL_H

#include <mpi.h>
#include <trl_grid.h>

#include "sparse_impl.h"

/* Values that go to other ranks, or come from them. */
typedef struct trli_row_traffic {
    int *begin;     /* [ranks + 1] values before those of a rank */
    int *row;       /* of each value */
    double *values; /* as messages have them */
    int32_t rows_room, values_room;
} trli_row_traffic;

typedef struct trli_row_owners {
    trl_context *ctx;
    const trl_layout *layout; /* of the first grid, */
    int n[3];                 /* which has so many points along each axis */
    int own, all;             /* rows of this rank, and with those that it knows of others */
    trl_gidx *point;          /* [all] of the first grid, x fastest */
    int *rank;                /* [all - own] whose each is */
    int *slot;                /* [slots] others' rows, found by points; -1: none */
    int32_t points_room, ranks_room, slots;
    trli_row_traffic in, out;
    int *count;           /* [2 * ranks] of values of each rank */
    MPI_Request *request; /* [2 * ranks] */
} trli_row_owners;

/* In place of other ones, or of none: the caller sets the points of its own rows, which ascend. It frees them, even if
 * this fails. */
TRL_NODISCARD trl_err trli_row_owners_begin(trl_context *ctx, const trl_layout *layout, const int n[3], int own,
                                            trli_row_owners *o);
/* The same rows as those of others, which keep their numbers. */
TRL_NODISCARD trl_err trli_row_owners_copy(const trli_row_owners *from, trli_row_owners *o);
void trli_row_owners_free(trli_row_owners *o);
/* Whose a point is. */
int trli_row_owners_rank(const trli_row_owners *o, trl_gidx point);
/* The number of a point's row; -1: this rank does not know it. */
int trli_row_owners_find(const trli_row_owners *o, trl_gidx point);
/* The same, where a row of another rank that was not known is one from now on. */
TRL_NODISCARD trl_err trli_row_owners_add(trli_row_owners *o, trl_gidx point, int *row);
/* Add the rows of others that have entries in this rank's columns; columns of a are these rows. Collective: yes. */
TRL_NODISCARD trl_err trli_row_owners_add_readers(trli_row_owners *o, const trli_sparse *a);
/* Once all rows are known. Collective: yes. */
TRL_NODISCARD trl_err trli_row_owners_connect(trli_row_owners *o);
/* [all] Get the values of others' rows. Collective: yes, behind an agreement since which no rank can have failed,
 * whatever it did. */
TRL_NODISCARD trl_err trli_row_owners_exchange(trli_row_owners *o, double *values);

/* ---- row_messages.c: rows of matrices in messages ---- */

/* Behind the own rows of a matrix, append all others that are known; columns: of the matrix, which are added where they
 * are not known. Collective: yes. */
TRL_NODISCARD trl_err trli_row_owners_append(const trli_row_owners *o, trli_sparse *a, trli_row_owners *columns);

/* Where all ranks have all rows of a matrix whose rows they shared: in the order of points. */
typedef struct trli_row_gather {
    trl_context *ctx;
    int rows;         /* all; 0: nothing was shared */
    int *begin;       /* [ranks + 1] so many before those of a rank */
    int *row;         /* [rows] those of rank after rank */
    trl_gidx *point;  /* [rows] ascending */
    double *gathered; /* [rows] values of rank after rank */
    int *count;       /* [2 * ranks] of a message's elements, and where they begin */
    int32_t rows_room, points_room, gathered_room;
} trli_row_gather;

/* In place of another one, or of none. The caller frees it, even if this fails. Collective: yes. */
TRL_NODISCARD trl_err trli_row_gather_begin(const trli_row_owners *o, trli_row_gather *g);
void trli_row_gather_free(trli_row_gather *g);
/* The number of a point's row among all. */
int trli_row_gather_find(const trli_row_gather *g, trl_gidx point);
/* Own rows, whose columns are rows of `o`, become all rows and columns. Collective: yes. */
TRL_NODISCARD trl_err trli_row_gather_matrix(const trli_row_gather *g, const trli_row_owners *o, trli_sparse *a);
/* Where this rank puts the values of its own rows, in their order; and all ranks get all. Collective: yes, behind an
 * agreement since which no rank can have failed, whatever it did. */
double *trli_row_gather_own(const trli_row_gather *g);
TRL_NODISCARD trl_err trli_row_gather_values(trli_row_gather *g, double *values);

/* ---- row_choice.c ---- */

/* Which of the points that ranks share stay on the next grid: kept[own] 1 or 0. strong: rows of own points, and of all
 * others that depend on these or that these depend on; columns are rows of `o`. most: points of a block, about, in
 * which they are chosen one after the other. The same on any ranks. Collective: yes. */
TRL_NODISCARD trl_err trli_row_owners_choose(const trli_row_owners *o, const trli_sparse *strong, int64_t most,
                                             double *kept);

#endif

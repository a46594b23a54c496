/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Matrices that all ranks have, of whose rows each rank computes its own in a cycle. Vectors are as long as if a rank
 * computed all of them; what it has of others' rows are only those values that it reads. */
#ifndef TRLI_ROW_OWNERS_IMPL_H
#define TRLI_ROW_OWNERS_IMPL_H

#include <mpi.h>

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
    int rows;
    int *owner;  /* [rows] ranks */
    int *row;    /* [rows] those of rank after rank, */
    int *begin;  /* [ranks + 1] so many before those of a rank */
    bool *reads; /* [rows] others' that this rank reads */
    trli_row_traffic in, out;
    int *count;           /* [2 * ranks] of values of each rank */
    MPI_Request *request; /* [2 * ranks] */
    double *gathered;     /* [rows] for trli_row_owners_gather */
    int32_t owners_room, rows_room, reads_room, gathered_room;
} trli_row_owners;

/* In place of other ones, or of none: the caller sets the owners then. The caller frees them, even if this fails. */
TRL_NODISCARD trl_err trli_row_owners_begin(trl_context *ctx, int rows, trli_row_owners *o);
void trli_row_owners_free(trli_row_owners *o);
/* Once owners are set. */
void trli_row_owners_order(trli_row_owners *o);
/* This rank's rows. */
int trli_row_owners_own(const trli_row_owners *o, const int **row);
/* Once they are ordered: this rank computes rows of a matrix whose columns are rows of these. */
void trli_row_owners_read(trli_row_owners *o, const trli_sparse *a, int row);
/* Once all that is read is known. Collective: yes. */
TRL_NODISCARD trl_err trli_row_owners_connect(trli_row_owners *o);
/* Get the values that this rank reads. Collective: yes, behind an agreement since which no rank can have failed,
 * whatever it did. */
TRL_NODISCARD trl_err trli_row_owners_exchange(trli_row_owners *o, double *values);
/* Make room for getting all values at once; and get them. Collective: likewise. */
TRL_NODISCARD trl_err trli_row_owners_reserve(trli_row_owners *o);
TRL_NODISCARD trl_err trli_row_owners_gather(trli_row_owners *o, double *values);

#endif

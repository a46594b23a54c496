/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What moves values between distributions of a grid, and where its messages are. */
#ifndef TRLI_SHUFFLE_IMPL_H
#define TRLI_SHUFFLE_IMPL_H

#include <mpi.h>

#include "direct_impl.h"
#include "executor_impl.h"

/* Parts to be sent to or received from other ranks, by rank. */
typedef struct trli_shuffle_traffic {
    trli_common *part;
    int n;
    int *begin;        /* [ranks] values before those of a rank */
    int *count, *most; /* [ranks] values; with those beside, which are the last */
    ptrdiff_t values;
    double *buffer; /* of the host; NULL: GPUs read messages where they were packed */
} trli_shuffle_traffic;

struct trli_shuffle {
    trl_context *ctx;
    trl_device *device; /* a GPU, whose like pack and unpack messages; NULL: the host does */
    const bool *reach;  /* [ranks] to whose boxes this rank has no messages; NULL: to its own */
    int unit;           /* rows in messages are filled up to multiples of it */
    trli_common *own;   /* parts that this rank moves: to its own boxes, or those that it reaches */
    int nown;
    bool messages;                /* between any ranks, or there might be */
    MPI_Request request;          /* of messages under way */
    trli_shuffle_traffic away[2]; /* to others, from others; the other way around on the way back */
    /* Messages in the memory of GPUs: shuffle_gpu.c */
    double *near;    /* in which this rank packs those there, then those back; NULL: they are in buffers */
    bool connected;  /* others have it open */
    void **opened;   /* [ranks] memory of others, NULL: none; and in it */
    double **far[2]; /* [ranks] their messages for this rank: there, back */
};

/* Of one whose device is not NULL; when its GPUs have ended. Collective: yes, if it was connected. */
void trli_shuffle_disconnect(trli_shuffle *shuffle);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A small matrix at each point, and systems with it: what couples the unknowns of a point. */
#ifndef TRLI_POINT_BLOCKS_IMPL_H
#define TRLI_POINT_BLOCKS_IMPL_H

#include <trl_loop.h>

enum { TRLI_BLOCK_MOST = 24 /* unknowns of a point */ };

typedef struct trli_point_blocks {
    trl_context *ctx;
    trl_loop *loop;
    int n; /* unknowns */
    int64_t points;
    double *entry;        /* [points][n][n] by row, then its factors */
    unsigned char *pivot; /* [points][n] */
    void *memory[2];      /* of these */
} trli_point_blocks;

TRL_NODISCARD trl_err trli_point_blocks_create(trl_context *ctx, trl_loop *loop, int n, int64_t points,
                                               trli_point_blocks *blocks);
void trli_point_blocks_destroy(trli_point_blocks *blocks);
/* Gaussian elimination with partial pivoting. A column of zeros counts as one with a 1 on the diagonal. */
TRL_NODISCARD trl_err trli_point_blocks_factor(trli_point_blocks *blocks);
/* z = the solution for r, both [n][points]. */
TRL_NODISCARD trl_err trli_point_blocks_solve(const trli_point_blocks *blocks, const double *r, double *z);

#endif

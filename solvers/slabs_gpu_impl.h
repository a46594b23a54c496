/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The direct solver on a GPU: texts of its kernels, and their launches. */
#ifndef TRLI_SLABS_GPU_IMPL_H
#define TRLI_SLABS_GPU_IMPL_H

#include <stdio.h>

#include "direct_impl.h"

/* ---- transform_text.c ---- */

/* What every kernel on lines begins with, behind the macros that say how a block is shaped (trl_lines_body.h). */
extern const char trli_lines_prelude[];

/* How a block of threads works on lines: each of `lanes` lines by `workers` threads, in two buffers of shared memory
 * with `pitch` doubles from a value to the next one of the same line. */
typedef struct trli_lines_shape {
    int lanes, workers, pitch;
    size_t shared;
} trli_lines_shape;

enum { TRLI_LINES_MOST = 16 /* lanes */ };

/* of_rows: lines lie along x. False: lines are too long for the memory of a block. */
bool trli_lines_shape_of(const trli_transform *transform, bool of_rows, trli_lines_shape *shape);
/* The text of the kernel that transforms lines, there or back; or there, divides, and back. */
void trli_lines_write(const trli_transform *transform, const trli_lines_shape *shape, bool of_rows, bool back,
                      bool divided, FILE *out);
/* The text of a kernel of trl_lines_body.h that needs no shared memory. */
void trli_lines_write_plain(const char *what, int threads, FILE *out);
enum { TRLI_LINES_ARRAYS = 9, TRLI_LINES_SCALARS = 5 /* of all these kernels */ };

/* ---- slabs_gpu.c ---- */

/* Of a plan, for a grid of n points that are unknown; NULL: no GPU can have them all. Fails with MEMORY. */
typedef struct trli_slabs_gpu trli_slabs_gpu;
TRL_NODISCARD trl_err trli_slabs_gpu_create(const trl_simulation *sim, const trli_direct_plan *plan, const int n[3],
                                            trli_slabs_gpu **gpu);
void trli_slabs_gpu_destroy(trli_slabs_gpu **gpu);

typedef struct trli_slabs_request {
    const trl_simulation *sim;
    int from, to; /* fields: what to solve for, and the solution, which is written, or added to what is there */
    int first[3]; /* the first unknown point */
    bool add;
    double mean; /* of the solution, if the plan sets it */
} trli_slabs_request;

/* Solve on the GPU that has all of `from` where the host has not; *done: false: it was not, and nothing has changed.
 * Fails with DEVICE, MEMORY. */
TRL_NODISCARD trl_err trli_slabs_gpu_solve(trli_slabs_gpu *gpu, const trli_slabs_request *request, bool *done);

#endif

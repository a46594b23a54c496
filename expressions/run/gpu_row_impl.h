/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of programs on small grids, and other calls of kernels, one behind the other in one launch of one block: each
 * computes so little that a launch of its own takes longer. */
#ifndef TRLI_GPU_ROW_IMPL_H
#define TRLI_GPU_ROW_IMPL_H

#include "frame_impl.h"
#include "gpu_kernel_impl.h"

enum { TRLI_ROW_POINTS = 1024 /* of a call, at most: more are faster in several blocks */ };

typedef struct trli_gpu_row trli_gpu_row;

/* Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_row_create(trl_context *ctx, trli_gpu_row **row);
void trli_gpu_row_destroy(trli_gpu_row **row);
/* Begin a row on the GPU that alone has a field of a frame. *begun: there is one, of a grid that is not cut, and rows
 * were done there before or may be. Thread: main, not during a run; also of what follows. */
void trli_gpu_row_begin(trli_gpu_row *row, const trli_frame *frame, int field, bool *begun);
/* Add a run, with fields, scalars and slots as they are now: what it writes counts as written by the GPU. */
void trli_gpu_row_run(trli_gpu_row *row, trli_frame *frame, const trli_program *program);
/* Add a call of a kernel that stores its results, by its text, which stays where it is, with so many arrays and
 * scalars; and the GPU. */
void trli_gpu_row_call(trli_gpu_row *row, const char *text, const trli_gpu_call *call, int narrays, int nscalars);
struct trl_device *trli_gpu_row_device(const trli_gpu_row *row);
/* The row lacks a call: it is not to be done. */
void trli_gpu_row_spoil(trli_gpu_row *row);
/* Enqueue the row. *done: it is. Else it lacks something, or the GPU has failed, and what the row was to write has no
 * values. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_row_end(trli_gpu_row *row, bool *done);

#endif

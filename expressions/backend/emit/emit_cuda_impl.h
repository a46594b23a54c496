/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What kernels for GPUs are written of, whether they store their results or merge them. */
#ifndef TRLI_EMIT_CUDA_IMPL_H
#define TRLI_EMIT_CUDA_IMPL_H

#include "emit_writer_impl.h"

/* Values that the text has already: those of ghosts, and others. */
typedef struct trli_cuda_values {
    bool *ghost, *other; /* [count] */
    bool *kept;          /* [inputs] room for e->kept */
} trli_cuda_values;

/* ---- emit_cuda.c ---- */

/* The types of places in arrays, and of the point of a thread of a kernel that stores. */
const char *trli_cuda_place(const trli_emitter *e);
const char *trli_cuda_point(const trli_emitter *e);
/* The input that a sample is of. */
int trli_cuda_array_of(const trli_emitter *e, const trli_sample *in);
/* The array whose strides one has; outputs follow inputs. */
int trli_cuda_shape_of(const trli_emitter *e, int array);
/* The beginning of a kernel, and its scalars. bounds: of its launch, beside the threads of a block. */
void trli_cuda_put_head(trli_emitter *e, const char *bounds);
/* Arrays, and where in them the thread's point i, j is in the plane `first`. */
void trli_cuda_put_arrays(trli_emitter *e, int depth);
/* How far from the thread's point samples are whose fields go on at the other side; ghosts, which read fields as they
 * lie in memory; all else that results need; and both. Those that change with z, or that do not. */
void trli_cuda_put_rounds(trli_emitter *e, bool along_z, int depth);
void trli_cuda_put_ghosts(trli_emitter *e, const trli_cuda_values *done, bool along_z, int depth);
void trli_cuda_put_wanted(trli_emitter *e, const trli_cuda_values *done, bool along_z, int depth);
void trli_cuda_put_values(trli_emitter *e, const trli_cuda_values *done, bool along_z, int depth);
/* Whether a sample is that at the other side in all layers that it may be in along an axis. And how far it is. */
bool trli_cuda_goes_round(const trli_emitter *e, int32_t i, int axis);
void trli_cuda_put_round(trli_emitter *e, int32_t i, int axis);
/* Whether a sample lies in a layer of ghosts. */
void trli_cuda_put_condition(trli_emitter *e, const trli_sample *in, const trli_choice *choice);
/* A field, or in a layer of ghosts what it is there. */
void trli_cuda_put_field(trli_emitter *e, trli_loop_level loop, int32_t i);
void trli_cuda_put_use(trli_emitter *e, trli_loop_level loop, int32_t i);

/* A kernel that takes several steps. */
void trli_cuda_put_steps(trli_emitter *e, const trli_cuda_values *done);

/* ---- emit_cuda_store.c ---- */

/* A kernel that stores its results. */
void trli_cuda_put_storing(trli_emitter *e, const trli_cuda_values *done);

/* ---- emit_cuda_merge.c ---- */

/* A kernel that merges its results. */
void trli_cuda_put_merging(trli_emitter *e, const trli_cuda_values *done);

#endif

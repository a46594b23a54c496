/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels of steps and slabs on a patch: bound to arrays, and computed on boxes, by tasks of one step and of several in
 * a pass alike. */
#ifndef TRLI_COMPUTE_IMPL_H
#define TRLI_COMPUTE_IMPL_H

#include "execution_impl.h"
#include "frame_impl.h"
#include "model_impl.h"
#include "sweep_impl.h"

/* Which kernel of a program, on which local patch, and the fields whose memory it touches. */
typedef struct trli_kernel_place {
    const trli_program *program;
    const trli_step *step;
    const trli_slab *slab; /* of the step; NULL: the step's own kernel */
    int patch;
    int space; /* of the memory */
    const int *input, *output;
} trli_kernel_place;

/* A kernel with its arrays, until time levels rotate or a kernel is compiled. */
typedef struct trli_bound_kernel {
    const trl_grid *cells;
    const trl_patch *patch;
    const trli_kernel *kernel; /* of the interpreter; NULL: it copies images */
    bool native;               /* compiled */
    const trli_program *program;
    const trli_step *step; /* NULL: it is a slab's */
    int nparts;
    trli_native_part *part; /* [nparts] */
    trl_array *array;       /* [ninputs + noutputs] */
    trl_kernel_array *native_array;
    trl_kernel_inside *inside; /* [ninputs] */
    trl_kernel_grid *grid;
    long long block; /* rows that compiled kernels take at once, where nothing is tuned */
    int interleave;  /* planes whose rows are interleaved, likewise */
    int ninputs, noutputs;
    const int *variable;   /* of each output, which must be finite; NULL: any value will do */
    const trl_box *within; /* only these points are checked; NULL: all */
    ptrdiff_t behind;      /* IMAGE: distance, in values, of a point from the one that is copied to it */
    bool exceeds_caches;
    struct trli_tuning *tuning; /* NULL: compiled kernels take a box by `block` and `interleave` */
} trli_bound_kernel;

/* Bytes that a bound kernel needs, a multiple of a cache line. */
size_t trli_bound_kernel_bytes(const trli_program *program, const trli_step *step, const trli_slab *slab);
void trli_kernel_bind(const trli_kernel_place *place, const trli_frame *frame, void *room, trli_bound_kernel *kernel);
/* Compute a box. Its scalars and the records of values that are not finite are the frame's; registers: scratch of the
 * interpreter. */
void trli_kernel_compute(const trli_bound_kernel *kernel, const trli_frame *frame, int worker, void *registers,
                         const trl_box *box);
/* Look at all owned points of a field on the host. */
void trli_check_field(const trli_frame *frame, int field, int variable, trli_nonfinite *found);
/* Compute a scalar from others. */
void trli_scalar_compute(const trli_program *program, const trli_step *step, const trli_frame *frame, int worker);
/* Whether the kernel of a step may compute the ghosts of a layer itself: on CPUs, at the ends of rows before its loops.
 */
bool trli_slab_is_within(const trli_model *model, const trli_slab *slab);

/* The arrays and the box of a compiled kernel's call. */
void trli_native_set_array(trl_kernel_array *to, const trl_array *from);
void trli_native_set_box(trl_kernel_call *call, const trl_box *box);
/* Copy to each point of a box of an array the value that lies `behind` values before it. */
void trli_copy_images(const trl_array *array, const trl_box *box, ptrdiff_t behind);

#endif

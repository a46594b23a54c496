/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Slabs of ghost layers and planes of points: the kernels of conditions. */
#ifndef TRLI_SLAB_IMPL_H
#define TRLI_SLAB_IMPL_H

#include "interpreter_impl.h"
#include "native_impl.h"
#include "side_impl.h"

/* A kernel on a slab of ghost layers or a plane of points: the condition of one layer at one side. Or the images of points inside that are
 * beyond a periodic side, where one patch has both sides of the axis. */
typedef struct trli_slab {
    int field; /* its target */
    int axis, side;
    int layer; /* 1, 2, ...; 0: the plane of points on the side */
    trli_value value;
    bool image; /* there is no kernel */
    trli_kernel *kernel;
    trli_native_fn native; /* compiled, or NULL: interpreted */
    bool of_row;           /* a kernel that reads it from the row beside it could compute it from that row */
    bool within;           /* the compiled kernel of its step does: it needs no ghosts in memory */
    int read_as;           /* with of_row: the input of its step that it is a layer of */
    int entry;             /* a modifier plugin instead of a kernel: index of the entry, else -1 */
    int ninputs, *input;   /* fields read, in the kernel's or plugin's order */
    trl_lidx tangential_lo[3], tangential_hi[3]; /* ghosts included along the other axes, at inner sides */
    trl_lidx corner_lo[3], corner_hi[3];         /* and beyond the sides of earlier axes */
} trli_slab;

#endif

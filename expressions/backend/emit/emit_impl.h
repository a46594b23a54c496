/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The text of a kernel, from the IR alone: nothing that a user wrote reaches a compiler. */
#ifndef TRLI_EMIT_IMPL_H
#define TRLI_EMIT_IMPL_H

#include <stdio.h>

#include <reduction_impl.h>
#include <trl_entry.h>
#include <trl_kernel_body.h>

#include "signature_impl.h"

typedef struct trli_emitter trli_emitter;

/* The language of a device. */
typedef struct trli_dialect trli_dialect;
/* C: void trl_kernel(trl_kernel_call *call). */
extern const trli_dialect trli_dialect_cpu;
/* CUDA: extern "C" __global__ void trl_kernel(trl_kernel_launch call, trl_kernel_arrays<N> arrays,
 * trl_kernel_scalars<M> scalars): those that it reads, then the numbers that it is given; M is 1 if there are none. */
extern const trli_dialect trli_dialect_cuda;
/* What NVRTC has to be told beside the architecture, so that it rounds each operation by itself; NULL-terminated. */
extern const char *const trli_cuda_options[];

/* A layer of ghosts beyond a side, which have this value. It follows from the row that reads it, which is beside it. */
typedef struct trli_emit_layer {
    int field, axis, side, layer;
    int further; /* x: points by which the kernel's rows are longer than the field's */
    bool image;  /* the value is the field itself, at the other end of the row or in the row at the other side */
    trli_ir_value value;
} trli_emit_layer;

/* A launch takes several steps (trl_kernel_steps_body.h) of so many fields: the tile of a block of threads, and blocks
 * of a multiprocessor. */
typedef struct trli_emit_steps {
    int fields, steps, wide, high, rows, at_once;
    bool flat; /* there is one plane */
} trli_emit_steps;

/* Which kernel of a step it is that makes a level of several steps, from the results of the one before, and from what
 * lies in memory. The last one has the launch in its text, behind those of the others. */
typedef struct trli_emit_level {
    int stage, nstages;
    const int *number; /* by input: which result of the level before it is; -1: it lies in memory */
    const int *array;  /* by input that does: among the arrays of the launch */
    const bool *alike; /* by input: it lies in memory as results do */
    int narrays;       /* of the launch: the first level, others that are read; results */
    int nreads;        /* of these that are read */
    bool cut; /* the grid is, along z: behind all are those that are read, with planes below the box, then above */
    int each; /* scalars of a level */
} trli_emit_level;

typedef struct trli_emit_request {
    unsigned disabled_passes; /* TRL_PASS_... */
    const trli_reads *reads;  /* of the roots */
    int nroots;
    const trli_ir_value *roots;
    /* By root, how its values are merged: CPU: by calls that are asked to (trl_kernel_call.merged); CUDA: by all
     * launches, into shares. NULL: they are stored. */
    const trli_merge *merge;
    int nstored;       /* of a kernel that merges: roots that it stores; only the others are merged, by all calls */
    unsigned weighted; /* CUDA, by root a bit: values on sides count less */
    bool check_finite; /* note values that are not finite */
    bool edges;        /* have ghosts set before the rows beside them are computed (trl_kernel_call.set_edges) */
    bool thin;         /* CPU, 2-D and more: for boxes of few points along x: the inner loop goes along y */
    int nlayers;       /* ghosts that the kernel computes itself */
    const trli_emit_layer *layer;
    /* CUDA: by input, then by root: the first that has the same strides. NULL: each has its own. */
    const int *shape;
    /* CUDA: scalars that a launch may find in memory, by their place there, trl_kernel_launch.late. */
    int nlate;
    const int *late;
    const bool *found; /* CUDA, by scalar: all launches find it in memory, trl_kernel_launch.found; NULL: none */
    bool wide; /* CUDA: an array may have 4 GiB or more, between the lowest point of a launch and its own last one */
    /* CUDA, with all layers that it reads: NULL: a step at a time. Scalars are there for each step. */
    const trli_emit_steps *steps;
    const trli_emit_level *level; /* of several steps */
    /* Constants that the kernel is given, in that order: CPU: trl_kernel_call.number; CUDA: behind its scalars. */
    int nnumbers;
    const trli_ir_value *number;
} trli_emit_request;

typedef struct trli_emitted {
    char
        *text; /* trli_free gives it back; NULL: the kernel is one that only the interpreter runs, and `why` says why */
    const char *why;
    int interleave; /* the most planes whose rows it interleaves */
} trli_emitted;

/* The text of a kernel that computes the roots as trli_kernel_evaluate does, to the bit; trli_kernel_prelude has to
 * precede it. Fails with MEMORY, without a text. */
TRL_NODISCARD trl_err trli_emit_kernel(const trli_dialect *dialect, const trli_ir *ir, trli_walk *walk,
                                       const trli_emit_request *request, trli_emitted *emitted);
/* The place of a scalar among n late ones, or -1. */
int trli_emit_late(int n, const int *late, int scalar);
/* Whether the kernel has a text. *why: NULL, or why it has none. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_emit_check(const trli_dialect *dialect, const trli_ir *ir, trli_walk *walk,
                                      const trli_emit_request *request, const char **why);
/* What the text of a kernel depends on, dialect and numbers aside. signature: empty; freed by the caller, also after a
 * failure. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_emit_signature(const trli_ir *ir, trli_walk *walk, const trli_emit_request *request,
                                          trli_signature *signature);

#endif

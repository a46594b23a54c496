/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels for GPUs: emitted text, compiled by NVRTC, its results kept in the user's cache by content, loaded, and
 * launched. */
#ifndef TRLI_GPU_KERNEL_IMPL_H
#define TRLI_GPU_KERNEL_IMPL_H

#include <trl_device.h>
#include <trl_kernel_launch_body.h>

#include "emit_impl.h"

typedef struct trli_gpu_kernels trli_gpu_kernels;

/* A kernel; equal texts are one. */
typedef struct trli_gpu_kernel {
    void *function;        /* NULL: it is not there, and */
    const char *why;       /* why; NULL: nobody has tried yet */
    int narrays, nscalars; /* that it is given, one at least */
} trli_gpu_kernel;

/* How threads lie over the box of a launch. */
typedef enum trli_gpu_shape {
    TRLI_GPU_STORING,   /* a column each, as kernels that store values want it */
    TRLI_GPU_MERGING,   /* few blocks go through all points, some planes at a time, for kernels that add to shares */
    TRLI_GPU_SWEEPING,  /* the same, a plane at a time, in blocks along x and y */
    TRLI_GPU_BY_PIECES, /* along y by pieces, along x by the points of the largest */
    TRLI_GPU_STEPS,     /* tiles, through chunks of z, for kernels that take several steps */
    TRLI_GPU_GIVEN      /* as the call says */
} trli_gpu_shape;

/* Blocks, their threads, and the memory that these have in common. */
typedef struct trli_gpu_layout {
    unsigned blocks[3], threads;
    size_t shared;
} trli_gpu_layout;

/* What a launch gives to a kernel: copied before it returns. */
typedef struct trli_gpu_call {
    const char *label;        /* for messages */
    trl_kernel_launch launch; /* but `planes`, which is chosen here */
    trl_kernel_array *array;  /* inputs, then outputs */
    double *scalar;           /* that it reads */
    int nresults;             /* that it stores at a point; 0: as 1 */
    trli_gpu_shape shape;
    const trli_emit_steps *steps;  /* STEPS: the tile */
    const trli_gpu_layout *layout; /* GIVEN */
} trli_gpu_call;

/* For the opened GPUs, which are of one kind. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_kernels_create(trl_context *ctx, const trl_devices *devices, trli_gpu_kernels **kernels);
/* With no kernel running. */
void trli_gpu_kernels_destroy(trli_gpu_kernels **kernels);
/* Ask for the kernel of a text, which is copied; narrays: of its inputs and outputs, nscalars: that it reads. *kernel
 * stays until the end. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_kernels_add(trli_gpu_kernels *kernels, const char *text, int narrays, int nscalars,
                                           trli_gpu_kernel **kernel);
/* Kernels that are the same for all models, and their texts: one copies its input to its output, point by point; one
 * empties shares, whose extremes begin with its scalars; one copies pieces, each from an array to the next one, with
 * three scalars for its extents. Fail with MEMORY. One makes the
 * statistics of a field (statistics.c): arrays and scalars are the field, a mask, exact values; whether there are these
 * two, and the points of the grid along x and y. */
enum { TRLI_GPU_SHARES = 8, TRLI_GPU_PIECES = 32 }; /* at once, at most */
extern const char trli_gpu_copy_text[], trli_gpu_clear_text[], trli_gpu_pieces_text[], trli_gpu_statistics_text[];
TRL_NODISCARD trl_err trli_gpu_kernels_add_copy(trli_gpu_kernels *kernels, trli_gpu_kernel **kernel);
TRL_NODISCARD trl_err trli_gpu_kernels_add_clear(trli_gpu_kernels *kernels, trli_gpu_kernel **kernel);
TRL_NODISCARD trl_err trli_gpu_kernels_add_pieces(trli_gpu_kernels *kernels, trli_gpu_kernel **kernel);
/* Take from the cache or compile, several at once, and load all kernels that were asked for; waits. Those that fail
 * say why. */
void trli_gpu_kernels_compile(trli_gpu_kernels *kernels);
/* The same where all ranks come: of those that ask for the same kernels each of the first node compiles a part, and
 * gives it to the others. kernels: NULL where a rank has none; local: of this rank so far. Collective: yes. Fails with
 * MEMORY, MPI, and as any rank so far. */
TRL_NODISCARD trl_err trli_gpu_kernels_compile_together(trl_context *ctx, trli_gpu_kernels *kernels, trl_err local);
/* Before the first launch of a kernel whose blocks have shared memory: let them have so many bytes on all GPUs. *why:
 * NULL, or why it cannot. */
void trli_gpu_kernels_share(const trli_gpu_kernels *kernels, const trli_gpu_kernel *kernel, size_t bytes,
                            const char **why);
/* The shared memory of a tile. */
size_t trli_gpu_tile_bytes(const trli_emit_steps *steps);
typedef struct trli_gpu_kernel_stats {
    int compiled, cached, failed;
    double seconds; /* that compiling took */
} trli_gpu_kernel_stats;
trli_gpu_kernel_stats trli_gpu_kernels_get_stats(const trli_gpu_kernels *kernels);

/* Enqueue a kernel for the points of a box, in a task's call by a GPU: the device of that space, and its stream. Fails
 * with DEVICE. */
TRL_NODISCARD trl_err trli_gpu_launch(const trli_gpu_kernels *kernels, const trli_gpu_kernel *kernel,
                                      trli_gpu_call *call, int space, void *stream);

#endif

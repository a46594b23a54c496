/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The direct solver on GPUs: texts of its kernels, the grid in slabs of GPUs of all ranks, and what these do. */
#ifndef TRLI_SLABS_GPU_IMPL_H
#define TRLI_SLABS_GPU_IMPL_H

#include <stdio.h>

#include <trl_device.h>

#include "direct_impl.h"
#include "gpu_kernel_impl.h"
#include "team_impl.h"

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
/* Likewise for planes, of which a block has a whole one beside the two buffers, in at most so many bytes. */
bool trli_planes_shape_of(const trli_transform *x, const trli_transform *y, size_t most, trli_lines_shape *shape);
void trli_planes_write(const trli_transform *x, const trli_transform *y, const trli_lines_shape *shape, bool back,
                       FILE *out);
/* The text of a kernel of trl_lines_body.h that needs no shared memory. */
void trli_lines_write_plain(const char *what, int threads, FILE *out);
enum { TRLI_LINES_ARRAYS = 9, TRLI_LINES_SCALARS = 5 /* of all these kernels */ };

/* ---- slabs_gpu_kernels.c ---- */

typedef enum trli_slab_work {
    TRLI_SLAB_PLANES_THERE, /* along x, then along the other axis */
    TRLI_SLAB_PLANES_BACK,  /* along the other axis, then along x */
    TRLI_SLAB_THERE,
    TRLI_SLAB_SOLVE,
    TRLI_SLAB_ELIMINATE,
    TRLI_SLAB_BACK,
    TRLI_SLAB_WORKS
} trli_slab_work;

/* A launch, for all lines of a slab along an axis, or all planes of x and another axis. */
typedef struct trli_slab_stage {
    trli_slab_work work;
    int axis, across, rest; /* of lines, or 0; the other axis of planes, or the first one that is left; the third */
    trli_lines_shape shape; /* of its blocks */
    trli_gpu_kernel *kernel;
} trli_slab_stage;

static inline bool trli_slab_stage_has_planes(const trli_slab_stage *s)
{
    return s->work == TRLI_SLAB_PLANES_THERE || s->work == TRLI_SLAB_PLANES_BACK;
}

enum { TRLI_SLAB_STAGES = 5, TRLI_SLAB_THREADS = 128 /* of a block that moves values or eliminates */ };

/* Stages on planes, one on lines, and stages on planes again. All but the plan is zero before they are provided. */
typedef struct trli_slab_kernels {
    const trli_direct_plan *plan;
    int n, solve; /* stages, and which of them is the one on lines */
    trli_slab_stage stage[TRLI_SLAB_STAGES];
    trli_gpu_kernel *move; /* from box to box */
    bool tried;            /* they were asked for; and */
    const char *why;       /* why they are not there; NULL: they are */
} trli_slab_kernels;

/* Whether the first stage reads right-hand sides in rows along x, and the last one writes solutions so. */
bool trli_slab_kernels_take_rows(const trli_slab_kernels *kernels);
/* Choose stages, for the devices of this rank and the parts that the grid is cut into, of all ranks, and compile them,
 * once. Collective: yes. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_slab_kernels_provide(trl_context *ctx, trli_slab_kernels *kernels,
                                                const trl_devices *devices, int parts, trli_gpu_kernels *compiled);

/* ---- slabs_gpu_memory.c ---- */

/* Values in the memory of a GPU, in rows that are filled up. */
typedef struct trli_gpu_slab {
    int lo[3], n[3]; /* of the grid's indices */
    trli_view local; /* of the slab's own */
    trli_view view;  /* of the grid's */
} trli_gpu_slab;

/* Where what an axis has begins in the memory of each GPU, in doubles; 0: it has none. */
typedef struct trli_axis_tables {
    size_t transform, index, value, weight, row; /* row: lower, middle or upper */
} trli_axis_tables;

/* What a GPU of this rank has. */
typedef struct trli_slab_member {
    double *memory;
    trli_gpu_slab planes, lines; /* lines: the planes if one GPU has all */
    trli_view above;             /* what elimination keeps of lines */
} trli_slab_member;

/* The grid in two distributions over the GPUs of all ranks. */
typedef struct trli_slab_memory {
    trl_context *ctx;
    trli_team *team; /* of this rank's; NULL: there is no distribution */
    uint32_t spaces; /* of the team: a bit 1 << space each */
    bool direct;     /* the planes are the one patch, whose fields are read and written on the way */
    trli_slab_member member[TRL_DEVICES_MAX];
    trli_axis_tables table[3];
    trli_shuffle *outside, *inside; /* from patches to planes; from planes to lines; NULL: not needed */
    bool connected;                 /* for messages */
} trli_slab_memory;

/* The grid that is cut (trli_slabs_create). */
typedef struct trli_slab_grid {
    trl_simulation *sim;
    const trli_direct_plan *plan;
    trl_location location;
    trli_line line[3];
} trli_slab_grid;

/* Distribute it over GPUs of this rank, a bit 1 << space each, and those of others; count: [ranks] GPUs of each.
 * takes_rows: of the kernels. *why: what is in the way, or NULL. Fails with MEMORY, DEVICE, INPUT. */
TRL_NODISCARD trl_err trli_slab_memory_create(const trli_slab_grid *grid, uint32_t spaces, const int *count,
                                              bool takes_rows, trli_slab_memory *memory, const char **why);
/* Once all ranks have one: for messages. near: as trli_shuffle_connect has it. Collective: yes. */
TRL_NODISCARD trl_err trli_slab_memory_connect(trli_slab_memory *memory, bool near);
/* Collective: yes, if it is connected. May be called for a distribution that is none, and for a part of one. */
void trli_slab_memory_destroy(trli_slab_memory *memory);

/* ---- slabs_gpu_run.c ---- */

typedef struct trli_slabs_request {
    const trl_simulation *sim;
    int from, to; /* fields: what to solve for, and the solution, which is written, or added to what is there */
    int first[3]; /* the first unknown point */
    bool add;
    double mean; /* of the solution, if the plan sets it */
} trli_slabs_request;

/* What a run has to do with. */
typedef struct trli_slab_job {
    const trli_slab_kernels *kernels;
    trli_slab_memory *memory;
    const trli_gpu_kernels *compiled;
    const trli_slabs_request *request;
    const int *space;                     /* [local patches] where they are */
    const trli_view *residual, *solution; /* [local patches] */
    bool wrote;                           /* the solution has perhaps changed */
} trli_slab_job;

/* Solve. A rank that fails, or has with `local`, takes part in all messages. Collective: yes, behind an agreement.
 * Fails with DEVICE, MPI. */
TRL_NODISCARD trl_err trli_slab_job_do(trli_slab_job *run, trl_err local);

/* ---- slabs_gpu.c ---- */

/* NULL: there are no GPUs for it on some rank. Collective: yes. Fails with MEMORY. */
typedef struct trli_slabs_gpu trli_slabs_gpu;
TRL_NODISCARD trl_err trli_slabs_gpu_create(const trli_slab_grid *grid, trli_slabs_gpu **gpu);
void trli_slabs_gpu_destroy(trli_slabs_gpu **gpu);
/* Solve on the GPUs that have patches of `from`, if some of them are on GPUs alone: what only the host has is sent
 * there. *done: false: they are not, or it is not possible, and the solution is what it was, if it is added to.
 * Collective: yes. Fails with DEVICE, on one rank where some of the solution was added, as trli_agree_within has it on
 * several. */
TRL_NODISCARD trl_err trli_slabs_gpu_solve(trli_slabs_gpu *gpu, const trli_slabs_request *request, bool *done);
/* Why the last solution was the CPU's though GPUs had its right-hand side; NULL: it was not. The same on all ranks. */
const char *trli_slabs_gpu_missing(const trli_slabs_gpu *gpu);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a model has once it can run: workers and compiled kernels. What runs change is a frame's. */
#ifndef TRLI_MODEL_RUN_IMPL_H
#define TRLI_MODEL_RUN_IMPL_H

#include "codes_impl.h"
#include "model_impl.h"

/* How messages between ranks go: workers pack; a GPU packs into its own memory, which is copied; into the receiver's.
 * From the least that GPUs do to the most: words of TRELLIS_GPU_IPC, and members of trli_messages_way. */
#define TRLI_MESSAGES_LIST(X) \
    X(HOST, "off")            \
    X(STAGED, "staging")      \
    X(DIRECT, "on")
typedef enum trli_messages_way {
#define TRLI_MESSAGES_ENUM(name, word) TRLI_MESSAGES_##name,
    TRLI_MESSAGES_LIST(TRLI_MESSAGES_ENUM)
#undef TRLI_MESSAGES_ENUM
} trli_messages_way;

/* Points of a field on patches of a kind, as a task graph's handle takes them. */
typedef struct trli_part_size {
    int boxes;
    size_t bytes;
} trli_part_size;

struct trli_model_run {
    trl_workers *workers;
    int nworkers;
    int lanes;                              /* of workers and devices: a task is called in one of them */
    unsigned exchanged_axes;                /* along which patches exchange anything, a bit each */
    unsigned points;                        /* which there are of trli_points, a bit each */
    trli_part_size *part;                   /* [field][kind of patch][TRLI_POINTS] */
    size_t scratch_bytes;                   /* of a worker */
    int nexchanges, nreductions, nbatches;  /* of all programs, */
    int nparts;                             /* and parts of kernels that may compute rims, too */
    struct trli_gpu_kernels *gpu_kernels;   /* NULL: there are no GPUs */
    struct trli_gpu_kernel *gpu_copy;       /* those which compute images, */
    struct trli_gpu_kernel *gpu_clear;      /* empty shares, */
    struct trli_gpu_kernel *gpu_extremes;   /* and find the extremes of a field */
    struct trli_gpu_kernel *gpu_statistics; /* or its statistics */
    struct trli_gpu_kernel *gpu_find;       /* brings shares together; NULL: GPUs find no scalars */
    struct trli_gpu_kernel *gpu_tell;       /* tells results of reductions; NULL: no program's */
    struct trli_gpu_kernel *gpu_pieces;     /* that which copies halos; NULL: there are none */
    struct trli_gpu_plugin *gpu_plugin;     /* [opaque expressions]; NULL: there are no GPUs */
    bool *gpu_reads;                        /* [scalars] whether a kernel for GPUs reads it; NULL: there are none */
    bool *found;                            /* [scalars] that GPUs find (found_scalars_impl.h); NULL: none */
    trli_messages_way messages;             /* the same on all ranks */
    bool gpu_wide;                          /* places in arrays need 64 bits (trli_emit_request.wide) */
    trli_codes *gpu_codes;                  /* of all kernels for GPUs; NULL: none was asked for */
    trli_compiler *compiler;                /* NULL: never */
    trli_codes *codes;                      /* of all kernels; NULL: none was asked for */
    bool compiling;                         /* some kernels are still to come */
    double first_run, polled;               /* s; 0: not yet */
};

#endif

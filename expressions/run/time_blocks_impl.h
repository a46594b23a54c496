/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Time blocking: several executions of a program in one pass over memory, each of them on the results of the one
 * before. */
#ifndef TRLI_TIME_BLOCKS_IMPL_H
#define TRLI_TIME_BLOCKS_IMPL_H

#include "frame_impl.h"
#include "time_plan_impl.h"

typedef struct trli_time_blocks trli_time_blocks;

typedef struct trli_time_shape {
    int executions; /* of a pass, at most */
    bool skewed;    /* as trli_time_plan_fit says */
    size_t bytes;   /* what a block works on at a time, roughly: no more than a cache */
} trli_time_shape;

/* *blocks is NULL with a reason in *why if the program cannot be run so; the program is analysed and has its memory.
 * Local: no communication. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_time_blocks_create(trli_program *program, trli_frame *frame, const trli_rotation *rotation,
                                              const trli_time_shape *shape, trli_time_blocks **blocks,
                                              const char **why);
/* Connect the patches; before the first run. Collective: yes. */
TRL_NODISCARD trl_err trli_time_blocks_connect(trli_time_blocks *blocks);
void trli_time_blocks_destroy(trli_time_blocks **blocks);
/* Take the frame's scalars as those of one execution of the coming pass, and compute those that depend on them. */
void trli_time_blocks_set_scalars(trli_time_blocks *blocks, int execution);
/* Run the first `executions` of a pass. The memory of the rotating fields is as after as many executions, but not
 * exchanged. */
TRL_NODISCARD trl_err trli_time_blocks_run(trli_time_blocks *blocks, int executions);
/* Take part in the messages of a pass of the other ranks, and compute nothing. */
TRL_NODISCARD trl_err trli_time_blocks_drain(trli_time_blocks *blocks);
/* The first execution of the last pass that checked a result on this rank and found one not finite, or -1. */
int trli_time_blocks_nonfinite(const trli_time_blocks *blocks);
/* Let the frame's `nonfinite` be what an execution of the last pass found. */
void trli_time_blocks_show_nonfinite(trli_time_blocks *blocks, int execution);

typedef struct trli_time_sizes {
    bool skewed;                       /* patches follow one another, and compute nothing twice */
    int executions, blocks, tasks;     /* of the first patch */
    int layers;                        /* of ghosts that patches have of one another, at most */
    int64_t comm_bytes, comm_messages; /* of a pass, sent by this rank */
    trl_lidx block, front;             /* rows (of the axis of blocks), and planes (of that of fronts) taken at once */
    int block_axis, front_axis;
} trli_time_sizes;
void trli_time_blocks_sizes(const trli_time_blocks *blocks, trli_time_sizes *sizes);

#endif

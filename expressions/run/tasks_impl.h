/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tasks of a program: what building and running them share. */
#ifndef TRLI_TASKS_IMPL_H
#define TRLI_TASKS_IMPL_H

#include "builder_impl.h"
#include "execution_impl.h"
#include "frame_impl.h"
#include "model_impl.h"
#include "model_run_impl.h"
#include "sweep_impl.h"

/* One task: a step on a patch (or on all patches). */
struct trli_step_task {
    trli_program *program;
    const trli_step *step;
    const trli_step_plan *plan;
    trli_step_run *run;
    int patch;     /* local patch, or -1 */
    bool computes; /* KERNEL, PLUGIN: `task` is of the graph */
    trl_task task;
    trl_box box;                       /* what it computes */
    int parts[3];                      /* chunks along each axis */
    int slab, nslabs;                  /* FILL, PLANES: those of the step that it computes */
    const trli_reduction_group *group; /* that it computes */
    const trli_reduction_batch *batch; /* that it brings together */
    trli_fused_sums *fused;            /* KERNEL: sums that it makes; NULL: none */
    /* KERNEL: what another task, of the inner points, leaves at the sides of the patch; else NULL. */
    const trli_step_task *inner;
    /* KERNEL: the next tasks, so many, are its rims, which its parts compute, too, where these wait for it alone. Its
     * parts are then those of `around`, box and rims together, and `first_part` is theirs in the frame. 0: it has none,
     * or they compute all of theirs. */
    int nrims, first_part;
    trl_box around;
    const trli_exchanged *exchanged;         /* of an exchange, */
    int exchange;                            /* what runs it, of the frame, */
    int message;                             /* and which of its messages; */
    const struct trli_exchange_piece *piece; /* or [npieces] what the patch copies from others of this rank */
    int npieces;
    bool round; /* GPUs may do all kernels that read points at the other sides in place of such copies */
};

/* Tasks of a program, in chunks: graphs point to them, so they stay where they are. */
typedef struct trli_task_chunk {
    trli_step_task *task;
    int n, capacity;
} trli_task_chunk;

struct trli_task_data {
    trli_task_chunk *chunk;
    int nchunks;
    int32_t capacity; /* chunks that there is room for */
};

/* The chunk to which n more tasks are added, one after the other. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_task_chunk_for(trl_context *ctx, struct trli_task_data *data, int n,
                                          trli_task_chunk **chunk);

trl_err trli_task_kernel(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_plugin(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_scalar(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_reduce(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_stable_dt(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_stable_dt_look(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_reduce_finish(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_halo(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_slabs(void *data, const trl_task_args *args, bool *done);
#ifdef TRL_POISON /* builds for testing: what must not be read holds NaN before each step that computes it */
trl_err trli_task_poison(void *data, const trl_task_args *args, bool *done);
#endif

enum { TRLI_POINTS_AHEAD = 512 /* by which kernels that merge values ask for inputs early */ };
/* A tile of so many points from the point lo on: whole rows, whole planes, as many as fit. */
trl_box trli_tile_at(int64_t points, const trl_box *chunk, const trl_lidx lo[3]);
/* The windows [n] of a lane for the task's group: a copy while it has the task, since those of other lanes are in the
 * same line of the cache. */
void trli_windows_take(const trli_step_task *task, const trl_task_args *args, trli_sum_window *window);
void trli_windows_return(const trli_step_task *task, const trl_task_args *args, trli_sum_window *window);
/* Compute the points of a box with the kernel that makes sums, too; false: it is not compiled, and nothing is done.
 * scratch: trli_fused_sums_scratch bytes of the worker's. */
bool trli_fused_sums_compute(const trli_step_task *task, const trl_task_args *args, const trl_box *box, void *scratch);
/* Before the first chunk of a task adds to such sums: the patch's shares are empty. */
void trli_fused_sums_begin(const trli_step_task *task, const trl_task_args *args);
/* Make these sums of a box that the kernel has computed by itself. */
void trli_fused_sums_add(const trli_step_task *task, const trl_task_args *args, const trl_box *box);
/* Compute the share of a task's group in a box; scratch: trli_group_scratch bytes of the worker's. */
void trli_group_compute(const trli_step_task *task, const trl_task_args *args, const trl_box *box, void *scratch);
size_t trli_group_scratch(const trli_reduction_group *group);
/* Where a task adds to a reduction of its group: a worker to its own part, a device to the patch's share. */
trli_partial *trli_reduction_part(const trli_step_task *task, const trl_task_args *args, int reduction);
/* By the task that makes a group's shares: whether its call brings them together, too, as one of a group that is
 * at_once does on a GPU. Then that has been done for a batch all of whose groups are such. */
void trli_note_at_once(const trli_frame *frame, const trli_program *program, const trli_reduction_group *group,
                       bool at_once);
bool trli_is_done_at_once(const trli_frame *frame, const trli_program *program, const trli_reduction_batch *batch);
/* [lanes] what workers add to a reduction of the model, on a patch where patches are apart. */
static inline trli_partial *trli_parts_of_patch(const trli_frame *frame, int reduction, int patch)
{
    const trli_reduction_run *run = &frame->reduction[reduction];
    return run->part + (run->patches > 1 ? (ptrdiff_t)patch * frame->model->run->lanes : 0);
}
/* Add n parts to a total; they are empty then. */
void trli_parts_take(trli_partial *part, int n, trli_merge merge, trli_partial *total);
/* The patch's share in a memory space. */
trli_partial *trli_reduction_share(const trli_step_task *task, const trli_frame *frame, int space, int reduction);
/* Merge into a batch's message what workers have added to it, and shares [local patch][model->run->nreductions]; both
 * are empty then. Set the scalars that it gives. */
void trli_reductions_merge(const trli_program *program, const trli_reduction_batch *batch, const trli_frame *frame,
                           trli_partial *shares, trli_batch_run *message);
void trli_reductions_set(const trli_program *program, const trli_reduction_batch *batch, const trli_frame *frame,
                         trli_batch_run *message);
/* Empty the workers' shares of a program's reductions. */
void trli_reductions_clear(trli_frame *frame, const trli_program *program);
/* Whether a rank had failed in the last run of a program before its reductions: the same on all ranks. */
bool trli_reductions_failed(const trli_frame *frame, const trli_program *program);
/* After a run that deferred the reductions of a program (trli_reductions_come_last): wait for the others' parts, and
 * compute scalars from them and from those of then. Fails with MPI. */
TRL_NODISCARD trl_err trli_reductions_await(trli_frame *frame, const trli_program *program, double *scalar);
/* The same without waiting, from a task: *there: the scalars of the frame are set. Fails with MPI. */
TRL_NODISCARD trl_err trli_reductions_look(const trli_frame *frame, const trli_program *program, int worker,
                                           bool *there);
/* The same if the results are not wanted any more, because of an error. */
void trli_reductions_drop(const trli_frame *frame, const trli_program *program);
/* A batch of the frame with this index, empty. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_batch_create(trl_context *ctx, trli_batch_run *batch, int index, int nsums, int nextremes);
void trli_batch_destroy(const trli_frame *frame, trli_batch_run *batch);
/* Once all parts of a program's batches have come: results, and the scalars that are computed from them. */
void trli_reductions_end(const trli_frame *frame, const trli_program *program, int worker);
/* After a run that deferred a program's reductions: polls of later runs bring them on. */
void trli_reductions_leave_to_polls(const trli_frame *frame, const trli_program *program);
/* Send this rank's part of a batch that is in nobody's program, which polls bring on, and wait for those of the others.
 * Fails with MPI. */
TRL_NODISCARD trl_err trli_batch_post(const trli_frame *frame, trli_batch_run *batch);
TRL_NODISCARD trl_err trli_batch_await(const trli_frame *frame, trli_batch_run *batch);
/* Before the end of a frame: whether MPI no longer writes to a batch. It waits for a while. */
bool trli_reductions_leave(const trli_frame *frame, trli_batch_run *batch);
/* By input of a step's kernel on a patch: all of the array but the ghosts that the kernel computes itself. */
void trli_native_set_inside(const trli_program *program, const trli_step *step, const trl_patch *patch,
                            const trl_array *input, trl_kernel_inside *inside);
/* The parts of a compiled kernel, each with its own arrays of those of the whole. room: for so many bytes, aligned as
 * by malloc. */
size_t trli_native_parts_bytes(const trli_program *program, const trli_step *step);
trli_native_part *trli_native_parts(const trli_program *program, const trli_step *step, const trl_kernel_call *whole,
                                    void *room);

/* Scratch of a thread: arrays first, then the kernel's registers and a tile. */
size_t trli_step_scratch(const trli_program *program, const trli_step *step);

#endif

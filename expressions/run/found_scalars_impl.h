/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Scalars that GPUs find and that their kernels read: results of reductions, and what follows from them. They are data
 * like fields, each valid in some memories; on the host they lie among the frame's scalars. The host does not wait for
 * those that it does not read. */
#ifndef TRLI_FOUND_SCALARS_IMPL_H
#define TRLI_FOUND_SCALARS_IMPL_H

#include "emit_impl.h"
#include "frame_impl.h"
#include "model_run_impl.h"
#include "tasks_impl.h"

/* ---- before programs are frozen ---- */

/* Once programs have reductions: choose them (model->run->found). Fails with MEMORY. */
TRL_NODISCARD trl_err trli_found_scalars_choose(trli_model *model);
static inline bool trli_is_found(const trli_model *model, int scalar)
{
    return model->run->gpu_kernels && model->run->found && model->run->found[scalar];
}

/* What GPUs compute of a step that makes one from scalars. */
trli_emit_request trli_found_scalar_request(const trli_program *program, const trli_step *step);
/* Ask for the kernel that brings shares of reductions together. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_found_scalars_request(const trli_model *model);
/* Whether GPUs may bring a batch together, or make a scalar; the tasks. */
bool trli_gpu_does_batch(const trli_program *program, const trli_reduction_batch *batch);
bool trli_gpu_does_scalar(const trli_step_task *task);
trl_err trli_task_find_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_scalar_gpu(void *data, const trl_task_args *args, bool *done);
/* Scratch of a call by either. */
size_t trli_found_scalars_scratch(const trli_program *program);

/* Bytes of what the host is told of them in its memory; 0: there are none. */
size_t trli_found_scalars_told(const trli_model *model);

/* ---- runs ---- */

/* Whether a run of the program leaves scalars to be fetched that its users read. */
bool trli_leaves_scalars(const trli_program *program);
/* Right after a run whose scalars are not fetched (trli_frame.fetches_later): whether a device may be at them still,
 * and they are to be taken; else the host has them, or they are there after trli_frame_fetch_scalars. */
bool trli_found_scalars_come(const trli_frame *frame, const trli_program *program);
/* Take them: the host waits for that run, but with one device not for others behind it, which make other ones. Fails
 * with DEVICE. */
TRL_NODISCARD trl_err trli_found_scalars_take(const trli_frame *frame, const trli_program *program);

/* Of a frame that is made: let workers add to reductions that GPUs may bring together patch by patch. */
void trli_found_scalars_part(const trli_frame *frame);
/* As trli_frame_leave_devices; then the place of a program that made scalars which are lost, and which another one
 * reads; NULL: there is none. */
void trli_found_scalars_leave(const trli_frame *frame, uint32_t spaces);
const trl_place *trli_found_scalars_lost(const trli_frame *frame, const trli_program *reader);
/* Before the host's share of a patch is copied to a device: what workers have added to n reductions from this one on,
 * if GPUs may bring them together. */
void trli_found_scalars_settle(const trli_frame *frame, int patch, int reduction, int n);

#endif

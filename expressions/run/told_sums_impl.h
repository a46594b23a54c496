/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Results of a program's reductions that a GPU writes to the host's memory, so that the host can give it more to do
 * before it learns them. */
#ifndef TRLI_TOLD_SUMS_IMPL_H
#define TRLI_TOLD_SUMS_IMPL_H

#include "frame_impl.h"
#include "tasks_impl.h"

/* ---- before programs are frozen ---- */

/* Whoever runs the program takes its results with the functions below. */
void trli_program_tells(trli_program *program);
/* Ask for the kernel. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_told_sums_request(const trli_model *model);
/* Once kernels are there: whether GPUs may tell the program's results. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_told_sums_may_come(const trli_program *program, bool *may);
trl_err trli_task_tell_gpu(void *data, const trl_task_args *args, bool *done);
/* Of a launch: its array and number. */
size_t trli_told_sums_scratch(void);
/* Bytes of what the host is told; 0: of no program. */
size_t trli_told_sums_bytes(const trli_model *model);

/* ---- runs ---- */

/* Right after a run of a program that tells: whether its results come from a GPU, which may be at it still, and are to
 * be taken before its next run; else the host has them. */
bool trli_told_sums_come(const trli_frame *frame, const trli_program *program);
/* Take them: the host waits for that run, but not for another one that a device was given behind it. Fails with
 * DEVICE. */
TRL_NODISCARD trl_err trli_told_sums_take(const trli_frame *frame, const trli_program *program);

#endif

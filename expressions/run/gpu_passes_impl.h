/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Time blocking on a GPU: several executions of a program in one launch, each on the results of the one before. */
#ifndef TRLI_GPU_PASSES_IMPL_H
#define TRLI_GPU_PASSES_IMPL_H

#include "frame_impl.h"
#include "time_plan_impl.h"

typedef struct trli_gpu_passes trli_gpu_passes;

/* Before fields have memory: give those of a pass the same ghosts, so that they lie in memory alike. */
void trli_gpu_passes_deepen(trli_program *program, const trli_rotation *rotation);
/* *passes is NULL with a reason in *why if the program cannot be run so: it is one kernel, of few fields and their next
 * levels, on one GPU. most: steps of a pass. Its kernels are compiled, one for each tile that is worth a try, or with
 * `one` that of the most steps. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_passes_create(trli_program *program, trli_frame *frame, const trli_rotation *rotation,
                                             int most, bool one, trli_gpu_passes **passes, const char **why);
void trli_gpu_passes_destroy(trli_gpu_passes **passes);
/* The text of a pass of as many steps as there may be, once kernels for GPUs have theirs; freed by the caller. *text:
 * NULL with a reason in *why. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_passes_text(trli_program *program, const trli_rotation *rotation, int most, char **text,
                                           const char **why);
/* Ways to make a pass, and the steps of one; one with all stages of a method, if there are several. */
int trli_gpu_passes_count(const trli_gpu_passes *passes);
int trli_gpu_passes_steps(const trli_gpu_passes *passes, int way);
/* The first way in words; only: there is no other. */
void trli_gpu_passes_describe(const trli_gpu_passes *passes, bool only, size_t size, char *text);
/* To be asked before each step: whether the GPU has the fields, and memory for their next levels. */
bool trli_gpu_passes_ready(trli_gpu_passes *passes);
/* Take the frame's scalars as those of a step of the coming pass. */
void trli_gpu_passes_set_scalars(trli_gpu_passes *passes, int step);
/* Make a pass, and wait for it: the next level is the field after all steps, and the field is as before. *alarmed: a
 * step checked its result and found some that is not finite. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_gpu_passes_run(trli_gpu_passes *passes, int way, bool *alarmed);

#endif

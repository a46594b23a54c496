/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels and slabs on GPUs. */
#ifndef TRLI_GPU_IMPL_H
#define TRLI_GPU_IMPL_H

#include "emit_impl.h"
#include "frame_impl.h"
#include "tasks_impl.h"

/* Compile the kernels of all programs for the GPUs of the model's workers, if there are any, before tasks are built; a
 * warning names the first of those that cannot be. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_request(trli_model *model);
/* Ask for the kernel that finds extremes of a field. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_request_extremes(trli_model *model);
/* What GPUs compute of a step, or of one of its slabs. */
trli_emit_request trli_gpu_step(const trli_program *program, const trli_step *step);
/* The text of a step's kernel, which computes its ghosts if it can: then its slabs are not computed before it. Fails
 * with MEMORY; trli_free gives the text back, come what may. */
TRL_NODISCARD trl_err trli_gpu_emit_step(const trli_program *program, const trli_step *step, trli_emitted *emitted,
                                         bool *folds);
trli_emit_request trli_gpu_slab(const trli_program *program, const trli_step *step, const trli_slab *slab);

/* What GPUs compute of reductions that are made together. */
trli_emit_request trli_gpu_group(const trli_program *program, const trli_reduction_group *group);

/* Whether GPUs may do the task of a step's kernel, slabs included, or of some slabs. */
bool trli_gpu_does_kernel(const trli_step_task *task);
bool trli_gpu_does_slabs(const trli_step_task *task);
bool trli_gpu_does_reduction(const trli_step_task *task);
bool trli_gpu_does_halos(const trli_model *model);
trl_err trli_task_kernel_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_slabs_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_reduce_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_halo_gpu(void *data, const trl_task_args *args, bool *done);
/* Scratch of a call, of a step's, of any group's, or of halos. */
size_t trli_gpu_scratch(const trli_program *program, const trli_step *step);
size_t trli_gpu_reductions_scratch(const trli_reductions *reductions);
size_t trli_gpu_halos_scratch(const trli_model *model);

#endif

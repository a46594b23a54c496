/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels and slabs on GPUs. */
#ifndef TRLI_GPU_IMPL_H
#define TRLI_GPU_IMPL_H

#include "emit_impl.h"
#include "frame_impl.h"
#include "gpu_kernel_impl.h"
#include "tasks_impl.h"

/* Compile the kernels of all programs for the GPUs of the model's workers, if there are any, before tasks are built; a
 * warning names the first of those that cannot be. Collective: yes, where programs may have GPUs. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_request(trli_model *model);
/* Ask for the kernel that finds extremes of a field. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_request_extremes(trli_model *model);
/* Find what GPUs compute of the programs that run more than once, and write its texts, if that is not done yet: parts
 * of steps (trli_step_run.gpu), slabs and groups of reductions. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_write_texts(trli_model *model);
/* What GPUs compute of reductions that are made together. */
trli_emit_request trli_gpu_group(const trli_program *program, const trli_reduction_group *group);

/* What GPUs have of a CUDA form of an opaque expression. */
typedef struct trli_gpu_form {
    const trli_opaque *called; /* NULL: no program that runs more than once calls it, or it has no such form */
    trli_gpu_kernel *kernel;   /* of that; NULL: not asked for, and */
    const char *why;           /* why */
    double *number;            /* that the form is given */
} trli_gpu_form;

typedef struct trli_gpu_plugin {
    trli_gpu_form form[TRLI_FORMS];
} trli_gpu_plugin;

/* Before numbers of its own, a form is given the times t, t_step and dt, and the stage; that of a modifier then axis
 * and side, and along the axis the first point inside of each input, and of the target. */
enum { TRLI_GPU_PLUGIN_TIMES = 3, TRLI_GPU_PLUGIN_SCALARS, TRLI_GPU_SIDE_SCALARS = 2 };
int trli_gpu_form_given(const trli_opaque *called);

/* A CUDA form that a step calls, of the step's own opaque expression, or of a modifier that sets a slab of it. */
typedef struct trli_form_call {
    const trli_opaque *called;
    trli_form form;
    const trli_slab *slab; /* NULL: the step's own */
} trli_form_call;

/* The n-th of them, from 0; false: there is none. */
bool trli_gpu_form_call(const trli_program *program, const trli_step *step, int n, trli_form_call *call);
/* Ask for the CUDA forms of opaque expressions that programs call. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_request_plugins(trli_model *model);
/* The text of the kernel of a CUDA form that an opaque expression has; trli_free gives it back. NULL: it cannot have
 * one, and why. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_plugin_text(const trli_model *model, const trli_opaque *called, trli_form form,
                                           char **text, const char **why);
/* Once kernels are compiled: warn of forms that could not be; PLUGIN if one is not to be done by the host. */
TRL_NODISCARD trl_err trli_gpu_check_plugins(const trli_model *model);
void trli_gpu_plugins_destroy(const trli_model *model);
/* Which form of evaluate of an opaque expression runs where, in words; NULL: it has only one. */
const char *trli_gpu_plugin_form(const trli_model *model, const trli_opaque *called);
/* Scalars of the program that a form is given. */
void trli_gpu_plugin_times(const trli_step *step, int scalar[TRLI_GPU_PLUGIN_TIMES]);

/* Whether GPUs may do the task of a step's kernel, slabs included, or of some slabs. */
bool trli_gpu_does_kernel(const trli_step_task *task);
bool trli_gpu_does_plugin(const trli_step_task *task);
bool trli_gpu_does_slabs(const trli_step_task *task);
bool trli_gpu_does_stable_dt(const trli_step_task *task);
bool trli_gpu_does_reduction(const trli_step_task *task);
bool trli_gpu_does_halos(const trli_model *model);
/* Whether GPUs may do all kernels that read points at other sides in place of ghosts of an exchange. */
bool trli_gpu_goes_round(const trli_program *program, const trli_exchanged *exchanged);
trl_err trli_task_kernel_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_plugin_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_slabs_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_stable_dt_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_reduce_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_halo_gpu(void *data, const trl_task_args *args, bool *done);
/* Agree on how messages between ranks go, once kernels are there and before tasks are built: the most that each rank
 * and the memory of all GPUs allow. local: of this rank so far. Collective: yes. Fails with INPUT, MEMORY, and as any
 * rank so far. */
TRL_NODISCARD trl_err trli_gpu_choose_messages(trli_model *model, trl_err local);
/* Whether this rank's GPU packs and unpacks messages. */
bool trli_gpu_does_messages(const trli_model *model);
trl_err trli_task_pack_gpu(void *data, const trl_task_args *args, bool *done);
trl_err trli_task_unpack_gpu(void *data, const trl_task_args *args, bool *done);
/* A call without its arrays and scalars, for which there is room in the scratch of the call's worker (trli_gpu_room: of
 * what a kernel is given). Then what a kernel has beside arrays: scalars that it reads, and the numbers that are its
 * own. */
trli_gpu_call trli_gpu_begin_call(const trl_task_args *args, const trli_step_task *task, const trl_box *box,
                                  int narrays);
void trli_gpu_take_scalars(const trl_task_args *args, const trli_code_use *use, const trli_reads *reads,
                           trli_gpu_call *call);
size_t trli_gpu_room(int narrays, int nscalars);
/* What is launched for a part of a step's kernel; its arrays and scalars are in the scratch of the call's worker. */
void trli_gpu_call_part(const trl_task_args *args, const trli_step_task *task, int part, trli_gpu_call *call);
/* The same for any part of it, in the caller's room: inputs, then outputs; scalars are not set. */
void trli_gpu_call_in(const trl_task_args *args, const trli_step_task *task, const trli_step_part *part,
                      trl_kernel_array *array, double *scalar, trli_gpu_call *call);
/* Whether the arrays of two fields have the same strides, on all patches of this rank. */
bool trli_gpu_lie_alike(const trli_model *model, int a, int b);
/* What GPUs are to compute of a part that computes its ghosts; its layers and shapes are the caller's. Fails with
 * MEMORY. */
TRL_NODISCARD trl_err trli_gpu_request_of_part(const trli_program *program, const trli_step *step,
                                               const trli_step_part *part, trli_emit_request *request);
/* Scratch of a call, of a step's, of any group's, or of halos, once kernels are asked for. */
size_t trli_gpu_scratch(const trli_program *program, const trli_step *step);
size_t trli_gpu_reductions_scratch(const trli_reductions *reductions);
size_t trli_gpu_halos_scratch(const trli_model *model);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "told_sums_impl.h"

#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"

/* Word by word. Its number: of words from a patch's shares to the next one's. */
static const char text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<1> arrays,\n"
    "           const __grid_constant__ trl_kernel_scalars<1> scalars)\n"
    "{\n"
    "    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    const long long j = (long long)blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    const long long at = j * (long long)scalars.value[0] + i;\n"
    "    if (i >= call.hi[0] || j >= call.hi[1]) return;\n"
    "    ((long long *)arrays.array[0].at)[at] = ((long long *)call.share)[at];\n"
    "}\n";

enum { WORDS = sizeof(trli_partial) / sizeof(int64_t), NUMBERS = 1 };

/* ---- before programs are frozen ---- */

void trli_program_tells(trli_program *program)
{
    program->tells = true;
}

trl_err trli_told_sums_request(const trli_model *model)
{
    bool any = false;
    for (int i = 0; i < model->nprograms; ++i) any |= model->program[i]->tells;
    if (!any) return TRL_OK;
    return trli_gpu_kernels_add(model->run->gpu_kernels, text, 1, NUMBERS, &model->run->gpu_tell);
}

/* What is not a sum, or follows from sums. */
static bool has_others(const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    bool any = false;
    for (int r = 0; r < all->n; ++r) any |= all->reduction[r].merge != TRLI_MERGE_SUM;
    for (int i = 0; i < program->nsteps; ++i)
        any |= program->plan->step[i].live && program->step[i].kind == TRLI_STEP_SCALAR;
    return any;
}

trl_err trli_told_sums_may_come(const trli_program *program, bool *may)
{
    const struct trli_gpu_kernel *kernel = program->model->run->gpu_tell;
    trl_err err = TRL_OK;
    *may = program->tells && kernel && kernel->function && trl_context_ranks(program->model->ctx) == 1;
    if (!*may) return TRL_OK;
    TRL_TRY(trli_reductions_come_last(program, may));
    *may &= program->run->reductions.nbatches == 1 && !has_others(program);
done:
    return err;
}

size_t trli_told_sums_scratch(void)
{
    return sizeof(trl_kernel_array) + NUMBERS * sizeof(double);
}

size_t trli_told_sums_bytes(const trli_model *model)
{
    const size_t shares = (size_t)model->run->nreductions * (size_t)model->layout->nlocal;
    return model->run->gpu_tell ? shares * sizeof(trli_partial) : 0;
}

/* ---- runs ---- */

trl_err trli_task_tell_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    const trli_model *model = frame->model;
    const trli_reductions *all = &t->program->run->reductions;
    trl_kernel_array *to = frame->scratch[args->worker];
    double *number = (double *)(to + 1);
    if (trli_is_done_at_once(frame, t->program, all->batch)) return TRL_OK;
    trli_gpu_call call = {.label = t->step->label,
                          .launch = {.hi = {(long long)WORDS * all->n, model->layout->nlocal, 1},
                                     .share = (trl_kernel_partial *)(frame->share[args->space] + all->first)},
                          .array = to,
                          .scalar = number};
    (void)done;
    *to = (trl_kernel_array){.at = (double *)(frame->told[args->space] + all->first)};
    number[0] = (double)WORDS * model->run->nreductions;
    return trli_gpu_launch(model->run->gpu_kernels, model->run->gpu_tell, &call, args->space, args->stream);
}

/* The memory space of the GPU that told them last; 0: the host has them. */
static int teller_of(const trli_frame *frame, const trli_program *program)
{
    const int share = program->run->told_share;
    const uint32_t spaces = share >= 0 ? frame->share_valid[share] & ~1u : 0;
    return spaces ? __builtin_ctz(spaces) : 0;
}

bool trli_told_sums_come(const trli_frame *frame, const trli_program *program)
{
    const int space = teller_of(frame, program);
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    if (!program->tells) return false;
    if (space > 0)
        frame->batch[program->run->reductions.first_batch].told_run =
            trli_device_last_run(trli_device_of(devices, space));
    return space > 0;
}

trl_err trli_told_sums_take(const trli_frame *frame, const trli_program *program)
{
    const int space = teller_of(frame, program);
    const trli_reductions *all = &program->run->reductions;
    trli_batch_run *message = &frame->batch[all->first_batch];
    trl_err err;
    TRL_TRY(
        trli_device_await(trli_device_of(trl_workers_devices(frame->model->run->workers), space), message->told_run));
    trli_reductions_merge(program, all->batch, frame, frame->told[space], message);
    trli_reductions_set(program, all->batch, frame, message);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "late_scalars_impl.h"

#include <math.h>

#include "compute_impl.h"
#include "gpu_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"

/* Numbers that the kernel is given: these; by stage its time, in steps; by result its place among a patch's shares; by
 * rate, which result it is, or -1, and a constant, twice, and whether it is bounded. */
enum { PATCHES, SHARES, RESULTS, GOES_ON, FROM, BEFORE, CFL, MOST, HAS_END, END, STAGES, KICKS, RATES, NUMBERS };

/* By one thread, with the operations of the host: solvers/bound.c, limit.c, steps.c and trli_set_dt. What the host is
 * told of a result is kept behind the scalars. */
const char trli_gpu_late_text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<1> arrays,\n"
    "           const __grid_constant__ trl_kernel_scalars<128> scalars)\n"
    "{\n"
    "    const double *const number = scalars.value, *const c = number + 13;\n"
    "    const int patches = (int)number[0], shares = (int)number[1], results = (int)number[2];\n"
    "    const int stages = (int)number[10], kicks = (int)number[11], rates = (int)number[12];\n"
    "    const double *const place = c + stages, *const given = place + results;\n"
    "    double *const late = (double *)call.late, *const found = late + 1 + stages + kicks;\n"
    "    double *const told = arrays.array[0].at;\n"
    "    const double from = number[3] != 0 ? late[1] : number[4], before = number[3] != 0 ? late[0] : number[5];\n"
    "    double rate = 0;\n"
    "    for (int r = 0; r < results; ++r) {\n"
    "        const trl_kernel_partial *share = call.share + (int)place[r];\n"
    "        double most = share->extreme;\n"
    "        long long invalid = share->invalid;\n"
    "        for (int p = 1; p < patches; ++p) {\n"
    "            share += shares;\n"
    "            if (share->extreme > most) most = share->extreme;\n"
    "            invalid |= share->invalid;\n"
    "        }\n"
    "        found[r] = invalid ? TRL_FN_NAN : most + 0.0;\n"
    "        told[2 + r] = found[r];\n"
    "    }\n"
    "    for (int i = 0; i < rates; ++i) {\n"
    "        const double *const of = given + 5 * i;\n"
    "        const double half = of[2] < 0 ? of[3] : found[(int)of[2]];\n"
    "        double one = (of[0] < 0 ? of[1] : found[(int)of[0]]) + half / 2;\n"
    "        if (of[4] != 0 && one - one != 0 && one == one) one = TRL_FN_INF;\n"
    "        if (!(one <= rate) && rate == rate) rate = one;\n"
    "    }\n"
    "    double dt = number[6] / rate;\n"
    "    if (number[7] > 0 && !(dt <= number[7]) && rate == rate) dt = number[7];\n"
    "    double time = from + dt;\n"
    "    if (number[8] != 0 && number[9] - from <= dt * (1 + 1e-6)) {\n"
    "        dt = number[9] - from;\n"
    "        time = number[9];\n"
    "    }\n"
    "    for (int s = 1; s < stages; ++s) late[1 + s] = c[s] == 1 ? time : from + c[s] * dt;\n"
    "    if (kicks) late[1 + stages] = (before + dt) / 2;\n"
    "    told[0] = late[0] = dt;\n"
    "    told[1] = late[1] = time;\n"
    "}\n";
_Static_assert(NUMBERS == 13 && TRLI_LATE_NUMBERS == 128, "the text has these numbers");

/* ---- whether there are any ---- */

static const trli_reductions *results_of(const trli_late_scalars *late)
{
    return &late->finder->run->reductions;
}

/* Which result a scalar is, or -1. */
static int result_of(const trli_late_scalars *late, int scalar)
{
    const trli_reductions *all = results_of(late);
    for (int r = 0; r < all->n; ++r)
        if (all->reduction[r].step->scalar == scalar) return r;
    return -1;
}

/* GPUs find the largest values at once, on all patches, and the host computes nothing from them meanwhile. */
static bool is_found(const trli_late_scalars *late)
{
    const trli_reductions *all = results_of(late);
    const int words = (int)(sizeof((trl_kernel_partial *)0)->word / sizeof(double));
    bool found = all->nbatches == 1 && late->n + all->n <= words &&
                 NUMBERS + late->stages + all->n + 5 * late->nrates <= TRLI_LATE_NUMBERS;
    for (int g = 0; g < all->ngroups; ++g) found &= all->group[g].kernel && all->group[g].n <= TRLI_GPU_SHARES;
    for (int r = 0; r < all->n; ++r) found &= all->reduction[r].merge == TRLI_MERGE_MAX;
    for (int i = 0; i < 2 * late->nrates; ++i) {
        const int scalar = late->rate[i / 2].scalar[i % 2];
        found &= scalar < 0 || result_of(late, scalar) >= 0;
    }
    for (int i = 0; i < late->finder->nsteps; ++i)
        found &= !late->finder->plan->step[i].live || late->finder->step[i].kind != TRLI_STEP_SCALAR;
    return found;
}

static bool reads_late(const trli_late_scalars *late, const trli_reads *reads)
{
    for (int i = 0; i < reads->nscalars; ++i)
        if (trli_late_scalars_place(late, reads->scalar[i]) >= 0) return true;
    return false;
}

/* Only kernels read them: plugins are told dt by the host. */
static bool is_read_by_kernels(const trli_late_scalars *late)
{
    const trli_program *program = late->reader;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *p = &program->plan->step[i];
        if (!p->live) continue;
        if (s->kind != TRLI_STEP_KERNEL && reads_late(late, &p->reads)) return false;
        if (trli_step_plugin(s)) return false;
        for (int k = 0; k < p->nslabs; ++k)
            if (p->slab[k].kind == TRLI_SLAB_MODIFIER) return false;
    }
    return true;
}

void trli_late_scalars_check(trli_model *model)
{
    const trli_late_scalars *late = model->late;
    if (late && !(is_found(late) && is_read_by_kernels(late))) model->late = NULL;
}

trl_err trli_late_scalars_request(const trli_model *model)
{
    return model->late ? trli_gpu_kernels_add(model->run->gpu_kernels, trli_gpu_late_text, 1, TRLI_LATE_NUMBERS,
                                              &model->late->kernel)
                       : TRL_OK;
}

bool trli_late_scalars_found_by(const trli_program *program)
{
    const trli_late_scalars *late = program->model->late;
    return late && late->finder == program && late->kernel && late->kernel->function;
}

size_t trli_late_scalars_scratch(const trli_program *program)
{
    return trli_late_scalars_found_by(program) ? sizeof(trl_kernel_array) + TRLI_LATE_NUMBERS * sizeof(double) : 0;
}

const trli_late_scalars *trli_late_scalars_read_by(const trli_program *program)
{
    const trli_late_scalars *late = program->model->late;
    return late && late->reader == program ? late : NULL;
}

int trli_late_scalars_place(const trli_late_scalars *late, int scalar)
{
    return late ? trli_emit_late(late->n, late->scalar, scalar) : -1;
}

/* ---- runs ---- */

static double *words_of(const trli_frame *frame, int space)
{
    return (double *)((trl_kernel_partial *)frame->share[space] + frame->model->late->share)->word;
}

const double *trli_frame_late(const trli_frame *frame, int space)
{
    return frame->late.read ? words_of(frame, space) : NULL;
}

size_t trli_late_scalars_told(const trli_model *model)
{
    return (2 + (size_t)results_of(model->late)->n) * sizeof(double);
}

double trli_frame_given(const trli_frame *frame, int scalar)
{
    return frame->late.read && trli_late_scalars_place(frame->model->late, scalar) >= 0 ? 0 : frame->scalar[scalar];
}

void trli_frame_late_state(const trli_frame *frame, double state[TRLI_LATE_STATE])
{
    const bool given = frame->model->late && !frame->late.goes_on;
    state[0] = frame->late.read;
    state[1] = frame->late.goes_on;
    state[2] = given ? frame->scalar[TRLI_SCALAR_STEP_TIME] : 0;
    state[3] = given ? frame->late.before : 0;
}

static void set_numbers(const trli_frame *frame, double *number)
{
    const trli_model *model = frame->model;
    const trli_late_scalars *late = model->late;
    const trli_reductions *all = results_of(late);
    const bool goes_on = frame->late.goes_on;
    for (int i = 0; i < TRLI_LATE_NUMBERS; ++i) number[i] = 0;
    number[PATCHES] = model->layout->nlocal;
    number[SHARES] = model->run->nreductions;
    number[RESULTS] = all->n;
    number[GOES_ON] = goes_on;
    number[FROM] = goes_on ? 0 : frame->scalar[TRLI_SCALAR_STEP_TIME];
    number[BEFORE] = goes_on ? 0 : frame->late.before;
    number[CFL] = late->cfl;
    number[MOST] = late->most;
    number[HAS_END] = late->has_end;
    number[END] = late->end;
    number[STAGES] = late->stages;
    number[KICKS] = late->kicks;
    number[RATES] = late->nrates;
    double *at = number + NUMBERS;
    for (int s = 0; s < late->stages; ++s) *at++ = late->c[s];
    for (int r = 0; r < all->n; ++r) *at++ = all->first + r;
    for (int i = 0; i < late->nrates; ++i) {
        for (int k = 0; k < 2; ++k) {
            *at++ = late->rate[i].scalar[k] < 0 ? -1 : result_of(late, late->rate[i].scalar[k]);
            *at++ = late->rate[i].constant[k];
        }
        *at++ = late->rate[i].bounded;
    }
}

trl_err trli_task_late_scalars_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    trl_kernel_array *told = frame->scratch[args->worker];
    double *number = (double *)(told + 1);
    trli_gpu_call call = {.label = t->step->label,
                          .launch = {.hi = {1, 1, 1},
                                     .share = (trl_kernel_partial *)frame->share[args->space],
                                     .late = words_of(frame, args->space)},
                          .array = told,
                          .scalar = number};
    (void)done;
    *told = (trl_kernel_array){.at = frame->late.told[args->space]};
    set_numbers(frame, number);
    return trli_gpu_launch(frame->model->run->gpu_kernels, frame->model->late->kernel, &call, args->space,
                           args->stream);
}

bool trli_frame_late_find(trli_frame *frame)
{
    const uint32_t spaces = frame->model->late ? frame->share_valid[frame->model->late->share] : 0;
    frame->late.space = spaces > 0 ? __builtin_ctz(spaces) : 0;
    return frame->late.space > 0;
}

void trli_frame_late_begin(trli_frame *frame, double time, double before)
{
    const uint32_t on_gpus = frame->share_valid[frame->model->late->share] & ~1u;
    frame->late.goes_on = on_gpus && frame->late.time == time && frame->late.dt == before;
    frame->late.before = before;
}

void trli_frame_late_take(trli_frame *frame)
{
    const trli_reductions *all = results_of(frame->model->late);
    const volatile double *told = frame->late.told[frame->late.space];
    frame->late.dt = told[0];
    frame->late.time = told[1];
    for (int r = 0; r < all->n; ++r) {
        trli_partial *part = frame->reduction[all->first + r].part, total = {.extreme = told[2 + r]};
        double pair[TRLI_PARTIAL_PAIR];
        total.invalid = isnan(total.extreme);
        for (int w = 0; w < frame->model->run->lanes; ++w) {
            trli_partial_merge(&total, TRLI_MERGE_MAX, &part[w]);
            trli_partial_clear(&part[w], TRLI_MERGE_MAX);
        }
        trli_partial_pack_extreme(&total, TRLI_MERGE_MAX, pair);
        frame->scalar[all->reduction[r].step->scalar] = trli_partial_unpack_extreme(TRLI_MERGE_MAX, pair);
    }
}

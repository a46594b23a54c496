/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "late_scalars_impl.h"

#include <math.h>

#include "compute_impl.h"
#include "found_scalars_impl.h"
#include "gpu_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"

/* Numbers that the kernel is given: these; by stage its time, in steps. FIRST: the place of the first result among a
 * patch's shares; TOLD: of the first value that the host is told. */
enum { PATCHES, SHARES, FIRST, GOES_ON, FROM, BEFORE, CFL, MOST, HAS_END, END, STAGES, KICKS, TOLD, NUMBERS };

/* By one block, of which one thread finds dt, with the operations of the host: solvers/limit.c, steps.c and
 * trli_set_dt. Behind the text of the rate, and result[], which result each value is. What the host is told of a result
 * is kept behind the scalars. */
static const char kernel_text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<1> arrays,\n"
    "           const __grid_constant__ trl_kernel_scalars<64> scalars)\n"
    "{\n"
    "    __shared__ double value[TRL_LATE::VALUES + 1];\n"
    "    const double *const number = scalars.value, *const c = number + 13;\n"
    "    const int patches = (int)number[0], shares = (int)number[1], first = (int)number[2];\n"
    "    const int stages = (int)number[10], kicks = (int)number[11];\n"
    "    double *const late = (double *)call.late, *const told = arrays.array[0].at + (int)number[12];\n"
    "    for (int i = (int)threadIdx.x; i < TRL_LATE::VALUES; i += (int)blockDim.x) {\n"
    "        const int r = TRL_LATE::result[i];\n"
    "        const trl_kernel_partial *share = call.share + first + r;\n"
    "        double most = share->extreme;\n"
    "        long long invalid = share->invalid;\n"
    "        for (int p = 1; p < patches; ++p) {\n"
    "            share += shares;\n"
    "            if (share->extreme > most) most = share->extreme;\n"
    "            invalid |= share->invalid;\n"
    "        }\n"
    "        told[2 + r] = value[i] = invalid ? TRL_FN_NAN : most + 0.0;\n"
    "    }\n"
    "    __syncthreads();\n"
    "    const double rate = TRL_LATE::rate(value);\n"
    "    if (threadIdx.x != 0) return;\n"
    "    const double from = number[3] != 0 ? late[1] : number[4], before = number[3] != 0 ? late[0] : number[5];\n"
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
_Static_assert(NUMBERS == 13 && TRLI_LATE_NUMBERS == 64, "the text has these numbers");

/* ---- whether there are any ---- */

static const trli_reductions *results_of(const trli_late_scalars *late)
{
    return &late->finder->run->reductions;
}

/* Whether GPUs find the scalar that a step makes. */
static bool makes_found(const trli_program *program, const trli_step *s)
{
    const bool *found = program->model->run->found;
    return found && (s->kind == TRLI_STEP_REDUCE || s->kind == TRLI_STEP_SCALAR) && found[s->scalar];
}

/* The only batch of the finder whose results kernels do not read; NULL: there are others. */
static const trli_reduction_batch *batch_of(const trli_late_scalars *late)
{
    const trli_reductions *all = results_of(late);
    const trli_reduction_batch *only = NULL;
    int n = 0;
    for (int b = 0; b < all->nbatches; ++b) {
        if (makes_found(late->finder, all->batch[b].step)) continue;
        only = &all->batch[b];
        ++n;
    }
    return n == 1 ? only : NULL;
}

/* Which result of that a scalar is, or -1. */
static int result_of(const trli_late_scalars *late, int scalar)
{
    const trli_reductions *all = results_of(late);
    const trli_reduction_batch *batch = batch_of(late);
    for (int r = batch->first; r < batch->first + batch->n; ++r)
        if (all->reduction[r].step->scalar == scalar) return r;
    return -1;
}

/* GPUs find the largest values at once, on all patches, and the host computes nothing from them meanwhile. */
static bool is_found(const trli_late_scalars *late)
{
    const trli_reductions *all = results_of(late);
    const trli_reduction_batch *batch = batch_of(late);
    if (!batch) return false;
    const int words = (int)(sizeof((trl_kernel_partial *)0)->word / sizeof(double));
    bool found = late->n <= words && NUMBERS + late->stages <= TRLI_LATE_NUMBERS && late->nvalues == batch->n;
    for (int g = 0; g < all->ngroups; ++g) found &= all->group[g].kernel && all->group[g].n <= TRLI_GPU_SHARES;
    for (int r = batch->first; r < batch->first + batch->n; ++r) found &= all->reduction[r].merge == TRLI_MERGE_MAX;
    for (int i = 0; i < late->nvalues; ++i) found &= result_of(late, late->value[i]) >= 0;
    for (int i = 0; i < late->finder->nsteps; ++i)
        found &= !late->finder->plan->step[i].live || late->finder->step[i].kind != TRLI_STEP_SCALAR ||
                 makes_found(late->finder, &late->finder->step[i]);
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
        const bool kernel = s->kind == TRLI_STEP_KERNEL || makes_found(program, s);
        if (!kernel && reads_late(late, &p->reads)) return false;
        if (trli_step_plugin(s)) return false;
        for (int k = 0; k < p->nslabs; ++k)
            if (p->slab[k].kind == TRLI_SLAB_MODIFIER) return false;
    }
    return true;
}

/* Whether one of them is another number in each step, which the host gives. */
static bool changes(const trli_reads *reads, int other)
{
    for (int i = 0; i < reads->nscalars; ++i) {
        const int scalar = reads->scalar[i];
        if (scalar == TRLI_SCALAR_STEP_TIME || scalar == TRLI_SCALAR_STEP || scalar == other) return true;
    }
    return false;
}

static bool follow_alone(const trli_program *program, int other)
{
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step_plan *p = &program->plan->step[i];
        if (!p->live) continue;
        const bool host = program->step[i].kind == TRLI_STEP_SCALAR && !makes_found(program, &program->step[i]);
        if (host || changes(&p->reads, other)) return false;
        for (int k = 0; k < p->nslabs; ++k) { /* the host gives modifiers the time */
            if (p->slab[k].kind == TRLI_SLAB_MODIFIER) return false;
            if (p->slab[k].kind == TRLI_SLAB_KERNEL && changes(&p->slab[k].reads, other)) return false;
        }
    }
    return true;
}

bool trli_late_scalars_suffice(const trli_late_scalars *late, int other)
{
    return follow_alone(late->finder, other) && follow_alone(late->reader, other);
}

void trli_late_scalars_check(trli_model *model)
{
    const trli_late_scalars *late = model->late;
    if (late && !(is_found(late) && is_read_by_kernels(late))) model->late = NULL;
}

void trli_late_scalars_write(const trli_late_scalars *late, FILE *out)
{
    (void)fprintf(out,
                  "#define TRL_KERNEL_HAS_BARRIERS\n#undef TRL_LATE\n"
                  "#define TRL_LATE TRL_OWN_OF(trl_late, trl_kernel)\n"
                  "namespace TRL_LATE {\nenum { VALUES = %d };\nstatic __device__ const int result[] = {",
                  late->nvalues);
    for (int i = 0; i < late->nvalues; ++i) (void)fprintf(out, "%d,\n", result_of(late, late->value[i]));
    (void)fprintf(out, "};\n}\n%s%s", late->rate, kernel_text);
}

trl_err trli_late_scalars_request(const trli_model *model)
{
    trli_memstream text = {0};
    trl_err err = TRL_OK;
    if (!model->late) return TRL_OK;
    if (!trli_memstream_open(model->ctx, &text)) return trli_no_memory(model->ctx, NULL, "for the text of a kernel");
    trli_late_scalars_write(model->late, text.out);
    if (!trli_memstream_close(&text)) return trli_no_memory(model->ctx, NULL, "for the text of a kernel");
    err = trli_gpu_kernels_add(model->run->gpu_kernels, text.text, 1, TRLI_LATE_NUMBERS, &model->late->kernel);
    trli_memstream_discard(&text);
    return err;
}

bool trli_late_scalars_found_in(const trli_program *program, const trli_reduction_batch *batch)
{
    return trli_late_scalars_found_by(program) && batch_of(program->model->late) == batch;
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

/* Values of a step. */
static int told_values(const trli_model *model)
{
    return 2 + results_of(model->late)->n;
}

size_t trli_late_scalars_told(const trli_model *model)
{
    return TRLI_LATE_STEPS * (size_t)told_values(model) * sizeof(double);
}

double trli_frame_given(const trli_frame *frame, int scalar)
{
    const bool late = frame->late.read && trli_late_scalars_place(frame->model->late, scalar) >= 0;
    return late || trli_is_found(frame->model, scalar) ? 0 : frame->scalar[scalar];
}

void trli_frame_late_state(const trli_frame *frame, double state[TRLI_LATE_STATE])
{
    const bool given = frame->model->late && !frame->late.goes_on;
    state[0] = frame->late.read;
    state[1] = frame->late.goes_on;
    state[2] = given ? frame->scalar[TRLI_SCALAR_STEP_TIME] : 0;
    state[3] = given ? frame->late.before : 0;
    state[4] = frame->late.step;
}

static void set_numbers(const trli_frame *frame, double *number)
{
    const trli_model *model = frame->model;
    const trli_late_scalars *late = model->late;
    const bool goes_on = frame->late.goes_on;
    for (int i = 0; i < TRLI_LATE_NUMBERS; ++i) number[i] = 0;
    number[PATCHES] = model->layout->nlocal;
    number[SHARES] = model->run->nreductions;
    number[FIRST] = results_of(late)->first;
    number[GOES_ON] = goes_on;
    number[FROM] = goes_on ? 0 : frame->scalar[TRLI_SCALAR_STEP_TIME];
    number[BEFORE] = goes_on ? 0 : frame->late.before;
    number[CFL] = late->cfl;
    number[MOST] = late->most;
    number[HAS_END] = late->has_end;
    number[END] = late->end;
    number[STAGES] = late->stages;
    number[KICKS] = late->kicks;
    number[TOLD] = frame->late.step * told_values(model);
    for (int i = 0; i < late->stages; ++i) number[NUMBERS + i] = late->c[i];
}

trl_err trli_task_late_scalars_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    trl_kernel_array *told = frame->scratch[args->worker];
    double *number = (double *)(told + 1);
    const trli_gpu_layout layout = {.blocks = {1, 1, 1}, .threads = TRLI_LATE_THREADS};
    trli_gpu_call call = {.label = t->step->label,
                          .launch = {.hi = {1, 1, 1},
                                     .share = (trl_kernel_partial *)frame->share[args->space],
                                     .late = words_of(frame, args->space)},
                          .array = told,
                          .scalar = number,
                          .shape = TRLI_GPU_GIVEN,
                          .layout = &layout};
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
    frame->late.step = 0;
}

bool trli_frame_late_go_on(trli_frame *frame, int step)
{
    frame->late.goes_on = (frame->share_valid[frame->model->late->share] & ~1u) != 0;
    frame->late.step = step;
    return frame->late.goes_on;
}

void trli_frame_late_take(trli_frame *frame)
{
    const trli_reductions *all = results_of(frame->model->late);
    const trli_reduction_batch *batch = batch_of(frame->model->late);
    const volatile double *told =
        (const double *)frame->late.told[frame->late.space] + frame->late.step * told_values(frame->model);
    frame->late.dt = told[0];
    frame->late.time = told[1];
    for (int r = batch->first; r < batch->first + batch->n; ++r) {
        trli_partial *part = frame->reduction[all->first + r].part, total = {.extreme = told[2 + r]};
        double pair[TRLI_PARTIAL_PAIR];
        total.invalid = isnan(total.extreme);
        trli_parts_take(part, frame->model->run->lanes, TRLI_MERGE_MAX, &total);
        trli_partial_pack_extreme(&total, TRLI_MERGE_MAX, pair);
        frame->scalar[all->reduction[r].step->scalar] = trli_partial_unpack_extreme(TRLI_MERGE_MAX, pair);
    }
}

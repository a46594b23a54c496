/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "found_scalars_impl.h"

#include "context_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"

/* Numbers that the kernel is given: these; by result how parts are merged, which scalar it is, and the only patch that
 * has a share of it, or ALL_PATCHES. */
enum { PATCHES, SHARES, RESULTS, EACH = 3, NUMBERS = 64, RESULTS_MOST = (NUMBERS - RESULTS) / EACH };
enum { ALL_PATCHES = -1, SOME_PATCHES = -2 };

/* By a block for each result, with the operations of the host: execute_comm.c. */
static const char text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<2> arrays,\n"
    "           const __grid_constant__ trl_kernel_scalars<64> scalars)\n"
    "{\n"
    "    enum { WORDS = sizeof(((trl_kernel_partial *)0)->word) / sizeof(long long), ALL = WORDS + 3 };\n"
    "    __shared__ long long word[ALL], first, end;\n" /* words that are not 0 */
    "    const double *const number = scalars.value;\n"
    "    const int shares = (int)number[1], r = (int)blockIdx.x, merge = (int)number[2 + 3 * r];\n"
    "    const int scalar = (int)number[3 + 3 * r], only = (int)number[4 + 3 * r];\n"
    "    const int patches = only < 0 ? (int)number[0] : 1;\n"
    "    const trl_kernel_partial *const share = call.share + (long long)(only < 0 ? 0 : only) * shares + r;\n"
    "    double value;\n"
    "    if (threadIdx.x == 0) first = WORDS, end = 0;\n"
    "    __syncthreads();\n"
    "    for (int i = (int)threadIdx.x; i < ALL; i += (int)blockDim.x) {\n"
    "        long long sum = 0;\n"
    "        for (int p = 0; p < patches; ++p) sum += share[(long long)p * shares].word[i];\n"
    "        word[i] = sum;\n"
    "        if (i >= WORDS || sum == 0) continue;\n"
    "        atomicMin(&first, (long long)i);\n"
    "        atomicMax(&end, (long long)i + 1);\n"
    "    }\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x != 0) return;\n"
    "    if (merge == TRL_FOUND_SUM)\n"
    "        value = __longlong_as_double((long long)trl_sum_bits(word, (int)first, (int)end, WORDS, word + WORDS));\n"
    "    else {\n"
    "        double extreme = share->extreme;\n"
    "        long long invalid = share->invalid;\n"
    "        for (int p = 1; p < patches; ++p) {\n"
    "            const double other = share[(long long)p * shares].extreme;\n"
    "            if (merge == TRL_FOUND_MIN ? other < extreme : other > extreme) extreme = other;\n"
    "            invalid |= share[(long long)p * shares].invalid;\n"
    "        }\n"
    "        value = invalid ? TRL_FN_NAN : extreme + 0.0;\n"
    "    }\n"
    "    arrays.array[0].at[scalar] = arrays.array[1].at[scalar] = value;\n"
    "}\n";
enum { THREADS = 96 };

/* ---- which ---- */

/* Of all scalars: whether programs make one, GPUs may, and kernels read it. */
typedef struct choice {
    const trli_model *model;
    bool *made, *able, *read;
} choice;

static bool is_live(const trli_program *program, int step)
{
    return program->plan->step[step].live;
}

static void note_reads(const choice *c, const trli_reads *reads)
{
    for (int i = 0; i < reads->nscalars; ++i) c->read[reads->scalar[i]] = true;
}

/* Of a program: what kernels read. */
static void find_read(const choice *c, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step_plan *p = &program->plan->step[i];
        if (!p->live) continue;
        if (program->step[i].kind == TRLI_STEP_KERNEL) note_reads(c, &p->reads);
        for (int k = 0; k < p->nslabs; ++k)
            if (p->slab[k].kind == TRLI_SLAB_KERNEL) note_reads(c, &p->slab[k].reads);
    }
    for (int g = 0; g < all->ngroups; ++g) note_reads(c, &all->group[g].reads);
}

/* The patches that have shares of a reduction by a formula: all, one, or others. */
static int patches_of(const trli_program *program, const trli_step *s)
{
    const int np = program->model->layout->nlocal;
    trl_box box;
    int n = 0, last = SOME_PATCHES;
    for (int p = 0; p < np; ++p) {
        if (!trli_reduction_box(program, s, p, &box)) continue;
        last = p;
        ++n;
    }
    return n == np ? ALL_PATCHES : n == 1 ? last : SOME_PATCHES;
}

/* Whether GPUs may bring a batch together: all of its results are such. */
static bool may_find(const choice *c, const trli_program *program, const trli_reduction_batch *batch)
{
    const trli_reductions *all = &program->run->reductions;
    bool may = !program->once && batch->n <= RESULTS_MOST;
    for (int r = batch->first; r < batch->first + batch->n; ++r) {
        const trli_step *s = all->reduction[r].step;
        may &= s->kind == TRLI_STEP_REDUCE && c->able[s->scalar] && all->reduction[r].patches != SOME_PATCHES;
    }
    for (int g = batch->first_group; g < batch->first_group + batch->ngroups; ++g)
        may &= all->group[g].kernel && all->group[g].n <= TRLI_GPU_SHARES;
    return may;
}

static bool set(bool *of, bool value)
{
    const bool changes = *of != value;
    *of = value;
    return changes;
}

/* What is not able makes others so. *changes: something was. */
static void find_unable(const choice *c, const trli_program *program, bool *changes)
{
    const trli_reductions *all = &program->run->reductions;
    for (int b = 0; b < all->nbatches; ++b) {
        const trli_reduction_batch *batch = &all->batch[b];
        if (may_find(c, program, batch)) continue;
        for (int r = batch->first; r < batch->first + batch->n; ++r)
            *changes |= set(&c->able[all->reduction[r].step->scalar], false);
    }
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_reads *reads = &program->plan->step[i].reads;
        if (s->kind != TRLI_STEP_SCALAR || !is_live(program, i)) continue;
        bool able = !program->once;
        for (int k = 0; k < reads->nscalars; ++k) able &= !c->made[reads->scalar[k]] || c->able[reads->scalar[k]];
        if (!able) *changes |= set(&c->able[s->scalar], false);
    }
}

/* Who is read wants what it follows from, and what comes with it. */
static void find_wanted(const choice *c, const trli_program *program, bool *changes)
{
    const trli_reductions *all = &program->run->reductions;
    for (int b = 0; b < all->nbatches; ++b) {
        bool wanted = false;
        for (int r = all->batch[b].first; r < all->batch[b].first + all->batch[b].n; ++r)
            wanted |= c->read[all->reduction[r].step->scalar];
        for (int r = all->batch[b].first; wanted && r < all->batch[b].first + all->batch[b].n; ++r)
            *changes |= set(&c->read[all->reduction[r].step->scalar], true);
    }
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_reads *reads = &program->plan->step[i].reads;
        if (s->kind != TRLI_STEP_SCALAR || !is_live(program, i) || !c->read[s->scalar]) continue;
        for (int k = 0; k < reads->nscalars; ++k) *changes |= set(&c->read[reads->scalar[k]], true);
    }
}

/* What is made. Not able: what users read who do not fetch it, what is told (told_sums_impl.h), and what somebody else
 * finds. */
static void find_made(const choice *c, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    for (int r = 0; r < all->n; ++r) c->made[all->reduction[r].step->scalar] = true;
    for (int i = 0; i < program->nsteps; ++i)
        if (program->step[i].kind == TRLI_STEP_SCALAR && is_live(program, i)) c->made[program->step[i].scalar] = true;
    const bool fetched = program->fetched && !program->tells;
    for (int i = 0; i < program->nscalar_roots; ++i) {
        c->able[program->scalar_root[i]] &= fetched;
        c->read[program->scalar_root[i]] |= fetched;
    }
    for (int i = 0; program->source && i < program->source->n; ++i) c->able[program->source->scalar[i]] = false;
}

static void find_patches(const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    for (int r = 0; r < all->n; ++r) all->reduction[r].patches = patches_of(program, all->reduction[r].step);
}

static void choose(const choice *c, bool *found)
{
    const trli_model *model = c->model;
    bool changes;
    for (int i = 0; i < model->nprograms; ++i) find_patches(model->program[i]);
    for (int i = 0; i < model->nscalars; ++i) c->able[i] = true;
    for (int i = 0; i < model->nprograms; ++i) find_made(c, model->program[i]);
    do {
        changes = false;
        for (int i = 0; i < model->nprograms; ++i) find_unable(c, model->program[i], &changes);
    } while (changes);
    for (int i = 0; i < model->nprograms; ++i)
        if (!model->program[i]->once) find_read(c, model->program[i]);
    for (int i = 0; i < model->nscalars; ++i) c->read[i] &= c->made[i] && c->able[i];
    do {
        changes = false;
        for (int i = 0; i < model->nprograms; ++i) find_wanted(c, model->program[i], &changes);
    } while (changes);
    for (int i = 0; i < model->nscalars; ++i) found[i] = c->read[i] && c->made[i];
}

trl_err trli_found_scalars_choose(trli_model *model)
{
    const size_t n = (size_t)model->nscalars + 1;
    if (trl_context_ranks(model->ctx) > 1) return TRL_OK;
    model->run->found = trli_new(model->ctx, n, sizeof *model->run->found);
    bool *room = trli_new(model->ctx, 3 * n, sizeof *room);
    const choice c = {.model = model, .made = room, .able = room + n, .read = room + 2 * n};
    const bool there = model->run->found && room;
    if (there) choose(&c, model->run->found);
    trli_free(room);
    return there ? TRL_OK : trli_no_memory(model->ctx, NULL, "for %d scalars", model->nscalars);
}

static bool is_found_together(const trli_program *program, const trli_reduction_batch *batch)
{
    return trli_is_found(program->model, program->run->reductions.reduction[batch->first].step->scalar);
}

trli_emit_request trli_found_scalar_request(const trli_program *program, const trli_step *s)
{
    return (trli_emit_request){.disabled_passes = program->model->settings.disabled_passes,
                               .reads = &trli_plan_of(program, s)->reads,
                               .nroots = 2,
                               .roots = program->run->step[s - program->step].twice,
                               .found = program->model->run->found};
}

trl_err trli_found_scalars_request(const trli_model *model)
{
    trli_memstream all = {0};
    trl_err err = TRL_OK;
    bool any = false;
    for (int i = 0; i < model->nscalars; ++i) any |= trli_is_found(model, i);
    if (!any) return TRL_OK;
    if (!trli_memstream_open(model->ctx, &all)) return trli_no_memory(model->ctx, NULL, "for the text of a kernel");
    (void)fprintf(all.out, "#define TRL_KERNEL_HAS_BARRIERS\n#define TRL_FOUND_SUM %d\n#define TRL_FOUND_MIN %d\n%s",
                  TRLI_MERGE_SUM, TRLI_MERGE_MIN, text);
    if (!trli_memstream_close(&all)) return trli_no_memory(model->ctx, NULL, "for the text of a kernel");
    err = trli_gpu_kernels_add(model->run->gpu_kernels, all.text, 2, NUMBERS, &model->run->gpu_find);
    trli_memstream_discard(&all);
    return err;
}

bool trli_gpu_does_batch(const trli_program *program, const trli_reduction_batch *batch)
{
    const trli_gpu_kernel *find = program->model->run->gpu_find;
    return find && find->function && is_found_together(program, batch);
}

bool trli_gpu_does_scalar(const trli_step_task *t)
{
    const trli_code_use *use = t->run->gpu;
    return use && use->code && use->code->gpu && use->code->gpu->function &&
           trli_is_found(t->program->model, t->step->scalar);
}

size_t trli_found_scalars_scratch(const trli_program *program)
{
    size_t most = program->model->run->gpu_find ? trli_gpu_room(2, NUMBERS) : 0;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_code_use *use = program->run->step[i].gpu;
        const trli_step_plan *p = &program->plan->step[i];
        if (!p->live || program->step[i].kind != TRLI_STEP_SCALAR || !use || !use->code) continue;
        const size_t need = trli_gpu_room(2, p->reads.nscalars + use->code->ngiven);
        if (need > most) most = need;
    }
    return most;
}

/* ---- runs ---- */

trl_err trli_task_find_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    const trli_model_run *run = frame->model->run;
    const trli_reductions *all = &t->program->run->reductions;
    trl_kernel_array *to = frame->scratch[args->worker];
    double *number = (double *)(to + 2);
    if (trli_is_done_at_once(frame, t->program, t->batch)) return TRL_OK;
    const trli_gpu_layout layout = {.blocks = {(unsigned)t->batch->n, 1, 1}, .threads = THREADS};
    trli_gpu_call call = {
        .label = t->step->label,
        .launch = {.hi = {t->batch->n, 1, 1},
                   .share = (trl_kernel_partial *)frame->share[args->space] + all->first + t->batch->first},
        .array = to,
        .scalar = number,
        .shape = TRLI_GPU_GIVEN,
        .layout = &layout};
    (void)done;
    to[0] = (trl_kernel_array){.at = frame->found[args->space]};
    to[1] = (trl_kernel_array){.at = frame->found_told};
    for (int i = 0; i < NUMBERS; ++i) number[i] = 0;
    number[PATCHES] = frame->model->layout->nlocal;
    number[SHARES] = run->nreductions;
    for (int r = 0; r < t->batch->n; ++r) {
        const trli_reduced_step *reduction = &all->reduction[t->batch->first + r];
        double *const of = number + RESULTS + EACH * r;
        of[0] = reduction->merge;
        of[1] = reduction->step->scalar;
        of[2] = reduction->patches;
    }
    return trli_gpu_launch(run->gpu_kernels, run->gpu_find, &call, args->space, args->stream);
}

trl_err trli_task_scalar_gpu(void *data, const trl_task_args *args, bool *done)
{
    static const trl_box one = {{0, 0, 0}, {1, 1, 1}};
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    trli_gpu_call call = trli_gpu_begin_call(args, t, &one, 2);
    (void)done;
    trli_gpu_take_scalars(args, t->run->gpu, &t->plan->reads, &call);
    call.nresults = 2;
    call.array[0] = (trl_kernel_array){.at = frame->found[args->space] + t->step->scalar};
    call.array[1] = (trl_kernel_array){.at = frame->found_told + t->step->scalar};
    return trli_gpu_launch(frame->model->run->gpu_kernels, t->run->gpu->code->gpu, &call, args->space, args->stream);
}

size_t trli_found_scalars_told(const trli_model *model)
{
    bool any = false;
    for (int i = 0; i < model->nscalars; ++i) any |= trli_is_found(model, i);
    return any ? (size_t)model->nscalars * sizeof(double) : 0;
}

bool trli_leaves_scalars(const trli_program *program)
{
    bool any = false;
    for (int i = 0; program->fetched && i < program->nscalar_roots; ++i)
        any |= trli_is_found(program->model, program->scalar_root[i]);
    return any;
}

static void read_told(const trli_frame *frame, int scalar)
{
    const uint32_t spaces = frame->scalar_valid[scalar];
    if (spaces == 0 || spaces & 1) return;
    frame->scalar[scalar] = ((const volatile double *)frame->found_told)[scalar];
    frame->scalar_valid[scalar] |= 1;
}

/* The space of a device that has found scalars of a program which the host does not have; 0: it has all. */
static int finder_of(const trli_frame *frame, const trli_program *program)
{
    int space = 0;
    for (int i = 0; i < program->nscalar_roots && !space; ++i) {
        const uint32_t spaces = frame->scalar_valid[program->scalar_root[i]];
        if (spaces && !(spaces & 1)) space = __builtin_ctz(spaces);
    }
    return space;
}

bool trli_found_scalars_come(const trli_frame *frame, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    const int space = all->nbatches > 0 ? finder_of(frame, program) : 0;
    if (!space) return false;
    frame->batch[all->first_batch].told_run =
        trli_device_last_run(trli_device_of(trl_workers_devices(frame->model->run->workers), space));
    return true;
}

trl_err trli_found_scalars_take(const trli_frame *frame, const trli_program *program)
{
    const trli_model_run *run = frame->model->run;
    const trl_devices *devices = trl_workers_devices(run->workers);
    const int space = finder_of(frame, program);
    trl_err err = TRL_OK;
    if (!space) return TRL_OK;
    TRL_TRY(devices->n > 1 ? trl_workers_finish(run->workers)
                           : trli_device_await(trli_device_of(devices, space),
                                               frame->batch[program->run->reductions.first_batch].told_run));
    for (int i = 0; i < program->nscalar_roots; ++i) read_told(frame, program->scalar_root[i]);
done:
    return err;
}

trl_err trli_frame_fetch_scalars(trli_frame *frame)
{
    const trli_model *model = frame->model;
    bool all = true;
    trl_err err = TRL_OK;
    for (int i = 0; i < model->nscalars; ++i) all &= frame->scalar_valid[i] & 1;
    if (all) return TRL_OK;
    TRL_TRY(trl_workers_finish(model->run->workers));
    for (int i = 0; i < model->nscalars; ++i) read_told(frame, i);
done:
    return err;
}

void trli_found_scalars_leave(const trli_frame *frame, uint32_t spaces)
{
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    for (int i = 0; i < frame->model->nscalars; ++i) {
        const uint32_t there = frame->scalar_valid[i];
        const int space = there ? __builtin_ctz(there) : 0;
        frame->scalar_valid[i] &= ~spaces;
        if (frame->scalar_valid[i] || !there || atomic_load(&trli_device_of(devices, space)->lost)) continue;
        frame->scalar[i] = ((const volatile double *)frame->found_told)[i]; /* all that it was given is done */
        frame->scalar_valid[i] = 1;
    }
}

const trl_place *trli_found_scalars_lost(const trli_frame *frame, const trli_program *reader)
{
    const trli_model *model = frame->model;
    for (int p = 0; p < model->nprograms; ++p)
        for (int r = 0; r < model->program[p]->nscalar_roots && model->program[p] != reader; ++r) {
            const int scalar = model->program[p]->scalar_root[r];
            bool reads = false;
            for (int i = 0; i < reader->nsteps; ++i) {
                const trli_reads *of = &reader->plan->step[i].reads;
                for (int k = 0; reader->plan->step[i].live && k < of->nscalars; ++k) reads |= of->scalar[k] == scalar;
            }
            if (reads && frame->scalar_valid[scalar] == 0) return &model->program[p]->place;
        }
    return NULL;
}

void trli_found_scalars_part(const trli_frame *frame)
{
    const trli_model *model = frame->model;
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_reductions *all = &model->program[i]->run->reductions;
        for (int r = 0; r < all->n; ++r)
            if (trli_is_found(model, all->reduction[r].step->scalar))
                frame->reduction[all->first + r].patches = model->layout->nlocal;
    }
}

void trli_found_scalars_settle(const trli_frame *frame, int patch, int reduction, int n)
{
    const trli_model *model = frame->model;
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_program *program = model->program[i];
        const trli_reductions *all = &program->run->reductions;
        const int first = reduction - all->first;
        if (first < 0 || first >= all->n || !trli_is_found(model, all->reduction[first].step->scalar)) continue;
        for (int r = first; r < first + n; ++r) {
            const trli_merge merge = all->reduction[r].merge;
            trli_partial *share = &frame->share[0][(ptrdiff_t)patch * model->run->nreductions + all->first + r];
            trli_parts_take(trli_parts_of_patch(frame, all->first + r, patch), model->run->lanes, merge, share);
            if (merge == TRLI_MERGE_SUM) trl_sum_normalise(&share->sum);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a GPU does of a program: each kernel is a launch; slabs of a kernel, which compiled kernels for CPUs compute
 * within their rows, are launches before it, on the same stream. Scalars are final when a task is called, and go with
 * the launch by value. */
#include <string.h>

#include "compute_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "halos_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"

/* ---- kernels ---- */

trli_emit_request trli_gpu_step(const trli_program *program, const trli_step *s)
{
    return (trli_emit_request){.disabled_passes = program->model->settings.disabled_passes,
                               .reads = &trli_plan_of(program, s)->reads,
                               .nroots = s->nout,
                               .roots = s->value,
                               .check_finite = s->variable != NULL};
}

/* Whether a kernel computes points that are a field's own, along an axis, on all patches of this rank. */
static bool stays_inside(const trli_program *program, const trli_step *s, int field, int axis)
{
    const trl_layout *layout = program->model->layout;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_box box = trli_step_box(program, s, 0, p);
        const trl_box owned =
            trl_patch_owned(layout, &layout->patch[layout->local[p]], program->model->field[field].location);
        if (box.lo[axis] < owned.lo[axis] || box.hi[axis] > owned.hi[axis]) return false;
    }
    return true;
}

/* Whether a slab reads nothing but what its kernel reads, too. */
static bool reads_the_same(const trli_slab *slab, const trli_reads *of)
{
    for (int i = 0; i < slab->reads.nfields; ++i) {
        bool found = false;
        for (int k = 0; k < of->nfields; ++k) found |= of->field[k] == slab->reads.field[i];
        if (!found) return false;
    }
    for (int i = 0; i < slab->reads.nscalars; ++i) {
        bool found = false;
        for (int k = 0; k < of->nscalars; ++k) found |= of->scalar[k] == slab->reads.scalar[i];
        if (!found) return false;
    }
    return true;
}

/* Whether a kernel can compute its ghosts: fields have their sides at the same points, and there are enough of these
 * that no ghost follows from another. layer: room for all slabs of the step; *n: how many there are. */
static bool find_layers(const trli_program *program, const trli_step *s, trli_emit_layer *layer, int *n)
{
    enum { CELLS_LEAST = 16 };
    const trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    trl_location first = 0;
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        const trl_location location = model->field[slab->field].location;
        if (k == 0) first = location;
        if (slab->kind == TRLI_SLAB_MODIFIER || !trli_slab_is_within(model, slab) || location != first) return false;
        if (model->layout->grid.cells[slab->axis] < CELLS_LEAST) return false;
        if (!stays_inside(program, s, slab->field, slab->axis) || !reads_the_same(slab, &p->reads)) return false;
        layer[k] = (trli_emit_layer){.field = slab->field,
                                     .axis = slab->axis,
                                     .side = slab->side,
                                     .layer = slab->layer,
                                     .image = slab->kind == TRLI_SLAB_IMAGE,
                                     .value = slab->value};
    }
    *n = p->nslabs;
    return p->nslabs > 0;
}

trl_err trli_gpu_emit_step(const trli_program *program, const trli_step *s, trli_emitted *emitted, bool *folds)
{
    trli_model *model = program->model;
    trli_emit_request wanted = trli_gpu_step(program, s), plain = wanted;
    trli_emit_layer *layer = trli_new(model->ctx, (size_t)trli_plan_of(program, s)->nslabs + 1, sizeof *layer);
    trl_err err = TRL_OK;
    *emitted = (trli_emitted){.text = NULL};
    if (!layer) return trli_no_memory(model->ctx, NULL, "for kernel '%s'", s->label);
    wanted.layer = layer;
    if (find_layers(program, s, layer, &wanted.nlayers))
        TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &wanted, emitted));
    *folds = emitted->text != NULL;
    if (!emitted->text) err = trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &plain, emitted);
done:
    trli_free(layer);
    return err;
}

trli_emit_request trli_gpu_slab(const trli_program *program, const trli_step *s, const trli_slab *slab)
{
    return (trli_emit_request){.disabled_passes = program->model->settings.disabled_passes,
                               .reads = &slab->reads,
                               .nroots = 1,
                               .roots = &slab->value,
                               .check_finite = s->kind == TRLI_STEP_PLANES && s->variable};
}

/* Points of a plane are computed at once: no one may read another. */
static bool is_independent(const trli_slab *slab)
{
    for (int i = 0; slab->layer == 0 && i < slab->reads.nfields; ++i) {
        const trl_footprint *f = &slab->reads.footprint[i];
        if (slab->reads.field[i] != slab->field) continue;
        for (int p = 0; p < f->n; ++p)
            for (int a = 0; a < 3; ++a)
                if (a != slab->axis && (f->part[p].lo[a] < 0 || f->part[p].hi[a] > 0)) return false;
    }
    return true;
}

/* What GPUs compute of the values of a group: all of it; their text has room for that. */
trli_emit_request trli_gpu_group(const trli_program *program, const trli_reduction_group *group)
{
    trli_emit_request request = {.disabled_passes = program->model->settings.disabled_passes,
                                 .reads = &group->reads,
                                 .nroots = group->n,
                                 .roots = group->value,
                                 .merge = group->merge};
    for (int r = 0; r < group->n; ++r)
        if (trli_is_weighted(&program->run->reductions.reduction[group->first + r])) request.weighted |= 1u << r;
    return request;
}

typedef struct warning {
    bool given;
} warning;

/* Ask for a kernel, whose text is given away. */
static trl_err add_text(const trli_program *program, trli_emitted *emitted, const trli_emit_request *wanted,
                        const char *label, warning *warning, trli_gpu_kernel **kernel)
{
    trli_model *model = program->model;
    trl_err err = TRL_OK;
    *kernel = NULL;
    if (emitted->text)
        err = trli_gpu_kernels_add(model->run->gpu_kernels, emitted->text, wanted->reads->nfields + wanted->nroots,
                                   wanted->reads->nscalars, kernel);
    else if (!warning->given)
        trl_warn(model->ctx, NULL, "'%s' is computed by the CPU, not by GPUs: %s", label, emitted->why);
    warning->given |= !emitted->text;
    trli_free(emitted->text);
    return err;
}

static trl_err add_slab(const trli_program *program, const trli_step *s, const trli_slab *slab, warning *warning,
                        trli_gpu_kernel **kernel)
{
    trli_model *model = program->model;
    const trli_emit_request wanted = trli_gpu_slab(program, s, slab);
    trli_emitted emitted;
    trl_err err;
    TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &wanted, &emitted));
    TRL_TRY(add_text(program, &emitted, &wanted, s->label, warning, kernel));
done:
    return err;
}

static trl_err add_step(const trli_program *program, const trli_step *s, warning *warning)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    trli_step_run *run = trli_run_of(program, s);
    trl_err err = TRL_OK;
    if (s->kind == TRLI_STEP_KERNEL) {
        const trli_emit_request wanted = trli_gpu_step(program, s);
        trli_emitted emitted;
        TRL_TRY(trli_gpu_emit_step(program, s, &emitted, &run->gpu_folds));
        TRL_TRY(add_text(program, &emitted, &wanted, s->label, warning, &run->gpu));
    }
    for (int k = 0; k < p->nslabs && !run->gpu_folds; ++k) {
        const trli_slab *slab = &p->slab[k];
        if (slab->kind == TRLI_SLAB_IMAGE)
            TRL_TRY(trli_gpu_kernels_add_copy(program->model->run->gpu_kernels, &run->slab[k].gpu));
        else if (slab->kind == TRLI_SLAB_KERNEL && is_independent(slab))
            TRL_TRY(add_slab(program, s, slab, warning, &run->slab[k].gpu));
    }
done:
    return err;
}

/* Reductions at single points stay with the CPU: launches take longer than they do. */
static trl_err add_group(const trli_program *program, trli_reduction_group *group, warning *warning)
{
    trli_model *model = program->model;
    const trli_step *first = program->run->reductions.reduction[group->first].step;
    trli_emitted emitted;
    trl_err err = TRL_OK;
    if (!group->kernel || first->reduce.kind == TRLI_REDUCE_POINT || group->n > TRLI_GPU_SHARES) return TRL_OK;
    const trli_emit_request wanted = trli_gpu_group(program, group);
    TRL_TRY(trli_gpu_kernels_add_clear(model->run->gpu_kernels, &model->run->gpu_clear));
    TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &wanted, &emitted));
    TRL_TRY(add_text(program, &emitted, &wanted, first->label, warning, &group->gpu));
done:
    return err;
}

static trl_err add_program(trli_program *program, warning *warning)
{
    trli_reductions *reductions = &program->run->reductions;
    trl_err err = TRL_OK;
    for (int s = 0; s < program->nsteps; ++s)
        if (program->plan->step[s].live) TRL_TRY(add_step(program, &program->step[s], warning));
    for (int g = 0; g < reductions->ngroups; ++g) TRL_TRY(add_group(program, &reductions->group[g], warning));
done:
    return err;
}

/* Name the first step whose kernel was not compiled. */
static void warn_failed(const trli_model *model)
{
    for (int i = 0; i < model->nprograms; ++i)
        for (int s = 0; s < model->program[i]->nsteps; ++s) {
            const trli_gpu_kernel *kernel = model->program[i]->run->step[s].gpu;
            if (!kernel || kernel->function) continue;
            trl_warn(model->ctx, NULL, "'%s' is computed by the CPU, not by GPUs: %s", model->program[i]->step[s].label,
                     kernel->why);
            return;
        }
}

static bool has_gpus(const trl_devices *devices)
{
    return devices && devices->n > 0 && devices->device[0]->kind == TRL_KIND_GPU;
}

trl_err trli_gpu_request(trli_model *model)
{
    const trl_devices *devices = trl_workers_devices(model->run->workers);
    warning warning = {false};
    trl_err err = TRL_OK;
    if (!has_gpus(devices)) return TRL_OK;
    if (model->settings.compile == TRL_COMPILE_NEVER) {
        trl_warn(model->ctx, NULL, "GPUs do nothing, because run.compile is never; use auto, or run.devices: cpu");
        return TRL_OK;
    }
    TRL_TRY(trli_gpu_kernels_create(model->ctx, devices, &model->run->gpu_kernels));
    TRL_TRY(trli_gpu_request_extremes(model));
    if (model->run->exchanged_axes != 0)
        TRL_TRY(trli_gpu_kernels_add_pieces(model->run->gpu_kernels, &model->run->gpu_pieces));
    for (int i = 0; i < model->nprograms; ++i)
        if (!model->program[i]->once) TRL_TRY(add_program(model->program[i], &warning));
    TRL_TRY(trli_gpu_kernels_compile(model->run->gpu_kernels));
    if (!warning.given) warn_failed(model);
done:
    return err;
}

static bool does_slab(const trli_step_task *t, int k)
{
    return t->run->slab[k].gpu && t->run->slab[k].gpu->function;
}

bool trli_gpu_does_kernel(const trli_step_task *t)
{
    bool all = t->run->gpu && t->run->gpu->function;
    for (int k = 0; k < t->plan->nslabs && !t->run->gpu_folds; ++k) all &= does_slab(t, k);
    return all;
}

bool trli_gpu_does_slabs(const trli_step_task *t)
{
    bool all = true;
    for (int k = t->slab; k < t->slab + t->nslabs; ++k) all &= does_slab(t, k);
    return all;
}

bool trli_gpu_does_reduction(const trli_step_task *t)
{
    const trli_gpu_kernel *clear = t->program->model->run->gpu_clear;
    return t->group->gpu && t->group->gpu->function && clear && clear->function;
}

bool trli_gpu_does_halos(const trli_model *model)
{
    return model->run->gpu_pieces && model->run->gpu_pieces->function;
}

/* ---- calls ---- */

static size_t room_of(int narrays, int nscalars)
{
    return (size_t)narrays * sizeof(trl_kernel_array) + (size_t)(nscalars + 1) * sizeof(double);
}

size_t trli_gpu_scratch(const trli_program *program, const trli_step *s)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    size_t most = s->kind == TRLI_STEP_KERNEL ? room_of(p->ninputs + s->nout, p->reads.nscalars) : 0;
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        const size_t need = room_of(slab->ninputs + 2, slab->kind == TRLI_SLAB_KERNEL ? slab->reads.nscalars : 0);
        if (need > most) most = need;
    }
    return most;
}

size_t trli_gpu_reductions_scratch(const trli_reductions *reductions)
{
    size_t most = 0;
    for (int g = 0; g < reductions->ngroups; ++g) {
        const trli_reads *reads = &reductions->group[g].reads;
        const size_t need = room_of(reads->nfields + 1, reads->nscalars + TRLI_GPU_SHARES);
        if (need > most) most = need;
    }
    return most;
}

size_t trli_gpu_halos_scratch(const trli_model *model)
{
    return has_gpus(trl_workers_devices(model->run->workers)) ? room_of(2 * TRLI_GPU_PIECES, 3 * TRLI_GPU_PIECES) : 0;
}

static trl_kernel_array array_of(const trl_task_args *args, const trli_step_task *t, int field)
{
    const trl_array array = trli_frame_array(args->frame, field, t->patch, args->space);
    trl_kernel_array to;
    trli_native_set_array(&to, &array);
    return to;
}

/* A call without its arrays and scalars, for which there is scratch. */
static trli_gpu_call begin_call(const trl_task_args *args, const trli_step_task *t, const trl_box *box, int narrays)
{
    const trli_frame *frame = args->frame;
    const trl_layout *layout = frame->model->layout;
    const trli_kernel_run on = {.grid = &layout->grid, .patch = &layout->patch[layout->local[t->patch]]};
    trli_gpu_call call = {
        .label = t->step->label ? t->step->label : "ghosts",
        .launch = {.grid = trli_kernel_grid_of(&on), .nonfinite = frame->alarm[args->space] + frame->alternate},
        .array = frame->scratch[args->worker]};
    call.scalar = (double *)(call.array + narrays);
    for (int a = 0; a < 3; ++a) {
        call.launch.lo[a] = box->lo[a];
        call.launch.hi[a] = box->hi[a];
    }
    return call;
}

static void take_scalars(const trl_task_args *args, const trli_reads *reads, trli_gpu_call *call)
{
    const trli_frame *frame = args->frame;
    for (int i = 0; i < reads->nscalars; ++i) call->scalar[i] = frame->scalar[reads->scalar[i]];
}

static trl_err launch_slab(const trl_task_args *args, const trli_step_task *t, int k)
{
    const trli_slab *slab = &t->plan->slab[k];
    const trli_model *model = t->program->model;
    const trl_box box = trli_slab_box(t->program, slab, t->patch);
    const bool image = slab->kind == TRLI_SLAB_IMAGE;
    const int inputs = image ? 1 : slab->ninputs;
    trli_gpu_call call = begin_call(args, t, &box, inputs + 1);
    for (int i = 0; i < inputs && !image; ++i) call.array[i] = array_of(args, t, slab->input[i]);
    call.array[inputs] = array_of(args, t, slab->field);
    if (image) { /* the other end of the row, or the row at the other side */
        const ptrdiff_t round =
            (ptrdiff_t)model->layout->grid.cells[slab->axis] * (ptrdiff_t)call.array[1].stride[slab->axis];
        call.array[0] = call.array[1];
        call.array[0].at += slab->side ? -round : round;
    } else
        take_scalars(args, &slab->reads, &call);
    return trli_gpu_launch(model->run->gpu_kernels, t->run->slab[k].gpu, &call, args->space, args->stream);
}

static bool is_here(const trli_step_task *t, const trli_slab *slab)
{
    const trl_layout *layout = t->program->model->layout;
    return trli_slab_is_at(layout, &layout->patch[layout->local[t->patch]], slab);
}

trl_err trli_task_slabs_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int k = t->slab; k < t->slab + t->nslabs; ++k)
        if (is_here(t, &t->plan->slab[k])) TRL_TRY(launch_slab(args, t, k));
done:
    return err;
}

/* Beyond which points ghosts are computed, where the patch is at the side of a slab. */
static void set_sides(const trli_step_task *t, trli_gpu_call *call)
{
    static const long long nowhere = 1LL << 60;
    const trl_layout *layout = t->program->model->layout;
    for (int a = 0; a < 3; ++a) {
        call->launch.from[a] = -nowhere;
        call->launch.to[a] = nowhere;
    }
    for (int k = 0; k < t->plan->nslabs; ++k) {
        const trli_slab *slab = &t->plan->slab[k];
        const trl_box owned = trl_patch_owned(layout, &layout->patch[layout->local[t->patch]],
                                              t->program->model->field[slab->field].location);
        if (!is_here(t, slab)) continue;
        if (slab->side || slab->kind == TRLI_SLAB_IMAGE) call->launch.to[slab->axis] = owned.hi[slab->axis];
        if (!slab->side || slab->kind == TRLI_SLAB_IMAGE) call->launch.from[slab->axis] = owned.lo[slab->axis];
    }
}

trl_err trli_task_kernel_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_step_plan *p = t->plan;
    trl_err err = TRL_OK;
    (void)done;
    for (int k = p->nslabs - 1; k >= 0 && !t->run->gpu_folds; --k) /* as the interpreter does */
        if (is_here(t, &p->slab[k])) TRL_TRY(launch_slab(args, t, k));
    trli_gpu_call call = begin_call(args, t, &t->box, p->ninputs + t->step->nout);
    set_sides(t, &call);
    for (int i = 0; i < p->ninputs; ++i) call.array[i] = array_of(args, t, p->input[i]);
    for (int o = 0; o < t->step->nout; ++o) call.array[p->ninputs + o] = array_of(args, t, t->step->field[o]);
    take_scalars(args, &p->reads, &call);
    err = trli_gpu_launch(t->program->model->run->gpu_kernels, t->run->gpu, &call, args->space, args->stream);
done:
    return err;
}

/* ---- reductions ---- */

_Static_assert(sizeof(trl_kernel_partial) == sizeof(trli_partial) &&
                   offsetof(trl_kernel_partial, special) == offsetof(trli_partial, sum.special) &&
                   offsetof(trl_kernel_partial, extreme) == offsetof(trli_partial, extreme) &&
                   offsetof(trl_kernel_partial, invalid) == offsetof(trli_partial, invalid),
               "kernels add to partial results");

/* Where a group's points lie on sides: their values count less. */
static void set_weighted(const trli_step_task *t, trli_gpu_call *call)
{
    static const long long nowhere = 1LL << 60;
    const trl_layout *layout = t->program->model->layout;
    const trl_patch *patch = &layout->patch[layout->local[t->patch]];
    for (int a = 0; a < 3; ++a) {
        const bool sides = (int)t->step->reduce.location >> a & 1 && !layout->grid.periodic[a];
        call->launch.from[a] = sides ? -patch->first[a] : nowhere;
        call->launch.to[a] = sides ? layout->grid.cells[a] - patch->first[a] : nowhere;
    }
}

static trl_err clear_shares(const trl_task_args *args, const trli_step_task *t, trl_kernel_partial *share)
{
    const trli_model_run *run = t->program->model->run;
    const trl_box all = {{0, 0, 0}, {t->group->n, 1, 1}};
    trli_gpu_call call = begin_call(args, t, &all, 1);
    call.launch.share = share;
    call.array[0] = (trl_kernel_array){0};
    for (int r = 0; r < TRLI_GPU_SHARES; ++r) {
        trli_partial empty;
        trli_partial_clear(&empty, r < t->group->n ? t->group->merge[r] : TRLI_MERGE_SUM);
        call.scalar[r] = empty.extreme;
    }
    return trli_gpu_launch(run->gpu_kernels, run->gpu_clear, &call, args->space, args->stream);
}

trl_err trli_task_reduce_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_reads *reads = &t->group->reads;
    trl_kernel_partial *share = (trl_kernel_partial *)trli_reduction_part(t, args, 0);
    trl_err err = TRL_OK;
    (void)done;
    TRL_TRY(clear_shares(args, t, share));
    trli_gpu_call call = begin_call(args, t, &t->box, reads->nfields + 1);
    call.shape = TRLI_GPU_MERGING;
    call.launch.share = share;
    set_weighted(t, &call);
    for (int i = 0; i < reads->nfields; ++i) call.array[i] = array_of(args, t, reads->field[i]);
    take_scalars(args, reads, &call);
    err = trli_gpu_launch(t->program->model->run->gpu_kernels, t->group->gpu, &call, args->space, args->stream);
done:
    return err;
}

/* ---- halos ---- */

/* Where a piece begins in the memory of a field on a patch. */
static trl_kernel_array place_of(const trl_task_args *args, int field, int patch, const trl_lidx at[3])
{
    const trl_array array = trli_frame_array(args->frame, field, patch, args->space);
    trl_kernel_array to;
    trli_native_set_array(&to, &array);
    to.at += trl_array_offset(&array, at[0], at[1], at[2]);
    return to;
}

static trl_err launch_pieces(const trl_task_args *args, const trli_step_task *t, int first, int n)
{
    const trli_model_run *run = t->program->model->run;
    const trl_box none = {{0, 0, 0}, {0, n, 1}};
    trli_gpu_call call = begin_call(args, t, &none, 2 * TRLI_GPU_PIECES);
    call.label = "halo";
    call.shape = TRLI_GPU_BY_PIECES;
    for (int i = 0; i < n; ++i) {
        const trli_exchange_piece *piece = &t->piece[first + i];
        const int field = t->exchanged->field[piece->field];
        long long points = 1;
        call.array[2 * i] = place_of(args, field, piece->source_local, piece->from);
        call.array[2 * i + 1] = place_of(args, field, piece->target_local, piece->to);
        for (int a = 0; a < 3; ++a) {
            call.scalar[3 * i + a] = piece->extent[a];
            points *= piece->extent[a];
        }
        if (points > call.launch.hi[0]) call.launch.hi[0] = points;
    }
    return trli_gpu_launch(run->gpu_kernels, run->gpu_pieces, &call, args->space, args->stream);
}

trl_err trli_task_halo_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int i = 0; i < t->npieces; i += TRLI_GPU_PIECES)
        TRL_TRY(launch_pieces(args, t, i, t->npieces - i < TRLI_GPU_PIECES ? t->npieces - i : TRLI_GPU_PIECES));
done:
    return err;
}

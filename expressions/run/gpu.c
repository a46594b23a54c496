/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a GPU does of a program: each part of a kernel is a launch; slabs of a kernel that do not follow within it are
 * launches before it, on the same stream. Scalars are final when a task is called, and go with the launch by value. */
#include <string.h>

#include "compute_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "halos_impl.h"
#include "late_scalars_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "told_sums_impl.h"

/* ---- what is there ---- */

/* NULL: it is not. */
static const trli_gpu_kernel *kernel_of(const trli_code_use *use)
{
    const trli_gpu_kernel *kernel = use->code ? use->code->gpu : NULL;
    return kernel && kernel->function ? kernel : NULL;
}

/* NULL: it is not. */
static const trli_gpu_form *form_of(const trli_program *program, const trli_opaque *called, trli_form which)
{
    const trli_gpu_plugin *all = program->model->run->gpu_plugin;
    const trli_gpu_form *form = all ? &all[called->number].form[which] : NULL;
    return form && form->kernel && form->kernel->function ? form : NULL;
}

static const trli_gpu_kernel *kernel_of_slab(const trli_step_task *t, int k)
{
    const trli_gpu_kernel *copy = t->program->model->run->gpu_copy;
    const trli_slab *slab = &t->plan->slab[k];
    const trli_gpu_form *form =
        slab->kind == TRLI_SLAB_MODIFIER ? form_of(t->program, slab->modifier, TRLI_FORM_EVALUATE) : NULL;
    if (slab->kind == TRLI_SLAB_MODIFIER) return form ? form->kernel : NULL;
    if (slab->kind != TRLI_SLAB_IMAGE) return kernel_of(&t->run->slab[k].gpu);
    return copy && copy->function ? copy : NULL;
}

static bool does_slab(const trli_step_task *t, int k)
{
    return kernel_of_slab(t, k) != NULL;
}

bool trli_gpu_does_kernel(const trli_step_task *t)
{
    bool all = t->run->gpu != NULL;
    for (int i = 0; all && i < trli_gpu_parts_of(t->program, t->step)->n; ++i) all = kernel_of(&t->run->gpu[i]) != NULL;
    for (int k = 0; k < t->plan->nslabs && !t->run->gpu_folds; ++k) all &= does_slab(t, k);
    return all && (!t->fused || kernel_of(&t->fused->gpu));
}

bool trli_gpu_does_plugin(const trli_step_task *t)
{
    return form_of(t->program, t->step->plugin.called, TRLI_FORM_EVALUATE) != NULL;
}

bool trli_gpu_does_stable_dt(const trli_step_task *t)
{
    const trli_gpu_kernel *clear = t->program->model->run->gpu_clear;
    return form_of(t->program, t->step->plugin.called, TRLI_FORM_STABLE_DT) && clear && clear->function;
}

bool trli_gpu_does_slabs(const trli_step_task *t)
{
    bool all = true;
    for (int k = t->slab; k < t->slab + t->nslabs; ++k) all &= does_slab(t, k);
    return all;
}

bool trli_gpu_does_reduction(const trli_step_task *t)
{
    return kernel_of(&t->group->gpu) != NULL;
}

/* ---- calls ---- */

size_t trli_gpu_room(int narrays, int nscalars)
{
    return (size_t)narrays * sizeof(trl_kernel_array) + (size_t)(nscalars + 1) * sizeof(double);
}

/* Of a kernel that reads these, and is given its numbers. */
static size_t room_of_use(const trli_code_use *use, const trli_reads *reads, int nout)
{
    return trli_gpu_room(reads->nfields + nout, reads->nscalars + (use->code ? use->code->ngiven : 0));
}

size_t trli_gpu_scratch(const trli_program *program, const trli_step *s)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    const trli_step_run *run = trli_run_of(program, s);
    trli_form_call form;
    size_t most = 0;
    for (int n = 0; trli_gpu_form_call(program, s, n, &form); ++n) {
        const trli_gpu_form *there = form_of(program, form.called, form.form);
        const size_t need = there ? trli_gpu_room(there->kernel->narrays, there->kernel->nscalars) : 0;
        if (need > most) most = need;
    }
    for (int i = 0; run->gpu && i < trli_gpu_parts_of(program, s)->n; ++i) {
        const trli_step_part *part = &trli_gpu_parts_of(program, s)->part[i];
        const size_t need = room_of_use(&run->gpu[i], &part->reads, part->nroots);
        if (need > most) most = need;
    }
    const trli_fused_sums *fused = trli_fused_sums_of(program, s);
    const size_t sums =
        fused ? room_of_use(&fused->gpu, &fused->reads, fused->nstored) + TRLI_GPU_SHARES * sizeof(double) : 0;
    if (sums > most) most = sums;
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        if (slab->kind == TRLI_SLAB_MODIFIER) continue;
        const bool image = slab->kind == TRLI_SLAB_IMAGE;
        const size_t need = image ? trli_gpu_room(2, 0) : room_of_use(&run->slab[k].gpu, &slab->reads, 1);
        if (need > most) most = need;
    }
    return most;
}

size_t trli_gpu_reductions_scratch(const trli_reductions *reductions)
{
    size_t most = 0;
    for (int g = 0; g < reductions->ngroups; ++g) {
        const trli_reduction_group *group = &reductions->group[g];
        const size_t need = room_of_use(&group->gpu, &group->reads, 1) + TRLI_GPU_SHARES * sizeof(double);
        if (need > most) most = need;
    }
    return most;
}

static trl_kernel_array array_of(const trl_task_args *args, const trli_step_task *t, int field, trli_gpu_call *call)
{
    const trl_array array = trli_frame_array(args->frame, field, t->patch, args->space);
    trl_kernel_array to;
    trli_native_set_array(&to, &array);
    for (int a = 0; a < 3; ++a)
        if (call->launch.low[a] > array.held.lo[a]) call->launch.low[a] = array.held.lo[a];
    return to;
}

/* A call without its arrays and scalars, for which there is room. */
static trli_gpu_call begin_call_in(const trl_task_args *args, const trli_step_task *t, const trl_box *box,
                                   trl_kernel_array *array, double *scalar)
{
    const trli_frame *frame = args->frame;
    const trl_layout *layout = frame->model->layout;
    const trli_kernel_run on = {.grid = &layout->grid, .patch = &layout->patch[t->patch]};
    trli_gpu_call call = {
        .label = t->step->label ? t->step->label : "ghosts",
        .launch = {.grid = trli_kernel_grid_of(&on),
                   .nonfinite = t->step->variable ? frame->alarm[args->space] + frame->alternate : NULL,
                   .late = trli_frame_late(frame, args->space),
                   .found = frame->found[args->space]},
        .array = array,
        .scalar = scalar};
    for (int a = 0; a < 3; ++a) {
        call.launch.lo[a] = box->lo[a];
        call.launch.hi[a] = box->hi[a];
    }
    return call;
}

trli_gpu_call trli_gpu_begin_call(const trl_task_args *args, const trli_step_task *t, const trl_box *box, int narrays)
{
    const trli_frame *frame = args->frame;
    trl_kernel_array *const array = frame->scratch[args->worker];
    double *const scalar = (double *)(array + narrays);
    scalar[0] = 0; /* a kernel is given one, if it reads none */
    return begin_call_in(args, t, box, array, scalar);
}

/* What a kernel has beside arrays: scalars, then the numbers that are its own. */
void trli_gpu_take_scalars(const trl_task_args *args, const trli_code_use *use, const trli_reads *reads,
                           trli_gpu_call *call)
{
    const trli_frame *frame = args->frame;
    for (int i = 0; i < reads->nscalars; ++i) call->scalar[i] = trli_frame_given(frame, reads->scalar[i]);
    for (int i = 0; i < use->code->ngiven; ++i) call->scalar[reads->nscalars + i] = use->number[i];
}

static long long first_inside(const trli_step_task *t, const trli_slab *slab, int field)
{
    const trli_model *model = t->program->model;
    const trl_box owned = trl_patch_owned(model->layout, &model->layout->patch[t->patch], model->field[field].location);
    return slab->side ? owned.hi[slab->axis] - 1 : owned.lo[slab->axis];
}

/* slab: what a modifier sets, or NULL. */
static void take_scalars_of_form(const trl_task_args *args, const trli_step_task *t, const trli_gpu_form *form,
                                 const trl_cuda_form *cuda, const trli_slab *slab, trli_gpu_call *call)
{
    const trli_frame *frame = args->frame;
    int time[TRLI_GPU_PLUGIN_TIMES];
    double *to = call->scalar;
    trli_gpu_plugin_times(t->step, time);
    for (int i = 0; i < TRLI_GPU_PLUGIN_TIMES; ++i) *to++ = frame->scalar[time[i]];
    *to++ = t->step->stage;
    if (slab) {
        *to++ = slab->axis;
        *to++ = slab->side;
        for (int i = 0; i < slab->ninputs; ++i) *to++ = (double)first_inside(t, slab, slab->input[i]);
        *to++ = (double)first_inside(t, slab, slab->field);
    }
    for (int i = 0; i < cuda->nnumbers; ++i) *to++ = form->number[i];
}

static trl_err launch_slab(const trl_task_args *args, const trli_step_task *t, int k)
{
    const trli_slab *slab = &t->plan->slab[k];
    const trli_model *model = t->program->model;
    const trl_box box = trli_slab_box(t->program, slab, t->patch);
    const bool image = slab->kind == TRLI_SLAB_IMAGE;
    const int inputs = image ? 1 : slab->ninputs;
    trli_gpu_call call = trli_gpu_begin_call(args, t, &box, inputs + 1);
    for (int i = 0; i < inputs && !image; ++i) call.array[i] = array_of(args, t, slab->input[i], &call);
    call.array[inputs] = array_of(args, t, slab->field, &call);
    if (image) { /* the other end of the row, or the row at the other side */
        const ptrdiff_t round =
            (ptrdiff_t)model->layout->grid.cells[slab->axis] * (ptrdiff_t)call.array[1].stride[slab->axis];
        call.array[0] = call.array[1];
        call.array[0].at += slab->side ? -round : round;
    } else if (slab->kind == TRLI_SLAB_MODIFIER)
        take_scalars_of_form(args, t, form_of(t->program, slab->modifier, TRLI_FORM_EVALUATE),
                             slab->modifier->cuda[TRLI_FORM_EVALUATE], slab, &call);
    else
        trli_gpu_take_scalars(args, &t->run->slab[k].gpu, &slab->reads, &call);
    return trli_gpu_launch(model->run->gpu_kernels, kernel_of_slab(t, k), &call, args->space, args->stream);
}

static bool is_here(const trli_step_task *t, const trli_slab *slab)
{
    const trl_layout *layout = t->program->model->layout;
    return trli_slab_is_at(layout, &layout->patch[t->patch], slab);
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
    const long long nowhere = 1LL << (t->program->model->run->gpu_wide ? 60 : 30); /* beyond all points */
    const trl_layout *layout = t->program->model->layout;
    for (int a = 0; a < 3; ++a) {
        call->launch.from[a] = -nowhere;
        call->launch.to[a] = nowhere;
    }
    for (int k = 0; k < t->plan->nslabs; ++k) {
        const trli_slab *slab = &t->plan->slab[k];
        const trl_box owned =
            trl_patch_owned(layout, &layout->patch[t->patch], t->program->model->field[slab->field].location);
        if (!is_here(t, slab)) continue;
        if (slab->side || slab->kind == TRLI_SLAB_IMAGE) call->launch.to[slab->axis] = owned.hi[slab->axis];
        if (!slab->side || slab->kind == TRLI_SLAB_IMAGE) call->launch.from[slab->axis] = owned.lo[slab->axis];
    }
    for (int i = 0; i < t->plan->ninputs && t->run->gpu_round; ++i)
        for (int a = 0; a < 3; ++a) {
            if (!(t->plan->round[i] >> a & 1)) continue;
            call->launch.from[a] = 0; /* one patch has all points of the axis */
            call->launch.to[a] = layout->grid.cells[a];
        }
}

static void set_arrays(const trl_task_args *args, const trli_step_task *t, const trli_step_part *part,
                       trli_gpu_call *call)
{
    const int n = part->reads.nfields;
    call->nresults = part->nroots;
    set_sides(t, call);
    for (int f = 0; f < n; ++f) call->array[f] = array_of(args, t, part->reads.field[f], call);
    for (int r = 0; r < part->nroots; ++r) call->array[n + r] = array_of(args, t, t->step->field[part->root[r]], call);
}

void trli_gpu_call_in(const trl_task_args *args, const trli_step_task *t, const trli_step_part *part,
                      trl_kernel_array *array, double *scalar, trli_gpu_call *call)
{
    *call = begin_call_in(args, t, &t->box, array, scalar);
    set_arrays(args, t, part, call);
}

void trli_gpu_call_part(const trl_task_args *args, const trli_step_task *t, int i, trli_gpu_call *call)
{
    const trli_step_part *part = &trli_gpu_parts_of(t->program, t->step)->part[i];
    *call = trli_gpu_begin_call(args, t, &t->box, part->reads.nfields + part->nroots);
    set_arrays(args, t, part, call);
    trli_gpu_take_scalars(args, &t->run->gpu[i], &part->reads, call);
}

static trl_err launch_part(const trl_task_args *args, const trli_step_task *t, int i)
{
    const trli_gpu_kernels *kernels = t->program->model->run->gpu_kernels;
    trli_gpu_call call;
    trli_gpu_call_part(args, t, i, &call);
    return trli_gpu_launch(kernels, kernel_of(&t->run->gpu[i]), &call, args->space, args->stream);
}

/* Where a launch leaves the results of a group. It tells the host, and finds values, where it has all of them. */
static void set_shares(const trl_task_args *args, const trli_step_task *t, const trli_reduction_group *group,
                       trl_kernel_launch *launch)
{
    const trli_frame *frame = args->frame;
    const trli_reductions *all = &t->program->run->reductions;
    const int first = all->first + group->first;
    const ptrdiff_t at = (ptrdiff_t)t->patch * frame->model->run->nreductions + first;
    launch->share = (trl_kernel_partial *)(frame->share[args->space] + at);
    launch->gathered = (trl_kernel_partial *)(frame->gathering[args->space] + at);
    trli_note_at_once(frame, t->program, group, group->at_once);
    if (!group->at_once) return;
    if (t->program->tells) {
        launch->told = (trl_kernel_partial *)(frame->told[args->space] + at);
        return;
    }
    launch->value[0] = frame->found[args->space];
    launch->value[1] = frame->found_told;
    for (int r = 0; r < group->n; ++r) launch->number[r] = all->reduction[group->first + r].step->scalar;
}

/* The kernel that stores a result, and adds to the share of the sums that it makes. */
static trl_err launch_fused(const trl_task_args *args, const trli_step_task *t)
{
    const trli_fused_sums *f = t->fused;
    const int n = f->reads.nfields;
    trli_gpu_call call = trli_gpu_begin_call(args, t, &t->box, n + f->nstored);
    call.shape = TRLI_GPU_MERGING;
    set_shares(args, t, &t->program->run->reductions.group[f->group[0]], &call.launch);
    set_sides(t, &call);
    for (int i = 0; i < n; ++i) call.array[i] = array_of(args, t, f->reads.field[i], &call);
    for (int r = 0; r < f->nstored; ++r) call.array[n + r] = array_of(args, t, t->step->field[r], &call);
    trli_gpu_take_scalars(args, &f->gpu, &f->reads, &call);
    return trli_gpu_launch(t->program->model->run->gpu_kernels, kernel_of(&f->gpu), &call, args->space, args->stream);
}

trl_err trli_task_kernel_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int k = t->plan->nslabs - 1; k >= 0 && !t->run->gpu_folds; --k) /* as the interpreter does */
        if (is_here(t, &t->plan->slab[k])) TRL_TRY(launch_slab(args, t, k));
    if (t->fused) return launch_fused(args, t);
    for (int i = 0; i < trli_gpu_parts_of(t->program, t->step)->n; ++i) TRL_TRY(launch_part(args, t, i));
done:
    return err;
}

/* ---- plugins ---- */

trl_err trli_task_plugin_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_step *s = t->step;
    const trli_opaque *called = s->plugin.called;
    const trli_gpu_form *form = form_of(t->program, called, TRLI_FORM_EVALUATE);
    trli_gpu_call call = trli_gpu_begin_call(args, t, &t->box, form->kernel->narrays);
    (void)done;
    call.nresults = called->noutputs;
    for (int i = 0; i < called->ninputs; ++i) call.array[i] = array_of(args, t, s->plugin.input[i], &call);
    for (int i = 0; i < called->noutputs; ++i) call.array[called->ninputs + i] = array_of(args, t, s->field[i], &call);
    take_scalars_of_form(args, t, form, called->cuda[TRLI_FORM_EVALUATE], NULL, &call);
    return trli_gpu_launch(t->program->model->run->gpu_kernels, form->kernel, &call, args->space, args->stream);
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
    const trl_patch *patch = &layout->patch[t->patch];
    for (int a = 0; a < 3; ++a) {
        const bool sides = (int)t->step->reduce.location >> a & 1 && !layout->grid.periodic[a];
        call->launch.from[a] = sides ? -patch->first[a] : nowhere;
        call->launch.to[a] = sides ? layout->grid.cells[a] - patch->first[a] : nowhere;
    }
}

trl_err trli_task_reduce_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_reads *reads = &t->group->reads;
    trli_gpu_call call = trli_gpu_begin_call(args, t, &t->box, reads->nfields + 1);
    (void)done;
    call.shape = TRLI_GPU_MERGING;
    set_shares(args, t, t->group, &call.launch);
    set_weighted(t, &call);
    for (int i = 0; i < reads->nfields; ++i) call.array[i] = array_of(args, t, reads->field[i], &call);
    trli_gpu_take_scalars(args, &t->group->gpu, reads, &call);
    return trli_gpu_launch(t->program->model->run->gpu_kernels, kernel_of(&t->group->gpu), &call, args->space,
                           args->stream);
}

/* Before a plugin adds to it. */
static trl_err clear_share(const trl_task_args *args, const trli_step_task *t, trl_kernel_partial *share)
{
    static const trl_box one = {{0, 0, 0}, {1, 1, 1}};
    const trli_model_run *run = t->program->model->run;
    trli_gpu_call call = trli_gpu_begin_call(args, t, &one, 1);
    trli_partial empty;
    trli_partial_clear(&empty, t->group->merge[0]);
    call.launch.share = share;
    call.array[0] = (trl_kernel_array){0};
    for (int r = 0; r < TRLI_GPU_SHARES; ++r) call.scalar[r] = empty.extreme;
    return trli_gpu_launch(run->gpu_kernels, run->gpu_clear, &call, args->space, args->stream);
}

trl_err trli_task_stable_dt_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_opaque *called = t->step->plugin.called;
    const trli_gpu_form *form = form_of(t->program, called, TRLI_FORM_STABLE_DT);
    trl_kernel_partial *share = (trl_kernel_partial *)trli_reduction_part(t, args, 0);
    trl_err err = TRL_OK;
    (void)done;
    TRL_TRY(clear_share(args, t, share));
    trli_gpu_call call = trli_gpu_begin_call(args, t, &t->box, form->kernel->narrays);
    call.shape = TRLI_GPU_SWEEPING;
    call.launch.share = share;
    call.array[0] = (trl_kernel_array){0}; /* a kernel is given one, if it reads none */
    for (int i = 0; i < called->ninputs; ++i) call.array[i] = array_of(args, t, t->step->plugin.input[i], &call);
    take_scalars_of_form(args, t, form, called->cuda[TRLI_FORM_STABLE_DT], NULL, &call);
    err = trli_gpu_launch(t->program->model->run->gpu_kernels, form->kernel, &call, args->space, args->stream);
done:
    return err;
}

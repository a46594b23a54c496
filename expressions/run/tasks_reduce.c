/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tasks of reductions: of each group on each patch, and what brings a batch together. */
#include "builder_impl.h"
#include "context_impl.h"
#include "found_scalars_impl.h"
#include "gpu_impl.h"
#include "late_scalars_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "rims_impl.h"
#include "task_parts_impl.h"
#include "tasks_build_impl.h"
#include "told_sums_impl.h"

/* ---- at once ---- */

static bool reads(const trli_reads *reads, int scalar)
{
    for (int i = 0; i < reads->nscalars; ++i)
        if (reads->scalar[i] == scalar) return true;
    return false;
}

/* Whether the value that a reduction changes is read before it in the program. */
static bool is_read_before(const trli_program *program, const trli_step *reduce)
{
    bool any = false;
    for (const trli_step *s = program->step; s < reduce; ++s) {
        const trli_step_plan *p = trli_plan_of(program, s);
        any |= p->live && reads(&p->reads, reduce->scalar);
        for (int k = 0; p->live && k < p->nslabs; ++k)
            any |= p->slab[k].kind == TRLI_SLAB_KERNEL && reads(&p->slab[k].reads, reduce->scalar);
    }
    return any;
}

static bool is_brought_at_once(const trli_tasks_builder *b, const trli_reduction_batch *batch)
{
    const trl_devices *devices = trl_workers_devices(b->model->run->workers);
    if (b->model->layout->nlocal > 1 || !devices || devices->n > 1) return false;
    if (b->tells) return true;
    return !trli_late_scalars_found_in(b->program, batch) && trli_gpu_does_batch(b->program, batch);
}

void trli_find_at_once(const trli_tasks_builder *b)
{
    const trli_reductions *all = &b->program->run->reductions;
    for (int i = 0; i < all->nbatches; ++i) {
        const trli_reduction_batch *batch = &all->batch[i];
        const bool may = is_brought_at_once(b, batch);
        for (int g = batch->first_group; g < batch->first_group + batch->ngroups; ++g) {
            trli_reduction_group *group = &all->group[g];
            group->at_once = may && group->n <= TRLI_GPU_SHARES;
            for (int r = group->first; r < group->first + group->n; ++r)
                group->at_once &= b->tells || !is_read_before(b->program, all->reduction[r].step);
        }
    }
}

trl_err trli_access_found(trli_tasks_builder *b, trl_task task, const trli_reduction_group *group)
{
    const trli_reductions *all = &b->program->run->reductions;
    trl_err err = TRL_OK;
    for (int r = group->first; r < group->first + group->n && group->at_once && !b->tells; ++r)
        TRL_TRY(trli_builder_scalar(&b->tasks, task, all->reduction[r].step->scalar, TRL_WRITE));
done:
    return err;
}

/* ---- tasks ---- */

/* What reductions do together, which read what they share once. */
static trli_work group_work(const trli_tasks_builder *b, const trli_reduction_group *group)
{
    const trli_reductions *all = &b->program->run->reductions;
    trli_work work = {.inputs = group->reads.nfields};
    for (int r = group->first; r < group->first + group->n; ++r) {
        const trli_work *one = &b->program->work[all->reduction[r].step - b->program->step];
        work.additions += one->additions;
        work.flops += one->flops;
    }
    return work;
}

/* What a GPU found of a stable_dt is looked at on the host, before ranks bring it together. */
static trl_err add_look(trli_tasks_builder *b, const trli_reduction_group *group, int patch, trl_handle *share)
{
    const trli_reductions *all = &b->program->run->reductions;
    trli_step_task *t;
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(trli_next_task(b, all->reduction[group->first].step, patch, &t));
    t->group = group;
    TRL_TRY(trli_builder_add(&b->tasks, "look", trli_task_stable_dt_look, t, 1, 0, trli_seconds_of(b, NULL, 0), &task));
    err = trli_builder_share(&b->tasks, task, all->first + group->first, group->n, patch, share, TRL_READ_WRITE);
done:
    return err;
}

/* Add the task of a group of reductions of formulas that goes over a box of a patch, cut for axes, or all of it. */
static trl_err add_values(trli_tasks_builder *b, const trli_reduction_group *group, trli_step_task *t, unsigned axes,
                          trl_task *task)
{
    const trli_work work = group_work(b, group);
    const int64_t points = trl_box_points(&t->box);
    const double seconds = trli_seconds_of(b, &work, points);
    trl_err err = TRL_OK;
    t->group = group;
    const int chunks = trli_task_parts(b->model, &t->box, seconds, false, t->parts);
    b->program->run->bytes_moved += points * group->reads.nfields * (int64_t)sizeof(double);
    TRL_TRY(trli_builder_add_anywhere(&b->tasks, t->step->label, trli_task_reduce,
                                      trli_gpu_does_reduction(t) ? trli_task_reduce_gpu : NULL, t, chunks,
                                      TRL_TASK_WHOLE, seconds, task));
    TRL_TRY(trli_set_work(b, *task, &work, points));
    TRL_TRY(axes == 0 ? trli_builder_reads(&b->tasks, *task, &group->reads, &t->box, t->patch)
                      : trli_rims_access_reductions(&b->tasks, *task, t, axes));
    err = trli_builder_scalars(&b->tasks, *task, &group->reads);
done:
    return err;
}

/* The same of a plugin's stable_dt, which is called once. */
static trl_err add_stable_dt(trli_tasks_builder *b, const trli_reduction_group *group, trli_step_task *t,
                             trl_task *task)
{
    const trli_step *s = t->step;
    const trli_work work = group_work(b, group);
    const int64_t points = trl_box_points(&t->box);
    trl_err err = TRL_OK;
    t->group = group;
    b->program->run->bytes_moved += points * t->plan->ninputs * (int64_t)sizeof(double);
    TRL_TRY(trli_builder_add_for_gpus(&b->tasks, s->label, trli_task_stable_dt,
                                      trli_gpu_does_stable_dt(t) ? trli_task_stable_dt_gpu : NULL, t, 1, TRL_TASK_WHOLE,
                                      trli_estimate(b, s, &t->box), task));
    TRL_TRY(trli_set_work(b, *task, &work, points));
    TRL_TRY(trli_builder_reads(&b->tasks, *task, &group->reads, &t->box, t->patch));
    for (int i = 0; i < t->plan->ninputs; ++i)
        TRL_TRY(trli_builder_field(&b->tasks, *task, t->plan->input[i], t->patch, TRLI_OWNED_AND_GHOSTS, TRL_READ));
    TRL_TRY(trli_builder_scalars(&b->tasks, *task, &t->plan->reads));
    err = trli_access_plugin(b, *task, s->plugin.called);
done:
    return err;
}

/* A patch's share of a group, which each worker adds up separately: inner points while ghosts are on their way. */
static trl_err add_group(trli_tasks_builder *b, const trli_reduction_group *group, bool late, int patch,
                         trl_handle *share)
{
    const trli_reductions *all = &b->program->run->reductions;
    const trli_step *s = all->reduction[group->first].step;
    const bool plugin = s->kind == TRLI_STEP_STABLE_DT;
    trl_box box[TRLI_RIMS_MOST];
    trli_step_task *first;
    trl_err err = TRL_OK;
    if (group->fused >= 0 || !trli_reduction_box(b->program, s, patch, box)) return TRL_OK;
    unsigned axes = plugin ? 0 : b->awaits[patch];
    const int n = trli_rims_cut_reductions(b->model, group, patch, &axes, box);
    TRL_TRY(trli_next_tasks(b, s, patch, n, &first));
    for (int i = 0; i < n; ++i) {
        trl_task task;
        first[i].box = box[i];
        TRL_TRY(plugin ? add_stable_dt(b, group, &first[i], &task) : add_values(b, group, &first[i], axes, &task));
        TRL_TRY(trli_builder_share(&b->tasks, task, all->first + group->first, group->n, patch, share,
                                   n == 1 ? TRL_WRITE : TRL_ADD));
        if (patch == 0 && late) TRL_TRY(trli_builder_late(&b->tasks, task, b->late_share));
        TRL_TRY(trli_access_found(b, task, group));
    }
    if (plugin && trli_gpu_does_stable_dt(first)) err = add_look(b, group, patch, share);
done:
    return err;
}

/* How a GPU brings a batch together; NULL: it does not. */
static trl_task_fn finisher(const trli_tasks_builder *b, const trli_reduction_batch *batch)
{
    if (b->tells) return trli_task_tell_gpu;
    if (trli_late_scalars_found_in(b->program, batch)) return trli_task_late_scalars_gpu;
    return trli_gpu_does_batch(b->program, batch) ? trli_task_find_gpu : NULL;
}

static trl_err add_batch(trli_tasks_builder *b, const trli_reduction_batch *batch)
{
    const trli_reductions *all = &b->program->run->reductions;
    const int np = b->model->layout->nlocal;
    trli_step_task *last;
    trl_task finish;
    const bool late = b->tells || trli_late_scalars_found_in(b->program, batch); /* on one rank */
    bool all_shares = true;
    trl_err err = TRL_OK;
    trl_handle *share = trli_new(b->model->ctx, (size_t)batch->ngroups * (size_t)np, sizeof *share);
    if (!share) return trli_no_memory(b->model->ctx, NULL, "for reductions");
    for (int i = 0; i < batch->ngroups * np; ++i) {
        share[i] = -1;
        TRL_TRY(add_group(b, &all->group[batch->first_group + i / np], late, i % np, &share[i]));
        trli_fused_sums_share(b->program, &all->group[batch->first_group + i / np], i % np, &share[i]);
    }
    TRL_TRY(trli_next_task(b, batch->step, -1, &last));
    last->batch = batch;
    for (int i = 0; i < batch->ngroups * np; ++i) all_shares &= share[i] >= 0;
    const trl_task_fn gpu = all_shares || !late ? finisher(b, batch) : NULL;
    TRL_TRY(gpu ? trli_builder_add_for_gpus(&b->tasks, batch->step->label, trli_task_reduce_finish, gpu, last, 1, 0,
                                            TRLI_MESSAGE_SECONDS, &finish)
                : trli_builder_add(&b->tasks, batch->step->label, trli_task_reduce_finish, last, 1,
                                   TRL_TASK_ALWAYS | TRL_TASK_POLL, TRLI_MESSAGE_SECONDS, &finish));
    if (gpu && late) TRL_TRY(trli_builder_late(&b->tasks, finish, b->late_share));
    for (int i = 0; i < batch->ngroups * np; ++i) {
        const trli_reduction_group *group = &all->group[batch->first_group + i / np];
        if (share[i] >= 0)
            TRL_TRY(trli_builder_share(&b->tasks, finish, all->first + group->first, group->n, i % np, &share[i],
                                       TRL_READ));
    }
    for (int r = batch->first; r < batch->first + batch->n; ++r)
        TRL_TRY(trli_builder_scalar(&b->tasks, finish, all->reduction[r].step->scalar, TRL_WRITE));
done:
    trli_free(share);
    return err;
}

trl_err trli_add_reduction(trli_tasks_builder *b, const trli_step *s)
{
    const trli_reduction_batch *batch = trli_reductions_at(&b->program->run->reductions, s);
    return batch ? add_batch(b, batch) : TRL_OK;
}

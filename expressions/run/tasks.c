/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From a program's steps to a frozen task graph. Tasks are emitted in the serial order of the steps; data handles, one
 * per slot and patch and one per scalar, give their dependencies, those of reused memory included. */
#include <string.h>

#include <chunks_impl.h>

#include "arithmetic_impl.h"
#include "builder_impl.h"
#include "context_impl.h"
#include "cost_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "halos_impl.h"
#include "late_scalars_impl.h"
#include "lifecycle_impl.h"
#include "messages_impl.h"
#include "pipeline_impl.h"
#include "rims_impl.h"
#include "slot_plan_impl.h"
#include "task_parts_impl.h"
#include "tasks_impl.h"
#include "told_sums_impl.h"
#include "vector_impl.h"

/* One task computes slabs of up to this many points together; a larger slab is a task of its own, in chunks. */
enum {
#ifdef TRL_SMALL_SIZES
    SLAB_POINTS = 64,
#else
    SLAB_POINTS = 8192,
#endif
    ALL_AXES = 7
};

typedef struct builder {
    trli_program *program;
    trli_model *model;
    struct trli_task_data *data;
    trli_task_builder tasks;
    unsigned char *awaits; /* [local patches] axes beyond whose sides others have points in some exchange so far */
    bool tells;            /* GPUs may tell the results of reductions (told_sums_impl.h) */
    int late_share;        /* in whose place there are late scalars, or what is told */
} builder;

/* n tasks of a step, in a row. */
static trl_err next_tasks(builder *b, const trli_step *step, int patch, int n, trli_step_task **task)
{
    trli_task_chunk *chunk;
    trl_err err = TRL_OK;
    TRL_TRY(trli_task_chunk_for(b->model->ctx, b->data, n, &chunk));
    *task = chunk->task + chunk->n;
    chunk->n += n;
    for (int i = 0; i < n; ++i)
        (*task)[i] = (trli_step_task){.program = b->program,
                                      .step = step,
                                      .plan = trli_plan_of(b->program, step),
                                      .run = trli_run_of(b->program, step),
                                      .patch = patch,
                                      .parts = {1, 1, 1}};
done:
    return err;
}

static trl_err next_task(builder *b, const trli_step *step, int patch, trli_step_task **task)
{
    return next_tasks(b, step, patch, 1, task);
}

/* Take back the task that was added last, which no graph knows. */
static void drop_task(builder *b)
{
    --b->data->chunk[b->data->nchunks - 1].n;
}

/* Plugins are told the time and dt. */
static trl_err access_plugin(builder *b, trl_task task, const trli_opaque *called)
{
    const trli_scalar_source *source = b->program->source;
    trl_err err = TRL_OK;
    for (int i = 0; source && i < source->n; ++i)
        TRL_TRY(trli_builder_scalar(&b->tasks, task, source->scalar[i], TRL_READ));
    err = trli_builder_plugin(&b->tasks, task, called);
done:
    return err;
}

static trl_err access_slab(builder *b, trl_task task, const trli_slab *slab, int patch)
{
    const trl_layout *layout = b->model->layout;
    trl_err err = TRL_OK;
    if (!trli_slab_is_at(layout, &layout->patch[patch], slab)) return TRL_OK;
    const bool ghosts = slab->kind != TRLI_SLAB_MODIFIER && slab->layer > 0;
    if (ghosts) TRL_TRY(trli_builder_field(&b->tasks, task, slab->field, patch, TRLI_OWNED, TRL_READ));
    TRL_TRY(trli_builder_field(&b->tasks, task, slab->field, patch, ghosts ? TRLI_GHOSTS : TRLI_OWNED_AND_GHOSTS,
                               TRL_READ_WRITE));
    for (int i = 0; i < slab->ninputs; ++i)
        if (slab->input[i] != slab->field)
            TRL_TRY(trli_builder_field(&b->tasks, task, slab->input[i], patch, TRLI_OWNED_AND_GHOSTS, TRL_READ));
    if (slab->kind == TRLI_SLAB_KERNEL) TRL_TRY(trli_builder_scalars(&b->tasks, task, &slab->reads));
    if (slab->kind == TRLI_SLAB_MODIFIER) TRL_TRY(access_plugin(b, task, slab->modifier));
done:
    return err;
}

static double seconds_of(const builder *b, const trli_work *work, int64_t points)
{
    return trli_task_seconds(b->model, work, points, b->model->run->nworkers);
}

/* Seconds of a task that computes the points of a step in a box. */
static double estimate(const builder *b, const trli_step *s, const trl_box *box)
{
    return seconds_of(b, &b->program->work[s - b->program->step], trl_box_points(box));
}

/* What devices go by that nothing was timed on. */
static trl_err set_work(builder *b, trl_task task, const trli_work *work, int64_t points)
{
    const double bytes = (double)(work->inputs + work->outputs) * sizeof(double);
    return trl_graph_set_work(b->tasks.graph, task, (double)points * bytes, (double)points * work->flops);
}

#ifdef TRL_POISON
static trl_err add_poison(builder *b, const trli_step *s, int patch)
{
    trli_step_task *t;
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(next_task(b, s, patch, &t));
    TRL_TRY(trli_builder_add_anywhere(&b->tasks, "poison", trli_task_poison, NULL, t, 1, 0, 0, &task));
    for (int o = 0; o < s->nout; ++o) {
        const trl_access access = b->model->field[s->field[o]].keeps_planes ? TRL_READ_WRITE : TRL_WRITE;
        if (b->program->plan->demand[s->field[o]].live)
            TRL_TRY(trli_builder_field(&b->tasks, task, s->field[o], patch, TRLI_OWNED_AND_GHOSTS, access));
    }
done:
    return err;
}
#endif

/* Add accesses to what a kernel writes. A later task fills ghosts that the kernel does not compute. */
static trl_err access_output(builder *b, trl_task task, int field, const trl_box *box, int patch)
{
    const trl_array *shape = trli_shape_of(b->model, field, patch);
    bool all = true;
    trl_err err;
    for (int a = 0; a < 3; ++a) all &= box->lo[a] <= shape->owned.lo[a] && box->hi[a] >= shape->owned.hi[a];
    TRL_TRY(trli_builder_field(&b->tasks, task, field, patch, TRLI_OWNED, all ? TRL_WRITE : TRL_READ_WRITE));
    TRL_TRY(trli_builder_field(&b->tasks, task, field, patch, TRLI_GHOSTS, all ? TRL_WRITE : TRL_READ_WRITE));
done:
    return err;
}

/* What the task of a kernel touches besides for the sums that it makes. */
static trl_err access_sums(builder *b, trl_task task, const trli_step_task *t, const trli_fused_sums *fused)
{
    const trli_reductions *all = &b->program->run->reductions;
    trl_err err = TRL_OK;
    TRL_TRY(trli_builder_reads(&b->tasks, task, &fused->reads, &t->box, t->patch));
    for (int g = 0; g < fused->ngroups; ++g) {
        const trli_reduction_group *group = &all->group[fused->group[g]];
        TRL_TRY(trli_builder_share(&b->tasks, task, all->first + group->first, group->n, t->patch,
                                   &fused->share[g * b->model->layout->nlocal + t->patch],
                                   b->model->run->gpu_kernels ? TRL_WRITE : TRL_ADD));
    }
    if (b->tells) err = trli_builder_late(&b->tasks, task, b->late_share);
done:
    return err;
}

/* What a task touches that computes all points of a step on a patch. */
static trl_err access_whole(builder *b, const trli_step *s, const trli_step_task *t, trl_task task)
{
    const trli_step_plan *p = t->plan;
    const trli_opaque *plugin = s->kind == TRLI_STEP_PLUGIN ? s->plugin.called : NULL;
    trl_err err = TRL_OK;
    for (int k = 0; k < p->nslabs; ++k) TRL_TRY(access_slab(b, task, &p->slab[k], t->patch));
    if (!plugin) TRL_TRY(trli_builder_reads(&b->tasks, task, &p->reads, &t->box, t->patch));
    for (int i = 0; plugin && i < p->ninputs; ++i)
        TRL_TRY(trli_builder_read(&b->tasks, task, p->input[i], &plugin->reach[i], &t->box, t->patch));
    TRL_TRY(trli_builder_scalars(&b->tasks, task, &p->reads));
    if (plugin) TRL_TRY(access_plugin(b, task, plugin));
    for (int o = 0; o < s->nout; ++o)
        if (b->program->plan->demand[s->field[o]].live) TRL_TRY(access_output(b, task, s->field[o], &t->box, t->patch));
done:
    return err;
}

/* Add a task that computes points of a step; *task: still without accesses. */
static trl_err add_box(builder *b, const trli_step *s, trli_step_task *t, const trl_box *box, trl_task *task)
{
    const trli_step_plan *p = t->plan;
    const trli_opaque *plugin = s->kind == TRLI_STEP_PLUGIN ? s->plugin.called : NULL;
    trl_err err = TRL_OK;
    int chunks = 1;
    t->box = *box;
    bool one_location = true;
    for (int o = 1; o < s->nout; ++o)
        one_location &= b->model->field[s->field[o]].location == b->model->field[s->field[0]].location;
    if (!plugin || (plugin->flags & TRL_EXPR_TILED && one_location))
        chunks = t->nrims > 0 ? trli_rims_parts(b->model, t, estimate(b, s, &t->around))
                              : trli_task_parts(b->model, &t->box, estimate(b, s, &t->box), p->nslabs > 0, t->parts);
    const int inputs = t->fused ? t->fused->reads.nfields : p->ninputs;
    b->program->run->bytes_moved += trl_box_points(&t->box) * (s->nout + inputs) * (int64_t)sizeof(double);
    TRL_TRY(plugin ? trli_builder_add_for_gpus(&b->tasks, s->label, trli_task_plugin,
                                               trli_gpu_does_plugin(t) ? trli_task_plugin_gpu : NULL, t, chunks,
                                               TRL_TASK_WHOLE, estimate(b, s, &t->box), task)
                   : trli_builder_add_anywhere(&b->tasks, s->label, trli_task_kernel,
                                               trli_gpu_does_kernel(t) ? trli_task_kernel_gpu : NULL, t, chunks,
                                               t->inner ? TRL_TASK_WHOLE | TRL_TASK_URGENT : TRL_TASK_WHOLE,
                                               estimate(b, s, &t->box), task));
    TRL_TRY(set_work(b, *task, &b->program->work[s - b->program->step], trl_box_points(&t->box)));
    t->task = *task;
    t->computes = true;
done:
    return err;
}

static trl_err add_compute(builder *b, const trli_step *s, int patch)
{
    trl_box box[TRLI_RIMS_MOST];
    trli_step_task *first;
    trl_err err = TRL_OK;
    box[0] = trli_step_box(b->program, s, 0, patch);
    const trl_box around = box[0];
    unsigned axes = b->awaits[patch];
    const int n = axes ? trli_rims_cut(b->program, s, patch, &axes, box) : 1;
    TRL_TRY(next_tasks(b, s, patch, n, &first));
    first->around = around;
    first->nrims = n - 1;
    for (int i = 0; i < n; ++i) {
        trli_step_task *t = &first[i];
        trl_task task;
        t->inner = i > 0 ? first : NULL;
        t->fused = trli_fused_sums_of(b->program, s);
        TRL_TRY(add_box(b, s, t, &box[i], &task));
        if (i > 0 && first->nrims > 0) TRL_TRY(trl_graph_add_dependency(b->tasks.graph, first->task, task));
        if (t->fused) TRL_TRY(access_sums(b, task, t, t->fused));
        TRL_TRY(n == 1 ? access_whole(b, s, t, task) : trli_rims_access(&b->tasks, task, t, axes));
    }
done:
    return err;
}

/* What a task of slabs takes. */
typedef struct slabs_cost {
    double seconds, bytes;
} slabs_cost;

/* Give a task the slabs from t->slab on, up to SLAB_POINTS points or one slab; those at sides of other patches count
 * nothing. The points; *alone: the one slab that has some, or NULL. */
static int64_t group_slabs(const builder *b, trli_step_task *t, const trli_slab **alone, slabs_cost *cost)
{
    const trli_step_plan *p = t->plan;
    int64_t points = 0;
    const trl_layout *layout = b->model->layout;
    *alone = NULL;
    *cost = (slabs_cost){0};
    for (; t->slab + t->nslabs < p->nslabs; ++t->nslabs) {
        const trli_slab *slab = &p->slab[t->slab + t->nslabs];
        if (!trl_patch_at_side(layout, &layout->patch[t->patch], slab->axis, slab->side)) continue;
        trl_box box = trli_slab_box(b->program, slab, t->patch);
        if (points > 0 && points + trl_box_points(&box) > SLAB_POINTS) break;
        *alone = points == 0 ? slab : NULL;
        points += trl_box_points(&box);
        const trli_work work = trli_work_of_fields(slab->ninputs, 1);
        cost->seconds += seconds_of(b, &work, trl_box_points(&box));
        cost->bytes += (double)trl_box_points(&box) * (slab->ninputs + 1) * sizeof(double);
        t->box = box;
    }
    return points;
}

static trl_err add_slab_task(builder *b, const trli_step *s, trli_step_task *t, slabs_cost cost, const trli_slab *alone)
{
    trl_task task;
    int chunks = 1;
    trl_err err = TRL_OK;
    /* A ghost layer reads no point of its own field; the values of a plane on the side may. */
    if (alone && alone->kind != TRLI_SLAB_MODIFIER && alone->layer > 0)
        chunks = trli_task_parts(b->model, &t->box, cost.seconds, false, t->parts);
    bool plugins = false;
    for (int k = t->slab; k < t->slab + t->nslabs; ++k) plugins |= t->plan->slab[k].kind == TRLI_SLAB_MODIFIER;
    const trl_task_fn gpu = trli_gpu_does_slabs(t) ? trli_task_slabs_gpu : NULL;
    TRL_TRY(plugins ? trli_builder_add_for_gpus(&b->tasks, s->label, trli_task_slabs, gpu, t, chunks, TRL_TASK_WHOLE,
                                                cost.seconds, &task)
                    : trli_builder_add_anywhere(&b->tasks, s->label, trli_task_slabs, gpu, t, chunks, TRL_TASK_WHOLE,
                                                cost.seconds, &task));
    TRL_TRY(trl_graph_set_work(b->tasks.graph, task, cost.bytes, 0));
    for (int k = t->slab; k < t->slab + t->nslabs; ++k) TRL_TRY(access_slab(b, task, &t->plan->slab[k], t->patch));
done:
    return err;
}

static trl_err add_slabs(builder *b, const trli_step *s, int patch)
{
    const trli_step_plan *p = trli_plan_of(b->program, s);
    trl_err err = TRL_OK;
    for (int k = 0; k < p->nslabs;) {
        trli_step_task *t;
        const trli_slab *alone;
        TRL_TRY(next_task(b, s, patch, &t));
        t->slab = k;
        slabs_cost cost;
        int64_t points = group_slabs(b, t, &alone, &cost);
        k += t->nslabs;
        if (points > 0)
            TRL_TRY(add_slab_task(b, s, t, cost, alone));
        else
            drop_task(b);
    }
done:
    return err;
}

/* One more exchange in the frames of the model. */
static trl_err count_exchange(builder *b, const trli_exchanged *exchanged, trli_program_exchange **added)
{
    trli_program_execution *run = b->program->run;
    if (!trli_make_room(b->model->ctx, &run->exchanged, run->nexchanges, 1, &run->exchanges_capacity,
                        sizeof *run->exchanged))
        return trli_no_memory(b->model->ctx, NULL, "for an exchange");
    *added = &run->exchanged[run->nexchanges++];
    **added = (trli_program_exchange){.what = exchanged};
    ++b->model->run->nexchanges;
    return trli_exchange_plan_of(b->model, exchanged, &(*added)->plan);
}

/* What a patch copies from others of this rank: consecutive pieces of the plan, by patch, from *next on. With several
 * devices the others may be on another one. */
static trl_err add_halo(builder *b, const trli_step *s, const trli_exchanged *exchanged, const trl_exchange *plan,
                        int patch, int *next)
{
    const trli_traffic *copies = &plan->copies;
    const trli_work work = trli_work_of_fields(1, 1);
    int64_t points = 0, lines = 0; /* of memory: short rows take one each */
    trli_step_task *t;
    trl_task task;
    trl_err err = TRL_OK;
    const int first = *next;
    int end;
    for (end = first; end < copies->ntransfers && copies->transfer[end].target_local == patch; ++end) {
        const trl_lidx *extent = copies->transfer[end].extent;
        points += (int64_t)extent[0] * extent[1] * extent[2];
        lines += trli_ceil_div(extent[0], TRLI_LINE) * extent[1] * extent[2];
    }
    *next = end;
    if (first == end) return TRL_OK;
    if (b->model->run->lanes > b->model->run->nworkers + 1) b->awaits[patch] |= ALL_AXES;
    TRL_TRY(next_task(b, s, patch, &t));
    t->exchanged = exchanged;
    t->piece = copies->transfer + first;
    t->npieces = end - first;
    t->round = trli_gpu_goes_round(b->program, exchanged);
    TRL_TRY(trli_builder_halo(&b->tasks, exchanged, trli_gpu_does_halos(b->model) ? trli_task_halo_gpu : NULL, t,
                              (int)trli_chunks_wanted(TRLI_LINE * lines, b->model->run->nworkers),
                              seconds_of(b, &work, points), &task));
    TRL_TRY(set_work(b, task, &work, points));
done:
    return err;
}

static trl_err add_exchange(builder *b, const trli_step *s)
{
    const trli_exchanged *exchanged = &trli_plan_of(b->program, s)->exchanged;
    const int number = b->model->run->nexchanges;
    trli_program_exchange *added = NULL;
    trli_step_task *first;
    trl_err err = TRL_OK;
    int copied = 0;
    TRL_TRY(count_exchange(b, exchanged, &added));
    trli_exchange_mark_receivers(added->plan, b->awaits);
    for (int p = 0; p < b->model->layout->nlocal; ++p) TRL_TRY(add_halo(b, s, exchanged, added->plan, p, &copied));
    const int messages = trli_messages_tasks(added->plan);
    if (messages == 0) goto done;
    TRL_TRY(next_tasks(b, s, -1, messages, &first));
    for (int i = 0; i < messages; ++i) first[i].exchange = number;
    TRL_TRY(trli_messages_add(&b->tasks, exchanged, added->plan, first));
done:
    return err;
}

/* What reductions do together, which read what they share once. */
static trli_work group_work(const builder *b, const trli_reduction_group *group)
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
static trl_err add_look(builder *b, const trli_reduction_group *group, int patch, trl_handle *share)
{
    const trli_reductions *all = &b->program->run->reductions;
    trli_step_task *t;
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(next_task(b, all->reduction[group->first].step, patch, &t));
    t->group = group;
    TRL_TRY(trli_builder_add(&b->tasks, "look", trli_task_stable_dt_look, t, 1, 0, seconds_of(b, NULL, 0), &task));
    err = trli_builder_share(&b->tasks, task, all->first + group->first, group->n, patch, share, TRL_READ_WRITE);
done:
    return err;
}

/* Add the task of a group of reductions of formulas that goes over a box of a patch, cut for axes, or all of it. */
static trl_err add_values(builder *b, const trli_reduction_group *group, trli_step_task *t, unsigned axes,
                          trl_task *task)
{
    const trli_work work = group_work(b, group);
    const int64_t points = trl_box_points(&t->box);
    const double seconds = seconds_of(b, &work, points);
    trl_err err = TRL_OK;
    t->group = group;
    const int chunks = trli_task_parts(b->model, &t->box, seconds, false, t->parts);
    b->program->run->bytes_moved += points * group->reads.nfields * (int64_t)sizeof(double);
    TRL_TRY(trli_builder_add_anywhere(&b->tasks, t->step->label, trli_task_reduce,
                                      trli_gpu_does_reduction(t) ? trli_task_reduce_gpu : NULL, t, chunks,
                                      TRL_TASK_WHOLE, seconds, task));
    TRL_TRY(set_work(b, *task, &work, points));
    TRL_TRY(axes == 0 ? trli_builder_reads(&b->tasks, *task, &group->reads, &t->box, t->patch)
                      : trli_rims_access_reductions(&b->tasks, *task, t, axes));
    err = trli_builder_scalars(&b->tasks, *task, &group->reads);
done:
    return err;
}

/* The same of a plugin's stable_dt, which is called once. */
static trl_err add_stable_dt(builder *b, const trli_reduction_group *group, trli_step_task *t, trl_task *task)
{
    const trli_step *s = t->step;
    const trli_work work = group_work(b, group);
    const int64_t points = trl_box_points(&t->box);
    trl_err err = TRL_OK;
    t->group = group;
    b->program->run->bytes_moved += points * t->plan->ninputs * (int64_t)sizeof(double);
    TRL_TRY(trli_builder_add_for_gpus(&b->tasks, s->label, trli_task_stable_dt,
                                      trli_gpu_does_stable_dt(t) ? trli_task_stable_dt_gpu : NULL, t, 1, TRL_TASK_WHOLE,
                                      estimate(b, s, &t->box), task));
    TRL_TRY(set_work(b, *task, &work, points));
    TRL_TRY(trli_builder_reads(&b->tasks, *task, &group->reads, &t->box, t->patch));
    for (int i = 0; i < t->plan->ninputs; ++i)
        TRL_TRY(trli_builder_field(&b->tasks, *task, t->plan->input[i], t->patch, TRLI_OWNED_AND_GHOSTS, TRL_READ));
    TRL_TRY(trli_builder_scalars(&b->tasks, *task, &t->plan->reads));
    err = access_plugin(b, *task, s->plugin.called);
done:
    return err;
}

/* A patch's share of a group, which each worker adds up separately: inner points while ghosts are on their way. */
static trl_err add_group(builder *b, const trli_reduction_group *group, int patch, trl_handle *share)
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
    TRL_TRY(next_tasks(b, s, patch, n, &first));
    for (int i = 0; i < n; ++i) {
        trl_task task;
        first[i].box = box[i];
        TRL_TRY(plugin ? add_stable_dt(b, group, &first[i], &task) : add_values(b, group, &first[i], axes, &task));
        TRL_TRY(trli_builder_share(&b->tasks, task, all->first + group->first, group->n, patch, share,
                                   n == 1 ? TRL_WRITE : TRL_ADD));
        if (patch == 0 && (b->tells || trli_late_scalars_found_by(b->program)))
            TRL_TRY(trli_builder_late(&b->tasks, task, b->late_share));
    }
    if (plugin && trli_gpu_does_stable_dt(first)) err = add_look(b, group, patch, share);
done:
    return err;
}

static trl_err add_batch(builder *b, const trli_reduction_batch *batch)
{
    const trli_reductions *all = &b->program->run->reductions;
    const int np = b->model->layout->nlocal;
    trli_step_task *last;
    trl_task finish;
    bool late = b->tells || trli_late_scalars_found_by(b->program); /* on one rank */
    trl_err err = TRL_OK;
    trl_handle *share = trli_new(b->model->ctx, (size_t)batch->ngroups * (size_t)np, sizeof *share);
    if (!share) return trli_no_memory(b->model->ctx, NULL, "for reductions");
    for (int i = 0; i < batch->ngroups * np; ++i) {
        share[i] = -1;
        TRL_TRY(add_group(b, &all->group[batch->first_group + i / np], i % np, &share[i]));
        trli_fused_sums_share(b->program, &all->group[batch->first_group + i / np], i % np, &share[i]);
    }
    TRL_TRY(next_task(b, batch->step, -1, &last));
    last->batch = batch;
    for (int i = 0; i < batch->ngroups * np; ++i) late &= share[i] >= 0;
    TRL_TRY(late ? trli_builder_add_for_gpus(&b->tasks, batch->step->label, trli_task_reduce_finish,
                                             b->tells ? trli_task_tell_gpu : trli_task_late_scalars_gpu, last, 1, 0,
                                             TRLI_MESSAGE_SECONDS, &finish)
                 : trli_builder_add(&b->tasks, batch->step->label, trli_task_reduce_finish, last, 1,
                                    TRL_TASK_ALWAYS | TRL_TASK_POLL, TRLI_MESSAGE_SECONDS, &finish));
    if (late) TRL_TRY(trli_builder_late(&b->tasks, finish, b->late_share));
    if (late && (!b->tells || b->program->leads)) trli_graph_set_leading(b->tasks.graph);
    for (int i = 0; i < batch->ngroups * np; ++i) {
        const trli_reduction_group *group = &all->group[batch->first_group + i / np];
        if (share[i] >= 0)
            TRL_TRY(trli_builder_share(&b->tasks, finish, all->first + group->first, group->n, i % np, &share[i],
                                       TRL_READ));
    }
    for (int r = batch->first; r < batch->first + batch->n; ++r)
        TRL_TRY(trli_builder_scalar(&b->tasks, finish, all->reduction[r].step->scalar, TRL_WRITE));
    TRL_TRY(trli_builder_value(&b->tasks, finish, &b->tasks.collective, "collective", TRL_READ_WRITE));
done:
    trli_free(share);
    return err;
}

/* All reductions of a batch are computed in place of the first. */
static trl_err add_reduction(builder *b, const trli_step *s)
{
    const trli_reduction_batch *batch = trli_reductions_at(&b->program->run->reductions, s);
    return batch ? add_batch(b, batch) : TRL_OK;
}

static trl_err add_scalar(builder *b, const trli_step *s)
{
    trli_step_task *t;
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(next_task(b, s, 0, &t));
    TRL_TRY(trli_builder_add(&b->tasks, s->label ? s->label : "scalar", trli_task_scalar, t, 1, TRL_TASK_ALWAYS,
                             seconds_of(b, NULL, 0), &task));
    TRL_TRY(trli_builder_scalars(&b->tasks, task, &trli_plan_of(b->program, s)->reads));
    TRL_TRY(trli_builder_scalar(&b->tasks, task, s->scalar, TRL_WRITE));
done:
    return err;
}

static trl_err add_source(builder *b)
{
    const trli_scalar_source *source = b->program->source;
    trl_task task;
    trl_err err = TRL_OK;
    if (!source) return TRL_OK;
    TRL_TRY(trli_builder_add(&b->tasks, source->name, source->find, source->data, 1, TRL_TASK_ALWAYS | TRL_TASK_POLL,
                             TRLI_MESSAGE_SECONDS, &task));
    for (int i = 0; i < source->n; ++i) TRL_TRY(trli_builder_scalar(&b->tasks, task, source->scalar[i], TRL_WRITE));
done:
    return err;
}

static trl_err add_step(builder *b, const trli_step *s)
{
    trl_err err = TRL_OK;
    int np = b->model->layout->nlocal;
    if (s->kind == TRLI_STEP_REDUCE || s->kind == TRLI_STEP_STABLE_DT) return add_reduction(b, s);
    if (s->kind == TRLI_STEP_SCALAR) return add_scalar(b, s);
    if (s->kind == TRLI_STEP_READ) return TRL_OK;
    if (trli_plan_of(b->program, s)->exchanged.n > 0) TRL_TRY(add_exchange(b, s));
    for (int p = 0; p < np; ++p) {
        if (s->kind == TRLI_STEP_FILL || s->kind == TRLI_STEP_PLANES) {
            TRL_TRY(add_slabs(b, s, p));
            continue;
        }
#ifdef TRL_POISON
        TRL_TRY(add_poison(b, s, p));
#endif
        TRL_TRY(add_compute(b, s, p));
    }
done:
    return err;
}

trl_err trli_tasks_build(trli_program *program, const trli_rotation *rotation)
{
    builder b = {.program = program, .model = program->model};
    trl_err err = TRL_OK;
    program->run->tasks = b.data = trli_new(b.model->ctx, 1, sizeof *b.data);
    b.awaits = trli_new(b.model->ctx, (size_t)b.model->layout->nlocal, sizeof *b.awaits);
    if (!b.data || !b.awaits) TRL_TRY(trli_no_memory(b.model->ctx, NULL, "for tasks"));
    program->run->first_exchange = b.model->run->nexchanges;
    TRL_TRY(trli_told_sums_may_come(program, &b.tells));
    b.late_share = b.tells ? program->run->told_share : b.model->late ? b.model->late->share : -1;
    TRL_TRY(trli_builder_begin(&b.tasks, b.model, program->name, &program->run->graph));
    b.tasks.late = b.model->run->gpu_kernels ? trli_late_scalars_read_by(program) : NULL;
    TRL_TRY(add_source(&b));
    for (int i = 0; i < program->nsteps; ++i)
        if (program->plan->step[i].live) TRL_TRY(add_step(&b, &program->step[i]));
    if (rotation) TRL_TRY(trli_builder_rotate(&b.tasks, rotation));
done:
    trli_free(b.awaits);
    return trli_builder_end(&b.tasks, err);
}

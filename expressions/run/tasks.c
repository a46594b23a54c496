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
#include "found_scalars_impl.h"
#include "gpu_impl.h"
#include "halos_impl.h"
#include "late_scalars_impl.h"
#include "lifecycle_impl.h"
#include "messages_impl.h"
#include "pipeline_impl.h"
#include "rims_impl.h"
#include "slot_plan_impl.h"
#include "task_parts_impl.h"
#include "tasks_build_impl.h"
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

/* Take back the task that was added last, which no graph knows. */
static void drop_task(trli_tasks_builder *b)
{
    --b->data->chunk[b->data->nchunks - 1].n;
}

static trl_err access_slab(trli_tasks_builder *b, trl_task task, const trli_slab *slab, int patch)
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
    if (slab->kind == TRLI_SLAB_MODIFIER) TRL_TRY(trli_access_plugin(b, task, slab->modifier));
done:
    return err;
}

#ifdef TRL_POISON
static trl_err add_poison(trli_tasks_builder *b, const trli_step *s, int patch)
{
    trli_step_task *t;
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(trli_next_task(b, s, patch, &t));
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
static trl_err access_output(trli_tasks_builder *b, trl_task task, int field, const trl_box *box, int patch)
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
static trl_err access_sums(trli_tasks_builder *b, trl_task task, const trli_step_task *t, const trli_fused_sums *fused)
{
    const trli_reductions *all = &b->program->run->reductions;
    trl_err err = TRL_OK;
    TRL_TRY(trli_builder_reads(&b->tasks, task, &fused->reads, &t->box, t->patch));
    for (int g = 0; g < fused->ngroups; ++g) {
        const trli_reduction_group *group = &all->group[fused->group[g]];
        TRL_TRY(trli_builder_share(&b->tasks, task, all->first + group->first, group->n, t->patch,
                                   &fused->share[g * b->model->layout->nlocal + t->patch],
                                   b->model->run->gpu_kernels ? TRL_WRITE : TRL_ADD));
        TRL_TRY(trli_access_found(b, task, group));
    }
    if (b->tells) err = trli_builder_late(&b->tasks, task, b->late_share);
done:
    return err;
}

/* What a task touches that computes all points of a step on a patch. */
static trl_err access_whole(trli_tasks_builder *b, const trli_step *s, const trli_step_task *t, trl_task task)
{
    const trli_step_plan *p = t->plan;
    const trli_opaque *plugin = s->kind == TRLI_STEP_PLUGIN ? s->plugin.called : NULL;
    trl_err err = TRL_OK;
    for (int k = 0; k < p->nslabs; ++k) TRL_TRY(access_slab(b, task, &p->slab[k], t->patch));
    if (!plugin) TRL_TRY(trli_builder_reads(&b->tasks, task, &p->reads, &t->box, t->patch));
    for (int i = 0; plugin && i < p->ninputs; ++i)
        TRL_TRY(trli_builder_read(&b->tasks, task, p->input[i], &plugin->reach[i], &t->box, t->patch));
    TRL_TRY(trli_builder_scalars(&b->tasks, task, &p->reads));
    if (plugin) TRL_TRY(trli_access_plugin(b, task, plugin));
    for (int o = 0; o < s->nout; ++o)
        if (b->program->plan->demand[s->field[o]].live) TRL_TRY(access_output(b, task, s->field[o], &t->box, t->patch));
done:
    return err;
}

/* Add a task that computes points of a step; *task: still without accesses. */
static trl_err add_box(trli_tasks_builder *b, const trli_step *s, trli_step_task *t, const trl_box *box, trl_task *task)
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
        chunks = t->nrims > 0
                     ? trli_rims_parts(b->model, t, trli_estimate(b, s, &t->around))
                     : trli_task_parts(b->model, &t->box, trli_estimate(b, s, &t->box), p->nslabs > 0, t->parts);
    const int inputs = t->fused ? t->fused->reads.nfields : p->ninputs;
    b->program->run->bytes_moved += trl_box_points(&t->box) * (s->nout + inputs) * (int64_t)sizeof(double);
    TRL_TRY(plugin ? trli_builder_add_for_gpus(&b->tasks, s->label, trli_task_plugin,
                                               trli_gpu_does_plugin(t) ? trli_task_plugin_gpu : NULL, t, chunks,
                                               TRL_TASK_WHOLE, trli_estimate(b, s, &t->box), task)
                   : trli_builder_add_anywhere(&b->tasks, s->label, trli_task_kernel,
                                               trli_gpu_does_kernel(t) ? trli_task_kernel_gpu : NULL, t, chunks,
                                               t->inner ? TRL_TASK_WHOLE | TRL_TASK_URGENT : TRL_TASK_WHOLE,
                                               trli_estimate(b, s, &t->box), task));
    TRL_TRY(trli_set_work(b, *task, &b->program->work[s - b->program->step], trl_box_points(&t->box)));
    t->task = *task;
    t->computes = true;
done:
    return err;
}

/* Whether inner points and rims set some of the same ghosts: beside other sides, where rows are cut. */
static bool shares_ghosts(const trli_step_task *inner)
{
    const bool cuts_rows = inner->box.lo[0] > inner->around.lo[0] || inner->box.hi[0] < inner->around.hi[0];
    return cuts_rows && inner->plan->nslabs > 0;
}

static trl_err add_compute(trli_tasks_builder *b, const trli_step *s, int patch)
{
    trl_box box[TRLI_RIMS_MOST];
    trli_step_task *first;
    trl_err err = TRL_OK;
    box[0] = trli_step_box(b->program, s, 0, patch);
    const trl_box around = box[0];
    unsigned axes = b->awaits[patch];
    trli_fused_sums *fused = trli_fused_sums_of(b->program, s);
    const bool sums_once = fused && b->model->run->gpu_kernels; /* each task makes the share of the patch anew */
    const int n = axes && !sums_once ? trli_rims_cut(b->program, s, patch, &axes, box) : 1;
    TRL_TRY(trli_next_tasks(b, s, patch, n, &first));
    first->around = around;
    first->nrims = n - 1;
    for (int i = 0; i < n; ++i) {
        trli_step_task *t = &first[i];
        trl_task task;
        t->inner = i > 0 ? first : NULL;
        t->fused = fused;
        TRL_TRY(add_box(b, s, t, &box[i], &task));
        if (i > 0 && (first->nrims > 0 || shares_ghosts(first)))
            TRL_TRY(trl_graph_add_dependency(b->tasks.graph, first->task, task));
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
static int64_t group_slabs(const trli_tasks_builder *b, trli_step_task *t, const trli_slab **alone, slabs_cost *cost)
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
        cost->seconds += trli_seconds_of(b, &work, trl_box_points(&box));
        cost->bytes += (double)trl_box_points(&box) * (slab->ninputs + 1) * sizeof(double);
        t->box = box;
    }
    return points;
}

static trl_err add_slab_task(trli_tasks_builder *b, const trli_step *s, trli_step_task *t, slabs_cost cost,
                             const trli_slab *alone)
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

static trl_err add_slabs(trli_tasks_builder *b, const trli_step *s, int patch)
{
    const trli_step_plan *p = trli_plan_of(b->program, s);
    trl_err err = TRL_OK;
    for (int k = 0; k < p->nslabs;) {
        trli_step_task *t;
        const trli_slab *alone;
        TRL_TRY(trli_next_task(b, s, patch, &t));
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
static trl_err count_exchange(trli_tasks_builder *b, const trli_exchanged *exchanged, trli_program_exchange **added)
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
static trl_err add_halo(trli_tasks_builder *b, const trli_step *s, const trli_exchanged *exchanged,
                        const trl_exchange *plan, int patch, int *next)
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
    TRL_TRY(trli_next_task(b, s, patch, &t));
    t->exchanged = exchanged;
    t->piece = copies->transfer + first;
    t->npieces = end - first;
    t->round = trli_gpu_goes_round(b->program, exchanged);
    TRL_TRY(trli_builder_halo(&b->tasks, exchanged, trli_gpu_does_halos(b->model) ? trli_task_halo_gpu : NULL, t,
                              (int)trli_chunks_wanted(TRLI_LINE * lines, b->model->run->nworkers),
                              trli_seconds_of(b, &work, points), &task));
    TRL_TRY(trli_set_work(b, task, &work, points));
done:
    return err;
}

static trl_err add_exchange(trli_tasks_builder *b, const trli_step *s)
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
    TRL_TRY(trli_next_tasks(b, s, -1, messages, &first));
    for (int i = 0; i < messages; ++i) first[i].exchange = number;
    TRL_TRY(trli_messages_add(&b->tasks, exchanged, added->plan, first));
done:
    return err;
}

static trl_err add_scalar(trli_tasks_builder *b, const trli_step *s)
{
    trli_step_task *t;
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(trli_next_task(b, s, 0, &t));
    const char *name = s->label ? s->label : "scalar";
    const double seconds = trli_seconds_of(b, NULL, 0);
    TRL_TRY(trli_gpu_does_scalar(t)
                ? trli_builder_add_for_gpus(&b->tasks, name, trli_task_scalar, trli_task_scalar_gpu, t, 1, 0, seconds,
                                            &task)
                : trli_builder_add(&b->tasks, name, trli_task_scalar, t, 1, TRL_TASK_ALWAYS, seconds, &task));
    TRL_TRY(trli_builder_scalars(&b->tasks, task, &trli_plan_of(b->program, s)->reads));
    TRL_TRY(trli_builder_scalar(&b->tasks, task, s->scalar, TRL_WRITE));
done:
    return err;
}

static trl_err add_source(trli_tasks_builder *b)
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

static trl_err add_step(trli_tasks_builder *b, const trli_step *s)
{
    trl_err err = TRL_OK;
    int np = b->model->layout->nlocal;
    if (s->kind == TRLI_STEP_REDUCE || s->kind == TRLI_STEP_STABLE_DT) return trli_add_reduction(b, s);
    if (s->kind == TRLI_STEP_SCALAR) return add_scalar(b, s);
    if (s->kind == TRLI_STEP_READ) return TRL_OK;
    if (s->kind == TRLI_STEP_CALL) return trli_add_call(b, s);
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
    trli_tasks_builder b = {.program = program, .model = program->model};
    trl_err err = TRL_OK;
    program->run->tasks = b.data = trli_new(b.model->ctx, 1, sizeof *b.data);
    b.awaits = trli_new(b.model->ctx, (size_t)b.model->layout->nlocal, sizeof *b.awaits);
    if (!b.data || !b.awaits) TRL_TRY(trli_no_memory(b.model->ctx, NULL, "for tasks"));
    program->run->first_exchange = b.model->run->nexchanges;
    TRL_TRY(trli_told_sums_may_come(program, &b.tells));
    trli_find_at_once(&b);
    b.late_share = b.tells ? program->run->told_share : b.model->late ? b.model->late->share : -1;
    TRL_TRY(trli_builder_begin(&b.tasks, b.model, program->name, &program->run->graph));
    b.tasks.late = b.model->run->gpu_kernels ? trli_late_scalars_read_by(program) : NULL;
    TRL_TRY(add_source(&b));
    for (int i = 0; i < program->nsteps; ++i)
        if (program->plan->step[i].live) TRL_TRY(add_step(&b, &program->step[i]));
    if (rotation) TRL_TRY(trli_builder_rotate(&b.tasks, rotation));
done:
    trli_free(b.awaits);
    trli_free(b.called);
    return trli_builder_end(&b.tasks, err);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The task functions: steps of a program at run time. Nothing here allocates or looks a name up. */
#include <math.h>
#include <string.h>

#include <chunks_impl.h>
#include <spatialops_impl.h>

#include "compute_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "rims_impl.h"
#include "tasks_impl.h"

static const trl_patch *patch_of(const trli_step_task *t)
{
    const trl_layout *layout = t->program->model->layout;
    return &layout->patch[t->patch];
}

/* A slab at the ends of a kernel's rows. */
typedef struct edge {
    const trli_slab *slab;
    trl_box box;
    trli_bound_kernel kernel;
    const trli_frame *frame;
    int worker;
    void *registers;
    const struct edge *next;
} edge;

/* Scratch of a thread, from which pieces are taken one after the other. */
typedef struct scratch {
    char *at;
} scratch;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void *take(scratch *s, size_t bytes)
{
    void *piece = s->at;
    s->at += aligned(bytes);
    return piece;
}

/* Slabs of a kernel are bound at once, others one by one. */
static size_t slabs_scratch(const trli_program *program, const trli_step *s, const trli_step_plan *p)
{
    size_t all = 0, most = 0;
    for (int k = 0; k < p->nslabs; ++k) {
        const size_t one = aligned(sizeof(edge)) + trli_bound_kernel_bytes(program, s, &p->slab[k]);
        all += one;
        if (one > most) most = one;
    }
    return s->kind == TRLI_STEP_KERNEL ? all : most;
}

size_t trli_step_scratch(const trli_program *program, const trli_step *s)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    const trli_step_run *run = trli_run_of(program, s);
    const trli_plugin_step *called = trli_step_plugin(s);
    size_t registers = run->kernel ? trli_kernel_scratch(run->kernel) : 0;
    size_t plugin = called ? called->called->scratch_bytes : 0;
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        const trli_kernel *kernel = run->slab[k].kernel;
        const size_t need = kernel ? trli_kernel_scratch(kernel) : 0;
        if (need > registers) registers = need;
        if (slab->kind == TRLI_SLAB_MODIFIER && slab->modifier->scratch_bytes > plugin)
            plugin = slab->modifier->scratch_bytes;
    }
    const trli_fused_sums *fused = trli_fused_sums_of(program, s);
    const size_t sums = fused ? trli_fused_sums_scratch(program, fused) : 0;
    const size_t rest = registers + plugin > sums ? registers + plugin : sums;
    return trli_bound_kernel_bytes(program, s, NULL) + slabs_scratch(program, s, p) + aligned(rest);
}

/* Arrays of fields on a task's patch. */
static trl_array *take_arrays(scratch *s, const trli_frame *frame, const trli_step_task *t, int n, const int *field)
{
    trl_array *array = take(s, (size_t)n * sizeof *array);
    for (int i = 0; i < n; ++i) array[i] = trli_frame_array(frame, field[i], t->patch, 0);
    return array;
}

/* ---- kernels and slabs ---- */

/* The part of a box that a call computes. */
static trl_box share_of(const trli_step_task *t, const trl_box *box, const trl_task_args *args)
{
    return args->chunks == 1 ? *box : trli_box_part(box, t->parts, args->chunk);
}

static trli_bound_kernel bind(scratch *s, const trl_task_args *args, const trli_step_task *t, const trli_slab *slab)
{
    const trli_kernel_place place = {.program = t->program,
                                     .step = t->step,
                                     .slab = slab,
                                     .patch = t->patch,
                                     .space = args->space,
                                     .input = slab ? slab->input : t->plan->input,
                                     .output = slab ? &slab->field : t->step->field};
    trli_bound_kernel kernel;
    trli_kernel_bind(&place, args->frame, take(s, trli_bound_kernel_bytes(t->program, t->step, slab)), &kernel);
    return kernel;
}

/* Narrow the box of a slab to the rows or planes [lo, hi) of an axis. If the slab's ghosts lie along that axis, the box
 * stays; false then if [lo, hi) does not touch the slab. */
static bool narrow(const edge *e, int axis, long long lo, long long hi, trl_box *box)
{
    if (e->slab->axis == axis) return e->slab->side ? box->lo[axis] == hi : box->hi[axis] == lo;
    box->lo[axis] = (trl_lidx)lo;
    box->hi[axis] = (trl_lidx)hi;
    return true;
}

static void set_edges_of_rows(const edge *first, long long y, long long y_end, long long z, long long z_end)
{
    for (const edge *e = first; e; e = e->next) {
        trl_box box = e->box;
        if (narrow(e, 1, y, y_end, &box) && narrow(e, 2, z, z_end, &box))
            trli_kernel_compute(&e->kernel, e->frame, e->worker, e->registers, &box);
    }
}

static void set_edges(const trl_kernel_call *call, long long y, long long y_end, long long z, long long z_end)
{
    set_edges_of_rows(call->edges, y, y_end, z, z_end);
}

/* Where rows are cut: narrow the box of a slab to what a part of them reads; false: nothing. */
static bool narrow_along_rows(const trli_step_task *t, const trli_slab *slab, const trl_box *part, trl_box *box)
{
    const trl_box *whole = t->inner ? &t->inner->around : &t->around;
    const trli_reads *reads = &t->plan->reads;
    const bool ends[2] = {part->lo[0] == whole->lo[0], part->hi[0] == whole->hi[0]};
    if (slab->axis == 0) return ends[slab->side];
    for (int i = 0; i < reads->nfields; ++i) {
        const trl_offsets hull = trl_footprint_hull(&reads->footprint[i]);
        if (reads->field[i] != slab->field) continue;
        if (!ends[0] && box->lo[0] < part->lo[0] + hull.lo[0]) box->lo[0] = part->lo[0] + hull.lo[0];
        if (!ends[1] && box->hi[0] > part->hi[0] + hull.hi[0]) box->hi[0] = part->hi[0] + hull.hi[0];
    }
    return true;
}

/* Take scratch for the slabs at the ends of a kernel's rows that its patch has, as far as a part of them reads them.
 * *registers: scratch behind them. */
static const edge *take_edges(scratch *s, const trl_task_args *args, const trli_step_task *t, const trl_box *part,
                              void **registers)
{
    edge *first = NULL;
    for (int k = 0; k < t->plan->nslabs; ++k) {
        const trli_slab *slab = &t->plan->slab[k];
        if (!trli_slab_is_at(t->program->model->layout, patch_of(t), slab)) continue;
        if (t->run->native && t->run->slab[k].within) continue;
        trl_box box = trli_slab_box(t->program, slab, t->patch);
        if (!narrow_along_rows(t, slab, part, &box)) continue;
        edge *e = take(s, sizeof *e);
        *e = (edge){.slab = slab,
                    .box = box,
                    .kernel = bind(s, args, t, slab),
                    .frame = args->frame,
                    .worker = args->worker,
                    .next = first};
        first = e;
    }
    *registers = s->at;
    for (edge *e = first; e; e = (edge *)e->next) e->registers = *registers;
    return first;
}

static void compute(const trli_step_task *t, const trl_task_args *args, const trl_box *box)
{
    const trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    void *registers;
    trli_bound_kernel kernel = bind(&sc, args, t, NULL);
    const edge *edges = take_edges(&sc, args, t, box, &registers);
    if (t->fused && trli_fused_sums_compute(t, args, box, registers)) return;
    kernel.tuning = t->inner ? NULL : t->run->tuning; /* rims say nothing about the way through large boxes */
    if (!kernel.native) set_edges_of_rows(edges, box->lo[1], box->hi[1], box->lo[2], box->hi[2]);
    if (kernel.native && edges) { /* the first part sets the edges for all parts */
        kernel.part[0].call.set_edges = set_edges;
        kernel.part[0].call.edges = edges;
    }
    trli_kernel_compute(&kernel, frame, args->worker, registers, box);
    if (t->fused) trli_fused_sums_add(t, args, box);
}

trl_err trli_task_kernel(void *data, const trl_task_args *args, bool *done)
{
    trl_box box;
    (void)done;
    if (args->chunk == 0) trli_fused_sums_begin(data, args);
    for (int next = 0; trli_rims_next(data, args, &next, &box);) compute(data, args, &box);
    return TRL_OK;
}

static trl_eval_args plugin_args(const trli_frame *frame, const trli_step_task *t, const trl_array *computed,
                                 const trl_array *required, void *scratch, int worker)
{
    const trli_model *model = frame->model;
    return (trl_eval_args){.size = sizeof(trl_eval_args),
                           .ctx = model->ctx,
                           .grid = &model->layout->grid,
                           .patch = patch_of(t),
                           .t = frame->scalar[t->step->time_scalar],
                           .t_step = frame->scalar[TRLI_SCALAR_STEP_TIME],
                           .dt = frame->scalar[TRLI_SCALAR_DT],
                           .step = frame->step_number,
                           .stage = t->step->stage,
                           .computed = computed,
                           .required = required,
                           .scratch = scratch,
                           .worker = worker,
                           .axis = -1,
                           .side = -1};
}

/* Call a plugin's evaluate, or its stable_dt if dt is given. */
static trl_err call_plugin(trli_frame *frame, const trli_opaque *called, const trl_eval_args *args, const trl_box *box,
                           double *dt)
{
    const trl_diagnostic *d;
    int said = trl_context_diagnostics(args->ctx, &d);
    trl_err err = dt ? called->stable_dt(called->state, args, dt) : called->evaluate(called->state, args, box);
    if (err != TRL_OK) atomic_store_explicit(&frame->plugin_failed, true, memory_order_relaxed);
    if (err == TRL_OK || trl_context_diagnostics(args->ctx, &d) > said) return err;
    return trl_fail(args->ctx, TRL_ERR_PLUGIN, &called->place,
                    "%s of type '%s' failed (%s) without a message at step %lld, t = %g", dt ? "stable_dt" : "evaluate",
                    called->type, trl_err_meaning(err), (long long)args->step, args->t);
}

/* A limit is positive. */
static trl_err check_stable_dt(const trli_frame *frame, const trli_step *s, double dt)
{
    const trli_opaque *called = s->plugin.called;
    if (dt > 0) return TRL_OK;
    return trl_fail(frame->model->ctx, TRL_ERR_NUMERICS, &called->place,
                    "stable_dt of '%s' (type '%s') gave %g at step %lld, t = %.10g: a stable dt is positive",
                    called->name, called->type, dt, (long long)frame->step_number, frame->scalar[s->time_scalar]);
}

/* Where workers found it, they looked at it, and the share is empty. */
trl_err trli_task_stable_dt_look(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_partial *share = trli_reduction_share(t, args->frame, 0, 0);
    (void)done;
    return check_stable_dt(args->frame, t->step, share->invalid ? (double)NAN : share->extreme);
}

trl_err trli_task_stable_dt(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_step *s = t->step;
    trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    const trli_opaque *called = s->plugin.called;
    double dt = INFINITY;
    trl_err err = TRL_OK;
    (void)done;
    const trl_array *required = take_arrays(&sc, frame, t, called->ninputs, s->plugin.input);
    const trl_eval_args eval = plugin_args(frame, t, NULL, required, sc.at, args->worker);
    TRL_TRY(call_plugin(frame, called, &eval, NULL, &dt));
    TRL_TRY(check_stable_dt(frame, s, dt));
    const int reduction = t->program->run->reductions.first + t->group->first;
    trli_partial_add(&frame->reduction[reduction].part[args->worker], TRLI_MERGE_MIN, &dt, 1);
done:
    return err;
}

trl_err trli_task_plugin(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_step *s = t->step;
    trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    const trli_opaque *called = s->plugin.called;
    (void)done;
    const trl_array *required = take_arrays(&sc, frame, t, called->ninputs, s->plugin.input);
    trl_array *computed = take_arrays(&sc, frame, t, s->nout, s->field);
    const trl_eval_args eval = plugin_args(frame, t, computed, required, sc.at, args->worker);
    const trl_box box = share_of(t, &t->box, args);
    return call_plugin(frame, called, &eval, &box, NULL);
}

static trl_err run_modifier(const trli_step_task *t, const trli_slab *slab, const trl_box *box,
                            const trl_task_args *args)
{
    trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    const trl_array *required = take_arrays(&sc, frame, t, slab->ninputs, slab->input);
    trl_array *computed = take_arrays(&sc, frame, t, 1, &slab->field);
    trl_eval_args eval = plugin_args(frame, t, computed, required, sc.at, args->worker);
    eval.axis = slab->axis;
    eval.side = slab->side;
    return call_plugin(frame, slab->modifier, &eval, box, NULL);
}

static trl_err run_slab(const trli_step_task *t, const trli_slab *slab, const trl_task_args *args)
{
    const trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    const trl_box whole = trli_slab_box(t->program, slab, t->patch);
    const trl_box box = share_of(t, &whole, args);
    if (slab->kind == TRLI_SLAB_MODIFIER) return run_modifier(t, slab, &box, args);
    const trli_bound_kernel kernel = bind(&sc, args, t, slab);
    trli_kernel_compute(&kernel, frame, args->worker, sc.at, &box);
    return TRL_OK;
}

trl_err trli_task_slabs(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int k = t->slab; k < t->slab + t->nslabs; ++k) {
        const trli_slab *slab = &t->plan->slab[k];
        if (trl_patch_at_side(t->program->model->layout, patch_of(t), slab->axis, slab->side))
            TRL_TRY(run_slab(t, slab, args));
    }
done:
    return err;
}

trl_err trli_task_scalar(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    (void)done;
    trli_scalar_compute(t->program, t->step, args->frame, args->worker);
    return TRL_OK;
}

#ifdef TRL_POISON
trl_err trli_task_poison(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    (void)done;
    for (int o = 0; o < t->step->nout; ++o) {
        if (!t->program->plan->demand[t->step->field[o]].live) continue;
        const trl_array a = trli_frame_array(frame, t->step->field[o], t->patch, args->space);
        const bool keeps = t->program->model->field[t->step->field[o]].keeps_planes;
        const trl_box box = keeps ? trli_step_box(t->program, t->step, o, t->patch) : a.held;
        for (trl_lidx k = box.lo[2]; k < box.hi[2]; ++k)
            for (trl_lidx j = box.lo[1]; j < box.hi[1]; ++j)
                trli_poison((double *)a.at + trl_array_offset(&a, box.lo[0], j, k),
                            (size_t)(box.hi[0] - box.lo[0]) * sizeof(double), a.type);
    }
    return TRL_OK;
}
#endif

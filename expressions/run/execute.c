/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The task functions: steps of a program at run time. Nothing here allocates or looks a name up. */
#include <float.h>
#include <math.h>
#include <string.h>

#include <chunks_impl.h>
#include <spatialops_impl.h>

#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "tasks_impl.h"

static const trl_patch *patch_of(const trli_step_task *t)
{
    const trl_layout *layout = t->program->model->layout;
    return &layout->patch[layout->local[t->patch]];
}

/* A slab ready to be evaluated on a patch. */
typedef struct ready_slab {
    const trli_slab *slab;
    const trli_slab_run *with;
    trl_box box;
    trli_kernel_run run;
    trl_kernel_grid grid;
    trl_kernel_call call;
    const struct ready_slab *next; /* of a kernel */
} ready_slab;

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

static size_t tile_doubles(const trli_kernel *kernel)
{
    const trl_lidx *tile = trli_kernel_tile(kernel);
    return (size_t)tile[0] * (size_t)tile[1] * (size_t)tile[2];
}

/* Arrays of fields, also as a compiled kernel takes them. */
static size_t arrays_scratch(int inputs, int outputs)
{
    return aligned((size_t)inputs * sizeof(trl_array)) + aligned((size_t)outputs * sizeof(trl_array)) +
           aligned((size_t)(inputs + outputs) * sizeof(trl_kernel_array)) +
           aligned((size_t)inputs * sizeof(trl_kernel_inside));
}

/* Slabs of a kernel are ready at once, others one by one. */
static size_t slabs_scratch(const trli_step *s, const trli_step_plan *p)
{
    size_t all = 0, most = 0;
    for (int k = 0; k < p->nslabs; ++k) {
        const size_t one = aligned(sizeof(ready_slab)) + arrays_scratch(p->slab[k].ninputs, 1);
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
    size_t tile = s->kind == TRLI_STEP_REDUCE ? tile_doubles(run->kernel) * sizeof(double) : 0;
    return arrays_scratch(p->ninputs, s->nout > 1 ? s->nout : 1) + aligned(trli_native_parts_bytes(program, s)) +
           slabs_scratch(s, p) + aligned(tile) + aligned(registers + plugin);
}

/* Arrays of fields on a task's patch. */
static trl_array *take_arrays(scratch *s, const trli_frame *frame, const trli_step_task *t, int n, const int *field)
{
    trl_array *array = take(s, (size_t)n * sizeof *array);
    for (int i = 0; i < n; ++i) array[i] = trli_frame_array(frame, field[i], t->patch);
    return array;
}

static bool comes_before(int v, const trl_gidx p[3], const trli_nonfinite *other)
{
    if (!other->found || v != other->variable) return !other->found || v < other->variable;
    for (int a = 2; a >= 0; --a)
        if (p[a] != other->point[a]) return p[a] < other->point[a];
    return false;
}

static void note_nonfinite(const trli_finite_check *c, int variable, const double *row, trl_lidx n,
                           const trl_lidx start[3])
{
    const trl_patch *patch = c->patch;
    for (trl_lidx i = 0; i < n; ++i) {
        if (fabs(row[i]) <= DBL_MAX) continue;
        trl_gidx point[3] = {patch->first[0] + start[0] + i, patch->first[1] + start[1], patch->first[2] + start[2]};
        if (!comes_before(variable, point, c->found)) return;
        *c->found = (trli_nonfinite){true, variable, {point[0], point[1], point[2]}, row[i]};
        return;
    }
}

static void note_plane(const trli_finite_check *c, int o, const trl_box *tile, trl_lidx k)
{
    const trl_array *array = &c->output[o];
    const trl_lidx n = tile->hi[0] - tile->lo[0], rows = tile->hi[1] - tile->lo[1];
    const double *row = (const double *)array->at + trl_array_offset(array, tile->lo[0], tile->lo[1], k);
    if (trli_rows_finite(row, n, rows, array->stride[1])) return;
    for (trl_lidx j = tile->lo[1]; j < tile->hi[1]; ++j, row += array->stride[1])
        note_nonfinite(c, c->variable[o], row, n, (trl_lidx[3]){tile->lo[0], j, k});
}

void trli_check_finite(void *data, const trl_box *tile)
{
    const trli_finite_check *c = data;
    trl_box box = *tile;
    for (int a = 0; a < 3 && c->within; ++a) {
        if (box.lo[a] < c->within->lo[a]) box.lo[a] = c->within->lo[a];
        if (box.hi[a] > c->within->hi[a]) box.hi[a] = c->within->hi[a];
        if (box.lo[a] >= box.hi[a]) return;
    }
    for (int o = 0; o < c->noutputs; ++o)
        for (trl_lidx k = box.lo[2]; k < box.hi[2]; ++k) note_plane(c, o, &box, k);
}

/* ---- kernels and slabs ---- */

static trli_kernel_run run_on(const trli_frame *frame, const trli_step_task *t, const trl_array *input,
                              const trl_array *output)
{
    return (trli_kernel_run){.grid = &frame->model->layout->grid,
                             .patch = patch_of(t),
                             .input = input,
                             .output = output,
                             .scalar = frame->scalar};
}

/* registers: the caller sets run.scratch. */
static ready_slab *take_slab(scratch *s, const trli_frame *frame, const trli_step_task *t, const trli_slab *slab)
{
    ready_slab *r = take(s, sizeof *r);
    const trl_array *input = take_arrays(s, frame, t, slab->ninputs, slab->input);
    const trl_array *output = take_arrays(s, frame, t, 1, &slab->field);
    trl_kernel_array *array = take(s, (size_t)(slab->ninputs + 1) * sizeof *array);
    *r = (ready_slab){.slab = slab,
                      .with = &t->run->slab[slab - t->plan->slab],
                      .box = trli_slab_box(t->program, slab, t->patch),
                      .run = run_on(frame, t, input, output)};
    r->grid = trli_kernel_grid_of(&r->run);
    trli_native_ready(&r->call, &r->run, slab->ninputs, 1, array, &r->grid);
    return r;
}

void trli_copy_images(const trl_array *array, const trl_box *box, ptrdiff_t behind)
{
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j) {
            double *row = (double *)array->at + trl_array_offset(array, box->lo[0], j, k);
            memcpy(row, row - behind, (size_t)(box->hi[0] - box->lo[0]) * sizeof *row);
        }
}

/* False: compiled, and it found values that are not finite. */
static bool evaluate_slab(const ready_slab *r, const trl_box *box)
{
    if (r->slab->kind == TRLI_SLAB_IMAGE) {
        const ptrdiff_t round = (ptrdiff_t)r->run.grid->cells[r->slab->axis] * r->run.output->stride[r->slab->axis];
        trli_copy_images(r->run.output, box, r->slab->side ? round : -round);
        return true;
    }
    const trli_native_fn native = trli_native_of(&r->with->use);
    if (!native) {
        trli_kernel_evaluate(r->with->kernel, &r->run, box);
        return true;
    }
    trl_kernel_call call = r->call;
    call.number = r->with->use.number;
    trli_native_set_box(&call, box);
    native(&call);
    return call.nonfinite == 0;
}

/* Narrow the box of a slab to some rows, or planes: those beside it, if its ghosts lie along the axis. False: none are.
 */
static bool narrow(const ready_slab *r, int axis, long long lo, long long hi, trl_box *box)
{
    if (r->slab->axis == axis) return r->slab->side ? box->lo[axis] == hi : box->hi[axis] == lo;
    box->lo[axis] = (trl_lidx)lo;
    box->hi[axis] = (trl_lidx)hi;
    return true;
}

static void set_edges_of_rows(const ready_slab *first, long long y, long long y_end, long long z, long long z_end)
{
    for (const ready_slab *r = first; r; r = r->next) {
        trl_box box = r->box;
        if (narrow(r, 1, y, y_end, &box) && narrow(r, 2, z, z_end, &box)) (void)evaluate_slab(r, &box);
    }
}

static void set_edges(const trl_kernel_call *call, long long y, long long y_end, long long z, long long z_end)
{
    set_edges_of_rows(call->edges, y, y_end, z, z_end);
}

/* The slabs at the ends of a kernel's rows that its patch has. */
static const ready_slab *take_edges(scratch *s, const trli_frame *frame, const trli_step_task *t, void **registers)
{
    ready_slab *first = NULL;
    for (int k = 0; k < t->plan->nslabs; ++k) {
        const trli_slab *slab = &t->plan->slab[k];
        if (!trli_slab_is_at(t->program->model->layout, patch_of(t), slab)) continue;
        if (t->run->native && t->run->slab[k].within) continue;
        ready_slab *r = take_slab(s, frame, t, slab);
        r->next = first;
        first = r;
    }
    *registers = s->at;
    for (ready_slab *r = first; r; r = (ready_slab *)r->next) r->run.scratch = *registers;
    return first;
}

trl_err trli_task_kernel(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_step *s = t->step;
    const trli_step_plan *p = t->plan;
    trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    (void)done;
    const trl_array *input = take_arrays(&sc, frame, t, p->ninputs, p->input);
    const trl_array *output = take_arrays(&sc, frame, t, s->nout, s->field);
    trl_kernel_array *array = take(&sc, (size_t)(p->ninputs + s->nout) * sizeof *array);
    trl_kernel_inside *inside = take(&sc, (size_t)p->ninputs * sizeof *inside);
    void *parts = take(&sc, trli_native_parts_bytes(t->program, s));
    trli_finite_check check = {patch_of(t), s->nout, s->variable, output, &frame->nonfinite[args->worker], NULL};
    trli_kernel_run run = run_on(frame, t, input, output);
    run.strains_caches = p->strains_caches;
    run.after = s->variable ? trli_check_finite : NULL;
    run.data = &check;
    const ready_slab *edges = take_edges(&sc, frame, t, &run.scratch);
    trl_box box = trli_box_part(&t->box, t->parts, args->chunk);
    if (!t->run->native) {
        set_edges_of_rows(edges, box.lo[1], box.hi[1], box.lo[2], box.hi[2]);
        trli_kernel_evaluate(t->run->kernel, &run, &box);
        return TRL_OK;
    }
    const trl_kernel_grid grid = trli_kernel_grid_of(&run);
    trl_kernel_call call;
    trli_native_ready(&call, &run, p->ninputs, s->nout, array, &grid);
    trli_native_set_box(&call, &box);
    call.set_edges = edges ? set_edges : NULL;
    call.edges = edges;
    trli_native_set_inside(t->program, s, patch_of(t), input, inside);
    call.inside = inside;
    const trli_native_part *part = trli_native_parts(t->program, s, &call, parts);
    if (!trli_sweep(part, trli_parts_of(t->program, s)->n, t->run->tuning)) trli_check_finite(&check, &box);
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
static trl_err call_plugin(const trli_opaque *called, const trl_eval_args *args, const trl_box *box, double *dt)
{
    const trl_diagnostic *d;
    int said = trl_context_diagnostics(args->ctx, &d);
    trl_err err = dt ? called->stable_dt(called->state, args, dt) : called->evaluate(called->state, args, box);
    if (err == TRL_OK || trl_context_diagnostics(args->ctx, &d) > said) return err;
    return trl_fail(args->ctx, TRL_ERR_PLUGIN, &called->place,
                    "%s of type '%s' failed (%s) without a message at step %lld, t = %g", dt ? "stable_dt" : "evaluate",
                    called->type, trl_err_meaning(err), (long long)args->step, args->t);
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
    TRL_TRY(call_plugin(called, &eval, NULL, &dt));
    if (!(dt > 0))
        TRL_TRY(trl_fail(frame->model->ctx, TRL_ERR_NUMERICS, &called->place,
                         "stable_dt of '%s' (type '%s') gave %g at step %lld, t = %.10g: a stable dt is positive",
                         called->name, called->type, dt, (long long)eval.step, eval.t));
    trli_partial_add(&frame->reduction[t->reduction].part[args->worker], TRLI_MERGE_MIN, &dt, 1);
done:
    return err;
}

trl_err trli_task_plugin(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_step *s = t->step;
    const trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    const trli_opaque *called = s->plugin.called;
    (void)done;
    const trl_array *required = take_arrays(&sc, frame, t, called->ninputs, s->plugin.input);
    trl_array *computed = take_arrays(&sc, frame, t, s->nout, s->field);
    const trl_eval_args eval = plugin_args(frame, t, computed, required, sc.at, args->worker);
    trl_box box = trli_box_part(&t->box, t->parts, args->chunk);
    return call_plugin(called, &eval, &box, NULL);
}

const int *trli_slab_variable(const trli_step *s, const trli_slab *slab)
{
    int i = 0;
    while (s->field[i] != slab->field) ++i;
    return &s->variable[i];
}

static trl_err run_modifier(const trli_step_task *t, const trli_slab *slab, const trl_box *box,
                            const trl_task_args *args)
{
    const trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    const trl_array *required = take_arrays(&sc, frame, t, slab->ninputs, slab->input);
    trl_array *computed = take_arrays(&sc, frame, t, 1, &slab->field);
    trl_eval_args eval = plugin_args(frame, t, computed, required, sc.at, args->worker);
    eval.axis = slab->axis;
    eval.side = slab->side;
    return call_plugin(slab->modifier, &eval, box, NULL);
}

static trl_err run_slab(const trli_step_task *t, const trli_slab *slab, const trl_task_args *args)
{
    const trli_step *s = t->step;
    trli_frame *frame = args->frame;
    scratch sc = {frame->scratch[args->worker]};
    ready_slab *r = take_slab(&sc, frame, t, slab);
    const trl_box box = trli_box_part(&r->box, t->parts, args->chunk);
    if (slab->kind == TRLI_SLAB_MODIFIER) return run_modifier(t, slab, &box, args);
    trli_finite_check check = {patch_of(t),
                               1,
                               s->variable ? trli_slab_variable(s, slab) : NULL,
                               r->run.output,
                               &frame->nonfinite[args->worker],
                               NULL};
    r->run.scratch = sc.at;
    r->run.after = s->variable ? trli_check_finite : NULL;
    r->run.data = &check;
    if (!evaluate_slab(r, &box)) trli_check_finite(&check, &box);
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
    const trli_step *s = t->step;
    trli_frame *frame = args->frame;
    const trl_layout *layout = frame->model->layout;
    static const trl_box one = {{0, 0, 0}, {1, 1, 1}};
    const trl_array output = {.at = &frame->scalar[s->scalar]};
    const trli_kernel_run run = {.grid = &layout->grid,
                                 .patch = &layout->patch[0],
                                 .output = &output,
                                 .scalar = frame->scalar,
                                 .scratch = frame->scratch[args->worker]};
    (void)done;
    trli_kernel_evaluate(t->run->kernel, &run, &one);
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
        trl_array a = trli_frame_array(frame, t->step->field[o], t->patch);
        for (trl_lidx k = a.held.lo[2]; k < a.held.hi[2]; ++k)
            for (trl_lidx j = a.held.lo[1]; j < a.held.hi[1]; ++j)
                trli_poison((double *)a.at + trl_array_offset(&a, a.held.lo[0], j, k),
                            (size_t)(a.held.hi[0] - a.held.lo[0]) * sizeof(double), a.type);
    }
    return TRL_OK;
}
#endif

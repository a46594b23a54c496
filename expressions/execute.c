/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The task functions: steps of a program at run time. Nothing here allocates or looks a name up. */
#include <float.h>
#include <math.h>
#include <string.h>

#include <chunks_impl.h>
#include <spatialops_impl.h>

#include "tasks_impl.h"

static const trl_patch *patch_of(const trli_task *t)
{
    const trl_layout *layout = t->program->model->layout;
    return &layout->patch[layout->local[t->patch]];
}

/* Scratch of a thread: arrays, registers, and for reductions a tile of values. */
typedef struct scratch {
    trl_array *input, *output;
    double *tile;
    void *registers;
} scratch;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t tile_doubles(const trli_kernel *kernel)
{
    const trl_lidx *tile = trli_kernel_tile(kernel);
    return (size_t)tile[0] * (size_t)tile[1] * (size_t)tile[2];
}

size_t trli_step_scratch(const trli_model *model, const trli_step *s)
{
    int inputs = s->ninputs, outputs = s->nout > 1 ? s->nout : 1;
    size_t registers = s->kernel ? trli_kernel_scratch(s->kernel) : 0, opaque = 0;
    if (trli_native_scratch(s) > registers) registers = trli_native_scratch(s);
    for (int k = 0; k < s->nslabs; ++k) {
        size_t need = s->slab[k].kernel ? trli_kernel_scratch(s->slab[k].kernel) : 0;
        if (need > registers) registers = need;
        if (s->slab[k].ninputs > inputs) inputs = s->slab[k].ninputs;
        if (s->slab[k].entry >= 0) opaque = model->entry[s->slab[k].entry].deck->type->scratch_bytes;
    }
    if (s->entry >= 0) opaque = model->entry[s->entry].deck->type->scratch_bytes;
    size_t tile = s->kind == TRLI_STEP_REDUCE && s->kernel ? tile_doubles(s->kernel) * sizeof(double) : 0;
    return aligned((size_t)(inputs + outputs) * sizeof(trl_array)) + aligned(tile) + aligned(registers + opaque);
}

static scratch divide_scratch(const trli_model *model, int worker, int inputs, int outputs, size_t tile)
{
    scratch s;
    char *at = model->scratch[worker];
    s.input = (trl_array *)at;
    s.output = s.input + inputs;
    at += aligned((size_t)(inputs + outputs) * sizeof(trl_array));
    s.tile = (double *)at;
    s.registers = at + aligned(tile * sizeof(double));
    return s;
}

typedef struct finite_check {
    const trli_task *task;
    int noutputs;
    const int *variable;
    const trl_array *output;
    trli_nonfinite *found;
} finite_check;

static bool comes_before(int v, const trl_gidx p[3], const trli_nonfinite *other)
{
    if (!other->found || v != other->variable) return !other->found || v < other->variable;
    for (int a = 2; a >= 0; --a)
        if (p[a] != other->point[a]) return p[a] < other->point[a];
    return false;
}

static void note_nonfinite(const finite_check *c, int variable, const double *row, trl_lidx n, const trl_lidx start[3])
{
    const trl_patch *patch = patch_of(c->task);
    for (trl_lidx i = 0; i < n; ++i) {
        if (fabs(row[i]) <= DBL_MAX) continue;
        trl_gidx point[3] = {patch->first[0] + start[0] + i, patch->first[1] + start[1], patch->first[2] + start[2]};
        if (!comes_before(variable, point, c->found)) return;
        *c->found = (trli_nonfinite){true, variable, {point[0], point[1], point[2]}, row[i]};
        return;
    }
}

/* Look at the tile just stored while it is in cache. */
static void check_tile(void *data, const trl_box *tile)
{
    const finite_check *c = data;
    trl_lidx n = tile->hi[0] - tile->lo[0];
    for (int o = 0; o < c->noutputs; ++o)
        for (trl_lidx k = tile->lo[2]; k < tile->hi[2]; ++k)
            for (trl_lidx j = tile->lo[1]; j < tile->hi[1]; ++j) {
                const double *row =
                    (const double *)c->output[o].at + trl_array_offset(&c->output[o], tile->lo[0], j, k);
                if (!trli_row_finite(row, n))
                    note_nonfinite(c, c->variable[o], row, n, (trl_lidx[3]){tile->lo[0], j, k});
            }
}

trl_err trli_task_kernel(void *data, const trl_task_args *args, bool *done)
{
    const trli_task *t = data;
    const trli_step *s = t->step;
    trli_model *model = t->program->model;
    scratch sc = divide_scratch(model, args->worker, s->ninputs, s->nout, 0);
    (void)done;
    for (int i = 0; i < s->ninputs; ++i) sc.input[i] = trli_model_array(model, s->input[i], t->patch);
    for (int o = 0; o < s->nout; ++o) sc.output[o] = trli_model_array(model, s->field[o], t->patch);
    finite_check check = {t, s->nout, s->variable, sc.output, &model->nonfinite[args->worker]};
    const trli_kernel_run run = {.grid = &model->layout->grid,
                                 .patch = patch_of(t),
                                 .input = sc.input,
                                 .output = sc.output,
                                 .scalar = model->scalar,
                                 .scratch = sc.registers,
                                 .after = s->check ? check_tile : NULL,
                                 .data = &check};
    trl_box box = trli_box_part(&t->box, t->parts, args->chunk);
    if (!s->native)
        trli_kernel_evaluate(s->kernel, &run, &box);
    else if (!trli_native_evaluate(t, &run, &box))
        check_tile(&check, &box);
    return TRL_OK;
}

static trl_eval_args plugin_args(const trli_task *t, const scratch *sc, int worker)
{
    const trli_model *model = t->program->model;
    return (trl_eval_args){.size = sizeof(trl_eval_args),
                           .ctx = model->ctx,
                           .grid = &model->layout->grid,
                           .patch = patch_of(t),
                           .t = model->scalar[t->step->time_scalar],
                           .t_step = model->scalar[TRLI_SCALAR_STEP_TIME],
                           .dt = model->scalar[TRLI_SCALAR_DT],
                           .step = model->step_number,
                           .stage = t->step->stage,
                           .computed = sc->output,
                           .required = sc->input,
                           .scratch = sc->registers,
                           .worker = worker,
                           .axis = -1,
                           .side = -1};
}

/* Call a plugin's evaluate, or its stable_dt if dt is given. */
static trl_err call_plugin(const trli_model *model, int entry, const trl_eval_args *args, const trl_box *box,
                           double *dt)
{
    const trl_expression_entry *deck = model->entry[entry].deck;
    const void *state = model->entry[entry].state;
    const trl_diagnostic *d;
    int said = trl_context_diagnostics(model->ctx, &d);
    trl_err err = dt ? deck->type->stable_dt(state, args, dt) : deck->type->evaluate(state, args, box);
    if (err == TRL_OK || trl_context_diagnostics(model->ctx, &d) > said) return err;
    return trl_fail(model->ctx, TRL_ERR_PLUGIN, &deck->place,
                    "%s of type '%s' failed (%s) without a message at step %lld, t = %g", dt ? "stable_dt" : "evaluate",
                    deck->type->name, trl_err_meaning(err), (long long)args->step, args->t);
}

trl_err trli_task_stable_dt(void *data, const trl_task_args *args, bool *done)
{
    const trli_task *t = data;
    const trli_step *s = t->step;
    trli_model *model = t->program->model;
    scratch sc = divide_scratch(model, args->worker, s->ninputs, 1, 0);
    double dt = INFINITY;
    trl_err err = TRL_OK;
    (void)done;
    for (int i = 0; i < s->ninputs; ++i) sc.input[i] = trli_model_array(model, s->input[i], t->patch);
    trl_eval_args eval = plugin_args(t, &sc, args->worker);
    eval.computed = NULL;
    TRL_TRY(call_plugin(model, s->entry, &eval, NULL, &dt));
    trli_partial_add(&t->reduction->part[args->worker], TRLI_MERGE_MIN, &dt, 1);
done:
    return err;
}

trl_err trli_task_opaque(void *data, const trl_task_args *args, bool *done)
{
    const trli_task *t = data;
    const trli_step *s = t->step;
    trli_model *model = t->program->model;
    scratch sc = divide_scratch(model, args->worker, s->ninputs, s->nout, 0);
    (void)done;
    for (int i = 0; i < s->ninputs; ++i) sc.input[i] = trli_model_array(model, s->input[i], t->patch);
    for (int o = 0; o < s->nout; ++o) sc.output[o] = trli_model_array(model, s->field[o], t->patch);
    trl_eval_args eval = plugin_args(t, &sc, args->worker);
    trl_box box = trli_box_part(&t->box, t->parts, args->chunk);
    return call_plugin(model, s->entry, &eval, &box, NULL);
}

trl_box trli_slab_box(const trli_program *program, const trli_slab *slab, int local_patch)
{
    const trli_model *model = program->model;
    const trl_layout *layout = model->layout;
    const trl_patch *patch = &layout->patch[layout->local[local_patch]];
    trl_box box = trl_patch_owned(layout, patch, model->field[slab->field].location);
    for (int b = 0; b < layout->grid.dim; ++b) {
        if (b == slab->axis) {
            /* A modifier gets all its layers at once; the others one layer each. */
            trl_lidx depth = slab->entry >= 0 && slab->layer > 0 ? slab->layer : 1;
            if (slab->side)
                box.lo[b] = box.hi[b] - 1 + (slab->layer ? slab->layer - depth + 1 : 0);
            else
                box.lo[b] = box.lo[b] - slab->layer;
            box.hi[b] = box.lo[b] + depth;
            continue;
        }
        if (slab->layer == 0) {
            /* Points that a later axis sets are not set here: they may hold nothing yet, where another piece keeps what is there. */
            const int8_t *later = &model->field[slab->field].shrink[(ptrdiff_t)2 * b];
            if (b > slab->axis && trl_patch_at_side(layout, patch, b, 0)) box.lo[b] += later[0];
            if (b > slab->axis && trl_patch_at_side(layout, patch, b, 1)) box.hi[b] -= later[1];
            continue;
        }
        /* Ghosts shared with other patches hold values already; those beyond a side only if that side comes earlier. */
        box.lo[b] -= trl_patch_at_side(layout, patch, b, 0) ? slab->corner_lo[b] : slab->tangential_lo[b];
        box.hi[b] += trl_patch_at_side(layout, patch, b, 1) ? slab->corner_hi[b] : slab->tangential_hi[b];
    }
    return box;
}

static const int *variable_of_slab(const trli_step *s, const trli_slab *slab)
{
    int i = 0;
    while (s->field[i] != slab->field) ++i;
    return &s->variable[i];
}

static trl_err run_slab(const trli_task *t, const trli_slab *slab, const trl_task_args *args)
{
    int worker = args->worker;
    const trli_step *s = t->step;
    trli_model *model = t->program->model;
    scratch sc = divide_scratch(model, worker, slab->ninputs, 1, 0);
    for (int i = 0; i < slab->ninputs; ++i) sc.input[i] = trli_model_array(model, slab->input[i], t->patch);
    sc.output[0] = trli_model_array(model, slab->field, t->patch);
    trl_box box = trli_slab_box(t->program, slab, t->patch);
    box = trli_box_part(&box, t->parts, args->chunk);
    if (slab->entry >= 0) {
        trl_eval_args eval = plugin_args(t, &sc, worker);
        eval.axis = slab->axis;
        eval.side = slab->side;
        return call_plugin(model, slab->entry, &eval, &box, NULL);
    }
    finite_check check = {t, 1, s->check ? variable_of_slab(s, slab) : NULL, sc.output, &model->nonfinite[worker]};
    const trli_kernel_run run = {.grid = &model->layout->grid,
                                 .patch = patch_of(t),
                                 .input = sc.input,
                                 .output = sc.output,
                                 .scalar = model->scalar,
                                 .scratch = sc.registers,
                                 .after = s->check ? check_tile : NULL,
                                 .data = &check};
    trli_kernel_evaluate(slab->kernel, &run, &box);
    return TRL_OK;
}

trl_err trli_task_slabs(void *data, const trl_task_args *args, bool *done)
{
    const trli_task *t = data;
    const trli_step *s = t->step;
    trl_err err = TRL_OK;
    (void)done;
    for (int k = t->slab; k < t->slab + t->nslabs; ++k) {
        const trli_slab *slab = &s->slab[k];
        if (trl_patch_at_side(t->program->model->layout, patch_of(t), slab->axis, slab->side))
            TRL_TRY(run_slab(t, slab, args));
    }
done:
    return err;
}

trl_err trli_task_scalar(void *data, const trl_task_args *args, bool *done)
{
    const trli_task *t = data;
    const trli_step *s = t->step;
    trli_model *model = t->program->model;
    static const trl_box one = {{0, 0, 0}, {1, 1, 1}};
    const trl_array output = {.at = &model->scalar[s->scalar]};
    scratch sc = divide_scratch(model, args->worker, 0, 1, 0);
    const trli_kernel_run run = {.grid = &model->layout->grid,
                                 .patch = &model->layout->patch[0],
                                 .output = &output,
                                 .scalar = model->scalar,
                                 .scratch = sc.registers};
    (void)done;
    trli_kernel_evaluate(s->kernel, &run, &one);
    return TRL_OK;
}

#ifdef TRL_POISON
trl_err trli_task_poison(void *data, const trl_task_args *args, bool *done)
{
    const trli_task *t = data;
    const trli_model *model = t->program->model;
    (void)args, (void)done;
    for (int o = 0; o < t->step->nout; ++o) {
        if (!t->program->demand[t->step->field[o]].live) continue;
        trl_array a = trli_model_array(model, t->step->field[o], t->patch);
        for (trl_lidx k = a.held.lo[2]; k < a.held.hi[2]; ++k)
            for (trl_lidx j = a.held.lo[1]; j < a.held.hi[1]; ++j)
                trli_poison((double *)a.at + trl_array_offset(&a, a.held.lo[0], j, k),
                            (size_t)(a.held.hi[0] - a.held.lo[0]) * sizeof(double), a.type);
    }
    return TRL_OK;
}
#endif

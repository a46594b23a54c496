/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels of steps and slabs bound to arrays. */
#include <stddef.h>

#include <spatialops_impl.h>

#include "compute_impl.h"
#include "pipeline_impl.h"
#include "tasks_impl.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

bool trli_slab_is_within(const trli_model *model, const trli_slab *slab)
{
    return slab->of_row && !(model->settings.disabled_passes & (TRL_PASS_GHOSTS | TRL_PASS_HOISTING));
}

void trli_native_set_array(trl_kernel_array *to, const trl_array *from)
{
    to->at = from->at;
    for (int a = 0; a < 3; ++a) to->stride[a] = from->stride[a];
}

void trli_native_set_inside(const trli_program *program, const trli_step *step, const trl_patch *patch,
                            const trl_array *input, trl_kernel_inside *inside)
{
    const trl_layout *layout = program->model->layout;
    const trli_step_plan *p = trli_plan_of(program, step);
    const trli_slab_run *run = trli_run_of(program, step)->slab;
    for (int i = 0; i < p->ninputs; ++i)
        for (int a = 0; a < 3; ++a) {
            inside[i].lo[a] = input[i].held.lo[a];
            inside[i].hi[a] = input[i].held.hi[a];
        }
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        const int a = slab->axis;
        if (!run[k].within || slab->layer > 1 || !trli_slab_is_at(layout, patch, slab)) continue;
        const trl_box owned = trl_patch_owned(layout, patch, program->model->field[slab->field].location);
        const bool image = slab->kind == TRLI_SLAB_IMAGE;
        if (slab->side || image) inside[slab->read_as].hi[a] = owned.hi[a];
        if (!slab->side || image) inside[slab->read_as].lo[a] = owned.lo[a];
    }
}

size_t trli_native_parts_bytes(const trli_program *program, const trli_step *step)
{
    const trli_parts *parts = trli_parts_of(program, step);
    size_t bytes = 0;
    for (int i = 0; i < parts->n; ++i) {
        const size_t inputs = (size_t)parts->part[i].reads.nfields, outputs = (size_t)parts->part[i].nroots;
        bytes += sizeof(trli_native_part) + (inputs + outputs) * sizeof(trl_kernel_array) +
                 inputs * sizeof(trl_kernel_inside);
    }
    return bytes;
}

trli_native_part *trli_native_parts(const trli_program *program, const trli_step *step, const trl_kernel_call *whole,
                                    void *room)
{
    const trli_parts *parts = trli_parts_of(program, step);
    const trli_step_run *run = trli_run_of(program, step);
    trli_native_part *part = room;
    char *at = (char *)(part + parts->n);
    for (int i = 0; i < parts->n; ++i) {
        const trli_step_part *of = &parts->part[i];
        trl_kernel_array *array = (trl_kernel_array *)at;
        trl_kernel_inside *inside = (trl_kernel_inside *)(array + of->reads.nfields + of->nroots);
        at = (char *)(inside + of->reads.nfields);
        for (int f = 0; f < of->reads.nfields; ++f) {
            array[f] = whole->input[of->input[f]];
            inside[f] = whole->inside[of->input[f]];
        }
        for (int r = 0; r < of->nroots; ++r) array[of->reads.nfields + r] = whole->output[of->root[r]];
        part[i] = (trli_native_part){trli_native_of(&run->part[i]), *whole};
        part[i].call.input = array;
        part[i].call.output = array + of->reads.nfields;
        part[i].call.inside = inside;
        part[i].call.number = run->part[i].number;
        if (i > 0) part[i].call.set_edges = NULL; /* the first part has set the edges for all */
    }
    return part;
}

static int inputs_of(const trli_program *program, const trli_step *step, const trli_slab *slab)
{
    return slab ? slab->ninputs : trli_plan_of(program, step)->ninputs;
}

size_t trli_bound_kernel_bytes(const trli_program *program, const trli_step *step, const trli_slab *slab)
{
    const size_t inputs = (size_t)inputs_of(program, step, slab),
                 outputs = slab || step->nout == 0 ? 1 : (size_t)step->nout;
    const size_t parts = slab ? sizeof(trli_native_part) : trli_native_parts_bytes(program, step);
    return aligned(sizeof(trl_kernel_grid)) + aligned((inputs + outputs) * sizeof(trl_array)) +
           aligned((inputs + outputs) * sizeof(trl_kernel_array)) + aligned(inputs * sizeof(trl_kernel_inside)) +
           aligned(parts);
}

static void take_room(trli_bound_kernel *k, char *room)
{
    const size_t inputs = (size_t)k->ninputs, all = inputs + (size_t)k->noutputs;
    k->grid = (trl_kernel_grid *)room;
    room += aligned(sizeof *k->grid);
    k->array = (trl_array *)room;
    room += aligned(all * sizeof *k->array);
    k->native_array = (trl_kernel_array *)room;
    room += aligned(all * sizeof *k->native_array);
    k->inside = (trl_kernel_inside *)room;
    room += aligned(inputs * sizeof *k->inside);
    k->part = (trli_native_part *)room;
}

/* The variable that a slab of a checking step computes. */
static const int *slab_variable(const trli_step *s, const trli_slab *slab)
{
    int i = 0;
    while (s->field[i] != slab->field) ++i;
    return &s->variable[i];
}

/* Bind what the kernel of a slab has of its own. */
static void bind_slab(const trli_kernel_place *place, trli_bound_kernel *k)
{
    const trli_step *s = place->step;
    const trli_slab *slab = place->slab;
    const trli_slab_run *run = &trli_run_of(place->program, s)->slab[slab - trli_plan_of(place->program, s)->slab];
    k->kernel = run->kernel;
    k->native = trli_native_of(&run->use) != NULL;
    if (s->variable && s->kind == TRLI_STEP_PLANES) k->variable = slab_variable(s, slab);
    if (slab->kind != TRLI_SLAB_IMAGE) return;
    const ptrdiff_t round = (ptrdiff_t)k->cells->cells[slab->axis] * k->array[k->ninputs].stride[slab->axis];
    k->behind = slab->side ? round : -round;
}

static void bind_native(const trli_kernel_place *place, trli_bound_kernel *k)
{
    const trli_step_run *run = trli_run_of(place->program, place->step);
    for (int i = 0; i < k->ninputs + k->noutputs; ++i) trli_native_set_array(&k->native_array[i], &k->array[i]);
    const trl_kernel_call call = {.input = k->native_array,
                                  .output = k->native_array + k->ninputs,
                                  .grid = k->grid,
                                  .inside = k->inside,
                                  .block = k->block,
                                  .interleave = k->interleave};
    if (place->slab) {
        const trli_code_use *use = &run->slab[place->slab - trli_plan_of(place->program, place->step)->slab].use;
        k->nparts = 1;
        k->part[0] = (trli_native_part){trli_native_of(use), call};
        k->part[0].call.number = use->number;
        k->part[0].call.inside = NULL;
        return;
    }
    trli_native_set_inside(place->program, place->step, k->patch, k->array, k->inside);
    k->nparts = trli_parts_of(place->program, place->step)->n;
    (void)trli_native_parts(place->program, place->step, &call, k->part);
}

void trli_kernel_bind(const trli_kernel_place *place, const trli_frame *frame, void *room, trli_bound_kernel *k)
{
    static const long long all_rows = 1LL << 40;
    const trl_layout *layout = frame->model->layout;
    const trli_step *s = place->step;
    const trli_step_run *run = trli_run_of(place->program, s);
    *k = (trli_bound_kernel){.cells = &layout->grid,
                             .patch = &layout->patch[place->patch],
                             .kernel = run->kernel,
                             .native = run->native,
                             .program = place->program,
                             .step = place->slab ? NULL : s,
                             .block = all_rows,
                             .interleave = 1,
                             .ninputs = inputs_of(place->program, s, place->slab),
                             .noutputs = place->slab ? 1 : s->nout,
                             .variable = place->slab ? NULL : s->variable,
                             .exceeds_caches = !place->slab && trli_plan_of(place->program, s)->exceeds_caches};
    take_room(k, room);
    for (int i = 0; i < k->ninputs; ++i)
        k->array[i] = trli_frame_array(frame, place->input[i], place->patch, place->space);
    for (int o = 0; o < k->noutputs; ++o)
        k->array[k->ninputs + o] = trli_frame_array(frame, place->output[o], place->patch, place->space);
    const trli_kernel_run on = {.grid = k->cells, .patch = k->patch};
    *k->grid = trli_kernel_grid_of(&on);
    if (place->slab) bind_slab(place, k);
    if (k->native) bind_native(place, k);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary layers folded into kernels. A kernel that alone reads what lies beyond a side, and from the row beside it, sets it itself, before
 * that row: there are no tasks for it, and no pass over memory of its own. What follows from that row a compiled kernel need not even store.
 * Beyond periodic sides of a patch that has both of an axis, there are images of its own points: a compiled kernel reads the points. */
#include <stdlib.h>
#include <string.h>

#include "model_impl.h"

typedef struct folding {
    trli_program *program;
    const trli_model *model;
} folding;

static bool has_field(const int *list, int n, int field)
{
    for (int i = 0; i < n; ++i)
        if (list[i] == field) return true;
    return false;
}

static int bit_of(trl_location location, int axis)
{
    return location >> axis & 1;
}

/* Points that a location has more of along an axis than another one. */
static int further(const folding *fo, trl_location at, trl_location from, int axis)
{
    return fo->model->layout->grid.periodic[axis] ? 0 : bit_of(at, axis) - bit_of(from, axis);
}

/* Whether offsets lead from points of a location beyond a field's sides of an axis. */
static bool leaves(const folding *fo, const trl_offsets *part, trl_location at, int field, int axis)
{
    return part->lo[axis] < 0 || part->hi[axis] + further(fo, at, fo->model->field[field].location, axis) > 0;
}

static bool kernel_leaves(const folding *fo, const trli_kernel *kernel, trl_location at, int field, int axis)
{
    const int *fields;
    const int n = trli_kernel_inputs(kernel, &fields);
    for (int i = 0; i < n; ++i) {
        const trl_footprint f = trli_kernel_footprint(kernel, i);
        for (int p = 0; fields[i] == field && p < f.n; ++p)
            if (leaves(fo, &f.part[p], at, field, axis)) return true;
    }
    return false;
}

static bool slab_reads_beyond(const folding *fo, const trli_slab *slab, int field, int axis)
{
    if (slab->field != field && !has_field(slab->input, slab->ninputs, field)) return false;
    if (slab->axis == axis) return false; /* it reads points inside */
    if (slab->image) return false;        /* so does this */
    return slab->entry >= 0 || slab->corner_lo[axis] || slab->corner_hi[axis] || slab->tangential_lo[axis] ||
           slab->tangential_hi[axis] ||
           kernel_leaves(fo, slab->kernel, fo->model->field[slab->field].location, field, axis);
}

/* Whether a step's results are computed on the points owned, no more. */
static bool is_on_owned(const folding *fo, const trli_step *s)
{
    const trli_field *f = &fo->model->field[s->field[0]];
    return f->exchanged || f->persistent;
}

/* Whether a step, its slabs aside, may read what lies beyond a field's sides of an axis. */
static bool step_reads_beyond(const folding *fo, const trli_step *s, int field, int axis)
{
    if (!has_field(s->input, s->ninputs, field)) return false;
    if (s->kind == TRLI_STEP_REDUCE && s->kernel) return kernel_leaves(fo, s->kernel, s->location, field, axis);
    if (s->kind != TRLI_STEP_KERNEL || !is_on_owned(fo, s)) return true;
    return kernel_leaves(fo, s->kernel, fo->model->field[s->field[0]].location, field, axis);
}

/* Whether somebody but one kernel may do so. */
static bool others_read_beyond(const folding *fo, int kernel, int field, int axis)
{
    for (int i = 0; i < fo->program->nsteps; ++i) {
        const trli_step *s = &fo->program->step[i];
        if (!s->live) continue;
        if (i != kernel && step_reads_beyond(fo, s, field, axis)) return true;
        for (int k = 0; k < s->nslabs; ++k)
            if (slab_reads_beyond(fo, &s->slab[k], field, axis)) return true;
    }
    return false;
}

/* Whether what a kernel reads beyond a field's sides of an axis is read by the row itself that lies next to it: whoever computes that row
 * may set it. A row is never cut, so along x any distance will do. */
static bool stays_beside(const folding *fo, const trli_step *s, int field, int axis)
{
    const trl_location at = fo->model->field[s->field[0]].location, from = fo->model->field[field].location;
    int input = 0;
    while (s->input[input] != field) ++input;
    const trl_footprint f = trli_kernel_footprint(s->kernel, input);
    if (axis > 0 && further(fo, at, from, axis) != 0) return false;
    for (int p = 0; p < f.n; ++p) {
        const trl_offsets *part = &f.part[p];
        if (!leaves(fo, part, at, field, axis)) continue;
        if (axis > 0 && (part->lo[axis] < -1 || part->hi[axis] > 1)) return false;
        for (int b = 0; b < fo->model->layout->grid.dim; ++b)
            if (b != axis && (part->lo[b] != 0 || part->hi[b] != 0)) return false;
    }
    for (int b = 1; b < fo->model->layout->grid.dim; ++b) /* each row computed is one of the field */
        if (further(fo, at, from, b) > 0) return false;
    return true;
}

/* Whether a step writes what a slab reads. */
static bool writes_for(const trli_step *s, const trli_slab *slab)
{
    const int *scalars;
    const int n = trli_kernel_scalars(slab->kernel, &scalars);
    if (s->kind == TRLI_STEP_REDUCE || s->kind == TRLI_STEP_SCALAR) return has_field(scalars, n, s->scalar);
    for (int o = 0; o < s->nout; ++o)
        if (s->field[o] == slab->field || has_field(slab->input, slab->ninputs, s->field[o])) return true;
    return false;
}

/* Whether a slab can be set later than in its step: with the rows of a kernel. */
static bool may_wait(const folding *fo, int fill, int kernel, const trli_slab *slab)
{
    if (slab->entry >= 0) return false;
    for (int a = 0; a < 3; ++a)
        if (slab->tangential_lo[a] || slab->tangential_hi[a] || slab->corner_lo[a] || slab->corner_hi[a]) return false;
    for (int i = fill + 1; i <= kernel; ++i)
        if (fo->program->step[i].live && writes_for(&fo->program->step[i], slab)) return false;
    return true;
}

static bool is_of(const trli_slab *slab, int field, int axis)
{
    return slab->axis == axis && slab->field == field;
}

/* The step before the kernel that sets the ghosts of a field beyond the sides of an axis, or -1 if that cannot wait for the kernel. */
static int find_fill(const folding *fo, int kernel, int field, int axis)
{
    const trli_step *step = fo->program->step;
    int fill = kernel - 1, slabs = 0;
    if (!step_reads_beyond(fo, &step[kernel], field, axis) || !stays_beside(fo, &step[kernel], field, axis)) return -1;
    if (others_read_beyond(fo, kernel, field, axis)) return -1;
    while (fill >= 0 && !(step[fill].live && step[fill].kind == TRLI_STEP_FILL &&
                          has_field(step[fill].field, step[fill].nout, field)))
        --fill;
    for (int k = 0; fill >= 0 && k < step[fill].nslabs; ++k) {
        if (!is_of(&step[fill].slab[k], field, axis)) continue;
        if (!may_wait(fo, fill, kernel, &step[fill].slab[k])) return -1;
        ++slabs;
    }
    return slabs > 0 ? fill : -1;
}

/* ---- ghosts within kernels ---- */

/* Whether a layer follows from the row of points inside that it is beside, of the fields that its kernel is given. */
static bool follows_from_row(const trli_step *s, const trli_slab *slab)
{
    for (int i = 0; i < slab->ninputs; ++i) {
        const trl_footprint f = trli_kernel_footprint(slab->kernel, i);
        const trl_offsets hull = trl_footprint_hull(&f);
        if (!has_field(s->input, s->ninputs, slab->input[i])) return false;
        for (int a = 0; a < 3; ++a) {
            if (a != slab->axis && (hull.lo[a] != 0 || hull.hi[a] != 0)) return false;
            if (a == slab->axis && (slab->side ? hull.hi[a] > -slab->layer : hull.lo[a] < slab->layer)) return false;
        }
    }
    return true;
}

/* Note whether the kernel of a step can compute all the ghosts of a field beyond a side itself. */
static void find_of_row(trli_step *s, int field, int axis, int side)
{
    int layers = 0, input = 0;
    bool all = true;
    while (s->input[input] != field) ++input;
    for (int k = 0; k < s->nslabs; ++k)
        if (is_of(&s->slab[k], field, axis) && s->slab[k].side == side)
            all &= ++layers <= TRL_KERNEL_GHOSTS && (s->slab[k].image || follows_from_row(s, &s->slab[k]));
    for (int k = 0; k < s->nslabs; ++k) {
        if (!is_of(&s->slab[k], field, axis) || s->slab[k].side != side) continue;
        s->slab[k].of_row = all;
        s->slab[k].read_as = input;
    }
}

/* ---- images ---- */

static int find_exchanged(const trli_step *s, int field)
{
    int i = 0;
    while (i < s->nexchanged && s->exchanged[i] != field) ++i;
    return i;
}

/* Whether all that read what lies beyond the sides of a periodic axis after an exchange are kernels that can have images themselves. */
static bool may_leave_images(const folding *fo, int fill, int field, int axis)
{
    const trl_layout *layout = fo->model->layout;
    bool written = false;
    if (!layout->grid.periodic[axis] || layout->counts[axis] > 1) return false;
    if (find_exchanged(&fo->program->step[fill], field) == fo->program->step[fill].nexchanged) return false;
    for (int i = fill; i < fo->program->nsteps; ++i) {
        const trli_step *s = &fo->program->step[i];
        if (!s->live) continue;
        if (i > fill && find_exchanged(s, field) < s->nexchanged) break;
        for (int k = 0; k < s->nslabs; ++k)
            if (slab_reads_beyond(fo, &s->slab[k], field, axis)) return false;
        written |= s->kind != TRLI_STEP_FILL && has_field(s->field, s->nout, field);
        if (!step_reads_beyond(fo, s, field, axis)) continue;
        if (written || s->kind != TRLI_STEP_KERNEL || !is_on_owned(fo, s) || !stays_beside(fo, s, field, axis))
            return false;
    }
    return true;
}

/* Leave images beyond the sides of an axis out of an exchange. */
static void narrow_exchange(const folding *fo, trli_step *fill, int i, int axis)
{
    trl_footprint *reach = &fill->exchanged_reach[i];
    for (int p = 0; p < reach->n; ++p) reach->part[p].lo[axis] = reach->part[p].hi[axis] = 0;
    if (trli_needs_exchange(fo->model->layout, reach)) return;
    --fill->nexchanged;
    for (; i < fill->nexchanged; ++i) {
        fill->exchanged[i] = fill->exchanged[i + 1];
        fill->exchanged_reach[i] = fill->exchanged_reach[i + 1];
    }
    fill->live = fill->nslabs > 0 || fill->nexchanged > 0;
}

static trl_err add_images(const folding *fo, trli_step *kernel, int field, int axis, const int layers[2])
{
    trli_slab *longer = realloc(kernel->slab, (size_t)(kernel->nslabs + layers[0] + layers[1]) * sizeof *longer);
    if (!longer) return trl_fail(fo->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for images beyond periodic sides");
    kernel->slab = longer;
    for (int side = 0; side < 2; ++side) {
        for (int layer = 1; layer <= layers[side]; ++layer)
            kernel->slab[kernel->nslabs++] = (trli_slab){.field = field,
                                                         .axis = axis,
                                                         .side = side,
                                                         .layer = layer,
                                                         .value = trli_ir_field(&fo->program->model->ir, field),
                                                         .image = true,
                                                         .entry = -1};
        find_of_row(kernel, field, axis, side);
    }
    return fo->model->ir.err;
}

/* Leave the images of one of the exchanged fields beyond the sides of an axis to the kernels that read them. */
static trl_err leave_images(const folding *fo, int fill, int field, int axis)
{
    trli_step *step = fo->program->step;
    const trl_gidx points = fo->model->layout->grid.cells[axis];
    const int at = find_exchanged(&step[fill], field);
    const trl_offsets reach = trl_footprint_hull(&step[fill].exchanged_reach[at]);
    const int layers[2] = {-reach.lo[axis], reach.hi[axis]};
    trl_err err = TRL_OK;
    if (layers[0] + layers[1] == 0 || layers[0] > points || layers[1] > points) return TRL_OK;
    for (int i = fill + 1; i < fo->program->nsteps; ++i) {
        if (!step[i].live) continue;
        if (find_exchanged(&step[i], field) < step[i].nexchanged) break;
        if (step_reads_beyond(fo, &step[i], field, axis)) TRL_TRY(add_images(fo, &step[i], field, axis, layers));
    }
    narrow_exchange(fo, &step[fill], at, axis);
done:
    return err;
}

static trl_err fold_exchange(const folding *fo, int fill)
{
    const trli_step *s = &fo->program->step[fill];
    trl_err err = TRL_OK;
    for (int i = s->nexchanged - 1; i >= 0; --i) {
        const int field = s->exchanged[i];
        for (int a = 0; a < fo->model->layout->grid.dim; ++a)
            if (may_leave_images(fo, fill, field, a)) TRL_TRY(leave_images(fo, fill, field, a));
    }
done:
    return err;
}

/* ---- all of it ---- */

static trl_err move_slabs(trl_context *ctx, trli_step *fill, trli_step *kernel, int field, int axis)
{
    trli_slab *longer = realloc(kernel->slab, (size_t)(kernel->nslabs + fill->nslabs) * sizeof *longer);
    int kept = 0;
    if (!longer) return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for boundary conditions");
    kernel->slab = longer;
    for (int k = 0; k < fill->nslabs; ++k) {
        trli_slab *to = is_of(&fill->slab[k], field, axis) ? &kernel->slab[kernel->nslabs++] : &fill->slab[kept++];
        *to = fill->slab[k];
    }
    fill->nslabs = kept;
    fill->live = kept > 0 || fill->nexchanged > 0;
    for (int side = 0; side < 2; ++side) find_of_row(kernel, field, axis, side);
    return TRL_OK;
}

trl_err trli_program_fold(trli_program *program)
{
    const folding fo = {program, program->model};
    trl_err err = TRL_OK;
    if (fo.model->fusion != TRLI_FUSION_FULL || fo.model->layout->grid.dim < 2) return TRL_OK;
    for (int i = 0; i < program->nsteps; ++i) {
        trli_step *s = &program->step[i];
        if (s->live && s->nexchanged > 0) TRL_TRY(fold_exchange(&fo, i));
        if (!s->live || s->kind != TRLI_STEP_KERNEL || !is_on_owned(&fo, s)) continue;
        for (int k = 0; k < s->ninputs; ++k)
            for (int a = 0; a < fo.model->layout->grid.dim; ++a) {
                const int fill = find_fill(&fo, i, s->input[k], a);
                if (fill >= 0) TRL_TRY(move_slabs(fo.model->ctx, &program->step[fill], s, s->input[k], a));
            }
    }
done:
    return err;
}

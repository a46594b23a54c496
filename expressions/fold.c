/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary layers folded into kernels. A kernel that alone reads what lies beyond a side, and from the row beside it, sets it itself, before
 * that row: there are no tasks for it, and no pass over memory of its own. What follows from that row a compiled kernel need not even store. */
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

/* Whether offsets lead from points of a location beyond a field's sides of an axis. */
static bool leaves(const folding *fo, const trl_offsets *part, trl_location at, int field, int axis)
{
    const int further = bit_of(at, axis) - bit_of(fo->model->field[field].location, axis);
    return part->lo[axis] < 0 || part->hi[axis] + further > 0;
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
    return slab->entry >= 0 || slab->corner_lo[axis] || slab->corner_hi[axis] ||
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
    if (axis > 0 && bit_of(at, axis) != bit_of(from, axis)) return false;
    for (int p = 0; p < f.n; ++p) {
        const trl_offsets *part = &f.part[p];
        if (!leaves(fo, part, at, field, axis)) continue;
        if (axis > 0 && (part->lo[axis] < -1 || part->hi[axis] > 1)) return false;
        for (int b = 0; b < fo->model->layout->grid.dim; ++b)
            if (b != axis && (part->lo[b] != 0 || part->hi[b] != 0)) return false;
    }
    for (int b = 1; b < fo->model->layout->grid.dim; ++b) /* each row computed is one of the field */
        if (bit_of(at, b) > bit_of(from, b)) return false;
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
            all &= ++layers <= TRL_KERNEL_GHOSTS && follows_from_row(s, &s->slab[k]);
    for (int k = 0; k < s->nslabs; ++k) {
        if (!is_of(&s->slab[k], field, axis) || s->slab[k].side != side) continue;
        s->slab[k].of_row = all;
        s->slab[k].read_as = input;
    }
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
    fill->live = kept > 0 || fill->exchange;
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

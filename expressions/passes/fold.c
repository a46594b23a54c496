/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary layers folded into kernels. A kernel that alone reads what lies beyond a side, and from the row beside it,
 * sets it itself, before that row: there are no tasks for it, and no pass over memory of its own. What follows from
 * that row a compiled kernel need not even store. Beyond periodic sides of a patch that has both of an axis, there are
 * images of its own points: a compiled kernel reads the points. */

#include "memory_impl.h"
#include "model_impl.h"
#include "pipeline_impl.h"
#include "program_touches_impl.h"

/* One step's use of a field or scalar. */
typedef struct use {
    int step;
    int at;        /* which of the step's inputs or exchanged fields, or of its slabs; -1: only its slabs read it */
    unsigned axes; /* the step itself may read what lies beyond the sides of these, */
    unsigned slab_axes; /* or its slabs may */
    int next;           /* -1: the last */
} use;

/* All of a kind in the order of steps, found once: a program may have thousands of steps and fields. */
typedef struct uses {
    int *first, *last; /* by field, then by scalar */
    use *use;
    int n, capacity;
} uses;

typedef struct folding {
    trli_program *program;
    const trli_model *model;
    uses readers, writers, exchanges;
    uses ghosts;    /* slabs of fills, by the fields that they set */
    int *beyond;    /* [3 * field + axis] how many steps and slabs may read there */
    int *read_by;   /* [field] the last kernel looked at that reads it */
    int *remaining; /* [step] slabs of a fill that no kernel has taken */
} folding;

enum { ALL_AXES = 7 };

static trli_step_plan *plan_at(const folding *fo, int step)
{
    return &fo->program->plan->step[step];
}

static const use *first_of(const uses *u, int key)
{
    return u->first[key] < 0 ? NULL : &u->use[u->first[key]];
}

static const use *next_of(const uses *u, const use *one)
{
    return one->next < 0 ? NULL : &u->use[one->next];
}

static bool has_axis(unsigned axes, int axis)
{
    return axes >> axis & 1;
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

/* The axes beyond whose sides a kernel reads one of its inputs, from points of a location. */
static unsigned axes_left(const folding *fo, const trli_reads *reads, int input, trl_location at, int field)
{
    const trl_footprint f = reads->footprint[input];
    unsigned axes = 0;
    for (int p = 0; p < f.n; ++p)
        for (int a = 0; a < fo->model->layout->grid.dim; ++a)
            if (leaves(fo, &f.part[p], at, field, a)) axes |= 1u << a;
    return axes;
}

/* Beyond which sides a slab may read its own field (-1) or one of its inputs. */
static unsigned axes_of_slab(const folding *fo, const trli_slab *slab, int input)
{
    unsigned axes = 0;
    for (int a = 0; a < 3; ++a)
        if (slab->kind == TRLI_SLAB_MODIFIER || slab->corner_lo[a] || slab->corner_hi[a] || slab->tangential_lo[a] ||
            slab->tangential_hi[a])
            axes |= 1u << a;
    if (slab->kind != TRLI_SLAB_MODIFIER && input >= 0)
        axes |= axes_left(fo, &slab->reads, input, fo->model->field[slab->field].location, slab->input[input]);
    return axes & ~(1u << slab->axis); /* along its axis it reads points inside */
}

/* Whether a step's results are computed on the points owned, no more. */
static bool is_on_owned(const folding *fo, const trli_step *s)
{
    const trli_model_field *f = &fo->model->field[s->field[0]];
    return f->exchanged || (f->persistent && !f->lasting);
}

/* Beyond which sides a step, its slabs aside, may read one of its inputs. */
static unsigned axes_of_step(const folding *fo, const trli_step *s, int input)
{
    const trli_step_plan *p = trli_plan_of(fo->program, s);
    const int field = p->input[input];
    if (s->kind == TRLI_STEP_REDUCE) return axes_left(fo, &p->reads, input, s->reduce.location, field);
    if (s->kind != TRLI_STEP_KERNEL || !is_on_owned(fo, s)) return ALL_AXES;
    return axes_left(fo, &p->reads, input, fo->model->field[s->field[0]].location, field);
}

/* ---- who uses what ---- */

static trl_err no_memory(const folding *fo)
{
    return trli_no_memory(fo->model->ctx, NULL, "for what the %d steps of program '%s' read and write",
                          fo->program->nsteps, fo->program->name);
}

static trl_err start_uses(const folding *fo, uses *u, int keys)
{
    u->first = trli_new(fo->model->ctx, (size_t)keys + 1, sizeof *u->first);
    u->last = trli_new(fo->model->ctx, (size_t)keys + 1, sizeof *u->last);
    if (!u->first || !u->last) return no_memory(fo);
    for (int k = 0; k < keys; ++k) u->first[k] = u->last[k] = -1;
    return TRL_OK;
}

static void free_uses(uses *u)
{
    trli_free(u->first);
    trli_free(u->last);
    trli_free(u->use);
}

static trl_err add_use(const folding *fo, uses *u, int key, use one)
{
    if (!trli_make_room(fo->model->ctx, &u->use, u->n, 1, &u->capacity, sizeof *u->use)) return no_memory(fo);
    one.next = -1;
    *(u->last[key] < 0 ? &u->first[key] : &u->use[u->last[key]].next) = u->n;
    u->last[key] = u->n;
    u->use[u->n++] = one;
    return TRL_OK;
}

static trl_err add_reader(folding *fo, int field, use one)
{
    uses *u = &fo->readers;
    for (int a = 0; a < 3; ++a)
        fo->beyond[(ptrdiff_t)3 * field + a] += has_axis(one.axes, a) + has_axis(one.slab_axes, a);
    if (u->last[field] < 0 || u->use[u->last[field]].step != one.step) return add_use(fo, u, field, one);
    u->use[u->last[field]].axes |= one.axes;
    u->use[u->last[field]].slab_axes |= one.slab_axes;
    return TRL_OK;
}

static trl_err add_slab(folding *fo, int step, int k)
{
    const trli_slab *slab = &plan_at(fo, step)->slab[k];
    trl_err err = TRL_OK;
    TRL_TRY(add_reader(fo, slab->field, (use){.step = step, .at = -1, .slab_axes = axes_of_slab(fo, slab, -1)}));
    for (int i = 0; i < slab->ninputs; ++i)
        TRL_TRY(add_reader(fo, slab->input[i], (use){.step = step, .at = -1, .slab_axes = axes_of_slab(fo, slab, i)}));
    if (fo->program->step[step].kind == TRLI_STEP_FILL)
        TRL_TRY(add_use(fo, &fo->ghosts, slab->field, (use){.step = step, .at = k}));
done:
    return err;
}

/* Scalars that a call sets. */
static trl_err add_scalars(folding *fo, int step)
{
    trli_program_touches touched = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_step_touches_find(fo->program, &fo->program->step[step], &touched));
    for (int i = 0; i < fo->model->nscalars; ++i)
        if (touched.scalar[i] & TRLI_TOUCHES_SET)
            TRL_TRY(add_use(fo, &fo->writers, fo->model->nfields + i, (use){.step = step}));
done:
    trli_program_touches_free(&touched);
    return err;
}

static trl_err add_step(folding *fo, int step)
{
    const trli_step *s = &fo->program->step[step];
    const trli_step_plan *p = plan_at(fo, step);
    trl_err err = TRL_OK;
    for (int i = 0; i < p->ninputs; ++i)
        TRL_TRY(add_reader(fo, p->input[i], (use){.step = step, .at = i, .axes = axes_of_step(fo, s, i)}));
    for (int k = 0; k < p->nslabs; ++k) TRL_TRY(add_slab(fo, step, k));
    for (int i = 0; i < p->exchanged.n; ++i)
        TRL_TRY(add_use(fo, &fo->exchanges, p->exchanged.field[i], (use){.step = step, .at = i}));
    if (s->kind == TRLI_STEP_CALL) TRL_TRY(add_scalars(fo, step));
    if (s->scalar >= 0) return add_use(fo, &fo->writers, fo->model->nfields + s->scalar, (use){.step = step});
    for (int o = 0; o < s->nout; ++o) TRL_TRY(add_use(fo, &fo->writers, s->field[o], (use){.step = step, .at = o}));
done:
    return err;
}

static trl_err find_uses(folding *fo)
{
    const int fields = fo->model->nfields;
    trl_err err = TRL_OK;
    fo->beyond = trli_new(fo->model->ctx, 3 * (size_t)fields + 1, sizeof *fo->beyond);
    fo->read_by = trli_new(fo->model->ctx, (size_t)fields + 1, sizeof *fo->read_by);
    fo->remaining = trli_new(fo->model->ctx, (size_t)fo->program->nsteps + 1, sizeof *fo->remaining);
    if (!fo->beyond || !fo->read_by || !fo->remaining) return no_memory(fo);
    for (int f = 0; f < fields; ++f) fo->read_by[f] = -1;
    TRL_TRY(start_uses(fo, &fo->readers, fields));
    TRL_TRY(start_uses(fo, &fo->writers, fields + fo->model->nscalars));
    TRL_TRY(start_uses(fo, &fo->exchanges, fields));
    TRL_TRY(start_uses(fo, &fo->ghosts, fields));
    for (int i = 0; i < fo->program->nsteps; ++i) {
        fo->remaining[i] = plan_at(fo, i)->nslabs;
        if (plan_at(fo, i)->live) TRL_TRY(add_step(fo, i));
    }
done:
    return err;
}

static void free_folding(folding *fo)
{
    free_uses(&fo->readers);
    free_uses(&fo->writers);
    free_uses(&fo->exchanges);
    free_uses(&fo->ghosts);
    trli_free(fo->beyond);
    trli_free(fo->read_by);
    trli_free(fo->remaining);
}

/* ---- ghosts that can wait for a kernel ---- */

/* Whether each point that a kernel reads beyond a field's sides of an axis is read by the row next to that point only:
 * then the task that computes the row may set the point. A row is never cut, so along x any distance will do. */
static bool stays_beside(const folding *fo, const trli_step *s, int input, int axis)
{
    const trli_step_plan *plan = trli_plan_of(fo->program, s);
    const int field = plan->input[input];
    const trl_location at = fo->model->field[s->field[0]].location, from = fo->model->field[field].location;
    const trl_footprint f = plan->reads.footprint[input];
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

/* Whether a step after one and up to another writes a field or scalar. */
static bool is_written(const folding *fo, int key, int after, int last)
{
    for (const use *u = first_of(&fo->writers, key); u; u = next_of(&fo->writers, u))
        if (u->step > after && u->step <= last && plan_at(fo, u->step)->live) return true;
    return false;
}

/* Whether a slab can be set later than in its step: with the rows of a kernel. */
static bool may_wait(const folding *fo, int fill, int kernel, const trli_slab *slab)
{
    if (slab->kind == TRLI_SLAB_MODIFIER) return false;
    for (int a = 0; a < 3; ++a)
        if (slab->tangential_lo[a] || slab->tangential_hi[a] || slab->corner_lo[a] || slab->corner_hi[a]) return false;
    if (is_written(fo, slab->field, fill, kernel)) return false;
    for (int i = 0; i < slab->ninputs; ++i)
        if (is_written(fo, slab->input[i], fill, kernel)) return false;
    for (int i = 0; i < slab->reads.nscalars; ++i)
        if (is_written(fo, fo->model->nfields + slab->reads.scalar[i], fill, kernel)) return false;
    return true;
}

/* A slab of a fill that a kernel has taken. */
static bool is_taken(const trli_slab *slab)
{
    return slab->taken;
}

/* The slab of a use, if it is one of a fill along an axis that no kernel has taken; else NULL. */
static trli_slab *slab_of(const folding *fo, const use *u, int fill, int axis)
{
    trli_slab *slab = u->step == fill ? &plan_at(fo, fill)->slab[u->at] : NULL;
    return slab && slab->axis == axis && !is_taken(slab) ? slab : NULL;
}

/* The step before the kernel that sets the ghosts of an input beyond the sides of an axis, or -1 if that cannot wait
 * for the kernel, which reads beyond the sides of some axes. */
static int find_fill(const folding *fo, int kernel, int input, int axis, unsigned axes)
{
    const trli_step *step = fo->program->step;
    const int field = plan_at(fo, kernel)->input[input];
    int fill = -1, slabs = 0;
    if (!has_axis(axes, axis) || fo->beyond[(ptrdiff_t)3 * field + axis] > 1) return -1; /* others do, too */
    if (!stays_beside(fo, &step[kernel], input, axis)) return -1;
    for (const use *u = first_of(&fo->writers, field); u && u->step < kernel; u = next_of(&fo->writers, u))
        if (plan_at(fo, u->step)->live && step[u->step].kind == TRLI_STEP_FILL) fill = u->step;
    for (const use *u = first_of(&fo->ghosts, field); u; u = next_of(&fo->ghosts, u)) {
        const trli_slab *slab = slab_of(fo, u, fill, axis);
        if (!slab) continue;
        if (!may_wait(fo, fill, kernel, slab)) return -1;
        ++slabs;
    }
    return slabs > 0 ? fill : -1;
}

/* ---- ghosts within kernels ---- */

/* Whether a layer follows from the row of points inside that it is beside, of the fields that its kernel is given. */
static bool follows_from_row(const folding *fo, int kernel, const trli_slab *slab)
{
    for (int i = 0; i < slab->ninputs; ++i) {
        const trl_offsets hull = trl_footprint_hull(&slab->reads.footprint[i]);
        if (fo->read_by[slab->input[i]] != kernel) return false;
        for (int a = 0; a < 3; ++a) {
            if (a != slab->axis && (hull.lo[a] != 0 || hull.hi[a] != 0)) return false;
            if (a == slab->axis && (slab->side ? hull.hi[a] > -slab->layer : hull.lo[a] < slab->layer)) return false;
        }
    }
    return true;
}

/* Note whether a kernel can compute all the ghosts of an input beyond a side itself: its last slabs are those beyond
 * both sides. */
static void find_of_row(const folding *fo, int kernel, int first, int input, int side)
{
    trli_step_plan *s = plan_at(fo, kernel);
    int layers = 0;
    bool all = true;
    for (int k = first; k < s->nslabs; ++k)
        if (s->slab[k].side == side)
            all &= ++layers <= TRLI_LAYERS_OF_ROW &&
                   (s->slab[k].kind == TRLI_SLAB_IMAGE || follows_from_row(fo, kernel, &s->slab[k]));
    for (int k = first; k < s->nslabs; ++k) {
        if (s->slab[k].side != side) continue;
        s->slab[k].of_row = all;
        s->slab[k].read_as = input;
    }
}

/* ---- images ---- */

/* The step of the exchange of a field after a fill. */
static int find_next_exchange(const folding *fo, int fill, int field)
{
    for (const use *u = first_of(&fo->exchanges, field); u; u = next_of(&fo->exchanges, u))
        if (u->step > fill) return u->step;
    return fo->program->nsteps;
}

/* The first step from a fill on that computes a field. */
static int find_computed(const folding *fo, int fill, int field)
{
    for (const use *u = first_of(&fo->writers, field); u; u = next_of(&fo->writers, u))
        if (u->step >= fill && fo->program->step[u->step].kind != TRLI_STEP_FILL) return u->step;
    return fo->program->nsteps;
}

/* Whether all that read what lies beyond the sides of a periodic axis after an exchange are kernels that can have
 * images themselves; rows: that read them along the axis only. Of what lasts they are of other programs, which do not
 * know of an exchange. */
static bool may_leave_images(const folding *fo, int fill, int field, int axis, bool rows)
{
    const trl_layout *layout = fo->model->layout;
    if (fo->model->field[field].lasting) return false;
    if (!layout->grid.periodic[axis] || layout->counts[axis] > 1) return false;
    const int end = find_next_exchange(fo, fill, field), computed = find_computed(fo, fill, field);
    for (const use *u = first_of(&fo->readers, field); u && u->step < end; u = next_of(&fo->readers, u)) {
        const trli_step *s = &fo->program->step[u->step];
        if (u->step < fill) continue;
        if (has_axis(u->slab_axes, axis)) return false;
        if (!has_axis(u->axes, axis)) continue;
        if (u->step >= computed || s->kind != TRLI_STEP_KERNEL || !is_on_owned(fo, s)) return false;
        if (rows && !stays_beside(fo, s, u->at, axis)) return false;
    }
    return true;
}

/* Leave images beyond the sides of an axis out of an exchange. */
static void narrow_exchange(const folding *fo, trli_exchanged *e, int i, int axis)
{
    trl_footprint *reach = &e->reach[i];
    for (int p = 0; p < reach->n; ++p) reach->part[p].lo[axis] = reach->part[p].hi[axis] = 0;
    if (!trli_needs_exchange(fo->model->layout, reach)) e->field[i] = -1;
}

static trl_err append_slab(const folding *fo, trli_step_plan *s, const trli_slab *slab)
{
    if (!trli_make_room(fo->model->ctx, &s->slab, s->nslabs, 1, &s->slabs_capacity, sizeof *s->slab))
        return trli_no_memory(fo->model->ctx, NULL, "for boundary conditions");
    s->slab[s->nslabs++] = *slab;
    return TRL_OK;
}

static trl_err add_images(const folding *fo, int kernel, int input, int axis, const int layers[2])
{
    trli_step_plan *s = plan_at(fo, kernel);
    const int field = s->input[input], first = s->nslabs;
    trl_err err = TRL_OK;
    for (int side = 0; side < 2; ++side)
        for (int layer = 1; layer <= layers[side]; ++layer) {
            const trli_slab image = {.kind = TRLI_SLAB_IMAGE,
                                     .field = field,
                                     .axis = axis,
                                     .side = side,
                                     .layer = layer,
                                     .value = trli_ir_field(&fo->program->model->ir, field)};
            TRL_TRY(append_slab(fo, s, &image));
        }
    for (int side = 0; side < 2; ++side) find_of_row(fo, kernel, first, input, side);
    err = fo->model->ir.err;
done:
    return err;
}

/* Leave the images of one of the exchanged fields beyond the sides of an axis to the kernels that read them. */
static trl_err leave_images(const folding *fo, int fill, int at, int axis)
{
    trli_exchanged *e = &plan_at(fo, fill)->exchanged;
    const int field = e->field[at], end = find_next_exchange(fo, fill, field);
    const trl_gidx points = fo->model->layout->grid.cells[axis];
    const trl_offsets reach = trl_footprint_hull(&e->reach[at]);
    const int layers[2] = {-reach.lo[axis], reach.hi[axis]};
    trl_err err = TRL_OK;
    if (layers[0] + layers[1] == 0 || layers[0] > points || layers[1] > points) return TRL_OK;
    for (const use *u = first_of(&fo->readers, field); u && u->step < end; u = next_of(&fo->readers, u))
        if (u->step > fill && has_axis(u->axes, axis)) TRL_TRY(add_images(fo, u->step, u->at, axis, layers));
    narrow_exchange(fo, e, at, axis);
done:
    return err;
}

/* Note for the kernels that read one of the exchanged fields beyond the sides of an axis that they may read the points
 * at the other side. */
static trl_err go_round(const folding *fo, int fill, int at, int axis)
{
    const trli_exchanged *e = &plan_at(fo, fill)->exchanged;
    const int field = e->field[at], end = find_next_exchange(fo, fill, field);
    const trl_offsets reach = trl_footprint_hull(&e->reach[at]);
    const trl_gidx points = fo->model->layout->grid.cells[axis];
    if ((reach.lo[axis] == 0 && reach.hi[axis] == 0) || -reach.lo[axis] > points || reach.hi[axis] > points)
        return TRL_OK;
    for (const use *u = first_of(&fo->readers, field); u && u->step < end; u = next_of(&fo->readers, u)) {
        trli_step_plan *s = plan_at(fo, u->step);
        if (u->step < fill || !has_axis(u->axes, axis)) continue;
        if (!s->round) s->round = trli_model_keep(fo->program->model, (size_t)s->ninputs);
        if (!s->round) return fo->model->ir.err;
        s->round[u->at] |= (uint8_t)(1u << axis);
    }
    e->round[at] |= (uint8_t)(1u << axis);
    return TRL_OK;
}

/* Take out of an exchange the fields that it has nothing left to do for. */
static void drop_exchanged(trli_step_plan *fill)
{
    trli_exchanged *e = &fill->exchanged;
    int kept = 0;
    for (int i = 0; i < e->n; ++i) {
        if (e->field[i] < 0) continue;
        e->field[kept] = e->field[i];
        e->round[kept] = e->round[i];
        e->reach[kept++] = e->reach[i];
    }
    e->n = kept;
    fill->live = fill->nslabs > 0 || e->n > 0;
}

static trl_err fold_exchange(const folding *fo, int fill)
{
    trli_step_plan *s = plan_at(fo, fill);
    const trli_exchanged *e = &s->exchanged;
    trl_err err = TRL_OK;
    for (int i = e->n - 1; i >= 0; --i) {
        const int field = e->field[i];
        for (int a = 0; a < fo->model->layout->grid.dim && e->field[i] >= 0; ++a)
            if (may_leave_images(fo, fill, field, a, true)) TRL_TRY(leave_images(fo, fill, i, a));
        for (int a = 0; a < fo->model->layout->grid.dim && e->field[i] >= 0; ++a)
            if (may_leave_images(fo, fill, field, a, false)) TRL_TRY(go_round(fo, fill, i, a));
    }
done:
    drop_exchanged(s);
    return err;
}

/* ---- all of it ---- */

static trl_err take_slabs(const folding *fo, int fill, int kernel, int input, int axis)
{
    trli_step_plan *from = plan_at(fo, fill), *s = plan_at(fo, kernel);
    const int field = s->input[input], first = s->nslabs;
    trl_err err = TRL_OK;
    for (const use *u = first_of(&fo->ghosts, field); u; u = next_of(&fo->ghosts, u)) {
        trli_slab *slab = slab_of(fo, u, fill, axis);
        if (!slab) continue;
        TRL_TRY(append_slab(fo, s, slab));
        slab->taken = true;
        slab->reads = (trli_reads){0};
    }
    fo->remaining[fill] -= s->nslabs - first;
    from->live = fo->remaining[fill] > 0 || from->exchanged.n > 0;
    for (int side = 0; side < 2; ++side) find_of_row(fo, kernel, first, input, side);
done:
    return err;
}

static trl_err fold_into_kernel(const folding *fo, int kernel)
{
    const trli_step *s = &fo->program->step[kernel];
    const trli_step_plan *p = plan_at(fo, kernel);
    trl_err err = TRL_OK;
    for (int i = 0; i < p->ninputs; ++i) fo->read_by[p->input[i]] = kernel;
    for (int i = 0; i < p->ninputs; ++i) {
        const unsigned axes = axes_of_step(fo, s, i);
        for (int a = 0; a < fo->model->layout->grid.dim; ++a) {
            const int fill = find_fill(fo, kernel, i, a, axes);
            if (fill >= 0) TRL_TRY(take_slabs(fo, fill, kernel, i, a));
        }
    }
done:
    return err;
}

/* What kernels have taken is no longer in the fills. */
static void drop_taken(const trli_program *program)
{
    for (int i = 0; i < program->nsteps; ++i) {
        trli_step_plan *s = &program->plan->step[i];
        int kept = 0;
        if (program->step[i].kind != TRLI_STEP_FILL) continue;
        for (int k = 0; k < s->nslabs; ++k)
            if (!is_taken(&s->slab[k])) s->slab[kept++] = s->slab[k];
        s->nslabs = kept;
    }
}

trl_err trli_program_fold(trli_program *program)
{
    folding fo = {.program = program, .model = program->model};
    trl_err err = TRL_OK;
    if (fo.model->settings.fusion != TRL_FUSION_FULL || fo.model->layout->grid.dim < 2) return TRL_OK;
    TRL_TRY(find_uses(&fo));
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *p = &program->plan->step[i];
        if (p->live && p->exchanged.n > 0) TRL_TRY(fold_exchange(&fo, i));
        if (p->live && s->kind == TRLI_STEP_KERNEL && is_on_owned(&fo, s)) TRL_TRY(fold_into_kernel(&fo, i));
    }
done:
    drop_taken(program);
    free_folding(&fo);
    return err;
}

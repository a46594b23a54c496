/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the steps that set sides, and those that conditions need, read of one another. */

#include "memory_impl.h"
#include "reads_impl.h"
#include "side_order_impl.h"

/* Points of a location, first to last along each axis. */
typedef struct range {
    trl_gidx lo[3], hi[3];
} range;

trl_err trli_no_memory_for_sides(const trli_model *model)
{
    return trli_no_memory(model->ctx, NULL, "for boundary conditions");
}

trl_err trli_side_item(trli_arranging *ar, const trli_item *one)
{
    if (!trli_make_room(ar->model->ctx, &ar->item, ar->nitems, 1, &ar->items_room, sizeof *ar->item))
        return trli_no_memory_for_sides(ar->model);
    ar->item[ar->nitems] = *one;
    ar->item[ar->nitems].first_edge = ar->item[ar->nitems].next = -1;
    ++ar->nitems;
    return TRL_OK;
}

static trl_err put_before(trli_arranging *ar, int before, int after)
{
    if (!trli_make_room(ar->model->ctx, &ar->edge, ar->nedges, 1, &ar->edges_room, sizeof *ar->edge))
        return trli_no_memory_for_sides(ar->model);
    ar->edge[ar->nedges] = (trli_edge){before, after, ar->item[before].first_edge};
    ar->item[before].first_edge = ar->nedges++;
    ++ar->item[after].waits;
    return TRL_OK;
}

/* ---- what is read ---- */

static range all_points(const trli_model *model, trl_location location)
{
    range r = {{0}, {0}};
    for (int a = 0; a < model->layout->grid.dim; ++a) r.hi[a] = trl_grid_points(&model->layout->grid, location, a) - 1;
    return r;
}

/* The points beside a side, or on it; on: those that a plane sets, without the ones that a later axis sets. */
static range side_points(const trli_model *model, int field, int side, bool on)
{
    const trli_model_field *f = &model->field[field];
    const int axis = side / 2;
    range r = all_points(model, f->location);
    if (side % 2)
        r.lo[axis] = r.hi[axis];
    else
        r.hi[axis] = r.lo[axis];
    for (ptrdiff_t b = axis + 1; b < 3 && on; ++b) {
        r.lo[b] += f->fixed_planes[2 * b];
        r.hi[b] -= f->fixed_planes[2 * b + 1];
    }
    return r;
}

static range moved(const range *r, const trl_offsets *by)
{
    range m = *r;
    for (int a = 0; a < 3; ++a) {
        m.lo[a] += by->lo[a];
        m.hi[a] += by->hi[a];
    }
    return m;
}

static bool meet(const trli_model *model, const range *r, const range *s)
{
    for (int a = 0; a < 3; ++a) /* beyond a periodic side the points are those inside, and planes have all of them */
        if (!model->layout->grid.periodic[a] && (r->lo[a] > s->hi[a] || s->lo[a] > r->hi[a])) return false;
    return true;
}

/* Let an item that reads some points of a variable come after the planes among them. */
static trl_err follow_planes(trli_arranging *ar, int after, int variable, const range *points)
{
    trl_err err = TRL_OK;
    for (int s = 0; ar->plane_of && s < 6; ++s) {
        const int plane = ar->plane_of[6 * variable + s];
        if (plane < 0) continue;
        const range set = side_points(ar->model, ar->in->variable[variable], s, true);
        if (meet(ar->model, points, &set)) TRL_TRY(put_before(ar, plane, after));
    }
done:
    return err;
}

/* Whether a patch needs points of its neighbours, or images beyond a periodic side; along all axes but one, or -1. */
static bool leaves_patch(const trli_model *model, const trl_offsets *part, int but)
{
    for (int a = 0; a < model->layout->grid.dim; ++a)
        if (a != but && (part->lo[a] < 0 || part->hi[a] > 0)) return true;
    return false;
}

/* A step computes its results where they are read. */
static void compute_more(trli_item *writer, const trl_offsets *part, int across)
{
    for (int a = 0; a < 3; ++a) {
        if (a == across) continue;
        if (part->lo[a] < writer->more.lo[a]) writer->more.lo[a] = part->lo[a];
        if (part->hi[a] > writer->more.hi[a]) writer->more.hi[a] = part->hi[a];
    }
}

/* Whether an item is the step that fills several fields, behind all others. */
static bool fills_last(const trli_arranging *ar, int i)
{
    return ar->fills_last && ar->item[i].kind == TRLI_ITEM_STEP && ar->item[i].step == ar->nsteps - 1;
}

/* Whether that is one of the fields, which it exchanges itself. */
static bool fills_itself(const trli_arranging *ar, int i, int field)
{
    bool does = false;
    for (int o = 0; fills_last(ar, i) && o < ar->step[ar->nsteps - 1].nout; ++o)
        does |= ar->step[ar->nsteps - 1].field[o] == field;
    return does;
}

/* An item reads a variable's points. */
static trl_err note_variable(trli_arranging *ar, int reader, int variable, const range *points, bool leaves)
{
    int *exchange = &ar->exchange_of[variable];
    trl_err err = TRL_OK;
    TRL_TRY(follow_planes(ar, reader, variable, points));
    if (!leaves || fills_itself(ar, reader, ar->in->variable[variable])) goto done;
    if (*exchange < 0) {
        *exchange = ar->nitems;
        TRL_TRY(trli_side_item(ar, &(trli_item){.kind = TRLI_ITEM_EXCHANGE, .variable = variable}));
        TRL_TRY(put_before(ar, *exchange, reader));
    }
    TRL_TRY(follow_planes(ar, *exchange, variable, points));
done:
    return err;
}

/* An item reads a field at some points with a footprint. across: the axis along which no patch is left, or -1. */
static trl_err note_field(trli_arranging *ar, int reader, int field, const range *points, const trl_footprint *reach,
                          int across)
{
    const int variable = ar->variable_of[field], writer = ar->field_writer[field], filler = ar->field_filler[field];
    trl_err err = TRL_OK;
    if (writer >= 0 && writer != reader) TRL_TRY(put_before(ar, writer, reader));
    if (filler >= 0 && filler != reader) TRL_TRY(put_before(ar, filler, reader));
    for (int p = 0; p < reach->n; ++p) {
        trl_offsets part = reach->part[p];
        for (int a = 0; a < 3; ++a) {
            part.lo[a] += ar->item[reader].more.lo[a];
            part.hi[a] += ar->item[reader].more.hi[a];
        }
        if (writer >= 0 && filler < 0) compute_more(&ar->item[writer], &part, across);
        const range read = moved(points, &part);
        if (variable >= 0) TRL_TRY(note_variable(ar, reader, variable, &read, leaves_patch(ar->model, &part, across)));
    }
done:
    return err;
}

static trl_err note_values(trli_arranging *ar, int reader, int n, const trli_ir_value *value, const range *points,
                           int across)
{
    trli_reads reads = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_reads_find(&ar->model->ir, &ar->model->walk, n, value, &reads));
    for (int i = 0; i < reads.nfields; ++i)
        TRL_TRY(note_field(ar, reader, reads.field[i], points, &reads.footprint[i], across));
    for (int i = 0; i < reads.nscalars; ++i)
        if (ar->scalar_writer[reads.scalar[i]] >= 0)
            TRL_TRY(put_before(ar, ar->scalar_writer[reads.scalar[i]], reader));
done:
    trli_reads_free(&reads);
    return err;
}

/* What the conditions of a side read. on: those for points on the side. */
static trl_err note_side(trli_arranging *ar, int reader, int field, const trli_side *side, int s, bool on)
{
    const range points = side_points(ar->model, field, s, on);
    trl_err err = TRL_OK;
    for (int i = 0; i < side->npieces; ++i) {
        const trli_piece *p = &side->piece[i];
        trli_ir_value value[TRLI_PIECE_VALUES];
        const int n = trli_piece_values(side, p, on, value);
        if (n > 0) TRL_TRY(note_values(ar, reader, n, value, &points, s / 2));
        for (int r = 0; p->modifier && r < p->modifier->ninputs; ++r) {
            const range beside = side_points(ar->model, p->inputs[r], s, false);
            range read = points;
            read.lo[s / 2] = beside.lo[s / 2]; /* across the side it begins at the input's own nearest point */
            read.hi[s / 2] = beside.hi[s / 2];
            TRL_TRY(note_field(ar, reader, p->inputs[r], &read, &p->modifier->reach[r], s / 2));
        }
    }
done:
    return err;
}

static trl_err note_fill(trli_arranging *ar, int reader, const trli_step *s)
{
    static const trl_footprint here = {.n = 1};
    trl_err err = TRL_OK;
    for (int i = 0; i < s->nout; ++i) {
        const range points = all_points(ar->model, ar->model->field[s->field[i]].location);
        TRL_TRY(note_field(ar, reader, s->field[i], &points, &here, -1));
        for (int side = 0; side < 6; ++side)
            TRL_TRY(note_side(ar, reader, s->field[i], &s->fill.sides[i][side], side, false));
    }
done:
    return err;
}

static trl_err note_step(trli_arranging *ar, int reader)
{
    const trli_step *s = &ar->step[ar->item[reader].step];
    trl_err err = TRL_OK;
    if (s->kind == TRLI_STEP_FILL) return note_fill(ar, reader, s);
    if (s->kind == TRLI_STEP_READ) return TRL_OK; /* the last of all */
    const trli_plugin_step *plugin = trli_step_plugin(s);
    if (plugin) {
        for (int i = 0; i < plugin->called->ninputs * s->nout; ++i) {
            const int in = i % plugin->called->ninputs;
            const range points =
                all_points(ar->model, ar->model->field[s->field[i / plugin->called->ninputs]].location);
            TRL_TRY(note_field(ar, reader, plugin->input[in], &points, &plugin->called->reach[in], -1));
        }
        return TRL_OK;
    }
    const trli_reduce_step *reduce = s->kind == TRLI_STEP_REDUCE ? &s->reduce : NULL;
    const trl_location location = s->nout > 0 ? ar->model->field[s->field[0]].location : reduce ? reduce->location : 0;
    range points = all_points(ar->model, location);
    for (int a = 0; a < 3 && reduce && reduce->kind == TRLI_REDUCE_POINT; ++a)
        points.lo[a] = points.hi[a] = reduce->point[a];
    TRL_TRY(note_values(ar, reader, s->nout > 0 ? s->nout : 1, s->value, &points, -1));
done:
    return err;
}

static void note_writer(trli_arranging *ar, int i)
{
    if (fills_last(ar, i)) return; /* the others come before */
    const trli_step *s = &ar->step[ar->item[i].step];
    int *writer = s->kind == TRLI_STEP_FILL ? ar->field_filler : ar->field_writer;
    if (s->scalar >= 0) ar->scalar_writer[s->scalar] = i;
    for (int o = 0; o < s->nout; ++o) writer[s->field[o]] = i;
}

static trl_err note_item(trli_arranging *ar, int i)
{
    const trli_item it = ar->item[i];
    const int before = ar->nitems;
    trl_err err = TRL_OK;
    if (it.kind == TRLI_ITEM_STEP) {
        TRL_TRY(note_step(ar, i));
    } else {
        TRL_TRY(note_side(ar, i, ar->in->variable[it.variable], &ar->sides[it.variable][it.side], it.side, true));
        for (int s = 0; s < it.side - it.side % 2; ++s) /* the last axis wins */
            if (ar->plane_of[6 * it.variable + s] >= 0) TRL_TRY(put_before(ar, ar->plane_of[6 * it.variable + s], i));
    }
    for (int x = before; x < ar->nitems; ++x) ar->exchange_of[ar->item[x].variable] = -1;
done:
    return err;
}

trl_err trli_side_orders(trli_arranging *ar)
{
    trl_err err = TRL_OK;
    const int n = ar->nitems; /* exchanges are added on the way */
    for (int i = 0; i < n; ++i)
        if (ar->item[i].kind == TRLI_ITEM_STEP) note_writer(ar, i);
    for (int i = 0; i < n; ++i)
        if (ar->item[i].kind == TRLI_ITEM_PLANE) TRL_TRY(note_item(ar, i));
    for (int i = n - 1; i >= 0; --i) /* readers before what they read */
        if (ar->item[i].kind == TRLI_ITEM_STEP) TRL_TRY(note_item(ar, i));
done:
    return err;
}

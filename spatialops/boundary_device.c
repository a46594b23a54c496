/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ghosts and points on sides of fields that live on a device: a statement for each layer. What functions and masks say
 * of a side's points, and fields that live elsewhere, are planes, which the host writes and copies for each fill. */
#include <string.h>

#include "boundary_impl.h"
#include "field_impl.h"
#include "memory_impl.h"
#include "residence_impl.h"

enum { VALUES = 3, PLANES = TRLI_STATEMENT_INPUTS - 1 };

/* One input of the statements: a plane, or a field. */
typedef struct input {
    const trl_bc_value *value; /* of a plane; NULL: where a piece holds */
    const trl_bc *holds;
    trl_field *field; /* NULL: a plane */
    ptrdiff_t first;  /* of a plane: in the memory of all */
} input;

typedef struct fill {
    const trli_side_fill *side;
    const trl_box *range;
    trli_ghost_piece piece[TRLI_GHOST_PIECES];
    double number[TRLI_STATEMENT_NUMBERS];
    int ninputs;
    input input[PLANES];
    ptrdiff_t points; /* of the side */
    int nplanes;
    double *host, *there; /* planes */
} fill;

/* False: there is no room. */
static bool add_input(fill *f, const input *of, int *number)
{
    if (f->ninputs == PLANES) return false;
    input *i = &f->input[f->ninputs++];
    *i = *of;
    if (!i->field) i->first = f->points * f->nplanes++;
    *number = f->ninputs; /* behind the field that is filled */
    return true;
}

static bool add_value(fill *f, int piece, int which, const trl_bc_value *value)
{
    const bool near = value->field && value->field->device == f->side->device;
    const input of = {.value = value, .field = near ? value->field : NULL};
    f->piece[piece].value[which] = -1;
    f->number[VALUES * piece + which] = value->number;
    return (!value->field && !value->function) || add_input(f, &of, &f->piece[piece].value[which]);
}

static bool add_piece(fill *f, int number)
{
    const trli_side_fill *s = f->side;
    const trli_piece_bc *from = &s->piece[number];
    trli_ghost_piece *p = &f->piece[number];
    *p = (trli_ghost_piece){.kind = from->bc.kind, .where = -1, .value = {-1, -1, -1}, .factor = 1};
    p->keeps = !trli_side_takes_part(s, &from->bc);
    if (number < s->npieces - 1 && !add_input(f, &(input){.holds = &from->bc}, &p->where)) return false;
    if (p->keeps || p->kind == TRL_BC_OUTFLOW) return true;
    if (!add_value(f, number, 0, &from->bc.value)) return false;
    if (p->kind == TRL_BC_OPERATOR) {
        p->kind = from->inversion.base;
        p->factor = from->inversion.factor;
    }
    if (p->kind != TRL_BC_ROBIN) return true;
    if (trli_bc_is_zero(&from->bc.b)) {
        p->kind = TRL_BC_DIRICHLET;
        p->ratio = true;
        return add_value(f, number, 2, &from->bc.c);
    }
    return add_value(f, number, 1, &from->bc.b) && add_value(f, number, 2, &from->bc.c);
}

/* ---- planes ---- */

static trl_err write_run(const fill *f, const input *in, const trli_side_run *r, double *to)
{
    double values[TRLI_RUN_POINTS];
    trl_err err = TRL_OK;
    trl_lidx at[3] = {r->at[0], r->at[1], r->at[2]};
    if (in->value) {
        TRL_TRY(trli_side_values(f->side, in->value, r, values));
        memcpy(to, values, (size_t)r->n * sizeof *to);
        return TRL_OK;
    }
    for (trl_lidx i = 0; i < r->n; ++i, ++at[f->side->row_axis])
        to[i] = trli_side_holds(f->side, in->holds, at) ? 1 : 0;
done:
    return err;
}

static trl_err write_plane(const fill *f, const input *in)
{
    const int r = f->side->row_axis, q = 3 - f->side->axis - r;
    double *to = f->host + in->first;
    trl_err err = TRL_OK;
    trli_side_run run;
    run.at[f->side->axis] = f->side->edge;
    for (run.at[q] = f->range->lo[q]; run.at[q] < f->range->hi[q]; ++run.at[q])
        for (run.at[r] = f->range->lo[r]; run.at[r] < f->range->hi[r]; run.at[r] += TRLI_RUN_POINTS) {
            const trl_lidx left = f->range->hi[r] - run.at[r];
            run.n = left < TRLI_RUN_POINTS ? left : TRLI_RUN_POINTS;
            TRL_TRY(write_run(f, in, &run, to));
            to += run.n;
        }
done:
    return err;
}

static trl_err copy_planes(fill *f)
{
    trl_field_device *device = f->side->device;
    const size_t values = (size_t)(f->points * f->nplanes);
    void *there;
    trl_err err = TRL_OK;
    if (values == 0) return TRL_OK;
    f->host = trli_new(device->ctx, values, sizeof *f->host);
    if (!f->host) return trli_no_memory(device->ctx, NULL, "for boundary conditions");
    for (int i = 0; i < f->ninputs; ++i)
        if (!f->input[i].field) TRL_TRY(write_plane(f, &f->input[i]));
    TRL_TRY(device->ops->scratch(device, TRLI_FIELD_SIDES, values * sizeof *f->host, &there));
    f->there = there;
    const trli_box_copy copy = {.to = f->there,
                                .from = f->host,
                                .to_space = device->device->space,
                                .row = values * sizeof *f->host,
                                .rows = 1,
                                .planes = 1};
    TRL_TRY(device->ops->finish(device)); /* what reads the planes of the last fill */
    err = trli_device_copy_now(device->device, 1, &copy);
done:
    return err;
}

/* ---- statements ---- */

/* A plane as if it had the layer's index along the axis, for a layer that is there. */
static trl_array plane_array(const fill *f, const input *in, const trl_box *box)
{
    const int axis = f->side->axis, r = f->side->row_axis, q = 3 - axis - r;
    trl_array a = {.owned = *box, .held = *box, .type = TRL_F64};
    a.stride[axis] = axis == 0 ? 1 : 0; /* rows go along x, and this one has one point */
    a.stride[r] = 1;
    a.stride[q] = f->range->hi[r] - f->range->lo[r];
    a.at = f->there + in->first - trl_array_offset(&a, box->lo[0], box->lo[1], box->lo[2]);
    return a;
}

/* The points of a field on or next to the side, likewise. */
static trl_err field_array(const fill *f, const input *in, const trl_box *box, trl_array *a)
{
    const int axis = f->side->axis;
    trl_err err;
    TRL_TRY(trli_field_there(in->field, f->side->local, true, a));
    const trl_lidx by = box->lo[axis] - trli_side_edge(f->side, trl_field_location(in->field));
    a->at = (double *)a->at - by * a->stride[axis];
    a->held.lo[axis] += by;
    a->held.hi[axis] += by;
done:
    return err;
}

/* Where an operator is solved for this layer. */
static void set_solved(fill *f, int m)
{
    for (int i = 0; i < f->side->npieces; ++i) {
        const trli_piece_bc *from = &f->side->piece[i];
        const int outward = f->side->side ? 1 : -1;
        if (from->bc.kind != TRL_BC_OPERATOR) continue;
        f->piece[i].pass = m > 0 && m == from->inversion.layer ? &from->bc.op->term[0].pass[0] : NULL;
        f->piece[i].to_result = outward * (from->inversion.at - from->inversion.layer);
        f->piece[i].weight = from->inversion.weight;
    }
}

static trl_err compute_layer(fill *f, int m, bool *done)
{
    const trli_side_fill *s = f->side;
    trli_statement t = {.kind = TRLI_STATEMENT_LAYER,
                        .label = "boundary conditions",
                        .layout = s->boundary->layout,
                        .patch = s->local,
                        .box = *f->range,
                        .ninputs = 1 + f->ninputs,
                        .nnumbers = VALUES * s->npieces,
                        .output = s->target};
    trl_err err = TRL_OK;
    set_solved(f, m);
    t.layer.axis = s->axis;
    t.layer.side = s->side;
    t.layer.m = m;
    t.layer.on_side = trli_on_side(s->boundary->location, s->axis);
    t.layer.spacing = s->spacing;
    t.layer.npieces = s->npieces;
    t.layer.piece = f->piece;
    t.box.lo[s->axis] = s->side ? s->edge + m : s->edge - m;
    t.box.hi[s->axis] = t.box.lo[s->axis] + 1;
    t.input[0] = s->target;
    for (int i = 0; i < f->ninputs; ++i) {
        if (f->input[i].field)
            TRL_TRY(field_array(f, &f->input[i], &t.box, &t.input[1 + i]));
        else
            t.input[1 + i] = plane_array(f, &f->input[i], &t.box);
    }
    memcpy(t.number, f->number, sizeof t.number);
    err = s->device->ops->compute(s->device, &t, done);
done:
    return err;
}

trl_err trli_side_there(const trli_side_fill *side, const trl_box *range, bool *done)
{
    fill f = {.side = side, .range = range};
    const int r = side->row_axis, q = 3 - side->axis - r;
    trl_err err = TRL_OK;
    *done = side->npieces <= TRLI_GHOST_PIECES;
    f.points = (ptrdiff_t)(range->hi[r] - range->lo[r]) * (range->hi[q] - range->lo[q]);
    for (int i = 0; i < side->npieces && *done; ++i) *done = add_piece(&f, i);
    if (!*done) return TRL_OK;
    TRL_TRY(copy_planes(&f));
    for (int m = side->layers == 0 ? 0 : 1; m <= side->layers && *done; ++m) TRL_TRY(compute_layer(&f, m, done));
done:
    trli_free(f.host);
    return err;
}

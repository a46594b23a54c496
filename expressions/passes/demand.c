/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How demands add up: what steps read, on the points that they compute, becomes what is needed of fields beyond the
 * points owned. */
#include "analyse_impl.h"
#include "pipeline_impl.h"

static const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};

const char *trli_shown_name(const trli_model_field *f)
{
    return f->boundary.name ? f->boundary.name : f->name;
}

static void note_allocation(trli_model_field *f, const trli_demand *d)
{
    trl_offsets inner = d->inner.n ? trl_footprint_hull(&d->inner) : none;
    for (int a = 0; a < 3; ++a) {
        int lo = inner.lo[a] < d->side.lo[a] ? inner.lo[a] : d->side.lo[a];
        int hi = inner.hi[a] > d->side.hi[a] ? inner.hi[a] : d->side.hi[a];
        if (-lo > f->ghost_lo[a]) f->ghost_lo[a] = -lo;
        if (hi > f->ghost_hi[a]) f->ghost_hi[a] = hi;
    }
}

bool trli_reaches_out(const trl_footprint *f)
{
    trl_offsets h = f->n ? trl_footprint_hull(f) : none;
    for (int a = 0; a < 3; ++a)
        if (h.lo[a] < 0 || h.hi[a] > 0) return true;
    return false;
}

static int least_hi(const trl_footprint *f, int axis)
{
    int least = f->part[0].hi[axis];
    for (int p = 1; p < f->n; ++p)
        if (f->part[p].hi[axis] < least) least = f->part[p].hi[axis];
    return least;
}

/* Note which ghosts beyond sides are read together, so that conditions reach into the corners that somebody reads,
 * and only there. */
static void note_corners(const trli_analysis *an, const trli_extension *e, int field, const trl_footprint *reach)
{
    trli_demand *d = &an->plan->demand[field];
    trl_location location = an->model->field[field].location;
    int n = e->corner.n > 0 ? e->corner.n : 1;
    for (int p = 0; p < reach->n * n; ++p) {
        trl_offsets part = reach->part[p / n], by = e->corner.n > 0 ? e->corner.part[p % n] : e->side;
        for (int a = 0; a < 3; ++a) {
            int further = (int)(e->location >> a & 1) - (int)(location >> a & 1);
            if (!an->model->layout->grid.periodic[a]) { /* a part says no less than nothing, the box may be smaller */
                if (by.lo[a] < e->side.lo[a]) by.lo[a] = e->side.lo[a];
                if (by.hi[a] > e->side.hi[a]) by.hi[a] = e->side.hi[a];
            }
            part.lo[a] += by.lo[a];
            part.hi[a] += by.hi[a] + further;
            d->further[a] |= by.hi[a] + further > least_hi(&e->inner, a);
            if (part.lo[a] <= part.hi[a]) continue;
            /* No offset at all beyond a side, or beyond one of them. */
            part.lo[a] = part.lo[a] < 0 ? part.lo[a] : part.hi[a] > 0 ? part.hi[a] : 0;
            part.hi[a] = part.lo[a];
        }
        trl_footprint_add(&d->corner, &part);
    }
}

/* Ghosts are read that nothing has set then. */
void trli_note_unset(trli_analysis *an, int field)
{
    const trli_model_field *f = &an->model->field[field];
    if (an->first == TRL_OK)
        an->first = trl_fail(an->model->ctx, TRL_ERR_INPUT, &f->boundary.place,
                             "a boundary value needs neighbours of '%s' beyond a side before its ghosts there are set: "
                             "use points inside, or old(...), the value at the start of the step",
                             trli_shown_name(f));
}

/* A field is read with a footprint by a step that computes on an extension. */
void trli_demand_field(trli_analysis *an, const trli_extension *e, int field, const trl_footprint *reach)
{
    trli_demand *d = &an->plan->demand[field];
    trli_model_field *f = &an->model->field[field];
    trl_footprint sum;
    trl_offsets hull = trl_footprint_hull(reach), side = d->side;
    bool beyond = false;
    trl_footprint_compose(reach, &e->inner, &sum);
    d->live = true;
    for (int a = 0; a < an->model->layout->grid.dim; ++a) {
        if (an->model->layout->grid.periodic[a]) continue;
        /* The output's last point along the axis is one further out if only its location has points on the side. */
        int lo = hull.lo[a] + e->side.lo[a],
            hi = hull.hi[a] + e->side.hi[a] + (e->location >> a & 1) - (f->location >> a & 1);
        if (!d->beyond || lo < side.lo[a]) { /* above 0: no step reads the points near the side */
            side.lo[a] = lo;
            d->asker[(ptrdiff_t)2 * a] = an->place;
        }
        if (!d->beyond || hi > side.hi[a]) {
            side.hi[a] = hi;
            d->asker[2 * a + 1] = an->place;
        }
        beyond |= lo < 0 || hi > 0;
    }
    if (an->filled[field] && beyond) {
        trli_note_unset(an, field);
        return;
    }
    if (an->filled[field] && trli_reaches_out(&sum)) {
        trl_footprint_add_all(&an->early[field], &sum);
        note_allocation(f, &(trli_demand){.inner = sum});
        return;
    }
    trl_footprint_add_all(&d->inner, &sum);
    note_corners(an, e, field, reach);
    d->side = side;
    d->beyond = true;
    note_allocation(f, d);
}

static void add_demand(trli_demand *d, const trli_demand *more)
{
    if (!more->live) return;
    d->live = true;
    trl_footprint_add_all(&d->inner, &more->inner);
    trl_footprint_add_all(&d->corner, &more->corner);
    for (int a = 0; a < 3; ++a) {
        d->further[a] |= more->further[a];
        if (more->beyond && (!d->beyond || more->side.lo[a] < d->side.lo[a])) {
            d->side.lo[a] = more->side.lo[a];
            d->asker[(ptrdiff_t)2 * a] = more->asker[(ptrdiff_t)2 * a];
        }
        if (more->beyond && (!d->beyond || more->side.hi[a] > d->side.hi[a])) {
            d->side.hi[a] = more->side.hi[a];
            d->asker[2 * a + 1] = more->asker[2 * a + 1];
        }
    }
    d->beyond |= more->beyond;
}

void trli_demand_lasting(trli_analysis *an)
{
    const trli_model *model = an->model;
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_plan *plan = model->program[i]->plan;
        for (int f = 0; model->program[i] != model->lasting && f < plan->nfields; ++f)
            if (model->field[f].lasting) add_demand(&an->plan->demand[f], &plan->demand[f]);
    }
}

trli_extension trli_owned_only(trl_location location)
{
    trli_extension e = {.location = location, .inner = {.n = 1}};
    return e;
}

bool trli_needs_exchange(const trl_layout *layout, const trl_footprint *reach)
{
    const trl_offsets h = reach->n ? trl_footprint_hull(reach) : none;
    for (int a = 0; a < layout->grid.dim; ++a)
        if ((h.lo[a] < 0 || h.hi[a] > 0) && (layout->counts[a] > 1 || layout->grid.periodic[a])) return true;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The backward pass over a program: what is needed at all, how far beyond the owned points, and which ghost layers
 * the conditions of each side must supply. */
#include <stdlib.h>
#include <string.h>

#include "formula_impl.h"
#include "model_impl.h"

typedef struct analysis {
    trli_program *program;
    trli_model *model;
    bool *scalar_live;
    bool *filled;  /* by field: its fill has been passed, going backwards */
    trl_err first; /* first problem that the user should hear of; the pass goes on to find more */
} analysis;

/* How far a step computes beyond the owned points of its output. */
typedef struct extension {
    trl_location location;
    trl_footprint inner;
    trl_offsets side;
    trl_footprint corner; /* as a demand's; none: the box `side` */
} extension;

static const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};

/* The deck's name: a stage's values have one of their own. */
static const char *shown_name(const trli_field *f)
{
    return f->boundary.name ? f->boundary.name : f->name;
}

static void note_allocation(trli_field *f, const trli_demand *d)
{
    trl_offsets inner = d->inner.n ? trl_footprint_hull(&d->inner) : none;
    for (int a = 0; a < 3; ++a) {
        int lo = inner.lo[a] < d->side.lo[a] ? inner.lo[a] : d->side.lo[a];
        int hi = inner.hi[a] > d->side.hi[a] ? inner.hi[a] : d->side.hi[a];
        if (-lo > f->ghost_lo[a]) f->ghost_lo[a] = -lo;
        if (hi > f->ghost_hi[a]) f->ghost_hi[a] = hi;
    }
}

static bool reaches_out(const trl_footprint *f)
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
static void note_corners(const analysis *an, const extension *e, int field, const trl_footprint *reach)
{
    trli_demand *d = &an->program->demand[field];
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

/* A field is read with a footprint by a step that computes on an extension. */
static void demand(analysis *an, const extension *e, int field, const trl_footprint *reach)
{
    trli_demand *d = &an->program->demand[field];
    trli_field *f = &an->model->field[field];
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
        if (!d->beyond || lo < side.lo[a]) side.lo[a] = lo; /* above 0: nobody reads the points near the side */
        if (!d->beyond || hi > side.hi[a]) side.hi[a] = hi;
        beyond |= lo < 0 || hi > 0;
    }
    if (an->filled[field] && (beyond || reaches_out(&sum))) {
        if (an->first == TRL_OK)
            an->first =
                trl_fail(an->model->ctx, TRL_ERR_INPUT, &f->boundary.place,
                         "a boundary value of '%s' needs neighbours of '%s' beyond the side before the boundary is set",
                         f->boundary.name, shown_name(f));
        return;
    }
    trl_footprint_add_all(&d->inner, &sum);
    note_corners(an, e, field, reach);
    d->side = side;
    d->beyond = true;
    note_allocation(f, d);
}

static void demand_kernel(analysis *an, const extension *e, const trli_kernel *kernel)
{
    const int *fields, *scalars;
    int n = trli_kernel_inputs(kernel, &fields), ns = trli_kernel_scalars(kernel, &scalars);
    for (int i = 0; i < n; ++i) {
        trl_footprint reach = trli_kernel_footprint(kernel, i);
        demand(an, e, fields[i], &reach);
    }
    for (int i = 0; i < ns; ++i) an->scalar_live[scalars[i]] = true;
}

static extension owned_only(trl_location location)
{
    extension e = {.location = location, .inner = {.n = 1}};
    return e;
}

static extension extension_of(const analysis *an, int field)
{
    const trli_field *f = &an->model->field[field];
    const trli_demand *d = &an->program->demand[field];
    extension e = owned_only(f->location);
    if (f->exchanged || f->persistent) {
        for (ptrdiff_t a = 0; a < 3; ++a) {
            e.side.lo[a] = f->shrink[2 * a];
            e.side.hi[a] = -f->shrink[2 * a + 1];
        }
        return e;
    }
    if (d->inner.n) e.inner = d->inner;
    e.side = d->side;
    e.corner = d->corner;
    return e;
}

static trl_err keep_inputs(analysis *an, const trli_kernel *kernel, int *n, int **list)
{
    const int *fields;
    *n = trli_kernel_inputs(kernel, &fields);
    *list = trli_model_keep(an->model, ((size_t)*n + 1) * sizeof **list);
    if (!*list) return an->model->ir.err;
    memcpy(*list, fields, (size_t)*n * sizeof **list);
    return TRL_OK;
}

static trl_err analyse_kernel(analysis *an, trli_step *s)
{
    trl_err err = TRL_OK;
    int kept = 0;
    for (int i = 0; i < s->nout; ++i) {
        if (!an->program->demand[s->field[i]].live) continue;
        s->field[kept] = s->field[i];
        s->value[kept] = s->value[i];
        if (s->variable) s->variable[kept] = s->variable[i];
        ++kept;
    }
    s->nout = kept;
    s->live = kept > 0;
    if (!s->live) return TRL_OK;
    TRL_TRY(trli_kernel_create(&an->model->ir, &an->model->walk, s->nout, s->value, &s->kernel));
    TRL_TRY(keep_inputs(an, s->kernel, &s->ninputs, &s->input));
    const int64_t points = trli_model_points(an->model, an->model->field[s->field[0]].location, NULL);
    s->strains_caches = trli_strains_caches(an->model->ctx, points * (s->ninputs + s->nout));
    extension e = extension_of(an, s->field[0]);
    demand_kernel(an, &e, s->kernel);
done:
    return err;
}

/* Shrink a reduction at the sides until nothing beyond them is read. */
static void stay_inside(const analysis *an, trli_step *s, extension *e)
{
    const int *fields;
    int n = trli_kernel_inputs(s->kernel, &fields);
    for (int i = 0; i < n; ++i) {
        trl_footprint reach = trli_kernel_footprint(s->kernel, i);
        trl_offsets hull = trl_footprint_hull(&reach);
        for (ptrdiff_t a = 0; a < 3; ++a) {
            int over = hull.hi[a] + (s->location >> a & 1) - (an->model->field[fields[i]].location >> a & 1);
            if (-hull.lo[a] > s->shrink[2 * a]) s->shrink[2 * a] = (int8_t)-hull.lo[a];
            if (over > s->shrink[2 * a + 1]) s->shrink[2 * a + 1] = (int8_t)over;
        }
    }
    for (ptrdiff_t a = 0; a < 3; ++a) {
        e->side.lo[a] = s->shrink[2 * a];
        e->side.hi[a] = (int8_t)-s->shrink[2 * a + 1];
    }
}

/* One point reads beyond a side only if it is near it. */
static void narrow_to_point(const analysis *an, const trli_step *s, extension *e)
{
    for (int a = 0; a < an->model->layout->grid.dim; ++a) {
        trl_gidx before = s->point[a], after = trl_grid_points(&an->model->layout->grid, s->location, a) - 1 - before;
        e->side.lo[a] = (int8_t)(before < 64 ? before : 64);
        e->side.hi[a] = (int8_t) - (after < 64 ? after : 64);
    }
}

static trl_err analyse_scalar(analysis *an, trli_step *s)
{
    trl_err err = TRL_OK;
    s->live = an->scalar_live[s->scalar];
    if (!s->live) return TRL_OK;
    if (s->entry >= 0) { /* a plugin's stable_dt */
        extension points = owned_only(s->location);
        for (int i = 0; i < s->ninputs; ++i) {
            trl_footprint reach = {.n = 1, .part = {an->model->entry[s->entry].required[i].reach}};
            demand(an, &points, s->input[i], &reach);
        }
        return TRL_OK;
    }
    TRL_TRY(trli_kernel_create(&an->model->ir, &an->model->walk, 1, s->value, &s->kernel));
    TRL_TRY(keep_inputs(an, s->kernel, &s->ninputs, &s->input));
    extension e = owned_only(s->location);
    if (s->inside) stay_inside(an, s, &e);
    if (s->reduce == TRLI_REDUCE_POINT) narrow_to_point(an, s, &e);
    demand_kernel(an, &e, s->kernel);
done:
    return err;
}

static trl_err analyse_opaque(analysis *an, trli_step *s)
{
    const trli_entry *entry = &an->model->entry[s->entry];
    s->live = false;
    for (int i = 0; i < s->nout; ++i) s->live |= an->program->demand[s->field[i]].live;
    if (!s->live) return TRL_OK;
    extension e = owned_only(an->model->field[s->field[0]].location);
    for (int i = 0; i < s->nout; ++i) {
        an->program->demand[s->field[i]].live = true;
        extension one = extension_of(an, s->field[i]);
        trl_offsets hull = trl_footprint_hull(&one.inner), before = trl_footprint_hull(&e.inner);
        for (int a = 0; a < 3; ++a) { /* a plugin computes a box: the hull, corners included */
            if (hull.lo[a] > before.lo[a]) hull.lo[a] = before.lo[a];
            if (hull.hi[a] < before.hi[a]) hull.hi[a] = before.hi[a];
            if (one.side.lo[a] < e.side.lo[a]) e.side.lo[a] = one.side.lo[a];
            if (one.side.hi[a] > e.side.hi[a]) e.side.hi[a] = one.side.hi[a];
        }
        e.inner = (trl_footprint){.n = 1, .part = {hull}};
    }
    for (int o = 0; o < s->nout; ++o) { /* the results' locations may differ: each has its own last points */
        e.location = an->model->field[s->field[o]].location;
        for (int i = 0; i < s->ninputs; ++i) {
            trl_footprint reach = {.n = 1, .part = {entry->required[i].reach}};
            demand(an, &e, s->input[i], &reach);
        }
    }
    return TRL_OK;
}

/* A boundary value may only read points inside: in the layer's frame these start `layer` points inward. */
static trl_err check_inside(analysis *an, const trli_slab *slab, const trli_kernel *kernel, const trl_place *place)
{
    const int *fields;
    int n = trli_kernel_inputs(kernel, &fields), a = slab->axis;
    int target_bit = an->model->field[slab->field].location >> a & 1;
    for (int i = 0; i < n; ++i) {
        trl_footprint reach = trli_kernel_footprint(kernel, i);
        trl_offsets hull = trl_footprint_hull(&reach);
        int bit = an->model->field[fields[i]].location >> a & 1;
        bool inside = slab->side ? hull.hi[a] <= bit - target_bit - slab->layer : hull.lo[a] >= slab->layer;
        if (!inside)
            return trl_fail(an->model->ctx, TRL_ERR_INPUT, place,
                            "this boundary value reads '%s' beyond the side that it defines",
                            shown_name(&an->model->field[fields[i]]));
    }
    return TRL_OK;
}

static void widen(trl_lidx lo[3], trl_lidx hi[3], const trl_offsets *part, int b)
{
    if (-part->lo[b] > lo[b]) lo[b] = -part->lo[b];
    if (part->hi[b] > hi[b]) hi[b] = part->hi[b];
}

/* Ghosts that a slab includes along the other axes, because some reader touches both. */
static void set_tangential(const analysis *an, trli_slab *slab)
{
    const trli_demand *d = &an->program->demand[slab->field];
    int a = slab->axis;
    for (int p = 0; p < d->inner.n && slab->layer > 0; ++p) {
        const trl_offsets *o = &d->inner.part[p];
        if (o->lo[a] >= 0 && o->hi[a] + d->further[a] <= 0) continue;
        for (int b = 0; b < 3; ++b)
            if (b != a) widen(slab->tangential_lo, slab->tangential_hi, o, b);
    }
    for (int p = 0; p < d->corner.n && slab->layer > 0; ++p) {
        const trl_offsets *o = &d->corner.part[p];
        if (slab->side ? o->hi[a] <= 0 : o->lo[a] >= 0) continue;
        for (int b = 0; b < a; ++b)
            widen(slab->corner_lo, slab->corner_hi, o, b); /* earlier sides' ghosts are included */
    }
}

/* Sides are filled in the order x, y, z: what a boundary value reads beyond a later side is not there yet. */
static trl_err check_later_sides(analysis *an, const trli_step *s, const trli_slab *slab, int field,
                                 const trl_footprint *reach, const trl_place *place)
{
    const trli_field *f = &an->model->field[field], *target = &an->model->field[slab->field];
    trl_offsets hull = trl_footprint_hull(reach);
    for (int b = slab->axis + 1; b < an->model->layout->grid.dim; ++b) {
        bool above = hull.hi[b] + (target->location >> b & 1) - (f->location >> b & 1) > 0;
        if (an->model->layout->grid.periodic[b] || (hull.lo[b] >= 0 && !above)) continue;
        bool filled_here = false;
        for (int i = 0; i < s->nout && !filled_here; ++i) filled_here = s->field[i] == field;
        if (!filled_here) return TRL_OK;
        return trl_fail(
            an->model->ctx, TRL_ERR_INPUT, place,
            "this boundary value reads '%s' beyond %c%c, and that side is filled later: the order is x, y, z",
            shown_name(f), "xyz"[b], hull.lo[b] < 0 ? '-' : '+');
    }
    return TRL_OK;
}

/* Note what a slab reads: within a fill the sides of later axes are analysed first, so that they find it. */
static trl_err demand_slab(analysis *an, const trli_step *s, const trli_slab *slab, int field,
                           const trl_footprint *reach, const trl_place *place)
{
    extension e = owned_only(an->model->field[slab->field].location);
    trl_footprint across = *reach;
    trl_err err = check_later_sides(an, s, slab, field, reach, place);
    if (err != TRL_OK) return err;
    for (int b = 0; b < 3; ++b) {
        e.inner.part[0].lo[b] = -slab->tangential_lo[b];
        e.inner.part[0].hi[b] = slab->tangential_hi[b];
        e.side.lo[b] = -slab->corner_lo[b];
        e.side.hi[b] = slab->corner_hi[b];
    }
    /* Across the side all reads are inside (checked), whatever the two locations. */
    for (int p = 0; p < across.n; ++p) across.part[p].lo[slab->axis] = across.part[p].hi[slab->axis] = 0;
    e.location =
        (trl_location)((e.location & ~(1 << slab->axis)) | (an->model->field[field].location & 1 << slab->axis));
    demand(an, &e, field, &across);
    return TRL_OK;
}

static trl_err analyse_modifier(analysis *an, const trli_step *s, trli_slab *slab, const trli_piece *piece)
{
    const trli_entry *entry = &an->model->entry[piece->modifier];
    trl_err err = TRL_OK;
    slab->entry = piece->modifier;
    slab->ninputs = entry->nrequired;
    slab->input = piece->inputs;
    for (int r = 0; r < entry->nrequired; ++r) {
        const trl_footprint reach = {.n = 1, .part = {entry->required[r].reach}};
        TRL_TRY(demand_slab(an, s, slab, slab->input[r], &reach, &piece->place));
    }
done:
    return err;
}

static trl_err analyse_layer(analysis *an, const trli_step *s, trli_slab *slab, const trli_side *side)
{
    const trl_place *place = &side->piece[0].place;
    const int *scalars;
    trl_err err = TRL_OK;
    TRL_TRY(trli_boundary_layer(an->model, slab->field, side, slab->axis, slab->side, slab->layer, &slab->value));
    TRL_TRY(trli_kernel_create(&an->model->ir, &an->model->walk, 1, &slab->value, &slab->kernel));
    TRL_TRY(keep_inputs(an, slab->kernel, &slab->ninputs, &slab->input));
    TRL_TRY(check_inside(an, slab, slab->kernel, place));
    int ns = trli_kernel_scalars(slab->kernel, &scalars);
    for (int k = 0; k < ns; ++k) an->scalar_live[scalars[k]] = true;
    for (int k = 0; k < slab->ninputs; ++k) {
        const trl_footprint reach = trli_kernel_footprint(slab->kernel, k);
        TRL_TRY(demand_slab(an, s, slab, slab->input[k], &reach, place));
    }
done:
    return err;
}

static trl_err add_slab(analysis *an, trli_step *s, int i, int axis, int which, int layer)
{
    const trli_side *side = &s->sides[i][2 * axis + which];
    trli_slab *slab = realloc(s->slab, ((size_t)s->nslabs + 1) * sizeof *slab);
    if (!slab) return trl_fail(an->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for boundary conditions");
    s->slab = slab;
    slab = &s->slab[s->nslabs++];
    *slab = (trli_slab){.field = s->field[i], .axis = axis, .side = which, .layer = layer, .entry = -1};
    set_tangential(an, slab);
    return side->piece[0].modifier >= 0 ? analyse_modifier(an, s, slab, &side->piece[0])
                                        : analyse_layer(an, s, slab, side);
}

static trl_err check_side(analysis *an, const trli_step *s, int i, int axis, int which, int depth)
{
    const trli_field *f = &an->model->field[s->field[i]];
    const int patches = an->model->layout->counts[axis], cells = (int)(an->model->layout->grid.cells[axis] / patches);
    /* Inside of the side itself: the point on it is no layer's mirror image. The last one then is the next patch's (on x+ the last patch has
     * one more), here only if readers want it anyway. */
    const bool on_side = f->location >> axis & 1 && which == 0 && patches > 1;
    const bool next_is_here = trl_footprint_hull(&an->program->demand[s->field[i]].inner).hi[axis] > 0;
    const int within = cells - (on_side && !next_is_here ? 1 : 0);
    const char *what = shown_name(f);
    if (s->sides[i][2 * axis + which].npieces == 0)
        return trl_fail(an->model->ctx, TRL_ERR_INPUT, &f->boundary.place,
                        "'%s' needs a boundary condition on %c%c: an operator reads %d point%s beyond that side", what,
                        "xyz"[axis], which ? '+' : '-', depth, depth == 1 ? "" : "s");
    if (within < depth)
        return trl_fail(
            an->model->ctx, TRL_ERR_INPUT, &f->boundary.place,
            "'%s' needs %d ghost layers on %c%c, and a patch there has only %d points inside of the side: use "
            "fewer patches or more cells",
            what, depth, "xyz"[axis], which ? '+' : '-', within);
    return TRL_OK;
}

static int side_depth(const analysis *an, int field, int axis, int which)
{
    const trl_offsets *side = &an->program->demand[field].side;
    return which ? side->hi[axis] : -side->lo[axis];
}

static trl_err fill_axis(analysis *an, trli_step *s, int i, int axis)
{
    trl_err first = TRL_OK;
    for (int which = 0; which < 2 && !an->model->layout->grid.periodic[axis]; ++which) {
        const trli_side *side = &s->sides[i][2 * axis + which];
        int depth = side_depth(an, s->field[i], axis, which);
        if (depth <= 0 || side->npieces == 0) continue;
        trl_err err = TRL_OK;
        for (int m = side->piece[0].modifier >= 0 ? depth : 1; err == TRL_OK && m <= depth; ++m)
            err = add_slab(an, s, i, axis, which, m);
        if (first == TRL_OK) first = err;
    }
    return first;
}

static void check_sides(analysis *an, const trli_step *s)
{
    for (int i = 0; i < s->nout; ++i)
        for (int side = 0; side < 2 * an->model->layout->grid.dim; ++side) {
            int depth = side_depth(an, s->field[i], side / 2, side % 2);
            trl_err err = depth > 0 && an->program->demand[s->field[i]].live
                              ? check_side(an, s, i, side / 2, side % 2, depth)
                              : TRL_OK;
            if (an->first == TRL_OK) an->first = err;
        }
}

/* Slabs were found from the last axis to the first, and run from the first to the last. */
static void reverse_slabs(trli_step *s)
{
    for (int low = 0, high = s->nslabs - 1; low < high; ++low, --high) {
        trli_slab slab = s->slab[low];
        s->slab[low] = s->slab[high];
        s->slab[high] = slab;
    }
}

bool trli_needs_exchange(const trl_layout *layout, const trl_footprint *reach)
{
    const trl_offsets h = reach->n ? trl_footprint_hull(reach) : none;
    for (int a = 0; a < layout->grid.dim; ++a)
        if ((h.lo[a] < 0 || h.hi[a] > 0) && (layout->counts[a] > 1 || layout->grid.periodic[a])) return true;
    return false;
}

static trl_err plan_exchange(analysis *an, trli_step *s)
{
    s->exchanged = trli_model_keep(an->model, ((size_t)s->nout + 1) * sizeof *s->exchanged);
    s->exchanged_reach = trli_model_keep(an->model, ((size_t)s->nout + 1) * sizeof *s->exchanged_reach);
    if (!s->exchanged || !s->exchanged_reach) return an->model->ir.err;
    for (int i = 0; i < s->nout; ++i) {
        const trli_demand *d = &an->program->demand[s->field[i]];
        if (!d->live || !trli_needs_exchange(an->model->layout, &d->inner)) continue;
        s->exchanged_reach[s->nexchanged] = d->inner;
        s->exchanged[s->nexchanged++] = s->field[i];
    }
    return TRL_OK;
}

static trl_err analyse_fill(analysis *an, trli_step *s)
{
    trl_err err = TRL_OK;
    for (int axis = an->model->layout->grid.dim - 1; axis >= 0; --axis) /* a side may read the ghosts of earlier ones */
        for (int i = 0; i < s->nout; ++i) {
            if (!an->program->demand[s->field[i]].live) continue;
            trl_err one = fill_axis(an, s, i, axis);
            if (an->first == TRL_OK) an->first = one;
        }
    reverse_slabs(s);
    check_sides(an, s);
    if (an->first != TRL_OK) return TRL_OK;
    TRL_TRY(plan_exchange(an, s));
    s->live = s->nslabs > 0 || s->nexchanged > 0;
    for (int i = 0; i < s->nout; ++i) an->filled[s->field[i]] = true;
done:
    return err;
}

static trl_err analyse_planes(analysis *an, trli_step *s)
{
    trl_err err = TRL_OK;
    for (int axis = 0; axis < an->model->layout->grid.dim; ++axis)
        for (int i = 0; i < s->nout; ++i) {
            if (!an->program->demand[s->field[i]].live || !(an->model->field[s->field[i]].location >> axis & 1))
                continue;
            for (int which = 0; which < 2; ++which) {
                const trli_side *side = &s->sides[i][2 * axis + which];
                bool sets = false;
                for (int p = 0; p < side->npieces; ++p)
                    sets |= side->piece[p].kind == TRL_BC_DIRICHLET || side->piece[p].kind == TRL_BC_EXPRESSION;
                if (sets) TRL_TRY(add_slab(an, s, i, axis, which, 0));
            }
        }
    s->live = s->nslabs > 0;
done:
    return err;
}

static trl_err analyse_step(analysis *an, trli_step *s)
{
    switch (s->kind) {
    case TRLI_STEP_KERNEL:
        return analyse_kernel(an, s);
    case TRLI_STEP_OPAQUE:
        return analyse_opaque(an, s);
    case TRLI_STEP_FILL:
        return analyse_fill(an, s);
    case TRLI_STEP_PLANES:
        return analyse_planes(an, s);
    default:
        return analyse_scalar(an, s);
    }
}

trl_err trli_program_analyse(trli_program *program)
{
    trli_model *model = program->model;
    analysis an = {.program = program, .model = model};
    trl_err err = TRL_OK;
    TRL_TRY(model->ir.err);
    program->demand = calloc((size_t)model->nfields + 1, sizeof *program->demand);
    an.scalar_live = calloc((size_t)model->nscalars + 1, sizeof *an.scalar_live);
    an.filled = calloc((size_t)model->nfields + 1, sizeof *an.filled);
    if (!program->demand || !an.scalar_live || !an.filled) {
        err = trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory to analyse program '%s'", program->name);
        goto done;
    }
    for (int i = 0; i < program->nroots; ++i) program->demand[program->root[i]].live = true;
    for (int i = 0; i < program->nscalar_roots; ++i) an.scalar_live[program->scalar_root[i]] = true;
    for (int i = program->nsteps - 1; i >= 0; --i) TRL_TRY(analyse_step(&an, &program->step[i]));
    TRL_TRY(an.first);
    TRL_TRY(trli_program_fold(program));
done:
    free(an.scalar_live);
    free(an.filled);
    return err;
}

trl_box trli_program_box(const trli_program *program, int field, int local_patch)
{
    const trli_model *model = program->model;
    const trl_layout *layout = model->layout;
    const trl_patch *patch = &layout->patch[layout->local[local_patch]];
    const trli_field *f = &model->field[field];
    const trli_demand *d = &program->demand[field];
    trl_box box = trl_patch_owned(layout, patch, f->location);
    trl_offsets inner = d->inner.n ? trl_footprint_hull(&d->inner) : none;
    for (int a = 0; a < layout->grid.dim; ++a) {
        bool at_lo = trl_patch_at_side(layout, patch, a, 0), at_hi = trl_patch_at_side(layout, patch, a, 1);
        if (f->exchanged || f->persistent) {
            if (at_lo) box.lo[a] += f->shrink[(ptrdiff_t)2 * a];
            if (at_hi) box.hi[a] -= f->shrink[2 * a + 1];
            continue;
        }
        int lo = at_lo ? d->side.lo[a] : inner.lo[a], hi = at_hi ? d->side.hi[a] : inner.hi[a];
        if (lo < 0 || at_lo) box.lo[a] += lo;
        if (hi > 0 || at_hi) box.hi[a] += hi;
        if (box.hi[a] < box.lo[a]) box.hi[a] = box.lo[a];
    }
    return box;
}

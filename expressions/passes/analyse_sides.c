/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The backward pass over steps that set sides: how many ghost layers conditions supply, what these read, and what is
 * exchanged. */
#include <string.h>

#include "analyse_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "spatialops_impl.h"

static const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};

/* Points of a field, across a side, that the patches at it hold when a slab is set: ghosts of their neighbours' points
 * if these were exchanged. */
static int points_there(const trli_analysis *an, const trli_slab *slab, int field)
{
    const trl_layout *layout = an->model->layout;
    const trl_footprint *inner = &an->plan->demand[field].inner;
    const trl_offsets hull = inner->n ? trl_footprint_hull(inner) : none;
    const int a = slab->axis, bit = an->model->field[field].location >> a & 1;
    const int owned = trli_layout_thinnest(layout, a);
    if (layout->counts[a] == 1) return owned + bit;
    if (slab->layer == 0) return owned + (slab->side ? bit : 0);
    return slab->side ? owned + bit + (hull.lo[a] < 0 ? -hull.lo[a] : 0) : owned + (hull.hi[a] > 0 ? hull.hi[a] : 0);
}

/* A boundary value may only read points inside: in the layer's frame these start `layer` points inward. */
static trl_err check_inside(trli_analysis *an, const trli_slab *slab, const trl_place *place)
{
    const int *fields = slab->reads.field, a = slab->axis;
    int target_bit = an->model->field[slab->field].location >> a & 1;
    for (int i = 0; i < slab->reads.nfields; ++i) {
        const trl_offsets hull = trl_footprint_hull(&slab->reads.footprint[i]);
        int bit = an->model->field[fields[i]].location >> a & 1;
        bool inside = slab->side ? hull.hi[a] <= bit - target_bit - slab->layer : hull.lo[a] >= slab->layer;
        if (!inside)
            return trl_fail(an->model->ctx, TRL_ERR_INPUT, place,
                            "this boundary value reads '%s' beyond the side that it defines",
                            trli_shown_name(&an->model->field[fields[i]]));
        const int farthest = slab->side ? bit - target_bit - slab->layer - hull.lo[a] : hull.hi[a] - slab->layer;
        const bool mirror = fields[i] == slab->field && farthest < slab->layer + bit; /* check_side looks for that */
        if (mirror || farthest < points_there(an, slab, fields[i])) continue;
        return trl_fail(
            an->model->ctx, TRL_ERR_INPUT, place,
            "this boundary value reads '%s' at the %d points next to %c%c, and a patch there has only %d: use "
            "fewer patches or more cells",
            trli_shown_name(&an->model->field[fields[i]]), farthest + 1, "xyz"[a], slab -> side ? '+' : '-',
            points_there(an, slab, fields[i]));
    }
    return TRL_OK;
}

static void widen(trl_lidx lo[3], trl_lidx hi[3], const trl_offsets *part, int b)
{
    if (-part->lo[b] > lo[b]) lo[b] = -part->lo[b];
    if (part->hi[b] > hi[b]) hi[b] = part->hi[b];
}

/* Ghosts that a slab includes along the other axes, because some reader touches both. */
static void set_tangential(const trli_analysis *an, trli_slab *slab)
{
    const trli_demand *d = &an->plan->demand[slab->field];
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

/* Ways to have a condition that reads beyond a later side. */
static void advise_later(const trli_analysis *an, const trli_step *s, const trli_slab *slab, int later)
{
    const char axis = "xyz"[slab->axis], sign = slab->side ? '+' : '-';
    bool of_flux = false;
    for (int i = 0; i < s->nout; ++i) {
        const trli_side *side = &trli_step_sides(s)[i][2 * slab->axis + slab->side];
        for (int k = 0; k < side->npieces && s->field[i] == slab->field; ++k)
            of_flux |= side->piece[k].kind == TRL_BC_NEUMANN || side->piece[k].kind == TRL_BC_ROBIN;
    }
    if (of_flux)
        trl_advise(
            an->model->ctx,
            "if this says what a flux or stress is there, let that be a named formula which the equation reads, "
            "with the condition: `{formula: ..., boundary: {%c%c: {dirichlet: 0}}}`, and `%c%c: {neumann: 0}` here",
            axis, sign, axis, sign);
    trl_advise(an->model->ctx,
               "turn the domain, so that the condition is on a side of %c, unless those on the sides of %c read beyond "
               "sides of %c",
               "xyz"[later], "xyz"[later], axis);
}

/* Sides are filled in the order x, y, z: what a boundary value reads beyond a later side is not there yet. */
static trl_err check_later_sides(trli_analysis *an, const trli_step *s, const trli_slab *slab, int field,
                                 const trl_footprint *reach, const trl_place *place)
{
    const trli_model_field *f = &an->model->field[field], *target = &an->model->field[slab->field];
    trl_offsets hull = trl_footprint_hull(reach);
    for (int b = slab->axis + 1; b < an->model->layout->grid.dim; ++b) {
        bool above = hull.hi[b] + (target->location >> b & 1) - (f->location >> b & 1) > 0;
        if (an->model->layout->grid.periodic[b] || (hull.lo[b] >= 0 && !above)) continue;
        bool filled_here = false;
        for (int i = 0; i < s->nout && !filled_here; ++i) filled_here = s->field[i] == field;
        if (!filled_here) return TRL_OK;
        const trl_err err =
            trl_fail(an->model->ctx, TRL_ERR_INPUT, place,
                     "this boundary value reads '%s' beyond %c%c, and that side is filled later: the order is x, y, z",
                     trli_shown_name(f), "xyz"[b], hull.lo[b] < 0 ? '-' : '+');
        advise_later(an, s, slab, b);
        return err;
    }
    return TRL_OK;
}

/* Note what a slab reads: within a fill the sides of later axes are analysed first, so that they find it. */
static trl_err demand_slab(trli_analysis *an, const trli_step *s, const trli_slab *slab, int field,
                           const trl_footprint *reach, const trl_place *place)
{
    trli_extension e = trli_owned_only(an->model->field[slab->field].location);
    const int8_t *fixed_planes = an->model->field[slab->field].fixed_planes;
    trl_footprint across = *reach;
    trl_err err = check_later_sides(an, s, slab, field, reach, place);
    if (err != TRL_OK) return err;
    for (int b = 0; b < 3; ++b) {
        e.inner.part[0].lo[b] = -slab->tangential_lo[b];
        e.inner.part[0].hi[b] = slab->tangential_hi[b];
        e.side.lo[b] = -slab->corner_lo[b];
        e.side.hi[b] = slab->corner_hi[b];
        if (slab->layer > 0 || b <= slab->axis) continue;
        e.side.lo[b] = fixed_planes[(ptrdiff_t)2 * b]; /* points that a later axis sets are not set here */
        e.side.hi[b] = -fixed_planes[2 * b + 1];
    }
    /* Across the side all reads are inside (checked), whatever the two locations. */
    for (int p = 0; p < across.n; ++p) across.part[p].lo[slab->axis] = across.part[p].hi[slab->axis] = 0;
    e.location =
        (trl_location)((e.location & ~(1 << slab->axis)) | (an->model->field[field].location & 1 << slab->axis));
    trli_demand_field(an, &e, field, &across);
    return TRL_OK;
}

static trl_err analyse_modifier(trli_analysis *an, const trli_step *s, trli_slab *slab, const trli_piece *piece)
{
    const trli_opaque *modifier = piece->modifier;
    trl_err err = TRL_OK;
    slab->kind = TRLI_SLAB_MODIFIER;
    slab->modifier = modifier;
    slab->ninputs = modifier->ninputs;
    slab->input = piece->inputs;
    for (int r = 0; r < modifier->ninputs; ++r) {
        TRL_TRY(demand_slab(an, s, slab, slab->input[r], &modifier->reach[r], &piece->place));
    }
done:
    return err;
}

static trl_err analyse_layer(trli_analysis *an, const trli_step *s, trli_slab *slab, const trli_side *side)
{
    const trl_place *place = &side->piece[0].place;
    trl_err err = TRL_OK;
    TRL_TRY(trli_side_layer(an->model, slab->field, side, slab->axis, slab->side, slab->layer, &slab->value));
    TRL_TRY(trli_reads_find(&an->model->ir, &an->model->walk, 1, &slab->value, &slab->reads));
    slab->ninputs = slab->reads.nfields;
    slab->input = slab->reads.field;
    TRL_TRY(check_inside(an, slab, place));
    for (int k = 0; k < slab->reads.nscalars; ++k) an->scalar_live[slab->reads.scalar[k]] = true;
    for (int k = 0; k < slab->ninputs; ++k) {
        const trl_footprint reach = slab->reads.footprint[k];
        TRL_TRY(demand_slab(an, s, slab, slab->input[k], &reach, place));
    }
done:
    return err;
}

static trl_err add_slab(trli_analysis *an, trli_step *s, int i, int axis, int which, int layer)
{
    const trli_side *side = &trli_step_sides(s)[i][2 * axis + which];
    trli_step_plan *p = trli_plan_of(an->program, s);
    if (!trli_make_room(an->model->ctx, &p->slab, p->nslabs, 1, &p->slabs_capacity, sizeof *p->slab))
        return trli_no_memory(an->model->ctx, NULL, "for boundary conditions");
    trli_slab *slab = &p->slab[p->nslabs++];
    *slab = (trli_slab){.field = s->field[i], .axis = axis, .side = which, .layer = layer, .value = TRLI_NO_VALUE};
    set_tangential(an, slab);
    return side->piece[0].modifier ? analyse_modifier(an, s, slab, &side->piece[0]) : analyse_layer(an, s, slab, side);
}

static trl_err missing_side(trli_analysis *an, trli_model_field *f, int field, int side, int depth)
{
    trl_context *ctx = an->model->ctx;
    const trl_place *asker = an->plan->demand[field].asker[side];
    const bool known = asker && asker->file, heard = f->missed >> side & 1;
    const char *name = trli_shown_name(f), axis = "xyz"[side / 2], sign = side % 2 ? '+' : '-';
    f->missed |= (unsigned char)(1 << side);
    if (heard && known) return TRL_ERR_INPUT;
    if (f->direction && an->model->direction[f->direction - 1].time && f->boundary.side[side].npieces > 0)
        return trl_fail(ctx, TRL_ERR_INPUT, known ? asker : &f->boundary.place,
                        "'%s' is needed beyond %c%c, and its equation's condition there has no known time derivative: "
                        "write that condition as a formula of t, or do not difference '%s'",
                        name, axis, sign, name);
    trl_err err = trl_fail(ctx, TRL_ERR_INPUT, known ? asker : &f->boundary.place,
                           "'%s' needs a boundary condition on %c%c: %s reads %d point%s beyond that side", name, axis,
                           sign, known ? "this" : "an operator", depth, depth == 1 ? "" : "s");
    trl_advise(ctx, "add `%c%c: {neumann: 0}` to `boundary` of '%s': nothing flows through the side", axis, sign, name);
    trl_advise(ctx, "add `%c%c: {dirichlet: 0}`: the value at the side", axis, sign);
    trl_advise(ctx, "make %c periodic in `grid.periodic`: the domain goes on at its other side", axis);
    return err;
}

static trl_err check_side(trli_analysis *an, const trli_step *s, int i, int axis, int which, int depth)
{
    const trli_model_field *f = &an->model->field[s->field[i]];
    const int patches = an->model->layout->counts[axis], cells = trli_layout_thinnest(an->model->layout, axis);
    /* Inside of the side itself: the point on it is no layer's mirror image. The last one then is the next patch's (on
     * x+ the last patch has one more), here only if readers want it anyway. */
    const bool on_side = f->location >> axis & 1 && which == 0 && patches > 1;
    const bool next_is_here = trl_footprint_hull(&an->plan->demand[s->field[i]].inner).hi[axis] > 0;
    const int within = cells - (on_side && !next_is_here ? 1 : 0);
    const char *what = trli_shown_name(f);
    if (trli_step_sides(s)[i][2 * axis + which].npieces == 0)
        return missing_side(an, &an->model->field[s->field[i]], s->field[i], 2 * axis + which, depth);
    if (within < depth)
        return trl_fail(
            an->model->ctx, TRL_ERR_INPUT, &f->boundary.place,
            "'%s' needs %d ghost layers on %c%c, and a patch there has only %d point%s inside of the side: use "
            "fewer patches or more cells",
            what, depth, "xyz"[axis], which ? '+' : '-', within, within == 1 ? "" : "s");
    return TRL_OK;
}

static int side_depth(const trli_analysis *an, int field, int axis, int which)
{
    const trl_offsets *side = &an->plan->demand[field].side;
    return which ? side->hi[axis] : -side->lo[axis];
}

static trl_err fill_axis(trli_analysis *an, trli_step *s, int i, int axis)
{
    trl_err first = TRL_OK;
    for (int which = 0; which < 2 && !an->model->layout->grid.periodic[axis]; ++which) {
        const trli_side *side = &trli_step_sides(s)[i][2 * axis + which];
        int depth = side_depth(an, s->field[i], axis, which);
        if (depth <= 0 || side->npieces == 0) continue;
        trl_err err = TRL_OK;
        for (int m = side->piece[0].modifier ? depth : 1; err == TRL_OK && m <= depth; ++m)
            err = add_slab(an, s, i, axis, which, m);
        if (first == TRL_OK) first = err;
    }
    return first;
}

static void check_sides(trli_analysis *an, const trli_step *s)
{
    for (int i = 0; i < s->nout; ++i)
        for (int side = 0; side < 2 * an->model->layout->grid.dim; ++side) {
            int depth = side_depth(an, s->field[i], side / 2, side % 2);
            trl_err err = depth > 0 && an->plan->demand[s->field[i]].live
                              ? check_side(an, s, i, side / 2, side % 2, depth)
                              : TRL_OK;
            if (an->first == TRL_OK) an->first = err;
        }
}

/* Slabs were found from the last axis to the first, and run from the first to the last. */
static void reverse_slabs(trli_step_plan *p)
{
    for (int low = 0, high = p->nslabs - 1; low < high; ++low, --high) {
        trli_slab slab = p->slab[low];
        p->slab[low] = p->slab[high];
        p->slab[high] = slab;
    }
}

static trl_err start_exchange(trli_analysis *an, const trli_step *s)
{
    trli_exchanged *e = &trli_plan_of(an->program, s)->exchanged;
    e->field = trli_model_keep(an->model, ((size_t)s->nout + 1) * sizeof *e->field);
    e->reach = trli_model_keep(an->model, ((size_t)s->nout + 1) * sizeof *e->reach);
    e->round = trli_model_keep(an->model, (size_t)s->nout + 1);
    return an->model->ir.err;
}

static void exchange(const trli_analysis *an, const trli_step *s, int field, const trl_footprint *reach)
{
    trli_exchanged *e = &trli_plan_of(an->program, s)->exchanged;
    if (!an->plan->demand[field].live || !trli_needs_exchange(an->model->layout, reach)) return;
    e->reach[e->n] = *reach;
    e->field[e->n++] = field;
}

/* What is read before all ghosts are set, or of a level of time that gets no others. */
static trl_err analyse_exchange(trli_analysis *an, trli_step *s)
{
    trl_err err = TRL_OK;
    TRL_TRY(start_exchange(an, s));
    for (int i = 0; i < s->nout; ++i) {
        const int f = s->field[i];
        for (int side = 0; side < 6 && !an->filled[f]; ++side)
            if (side_depth(an, f, side / 2, side % 2) > 0) trli_note_unset(an, f);
        exchange(an, s, f, an->filled[f] ? &an->early[f] : &an->plan->demand[f].inner);
        an->filled[f] = true;
        an->early[f].n = 0;
    }
    trli_plan_of(an->program, s)->live = trli_plan_of(an->program, s)->exchanged.n > 0;
done:
    return err;
}

trl_err trli_analyse_fill(trli_analysis *an, trli_step *s)
{
    trli_step_plan *p = trli_plan_of(an->program, s);
    trl_err err = TRL_OK;
    if (s->fill.exchange_only) return analyse_exchange(an, s);
    for (int axis = an->model->layout->grid.dim - 1; axis >= 0; --axis) /* a side may read the ghosts of earlier ones */
        for (int i = 0; i < s->nout; ++i) {
            if (!an->plan->demand[s->field[i]].live) continue;
            trl_err one = fill_axis(an, s, i, axis);
            if (an->first == TRL_OK) an->first = one;
        }
    reverse_slabs(p);
    check_sides(an, s);
    if (an->first != TRL_OK) return TRL_OK;
    TRL_TRY(start_exchange(an, s));
    for (int i = 0; i < s->nout; ++i) exchange(an, s, s->field[i], &an->plan->demand[s->field[i]].inner);
    p->live = p->nslabs > 0 || p->exchanged.n > 0;
    for (int i = 0; i < s->nout; ++i) an->filled[s->field[i]] = true;
done:
    return err;
}

/* Backwards, since a plane may read what others of the step set before. */
trl_err trli_analyse_planes(trli_analysis *an, trli_step *s)
{
    trli_step_plan *p = trli_plan_of(an->program, s);
    trl_err err = TRL_OK;
    for (int k = s->planes.nplanes - 1; k >= 0; --k) {
        const trli_plane *at = &s->planes.plane[k];
        if (an->plan->demand[s->field[at->of]].live) TRL_TRY(add_slab(an, s, at->of, at->axis, at->side, 0));
    }
    reverse_slabs(p);
    p->live = p->nslabs > 0;
done:
    return err;
}

/* Every ghost that is read was set before. */
void trli_check_filled(trli_analysis *an)
{
    for (int f = 0; f < an->model->nfields; ++f) {
        const trli_demand *d = &an->plan->demand[f];
        bool unset = an->early[f].n > 0;
        if (!an->model->field[f].exchanged || !d->live) continue;
        if (an->model->field[f].lasting && an->program != an->model->lasting) continue;
        for (int side = 0; side < 6 && !an->filled[f]; ++side) unset |= side_depth(an, f, side / 2, side % 2) > 0;
        if (unset || (!an->filled[f] && trli_reaches_out(&d->inner))) trli_note_unset(an, f);
    }
}

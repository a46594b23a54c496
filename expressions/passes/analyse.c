/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The backward pass over a program: what is needed at all, how far beyond the owned points, and which ghost layers
 * the conditions of each side must supply. */
#include <string.h>

#include "analyse_impl.h"
#include "called_programs_impl.h"
#include "formula_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "program_touches_impl.h"

static void demand_reads(trli_analysis *an, const trli_extension *e, const trli_reads *reads)
{
    for (int i = 0; i < reads->nfields; ++i) trli_demand_field(an, e, reads->field[i], &reads->footprint[i]);
    for (int i = 0; i < reads->nscalars; ++i) an->scalar_live[reads->scalar[i]] = true;
}

static trli_extension extension_of(const trli_analysis *an, int field)
{
    const trli_model_field *f = &an->model->field[field];
    const trli_demand *d = &an->plan->demand[field];
    trli_extension e = trli_owned_only(f->location);
    if (f->exchanged || (f->persistent && !f->lasting)) {
        for (ptrdiff_t a = 0; a < 3; ++a) {
            e.side.lo[a] = f->fixed_planes[2 * a];
            e.side.hi[a] = -f->fixed_planes[2 * a + 1];
        }
        return e;
    }
    if (d->inner.n) {
        const trl_offsets hull = trl_footprint_hull(&d->inner), owned = {{0, 0, 0}, {0, 0, 0}};
        bool holds = true;
        e.inner = d->inner;
        for (int a = 0; a < 3; ++a) holds &= hull.lo[a] <= 0 && hull.hi[a] >= 0;
        if (!holds) trl_footprint_add(&e.inner, &owned); /* points owned are computed in any case (trli_step_box) */
    }
    e.side = d->side;
    e.corner = d->corner;
    return e;
}

/* What values read, as the inputs of a step. */
static trl_err find_inputs(const trli_analysis *an, int n, const trli_ir_value *value, trli_step_plan *p)
{
    trl_err err = trli_reads_find(&an->model->ir, &an->model->walk, n, value, &p->reads);
    p->ninputs = p->reads.nfields;
    p->input = p->reads.field;
    return err;
}

static trl_err analyse_kernel(trli_analysis *an, trli_step *s)
{
    trli_step_plan *p = trli_plan_of(an->program, s);
    trl_err err = TRL_OK;
    int kept = 0;
    for (int i = 0; i < s->nout; ++i) {
        if (!an->plan->demand[s->field[i]].live) continue;
        s->field[kept] = s->field[i];
        s->value[kept] = s->value[i];
        if (s->variable) s->variable[kept] = s->variable[i];
        ++kept;
    }
    s->nout = kept;
    p->live = kept > 0;
    if (!p->live) return TRL_OK;
    TRL_TRY(find_inputs(an, s->nout, s->value, p));
    const int64_t points = trli_model_points(an->model, an->model->field[s->field[0]].location, NULL);
    p->exceeds_caches = trli_exceeds_caches(an->model->ctx, points * (p->ninputs + s->nout));
    trli_extension e = extension_of(an, s->field[0]);
    demand_reads(an, &e, &p->reads);
done:
    return err;
}

/* Shrink a reduction at the sides until nothing beyond them is read. */
static void stay_inside(const trli_analysis *an, const trli_step *s, trli_extension *e)
{
    trli_step_plan *p = trli_plan_of(an->program, s);
    for (int i = 0; i < p->reads.nfields; ++i) {
        const trl_offsets hull = trl_footprint_hull(&p->reads.footprint[i]);
        for (ptrdiff_t a = 0; a < 3; ++a) {
            int over =
                hull.hi[a] + (s->reduce.location >> a & 1) - (an->model->field[p->reads.field[i]].location >> a & 1);
            if (-hull.lo[a] > p->fixed_planes[2 * a]) p->fixed_planes[2 * a] = (int8_t)-hull.lo[a];
            if (over > p->fixed_planes[2 * a + 1]) p->fixed_planes[2 * a + 1] = (int8_t)over;
        }
    }
    for (ptrdiff_t a = 0; a < 3; ++a) {
        e->side.lo[a] = p->fixed_planes[2 * a];
        e->side.hi[a] = (int8_t)-p->fixed_planes[2 * a + 1];
    }
}

/* One point reads beyond a side only if it is near it. */
static void narrow_to_point(const trli_analysis *an, const trli_step *s, trli_extension *e)
{
    for (int a = 0; a < an->model->layout->grid.dim; ++a) {
        trl_gidx before = s->reduce.point[a],
                 after = trl_grid_points(&an->model->layout->grid, s->reduce.location, a) - 1 - before;
        e->side.lo[a] = (int8_t)(before < 64 ? before : 64);
        e->side.hi[a] = (int8_t) - (after < 64 ? after : 64);
    }
}

static trl_err analyse_stable_dt(trli_analysis *an, const trli_step *s)
{
    const trli_opaque *called = s->plugin.called;
    trli_step_plan *p = trli_plan_of(an->program, s);
    trli_extension points = trli_owned_only(called->location);
    p->live = an->scalar_live[s->scalar];
    p->ninputs = called->ninputs;
    p->input = s->plugin.input;
    for (int i = 0; i < p->ninputs && p->live; ++i) {
        trli_demand_field(an, &points, p->input[i], &called->reach[i]);
    }
    return TRL_OK;
}

static trl_err analyse_scalar(trli_analysis *an, trli_step *s)
{
    trli_step_plan *p = trli_plan_of(an->program, s);
    trl_err err = TRL_OK;
    p->live = an->scalar_live[s->scalar];
    if (!p->live) return TRL_OK;
    TRL_TRY(find_inputs(an, 1, s->value, p));
    trli_extension e = trli_owned_only(s->kind == TRLI_STEP_REDUCE ? s->reduce.location : 0);
    if (s->kind == TRLI_STEP_REDUCE && s->reduce.inside) stay_inside(an, s, &e);
    if (s->kind == TRLI_STEP_REDUCE && s->reduce.kind == TRLI_REDUCE_POINT) narrow_to_point(an, s, &e);
    demand_reads(an, &e, &p->reads);
done:
    return err;
}

static trl_err analyse_plugin(trli_analysis *an, const trli_step *s)
{
    const trli_opaque *called = s->plugin.called;
    trli_step_plan *p = trli_plan_of(an->program, s);
    p->ninputs = called->ninputs;
    p->input = s->plugin.input;
    for (int i = 0; i < s->nout; ++i) p->live |= an->plan->demand[s->field[i]].live;
    if (!p->live) return TRL_OK;
    trli_extension e = trli_owned_only(an->model->field[s->field[0]].location);
    for (int i = 0; i < s->nout; ++i) {
        an->plan->demand[s->field[i]].live = true;
        trli_extension one = extension_of(an, s->field[i]);
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
        for (int i = 0; i < p->ninputs; ++i) {
            trli_demand_field(an, &e, p->input[i], &called->reach[i]);
        }
    }
    return TRL_OK;
}

/* Layers around the points owned are read, but beyond a side only what the step says. */
static trl_err analyse_read(trli_analysis *an, const trli_step *s)
{
    trli_step_plan *p = trli_plan_of(an->program, s);
    trli_extension e = trli_owned_only(an->model->field[*s->read.field].location);
    trl_footprint reach = {.n = 1};
    for (int a = 0; a < an->model->layout->grid.dim; ++a) {
        reach.part[0].lo[a] = (int8_t)-s->read.depth;
        reach.part[0].hi[a] = (int8_t)s->read.depth;
        e.side.lo[a] = (int8_t)(s->read.side.lo[a] + s->read.depth);
        e.side.hi[a] = (int8_t)(s->read.side.hi[a] - s->read.depth);
    }
    p->live = true;
    p->ninputs = 1;
    p->input = s->read.field;
    trli_demand_field(an, &e, *s->read.field, &reach);
    return TRL_OK;
}

static bool is_demanded_beyond(const trli_demand *d)
{
    bool beyond = d->live && trli_reaches_out(&d->inner);
    for (int a = 0; a < 3; ++a) beyond |= d->live && (d->side.lo[a] < 0 || d->side.hi[a] > 0);
    return beyond;
}

/* Ghosts of what a call has changed are set behind it, before anybody reads them. */
static trl_err check_ghosts(const trli_analysis *an, const trli_step *s)
{
    for (int o = 0; o < s->nout; ++o) {
        if (an->filled[s->field[o]] || !is_demanded_beyond(&an->plan->demand[s->field[o]])) continue;
        return trl_fail(
            an->model->ctx, TRL_ERR_USAGE, NULL,
            "program '%s' reads ghosts of '%s' after its call of '%s' has changed them; fill them in between",
            an->program->name, trli_shown_name(&an->model->field[s->field[o]]), s->call->program->name);
    }
    return TRL_OK;
}

/* The called program sets the ghosts that it reads itself. */
static trl_err analyse_call(trli_analysis *an, const trli_step *s)
{
    static const trl_footprint own = {.n = 1};
    trli_step_plan *p = trli_plan_of(an->program, s);
    trli_program_touches touched = {0};
    trl_err err = TRL_OK;
    TRL_TRY(check_ghosts(an, s));
    TRL_TRY(trli_step_touches_find(an->program, s, &touched));
    p->live = true;
    p->input = trli_model_keep(an->model, (size_t)an->model->nfields * sizeof *p->input);
    if (!p->input) TRL_TRY(an->model->ir.err);
    for (int f = 0; f < an->model->nfields; ++f) {
        if (!touched.field[f] || !an->model->field[f].persistent) continue;
        const trli_extension e = trli_owned_only(an->model->field[f].location);
        trli_demand_field(an, &e, f, &own);
        p->input[p->ninputs++] = f;
    }
    for (int i = 0; i < an->model->nscalars; ++i) an->scalar_live[i] |= touched.scalar[i] & TRLI_TOUCHES_READ;
done:
    trli_program_touches_free(&touched);
    return err;
}

/* Whether somebody reads a result of a step beyond the points owned. */
static bool is_read_beyond(const trli_analysis *an, const trli_step *s)
{
    for (int o = 0; o < s->nout; ++o)
        if (is_demanded_beyond(&an->plan->demand[s->field[o]])) return true;
    return false;
}

/* A step that computes again what conditions read before there were ghosts has the demands of the readers that follow
 * it, and the first one those of the conditions. */
static trl_err analyse_again(trli_analysis *an, const trli_step *s)
{
    for (int o = 0; o < s->nout; ++o) {
        trli_demand *d = &an->plan->demand[s->field[o]];
        trli_demand *kept = an->later[s->field[o]] = trli_model_keep(an->model, sizeof *kept);
        if (!kept) return an->model->ir.err;
        *kept = *d;
        *d = (trli_demand){.live = false};
    }
    return TRL_OK;
}

static trl_err keep_extent(trli_analysis *an, const trli_step *s)
{
    trli_step_plan *p = trli_plan_of(an->program, s);
    if (p->live) p->extent = trli_model_keep(an->model, (size_t)s->nout * sizeof *p->extent);
    if (p->live && !p->extent) return an->model->ir.err;
    for (int o = 0; o < s->nout; ++o) {
        trli_demand *d = &an->plan->demand[s->field[o]];
        if (p->live) p->extent[o] = *d;
        *d = *an->later[s->field[o]];
    }
    return TRL_OK;
}

static trl_err analyse_computing(trli_analysis *an, trli_step *s)
{
    trl_err err = TRL_OK;
    if (s->again && !is_read_beyond(an, s)) return TRL_OK;
    const int first = s->field[0];
    TRL_TRY(s->kind == TRLI_STEP_KERNEL ? analyse_kernel(an, s) : analyse_plugin(an, s));
    if (s->again)
        err = analyse_again(an, s);
    else if (an->later[first])
        err = keep_extent(an, s);
done:
    return err;
}

static trl_err analyse_step(trli_analysis *an, trli_step *s)
{
    switch (s->kind) {
    case TRLI_STEP_KERNEL:
    case TRLI_STEP_PLUGIN:
        return analyse_computing(an, s);
    case TRLI_STEP_FILL:
        return trli_analyse_fill(an, s);
    case TRLI_STEP_PLANES:
        return trli_analyse_planes(an, s);
    case TRLI_STEP_STABLE_DT:
        return analyse_stable_dt(an, s);
    case TRLI_STEP_READ:
        return analyse_read(an, s);
    case TRLI_STEP_CALL:
        return analyse_call(an, s);
    default:
        return analyse_scalar(an, s);
    }
}

static trl_err create_plan(trli_program *program)
{
    trli_plan *plan = program->plan = trli_new(program->model->ctx, 1, sizeof *plan);
    if (plan) {
        plan->nsteps = program->nsteps;
        plan->nfields = program->model->nfields;
        plan->demand = trli_new(program->model->ctx, (size_t)program->model->nfields + 1, sizeof *plan->demand);
        plan->step = trli_new(program->model->ctx, (size_t)program->nsteps + 1, sizeof *plan->step);
    }
    if (plan && plan->demand && plan->step) return TRL_OK;
    return trli_no_memory(program->model->ctx, NULL, "for the plan of program '%s'", program->name);
}

void trli_plan_destroy(trli_plan **plan)
{
    trli_plan *p = *plan;
    *plan = NULL;
    if (!p) return;
    for (int i = 0; p->step && i < p->nsteps; ++i) {
        trli_reads_free(&p->step[i].reads);
        for (int k = 0; k < p->step[i].nslabs; ++k)
            if (p->step[i].slab[k].kind == TRLI_SLAB_KERNEL) trli_reads_free(&p->step[i].slab[k].reads);
        trli_free(p->step[i].slab);
    }
    trli_free(p->step);
    trli_free(p->demand);
    trli_free(p);
}

trl_err trli_program_analyse(trli_program *program)
{
    trli_model *model = program->model;
    trli_analysis an = {.program = program, .model = model};
    trl_err err = TRL_OK;
    TRL_TRY(model->ir.err);
    TRL_TRY(create_plan(program));
    an.plan = program->plan;
    an.scalar_live = trli_new(model->ctx, (size_t)model->nscalars + 1, sizeof *an.scalar_live);
    an.filled = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *an.filled);
    an.early = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *an.early);
    an.later = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *an.later);
    if (!an.scalar_live || !an.filled || !an.early || !an.later) {
        err = trli_no_memory(model->ctx, NULL, "to analyse program '%s'", program->name);
        goto done;
    }
    for (int i = 0; i < program->nroots; ++i) an.plan->demand[program->root[i]].live = true;
    for (int i = 0; i < program->nscalar_roots; ++i) an.scalar_live[program->scalar_root[i]] = true;
    if (program == model->lasting) trli_demand_lasting(&an);
    for (int i = program->nsteps - 1; i >= 0; --i) {
        an.place = &program->step[i].place;
        TRL_TRY(analyse_step(&an, &program->step[i]));
    }
    trli_check_filled(&an);
    TRL_TRY(an.first);
done:
    trli_free(an.scalar_live);
    trli_free(an.filled);
    trli_free(an.early);
    trli_free(an.later);
    return err;
}

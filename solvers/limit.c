/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The stable time step as a program: the largest of sum_a |u_a|/h_a + sum_a 2 D_a/h_a^2 over points and equations. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "limit_impl.h"

/* The program in the making. */
typedef struct limit {
    trl_simulation *sim;
    trli_instance *in;
    trli_ir *ir;
    trli_value largest; /* scalar: the largest rate of all terms so far */
    trli_value given;   /* rate of the deck's speed and diffusivity at cells, or TRLI_NO_VALUE */
    bool given_added;   /* to some equation's rate */
    bool central;       /* central advection was found */
    bool diffusive;     /* diffusion was found */
    bool *differentiating;
} limit;

static trli_value magnitude(trli_ir *ir, trli_value v)
{
    return trli_ir_unary(ir, TRLI_OP_ABS, v);
}

/* The larger magnitude on the two faces around a point along an axis. */
static trli_value larger_face(trli_ir *ir, trli_value face, int axis, trl_location location)
{
    int bit = location >> axis & 1;
    return trli_ir_binary(ir, TRLI_OP_MAX, magnitude(ir, trli_ir_shift(ir, face, axis, -bit)),
                          magnitude(ir, trli_ir_shift(ir, face, axis, 1 - bit)));
}

static double rate_factor(const trli_ir *ir, trli_transport_kind kind, int axis)
{
    double h = ir->grid->spacing[axis];
    return kind == TRLI_ADVECTION ? 1 / h : 2 / (h * h);
}

static trli_value add_rate(trli_ir *ir, trli_value sum, trli_value rate)
{
    return sum < 0 ? rate : trli_ir_binary(ir, TRLI_OP_ADD, sum, rate);
}

static trli_value term_rate(limit *l, const trli_transport *t, trl_location location)
{
    trli_ir *ir = l->ir;
    trli_value rate = TRLI_NO_VALUE;
    for (int a = 0; a < ir->grid->dim; ++a) {
        if (!t->axis[a]) continue;
        trli_value one = trli_ir_binary(ir, TRLI_OP_MUL, larger_face(ir, t->face[a], a, location),
                                        trli_ir_constant(ir, rate_factor(ir, t->kind, a)));
        rate = add_rate(ir, rate, one);
    }
    if (rate >= 0 && t->outer >= 0) rate = trli_ir_binary(ir, TRLI_OP_MUL, rate, magnitude(ir, t->outer));
    return rate;
}

static trl_err reduce_rate(limit *l, trli_value rate, trl_location location)
{
    int scalar;
    trl_err err =
        trli_program_reduce(l->sim->limit, "stable dt", rate, location, TRLI_REDUCE_MAX, false, NULL, &scalar);
    if (err != TRL_OK) return err;
    /* A mere warning must not ask for boundary conditions that nothing else needs. */
    for (int i = 0; i < l->sim->limit->nsteps; ++i)
        if (l->sim->limit->step[i].scalar == scalar) l->sim->limit->step[i].inside = l->sim->problem->time.cfl <= 0;
    trli_value here = trli_ir_scalar(l->ir, scalar);
    l->largest = l->largest < 0 ? here : trli_ir_binary(l->ir, TRLI_OP_MAX, l->largest, here);
    return l->ir->err;
}

static trl_err unbounded(const limit *l, const trli_transport_list *list)
{
    return trl_fail(
        l->sim->ctx, TRL_ERR_INPUT, &list->place,
        "cfl cannot bound the transport in '%s': give dt: {cfl: ..., speed: ..., diffusivity: ...}, or a fixed dt",
        list->text);
}

static trl_err add_equation(limit *l, int v, bool required)
{
    const trl_time_entry *time = &l->sim->problem->time;
    trli_transport_list list = {0};
    trl_location location = l->sim->model->variable[v].location;
    trli_value sum = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    TRL_TRY(trli_find_transport(l->sim, l->in, v, l->differentiating, &list));
    if (list.unbounded && required && !time->speed.count && !time->diffusivity.count) {
        err = unbounded(l, &list);
        goto done;
    }
    for (int i = 0; i < list.n; ++i) {
        const trli_transport *t = &list.term[i];
        if ((t->kind == TRLI_ADVECTION ? time->speed.count : time->diffusivity.count) > 0) continue;
        l->central |= t->kind == TRLI_ADVECTION && t->central;
        l->diffusive |= t->kind == TRLI_DIFFUSION;
        sum = add_rate(l->ir, sum, term_rate(l, t, location));
    }
    if (l->given >= 0 && location == TRL_CELL) {
        sum = add_rate(l->ir, sum, l->given);
        l->given_added = true;
    }
    if (sum < 0) goto done;
    if (l->sim->equation[v].mask) {
        trli_value mask;
        TRL_TRY(trli_lower_at(l->in, l->sim->equation[v].mask, l->sim->equation[v].deck->names, location, &mask));
        sum = trli_ir_select(l->ir, mask, sum, trli_ir_constant(l->ir, 0));
    }
    TRL_TRY(reduce_rate(l, sum, location));
done:
    free(list.term);
    return err;
}

/* The deck's speed or diffusivity: one formula, or one per axis, at cells. */
static trl_err given_rate(limit *l, const trl_value *value, trli_transport_kind kind, trli_value *sum)
{
    trl_err err = TRL_OK;
    int dim = l->ir->grid->dim;
    trl_formula *f = NULL;
    if (value->count != 1 && value->count != dim)
        return trl_fail(l->sim->ctx, TRL_ERR_INPUT, &value->place,
                        "%s needs one formula, or one per axis of the grid: %d, not %d",
                        kind == TRLI_ADVECTION ? "speed" : "diffusivity", dim, value->count);
    for (int a = 0; a < dim; ++a) {
        trli_value v;
        TRL_TRY(trli_formula_of(l->sim, &value->text[value->count == 1 ? 0 : a], &f));
        TRL_TRY(trli_lower_at(l->in, f, l->sim->problem->parameters, TRL_CELL, &v));
        trl_formula_destroy(&f);
        *sum = add_rate(l->ir, *sum,
                        trli_ir_binary(l->ir, TRLI_OP_MUL, magnitude(l->ir, v),
                                       trli_ir_constant(l->ir, rate_factor(l->ir, kind, a))));
    }
done:
    trl_formula_destroy(&f);
    return err;
}

static trl_err lower_given(limit *l)
{
    const trl_time_entry *time = &l->sim->problem->time;
    trl_err err = TRL_OK;
    if (time->speed.count) TRL_TRY(given_rate(l, &time->speed, TRLI_ADVECTION, &l->given));
    if (time->diffusivity.count) TRL_TRY(given_rate(l, &time->diffusivity, TRLI_DIFFUSION, &l->given));
done:
    return err;
}

/* Plugins that know their own limit. */
static trl_err add_plugins(limit *l)
{
    trli_model *model = l->sim->model;
    trl_err err = TRL_OK;
    for (int e = 0; e < model->nentries; ++e) {
        int scalar;
        if (!model->entry[e].used || model->entry[e].nformulas || !model->entry[e].deck->type->stable_dt) continue;
        TRL_TRY(trli_opaque_stable_dt(l->in, e, &scalar));
        trli_value rate = trli_ir_binary(l->ir, TRLI_OP_DIV, trli_ir_constant(l->ir, 1), trli_ir_scalar(l->ir, scalar));
        l->largest = l->largest < 0 ? rate : trli_ir_binary(l->ir, TRLI_OP_MAX, l->largest, rate);
    }
done:
    return err;
}

static trl_err warn_central(const limit *l)
{
    const trl_simulation *sim = l->sim;
    if (l->central && !l->diffusive && !sim->integrator->imaginary)
        trl_warn(sim->ctx, &sim->problem->time.method_place,
                 "central advective_flux without diffusion grows with %s at any dt: use ssprk3 or rk4, or a limiter "
                 "such as vanleer",
                 sim->integrator->name);
    return TRL_OK;
}

trl_err trli_compile_limit(trl_simulation *sim, bool required)
{
    limit l = {.sim = sim, .ir = &sim->model->ir, .largest = TRLI_NO_VALUE, .given = TRLI_NO_VALUE};
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "stable dt", &sim->limit));
    TRL_TRY(trli_instance_create(sim->model, sim->limit, TRLI_SCALAR_STEP_TIME, 0, NULL, &l.in));
    for (int v = 0; v < sim->nequations; ++v) l.in->variable[v] = sim->equation[v].state;
    TRL_TRY(trli_instance_fill(l.in));
    TRL_TRY(trli_find_differentiating(sim, &l.differentiating));
    TRL_TRY(lower_given(&l));
    for (int v = 0; v < sim->nequations; ++v)
        if (!sim->equation[v].direction)
            TRL_TRY(add_equation(&l, v, required)); /* tangents are carried as their primal is */
    if (l.given >= 0 && !l.given_added) TRL_TRY(reduce_rate(&l, l.given, TRL_CELL));
    TRL_TRY(add_plugins(&l));
    TRL_TRY(warn_central(&l));
    if (l.largest >= 0) {
        TRL_TRY(trli_program_scalar(sim->limit, "stable dt", l.largest, &sim->limit_scalar));
        TRL_TRY(trli_program_add_scalar_root(sim->limit, sim->limit_scalar));
    } else if (required && sim->problem->time.dt_max <= 0) {
        err = trl_fail(sim->ctx, TRL_ERR_INPUT, &sim->problem->time.dt_place,
                       "nothing in the equations bounds dt: give cfl a max, or speed or diffusivity");
    }
done:
    free(l.differentiating);
    trli_instance_destroy(&l.in);
    return err;
}

/* The largest rate of the present state. Collective: yes. */
static trl_err largest_rate(trl_simulation *sim, double *rate)
{
    trl_err err = TRL_OK;
    *rate = 0;
    if (sim->limit_scalar < 0) return TRL_OK;
    sim->model->scalar[TRLI_SCALAR_STEP_TIME] = sim->time;
    TRL_TRY(trli_program_run_agreed(sim, sim->limit));
    *rate = sim->model->scalar[sim->limit_scalar];
done:
    return err;
}

trl_err trli_limit_step(trl_simulation *sim, double *dt)
{
    const trl_time_entry *p = &sim->problem->time;
    double rate;
    trl_err err = TRL_OK;
    TRL_TRY(largest_rate(sim, &rate));
    *dt = p->cfl / rate;
    if (p->dt_max > 0 && !(*dt <= p->dt_max) && !isnan(rate)) *dt = p->dt_max;
    if (!isfinite(*dt))
        return trl_fail(sim->ctx, isnan(rate) ? TRL_ERR_NUMERICS : TRL_ERR_INPUT, &p->dt_place,
                        "the stable dt is %s at step %" PRId64 ", t = %.10g: %s", isnan(rate) ? "NaN" : "infinite",
                        sim->step_number, sim->time,
                        isnan(rate) ? "a speed or diffusivity is NaN" : "nothing moves; give cfl a max");
    if (p->dt_min > 0 && *dt < p->dt_min)
        return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                        "the stable dt %.6g fell below min %.6g at step %" PRId64 ", t = %.10g", *dt, p->dt_min,
                        sim->step_number, sim->time);
done:
    return err;
}

trl_err trli_limit_warn(trl_simulation *sim)
{
    double rate, stable;
    trl_err err = TRL_OK;
    TRL_TRY(largest_rate(sim, &rate));
    stable = sim->integrator->stability / rate;
    if (rate > 0 && sim->dt > stable)
        trl_warn(sim->ctx, &sim->problem->time.dt_place,
                 "dt = %.6g is above the stable %.6g of %s for the initial values: expect growth; use a smaller dt, or "
                 "dt: {cfl: 0.5}",
                 sim->dt, stable, sim->integrator->name);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The stable time step as a program: the largest of sum_a |u_a|/h_a + sum_a 2 D_a/h_a^2 over the points of each
 * equation, for the transport that is found in its text, and what the Jacobian of the rest needs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "late_impl.h"
#include "limit_impl.h"
#include "memory_impl.h"
#include "plugin_step_impl.h"
#include "sides_impl.h"

/* The program in the making. */
typedef struct limit {
    trl_simulation *sim;
    trli_instance *in;
    trli_ir *ir;
    trli_bound *bound;
    trli_ir_value given; /* rate of the deck's speed and diffusivity at cells, or TRLI_NO_VALUE */
    bool given_added;    /* to some equation's rate */
    bool central;        /* central advection was found */
    bool diffusive;      /* diffusion was found */
    bool keys;           /* the deck gives speed or diffusivity */
    bool *differentiating;
    trli_marks marks;
    const char **text; /* [nequations] */
} limit;

static trli_ir_value magnitude(trli_ir *ir, trli_ir_value v)
{
    return trli_ir_unary(ir, TRLI_OP_ABS, v);
}

/* The larger magnitude on the two faces around a point along an axis. */
static trli_ir_value larger_face(trli_ir *ir, trli_ir_value face, int axis, trl_location location)
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

static trli_ir_value add_rate(trli_ir *ir, trli_ir_value sum, trli_ir_value rate)
{
    return sum < 0 ? rate : trli_ir_binary(ir, TRLI_OP_ADD, sum, rate);
}

static trli_ir_value term_rate(limit *l, const trli_transport *t, trl_location location)
{
    trli_ir *ir = l->ir;
    trli_ir_value rate = TRLI_NO_VALUE;
    for (int a = 0; a < ir->grid->dim; ++a) {
        if (!t->axis[a]) continue;
        trli_ir_value one = trli_ir_binary(ir, TRLI_OP_MUL, larger_face(ir, t->face[a], a, location),
                                           trli_ir_constant(ir, rate_factor(ir, t->kind, a)));
        rate = add_rate(ir, rate, one);
    }
    if (rate >= 0 && t->outer >= 0) rate = trli_ir_binary(ir, TRLI_OP_MUL, rate, magnitude(ir, t->outer));
    return rate;
}

/* What an equation is made of beside the transport that was found, in words of the deck. */
static void name_terms(limit *l, int v, const trli_transport_list *list)
{
    const trl_formula *ddt = l->sim->equation[v].ddt;
    const int most = 60, length = ddt->root->end - ddt->root->begin;
    const char *text = ddt->text.chars + ddt->root->begin;
    if (list->text[0])
        l->text[v] = trli_model_name(l->sim->model, "%s", list->text);
    else
        l->text[v] =
            trli_model_name(l->sim->model, "%.*s%s", length < most ? length : most, text, length < most ? "" : "...");
}

static trl_err add_equation(limit *l, int v)
{
    const trl_time_entry *time = &l->sim->problem->time;
    trli_transport_list list = {0};
    trl_location location = l->sim->model->variable[v].location;
    trli_ir_value sum = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    TRL_TRY(trli_find_transport(l->sim, l->in, v, l->differentiating, l->keys, &l->marks, &list));
    name_terms(l, v, &list);
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
    if (sum >= 0) TRL_TRY(trli_largest_value(l->sim, l->in, v, sum, &l->bound->known[v]));
done:
    trli_free(list.term);
    return err;
}

static trl_err lower_at_cells(limit *l, const trl_formula *f, const char *word, trli_ir_value *value)
{
    trli_operand operand;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower(l->in, f, l->sim->problem->parameters, &operand));
    if (!operand.components && operand.location[0] > TRL_CELL)
        return trli_text_fail(l->sim->ctx, &f->text, f->root->begin, f->root->end,
                              "dt.%s is taken at cells, and this is at %s: interpolate with at(..., cell)", word,
                              trli_location_text(l->sim->model, operand.location[0]));
    TRL_TRY(trli_lower_at(l->in, f, l->sim->problem->parameters, TRL_CELL, value));
done:
    return err;
}

/* The deck's speed or diffusivity: one formula, or one per axis, at cells. */
static trl_err given_rate(limit *l, const trl_value *value, trli_transport_kind kind, trli_ir_value *sum)
{
    trl_err err = TRL_OK;
    int dim = l->ir->grid->dim;
    const char *word = kind == TRLI_ADVECTION ? "speed" : "diffusivity";
    trl_formula *f = NULL;
    if (value->count != 1 && value->count != dim)
        return trl_fail(l->sim->ctx, TRL_ERR_INPUT, &value->place,
                        "%s needs one formula, or one per axis of the grid: %d, not %d", word, dim, value->count);
    for (int a = 0; a < dim; ++a) {
        trli_ir_value v;
        TRL_TRY(trli_formula_of(l->sim, &value->text[value->count == 1 ? 0 : a], &f));
        TRL_TRY(lower_at_cells(l, f, word, &v));
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
    trli_bound *b = l->bound;
    trl_err err = TRL_OK;
    for (int e = 0; e < model->front->nentries; ++e) {
        int scalar;
        if (!model->front->entry[e].used || model->front->entry[e].nformulas ||
            !model->front->entry[e].deck->type->stable_dt)
            continue;
        TRL_TRY(trli_plugin_stable_dt(l->in, e, &scalar));
        TRL_TRY(trli_program_add_scalar_root(l->sim->limit, scalar));
        b->plugin[b->nplugins] = e;
        b->plugin_dt[b->nplugins++] = (trli_quantity){.kind = TRLI_QUANTITY_SCALAR, .scalar = scalar};
    }
done:
    return err;
}

/* Implicit terms may damp what explicit ones let grow. */
static trl_err warn_central(const limit *l)
{
    const trl_simulation *sim = l->sim;
    bool damped = l->diffusive;
    for (int v = 0; v < sim->nequations; ++v) damped |= sim->equation[v].deck->implicit.count > 0;
    if (l->central && !damped && sim->integrator->imaginary == 0)
        trl_warn(sim->ctx, &sim->problem->time.method_place,
                 "central advective_flux without diffusion grows with %s at any dt: use ssprk3 or rk4, or a limiter "
                 "such as vanleer",
                 trl_method_name(sim->problem->time.method));
    return TRL_OK;
}

static trl_err create_bound(limit *l)
{
    trl_simulation *sim = l->sim;
    const size_t ne = (size_t)sim->model->front->nentries + 1, nv = (size_t)sim->nequations + 1;
    trli_bound *b = l->bound = sim->bound = trli_new(sim->ctx, 1, sizeof *b);
    if (b) {
        b->known = trli_new(sim->ctx, nv, sizeof *b->known);
        b->plugin = trli_new(sim->ctx, ne, sizeof *b->plugin);
        b->plugin_dt = trli_new(sim->ctx, ne, sizeof *b->plugin_dt);
    }
    l->text = trli_model_keep(sim->model, nv * sizeof *l->text);
    if (b && b->known && b->plugin && b->plugin_dt && l->text) return TRL_OK;
    return trli_no_memory(sim->ctx, NULL, "to bound dt of %d equations", sim->nequations);
}

void trli_bound_destroy(trli_bound **bound)
{
    trli_bound *b = *bound;
    *bound = NULL;
    if (!b) return;
    trli_jacobian_destroy(&b->jacobian);
    trli_free(b->known);
    trli_free(b->plugin);
    trli_free(b->plugin_dt);
    trli_free(b);
}

trl_err trli_compile_limit(trl_simulation *sim, bool required)
{
    limit l = {.sim = sim, .ir = &sim->model->ir, .given = TRLI_NO_VALUE};
    const trl_time_entry *time = &sim->problem->time;
    trl_err err = TRL_OK;
    l.keys = time->speed.count || time->diffusivity.count;
    TRL_TRY(create_bound(&l));
    TRL_TRY(trli_program_create(sim->model, "stable dt", &sim->limit));
    sim->limit->once = !required;
    TRL_TRY(trli_instance_create(sim->model, sim->limit, TRLI_SCALAR_STEP_TIME, 0, NULL, &l.in));
    for (int v = 0; v < sim->nequations; ++v) l.in->variable[v] = sim->equation[v].state;
    l.in->averages = true;
    TRL_TRY(trli_instance_fill(l.in));
    TRL_TRY(trli_find_differentiating(sim, &l.differentiating));
    TRL_TRY(lower_given(&l));
    for (int v = 0; v < sim->nequations; ++v)
        if (sim->equation[v].ddt) TRL_TRY(add_equation(&l, v)); /* tangents are carried as their primal is */
    if (l.given >= 0 && !l.given_added) TRL_TRY(trli_largest_value(sim, l.in, -1, l.given, &l.bound->given));
    TRL_TRY(add_plugins(&l));
    TRL_TRY(warn_central(&l));
    TRL_TRY(trli_jacobian_create(sim, l.in, &l.marks, l.keys, l.text, &l.bound->jacobian));
    l.bound->constant = sim->limit->nscalar_roots == 0;
done:
    trli_free(l.differentiating);
    trli_free(l.marks.node);
    trli_instance_destroy(&l.in);
    return err;
}

trl_err trli_limit_run(trl_simulation *sim)
{
    trl_err err = TRL_OK;
    sim->frame->scalar[TRLI_SCALAR_STEP_TIME] = sim->time;
    TRL_TRY(trli_program_run_agreed(sim, sim->limit));
    err = trli_device_dt_fetch(sim);
done:
    return err;
}

/* The largest rate of the present state. Collective: yes. */
static trl_err largest_rate(trl_simulation *sim, bool unscaled, trli_rate *rate)
{
    trl_err err = TRL_OK;
    if (!sim->bound->constant) TRL_TRY(trli_limit_run(sim));
    sim->bound->known_once = true;
    *rate = trli_bound_rate(sim, unscaled);
done:
    return err;
}

static trl_err no_stable_step(const trl_simulation *sim, const trli_rate *rate)
{
    char words[256];
    trli_rate_words(sim, rate, sizeof words, words);
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &sim->problem->time.method_place,
                    "%s has no stable step for %s: use ssprk3 or rk4, which have",
                    trl_method_name(sim->problem->time.method), words);
}

/* Nothing that the deck's max could stand for. */
static trl_err no_dt(const trl_simulation *sim, const trli_rate *rate)
{
    const trl_place *place = &sim->problem->time.dt_place;
    char words[256];
    trli_rate_words(sim, rate, sizeof words, words);
    if (isnan(rate->rate))
        return trl_fail(sim->ctx, TRL_ERR_NUMERICS, place,
                        "the stable dt is NaN at step %" PRId64 ", t = %.10g: a speed, a diffusivity or a derivative "
                        "is, in %s",
                        sim->step_number, sim->time, words);
    if (isinf(rate->rate))
        return trl_fail(sim->ctx, TRL_ERR_NUMERICS, place,
                        "the stable dt is 0 at step %" PRId64 ", t = %.10g: the rate of %s is infinite",
                        sim->step_number, sim->time, words);
    if (rate->by == TRLI_BY_NOTHING && sim->bound->constant)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, place,
                        "nothing in the equations bounds dt: give cfl a max, or speed or diffusivity");
    return trl_fail(sim->ctx, TRL_ERR_INPUT, place,
                    "the stable dt is infinite at step %" PRId64 ", t = %.10g: nothing moves; give cfl a max",
                    sim->step_number, sim->time);
}

/* Whether a rate gives a dt at all. */
static bool rate_gives(const trl_simulation *sim, const trli_rate *rate, double *dt)
{
    const trl_time_entry *p = &sim->problem->time;
    *dt = p->cfl / rate->rate;
    if (p->dt_max > 0 && !(*dt <= p->dt_max) && !isnan(rate->rate)) *dt = p->dt_max;
    const bool derived = rate->by == TRLI_BY_ITSELF || rate->by == TRLI_BY_COUPLING || rate->by == TRLI_BY_SUMS;
    return isfinite(*dt) && !(derived && isinf(rate->rate));
}

bool trli_limit_gives(const trl_simulation *sim, const trli_rate *rate, double *dt)
{
    return !rate->unstable && rate_gives(sim, rate, dt) && !(*dt < sim->problem->time.dt_min);
}

trl_err trli_limit_of(const trl_simulation *sim, const trli_rate *rate, double *dt)
{
    const trl_time_entry *p = &sim->problem->time;
    if (rate->unstable) return no_stable_step(sim, rate);
    if (!rate_gives(sim, rate, dt)) return no_dt(sim, rate);
    if (p->dt_min > 0 && *dt < p->dt_min)
        return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                        "the stable dt %.6g fell below min %.6g at step %" PRId64 ", t = %.10g", *dt, p->dt_min,
                        sim->step_number, sim->time);
    return TRL_OK;
}

trl_err trli_limit_step(trl_simulation *sim, double *dt)
{
    trli_rate rate;
    trl_err err = TRL_OK;
    TRL_TRY(largest_rate(sim, true, &rate));
    err = trli_limit_of(sim, &rate, dt);
done:
    return err;
}

trl_err trli_limit_warn(trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    char words[256];
    trli_rate rate;
    trl_err err = TRL_OK;
    if (!trli_dt_is_fixed(sim) || p->none) return TRL_OK;
    TRL_TRY(largest_rate(sim, false, &rate));
    trli_rate_words(sim, &rate, sizeof words, words);
    if (rate.unstable)
        trl_warn(sim->ctx, &p->method_place, "%s has no stable step for %s: it grows at any dt; use ssprk3 or rk4",
                 trl_method_name(sim->problem->time.method), words);
    else if (isfinite(rate.rate) && sim->dt * rate.rate > 1)
        trl_warn(sim->ctx, &p->dt_place,
                 "dt = %.6g is above the stable %.6g of %s for the initial values, by %s: expect growth; use a "
                 "smaller dt, or dt: {cfl: 0.5}%s",
                 sim->dt, 1 / rate.rate, trl_method_name(sim->problem->time.method), words,
                 sim->integrator->imex ? ", or let `implicit` of ddt have these terms" : "");
done:
    return err;
}

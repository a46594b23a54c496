/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Equations of second order in time, as pairs: w, whose rate is w_t, and w_t, whose rate is ddt2 of w. */
#include <stdio.h>
#include <string.h>

#include "memory_impl.h"
#include "parameters_impl.h"
#include "simulation_impl.h"
#include "symbols_impl.h"

/* A rate's name and the texts that are not the deck's. */
typedef struct rate_texts {
    char name[256];
    trl_text ddt, initial;
} rate_texts;

/* What a problem with rates owns. */
typedef struct extended_problem {
    trl_problem problem; /* first */
    trl_equation_entry *equation;
    rate_texts *texts; /* [rates] */
} extended_problem;

static bool is_second(const trl_equation_entry *e)
{
    return e->ddt2.count > 0;
}

static int count_second(const trl_problem *p)
{
    int n = 0;
    for (int v = 0; v < p->nequations; ++v) n += is_second(&p->equation[v]);
    return n;
}

static trl_err check_name(trl_simulation *sim, const trl_equation_entry *of, const char *name)
{
    const trl_problem *p = sim->problem;
    double value;
    const char *taken = NULL;
    for (int v = 0; v < p->nequations; ++v)
        if (strcmp(p->equation[v].name, name) == 0) taken = "an equation";
    for (int e = 0; e < p->nexpressions; ++e)
        if (p->expression[e].name && strcmp(p->expression[e].name, name) == 0) taken = "an expression";
    if (p->parameters && trl_scope_find(p->parameters, name, &value)) taken = "a parameter";
    if (!trl_name_valid(name))
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &of->place, "the rate of '%s' has too long a name", of->name);
    if (!taken) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &of->place,
                    "the rate of '%s' is called '%s', and that name is taken by %s: rename one", of->name, name, taken);
}

/* of: an equation of second order, in the extended problem, which becomes one of first order. */
static trl_err add_rate(trl_simulation *sim, trl_equation_entry *of, rate_texts *texts, trl_equation_entry *rate)
{
    trl_err err;
    snprintf(texts->name, sizeof texts->name, "%s_t", of->name);
    TRL_TRY(check_name(sim, of, texts->name));
    texts->ddt = (trl_text){.chars = texts->name, .place = of->ddt2.place};
    texts->initial = (trl_text){.chars = "0", .place = of->place};
    *rate = *of;
    rate->name = texts->name;
    rate->exact = (trl_text){0};
    rate->ddt = of->ddt2;
    rate->initial = of->initial_rate;
    if (rate->initial.count == 0) rate->initial = (trl_value){.count = 1, .text = &texts->initial, .place = of->place};
    of->ddt = (trl_value){.count = 1, .text = &texts->ddt, .place = of->ddt2.place};
    of->ddt2 = of->initial_rate = rate->ddt2 = rate->initial_rate = (trl_value){0};
done:
    return err;
}

trl_err trli_add_rates(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const int n = p->nequations, rates = count_second(p);
    trl_err err = TRL_OK;
    if (rates == 0) return TRL_OK;
    extended_problem *x = trli_new(sim->ctx, 1, sizeof *x);
    if (!x) return trli_no_memory(sim->ctx, NULL, "for %d rates", rates);
    sim->extended = &x->problem;
    x->problem = *p;
    x->equation = trli_new(sim->ctx, (size_t)(n + rates), sizeof *x->equation);
    x->texts = trli_new(sim->ctx, (size_t)rates, sizeof *x->texts);
    if (!x->equation || !x->texts) return trli_no_memory(sim->ctx, NULL, "for %d rates", rates);
    memcpy(x->equation, p->equation, (size_t)n * sizeof *x->equation);
    for (int v = 0, r = 0; v < n; ++v) {
        if (!is_second(&p->equation[v])) continue;
        TRL_TRY(add_rate(sim, &x->equation[v], &x->texts[r], &x->equation[n + r]));
        ++r;
    }
    x->problem.equation = x->equation;
    x->problem.nequations = n + rates;
    sim->first_rate = n;
    sim->declared = p;
    sim->problem = &x->problem;
done:
    return err;
}

void trli_note_rates(trl_simulation *sim)
{
    if (!sim->declared) return;
    for (int v = 0, r = sim->first_rate; v < sim->first_rate; ++v) {
        if (!is_second(&sim->declared->equation[v])) continue;
        sim->equation[v].rate = r;
        sim->equation[r].is_rate = true;
        sim->equation[r++].of = v;
    }
}

trl_err trli_declare_rates(trl_simulation *sim)
{
    if (!sim->declared) return TRL_OK;
    for (int v = 0; v < sim->problem->nequations; ++v) {
        sim->model->variable[v].is_rate = sim->equation[v].is_rate;
        sim->model->variable[v].of = sim->equation[v].of;
    }
    return trli_direction_of_time(sim->model, &sim->time_direction);
}

void trli_rates_destroy(trl_simulation *sim)
{
    extended_problem *x = (extended_problem *)sim->extended;
    sim->extended = NULL;
    if (!x) return;
    trli_free(x->equation);
    trli_free(x->texts);
    trli_free(x);
}

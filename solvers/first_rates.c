/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The rates of the new values, which an estimate of the error needs, are those of the first stage of the next step:
 * they are kept, and their memory is exchanged as that of the levels is. After a rejected step the first ones are still
 * there; before the first step, or after a restart, a program of its own makes them, to the same bits. That is not so
 * where rates are not determined by the state and the time alone: with dt, old(f), noise, expressions that are held
 * through a step, or types, which may ask for the number of the step. */
#include <string.h>

#include "adaptive_impl.h"
#include "compile_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "sides_impl.h"
#include "tree_impl.h"

struct trli_first_rates {
    trli_program *program;
    int *first, *last; /* [equations] fields */
    bool known;        /* the first ones are those of the present state */
};

/* ---- what rates depend on ---- */

static trl_err value_depends(trl_simulation *sim, const trl_value *value, const trl_scope *names, bool *any)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < value->count && err == TRL_OK && !*any; ++i) {
        trl_formula *f = NULL;
        err = trli_formula_of(sim, &value->text[i], &f);
        if (err == TRL_OK) *any = trli_tree_reads_step(sim->model, f, names);
        trl_formula_destroy(&f);
    }
    return err;
}

static trl_err sides_depend(trl_simulation *sim, const trl_bc_side side[6], const trl_scope *names, bool *any)
{
    trl_err err = TRL_OK;
    for (int s = 0; s < 6 && !*any; ++s)
        for (int i = 0; i < side[s].npieces && !*any; ++i) {
            const trl_bc_piece *p = &side[s].piece[i];
            const trl_value where = {.count = p->where.chars != NULL, .text = (trl_text *)&p->where};
            *any |= p->expression != NULL;
            TRL_TRY(value_depends(sim, &where, names, any));
            TRL_TRY(value_depends(sim, &p->value, names, any));
            TRL_TRY(value_depends(sim, &p->b, names, any));
            TRL_TRY(value_depends(sim, &p->c, names, any));
        }
done:
    return err;
}

trl_err trli_rates_read_step(trl_simulation *sim, bool *any)
{
    const trl_problem *p = sim->problem;
    trl_err err = TRL_OK;
    *any = false;
    for (int v = 0; v < sim->nequations && !*any; ++v) {
        const trli_equation *eq = &sim->equation[v];
        const trl_formula *const formula[] = {eq->ddt, eq->implicit, eq->solve, eq->equals};
        for (size_t i = 0; i < sizeof formula / sizeof *formula; ++i)
            *any |= formula[i] && trli_tree_reads_step(sim->model, formula[i], eq->deck->names);
        TRL_TRY(sides_depend(sim, eq->deck->boundary, eq->deck->names, any));
    }
    for (int e = 0; e < p->nexpressions && !*any; ++e)
        TRL_TRY(sides_depend(sim, p->expression[e].boundary, p->expression[e].names, any));
done:
    return err;
}

/* ---- programs ---- */

trl_err trli_add_beside(trl_simulation *sim, int v, const char *name, int *field)
{
    trli_model *model = sim->model;
    *field = trli_model_add_field(model, name, model->variable[v].location);
    if (*field < 0) return model->ir.err;
    model->field[*field].persistent = true;
    memcpy(model->field[*field].fixed_planes, model->field[sim->equation[v].state].fixed_planes,
           sizeof model->field[*field].fixed_planes);
    return TRL_OK;
}

trl_err trli_first_rates_prepare(trl_simulation *sim)
{
    const size_t n = (size_t)sim->nequations + 1;
    bool depends;
    trl_err err = TRL_OK;
    if (!sim->problem->time.adaptive || sim->integrator->implicit || sim->solving) return TRL_OK;
    TRL_TRY(trli_rates_read_step(sim, &depends));
    if (depends) return TRL_OK;
    struct trli_first_rates *r = sim->first_rates = trli_model_keep(sim->model, sizeof *r);
    if (!r) return sim->model->ir.err;
    *r = (struct trli_first_rates){.first = trli_model_keep(sim->model, n * sizeof(int)),
                                   .last = trli_model_keep(sim->model, n * sizeof(int))};
    if (!r->first || !r->last) return sim->model->ir.err;
    for (int v = 0; v < sim->nequations; ++v) {
        const char *name = sim->equation[v].deck->name;
        TRL_TRY(trli_add_beside(sim, v, trli_model_name(sim->model, "%s:rate", name), &r->first[v]));
        TRL_TRY(trli_add_beside(sim, v, trli_model_name(sim->model, "%s:rate np1", name), &r->last[v]));
    }
done:
    return err;
}

const int *trli_first_rates(const trl_simulation *sim)
{
    return sim->first_rates ? sim->first_rates->first : NULL;
}

const int *trli_last_rates(const trl_simulation *sim)
{
    return sim->first_rates ? sim->first_rates->last : NULL;
}

trl_err trli_first_rates_compile(trl_simulation *sim)
{
    struct trli_first_rates *r = sim->first_rates;
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    if (!r) return TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "first rates", &r->program));
    TRL_TRY(trli_instance_of_state(sim, r->program, &in));
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    err = trli_store_rates(sim, in, r->first);
done:
    trli_instance_destroy(&in);
    return err;
}

void trli_first_rates_equalise(trl_simulation *sim)
{
    const struct trli_first_rates *r = sim->first_rates;
    for (int v = 0; v < sim->nequations && r; ++v) trli_equalise(sim->model, r->first[v], r->last[v]);
}

/* ---- running ---- */

trl_err trli_first_rates_find(trl_simulation *sim, const trli_next_step *next)
{
    struct trli_first_rates *r = sim->first_rates;
    trl_err err = TRL_OK;
    if (!r || r->known) return TRL_OK;
    trli_set_times(sim, next);
    TRL_TRY(trli_run_checked(sim, r->program, sim->step_number, sim->time, false));
    r->known = true;
done:
    return err;
}

void trli_first_rates_forget(trl_simulation *sim)
{
    if (sim->first_rates) sim->first_rates->known = false;
}

void trli_first_rates_swap(trl_simulation *sim)
{
    struct trli_first_rates *r = sim->first_rates;
    for (int v = 0; v < sim->nequations && r; ++v) trli_frame_swap(sim->frame, r->first[v], r->last[v]);
}

void trli_first_rates_mark_fields(const trl_simulation *sim, bool *needed)
{
    const struct trli_first_rates *r = sim->first_rates;
    for (int v = 0; v < sim->nequations && r && r->known; ++v) needed[r->first[v]] = true;
}

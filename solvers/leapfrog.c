/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Leapfrog, for equations of second order w'' = F(w, w', t). The state at t_n is w_n and the rate half a step before,
 * v_{n-1/2}. A step is
 *     v_{n+1/2} = v_{n-1/2} + (dt_{n-1} + dt_n)/2 F(w_n, v_n, t_n),    w_{n+1} = w_n + dt_n v_{n+1/2},
 * with dt_{-1} = 0: the first one is a Taylor step, as v_{-1/2} is the initial rate then. The rate at t_n, which F and
 * users read, is v_n = v_{n-1/2} + dt_{n-1}/2 F(w_n, v_{n-1/2}, t_n), of second order (Hairer, Lubich & Wanner 2003,
 * Acta Numerica 12, 399). */
#include <string.h>

#include "compile_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "reads_impl.h"
#include "sides_impl.h"

/* Append what computes the rate at the present time, from the state with ghosts. */
static trl_err add_present_rate(trl_simulation *sim, trli_instance *state, int v, int *field)
{
    trli_model *model = sim->model;
    trli_ir *ir = &model->ir;
    const trli_equation *eq = &sim->equation[v];
    const trl_location location = model->variable[v].location;
    trli_ir_value slope, mask;
    trl_err err = TRL_OK;
    const char *name = trli_model_name(model, "%s:now", eq->deck->name);
    *field = trli_model_add_field(model, name, location);
    if (*field < 0) return model->ir.err;
    trli_set_conditions(sim, v, *field, sim->equation[eq->of].state);
    TRL_TRY(trli_lower_at(state, eq->ddt, eq->deck->names, location, &slope));
    trli_ir_value before = trli_ir_field(ir, eq->state), half = trli_ir_scalar(ir, sim->half_scalar);
    trli_ir_value now = trli_ir_binary(ir, TRLI_OP_ADD, before, trli_ir_binary(ir, TRLI_OP_MUL, half, slope));
    if (model->variable[v].mask) {
        TRL_TRY(trli_lower_at(state, model->variable[v].mask, eq->deck->names, location, &mask));
        now = trli_ir_select(ir, mask, now, before);
    }
    err = trli_program_add_kernel(state->program, name, 1, field, &now, NULL);
done:
    return err;
}

/* What some steps need of those before them. */
typedef struct needs {
    trli_model *model;
    bool *field, *scalar; /* [nfields], [nscalars] of the model */
} needs;

static trl_err need_values(const needs *need, int n, const trli_ir_value *value)
{
    trli_reads reads = {0};
    trl_err err = trli_reads_find(&need->model->ir, &need->model->walk, n, value, &reads);
    for (int i = 0; i < reads.nfields; ++i) need->field[reads.field[i]] = true;
    for (int i = 0; i < reads.nscalars; ++i) need->scalar[reads.scalar[i]] = true;
    trli_reads_free(&reads);
    return err;
}

static trl_err need_value(void *need, trli_ir_value value)
{
    return need_values(need, 1, &value);
}

/* Note what a step needs, if what it computes is needed. */
static trl_err need_step(needs *need, const trli_step *s)
{
    const trli_plugin_step *plugin = trli_step_plugin(s);
    bool needed = s->scalar >= 0 && need->scalar[s->scalar];
    trl_err err = TRL_OK;
    for (int o = 0; o < s->nout; ++o) {
        const bool one = need->field[s->field[o]];
        needed |= one;
        for (int side = 0; one && s->kind == TRLI_STEP_FILL && side < 6; ++side)
            TRL_TRY(trli_side_visit(need->model, &s->fill.sides[o][side], need_value, need));
    }
    if (!needed) return TRL_OK;
    for (int i = 0; plugin && i < plugin->called->ninputs; ++i) need->field[plugin->input[i]] = true;
    if (s->value) TRL_TRY(need_values(need, s->nout > 0 ? s->nout : 1, s->value));
done:
    return err;
}

/* Whether the ghosts of unknowns that are no rates follow from rates, in some steps or directly. */
static trl_err ghosts_need_rates(trl_simulation *sim, const trli_instance *state, bool *need_rates)
{
    trli_model *model = sim->model;
    const trli_program *program = state->program;
    needs need = {model, trli_new(sim->ctx, (size_t)model->nfields + 1, sizeof *need.field),
                  trli_new(sim->ctx, (size_t)model->nscalars + 1, sizeof *need.scalar)};
    trl_err err = TRL_OK;
    *need_rates = false;
    if (!need.field || !need.scalar) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for boundary conditions"));
    for (int v = 0; v < sim->nequations; ++v) need.field[sim->equation[v].state] = !sim->equation[v].is_rate;
    for (int i = program->nsteps - 1; i >= state->fill.conditions_from; --i)
        TRL_TRY(need_step(&need, &program->step[i]));
    for (int v = 0; v < sim->nequations; ++v)
        *need_rates |= sim->equation[v].is_rate && need.field[sim->equation[v].state];
done:
    trli_free(need.field);
    trli_free(need.scalar);
    return err;
}

/* Give an instance copies of the unknowns, whose ghosts follow from the present rates. */
static trl_err add_copies(trl_simulation *sim, trli_instance *in)
{
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        const char *name = trli_model_name(sim->model, "%s:now", eq->deck->name);
        if (eq->is_rate) continue;
        const int copy = trli_model_add_field(sim->model, name, sim->model->variable[v].location);
        trli_ir_value value = trli_ir_field(&sim->model->ir, eq->state);
        if (copy < 0) return sim->model->ir.err;
        trli_set_conditions(sim, v, copy, copy);
        memset(sim->model->field[copy].fixed_planes, 0, sizeof sim->model->field[copy].fixed_planes);
        TRL_TRY(trli_program_add_kernel(in->program, name, 1, &copy, &value, NULL));
        in->variable[v] = copy;
        if (eq->rate >= 0) sim->model->field[in->variable[eq->rate]].primal = copy;
    }
done:
    return err;
}

trl_err trli_instance_of_present(trl_simulation *sim, trli_program *program, trli_instance **instance)
{
    trli_instance *state = NULL, *in = NULL;
    bool copies;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_of_state(sim, program, &state));
    TRL_TRY(trli_instance_fill(state));
    if (!sim->integrator->leapfrog) {
        *instance = state;
        return TRL_OK;
    }
    TRL_TRY(ghosts_need_rates(sim, state, &copies));
    TRL_TRY(trli_instance_of_state(sim, program, &in));
    for (int v = 0; v < sim->nequations; ++v)
        if (sim->equation[v].is_rate) TRL_TRY(add_present_rate(sim, state, v, &in->variable[v]));
    if (copies) TRL_TRY(add_copies(sim, in));
    in->rates_only = true;
    in->fill.rates_only = !copies; /* those of the state have their ghosts */
    TRL_TRY(trli_instance_planes(in, false));
    TRL_TRY(trli_instance_fill(in));
    *instance = in;
    in = NULL;
done:
    trli_instance_destroy(&state);
    trli_instance_destroy(&in);
    return err;
}

trli_ir_value trli_leapfrog_update(trl_simulation *sim, int v, const trli_ir_value *slope)
{
    trli_ir *ir = &sim->model->ir;
    const trli_equation *eq = &sim->equation[v];
    if (eq->is_rate) {
        trli_ir_value kick = trli_ir_scalar(ir, sim->kick_scalar);
        return trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, eq->state),
                              trli_ir_binary(ir, TRLI_OP_MUL, kick, slope[v]));
    }
    trli_ir_value rate = trli_leapfrog_update(sim, eq->rate, slope);
    return trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, eq->state),
                          trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, TRLI_SCALAR_DT), rate));
}

trl_err trli_leapfrog_check(const trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    if (!sim->integrator->leapfrog) return TRL_OK;
    for (int v = 0; v < p->nequations; ++v)
        if (!sim->equation[v].is_rate && sim->equation[v].rate < 0)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->time.method_place,
                            "leapfrog advances equations with ddt2, and '%s' has %s: use another method, which has "
                            "both, such as rk4",
                            p->equation[v].name, sim->equation[v].solve ? "solve" : "ddt");
    return TRL_OK;
}

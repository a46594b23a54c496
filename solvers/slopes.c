/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdlib.h>
#include <string.h>

#include "compile_impl.h"
#include "late_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "sides_impl.h"
#include "slopes_impl.h"
#include "solving_impl.h"

struct trli_slopes {
    int *slope, *lost;         /* [equations] fields, or -1 */
    int *ahead;                /* velocities a step later by their explicit terms alone */
    int kept;                  /* field: the pressure of the stage */
    trli_program *try, *leave; /* make `ahead`; make slopes of it, once q is known */
};

/* A number is constant; what a formula is made of is not looked at. */
static bool is_number(const char *text)
{
    char *end;
    const double number = strtod(text, &end);
    return end != text && *end == 0 && number == number;
}

static bool are_needed(const trl_simulation *sim)
{
    const trl_integrator *m = sim->integrator;
    const trl_text *density = &sim->problem->incompressible.density;
    return sim->flow && m->imex && m->order > 2 && !is_number(density->chars);
}

static trl_err add_fields(trl_simulation *sim, struct trli_slopes *s)
{
    const int n = sim->nequations;
    trl_err err = TRL_OK;
    s->slope = trli_model_keep(sim->model, ((size_t)n + 1) * sizeof(int));
    s->lost = trli_model_keep(sim->model, ((size_t)n + 1) * sizeof(int));
    s->ahead = trli_model_keep(sim->model, ((size_t)n + 1) * sizeof(int));
    TRL_TRY(sim->model->ir.err);
    for (int v = 0; v < n; ++v) {
        s->slope[v] = s->lost[v] = s->ahead[v] = -1;
        if (!trli_flow_has(sim, v)) continue;
        TRL_TRY(trli_flow_add_field(sim, v, "slope", &s->slope[v]));
        TRL_TRY(trli_flow_add_field(sim, v, "lost", &s->lost[v]));
        TRL_TRY(trli_flow_add_field(sim, v, "explicit", &s->ahead[v]));
        trli_set_conditions(sim, v, s->ahead[v], s->ahead[v]);
    }
    TRL_TRY(trli_flow_add_field(sim, trli_flow_pressure(sim), "kept", &s->kept));
    err = trli_flow_add_field(sim, trli_flow_pressure(sim), "of_slope", &s->lost[trli_flow_pressure(sim)]);
done:
    return err;
}

/* u + w f(u), with points on sides where conditions set them at the same time, so that nothing more flows in. */
static trl_err compile_try(trl_simulation *sim, struct trli_slopes *s)
{
    trli_ir *ir = &sim->model->ir;
    trli_instance *in = NULL, *old = NULL, *then = NULL;
    const int p = trli_flow_pressure(sim);
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "explicit slopes", &s->try));
    s->try->place = sim->problem->incompressible.place;
    TRL_TRY(trli_solving_instance(sim->solving, s->try, &in, &old));
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    TRL_TRY(trli_instance_create(sim->model, s->try, sim->solving->time_scalar, 1, old, &then));
    memcpy(then->variable, in->variable, (size_t)sim->nequations * sizeof *in->variable);
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        const trl_location location = sim->model->variable[v].location;
        trli_ir_value rate, value, mask;
        if (s->ahead[v] < 0) continue;
        TRL_TRY(trli_lower_at(in, eq->ddt, eq->deck->names, location, &rate));
        const trli_ir_value u = trli_ir_field(ir, in->variable[v]);
        rate = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, trli_flow_weight(sim)), rate);
        value = trli_ir_binary(ir, TRLI_OP_ADD, u, rate);
        if (sim->model->variable[v].mask) {
            TRL_TRY(trli_lower_at(in, eq->mask, eq->deck->names, location, &mask));
            value = trli_ir_select(ir, mask, value, u);
        }
        TRL_TRY(trli_flow_store(sim, s->try, v, s->ahead[v], value));
        then->variable[v] = s->ahead[v];
    }
    TRL_TRY(trli_instance_planes(then, false));
    for (int v = 0; v < sim->nequations; ++v)
        if (s->ahead[v] >= 0)
            TRL_TRY(trli_flow_store(sim, s->try, v, trli_flow_moved(sim, v), trli_ir_field(ir, s->ahead[v])));
    TRL_TRY(trli_flow_store(sim, s->try, p, s->kept, trli_ir_field(ir, in->variable[p])));
done:
    trli_instance_destroy(&then);
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* (ahead - u)/w - grad(q)/rho, where equations are solved with q in the pressure's place. */
static trl_err compile_leave(trl_simulation *sim, struct trli_slopes *s)
{
    trli_ir *ir = &sim->model->ir;
    trli_instance *in = NULL, *old = NULL;
    const int p = trli_flow_pressure(sim);
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "slopes without divergence", &s->leave));
    s->leave->place = sim->problem->incompressible.place;
    TRL_TRY(trli_solving_instance(sim->solving, s->leave, &in, &old));
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_variable *variable = &sim->model->variable[v];
        trli_ir_value lost;
        if (s->slope[v] < 0) continue;
        TRL_TRY(trli_lower_at(in, variable->less, variable->less_names, variable->location, &lost));
        const trli_ir_value change =
            trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, s->ahead[v]), trli_ir_field(ir, in->variable[v]));
        const trli_ir_value slope = trli_ir_binary(ir, TRLI_OP_DIV, change, trli_ir_scalar(ir, trli_flow_weight(sim)));
        TRL_TRY(trli_flow_store(sim, s->leave, v, s->slope[v], trli_ir_binary(ir, TRLI_OP_SUB, slope, lost)));
        TRL_TRY(trli_flow_store(sim, s->leave, v, s->lost[v], lost));
    }
    TRL_TRY(trli_flow_store(sim, s->leave, p, s->lost[p], trli_ir_field(ir, in->variable[p])));
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

trl_err trli_slopes_compile(trl_simulation *sim)
{
    struct trli_slopes *s;
    trl_err err = TRL_OK;
    if (!are_needed(sim)) return TRL_OK;
    s = sim->slopes = trli_new(sim->ctx, 1, sizeof *s);
    if (!s) return trli_no_memory(sim->ctx, NULL, "for slopes of a flow");
    TRL_TRY(add_fields(sim, s));
    TRL_TRY(compile_try(sim, s));
    err = compile_leave(sim, s);
done:
    return err;
}

void trli_slopes_destroy(trl_simulation *sim)
{
    trli_free(sim->slopes);
    sim->slopes = NULL;
}

int trli_slope_of(const trl_simulation *sim, int v)
{
    return sim->slopes ? sim->slopes->slope[v] : -1;
}

int trli_slope_lost(const trl_simulation *sim, int v)
{
    return sim->slopes ? sim->slopes->lost[v] : -1;
}

int trli_slopes_kept(const trl_simulation *sim)
{
    return sim->slopes ? sim->slopes->kept : -1;
}

void trli_slopes_mark_fields(const trl_simulation *sim, bool *needed)
{
    const struct trli_slopes *s = sim->slopes;
    if (!s) return;
    needed[s->kept] = true;
    for (int v = 0; v < sim->nequations; ++v) {
        if (s->ahead[v] >= 0) needed[s->ahead[v]] = needed[s->slope[v]] = true;
        if (s->lost[v] >= 0) needed[s->lost[v]] = true;
    }
}

static void swap_velocities(const trl_simulation *sim)
{
    for (int v = 0; v < sim->nequations; ++v)
        if (sim->slopes->ahead[v] >= 0) trli_frame_swap(sim->frame, sim->solving->at[v], trli_flow_moved(sim, v));
}

trl_err trli_slopes_find(trl_simulation *sim, int s, const trli_next_step *next)
{
    const struct trli_slopes *slopes = sim->slopes;
    const struct trli_solving *so = sim->solving;
    trl_err err = TRL_OK;
    if (!slopes) return TRL_OK;
    const int p = so->at[trli_flow_pressure(sim)];
    const double time = sim->frame->scalar[sim->stage_time[s]];
    sim->frame->scalar[so->time_scalar] = time;
    if (s == 0) TRL_TRY(trli_run_checked(sim, so->load, next->number, time, false));
    TRL_TRY(trli_late_dt_await(sim));
    if (s > 0) trli_solving_swap(so, s - 1);
    trli_flow_set_weight(sim, next->dt);
    TRL_TRY(trli_run_checked(sim, slopes->try, next->number, time, false));
    trli_frame_swap(sim->frame, p, slopes->kept);
    swap_velocities(sim);
    TRL_TRY(trli_solver_run(so->solver[so->flow_solver], next->number, time));
    swap_velocities(sim);
    TRL_TRY(trli_run_checked(sim, slopes->leave, next->number, time, false));
    trli_frame_swap(sim->frame, p, slopes->kept);
    if (s > 0) trli_solving_swap(so, s - 1);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values between the ends of a step whose dt follows from its error. With the rates k_n and k_{n+1} at both ends and
 * theta = (t - t_n)/dt they are those of Hermite's cubic, and for methods with weights w_k a polynomial of one order
 * more (Hairer, Norsett & Wanner 1993, II.6),
 *     u(t) = u_n + theta (r_2 + (1 - theta) (r_3 + theta (r_4 + (1 - theta) dt sum over k of w_k f_k))),
 *     r_2 = u_{n+1} - u_n,    r_3 = dt k_n - r_2,    r_4 = r_2 - dt k_{n+1} - r_3.
 * u_n is where the next level will be: it stays until the next step. Sums are kept by the step; rates are evaluated
 * when they are asked for, from both levels. IMEX methods keep sums of their slopes instead (dense_weights.c). What is
 * observed reads the state, so the values take its place. */
#include <string.h>

#include "adaptive_impl.h"
#include "compile_impl.h"
#include "context_impl.h"
#include "dense_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "multistep_impl.h"
#include "sides_impl.h"
#include "slopes_impl.h"
#include "solving_impl.h"

struct trli_dense {
    trli_program *program;
    int *value;                 /* [equations] fields: u(t) */
    int *sum[TRLI_DENSE_SUMS];  /* [equations] and sums, or -1 */
    trli_dense_formula formula; /* of methods with weak ends */
    int time_scalar;            /* t */
    int share;                  /* scalar: theta */
    bool between;               /* the state is u(t) now, and this is the time of u_{n+1}: */
    double present;
};

/* Whether the new value is not that of an implicit stage: with a stiff term its rate is lambda times its error then. */
static bool has_weak_ends(const trl_integrator *m)
{
    return m->implicit && !m->multistep && !m->last_is_new;
}

/* Velocities are free of divergence by rates, and by sums of slopes that are. */
static bool takes_sums(const trl_simulation *sim, int v)
{
    return has_weak_ends(sim->integrator) && (!trli_flow_has(sim, v) || trli_slope_of(sim, v) >= 0);
}

static bool has_weights(const trl_integrator *m)
{
    for (int k = 0; k <= m->stages; ++k)
        if (m->dense[k] != 0) return true;
    return false;
}

trl_err trli_dense_add_sum(trl_simulation *sim, trli_program *program, int v, int sum, trli_ir_value value)
{
    const char *name = trli_model_name(sim->model, "%s:dense%d", sim->equation[v].deck->name, sum);
    trl_err err = TRL_OK;
    if (value < 0) return TRL_OK;
    int *field = &sim->dense->sum[sum][v];
    TRL_TRY(trli_add_beside(sim, v, name, field));
    TRL_TRY(trli_program_add_kernel(program, name, 1, field, &value, NULL));
    TRL_TRY(trli_program_add_root(program, *field));
done:
    return err;
}

trl_err trli_dense_add_sums(trl_simulation *sim, trli_program *program, const trli_ir_value *slope)
{
    const trl_integrator *m = sim->integrator;
    struct trli_dense *d = sim->dense;
    trli_ir *ir = &sim->model->ir;
    trl_err err = TRL_OK;
    if (!d || !has_weights(m)) return TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) {
        trli_ir_value sum = TRLI_NO_VALUE;
        if (sim->equation[v].solve) continue;
        for (int k = 0; k <= m->stages; ++k) {
            if (m->dense[k] == 0) continue;
            const trli_ir_value term =
                trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, m->dense[k]), slope[k * sim->nequations + v]);
            sum = sum < 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum, term);
        }
        TRL_TRY(trli_dense_add_sum(sim, program, v, 0, sum));
    }
done:
    return err;
}

double trli_dense_factor(const trl_simulation *sim, int v, int sum, int stage)
{
    return sim->dense && takes_sums(sim, v) ? sim->dense->formula.weight[sum][stage] : 0;
}

static trl_err rate_of(trl_simulation *sim, trli_instance *in, int v, trli_ir_value *rate)
{
    const trli_equation *eq = &sim->equation[v];
    const trl_location location = sim->model->variable[v].location;
    trli_ir *ir = &sim->model->ir;
    trli_ir_value implicit, primal;
    trl_err err = TRL_OK;
    if (eq->direction) {
        TRL_TRY(trli_lower_at(in, sim->equation[eq->of].ddt, sim->equation[eq->of].deck->names, location, &primal));
        TRL_TRY(trli_tangent(in, eq->direction, primal, rate));
        if (*rate < 0) *rate = trli_ir_constant(ir, 0);
        return ir->err;
    }
    TRL_TRY(trli_lower_at(in, eq->ddt, eq->deck->names, location, rate));
    if (eq->implicit) {
        TRL_TRY(trli_lower_at(in, eq->implicit, eq->deck->names, location, &implicit));
        *rate = trli_ir_binary(ir, TRLI_OP_ADD, *rate, implicit);
    }
    err = trli_flow_subtract(in, v, rate);
done:
    return err;
}

/* The first guess of what is solved for. */
static trl_err add_guess(trl_simulation *sim, int v)
{
    struct trli_dense *d = sim->dense;
    const trli_ir_value value = trli_ir_field(&sim->model->ir, sim->equation[v].state);
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_add_kernel(d->program, sim->equation[v].deck->name, 1, &d->value[v], &value, NULL));
    TRL_TRY(trli_program_add_root(d->program, d->value[v]));
done:
    return err;
}

/* By sums of slopes. */
static trli_ir_value value_of_sums(const trl_simulation *sim, int v)
{
    const trli_equation *eq = &sim->equation[v];
    const struct trli_dense *d = sim->dense;
    trli_ir *ir = &sim->model->ir;
    const trli_op add = TRLI_OP_ADD, sub = TRLI_OP_SUB, mul = TRLI_OP_MUL;
    const trli_ir_value theta = trli_ir_scalar(ir, d->share), u0 = trli_ir_field(ir, eq->next),
                        last = trli_ir_power(ir, theta, trli_ir_constant(ir, d->formula.degree));
    trli_ir_value sum = trli_ir_binary(ir, mul, last, trli_ir_binary(ir, sub, trli_ir_field(ir, eq->state), u0));
    for (int j = 1; j < d->formula.degree; ++j) {
        if (d->sum[j - 1][v] < 0) continue;
        const trli_ir_value power = trli_ir_power(ir, theta, trli_ir_constant(ir, j)),
                            factor = trli_ir_binary(ir, mul, trli_ir_scalar(ir, TRLI_SCALAR_DT),
                                                    trli_ir_binary(ir, sub, power, last));
        sum = trli_ir_binary(ir, add, sum, trli_ir_binary(ir, mul, factor, trli_ir_field(ir, d->sum[j - 1][v])));
    }
    return trli_ir_binary(ir, add, u0, sum);
}

/* By rates at the ends. */
static trl_err value_of_rates(trl_simulation *sim, trli_instance *before, trli_instance *after, int v,
                              trli_ir_value *value)
{
    const trli_equation *eq = &sim->equation[v];
    const struct trli_dense *d = sim->dense;
    trli_ir *ir = &sim->model->ir;
    const trli_op add = TRLI_OP_ADD, sub = TRLI_OP_SUB, mul = TRLI_OP_MUL;
    trli_ir_value first, last;
    trl_err err = TRL_OK;
    TRL_TRY(rate_of(sim, before, v, &first));
    TRL_TRY(rate_of(sim, after, v, &last));
    const trli_ir_value dt = trli_ir_scalar(ir, TRLI_SCALAR_DT), theta = trli_ir_scalar(ir, d->share),
                        rest = trli_ir_binary(ir, sub, trli_ir_constant(ir, 1), theta),
                        u0 = trli_ir_field(ir, eq->next), u1 = trli_ir_field(ir, eq->state),
                        r2 = trli_ir_binary(ir, sub, u1, u0),
                        r3 = trli_ir_binary(ir, sub, trli_ir_binary(ir, mul, dt, first), r2);
    trli_ir_value inner = trli_ir_binary(ir, sub, trli_ir_binary(ir, sub, r2, trli_ir_binary(ir, mul, dt, last)), r3);
    if (d->sum[0][v] >= 0) {
        const trli_ir_value r5 = trli_ir_binary(ir, mul, dt, trli_ir_field(ir, d->sum[0][v]));
        inner = trli_ir_binary(ir, add, inner, trli_ir_binary(ir, mul, rest, r5));
    }
    inner = trli_ir_binary(ir, add, r3, trli_ir_binary(ir, mul, theta, inner));
    inner = trli_ir_binary(ir, add, r2, trli_ir_binary(ir, mul, rest, inner));
    *value = trli_ir_binary(ir, add, u0, trli_ir_binary(ir, mul, theta, inner));
    err = ir->err;
done:
    return err;
}

static trl_err add_value(trl_simulation *sim, trli_instance *before, trli_instance *after, int v)
{
    const trli_equation *eq = &sim->equation[v];
    struct trli_dense *d = sim->dense;
    const trl_location location = sim->model->variable[v].location;
    trli_ir *ir = &sim->model->ir;
    trli_ir_value value = TRLI_NO_VALUE, mask;
    trl_err err = TRL_OK;
    if (takes_sums(sim, v))
        value = value_of_sums(sim, v);
    else
        TRL_TRY(value_of_rates(sim, before, after, v, &value));
    if (sim->model->variable[v].mask) {
        TRL_TRY(trli_lower_at(after, sim->model->variable[v].mask, eq->deck->names, location, &mask));
        value = trli_ir_select(ir, mask, value, trli_ir_field(ir, eq->state));
    }
    TRL_TRY(trli_program_add_kernel(d->program, eq->deck->name, 1, &d->value[v], &value, NULL));
    TRL_TRY(trli_program_add_root(d->program, d->value[v]));
done:
    return err;
}

trl_err trli_dense_prepare(trl_simulation *sim)
{
    const size_t n = (size_t)sim->nequations;
    const trl_time_entry *p = &sim->problem->time;
    if (!p->adaptive || !p->dense) return TRL_OK;
    struct trli_dense *d = sim->dense = trli_model_keep(sim->model, sizeof *d);
    if (!d) return sim->model->ir.err;
    *d = (struct trli_dense){.value = trli_model_keep(sim->model, (n + 1) * sizeof(int)),
                             .time_scalar = trli_model_add_scalar(sim->model, 0),
                             .share = trli_model_add_scalar(sim->model, 0)};
    for (int i = 0; i < TRLI_DENSE_SUMS; ++i) {
        d->sum[i] = trli_model_keep(sim->model, (n + 1) * sizeof(int));
        for (size_t v = 0; v < n && d->sum[i]; ++v) d->sum[i][v] = -1;
    }
    if (has_weak_ends(sim->integrator)) trli_dense_weights(sim->integrator, &d->formula);
    return sim->model->ir.err;
}

/* By a multistep method values come from its own polynomial, but at points that conditions set. */
static trl_err compile_multistep(trl_simulation *sim)
{
    struct trli_dense *d = sim->dense;
    trli_instance *at = NULL;
    bool any = sim->solving != NULL;
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) any |= trli_equation_sets_points(sim, v);
    if (!any) return TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "between", &d->program));
    TRL_TRY(trli_instance_create(sim->model, d->program, d->time_scalar, 0, NULL, &at));
    for (int v = 0; v < sim->nequations; ++v) at->variable[v] = d->value[v];
    for (int v = 0; v < sim->nequations; ++v)
        if (sim->equation[v].solve) TRL_TRY(add_guess(sim, v));
    TRL_TRY(trli_instance_planes(at, false));
    for (int v = 0; v < sim->nequations; ++v)
        if (!sim->equation[v].solve) TRL_TRY(trli_program_add_root(d->program, d->value[v]));
done:
    trli_instance_destroy(&at);
    return err;
}

static trl_err add_values(trl_simulation *sim)
{
    struct trli_dense *d = sim->dense;
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        const char *name = trli_model_name(sim->model, "%s:between", eq->deck->name);
        d->value[v] = trli_model_add_field(sim->model, name, sim->model->variable[v].location);
        if (d->value[v] < 0) return sim->model->ir.err;
        sim->model->field[d->value[v]].persistent = true;
        trli_set_conditions(sim, v, d->value[v], d->value[eq->of]);
    }
    return TRL_OK;
}

trl_err trli_dense_compile(trl_simulation *sim)
{
    struct trli_dense *d = sim->dense;
    trli_instance *before = NULL, *after = NULL, *at = NULL;
    trl_err err = TRL_OK;
    if (!d) return TRL_OK;
    TRL_TRY(add_values(sim));
    if (sim->integrator->multistep) return compile_multistep(sim);
    TRL_TRY(trli_program_create(sim->model, "between", &d->program));
    TRL_TRY(trli_instance_create(sim->model, d->program, TRLI_SCALAR_STEP_TIME, 0, NULL, &before));
    TRL_TRY(trli_instance_create(sim->model, d->program, sim->stage_time[sim->integrator->stages], 0, NULL, &after));
    TRL_TRY(trli_instance_create(sim->model, d->program, d->time_scalar, 0, after, &at));
    for (int v = 0; v < sim->nequations; ++v) {
        before->variable[v] = sim->equation[v].next;
        after->variable[v] = sim->equation[v].state;
        at->variable[v] = d->value[v];
    }
    TRL_TRY(trli_instance_fill(before));
    TRL_TRY(trli_instance_fill(after));
    for (int v = 0; v < sim->nequations; ++v)
        TRL_TRY(sim->equation[v].solve ? add_guess(sim, v) : add_value(sim, before, after, v));
    TRL_TRY(trli_instance_planes(at, false));
done:
    trli_instance_destroy(&at);
    trli_instance_destroy(&after);
    trli_instance_destroy(&before);
    return err;
}

void trli_dense_equalise(trl_simulation *sim)
{
    for (int v = 0; v < sim->nequations && sim->dense; ++v) {
        trli_equalise(sim->model, sim->equation[v].state, sim->dense->value[v]);
        trli_equalise(sim->model, sim->equation[v].state, sim->equation[v].next);
    }
}

void trli_dense_mark_fields(const trl_simulation *sim, bool *needed)
{
    const struct trli_dense *d = sim->dense;
    for (int v = 0; v < sim->nequations && d; ++v) {
        needed[sim->equation[v].next] = true;
        for (int i = 0; i < TRLI_DENSE_SUMS; ++i)
            if (d->sum[i][v] >= 0) needed[d->sum[i][v]] = true;
        if (d->between) needed[d->value[v]] = true;
    }
}

static void swap_values(trl_simulation *sim)
{
    for (int v = 0; v < sim->nequations; ++v) trli_frame_swap(sim->frame, sim->equation[v].state, sim->dense->value[v]);
}

bool trl_simulation_interpolates(const trl_simulation *sim)
{
    return sim->dense != NULL;
}

static bool is_between(const trl_simulation *sim)
{
    return sim->dense && sim->dense->between;
}

/* Put the end of the step back. */
static void leave(trl_simulation *sim)
{
    if (!is_between(sim)) return;
    swap_values(sim);
    sim->dense->between = false;
    sim->time = sim->dense->present;
}

trl_err trl_simulation_interpolate(trl_simulation *sim, double time)
{
    if (!sim) return TRL_ERR_USAGE;
    struct trli_dense *d = sim->dense;
    trl_err err = TRL_OK;
    leave(sim);
    if (!d || sim->steps_run == 0 || !(time > sim->from && time < sim->time))
        return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL,
                        "there are no values at t = %.17g: they are interpolated in the last step alone, where "
                        "problem.time.dense asks for it and dt follows from errors",
                        time);
    const trli_next_step step = {.number = sim->step_number, .from = sim->from, .dt = sim->dt, .time = sim->time};
    trli_set_times(sim, &step);
    sim->frame->scalar[d->time_scalar] = time;
    sim->frame->scalar[d->share] = (time - sim->from) / sim->dt;
    if (sim->multistep) TRL_TRY(trli_multistep_between(sim, time, d->value));
    if (d->program) TRL_TRY(trli_run_checked(sim, d->program, sim->step_number, time, false));
    swap_values(sim);
    d->between = true;
    d->present = sim->time;
    sim->time = time;
    TRL_TRY(trli_solve_between(sim));
done:
    return err;
}

trl_err trl_simulation_return(trl_simulation *sim)
{
    if (!sim) return TRL_ERR_USAGE;
    if (!is_between(sim)) return TRL_OK;
    leave(sim);
    return trli_evaluate_kept(sim, false);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The pressure after a step, where it is solved for once more with what the new velocities change by. */
#include <string.h>

#include "compile_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "sides_impl.h"
#include "solving_impl.h"

/* A velocity w later, or earlier, without the pressure; points on sides are where conditions set them then. */
static trl_err try_components(trl_simulation *sim, trli_instance *in, trli_instance *old, bool earlier)
{
    struct trli_flow *flow = sim->flow;
    const int *field = earlier ? flow->behind : flow->ahead;
    trli_ir *ir = &sim->model->ir;
    trli_instance *then = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(
        trli_instance_create(sim->model, in->program, earlier ? flow->behind_time : flow->ahead_time, 1, old, &then));
    memcpy(then->variable, in->variable, (size_t)sim->nequations * sizeof *in->variable);
    for (int a = 0; a < flow->n; ++a) {
        const int v = flow->velocity[a];
        const trli_equation *eq = &sim->equation[v];
        const trli_ir_value u = trli_ir_field(ir, in->variable[v]);
        trli_ir_value rate, implicit;
        TRL_TRY(trli_lower_at(in, eq->ddt, eq->deck->names, sim->model->variable[v].location, &rate));
        if (eq->implicit) {
            TRL_TRY(trli_lower_at(in, eq->implicit, eq->deck->names, sim->model->variable[v].location, &implicit));
            rate = trli_ir_binary(ir, TRLI_OP_ADD, rate, implicit);
        }
        rate = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, flow->weight), rate);
        trli_ir_value value = trli_ir_binary(ir, earlier ? TRLI_OP_SUB : TRLI_OP_ADD, u, rate);
        if (sim->model->variable[v].mask) {
            trli_ir_value mask;
            TRL_TRY(trli_lower_at(in, eq->mask, eq->deck->names, sim->model->variable[v].location, &mask));
            value = trli_ir_select(ir, mask, value, u);
        }
        TRL_TRY(trli_flow_store(sim, in->program, v, field[a], value));
        then->variable[v] = field[a];
    }
    TRL_TRY(trli_instance_planes(then, false));
done:
    trli_instance_destroy(&then);
    return err;
}

trl_err trli_flow_set_points(trl_simulation *sim, trli_program *program, trli_instance *old)
{
    trli_instance *now = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_create(sim->model, program, sim->solving->time_scalar, 0, old, &now));
    for (int v = 0; v < sim->nequations; ++v) now->variable[v] = sim->solving->at[v];
    TRL_TRY(trli_instance_planes(now, false));
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(trli_program_add_root(program, now->variable[v]));
done:
    trli_instance_destroy(&now);
    return err;
}

/* u + w u' without the pressure, by a difference around the present time: the pressure is that of div(u') = 0. */
static trl_err compile_tried(trl_simulation *sim)
{
    struct trli_flow *flow = sim->flow;
    trli_ir *ir = &sim->model->ir;
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    for (int a = 0; a < flow->n; ++a) {
        const int v = flow->velocity[a];
        TRL_TRY(trli_flow_add_field(sim, v, "ahead", &flow->ahead[a]));
        TRL_TRY(trli_flow_add_field(sim, v, "behind", &flow->behind[a]));
        trli_set_conditions(sim, v, flow->ahead[a], flow->ahead[a]);
        trli_set_conditions(sim, v, flow->behind[a], flow->behind[a]);
    }
    TRL_TRY(trli_program_create(sim->model, "change of the velocity", &flow->tried));
    flow->tried->place = sim->problem->incompressible.place;
    TRL_TRY(trli_solving_instance(sim->solving, flow->tried, &in, &old));
    TRL_TRY(trli_flow_set_points(sim, flow->tried, old));
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    TRL_TRY(try_components(sim, in, old, false));
    TRL_TRY(try_components(sim, in, old, true));
    TRL_TRY(trli_flow_set_points(sim, flow->tried, old)); /* those of scalars were put to the other times */
    for (int a = 0; a < flow->n; ++a) {
        const int v = flow->velocity[a];
        const trli_ir_value twice =
            trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, flow->ahead[a]), trli_ir_field(ir, flow->behind[a]));
        const trli_ir_value change = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, 0.5), twice);
        TRL_TRY(trli_flow_store(sim, flow->tried, v, flow->moved[a],
                                trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, in->variable[v]), change)));
    }
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* The same by the velocities before the present time, or after it. */
static trl_err compile_one_sided(trl_simulation *sim)
{
    struct trli_flow *flow = sim->flow;
    trli_ir *ir = &sim->model->ir;
    trl_err err = TRL_OK;
    flow->later = trli_model_add_scalar(sim->model, 0);
    TRL_TRY(trli_program_create(sim->model, "change of the velocity on one side", &flow->one_sided));
    flow->one_sided->place = sim->problem->incompressible.place;
    flow->one_sided->once = true;
    const trli_ir_value later = trli_ir_scalar(ir, flow->later);
    const trli_ir_value earlier = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_constant(ir, 1), later);
    for (int a = 0; a < flow->n; ++a) {
        const int v = flow->velocity[a];
        const trli_ir_value u = trli_ir_field(ir, sim->solving->at[v]);
        const trli_ir_value after = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, flow->ahead[a]), u);
        const trli_ir_value before = trli_ir_binary(ir, TRLI_OP_SUB, u, trli_ir_field(ir, flow->behind[a]));
        const trli_ir_value change = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_binary(ir, TRLI_OP_MUL, later, after),
                                                    trli_ir_binary(ir, TRLI_OP_MUL, earlier, before));
        TRL_TRY(trli_flow_store(sim, flow->one_sided, v, flow->moved[a], trli_ir_binary(ir, TRLI_OP_ADD, u, change)));
    }
done:
    return err;
}

/* The pressure of velocities that a program has made of the present ones. differs: that these are not balanced is no
 * error, but told. */
static trl_err solve_for_change(const struct trli_solving *so, trli_program *program, bool *differs, trl_gidx step,
                                double time)
{
    trl_simulation *sim = so->sim;
    struct trli_flow *flow = sim->flow;
    trli_solver *solver = so->solver[so->flow_solver];
    trl_err err = TRL_OK;
    TRL_TRY(trli_run_checked(sim, program, step, time, false));
    for (int a = 0; a < flow->n; ++a) trli_frame_swap(sim->frame, so->at[flow->velocity[a]], flow->moved[a]);
    flow->moved_at = sim->frame->scalar[flow->ahead_time];
    flow->may_differ = differs != NULL;
    flow->differs = false;
    err = trli_solver_run(solver, step, time);
    flow->may_differ = false;
    for (int a = 0; a < flow->n; ++a) trli_frame_swap(sim->frame, so->at[flow->velocity[a]], flow->moved[a]);
    if (!differs) goto done;
    *differs = flow->differs;
    if (*differs) trli_solver_take_guess_back(solver);
    if (*differs) err = TRL_OK;
done:
    return err;
}

trl_err trli_flow_find_pressure(const struct trli_solving *so, double dt, trl_gidx step, double time)
{
    trl_simulation *sim = so->sim;
    const struct trli_flow *flow = sim->flow;
    double *scalar = sim->frame->scalar;
    trl_err err = TRL_OK;
    if (!flow || !flow->again || !(dt > 0)) return TRL_OK;
    const double w = dt / 2;
    trli_flow_set_weight(sim, w);
    scalar[flow->ahead_time] = time + w;
    scalar[flow->behind_time] = time - w;
    bool differs;
    TRL_TRY(solve_for_change(so, flow->tried, &differs, step, time));
    for (int later = 0; later < 2 && differs; ++later) {
        scalar[flow->later] = later;
        TRL_TRY(solve_for_change(so, flow->one_sided, &differs, step, time));
    }
    if (differs) err = solve_for_change(so, flow->tried, NULL, step, time);
done:
    return err;
}

bool trli_flow_solves_again(const trl_simulation *sim)
{
    return sim->flow && sim->flow->again;
}

trl_err trli_flow_compile_again(trl_simulation *sim)
{
    trl_err err = TRL_OK;
    TRL_TRY(compile_tried(sim));
    err = compile_one_sided(sim);
done:
    return err;
}

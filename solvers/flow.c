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
#include "solving_impl.h"

/* ---- what is asked for ---- */

static int find_equation(const trl_simulation *sim, const char *name)
{
    for (int v = 0; v < sim->nequations; ++v)
        if (strcmp(sim->equation[v].deck->name, name) == 0) return v;
    return -1;
}

static trl_err check(const trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const trl_place *place = &p->incompressible.place;
    if (p->time.none)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, place, "an incompressible flow advances in time: add 'time'");
    if (p->nsensitivities > 0)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, place, "there are no sensitivities of an incompressible flow yet");
    return TRL_OK;
}

/* Whether the velocity through a side may change in time: a stage's divergence has its mean change in the stage. */
static bool sides_change(const trl_simulation *sim)
{
    const struct trli_flow *flow = sim->flow;
    double number;
    char *end;
    for (int s = 0; s < 2 * flow->n; ++s) {
        const trl_bc_side *side = &sim->equation[flow->velocity[s / 2]].deck->boundary[s];
        for (int i = 0; i < side->npieces; ++i) {
            if (side->piece[i].kind == TRL_BC_EXPRESSION) return true;
            if (side->piece[i].kind != TRL_BC_DIRICHLET) continue;
            number = strtod(side->piece[i].value.text->chars, &end);
            if (*end || number != number) return true;
        }
    }
    return false;
}

/* A stage's velocity is solved for with the pressure before, which differs by order 1 in dt, so that the divergence
 * that its viscosity makes of the difference is of order 2 in a stage; next to sides where the pressure is given, of
 * order 1. Each further pass gives one order more. */
int trli_flow_passes(const trl_simulation *sim)
{
    const int order = sim->integrator->order;
    bool open = false;
    for (int s = 0; sim->flow && s < 2 * sim->flow->n; ++s) {
        const trl_bc_side *side = &sim->equation[sim->flow->pressure].deck->boundary[s];
        for (int i = 0; i < side->npieces; ++i) open |= side->piece[i].kind != TRL_BC_NEUMANN;
    }
    if (!sim->flow) return 1;
    return open || order < 2 ? order : order - 1;
}

/* Which stages' pressures that after a step is made of. */
static void choose_pressure(const trl_simulation *sim, struct trli_flow *flow, const trl_integrator *m)
{
    const int last = m->stages - 1;
    flow->held = -1;
    flow->again = m->implicit || sim->problem->time.adaptive || sides_change(sim);
    if (flow->again) return;
    for (int s = 0; s < last; ++s)
        if (m->c[s] == 1) flow->held = s;
    flow->of_held = 1;
    if (m->c[last] == 1) flow->held = -1;
    if (flow->held >= 0 || m->c[last] == 1 || last == 0) return;
    flow->held = 0;
    flow->of_last = 1 / m->c[last];
    flow->of_held = 1 - flow->of_last;
}

trl_err trli_flow_prepare(trl_simulation *sim)
{
    const trl_incompressible_entry *deck = &sim->problem->incompressible;
    trl_err err = TRL_OK;
    if (deck->n == 0) return TRL_OK;
    TRL_TRY(check(sim));
    struct trli_flow *flow = sim->flow = trli_new(sim->ctx, 1, sizeof *flow);
    if (!flow) return trli_no_memory(sim->ctx, NULL, "for a flow");
    flow->n = deck->n;
    flow->pressure = find_equation(sim, deck->pressure);
    for (int a = 0; a < deck->n; ++a) {
        flow->velocity[a] = find_equation(sim, deck->velocity[a]);
        TRL_TRY(trli_formula_of(sim, &deck->gradient[a], &flow->gradient[a]));
    }
    TRL_TRY(trli_formula_of(sim, &deck->density, &flow->density));
    for (int a = 0; a < deck->n; ++a) {
        sim->model->variable[flow->velocity[a]].less = flow->gradient[a];
        sim->model->variable[flow->velocity[a]].less_names = sim->problem->parameters;
    }
    flow->weight = trli_model_add_scalar(sim->model, 1);
    flow->inverse = trli_model_add_scalar(sim->model, 1);
    flow->held_field = flow->pressure_field = -1;
    for (int a = 0; a < 3; ++a) flow->before[a] = -1;
    flow->ahead_time = trli_model_add_scalar(sim->model, 0);
    flow->behind_time = trli_model_add_scalar(sim->model, 0);
    choose_pressure(sim, flow, sim->integrator);
    return sim->model->ir.err;
done:
    trli_flow_destroy(sim); /* what is compiled after an error, to hear of others, finds none in parts */
    return err;
}

void trli_flow_destroy(trl_simulation *sim)
{
    struct trli_flow *flow = sim->flow;
    sim->flow = NULL;
    for (int a = 0; flow && a < flow->n; ++a) trl_formula_destroy(&flow->gradient[a]);
    if (flow) trl_formula_destroy(&flow->density);
    trli_free(flow);
}

bool trli_flow_has(const trl_simulation *sim, int v)
{
    bool has = false;
    for (int a = 0; sim->flow && a < sim->flow->n; ++a) has |= sim->flow->velocity[a] == v;
    return has;
}

int trli_flow_pressure(const trl_simulation *sim)
{
    return sim->flow ? sim->flow->pressure : -1;
}

int trli_flow_moved(const trl_simulation *sim, int v)
{
    const struct trli_flow *flow = sim->flow;
    for (int a = 0; flow && a < flow->n; ++a)
        if (flow->velocity[a] == v) return flow->moved[a];
    return flow && flow->pressure == v ? flow->pressure_field : -1;
}

/* ---- what follows it ---- */

trl_err trli_flow_add_field(trl_simulation *sim, int v, const char *what, int *field)
{
    const char *name = trli_model_name(sim->model, "%s:%s", sim->equation[v].deck->name, what);
    *field = trli_model_add_field(sim->model, name, sim->model->variable[v].location);
    if (*field >= 0) sim->model->field[*field].persistent = true;
    return sim->model->ir.err;
}

trl_err trli_flow_store(trl_simulation *sim, trli_program *program, int v, int field, trli_ir_value value)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_add_kernel(program, sim->equation[v].deck->name, 1, &field, &value, NULL));
    TRL_TRY(trli_program_add_root(program, field));
done:
    return err;
}

/* Whether a slope is a field that outlives its program, as it is if later stages need it. */
static bool is_kept(const trli_model *model, trli_ir_value slope)
{
    const trli_node *n = trli_ir_node(&model->ir, slope);
    return n->op == TRLI_OP_FIELD && model->field[n->index].persistent;
}

/* What is stored together: for each axis a velocity and a slope, and two pressures. */
typedef struct moves {
    int n, variable[8], field[8];
    trli_ir_value value[8];
} moves;

static void add_move(moves *m, int v, int field, trli_ir_value value)
{
    m->variable[m->n] = v;
    m->field[m->n] = field;
    m->value[m->n++] = value;
}

static trl_err store_moves(trl_simulation *sim, trli_program *program, const moves *m)
{
    bool stored[8] = {false};
    trl_err err = TRL_OK;
    for (int i = 0; i < m->n; ++i) {
        int field[8], n = 0;
        trli_ir_value value[8];
        for (int k = i; k < m->n; ++k) {
            if (stored[k] || (k > i && !trli_share_sweep(sim, m->field[i], m->field[k]))) continue;
            stored[k] = true;
            field[n] = m->field[k];
            value[n++] = m->value[k];
        }
        if (n > 0)
            TRL_TRY(trli_program_add_kernel(program, sim->equation[m->variable[i]].deck->name, n, field, value, NULL));
        for (int k = 0; k < n; ++k) TRL_TRY(trli_program_add_root(program, field[k]));
    }
done:
    return err;
}

/* The new velocity along an axis, and a slope that later stages read. Where the velocity through a side is given the
 * gradient there is zero, so points on sides move like others. */
static trl_err move_component(trl_simulation *sim, trli_instance *in, int a, trli_ir_value *slope, moves *m)
{
    struct trli_flow *flow = sim->flow;
    trli_ir *ir = &sim->model->ir;
    const int v = flow->velocity[a];
    trli_ir_value gradient;
    int corrected;
    trl_err err = TRL_OK;
    TRL_TRY(
        trli_lower_at(in, flow->gradient[a], sim->problem->parameters, sim->model->variable[v].location, &gradient));
    const trli_ir_value change = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, flow->weight), gradient);
    add_move(m, v, flow->moved[a], trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, in->variable[v]), change));
    if (!slope || !is_kept(sim->model, slope[v])) goto done;
    TRL_TRY(trli_flow_add_field(sim, v, trli_model_name(sim->model, "slope%d", in->stage + 1), &corrected));
    add_move(m, v, corrected, trli_ir_binary(ir, TRLI_OP_SUB, slope[v], gradient));
    slope[v] = trli_ir_field(ir, corrected);
done:
    return err;
}

/* What is kept of a stage's pressure, and after the last stage the step's. */
static void keep_pressure(trl_simulation *sim, trli_instance *in, int stage, moves *m)
{
    struct trli_flow *flow = sim->flow;
    trli_ir *ir = &sim->model->ir;
    const trli_ir_value p = trli_ir_field(ir, in->variable[flow->pressure]);
    if (flow->held < 0) return;
    if (stage == flow->held) add_move(m, flow->pressure, flow->held_field, p);
    if (stage + 1 < sim->integrator->stages || flow->pressure_field == flow->held_field) return;
    const trli_ir_value held = trli_ir_field(ir, flow->held_field);
    const trli_ir_value sum =
        trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, flow->of_held), held),
                       trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, flow->of_last), p));
    add_move(m, flow->pressure, flow->pressure_field, sum);
}

static trl_err compile_move(trl_simulation *sim, const char *name, int stage, trli_ir_value *slope,
                            trli_program **program)
{
    trli_instance *in = NULL, *old = NULL;
    moves m = {.n = 0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, name, program));
    (*program)->place = sim->problem->incompressible.place;
    TRL_TRY(trli_solving_instance(sim->solving, *program, &in, &old));
    in->stage = stage < 0 ? 0 : stage;
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    for (int a = 0; a < sim->flow->n; ++a) TRL_TRY(move_component(sim, in, a, slope, &m));
    if (stage >= 0) keep_pressure(sim, in, stage, &m);
    err = store_moves(sim, *program, &m);
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

trl_err trli_flow_subtract(trli_instance *in, int v, trli_ir_value *rate)
{
    const trli_variable *variable = &in->model->variable[v];
    trli_ir_value less;
    trl_err err = TRL_OK;
    if (!variable->less) return TRL_OK;
    TRL_TRY(trli_lower_at(in, variable->less, variable->less_names, variable->location, &less));
    *rate = trli_ir_binary(&in->model->ir, TRLI_OP_SUB, *rate, less);
    err = in->model->ir.err;
done:
    return err;
}

/* ---- the pressure before an implicit stage ---- */

int trli_flow_held(const trl_simulation *sim, int v)
{
    const struct trli_flow *flow = sim->flow;
    for (int a = 0; flow && a < flow->n; ++a)
        if (flow->velocity[a] == v) return flow->before[a];
    return -1;
}

static trl_err compile_before(trl_simulation *sim)
{
    struct trli_flow *flow = sim->flow;
    trli_ir *ir = &sim->model->ir;
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "pressure before a stage", &flow->hold));
    TRL_TRY(trli_program_create(sim->model, "velocity without it", &flow->leave_out));
    TRL_TRY(trli_solving_instance(sim->solving, flow->hold, &in, &old));
    TRL_TRY(trli_flow_set_points(sim, flow->hold, old)); /* conditions of the density may read them */
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    for (int a = 0; a < flow->n; ++a) {
        const int v = flow->velocity[a];
        trli_ir_value gradient;
        TRL_TRY(trli_flow_add_field(sim, v, "before", &flow->before[a]));
        TRL_TRY(trli_lower_at(in, flow->gradient[a], sim->problem->parameters, sim->model->variable[v].location,
                              &gradient));
        TRL_TRY(trli_flow_store(sim, flow->hold, v, flow->before[a],
                                trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, flow->weight), gradient)));
        TRL_TRY(trli_flow_store(
            sim, flow->leave_out, v, flow->moved[a],
            trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, in->variable[v]), trli_ir_field(ir, flow->before[a]))));
    }
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* ---- the pressure that belongs to velocities ---- */

trl_err trli_flow_compile(trl_simulation *sim)
{
    struct trli_flow *flow = sim->flow;
    trl_err err = TRL_OK;
    if (!flow) return TRL_OK;
    for (int a = 0; a < flow->n; ++a) TRL_TRY(trli_flow_add_field(sim, flow->velocity[a], "moved", &flow->moved[a]));
    if (flow->held >= 0) {
        TRL_TRY(trli_flow_add_field(sim, flow->pressure, "held", &flow->held_field));
        flow->pressure_field = flow->held_field;
        if (flow->of_last != 0) TRL_TRY(trli_flow_add_field(sim, flow->pressure, "sum", &flow->pressure_field));
    }
    TRL_TRY(compile_move(sim, "initial velocity", -1, NULL, &flow->start));
    if (flow->again) TRL_TRY(trli_flow_compile_again(sim));
    if (sim->integrator->implicit) err = compile_before(sim);
done:
    return err;
}

trl_err trli_flow_compile_stage(trl_simulation *sim, int stage, trli_ir_value *slope)
{
    if (!sim->flow) return TRL_OK;
    return compile_move(sim, trli_model_name(sim->model, "velocity, stage %d", stage + 1), stage, slope,
                        &sim->flow->move[stage]);
}

void trli_flow_mark_fields(const trl_simulation *sim, bool *needed)
{
    const struct trli_flow *flow = sim->flow;
    if (!flow) return;
    for (int a = 0; a < flow->n; ++a) needed[flow->moved[a]] = true;
    for (int a = 0; a < flow->n && flow->hold; ++a) needed[flow->before[a]] = true;
    for (int a = 0; a < flow->n && flow->again; ++a) needed[flow->ahead[a]] = needed[flow->behind[a]] = true;
    if (flow->held < 0) return;
    needed[flow->held_field] = needed[flow->pressure_field] = true;
}

/* ---- a stage ---- */

void trli_flow_set_weight(const trl_simulation *sim, double w)
{
    sim->frame->scalar[sim->flow->weight] = w;
    sim->frame->scalar[sim->flow->inverse] = 1 / w;
}

int trli_flow_weight(const trl_simulation *sim)
{
    return sim->flow->weight;
}

void trli_flow_weigh(const trl_simulation *sim, int stage, double dt)
{
    const trl_integrator *m = sim->integrator;
    if (!sim->flow) return;
    double factor = 1; /* and after the last of implicit stages dt, as the slopes' weights sum to 1 */
    if (stage >= 0 && m->implicit)
        factor = stage + 1 < m->stages ? dt * m->diagonal[1][1] : dt;
    else if (stage >= 0)
        factor = dt * (m->shu_osher ? 1 - m->alpha[stage] : m->a[stage][stage]);
    trli_flow_set_weight(sim, factor);
}

/* Put what the operator is computed with as it was at the start of the stage where equations are solved; then back:
 * slopes of the velocities were computed with that, too. */
static void exchange_coefficients(const struct trli_solving *so, int stage, bool back)
{
    const trl_simulation *sim = so->sim;
    const int n = sim->nequations;
    for (int v = 0; v < n && stage >= 0 && !sim->integrator->implicit; ++v) {
        if (!trli_solver_reads(so->solver[so->flow_solver], v) || sim->equation[v].solve || trli_flow_has(sim, v))
            continue;
        const int made = so->stage[stage * n + v];
        const int start = stage > 0 ? so->stage[(stage - 1) * n + v] : sim->equation[v].state;
        trli_frame_swap(sim->frame, so->at[v], back ? start : made);
        trli_frame_swap(sim->frame, so->at[v], back ? made : start);
    }
}

void trli_flow_begin(trl_simulation *sim)
{
    const struct trli_flow *flow = sim->flow;
    trl_offsets around = {{0, 0, 0}, {0, 0, 0}};
    if (!flow || !sim->late || sim->any_devices) return; /* they are brought on the host */
    const int pressure = sim->solving->at[flow->pressure];
    trli_frame_widen_ghosts(flow->start, pressure, &around);
    for (int s = 0; s < sim->integrator->stages && flow->move[s]; ++s)
        trli_frame_widen_ghosts(flow->move[s], pressure, &around);
    trli_solver_bring(sim->solving->solver[sim->solving->flow_solver], &around);
}

/* The new velocities, and after the last stage the step's pressure. */
static trl_err move(const struct trli_solving *so, int stage, trl_gidx step, double time)
{
    trl_simulation *sim = so->sim;
    const struct trli_flow *flow = sim->flow;
    trl_err err = TRL_OK;
    const bool plain = stage < 0 || sim->integrator->implicit;
    trli_program *program = plain ? flow->start : flow->move[stage];
    const bool brought = trli_solver_brought(so->solver[so->flow_solver]);
    trli_frame_give_ghosts(sim->frame, program, so->at[flow->pressure], brought);
    TRL_TRY(trli_run_checked(sim, program, step, time, false));
    for (int a = 0; a < flow->n; ++a) trli_frame_swap(sim->frame, so->at[flow->velocity[a]], flow->moved[a]);
    if (flow->held >= 0 && stage + 1 == sim->integrator->stages)
        trli_frame_swap(sim->frame, so->at[flow->pressure], flow->pressure_field);
done:
    return err;
}

trl_err trli_flow_hold(trl_simulation *sim, int stage, const trli_next_step *next)
{
    trl_err err;
    if (!sim->flow) return TRL_OK;
    sim->frame->scalar[sim->solving->time_scalar] = sim->frame->scalar[sim->stage_time[stage + 1]];
    trli_solving_swap(sim->solving, stage);
    trli_flow_weigh(sim, stage, next->dt);
    err = trli_run_checked(sim, sim->flow->hold, next->number, next->time, false);
    trli_solving_swap(sim->solving, stage);
    return err;
}

static trl_err leave_out(const struct trli_solving *so, int stage, trl_gidx step, double time)
{
    trl_simulation *sim = so->sim;
    const struct trli_flow *flow = sim->flow;
    trl_err err;
    if (!flow->leave_out || stage < 0 || stage + 1 == sim->integrator->stages) return TRL_OK;
    err = trli_run_checked(sim, flow->leave_out, step, time, false);
    for (int a = 0; a < flow->n; ++a) trli_frame_swap(sim->frame, so->at[flow->velocity[a]], flow->moved[a]);
    return err;
}

/* A stage's pressure is one of its slope's time: the first guess is on the line through the pressures at the start of
 * the step and of the stage before. */
static trl_err guess(const struct trli_solving *so, int stage, trl_gidx step, double time)
{
    const trl_integrator *m = so->sim->integrator;
    if (stage < 1 || m->implicit || !(m->c[stage - 1] > 0) || m->c[stage] == m->c[stage - 1]) return TRL_OK;
    return trli_solver_extrapolate(so->solver[so->flow_solver], m->c[stage] / m->c[stage - 1], step, time);
}

trl_err trli_flow_project(const struct trli_solving *so, int stage, trl_gidx step, double time)
{
    trl_err err = leave_out(so, stage, step, time);
    if (err != TRL_OK) return err;
    exchange_coefficients(so, stage, false);
    err = guess(so, stage, step, time);
    so->sim->flow->moved_at = time;
    if (err == TRL_OK) err = trli_solver_run(so->solver[so->flow_solver], step, time);
    if (err == TRL_OK) err = move(so, stage, step, time);
    exchange_coefficients(so, stage, true);
    return err;
}

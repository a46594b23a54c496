/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Equations without a time derivative: which are solved together, and when. They are solved on fields of their own,
 * where the values of a stage are put for as long as they are solved. */
#include <string.h>

#include "late_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "sides_impl.h"
#include "slopes_impl.h"
#include "solving_impl.h"

/* ---- compiling ---- */

trl_err trli_solving_instance(const struct trli_solving *so, trli_program *program, trli_instance **in,
                              trli_instance **old)
{
    trl_simulation *sim = so->sim;
    trl_err err = TRL_OK;
    if (so->in_steps) {
        TRL_TRY(trli_instance_create(sim->model, program, TRLI_SCALAR_STEP_TIME, 0, NULL, old));
        for (int v = 0; v < sim->nequations; ++v) (*old)->variable[v] = sim->equation[v].state;
        TRL_TRY(trli_instance_fill(*old));
    }
    TRL_TRY(trli_instance_create(sim->model, program, so->time_scalar, 0, *old, in));
    for (int v = 0; v < sim->nequations; ++v) (*in)->variable[v] = so->at[v];
done:
    return err;
}

static trl_err make_instance(void *data, trli_program *program, trli_instance **in, trli_instance **old)
{
    return trli_solving_instance(((const trli_system *)data)->solving, program, in, old);
}

trl_err trli_solving_residual(trl_simulation *sim, trli_instance *in, int v, trli_ir_value *value)
{
    const trli_equation *eq = &sim->equation[v];
    const trl_location location = sim->model->variable[v].location;
    trli_ir_value right;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_at(in, eq->solve, eq->deck->names, location, value));
    if (!eq->equals) goto done;
    TRL_TRY(trli_lower_at(in, eq->equals, eq->deck->names, location, &right));
    if (v == trli_flow_pressure(sim)) right = trli_flow_scaled(in, sim, right);
    *value = trli_ir_binary(&in->model->ir, TRLI_OP_SUB, *value, right);
    err = in->model->ir.err;
done:
    return err;
}

static trl_err residual(void *data, trli_instance *in, int i, trli_ir_value *value)
{
    const trli_system *m = data;
    return trli_solving_residual(m->solving->sim, in, m->equation[i], value);
}

static const trl_solver_entry unnamed = TRL_SOLVER_DEFAULTS;

/* Equations that are solved together name one solver. */
static trl_err find_settings(const trl_simulation *sim, int n, const int *equation, const trl_solver_entry **settings)
{
    const trl_equation_entry *first = sim->equation[equation[0]].deck;
    *settings = first->solver ? first->solver : &unnamed;
    for (int i = 1; i < n; ++i) {
        const trl_equation_entry *other = sim->equation[equation[i]].deck;
        if (other->solver == first->solver) continue;
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &other->place,
                        "'%s' and '%s' need each other, so they are solved together: name the same solver for both",
                        first->name, other->name);
    }
    return TRL_OK;
}

static trl_err add_system(struct trli_solving *so, int n, int *equation, int *field)
{
    const double share = 0.01; /* of the error that steps are allowed */
    trl_simulation *sim = so->sim;
    trli_system m = {so, equation};
    const char *names = sim->equation[equation[0]].deck->name;
    trl_err err = TRL_OK;
    for (int i = 1; i < n; ++i)
        names = trli_model_name(sim->model, "%s, %s", names, sim->equation[equation[i]].deck->name);
    for (int i = 0; i < n; ++i) field[i] = so->at[equation[i]];
    const trl_text *text = &sim->equation[equation[0]].solve->text;
    trli_solve_request request = {.names = names,
                                  .place = text->place,
                                  .n = n,
                                  .variable = equation,
                                  .field = field,
                                  .instance = make_instance,
                                  .residual = residual,
                                  .solves = trli_solving_solves(so),
                                  .finer = sim->problem->time.adaptive ? share * sim->problem->time.relative : 0,
                                  .on_grid = true,
                                  .data = &m};
    TRL_TRY(find_settings(sim, n, equation, &request.settings));
    for (int i = 0; i < n; ++i)
        if (equation[i] == trli_flow_pressure(sim)) TRL_TRY(trli_flow_request(so, n, &request));
    if (request.size) { /* its tolerance is one of divergence */
        so->flow_solver = so->nsolvers;
        request.finer = 0;
    }
    err = trli_solver_add(sim, &request, &so->solver[so->nsolvers]);
    so->nsolvers += so->solver[so->nsolvers] != NULL;
done:
    return err;
}

static trl_err add_systems(struct trli_solving *so)
{
    trl_simulation *sim = so->sim;
    const size_t n = (size_t)sim->nequations + 1;
    int *component = trli_new(sim->ctx, n, sizeof *component), *list = trli_new(sim->ctx, n, sizeof *list);
    int *field = trli_new(sim->ctx, n, sizeof *field), count;
    trl_err err = TRL_OK, first = TRL_OK;
    so->solver = trli_new(sim->ctx, n, sizeof(trli_solver *));
    if (!component || !list || !field || !so->solver) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for solvers"));
    TRL_TRY(trli_solving_order(sim, component, &count));
    for (int c = 0; c < count; ++c) {
        int k = 0;
        for (int v = 0; v < sim->nequations; ++v)
            if (component[v] == c && sim->equation[v].solve) list[k++] = v;
        err = k ? add_system(so, k, list, field) : TRL_OK;
        if (first == TRL_OK) first = err;
        if (err != TRL_OK && err != TRL_ERR_INPUT) break; /* this rank's alone: the others wait */
    }
    err = first;
done:
    trli_free(component);
    trli_free(list);
    trli_free(field);
    return err;
}

/* to = from, for the equations that are solved, or for all; the pressure's solver makes its guess itself. */
static trl_err compile_copy(trl_simulation *sim, const char *name, bool all, bool next, trli_program **program)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, name, program));
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        const int to = next ? eq->next : sim->solving->at[v];
        const trli_ir_value value = trli_ir_field(&sim->model->ir, eq->state);
        if (!all && (!eq->solve || v == trli_flow_pressure(sim))) continue;
        TRL_TRY(trli_program_add_kernel(*program, eq->deck->name, 1, &to, &value, NULL));
        TRL_TRY(trli_program_add_root(*program, to));
    }
done:
    return err;
}

/* Copies leave points on sides as they were: those of velocities are set at the time for which is solved. */
static trl_err load_points(struct trli_solving *so)
{
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solving_instance(so, so->load, &in, &old));
    err = trli_flow_set_points(so->sim, so->load, old);
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* Fields like the state's that the equations are solved on; points on sides are copied with the others. */
static trl_err add_fields(struct trli_solving *so)
{
    trl_simulation *sim = so->sim;
    trli_model *model = sim->model;
    for (int v = 0; v < sim->nequations; ++v) {
        so->at[v] = sim->equation[v].state;
        if (!so->in_steps) continue;
        const char *name = trli_model_name(model, "%s:solve", sim->equation[v].deck->name);
        const int field = trli_model_add_field(model, name, model->variable[v].location);
        if (field < 0) return model->ir.err;
        const trli_model_field *state = &model->field[sim->equation[v].state];
        trli_model_field *f = &model->field[field];
        f->persistent = f->exchanged = true;
        f->boundary = state->boundary;
        memcpy(f->fixed_planes, state->fixed_planes, sizeof f->fixed_planes);
        so->at[v] = field;
    }
    return model->ir.err;
}

trl_err trli_solving_prepare(trl_simulation *sim)
{
    bool any = false;
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) any |= sim->equation[v].solve != NULL;
    if (!any) return TRL_OK;
    struct trli_solving *so = sim->solving = trli_new(sim->ctx, 1, sizeof *so);
    if (!so) return trli_no_memory(sim->ctx, NULL, "for solvers");
    if (sim->integrator->leapfrog && !sim->problem->time.none)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &sim->problem->time.method_place,
                        "leapfrog advances no equations that need others to be solved: use rk4");
    const size_t n = (size_t)sim->nequations + 1;
    so->sim = sim;
    so->flow_solver = -1;
    so->in_steps = !sim->problem->time.none;
    so->time_scalar = trli_model_add_scalar(sim->model, 0);
    so->at = trli_model_keep(sim->model, n * sizeof *so->at);
    so->stage = trli_model_keep(sim->model, n * TRL_STAGES_MAX * sizeof *so->stage);
    TRL_TRY(sim->model->ir.err);
    TRL_TRY(add_fields(so));
    TRL_TRY(trli_flow_prepare(sim));
    TRL_TRY(add_systems(so));
    TRL_TRY(trli_flow_compile(sim));
    TRL_TRY(trli_slopes_compile(sim));
    if (!so->in_steps) goto done;
    TRL_TRY(compile_copy(sim, "values to solve with", true, false, &so->load));
    if (sim->flow) TRL_TRY(load_points(so));
    TRL_TRY(compile_copy(sim, "first guess", false, true, &so->guess));
done:
    return err;
}

void trli_solving_note_stage(trl_simulation *sim, int stage, const int *field)
{
    struct trli_solving *so = sim->solving;
    if (!so) return;
    memcpy(so->stage + (ptrdiff_t)stage * sim->nequations, field, (size_t)sim->nequations * sizeof *field);
    for (int v = 0; v < sim->nequations; ++v) sim->model->field[field[v]].persistent = true;
}

static void widen(trli_model *model, int from, int to)
{
    const trli_model_field *a = &model->field[from];
    trli_model_field *b = &model->field[to];
    for (int i = 0; i < 3; ++i) {
        if (a->ghost_lo[i] > b->ghost_lo[i]) b->ghost_lo[i] = a->ghost_lo[i];
        if (a->ghost_hi[i] > b->ghost_hi[i]) b->ghost_hi[i] = a->ghost_hi[i];
    }
}

void trli_solving_equalise(trl_simulation *sim)
{
    struct trli_solving *so = sim->solving;
    if (!so) return;
    for (int k = 0; k < so->nsolvers; ++k) trli_solver_equalise(so->solver[k]);
    for (int v = 0; v < sim->nequations && so->in_steps; ++v) {
        const int state = sim->equation[v].state;
        widen(sim->model, so->at[v], state);
        widen(sim->model, sim->equation[v].next, state);
        if (trli_flow_moved(sim, v) >= 0) widen(sim->model, trli_flow_moved(sim, v), state);
        const int kept = v == trli_flow_pressure(sim) ? trli_slopes_kept(sim) : -1;
        if (kept >= 0) widen(sim->model, kept, state);
        for (int s = 0; s < sim->integrator->stages; ++s) widen(sim->model, so->stage[s * sim->nequations + v], state);
        widen(sim->model, state, so->at[v]);
        if (trli_flow_moved(sim, v) >= 0) widen(sim->model, state, trli_flow_moved(sim, v));
        if (kept >= 0) widen(sim->model, state, kept);
        for (int s = 0; s < sim->integrator->stages; ++s) widen(sim->model, state, so->stage[s * sim->nequations + v]);
    }
    for (int k = 0; k < so->nsolvers; ++k) trli_solver_equalise(so->solver[k]);
}

bool trli_solving_reads_steps(const trl_simulation *sim)
{
    const struct trli_solving *so = sim->solving;
    for (int k = 0; so && k < so->nsolvers; ++k)
        if (trli_solver_reads_steps(so->solver[k])) return true;
    return false;
}

void trli_solving_begin(trl_simulation *sim)
{
    struct trli_solving *so = sim->solving;
    if (!so) return;
    for (int k = 0; k < so->nsolvers; ++k) trli_solver_clear(so->solver[k]);
    so->changing = trli_solving_reads_steps(sim);
}

void trli_solving_destroy(trl_simulation *sim)
{
    struct trli_solving *so = sim->solving;
    sim->solving = NULL;
    for (int k = 0; so && k < so->nsolvers; ++k) trli_solver_destroy(&so->solver[k]);
    trli_slopes_destroy(sim);
    trli_flow_destroy(sim);
    if (so) trli_free(so->solver);
    trli_free(so);
}

void trli_solving_mark_fields(const trl_simulation *sim, bool *needed)
{
    const struct trli_solving *so = sim->solving;
    if (!so) return;
    for (int k = 0; k < so->nsolvers; ++k) trli_solver_mark_fields(so->solver[k], needed);
    trli_flow_mark_fields(sim, needed);
    trli_slopes_mark_fields(sim, needed);
    for (int v = 0; v < sim->nequations && so->in_steps; ++v) {
        needed[so->at[v]] = needed[sim->equation[v].next] = true;
        for (int s = 0; s < sim->integrator->stages; ++s) needed[so->stage[s * sim->nequations + v]] = true;
    }
}

/* ---- solving ---- */

/* Solve for all but the pressure, and with a stage, or TRLI_FLOW_START, for that, too. */
static trl_err solve_all(struct trli_solving *so, int stage, trl_gidx step, double time)
{
    trl_err err = TRL_OK;
    so->sim->frame->scalar[so->time_scalar] = time;
    for (int k = 0; k < so->nsolvers; ++k) {
        if (k != so->flow_solver)
            TRL_TRY(trli_solver_run(so->solver[k], step, time));
        else if (stage != TRLI_FLOW_DONE)
            TRL_TRY(trli_flow_project(so, stage, step, time));
    }
done:
    return err;
}

void trli_solving_resume(trl_simulation *sim, trl_gidx step, double dt)
{
    if (!sim->solving) return;
    sim->solving->step = step;
    sim->solving->dt = dt;
}

static trl_err solve_present(trl_simulation *sim, double dt, int stage)
{
    struct trli_solving *so = sim->solving;
    trl_err err = TRL_OK;
    if (!so) return TRL_OK;
    sim->frame->scalar[so->time_scalar] = sim->time;
    if (so->load) TRL_TRY(trli_run_checked(sim, so->load, sim->step_number, sim->time, false));
    if (sim->flow) trli_solver_forget(so->solver[so->flow_solver]);
    trli_flow_weigh(sim, stage, dt);
    TRL_TRY(solve_all(so, stage, sim->step_number, sim->time));
    if (stage == TRLI_FLOW_DONE) TRL_TRY(trli_flow_find_pressure(so, dt, sim->step_number, sim->time));
    for (int v = 0; v < sim->nequations && so->in_steps; ++v)
        if (sim->equation[v].solve || trli_flow_has(sim, v))
            trli_frame_swap(sim->frame, so->at[v], sim->equation[v].state);
    trli_solving_resume(sim, sim->step_number, dt);
done:
    return err;
}

trl_err trli_solve_between(trl_simulation *sim)
{
    return solve_present(sim, sim->dt, TRLI_FLOW_DONE);
}

void trli_solving_swap(const struct trli_solving *so, int stage)
{
    const int n = so->sim->nequations;
    for (int v = 0; v < n; ++v) trli_frame_swap(so->sim->frame, so->at[v], so->stage[stage * n + v]);
}

trl_err trli_solve_guess(trl_simulation *sim, trl_gidx step, double time)
{
    const struct trli_solving *so = sim->solving;
    if (!so) return TRL_OK;
    if (so->flow_solver >= 0) trli_solver_guess(so->solver[so->flow_solver]);
    return trli_program_is_empty(so->guess) ? TRL_OK : trli_run_checked(sim, so->guess, step, time, false);
}

/* Of a flow, the pressure that belongs to the initial velocities: a stage is tried for it. */
static trl_err solve_first_pressure(trl_simulation *sim)
{
    struct trli_solving *so = sim->solving;
    const int p = trli_flow_pressure(sim);
    trl_err err = TRL_OK;
    if (p < 0 || !(sim->dt > 0)) return TRL_OK; /* there is no step */
    if (trli_flow_solves_again(sim)) return solve_present(sim, sim->dt, TRLI_FLOW_DONE);
    trli_set_times(sim, &(trli_next_step){.number = 1, .from = sim->time, .dt = sim->dt, .time = sim->time + sim->dt});
    TRL_TRY(trli_solve_guess(sim, 0, sim->time));
    TRL_TRY(trli_run_checked(sim, sim->part[0], 0, sim->time, false));
    trli_solving_swap(so, 0);
    trli_flow_weigh(sim, 0, sim->dt);
    sim->flow->moved_at = so->sim->frame->scalar[so->time_scalar] = sim->frame->scalar[sim->stage_time[1]];
    err = trli_solver_run(so->solver[so->flow_solver], 0, sim->time);
    trli_solving_swap(so, 0);
    trli_frame_swap(sim->frame, sim->equation[p].state, so->stage[p]);
    trli_set_present(sim);
done:
    return err;
}

static trl_err solve_initial(trl_simulation *sim, const struct trli_solving *so, bool dt_known)
{
    trl_err err = TRL_OK;
    if (so->changing == dt_known) TRL_TRY(solve_present(sim, sim->dt, TRLI_FLOW_START));
    if (dt_known) TRL_TRY(solve_first_pressure(sim));
done:
    return err;
}

/* As within a step, the ranks agree on each run beside the next one. */
trl_err trli_solve_initial(trl_simulation *sim, bool dt_known)
{
    if (!sim->solving) return TRL_OK;
    trli_solving_forget_steps(sim);
    if (sim->late) sim->late->within = true;
    const trl_err err = solve_initial(sim, sim->solving, dt_known);
    if (sim->late) sim->late->within = false;
    const trl_err settled = trl_simulation_settle(sim); /* what failed before comes first */
    return settled != TRL_OK ? settled : err;
}

trl_err trli_solve_before(trl_simulation *sim, const trli_next_step *next)
{
    const struct trli_solving *so = sim->solving;
    trl_err err = TRL_OK;
    if (!so) return TRL_OK;
    if (so->changing) TRL_TRY(trli_late_dt_await(sim));
    const bool known = !so->changing || (so->dt == next->dt && so->step == sim->step_number);
    err = known ? TRL_OK : solve_present(sim, next->dt, TRLI_FLOW_DONE);
    trli_solving_begin_step(sim);
done:
    return err;
}

trl_err trli_solve_stage(trl_simulation *sim, const trli_next_step *next, int stage, double time)
{
    struct trli_solving *so = sim->solving;
    if (!so) return TRL_OK;
    trli_solving_swap(so, stage);
    trli_flow_weigh(sim, stage, next->dt);
    const bool last = stage + 1 == sim->integrator->stages;
    so->made = last ? next : NULL;
    trl_err err = solve_all(so, last && sim->integrator->last_is_new ? TRLI_FLOW_DONE : stage, next->number, time);
    if (err == TRL_OK && last) err = trli_flow_find_pressure(so, next->dt, next->number, time);
    so->made = NULL;
    trli_solving_swap(so, stage);
    return err;
}

const trli_next_step *trli_solving_made(const trl_simulation *sim)
{
    return sim->solving ? sim->solving->made : NULL;
}

int trli_solving_result(const trl_simulation *sim, int variable)
{
    return trli_solving_made(sim) ? sim->solving->at[variable] : sim->equation[variable].state;
}

void trli_solve_after(trl_simulation *sim, const trli_next_step *next)
{
    trli_solving_leave_step(sim);
    trli_solving_resume(sim, next->number, next->dt);
}

trl_err trli_solve_step(trl_simulation *sim, const trli_next_step *next, bool check)
{
    const double *scalar = sim->frame->scalar;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solve_before(sim, next));
    TRL_TRY(trli_solve_guess(sim, next->number, next->time));
    for (int s = 0; s < sim->integrator->stages; ++s) {
        const bool last = s + 1 == sim->integrator->stages;
        TRL_TRY(trli_run_checked(sim, sim->part[s], next->number, next->time, last && check));
        TRL_TRY(trli_solve_stage(sim, next, s, scalar[sim->stage_time[s + 1]]));
    }
    if (sim->estimate) TRL_TRY(trli_run_checked(sim, sim->estimate, next->number, next->time, false));
    trli_solve_after(sim, next);
done:
    return err;
}

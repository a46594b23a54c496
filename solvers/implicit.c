/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Diagonally implicit and IMEX methods, whose first stage is explicit. Stages U_0 = u_n, U_1, ..., at t_n + c_s dt:
 *     U_s = B_s + gamma dt g(U_s),    B_s = u_n + dt sum over k < s of (a_sk f(U_k) + A_sk g(U_k)),
 * with f the explicit and g the implicit terms, and g(U_s) = (U_s - B_s)/(gamma dt) once U_s is known. u_{n+1} is
 * U_last, or where the weights of both terms are the last row of A,
 *     u_{n+1} = U_last + dt sum over k of (A_last,k - a_last,k) f(U_k).
 * A stage's program evaluates f and makes the next B; a solver stands between programs. */
#include <math.h>
#include <string.h>

#include "dense_impl.h"
#include "implicit_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "multistep_impl.h"
#include "sides_impl.h"
#include "slopes_impl.h"
#include "solving_impl.h"

struct trli_implicit {
    trl_simulation *sim;
    int *at, *base, *next_base; /* [equations] fields: U_s and B_s, and B_{s+1} in the making */
    int *f, *g;                 /* [stages][equations] fields of what later stages or the error need, or -1 */
    trli_ir_value *error;       /* [equations] slopes with the weights of the error */
    trli_ir_value *dense[TRLI_DENSE_SUMS]; /* [equations] and with those of values inside the step */
    int scaled;                            /* scalar: gamma dt */
    int time_scalar;                       /* of the stage that is solved for */
    trli_program *take;                    /* U_s = B_s for equations without implicit terms; NULL: there are none */
    trli_solver *solver;
};

static bool is_implicit(const trl_simulation *sim, int v)
{
    return sim->equation[v].implicit != NULL;
}

static bool is_explicit(const trl_simulation *sim, int v)
{
    const trl_equation_entry *deck = sim->equation[v].deck;
    return !is_implicit(sim, v) || (deck->ddt.count && (deck->implicit.count || !sim->integrator->all_implicit));
}

static double gamma_of(const trl_integrator *m)
{
    return m->diagonal[1][1];
}

/* The factor of f(U_k) in U_s, or for s = stages in u_{n+1} beside U_last. */
static double explicit_factor(const trl_integrator *m, int s, int k)
{
    if (s < m->stages) return s > 0 ? m->a[s - 1][k] : 0;
    return m->last_is_new ? 0 : m->diagonal[m->stages - 1][k] - m->a[m->stages - 2][k];
}

/* The weight of f(U_k), or of g(U_k), in the estimate of the error. */
static double error_factor(const trl_simulation *sim, int k, bool of_f)
{
    const trl_integrator *m = sim->integrator;
    if (!sim->problem->time.adaptive) return 0;
    return m->error[k] + (of_f && m->last_is_new ? m->a[m->stages - 2][k] - m->diagonal[m->stages - 1][k] : 0);
}

/* Whether f(U_k), or g(U_k), is in sums that the last stage makes. */
static bool is_in_sums(const trl_simulation *sim, int v, int k, bool of_f)
{
    bool is = error_factor(sim, k, of_f) != 0;
    for (int i = 0; i < TRLI_DENSE_SUMS; ++i) is |= trli_dense_factor(sim, v, i, k) != 0;
    return is;
}

static bool needed_later(const trl_simulation *sim, int v, int k, bool of_f)
{
    const trl_integrator *m = sim->integrator;
    if (k + 1 < m->stages && is_in_sums(sim, v, k, of_f)) return true;
    for (int s = k + 2; s <= m->stages; ++s)
        if (of_f ? explicit_factor(m, s, k) != 0 : s < m->stages && m->diagonal[s][k] != 0) return true;
    return false;
}

/* ---- fields ---- */

static int add_field(trl_simulation *sim, int v, const char *what, int number)
{
    const char *name = number < 0 ? trli_model_name(sim->model, "%s:%s", sim->equation[v].deck->name, what)
                                  : trli_model_name(sim->model, "%s:%s%d", sim->equation[v].deck->name, what, number);
    const int field = trli_model_add_field(sim->model, name, sim->model->variable[v].location);
    if (field >= 0) sim->model->field[field].persistent = true;
    return field;
}

static trl_err add_fields(struct trli_implicit *im)
{
    trl_simulation *sim = im->sim;
    const trl_integrator *m = sim->integrator;
    const int n = sim->nequations;
    trl_err err = TRL_OK;
    for (int v = 0; v < n; ++v) {
        im->at[v] = add_field(sim, v, "stage", -1);
        for (int k = 0; k < m->stages; ++k) im->f[k * n + v] = im->g[k * n + v] = -1;
        if (sim->equation[v].solve) {
            TRL_TRY(sim->model->ir.err);
            trli_set_conditions(sim, v, im->at[v], im->at[v]);
            continue;
        }
        im->base[v] = add_field(sim, v, "base", -1);
        im->next_base[v] = add_field(sim, v, "next_base", -1);
        TRL_TRY(sim->model->ir.err);
        trli_set_conditions(sim, v, im->at[v], im->at[sim->equation[v].of]);
        for (int k = 0; k < m->stages; ++k) {
            if (is_explicit(sim, v) && needed_later(sim, v, k, true)) im->f[k * n + v] = add_field(sim, v, "f", k);
            if (is_implicit(sim, v) && needed_later(sim, v, k, false)) im->g[k * n + v] = add_field(sim, v, "g", k);
        }
    }
    for (int s = 0; s + 1 < m->stages; ++s) trli_solving_note_stage(sim, s, im->at);
    err = sim->model->ir.err;
done:
    return err;
}

/* ---- the equations of a stage ---- */

static trl_err make_instance(void *data, trli_program *program, trli_instance **in, trli_instance **old)
{
    const struct trli_implicit *im = data;
    trl_simulation *sim = im->sim;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_of_state(sim, program, old));
    TRL_TRY(trli_instance_fill(*old));
    TRL_TRY(trli_instance_create(sim->model, program, im->time_scalar, 1, *old, in));
    for (int v = 0; v < sim->nequations; ++v) (*in)->variable[v] = im->at[v];
done:
    return err;
}

static int nth_implicit(const trl_simulation *sim, int i)
{
    for (int v = 0; v < sim->nequations; ++v)
        if (is_implicit(sim, v) && i-- == 0) return v;
    return -1;
}

/* U - B - gamma dt g(U), in the model of another grid without B, on which derivatives do not depend. */
static trl_err residual(void *data, trli_instance *in, int i, trli_ir_value *value)
{
    const struct trli_implicit *im = data;
    const trl_simulation *sim = im->sim;
    const bool own = in->model == sim->model;
    trli_ir *ir = &in->model->ir;
    const int v = nth_implicit(sim, i);
    const trli_equation *eq = &sim->equation[v];
    trl_err err = TRL_OK;
    trli_ir_value g;
    TRL_TRY(trli_lower_at(in, eq->implicit, eq->deck->names, sim->model->variable[v].location, &g));
    const trli_ir_value scaled = own ? trli_ir_scalar(ir, im->scaled)
                                     : trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, gamma_of(sim->integrator)),
                                                      trli_ir_scalar(ir, TRLI_SCALAR_DT));
    *value = trli_ir_field(ir, in->variable[v]);
    if (own) *value = trli_ir_binary(ir, TRLI_OP_SUB, *value, trli_ir_field(ir, im->base[v]));
    *value = trli_ir_binary(ir, TRLI_OP_SUB, *value, trli_ir_binary(ir, TRLI_OP_MUL, scaled, g));
    const int held = own ? trli_flow_held(sim, v) : -1;
    if (held >= 0) *value = trli_ir_binary(ir, TRLI_OP_ADD, *value, trli_ir_field(ir, held));
    err = ir->err;
done:
    return err;
}

static const trl_solver_entry unnamed = TRL_SOLVER_DEFAULTS;

static trl_err add_solver(struct trli_implicit *im)
{
    trl_simulation *sim = im->sim;
    int *variable = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *variable);
    int *field = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *field), n = 0;
    const char *names = NULL;
    const trl_solver_entry *settings = NULL;
    const trl_time_entry *time = &sim->problem->time;
    trl_err err = TRL_OK;
    if (!variable || !field) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for stages"));
    for (int v = 0; v < sim->nequations; ++v) {
        const trl_equation_entry *deck = sim->equation[v].deck;
        if (!is_implicit(sim, v)) continue;
        names = names ? trli_model_name(sim->model, "%s, %s", names, deck->name) : deck->name;
        if (n > 0 && deck->solver != settings)
            TRL_TRY(trl_fail(sim->ctx, TRL_ERR_INPUT, &deck->place,
                             "the implicit terms of all equations are solved together: name the same solver for '%s'",
                             names));
        settings = deck->solver;
        variable[n] = v;
        field[n++] = im->at[v];
    }
    if (n == 0) goto done;
    const trli_solve_request request = {.names = names,
                                        .place = sim->equation[variable[0]].implicit->text.place,
                                        .settings = settings ? settings : &unnamed,
                                        .n = n,
                                        .variable = variable,
                                        .field = field,
                                        .instance = make_instance,
                                        .residual = residual,
                                        .relative = time->adaptive ? time->relative : 0,
                                        .absolute = time->adaptive ? time->absolute : 0,
                                        .steps = true,
                                        .data = im,
                                        .on_grid = true};
    err = trli_solver_add(sim, &request, &im->solver);
done:
    trli_free(variable);
    trli_free(field);
    return err;
}

/* ---- programs ---- */

static trl_err masked(trl_simulation *sim, trli_instance *in, int v, trli_ir_value *value)
{
    const trli_equation *eq = &sim->equation[v];
    trli_ir_value mask;
    trl_err err = TRL_OK;
    if (!sim->model->variable[v].mask) return TRL_OK;
    TRL_TRY(trli_lower_at(in, eq->mask, eq->deck->names, sim->model->variable[v].location, &mask));
    *value = trli_ir_select(&sim->model->ir, mask, *value, trli_ir_field(&sim->model->ir, eq->state));
done:
    return err;
}

static trl_err store(trl_simulation *sim, trli_program *program, int v, int field, trli_ir_value value, bool check)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_add_kernel(program, sim->equation[v].deck->name, 1, &field, &value, check ? &v : NULL));
    TRL_TRY(trli_program_add_root(program, field));
done:
    return err;
}

static trli_ir_value kept(const struct trli_implicit *im, const int *field, int k, int v)
{
    const int at = field[k * im->sim->nequations + v];
    return at < 0 ? TRLI_NO_VALUE : trli_ir_field(&im->sim->model->ir, at);
}

static trli_ir_value add_term(trli_ir *ir, trli_ir_value sum, double factor, trli_ir_value slope)
{
    if (factor == 0 || slope < 0) return sum;
    const trli_ir_value term = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, factor), slope);
    return sum < 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum, term);
}

/* What is solved for behind a stage has the values of the one before as first guess. */
static trl_err compile_guess(struct trli_implicit *im, int s, int v)
{
    trl_simulation *sim = im->sim;
    const trli_equation *eq = &sim->equation[v];
    trli_ir *ir = &sim->model->ir;
    trl_err err = TRL_OK;
    trli_ir_value first = trli_ir_field(ir, eq->state);
    if (trli_slope_lost(sim, v) >= 0)
        first = trli_ir_binary(ir, TRLI_OP_SUB, first, trli_ir_field(ir, trli_slope_lost(sim, v)));
    if (s == 0) TRL_TRY(store(sim, sim->part[s], v, im->at[v], first, false));
    if (s + 1 == sim->integrator->stages)
        TRL_TRY(store(sim, sim->part[s], v, eq->next, trli_ir_field(ir, im->at[v]), false));
done:
    return err;
}

/* What stage s gives of an equation, and the next stage's base or the new value. */
static trl_err compile_equation(struct trli_implicit *im, trli_instance *in, int s, int v)
{
    trl_simulation *sim = im->sim;
    const trl_integrator *m = sim->integrator;
    const trli_equation *eq = &sim->equation[v];
    const trl_location location = sim->model->variable[v].location;
    const int n = sim->nequations, next = s + 1;
    trli_ir *ir = &sim->model->ir;
    trli_ir_value f = TRLI_NO_VALUE, g = TRLI_NO_VALUE, sum = TRLI_NO_VALUE;
    trli_program *program = sim->part[s];
    trl_err err = TRL_OK;
    const bool last = next == m->stages;
    const bool of_f = is_explicit(sim, v) && (im->f[s * n + v] >= 0 || explicit_factor(m, next, s) != 0 ||
                                              (last && is_in_sums(sim, v, s, true)));
    const bool of_g = is_implicit(sim, v) && (im->g[s * n + v] >= 0 || (!last && m->diagonal[next][s] != 0) ||
                                              (last && is_in_sums(sim, v, s, false)));
    if (of_f && trli_slope_of(sim, v) >= 0)
        f = trli_ir_field(ir, trli_slope_of(sim, v));
    else if (of_f)
        TRL_TRY(trli_lower_at(in, eq->ddt, eq->deck->names, location, &f));
    if (of_g && s == 0) TRL_TRY(trli_lower_at(in, eq->implicit, eq->deck->names, location, &g));
    if (of_g && s == 0) TRL_TRY(trli_flow_subtract(in, v, &g));
    if (of_g && s == 0 && trli_slope_lost(sim, v) >= 0) /* the pressure less that of the explicit slope */
        g = trli_ir_binary(ir, TRLI_OP_ADD, g, trli_ir_field(ir, trli_slope_lost(sim, v)));
    if (of_g && s > 0)
        g = trli_ir_binary(
            ir, TRLI_OP_DIV,
            trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, im->at[v]), trli_ir_field(ir, im->base[v])),
            trli_ir_scalar(ir, im->scaled));
    if (im->f[s * n + v] >= 0) TRL_TRY(store(sim, program, v, im->f[s * n + v], f, false));
    if (im->g[s * n + v] >= 0) TRL_TRY(store(sim, program, v, im->g[s * n + v], g, false));
    for (int k = 0; k <= s; ++k) {
        const trli_ir_value fk = k == s ? f : kept(im, im->f, k, v), gk = k == s ? g : kept(im, im->g, k, v);
        sum = add_term(ir, sum, explicit_factor(m, next, k), fk);
        if (!last) sum = add_term(ir, sum, m->diagonal[next][k], gk);
        if (!last) continue;
        im->error[v] = add_term(ir, im->error[v], error_factor(sim, k, true), fk);
        im->error[v] = add_term(ir, im->error[v], error_factor(sim, k, false), gk);
        for (int i = 0; i < TRLI_DENSE_SUMS; ++i) {
            im->dense[i][v] = add_term(ir, im->dense[i][v], trli_dense_factor(sim, v, i, k), fk);
            im->dense[i][v] = add_term(ir, im->dense[i][v], trli_dense_factor(sim, v, i, k), gk);
        }
    }
    for (int i = 0; i < TRLI_DENSE_SUMS && last; ++i) TRL_TRY(trli_dense_add_sum(sim, program, v, i, im->dense[i][v]));
    if (last && im->error[v] < 0) im->error[v] = trli_ir_constant(ir, 0);
    trli_ir_value value = trli_ir_field(ir, last ? im->at[v] : eq->state);
    if (sum >= 0)
        value = trli_ir_binary(ir, TRLI_OP_ADD, value,
                               trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, TRLI_SCALAR_DT), sum));
    if (last) TRL_TRY(masked(sim, in, v, &value));
    TRL_TRY(store(sim, program, v, last ? eq->next : im->next_base[v], value, last));
    if (s == 0) TRL_TRY(store(sim, program, v, im->at[v], trli_ir_field(ir, eq->state), false));
done:
    return err;
}

static trl_err compile_stage(struct trli_implicit *im, int s)
{
    trl_simulation *sim = im->sim;
    const trl_integrator *m = sim->integrator;
    const bool last = s + 1 == m->stages;
    const char *name = last ? TRLI_STEP_PROGRAM : trli_model_name(sim->model, "%s, stage %d", TRLI_STEP_PROGRAM, s + 1);
    trli_instance *start = NULL, *in = NULL, *after = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, name, &sim->part[s]));
    TRL_TRY(trli_instance_of_state(sim, sim->part[s], &start));
    TRL_TRY(trli_instance_fill(start));
    if (s > 0) {
        TRL_TRY(trli_instance_create(sim->model, sim->part[s], sim->stage_time[s], s, start, &in));
        for (int v = 0; v < sim->nequations; ++v) in->variable[v] = im->at[v];
        TRL_TRY(trli_instance_fill(in));
    }
    TRL_TRY(trli_instance_prepare(in ? in : start));
    for (int v = 0; v < sim->nequations; ++v)
        TRL_TRY(sim->equation[v].solve ? compile_guess(im, s, v) : compile_equation(im, in ? in : start, s, v));
    if (!last) goto done;
    TRL_TRY(trli_instance_create(sim->model, sim->part[s], sim->stage_time[m->stages], m->stages, start, &after));
    for (int v = 0; v < sim->nequations; ++v) after->variable[v] = sim->equation[v].next;
    TRL_TRY(trli_instance_planes(after, true));
    trli_solving_note_stage(sim, s, after->variable);
    if (sim->problem->time.adaptive) TRL_TRY(trli_compile_errors(sim, in, im->error));
done:
    trli_instance_destroy(&after);
    trli_instance_destroy(&in);
    trli_instance_destroy(&start);
    return err;
}

/* U_s = B_s where no term is implicit, with what conditions set at points on sides. */
static trl_err compile_take(struct trli_implicit *im)
{
    trl_simulation *sim = im->sim;
    trli_instance *in = NULL, *old = NULL;
    bool any = false;
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) any |= !is_implicit(sim, v) && !sim->equation[v].solve;
    if (!any) return TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "explicit values", &im->take));
    TRL_TRY(make_instance(im, im->take, &in, &old));
    for (int v = 0; v < sim->nequations; ++v) {
        trli_ir_value value;
        if (is_implicit(sim, v) || sim->equation[v].solve) continue;
        value = trli_ir_field(&sim->model->ir, im->base[v]);
        TRL_TRY(masked(sim, in, v, &value));
        TRL_TRY(store(sim, im->take, v, im->at[v], value, false));
    }
    TRL_TRY(trli_instance_planes(in, false));
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

static int *list_of(trl_simulation *sim, int n)
{
    return trli_model_keep(sim->model, ((size_t)n + 1) * sizeof(int));
}

trl_err trli_compile_implicit(trl_simulation *sim)
{
    const trl_integrator *m = sim->integrator;
    const int n = sim->nequations;
    struct trli_implicit *im = sim->implicit = trli_model_keep(sim->model, sizeof *im);
    trl_err err = TRL_OK;
    if (!im) return sim->model->ir.err;
    *im = (struct trli_implicit){.sim = sim,
                                 .at = list_of(sim, n),
                                 .base = list_of(sim, n),
                                 .next_base = list_of(sim, n),
                                 .f = list_of(sim, m->stages * n),
                                 .g = list_of(sim, m->stages * n),
                                 .error = trli_model_keep(sim->model, ((size_t)n + 1) * sizeof *im->error),
                                 .scaled = trli_model_add_scalar(sim->model, 0),
                                 .time_scalar = trli_model_add_scalar(sim->model, 0)};
    TRL_TRY(sim->model->ir.err);
    for (int v = 0; v < n; ++v) im->error[v] = TRLI_NO_VALUE;
    for (int i = 0; i < TRLI_DENSE_SUMS; ++i) {
        im->dense[i] = trli_model_keep(sim->model, ((size_t)n + 1) * sizeof *im->dense[i]);
        for (int v = 0; v < n && im->dense[i]; ++v) im->dense[i][v] = TRLI_NO_VALUE;
    }
    TRL_TRY(sim->model->ir.err);
    sim->stage_time[0] = TRLI_SCALAR_STEP_TIME;
    for (int s = 1; s <= m->stages; ++s) sim->stage_time[s] = trli_model_add_scalar(sim->model, 0);
    TRL_TRY(add_fields(im));
    TRL_TRY(add_solver(im));
    TRL_TRY(compile_take(im));
    for (int s = 0; s < m->stages; ++s) TRL_TRY(compile_stage(im, s));
    sim->step = sim->part[m->stages - 1];
done:
    return err;
}

/* ---- running ---- */

static void swap_bases(const struct trli_implicit *im)
{
    for (int v = 0; v < im->sim->nequations; ++v)
        if (!im->sim->equation[v].solve) trli_frame_swap(im->sim->frame, im->base[v], im->next_base[v]);
}

trl_err trli_implicit_step(trl_simulation *sim, const trli_next_step *next, bool check)
{
    struct trli_implicit *im = sim->implicit;
    const trl_integrator *m = sim->integrator;
    double *scalar = sim->frame->scalar;
    const int passes = trli_flow_passes(sim);
    trl_err err = TRL_OK;
    TRL_TRY(trli_solve_before(sim, next));
    for (int s = 0; s < m->stages; ++s) {
        const bool last = s + 1 == m->stages;
        scalar[im->time_scalar] = scalar[sim->stage_time[s]];
        if (s > 0 && im->take) TRL_TRY(trli_run_checked(sim, im->take, next->number, next->time, false));
        for (int pass = 0; s > 0 && pass < passes; ++pass) {
            TRL_TRY(trli_flow_hold(sim, s - 1, next));
            if (im->solver) TRL_TRY(trli_solver_run(im->solver, next->number, scalar[im->time_scalar]));
            TRL_TRY(trli_solve_stage(sim, next, s - 1, scalar[im->time_scalar]));
        }
        TRL_TRY(trli_slopes_find(sim, s, next));
        TRL_TRY(trli_run_checked(sim, sim->part[s], next->number, next->time, last && check));
        if (s == 0) scalar[im->scaled] = gamma_of(m) * next->dt; /* which is known now */
        if (!last) swap_bases(im);
    }
    TRL_TRY(trli_solve_stage(sim, next, m->stages - 1, next->time));
    trli_solve_after(sim, next);
done:
    return err;
}

void trli_implicit_equalise(trl_simulation *sim)
{
    if (sim->implicit && sim->implicit->solver) trli_solver_equalise(sim->implicit->solver);
}

void trli_implicit_begin(trl_simulation *sim)
{
    if (sim->implicit && sim->implicit->solver) trli_solver_clear(sim->implicit->solver);
}

trl_err trli_implicit_foresee(trl_simulation *sim)
{
    struct trli_implicit *im = sim->implicit;
    if (!im || !im->solver) return TRL_OK;
    sim->frame->scalar[im->scaled] = gamma_of(sim->integrator) * sim->dt;
    sim->frame->scalar[im->time_scalar] = sim->time;
    return trli_solver_foresee(im->solver, sim->step_number, sim->time);
}

void trli_implicit_destroy(trl_simulation *sim)
{
    if (sim->implicit && sim->implicit->solver) trli_solver_destroy(&sim->implicit->solver);
    sim->implicit = NULL;
}

const trli_solver *trli_implicit_solver(const trl_simulation *sim)
{
    return sim->implicit ? sim->implicit->solver : NULL;
}

void trli_implicit_mark_fields(const trl_simulation *sim, bool *needed)
{
    const struct trli_implicit *im = sim->implicit;
    if (!im) return;
    if (im->solver) trli_solver_mark_fields(im->solver, needed);
    for (int v = 0; v < sim->nequations; ++v) {
        needed[im->at[v]] = true;
        if (!sim->equation[v].solve) needed[im->base[v]] = true;
    }
    for (int i = 0; i < sim->integrator->stages * sim->nequations; ++i) {
        if (im->f[i] >= 0) needed[im->f[i]] = true;
        if (im->g[i] >= 0) needed[im->g[i]] = true;
    }
}

/* ---- which terms are implicit ---- */

static const char *const methods_for = "beuler, ark3 or ark4, or if all terms are implicit bdf, cn, esdirk2, "
                                       "esdirk3 or esdirk4";

static bool is_component(const trl_problem *p, const char *name)
{
    bool is = false;
    for (int a = 0; a < p->incompressible.n; ++a) is |= strcmp(p->incompressible.velocity[a], name) == 0;
    return is;
}

/* Methods that take terms as implicit only where the deck says so, and a deck that does nowhere. */
static void warn_all_explicit(const trl_simulation *sim)
{
    const trl_integrator *m = sim->integrator;
    const char *name = trl_method_name(sim->problem->time.method);
    const trl_equation_entry *first = NULL;
    if (!m->imex || m->all_implicit) return;
    for (int v = 0; v < sim->problem->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        if (eq->deck->implicit.count) return;
        if (!first && !eq->solve) first = eq->deck;
    }
    if (first)
        trl_warn(sim->ctx, &first->ddt.place,
                 "%s takes all of 'ddt' of '%s' as explicit, as no equation says which terms are implicit: use `ddt: "
                 "{explicit: ..., implicit: ...}` for stiff ones, or %s, by which all are implicit, or an explicit "
                 "method if none is stiff",
                 name, first->name, m->order > 3 ? "esdirk4" : "esdirk3");
}

trl_err trli_split_terms(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const trl_integrator *m = sim->integrator;
    static const trl_text zero = {.chars = "0"};
    trl_err err = TRL_OK;
    TRL_TRY(trli_multistep_check(sim));
    for (int v = 0; v < p->nequations; ++v) {
        trli_equation *eq = &sim->equation[v];
        const trl_value *terms = &eq->deck->implicit;
        if (terms->count && !m->implicit)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, &terms->place,
                            "%s advances no implicit terms, as those of '%s': use %s", trl_method_name(p->time.method),
                            eq->deck->name, methods_for);
        if (!m->implicit || eq->solve) continue;
        if (p->nsensitivities)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->time.method_place,
                            "%s does not go with sensitivities yet: use an explicit method",
                            trl_method_name(p->time.method));
        if (terms->count && eq->deck->ddt.count && !m->imex)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, &terms->place,
                            "%s advances no explicit terms, as those of '%s': use %s", trl_method_name(p->time.method),
                            eq->deck->name, methods_for);
        if (terms->count) {
            TRL_TRY(trli_formula_of(sim, terms->text, &eq->implicit));
        } else if (is_component(p, eq->deck->name) && !m->all_implicit) {
            TRL_TRY(trli_formula_of(sim, &zero, &eq->implicit)); /* beside the pressure's part, which is implicit */
        } else if (m->all_implicit) {
            eq->implicit = eq->ddt;
            TRL_TRY(trli_formula_of(sim, &zero, &eq->ddt));
        }
    }
    warn_all_explicit(sim);
done:
    return err;
}

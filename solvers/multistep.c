/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* CVODE sees the values of all equations with rates as one vector. For rates they are put where the next level will be,
 * equations without a time derivative are solved there, and a program evaluates the rates. Points that do not advance
 * (of a mask, or that a condition sets) are numbers whose rate is 0, and no parts of a norm. A product with the
 * Jacobian J follows from one with 1 - gamma J, for which a solver has a program. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "adaptive_impl.h"
#include "compile_impl.h"
#include "context_impl.h"
#include "cvode_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "multistep_impl.h"
#include "packing_impl.h"
#include "point_blocks_impl.h"
#include "sides_impl.h"
#include "solved_products_impl.h"
#include "solving_impl.h"

struct trli_multistep {
    trl_simulation *sim;
    int n, *unknown;                /* equations with rates: */
    int *y, *rate;                  /* [n] fields */
    int *count;                     /* [n] scalars: points that advance */
    int *at;                        /* [equations] fields: y, and what is solved for */
    trli_program *points;           /* finds these */
    trli_program *finish;           /* sets points on sides of the next level; NULL: conditions set none */
    int gamma, time_scalar;         /* scalars: of 1 - gamma J; of the rates */
    trli_solver *solver;            /* of the n unknowns; NULL: nothing is solved for with derivatives of rates */
    trli_solved_products *products; /* where rates read what is solved for; NULL: those of the solver */
    trli_cvode *cvode;              /* NULL: before the first step */
    trli_packing packing;
    double *inverse; /* of the diagonal; NULL: it is not used */
    void *inverse_memory;
    trli_point_blocks blocks; /* n 0: there are none */
    bool begun, cycles;       /* cycles of multigrid are the preconditioner */
    bool unsolved;            /* for the last rates */
    trli_next_step next;      /* the step */
    double time;              /* of the rates */
    bool moved;               /* y is another one than that of the diagonal */
};

/* ---- what CVODE asks for ---- */

static trl_err are_finite(const struct trli_multistep *m, const double *values, bool *finite)
{
    const int64_t n = trli_packing_size(&m->packing);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += 0 * values[i]; /* 0, or NaN */
    int bad = sum != 0;
    const trl_err err = trli_allreduce(m->sim->ctx, &bad, 1, MPI_INT, MPI_MAX);
    *finite = !bad;
    return err;
}

/* A solver that finds no solution asks for a smaller step; then the next guess is what the step began with. */
static trl_err leniently(trl_simulation *sim, trl_err (*work)(struct trli_multistep *m, double t),
                         struct trli_multistep *m, double t, bool *unsolved)
{
    trli_control *c = &sim->control;
    c->lenient = true;
    c->unsolved = false;
    const trl_err err = work(m, t);
    c->lenient = false;
    *unsolved = c->unsolved;
    c->nunsolved += c->unsolved;
    return c->unsolved ? trli_solve_guess(sim, m->next.number, t) : err;
}

static trl_err solve_at(struct trli_multistep *m, double t)
{
    return trli_solve_stage(m->sim, &m->next, 0, t);
}

/* What equations without a time derivative say of y. */
static trl_err find_solutions(struct trli_multistep *m, double t)
{
    return leniently(m->sim, solve_at, m, t, &m->unsolved);
}

static trl_err find_rates(void *data, double t, const double *y, double *f, bool *finite)
{
    struct trli_multistep *m = data;
    trl_simulation *sim = m->sim;
    trl_err err = TRL_OK;
    m->time = t;
    m->moved = true;
    sim->frame->scalar[m->time_scalar] = t;
    TRL_TRY(trli_unpack(&m->packing, y, m->y));
    TRL_TRY(find_solutions(m, t));
    *finite = false;
    if (m->unsolved) return TRL_OK;
    TRL_TRY(trli_run_checked(sim, sim->step, m->next.number, t, false));
    TRL_TRY(trli_pack(&m->packing, m->rate, f));
    err = are_finite(m, f, finite);
done:
    return err;
}

static trl_err multiply_at(struct trli_multistep *m, double t)
{
    return m->products ? trli_solved_products_multiply(m->products, m->next.number, t)
                       : trli_solver_multiply(m->solver, m->next.number, t);
}

static trl_err multiply(void *data, double gamma, const double *v, double *product, bool *found)
{
    struct trli_multistep *m = data;
    bool unsolved;
    trl_err err = TRL_OK;
    m->sim->frame->scalar[m->gamma] = gamma;
    TRL_TRY(trli_unpack(&m->packing, v,
                        m->products ? trli_solved_products_direction(m->products) : trli_solver_direction(m->solver)));
    TRL_TRY(leniently(m->sim, multiply_at, m, m->time, &unsolved));
    *found = !unsolved;
    err = trli_pack_difference(&m->packing, v,
                               m->products ? trli_solved_products_result(m->products) : trli_solver_product(m->solver),
                               gamma, product);
done:
    return err;
}

/* What couples the unknowns of each point. */
static trl_err find_blocks(struct trli_multistep *m)
{
    trli_point_blocks *b = &m->blocks;
    const int n = b->n;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_find_coupling(m->solver));
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            double number, *entry = b->entry + i * n + j;
            const int field = trli_solver_coupling(m->solver, i, j, &number);
            for (int64_t k = 0; k < b->points && field < 0; ++k) entry[k * n * n] = number;
            if (field >= 0) TRL_TRY(trli_pack_one(&m->packing, field, n * n, entry));
        }
    err = trli_point_blocks_factor(b);
done:
    return err;
}

static trl_err prepare(void *data, double gamma)
{
    struct trli_multistep *m = data;
    const int *field = trli_solver_inverse(m->solver);
    trl_err err = TRL_OK;
    m->sim->frame->scalar[m->gamma] = gamma;
    TRL_TRY(trli_solver_prepare_cycles(m->solver, gamma, &m->cycles));
    m->moved = false;
    if (m->cycles) return TRL_OK;
    if (m->blocks.n) return find_blocks(m);
    if (field) {
        TRL_TRY(trli_pack(&m->packing, field, m->inverse));
        goto done;
    }
    for (int k = 0; k < m->n; ++k) {
        const double inverse = trli_solver_inverse_number(m->solver, k);
        const int64_t begin = trli_packing_begin(&m->packing, k), end = trli_packing_begin(&m->packing, k + 1);
        for (int64_t i = begin; i < end; ++i) m->inverse[i] = inverse;
    }
done:
    return err;
}

static trl_err precondition(void *data, const double *r, double *z)
{
    struct trli_multistep *m = data;
    trl_err err = TRL_OK;
    if (!m->cycles && m->blocks.n) return trli_point_blocks_solve(&m->blocks, r, z);
    if (!m->cycles) {
        const int64_t n = trli_packing_size(&m->packing);
        for (int64_t i = 0; i < n; ++i) z[i] = m->inverse[i] * r[i];
        return TRL_OK;
    }
    if (m->moved) TRL_TRY(trli_solver_refresh(m->solver));
    m->moved = false;
    TRL_TRY(trli_unpack(&m->packing, r, trli_solver_right_side(m->solver)));
    TRL_TRY(trli_solver_cycle(m->solver));
    err = trli_pack(&m->packing, trli_solver_cycle_result(m->solver), z);
done:
    return err;
}

/* ---- programs ---- */

/* Values where the next level will be, at the time of the rates. */
static trl_err make_instance(void *data, trli_program *program, trli_instance **in, trli_instance **old)
{
    const struct trli_multistep *m = data;
    trl_simulation *sim = m->sim;
    trl_err err = TRL_OK;
    *old = NULL;
    TRL_TRY(trli_instance_create(sim->model, program, m->time_scalar, 0, NULL, in));
    for (int v = 0; v < sim->nequations; ++v) (*in)->variable[v] = m->at[v];
done:
    return err;
}

static trl_err rate_of(const struct trli_multistep *m, trli_instance *in, int v, trli_ir_value *value)
{
    const trli_equation *eq = &m->sim->equation[v];
    const trl_location location = m->sim->model->variable[v].location;
    trli_ir_value more;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_at(in, eq->implicit, eq->deck->names, location, value));
    if (!eq->deck->implicit.count || !eq->deck->ddt.count) return TRL_OK;
    TRL_TRY(trli_lower_at(in, eq->ddt, eq->deck->names, location, &more));
    *value = trli_ir_binary(&in->model->ir, TRLI_OP_ADD, *value, more);
    err = in->model->ir.err;
done:
    return err;
}

/* U - gamma f(U): only derivatives of it are wanted. In the model of another grid gamma stands in the place of dt. */
static trl_err residual(void *data, trli_instance *in, int i, trli_ir_value *value)
{
    const struct trli_multistep *m = data;
    trli_ir *ir = &in->model->ir;
    trli_ir_value f;
    trl_err err = TRL_OK;
    TRL_TRY(rate_of(m, in, m->unknown[i], &f));
    const trli_ir_value gamma = trli_ir_scalar(ir, in->model == m->sim->model ? m->gamma : TRLI_SCALAR_DT);
    *value = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, in->variable[m->unknown[i]]),
                            trli_ir_binary(ir, TRLI_OP_MUL, gamma, f));
    err = ir->err;
done:
    return err;
}

static trl_err compile_rates(struct trli_multistep *m)
{
    trl_simulation *sim = m->sim;
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, TRLI_STEP_PROGRAM, &sim->part[0]));
    sim->step = sim->part[0];
    TRL_TRY(make_instance(m, sim->step, &in, &old));
    TRL_TRY(trli_instance_planes(in, false));
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    for (int k = 0; k < m->n; ++k) {
        const int v = m->unknown[k];
        trli_ir_value value;
        TRL_TRY(rate_of(m, in, v, &value));
        TRL_TRY(trli_zero_where_set(sim, in, v, m->at[v], &value));
        TRL_TRY(trli_program_add_kernel(sim->step, sim->equation[v].deck->name, 1, &m->rate[k], &value, NULL));
        TRL_TRY(trli_program_add_root(sim->step, m->rate[k]));
    }
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(trli_program_add_root(sim->step, m->at[v]));
done:
    trli_instance_destroy(&in);
    return err;
}

static trl_err compile_points(struct trli_multistep *m)
{
    trl_simulation *sim = m->sim;
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "points", &m->points));
    TRL_TRY(make_instance(m, m->points, &in, &old));
    for (int k = 0; k < m->n; ++k) {
        const trl_location location = sim->model->variable[m->unknown[k]].location;
        trli_ir_value value = trli_ir_constant(&sim->model->ir, 1);
        TRL_TRY(trli_zero_where_set(sim, in, m->unknown[k], m->y[k], &value));
        value = trli_ir_place(&sim->model->ir, value, location);
        TRL_TRY(trli_program_reduce(m->points, "points", value, location, TRLI_REDUCE_SUM, false, NULL, &m->count[k]));
        TRL_TRY(trli_program_add_scalar_root(m->points, m->count[k]));
    }
done:
    trli_instance_destroy(&in);
    return err;
}

static trl_err compile_finish(struct trli_multistep *m)
{
    trl_simulation *sim = m->sim;
    trli_instance *in = NULL;
    bool any = false;
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) any |= trli_equation_sets_points(sim, v);
    if (!any) return TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "points on sides", &m->finish));
    TRL_TRY(trli_instance_create(sim->model, m->finish, sim->stage_time[1], 1, NULL, &in));
    for (int v = 0; v < sim->nequations; ++v) in->variable[v] = m->at[v];
    TRL_TRY(trli_instance_planes(in, true));
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(trli_program_add_root(m->finish, m->at[v]));
done:
    trli_instance_destroy(&in);
    return err;
}

static const trl_solver_entry unnamed = TRL_SOLVER_DEFAULTS;

static const trl_solver_entry *settings_of(const struct trli_multistep *m)
{
    const trl_solver_entry *named = m->sim->equation[m->unknown[0]].deck->solver;
    return named ? named : &unnamed;
}

static trl_err add_solver(struct trli_multistep *m)
{
    trl_simulation *sim = m->sim;
    const trli_equation *first = &sim->equation[m->unknown[0]];
    const trl_solver_entry *settings = settings_of(m);
    const char *names = first->deck->name;
    trl_err err = TRL_OK;
    for (int k = 1; k < m->n; ++k) {
        const trl_equation_entry *deck = sim->equation[m->unknown[k]].deck;
        names = trli_model_name(sim->model, "%s, %s", names, deck->name);
        if (deck->solver == first->deck->solver) continue;
        TRL_TRY(trl_fail(sim->ctx, TRL_ERR_INPUT, &deck->place,
                         "by bdf all equations are solved together: name the same solver for '%s'", names));
    }
    if (settings->method != TRL_SOLVE_AUTO && settings->method != TRL_SOLVE_GMRES &&
        settings->method != TRL_SOLVE_BICGSTAB)
        TRL_TRY(trl_fail(sim->ctx, TRL_ERR_INPUT, &settings->place,
                         "the systems of bdf are solved by gmres or bicgstab: use one of these, or auto"));
    const trli_solve_request request = {.names = names,
                                        .place = first->implicit->text.place,
                                        .settings = settings,
                                        .n = m->n,
                                        .variable = m->unknown,
                                        .field = m->y,
                                        .instance = make_instance,
                                        .residual = residual,
                                        .data = m,
                                        .on_grid = true,
                                        .products_alone = true};
    TRL_TRY(trli_solver_add(sim, &request, &m->solver));
    if (sim->solving) err = trli_solved_products_compile(sim, &request, m->at, &m->products);
done:
    return err;
}

trl_err trli_multistep_compile(trl_simulation *sim)
{
    const size_t n = (size_t)sim->nequations + 1;
    struct trli_multistep *m = sim->multistep = trli_model_keep(sim->model, sizeof *m);
    trl_err err = TRL_OK;
    if (!m) return sim->model->ir.err;
    *m = (struct trli_multistep){.sim = sim,
                                 .unknown = trli_model_keep(sim->model, n * sizeof(int)),
                                 .y = trli_model_keep(sim->model, n * sizeof(int)),
                                 .at = trli_model_keep(sim->model, n * sizeof(int)),
                                 .rate = trli_model_keep(sim->model, n * sizeof(int)),
                                 .count = trli_model_keep(sim->model, n * sizeof(int)),
                                 .gamma = trli_model_add_scalar(sim->model, 0),
                                 .time_scalar = trli_model_add_scalar(sim->model, 0)};
    TRL_TRY(sim->model->ir.err);
    TRL_TRY(trli_multistep_check_rates(sim));
    sim->stage_time[0] = TRLI_SCALAR_STEP_TIME;
    sim->stage_time[1] = trli_model_add_scalar(sim->model, 0);
    for (int v = 0; v < sim->nequations; ++v) {
        m->at[v] = sim->equation[v].next;
        if (sim->equation[v].solve) continue;
        const int k = m->n++;
        m->unknown[k] = v;
        m->y[k] = m->at[v];
        TRL_TRY(
            trli_add_beside(sim, v, trli_model_name(sim->model, "%s:rate", sim->equation[v].deck->name), &m->rate[k]));
        sim->model->field[m->rate[k]].keeps_planes = true; /* which are 0 */
    }
    trli_solving_note_stage(sim, 0, m->at);
    TRL_TRY(compile_rates(m));
    TRL_TRY(compile_points(m));
    TRL_TRY(compile_finish(m));
    if (sim->integrator->stiff) TRL_TRY(add_solver(m));
done:
    return err;
}

void trli_multistep_equalise(trl_simulation *sim)
{
    const struct trli_multistep *m = sim->multistep;
    if (m && m->solver) trli_solver_equalise(m->solver);
    if (m && m->products) trli_solved_products_equalise(m->products);
}

/* ---- running ---- */

static trl_err make_room(struct trli_multistep *m)
{
    trl_simulation *sim = m->sim;
    const bool coupled = m->solver && trli_solver_has_coupling(m->solver);
    const bool diagonal = m->solver && !coupled && trli_solver_has_diagonal(m->solver);
    trl_err err = TRL_OK;
    TRL_TRY(trli_packing_create(sim, m->n, m->unknown, &m->packing));
    const int64_t points = trli_packing_begin(&m->packing, 1);
    const size_t bytes = sizeof(double) * (size_t)(trli_packing_size(&m->packing) + 1);
    if (diagonal) TRL_TRY(trl_memory_alloc(sim->ctx, bytes, "the inverse of a diagonal", &m->inverse_memory));
    m->inverse = m->inverse_memory;
    if (coupled) err = trli_point_blocks_create(sim->ctx, m->packing.loop, m->n, points, &m->blocks);
done:
    return err;
}

trl_err trli_multistep_begin(trl_simulation *sim)
{
    struct trli_multistep *m = sim->multistep;
    if (!m) return TRL_OK;
    for (int k = 0; k < m->n; ++k) trli_clear_field(sim, m->rate[k]);
    if (m->solver) trli_solver_clear(m->solver);
    if (m->products) trli_solved_products_clear(m->products);
    return make_room(m);
}

void trli_multistep_destroy(trl_simulation *sim)
{
    struct trli_multistep *m = sim->multistep;
    sim->multistep = NULL;
    if (!m) return;
    trli_cvode_destroy(&m->cvode);
    trl_memory_free(sim->ctx, &m->inverse_memory);
    trli_point_blocks_destroy(&m->blocks);
    trli_packing_destroy(&m->packing);
    if (m->solver) trli_solver_destroy(&m->solver);
    trli_solved_products_destroy(m->products);
}

void trli_multistep_mark_fields(const trl_simulation *sim, bool *needed)
{
    const struct trli_multistep *m = sim->multistep;
    if (!m) return;
    if (m->solver) trli_solver_mark_fields(m->solver, needed);
    if (m->products) trli_solved_products_mark_fields(m->products, needed);
    for (int v = 0; v < sim->nequations; ++v) needed[m->at[v]] = true;
    for (int k = 0; k < m->n; ++k) needed[m->rate[k]] = true;
}

void trli_multistep_forget(trl_simulation *sim)
{
    if (sim->multistep) sim->multistep->begun = false;
}

void trl_simulation_begin_anew(trl_simulation *sim)
{
    trli_multistep_forget(sim);
}

static trl_err make_cvode(struct trli_multistep *m, double points)
{
    trl_simulation *sim = m->sim;
    const trl_time_entry *p = &sim->problem->time;
    const trl_solver_entry *settings = settings_of(m);
    trli_cvode_request request = {.ctx = sim->ctx,
                                  .loop = m->packing.loop,
                                  .n = trli_packing_size(&m->packing),
                                  .points = points,
                                  .stiff = m->solver != NULL,
                                  .bicgstab = settings->method == TRL_SOLVE_BICGSTAB,
                                  .subspace = settings->restart,
                                  .relative = p->relative,
                                  .absolute = p->absolute,
                                  .dt_min = p->dt_min,
                                  .dt_max = p->dt_max,
                                  .data = m,
                                  .rates = find_rates,
                                  .product = multiply};
    if (m->inverse || m->blocks.n) {
        request.prepare = prepare;
        request.precondition = precondition;
    }
    return trl_context_agree(sim->ctx, trli_cvode_create(&request, &m->cvode));
}

/* From the present state. */
static trl_err begin(struct trli_multistep *m, const trli_next_step *next)
{
    trl_simulation *sim = m->sim;
    int *state = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *state);
    double points = 0;
    trl_err err = state ? TRL_OK : trli_no_memory(sim->ctx, NULL, "for the state");
    TRL_TRY(trl_context_agree(sim->ctx, err));
    for (int k = 0; k < m->n; ++k) state[k] = sim->equation[m->unknown[k]].state;
    sim->frame->scalar[m->time_scalar] = next->from;
    TRL_TRY(trli_run_checked(sim, m->points, next->number, next->from, false));
    for (int k = 0; k < m->n; ++k) points += sim->frame->scalar[m->count[k]];
    if (!m->cvode) TRL_TRY(make_cvode(m, fmax(points, 1)));
    TRL_TRY(trli_pack(&m->packing, state, trli_cvode_values(m->cvode)));
    const bool first = next->number == 1 && sim->problem->time.dt_initial > 0;
    err = trl_context_agree(sim->ctx, trli_cvode_begin(m->cvode, next->from, first ? next->dt : 0));
    m->begun = err == TRL_OK;
done:
    trli_free(state);
    return err;
}

static trl_err fail_step(const trl_simulation *sim, const trli_next_step *next, const char *why)
{
    const trl_time_entry *p = &sim->problem->time;
    return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                    "%s does not get beyond step %" PRId64 ", t = %.10g: %s; use a larger tolerance, another method, "
                    "or look for a singularity there",
                    trl_method_name(p->method), next->number - 1, next->from, why);
}

static void note(struct trli_multistep *m)
{
    trli_cvode_stats stats;
    trli_cvode_get_stats(m->cvode, &stats);
    m->sim->control.nrejected = stats.rejected;
    m->sim->control.order = stats.order;
    if (!m->solver) return;
    trl_solve_stats *s = trli_solver_stats(m->solver);
    s->method =
        settings_of(m)->method == TRL_SOLVE_BICGSTAB ? "Newton's method and bicgstab" : "Newton's method and gmres";
    s->preconditioner = m->cycles     ? "multigrid"
                        : m->blocks.n ? "jacobi in blocks of unknowns"
                        : m->inverse  ? "jacobi"
                                      : "none";
    s->solves = stats.nonlinear;
    s->iterations = stats.linear;
    s->last_iterations = (int)stats.last_linear;
    s->last_newton = (int)stats.last_nonlinear;
}

trl_err trli_multistep_step(trl_simulation *sim, trli_next_step *next)
{
    struct trli_multistep *m = sim->multistep;
    const double landing = trli_next_landing(&sim->problem->time, next->from);
    const bool lands = isfinite(landing);
    const char *why = "";
    trl_err err = TRL_OK;
    m->next = *next;
    trli_set_times(sim, next);
    TRL_TRY(trli_solve_guess(sim, next->number, next->from));
    if (!m->begun) TRL_TRY(begin(m, next));
    err = trli_cvode_step(m->cvode, lands ? landing : next->from + 1e3 * next->dt, lands, &next->time, &sim->control.dt,
                          &why);
    if (err != TRL_OK) m->begun = false;
    if (err == TRL_ERR_NUMERICS && why[0] && m->unsolved) TRL_TRY(solve_at(m, m->time)); /* again, to hear why */
    if (err == TRL_ERR_NUMERICS && why[0]) err = trl_context_agree(sim->ctx, fail_step(sim, next, why));
    TRL_TRY(err);
    if (!(next->time > next->from)) next->time = landing; /* which is as good as reached */
    next->dt = next->time - next->from;
    ++sim->control.naccepted;
    trli_warn_of_unsolved(sim, next->dt);
    note(m);
    TRL_TRY(trli_unpack(&m->packing, trli_cvode_values(m->cvode), m->y));
    trli_set_times(sim, next);
    if (m->finish) TRL_TRY(trli_run_checked(sim, m->finish, next->number, next->time, false));
    err = solve_at(m, next->time);
done:
    return err;
}

trl_err trli_multistep_between(trl_simulation *sim, double time, const int *field)
{
    const struct trli_multistep *m = sim->multistep;
    int *to = trli_new(sim->ctx, (size_t)m->n + 1, sizeof *to);
    const double *values;
    trl_err err = to ? TRL_OK : trli_no_memory(sim->ctx, NULL, "for values between steps");
    TRL_TRY(trl_context_agree(sim->ctx, err));
    for (int k = 0; k < m->n; ++k) to[k] = field[m->unknown[k]];
    TRL_TRY(trli_cvode_between(m->cvode, time, &values));
    err = trli_unpack(&m->packing, values, to);
done:
    trli_free(to);
    return err;
}

const trli_solver *trli_multistep_solver(const trl_simulation *sim)
{
    return sim->multistep ? sim->multistep->solver : NULL;
}

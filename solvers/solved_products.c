/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* One solver has products alone, of F and all G with (v, w). With w = 0 its product has G_y v, the right-hand side for
 * w, which the systems' own solvers find one after the other, as each may read those before it. */
#include <string.h>

#include "krylov_impl.h"
#include "memory_impl.h"
#include "solved_products_impl.h"
#include "solving_impl.h"

struct trli_solved_products {
    trl_simulation *sim;
    trli_solver *solver; /* of the unknowns of F, and behind them of all systems */
    int first;           /* the number of the former */
    trli_program *clear; /* w = 0 */
    trli_program **take; /* [systems] w of a system */
};

/* Of what a solver of products is made, while it is compiled. */
typedef struct joint {
    const trli_solve_request *of;
    trl_simulation *sim;
    const int *variable; /* [n] */
} joint;

static trl_err make_instance(void *data, trli_program *program, trli_instance **in, trli_instance **old)
{
    const joint *j = data;
    return j->of->instance(j->of->data, program, in, old);
}

static trl_err residual(void *data, trli_instance *in, int i, trli_ir_value *value)
{
    const joint *j = data;
    return i < j->of->n ? j->of->residual(j->of->data, in, i, value)
                        : trli_solving_residual(j->sim, in, j->variable[i], value);
}

static trl_err add_solver(trli_solved_products *p, const trli_solve_request *of, const int *solved)
{
    trl_simulation *sim = p->sim;
    const struct trli_solving *so = sim->solving;
    trl_solver_entry settings = TRL_SOLVER_DEFAULTS;
    int *variable = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *variable);
    int *field = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *field), n = of->n;
    trl_err err = TRL_OK;
    if (!variable || !field) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for products"));
    settings.preconditioner = TRL_PRECONDITIONER_NONE;
    memcpy(variable, of->variable, (size_t)n * sizeof *variable);
    memcpy(field, of->field, (size_t)n * sizeof *field);
    for (int k = 0; k < so->nsolvers; ++k)
        for (int i = 0; i < so->solver[k]->ask.n; ++i) {
            variable[n] = so->solver[k]->ask.variable[i];
            field[n] = solved[variable[n]];
            ++n;
        }
    joint j = {of, sim, variable};
    err = trli_solver_add(sim,
                          &(trli_solve_request){.names = trli_model_name(sim->model, "rates of %s", of->names),
                                                .place = of->place,
                                                .settings = &settings,
                                                .n = n,
                                                .variable = variable,
                                                .field = field,
                                                .instance = make_instance,
                                                .residual = residual,
                                                .data = &j,
                                                .products_alone = true},
                          &p->solver);
done:
    trli_free(variable);
    trli_free(field);
    return err;
}

/* Append: field = value. */
static trl_err store(trli_program *program, int field, trli_ir_value value)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_add_kernel(program, program->model->field[field].name, 1, &field, &value, NULL));
    err = trli_program_add_root(program, field);
done:
    return err;
}

static trl_err compile(trli_solved_products *p)
{
    const struct trli_solving *so = p->sim->solving;
    trli_ir *ir = &p->sim->model->ir;
    const int *w = p->solver->d.now + p->first;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(p->solver, "no change", &p->clear));
    for (int i = p->first; i < p->solver->ask.n; ++i)
        TRL_TRY(store(p->clear, p->solver->d.now[i], trli_ir_constant(ir, 0)));
    for (int k = 0, at = p->first; k < so->nsolvers; ++k) {
        trli_solver *s = so->solver[k];
        TRL_TRY(trli_solver_add_given(s, p->solver->q.now + at));
        TRL_TRY(trli_solver_begin(s, "change", &p->take[k]));
        for (int i = 0; i < s->ask.n; ++i) TRL_TRY(store(p->take[k], *w++, trli_ir_field(ir, s->c.now[i])));
        at += s->ask.n;
    }
done:
    return err;
}

trl_err trli_solved_products_compile(trl_simulation *sim, const trli_solve_request *of, const int *solved,
                                     trli_solved_products **products)
{
    trli_solved_products *p = *products = trli_model_keep(sim->model, sizeof *p);
    trl_err err = TRL_OK;
    if (!p) return sim->model->ir.err;
    *p = (trli_solved_products){.sim = sim, .first = of->n};
    p->take = trli_model_keep(sim->model, (size_t)sim->solving->nsolvers * sizeof(trli_program *));
    TRL_TRY(sim->model->ir.err);
    TRL_TRY(add_solver(p, of, solved));
    err = compile(p);
done:
    return err;
}

void trli_solved_products_destroy(trli_solved_products *p)
{
    if (p) trli_solver_destroy(&p->solver);
}

void trli_solved_products_equalise(trli_solved_products *p)
{
    trli_solver_equalise(p->solver);
}

void trli_solved_products_clear(trli_solved_products *p)
{
    trli_solver_clear(p->solver);
}

void trli_solved_products_mark_fields(const trli_solved_products *p, bool *needed)
{
    trli_solver_mark_fields(p->solver, needed);
}

const int *trli_solved_products_direction(const trli_solved_products *p)
{
    return p->solver->d.now;
}

const int *trli_solved_products_result(const trli_solved_products *p)
{
    return p->solver->q.now;
}

/* Put the values where equations are solved; again: back. A linear system finds w in the place of its unknowns, which
 * are left where they are. */
static void swap_values(const trli_solved_products *p, const trli_solver *s)
{
    const struct trli_solving *so = p->sim->solving;
    for (int v = 0; v < p->sim->nequations; ++v) {
        bool own = false;
        for (int i = 0; i < s->ask.n; ++i) own |= s->ask.variable[i] == v;
        if (!own || !s->linear) trli_frame_swap(p->sim->frame, so->at[v], so->stage[v]);
    }
}

trl_err trli_solved_products_multiply(trli_solved_products *p, trl_gidx step, double time)
{
    const double tolerance = 1e-4; /* what gmres wants of a step of Newton's method is less */
    const struct trli_solving *so = p->sim->solving;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(p->solver, p->clear));
    for (int k = 0; k < so->nsolvers; ++k) {
        TRL_TRY(trli_solver_multiply(p->solver, step, time));
        swap_values(p, so->solver[k]);
        err = trli_solver_run_given(so->solver[k], tolerance, step, time);
        swap_values(p, so->solver[k]);
        TRL_TRY(err);
        TRL_TRY(trli_solver_program(so->solver[k], p->take[k]));
    }
    err = trli_solver_multiply(p->solver, step, time);
done:
    return err;
}

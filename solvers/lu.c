/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solutions by sparse factors of the whole matrix, which each rank has for itself: what no iteration solves, as long as
 * there is room for it. What rounding leaves is solved for again. */
#include "lu_impl.h"

#include <math.h>

#include "context_impl.h"
#include "factors_impl.h"
#include "memory_impl.h"
#include "solve_vectors_impl.h"

typedef struct lu {
    trli_program *begin, *update;
    int first_rr, rr;
    trli_matrix *matrix;
    trli_factors *factors;
    double *values;  /* [unknowns of all ranks] */
    int64_t made;    /* the number of the diagonal that factors are of; 0: there are none */
    const char *why; /* there are none */
} lu;

/* Where auto takes it: of so many unknowns, whose factors take so many operations, about a minute's. */
enum { UNKNOWNS_MOST = 400000 };
static const double operations_most = 2e10;

const char *trli_lu_missing(const trli_solver *s)
{
    if (!trli_factors_library()) return "this build has no SuiteSparse";
    if (trli_matrix_unknowns(s) == INT32_MAX) return "it has more unknowns than a matrix here can have";
    if (s->reduces) return "its equations read sums over all points";
    return NULL;
}

bool trli_lu_may_help(const trli_solver *s)
{
    return s->settings.method == TRL_SOLVE_AUTO && s->settings.preconditioner == TRL_PRECONDITIONER_AUTO &&
           !trli_lu_missing(s) && trli_matrix_unknowns(s) <= UNKNOWNS_MOST;
}

trl_err trli_lu_impossible(const trli_solver *s, const char *why)
{
    return trl_fail(s->sim->ctx, TRL_ERR_INPUT, &s->settings.place,
                    "'%s' cannot be solved by factors, because %s: use another method, under 'solvers'", s->ask.names,
                    why);
}

static trl_err compile(trli_solver *s, trli_krylov **method)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_assignments w = {0};
    trl_err err = TRL_OK;
    lu *m = trli_model_keep(s->sim->model, sizeof *m);
    if (!m) return ir->err;
    *method = (trli_krylov *)m;
    TRL_TRY(trli_assignments_create(s, 2, &w));
    TRL_TRY(trli_solver_begin(s, "start of factors", &m->begin));
    TRL_TRY(trli_krylov_start(s, m->begin, &m->first_rr));
    TRL_TRY(trli_assignments_begin(&w, "step of factors", &m->update));
    TRL_TRY(trli_solver_product_with(s, m->update));
    for (int i = 0; i < s->ask.n; ++i) {
        trli_assignments_add(
            &w, s->c.next, i,
            trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, s->c.now[i]), trli_ir_field(ir, s->d.now[i])));
        w.a[i] = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, s->r.now[i]), trli_ir_field(ir, s->q.now[i]));
        trli_assignments_add(&w, s->r.next, i, w.a[i]);
    }
    TRL_TRY(trli_assignments_store(&w));
    trli_solver_read(s, s->r.next, w.a);
    err = trli_solver_dot(s, m->update, "r.r", w.a, w.a, &m->rr);
done:
    trli_assignments_free(&w);
    return err;
}

/* The factors of the present Jacobian, or why there are none. */
static trl_err prepare(trli_solver *s, lu *m)
{
    const double operations = s->settings.method == TRL_SOLVE_LU ? INFINITY : operations_most;
    trl_context *ctx = s->sim->ctx;
    trli_columns columns;
    trl_err err = TRL_OK;
    if (m->made == s->ndiagonals) return TRL_OK;
    m->made = 0;
    if (!m->matrix) TRL_TRY(trli_matrix_create(s, &m->matrix));
    if (!m->values) m->values = trli_new(ctx, (size_t)trli_matrix_unknowns(s) + (size_t)s->ask.n, sizeof *m->values);
    TRL_TRY(trl_context_agree(ctx, m->values ? TRL_OK : trli_no_memory(ctx, NULL, "for a matrix")));
    TRL_TRY(trli_matrix_find(m->matrix, &columns, &m->why));
    if (!m->why) err = trli_factors_make(ctx, &columns, operations, &m->factors, &m->why);
    TRL_TRY(trl_context_agree(ctx, err));
    m->made = s->ndiagonals;
done:
    return err;
}

/* d = what the matrix makes r from. */
static trl_err solve(trli_solver *s, lu *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_matrix_gather(m->matrix, s->r.now, m->values));
    trli_factors_solve(m->factors, m->values);
    err = trli_matrix_scatter(m->matrix, m->values, s->d.now);
done:
    return err;
}

static trl_err run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                   bool *broken)
{
    const double slow = 0.5;
    lu *m = (lu *)method;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    *norm = trli_solver_norm(s, trli_solver_scalar(s, m->first_rr));
    *broken = trli_krylov_lost(s, *norm);
    TRL_TRY(prepare(s, m));
    if (m->why && s->settings.method == TRL_SOLVE_LU) return trli_lu_impossible(s, m->why);
    *broken |= m->why != NULL;
    for (*iterations = 0; *iterations < most && !(*norm <= target) && !*broken; ++*iterations) {
        const double before = *norm;
        TRL_TRY(solve(s, m));
        TRL_TRY(trli_solver_program(s, m->update));
        trli_vector_swap(s, &s->c);
        trli_vector_swap(s, &s->r);
        *norm = trli_solver_norm(s, trli_solver_scalar(s, m->rr));
        *broken = trli_krylov_lost(s, *norm) || (!(*norm <= target) && !(*norm < slow * before));
    }
done:
    return err;
}

void trli_lu_free(trli_krylov *method)
{
    lu *m = (lu *)method;
    if (!m) return;
    trli_matrix_destroy(&m->matrix);
    trli_factors_destroy(&m->factors);
    trli_free(m->values);
}

const trli_krylov_type trli_krylov_lu = {.words = "sparse factors", .compile = compile, .run = run};

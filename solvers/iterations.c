/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "iterations_impl.h"

#include <string.h>

#include "solve_vectors_impl.h"

/* A call ends after so many: kernels that are compiled meanwhile come with the next one, and a run can be stopped. */
enum { ROUNDS = 64 };

void trli_krylov_begin_run(trli_solver *s, trli_krylov_progress *p, double rr, double target, int most)
{
    *p = (trli_krylov_progress){.target = target, .norm = trli_solver_norm(s, rr), .most = most};
    p->broken = trli_krylov_lost(s, p->norm);
}

void trli_krylov_end_run(const trli_krylov_progress *p, int *iterations, double *norm, bool *broken)
{
    *iterations = p->done;
    *norm = p->norm;
    *broken = p->broken;
}

static trl_err after_part(void *data, trli_frame *frame, int64_t round, bool *again)
{
    const trli_iteration_part *part = data;
    (void)frame, (void)round, (void)again;
    (void)part->after(part->of->solver, part->of->method);
    return TRL_OK;
}

static trl_err after_iteration(void *data, trli_frame *frame, int64_t round, bool *again)
{
    trli_iterations *it = data;
    (void)frame;
    it->goes_on = it->part[it->nparts - 1].after(it->solver, it->method);
    *again = it->goes_on && round < ROUNDS;
    return TRL_OK;
}

/* What functions change, in `call`. */
static trl_err list_changes(const trli_solver *s, int n, const trli_vector *const *changes, int nscalars,
                            const int *scalar, trli_program_call *call)
{
    trli_model *model = s->sim->model;
    const size_t unknowns = (size_t)s->ask.n;
    int *field = trli_model_keep(model, 2 * (size_t)n * unknowns * sizeof *field);
    int *set = trli_model_keep(model, (size_t)nscalars * sizeof *set);
    if (!field || !set) return model->ir.err;
    for (int v = 0; v < n; ++v) {
        memcpy(field + 2 * (size_t)v * unknowns, changes[v]->now, unknowns * sizeof *field);
        memcpy(field + (2 * (size_t)v + 1) * unknowns, changes[v]->next, unknowns * sizeof *field);
    }
    memcpy(set, scalar, (size_t)nscalars * sizeof *set);
    *call = (trli_program_call){
        .rounds = ROUNDS, .nfields = 2 * n * s->ask.n, .field = field, .nscalars = nscalars, .scalar = set};
    return TRL_OK;
}

/* An iteration of several parts is a program that calls them. */
static trl_err compile_one(trli_iterations *it)
{
    trl_err err = TRL_OK;
    it->one = it->part[0].program;
    if (it->nparts == 1) return TRL_OK;
    TRL_TRY(trli_solver_begin(it->solver, "iteration", &it->one));
    for (int k = 0; k < it->nparts; ++k) {
        trli_iteration_part *part = &it->part[k];
        part->of = it;
        part->call = it->call;
        part->call.program = part->program;
        part->call.data = part;
        part->call.again = k + 1 < it->nparts ? after_part : NULL;
        TRL_TRY(trli_program_append_call(it->one, "part", &part->call));
    }
done:
    return err;
}

/* Where there are cycles of multigrid the methods that are programs alone are the second choice, not worth the memory
 * of a call. */
trl_err trli_iterations_compile(trli_iterations *it, const char *what, int n, const trli_vector *const *changes,
                                int nscalars, const int *scalar)
{
    trl_err err = TRL_OK;
    if (it->solver->sim->any_devices || it->solver->multigrid) return TRL_OK;
    TRL_TRY(list_changes(it->solver, n, changes, nscalars, scalar, &it->call));
    TRL_TRY(compile_one(it));
    it->call.program = it->one;
    it->call.data = it;
    it->call.again = after_iteration;
    TRL_TRY(trli_solver_begin(it->solver, what, &it->all));
    TRL_TRY(trli_program_append_call(it->all, "iteration", &it->call));
    it->solver->called = true;
done:
    return err;
}

static trl_err run_parts(trli_iterations *it)
{
    trl_err err = TRL_OK;
    for (int k = 0; k < it->nparts; ++k) {
        TRL_TRY(trli_solver_program(it->solver, it->part[k].program));
        it->goes_on = it->part[k].after(it->solver, it->method);
    }
done:
    return err;
}

trl_err trli_iterations_run(trli_iterations *it)
{
    trl_err err = TRL_OK;
    do {
        TRL_TRY(it->all ? trli_solver_program(it->solver, it->all) : run_parts(it));
    } while (it->goes_on);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Smoothing of saddle points (saddle.c): with the residuals r and s of A's equations and of constraints,
 *     t = F^-1 r,    p = S^-1 (s - C t),    u = t - F^-1 B p,
 * where S is the diagonal of the Schur complement. Chebyshev's polynomials are of this, in place of the diagonal. */
#include "diagonal_impl.h"
#include "grid_level_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "solve_vectors_impl.h"

/* A program in the making. */
typedef struct smoothing {
    trli_grid_level *l;
    trli_assignments store;
    trli_instance *in, *old;
    int *with;            /* [n] fields of products, -1: zero */
    trli_ir_value *value; /* [n] */
} smoothing;

static trl_err open_smoothing(trli_grid_level *l, const char *name, trli_program **program, smoothing *m)
{
    trli_solver *s = l->solver;
    const size_t n = (size_t)s->ask.n + 1;
    trl_err err = TRL_OK;
    *m = (smoothing){
        .l = l, .with = trli_new(s->sim->ctx, n, sizeof *m->with), .value = trli_new(s->sim->ctx, n, sizeof *m->value)};
    if (!m->with || !m->value) return trli_no_memory(s->sim->ctx, NULL, "for multigrid");
    TRL_TRY(trli_assignments_create(s, 1, &m->store));
    TRL_TRY(trli_assignments_begin(&m->store, name, program));
    TRL_TRY(s->ask.instance(s->ask.data, *program, &m->in, &m->old));
done:
    return err;
}

static void close_smoothing(smoothing *m)
{
    trli_instance_destroy(&m->in);
    trli_instance_destroy(&m->old);
    trli_assignments_free(&m->store);
    trli_free(m->with);
    trli_free(m->value);
}

/* Products with the parts of constraints, or of the others. */
static trl_err multiply(const trli_grid_level *l, trli_instance *in, bool constraints, int *with, trli_ir_value *value)
{
    const trli_solver *s = l->solver;
    for (int i = 0; i < s->ask.n; ++i) with[i] = s->constraint[i] == constraints ? l->part.now[i] : -1;
    return trli_grid_level_products(l, in, with, value);
}

/* t = F^-1 r, and r of constraints. */
static trl_err compile_others(trli_grid_level *l, bool from_zero, trli_program **program)
{
    const trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    smoothing m;
    trl_err err = TRL_OK;
    TRL_TRY(open_smoothing(l, from_zero ? "start of a saddle" : "first part of a saddle", program, &m));
    if (from_zero)
        trli_solver_read(s, l->b, m.value);
    else
        TRL_TRY(trli_grid_level_residuals(l, m.in, m.value));
    for (int i = 0; i < s->ask.n; ++i) {
        if (s->constraint[i])
            trli_assignments_add(&m.store, l->r.now, i, m.value[i]);
        else
            trli_assignments_add(&m.store, l->part.now, i,
                                 trli_ir_binary(ir, TRLI_OP_MUL, s->inverse_value[i], m.value[i]));
    }
    err = trli_assignments_store(&m.store);
done:
    close_smoothing(&m);
    return err;
}

/* p = S^-1 (r - C t) */
static trl_err compile_constraints(trli_grid_level *l)
{
    const trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    smoothing m;
    trl_err err = TRL_OK;
    TRL_TRY(open_smoothing(l, "second part of a saddle", &l->saddle.constraints, &m));
    TRL_TRY(multiply(l, m.in, false, m.with, m.value));
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value r = trli_ir_field(ir, l->r.now[i]);
        const trli_ir_value left = trli_ir_binary(ir, TRLI_OP_SUB, r, m.value[i]);
        if (!s->constraint[i]) continue;
        trli_assignments_add(&m.store, l->part.now, i, trli_ir_binary(ir, TRLI_OP_MUL, s->inverse_value[i], left));
    }
    err = trli_assignments_store(&m.store);
done:
    close_smoothing(&m);
    return err;
}

trl_err trli_saddle_compile(trli_grid_level *l)
{
    trl_err err = TRL_OK;
    if (!l->solver->constraint) return TRL_OK;
    TRL_TRY(compile_others(l, true, &l->saddle.from_zero));
    TRL_TRY(compile_others(l, false, &l->saddle.others));
    err = compile_constraints(l);
done:
    return err;
}

trl_err trli_saddle_change(trli_grid_level *l, trli_instance *in, trli_ir_value factor, trli_ir_value *value)
{
    const trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    int *with = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *with);
    trl_err err = TRL_OK;
    if (!with) return trli_no_memory(s->sim->ctx, NULL, "for multigrid");
    TRL_TRY(multiply(l, in, true, with, value));
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value part = trli_ir_field(ir, l->part.now[i]);
        const trli_ir_value less = trli_ir_binary(ir, TRLI_OP_MUL, s->inverse_value[i], value[i]);
        value[i] = s->constraint[i] ? part : trli_ir_binary(ir, TRLI_OP_SUB, part, less);
        value[i] = trli_ir_binary(ir, TRLI_OP_MUL, factor, value[i]);
    }
done:
    trli_free(with);
    return err;
}

trl_err trli_saddle_add_part(trli_grid_level *l)
{
    trl_err err = TRL_OK;
    if (!l->solver->constraint) return TRL_OK;
    TRL_TRY(trli_vector_add(l->solver, "mg part", false, &l->part));
    trli_vector_multiplies(l->solver, &l->part);
done:
    return err;
}

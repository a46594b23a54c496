/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Cycles of multigrid as a method, and as a preconditioner. Conjugate gradients are flexible with it (Notay 2000): on
 * grids whose conditions at sides are mixed a cycle is not quite symmetric. */
#include <math.h>

#include "krylov_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "solve_ahead_impl.h"

/* How far an iteration of conjugate gradients is: devices have nothing of it; all up to its direction; or all. */
typedef enum progress { NOTHING, DIRECTION, ALL } progress;

typedef struct cycles {
    trli_program *begin, *direction, *update;
    int first_rr, rr, rho, next_rho, dq;
    progress progress;             /* of the iteration that follows */
    bool due;                      /* the sums of `update` are to be taken */
    double factor[TRLI_PLACES][2]; /* of the residual: by the last first iteration there, and by a later one */
} cycles;

static trl_err compile_start(trli_solver *s, cycles *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of cycles", &m->begin));
    TRL_TRY(trli_krylov_start(s, m->begin, &m->first_rr));
done:
    return err;
}

/* Where c is x, nothing is to be done but to find the norm of r, which may be known. */
static trl_err start(trli_solver *s, const cycles *m, double *norm)
{
    const bool known = s->linear && s->r_norm >= 0;
    trl_err err = TRL_OK;
    if (known) *norm = s->r_norm;
    if (known) return TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    *norm = trli_solver_norm(s, trli_solver_scalar(s, m->first_rr));
done:
    return err;
}

static trl_err values_of(trli_solver *s, trli_ir_value **a, trli_ir_value **b)
{
    *a = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof **a);
    *b = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof **b);
    return *a && *b ? TRL_OK : trli_no_memory(s->sim->ctx, NULL, "for a solver");
}

/* to = a + factor * b */
static trl_err combine(trli_solver *s, trli_program *program, const int *to, const int *a, trli_op op,
                       trli_ir_value factor, const int *b, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    for (int i = 0; i < s->ask.n; ++i)
        value[i] = trli_ir_binary(ir, op, trli_ir_field(ir, a[i]),
                                  trli_ir_binary(ir, TRLI_OP_MUL, factor, trli_ir_field(ir, b[i])));
    return trli_solver_store(s, program, to, value);
}

/* c' = c + alpha*d, r' = r - alpha*q */
static trl_err compile_update(trli_solver *s, cycles *m, trli_ir_value alpha)
{
    trli_ir_value *a = NULL, *b = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(values_of(s, &a, &b));
    TRL_TRY(combine(s, m->update, s->c.next, s->c.now, TRLI_OP_ADD, alpha, s->d.now, a));
    TRL_TRY(combine(s, m->update, s->r.next, s->r.now, TRLI_OP_SUB, alpha, s->q.now, a));
    trli_solver_read(s, s->r.next, a);
    TRL_TRY(trli_solver_dot(s, m->update, "r.r", a, a, &m->rr));
done:
    trli_free(a);
    trli_free(b);
    return err;
}

/* ---- as a preconditioner ---- */

/* The next cycle begins from zero, whatever is in the solution's place. */
static void take_solution(const trli_solver *s)
{
    const trli_vector pair = {s->d.now, (int *)trli_multigrid_solution(s->multigrid)};
    trli_vector_swap(s, &pair);
}

trl_err trli_krylov_cycle(trli_solver *s, const int *of)
{
    trl_err err = TRL_OK;
    if (!s->cycles) return TRL_OK;
    TRL_TRY(trli_multigrid_cycle(s->multigrid, of));
    take_solution(s);
done:
    return err;
}

/* ---- as that of conjugate gradients ---- */

/* beta = (r.z - r_before.z)/rho, d' = z + beta*d; both products come with z, and rho is r.z of the iteration before. */
static trl_err compile_direction(trli_solver *s, cycles *m)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_ir_value *z = NULL, *unused = NULL;
    int before, scalar;
    trl_err err = TRL_OK;
    TRL_TRY(values_of(s, &z, &unused));
    TRL_TRY(trli_multigrid_compile_sums(s->multigrid, s->r.next, &m->next_rho, &before));
    TRL_TRY(trli_solver_begin(s, "direction of cg", &m->direction));
    trli_ir_value beta = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_scalar(ir, m->next_rho), trli_ir_scalar(ir, before));
    beta = trli_ir_binary(ir, TRLI_OP_DIV, beta, trli_ir_scalar(ir, m->rho));
    TRL_TRY(trli_program_scalar(m->direction, "beta", beta, &scalar));
    TRL_TRY(combine(s, m->direction, s->d.next, trli_multigrid_solution(s->multigrid), TRLI_OP_ADD,
                    trli_ir_scalar(ir, scalar), s->d.now, z));
done:
    trli_free(z);
    trli_free(unused);
    return err;
}

/* d.q */
static trl_err add_curvature(trli_solver *s, cycles *m)
{
    trli_ir_value *d = NULL, *q = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(values_of(s, &d, &q));
    trli_solver_read(s, s->d.now, d);
    trli_solver_read(s, s->q.now, q);
    TRL_TRY(trli_solver_dot(s, m->update, "d.q", d, q, &m->dq));
done:
    trli_free(d);
    trli_free(q);
    return err;
}

static trl_err cg_compile(trli_solver *s, trli_krylov **method)
{
    trli_ir *ir = &s->sim->model->ir;
    int alpha;
    trl_err err = TRL_OK;
    cycles *m = trli_model_keep(s->sim->model, sizeof *m);
    if (!m) return s->sim->model->ir.err;
    *method = (trli_krylov *)m;
    m->rho = trli_model_add_scalar(s->sim->model, 1);
    TRL_TRY(compile_start(s, m));
    TRL_TRY(compile_direction(s, m));
    TRL_TRY(trli_solver_begin(s, "step of cg", &m->update));
    TRL_TRY(trli_program_set_scalar(m->update, "rho", trli_ir_scalar(ir, m->next_rho), m->rho));
    TRL_TRY(trli_program_add_scalar_root(m->update, m->rho));
    TRL_TRY(trli_solver_product_with(s, m->update));
    TRL_TRY(add_curvature(s, m));
    TRL_TRY(trli_program_scalar(
        m->update, "alpha", trli_ir_binary(ir, TRLI_OP_DIV, trli_ir_scalar(ir, m->next_rho), trli_ir_scalar(ir, m->dq)),
        &alpha));
    TRL_TRY(compile_update(s, m, trli_ir_scalar(ir, alpha)));
done:
    return err;
}

static void swap_solution(const trli_solver *s)
{
    trli_vector_swap(s, &s->c);
    trli_vector_swap(s, &s->r);
}

/* d = the direction. The first one is what the cycle gives. */
static trl_err turn(trli_solver *s, const cycles *m, bool first)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_multigrid_cycle_with_sums(s->multigrid));
    if (first) {
        take_solution(s);
        return TRL_OK;
    }
    TRL_TRY(trli_solver_program(s, m->direction));
    trli_vector_swap(s, &s->d);
done:
    return err;
}

/* What an iteration has not done yet, up to its direction or the next c and r, whose sums are to be taken. */
static trl_err go_on(trli_solver *s, cycles *m, bool first, progress to)
{
    trl_err err = TRL_OK;
    if (m->progress < DIRECTION) TRL_TRY(turn(s, m, first));
    if (to == ALL) TRL_TRY(trli_solver_program_later(s, m->update, &m->due));
    m->progress = to;
done:
    return err;
}

/* It is one launch. If that fails by itself, all of the other ranks are to know it, so with several each program ends
 * alone. */
static trl_err iterate(trli_solver *s, cycles *m, bool first, progress to)
{
    const bool together = m->progress < DIRECTION && trl_context_ranks(s->sim->ctx) == 1;
    trl_err err = TRL_OK;
    if (!together) return go_on(s, m, first, to);
    TRL_TRY(trli_solver_begin_launch(s));
    err = go_on(s, m, first, to);
    const trl_err ended = trli_solver_end_launch(s);
    if (err == TRL_OK) err = ended;
done:
    return err;
}

static trl_err cg_begin(trli_solver *s, trli_krylov *method)
{
    cycles *m = (cycles *)method;
    m->progress = NOTHING;
    return iterate(s, m, true, ALL);
}

/* Whether an iteration with a residual, of which a device tells later, will leave too much, if it does what the last
 * one did in its place. A direction that is in vain costs more than to wait for the sums. */
static bool foresees_another(const trli_solver *s, const cycles *m, int iteration, double norm, double target)
{
    const double clearly = 1.25;
    return m->due && m->factor[s->place][iteration > 0] * norm > clearly * target;
}

static trl_err cg_run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                      bool *broken)
{
    cycles *m = (cycles *)method;
    trl_err err = TRL_OK;
    if (!s->ahead) m->progress = NOTHING;
    s->ahead = false;
    TRL_TRY(start(s, m, norm));
    *broken = trli_krylov_lost(s, *norm);
    for (*iterations = 0; *iterations < most && !(*norm <= target) && !*broken; ++*iterations) {
        const int k = *iterations;
        const double before = *norm;
        if (m->progress < ALL) TRL_TRY(iterate(s, m, k == 0, ALL));
        m->progress = NOTHING;
        swap_solution(s);
        if (k + 1 < most && foresees_another(s, m, k, before, target)) TRL_TRY(iterate(s, m, false, DIRECTION));
        TRL_TRY(trli_solver_take(s, m->update, m->due));
        const double rho = trli_solver_scalar(s, m->rho);
        *broken = !isfinite(rho / trli_solver_scalar(s, m->dq)) || rho == 0;
        if (*broken) swap_solution(s); /* back */
        if (*broken) break;
        *norm = trli_solver_norm(s, trli_solver_scalar(s, m->rr));
        *broken = trli_krylov_lost(s, *norm);
        m->factor[s->place][k > 0] = *norm / before;
    }
done:
    return err;
}

const trli_krylov_type trli_krylov_cg_cycles = {
    .words = "cg", .sums = 3, .compile = cg_compile, .begin = cg_begin, .run = cg_run};

/* ---- as a method ---- */

static trl_err cycles_compile(trli_solver *s, trli_krylov **method)
{
    trl_err err = TRL_OK;
    cycles *m = trli_model_keep(s->sim->model, sizeof *m);
    if (!m) return s->sim->model->ir.err;
    *method = (trli_krylov *)m;
    TRL_TRY(compile_start(s, m));
    TRL_TRY(trli_solver_begin(s, "step of multigrid", &m->update));
    TRL_TRY(compile_update(s, m, trli_ir_constant(&s->sim->model->ir, 1)));
done:
    return err;
}

/* In the norm of energy each cycle gains, in that of residuals not each one: where coefficients jump the first may
 * lose. What has lost much, or gained nothing for a while, has no prospects. */
static trl_err cycles_run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                          bool *broken)
{
    const double much = 100;
    const int patience = 8;
    cycles *m = (cycles *)method;
    int since = 0;
    trl_err err = TRL_OK;
    TRL_TRY(start(s, m, norm));
    *broken = trli_krylov_lost(s, *norm);
    double least = *norm;
    for (*iterations = 0; *iterations < most && !(*norm <= target) && !*broken; ++*iterations) {
        TRL_TRY(trli_krylov_cycle(s, s->r.now));
        TRL_TRY(trli_solver_program(s, s->apply));
        TRL_TRY(trli_solver_program(s, m->update));
        swap_solution(s);
        *norm = trli_solver_norm(s, trli_solver_scalar(s, m->rr));
        since = *norm < least ? 0 : since + 1;
        least = fmin(least, *norm);
        *broken = trli_krylov_lost(s, *norm) || !(*norm < much * least) || since > patience;
    }
done:
    return err;
}

const trli_krylov_type trli_krylov_cycles = {
    .words = "multigrid", .sums = 1, .compile = cycles_compile, .run = cycles_run};

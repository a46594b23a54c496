/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Conjugate gradients and stabilised biconjugate gradients. A run of a method alternates between the product with the
 * Jacobian and programs of its own; scalars of an iteration stay in the frame, where the next program reads them. */
#include <float.h>
#include <math.h>

#include "diagonal_impl.h"
#include "iterations_impl.h"
#include "lu_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"

static const trli_krylov_type *const types[TRL_SOLVE_METHODS] = {[TRL_SOLVE_DIRECT] = &trli_krylov_direct,
                                                                 [TRL_SOLVE_MULTIGRID] = &trli_krylov_cycles,
                                                                 [TRL_SOLVE_CG] = &trli_krylov_cg,
                                                                 [TRL_SOLVE_PIPELINED_CG] = &trli_krylov_pipelined,
                                                                 [TRL_SOLVE_BICGSTAB] = &trli_krylov_bicgstab,
                                                                 [TRL_SOLVE_GMRES] = &trli_krylov_gmres,
                                                                 [TRL_SOLVE_LU] = &trli_krylov_lu};

/* Of cg with cycles. */
static const trli_krylov_type *type_with_cycles(const trli_solver *s)
{
    return s->settings.single_reduction ? &trli_krylov_single_cg_cycles : &trli_krylov_cg_cycles;
}

static const trli_krylov_type *type_alone(const trli_solver *s, int method)
{
    if (s->settings.single_reduction && method == TRL_SOLVE_CG) return &trli_krylov_single_cg;
    if (s->settings.single_reduction && method == TRL_SOLVE_BICGSTAB) return &trli_krylov_single_bicgstab;
    return types[method];
}

const trli_krylov_type *trli_krylov_of(const trli_solver *s, trl_solve_method method)
{
    return method == TRL_SOLVE_CG && s->cycles ? type_with_cycles(s) : type_alone(s, (int)method);
}

trli_krylov *trli_krylov_made(const trli_solver *s, const trli_krylov_type *type)
{
    return type == type_with_cycles(s) ? s->made_cg_cycles : s->made[s->method];
}

trl_err trli_krylov_compile(trli_solver *s)
{
    const trl_solve_method wanted = s->settings.method;
    const bool doubtful = wanted == TRL_SOLVE_MULTIGRID && (s->coupled || trli_solver_has_gaps(s));
    trl_err err = TRL_OK;
    for (int m = 0; m < TRL_SOLVE_METHODS; ++m) {
        bool automatic = (wanted == TRL_SOLVE_AUTO && (m == TRL_SOLVE_CG || m == TRL_SOLVE_BICGSTAB)) ||
                         (doubtful && m == TRL_SOLVE_BICGSTAB);
        const trli_krylov_type *type = type_alone(s, m);
        if (m == TRL_SOLVE_LU) automatic = trli_lu_may_help(s);
        if (type && type->compile && (automatic || m == (int)wanted)) TRL_TRY(type->compile(s, &s->made[m]));
    }
    if (!s->multigrid) goto done;
    if (s->made[TRL_SOLVE_CG]) TRL_TRY(type_with_cycles(s)->compile(s, &s->made_cg_cycles));
done:
    return err;
}

/* A block's row times r. */
static trli_ir_value block_times(const trli_solver *s, int i, const trli_ir_value *r)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_ir_value sum = TRLI_NO_VALUE;
    for (int j = 0; j < s->ask.n; ++j) {
        const trli_ir_value entry = s->block_value[i * s->ask.n + j];
        if (i != j && (trli_ir_is_zero(ir, entry) || trli_ir_is_zero(ir, r[j]))) continue;
        const trli_ir_value part = trli_ir_binary(ir, TRLI_OP_MUL, entry, r[j]);
        sum = sum < 0 ? part : trli_ir_binary(ir, TRLI_OP_ADD, sum, part);
    }
    return sum;
}

static void use_blocks(const trli_solver *s, const trli_ir_value *r, trli_ir_value *z)
{
    for (int i = 0; i < s->ask.n; ++i) z[i] = TRLI_NO_VALUE;
    trli_solver_use_factors(s, r, z);
    for (int i = 0; i < s->ask.n; ++i)
        if (z[i] < 0) z[i] = block_times(s, i, r);
}

void trli_krylov_precondition(const trli_solver *s, const trli_ir_value *r, trli_ir_value *z)
{
    trli_ir *ir = &s->sim->model->ir;
    if (s->block_value) {
        use_blocks(s, r, z);
        return;
    }
    for (int i = 0; i < s->ask.n; ++i)
        z[i] = s->inverse_value[i] < 0 ? r[i] : trli_ir_binary(ir, TRLI_OP_MUL, s->inverse_value[i], r[i]);
}

void trli_krylov_relax(const trli_solver *s, trli_ir_value factor, const trli_ir_value *r, trli_ir_value *z)
{
    trli_ir *ir = &s->sim->model->ir;
    if (s->block_value) use_blocks(s, r, z);
    for (int i = 0; i < s->ask.n; ++i)
        z[i] = s->block_value ? trli_ir_binary(ir, TRLI_OP_MUL, factor, z[i])
                              : trli_ir_binary(ir, TRLI_OP_MUL,
                                               trli_ir_binary(ir, TRLI_OP_MUL, factor, s->inverse_value[i]), r[i]);
}

trl_err trli_krylov_start(trli_solver *s, trli_program *program, int *rr)
{
    trli_ir_value *value = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *value);
    trl_err err = TRL_OK;
    if (!value) return trli_no_memory(s->sim->ctx, NULL, "for a solver");
    trli_solver_read(s, s->r.now, value);
    TRL_TRY(trli_solver_dot(s, program, "r.r", value, value, rr));
    for (int i = 0; i < s->ask.n; ++i) value[i] = trli_ir_constant(&s->sim->model->ir, 0);
    if (!s->linear) TRL_TRY(trli_solver_store(s, program, s->c.next, value));
done:
    trli_free(value);
    return err;
}

void trli_krylov_started(const trli_solver *s)
{
    if (!s->linear) trli_vector_swap(s, &s->c);
}

bool trli_krylov_lost(trli_solver *s, double norm)
{
    s->least = fmin(s->least, norm);
    return !(DBL_EPSILON * norm <= s->least);
}

/* ---- what both are made of ---- */

/* Values of vectors while a program is made. */
typedef struct work {
    trli_solver *s;
    trli_ir *ir;
    trli_program *program;
    trli_ir_value *a, *b, *z;
} work;

static trl_err open_work(trli_solver *s, work *w)
{
    const size_t n = (size_t)s->ask.n + 1;
    *w = (work){.s = s, .ir = &s->sim->model->ir};
    w->a = trli_new(s->sim->ctx, n, sizeof *w->a);
    w->b = trli_new(s->sim->ctx, n, sizeof *w->b);
    w->z = trli_new(s->sim->ctx, n, sizeof *w->z);
    return w->a && w->b && w->z ? TRL_OK : trli_no_memory(s->sim->ctx, NULL, "for a solver");
}

static void close_work(work *w)
{
    trli_free(w->a);
    trli_free(w->b);
    trli_free(w->z);
}

/* to = a + factor * b */
static trl_err combine(work *w, const int *to, const int *a, trli_op op, trli_ir_value factor, const int *b)
{
    trli_ir *ir = w->ir;
    for (int i = 0; i < w->s->ask.n; ++i)
        w->a[i] = trli_ir_binary(ir, op, trli_ir_field(ir, a[i]),
                                 trli_ir_binary(ir, TRLI_OP_MUL, factor, trli_ir_field(ir, b[i])));
    return trli_solver_store(w->s, w->program, to, w->a);
}

static trl_err dot(work *w, const char *label, const int *a, const int *b, int *scalar)
{
    trli_solver_read(w->s, a, w->a);
    trli_solver_read(w->s, b, w->b);
    return trli_solver_dot(w->s, w->program, label, w->a, w->b, scalar);
}

/* to = what the preconditioner makes of a vector */
static trl_err preconditioned(work *w, const int *to, const int *of)
{
    trli_solver_read(w->s, of, w->a);
    trli_krylov_precondition(w->s, w->a, w->z);
    return trli_solver_store(w->s, w->program, to, w->z);
}

/* *value = numerator/denominator, a scalar of the program. */
static trl_err quotient(work *w, const char *label, trli_ir_value numerator, trli_ir_value denominator, int *scalar,
                        trli_ir_value *value)
{
    trl_err err =
        trli_program_scalar(w->program, label, trli_ir_binary(w->ir, TRLI_OP_DIV, numerator, denominator), scalar);
    if (err == TRL_OK) err = trli_program_add_scalar_root(w->program, *scalar);
    if (err == TRL_OK) *value = trli_ir_scalar(w->ir, *scalar);
    return err;
}

static void swap_all(const trli_solver *s)
{
    trli_vector_swap(s, &s->c);
    trli_vector_swap(s, &s->r);
    trli_vector_swap(s, &s->d);
}

/* ---- conjugate gradients ---- */

typedef struct cg {
    trli_program *begin, *update;
    int rho, dq, alpha, first_rho, next_rho, first_rr, rr;
    trli_iterations iterations;
    trli_krylov_progress run;
    double sign; /* of the last alpha */
} cg;

static trl_err compile_begin(work *w, cg *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of cg", &m->begin));
    w->program = m->begin;
    TRL_TRY(trli_krylov_start(s, m->begin, &m->first_rr));
    TRL_TRY(preconditioned(w, s->d.next, s->r.now));
    TRL_TRY(dot(w, "r.z", s->r.now, s->d.next, &m->first_rho));
done:
    return err;
}

static trl_err compile_update(work *w, cg *m)
{
    trli_solver *s = w->s;
    trli_ir *ir = w->ir;
    trli_ir_value alpha, beta;
    int scalar;
    trl_err err = TRL_OK;
    m->rho = trli_model_add_scalar(s->sim->model, 0);
    TRL_TRY(trli_solver_begin(s, "step of cg", &m->update));
    w->program = m->update;
    TRL_TRY(trli_solver_product_with(s, m->update));
    TRL_TRY(dot(w, "d.q", s->d.now, s->q.now, &m->dq));
    TRL_TRY(quotient(w, "alpha", trli_ir_scalar(ir, m->rho), trli_ir_scalar(ir, m->dq), &m->alpha, &alpha));
    TRL_TRY(combine(w, s->c.next, s->c.now, TRLI_OP_ADD, alpha, s->d.now));
    TRL_TRY(combine(w, s->r.next, s->r.now, TRLI_OP_SUB, alpha, s->q.now));
    trli_solver_read(s, s->r.next, w->a);
    trli_krylov_precondition(s, w->a, w->z);
    TRL_TRY(trli_solver_dot(s, m->update, "r.z", w->a, w->z, &m->next_rho));
    TRL_TRY(trli_solver_dot(s, m->update, "r.r", w->a, w->a, &m->rr));
    TRL_TRY(quotient(w, "beta", trli_ir_scalar(ir, m->next_rho), trli_ir_scalar(ir, m->rho), &scalar, &beta));
    for (int i = 0; i < s->ask.n; ++i)
        w->z[i] = trli_ir_binary(ir, TRLI_OP_ADD, w->z[i],
                                 trli_ir_binary(ir, TRLI_OP_MUL, beta, trli_ir_field(ir, s->d.now[i])));
    TRL_TRY(trli_solver_store(s, m->update, s->d.next, w->z));
done:
    return err;
}

static bool after_update(trli_solver *s, void *method)
{
    cg *m = method;
    /* Along all directions the quadratic form has one sign, or this is no minimum. */
    const double alpha = trli_solver_scalar(s, m->rho) / trli_solver_scalar(s, m->dq);
    m->run.broken = !isfinite(alpha) || alpha == 0 || alpha * m->sign < 0;
    if (m->run.broken) return false;
    m->sign = alpha;
    swap_all(s);
    trli_solver_set(s, m->rho, trli_solver_scalar(s, m->next_rho));
    m->run.norm = trli_solver_norm(s, trli_solver_scalar(s, m->rr));
    m->run.broken = trli_krylov_lost(s, m->run.norm);
    ++m->run.done;
    return trli_krylov_goes_on(&m->run);
}

static trl_err cg_compile(trli_solver *s, trli_krylov **method)
{
    const trli_vector *const changes[] = {&s->c, &s->r, &s->d};
    work w = {0};
    trl_err err = TRL_OK;
    cg *m = trli_model_keep(s->sim->model, sizeof *m);
    if (!m) return s->sim->model->ir.err;
    *method = (trli_krylov *)m;
    TRL_TRY(open_work(s, &w));
    TRL_TRY(compile_begin(&w, m));
    TRL_TRY(compile_update(&w, m));
    m->iterations = (trli_iterations){
        .solver = s, .method = m, .nparts = 1, .part = {{.program = m->update, .after = after_update}}};
    err = trli_iterations_compile(&m->iterations, "steps of cg", 3, changes, 1, &m->rho);
done:
    close_work(&w);
    return err;
}

static trl_err cg_run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                      bool *broken)
{
    cg *m = (cg *)method;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    trli_vector_swap(s, &s->d);
    trli_solver_set(s, m->rho, trli_solver_scalar(s, m->first_rho));
    m->sign = 0;
    trli_krylov_begin_run(s, &m->run, trli_solver_scalar(s, m->first_rr), target, most);
    if (trli_krylov_goes_on(&m->run)) err = trli_iterations_run(&m->iterations);
    trli_krylov_end_run(&m->run, iterations, norm, broken);
done:
    return err;
}

const trli_krylov_type trli_krylov_cg = {.words = "cg", .sums = 2, .compile = cg_compile, .run = cg_run};

/* ---- stabilised biconjugate gradients, preconditioned from the right ---- */

typedef struct bicgstab {
    trli_program *begin, *half, *full, *present;
    trli_vector shadow, p, v;                                      /* the first residual; the direction; its product */
    int rho, alpha, omega, next_rho, first_rr, present_rr, rq, qq; /* of the first half: -1 without cycles */
    int half_rr, qr;                                               /* of the second */
    trli_iterations iterations;                                    /* without cycles */
    trli_krylov_progress run;
    double square; /* r.r, as it follows from products, */
    bool looks;    /* which is so small that it has to be looked at */
} bicgstab;

static trl_err copy(work *w, const int *to, const int *from)
{
    trli_solver_read(w->s, from, w->a);
    return trli_solver_store(w->s, w->program, to, w->a);
}

static trl_err compile_first(work *w, bicgstab *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of bicgstab", &m->begin));
    w->program = m->begin;
    TRL_TRY(trli_krylov_start(s, m->begin, &m->first_rr));
    TRL_TRY(copy(w, m->shadow.now, s->r.now));
    TRL_TRY(copy(w, m->p.next, s->r.now));
    TRL_TRY(preconditioned(w, s->d.next, s->r.now));
done:
    return err;
}

static trl_err compile_half(work *w, bicgstab *m)
{
    trli_solver *s = w->s;
    trli_ir_value alpha;
    int scalar;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "first half of bicgstab", &m->half));
    w->program = m->half;
    if (!s->multigrid) TRL_TRY(trli_solver_product_with(s, m->half));
    TRL_TRY(dot(w, "shadow.q", m->shadow.now, s->q.now, &scalar));
    m->rq = m->qq = -1;
    if (s->multigrid) TRL_TRY(dot(w, "r.q", s->r.now, s->q.now, &m->rq));
    if (s->multigrid) TRL_TRY(dot(w, "q.q", s->q.now, s->q.now, &m->qq));
    TRL_TRY(quotient(w, "alpha", trli_ir_scalar(w->ir, m->rho), trli_ir_scalar(w->ir, scalar), &m->alpha, &alpha));
    TRL_TRY(copy(w, m->v.now, s->q.now));
    TRL_TRY(combine(w, s->c.next, s->c.now, TRLI_OP_ADD, alpha, s->d.now));
    TRL_TRY(combine(w, s->r.next, s->r.now, TRLI_OP_SUB, alpha, s->q.now));
    TRL_TRY(preconditioned(w, s->d.next, s->r.next));
    TRL_TRY(trli_solver_begin(s, "residual of bicgstab", &m->present));
    w->program = m->present;
    TRL_TRY(dot(w, "r.r", s->r.now, s->r.now, &m->present_rr));
done:
    return err;
}

static trl_err compile_full(work *w, bicgstab *m)
{
    trli_solver *s = w->s;
    trli_ir *ir = w->ir;
    trli_ir_value omega, beta;
    int qq, shadow_r, shadow_q, scalar;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "second half of bicgstab", &m->full));
    w->program = m->full;
    if (!s->multigrid) TRL_TRY(trli_solver_product_with(s, m->full));
    TRL_TRY(dot(w, "q.r", s->q.now, s->r.now, &m->qr));
    TRL_TRY(dot(w, "q.q", s->q.now, s->q.now, &qq));
    TRL_TRY(dot(w, "r.r", s->r.now, s->r.now, &m->half_rr));
    TRL_TRY(dot(w, "shadow.r", m->shadow.now, s->r.now, &shadow_r));
    TRL_TRY(dot(w, "shadow.q", m->shadow.now, s->q.now, &shadow_q));
    TRL_TRY(quotient(w, "omega", trli_ir_scalar(ir, m->qr), trli_ir_scalar(ir, qq), &m->omega, &omega));
    const trli_ir_value rho = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_scalar(ir, shadow_r),
                                             trli_ir_binary(ir, TRLI_OP_MUL, omega, trli_ir_scalar(ir, shadow_q)));
    TRL_TRY(trli_program_scalar(m->full, "rho", rho, &m->next_rho));
    TRL_TRY(trli_program_add_scalar_root(m->full, m->next_rho));
    TRL_TRY(combine(w, s->c.next, s->c.now, TRLI_OP_ADD, omega, s->d.now));
    TRL_TRY(combine(w, s->r.next, s->r.now, TRLI_OP_SUB, omega, s->q.now));
    const trli_ir_value up =
        trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, m->next_rho), trli_ir_scalar(ir, m->alpha));
    const trli_ir_value down = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, m->rho), omega);
    TRL_TRY(quotient(w, "beta", up, down, &scalar, &beta));
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value v = trli_ir_binary(ir, TRLI_OP_MUL, omega, trli_ir_field(ir, m->v.now[i]));
        const trli_ir_value p = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, m->p.now[i]), v);
        w->a[i] =
            trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, s->r.next[i]), trli_ir_binary(ir, TRLI_OP_MUL, beta, p));
    }
    TRL_TRY(trli_solver_store(s, m->full, m->p.next, w->a));
    TRL_TRY(preconditioned(w, s->d.next, m->p.next));
done:
    return err;
}

/* Whether a factor moves nothing, or all too far: c and r are left as they are then. */
static bool is_none(const trli_solver *s, int factor)
{
    const double value = trli_solver_scalar(s, factor);
    return value == 0 || !isfinite(value);
}

static bool after_half(trli_solver *s, void *method)
{
    bicgstab *m = method;
    m->run.broken = is_none(s, m->alpha);
    if (!m->run.broken) swap_all(s);
    return !m->run.broken;
}

static bool end_iteration(trli_solver *s, bicgstab *m)
{
    m->run.broken = trli_krylov_lost(s, m->run.norm) || trli_solver_scalar(s, m->next_rho) == 0;
    ++m->run.done;
    return trli_krylov_goes_on(&m->run);
}

/* The square of the present residual follows from that of the one before it and from products; what little is left of
 * that, or would be the last, has to be looked at. */
static void find_norm(trli_solver *s, bicgstab *m, double change)
{
    const double little = 1e-6, before = m->square;
    m->square += change;
    m->run.norm = trli_solver_norm(s, m->square);
    m->looks = !(m->square > little * before && m->run.norm > m->run.target);
}

static trl_err look(trli_solver *s, bicgstab *m)
{
    const trl_err err = trli_solver_program(s, m->present);
    if (err != TRL_OK) return err;
    m->square = trli_solver_scalar(s, m->present_rr);
    m->run.norm = trli_solver_norm(s, m->square);
    m->looks = false;
    return TRL_OK;
}

/* The residual of the first half comes with the products of the second, which is in vain if that was the last. */
static bool after_full(trli_solver *s, void *method)
{
    bicgstab *m = method;
    if (m->run.broken) return false;
    m->square = trli_solver_scalar(s, m->half_rr);
    m->run.norm = trli_solver_norm(s, m->square);
    m->run.broken = trli_krylov_lost(s, m->run.norm) || (m->run.norm > m->run.target && is_none(s, m->omega));
    if (m->run.norm <= m->run.target || m->run.broken) {
        ++m->run.done;
        return false;
    }
    swap_all(s);
    trli_vector_swap(s, &m->p);
    trli_solver_set(s, m->rho, trli_solver_scalar(s, m->next_rho));
    find_norm(s, m, -trli_solver_scalar(s, m->omega) * trli_solver_scalar(s, m->qr));
    return !m->looks && end_iteration(s, m);
}

static trl_err bicgstab_compile(trli_solver *s, trli_krylov **method)
{
    bicgstab *m = trli_model_keep(s->sim->model, sizeof *m);
    const trli_vector *const changes[] = {&s->c, &s->r, &s->d, &m->p};
    work w = {0};
    trl_err err = TRL_OK;
    if (!m) return s->sim->model->ir.err;
    *method = (trli_krylov *)m;
    TRL_TRY(trli_vector_add(s, "shadow", false, &m->shadow));
    TRL_TRY(trli_vector_add(s, "p", true, &m->p));
    if (s->multigrid) TRL_TRY(trli_multigrid_take(s->multigrid, &m->p));
    TRL_TRY(trli_vector_add(s, "v", false, &m->v));
    m->rho = trli_model_add_scalar(s->sim->model, 0);
    TRL_TRY(open_work(s, &w));
    TRL_TRY(compile_first(&w, m));
    TRL_TRY(compile_half(&w, m));
    TRL_TRY(compile_full(&w, m));
    m->iterations = (trli_iterations){.solver = s, .method = m, .nparts = 2};
    m->iterations.part[0] = (trli_iteration_part){.program = m->half, .after = after_half};
    m->iterations.part[1] = (trli_iteration_part){.program = m->full, .after = after_full};
    err = trli_iterations_compile(&m->iterations, "steps of bicgstab", 4, changes, 1, &m->rho);
done:
    close_work(&w);
    return err;
}

/* Whether cycles that auto took gain less than half of what `most` iterations would need: jacobi goes on. */
static bool is_in_vain(const trli_solver *s, int iterations, int most, double gained, double wanted)
{
    const int patience = 20;
    return s->cycles && !s->insists && s->settings.preconditioner == TRL_PRECONDITIONER_AUTO &&
           iterations >= patience && log(gained) > 0.5 * iterations / most * log(wanted);
}

/* An iteration with cycles, or that may have some: after the first half the residual is looked at, as another cycle
 * might be in vain. */
static trl_err iterate_with_cycles(trli_solver *s, bicgstab *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_krylov_cycle(s, m->p.now));
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(trli_solver_program(s, m->half));
    if (!after_half(s, m)) return TRL_OK;
    if (s->cycles) {
        const double alpha = trli_solver_scalar(s, m->alpha);
        find_norm(s, m, alpha * (alpha * trli_solver_scalar(s, m->qq) - 2 * trli_solver_scalar(s, m->rq)));
        if (m->looks) TRL_TRY(look(s, m));
        m->run.broken = trli_krylov_lost(s, m->run.norm);
        if (m->run.norm <= m->run.target || m->run.broken) {
            ++m->run.done;
            return TRL_OK;
        }
        TRL_TRY(trli_krylov_cycle(s, s->r.now));
    }
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(trli_solver_program(s, m->full));
    (void)after_full(s, m);
done:
    return err;
}

static trl_err bicgstab_run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                            bool *broken)
{
    bicgstab *m = (bicgstab *)method;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    trli_vector_swap(s, &s->d);
    trli_vector_swap(s, &m->p);
    m->looks = false;
    m->square = trli_solver_scalar(s, m->first_rr);
    trli_solver_set(s, m->rho, m->square);
    trli_krylov_begin_run(s, &m->run, m->square, target, most);
    const double start = m->run.norm;
    double least = start;
    while (trli_krylov_goes_on(&m->run)) {
        least = fmin(least, m->run.norm);
        if (is_in_vain(s, m->run.done, most, least / start, target / start)) break;
        TRL_TRY(s->multigrid ? iterate_with_cycles(s, m) : trli_iterations_run(&m->iterations));
        if (!m->looks) continue;
        TRL_TRY(look(s, m));
        (void)end_iteration(s, m);
    }
    trli_krylov_end_run(&m->run, iterations, norm, broken);
done:
    return err;
}

const trli_krylov_type trli_krylov_bicgstab = {
    .words = "bicgstab", .sums = 2, .compile = bicgstab_compile, .run = bicgstab_run};

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Conjugate gradients with one message of sums in an iteration (Chronopoulos & Gear 1989), preconditioned by M: with u
 * = M r and w = J u the sums r.u, w.u and r.r are found at once, and s = J p has the recurrence of the direction p.
 * Rounding errors add up in it, so s is computed anew every now and then. Where M is a cycle of multigrid, p is made
 * conjugate to the last direction by s.u, since a cycle need not be symmetric, and the next residual's norm follows
 * from other sums of the message, so that no cycle is in vain. */
#include <math.h>

#include "iterations_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "solve_vectors_impl.h"

enum {
    REPLACE_EVERY = 50,
    VECTORS = 5 /* that a program stores, at most */
};

/* Sums of an iteration; those from SU on with cycles alone. */
enum { RU, WU, RR, SU, RW, WW, RS, WS, SS, SUMS };

typedef struct single {
    bool cycles;
    trli_program *begin, *replace;
    trli_program *iteration;               /* all of one, but for cycles; of these: */
    trli_program *sums, *update, *present; /* w and sums; p, s, c and r; and r.r */
    trli_vector p, s, w;
    int alpha, beta, first_rr, present_rr;
    int first[SUMS], later[SUMS]; /* scalars: of `begin`, and of `iteration` or `sums` */
    /* Without cycles: */
    trli_iterations iterations;
    trli_krylov_progress run;
    double last_alpha, last_gamma; /* alpha and r.u of the last iteration */
    bool ready;                    /* for another one: its factors are set */
} single;

static trli_ir_value plus(trli_ir *ir, trli_ir_value a, trli_op op, trli_ir_value factor, trli_ir_value b)
{
    return trli_ir_binary(ir, op, a, trli_ir_binary(ir, TRLI_OP_MUL, factor, b));
}

/* r: of the present residual. */
static trl_err compile_sums(trli_assignments *w, const single *m, const int *r, const int *product, int *scalar)
{
    trli_solver *s = w->s;
    const int *const d = s->d.now, *const along = m->s.now;
    const struct {
        const char *label;
        const int *a, *b;
    } all[SUMS] = {[RU] = {"r.u", r, d},     [WU] = {"w.u", product, d},     [RR] = {"r.r", r, r},
                   [SU] = {"s.u", along, d}, [RW] = {"r.w", r, product},     [WW] = {"w.w", product, product},
                   [RS] = {"r.s", r, along}, [WS] = {"w.s", product, along}, [SS] = {"s.s", along, along}};
    trl_err err = TRL_OK;
    for (int i = 0; i < (m->cycles ? SUMS : SU); ++i) {
        trli_solver_read(s, all[i].a, w->a);
        trli_solver_read(s, all[i].b, w->b);
        TRL_TRY(trli_solver_dot(s, w->program, all[i].label, w->a, w->b, &scalar[i]));
    }
done:
    return err;
}

/* d = M r */
static void assign_preconditioned(trli_assignments *w, const int *of)
{
    trli_solver_read(w->s, of, w->a);
    trli_krylov_precondition(w->s, w->a, w->b);
    for (int i = 0; i < w->s->ask.n; ++i) trli_assignments_add(w, w->s->d.now, i, w->b[i]);
}

/* p = s = 0, c = 0 if it is not x, and what an iteration begins with: sums, or with cycles r.r alone. */
static trl_err compile_begin(trli_assignments *w, single *m)
{
    trli_solver *s = w->s;
    const trli_ir_value zero = trli_ir_constant(&s->sim->model->ir, 0);
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(w, "start of cg", &m->begin));
    for (int i = 0; i < s->ask.n; ++i) {
        trli_assignments_add(w, m->p.now, i, zero);
        trli_assignments_add(w, m->s.now, i, zero);
        if (!s->linear) trli_assignments_add(w, s->c.next, i, zero);
    }
    if (!m->cycles) assign_preconditioned(w, s->r.now);
    TRL_TRY(trli_assignments_store(w));
    if (m->cycles) {
        trli_solver_read(s, s->r.now, w->a);
        return trli_solver_dot(s, m->begin, "r.r", w->a, w->a, &m->first_rr);
    }
    TRL_TRY(trli_solver_product_of(s, m->begin, s->d.now, m->w.now));
    err = compile_sums(w, m, s->r.now, m->w.now, m->first);
done:
    return err;
}

/* p' = u + beta*p, s' = w + beta*s, c' = c + alpha*p', r' = r - alpha*s'. u: [n] values. */
static void assign_updates(trli_assignments *w, const single *m, const trli_ir_value *u, const int *product)
{
    trli_solver *s = w->s;
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value alpha = trli_ir_scalar(ir, m->alpha), beta = trli_ir_scalar(ir, m->beta);
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value p = plus(ir, u[i], TRLI_OP_ADD, beta, trli_ir_field(ir, m->p.now[i]));
        const trli_ir_value along =
            plus(ir, trli_ir_field(ir, product[i]), TRLI_OP_ADD, beta, trli_ir_field(ir, m->s.now[i]));
        trli_assignments_add(w, m->p.next, i, p);
        trli_assignments_add(w, m->s.next, i, along);
        trli_assignments_add(w, s->c.next, i, plus(ir, trli_ir_field(ir, s->c.now[i]), TRLI_OP_ADD, alpha, p));
        w->a[i] = plus(ir, trli_ir_field(ir, s->r.now[i]), TRLI_OP_SUB, alpha, along);
        trli_assignments_add(w, s->r.next, i, w->a[i]);
    }
}

static trl_err compile_iteration(trli_assignments *w, single *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(w, "iteration of cg", &m->iteration));
    trli_solver_read(s, s->r.now, w->a);
    trli_krylov_precondition(s, w->a, w->b);
    assign_updates(w, m, w->b, m->w.now);
    trli_krylov_precondition(s, w->a, w->b); /* of the new r */
    for (int i = 0; i < s->ask.n; ++i) trli_assignments_add(w, s->d.now, i, w->b[i]);
    TRL_TRY(trli_assignments_store(w));
    TRL_TRY(trli_solver_product_of(s, m->iteration, s->d.now, m->w.next));
    err = compile_sums(w, m, s->r.next, m->w.next, m->later);
done:
    return err;
}

static trl_err compile_with_cycles(trli_assignments *w, single *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(w, "products of cg", &m->sums));
    TRL_TRY(trli_solver_product_with(s, m->sums));
    TRL_TRY(compile_sums(w, m, s->r.now, s->q.now, m->later));
    TRL_TRY(trli_assignments_begin(w, "step of cg", &m->update));
    trli_solver_read(s, s->d.now, w->b);
    assign_updates(w, m, w->b, s->q.now);
    TRL_TRY(trli_assignments_store(w));
    TRL_TRY(trli_assignments_begin(w, "residual of cg", &m->present));
    trli_solver_read(s, s->r.now, w->a);
    err = trli_solver_dot(s, m->present, "r.r", w->a, w->a, &m->present_rr);
done:
    return err;
}

/* s = J p */
static trl_err compile_replacement(trli_assignments *w, single *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(w, "product of cg anew", &m->replace));
    for (int i = 0; i < s->ask.n; ++i)
        trli_assignments_add(w, s->d.now, i, trli_ir_field(&s->sim->model->ir, m->p.now[i]));
    TRL_TRY(trli_assignments_store(w));
    err = trli_solver_product_of(s, m->replace, s->d.now, m->s.now);
done:
    return err;
}

/* ---- iterations ---- */

static void swap_all(const trli_solver *s, const single *m)
{
    trli_vector_swap(s, &s->c);
    trli_vector_swap(s, &s->r);
    trli_vector_swap(s, &m->p);
    trli_vector_swap(s, &m->s);
    if (!m->cycles) trli_vector_swap(s, &m->w);
}

/* Set the factors of an iteration. Along all directions the quadratic form has one sign, or this is no minimum. */
static bool set_factors(trli_solver *s, const single *m, double alpha, double beta, double sign)
{
    trli_solver_set(s, m->alpha, alpha);
    trli_solver_set(s, m->beta, beta);
    return isfinite(alpha) && alpha != 0 && !(alpha * sign < 0);
}

static double sum_of(const trli_solver *s, const int *scalar, int which)
{
    return trli_solver_scalar(s, scalar[which]);
}

/* Look at the residual, and set the factors of another iteration. sum: the scalars that have the sums. */
static void make_ready(trli_solver *s, single *m, const int *sum)
{
    trli_krylov_progress *run = &m->run;
    const double gamma = sum_of(s, sum, RU), beta = run->done ? gamma / m->last_gamma : 0;
    run->norm = trli_solver_norm(s, sum_of(s, sum, RR));
    run->broken = trli_krylov_lost(s, run->norm);
    m->ready = trli_krylov_goes_on(run);
    if (!m->ready) return;
    const double along = run->done ? beta * gamma / m->last_alpha : 0, sign = run->done ? m->last_alpha : 0;
    m->last_alpha = gamma / (sum_of(s, sum, WU) - along);
    m->last_gamma = gamma;
    m->ready = set_factors(s, m, m->last_alpha, beta, sign);
    run->broken = !m->ready;
}

static bool replaces(const single *m)
{
    return m->run.done % REPLACE_EVERY == REPLACE_EVERY - 1;
}

static bool after_iteration(trli_solver *s, void *method)
{
    single *m = method;
    swap_all(s, m);
    ++m->run.done;
    make_ready(s, m, m->later);
    return m->ready && !replaces(m);
}

static trl_err compile(trli_solver *s, bool cycles, trli_krylov **method)
{
    single *m = trli_model_keep(s->sim->model, sizeof *m);
    if (!m) return s->sim->model->ir.err;
    const trli_vector *const changes[] = {&s->c, &s->r, &m->p, &m->s, &m->w};
    trli_assignments w = {0};
    trl_err err = TRL_OK;
    *method = (trli_krylov *)m;
    m->cycles = cycles;
    TRL_TRY(trli_vector_add(s, "p", true, &m->p));
    TRL_TRY(trli_vector_add(s, "s", true, &m->s));
    if (!cycles) TRL_TRY(trli_vector_add(s, "w", true, &m->w));
    m->alpha = trli_model_add_scalar(s->sim->model, 0);
    m->beta = trli_model_add_scalar(s->sim->model, 0);
    const int factors[] = {m->alpha, m->beta};
    TRL_TRY(trli_assignments_create(s, VECTORS, &w));
    TRL_TRY(compile_begin(&w, m));
    TRL_TRY(cycles ? compile_with_cycles(&w, m) : compile_iteration(&w, m));
    TRL_TRY(compile_replacement(&w, m));
    if (cycles) goto done;
    m->iterations = (trli_iterations){
        .solver = s, .method = m, .nparts = 1, .part = {{.program = m->iteration, .after = after_iteration}}};
    err = trli_iterations_compile(&m->iterations, "iterations of cg", 5, changes, 2, factors);
done:
    trli_assignments_free(&w);
    return err;
}

static trl_err compile_alone(trli_solver *s, trli_krylov **method)
{
    return compile(s, false, method);
}

static trl_err compile_cycles(trli_solver *s, trli_krylov **method)
{
    return compile(s, true, method);
}

/* ---- a run ---- */

static trl_err run_alone(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                         bool *broken)
{
    single *m = (single *)method;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    m->run = (trli_krylov_progress){.target = target, .most = most};
    make_ready(s, m, m->first);
    while (m->ready) {
        if (replaces(m)) TRL_TRY(trli_solver_program(s, m->replace));
        TRL_TRY(trli_iterations_run(&m->iterations));
    }
    trli_krylov_end_run(&m->run, iterations, norm, broken);
done:
    return err;
}

/* The norm of the present residual by its square, which follows from products before it. What little is left of these,
 * or would be the last, is looked at. */
static trl_err find_norm(trli_solver *s, const single *m, double before, double square, double target, double *norm)
{
    const double little = 1e-6;
    trl_err err = TRL_OK;
    *norm = trli_solver_norm(s, square);
    if (square > little * before && *norm > target) return TRL_OK;
    TRL_TRY(trli_solver_program(s, m->present));
    *norm = trli_solver_norm(s, trli_solver_scalar(s, m->present_rr));
done:
    return err;
}

/* The direction of an iteration has the curvature p.s = w.u + beta*s.u. */
static trl_err iterate(trli_solver *s, const single *m, double target, double *curvature, double *alpha,
                       int *iterations, double *norm, bool *broken)
{
    double sum[SUMS];
    trl_err err = TRL_OK;
    TRL_TRY(trli_krylov_cycle(s, s->r.now));
    TRL_TRY(trli_solver_program(s, m->sums));
    for (int i = 0; i < SUMS; ++i) sum[i] = sum_of(s, m->later, i);
    const double beta = -sum[SU] / *curvature, sign = *alpha;
    *curvature = sum[WU] + beta * sum[SU];
    *alpha = sum[RU] / *curvature;
    *broken = !set_factors(s, m, *alpha, beta, sign);
    if (*broken) return TRL_OK;
    TRL_TRY(trli_solver_program(s, m->update));
    swap_all(s, m);
    ++*iterations;
    const double r_s = sum[RW] + beta * sum[RS], s_s = sum[WW] + beta * (2 * sum[WS] + beta * sum[SS]);
    TRL_TRY(find_norm(s, m, sum[RR], sum[RR] + *alpha * (*alpha * s_s - 2 * r_s), target, norm));
    *broken = trli_krylov_lost(s, *norm);
done:
    return err;
}

static trl_err run_cycles(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                          bool *broken)
{
    const single *m = (const single *)method;
    double curvature = 1, alpha = 0;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    *norm = trli_solver_norm(s, trli_solver_scalar(s, m->first_rr));
    *broken = trli_krylov_lost(s, *norm);
    for (*iterations = 0; *iterations < most && !(*norm <= target) && !*broken;) {
        if (*iterations % REPLACE_EVERY == REPLACE_EVERY - 1) TRL_TRY(trli_solver_program(s, m->replace));
        TRL_TRY(iterate(s, m, target, &curvature, &alpha, iterations, norm, broken));
    }
done:
    return err;
}

const trli_krylov_type trli_krylov_single_cg = {
    .words = "single-reduction cg", .sums = 1, .compile = compile_alone, .run = run_alone};
const trli_krylov_type trli_krylov_single_cg_cycles = {
    .words = "single-reduction cg", .sums = 1, .compile = compile_cycles, .run = run_cycles};

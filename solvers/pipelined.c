/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Pipelined conjugate gradients (Ghysels & Vanroose 2014), preconditioned by M: an iteration is one program, whose one
 * message of sums travels beside the product. For that the products of vectors, u = r/M, w = J u, s = J p, v = s/M and
 * z = J v, are updated like these, so rounding errors add up in them: they are found anew every now and then. Where M
 * is the diagonal u and v are not stored. Where it is a cycle of multigrid, which comes before the program, iterations
 * are flexible as those of cycles.c are, and begin anew in place of that. */
#include <math.h>

#include "iterations_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "sides_impl.h"

enum { REPLACE_EVERY = 25 };

typedef struct pipelined {
    trli_program *begin, *zero, *iteration;
    trli_program *load, *take_s, *take_z, *take_w; /* d = p; s = q, d = s/M; z = q, d = r/M; w = q, d = w/M */
    bool cycles;
    trli_program *take_u; /* u = d, w = q */
    trli_vector p, s, z, w, u, v;
    int rr, first_rr;
    int gamma, delta, lost; /* r.u, w.u, and (r of the last iteration).u, which is zero where M is symmetric; and */
    int gamma_before, keep; /* that of the last iteration; 0 in the first one: there is none */
    int alpha, alpha_before;
    trli_iterations iterations;
    trli_krylov_progress run;
    double sign; /* of the last alpha */
    bool ready;  /* for another iteration */
} pipelined;

/* Values of vectors while a program is made. */
typedef struct work {
    trli_solver *s;
    trli_ir *ir;
    trli_ir_value *a, *b;
} work;

static trl_err open_work(trli_solver *s, work *w)
{
    const size_t n = (size_t)s->ask.n + 1;
    *w = (work){.s = s, .ir = &s->sim->model->ir};
    w->a = trli_new(s->sim->ctx, n, sizeof *w->a);
    w->b = trli_new(s->sim->ctx, n, sizeof *w->b);
    return w->a && w->b ? TRL_OK : trli_no_memory(s->sim->ctx, NULL, "for a solver");
}

static void close_work(work *w)
{
    trli_free(w->a);
    trli_free(w->b);
}

static trli_ir_value times(const work *w, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(w->ir, TRLI_OP_MUL, a, b);
}

static trli_ir_value plus(const work *w, trli_ir_value a, trli_op op, trli_ir_value factor, trli_ir_value b)
{
    return trli_ir_binary(w->ir, op, a, times(w, factor, b));
}

/* ---- outside of iterations ---- */

static trl_err compile_begin(work *w, pipelined *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of pipelined cg", &m->begin));
    TRL_TRY(trli_krylov_start(s, m->begin, &m->first_rr));
    trli_solver_read(s, s->r.now, w->a);
    trli_krylov_precondition(s, w->a, w->b);
    TRL_TRY(trli_solver_store(s, m->begin, s->d.next, w->b));
    TRL_TRY(trli_solver_begin(s, "directions of pipelined cg", &m->zero));
    for (int i = 0; i < s->ask.n; ++i) w->a[i] = trli_ir_constant(w->ir, 0);
    TRL_TRY(trli_solver_store(s, m->zero, m->p.now, w->a));
    TRL_TRY(trli_solver_store(s, m->zero, m->s.now, w->a));
    TRL_TRY(trli_solver_store(s, m->zero, m->z.now, w->a));
    if (!m->cycles) goto done;
    TRL_TRY(trli_solver_store(s, m->zero, m->v.now, w->a));
    err = trli_solver_store(s, m->zero, s->r.next, w->a); /* the residual before the first one */
done:
    return err;
}

/* to = the product q; d' = what the preconditioner makes of `of` */
static trl_err compile_taking(work *w, const char *name, trli_program **program, const int *to, const int *of)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, name, program));
    trli_solver_read(s, s->q.now, w->a);
    TRL_TRY(trli_solver_store(s, *program, to, w->a));
    trli_solver_read(s, of, w->a);
    trli_krylov_precondition(s, w->a, w->b);
    err = trli_solver_store(s, *program, s->d.next, w->b);
done:
    return err;
}

static trl_err compile_replacement(work *w, pipelined *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "direction of pipelined cg anew", &m->load));
    trli_solver_read(s, m->p.now, w->a);
    TRL_TRY(trli_solver_store(s, m->load, s->d.next, w->a));
    TRL_TRY(compile_taking(w, "s of pipelined cg", &m->take_s, m->s.now, s->q.now));
    TRL_TRY(compile_taking(w, "z of pipelined cg", &m->take_z, m->z.now, s->r.now));
    err = compile_taking(w, "w of pipelined cg", &m->take_w, m->w.now, s->q.now);
done:
    return err;
}

/* u = d, w = the product q */
static trl_err compile_anew(work *w, pipelined *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "u and w of pipelined cg", &m->take_u));
    trli_solver_read(s, s->d.now, w->a);
    TRL_TRY(trli_solver_store(s, m->take_u, m->u.now, w->a));
    trli_solver_read(s, s->q.now, w->a);
    err = trli_solver_store(s, m->take_u, m->w.now, w->a);
done:
    return err;
}

/* ---- an iteration ---- */

/* b = u */
static void read_preconditioned(work *w, const pipelined *m)
{
    if (m->cycles) {
        trli_solver_read(w->s, m->u.now, w->b);
        return;
    }
    trli_solver_read(w->s, w->s->r.now, w->a);
    trli_krylov_precondition(w->s, w->a, w->b);
}

static trl_err compile_sums(work *w, pipelined *m)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    read_preconditioned(w, m);
    trli_solver_read(s, s->r.now, w->a);
    TRL_TRY(trli_solver_dot(s, m->iteration, "r.u", w->a, w->b, &m->gamma));
    TRL_TRY(trli_solver_dot(s, m->iteration, "r.r", w->a, w->a, &m->rr));
    trli_solver_read(s, m->w.now, w->a);
    TRL_TRY(trli_solver_dot(s, m->iteration, "w.u", w->a, w->b, &m->delta));
    if (!m->cycles) goto done;
    trli_solver_read(s, s->r.next, w->a);
    err = trli_solver_dot(s, m->iteration, "r.u before", w->a, w->b, &m->lost);
done:
    return err;
}

/* gain = gamma, less what is lost, beta = keep*gain/gamma before, alpha = gamma/(delta - beta*gain/alpha before) */
static trl_err compile_factors(work *w, pipelined *m, trli_ir_value *alpha, trli_ir_value *beta)
{
    trli_ir *ir = w->ir;
    const trli_ir_value gamma = trli_ir_scalar(ir, m->gamma);
    const trli_ir_value gain = m->cycles ? trli_ir_binary(ir, TRLI_OP_SUB, gamma, trli_ir_scalar(ir, m->lost)) : gamma;
    int scalar;
    trl_err err = TRL_OK;
    *beta = trli_ir_binary(ir, TRLI_OP_DIV, gain, trli_ir_scalar(ir, m->gamma_before));
    TRL_TRY(trli_program_scalar(m->iteration, "beta", times(w, trli_ir_scalar(ir, m->keep), *beta), &scalar));
    *beta = trli_ir_scalar(ir, scalar);
    const trli_ir_value along = trli_ir_binary(ir, TRLI_OP_DIV, gain, trli_ir_scalar(ir, m->alpha_before));
    const trli_ir_value curvature = plus(w, trli_ir_scalar(ir, m->delta), TRLI_OP_SUB, *beta, along);
    TRL_TRY(trli_program_scalar(m->iteration, "alpha", trli_ir_binary(ir, TRLI_OP_DIV, gamma, curvature), &m->alpha));
    TRL_TRY(trli_program_add_scalar_root(m->iteration, m->alpha));
    *alpha = trli_ir_scalar(ir, m->alpha);
done:
    return err;
}

/* z' = q + beta*z, s' = w + beta*s, p' = u + beta*p, v' = d + beta*v */
static trl_err compile_directions(work *w, pipelined *m, trli_ir_value beta)
{
    trli_solver *s = w->s;
    trl_err err = TRL_OK;
    const struct {
        const trli_vector *v;
        const int *to; /* NULL: u */
    } along[] = {{&m->z, s->q.now}, {&m->s, m->w.now}, {&m->p, NULL}, {&m->v, s->d.now}};
    for (int k = 0; k < (m->cycles ? 4 : 3); ++k) {
        if (along[k].to)
            trli_solver_read(s, along[k].to, w->b);
        else
            read_preconditioned(w, m);
        for (int i = 0; i < s->ask.n; ++i)
            w->a[i] = plus(w, w->b[i], TRLI_OP_ADD, beta, trli_ir_field(w->ir, along[k].v->now[i]));
        TRL_TRY(trli_solver_store(s, m->iteration, along[k].v->next, w->a));
    }
done:
    return err;
}

/* c' = c + alpha*p', r' = r - alpha*s', w' = w - alpha*z', and u' = u - alpha*v' or d' = w'/M */
static trl_err compile_updates(work *w, pipelined *m, trli_ir_value alpha)
{
    trli_solver *s = w->s;
    trli_ir *ir = w->ir;
    trl_err err = TRL_OK;
    const struct {
        const trli_vector *v;
        const int *along;
        trli_op op;
    } step[] = {{&s->c, m->p.next, TRLI_OP_ADD},
                {&s->r, m->s.next, TRLI_OP_SUB},
                {&m->w, m->z.next, TRLI_OP_SUB},
                {&m->u, m->v.next, TRLI_OP_SUB}};
    for (int k = 0; k < (m->cycles ? 4 : 3); ++k) {
        for (int i = 0; i < s->ask.n; ++i)
            w->a[i] =
                plus(w, trli_ir_field(ir, step[k].v->now[i]), step[k].op, alpha, trli_ir_field(ir, step[k].along[i]));
        TRL_TRY(trli_solver_store(s, m->iteration, step[k].v->next, w->a));
    }
    if (m->cycles) goto done;
    trli_solver_read(s, m->w.next, w->a);
    trli_krylov_precondition(s, w->a, w->b);
    err = trli_solver_store(s, m->iteration, s->d.next, w->b);
done:
    return err;
}

/* ---- iterations ---- */

static void swap_all(const trli_solver *s, const pipelined *m)
{
    const trli_vector *const all[] = {&s->c, &s->r, &m->p, &m->s, &m->z, &m->w};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) trli_vector_swap(s, all[i]);
    trli_vector_swap(s, m->cycles ? &m->u : &s->d);
    if (m->cycles) trli_vector_swap(s, &m->v);
}

/* The sums of an iteration are those of the vectors before it, so the last one is not taken. */
static bool after_iteration(trli_solver *s, void *method)
{
    pipelined *m = method;
    const double alpha = trli_solver_scalar(s, m->alpha);
    m->run.norm = trli_solver_norm(s, trli_solver_scalar(s, m->rr));
    m->run.broken = trli_krylov_lost(s, m->run.norm);
    m->ready = trli_krylov_goes_on(&m->run);
    if (!m->ready) return false;
    /* Along all directions the quadratic form has one sign, or this is no minimum. */
    m->run.broken = !isfinite(alpha) || alpha == 0 || alpha * m->sign < 0;
    m->ready = !m->run.broken;
    if (!m->ready) return false;
    m->sign = alpha;
    swap_all(s, m);
    trli_solver_set(s, m->gamma_before, trli_solver_scalar(s, m->gamma));
    trli_solver_set(s, m->alpha_before, alpha);
    const bool anew = ++m->run.done % REPLACE_EVERY == 0;
    trli_solver_set(s, m->keep, !m->cycles || !anew);
    return !m->cycles && !anew;
}

static trl_err pipelined_compile(trli_solver *s, trli_krylov **method)
{
    pipelined *m = trli_model_keep(s->sim->model, sizeof *m);
    if (!m) return s->sim->model->ir.err;
    const trli_vector *const changes[] = {&s->c, &s->r, &s->d, &m->p, &m->s, &m->z, &m->w};
    work w = {0};
    trli_ir_value alpha, beta;
    trl_err err = TRL_OK;
    *method = (trli_krylov *)m;
    TRL_TRY(trli_vector_add(s, "p", true, &m->p));
    TRL_TRY(trli_vector_add(s, "s", true, &m->s));
    TRL_TRY(trli_vector_add(s, "z", true, &m->z));
    TRL_TRY(trli_vector_add(s, "w", true, &m->w));
    m->cycles = s->multigrid != NULL;
    if (m->cycles) TRL_TRY(trli_multigrid_take(s->multigrid, &m->w));
    if (m->cycles) TRL_TRY(trli_vector_add(s, "u", true, &m->u));
    if (m->cycles) TRL_TRY(trli_vector_add(s, "v", true, &m->v));
    m->gamma_before = trli_model_add_scalar(s->sim->model, 1);
    m->alpha_before = trli_model_add_scalar(s->sim->model, 1);
    m->keep = trli_model_add_scalar(s->sim->model, 0);
    TRL_TRY(open_work(s, &w));
    TRL_TRY(compile_begin(&w, m));
    TRL_TRY(m->cycles ? compile_anew(&w, m) : compile_replacement(&w, m));
    TRL_TRY(trli_solver_begin(s, "iteration of pipelined cg", &m->iteration));
    TRL_TRY(compile_sums(&w, m));
    TRL_TRY(trli_solver_product_with(s, m->iteration)); /* waits for nothing but its neighbours */
    TRL_TRY(compile_factors(&w, m, &alpha, &beta));
    TRL_TRY(compile_directions(&w, m, beta));
    TRL_TRY(compile_updates(&w, m, alpha));
    const int set[] = {m->gamma_before, m->alpha_before, m->keep};
    m->iterations = (trli_iterations){
        .solver = s, .method = m, .nparts = 1, .part = {{.program = m->iteration, .after = after_iteration}}};
    err = trli_iterations_compile(&m->iterations, "iterations of pipelined cg", 7, changes, 3, set);
done:
    close_work(&w);
    return err;
}

/* ---- a run ---- */

/* Apply the Jacobian to what the last program put in the place of d, and take the product. */
static trl_err take(trli_solver *s, trli_program *program)
{
    trl_err err = TRL_OK;
    trli_vector_swap(s, &s->d);
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(trli_solver_program(s, program));
done:
    return err;
}

/* The products of the present vectors. */
static trl_err replace(trli_solver *s, const pipelined *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->load));
    TRL_TRY(take(s, m->take_s));
    TRL_TRY(take(s, m->take_z));
    TRL_TRY(take(s, m->take_w));
    trli_vector_swap(s, &s->d);
done:
    return err;
}

/* From the present residual. */
static trl_err begin_with_cycle(trli_solver *s, const pipelined *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_krylov_cycle(s, s->r.now));
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(trli_solver_program(s, m->take_u));
done:
    return err;
}

static trl_err begin(trli_solver *s, const pipelined *m)
{
    trl_err err = TRL_OK;
    if (m->cycles) {
        TRL_TRY(begin_with_cycle(s, m));
    } else {
        TRL_TRY(take(s, m->take_w));
        trli_vector_swap(s, &s->d);
    }
    TRL_TRY(trli_solver_program(s, m->zero));
    trli_solver_set(s, m->gamma_before, 1);
    trli_solver_set(s, m->alpha_before, 1);
done:
    return err;
}

static trl_err pipelined_run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations,
                             double *norm, bool *broken)
{
    pipelined *m = (pipelined *)method;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    m->sign = 0;
    trli_krylov_begin_run(s, &m->run, trli_solver_scalar(s, m->first_rr), target, most);
    m->ready = !(m->run.norm <= target) && !m->run.broken;
    if (m->ready) TRL_TRY(begin(s, m));
    trli_solver_set(s, m->keep, 0);
    while (m->ready) {
        TRL_TRY(trli_krylov_cycle(s, m->w.now));
        TRL_TRY(trli_iterations_run(&m->iterations));
        if (m->ready && m->run.done % REPLACE_EVERY == 0) TRL_TRY(m->cycles ? begin_with_cycle(s, m) : replace(s, m));
    }
    trli_krylov_end_run(&m->run, iterations, norm, broken);
done:
    return err;
}

const trli_krylov_type trli_krylov_pipelined = {
    .words = "pipelined_cg", .sums = 1, .compile = pipelined_compile, .run = pipelined_run};

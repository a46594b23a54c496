/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Restarted generalised minimal residuals, preconditioned from the right, with modified Gram-Schmidt. Programs know
 * one vector of the basis, `b`: each vector takes its place there while it is needed. */
#include <math.h>

#include "krylov_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"

typedef struct gmres {
    trli_program *begin, *load, *first, *next, *length, *grow, *direction, *sum_first, *sum, *load_sum, *finish;
    trli_vector b, w, *basis; /* basis: [restart + 1] */
    int first_rr, rr, ww;
    int h[2];                             /* scalars: of `first` and `next` */
    int scale, factor;                    /* scalars: of a new vector of the basis; of b in a sum */
    double *matrix, *cosine, *sine, *rhs; /* of the small least-squares problem; matrix[column * (restart + 1) + row] */
} gmres;

static trl_err scaled(trli_solver *s, trli_program *program, const int *to, int factor, const int *from,
                      const int *plus, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    for (int i = 0; i < s->ask.n; ++i) {
        value[i] = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, factor), trli_ir_field(ir, from[i]));
        if (plus) value[i] = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, plus[i]), value[i]);
    }
    return trli_solver_store(s, program, to, value);
}

/* h = w.b; w' = w - h*b, of w = q at first. */
static trl_err compile_orthogonal(trli_solver *s, gmres *m, bool first, trli_ir_value *a, trli_ir_value *b)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_program **program = first ? &m->first : &m->next;
    const int *of = first ? s->q.now : m->w.now;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, first ? "first projection" : "projection", program));
    trli_solver_read(s, of, a);
    trli_solver_read(s, m->b.now, b);
    TRL_TRY(trli_solver_dot(s, *program, "w.b", a, b, &m->h[!first]));
    for (int i = 0; i < s->ask.n; ++i)
        a[i] = trli_ir_binary(ir, TRLI_OP_SUB, a[i],
                              trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, m->h[!first]), b[i]));
    TRL_TRY(trli_solver_store(s, *program, m->w.next, a));
done:
    return err;
}

/* d' = what the preconditioner makes of a vector */
static trl_err compile_load(trli_solver *s, const char *name, const int *from, trli_program **program, trli_ir_value *a,
                            trli_ir_value *z)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, name, program));
    trli_solver_read(s, from, a);
    trli_krylov_precondition(s, a, z);
    TRL_TRY(trli_solver_store(s, *program, s->d.next, z));
done:
    return err;
}

/* c' = c + d, r' = r - q */
static trl_err compile_finish(trli_solver *s, gmres *m, trli_ir_value *a, trli_ir_value *b)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "end of gmres", &m->finish));
    for (int i = 0; i < s->ask.n; ++i) {
        a[i] = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, s->c.now[i]), trli_ir_field(ir, s->d.now[i]));
        b[i] = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, s->r.now[i]), trli_ir_field(ir, s->q.now[i]));
    }
    TRL_TRY(trli_solver_store(s, m->finish, s->c.next, a));
    TRL_TRY(trli_solver_store(s, m->finish, s->r.next, b));
    trli_solver_read(s, s->r.next, a);
    TRL_TRY(trli_solver_dot(s, m->finish, "r.r", a, a, &m->rr));
done:
    return err;
}

static trl_err compile_programs(trli_solver *s, gmres *m, trli_ir_value *a, trli_ir_value *b)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of gmres", &m->begin));
    TRL_TRY(trli_krylov_start(s, m->begin, &m->first_rr));
    TRL_TRY(trli_solver_begin(s, "first vector", &m->length));
    TRL_TRY(scaled(s, m->length, m->b.now, m->scale, s->r.now, NULL, a));
    TRL_TRY(compile_load(s, "load", m->b.now, &m->load, a, b));
    TRL_TRY(compile_orthogonal(s, m, true, a, b));
    TRL_TRY(compile_orthogonal(s, m, false, a, b));
    TRL_TRY(trli_solver_begin(s, "length", &m->grow));
    trli_solver_read(s, m->w.now, a);
    TRL_TRY(trli_solver_dot(s, m->grow, "w.w", a, a, &m->ww));
    TRL_TRY(trli_solver_begin(s, "next vector", &m->direction));
    TRL_TRY(scaled(s, m->direction, m->b.now, m->scale, m->w.now, NULL, a));
    TRL_TRY(trli_solver_begin(s, "first of a sum", &m->sum_first));
    TRL_TRY(scaled(s, m->sum_first, m->w.next, m->factor, m->b.now, NULL, a));
    TRL_TRY(trli_solver_begin(s, "sum", &m->sum));
    TRL_TRY(scaled(s, m->sum, m->w.next, m->factor, m->b.now, m->w.now, a));
    TRL_TRY(compile_load(s, "load a sum", m->w.now, &m->load_sum, a, b));
    TRL_TRY(compile_finish(s, m, a, b));
done:
    return err;
}

/* Those that cycles are for, and what these change places with. */
static trl_err take_vectors(const trli_solver *s, const gmres *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_multigrid_take(s->multigrid, &m->b));
    TRL_TRY(trli_multigrid_take(s->multigrid, &m->w));
    for (int i = 0; i <= s->settings.restart; ++i) TRL_TRY(trli_multigrid_take(s->multigrid, &m->basis[i]));
done:
    return err;
}

static trl_err gmres_compile(trli_solver *s, trli_krylov **method)
{
    trli_model *model = s->sim->model;
    const size_t k = (size_t)s->settings.restart + 1;
    trli_ir_value *a = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *a);
    trli_ir_value *b = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *b);
    trl_err err = TRL_OK;
    gmres *m = trli_model_keep(model, sizeof *m);
    if (!a || !b) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for gmres"));
    TRL_TRY(model->ir.err);
    *method = (trli_krylov *)m;
    m->basis = trli_model_keep(model, k * sizeof *m->basis);
    m->matrix = trli_model_keep(model, k * k * sizeof *m->matrix);
    m->cosine = trli_model_keep(model, k * sizeof *m->cosine);
    m->sine = trli_model_keep(model, k * sizeof *m->sine);
    m->rhs = trli_model_keep(model, k * sizeof *m->rhs);
    TRL_TRY(model->ir.err);
    TRL_TRY(trli_vector_add(s, "b", false, &m->b));
    TRL_TRY(trli_vector_add(s, "w", true, &m->w));
    for (size_t i = 0; i < k; ++i)
        TRL_TRY(trli_vector_add(s, trli_model_name(model, "basis%d", (int)i), false, &m->basis[i]));
    if (s->multigrid) TRL_TRY(take_vectors(s, m));
    m->scale = trli_model_add_scalar(model, 0);
    m->factor = trli_model_add_scalar(model, 0);
    TRL_TRY(model->ir.err);
    TRL_TRY(compile_programs(s, m, a, b));
done:
    trli_free(a);
    trli_free(b);
    return err;
}

/* Run a program with a vector of the basis in its place. */
static trl_err with_vector(trli_solver *s, const gmres *m, int j, trli_program *program)
{
    const trli_vector pair = {m->b.now, m->basis[j].now};
    trli_vector_swap(s, &pair);
    const trl_err err = trli_solver_program(s, program);
    trli_vector_swap(s, &pair);
    return err;
}

/* Column j of the small matrix, and the new vector of the basis; *end: there is none. */
static trl_err add_column(trli_solver *s, gmres *m, int j, bool *end)
{
    double *column = m->matrix + (size_t)j * ((size_t)s->settings.restart + 1);
    trl_err err = TRL_OK;
    TRL_TRY(with_vector(s, m, j, m->load));
    trli_vector_swap(s, &s->d);
    TRL_TRY(trli_krylov_cycle(s, m->basis[j].now));
    TRL_TRY(trli_solver_program(s, s->apply));
    for (int i = 0; i <= j; ++i) {
        TRL_TRY(with_vector(s, m, i, i ? m->next : m->first));
        trli_vector_swap(s, &m->w);
        column[i] = trli_solver_scalar(s, m->h[i > 0]);
    }
    TRL_TRY(trli_solver_program(s, m->grow));
    column[j + 1] = sqrt(trli_solver_scalar(s, m->ww));
    *end = column[j + 1] == 0;
    if (*end) return TRL_OK;
    trli_solver_set(s, m->scale, 1 / column[j + 1]);
    TRL_TRY(with_vector(s, m, j + 1, m->direction));
done:
    return err;
}

/* Givens rotations turn the column to a triangle's; *estimate: the residual of the least-squares problem. Returns
 * whether the column is none of the others together, as it is where the operator is singular. */
static bool rotate(const trli_solver *s, gmres *m, int j, double *estimate)
{
    const double rounding = 1e-14;
    double *column = m->matrix + (size_t)j * ((size_t)s->settings.restart + 1), length = 0;
    for (int i = 0; i <= j + 1; ++i) length += column[i] * column[i];
    for (int i = 0; i < j; ++i) {
        const double upper = column[i], lower = column[i + 1];
        column[i] = m->cosine[i] * upper + m->sine[i] * lower;
        column[i + 1] = m->cosine[i] * lower - m->sine[i] * upper;
    }
    const double size = sqrt(column[j] * column[j] + column[j + 1] * column[j + 1]);
    if (size <= rounding * sqrt(length)) return false;
    m->cosine[j] = column[j] / size;
    m->sine[j] = column[j + 1] / size;
    column[j] = size;
    m->rhs[j + 1] = -m->sine[j] * m->rhs[j];
    m->rhs[j] *= m->cosine[j];
    *estimate = fabs(m->rhs[j + 1]);
    return true;
}

/* Add the best combination of n vectors to c. */
static trl_err correct(trli_solver *s, gmres *m, int n)
{
    const size_t k = (size_t)s->settings.restart + 1;
    trl_err err = TRL_OK;
    for (int i = n - 1; i >= 0; --i) {
        for (int j = i + 1; j < n; ++j) m->rhs[i] -= m->matrix[(size_t)j * k + (size_t)i] * m->rhs[j];
        m->rhs[i] /= m->matrix[(size_t)i * k + (size_t)i];
    }
    for (int i = 0; i < n; ++i) {
        trli_solver_set(s, m->factor, m->rhs[i]);
        TRL_TRY(with_vector(s, m, i, i ? m->sum : m->sum_first));
        trli_vector_swap(s, &m->w);
    }
    TRL_TRY(trli_solver_program(s, m->load_sum));
    trli_vector_swap(s, &s->d);
    TRL_TRY(trli_krylov_cycle(s, m->w.now));
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(trli_solver_program(s, m->finish));
    trli_vector_swap(s, &s->c);
    trli_vector_swap(s, &s->r);
done:
    return err;
}

/* One cycle up to a restart; norm: of r before and after it. */
static trl_err cycle(trli_solver *s, gmres *m, double target, int most, int *iterations, double *norm, bool *broken)
{
    const double unit = sqrt(s->all_points);
    bool end = false;
    int n = 0;
    trl_err err = TRL_OK;
    m->rhs[0] = *norm * unit;
    trli_solver_set(s, m->scale, 1 / m->rhs[0]);
    TRL_TRY(with_vector(s, m, 0, m->length));
    for (double estimate = m->rhs[0]; n < s->settings.restart && *iterations < most && !end && !*broken; ++n) {
        if (estimate <= target * unit) break;
        TRL_TRY(add_column(s, m, n, &end));
        ++*iterations;
        if (!rotate(s, m, n, &estimate)) break;
        *broken = !isfinite(estimate);
    }
    if (*broken || n == 0) goto done;
    TRL_TRY(correct(s, m, n));
    *norm = trli_solver_norm(s, trli_solver_scalar(s, m->rr));
done:
    return err;
}

enum { LOOK_BACK = 5 };

/* Iterations in which each point has had to do with all others, twice: until then a residual that is carried along may
 * not fall at all. */
static double crossing(const trli_solver *s)
{
    const trl_grid *g = &s->sim->layout->grid;
    double cells = 0;
    for (int a = 0; a < g->dim; ++a) cells += (double)g->cells[a];
    return 2 * cells;
}

/* Whether restarts stall: as fast as since the residual `before`, LOOK_BACK + 1 restarts ago, it would not reach the
 * target in ten times as many iterations as there may be. */
static bool stalls(const trli_solver *s, double before, double norm, double target, int most)
{
    const double turns = norm > target ? log(target / norm) / log(norm / before) : 0;
    return (LOOK_BACK + 1) * s->settings.restart * turns > 10.0 * most;
}

static trl_err gmres_run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                         bool *broken)
{
    gmres *m = (gmres *)method;
    double past[LOOK_BACK];
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    trli_krylov_started(s);
    *norm = trli_solver_norm(s, trli_solver_scalar(s, m->first_rr));
    *broken = trli_krylov_lost(s, *norm);
    *iterations = 0;
    for (int n = 0; *iterations < most && !(*norm <= target) && !*broken && !s->stalled; ++n) {
        const double last = *norm, before = n < LOOK_BACK ? INFINITY : past[n % LOOK_BACK];
        const int begun = *iterations;
        past[n % LOOK_BACK] = last;
        TRL_TRY(cycle(s, m, target, most, iterations, norm, broken));
        const bool whole = *iterations - begun == s->settings.restart, same = !(*norm < last);
        *broken |= trli_krylov_lost(s, *norm) || (same && !whole); /* there are no other vectors */
        s->stalled = same || (*iterations > crossing(s) && stalls(s, before, *norm, target, most));
    }
done:
    return err;
}

const trli_krylov_type trli_krylov_gmres = {.words = "gmres", .compile = gmres_compile, .run = gmres_run};

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Restarted generalised minimal residuals, preconditioned from the right, with classical Gram-Schmidt: the products of
 * a new vector with all of the basis, and with itself, are one message of sums, from which its length follows. Programs
 * know a few vectors of the basis at a time, in their places. Before it is projected, a multiple of the last vector is
 * subtracted, most of what it has of that, so that little cancels. What rounding errors make of the basis is estimated
 * by a recurrence (Simon 1984, of the Lanczos vectors); where that gets large the new vector is projected again. */
#include <float.h>
#include <math.h>

#include "joint_sums_impl.h"
#include "krylov_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"

enum { PLACES = 4 };

typedef struct gmres {
    trli_program *begin, *first, *load, *take, *clear, *load_sum, *finish;
    trli_program *sums[PLACES + 1];      /* w.b of as many vectors, and w.w; the first: of PLACES vectors alone */
    trli_program *less[PLACES + 1];      /* w' = scale*(w - factors*b) of as many */
    int product[PLACES + 1][PLACES + 1]; /* scalars: of `sums` */
    trli_vector b[PLACES], w, *basis;    /* basis: [restart + 1] */
    int first_rr, rr;
    int scale, shift, factor[PLACES];     /* scalars */
    double *matrix, *cosine, *sine, *rhs; /* of the small least-squares problem; matrix[column * (restart + 1) + row] */
    double *loss;  /* estimates of what products of vectors of the basis are beyond those of unit vectors, likewise */
    double *again; /* [restart + 2] of a second projection */
} gmres;

/* w.b of n vectors, and w.w */
static trl_err compile_sums(trli_solver *s, gmres *m, int variant, trli_ir_value *a, trli_ir_value *b)
{
    const int n = variant ? variant : PLACES;
    trli_program **program = &m->sums[variant];
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, trli_model_name(s->sim->model, "projection on %d%s", n, variant ? "" : " of more"),
                              program));
    trli_program_joins(*program, (s->settings.restart + 1) * s->ask.n);
    trli_solver_read(s, m->w.now, a);
    for (int i = 0; i < n; ++i) {
        trli_solver_read(s, m->b[i].now, b);
        TRL_TRY(trli_solver_dot(s, *program, "w.b", a, b, &m->product[variant][i]));
    }
    if (variant) err = trli_solver_dot(s, *program, "w.w", a, a, &m->product[variant][n]);
done:
    return err;
}

/* w' = scale*(w - factors*b) of n vectors */
static trl_err compile_less(trli_solver *s, gmres *m, int n, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, trli_model_name(s->sim->model, "subtraction of %d", n), &m->less[n]));
    for (int i = 0; i < s->ask.n; ++i) {
        trli_ir_value rest = trli_ir_field(ir, m->w.now[i]);
        for (int k = 0; k < n; ++k)
            rest = trli_ir_binary(
                ir, TRLI_OP_SUB, rest,
                trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, m->factor[k]), trli_ir_field(ir, m->b[k].now[i])));
        value[i] = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, m->scale), rest);
    }
    err = trli_solver_store(s, m->less[n], m->w.next, value);
done:
    return err;
}

/* w' = scale*r; w = q - shift*b of one vector; and w = 0 */
static trl_err compile_ends(trli_solver *s, gmres *m, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "first vector", &m->first));
    for (int i = 0; i < s->ask.n; ++i)
        value[i] = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, m->scale), trli_ir_field(ir, s->r.now[i]));
    TRL_TRY(trli_solver_store(s, m->first, m->w.next, value));
    TRL_TRY(trli_solver_begin(s, "new vector", &m->take));
    for (int i = 0; i < s->ask.n; ++i)
        value[i] = trli_ir_binary(
            ir, TRLI_OP_SUB, trli_ir_field(ir, s->q.now[i]),
            trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, m->shift), trli_ir_field(ir, m->b[0].now[i])));
    TRL_TRY(trli_solver_store(s, m->take, m->w.now, value));
    TRL_TRY(trli_solver_begin(s, "start of a sum", &m->clear));
    for (int i = 0; i < s->ask.n; ++i) value[i] = trli_ir_constant(ir, 0);
    err = trli_solver_store(s, m->clear, m->w.now, value);
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
    TRL_TRY(compile_ends(s, m, a));
    TRL_TRY(compile_load(s, "load", m->b[0].now, &m->load, a, b));
    for (int n = s->settings.restart > PLACES ? 0 : 1; n <= PLACES && n <= s->settings.restart; ++n)
        TRL_TRY(compile_sums(s, m, n, a, b));
    for (int n = 1; n <= PLACES && n <= s->settings.restart; ++n) TRL_TRY(compile_less(s, m, n, a));
    TRL_TRY(compile_load(s, "load a sum", m->w.now, &m->load_sum, a, b));
    TRL_TRY(compile_finish(s, m, a, b));
done:
    return err;
}

/* Those that cycles are for, and what these change places with. */
static trl_err take_vectors(const trli_solver *s, const gmres *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_multigrid_take(s->multigrid, &m->w));
    for (int i = 0; i < PLACES; ++i) TRL_TRY(trli_multigrid_take(s->multigrid, &m->b[i]));
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
    m->loss = trli_model_keep(model, k * k * sizeof *m->loss);
    m->again = trli_model_keep(model, (k + 1) * sizeof *m->again);
    TRL_TRY(model->ir.err);
    for (int i = 0; i < PLACES; ++i) TRL_TRY(trli_vector_add(s, trli_model_name(model, "b%d", i), false, &m->b[i]));
    TRL_TRY(trli_vector_add(s, "w", true, &m->w));
    for (size_t i = 0; i < k; ++i)
        TRL_TRY(trli_vector_add(s, trli_model_name(model, "basis%d", (int)i), false, &m->basis[i]));
    if (s->multigrid) TRL_TRY(take_vectors(s, m));
    m->scale = trli_model_add_scalar(model, 0);
    m->shift = trli_model_add_scalar(model, 0);
    for (int i = 0; i < PLACES; ++i) m->factor[i] = trli_model_add_scalar(model, 0);
    TRL_TRY(model->ir.err);
    TRL_TRY(compile_programs(s, m, a, b));
done:
    trli_free(a);
    trli_free(b);
    return err;
}

/* ---- the basis ---- */

static void swap_fields(const trli_solver *s, int *a, int *b)
{
    const trli_vector pair = {a, b};
    trli_vector_swap(s, &pair);
}

/* Run a program with n vectors of the basis in their places. */
static trl_err with_vectors(trli_solver *s, const gmres *m, int first, int n, trli_program *program)
{
    for (int i = 0; i < n; ++i) swap_fields(s, m->b[i].now, m->basis[first + i].now);
    const trl_err err = trli_solver_program(s, program);
    for (int i = 0; i < n; ++i) swap_fields(s, m->b[i].now, m->basis[first + i].now);
    return err;
}

/* Products of w with n vectors of the basis, and behind them with itself. */
static trl_err project(trli_solver *s, const gmres *m, int n, double *product)
{
    trli_frame *frame = s->sim->frame;
    bool failed;
    trl_err err = TRL_OK;
    trli_joint_sums_begin(frame);
    for (int first = 0; first < n; first += PLACES) {
        const bool last = first + PLACES >= n;
        const int count = last ? n - first : PLACES, variant = last ? count : 0;
        TRL_TRY(with_vectors(s, m, first, count, m->sums[variant]));
        trli_joint_sums_add(frame, m->sums[variant], count + last, m->product[variant], product + first);
    }
    TRL_TRY(trli_joint_sums_bring(frame, &failed));
    if (failed) TRL_TRY(trli_late_settle(s->sim)); /* which says how */
    if (failed) err = trl_context_agree(s->sim->ctx, TRL_OK);
done:
    return err;
}

/* w' = scale*(w - factors*b) of n vectors of the basis */
static trl_err subtract(trli_solver *s, const gmres *m, int n, const double *factor, double scale)
{
    trl_err err = TRL_OK;
    for (int first = 0; first < n; first += PLACES) {
        const bool last = first + PLACES >= n;
        const int count = last ? n - first : PLACES;
        for (int i = 0; i < count; ++i) trli_solver_set(s, m->factor[i], factor[first + i]);
        trli_solver_set(s, m->scale, last ? scale : 1);
        TRL_TRY(with_vectors(s, m, first, count, m->less[count]));
        if (!last) trli_vector_swap(s, &m->w);
    }
done:
    return err;
}

/* The square of the length of w less its projection on n vectors, from what `project` finds. */
static double rest_of(const double *product, int n)
{
    double square = product[n];
    for (int i = 0; i < n; ++i) square -= product[i] * product[i];
    return square;
}

/* Estimate what the products of the n-th vector with those before it, and with itself, will be beyond 0 and 1, and
 * return the largest. With loss G of these before it, and products h, w - sum h_i b_i has the products -G h with them,
 * and with itself h.(G h) beyond what h says, beside rounding errors of w. */
static double estimate_loss(const trli_solver *s, const gmres *m, int n, const double *h, double length)
{
    const size_t k = (size_t)s->settings.restart + 1;
    const double rounding = DBL_EPSILON * sqrt(h[n]);
    double *own = m->loss + (size_t)n * k, square = 0, most = 0;
    for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j) sum += m->loss[(size_t)i * k + (size_t)j] * h[j];
        square += h[i] * sum;
        own[i] = -(sum + copysign(rounding, sum)) / length;
        m->loss[(size_t)i * k + (size_t)n] = own[i];
        most = fmax(most, fabs(own[i]));
    }
    square += copysign(2 * rounding * sqrt(h[n]), square);
    own[n] = square / (length * length);
    return fmax(most, fabs(own[n]));
}

/* w', the vector n of the basis, from w, and its column of the small matrix. */
static trl_err orthogonalise(trli_solver *s, gmres *m, int n, double *column)
{
    const double tolerance = sqrt(DBL_EPSILON); /* to which the small matrix is that of an orthogonal basis */
    double rest, length, *again = m->again;
    trl_err err = TRL_OK;
    TRL_TRY(project(s, m, n, column));
    rest = rest_of(column, n);
    length = sqrt(rest > 0 ? rest : column[n]);
    const bool good = rest > 0 && estimate_loss(s, m, n, column, length) <= tolerance;
    column[n] = length;
    if (!(length > 0)) return TRL_OK;
    TRL_TRY(subtract(s, m, n, column, 1 / length));
    if (good) return TRL_OK;
    trli_vector_swap(s, &m->w);
    TRL_TRY(project(s, m, n, again));
    rest = rest_of(again, n);
    for (int i = 0; i < n; ++i) column[i] += length * again[i];
    column[n] = rest > 0 ? length * sqrt(rest) : 0;
    if (!(rest > 0)) return TRL_OK;
    (void)estimate_loss(s, m, n, again, sqrt(rest));
    err = subtract(s, m, n, again, 1 / sqrt(rest));
done:
    return err;
}

/* Column j of the small matrix, and the new vector of the basis; *end: there is none. */
static trl_err add_column(trli_solver *s, gmres *m, int j, bool *end)
{
    double *column = m->matrix + (size_t)j * ((size_t)s->settings.restart + 1);
    trl_err err = TRL_OK;
    TRL_TRY(with_vectors(s, m, j, 1, m->load));
    trli_vector_swap(s, &s->d);
    TRL_TRY(trli_krylov_cycle(s, m->basis[j].now));
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(with_vectors(s, m, j, 1, m->take));
    TRL_TRY(orthogonalise(s, m, j + 1, column));
    *end = column[j + 1] == 0;
    column[j] += trli_solver_scalar(s, m->shift);
    trli_solver_set(s, m->shift, column[j]);
    swap_fields(s, m->w.next, m->basis[j + 1].now);
done:
    return err;
}

/* ---- the solution ---- */

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
    for (int i = 0; i < n; ++i) m->again[i] = -m->rhs[i];
    TRL_TRY(trli_solver_program(s, m->clear));
    TRL_TRY(subtract(s, m, n, m->again, 1));
    trli_vector_swap(s, &m->w);
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
    m->loss[0] = DBL_EPSILON;
    trli_solver_set(s, m->scale, 1 / m->rhs[0]);
    TRL_TRY(trli_solver_program(s, m->first));
    swap_fields(s, m->w.next, m->basis[0].now);
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
    trli_solver_set(s, m->shift, 0);
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

const trli_krylov_type trli_krylov_gmres = {.words = "gmres", .sums = 1, .compile = gmres_compile, .run = gmres_run};

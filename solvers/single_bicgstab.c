/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Stabilised biconjugate gradients with one message of sums in an iteration, preconditioned by M from the right.
 * Beside the residual r and v = J M p, of the direction p, there are w = J M r and z = J M v. So the residual half
 * way, h = r - alpha v, and its product t = J M h = w - alpha z are known before their factors are: alpha, omega and
 * beta follow from sums of products of r, v, w, z and the first residual, and w, v, z of the next iteration one after
 * the other. (Yang and Brent 2002 take a product with the transpose, which is not known here.) v has a recurrence, in
 * which rounding errors add up, so v is computed anew every now and then. Sums for t lose digits where t is small
 * beside w: the half iteration is taken then, and the method begins anew. */
#include <math.h>

#include "memory_impl.h"
#include "multigrid_impl.h"
#include "solve_vectors_impl.h"

enum { REPLACE_EVERY = 25 };

typedef enum vector { R, V, W, Z, SHADOW, VECTORS } vector;

/* X(name, label, a, b): the first is v.w and r.z together. All read something of it, so the first eight share a sweep;
 * without cycles the last two are left out. */
#define SUM_LIST(X)              \
    X(CROSS, "v.w + r.z", V, W)  \
    X(RR, "r.r", R, R)           \
    X(RW, "r.w", R, W)           \
    X(VZ, "v.z", V, Z)           \
    X(WW, "w.w", W, W)           \
    X(AV, "shadow.v", SHADOW, V) \
    X(AW, "shadow.w", SHADOW, W) \
    X(AZ, "shadow.z", SHADOW, Z) \
    X(WZ, "w.z", W, Z)           \
    X(ZZ, "z.z", Z, Z)           \
    X(RV, "r.v", R, V)           \
    X(VV, "v.v", V, V)
#define SUM_ENUM(name, label, a, b) name,
enum { SUM_LIST(SUM_ENUM) SUMS };

typedef struct single {
    bool cycles;
    trli_program *begin, *half, *update;   /* half: c and r, and r.r; update: what follows from sums alone, but v */
    trli_program *iteration, *replace;     /* without cycles: all up to y; and beside `update`, of v = J g */
    trli_program *turn, *sums, *direction; /* with: w, v and g; without, too: z and sums; v = J g */
    trli_vector v, w, z, g, u, y, shadow;  /* g = M p, and with cycles u = M r; y = M v */
    int alpha, beta, omega;
    int rr, later[SUMS]; /* scalars: of `half`, and of `sums` */
} single;

/* Factors of an iteration, the next rho, and with cycles squares of the residual half way and after it. */
typedef struct factors {
    double alpha, beta, omega, rho, half, full;
    bool lost; /* little is left half way: omega is 0 */
} factors;

/* ---- programs ---- */

/* Values of vectors while a program is made. */
typedef struct work {
    trli_assignments to;
    trli_ir *ir;
    trli_ir_value alpha, beta, omega;
    trli_ir_value *half;
} work;

static trl_err open_work(trli_solver *s, const single *m, work *w)
{
    enum { MOST = 8 };
    const size_t n = (size_t)s->ask.n + 1;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_create(s, MOST, &w->to));
    w->ir = &s->sim->model->ir;
    w->alpha = trli_ir_scalar(w->ir, m->alpha);
    w->beta = trli_ir_scalar(w->ir, m->beta);
    w->omega = trli_ir_scalar(w->ir, m->omega);
    w->half = trli_new(s->sim->ctx, n, sizeof *w->half);
    if (!w->half) err = trli_no_memory(s->sim->ctx, NULL, "for a solver");
done:
    return err;
}

static void close_work(work *w)
{
    trli_assignments_free(&w->to);
    trli_free(w->half);
}

static trli_ir_value field(const work *w, const int *vector, int i)
{
    return trli_ir_field(w->ir, vector[i]);
}

static trli_ir_value plus(const work *w, trli_ir_value a, trli_op op, trli_ir_value factor, trli_ir_value b)
{
    return trli_ir_binary(w->ir, op, a, trli_ir_binary(w->ir, TRLI_OP_MUL, factor, b));
}

static trl_err compile_sums(work *w, const single *m, int *scalar)
{
    static const struct {
        const char *label;
        vector a, b;
    } all[SUMS] = {
#define SUM_ROW(name, label, a, b) {label, a, b},
        SUM_LIST(SUM_ROW)
#undef SUM_ROW
    };
    trli_solver *s = w->to.s;
    const int *const of[VECTORS] = {
        [R] = s->r.now, [V] = m->v.now, [W] = m->w.now, [Z] = m->z.now, [SHADOW] = m->shadow.now};
    trl_err err = TRL_OK;
    for (int i = 0; i < (m->cycles ? SUMS : RV); ++i) {
        for (int k = 0; k < s->ask.n; ++k) {
            const trli_ir_value first =
                trli_ir_binary(w->ir, TRLI_OP_MUL, field(w, of[all[i].a], k), field(w, of[all[i].b], k));
            w->to.a[k] = i == CROSS ? plus(w, first, TRLI_OP_ADD, field(w, of[R], k), field(w, of[Z], k)) : first;
        }
        TRL_TRY(trli_solver_dot(s, w->to.program, all[i].label, w->to.a, NULL, &scalar[i]));
    }
done:
    return err;
}

/* c' = c + alpha*g + omega*M h, r' = h - omega*t; a = r' */
static void assign_updates(work *w, const single *m)
{
    trli_solver *s = w->to.s;
    for (int i = 0; i < s->ask.n; ++i)
        w->half[i] = plus(w, field(w, s->r.now, i), TRLI_OP_SUB, w->alpha, field(w, m->v.now, i));
    trli_krylov_precondition(s, w->half, w->to.b);
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value t = plus(w, field(w, m->w.now, i), TRLI_OP_SUB, w->alpha, field(w, m->z.now, i));
        const trli_ir_value c = plus(w, field(w, s->c.now, i), TRLI_OP_ADD, w->alpha, field(w, m->g.now, i));
        const trli_ir_value with =
            m->cycles ? plus(w, field(w, m->u.now, i), TRLI_OP_SUB, w->alpha, field(w, m->y.now, i)) : w->to.b[i];
        w->to.a[i] = plus(w, w->half[i], TRLI_OP_SUB, w->omega, t);
        trli_assignments_add(&w->to, s->r.next, i, w->to.a[i]);
        trli_assignments_add(&w->to, s->c.next, i, plus(w, c, TRLI_OP_ADD, w->omega, with));
    }
}

/* The same as a program that finds r.r; c and r are swapped if that is what is wanted. */
static trl_err compile_half(work *w, single *m)
{
    trli_solver *s = w->to.s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(&w->to, "end of bicgstab", &m->half));
    assign_updates(w, m);
    TRL_TRY(trli_assignments_store(&w->to));
    trli_solver_read(s, s->r.next, w->to.a);
    err = trli_solver_dot(s, m->half, "r.r", w->to.a, w->to.a, &m->rr);
done:
    return err;
}

/* to = J of, whose values stay in a */
static trl_err assign_product(work *w, const int *of, const int *to)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_product_values(w->to.s, w->to.program, of, w->to.a));
    for (int i = 0; i < w->to.s->ask.n; ++i) trli_assignments_add(&w->to, to, i, w->to.a[i]);
done:
    return err;
}

/* v' = a + beta*(v - omega*z), which is put into a; a: w' */
static void assign_direction(work *w, const single *m)
{
    for (int i = 0; i < w->to.s->ask.n; ++i) {
        const trli_ir_value v = plus(w, field(w, m->v.now, i), TRLI_OP_SUB, w->omega, field(w, m->z.now, i));
        w->to.a[i] = plus(w, w->to.a[i], TRLI_OP_ADD, w->beta, v);
        trli_assignments_add(&w->to, m->v.next, i, w->to.a[i]);
    }
}

/* ---- without cycles ---- */

/* Store what was assigned, and y = M a of it. a: v */
static trl_err store_with_image(work *w, const single *m)
{
    trli_krylov_precondition(w->to.s, w->to.a, w->to.b);
    for (int i = 0; i < w->to.s->ask.n; ++i) trli_assignments_add(&w->to, m->y.now, i, w->to.b[i]);
    return trli_assignments_store(&w->to);
}

/* The first direction is r. */
static trl_err compile_begin(work *w, single *m)
{
    trli_solver *s = w->to.s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(&w->to, "start of bicgstab", &m->begin));
    trli_solver_read(s, s->r.now, w->to.a);
    trli_krylov_precondition(s, w->to.a, w->to.b);
    for (int i = 0; i < s->ask.n; ++i) {
        trli_assignments_add(&w->to, m->shadow.now, i, w->to.a[i]);
        trli_assignments_add(&w->to, m->g.now, i, w->to.b[i]);
        trli_assignments_add(&w->to, s->d.now, i, w->to.b[i]);
        if (!s->linear) trli_assignments_add(&w->to, s->c.next, i, trli_ir_constant(w->ir, 0));
    }
    TRL_TRY(trli_assignments_store(&w->to));
    TRL_TRY(assign_product(w, s->d.now, m->w.now));
    for (int i = 0; i < s->ask.n; ++i) trli_assignments_add(&w->to, m->v.now, i, w->to.a[i]);
    err = store_with_image(w, m);
done:
    return err;
}

/* c', r', g' and d = M r', which are stored, and w' = J d */
static trl_err compile_update(work *w, const single *m, const char *name, trli_program **program)
{
    trli_solver *s = w->to.s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(&w->to, name, program));
    assign_updates(w, m);
    trli_krylov_precondition(s, w->to.a, w->to.b); /* M r' */
    trli_solver_read(s, m->v.now, w->half);
    trli_krylov_precondition(s, w->half, w->to.a);
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value g = plus(w, field(w, m->g.now, i), TRLI_OP_SUB, w->omega, w->to.a[i]);
        trli_assignments_add(&w->to, m->g.next, i, plus(w, w->to.b[i], TRLI_OP_ADD, w->beta, g));
        trli_assignments_add(&w->to, s->d.now, i, w->to.b[i]);
    }
    TRL_TRY(trli_assignments_store(&w->to));
    err = assign_product(w, s->d.now, m->w.next);
done:
    return err;
}

/* v = J g, by way of d */
static trl_err assign_product_of_direction(work *w, const single *m)
{
    trli_solver *s = w->to.s;
    trl_err err = TRL_OK;
    trli_solver_read(s, m->g.now, w->to.a);
    TRL_TRY(trli_solver_store(s, w->to.program, s->d.now, w->to.a));
    err = assign_product(w, s->d.now, m->v.now);
done:
    return err;
}

static trl_err compile_alone(work *w, single *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(compile_begin(w, m));
    TRL_TRY(compile_update(w, m, "iteration of bicgstab", &m->iteration));
    assign_direction(w, m);
    TRL_TRY(store_with_image(w, m));
    TRL_TRY(compile_update(w, m, "step of bicgstab", &m->update));
    TRL_TRY(trli_assignments_store(&w->to));
    TRL_TRY(trli_assignments_begin(&w->to, "products of bicgstab anew", &m->replace));
    TRL_TRY(assign_product_of_direction(w, m));
    TRL_TRY(store_with_image(w, m));
    TRL_TRY(trli_assignments_begin(&w->to, "products of bicgstab", &m->sums));
    TRL_TRY(trli_solver_product_of(w->to.s, m->sums, m->y.now, m->z.now));
    err = compile_sums(w, m, m->later);
done:
    return err;
}

/* ---- with cycles, which come between programs ---- */

/* Vectors of which the first turn takes nothing are zero. */
static trl_err compile_begin_cycles(work *w, single *m)
{
    trli_solver *s = w->to.s;
    const trli_ir_value zero = trli_ir_constant(w->ir, 0);
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(&w->to, "start of bicgstab", &m->begin));
    for (int i = 0; i < s->ask.n; ++i) {
        trli_assignments_add(&w->to, m->shadow.now, i, field(w, s->r.now, i));
        trli_assignments_add(&w->to, m->v.now, i, zero);
        trli_assignments_add(&w->to, m->z.now, i, zero);
        trli_assignments_add(&w->to, m->g.now, i, zero);
        trli_assignments_add(&w->to, m->y.now, i, zero);
        if (!s->linear) trli_assignments_add(&w->to, s->c.next, i, zero);
    }
    err = trli_assignments_store(&w->to);
done:
    return err;
}

/* Of d = M r: u = d, w = J d, v' = w + beta*(v - omega*z), g' = d + beta*(g - omega*y) */
static trl_err compile_turn(work *w, single *m)
{
    trli_solver *s = w->to.s;
    trl_err err = TRL_OK;
    TRL_TRY(trli_assignments_begin(&w->to, "direction of bicgstab", &m->turn));
    TRL_TRY(assign_product(w, s->d.now, m->w.now));
    assign_direction(w, m);
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value g = plus(w, field(w, m->g.now, i), TRLI_OP_SUB, w->omega, field(w, m->y.now, i));
        trli_assignments_add(&w->to, m->g.next, i, plus(w, field(w, s->d.now, i), TRLI_OP_ADD, w->beta, g));
        trli_assignments_add(&w->to, m->u.now, i, field(w, s->d.now, i));
    }
    err = trli_assignments_store(&w->to);
done:
    return err;
}

static trl_err compile_with_cycles(work *w, single *m)
{
    trli_solver *s = w->to.s;
    trl_err err = TRL_OK;
    TRL_TRY(compile_begin_cycles(w, m));
    TRL_TRY(trli_assignments_begin(&w->to, "step of bicgstab", &m->update));
    assign_updates(w, m);
    TRL_TRY(trli_assignments_store(&w->to));
    TRL_TRY(compile_turn(w, m));
    TRL_TRY(trli_assignments_begin(&w->to, "products of bicgstab", &m->sums));
    trli_solver_read(s, s->d.now, w->to.a);
    TRL_TRY(trli_solver_store(s, m->sums, m->y.now, w->to.a));
    TRL_TRY(trli_solver_product_of(s, m->sums, s->d.now, m->z.now));
    TRL_TRY(compile_sums(w, m, m->later));
    TRL_TRY(trli_assignments_begin(&w->to, "product of bicgstab anew", &m->direction));
    TRL_TRY(assign_product_of_direction(w, m));
    err = trli_assignments_store(&w->to);
done:
    return err;
}

static trl_err compile(trli_solver *s, trli_krylov **method)
{
    work w = {0};
    trl_err err = TRL_OK;
    single *m = trli_model_keep(s->sim->model, sizeof *m);
    if (!m) return s->sim->model->ir.err;
    *method = (trli_krylov *)m;
    const bool alone = !s->multigrid;
    m->cycles = !alone;
    TRL_TRY(trli_vector_add(s, "shadow", false, &m->shadow));
    TRL_TRY(trli_vector_add(s, "v", true, &m->v));
    TRL_TRY(trli_vector_add(s, "g", true, &m->g));
    TRL_TRY(trli_vector_add(s, "w", alone, &m->w));
    TRL_TRY(trli_vector_add(s, "z", false, &m->z));
    TRL_TRY(trli_vector_add(s, "y", false, &m->y));
    if (alone) trli_vector_multiplies(s, &m->y);
    if (!alone) TRL_TRY(trli_vector_add(s, "u", false, &m->u));
    if (!alone) TRL_TRY(trli_multigrid_take(s->multigrid, &m->v));
    m->alpha = trli_model_add_scalar(s->sim->model, 0);
    m->beta = trli_model_add_scalar(s->sim->model, 0);
    m->omega = trli_model_add_scalar(s->sim->model, 0);
    TRL_TRY(open_work(s, m, &w));
    TRL_TRY(compile_half(&w, m));
    TRL_TRY(alone ? compile_alone(&w, m) : compile_with_cycles(&w, m));
done:
    close_work(&w);
    return err;
}

/* ---- a run ---- */

static void swap_solution(const trli_solver *s)
{
    trli_vector_swap(s, &s->c);
    trli_vector_swap(s, &s->r);
}

static void set_factors(const trli_solver *s, const single *m, double alpha, double beta, double omega)
{
    trli_solver_set(s, m->alpha, alpha);
    trli_solver_set(s, m->beta, beta);
    trli_solver_set(s, m->omega, omega);
}

/* With cycles: from r on all other vectors, and sums. */
static trl_err turn(trli_solver *s, const single *m, bool anew)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_krylov_cycle(s, s->r.now));
    TRL_TRY(trli_solver_program(s, m->turn));
    trli_vector_swap(s, &m->v);
    trli_vector_swap(s, &m->g);
    if (anew) TRL_TRY(trli_solver_program(s, m->direction));
    TRL_TRY(trli_krylov_cycle(s, m->v.now));
    TRL_TRY(trli_solver_program(s, m->sums));
done:
    return err;
}

/* From the present residual. */
static trl_err begin(trli_solver *s, const single *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->begin));
    set_factors(s, m, 0, 0, 0);
    err = m->cycles ? turn(s, m, false) : trli_solver_program(s, m->sums);
done:
    return err;
}

/* One iteration with the factors that are set. anew: v is found of the direction. */
static trl_err advance(trli_solver *s, const single *m, bool anew)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, m->cycles || anew ? m->update : m->iteration));
    swap_solution(s);
    if (m->cycles) return turn(s, m, anew);
    trli_vector_swap(s, &m->g);
    trli_vector_swap(s, &m->w);
    if (anew)
        TRL_TRY(trli_solver_program(s, m->replace));
    else
        trli_vector_swap(s, &m->v);
    err = trli_solver_program(s, m->sums);
done:
    return err;
}

/* From sums, and rho, the product of the first residual and the present one. Where h or t is lost in rounding errors of
 * the others omega is 0. */
static factors factors_of(const trli_solver *s, const single *m, const int *scalar, double rho)
{
    const double little = 1e-10;
    factors f = {0};
    double v[SUMS] = {0};
    for (int i = 0; i < (m->cycles ? SUMS : RV); ++i) v[i] = trli_solver_scalar(s, scalar[i]);
    f.alpha = rho / v[AV];
    f.half = v[RR] + f.alpha * (f.alpha * v[VV] - 2 * v[RV]);
    const double tt = v[WW] + f.alpha * (f.alpha * v[ZZ] - 2 * v[WZ]);
    const double ht = v[RW] - f.alpha * (v[CROSS] - f.alpha * v[VZ]);
    f.lost = (m->cycles && !(f.half > little * v[RR])) || !(tt > little * v[WW]);
    if (f.lost) return f;
    f.omega = ht / tt;
    f.full = f.half - f.omega * ht;
    f.rho = -f.omega * (v[AW] - f.alpha * v[AZ]);
    f.beta = f.rho / rho * f.alpha / f.omega;
    return f;
}

static bool is_none(double factor)
{
    return factor == 0 || !isfinite(factor);
}

/* What a part of an iteration would leave, c and r being in the places of the next ones. */
static trl_err try_part(trli_solver *s, const single *m, const factors *f, double omega, double *norm)
{
    set_factors(s, m, f->alpha, 0, omega);
    const trl_err err = trli_solver_program(s, m->half);
    *norm = trli_solver_norm(s, trli_solver_scalar(s, m->rr));
    return err;
}

/* How an iteration ends: with all vectors of the next one, as the last one, or so that the method has to begin anew. */
typedef enum ending { WHOLE, LAST, ANEW } ending;

/* Cycles are not run in vain: what would be the last residual, as far as it is foreseen, is looked at. */
static trl_err find_ending(trli_solver *s, const single *m, const factors *f, double target, double *norm, ending *how)
{
    double left;
    trl_err err = TRL_OK;
    *how = WHOLE;
    if (is_none(f->omega) || (m->cycles && trli_solver_norm(s, f->half) <= target)) {
        TRL_TRY(try_part(s, m, f, 0, &left));
        *how = left <= target || (is_none(f->omega) && !f->lost) ? LAST : f->lost ? ANEW : WHOLE;
    }
    if (*how == WHOLE && (is_none(f->beta) || (m->cycles && !(trli_solver_norm(s, f->full) > target)))) {
        TRL_TRY(try_part(s, m, f, f->omega, &left));
        *how = left <= target || is_none(f->beta) ? LAST : WHOLE;
    }
    if (*how != WHOLE) *norm = left;
done:
    return err;
}

static trl_err run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                   bool *broken)
{
    const single *m = (const single *)method;
    double rho;
    ending how;
    trl_err err = TRL_OK;
    *iterations = 0;
    TRL_TRY(begin(s, m));
    trli_krylov_started(s);
    rho = trli_solver_scalar(s, m->later[RR]);
    for (;;) {
        *norm = trli_solver_norm(s, trli_solver_scalar(s, m->later[RR]));
        *broken = trli_krylov_lost(s, *norm);
        if (*norm <= target || *broken || *iterations == most) break;
        const factors f = factors_of(s, m, m->later, rho);
        *broken = is_none(f.alpha);
        if (*broken) break;
        TRL_TRY(find_ending(s, m, &f, target, norm, &how));
        ++*iterations;
        if (how == WHOLE) {
            set_factors(s, m, f.alpha, f.beta, f.omega);
            TRL_TRY(advance(s, m, *iterations % REPLACE_EVERY == 0));
            rho = f.rho;
            continue;
        }
        swap_solution(s);
        *broken = trli_krylov_lost(s, *norm) || (how == LAST && !(*norm <= target));
        if (how == LAST || *broken) break;
        TRL_TRY(begin(s, m));
        rho = trli_solver_scalar(s, m->later[RR]);
    }
done:
    return err;
}

const trli_krylov_type trli_krylov_single_bicgstab = {
    .words = "single-reduction bicgstab", .sums = 1, .compile = compile, .run = run};

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Saddle points: systems whose unknowns need each other through first derivatives, as velocities and a pressure, fluxes
 * and a potential, or two fields of a wave do. With the matrix (A B; C D), where D is of the constraints' unknowns, the
 * diagonal F of A and the diagonal of the Schur complement D - C F^-1 B stand for A and the complement (Braess and
 * Sarazin 1997, inexactly): s->inverse_value has both inverses, and s->constraint says which unknowns are of D. */
#include <math.h>
#include <string.h>

#include "diagonal_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"

enum { ENTRIES_MOST = 1000, BUDGET = 20000 };

typedef struct entry {
    int row, unknown, offset[3];
    bool moves; /* with the unknowns */
    trli_ir_value value;
} entry;

typedef struct search {
    trli_solver *s;
    trli_ir *ir;
    entry *list; /* of all rows */
    int count;
    bool *zero;                   /* [n] nothing of the unknown is in its equation at its point */
    bool *pure;                   /* [n] nothing of it is there at other points */
    bool *pair;                   /* [n][n] each is in the other's equation, by first derivatives */
    bool *constraint;             /* [n] */
    int *colour;                  /* [n] */
    trli_ir_value *complement;    /* [n] of constraints: the diagonal of the Schur complement, */
    trli_ir_value *magnitude;     /* and the sum of magnitudes of its row, or more */
    const trli_ir_value *inverse; /* [n] of the diagonal */
} search;

static bool is_number(const search *w, trli_ir_value v, double *number)
{
    const trli_node *n = trli_ir_node(&w->s->sim->model->ir, v);
    *number = n->number;
    return n->op == TRLI_OP_CONSTANT;
}

static bool is_here(const entry *e)
{
    return !e->offset[0] && !e->offset[1] && !e->offset[2];
}

/* ---- rows ---- */

/* *known: all entries are formulas, at some offset. */
static trl_err list_row(search *w, const trli_solver_rows *rows, int i, bool *known)
{
    trli_solver *s = w->s;
    const trli_partial_derivative *of;
    trli_ir_value f;
    int n;
    trl_err err = TRL_OK;
    TRL_TRY(s->ask.residual(s->ask.data, rows->marked, i, &f));
    TRL_TRY(trli_partials_of(rows->partials, f, -1, BUDGET, false, &of, &n));
    *known &= n >= 0;
    for (int k = 0; k < n; ++k) {
        const int j = trli_solver_unknown_of(s, of[k].variable);
        if (j < 0) continue;
        *known &= w->count < ENTRIES_MOST && !of[k].everywhere && of[k].value >= 0 && of[k].bound < 0;
        if (!*known) return TRL_OK;
        entry *e = &w->list[w->count++];
        *e = (entry){.row = i, .unknown = j, .value = of[k].value};
        for (int a = 0; a < 3; ++a) e->offset[a] = of[k].offset[a];
    }
done:
    return err;
}

static bool is_unknown(const search *w, const trli_instance *in, int field)
{
    bool is = false;
    for (int i = 0; i < w->s->ask.n; ++i) is |= in->variable[w->s->ask.variable[i]] == field;
    return is;
}

static trl_err look_at_value(search *w, const trli_instance *in, trli_walk *walk, entry *e)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_ir_walk(w->ir, walk, 1, &e->value));
    for (int32_t k = 0; k < walk->count; ++k) {
        const trli_node *n = trli_ir_node(w->ir, walk->list[k]);
        e->moves |= n->op == TRLI_OP_FIELD && is_unknown(w, in, n->index);
    }
done:
    return err;
}

static trl_err list_rows(search *w, const trli_solver_rows *rows, bool *known)
{
    trli_walk walk = {0};
    trl_err err = TRL_OK;
    *known = true;
    for (int i = 0; i < w->s->ask.n && *known; ++i) TRL_TRY(list_row(w, rows, i, known));
    for (int k = 0; k < w->count && *known; ++k)
        TRL_TRY(trli_partials_together(rows->partials, w->list[k].value, &w->list[k].value));
    for (int k = 0; k < w->count && *known; ++k) TRL_TRY(look_at_value(w, rows->in, &walk, &w->list[k]));
done:
    trli_walk_free(&walk);
    return err;
}

/* ---- which unknowns are constraints' ---- */

static int place_of(const search *w, int i)
{
    return (int)w->s->sim->model->variable[w->s->ask.variable[i]].location;
}

/* An entry's place along an axis, from the equation's point, in half cells. */
static int twice(const search *w, const entry *e, int axis)
{
    return 2 * e->offset[axis] + (place_of(w, e->row) >> axis & 1) - (place_of(w, e->unknown) >> axis & 1);
}

static const entry *mirrored(const search *w, const entry *e)
{
    for (int k = 0; k < w->count; ++k) {
        const entry *other = &w->list[k];
        bool is = other->row == e->row && other->unknown == e->unknown;
        for (int a = 0; a < 3; ++a) is &= twice(w, other, a) == -twice(w, e, a);
        if (is) return other;
    }
    return NULL;
}

/* Whether equation i reads unknown j by first derivatives: numbers on both sides of the point are opposite. What moves
 * with the unknowns, as in advection, is none. */
static bool reads_derivative(const search *w, int i, int j)
{
    const double rounding = 1e-10;
    bool any = false;
    double number, opposite;
    for (int k = 0; k < w->count; ++k) {
        const entry *e = &w->list[k], *other;
        if (e->row != i || e->unknown != j) continue;
        any = true;
        other = mirrored(w, e);
        if (!other || other->value == e->value || e->moves) return false;
        if (!is_number(w, e->value, &number)) continue;
        if (is_number(w, other->value, &opposite) && fabs(number + opposite) > rounding * fabs(number)) return false;
    }
    return any;
}

static bool are_at_one_place(const search *w, int i, int j)
{
    return place_of(w, i) == place_of(w, j);
}

/* Returns whether unknowns of one point are coupled: that is what blocks are for. */
static bool look_at_entries(search *w)
{
    const int n = w->s->ask.n;
    for (int i = 0; i < n; ++i) w->zero[i] = w->pure[i] = true;
    for (int k = 0; k < w->count; ++k) {
        const entry *e = &w->list[k];
        if (trli_ir_is_zero(w->ir, e->value)) continue;
        if (e->row == e->unknown && is_here(e)) w->zero[e->row] = false;
        if (e->row == e->unknown && !is_here(e)) w->pure[e->row] = false;
        if (e->row != e->unknown && is_here(e) && are_at_one_place(w, e->row, e->unknown)) return true;
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            w->pair[i * n + j] = i != j && reads_derivative(w, i, j) && reads_derivative(w, j, i);
    return false;
}

/* Two colours, no pair of one; false: there are no two. */
static bool colour_from(search *w, int i, int colour, int part)
{
    const int n = w->s->ask.n, own = 2 * part + colour;
    if (w->colour[i] >= 0) return w->colour[i] == own;
    w->colour[i] = own;
    for (int j = 0; j < n; ++j)
        if (w->pair[i * n + j] && !colour_from(w, j, 1 - colour, part)) return false;
    return true;
}

/* Of what is joined by pairs, the unknowns of the fewer equations are the constraints': div(grad) of a potential is
 * elliptic, where grad(div) of fluxes has a large null space. Those that have no derivatives of their own are better
 * eliminated. */
static void choose_colour(search *w, int part)
{
    const int n = w->s->ask.n;
    int count[2] = {0, 0}, own[2] = {0, 0};
    for (int i = 0; i < n; ++i) {
        if (w->colour[i] / 2 != part) continue;
        ++count[w->colour[i] % 2];
        own[w->colour[i] % 2] += !w->pure[i];
    }
    if (count[0] == 0 || count[1] == 0) return;
    int chosen = count[1] < count[0];
    if (count[0] == count[1]) chosen = own[1] > own[0];
    for (int i = 0; i < n; ++i)
        if (w->colour[i] == 2 * part + chosen) w->constraint[i] = true;
}

/* Without a diagonal all are. Returns whether there is any. */
static bool choose_constraints(search *w)
{
    const int n = w->s->ask.n;
    bool any = false;
    for (int i = 0; i < n; ++i) any |= w->constraint[i] = w->zero[i];
    for (int i = 0; i < n; ++i) w->colour[i] = -1;
    for (int i = 0, part = 0; i < n && !any; ++i) {
        if (w->colour[i] >= 0) continue;
        if (!colour_from(w, i, 0, part++)) return false;
    }
    for (int part = 0; part < n && !any; ++part) choose_colour(w, part);
    for (int i = 0; i < n; ++i) any |= w->constraint[i];
    return any;
}

/* ---- the Schur complement ---- */

static trli_ir_value shifted(trli_ir *ir, trli_ir_value v, const int offset[3])
{
    for (int a = 0; a < 3; ++a) v = trli_ir_shift(ir, v, a, offset[a]);
    return v;
}

static void add(trli_ir *ir, trli_ir_value *sum, trli_op op, trli_ir_value more)
{
    *sum = trli_ir_binary(ir, op, *sum, more);
}

/* Of the equation of a constraint, through an entry c of it: what an unknown that is eliminated makes of others. */
static void add_through(search *w, const entry *c)
{
    trli_ir *ir = w->ir;
    const int i = c->row;
    for (int k = 0; k < w->count; ++k) {
        const entry *b = &w->list[k];
        if (b->row != c->unknown || !w->constraint[b->unknown]) continue;
        trli_ir_value v = trli_ir_binary(ir, TRLI_OP_MUL, w->inverse[b->row], b->value);
        v = trli_ir_binary(ir, TRLI_OP_MUL, c->value, shifted(ir, v, c->offset));
        bool back = b->unknown == i;
        for (int a = 0; a < 3; ++a) back &= b->offset[a] + c->offset[a] == 0;
        if (back) add(ir, &w->complement[i], TRLI_OP_SUB, v);
        add(ir, &w->magnitude[i], TRLI_OP_ADD, trli_ir_unary(ir, TRLI_OP_ABS, v));
    }
}

/* Of an equation of A the sum of magnitudes, of one of the complement that and its diagonal. */
static void find_complement(search *w, int i)
{
    trli_ir *ir = w->ir;
    w->complement[i] = w->magnitude[i] = trli_ir_constant(ir, 0);
    for (int k = 0; k < w->count; ++k) {
        const entry *e = &w->list[k];
        if (e->row != i) continue;
        if (w->constraint[i] && !w->constraint[e->unknown]) add_through(w, e);
        if (w->constraint[i] != w->constraint[e->unknown]) continue;
        if (e->unknown == i && is_here(e)) add(ir, &w->complement[i], TRLI_OP_ADD, e->value);
        add(ir, &w->magnitude[i], TRLI_OP_ADD, trli_ir_unary(ir, TRLI_OP_ABS, e->value));
    }
}

/* Whether pairs count beside the constraints' own terms, as far as numbers say. Own derivatives get weaker on coarser
 * grids, where pairs do not. */
static bool is_strong(const search *w, int i)
{
    const double little = 0.1;
    double all, own = 0, number;
    if (!w->pure[i] || !is_number(w, w->magnitude[i], &all)) return true;
    for (int k = 0; k < w->count; ++k) {
        const entry *e = &w->list[k];
        if (e->row != i || !w->constraint[e->unknown]) continue;
        if (!is_number(w, e->value, &number)) return true;
        own += fabs(number);
    }
    return all - own > little * own;
}

static bool is_saddle(const search *w)
{
    bool strong = false;
    for (int i = 0; i < w->s->ask.n; ++i) {
        if (!w->constraint[i]) continue;
        if (trli_ir_is_zero(w->ir, w->complement[i])) return false;
        strong |= is_strong(w, i);
    }
    return strong;
}

/* Of each row over its diagonal the sum of magnitudes; the inverse of the complement's diagonal is damped where it is
 * that of an approximation, and no mass bounds it. */
static trl_err take(search *w, const trli_solver_rows *rows, trli_ir_value *all, trli_ir_value *own)
{
    const double damping = 0.7;
    trli_solver *s = w->s;
    trli_ir *ir = w->ir;
    bool pure = true;
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) pure &= w->constraint[i] || w->pure[i];
    for (int i = 0; i < s->ask.n; ++i) {
        if (w->constraint[i]) {
            const trli_ir_value factor = trli_ir_constant(ir, pure ? 1 : damping);
            TRL_TRY(trli_solver_invert(s, rows->in, i, w->complement[i]));
            s->inverse_value[i] = trli_ir_binary(ir, TRLI_OP_MUL, factor, s->inverse_value[i]);
        }
        const trli_ir_value size = trli_ir_unary(ir, TRLI_OP_ABS, s->inverse_value[i]);
        all[i] = trli_ir_binary(ir, TRLI_OP_MUL, w->magnitude[i], size);
        if (w->zero[i]) all[i] = trli_ir_binary(ir, TRLI_OP_MAX, all[i], trli_ir_constant(ir, 2));
        own[i] = all[i];
    }
    s->constraint = w->constraint;
done:
    return err;
}

/* ---- a system ---- */

static trl_err search_begin(trli_solver *s, search *w)
{
    const size_t n = (size_t)s->ask.n;
    trl_context *ctx = s->sim->ctx;
    trli_ir_value *inverse = trli_new(ctx, n, sizeof *inverse);
    *w = (search){.s = s,
                  .ir = &s->sim->model->ir,
                  .list = trli_new(ctx, ENTRIES_MOST, sizeof *w->list),
                  .zero = trli_new(ctx, n, sizeof *w->zero),
                  .pure = trli_new(ctx, n, sizeof *w->pure),
                  .pair = trli_new(ctx, n * n, sizeof *w->pair),
                  .constraint = trli_model_keep(s->sim->model, n * sizeof *w->constraint),
                  .colour = trli_new(ctx, n, sizeof *w->colour),
                  .complement = trli_new(ctx, n, sizeof *w->complement),
                  .magnitude = trli_new(ctx, n, sizeof *w->magnitude),
                  .inverse = inverse};
    if (inverse) memcpy(inverse, s->inverse_value, n * sizeof *inverse);
    return w->list && w->zero && w->pure && w->pair && w->constraint && w->colour && w->complement && w->magnitude &&
                   inverse
               ? TRL_OK
               : trli_no_memory(ctx, NULL, "for a solver");
}

static void search_end(search *w)
{
    trli_free(w->list);
    trli_free(w->zero);
    trli_free(w->pure);
    trli_free(w->pair);
    trli_free(w->colour);
    trli_free(w->complement);
    trli_free(w->magnitude);
    trli_free((void *)w->inverse);
}

trl_err trli_solver_find_saddle(trli_solver *s, const trli_solver_rows *rows, trli_ir_value *all, trli_ir_value *own)
{
    search w;
    bool known;
    trl_err err = TRL_OK;
    if (!s->coupled || (s->finest && !s->finest->constraint)) return TRL_OK;
    TRL_TRY(search_begin(s, &w));
    TRL_TRY(list_rows(&w, rows, &known));
    if (!known || look_at_entries(&w)) goto done;
    if (s->finest)
        memcpy(w.constraint, s->finest->constraint, (size_t)s->ask.n * sizeof *w.constraint);
    else if (!choose_constraints(&w))
        goto done;
    for (int i = 0; i < s->ask.n; ++i) find_complement(&w, i);
    if (s->finest || is_saddle(&w)) TRL_TRY(take(&w, rows, all, own));
    err = s->sim->model->ir.err;
done:
    search_end(&w);
    return err;
}

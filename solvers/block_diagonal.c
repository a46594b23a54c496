/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The inverse of the matrices that couple the unknowns of a point, in place of that of the diagonal: by cofactors, of
 * rows over their diagonal, or of many unknowns their factors. Unknowns of a block need each other; what one of them
 * reads of others the diagonal stands. And by Gershgorin's theorem a bound of the eigenvalues of it times the Jacobian.
 */
#include <string.h>

#include "diagonal_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"

enum { COFACTORS_MOST = 4, ENTRIES_MOST = 1000, BUDGET = 20000 };

static trli_ir_value times(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_MUL, a, b);
}

/* *sum, unless it is none yet, and more, or less where the sign says so. */
static void add(trli_ir *ir, trli_ir_value *sum, int sign, trli_ir_value more)
{
    if (*sum >= 0)
        *sum = trli_ir_binary(ir, sign > 0 ? TRLI_OP_ADD : TRLI_OP_SUB, *sum, more);
    else
        *sum = sign > 0 ? more : trli_ir_unary(ir, TRLI_OP_NEG, more);
}

/* By the first of n rows; columns: a bit each. */
static trli_ir_value determinant(trli_ir *ir, trli_ir_value (*m)[COFACTORS_MOST], const int *row, int n,
                                 unsigned columns)
{
    trli_ir_value sum = TRLI_NO_VALUE;
    int sign = 1;
    if (n == 0) return trli_ir_constant(ir, 1);
    for (int j = 0; j < COFACTORS_MOST; ++j) {
        if (!(columns >> j & 1)) continue;
        if (!trli_ir_is_zero(ir, m[row[0]][j])) {
            const trli_ir_value rest = determinant(ir, m, row + 1, n - 1, columns & ~(1u << j));
            if (!trli_ir_is_zero(ir, rest)) add(ir, &sum, sign, times(ir, m[row[0]][j], rest));
        }
        sign = -sign;
    }
    return sum < 0 ? trli_ir_constant(ir, 0) : sum;
}

/* Of all rows but one, and all columns but one. */
static trli_ir_value cofactor(trli_ir *ir, trli_ir_value (*m)[COFACTORS_MOST], int n, int without_row,
                              int without_column)
{
    int row[COFACTORS_MOST], rows = 0;
    for (int i = 0; i < n; ++i)
        if (i != without_row) row[rows++] = i;
    const trli_ir_value d = determinant(ir, m, row, rows, ((1u << n) - 1) & ~(1u << without_column));
    return (without_row + without_column) % 2 ? trli_ir_unary(ir, TRLI_OP_NEG, d) : d;
}

/* Unknowns that need each other at one location, directly or through others. */
typedef struct block {
    int n, unknown[TRLI_FACTORS_MOST];
} block;

typedef trli_ir_value small[COFACTORS_MOST][COFACTORS_MOST];

/* Where there is none the inverse of the diagonal stays. row: over its diagonal. */
static void invert(trli_solver *s, const block *b, small row)
{
    static const int all[COFACTORS_MOST] = {0, 1, 2, 3};
    const double rounding = 1e-13; /* of the determinant */
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value d = determinant(ir, row, all, b->n, (1u << b->n) - 1);
    const trli_ir_value none =
        trli_ir_binary(ir, TRLI_OP_LT, trli_ir_unary(ir, TRLI_OP_ABS, d), trli_ir_constant(ir, rounding));
    for (int i = 0; i < b->n; ++i)
        for (int j = 0; j < b->n; ++j) {
            const trli_ir_value of = cofactor(ir, row, b->n, j, i), share = trli_ir_binary(ir, TRLI_OP_DIV, of, d);
            if (i != j && trli_ir_is_zero(ir, of)) continue;
            s->block_value[b->unknown[i] * s->ask.n + b->unknown[j]] = times(
                ir, trli_ir_select(ir, none, trli_ir_constant(ir, i == j), share), s->inverse_value[b->unknown[j]]);
        }
}

/* Points that are no unknowns are none in the rows of others either. */
static trl_err scale(trli_solver *s, trli_instance *in, const trli_ir_value *entry, const block *b, small to)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    for (int i = 0; i < b->n; ++i)
        for (int j = 0; j < b->n; ++j) {
            const int row = b->unknown[i], column = b->unknown[j];
            to[i][j] = trli_ir_constant(ir, i == j && !trli_ir_is_zero(ir, entry[row * (s->ask.n + 1)]));
            if (i == j) continue;
            to[i][j] = times(ir, s->inverse_value[row], entry[row * s->ask.n + column]);
            TRL_TRY(trli_solver_masked(s, in, column, &to[i][j]));
        }
done:
    return err;
}

static bool are_at_one_place(const trli_solver *s, int i, int j)
{
    const trli_variable *v = s->sim->model->variable;
    return v[s->ask.variable[i]].location == v[s->ask.variable[j]].location;
}

/* reach: [n][n] whether the equation of one unknown reads another at its point, directly or through others. */
static void find_reach(const trli_solver *s, const trli_ir_value *entry, bool *reach)
{
    const int n = s->ask.n;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            reach[i * n + j] = are_at_one_place(s, i, j) && !trli_ir_is_zero(&s->sim->model->ir, entry[i * n + j]);
    for (int k = 0; k < n; ++k)
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n && reach[i * n + k]; ++j) reach[i * n + j] |= reach[k * n + j];
}

/* The block whose first unknown is `first`; n 0: that is in an earlier one, or alone, or there are too many. */
static block block_of(const trli_solver *s, const bool *reach, int first)
{
    const int n = s->ask.n;
    block b = {.n = 1, .unknown = {first}};
    for (int j = 0; j < n; ++j) {
        if (j == first || !reach[first * n + j] || !reach[j * n + first]) continue;
        if (j < first || b.n == TRLI_FACTORS_MOST) return (block){0};
        b.unknown[b.n++] = j;
    }
    return b.n > 1 ? b : (block){0};
}

/* *any: there are blocks, whose inverses, or factors, are among the values, and the diagonal's where there are none. */
static trl_err invert_blocks(trli_solver *s, trli_instance *in, const trli_ir_value *entry, const bool *reach,
                             bool *any)
{
    const int n = s->ask.n;
    trl_err err = TRL_OK;
    *any = false;
    for (int k = 0; k < n * n; ++k)
        s->block_value[k] = k % (n + 1) ? trli_ir_constant(&s->sim->model->ir, 0) : s->inverse_value[k / n];
    for (int i = 0; i < n; ++i) {
        const block b = block_of(s, reach, i);
        small row;
        if (b.n == 0) continue;
        *any = true;
        if (b.n > COFACTORS_MOST) {
            TRL_TRY(trli_solver_factor(s, in, entry, b.n, b.unknown));
            continue;
        }
        TRL_TRY(scale(s, in, entry, &b, row));
        invert(s, &b, row);
    }
done:
    return err;
}

/* Rows of the Jacobian, one behind the other. */
typedef struct row_entry {
    int row, unknown;
    bool taken;
    trli_partial_derivative of;
} row_entry;

/* *known: there is room for all; *bounded: all are at some offset. */
static trl_err list_rows(trli_solver *s, const trli_solver_rows *rows, row_entry *list, int *count, bool *known,
                         bool *bounded)
{
    const trli_partial_derivative *of;
    trli_ir_value f;
    int n;
    trl_err err = TRL_OK;
    *count = 0;
    *bounded = true;
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(s->ask.residual(s->ask.data, rows->marked, i, &f));
        TRL_TRY(trli_partials_of(rows->partials, f, -1, BUDGET, false, &of, &n));
        for (int k = 0; k < n; ++k) {
            const int j = trli_solver_unknown_of(s, of[k].variable);
            if (j < 0) continue;
            *known &= *count < ENTRIES_MOST;
            *bounded &= !of[k].everywhere;
            if (!*known) return TRL_OK;
            list[(*count)++] = (row_entry){.row = i, .unknown = j, .of = of[k]};
        }
    }
    for (int k = 0; k < *count; ++k) {
        trli_partial_derivative *e = &list[k].of;
        if (e->value >= 0) TRL_TRY(trli_partials_together(rows->partials, e->value, &e->value));
        if (e->bound >= 0) TRL_TRY(trli_partials_together(rows->partials, e->bound, &e->bound));
    }
done:
    return err;
}

static trli_ir_value magnitude(trli_ir *ir, trli_ir_value v)
{
    return trli_ir_unary(ir, TRLI_OP_ABS, v);
}

/* Of a row of the inverse times the Jacobian, by unknowns: the sums of magnitudes, [n]. */
static void add_magnitudes(trli_solver *s, row_entry *list, int count, const trli_ir_value *factor, trli_ir_value *size)
{
    trli_ir *ir = &s->sim->model->ir;
    for (int j = 0; j < s->ask.n; ++j) size[j] = TRLI_NO_VALUE;
    for (int k = 0; k < count; ++k) list[k].taken = false;
    for (int k = 0; k < count; ++k) {
        if (list[k].taken) continue;
        trli_ir_value sum = TRLI_NO_VALUE, *to = &size[list[k].unknown];
        for (int l = k; l < count; ++l) {
            const trli_partial_derivative *e = &list[l].of;
            const bool same = !list[l].taken && list[l].unknown == list[k].unknown &&
                              !trli_ir_is_zero(ir, factor[list[l].row]) &&
                              memcmp(e->offset, list[k].of.offset, sizeof e->offset) == 0;
            if (!same) continue;
            list[l].taken = true;
            if (e->value >= 0) add(ir, &sum, 1, times(ir, factor[list[l].row], e->value));
            if (e->bound >= 0) add(ir, to, 1, magnitude(ir, times(ir, factor[list[l].row], e->bound)));
        }
        if (sum >= 0) add(ir, to, 1, magnitude(ir, sum));
    }
}

/* The sum over unknowns j, those of two that read each other by the geometric mean of both: units of unknowns are
 * arbitrary, and by their scales two are made alike without other eigenvalues. */
static trli_ir_value sum_of(trli_solver *s, const trli_ir_value *size, int i)
{
    trli_ir *ir = &s->sim->model->ir;
    const int n = s->ask.n;
    trli_ir_value sum = size[i * n + i];
    for (int j = 0; j < n; ++j) {
        const trli_ir_value there = size[i * n + j], back = size[j * n + i];
        if (j == i || there < 0) continue;
        if (!are_at_one_place(s, i, j))
            add(ir, &sum, 1, there);
        else if (back >= 0)
            add(ir, &sum, 1, trli_ir_unary(ir, TRLI_OP_SQRT, times(ir, there, back)));
    }
    return sum < 0 ? trli_ir_constant(ir, 0) : sum;
}

/* What a search for blocks needs. */
typedef struct search {
    trli_ir_value *entry;   /* [n][n] at the same point */
    trli_ir_value *size;    /* [n][n] of rows by unknowns */
    trli_ir_value *inverse; /* [n][n] */
    bool *reach;            /* [n][n] */
    row_entry *list;        /* [ENTRIES_MOST] */
} search;

static trl_err search_begin(trli_solver *s, search *w)
{
    const size_t n = (size_t)s->ask.n;
    *w = (search){.entry = trli_new(s->sim->ctx, n * n, sizeof *w->entry),
                  .size = trli_new(s->sim->ctx, n * n, sizeof *w->size),
                  .inverse = trli_new(s->sim->ctx, n * n, sizeof *w->inverse),
                  .reach = trli_new(s->sim->ctx, n * n, sizeof *w->reach),
                  .list = trli_new(s->sim->ctx, ENTRIES_MOST, sizeof *w->list)};
    s->block_value = trli_model_keep(s->sim->model, n * n * sizeof *s->block_value);
    s->eliminated = trli_model_keep(s->sim->model, n * sizeof *s->eliminated);
    return w->entry && w->size && w->inverse && w->reach && w->list && s->block_value && s->eliminated
               ? TRL_OK
               : trli_no_memory(s->sim->ctx, NULL, "for a solver");
}

static void search_end(search *w)
{
    trli_free(w->entry);
    trli_free(w->size);
    trli_free(w->inverse);
    trli_free(w->reach);
    trli_free(w->list);
}

/* What the preconditioner makes of unit vectors. */
static void find_inverse(trli_solver *s, trli_ir_value *unit, trli_ir_value *column, trli_ir_value *inverse)
{
    const int n = s->ask.n;
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i < n; ++i) unit[i] = trli_ir_constant(&s->sim->model->ir, i == j);
        trli_krylov_precondition(s, unit, column);
        for (int i = 0; i < n; ++i) inverse[i * n + j] = column[i];
    }
}

/* Inverses of factors are work, so a coarser grid has the bounds of the one before it, whose rows are larger, if it has
 * many cells. On the last one, which is to be solved, they are to be sharp. */
static bool takes_bounds(const trli_solver *s)
{
    const double many = 256;
    const trl_grid *g = &s->sim->layout->grid;
    double cells = 1;
    for (int a = 0; a < g->dim; ++a) cells *= (double)g->cells[a];
    return s->finest && s->neliminated > 0 && cells > many;
}

trl_err trli_solver_find_blocks(trli_solver *s, const trli_solver_rows *rows, trli_ir_value *all, trli_ir_value *own)
{
    search w;
    bool known, bounded, any = false;
    int count;
    trl_err err = TRL_OK;
    if (!s->coupled) return TRL_OK;
    TRL_TRY(search_begin(s, &w));
    TRL_TRY(trli_solver_find_point_rows(s, rows, w.entry, &known));
    if (known) TRL_TRY(list_rows(s, rows, w.list, &count, &known, &bounded));
    if (!known) goto done;
    find_reach(s, w.entry, w.reach);
    TRL_TRY(invert_blocks(s, rows->in, w.entry, w.reach, &any));
    if (any) TRL_TRY(trli_solver_store_matrix(s, s->diagonal, "inverse", true, s->block_value));
    bounded &= !takes_bounds(s);
    if (bounded) find_inverse(s, all, own, w.inverse);
    for (int i = 0; i < s->ask.n && bounded; ++i)
        add_magnitudes(s, w.list, count, w.inverse + i * s->ask.n, w.size + i * s->ask.n);
    for (int i = 0; i < s->ask.n; ++i) {
        all[i] = bounded ? sum_of(s, w.size, i) : TRLI_NO_VALUE;
        own[i] = bounded ? w.size[i * s->ask.n + i] : TRLI_NO_VALUE;
        if (bounded && own[i] < 0) own[i] = trli_ir_constant(&s->sim->model->ir, 0);
    }
    err = s->sim->model->ir.err;
done:
    search_end(&w);
    if (!any) s->block_value = NULL;
    return err;
}

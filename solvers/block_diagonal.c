/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The inverse of the matrices that couple the unknowns of a point, in place of that of the diagonal: by cofactors, of
 * rows over their diagonal. Unknowns of a block need each other; what one of them reads of others the diagonal stands.
 * And by Gershgorin's theorem a bound of the eigenvalues of it times the Jacobian. */
#include <string.h>

#include "diagonal_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"

enum { MOST = 4, ENTRIES_MOST = 400, BUDGET = 20000 };

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
static trli_ir_value determinant(trli_ir *ir, const trli_ir_value (*m)[MOST], const int *row, int n, unsigned columns)
{
    trli_ir_value sum = TRLI_NO_VALUE;
    int sign = 1;
    if (n == 0) return trli_ir_constant(ir, 1);
    for (int j = 0; j < MOST; ++j) {
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
static trli_ir_value cofactor(trli_ir *ir, const trli_ir_value (*m)[MOST], int n, int without_row, int without_column)
{
    int row[MOST], rows = 0;
    for (int i = 0; i < n; ++i)
        if (i != without_row) row[rows++] = i;
    const trli_ir_value d = determinant(ir, m, row, rows, ((1u << n) - 1) & ~(1u << without_column));
    return (without_row + without_column) % 2 ? trli_ir_unary(ir, TRLI_OP_NEG, d) : d;
}

/* Unknowns that need each other at one location, directly or through others. */
typedef struct block {
    int n, unknown[MOST];
    trli_ir_value row[MOST][MOST]; /* over their diagonal */
} block;

/* Where there is none the inverse of the diagonal stays. */
static void invert(trli_solver *s, const block *b)
{
    static const int all[MOST] = {0, 1, 2, 3};
    const double rounding = 1e-13; /* of the determinant */
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value d = determinant(ir, b->row, all, b->n, (1u << b->n) - 1);
    const trli_ir_value none =
        trli_ir_binary(ir, TRLI_OP_LT, trli_ir_unary(ir, TRLI_OP_ABS, d), trli_ir_constant(ir, rounding));
    for (int i = 0; i < b->n; ++i)
        for (int j = 0; j < b->n; ++j) {
            const trli_ir_value of = cofactor(ir, b->row, b->n, j, i), share = trli_ir_binary(ir, TRLI_OP_DIV, of, d);
            if (i != j && trli_ir_is_zero(ir, of)) continue;
            s->block_value[b->unknown[i] * s->ask.n + b->unknown[j]] = times(
                ir, trli_ir_select(ir, none, trli_ir_constant(ir, i == j), share), s->inverse_value[b->unknown[j]]);
        }
}

/* Points that are no unknowns are none in the rows of others either. */
static trl_err scale(trli_solver *s, trli_instance *in, const trli_ir_value *entry, block *b)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    for (int i = 0; i < b->n; ++i)
        for (int j = 0; j < b->n; ++j) {
            const int row = b->unknown[i], column = b->unknown[j];
            b->row[i][j] = trli_ir_constant(ir, i == j);
            if (i == j) continue;
            b->row[i][j] = times(ir, s->inverse_value[row], entry[row * s->ask.n + column]);
            TRL_TRY(trli_solver_masked(s, in, column, &b->row[i][j]));
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
        if (j < first || b.n == MOST) return (block){0};
        b.unknown[b.n++] = j;
    }
    return b.n > 1 ? b : (block){0};
}

/* *any: there are blocks, whose inverses are among the values, and the diagonal's where there are none. */
static trl_err invert_blocks(trli_solver *s, trli_instance *in, const trli_ir_value *entry, const bool *reach,
                             bool *any)
{
    const int n = s->ask.n;
    trl_err err = TRL_OK;
    *any = false;
    for (int k = 0; k < n * n; ++k)
        s->block_value[k] = k % (n + 1) ? trli_ir_constant(&s->sim->model->ir, 0) : s->inverse_value[k / n];
    for (int i = 0; i < n; ++i) {
        block b = block_of(s, reach, i);
        if (b.n == 0) continue;
        TRL_TRY(scale(s, in, entry, &b));
        invert(s, &b);
        *any = true;
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

/* Of row i of the inverse times the Jacobian, by unknowns: the sums of magnitudes, [n]. */
static void add_magnitudes(trli_solver *s, row_entry *list, int count, int i, trli_ir_value *size)
{
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value *const factor = s->block_value + (size_t)i * (size_t)s->ask.n;
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
    trli_ir_value *entry; /* [n][n] at the same point */
    trli_ir_value *size;  /* [n][n] of rows by unknowns */
    bool *reach;          /* [n][n] */
    row_entry *list;      /* [ENTRIES_MOST] */
} search;

static trl_err search_begin(trli_solver *s, search *w)
{
    const size_t n = (size_t)s->ask.n;
    *w = (search){trli_new(s->sim->ctx, n * n, sizeof *w->entry), trli_new(s->sim->ctx, n * n, sizeof *w->size),
                  trli_new(s->sim->ctx, n * n, sizeof *w->reach), trli_new(s->sim->ctx, ENTRIES_MOST, sizeof *w->list)};
    s->block_value = trli_model_keep(s->sim->model, n * n * sizeof *s->block_value);
    return w->entry && w->size && w->reach && w->list && s->block_value
               ? TRL_OK
               : trli_no_memory(s->sim->ctx, NULL, "for a solver");
}

static void search_end(search *w)
{
    trli_free(w->entry);
    trli_free(w->size);
    trli_free(w->reach);
    trli_free(w->list);
}

/* By the program of the diagonal: values are numbers or fields then. */
static trl_err store_blocks(trli_solver *s)
{
    const size_t entries = (size_t)s->ask.n * (size_t)s->ask.n;
    trli_ir *ir = &s->sim->model->ir;
    double *number = trli_new(s->sim->ctx, entries, sizeof *number);
    int *field = trli_new(s->sim->ctx, entries, sizeof *field);
    trl_err err = TRL_OK;
    if (!number || !field) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for a solver"));
    TRL_TRY(trli_solver_store_matrix(s, s->diagonal, "inverse", s->block_value, field, number));
    for (size_t k = 0; k < entries; ++k)
        if (field[k] >= 0) s->block_value[k] = trli_ir_field(ir, field[k]);
done:
    trli_free(number);
    trli_free(field);
    return err;
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
    if (any) TRL_TRY(store_blocks(s));
    for (int i = 0; i < s->ask.n && bounded; ++i)
        add_magnitudes(s, w.list, count, i, w.size + (size_t)i * (size_t)s->ask.n);
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

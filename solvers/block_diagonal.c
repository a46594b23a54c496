/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The inverse of the matrices that couple the unknowns of a point, in place of that of the diagonal: by cofactors, of
 * rows over their diagonal. And by Gershgorin's theorem a bound of the eigenvalues of it times the Jacobian. */
#include <string.h>

#include "diagonal_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"

enum { MOST = 4, ENTRIES_MOST = 100, BUDGET = 20000 };

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

/* Where there is none the inverse of the diagonal stays. */
static void invert(trli_solver *s, const trli_ir_value (*m)[MOST], trli_ir_value *inverse)
{
    static const int all[MOST] = {0, 1, 2, 3};
    const double rounding = 1e-13; /* of the determinant */
    trli_ir *ir = &s->sim->model->ir;
    const int n = s->ask.n;
    const trli_ir_value d = determinant(ir, m, all, n, (1u << n) - 1);
    const trli_ir_value none =
        trli_ir_binary(ir, TRLI_OP_LT, trli_ir_unary(ir, TRLI_OP_ABS, d), trli_ir_constant(ir, rounding));
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            const trli_ir_value of = cofactor(ir, m, n, j, i), share = trli_ir_binary(ir, TRLI_OP_DIV, of, d);
            inverse[i * n + j] = of;
            if (i != j && trli_ir_is_zero(ir, of)) continue;
            inverse[i * n + j] =
                times(ir, trli_ir_select(ir, none, trli_ir_constant(ir, i == j), share), s->inverse_value[j]);
        }
}

static bool are_at_one_place(const trli_solver *s, int i, int j)
{
    const trli_variable *v = s->sim->model->variable;
    return v[s->ask.variable[i]].location == v[s->ask.variable[j]].location;
}

/* Points that are no unknowns are none in the rows of others either. */
static trl_err scale(trli_solver *s, trli_instance *in, const trli_ir_value *entry, trli_ir_value (*m)[MOST])
{
    trli_ir *ir = &s->sim->model->ir;
    const int n = s->ask.n;
    trl_err err = TRL_OK;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            m[i][j] = trli_ir_constant(ir, i == j);
            if (i == j || !are_at_one_place(s, i, j)) continue;
            m[i][j] = times(ir, s->inverse_value[i], entry[i * n + j]);
            TRL_TRY(trli_solver_masked(s, in, j, &m[i][j]));
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

static int unknown_of(const trli_solver *s, int variable)
{
    int i = 0;
    while (i < s->ask.n && s->ask.variable[i] != variable) ++i;
    return i;
}

static trl_err list_rows(trli_solver *s, const trli_solver_rows *rows, row_entry *list, int *count, bool *known)
{
    const trli_partial_derivative *of;
    trli_ir_value f;
    int n;
    trl_err err = TRL_OK;
    *count = 0;
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(s->ask.residual(s->ask.data, rows->marked, i, &f));
        TRL_TRY(trli_partials_of(rows->partials, f, -1, BUDGET, false, &of, &n));
        for (int k = 0; k < n; ++k) {
            const int j = unknown_of(s, of[k].variable);
            if (j == s->ask.n) continue;
            *known &= !of[k].everywhere && *count < ENTRIES_MOST;
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

/* Of row i of the inverse times the Jacobian: the sum of magnitudes, and of those of the row's own unknown. */
static void add_magnitudes(trli_solver *s, row_entry *list, int count, const trli_ir_value *inverse, int i,
                           trli_ir_value *all, trli_ir_value *own)
{
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value *const factor = inverse + (size_t)i * (size_t)s->ask.n;
    *all = *own = TRLI_NO_VALUE;
    for (int k = 0; k < count; ++k) list[k].taken = false;
    for (int k = 0; k < count; ++k) {
        if (list[k].taken) continue;
        trli_ir_value sum = TRLI_NO_VALUE, size = TRLI_NO_VALUE;
        for (int l = k; l < count; ++l) {
            const trli_partial_derivative *e = &list[l].of;
            const bool same = !list[l].taken && list[l].unknown == list[k].unknown &&
                              !trli_ir_is_zero(ir, factor[list[l].row]) &&
                              memcmp(e->offset, list[k].of.offset, sizeof e->offset) == 0;
            if (!same) continue;
            list[l].taken = true;
            if (e->value >= 0) add(ir, &sum, 1, times(ir, factor[list[l].row], e->value));
            if (e->bound >= 0) add(ir, &size, 1, magnitude(ir, times(ir, factor[list[l].row], e->bound)));
        }
        if (sum >= 0) add(ir, &size, 1, magnitude(ir, sum));
        if (size < 0) continue;
        add(ir, all, 1, size);
        if (list[k].unknown == i) add(ir, own, 1, size);
    }
    if (*own < 0) *own = trli_ir_constant(ir, 0);
}

static bool couples(const trli_solver *s, const trli_ir_value *entry)
{
    bool any = false;
    for (int i = 0; i < s->ask.n; ++i)
        for (int j = 0; j < s->ask.n; ++j)
            any |= i != j && are_at_one_place(s, i, j) && !trli_ir_is_zero(&s->sim->model->ir, entry[i * s->ask.n + j]);
    return any;
}

trl_err trli_solver_find_blocks(trli_solver *s, const trli_solver_rows *rows, trli_ir_value *all, trli_ir_value *own)
{
    const size_t n = (size_t)s->ask.n;
    trli_ir_value entry[MOST * MOST], m[MOST][MOST];
    row_entry *list = NULL;
    bool known;
    int count;
    trl_err err = TRL_OK;
    if (!s->coupled || n > MOST) return TRL_OK;
    TRL_TRY(trli_solver_find_point_rows(s, rows, entry, &known));
    if (!known || !couples(s, entry)) return TRL_OK;
    list = trli_new(s->sim->ctx, ENTRIES_MOST, sizeof *list);
    if (!list) return trli_no_memory(s->sim->ctx, NULL, "for a solver");
    TRL_TRY(list_rows(s, rows, list, &count, &known));
    if (!known) goto done;
    TRL_TRY(scale(s, rows->in, entry, m));
    s->block_value = trli_model_keep(s->sim->model, n * n * sizeof *s->block_value);
    if (!s->block_value) TRL_TRY(s->sim->model->ir.err);
    invert(s, (const trli_ir_value(*)[MOST])m, s->block_value);
    for (int i = 0; i < s->ask.n; ++i) add_magnitudes(s, list, count, s->block_value, i, &all[i], &own[i]);
    err = s->sim->model->ir.err;
done:
    trli_free(list);
    return err;
}

trl_err trli_solver_store_blocks(trli_solver *s)
{
    trli_ir *ir = &s->sim->model->ir;
    double number[MOST * MOST];
    int field[MOST * MOST];
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_store_matrix(s, s->diagonal, "inverse", s->block_value, field, number));
    for (int k = 0; k < s->ask.n * s->ask.n; ++k)
        if (field[k] >= 0) s->block_value[k] = trli_ir_field(ir, field[k]);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sparse matrices: their making, transposes and products. */
#include <string.h>

#include "memory_impl.h"
#include "sparse_impl.h"

static trl_err no_memory(trl_context *ctx)
{
    return trli_no_memory(ctx, NULL, "for coarser grids");
}

void trli_sparse_free(trli_sparse *a)
{
    trli_free(a->begin);
    trli_free(a->column);
    trli_free(a->value);
    *a = (trli_sparse){0};
}

trl_err trli_sparse_reserve(trl_context *ctx, trli_sparse *a, int entries)
{
    return trli_make_room(ctx, &a->column, 0, entries, &a->columns_room, sizeof *a->column) &&
                   trli_make_room(ctx, &a->value, 0, entries, &a->values_room, sizeof *a->value)
               ? TRL_OK
               : no_memory(ctx);
}

trl_err trli_sparse_reserve_pattern(trl_context *ctx, trli_sparse *a, int rows, int columns, int entries)
{
    a->rows = rows;
    a->columns = columns;
    return trli_make_room(ctx, &a->begin, 0, (int64_t)rows + 2, &a->begins, sizeof *a->begin) &&
                   trli_make_room(ctx, &a->column, 0, entries, &a->columns_room, sizeof *a->column)
               ? TRL_OK
               : no_memory(ctx);
}

trl_err trli_sparse_begin(trl_context *ctx, int rows, int columns, trli_sparse *a, trli_sparse_rows *making)
{
    trl_err err = TRL_OK;
    *making = (trli_sparse_rows){.ctx = ctx, .made = a};
    TRL_TRY(trli_sparse_reserve_pattern(ctx, a, rows, columns, 0));
    a->begin[0] = a->begin[1] = 0;
done:
    return err;
}

trl_err trli_sparse_grow(trl_context *ctx, trli_sparse *a, int entries)
{
    return trli_make_room(ctx, &a->column, entries, 1, &a->columns_room, sizeof *a->column) &&
                   trli_make_room(ctx, &a->value, entries, 1, &a->values_room, sizeof *a->value)
               ? TRL_OK
               : no_memory(ctx);
}

/* Where there is no other memory the old one stays. */
static void *shorten(trl_context *ctx, void *list, size_t used, int wanted, int32_t *room, size_t size)
{
    void *shorter = trli_new(ctx, (size_t)wanted, size);
    if (!shorter) return list;
    memcpy(shorter, list, used * size);
    trli_free(list);
    *room = wanted;
    return shorter;
}

void trli_sparse_trim(trl_context *ctx, trli_sparse *a)
{
    const int64_t n = a->begin[a->rows], wanted = n + n / 8 + 1;
    if (a->columns_room > n + n / 4 + 1)
        a->column = shorten(ctx, a->column, (size_t)n, (int)wanted, &a->columns_room, sizeof *a->column);
    if (a->values_room > n + n / 4 + 1)
        a->value = shorten(ctx, a->value, (size_t)n, (int)wanted, &a->values_room, sizeof *a->value);
}

trl_err trli_sparse_transpose(trl_context *ctx, const trli_sparse *a, trli_sparse *transposed)
{
    trli_sparse *t = transposed;
    const int n = a->begin[a->rows];
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_reserve_pattern(ctx, t, a->columns, a->rows, n));
    if (a->value) TRL_TRY(trli_sparse_reserve(ctx, t, n));
    for (int i = 0; i < t->rows + 2; ++i) t->begin[i] = 0;
    for (int e = 0; e < n; ++e) ++t->begin[a->column[e] + 2];
    for (int i = 0; i < t->rows; ++i) t->begin[i + 2] += t->begin[i + 1];
    for (int i = 0; i < a->rows; ++i)
        for (int e = a->begin[i]; e < a->begin[i + 1]; ++e) {
            const int to = t->begin[a->column[e] + 1]++;
            t->column[to] = i;
            if (a->value) t->value[to] = a->value[e];
        }
done:
    return err;
}

/* ---- P^T A P ---- */

trl_err trli_sparse_product_row(const void *factors, trli_sparse_rows *making, int *place, int row)
{
    const trli_sparse_factors *w = factors;
    const trli_sparse *a = w->a, *p = w->p, *back = w->back;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_add(making, place, row, 0)); /* the diagonal first */
    for (int b = back->begin[row]; b < back->begin[row + 1]; ++b) {
        const int fine = back->column[b];
        for (int e = a->begin[fine]; e < a->begin[fine + 1]; ++e) {
            const double factor = back->value[b] * a->value[e];
            const int other = a->column[e];
            for (int c = p->begin[other]; c < p->begin[other + 1]; ++c)
                TRL_TRY(trli_sparse_add(making, place, p->column[c], factor * p->value[c]));
        }
    }
done:
    return err;
}

/* ---- A x ---- */

typedef struct multiplying {
    const trli_sparse *a;
    const double *x;
    double *y;
} multiplying;

static trl_err multiply_chunk(void *data, int chunk, int chunks, int worker)
{
    const multiplying *w = data;
    const int end = (int)((int64_t)w->a->rows * (chunk + 1) / chunks);
    (void)worker;
    for (int i = (int)((int64_t)w->a->rows * chunk / chunks); i < end; ++i) {
        double sum = 0;
        for (int e = w->a->begin[i]; e < w->a->begin[i + 1]; ++e) sum += w->a->value[e] * w->x[w->a->column[e]];
        w->y[i] = sum;
    }
    return TRL_OK;
}

trl_err trli_sparse_multiply(const trli_sparse *a, const double *x, double *y, trl_loop *loop)
{
    enum { ROWS = 500 };
    multiplying w = {a, x, y};
    const int most = 4 * trl_loop_workers(loop), chunks = 1 + a->rows / ROWS;
    return trl_loop_run(loop, chunks < most ? chunks : most, multiply_chunk, &w);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The matrix of the second grid: a rank makes the rows of coarse points in its own patches. */
#include <string.h>

#include "galerkin_impl.h"
#include "memory_impl.h"

typedef struct adding {
    const trli_entries *a;
    const trli_patch_box *part;
    ptrdiff_t step[TRLI_ENTRIES_MOST]; /* to neighbours in the box */
} adding;

static trl_err add_row(const void *data, trli_sparse_rows *making, int *place, int row)
{
    const adding *w = data;
    const trli_sparse *back = &w->part->back, *p = &w->part->p;
    const int entries = w->a->entries, *number = w->part->number;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_add(making, place, w->part->coarse[row], 0)); /* its own entry first */
    for (int b = back->begin[row]; b < back->begin[row + 1]; ++b) {
        const int fine = back->column[b];
        const double *entry = w->part->entry + (ptrdiff_t)fine * entries;
        for (int e = 0; e < entries; ++e) {
            const ptrdiff_t other = fine + w->step[e];
            const double factor = back->value[b] * entry[e];
            for (int c = entry[e] != 0 ? p->begin[other] : 0; entry[e] != 0 && c < p->begin[other + 1]; ++c)
                TRL_TRY(trli_sparse_add(making, place, number[p->column[c]], factor * p->value[c]));
        }
    }
done:
    return err;
}

/* Rows of a part, in the order of its coarse points. */
static trl_err multiply(trli_entries *a, trli_patch_box *part, int columns)
{
    adding w = {.a = a, .part = part};
    for (int e = 0; e < a->entries; ++e) w.step[e] = trli_patch_box_index(part, a->offset[e]);
    return trli_sparse_make(a->crew, part->back.rows, columns, add_row, &w, &part->product);
}

/* ---- rows of all parts ---- */

/* The rows of the only part are all, in the order of numbers. What was in their place is made anew next time. */
static void take(trli_sparse *rows, trli_sparse *all)
{
    const trli_sparse other = *all;
    *all = *rows;
    *rows = other;
}

/* Those of several parts in the order of numbers. */
static trl_err join(const trli_entries *a, int rows, trli_sparse *all)
{
    trl_context *ctx = a->s->sim->ctx;
    const int parts = a->s->sim->layout->nlocal;
    int64_t n = 0;
    trl_err err = TRL_OK;
    for (int p = 0; p < parts; ++p) n += a->part[p].product.begin[a->part[p].product.rows];
    if (n > INT32_MAX) TRL_TRY(trli_no_memory(ctx, NULL, "for coarser grids"));
    TRL_TRY(trli_sparse_reserve_pattern(ctx, all, rows, rows, (int)n));
    TRL_TRY(trli_sparse_reserve(ctx, all, (int)n));
    for (int p = 0; p < parts; ++p) {
        const trli_patch_box *part = &a->part[p];
        for (int i = 0; i < part->product.rows; ++i)
            all->begin[part->coarse[i] + 1] = part->product.begin[i + 1] - part->product.begin[i];
    }
    all->begin[0] = 0;
    for (int i = 0; i < rows; ++i) all->begin[i + 1] += all->begin[i];
    for (int p = 0; p < parts; ++p) {
        const trli_patch_box *part = &a->part[p];
        for (int i = 0; i < part->product.rows; ++i) {
            const int from = part->product.begin[i], to = all->begin[part->coarse[i]];
            const size_t length = (size_t)(part->product.begin[i + 1] - from);
            memcpy(all->column + to, part->product.column + from, length * sizeof *all->column);
            memcpy(all->value + to, part->product.value + from, length * sizeof *all->value);
        }
    }
done:
    return err;
}

trl_err trli_entries_product(trli_entries *a, const trli_row_owners *rows, trli_sparse *product)
{
    const int parts = a->s->sim->layout->nlocal;
    trl_err err = TRL_OK;
    for (int p = 0; p < parts; ++p) TRL_TRY(multiply(a, &a->part[p], rows->all));
    if (parts == 1)
        take(&a->part[0].product, product);
    else
        TRL_TRY(join(a, rows->own, product));
    product->columns = rows->all;
    for (int e = 0; e < product->begin[product->rows]; ++e) product->value[e] += 0.0; /* no negative zero */
done:
    return err;
}

void trli_entries_read(trli_entries *a, const trli_algebraic *rest)
{
    for (int p = 0; p < a->s->sim->layout->nlocal; ++p) {
        trli_patch_box *part = &a->part[p];
        for (int i = 0; i < part->p.rows; ++i)
            if (part->number[i] >= 0) part->number[i] = trli_algebraic_row(rest, part->number[i]);
        for (int e = 0; e < part->p.begin[part->p.rows]; ++e) part->p.column[e] = part->number[part->p.column[e]];
    }
}

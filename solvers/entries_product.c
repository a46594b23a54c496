/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The matrix of the second grid: ranks make the rows of coarse points in their own patches, and get all others'. */
#include "context_impl.h"
#include "galerkin_impl.h"

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
static trl_err multiply(trli_entries *a, trli_patch_box *part)
{
    adding w = {.a = a, .part = part};
    for (int e = 0; e < a->entries; ++e) w.step[e] = trli_patch_box_index(part, a->offset[e]);
    return trli_sparse_make(a->crew, part->back.rows, a->coarse, add_row, &w, &part->product);
}

/* The rows of all parts of all ranks in the order of numbers. */
static trl_err join(const trli_entries *a, trli_sparse *all)
{
    trl_context *ctx = a->s->sim->ctx;
    const int parts = a->s->sim->layout->nlocal;
    trli_sparse_rows making;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_begin(ctx, a->coarse, a->coarse, all, &making));
    for (int i = 0; i <= a->coarse; ++i) all->begin[i] = 0;
    for (int p = 0; p < parts; ++p) {
        const trli_sparse *rows = &a->part[p].product;
        for (int i = 0; i < rows->rows; ++i) all->begin[a->part[p].coarse[i] + 1] = rows->begin[i + 1] - rows->begin[i];
    }
    TRL_TRY(trli_allreduce(ctx, all->begin, a->coarse + 1, MPI_INT, MPI_SUM));
    for (int i = 0; i < a->coarse; ++i) all->begin[i + 1] += all->begin[i];
    const int n = all->begin[a->coarse];
    TRL_TRY(trli_sparse_reserve(ctx, all, n));
    for (int e = 0; e < n; ++e) all->value[e] = all->column[e] = 0;
    for (int p = 0; p < parts; ++p) {
        const trli_sparse *rows = &a->part[p].product;
        for (int i = 0; i < rows->rows; ++i) {
            const int to = all->begin[a->part[p].coarse[i]] - rows->begin[i];
            for (int e = rows->begin[i]; e < rows->begin[i + 1]; ++e) {
                all->column[to + e] = rows->column[e];
                all->value[to + e] = rows->value[e] + 0.0; /* no negative zero */
            }
        }
    }
    TRL_TRY(trli_allreduce(ctx, all->column, n, MPI_INT, MPI_SUM));
    err = trli_allreduce(ctx, all->value, n, MPI_DOUBLE, MPI_SUM);
done:
    return err;
}

/* The rows of the only part are all, in the order of numbers. What was in their place is made anew next time. */
static void take(trli_sparse *rows, trli_sparse *all)
{
    const trli_sparse other = *all;
    *all = *rows;
    *rows = other;
    for (int e = 0; e < all->begin[all->rows]; ++e) all->value[e] += 0.0; /* no negative zero */
}

static void number_columns(trli_patch_box *part)
{
    trli_sparse *p = &part->p;
    for (int e = 0; e < p->begin[p->rows]; ++e) p->column[e] = part->number[p->column[e]];
}

trl_err trli_entries_product(trli_entries *a, trli_sparse *product)
{
    const int parts = a->s->sim->layout->nlocal;
    trl_err err = TRL_OK;
    for (int p = 0; p < parts; ++p) TRL_TRY(multiply(a, &a->part[p]));
    if (a->s->sim->layout->npatches == 1)
        take(&a->part[0].product, product);
    else
        TRL_TRY(join(a, product));
    for (int p = 0; p < parts; ++p) number_columns(&a->part[p]);
done:
    return err;
}

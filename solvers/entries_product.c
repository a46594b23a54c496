/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The matrix of the second grid: ranks make the rows of coarse points in their own patches, and get all others'. */
#include "context_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"

typedef struct adding {
    trli_sparse_rows rows;
    int *place; /* [coarse] where a column's entry of the present row is, if it is not before its begin */
} adding;

static trl_err add_row(adding *w, const trli_entries *a, const trli_patch_box *part, int row)
{
    const trli_sparse *back = &part->back, *p = &part->p;
    ptrdiff_t step[TRLI_ENTRIES_MOST];
    trl_err err = TRL_OK;
    for (int e = 0; e < a->entries; ++e) step[e] = trli_patch_box_index(part, a->offset[e]);
    TRL_TRY(trli_sparse_add(&w->rows, w->place, part->number[row], 0)); /* its own entry first */
    for (int b = back->begin[row]; b < back->begin[row + 1]; ++b) {
        const int fine = back->column[b];
        const double *entry = part->entry + (ptrdiff_t)fine * a->entries;
        for (int e = 0; e < a->entries; ++e) {
            const ptrdiff_t other = fine + step[e];
            const double factor = back->value[b] * entry[e];
            for (int c = entry[e] != 0 ? p->begin[other] : 0; entry[e] != 0 && c < p->begin[other + 1]; ++c)
                TRL_TRY(trli_sparse_add(&w->rows, w->place, p->column[c], factor * p->value[c]));
        }
    }
    trli_sparse_end_row(&w->rows);
done:
    return err;
}

/* Rows of a part, in the order of its coarse points. */
static trl_err multiply(const trli_entries *a, const trli_patch_box *part, int *place, trli_sparse *rows)
{
    adding w = {.place = place};
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_begin(a->s->sim->ctx, part->back.rows, a->coarse, rows, &w.rows));
    for (int i = 0; i < a->coarse; ++i) place[i] = -1;
    for (int row = 0; row < part->back.rows; ++row) TRL_TRY(add_row(&w, a, part, row));
done:
    return err;
}

/* The rows of all parts of all ranks in the order of numbers. */
static trl_err join(const trli_entries *a, const trli_sparse *rows, trli_sparse *all)
{
    trl_context *ctx = a->s->sim->ctx;
    const int parts = a->s->sim->layout->nlocal;
    trli_sparse_rows making;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_begin(ctx, a->coarse, a->coarse, all, &making));
    for (int i = 0; i <= a->coarse; ++i) all->begin[i] = 0;
    for (int p = 0; p < parts; ++p)
        for (int i = 0; i < rows[p].rows; ++i)
            all->begin[a->part[p].number[i] + 1] = rows[p].begin[i + 1] - rows[p].begin[i];
    TRL_TRY(trli_allreduce(ctx, all->begin, a->coarse + 1, MPI_INT, MPI_SUM));
    for (int i = 0; i < a->coarse; ++i) all->begin[i + 1] += all->begin[i];
    const int n = all->begin[a->coarse];
    TRL_TRY(trli_sparse_reserve(ctx, all, n));
    for (int e = 0; e < n; ++e) all->value[e] = all->column[e] = 0;
    for (int p = 0; p < parts; ++p)
        for (int i = 0; i < rows[p].rows; ++i) {
            const int to = all->begin[a->part[p].number[i]];
            for (int e = rows[p].begin[i]; e < rows[p].begin[i + 1]; ++e) {
                all->column[to + e - rows[p].begin[i]] = rows[p].column[e];
                all->value[to + e - rows[p].begin[i]] = rows[p].value[e] + 0.0; /* no negative zero */
            }
        }
    TRL_TRY(trli_allreduce(ctx, all->column, n, MPI_INT, MPI_SUM));
    err = trli_allreduce(ctx, all->value, n, MPI_DOUBLE, MPI_SUM);
done:
    return err;
}

trl_err trli_entries_product(const trli_entries *a, trli_sparse *product)
{
    trl_context *ctx = a->s->sim->ctx;
    const int parts = a->s->sim->layout->nlocal;
    int *place = trli_new(ctx, (size_t)a->coarse + 1, sizeof *place);
    trli_sparse *rows = trli_new(ctx, (size_t)parts + 1, sizeof *rows);
    trl_err err = TRL_OK;
    if (!place || !rows) TRL_TRY(trli_no_memory(ctx, NULL, "for coarser grids"));
    for (int p = 0; p < parts; ++p) TRL_TRY(multiply(a, &a->part[p], place, &rows[p]));
    err = join(a, rows, product);
done:
    for (int p = 0; rows && p < parts; ++p) trli_sparse_free(&rows[p]);
    trli_free(rows);
    trli_free(place);
    return err;
}

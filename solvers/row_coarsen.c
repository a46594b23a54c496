/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The next coarser one of a matrix whose rows the ranks share. A rank makes the rows of its own points, for which it
 * gets those of others that have entries in common with its own. */
#include <stdlib.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "row_coarsen_impl.h"

typedef struct coarsening {
    const trli_row_coarsening *w;
    trl_context *ctx;
    trli_row_owners around; /* own rows, the others that are known, and what those read */
    trli_row_owners points; /* of the next grid: own ones, and all that stay of `around` */
    double *kept;           /* [around] 1: it stays; 0 */
    int *number;            /* [around] among `points`; -1: it does not stay */
    int *order;             /* [rows of a] in the order of points */
} coarsening;

static trl_err no_memory(const coarsening *c)
{
    return trli_no_memory(c->ctx, NULL, "for coarser grids");
}

/* ---- which points stay ---- */

static trl_err number_points(coarsening *c)
{
    const trli_row_owners *around = &c->around;
    int own = 0;
    trl_err err = TRL_OK;
    c->number = trli_new(c->ctx, (size_t)around->all + 1, sizeof *c->number);
    if (!c->number) TRL_TRY(no_memory(c));
    for (int i = 0; i < around->own; ++i) own += c->kept[i] != 0;
    TRL_TRY(trli_row_owners_begin(c->ctx, around->layout, around->n, own, &c->points));
    for (int i = 0, k = 0; i < around->own; ++i) {
        c->number[i] = c->kept[i] != 0 ? k : -1;
        if (c->kept[i] != 0) c->points.point[k++] = around->point[i];
    }
    for (int i = around->own; i < around->all; ++i) {
        c->number[i] = -1;
        if (c->kept[i] != 0) TRL_TRY(trli_row_owners_add(&c->points, around->point[i], &c->number[i]));
    }
done:
    return err;
}

static trl_err choose(coarsening *c, bool *worth)
{
    const trli_row_coarsening *w = c->w;
    const trli_sparse *strong;
    int64_t count[2] = {0, w->owners->own};
    trl_err err = TRL_OK;
    c->kept = trli_new(c->ctx, (size_t)c->around.all + 1, sizeof *c->kept);
    if (!c->kept) TRL_TRY(no_memory(c));
    TRL_TRY(trli_split_strong(w->splitting, w->a, &strong));
    TRL_TRY(trli_row_owners_choose(&c->around, strong, TRLI_BLOCK_POINTS, c->kept));
    for (int i = 0; i < c->around.own; ++i) count[0] += c->kept[i] != 0;
    TRL_TRY(trli_allreduce(c->ctx, count, 2, MPI_INT64_T, MPI_SUM));
    *worth = count[0] > 0 && (double)count[0] <= w->worth * (double)count[1];
    if (!*worth) return TRL_OK;
    TRL_TRY(trli_row_owners_exchange(&c->around, c->kept));
    err = number_points(c);
done:
    return err;
}

/* ---- P, its transpose and the product ---- */

typedef struct ordered {
    trl_gidx point;
    int row;
} ordered;

static int compare_points(const void *a, const void *b)
{
    const ordered *x = a, *y = b;
    return (x->point > y->point) - (x->point < y->point);
}

static trl_err order_rows(coarsening *c)
{
    const trli_row_owners *o = c->w->owners;
    const int others = o->all - o->own;
    trl_err err = TRL_OK;
    ordered *const list = trli_new(c->ctx, (size_t)others + 1, sizeof *list);
    c->order = trli_new(c->ctx, (size_t)o->all + 1, sizeof *c->order);
    if (!list || !c->order) TRL_TRY(no_memory(c));
    for (int i = 0; i < others; ++i) list[i] = (ordered){o->point[o->own + i], o->own + i};
    qsort(list, (size_t)others, sizeof *list, compare_points);
    for (int i = 0, k = 0; i + k < o->all;) {
        const bool own = k == others || (i < o->own && o->point[i] < list[k].point);
        c->order[i + k] = own ? i : list[k].row;
        ++*(own ? &i : &k);
    }
done:
    trli_free(list);
    return err;
}

/* Rows of this rank's points of the next grid, whose entries come in the order of points. */
static trl_err transpose(coarsening *c)
{
    const trli_sparse *p = c->w->p;
    trli_sparse *back = c->w->back;
    const int own = c->points.own, rows = c->w->owners->all;
    trl_err err = TRL_OK;
    TRL_TRY(order_rows(c));
    TRL_TRY(trli_sparse_reserve_pattern(c->ctx, back, own, rows, 0));
    for (int i = 0; i < own + 2; ++i) back->begin[i] = 0;
    for (int e = 0; e < p->begin[rows]; ++e)
        if (p->column[e] < own) ++back->begin[p->column[e] + 2];
    for (int i = 0; i < own; ++i) back->begin[i + 2] += back->begin[i + 1];
    TRL_TRY(trli_sparse_reserve(c->ctx, back, back->begin[own + 1]));
    for (int k = 0; k < rows; ++k)
        for (int e = p->begin[c->order[k]]; e < p->begin[c->order[k] + 1]; ++e) {
            if (p->column[e] >= own) continue;
            const int to = back->begin[p->column[e] + 1]++;
            back->column[to] = c->order[k];
            back->value[to] = p->value[e];
        }
done:
    return err;
}

/* The rows of others that are columns of these in the place of those of `points`. */
static trl_err take_columns(coarsening *c, trli_sparse *a, int *taken)
{
    const int own = c->points.own;
    trl_err err = TRL_OK;
    for (int e = 0; e < a->begin[a->rows]; ++e) {
        const int from = a->column[e];
        if (from < own) continue;
        if (taken[from - own] < 0)
            TRL_TRY(trli_row_owners_add(c->w->coarse, c->points.point[from], &taken[from - own]));
        a->column[e] = taken[from - own];
    }
done:
    return err;
}

/* What others have lent goes back; the next grid's rows of others are those that are read. */
static trl_err tidy(coarsening *c)
{
    const trli_row_coarsening *w = c->w;
    const int others = c->points.all - c->points.own;
    trl_err err = TRL_OK;
    int *const taken = trli_new(c->ctx, (size_t)others + 1, sizeof *taken);
    if (!taken) TRL_TRY(no_memory(c));
    for (int i = 0; i < others; ++i) taken[i] = -1;
    w->a->rows = w->p->rows = w->owners->own;
    TRL_TRY(trli_row_owners_begin(c->ctx, c->points.layout, c->points.n, c->points.own, w->coarse));
    for (int i = 0; i < c->points.own; ++i) w->coarse->point[i] = c->points.point[i];
    TRL_TRY(take_columns(c, w->product, taken));
    TRL_TRY(take_columns(c, w->p, taken));
    w->a->columns = w->owners->all;
    w->p->columns = w->product->columns = w->coarse->all;
    trli_sparse *const all[] = {w->a, w->p, w->back};
    for (int i = 0; i < 3; ++i) trli_sparse_trim(c->ctx, all[i]);
done:
    trli_free(taken);
    return err;
}

static trl_err multiply(coarsening *c)
{
    const trli_row_coarsening *w = c->w;
    const trli_sparse_factors factors = {w->a, w->p, w->back};
    trl_err err = TRL_OK;
    TRL_TRY(trli_split_rows(w->splitting, w->owners->own, c->number, c->points.all, w->p));
    TRL_TRY(trli_row_owners_append(&c->around, w->p, &c->points));
    TRL_TRY(transpose(c));
    TRL_TRY(trli_sparse_make(w->crew, c->points.own, c->points.all, trli_sparse_product_row, &factors, w->product));
    err = tidy(c);
done:
    return err;
}

trl_err trli_row_coarsen(const trli_row_coarsening *w, bool *made)
{
    coarsening c = {.w = w, .ctx = w->owners->ctx};
    trl_err err = TRL_OK;
    *made = false;
    TRL_TRY(trli_row_owners_copy(w->owners, &c.around));
    TRL_TRY(trli_row_owners_append(w->owners, w->a, &c.around));
    w->a->columns = c.around.all;
    TRL_TRY(trli_row_owners_connect(&c.around));
    TRL_TRY(choose(&c, made));
    if (*made)
        TRL_TRY(multiply(&c));
    else
        w->a->rows = w->owners->own;
done:
    trli_row_owners_free(&c.around);
    trli_row_owners_free(&c.points);
    trli_free(c.kept);
    trli_free(c.number);
    trli_free(c.order);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The matrix of the second grid: ranks make the rows of coarse points in their own patches, and get all others'. */
#include <string.h>

#include "context_impl.h"
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
static trl_err multiply(trli_entries *a, trli_patch_box *part)
{
    adding w = {.a = a, .part = part};
    for (int e = 0; e < a->entries; ++e) w.step[e] = trli_patch_box_index(part, a->offset[e]);
    return trli_sparse_make(a->crew, part->back.rows, a->coarse, add_row, &w, &part->product);
}

/* ---- rows of all ranks: they come rank after rank, and go to their places ---- */

typedef struct joining {
    const trli_entries *a;
    trl_context *ctx;
    trli_sparse *all;
    int ranks, me;
    int *size;            /* [2 * ranks] rows and entries of each rank */
    int *count, *begin;   /* [ranks] of a message */
    int *number, *length; /* [all rows] */
    double *buffer;       /* [all entries] */
} joining;

static trl_err no_memory(const joining *w)
{
    return trli_no_memory(w->ctx, NULL, "for coarser grids");
}

static trl_err begin_joining(joining *w)
{
    const int coarse = w->a->coarse;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_reserve_pattern(w->ctx, w->all, coarse, coarse, 0));
    w->size = trli_new(w->ctx, 4 * (size_t)w->ranks, sizeof *w->size);
    w->number = trli_new(w->ctx, 2 * (size_t)coarse, sizeof *w->number);
    if (!w->size || !w->number) TRL_TRY(no_memory(w));
    w->count = w->size + 2 * (ptrdiff_t)w->ranks;
    w->begin = w->count + w->ranks;
    w->length = w->number + coarse;
done:
    return err;
}

/* What the next message has: rows, or entries. */
static void set_counts(const joining *w, bool entries)
{
    for (int r = 0, n = 0; r < w->ranks; n += w->count[r++]) {
        w->begin[r] = n;
        w->count[r] = w->size[2 * r + entries];
    }
}

static void list_own_rows(const joining *w)
{
    for (int p = 0, k = w->begin[w->me]; p < w->a->s->sim->layout->nlocal; ++p) {
        const trli_patch_box *part = &w->a->part[p];
        for (int i = 0; i < part->product.rows; ++i, ++k) {
            w->number[k] = part->coarse[i];
            w->length[k] = part->product.begin[i + 1] - part->product.begin[i];
        }
    }
}

/* owner: [all rows] gets their ranks; may be NULL */
static trl_err gather_pattern(const joining *w, int *owner)
{
    int *const begin = w->all->begin;
    int64_t n = 0;
    trl_err err = TRL_OK;
    for (int p = 0; p < w->a->s->sim->layout->nlocal; ++p) {
        const trli_sparse *rows = &w->a->part[p].product;
        w->size[2 * w->me] += rows->rows;
        w->size[2 * w->me + 1] += rows->begin[rows->rows];
    }
    for (int r = 0; r < w->ranks; ++r) {
        w->begin[r] = 2 * r;
        w->count[r] = 2;
    }
    TRL_TRY(trli_allgatherv_further(w->ctx, w->size, w->count, w->begin, MPI_INT));
    set_counts(w, false);
    list_own_rows(w);
    TRL_TRY(trli_allgatherv_further(w->ctx, w->number, w->count, w->begin, MPI_INT));
    TRL_TRY(trli_allgatherv_further(w->ctx, w->length, w->count, w->begin, MPI_INT));
    for (int r = 0; r < w->ranks; ++r)
        for (int k = w->begin[r]; k < w->begin[r] + w->count[r]; ++k) {
            begin[w->number[k] + 1] = w->length[k];
            if (owner) owner[w->number[k]] = r;
        }
    for (int i = 0; i < w->all->rows; ++i) n += begin[i + 1];
    if (n > INT32_MAX) TRL_TRY(no_memory(w));
    begin[0] = 0;
    for (int i = 0; i < w->all->rows; ++i) begin[i + 1] += begin[i];
done:
    return err;
}

static trl_err gather_columns(const joining *w)
{
    int *const buffer = (int *)(void *)w->buffer, *at = buffer + w->begin[w->me];
    trl_err err = TRL_OK;
    for (int p = 0; p < w->a->s->sim->layout->nlocal; ++p) {
        const trli_sparse *rows = &w->a->part[p].product;
        for (int e = 0; e < rows->begin[rows->rows]; ++e) *at++ = rows->column[e];
    }
    TRL_TRY(trli_allgatherv_further(w->ctx, buffer, w->count, w->begin, MPI_INT));
    at = buffer;
    for (int k = 0; k < w->all->rows; at += w->length[k++])
        memcpy(w->all->column + w->all->begin[w->number[k]], at, (size_t)w->length[k] * sizeof *at);
done:
    return err;
}

static trl_err gather_values(const joining *w)
{
    double *at = w->buffer + w->begin[w->me];
    trl_err err = TRL_OK;
    for (int p = 0; p < w->a->s->sim->layout->nlocal; ++p) {
        const trli_sparse *rows = &w->a->part[p].product;
        for (int e = 0; e < rows->begin[rows->rows]; ++e) *at++ = rows->value[e] + 0.0; /* no negative zero */
    }
    TRL_TRY(trli_allgatherv_further(w->ctx, w->buffer, w->count, w->begin, MPI_DOUBLE));
    at = w->buffer;
    for (int k = 0; k < w->all->rows; at += w->length[k++])
        memcpy(w->all->value + w->all->begin[w->number[k]], at, (size_t)w->length[k] * sizeof *at);
done:
    return err;
}

static trl_err make_room(joining *w)
{
    const int n = w->all->begin[w->all->rows];
    w->buffer = trli_new(w->ctx, (size_t)n, sizeof *w->buffer);
    return w->buffer ? trli_sparse_reserve(w->ctx, w->all, n) : no_memory(w);
}

/* The rows of all parts of all ranks in the order of numbers. */
static trl_err join(const trli_entries *a, trli_sparse *all, int *owner)
{
    trl_context *ctx = a->s->sim->ctx;
    joining w = {.a = a, .ctx = ctx, .all = all, .ranks = trl_context_ranks(ctx), .me = trl_context_rank(ctx)};
    trl_err err = TRL_OK;
    TRL_TRY(trl_context_agree(ctx, begin_joining(&w)));
    TRL_TRY(gather_pattern(&w, owner));
    TRL_TRY(trl_context_agree(ctx, make_room(&w)));
    set_counts(&w, true);
    TRL_TRY(gather_columns(&w));
    err = gather_values(&w);
done:
    trli_free(w.size);
    trli_free(w.number);
    trli_free(w.buffer);
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

/* What this rank's points are interpolated from. */
static void read_coarse(const trli_patch_box *part, trli_row_owners *owners)
{
    int box[3];
    for (box[2] = part->ghosts[2]; box[2] < part->ghosts[2] + part->n[2]; ++box[2])
        for (box[1] = part->ghosts[1]; box[1] < part->ghosts[1] + part->n[1]; ++box[1]) {
            box[0] = part->ghosts[0];
            const int first = (int)trli_patch_box_index(part, box);
            for (int i = first; i < first + part->n[0]; ++i) trli_row_owners_read(owners, &part->p, i);
        }
}

trl_err trli_entries_product(trli_entries *a, trli_sparse *product, trli_row_owners *owners)
{
    const int parts = a->s->sim->layout->nlocal;
    trl_err err = TRL_OK;
    for (int p = 0; p < parts; ++p) TRL_TRY(multiply(a, &a->part[p]));
    if (owners) TRL_TRY(trli_row_owners_begin(a->s->sim->ctx, a->coarse, owners));
    if (a->s->sim->layout->npatches == 1)
        take(&a->part[0].product, product);
    else
        TRL_TRY(join(a, product, owners ? owners->owner : NULL));
    if (owners) trli_row_owners_order(owners);
    for (int p = 0; p < parts; ++p) {
        number_columns(&a->part[p]);
        if (owners) read_coarse(&a->part[p], owners);
    }
done:
    return err;
}

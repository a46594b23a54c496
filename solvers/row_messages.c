/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Rows of matrices that go to ranks that need them: those of neighbours, and of small matrices all. */
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "row_owners_impl.h"

static trl_err no_memory(trl_context *ctx)
{
    return trli_no_memory(ctx, NULL, "for coarser grids");
}

/* ---- of neighbours ---- */

/* What goes and what comes, in the order of a traffic. */
typedef struct parcel {
    int *length;        /* [rows] entries of each */
    int *first;         /* [rows] of each */
    int *count, *begin; /* [ranks] of a message's entries */
    trl_gidx *point;    /* [entries] */
    double *value;
} parcel;

static void free_parcel(parcel *p)
{
    trli_free(p->length);
    trli_free(p->count);
    trli_free(p->point);
    trli_free(p->value);
}

static trl_err begin_parcel(trl_context *ctx, int rows, parcel *p)
{
    const size_t ranks = (size_t)trl_context_ranks(ctx);
    p->length = trli_new(ctx, 2 * (size_t)rows + 1, sizeof *p->length);
    p->count = trli_new(ctx, 2 * ranks, sizeof *p->count);
    if (!p->length || !p->count) return no_memory(ctx);
    p->first = p->length + rows;
    p->begin = p->count + ranks;
    return TRL_OK;
}

/* Once lengths are known. */
static trl_err fill_parcel(trl_context *ctx, const int *begin, parcel *p)
{
    int64_t n = 0;
    for (int r = 0; r < trl_context_ranks(ctx); ++r) {
        if (n > INT32_MAX) break;
        p->begin[r] = (int)n;
        for (int i = begin[r]; i < begin[r + 1]; n += p->length[i++]) p->first[i] = (int)n;
        p->count[r] = (int)(n - p->begin[r]);
    }
    p->point = n <= INT32_MAX ? trli_new(ctx, (size_t)n + 1, sizeof *p->point) : NULL;
    p->value = n <= INT32_MAX ? trli_new(ctx, (size_t)n + 1, sizeof *p->value) : NULL;
    return p->point && p->value ? TRL_OK : no_memory(ctx);
}

static void put_rows(const trli_row_traffic *out, int rows, const trli_sparse *a, const trli_row_owners *columns,
                     const parcel *p)
{
    for (int i = 0; i < rows; ++i) {
        const int begin = a->begin[out->row[i]];
        for (int k = 0; k < p->length[i]; ++k) {
            p->point[p->first[i] + k] = columns->point[a->column[begin + k]];
            p->value[p->first[i] + k] = a->value[begin + k];
        }
    }
}

/* The rows of a parcel in the order of their numbers, which is another one than that of ranks. */
static trl_err take_rows(const trli_row_owners *o, trli_sparse *a, trli_row_owners *columns, const parcel *p)
{
    const int others = o->all - o->own;
    int *const place = trli_new(o->ctx, (size_t)others + 1, sizeof *place);
    trl_err err = TRL_OK;
    if (!place || !trli_make_room(o->ctx, &a->begin, (int64_t)o->own + 2, others, &a->begins, sizeof *a->begin))
        TRL_TRY(no_memory(o->ctx));
    for (int i = 0; i < others; ++i) place[o->in.row[i] - o->own] = i;
    for (int i = 0; i < others; ++i) {
        const int from = p->first[place[i]], length = p->length[place[i]], to = a->begin[o->own + i];
        if (to > INT32_MAX - length) TRL_TRY(no_memory(o->ctx));
        for (int k = 0; k < length; ++k) {
            if (to + k >= a->columns_room || to + k >= a->values_room) TRL_TRY(trli_sparse_grow(o->ctx, a, to + k));
            TRL_TRY(trli_row_owners_add(columns, p->point[from + k], &a->column[to + k]));
            a->value[to + k] = p->value[from + k];
        }
        a->begin[o->own + i + 1] = to + length;
    }
    a->rows = o->all;
done:
    trli_free(place);
    return err;
}

trl_err trli_row_owners_append(const trli_row_owners *o, trli_sparse *a, trli_row_owners *columns)
{
    trl_context *ctx = o->ctx;
    const int ranks = trl_context_ranks(ctx), sent = o->out.begin[ranks];
    parcel out = {0}, in = {0};
    trl_err err = TRL_OK;
    TRL_TRY(begin_parcel(ctx, sent, &out));
    TRL_TRY(begin_parcel(ctx, o->all - o->own, &in));
    for (int i = 0; i < sent; ++i) out.length[i] = a->begin[o->out.row[i] + 1] - a->begin[o->out.row[i]];
    for (int r = 0; r < ranks; ++r) {
        out.count[r] = o->out.begin[r + 1] - o->out.begin[r];
        in.count[r] = o->in.begin[r + 1] - o->in.begin[r];
    }
    TRL_TRY(trli_alltoallv(ctx, out.length, out.count, o->out.begin, in.length, in.count, o->in.begin, MPI_INT));
    TRL_TRY(fill_parcel(ctx, o->out.begin, &out));
    TRL_TRY(fill_parcel(ctx, o->in.begin, &in));
    put_rows(&o->out, sent, a, columns, &out);
    TRL_TRY(trli_alltoallv(ctx, out.point, out.count, out.begin, in.point, in.count, in.begin, MPI_INT64_T));
    TRL_TRY(trli_alltoallv_further(ctx, out.value, out.count, out.begin, in.value, in.count, in.begin, MPI_DOUBLE));
    err = take_rows(o, a, columns, &in);
done:
    free_parcel(&out);
    free_parcel(&in);
    return err;
}

/* ---- all of them ---- */

void trli_row_gather_free(trli_row_gather *g)
{
    trli_free(g->begin);
    trli_free(g->row);
    trli_free(g->point);
    trli_free(g->gathered);
    trli_free(g->count);
    *g = (trli_row_gather){0};
}

static int compare_points(const void *a, const void *b)
{
    const trl_gidx x = *(const trl_gidx *)a, y = *(const trl_gidx *)b;
    return (x > y) - (x < y);
}

int trli_row_gather_find(const trli_row_gather *g, trl_gidx point)
{
    const trl_gidx *at = bsearch(&point, g->point, (size_t)g->rows, sizeof point, compare_points);
    return at ? (int)(at - g->point) : -1;
}

/* Counts of rank after rank, and what is before them. */
static void set_begins(const trli_row_gather *g, int *begin)
{
    for (int r = 0, n = 0; r < trl_context_ranks(g->ctx); n += g->count[r++]) begin[r] = n;
}

trl_err trli_row_gather_begin(const trli_row_owners *o, trli_row_gather *g)
{
    trl_context *ctx = o->ctx;
    const int ranks = trl_context_ranks(ctx), me = trl_context_rank(ctx);
    trl_err err = TRL_OK;
    g->ctx = ctx;
    if (!g->count) g->count = trli_new(ctx, 2 * (size_t)ranks, sizeof *g->count);
    if (!g->begin) g->begin = trli_new(ctx, (size_t)ranks + 1, sizeof *g->begin);
    if (!g->count || !g->begin) TRL_TRY(no_memory(ctx));
    int *const own = g->count + ranks;
    for (int r = 0; r < ranks; ++r) own[r] = o->own;
    TRL_TRY(trli_alltoall(ctx, own, g->count));
    for (int r = 0; r < ranks; ++r) g->begin[r + 1] = g->begin[r] + g->count[r];
    g->rows = g->begin[ranks];
    if (!trli_make_room(ctx, &g->row, 0, g->rows, &g->rows_room, sizeof *g->row) ||
        !trli_make_room(ctx, &g->point, 0, 2 * (int64_t)g->rows, &g->points_room, sizeof *g->point) ||
        !trli_make_room(ctx, &g->gathered, 0, g->rows, &g->gathered_room, sizeof *g->gathered))
        TRL_TRY(no_memory(ctx));
    trl_gidx *const all = g->point + g->rows;
    if (o->own > 0) memcpy(all + g->begin[me], o->point, (size_t)o->own * sizeof *all);
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    TRL_TRY(trli_allgatherv_further(ctx, all, g->count, g->begin, MPI_INT64_T));
    memcpy(g->point, all, (size_t)g->rows * sizeof *all);
    qsort(g->point, (size_t)g->rows, sizeof *g->point, compare_points);
    for (int i = 0; i < g->rows; ++i) g->row[i] = trli_row_gather_find(g, all[i]);
done:
    return err;
}

/* How long rows are, and so where they begin. */
static trl_err gather_pattern(const trli_row_gather *g, const trli_sparse *own, trli_sparse *all)
{
    const int me = trl_context_rank(g->ctx);
    int64_t n = 0;
    trl_err err = TRL_OK;
    int *const length = trli_new(g->ctx, (size_t)g->rows + 1, sizeof *length);
    if (!length) TRL_TRY(no_memory(g->ctx));
    TRL_TRY(trli_sparse_reserve_pattern(g->ctx, all, g->rows, g->rows, 0));
    for (int i = 0; i < own->rows; ++i) length[g->begin[me] + i] = own->begin[i + 1] - own->begin[i];
    for (int r = 0; r < trl_context_ranks(g->ctx); ++r) g->count[r] = g->begin[r + 1] - g->begin[r];
    TRL_TRY(trl_context_agree(g->ctx, TRL_OK));
    TRL_TRY(trli_allgatherv_further(g->ctx, length, g->count, g->begin, MPI_INT));
    for (int r = 0; r < trl_context_ranks(g->ctx); ++r) {
        g->count[r] = 0;
        for (int i = g->begin[r]; i < g->begin[r + 1]; ++i) g->count[r] += length[i];
    }
    for (int i = 0; i < g->rows; n += length[i++]) all->begin[g->row[i] + 1] = length[i];
    if (n > INT32_MAX) TRL_TRY(no_memory(g->ctx));
    all->begin[0] = 0;
    for (int i = 0; i < g->rows; ++i) all->begin[i + 1] += all->begin[i];
    err = trli_sparse_reserve(g->ctx, all, (int)n);
done:
    trli_free(length);
    return err;
}

/* Entries of rank after rank go to their rows. */
static trl_err gather_entries(const trli_row_gather *g, const trli_row_owners *o, const trli_sparse *own,
                              trli_sparse *all)
{
    const int n = all->begin[g->rows], me = trl_context_rank(g->ctx), mine = own->begin[own->rows];
    int *const begin = g->count + trl_context_ranks(g->ctx);
    int *const column = trli_new(g->ctx, (size_t)n + 1, sizeof *column);
    double *const value = trli_new(g->ctx, (size_t)n + 1, sizeof *value);
    trl_err err = TRL_OK;
    if (!column || !value) TRL_TRY(no_memory(g->ctx));
    set_begins(g, begin);
    for (int e = 0; e < mine; ++e) column[begin[me] + e] = trli_row_gather_find(g, o->point[own->column[e]]);
    if (mine > 0) memcpy(value + begin[me], own->value, (size_t)mine * sizeof *value);
    TRL_TRY(trl_context_agree(g->ctx, TRL_OK));
    TRL_TRY(trli_allgatherv_further(g->ctx, column, g->count, begin, MPI_INT));
    TRL_TRY(trli_allgatherv_further(g->ctx, value, g->count, begin, MPI_DOUBLE));
    for (int i = 0, from = 0; i < g->rows; ++i) {
        const int to = all->begin[g->row[i]], length = all->begin[g->row[i] + 1] - to;
        memcpy(all->column + to, column + from, (size_t)length * sizeof *column);
        memcpy(all->value + to, value + from, (size_t)length * sizeof *value);
        from += length;
    }
done:
    trli_free(column);
    trli_free(value);
    return err;
}

trl_err trli_row_gather_matrix(const trli_row_gather *g, const trli_row_owners *o, trli_sparse *a)
{
    trli_sparse all = {0};
    trl_err err = TRL_OK;
    TRL_TRY(gather_pattern(g, a, &all));
    TRL_TRY(gather_entries(g, o, a, &all));
    trli_sparse_free(a);
    *a = all;
    all = (trli_sparse){0};
done:
    trli_sparse_free(&all);
    return err;
}

double *trli_row_gather_own(const trli_row_gather *g)
{
    return g->gathered + g->begin[trl_context_rank(g->ctx)];
}

trl_err trli_row_gather_values(trli_row_gather *g, double *values)
{
    trl_err err = TRL_OK;
    for (int r = 0; r < trl_context_ranks(g->ctx); ++r) g->count[r] = g->begin[r + 1] - g->begin[r];
    TRL_TRY(trli_allgatherv_further(g->ctx, g->gathered, g->count, g->begin, MPI_DOUBLE));
    for (int i = 0; i < g->rows; ++i) values[g->row[i]] = g->gathered[i];
done:
    return err;
}

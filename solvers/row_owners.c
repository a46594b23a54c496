/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which rank computes which rows, and messages of the values that ranks read of each other's rows. */
#include <limits.h>
#include <string.h>

#include "context_impl.h"
#include "row_owners_impl.h"

enum { TAG = 1 /* those of exchanges of ghosts begin higher */ };

static trl_err no_memory(const trli_row_owners *o)
{
    return trli_no_memory(o->ctx, NULL, "for coarser grids");
}

static void free_traffic(trli_row_traffic *t)
{
    trli_free(t->begin);
    trli_free(t->row);
    trli_free(t->values);
}

/* What a lost rank sends and receives stays with MPI. */
void trli_row_owners_free(trli_row_owners *o)
{
    if (!o->ctx || trl_context_lost(o->ctx)) return;
    trli_free(o->owner);
    trli_free(o->row);
    trli_free(o->begin);
    trli_free(o->reads);
    trli_free(o->count);
    trli_free(o->request);
    trli_free(o->gathered);
    free_traffic(&o->in);
    free_traffic(&o->out);
    *o = (trli_row_owners){0};
}

static trl_err make_lists(trli_row_owners *o)
{
    const size_t ranks = (size_t)trl_context_ranks(o->ctx);
    if (o->request) return TRL_OK;
    o->begin = trli_new(o->ctx, ranks + 1, sizeof *o->begin);
    o->in.begin = trli_new(o->ctx, ranks + 1, sizeof *o->in.begin);
    o->out.begin = trli_new(o->ctx, ranks + 1, sizeof *o->out.begin);
    o->count = trli_new(o->ctx, 2 * ranks, sizeof *o->count);
    o->request = trli_new(o->ctx, 2 * ranks, sizeof *o->request);
    return o->begin && o->in.begin && o->out.begin && o->count && o->request ? TRL_OK : no_memory(o);
}

trl_err trli_row_owners_begin(trl_context *ctx, int rows, trli_row_owners *o)
{
    trl_err err = TRL_OK;
    o->ctx = ctx;
    o->rows = rows;
    TRL_TRY(make_lists(o));
    if (!trli_make_room(ctx, &o->owner, 0, rows, &o->owners_room, sizeof *o->owner) ||
        !trli_make_room(ctx, &o->row, 0, rows, &o->rows_room, sizeof *o->row) ||
        !trli_make_room(ctx, &o->reads, 0, rows, &o->reads_room, sizeof *o->reads))
        TRL_TRY(no_memory(o));
    for (int i = 0; i < rows; ++i) o->reads[i] = false;
done:
    return err;
}

void trli_row_owners_order(trli_row_owners *o)
{
    const int ranks = trl_context_ranks(o->ctx);
    int *end = o->begin + 1; /* of the rank before, then of each */
    for (int r = 0; r <= ranks; ++r) o->begin[r] = 0;
    for (int i = 0; i < o->rows; ++i)
        if (o->owner[i] + 1 < ranks) ++end[o->owner[i] + 1];
    for (int r = 1; r < ranks; ++r) end[r] += end[r - 1];
    for (int i = 0; i < o->rows; ++i) o->row[end[o->owner[i]]++] = i;
}

int trli_row_owners_own(const trli_row_owners *o, const int **row)
{
    const int me = trl_context_rank(o->ctx);
    *row = o->row + o->begin[me];
    return o->begin[me + 1] - o->begin[me];
}

void trli_row_owners_read(trli_row_owners *o, const trli_sparse *a, int row)
{
    const int me = trl_context_rank(o->ctx);
    for (int e = a->begin[row]; e < a->begin[row + 1]; ++e)
        if (o->owner[a->column[e]] != me) o->reads[a->column[e]] = true;
}

/* ---- who sends what ---- */

static trl_err list_received(trli_row_owners *o)
{
    const int ranks = trl_context_ranks(o->ctx);
    trli_row_traffic *in = &o->in;
    int n = 0;
    for (int i = 0; i < o->rows; ++i) n += o->reads[i];
    if (!trli_make_room(o->ctx, &in->row, 0, n, &in->rows_room, sizeof *in->row) ||
        !trli_make_room(o->ctx, &in->values, 0, n, &in->values_room, sizeof *in->values))
        return no_memory(o);
    n = 0;
    for (int r = 0; r < ranks; ++r) {
        for (int i = o->begin[r]; i < o->begin[r + 1]; ++i)
            if (o->reads[o->row[i]]) in->row[n++] = o->row[i];
        in->begin[r + 1] = n;
    }
    return TRL_OK;
}

/* Each rank is told by those that read its rows which these are. */
trl_err trli_row_owners_connect(trli_row_owners *o)
{
    const int ranks = trl_context_ranks(o->ctx);
    trli_row_traffic *in = &o->in, *out = &o->out;
    int *count = o->count, *sent = count + ranks;
    trl_err err = TRL_OK;
    TRL_TRY(list_received(o));
    for (int r = 0; r < ranks; ++r) count[r] = in->begin[r + 1] - in->begin[r];
    TRL_TRY(trli_alltoall(o->ctx, count, sent));
    for (int r = 0; r < ranks; ++r) out->begin[r + 1] = out->begin[r] + sent[r];
    const int n = out->begin[ranks];
    if (!trli_make_room(o->ctx, &out->row, 0, n, &out->rows_room, sizeof *out->row) ||
        !trli_make_room(o->ctx, &out->values, 0, n, &out->values_room, sizeof *out->values))
        TRL_TRY(no_memory(o));
    err = trli_alltoallv(o->ctx, in->row, count, in->begin, out->row, sent, out->begin, MPI_INT);
done:
    return err;
}

/* ---- messages ---- */

static int values_of(const trli_row_traffic *t, int rank)
{
    return t->begin[rank + 1] - t->begin[rank];
}

/* Begin all messages. */
static trl_err start(trli_row_owners *o, int *n)
{
    trl_context *ctx = o->ctx;
    const trli_row_traffic *in = &o->in, *out = &o->out;
    trl_err err = TRL_OK;
    *n = 0;
    for (int r = 0; r < trl_context_ranks(ctx); ++r)
        if (values_of(in, r) > 0)
            TRL_TRY(trli_mpi_check(ctx,
                                   MPI_Irecv(in->values + in->begin[r], values_of(in, r), MPI_DOUBLE, r, TAG, ctx->comm,
                                             &o->request[(*n)++]),
                                   "MPI_Irecv"));
    for (int r = 0; r < trl_context_ranks(ctx); ++r)
        if (values_of(out, r) > 0)
            TRL_TRY(trli_mpi_check(ctx,
                                   MPI_Isend(out->values + out->begin[r], values_of(out, r), MPI_DOUBLE, r, TAG,
                                             ctx->comm, &o->request[(*n)++]),
                                   "MPI_Isend"));
done:
    return err;
}

static trl_err await(trli_row_owners *o, int n)
{
    int all = n == 0;
    trl_err err = TRL_OK;
    for (int looks = 0; !all; looks += looks < INT_MAX) {
        if (trl_context_lost(o->ctx)) return TRL_ERR_MPI; /* the others may send no more */
        TRL_TRY(trli_mpi_check(o->ctx, MPI_Testall(n, o->request, &all, MPI_STATUSES_IGNORE), "MPI_Testall"));
        if (all) break;
        trli_notice_look(o->ctx, false);
        trli_agree_rest(o->ctx, looks);
    }
done:
    return err;
}

trl_err trli_row_owners_exchange(trli_row_owners *o, double *values)
{
    const int ranks = trl_context_ranks(o->ctx);
    trl_err err = TRL_OK;
    int n;
    if (trl_context_lost(o->ctx)) return TRL_ERR_MPI;
    for (int i = 0; i < o->out.begin[ranks]; ++i) o->out.values[i] = values[o->out.row[i]];
    TRL_TRY(start(o, &n));
    TRL_TRY(await(o, n));
    for (int i = 0; i < o->in.begin[ranks]; ++i) values[o->in.row[i]] = o->in.values[i];
done:
    return err;
}

trl_err trli_row_owners_reserve(trli_row_owners *o)
{
    return trli_make_room(o->ctx, &o->gathered, 0, o->rows, &o->gathered_room, sizeof *o->gathered) ? TRL_OK
                                                                                                    : no_memory(o);
}

trl_err trli_row_owners_gather(trli_row_owners *o, double *values)
{
    const int *row;
    const int n = trli_row_owners_own(o, &row), ranks = trl_context_ranks(o->ctx);
    double *own = o->gathered + (row - o->row);
    trl_err err = TRL_OK;
    for (int i = 0; i < n; ++i) own[i] = values[row[i]];
    for (int r = 0; r < ranks; ++r) o->count[r] = o->begin[r + 1] - o->begin[r];
    TRL_TRY(trli_allgatherv_further(o->ctx, o->gathered, o->count, o->begin, MPI_DOUBLE));
    for (int i = 0; i < o->rows; ++i) values[o->row[i]] = o->gathered[i];
done:
    return err;
}

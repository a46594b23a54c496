/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which rank owns which rows, and messages of the values that ranks read of each other's rows. */
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
    trli_free(o->point);
    trli_free(o->rank);
    trli_free(o->slot);
    trli_free(o->count);
    trli_free(o->request);
    free_traffic(&o->in);
    free_traffic(&o->out);
    *o = (trli_row_owners){0};
}

static trl_err make_lists(trli_row_owners *o)
{
    const size_t ranks = (size_t)trl_context_ranks(o->ctx);
    if (o->request) return TRL_OK;
    o->in.begin = trli_new(o->ctx, ranks + 1, sizeof *o->in.begin);
    o->out.begin = trli_new(o->ctx, ranks + 1, sizeof *o->out.begin);
    o->count = trli_new(o->ctx, 2 * ranks, sizeof *o->count);
    o->request = trli_new(o->ctx, 2 * ranks, sizeof *o->request);
    return o->in.begin && o->out.begin && o->count && o->request ? TRL_OK : no_memory(o);
}

trl_err trli_row_owners_begin(trl_context *ctx, const trl_layout *layout, const int n[3], int own, trli_row_owners *o)
{
    trl_err err = TRL_OK;
    o->ctx = ctx;
    o->layout = layout;
    memcpy(o->n, n, sizeof o->n);
    o->own = o->all = own;
    TRL_TRY(make_lists(o));
    if (!trli_make_room(ctx, &o->point, 0, own, &o->points_room, sizeof *o->point)) TRL_TRY(no_memory(o));
    for (int i = 0; i < o->slots; ++i) o->slot[i] = -1;
done:
    return err;
}

trl_err trli_row_owners_copy(const trli_row_owners *from, trli_row_owners *o)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_row_owners_begin(from->ctx, from->layout, from->n, from->own, o));
    if (from->own > 0) memcpy(o->point, from->point, (size_t)from->own * sizeof *o->point);
    for (int i = from->own; i < from->all; ++i) {
        int row;
        TRL_TRY(trli_row_owners_add(o, from->point[i], &row));
    }
done:
    return err;
}

/* ---- rows by points ---- */

int trli_row_owners_rank(const trli_row_owners *o, trl_gidx point)
{
    const trl_gidx at[3] = {point % o->n[0], point / o->n[0] % o->n[1], point / o->n[0] / o->n[1]};
    trl_gidx cell[3];
    for (int a = 0; a < 3; ++a) /* the last patch has points on the final plane */
        cell[a] = at[a] < o->layout->grid.cells[a] ? at[a] : o->layout->grid.cells[a] - 1;
    return trl_layout_patch(o->layout, trl_layout_owner(o->layout, cell)).rank;
}

/* Where a point's slot is, or would be. */
static int slot_of(const trli_row_owners *o, trl_gidx point)
{
    const uint64_t spread = 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio */
    int at = (int)((uint64_t)point * spread >> 33) & (o->slots - 1);
    while (o->slot[at] >= 0 && o->point[o->slot[at]] != point) at = (at + 1) & (o->slots - 1);
    return at;
}

int trli_row_owners_find(const trli_row_owners *o, trl_gidx point)
{
    int low = 0, high = o->own;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (o->point[middle] < point)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < o->own && o->point[low] == point) return low;
    return o->slots > 0 ? o->slot[slot_of(o, point)] : -1;
}

/* At most half of the slots are in use. */
static trl_err make_slots(trli_row_owners *o)
{
    enum { LEAST = 64 };
    const int others = o->all - o->own + 1, slots = o->slots > 0 ? 2 * o->slots : LEAST;
    if (2 * (int64_t)others <= o->slots) return TRL_OK;
    int *const slot = others < INT32_MAX / 4 ? trli_new(o->ctx, (size_t)slots, sizeof *slot) : NULL;
    if (!slot) return no_memory(o);
    trli_free(o->slot);
    o->slot = slot;
    o->slots = slots;
    for (int i = 0; i < slots; ++i) slot[i] = -1;
    for (int i = o->own; i < o->all; ++i) slot[slot_of(o, o->point[i])] = i;
    return TRL_OK;
}

trl_err trli_row_owners_add(trli_row_owners *o, trl_gidx point, int *row)
{
    trl_err err = TRL_OK;
    *row = trli_row_owners_find(o, point);
    if (*row >= 0) return TRL_OK;
    TRL_TRY(make_slots(o));
    if (!trli_make_room(o->ctx, &o->point, o->all, 1, &o->points_room, sizeof *o->point) ||
        !trli_make_room(o->ctx, &o->rank, o->all - o->own, 1, &o->ranks_room, sizeof *o->rank))
        TRL_TRY(no_memory(o));
    *row = o->all++;
    o->slot[slot_of(o, point)] = *row; /* before its point is there: no other one has it */
    o->point[*row] = point;
    o->rank[*row - o->own] = trli_row_owners_rank(o, point);
done:
    return err;
}

/* ---- who sends what ---- */

static int end_of(const int *begin, int ranks)
{
    return begin[ranks];
}

static trl_err make_traffic_room(const trli_row_owners *o, trli_row_traffic *t)
{
    const int n = end_of(t->begin, trl_context_ranks(o->ctx));
    return trli_make_room(o->ctx, &t->row, 0, n, &t->rows_room, sizeof *t->row) &&
                   trli_make_room(o->ctx, &t->values, 0, n, &t->values_room, sizeof *t->values)
               ? TRL_OK
               : no_memory(o);
}

/* Others' rows, those of rank after rank. */
static trl_err list_received(trli_row_owners *o)
{
    const int ranks = trl_context_ranks(o->ctx), others = o->all - o->own;
    trli_row_traffic *in = &o->in;
    trl_err err = TRL_OK;
    for (int r = 0; r <= ranks; ++r) in->begin[r] = 0;
    for (int i = 0; i < others; ++i) ++in->begin[o->rank[i] + 1];
    for (int r = 0; r < ranks; ++r) in->begin[r + 1] += in->begin[r];
    TRL_TRY(make_traffic_room(o, in));
    for (int r = 0; r < ranks; ++r) o->count[r] = 0;
    for (int i = 0; i < others; ++i) in->row[in->begin[o->rank[i]] + o->count[o->rank[i]]++] = o->own + i;
done:
    return err;
}

/* Each rank is told by those that read its rows which these are. */
trl_err trli_row_owners_connect(trli_row_owners *o)
{
    const int ranks = trl_context_ranks(o->ctx);
    trli_row_traffic *in = &o->in, *out = &o->out;
    int *count = o->count, *sent = count + ranks;
    trl_gidx *asked = NULL, *wanted = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_received(o));
    TRL_TRY(trli_alltoall(o->ctx, count, sent));
    for (int r = 0; r < ranks; ++r) out->begin[r + 1] = out->begin[r] + sent[r];
    TRL_TRY(make_traffic_room(o, out));
    asked = trli_new(o->ctx, (size_t)in->begin[ranks] + 1, sizeof *asked);
    wanted = trli_new(o->ctx, (size_t)out->begin[ranks] + 1, sizeof *wanted);
    if (!asked || !wanted) TRL_TRY(no_memory(o));
    for (int i = 0; i < in->begin[ranks]; ++i) asked[i] = o->point[in->row[i]];
    TRL_TRY(trli_alltoallv(o->ctx, asked, count, in->begin, wanted, sent, out->begin, MPI_INT64_T));
    for (int i = 0; i < out->begin[ranks]; ++i) out->row[i] = trli_row_owners_find(o, wanted[i]);
done:
    trli_free(asked);
    trli_free(wanted);
    return err;
}

/* Points of own rows, for each rank that owns columns of theirs. list NULL: how many these are. */
static void list_readers(const trli_row_owners *o, const trli_sparse *a, int *last, int *count, const int *begin,
                         trl_gidx *list)
{
    const int ranks = trl_context_ranks(o->ctx);
    for (int r = 0; r < ranks; ++r) {
        last[r] = -1;
        count[r] = 0;
    }
    for (int i = 0; i < o->own; ++i)
        for (int e = a->begin[i]; e < a->begin[i + 1]; ++e) {
            const int r = a->column[e] < o->own ? -1 : o->rank[a->column[e] - o->own];
            if (r < 0 || last[r] == i) continue;
            last[r] = i;
            if (list) list[begin[r] + count[r]] = o->point[i];
            ++count[r];
        }
}

trl_err trli_row_owners_add_readers(trli_row_owners *o, const trli_sparse *a)
{
    const int ranks = trl_context_ranks(o->ctx);
    int *last = o->in.begin + 1, *sent_begin = NULL, *count = o->count, *received = count + ranks;
    int *begin = o->out.begin, row;
    trl_gidx *list = NULL, *readers = NULL;
    trl_err err = TRL_OK;
    sent_begin = trli_new(o->ctx, (size_t)ranks + 1, sizeof *sent_begin);
    if (!sent_begin) TRL_TRY(no_memory(o));
    list_readers(o, a, last, count, NULL, NULL);
    TRL_TRY(trli_alltoall(o->ctx, count, received));
    begin[0] = 0;
    for (int r = 0; r < ranks; ++r) {
        sent_begin[r + 1] = sent_begin[r] + count[r];
        begin[r + 1] = begin[r] + received[r];
    }
    list = trli_new(o->ctx, (size_t)sent_begin[ranks] + 1, sizeof *list);
    readers = trli_new(o->ctx, (size_t)begin[ranks] + 1, sizeof *readers);
    if (!list || !readers) TRL_TRY(no_memory(o));
    list_readers(o, a, last, count, sent_begin, list);
    TRL_TRY(trli_alltoallv(o->ctx, list, count, sent_begin, readers, received, begin, MPI_INT64_T));
    for (int i = 0; i < begin[ranks]; ++i) TRL_TRY(trli_row_owners_add(o, readers[i], &row));
done:
    trli_free(sent_begin);
    trli_free(list);
    trli_free(readers);
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
            TRL_TRY(trli_send_begin(ctx, out->values + out->begin[r], values_of(out, r), MPI_DOUBLE, r, TAG,
                                    &o->request[(*n)++]));
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

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values move between two sets of boxes that each cover the grid. What two boxes have in common goes from one to the
 * other: by a copy, if the rank of the first one reaches the second, else in one message for each pair of ranks. */
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "shuffle_impl.h"

static bool find_common(const trli_shuffle_part *a, const trli_shuffle_part *b, trli_common *c)
{
    *c = (trli_common){.array = {a->array, b->array}};
    for (int k = 0; k < 3; ++k) {
        c->lo[k] = a->lo[k] > b->lo[k] ? a->lo[k] : b->lo[k];
        c->hi[k] = a->hi[k] < b->hi[k] ? a->hi[k] : b->hi[k];
        if (c->lo[k] >= c->hi[k]) return false;
    }
    return true;
}

/* Of a part in a message, which lies there without gaps but for what rows are filled up by. */
static ptrdiff_t row_values(const trli_shuffle *s, const trli_common *c)
{
    return ((ptrdiff_t)c->hi[0] - c->lo[0] + s->unit - 1) / s->unit * s->unit;
}

static ptrdiff_t plane_values(const trli_shuffle *s, const trli_common *c)
{
    return row_values(s, c) * (c->hi[1] - c->lo[1]);
}

static trli_view packed(const trli_shuffle *s, double *at, const trli_common *c)
{
    trli_view v = {.stride = {1, row_values(s, c), plane_values(s, c)}};
    v.at = at - c->lo[0] - c->lo[1] * v.stride[1] - c->lo[2] * v.stride[2];
    return v;
}

/* Add what boxes on a rank have in common with those on another, or on itself. Both ranks list it in the same order. */
static trl_err add_parts(trli_shuffle *s, const trli_boxes *from, const trli_boxes *to, bool beside, int source,
                         int target, trli_common **list, int *n, int *capacity, ptrdiff_t *values)
{
    trli_common c;
    for (int i = 0; i < from->n; ++i)
        for (int j = 0; j < to->n && from->part[i].rank == source; ++j) {
            if (to->part[j].rank != target || !find_common(&from->part[i], &to->part[j], &c)) continue;
            if (!trli_make_room(s->ctx, list, *n, 1, capacity, sizeof **list))
                return trli_no_memory(s->ctx, NULL, "for a direct solver");
            c.at = *values;
            c.other = source == trl_context_rank(s->ctx) ? target : source;
            c.beside = beside;
            *values += plane_values(s, &c) * (c.hi[2] - c.lo[2]);
            (*list)[(*n)++] = c;
        }
    return TRL_OK;
}

static trl_err find_traffic(trli_shuffle *s, const trli_boxes *from, const trli_boxes *beside, const trli_boxes *to,
                            int side)
{
    const int me = trl_context_rank(s->ctx), ranks = trl_context_ranks(s->ctx);
    trli_shuffle_traffic *t = &s->away[side];
    int capacity = 0;
    void *memory = NULL;
    trl_err err = TRL_OK;
    t->begin = trli_new(s->ctx, 3 * (size_t)ranks, sizeof *t->begin);
    if (!t->begin) return trli_no_memory(s->ctx, NULL, "for a direct solver");
    t->count = t->begin + ranks;
    t->most = t->count + ranks;
    for (int other = 0; other < ranks; ++other) {
        const int source = side ? other : me, target = side ? me : other;
        t->begin[other] = (int)t->values;
        if (other == me || (s->reach && s->reach[other])) continue;
        TRL_TRY(add_parts(s, from, to, false, source, target, &t->part, &t->n, &capacity, &t->values));
        t->count[other] = (int)t->values - t->begin[other];
        TRL_TRY(add_parts(s, beside, to, true, source, target, &t->part, &t->n, &capacity, &t->values));
        if (t->values > INT32_MAX)
            TRL_TRY(trl_fail(s->ctx, TRL_ERR_INPUT, NULL,
                             "a direct solver cannot move %td values of one rank: use more ranks", t->values));
        t->most[other] = (int)t->values - t->begin[other];
    }
    if (s->device) goto done;
    TRL_TRY(trl_memory_alloc(s->ctx, (size_t)(t->values + 1) * sizeof(double), "messages of a direct solver", &memory));
    t->buffer = memory;
    memset(memory, 0, (size_t)(t->values + 1) * sizeof(double)); /* what rows are filled up by is computed on */
done:
    return err;
}

/* Whether boxes of different ranks have something in common, and not all ranks reach one another: the same on all
 * ranks. */
static bool find_messages(const trli_shuffle *s, const trli_boxes *from, const trli_boxes *to)
{
    trli_common c;
    bool all = s->reach != NULL;
    for (int r = 0; all && r < trl_context_ranks(s->ctx); ++r) all = s->reach[r];
    if (all) return false;
    for (int i = 0; i < from->n; ++i)
        for (int j = 0; j < to->n; ++j)
            if (from->part[i].rank != to->part[j].rank && find_common(&from->part[i], &to->part[j], &c)) return true;
    return false;
}

/* What this rank moves by itself: to boxes that it reaches, and back from there. */
static trl_err find_own(trli_shuffle *s, const trli_boxes *from, const trli_boxes *beside, const trli_boxes *to)
{
    const int me = trl_context_rank(s->ctx), ranks = trl_context_ranks(s->ctx);
    int capacity = 0;
    ptrdiff_t values = 0;
    trl_err err = TRL_OK;
    for (int other = 0; other < ranks; ++other) {
        if (other != me && !(s->reach && s->reach[other])) continue;
        TRL_TRY(add_parts(s, from, to, false, me, other, &s->own, &s->nown, &capacity, &values));
        TRL_TRY(add_parts(s, beside, to, true, me, other, &s->own, &s->nown, &capacity, &values));
    }
done:
    return err;
}

trl_err trli_shuffle_create(trl_context *ctx, trl_device *device, const bool *reach, int unit, const trli_boxes *from,
                            const trli_boxes *beside, const trli_boxes *to, trli_shuffle **shuffle)
{
    trl_err err = TRL_OK;
    trli_shuffle *s = *shuffle = trli_new(ctx, 1, sizeof *s);
    if (!s) return trli_no_memory(ctx, NULL, "for a direct solver");
    s->ctx = ctx;
    s->device = device;
    s->reach = reach;
    s->unit = unit;
    s->request = MPI_REQUEST_NULL;
    s->messages = find_messages(s, from, to) || find_messages(s, beside, to);
    TRL_TRY(find_own(s, from, beside, to));
    for (int side = 0; side < 2 && trl_context_ranks(ctx) > 1; ++side) TRL_TRY(find_traffic(s, from, beside, to, side));
done:
    return err;
}

void trli_shuffle_destroy(trli_shuffle **shuffle)
{
    const double patience = 2; /* s; a rank that failed may never send */
    trli_shuffle *s = *shuffle;
    *shuffle = NULL;
    if (!s) return;
    (void)!trli_request_await(s->ctx, &s->request, patience);
    if (s->request != MPI_REQUEST_NULL) return; /* MPI may still write */
    if (s->device) trli_shuffle_disconnect(s);
    for (int side = 0; side < 2; ++side) {
        void *memory = s->away[side].buffer;
        trl_memory_free(s->ctx, &memory);
        trli_free(s->away[side].part);
        trli_free(s->away[side].begin);
    }
    trli_free(s->own);
    trli_free(s);
}

/* ---- copies ---- */

/* Parts on their way. */
typedef struct copying {
    const trli_shuffle *shuffle;
    const trli_shuffle_traffic *message;
    const trli_common *part; /* [n] */
    int n;
    trli_shuffle_way way;
    const trli_view *from, *to; /* by array; NULL: the message */
    bool add;
} copying;

static bool moves(const trli_common *part, trli_shuffle_way way)
{
    return !part->beside || way == TRLI_SHUFFLE_BACK_TO_ALL;
}

static trli_view in_buffer(const trli_shuffle *s, const trli_shuffle_traffic *t, const trli_common *c)
{
    return packed(s, t->buffer + c->at, c);
}

static int64_t rows_of(const copying *c, const trli_common *part)
{
    return moves(part, c->way) ? (int64_t)(part->hi[1] - part->lo[1]) * (part->hi[2] - part->lo[2]) : 0;
}

static int64_t all_rows(const copying *c)
{
    int64_t rows = 0;
    for (int i = 0; i < c->n; ++i) rows += rows_of(c, &c->part[i]);
    return rows;
}

static void move_row(double *restrict to, const double *restrict from, int n, bool add)
{
    if (!add)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        for (int i = 0; i < n; ++i) to[i] += from[i];
}

/* Rows begin to end of a part. */
static void copy_rows(const copying *c, const trli_common *part, int64_t begin, int64_t end)
{
    const bool back = c->way != TRLI_SHUFFLE_THERE;
    const trli_view from = c->from ? c->from[part->array[back]] : in_buffer(c->shuffle, c->message, part);
    const trli_view to = c->to ? c->to[part->array[!back]] : in_buffer(c->shuffle, c->message, part);
    const int *lo = part->lo, ny = part->hi[1] - lo[1], n = part->hi[0] - lo[0];
    for (int64_t row = begin; row < end; ++row) {
        const ptrdiff_t j = lo[1] + row % ny, k = lo[2] + row / ny;
        move_row(to.at + lo[0] + j * to.stride[1] + k * to.stride[2],
                 from.at + lo[0] + j * from.stride[1] + k * from.stride[2], n, c->add);
    }
}

/* Chunks are rows of all parts. */
static trl_err copy_chunk(void *data, int chunk, int chunks, int worker)
{
    const copying *c = data;
    const int64_t all = all_rows(c), begin = all * chunk / chunks, end = all * (chunk + 1) / chunks;
    (void)worker;
    for (int64_t i = 0, first = 0; i < c->n && first < end; ++i) {
        const int64_t rows = rows_of(c, &c->part[i]), behind = first + rows;
        if (rows > 0 && behind > begin)
            copy_rows(c, &c->part[i], begin > first ? begin - first : 0, end < behind ? end - first : rows);
        first = behind;
    }
    return TRL_OK;
}

static trl_err copy_all(const copying *c, trl_loop *loop)
{
    const int64_t rows = all_rows(c);
    const int most = 4 * trl_loop_workers(loop);
    copying work = *c;
    return trl_loop_run(loop, rows < most ? (int)rows : most, copy_chunk, &work);
}

/* On the way back what was received is sent. */
static const trli_shuffle_traffic *traffic_of(const trli_shuffle *s, trli_shuffle_way way, bool in)
{
    return &s->away[in == (way == TRLI_SHUFFLE_THERE)];
}

int trli_shuffle_parts(const trli_shuffle *s, trli_shuffle_way way, trli_shuffle_kind kind, const trli_common **part)
{
    const trli_shuffle_traffic *t = traffic_of(s, way, kind == TRLI_SHUFFLE_RECEIVED);
    *part = kind == TRLI_SHUFFLE_OWN ? s->own : t->part;
    return kind == TRLI_SHUFFLE_OWN ? s->nown : t->n;
}

trli_view trli_shuffle_message(const trli_shuffle *s, trli_shuffle_way way, trli_shuffle_kind kind,
                               const trli_common *part)
{
    const bool back = way != TRLI_SHUFFLE_THERE;
    const trli_shuffle_traffic *t = traffic_of(s, way, kind == TRLI_SHUFFLE_RECEIVED);
    if (!s->near) return in_buffer(s, t, part);
    if (kind == TRLI_SHUFFLE_SENT) return packed(s, s->near + (back ? s->away[0].values : 0) + part->at, part);
    return packed(s, s->far[back][part->other] + part->at - t->begin[part->other], part);
}

bool trli_shuffle_has_messages(const trli_shuffle *s)
{
    return s->messages;
}

trl_err trli_shuffle_exchange(trli_shuffle *s, trli_shuffle_way way)
{
    const trli_shuffle_traffic *out = traffic_of(s, way, false), *in = traffic_of(s, way, true);
    const bool all = way == TRLI_SHUFFLE_BACK_TO_ALL;
    if (!s->messages) return TRL_OK;
    if (s->near) return trli_barrier_further(s->ctx);
    return trli_alltoallv_further(s->ctx, out->buffer, all ? out->most : out->count, out->begin, in->buffer,
                                  all ? in->most : in->count, in->begin, MPI_DOUBLE);
}

trl_err trli_shuffle_begin(trli_shuffle *s, trli_shuffle_way way)
{
    const trli_shuffle_traffic *out = traffic_of(s, way, false), *in = traffic_of(s, way, true);
    return s->messages ? trli_alltoallv_begin(s->ctx, out->buffer, out->count, out->begin, in->buffer, in->count,
                                              in->begin, MPI_DOUBLE, &s->request)
                       : TRL_OK;
}

trl_err trli_shuffle_end(trli_shuffle *s)
{
    return trli_request_await(s->ctx, &s->request, 0);
}

trl_err trli_shuffle_pack(trli_shuffle *s, trli_shuffle_way way, const trli_view *from, trl_loop *loop)
{
    const trli_shuffle_traffic *out = traffic_of(s, way, false);
    const copying c = {.shuffle = s, .message = out, .part = out->part, .n = out->n, .way = way, .from = from};
    return copy_all(&c, loop);
}

trl_err trli_shuffle_copy(trli_shuffle *s, trli_shuffle_way way, bool add, const trli_view *from, const trli_view *to,
                          trl_loop *loop)
{
    const copying c = {.shuffle = s, .part = s->own, .n = s->nown, .way = way, .from = from, .to = to, .add = add};
    return copy_all(&c, loop);
}

trl_err trli_shuffle_unpack(trli_shuffle *s, trli_shuffle_way way, bool add, const trli_view *to, trl_loop *loop)
{
    const trli_shuffle_traffic *in = traffic_of(s, way, true);
    const copying c = {.shuffle = s, .message = in, .part = in->part, .n = in->n, .way = way, .to = to, .add = add};
    return copy_all(&c, loop);
}

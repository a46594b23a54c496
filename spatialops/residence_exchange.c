/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Exchange of ghosts of a field that lives on a device on all ranks: its kernels copy between patches, and pack and
 * unpack messages, in the memory of the receiver's device where that is possible (exchange_device.c). */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <context_impl.h>

#include "exchange_impl.h"
#include "field_impl.h"
#include "residence_impl.h"

/* Pieces that are copied by one launch. */
typedef struct batch {
    trl_field *field;
    int n;
    trli_piece_copy piece[TRLI_FIELD_PIECES];
} batch;

static trl_err flush(batch *b)
{
    trl_field_device *device = b->field->device;
    const int n = b->n;
    b->n = 0;
    return n > 0 ? device->ops->copy_pieces(device, n, b->piece) : TRL_OK;
}

static trl_err add(batch *b, const trli_piece_copy *piece)
{
    b->piece[b->n++] = *piece;
    return b->n == TRLI_FIELD_PIECES ? flush(b) : TRL_OK;
}

static void place(const trl_field *field, int p, const trl_lidx at[3], double **value, ptrdiff_t stride[3])
{
    trl_array array = field->array[p];
    ptrdiff_t origin;
    (void)trli_lay_out(&array, field->layout->grid.dim, field->line, &origin);
    *value = (double *)field->residence[p].there + origin + trl_array_offset(&array, at[0], at[1], at[2]);
    memcpy(stride, array.stride, sizeof array.stride);
}

/* Where a piece of a message lies packed, after memory of the message. */
static void place_packed(unsigned char *memory, const trli_message *m, const trli_exchange_piece *t, double **value,
                         ptrdiff_t stride[3])
{
    *value = (double *)(void *)(memory + (t->offset - m->offset));
    stride[0] = 1;
    stride[1] = t->extent[0];
    stride[2] = stride[1] * t->extent[1];
}

static trli_piece_copy piece_of(const trli_exchange_piece *t)
{
    return (trli_piece_copy){.extent = {t->extent[0], t->extent[1], t->extent[2]}};
}

static trl_err copy_patches(batch *b, const trl_exchange *exchange)
{
    trl_err err = TRL_OK;
    for (int n = 0; n < exchange->copies.ntransfers; ++n) {
        const trli_exchange_piece *t = &exchange->copies.transfer[n];
        trli_piece_copy piece = piece_of(t);
        place(b->field, t->source_local, t->from, &piece.from, piece.from_stride);
        place(b->field, t->target_local, t->to, &piece.to, piece.to_stride);
        TRL_TRY(add(b, &piece));
    }
    err = flush(b);
done:
    return err;
}

static trl_err pack(batch *b, const trl_exchange *exchange, int message, void *stream)
{
    const trli_message *m = &exchange->sends.message[message];
    unsigned char *memory = trli_exchange_target(exchange, message);
    trl_err err = TRL_OK;
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *t = &exchange->sends.transfer[n];
        trli_piece_copy piece = piece_of(t);
        place(b->field, t->source_local, t->from, &piece.from, piece.from_stride);
        place_packed(memory, m, t, &piece.to, piece.to_stride);
        TRL_TRY(add(b, &piece));
    }
    TRL_TRY(flush(b));
    err = trli_exchange_packed(exchange, message, stream);
done:
    return err;
}

static trl_err unpack(batch *b, const trl_exchange *exchange, int message, void *stream)
{
    const trli_message *m = &exchange->receives.message[message];
    unsigned char *memory;
    trl_err err;
    TRL_TRY(trli_exchange_source(exchange, message, stream, &memory));
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *t = &exchange->receives.transfer[n];
        trli_piece_copy piece = piece_of(t);
        place_packed(memory, m, t, &piece.from, piece.from_stride);
        place(b->field, t->target_local, t->to, &piece.to, piece.to_stride);
        TRL_TRY(add(b, &piece));
    }
    err = flush(b);
done:
    return err;
}

static trl_err begin_round(trl_exchange *exchange)
{
    trl_err err = TRL_OK;
    for (bool posted = false; !posted;) { /* else a neighbour is two rounds behind */
        posted = true;
        TRL_TRY(trli_exchange_post(exchange, &posted));
        if (!posted) sched_yield();
    }
done:
    return err;
}

static void note(trl_err *first, trl_err err)
{
    if (*first == TRL_OK) *first = err;
}

/* A device that fails leaves the messages to go on, so that no rank waits for one. */
static trl_err send_and_receive(batch *b, trl_exchange *exchange, trl_err *failed)
{
    const trli_gpu_api *api;
    void *stream = NULL;
    bool done = true;
    trl_err err = TRL_OK;
    note(failed, trli_gpu_use(b->field->device->device, TRLI_STREAM_COMPUTE, &api, &stream));
    for (int i = 0; i < exchange->sends.nmessages && *failed == TRL_OK; ++i) note(failed, pack(b, exchange, i, stream));
    note(failed, b->field->device->ops->finish(b->field->device));
    for (int i = 0; i < exchange->sends.nmessages; ++i) TRL_TRY(trli_exchange_send(exchange, i, &done));
    if (*failed == TRL_OK) note(failed, copy_patches(b, exchange));
    while (atomic_load_explicit(&exchange->open, memory_order_relaxed) > 0) {
        for (int i = 0; i < exchange->receives.nmessages; ++i) {
            bool arrived = true;
            if (!exchange->receives.message[i].open) continue;
            TRL_TRY(trli_exchange_receive(exchange, i, &arrived));
            if (arrived && *failed == TRL_OK) note(failed, unpack(b, exchange, i, stream));
        }
        for (int i = 0; i < exchange->sends.nmessages; ++i) {
            done = true;
            if (exchange->sends.message[i].open) TRL_TRY(trli_exchange_send(exchange, i, &done));
        }
        sched_yield();
    }
done:
    return err;
}

trl_err trli_exchange_there(trl_field *field, trl_exchange *exchange)
{
    trl_context *ctx = field->ctx;
    batch b = {.field = field};
    trl_err failed = TRL_OK, err = TRL_OK;
    for (int p = 0; p < field->layout->nlocal; ++p) {
        trl_array array;
        note(&failed, trli_field_there(field, p, true, &array));
    }
    if (trl_context_ranks(ctx) == 1) {
        TRL_TRY(failed);
        err = copy_patches(&b, exchange);
    } else {
        note(&failed, field->device->ops->finish(field->device)); /* what came last is unpacked */
        TRL_TRY(begin_round(exchange));
        TRL_TRY(send_and_receive(&b, exchange, &failed));
        err = trl_context_agree(ctx, failed);
    }
    for (int p = 0; p < field->layout->nlocal && err == TRL_OK; ++p) trli_field_changed_there(field, p);
done:
    return err;
}

/* Between devices of a node, unless TRELLIS_GPU_IPC says otherwise. */
trl_err trli_rooms_there(trl_field *field, trl_exchange *exchange, trli_rooms **rooms)
{
    const char *way = getenv("TRELLIS_GPU_IPC");
    trl_context *ctx = field->ctx;
    int64_t refused = way && strcmp(way, "on") != 0;
    bool reach = false;
    trl_err err;
    *rooms = NULL;
    if (trl_context_ranks(ctx) == 1) return TRL_OK;
    TRL_TRY(trli_agree_max(ctx, TRL_OK, 1, &refused));
    TRL_TRY(trli_exchange_share(exchange, NULL));
    if (!refused) TRL_TRY(trli_rooms_probe(ctx, field->device->device, &reach));
    err = trli_rooms_create(ctx, field->device->device, reach, 1, &exchange, rooms);
done:
    return err;
}

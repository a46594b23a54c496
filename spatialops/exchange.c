/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <string.h>

#include <context_impl.h>

#include "exchange_impl.h"

/* Copy boxes whose rows are contiguous. Strides in bytes. Values move as bytes, so that any bit pattern survives. */
static void copy_rows(unsigned char *to, const ptrdiff_t to_stride[3], const unsigned char *from,
                      const ptrdiff_t from_stride[3], const trl_lidx extent[3], size_t value_bytes)
{
    size_t row = (size_t)extent[0] * value_bytes;
    for (trl_lidx k = 0; k < extent[2]; ++k) {
        for (trl_lidx j = 0; j < extent[1]; ++j) {
            unsigned char *t = to + j * to_stride[1] + k * to_stride[2];
            const unsigned char *f = from + j * from_stride[1] + k * from_stride[2];
            if (row == 8) {
                memcpy(t, f, 8); /* the common one-point row, without a call */
            } else {
                memcpy(t, f, row);
            }
        }
    }
}

static unsigned char *byte_at(const trl_array *array, const trl_lidx at[3], size_t value_bytes)
{
    return (unsigned char *)array->at + trl_array_offset(array, at[0], at[1], at[2]) * (ptrdiff_t)value_bytes;
}

static void strides_of(const trl_array *array, size_t value_bytes, ptrdiff_t stride[3])
{
    for (int a = 0; a < 3; ++a) stride[a] = array->stride[a] * (ptrdiff_t)value_bytes;
}

static void packed_strides(const trli_exchange_piece *t, ptrdiff_t stride[3])
{
    stride[0] = (ptrdiff_t)t->value_bytes;
    stride[1] = stride[0] * t->extent[0];
    stride[2] = stride[1] * t->extent[1];
}

static void pack(const trl_exchange *exchange, const trli_exchange_piece *t, const trl_array *source)
{
    ptrdiff_t to[3], from[3];
    packed_strides(t, to);
    strides_of(source, t->value_bytes, from);
    copy_rows(exchange->send_buffer + t->offset, to, byte_at(source, t->from, t->value_bytes), from, t->extent,
              t->value_bytes);
}

static void unpack(const trl_exchange *exchange, const trli_exchange_piece *t, const trl_array *target)
{
    ptrdiff_t to[3], from[3];
    strides_of(target, t->value_bytes, to);
    packed_strides(t, from);
    copy_rows(byte_at(target, t->to, t->value_bytes), to, exchange->receive_buffer + t->offset, from, t->extent,
              t->value_bytes);
}

void trli_exchange_copy(const trli_exchange_piece *t, const trl_array *source, const trl_array *target)
{
    ptrdiff_t to[3], from[3];
    strides_of(target, t->value_bytes, to);
    strides_of(source, t->value_bytes, from);
    copy_rows(byte_at(target, t->to, t->value_bytes), to, byte_at(source, t->from, t->value_bytes), from, t->extent,
              t->value_bytes);
}

static trl_err check_array(trl_context *ctx, const trli_exchange_piece *t, const trl_array *array, int patch,
                           const trl_lidx at[3])
{
    if (trl_scalar_size(array->type) != t->value_bytes) {
        return trl_fail(
            ctx, TRL_ERR_USAGE, NULL,
            "exchange: the array of field %d on patch %d has values of %zu bytes; the exchange was created for %zu",
            t->field, patch, trl_scalar_size(array->type), t->value_bytes);
    }
    for (int a = 0; a < 3; ++a) {
        if (at[a] >= array->held.lo[a] && at[a] + t->extent[a] <= array->held.hi[a]) continue;
        return trl_fail(ctx, TRL_ERR_USAGE, NULL,
                        "exchange: the array of field %d on patch %d holds points %" TRL_LIDX_FMT " to %" TRL_LIDX_FMT
                        " along %c, but points %" TRL_LIDX_FMT " to %" TRL_LIDX_FMT
                        " take part; allocate the hull of the footprint",
                        t->field, patch, array->held.lo[a], array->held.hi[a] - 1, trli_axis_name(a), at[a],
                        at[a] + t->extent[a] - 1);
    }
    return TRL_OK;
}

/* All checks come before the first message, so that a rank that fails has started nothing. */
static trl_err check_arrays(const trl_exchange *exchange, const trl_array *const *arrays)
{
    const trli_traffic *all[3] = {&exchange->receives, &exchange->sends, &exchange->copies};
    trl_err err = TRL_OK;
    for (int i = 0; i < 3; ++i) {
        for (int n = 0; n < all[i]->ntransfers; ++n) {
            const trli_exchange_piece *t = &all[i]->transfer[n];
            if (t->source_local >= 0) {
                TRL_TRY(check_array(exchange->ctx, t, &arrays[t->field][t->source_local], t->source, t->from));
            }
            if (t->target_local >= 0) {
                TRL_TRY(check_array(exchange->ctx, t, &arrays[t->field][t->target_local], t->target, t->to));
            }
        }
    }
done:
    return err;
}

static trl_err allocate_buffers(trl_exchange *exchange)
{
    trl_err err = TRL_OK;
    trl_context *ctx = exchange->ctx;
    size_t nrequests = (size_t)exchange->receives.nmessages + (size_t)exchange->sends.nmessages;
    void *memory = NULL;

    if (nrequests == 0) return TRL_OK;
    TRL_TRY(trl_memory_alloc(ctx, exchange->receives.bytes, "the receive buffer of a ghost exchange", &memory));
    exchange->receive_buffer = memory;
    TRL_TRY(trl_memory_alloc(ctx, exchange->sends.bytes, "the send buffer of a ghost exchange", &memory));
    exchange->send_buffer = memory;
    TRL_TRY(trl_memory_alloc(ctx, nrequests * sizeof *exchange->request, "the requests of a ghost exchange", &memory));
    exchange->request = memory;
    memset(exchange->send_buffer, 0, exchange->sends.bytes); /* padding between transfers is sent too */
done:
    return err;
}

static trl_err create_requests(trl_exchange *exchange)
{
    trl_err err = TRL_OK;
    trl_context *ctx = exchange->ctx;

    for (int i = 0; i < exchange->receives.nmessages; ++i) {
        const trli_message *m = &exchange->receives.message[i];
        int code = MPI_Recv_init(exchange->receive_buffer + m->offset, (int)m->words, MPI_UINT64_T, m->peer, 0,
                                 exchange->comm, &exchange->request[exchange->nrequests]);
        TRL_TRY(trli_mpi_check(ctx, code, "MPI_Recv_init"));
        ++exchange->nrequests;
    }
    for (int i = 0; i < exchange->sends.nmessages; ++i) {
        const trli_message *m = &exchange->sends.message[i];
        int code = MPI_Send_init(exchange->send_buffer + m->offset, (int)m->words, MPI_UINT64_T, m->peer, 0,
                                 exchange->comm, &exchange->request[exchange->nrequests]);
        TRL_TRY(trli_mpi_check(ctx, code, "MPI_Send_init"));
        ++exchange->nrequests;
    }
done:
    return err;
}

trl_err trli_exchange_plan_only(trl_context *ctx, const trl_layout *layout, int nfields,
                                const trl_exchange_field *fields, trl_exchange **result)
{
    void *memory = NULL;
    trl_err err;

    *result = NULL;
    TRL_TRY(trl_memory_alloc(ctx, sizeof **result, "a ghost exchange", &memory));
    *result = memory;
    **result = (trl_exchange){.ctx = ctx, .comm = MPI_COMM_NULL};
    err = trli_exchange_plan(*result, layout, nfields, fields);
done:
    return err;
}

void trli_exchange_leave_copies(trl_exchange *exchange)
{
    exchange->leaves_copies = true;
}

trl_err trl_exchange_create(trl_context *ctx, const trl_layout *layout, int nfields, const trl_exchange_field *fields,
                            trl_exchange **result)
{
    trl_err err;
    trl_exchange *exchange = NULL;

    *result = NULL;
    trl_context_begin_phase(ctx);
    err = trli_exchange_plan_only(ctx, layout, nfields, fields, &exchange);
    if (err == TRL_OK) err = allocate_buffers(exchange);
    if (err == TRL_OK) err = trli_comm_create(ctx, &exchange->comm);
    if (err == TRL_OK) err = create_requests(exchange);
    err = trl_context_end_phase(ctx, err);
    if (err != TRL_OK) trl_exchange_destroy(&exchange);
    *result = exchange;
    return err;
}

/* After a failed run some ranks may have begun an exchange that others never will. The others catch up, so that every
 * message is matched and no buffer stays with MPI. */
static trl_err complete_on_all_ranks(trl_exchange *exchange)
{
    trl_context *ctx = exchange->ctx;
    int64_t most = exchange->begun;
    trl_err err;
    TRL_TRY(trli_mpi_check(ctx, MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, exchange->comm),
                           "MPI_Allreduce"));
    for (; exchange->begun < most; ++exchange->begun) {
        TRL_TRY(trli_mpi_check(ctx, MPI_Waitall(exchange->nrequests, exchange->request, MPI_STATUSES_IGNORE),
                               "MPI_Waitall"));
        TRL_TRY(trli_mpi_check(ctx, MPI_Startall(exchange->nrequests, exchange->request), "MPI_Startall"));
    }
    TRL_TRY(
        trli_mpi_check(ctx, MPI_Waitall(exchange->nrequests, exchange->request, MPI_STATUSES_IGNORE), "MPI_Waitall"));
    exchange->under_way = false;
done:
    return err;
}

static void free_traffic(trl_context *ctx, trli_traffic *traffic)
{
    void *transfer = traffic->transfer, *message = traffic->message;
    trl_memory_free(ctx, &transfer);
    trl_memory_free(ctx, &message);
}

void trl_exchange_destroy(trl_exchange **exchange)
{
    trl_exchange *self = *exchange;
    *exchange = NULL;
    if (self == NULL) return;
    trl_context *ctx = self->ctx;
    void *receive_buffer = self->receive_buffer, *send_buffer = self->send_buffer, *request = self->request,
         *memory = self;

    if (self->comm != MPI_COMM_NULL && !trl_context_lost(ctx)) (void)!complete_on_all_ranks(self);
    if (trl_context_lost(ctx) && self->under_way) return; /* its buffers stay with MPI */
    for (int i = 0; i < self->nrequests; ++i)
        (void)!trli_mpi_check(ctx, MPI_Request_free(&self->request[i]), "MPI_Request_free");
    trli_comm_free(ctx, &self->comm);
    free_traffic(ctx, &self->receives);
    free_traffic(ctx, &self->sends);
    free_traffic(ctx, &self->copies);
    trl_memory_free(ctx, &receive_buffer);
    trl_memory_free(ctx, &send_buffer);
    trl_memory_free(ctx, &request);
    trl_memory_free(ctx, &memory);
}

/* Start the requests first <= i < first + n. */
static trl_err start(trl_exchange *exchange, int first, int n)
{
    if (n == 0) return TRL_OK;
    trl_context_mpi_lock(exchange->ctx);
    int code = MPI_Startall(n, exchange->request + first);
    trl_context_mpi_unlock(exchange->ctx);
    return trli_mpi_check(exchange->ctx, code, "MPI_Startall");
}

trl_err trl_exchange_begin(trl_exchange *exchange, const trl_array *const *arrays)
{
    trl_err err;
    const trli_traffic *sends = &exchange->sends, *copies = &exchange->copies;
    int nreceives = exchange->receives.nmessages;

    if (exchange->under_way) {
        return trl_fail(exchange->ctx, TRL_ERR_USAGE, NULL,
                        "exchange: begun again before trl_exchange_finish said that the last one is done");
    }
    TRL_TRY(check_arrays(exchange, arrays));
    TRL_TRY(start(exchange, 0, nreceives));
    exchange->under_way = true;
    for (int n = 0; n < sends->ntransfers; ++n) {
        const trli_exchange_piece *t = &sends->transfer[n];
        pack(exchange, t, &arrays[t->field][t->source_local]);
    }
    TRL_TRY(start(exchange, nreceives, sends->nmessages));
    ++exchange->begun;
    for (int n = 0; n < copies->ntransfers && !exchange->leaves_copies; ++n) {
        const trli_exchange_piece *t = &copies->transfer[n];
        trli_exchange_copy(t, &arrays[t->field][t->source_local], &arrays[t->field][t->target_local]);
    }
done:
    return err;
}

trl_err trl_exchange_finish(trl_exchange *exchange, const trl_array *const *arrays, bool *done)
{
    const trli_traffic *receives = &exchange->receives;
    int complete = 1;

    *done = false;
    if (!exchange->under_way) {
        return trl_fail(exchange->ctx, TRL_ERR_USAGE, NULL,
                        "exchange: trl_exchange_finish without trl_exchange_begin before it");
    }
    if (trl_context_lost(exchange->ctx)) return TRL_ERR_MPI; /* the others may send no more */
    if (exchange->nrequests > 0) {
        if (!trl_context_mpi_try_lock(exchange->ctx)) return TRL_OK;
        int code = MPI_Testall(exchange->nrequests, exchange->request, &complete, MPI_STATUSES_IGNORE);
        trl_context_mpi_unlock(exchange->ctx);
        if (code != MPI_SUCCESS) return trli_mpi_check(exchange->ctx, code, "MPI_Testall");
    }
    if (!complete) return TRL_OK;
    for (int n = 0; n < receives->ntransfers; ++n) {
        const trli_exchange_piece *t = &receives->transfer[n];
        unpack(exchange, t, &arrays[t->field][t->target_local]);
    }
    exchange->under_way = false;
    *done = true;
    return TRL_OK;
}

void trl_exchange_traffic(const trl_exchange *exchange, int64_t *bytes, int64_t *messages)
{
    *bytes = (int64_t)exchange->sends.bytes;
    *messages = exchange->sends.nmessages;
}

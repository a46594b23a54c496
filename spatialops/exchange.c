/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include <clock_impl.h>
#include <context_impl.h>

#include "exchange_impl.h"

enum { EXCHANGE_TAGS = 64 /* of the context's communicator: those below are for others */ };

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

static int tag_of(const trl_exchange *exchange, const trli_message *m)
{
    return exchange->tag + m->label;
}

static trl_err create_requests(trl_exchange *exchange)
{
    trl_err err = TRL_OK;
    trl_context *ctx = exchange->ctx;

    for (int i = 0; i < exchange->receives.nmessages; ++i) {
        const trli_message *m = &exchange->receives.message[i];
        int code = MPI_Recv_init(exchange->receive_buffer + m->offset, (int)m->words, MPI_UINT64_T, m->peer,
                                 tag_of(exchange, m), exchange->ctx->comm, &exchange->request[exchange->nrequests]);
        TRL_TRY(trli_mpi_check(ctx, code, "MPI_Recv_init"));
        ++exchange->nrequests;
    }
    for (int i = 0; i < exchange->sends.nmessages; ++i) {
        const trli_message *m = &exchange->sends.message[i];
        int code = MPI_Send_init(exchange->send_buffer + m->offset, (int)m->words, MPI_UINT64_T, m->peer,
                                 tag_of(exchange, m), exchange->ctx->comm, &exchange->request[exchange->nrequests]);
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
    **result = (trl_exchange){.ctx = ctx, .labels = 1, .layout = trli_layout_digest(layout), .window = MPI_WIN_NULL};
    err = trli_exchange_plan(*result, layout, nfields, fields);
done:
    return err;
}

trl_err trli_exchange_plan_pieces(trl_context *ctx, int labels, int nreceives, const trli_exchange_piece *receive,
                                  int nsends, const trli_exchange_piece *send, trl_exchange **result)
{
    void *memory = NULL;
    trl_err err;
    *result = NULL;
    TRL_TRY(trl_memory_alloc(ctx, sizeof **result, "a ghost exchange", &memory));
    *result = memory;
    **result = (trl_exchange){.ctx = ctx, .labels = labels, .window = MPI_WIN_NULL};
    err = trli_exchange_take_pieces(*result, nreceives, receive, nsends, send);
done:
    return err;
}

/* All ranks create their exchanges in one order, so a count tells the messages of one from those of others. */
static trl_err choose_tag(trl_exchange *exchange)
{
    trl_context *ctx = exchange->ctx;
    int *most = NULL, known = 0;
    trl_err err;
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_get_attr(ctx->comm, MPI_TAG_UB, (void *)&most, &known), "MPI_Comm_get_attr"));
    const unsigned tags = (unsigned)((known ? *most : 32767) - EXCHANGE_TAGS - exchange->labels);
    exchange->tag = EXCHANGE_TAGS + (int)(ctx->exchanges % tags);
    ctx->exchanges += (unsigned)exchange->labels;
done:
    return err;
}

/* Messages of a plan, none of which has moved; their transfers stay the plan's. */
static trl_err take_messages(trl_context *ctx, const trli_traffic *from, trli_traffic *to)
{
    const size_t bytes = (size_t)from->nmessages * sizeof *from->message;
    void *memory = NULL;
    trl_err err = TRL_OK;
    if (from->nmessages == 0) return TRL_OK;
    TRL_TRY(trl_memory_alloc(ctx, bytes, "the messages of a ghost exchange", &memory));
    *to = *from;
    to->message = memcpy(memory, from->message, bytes);
done:
    return err;
}

static trl_err follow(const trl_exchange *plan, trl_exchange **result)
{
    trl_context *ctx = plan->ctx;
    void *memory = NULL;
    trl_err err;
    *result = NULL;
    TRL_TRY(trl_memory_alloc(ctx, sizeof **result, "a ghost exchange", &memory));
    *result = memory;
    **result = (trl_exchange){.ctx = ctx,
                              .labels = plan->labels,
                              .late = plan->late,
                              .layout = plan->layout,
                              .window = MPI_WIN_NULL,
                              .follows_plan = true};
    TRL_TRY(take_messages(ctx, &plan->receives, &(*result)->receives));
    TRL_TRY(take_messages(ctx, &plan->sends, &(*result)->sends));
done:
    return err;
}

/* Ranks whose layouts differ, in owners for instance, would wait for messages that nobody sends. Collective: yes. */
static trl_err compare_layouts(trl_context *ctx, trl_err err, int64_t layout)
{
    int64_t both[2] = {layout, -layout};
    TRL_TRY(trli_agree_max(ctx, err, 2, both));
    if (trl_context_ranks(ctx) > 1 && both[0] != -both[1])
        return trl_fail(ctx, TRL_ERR_USAGE, NULL,
                        "exchange: the ranks' layouts differ; create the same one on all ranks");
done:
    return err;
}

/* err: of making the exchange on this rank; on failure it is destroyed. */
static trl_err connect(trl_context *ctx, trl_err err, trl_exchange **exchange)
{
    err = compare_layouts(ctx, err, err == TRL_OK ? (*exchange)->layout : 0);
    if (err == TRL_OK) err = allocate_buffers(*exchange);
    if (err == TRL_OK) err = choose_tag(*exchange);
    if (err == TRL_OK) err = create_requests(*exchange);
    err = trl_context_end_phase(ctx, err);
    if (err == TRL_OK) (*exchange)->connected = true;
    if (err != TRL_OK) trl_exchange_destroy(exchange);
    return err;
}

trl_err trl_exchange_create(trl_context *ctx, const trl_layout *layout, int nfields, const trl_exchange_field *fields,
                            trl_exchange **result)
{
    trl_context_begin_phase(ctx);
    return connect(ctx, trli_exchange_plan_only(ctx, layout, nfields, fields, result), result);
}

trl_err trli_exchange_create_from(const trl_exchange *plan, trl_exchange **result)
{
    trl_context_begin_phase(plan->ctx);
    return connect(plan->ctx, follow(plan, result), result);
}

static MPI_Request *request_of(const trl_exchange *exchange, const trli_message *m)
{
    const trli_traffic *receives = &exchange->receives, *sends = &exchange->sends;
    const bool receive = m >= receives->message && m < receives->message + receives->nmessages;
    return exchange->request + (receive ? m - receives->message : receives->nmessages + (m - sends->message));
}

static trl_err start(const trl_exchange *exchange, const trli_message *m)
{
    trl_context_mpi_lock(exchange->ctx);
    int code = MPI_Startall(1, request_of(exchange, m));
    trl_context_mpi_unlock(exchange->ctx);
    return trli_mpi_check(exchange->ctx, code, "MPI_Startall");
}

/* Begin a round: all messages are open, and what MPI receives is posted. */
static trl_err open_all(trl_exchange *exchange)
{
    const trli_traffic *all[2] = {&exchange->receives, &exchange->sends};
    trl_err err = TRL_OK;
    ++exchange->begun;
    for (int i = 0; i < 2; ++i)
        for (int n = 0; n < all[i]->nmessages; ++n) {
            trli_message *m = &all[i]->message[n];
            m->started = false;
            if (i == 0 && !m->slot) TRL_TRY(start(exchange, m));
            m->open = true;
            atomic_fetch_add_explicit(&exchange->open, 1, memory_order_relaxed);
        }
done:
    return err;
}

static void close_message(trl_exchange *exchange, trli_message *m)
{
    m->open = false;
    ++m->round;
    atomic_fetch_sub_explicit(&exchange->open, 1, memory_order_relaxed);
}

static bool is_under_way(const trl_exchange *exchange)
{
    return atomic_load_explicit(&exchange->open, memory_order_relaxed) > 0;
}

trl_err trli_exchange_post(trl_exchange *exchange, bool *done)
{
    const trli_traffic *receives = &exchange->receives, *sends = &exchange->sends;
    if (trl_context_lost(exchange->ctx)) return TRL_ERR_MPI; /* the others may send no more */
    /* What the last round brought is unpacked. Release: the reads of it come before. */
    for (int n = 0; n < receives->nmessages; ++n)
        if (receives->message[n].slot)
            atomic_store_explicit(&receives->message[n].slot->taken, receives->message[n].round, memory_order_release);
    for (int n = 0; n < sends->nmessages; ++n) {
        const trli_message *m = &sends->message[n];
        *done &= !m->slot || atomic_load_explicit(&m->slot->taken, memory_order_acquire) >= m->round - 1;
    }
    return *done ? open_all(exchange) : TRL_OK;
}

/* Test a message of MPI. */
static trl_err test(trl_exchange *exchange, trli_message *m, bool *done)
{
    int complete = 0;
    *done = false;
    if (!trl_context_mpi_try_lock(exchange->ctx)) return TRL_OK;
    int code = MPI_Testall(1, request_of(exchange, m), &complete, MPI_STATUSES_IGNORE);
    trl_context_mpi_unlock(exchange->ctx);
    if (code != MPI_SUCCESS) return trli_mpi_check(exchange->ctx, code, "MPI_Testall");
    *done = complete;
    return TRL_OK;
}

/* A round is there: packed by stores before, which are not streamed, or lent. */
static void announce(const trli_message *m)
{
    atomic_store_explicit(&m->slot->sent_ns[m->round & 1], trli_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&m->slot->sent, m->round + 1, memory_order_release);
}

trl_err trli_exchange_send(trl_exchange *exchange, int message, bool *done)
{
    trli_message *m = &exchange->sends.message[message];
    trl_err err = TRL_OK;
    if (trl_context_lost(exchange->ctx)) return TRL_ERR_MPI;
    if (m->slot) {
        if (!m->started) announce(m);
        if (m->lends) *done = atomic_load_explicit(&m->slot->taken, memory_order_acquire) > m->round;
    } else {
        if (!m->started) TRL_TRY(start(exchange, m));
        TRL_TRY(test(exchange, m, done));
    }
    m->started = true;
    if (*done) close_message(exchange, m);
done:
    return err;
}

trl_err trli_exchange_receive(trl_exchange *exchange, int message, bool *done)
{
    trli_message *m = &exchange->receives.message[message];
    trl_err err = TRL_OK;
    if (trl_context_lost(exchange->ctx)) return TRL_ERR_MPI;
    if (m->slot)
        *done = atomic_load_explicit(&m->slot->sent, memory_order_acquire) > m->round;
    else
        TRL_TRY(test(exchange, m, done));
    if (*done && m->slot) m->sent_ns = atomic_load_explicit(&m->slot->sent_ns[m->round & 1], memory_order_relaxed);
    if (*done) close_message(exchange, m);
done:
    return err;
}

/* Let MPI finish what this rank has begun. */
static trl_err complete_round(trl_exchange *exchange)
{
    const trli_traffic *all[2] = {&exchange->receives, &exchange->sends};
    trl_err err = TRL_OK;
    for (int n = 0; n < exchange->sends.nmessages; ++n) {
        trli_message *m = &exchange->sends.message[n];
        if (m->open && !m->slot && !m->started) TRL_TRY(start(exchange, m));
        m->started = true;
    }
    TRL_TRY(trli_mpi_check(exchange->ctx, MPI_Waitall(exchange->nrequests, exchange->request, MPI_STATUSES_IGNORE),
                           "MPI_Waitall"));
    for (int i = 0; i < 2; ++i)
        for (int n = 0; n < all[i]->nmessages; ++n)
            if (all[i]->message[n].open) close_message(exchange, &all[i]->message[n]);
done:
    return err;
}

/* After a failed run some ranks may have begun an exchange that others never will. The others catch up, so that every
 * message is matched and no buffer stays with MPI. */
static trl_err complete_on_all_ranks(trl_exchange *exchange)
{
    trl_context *ctx = exchange->ctx;
    int64_t most = exchange->begun;
    trl_err err;
    TRL_TRY(
        trli_mpi_check(ctx, MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, ctx->comm), "MPI_Allreduce"));
    TRL_TRY(complete_round(exchange));
    while (exchange->begun < most) {
        TRL_TRY(open_all(exchange));
        TRL_TRY(complete_round(exchange));
    }
done:
    return err;
}

static void free_traffic(const trl_exchange *exchange, trli_traffic *traffic)
{
    trl_context *ctx = exchange->ctx;
    void *transfer = exchange->follows_plan ? NULL : traffic->transfer, *message = traffic->message;
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

    if (self->connected && !trl_context_lost(ctx)) (void)!complete_on_all_ranks(self);
    if (trl_context_lost(ctx) && is_under_way(self)) return; /* its buffers stay with MPI */
    for (int i = 0; i < self->nrequests; ++i)
        (void)!trli_mpi_check(ctx, MPI_Request_free(&self->request[i]), "MPI_Request_free");
    if (self->window != MPI_WIN_NULL && !trl_context_lost(ctx))
        (void)!trli_mpi_check(ctx, MPI_Win_free(&self->window), "MPI_Win_free");
    free_traffic(self, &self->receives);
    free_traffic(self, &self->sends);
    free_traffic(self, &self->copies);
    trl_memory_free(ctx, &receive_buffer);
    trl_memory_free(ctx, &send_buffer);
    trl_memory_free(ctx, &request);
    trl_memory_free(ctx, &memory);
}

trl_err trl_exchange_begin(trl_exchange *exchange, const trl_array *const *arrays)
{
    trl_err err;
    const trli_traffic *sends = &exchange->sends, *copies = &exchange->copies;
    bool posted = false, sent = true;

    if (is_under_way(exchange) || exchange->halfway) {
        return trl_fail(exchange->ctx, TRL_ERR_USAGE, NULL,
                        "exchange: begun again before trl_exchange_finish said that the last one is done");
    }
    TRL_TRY(check_arrays(exchange, arrays));
    while (!posted) { /* a neighbour is two rounds behind */
        posted = true;
        TRL_TRY(trli_exchange_post(exchange, &posted));
        if (!posted) sched_yield();
    }
    exchange->halfway = true;
    for (int i = 0; i < sends->nmessages; ++i) {
        const trli_message *m = &sends->message[i];
        for (int n = m->first; n < m->first + m->n; ++n) {
            const trli_exchange_piece *t = &sends->transfer[n];
            trli_exchange_pack(exchange, i, n, 0, 1, &arrays[t->field][t->source_local]);
        }
        TRL_TRY(trli_exchange_send(exchange, i, &sent));
        sent = true;
    }
    for (int n = 0; n < copies->ntransfers; ++n) {
        const trli_exchange_piece *t = &copies->transfer[n];
        trli_exchange_copy(t, 0, 1, &arrays[t->field][t->source_local], &arrays[t->field][t->target_local]);
    }
done:
    return err;
}

trl_err trl_exchange_finish(trl_exchange *exchange, const trl_array *const *arrays, bool *done)
{
    const trli_traffic *receives = &exchange->receives, *sends = &exchange->sends;
    trl_err err = TRL_OK;

    *done = false;
    if (!exchange->halfway) {
        return trl_fail(exchange->ctx, TRL_ERR_USAGE, NULL,
                        "exchange: trl_exchange_finish without trl_exchange_begin before it");
    }
    if (trl_context_lost(exchange->ctx)) return TRL_ERR_MPI; /* the others may send no more */
    for (int i = 0; i < receives->nmessages; ++i) {
        const trli_message *m = &receives->message[i];
        bool arrived = true;
        if (!m->open) continue;
        TRL_TRY(trli_exchange_receive(exchange, i, &arrived));
        for (int n = m->first; arrived && n < m->first + m->n; ++n) {
            const trli_exchange_piece *t = &receives->transfer[n];
            trli_exchange_unpack(exchange, i, n, 0, 1, &arrays[t->field][t->target_local]);
        }
        if (arrived) trli_exchange_release(exchange, i);
    }
    for (int i = 0; i < sends->nmessages; ++i) {
        bool sent = true;
        if (sends->message[i].open) TRL_TRY(trli_exchange_send(exchange, i, &sent));
    }
    if (is_under_way(exchange)) return TRL_OK;
    exchange->halfway = false;
    *done = true;
done:
    return err;
}

void trl_exchange_traffic(const trl_exchange *exchange, int64_t *bytes, int64_t *messages)
{
    *bytes = (int64_t)exchange->sends.bytes;
    *messages = exchange->sends.nmessages;
}

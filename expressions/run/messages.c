/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "messages_impl.h"

#include <chunks_impl.h>

#include "context_impl.h"
#include "cost_impl.h"
#include "gpu_impl.h"
#include "model_run_impl.h"

/* ---- running: after an error too, so that no other rank waits for this one ---- */

static trl_exchange *exchange_of(const trli_step_task *t, const trl_task_args *args)
{
    const trli_frame *frame = args->frame;
    return frame->exchange[t->exchange].exchange;
}

/* Messages have nothing to bring in this run. */
static bool is_given(const trli_step_task *t, const trl_task_args *args)
{
    const trli_frame *frame = args->frame;
    return frame->exchange[t->exchange].given;
}

static trl_err post(void *data, const trl_task_args *args, bool *done)
{
    if (is_given(data, args)) return TRL_OK;
    return trli_exchange_post(exchange_of(data, args), done);
}

static trl_err pack(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trl_exchange *exchange = exchange_of(t, args);
    const trli_message *m = &exchange->sends.message[t->message];
    (void)done;
    if (is_given(t, args)) return TRL_OK;
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *piece = &exchange->sends.transfer[n];
        const trl_array source =
            trli_frame_array(args->frame, t->exchanged->field[piece->field], piece->source_local, 0);
        trli_exchange_pack(exchange, t->message, n, args->chunk, args->chunks, &source);
    }
    return TRL_OK;
}

static trl_err unpack(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trl_exchange *exchange = exchange_of(t, args);
    const trli_message *m = &exchange->receives.message[t->message];
    trl_err err = TRL_OK;
    (void)done;
    if (is_given(t, args)) return TRL_OK;
    TRL_TRY(trli_exchange_fetch(exchange, t->message));
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *piece = &exchange->receives.transfer[n];
        const trl_array target =
            trli_frame_array(args->frame, t->exchanged->field[piece->field], piece->target_local, 0);
        trli_exchange_unpack(exchange, t->message, n, args->chunk, args->chunks, &target);
    }
done:
    return err;
}

static trl_err release(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    (void)done;
    if (!is_given(t, args)) trli_exchange_release(exchange_of(t, args), t->message);
    return TRL_OK;
}

static trl_err send_packed(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    if (is_given(t, args)) return TRL_OK;
    return trli_exchange_send(exchange_of(t, args), t->message, done);
}

static trl_err pack_and_send(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    if (!exchange_of(t, args)->sends.message[t->message].started) (void)!pack(data, args, done);
    return send_packed(data, args, done);
}

static trl_err receive(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    trl_exchange *exchange = exchange_of(t, args);
    trl_err err;
    if (is_given(t, args)) return TRL_OK;
    TRL_TRY(trli_exchange_receive(exchange, t->message, done));
    if (*done) trl_run_note_sent(args->run, exchange->receives.message[t->message].sent_ns);
done:
    return err;
}

static trl_err receive_and_unpack(void *data, const trl_task_args *args, bool *done)
{
    trl_err err = receive(data, args, done);
    if (err != TRL_OK || !*done) return err;
    err = unpack(data, args, done);
    (void)!release(data, args, done);
    return err;
}

/* ---- building ---- */

int trli_messages_tasks(const trl_exchange *plan)
{
    const int messages = plan->sends.nmessages + plan->receives.nmessages;
    return messages > 0 ? 1 + messages : 0;
}

/* Before other work: neighbours wait for it. What brings their points in comes after what they wait for: a poll task
 * without a priority. gpu: what a GPU does, or NULL. */
static trl_err add_anywhere(trli_task_builder *b, const char *name, trl_task_fn run, trl_task_fn gpu, trli_step_task *t,
                            int chunks, unsigned flags, trl_task *task)
{
    const trl_task_desc desc = {.name = name,
                                .variant = {[TRL_KIND_CPU] = {run}, [TRL_KIND_GPU] = {gpu}},
                                .data = t,
                                .chunks = chunks,
                                .flags = flags,
                                .cost = TRLI_MESSAGE_SECONDS,
                                .priority = run != receive && run != receive_and_unpack};
    return trl_graph_add_task(b->graph, &desc, task);
}

static trl_err add(trli_task_builder *b, const char *name, trl_task_fn run, trli_step_task *t, int chunks,
                   unsigned flags, trl_task *task)
{
    return add_anywhere(b, name, run, NULL, t, chunks, flags, task);
}

enum {
    MESSAGE = TRL_TASK_ALWAYS | TRL_TASK_POLL,
    PACKING = TRL_TASK_WHOLE | TRL_TASK_URGENT | TRL_TASK_VARIES /* what a GPU may do */
};

/* The points that a message brings, or takes. Neighbours bring different ones. What is brought is added, as it were, to
 * what kernels wrote in parts: as further parts, messages could come before these, while the memory has points of
 * another field. */
static trl_err touch(trli_task_builder *b, trl_task task, const trli_exchanged *exchanged, const trli_traffic *traffic,
                     const trli_message *m, bool receives)
{
    trl_err err = TRL_OK;
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *t = &traffic->transfer[n], *before = n > m->first ? t - 1 : NULL;
        const int patch = receives ? t->target_local : t->source_local, field = exchanged->field[t->field];
        const unsigned points = receives ? TRLI_SET_RECEIVED : trli_points_sent(b->model, field, t);
        const bool again =
            before && before->field == t->field && patch == (receives ? before->target_local : before->source_local);
        if (again && (receives || points == trli_points_sent(b->model, field, before))) continue;
        TRL_TRY(trli_builder_field(b, task, field, patch, points, receives ? TRL_ADD : TRL_READ));
    }
done:
    return err;
}

/* sent: what receives follow where a GPU packs. What it packs and unpacks would else be one region, launched when all
 * messages are there, and each rank would wait for the others' next one. */
static trl_err add_send(trli_task_builder *b, const trli_exchanged *exchanged, const trl_exchange *plan,
                        trl_handle *post, trl_handle *sent, trli_step_task *t)
{
    const trli_message *m = &plan->sends.message[t->message];
    const int chunks = (int)trli_chunks_wanted((int64_t)m->words, b->model->run->nworkers);
    const bool gpu = trli_gpu_does_messages(b->model);
    trl_handle packed = -1;
    trl_task task, send;
    trl_err err = TRL_OK;
    TRL_TRY(gpu          ? add_anywhere(b, "pack", pack, trli_task_pack_gpu, t, chunks, PACKING, &task)
            : chunks > 1 ? add(b, "pack", pack, t, chunks, TRL_TASK_WHOLE, &task)
                         : add(b, "send", pack_and_send, t, 1, MESSAGE, &task));
    TRL_TRY(trli_builder_value(b, task, post, "posted", TRL_READ));
    TRL_TRY(touch(b, task, exchanged, &plan->sends, m, false));
    if (chunks == 1 && !gpu) goto done;
    TRL_TRY(trli_builder_value(b, task, &packed, "packed", TRL_WRITE));
    TRL_TRY(add(b, "send", send_packed, t, 1, MESSAGE, &send));
    TRL_TRY(trli_builder_value(b, send, post, "posted", TRL_READ));
    TRL_TRY(trli_builder_value(b, send, &packed, "packed", TRL_READ));
    if (!gpu) TRL_TRY(touch(b, send, exchanged, &plan->sends, m, false)); /* the receiver may read them until then */
    if (gpu) TRL_TRY(trli_builder_value(b, send, sent, "sent", TRL_ADD));
done:
    return err;
}

static trl_err add_receive(trli_task_builder *b, const trli_exchanged *exchanged, const trl_exchange *plan,
                           trl_handle *post, trl_handle *sent, trli_step_task *t)
{
    const trli_message *m = &plan->receives.message[t->message];
    const bool gpu = trli_gpu_does_messages(b->model);
    const int chunks = gpu ? 1 : (int)trli_chunks_wanted((int64_t)m->words, b->model->run->nworkers);
    trl_handle received = -1, unpacked = -1;
    trl_task task, last;
    trl_err err = TRL_OK;
    TRL_TRY(add(b, "receive", chunks > 1 || gpu ? receive : receive_and_unpack, t, 1, MESSAGE, &task));
    TRL_TRY(trli_builder_value(b, task, post, "posted", TRL_READ));
    if (gpu) TRL_TRY(trli_builder_value(b, task, sent, "sent", TRL_READ));
    if (chunks > 1 || gpu) {
        TRL_TRY(trli_builder_value(b, task, &received, "received", TRL_WRITE));
        TRL_TRY(gpu ? add_anywhere(b, "unpack", unpack, trli_task_unpack_gpu, t, 1, PACKING, &task)
                    : add(b, "unpack", unpack, t, chunks, TRL_TASK_WHOLE, &task));
        TRL_TRY(trli_builder_value(b, task, &received, "received", TRL_READ));
    }
    TRL_TRY(touch(b, task, exchanged, &plan->receives, m, true));
    if (chunks == 1 && !gpu) goto done;
    TRL_TRY(trli_builder_value(b, task, &unpacked, "unpacked", TRL_WRITE));
    /* The run does not end before a GPU has unpacked; senders wait for what workers have not, after an error too. */
    TRL_TRY(add(b, "release", release, t, 1, gpu ? 0 : TRL_TASK_ALWAYS, &last));
    TRL_TRY(trli_builder_value(b, last, &unpacked, "unpacked", TRL_READ));
done:
    return err;
}

trl_err trli_messages_add(trli_task_builder *b, const trli_exchanged *exchanged, const trl_exchange *plan,
                          trli_step_task *task)
{
    trl_handle posted = -1, sent = -1;
    trl_task first;
    trl_err err = TRL_OK;
    for (int i = 0; i < trli_messages_tasks(plan); ++i) task[i].exchanged = exchanged;
    TRL_TRY(add(b, "post", post, task, 1, MESSAGE, &first));
    TRL_TRY(trli_builder_value(b, first, &posted, "posted", TRL_WRITE));
    for (int i = 0; i < plan->sends.nmessages; ++i) {
        trli_step_task *t = ++task;
        t->message = i;
        TRL_TRY(add_send(b, exchanged, plan, &posted, &sent, t));
    }
    for (int i = 0; i < plan->receives.nmessages; ++i) {
        trli_step_task *t = ++task;
        t->message = i;
        TRL_TRY(add_receive(b, exchanged, plan, &posted, &sent, t));
    }
done:
    return err;
}

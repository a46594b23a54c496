/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "context_impl.h"
#include "found_scalars_impl.h"
#include "frame_impl.h"
#include "gpu_impl.h"
#include "halos_impl.h"
#include "help_impl.h"
#include "joint_sums_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "node_board_impl.h"
#include "slot_plan_impl.h"
#include "tasks_impl.h"

/* ---- exchanges ---- */

trl_err trli_exchange_connect(const trli_model *model, const trl_exchange *plan, const trli_loans *loans,
                              trli_exchange_run *run)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_exchange_create_from(plan, &run->exchange));
    trl_exchange_traffic(run->exchange, &run->bytes, &run->messages);
    if (model->machine.shares) TRL_TRY(trli_exchange_share(run->exchange, loans));
done:
    return err;
}

void trli_exchange_disconnect(trli_exchange_run *run)
{
    trl_exchange_destroy(&run->exchange);
}

/* Fields are lent to ranks of the node, but where GPUs may have them. */
static trl_err make_loans(trli_frame *frame)
{
    const trli_model *model = frame->model;
    if (trl_context_ranks(model->ctx) == 1 || model->run->nexchanges == 0) return TRL_OK;
    const bool helps = trli_help_may_come(model);
    trl_err err;
    TRL_TRY(trli_loans_create(model->ctx, frame->open, helps, &frame->loans));
    if (helps && frame->loans) return trli_help_create(frame);
    /* To read is enough for ghosts. */
    if (helps) err = trli_loans_create(model->ctx, frame->open, false, &frame->loans);
done:
    return err;
}

/* Ranks connect in one order, and stop at the first failure of any: the next is collective, too. */
static trl_err connect_all(trli_frame *frame)
{
    const trli_model *model = frame->model;
    trl_err err = TRL_OK;
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_program_execution *run = model->program[i]->run;
        for (int e = 0; e < run->nexchanges; ++e)
            TRL_TRY(trli_exchange_connect(model, run->exchanged[e].plan, frame->loans,
                                          &frame->exchange[run->first_exchange + e]));
    }
done:
    return err;
}

/* A rank's only GPU packs and unpacks messages. */
static trl_err make_rooms(trli_frame *frame)
{
    const trli_model *model = frame->model;
    const int n = model->run->nexchanges;
    trl_device *device =
        trli_gpu_does_messages(model) ? trli_device_of(trl_workers_devices(model->run->workers), 1) : NULL;
    trl_err err;
    if (trl_context_ranks(model->ctx) == 1 || n == 0 || model->run->messages == TRLI_MESSAGES_HOST) return TRL_OK;
    trl_exchange **exchange = trli_new(model->ctx, (size_t)n, sizeof(trl_exchange *));
    for (int e = 0; e < n && exchange; ++e) exchange[e] = frame->exchange[e].exchange;
    TRL_TRY(trl_context_agree(model->ctx, exchange ? TRL_OK : trli_no_memory(model->ctx, NULL, "for messages")));
    err =
        trli_rooms_create(model->ctx, device, model->run->messages == TRLI_MESSAGES_DIRECT, n, exchange, &frame->rooms);
done:
    trli_free(exchange);
    return err;
}

void trli_frame_traffic(const trli_frame *frame, const trli_program *program, int64_t *bytes, int64_t *messages)
{
    const trli_program_execution *run = program->run;
    *bytes = *messages = 0;
    for (int e = run->first_exchange; e < run->first_exchange + run->nexchanges; ++e) {
        if (frame->exchange[e].given) continue;
        *bytes += frame->exchange[e].bytes;
        *messages += frame->exchange[e].messages;
    }
}

static bool is_of_field(const trli_exchanged *what, int field)
{
    return what->n == 1 && what->field[0] == field;
}

void trli_frame_widen_ghosts(const trli_program *program, int field, trl_offsets *around)
{
    const trli_program_execution *run = program->run;
    for (int e = 0; e < run->nexchanges; ++e) {
        if (!is_of_field(run->exchanged[e].what, field)) continue;
        const trl_offsets hull = trl_footprint_hull(&run->exchanged[e].what->reach[0]);
        for (int a = 0; a < 3; ++a) {
            if (hull.lo[a] < around->lo[a]) around->lo[a] = hull.lo[a];
            if (hull.hi[a] > around->hi[a]) around->hi[a] = hull.hi[a];
        }
    }
}

void trli_frame_give_ghosts(const trli_frame *frame, const trli_program *program, int field, bool given)
{
    const trli_program_execution *run = program->run;
    for (int e = 0; e < run->nexchanges; ++e)
        if (is_of_field(run->exchanged[e].what, field)) frame->exchange[run->first_exchange + e].given = given;
}

int64_t trli_frame_far_messages(const trli_frame *frame)
{
    int64_t n = 0;
    for (int e = 0; e < frame->model->run->nexchanges; ++e)
        n += trli_exchange_far_messages(frame->exchange[e].exchange);
    return n;
}

/* ---- making ---- */

static trl_err own_records(trli_frame *frame)
{
    const trli_model *model = frame->model;
    frame->scalar = trli_new(model->ctx, (size_t)model->nscalars, sizeof *frame->scalar);
    frame->nonfinite = trli_new(model->ctx, (size_t)model->run->lanes, sizeof *frame->nonfinite);
    frame->scalar_valid = trli_new(model->ctx, (size_t)model->nscalars, sizeof *frame->scalar_valid);
    if (!frame->scalar || !frame->nonfinite || !frame->scalar_valid)
        return trli_no_memory(model->ctx, NULL, "for the records of a frame");
    for (int i = 0; i < model->nscalars; ++i) frame->scalar_valid[i] = 1;
    memcpy(frame->scalar, model->scalar, (size_t)model->nscalars * sizeof *frame->scalar);
    return TRL_OK;
}

trl_err trli_frame_share(trli_frame *frame, const trli_frame *other)
{
    *frame = (trli_frame){.model = other->model,
                          .base[0] = other->base[0],
                          .valid = other->valid,
                          .scratch = other->scratch,
                          .step_number = other->step_number};
    return own_records(frame);
}

void trli_frame_release_shared(trli_frame *frame)
{
    trli_free(frame->scalar);
    trli_free(frame->nonfinite);
    trli_free(frame->scalar_valid);
}

static int count_sums(const trli_reductions *all, const trli_reduction_batch *batch)
{
    int n = 0;
    for (int r = batch->first; r < batch->first + batch->n; ++r) n += all->reduction[r].merge == TRLI_MERGE_SUM;
    return n;
}

static trl_err create_batches(trli_frame *frame, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    trl_err err = TRL_OK;
    for (int b = 0; b < all->nbatches; ++b) {
        const int index = all->first_batch + b, n = all->batch[b].n, sums = count_sums(all, &all->batch[b]);
        TRL_TRY(trli_batch_create(frame->model->ctx, &frame->batch[index], TRLI_SENT + index, sums, n - sums));
    }
done:
    return err;
}

static trl_err make_board(trli_frame *frame)
{
    const trli_model *model = frame->model;
    const int n = TRLI_SENT + model->run->nbatches, slots = TRLI_MERGING_SLOTS * n;
    trl_err err = TRL_OK;
    if (!model->machine.shares) return TRL_OK;
    size_t *numbers = trli_new(model->ctx, (size_t)slots, sizeof *numbers);
    TRL_TRY(trl_context_agree(model->ctx, numbers ? TRL_OK : trli_no_memory(model->ctx, NULL, "for reductions")));
    for (int slot = 0; slot < slots; ++slot) {
        const int batch = slot / TRLI_MERGING_SLOTS;
        numbers[slot] = batch < TRLI_SENT ? (size_t)model->sent[batch] * TRLI_PARTIAL_WORDS
                                          : (size_t)frame->batch[batch - TRLI_SENT].all.n;
    }
    err = trli_node_board_create(model->ctx, slots, numbers, &frame->board);
done:
    trli_free(numbers);
    return err;
}

static trl_err create_reductions(trli_frame *frame)
{
    const trli_model *model = frame->model;
    trl_err err = TRL_OK;
    for (int r = 0; r < model->run->nreductions; ++r) frame->reduction[r].patches = 1;
    trli_found_scalars_part(frame);
    for (int r = 0; r < model->run->nreductions; ++r) {
        trli_reduction_run *reduction = &frame->reduction[r];
        reduction->part =
            trli_new(model->ctx, (size_t)model->run->lanes * (size_t)reduction->patches, sizeof *reduction->part);
        reduction->window = trli_new(model->ctx, (size_t)model->run->lanes, sizeof *reduction->window);
        if (!reduction->part || !reduction->window) return trli_no_memory(model->ctx, NULL, "for a reduction");
    }
    const size_t shares = (size_t)model->run->nreductions * (size_t)model->layout->nlocal;
    frame->share[0] = trli_new(model->ctx, shares, sizeof(trli_partial));
    frame->share_valid = trli_new(model->ctx, shares, sizeof *frame->share_valid);
    if (!frame->share[0] || !frame->share_valid) return trli_no_memory(model->ctx, NULL, "for reductions");
    for (int i = 0; i < model->nprograms; ++i) {
        TRL_TRY(create_batches(frame, model->program[i]));
        trli_reductions_clear(frame, model->program[i]);
    }
    TRL_TRY(trli_joint_sums_create(frame));
    bool any = model->run->nreductions > 0;
    for (int i = 0; i < TRLI_SENT; ++i) any |= model->sent[i] > 0;
    if (!any || trl_context_ranks(model->ctx) == 1) return TRL_OK;
    TRL_TRY(make_board(frame));
    TRL_TRY(trli_comm_create(model->ctx, &frame->comm));
    frame->has_comm = true;
done:
    return err;
}

trl_err trli_frame_create(trli_model *model, trli_frame **result)
{
    const trli_model_run *run = model->run;
    trl_err err = TRL_OK;
    trli_frame *frame = trli_new(model->ctx, 1, sizeof *frame);
    *result = NULL;
    if (!frame) return trli_no_memory(model->ctx, NULL, "for a frame");
    frame->model = model;
    pthread_mutex_init(&frame->claims.lock, NULL);
    frame->scratch = trli_new(model->ctx, (size_t)run->lanes, sizeof *frame->scratch);
    frame->exchange = trli_new(model->ctx, (size_t)run->nexchanges, sizeof *frame->exchange);
    frame->part = trli_new(model->ctx, (size_t)run->nparts, sizeof *frame->part);
    frame->reduction = trli_new(model->ctx, (size_t)run->nreductions, sizeof *frame->reduction);
    frame->batch = trli_new(model->ctx, (size_t)run->nbatches, sizeof *frame->batch);
    if (!frame->scratch || !frame->exchange || !frame->part || !frame->reduction || !frame->batch)
        TRL_TRY(trli_no_memory(model->ctx, NULL, "for a frame"));
    TRL_TRY(own_records(frame));
    TRL_TRY(trli_slots_allocate(frame));
    TRL_TRY(create_reductions(frame));
    TRL_TRY(make_loans(frame));
    TRL_TRY(connect_all(frame));
    TRL_TRY(make_rooms(frame));
    *result = frame;
    frame = NULL;
done:
    trli_frame_destroy(&frame);
    return err;
}

void trli_frame_destroy(trli_frame **result)
{
    trli_frame *frame = *result;
    *result = NULL;
    if (!frame) return;
    const trli_model_run *run = frame->model->run;
    trli_rooms_destroy(&frame->rooms);
    for (int e = 0; frame->exchange && e < run->nexchanges; ++e) trli_exchange_disconnect(&frame->exchange[e]);
    trli_help_destroy(frame);
    trli_loans_destroy(&frame->loans);
    for (int r = 0; frame->reduction && r < run->nreductions; ++r) {
        trli_free(frame->reduction[r].part);
        trli_free(frame->reduction[r].window);
    }
    for (int b = 0; frame->batch && b < run->nbatches; ++b) trli_batch_destroy(frame, &frame->batch[b]);
    trli_joint_sums_destroy(frame);
    trli_node_board_destroy(frame->model->ctx, &frame->board);
    if (frame->has_comm) trli_comm_free(frame->model->ctx, &frame->comm);
    pthread_mutex_destroy(&frame->claims.lock);
    trli_frame_release_gathered(frame);
    trli_frame_release_spaces(frame);
    trl_field_manager_destroy(&frame->memory);
    trli_open_memory_destroy(&frame->open);
    trli_free(frame->exchange);
    trli_free(frame->part);
    trli_free(frame->reduction);
    trli_free(frame->batch);
    trli_free(frame->scratch);
    for (int s = 0; s < TRL_SPACES_MAX; ++s) {
        trli_free(frame->base[s]);
        trli_free(frame->rows[s]);
    }
    trli_free(frame->share[0]);
    trli_free(frame->share_valid);
    trli_free(frame->block);
    trli_free(frame->block_rows);
    trli_free(frame->valid);
    trli_free(frame->valid_rows);
    trli_free(frame->scalar);
    trli_free(frame->nonfinite);
    trli_free(frame->scalar_valid);
    trli_free(frame);
}

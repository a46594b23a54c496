/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the plan to memory: each slot on a patch, and each worker's scratch, is a block of the frame's field manager. */
#include <stdio.h>
#include <string.h>

#include <context_impl.h>
#include <field_manager_impl.h>
#include <open_memory_impl.h>

#include "builder_impl.h"
#include "frame_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "slot_plan_impl.h"
#include "tasks_impl.h"

/* The fields of each slot, in their order: first[slot], then next[field], -1 at the end. */
typedef struct tenants {
    int *first, *next;
} tenants;

static trl_err find_tenants(const trli_model *model, tenants *t)
{
    t->first = trli_new(model->ctx, (size_t)model->slots->n + 1, sizeof *t->first);
    t->next = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *t->next);
    if (!t->first || !t->next) return trli_no_memory(model->ctx, NULL, "for the names of %d slots", model->slots->n);
    for (int s = 0; s < model->slots->n; ++s) t->first[s] = -1;
    for (int f = model->nfields - 1; f >= 0; --f) {
        const int slot = model->field[f].slot;
        if (slot < 0) continue;
        t->next[f] = t->first[slot];
        t->first[slot] = f;
    }
    return TRL_OK;
}

/* The names of a slot's tenants, as many as fit, and its number, which makes the tag one of its own. */
static void name_slot(const trli_model *model, const tenants *t, int slot, char *tag, size_t size)
{
    size_t used = 0;
    int left_out = 0;
    tag[0] = 0;
    for (int f = t->first[slot]; f >= 0; f = t->next[f]) {
        size_t room = size - 64, length = strlen(model->field[f].name);
        if (used > 0 && used + length > room)
            ++left_out;
        else
            used +=
                (size_t)snprintf(tag + used, size - used, "%s%.*s", used ? ", " : "", (int)room, model->field[f].name);
    }
    if (left_out) used += (size_t)snprintf(tag + used, size - used, " and %d more", left_out);
    snprintf(tag + used, size - used, " (slot %d)", slot);
}

/* count: [local patch], to be set here. */
static trl_err provide_slot(trli_frame *frame, const tenants *t, int s, int64_t *count, trl_block **block)
{
    const trli_model *model = frame->model;
    const trl_layout *layout = model->layout;
    char tag[256];
    trl_err err = TRL_OK;
    name_slot(model, t, s, tag, sizeof tag);
    const trl_block_desc desc = {.tag = tag, .flags = TRL_BLOCK_PERSISTENT};
    for (int p = 0; p < layout->nlocal; ++p) count[p] = trli_slot_values(model->slots, s, p);
    TRL_TRY(trl_blocks_create(frame->memory, &desc, layout->nlocal, layout->local, count, block));
    TRL_TRY(trl_blocks_acquire(layout->nlocal, block, frame->base[0][s]));
done:
    return err;
}

static trl_err provide_slots(trli_frame *frame, trl_block **block)
{
    const trli_model *model = frame->model;
    const int np = model->layout->nlocal;
    tenants t = {0};
    trl_err err = TRL_OK;
    int64_t *count = trli_new(model->ctx, (size_t)np, sizeof *count);
    if (!count) return trli_no_memory(model->ctx, NULL, "for %d slots", model->slots->n);
    TRL_TRY(find_tenants(model, &t));
    for (int s = 0; s < model->slots->n; ++s) TRL_TRY(provide_slot(frame, &t, s, count, block + (ptrdiff_t)s * np));
done:
    trli_free(t.first);
    trli_free(t.next);
    trli_free(count);
    return err;
}

static trl_err provide_scratch(trli_frame *frame, trl_block **block)
{
    const trli_model_run *run = frame->model->run;
    const int64_t count = (int64_t)(run->scratch_bytes / sizeof(double));
    char tag[64];
    trl_err err = TRL_OK;
    for (int w = 0; w < run->lanes && count > 0; ++w) {
        snprintf(tag, sizeof tag, "scratch of worker %d", w);
        const trl_block_desc desc = {
            .tag = tag, .patch = TRL_WHOLE_RANK, .count = count, .flags = TRL_BLOCK_PERSISTENT};
        TRL_TRY(trl_block_create(frame->memory, &desc, &block[w]));
        TRL_TRY(trl_block_acquire(block[w], 0, 0, &frame->scratch[w]));
    }
done:
    return err;
}

/* Other ranks of the node read what is sent to them where it is. Devices would have host memory of their own kind. */
static bool may_be_open(const trli_model *model)
{
    return model->ctx->topology.node_ranks > 1 && model->machine.shares && model->run->nexchanges > 0 &&
           !trl_workers_devices(model->run->workers);
}

static size_t room_of_slots(const trli_model *model)
{
    size_t room = 0;
    for (int s = 0; s < model->slots->n; ++s)
        for (int p = 0; p < model->layout->nlocal; ++p)
            room += trli_open_memory_room((size_t)trli_slot_values(model->slots, s, p) * sizeof(double));
    return room;
}

trl_err trli_slots_allocate(trli_frame *frame)
{
    const trli_model *model = frame->model;
    trl_err err = TRL_OK;
    int np = model->layout->nlocal, n = model->slots->n * np;
    trl_block **block = frame->block_rows =
        trli_new(model->ctx, (size_t)n + (size_t)model->run->lanes + 1, sizeof(trl_block *));
    frame->block = trli_new(model->ctx, (size_t)model->slots->n, sizeof *frame->block);
    frame->valid = trli_new(model->ctx, (size_t)model->slots->n, sizeof *frame->valid);
    frame->valid_rows = trli_new(model->ctx, (size_t)n * TRLI_POINTS, sizeof *frame->valid_rows);
    if (!block || !frame->block || !frame->valid || !frame->valid_rows)
        return trli_no_memory(model->ctx, NULL, "for %d slots", model->slots->n);
    for (int s = 0; s < model->slots->n; ++s) {
        frame->block[s] = block + (ptrdiff_t)s * np;
        frame->valid[s] = frame->valid_rows + (ptrdiff_t)s * np * TRLI_POINTS;
    }
    for (int i = 0; i < n * TRLI_POINTS; ++i) frame->valid_rows[i] = 1; /* the host's */
    TRL_TRY(trli_frame_add_space(frame, 0));
    if (may_be_open(model)) frame->open = trli_open_memory_create(model->ctx, room_of_slots(model), true);
    TRL_TRY(trli_field_manager_create_open(model->ctx, frame->open, &frame->memory));
    TRL_TRY(trli_frame_add_devices(frame));
    TRL_TRY(provide_slots(frame, block));
    TRL_TRY(provide_scratch(frame, block + n));
    TRL_TRY(trl_field_manager_touch(frame->memory, model->run->workers, n, block));
done:
    return err;
}

void trli_frame_vacate(trli_frame *frame, int field)
{
    const trli_model *model = frame->model;
    const int slot = model->field[field].slot, np = model->layout->nlocal;
    for (int p = 0; p < np; ++p) {
        trli_frame_unpin(frame, frame->base[0][slot][p]);
        trl_block_vacate(frame->block[slot][p]);
        for (int s = 0; s < TRL_SPACES_MAX; ++s)
            if (frame->base[s]) frame->base[s][slot][p] = NULL;
    }
    for (int i = 0; i < np * TRLI_POINTS; ++i) frame->valid[slot][i] = 1;
}

trl_err trli_frame_occupy(trli_frame *frame, int field)
{
    const trli_model *model = frame->model;
    const int slot = model->field[field].slot, np = model->layout->nlocal;
    trl_err err = TRL_OK;
    TRL_TRY(trl_blocks_acquire(np, frame->block[slot], frame->base[0][slot]));
    err = trl_field_manager_touch(frame->memory, model->run->workers, np, frame->block[slot]);
done:
    return err;
}

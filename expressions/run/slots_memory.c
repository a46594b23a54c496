/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the plan to memory: each slot on a patch, and each thread's scratch, is a block of the model's field manager. */
#include <stdio.h>
#include <string.h>

#include "lifecycle_impl.h"
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

static trl_err provide(trli_model *model, const char *tag, int patch, int64_t count, trl_block **block, void **memory)
{
    const trl_block_desc desc = {.tag = tag, .patch = patch, .count = count, .flags = TRL_BLOCK_PERSISTENT};
    trl_err err = TRL_OK;
    TRL_TRY(trl_block_create(model->run->memory, &desc, block));
    TRL_TRY(trl_block_acquire(*block, 0, 0, memory));
done:
    return err;
}

static trl_err provide_slot(trli_model *model, const tenants *t, int s, trl_block **block)
{
    const trl_layout *layout = model->layout;
    char tag[256];
    trl_err err = TRL_OK;
    name_slot(model, t, s, tag, sizeof tag);
    for (int p = 0; p < layout->nlocal; ++p)
        TRL_TRY(
            provide(model, tag, layout->local[p], model->slots->slot[s].values[p], &block[p], &model->run->base[s][p]));
done:
    return err;
}

/* Every thread's scratch is as large as the hungriest step wants. */
static trl_err provide_scratch(trli_model *model, trl_block **block)
{
    char tag[64];
    trl_err err = TRL_OK;
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_program *program = model->program[i];
        for (int s = 0; s < program->nsteps; ++s) {
            size_t need = program->plan->step[s].live ? trli_step_scratch(program, &program->step[s]) : 0;
            if (need > model->run->scratch_bytes) model->run->scratch_bytes = need;
        }
    }
    int64_t count = (int64_t)((model->run->scratch_bytes + sizeof(double) - 1) / sizeof(double));
    model->run->scratch_bytes = (size_t)count * sizeof(double);
    for (int w = 0; w < model->run->nworkers && count > 0; ++w) {
        snprintf(tag, sizeof tag, "scratch of worker %d", w);
        TRL_TRY(provide(model, tag, TRL_WHOLE_RANK, count, &block[w], &model->run->scratch[w]));
        model->slots->bytes += (int64_t)model->run->scratch_bytes;
    }
done:
    return err;
}

trl_err trli_slots_allocate(trli_model *model)
{
    trl_err err = TRL_OK;
    int np = model->layout->nlocal, n = model->slots->n * np;
    tenants t = {0};
    trl_block **block = trli_new(model->ctx, (size_t)n + (size_t)model->run->nworkers + 1, sizeof(trl_block *));
    if (!block) return trli_no_memory(model->ctx, NULL, "for %d slots", model->slots->n);
    void **rows = trli_model_keep(model, (size_t)n * sizeof *rows);
    model->run->base = trli_model_keep(model, (size_t)model->slots->n * sizeof *model->run->base);
    TRL_TRY(model->ir.err);
    for (int s = 0; s < model->slots->n; ++s) model->run->base[s] = rows + (ptrdiff_t)s * np;
    TRL_TRY(find_tenants(model, &t));
    TRL_TRY(trl_field_manager_create(model->ctx, &model->run->memory));
    for (int s = 0; s < model->slots->n; ++s) TRL_TRY(provide_slot(model, &t, s, block + (ptrdiff_t)s * np));
    TRL_TRY(provide_scratch(model, block + n));
    TRL_TRY(trl_field_manager_touch(model->run->memory, model->run->workers, n, block));
done:
    trli_free(block);
    trli_free(t.first);
    trli_free(t.next);
    return err;
}

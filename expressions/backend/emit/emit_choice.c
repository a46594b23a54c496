/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ghosts of kernels whose threads compute one point each: where a sample of a field lies beyond a side, it is the value
 * of the layer there, computed by the same thread. */
#include <stdlib.h>

#include "emit_plan_impl.h"
#include "memory_impl.h"

/* What a field's sample is where it lies in a layer. */
static trl_err add_choice(trli_emitter *e, int32_t i, const trli_emit_layer *layer)
{
    const trli_sample in = e->sample[i];
    const int beyond = layer->side ? in.offset[layer->axis] : -in.offset[layer->axis];
    trli_choice choice = {.sample = i, .ghost = -1, .axis = layer->axis, .side = layer->side, .layer = layer->layer};
    int8_t offset[3] = {in.offset[0], in.offset[1], in.offset[2]};
    trl_err err = TRL_OK;
    if (trli_sample_node(e, i)->index != layer->field || beyond < layer->layer) return TRL_OK;
    if (!layer->image) {
        const trli_ir_value v = trli_emit_see_through(e, layer->value, offset);
        TRL_TRY(trli_emit_sample(e, v, offset, 0, &choice.ghost));
    }
    if (!trli_make_room(e->ir->ctx, &e->choice, e->nchoices, 1, &e->choices_capacity, sizeof *e->choice))
        return trli_no_memory(e->ir->ctx, NULL, "to emit %d ghosts", e->nchoices + 1);
    e->choice[e->nchoices++] = choice;
done:
    return err;
}

/* Whether a sample that is off the axes lies at the other side, and nowhere else, along each axis that it has choices
 * along: fields go on beyond several periodic sides at once. Which of two sides' ghosts counts is the interpreter's to
 * say. */
static bool goes_round(const trli_emitter *e, int32_t i)
{
    int layers[3] = {0, 0, 0};
    for (int32_t c = 0; c < e->nchoices; ++c) {
        if (e->choice[c].sample != i) continue;
        if (e->choice[c].ghost >= 0) return false;
        ++layers[e->choice[c].axis];
    }
    for (int a = 0; a < 3; ++a)
        if (layers[a] > 0 && layers[a] != abs(e->sample[i].offset[a])) return false;
    return true;
}

/* Whether ghosts read no further than the samples before them: what is further may not be held. And whether what lies
 * beside two sides at once is known. */
static bool choices_fit(const trli_emitter *e, int32_t samples)
{
    int reach[3] = {0, 0, 0};
    for (int32_t i = 0; i < samples; ++i)
        for (int a = 0; a < 3; ++a)
            if (reach[a] < abs(e->sample[i].offset[a])) reach[a] = abs(e->sample[i].offset[a]);
    for (int32_t i = samples; i < e->count; ++i)
        for (int a = 0; a < 3; ++a)
            if (abs(e->sample[i].offset[a]) > reach[a]) return false;
    for (int32_t i = 0; i < samples; ++i) {
        const int8_t *offset = e->sample[i].offset;
        if ((offset[0] != 0) + (offset[1] != 0) + (offset[2] != 0) > 1 && !goes_round(e, i)) return false;
    }
    return true;
}

trl_err trli_emit_find_choices(trli_emitter *e)
{
    const int32_t samples = e->count;
    trl_err err = TRL_OK;
    for (int k = 0; k < e->nlayers; ++k)
        for (int32_t i = 0; i < samples; ++i)
            if (trli_sample_node(e, i)->op == TRLI_OP_FIELD) TRL_TRY(add_choice(e, i, &e->layer[k]));
    TRL_TRY(trli_emit_operands(e));
    e->choices_fit = choices_fit(e, samples);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "halos_impl.h"

#include "memory_impl.h"
#include "model_impl.h"
#include "tasks_impl.h"

void trli_exchange_request(const trli_model *model, const trli_exchanged *exchanged, trl_exchange_field *field)
{
    for (int i = 0; i < exchanged->n; ++i) {
        const trli_model_field *f = &model->field[exchanged->field[i]];
        field[i] = (trl_exchange_field){.location = f->location,
                                        .footprint = exchanged->reach[i],
                                        .type = TRL_F64,
                                        .name = f->name,
                                        .place = &f->boundary.place};
    }
}

trl_err trli_exchange_plan_of(const trli_model *model, const trli_exchanged *exchanged, trl_exchange **plan)
{
    trl_exchange_field *field = trli_new(model->ctx, (size_t)exchanged->n, sizeof *field);
    *plan = NULL;
    if (!field) return trli_no_memory(model->ctx, NULL, "for an exchange");
    trli_exchange_request(model, exchanged, field);
    const trl_err err = trli_exchange_plan_only(model->ctx, model->layout, exchanged->n, field, plan);
    trli_free(field);
    return err;
}

/* The axes along which a piece lies beyond a patch, and the last of them. */
static unsigned axes_beyond(const trli_exchange_piece *piece, unsigned *last)
{
    unsigned axes = 0;
    for (int a = 0; a < 3; ++a)
        if (trli_exchange_step(piece->direction, a) != 0) axes |= *last = 1u << a;
    return axes;
}

/* Edges and corners lie beyond a side that is marked already, as a rule. */
void trli_exchange_mark_receivers(const trl_exchange *plan, unsigned char *axes)
{
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < plan->receives.ntransfers; ++i) {
            const trli_exchange_piece *piece = &plan->receives.transfer[i];
            unsigned last, beyond = axes_beyond(piece, &last);
            if ((pass == 1 || beyond == last) && !(beyond & axes[piece->target_local]))
                axes[piece->target_local] |= (unsigned char)last;
        }
}

trl_err trli_task_halo(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    (void)done;
    for (int i = 0; i < t->npieces; ++i) {
        const trli_exchange_piece *piece = &t->piece[i];
        const int field = t->exchanged->field[piece->field];
        const trl_array source = trli_frame_array(frame, field, piece->source_local, args->space);
        const trl_array target = trli_frame_array(frame, field, piece->target_local, args->space);
        trli_exchange_copy(piece, args->chunk, args->chunks, &source, &target);
    }
    return TRL_OK;
}

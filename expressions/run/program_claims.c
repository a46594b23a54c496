/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which programs run in a frame. The memory plan, and the check of task graphs, are about what is known before a run;
 * here is noticed what threads, and functions of calls that choose frames, do. */
#include "memory_impl.h"
#include "program_calls_impl.h"
#include "slot_plan_impl.h"

void trli_program_note_run(const trli_program *program, trli_frame *frame)
{
    if (program->after) frame->brings = NULL;
    if (program->is_followed) frame->brings = program;
}

static trl_err refuse(const trli_program *program, const trli_program *other)
{
    return trl_fail(program->model->ctx, TRL_ERR_USAGE, NULL,
                    "programs '%s' and '%s' cannot run in one frame at once: they share its memory; run one after the "
                    "other, or in frames of their own",
                    program->name, other->name);
}

trl_err trli_frame_claim(trli_frame *frame, const trli_program *program, const void *owner)
{
    trl_err err = TRL_OK;
    pthread_mutex_lock(&frame->claims.lock);
    for (int i = 0; i < frame->claims.n && err == TRL_OK; ++i) {
        trli_claim *other = &frame->claims.claim[i];
        if (trli_programs_may_meet(program, other->program)) continue;
        other->disturbed = true;
        err = refuse(program, other->program);
    }
    if (err == TRL_OK && frame->claims.n == TRLI_CLAIMS)
        err = trl_fail(program->model->ctx, TRL_ERR_USAGE, NULL, "more than %d programs run in one frame at once",
                       TRLI_CLAIMS);
    if (err == TRL_OK) frame->claims.claim[frame->claims.n++] = (trli_claim){.program = program, .owner = owner};
    pthread_mutex_unlock(&frame->claims.lock);
    return err;
}

trl_err trli_frame_leave(trli_frame *frame, const void *owner)
{
    const trli_program *disturbed = NULL;
    pthread_mutex_lock(&frame->claims.lock);
    for (int i = 0; i < frame->claims.n; ++i) {
        if (frame->claims.claim[i].owner != owner) continue;
        if (frame->claims.claim[i].disturbed) disturbed = frame->claims.claim[i].program;
        frame->claims.claim[i--] = frame->claims.claim[--frame->claims.n];
    }
    pthread_mutex_unlock(&frame->claims.lock);
    if (!disturbed) return TRL_OK;
    return trl_fail(
        disturbed->model->ctx, TRL_ERR_USAGE, NULL,
        "another program began in the frame of program '%s' while it ran: what the frame holds is not known",
        disturbed->name);
}

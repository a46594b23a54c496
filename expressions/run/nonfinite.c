/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values that are not finite: what kernels found of them in a run. */
#include "compute_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"

void trli_frame_forget_nonfinite(trli_frame *frame)
{
    for (int w = 0; w < frame->model->run->lanes; ++w) frame->nonfinite[w].found = false;
    frame->alternate = !frame->alternate;
    for (int s = 1; s < TRL_SPACES_MAX; ++s)
        if (frame->alarm[s]) frame->alarm[s][frame->alternate] = 0;
}

bool trli_frame_alarmed(const trli_frame *frame, bool before)
{
    const int which = before ? !frame->alternate : frame->alternate;
    bool alarmed = false;
    for (int s = 1; s < TRL_SPACES_MAX; ++s) alarmed |= frame->alarm[s] && ((volatile int *)frame->alarm[s])[which];
    return alarmed;
}

trl_err trli_frame_look_at(trli_frame *frame, int field, int variable)
{
    trl_err err;
    TRL_TRY(trli_frame_fetch(frame, field));
    trli_check_field(frame, field, variable, &frame->nonfinite[0]);
done:
    return err;
}

/* Look at the results of a step that checks them. */
static trl_err look_at_step(trli_frame *frame, const trli_program *program, const trli_step *s)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < s->nout; ++i) {
        if (!program->plan->demand[s->field[i]].live) continue;
        TRL_TRY(trli_frame_look_at(frame, s->field[i], s->variable[i]));
    }
done:
    return err;
}

trl_err trli_frame_find_nonfinite(trli_frame *frame, const trli_program *program, bool *found)
{
    const bool alarmed = trli_frame_alarmed(frame, false);
    trl_err err = TRL_OK;
    *found = false;
    for (int i = 0; i < program->nsteps && alarmed; ++i)
        if (program->plan->step[i].live && program->step[i].variable)
            TRL_TRY(look_at_step(frame, program, &program->step[i]));
    for (int w = 0; w < frame->model->run->lanes; ++w) *found |= frame->nonfinite[w].found;
done:
    return err;
}

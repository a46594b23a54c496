/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of programs whose results are looked at, by all ranks alike. */
#include "context_impl.h"
#include "execution_impl.h"
#include "kernels_impl.h"
#include "lifecycle_impl.h"
#include "model_run_impl.h"
#include "simulation_impl.h"

trl_err trli_agree_on_result(trl_simulation *sim, trl_err err, int *result)
{
    int64_t most = *result;
    err = trli_agree_max(sim->ctx, err, 1, &most);
    *result = (int)most;
    return err;
}

/* What the last step made is the present level by now. */
static trl_err look_at_last_step(const trl_simulation *sim, int *found)
{
    trl_err err;
    TRL_TRY(trl_workers_finish(sim->workers));
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(trli_frame_look_at(sim->frame, sim->equation[v].state, v));
    for (int w = 0; w < sim->model->run->lanes; ++w) *found |= sim->frame->nonfinite[w].found;
done:
    return err;
}

/* A step of which the devices may not have been through when it returned: before anything but the next step is done. */
static trl_err check_last_step(trl_simulation *sim)
{
    int found = 0;
    trl_err err = TRL_OK;
    if (sim->unchecked) err = trl_workers_finish(sim->workers);
    if (err == TRL_OK && sim->unchecked && trli_frame_alarmed(sim->frame, false)) err = look_at_last_step(sim, &found);
    sim->unchecked = false;
    TRL_TRY(trli_agree_on_result(sim, err, &found));
    if (found) err = trli_report_nonfinite(sim, sim->step_number, sim->time);
done:
    return err;
}

trl_err trli_run_checked(trl_simulation *sim, trli_program *program, trl_gidx step, double time, bool check)
{
    int64_t bytes, messages;
    bool any = false, late = false;
    trl_err err = TRL_OK;
    if (!check && sim->problem->nan_check && sim->devices) TRL_TRY(check_last_step(sim));
    trli_frame_forget_nonfinite(sim->frame);
    trli_kernels_poll(sim->model);
    err = trli_program_run(program, sim->frame);
    int found = 0;
    if (err == TRL_OK && check && sim->unchecked && trli_frame_alarmed(sim->frame, true)) {
        late = true;
        err = look_at_last_step(sim, &found);
    }
    if (err == TRL_OK && check) sim->unchecked = trl_workers_pending(sim->workers);
    if (err == TRL_OK && check && !late && !sim->unchecked) {
        err = trli_frame_find_nonfinite(sim->frame, program, &any);
        found = any;
    }
    trli_frame_traffic(sim->frame, program, &bytes, &messages);
    sim->comm_bytes += bytes;
    sim->comm_messages += messages;
    found += late && found;
    TRL_TRY(trli_agree_on_result(sim, err, &found));
    if (found == 1) err = trli_report_nonfinite(sim, step, time);
    if (found == 2) err = trli_report_nonfinite(sim, sim->step_number, sim->time);
done:
    return err;
}

trl_err trli_program_run_agreed(trl_simulation *sim, trli_program *program)
{
    return trli_run_checked(sim, program, sim->step_number, sim->time, false);
}

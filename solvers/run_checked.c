/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of programs whose results are looked at, by all ranks alike. */
#include <inttypes.h>

#include "adaptive_impl.h"
#include "context_impl.h"
#include "execution_impl.h"
#include "executor_impl.h"
#include "found_scalars_impl.h"
#include "implicit_impl.h"
#include "kernels_impl.h"
#include "late_impl.h"
#include "lifecycle_impl.h"
#include "limit_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "multistep_impl.h"
#include "program_calls_impl.h"
#include "simulation_impl.h"
#include "solving_impl.h"
#include "tasks_impl.h"

trl_err trli_agree_on_result(trl_simulation *sim, trl_err err, int *result)
{
    int64_t most = *result;
    err = trli_agree_max(sim->ctx, err, 1, &most);
    *result = (int)most;
    return err;
}

/* What the last step made is the present level by now, unless it is in its last stage. */
static trl_err look_at_last_step(const trl_simulation *sim, int *found)
{
    trl_err err;
    TRL_TRY(trl_workers_finish(sim->workers));
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(trli_frame_look_at(sim->frame, trli_solving_result(sim, v), v));
    for (int w = 0; w < sim->model->run->lanes; ++w) *found |= sim->frame->nonfinite[w].found;
done:
    return err;
}

/* over: a run that checks its own results has begun since. */
static trl_err find_in_last_step(trl_simulation *sim, bool over, int *found)
{
    trl_err err = TRL_OK;
    if (sim->unchecked) err = trl_workers_finish(sim->workers);
    if (err == TRL_OK && sim->unchecked && trli_frame_alarmed(sim->frame, over)) err = look_at_last_step(sim, found);
    sim->unchecked = false;
    return err;
}

/* Of the last step, or in the last stage of one that is being made of this one. */
static trl_err report_last(trl_simulation *sim)
{
    const trli_next_step *made = trli_solving_made(sim);
    return trli_report_nonfinite(sim, made ? made->number : sim->step_number, made ? made->time : sim->time);
}

trl_err trli_check_last_step(trl_simulation *sim, bool over)
{
    int found = 0;
    trl_err err = find_in_last_step(sim, over, &found);
    TRL_TRY(trli_agree_on_result(sim, err, &found));
    if (found) err = report_last(sim);
done:
    return err;
}

trl_err trli_check_passed_step(trl_simulation *sim)
{
    const bool alarmed = trli_frame_alarmed(sim->frame, false);
    if (sim->devices && sim->devices->n == 1) sim->unchecked &= alarmed;
    return sim->unchecked && alarmed ? trli_check_last_step(sim, false) : TRL_OK;
}

typedef enum finding { ALL_FINITE, NOT_FINITE, LAST_NOT_FINITE /* the results of the last step */ } finding;

static bool fetches(const trl_simulation *sim, const trli_program *program)
{
    return trli_leaves_scalars(program) && !sim->frame->fetches_later;
}

/* ahead: with `check`, devices may be left at the run, whose results are looked at after the next one. What runs
 * between these two, and checks nothing, lets alarms be. */
static trl_err run_and_look(trl_simulation *sim, const trli_program *program, bool check, bool ahead, int *found)
{
    bool any = false, late = false;
    if (check || !sim->unchecked) trli_frame_forget_nonfinite(sim->frame);
    atomic_store_explicit(&sim->frame->plugin_failed, false, memory_order_relaxed);
    trli_kernels_poll(sim->model);
    trli_program_set_leading(program, !check);
    trl_err err = trli_program_run(program, sim->frame);
    if (err == TRL_OK && fetches(sim, program)) err = trli_frame_fetch_scalars(sim->frame);
    if (!trli_was_made(sim, err) || err == TRL_ERR_DEVICE) trli_notice_post(sim->ctx);
    *found = ALL_FINITE;
    if (err == TRL_OK && check && !ahead) err = trl_workers_finish(sim->workers);
    if (err == TRL_OK && check && sim->unchecked && trli_frame_alarmed(sim->frame, true)) {
        late = true;
        err = look_at_last_step(sim, found);
    }
    if (err == TRL_OK && check) sim->unchecked = trl_workers_pending(sim->workers);
    if (err == TRL_OK && check && !late && !sim->unchecked) {
        err = trli_frame_find_nonfinite(sim->frame, program, &any);
        *found = any ? NOT_FINITE : ALL_FINITE;
    }
    if (late && *found) *found = LAST_NOT_FINITE;
    return err;
}

/* ---- devices that fail ---- */

int64_t trli_devices_untold(const trl_simulation *sim)
{
    bool any = false;
    for (int i = 0; sim->devices && i < sim->devices->n; ++i) {
        trl_device *device = sim->devices->device[i];
        const bool told = device->told;
        device->told |= !trli_device_usable(device) || atomic_load(&device->full);
        any |= device->told && !told;
    }
    return any ? trl_context_rank(sim->ctx) + 1 : 0;
}

void trli_devices_warn(const trl_simulation *sim, int64_t rank)
{
    if (rank > 0 && trl_context_ranks(sim->ctx) > 1)
        trl_warn(sim->ctx, NULL, "rank %d goes on without a device", (int)rank - 1);
}

/* The spaces, a bit each, of devices that failed and whose memory is in use still. */
static uint32_t failed_spaces(const trl_simulation *sim)
{
    uint32_t spaces = 0;
    for (int i = 0; sim->devices && i < sim->devices->n; ++i) {
        const trl_device *device = sim->devices->device[i];
        if (!trli_device_usable(device) && !device->left_out) spaces |= 1u << device->space;
    }
    return spaces;
}

bool trli_devices_failed(const trl_simulation *sim)
{
    return failed_spaces(sim) != 0;
}

/* A plugin of which a program may get other values when it runs again, or one that runs again with it; NULL: none. */
static const trli_opaque *find_impure(const trli_program *program)
{
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *p = &program->plan->step[i];
        const trli_plugin_step *plugin = trli_step_plugin(s);
        if (!p->live) continue;
        if (plugin && !(plugin->called->flags & TRL_EXPR_PURE)) return plugin->called;
        for (int k = 0; k < p->nslabs; ++k)
            if (p->slab[k].kind == TRLI_SLAB_MODIFIER && !(p->slab[k].modifier->flags & TRL_EXPR_PURE))
                return p->slab[k].modifier;
    }
    return program->after ? find_impure(program->after) : NULL;
}

/* Of which fields the values are needed if a program is run again: of the present level, unless it makes it; and what
 * was evaluated from it, unless it does so again or makes the next level, of which all is evaluated anew. */
static void find_needed(const trl_simulation *sim, const trli_program *program, bool *needed)
{
    for (int i = 0; i < sim->nshown; ++i)
        needed[sim->shown[i].field] =
            program != sim->step && program != sim->initial &&
            (sim->shown[i].kept < 0 ? program != sim->observe : program != sim->kept[sim->shown[i].kept].program);
    for (int v = 0; v < sim->nequations; ++v) needed[sim->equation[v].state] = program != sim->initial;
    if (program != sim->initial) trli_solving_mark_fields(sim, needed);
    if (program != sim->initial) trli_implicit_mark_fields(sim, needed);
    if (program != sim->initial) trli_multistep_mark_fields(sim, needed);
    if (program != sim->initial) trli_first_rates_mark_fields(sim, needed);
    if (program != sim->initial && program != sim->step) trli_dense_mark_fields(sim, needed);
}

/* Make ready to run a program again without the devices of this rank that failed. */
static trl_err leave_devices(trl_simulation *sim, const trli_program *program)
{
    const uint32_t spaces = failed_spaces(sim);
    const trli_opaque *impure = find_impure(program);
    bool *needed = trli_new(sim->ctx, (size_t)sim->model->nfields, sizeof *needed);
    trl_err err = TRL_OK;
    if (!needed) return trli_no_memory(sim->ctx, NULL, "for %d fields", sim->model->nfields);
    find_needed(sim, program, needed);
    if (impure)
        err = trl_fail(sim->ctx, TRL_ERR_DEVICE, &impure->place,
                       "a device failed, and '%s' cannot be run again: its type '%s' does not say that the same "
                       "inputs give the same bits (TRL_EXPR_PURE); restart from the last checkpoint, or run without "
                       "that device",
                       impure->name, impure->type);
    else if (spaces)
        err = trli_frame_leave_devices(sim->frame, spaces, needed);
    const trl_place *lost = err == TRL_OK ? trli_found_scalars_lost(sim->frame, program) : NULL;
    if (lost)
        err = trl_fail(sim->ctx, TRL_ERR_DEVICE, lost,
                       "what '%s' reads is lost with the device that had it; restart from the last checkpoint, or run "
                       "without that device",
                       program->name);
    for (int i = 0; sim->devices && i < sim->devices->n; ++i)
        sim->devices->device[i]->left_out |= (spaces >> sim->devices->device[i]->space) & 1;
    trli_reductions_clear(sim->frame, program);
    sim->frame->brings = NULL;
    trli_free(needed);
    return err;
}

/* How the ranks go on after a run that had this result. A device's failure on one rank spoils what the others receive:
 * all run again, whatever else they found. Only errors of tasks wait for the others' word: a run that was not made may
 * leave messages undone, and others waiting. */
static trl_err agree_on_run(trl_simulation *sim, const trli_program *program, trl_gidx step, trl_err err, int said,
                            int *found, bool *again)
{
    enum { GOOD, WRONG, AGAIN };
    const bool of_task = err == TRL_ERR_NUMERICS || err == TRL_ERR_PLUGIN;
    const bool repeat = err == TRL_ERR_DEVICE && sim->devices && !sim->devices->required && trli_devices_failed(sim);
    const bool waits = repeat || (of_task && sim->devices);
    const int ended = repeat ? AGAIN : waits ? WRONG : GOOD;
    int64_t most[3] = {*found, ended, trli_devices_untold(sim)};
    const trl_err result = err;
    *again = false;
    TRL_TRY(trli_agree_max(sim->ctx, waits ? TRL_OK : result, 3, most));
    *found = (int)most[0];
    if (most[1] == WRONG) TRL_TRY(trli_agree_max(sim->ctx, result, 0, NULL));
    *again = most[1] == AGAIN;
    trli_devices_warn(sim, most[2]); /* all ranks say the same, since rank 0 is heard */
    if (!*again) goto done;
    trl_warn(sim->ctx, NULL, "after a device failed, '%s' of step %" PRId64 " is run again without it from its start",
             program->name, step);
    trli_notice_forget(sim->ctx); /* all know of the failure, and it ends nobody */
    trli_diagnostics_forgive(sim->ctx, said);
    err = trl_context_agree(sim->ctx, leave_devices(sim, program));
done:
    return err;
}

static void count_traffic(trl_simulation *sim, const trli_program *program)
{
    int64_t bytes, messages;
    trli_frame_traffic(sim->frame, program, &bytes, &messages);
    sim->comm_bytes += bytes;
    sim->comm_messages += messages;
}

/* Run what bounds the next dt while steps are pending, and settle them: their messages took no longer than its
 * reductions, which are waited for, and also tell of a rank that failed before them. */
static trl_err run_beside_pending(trl_simulation *sim, const trli_program *program)
{
    const bool drains = trli_late_is_failed(sim);
    trl_err err = drains ? trli_program_drain(program, sim->frame) : trli_program_run(program, sim->frame);
    count_traffic(sim, program);
    ++sim->ctx->agreement.at_once;
    const trl_err settled = trli_late_settle(sim);
    if (settled != TRL_OK) return settled;
    return err == TRL_OK && !trli_reductions_failed(sim->frame, program) ? TRL_OK : trl_context_agree(sim->ctx, err);
}

/* Programs that find scalars wait for devices themselves, and with that for the last step, which is looked at then.
 * What it left that is not finite is why they failed, if they did. */
static bool looks_back(const trl_simulation *sim, const trli_program *program)
{
    const bool scalars = program == sim->limit || program == sim->observe;
    return scalars && sim->unchecked && trl_context_ranks(sim->ctx) == 1;
}

static trl_err look_back(trl_simulation *sim, trl_err err, int said)
{
    int found = 0;
    if (err == TRL_ERR_DEVICE) return err;
    const trl_err last = find_in_last_step(sim, false, &found);
    if (!found) return err != TRL_OK ? err : last;
    trli_diagnostics_drop(sim->ctx, said);
    return trli_report_nonfinite(sim, sim->step_number, sim->time);
}

/* back: look back after it. */
static trl_err run_and_agree(trl_simulation *sim, trli_program *program, trl_gidx step, bool check, bool back,
                             int *found, bool *again)
{
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(sim->ctx, &list);
    trl_err err = run_and_look(sim, program, check, !sim->late, found);
    count_traffic(sim, program);
    if (back && sim->unchecked) err = look_back(sim, err, said);
    TRL_TRY(agree_on_run(sim, program, step, err, said, found, again));
    if (*again && sim->problem->nan_check) TRL_TRY(trli_check_last_step(sim, check));
    if (*again && program != sim->model->lasting) TRL_TRY(trli_run_lasting(sim));
done:
    return err;
}

/* Its users fetch scalars that devices find, and then the last step is looked at: the host waits once. */
static bool is_fetched(const trl_simulation *sim, const trli_program *program)
{
    return program->fetched && sim->model->run->found && sim->model->run->gpu_kernels;
}

/* See that the ghosts are there that a program leaves to another one: they are not after a device failed. */
static trl_err bring_ghosts(trl_simulation *sim, const trli_program *program)
{
    if (!program->after || sim->frame->brings == program->after) return TRL_OK;
    return trli_limit_run(sim);
}

trl_err trli_run_checked(trl_simulation *sim, trli_program *program, trl_gidx step, double time, bool check)
{
    int found;
    bool again;
    trl_err err = TRL_OK;
    if (program == sim->limit && trli_late_is_pending(sim)) return run_beside_pending(sim, program);
    if (sim->late && sim->late->within) return trli_run_within(sim, program, step, time, check);
    TRL_TRY(trl_simulation_settle(sim));
    const bool back = looks_back(sim, program), later = program->tells || is_fetched(sim, program);
    if (!check && !back && !later && sim->problem->nan_check && sim->devices && !sim->late)
        TRL_TRY(trli_check_last_step(sim, false));
    do {
        TRL_TRY(bring_ghosts(sim, program));
        TRL_TRY(run_and_agree(sim, program, step, check, back, &found, &again));
    } while (again);
    if (found == NOT_FINITE) err = trli_report_nonfinite(sim, step, time);
    if (found == LAST_NOT_FINITE) err = trli_report_nonfinite(sim, sim->step_number, sim->time);
    if (err == TRL_OK && sim->unchecked && later && fetches(sim, program)) {
        TRL_TRY(trl_workers_finish(sim->workers));
        err = trli_check_passed_step(sim);
    }
done:
    return err;
}

/* Of one step: which it is, as trli_late_pend has it. */
static int first_bad(int found)
{
    return found == LAST_NOT_FINITE ? -1 : found == NOT_FINITE ? 0 : 1;
}

trl_err trli_run_and_agree(trl_simulation *sim, trli_program *program, trl_gidx step, bool check, int *bad, bool *again)
{
    int found = 0;
    const trl_err err = run_and_agree(sim, program, step, check, false, &found, again);
    *bad = first_bad(found);
    return err;
}

/* Whether this rank failed before: it computes no more, but takes part in messages. */
static bool drains(const trl_simulation *sim)
{
    return trli_late_is_failed(sim) || trli_late_dt_is_failed(sim);
}

/* What a rank computes on between two runs, and how, follows from scalars, which are the same on all ranks even if one
 * of them failed, unless it failed before a reduction: that tells all ranks at once. */
trl_err trli_run_within(trl_simulation *sim, trli_program *program, trl_gidx step, double time, bool check)
{
    trli_next_step next = {.number = step, .time = time};
    int found = 0;
    trl_err made, err = TRL_OK;
    TRL_TRY(bring_ghosts(sim, program));
    made = drains(sim) ? trli_program_drain(program, sim->frame) : run_and_look(sim, program, check, false, &found);
    count_traffic(sim, program);
    TRL_TRY(trli_late_settle(sim));
    if (trli_program_call_is_lost(program, sim->frame)) return trl_context_agree(sim->ctx, made);
    TRL_TRY(trli_late_dt_end_run(sim, &made, &next.time));
    err = trli_late_pend(sim, made, &next, 1, first_bad(found));
done:
    return err;
}

trl_err trli_run_deferring(trl_simulation *sim, trli_program *program)
{
    int found = 0;
    sim->frame->defers = true;
    const trl_err err =
        drains(sim) ? trli_program_drain(program, sim->frame) : run_and_look(sim, program, false, false, &found);
    sim->frame->defers = false;
    count_traffic(sim, program);
    return err;
}

trl_err trli_run_later(trl_simulation *sim, trli_program *program, const trli_next_step *next)
{
    double time = next->time;
    int found = 0;
    trl_err made, err = TRL_OK;
    made = drains(sim) ? trli_program_drain(program, sim->frame)
                       : run_and_look(sim, program, sim->problem->nan_check, true, &found);
    count_traffic(sim, program);
    TRL_TRY(trli_late_settle(sim));
    TRL_TRY(trli_late_dt_end_run(sim, &made, &time));
    err = trli_late_pend(sim, made, next, 1, first_bad(found));
done:
    return err;
}

trl_err trli_run_lasting(trl_simulation *sim)
{
    return sim->model->lasting ? trli_program_run_agreed(sim, sim->model->lasting) : TRL_OK;
}

trl_err trli_program_run_agreed(trl_simulation *sim, trli_program *program)
{
    return trli_run_checked(sim, program, sim->step_number, sim->time, false);
}

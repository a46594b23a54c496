/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps that go on while the ranks agree on the one before. A rank that failed in a step says so, and takes part in
 * the messages of the next one without computing anything; then all ranks know, and stop at the same step with the
 * same message. What is not finite in a step is noted, since the next one looks at its own results. */
#include <inttypes.h>
#include <string.h>

#include "adaptive_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "frame_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"

/* Mock devices that nobody asked for: where one fails, the run is made again from the level that the next step would
 * write. The values of a GPU that fails are lost. */
static bool runs_again(const trl_simulation *sim)
{
    const trl_devices *devices = sim->devices;
    return devices && devices->n > 0 && !devices->required && devices->device[0]->kind != TRL_KIND_GPU;
}

/* What some rank is, or lacks. */
enum { RUNS_AGAIN, NO_LATE_DT, NKINDS };

trl_err trli_late_create(trl_simulation *sim)
{
    const int lanes = sim->model->run->lanes;
    int64_t most[NKINDS] = {[RUNS_AGAIN] = runs_again(sim)};
    trli_late_dt *dt = NULL;
    trl_err err = TRL_OK;
    if (trl_context_ranks(sim->ctx) == 1) return TRL_OK;
    trli_late_steps *l = trli_new(sim->ctx, 1, sizeof *l);
    trli_nonfinite *nonfinite = trli_new(sim->ctx, (size_t)lanes, sizeof *nonfinite);
    trli_late_rows *rows = NULL;
    if (!l || !nonfinite) err = trli_no_memory(sim->ctx, NULL, "for the results of steps");
    if (err == TRL_OK) err = trli_late_rows_create(sim, &rows);
    if (err == TRL_OK) err = trli_late_dt_create(sim, &dt);
    most[NO_LATE_DT] = !dt;
    TRL_TRY(trli_agree_max(sim->ctx, err, NKINDS, most));
    if (most[RUNS_AGAIN]) goto done;
    if (most[NO_LATE_DT]) {
        trli_free(dt);
        dt = NULL;
    }
    *l = (trli_late_steps){.nonfinite = nonfinite, .dt = dt, .rows = rows};
    sim->late = l;
    return TRL_OK;
done:
    trli_free(dt);
    trli_free(rows);
    trli_free(nonfinite);
    trli_free(l);
    return err;
}

/* What the ranks agree on, the largest of all. */
enum { FIRST, UNLOOKED, UNTOLD, NAGREED };

void trli_late_destroy(trl_simulation *sim)
{
    int64_t most[NAGREED];
    if (!sim->late) return;
    if (sim->late->pending) (void)!trli_agree_at_last(sim->ctx, NAGREED, most);
    trli_free(sim->late->rows);
    trli_free(sim->late->nonfinite);
    trli_free(sim->late->dt);
    trli_free(sim->late);
    sim->late = NULL;
}

bool trli_late_is_pending(const trl_simulation *sim)
{
    return sim->late && sim->late->pending;
}

bool trli_late_is_failed(const trl_simulation *sim)
{
    return trli_late_is_pending(sim) && sim->late->failed;
}

bool trli_was_made(const trl_simulation *sim, trl_err err)
{
    return err == TRL_OK || err == TRL_ERR_NUMERICS || err == TRL_ERR_PLUGIN ||
           (err == TRL_ERR_DEVICE && trli_devices_failed(sim)) ||
           atomic_load_explicit(&sim->frame->plugin_failed, memory_order_relaxed);
}

static trl_err pend(trl_simulation *sim, trl_err err, const trli_next_step *next, int count, int bad)
{
    trli_late_steps *l = sim->late;
    const int64_t value[NAGREED] = {
        [FIRST] = count - bad, [UNLOOKED] = sim->unchecked, [UNTOLD] = trli_devices_untold(sim)};
    if (err == TRL_ERR_DEVICE && !sim->devices->required)
        err = trl_fail(sim->ctx, err, NULL,
                       "other ranks are beyond step %" PRId64 " by now, in which it failed; restart from the last "
                       "checkpoint, or run without that device",
                       sim->step_number + 1);
    if (err == TRL_OK) err = l->noted;
    l->noted = TRL_OK;
    const bool failed = err != TRL_OK;
    TRL_TRY(trli_agree_later(sim->ctx, err, NAGREED, value));
    l->earlier = l->reached;
    l->reached = (trli_reached){sim->step_number, sim->steps_run, sim->time, sim->dt, sim->from, sim->control};
    l->count = count;
    l->bad = bad;
    l->failed = failed;
    l->number = next[0].number;
    for (int i = 0; i < count; ++i) l->time[i] = next[i].time;
    if (bad < count) memcpy(l->nonfinite, sim->frame->nonfinite, (size_t)sim->model->run->lanes * sizeof *l->nonfinite);
    l->pending = true;
done:
    return err;
}

trl_err trli_late_pend(trl_simulation *sim, trl_err err, const trli_next_step *next, int count, int bad)
{
    return trli_was_made(sim, err) ? pend(sim, err, next, count, bad) : trl_context_agree(sim->ctx, err);
}

trl_err trli_agree_within(trl_simulation *sim, trl_err err)
{
    const trli_next_step none = {0};
    if (!sim->late || !sim->late->within) return trl_context_agree(sim->ctx, err);
    const trl_err settled = trli_late_settle(sim);
    return settled != TRL_OK ? settled : pend(sim, err, &none, 1, 1);
}

/* The steps that some rank did not take count as not taken. */
static void go_back(trl_simulation *sim, const trli_reached *r)
{
    if ((sim->steps_run - r->run) % 2) trli_swap_levels(sim);
    sim->step_number = r->number;
    sim->steps_run = r->run;
    sim->time = r->time;
    sim->dt = r->dt;
    sim->from = r->from;
    sim->control = r->control;
}

/* Of this rank, in the first bad step of all ranks. */
static void show_nonfinite(trl_simulation *sim, int bad)
{
    trli_frame_forget_nonfinite(sim->frame);
    if (bad == sim->late->bad)
        memcpy(sim->frame->nonfinite, sim->late->nonfinite,
               (size_t)sim->model->run->lanes * sizeof *sim->frame->nonfinite);
}

trl_err trli_late_settle(trl_simulation *sim)
{
    int64_t most[NAGREED] = {0};
    trli_late_steps *l = sim->late;
    if (!trli_late_is_pending(sim)) return TRL_OK;
    l->pending = false;
    const trl_err err = trli_agree_at_last(sim->ctx, NAGREED, most);
    l->unlooked = most[UNLOOKED] > 0;
    l->lost = err != TRL_OK || most[FIRST] > 0;
    if (err == TRL_OK) trli_devices_warn(sim, most[UNTOLD]);
    if (!l->lost) return TRL_OK;
    const int bad = l->count - (int)most[FIRST];
    go_back(sim, err == TRL_OK && bad < 0 ? &l->earlier : &l->reached);
    if (err != TRL_OK) return err;
    trli_diagnostics_drop(sim->ctx, sim->ctx->agreement.said);
    show_nonfinite(sim, bad);
    return trli_report_nonfinite(sim, l->number + bad, bad < 0 ? l->reached.time : l->time[bad]);
}

trl_err trl_simulation_settle(trl_simulation *sim)
{
    trl_err err = TRL_OK;
    if (!sim) return TRL_ERR_USAGE;
    TRL_TRY(trli_late_settle(sim));
    if (!sim->late || !sim->late->unlooked) return TRL_OK;
    sim->late->unlooked = false;
    err = trli_check_last_step(sim, false);
    sim->late->lost = err != TRL_OK;
    if (err != TRL_OK) go_back(sim, &sim->late->reached);
done:
    return err;
}

void trl_simulation_note(trl_simulation *sim, trl_err err)
{
    if (sim->late && sim->late->noted == TRL_OK) sim->late->noted = err;
}

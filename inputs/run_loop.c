/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "run_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "context_impl.h"

/* Times are met up to rounding: 3*0.1 > 30*0.01, and the user means step 30. */
static const double slack = 1e-9;

/* Whether one of the times of a list lies in a step. A list may lie far from t = 0, where steps are small. */
static bool meets_one(const trl_every *every, double before, double time)
{
    const double rounding = 1e-12;
    for (int i = 0; i < every->nat; ++i) {
        const double first = every->at[i] - rounding * fabs(every->at[i]);
        if (before < first && time >= first) return true;
    }
    return false;
}

/* Decades begin at every power of ten, so that there are some between 0 and any step. */
static bool meets_log(int per_decade, double before, double time)
{
    if (time <= 0) return false;
    if (before <= 0) return true;
    return floor(per_decade * log10(time) + slack) > floor(per_decade * log10(before) + slack);
}

bool trli_every_due(const trl_every *every, trl_gidx step, double time, double dt)
{
    if (every->steps > 0) return step % every->steps == 0;
    if (every->time > 0) return floor(time / every->time + slack) > floor((time - dt) / every->time + slack);
    if (every->log > 0) return meets_log(every->log, time - dt, time);
    return meets_one(every, time - dt, time);
}

bool trli_every_at(const trl_every *every, trl_gidx step, double time, double dt)
{
    const bool due = trli_every_due(every, step, time, dt);
    if (every->time <= 0) return due;
    return due && floor(time / every->time + slack) >= time / every->time - slack;
}

bool trli_every_between(const trl_every *every, double begin, double after, double end, double *time)
{
    if (every->time <= 0) return false;
    const double from = after > begin ? after : begin;
    *time = (floor(from / every->time + slack) + 1) * every->time;
    return *time / every->time < end / every->time - slack;
}

/* What a file takes, of which a part may have been beside steps. */
static void note_output(trli_session *run, double seconds, bool written)
{
    const double beside = trli_beside_get_stats(run->beside).last;
    run->wall[TRLI_WALL_OUTPUT] += seconds;
    if (written) run->last_output = seconds > beside ? seconds : beside;
}

static trl_err write_checkpoint(trli_session *run, bool forced)
{
    double before = trli_clock();
    trl_gidx step = run->checkpoint_step;
    trl_err err = trli_session_write_checkpoint(run, forced);
    note_output(run, trli_clock() - before, run->checkpoint_step != step);
    return err;
}

/* Where output cannot be written, the step is kept all the same if it can be: the restart writes its output again. */
static trl_err write_output(trli_session *run, bool forced)
{
    double before = trli_clock();
    trl_gidx step = run->fields_step;
    trl_err err = trli_session_write_output(run, forced);
    note_output(run, trli_clock() - before, run->fields_step != step);
    const bool moved = trl_simulation_step_number(run->sim) > run->first_step;
    if (err == TRL_ERR_IO && moved && write_checkpoint(run, true) == TRL_OK)
        trl_warn(run->ctx, NULL,
                 "step %" TRL_GIDX_FMT
                 " is in %s/checkpoint: once its output can be written, continue with --restart latest",
                 trl_simulation_step_number(run->sim), run->options->directory);
    return err;
}

static trl_err timed(trli_session *run, trl_err (*call)(trli_session *run))
{
    const double before = trli_clock();
    const trl_err err = call(run);
    run->wall[TRLI_WALL_OUTPUT] += trli_clock() - before;
    return err;
}

/* Whether some rank will be killed before a checkpoint that takes as long as the last output did can be written. */
static trl_err is_too_late(trli_session *run, int64_t *late)
{
    const double margin = 1.5, other = 0.1; /* s; what else is written */
    *late = trli_signals_seconds_left() < margin * run->last_output + other;
    return trli_agree_max(run->ctx, TRL_OK, 1, late);
}

/* What is to be known of a run that goes on from where this one is: multistep methods begin anew at checkpoints. */
static const char *difference(const trli_session *run)
{
    const trli_deck_options *o = run->options;
    const trl_simulation *sim = run->sim;
    const bool due = o->has_checkpoint && trli_every_due(&o->checkpoint_every, trl_simulation_step_number(sim),
                                                         trl_simulation_time(sim), trl_simulation_dt(sim));
    if (due || !trl_integrator_of(run->problem->time.method)->multistep) return "";
    return ", which begins at order 1: as no checkpoint is due at this step, values will differ within the tolerance "
           "from "
           "those of a run that was not stopped";
}

static trl_err stop(trli_session *run, int signal)
{
    const char *differs = difference(run);
    int64_t late;
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_settle(run->sim));
    TRL_TRY(is_too_late(run, &late));
    if (late)
        TRL_TRY(
            trl_fail(run->ctx, TRL_ERR_INTERRUPTED, NULL,
                     "stopped by SIG%s after step %" TRL_GIDX_FMT
                     "; no checkpoint was begun, because the launcher kills the ranks before it could be whole: let "
                     "output.checkpoint write some on the way, or raise mpirun --mca odls_base_sigkill_timeout",
                     sigabbrev_np(signal), trl_simulation_step_number(run->sim)));
    TRL_TRY(write_checkpoint(run, true));
    err = trl_fail(run->ctx, TRL_ERR_INTERRUPTED, NULL,
                   "stopped by SIG%s after step %" TRL_GIDX_FMT
                   "; a checkpoint is in %s/checkpoint, continue with --restart latest%s",
                   sigabbrev_np(signal), trl_simulation_step_number(run->sim), run->options->directory, differs);
done:
    return err;
}

static bool is_stop_due(const trli_session *run, trl_gidx step, double time, double dt)
{
    const trl_time_entry *t = &run->problem->time;
    const bool each =
        t->stop_every.steps == 0 && t->stop_every.time <= 0 && t->stop_every.nat == 0 && t->stop_every.log == 0;
    return t->stop.chars && step > 0 && (each || trli_every_due(&t->stop_every, step, time, dt));
}

/* A restart looks where the run that it continues looked last, and ends where that ended. */
static trl_err look_at_stop(trli_session *run)
{
    const trl_simulation *sim = run->sim;
    const bool due =
        is_stop_due(run, trl_simulation_step_number(sim), trl_simulation_time(sim), trl_simulation_dt(sim));
    return due ? trl_simulation_stops(run->sim, &run->stopped) : TRL_OK;
}

/* Whether the solution is looked at after a step. */
static bool is_look(const trli_session *run, trl_gidx step, double time, double dt)
{
    return trli_watch_due(run->watch, step) || is_stop_due(run, step, time, dt);
}

/* Whether something is written, or the solution looked at, after a step. */
static bool is_event(void *data, trl_gidx step, double time, double dt)
{
    const trli_session *run = data;
    const trli_deck_options *o = run->options;
    return is_look(run, step, time, dt) || trli_every_due(&o->every, step, time, dt) ||
           (trl_simulation_series_count(run->sim) > 0 && trli_every_due(&o->series_every, step, time, dt)) ||
           (run->problem->receivers.nvalues > 0 && trli_every_due(&o->receivers_every, step, time, dt)) ||
           (o->has_checkpoint && trli_every_due(&o->checkpoint_every, step, time, dt));
}

/* Steps that are taken together, in a block of them, count as so many of equal length. */
static void note_steps(trli_step_times *times, trl_gidx steps, double seconds)
{
    for (trl_gidx i = 0; i < steps && i < TRLI_STEP_TIMES; ++i)
        times->seconds[times->n++ % TRLI_STEP_TIMES] = seconds / (double)steps;
}

/* A step that cannot begin leaves a whole state, which is kept. late: what is due is a row whose values come later, and
 * the last step may be pending. */
static trl_err advance(trli_session *run, bool *late)
{
    const double started = trli_clock();
    trl_simulation *sim = run->sim;
    const trl_gidx before = trl_simulation_step_number(sim);
    trl_err err = trl_simulation_advance_pending(sim, is_event, run);
    const trl_gidx step = trl_simulation_step_number(sim);
    const double time = trl_simulation_time(sim), dt = trl_simulation_dt(sim);
    *late = err == TRL_OK && !is_look(run, step, time, dt) && trli_session_row_is_late(run);
    if (err == TRL_OK && !*late && (trl_simulation_done(sim) || is_event(run, step, time, dt)))
        err = trl_simulation_settle(sim);
    note_steps(&run->step_times, trl_simulation_step_number(sim) - before, trli_clock() - started);
    if (err == TRL_OK || !trl_simulation_stalled(run->sim)) return err;
    trl_err kept = write_checkpoint(run, true);
    return kept != TRL_OK ? kept : err;
}

static int64_t signal_received(const void *data)
{
    (void)data;
    return trli_signals_received();
}

/* A signal that any rank got is carried by the agreements of steps: all ranks stop after the same one. */
trl_err trli_session_loop(trli_session *run)
{
    double started = trli_clock(), output = run->wall[TRLI_WALL_OUTPUT];
    const trli_agreement *agreement = &run->ctx->agreement;
    int64_t at_once = 0;
    int signal = 0;
    bool late;
    trl_err err = TRL_OK;
    trli_agree_carry(run->ctx, TRLI_CARRIED_SIGNAL, signal_received, NULL);
    TRL_TRY(write_output(run, run->first_step == 0));
    TRL_TRY(trli_watch_start(run));
    TRL_TRY(look_at_stop(run));
    TRL_TRY(trli_shares_start(run));
    at_once = agreement->at_once;
    while (!run->stopped && !trl_simulation_done(run->sim)) {
        signal = (int)trli_agree_carried(run->ctx, TRLI_CARRIED_SIGNAL);
        if (signal) TRL_TRY(stop(run, signal));
        TRL_TRY(trli_shares_bring_on(run));
        TRL_TRY(advance(run, &late));
        TRL_TRY(trli_session_bring_on_rows(run));
        TRL_TRY(trli_watch_check(run));
        TRL_TRY(look_at_stop(run));
        trli_progress_update(&run->progress, run->sim, run->watch);
        if (trli_beside_is_due(run->beside)) TRL_TRY(timed(run, trli_session_bring_on_files));
        if (late) TRL_TRY(timed(run, trli_session_begin_row));
        if (late) continue;
        TRL_TRY(write_output(run, false));
        TRL_TRY(write_checkpoint(run, false));
    }
    run->agreements[0] = agreement->at_once - at_once;
    run->agreements[1] = agreement->later;
    TRL_TRY(write_output(run, true));
    TRL_TRY(write_checkpoint(run, run->options->has_checkpoint));
    TRL_TRY(timed(run, trli_session_finish_files));
done:
    if (err != TRL_OK) trli_session_leave_rows(run);
    trli_shares_end(run);
    trli_agree_carry(run->ctx, TRLI_CARRIED_SIGNAL, NULL, NULL);
    run->wall[TRLI_WALL_LOOP] = trli_clock() - started - (run->wall[TRLI_WALL_OUTPUT] - output);
    return err;
}

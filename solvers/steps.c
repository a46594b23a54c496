/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which step comes next, and whether it leads anywhere: here, and nowhere else, a dt is accepted. And one step. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "adaptive_impl.h"
#include "execution_impl.h"
#include "frame_impl.h"
#include "help_impl.h"
#include "implicit_impl.h"
#include "late_impl.h"
#include "limit_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "multistep_impl.h"
#include "solving_impl.h"

/* More steps than this no run takes, and a double does not count them. */
#define STEPS_MAX 9007199254740992.0

/* Steps whose tasks are timed, after the first: enough for the means that the report shows. */
#define TIMED_STEPS 20

/* The distance to the next double. */
static double spacing_at(double t)
{
    const double size = fabs(t);
    return size < DBL_MAX ? nextafter(size, INFINITY) - size : INFINITY;
}

bool trli_step_leads_on(const trli_next_step *next)
{
    return next->dt >= spacing_at(next->from) && next->time > next->from && isfinite(next->time) &&
           next->number < INT64_MAX;
}

void trli_end_step(const trl_simulation *sim, trli_next_step *next)
{
    const trl_time_entry *p = &sim->problem->time;
    /* With a fixed dt, time is no running sum. */
    next->time = p->cfl > 0 ? next->from + next->dt : sim->base_time + (double)(next->number - sim->base_step) * p->dt;
    if (p->has_end && p->end - next->from <= next->dt * (1 + 1e-6)) {
        next->dt = p->end - next->from;
        next->time = p->end;
    }
}

trl_err trli_choose_step(trl_simulation *sim, trl_gidx number, double time, double dt, trli_next_step *next)
{
    const trl_time_entry *p = &sim->problem->time;
    trl_err err = TRL_OK;
    *next = (trli_next_step){.number = number < INT64_MAX ? number + 1 : number, .from = time, .dt = p->dt};
    next->before = number > 0 ? dt : 0;
    if (p->adaptive) {
        trli_adaptive_choose(sim, next);
        return TRL_OK;
    }
    if (p->cfl > 0) TRL_TRY(trli_limit_step(sim, &next->dt));
    trli_end_step(sim, next);
done:
    return err;
}

enum { REMEDY_ROOM = 400 };

/* What made a dt too small, and what the user can change about it. */
static const char *remedy(const trl_simulation *sim, double dt, char text[REMEDY_ROOM])
{
    const trl_time_entry *p = &sim->problem->time;
    char words[256];
    if (p->adaptive) return "use a larger tolerance";
    if (p->cfl <= 0) return "use a larger dt, or a start nearer to 0";
    if (dt == p->dt_max) return "it is time.dt.max: use a larger one";
    const trli_rate rate = trli_bound_rate(sim, true);
    trli_rate_words(sim, &rate, sizeof words, words);
    snprintf(text, REMEDY_ROOM, "what bounds it is %s", words);
    return text;
}

static trl_err fail_step(const trl_simulation *sim, const trli_next_step *next)
{
    const trl_time_entry *p = &sim->problem->time;
    const char *what = p->cfl > 0 ? "the stable dt" : "dt";
    char text[REMEDY_ROOM];
    if (next->number == INT64_MAX)
        return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->place, "there is no step number after %" PRId64,
                        next->number - 1);
    if (isnan(next->dt) || next->dt < 0)
        return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                        "%s is %.6g at step %" PRId64 ", t = %.10g: it must be positive", what, next->dt,
                        next->number - 1, next->from);
    if (!isfinite(next->time))
        return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                        "t overflows in step %" PRId64 ": dt = %.6g from t = %.10g; use smaller units of time",
                        next->number, next->dt, next->from);
    return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                    "%s = %.6g no longer changes t = %.17g after step %" PRId64
                    " (numbers there are %.3g apart): the run would never end; %s",
                    what, next->dt, next->from, next->number - 1, spacing_at(next->from), remedy(sim, next->dt, text));
}

trl_err trli_check_step(trl_simulation *sim, const trli_next_step *next)
{
    const trl_time_entry *p = &sim->problem->time;
    if (!trli_step_leads_on(next)) return fail_step(sim, next);
    char text[REMEDY_ROOM];
    const double needed = p->has_end ? (p->end - next->time) / next->dt : 0;
    const bool counted = sim->steps_wanted >= 0 && (double)(sim->steps_wanted - next->number) < STEPS_MAX;
    if (needed <= STEPS_MAX || counted || p->adaptive) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                    "%s = %.6g after step %" PRId64 " would take %.3g steps from t = %.10g to end = %.10g; %s",
                    p->cfl > 0 ? "the stable dt" : "dt", next->dt, next->number - 1, needed, next->from, p->end,
                    remedy(sim, next->dt, text));
}

trl_err trli_next_step_of(trl_simulation *sim, trli_next_step *next)
{
    sim->frame->step_number = sim->step_number; /* for the program that bounds dt */
    if (sim->late) sim->late->lost = false;
    if (sim->late) sim->late->within = sim->steps_run > 0 && !sim->multistep;
    trl_err err = trli_choose_step(sim, sim->step_number, sim->time, sim->dt, next);
    if (sim->late) sim->late->within = false;
    if (err == TRL_OK) err = trli_check_step(sim, next);
    if (err != TRL_OK && sim->late) { /* what failed before comes first */
        const trl_err settled = trl_simulation_settle(sim);
        if (settled != TRL_OK) err = settled;
    }
    sim->stalled = err != TRL_OK && !(sim->late && sim->late->lost);
    return err;
}

trl_err trli_run_step(trl_simulation *sim, const trli_next_step *next)
{
    const bool check = sim->problem->nan_check && !sim->problem->time.adaptive;
    if (sim->implicit) return trli_implicit_step(sim, next, check);
    if (sim->solving) return trli_solve_step(sim, next, check);
    return trli_run_checked(sim, sim->step, next->number, next->time, check);
}

bool trl_simulation_stalled(const trl_simulation *sim)
{
    return sim->stalled;
}

bool trli_dt_is_fixed(const trl_simulation *sim)
{
    return sim->problem->time.cfl <= 0 && !sim->problem->time.adaptive;
}

/* What the deck's numbers alone say about a fixed dt. */
static trl_err check_fixed(const trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    const double span = p->end - p->start, by_steps = (double)sim->steps_wanted * p->dt;
    if (p->has_end && (sim->steps_wanted < 0 || by_steps > span)) {
        const double coarse = fmax(spacing_at(p->start), spacing_at(p->end));
        if (span / p->dt < STEPS_MAX && p->dt >= coarse) return TRL_OK;
        return trl_fail(
            sim->ctx, TRL_ERR_INPUT, &p->dt_place,
            "with dt = %.6g, end = %.10g is never reached from start = %.10g: it takes %.3g steps, and numbers "
            "there are %.3g apart; use a larger dt",
            p->dt, p->end, p->start, span / p->dt, coarse);
    }
    if (sim->steps_wanted >= 0 && !isfinite(p->start + by_steps))
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->dt_place,
                        "t overflows: %" PRId64 " steps of dt = %.6g from start = %.10g; use smaller units of time",
                        sim->steps_wanted, p->dt, p->start);
    return TRL_OK;
}

trl_err trli_check_first_step(trl_simulation *sim)
{
    trli_next_step next;
    trl_err err = TRL_OK;
    if (trl_simulation_done(sim)) return TRL_OK;
    if (trli_dt_is_fixed(sim)) TRL_TRY(check_fixed(sim));
    TRL_TRY(trli_next_step_of(sim, &next));
    if (sim->problem->time.cfl > 0) sim->dt = next.dt; /* what is evaluated at step 0 may read it */
done:
    return err;
}

trl_err trli_check_time(const trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    const bool fixed = !(p->cfl > 0) && !p->adaptive;
    if (p->none) return TRL_OK;
    if (!isfinite(p->start) || (p->has_end && !isfinite(p->end)))
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->place, "start and end of time must be finite: %g and %g", p->start,
                        p->end);
    if (!isfinite(p->cfl) || (fixed && !(p->dt > 0 && isfinite(p->dt))))
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->dt_place, "dt, or cfl, must be positive and finite: %g and %g",
                        p->dt, p->cfl);
    return TRL_OK;
}

bool trli_done_at(const trl_simulation *sim, trl_gidx number, double time)
{
    const trl_time_entry *p = &sim->problem->time;
    return p->none || (sim->steps_wanted >= 0 && number >= sim->steps_wanted) || (p->has_end && time >= p->end);
}

void trli_swap_levels(trl_simulation *sim)
{
    for (int v = 0; v < sim->nequations; ++v)
        trli_frame_swap(sim->frame, sim->equation[v].state, sim->equation[v].next);
    trli_first_rates_swap(sim);
}

void trli_accept_steps(trl_simulation *sim, const trli_next_step *last, int count)
{
    if (count % 2) trli_swap_levels(sim);
    sim->time = last->time;
    sim->from = last->from;
    sim->dt = last->dt;
    sim->step_number = last->number;
    sim->steps_run += count;
    trli_solving_end_step(sim, true);
}

trl_err trl_simulation_step(trl_simulation *sim)
{
    trl_err err = sim ? trli_step_later(sim) : TRL_ERR_USAGE;
    return err == TRL_OK ? trl_simulation_settle(sim) : err;
}

/* Steps of multistep methods, whose vectors are not ours, are agreed on at once; and where there are devices the first
 * one, which can be made again without a device that does not work, because the host has the values still. */
trl_err trli_take_step(trl_simulation *sim, trli_next_step *next)
{
    const bool adaptive = sim->problem->time.adaptive;
    trli_late_steps *late = sim->late;
    const bool waits = late && sim->any_devices && sim->steps_run == 0;
    if (late && !waits && !adaptive && !sim->implicit && !sim->solving) return trli_run_later(sim, sim->step, next);
    if (late) late->within = !waits && !sim->multistep;
    trl_err err = adaptive ? trli_adaptive_step(sim, next) : trli_run_step(sim, next);
    if (late) late->within = false;
    if (err != TRL_OK) trli_solving_end_step(sim, false);
    if (err != TRL_OK && trli_late_is_pending(sim)) { /* what failed before comes first */
        const trl_err settled = trl_simulation_settle(sim);
        if (settled != TRL_OK) err = settled;
    }
    return err;
}

trl_err trli_step_later(trl_simulation *sim)
{
    trli_next_step next;
    trl_memory_stats before, after;
    bool taken = false;
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_return(sim));
    trl_memory_get_stats(sim->ctx, &before);
    const bool timed = sim->steps_run > 0 && sim->steps_run <= TIMED_STEPS;
    trl_graph_set_timing(sim->step->run->graph, timed);
    if (trli_dt_is_on_devices(sim)) TRL_TRY(trli_step_on_devices(sim, &next, &taken));
    if (trli_dt_comes_late(sim)) {
        TRL_TRY(trli_step_before_dt(sim, &next));
    } else if (!taken) {
        TRL_TRY(trli_next_step_of(sim, &next));
        trli_set_times(sim, &next);
        TRL_TRY(trli_take_step(sim, &next));
    }
    trl_memory_get_stats(sim->ctx, &after);
    if (sim->steps_run > 0) sim->allocations += after.allocations - before.allocations;
    trli_help_end_step(sim->frame->help, sim->step->run->graph, timed);
    trli_accept_steps(sim, &next, 1);
    err = trli_evaluate_kept(sim, false);
done:
    return err;
}

trl_err trl_simulation_resume(trl_simulation *sim, trl_gidx step, double time, double dt)
{
    if (!sim) return TRL_ERR_USAGE;
    const trl_time_entry *p = &sim->problem->time;
    if (step < 0 || (double)step > STEPS_MAX || !isfinite(time) || !isfinite(dt))
        return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL,
                        "a simulation cannot resume at step %" PRId64 ", t = %g with dt = %g", step, time, dt);
    for (int v = 0; v < sim->nequations; ++v) trli_frame_written(sim->frame, sim->equation[v].state);
    trli_solving_resume(sim, step, dt);
    trli_solving_forget_steps(sim);
    trli_first_rates_forget(sim);
    trli_multistep_forget(sim);
    sim->step_number = step;
    sim->time = time;
    sim->dt = dt;
    /* After a step shortened to an earlier end, or with another dt than before, time goes on from here. */
    const bool grid = fabs(p->start + (double)step * p->dt - time) <= 1e-6 * p->dt;
    sim->base_step = grid ? 0 : step;
    sim->base_time = grid ? p->start : time;
    trli_set_present(sim);
    return trli_run_lasting(sim);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps under cfl that begin before dt is known. What bounds dt is computed on each rank; while the largest of all
 * ranks' travels, the step runs. Those tasks of its first stage that read dt, or times that follow from it, wait for
 * it; so does the host where it reads dt before that. Where there is no dt, or a rank failed before, the step goes on
 * with the last dt until it is known, and does not count. */
#include <string.h>

#include "adaptive_impl.h"
#include "context_impl.h"
#include "late_impl.h"
#include "limit_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "tasks_impl.h"

/* The step of the rate that is known; false: there is none. */
static bool find_step(const trl_simulation *sim, trli_next_step *next)
{
    if (!trli_limit_gives(sim, &sim->late->dt->rate, &next->dt)) return false;
    trli_end_step(sim, next);
    return trli_step_leads_on(next);
}

trli_next_step trli_step_like_the_last(const trl_simulation *sim)
{
    return (trli_next_step){.number = sim->step_number < INT64_MAX ? sim->step_number + 1 : sim->step_number,
                            .from = sim->time,
                            .dt = sim->dt,
                            .time = sim->time + sim->dt,
                            .before = sim->dt};
}

/* All ranks' rates are here. */
static void take_rate(trl_simulation *sim)
{
    trli_late_dt *dt = sim->late->dt;
    trli_next_step next = trli_step_like_the_last(sim);
    dt->awaited = false;
    if (trli_reductions_failed(sim->frame, sim->limit)) return;
    dt->rate = trli_bound_rate(sim, true);
    if (find_step(sim, &next)) trli_set_dt(sim, &next);
}

/* Runs in each step; in others than these, there is nothing to find. */
static trl_err find_dt(void *data, const trl_task_args *args, bool *done)
{
    trl_simulation *sim = data;
    const trli_late_dt *dt = sim->late ? sim->late->dt : NULL;
    trl_err err = TRL_OK;
    if (!dt || !dt->awaited) return TRL_OK;
    TRL_TRY(trli_reductions_look(sim->frame, sim->limit, args->worker, done));
    if (*done) take_rate(sim);
done:
    return err;
}

static bool may_come_late(const trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    if (trl_context_ranks(sim->ctx) == 1 || sim->bound->constant) return false;
    return p->cfl > 0 && !p->adaptive && !sim->multistep;
}

trl_err trli_late_dt_prepare(trl_simulation *sim)
{
    const int stages = sim->integrator->stages, n = 1 + stages + sim->integrator->leapfrog;
    if (!may_come_late(sim)) return TRL_OK;
    trli_scalar_source *source = trli_model_keep(sim->model, sizeof *source);
    int *scalar = trli_model_keep(sim->model, (size_t)n * sizeof *scalar);
    if (!source || !scalar) return trli_no_memory(sim->ctx, NULL, "for the stable dt");
    scalar[0] = TRLI_SCALAR_DT;
    memcpy(scalar + 1, sim->stage_time + 1, (size_t)stages * sizeof *scalar);
    if (sim->integrator->leapfrog) scalar[1 + stages] = sim->kick_scalar;
    *source = (trli_scalar_source){.name = "dt", .find = find_dt, .data = sim, .n = n, .scalar = scalar};
    sim->part[0]->source = source;
    return TRL_OK;
}

trl_err trli_late_dt_create(const trl_simulation *sim, trli_late_dt **dt)
{
    bool last;
    trl_err err = TRL_OK;
    *dt = NULL;
    if (!sim->part[0]->source) return TRL_OK;
    TRL_TRY(trli_reductions_come_last(sim->limit, &last));
    if (!last) goto done;
    *dt = trli_new(sim->ctx, 1, sizeof **dt);
    if (!*dt) err = trli_no_memory(sim->ctx, NULL, "for the stable dt");
done:
    return err;
}

bool trli_dt_comes_late(const trl_simulation *sim)
{
    return sim->late && sim->late->dt && sim->steps_run > 0;
}

/* ---- a step ---- */

/* The dt that the step has, or why there is none. */
static trl_err choose_dt(trl_simulation *sim, trli_next_step *next)
{
    trl_err err;
    TRL_TRY(trli_limit_of(sim, &sim->late->dt->rate, &next->dt));
    trli_end_step(sim, next);
    err = trli_check_step(sim, next);
done:
    return err;
}

/* All ranks see the same dt, and whether a rank failed before it was known: only then do they agree at once. What this
 * rank says of a step that does not count is dropped. */
static trl_err take_dt(trl_simulation *sim)
{
    trli_late_dt *dt = sim->late->dt;
    trli_next_step taken = *dt->next;
    const bool failed = trli_reductions_failed(sim->frame, sim->limit);
    dt->under_way = false;
    if (dt->before == TRL_OK && (failed || !find_step(sim, &taken))) trli_diagnostics_drop(sim->ctx, dt->said);
    const trl_err err = failed ? trl_context_agree(sim->ctx, dt->before) : choose_dt(sim, dt->next);
    sim->stalled = failed || err != TRL_OK;
    return err;
}

bool trli_late_dt_is_failed(const trl_simulation *sim)
{
    return sim->late && sim->late->dt && sim->late->dt->before != TRL_OK;
}

trl_err trli_late_dt_end_run(trl_simulation *sim, trl_err *made, double *time)
{
    trli_late_dt *dt = sim->late->dt;
    trl_err err = TRL_OK;
    if (!dt || dt->awaited || !trli_was_made(sim, *made)) return TRL_OK;
    if (dt->under_way) {
        TRL_TRY(take_dt(sim));
        *time = dt->next->time;
    }
    if (dt->before != TRL_OK) *made = dt->before;
    dt->before = TRL_OK;
done:
    return err;
}

/* What failed before comes first. */
trl_err trli_late_dt_await(trl_simulation *sim)
{
    const trli_late_dt *dt = sim->late ? sim->late->dt : NULL;
    bool there;
    trl_err err = TRL_OK;
    if (!dt || !dt->under_way) return TRL_OK;
    TRL_TRY(trli_reductions_look(sim->frame, sim->limit, 0, &there));
    if (!there) {
        ++sim->ctx->agreement.at_once;
        TRL_TRY(trli_reductions_await(sim->frame, sim->limit, sim->frame->scalar));
    }
    take_rate(sim);
    TRL_TRY(trli_late_settle(sim));
    err = take_dt(sim);
done:
    return err;
}

trl_err trli_step_before_dt(trl_simulation *sim, trli_next_step *next)
{
    trli_late_dt *dt = sim->late->dt;
    const trl_diagnostic *list;
    *next = trli_step_like_the_last(sim);
    sim->late->lost = sim->stalled = false;
    trli_set_times(sim, next);
    const trl_err before = trli_run_deferring(sim, sim->limit);
    if (!trli_was_made(sim, before)) {
        const trl_err settled = trli_late_settle(sim);
        sim->stalled = settled == TRL_OK;
        return settled != TRL_OK ? settled : trl_context_agree(sim->ctx, before);
    }
    *dt = (trli_late_dt){.under_way = true,
                         .awaited = true,
                         .before = before,
                         .said = trl_context_diagnostics(sim->ctx, &list),
                         .next = next};
    sim->bound->known_once = true;
    const trl_err err = trli_take_step(sim, next);
    if (dt->under_way) trli_reductions_drop(sim->frame, sim->limit);
    *dt = (trli_late_dt){.rate = dt->rate};
    return err;
}

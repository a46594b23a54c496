/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps under cfl of which GPUs do all: a GPU finds dt, from what the program that bounds it has found, and the step's
 * kernels read it there. The host finds dt by itself while the GPU is at the step, and takes the step if both are the
 * same. Where there is no dt, the step does not count: it has written nothing that is there before. */
#include <string.h>

#include "adaptive_impl.h"
#include "bound_text_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "late_impl.h"
#include "late_scalars_impl.h"
#include "limit_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "model_run_impl.h"

/* ---- before programs are frozen ---- */

static bool may_be_on_devices(const trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    if (trl_context_ranks(sim->ctx) > 1 || p->cfl <= 0 || p->adaptive) return false;
    return !sim->implicit && !sim->solving && !sim->multistep && !sim->first_rates && !sim->bound->constant &&
           sim->bound->nplugins == 0;
}

/* The text that finds the rate. *fits: there is one. */
static trl_err write_rate(const trl_simulation *sim, trli_late_scalars *late, bool *fits)
{
    const trli_rates rates = trli_bound_rates(sim, true);
    trli_memstream text = {0};
    *fits = trli_bound_may_be_text(&rates);
    if (!*fits) return TRL_OK;
    int *value = trli_model_keep(sim->model, ((size_t)sim->model->nscalars + 1) * sizeof *value);
    if (!value || !trli_memstream_open(sim->ctx, &text)) return trli_no_memory(sim->ctx, NULL, "for the stable dt");
    late->value = value;
    late->nvalues = trli_bound_write(&rates, value, text.out);
    if (!trli_memstream_close(&text)) return trli_no_memory(sim->ctx, NULL, "for the stable dt");
    *fits = late->nvalues >= 0;
    char *kept = trli_model_keep(sim->model, text.length + 1);
    late->rate = kept ? memcpy(kept, text.text, text.length + 1) : NULL;
    trli_memstream_discard(&text);
    return kept ? TRL_OK : trli_no_memory(sim->ctx, NULL, "for the stable dt");
}

/* In the order of the kernel that finds them. */
static void list_scalars(const trl_simulation *sim, trli_late_scalars *late)
{
    late->scalar[late->n++] = TRLI_SCALAR_DT;
    late->scalar[late->n++] = sim->stage_time[late->stages];
    for (int s = 1; s < late->stages; ++s) late->scalar[late->n++] = sim->stage_time[s];
    if (late->kicks) late->scalar[late->n++] = sim->kick_scalar;
}

trl_err trli_device_dt_prepare(trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    const trl_integrator *by = sim->integrator;
    bool fits;
    trl_err err = TRL_OK;
    if (!may_be_on_devices(sim)) return TRL_OK;
    trli_late_scalars *late = trli_model_keep(sim->model, sizeof *late);
    int *scalar = trli_model_keep(sim->model, ((size_t)by->stages + 2) * sizeof *scalar);
    if (!late || !scalar) return trli_no_memory(sim->ctx, NULL, "for the stable dt");
    *late = (trli_late_scalars){.finder = sim->limit,
                                .reader = sim->step,
                                .scalar = scalar,
                                .cfl = p->cfl,
                                .most = p->dt_max,
                                .has_end = p->has_end,
                                .end = p->has_end ? p->end : 0,
                                .kicks = by->leapfrog,
                                .stages = by->stages,
                                .c = by->c};
    list_scalars(sim, late);
    TRL_TRY(write_rate(sim, late, &fits));
    if (fits) sim->model->late = late;
done:
    return err;
}

/* ---- the dt of a GPU on the host ---- */

trl_err trli_device_dt_fetch(trl_simulation *sim)
{
    trl_err err = TRL_OK;
    if (!trli_frame_late_find(sim->frame)) return TRL_OK;
    TRL_TRY(trl_workers_finish(sim->workers));
    trli_frame_late_take(sim->frame);
done:
    return err;
}

trl_err trli_device_dt_confirm(trl_simulation *sim, trli_next_step *next)
{
    const trli_frame *frame = sim->frame;
    trl_err err = TRL_OK;
    trli_frame_late_take(sim->frame);
    const trli_rate rate = trli_bound_rate(sim, true);
    sim->bound->known_once = true;
    TRL_TRY(trli_limit_of(sim, &rate, &next->dt));
    trli_end_step(sim, next);
    TRL_TRY(trli_check_step(sim, next));
    if (frame->late.dt != next->dt || frame->late.time != next->time)
        err = trl_fail(sim->ctx, TRL_ERR_BUG, &sim->problem->time.dt_place,
                       "a GPU takes the step to t = %.17g with dt = %.17g, and the host to t = %.17g with dt = %.17g",
                       frame->late.time, frame->late.dt, next->time, next->dt);
done:
    return err;
}

/* ---- a step ---- */

static bool is_left(const trli_program *program)
{
    return trli_graph_left_to_devices(program->run->graph);
}

bool trli_dt_is_on_devices(const trl_simulation *sim)
{
    return sim->model->late && !sim->late && sim->steps_run > 0 && is_left(sim->limit) && is_left(sim->step);
}

/* Both programs, one behind the other. *ran: GPUs found dt, and are at the step. */
static trl_err run_both(trl_simulation *sim, const trli_next_step *next, int *bad, bool *ran)
{
    trli_frame *frame = sim->frame;
    bool again;
    trl_err err = TRL_OK;
    *ran = false;
    trli_frame_late_begin(frame, next->from, next->before);
    TRL_TRY(trli_run_and_agree(sim, sim->limit, sim->step_number, false, bad, &again));
    if (again || !is_left(sim->limit) || !trli_frame_late_find(frame)) goto done;
    frame->late.read = true;
    err = trli_run_and_agree(sim, sim->step, next->number, sim->problem->nan_check, bad, &again);
    frame->late.read = false;
    *ran = !again;
done:
    frame->late.goes_on = false;
    return err;
}

/* The devices have dropped what they did: nobody looks at it. */
static trl_err forget_step(trl_simulation *sim, trl_err err)
{
    const trl_err finished = trl_workers_finish(sim->workers);
    sim->unchecked = false;
    return err != TRL_OK ? err : finished;
}

trl_err trli_step_on_devices(trl_simulation *sim, trli_next_step *next, bool *taken)
{
    bool ran;
    int bad;
    trl_err err = TRL_OK;
    *taken = sim->stalled = false;
    *next = trli_step_like_the_last(sim);
    trli_set_times(sim, next);
    TRL_TRY(run_both(sim, next, &bad, &ran));
    if (!ran) trli_reductions_clear(sim->frame, sim->limit);
    if (!ran) return TRL_OK;
    if (bad < 0) return trli_report_nonfinite(sim, sim->step_number, sim->time);
    if (!is_left(sim->step)) return forget_step(sim, TRL_OK); /* workers may have had tasks, and the wrong dt */
    err = trli_device_dt_confirm(sim, next);
    sim->stalled = err != TRL_OK;
    if (err != TRL_OK) return forget_step(sim, err);
    trli_set_times(sim, next);
    if (bad == 0) err = trli_report_nonfinite(sim, next->number, next->time);
    *taken = err == TRL_OK;
done:
    return err;
}

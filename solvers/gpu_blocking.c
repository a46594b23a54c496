/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How many steps a GPU takes in one launch. As on the processor, ways to do it are tried one after the other, steps one
 * at a time among them, and the fastest stays. */
#include <math.h>
#include <stdio.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "gpu_blocking_impl.h"
#include "gpu_passes_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "time_blocking_impl.h"
#include "trial_impl.h"

enum {
    SAMPLE = 24, /* steps: passes of each way come out even; more, until they take */
    SAMPLE_NS = 2000000,
#ifdef TRL_SMALL_SIZES /* builds for testing */
    SETTLING = 1,
    STEPS_LEAST = 0,
#else
    SETTLING = 40,     /* steps after which a placement was found and graphs of launches are made */
    STEPS_LEAST = 400, /* to come: fewer take less than to try */
#endif
    STEPS = 8 /* of a pass, at most, unless it is asked for */
};

static const trli_trial_rules rules = {
    .settling = SETTLING, .rounds = 3, .few = 3, .steps = SAMPLE, .ns = SAMPLE_NS, .gain = 0.95};

struct trli_gpu_blocking {
    trli_gpu_passes *passes;
    trli_trial
        trial; /* its first way is one step at a time, unless passes are asked for; then come those of `passes` */
    bool asked, refused;
};

/* The way of the passes that a way is; -1: one step at a time. */
static int pass_of(const trli_gpu_blocking *b, int way)
{
    return b->asked ? way : way - 1;
}

static int steps_of(const trli_gpu_blocking *b, int way)
{
    return pass_of(b, way) < 0 ? 1 : trli_gpu_passes_steps(b->passes, pass_of(b, way));
}

static double steps_to_come(const trl_simulation *sim)
{
    const trl_time_entry *t = &sim->problem->time;
    const double counted = sim->steps_wanted >= 0 ? (double)(sim->steps_wanted - sim->step_number) : INFINITY;
    return fmin(counted, t->has_end ? (t->end - sim->time) / t->dt : INFINITY);
}

trl_err trli_gpu_blocking_create(trl_simulation *sim, trli_gpu_blocking **blocking, const char **why)
{
    const int wanted = sim->problem->time_blocking;
    trli_gpu_blocking *b = NULL;
    trl_err err = TRL_OK;
    *blocking = NULL;
    *why = wanted == 0 && steps_to_come(sim) < STEPS_LEAST ? "there are too few of them" : NULL;
    if (*why) return TRL_OK;
    b = trli_new(sim->ctx, 1, sizeof *b);
    if (!b) return trli_no_memory(sim->ctx, NULL, "to take several steps at once");
    TRL_TRY(trli_gpu_passes_create(sim->step, sim->frame, &sim->rotation, wanted > 1 ? wanted : STEPS, wanted > 1,
                                   &b->passes, why));
    if (*why) goto done;
    b->asked = wanted > 1;
    b->trial = (trli_trial){.rules = rules, .nways = b->asked ? 1 : 1 + trli_gpu_passes_count(b->passes)};
    *blocking = b;
    b = NULL;
done:
    trli_gpu_blocking_destroy(&b);
    return err;
}

void trli_gpu_blocking_destroy(trli_gpu_blocking **blocking)
{
    trli_gpu_blocking *b = *blocking;
    *blocking = NULL;
    if (!b) return;
    trli_gpu_passes_destroy(&b->passes);
    trli_free(b);
}

void trli_gpu_blocking_describe(const trli_gpu_blocking *b, size_t size, char *text)
{
    trli_gpu_passes_describe(b->passes, b->asked, size, text);
}

trl_err trli_gpu_blocking_write(trl_simulation *sim, FILE *out)
{
    const int wanted = sim->problem->time_blocking;
    const char *why = trli_time_blocking_refusal(sim);
    char *text = NULL;
    trl_err err = TRL_OK;
    if (!why) TRL_TRY(trli_gpu_passes_text(sim->step, &sim->rotation, wanted > 1 ? wanted : STEPS, &text, &why));
    if (text) fprintf(out, "/* several steps in one launch */\n%s\n", text);
done:
    trli_free(text);
    return err;
}

/* ---- steps ---- */

/* What is not finite is found again, and reported, by single steps, which begin where the pass did; so is a device that
 * failed. */
static trl_err run_pass(trl_simulation *sim, trli_gpu_blocking *b, int way, const trli_next_step *next, int count)
{
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(sim->ctx, &list);
    bool alarmed = false;
    trl_err err = TRL_OK;
    TRL_TRY(trli_check_last_step(sim, false));
    for (int i = 0; i < count; ++i) {
        trli_set_times(sim, &next[i]);
        trli_gpu_passes_set_scalars(b->passes, i);
    }
    err = trli_gpu_passes_run(b->passes, pass_of(b, way), &alarmed);
    b->refused = err != TRL_OK || (alarmed && sim->problem->nan_check);
    if (b->refused) trli_diagnostics_forgive(sim->ctx, said);
    if (b->refused) return TRL_OK;
    if (count % 2 == 0) trli_swap_levels(sim); /* where one step would be */
    trli_accept_steps(sim, &next[count - 1], count);
    sim->in_passes += count;
    err = trli_evaluate_kept(sim, false);
done:
    return err;
}

trl_err trli_gpu_blocking_advance(trl_simulation *sim, trli_gpu_blocking *b, trl_stop stop, void *data)
{
    trli_next_step next[TRLI_STEPS_MOST];
    int count = 1;
    trl_err err = TRL_OK;
    trli_trial *t = &b->trial;
    const bool seeks = trli_trial_seeks(t);
    const bool there = !b->refused && (b->asked || trli_trial_is_settled(t)) && trli_gpu_passes_ready(b->passes);
    const int way = trli_trial_way(t);
    trli_trial_settle(t);
    const bool passing = there && pass_of(b, way) >= 0;
    if (passing) TRL_TRY(trli_look_ahead(sim, steps_of(b, way), stop, data, next, &count));
    const bool passes = passing && count == steps_of(b, way);
    if (there && seeks && t->steps_done == 0) TRL_TRY(trl_workers_finish(sim->workers));
    const int64_t start = trli_now_ns();
    TRL_TRY(passes ? run_pass(sim, b, way, next, count) : trli_step_later(sim));
    if (!there || b->refused || !seeks || passes != passing) return TRL_OK;
    if (!passes && t->steps_done % SAMPLE == SAMPLE - 1) TRL_TRY(trl_workers_finish(sim->workers));
    trli_trial_note(t, (double)(trli_now_ns() - start), count);
done:
    return err;
}

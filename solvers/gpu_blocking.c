/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How many steps a GPU takes in one launch, or is given together. As on the processor, ways to do it are tried one
 * after the other, steps one at a time among them, and the fastest stays. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chained_steps_impl.h"
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

static const trli_trial_rules rules = {.settling = SETTLING,
                                       .rounds = 3,
                                       .few = 3,
                                       .steps = SAMPLE,
                                       .ns = SAMPLE_NS,
                                       .misses = 2 * TRLI_STEPS_MOST,
                                       .gain = 0.95};

struct trli_gpu_blocking {
    trli_gpu_passes *passes;    /* NULL: a step is a launch, or several */
    trli_chained_steps *chains; /* NULL: steps are given to the GPU one by one */
    /* Its ways: chains, if there are; one step at a time; those of `passes`. Or only what is asked for. */
    trli_trial trial;
    bool asked;   /* passes are; or, if there are none, chains */
    bool refused; /* something failed in several steps, or is not finite: single steps say what */
};

static bool is_chain(const trli_gpu_blocking *b, int way)
{
    return b->chains && !(b->asked && b->passes) && way == 0;
}

/* The ways before those of passes. */
static int first_pass(const trli_gpu_blocking *b)
{
    return b->asked ? !b->passes : 1 + (b->chains != NULL);
}

/* Steps of a way, at most. */
static int steps_of(const trli_gpu_blocking *b, int way)
{
    bool always;
    if (is_chain(b, way)) return trli_chained_steps_most(b->chains, &always);
    return way < first_pass(b) ? 1 : trli_gpu_passes_steps(b->passes, way - first_pass(b));
}

static double steps_to_come(const trl_simulation *sim)
{
    const trl_time_entry *t = &sim->problem->time;
    const double counted = sim->steps_wanted >= 0 ? (double)(sim->steps_wanted - sim->step_number) : INFINITY;
    return fmin(counted, t->has_end ? (t->end - sim->time) / t->dt : INFINITY);
}

/* Several steps in one launch, unless there is a reason in *why. */
static trl_err add_passes(trl_simulation *sim, trli_gpu_blocking *b, const char **why)
{
    const int wanted = sim->problem->time_blocking;
    return trli_gpu_passes_create(sim->step, sim->frame, &sim->rotation, wanted > 1 ? wanted : STEPS, wanted > 1,
                                  &b->passes, why);
}

trl_err trli_gpu_blocking_create(trl_simulation *sim, bool passes, trli_gpu_blocking **blocking, const char **why)
{
    const int wanted = sim->problem->time_blocking;
    const bool few = steps_to_come(sim) < STEPS_LEAST;
    trli_gpu_blocking *b = *blocking = trli_new(sim->ctx, 1, sizeof *b);
    bool always = false;
    trl_err err = TRL_OK;
    if (!b) return trli_no_memory(sim->ctx, NULL, "to take several steps at once");
    if (passes) *why = wanted == 0 && few ? "there are too few of them" : NULL;
    if (passes && !*why) TRL_TRY(add_passes(sim, b, why));
    if (!trli_chained_steps_refusal(sim)) TRL_TRY(trli_chained_steps_create(sim, &b->chains));
    if (b->chains) (void)trli_chained_steps_most(b->chains, &always);
    if (b->chains && few && !always) trli_chained_steps_destroy(&b->chains);
    b->asked = b->passes ? wanted > 1 : always;
    b->trial = (trli_trial){.rules = rules,
                            .nways = b->asked ? 1 : first_pass(b) + (b->passes ? trli_gpu_passes_count(b->passes) : 0)};
done:
    if (err != TRL_OK || (!b->passes && !b->chains)) trli_gpu_blocking_destroy(blocking);
    return err;
}

void trli_gpu_blocking_destroy(trli_gpu_blocking **blocking)
{
    trli_gpu_blocking *b = *blocking;
    *blocking = NULL;
    if (!b) return;
    if (b->passes) trli_gpu_passes_destroy(&b->passes);
    if (b->chains) trli_chained_steps_destroy(&b->chains);
    trli_free(b);
}

void trli_gpu_blocking_describe(const trli_gpu_blocking *b, const char *why, size_t size, char *text)
{
    bool always;
    int n = 0;
    if (b->passes)
        trli_gpu_passes_describe(b->passes, b->asked, size, text);
    else
        n = snprintf(text, size, "one step at a time: %s", why);
    if (b->passes) n = (int)strlen(text);
    if (b->chains && n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "; up to %d steps are given to the GPU together",
                 trli_chained_steps_most(b->chains, &always));
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
    err = trli_gpu_passes_run(b->passes, way - first_pass(b), &alarmed);
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

/* Whether the fields are where ways need them. */
static bool is_ready(const trl_simulation *sim, const trli_gpu_blocking *b)
{
    if (b->passes && !trli_gpu_passes_ready(b->passes)) return false;
    return !b->chains || trli_chained_steps_ready(sim, b->chains);
}

/* Steps of a way, if there are as many before an event; else one. *count: how many were taken. */
static trl_err take_steps(trl_simulation *sim, trli_gpu_blocking *b, int way, trl_stop stop, void *data, int *count)
{
    const int steps = steps_of(b, way);
    trli_next_step next[TRLI_STEPS_MOST];
    trl_err err = TRL_OK;
    *count = 0;
    if (is_chain(b, way)) TRL_TRY(trli_chained_steps_advance(sim, b->chains, stop, data, count, &b->refused));
    if (*count > 0 || b->refused) return TRL_OK;
    if (way >= first_pass(b)) TRL_TRY(trli_look_ahead(sim, steps, stop, data, next, count));
    if (*count == steps) return run_pass(sim, b, way, next, steps);
    *count = 1;
    err = trli_step_later(sim);
done:
    return err;
}

trl_err trli_gpu_blocking_advance(trl_simulation *sim, trli_gpu_blocking *b, trl_stop stop, void *data)
{
    int count;
    trl_err err = TRL_OK;
    trli_trial *t = &b->trial;
    const bool seeks = trli_trial_seeks(t);
    const bool there = !b->refused && (t->nways == 1 || trli_trial_is_settled(t)) && is_ready(sim, b);
    const int way = trli_trial_way(t);
    const bool settling = is_chain(b, way) && !trli_chained_steps_settled(b->chains);
    trli_trial_settle(t);
    if (!there) return trli_step_later(sim);
    if (seeks && t->steps_done == 0) TRL_TRY(trl_workers_finish(sim->workers));
    const int64_t start = trli_now_ns();
    TRL_TRY(take_steps(sim, b, way, stop, data, &count));
    if (b->refused || !seeks) return TRL_OK;
    if (count == 1 && steps_of(b, way) > 1) {
        trli_trial_miss(t);
        return TRL_OK;
    }
    if (settling) return TRL_OK;
    if (count == 1 && t->steps_done % SAMPLE == SAMPLE - 1) TRL_TRY(trl_workers_finish(sim->workers));
    trli_trial_note(t, (double)(trli_now_ns() - start), count);
done:
    return err;
}

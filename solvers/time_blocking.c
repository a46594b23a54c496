/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How many steps are taken in one pass over memory. What pays depends on caches and memory as no table tells: once
 * kernels are compiled, some variants are tried one after the other, one step at a time among them, and the fastest
 * stays. */
#include <math.h>
#include <stdio.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "gpu_blocking_impl.h"
#include "gpu_passes_impl.h"
#include "kernels_impl.h"
#include "late_impl.h"
#include "simulation_impl.h"
#include "tasks_impl.h"
#include "time_blocking_impl.h"
#include "time_blocks_impl.h"
#include "trial_impl.h"

enum {
    STEPS = 8,         /* of one stage, or */
    STAGES = 12,       /* of several: of the longer passes that are tried */
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems are blocked too */
    EVERY_SIZE = true,
    SETTLING = 1
#else
    EVERY_SIZE = false,
    SETTLING = 16 /* steps after which kernels have tried their variants of going through a box */
#endif
};

typedef struct trli_time_blocking {
    int longest; /* steps that a pass can have, as far as is known before fields have memory */
    bool skewed; /* and whether it is */
    trli_trial trial;
    trli_time_blocks *variant[TRLI_WAYS_MOST]; /* by way; NULL: one step at a time */
    int steps[TRLI_WAYS_MOST];
    bool compiling; /* some rank still waits for kernels */
} trli_time_blocking;

static const double most_computed =
    1.25; /* times a patch's own points, with those of its neighbours: less than is gained */

/* ---- what is possible ---- */

/* All ranks choose one variant: if one of them cannot take several steps at once, none does; *new if it is on any.
 * Collective: yes. */
static trl_err agree(trl_simulation *sim, trl_err err, int *new)
{
    int64_t any[2] = {sim->not_blocked != NULL, *new};
    TRL_TRY(trli_agree_max(sim->ctx, err, 2, any));
    *new = (int)any[1];
    if (any[0] && !sim->not_blocked) sim->not_blocked = "another rank cannot take several";
done:
    return err;
}

/* The most steps that are worth a try, or asked for. */
static int most_steps(const trl_simulation *sim)
{
    const int wanted = sim->problem->time_blocking, stages = sim->integrator->stages;
    if (wanted > 1) return wanted < TRLI_STEPS_MOST ? wanted : TRLI_STEPS_MOST;
    if (stages == 1) return STEPS;
    return STAGES / stages > 1 ? STAGES / stages : 2;
}

/* Find out how many steps a pass can have, and whether to try one. */
static trl_err plan_pass(trl_simulation *sim, trli_time_plan *plan)
{
    const bool asked = sim->problem->time_blocking > 1;
    trli_time_blocking *b = sim->blocking;
    int64_t values;
    trl_err err = TRL_OK;
    b->longest = most_steps(sim);
    TRL_TRY(trli_time_plan_fit(sim->step, &sim->rotation, asked ? INFINITY : most_computed, &b->longest, plan, &values,
                               &sim->not_blocked));
    b->skewed = plan->skewed;
    if (asked || sim->not_blocked) goto done;
    if (!trli_exceeds_caches(sim->ctx, values)) sim->not_blocked = "the fields fit in the caches";
    if (!EVERY_SIZE && sim->model->settings.compile == TRL_COMPILE_NEVER) sim->not_blocked = "kernels are interpreted";
done:
    return err;
}

const char *trli_time_blocking_refusal(const trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    if (p->time_blocking == 1) return "run.time_blocking is 1";
    if (p->time.adaptive) return "dt follows from errors";
    if (sim->integrator->implicit) return "stages are solved for";
    if (sim->solving) return "equations are solved in each stage";
    return p->time.cfl > 0 ? "dt follows from cfl" : NULL;
}

static bool has_devices(const trl_simulation *sim)
{
    return sim->devices && trl_devices_opened(sim->devices) > 0;
}

trl_err trli_time_blocking_prepare(trl_simulation *sim)
{
    trli_time_plan plan = {0};
    int none = 0;
    trl_err err = TRL_OK;
    sim->blocking = trli_new(sim->ctx, 1, sizeof *sim->blocking);
    if (!sim->blocking) err = trli_no_memory(sim->ctx, NULL, "to take several steps at once");
    sim->not_blocked = trli_time_blocking_refusal(sim);
    sim->devices_block = !sim->not_blocked && has_devices(sim);
    if (sim->devices_block) sim->not_blocked = "devices take part";
    if (sim->devices_block && trl_context_ranks(sim->ctx) == 1) trli_gpu_passes_deepen(sim->step, &sim->rotation);
    if (err == TRL_OK && !sim->not_blocked) err = plan_pass(sim, &plan);
    TRL_TRY(agree(sim, err, &none));
    if (!sim->not_blocked) trli_time_plan_deepen(&plan, sim->step);
done:
    trli_time_plan_free(&plan);
    return err;
}

/* Whether a variant has other blocks than those before it. */
static bool is_new(const trli_time_blocking *b, const trli_time_blocks *variant)
{
    trli_time_sizes sizes, other;
    trli_time_blocks_sizes(variant, &sizes);
    for (int w = 0; w < b->trial.nways; ++w) {
        if (b->steps[w] != sizes.executions || !b->variant[w]) continue;
        trli_time_blocks_sizes(b->variant[w], &other);
        if (other.block == sizes.block && other.front == sizes.front) return false;
    }
    return true;
}

static trl_err add_variant(trl_simulation *sim, const trli_time_shape *shape)
{
    trli_time_blocking *b = sim->blocking;
    trli_time_blocks *variant = NULL;
    trl_err err = trli_time_blocks_create(sim->step, sim->frame, &sim->rotation, shape, &variant, &sim->not_blocked);
    int new = variant &&is_new(b, variant);
    TRL_TRY(agree(sim, err, &new));
    if (sim->not_blocked || !new) goto done;
    b->variant[b->trial.nways] = variant;
    b->steps[b->trial.nways++] = shape->executions;
    variant = NULL;
    TRL_TRY(trli_time_blocks_connect(b->variant[b->trial.nways - 1]));
done:
    trli_time_blocks_destroy(&variant);
    return err;
}

/* Blocks as large as the second-level cache and larger, while they fit in the last-level cache: the larger, the less
 * they read of one another; and half as many steps. */
static trl_err add_variants(trl_simulation *sim)
{
    const size_t known = trl_context_cache_bytes(sim->ctx, 2), second = known > 0 ? known : (size_t)1 << 20;
    const size_t last = trl_context_cache_bytes(sim->ctx, 0), most = last > 2 * second ? last : 2 * second;
    const int longest = sim->blocking->longest;
    trl_err err = TRL_OK;
    if (sim->problem->time_blocking > 1) {
        const trli_time_shape shape = {longest, sim->blocking->skewed, 2 * second};
        return add_variant(sim, &shape);
    }
    sim->blocking->steps[sim->blocking->trial.nways++] = 1;
    for (int half = 0; half < 2 && longest >> half > 1; ++half)
        for (size_t times = half ? 2 : 1; times <= (half ? 4 : 8) && times * second <= most; times *= 2) {
            const trli_time_shape shape = {longest >> half, sim->blocking->skewed, times * second};
            if (!sim->not_blocked) TRL_TRY(add_variant(sim, &shape));
        }
    sim->blocking->compiling = true;
    sim->blocking->trial.rules = (trli_trial_rules){.settling = SETTLING,
                                                    .rounds = TRLI_ROUNDS_MOST,
                                                    .few = 3,
                                                    .steps = sim->blocking->steps[sim->blocking->trial.nways - 1],
                                                    .gain = 1};
done:
    return err;
}

trl_err trli_time_blocking_create(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    trl_err err = TRL_OK;
    if (!sim->not_blocked) TRL_TRY(add_variants(sim));
    if (has_devices(sim))
        TRL_TRY(trli_gpu_blocking_create(sim, sim->devices_block, &sim->gpu_blocking, &sim->not_blocked));
    if (!sim->not_blocked && !sim->devices_block) goto done;
    trli_time_blocking_destroy(&sim->blocking);
    if (!sim->not_blocked) goto done;
    if (p->time_blocking > 1)
        trl_warn(sim->ctx, &p->time_blocking_place, "steps are taken one at a time: %s", sim->not_blocked);
done:
    return err;
}

void trli_time_blocking_destroy(trli_time_blocking **blocking)
{
    trli_time_blocking *b = *blocking;
    *blocking = NULL;
    if (!b) return;
    for (int w = 0; w < b->trial.nways; ++w) trli_time_blocks_destroy(&b->variant[w]);
    trli_free(b);
}

void trli_time_blocking_describe(const trl_simulation *sim, size_t size, char *text)
{
    const trli_time_blocking *b = sim->blocking;
    trli_time_sizes sizes;
    if (sim->gpu_blocking) {
        trli_gpu_blocking_describe(sim->gpu_blocking, sim->not_blocked, size, text);
        return;
    }
    if (!b) {
        snprintf(text, size, "one step at a time: %s", sim->not_blocked);
        return;
    }
    const int variant = b->trial.nways > 1 ? 1 : 0;
    trli_time_blocks_sizes(b->variant[variant], &sizes);
    int n = snprintf(text, size,
                     "%s%d steps in one pass over memory, e.g. %d block%s of %d along %c, fronts of %d along %c",
                     b->trial.nways > 1 ? "up to " : "", b->steps[variant], sizes.blocks, sizes.blocks > 1 ? "s" : "",
                     (int)sizes.block, "xyz"[sizes.block_axis], (int)sizes.front, "xyz"[sizes.front_axis]);
    if (sizes.layers > 0 && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, "; patches compute up to %d layers of one another%s", sizes.layers,
                      sizes.skewed ? " along other axes" : "");
    if (sizes.skewed && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "; patches move up along %c from step to step", "xyz"[sizes.front_axis]);
}

trl_gidx trl_simulation_in_passes(const trl_simulation *sim)
{
    return sim->in_passes;
}

trl_gidx trl_simulation_in_chains(const trl_simulation *sim)
{
    return sim->in_chains;
}

/* ---- steps ---- */

trl_err trli_look_ahead(trl_simulation *sim, int most, trl_stop stop, void *data, trli_next_step *next, int *count)
{
    trl_gidx number = sim->step_number;
    double time = sim->time, dt = sim->dt;
    trl_err err = TRL_OK;
    for (*count = 0; *count < most; ++*count) {
        trli_next_step *n = &next[*count];
        if (*count > 0 && trli_done_at(sim, number, time)) break;
        if (*count == 0)
            TRL_TRY(trli_next_step_of(sim, n));
        else
            TRL_TRY(trli_choose_step(sim, number, time, dt, n));
        if (*count > 0 && (n->dt != next[0].dt || !trli_step_leads_on(n))) break;
        number = n->number;
        time = n->time;
        dt = n->dt;
        if (stop && stop(data, number, time, n->dt)) {
            ++*count;
            break;
        }
    }
done:
    return err;
}

/* Agree on a pass at once or, between several ranks, later; found: its first step whose results are not finite. */
static trl_err end_pass(trl_simulation *sim, trli_time_blocks *blocks, trl_err err, const trli_next_step *next,
                        int count, int found)
{
    if (sim->late) {
        const trl_err settled = trli_late_settle(sim);
        if (settled != TRL_OK) return settled;
        if (found >= 0) trli_time_blocks_show_nonfinite(blocks, found);
        return trli_late_pend(sim, err, next, count, found < 0 ? count : found);
    }
    int first = found < 0 ? 0 : count - found; /* the first of all ranks' is the largest */
    TRL_TRY(trli_agree_on_result(sim, err, &first));
    if (first == 0) return TRL_OK;
    const int bad = count - first;
    trli_time_blocks_show_nonfinite(blocks, bad);
    err = trli_report_nonfinite(sim, next[bad].number, next[bad].time);
done:
    return err;
}

static trl_err run_pass(trl_simulation *sim, trli_time_blocks *blocks, const trli_next_step *next, int count)
{
    const bool drains = trli_late_is_failed(sim);
    trl_memory_stats before, after;
    trl_err err = TRL_OK;
    trl_memory_get_stats(sim->ctx, &before);
    for (int i = 0; i < count; ++i) {
        trli_set_times(sim, &next[i]);
        trli_time_blocks_set_scalars(blocks, i);
    }
    trli_kernels_poll(sim->model);
    err = drains ? trli_time_blocks_drain(blocks) : trli_time_blocks_run(blocks, count);
    if (!trli_was_made(sim, err)) trli_notice_post(sim->ctx);
    const int found = sim->problem->nan_check && !drains ? trli_time_blocks_nonfinite(blocks) : -1;
    TRL_TRY(end_pass(sim, blocks, err, next, count, found));
    trl_memory_get_stats(sim->ctx, &after);
    if (sim->steps_run > 0) sim->allocations += after.allocations - before.allocations;
    trli_time_sizes sizes;
    trli_time_blocks_sizes(blocks, &sizes);
    sim->comm_bytes += sizes.comm_bytes;
    sim->comm_messages += sizes.comm_messages;
    trli_accept_steps(sim, &next[count - 1], count);
    sim->in_passes += count;
    err = trli_evaluate_kept(sim, false);
done:
    return err;
}

/* While variants are tried, ranks have to find the same: the longest time of all steps of a way in a round, of which
 * *ns are the last, and whether one of them still waits for kernels. */
static trl_err share(trl_simulation *sim, double *ns)
{
    const double before = sim->blocking->trial.ns;
    int64_t most[2] = {(int64_t)(before + *ns), sim->model->run->compiling};
    trl_err err = trli_agree_max(sim->ctx, TRL_OK, 2, most);
    *ns = (double)most[0] - before;
    sim->blocking->compiling = most[1] > 0;
    return err;
}

/* Whether somebody looks at the present state, as far as is known: the ranks then agree on it before. */
static bool is_looked_at(const trl_simulation *sim, trl_stop stop, void *data)
{
    return !stop || trl_simulation_done(sim) || stop(data, sim->step_number, sim->time, sim->dt);
}

/* One step, or a pass over several. */
static trl_err advance_some(trl_simulation *sim, trl_stop stop, void *data)
{
    trli_time_blocking *b = sim->blocking;
    trli_next_step next[TRLI_STEPS_MOST];
    int count;
    trl_err err = TRL_OK;
    if (sim->gpu_blocking) return trli_gpu_blocking_advance(sim, sim->gpu_blocking, stop, data);
    if (!b) return trli_step_later(sim);
    const bool seeking = trli_trial_seeks(&b->trial);
    const bool trying = seeking && !b->compiling && trli_trial_is_settled(&b->trial);
    const int variant = seeking && b->compiling ? 0 : trli_trial_way(&b->trial);
    TRL_TRY(trli_look_ahead(sim, b->steps[variant], stop, data, next, &count));
    const int64_t start = trli_now_ns();
    if (count > 1)
        TRL_TRY(run_pass(sim, b->variant[variant], next, count));
    else
        TRL_TRY(trli_step_later(sim));
    double ns = (double)(trli_now_ns() - start);
    const bool counts = trying && (count > 1 || variant == 0);
    if (seeking && (b->compiling || (counts && trli_trial_ends(&b->trial, count)))) TRL_TRY(share(sim, &ns));
    if (counts) trli_trial_note(&b->trial, ns, count);
    if (seeking && !b->compiling) trli_trial_settle(&b->trial);
done:
    return err;
}

trl_err trl_simulation_advance_pending(trl_simulation *sim, trl_stop stop, void *data)
{
    return sim ? advance_some(sim, stop, data) : TRL_ERR_USAGE;
}

trl_err trl_simulation_advance(trl_simulation *sim, trl_stop stop, void *data)
{
    trl_err err = trl_simulation_advance_pending(sim, stop, data);
    if (err == TRL_OK && is_looked_at(sim, stop, data)) err = trl_simulation_settle(sim);
    return err;
}

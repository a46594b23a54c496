/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps one after the other that a GPU is given together: what tens of them enqueue is one CUDA graph, whose kernels
 * follow one another sooner than those of launches do. While the GPU is at a chain of steps, the host makes the next
 * one ready. The state from which a chain begins is kept: where something in a chain is not finite, single steps from
 * there find and report the first such value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chained_steps_impl.h"
#include "clock_impl.h"
#include "execution_impl.h"
#include "executor_impl.h"
#include "frame_impl.h"
#include "kernels_impl.h"
#include "late_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "time_blocking_impl.h"
#include "trace_impl.h"
#include "worker_impl.h"

enum {
#ifdef TRL_SMALL_SIZES /* builds for testing: short runs have chains, too */
    LONG = 8,
    SHORT = 4,
#else
    LONG = TRLI_STEPS_MOST, /* steps of a chain; an even number, so that time levels are where they were, */
    SHORT = 16,             /* or so many, if an event is near */
#endif
    SETTLING = 12,      /* chains until graphs of launches are made, for each parity of the levels and of the alarms */
    TOGETHER = 16,      /* chains that follow one another before the host waits */
    KEPT_MOST = 1 << 26 /* bytes of a state; steps of a larger one take long enough by themselves */
};

/* Where a chain began. */
typedef struct beginning {
    void *memory; /* of the GPU: the equations' fields as they lie in it, one after the other; NULL: not kept */
    trli_reached reached;
} beginning;

struct trli_chained_steps {
    trl_device *device;
    struct trli_relaunch *chain;
    beginning begun[2]; /* of the last chains, in turns */
    int sizes[2];       /* steps of a chain */
    int made;           /* chains, until they are settled */
    bool asked;
};

/* ---- making ---- */

const char *trli_chained_steps_refusal(const trl_simulation *sim)
{
    if (!trli_dt_is_fixed(sim)) return "dt is no number";
    if (sim->integrator->implicit || sim->multistep) return "stages are solved for";
    if (sim->solving) return "equations are solved in each stage";
    if (sim->first_rates || sim->dense) return "a step leaves rates to the next one";
    return NULL;
}

/* A field on a patch, from its first value in memory to its last one. */
static trl_memory_box piece_of(const trl_simulation *sim, int field, int patch, int space)
{
    const trl_array a = trli_frame_array(sim->frame, field, patch, space);
    const ptrdiff_t first = trl_array_offset(&a, a.held.lo[0], a.held.lo[1], a.held.lo[2]);
    const ptrdiff_t last = trl_array_offset(&a, a.held.hi[0] - 1, a.held.hi[1] - 1, a.held.hi[2] - 1);
    return (trl_memory_box){
        .at = (double *)a.at + first, .row = (size_t)(last - first + 1) * sizeof(double), .rows = 1, .planes = 1};
}

static size_t state_bytes(const trl_simulation *sim)
{
    size_t bytes = 0;
    for (int v = 0; v < sim->nequations; ++v)
        for (int p = 0; p < sim->model->layout->nlocal; ++p) bytes += piece_of(sim, sim->equation[v].state, p, 0).row;
    return bytes;
}

/* What the environment says of the steps of a chain: 0, nothing; 1, none. */
static int steps_by_environment(void)
{
    const char *text = getenv("TRELLIS_GPU_CHAIN");
    if (!text || !*text) return 0;
    const int n = atoi(text);
    return n < 2 ? 1 : n < TRLI_STEPS_MOST ? n - n % 2 : TRLI_STEPS_MOST;
}

trl_err trli_chained_steps_create(const trl_simulation *sim, trli_chained_steps **steps)
{
    const int given = steps_by_environment();
    *steps = NULL;
    if (given == 1 || trl_context_ranks(sim->ctx) > 1 || !sim->devices || sim->devices->n != 1) return TRL_OK;
    if (sim->devices->device[0]->kind != TRL_KIND_GPU) return TRL_OK;
    if (given == 0 && state_bytes(sim) > KEPT_MOST) return TRL_OK;
    trli_chained_steps *c = *steps = trli_new(sim->ctx, 1, sizeof *c);
    if (!c) return trli_no_memory(sim->ctx, NULL, "to take several steps at once");
    *c = (trli_chained_steps){
        .device = sim->devices->device[0], .sizes = {given ? given : LONG, given ? given : SHORT}, .asked = given > 0};
    return TRL_OK;
}

void trli_chained_steps_destroy(trli_chained_steps **steps)
{
    trli_chained_steps *c = *steps;
    *steps = NULL;
    if (!c) return;
    trli_chain_destroy(&c->chain);
    for (int i = 0; i < 2; ++i) c->device->ops->release(c->device, c->begun[i].memory);
    trli_free(c);
}

int trli_chained_steps_most(const trli_chained_steps *c, bool *asked)
{
    *asked = c->asked;
    return c->sizes[0];
}

bool trli_chained_steps_settled(const trli_chained_steps *c)
{
    return c->made >= SETTLING;
}

bool trli_chained_steps_ready(const trl_simulation *sim, const trli_chained_steps *c)
{
    if (!trli_device_usable(c->device) || !trli_graph_left_to_devices(sim->step->run->graph)) return false;
    for (int v = 0; v < sim->nequations; ++v)
        for (int p = 0; p < sim->model->layout->nlocal; ++p)
            if (!(trli_frame_spaces(sim->frame, sim->equation[v].state, p) >> c->device->space & 1)) return false;
    return true;
}

/* ---- states ---- */

/* Copy the state to where it is kept, or back, behind what the GPU was given. */
static trl_err copy_state(const trl_simulation *sim, const trli_chained_steps *c, const beginning *begun, bool back)
{
    const int space = c->device->space;
    trli_outcome outcome = {0};
    char *at = begun->memory;
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v)
        for (int p = 0; p < sim->model->layout->nlocal; ++p) {
            const trl_memory_box field = piece_of(sim, sim->equation[v].state, p, space);
            trl_memory_box kept = field;
            kept.at = at;
            const trli_box_copy copy = back ? trli_copy_of_boxes(&kept, space, &field, space)
                                            : trli_copy_of_boxes(&field, space, &kept, space);
            TRL_TRY(c->device->ops->copy(c->device, TRLI_STREAM_COMPUTE, &copy, (trli_ticket){&outcome, 0}));
            at += field.row;
        }
done:
    return err;
}

static trl_err keep_state(const trl_simulation *sim, const trli_chained_steps *c, beginning *begun)
{
    trl_err err = TRL_OK;
    begun->reached = (trli_reached){sim->step_number, sim->steps_run, sim->time, sim->dt, sim->from, sim->control};
    if (!sim->problem->nan_check) return TRL_OK;
    if (!begun->memory) TRL_TRY(c->device->ops->allocate(c->device, state_bytes(sim), &begun->memory));
    err = copy_state(sim, c, begun, false);
done:
    return err;
}

/* The levels of time are where they were. */
static trl_err return_to(trl_simulation *sim, const trli_chained_steps *c, const beginning *begun)
{
    trl_err err = TRL_OK;
    sim->step_number = begun->reached.number;
    sim->steps_run = begun->reached.run;
    sim->time = begun->reached.time;
    sim->dt = begun->reached.dt;
    sim->from = begun->reached.from;
    if (begun->memory && trli_device_usable(c->device)) err = copy_state(sim, c, begun, true);
    return err;
}

/* ---- steps ---- */

static trl_err run_chain(trl_simulation *sim, trli_chained_steps *c, const trli_next_step *next, int count)
{
    trl_err err;
    TRL_TRY(trli_chain_begin(sim->devices, &c->chain));
    for (int i = 0; i < count && err == TRL_OK; ++i) {
        trli_set_times(sim, &next[i]);
        sim->frame->step_number = sim->step_number;
        err = trli_program_run(sim->step, sim->frame);
        trli_accept_steps(sim, &next[i], 1);
    }
    const trl_err ended = trli_chain_end(sim->devices);
    if (err == TRL_OK) err = ended;
done:
    return err;
}

/* The steps of the next chain; none: an event is nearer. */
static trl_err next_chain(trl_simulation *sim, const trli_chained_steps *c, trl_stop stop, void *data,
                          trli_next_step next[TRLI_STEPS_MOST], int *count)
{
    const trl_err err = trli_look_ahead(sim, c->sizes[0], stop, data, next, count);
    *count = *count >= c->sizes[0] ? c->sizes[0] : *count >= c->sizes[1] ? c->sizes[1] : 0;
    return err;
}

/* next: [count] of the first. *bad: the chain with the first value that is not finite, or -1. */
static trl_err run_chains(trl_simulation *sim, trli_chained_steps *c, trl_stop stop, void *data,
                          trli_next_step next[TRLI_STEPS_MOST], int count, int *chains, int *bad)
{
    const bool checks = sim->problem->nan_check;
    trl_err err = TRL_OK;
    *bad = -1;
    for (*chains = 0; *chains < TOGETHER && *bad < 0; ++*chains) {
        if (*chains > 0) TRL_TRY(next_chain(sim, c, stop, data, next, &count));
        if (count == 0) break;
        trli_frame_forget_nonfinite(sim->frame);
        TRL_TRY(keep_state(sim, c, &c->begun[*chains % 2]));
        TRL_TRY(run_chain(sim, c, next, count));
        c->made += c->made < SETTLING;
        if (checks && *chains > 0 && trli_frame_alarmed(sim->frame, true)) *bad = *chains - 1;
    }
done:
    return err;
}

/* The steps among the calls of the GPU, by the host's clock. */
static void trace(const trl_simulation *sim, const trli_chained_steps *c, int steps, int64_t begin_ns)
{
    trl_trace *trace = trli_workers_trace(sim->workers);
    char name[TRLI_TRACE_NAME];
    if (!trace || steps == 0) return;
    snprintf(name, sizeof name, "%d steps together", steps);
    trli_trace_add_device(trace, c->device->space - 1, TRLI_STREAM_COMPUTE, TRLI_TRACE_CALL, name, begin_ns,
                          trli_now_ns());
}

trl_err trli_chained_steps_advance(trl_simulation *sim, trli_chained_steps *c, trl_stop stop, void *data, int *count,
                                   bool *refused)
{
    const trl_gidx before = sim->step_number;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(sim->ctx, &list);
    trli_next_step next[TRLI_STEPS_MOST];
    int chains, bad;
    trl_err err = TRL_OK;
    *refused = false;
    *count = 0;
    TRL_TRY(trl_simulation_return(sim));
    TRL_TRY(next_chain(sim, c, stop, data, next, count));
    if (*count == 0) return TRL_OK;
    TRL_TRY(trli_check_last_step(sim, false));
    trl_graph_set_timing(sim->step->run->graph, false);
    trli_kernels_poll(sim->model);
    const int64_t begin_ns = trli_now_ns();
    err = run_chains(sim, c, stop, data, next, *count, &chains, &bad);
    const trl_err finished = trl_workers_finish(sim->workers);
    if (err == TRL_OK) err = finished;
    if (bad < 0 && chains > 0 && sim->problem->nan_check &&
        (trli_frame_alarmed(sim->frame, false) || (err != TRL_OK && trli_frame_alarmed(sim->frame, true))))
        bad = chains - 1;
    *refused = err != TRL_OK || bad >= 0;
    if (*refused) {
        TRL_TRY(return_to(sim, c, &c->begun[(bad >= 0 ? bad : chains) % 2]));
        TRL_TRY(trl_workers_finish(sim->workers));
        trli_diagnostics_forgive(sim->ctx, said);
    }
    *count = (int)(sim->step_number - before);
    trace(sim, c, *count, begin_ns);
    sim->in_chains += *count;
    if (*count > 0) err = trli_evaluate_kept(sim, false);
done:
    return err;
}

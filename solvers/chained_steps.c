/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps one after the other that a GPU is given together: what tens of them enqueue is one CUDA graph, whose kernels
 * follow one another sooner than those of launches do. While the GPU is at a chain of steps, the host makes the next
 * one ready. The state from which a chain begins is kept: where something in a chain is not finite, single steps from
 * there find and report the first such value. */
#include <math.h>
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
#include "late_scalars_impl.h"
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
    KERNELS = 256,      /* of a long chain, about: making a graph takes as long as some of its steps */
    TOGETHER = 16,      /* chains that follow one another before the host waits */
    KEPT_MOST = 1 << 26 /* bytes of a state; steps of a larger one take long enough by themselves */
};

/* Where a chain began. */
typedef struct beginning {
    void *memory; /* of the GPU: the equations' fields as they lie in it, one after the other; NULL: not kept */
    trli_reached reached;
    int count;    /* its steps */
    bool pending; /* nobody has looked at what became of them */
} beginning;

struct trli_chained_steps {
    trl_device *device;
    struct trli_relaunch *chain;
    beginning begun[2]; /* of the last chains, in turns */
    int sizes[2];       /* steps of a chain */
    int made;           /* chains, until they are settled */
    int apart;          /* steps to be taken one by one, since one of them ends at an event that was not foreseen */
    bool asked, refused;
};

/* ---- making ---- */

/* Whether dt follows from nothing that steps change. */
static bool is_known(const trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    return trli_dt_is_fixed(sim) || (p->cfl > 0 && !p->adaptive && sim->bound->constant);
}

const char *trli_chained_steps_refusal(const trl_simulation *sim)
{
    const trli_late_scalars *late = sim->model->late;
    if (!is_known(sim) && !late) return "no GPU finds dt";
    if (late && !trli_late_scalars_suffice(late, sim->integrator->leapfrog ? sim->half_scalar : TRLI_SCALAR_STEP))
        return "the time at which a step begins is the host's";
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

/* Steps of a long chain: an even number. */
static int long_steps(const trl_simulation *sim)
{
    int kernels = 0;
    for (int late = 0; late <= (sim->model->late != NULL); ++late) {
        const trli_program *program = late ? sim->limit : sim->step;
        for (int i = 0; i < program->nsteps; ++i) kernels += program->plan->step[i].live;
    }
    const int steps = kernels > 0 ? KERNELS / kernels / 2 * 2 : LONG;
    return steps < SHORT ? SHORT : steps < LONG ? steps : LONG;
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
    *c = (trli_chained_steps){.device = sim->devices->device[0],
                              .sizes = {given ? given : long_steps(sim), given ? given : SHORT},
                              .asked = given > 0};
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

/* Whether GPUs find dt, so that the host knows when a step ends once they have made it. */
static bool is_late(const trl_simulation *sim)
{
    return sim->model->late != NULL;
}

bool trli_chained_steps_settled(const trli_chained_steps *c)
{
    return c->made >= SETTLING;
}

bool trli_chained_steps_ready(const trl_simulation *sim, const trli_chained_steps *c)
{
    if (is_late(sim) && !trli_dt_is_on_devices(sim)) return false;
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

static trli_reached reached_by(const trl_simulation *sim)
{
    return (trli_reached){sim->step_number, sim->steps_run, sim->time, sim->dt, sim->from, sim->control};
}

static trl_err keep_state(const trl_simulation *sim, const trli_chained_steps *c, beginning *begun)
{
    trl_err err = TRL_OK;
    if (sim->problem->nan_check || is_late(sim)) {
        if (!begun->memory) TRL_TRY(c->device->ops->allocate(c->device, state_bytes(sim), &begun->memory));
        TRL_TRY(copy_state(sim, c, begun, false));
    }
    begun->reached = reached_by(sim);
    begun->pending = true;
done:
    return err;
}

/* Of steps that were confirmed an odd number may be left. */
static trl_err return_to(trl_simulation *sim, trli_chained_steps *c, const beginning *begun)
{
    trl_err err = TRL_OK;
    if ((sim->steps_run - begun->reached.run) % 2) trli_swap_levels(sim);
    sim->step_number = begun->reached.number;
    sim->steps_run = begun->reached.run;
    sim->time = begun->reached.time;
    sim->dt = begun->reached.dt;
    sim->from = begun->reached.from;
    sim->frame->late.time = NAN; /* the next step does not go on from what the GPU has found last */
    for (int i = 0; i < 2; ++i) c->begun[i].pending = false;
    if (begun->memory && trli_device_usable(c->device)) err = copy_state(sim, c, begun, true);
    if (err == TRL_OK) err = trl_workers_finish(sim->workers);
    return err;
}

/* ---- steps ---- */

/* Make a step of a chain, behind `i` others. late: the host is told of it in a place of its own. Fails without a
 * message where the GPU cannot find dt: a step by itself says what there is to say. */
static trl_err make_step(trl_simulation *sim, const trli_next_step *next, bool late, int i, int place)
{
    trli_frame *frame = sim->frame;
    trl_err err = TRL_OK;
    trli_set_times(sim, next);
    if (!late) return trli_program_run(sim->step, frame);
    if (i == 0) trli_frame_late_begin(frame, next->from, next->before);
    if (i == 0) frame->late.step = place;
    if (i > 0 && !trli_frame_late_go_on(frame, place)) return TRL_ERR_DEVICE;
    TRL_TRY(trli_program_run(sim->limit, frame));
    if (!trli_frame_late_find(frame)) return TRL_ERR_DEVICE;
    frame->late.read = true;
    err = trli_program_run(sim->step, frame);
    frame->late.read = false;
done:
    return err;
}

/* next: [count], or under cfl one that is like all. on: the chain goes on from one that is not confirmed yet. */
static trl_err run_chain(trl_simulation *sim, trli_chained_steps *c, const trli_next_step *next, int turn, bool on)
{
    const int count = c->begun[turn].count;
    const bool late = is_late(sim);
    trl_err err;
    TRL_TRY(trli_chain_begin(sim->devices, &c->chain));
    for (int i = 0; i < count && err == TRL_OK; ++i) {
        err = make_step(sim, &next[late ? 0 : i], late, i + on, turn * TRLI_STEPS_MOST + i);
        if (late)
            trli_swap_levels(sim);
        else
            trli_accept_steps(sim, &next[i], 1);
    }
    sim->frame->late.goes_on = false;
    const trl_err ended = trli_chain_end(sim->devices);
    if (err == TRL_OK) err = ended;
done:
    return err;
}

/* Whether nothing follows a step before somebody has looked at it. */
static bool is_event(const trl_simulation *sim, trl_gidx number, double time, double dt, trl_stop stop, void *data)
{
    return trli_done_at(sim, number, time) || (stop && stop(data, number, time, dt));
}

/* The steps up to an event, if the next ones are as long as the last; ahead: behind so many others. */
static int predict(const trl_simulation *sim, int most, int ahead, trl_stop stop, void *data)
{
    int n = 0;
    while (n < most) {
        const int i = ahead + n;
        if (i > 0 && is_event(sim, sim->step_number + i, sim->time + i * sim->dt, sim->dt, stop, data)) break;
        ++n;
    }
    return n;
}

/* The steps of the next chain; none: an event is nearer. ahead: steps that are not confirmed yet. */
static trl_err next_chain(trl_simulation *sim, trli_chained_steps *c, int ahead, trl_stop stop, void *data,
                          trli_next_step next[TRLI_STEPS_MOST], int *count)
{
    trl_err err = TRL_OK;
    if (is_late(sim)) {
        next[0] = trli_step_like_the_last(sim);
        *count = c->apart > 0 ? 0 : predict(sim, c->sizes[0], ahead, stop, data);
        c->apart -= c->apart > 0;
    } else {
        err = trli_look_ahead(sim, c->sizes[0], stop, data, next, count);
    }
    *count = *count >= c->sizes[0] ? c->sizes[0] : *count >= c->sizes[1] ? c->sizes[1] : 0;
    return err;
}

/* Take the steps of a chain that is over, and in which all is finite, as the host finds them. false: they do not all
 * count, because an event, or the end, is nearer than foreseen, or because there is no dt. */
static bool confirm(trl_simulation *sim, trli_chained_steps *c, int turn, trl_stop stop, void *data)
{
    const int count = c->begun[turn].count;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(sim->ctx, &list);
    bool on = true;
    for (int i = 0; i < count && on; ++i) {
        trli_next_step next = trli_step_like_the_last(sim);
        trli_set_times(sim, &next);
        sim->frame->late.step = turn * TRLI_STEPS_MOST + i;
        on = trli_device_dt_confirm(sim, &next) == TRL_OK;
        if (on) trli_accept_steps(sim, &next, 1);
        if (on && i + 1 < count) on = !is_event(sim, next.number, next.time, next.dt, stop, data);
        if (!on) c->apart = i + 1;
    }
    trli_diagnostics_drop(sim->ctx, said); /* a step by itself says it again */
    return on;
}

/* Look at the chain that is over. before: there is one behind it. *bad: its turn, if it cannot stay as it is. */
static void look_at(trl_simulation *sim, trli_chained_steps *c, int turn, bool before, trl_stop stop, void *data,
                    int *bad)
{
    beginning *begun = &c->begun[turn];
    bool whole = true;
    if (is_late(sim)) begun->reached = reached_by(sim);
    c->refused = sim->problem->nan_check && trli_frame_alarmed(sim->frame, before);
    if (!c->refused && is_late(sim)) whole = confirm(sim, c, turn, stop, data);
    if (c->refused || !whole) *bad = turn;
    if (*bad < 0 && before && is_late(sim) && is_event(sim, sim->step_number, sim->time, sim->dt, stop, data)) {
        c->begun[!turn].reached = reached_by(sim);
        *bad = !turn; /* it was not foreseen that an event is between them */
    }
    begun->pending = false;
}

/* next: [count] of the first. *chains: how many were made; *bad: the turn of one that cannot stay as it is, or -1. */
static trl_err run_chains(trl_simulation *sim, trli_chained_steps *c, trl_stop stop, void *data,
                          trli_next_step next[TRLI_STEPS_MOST], int count, int *chains, int *bad)
{
    trl_err err = TRL_OK;
    *bad = -1;
    for (*chains = 0; *chains < TOGETHER && *bad < 0; ++*chains) {
        const int turn = *chains % 2, ahead = *chains > 0 && is_late(sim) ? c->begun[!turn].count : 0;
        if (*chains > 0 && !is_late(sim) && is_event(sim, sim->step_number, sim->time, sim->dt, stop, data)) break;
        if (*chains > 0) TRL_TRY(next_chain(sim, c, ahead, stop, data, next, &count));
        if (count == 0) break;
        c->begun[turn].count = count;
        trli_frame_forget_nonfinite(sim->frame);
        TRL_TRY(keep_state(sim, c, &c->begun[turn]));
        TRL_TRY(run_chain(sim, c, next, turn, ahead > 0));
        c->made += c->made < SETTLING;
        if (*chains > 0) look_at(sim, c, !turn, true, stop, data, bad);
    }
done:
    return err;
}

/* After a failure: the turn of the first chain that was begun, and whose end is not known; -1: there is none. */
static int first_pending(trl_simulation *sim, trli_chained_steps *c, int chains)
{
    const int turn = chains % 2;
    const int first = c->begun[!turn].pending ? !turn : c->begun[turn].pending ? turn : -1;
    if (first >= 0 && is_late(sim)) c->begun[first].reached = reached_by(sim);
    return first;
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
    *refused = c->refused;
    *count = 0;
    TRL_TRY(trl_simulation_return(sim));
    TRL_TRY(next_chain(sim, c, 0, stop, data, next, count));
    if (*count == 0) return TRL_OK;
    TRL_TRY(trli_check_last_step(sim, false));
    trl_graph_set_timing(sim->step->run->graph, false);
    trli_kernels_poll(sim->model);
    const int64_t begin_ns = trli_now_ns();
    err = run_chains(sim, c, stop, data, next, *count, &chains, &bad);
    const trl_err finished = trl_workers_finish(sim->workers);
    if (err == TRL_OK) err = finished;
    if (err == TRL_OK && bad < 0 && chains > 0) look_at(sim, c, (chains - 1) % 2, false, stop, data, &bad);
    const bool failed = err != TRL_OK;
    if (failed && bad < 0) bad = first_pending(sim, c, chains);
    if (failed) trli_diagnostics_forgive(sim->ctx, said);
    *refused = c->refused |= failed;
    if (bad >= 0) TRL_TRY(return_to(sim, c, &c->begun[bad]));
    *count = (int)(sim->step_number - before);
    trace(sim, c, *count, begin_ns);
    sim->in_chains += *count;
    err = *count > 0 ? trli_evaluate_kept(sim, false) : TRL_OK;
done:
    return err;
}

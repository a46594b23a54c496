/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ends of runs of placed graphs: where data is valid, and what calls and copies have taken. */
#include <string.h>

#include "arithmetic_impl.h"
#include "placed_calls_impl.h"
#include "trace_impl.h"

/* ---- times ---- */

/* Seconds of the host's clock since the run began. */
static trli_busy_span span_of(const trli_placed_run *state, int32_t timer)
{
    const trli_placed *p = state->of;
    trli_fence *origin = state->run->placed->origin[trli_placed_timer_space(p, timer)];
    trl_device *device = trli_device_of(p->devices, trli_placed_timer_space(p, timer));
    trli_fence **fence = state->fence + trli_placed_fences(p) + (ptrdiff_t)2 * timer;
    return (trli_busy_span){device->ops->seconds(device, origin, fence[0]),
                            device->ops->seconds(device, origin, fence[1])};
}

static bool is_timed(const trli_placed_run *state, int32_t timer)
{
    return atomic_load_explicit(&state->set[trli_placed_fences(state->of) + timer], memory_order_relaxed);
}

static void trace_timer(const trli_placed_run *state, trl_trace *trace, int32_t timer, trli_busy_span span)
{
    const trli_placed *p = state->of;
    const int device = trli_placed_timer_space(p, timer) - 1;
    const int64_t origin_ns = state->run->placed->origin_ns;
    const int64_t begin = origin_ns + (int64_t)(1e9 * span.begin), end = origin_ns + (int64_t)(1e9 * span.end);
    if (timer < p->ncalls) {
        trli_trace_add_device(trace, device, TRLI_STREAM_COMPUTE, TRLI_TRACE_CALL,
                              trli_graph_task_name(p->logical, p->call[timer]), begin, end);
        return;
    }
    const trli_transfer *t = (const trli_transfer *)p->transfers.list.data + (timer - p->ncalls);
    trli_trace_add_device(trace, device, t->to > 0 ? TRLI_STREAM_IN : TRLI_STREAM_OUT, TRLI_TRACE_COPY,
                          trli_graph_text(p->logical, trli_placed_handle(p, t->handle)->name), begin, end);
}

/* For the placement, and for who asks the graph that is placed. */
static void note_time(const trli_placed *p, int32_t task, double now, double *seconds)
{
    const int e = p->executor[task];
    seconds[task] = now;
    trli_graph_average_time(p->logical, task, e ? trli_device_of(p->devices, e)->kind : TRL_KIND_CPU, now);
}

static void note_times(trli_run_state *run, double *seconds)
{
    const trli_placed *p = run->graph->placed;
    const trli_transfer *transfer = p->transfers.list.data;
    trl_trace *trace = trli_workers_trace(run->workers);
    int32_t calls = 0, spans = 0;
    double end = 0;
    trli_placed_times_start(run);
    for (int32_t t = 0; t < trli_placed_timers(p); ++t) {
        if (t == p->ncalls) spans = trli_placed_times_merge(run, calls);
        if (!is_timed(run->placed, t)) continue;
        const trli_busy_span span = span_of(run->placed, t);
        end = trli_max_double(end, span.end);
        if (t < p->ncalls) {
            note_time(p, p->call[t], span.end - span.begin, seconds);
            trli_placed_times_call(run, calls++, p->call[t], span);
        } else {
            trli_placed_times_copy(run, spans, &transfer[t - p->ncalls], span);
        }
        if (trace) trace_timer(run->placed, trace, t, span);
    }
    trli_placed_times_end(run, end);
    for (int32_t i = 0; i < run->graph->task_count; ++i)
        if (p->task_of[i] >= 0)
            note_time(p, p->task_of[i], 1e-9 * (double)atomic_load_explicit(&run->run_ns[i], memory_order_relaxed),
                      seconds);
}

/* Of a round of a call's body. */
static void add_times(trli_placed_run *state)
{
    const trli_placed *p = state->of;
    trl_trace *trace = trli_workers_trace(state->run->workers);
    for (int32_t t = 0; t < trli_placed_timers(p); ++t) {
        if (!is_timed(state, t)) continue;
        const trli_busy_span span = span_of(state, t);
        if (t < p->ncalls) state->seconds[t] += span.end - span.begin;
        if (trace) trace_timer(state, trace, t, span);
    }
}

/* Of all rounds of a call. known: with the times that the run has taken. */
static void take_times(trli_run_state *run, int32_t call, bool known, double *seconds)
{
    trli_placed_run *state = run->call[call].placed;
    for (int32_t i = 0; i < state->of->ncalls; ++i) {
        if (known)
            note_time(run->graph->placed, trli_placed_base(run, call) + state->of->call[i], state->seconds[i], seconds);
        state->seconds[i] = 0;
    }
}

/* ---- where data is valid ---- */

/* The spaces with valid data after the run, if the data was valid in `before`. */
static uint32_t valid_after(const trli_placed *p, int64_t handle, uint32_t before)
{
    const uint32_t now = p->transfers.valid_after[handle], anywhere = 1u << TRLI_ANYWHERE;
    if (!(now & anywhere)) return now;
    return before ? before | (now & ~anywhere) : 0;
}

/* The same if it is unknown what was written and copied: the spaces of `before` whose data the run does not
 * overwrite. If there are none, one space stands for the value, whose content is unknown. */
static uint32_t valid_after_failure(const trli_placed *p, int64_t handle, uint32_t before)
{
    const uint32_t kept = before & ~(uint32_t)p->changed[handle];
    return kept ? kept : before & -before;
}

/* Others may look at what is lent to a body. */
static void note_valid(const trli_placed_run *state, bool well)
{
    const trli_placed *p = state->of;
    for (int64_t h = 0; h < trli_own_handles(p->logical); ++h) {
        uint32_t *valid = p->lent && p->lent[h] ? NULL : trli_placed_valid(p, state->frame, (int32_t)h);
        if (valid) *valid = well ? valid_after(p, h, *valid) : valid_after_failure(p, h, *valid);
    }
}

#ifdef TRL_POISON /* builds for testing: data in a memory where it is not valid holds NaN after a run */
static void fill_with_nan(const trl_memory_box *box)
{
    for (int k = 0; k < box->planes; ++k)
        for (int j = 0; j < box->rows; ++j)
            memset((char *)box->at + k * box->plane_stride + j * box->row_stride, 0xff, box->row);
}

/* The memory of mock devices is the process's. */
static void poison(const trli_placed_run *state, int32_t handle, int space)
{
    const trli_placed *p = state->of;
    const trl_graph_memory *memory = &p->logical->memory;
    trl_memory_box box[TRL_MEMORY_BOXES];
    const uint32_t *valid = p->lent && p->lent[handle] ? NULL : trli_placed_valid(p, state->frame, handle);
    if (space > 0 && (trli_placed_is_lost(p, space) || trli_device_of(p->devices, space)->kind != TRL_KIND_MOCK))
        return;
    if (!valid || p->part[handle] < 0 || *valid >> space & 1) return;
    const int n =
        memory->locate(memory->data, state->frame, trli_placed_handle(p, handle)->key, p->part[handle], space, box);
    for (int i = 0; i < n; ++i) fill_with_nan(&box[i]);
}

static void poison_invalid(const trli_placed_run *state)
{
    const trli_placed *p = state->of;
    const trli_provision *provided = p->provisions.data;
    if (p->overlaps) return;
    for (int32_t h = 0; h < p->logical->handles.count; ++h) poison(state, h, 0);
    for (int64_t i = 0; i < p->provisions.count; ++i) poison(state, provided[i].handle, provided[i].space);
}
#endif

/* ---- ends ---- */

void trli_placed_round_finish(trli_placed_run *state, bool well)
{
    note_valid(state, well);
#ifdef TRL_POISON
    if (well) poison_invalid(state);
#endif
    if (well && state->run->watched) add_times(state);
}

static void take_copies(trli_placed *p, trli_placed_run *state)
{
    for (int i = 0; i < TRL_WAYS; ++i) {
        p->copies[i] += atomic_exchange_explicit(&state->copies[i], 0, memory_order_relaxed);
        p->bytes[i] += atomic_exchange_explicit(&state->bytes[i], 0, memory_order_relaxed);
    }
}

/* Those in bodies come behind the calls around them, and end before. */
static void finish_calls(trli_run_state *run, bool well, double *seconds)
{
    for (int32_t c = (int32_t)run->graph->calls.count - 1; c >= 0; --c) {
        trli_call_run *call = &run->call[c];
        if (!call->placed) continue;
        if (call->under_way) trli_placed_round_finish(call->placed, false);
        take_copies(run->graph->placed, call->placed);
        take_times(run, c, well && run->watched, seconds);
    }
}

void trli_placed_run_finish(trli_run_state *run, bool well, double *seconds)
{
    trli_placed *p = run->graph->placed;
    const int64_t copies = atomic_load_explicit(&run->placed->copies[TRL_WAY_IN], memory_order_relaxed) +
                           atomic_load_explicit(&run->placed->copies[TRL_WAY_OUT], memory_order_relaxed);
    for (int d = 1; d <= p->devices->n && (!well || (p->overlaps && (run->watched || copies > 0))); ++d) {
        trl_device *device = trli_device_of(p->devices, d);
        device->ops->finish(device);
        const trl_err before = well ? TRL_OK : trli_device_finish(device);
        (void)before; /* earlier runs failed: the device is lost now */
    }
    if (well && run->watched) note_times(run, seconds);
    finish_calls(run, well, seconds);
    note_valid(run->placed, well);
#ifdef TRL_POISON
    if (well) poison_invalid(run->placed);
#endif
    take_copies(p, run->placed);
}

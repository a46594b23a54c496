/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of placed graphs, and rounds of those that are bodies of calls in one. */
#ifndef TRLI_PLACED_RUN_IMPL_H
#define TRLI_PLACED_RUN_IMPL_H

#include "placed_impl.h"

/* s of the host's clock. */
typedef struct trli_busy_span {
    double begin, end;
} trli_busy_span;

/* The state of a placed graph that a run changes, or, of a call's body, a round. */
typedef struct trli_placed_run {
    const trli_placed *of;
    trli_run_state *run;
    void *frame;
    trli_fence **fence; /* [nfences], then two around each call and each transfer of a device */
    _Atomic bool *set;  /* [nfences] whether the fence was set in this run; then the same for each pair of the others */
    int64_t *number;    /* [nfences] of a joint one's copy among those to its device */
    _Atomic int64_t copied[TRLI_EXECUTORS]; /* copies to a device with joint fences, ever */
    /* How many of them a stream of another device, or of this one, waits for already. */
    _Atomic int64_t covered[TRLI_EXECUTORS][TRLI_EXECUTORS][TRLI_STREAMS];
    _Atomic bool apart[TRLI_EXECUTORS][TRLI_STREAMS]; /* the stream waits for the runs before, in this run */
    trli_outcome outcome; /* of the devices' calls and copies, whose numbers are logical tasks */
    /* A fence of each device that was set when a watched run began, and the time of the host's clock then. */
    trli_fence *origin[TRLI_EXECUTORS];
    int64_t origin_ns;
    trli_fence *meet[TRLI_EXECUTORS][TRLI_STREAMS]; /* of virtual clocks: set before the origin */
    trli_busy_span *busy;                           /* [calls] times in which devices computed, of a watched run */
    double *call_begin;                             /* [logical tasks] start of its call; negative: no call */
    double *seconds;                                /* [calls] of a call's body: sums of the rounds of a watched run */
    _Atomic int64_t copies[TRL_WAYS], bytes[TRL_WAYS];
} trli_placed_run;

/* ---- data, and timers ---- */

static inline const trl_policy_handle *trli_placed_handle(const trli_placed *placed, int32_t handle)
{
    return (const trl_policy_handle *)placed->logical->handles.data + handle;
}

static inline uint32_t *trli_placed_valid(const trli_placed *placed, void *frame, int32_t handle)
{
    const trl_graph_memory *memory = &placed->logical->memory;
    return memory->valid(memory->data, frame, trli_placed_handle(placed, handle)->key);
}

/* A timer is a pair of fences around a call, by its number, or, after those, around a transfer. */
static inline int32_t trli_placed_timers(const trli_placed *placed)
{
    return placed->ncalls + (int32_t)placed->transfers.list.count;
}

/* The device to which its fences belong; 0: none, because the device is chosen when the transfer begins. */
static inline int trli_placed_timer_space(const trli_placed *placed, int32_t timer)
{
    const trli_transfer *transfer = placed->transfers.list.data;
    if (timer < placed->ncalls) return placed->executor[placed->call[timer]];
    const trli_transfer *t = &transfer[timer - placed->ncalls];
    return t->to > 0 ? t->to : t->from == TRLI_ANYWHERE ? 0 : t->from;
}

static inline bool trli_placed_is_lost(const trli_placed *placed, int space)
{
    return space > 0 && atomic_load_explicit(&trli_device_of(placed->devices, space)->lost, memory_order_relaxed);
}

/* ---- placed_times.c ---- */

/* Fences of devices with virtual clocks. Fails with MEMORY, DEVICE. */
TRL_NODISCARD trl_err trli_placed_times_create(trli_run_state *run);
void trli_placed_times_destroy(trli_run_state *run);
/* A watched run begins: all streams with virtual clocks wait for each other, so that the clocks begin the run at the
 * same time, whatever they added up before. */
void trli_placed_times_meet(trli_run_state *run);
/* Record the times of a watched run, in s after its start: begin; then each call of a device; then, after all calls,
 * each copy. */
void trli_placed_times_start(trli_run_state *run);
/* n: number of the calls recorded before. */
void trli_placed_times_call(trli_run_state *run, int32_t n, int32_t task, trli_busy_span span);
/* Call it after all n calls and before the copies. Merges the times in which devices computed; returns the number of
 * disjoint spans. */
int32_t trli_placed_times_merge(trli_run_state *run, int32_t n);
void trli_placed_times_copy(trli_run_state *run, int32_t spans, const trli_transfer *transfer, trli_busy_span span);
/* The last of its calls and copies ended at this time. */
void trli_placed_times_end(trli_run_state *run, double end);

/* ---- placed_fences.c ---- */

/* Fails with DEVICE: it has no fence. */
TRL_NODISCARD trl_err trli_fence_set(trl_device *device, trli_stream stream, trli_fence *fence);
/* A run begins. */
void trli_placed_fences_start(trli_placed_run *state);
/* What was enqueued to a stream of a device is followed by a fence of the graph, by its number. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_placed_set(trli_placed_run *state, trl_device *device, trli_stream stream, int32_t fence);
/* What is enqueued to a stream from now on waits for a fence, if it was set in this run. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_placed_wait(trli_placed_run *state, trl_device *device, trli_stream stream, int32_t fence);
/* The same for the runs before, which may be at the memory that is written, or read: by other devices, which copy from
 * this one, or by this one's other streams. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_placed_wait_for_runs(trli_placed_run *state, trl_device *device, trli_stream stream);
/* Called when a run begins, and when all its work was issued to the devices: keep runs in progress apart. A run that
 * ends with its devices begins behind those in progress; apart: once they are over. *timed: it will take its own time,
 * or, if it leaves devices at work as those before it did, about that: it waits for the run before, on all devices,
 * whichever of them have a part in it. */
TRL_NODISCARD trl_err trli_placed_enter(const trli_placed *placed, bool apart, bool *timed);
TRL_NODISCARD trl_err trli_placed_leave(const trli_placed *placed, bool timed);

/* ---- placed_run.c ---- */

trl_err trli_placed_launch(void *data, const trl_task_args *args, bool *done);
trl_err trli_placed_watch(void *data, const trl_task_args *args, bool *done);
/* The name of the logical task that failed, from the task that the placed graph's run reports. */
const char *trli_placed_failed(const trli_run_state *run, int32_t task);
/* Provide memory for all data in the spaces where it is used. On failure *space is that of the device that lacks
 * memory. */
TRL_NODISCARD trl_err trli_placed_provide(const trli_placed *placed, void *frame, int *space);
TRL_NODISCARD trl_err trli_placed_run_create(trli_run_state *run);
void trli_placed_run_destroy(trli_run_state *run);
void trli_placed_run_start(trli_run_state *run);
/* A round of a call's body begins. */
void trli_placed_round_start(trli_placed_run *state);

/* ---- placed_ends.c ---- */

/* The run has ended, with or without an error: record where data is valid, counts, and, for a watched run without an
 * error, the times of logical tasks in s (0: not measured). Guarded. */
void trli_placed_run_finish(trli_run_state *run, bool well, double *seconds);
/* A round of a call's body has ended, with or without an error: record where its data is valid now, and its times. */
void trli_placed_round_finish(trli_placed_run *state, bool well);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How the streams of devices wait for each other in a run. Copies to a GPU lie on one stream: who waits for one of them
 * waits for all that are on it by then, so that many copies take one fence and one wait, and not one for each. */
#include <sched.h>

#include "placed_run_impl.h"

/* A device that was lost before the run got its fences has none. */
trl_err trli_fence_set(trl_device *device, trli_stream stream, trli_fence *fence)
{
    return fence ? device->ops->set(device, stream, fence) : TRL_ERR_DEVICE;
}

void trli_placed_fences_start(trli_placed_run *state)
{
    for (int space = 0; space < TRLI_EXECUTORS; ++space)
        for (int s = 0; s < TRLI_STREAMS; ++s)
            atomic_store_explicit(&state->apart[space][s], false, memory_order_relaxed);
}

/* Relaxed: a thread that sees the launch complete sees the mark, and the number. */
trl_err trli_placed_set(trli_placed_run *state, trl_device *device, trli_stream stream, int32_t fence)
{
    trl_err err = TRL_OK;
    if (!state->of->joint[fence])
        TRL_TRY(trli_fence_set(device, stream, state->fence[fence]));
    else if (state->fence[fence])
        state->number[fence] = 1 + atomic_fetch_add(&state->copied[device->space], 1); /* after it was enqueued */
    else
        return TRL_ERR_DEVICE;
    atomic_store_explicit(&state->set[fence], true, memory_order_relaxed);
done:
    return err;
}

/* What is on the stream when the fence is set is covered, this copy at least. */
static trl_err wait_for_copies(trli_placed_run *state, trl_device *device, trli_stream stream, int32_t fence)
{
    const trli_placed *p = state->of;
    const int space = ((const int32_t *)p->fences.data)[fence];
    _Atomic int64_t *covered = &state->covered[space][device->space][stream];
    const int64_t now = atomic_load(&state->copied[space]);
    trl_err err = TRL_OK;
    if (atomic_load(covered) >= state->number[fence]) return TRL_OK;
    TRL_TRY(trli_fence_set(trli_device_of(p->devices, space), TRLI_STREAM_IN, state->fence[fence]));
    TRL_TRY(device->ops->wait(device, stream, state->fence[fence]));
    atomic_store(covered, now); /* a smaller number of another thread's only lets the next one wait again */
done:
    return err;
}

trl_err trli_placed_wait(trli_placed_run *state, trl_device *device, trli_stream stream, int32_t fence)
{
    if (!atomic_load_explicit(&state->set[fence], memory_order_relaxed)) return TRL_OK;
    return state->of->joint[fence] ? wait_for_copies(state, device, stream, fence)
                                   : device->ops->wait(device, stream, state->fence[fence]);
}

/* Of a device with ends. */
static trli_fence *last_end(const trl_device *device)
{
    return device->end[(device->ends - 1) % TRLI_RUNS_AHEAD];
}

trl_err trli_placed_wait_for_runs(trli_placed_run *state, trl_device *device, trli_stream stream)
{
    const trl_devices *devices = state->of->devices;
    _Atomic bool *apart = &state->apart[device->space][stream];
    trl_err err = TRL_OK;
    if (atomic_load(apart)) return TRL_OK;
    for (int i = 0; i < devices->n; ++i) {
        const trl_device *other = devices->device[i];
        if (other->ends > 0 && (other != device || stream != TRLI_STREAM_COMPUTE))
            TRL_TRY(device->ops->wait(device, stream, last_end(other)));
    }
    atomic_store(apart, true);
done:
    return err;
}

/* ---- runs in progress ---- */

static bool takes_part(const trli_placed *p, int space)
{
    for (int32_t c = 0; c < p->ncalls; ++c)
        if (p->executor[p->call[c]] == space) return true;
    return false;
}

static trl_err look_until_passed(trl_device *device, trli_fence *end)
{
    bool passed = false;
    trl_err err = TRL_OK;
    while (!passed) {
        TRL_TRY(device->ops->passed(device, end, &passed));
        if (!passed) sched_yield();
    }
done:
    return err;
}

/* What was given to a device has an end. */
static trl_err set_end(trl_device *device)
{
    trli_fence **end = &device->end[device->ends % TRLI_RUNS_AHEAD];
    trl_err err = TRL_OK;
    if (!*end) TRL_TRY(device->ops->fence_create(device, false, end));
    if (device->ends >= TRLI_RUNS_AHEAD) TRL_TRY(look_until_passed(device, *end));
    err = device->ops->set(device, TRLI_STREAM_COMPUTE, *end);
done:
    return err;
}

/* A run is left to a device, with the others of a chain if there is one. part: the device has one in it; waits: for the
 * run before. */
static trl_err leave(trl_device *device, bool part, bool waits)
{
    trl_err err = TRL_OK;
    device->chained |= device->chain && part;
    if (device->chain) return TRL_OK;
    if (part) TRL_TRY(set_end(device));
    if (waits && device->ends > 0) TRL_TRY(look_until_passed(device, last_end(device)));
    device->ends += part;
    device->runs += part;
done:
    return err;
}

/* All that was gathered is in progress, and what follows goes to the device at once. */
static trl_err end_chain(trl_device *device)
{
    if (!device->chain && !device->chained) return TRL_OK; /* several threads may be here then */
    const trl_err err = trli_chain_send(device);
    const bool chained = device->chained;
    device->chain = NULL;
    device->chained = false;
    return err == TRL_OK && chained ? leave(device, true, true) : err;
}

trl_err trli_device_finish(trl_device *device)
{
    bool passed;
    const trl_err sent = end_chain(device);
    if (sent != TRL_OK) return sent;
    if (device->ends == 0) return TRL_OK;
    trli_fence *last = last_end(device);
    device->ends = 0;
    trl_err err = device->ops->passed(device, last, &passed);
    if (!passed) {
        atomic_fetch_add_explicit(&device->waits, 1, memory_order_relaxed);
        device->ops->finish(device);
        err = device->ops->passed(device, last, &passed);
    }
    if (err != TRL_OK) trli_device_lose(device); /* earlier runs have left wrong data there */
    return err;
}

trl_err trli_device_await(trl_device *device, int64_t runs)
{
    trl_err err = end_chain(device);
    if (err != TRL_OK) return err;
    const int64_t since = device->runs - runs;
    if (since >= TRLI_RUNS_AHEAD || since >= device->ends) return TRL_OK;
    if (since == 0) return trli_device_finish(device);
    err = look_until_passed(device, device->end[(device->ends - 1 - since) % TRLI_RUNS_AHEAD]);
    if (err != TRL_OK) trli_device_lose(device);
    return err;
}

trl_err trli_placed_enter(const trli_placed *p, bool apart, bool *timed)
{
    trl_err err = TRL_OK;
    *timed = true;
    for (int d = 1; d <= p->devices->n; ++d) {
        trl_device *device = trli_device_of(p->devices, d);
        if (apart || !p->overlaps || p->urgent) TRL_TRY(end_chain(device));
        if (apart) TRL_TRY(trli_device_finish(device));
        *timed &= p->overlaps || device->ends == 0;
    }
    *timed &= apart || !p->overlaps || !p->logical->leads;
done:
    return err;
}

/* The end of a run is behind its urgent calls, too. */
static trl_err join_urgent(trl_device *device)
{
    trl_err err = TRL_OK;
    if (!device->join) TRL_TRY(device->ops->fence_create(device, false, &device->join));
    TRL_TRY(device->ops->set(device, TRLI_STREAM_URGENT, device->join));
    err = device->ops->wait(device, TRLI_STREAM_COMPUTE, device->join);
done:
    return err;
}

trl_err trli_placed_leave(const trli_placed *p, bool timed)
{
    trl_device *device = NULL;
    trl_err err = TRL_OK;
    for (int d = 1; d <= p->devices->n && p->overlaps; ++d) {
        const bool part = takes_part(p, d);
        device = trli_device_of(p->devices, d);
        if (part && p->urgent) TRL_TRY(join_urgent(device));
        TRL_TRY(leave(device, part, timed));
    }
done:
    if (err != TRL_OK) trli_device_lose(device); /* the data that both runs left there is unknown */
    return err;
}

trl_err trli_device_wait_for_others(trl_device *device)
{
    trl_err err = TRL_OK;
    for (int i = 0; device->all && i < device->all->n; ++i) {
        const trl_device *other = device->all->device[i];
        if (other != device && other->ends > 0)
            TRL_TRY(device->ops->wait(device, TRLI_STREAM_COMPUTE, last_end(other)));
    }
done:
    return err;
}

trl_err trli_device_leave(trl_device *device)
{
    const trl_err err = leave(device, true, true);
    if (err != TRL_OK) trli_device_lose(device); /* what is in progress there is unknown */
    return err;
}

trl_err trli_device_call(trl_device *device, trl_task_fn run, void *data, const trl_task_args *args)
{
    trli_outcome outcome = {0};
    trl_err err;
    if (!device->captures) return trli_device_call_now(device, run, data, args);
    TRL_TRY(trli_device_wait_for_others(device));
    TRL_TRY(device->ops->call(device, TRLI_STREAM_COMPUTE, run, data, args, (trli_ticket){&outcome, 0}));
    TRL_TRY(trli_outcome_err(&outcome));
    err = trli_device_leave(device);
done:
    return err;
}

/* ---- chains ---- */

trl_err trli_chain_begin(const trl_devices *devices, trli_relaunch **chain)
{
    static const int32_t first[2] = {0, 0};
    trl_device *device = devices && devices->n == 1 ? devices->device[0] : NULL;
    trl_err err = TRL_OK;
    if (!device || device->kind != TRL_KIND_GPU || !trli_device_usable(device)) return TRL_OK;
    if (!*chain) TRL_TRY(trli_relaunch_create(device, TRLI_STREAM_COMPUTE, 1, first, first, chain));
    if (trli_relaunch_device(*chain)) device->chain = *chain;
    device->chained = false;
done:
    return err;
}

trl_err trli_chain_end(const trl_devices *devices)
{
    trl_err err = TRL_OK;
    for (int i = 0; devices && i < devices->n && err == TRL_OK; ++i) err = end_chain(devices->device[i]);
    return err;
}

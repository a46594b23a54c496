/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How the streams of devices wait for each other in a run. Copies to a GPU lie on one stream: who waits for one of them
 * waits for all that are on it by then, so that many copies take one fence and one wait, and not one for each. */
#include "placed_impl.h"

/* A device that was lost before the run got its fences has none. */
trl_err trli_fence_set(trl_device *device, trli_stream stream, trli_fence *fence)
{
    return fence ? device->ops->set(device, stream, fence) : TRL_ERR_DEVICE;
}

void trli_placed_fences_start(trli_run_state *run)
{
    for (int space = 0; space < TRLI_EXECUTORS; ++space)
        for (int s = 0; s < TRLI_STREAMS; ++s)
            atomic_store_explicit(&run->placed->apart[space][s], false, memory_order_relaxed);
}

/* Relaxed: a thread that sees the launch complete sees the mark, and the number. */
trl_err trli_placed_set(trli_run_state *run, trl_device *device, trli_stream stream, int32_t fence)
{
    trli_placed_run *state = run->placed;
    trl_err err = TRL_OK;
    if (!run->graph->placed->joint[fence])
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
static trl_err wait_for_copies(const trli_run_state *run, trl_device *device, trli_stream stream, int32_t fence)
{
    const trli_placed *p = run->graph->placed;
    trli_placed_run *state = run->placed;
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

trl_err trli_placed_wait(const trli_run_state *run, trl_device *device, trli_stream stream, int32_t fence)
{
    if (!atomic_load_explicit(&run->placed->set[fence], memory_order_relaxed)) return TRL_OK;
    return run->graph->placed->joint[fence] ? wait_for_copies(run, device, stream, fence)
                                            : device->ops->wait(device, stream, run->placed->fence[fence]);
}

trl_err trli_placed_wait_for_runs(const trli_run_state *run, trl_device *device, trli_stream stream)
{
    const trl_devices *devices = run->graph->placed->devices;
    _Atomic bool *apart = &run->placed->apart[device->space][stream];
    trl_err err = TRL_OK;
    if (atomic_load(apart)) return TRL_OK;
    for (int i = 0; i < devices->n; ++i) {
        const trl_device *other = devices->device[i];
        if (other->ends > 0 && (other != device || stream != TRLI_STREAM_COMPUTE))
            TRL_TRY(device->ops->wait(device, stream, other->end[(other->ends - 1) % 2]));
    }
    atomic_store(apart, true);
done:
    return err;
}

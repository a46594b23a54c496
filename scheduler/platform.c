/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Costs of copies and launches on this machine, measured once for each set of devices. */
#include <sched.h>
#include <string.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "placement_run_impl.h"

enum { SMALL = 1 << 10, LARGE = 4 << 20, REPEATED = 3 };

/* Wait until a fence that was set is passed. */
static trl_err wait_for(trl_device *device, trli_fence *fence)
{
    trl_err err = TRL_OK;
    for (bool passed = false; !passed;) {
        TRL_TRY(device->ops->passed(device, fence, &passed));
        if (!passed) sched_yield();
    }
done:
    return err;
}

trl_err trli_device_copies(trl_device *device, trli_stream stream, int n, const trli_box_copy *copies,
                           trli_ticket ticket)
{
    trl_err err = TRL_OK;
    if (device->ops->copies) return device->ops->copies(device, stream, n, copies, ticket);
    for (int i = 0; i < n; ++i) TRL_TRY(device->ops->copy(device, stream, &copies[i], ticket));
done:
    return err;
}

trl_err trli_device_copy_now(trl_device *device, int n, const trli_box_copy *copies)
{
    const trli_stream stream = n > 0 && copies[0].to_space == 0 ? TRLI_STREAM_OUT : TRLI_STREAM_IN;
    trli_fence *fence = NULL;
    trl_err err = TRL_OK;
    trli_outcome outcome = {0};
    int given = 0;
    TRL_TRY(trli_device_finish(device));
    TRL_TRY(device->ops->fence_create(device, false, &fence));
    for (; given < n; ++given)
        TRL_TRY(device->ops->copy(device, stream, &copies[given], (trli_ticket){&outcome, given}));
    TRL_TRY(device->ops->set(device, stream, fence));
    TRL_TRY(wait_for(device, fence));
    err = trli_outcome_err(&outcome);
done:
    if (err != TRL_OK && given > 0) device->ops->finish(device);
    if (fence) device->ops->fence_destroy(device, fence);
    return err;
}

trl_err trli_device_upload(trl_device *device, size_t bytes, const void *from, size_t given, void **memory)
{
    trl_err err;
    TRL_TRY(device->ops->allocate(device, bytes, memory));
    const trli_box_copy copy = {
        .to = *memory, .from = from, .to_space = device->space, .row = given, .rows = 1, .planes = 1};
    err = trli_device_copy_now(device, 1, &copy);
    if (err != TRL_OK) device->ops->release(device, *memory);
done:
    if (err != TRL_OK) *memory = NULL;
    return err;
}

trl_err trli_device_call_now(trl_device *device, trl_task_fn run, void *data, const trl_task_args *args)
{
    trli_fence *fence = NULL;
    trl_err err = TRL_OK;
    trli_outcome outcome = {0};
    bool given = false;
    TRL_TRY(trli_device_finish(device));
    TRL_TRY(device->ops->fence_create(device, false, &fence));
    given = true;
    TRL_TRY(device->ops->call(device, TRLI_STREAM_COMPUTE, run, data, args, (trli_ticket){&outcome, 0}));
    TRL_TRY(device->ops->set(device, TRLI_STREAM_COMPUTE, fence));
    TRL_TRY(wait_for(device, fence));
    err = trli_outcome_err(&outcome);
done:
    if (err != TRL_OK && given) device->ops->finish(device);
    if (fence) device->ops->fence_destroy(device, fence);
    return err;
}

/* Values for what could not be measured. */
static const trli_route usual_link = {10e-6, 10e9};
static const double usual_launch = 5e-6;

/* A buffer in a space. */
typedef struct buffer {
    trl_device *device; /* NULL: of the host */
    int space;
    void *memory;
} buffer;

/* The memory stays NULL if none can be allocated. */
static void make_buffer(const trl_devices *devices, int space, buffer *b)
{
    *b = (buffer){.device = space > 0 ? trli_device_of(devices, space) : NULL, .space = space};
    if (b->device && b->device->ops->allocate(b->device, LARGE, &b->memory) == TRL_OK) return;
    if (!b->device && trl_memory_alloc(devices->ctx, LARGE, "measuring copies", &b->memory) == TRL_OK)
        memset(b->memory, 0, LARGE);
    else
        b->memory = NULL;
}

static void free_buffer(const trl_devices *devices, buffer *b)
{
    if (b->device && b->memory)
        b->device->ops->release(b->device, b->memory);
    else
        trl_memory_free(devices->ctx, &b->memory);
}

/* Seconds of the device's clock between two fences around a copy; negative: it failed. */
static double time_copy(trl_device *device, trli_stream stream, trli_fence *fence[2], const buffer *from,
                        const buffer *to, size_t bytes, trli_outcome *outcome)
{
    const trli_box_copy copy = {.to = to->memory,
                                .from = from->memory,
                                .to_space = to->space,
                                .from_space = from->space,
                                .row = bytes,
                                .rows = 1,
                                .planes = 1};
    if (device->ops->set(device, stream, fence[0]) != TRL_OK) return -1;
    if (device->ops->copy(device, stream, &copy, (trli_ticket){outcome, 0}) != TRL_OK) return -1;
    if (device->ops->set(device, stream, fence[1]) != TRL_OK) return -1;
    if (wait_for(device, fence[1]) != TRL_OK || trli_outcome_err(outcome) != TRL_OK) return -1;
    return device->ops->seconds(device, fence[0], fence[1]);
}

/* The least of several copies without the first, which touches memory and raises clocks. */
static double least_copy(trl_device *device, trli_stream stream, trli_fence *fence[2], const buffer *from,
                         const buffer *to, size_t bytes, trli_outcome *outcome)
{
    double least = -1;
    for (int i = 0; i <= REPEATED; ++i) {
        const double s = time_copy(device, stream, fence, from, to, bytes, outcome);
        if (s < 0) return -1;
        if (i > 0 && (least < 0 || s < least)) least = s;
    }
    return least;
}

/* Measure copies between two buffers, if both have memory. */
static trli_route measure_link(const buffer *source, const buffer *target)
{
    trl_device *device = target->device ? target->device : source->device;
    const trli_stream stream = target->device ? TRLI_STREAM_IN : TRLI_STREAM_OUT;
    trli_fence *fence[2] = {NULL, NULL};
    trli_route link = usual_link;
    trli_outcome outcome = {0};
    const bool ready = source->memory && target->memory &&
                       device->ops->fence_create(device, true, &fence[0]) == TRL_OK &&
                       device->ops->fence_create(device, true, &fence[1]) == TRL_OK;
    if (ready) {
        const double small = least_copy(device, stream, fence, source, target, SMALL, &outcome);
        const double large = least_copy(device, stream, fence, source, target, LARGE, &outcome);
        if (small > 0 && large > small)
            link = (trli_route){.latency = small, .rate = (double)(LARGE - SMALL) / (large - small)};
    }
    device->ops->finish(device); /* wait for what was issued before a failure */
    for (int i = 0; i < 2; ++i)
        if (fence[i]) device->ops->fence_destroy(device, fence[i]);
    return link;
}

static void measure_links(const trl_devices *devices, trli_platform *platform)
{
    buffer b[TRLI_EXECUTORS];
    for (int e = 0; e < platform->executors; ++e) make_buffer(devices, e, &b[e]);
    for (int from = 0; from < platform->executors; ++from)
        for (int to = 0; to < platform->executors; ++to)
            if (from != to) platform->link[from][to] = measure_link(&b[from], &b[to]);
    for (int e = 0; e < platform->executors; ++e) free_buffer(devices, &b[e]);
}

/* The links of devices that this machine does not have. */
static void model_links(const trl_devices *devices, trli_platform *platform)
{
    for (int from = 0; from < platform->executors; ++from)
        for (int to = 0; to < platform->executors; ++to) {
            if (from == to) continue;
            const trli_figures *f = &trli_device_of(devices, to > 0 ? to : from)->figures;
            platform->link[from][to] = from > 0 && to > 0 ? f->peer : f->host;
        }
}

trl_err trli_platform_of(const trl_devices *devices, int workers, trli_platform *platform)
{
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(devices->ctx, &list);
    *platform = (trli_platform){.executors = devices->n + 1};
    platform->kind[0] = TRL_KIND_CPU;
    platform->parallel[0] = workers;
    for (int e = 1; e < platform->executors; ++e) {
        const trl_device *device = trli_device_of(devices, e);
        platform->kind[e] = device->kind;
        platform->parallel[e] = 1;
        platform->launch[e] = device->figures.modelled ? 0 : usual_launch; /* the times of modelled calls include it */
        platform->bytes[e] = device->info.bytes;
    }
    if (devices->n > 0 && trli_device_of(devices, 1)->figures.modelled) /* all devices, or none */
        model_links(devices, platform);
    else
        measure_links(devices, platform);
    for (int e = 1; e < platform->executors; ++e) { /* memory that measuring took does not count */
        trl_device *device = trli_device_of(devices, e);
        atomic_store(&device->peak, atomic_load(&device->used));
    }
    for (int e = 1; e < platform->executors && devices->required; ++e)
        if (!trli_device_usable(trli_device_of(devices, e))) return TRL_ERR_DEVICE;
    trli_diagnostics_forgive(devices->ctx, said);
    return TRL_OK;
}

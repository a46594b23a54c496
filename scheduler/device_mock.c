/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <string.h>

#include "memory_impl.h"
#include "mock_impl.h"

static trli_mock *mock_of(trl_device *device)
{
    return (trli_mock *)device;
}

static trl_err refuse_lost(trl_device *device)
{
    return trl_fail(device->ctx, TRL_ERR_DEVICE, NULL, "%s is lost: nothing more can be done with it; open it again",
                    mock_of(device)->name);
}

/* ---- faults ---- */

/* A number from 0 to 1 that depends only on its arguments. */
static double chance_of(double seed, trli_mock_fault fault, int mock, int64_t number)
{
    uint64_t x = (uint64_t)seed * 0x9e3779b97f4a7c15u + (uint64_t)number;
    x = x * 64 + (uint64_t)fault * 8 + (uint64_t)mock;
    for (int round = 0; round < 3; ++round) { /* splitmix64 */
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return (double)(x >> 11) * 0x1p-53;
}

/* Count one event of a kind; returns whether it fails. */
static bool count(trli_mock *mock, trli_mock_fault fault, int64_t *number)
{
    const double chance = mock->settings.fail[fault].chance;
    *number = atomic_fetch_add_explicit(&mock->given[fault], 1, memory_order_relaxed) + 1;
    return *number == mock->settings.fail[fault].at ||
           (chance > 0 && chance_of(mock->settings.seed, fault, mock->number, *number) < chance);
}

/* ---- memory and work ---- */

static trl_err allocate(trl_device *device, size_t bytes, void **memory)
{
    int64_t number;
    *memory = NULL;
    if (atomic_load(&device->lost)) return refuse_lost(device);
    if (count(mock_of(device), TRLI_MOCK_memory, &number)) return TRL_ERR_MEMORY;
    return trli_mock_allocate(mock_of(device), bytes, memory);
}

static trl_err copy(trl_device *device, trli_stream stream, const trli_box_copy *what, trli_ticket ticket)
{
    trli_mock *mock = mock_of(device);
    trli_mock_command c = {.kind = TRLI_MOCK_DO_COPY, .ticket = ticket, .copy = *what};
    if (atomic_load(&device->lost)) return refuse_lost(device);
    const trl_err err = trli_mock_check_copy(mock, what);
    if (err != TRL_OK) return err;
    c.fails = count(mock, TRLI_MOCK_copy, &c.number);
    c.loses = count(mock, TRLI_MOCK_lost, &c.total);
    return trli_mock_give(mock, stream, &c);
}

static trl_err call(trl_device *device, trli_stream stream, trl_task_fn run, void *data, const trl_task_args *args,
                    trli_ticket ticket)
{
    trli_mock *mock = mock_of(device);
    trli_mock_command c = {.kind = TRLI_MOCK_DO_CALL, .ticket = ticket, .call = {run, data, *args}};
    if (atomic_load(&device->lost)) return refuse_lost(device);
    c.fails = count(mock, TRLI_MOCK_call, &c.number);
    c.loses = count(mock, TRLI_MOCK_lost, &c.total);
    return trli_mock_give(mock, stream, &c);
}

/* ---- fences ---- */

static trl_err fence_create(trl_device *device, bool timed, trli_fence **result)
{
    (void)timed;
    trli_mock *mock = mock_of(device);
    *result = NULL;
    if (atomic_load(&device->lost)) return refuse_lost(device);
    trli_fence *fence = trli_new(device->ctx, 1, sizeof *fence);
    if (!fence) return trli_no_memory(device->ctx, NULL, "for a fence of %s", mock->name);
    fence->is_virtual = mock->settings.is_virtual;
    atomic_init(&fence->references, 1);
    pthread_mutex_init(&fence->lock, NULL);
    pthread_cond_init(&fence->passed, NULL);
    *result = fence;
    return TRL_OK;
}

static void fence_destroy(trl_device *device, trli_fence *fence)
{
    (void)device;
    if (fence) trli_mock_fence_drop(fence);
}

static trl_err set(trl_device *device, trli_stream stream, trli_fence *fence)
{
    trli_mock *mock = mock_of(device);
    trli_mock_command c = {.kind = TRLI_MOCK_DO_SET, .fence = {.fence = fence}};
    c.fence.set = atomic_fetch_add(&fence->sets, 1) + 1;
    atomic_fetch_add(&fence->references, 1);
    const trl_err err = trli_mock_give(mock, stream, &c);
    if (err == TRL_OK) return TRL_OK;
    atomic_fetch_sub(&fence->sets, 1);
    trli_mock_fence_drop(fence);
    return err;
}

static trl_err wait(trl_device *device, trli_stream stream, trli_fence *fence)
{
    trli_mock_command c = {.kind = TRLI_MOCK_DO_WAIT, .fence = {fence, atomic_load(&fence->sets)}};
    if (c.fence.set == 0) return TRL_OK;
    atomic_fetch_add(&fence->references, 1);
    const trl_err err = trli_mock_give(mock_of(device), stream, &c);
    if (err != TRL_OK) trli_mock_fence_drop(fence);
    return err;
}

static trl_err passed(trl_device *device, trli_fence *fence, bool *is_passed)
{
    const uint64_t sets = atomic_load(&fence->sets);
    *is_passed = atomic_load_explicit(&fence->passes, memory_order_acquire) >= sets;
    if (!*is_passed) return TRL_OK;
    return atomic_load(&device->lost) || atomic_load(&mock_of(device)->damaged) ? TRL_ERR_DEVICE : TRL_OK;
}

static double time_of(trli_fence *fence)
{
    pthread_mutex_lock(&fence->lock);
    const double time = fence->pass.time;
    pthread_mutex_unlock(&fence->lock);
    return time;
}

static double seconds(trl_device *device, trli_fence *from, trli_fence *to)
{
    (void)device;
    return time_of(to) - time_of(from);
}

/* ---- the device ---- */

static void finish(trl_device *device)
{
    for (int i = 0; i < TRLI_STREAMS; ++i) trli_mock_stream_finish(&mock_of(device)->stream[i]);
}

static void close(trl_device *device)
{
    trli_mock *mock = mock_of(device);
    for (int i = 0; i < TRLI_STREAMS; ++i) trli_mock_stream_stop(&mock->stream[i]);
    trli_mock_release_all(mock);
    pthread_mutex_destroy(&mock->memory.lock);
    trli_free(mock);
}

static const trli_device_ops ops = {
    .allocate = allocate,
    .release = trli_mock_release,
    .copy = copy,
    .call = call,
    .fence_create = fence_create,
    .fence_destroy = fence_destroy,
    .set = set,
    .passed = passed,
    .wait = wait,
    .seconds = seconds,
    .finish = finish,
    .close = close,
};

trl_err trli_mock_open(trl_context *ctx, int n, const char *settings, trl_device **device)
{
    trli_mock_settings read;
    trl_err err = trli_mock_read(ctx, settings, &read);
    *device = NULL;
    if (err != TRL_OK) return err;
    trli_mock *mock = trli_new(ctx, 1, sizeof *mock);
    if (!mock) return trli_no_memory(ctx, NULL, "for mock device %d", n);
    mock->device.ops = &ops;
    mock->device.ctx = ctx;
    mock->device.kind = TRL_KIND_MOCK;
    mock->device.space = n + 1;
    mock->device.info.bytes = (size_t)read.bytes;
    mock->device.figures = (trli_figures){.speed = read.speed, .launch = read.launch};
    trli_mock_describe(&read, mock->device.info.name, sizeof mock->device.info.name);
    mock->number = n;
    mock->settings = read;
    mock->device.adds_up = read.is_virtual;
    snprintf(mock->name, sizeof mock->name, "mock device %d", n);
    pthread_mutex_init(&mock->memory.lock, NULL);
    for (int i = 0; i < TRLI_STREAMS && err == TRL_OK; ++i) err = trli_mock_stream_start(mock, (trli_stream)i);
    if (err == TRL_OK)
        *device = &mock->device;
    else
        close(&mock->device);
    return err;
}

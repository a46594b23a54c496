/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Mock devices as tests open and use them. */
#ifndef MOCK_SUPPORT_H
#define MOCK_SUPPORT_H

#include "trl_test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "clock_impl.h"
#include "executor_impl.h"

static trl_devices *devices;
static trli_outcome outcome; /* of what was given since a wait told of an error */

/* Open mock devices of these settings. */
static inline void open_mocks(const char *settings)
{
    ck_assert_int_eq(setenv("TRL_MOCK_DEVICES", settings, 1), 0);
    ck_ok(trl_devices_open(test_ctx, "auto", &devices));
}

static inline void close_mocks(void)
{
    trl_devices_close(&devices);
    ck_assert_ptr_null(devices);
    trl_devices_close(&devices);
    unsetenv("TRL_MOCK_DEVICES");
}

static inline trl_device *mock(int i)
{
    return devices->device[i];
}

static inline void *allocate(trl_device *d, size_t bytes)
{
    void *memory;
    ck_ok(d->ops->allocate(d, bytes, &memory));
    return memory;
}

static inline trli_fence *new_fence(trl_device *d)
{
    trli_fence *fence;
    ck_ok(d->ops->fence_create(d, true, &fence));
    return fence;
}

/* Copy so many bytes, as one row. */
static inline trl_err give_copy(trl_device *d, trli_stream stream, void *to, int to_space, const void *from,
                                int from_space, size_t bytes)
{
    const trli_box_copy copy = {
        .to = to, .from = from, .to_space = to_space, .from_space = from_space, .row = bytes, .rows = 1, .planes = 1};
    return d->ops->copy(d, stream, &copy, (trli_ticket){&outcome, 0});
}

static inline trl_err give_call(trl_device *d, trl_task_fn run, void *data)
{
    const trl_task_args args = {.chunks = 1, .space = d->space, .worker = 7};
    return d->ops->call(d, TRLI_STREAM_COMPUTE, run, data, &args, (trli_ticket){&outcome, 0});
}

static inline bool is_passed(trl_device *d, trli_fence *fence)
{
    bool yes;
    ck_ok(d->ops->passed(d, fence, &yes));
    return yes;
}

/* Poll until a fence is passed: the code of what failed, which begins anew. */
static inline trl_err poll_fence(trl_device *d, trli_fence *fence)
{
    bool yes = false;
    trl_err err;
    while (err = d->ops->passed(d, fence, &yes), !yes) sched_yield();
    const trl_err failed = trli_outcome_err(&outcome);
    atomic_store(&outcome.first, 0);
    return failed ? failed : err;
}

/* Set a fence behind all that a stream was given, and wait for it. */
static inline trl_err wait_stream(trl_device *d, trli_stream stream)
{
    trli_fence *fence = new_fence(d);
    ck_ok(d->ops->set(d, stream, fence));
    const trl_err err = poll_fence(d, fence);
    d->ops->fence_destroy(d, fence);
    return err;
}

/* Task functions: wait until the host opens the gate; count calls; work for so many seconds. */
static inline trl_err wait_for_gate(void *data, const trl_task_args *args, bool *done)
{
    const _Atomic bool *gate = data;
    (void)args, (void)done;
    while (!atomic_load(gate)) sched_yield();
    return TRL_OK;
}

static inline trl_err count_call(void *data, const trl_task_args *args, bool *done)
{
    (void)args, (void)done;
    atomic_fetch_add((_Atomic int *)data, 1);
    return TRL_OK;
}

static inline trl_err work_for(void *data, const trl_task_args *args, bool *done)
{
    const double until = trli_clock() + *(const double *)data;
    (void)args, (void)done;
    while (trli_clock() < until) continue;
    return TRL_OK;
}

#endif

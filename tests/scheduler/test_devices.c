// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Mock devices: streams, fences, memory, clocks, faults on demand. */
#include "trl_test.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "executor_impl.h"
#include "memory_impl.h"

static trl_devices *devices;

/* Open mock devices of these settings. */
static void open_mocks(const char *settings)
{
    ck_assert_int_eq(setenv("TRL_MOCK_DEVICES", settings, 1), 0);
    ck_ok(trl_devices_open(test_ctx, "auto", &devices));
}

static void close_mocks(void)
{
    trl_devices_close(&devices);
    ck_assert_ptr_null(devices);
    trl_devices_close(&devices);
    unsetenv("TRL_MOCK_DEVICES");
}

static trl_device *mock(int i)
{
    return devices->device[i];
}

static void *allocate(trl_device *d, size_t bytes)
{
    void *memory;
    ck_ok(d->ops->allocate(d, bytes, &memory));
    return memory;
}

static trli_fence *new_fence(trl_device *d)
{
    trli_fence *fence;
    ck_ok(d->ops->fence_create(d, &fence));
    return fence;
}

/* Copy so many bytes, as one row. */
static trl_err give_copy(trl_device *d, trli_stream stream, void *to, int to_space, const void *from, int from_space,
                         size_t bytes)
{
    const trli_box_copy copy = {
        .to = to, .from = from, .to_space = to_space, .from_space = from_space, .row = bytes, .rows = 1, .planes = 1};
    return d->ops->copy(d, stream, &copy);
}

/* Poll until a fence is passed: its code. */
static trl_err poll(trl_device *d, trli_fence *fence)
{
    bool is_passed = false;
    trl_err err;
    while (err = d->ops->passed(d, fence, &is_passed), !is_passed) sched_yield();
    return err;
}

/* Set a fence behind all that a stream was given, and wait for it. */
static trl_err wait_stream(trl_device *d, trli_stream stream)
{
    trli_fence *fence = new_fence(d);
    ck_ok(d->ops->set(d, stream, fence));
    const trl_err err = poll(d, fence);
    d->ops->fence_destroy(d, fence);
    return err;
}

/* ---- streams ---- */

static trl_err append(void *data, const trl_task_args *args, bool *done)
{
    uint64_t *value = data;
    (void)done;
    *value = 31 * *value + (uint64_t)args->chunk;
    return args->worker == 7 && args->space > 0 ? TRL_OK : TRL_ERR_BUG;
}

START_TEST(a_stream_does_what_it_was_given_in_that_order)
{
    uint64_t host = 1, back = 0, expected = 1;
    open_mocks("1");
    trl_device *d = mock(0);
    uint64_t *value = allocate(d, sizeof *value);
    ck_ok(give_copy(d, TRLI_STREAM_COMPUTE, value, 1, &host, 0, sizeof host));
    for (int i = 0; i < 1000; ++i) {
        trl_task_args args = {.chunk = i % 7, .chunks = 7, .space = 1, .worker = 7};
        ck_ok(d->ops->call(d, TRLI_STREAM_COMPUTE, append, value, &args));
        args.chunk = -1000; /* the call has its own */
        expected = 31 * expected + (uint64_t)(i % 7);
    }
    ck_ok(give_copy(d, TRLI_STREAM_COMPUTE, &back, 0, value, 1, sizeof back));
    ck_ok(wait_stream(d, TRLI_STREAM_COMPUTE));
    ck_assert(back == expected);
    d->ops->release(d, value);
    close_mocks();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_stream_does_what_it_was_given_in_that_order);
}
TRL_TEST_MAIN("devices", add_tests)

// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Streams and fences of mock devices: order, overlap, errors, faults on demand. */
#include "context_impl.h"
#include "mock_support.h"

#include <pthread.h>
#include <time.h>

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
        ck_ok(d->ops->call(d, TRLI_STREAM_COMPUTE, append, value, &args, (trli_ticket){&outcome, 0}));
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

START_TEST(copies_in_and_out_go_on_while_a_call_runs)
{
    _Atomic bool gate = false;
    double in = 1.5, out = 0;
    open_mocks("1");
    trl_device *d = mock(0);
    double *value = allocate(d, sizeof *value);
    trli_fence *called = new_fence(d);
    ck_ok(give_call(d, wait_for_gate, &gate));
    ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, called));
    ck_ok(give_copy(d, TRLI_STREAM_IN, value, 1, &in, 0, sizeof in));
    ck_ok(wait_stream(d, TRLI_STREAM_IN));
    ck_ok(give_copy(d, TRLI_STREAM_OUT, &out, 0, value, 1, sizeof out));
    ck_ok(wait_stream(d, TRLI_STREAM_OUT));
    ck_assert(out == 1.5);
    ck_assert(!is_passed(d, called));
    atomic_store(&gate, true);
    ck_ok(poll_fence(d, called));
    d->ops->fence_destroy(d, called);
    close_mocks();
}
END_TEST

/* A value goes from the host to device 0, is changed there, goes to device 1, is changed there, and comes back, on
 * streams that only fences order. */
START_TEST(fences_order_streams_and_devices)
{
    _Atomic bool gate = false;
    uint64_t host = 5, back = 0;
    enum { FENCES = 5 };
    trli_fence *fence[FENCES];
    const trl_task_args args = {.chunk = 3, .chunks = 4, .space = 1, .worker = 7};
    open_mocks("2");
    trl_device *a = mock(0), *b = mock(1);
    uint64_t *at_a = allocate(a, sizeof host), *at_b = allocate(b, sizeof host);
    for (int i = 0; i < FENCES; ++i) fence[i] = new_fence(i < 3 ? a : b);
    ck_ok(give_call(a, wait_for_gate, &gate));
    ck_ok(a->ops->set(a, TRLI_STREAM_COMPUTE, fence[0]));
    ck_ok(a->ops->wait(a, TRLI_STREAM_IN, fence[0]));
    ck_ok(give_copy(a, TRLI_STREAM_IN, at_a, 1, &host, 0, sizeof host));
    ck_ok(a->ops->set(a, TRLI_STREAM_IN, fence[1]));
    ck_ok(a->ops->wait(a, TRLI_STREAM_COMPUTE, fence[1]));
    ck_ok(a->ops->call(a, TRLI_STREAM_COMPUTE, append, at_a, &args, (trli_ticket){&outcome, 0}));
    ck_ok(a->ops->set(a, TRLI_STREAM_COMPUTE, fence[2]));
    ck_ok(b->ops->wait(b, TRLI_STREAM_IN, fence[2]));
    ck_ok(give_copy(b, TRLI_STREAM_IN, at_b, 2, at_a, 1, sizeof host));
    ck_ok(b->ops->set(b, TRLI_STREAM_IN, fence[3]));
    ck_ok(b->ops->wait(b, TRLI_STREAM_COMPUTE, fence[3]));
    ck_ok(b->ops->call(b, TRLI_STREAM_COMPUTE, append, at_b, &args, (trli_ticket){&outcome, 0}));
    ck_ok(b->ops->set(b, TRLI_STREAM_COMPUTE, fence[4]));
    ck_ok(b->ops->wait(b, TRLI_STREAM_OUT, fence[4]));
    ck_ok(give_copy(b, TRLI_STREAM_OUT, &back, 0, at_b, 2, sizeof host));
    for (int i = 0; i < FENCES; ++i) ck_assert(!is_passed(i < 3 ? a : b, fence[i]));
    atomic_store(&gate, true);
    ck_ok(wait_stream(b, TRLI_STREAM_OUT));
    ck_assert(back == 31 * (31 * 5 + 3) + 3);
    for (int i = 0; i < FENCES; ++i) a->ops->fence_destroy(i < 3 ? a : b, fence[i]);
    close_mocks();
}
END_TEST

START_TEST(a_fence_may_be_set_again_and_go_while_streams_wait_for_it)
{
    _Atomic bool gate[3] = {false};
    _Atomic int calls = 0;
    open_mocks("2");
    trl_device *a = mock(0), *b = mock(1);
    trli_fence *fence = new_fence(a);
    ck_assert(is_passed(a, fence)); /* it was never set */
    ck_ok(b->ops->wait(b, TRLI_STREAM_COMPUTE, fence));
    for (int i = 0; i < 3; ++i) {
        ck_ok(give_call(a, wait_for_gate, &gate[i]));
        ck_ok(a->ops->set(a, TRLI_STREAM_COMPUTE, fence));
        ck_assert(!is_passed(a, fence));
        ck_ok(b->ops->wait(b, TRLI_STREAM_COMPUTE, fence));
        ck_ok(give_call(b, count_call, &calls));
        if (i == 2) break;
        atomic_store(&gate[i], true);
        ck_ok(poll_fence(a, fence));
        ck_ok(wait_stream(b, TRLI_STREAM_COMPUTE));
        ck_assert_int_eq(calls, i + 1);
    }
    a->ops->fence_destroy(a, fence);
    ck_assert_int_eq(nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL), 0); /* time to go wrong */
    ck_assert_int_eq(calls, 2);
    atomic_store(&gate[2], true);
    ck_ok(wait_stream(b, TRLI_STREAM_COMPUTE));
    ck_assert_int_eq(calls, 3);
    close_mocks();
}
END_TEST

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Streams without work, one that waits for a fence of another device, and one that copies slowly. */
START_TEST(streams_that_wait_use_no_processor)
{
    double from = 1, *to;
    open_mocks("3;1:latency=300ms");
    trl_device *a = mock(3), *b = mock(0);
    trli_fence *fence = new_fence(a);
    to = allocate(a, sizeof *to);
    ck_ok(give_copy(a, TRLI_STREAM_IN, to, 4, &from, 0, sizeof from));
    ck_ok(a->ops->set(a, TRLI_STREAM_IN, fence));
    ck_ok(b->ops->wait(b, TRLI_STREAM_COMPUTE, fence));
    const double before = processor_seconds(), begun = trli_clock();
    b->ops->finish(b);
    const double used = processor_seconds() - before, waited = trli_clock() - begun;
    ck_assert_msg(used < 0.3 * waited, "%g s of processor time in %g s", used, waited);
    a->ops->fence_destroy(a, fence);
    close_mocks();
}
END_TEST

/* The second round of as many commands takes no memory. */
START_TEST(commands_take_no_memory_once_there_is_room_for_as_many)
{
    trl_memory_stats first, last;
    _Atomic int calls = 0;
    open_mocks("1");
    trl_device *d = mock(0);
    trli_fence *fence = new_fence(d);
    for (int round = 0; round < 3; ++round) {
        _Atomic bool gate = false;
        ck_ok(give_call(d, wait_for_gate, &gate));
        for (int i = 0; i < 500; ++i) ck_ok(give_call(d, count_call, &calls));
        ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence));
        atomic_store(&gate, true);
        ck_ok(poll_fence(d, fence));
        trl_memory_get_stats(test_ctx, round == 0 ? &first : &last);
    }
    ck_assert_int_eq(calls, 1500);
    ck_assert_int_eq(first.allocations, last.allocations);
    d->ops->fence_destroy(d, fence);
    close_mocks();
}
END_TEST

/* One of several threads: memory, copies and calls of its own, on streams that others use too. */
static void *use_device(void *data)
{
    trl_device *d = data;
    _Atomic int calls = 0;
    uint64_t in[32], out[32] = {0};
    for (uint64_t i = 0; i < 50; ++i) {
        void *memory = NULL;
        trli_fence *fence = NULL;
        trl_err err = d->ops->allocate(d, sizeof in, &memory);
        for (int w = 0; w < 32; ++w) in[w] = 1000 * i + (uint64_t)w;
        if (err == TRL_OK) err = d->ops->fence_create(d, true, &fence);
        if (err == TRL_OK) err = give_copy(d, TRLI_STREAM_IN, memory, d->space, in, 0, sizeof in);
        if (err == TRL_OK) err = d->ops->set(d, TRLI_STREAM_IN, fence);
        if (err == TRL_OK) err = d->ops->wait(d, TRLI_STREAM_COMPUTE, fence);
        if (err == TRL_OK) err = poll_fence(d, fence);
        if (err == TRL_OK) err = give_call(d, count_call, &calls);
        if (err == TRL_OK) err = give_copy(d, TRLI_STREAM_COMPUTE, out, 0, memory, d->space, sizeof in);
        if (err == TRL_OK) err = d->ops->set(d, TRLI_STREAM_COMPUTE, fence);
        if (err == TRL_OK) err = poll_fence(d, fence);
        if (fence) d->ops->fence_destroy(d, fence);
        d->ops->release(d, memory);
        if (err != TRL_OK || memcmp(in, out, sizeof in) != 0 || calls != (int)i + 1) return "differs";
    }
    return NULL;
}

START_TEST(threads_use_devices_at_once)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    open_mocks("2");
    for (int i = 0; i < THREADS; ++i) ck_assert_int_eq(pthread_create(&thread[i], NULL, use_device, mock(i % 2)), 0);
    for (int i = 0; i < THREADS; ++i) {
        void *wrong;
        ck_assert_int_eq(pthread_join(thread[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    for (int i = 0; i < 2; ++i) ck_assert_uint_eq(mock(i)->used, 0);
    close_mocks();
}
END_TEST

/* ---- errors ---- */

static trl_err diverge(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "a value of 'u' is not finite");
}

static trl_err fail_silently(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_ERR_NUMERICS;
}

static trl_err ask_again(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args;
    *done = false;
    return TRL_OK;
}

static trl_err give_as(trl_device *d, trl_task_fn run, void *data, trli_ticket ticket)
{
    const trl_task_args args = {.chunks = 1, .space = d->space};
    return d->ops->call(d, TRLI_STREAM_COMPUTE, run, data, &args, ticket);
}

/* A run has one outcome, on all its devices. */
START_TEST(an_error_stops_what_shares_its_outcome_and_nothing_else)
{
    trli_outcome run[2] = {{0}, {0}};
    _Atomic int calls[2] = {0, 0};
    _Atomic bool gate = false;
    double from = 4, to = 0;
    open_mocks("2");
    trl_device *a = mock(0), *b = mock(1);
    void *there = allocate(a, sizeof from);
    trli_fence *fence = new_fence(a);
    ck_ok(give_as(a, wait_for_gate, &gate, (trli_ticket){&run[0], 1}));
    ck_ok(give_as(a, diverge, NULL, (trli_ticket){&run[0], 2}));
    for (int32_t i = 0; i < 2; ++i) {
        ck_ok(give_as(a, count_call, &calls[0], (trli_ticket){&run[0], 3 + i}));
        ck_ok(give_as(a, count_call, &calls[1], (trli_ticket){&run[1], 3 + i}));
    }
    ck_ok(a->ops->set(a, TRLI_STREAM_COMPUTE, fence));
    ck_ok(b->ops->wait(b, TRLI_STREAM_COMPUTE, fence));
    ck_ok(give_as(b, count_call, &calls[0], (trli_ticket){&run[0], 5}));
    ck_ok(give_as(b, count_call, &calls[1], (trli_ticket){&run[1], 5}));
    ck_assert_int_eq(trli_outcome_err(&run[0]), TRL_OK);
    atomic_store(&gate, true);
    ck_ok(wait_stream(b, TRLI_STREAM_COMPUTE));
    ck_assert_int_eq(trli_outcome_err(&run[0]), TRL_ERR_NUMERICS);
    ck_assert_int_eq(trli_outcome_number(&run[0]), 2);
    ck_assert_int_eq(trli_outcome_err(&run[1]), TRL_OK);
    ck_assert_int_eq(calls[0], 0);
    ck_assert_int_eq(calls[1], 3);
    ck_assert_ptr_nonnull(strstr(test_messages(), "a value of 'u' is not finite"));
    ck_assert_ptr_eq(strstr(strstr(test_messages(), "finite") + 1, "finite"), NULL);
    /* Also what is given later, copies among them; another run goes on. */
    ck_ok(give_as(a, count_call, &calls[0], (trli_ticket){&run[0], 6}));
    ck_ok(give_as(a, count_call, &calls[1], (trli_ticket){&run[1], 6}));
    ck_ok(give_copy(a, TRLI_STREAM_IN, there, 1, &from, 0, sizeof from));
    ck_ok(wait_stream(a, TRLI_STREAM_IN));
    const trli_box_copy back = {.to = &to, .from = there, .from_space = 1, .row = sizeof to, .rows = 1, .planes = 1};
    ck_ok(a->ops->copy(a, TRLI_STREAM_OUT, &back, (trli_ticket){&run[0], 7}));
    ck_ok(wait_stream(a, TRLI_STREAM_OUT));
    ck_assert_double_eq(to, 0);
    ck_ok(a->ops->copy(a, TRLI_STREAM_OUT, &back, (trli_ticket){&run[1], 7}));
    ck_ok(wait_stream(a, TRLI_STREAM_OUT));
    ck_assert_double_eq(to, 4);
    ck_ok(wait_stream(a, TRLI_STREAM_COMPUTE));
    ck_assert_int_eq(calls[0], 0);
    ck_assert_int_eq(calls[1], 4);
    a->ops->fence_destroy(a, fence);
    a->ops->release(a, there);
    close_mocks();
}
END_TEST

START_TEST(calls_that_say_nothing_or_ask_to_be_called_again_are_named)
{
    open_mocks("1");
    trl_device *d = mock(0);
    ck_ok(give_call(d, fail_silently, NULL));
    ck_fails(wait_stream(d, TRLI_STREAM_COMPUTE), TRL_ERR_NUMERICS,
             "mock device 0: call 1 failed (a value of the solution is not finite) and does not say why");
    ck_ok(give_call(d, ask_again, NULL));
    ck_fails(wait_stream(d, TRLI_STREAM_COMPUTE), TRL_ERR_USAGE,
             "mock device 0: call 2 asks to be called again, which devices do not do");
    close_mocks();
}
END_TEST

/* ---- faults on demand ---- */

START_TEST(the_nth_call_or_copy_fails_and_no_other)
{
    double from = 4, *to;
    _Atomic int calls = 0;
    open_mocks("1:fail=call@3,fail=copy@2");
    trl_device *d = mock(0);
    to = allocate(d, sizeof *to);
    for (int i = 1; i <= 5; ++i) {
        ck_ok(give_call(d, count_call, &calls));
        const trl_err err = wait_stream(d, TRLI_STREAM_COMPUTE);
        if (i == 3)
            ck_fails(err, TRL_ERR_DEVICE,
                     "mock device 0 failed at call 3: TRL_MOCK_DEVICES asks for that by fail=call; leave it out");
        else
            ck_ok(err);
    }
    ck_assert_int_eq(calls, 4);
    for (int i = 1; i <= 3; ++i) {
        ck_ok(give_copy(d, TRLI_STREAM_IN, to, 1, &from, 0, sizeof from));
        const trl_err err = wait_stream(d, TRLI_STREAM_IN);
        if (i == 2)
            ck_fails(err, TRL_ERR_DEVICE,
                     "mock device 0 failed at copy 2: TRL_MOCK_DEVICES asks for that by fail=copy");
        else
            ck_ok(err);
    }
    close_mocks();
}
END_TEST

static void *forgive_all(void *data)
{
    (void)data;
    trli_diagnostics_forgive(test_ctx, 0);
    return NULL;
}

START_TEST(an_error_of_a_command_is_forgiven_by_the_thread_that_gave_it_and_by_no_other)
{
    _Atomic int calls = 0;
    const trl_diagnostic *said;
    pthread_t other;
    open_mocks("1:fail=call@1");
    ck_ok(give_call(mock(0), count_call, &calls));
    ck_assert_int_eq(wait_stream(mock(0), TRLI_STREAM_COMPUTE), TRL_ERR_DEVICE);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &said), 1);
    ck_assert_int_eq(pthread_create(&other, NULL, forgive_all, NULL), 0);
    pthread_join(other, NULL);
    ck_assert_int_eq(said->severity, TRL_ERROR);
    trli_diagnostics_forgive(test_ctx, 0);
    ck_assert_int_eq(said->severity, TRL_WARNING);
    close_mocks();
}
END_TEST

typedef struct {
    _Atomic bool begun, gate;
} gated_call;

static trl_err begin_and_wait_for_gate(void *data, const trl_task_args *args, bool *done)
{
    gated_call *call = data;
    atomic_store(&call->begun, true);
    return wait_for_gate(&call->gate, args, done);
}

START_TEST(a_lost_device_fails_whatever_is_asked_but_tells_when_it_does_nothing_any_more)
{
    gated_call running = {false, false};
    _Atomic int calls = 0;
    double from = 4, *to;
    void *memory;
    open_mocks("1:fail=lost@4;1");
    trl_device *d = mock(0), *other = mock(1);
    trli_fence *fence = new_fence(d), *copied = new_fence(d), *early = new_fence(d), *created;
    to = allocate(d, sizeof *to);
    ck_ok(d->ops->set(d, TRLI_STREAM_OUT, early));
    ck_ok(poll_fence(d, early));
    ck_ok(give_call(d, begin_and_wait_for_gate, &running));
    while (!atomic_load(&running.begun)) sched_yield(); /* what has not begun when the device is lost never does */
    ck_ok(give_call(d, count_call, &calls));
    ck_ok(give_copy(d, TRLI_STREAM_IN, to, 1, &from, 0, sizeof from));
    ck_ok(wait_stream(d, TRLI_STREAM_IN));
    ck_ok(give_copy(d, TRLI_STREAM_IN, to, 1, &from, 0, sizeof from));
    ck_ok(d->ops->set(d, TRLI_STREAM_IN, copied));
    ck_fails(poll_fence(d, copied), TRL_ERR_DEVICE, "mock device 0 was lost at command 4");
    ck_assert(atomic_load(&d->lost));
    const char *lost = "mock device 0 is lost: nothing more can be done with it";
    ck_fails(give_call(d, count_call, &calls), TRL_ERR_DEVICE, lost);
    ck_fails(give_copy(d, TRLI_STREAM_OUT, &from, 0, to, 1, sizeof from), TRL_ERR_DEVICE, lost);
    ck_fails(d->ops->allocate(d, 8, &memory), TRL_ERR_DEVICE, lost);
    ck_fails(d->ops->fence_create(d, true, &created), TRL_ERR_DEVICE, lost);
    ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence));
    ck_assert(!is_passed(d, fence)); /* a call is still running */
    atomic_store(&running.gate, true);
    ck_assert_int_eq(poll_fence(d, fence), TRL_ERR_DEVICE);
    ck_assert_int_eq(poll_fence(d, early), TRL_ERR_DEVICE);
    ck_assert_int_eq(calls, 0);
    d->ops->release(d, to);
    d->ops->fence_destroy(d, fence);
    d->ops->fence_destroy(d, copied);
    d->ops->fence_destroy(d, early);
    ck_ok(give_call(other, count_call, &calls));
    ck_ok(wait_stream(other, TRLI_STREAM_COMPUTE));
    ck_assert_int_eq(calls, 1);
    close_mocks();
}
END_TEST

/* Which of 1000 calls fail: a text of 0 and 1. */
static int fail_by_chance(const char *settings, char failed[1001])
{
    int failures = 0;
    _Atomic int calls = 0;
    memset(failed, 0, 1001);
    open_mocks(settings);
    for (int i = 0; i < 1000; ++i) {
        ck_ok(give_call(mock(0), count_call, &calls));
        failed[i] = wait_stream(mock(0), TRLI_STREAM_COMPUTE) == TRL_OK ? '0' : '1';
        failures += failed[i] == '1';
    }
    close_mocks();
    ck_assert_int_eq(calls, 1000 - failures);
    return failures;
}

START_TEST(faults_by_chance_are_those_of_their_seed)
{
    char first[1001], again[1001], other[1001];
    const int failures = fail_by_chance("1:fail=call~0.1,seed=5", first);
    ck_assert_int_gt(failures, 60);
    ck_assert_int_lt(failures, 140);
    ck_assert_int_eq(fail_by_chance("1:fail=call~0.1,seed=5", again), failures);
    ck_assert_str_eq(first, again);
    ck_assert_int_gt(fail_by_chance("1:fail=call~0.1,seed=6", other), 60);
    ck_assert_str_ne(first, other);
}
END_TEST

START_TEST(devices_open_and_close_a_hundred_times_with_work_given)
{
    trl_memory_stats first, last;
    _Atomic int calls = 0;
    double from[64] = {0};
    trl_memory_get_stats(test_ctx, &first);
    for (int i = 0; i < 100; ++i) {
        open_mocks("2");
        trl_device *a = mock(0), *b = mock(1);
        void *to = allocate(a, sizeof from), *there = allocate(b, sizeof from);
        trli_fence *fence = new_fence(a);
        ck_ok(give_copy(a, TRLI_STREAM_IN, to, 1, from, 0, sizeof from));
        ck_ok(give_call(a, count_call, &calls));
        ck_ok(a->ops->set(a, TRLI_STREAM_IN, fence));
        ck_ok(b->ops->wait(b, TRLI_STREAM_IN, fence));
        ck_ok(give_copy(b, TRLI_STREAM_IN, there, 2, to, 1, sizeof from));
        a->ops->fence_destroy(a, fence);
        close_mocks();
    }
    trl_memory_get_stats(test_ctx, &last);
    ck_assert_int_eq(calls, 100);
    ck_assert_uint_eq(first.bytes, last.bytes);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_stream_does_what_it_was_given_in_that_order);
    tcase_add_test(tc, copies_in_and_out_go_on_while_a_call_runs);
    tcase_add_test(tc, fences_order_streams_and_devices);
    tcase_add_test(tc, a_fence_may_be_set_again_and_go_while_streams_wait_for_it);
    tcase_add_test(tc, streams_that_wait_use_no_processor);
    tcase_add_test(tc, commands_take_no_memory_once_there_is_room_for_as_many);
    tcase_add_test(tc, threads_use_devices_at_once);
    tcase_add_test(tc, an_error_stops_what_shares_its_outcome_and_nothing_else);
    tcase_add_test(tc, calls_that_say_nothing_or_ask_to_be_called_again_are_named);
    tcase_add_test(tc, the_nth_call_or_copy_fails_and_no_other);
    tcase_add_test(tc, an_error_of_a_command_is_forgiven_by_the_thread_that_gave_it_and_by_no_other);
    tcase_add_test(tc, a_lost_device_fails_whatever_is_asked_but_tells_when_it_does_nothing_any_more);
    tcase_add_test(tc, faults_by_chance_are_those_of_their_seed);
    tcase_add_test(tc, devices_open_and_close_a_hundred_times_with_work_given);
}
TRL_TEST_MAIN("device streams", add_tests)

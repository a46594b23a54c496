// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which devices are opened; settings, memory, copies and clocks of mock devices. */
#include "mock_support.h"

#include <math.h>
#include <time.h>

/* ---- which ---- */

static int opened(const char *which)
{
    ck_ok(trl_devices_open(test_ctx, which, &devices));
    const int n = trl_devices_opened(devices);
    for (int i = 0; i < n; ++i) ck_assert_int_eq(mock(i)->space, i + 1);
    return n;
}

START_TEST(all_none_or_some_devices_are_opened)
{
    static const struct {
        const char *which;
        int n;
    } cases[] = {{"auto", 4}, {"gpu", 4}, {"cpu", 0}, {"0", 1}, {"3,0,1", 3}};
    setenv("TRL_MOCK_DEVICES", "2:speed=2;1:speed=3;1:speed=4", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        ck_assert_int_eq(opened(cases[i].which), cases[i].n);
        if (i == 4) {
            ck_assert_str_eq(trl_devices_info(devices, 0)->name, "mock device, speed 4");
            ck_assert_str_eq(trl_devices_info(devices, 1)->name, "mock device, speed 2");
        }
        trl_devices_close(&devices);
    }
    setenv("TRL_MOCK_DEVICES", "0", 1);
    ck_assert_int_eq(opened("auto"), 0);
    close_mocks();
    ck_assert_int_eq(opened("auto"), 0);
    close_mocks();
}
END_TEST

START_TEST(refuses_devices_that_are_not_there)
{
    static const struct {
        const char *which, *message;
    } cases[] = {
        {"2", "devices '2': there is no device 2; the last one is 1"},
        {"0,1,99999999999", "devices '0,1,99999999999': there is no device 99999999999; the last one is 1"},
        {"1,1", "devices '1,1': device 1 stands there twice; name it once"},
        {"1,", "devices '1,' are not known; write 'auto', 'cpu', 'gpu', or numbers from 0, as in '0,1'"},
        {"all", "devices 'all' are not known"},
        {"", "devices '' are not known"},
        {"-1", "devices '-1' are not known"},
        {"0 1", "devices '0 1' are not known"},
    };
    setenv("TRL_MOCK_DEVICES", "2", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        ck_fails(trl_devices_open(test_ctx, cases[i].which, &devices), TRL_ERR_INPUT, cases[i].message);
        ck_assert_ptr_null(devices);
    }
    unsetenv("TRL_MOCK_DEVICES");
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* nothing has asked CUDA yet */
    ck_fails(trl_devices_open(test_ctx, "gpu", &devices), TRL_ERR_DEVICE, "devices 'gpu': there is none: ");
    ck_fails(trl_devices_open(test_ctx, "gpu", &devices), TRL_ERR_DEVICE,
             "write 'cpu', or 'auto' for those that there are, or set TRL_MOCK_DEVICES=2 for two mock devices");
    ck_fails(trl_devices_open(test_ctx, "0", &devices), TRL_ERR_DEVICE, "devices '0': there is none: ");
}
END_TEST

/* ---- settings ---- */

START_TEST(settings_with_units_are_read)
{
    static const struct {
        const char *settings, *name;
    } cases[] = {
        {"1", "mock device"},
        {"1:", "mock device"},
        {"1:speed=0.5,clock=real", "mock device, speed 0.5"},
        {"1:latency=10us,launch=2ms,rate=10G", "mock device, launch 0.002, latency 1e-05, rate 1e+10"},
        {"1:launch=1.5s,latency=20ns,rate=1T,bytes=64k",
         "mock device, launch 1.5, latency 2e-08, rate 1e+12, bytes 6.4e+04"},
        {"1:bytes=2Ki,seed=7", "mock device, bytes 2048, seed 7"},
        {"1:bytes=1Mi,rate=1Gi", "mock device, rate 1.074e+09, bytes 1.049e+06"},
        {"1:clock=virtual,fail=lost@12,fail=call~0.5,fail=memory@1,fail=copy@1",
         "mock device, virtual clock, call fails by chance, fails at copy 1, fails at memory 1, fails at lost 12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        open_mocks(cases[i].settings);
        ck_assert_str_eq(trl_devices_info(devices, 0)->name, cases[i].name);
        close_mocks();
    }
    open_mocks("1:bytes=1Ti");
    ck_assert_uint_eq(trl_devices_info(devices, 0)->bytes, (size_t)1 << 40);
    close_mocks();
}
END_TEST

START_TEST(refuses_settings_with_what_is_allowed)
{
    static const char keys[] =
        "write key=value, where the keys are speed, launch, latency, rate, bytes, seed, clock and "
        "fail, as in 2:speed=4,latency=10us,bytes=64M";
    static const char number[] = "write a number from 1e-6 to 1e15, as in 0.5";
    static const char time[] = "write seconds from 0 to 1000, with s, ms, us or ns, as in 10us";
    static const char bytes[] = "write bytes from 0 to 1e15, with k, M, G, T, Ki, Mi, Gi or Ti, as in 64M";
    static const char fail[] =
        "write fail=WHAT@N, the N-th from 1, or fail=WHAT~P, each with the chance P from 0 to 1, "
        "where WHAT is one of: call copy memory lost";
    static const char group[] = "does not begin with a number of devices; write n or n:key=value,..., as in ";
    static const struct {
        const char *settings, *at, *allowed;
    } cases[] = {
        {"2:sped=4", "'sped=4': ", keys},
        {"2:4,10us,64M", "'4': ", keys},
        {"2:speed=4,", "'': ", keys},
        {"2:speed", "'speed': ", keys},
        {"2:speed=0", "'speed=0': ", number},
        {"2:speed=-1", "'speed=-1': ", number},
        {"2:speed=nan", "'speed=nan': ", number},
        {"2:speed=4x", "'speed=4x': ", number},
        {"2:speed=", "'speed=': ", number},
        {"2:speed=1e999", "'speed=1e999': ", number},
        {"2:latency=10M", "'latency=10M': ", time},
        {"2:launch=2000", "'launch=2000': ", time},
        {"2:bytes=4s", "'bytes=4s': ", bytes},
        {"2:rate=1e3T", "'rate=1e3T': ", NULL},
        {"2:rate=1e4T", "'rate=1e4T': ", bytes},
        {"2:clock=slow", "'clock=slow': ", "write clock=real or clock=virtual"},
        {"2:fail=call", "'fail=call': ", fail},
        {"2:fail=call@0", "'fail=call@0': ", fail},
        {"2:fail=call@1.5", "'fail=call@1.5': ", fail},
        {"2:fail=call~2", "'fail=call~2': ", fail},
        {"2:fail=cal@2", "'fail=cal@2': ", fail},
        {"2:fail=calls@2", "'fail=calls@2': ", fail},
        {"two", "'two' ", group},
        {":speed=4", "':speed=4' ", group},
        {"0:speed=4", "'0:speed=4' ", group},
        {"2;", "'' ", group},
        {"2,speed=4", "'2,speed=4' ", group},
        {"9", "", "there are more than 8 devices; ask for fewer"},
        {"5;4", "", "there are more than 8 devices; ask for fewer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char message[512];
        setenv("TRL_MOCK_DEVICES", cases[i].settings, 1);
        trl_context_clear_diagnostics(test_ctx);
        if (cases[i].allowed) {
            snprintf(message, sizeof message, "TRL_MOCK_DEVICES: %s%s", cases[i].at, cases[i].allowed);
            ck_fails(trl_devices_open(test_ctx, "auto", &devices), TRL_ERR_INPUT, message);
            ck_assert_ptr_null(devices);
        } else {
            ck_ok(trl_devices_open(test_ctx, "auto", &devices));
        }
        ck_assert_int_eq(opened("cpu"), 0); /* which asks for none */
        close_mocks();
    }
}
END_TEST

/* ---- memory ---- */

START_TEST(memory_begins_as_signalling_nan)
{
    enum { N = 1000 };
    double back[N];
    float *single = (float *)(void *)back;
    open_mocks("1");
    void *memory = allocate(mock(0), sizeof back);
    ck_assert_uint_eq((uintptr_t)memory % 64, 0);
    memset(back, 0, sizeof back);
    ck_ok(give_copy(mock(0), TRLI_STREAM_OUT, back, 0, memory, 1, sizeof back));
    ck_ok(wait_stream(mock(0), TRLI_STREAM_OUT));
    for (int i = 0; i < N; ++i) {
        uint64_t bits;
        memcpy(&bits, &back[i], sizeof bits);
        ck_assert(isnan(back[i]) && (bits & (uint64_t)1 << 51) == 0);
    }
    for (int i = 0; i < 2 * N; ++i) ck_assert(isnan(single[i]));
    close_mocks();
}
END_TEST

START_TEST(memory_is_counted_and_limited)
{
    void *memory[4];
    open_mocks("1:bytes=1000;1");
    trl_device *d = mock(0);
    memory[0] = allocate(d, 600);
    memory[1] = allocate(d, 400);
    ck_assert_uint_eq(d->used, 1000);
    ck_assert_int_eq(d->ops->allocate(d, 1, &memory[2]), TRL_ERR_MEMORY);
    ck_assert_ptr_null(memory[2]);
    ck_assert_str_eq(test_messages(), "");
    d->ops->release(d, memory[0]);
    ck_assert_uint_eq(d->used, 400);
    memory[2] = allocate(d, 100);
    ck_assert_uint_eq(d->used, 500);
    ck_assert_uint_eq(d->peak, 1000);
    d->ops->release(d, memory[1]);
    d->ops->release(d, memory[2]);
    d->ops->release(d, NULL);
    ck_assert_uint_eq(d->used, 0);
    ck_assert_uint_eq(mock(1)->peak, 0);
    ck_assert_int_eq(mock(1)->ops->allocate(mock(1), SIZE_MAX - 8, &memory[3]), TRL_ERR_MEMORY);
    ck_assert_int_eq(mock(1)->ops->allocate(mock(1), (size_t)1 << 60, &memory[3]), TRL_ERR_MEMORY);
    ck_assert_uint_eq(mock(1)->used, 0);
    close_mocks();
}
END_TEST

START_TEST(the_nth_allocation_fails_and_no_other)
{
    void *memory;
    open_mocks("1:fail=memory@2");
    for (int i = 1; i <= 4; ++i)
        ck_assert_int_eq(mock(0)->ops->allocate(mock(0), 64, &memory), i == 2 ? TRL_ERR_MEMORY : TRL_OK);
    close_mocks();
}
END_TEST

START_TEST(a_write_beyond_an_allocation_and_a_foreign_release_are_found)
{
    static const int at[] = {-1, 24};
    char other[8];
    for (int i = 0; i < 2; ++i) {
        open_mocks("1");
        trl_device *d = mock(0);
        char *memory = allocate(d, 24);
        memory[at[i]] = 1;
        ck_ok(wait_stream(d, TRLI_STREAM_IN));
        d->ops->release(d, memory);
        ck_fails(wait_stream(d, TRLI_STREAM_IN), TRL_ERR_DEVICE,
                 "mock device 0: something was written before or behind an allocation of 24 bytes");
        trl_context_clear_diagnostics(test_ctx);
        close_mocks();
    }
    open_mocks("1");
    mock(0)->ops->release(mock(0), other);
    ck_fails(wait_stream(mock(0), TRLI_STREAM_IN), TRL_ERR_DEVICE,
             "mock device 0: memory was released that is no allocation of it");
    close_mocks();
}
END_TEST

/* ---- copies ---- */

START_TEST(refuses_copies_whose_ends_are_not_in_the_space_that_they_name)
{
    char host[100];
    open_mocks("2");
    trl_device *d = mock(0);
    char *a = allocate(d, 100), *b = allocate(mock(1), 100);
    const struct {
        char *to;
        int to_space;
        const char *from;
        int from_space;
        size_t bytes;
        const char *message;
    } cases[] = {
        {a, 1, host, 0, 100, NULL},
        {a + 50, 1, b, 2, 50, NULL},
        {b, 2, a, 1, 100, NULL},
        {host, 1, host, 0, 10, "a copy to space 1, but the 10 bytes at "},
        {a, 0, host, 0, 10, "a copy to the host's space, but some of the 10 bytes at "},
        {a - 10, 0, host, 0, 11, "a copy to the host's space, but some of the 11 bytes at "},
        {a, 1, host, 2, 10, "a copy from space 2, but the 10 bytes at "},
        {a, 1, b, 0, 10, "are memory of mock device 1: pass an address of the host's, or space 2"},
        {a, 1, b, 1, 10, "are not in an allocation of mock device 0: pass an address of that space"},
        {a, 1, host, 0, 101, "a copy to space 1, but the 101 bytes at "},
        {a + 1, 1, host, 0, 100, "a copy to space 1, but the 100 bytes at "},
        {a - 1, 1, host, 0, 2, "a copy to space 1, but the 2 bytes at "},
        {a, 3, host, 0, 10, "a copy to space 3, which is no mock device's"},
        {host, -1, a, 1, 10, "a copy to space -1, which is no mock device's"},
        {host, 1, host, 3, 0, NULL}, /* nothing is copied */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        trl_context_clear_diagnostics(test_ctx);
        const trl_err err = give_copy(d, TRLI_STREAM_IN, cases[i].to, cases[i].to_space, cases[i].from,
                                      cases[i].from_space, cases[i].bytes);
        if (cases[i].message)
            ck_fails(err, TRL_ERR_DEVICE, cases[i].message);
        else
            ck_ok(err);
        ck_ok(wait_stream(d, TRLI_STREAM_IN));
    }
    d->ops->release(d, a);
    ck_fails(give_copy(d, TRLI_STREAM_IN, a, 1, host, 0, 1), TRL_ERR_DEVICE, "mock device 0: a copy to space 1");
    close_mocks();
}
END_TEST

/* Boxes in arrays of 4 planes of 5 rows of 6 bytes, rows and planes in either direction. */
START_TEST(boxes_are_copied_row_by_row)
{
    const trli_ticket ticket = {&outcome, 0};
    enum { ROW = 6, PLANE = 5 * ROW, BYTES = 4 * PLANE };
    char host[BYTES], back[BYTES], expected[BYTES];
    open_mocks("1");
    trl_device *d = mock(0);
    char *memory = allocate(d, BYTES);
    for (int i = 0; i < BYTES; ++i) host[i] = (char)i;
    for (int sense = 0; sense < 4; ++sense) {
        const ptrdiff_t row = sense & 1 ? -ROW : ROW, plane = sense & 2 ? -PLANE : PLANE;
        const ptrdiff_t begin = 1 + (sense & 1 ? 3 * ROW : ROW) + (sense & 2 ? 2 * PLANE : PLANE);
        memset(expected, 0, BYTES);
        for (int p = 0; p < 2; ++p)
            for (int r = 0; r < 3; ++r)
                for (int i = 0; i < 4; ++i) expected[begin + p * plane + r * row + i] = host[ROW * 3 * p + ROW * r + i];
        memset(back, 0, BYTES);
        ck_ok(give_copy(d, TRLI_STREAM_IN, memory, 1, back, 0, BYTES));
        const trli_box_copy copy = {.to = memory + begin,
                                    .from = host,
                                    .to_space = 1,
                                    .row = 4,
                                    .rows = 3,
                                    .planes = 2,
                                    .to_row = row,
                                    .to_plane = plane,
                                    .from_row = ROW,
                                    .from_plane = (ptrdiff_t)3 * ROW};
        ck_ok(d->ops->copy(d, TRLI_STREAM_IN, &copy, ticket));
        ck_ok(give_copy(d, TRLI_STREAM_IN, back, 0, memory, 1, BYTES));
        ck_ok(wait_stream(d, TRLI_STREAM_IN));
        ck_assert_mem_eq(back, expected, BYTES);
    }
    trli_box_copy beyond = {.to = memory, .from = host, .to_space = 1, .row = 6, .rows = 5, .planes = 5};
    beyond.to_row = beyond.from_row = ROW;
    beyond.to_plane = PLANE;
    ck_fails(d->ops->copy(d, TRLI_STREAM_IN, &beyond, ticket), TRL_ERR_DEVICE, "but the 150 bytes at ");
    beyond.planes = 4;
    beyond.to_plane = -PLANE;
    ck_fails(d->ops->copy(d, TRLI_STREAM_IN, &beyond, ticket), TRL_ERR_DEVICE, "but the 120 bytes at ");
    beyond.planes = 1;
    beyond.to_row = -ROW;
    ck_fails(d->ops->copy(d, TRLI_STREAM_IN, &beyond, ticket), TRL_ERR_DEVICE, "but the 30 bytes at ");
    const trli_box_copy packed = {
        .to = memory, .from = host, .to_space = 1, .row = 4, .rows = 3, .planes = 1, .to_row = 4, .from_row = ROW};
    ck_ok(d->ops->copy(d, TRLI_STREAM_IN, &packed, ticket));
    ck_ok(give_copy(d, TRLI_STREAM_IN, back, 0, memory, 1, 12));
    ck_ok(wait_stream(d, TRLI_STREAM_IN));
    for (int i = 0; i < 12; ++i) ck_assert_int_eq(back[i], host[i / 4 * ROW + i % 4]);
    close_mocks();
}
END_TEST

/* ---- clocks ---- */

/* Fences around commands: seconds of the device's clock. */
static double seconds_between(trl_device *d, trli_fence *from, trli_fence *to)
{
    ck_ok(poll_fence(d, from));
    ck_ok(poll_fence(d, to));
    return d->ops->seconds(d, from, to);
}

static void assert_near(double value, double expected)
{
    ck_assert_msg(fabs(value - expected) < 1e-9 + 1e-6 * expected, "%.12g is not %.12g", value, expected);
}

/* Calls so fast that only their launch counts. */
START_TEST(a_virtual_clock_adds_up_what_work_would_take)
{
    _Atomic int calls = 0;
    static char host[4000];
    open_mocks("2:clock=virtual,speed=1e12,launch=3s,latency=2s,rate=1k");
    trl_device *d = mock(0), *e = mock(1);
    char *memory = allocate(d, 4000);
    trli_fence *fence[6];
    for (int i = 0; i < 6; ++i) fence[i] = new_fence(i < 4 ? d : e);
    ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence[0]));
    for (int i = 0; i < 3; ++i) ck_ok(give_call(d, count_call, &calls));
    ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence[1]));
    for (int i = 0; i < 2; ++i) ck_ok(give_copy(d, TRLI_STREAM_IN, memory, 1, host, 0, 4000)); /* 6 s each */
    ck_ok(d->ops->set(d, TRLI_STREAM_IN, fence[2]));
    ck_ok(d->ops->wait(d, TRLI_STREAM_COMPUTE, fence[2])); /* 9 s against 12 s */
    ck_ok(give_call(d, count_call, &calls));
    ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence[3]));
    ck_ok(e->ops->set(e, TRLI_STREAM_COMPUTE, fence[4]));
    ck_ok(e->ops->wait(e, TRLI_STREAM_COMPUTE, fence[1]));
    ck_ok(give_call(e, count_call, &calls));
    ck_ok(e->ops->set(e, TRLI_STREAM_COMPUTE, fence[5]));
    assert_near(seconds_between(d, fence[0], fence[1]), 9);
    assert_near(seconds_between(d, fence[0], fence[2]), 12);
    assert_near(seconds_between(d, fence[0], fence[3]), 15);
    assert_near(seconds_between(e, fence[4], fence[5]), 12);
    for (int i = 0; i < 6; ++i) d->ops->fence_destroy(i < 4 ? d : e, fence[i]);
    close_mocks();
}
END_TEST

/* Measured processor time, divided by the speed. */
START_TEST(speed_divides_what_calls_take)
{
    double work = 4e-3, slow, fast;
    trli_fence *fence[2];
    for (int i = 0; i < 2; ++i) {
        open_mocks(i == 0 ? "1:clock=virtual,speed=0.001" : "1:clock=virtual,speed=1000");
        trl_device *d = mock(0);
        for (int f = 0; f < 2; ++f) fence[f] = new_fence(d);
        ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence[0]));
        ck_ok(give_call(d, work_for, &work));
        ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence[1]));
        *(i == 0 ? &slow : &fast) = seconds_between(d, fence[0], fence[1]);
        for (int f = 0; f < 2; ++f) d->ops->fence_destroy(d, fence[f]);
        close_mocks();
    }
    ck_assert_msg(slow > 0 && fast > 0 && slow > 1e3 * fast, "%g s, %g s", slow, fast);
}
END_TEST

START_TEST(copies_as_fast_as_the_host_are_measured)
{
    enum { BYTES = 1 << 20 };
    static char host[BYTES];
    trli_fence *fence[2];
    for (int i = 0; i < 2; ++i) {
        open_mocks(i == 0 ? "1" : "1:clock=virtual");
        trl_device *d = mock(0);
        for (int f = 0; f < 2; ++f) fence[f] = new_fence(d);
        char *memory = allocate(d, BYTES);
        ck_ok(d->ops->set(d, TRLI_STREAM_IN, fence[0]));
        ck_ok(d->ops->wait(d, TRLI_STREAM_OUT, fence[0]));
        ck_ok(give_copy(d, TRLI_STREAM_OUT, host, 0, memory, 1, BYTES));
        ck_ok(d->ops->set(d, TRLI_STREAM_OUT, fence[1]));
        ck_assert(seconds_between(d, fence[0], fence[1]) > 1e-6);
        for (int f = 0; f < 2; ++f) d->ops->fence_destroy(d, fence[f]);
        close_mocks();
    }
}
END_TEST

START_TEST(on_a_real_clock_slow_calls_and_copies_really_take_what_they_should)
{
    double work = 5e-3;
    static char host[10000];
    open_mocks("1:speed=0.25,launch=1ms,latency=10ms,rate=1M");
    trl_device *d = mock(0);
    char *memory = allocate(d, sizeof host);
    trli_fence *fence[3];
    for (int i = 0; i < 3; ++i) fence[i] = new_fence(d);
    ck_ok(d->ops->set(d, TRLI_STREAM_OUT, fence[0]));
    ck_assert_int_eq(nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL), 0);
    ck_ok(d->ops->set(d, TRLI_STREAM_OUT, fence[1]));
    ck_assert(seconds_between(d, fence[0], fence[1]) >= 5e-3); /* its time goes on when it has nothing to do */
    const double begun = trli_clock();
    ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence[0]));
    ck_ok(give_call(d, work_for, &work));
    ck_ok(d->ops->set(d, TRLI_STREAM_COMPUTE, fence[1]));
    const double call = seconds_between(d, fence[0], fence[1]), called = trli_clock();
    ck_assert_msg(call >= 21e-3 && called - begun >= 21e-3, "%g s, %g s", call, called - begun);
    ck_ok(give_copy(d, TRLI_STREAM_IN, memory, 1, host, 0, sizeof host));
    ck_ok(d->ops->set(d, TRLI_STREAM_IN, fence[2]));
    const double both = seconds_between(d, fence[0], fence[2]), copied = trli_clock();
    ck_assert_msg(both >= call + 20e-3 && copied - called >= 20e-3, "%g s, %g s", both, copied - called);
    for (int i = 0; i < 3; ++i) d->ops->fence_destroy(d, fence[i]);
    close_mocks();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, all_none_or_some_devices_are_opened);
    tcase_add_test(tc, refuses_devices_that_are_not_there);
    tcase_add_test(tc, settings_with_units_are_read);
    tcase_add_test(tc, refuses_settings_with_what_is_allowed);
    tcase_add_test(tc, memory_begins_as_signalling_nan);
    tcase_add_test(tc, memory_is_counted_and_limited);
    tcase_add_test(tc, the_nth_allocation_fails_and_no_other);
    tcase_add_test(tc, a_write_beyond_an_allocation_and_a_foreign_release_are_found);
    tcase_add_test(tc, refuses_copies_whose_ends_are_not_in_the_space_that_they_name);
    tcase_add_test(tc, boxes_are_copied_row_by_row);
    tcase_add_test(tc, a_virtual_clock_adds_up_what_work_would_take);
    tcase_add_test(tc, speed_divides_what_calls_take);
    tcase_add_test(tc, copies_as_fast_as_the_host_are_measured);
    tcase_add_test(tc, on_a_real_clock_slow_calls_and_copies_really_take_what_they_should);
}
TRL_TEST_MAIN("devices", add_tests)

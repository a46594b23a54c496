// ctest: np=1 labels=gpu
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* GPUs as executors: memory, copies of boxes, order of streams, fences. */
#include "mock_support.h"

#include <trl_device.h>

static void open_gpus(void)
{
    ck_ok(trl_devices_open(test_ctx, "gpu", &devices));
    ck_assert_int_ge(trl_devices_opened(devices), 1);
}

START_TEST(boxes_are_copied_there_and_back)
{
    enum { X = 9, Y = 7, Z = 5, PITCH = 16, ROWS = 8 };
    static double from[Z][ROWS][PITCH], to[Z][ROWS + 1][PITCH + 3];
    open_gpus();
    trl_device *d = devices->device[0];
    for (int planes = 1; planes <= Z; planes += Z - 1)
        for (int rows = 1; rows <= Y; rows += Y - 1)
            for (int odd = 0; odd < 2; ++odd) { /* planes that are no whole number of rows apart */
                const size_t plane = ((size_t)ROWS * PITCH + (size_t)odd) * sizeof(double);
                char *memory = allocate(d, Z * plane);
                trli_box_copy copy = {.to = memory + 8,
                                      .from = &from[0][0][1],
                                      .to_space = 1,
                                      .row = X * sizeof(double),
                                      .rows = rows,
                                      .planes = planes,
                                      .to_row = PITCH * sizeof(double),
                                      .to_plane = (ptrdiff_t)plane,
                                      .from_row = sizeof from[0][0],
                                      .from_plane = sizeof from[0]};
                for (int k = 0; k < Z; ++k)
                    for (int j = 0; j < ROWS; ++j)
                        for (int i = 0; i < PITCH; ++i) from[k][j][i] = 100 * k + 10 * j + 0.5 * i;
                memset(to, 0, sizeof to);
                ck_ok(d->ops->copy(d, TRLI_STREAM_IN, &copy, (trli_ticket){&outcome, 0}));
                ck_ok(wait_stream(d, TRLI_STREAM_IN));
                copy = (trli_box_copy){.to = &to[0][0][2],
                                       .from = memory + 8,
                                       .from_space = 1,
                                       .row = copy.row,
                                       .rows = rows,
                                       .planes = planes,
                                       .to_row = sizeof to[0][0],
                                       .to_plane = sizeof to[0],
                                       .from_row = copy.to_row,
                                       .from_plane = copy.to_plane};
                ck_ok(d->ops->copy(d, TRLI_STREAM_OUT, &copy, (trli_ticket){&outcome, 0}));
                ck_ok(wait_stream(d, TRLI_STREAM_OUT));
                for (int k = 0; k < Z; ++k)
                    for (int j = 0; j < ROWS; ++j)
                        for (int i = 0; i < PITCH; ++i) {
                            const bool inside = k < planes && j < rows && i >= 1 && i < X + 1;
                            ck_assert_double_eq(to[k][j][i + 1], inside ? from[k][j][i] : 0);
                        }
                d->ops->release(d, memory);
            }
    trl_devices_close(&devices);
}
END_TEST

static trl_err take_stream(void *data, const trl_task_args *args, bool *done)
{
    void **stream = data;
    (void)done;
    *stream = args->stream;
    return args->space == 1 && args->worker == 3 ? TRL_OK : TRL_ERR_BUG;
}

START_TEST(a_call_is_made_at_once_with_a_stream)
{
    void *stream[2] = {NULL, NULL};
    const trl_task_args args = {.chunks = 1, .space = 1, .worker = 3};
    open_gpus();
    trl_device *d = devices->device[0];
    ck_ok(d->ops->call(d, TRLI_STREAM_COMPUTE, take_stream, &stream[0], &args, (trli_ticket){&outcome, 0}));
    ck_ok(d->ops->call(d, TRLI_STREAM_IN, take_stream, &stream[1], &args, (trli_ticket){&outcome, 0}));
    ck_assert_ptr_nonnull(stream[0]);
    ck_assert_ptr_nonnull(stream[1]);
    ck_assert_ptr_ne(stream[0], stream[1]);
    trl_devices_close(&devices);
}
END_TEST

START_TEST(streams_wait_for_fences_of_each_other)
{
    enum { VALUES = 1 << 22 };
    open_gpus();
    trl_device *d = devices->device[0];
    double *host = malloc(VALUES * sizeof *host), *back = malloc(VALUES * sizeof *back);
    trli_fence *fence = new_fence(d), *begin = new_fence(d);
    void *memory = allocate(d, VALUES * sizeof *host);
    bool passed = false;
    ck_ok(d->ops->passed(d, fence, &passed));
    ck_assert(passed); /* it was not set */
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < VALUES; ++i) host[i] = i + round;
        ck_ok(d->ops->set(d, TRLI_STREAM_IN, begin));
        ck_ok(give_copy(d, TRLI_STREAM_IN, memory, 1, host, 0, VALUES * sizeof *host));
        ck_ok(d->ops->set(d, TRLI_STREAM_IN, fence));
        ck_ok(d->ops->wait(d, TRLI_STREAM_OUT, fence));
        ck_ok(give_copy(d, TRLI_STREAM_OUT, back, 0, memory, 1, VALUES * sizeof *host));
        ck_ok(wait_stream(d, TRLI_STREAM_OUT));
        ck_ok(poll_fence(d, fence));
        ck_assert_mem_eq(back, host, VALUES * sizeof *host);
        ck_assert_double_gt(d->ops->seconds(d, begin, fence), 0);
    }
    d->ops->fence_destroy(d, fence);
    d->ops->fence_destroy(d, begin);
    d->ops->release(d, memory);
    free(host);
    free(back);
    trl_devices_close(&devices);
}
END_TEST

START_TEST(memory_is_counted_and_runs_out_silently)
{
    const trl_diagnostic *said;
    void *memory;
    open_gpus();
    trl_device *d = devices->device[0];
    const int before = trl_context_diagnostics(test_ctx, &said);
    void *first = allocate(d, 1000), *second = allocate(d, 500);
    ck_assert_uint_eq(d->used, 1500);
    d->ops->release(d, first);
    ck_assert_uint_eq(d->used, 500);
    ck_assert_uint_eq(d->peak, 1500);
    ck_assert_int_eq(d->ops->allocate(d, d->info.bytes + 1, &memory), TRL_ERR_MEMORY);
    ck_assert_ptr_null(memory);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &said), before);
    ck_ok(wait_stream(d, TRLI_STREAM_COMPUTE)); /* nothing is lost */
    d->ops->release(d, second);
    trl_devices_close(&devices);
}
END_TEST

START_TEST(gpus_copy_between_each_other)
{
    double host[100], back[100] = {0};
    open_gpus();
    for (int i = 0; i < 100; ++i) host[i] = i;
    if (trl_devices_opened(devices) > 1) {
        trl_device *a = devices->device[0], *b = devices->device[1];
        void *of_a = allocate(a, sizeof host), *of_b = allocate(b, sizeof host);
        ck_ok(give_copy(a, TRLI_STREAM_IN, of_a, 1, host, 0, sizeof host));
        trli_fence *fence = new_fence(a);
        ck_ok(a->ops->set(a, TRLI_STREAM_IN, fence));
        ck_ok(b->ops->wait(b, TRLI_STREAM_IN, fence));
        ck_ok(give_copy(b, TRLI_STREAM_IN, of_b, 2, of_a, 1, sizeof host));
        ck_ok(give_copy(b, TRLI_STREAM_IN, back, 0, of_b, 2, sizeof host));
        ck_ok(wait_stream(b, TRLI_STREAM_IN));
        ck_assert_mem_eq(back, host, sizeof host);
        a->ops->fence_destroy(a, fence);
        a->ops->release(a, of_a);
        b->ops->release(b, of_b);
    }
    trl_devices_close(&devices);
}
END_TEST

/* Boxes of all sizes and alignments, within a GPU or to the next one, as many as are copied at once. */
START_TEST(many_boxes_are_copied_at_once)
{
    enum { ROOM = 1 << 13 };
    static unsigned char from[TRLI_COPIES * ROOM], wanted[TRLI_COPIES * ROOM], back[TRLI_COPIES * ROOM];
    open_gpus();
    trl_device *a = devices->device[0], *b = devices->device[trl_devices_opened(devices) > 1];
    for (size_t i = 0; i < sizeof from; ++i) from[i] = (unsigned char)(i * 2654435761u >> 24);
    for (size_t unit = 1; unit <= 16; unit += unit == 1 ? 7 : 8) {
        trli_box_copy copy[TRLI_COPIES];
        char *source = allocate(a, sizeof from), *target = allocate(b, sizeof from);
        memset(wanted, 0, sizeof wanted);
        ck_ok(give_copy(a, TRLI_STREAM_IN, source, a->space, from, 0, sizeof from));
        ck_ok(wait_stream(a, TRLI_STREAM_IN));
        ck_ok(give_copy(b, TRLI_STREAM_IN, target, b->space, wanted, 0, sizeof wanted));
        for (int i = 0; i < TRLI_COPIES; ++i) {
            const ptrdiff_t u = (ptrdiff_t)unit, to = i * (ptrdiff_t)ROOM + u * (i % 3), at = i * (ptrdiff_t)ROOM + u;
            copy[i] = (trli_box_copy){.to = target + to,
                                      .from = source + at,
                                      .to_space = b->space,
                                      .from_space = a->space,
                                      .row = unit * (size_t)(1 + i % 7),
                                      .rows = 1 + i % 5,
                                      .planes = i % 4, /* some have none */
                                      .to_row = 9 * u,
                                      .to_plane = 50 * u,
                                      .from_row = 8 * u,
                                      .from_plane = 47 * u};
            for (ptrdiff_t k = 0; k < copy[i].planes; ++k)
                for (ptrdiff_t j = 0; j < copy[i].rows; ++j)
                    memcpy(wanted + to + k * copy[i].to_plane + j * copy[i].to_row,
                           from + at + k * copy[i].from_plane + j * copy[i].from_row, copy[i].row);
        }
        ck_ok(trli_device_copies(b, TRLI_STREAM_IN, TRLI_COPIES, copy, (trli_ticket){&outcome, 0}));
        ck_ok(give_copy(b, TRLI_STREAM_IN, back, 0, target, b->space, sizeof back));
        ck_ok(wait_stream(b, TRLI_STREAM_IN));
        ck_assert_mem_eq(back, wanted, sizeof back);
        a->ops->release(a, source);
        b->ops->release(b, target);
    }
    trl_devices_close(&devices);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, many_boxes_are_copied_at_once);
    tcase_add_test(tc, boxes_are_copied_there_and_back);
    tcase_add_test(tc, a_call_is_made_at_once_with_a_stream);
    tcase_add_test(tc, streams_wait_for_fences_of_each_other);
    tcase_add_test(tc, memory_is_counted_and_runs_out_silently);
    tcase_add_test(tc, gpus_copy_between_each_other);
}

int main(int argc, char **argv)
{
    const char *required = getenv("TRL_REQUIRE_GPU");
    unsetenv("TRL_MOCK_DEVICES");
    if (trl_device_count() > 0) return test_run("gpu_device", add_tests, argc, argv);
    puts("there is no GPU");
    return required && strcmp(required, "1") == 0 ? 1 : 77;
}

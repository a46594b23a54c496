// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Parallel loops: every chunk once, on several workers, errors, repetition. */
#include "trl_test.h"

#include "policy_settings.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <trl_loop.h>

#include "share_impl.h"

enum { CHUNKS_MAX = 5000 };

typedef struct tally {
    _Atomic int calls[CHUNKS_MAX];
    _Atomic int wrong; /* arguments out of range */
    int workers, chunks, fails;
} tally;

static trl_err count_call(void *data, int chunk, int chunks, int worker)
{
    tally *t = data;
    if (chunks != t->chunks || chunk < 0 || chunk >= chunks || worker < 0 || worker >= t->workers)
        atomic_fetch_add(&t->wrong, 1);
    else
        atomic_fetch_add(&t->calls[chunk], 1);
    if (chunk == t->fails) return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "chunk %d does not feel like it", chunk);
    return TRL_OK;
}

static void check_loop(trl_loop *loop, int chunks)
{
    static tally t;
    memset(&t, 0, sizeof t);
    t.workers = trl_loop_workers(loop);
    t.chunks = chunks;
    t.fails = -1;
    ck_ok(trl_loop_run(loop, chunks, count_call, &t));
    ck_assert_int_eq(t.wrong, 0);
    for (int c = 0; c < chunks; ++c)
        ck_assert_msg(t.calls[c] == 1, "chunk %d of %d was called %d times", c, chunks, t.calls[c]);
}

START_TEST(every_chunk_runs_once_whatever_their_number)
{
    static const int counts[] = {0, 1, 2, 3, 7, 16, 31, 32, 33, 79, 80, 81, 1000, CHUNKS_MAX};
    for (int s = 0; s < SETTINGS; ++s) {
        trl_workers *workers = make_workers(&settings[s]);
        trl_loop *loop;
        ck_ok(trl_loop_create(test_ctx, workers, &loop));
        ck_assert_int_eq(trl_loop_workers(loop), trl_workers_count(workers));
        for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) check_loop(loop, counts[c]);
        trl_loop_destroy(&loop);
        ck_assert_ptr_null(loop);
        trl_loop_destroy(&loop);
        trl_workers_destroy(&workers);
    }
    check_loop(NULL, 100);
}
END_TEST

static trl_err note_order(void *data, int chunk, int chunks, int worker)
{
    int *next = data;
    (void)chunks;
    if (chunk != *next || worker != 0) return trl_fail(test_ctx, TRL_ERR_BUG, NULL, "chunk %d out of order", chunk);
    ++*next;
    return TRL_OK;
}

START_TEST(without_a_loop_the_caller_takes_the_chunks_in_order)
{
    int next = 0;
    ck_assert_int_eq(trl_loop_workers(NULL), 1);
    ck_ok(trl_loop_run(NULL, 50, note_order, &next));
    ck_assert_int_eq(next, 50);
}
END_TEST

/* Waits inside a chunk until the other one is running: possible only when two workers share the loop. */
static trl_err wait_for_other_chunk(void *data, int chunk, int chunks, int worker)
{
    _Atomic int *running = data;
    (void)chunk;
    (void)chunks;
    (void)worker;
    atomic_fetch_add(running, 1);
    while (atomic_load(running) < 2) sched_yield();
    return TRL_OK;
}

START_TEST(as_few_chunks_as_workers_run_at_once)
{
    const setting two = {"priority", 2};
    trl_workers *workers = make_workers(&two);
    trl_loop *loop;
    ck_ok(trl_loop_create(test_ctx, workers, &loop));
    for (int run = 0; run < 20; ++run) {
        _Atomic int running = 0;
        ck_ok(trl_loop_run(loop, 2, wait_for_other_chunk, (void *)&running));
    }
    trl_loop_destroy(&loop);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(an_error_of_a_chunk_is_returned_and_the_loop_runs_again)
{
    static tally t;
    for (int s = 0; s < SETTINGS; ++s) {
        trl_workers *workers = make_workers(&settings[s]);
        trl_loop *loop;
        ck_ok(trl_loop_create(test_ctx, workers, &loop));
        trl_context_clear_diagnostics(test_ctx);
        t.workers = trl_loop_workers(loop);
        t.chunks = 100;
        t.fails = 70;
        ck_fails(trl_loop_run(loop, 100, count_call, &t), TRL_ERR_NUMERICS, "chunk 70 does not feel like it");
        check_loop(loop, 100);
        trl_loop_destroy(&loop);
        trl_workers_destroy(&workers);
    }
}
END_TEST

static trl_err fail_silently(void *data, int chunk, int chunks, int worker)
{
    (void)data, (void)chunks, (void)worker;
    return chunk == 3 ? TRL_ERR_NUMERICS : TRL_OK;
}

START_TEST(a_chunk_that_fails_without_a_word_is_named)
{
    const setting two = {"priority", 2};
    trl_workers *workers = make_workers(&two);
    trl_loop *loop;
    ck_ok(trl_loop_create(test_ctx, workers, &loop));
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_loop_run(loop, 8, fail_silently, NULL), TRL_ERR_NUMERICS, "chunk 3 of 8 of a loop failed");
    trl_loop_destroy(&loop);
    trl_workers_destroy(&workers);
}
END_TEST

static trl_err run_another(void *data, int chunk, int chunks, int worker)
{
    (void)chunk, (void)chunks, (void)worker;
    return trl_loop_run(data, 2, fail_silently, NULL);
}

START_TEST(a_loop_inside_a_loop_is_refused_whatever_the_number_of_workers)
{
    for (int s = 0; s < SETTINGS; ++s) {
        trl_workers *workers = make_workers(&settings[s]);
        trl_loop *loop;
        ck_ok(trl_loop_create(test_ctx, workers, &loop));
        trl_context_clear_diagnostics(test_ctx);
        ck_fails(trl_loop_run(loop, 2, run_another, loop), TRL_ERR_USAGE, "cannot run inside a task or another loop");
        check_loop(loop, 10);
        trl_loop_destroy(&loop);
        trl_workers_destroy(&workers);
    }
}
END_TEST

typedef struct driver {
    trl_workers *workers;
    bool anew;  /* a loop for each run */
    bool wrong; /* a chunk was not called once */
} driver;

enum { DRIVERS = 3, DRIVER_CHUNKS = 9, DRIVER_RUNS = 2000 };

static trl_err count_alone(void *data, int chunk, int chunks, int worker)
{
    (void)chunks, (void)worker;
    atomic_fetch_add(&((_Atomic int *)data)[chunk], 1);
    return TRL_OK;
}

static void *drive(void *arg)
{
    driver *d = arg;
    trl_loop *loop = NULL;
    for (int run = 0; run < DRIVER_RUNS; ++run) {
        _Atomic int calls[DRIVER_CHUNKS] = {0};
        const int chunks = 1 + run / 8 % DRIVER_CHUNKS;
        if (!loop && trl_loop_create(test_ctx, d->workers, &loop) != TRL_OK) d->wrong = true;
        if (trl_loop_run(loop, chunks, count_alone, (void *)calls) != TRL_OK) d->wrong = true;
        for (int c = 0; c < DRIVER_CHUNKS; ++c)
            if (calls[c] != (c < chunks)) d->wrong = true;
        if (d->anew) trl_loop_destroy(&loop);
    }
    trl_loop_destroy(&loop);
    return NULL;
}

static void check_drivers(bool anew)
{
    for (int threads = 2; threads <= 3; ++threads) {
        trl_workers *workers = make_workers(&(setting){"priority", threads});
        driver driver[DRIVERS];
        pthread_t thread[DRIVERS];
        for (int d = 0; d < DRIVERS; ++d) {
            driver[d] = (struct driver){
                .workers = workers,
                .anew = anew,
            };
            ck_assert_int_eq(pthread_create(&thread[d], NULL, drive, &driver[d]), 0);
        }
        for (int d = 0; d < DRIVERS; ++d) pthread_join(thread[d], NULL);
        for (int d = 0; d < DRIVERS; ++d) ck_assert(!driver[d].wrong);
        trl_workers_destroy(&workers);
    }
}

START_TEST(threads_share_the_workers_each_with_a_loop_of_its_own)
{
    check_drivers(false);
}
END_TEST

/* A worker that is late must not look at a loop that is gone. */
START_TEST(threads_share_the_workers_with_loops_that_come_and_go)
{
    check_drivers(true);
}
END_TEST

START_TEST(nothing_is_allocated_after_the_first_run)
{
    const setting two = {"priority", 2};
    trl_workers *workers = make_workers(&two);
    trl_loop *loop;
    trl_memory_stats first, last;
    ck_ok(trl_loop_create(test_ctx, workers, &loop));
    check_loop(loop, 10);
    trl_memory_get_stats(test_ctx, &first);
    for (int chunks = 1; chunks < 300; chunks += 13) check_loop(loop, chunks);
    trl_memory_get_stats(test_ctx, &last);
    ck_assert_int_eq(first.allocations, last.allocations);
    trl_loop_destroy(&loop);
    trl_workers_destroy(&workers);
}
END_TEST

/* Generations go round after 2^32 of them. A worker that was late asks for one that is over. */
START_TEST(chunks_of_one_generation_are_not_taken_in_another)
{
    enum { SHARES = 3, CHUNKS = 7, GENERATIONS = 4 };
    static trli_share share[SHARES];
    const uint32_t first = _i ? UINT32_MAX - 1 : 1;
    int count;
    trli_shares_deal(share, SHARES, CHUNKS, first - 1);
    for (uint32_t g = first; g != first + GENERATIONS; ++g) {
        int chunks = 0;
        ck_assert(trli_shares_take(share, SHARES, g, 0, &count) == 0); /* the first of the first share */
        for (uint32_t before = g - 1; before != first - 2; --before)
            ck_assert(g == first || trli_shares_take(share, 1, before, 0, &count) == TRLI_NONE);
        chunks += 1;
        while (trli_shares_take(share, SHARES, g, 1, &count) != TRLI_NONE) chunks += count;
        ck_assert_int_eq(chunks, CHUNKS);
        for (int s = 0; s < SHARES; ++s) ck_assert(trli_share_over(&share[s], g) && !trli_share_over(&share[s], g + 1));
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, chunks_of_one_generation_are_not_taken_in_another, 0, 2);
    tcase_add_test(tc, every_chunk_runs_once_whatever_their_number);
    tcase_add_test(tc, without_a_loop_the_caller_takes_the_chunks_in_order);
    tcase_add_test(tc, as_few_chunks_as_workers_run_at_once);
    tcase_add_test(tc, an_error_of_a_chunk_is_returned_and_the_loop_runs_again);
    tcase_add_test(tc, a_chunk_that_fails_without_a_word_is_named);
    tcase_add_test(tc, a_loop_inside_a_loop_is_refused_whatever_the_number_of_workers);
    tcase_add_test(tc, threads_share_the_workers_each_with_a_loop_of_its_own);
    tcase_add_test(tc, threads_share_the_workers_with_loops_that_come_and_go);
    tcase_add_test(tc, nothing_is_allocated_after_the_first_run);
}
TRL_TEST_MAIN("loop", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What every test program shares: Check under MPI, and small assertions on errors. A test program is
 *     // ctest: np=1,2,4        (in the first 10 lines; absent: np=1)
 *     #include "trl_test.h"
 *     START_TEST(rejects_unknown_key) { ... } END_TEST
 *     static void add_tests(TCase *tc) { tcase_add_test(tc, rejects_unknown_key); }
 *     TRL_TEST_MAIN("deck", add_tests)
 */
#ifndef TRL_TEST_H
#define TRL_TEST_H

#include <check.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trl_context.h>

#ifndef TRL_TEST_MPI_LEVEL /* what a test program asks MPI for */
#define TRL_TEST_MPI_LEVEL MPI_THREAD_SERIALIZED
#endif

/* Check notes the place of each assertion that holds, for tests in processes of their own that then crash: a call of
 * the system each, half of the time of a test with a million of them. One that fails names its place itself. */
#define _mark_point(file, line) ((void)0)

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { TEST_SANITIZED = true };
#else
enum { TEST_SANITIZED = false };
#endif

/* Whether the long versions of tests run. */
static inline bool test_long(void)
{
    return getenv("TRL_TEST_LONG") != NULL;
}

/* Whether the form of the test that runs has the case of this number: the long form has all, the short one each
 * n-th. */
static inline bool test_has(int number, int n)
{
    return number % n == 0 || test_long();
}

/* How many cases a sweep has: under sanitizers, in the short form, one of `fewer`. */
static inline int test_cases(int all, int fewer)
{
    return TEST_SANITIZED && !test_long() ? all / fewer : all;
}

/* Compile kernels without optimisation in the short form: for tests of many kernels that ask what kernels mean. Those
 * of decks are compiled as users do. */
static inline void test_compile_quickly(void)
{
    if (!test_long()) setenv("TRELLIS_CC", TRL_TEST_SOURCE_DIR "/quick_cc.sh", 0);
}

/* The context of the test program: created before the first test, messages cleared before each. */
static trl_context *test_ctx;

static void test_clear(void)
{
    trl_context_clear_diagnostics(test_ctx);
}

/* All recorded messages, formatted one after the other. */
static inline const char *test_messages(void)
{
    static char buffer[65536];
    const trl_diagnostic *d;
    int n = trl_context_diagnostics(test_ctx, &d);
    size_t used = 0;
    buffer[0] = 0;
    for (int i = 0; i < n && used < sizeof buffer - 1; ++i) {
        int len = trl_diagnostic_format(&d[i], buffer + used, sizeof buffer - used);
        used += len < 0 ? 0 : (size_t)len;
    }
    return buffer;
}

#define ck_ok(call)                                                                             \
    do {                                                                                        \
        trl_err test_err_ = (call);                                                             \
        ck_assert_msg(test_err_ == TRL_OK, "%s: %s", trl_err_name(test_err_), test_messages()); \
    } while (0)

/* call fails with code, and the messages contain text. */
#define ck_fails(call, code, text)                                                                                 \
    do {                                                                                                           \
        trl_err test_err_ = (call);                                                                                \
        ck_assert_msg(test_err_ == (code), "got %s, expected %s: %s", trl_err_name(test_err_), trl_err_name(code), \
                      test_messages());                                                                            \
        ck_assert_msg(strstr(test_messages(), (text)) != NULL, "'%s' not in: %s", (text), test_messages());        \
    } while (0)

static inline int test_run(const char *name, void (*add)(TCase *), int argc, char **argv)
{
    int provided, rank, failed;
    MPI_Init_thread(&argc, &argv, TRL_TEST_MPI_LEVEL, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (trl_context_create(MPI_COMM_WORLD, NULL, &test_ctx) != TRL_OK) return 2;
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, test_clear, NULL);
    add(tc);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, rank == 0 ? CK_NORMAL : CK_MINIMAL);
    failed = srunner_ntests_failed(runner);
    if (rank > 0 && failed) srunner_print(runner, CK_NORMAL); /* now: others may wait for this rank in their tests */
    (void)fflush(stdout);
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    srunner_free(runner);
    trl_context_destroy(&test_ctx);
    MPI_Finalize();
    return failed ? 1 : 0;
}

#define TRL_TEST_MAIN(name, add)                \
    int main(int argc, char **argv)             \
    {                                           \
        return test_run(name, add, argc, argv); \
    }

#endif

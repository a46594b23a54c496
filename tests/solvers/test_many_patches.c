/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What it takes to set up a problem on many patches grows as their number does, and no faster. */
// ctest: np=1
#include <time.h>

#include "../expressions/problem_fixture.h"

#include "context_impl.h"

/* What setting up takes. */
typedef struct setup {
    double seconds; /* of all threads, the least of two rounds */
    int64_t allocations;
    size_t bytes; /* of metadata */
} setup;

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Heat on patches of 2 cells an axis, with conditions on all sides or on none. */
static void say_heat(int dim, const int *patches, bool periodic)
{
    static const char *const sides[] = {"x-", "x+", "y-", "y+", "z-", "z+"};
    int cells[3];
    for (int a = 0; a < dim; ++a) cells[a] = 2 * patches[a];
    new_deck();
    say("grid: {cells: %s, patches: %s, periodic: [%s, %s%s]}", list_of(dim, cells), list_of(dim, patches),
        periodic ? "true" : "false", periodic ? "true" : "false",
        dim < 3    ? ""
        : periodic ? ", true"
                   : ", false");
    say("\nexpressions: {q: -grad(T)}\nrun: {compile: never, threads: 2}\ntime: {method: ssprk2, dt: 1e-9, steps: 1}");
    say("\nequations: {T: {initial: \"x*y\", ddt: \"-div(q)\", boundary: {");
    for (int s = 0; s < 2 * dim && !periodic; ++s) say("%s%s: {dirichlet: 0}", s ? ", " : "", sides[s]);
    say("}}}\n");
}

static setup measure(int dim, const int *patches, bool periodic)
{
    enum { ROUNDS = 2 };
    setup least = {.seconds = INFINITY};
    say_heat(dim, patches, periodic);
    for (int i = 0; i < ROUNDS; ++i) {
        trl_memory_stats before, after;
        trl_memory_get_stats(test_ctx, &before);
        const double start = processor_time();
        ck_ok(open_problem());
        const double seconds = processor_time() - start;
        trl_memory_get_stats(test_ctx, &after);
        least.allocations = after.metadata_allocations - before.metadata_allocations;
        least.bytes = after.metadata_bytes - before.metadata_bytes;
        if (seconds < least.seconds) least.seconds = seconds;
        close_problem();
    }
    return least;
}

/* Four times as many patches, in time that would be sixteen times as long if it grew with the square of their number.
 * Memory is asked for in pieces that do not depend on it, but for arrays that double. */
static void compare(int dim, const int *few, const int *many, bool periodic)
{
    const setup a = measure(dim, few, periodic), b = measure(dim, many, periodic);
    ck_assert_msg(b.seconds < 9 * a.seconds, "%g s, and %g s for four times as many patches", a.seconds, b.seconds);
    ck_assert_msg(b.allocations < a.allocations + 400, "%lld allocations, and %lld for four times as many patches",
                  (long long)a.allocations, (long long)b.allocations);
    ck_assert_msg(b.bytes < 5 * a.bytes, "%zu bytes, and %zu for four times as many patches", a.bytes, b.bytes);
}

START_TEST(four_times_as_many_patches_take_four_times_as_long)
{
    compare(2, (const int[]){100, 100}, (const int[]){200, 200}, true);
    compare(3, (const int[]){20, 20, 25}, (const int[]){40, 40, 25}, false);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, four_times_as_many_patches_take_four_times_as_long);
}

TRL_TEST_MAIN("many patches", add_tests)

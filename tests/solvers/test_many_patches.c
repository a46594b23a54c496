/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory that a problem on many patches takes to be set up grows as their number does, and no faster. */
// ctest: np=1
#include "../expressions/problem_fixture.h"

#include "context_impl.h"

/* What setting up takes. */
typedef struct setup {
    int64_t allocations;
    size_t bytes; /* of metadata */
} setup;

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
    trl_memory_stats before, after;
    say_heat(dim, patches, periodic);
    trl_memory_get_stats(test_ctx, &before);
    ck_ok(open_problem());
    trl_memory_get_stats(test_ctx, &after);
    close_problem();
    return (setup){.allocations = after.metadata_allocations - before.metadata_allocations,
                   .bytes = after.metadata_bytes - before.metadata_bytes};
}

/* Memory is asked for in pieces whose number does not depend on that of patches, but for arrays that double. */
static void compare(int dim, const int *few, const int *many, bool periodic)
{
    const setup a = measure(dim, few, periodic), b = measure(dim, many, periodic);
    ck_assert_msg(b.allocations < a.allocations + 400, "%lld allocations, and %lld for four times as many patches",
                  (long long)a.allocations, (long long)b.allocations);
    ck_assert_msg(b.bytes < 5 * a.bytes, "%zu bytes, and %zu for four times as many patches", a.bytes, b.bytes);
}

START_TEST(four_times_as_many_patches_take_four_times_as_much_memory)
{
    compare(2, (const int[]){100, 100}, (const int[]){200, 200}, true);
    compare(3, (const int[]){20, 20, 25}, (const int[]){40, 40, 25}, false);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, four_times_as_many_patches_take_four_times_as_much_memory);
}

TRL_TEST_MAIN("many patches", add_tests)

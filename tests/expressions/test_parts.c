/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels of many equations: into which parts they are divided, how many functions serve these, and that nobody can
 * tell. */
// ctest: np=1,2 timeout=600 sanitize=1
#include "parts_impl.h"
#include "problem_fixture.h"

#include "execution_impl.h"
#include <simulation_impl.h>

enum {
#ifdef TRL_SMALL_SIZES /* parts are small, too */
    MANY = 10,
    MANY_LONG = MANY,
#else
    MANY = 24,
    MANY_LONG = 40,
#endif
    FUNCTIONS_MOST = 64 * MANY_LONG
};

static int many(void)
{
    return test_long() ? MANY_LONG : MANY;
}

/* Many equations on a grid of so many dimensions; `more` is for each. */
static void say_family(int dim, const char *cells, const char *ddt, const char *more)
{
    new_deck();
    say("grid: {cells: %s, periodic: [true%s%s]}\n"
        "parameters: {n: %d}\n"
        "expressions: {rate: \"exp(-sum(i=1..n, f{i}^2))\", wall: \"1 + t\"}\n"
        "equations:\n"
        "  \"f{i}\": {for: {i: 1..n}, initial: \"sin(i*x) + 0.1*i + 0.2*random(i)\", ddt: \"%s\"%s}\n"
        "time: {method: rk4, dt: 1e-4, steps: 2}\n",
        cells, dim > 1 ? ", false" : "", dim > 2 ? ", true" : "", many(), ddt, more);
}

/* Parts of the step's kernels, and the functions that compute them. */
static void count_parts(int *kernels, int *parts, int *functions)
{
    const trli_code *seen[FUNCTIONS_MOST];
    *kernels = *parts = *functions = 0;
    for (int s = 0; s < sim->step->nsteps; ++s) {
        const trli_code_use *use = sim->step->run->step[s].part;
        const int n = sim->step->parts[s].n;
        *kernels += n > 0;
        *parts += n;
        for (int i = 0; i < n; ++i) {
            int f = 0;
            while (f < *functions && seen[f] != use[i].code) ++f;
            if (f < *functions) continue;
            ck_assert_int_lt(*functions, FUNCTIONS_MOST);
            seen[(*functions)++] = use[i].code;
        }
    }
}

static uint64_t hash_of_family(const char *setting, const char *other)
{
    const char *const settings[] = {setting, other};
    uint64_t hash = 0;
    ck_ok(open_problem_with(2, settings));
    ck_ok(run_steps(2));
    for (int i = 1; i <= many(); ++i) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        hash = hash * 31 + hash_of(name);
    }
    return hash;
}

/* That many parts of each kernel, computed by so many functions each; the bits are the interpreter's. */
static void check(int parts, int functions)
{
    int k, p, f;
    const uint64_t expected = hash_of_family("run.compile=never", "run.fusion=node");
    if (test_long() || (parts > 1 && !TEST_SANITIZED)) { /* one long function takes long to compile */
        ck_assert(hash_of_family("run.compile=always", "run.passes.groups=false") == expected);
        ck_assert(hash_of_family("run.compile=always", "run.time_blocking=2") == expected);
    }
    ck_assert(hash_of_family("run.compile=always", "run.threads=2") == expected);
    count_parts(&k, &p, &f);
    ck_assert_int_eq(k, 4);
#ifndef TRL_SMALL_SIZES
    ck_assert_int_eq(p, k * parts);
    ck_assert_int_eq(f, k * functions);
#else
    (void)parts, (void)functions;
#endif
    close_problem();
}

START_TEST(equations_of_one_form_are_parts_that_share_a_function)
{
    say_family(3, "[11, 6, 7]", "div(0.01*i*grad(f{i})) - 0.71*i*f{i}^3",
               ", boundary: {y-: {dirichlet: \"i + 0.3\"}, y+: {neumann: 0}}");
    check(many(), 1);
}
END_TEST

START_TEST(parts_that_read_the_same_share_a_function)
{
    say_family(2, "[13, 9]", "laplacian(f{i}) + 0.1*i*(f{1} + f{2} - f{3})*f{i} + f{1}*f{3}/(i + f{2}^2)",
               ", boundary: {y-: {dirichlet: wall}, y+: {robin: {a: 1, b: i, c: 0.5}}}");
    const uint64_t expected = hash_of_family("run.compile=never", "run.fusion=node");
    ck_assert(hash_of_family("run.compile=always", "run.threads=2") == expected);
    close_problem();
}
END_TEST

START_TEST(what_costs_much_keeps_results_together)
{
    say_family(2, "[13, 9]", "laplacian(f{i}) + rate", ", boundary: {y-: {neumann: 0}, y+: {neumann: 0}}");
    check(1, 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, equations_of_one_form_are_parts_that_share_a_function);
    tcase_add_test(tc, parts_that_read_the_same_share_a_function);
    tcase_add_test(tc, what_costs_much_keeps_results_together);
}

TRL_TEST_MAIN("parts", add_tests)

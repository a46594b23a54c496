/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* When the symmetry and the null space of an operator are looked for, and what follows from fields that change them. */
// ctest: np=1,2 timeout=60
#include "run_fixture.h"

static const char closed[] = "{x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}";
static const char fixed[] =
    "{x-: {dirichlet: 0}, x+: {dirichlet: t}, y-: {neumann: t}, y+: {robin: {a: 1, b: 2, c: t}}}";

static void run_deck(const char *solve, const char *sides, const char *rate)
{
    open_text("grid: {cells: [8, 6]}\nequations:\n"
              "  p: {solve: '%s', initial: 3, boundary: %s, solver: s}\n"
              "  c: {initial: 0, ddt: '%s', boundary: %s}\n  e: {initial: 0, ddt: p}\n"
              "solvers: {s: {preconditioner: jacobi, tolerance: 1e-10}}\n"
              "time: {method: euler, dt: 0.25, steps: 4}\n",
              solve, sides, rate, closed);
    run_to_end();
}

/* How often a run looked at the operator. */
static int64_t looks_of(const char *solve, const char *sides, const char *rate)
{
    run_deck(solve, sides, rate);
    const int64_t looks = trl_simulation_solver(sim, 0)->looks;
    close_problem();
    return looks;
}

START_TEST(time_in_sources_and_values_at_sides_is_not_looked_at)
{
    ck_assert_int_eq(looks_of("laplacian(p) - (1 + x)*p = sin(t)*y + c", fixed, "1"), 1);
    ck_assert_int_eq(looks_of("laplacian(p) - (1 + x)*p*(1 + t) = y", fixed, "1"), 5);
    ck_assert_int_eq(looks_of("laplacian(p) - (1 + c)*p = y", fixed, "1"), 1);
}
END_TEST

static double mean_of_p(void)
{
    trl_gidx n[3];
    const double *p = values_of("p", n);
    double sum = 0;
    for (int i = 0; i < 48; ++i) sum += p[i];
    return sum / 48;
}

START_TEST(constants_join_the_null_space_and_leave_it)
{
    const char *const source = "= cos(3.141592653589793*x) - 5*%s";
    char text[200], right[100];
    snprintf(right, sizeof right, source, "c");
    snprintf(text, sizeof text, "laplacian(p) - c*p %s", right);
    run_deck(text, closed, "1");
    ck_assert_double_eq_tol(mean_of_p(), 5, 1e-8);
    ck_assert(!trl_simulation_solver(sim, 0)->singular);
    ck_assert_int_eq(trl_simulation_solver(sim, 0)->looks, 2);
    close_problem();
    snprintf(right, sizeof right, source, "(0.75 - c)");
    snprintf(text, sizeof text, "laplacian(p) - (0.75 - c)*p %s", right);
    run_deck(text, closed, "if(c < 0.75, 1, 0)");
    ck_assert_double_eq_tol(mean_of_p(), 5, 1e-8);
    ck_assert(trl_simulation_solver(sim, 0)->singular);
    ck_assert_int_eq(trl_simulation_solver(sim, 0)->looks, 2);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, time_in_sources_and_values_at_sides_is_not_looked_at);
    tcase_add_test(tc, constants_join_the_null_space_and_leave_it);
}

TRL_TEST_MAIN("looks", add_tests)

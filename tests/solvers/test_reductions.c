/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which reductions share a sweep and a message, and that they have the bits of each by itself. */
// ctest: np=1,3 timeout=300
#include "../expressions/problem_fixture.h"

#include <execution_impl.h>
#include <simulation_impl.h>

/* Series in the order of their names; several tiles of rows, and sides on which points count half. */
static void say_deck(const char *values)
{
    new_deck();
    say("grid: {cells: [70, 61], length: [1.3, 0.9], periodic: [false, true]}\n"
        "equations:\n"
        "  T: {initial: \"exp(-90*((x-0.5)^2 + (y-0.4)^2)) - 0.01\", ddt: \"-T\"}\n"
        "  U: {initial: \"cos(7*x*y)\", ddt: \"-U\"}\n"
        "  N: {location: xface, initial: \"sin(3*x)*cos(2*y) - 0.2\", ddt: \"-0.2*N\"}\n"
        "time: {dt: 1e-3, steps: 2}\noutput: {series: {every: {steps: 1}, values: {%s}}}\n",
        values);
}

static void open_and_run(int nsets, const char *const *set)
{
    ck_ok(open_problem_with(nsets, set));
    ck_ok(run_steps(2));
}

static const char *const values[] = {"integral(T)",
                                     "integral(T*T)",
                                     "domain_max(T)",
                                     "domain_min(T)",
                                     "integral(N)",
                                     "integral(N*N)",
                                     "domain_max(N)",
                                     "domain_min(abs(N))",
                                     "norm(T)",
                                     "domain_max(0/(U - U))",
                                     "integral(U/(x - x))",
                                     "probe(T, [0.5, 0.4])",
                                     "domain_max(T - integral(T))",
                                     "domain_max(-0.0*T)",
                                     "integral(x - 0.5)",
                                     "integral(if(x < 0.7, 1.0, 1e9)*T)",
                                     "domain_min(if(x < 0.7, U, 0/(U - U)))",
                                     "norm(T*T*T)"};
enum { VALUES = sizeof values / sizeof *values };

static void say_all(void)
{
    char list[1024];
    int n = 0;
    for (int i = 0; i < VALUES; ++i) n += snprintf(list + n, sizeof list - (size_t)n, "s%d: \"%s\", ", i, values[i]);
    say_deck(list);
}

START_TEST(reductions_together_have_the_bits_of_each_alone)
{
    static const char *const sets[][3] = {{"run.compile=never", "grid.patches=[3, 1]", "run.balance=1"},
                                          {"run.compile=always", "grid.patches=[3, 1]", "run.balance=1"},
                                          {"run.compile=always", "grid.patches=[4, 3]", "run.owners=random:1"},
                                          {"run.compile=always", "grid.patches=[20, 1]", "run.balance=1"},
                                          {"run.compile=never", "grid.patches=[2, 5]", "run.balance=1e3"}};
    double alone[VALUES];
    for (int i = 0; i < VALUES; ++i) {
        char one[128];
        snprintf(one, sizeof one, "s: \"%s\"", values[i]);
        say_deck(one);
        open_and_run(3, sets[0]);
        alone[i] = trl_simulation_series(sim)[0];
        close_problem();
    }
    ck_assert(isnan(alone[9]));
    for (size_t w = 0; w < sizeof sets / sizeof *sets; ++w)
        for (int threads = 1; threads <= 2; ++threads) {
            ck_ok(trl_context_set_threads(test_ctx, threads));
            say_all();
            open_and_run(3, sets[w]);
            for (int i = 0; i < VALUES; ++i)
                ck_assert_msg(memcmp(&alone[i], &trl_simulation_series(sim)[i], sizeof *alone) == 0,
                              "%s: %a alone, %a together, way %zu, %d threads", values[i], alone[i],
                              trl_simulation_series(sim)[i], w, threads);
            close_problem();
        }
    ck_ok(trl_context_set_threads(test_ctx, 1));
}
END_TEST

static void check_shape(const char *series, int n, int groups, int batches)
{
    say_deck(series);
    ck_ok(open_problem_with(0, NULL));
    const trli_reductions *r = &sim->observe->run->reductions;
    ck_assert_msg(r->n == n && r->ngroups == groups && r->nbatches == batches,
                  "%s: %d reductions in %d groups and %d batches, expected %d, %d and %d", series, r->n, r->ngroups,
                  r->nbatches, n, groups, batches);
    close_problem();
}

START_TEST(what_reads_the_same_over_the_same_points_is_one_sweep)
{
    check_shape("a: \"domain_max(T)\"", 1, 1, 1);
    check_shape("a: \"domain_max(T)\", b: \"domain_min(T)\", c: \"integral(T*T)\"", 3, 1, 1);
    check_shape("a: \"domain_max(T)\", b: \"domain_min(N)\", c: \"integral(T*T)\"", 3, 2, 1);
    check_shape("a: \"domain_max(T)\", b: \"probe(T, [0.5, 0.4])\"", 2, 2, 1);
    check_shape("a: \"domain_max(T)\", b: \"domain_max(x)\"", 2, 2, 1);
}
END_TEST

START_TEST(a_reduction_that_needs_another_one_waits)
{
    check_shape("a: \"domain_max(T)\", b: \"domain_min(T/domain_max(T))\"", 2, 2, 2);
    check_shape("a: \"2*domain_max(T) + 1\", b: \"domain_min(T)\"", 2, 1, 1);
    check_shape("a: \"domain_min(T/(2*domain_max(T)))\", b: \"domain_min(T)\"", 3, 2, 2);
}
END_TEST

START_TEST(many_reductions_are_several_sweeps_and_one_message)
{
    char list[1024];
    int n = 0;
    for (int i = 0; i < 9; ++i)
        n += snprintf(list + n, sizeof list - (size_t)n, "s%d: \"domain_max(%d*T)\", ", i, i + 2);
    say_deck(list);
    ck_ok(open_problem_with(0, NULL));
    ck_assert_int_ge(sim->observe->run->reductions.ngroups, 2);
    ck_assert_int_eq(sim->observe->run->reductions.nbatches, 1);
    close_problem();
}
END_TEST

START_TEST(points_on_sides_count_half)
{
    static const char *const compile[] = {"run.compile=never", "run.compile=always"};
    for (int c = 0; c < 2; ++c) {
        say_deck("a: \"integral(0*N + 1)\", b: \"integral(0*T + 1)\", c: \"integral(N + 1 - N)\"");
        open_and_run(1, &compile[c]);
        for (int i = 0; i < 3; ++i) ck_assert_double_eq_tol(trl_simulation_series(sim)[i], 1.3 * 0.9, 1e-12);
        close_problem();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, reductions_together_have_the_bits_of_each_alone);
    tcase_add_test(tc, what_reads_the_same_over_the_same_points_is_one_sweep);
    tcase_add_test(tc, a_reduction_that_needs_another_one_waits);
    tcase_add_test(tc, points_on_sides_count_half);
    tcase_add_test(tc, many_reductions_are_several_sweeps_and_one_message);
}

TRL_TEST_MAIN("reductions", add_tests)

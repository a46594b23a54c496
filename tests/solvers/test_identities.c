/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Identities of the discrete operators, to rounding, on random fields. */
// ctest: np=1,4 sanitize=1
#include "../expressions/problem_fixture.h"

static const int cells[3] = {7, 6, 5};

/* The largest absolute value of a field is rounding, beside the square of the inverse spacing. */
static void check_zero(const char *name)
{
    trl_gidx n[3];
    const double *f = values_of(name, n);
    double largest = 0;
    for (int p = 0; p < n[0] * n[1] * n[2]; ++p) largest = fmax(largest, fabs(f[p]));
    ck_assert_msg(largest < 1e-14 * cells[0] * cells[0], "%s reaches %.2e", name, largest);
}

static void say_random(int dim, const char *const name[], const char *const location[], int n)
{
    new_deck();
    say("grid: {cells: %s, periodic: %s}\nequations:\n", list_of(dim, cells),
        dim == 3 ? "[true, true, true]" : "[true, true]");
    for (int i = 0; i < n; ++i) /* random is one number per cell, and a location has one point per cell here */
        say("  %s: {location: %s, initial: \"random(%d)\", ddt: 0}\n", name[i], location[i], i);
    say("time: {dt: 1, steps: 1}\n");
}

START_TEST(the_divergence_of_a_curl_and_the_curl_of_a_gradient_vanish)
{
    static const char *const name[] = {"s", "p", "X", "Y", "Z", "U", "V", "W"};
    static const char *const location[] = {"cell", "node", "xedge", "yedge", "zedge", "xface", "yface", "zface"};
    static const char *const zero[] = {"of_edges", "of_faces", "of_s.x", "of_s.y",
                                       "of_s.z",   "of_p.x",   "of_p.y", "of_p.z"};
    say_random(3, name, location, 8);
    say("expressions: {of_edges: \"div(curl([X, Y, Z]))\", of_faces: \"div(curl([U, V, W]))\", of_s: "
        "\"curl(grad(s))\", of_p: "
        "\"curl(grad(p))\"}\noutput: {fields: [of_edges, of_faces, of_s, of_p]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    for (size_t i = 0; i < sizeof zero / sizeof *zero; ++i) check_zero(zero[i]);
    close_problem();
}
END_TEST

START_TEST(in_two_dimensions_the_curl_of_a_gradient_vanishes)
{
    static const char *const name[] = {"s"}, *const location[] = {"cell"};
    say_random(2, name, location, 1);
    say("expressions: {of_s: \"curl(grad(s))\"}\noutput: {fields: [of_s]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    check_zero("of_s");
    close_problem();
}
END_TEST

static void check_by_parts(void)
{
    say("output: {series: {every: {steps: 1}, values: {div: \"integral(s*div([U, V, W]))\", grad: "
        "\"integral(grad(s).x*U) + "
        "integral(grad(s).y*V) + integral(grad(s).z*W)\", size: \"integral(abs(s*div([U, V, W])))\"}}}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(1));
    const double *series = trl_simulation_series(sim);
    ck_assert_double_gt(series[2], 0.1);
    ck_assert_msg(fabs(series[0] + series[1]) < 1e-14 * series[2], "%.17g and %.17g", series[0], series[1]);
    close_problem();
}

START_TEST(gradient_and_divergence_sum_by_parts)
{
    static const char *const name[] = {"s", "U", "V", "W"}, *const location[] = {"cell", "xface", "yface", "zface"};
    say_random(3, name, location, 4);
    check_by_parts();
    /* In a box, too, if nothing flows through its sides. */
    new_deck();
    say("grid: {cells: %s}\nequations:\n  s: {initial: \"random(0)\", ddt: 0, boundary: {x-: {dirichlet: 3}, x+: "
        "{neumann: 1}, y-: "
        "{outflow: true}, y+: {dirichlet: 1}, z-: {neumann: 2}, z+: {dirichlet: 0}}}\n",
        list_of(3, cells));
    for (int a = 0; a < 3; ++a)
        say("  %c: {location: %cface, initial: \"random(%d)\", ddt: 0, boundary: {%c-: {dirichlet: 0}, %c+: "
            "{dirichlet: 0}}}\n",
            "UVW"[a], "xyz"[a], a + 1, "xyz"[a], "xyz"[a]);
    say("time: {dt: 1, steps: 1}\n");
    check_by_parts();
}
END_TEST

/* Weights of stages that add up to 1 would change last bits of what the rate 0 leaves. */
START_TEST(what_has_the_rate_0_stays_as_it_is)
{
    static const char *const methods[] = {"euler", "ssprk2", "ssprk3", "rk4", "bs3", "dp5", "beuler", "ark3"};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; ++m) {
        new_deck();
        say("grid: {cells: [7, 6], periodic: [true, true]}\nequations:\n"
            "  k: {initial: \"random(3)\", mask: \"x < 0.8\", ddt: 0}\n  T: {initial: x, ddt: %s}\n"
            "time: {method: %s, dt: 1e-4, steps: 20}\n",
            m < 6 ? "\"laplacian(T)\"" : "{implicit: \"laplacian(T)\"}", methods[m]);
        ck_ok(open_problem());
        ck_ok(run_steps(0));
        const uint64_t before = hash_of("k");
        ck_ok(run_steps(20));
        ck_assert_msg(hash_of("k") == before, "by %s it changes", methods[m]);
        close_problem();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, what_has_the_rate_0_stays_as_it_is);
    tcase_add_test(tc, the_divergence_of_a_curl_and_the_curl_of_a_gradient_vanish);
    tcase_add_test(tc, in_two_dimensions_the_curl_of_a_gradient_vanishes);
    tcase_add_test(tc, gradient_and_divergence_sum_by_parts);
}

TRL_TEST_MAIN("identities", add_tests)

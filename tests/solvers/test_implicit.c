/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Implicit and IMEX methods: their orders, stiff kinetics against reference values, terms of space. */
// ctest: timeout=200
#include "run_fixture.h"

#define TIGHT "solvers: {tight: {tolerance: 1e-13, newton: {tolerance: 1e-13}}}\n"

/* u = 1.5 + sin(t), with a nonlinear term that is implicit and couples two unknowns, and a source. */
static const struct {
    const char *name;
    int order;
    bool divided;
} methods[] = {{"beuler", 1, false},  {"beuler", 1, true},   {"cn", 2, false},  {"esdirk2", 2, false},
               {"esdirk3", 3, false}, {"esdirk4", 4, false}, {"ark3", 3, true}, {"ark4", 4, true}};

START_TEST(methods_have_their_orders)
{
    for (size_t m = 0; m < sizeof methods / sizeof *methods; ++m) {
        double error[3];
        for (int i = 0; i < 3; ++i) {
            open_text("grid: {cells: [2], periodic: [true]}\n" TIGHT "equations:\n"
                      "  u: {solver: tight, initial: 1.5, ddt: %s}\n"
                      "  v: {solver: tight, initial: 1, ddt: %s}\ntime: {method: %s, dt: %.17g, end: 1}\n",
                      methods[m].divided ? "{explicit: \"cos(t) + (1.5 + sin(t))^3*v\", implicit: \"-u^3*cos(t)\"}"
                                         : "\"cos(t) + (1.5 + sin(t))^3*v - u^3*cos(t)\"",
                      methods[m].divided ? "{explicit: \"-sin(t) + u - 1.5 - sin(t)\", implicit: \"-3*(v - cos(t))\"}"
                                         : "\"-sin(t) + u - 1.5 - sin(t) - 3*(v - cos(t))\"",
                      methods[m].name, 0.1 / (1 << i));
            run_to_end();
            error[i] = fabs(value_of("u") - 1.5 - sin(1)) + fabs(value_of("v") - cos(1));
        }
        ck_assert_msg(fabs(log2(error[1] / error[2]) - methods[m].order) < 0.3, "%s: %g %g %g", methods[m].name,
                      error[0], error[1], error[2]);
    }
    close_problem();
}
END_TEST

/* Robertson (1966); values at t = 40 from Hairer & Wanner (1996), IV.10, as SUNDIALS' example cvRoberts prints them. */
START_TEST(robertsons_kinetics_end_where_the_reference_does)
{
    static const struct {
        const char *name;
        double tolerance;
    } runs[] = {{"beuler", 5e-3}, {"esdirk3", 2e-5}};
    for (size_t m = 0; m < sizeof runs / sizeof *runs; ++m) {
        open_text("grid: {cells: [2], periodic: [true]}\n"
                  "solvers: {tight: {method: gmres, tolerance: 1e-11, newton: {tolerance: 1e-11}}}\nequations:\n"
                  "  y1: {solver: tight, initial: 1, ddt: \"-0.04*y1 + 1e4*y2*y3\"}\n"
                  "  y2: {solver: tight, initial: 0, ddt: \"0.04*y1 - 1e4*y2*y3 - 3e7*y2^2\"}\n"
                  "  y3: {solver: tight, initial: 0, ddt: \"3e7*y2^2\"}\ntime: {method: %s, dt: 0.1, end: 40}\n",
                  runs[m].name);
        run_to_end();
        const double error = fabs(value_of("y1") / 7.158270688e-1 - 1) + fabs(value_of("y2") / 9.185534765e-6 - 1) +
                             fabs(value_of("y3") / 2.841637457e-1 - 1);
        ck_assert_msg(error < runs[m].tolerance, "%s: error %g", runs[m].name, error);
        ck_assert_double_eq_tol(value_of("y1") + value_of("y2") + value_of("y3"), 1, 1e-8);
    }
    close_problem();
}
END_TEST

/* A hundred times the explicit step: cos(pi*x) decays with the rate of the discrete operator. */
START_TEST(diffusion_takes_a_hundred_times_the_explicit_step)
{
    static const char *const places[] = {"cell", "xface"};
    for (int p = 0; p < 2; ++p) {
        trl_field_stats stats;
        open_text("grid: {cells: [64]}\nequations:\n  T: {location: %s, initial: \"1 + sin(pi*x)*0.7\", ddt: "
                  "{implicit: \"laplacian(T)\"}, boundary: {x-: {dirichlet: \"1 + t\"}, x+: {dirichlet: \"1 + t\"}}, "
                  "exact: \"1 + t + exp(-pi^2*t)*sin(pi*x)*0.7 - 0.5*x*(1 - x)\", mask: 1}\n"
                  "time: {method: esdirk3, dt: %.17g, end: 3}\n",
                  places[p], 100.0 / (2 * 64 * 64));
        run_to_end();
        ck_ok(trl_simulation_field_stats(sim, field_index("T"), &stats));
        ck_assert_double_lt(stats.error_linf, 2e-4);
    }
    close_problem();
}
END_TEST

/* Explicit advection and implicit diffusion, with unknowns that have no implicit terms beside them. */
START_TEST(divided_terms_give_what_whole_ones_do)
{
    double value[2];
    for (int i = 0; i < 2; ++i) {
        open_text(
            "grid: {cells: [16, 12], periodic: [true, false]}\n" TIGHT "equations:\n"
            "  T: {solver: tight, initial: \"sin(2*pi*x)*cos(pi*y)\", ddt: %s, boundary: {y-: {neumann: 0}, y+: "
            "{dirichlet: \"-0.1*t\"}}, mask: \"(x - 0.5)^2 + (y - 0.5)^2 > 0.01\"}\n"
            "  c: {initial: \"cos(2*pi*x)\", ddt: \"T - c*0.3 + 0.01*laplacian(c)\", boundary: {y-: {neumann: 0}, y+: "
            "{neumann: 0}}}\ntime: {method: %s, dt: 1e-3, end: 0.05}\n",
            i ? "{explicit: \"-ddx(at(T, xface)) + c\", implicit: \"div(0.1*grad(T))\"}"
              : "\"-ddx(at(T, xface)) + c + div(0.1*grad(T))\"",
            i ? "ark4" : "rk4");
        run_to_end();
        trl_field_stats stats;
        ck_ok(trl_simulation_field_stats(sim, field_index("T"), &stats));
        value[i] = stats.l2;
    }
    ck_assert_double_eq_tol(value[0], value[1], 1e-8);
    close_problem();
}
END_TEST

START_TEST(what_does_not_suit_a_method_is_refused)
{
    static const struct {
        const char *ddt, *method, *message;
    } cases[] = {
        {"{implicit: \"-T\"}", "rk4",
         "rk4 advances no implicit terms, as those of 'T': use beuler, ark3 or ark4, or if all terms are implicit cn, "
         "esdirk2, esdirk3 or esdirk4"},
        {"{explicit: 1, implicit: \"-T\"}", "esdirk3",
         "esdirk3 advances no explicit terms, as those of 'T': use beuler, ark3 or ark4, or if all terms are implicit "
         "cn, esdirk2, esdirk3 or esdirk4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        new_deck();
        say("grid: {cells: [4], periodic: [true]}\nequations: {T: {initial: 1, ddt: %s}}\ntime: {method: %s, dt: 0.1, "
            "steps: 1}\n",
            cases[i].ddt, cases[i].method);
        ck_fails(open_problem(), TRL_ERR_INPUT, cases[i].message);
        close_problem();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, methods_have_their_orders);
    tcase_add_test(tc, robertsons_kinetics_end_where_the_reference_does);
    tcase_add_test(tc, diffusion_takes_a_hundred_times_the_explicit_step);
    tcase_add_test(tc, divided_terms_give_what_whole_ones_do);
    tcase_add_test(tc, what_does_not_suit_a_method_is_refused);
}

TRL_TEST_MAIN("implicit", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Implicit and IMEX methods: their orders, stiff kinetics against reference values, terms of space. */
// ctest: timeout=200
#include "../doc_table.h"
#include "run_fixture.h"

#define TIGHT "solvers: {tight: {tolerance: 1e-13, newton: {tolerance: 1e-13}}}\n"

/* u = 1.5 + sin(t), with a nonlinear term that is implicit and couples two unknowns, and a source. */
#define WHOLE_U "\"cos(t) + (1.5 + sin(t))^3*v - u^3*cos(t)\""
#define WHOLE_V "\"-sin(t) + u - 1.5 - sin(t) - 3*(v - cos(t))\""
#define DIVIDED_U "{explicit: \"cos(t) + (1.5 + sin(t))^3*v\", implicit: \"-u^3*cos(t)\"}"
#define DIVIDED_V "{explicit: \"-sin(t) + u - 1.5 - sin(t)\", implicit: \"-3*(v - cos(t))\"}"
static const struct {
    const char *name;
    int order;
    bool implicit, divided;
} methods[] = {{"euler", 1, false, false},  {"ssprk2", 2, false, false}, {"ssprk3", 3, false, false},
               {"rk4", 4, false, false},    {"bs3", 3, false, false},    {"dp5", 5, false, false},
               {"beuler", 1, true, false},  {"beuler", 1, true, true},   {"cn", 2, true, false},
               {"esdirk2", 2, true, false}, {"esdirk3", 3, true, false}, {"esdirk4", 4, true, false},
               {"ark3", 3, true, true},     {"ark4", 4, true, true}};

START_TEST(methods_have_their_orders)
{
    const char *page = read_page("verification.md");
    bool found = true;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; ++m) {
        const bool divided = methods[m].divided;
        const char *solver = methods[m].implicit ? "solver: tight, " : "";
        double error[3];
        const int refined = test_cases(3, 3);
        for (int i = 0; i < refined; ++i) {
            open_text("grid: {cells: [2], periodic: [true]}\n%sequations:\n  u: {%sinitial: 1.5, ddt: %s}\n"
                      "  v: {%sinitial: 1, ddt: %s}\ntime: {method: %s, dt: %.17g, end: 1}\n",
                      methods[m].implicit ? TIGHT : "", solver, divided ? DIVIDED_U : WHOLE_U, solver,
                      divided ? DIVIDED_V : WHOLE_V, methods[m].name, (methods[m].implicit ? 0.1 : 0.05) / (1 << i));
            run_to_end();
            error[i] = fabs(value_of("u") - 1.5 - sin(1)) + fabs(value_of("v") - cos(1));
        }
        if (refined < 3) continue;
        const double order = log2(error[1] / error[2]);
        ck_assert_msg(fabs(order - methods[m].order) < 0.3, "%s: %g %g %g", methods[m].name, error[0], error[1],
                      error[2]);
        found &= print_line(page, "| %s%s | %.2e | %.2e | %.2e | %.1f |\n", methods[m].name, divided ? ", divided" : "",
                            error[0], error[1], error[2], order);
    }
    close_problem();
    ck_assert_msg(found, "docs/verification.md lacks lines that are printed above");
}
END_TEST

static bool estimates_errors(const char *method)
{
    int m = 0;
    while (strcmp(trl_method_name((trl_method)m), method) != 0) ++m;
    return trl_integrator_of((trl_method)m)->embedded;
}

static double error_of_two(double t)
{
    return fabs(value_of("u") - 1.5 - sin(t)) + fabs(value_of("v") - cos(t));
}

static double error_of_one(double t)
{
    return fabs(value_of("u") - cos(t));
}

/* The largest error of values at five places of each step. */
static double error_between(double (*error)(double t))
{
    double largest = 0;
    while (!trl_simulation_done(sim)) {
        ck_ok(trl_simulation_step(sim));
        const double end = trl_simulation_time(sim), dt = trl_simulation_dt(sim);
        for (int i = 1; i < 6; ++i) {
            ck_ok(trl_simulation_interpolate(sim, end - dt * i / 6));
            largest = fmax(largest, error(end - dt * i / 6));
        }
        ck_ok(trl_simulation_return(sim));
    }
    return largest;
}

/* Steps of size h, whatever the estimate of their error is. */
#define STEPS_BETWEEN                                                                                               \
    "time: {method: {name: %s, tolerance: {relative: 1e9, absolute: 1e9}, dt: {initial: %.17g, max: %.17g}}, end: " \
    "1}\noutput: {every: {time: 1}}\n"

START_TEST(values_between_steps_have_the_orders_of_the_methods)
{
    const char *page = read_page("verification.md");
    bool found = true;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; ++m) {
        const bool divided = methods[m].divided;
        const int refined = test_cases(3, 3);
        double error[3];
        if (!estimates_errors(methods[m].name)) continue;
        const char *solver = methods[m].implicit ? "solver: tight, " : "";
        for (int i = 0; i < refined; ++i) {
            const double h = 0.1 / (1 << i);
            open_text("grid: {cells: [2], periodic: [true]}\n%sequations:\n  u: {%sinitial: 1.5, ddt: %s}\n"
                      "  v: {%sinitial: 1, ddt: %s}\n" STEPS_BETWEEN,
                      methods[m].implicit ? TIGHT : "", solver, divided ? DIVIDED_U : WHOLE_U, solver,
                      divided ? DIVIDED_V : WHOLE_V, methods[m].name, h, h);
            error[i] = error_between(error_of_two);
        }
        if (refined < 3) continue;
        const double order = log2(error[1] / error[2]);
        ck_assert_msg(order > methods[m].order - 0.35, "%s: %g %g %g", methods[m].name, error[0], error[1], error[2]);
        found &= print_line(page, "| %s%s, between | %.2e | %.2e | %.2e | %.1f |\n", methods[m].name,
                            divided ? ", divided" : "", error[0], error[1], error[2], order);
    }
    close_problem();
    ck_assert_msg(found, "docs/verification.md lacks lines that are printed above");
}
END_TEST

/* A stiff term that the solution makes small (Prothero & Robinson 1974): errors of the ends, and between. */
START_TEST(values_between_steps_stand_a_stiff_term)
{
    static const char *const stiff[] = {"esdirk2", "esdirk3", "esdirk4", "ark3", "ark4"};
    const char *page = read_page("verification.md");
    bool found = true;
    for (size_t m = 0; m < sizeof stiff / sizeof *stiff; ++m) {
        const int refined = test_cases(3, 3);
        double error[3];
        for (int i = 0; i < refined; ++i) {
            const double h = 0.1 / (1 << i);
            open_text("grid: {cells: [2], periodic: [true]}\n" TIGHT "equations: {u: {solver: tight, initial: 1, ddt: "
                      "%s}}\n" STEPS_BETWEEN,
                      strncmp(stiff[m], "ark", 3) == 0 ? "{explicit: \"-sin(t)\", implicit: \"-1e6*(u - cos(t))\"}"
                                                       : "\"-sin(t) - 1e6*(u - cos(t))\"",
                      stiff[m], h, h);
            error[i] = error_between(error_of_one);
        }
        if (refined < 3) continue;
        const double order = log2(error[1] / error[2]);
        ck_assert_msg(error[0] < 3e-3 && order > 1.8, "%s: %g %g %g", stiff[m], error[0], error[1], error[2]);
        found &= print_line(page, "| %s, stiff | %.2e | %.2e | %.2e | %.1f |\n", stiff[m], error[0], error[1], error[2],
                            order);
    }
    close_problem();
    ck_assert_msg(found, "docs/verification.md lacks lines that are printed above");
}
END_TEST

/* Robertson (1966); values at t = 40 from Hairer & Wanner (1996), IV.10, as SUNDIALS' example cvRoberts prints them. */
#define ROBERTSON ROBERTSON_BY("1e-11")
#define ROBERTSON_BY(tolerance)                                                           \
    "grid: {cells: [2], periodic: [true]}\n"                                              \
    "solvers: {tight: {method: gmres, newton: {tolerance: " tolerance "}}}\nequations:\n" \
    "  y1: {solver: tight, initial: 1, ddt: \"-0.04*y1 + 1e4*y2*y3\"}\n"                  \
    "  y2: {solver: tight, initial: 0, ddt: \"0.04*y1 - 1e4*y2*y3 - 3e7*y2^2\"}\n"        \
    "  y3: {solver: tight, initial: 0, ddt: \"3e7*y2^2\"}\n"

START_TEST(robertsons_kinetics_end_where_the_reference_does)
{
    static const struct {
        const char *name;
        double tolerance, error;
        int steps; /* at most */
    } runs[] = {{"beuler", 1e-3, 5e-2, 150},
                {"esdirk2", 1e-5, 1e-3, 150},
                {"esdirk3", 1e-5, 1e-4, 100},
                {"esdirk4", 1e-5, 1e-5, 60}};
    for (size_t m = 0; m < sizeof runs / sizeof *runs; ++m) {
        if (!test_has((int)m, TEST_SANITIZED ? 2 : 1)) continue;
        open_text(ROBERTSON "time: {method: {name: %s, tolerance: {relative: %g, absolute: %g}, dt: {initial: 1e-4}}, "
                            "end: 40}\n",
                  runs[m].name, runs[m].tolerance, 1e-4 * runs[m].tolerance);
        run_to_end();
        const double error = fabs(value_of("y1") / 7.158270688e-1 - 1) + fabs(value_of("y2") / 9.185534765e-6 - 1) +
                             fabs(value_of("y3") / 2.841637457e-1 - 1);
        const int steps = (int)trl_simulation_step_number(sim);
        ck_assert_msg(error < runs[m].error && steps < runs[m].steps, "%s: error %g in %d steps", runs[m].name, error,
                      steps);
        ck_assert_double_eq_tol(value_of("y1") + value_of("y2") + value_of("y3"), 1, 1e-8);
    }
    close_problem();
}
END_TEST

/* What a solver leaves by its own tolerance, 1e-8, would be more than is tolerated of y2, some 1e-5. */
START_TEST(stages_are_solved_as_exactly_as_the_error_asks_for)
{
    if (TEST_SANITIZED && !test_long()) return; /* robertsons_kinetics has done all that this does */
    open_text(ROBERTSON_BY("1e-8") "time: {method: {name: esdirk4, tolerance: {relative: 1e-7, absolute: 1e-11}, dt: "
                                   "{initial: 1e-4}}, end: 40}\n");
    run_to_end();
    ck_assert_int_lt(trl_simulation_step_number(sim), 100);
    ck_assert_double_eq_tol(value_of("y2") / 9.185534765e-6, 1, 1e-7);
    close_problem();
}
END_TEST

/* What rounding leaves of a stage is more than is tolerated, and not more than the solver's own tolerance. */
START_TEST(rounding_errors_reject_no_step)
{
    open_text(
        "grid: {cells: [40]}\nequations:\n  u: {initial: x, ddt: \"1000*(1 + x)*laplacian(u)\", boundary: {x-: "
        "{dirichlet: 0}, x+: {neumann: 1}}}\n"
        "time: {method: {name: esdirk4, tolerance: {relative: 1e-12, absolute: 1e-12}, dt: {initial: 1}}, end: 2}\n");
    run_to_end();
    ck_assert_int_eq(trl_simulation_rejected(sim), 0);
    ck_assert_int_le(trl_simulation_step_number(sim), 2);
    close_problem();
}
END_TEST

/* Newton's method fails with the first dt, and with the next ones: these are steps rejected, and no errors. */
START_TEST(steps_that_are_not_solved_are_rejected)
{
    open_text(
        "grid: {cells: [2], periodic: [true]}\nsolvers: {s: {newton: {iterations: 3}}}\nequations:\n"
        "  u: {solver: s, initial: 1, ddt: \"-exp(9*u) + exp(9)*(1 + sin(t))\"}\n"
        "time: {method: {name: esdirk3, tolerance: {relative: 1e-4, absolute: 1e-4}, dt: {initial: 0.9}}, end: 1}\n");
    run_to_end();
    ck_assert_int_ge(trl_simulation_rejected(sim), 1);
    ck_assert_double_eq_tol(value_of("u"), log(exp(9) * (1 + sin(1))) / 9, 1e-4);
    open_text("grid: {cells: [2], periodic: [true]}\nsolvers: {s: {newton: {iterations: 1}}}\nequations:\n"
              "  u: {solver: s, initial: 1, ddt: \"-exp(9*u) + exp(9)*(1 + sin(t))\"}\n"
              "time: {method: {name: esdirk3, dt: {initial: 0.9, min: 0.5}}, end: 1}\n");
    ck_fails(trl_simulation_step(sim), TRL_ERR_NUMERICS, "Newton's method did not solve for 'u' in 1 iterations");
    open_text("grid: {cells: [2], periodic: [true]}\nequations: {u: {initial: 1, ddt: \"100*u^2\"}}\n"
              "time: {method: beuler, dt: 1, steps: 1}\n");
    ck_fails(trl_simulation_step(sim), TRL_ERR_NUMERICS, "Newton's method does not get on; take a smaller dt");
    close_problem();
}
END_TEST

/* As above, with 3*(1.5 + sin(t))^2 in v's rate from an equation that is solved for it in each stage. */
#define SOLVED                                                                                                       \
    "grid: {cells: [2], periodic: [true]}\n" TIGHT "equations:\n"                                                    \
    "  u: {solver: tight, initial: 1.5, ddt: {explicit: \"cos(t) + (1.5 + sin(t))^3*v\", implicit: "                 \
    "\"-u^3*cos(t)\"}}\n"                                                                                            \
    "  v: {solver: tight, initial: 1, ddt: {implicit: \"-3*(v - cos(t))\", explicit: \"-sin(t) + 0.1*(p - 3*(1.5 + " \
    "sin(t))^2)\"}}\n"                                                                                               \
    "  p: {solver: tight, initial: 6, solve: \"p^2 + p = 3*u^2*(1 + 3*u^2) + q\"}\n"                                 \
    "  q: {solver: tight, initial: 1, solve: \"q + old(u)*dt = old(u)*dt\"}\n"

static double solved_error(double t)
{
    return fabs(value_of("u") - 1.5 - sin(t)) + fabs(value_of("v") - cos(t)) +
           fabs(value_of("p") - 3 * (1.5 + sin(t)) * (1.5 + sin(t)));
}

START_TEST(what_is_solved_for_has_the_values_of_stages)
{
    static const struct {
        const char *name;
        int order;
    } cases[] = {{"beuler", 1}, {"ark3", 3}, {"ark4", 4}};
    for (size_t m = 0; m < sizeof cases / sizeof *cases; ++m) {
        double error[2];
        for (int i = 0; i < 2; ++i) {
            open_text(SOLVED "time: {method: %s, dt: %.17g, end: 1}\n", cases[m].name, 0.05 / (1 << i));
            run_to_end();
            error[i] = solved_error(1);
        }
        ck_assert_msg(fabs(log2(error[0] / error[1]) - cases[m].order) < 0.35, "%s: %g %g", cases[m].name, error[0],
                      error[1]);
    }
    close_problem();
}
END_TEST

/* The error follows the tolerance, and values between steps are solved for, too. */
START_TEST(steps_by_error_control_solve_for_the_rest)
{
    static const char *const names[] = {"ark3", "ark4", "dp5"};
    for (size_t m = 0; m < sizeof names / sizeof *names; ++m) {
        double error[2];
        if (!test_has((int)m, TEST_SANITIZED ? 2 : 1)) continue;
        for (int i = 0; i < 2; ++i) {
            const double tolerance = i ? 1e-7 : 1e-5;
            double between = 0;
            const char *text =
                m < 2 ? SOLVED
                      : "grid: {cells: [2], periodic: [true]}\n" TIGHT "equations:\n"
                        "  u: {initial: 1.5, ddt: \"cos(t)\"}\n  v: {initial: 1, ddt: \"-sin(t) + 0.1*(p - "
                        "3*(1.5 + sin(t))^2)\"}\n"
                        "  p: {solver: tight, initial: 6, solve: \"p^2 + p = 3*u^2*(1 + 3*u^2)\"}\n";
            open_text("%stime: {method: {name: %s, tolerance: {relative: %g, absolute: %g}}, end: 1}\n"
                      "output: {every: {time: 0.1}}\n",
                      text, names[m], tolerance, tolerance);
            while (!trl_simulation_done(sim)) {
                const double from = trl_simulation_time(sim);
                ck_ok(trl_simulation_step(sim));
                const double t = 0.3 * from + 0.7 * trl_simulation_time(sim);
                ck_ok(trl_simulation_interpolate(sim, t));
                ck_ok(trl_simulation_observe(sim));
                between = fmax(between, solved_error(t));
                ck_ok(trl_simulation_return(sim));
            }
            ck_ok(trl_simulation_observe(sim));
            error[i] = solved_error(1);
            ck_assert_msg(error[i] < 2000 * tolerance && between < 5000 * tolerance, "%s at %g: %g, between %g",
                          names[m], tolerance, error[i], between);
        }
        ck_assert_msg(error[0] / error[1] > 10, "%s: %g %g", names[m], error[0], error[1]);
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
/* Dual time: each stage by explicit steps in pseudo-time, which need no derivative and end where Newton's method does,
 * with a limited flux and beyond the explicit limit; longer steps take more of them. */
START_TEST(stages_are_solved_in_pseudo_time)
{
    static const char *const solvers[] = {"{newton: {tolerance: 1e-10}}",
                                          "{method: pseudo_time, newton: {tolerance: 1e-10}, iterations: 3000}"};
    static const struct {
        const char *method;
        double dt;
        int least, most; /* steps in pseudo-time for a stage */
    } cases[] = {{"beuler", 1e-3, 4, 15}, {"beuler", 0.1, 100, 500}, {"esdirk3", 0.01, 15, 60}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        double u[2], v[2];
        for (int i = 0; i < 2; ++i) {
            open_text(
                "grid: {cells: [24, 20]}\nsolvers: {s: %s}\nequations:\n  u: {initial: \"sin(3*x)*y\", solver: s, "
                "ddt: \"div((1 + u^2)*grad(u)) - u^3 + sin(t)\", boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, "
                "y-: {dirichlet: \"sin(t)\"}, y+: {neumann: 0}}}\n  v: {initial: \"1 - u\", solver: s, ddt: "
                "\"0.1*laplacian(v) + u*v - div(advective_flux(v, [1 + y, 0.3], vanleer))\", boundary: {x-: "
                "{dirichlet: 1}, x+: {outflow: true}, y-: {dirichlet: 0}, y+: {neumann: 0}}}\n"
                "time: {method: %s, dt: %g, steps: 3}\n",
                solvers[i], cases[k].method, cases[k].dt);
            run_to_end();
            u[i] = value_of("u");
            v[i] = value_of("v");
        }
        const trl_solve_stats *s = trl_simulation_solver(sim, 0);
        const int64_t each = s->iterations / s->solves;
        ck_assert(s->pseudo_time && s->last_newton == 0);
        ck_assert_double_eq_tol(u[0], u[1], 1e-7);
        ck_assert_double_eq_tol(v[0], v[1], 1e-7);
        ck_assert_msg(each >= cases[k].least && each <= cases[k].most, "%s, dt = %g: %d steps a stage", cases[k].method,
                      cases[k].dt, (int)each);
    }
    close_problem();
}
END_TEST

/* What grows in pseudo-time is an error that says so; what has no diagonal is refused. */
START_TEST(steps_in_pseudo_time_say_where_they_do_not_help)
{
    static const struct {
        const char *equation, *message;
        bool refused; /* before anything is solved */
    } cases[] = {
        {"laplacian(p) + 300*p = 1", "steps in pseudo-time do not solve for 'p', at step 0", false},
        {"cddx(p) = x", "steps in pseudo-time need the operator's diagonal, which for 'p' is not known", true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        new_deck();
        say("grid: {cells: [24]}\nsolvers: {s: {method: pseudo_time}}\nequations: {p: {initial: 0, solve: \"%s\", "
            "solver: s, "
            "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}}}}\n",
            cases[k].equation);
        if (!cases[k].refused) ck_ok(open_problem());
        ck_fails(cases[k].refused ? open_problem() : trl_simulation_initialise(sim),
                 cases[k].refused ? TRL_ERR_INPUT : TRL_ERR_NUMERICS, cases[k].message);
    }
    new_deck();
    say("grid: {cells: [4]}\nsolvers: {s: {method: pseudo_time}}\nequations: {c: {initial: 1, ddt: \"p\", boundary: "
        "{}}, p: "
        "{initial: 0, solve: \"p + p^3 = c\", solver: s, boundary: {}}}\ntime: {method: bdf, end: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "bdf needs 'p' for products with the Jacobian");
    close_problem();
}
END_TEST

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
         "rk4 advances no implicit terms, as those of 'T': use beuler, ark3 or ark4, or if all terms are implicit bdf, "
         "cn, esdirk2, esdirk3 or esdirk4"},
        {"{explicit: 1, implicit: \"-T\"}", "esdirk3",
         "esdirk3 advances no explicit terms, as those of 'T': use beuler, ark3 or ark4, or if all terms are implicit "
         "bdf, cn, esdirk2, esdirk3 or esdirk4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        new_deck();
        say("grid: {cells: [4], periodic: [true]}\nequations: {T: {initial: 1, ddt: %s}}\ntime: {method: %s, dt: 0.1, "
            "steps: 1}\n",
            cases[i].ddt, cases[i].method);
        ck_fails(open_problem(), TRL_ERR_INPUT, cases[i].message);
        close_problem();
    }
    new_deck();
    say("grid: {cells: [4], periodic: [true]}\nequations: {T: {initial: 1, ddt: \"-T*p\"}, p: {initial: 0, solve: \"p "
        "= "
        "T\"}}\ntime: {method: esdirk3, dt: 0.1, steps: 1}\n");
    ck_fails(
        open_problem(), TRL_ERR_INPUT,
        "the implicit terms of 'T', or conditions on its sides, need 'p', which is solved for after them: let only "
        "explicit terms need it, by `ddt: {explicit: ..., implicit: ...}` with beuler, ark3 or ark4, or use bdf, "
        "whose steps take both at once");
    new_deck();
    say("grid: {cells: [4, 4], periodic: true}\nequations: {u: {location: xface, initial: 0, ddt: \"at(b, xface)\"}, "
        "v: "
        "{location: yface, initial: 0, ddt: 0}, b: {initial: 0, solve: \"b = cos(2*pi*x)\"}}\nincompressible: "
        "{velocity: [u, v], pressure: p}\ntime: {method: esdirk3, dt: 0.1, steps: 1}\n");
    trl_context_clear_diagnostics(test_ctx);
    ck_assert_int_eq(open_problem(), TRL_ERR_INPUT);
    ck_assert_msg(strstr(test_messages(), "the implicit terms of 'u', or conditions on its sides, need 'b'") &&
                      !strstr(test_messages(), "bdf"), /* which flows do not go with */
                  "%s", test_messages());
    trl_context_clear_diagnostics(test_ctx);
    close_problem();
}
END_TEST

/* The velocity at a side, which the density's condition reads, is that of the stage. */
START_TEST(conditions_of_a_density_read_the_velocity)
{
    static const struct {
        const char *method, *u, *v;
        double dt;
    } runs[] = {{"ssprk3", "\"0.3*sin(3*t) + 0.02*laplacian(u)\"", "\"0.02*laplacian(v)\"", 0.005},
                {"ark3", "{explicit: \"0.3*sin(3*t)\", implicit: \"0.02*laplacian(u)\"}",
                 "{explicit: 0, implicit: \"0.02*laplacian(v)\"}", 0.01}};
    double top[2], rho[2];
    for (int i = 0; i < 2; ++i) {
        open_text("grid: {cells: [8, 8], periodic: [false, false]}\n"
                  "incompressible: {velocity: [u, v], pressure: p, density: rho}\nequations:\n"
                  "  u: {location: xface, initial: y, ddt: %s, boundary: {x-: {dirichlet: \"y*(1 + t)\"}, x+: "
                  "{outflow: true}, y-: {dirichlet: 0}, y+: {outflow: true}}}\n"
                  "  v: {location: yface, initial: 0.7, ddt: %s, boundary: {x-: {dirichlet: 0}, x+: {outflow: true}, "
                  "y-: {dirichlet: 0.7}, y+: {outflow: true}}}\n"
                  "  rho: {initial: 1.5, ddt: \"-div(advective_flux(rho, [u, v]))\", boundary: {x-: {neumann: 0}, "
                  "x+: {neumann: 0}, y-: {dirichlet: \"1 + 0.2*at(u, cell)*cos(9*t)\"}, y+: {outflow: true}}}\n"
                  "time: {method: %s, dt: %g, end: 0.08}\n"
                  "output: {series: {values: {top: \"domain_max(p)\", rho: \"integral(rho)\"}}}\n",
                  runs[i].u, runs[i].v, runs[i].method, runs[i].dt);
        run_to_end();
        top[i] = trl_simulation_series(sim)[0];
        rho[i] = trl_simulation_series(sim)[1];
    }
    ck_assert_double_eq_tol(top[0], top[1], 1e-7);
    ck_assert_double_eq_tol(rho[0], rho[1], 1e-8);
    close_problem();
}
END_TEST

/* A field changes with what is solved for beyond its sides, and on them, where its conditions read that. */
START_TEST(conditions_of_coefficients_are_differentiated)
{
    static const struct {
        const char *at, *below, *above, *phi, *equation;
    } cases[] = {
        {"cell", "{dirichlet: phi}", "{dirichlet: \"1 + integral(phi)\"}", "0",
         "div((1 + T)*grad(phi)) - 10*sin(2*pi*x)"},
        {"cell", "{dirichlet: \"3*x*phi\"}", "{neumann: phi}", "0", "laplacian(phi + 0.1*T) - 10*sin(2*pi*x)"},
        {"cell", "{dirichlet: \"3*phi\"}", "{neumann: phi}", "0", "laplacian(phi) + 0.1*laplacian(T) - 10*sin(2*pi*x)"},
        {"yface", "{dirichlet: \"1 + phi^2\"}", "{neumann: 1}", "0.1", "laplacian(phi) - T^2*phi - 10*sin(2*pi*x)"},
        {"yface", "[{where: \"x > 0.4\", dirichlet: \"1 + phi^2\"}, {neumann: phi}]", "{neumann: 1}", "0.1",
         "laplacian(phi) - 0.01*laplacian(T)*phi - 10*sin(2*pi*x)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        open_text("grid: {cells: [16, 12], periodic: [true, false]}\nequations:\n"
                  "  T: {location: %s, initial: y, ddt: 0, boundary: {y-: %s, y+: %s}}\n"
                  "  phi: {location: %s, initial: %s, solve: \"%s\", boundary: {y-: {neumann: 2}, y+: {dirichlet: "
                  "0.3}}}\ntime: {method: euler, dt: 0.1, steps: 1}\n",
                  cases[i].at, cases[i].below, cases[i].above, cases[i].at, cases[i].phi, cases[i].equation);
        run_to_end();
        const trl_solve_stats *stats = trl_simulation_solver(sim, 0);
        ck_assert_msg(stats->last_residual < 1e-6, "case %zu: %g", i, stats->last_residual);
        ck_assert_msg(stats->iterations < 700, "case %zu: %g", i, (double)stats->iterations);
    }
    close_problem();
}
END_TEST

/* Reactions that are at balance all the time: after a step of the slow unknowns their residuals are larger than before,
 * and the next step takes them away. */
START_TEST(steps_stand_reactions_at_balance)
{
    static const char *const methods[] = {"beuler, dt: 0.1", "cn, dt: 0.1",
                                          "{name: esdirk3, tolerance: {relative: 1e-4, absolute: 1e-6}}"};
    for (int m = 0; m < 3; ++m)
        for (double rate = 1e3; rate < 1e14; rate *= 1e3) {
            open_text("grid: {cells: [6, 4], periodic: true}\nequations:\n"
                      "  a: {initial: 1, ddt: \"-a + 0.1*b + 1e-3*laplacian(a)\"}\n"
                      "  b: {initial: 1, ddt: \"-%g*(b - a^2) + 1e-3*laplacian(b)\"}\ntime: {method: %s, end: 1}\n",
                      rate, methods[m]);
            run_to_end();
            const trl_solve_stats *s = trl_simulation_solver(sim, 0);
            ck_assert_msg(s->iterations <= (rate < 1e10 ? 8 : 20) * s->solves,
                          "%s, rate %g: %d iterations in %d solves", methods[m], rate, (int)s->iterations,
                          (int)s->solves);
            ck_assert_int_le(trl_simulation_rejected(sim), 12);
            ck_assert_double_eq_tol(value_of("a"), 1 / (0.1 + 0.9 * M_E), m ? 2e-3 : 3e-2);
            ck_assert_double_eq_tol(value_of("b"), value_of("a") * value_of("a"), 0.02);
        }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, steps_stand_reactions_at_balance);
    tcase_add_test(tc, methods_have_their_orders);
    tcase_add_test(tc, values_between_steps_have_the_orders_of_the_methods);
    tcase_add_test(tc, values_between_steps_stand_a_stiff_term);
    tcase_add_test(tc, robertsons_kinetics_end_where_the_reference_does);
    tcase_add_test(tc, stages_are_solved_as_exactly_as_the_error_asks_for);
    tcase_add_test(tc, rounding_errors_reject_no_step);
    tcase_add_test(tc, steps_that_are_not_solved_are_rejected);
    tcase_add_test(tc, what_is_solved_for_has_the_values_of_stages);
    tcase_add_test(tc, steps_by_error_control_solve_for_the_rest);
    tcase_add_test(tc, diffusion_takes_a_hundred_times_the_explicit_step);
    tcase_add_test(tc, stages_are_solved_in_pseudo_time);
    tcase_add_test(tc, steps_in_pseudo_time_say_where_they_do_not_help);
    tcase_add_test(tc, divided_terms_give_what_whole_ones_do);
    tcase_add_test(tc, conditions_of_a_density_read_the_velocity);
    tcase_add_test(tc, conditions_of_coefficients_are_differentiated);
    tcase_add_test(tc, what_does_not_suit_a_method_is_refused);
}

TRL_TEST_MAIN("implicit", add_tests)

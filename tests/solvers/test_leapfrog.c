/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Equations of second order in time: by leapfrog and as pairs by the other methods. */
// ctest: np=1,2 timeout=120 sanitize=1
#include "../doc_table.h"
#include "run_fixture.h"

static double series_of(int i)
{
    ck_ok(trl_simulation_observe(sim));
    return trl_simulation_series(sim)[i];
}

/* An oscillator at each of two cells, by the recurrence of Stoermer (1907): no rates in it. */
START_TEST(the_first_step_is_taylors_and_the_others_are_stoermers)
{
    const double dt = 0.0625;
    double before, now = 0.75, next = now + dt * 0.5 - dt * dt / 2 * 4 * now;
    open_text("grid: {cells: [2], periodic: [true]}\nequations: {w: {initial: \"0.75\", initial_rate: \"0.5\", ddt2: "
              "\"-4*w\"}}\ntime: {method: leapfrog, dt: %.17g, steps: 40}\noutput: {series: {values: {w: "
              "\"domain_max(w)\", rate: \"domain_max(w_t)\"}}}\n",
              dt);
    ck_assert_double_eq(series_of(1), 0.5);
    for (int step = 1; step <= 40; ++step) {
        ck_ok(trl_simulation_step(sim));
        ck_assert_double_eq_tol(series_of(0), next, 1e-14);
        before = now;
        now = next;
        next = 2 * now - before - dt * dt * 4 * now;
        ck_assert_double_eq_tol(series_of(1), (next - before) / (2 * dt), 1e-13); /* the rate at the same time */
    }
    close_problem();
}
END_TEST

/* Steps of two sizes: the last one is shortened to land on end. */
START_TEST(a_shortened_step_keeps_order_two)
{
    double error[3];
    for (int i = 0; i < 3; ++i) {
        open_text("grid: {cells: [2], periodic: [true]}\nequations: {w: {initial: 1, ddt2: \"-w - w_t/2\"}}\n"
                  "time: {method: leapfrog, dt: %.17g, end: 1.03}\noutput: {series: {values: {w: \"domain_max(w)\", "
                  "rate: \"domain_max(w_t)\"}}}\n",
                  0.1 / (1 << i));
        run_to_end();
        const double omega = sqrt(1 - 0.0625), t = 1.03,
                     w = exp(-t / 4) * (cos(omega * t) + sin(omega * t) / (4 * omega));
        error[i] = fabs(trl_simulation_series(sim)[0] - w);
    }
    ck_assert_double_gt(log2(error[0] / error[1]), 1.8);
    ck_assert_double_gt(log2(error[1] / error[2]), 1.85);
    close_problem();
}
END_TEST

/* An oscillator with friction, in steps of one size. */
START_TEST(it_has_order_two)
{
    double error[3];
    for (int i = 0; i < 3; ++i) {
        open_text("grid: {cells: [2], periodic: [true]}\nequations: {w: {initial: 1, ddt2: \"-w - w_t/2\"}}\n"
                  "time: {method: leapfrog, dt: %.17g, end: 1}\noutput: {series: {values: {w: \"domain_max(w)\"}}}\n",
                  0.1 / (1 << i));
        run_to_end();
        const double omega = sqrt(1 - 0.0625);
        error[i] = fabs(series_of(0) - exp(-0.25) * (cos(omega) + sin(omega) / (4 * omega)));
    }
    const double order = log2(error[1] / error[2]);
    const bool found =
        print_line(read_page("verification.md"), "| leapfrog, an oscillator | %.2e | %.2e | %.2e | %.1f |\n", error[0],
                   error[1], error[2], order);
    ck_assert_msg(fabs(order - 2) < 0.1, "%g %g %g", error[0], error[1], error[2]);
    ck_assert_msg(found, "docs/verification.md lacks the line that is printed above");
    close_problem();
}
END_TEST

#define MEMBRANE                                                                                            \
    "grid: {cells: [24, 20]}\nequations:\n  w:\n    location: %s\n    initial: \"sin(pi*x)*sin(2*pi*y)\"\n" \
    "    initial_rate: \"x*(1-x)*y\"\n    ddt2: \"laplacian(w)\"\n    boundary: {x-: {dirichlet: 0}, x+: "  \
    "{dirichlet: 0}, y-: {dirichlet: 0}, y+: {%s}}\ntime: {method: leapfrog, dt: 0.02, steps: 1000}\n"      \
    "output: {series: {values: {energy: \"integral(w_t^2 - w*laplacian(w))\", kept: \"integral(w_t^2 - "    \
    "w*laplacian(w) - (dt*laplacian(w))^2/4)\"}}}\n"

START_TEST(energy_neither_grows_nor_decays)
{
    static const char *const places[] = {"cell", "cell", "node"}, *const sides[] = {"dirichlet: 0", "neumann: 0",
                                                                                    "dirichlet: 0"};
    for (int i = 0; i < 3; ++i) {
        open_text(MEMBRANE, places[i], sides[i]);
        const double kept = series_of(1), energy = series_of(0);
        for (int step = 0; step < 1000; ++step) {
            ck_ok(trl_simulation_step(sim));
            if (step % 37) continue;
            ck_assert_double_eq_tol(series_of(1) / kept, 1, 1e-12);
            ck_assert_double_eq_tol(series_of(0) / energy, 1, 0.02);
        }
    }
    close_problem();
}
END_TEST

#define RICKER \
    "parameters: {f0: 6}\nexpressions:\n  phase: \"(pi*f0*(t - 0.2))^2\"\n  ricker: \"(1 - 2*phase)*exp(-phase)\"\n"
#define HELD "{x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}"
static const char *const waves[] = {
    RICKER "equations:\n  p: {initial: 0, ddt2: \"laplacian(p) + point_source(ricker, [0.5, 0.6])\", boundary: " HELD
           "}\n",
    RICKER
    "  sxx: \"2.4*ddx(u) + ddy(v)\"\n  syy: \"ddx(u) + 2.4*ddy(v)\"\n  sxy: \"0.7*(ddy(u) + ddx(v))\"\nequations:\n"
    "  u: {location: xface, initial: 0, ddt2: \"ddx(sxx) + ddy(sxy)\", boundary: " HELD "}\n"
    "  v: {location: yface, initial: 0, ddt2: \"ddx(sxy) + ddy(syy) + point_source(ricker, [0.5, 0.6])\", "
    "boundary: " HELD "}\n"};

static void measure(const char *wave, const char *method, double *bytes, double *flops)
{
    trl_simulation_stats stats;
    open_text("grid: {cells: [40, 36]}\n%stime: {method: %s, dt: 1e-3, steps: 1}\n", wave, method);
    trl_simulation_get_stats(sim, &stats);
    *bytes = (double)stats.planned_bytes;
    *flops = 0;
    for (int k = 0; k < trl_simulation_kernels(sim); ++k) {
        trl_kernel_stats kernel;
        trl_simulation_get_kernel(sim, k, &kernel);
        *flops += kernel.flops_per_point;
    }
}

START_TEST(a_wave_takes_half_of_the_memory_and_a_quarter_of_the_work_of_rk4)
{
    for (int i = 0; i < 2; ++i) {
        double bytes[2], flops[2];
        measure(waves[i], "leapfrog", &bytes[0], &flops[0]);
        measure(waves[i], "rk4", &bytes[1], &flops[1]);
        ck_assert_msg(bytes[0] < bytes[1] / 2 && flops[0] < flops[1] / 4, "%g of %g bytes, %g of %g flops", bytes[0],
                      bytes[1], flops[0], flops[1]);
    }
    close_problem();
}
END_TEST

/* Once the source is silent, at t = 0.5. */
START_TEST(elastic_energy_stays_as_the_source_left_it)
{
    double least = INFINITY, most = 0;
    open_text(
        "grid: {cells: [24, 20]}\n%stime: {method: leapfrog, dt: {cfl: 0.5}, end: 3}\noutput: {series: {values: {e: "
        "\"integral(u_t^2) + integral(v_t^2) + integral(sxx*ddx(u) + syy*ddy(v)) + integral(sxy*(ddy(u) + "
        "ddx(v)))\"}}}\n",
        waves[1]);
    for (int step = 0; !trl_simulation_done(sim); ++step) {
        ck_ok(trl_simulation_step(sim));
        if (trl_simulation_time(sim) < 0.5 || step % 5) continue;
        const double energy = series_of(0);
        least = fmin(least, energy);
        most = fmax(most, energy);
    }
    ck_assert_double_gt(least, 0.01);
    ck_assert_double_lt(most / least, 1.01);
    close_problem();
}
END_TEST

/* cos(3x + 1/2) as a standing wave, with its values on the sides. */
START_TEST(sides_that_move_give_their_rates)
{
    static const char *const places[] = {"cell", "xface"}, *const methods[] = {"leapfrog", "rk4"};
    for (int m = 0; m < 2; ++m)
        for (int p = 0; p < 2; ++p) {
            double error[2];
            for (int i = 0; i < 2; ++i) {
                trl_field_stats w, rate;
                open_text("grid: {cells: [%d]}\nexpressions: {solution: \"cos(3*t)*cos(3*x + 0.5)\"}\nequations:\n"
                          "  w: {location: %s, initial: solution, ddt2: \"laplacian(w) + (w_t + "
                          "3*sin(3*t)*cos(3*x + 0.5))/2 + laplacian(w_t)/9 - 3*sin(3*t)*cos(3*x + 0.5)\",\n"
                          "      boundary: {x-: {dirichlet: solution}, x+: {neumann: \"-3*cos(3*t)*sin(3.5)\"}},\n"
                          "      exact: solution}\ntime: {method: %s, dt: %.17g, end: 0.5}\n"
                          "output: {fields: [w, w_t]}\n",
                          20 << i, places[p], methods[m], 1.0 / (320 << 2 * i));
                run_to_end();
                ck_ok(trl_simulation_field_stats(sim, field_index("w"), &w));
                ck_ok(trl_simulation_field_stats(sim, field_index("w_t"), &rate));
                error[i] = w.error_linf + rate.error_linf;
                ck_assert_double_gt(rate.error_linf, 0);
            }
            ck_assert_msg(log2(error[0] / error[1]) > 1.7, "%s, %s: errors %g and %g", methods[m], places[p], error[0],
                          error[1]);
        }
    close_problem();
}
END_TEST

/* The points on x+ are between those of e, whose neighbours may be another patch's. */
START_TEST(a_side_that_follows_neighbours_of_another_unknown_has_the_rate_that_follows_from_theirs)
{
    open_text(
        "grid: {cells: [9, 12], periodic: [false, true], patches: [1, 2]}\nequations:\n"
        "  e: {location: node, initial: \"sin(3*x) + 0.1*random(5)\", ddt2: \"laplacian(e)\",\n"
        "      boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\n"
        "  f: {location: xface, initial: 0.5, ddt2: \"laplacian(f)\",\n"
        "      boundary: {x-: {neumann: 0}, x+: {dirichlet: \"0.3*at(e, xface)*sin(9*t)\"}}}\n"
        "time: {method: leapfrog, dt: 1e-3, steps: 5}\noutput: {series: {values: {rate: \"probe(f_t, [1, 0.7])\", "
        "wanted: \"probe(0.3*(at(e_t, xface)*sin(9*t) + at(e, xface)*9*cos(9*t)), [1, 0.7])\"}}}\n");
    for (int step = 1; step <= 5; ++step) {
        ck_ok(trl_simulation_step(sim));
        const double rate = series_of(0);
        ck_assert_double_gt(fabs(rate), 0.1);
        ck_assert_double_eq_tol(rate, series_of(1), 1e-13);
    }
    close_problem();
}
END_TEST

/* The curvature beside x+, where the condition says what lies beyond. */
START_TEST(conditions_read_rates_of_the_present_time_however_they_come_by_them)
{
    static const struct {
        const char *read, *number;
    } cases[] = {{"w_t", "probe(w_t, [0.9375])"},
                 {"q", "probe(w_t, [0.9375])"},
                 {"integral(w_t)", "integral(w_t)"},
                 {"integral(q)", "integral(w_t)"},
                 {"probe(w_t, [0.5])", "probe(w_t, [0.5])"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        open_text(
            "grid: {cells: [8]}\nexpressions: {q: {formula: \"1*w_t\", boundary: {x-: {neumann: 0}, x+: {neumann: "
            "0}}}}\nequations:\n  w: {initial: \"sin(3*x)\", initial_rate: \"cos(x)\", ddt2: \"laplacian(w)\",\n"
            "      boundary: {x-: {neumann: 0}, x+: {dirichlet: \"0.3*%s\"}}}\n"
            "time: {method: leapfrog, dt: 0.01, steps: 5}\noutput: {series: {values: {\n"
            "  curvature: \"probe(laplacian(w), [0.9375])\",\n"
            "  wanted: \"64*(0.6*%s - 3*probe(w, [0.9375]) + probe(w, [0.8125]))\"}}}\n",
            cases[i].read, cases[i].number);
        for (int step = 0; step < 5; ++step) ck_ok(trl_simulation_step(sim));
        ck_assert_double_eq_tol(series_of(0), series_of(1), 1e-12);
    }
    close_problem();
}
END_TEST

START_TEST(what_cannot_be_is_refused_with_a_remedy)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"grid: {cells: [8], periodic: [true]}\nequations:\n  w: {initial: 0, ddt2: \"laplacian(w)\"}\n"
         "  T: {initial: 0, ddt: \"w_t\"}\ntime: {method: leapfrog, dt: 0.01, steps: 1}\n",
         "leapfrog advances equations with ddt2, and 'T' has ddt: use another method, which has both, such as "
         "rk4"},
        {"grid: {cells: [8], periodic: [true]}\nequations:\n  w: {initial: 0, ddt2: \"laplacian(w)\"}\n"
         "  w_t: {initial: 0, ddt: 1}\ntime: {method: rk4, dt: 0.01, steps: 1}\n",
         "the rate of 'w' is called 'w_t', and that name is taken by an equation: rename one"},
        {"grid: {cells: [8], periodic: [true]}\nparameters: {c: 1}\nequations:\n  w: {initial: 0, ddt2: "
         "\"c*laplacian(w)\"}\nsensitivity: {w: [c]}\ntime: {method: rk4, dt: 0.01, steps: 1}\n",
         "the sensitivity of 'w' to 'c' is one of an equation with ddt2, and there are none yet: write it as two "
         "equations with ddt"},
        {"grid: {cells: [8]}\nequations:\n  w: {initial: 0, ddt2: \"laplacian(w) + laplacian(w_t)\", boundary: {x-: "
         "{dirichlet: 0}, x+: {neumann: \"-w_t\"}}}\ntime: {method: rk4, dt: 0.01, steps: 1}\n",
         "'w_t' is needed beyond x+, and its equation's condition there has no known time derivative: write that "
         "condition as a formula of t, or do not difference 'w_t'"},
        {"grid: {cells: [8]}\nequations:\n  T: {initial: 0, ddt: 1}\n  w: {location: xface, initial: 0, ddt2: "
         "\"laplacian(w)\", boundary: {x-: {dirichlet: \"at(T, cell)\"}, x+: {dirichlet: 0}}}\n"
         "time: {method: rk4, dt: 0.01, steps: 1}\n",
         "a condition of an equation with ddt2 reads 'T', whose own rate is not known where the condition's is "
         "needed: write it without 'T', or with old(T)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        new_deck();
        say("%s", cases[i].text);
        ck_fails(open_problem(), TRL_ERR_INPUT, cases[i].message);
        close_problem();
    }
}
END_TEST

START_TEST(dt_is_bounded_by_two_over_the_fastest_oscillation)
{
    open_text("grid: {cells: [16, 16], length: [1, 1], periodic: [true, true]}\nequations: {w: {initial: 0, ddt2: "
              "\"4*laplacian(w)\"}}\ntime: {dt: {cfl: 1}, steps: 1}\n");
    ck_assert_double_eq_tol(trl_simulation_dt(sim), 2 / sqrt(4 * 8 * 256), 1e-15);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_first_step_is_taylors_and_the_others_are_stoermers);
    tcase_add_test(tc, a_shortened_step_keeps_order_two);
    tcase_add_test(tc, it_has_order_two);
    tcase_add_test(tc, energy_neither_grows_nor_decays);
    tcase_add_test(tc, a_wave_takes_half_of_the_memory_and_a_quarter_of_the_work_of_rk4);
    tcase_add_test(tc, elastic_energy_stays_as_the_source_left_it);
    tcase_add_test(tc, sides_that_move_give_their_rates);
    tcase_add_test(tc, a_side_that_follows_neighbours_of_another_unknown_has_the_rate_that_follows_from_theirs);
    tcase_add_test(tc, conditions_read_rates_of_the_present_time_however_they_come_by_them);
    tcase_add_test(tc, what_cannot_be_is_refused_with_a_remedy);
    tcase_add_test(tc, dt_is_bounded_by_two_over_the_fastest_oscillation);
}

TRL_TEST_MAIN("leapfrog", add_tests)

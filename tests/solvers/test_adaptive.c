/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Embedded methods: orders with a fixed dt, and steps whose size follows from the error. */
// ctest: np=1,2 timeout=120 sanitize=1
#include "run_fixture.h"

/* Hairer, Norsett & Wanner (1993), II.0 (0.1) and II.10; 20 digits at t = 20. */
#define BRUSSELATOR                                                                                     \
    "grid: {cells: [4], periodic: [true]}\nequations:\n  u: {initial: 1.5, ddt: \"1 + u^2*v - 4*u\"}\n" \
    "  v: {initial: 3, ddt: \"3*u - u^2*v\"}\n"
static const double brusselator[] = {0.4986370712683478291, 4.5967803494520111183};

static double brusselator_error(void)
{
    return fmax(fabs(value_of("u") - brusselator[0]), fabs(value_of("v") - brusselator[1]));
}

START_TEST(fixed_steps_have_the_order_of_the_method)
{
    static const struct {
        const char *name;
        int order;
        double dt;
    } methods[] = {{"bs3", 3, 0.1}, {"dp5", 5, 0.2}};
    for (int m = 0; m < 2; ++m) {
        double error[3];
        for (int i = 0; i < 3; ++i) {
            open_text("grid: {cells: [2], periodic: [true]}\nequations: {u: {initial: 1, ddt: \"u*cos(t)\"}}\n"
                      "time: {method: %s, dt: %.17g, end: 2}\n",
                      methods[m].name, methods[m].dt / (1 << i));
            run_to_end();
            error[i] = fabs(value_of("u") - exp(sin(2)));
        }
        ck_assert_msg(fabs(log2(error[1] / error[2]) - methods[m].order) < 0.3, "%s: %g %g %g", methods[m].name,
                      error[0], error[1], error[2]);
    }
    close_problem();
}
END_TEST

START_TEST(the_error_is_proportional_to_the_tolerance)
{
    static const struct {
        const char *name;
        double least, most; /* largest tolerance by smallest in logarithms of 10 */
    } methods[] = {{"bs3", 4, 7}, {"dp5", 4, 10}};
    for (int m = 0; m < 2; ++m) {
        double before = 0;
        for (double digits = methods[m].least; digits <= methods[m].most; ++digits) {
            const double tolerance = pow(10, -digits);
            open_text(BRUSSELATOR "time: {method: {name: %s, tolerance: {relative: %g, absolute: %g}}, end: 20}\n",
                      methods[m].name, tolerance, tolerance);
            run_to_end();
            const double error = brusselator_error();
            ck_assert_double_eq(trl_simulation_time(sim), 20);
            ck_assert_msg(error < 200 * tolerance, "%s at %g: error %g", methods[m].name, tolerance, error);
            if (digits > methods[m].least + 1) /* from a tolerance to the next: a factor of 10, but for luck */
                ck_assert_msg(before / error > 2 && before / error < 60, "%s at %g: error %g after %g", methods[m].name,
                              tolerance, error, before);
            before = error;
        }
    }
    close_problem();
}
END_TEST

/* A satellite of earth and moon comes back after a period. Hairer's DOPRI5, with tolerances of 1e-7 and the same
 * constants, takes 216 steps and rejects 22. */
START_TEST(as_many_steps_as_dopri5_on_the_orbit_of_arenstorf)
{
    open_text("grid: {cells: [3], periodic: [true]}\nparameters: {m: 0.012277471, M: \"1 - m\"}\nexpressions:\n"
              "  A: \"((x1 + m)^2 + x2^2)^1.5\"\n  B: \"((x1 - M)^2 + x2^2)^1.5\"\nequations:\n"
              "  x1: {initial: 0.994, ddt: v1}\n  x2: {initial: 0, ddt: v2}\n"
              "  v1: {initial: 0, ddt: \"x1 + 2*v2 - M*(x1 + m)/A - m*(x1 - M)/B\"}\n"
              "  v2: {initial: -2.00158510637908252240537862224, ddt: \"x2 - 2*v1 - M*x2/A - m*x2/B\"}\n"
              "time: {method: {name: dp5, tolerance: {relative: 1e-7, absolute: 1e-7}, dt: {initial: 1e-3}}, end: "
              "17.0652165601579625588917206249}\n");
    run_to_end();
    ck_assert_double_eq_tol(value_of("x1"), 0.994, 1e-2);
    ck_assert_int_ge(trl_simulation_step_number(sim), 210);
    ck_assert_int_le(trl_simulation_step_number(sim), 222);
    ck_assert_int_ge(trl_simulation_rejected(sim), 18);
    ck_assert_int_le(trl_simulation_rejected(sim), 26);
    close_problem();
}
END_TEST

#define REACTION                                                                                                  \
    "grid: {cells: [20, 17]}\nequations:\n  c:\n    initial: \"exp(-40*((x - 0.4)^2 + (y - 0.5)^2))\"\n"          \
    "    ddt: \"laplacian(c)/50 + 200*c^2*(1 - c)*(t > 0.02)\"\n    boundary: {x-: {dirichlet: \"sin(t)\"}, x+: " \
    "{neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}\n    mask: \"(x - 0.7)^2 + (y - 0.3)^2 > 0.01\"\n"         \
    "  d: {location: xface, initial: 0, ddt: \"1 - d + at(c, xface)\", boundary: {x-: {dirichlet: t}, x+: "       \
    "{neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}\n"

START_TEST(a_rejected_step_leaves_no_trace)
{
    open_text(REACTION "time: {method: {name: bs3, dt: {initial: 0.2}}, steps: 1}\n");
    ck_ok(trl_simulation_step(sim));
    const uint64_t c = hash_of("c"), d = hash_of("d");
    const double dt = trl_simulation_dt(sim);
    ck_assert_int_gt(trl_simulation_rejected(sim), 1);
    ck_assert_int_eq(trl_simulation_step_number(sim), 1);
    ck_assert_double_eq(trl_simulation_time(sim), dt);
    open_text(REACTION "time: {method: bs3, dt: %.17g, steps: 1}\n", dt);
    ck_ok(trl_simulation_step(sim));
    ck_assert(hash_of("c") == c && hash_of("d") == d);
    close_problem();
}
END_TEST

/* The step that is tried again meets no jump, and has no error: the next one may not grow, and the one after it may. */
START_TEST(a_step_does_not_grow_right_after_a_rejected_one)
{
    static const double tried[] = {0.2, 0.2, 0.4}; /* a fifth of 1, the same, a fifth of ten times that */
    open_text("grid: {cells: [2], periodic: [true]}\nequations: {u: {initial: 1, ddt: \"1e3*(t > 0.9)\"}}\n"
              "time: {method: {name: bs3, dt: {initial: 1}}, end: 10}\n");
    for (int i = 0; i < 3; ++i) {
        ck_ok(trl_simulation_step(sim));
        ck_assert_msg(fabs(trl_simulation_dt(sim) - tried[i]) < 1e-12, "step %d: %g", i + 1, trl_simulation_dt(sim));
        ck_assert_int_eq(trl_simulation_rejected(sim), i < 2 ? 1 : 2);
    }
    close_problem();
}
END_TEST

START_TEST(steps_land_on_end_and_on_times_of_lists)
{
    static const double at[] = {0.01, 0.0123, 0.3};
    int met = 0;
    open_text(REACTION "time: {method: {name: dp5, dt: {max: 0.03}}, end: 0.37}\noutput: {every: {at: [0.3, 0.01, "
                       "0.0123]}}\n");
    while (!trl_simulation_done(sim)) {
        ck_ok(trl_simulation_step(sim));
        ck_assert_double_le(trl_simulation_dt(sim), 0.03);
        for (int i = 0; i < 3; ++i) met += trl_simulation_time(sim) == at[i];
    }
    ck_assert_int_eq(met, 3);
    ck_assert_double_eq(trl_simulation_time(sim), 0.37);
    close_problem();
}
END_TEST

/* The states of a run after 12 steps and at its end, and what a restart needs. */
typedef struct kept {
    uint64_t c, d;
    double time, dt, control[TRL_CONTROLS], *values[2];
    trl_gidx n[2][3];
} kept;

static void keep(kept *k)
{
    static const char *const names[] = {"c", "d"};
    for (int i = 0; i < 2; ++i) {
        const double *values = values_of(names[i], k->n[i]);
        const size_t n = (size_t)(k->n[i][0] * k->n[i][1] * k->n[i][2]);
        k->values[i] = malloc(n * sizeof(double));
        ck_assert_ptr_nonnull(k->values[i]);
        memcpy(k->values[i], values, n * sizeof(double));
    }
    k->time = trl_simulation_time(sim);
    k->dt = trl_simulation_dt(sim);
    trl_simulation_get_control(sim, k->control);
}

static void put_back(const kept *k)
{
    static const char *const names[] = {"c", "d"};
    const trl_layout *layout = trl_simulation_layout(sim);
    for (int i = 0; i < 2; ++i)
        for (int p = 0; p < layout->nlocal; ++p) {
            const trl_patch *patch = &layout->patch[p];
            trl_array a = trl_simulation_array(sim, field_index(names[i]), p);
            for (trl_lidx y = a.owned.lo[1]; y < a.owned.hi[1]; ++y)
                for (trl_lidx x = a.owned.lo[0]; x < a.owned.hi[0]; ++x)
                    ((double *)a.at)[trl_array_offset(&a, x, y, 0)] =
                        k->values[i][(patch->first[1] + y) * k->n[i][0] + patch->first[0] + x];
        }
    ck_ok(trl_simulation_resume(sim, 12, k->time, k->dt));
    trl_simulation_set_control(sim, k->control);
}

START_TEST(a_restart_goes_on_with_the_same_bits)
{
    kept k;
    for (int again = 0; again < 2; ++again) {
        open_text(REACTION "time: {method: {name: dp5, tolerance: {relative: 1e-5}}, end: 0.1}\n");
        for (int step = 0; step < 12 && !again; ++step) ck_ok(trl_simulation_step(sim));
        if (!again)
            keep(&k);
        else
            put_back(&k);
        run_to_end();
        if (!again) {
            ck_assert_int_gt(trl_simulation_rejected(sim), 0);
            k.c = hash_of("c");
            k.d = hash_of("d");
            k.n[0][2] = trl_simulation_step_number(sim);
        }
    }
    ck_assert(hash_of("c") == k.c && hash_of("d") == k.d);
    ck_assert_int_eq(trl_simulation_step_number(sim), k.n[0][2]);
    for (int i = 0; i < 2; ++i) free(k.values[i]);
    close_problem();
}
END_TEST

/* The largest error of values at five places of each step of size h. */
static double error_between(const char *method, double h)
{
    double largest = 0;
    open_text("grid: {cells: [2], periodic: [true]}\nequations: {u: {initial: 1, ddt: \"u*cos(t)\"}}\n"
              "time: {method: {name: %s, tolerance: {relative: 1}, dt: {initial: %.17g, max: %.17g}}, end: 2}\n"
              "output: {every: {time: 1}}\n",
              method, h, h);
    while (!trl_simulation_done(sim)) {
        ck_ok(trl_simulation_step(sim));
        const double end = trl_simulation_time(sim), dt = trl_simulation_dt(sim);
        for (int i = 1; i < 6; ++i) {
            const double at = end - dt * i / 6;
            ck_ok(trl_simulation_interpolate(sim, at));
            ck_assert_double_eq(trl_simulation_time(sim), at);
            largest = fmax(largest, fabs(value_of("u") - exp(sin(at))));
        }
        ck_ok(trl_simulation_return(sim));
        ck_assert_double_eq(trl_simulation_time(sim), end);
    }
    return largest;
}

START_TEST(values_between_steps_have_the_order_of_the_method)
{
    static const struct {
        const char *name;
        int order;
        double h;
    } methods[] = {{"bs3", 3, 0.05}, {"dp5", 5, 0.1}};
    for (int m = 0; m < 2; ++m) {
        const double coarse = error_between(methods[m].name, methods[m].h),
                     fine = error_between(methods[m].name, methods[m].h / 2);
        ck_assert_msg(fabs(log2(coarse / fine) - methods[m].order) < 0.3, "%s: %g %g", methods[m].name, coarse, fine);
    }
    close_problem();
}
END_TEST

START_TEST(values_between_steps_keep_conditions_and_change_nothing)
{
    uint64_t c[2], d[2];
    for (int looks = 0; looks < 2; ++looks) {
        open_text(REACTION "time: {method: bs3, end: 0.05}\n%s", looks ? "output: {every: {time: 1}}\n" : "");
        ck_assert(trl_simulation_interpolates(sim) == looks);
        while (!trl_simulation_done(sim)) {
            ck_ok(trl_simulation_step(sim));
            const double at = trl_simulation_time(sim) - trl_simulation_dt(sim) / 3;
            if (!looks) continue;
            ck_ok(trl_simulation_interpolate(sim, at));
            ck_assert_double_eq(value_of("d"), at);
            ck_ok(trl_simulation_return(sim));
        }
        c[looks] = hash_of("c");
        d[looks] = hash_of("d");
    }
    ck_assert(c[0] == c[1] && d[0] == d[1]);
    ck_fails(trl_simulation_interpolate(sim, 0.01), TRL_ERR_USAGE,
             "there are no values at t = 0.01: they are interpolated in the last step alone, where "
             "problem.time.dense asks for it and dt follows from errors");
    close_problem();
}
END_TEST

/* With dt in a formula, no step leaves its rates to the next one. */
START_TEST(rates_that_steps_leave_to_others_are_those_evaluated_anew)
{
    static const char *const methods[] = {"bs3", "dp5"};
    for (int m = 0; m < 2; ++m) {
        uint64_t c[2], d[2];
        for (int anew = 0; anew < 2; ++anew) {
            open_text(REACTION "  e: {location: node, initial: x, ddt: \"cos(3*t) - e%s\", boundary: {}}\n"
                               "time: {method: {name: %s, tolerance: 1e-4}, end: 0.05}\n",
                      anew ? " + 0*dt" : "", methods[m]);
            run_to_end();
            ck_assert_int_gt(trl_simulation_rejected(sim), 0);
            c[anew] = hash_of("c");
            d[anew] = hash_of("e");
        }
        ck_assert(c[0] == c[1] && d[0] == d[1]);
    }
    close_problem();
}
END_TEST

START_TEST(a_dt_that_falls_too_far_names_place_and_remedy)
{
    open_text("grid: {cells: [20], length: [1]}\nequations: {c: {initial: \"1 + x\", ddt: \"c^2\", boundary: {}}}\n"
              "time: {method: {name: dp5, dt: {min: 1e-6}}, end: 1}\n");
    trl_err err = TRL_OK;
    while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_step(sim);
    ck_fails(err, TRL_ERR_NUMERICS, "dt fell below min 1e-06 at step ");
    ck_assert_ptr_nonnull(strstr(test_messages(), "the error of 'c' at cell (19), x = 0.975, is "));
    ck_assert_ptr_nonnull(strstr(test_messages(), "use a larger tolerance, a smaller min, or look for a singularity"));
    ck_assert(trl_simulation_stalled(sim));
    ck_assert_double_eq_tol(trl_simulation_time(sim), 1 / 1.975, 1e-4); /* the solution ends there */
    close_problem();
}
END_TEST

START_TEST(without_an_end_the_first_step_has_to_be_given)
{
    new_deck();
    say(BRUSSELATOR "time: {method: dp5, steps: 3}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT,
             "without 'end', nothing says how large the first step may be: give time.method.dt an 'initial' or a "
             "'max'");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    if (!TEST_SANITIZED || test_long()) {
        tcase_add_test(tc, fixed_steps_have_the_order_of_the_method);
        tcase_add_test(tc, the_error_is_proportional_to_the_tolerance);
    }
    tcase_add_test(tc, as_many_steps_as_dopri5_on_the_orbit_of_arenstorf);
    tcase_add_test(tc, a_rejected_step_leaves_no_trace);
    tcase_add_test(tc, a_step_does_not_grow_right_after_a_rejected_one);
    tcase_add_test(tc, steps_land_on_end_and_on_times_of_lists);
    tcase_add_test(tc, a_restart_goes_on_with_the_same_bits);
    tcase_add_test(tc, values_between_steps_have_the_order_of_the_method);
    tcase_add_test(tc, values_between_steps_keep_conditions_and_change_nothing);
    tcase_add_test(tc, rates_that_steps_leave_to_others_are_those_evaluated_anew);
    tcase_add_test(tc, a_dt_that_falls_too_far_names_place_and_remedy);
    tcase_add_test(tc, without_an_end_the_first_step_has_to_be_given);
}

TRL_TEST_MAIN("adaptive", add_tests)

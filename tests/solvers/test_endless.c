/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A run comes to its end: a dt that no longer changes t, and a t that is no number, are errors. */
// ctest: np=1,3
#include "../expressions/problem_fixture.h"

static void bar(const char *ddt, const char *time)
{
    new_deck();
    say("grid: {cells: [3], length: [3], periodic: [true]}\n");
    say("equations: {T: {initial: 1, ddt: \"%s\"}}\n", ddt);
    say("time: {method: euler, %s}\n", time);
}

/* Before step 0 it is the deck that is wrong. */
static void fails_at_once(const char *ddt, const char *time, const char *message)
{
    bar(ddt, time);
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_INPUT, message);
    trl_context_clear_diagnostics(test_ctx);
}

/* Steps until one fails, or the end. */
static trl_err run_on(trl_err (*advance)(void))
{
    trl_err err = TRL_OK;
    for (int n = 0; n < 3000 && err == TRL_OK && !trl_simulation_done(sim); ++n) err = advance();
    ck_assert(err != TRL_OK || trl_simulation_done(sim));
    return err;
}

static trl_err one_step(void)
{
    return trl_simulation_step(sim);
}

static trl_err some_steps(void)
{
    return trl_simulation_advance(sim, NULL, NULL);
}

static void fails_later(const char *ddt, const char *time, const char *message)
{
    bar(ddt, time);
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_fails(run_on(one_step), TRL_ERR_NUMERICS, message);
    ck_assert(trl_simulation_stalled(sim));
    trl_context_clear_diagnostics(test_ctx);
}

START_TEST(a_fixed_dt_that_cannot_change_t_is_refused)
{
    fails_at_once("-T", "dt: 1e-17, start: 1, steps: 2", "dt = 1e-17 no longer changes t = 1 after step 0");
    fails_at_once("-T", "dt: 1e-17, start: 1, end: 2",
                  "with dt = 1e-17, end = 2 is never reached from start = 1: it takes 1e+17 steps");
    fails_at_once("-T", "dt: 1e-3, start: -1e15, end: 1", "end = 1 is never reached from start = -1e+15");
    fails_at_once("-T", "dt: 1e-20, end: 1", "it takes 1e+20 steps");
    fails_at_once("-T", "dt: 1e300, steps: 1e9", "t overflows: 1000000000 steps of dt = 1e+300 from start = 0");
    fails_at_once("-T", "dt: 1e300, start: 1.7e308, steps: 1e9", "t overflows");
}
END_TEST

START_TEST(a_small_dt_that_changes_t_is_not)
{
    static const char *const fine[] = {"dt: 1e-300, steps: 2",           "dt: 2.3e-16, start: 1, steps: 1",
                                       "dt: 1e-20, end: 1, steps: 3",    "dt: 1e300, end: 1e306, steps: 2",
                                       "dt: 0.1, steps: 1e15, end: 0.2", "dt: 1, start: 5, end: 5"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; ++i) {
        bar("0", fine[i]);
        ck_ok(open_problem());
        ck_ok(trl_simulation_initialise(sim));
        ck_ok(run_on(one_step));
    }
}
END_TEST

START_TEST(a_stable_dt_that_cannot_change_t_is_refused)
{
    fails_at_once("-T", "dt: {cfl: 1, max: 1e-30}, start: 3, end: 4",
                  "the stable dt = 1e-30 no longer changes t = 3 after step 0");
    fails_at_once("-T", "dt: {cfl: 1, speed: 1e30}, end: 1", "would take 1e+30 steps from t = 0 to end = 1");
    fails_at_once("-T", "dt: {cfl: 1, speed: \"1e300*1e300\"}, end: 1", "the stable dt = 0 no longer changes t = 0");
    fails_at_once("-T", "dt: {cfl: 1, diffusivity: \"1/(x-x)\"}, end: 1", "the stable dt = 0 no longer changes t = 0");
    fails_at_once("0", "dt: {cfl: 1, speed: \"0/(x-x)\"}, end: 1", "the stable dt is NaN at step 0");
    fails_at_once("0", "dt: {cfl: 1, speed: 6e-309}, start: 1.7e308, steps: 9", "t overflows in step 1: dt = ");
}
END_TEST

/* The equations of `first` and `second`, which reads `first`, so that its bound is found after that one's. */
static void pair(const char *first, const char *second)
{
    new_deck();
    say("grid: {cells: [12], periodic: true}\n");
    say("equations:\n");
    say("  first: {initial: \"1 + 0.1*sin(2*pi*x)\", ddt: \"%s\"}\n", first);
    say("  second: {initial: \"sin(2*pi*x)\", ddt: \"%s\"}\n", second);
    say("time: {method: euler, dt: {cfl: 0.4}, end: 9}\n");
}

START_TEST(a_bound_that_is_nan_is_found_before_others_that_are_not)
{
    pair("div(sqrt(first - 5)*grad(first))", "div((1 + first^2)*grad(second))");
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_INPUT,
             "the stable dt is NaN at step 0, t = 0: a speed, a diffusivity or a derivative is, in 'div(sqrt(first");
    trl_context_clear_diagnostics(test_ctx);
    pair("div(sqrt(0.05 - t)*grad(first))", "div((1 + first^2)*grad(second))");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_fails(run_on(one_step), TRL_ERR_NUMERICS, "derivative is, in 'div(sqrt(0.05 - t)*grad(first))'");
    ck_assert_double_gt(trl_simulation_time(sim), 0.05);
    trl_context_clear_diagnostics(test_ctx);
}
END_TEST

START_TEST(dt_that_dwindles_ends_the_run)
{
    fails_later("-T", "dt: {cfl: 0.5, speed: \"1/abs(1-t)\"}, end: 2", "no longer changes t = 0.99999999999999");
    fails_later("T*T", "dt: {cfl: 0.5, speed: T}, end: 2", "the stable dt = ");
}
END_TEST

START_TEST(steps_before_a_bad_one_are_taken)
{
    /* t goes on in steps of 128 up to 2^60, where numbers are 256 apart. */
    new_deck();
    say("grid: {cells: [12, 12], periodic: [true, true]}\n");
    say("equations: {T: {initial: 1, ddt: \"0*laplacian(T)\"}}\n");
    say("time: {method: euler, dt: 128, start: 1152921504606846336, steps: 100}\n"); /* 2^60 - 640 */
    say("run: {time_blocking: 4}\n");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_fails(run_on(some_steps), TRL_ERR_NUMERICS, "no longer changes t = 1.152921504606847e+18 after step 5");
    ck_assert(trl_simulation_stalled(sim));
    ck_assert_int_eq(trl_simulation_step_number(sim), 5);
}
END_TEST

START_TEST(time_goes_on_from_a_restart)
{
    bar("-T", "dt: 0.25, steps: 10");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_ok(trl_simulation_resume(sim, 4, 1.0, 0.25));
    ck_ok(trl_simulation_step(sim));
    ck_assert_double_eq(trl_simulation_time(sim), 1.25);
    /* With another dt than before, and after a step that an earlier end cut. */
    ck_ok(trl_simulation_resume(sim, 4, 400.0, 100));
    ck_ok(trl_simulation_step(sim));
    ck_assert_double_eq(trl_simulation_time(sim), 400.25);
    ck_ok(trl_simulation_resume(sim, 4, 0.9, 0.25));
    ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_step(sim));
    ck_assert_double_eq(trl_simulation_time(sim), 0.9 + 2 * 0.25);
    ck_assert_int_eq(trl_simulation_step_number(sim), 6);
}
END_TEST

START_TEST(refuses_to_resume_where_no_run_can_be)
{
    bar("-T", "dt: 0.25, steps: 10");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_fails(trl_simulation_resume(sim, -1, 0, 0.25), TRL_ERR_USAGE, "cannot resume at step -1");
    ck_fails(trl_simulation_resume(sim, INT64_MAX, 0, 0.25), TRL_ERR_USAGE,
             "cannot resume at step 9223372036854775807");
    ck_fails(trl_simulation_resume(sim, 1, NAN, 0.25), TRL_ERR_USAGE, "cannot resume at step 1, t = ");
    ck_fails(trl_simulation_resume(sim, 1, 0, INFINITY), TRL_ERR_USAGE, "with dt = inf");
}
END_TEST

START_TEST(refuses_numbers_of_time_that_no_deck_can_have)
{
    static const struct {
        double dt, cfl, start, end;
        const char *message;
    } bad[] = {{0, 0, 0, 1, "dt, or cfl, must be positive and finite: 0 and 0"},
               {-1, 0, 0, 1, "must be positive"},
               {NAN, 0, 0, 1, "must be positive"},
               {INFINITY, 0, 0, 1, "must be positive and finite: inf"},
               {0, NAN, 0, 1, "must be positive"},
               {0, INFINITY, 0, 1, "must be positive"},
               {1, 0, NAN, 1, "start and end of time must be finite"},
               {1, 0, 0, INFINITY, "start and end of time must be finite: 0 and inf"}};
    bar("-T", "dt: 0.25, end: 10");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        ck_ok(open_problem());
        trl_problem problem = *trli_deck_problem(deck);
        trl_simulation *other;
        problem.time.dt = bad[i].dt;
        problem.time.cfl = bad[i].cfl;
        problem.time.start = bad[i].start;
        problem.time.end = bad[i].end;
        ck_fails(trl_simulation_create(test_ctx, &problem, &other), TRL_ERR_INPUT, bad[i].message);
        ck_assert_ptr_null(other);
        trl_context_clear_diagnostics(test_ctx);
    }
}
END_TEST

/* ---- a plugin's own limit ---- */

static double limits[2]; /* at step 0, and later */

static trl_err rate_advertise(const void *state, trl_deps *deps)
{
    (void)state;
    trl_err err = trl_deps_compute(deps, "rate", TRL_CELL);
    return err == TRL_OK ? trl_deps_require(deps, "T", TRL_CELL, NULL, NULL) : err;
}

static trl_err rate_evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state;
    for (int i = box->lo[0]; i < box->hi[0]; ++i)
        ((double *)args->computed[0].at)[trl_array_offset(&args->computed[0], i, 0, 0)] = 0;
    return TRL_OK;
}

static trl_err rate_stable_dt(const void *state, const trl_eval_args *args, double *dt)
{
    (void)state;
    *dt = limits[args->step > 0];
    return TRL_OK;
}

static const trl_expr_type rate = {.abi = TRL_PLUGIN_ABI,
                                   .size = sizeof(trl_expr_type),
                                   .name = "rate",
                                   .doc = "nothing, with a limit",
                                   .flags = TRL_EXPR_POINTWISE | TRL_EXPR_PURE,
                                   .advertise_dependents = rate_advertise,
                                   .evaluate = rate_evaluate,
                                   .stable_dt = rate_stable_dt};

START_TEST(a_plugin_cannot_give_a_dt_that_is_none)
{
    static const trl_expr_type *const types[] = {&rate, NULL};
    static const double bad[] = {0, -1, NAN, -INFINITY};
    test_types = types;
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; ++i) {
        const bool at_once = i % 2 == 0;
        limits[0] = at_once ? bad[i / 2] : 0.5;
        limits[1] = bad[i / 2];
        bar("R", "dt: {cfl: 0.5}, steps: 20");
        say("expressions: {R: {type: rate, computes: [R]}}\n");
        ck_ok(open_problem());
        trl_err err = trl_simulation_initialise(sim);
        if (!at_once) {
            ck_ok(err);
            ck_ok(trl_simulation_step(sim));
            err = trl_simulation_step(sim);
            ck_assert(trl_simulation_stalled(sim));
        }
        ck_fails(err, at_once ? TRL_ERR_INPUT : TRL_ERR_NUMERICS, "stable_dt of 'R' (type 'rate') gave ");
        trl_context_clear_diagnostics(test_ctx);
    }
    test_types = NULL;
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, a_fixed_dt_that_cannot_change_t_is_refused);
    tcase_add_test(tc, a_small_dt_that_changes_t_is_not);
    tcase_add_test(tc, a_stable_dt_that_cannot_change_t_is_refused);
    tcase_add_test(tc, a_bound_that_is_nan_is_found_before_others_that_are_not);
    tcase_add_test(tc, dt_that_dwindles_ends_the_run);
    tcase_add_test(tc, steps_before_a_bad_one_are_taken);
    tcase_add_test(tc, time_goes_on_from_a_restart);
    tcase_add_test(tc, refuses_to_resume_where_no_run_can_be);
    tcase_add_test(tc, refuses_numbers_of_time_that_no_deck_can_have);
    tcase_add_test(tc, a_plugin_cannot_give_a_dt_that_is_none);
}

TRL_TEST_MAIN("endless", add_tests)

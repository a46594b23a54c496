/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The size of time steps: fixed and landing on the end, or from cfl, found in the equations. */
// ctest: np=1,3
#include <stdatomic.h>

#include "../expressions/problem_fixture.h"

/* A 2-D periodic problem of one equation; h = 1/16 and 2/12. */
static void plane(const char *expressions, const char *ddt, const char *time)
{
    new_deck();
    say("grid: {cells: [16, 12], length: [1, 2], periodic: [true, true]}\n");
    say("parameters: {u: 3, v: -2, D: 0.4}\n");
    if (*expressions) say("expressions: {%s}\n", expressions);
    say("equations: {T: {initial: \"1 + 0.1*sin(2*pi*x)\", ddt: \"%s\"}}\n", ddt);
    say("time: {method: ssprk3, %s}\n", time);
}

static double first_dt(void)
{
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_ok(trl_simulation_step(sim));
    return trl_simulation_dt(sim);
}

static const double hx = 1.0 / 16, hy = 2.0 / 12;

static double bound(double speed_x, double speed_y, double diffusivity)
{
    return 1 / (speed_x / hx + speed_y / hy + 2 * diffusivity / (hx * hx) + 2 * diffusivity / (hy * hy));
}

START_TEST(cfl_finds_velocity_and_diffusivity_in_the_equation)
{
    plane("", "-div(advective_flux(T, [u, v])) + div(D*grad(T))", "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * bound(3, 2, 0.4), 1e-15);
    plane("", "D*laplacian(T)", "dt: {cfl: 1}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), bound(0, 0, 0.4), 1e-15);
}
END_TEST

START_TEST(cfl_knows_that_fourth_order_differences_are_steeper)
{
    const double steeper = 7.0 / 6; /* what they make of the shortest wave, over what two points make of it */
    plane("", "div4(D*grad4(T))", "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * bound(0, 0, 0.4 * steeper * steeper), 1e-15);
    plane("", "div4(D*grad(T))", "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * bound(0, 0, 0.4 * steeper), 1e-15);
}
END_TEST

START_TEST(cfl_follows_named_expressions_and_collects_all_factors_in_front)
{
    plane("q: \"-2*D*grad(T)\", flux: \"advective_flux(T, [u, v], vanleer) + q\"", "-div(flux)/4 + 1",
          "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * bound(0.75, 0.5, 0.2), 1e-15);
    plane("q: [\"-D*ddx(T)\", \"0\"]", "-div(q)", "dt: {cfl: 0.5, diffusivity: D}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * bound(0, 0, 0.4), 1e-15);
}
END_TEST

START_TEST(cfl_takes_the_larger_face_and_the_worst_cell)
{
    /* The speed at faces is 1 + i/16 along x, largest on the last cell's upper face, which is face 16 = face 0 if
     * periodic. */
    new_deck();
    say("grid: {cells: [16]}\n");
    say("equations: {T: {initial: 1, ddt: \"-div(advective_flux(T, [1 + x]))\",\n");
    say("  boundary: {x-: {dirichlet: 1}, x+: {outflow: true}}}}\n");
    say("time: {method: rk4, dt: {cfl: 1}, steps: 2}\n");
    ck_assert_double_eq_tol(first_dt(), (1.0 / 16) / 2, 1e-15);
}
END_TEST

START_TEST(speed_and_diffusivity_replace_what_is_found)
{
    plane("", "-div(advective_flux(T, [u, v])) + D*laplacian(T)", "dt: {cfl: 0.5, speed: [10, 1]}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * bound(10, 1, 0.4), 1e-15);
    plane("", "-div(advective_flux(T, [u, v])) + D*laplacian(T)", "dt: {cfl: 0.5, diffusivity: \"2*D\"}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * bound(3, 2, 0.8), 1e-15);
    plane("", "-div4([u, v]*at4(T, faces) - D*grad4(T)) - dot([u, v], at(grad(T), cell)) - 2*T",
          "dt: {cfl: 0.5, speed: [10, 1]}, steps: 2"); /* for all that differentiates; a reaction is on top */
    const double steeper = 49.0 / 36;
    ck_assert_double_eq_tol(first_dt(), 0.5 / (1 / bound(10, 1, 0.4 * steeper) + 1), 1e-15);
}
END_TEST

START_TEST(masked_cells_do_not_count)
{
    new_deck();
    say("grid: {cells: [16], periodic: [true]}\n");
    say("equations: {T: {initial: 1, ddt: \"-div(advective_flux(T, [if(x < 0.5, 100, 1)]))\", mask: \"x > 0.6\"}}\n");
    say("time: {method: rk4, dt: {cfl: 1}, steps: 2}\n");
    double dt = first_dt(); /* the upper face of the last cell is the fast one at x = 0 */
    ck_assert_double_eq_tol(dt, (1.0 / 16) / 100, 1e-15);
}
END_TEST

START_TEST(refuses_a_step_that_nothing_bounds)
{
    plane("", "-ddx(at(T, xface))", "dt: {cfl: 0.5}, steps: 2"); /* central: ssprk3 is stable to sqrt(3) times i */
    ck_assert_double_eq_tol(first_dt(), 0.5 * sqrt(3) * hx, 1e-15);
    plane("", "sin(2*pi*x)", "dt: {cfl: 0.5}, steps: 2");
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_INPUT,
             "nothing in the equations bounds dt: give cfl a max, or speed or diffusivity");
    plane("", "sin(2*pi*x)", "dt: {cfl: 0.5, max: 0.25}, steps: 2");
    ck_assert_double_eq(first_dt(), 0.25);
}
END_TEST

START_TEST(refuses_a_dt_below_min_and_an_infinite_one)
{
    plane("", "D*laplacian(T)", "dt: {cfl: 0.5, min: 1}, steps: 2");
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_INPUT, "fell below min 1 at step 0");
    plane("", "-div(advective_flux(T, [0*T, 0*T]))", "dt: {cfl: 0.5}, steps: 2");
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_INPUT, "the stable dt is infinite at step 0");
}
END_TEST

START_TEST(terms_that_double_with_every_name_are_not_sought_for_ever)
{
    new_deck();
    say("grid: {cells: [16], periodic: [true]}\nexpressions:\n  e0: \"laplacian(T)\"\n");
    for (int i = 1; i < 60; ++i) say("  e%d: \"e%d + e%d\"\n", i, i - 1, i - 1);
    say("equations: {T: {initial: 1, ddt: \"1e-18*e59\"}}\ntime: {method: ssprk3, dt: 1e-3, steps: 2}\n");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_fails(open_set("time.dt={cfl: 0.5}"), TRL_ERR_INPUT, "cfl cannot bound more than 100000 terms");
}
END_TEST

START_TEST(warns_of_a_fixed_dt_beyond_the_stable_one_only)
{
    plane("", "D*laplacian(T)", "dt: 1.0, steps: 1");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert_ptr_nonnull(strstr(test_messages(), "dt = 1 is above the stable"));
    trl_context_clear_diagnostics(test_ctx);
    plane("", "D*laplacian(T)", "dt: 1.0e-3, steps: 1");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert_str_eq(test_messages(), "");
}
END_TEST

START_TEST(warns_of_central_advection_with_a_method_that_cannot_hold_it)
{
    plane("", "-div(advective_flux(T, [u, v]))", "dt: 1.0e-4, steps: 1");
    ck_ok(open_set("time.method=euler"));
    ck_assert_ptr_nonnull(
        strstr(test_messages(), "central advective_flux without diffusion grows with euler at any dt"));
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(open_set("time.method=rk4"));
    ck_assert_str_eq(test_messages(), "");
}
END_TEST

START_TEST(the_last_step_lands_on_the_end)
{
    plane("", "-T", "dt: 0.3, end: 1");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    int steps = 0;
    for (; !trl_simulation_done(sim); ++steps) ck_ok(trl_simulation_step(sim));
    ck_assert_int_eq(steps, 4);
    ck_assert_double_eq(trl_simulation_time(sim), 1.0);
    ck_assert_double_eq_tol(trl_simulation_dt(sim), 0.1, 1e-15);
}
END_TEST

START_TEST(a_step_that_nearly_fits_is_not_split)
{
    plane("", "-T", "dt: 0.1, end: 1, start: 0.5"); /* five steps of 0.1, whatever rounding makes of their sum */
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    int steps = 0;
    for (; !trl_simulation_done(sim); ++steps) ck_ok(trl_simulation_step(sim));
    ck_assert_int_eq(steps, 5);
    ck_assert_double_eq(trl_simulation_time(sim), 1.0);
}
END_TEST

START_TEST(time_is_no_running_sum)
{
    plane("", "-T", "dt: 0.1, steps: 1000");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
    ck_assert_int_eq(trl_simulation_step_number(sim), 1000);
    ck_assert_double_eq(trl_simulation_time(sim), 1000 * 0.1);
}
END_TEST

START_TEST(steps_allocate_nothing_after_the_first)
{
    trl_simulation_stats stats;
    plane("S: \"integral(T)\"", "-div(advective_flux(T, [u, v], superbee)) + div(D*grad(T)) - S*T",
          "dt: {cfl: 0.5}, steps: 20");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
    trl_simulation_get_stats(sim, &stats);
    ck_assert_int_eq(stats.allocations_after_first_step, 0);
}
END_TEST

static int64_t count_allocations(void)
{
    trl_memory_stats stats;
    trl_memory_get_stats(test_ctx, &stats);
    return stats.allocations;
}

/* What the run of a task graph needs is there when the problem is compiled. */
START_TEST(not_even_the_first_run_of_a_program_allocates)
{
    static const char *const settings[] = {"run.scheduler=serial", "run.scheduler=priority",
                                           "run.threads={tasks: 0, operators: 1}"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i) {
        plane("S: \"integral(T)\"", "-div(advective_flux(T, [u, v], superbee)) + div(D*grad(T)) - S*T",
              "dt: {cfl: 0.5}, steps: 3");
        close_problem();
        ck_ok(trl_context_set_threads(test_ctx, i == 1 ? 2 : 1));
        ck_ok(open_set(settings[i]));
        int64_t before = count_allocations();
        ck_ok(trl_simulation_initialise(sim));
        while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
        ck_ok(trl_simulation_observe(sim));
        ck_assert_int_eq(count_allocations(), before);
    }
    close_problem();
    ck_ok(trl_context_set_threads(test_ctx, 1));
}
END_TEST

/* ---- a plugin that knows its own limit ---- */

static atomic_int asked;

static trl_err reactor_advertise(const void *state, trl_deps *deps)
{
    (void)state;
    trl_err err = trl_deps_compute(deps, "rate", TRL_CELL);
    return err == TRL_OK ? trl_deps_require(deps, "T", TRL_CELL, NULL, NULL) : err;
}

static trl_err reactor_evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state;
    for (int k = box->lo[2]; k < box->hi[2]; ++k)
        for (int j = box->lo[1]; j < box->hi[1]; ++j)
            for (int i = box->lo[0]; i < box->hi[0]; ++i) {
                ptrdiff_t at = trl_array_offset(&args->computed[0], i, j, k);
                ((double *)args->computed[0].at)[at] =
                    -((const double *)args->required[0].at)[trl_array_offset(&args->required[0], i, j, k)];
            }
    return TRL_OK;
}

/* 1/128 of the patch's first owned value: the smallest one of the domain decides. */
static trl_err reactor_stable_dt(const void *state, const trl_eval_args *args, double *dt)
{
    const trl_array *T = &args->required[0];
    double least = INFINITY;
    (void)state;
    atomic_fetch_add(&asked, 1);
    for (int j = T->owned.lo[1]; j < T->owned.hi[1]; ++j)
        for (int i = T->owned.lo[0]; i < T->owned.hi[0]; ++i)
            least = fmin(least, ((const double *)T->at)[trl_array_offset(T, i, j, 0)]);
    *dt = least / 128;
    return TRL_OK;
}

static const trl_expr_type reactor = {.abi = TRL_PLUGIN_ABI,
                                      .size = sizeof(trl_expr_type),
                                      .name = "reactor",
                                      .doc = "decay with a limit of its own",
                                      .flags = TRL_EXPR_POINTWISE | TRL_EXPR_PURE,
                                      .advertise_dependents = reactor_advertise,
                                      .evaluate = reactor_evaluate,
                                      .stable_dt = reactor_stable_dt};

START_TEST(a_plugin_bounds_the_step_by_its_own_limit)
{
    static const trl_expr_type *const types[] = {&reactor, NULL};
    test_types = types;
    plane("R: {type: reactor, computes: [R]}", "R", "dt: {cfl: 0.5}, steps: 2");
    atomic_store(&asked, 0);
    /* Cell centres of 16 cells hit sin(2 pi x) = -1 nowhere: the least is at x = 23/32 or 25/32. */
    double least = 1 + 0.1 * sin(2 * acos(-1.0) * 23 / 32);
    ck_assert_double_eq_tol(first_dt(), 0.5 * least / 128, 1e-14);
    ck_assert_int_ge(atomic_load(&asked), 1);
    test_types = NULL;
}
END_TEST

/* A plugin without stable_dt: its rate is not known, unless it does not depend on the unknowns. */
static const trl_expr_type source_type = {.abi = TRL_PLUGIN_ABI,
                                          .size = sizeof(trl_expr_type),
                                          .name = "source",
                                          .doc = "decay without a limit",
                                          .flags = TRL_EXPR_POINTWISE | TRL_EXPR_PURE,
                                          .advertise_dependents = reactor_advertise,
                                          .evaluate = reactor_evaluate};

START_TEST(refuses_a_plugin_that_it_cannot_bound)
{
    static const trl_expr_type *const types[] = {&source_type, NULL};
    test_types = types;
    plane("R: {type: source, computes: [R]}", "R - T", "dt: {cfl: 0.5}, steps: 2");
    ck_fails(
        open_problem(), TRL_ERR_INPUT,
        "cfl cannot bound the equation of 'T': what type 'source' of 'R' computes has no derivative and no stable_dt");
    trl_context_clear_diagnostics(test_ctx);
    plane("R: {type: source, computes: [R]}", "R - T", "dt: {cfl: 0.5, speed: 1}, steps: 2");
    ck_assert_double_gt(first_dt(), 0);
    plane("fixed: \"1 + x\", R: {type: source, computes: [R], inputs: {T: fixed}}", "R - T",
          "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 1, 1e-15);
    plane("R: {type: source, computes: [R]}", "R - 40*T", "dt: 0.01, steps: 2");
    ck_assert_double_eq(first_dt(), 0.01);
    ck_assert_str_eq(test_messages(), "");
    test_types = NULL;
}
END_TEST

/* The issue's decks: coupled equations, fourth order, reactions. */
static void line(const char *method, const char *equations, const char *time)
{
    new_deck();
    say("grid: {cells: [16], length: [8], periodic: [true]}\n");
    say("equations: {%s}\ntime: {method: %s, %s}\n", equations, method, time);
}

START_TEST(cfl_bounds_waves_by_their_speed)
{
    const char *const wave = "u: {initial: \"sin(2*pi*x/8)\", ddt: v}, v: {initial: 0, ddt: \"0.01*laplacian(u)\"}";
    line("ssprk3", wave, "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * sqrt(3) / (2 * 0.1 / 0.5), 1e-12);
    line("rk4", wave, "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 * sqrt(8) / (2 * 0.1 / 0.5), 1e-12);
    line("rk4",
         "u: {initial: \"sin(2*pi*x/8)\", ddt: \"v - div(advective_flux(u, [3]))\"}, "
         "v: {initial: 0, ddt: \"0.01*laplacian(u) - div(advective_flux(v, [3]))\"}",
         "dt: {cfl: 0.5}, steps: 2"); /* advection by its rule, and the wave on top */
    ck_assert_double_eq_tol(first_dt(), 0.5 / (3 / 0.5 + 2 * 0.1 / 0.5 / sqrt(8)), 1e-12);
}
END_TEST

START_TEST(refuses_oscillations_that_a_method_cannot_hold)
{
    static const char *const methods[] = {"euler", "ssprk2"};
    const char *const schroedinger =
        "a: {initial: \"sin(2*pi*x/8)\", ddt: \"-laplacian(b)\"}, b: {initial: 0, ddt: \"laplacian(a)\"}";
    for (int i = 0; i < 2; ++i) {
        line(methods[i], schroedinger, "dt: {cfl: 0.5}, steps: 2");
        ck_ok(open_problem());
        ck_fails(trl_simulation_initialise(sim), TRL_ERR_INPUT,
                 "has no stable step for the oscillating coupling of 'a' and 'b': use ssprk3 or rk4, which have");
        trl_context_clear_diagnostics(test_ctx);
        line(methods[i], schroedinger, "dt: 1e-6, steps: 2");
        ck_ok(open_problem());
        ck_ok(trl_simulation_initialise(sim));
        ck_assert_ptr_nonnull(strstr(test_messages(), "it grows at any dt"));
        trl_context_clear_diagnostics(test_ctx);
    }
    line("rk4", schroedinger, "dt: {cfl: 1}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), sqrt(8) / (4 / 0.25), 1e-12);
    /* With kinetics at a point steps can resolve it, and damping bounds it. */
    line("euler", "a: {initial: 1, ddt: \"-3*b\"}, b: {initial: 1, ddt: \"3*a\"}", "dt: {cfl: 0.5}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 0.5 / 3, 1e-12);
    line("euler",
         "a: {initial: 1, ddt: \"laplacian(a) - 2*laplacian(b)\"}, "
         "b: {initial: 1, ddt: \"laplacian(b) + 2*laplacian(a)\"}",
         "dt: {cfl: 1}, steps: 2");
    ck_assert_double_eq_tol(first_dt(), 2 / (16 * (1 + 4.0)), 1e-12); /* 2 d/(d^2 + w^2), d = 16, w = 32 */
}
END_TEST

START_TEST(warns_of_fourth_order_and_of_stiff_kinetics)
{
    line("rk4", "u: {initial: \"0.1*sin(x)\", ddt: \"-laplacian(u) - laplacian(laplacian(u)) - u*cddx(u)\"}",
         "dt: 0.2, steps: 1");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert_ptr_nonnull(
        strstr(test_messages(), "by 'laplacian(laplacian(u))' in the equation of 'u': expect growth"));
    trl_context_clear_diagnostics(test_ctx);
    line("ssprk3", "a: {initial: 1, ddt: \"-1000*a\"}, b: {initial: 0, ddt: \"1000*a - b\"}", "dt: 0.003, steps: 1");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert_ptr_nonnull(strstr(test_messages(), "dt = 0.003 is above the stable 0.0025 of ssprk3"));
    ck_assert_ptr_nonnull(strstr(test_messages(), "'-1000*a' in the equation of 'a'"));
    trl_context_clear_diagnostics(test_ctx);
    line("ssprk3", "a: {initial: 1, ddt: \"-1000*a\"}, b: {initial: 0, ddt: \"1000*a - b\"}", "dt: 0.002, steps: 1");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert_str_eq(test_messages(), "");
    line("euler", "u: {initial: 1, ddt: \"-laplacian(laplacian(u))\"}", "dt: {cfl: 1}, steps: 1");
    ck_assert_double_eq_tol(first_dt(), 2 / (16 / pow(0.5, 4)), 1e-12);
}
END_TEST

/* Methods with implicit terms step the others explicitly: where there are none at all, too. */
START_TEST(warns_of_explicit_terms_beside_implicit_ones)
{
    static const struct {
        const char *method, *ddt;
        bool stable;
    } cases[] = {{"ark4", "\"laplacian(u)\"", false},
                 {"ark3", "{explicit: \"laplacian(u)\", implicit: \"-u\"}", false},
                 {"ark3", "{implicit: \"laplacian(u)\", explicit: \"-div(advective_flux(u, [1]))\"}", true},
                 {"beuler", "{explicit: \"laplacian(u)\", implicit: \"-u\"}", false},
                 {"beuler", "{implicit: \"laplacian(u)\", explicit: \"-div(advective_flux(u, [1]))\"}", true},
                 {"cn", "\"laplacian(u)\"", true},
                 {"esdirk4", "\"laplacian(u)\"", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char equations[200];
        snprintf(equations, sizeof equations, "u: {initial: \"sin(x)\", ddt: %s}", cases[i].ddt);
        line(cases[i].method, equations, "dt: 0.4, steps: 1");
        ck_ok(open_problem());
        ck_ok(trl_simulation_initialise(sim));
        if (cases[i].stable)
            ck_assert_str_eq(test_messages(), "");
        else
            ck_assert_ptr_nonnull(strstr(test_messages(), ", or let `implicit` of ddt have these terms"));
        trl_context_clear_diagnostics(test_ctx);
    }
}
END_TEST

/* Methods that take no term as implicit unless the deck says so name the first equation, once. */
START_TEST(warns_where_all_terms_are_explicit_by_themselves)
{
    static const struct {
        const char *method, *equations, *of; /* NULL: no warning */
    } cases[] = {{"ark3",
                  "w: {initial: 0, solve: \"w = u\"}, u: {initial: 1, ddt: \"-u\"}, v: {initial: 1, ddt: \"-v\"}",
                  "ark3 takes all of 'ddt' of 'u' as explicit, as no equation says which terms are implicit: use `ddt: "
                  "{explicit: ..., implicit: ...}` for stiff ones, or esdirk3,"},
                 {"ark4", "v: {initial: 1, ddt: \"-v\"}", "ark4 takes all of 'ddt' of 'v' as explicit"},
                 {"ark3", "u: {initial: 1, ddt: \"-u\"}, v: {initial: 1, ddt: {implicit: \"-v\"}}", NULL},
                 {"ark4", "w: {initial: 0, solve: \"w = 1\"}", NULL},
                 {"beuler", "u: {initial: 1, ddt: \"-u\"}", NULL},
                 {"esdirk3", "u: {initial: 1, ddt: \"-u\"}", NULL},
                 {"rk4", "u: {initial: 1, ddt: \"-u\"}", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const trl_diagnostic *said;
        line(cases[i].method, cases[i].equations, "dt: 0.1, steps: 2");
        ck_ok(open_problem());
        ck_assert_int_eq(trl_context_diagnostics(test_ctx, &said), cases[i].of ? 1 : 0);
        if (cases[i].of) ck_assert_msg(strstr(test_messages(), cases[i].of) != NULL, "%s", test_messages());
        ck_ok(trl_simulation_initialise(sim));
        ck_ok(trl_simulation_step(sim));
        ck_assert_int_eq(trl_context_diagnostics(test_ctx, &said), cases[i].of ? 1 : 0);
        trl_context_clear_diagnostics(test_ctx);
    }
}
END_TEST

/* A warning asks for no ghosts that the run does not need: an expression with sides of its own is exchanged, and read
 * one cell away. */
START_TEST(a_warning_needs_no_deeper_ghosts)
{
    const char *const sides = "boundary: {x-: {neumann: 0}, x+: {neumann: 0}}";
    new_deck();
    say("grid: {cells: [8], length: [8], patches: [8]}\n");
    say("expressions: {q: {formula: \"laplacian(u*u)\", %s}}\n", sides);
    say("equations: {u: {initial: \"sin(x)\", ddt: \"laplacian(sin(q))\", %s}}\n", sides);
    say("time: {method: euler, dt: 1e-3, steps: 1}\n");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert_str_eq(test_messages(), "");
}
END_TEST

/* The coefficient that varies is looked at before each step. */
START_TEST(cfl_follows_the_state_of_reactions_and_couplings)
{
    line("rk4", "u: {initial: \"1 + 0.1*sin(2*pi*x/8)\", ddt: \"-u*u*u\"}", "dt: {cfl: 0.5}, steps: 3");
    double first = first_dt();
    double largest = 1 + 0.1 * sin(acos(-1.0) * 7 / 16); /* the centre next to x = 2 */
    ck_assert_double_eq_tol(first, 0.5 * 2 / (3 * largest * largest), 1e-12);
    ck_ok(trl_simulation_step(sim));
    ck_assert_double_gt(trl_simulation_dt(sim), first);
    line("rk4",
         "u: {initial: \"sin(2*pi*x/8)\", ddt: \"(1 + t)*v\"}, v: {initial: 0, ddt: \"(2 + sin(x))*laplacian(u)\"}",
         "dt: {cfl: 0.5}, steps: 3");
    first = first_dt();
    ck_ok(trl_simulation_step(sim));
    ck_assert_double_eq_tol(trl_simulation_dt(sim), first / sqrt(1 + first), 1e-12);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, cfl_finds_velocity_and_diffusivity_in_the_equation);
    tcase_add_test(tc, cfl_knows_that_fourth_order_differences_are_steeper);
    tcase_add_test(tc, cfl_follows_named_expressions_and_collects_all_factors_in_front);
    tcase_add_test(tc, cfl_takes_the_larger_face_and_the_worst_cell);
    tcase_add_test(tc, speed_and_diffusivity_replace_what_is_found);
    tcase_add_test(tc, masked_cells_do_not_count);
    tcase_add_test(tc, refuses_a_step_that_nothing_bounds);
    tcase_add_test(tc, refuses_a_plugin_that_it_cannot_bound);
    tcase_add_test(tc, cfl_bounds_waves_by_their_speed);
    tcase_add_test(tc, refuses_oscillations_that_a_method_cannot_hold);
    tcase_add_test(tc, warns_of_fourth_order_and_of_stiff_kinetics);
    tcase_add_test(tc, warns_of_explicit_terms_beside_implicit_ones);
    tcase_add_test(tc, warns_where_all_terms_are_explicit_by_themselves);
    tcase_add_test(tc, a_warning_needs_no_deeper_ghosts);
    tcase_add_test(tc, cfl_follows_the_state_of_reactions_and_couplings);
    tcase_add_test(tc, refuses_a_dt_below_min_and_an_infinite_one);
    tcase_add_test(tc, terms_that_double_with_every_name_are_not_sought_for_ever);
    tcase_add_test(tc, warns_of_a_fixed_dt_beyond_the_stable_one_only);
    tcase_add_test(tc, warns_of_central_advection_with_a_method_that_cannot_hold_it);
    tcase_add_test(tc, the_last_step_lands_on_the_end);
    tcase_add_test(tc, a_step_that_nearly_fits_is_not_split);
    tcase_add_test(tc, time_is_no_running_sum);
    tcase_add_test(tc, steps_allocate_nothing_after_the_first);
    tcase_add_test(tc, not_even_the_first_run_of_a_program_allocates);
    tcase_add_test(tc, a_plugin_bounds_the_step_by_its_own_limit);
}

TRL_TEST_MAIN("time", add_tests)

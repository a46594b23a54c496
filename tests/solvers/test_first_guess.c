/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* First guesses of iterations: what the steps before teach about them saves iterations, is of accepted steps alone, and
 * does no harm where nothing can be learned. */
// ctest: np=1,3 timeout=120 sanitize=1
#include "run_fixture.h"

#define WAVES                                                                                 \
    "grid: {cells: [24, 20], length: [6.3, 6.3], periodic: [true, %s]}\nsolvers: {s: {%s}}\n" \
    "incompressible: {velocity: [u, v], pressure: p, density: '%s', solver: s}\nequations:\n" \
    "  u: {location: xface, initial: 'cos(x)*sin(y) + 0.4*sin(2*y)', boundary: %s,\n"         \
    "      ddt: '-div(advective_flux(u, [u, at(v, zedge)])) + 0.02*laplacian(u) + (%s)'}\n"   \
    "  v: {location: yface, initial: '-sin(x)*cos(y) + 0.3*sin(x)', boundary: %s,\n"          \
    "      ddt: '-div(advective_flux(v, [at(u, zedge), v])) + 0.02*laplacian(v)'}\n"          \
    "  rho: {initial: '2 + sin(x)*cos(y)', boundary: %s, ddt: '-div(advective_flux(rho, [u, v], vanleer))'}\n"

static const char cycles[] = "method: cg, preconditioner: multigrid";

static void open_flow(const char *solver, const char *density, const char *force, const char *time)
{
    open_text(WAVES "time: {%s, steps: 1000}\n", "true", solver, density, "{}", force, "{}", "{}", time);
}

static void open_channel(const char *time)
{
    open_text(WAVES "time: {%s, steps: 1000}\n", "false", cycles, "1",
              "{y-: {dirichlet: 0}, y+: {dirichlet: 'cos(t)'}}", "0.2*sin(t)",
              "{y-: {dirichlet: 0}, y+: {dirichlet: 0}}", "{y-: {neumann: 0}, y+: {neumann: 0}}", time);
}

enum { ROOM = 24 * 21, FIELDS = 4, CORRECTIONS = 24 };

typedef trl_array array_of(const trl_simulation *s, int field, int local_patch);

/* The values of a field on this rank to a row, or back. */
static void copy(array_of *array, int field, double row[ROOM], bool back)
{
    int n = 0;
    for (int p = 0; p < trl_simulation_layout(sim)->nlocal; ++p) {
        const trl_array a = array(sim, field, p);
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i, ++n) {
                double *at = (double *)a.at + trl_array_offset(&a, i, j, 0);
                *(back ? at : &row[n]) = *(back ? &row[n] : at);
            }
    }
    ck_ok(trl_simulation_fetched(sim));
}

static int64_t iterations_of_a_step(void)
{
    const int64_t before = trl_simulation_solver(sim, 0)->iterations;
    ck_ok(trl_simulation_step(sim));
    return trl_simulation_solver(sim, 0)->iterations - before;
}

/* Iterations of a step after so many, and of the same step by a run that resumes before it and knows nothing. Both come
 * to the same solution. */
static void compare_with_ignorance(int steps, int64_t taken[2])
{
    static double state[FIELDS][ROOM], now[ROOM], then[ROOM];
    for (int i = 1; i < steps; ++i) ck_ok(trl_simulation_step(sim));
    const double time = trl_simulation_time(sim), dt = trl_simulation_dt(sim);
    double control[TRL_CONTROLS];
    int n = 0; /* equations */
    while (n < trl_simulation_fields(sim) && trl_simulation_field(sim, n)->equation) ++n;
    trl_simulation_get_control(sim, control);
    for (int f = 0; f < n; ++f) copy(trl_simulation_array, f, state[f], false);
    taken[0] = iterations_of_a_step();
    copy(trl_simulation_array, 0, now, false);
    for (int f = 0; f < n; ++f) copy(trl_simulation_array, f, state[f], true);
    ck_ok(trl_simulation_resume(sim, steps - 1, time, dt));
    trl_simulation_set_control(sim, control);
    for (int i = 0; i < trl_simulation_carried(sim); ++i) ck_assert(!trl_simulation_carried_field(sim, i).known);
    taken[1] = iterations_of_a_step();
    copy(trl_simulation_array, 0, then, false);
    for (int i = 0; i < ROOM; ++i) ck_assert_double_eq_tol(now[i], then[i], 1e-6);
}

START_TEST(a_step_takes_fewer_iterations_than_one_that_knows_nothing)
{
    static const char *const times[] = {"method: ssprk3, dt: 0.02", "method: rk4, dt: {cfl: 0.5}",
                                        "method: ssprk2, dt: 0.02", "method: euler, dt: 5e-3",
                                        "method: {name: bs3, tolerance: {relative: 1e-6}, dt: {initial: 0.01}}"};
    int64_t taken[2];
    for (size_t i = 0; i < sizeof times / sizeof *times; ++i) {
        open_flow(cycles, "1", "0", times[i]);
        compare_with_ignorance(12, taken);
        ck_assert_msg(3 * taken[0] <= 2 * taken[1], "%s: %d of %d", times[i], (int)taken[0], (int)taken[1]);
        open_flow("method: pipelined_cg", "1 + 0.3*rho", "cos(3*t)*sin(x)", times[i]);
        compare_with_ignorance(12, taken);
        ck_assert_msg(4 * taken[0] <= 3 * taken[1], "density, %s: %d of %d", times[i], (int)taken[0], (int)taken[1]);
        open_channel(times[i]);
        compare_with_ignorance(12, taken);
        ck_assert_msg(3 * taken[0] <= 2 * taken[1], "channel, %s: %d of %d", times[i], (int)taken[0], (int)taken[1]);
    }
    close_problem();
}
END_TEST

/* Of equations that the deck solves, too, and of several unknowns that are solved for together. */
START_TEST(equations_of_the_deck_take_fewer_iterations)
{
    static const char *const solved[] = {"  psi: {solver: s, solve: 'laplacian(psi) - psi = -w'}\n",
                                         "  psi: {solver: s, solve: 'laplacian(psi) - psi + 0.3*chi = -w'}\n  chi: "
                                         "{solver: s, solve: 'laplacian(chi) - chi = psi + w'}\n"};
    static const char *const methods[] = {"cg", "gmres, preconditioner: multigrid"};
    int64_t taken[2];
    for (int i = 0; i < 2; ++i) {
        open_text("grid: {cells: [24, 20], periodic: [true, true]}\nsolvers: {s: {method: %s, iterations: 500}}\n"
                  "equations:\n  w: {initial: 'sin(2*pi*x)*cos(2*pi*y) + exp(-((x - 0.3)^2 + (y - 0.6)^2)/0.02)',\n"
                  "      ddt: '-div(advective_flux(w, [40*ddy(at(psi, node)), -40*ddx(at(psi, node))])) + "
                  "1e-3*laplacian(w)'}\n%stime: {method: ssprk3, dt: 0.01, steps: 1000}\n",
                  methods[i], solved[i]);
        compare_with_ignorance(12, taken);
        ck_assert_msg(4 * taken[0] <= 3 * taken[1], "%s: %d of %d", methods[i], (int)taken[0], (int)taken[1]);
    }
    close_problem();
}
END_TEST

/* A force that turns in each step, and grows: a guess that expects it to go on is worse than none. */
START_TEST(a_guess_that_is_worse_than_none_is_withdrawn)
{
    static const char sudden[] = "if(sin(157*t) > 0, 1, -1)*exp(20*t)*sin(x)*cos(y)";
    int forgotten = 0;
    open_flow(cycles, "1", sudden, "method: euler, dt: 0.02");
    for (int step = 0; step < 12; ++step) {
        ck_assert_int_le(iterations_of_a_step(), 6); /* as without one */
        forgotten += !trl_simulation_carried_field(sim, 0).known;
    }
    ck_assert_int_gt(forgotten, 0);
    close_problem();
}
END_TEST

/* Of each solve the last step's correction becomes the one before, whatever was tried in between. */
START_TEST(corrections_are_those_of_accepted_steps)
{
    static double before[CORRECTIONS][ROOM], after[ROOM];
    open_flow(cycles, "1", "9*sin(y)*exp(-((t - 0.3)/0.02)^2)",
              "method: {name: bs3, tolerance: {relative: 1e-4, absolute: 1e-4}, dt: {initial: 0.01}}");
    const int n = trl_simulation_carried(sim);
    ck_assert_int_eq(n, 2 * 4);
    for (int step = 1; step < 30; ++step) {
        for (int i = 0; i < n; ++i) copy(trl_simulation_carried_array, i, before[i], false);
        ck_ok(trl_simulation_step(sim));
        for (int i = 0; i < n; ++i) {
            ck_assert_int_eq(trl_simulation_carried_field(sim, i).known, step > i % 2);
            if (i % 2 == 0 || step == 1) continue;
            copy(trl_simulation_carried_array, i, after, false);
            for (int k = 0; k < ROOM; ++k) ck_assert_double_eq(after[k], before[i - 1][k]);
        }
    }
    ck_assert_int_gt(trl_simulation_rejected(sim), 0);
    close_problem();
}
END_TEST

START_TEST(nothing_is_kept_for_a_direct_solution)
{
    open_flow("method: direct", "1", "0", "method: ssprk3, dt: 0.02");
    ck_assert_int_eq(trl_simulation_carried(sim), 0);
    open_flow("method: auto", "1", "0", "method: ssprk3, dt: 0.02");
    ck_assert_int_eq(trl_simulation_carried(sim), 0);
    open_flow("method: auto", "1 + 0.3*rho", "0", "method: ssprk3, dt: 0.02");
    ck_assert_int_eq(trl_simulation_carried(sim), 3 * 3);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, a_step_takes_fewer_iterations_than_one_that_knows_nothing);
    tcase_add_test(tc, equations_of_the_deck_take_fewer_iterations);
    tcase_add_test(tc, a_guess_that_is_worse_than_none_is_withdrawn);
    tcase_add_test(tc, corrections_are_those_of_accepted_steps);
    tcase_add_test(tc, nothing_is_kept_for_a_direct_solution);
}

TRL_TEST_MAIN("first_guess", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Saddle points: without a word about methods they are solved in as many iterations on any mesh. */
// ctest: np=1,4
#include <string.h>

#include "multigrid_decks.h"

#define CLOSED(more) "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: " more "}}"

static const trl_solve_stats *solve_on(const char *text, int cells)
{
    open_text("grid: {cells: [%d, %d]}\n%s", cells, cells, text);
    run_to_end();
    return trl_simulation_solver(sim, 0);
}

/* Iterations of a solution are no more than `most` on two grids. */
static void solve_on_both(const char *text, int most)
{
    for (int i = 0; i < 2; ++i) {
        const trl_solve_stats *s = solve_on(text, i || TEST_SANITIZED ? 96 : 33);
        const double each = (double)s->iterations / (double)s->solves;
        ck_assert_str_eq(s->method, "bicgstab");
        ck_assert_str_eq(s->preconditioner, "multigrid");
        ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
        ck_assert_msg(each <= most, "%d iterations each of %s", (int)each, text);
    }
    close_problem();
}

static double error_of(int field)
{
    trl_field_stats stats;
    ck_ok(trl_simulation_field_stats(sim, field, &stats));
    return stats.error_linf;
}

/* Errors of all fields that have an exact solution fall by the square of the spacing. */
static void has_order_two(const char *text, int most, int fields)
{
    double error[2][4];
    for (int i = 0; i < 2; ++i) {
        const trl_solve_stats *s = solve_on(text, i ? 64 : 32);
        ck_assert_int_le(s->last_iterations, most);
        for (int k = 0; k < fields; ++k) error[i][k] = error_of(k);
    }
    for (int k = 0; k < fields; ++k)
        ck_assert_msg(error[0][k] > 3.5 * error[1][k], "field %d: errors %g, %g", k, error[0][k], error[1][k]);
    close_problem();
}

START_TEST(stokes_has_second_order)
{
    has_order_two(
        "equations:\n"
        "  u: {location: xface, exact: \"sin(pi*x)^2*sin(2*pi*y)\", solve: \"laplacian(u) - ddx(p) = "
        "2*pi^2*cos(2*pi*x)*sin(2*pi*y) - 4*pi^2*u0 + pi*sin(pi*x)*cos(pi*y)\", " CLOSED(
            "0") "}\n"
                 "  v: {location: yface, exact: \"-sin(2*pi*x)*sin(pi*y)^2\", solve: \"laplacian(v) - ddy(p) = "
                 "-2*pi^2*sin(2*pi*x)*cos(2*pi*y) - 4*pi^2*v0 + pi*cos(pi*x)*sin(pi*y)\", " CLOSED(
                     "0") "}\n"
                          "  p: {exact: \"cos(pi*x)*cos(pi*y)\", solve: \"ddx(u) + ddy(v) = 0\"}\n"
                          "expressions: {u0: \"sin(pi*x)^2*sin(2*pi*y)\", v0: \"-sin(2*pi*x)*sin(pi*y)^2\"}\n",
        8, 2);
}
END_TEST

START_TEST(mixed_poisson_has_second_order)
{
    has_order_two(
        "equations:\n"
        "  p: {exact: \"sin(pi*x)*sin(pi*y)\", solve: \"ddx(q) + ddy(r) = 2*pi^2*sin(pi*x)*sin(pi*y)\", " CLOSED(
            "0") "}\n"
                 "  q: {location: xface, solve: \"q + ddx(p) = 0\"}\n"
                 "  r: {location: yface, solve: \"r + ddy(p) = 0\"}\n",
        5, 1);
}
END_TEST

START_TEST(flows_take_no_more_iterations)
{
    static const char *const viscous[] = {"laplacian(u)",
                                          "laplacian(v)", /* Stokes */
                                          "laplacian(u) - 1e4*u",
                                          "laplacian(v) - 1e4*v", /* in a step */
                                          "2*ddx(mu*ddx(u)) + ddy(mu*(ddy(u) + ddx(v)))",
                                          "2*ddy(mu*ddy(v)) + ddx(mu*(ddy(u) + ddx(v)))",
                                          "0.05*laplacian(u) - u*at(ddx(u), xface) - at(v, xface)*at(ddy(u), xface)",
                                          "0.05*laplacian(v) - at(u, yface)*at(ddx(v), yface) - v*at(ddy(v), yface)"};
    static const int most[] = {9, 8, 14, 20};
    char text[1200];
    for (int k = 0; k < 4; ++k) {
        if (!test_has(k, TEST_SANITIZED ? 3 : 1)) continue;
        snprintf(text, sizeof text,
                 "expressions: {mu: \"exp(3*sin(6*x)*sin(5*y))\"}\nequations:\n"
                 "  u: {location: xface, solve: \"%s - ddx(p) = 0\", " CLOSED(
                     "\"sin(pi*x)^2\"") "}\n"
                                        "  v: {location: yface, solve: \"%s - ddy(p) = 0\", " CLOSED(
                                            "0") "}\n"
                                                 "  p: {solve: \"ddx(u) + ddy(v) = 0\"}\n",
                 viscous[2 * k], viscous[2 * k + 1]);
        solve_on_both(text, most[k]);
    }
}
END_TEST

/* Fields of waves in first-order form, of any step, and pressures in a solid. */
START_TEST(waves_and_solids_take_no_more_iterations)
{
#define BUMP "exp(-100*((x - 0.5)^2 + (y - 0.5)^2))"
    static const struct {
        const char *text;
        int most;
    } cases[] = {
        {"equations:\n  p: {ddt: \"-100*(ddx(u) + ddy(v))\", initial: \"" BUMP "\", " FREE "}\n"
         "  u: {location: xface, initial: 0, ddt: \"-100*ddx(p)\", " CLOSED(
             "0") "}\n"
                  "  v: {location: yface, initial: 0, ddt: \"-100*ddy(p)\", " CLOSED(
                      "0") "}\n"
                           "time: {method: cn, dt: 1e-3, steps: 4}\n",
         5},
        {"equations:\n  p: {ddt: \"-(cddx(u) + cddy(v))\", initial: \"" BUMP "\", " FREE "}\n"
         "  u: {initial: 0, ddt: \"-cddx(p)\", " CLOSED("0") "}\n"
                                                             "  v: {initial: 0, ddt: \"-cddy(p)\", " CLOSED(
                                                                 "0") "}\n"
                                                                      "time: {method: cn, dt: 0.1, steps: 4}\n",
         14},
        {"equations:\n  e: {ddt: \"ddx(k) - ddy(h) - 100*e\", initial: \"" BUMP
         "\", " CLOSED("0") "}\n"
                            "  h: {location: yface, initial: 0, ddt: \"-ddy(e)\"}\n  k: {location: xface, initial: 0, "
                            "ddt: \"ddx(e)\"}\n"
                            "time: {method: beuler, dt: 5e-2, steps: 4}\n",
         4},
        {"equations:\n  h: {ddt: \"-ddx(u) - ddy(v)\", initial: \"" BUMP "\", " FREE "}\n"
         "  u: {location: xface, initial: 0, ddt: \"0.01*laplacian(u) - ddx(h) + 3*at(v, xface)\", " CLOSED(
             "0") "}\n"
                  "  v: {location: yface, initial: 0, ddt: \"0.01*laplacian(v) - ddy(h) - 3*at(u, yface)\", " CLOSED(
                      "0") "}\n"
                           "time: {method: beuler, dt: 0.1, steps: 4}\n",
         5},
        {"equations:\n  u: {location: xface, ddt: \"ddx(p) + ddy(r)\", initial: \"" BUMP "\", " CLOSED(
             "0") "}\n"
                  "  v: {location: yface, initial: 0, ddt: \"ddx(r) + ddy(q)\", " CLOSED(
                      "0") "}\n"
                           "  p: {initial: 0, ddt: \"4*ddx(u) + 2*ddy(v)\"}\n  q: {initial: 0, ddt: \"2*ddx(u) + "
                           "4*ddy(v)\"}\n"
                           "  r: {location: node, initial: 0, ddt: \"ddy(u) + ddx(v)\"}\ntime: {method: beuler, dt: "
                           "5e-2, steps: 3}\n",
         9},
        {"equations:\n"
         "  u: {location: xface, solve: \"3*d2dx(u) + d2dy(u) + 2*ddx(ddy(v)) - ddx(p) = 0\", " CLOSED(
             "0") "}\n"
                  "  v: {location: yface, solve: \"3*d2dy(v) + d2dx(v) + 2*ddy(ddx(u)) - ddy(p) = 1\", " CLOSED(
                      "0") "}\n"
                           "  p: {solve: \"1e-3*p + ddx(u) + ddy(v) - 1e-3*laplacian(p) = 0\", " CLOSED("0") "}\n",
         9}};
    for (int k = 0; k < (int)(sizeof cases / sizeof *cases); ++k)
        if (test_has(k, TEST_SANITIZED ? 4 : 1)) solve_on_both(cases[k].text, cases[k].most);
}
END_TEST

/* Reissner's thin plate, whose shear is that of a constraint, but for its large diagonal. */
START_TEST(plates_take_more)
{
    const trl_solve_stats *s = solve_on(
        "equations:\n  w: {solve: \"1e4*(laplacian(w) - ddx(r) - ddy(s)) = -1\", " CLOSED(
            "0") "}\n"
                 "  r: {location: xface, solve: \"laplacian(r) + 0.3*ddx(ddx(r) + ddy(s)) + 1e4*(ddx(w) - r) = "
                 "0\", " CLOSED("0") "}\n"
                                     "  s: {location: yface, solve: \"laplacian(s) + 0.3*ddy(ddx(r) + ddy(s)) + "
                                     "1e4*(ddy(w) - s) = 0\", " CLOSED("0") "}\n",
        64);
    ck_assert_str_eq(s->preconditioner, "multigrid");
    ck_assert_int_le(s->last_iterations, 45);
    close_problem();
}
END_TEST

/* Where steps are so small that pairs hardly count, jacobi has iterations enough; what is coupled by values, or at one
 * place, is no saddle point. */
START_TEST(others_are_none)
{
    solve_on("equations:\n  p: {ddt: \"-(ddx(u) + ddy(v))\", initial: \"" BUMP "\", " FREE "}\n"
             "  u: {location: xface, initial: 0, ddt: \"-ddx(p)\", " CLOSED(
                 "0") "}\n"
                      "  v: {location: yface, initial: 0, ddt: \"-ddy(p)\", " CLOSED(
                          "0") "}\ntime: {method: beuler, dt: 1e-3, steps: 2}\n",
             48);
    ck_assert_str_eq(trl_simulation_solver(sim, 0)->preconditioner, "jacobi");
    ck_assert_int_le(trl_simulation_solver(sim, 0)->last_iterations, 5);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, stokes_has_second_order);
    tcase_add_test(tc, mixed_poisson_has_second_order);
    tcase_add_test(tc, flows_take_no_more_iterations);
    tcase_add_test(tc, waves_and_solids_take_no_more_iterations);
    tcase_add_test(tc, plates_take_more);
    tcase_add_test(tc, others_are_none);
}

TRL_TEST_MAIN("saddle points", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Multigrid where coefficients jump, and where they have boundary values of their own. */
#include "run_fixture.h"

/* Where coefficients jump, the equation of a coarser grid is one of other coefficients, so cycles of it alone lose more
 * than they gain: coarser grids have entries there, whatever smooths the first one. */
START_TEST(colours_gain_where_coefficients_jump)
{
    static const char *const ways[] = {"method: multigrid", "method: cg, preconditioner: multigrid"};
    static const char *const smoothers[] = {"red_black", "line"}, *const jumps[] = {"1", "30", "1e3", "1e6"};
    static const char *const sides[] = {"x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}",
                                        "x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}, "
                                        "z-: {neumann: 0}, z+: {neumann: 0}"};
    static const int most[2][2] = {{20, 20}, {13, 12}}; /* by ways and smoothers; beside conjugate gradients coarser */
    const int more = 30;                                /* grids have the equation up to jumps of 100 */
    for (int k = 0; k < 2 * 2 * 2 * 2 * 4; ++k) {
        const int way = k & 1, smoother = k >> 1 & 1, mask = k >> 2 & 1, flat = k >> 3 & 1, jump = k >> 4;
        if (!test_has(way + smoother + mask + flat + jump, TEST_SANITIZED ? 4 : 1)) continue;
        open_text("grid: {cells: %s}\nexpressions: {k: \"if(abs(x-0.45) < 0.22 and abs(y-0.45) < 0.22, %s, 1)\"}\n"
                  "equations: {p: {initial: 0, solve: \"div(harmonic(k, faces)*grad(p)) = 1\", solver: s, boundary: "
                  "{%s}%s}}\nsolvers: {s: {%s, smoother: %s, tolerance: 1e-7}}\n",
                  flat ? "[48, 41]" : "[16, 15, 14]", jumps[jump], sides[!flat],
                  mask ? ", mask: \"(x-0.8)^2 + (y-0.8)^2 > 0.01\"" : "", ways[way], smoothers[smoother]);
        const trl_solve_stats *s = trl_simulation_solver(sim, 0);
        ck_assert_msg(s->last_iterations <= (jump == 1 && way ? more : most[way][smoother]),
                      "%s by %s, %s %s, jump of %s: %d iterations", ways[way], smoothers[smoother],
                      flat ? "2-D" : "3-D", mask ? "with a mask" : "", jumps[jump], s->last_iterations);
        ck_assert_msg(jump == 0 || strcmp(s->method, way ? "cg" : "multigrid") == 0, "%s solved it", s->method);
    }
    close_problem();
}
END_TEST

/* Coefficients with boundary values of their own: a row beside a side has what they are there, the diagonal, too; and
 * those that nothing changes are formulas like others. */
START_TEST(coefficients_may_have_boundary_values)
{
    static const char *const formulas[] = {"max(1, 10*x)", "if(x > 0.5, 10, 1)", "max(1, 10*T)"};
    static const char *const smoothers[] = {"chebyshev", "line"};
    for (int k = 0; k < 3 * 2 * 2; ++k) {
        const int beyond = k % 2 ? 40 : 100;
        if (!test_has(k % 2 + k / 2 % 2 + k / 4, TEST_SANITIZED ? 2 : 1)) continue;
        open_text("grid: {cells: [32, 30]}\nexpressions: {k: {formula: \"%s\", boundary: {x-: {neumann: 0}, x+: "
                  "{dirichlet: %d}, y-: {neumann: 0}, y+: {neumann: 0}}}}\nequations:\n"
                  "  T: {initial: x, ddt: 1, boundary: {}}\n"
                  "  p: {solve: \"div(k*grad(p)) = 1\", solver: s, boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 1}, "
                  "y-: {dirichlet: 0}, y+: {neumann: 0}}}\n"
                  "solvers: {s: {method: cg, preconditioner: multigrid, smoother: %s}}\n"
                  "time: {method: euler, dt: 0.1, steps: 1}\n",
                  formulas[k / 4], beyond, smoothers[k / 2 % 2]);
        ck_assert_msg(trl_simulation_solver(sim, 0)->last_iterations <= 10, "k = %s, beside it %d, %s: %d iterations",
                      formulas[k / 4], beyond, smoothers[k / 2 % 2], trl_simulation_solver(sim, 0)->last_iterations);
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, colours_gain_where_coefficients_jump);
    tcase_add_test(tc, coefficients_may_have_boundary_values);
}

TRL_TEST_MAIN("coefficients", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sparse factors of the whole matrix: by name, and where iterations of auto do not lead to the solution. */
// ctest: np=1,3 needs=klu
#include <math.h>
#include <string.h>

#include "multigrid_decks.h"

/* A linear system is solved at once, but for what rounding leaves. */
static void is_solved_at_once(const char *equations, const char *grid)
{
    open_text("grid: {%s}\nequations:\n%ssolvers: {s: {method: lu, tolerance: 1e-9}}\n", grid, equations);
    const trl_solve_stats *s = trl_simulation_solver(sim, trl_simulation_solvers(sim) - 1);
    ck_assert_str_eq(s->method, "sparse factors");
    ck_assert_double_le(s->last_residual, 1e-9 * s->last_reference);
    ck_assert_msg(!s->linear || s->last_iterations <= 3, "%d iterations of %s", s->last_iterations, equations);
    ck_assert_int_le(s->last_newton, 8);
}

START_TEST(factors_solve_what_rows_reach)
{
    static const char square[] = "cells: [19, 16]", wraps[] = "cells: [19, 16], periodic: [true, false]",
                      narrow[] = "cells: [3, 17], periodic: [true, true]", box[] = "cells: [7, 6, 5]";
    static const struct {
        const char *grid, *equations;
    } cases[] = {
        {square, "  p: {solve: \"laplacian(p) + 300*p + 5*cddx(p) = sin(9*x)\", solver: s, " ZERO "}\n"},
        {square, "  p: {solve: \"laplacian(laplacian(p)) = 1 + x\", solver: s, " ZERO "}\n"},
        {square, "  p: {solve: \"laplacian(p) - p = y\", solver: s, location: node, " ZERO "}\n"},
        {square, "  p: {solve: \"laplacian(p) - p^3 = 1\", solver: s, " ZERO ", mask: \"(x - 0.3)^2 > 0.02\"}\n"},
        {square, "  p: {solve: \"laplacian(p) = x - 0.5\", solver: s, " FREE "}\n"},
        {square, "  p: {solve: \"div((1 + y)*grad(p)) = at(q, xface)\", solver: s, location: xface, " ZERO "}\n"
                 "  q: {solve: \"laplacian(q) + at(p, cell) = 1\", solver: s, boundary: {x-: {neumann: 0}, x+: "
                 "{neumann: 1}, y-: {neumann: 0}, y+: {robin: {a: 1, b: 1, c: x}}}}\n"},
        {wraps, "  p: {solve: \"laplacian(p) + 90*q = sin(2*pi*x)\", solver: s, boundary: {y-: {dirichlet: 0}, y+: "
                "{neumann: 0}}}\n"
                "  q: {solve: \"laplacian(laplacian(q)) - 90*p = 1\", solver: s, boundary: {y-: {neumann: 0}, y+: "
                "{dirichlet: x}}}\n"},
        {wraps, "  p: {solve: \"div([exp(sin(6*x))*ddx(p), ddy(p)]) = cos(2*pi*x)\", solver: s, boundary: {y-: "
                "{neumann: 0}, y+: {neumann: 0}}}\n"},
        {narrow, "  p: {solve: \"laplacian(p) - 0.1*p + 3*cddx(p) = x*y\", solver: s}\n"},
        {box, "  p: {solve: \"laplacian(p) + 40*p - 9*cddz(p) = x*y*z\", solver: s, boundary: {x-: {neumann: 0}, x+: "
              "{dirichlet: 0}, y-: {neumann: 0}, y+: {neumann: 0}, z-: {dirichlet: 1}, z+: {neumann: 0}}}\n"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
        if (test_has((int)k, TEST_SANITIZED ? 3 : 1)) is_solved_at_once(cases[k].equations, cases[k].grid);
    close_problem();
}
END_TEST

/* Waves that are damped little, which neither cycles nor jacobi's iterations find; and a saddle point whose unknowns
 * are all at cells. */
START_TEST(auto_goes_on_with_factors)
{
    static const char *const cases[] = {"  p: {solve: \"laplacian(p) + 2500*p + 60*q = sin(9*x)\", " ZERO "}\n"
                                        "  q: {solve: \"laplacian(q) + 2500*q - 60*p = 0\", " ZERO "}\n",
                                        "  p: {solve: \"q + 0.1*laplacian(p) + cddx(q) - 3*cddy(p) = 1\", " ZERO "}\n"
                                        "  q: {solve: \"laplacian(laplacian(q)) - 4e5*q - 2000*p = x\", " ZERO "}\n"};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        open_text("grid: {cells: [48, 48]}\nequations:\n%s", cases[k]);
        const trl_solve_stats *s = trl_simulation_solver(sim, 0);
        ck_assert_str_eq(s->method, "sparse factors");
        ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
        ck_assert_msg(strstr(test_messages(), "method lu, under 'solvers', begins with these"), "%s", test_messages());
    }
    close_problem();
}
END_TEST

START_TEST(what_oscillates_is_told)
{
    open_text("grid: {cells: [24, 20]}\nequations:\n"
              "  p: {solve: \"laplacian(p)/480 - div(advective_flux(p, [at(y, xface), at(0.5-x, yface)])) = 1\", " ZERO
              "}\n");
    ck_assert_msg(strstr(test_messages(), "take fluxes from upwind"), "%s", test_messages());
    close_problem();
}
END_TEST

#define WALLS "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0.5}}"

/* The null space of the transposed matrix need not be constants: a wind in a closed box has it at one wall. Masks leave
 * out velocities, but not the pressure; and units may be any. */
START_TEST(borders_and_scales_do)
{
    is_solved_at_once(
        "  g: {initial: \"cos(pi*x)*cos(pi*y)\", solve: \"g = cos(pi*x)*cos(pi*y)\", " FREE "}\n"
        "  p: {solve: \"laplacian(p) + 100*cddx(p)*(1+y) = laplacian(g) + 100*cddx(g)*(1+y)\", solver: s, "
        "initial: 1, " FREE "}\n",
        "cells: [32, 28]");
    for (int k = 0; k < 2; ++k) {
        char text[900];
        snprintf(text, sizeof text,
                 "  u: {location: xface, solve: \"%s*laplacian(u) - ddx(p) = sin(5*y)\", solver: s, " WALLS "%s}\n"
                 "  v: {location: yface, solve: \"%s*laplacian(v) - ddy(p) = cos(4*x)\", solver: s, " ZERO "%s}\n"
                 "  p: {solve: \"ddx(u) + ddy(v) = 0\", solver: s, initial: 7}\n",
                 k ? "1e9" : "1", k ? "" : ", mask: \"abs(x - 0.5) > 0.2 or abs(y - 0.5) > 0.2\"", k ? "1e9" : "1",
                 k ? "" : ", mask: \"abs(x - 0.5) > 0.2 or abs(y - 0.5) > 0.2\"");
        is_solved_at_once(text, "cells: [20, 16]");
    }
    close_problem();
}
END_TEST

/* Means of the first guess stay in all steps, where what is solved beside has points on sides. */
START_TEST(means_stay_in_steps)
{
    static const char *const methods[] = {"auto", "lu", "gmres"};
    for (int k = 0; k < 3; ++k) {
        open_text("grid: {cells: [8]}\nequations:\n  w: {ddt: \"1\", initial: 0}\n"
                  "  q: {location: xface, solve: \"q + ddx(p) = x*t\", solver: s, "
                  "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}}}\n"
                  "  p: {solve: \"ddx(q) = 0\", solver: s, initial: 3}\n"
                  "solvers: {s: {method: %s}}\ntime: {method: euler, dt: 0.5, steps: 4}\n",
                  methods[k]);
        run_to_end();
        trl_gidx n[3];
        const double *p = values_of("p", n);
        double sum = 0;
        for (int i = 0; i < 8; ++i) sum += p[i];
        ck_assert_double_eq_tol(sum / 8, 3, 1e-9);
        ck_assert_double_eq_tol(p[7] - p[0], 0.875, 1e-6); /* 2 x over the faces */
    }
    close_problem();
}
END_TEST

/* A step finds factors anew where the operator has changed, and only there. */
START_TEST(factors_follow_the_operator)
{
    for (int k = 0; k < 2; ++k) {
        open_text("grid: {cells: [24, 20]}\n"
                  "equations:\n  p: {solve: \"laplacian(p) + %s*p = cos(20*t)\", solver: s, " ZERO "}\n"
                  "  c: {initial: 0, ddt: \"p\"}\n"
                  "solvers: {s: {method: lu}}\ntime: {method: euler, dt: 0.01, steps: 12}\n",
                  k ? "(100 + 300*t)" : "100");
        run_to_end();
        const trl_solve_stats *s = trl_simulation_solver(sim, 0);
        ck_assert_int_eq(s->solves, 13);
        ck_assert_int_le(s->iterations, 2 * s->solves);
        ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
    }
    close_problem();
}
END_TEST

static void is_refused(const char *equation, const char *words)
{
    new_deck();
    say("grid: {cells: [12, 10]}\nequations:\n%ssolvers: {s: {method: lu}}\n", equation);
    trl_err err = open_problem();
    if (err == TRL_OK) err = trl_simulation_initialise(sim);
    ck_assert_int_ne(err, TRL_OK);
    ck_assert_msg(strstr(test_messages(), words), "%s", test_messages());
    close_problem();
}

START_TEST(what_has_no_factors_is_refused)
{
    is_refused("  p: {solve: \"laplacian(p) - integral(p) = x\", solver: s, " ZERO "}\n", "sums over all points");
    is_refused("  p: {solve: \"laplacian(p) + laplacian(q) = x\", solver: s, " ZERO "}\n"
               "  q: {solve: \"2*laplacian(p) + 2*laplacian(q) = y\", solver: s, " ZERO "}\n",
               "singular");
    is_refused("  p: {solve: \"laplacian(p) + q - p = cos(pi*x)\", solver: s, " FREE "}\n"
               "  q: {solve: \"laplacian(q) + 2*(p - q) = cos(pi*y)\", solver: s, " FREE "}\n",
               "singular");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, factors_solve_what_rows_reach);
    tcase_add_test(tc, auto_goes_on_with_factors);
    tcase_add_test(tc, what_oscillates_is_told);
    tcase_add_test(tc, borders_and_scales_do);
    tcase_add_test(tc, means_stay_in_steps);
    tcase_add_test(tc, factors_follow_the_operator);
    tcase_add_test(tc, what_has_no_factors_is_refused);
}

TRL_TEST_MAIN("lu", add_tests)

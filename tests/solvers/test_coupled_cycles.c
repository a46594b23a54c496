/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Multigrid for unknowns that are coupled: cycles take no more iterations on finer grids, whatever couples them. */
// ctest: np=1
#include <string.h>

#include "multigrid_decks.h"

typedef struct coupled {
    const char *p, *q, *r; /* left sides; r NULL: two unknowns */
    int most;              /* iterations */
} coupled;

static void write_equations(const coupled *c, const char *boundary, char *text, size_t size)
{
    int n = snprintf(text, size,
                     "  p: {initial: 0, solve: \"%s = sin(9*x)\", solver: s, %s}\n"
                     "  q: {initial: 0, solve: \"%s = 1\", solver: s, %s}\n",
                     c->p, boundary, c->q, boundary);
    if (c->r)
        snprintf(text + n, size - (size_t)n, "  r: {initial: 0, solve: \"%s = y\", solver: s, %s}\n", c->r, boundary);
}

/* Iterations on two grids. Returns why coarser grids have entries, or NULL. */
static const char *solve_on_both(const coupled *c, const char *boundary, const char *more, const char *preconditioner)
{
    const char *entries = NULL;
    int taken[2];
    char text[1200], all[1600];
    write_equations(c, boundary, text, sizeof text);
    snprintf(all, sizeof all, "%s%s", more, text);
    for (int i = 0; i < 2; ++i) {
        const trl_solve_stats *s = solve(all, i ? 120 : 40, "{}");
        ck_assert_str_eq(s->preconditioner, preconditioner);
        ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
        taken[i] = s->last_iterations;
        entries = s->entries;
    }
    ck_assert_msg(taken[0] <= c->most && taken[1] <= c->most, "%s: %d iterations, and %d on a finer grid", c->p,
                  taken[0], taken[1]);
    return entries;
}

/* As in diffusion of waves (Fourier's in time), in exchange between two media, and where each diffuses along what the
 * other does. */
START_TEST(blocks_stand_any_coupling)
{
    static const coupled cases[] = {
        {"laplacian(p) + 20*q", "laplacian(q) - 20*p", NULL, 7},
        {"laplacian(p) + 75*q", "laplacian(q) - 75*p", NULL, 7},
        {"laplacian(p) + 500*q", "laplacian(q) - 500*p", NULL, 7},
        {"laplacian(p) + 1e6*q", "laplacian(q) - p", NULL, 10}, /* in other units */
        {"laplacian(p) + 0.001*laplacian(q)", "laplacian(q) - 1000*laplacian(p)", NULL, 7},
        {"laplacian(p) + 1500*(1 + x)*q", "laplacian(q) - 1500*(1 + x)*p", NULL, 7},
        {"laplacian(p) + 1e5*(q - p)", "0.1*laplacian(q) + 1e5*(p - q)", NULL, 9},
        {"laplacian(p) + 1e3*(1 + y)*(q - p)", "laplacian(q) + 1e4*(p - q)", NULL, 9},
        {"laplacian(p) + 10*laplacian(q)", "laplacian(q) - 10*laplacian(p)", NULL, 7},
        {"laplacian(p) + 300*q - 100*r", "laplacian(q) - 300*p + 50*r", "laplacian(r) + 100*p - 50*q", 8},
        {"laplacian(p) + 900*(q - p)", "laplacian(q) + 900*(p - q) + 500*(r - q)", "laplacian(r) + 500*(q - r)", 9},
        {"laplacian(p) + 300*q - p^3", "laplacian(q) - 300*p*(1 + q^2)", NULL, 9}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
        if (test_has((int)k, TEST_SANITIZED ? 4 : 1)) solve_on_both(&cases[k], ZERO, "", "multigrid");
    close_problem();
}
END_TEST

/* At points that a mask leaves out there is nothing to be coupled with. */
START_TEST(blocks_leave_out_what_masks_do)
{
    static const coupled turning = {"laplacian(p) + 75*q", "laplacian(q) - 75*p", NULL, 12};
    solve_on_both(&turning, ZERO ", mask: \"(x - 0.3)^2 > 0.02\"", "", "multigrid");
    solve(/* one has points that the other has not */
          "  p: {initial: 0, solve: \"laplacian(p) + 75*q = 1\", solver: s, " ZERO ", mask: \"x > 0.3\"}\n"
          "  q: {initial: 0, solve: \"laplacian(q) - 75*p = 1\", solver: s, " ZERO ", mask: \"y < 0.6\"}\n",
          64, "{}");
    ck_assert_str_eq(trl_simulation_solver(sim, 0)->preconditioner, "multigrid");
    ck_assert_int_le(trl_simulation_solver(sim, 0)->last_iterations, 15);
    close_problem();
}
END_TEST

/* Unknowns at two places, and such as are read by a block but read nothing of it: among more than four. */
START_TEST(blocks_are_of_what_needs_each_other)
{
    static const char *const equations =
        "  p: {initial: 0, solve: \"laplacian(p) + 200*q + 0.2*at(r, cell) = 1\", solver: s, " ZERO "}\n"
        "  q: {initial: 0, solve: \"laplacian(q) - 200*p + v = 1\", solver: s, " ZERO "}\n"
        "  r: {location: node, initial: 0, solve: \"laplacian(r) + at(p, node) = 1\", solver: s, " ZERO "}\n"
        "  u: {initial: 0, solve: \"laplacian(u) + 1e5*(v - u) + 0.2*at(r, cell) = 1\", solver: s, " ZERO "}\n"
        "  v: {initial: 0, solve: \"laplacian(v) + 1e5*(u - v) = x\", solver: s, " ZERO "}\n";
    for (int i = 0; i < 2; ++i) {
        const trl_solve_stats *s = solve(equations, i ? 96 : 40, "{}");
        ck_assert_str_eq(s->preconditioner, "multigrid");
        ck_assert_int_le(s->last_iterations, 9);
    }
    close_problem();
}
END_TEST

/* Coarser grids have the entries of each unknown's own operator where coefficients jump ten thousandfold, or a wind
 * blows. */
START_TEST(entries_are_of_each_unknown)
{
    static const char *const jump =
        "  k: {initial: 1, solve: \"k = if((x - 0.5)^2 + (y - 0.5)^2 < 0.06, 1e4, 1)\", " FREE "}\n";
    static const coupled jumps[] = {
        {"div(harmonic(k, faces)*grad(p)) - 2*p + 3*q", "div(harmonic(k, faces)*grad(q)) - 5*q - p", NULL, 8},
        {"div(harmonic(k, faces)*grad(p)) - 2*p + 20*q^2", "div(harmonic(k, faces)*grad(q)) - 5*q - p^3 - p", NULL, 12},
        {"div(harmonic(k, faces)*grad(p)) - 2*p + 50*q", "div(harmonic(k, faces)*grad(q)) - 50*p + r",
         "laplacian(r) - r + q", 12}};
    static const coupled wind = {"laplacian(p) - div(advective_flux(p, [200, 100], upwind)) + q",
                                 "laplacian(q) - div(advective_flux(q, [-150, 100], upwind)) - p", NULL, 15};
    for (size_t k = 0; k < sizeof jumps / sizeof *jumps; ++k)
        if (test_has((int)k, TEST_SANITIZED ? 3 : 1))
            ck_assert_ptr_nonnull(strstr(solve_on_both(&jumps[k], ZERO, jump, "multigrid"), "its diagonal differs"));
    ck_assert_ptr_nonnull(strstr(solve_on_both(&wind, ZERO, "", "multigrid"), "its first derivatives"));
    close_problem();
}
END_TEST

/* Where unknowns are coupled faster than a wind crosses the domain coarser grids have the equation, which couples them,
 * else entries, which stand the wind. */
START_TEST(winds_are_beside_couplings)
{
#define WIND(u, v, how) "0.01*laplacian(" u ") - div(advective_flux(" u ", [" v "]" how "))"
    static const coupled cases[] = {
        {WIND("p", "1, 0.5", ", upwind") " + 100*(q - p)", "0.01*laplacian(q) + 100*(p - q)", NULL, 14},
        {WIND("p", "1, 0.5", "") " + 100*q", WIND("q", "-0.6, 0.3", "") " - 100*p", NULL, 8},
        {WIND("p", "1, 0.5", "") " + 0.1*q", WIND("q", "-0.6, 0.3", "") " - 0.1*p", NULL, 10},
        {WIND("p", "1, 0.5", ", upwind") " + q", WIND("q", "-0.6, 0.3", ", upwind") " - p", NULL, 12}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
        if (test_has((int)k, TEST_SANITIZED ? 4 : 1))
            ck_assert_int_eq(solve_on_both(&cases[k], ZERO, "", "multigrid") != NULL, k >= 2);
    close_problem();
}
END_TEST

/* An unknown may be free up to a constant in its own equation, where coefficients jump, as others tell it. */
START_TEST(constants_of_one_unknown_are_told_by_others)
{
    static const char *const jump =
        "  k: {initial: 1, solve: \"k = if((x - 0.5)^2 + (y - 0.5)^2 < 0.06, 1000, 1)\", " FREE "}\n";
    static const coupled free = {"div(k*grad(p)) + q", "div(k*grad(q)) - p", NULL, 15};
    solve_on_both(&free, FREE, jump, "multigrid");
    close_problem();
}
END_TEST

/* Conditions that read an unknown, or change along a side, may have no direct solution. */
START_TEST(conditions_couple)
{
    static const char *const sides[] = {
        "boundary: {x-: {robin: {a: \"1 + y\", b: 1, c: 0}}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}",
        "boundary: {x-: {dirichlet: 0}, x+: {robin: {a: 1, b: 1, c: \"5*q\"}}, y-: {neumann: 0}, y+: {dirichlet: 0}}",
        "boundary: {x-: {dirichlet: \"0.5*q\"}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {dirichlet: \"sin(x)\"}}",
        "boundary: {x-: {dirichlet: 0}, x+: {neumann: \"-3*p\"}, y-: {neumann: 0}, y+: {dirichlet: 0}}"};
    char text[800];
    for (size_t k = 0; k < sizeof sides / sizeof *sides; ++k) {
        snprintf(text, sizeof text,
                 "  p: {initial: 0, solve: \"laplacian(p) = 1\", solver: s, %s}\n"
                 "  q: {initial: 0, solve: \"laplacian(q) = x\", solver: s, boundary: {x-: {dirichlet: 0}, x+: {robin: "
                 "{a: 1, b: 1, c: \"2*p\"}}, y-: {neumann: 0}, y+: {dirichlet: 0}}}\n",
                 sides[k]);
        const trl_solve_stats *s = solve(text, 100, "{}");
        ck_assert_msg(s->direct || strcmp(s->preconditioner, "multigrid") == 0, "%s: %s", sides[k], s->preconditioner);
        ck_assert_msg(s->last_iterations <= 11, "%s: %d iterations", sides[k], s->last_iterations);
    }
    close_problem();
}
END_TEST

/* Equations of n unknowns that need each other: of each its two neighbours in a ring with both signs, or all others. */
static void write_many(int n, bool all, double rate, const char *boundary, char *text, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < n; ++i) {
        at += (size_t)snprintf(text + at, size - at, "  p%d: {initial: 0, solve: \"%g*laplacian(p%d)", i,
                               i % 2 ? 1 : 0.1, i);
        for (int j = 0; j < n && all; ++j)
            at += (size_t)snprintf(text + at, size - at, " + %g*(p%d - p%d)", rate * (i + j), j, i);
        if (!all)
            at +=
                (size_t)snprintf(text + at, size - at, " + %g*p%d - %g*p%d", rate, (i + 1) % n, rate, (i + n - 1) % n);
        at += (size_t)snprintf(text + at, size - at, " = %s\", solver: s, %s}\n", i % 3 ? "sin(9*x)" : "y", boundary);
    }
}

/* Of many there are factors in place of inverses. */
START_TEST(blocks_are_of_many_unknowns)
{
    static const struct {
        int n;
        bool all;
        double rate;
        int most;
    } cases[] = {{6, false, 1, 6},   {6, false, 1000, 6}, {6, false, 1e5, 6}, {6, true, 1000, 10},
                 {9, false, 300, 8}, {9, true, 1e5, 10},  {20, false, 30, 9}};
    static char text[20000];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        if (!test_has((int)k, TEST_SANITIZED ? 4 : 1)) continue;
        write_many(cases[k].n, cases[k].all, cases[k].rate, ZERO, text, sizeof text);
        for (int i = 0; i < 2; ++i) {
            const trl_solve_stats *s = solve(text, i ? 96 : 32, "{}");
            ck_assert_str_eq(s->preconditioner, "multigrid");
            ck_assert_msg(s->last_iterations <= cases[k].most, "%d unknowns, rate %g: %d iterations", cases[k].n,
                          cases[k].rate, s->last_iterations);
        }
    }
    write_many(6, false, 1000, ZERO ", mask: \"(x - 0.3)^2 > 0.02\"", text, sizeof text);
    ck_assert_int_le(solve(text, 64, "{}")->last_iterations, 12);
    close_problem();
}
END_TEST

/* An equation need not have its own unknown at a point, if others have it. */
START_TEST(diagonals_may_be_zero)
{
    static const coupled cases[] = {{"laplacian(p) + 50*q", "50*p", NULL, 3},
                                    {"laplacian(p) + 50*q - r", "50*p - r", "laplacian(r) + p - 20*q", 7}};
    for (int k = 0; k < 2; ++k)
        for (int i = 0; i < 2; ++i) {
            char text[1200];
            write_equations(&cases[k], ZERO, text, sizeof text);
            const trl_solve_stats *s = solve(text, i ? 96 : 32, "{}");
            ck_assert_int_le(s->last_iterations, cases[k].most);
            ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
        }
    close_problem();
}
END_TEST

/* Of an unknown whose equation is tiny beside another one: constants are in no null space, and its mean, which
 * `initial` does not have, is found; nor are they in that of a step, whose operators have 1. */
START_TEST(constants_are_seen_beside_large_numbers)
{
    solve("  p: {initial: 0, solve: \"1e14*(laplacian(p) - p) + q = 1e14*x\", solver: s, " FREE "}\n"
          "  q: {initial: 0, solve: \"laplacian(q) - 0.5*q + p = y\", solver: s, " FREE "}\n",
          32, "{}");
    ck_assert_double_eq_tol(value_of("q"), -2, 0.06);
    open_text("grid: {cells: [32, 32]}\nequations:\n"
              "  p: {initial: x, ddt: \"1e14*(laplacian(p) - p) + q\", " FREE "}\n"
              "  q: {initial: 1, ddt: \"-0.5*q + p*q\", " FREE "}\n"
              "time: {method: beuler, dt: 0.1, steps: 3}\n");
    run_to_end();
    ck_assert_double_eq_tol(value_of("q"), 1 / (1.05 * 1.05 * 1.05), 1e-9);
    close_problem();
}
END_TEST

/* Points on a side may be set by what is solved for: an interface, a value of the interior, a flux that follows from
 * the wall's value, and a clamped plate, whose moments at the wall follow from deflections (Thom 1933). */
START_TEST(points_on_sides_follow_unknowns)
{
    trl_gidx n[3];
    static const struct {
        const char *deck, *field;
        double value; /* largest */
    } cases[] = {{"grid: {cells: [16]}\nequations:\n  u: {location: xface, solve: \"laplacian(u) = -1\", boundary: "
                  "{x-: {dirichlet: 0}, x+: {neumann: \"-v\"}}}\n  v: {location: xface, solve: \"laplacian(v) = 0\", "
                  "boundary: {x-: {dirichlet: 1}, x+: {dirichlet: u}}}\n",
                  "u", 0.28125},
                 {"grid: {cells: [16]}\nequations:\n  u: {location: node, solve: \"laplacian(u) = -1\", boundary: {x-: "
                  "{dirichlet: \"0.5*probe(u, [0.5])\"}, x+: {dirichlet: 0}}}\n",
                  "u", 0.169921875},
                 {"grid: {cells: [64]}\nexpressions:\n  q: {formula: \"-ddx(u)\", boundary: {x-: {dirichlet: "
                  "\"2*u^2\"}, x+: {dirichlet: 1}}}\nequations:\n  u: {initial: 1, solve: \"ddx(q) = 0\", boundary: "
                  "{x-: {neumann: 0}, x+: {neumann: 0}}}\n",
                  "u", M_SQRT1_2},
                 {"grid: {cells: [64, 64]}\nequations:\n  w: {location: node, solve: \"laplacian(w) = m\", " ZERO
                  "}\n  m: {location: node, solve: \"laplacian(m) = 1\", boundary: {x-: {dirichlet: \"2*ddx(w)/dx\"}, "
                  "x+: {dirichlet: \"-2*ddx(w)/dx\"}, y-: {dirichlet: \"2*ddy(w)/dy\"}, y+: {dirichlet: "
                  "\"-2*ddy(w)/dy\"}}}\n",
                  "w", 0.001268}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        open_text("%s", cases[k].deck);
        const double *u = values_of(cases[k].field, n);
        double most = 0;
        for (trl_gidx i = 0; i < n[0] * n[1] && k != 2; ++i) most = fmax(most, u[i]);
        ck_assert_double_eq_tol(k == 2 ? u[0] : most, cases[k].value, k == 3 ? 1e-6 : 1e-7);
        ck_assert_int_le(trl_simulation_solver(sim, 0)->last_iterations, 40);
        ck_assert_int_le(trl_simulation_solver(sim, 0)->last_newton, 8);
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, points_on_sides_follow_unknowns);
    tcase_add_test(tc, constants_are_seen_beside_large_numbers);
    tcase_add_test(tc, blocks_are_of_many_unknowns);
    tcase_add_test(tc, diagonals_may_be_zero);
    tcase_add_test(tc, winds_are_beside_couplings);
    tcase_add_test(tc, constants_of_one_unknown_are_told_by_others);
    tcase_add_test(tc, conditions_couple);
    tcase_add_test(tc, blocks_stand_any_coupling);
    tcase_add_test(tc, blocks_leave_out_what_masks_do);
    tcase_add_test(tc, blocks_are_of_what_needs_each_other);
    tcase_add_test(tc, entries_are_of_each_unknown);
}

TRL_TEST_MAIN("coupled cycles", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Right-hand sides times a power of two: solutions of linear equations are those times the power, to the last bit. */
// ctest: np=1,3 timeout=120 sanitize=3
#include <math.h>
#include <string.h>

#include "run_fixture.h"

static const char *const solver[] = {"method: direct",
                                     "method: cg, preconditioner: jacobi",
                                     "method: cg, preconditioner: multigrid",
                                     "method: cg, preconditioner: none",
                                     "method: pipelined_cg, preconditioner: jacobi",
                                     "method: pipelined_cg, preconditioner: multigrid",
                                     "method: bicgstab, preconditioner: jacobi",
                                     "method: bicgstab, preconditioner: multigrid",
                                     "method: gmres, restart: 10, preconditioner: jacobi",
                                     "method: gmres, preconditioner: multigrid",
                                     "method: multigrid",
                                     "method: pseudo_time",
                                     "method: auto"};
enum { SOLVERS = sizeof solver / sizeof *solver, ROOM = 12 * 10 };

static const char held[] = "{x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {robin: {a: 1, b: 2, c: 0}}, y+: {neumann: 0}}";
static const char closed[] = "{x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}";

typedef struct way {
    const char *operator, * source, *initial, *sides, *more, *unknown;
} way;

static const way ways[] = {{"laplacian(p)", "sin(5*x) + y", "0", held, "", "p"},
                           {"laplacian(p)", "sin(5*x) + y", "0.01*x*(1 + y)", held, "", "p"},
                           {"laplacian(p)", "cos(3.141592653589793*x)", "x", closed, "", "p"},
                           {"div((1 + x*y)*grad(p)) - 3*p", "exp(x)", "0", closed, "", "p"},
                           /* two unknowns that need each other */
                           {"laplacian(p) - q", "sin(5*x) + y", "0", held,
                            "  q: {solve: 'laplacian(q) - 2*q + 0.5*p', boundary: %s, solver: s}\n", "q"}};
enum { WAYS = sizeof ways / sizeof *ways };

static bool suits(const way *w, const char *with)
{
    const bool coupled = *w->more != '\0', direct = strstr(with, "direct"), cg = strstr(with, "cg,");
    const bool varies = strncmp(w->operator, "div", 3) == 0;
    if ((coupled || varies) && direct) return false;
    return !(coupled && cg && !strstr(with, "bicgstab"));
}

static int solve_times(const way *w, const char *with, int power, double *values)
{
    char other[300], factor[40];
    trl_gidx n[3];
    snprintf(other, sizeof other, w->more, w->sides);
    snprintf(factor, sizeof factor, "%.17g", ldexp(1, power));
    open_text("grid: {cells: [12, 10]}\nsolvers: {s: {%s%s}}\nequations:\n"
              "  p: {solve: '%s = %s*(%s)', initial: '%s*(%s)', boundary: %s, solver: s}\n%s",
              with, strstr(with, "direct") ? "" : ", iterations: 4000", w->operator, factor, w->source, factor,
              w->initial, w->sides, other);
    const double *found = values_of(w->unknown, n);
    memcpy(values, found, (size_t)(n[0] * n[1]) * sizeof *values);
    const int iterations = (int)trl_simulation_solver(sim, 0)->iterations;
    close_problem();
    return iterations;
}

static void solutions_scale(int i)
{
    static const int powers[] = {-1000, -960, -700, -567, -512, -401, -399, -200, 200, 399, 401, 513, 700, 980};
    const way *w = &ways[i % WAYS];
    const char *with = solver[i / WAYS];
    double plain[ROOM], scaled[ROOM];
    if (!suits(w, with)) return;
    const int iterations = solve_times(w, with, 0, plain);
    for (size_t k = test_long() ? 0 : (size_t)i % 7; k < sizeof powers / sizeof *powers; k += test_long() ? 1 : 7) {
        ck_assert_int_eq(solve_times(w, with, powers[k], scaled), iterations);
        for (int j = 0; j < ROOM; ++j)
            ck_assert_msg(ldexp(plain[j], powers[k]) == scaled[j], "%s, %s, 2^%d: %g is %g", w->operator, with,
                          powers[k], ldexp(plain[j], powers[k]), scaled[j]);
    }
}

START_TEST(linear_solutions_scale_with_their_right_hand_side)
{
    solutions_scale(_i);
}
END_TEST

/* Of slow flows all is linear. */
static void flow_times(const char *with, bool open, int power, double *values)
{
    char factor[40];
    trl_gidx n[3];
    const char *end = open ? "{outflow: true}" : "{dirichlet: 0}";
    snprintf(factor, sizeof factor, "%.17g", ldexp(1, power));
    open_text("grid: {cells: [12, 10]}\nsolvers: {s: {%s}}\n"
              "incompressible: {velocity: [u, v], pressure: p, solver: s}\nequations:\n"
              "  u: {location: xface, initial: 0, ddt: 'laplacian(u) + %s*y*(1 + t)', boundary: {x-: {dirichlet: 0},\n"
              "      x+: %s, y-: {dirichlet: 0}, y+: {dirichlet: 0}}}\n"
              "  v: {location: yface, initial: 0, ddt: 'laplacian(v)', boundary: {x-: {dirichlet: 0}, x+: %s,\n"
              "      y-: {dirichlet: 0}, y+: {dirichlet: 0}}}\n"
              "time: {method: ssprk3, dt: 0.001, steps: 4}\n",
              with, factor, end, end);
    run_to_end();
    const double *found = values_of("p", n);
    memcpy(values, found, (size_t)(n[0] * n[1]) * sizeof *values);
    close_problem();
}

START_TEST(flows_scale_with_their_forces)
{
    static const char *const of_flows[] = {"method: direct", "method: cg, preconditioner: multigrid",
                                           "method: cg, preconditioner: jacobi"};
    static const int powers[] = {-900, -560, -410, 300, 430};
    double plain[ROOM], scaled[ROOM];
    for (int i = 0; i < 6; ++i) {
        flow_times(of_flows[i / 2], i % 2, 0, plain);
        for (size_t k = 0; k < sizeof powers / sizeof *powers; ++k) {
            flow_times(of_flows[i / 2], i % 2, powers[k], scaled);
            for (int j = 0; j < ROOM; ++j) ck_assert_double_eq(ldexp(plain[j], powers[k]), scaled[j]);
        }
    }
}
END_TEST

START_TEST(newtons_method_sees_small_and_large_residuals)
{
    static const double scale[] = {1e-200, 1e-160, 1, 1e160};
    trl_gidx n[3];
    for (int k = 0; k < 4; ++k) {
        open_text("grid: {cells: [8]}\nequations:\n  p: {solve: '%g*(p^3 + p - x - 1 - 0.01*laplacian(p))', initial: 1,"
                  " boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\n",
                  scale[k]);
        const double *p = values_of("p", n);
        ck_assert_double_eq_tol(p[3], 0.841039, 1e-6);
        ck_assert_int_ge(trl_simulation_solver(sim, 0)->last_newton, 2);
        close_problem();
    }
}
END_TEST

/* A residual of the guess may have a square that is no number where that of zero has one. */
START_TEST(goes_on_from_a_guess_far_away)
{
    for (int i = 0; i < SOLVERS; ++i) {
        trl_gidx n[3];
        double size = 0;
        if (strstr(solver[i], "pseudo")) continue; /* slow */
        open_text("grid: {cells: [12, 10]}\nsolvers: {s: {%s%s}}\nequations:\n"
                  "  p: {solve: 'laplacian(p) = 1', initial: '1e180*x', boundary: %s, solver: s}\n",
                  solver[i], strstr(solver[i], "direct") ? "" : ", iterations: 4000", held);
        const double *p = values_of("p", n);
        for (int j = 0; j < ROOM; ++j) size = fmax(size, fabs(p[j]));
        ck_assert_msg(size > 0.1 && size < 1, "%s: %g", solver[i], size);
        close_problem();
    }
}
END_TEST

/* Terms of size 1 that leave 1e-16 of each other. */
START_TEST(accepts_what_terms_are_rounded_by)
{
    static const char *const equation[] = {"laplacian(p) - exp(p) + 1", "laplacian(p) - (p - 1) - 1",
                                           "3*(div((1 + p^2)*grad(p)) - sinh(p + 1) + sinh(1))"};
    for (size_t k = 0; k < sizeof equation / sizeof *equation; ++k)
        for (int i = 0; i < SOLVERS; ++i) {
            const bool linear = k == 1, symmetric = k < 2, direct = strstr(solver[i], "direct");
            const bool cg = strstr(solver[i], "cg,") && !strstr(solver[i], "bicgstab");
            trl_gidx n[3];
            if ((direct && !linear) || (cg && !symmetric)) continue;
            open_text("grid: {cells: [12, 10]}\nsolvers: {s: {%s%s}}\nequations:\n"
                      "  p: {solve: '%s = 3e-17*(1 + x)', solver: s, boundary: %s}\n",
                      solver[i], direct ? "" : ", iterations: 4000", equation[k], held);
            const double *p = values_of("p", n);
            for (int j = 0; j < ROOM; ++j) ck_assert_double_le(fabs(p[j]), 1e-15);
            close_problem();
        }
    new_deck();
    say("grid: {cells: [12, 10]}\nsolvers: {s: {tolerance: 1e-17}}\nequations:\n"
        "  p: {solve: 'laplacian(p) - 3*p = 3*x', solver: s, boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: "
        "{neumann: 0}, y+: {neumann: 0}}}\n");
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_NUMERICS, "double precision does not reach so far");
    close_problem();
}
END_TEST

START_TEST(says_residuals_as_they_are)
{
    new_deck();
    say("grid: {cells: [8]}\nequations:\n  p: {solve: 'laplacian(p) = 1e-200', boundary: {x-: {neumann: 0}, "
        "x+: {neumann: 0}}}\n");
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_NUMERICS, "differ by -1e-200, of a norm of 1e-200");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, linear_solutions_scale_with_their_right_hand_side, 0, WAYS * SOLVERS);
    tcase_add_test(tc, flows_scale_with_their_forces);
    tcase_add_test(tc, newtons_method_sees_small_and_large_residuals);
    tcase_add_test(tc, goes_on_from_a_guess_far_away);
    tcase_add_test(tc, accepts_what_terms_are_rounded_by);
    tcase_add_test(tc, says_residuals_as_they_are);
}

TRL_TEST_MAIN("scales", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Where auto takes cycles of multigrid, and what follows where they fail. */
// ctest: np=1
#include "multigrid_decks.h"

/* Also for equations that are not linear, and unknowns in each other's equations: jacobi takes more than 200 iterations
 * for each linear system of the finer mesh. */
START_TEST(auto_takes_cycles_whose_iterations_do_not_grow_with_the_mesh)
{
    static const struct {
        const char *equations;
        int most; /* in all steps of Newton's method */
    } cases[] = {
        {"  p: {initial: 0, solve: \"laplacian(p) + exp(p) = 0\", solver: s, " ZERO "}\n", 10},
        {"  p: {initial: 0, solve: \"laplacian(p) - 100*sinh(p) = -50\", solver: s, " ZERO "}\n", 12},
        {"  p: {initial: 0, solve: \"div((1 + p^2)*grad(p)) = 40*x\", solver: s, " ZERO "}\n", 12},
        {"  p: {initial: 0, solve: \"div(exp(5*p)*grad(p)) = x\", solver: s, " ZERO "}\n", 12},
        {"  p: {initial: 0, solve: \"0.05*laplacian(p) - div(advective_flux(p, [at(p, xface), at(p, yface)])) = -x\", "
         "solver: s, " ZERO "}\n",
         16},
        {"  p: {initial: 0, solve: \"0.005*laplacian(p) - div(advective_flux(p, [at(p, xface), at(p, yface)], "
         "upwind)) = -x\", solver: s, " ZERO "}\n",
         40},
        {"  p: {initial: 0, solve: \"laplacian(p) - 2*p + q = -x\", solver: s, " ZERO "}\n"
         "  q: {initial: 0, solve: \"laplacian(q) - 3*q + p = sin(3*x)\", solver: s, " ZERO "}\n",
         8},
        {"  p: {initial: 0, solve: \"laplacian(p) + 0.5*laplacian(q) = -x\", solver: s, " ZERO "}\n"
         "  q: {initial: 0, solve: \"laplacian(q) + 0.3*laplacian(p) = y\", solver: s, " ZERO "}\n",
         8},
        {"  p: {initial: 0, solve: \"div((1 + q^2)*grad(p)) = -x\", solver: s, " ZERO "}\n"
         "  q: {initial: 0, solve: \"laplacian(q) - p*q = sin(3*x)\", solver: s, " ZERO "}\n",
         10},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        if (!test_has((int)k, TEST_SANITIZED ? 4 : 1)) continue;
        for (int n = 40; n <= 160; n *= 4) {
            const trl_solve_stats *s = solve(cases[k].equations, n, "{}");
            ck_assert_str_eq(s->preconditioner, "multigrid");
            ck_assert_msg(s->last_iterations <= cases[k].most, "%s: %d iterations on %d^2 cells", cases[k].equations,
                          s->last_iterations, n);
        }
    }
    close_problem();
}
END_TEST

/* Where the unknowns of a point are coupled much more than neighbours are, cycles are no good. */
START_TEST(auto_leaves_hard_equations_to_jacobi)
{
    static const struct {
        const char *equations, *preconditioner;
    } cases[] = {
        {"  k: {initial: \"1 + 9*x*y^2\", solve: \"k = 1 + 9*x*y^2\", " FREE "}\n"
         "  p: {initial: 0, solve: \"div(k*grad(p)) = 1\", solver: s, " ZERO "}\n",
         "multigrid"},
        {"  p: {location: node, initial: 0, solve: \"div((1 + x*y)*grad(p)) = 1\", solver: s, " ZERO "}\n",
         "multigrid"},
        {"  p: {initial: 0, solve: \"laplacian(p) = 1\", solver: s, mask: \"(x-0.5)^2 + (y-0.5)^2 < 0.16\", " ZERO
         "}\n",
         "multigrid"},
        {"  p: {initial: 0, solve: \"laplacian(p) - p + 3e4*q = 1\", solver: s, " ZERO "}\n"
         "  q: {initial: 0, solve: \"laplacian(q) - q - 3e4*p = 0\", solver: s, " ZERO "}\n",
         "jacobi"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const trl_solve_stats *s = solve(cases[k].equations, 24, "{}");
        ck_assert_msg(strcmp(s->preconditioner, cases[k].preconditioner) == 0, "%s has %s", cases[k].equations,
                      s->preconditioner);
    }
    close_problem();
}
END_TEST

/* A wind that crosses `peclet` diffusivities in a cell, the same on any mesh, from upwind or central: along a line, and
 * around the middle. Central differences of a strong wind are left to jacobi. */
START_TEST(auto_takes_cycles_where_there_is_a_wind)
{
    static const struct {
        double peclet;
        const char *wind, *limiter;
        int most, growth;
    } cases[] = {{10, "at(2*y - 1, xface), at(1 - 2*x, yface)", ", upwind", 9, 1},
                 {1, "at(2*y - 1, xface), at(1 - 2*x, yface)", "", 6, 1},
                 {100, "at(1 + 0*x, xface), at(0.6 + 0*x, yface)", ", upwind", 36, 8},
                 {2, "at(1 + 0*x, xface), at(0.6 + 0*x, yface)", ", upwind", 6, 1},
                 {6, "at(2*y - 1, xface), at(1 - 2*x, yface)", "", 0, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        int taken[2];
        if (!test_has((int)k, TEST_SANITIZED ? 4 : 1)) continue;
        for (int i = 0; i < (cases[k].most ? 2 : 1); ++i) {
            char text[500];
            const int n = i ? 64 : 32;
            snprintf(
                text, sizeof text,
                "  p: {initial: 0, solve: \"laplacian(p)/%g - div(advective_flux(p, [%s]%s)) = -1\", solver: s, " ZERO
                "}\n",
                n * cases[k].peclet, cases[k].wind, cases[k].limiter);
            const trl_solve_stats *s = solve(text, n, "{iterations: 500}");
            ck_assert_str_eq(s->method, "bicgstab");
            ck_assert_str_eq(s->preconditioner, cases[k].most ? "multigrid" : "jacobi");
            ck_assert_int_eq(s->no_multigrid != NULL, !cases[k].most);
            ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
            taken[i] = s->last_iterations;
        }
        ck_assert_msg(!cases[k].most || (taken[1] <= cases[k].most && taken[1] <= taken[0] + cases[k].growth),
                      "%s%s: %d iterations, and %d on a finer grid", cases[k].wind, cases[k].limiter, taken[0],
                      taken[1]);
    }
    close_problem();
}
END_TEST

/* Holes of one cell are on no coarser grid that has the equation in place of its entries. Where 40 cycles do not
 * suffice, jacobi goes on from what they reached, unless the deck asks for multigrid. */
START_TEST(jacobi_goes_on_where_cycles_fail)
{
    static const char *const holes = "  p: {initial: 0, solve: \"div4(grad4(p)) = 1\", solver: s, mask: "
                                     "\"random(3) > 0.03\", " ZERO "}\n";
    const trl_solve_stats *s = solve(holes, 128, "{}");
    ck_assert_str_eq(s->preconditioner, "jacobi");
    ck_assert_msg(s->last_iterations > 40 && s->last_iterations < 100, "%d iterations", s->last_iterations);
    ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
    if (!TEST_SANITIZED || test_long()) {
        s = solve(holes, 128, "{preconditioner: multigrid}");
        ck_assert_str_eq(s->preconditioner, "multigrid");
        ck_assert_int_gt(s->last_iterations, 40);
    }
    s = solve(holes, 64, "{}");
    ck_assert_str_eq(s->preconditioner, "multigrid");
    close_problem();
}
END_TEST

/* Coarser grids couple unknowns at different places much more than neighbours. What cycles have made of the first guess
 * takes jacobi longer than zero does. */
START_TEST(jacobi_begins_anew_where_cycles_are_in_vain)
{
    static const char *const rotation =
        "  p: {initial: 0, solve: \"laplacian(p) + 1000*at(q, cell) = 1\", solver: s, " ZERO "}\n"
        "  q: {initial: 0, location: node, solve: \"laplacian(q) - 1000*at(p, node) = 0\", solver: s, " ZERO "}\n";
    const int alone = solve(rotation, 48, "{preconditioner: jacobi}")->last_iterations;
    const trl_solve_stats *s = solve(rotation, 48, "{}");
    ck_assert_str_eq(s->preconditioner, "jacobi");
    ck_assert_ptr_nonnull(s->no_multigrid);
    ck_assert_msg(s->last_iterations <= alone + 25, "%d iterations, and %d by jacobi alone", s->last_iterations, alone);
    ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
    close_problem();
}
END_TEST

/* Rows are long with what couples unknowns of a point, or with what one has of the other's neighbours: there is nothing
 * for cycles to do, and jacobi costs less. */
START_TEST(cycles_are_for_what_unknowns_have_of_their_own)
{
    static const struct {
        const char *p, *q, *preconditioner;
        double dt;
    } cases[] = {{"-laplacian(q)", "laplacian(p)", "jacobi", 1e-4},
                 {"laplacian(p) + 1e5*(q - p)", "1e5*(p - q)", "jacobi", 1e-3},
                 {"laplacian(p) + 100*(q - p)", "100*(p - q)", "multigrid", 0.01}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const char *preconditioner = cases[k].preconditioner;
        open_text("grid: {cells: [40, 40]}\nequations:\n"
                  "  p: {initial: \"x*y\", ddt: \"%s\", " ZERO "}\n  q: {initial: y, ddt: \"%s\", " ZERO "}\n"
                  "time: {method: beuler, dt: %g, steps: 2}\n",
                  cases[k].p, cases[k].q, cases[k].dt);
        run_to_end();
        const trl_solve_stats *s = trl_simulation_solver(sim, 0);
        ck_assert_msg(strcmp(s->preconditioner, preconditioner) == 0, "p' = %s: %s", cases[k].p, s->preconditioner);
    }
    close_problem();
}
END_TEST

/* Along a closed or periodic axis with few cells coarser grids have one in the end. */
START_TEST(long_domains_take_no_more_iterations)
{
    static const char *const grids[] = {"[256, 4], length: [64, 1]", "[400, 3], length: [133, 1]",
                                        "[1000, 8], length: [125, 1]", "[256, 2], length: [128, 1]"};
    static const struct {
        const char *p, *q;
        int most;
    } cases[] = {{"laplacian(p)", "laplacian(q)", 8},
                 {"laplacian(p) - 0.001*p^3", "laplacian(q)", 14},
                 {"laplacian(p) + 0.01*q", "laplacian(q) - 0.01*p", 6},
                 {"d2dx(p) + 100*d2dy(p) + 0.1*(q - p)", "laplacian(q) + 0.1*(p - q)", 9}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
        for (int i = 0; i < 8; ++i) {
            const char *sides = i % 2 ? "x-: {dirichlet: 0}, x+: {neumann: 0}"
                                      : "x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}";
            if (!test_has((int)k + i, TEST_SANITIZED ? 5 : 1)) continue;
            open_text("grid: {cells: %s, periodic: [false, %s]}\nequations:\n"
                      "  p: {initial: 0, solve: \"%s = sin(9*x) + y\", solver: s, boundary: {%s}}\n"
                      "  q: {initial: 0, solve: \"%s = 1\", solver: s, boundary: {%s}}\n"
                      "solvers: {s: {preconditioner: multigrid}}\n",
                      grids[i / 2], i % 2 ? "true" : "false", cases[k].p, sides, cases[k].q, sides);
            for (int n = 0; n < trl_simulation_solvers(sim); ++n) {
                const trl_solve_stats *s = trl_simulation_solver(sim, n);
                ck_assert_int_ne(s->coarse, TRL_COARSE_ENTRIES);
                ck_assert_msg(s->last_iterations <= cases[k].most, "%s on %s: %d iterations", cases[k].p, grids[i / 2],
                              s->last_iterations);
            }
        }
    close_problem();
}
END_TEST

/* A grid of few cells along an axis has no room for stencils that reach two points. */
START_TEST(wide_stencils_leave_more_cells)
{
    static const char *const decks[] = {
        "grid: {cells: [64, 64], length: [1, 8], periodic: true}\nequations:\n  p: {initial: 0, solver: s, solve: \"p "
        "- "
        "0.1*laplacian(p) + 1e-5*laplacian(laplacian(p)) = sin(2*pi*x)\"}\n",
        "grid: {cells: [96, 8], length: [12, 1], periodic: [false, true]}\nequations:\n  p: {initial: 0, solver: s, "
        "solve: \"0.5*p - laplacian(p) + 0.1*box_filter(p, 5) = sin(2*pi*y)\", boundary: {x-: {dirichlet: 0}, x+: "
        "{dirichlet: 1}}}\n",
        "grid: {cells: [96, 8], length: [12, 1]}\nexpressions: {u: [1, 0]}\nequations:\n  p: {initial: 0, solver: s, "
        "solve: \"div(advective_flux(p, u, vanleer)) - laplacian(p) = x*y\", boundary: {x-: {dirichlet: 0}, x+: "
        "{neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}\n"};
    for (size_t k = 0; k < sizeof decks / sizeof *decks; ++k)
        for (int asked = 0; asked < 2; ++asked) {
            open_text("%ssolvers: {s: {%s}}\n", decks[k], asked ? "preconditioner: multigrid" : "");
            ck_assert_int_le(trl_simulation_solver(sim, 0)->last_iterations, 60);
            if (asked) ck_assert_int_ge(trl_simulation_solver(sim, 0)->levels, 3);
        }
    close_problem();
}
END_TEST

/* Elasticity that is nearly incompressible: cycles are slow, and jacobi slower. */
START_TEST(cycles_are_the_last_that_is_left)
{
#define CLAMPED "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}"
    open_text("grid: {cells: [64, 64]}\nexpressions:\n  sxx: \"1002*ddx(u) + 1000*ddy(v)\"\n"
              "  syy: \"1002*ddy(v) + 1000*ddx(u)\"\n  sxy: \"ddy(u) + ddx(v)\"\n"
              "equations:\n  u: {location: xface, solve: \"ddx(sxx) + ddy(sxy) = 0\", " CLAMPED
              "}\n  v: {location: yface, solve: \"ddx(sxy) + ddy(syy) = x\", " CLAMPED "}\n");
    const trl_solve_stats *s = trl_simulation_solver(sim, 0);
    ck_assert_str_eq(s->preconditioner, "multigrid");
    ck_assert_int_ge(s->last_iterations, 200); /* jacobi was tried */
    ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, cycles_are_the_last_that_is_left);
    tcase_add_test(tc, wide_stencils_leave_more_cells);
    tcase_add_test(tc, long_domains_take_no_more_iterations);
    tcase_add_test(tc, auto_takes_cycles_whose_iterations_do_not_grow_with_the_mesh);
    tcase_add_test(tc, auto_leaves_hard_equations_to_jacobi);
    tcase_add_test(tc, auto_takes_cycles_where_there_is_a_wind);
    tcase_add_test(tc, jacobi_goes_on_where_cycles_fail);
    tcase_add_test(tc, cycles_are_for_what_unknowns_have_of_their_own);
    tcase_add_test(tc, jacobi_begins_anew_where_cycles_are_in_vain);
}

TRL_TEST_MAIN("choice of cycles", add_tests)

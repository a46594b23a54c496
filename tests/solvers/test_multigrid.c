/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Multigrid as a preconditioner and by itself: iterations that do not grow with the mesh, and what it is not for. */
// ctest: np=1
#include "multigrid_decks.h"

static const char *const field = "  k: {initial: \"1 + 9*x*y^2\", solve: \"k = 1 + 9*x*y^2\", " FREE "}\n"
                                 "  p: {initial: 0, solve: \"div(k*grad(p)) = 1\", solver: s, " ZERO "}\n";
static const char *const disc = "  p: {initial: 0, solve: \"laplacian(p) = 1\", solver: s, "
                                "mask: \"(x-0.5)^2 + (y-0.5)^2 < 0.16\", " ZERO "}\n";
static const char *const node = "  p: {location: node, initial: 0, solve: \"laplacian(p) = 1\", solver: s, " ZERO "}\n";
static const char *const face =
    "  p: {location: xface, initial: 0, solve: \"laplacian(p) = 1\", solver: s, " ZERO "}\n";
static const char *const advection =
    "  p: {initial: 0, solve: \"laplacian(p) - 5*cddx(p) + 3*cddy(p) = 1\", solver: s, " ZERO "}\n";
static const char *const wind =
    "  p: {initial: 0, solve: \"laplacian(p) - 50*cddx(p) + 50*cddy(p) = 1\", solver: s, " ZERO "}\n";
static const char *const coupled = "  p: {initial: 0, solve: \"laplacian(p) - q = 1\", solver: s, " ZERO "}\n"
                                   "  q: {initial: 0, solve: \"laplacian(q) - p = 0\", solver: s, " ZERO "}\n";
static const char *const bratu = "  p: {initial: 0, solve: \"laplacian(p) + exp(p) = 0\", solver: s, " ZERO "}\n";

START_TEST(iterations_do_not_grow_with_the_mesh)
{
    static const struct {
        const char *const *equations;
        const char *method;
        int fewer; /* on a finer grid, beside one: the wind's share of the entries is less there */
    } cases[] = {{&field, "cg", 0},
                 {&disc, "cg", 0},
                 {&node, "cg", 0},
                 {&face, "cg", 0},
                 {&advection, "bicgstab", 0},
                 {&advection, "gmres", 0},
                 {&wind, "bicgstab, cycle: v", 1},
                 {&coupled, "cg", 0},
                 {&bratu, "cg", 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        int taken[2];
        char solver[100];
        if (!test_has((int)k, TEST_SANITIZED ? 3 : 1)) continue;
        snprintf(solver, sizeof solver, "{method: %s, preconditioner: multigrid}", cases[k].method);
        for (int i = 0; i < 2; ++i) {
            const trl_solve_stats *s = solve(*cases[k].equations, i ? 65 : 33, solver);
            ck_assert_str_eq(s->preconditioner, "multigrid");
            taken[i] = (int)s->last_iterations;
        }
        ck_assert_msg(taken[0] <= 10 && taken[1] <= taken[0] + 1 && taken[1] >= taken[0] - 1 - cases[k].fewer,
                      "%s of\n%s: %d iterations, and %d on a finer grid", cases[k].method, *cases[k].equations,
                      taken[0], taken[1]);
    }
    close_problem();
}
END_TEST

/* By themselves at most 10 cycles for a factor of 1e8 on even, odd and uneven grids, where they visit coarser grids
 * twice. */
START_TEST(each_kind_of_cycle_takes_the_iterations_it_is_known_for)
{
    static const struct {
        const char *cycle;
        int most;
    } kinds[] = {{"auto", 10}, {"f", 10}, {"w", 10}, {"v", 16}};
    static const int sizes[][3] = {{64, 64, 1}, {129, 129, 1}, {31, 47, 60}};
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; ++size) {
        const int *n = sizes[size];
        const bool flat = n[2] == 1;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
            char cells[50];
            if (!test_has((int)(size + k), TEST_SANITIZED ? 3 : 1)) continue; /* each size, and each cycle */
            snprintf(cells, sizeof cells, flat ? "[%d, %d]" : "[%d, %d, %d]", n[0], n[1], n[2]);
            open_text("grid: {cells: %s}\nequations:\n  p: {initial: 0, solve: \"laplacian(p) = 1 + "
                      "5*sin(13*x*y)\", solver: s, boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: "
                      "{dirichlet: 0}, y+: {dirichlet: 0}%s}}\nsolvers: {s: {method: multigrid, cycle: %s}}\n",
                      cells, flat ? "" : ", z-: {dirichlet: 0}, z+: {dirichlet: 0}", kinds[k].cycle);
            const int taken = trl_simulation_solver(sim, 0)->last_iterations;
            ck_assert_msg(taken <= kinds[k].most && (kinds[k].most < 16 || taken > 11), "%s on %s: %d cycles",
                          kinds[k].cycle, cells, taken);
        }
    }
    close_problem();
}
END_TEST

/* Where unknowns at different places are in each other's equations cycles by themselves need not converge: of a linear
 * system, and of one in Newton's method, whose residual is found anew. */
START_TEST(bicgstab_goes_on_where_cycles_alone_fail)
{
    static const char *const equations[] = {
        "  p: {initial: 0, solve: \"laplacian(p) + 20*at(q, cell) = 1\", solver: s, " ZERO "}\n"
        "  q: {initial: 0, location: node, solve: \"laplacian(q) - 20*at(p, node) = 0\", solver: s, " ZERO "}\n",
        "  p: {initial: 0, solve: \"laplacian(p) + 20*at(q, cell) - p^3 = 1\", solver: s, " ZERO "}\n"
        "  q: {initial: 0, location: node, solve: \"laplacian(q) - 20*at(p, node) = 0\", solver: s, " ZERO "}\n"};
    for (int k = 0; k < 2; ++k) {
        const trl_solve_stats *s = solve(equations[k], 33, "{method: multigrid}");
        ck_assert_int_eq(s->linear, k == 0);
        ck_assert_str_eq(s->method, "bicgstab");
        ck_assert_str_eq(s->preconditioner, "multigrid");
        ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
    }
    close_problem();
}
END_TEST

#define JUMPS(k)                                                                    \
    "  k: {initial: 1, solve: \"k = " k "\", " FREE "}\n"                           \
    "  p: {initial: 0, solve: \"div(harmonic(k, faces)*grad(p)) = 1\", solver: s, " \
    "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}\n"

#define TURNS(along_x, along_y) \
    "  p: {initial: 0, solve: \"div([" along_x "*ddx(p), " along_y "*ddy(p)]) = 1\", solver: s, " ZERO "}\n"

/* Of grids: a half under sanitizers. */
static int smaller(int cells)
{
    return TEST_SANITIZED && !test_long() ? (cells + 1) / 2 : cells;
}

/* Neighbours that are coupled most strongly along x here and along y there. Coefficients that jump by 1e4 along a line,
 * around discs, and at every fourth of the width; holes of one point. */
START_TEST(iterations_hardly_grow_with_what_coefficients_do)
{
    static const struct {
        const char *equations;
        int most, growth, cycles; /* cycles: by themselves, more than the others take beside iterations */
    } cases[] = {
        {JUMPS("if(x < 0.5, 1, 1e4)"), 9, 1, 0},
        {JUMPS("if(x + 0.3*y < 0.57, 1e4, 1)"), 9, 1, 0},
        {JUMPS("if(min((x-0.3)^2 + (y-0.3)^2, (x-0.72)^2 + (y-0.65)^2) < 0.02, 1e4, 1)"), 9, 1, 0},
        {JUMPS("if(fmod(floor(4*x) + floor(4*y), 2) == 0, 1e4, 1)"), 9, 1, 0},
        {TURNS("if(x + 0.3*y < 0.65, 1, 1e-4)", "if(x + 0.3*y < 0.65, 1e-4, 1)"), 8, 1, 1},
        {TURNS("exp(4*sin(6*x + 3*y))", "exp(-4*sin(6*x + 3*y))"), 8, 1, 0},
        {TURNS("1 + x", "0.1 + 100*exp(-30*y)"), 9, 2, 0},
        {"  p: {initial: 0, solve: \"laplacian(p) = 1\", solver: s, mask: \"random(3) > 0.03\", " ZERO "}\n", 8, 1, 0},
        {"  p: {location: yface, initial: 0, solve: \"div(if(x + 0.3*y < 0.57, 1, 1e4)*grad(p)) = 1\", solver: s, " ZERO
         "}\n",
         10, 1, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        int taken[3];
        if (!test_has((int)k, TEST_SANITIZED ? 3 : 1)) continue;
        for (int i = 0; i < 3; ++i) {
            const trl_solve_stats *s =
                solve(cases[k].equations, smaller(i ? 99 : 33), i == 2 ? "{method: multigrid}" : "{}");
            ck_assert_str_eq(s->method, i == 2 ? "multigrid" : "cg");
            ck_assert_double_le(s->last_residual, 1e-8 * s->last_reference);
            taken[i] = s->last_iterations;
        }
        ck_assert_msg(taken[1] <= cases[k].most && taken[1] <= taken[0] + cases[k].growth &&
                          taken[2] <= taken[1] + 4 + cases[k].cycles,
                      "%s takes %d and %d iterations, and %d cycles", cases[k].equations, taken[0], taken[1], taken[2]);
    }
    close_problem();
}
END_TEST

#define HALF                                                                                                  \
    "  p: {initial: \"if(x < 0.5, 3 + x, 7)\", mask: \"x < 0.5\", solver: s, solve: \"ddx(if(x < 0.49, 1, 0)" \
    "*ddx(p)) + ddy(ddy(p)) = %s\", exact: \"if(x < 0.5, 3.25 - cos(4*pi*x)/(16*pi^2), 7)\", " FREE "}\n"

/* Nothing flows into the masked half, so the other one is free up to a constant: its own mean stays, 3.25. */
START_TEST(null_spaces_are_of_points_that_are_not_masked)
{
    static const char *const solvers[] = {"{}", "{preconditioner: jacobi}", "{method: gmres, restart: 50}",
                                          "{method: multigrid}"};
    trl_field_stats stats;
    for (size_t k = 0; k < sizeof solvers / sizeof *solvers; ++k) {
        open_text("grid: {cells: [24, 20]}\nsolvers: {s: %s}\nequations:\n" HALF, solvers[k], "cos(4*pi*x)");
        ck_assert(trl_simulation_solver(sim, 0)->singular);
        ck_ok(trl_simulation_observe(sim));
        ck_ok(trl_simulation_field_stats(sim, field_index("p"), &stats));
        ck_assert_double_eq_tol(stats.sum, 3.25 * 240, 1e-9);
        ck_assert_msg(stats.error_linf < 2e-4, "%s: error %g", solvers[k], stats.error_linf);
    }
    new_deck();
    say("grid: {cells: [24, 20]}\nsolvers: {s: {}}\nequations:\n" HALF, "1");
    ck_ok(open_problem());
    ck_fails(trl_simulation_initialise(sim), TRL_ERR_NUMERICS,
             "both sides of the equation need the same mean; they differ by -1,");
    close_problem();
}
END_TEST

/* Diffusion of two unknowns with steps of 4 and of 100 times the explicit limit. */
START_TEST(implicit_steps_choose_by_their_diffusion_number)
{
    static const struct {
        double ratio;
        const char *preconditioner;
    } cases[] = {{4, "jacobi"}, {100, "multigrid"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const trl_solve_stats *s;
        int taken[2];
        for (int i = 0; i < 2; ++i) {
            const int n = i ? 48 : 24;
            open_text("grid: {cells: [%d, %d]}\nsolvers: {s: {method: cg}}\nequations:\n  p: {initial: \"random(1)\", "
                      "solver: s, ddt: {explicit: 1, implicit: \"laplacian(p)\"}, " ZERO
                      "}\n  q: {location: node, solver: s, initial: \"random(2)\", ddt: {explicit: \"at(p, node)\", "
                      "implicit: \"0.5*laplacian(q)\"}, " ZERO "}\ntime: {method: beuler, dt: %.17g, steps: 3}\n",
                      n, n, cases[k].ratio / (4.0 * n * n));
            ck_assert_int_eq(trl_simulation_solvers(sim), 1);
            s = trl_simulation_solver(sim, 0);
            ck_assert_str_eq(s->preconditioner, cases[k].preconditioner); /* foreseen */
            ck_assert_double_eq_tol(s->condition, 1 + 2 * cases[k].ratio, 0.1 * cases[k].ratio);
            run_to_end();
            ck_assert_str_eq(s->preconditioner, cases[k].preconditioner);
            taken[i] = (int)s->iterations;
        }
        ck_assert_msg(taken[1] <= 3 * (k ? 8 : 25) && taken[1] <= taken[0] + 3, "%d and %d iterations with %s",
                      taken[0], taken[1], cases[k].preconditioner);
    }
    close_problem();
}
END_TEST

/* x^2 - y^2, which differences of second order meet exactly, where conditions set points in parts of sides. */
START_TEST(points_that_conditions_set_are_no_unknowns)
{
    static const char *const solvers[] = {"method: cg, preconditioner: jacobi", "method: cg, preconditioner: multigrid",
                                          "method: gmres, iterations: 500"};
    for (int k = 0; k < 6; ++k) {
        trl_field_stats stats;
        open_text(
            "grid: {cells: [15, 12]}\nexpressions: {u: \"x^2 - y^2\"}\nequations:\n  p: {location: %s, initial: 0, "
            "solve: \"laplacian(p) = 0\", exact: u, solver: s, boundary: {x-: [{where: \"y > 0.4\", dirichlet: u}, "
            "{neumann: 0}], x+: [{where: \"y < 0.3\", robin: {a: 2, b: 0, c: \"2*u\"}}, {neumann: 2}], y-: [{where: "
            "\"x > 0.7\", dirichlet: u}, {neumann: 0}], y+: {dirichlet: u}}}\nsolvers: {s: {%s, tolerance: 1e-12}}\n",
            k % 2 ? "node" : "xface", solvers[k / 2]);
        ck_ok(trl_simulation_observe(sim));
        ck_ok(trl_simulation_field_stats(sim, field_index("p"), &stats));
        ck_assert_msg(stats.error_linf < (k % 2 ? 1e-8 : 0.02), "%d: %g", k, stats.error_linf);
    }
    close_problem();
}
END_TEST

/* A condition that reads the start of the step makes the same of a step on all grids. */
START_TEST(coarse_grids_tell_old_values_from_unknowns)
{
    double value[2];
    for (int k = 0; k < 2; ++k) {
        trl_field_stats stats;
        open_text(
            "grid: {cells: [17, 12], periodic: [false, true]}\nsolvers: {s: {preconditioner: %s, tolerance: 1e-12}}\n"
            "equations:\n  e: {solver: s, initial: x, ddt: {implicit: \"laplacian(e)\"}, boundary: {x-: {outflow: "
            "true}, x+: {dirichlet: \"1 + sin(9*t)\"}}}\n"
            "  f: {solver: s, initial: x, ddt: {implicit: \"laplacian(f)\"}, boundary: {x-: {neumann: \"-old(e)\"}, "
            "x+: {neumann: \"sin(old(e)) + t\"}}}\ntime: {method: beuler, dt: 0.01, steps: 3}\n",
            k ? "multigrid" : "jacobi");
        run_to_end();
        ck_ok(trl_simulation_field_stats(sim, field_index("f"), &stats));
        ck_assert_int_le((int)trl_simulation_solver(sim, 0)->iterations, k ? 3 * 9 : 3 * 100);
        value[k] = stats.l2;
    }
    ck_assert_double_eq_tol(value[0], value[1], 1e-9);
    close_problem();
}
END_TEST

/* Where one axis is coupled more strongly lines along it solve nearly all; on odd periods, too, which have three
 * colours, beside a mask, and by lines along all axes where the axis of the strongest coupling changes from point
 * to point. */
#define X "x-: {dirichlet: 0}, x+: {neumann: 0}"
#define Y "y-: {neumann: 0}, y+: {dirichlet: 0}"
#define Z "z-: {dirichlet: 0}, z+: {neumann: 0}"
START_TEST(lines_follow_the_strongest_coupling)
{
    static const char *const ways[] = {"method: cg, preconditioner: multigrid, smoother: line",
                                       "method: multigrid, smoother: line",
                                       "method: cg, preconditioner: multigrid, smoother: red_black"};
    static const struct {
        const char *grid, *equation, *sides, *mask;
        int most[3]; /* iterations, by ways; 0: many */
    } cases[] = {
        {"[64, 64]", "d2dx(p) + 1e-3*d2dy(p)", X ", " Y, "", {6, 7, 13}},
        {"[64, 64]", "1e-6*d2dx(p) + d2dy(p)", X ", " Y, ", mask: \"(x - 0.5)^2 > 0.01\"", {2, 2, 8}},
        {"[63, 61], periodic: [true, true]", "d2dx(p) + 0.01*d2dy(p) - p", "", "", {7, 6, 10}},
        {"[24, 22, 20], periodic: [true, false, false]",
         "1e-3*(d2dx(p) + d2dy(p) - p) + d2dz(p)",
         Y ", " Z,
         "",
         {5, 6, 12}},
        {"[24, 22, 20]", "d2dx(p) + 0.01*d2dy(p) + 1e-4*d2dz(p)", X ", " Y ", " Z, "", {7, 7, 10}},
        {"[65, 70]",
         "div([exp(4*sin(6*x + 3*y))*ddx(p), exp(-4*sin(6*x + 3*y))*ddy(p)])",
         X ", " Y,
         ", mask: \"(x - 0.5)^2 + (y - 0.5)^2 > 0.02\"",
         {8, 6, 0}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
        for (int i = 0; i < 3 && cases[k].most[i]; ++i) {
            if (!test_has((int)k + i, TEST_SANITIZED ? 3 : 1)) continue; /* each case, and each way */
            open_text(
                "grid: {cells: %s}\nequations: {p: {initial: 0, solve: \"%s = 1 + random(3)\", solver: s, boundary: "
                "{%s}%s}}\nsolvers: {s: {%s}}\n",
                cases[k].grid, cases[k].equation, cases[k].sides, cases[k].mask, ways[i]);
            const int taken = trl_simulation_solver(sim, 0)->last_iterations, most = cases[k].most[i];
            ck_assert_msg(taken <= most && taken > most - 3, "%s on %s, %s: %d iterations", cases[k].equation,
                          cases[k].grid, ways[i], taken);
        }
    close_problem();
}
END_TEST
#undef X
#undef Y
#undef Z

START_TEST(smoothers_that_do_not_suit_say_why)
{
    static const struct {
        const char *equation, *why;
    } cases[] = {
        {"  p: {initial: 0, solve: \"div4(grad4(p)) = 1\", solver: s, " ZERO "}\n",
         "there is no multigrid for 'p', because smoothers in colours need rows of the nearest points along axes"},
        {"  p: {initial: 0, solve: \"laplacian(p) - q = 1\", solver: s, " ZERO "}\n"
         "  q: {initial: 0, solve: \"laplacian(q) - p = 0\", solver: s, " ZERO "}\n",
         "there is no multigrid for 'p, q', because smoothers in colours are for one unknown"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        new_deck();
        say("grid: {cells: [24, 24]}\nequations:\n%ssolvers: {s: {preconditioner: multigrid, smoother: line}}\n",
            cases[k].equation);
        ck_fails(open_problem(), TRL_ERR_INPUT, cases[k].why);
    }
    new_deck();
    say("grid: {cells: [64]}\nequations: {p: {initial: 0, solve: \"laplacian(p) = 1\", solver: s, boundary: {x-: "
        "{dirichlet: 0}, x+: {dirichlet: 0}}}}\nsolvers: {s: {preconditioner: multigrid, smoother: line}}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "because a line is the whole grid");
    close_problem();
}
END_TEST

/* Patches as thick as transfers reach exchange with their neighbours, thinner ones are gathered, and coarser grids are
 * cut or not: the bits are those of one patch. */
START_TEST(patches_do_not_show)
{
    static const char *const patches[] = {"[1, 1]", "[2, 3]", "[13, 2]"};
    static const char *const turning = "  k: {initial: 1, solve: \"k = exp(4*sin(6*x + 3*y))\", " FREE "}\n"
                                       "  p: {initial: 0, solve: \"div([k*ddx(p), ddy(p)/k]) = 1\", solver: s, "
                                       "mask: \"(x-0.5)^2 + (y-0.5)^2 > 0.02\", " ZERO "}\n";
    static const char *const holes = "  p: {initial: 0, solve: \"div4(grad4(p)) = 1\", solver: s, "
                                     "mask: \"(x-0.5)^2 + (y-0.5)^2 > 0.02\", " ZERO "}\n";
    static const char *const *const equations[] = {&field,     &face,  &coupled, &turning,
                                                   &advection, &holes, &face,    &turning};
    for (size_t k = 0; k < sizeof equations / sizeof *equations; ++k) {
        uint64_t hash[6];
        int64_t taken[6];
        for (int i = 0; i < (k == 5 ? 4 : 6); ++i) { /* of the last one stencils are longer than patches are thick */
            if (i > 0 && !test_has((int)k + i, TEST_SANITIZED ? 3 : 1)) continue;
            open_text("grid: {cells: [29, 21], patches: %s}\nequations:\n%s"
                      "solvers: {s: {preconditioner: multigrid, replicate: %d%s}}\n",
                      patches[i / 2], *equations[k], i % 2, k < 6 ? "" : ", smoother: line");
            hash[i] = hash_of("p");
            taken[i] = trl_simulation_solver(sim, k == 0 || k == 3 || k == 7)->iterations;
            ck_assert_msg(hash[i] == hash[0] && taken[i] == taken[0], "%s, %d\n%s: %d iterations, %d on one patch",
                          patches[i / 2], i % 2, *equations[k], (int)taken[i], (int)taken[0]);
        }
    }
    close_problem();
}
END_TEST

/* In a period of one cell that cell is its own neighbour, beside other patches, too. */
START_TEST(a_period_may_be_one_cell)
{
    static const char *const equations[] = {"laplacian(p) - p = y", "div((1 + y^2)*grad(p)) - p = y"};
    for (int k = 0; k < 4; ++k) {
        uint64_t hash[2];
        for (int i = 0; i < 2; ++i) {
            open_text("grid: {cells: [1, 40], periodic: [true, false], patches: [1, %d]}\nequations:\n  p: {solve: "
                      "\"%s\", solver: s, boundary: {y-: {dirichlet: 1}, y+: {neumann: 0}}}\n"
                      "solvers: {s: {method: cg, preconditioner: multigrid, replicate: %d}}\n",
                      i ? 3 : 1, equations[k / 2], k % 2);
            hash[i] = hash_of("p");
        }
        ck_assert_msg(hash[0] == hash[1], "%s: other bits on three patches", equations[k / 2]);
    }
    close_problem();
}
END_TEST

/* Coarser grids of as many points as several workers make runs of rows of, symmetric and not. */
START_TEST(threads_do_not_show)
{
    static const char *const turning = "  p: {initial: 0, solve: \"div([exp(4*sin(6*x + 3*y))*ddx(p), ddy(p)]) = 1\", "
                                       "solver: s, mask: \"(x-0.5)^2 + (y-0.5)^2 > 0.02\", " ZERO "}\n";
    static const char *const *const equations[] = {&turning, &advection};
    for (size_t k = 0; k < sizeof equations / sizeof *equations; ++k) {
        uint64_t hash[2];
        for (int i = 0; i < 2; ++i) {
            close_problem();
            ck_ok(trl_context_set_threads(test_ctx, i ? 3 : 1));
            open_text("grid: {cells: [%d, %d]}\nequations:\n%ssolvers: {s: {preconditioner: multigrid}}\n", smaller(81),
                      smaller(90), *equations[k]);
            hash[i] = hash_of("p");
        }
        ck_assert_msg(hash[0] == hash[1], "%s", *equations[k]);
    }
    close_problem();
    ck_ok(trl_context_set_threads(test_ctx, 1));
}
END_TEST

/* A fluid 1,000 times as heavy as the other: coarser grids have entries, found once in each step of three stages. Of
 * one 10 times as heavy they have the equation. */
START_TEST(pressures_of_jumping_densities_have_entries)
{
    static const struct {
        const char *patches;
        int ratio;
        double least, most; /* iterations a solve */
    } runs[] = {{"[1, 1]", 1000, 4, 8}, {"[2, 3]", 1000, 4, 8}, {"[1, 1]", 10, 3, 7}};
    uint64_t hash[3];
    for (int i = 0; i < 3; ++i) {
        open_text("grid: {cells: [24, 40], length: [1, 2], periodic: [true, false], patches: %s}\n"
                  "incompressible: {velocity: [u, v], pressure: p, density: rho}\nequations:\n"
                  "  u: {location: xface, initial: 0, ddt: \"-0.1*u\", boundary: &still {y-: {dirichlet: 0}, y+: "
                  "{dirichlet: 0}}}\n"
                  "  v: {location: yface, initial: 0, ddt: \"-1\", boundary: *still}\n"
                  "  rho: {initial: \"if(y + 0.1*cos(2*pi*x) < 1, 1, %d)\", ddt: \"-div(advective_flux(rho, [u, v], "
                  "vanleer))\", boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}\n"
                  "time: {method: ssprk3, dt: 0.002, end: 0.01}\n",
                  runs[i].patches, runs[i].ratio);
        run_to_end();
        const trl_solve_stats *s = trl_simulation_solver(sim, 0);
        const double mean = (double)s->iterations / (double)s->solves;
        hash[i] = hash_of("v");
        ck_assert_int_eq(s->coarse, TRL_COARSE_EITHER);
        ck_assert_msg(mean >= runs[i].least && mean <= runs[i].most, "%s, %d times: %g iterations", runs[i].patches,
                      runs[i].ratio, mean);
    }
    ck_assert(hash[0] == hash[1]);
    close_problem();
}
END_TEST

/* k of cells is read at the faces of sides, too, where the conditions of T are what reads u and v. */
/* Also of an unknown that is a coefficient. */
START_TEST(coarser_grids_have_what_conditions_of_coefficients_read)
{
    double norm[2];
    static const char *const solvers[] = {"preconditioner: multigrid", "preconditioner: none, iterations: 1000"};
    for (int i = 0; i < 2; ++i) {
        open_text("grid: {cells: [32, 24], periodic: [true, false], patches: [2, 2]}\n"
                  "solvers: {s: {method: cg, tolerance: 1e-10, %s}}\nequations:\n"
                  "  u: {location: xface, initial: \"1 + 0.3*sin(2*pi*x)\", ddt: 0}\n"
                  "  v: {location: yface, initial: \"1 + 0.3*cos(2*pi*x)\", ddt: 0}\n"
                  "  T: {initial: y, ddt: 0, boundary: {y-: {dirichlet: \"at(u, cell)\"}, y+: {neumann: v}}}\n"
                  "  p: {initial: 0, solver: s, solve: \"div((1 + T)*grad(p)) = 10*sin(2*pi*x)\", boundary: {y-: "
                  "{neumann: 0}, y+: {dirichlet: 0.3}}}\ntime: {dt: 0.1, steps: 1}\n"
                  "output: {series: {values: {p: \"norm(p)\"}}}\n",
                  solvers[i]);
        run_to_end();
        if (i == 0) ck_assert_int_le(trl_simulation_solver(sim, 0)->iterations, 30);
        norm[i] = trl_simulation_series(sim)[0];
    }
    ck_assert_double_gt(norm[0], 0.1);
    ck_assert_double_eq_tol(norm[0], norm[1], 1e-8);
    for (int i = 0; i < 2; ++i) {
        open_text("grid: {cells: [32, 24]}\nsolvers: {s: {tolerance: 1e-10, %s}}\nequations:\n"
                  "  q: {solve: \"laplacian(q) - q = x\", " FREE "}\n"
                  "  p: {solver: s, solve: \"div((1 + 0.3*p^2)*grad(p)) - p = 1\", boundary: {x-: {neumann: 0}, "
                  "x+: {neumann: q}, y-: {neumann: 0}, y+: {robin: {a: 1, b: \"2 + q\", c: 1}}}}\n",
                  solvers[i]);
        trl_gidx n[3];
        norm[i] = values_of("p", n)[100];
        ck_assert_str_eq(trl_simulation_solver(sim, 1)->preconditioner, i ? "none" : "multigrid");
    }
    ck_assert_double_eq_tol(norm[0], norm[1], 1e-8);
    new_deck();
    say("grid: {cells: [32, 24], periodic: [true, false]}\nsolvers: {s: {preconditioner: multigrid}}\nequations:\n"
        "  T: {initial: y, ddt: 0, boundary: {y-: {dirichlet: 0}, y+: {neumann: \"integral(T)\"}}}\n"
        "  p: {initial: 0, solver: s, solve: \"div((1 + T)*grad(p)) = 1\", boundary: {y-: {neumann: 0}, y+: "
        "{dirichlet: 0}}}\ntime: {dt: 0.1, steps: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT,
             "there is no multigrid for 'p', because the operator contains a sum or an extreme over all points");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, coarser_grids_have_what_conditions_of_coefficients_read);
    tcase_add_test(tc, iterations_do_not_grow_with_the_mesh);
    tcase_add_test(tc, each_kind_of_cycle_takes_the_iterations_it_is_known_for);
    tcase_add_test(tc, bicgstab_goes_on_where_cycles_alone_fail);
    tcase_add_test(tc, iterations_hardly_grow_with_what_coefficients_do);
    tcase_add_test(tc, null_spaces_are_of_points_that_are_not_masked);
    tcase_add_test(tc, implicit_steps_choose_by_their_diffusion_number);
    tcase_add_test(tc, points_that_conditions_set_are_no_unknowns);
    tcase_add_test(tc, coarse_grids_tell_old_values_from_unknowns);
    tcase_add_test(tc, lines_follow_the_strongest_coupling);
    tcase_add_test(tc, smoothers_that_do_not_suit_say_why);
    tcase_add_test(tc, patches_do_not_show);
    tcase_add_test(tc, a_period_may_be_one_cell);
    tcase_add_test(tc, threads_do_not_show);
    tcase_add_test(tc, pressures_of_jumping_densities_have_entries);
}

TRL_TEST_MAIN("multigrid", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids by entries whose rows ranks share, and those that every rank computes. */
// ctest: np=2,3,4 sanitize=3
#include "message_count.h"
#include "run_fixture.h"

typedef struct problem {
    const char *p, *grid, *more; /* of the equation, the grid and the solver */
    int messages;                /* of each rank in a cycle, at least */
} problem;

typedef struct solution {
    uint64_t hash;
    int iterations, sent;
} solution;

static solution solve(const problem *w, const char *patches, int replicate)
{
    const int before = values_sent;
    open_text("grid: {%s%s}\nexpressions: {k: \"if((x-0.4)^2 + (y-0.5)^2 < 0.09, 1000, 1)\"}\n"
              "equations:\n  p: {initial: 0, solver: s, %s}\n"
              "solvers: {s: {preconditioner: multigrid, replicate: %d%s}}\nrun: {compile: never}\n",
              w->grid, patches, w->p, replicate, w->more);
    solution found = {.hash = hash_of("p"), .sent = values_sent - before};
    found.iterations = trl_simulation_solver(sim, 0)->last_iterations;
    return found;
}

/* A mask, an operator that is not symmetric, axes of strong coupling that turn, nodes, three axes. */
static const problem problems[] = {
    {"solve: \"div(harmonic(k, faces)*grad(p)) = 1\", mask: \"(x-0.7)^2 + y^2 > 0.1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}",
     "cells: [101, 90]", "", 6},
    {"solve: \"laplacian(p) - div(advective_flux(p, [at(30*(y-0.5), xface), at(30*(0.5-x), yface)], upwind)) = 1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {dirichlet: x}, y+: {dirichlet: 0}}",
     "cells: [90, 81]", "", 6},
    {"solve: \"div([exp(4*sin(6*x + 3*y))*ddx(p), exp(-4*sin(6*x + 3*y))*ddy(p)]) = sin(9*y)\", "
     "boundary: {y-: {neumann: 0}, y+: {dirichlet: 0}}",
     "cells: [64, 61], periodic: [true, false]", ", cycle: w", 12},
    {"location: node, solve: \"div((1 + 50*x^2)*grad(p)) - p = 1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}",
     "cells: [60, 60]", ", method: multigrid, iterations: 60", 6},
    {"solve: \"div(harmonic(k, faces)*grad(p)) = 1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, z-: {neumann: 0}, z+: {dirichlet: 0}}",
     "cells: [21, 19, 17], periodic: [false, true, false]", "", 6}};

START_TEST(whether_rows_are_shared_does_not_show)
{
    static const char *const patches[][2] = {{"", ""},
                                             {", patches: [4, 1]", ", patches: [4, 1, 1]"},
                                             {", patches: [1, 4]", ", patches: [1, 2, 2]"},
                                             {", patches: [2, 2]", ", patches: [2, 2, 1]"},
                                             {", patches: [5, 3]", ", patches: [3, 2, 4]"},
                                             {", patches: [50, 1]", ", patches: [1, 1, 12]"}};
    for (size_t k = 0; k < sizeof problems / sizeof *problems; ++k) {
        const problem *w = &problems[k];
        const solution all = solve(w, "", 1000000000);
        ck_assert_int_eq(all.sent, 0);
        for (size_t i = k % 2; i < sizeof patches / sizeof *patches; i += 2) {
            const solution own = solve(w, patches[i][strstr(w->grid, "17]") != NULL], 0);
            ck_assert_msg(own.hash == all.hash && own.iterations == all.iterations, "%s%s: %d iterations, %d of all",
                          w->p, patches[i][0], own.iterations, all.iterations);
            ck_assert_msg(own.sent >= w->messages * own.iterations, "%s%s: %d messages in %d iterations", w->p,
                          patches[i][0], own.sent, own.iterations);
        }
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, whether_rows_are_shared_does_not_show);
}

TRL_TEST_MAIN("shared_rows", add_tests)

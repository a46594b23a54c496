/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids by entries whose rows ranks share, and those that every rank has. */
// ctest: np=2,3,4 short=2,4 sanitize=3
#include "../spatialops/owners_fixture.h"
#include "message_count.h"
#include "run_fixture.h"

#define HELPED "preconditioner: multigrid"

typedef struct problem {
    const char *p, *grid, *more; /* of the equation, the grid and the solver */
    int messages;                /* of each rank in a cycle, at least */
} problem;

typedef struct solution {
    uint64_t hash;
    int iterations, sent;
} solution;

static solution solve(const problem *w, const char *patches, const char *owners, int replicate)
{
    const int before = values_sent;
    open_text("grid: {%s%s}\nexpressions: {k: \"if((x-0.4)^2 + (y-0.5)^2 < 0.09, 1000, 1)\"}\n"
              "equations:\n  p: {initial: 0, solver: s, %s}\n"
              "solvers: {s: {replicate: %d, %s}}\nrun: {compile: never, owners: %s}\n",
              w->grid, patches, w->p, replicate, w->more, owners);
    solution found = {.hash = hash_of("p"), .sent = values_sent - before};
    found.iterations = trl_simulation_solver(sim, 0)->last_iterations;
    return found;
}

/* A mask, an operator that is not symmetric, axes of strong coupling that turn, nodes, three axes. */
static const problem problems[] = {
    {"solve: \"div(harmonic(k, faces)*grad(p)) = 1\", mask: \"(x-0.7)^2 + y^2 > 0.1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}",
     "cells: [101, 90]", HELPED, 6},
    {"solve: \"laplacian(p) - div(advective_flux(p, [at(30*(y-0.5), xface), at(30*(0.5-x), yface)], upwind)) = 1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {dirichlet: x}, y+: {dirichlet: 0}}",
     "cells: [90, 81]", HELPED, 6},
    {"solve: \"div([exp(4*sin(6*x + 3*y))*ddx(p), exp(-4*sin(6*x + 3*y))*ddy(p)]) = sin(9*y)\", "
     "boundary: {y-: {neumann: 0}, y+: {dirichlet: 0}}",
     "cells: [64, 61], periodic: [true, false]", HELPED ", cycle: w", 12},
    {"location: node, solve: \"div((1 + 50*x^2)*grad(p)) - p = 1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}",
     "cells: [60, 60]", "method: multigrid, iterations: 60", 6},
    {"solve: \"div(harmonic(k, faces)*grad(p)) = 1\", "
     "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, z-: {neumann: 0}, z+: {dirichlet: 0}}",
     "cells: [21, 19, 17], periodic: [false, true, false]", HELPED, 6}};

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
        const solution all = solve(w, "", "blocks", 1000000000);
        ck_assert_int_eq(all.sent, 0);
        for (size_t i = k % 2; i < sizeof patches / sizeof *patches; i += 2) {
            if (!test_has((int)(k + i) / 2, TEST_SANITIZED ? 3 : 1)) continue;
            const solution own = solve(w, patches[i][strstr(w->grid, "17]") != NULL], next_owners_text(), 0);
            ck_assert_msg(own.hash == all.hash && own.iterations == all.iterations, "%s%s: %d iterations, %d of all",
                          w->p, patches[i][0], own.iterations, all.iterations);
            ck_assert_msg(own.sent >= w->messages * own.iterations, "%s%s: %d messages in %d iterations", w->p,
                          patches[i][0], own.sent, own.iterations);
        }
    }
    close_problem();
}
END_TEST

/* ---- on so many of the ranks ---- */

typedef struct few {
    uint64_t hash;
    int iterations;
    double kept, most; /* bytes of the rank that has the most: once it is solved, and in between */
} few;

static few solve_on(int ranks, const problem *w)
{
    trl_context *const all = test_ctx;
    few found = {0};
    MPI_Comm part;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks, rank, &part);
    if (rank < ranks) {
        trl_memory_stats stats;
        ck_ok(trl_context_create(part, NULL, &test_ctx));
        const solution own = solve(w, "", "blocks", 0);
        trl_memory_get_stats(test_ctx, &stats);
        found = (few){own.hash, own.iterations, (double)stats.metadata_bytes, (double)stats.metadata_peak_bytes};
        close_problem();
        trl_context_destroy(&test_ctx);
        test_ctx = all;
        MPI_Allreduce(MPI_IN_PLACE, &found.kept, 2, MPI_DOUBLE, MPI_MAX, part);
    }
    MPI_Comm_free(&part);
    MPI_Bcast(&found, sizeof found, MPI_BYTE, 0, MPI_COMM_WORLD);
    return found;
}

/* Each rank has its own points, and some layers of those around. */
START_TEST(memory_of_a_rank_falls_with_ranks)
{
    static const problem cases[] = {
        {"solve: \"div(harmonic(k, faces)*grad(p)) = 1\", boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, "
         "y-: {neumann: 0}, y+: {dirichlet: 0}}",
         "cells: [240, 240]", HELPED, 0},
        {"solve: \"div(harmonic(k, faces)*grad(p)) = 1\", boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, "
         "y-: {neumann: 0}, y+: {dirichlet: 0}}",
         "cells: [40, 40, 40], periodic: [false, false, true]", HELPED, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const few one = solve_on(1, &cases[k]);
        if (!test_has((int)k + 1, TEST_SANITIZED ? 2 : 1)) continue;
        for (int ranks = 2; ranks <= trl_context_ranks(test_ctx); ++ranks) {
            if (!test_has(trl_context_ranks(test_ctx) - ranks, TEST_SANITIZED ? 2 : 1)) continue;
            const few own = solve_on(ranks, &cases[k]);
            const double share = 1.0 / ranks, kept = own.kept / one.kept, most = own.most / one.most;
            ck_assert_msg(kept < share + 0.1 && most < share + 0.22,
                          "%d ranks: %.3f of the memory of one, at most %.3f", ranks, kept, most);
            ck_assert(own.hash == one.hash && own.iterations == one.iterations);
        }
    }
}
END_TEST

/* So many that they are chosen in several blocks, on any ranks. */
START_TEST(blocks_of_points_do_not_depend_on_ranks)
{
    static const problem large = {"solve: \"div([(1 + x)*ddx(p), 0.001*(1 + y)*ddy(p)]) = 1\", "
                                  "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}}",
                                  "cells: [620, 470], periodic: [false, true]", HELPED ", tolerance: 1e-3", 0};
    const few one = solve_on(1, &large), all = solve_on(trl_context_ranks(test_ctx), &large);
    ck_assert_msg(one.hash == all.hash && one.iterations == all.iterations, "%d and %d iterations", one.iterations,
                  all.iterations);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, whether_rows_are_shared_does_not_show);
    tcase_add_test(tc, memory_of_a_rank_falls_with_ranks);
    tcase_add_test(tc, blocks_of_points_do_not_depend_on_ranks);
}

TRL_TEST_MAIN("shared_rows", add_tests)

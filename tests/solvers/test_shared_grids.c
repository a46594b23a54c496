/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids of multigrid that are cut among the ranks, and those that every rank has. */
// ctest: np=2,3,4 sanitize=2
#include "../spatialops/owners_fixture.h"
#include "multigrid_impl.h"
#include "run_fixture.h"
#include "solving_impl.h"
#include "spatialops_impl.h"

#define ZERO "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}"

static void solve(const char *equation, const char *grid, const char *solver)
{
    open_text("grid: {%s}\nequations:\n  p: {initial: 0, solve: \"%s = 1 + 5*sin(13*x*y)\", solver: s, " ZERO "}\n"
              "solvers: {s: {method: cg, preconditioner: multigrid%s}}\nrun: {compile: never, owners: %s}\n",
              grid, equation, solver, next_owners_text());
}

static const trl_layout *level(int k)
{
    return trli_solving_level(sim, 0, k)->layout;
}

static int shared_grids(void)
{
    int n = 0;
    while (n < trl_simulation_solver(sim, 0)->levels && level(n)->npatches > 1) ++n;
    return n;
}

static int64_t cells_here(const trl_layout *layout)
{
    int64_t cells = 0;
    for (int p = 0; p < layout->nlocal; ++p)
        cells += (int64_t)layout->patch[p].cells[0] * layout->patch[p].cells[1] * layout->patch[p].cells[2];
    return cells;
}

START_TEST(a_rank_has_its_own_part_of_large_grids)
{
    const int ranks = trl_context_ranks(test_ctx);
    solve("laplacian(p)", "cells: [101, 90]", ", replicate: 70");
    ck_assert_int_eq(shared_grids(), 4);
    for (int k = 0; k < shared_grids(); ++k) {
        const trl_grid *grid = &level(k)->grid;
        const double share = (double)(grid->cells[0] * grid->cells[1]) / ranks;
        ck_assert_int_eq(level(k)->nlocal, 1);
        ck_assert_double_eq_tol((double)cells_here(level(k)), share, 0.6 * (double)(grid->cells[0] + grid->cells[1]));
    }
    ck_assert_int_eq(level(4)->grid.cells[0] * level(4)->grid.cells[1], 7 * 6);
    ck_assert_int_eq(cells_here(level(4)), 7 * 6);
    close_problem();
}
END_TEST

/* Odd and thin patches, several for each rank; stencils of four points, which thin patches of coarser grids cannot
 * hold. */
START_TEST(whether_grids_are_shared_does_not_show)
{
    static const struct {
        const char *equation, *grid;
        int least; /* of shared grids */
    } cases[] = {{"laplacian(p)", "cells: [37, 29]", 3},
                 {"laplacian(p) - 3*p", "cells: [37, 29], patches: [5, 3]", 3},
                 {"laplacian(p)", "cells: [37, 29], patches: [1, 7]", 2},
                 {"div4(grad4(p))", "cells: [37, 29], patches: [3, 2]", 2}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        uint64_t hash[2];
        int taken[2];
        for (int shared = 0; shared < 2; ++shared) {
            solve(cases[k].equation, cases[k].grid, shared ? ", replicate: 0" : ", replicate: 1000000");
            hash[shared] = hash_of("p");
            taken[shared] = trl_simulation_solver(sim, 0)->last_iterations;
            ck_assert_msg(shared ? shared_grids() >= cases[k].least : shared_grids() == 1, "%s on %s: %d grids",
                          cases[k].equation, cases[k].grid, shared_grids());
        }
        ck_assert_msg(hash[0] == hash[1] && taken[0] == taken[1], "%s on %s", cases[k].equation, cases[k].grid);
        const trl_diagnostic *said;
        ck_assert_int_eq(trl_context_diagnostics(test_ctx, &said), 0);
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_rank_has_its_own_part_of_large_grids);
    tcase_add_test(tc, whether_grids_are_shared_does_not_show);
}

TRL_TEST_MAIN("shared_grids", add_tests)

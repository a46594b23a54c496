/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids of multigrid that are cut among the ranks, those whose patches several ranks have, and those that every
 * rank has. */
// ctest: np=2,3,4,6,8 short=2,4,6 timeout=120 sanitize=2,4
#include <limits.h>

#include "../spatialops/owners_fixture.h"
#include "agree_impl.h"
#include "multigrid_impl.h"
#include "owners_impl.h"
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
    if (ranks > 6) return; /* patches of 13 x 12 cells would be thin */
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

/* ---- merged patches ---- */

/* n numbers of each rank, which all get. */
static void gather(int n, const int *own, int *all)
{
    const int ranks = trl_context_ranks(test_ctx), rank = trl_context_rank(test_ctx);
    memset(all, 0, (size_t)(n * ranks) * sizeof *all);
    memcpy(all + n * rank, own, (size_t)n * sizeof *own);
    ck_ok(trli_allreduce(test_ctx, all, n * ranks, MPI_INT, MPI_SUM));
}

enum { RANKS = 8 };

/* A rank's owner of any patch has that patch, and sees the rank as the owner of its own. */
static void check_owners(const trl_layout *layout)
{
    const int ranks = trl_context_ranks(test_ctx), n = layout->npatches;
    const int number = (int)(trli_layout_digest(layout) & INT_MAX), leads = trli_layout_leads(layout);
    int own[RANKS], id[RANKS], owner[RANKS * RANKS], digest[RANKS], leaders[RANKS], sum[RANKS] = {0};
    for (int p = 0; p < n; ++p) own[p] = trl_layout_patch(layout, p).rank;
    ck_assert_int_eq(layout->nlocal, 1);
    gather(1, &layout->patch[0].id, id);
    gather(n, own, owner);
    gather(1, &number, digest);
    for (int r = 0; r < ranks; ++r) {
        ck_assert_int_eq(digest[r], digest[0]);
        for (int p = 0; p < n; ++p) {
            const int other = owner[r * n + p];
            ck_assert_int_eq(id[other], p);
            ck_assert_int_eq(owner[other * n + id[r]], r);
        }
    }
    gather(1, &leads, leaders);
    for (int r = 0; r < ranks; ++r) sum[id[r]] += leaders[r];
    for (int p = 0; p < n; ++p) ck_assert_int_eq(sum[p], 1);
}

/* Merged once, and again. */
START_TEST(ranks_agree_who_has_merged_patches)
{
    const int ranks = trl_context_ranks(test_ctx), even = ranks % 2 ? 1 : 2;
    const int counts[][3] = {{ranks, 1, 1}, {ranks / even, even, 1}, {1, even, ranks / even}};
    const trl_grid grid = {.dim = 3, .cells = {40, 33, 28}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    trl_grid half = grid, quarter = grid;
    for (int a = 0; a < 3; ++a) half.cells[a] = grid.cells[a] / 2 + 1;
    for (int a = 0; a < 3; ++a) quarter.cells[a] = half.cells[a] / 2;
    for (int i = 0; i < 9; ++i) {
        trl_layout *fine, *coarse, *last;
        int by[3], again[3];
        ck_ok(trl_layout_create_owned(test_ctx, &grid, counts[i / 3], next_owners(), NULL, &fine));
        trli_layout_merging(fine, &half, half.cells[0] / 3, by);
        ck_ok(trli_layout_create_coarse(fine, &half, by, &coarse));
        ck_assert(ranks < 4 || i >= 3 || coarse->npatches < ranks);
        check_owners(coarse);
        trli_layout_merging(coarse, &quarter, quarter.cells[0] / 2, again);
        ck_ok(trli_layout_create_coarse(coarse, &quarter, again, &last));
        check_owners(last);
        for (int a = 0; a < 3; ++a) ck_assert_int_eq(last->counts[a] * again[a] * by[a], fine->counts[a]);
        trl_layout_destroy(&last);
        trl_layout_destroy(&coarse);
        trl_layout_destroy(&fine);
    }
}
END_TEST

/* Counts lines of the plan that say what is merged, and notes the last one. */
typedef struct plan {
    int lines;
    char last[160];
} plan;

static void note_merged(void *data, const char *line)
{
    plan *p = data;
    if (!strstr(line, " patches, each on ")) return;
    ++p->lines;
    snprintf(p->last, sizeof p->last, "%s", line);
}

/* 40, 20, 10, 5 and 3 cells along x. */
START_TEST(thin_patches_are_merged)
{
    static const int merged[RANKS + 1][5] = {/* patches */
                                             [4] = {4, 4, 4, 2, 1},
                                             [6] = {6, 6, 3, 1, 1},
                                             [8] = {8, 8, 4, 2, 1}};
    const int ranks = trl_context_ranks(test_ctx);
    if (ranks < 4) return;
    for (int k = 0; k < 3; ++k) {
        const char *const where[] = {"cell", "xface", "node"};
        uint64_t hash[2];
        for (int i = 0; i < 2; ++i) {
            open_text("grid: {cells: [40, 5], patches: [%d, 1]}\nequations:\n  p: {location: %s, initial: 0, solve: "
                      "\"laplacian(p) = 1 + 5*sin(13*x*y)\", solver: s, " ZERO "}\nsolvers: {s: {method: cg, "
                      "preconditioner: multigrid, replicate: %d}}\nrun: {compile: never, owners: %s}\n",
                      ranks, where[k], i ? 0 : 1000000, next_owners_text());
            hash[i] = hash_of("p");
        }
        ck_assert_msg(hash[0] == hash[1], "other bits at %s", where[k]);
        for (int n = 0; n < 5; ++n) {
            const trl_grid *grid = &level(n)->grid;
            ck_assert_int_eq(level(n)->npatches, merged[ranks][n]);
            ck_assert_int_eq(level(n)->nlocal, 1);
            const double share = (double)(grid->cells[0] * grid->cells[1]) / level(n)->npatches;
            ck_assert_double_eq_tol((double)cells_here(level(n)), share, (double)grid->cells[1]);
        }
    }
    static const char *const said[RANKS + 1] = {
        [4] = "  grid of 5 x 5 cells: 2 patches, each on 2 ranks",
        [6] = "  grid of 10 x 5 cells: 3 patches, each on 2 ranks",
        [8] = "  grid of 5 x 5 cells: 2 patches, each on 4 ranks",
    };
    plan p = {0};
    ck_ok(trl_simulation_describe(sim, false, note_merged, &p));
    ck_assert_int_eq(p.lines, ranks == 8 ? 2 : 1);
    ck_assert_str_eq(p.last, said[ranks]);
    close_problem();
}
END_TEST

/* Cells of the rank that has most. */
static double most_cells(const trl_layout *layout)
{
    double cells = 1;
    for (int a = 0; a < 3; ++a) cells *= trli_layout_thickest(layout, a);
    return cells;
}

/* So many ranks, each of which has n^3 cells: what one has at most of coarser grids, and of them as they would be if
 * none were merged. */
static void count_cells(const int counts[3], int n, double *cells, double *without)
{
    const trl_solver_entry settings = TRL_SOLVER_DEFAULTS;
    const trli_solver solver = {.settings = settings};
    const bool held[3] = {false, false, false};
    trl_grid grid = {.dim = 3, .length = {1, 1, 1}}, coarse;
    trl_layout *fine, *next;
    bool whole = false;
    for (int a = 0; a < 3; ++a) {
        grid.cells[a] = n * counts[a];
        grid.spacing[a] = 1;
    }
    ck_ok(trli_layout_create_whole(test_ctx, &grid, &fine));
    for (int a = 0; a < 3; ++a) fine->counts[a] = counts[a];
    fine->ranks = fine->npatches = counts[0] * counts[1] * counts[2];
    ck_ok(trli_owners_create(fine, &(trl_owners){.order = TRL_OWNERS_BLOCKS}, (double[]){1, 1, 1}, &fine->owner));
    *cells = *without = 0;
    for (; trli_coarsen(&solver, &fine->grid, held, &coarse); fine = next) {
        int by[3];
        trl_lidx thinnest = TRLI_TRANSFER_DEPTH;
        const double all = (double)coarse.cells[0] * (double)coarse.cells[1] * (double)coarse.cells[2];
        trli_layout_merging(fine, &coarse, thinnest, by);
        whole |= by[0] * by[1] * by[2] > 1 || all - all / fine->ranks < (double)settings.replicate;
        ck_ok(trli_coarse_layout(&solver, fine, &coarse, &thinnest, &next));
        *cells += most_cells(next);
        *without += whole ? all : most_cells(next);
        trl_layout_destroy(&fine);
    }
    trl_layout_destroy(&fine);
}

START_TEST(a_rank_of_many_has_few_points)
{
    static const struct {
        int counts[3], n;
        double most, times; /* cells, of which there would be so many times as many */
    } cases[] = {{{8, 8, 8}, 64, 42112, 1},      {{8, 8, 8}, 60, 34902, 1},      {{16, 16, 16}, 64, 42120, 1},
                 {{16, 16, 16}, 60, 34966, 1.7}, {{40, 50, 50}, 64, 39489, 3.8}, {{40, 50, 50}, 60, 33162, 23}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        double cells, without;
        count_cells(cases[i].counts, cases[i].n, &cells, &without);
        ck_assert_double_le(cells, cases[i].most);
        ck_assert_double_ge(without, cases[i].times * cells);
    }
}
END_TEST

/* ---- bits ---- */

/* Odd and thin patches, several for each rank; stencils of four points, which thin patches of coarser grids cannot
 * hold. */
START_TEST(whether_grids_are_shared_does_not_show)
{
    static const struct {
        const char *equation, *grid;
        int least;   /* of shared grids */
        int patches; /* 0: as many as ranks */
    } cases[] = {{"laplacian(p)", "cells: [37, 29]", 3, 0},
                 {"laplacian(p) - 3*p", "cells: [37, 29], patches: [5, 3]", 3, 15},
                 {"laplacian(p)", "cells: [37, 29], patches: [1, 7]", 2, 7},
                 {"div4(grad4(p))", "cells: [37, 29], patches: [3, 2]", 2, 6},
                 {"div4(grad4(p))", "cells: [97, 19], patches: [8, 1]", 3, 8}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        uint64_t hash[2];
        int taken[2];
        if (cases[k].patches > 0 && cases[k].patches < trl_context_ranks(test_ctx)) continue;
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
    tcase_add_test(tc, ranks_agree_who_has_merged_patches);
    tcase_add_test(tc, thin_patches_are_merged);
    tcase_add_test(tc, a_rank_of_many_has_few_points);
    tcase_add_test(tc, whether_grids_are_shared_does_not_show);
}

TRL_TEST_MAIN("shared_grids", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2,3,4
#include "trl_test.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "owners_fixture.h"
#include "owners_impl.h"
#include "spatialops_impl.h"

static trl_grid make_grid(int dim, trl_gidx x, trl_gidx y, trl_gidx z)
{
    return (trl_grid){.dim = dim, .cells = {x, y, z}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
}

static int ranks(void)
{
    return trl_context_ranks(test_ctx);
}

/* Whether the patches tile the grid, are as even as can be, and this rank holds those that it owns. */
static void check_tiling(const trl_layout *layout)
{
    const trl_grid *grid = &layout->grid;
    int64_t cells = 0, local = 0;
    for (int id = 0; id < layout->npatches; ++id) {
        const trl_patch found = trl_layout_patch(layout, id), *patch = &found;
        int64_t points = 1;
        ck_assert_int_eq(patch->id, id);
        ck_assert_int_eq(id,
                         patch->index[0] + layout->counts[0] * (patch->index[1] + layout->counts[1] * patch->index[2]));
        ck_assert(patch->rank >= 0 && patch->rank < ranks());
        if (patch->rank == trl_context_rank(test_ctx)) {
            ck_assert_int_eq(layout->local[local], id);
            ck_assert_int_eq(trl_layout_local(layout, id), local);
            ck_assert_mem_eq(&layout->patch[local++], patch, sizeof *patch);
        } else {
            ck_assert_int_eq(trl_layout_local(layout, id), -1);
        }
        for (int corner = 0; corner < 8; ++corner) {
            trl_gidx cell[3];
            for (int a = 0; a < 3; ++a) cell[a] = patch->first[a] + (corner >> a & 1 ? patch->cells[a] - 1 : 0);
            ck_assert_int_eq(trl_layout_owner(layout, cell), id);
        }
        for (int a = 0; a < 3; ++a) {
            trl_gidx even = grid->cells[a] / layout->counts[a];
            ck_assert(patch->cells[a] == even ||
                      (patch->cells[a] == even + 1 && grid->cells[a] % layout->counts[a] != 0));
            points *= patch->cells[a];
        }
        cells += points;
    }
    ck_assert_int_ge(local, 1);
    ck_assert_int_eq(local, layout->nlocal);
    ck_assert_int_le(local, trli_layout_most(layout));
    ck_assert_int_eq(cells, grid->cells[0] * grid->cells[1] * grid->cells[2]);
}

START_TEST(patches_tile_the_grid_whatever_the_counts)
{
    static const int counts[][3] = {{4, 1, 1}, {2, 2, 1}, {3, 2, 2}, {7, 5, 3}, {1, 1, 3}, {1, 5, 1}};
    trl_grid grid = make_grid(3, 7, 5, 3);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        trl_layout *layout;
        int patches = counts[i][0] * counts[i][1] * counts[i][2];
        if (patches < ranks()) continue;
        for (int ways = 0; ways < 4; ++ways) {
            ck_ok(trl_layout_create_owned(test_ctx, &grid, counts[i], next_owners(), NULL, &layout));
            ck_assert_int_eq(layout->npatches, patches);
            check_tiling(layout);
            trl_layout_destroy(&layout);
            ck_assert_ptr_null(layout);
            trl_layout_destroy(&layout);
        }
    }
}
END_TEST

START_TEST(without_counts_each_rank_gets_one_patch)
{
    trl_grid grid = make_grid(3, 9, 8, 7);
    trl_layout *layout;
    ck_ok(trl_layout_create(test_ctx, &grid, NULL, NULL, &layout));
    ck_assert_int_eq(layout->npatches, ranks());
    ck_assert_int_eq(layout->nlocal, 1);
    check_tiling(layout);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(without_counts_the_cut_surface_of_thin_patches_is_the_smallest)
{
    static const struct {
        trl_gidx cells[3];
        bool periodic_y;
        int counts[5][3]; /* by number of ranks */
    } cases[] = {
        {{100, 10, 10}, false, {{0}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}}},
        {{10, 100, 10}, false, {{0}, {1, 1, 1}, {1, 2, 1}, {1, 3, 1}, {1, 4, 1}}},
        {{16, 16, 16}, false, {{0}, {1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 2, 2}}},
        {{10, 14, 1}, true, {{0}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {2, 2, 1}}},
        {{10, 14, 1}, false, {{0}, {1, 1, 1}, {1, 2, 1}, {1, 3, 1}, {2, 2, 1}}},
        {{4, 1, 1}, false, {{0}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases && ranks() <= 4; ++i) {
        const trl_gidx *cells = cases[i].cells;
        trl_grid grid = make_grid(cells[2] > 1 ? 3 : cells[1] > 1 ? 2 : 1, cells[0], cells[1], cells[2]);
        trl_layout *layout;
        grid.periodic[1] = cases[i].periodic_y;
        ck_ok(trl_layout_create(test_ctx, &grid, NULL, NULL, &layout));
        for (int a = 0; a < 3; ++a) {
            ck_assert_msg(layout->counts[a] == cases[i].counts[ranks()][a], "case %zu: %d patches along axis %d", i,
                          layout->counts[a], a);
        }
        trl_layout_destroy(&layout);
    }
}
END_TEST

START_TEST(thick_patches_are_cut_where_ghosts_cost_the_least)
{
    static const struct {
        trl_gidx cells[3];
        int ranks;
        bool periodic, one_node;
        int counts[3];
    } cases[] = {
        {{256, 256, 256}, 4, true, true, {1, 1, 4}},    {{256, 256, 256}, 8, false, true, {1, 2, 4}},
        {{256, 256, 256}, 16, false, true, {1, 4, 4}},  {{256, 256, 256}, 64, false, true, {1, 8, 8}},
        {{256, 256, 256}, 64, false, false, {2, 4, 8}}, {{64, 64, 16}, 4, true, true, {1, 4, 1}},
        {{256, 256, 1}, 16, true, true, {1, 16, 1}},    {{1024, 64, 1}, 4, true, true, {1, 4, 1}},
        {{4096, 64, 1}, 4, true, true, {4, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const trl_gidx *cells = cases[i].cells;
        trl_grid grid = make_grid(cells[2] > 1 ? 3 : 2, cells[0], cells[1], cells[2]);
        int counts[3];
        for (int a = 0; a < grid.dim; ++a) grid.periodic[a] = cases[i].periodic;
        ck_assert(trli_layout_choose(&grid, cases[i].ranks, cases[i].one_node, counts));
        for (int a = 0; a < 3; ++a)
            ck_assert_msg(counts[a] == cases[i].counts[a], "case %zu: %d patches along axis %d", i, counts[a], a);
    }
}
END_TEST

START_TEST(one_patch_for_each_rank_is_taken_where_it_is_as_good)
{
    static const int cells[][3] = {{64, 64, 64},  {100, 100, 100}, {256, 256, 256}, {48, 96, 30},
                                   {100, 100, 1}, {1024, 1024, 1}, {64, 1, 1},      {20, 20, 20}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; ++i)
        for (int n = 1; n <= 20; ++n) {
            const trl_grid grid = make_grid(cells[i][2] > 1   ? 3
                                            : cells[i][1] > 1 ? 2
                                                              : 1,
                                            cells[i][0], cells[i][1], cells[i][2]);
            trli_layout_choice choice;
            ck_assert(trli_layout_choose_patches(&grid, n, true, &choice));
            ck_assert_msg(choice.counts[0] * choice.counts[1] * choice.counts[2] == n, "%d x %d x %d cells on %d ranks",
                          cells[i][0], cells[i][1], cells[i][2], n);
        }
}
END_TEST

/* Cells of the rank that has most, and ghosts of all sides of its patches, by a count of all patches. */
static void count_most(const trl_grid *grid, const int counts[3], int n, double *cells, double *ghosts)
{
    const double cost[] = {16, 1.5, 1};
    trl_layout layout = {.grid = *grid, .npatches = counts[0] * counts[1] * counts[2], .ranks = n, .ctx = test_ctx};
    double *each = calloc(2 * (size_t)n, sizeof *each);
    trli_owner_map *map;
    memcpy(layout.counts, counts, sizeof layout.counts);
    ck_ok(trli_owners_create(&layout, &(trl_owners){.order = TRL_OWNERS_CURVE}, cost, &map));
    layout.owner = map;
    *cells = *ghosts = 0;
    for (int id = 0; id < layout.npatches; ++id) {
        const trl_patch p = trl_layout_patch(&layout, id);
        const double of = (double)p.cells[0] * p.cells[1] * p.cells[2];
        each[2 * p.rank] += of;
        for (int a = 0; a < 3; ++a)
            for (int side = -1; side <= 1; side += 2)
                if (trli_layout_beside(&layout, &p, a, side) >= 0) each[2 * p.rank + 1] += of / p.cells[a];
        if (each[2 * p.rank] > *cells) *cells = each[2 * p.rank];
        if (each[2 * p.rank + 1] > *ghosts) *ghosts = each[2 * p.rank + 1];
    }
    trli_owners_destroy(test_ctx, &map);
    free(each);
}

START_TEST(several_patches_for_each_rank_spare_cells_and_ghosts)
{
    static const int cases[][2] = {{64, 31}, {64, 61}, {128, 31}, {128, 61}, {128, 97}, {128, 127}, {256, 127}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const int n = cases[i][1];
        const trl_grid grid = make_grid(3, cases[i][0], cases[i][0], cases[i][0]);
        double cells[2], ghosts[2];
        trli_layout_choice choice;
        ck_assert(trli_layout_choose_patches(&grid, n, true, &choice));
        ck_assert_int_gt(choice.counts[0] * choice.counts[1] * choice.counts[2], n);
        ck_assert_double_le(choice.cost, 0.9 * choice.cost_of_one);
        count_most(&grid, choice.counts, n, &cells[0], &ghosts[0]);
        count_most(&grid, choice.one, n, &cells[1], &ghosts[1]);
        ck_assert_msg(cells[0] + ghosts[0] < 0.9 * (cells[1] + ghosts[1]), "case %zu: %g and %g, not %g and %g", i,
                      cells[0], ghosts[0], cells[1], ghosts[1]);
    }
}
END_TEST

START_TEST(owner_is_minus_one_outside_the_grid)
{
    trl_grid grid = make_grid(2, 5, 4, 1);
    trl_layout *layout;
    ck_ok(trl_layout_create(test_ctx, &grid, NULL, NULL, &layout));
    ck_assert_int_eq(trl_layout_owner(layout, (trl_gidx[3]){-1, 0, 0}), -1);
    ck_assert_int_eq(trl_layout_owner(layout, (trl_gidx[3]){0, 4, 0}), -1);
    ck_assert_int_eq(trl_layout_owner(layout, (trl_gidx[3]){0, 0, 1}), -1);
    ck_assert_int_eq(trl_layout_owner(layout, (trl_gidx[3]){0, 0, 0}), 0);
    ck_assert_int_eq(trl_layout_owner(layout, (trl_gidx[3]){4, 3, 0}), layout->npatches - 1);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(owned_points_of_all_patches_are_the_points_of_the_grid)
{
    trl_grid grid = make_grid(3, 5, 4, 3);
    trl_layout *layout;
    grid.periodic[1] = true;
    ck_ok(trl_layout_create(test_ctx, &grid, (int[3]){2, 2, 3}, NULL, &layout));
    for (int bits = 0; bits < 8; ++bits) {
        int64_t owned = 0, points = 1;
        for (int id = 0; id < layout->npatches; ++id) {
            const trl_patch patch = trl_layout_patch(layout, id);
            trl_box box = trl_patch_owned(layout, &patch, (trl_location)bits);
            owned += trl_box_points(&box);
        }
        for (int a = 0; a < 3; ++a) points *= trl_grid_points(&grid, (trl_location)bits, a);
        ck_assert_int_eq(owned, points);
    }
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(only_patches_at_a_side_that_is_not_periodic_are_at_a_side)
{
    trl_grid grid = make_grid(2, 6, 6, 1);
    trl_layout *layout;
    grid.periodic[1] = true;
    ck_ok(trl_layout_create(test_ctx, &grid, (int[3]){3, 2, 1}, NULL, &layout));
    for (int id = 0; id < layout->npatches; ++id) {
        const trl_patch found = trl_layout_patch(layout, id), *patch = &found;
        ck_assert_int_eq(trl_patch_at_side(layout, patch, 0, 0), patch->index[0] == 0);
        ck_assert_int_eq(trl_patch_at_side(layout, patch, 0, 1), patch->index[0] == 2);
        for (int side = 0; side < 2; ++side) {
            ck_assert(!trl_patch_at_side(layout, patch, 1, side));
            ck_assert(!trl_patch_at_side(layout, patch, 2, side));
        }
    }
    trl_layout_destroy(&layout);
}
END_TEST

static const trl_place place = {.file = "heat.yaml", .line = 9, .column = 12};

START_TEST(rejects_more_patches_than_cells_at_the_users_place)
{
    trl_grid grid = make_grid(2, 5, 4, 1);
    trl_layout *layout;
    ck_fails(
        trl_layout_create(test_ctx, &grid, (int[3]){2, 5, 1}, &place, &layout), TRL_ERR_INPUT,
        "heat.yaml:9:12: patches: 5 patches along y, where the grid has 4 cells; give a count from 1 to that number");
    ck_assert_ptr_null(layout);
    test_clear();
    ck_fails(trl_layout_create(test_ctx, &grid, (int[3]){2, 2, 2}, NULL, &layout), TRL_ERR_INPUT, "2 patches along z");
    test_clear();
    ck_fails(trl_layout_create(test_ctx, &grid, (int[3]){0, 2, 1}, NULL, &layout), TRL_ERR_INPUT, "0 patches along x");
}
END_TEST

START_TEST(rejects_fewer_patches_than_ranks)
{
    trl_grid grid = make_grid(2, 5, 4, 1);
    trl_layout *layout;
    if (ranks() == 1) return;
    ck_fails(trl_layout_create(test_ctx, &grid, (int[3]){1, 1, 1}, &place, &layout), TRL_ERR_INPUT,
             "and each rank needs one; raise the counts, leave them to 'auto', or run on at most 1 ranks");
}
END_TEST

START_TEST(rejects_more_ranks_than_cells_and_names_a_number_that_fits)
{
    trl_grid grid = make_grid(2, 2, 1, 1);
    trl_layout *layout;
    if (ranks() < 3) return;
    char text[160];
    snprintf(text, sizeof text,
             "heat.yaml:9:12: patches: a grid of 2 x 1 x 1 cells has none for some of %d ranks; use at most 2 ranks",
             ranks());
    ck_fails(trl_layout_create(test_ctx, &grid, NULL, &place, &layout), TRL_ERR_INPUT, text);
}
END_TEST

START_TEST(ranks_that_cannot_have_a_patch_each_share_more)
{
    trl_grid grid = make_grid(2, 2, 2, 1);
    trl_layout *layout;
    if (ranks() != 3) return;
    ck_ok(trl_layout_create(test_ctx, &grid, NULL, NULL, &layout));
    ck_assert_int_eq(layout->npatches, 4);
    check_tiling(layout);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(rejects_patches_beyond_local_indices)
{
    trl_grid grid = make_grid(1, (trl_gidx)INT32_MAX * 8, 1, 1);
    trl_layout *layout;
    ck_fails(trl_layout_create(test_ctx, &grid, (int[3]){8, 1, 1}, NULL, &layout), TRL_ERR_INPUT,
             "a patch of 2147483647 cells along x exceeds the limit of 1073741823; raise the number of patches there");
    ck_ok(trl_layout_create(test_ctx, &grid, (int[3]){17, 1, 1}, NULL, &layout));
    check_tiling(layout);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(rejects_more_patches_than_an_int_counts)
{
    trl_grid grid = make_grid(3, 2048, 2048, 2048);
    trl_layout *layout;
    ck_fails(trl_layout_create(test_ctx, &grid, (int[3]){2048, 2048, 2048}, NULL, &layout), TRL_ERR_INPUT,
             "2048 x 2048 x 2048 are more than 2147483647 patches; lower a count");
}
END_TEST

START_TEST(rejects_a_grid_that_is_none)
{
    trl_grid none = make_grid(0, 4, 4, 1), empty = make_grid(2, 4, 0, 1), flat = make_grid(2, 4, 4, 2);
    trl_layout *layout;
    ck_fails(trl_layout_create(test_ctx, &none, NULL, NULL, &layout), TRL_ERR_USAGE,
             "0 dimensions; 1 to 3 are possible");
    ck_fails(trl_layout_create(test_ctx, &empty, NULL, NULL, &layout), TRL_ERR_USAGE, "grid: 0 cells along y");
    ck_fails(trl_layout_create(test_ctx, &flat, NULL, NULL, &layout), TRL_ERR_USAGE, "grid: 2 cells along z");
    flat = make_grid(2, 4, 4, 1);
    flat.periodic[2] = true;
    ck_fails(trl_layout_create(test_ctx, &flat, NULL, NULL, &layout), TRL_ERR_USAGE, "grid: 1 periodic cells along z");
}
END_TEST

/* ---- owners ---- */

static trl_layout *dealt(const trl_grid *grid, const int counts[3], trl_owner_order order, uint64_t seed)
{
    trl_layout *layout;
    ck_ok(trl_layout_create_owned(test_ctx, grid, counts, &(trl_owners){.order = order, .seed = seed}, NULL, &layout));
    return layout;
}

START_TEST(each_order_has_each_patch_once)
{
    static const int counts[][3] = {{1, 1, 7}, {4, 4, 1}, {3, 5, 2}, {1, 8, 8}, {7, 1, 3}, {9, 9, 9}};
    const trl_grid grid = make_grid(3, 20, 30, 25);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && ranks() > 1; ++i)
        for (int order = 0; order <= TRL_OWNERS_RANDOM; ++order)
            for (int seed = 0; seed < (order == TRL_OWNERS_RANDOM ? 20 : 1); ++seed) {
                trl_layout *layout = dealt(&grid, counts[i], (trl_owner_order)order, (uint64_t)seed);
                for (int at = 0; at < layout->npatches; ++at) {
                    const int id = trli_owners_at(layout->owner, at);
                    ck_assert(id >= 0 && id < layout->npatches);
                    ck_assert_int_eq(trli_owners_position(layout->owner, id), at);
                }
                trl_layout_destroy(&layout);
            }
}
END_TEST

/* Cells of all ranks; patches of three and of four cells along an axis. */
START_TEST(ranks_have_as_many_cells_as_whole_patches_allow)
{
    const trl_grid grid = make_grid(3, 22, 17, 19);
    for (int order = 0; order < TRL_OWNERS_RANDOM; ++order) {
        trl_layout *layout = dealt(&grid, (int[3]){7, 5, 6}, (trl_owner_order)order, 0);
        double cells[4] = {0};
        for (int id = 0; id < layout->npatches; ++id) {
            const trl_patch p = trl_layout_patch(layout, id);
            cells[p.rank] += (double)p.cells[0] * p.cells[1] * p.cells[2];
        }
        for (int r = 0; r < ranks(); ++r) ck_assert_double_le(fabs(cells[r] - 22. * 17 * 19 / ranks()), 4 * 4 * 4);
        trl_layout_destroy(&layout);
    }
}
END_TEST

static double cells_of_rank(const trl_layout *layout, int rank)
{
    double cells = 0;
    for (int id = 0; id < layout->npatches; ++id) {
        const trl_patch p = trl_layout_patch(layout, id);
        if (p.rank == rank) cells += (double)p.cells[0] * p.cells[1] * p.cells[2];
    }
    return cells;
}

/* Of 1 + r each: by planes where each rank has one patch, by patches where they have several. */
START_TEST(ranks_have_their_shares)
{
    static const int counts[][3] = {{1, 1, 0}, {1, 0, 1}, {6, 7, 6}, {1, 8, 8}};
    const trl_grid grid = make_grid(3, 24, 56, 60);
    double share[8], all = 0;
    for (int r = 0; r < ranks(); ++r) all += share[r] = 1 + r;
    for (int i = 0; i < 4 && ranks() > 1; ++i)
        for (int order = 0; order <= TRL_OWNERS_RANDOM; ++order) {
            const trl_owners owners = {.order = (trl_owner_order)order, .seed = 3, .share = share};
            int n[3], patch = 1;
            trl_layout *layout;
            for (int a = 0; a < 3; ++a) n[a] = counts[i][a] ? counts[i][a] : ranks();
            for (int a = 0; a < 3; ++a)
                patch *= (int)(i < 2 && counts[i][a] == 0 ? 1 : (grid.cells[a] + n[a] - 1) / n[a]);
            ck_ok(trl_layout_create_owned(test_ctx, &grid, n, &owners, NULL, &layout));
            for (int r = 0; r < ranks(); ++r)
                ck_assert_double_le(fabs(cells_of_rank(layout, r) - 24. * 56 * 60 * share[r] / all), patch);
            for (int id = 0; id < layout->npatches; ++id) {
                const trl_patch p = trl_layout_patch(layout, id);
                ck_assert_int_eq(trl_layout_owner(layout, p.first), id);
                ck_assert_int_eq(trl_layout_local(layout, id) >= 0, p.rank == trl_context_rank(test_ctx));
            }
            trl_layout_destroy(&layout);
        }
}
END_TEST

/* No rank gets less than 4 planes, if the even one has as many, whatever its share. */
START_TEST(shares_leave_no_rank_without_cells)
{
    double share[8];
    const trl_grid thick = make_grid(2, 10, 40, 1), thin = make_grid(2, 10, ranks() + 1, 1);
    for (int r = 0; r < ranks(); ++r) share[r] = r % 2 ? 1e6 : 1e-6;
    for (int i = 0; i < 2; ++i) {
        const trl_owners owners = {.order = TRL_OWNERS_BLOCKS, .share = share};
        trl_layout *layout;
        ck_ok(trl_layout_create_owned(test_ctx, i ? &thin : &thick, (int[3]){1, ranks(), 1}, &owners, NULL, &layout));
        ck_assert_int_ge(trli_layout_thinnest(layout, 1), i ? 1 : 4);
        ck_assert_int_eq(trli_layout_first(layout, 1, ranks()), layout->grid.cells[1]);
        trl_layout_destroy(&layout);
    }
}
END_TEST

/* Halves, and quarters, of the grid: rows along x belong to one rank. */
START_TEST(the_curve_gives_ranks_boxes_that_cost_little_to_exchange)
{
    const trl_grid grid = make_grid(3, 64, 64, 64);
    if (ranks() != 2 && ranks() != 4) return;
    trl_layout *layout = dealt(&grid, (int[3]){2, 8, 8}, TRL_OWNERS_CURVE, 0);
    int lo[3] = {8, 8, 8}, hi[3] = {0, 0, 0};
    for (int p = 0; p < layout->nlocal; ++p)
        for (int a = 0; a < 3; ++a) {
            const int i = layout->patch[p].index[a];
            if (i < lo[a]) lo[a] = i;
            if (i >= hi[a]) hi[a] = i + 1;
        }
    ck_assert_int_eq(layout->nlocal, 128 / ranks());
    ck_assert_int_eq(hi[0] - lo[0], 2);
    ck_assert_int_eq(hi[1] - lo[1], ranks() == 4 ? 4 : 8);
    ck_assert_int_eq(hi[2] - lo[2], 4);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(random_owners_depend_on_the_seed_alone)
{
    const trl_grid grid = make_grid(3, 16, 16, 16);
    int same = 0, later = 0;
    if (ranks() == 1) return;
    trl_layout *a = dealt(&grid, (int[3]){8, 8, 8}, TRL_OWNERS_RANDOM, 1),
               *b = dealt(&grid, (int[3]){8, 8, 8}, TRL_OWNERS_RANDOM, 1),
               *c = dealt(&grid, (int[3]){8, 8, 8}, TRL_OWNERS_RANDOM, 2);
    ck_assert_uint_lt(a->epoch, b->epoch);
    for (int id = 0; id < a->npatches; ++id) {
        const int owner = trl_layout_patch(a, id).rank;
        ck_assert_int_eq(owner, trl_layout_patch(b, id).rank);
        same += owner == trl_layout_patch(c, id).rank;
        later += id > 0 && owner == trl_layout_patch(a, id - 1).rank;
    }
    ck_assert_int_lt(same, 0.7 * a->npatches);
    ck_assert_int_lt(later, 0.7 * a->npatches);
    trl_layout_destroy(&a);
    trl_layout_destroy(&b);
    trl_layout_destroy(&c);
}
END_TEST

START_TEST(owners_are_parsed)
{
    static const char *const wrong[] = {"",        "block",    "blocks:",   "curve:1",  "random",
                                        "random:", "random:x", "random:1x", "random:-1"};
    trl_owners owners;
    ck_assert(trl_owners_parse("blocks", &owners) && owners.order == TRL_OWNERS_BLOCKS && owners.seed == 0);
    ck_assert(trl_owners_parse("curve", &owners) && owners.order == TRL_OWNERS_CURVE && owners.seed == 0);
    ck_assert(trl_owners_parse("random:17", &owners) && owners.order == TRL_OWNERS_RANDOM && owners.seed == 17);
    ck_assert_str_eq(trl_owners_name(owners.order), "random");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
        ck_assert_msg(!trl_owners_parse(wrong[i], &owners), "'%s'", wrong[i]);
}
END_TEST

static size_t memory_in_use(void)
{
    trl_memory_stats stats;
    trl_memory_get_stats(test_ctx, &stats);
    return stats.bytes;
}

START_TEST(a_rank_holds_its_own_patches_alone)
{
    const trl_grid grid = make_grid(3, 47, 47, 47);
    const size_t before = memory_in_use(), each = sizeof(trl_patch) + sizeof(int), blocks = 4 * 128,
                 owners = sizeof(trli_owner_map) + ((size_t)ranks() + 1) * sizeof(int);
    for (int order = 0; order <= TRL_OWNERS_RANDOM; ++order) {
        trl_layout *layout = dealt(&grid, (int[3]){47, 47, 47}, (trl_owner_order)order, 1);
        ck_assert_uint_le(memory_in_use() - before, sizeof *layout + owners + (size_t)layout->nlocal * each + blocks);
        ck_assert_int_le(layout->nlocal, layout->npatches / ranks() + 1);
        trl_layout_destroy(&layout);
    }
}
END_TEST

/* Half as many cells along x, as many along y, in patches of one to four cells and in one patch along z. */
START_TEST(a_coarser_grid_is_cut_where_the_finer_one_is)
{
    for (int n = 8; n < 40; ++n)
        for (int patches = 1; patches <= 4; ++patches) {
            const trl_grid grid = make_grid(3, n, n + 3, 6), coarse_grid = make_grid(3, (n + 1) / 2, n + 3, 3);
            trl_layout *fine, *coarse;
            if (patches < ranks()) continue;
            ck_ok(trl_layout_create_owned(test_ctx, &grid, (int[3]){patches, 2, 1}, next_owners(), NULL, &fine));
            int by[3];
            trli_layout_merging(fine, &coarse_grid, 1, by);
            ck_assert_int_eq(by[0] * by[1] * by[2], 1);
            ck_ok(trli_layout_create_coarse(fine, &coarse_grid, by, &coarse));
            ck_assert_int_eq(coarse->nlocal, fine->nlocal);
            int64_t cells = 0;
            for (trl_gidx j = 0; j < coarse_grid.cells[0]; ++j) {
                const trl_gidx cell[] = {j, n, 1}, middle[] = {(2 * j + 1) * n / (2 * coarse_grid.cells[0]), n, 2};
                ck_assert_int_eq(trl_layout_owner(coarse, cell), trl_layout_owner(fine, middle));
            }
            for (int id = 0; id < coarse->npatches; ++id) {
                const trl_patch p = trl_layout_patch(coarse, id);
                ck_assert_int_eq(p.rank, trl_layout_patch(fine, id).rank);
                ck_assert(p.cells[0] >= trli_layout_thinnest(coarse, 0) &&
                          p.cells[0] <= trli_layout_thickest(coarse, 0));
                ck_assert_int_le(trli_layout_thickest(coarse, 0) - trli_layout_thinnest(coarse, 0), 2);
                cells += (int64_t)p.cells[0] * p.cells[1] * p.cells[2];
            }
            ck_assert_int_eq(cells, coarse_grid.cells[0] * coarse_grid.cells[1] * coarse_grid.cells[2]);
            const trl_lidx thin = trli_layout_thinnest(coarse, 0);
            trl_layout_destroy(&coarse);
            trli_layout_merging(fine, &coarse_grid, thin + 1, by);
            ck_assert(patches == 1 || by[0] > 1);
            trl_layout_destroy(&fine);
        }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_coarser_grid_is_cut_where_the_finer_one_is);
    tcase_add_test(tc, each_order_has_each_patch_once);
    tcase_add_test(tc, ranks_have_as_many_cells_as_whole_patches_allow);
    tcase_add_test(tc, ranks_have_their_shares);
    tcase_add_test(tc, shares_leave_no_rank_without_cells);
    tcase_add_test(tc, the_curve_gives_ranks_boxes_that_cost_little_to_exchange);
    tcase_add_test(tc, random_owners_depend_on_the_seed_alone);
    tcase_add_test(tc, owners_are_parsed);
    tcase_add_test(tc, a_rank_holds_its_own_patches_alone);
    tcase_add_test(tc, patches_tile_the_grid_whatever_the_counts);
    tcase_add_test(tc, without_counts_each_rank_gets_one_patch);
    tcase_add_test(tc, without_counts_the_cut_surface_of_thin_patches_is_the_smallest);
    tcase_add_test(tc, thick_patches_are_cut_where_ghosts_cost_the_least);
    tcase_add_test(tc, owner_is_minus_one_outside_the_grid);
    tcase_add_test(tc, owned_points_of_all_patches_are_the_points_of_the_grid);
    tcase_add_test(tc, only_patches_at_a_side_that_is_not_periodic_are_at_a_side);
    tcase_add_test(tc, rejects_more_patches_than_cells_at_the_users_place);
    tcase_add_test(tc, rejects_fewer_patches_than_ranks);
    tcase_add_test(tc, rejects_more_ranks_than_cells_and_names_a_number_that_fits);
    tcase_add_test(tc, ranks_that_cannot_have_a_patch_each_share_more);
    tcase_add_test(tc, one_patch_for_each_rank_is_taken_where_it_is_as_good);
    tcase_add_test(tc, several_patches_for_each_rank_spare_cells_and_ghosts);
    tcase_add_test(tc, rejects_patches_beyond_local_indices);
    tcase_add_test(tc, rejects_more_patches_than_an_int_counts);
    tcase_add_test(tc, rejects_a_grid_that_is_none);
}

TRL_TEST_MAIN("layout", add_tests)

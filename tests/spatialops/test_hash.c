/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2,3,4
#include <math.h>

#include "trl_test.h"

#include "owners_fixture.h"

#include <trl_field.h>

enum { GHOSTS = 1, POINTS_MAX = 4096 };

static trl_grid make_grid(void)
{
    return (trl_grid){
        .dim = 3, .cells = {7, 6, 5}, .length = {1, 1, 1}, .spacing = {1, 1, 1}, .periodic = {false, true, false}};
}

static double value_at(trl_gidx i, trl_gidx j, trl_gidx k)
{
    return 0.5 * (double)i - 3.0 * (double)j + 100.0 * (double)k;
}

/* One patch's share of the hash, with ghosts that must not count. */
static uint64_t patch_hash(const trl_layout *layout, const trl_patch *patch, trl_location location, double change)
{
    static double memory[POINTS_MAX];
    trl_array array = {.type = TRL_F64, .owned = trl_patch_owned(layout, patch, location)};
    ptrdiff_t stride = 1, origin = 0;
    array.held = array.owned;
    for (int a = 0; a < 3; ++a) {
        array.held.lo[a] -= GHOSTS;
        array.held.hi[a] += GHOSTS;
        array.stride[a] = stride;
        origin += stride * GHOSTS;
        stride *= array.held.hi[a] - array.held.lo[a];
    }
    ck_assert(stride <= POINTS_MAX);
    for (int i = 0; i < POINTS_MAX; ++i) memory[i] = -77.0 - patch->id;
    array.at = memory + origin;
    for (trl_lidx k = 0; k < array.owned.hi[2]; ++k) {
        for (trl_lidx j = 0; j < array.owned.hi[1]; ++j) {
            for (trl_lidx i = 0; i < array.owned.hi[0]; ++i) {
                trl_gidx x = patch->first[0] + i, y = patch->first[1] + j, z = patch->first[2] + k;
                memory[origin + trl_array_offset(&array, i, j, k)] =
                    value_at(x, y, z) + (x == 3 && y == 2 && z == 1 ? change : 0);
            }
        }
    }
    return trl_array_hash(layout, patch, location, &array);
}

static uint64_t field_hash(const int *counts, trl_location location, double change)
{
    trl_grid grid = make_grid();
    trl_layout *layout;
    uint64_t hash = 0;
    ck_ok(trl_layout_create_owned(test_ctx, &grid, counts, next_owners(), NULL, &layout));
    for (int l = 0; l < layout->nlocal; ++l) hash += patch_hash(layout, &layout->patch[l], location, change);
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    trl_layout_destroy(&layout);
    return hash;
}

/* From the definition: points of the whole grid in order. */
static uint64_t expected_hash(trl_location location)
{
    trl_grid grid = make_grid();
    uint64_t hash = 0, point = 0;
    for (trl_gidx k = 0; k < trl_grid_points(&grid, location, 2); ++k) {
        for (trl_gidx j = 0; j < trl_grid_points(&grid, location, 1); ++j) {
            for (trl_gidx i = 0; i < trl_grid_points(&grid, location, 0); ++i)
                hash += trl_hash_mix(point++, value_at(i, j, k));
        }
    }
    return hash;
}

START_TEST(the_hash_does_not_depend_on_the_decomposition)
{
    static const int cuts[][3] = {{4, 1, 1}, {1, 2, 2}, {2, 2, 2}, {7, 6, 5}};
    for (int bits = 0; bits < 8; ++bits) {
        uint64_t expected = expected_hash((trl_location)bits);
        ck_assert_uint_eq(field_hash(NULL, (trl_location)bits, 0), expected);
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; ++c) {
            ck_assert_uint_eq(field_hash(cuts[c], (trl_location)bits, 0), expected);
        }
    }
}
END_TEST

START_TEST(one_bit_of_one_value_changes_the_hash)
{
    ck_assert_uint_ne(field_hash(NULL, TRL_CELL, 0x1p-40), expected_hash(TRL_CELL));
}
END_TEST

START_TEST(the_mix_tells_points_and_values_apart)
{
    ck_assert_uint_ne(trl_hash_mix(0, 0.0), trl_hash_mix(0, -0.0));
    ck_assert_uint_ne(trl_hash_mix(0, 1.0) + trl_hash_mix(1, 2.0), trl_hash_mix(0, 2.0) + trl_hash_mix(1, 1.0));
    ck_assert_uint_ne(trl_hash_mix(3, 1.0), trl_hash_mix(4, 1.0));
    ck_assert_uint_ne(trl_hash_mix(3, NAN), trl_hash_mix(4, NAN));
    ck_assert_uint_ne(trl_hash_mix(3, NAN), trl_hash_mix(3, INFINITY));
}
END_TEST

START_TEST(all_nans_are_one)
{
    static const uint64_t others[] = {UINT64_C(0xfff8000000000000), UINT64_C(0x7ff8000000000001),
                                      UINT64_C(0xfff0000000000005)};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        double other;
        memcpy(&other, &others[i], sizeof other);
        ck_assert_uint_eq(trl_hash_mix(7, other), trl_hash_mix(7, NAN));
    }
}
END_TEST

START_TEST(the_mix_is_the_same_in_every_version)
{
    ck_assert_uint_eq(trl_hash_mix(0, 0.0), UINT64_C(0x48218226ff3cd4bf));
    ck_assert_uint_eq(trl_hash_mix(12345, -1.5), UINT64_C(0x37de113677c9f58c));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_hash_does_not_depend_on_the_decomposition);
    tcase_add_test(tc, one_bit_of_one_value_changes_the_hash);
    tcase_add_test(tc, the_mix_tells_points_and_values_apart);
    tcase_add_test(tc, all_nans_are_one);
    tcase_add_test(tc, the_mix_is_the_same_in_every_version);
}

TRL_TEST_MAIN("hash", add_tests)

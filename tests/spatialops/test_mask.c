/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,4
#include "driver_fixture.h"

static const int four_patches[3] = {2, 2, 1}, one_row[3] = {1, 4, 1};

static double ball(void *data, const double x[3], double t)
{
    (void)data;
    return pow(x[0] - 0.5, 2) + pow(x[1] - 0.7, 2) < t * t;
}

static double left_half(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[0] < 0.5;
}

static double stripes(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    const double wave = sin(37 * x[0] + 11 * x[1] + 5 * x[2]);
    return wave > 0.5 ? NAN : wave > 0 ? -2 : 0; /* NaN is not zero */
}

/* Points of a mask's boxes that differ from a function of the coordinates. */
static int64_t wrong_points(const trl_mask *mask, trl_point_fn fn, double t)
{
    int64_t wrong = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_box box = trl_patch_owned(layout, local_patch(p), trl_mask_location(mask));
        trl_lidx at[3];
        for (int a = 0; a < layout->grid.dim; ++a) {
            box.lo[a] -= trl_mask_ghosts(mask);
            box.hi[a] += trl_mask_ghosts(mask);
        }
        EACH_POINT(at, box)
        {
            double x[3];
            coordinates(trl_mask_location(mask), p, at, x);
            wrong += trl_mask_holds(mask, p, at[0], at[1], at[2]) != (fn(NULL, x, t) != 0);
        }
    }
    return wrong;
}

START_TEST(holds_the_points_where_a_function_of_coordinates_does)
{
    static const int sizes[][4] = {{1, 300, 1, 1}, {2, 131, 4, 1}, {3, 65, 5, 4}, {3, 5, 4, 3}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
        for (int location = 0; location < 8; location += 3)
            for (int periodic = 0; periodic < 2; ++periodic) {
                trl_grid grid = grid_of(sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3], 7 * periodic);
                trl_mask *mask;
                for (int a = sizes[s][0]; a < 3; ++a) grid.periodic[a] = false;
                open_layout(&grid, NULL);
                ck_ok(trl_mask_create(layout, (trl_location)location, (int)s, stripes, NULL, 0, &mask));
                ck_assert(on_all_ranks(wrong_points(mask, stripes, 0) == 0));
                trl_mask_destroy(&mask);
                ck_assert_ptr_null(mask);
                close_layout();
            }
}
END_TEST

START_TEST(combines_and_counts_as_sets_do)
{
    trl_grid grid = grid_of(2, 70, 9, 1, 0);
    trl_mask *p, *q;
    int64_t in_p, in_q, both, either, neither;
    open_layout(&grid, NULL);
    ck_ok(trl_mask_create(layout, TRL_XFACE, 1, stripes, NULL, 0, &p));
    ck_ok(trl_mask_create(layout, TRL_XFACE, 1, left_half, NULL, 0, &q));
    ck_ok(trl_mask_count(p, &in_p));
    ck_ok(trl_mask_count(q, &in_q));
    ck_assert_int_eq(in_q, (intmax_t)35 * 9);
    ck_ok(trl_mask_and(p, q));
    ck_ok(trl_mask_count(p, &both));
    trl_mask_destroy(&p);
    ck_ok(trl_mask_create(layout, TRL_XFACE, 1, stripes, NULL, 0, &p));
    ck_ok(trl_mask_or(p, q));
    ck_ok(trl_mask_count(p, &either));
    ck_assert_int_eq(either, in_p + in_q - both);
    ck_assert_int_lt(both, in_q);
    ck_assert_int_gt(both, 0);
    trl_mask_not(p);
    ck_ok(trl_mask_count(p, &neither));
    ck_assert_int_eq(neither, (intmax_t)71 * 9 - either);
    trl_mask_destroy(&p);
    trl_mask_destroy(&q);
    close_layout();
}
END_TEST

/* Beyond a side a list goes on, so that a piece of a side reaches its corner. */
START_TEST(takes_points_from_a_list_round_periodic_axes_and_on_beyond_sides)
{
    static const trl_gidx points[][3] = {{0, 9, 0}, {1, 9, 0}, {0, 8, 0}, {1, 8, 0}};
    trl_grid grid = grid_of(2, 10, 10, 1, 1);
    trl_mask *mask;
    int64_t count;
    trl_lidx at[3];
    int64_t wrong = 0;
    open_layout(&grid, ranks() == 4 ? four_patches : NULL);
    ck_ok(trl_mask_create_points(layout, TRL_CELL, 2, 4, points, &mask));
    ck_ok(trl_mask_count(mask, &count));
    ck_assert_int_eq(count, 4);
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_box box = trl_patch_owned(layout, local_patch(p), TRL_CELL);
        for (int a = 0; a < 2; ++a) box.lo[a] -= 2, box.hi[a] += 2;
        EACH_POINT(at, box)
        {
            trl_gidx i = (local_patch(p)->first[0] + at[0] + 10) % 10, j = local_patch(p)->first[1] + at[1];
            wrong += trl_mask_holds(mask, p, at[0], at[1], 0) != (i < 2 && j >= 8);
        }
    }
    ck_assert(on_all_ranks(wrong == 0));
    trl_mask_destroy(&mask);
    close_layout();
}
END_TEST

START_TEST(takes_points_where_a_field_is_not_zero)
{
    trl_grid grid = grid_of(2, 12, 11, 1, 3);
    trl_field *field;
    trl_mask *mask;
    open_layout(&grid, NULL);
    field = new_field("f", TRL_NODE, 2);
    set_field(field, stripes, NULL);
    ck_ok(trl_field_exchange(field));
    ck_ok(trl_mask_create_field(field, 2, &mask));
    ck_assert(on_all_ranks(wrong_points(mask, stripes, 0) == 0));
    trl_mask_destroy(&mask);
    trl_field_destroy(&field);
    close_layout();
}
END_TEST

static double seven(void *data, const double x[3], double t)
{
    (void)data, (void)x, (void)t;
    return 7;
}

static int64_t wrong_values(trl_field *field, const trl_mask *mask, trl_point_fn inside, trl_point_fn outside)
{
    int64_t wrong = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        trl_lidx at[3];
        EACH_POINT(at, array.owned)
        {
            double x[3];
            coordinates(trl_field_location(field), p, at, x);
            bool in = trl_mask_holds(mask, p, at[0], at[1], at[2]);
            wrong += !same_bits(*value_at(&array, at), in ? inside(NULL, x, 0) : outside(NULL, x, 0));
        }
    }
    return wrong;
}

START_TEST(assigns_where_it_holds_and_nowhere_else)
{
    static const int sizes[][4] = {{1, 1100, 1, 1}, {2, 131, 7, 1}, {3, 9, 6, 5}};
    trl_workers *workers;
    trl_loop *loop;
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    ck_ok(trl_loop_create(test_ctx, workers, &loop));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        trl_grid grid = grid_of(sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3], 0);
        open_layout(&grid, NULL);
        trl_field *dst = new_field("dst", TRL_YFACE, 1), *src = new_field("src", TRL_YFACE, 0);
        trl_mask *mask;
        ck_ok(trl_mask_create(layout, TRL_YFACE, 3, stripes, NULL, 0, &mask));
        set_field(dst, wavy, NULL);
        ck_ok(trl_mask_assign_number(mask, loop, 7, dst));
        ck_assert(on_all_ranks(wrong_values(dst, mask, seven, wavy) == 0));
        set_field(src, ball, NULL);
        ck_ok(trl_mask_assign(mask, loop, src, dst));
        ck_assert(on_all_ranks(wrong_values(dst, mask, ball, wavy) == 0));
        trl_mask_destroy(&mask);
        trl_field_destroy(&dst);
        trl_field_destroy(&src);
        close_layout();
    }
    trl_loop_destroy(&loop);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(refuses_what_does_not_fit)
{
    static const trl_gidx far[1][3] = {{0, 5, 0}};
    trl_grid grid = grid_of(2, 4, 4, 1, 0);
    trl_mask *mask, *other;
    trl_box nothing = {{0, 0, 0}, {0, 0, 0}};
    open_layout(&grid, ranks() == 4 ? one_row : NULL);
    ck_ok(trl_mask_create(layout, TRL_CELL, 1, left_half, NULL, 0, &mask));
    ck_ok(trl_mask_create(layout, TRL_CELL, 2, left_half, NULL, 0, &other));
    ck_fails(trl_mask_create(layout, TRL_CELL, -1, left_half, NULL, 0, &(trl_mask *){NULL}), TRL_ERR_USAGE,
             "a mask with -1 layers of ghosts");
    ck_fails(trl_mask_create_points(layout, TRL_CELL, 0, 1, far, &(trl_mask *){NULL}), TRL_ERR_USAGE,
             "point 0 of a mask has index 5 along y; at cell the grid has 0 to 3");
    ck_fails(trl_mask_and(mask, other), TRL_ERR_USAGE, "with 1 layers of ghosts and at cell with 2 cannot be combined");
    trl_field *field = new_field("f", TRL_XFACE, 1), *cells = new_field("g", TRL_CELL, 1);
    set_field(field, wavy, NULL);
    set_field(cells, wavy, NULL);
    ck_fails(trl_mask_assign_number(mask, NULL, 1, field), TRL_ERR_USAGE, "field 'f' is at xface and the mask at cell");
    ck_ok(trl_field_set_valid(cells, 0, &nothing));
    ck_fails(trl_mask_assign_number(mask, NULL, 1, cells), TRL_ERR_USAGE, "'g'");
    trl_mask_destroy(&mask);
    trl_mask_destroy(&other);
    trl_field_destroy(&field);
    trl_field_destroy(&cells);
    close_layout();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, holds_the_points_where_a_function_of_coordinates_does);
    tcase_add_test(tc, combines_and_counts_as_sets_do);
    tcase_add_test(tc, takes_points_from_a_list_round_periodic_axes_and_on_beyond_sides);
    tcase_add_test(tc, takes_points_where_a_field_is_not_zero);
    tcase_add_test(tc, assigns_where_it_holds_and_nowhere_else);
    tcase_add_test(tc, refuses_what_does_not_fit);
}

TRL_TEST_MAIN("mask", add_tests)

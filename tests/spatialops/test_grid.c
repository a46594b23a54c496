/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trl_test.h"

#include <trl_grid.h>

static const trl_grid box = {.dim = 3,
                             .cells = {4, 5, 6},
                             .length = {2, 5, 3},
                             .origin = {-1, 0, 10},
                             .spacing = {0.5, 1, 0.5},
                             .periodic = {false, true, false}};

START_TEST(every_location_has_a_name_that_parses_back)
{
    static const char *const names[] = {"cell", "xface", "yface", "zedge", "zface", "yedge", "xedge", "node"};
    for (int bits = 0; bits < 8; ++bits) {
        trl_location location = TRL_CELL;
        ck_assert_str_eq(trl_location_name((trl_location)bits), names[bits]);
        ck_assert(trl_location_parse(names[bits], &location));
        ck_assert_int_eq((int)location, bits);
    }
}
END_TEST

START_TEST(an_unknown_location_does_not_parse)
{
    trl_location location = TRL_NODE;
    ck_assert(!trl_location_parse("corner", &location));
    ck_assert(!trl_location_parse("", &location));
    ck_assert(!trl_location_parse("cells", &location));
    ck_assert_int_eq(location, TRL_NODE);
}
END_TEST

START_TEST(bits_of_axes_that_the_grid_lacks_are_dropped)
{
    ck_assert_int_eq(trl_location_on(TRL_NODE, 3), TRL_NODE);
    ck_assert_int_eq(trl_location_on(TRL_NODE, 2), TRL_ZEDGE);
    ck_assert_int_eq(trl_location_on(TRL_NODE, 1), TRL_XFACE);
    ck_assert_int_eq(trl_location_on(TRL_ZFACE, 2), TRL_CELL);
    ck_assert_int_eq(trl_location_on(TRL_YEDGE, 2), TRL_XFACE);
}
END_TEST

START_TEST(a_final_plane_exists_only_on_axes_that_are_not_periodic)
{
    ck_assert_int_eq(trl_grid_points(&box, TRL_CELL, 0), 4);
    ck_assert_int_eq(trl_grid_points(&box, TRL_NODE, 0), 5);
    ck_assert_int_eq(trl_grid_points(&box, TRL_NODE, 1), 5);
    ck_assert_int_eq(trl_grid_points(&box, TRL_NODE, 2), 7);
    ck_assert_int_eq(trl_grid_points(&box, TRL_XFACE, 2), 6);
}
END_TEST

START_TEST(an_axis_that_the_grid_lacks_has_one_point_at_any_location)
{
    trl_grid line = {.dim = 1, .cells = {7, 1, 1}};
    ck_assert_int_eq(trl_grid_points(&line, TRL_NODE, 0), 8);
    ck_assert_int_eq(trl_grid_points(&line, TRL_NODE, 1), 1);
    ck_assert_int_eq(trl_grid_points(&line, TRL_NODE, 2), 1);
}
END_TEST

START_TEST(coordinates_sit_on_minus_faces_or_half_a_cell_further)
{
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_XFACE, 0, 0), -1.0);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_XFACE, 0, 4), 1.0);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_CELL, 0, 0), -0.75);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_CELL, 0, -1), -1.25);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_XFACE, 2, 3), 11.75);
}
END_TEST

START_TEST(coordinates_wrap_along_periodic_axes_only)
{
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_CELL, 1, -1), 4.5);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_CELL, 1, 5), 0.5);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_YFACE, 1, 5), 0.0);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_YFACE, 1, -6), 4.0);
    ck_assert_double_eq(trl_grid_coordinate(&box, TRL_ZFACE, 2, 7), 13.5);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_location_has_a_name_that_parses_back);
    tcase_add_test(tc, an_unknown_location_does_not_parse);
    tcase_add_test(tc, bits_of_axes_that_the_grid_lacks_are_dropped);
    tcase_add_test(tc, a_final_plane_exists_only_on_axes_that_are_not_periodic);
    tcase_add_test(tc, an_axis_that_the_grid_lacks_has_one_point_at_any_location);
    tcase_add_test(tc, coordinates_sit_on_minus_faces_or_half_a_cell_further);
    tcase_add_test(tc, coordinates_wrap_along_periodic_axes_only);
}

TRL_TEST_MAIN("grid", add_tests)

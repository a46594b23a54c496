/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trl_test.h"

#include <trl_field.h>

enum { REACH = 6, WIDTH = 2 * REACH + 1 };

/* A set of offsets as a table, the reference for what a footprint stands for. */
typedef struct set {
    bool in[WIDTH][WIDTH][WIDTH];
} set;

static void mark(set *s, const trl_footprint *f)
{
    for (int p = 0; p < f->n; ++p) {
        const trl_offsets *o = &f->part[p];
        for (int k = o->lo[2]; k <= o->hi[2]; ++k) {
            for (int j = o->lo[1]; j <= o->hi[1]; ++j) {
                for (int i = o->lo[0]; i <= o->hi[0]; ++i) s->in[k + REACH][j + REACH][i + REACH] = true;
            }
        }
    }
}

static set set_of(const trl_footprint *f)
{
    set s = {0};
    mark(&s, f);
    return s;
}

static trl_offsets box(int x0, int x1, int y0, int y1, int z0, int z1)
{
    return (trl_offsets){{x0, y0, z0}, {x1, y1, z1}};
}

static trl_footprint of(int n, const trl_offsets *parts)
{
    trl_footprint f = {0};
    for (int i = 0; i < n; ++i) trl_footprint_add(&f, &parts[i]);
    return f;
}

static trl_footprint star(int width)
{
    trl_offsets arms[3] = {box(-width, width, 0, 0, 0, 0), box(0, 0, -width, width, 0, 0),
                           box(0, 0, 0, 0, -width, width)};
    return of(3, arms);
}

START_TEST(parts_inside_another_vanish_in_either_order)
{
    trl_offsets large = box(-2, 2, -1, 1, 0, 0), small = box(-1, 1, 0, 1, 0, 0);
    trl_footprint a = of(2, (trl_offsets[]){large, small}), b = of(2, (trl_offsets[]){small, large});
    ck_assert_int_eq(a.n, 1);
    ck_assert_int_eq(b.n, 1);
    ck_assert_mem_eq(&a.part[0], &large, sizeof large);
    ck_assert_mem_eq(&b.part[0], &large, sizeof large);
}
END_TEST

START_TEST(single_offsets_that_form_a_box_become_one_part)
{
    trl_footprint f = {0};
    for (int o = -1; o <= 1; ++o) {
        trl_offsets point = box(o, o, 0, 0, 0, 0);
        trl_footprint_add(&f, &point);
    }
    ck_assert_int_eq(f.n, 1);
    ck_assert_int_eq(f.part[0].lo[0], -1);
    ck_assert_int_eq(f.part[0].hi[0], 1);
}
END_TEST

START_TEST(joining_two_parts_can_make_a_third_join_too)
{
    trl_offsets parts[] = {box(0, 0, 0, 1, 0, 0), box(1, 1, 0, 0, 0, 0), box(1, 1, 1, 1, 0, 0)};
    trl_footprint f = of(3, parts);
    ck_assert_int_eq(f.n, 1);
    ck_assert_int_eq(trl_footprint_hull(&f).hi[0], 1);
}
END_TEST

START_TEST(a_star_keeps_its_arms_apart)
{
    trl_footprint f = star(2);
    set s = set_of(&f);
    ck_assert_int_eq(f.n, 3);
    ck_assert(s.in[REACH][REACH][REACH + 2]);
    ck_assert(!s.in[REACH][REACH + 1][REACH + 1]);
}
END_TEST

START_TEST(a_full_footprint_holds_at_least_what_was_added_and_stays_in_the_hull)
{
    trl_footprint f = {0};
    trl_offsets hull = {{0, 0, 0}, {0, 0, 0}};
    set expected = {0}, got;
    unsigned seed = 1;
    for (int i = 0; i < 60; ++i) {
        trl_offsets point;
        for (int a = 0; a < 3; ++a) {
            seed = seed * 1664525 + 1013904223;
            point.lo[a] = point.hi[a] = (int)(seed >> 16) % (2 * REACH + 1) - REACH;
            if (i == 0 || point.lo[a] < hull.lo[a]) hull.lo[a] = point.lo[a];
            if (i == 0 || point.hi[a] > hull.hi[a]) hull.hi[a] = point.hi[a];
        }
        mark(&expected, &(trl_footprint){.n = 1, .part = {point}});
        trl_footprint_add(&f, &point);
        ck_assert_int_le(f.n, TRL_FOOTPRINT_MAX);
        got = set_of(&f);
        for (int n = 0; n < WIDTH * WIDTH * WIDTH; ++n) ck_assert((&got.in[0][0][0])[n] || !(&expected.in[0][0][0])[n]);
        trl_offsets found = trl_footprint_hull(&f);
        ck_assert_mem_eq(&found, &hull, sizeof hull);
    }
}
END_TEST

START_TEST(a_full_footprint_joins_what_costs_least)
{
    trl_footprint f = {0};
    for (int i = 0; i < TRL_FOOTPRINT_MAX; ++i) {
        trl_offsets far = box(100 * i, 100 * i, 100 * i, 100 * i, 0, 0);
        trl_footprint_add(&f, &far);
    }
    ck_assert_int_eq(f.n, TRL_FOOTPRINT_MAX);
    trl_offsets near = box(502, 502, 501, 501, 0, 0);
    trl_footprint_add(&f, &near);
    ck_assert_int_eq(f.n, TRL_FOOTPRINT_MAX);
    int joined = 0;
    for (int p = 0; p < f.n; ++p) joined += f.part[p].lo[0] == 500 && f.part[p].hi[0] == 502 && f.part[p].hi[1] == 501;
    ck_assert_int_eq(joined, 1);
}
END_TEST

START_TEST(composing_is_the_minkowski_sum)
{
    trl_offsets shifted[2] = {box(-1, 0, 0, 0, 0, 0), box(2, 2, -1, -1, 0, 1)};
    trl_footprint a = star(1), b = of(2, shifted), sum, swapped;
    set got, expected = {0};
    trl_footprint_compose(&a, &b, &sum);
    got = set_of(&sum);
    for (int p = 0; p < a.n; ++p) {
        for (int q = 0; q < b.n; ++q) {
            trl_footprint one = {.n = 1};
            for (int axis = 0; axis < 3; ++axis) {
                one.part[0].lo[axis] = a.part[p].lo[axis] + b.part[q].lo[axis];
                one.part[0].hi[axis] = a.part[p].hi[axis] + b.part[q].hi[axis];
            }
            mark(&expected, &one);
        }
    }
    ck_assert_mem_eq(&got, &expected, sizeof got);
    trl_footprint_compose(&b, &a, &swapped);
    got = set_of(&swapped);
    ck_assert_mem_eq(&got, &expected, sizeof got);
}
END_TEST

START_TEST(composing_stars_has_no_far_corners)
{
    trl_footprint f = star(1), sum;
    trl_footprint_compose(&f, &f, &sum);
    trl_footprint_compose(&sum, &f, &sum);
    set s = set_of(&sum);
    for (int z = -3; z <= 3; ++z) {
        for (int y = -3; y <= 3; ++y) {
            for (int x = -3; x <= 3; ++x) {
                ck_assert_int_eq(s.in[z + REACH][y + REACH][x + REACH],
                                 s.in[REACH + abs(x)][REACH + abs(y)][REACH + abs(z)]);
                if (abs(x) + abs(y) + abs(z) <= 3) ck_assert(s.in[z + REACH][y + REACH][x + REACH]);
            }
        }
    }
    ck_assert(!s.in[REACH + 3][REACH + 3][REACH]);
}
END_TEST

START_TEST(an_empty_footprint_reads_nothing)
{
    trl_footprint none = {0}, f = star(1), sum = star(2);
    trl_footprint_compose(&none, &f, &sum);
    ck_assert_int_eq(sum.n, 0);
    trl_footprint_compose(&f, &none, &sum);
    ck_assert_int_eq(sum.n, 0);
    trl_offsets hull = trl_footprint_hull(&none);
    for (int a = 0; a < 3; ++a) ck_assert(hull.lo[a] == 0 && hull.hi[a] == 0);
    trl_footprint_add_all(&f, &none);
    ck_assert_int_eq(f.n, 3);
    trl_footprint_add_all(&none, &f);
    ck_assert_int_eq(none.n, 3);
    trl_footprint_add_all(&f, &f);
    ck_assert_int_eq(f.n, 3);
}
END_TEST

START_TEST(the_hull_of_an_offset_away_from_zero_does_not_hold_zero)
{
    trl_offsets away = box(1, 2, -3, -2, 0, 0);
    trl_footprint f = of(1, &away);
    trl_offsets hull = trl_footprint_hull(&f);
    ck_assert_mem_eq(&hull, &away, sizeof hull);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, parts_inside_another_vanish_in_either_order);
    tcase_add_test(tc, single_offsets_that_form_a_box_become_one_part);
    tcase_add_test(tc, joining_two_parts_can_make_a_third_join_too);
    tcase_add_test(tc, a_star_keeps_its_arms_apart);
    tcase_add_test(tc, a_full_footprint_holds_at_least_what_was_added_and_stays_in_the_hull);
    tcase_add_test(tc, a_full_footprint_joins_what_costs_least);
    tcase_add_test(tc, composing_is_the_minkowski_sum);
    tcase_add_test(tc, composing_stars_has_no_far_corners);
    tcase_add_test(tc, an_empty_footprint_reads_nothing);
    tcase_add_test(tc, the_hull_of_an_offset_away_from_zero_does_not_hold_zero);
}

TRL_TEST_MAIN("footprint", add_tests)

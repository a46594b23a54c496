/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,4
#include "driver_fixture.h"

#include <trl_reduction.h>

static double half_space(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[0] + 0.3 * x[1] < 0.55;
}

/* The definitions, in long double over the points of the whole grid. */
static void reference(trl_location location, trl_weights weights, bool masked, double expected[TRL_REDUCTIONS])
{
    const trl_grid *g = &layout->grid;
    long double sum = 0, size = 0, square = 0, total = 0, least = INFINITY, most = -INFINITY, largest = -INFINITY,
                volume = 1;
    trl_gidx n[3];
    for (int a = 0; a < 3; ++a) n[a] = trl_grid_points(g, location, a);
    for (int a = 0; a < g->dim; ++a) volume *= g->spacing[a];
    for (trl_gidx k = 0; k < n[2]; ++k)
        for (trl_gidx j = 0; j < n[1]; ++j)
            for (trl_gidx i = 0; i < n[0]; ++i) {
                trl_gidx at[3] = {i, j, k};
                double x[3];
                long double w = 1;
                for (int a = 0; a < 3; ++a) {
                    x[a] = trl_grid_coordinate(g, location, a, at[a]);
                    bool edge = a < g->dim && location >> a & 1 && !g->periodic[a] && (at[a] == 0 || at[a] == n[a] - 1);
                    if (edge && weights == TRL_OVER_VOLUMES) w /= 2;
                }
                if (masked && half_space(NULL, x, 0) == 0) continue;
                long double f = wavy(NULL, x, 0) - 1.5;
                sum += w * f;
                size += w * fabsl(f);
                square += w * f * f;
                total += w;
                least = f < least ? f : least;
                most = f > most ? f : most;
                largest = fabsl(f) > largest ? fabsl(f) : largest;
            }
    expected[TRL_REDUCE_SUM] = (double)(weights == TRL_OVER_VOLUMES ? sum * volume : sum);
    expected[TRL_REDUCE_MIN] = (double)least;
    expected[TRL_REDUCE_MAX] = (double)most;
    expected[TRL_REDUCE_L1] = (double)(size / total);
    expected[TRL_REDUCE_L2] = (double)sqrtl(square / total);
    expected[TRL_REDUCE_LINF] = (double)largest;
}

static double wavy_about_zero(void *data, const double x[3], double t)
{
    return wavy(data, x, t) - 1.5;
}

static void check_all_kinds(trl_location location, trl_loop *loop)
{
    trl_field *field = new_field("f", location, 1);
    trl_mask *mask;
    set_field(field, wavy_about_zero, NULL);
    ck_ok(trl_mask_create(layout, location, 1, half_space, NULL, 0, &mask));
    for (int masked = 0; masked < 2; ++masked)
        for (int weights = 0; weights < 2; ++weights) {
            double expected[TRL_REDUCTIONS];
            reference(trl_location_on(location, layout->grid.dim), (trl_weights)weights, masked, expected);
            for (int kind = 0; kind < TRL_REDUCTIONS; ++kind) {
                double found;
                ck_ok(trl_field_reduce(field, loop, (trl_reduction)kind, (trl_weights)weights, masked ? mask : NULL,
                                       &found));
                bool exact = kind == TRL_REDUCE_MIN || kind == TRL_REDUCE_MAX || kind == TRL_REDUCE_LINF;
                bool good = isnan(expected[kind]) ? isnan(found)
                            : exact               ? found == expected[kind]
                                                  : fabs(found - expected[kind]) < 1e-13 * (1 + fabs(expected[kind]));
                ck_assert_msg(good, "%s at %s in %d-D, %s, %s: %.17g, expected %.17g",
                              trl_reduction_name((trl_reduction)kind), trl_location_name(location), layout->grid.dim,
                              weights ? "volumes" : "points", masked ? "masked" : "all", found, expected[kind]);
            }
        }
    trl_mask_destroy(&mask);
    trl_field_destroy(&field);
}

START_TEST(gives_sums_extremes_and_norms_of_every_location)
{
    static const int sizes[][4] = {{1, 1, 1, 1}, {1, 2100, 1, 1}, {2, 1, 5, 1}, {2, 33, 7, 1}, {3, 7, 5, 4}};
    trl_workers *workers;
    trl_loop *loop;
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    ck_ok(trl_loop_create(test_ctx, workers, &loop));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        const int *n = sizes[s];
        if (n[1] * n[2] * n[3] < ranks()) continue;
        for (int periodic = 0; periodic < 2; ++periodic) {
            trl_grid grid = grid_of(n[0], n[1], n[2], n[3], periodic);
            open_layout(&grid, NULL);
            for (int location = 0; location < 1 << n[0]; ++location) check_all_kinds((trl_location)location, loop);
            close_layout();
        }
    }
    trl_loop_destroy(&loop);
    trl_workers_destroy(&workers);
}
END_TEST

/* Values of very different sizes: a plain sum would depend on its order. */
static double spread(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return sin(1000 * x[0] + 77 * x[1]) * pow(10, 12 * sin(50 * x[0] * x[1]));
}

START_TEST(has_the_same_bits_on_any_decomposition_and_any_number_of_workers)
{
    static const int cuts[][3] = {{1, 1, 1}, {4, 1, 1}, {2, 2, 1}, {1, 6, 1}, {5, 3, 1}};
    double first[TRL_REDUCTIONS][2] = {{0}};
    trl_workers *workers;
    trl_loop *loop;
    bool seen = false;
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    ck_ok(trl_loop_create(test_ctx, workers, &loop));
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; ++c) {
        trl_grid grid = grid_of(2, 45, 17, 1, 0);
        if (cuts[c][0] * cuts[c][1] < ranks()) continue;
        open_layout(&grid, cuts[c]);
        trl_field *field = new_field("f", TRL_NODE, 0);
        trl_mask *mask;
        set_field(field, spread, NULL);
        ck_ok(trl_mask_create(layout, TRL_NODE, 0, half_space, NULL, 0, &mask));
        for (int kind = 0; kind < TRL_REDUCTIONS; ++kind)
            for (int masked = 0; masked < 2; ++masked)
                for (int parallel = 0; parallel < 2; ++parallel) {
                    double found;
                    ck_ok(trl_field_reduce(field, parallel ? loop : NULL, (trl_reduction)kind, TRL_OVER_VOLUMES,
                                           masked ? mask : NULL, &found));
                    if (!seen && !parallel) first[kind][masked] = found;
                    ck_assert_msg(same_bits(found, first[kind][masked]), "%s: %a, and %a on one patch",
                                  trl_reduction_name((trl_reduction)kind), found, first[kind][masked]);
                }
        seen = true;
        trl_mask_destroy(&mask);
        trl_field_destroy(&field);
        close_layout();
    }
    trl_loop_destroy(&loop);
    trl_workers_destroy(&workers);
}
END_TEST

static double one_nan(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[0] > 0.7 ? (double)NAN : x[0];
}

static double zeros(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[0] > 0.5 ? -0.0 : 0.0;
}

static double nowhere(void *data, const double x[3], double t)
{
    (void)data, (void)x, (void)t;
    return 0;
}

START_TEST(lets_nan_through_and_gives_the_neutral_values_of_no_points)
{
    static const double of_none[TRL_REDUCTIONS] = {0, INFINITY, -INFINITY, NAN, NAN, -INFINITY};
    trl_grid grid = grid_of(1, 8, 1, 1, 0);
    trl_mask *mask, *none;
    double found;
    open_layout(&grid, NULL);
    trl_field *field = new_field("f", TRL_CELL, 0);
    ck_ok(trl_mask_create(layout, TRL_CELL, 0, half_space, NULL, 0, &mask));
    ck_ok(trl_mask_create(layout, TRL_CELL, 0, nowhere, NULL, 0, &none));
    for (int kind = 0; kind < TRL_REDUCTIONS; ++kind) {
        set_field(field, one_nan, NULL);
        ck_ok(trl_field_reduce(field, NULL, (trl_reduction)kind, TRL_OVER_POINTS, NULL, &found));
        ck_assert_msg(isnan(found), "%s", trl_reduction_name((trl_reduction)kind));
        ck_ok(trl_field_reduce(field, NULL, (trl_reduction)kind, TRL_OVER_POINTS, mask, &found));
        ck_assert_msg(isfinite(found), "%s", trl_reduction_name((trl_reduction)kind));
        ck_ok(trl_field_reduce(field, NULL, (trl_reduction)kind, TRL_OVER_POINTS, none, &found));
        ck_assert_msg(isnan(of_none[kind]) ? isnan(found) : found == of_none[kind], "%s of no points: %g",
                      trl_reduction_name((trl_reduction)kind), found);
        set_field(field, zeros, NULL);
        ck_ok(trl_field_reduce(field, NULL, (trl_reduction)kind, TRL_OVER_POINTS, NULL, &found));
        ck_assert_msg(same_bits(found, 0.0), "%s of zeros: %a", trl_reduction_name((trl_reduction)kind), found);
    }
    trl_mask_destroy(&mask);
    trl_mask_destroy(&none);
    trl_field_destroy(&field);
    close_layout();
}
END_TEST

START_TEST(fails_on_all_ranks_if_values_are_missing_on_one)
{
    trl_grid grid = grid_of(1, 8, 1, 1, 0);
    trl_box nothing = {{0, 0, 0}, {0, 0, 0}};
    trl_mask *mask;
    double found;
    open_layout(&grid, NULL);
    trl_field *field = new_field("fresh", TRL_CELL, 0);
    set_field(field, wavy, NULL);
    ck_ok(trl_mask_create(layout, TRL_XFACE, 0, half_space, NULL, 0, &mask));
    ck_fails(trl_field_reduce(field, NULL, TRL_REDUCE_SUM, TRL_OVER_POINTS, mask, &found), TRL_ERR_USAGE,
             "field 'fresh' is at cell and the mask at xface");
    if (trl_context_rank(test_ctx) == ranks() - 1) ck_ok(trl_field_set_valid(field, 0, &nothing));
    ck_fails(trl_field_reduce(field, NULL, TRL_REDUCE_SUM, TRL_OVER_POINTS, NULL, &found), TRL_ERR_USAGE, "'fresh'");
    trl_mask_destroy(&mask);
    trl_field_destroy(&field);
    close_layout();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, gives_sums_extremes_and_norms_of_every_location);
    tcase_add_test(tc, has_the_same_bits_on_any_decomposition_and_any_number_of_workers);
    tcase_add_test(tc, lets_nan_through_and_gives_the_neutral_values_of_no_points);
    tcase_add_test(tc, fails_on_all_ranks_if_values_are_missing_on_one);
}

TRL_TEST_MAIN("reduction", add_tests)

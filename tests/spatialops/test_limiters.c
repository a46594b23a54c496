/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trl_test.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include <trl_limiter_body.h>

/* psi(r) as the sources define it, with divisions and all. */
static double psi_of(trl_limiter limiter, double r)
{
    if (r <= 0) return 0;
    switch (limiter) {
    case TRL_LIMITER_UPWIND:
        return 0;
    case TRL_LIMITER_MINMOD:
        return fmin(1, r);
    case TRL_LIMITER_VANLEER:
        return (r + fabs(r)) / (1 + fabs(r));
    case TRL_LIMITER_SUPERBEE:
        return fmax(0, fmax(fmin(1, 2 * r), fmin(2, r)));
    case TRL_LIMITER_MC:
        return fmax(0, fmin(fmin((1 + r) / 2, 2), 2 * r));
    case TRL_LIMITER_KOREN: /* given for 1/r and the slope fc - fu */
        return r * fmax(0, fmin(2 / r, fmin((1 + 2 / r) / 3, 2)));
    case TRL_LIMITER_CHARM:
        return r * (1 / r) * (3 / r + 1) / ((1 / r + 1) * (1 / r + 1));
    case TRL_LIMITER_OSPRE:
        return 1.5 * (r * r + r) / (r * r + r + 1);
    case TRL_LIMITER_SMART:
        return r * fmax(0, fmin(2 / r, fmin(0.25 + 0.75 / r, 4)));
    default:
        return NAN;
    }
}

static bool in_sweby_region(trl_limiter limiter)
{
    return limiter != TRL_LIMITER_CHARM && limiter != TRL_LIMITER_SMART;
}

/* psi(r) found from a face value. */
static double measured_psi(trl_limiter limiter, double r)
{
    return 2 * trl_limiter_face(limiter, -r, 0, 1);
}

static double random_value(void)
{
    return (double)rand() / RAND_MAX * 4 - 2;
}

START_TEST(each_limiter_is_its_published_function)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        for (int i = -40; i <= 400; ++i) {
            double r = i * 0.025;
            ck_assert_double_eq_tol(measured_psi((trl_limiter)l, r), psi_of((trl_limiter)l, r), 4e-15);
        }
    }
}
END_TEST

START_TEST(names_reach_their_functions)
{
#define CHECK_NAME(NAME, name, psi)                                            \
    ck_assert_double_eq(trl_limiter_face(TRL_LIMITER_##NAME, -0.4, 0.25, 1.5), \
                        trl_limiter_face_##name(-0.4, 0.25, 1.5));
    TRL_LIMITER_LIST(CHECK_NAME)
#undef CHECK_NAME
}
END_TEST

START_TEST(the_face_lies_between_its_two_neighbours)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        for (int i = 0; i < 20000; ++i) {
            double fu = random_value(), fc = random_value(), fd = random_value();
            double face = trl_limiter_face((trl_limiter)l, fu, fc, fd);
            ck_assert_double_ge(face, fmin(fc, fd) - DBL_EPSILON);
            ck_assert_double_le(face, fmax(fc, fd) + DBL_EPSILON);
        }
    }
}
END_TEST

START_TEST(psi_stays_in_swebys_region_or_in_the_bounded_one)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        double steepest = in_sweby_region((trl_limiter)l) ? 2 : 4;
        for (int i = -200; i <= 2000; ++i) {
            double r = i * 0.01, psi = measured_psi((trl_limiter)l, r);
            ck_assert_double_ge(psi, 0);
            ck_assert_double_le(psi, (r > 0 ? fmin(steepest * r, 2) : 0) * (1 + 4 * DBL_EPSILON));
        }
    }
}
END_TEST

START_TEST(a_step_of_advection_does_not_raise_the_total_variation)
{
    enum { N = 64 };
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        double f[N], face[N], before = 0, after = 0;
        if (!in_sweby_region((trl_limiter)l)) continue;
        for (int i = 0; i < N; ++i) f[i] = (i > 10 && i < 30) + random_value();
        for (int i = 0; i < N; ++i) {
            before += fabs(f[i] - f[(i + N - 1) % N]);
            face[i] = trl_limiter_face((trl_limiter)l, f[(i + N - 1) % N], f[i], f[(i + 1) % N]);
        }
        for (int i = 0; i < N; ++i) { /* Courant number 1/2: the limit of Harten's condition for psi <= 2 */
            double now = f[i] - 0.5 * (face[i] - face[(i + N - 1) % N]);
            double left = f[(i + N - 1) % N] - 0.5 * (face[(i + N - 1) % N] - face[(i + N - 2) % N]);
            after += fabs(now - left);
        }
        ck_assert_msg(after <= before * (1 + 1e-14), "limiter %d: %g from %g", l, after, before);
    }
}
END_TEST

START_TEST(an_extremum_and_a_flat_side_give_the_upwind_value_exactly)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        for (int i = 0; i < 1000; ++i) {
            double fu = random_value(), fc = random_value(), d = fabs(random_value());
            ck_assert_double_eq(trl_limiter_face((trl_limiter)l, fu, fc, fc), fc);
            ck_assert_double_eq(trl_limiter_face((trl_limiter)l, fc, fc, fu), fc);
            ck_assert_double_eq(trl_limiter_face((trl_limiter)l, fc + d, fc, fc + 2 * d), fc);
            ck_assert_double_eq(trl_limiter_face((trl_limiter)l, fc - d, fc, fc - 2 * d), fc);
            ck_assert_double_eq(trl_limiter_face((trl_limiter)l, fc, fc, fc), fc);
        }
    }
}
END_TEST

START_TEST(linear_data_are_reconstructed_exactly)
{
    for (int l = TRL_LIMITER_UPWIND + 1; l < TRL_LIMITER_COUNT; ++l) {
        ck_assert_double_eq_tol(trl_limiter_face((trl_limiter)l, 1, 3, 5), 4, 1e-15);
        ck_assert_double_eq_tol(trl_limiter_face((trl_limiter)l, 5, 3, 1), 2, 1e-15);
    }
}
END_TEST

/* Maximum error of (face - face of the cell before)/h as a derivative of cell averages of exp, on a monotone
 * stretch. */
static double derivative_error(trl_limiter limiter, int n)
{
    double h = 1.0 / n, error = 0;
    for (int i = 3; i < n - 1; ++i) {
        double f[4];
        for (int j = 0; j < 4; ++j) f[j] = (exp((i + j - 2) * h) - exp((i + j - 3) * h)) / h;
        double face = trl_limiter_face(limiter, f[1], f[2], f[3]), before = trl_limiter_face(limiter, f[0], f[1], f[2]);
        error = fmax(error, fabs((face - before) / h - (exp(i * h) - exp((i - 1) * h)) / h));
    }
    return error;
}

START_TEST(derivatives_of_averages_are_second_order_and_third_with_koren)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        double order = log2(derivative_error((trl_limiter)l, 64) / derivative_error((trl_limiter)l, 128));
        double expected = l == TRL_LIMITER_UPWIND ? 1 : l == TRL_LIMITER_KOREN ? 3 : 2;
        ck_assert_msg(fabs(order - expected) < 0.1, "limiter %d: order %g", l, order);
    }
}
END_TEST

START_TEST(faces_from_points_are_second_order_and_third_with_charm_and_smart)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        double error[2];
        for (int i = 0; i < 2; ++i) {
            double h = i == 0 ? 0.02 : 0.01;
            error[i] = fabs(trl_limiter_face((trl_limiter)l, exp(-1.5 * h), exp(-0.5 * h), exp(0.5 * h)) - 1);
        }
        double order = log2(error[0] / error[1]);
        double expected = l == TRL_LIMITER_UPWIND ? 1 : l == TRL_LIMITER_CHARM || l == TRL_LIMITER_SMART ? 3 : 2;
        ck_assert_msg(fabs(order - expected) < 0.1, "limiter %d: order %g", l, order);
    }
}
END_TEST

START_TEST(mirrored_values_give_the_mirrored_face)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        for (int i = 0; i < 1000; ++i) {
            double fu = random_value(), fc = random_value(), fd = random_value();
            ck_assert_double_eq(trl_limiter_face((trl_limiter)l, -fu, -fc, -fd),
                                -trl_limiter_face((trl_limiter)l, fu, fc, fd));
        }
    }
}
END_TEST

START_TEST(symmetric_limiters_treat_both_slopes_alike)
{
    static const trl_limiter symmetric[] = {TRL_LIMITER_MINMOD, TRL_LIMITER_VANLEER, TRL_LIMITER_SUPERBEE,
                                            TRL_LIMITER_MC, TRL_LIMITER_OSPRE};
    for (size_t s = 0; s < sizeof symmetric / sizeof *symmetric; ++s) {
        for (int i = 1; i < 100; ++i) {
            double p = i * 0.07, q = 1.0;
            double one = trl_limiter_face(symmetric[s], -p, 0, q), other = trl_limiter_face(symmetric[s], -q, 0, p);
            ck_assert_double_eq_tol(one, other, 1e-15);
        }
    }
}
END_TEST

START_TEST(the_face_rises_with_its_downwind_value_and_falls_with_none)
{
    for (int l = TRL_LIMITER_UPWIND + 1; l < TRL_LIMITER_COUNT; ++l) {
        for (int i = 0; i < 400; ++i) {
            double r = i * 0.05, less = trl_limiter_face((trl_limiter)l, -1, 0, r);
            double more = trl_limiter_face((trl_limiter)l, -1, 0, r + 0.05);
            ck_assert_double_ge(more, less - 1e-15);
            less = trl_limiter_face((trl_limiter)l, -r, 0, 1); /* and with the slope on the upwind side */
            more = trl_limiter_face((trl_limiter)l, -r - 0.05, 0, 1);
            if (l != TRL_LIMITER_CHARM) ck_assert_double_ge(more, less - 1e-15);
        }
    }
}
END_TEST

START_TEST(tiny_and_huge_values_scale)
{
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
        double face = trl_limiter_face((trl_limiter)l, -0.3, 0, 1);
        ck_assert_double_eq(trl_limiter_face((trl_limiter)l, -0.3 * 0x1p-900, 0, 0x1p-900), face * 0x1p-900);
        ck_assert_double_eq(trl_limiter_face((trl_limiter)l, -0.3 * 0x1p+900, 0, 0x1p+900), face * 0x1p+900);
    }
}
END_TEST

START_TEST(nan_in_any_value_that_is_read_shows)
{
    ck_assert(isnan(trl_limiter_face(TRL_LIMITER_UPWIND, 1, NAN, 2)));
    for (int l = TRL_LIMITER_UPWIND + 1; l < TRL_LIMITER_COUNT; ++l) {
        ck_assert(isnan(trl_limiter_face((trl_limiter)l, NAN, 1, 2)));
        ck_assert(isnan(trl_limiter_face((trl_limiter)l, 1, NAN, 2)));
        ck_assert(isnan(trl_limiter_face((trl_limiter)l, 1, 2, NAN)));
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, each_limiter_is_its_published_function);
    tcase_add_test(tc, names_reach_their_functions);
    tcase_add_test(tc, the_face_lies_between_its_two_neighbours);
    tcase_add_test(tc, psi_stays_in_swebys_region_or_in_the_bounded_one);
    tcase_add_test(tc, a_step_of_advection_does_not_raise_the_total_variation);
    tcase_add_test(tc, an_extremum_and_a_flat_side_give_the_upwind_value_exactly);
    tcase_add_test(tc, linear_data_are_reconstructed_exactly);
    tcase_add_test(tc, derivatives_of_averages_are_second_order_and_third_with_koren);
    tcase_add_test(tc, faces_from_points_are_second_order_and_third_with_charm_and_smart);
    tcase_add_test(tc, mirrored_values_give_the_mirrored_face);
    tcase_add_test(tc, symmetric_limiters_treat_both_slopes_alike);
    tcase_add_test(tc, the_face_rises_with_its_downwind_value_and_falls_with_none);
    tcase_add_test(tc, tiny_and_huge_values_scale);
    tcase_add_test(tc, nan_in_any_value_that_is_read_shows);
}

TRL_TEST_MAIN("limiters", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Components of patterns, and spectral radii: closed forms, random matrices with a known radius, cycles, bad
 * scaling. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spectrum_impl.h"
#include "trl_spectrum_body.h"
#include "trl_test.h"

enum { MOST = 12 };

static unsigned long state = 12345;

static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 33 & 0xffffff) / 0x1000000;
}

static double radius(int n, const double *given)
{
    double m[MOST * MOST], work[3 * MOST];
    memcpy(m, given, (size_t)(n * n) * sizeof *m);
    return trli_spectral_radius(trli_alone(), n, m, work);
}

START_TEST(one_and_two_are_exact)
{
    ck_assert_double_eq(radius(1, (const double[]){0.3}), 0.3);
    ck_assert_double_eq(radius(2, (const double[]){0, 1, 16, 0}), 4);
    ck_assert_double_eq(radius(2, (const double[]){1, 2, 1, 2}), 3);
    ck_assert_double_eq(radius(2, (const double[]){5, 7, 0, 3}), 5);
    ck_assert_double_eq_tol(radius(2, (const double[]){0, 1e-200, 1e200, 0}), 1, 1e-15); /* no overflow between */
    ck_assert_double_eq_tol(radius(2, (const double[]){0, 1e300, 1e300, 0}), 1e300, 1e286);
}
END_TEST

/* D A D^-1 with A's rows summing to r has radius r, whatever the scales D are. */
START_TEST(finds_a_radius_that_is_known_at_any_scales)
{
    for (int trial = 0; trial < 500; ++trial) {
        int n = 3 + trial % (MOST - 2);
        double m[MOST * MOST], scale[MOST], r = pow(10, 6 * draw() - 3);
        for (int i = 0; i < n; ++i) scale[i] = pow(10, 12 * draw() - 6);
        for (int i = 0; i < n; ++i) {
            double sum = 0;
            for (int j = 0; j < n; ++j) sum += m[i * n + j] = draw() < 0.4 && j != (i + 1) % n ? 0 : draw() + 1e-3;
            for (int j = 0; j < n; ++j) m[i * n + j] *= r / sum * scale[i] / scale[j];
        }
        double found = radius(n, m);
        ck_assert_msg(found >= r * (1 - 1e-12) && found <= r * (1 + 1e-8), "n = %d: %.17g, not %.17g", n, found, r);
    }
}
END_TEST

START_TEST(a_cycle_has_the_geometric_mean_of_its_weights)
{
    for (int n = 3; n <= MOST; ++n) {
        double m[MOST * MOST] = {0}, product = 0;
        for (int i = 0; i < n; ++i) {
            m[i * n + (i + 1) % n] = pow(10, 8 * draw() - 4);
            product += log(m[i * n + (i + 1) % n]);
        }
        ck_assert_double_eq_tol(radius(n, m) / exp(product / n), 1, 1e-8);
    }
}
END_TEST

START_TEST(a_star_has_the_root_of_the_sum_of_products)
{
    const double m[] = {0, 3, 1e6, 12, 0, 0, 1e-6 * 64, 0, 0}; /* sqrt(36 + 64) */
    ck_assert_double_eq_tol(radius(3, m), 10, 1e-7);
}
END_TEST

START_TEST(what_is_not_finite_shows)
{
    ck_assert(isnan(radius(3, (const double[]){0, 1, 0, 0, NAN, 1, 1, 0, 0})));
    ck_assert(isinf(radius(3, (const double[]){0, 1, 0, 0, INFINITY, 1, 1, 0, 0})));
    ck_assert(isnan(radius(1, (const double[]){NAN})));
}
END_TEST

/* Against the closure of reachability. */
START_TEST(components_are_what_reaches_each_other)
{
    for (int trial = 0; trial < 300; ++trial) {
        int n = 1 + trial % MOST, start[MOST + 1] = {0}, column[MOST * MOST], component[MOST], k = 0;
        bool reach[MOST][MOST] = {{false}};
        for (int i = 0; i < n; ++i) {
            reach[i][i] = true;
            for (int j = 0; j < n; ++j) {
                if (draw() > 1.3 / n) continue;
                reach[i][j] = true;
                column[k++] = j;
            }
            start[i + 1] = k;
        }
        const trli_pattern pattern = {n, start, column};
        int found = trli_components(test_ctx, &pattern, component);
        for (int via = 0; via < n; ++via)
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j) reach[i][j] |= reach[i][via] && reach[via][j];
        for (int i = 0; i < n; ++i) {
            ck_assert(component[i] >= 0 && component[i] < found);
            for (int j = 0; j < n; ++j) ck_assert((component[i] == component[j]) == (reach[i][j] && reach[j][i]));
        }
    }
}
END_TEST

/* A chain of 200,000: no recursion. */
START_TEST(long_chains_need_no_stack)
{
    enum { N = 200000 };
    int *start = malloc((N + 1) * sizeof *start), *column = malloc(N * sizeof *column),
        *component = malloc(N * sizeof *component);
    ck_assert(start && column && component);
    for (int i = 0; i < N; ++i) {
        start[i] = i;
        column[i] = (i + 1) % N;
    }
    start[N] = N;
    const trli_pattern ring = {N, start, column};
    ck_assert_int_eq(trli_components(test_ctx, &ring, component), 1);
    free(start);
    free(column);
    free(component);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, one_and_two_are_exact);
    tcase_add_test(tc, finds_a_radius_that_is_known_at_any_scales);
    tcase_add_test(tc, a_cycle_has_the_geometric_mean_of_its_weights);
    tcase_add_test(tc, a_star_has_the_root_of_the_sum_of_products);
    tcase_add_test(tc, what_is_not_finite_shows);
    tcase_add_test(tc, components_are_what_reaches_each_other);
    tcase_add_test(tc, long_chains_need_no_stack);
}

TRL_TEST_MAIN("spectrum", add_tests)

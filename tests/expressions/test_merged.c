/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values that kernels merge, lanes by lanes: exact sums, or none; extremes, and whether all values are finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trl_test.h"

#include <reduction_impl.h>
#include <trl_kernel_merge_body.h>

enum { N = TRLI_WINDOW_VALUES };

static uint64_t state = 5;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Of either sign, with all bits of a significand, from 2^(least) to 2^(most + 1). */
static double draw(int least, int most)
{
    const double value =
        ldexp(1 + (double)(next_random() >> 12) * 0x1p-52, least + (int)(next_random() % (uint64_t)(most - least + 1)));
    return next_random() % 2 ? -value : value;
}

static void draw_all(double *values, int n, int least, int most)
{
    for (int i = 0; i < n; ++i) values[i] = draw(least, most);
}

/* As a kernel goes through a row: the last lanes overlap others; shorter rows go value by value. */
static void merge_row(trl_kernel_total *t, const double *values, long long n)
{
    for (long long i = 0; n < TRL_KERNEL_LANES && i < n; ++i) trl_kernel_merge_sum(t, trl_kernel_single(values[i]));
    for (long long i = 0; n >= TRL_KERNEL_LANES && i < n; i += TRL_KERNEL_LANES) {
        if (i > n - TRL_KERNEL_LANES) i = n - TRL_KERNEL_LANES;
        trl_kernel_merge_sum(t, trl_kernel_fresh(trl_kernel_load(values + i), i, n));
    }
}

/* Add values in rows of that length; false: they are not added. Whatever is added is exact. */
static bool add_rows(trli_sum_window *w, const double *values, int n, int row)
{
    trl_kernel_merged merged = {.start = {w->start[0], w->start[1]}};
    trl_kernel_total total;
    trl_sum sum, expected;
    ck_assert(w->start[0] != 0);
    trl_kernel_begin(&total, &merged);
    for (int i = 0; i < n; i += row) merge_row(&total, values + i, n - i < row ? n - i : row);
    trl_kernel_end_sum(&merged, &total);
    if (merged.failed) return false;
    trl_sum_clear(&sum);
    trl_sum_clear(&expected);
    for (int i = 0; i < n; ++i) trl_sum_add(&expected, &values[i], 1);
    trli_sum_window_add(w, &sum, merged.units);
    trli_sum_window_empty(w, &sum);
    trl_sum_normalise(&sum);
    trl_sum_normalise(&expected);
    ck_assert_mem_eq(sum.word, expected.word, sizeof sum.word);
    return true;
}

static trli_sum_window window_of(const double *values, int n)
{
    trli_sum_window w = {.pending = 0};
    trl_sum none;
    trl_sum_clear(&none);
    trli_sum_window_choose(&w, &none, values, n);
    return w;
}

START_TEST(what_a_kernel_adds_is_exact)
{
    static double values[N];
    for (int round = 0; round < 400; ++round) {
        const int at = (int)(next_random() % 1900) - 950, row = 1 + (int)(next_random() % (round % 2 ? 9 : N));
        draw_all(values, N, at, at + 9);
        if (round % 3 == 0) values[next_random() % N] = 0;
        trli_sum_window w = window_of(values, N);
        const int n = row < TRL_KERNEL_LANES ? N / 8 : N; /* all in one lane: there is room for an eighth */
        ck_assert_msg(add_rows(&w, values, n, row), "2^%d, rows of %d", at, row);
        draw_all(values, N, at - 15, at + 8); /* others like them */
        ck_assert_msg(add_rows(&w, values, n, row), "2^%d, rows of %d, others", at, row);
    }
}
END_TEST

START_TEST(what_a_kernel_cannot_add_exactly_it_does_not_add)
{
    static double values[N];
    int failed = 0, rounds = 3000;
    for (int round = 0; round < rounds; ++round) {
        const int shift = (int)(next_random() % 200) - 100;
        draw_all(values, N, 0, 9);
        trli_sum_window w = window_of(values, N);
        draw_all(values, N, shift - (int)(next_random() % 40), shift);
        failed += !add_rows(&w, values, N, 64);
    }
    ck_assert_int_gt(failed, rounds / 3);
    ck_assert_int_lt(failed, rounds);
}
END_TEST

START_TEST(a_value_that_does_not_suit_is_noticed_anywhere)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN, 0x1p60, -0x1p40, 0x1.8p-90, -0x1.fp-100, 0x1p-1074};
    static double values[N];
    for (int round = 0; round < 200; ++round) {
        draw_all(values, N, 0, 3);
        trli_sum_window w = window_of(values, N);
        values[next_random() % N] = odd[round % (int)(sizeof odd / sizeof *odd)];
        ck_assert_msg(!add_rows(&w, values, N, 100), "%a", odd[round % 8]);
    }
}
END_TEST

START_TEST(equal_values_fill_a_window)
{
    static double values[N];
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int i = 0; i < N; ++i) values[i] = sign * 0x1.fffffffffffffp3;
        trli_sum_window w = window_of(values, N);
        ck_assert(add_rows(&w, values, N / (8 / TRL_KERNEL_LANES), N));
    }
}
END_TEST

START_TEST(many_additions_lose_nothing)
{
    static double values[N];
    trl_kernel_merged merged;
    trl_kernel_total total;
    trl_sum sum, expected;
    for (int i = 0; i < N; ++i) values[i] = 0x1.fffffffffffffp996;
    trli_sum_window w = window_of(values, N);
    merged = (trl_kernel_merged){.start = {w.start[0], w.start[1]}};
    trl_kernel_begin(&total, &merged);
    merge_row(&total, values, N / 4);
    trl_kernel_end_sum(&merged, &total);
    ck_assert(!merged.failed);
    trl_sum_clear(&sum);
    trl_sum_clear(&expected);
    for (int i = 0; i < 10000; ++i) {
        trli_sum_window_add(&w, &sum, merged.units);
        trl_sum_add(&expected, values, N / 4);
    }
    trli_sum_window_empty(&w, &sum);
    trl_sum_normalise(&sum);
    trl_sum_normalise(&expected);
    ck_assert_mem_eq(sum.word, expected.word, sizeof sum.word);
}
END_TEST

START_TEST(no_window_suits_values_near_the_ends_of_the_range)
{
    const double values[] = {0x1p1020, 0x1p-1000, INFINITY, NAN, 0};
    for (int i = 0; i < 4; ++i) ck_assert_msg(window_of(&values[i], 1).start[0] == 0, "%a", values[i]);
    ck_assert(window_of(&values[4], 1).start[0] != 0);
}
END_TEST

static double extreme_of(const double *values, int n, double start, int least, int *failed)
{
    trl_kernel_merged merged = {.start = {start, 0}};
    trl_kernel_total t;
    trl_kernel_begin(&t, &merged);
    for (int i = 0; i < n; i += TRL_KERNEL_LANES) {
        trl_kernel_merge_extreme(&t, trl_kernel_load(values + i), least);
        trl_kernel_merge_check(&t, trl_kernel_load(values + i));
    }
    trl_kernel_end_extreme(&merged, &t, least);
    *failed = merged.failed;
    return merged.extreme;
}

START_TEST(extremes_are_found_in_any_lane)
{
    static double values[64];
    for (int at = 0; at < 64; ++at) {
        int failed;
        draw_all(values, 64, 0, 3);
        values[at] = at % 2 ? 17 : -17;
        ck_assert(extreme_of(values, 64, at % 2 ? -INFINITY : INFINITY, at % 2 == 0, &failed) == values[at]);
        ck_assert_int_eq(failed, 0);
        ck_assert(extreme_of(values, 64, at % 2 ? 99 : -99, at % 2 == 0, &failed) == (at % 2 ? 99 : -99));
        values[at] = at % 2 ? NAN : INFINITY;
        extreme_of(values, 64, 0, 0, &failed);
        ck_assert(failed);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, what_a_kernel_adds_is_exact);
    tcase_add_test(tc, what_a_kernel_cannot_add_exactly_it_does_not_add);
    tcase_add_test(tc, a_value_that_does_not_suit_is_noticed_anywhere);
    tcase_add_test(tc, equal_values_fill_a_window);
    tcase_add_test(tc, many_additions_lose_nothing);
    tcase_add_test(tc, no_window_suits_values_near_the_ends_of_the_range);
    tcase_add_test(tc, extremes_are_found_in_any_lane);
}

TRL_TEST_MAIN("merged", add_tests)

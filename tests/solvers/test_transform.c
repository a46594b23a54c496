/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Trigonometric transforms beside their definitions, summed in long double, at lengths of all kinds of factors; and the
 * same bits in all ways of calling them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "transform_passes_impl.h"
#include "trl_test.h"

static unsigned long state = 4321;

static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 33 & 0xffffff) / 0x800000 - 1;
}

/* ---- definitions ---- */

/* cos(2 pi i/count), so that all angles of a length are in one table. */
typedef struct circle {
    int64_t count;
    long double *cosine;
} circle;

static circle circle_of(int64_t count)
{
    circle c = {count, malloc((size_t)count * sizeof *c.cosine)};
    ck_assert_ptr_nonnull(c.cosine);
    for (int64_t i = 0; i < count; ++i)
        c.cosine[i] = cosl(6.283185307179586476925286766559L * (long double)i / (long double)count);
    return c;
}

/* Of a/b of the circle; b divides count. */
static long double cosine(const circle *c, int64_t a, int64_t b)
{
    return c->cosine[a * (c->count / b) % c->count];
}

static long double sine(const circle *c, int64_t a, int64_t b)
{
    return c->cosine[(a * (c->count / b) + 3 * (c->count / 4)) % c->count];
}

/* The period of a line that is transformed, to which angles belong. */
static int64_t period_of(trli_transform_kind kind, int n)
{
    if (kind == TRLI_TRANSFORM_POINT_EVEN) return 8 * (int64_t)(n - 1);
    return 8 * (int64_t)(kind == TRLI_TRANSFORM_POINT_ODD ? n + 1 : n);
}

/* What value j of a line adds to value k of its transform. */
static long double entry(const circle *c, trli_transform_kind kind, bool back, int64_t n, int64_t j, int64_t k)
{
    const bool ended = kind == TRLI_TRANSFORM_POINT_EVEN_ODD || kind == TRLI_TRANSFORM_POINT_ODD_EVEN;
    switch (kind) {
    case TRLI_TRANSFORM_PERIODIC:
        if (!back) return 2 * k <= n ? cosine(c, j * k, n) : -sine(c, j * (n - k), n);
        if (2 * j > n) return -2 * sine(c, (n - j) * k, n);
        return (j == 0 || 2 * j == n ? 1 : 2) * cosine(c, j * k, n);
    case TRLI_TRANSFORM_EVEN:
    case TRLI_TRANSFORM_POINT_EVEN_ODD:
        if (back == ended) return 2 * cosine(c, (2 * j + 1) * k, 4 * n);
        return (j == 0 ? 1 : 2) * cosine(c, j * (2 * k + 1), 4 * n);
    case TRLI_TRANSFORM_ODD:
    case TRLI_TRANSFORM_POINT_ODD_EVEN:
        if (back == ended) return 2 * sine(c, (2 * j + 1) * (k + 1), 4 * n);
        return (j == n - 1 ? 1 : 2) * sine(c, (j + 1) * (2 * k + 1), 4 * n);
    case TRLI_TRANSFORM_EVEN_ODD:
        return 2 * cosine(c, (2 * j + 1) * (2 * k + 1), 8 * n);
    case TRLI_TRANSFORM_ODD_EVEN:
        return 2 * sine(c, (2 * j + 1) * (2 * k + 1), 8 * n);
    case TRLI_TRANSFORM_POINT_EVEN:
        return (j == 0 || j == n - 1 ? 1 : 2) * cosine(c, j * k, 2 * (n - 1));
    case TRLI_TRANSFORM_POINT_ODD:
        return 2 * sine(c, (j + 1) * (k + 1), 2 * (n + 1));
    case TRLI_TRANSFORMS:
        break;
    }
    return 0;
}

/* ---- calls ---- */

static int least_of(trli_transform_kind kind)
{
    return kind == TRLI_TRANSFORM_POINT_EVEN ? 2 : 1;
}

static double *lines_of(size_t values)
{
    double *lines = aligned_alloc(64, (values + 1) * TRLI_LANES * sizeof *lines);
    ck_assert_ptr_nonnull(lines);
    return lines;
}

static void fill(double *lines, int n)
{
    for (int i = 0; i < n * TRLI_LANES; ++i) lines[i] = draw();
}

static void check_definition(trli_transform_kind kind, int n, int lanes)
{
    const double most = 0x1p-52 * (1 + 0.5 * log2(n));
    trli_transform *t = NULL;
    ck_ok(trli_transform_create(test_ctx, kind, n, &t));
    circle c = circle_of(period_of(kind, n));
    double *x = lines_of((size_t)n), *y = lines_of((size_t)n);
    double *scratch = lines_of(trli_transform_scratch(t) / TRLI_LANES);
    for (int back = 0; back < 2; ++back) {
        fill(x, n);
        trli_transform_lines(t, back, x, TRLI_LANES, y, TRLI_LANES, scratch);
        for (int l = 0; l < lanes; ++l) {
            long double error = 0, size = 0;
            for (int k = 0; k < n; ++k) {
                long double sum = 0;
                for (int j = 0; j < n; ++j) sum += entry(&c, kind, back, n, j, k) * x[j * TRLI_LANES + l];
                error += (sum - y[k * TRLI_LANES + l]) * (sum - y[k * TRLI_LANES + l]);
                size += sum * sum;
            }
            error = sqrtl(error / size);
            ck_assert_msg(error <= most, "kind %d of %d points, back %d, lane %d: error %.2Lg", kind, n, back, l,
                          error);
        }
        trli_transform_lines(t, !back, y, TRLI_LANES, y, TRLI_LANES, scratch);
        for (int i = 0; i < n * TRLI_LANES; ++i)
            ck_assert_msg(fabs(y[i] / trli_transform_norm(t) - x[i]) < 4 * sqrt(n) * most, "kind %d of %d points: %d",
                          kind, n, i);
    }
    free(x);
    free(y);
    free(scratch);
    free(c.cosine);
    trli_transform_destroy(&t);
    ck_assert_ptr_null(t);
}

START_TEST(transforms_are_their_definitions_at_small_lengths)
{
    for (int kind = 0; kind < TRLI_TRANSFORMS; ++kind)
        for (int n = least_of((trli_transform_kind)kind); n <= 70; ++n)
            check_definition((trli_transform_kind)kind, n, TRLI_LANES);
}
END_TEST

/* Powers, products of several factors, primes and their neighbours, whose lines may have to be extended to a prime. */
START_TEST(transforms_are_their_definitions_at_large_lengths)
{
    static const int lengths[] = {96,  97,  100, 101, 127, 128, 129, 134, 144, 192, 194,  201,
                                  206, 243, 256, 309, 343, 384, 500, 512, 539, 768, 1000, 1031};
    for (int kind = 0; kind < TRLI_TRANSFORMS; ++kind)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i)
            check_definition((trli_transform_kind)kind, lengths[i], 1);
}
END_TEST

static void check_ways(const trli_transform *t, bool back)
{
    enum { APART = 3 };
    const size_t n = (size_t)t->n;
    double *x = lines_of(n), *y = lines_of(n), *spread = lines_of(APART * n), *rows = lines_of(2 * n);
    double *scratch = lines_of(trli_transform_scratch(t) / TRLI_LANES);
    fill(x, t->n);
    trli_transform_lines(t, back, x, TRLI_LANES, y, TRLI_LANES, scratch);
    for (int width = 1; width <= TRLI_LANES; width *= 2) {
        trli_transform other = *t;
        other.passes = trli_passes_of(width);
        if (!other.passes) continue;
        for (size_t i = 0; i < n; ++i)
            memcpy(spread + i * APART * TRLI_LANES, x + i * TRLI_LANES, TRLI_LANES * sizeof *x);
        trli_transform_lines(&other, back, spread, APART * TRLI_LANES, spread, APART * TRLI_LANES, scratch);
        for (size_t i = 0; i < n; ++i)
            ck_assert_msg(memcmp(spread + i * APART * TRLI_LANES, y + i * TRLI_LANES, TRLI_LANES * sizeof *x) == 0,
                          "kind %d of %zu points, width %d: value %zu", t->kind, n, width, i);
        for (int count = 1; count <= TRLI_LANES; ++count) {
            double *at[TRLI_LANES];
            const double *from[TRLI_LANES];
            for (int r = 0; r < count; ++r) { /* some at odd addresses, in another order */
                from[r] = at[r] = rows + (size_t)r * (n + 1);
                for (size_t i = 0; i < n; ++i) at[r][i] = x[i * TRLI_LANES + (size_t)(count - 1 - r)];
            }
            const bool add = count % 2;
            trli_transform_rows(&other, back, count, from, at, add, scratch);
            for (int r = 0; r < count; ++r)
                for (size_t i = 0; i < n; ++i) {
                    const size_t place = i * TRLI_LANES + (size_t)(count - 1 - r);
                    ck_assert_msg(at[r][i] == (add ? x[place] + y[place] : y[place]),
                                  "kind %d of %zu points, width %d, row %d of %d: value %zu", t->kind, n, width, r,
                                  count, i);
                }
        }
    }
    free(x);
    free(y);
    free(spread);
    free(rows);
    free(scratch);
}

START_TEST(a_line_has_the_same_bits_in_each_way)
{
    for (int trial = 0; trial < 300; ++trial) {
        const trli_transform_kind kind = (trli_transform_kind)(trial % TRLI_TRANSFORMS);
        const int n = least_of(kind) + (int)((draw() + 1) * (trial % 5 ? 30 : 150));
        trli_transform *t = NULL;
        ck_ok(trli_transform_create(test_ctx, kind, n, &t));
        for (int back = 0; back < 2; ++back) check_ways(t, back);
        trli_transform_destroy(&t);
    }
}
END_TEST

START_TEST(more_operations_are_counted_for_long_and_awkward_lines)
{
    double count[3];
    for (int i = 0; i < 3; ++i) {
        trli_transform *t = NULL;
        ck_ok(trli_transform_create(test_ctx, TRLI_TRANSFORM_PERIODIC, (const int[]){128, 122, 256}[i], &t));
        count[i] = trli_transform_operations(t);
        trli_transform_destroy(&t);
    }
    ck_assert_double_gt(count[1], 2 * count[0]);
    ck_assert_double_gt(count[2], 2 * count[0]);
    ck_assert_double_lt(count[2], 3 * count[0]);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, transforms_are_their_definitions_at_small_lengths);
    tcase_add_test(tc, transforms_are_their_definitions_at_large_lengths);
    tcase_add_test(tc, a_line_has_the_same_bits_in_each_way);
    tcase_add_test(tc, more_operations_are_counted_for_long_and_awkward_lines);
}

TRL_TEST_MAIN("transform", add_tests)

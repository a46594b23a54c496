/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2,3,4
#include "trl_test.h"

#include <float.h>
#include <math.h>

#include <trl_field.h>

#include "trl_sum_body.h"

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* By the words that are not zero alone, as GPUs compute it. */
static uint64_t bits_by_words(trl_sum s)
{
    int first = 0, end = TRL_SUM_WORDS;
    while (first < end && s.word[first] == 0) ++first;
    while (end > first && s.word[end - 1] == 0) --end;
    return trl_sum_bits(s.word, first, end, TRL_SUM_WORDS, s.special);
}

static double sum_of(const double *values, int64_t n)
{
    trl_sum s;
    trl_sum_clear(&s);
    trl_sum_add(&s, values, n);
    const double value = trl_sum_value(&s);
    ck_assert_uint_eq(bits_by_words(s), bits_of(value));
    return value;
}

#define SUM(...) \
    sum_of((const double[]){__VA_ARGS__}, (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

#define ck_same_bits(a, b)                                                                      \
    do {                                                                                        \
        double got_ = (a), expected_ = (b);                                                     \
        ck_assert_msg(bits_of(got_) == bits_of(expected_), "%a, expected %a", got_, expected_); \
    } while (0)

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Finite, with any bits whatever: subnormals and the largest numbers too. */
static double any_double(uint64_t *state)
{
    double value;
    uint64_t bits;
    do {
        bits = next_random(state);
    } while ((bits >> 52 & 0x7ff) == 0x7ff);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- an independent exact sum: a plain binary integer in units of 2^-1074, one bit per byte ---- */

enum { BITS = 2200 };

typedef struct bitsum {
    int digit[BITS]; /* 0 or 1 after settle, the last digit carries the sign */
} bitsum;

static void bitsum_add(bitsum *b, double value)
{
    uint64_t bits = bits_of(value), field = bits >> 52 & 0x7ff;
    uint64_t significand = (bits & 0xfffffffffffff) | (field != 0 ? (uint64_t)1 << 52 : 0);
    uint64_t shift = field == 0 ? 0 : field - 1;
    for (int i = 0; i < 53; ++i)
        b->digit[shift + (uint64_t)i] += (significand >> i & 1 ? 1 : 0) * (bits >> 63 ? -1 : 1);
}

static void bitsum_settle(bitsum *b)
{
    for (int i = 0; i + 1 < BITS; ++i) {
        int carry = (b->digit[i] - (b->digit[i] & 1)) / 2;
        b->digit[i] &= 1;
        b->digit[i + 1] += carry;
    }
}

static double bitsum_value(bitsum *b)
{
    int top = BITS - 1, sign = 1;
    bitsum_settle(b);
    if (b->digit[top] < 0) {
        for (int i = 0; i < BITS; ++i) b->digit[i] = -b->digit[i];
        sign = -1;
        bitsum_settle(b);
    }
    while (top > 0 && b->digit[top] == 0) --top;
    int low = top > 52 ? top - 52 : 0;
    double significand = 0;
    for (int i = top; i >= low; --i) significand = 2 * significand + b->digit[i];
    if (low > 0 && b->digit[low - 1]) {
        bool rest = false;
        for (int i = 0; i < low - 1; ++i) rest = rest || b->digit[i];
        if (rest || fmod(significand, 2) != 0) significand += 1;
    }
    return sign * ldexp(significand, low - 1074);
}

static double reference(const double *values, int64_t n)
{
    bitsum b = {{0}};
    for (int64_t i = 0; i < n; ++i) bitsum_add(&b, values[i]);
    return bitsum_value(&b);
}

START_TEST(a_single_value_comes_back)
{
    uint64_t state = 42;
    static const double special[] = {
        0.0, 1.0, -1.0, DBL_MAX, -DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, DBL_MIN - DBL_TRUE_MIN};
    for (size_t i = 0; i < sizeof special / sizeof *special; ++i) ck_same_bits(sum_of(&special[i], 1), special[i]);
    for (int i = 0; i < 2000; ++i) {
        double value = any_double(&state);
        ck_same_bits(sum_of(&value, 1), value);
    }
}
END_TEST

START_TEST(nothing_and_exact_cancellation_give_plus_zero)
{
    ck_same_bits(sum_of(NULL, 0), 0.0);
    ck_same_bits(SUM(1e300, 1.0, -1e300, -1.0), 0.0);
    ck_same_bits(SUM(-0.0, -0.0), 0.0);
    ck_same_bits(SUM(DBL_TRUE_MIN, -DBL_TRUE_MIN), 0.0);
}
END_TEST

START_TEST(small_terms_survive_large_ones_that_cancel)
{
    ck_same_bits(SUM(1e308, 1.0, -1e308), 1.0);
    ck_same_bits(SUM(DBL_MAX, DBL_TRUE_MIN, -DBL_MAX), DBL_TRUE_MIN);
    ck_same_bits(SUM(DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX, -3.5), -3.5);
    ck_same_bits(SUM(0.1, 0.2, 0.3, -0.1, -0.2), 0.3);
}
END_TEST

START_TEST(ties_go_to_the_even_neighbour)
{
    double half = DBL_EPSILON / 2;
    ck_same_bits(SUM(1.0, half), 1.0);
    ck_same_bits(SUM(1.0 + DBL_EPSILON, half), 1.0 + 2 * DBL_EPSILON);
    ck_same_bits(SUM(1.0, half, DBL_TRUE_MIN), 1.0 + DBL_EPSILON);
    ck_same_bits(SUM(1.0, half, -DBL_TRUE_MIN), 1.0);
    ck_same_bits(SUM(-1.0, -half), -1.0);
    ck_same_bits(SUM(-1.0, -half, -1e-200), -1.0 - DBL_EPSILON);
    ck_same_bits(SUM(2.0 - DBL_EPSILON, half), 2.0);
}
END_TEST

START_TEST(subnormal_results_are_exact)
{
    ck_same_bits(SUM(DBL_MIN, -DBL_TRUE_MIN), DBL_MIN - DBL_TRUE_MIN);
    ck_same_bits(SUM(DBL_MIN - DBL_TRUE_MIN, DBL_TRUE_MIN), DBL_MIN);
    ck_same_bits(SUM(2 * DBL_MIN, -DBL_TRUE_MIN), 2 * DBL_MIN - DBL_TRUE_MIN);
    ck_same_bits(SUM(2 * DBL_MIN, DBL_TRUE_MIN), 2 * DBL_MIN); /* a tie */
    ck_same_bits(SUM(2 * DBL_MIN, 3 * DBL_TRUE_MIN), 2 * DBL_MIN + 4 * DBL_TRUE_MIN);
}
END_TEST

START_TEST(sums_beyond_the_largest_double_are_infinite)
{
    double ulp = ldexp(1, 971);
    ck_same_bits(SUM(DBL_MAX, DBL_MAX), INFINITY);
    ck_same_bits(SUM(-DBL_MAX, -DBL_MAX), -INFINITY);
    ck_same_bits(SUM(DBL_MAX, ulp / 2), INFINITY);
    ck_same_bits(SUM(DBL_MAX, ulp / 2, -DBL_TRUE_MIN), DBL_MAX);
    ck_same_bits(SUM(DBL_MAX, ulp / 4), DBL_MAX);
    ck_same_bits(SUM(DBL_MAX, DBL_MAX, -DBL_MAX), DBL_MAX);
}
END_TEST

START_TEST(infinities_and_nan_behave_as_in_addition)
{
    ck_same_bits(SUM(1.0, INFINITY, -1e308), INFINITY);
    ck_same_bits(SUM(-INFINITY, 1.0), -INFINITY);
    ck_same_bits(SUM(INFINITY, INFINITY), INFINITY);
    ck_assert(isnan(SUM(INFINITY, 2.0, -INFINITY)));
    ck_assert(isnan(SUM(1.0, NAN)));
    ck_assert(isnan(SUM(-NAN, INFINITY)));
}
END_TEST

START_TEST(random_sums_match_the_bit_by_bit_reference)
{
    uint64_t state = 7;
    double values[300];
    for (int round = 0; round < 200; ++round) {
        int n = 1 + (int)(next_random(&state) % 300), spread = 1 + (int)(next_random(&state) % 2046);
        for (int i = 0; i < n; ++i) {
            uint64_t bits = next_random(&state), field = 1 + next_random(&state) % (uint64_t)spread;
            bits = (bits & ~((uint64_t)0x7ff << 52)) | (field - (field > 2046)) << 52;
            memcpy(&values[i], &bits, sizeof bits);
            if (i > 0 && bits % 3 == 0) values[i] = -values[i - 1];
        }
        ck_same_bits(sum_of(values, n), reference(values, n));
    }
}
END_TEST

/* Values near 2^exponent of either sign, or of one. */
static double near(uint64_t *state, int exponent, bool mixed)
{
    const double value = ldexp(1 + (double)(next_random(state) >> 12) * 0x1p-52, exponent);
    return mixed && next_random(state) % 2 ? -value : value;
}

/* Values of one kind: close to each other, of many sizes, mostly zeros, of any bits, near the least and the largest,
 * and some with others that are not finite. */
static void draw(uint64_t *state, int kind, double *values, int n)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < n; ++i) {
        const int spread = (int)(next_random(state) % 40);
        switch (kind) {
        case 0:
        case 1:
            values[i] = near(state, -3, kind);
            break;
        case 2:
        case 3:
            values[i] = near(state, 17 - spread, kind == 3);
            break;
        case 4:
            values[i] = near(state, -9 * spread, true);
            break;
        case 5:
            values[i] = spread ? (spread % 2 ? 0.0 : -0.0) : near(state, 0, true);
            break;
        case 6:
            values[i] = any_double(state);
            break;
        case 7:
            values[i] = near(state, -1022 - spread, true);
            break;
        case 8:
            values[i] = near(state, 1023 - spread, true);
            break;
        case 9:
            values[i] = ldexp(1, 12 - spread) - ldexp(1, -30); /* each takes all bits of the first totals */
            break;
        case 10:
            values[i] = i % 2 ? -values[i - 1] : near(state, -spread, true);
            break;
        default:
            values[i] = spread || i > 100 ? near(state, 1000 - 40 * spread, true) : odd[kind - 11];
        }
    }
}

enum { KINDS = 14 };

START_TEST(many_values_at_once_give_the_bits_of_one_after_the_other)
{
    enum { N = 3000 };
    static double values[N];
    uint64_t state = 11;
    for (int round = 0; round < 60 * KINDS; ++round) {
        const int n = round < 2 * KINDS ? N : 1 + (int)(next_random(&state) % N);
        trl_sum sum, each;
        trl_sum_clear(&sum);
        trl_sum_clear(&each);
        draw(&state, round % KINDS, values, n);
        trl_sum_add(&sum, values, n);
        for (int i = 0; i < n; ++i) trl_sum_add(&each, &values[i], 1);
        trl_sum_normalise(&sum);
        trl_sum_normalise(&each);
        ck_assert_msg(memcmp(sum.word, each.word, sizeof sum.word) == 0, "kind %d, %d values", round % KINDS, n);
        ck_assert_mem_eq(sum.special, each.special, sizeof sum.special);
    }
}
END_TEST

START_TEST(millions_of_the_largest_values_lose_nothing)
{
    enum { N = 5000 };
    static double values[N];
    trl_sum s;
    trl_sum_clear(&s);
    for (int i = 0; i < N; ++i) values[i] = DBL_MAX;
    for (int i = 0; i < 400; ++i) trl_sum_add(&s, values, N);
    for (int i = 0; i < N; ++i) values[i] = -DBL_MAX;
    ck_same_bits(trl_sum_value(&s), INFINITY);
    for (int i = 0; i < 400; ++i) trl_sum_add(&s, values, N);
    values[0] = 1.25;
    trl_sum_add(&s, values, 1);
    ck_same_bits(trl_sum_value(&s), 1.25);
}
END_TEST

START_TEST(order_and_grouping_do_not_change_a_bit)
{
    enum { N = 4001 };
    static double values[N], shuffled[N];
    uint64_t state = 99;
    for (int i = 0; i < N; ++i) shuffled[i] = values[i] = any_double(&state) * 0x1p-20;
    double expected = reference(values, N);
    for (int round = 0; round < 20; ++round) {
        trl_sum parts[5], total;
        for (int i = N - 1; i > 0; --i) {
            int j = (int)(next_random(&state) % (uint64_t)(i + 1));
            double swap = shuffled[i];
            shuffled[i] = shuffled[j];
            shuffled[j] = swap;
        }
        for (int p = 0; p < 5; ++p) trl_sum_clear(&parts[p]);
        for (int at = 0, n; at < N; at += n) {
            n = 1 + (int)(next_random(&state) % (round % 2 ? 2000 : 20));
            if (n > N - at) n = N - at;
            trl_sum_add(&parts[next_random(&state) % 5], shuffled + at, n);
        }
        trl_sum_clear(&total);
        for (int p = 0; p < 5; ++p) trl_sum_merge(&total, &parts[(p + round) % 5]);
        ck_same_bits(trl_sum_value(&total), expected);
        trl_sum_merge(&parts[1], &parts[0]);
        trl_sum_merge(&parts[3], &parts[2]);
        trl_sum_merge(&parts[1], &parts[4]);
        trl_sum_merge(&parts[3], &parts[1]);
        ck_same_bits(trl_sum_value(&parts[3]), expected);
        trl_sum_normalise(&parts[3]);
        trl_sum_normalise(&total);
        ck_assert_mem_eq(parts[3].word, total.word, sizeof total.word);
    }
}
END_TEST

/* Of GPUs words have what they got, not yet carried. */
START_TEST(words_that_are_full_carry_beyond_those_that_are_not_zero)
{
    uint64_t state = 77;
    for (int n = 0; n < 2000; ++n) {
        trl_sum s;
        trl_sum_clear(&s);
        const int at = (int)(next_random(&state) % (TRL_SUM_WORDS - 4)), words = 1 + (int)(next_random(&state) % 3);
        for (int i = at; i < at + words; ++i)
            s.word[i] = (int64_t)next_random(&state) >> (1 + next_random(&state) % 62);
        ck_assert_uint_eq(bits_by_words(s), bits_of(trl_sum_value(&s)));
    }
}
END_TEST

START_TEST(merging_often_loses_nothing)
{
    trl_sum total, one;
    trl_sum_clear(&total);
    trl_sum_clear(&one);
    trl_sum_add(&one, &(double){-0.1}, 1);
    for (int i = 0; i < 10000; ++i) {
        trl_sum_merge(&total, &one);
        trl_sum_add(&total, &(double){0.1}, 1);
    }
    ck_same_bits(trl_sum_value(&total), 0.0);
}
END_TEST

START_TEST(a_merged_sum_takes_as_many_values_as_any_other)
{
    enum { N = 5000 };
    static double values[N];
    trl_sum total, none;
    trl_sum_clear(&total);
    trl_sum_clear(&none);
    trl_sum_merge(&total, &none);
    for (int i = 0; i < N; ++i) values[i] = 0x1.fffffffffffffp-1;
    trl_sum_add(&total, values, N);
    ck_same_bits(trl_sum_value(&total), reference(values, N));
}
END_TEST

START_TEST(merging_counts_infinities)
{
    trl_sum a, b;
    trl_sum_clear(&a);
    trl_sum_clear(&b);
    trl_sum_add(&a, &(double){INFINITY}, 1);
    trl_sum_merge(&b, &a);
    ck_same_bits(trl_sum_value(&b), INFINITY);
    trl_sum_clear(&a);
    trl_sum_add(&a, &(double){-INFINITY}, 1);
    trl_sum_merge(&b, &a);
    ck_assert(isnan(trl_sum_value(&b)));
}
END_TEST

START_TEST(all_ranks_get_the_same_sums_however_values_are_dealt)
{
    enum { N = 1000 };
    static double values[N];
    uint64_t state = 5;
    int rank = trl_context_rank(test_ctx), ranks = trl_context_ranks(test_ctx);
    trl_sum sums[3];
    for (int i = 0; i < N; ++i) values[i] = any_double(&state) * 0x1p-20;
    for (int i = 0; i < 3; ++i) trl_sum_clear(&sums[i]);
    for (int i = rank; i < N; i += ranks) trl_sum_add(&sums[0], &values[i], 1);
    int first = N * rank / ranks, next = N * (rank + 1) / ranks;
    trl_sum_add(&sums[1], values + first, next - first);
    trl_sum_add(&sums[2], &(double){rank == ranks - 1 ? -INFINITY : 1.0}, 1);
    ck_ok(trl_sum_allreduce(test_ctx, 3, sums));
    ck_same_bits(trl_sum_value(&sums[0]), reference(values, N));
    ck_same_bits(trl_sum_value(&sums[1]), reference(values, N));
    ck_same_bits(trl_sum_value(&sums[2]), -INFINITY);
    trl_sum_add(&sums[0], values, N);
    ck_same_bits(trl_sum_value(&sums[0]), 2 * reference(values, N));
}
END_TEST

static bool allreduce_fails;

int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return allreduce_fails ? MPI_ERR_OTHER : PMPI_Allreduce(from, to, n, type, op, comm);
}

START_TEST(a_failing_reduction_is_reported)
{
    trl_context *kept = test_ctx; /* the rank is lost after it, with its context */
    trl_sum sum;
    trl_sum_clear(&sum);
    if (trl_context_ranks(test_ctx) == 1) return;
    ck_assert_int_eq(trl_context_create(MPI_COMM_WORLD, NULL, &test_ctx), TRL_OK);
    allreduce_fails = true;
    trl_err err = trl_sum_allreduce(test_ctx, 1, &sum);
    allreduce_fails = false;
    ck_fails(err, TRL_ERR_MPI, "MPI_Allreduce failed on rank ");
    trl_context_destroy(&test_ctx);
    test_ctx = kept;
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_single_value_comes_back);
    tcase_add_test(tc, nothing_and_exact_cancellation_give_plus_zero);
    tcase_add_test(tc, small_terms_survive_large_ones_that_cancel);
    tcase_add_test(tc, ties_go_to_the_even_neighbour);
    tcase_add_test(tc, subnormal_results_are_exact);
    tcase_add_test(tc, sums_beyond_the_largest_double_are_infinite);
    tcase_add_test(tc, infinities_and_nan_behave_as_in_addition);
    tcase_add_test(tc, random_sums_match_the_bit_by_bit_reference);
    tcase_add_test(tc, many_values_at_once_give_the_bits_of_one_after_the_other);
    tcase_add_test(tc, millions_of_the_largest_values_lose_nothing);
    tcase_add_test(tc, order_and_grouping_do_not_change_a_bit);
    tcase_add_test(tc, words_that_are_full_carry_beyond_those_that_are_not_zero);
    tcase_add_test(tc, merging_often_loses_nothing);
    tcase_add_test(tc, a_merged_sum_takes_as_many_values_as_any_other);
    tcase_add_test(tc, merging_counts_infinities);
    tcase_add_test(tc, all_ranks_get_the_same_sums_however_values_are_dealt);
    tcase_add_test(tc, a_failing_reduction_is_reported);
}

TRL_TEST_MAIN("sum", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tables of some values of an IR, against an array as long as the IR, under random calls. */
#include "trl_test.h"

#include "memory_impl.h"
#include "value_map_impl.h"

enum { VALUES = 20000, CALLS = 20000, ROUNDS = 12 };

static uint64_t state = 1;

static int pick(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* Values near each other, far apart, or equal in their low bits. */
static trli_ir_value any_value(int round)
{
    return round % 3 == 0 ? pick(200) : round % 3 == 1 ? pick(VALUES) : pick(VALUES / 1024) * 1024;
}

START_TEST(values_have_their_numbers_until_the_table_is_cleared)
{
    trli_value_map map = {0};
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    int32_t *expected = trli_new(test_ctx, VALUES, sizeof *expected);
    ck_assert_ptr_nonnull(expected);
    ck_assert_int_eq(trli_value_map_find(&map, 7), -1);
    for (int round = 0; round < ROUNDS; ++round) {
        const int calls = pick(CALLS);
        int32_t count = 0, number;
        for (int v = 0; v < VALUES; ++v) expected[v] = -1;
        for (int i = 0; i < calls; ++i) {
            const trli_ir_value v = any_value(round);
            ck_assert_int_eq(trli_value_map_find(&map, v), expected[v]);
            if (pick(2) == 0) continue;
            ck_ok(trli_value_map_add(test_ctx, &map, v, &number));
            if (expected[v] < 0) expected[v] = count++;
            ck_assert_int_eq(number, expected[v]);
        }
        ck_assert_int_eq(map.count, count);
        ck_assert_int_le(map.nbuckets, 4 * CALLS);
        for (int v = 0; v < VALUES; ++v) ck_assert_int_eq(trli_value_map_find(&map, v), expected[v]);
        trli_value_map_clear(&map);
        for (int b = 0; b < map.nbuckets; ++b) ck_assert_int_eq(map.bucket[b], -1);
    }
    trli_value_map_free(&map);
    trli_free(expected);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, values_have_their_numbers_until_the_table_is_cleared);
}
TRL_TEST_MAIN("value_map", add_tests)

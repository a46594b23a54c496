/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The set of addresses that are kept in place for GPUs, against a list. */
#include "trl_test.h"

#include "pinned_impl.h"

enum { ADDRESSES = 300, CHANGES = 20000 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

START_TEST(addresses_that_were_added_and_not_removed_are_there)
{
    static const size_t strides[] = {8, 64, 4096, 1 << 21}; /* of blocks in one piece of memory, pages, huge ones */
    const size_t stride = strides[_i];
    bool there[ADDRESSES] = {false};
    size_t n = 0;
    uint32_t state = 5;
    trli_pinned set = {0};
    ck_assert(!trli_pinned_has(&set, (void *)stride));
    ck_assert(!trli_pinned_remove(&set, (void *)stride));
    for (int change = 0; change < CHANGES; ++change) {
        const uint32_t i = next_random(&state) % ADDRESSES;
        void *const memory = (void *)((i + 1) * stride);
        ck_assert_int_eq(trli_pinned_has(&set, memory), there[i]);
        if (there[i])
            ck_assert(trli_pinned_remove(&set, memory));
        else
            ck_ok(trli_pinned_add(test_ctx, &set, memory));
        there[i] = !there[i];
        n += there[i] ? 1 : (size_t)-1;
        ck_assert_uint_eq(set.n, n);
        if (change % 100) continue;
        for (uint32_t k = 0; k < ADDRESSES; ++k)
            ck_assert_int_eq(trli_pinned_has(&set, (void *)((k + 1) * stride)), there[k]);
    }
    ck_assert(!trli_pinned_has(&set, NULL));
    trli_pinned_free(&set);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, addresses_that_were_added_and_not_removed_are_there, 0, 4);
}

TRL_TEST_MAIN("pinned", add_tests)

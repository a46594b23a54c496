/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which cores the ranks of a node have, of those that their launcher lets them use. */
#include <core_share_impl.h>
#include <memory_impl.h>

#include "trl_test.h"

/* The cores of a rank, as bits; sets of one word. */
static uint64_t cores_of(const trli_core_share *share)
{
    uint64_t cores = 0;
    for (int core = 0, k = 0; core < 64; ++core) {
        if (!trli_core_is_dealt(share, core)) continue;
        if (k >= share->first && k < share->last) cores |= (uint64_t)1 << core;
        ++k;
    }
    return cores;
}

static trli_core_share share_of(int n, const uint64_t *set, int rank, int quota)
{
    uint64_t copy[8];
    const trli_core_sets sets = {.n = n, .words = 1, .set = copy};
    trli_core_share share;
    for (int r = 0; r < n; ++r) copy[r] = set[r];
    ck_ok(trli_core_share_of(test_ctx, &sets, rank, quota, &share));
    return share;
}

/* Each rank has these cores, and crowd of them share so few. */
static void check(int n, const uint64_t *set, int quota, const uint64_t *cores, int crowd_ranks, int crowd_cores)
{
    for (int r = 0; r < n; ++r) {
        trli_core_share share = share_of(n, set, r, quota);
        ck_assert_msg(cores_of(&share) == cores[r], "rank %d has %llx, expected %llx", r,
                      (unsigned long long)cores_of(&share), (unsigned long long)cores[r]);
        ck_assert_int_eq(share.crowd_ranks, crowd_ranks);
        ck_assert_int_eq(share.crowd_cores, crowd_cores);
        ck_assert_int_eq(share.shared, crowd_ranks > 0 || quota > 0);
        trli_free(share.dealt);
    }
}

START_TEST(ranks_share_what_all_may_use)
{
    check(1, (uint64_t[]){0xf}, 0, (uint64_t[]){0xf}, 0, 0);
    check(2, (uint64_t[]){0xff, 0xff}, 0, (uint64_t[]){0x0f, 0xf0}, 0, 0);
    check(3, (uint64_t[]){0xff, 0xff, 0xff}, 0, (uint64_t[]){0x03, 0x1c, 0xe0}, 0, 0);
}
END_TEST

START_TEST(ranks_keep_what_only_they_may_use)
{
    check(2, (uint64_t[]){0x3, 0xc}, 0, (uint64_t[]){0x3, 0xc}, 0, 0);
    check(4, (uint64_t[]){0x3, 0xc, 0x3, 0xc}, 0, (uint64_t[]){0x1, 0x4, 0x2, 0x8}, 0, 0);
}
END_TEST

START_TEST(ranks_leave_cores_to_those_that_may_use_no_others)
{
    check(2, (uint64_t[]){0x3, 0x1}, 0, (uint64_t[]){0x2, 0x1}, 0, 0);
    check(3, (uint64_t[]){0xff, 0xff, 0x3}, 0, (uint64_t[]){0x1c, 0xe0, 0x3}, 0, 0);
    check(2, (uint64_t[]){0x3, 0x6}, 0, (uint64_t[]){0x3, 0x4}, 0, 0);
}
END_TEST

START_TEST(ranks_that_outnumber_their_cores_know_it)
{
    check(3, (uint64_t[]){0x3, 0x3, 0x3}, 0, (uint64_t[]){0x1, 0x2, 0x1}, 3, 2);
    check(3, (uint64_t[]){0x3, 0x1, 0x2}, 0, (uint64_t[]){0x3, 0x1, 0x2}, 3, 2);
    check(2, (uint64_t[]){0x8, 0x8}, 0, (uint64_t[]){0x8, 0x8}, 2, 1);
}
END_TEST

START_TEST(a_quota_counts_as_so_many_cores)
{
    check(2, (uint64_t[]){0xff, 0xff}, 4, (uint64_t[]){0x3, 0xc}, 0, 0);
    check(2, (uint64_t[]){0xff, 0xff}, 1, (uint64_t[]){0x1, 0x1}, 2, 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, ranks_share_what_all_may_use);
    tcase_add_test(tc, ranks_keep_what_only_they_may_use);
    tcase_add_test(tc, ranks_leave_cores_to_those_that_may_use_no_others);
    tcase_add_test(tc, ranks_that_outnumber_their_cores_know_it);
    tcase_add_test(tc, a_quota_counts_as_so_many_cores);
}

TRL_TEST_MAIN("core share", add_tests)

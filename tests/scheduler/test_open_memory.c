/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory of a rank that others map: its blocks, and what others see. */
// ctest: np=1,2
#include "trl_test.h"

#include <open_memory_impl.h>

enum { SMALL = 1000, LARGE = 300000, ROOM = 1900000 /* less than a huge page: no system refuses it */ };

static size_t counted(void)
{
    trl_memory_stats stats;
    trl_memory_get_stats(test_ctx, &stats);
    return stats.bytes;
}

static bool is_filled(const unsigned char *block, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; ++i)
        if (block[i] != value) return false;
    return true;
}

START_TEST(blocks_lie_apart_and_are_counted)
{
    trli_open_memory *m = trli_open_memory_create(test_ctx, ROOM, true);
    unsigned char *block[4];
    ck_assert_ptr_nonnull(m);
    const size_t before = counted();
    for (int i = 0; i < 4; ++i) {
        const size_t bytes = i % 2 ? LARGE : SMALL;
        block[i] = trli_open_memory_take(m, bytes);
        ck_assert_ptr_nonnull(block[i]);
        ck_assert_uint_eq((uintptr_t)block[i] % 64, 0);
        ck_assert_int_ge(trli_open_memory_offset(m, block[i]), 0);
    }
    for (int i = 0; i < 4; ++i) {
        trli_open_memory_settle(m, block[i], i % 2 ? LARGE : SMALL);
        memset(block[i], i + 1, i % 2 ? LARGE : SMALL);
    }
    for (int i = 0; i < 4; ++i) ck_assert(is_filled(block[i], i % 2 ? LARGE : SMALL, i + 1));
    ck_assert_uint_ge(counted() - before, 2 * (SMALL + LARGE));
    ck_assert_int_lt(trli_open_memory_offset(m, &before), 0);
    for (int i = 0; i < 4; ++i) trli_open_memory_give(m, block[i]);
    trli_open_memory_destroy(&m);
    ck_assert_ptr_null(m);
    trli_open_memory_destroy(&m);
}
END_TEST

START_TEST(the_place_of_a_block_that_was_given_back_is_used_again)
{
    trli_open_memory *m = trli_open_memory_create(test_ctx, ROOM, true);
    unsigned char *first = trli_open_memory_take(m, LARGE), *second = trli_open_memory_take(m, LARGE);
    memset(second, 1, LARGE);
    trli_open_memory_give(m, first);
    for (int i = 0; i < 100; ++i) {
        unsigned char *again = trli_open_memory_take(m, LARGE);
        ck_assert_ptr_eq(again, first);
        memset(again, 2, LARGE);
        trli_open_memory_give(m, again);
    }
    ck_assert(is_filled(second, LARGE, 1));
    trli_open_memory_give(m, second);
    trli_open_memory_destroy(&m);
}
END_TEST

START_TEST(there_is_no_more_room_than_was_asked_for)
{
    trli_open_memory *m = trli_open_memory_create(test_ctx, 4 * trli_open_memory_room(LARGE), true);
    int n = 0;
    ck_assert(!trli_open_memory_is_full(m, LARGE));
    unsigned char *block = NULL, *last = NULL;
    while ((block = trli_open_memory_take(m, LARGE)) != NULL) {
        last = block;
        ++n;
    }
    ck_assert_int_ge(n, 4);
    ck_assert_int_lt(n, 8);
    ck_assert(trli_open_memory_is_full(m, LARGE));
    trli_open_memory_give(m, last);
    ck_assert(!trli_open_memory_is_full(m, LARGE));
    trli_open_memory_destroy(&m);
}
END_TEST

START_TEST(other_ranks_read_what_is_there)
{
    trli_open_memory *m = trli_open_memory_create(test_ctx, ROOM, true);
    trli_open_name own, name[8];
    const int rank = trl_context_rank(test_ctx), ranks = trl_context_ranks(test_ctx), other = (rank + 1) % ranks;
    unsigned char *block = trli_open_memory_take(m, LARGE);
    const int64_t offset = trli_open_memory_offset(m, block);
    memset(block, rank + 1, LARGE);
    trli_open_memory_name(m, &own);
    MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, name, (int)sizeof own, MPI_BYTE, MPI_COMM_WORLD);
    const unsigned char *mapped = trli_open_memory_map(&name[other], false);
    bool good = mapped && is_filled(mapped + offset, LARGE, other + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(block, rank + 10, LARGE);
    MPI_Barrier(MPI_COMM_WORLD);
    good = good && is_filled(mapped + offset, LARGE, other + 10);
    MPI_Barrier(MPI_COMM_WORLD);
    trli_open_memory_destroy(&m);
    MPI_Barrier(MPI_COMM_WORLD);
    good = good && is_filled(mapped + offset, LARGE, other + 10); /* it lives as long as somebody has it mapped */
    trli_open_memory_unmap(mapped, &name[other]);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    ck_assert(good);
}
END_TEST

START_TEST(other_ranks_write_there_if_they_are_to)
{
    const size_t before = counted();
    trli_open_memory *m = trli_open_memory_create(test_ctx, ROOM, false);
    trli_open_name own, name[8];
    const int rank = trl_context_rank(test_ctx), ranks = trl_context_ranks(test_ctx), other = (rank + 1) % ranks;
    unsigned char *block = trli_open_memory_take(m, LARGE);
    const int64_t offset = trli_open_memory_offset(m, block);
    memset(block, 0, LARGE);
    trli_open_memory_name(m, &own);
    MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, name, (int)sizeof own, MPI_BYTE, MPI_COMM_WORLD);
    unsigned char *mapped = trli_open_memory_map(&name[other], true);
    if (mapped) memset(mapped + offset, rank + 1, LARGE);
    MPI_Barrier(MPI_COMM_WORLD);
    bool good = mapped && is_filled(block, LARGE, (rank + ranks - 1) % ranks + 1);
    trli_open_memory_unmap(mapped, &name[other]);
    trli_open_memory_destroy(&m); /* blocks that were not given back are */
    good = good && counted() == before;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    ck_assert(good);
}
END_TEST

START_TEST(another_file_is_not_taken_for_it)
{
    trli_open_memory *m = trli_open_memory_create(test_ctx, ROOM, true);
    trli_open_name name;
    trli_open_memory_name(m, &name);
    ++name.inode;
    ck_assert_ptr_null(trli_open_memory_map(&name, false));
    trli_open_memory_name(m, &name);
    name.file = 1 << 20;
    ck_assert_ptr_null(trli_open_memory_map(&name, false));
    trli_open_memory_destroy(&m);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, blocks_lie_apart_and_are_counted);
    tcase_add_test(tc, the_place_of_a_block_that_was_given_back_is_used_again);
    tcase_add_test(tc, there_is_no_more_room_than_was_asked_for);
    tcase_add_test(tc, other_ranks_read_what_is_there);
    tcase_add_test(tc, other_ranks_write_there_if_they_are_to);
    tcase_add_test(tc, another_file_is_not_taken_for_it);
}

TRL_TEST_MAIN("open_memory", add_tests)

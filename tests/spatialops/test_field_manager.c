/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Blocks of fields: registration, pools, consumers, and what runs out. */
// ctest: np=1,2
#include <math.h>

#include "field_manager_fixture.h"

/* ---- registration ---- */

START_TEST(a_block_is_found_by_tag_and_patch)
{
    trl_block *block[500], *found;
    char tag[16];
    for (int i = 0; i < 500; ++i) {
        snprintf(tag, sizeof tag, "f%d", i / 5);
        block[i] = add(tag, i % 5 - 1, i, 0);
    }
    for (int i = 0; i < 500; i += 2) trl_block_destroy(&block[i]);
    for (int i = 1; i < 500; i += 2) {
        snprintf(tag, sizeof tag, "f%d", i / 5);
        ck_ok(trl_field_manager_find(manager, tag, i % 5 - 1, &found));
        ck_assert_ptr_eq(found, block[i]);
        ck_assert_str_eq(trl_block_tag(found), tag);
        ck_assert_int_eq(trl_block_count(found), i);
    }
    ck_fails(trl_field_manager_find(manager, "f0", 1, &found), TRL_ERR_USAGE, "no block 'f0' on patch 1 is registered");
    ck_assert_ptr_null(found);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_field_manager_find(manager, "g", TRL_WHOLE_RANK, &found), TRL_ERR_USAGE,
             "no block 'g' of the rank is registered");
}
END_TEST

START_TEST(refuses_a_block_that_is_registered_already)
{
    trl_block *second = NULL;
    add("T", 3, 10, 0);
    add("T", 4, 10, 0);
    ck_fails(trl_block_create(manager, &(trl_block_desc){.tag = "T", .patch = 3, .count = 5}, &second), TRL_ERR_USAGE,
             "the block 'T' on patch 3 is registered already");
    ck_assert_ptr_null(second);
}
END_TEST

START_TEST(refuses_a_block_that_cannot_be)
{
    static const struct {
        trl_block_desc desc;
        const char *message;
    } bad[] = {
        {{.tag = "", .count = 1}, "a block needs a tag"},
        {{.count = 1}, "a block needs a tag"},
        {{.tag = "T", .count = -1}, "the block 'T' has a negative number of values"},
        {{.tag = "T", .count = INT64_MAX}, "the block 'T' has more values than any memory holds"},
        {{.tag = "T", .patch = -2}, "the block 'T' has a negative patch"},
        {{.tag = "T", .flags = 64}, "the block 'T' has unknown flags"},
        {{.tag = "T", .type = (trl_scalar_type)7}, "the block 'T' has an unknown type of values"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        trl_block *block;
        trl_context_clear_diagnostics(test_ctx);
        ck_fails(trl_block_create(manager, &bad[i].desc, &block), TRL_ERR_USAGE, bad[i].message);
        ck_assert_ptr_null(block);
    }
}
END_TEST

enum { MANY = 1000 };
static const trl_block_desc kept = {.tag = "kept", .flags = TRL_BLOCK_PERSISTENT};

/* Blocks on patches 0, 2, 4, ..., of 1 to 13 values. */
static void add_many(trl_block *block[MANY])
{
    int patch[MANY];
    int64_t count[MANY];
    for (int i = 0; i < MANY; ++i) {
        patch[i] = 2 * i;
        count[i] = 1 + i % 13;
    }
    ck_ok(trl_blocks_create(manager, &kept, MANY, patch, count, block));
}

START_TEST(many_blocks_are_registered_at_once_or_none)
{
    trl_block *block[MANY], *found, *other[3] = {NULL};
    add_many(block);
    for (int i = 0; i < MANY; ++i) {
        ck_ok(trl_field_manager_find(manager, "kept", 2 * i, &found));
        ck_assert_ptr_eq(found, block[i]);
        ck_assert_int_eq(trl_block_count(found), 1 + i % 13);
    }
    const int64_t count[3] = {1, 1, 1};
    ck_fails(trl_blocks_create(manager, &kept, 3, (const int[]){1, 3, 4}, count, other), TRL_ERR_USAGE,
             "the block 'kept' on patch 4 is registered already");
    trl_context_clear_diagnostics(test_ctx);
    for (int i = 0; i < 3; ++i) ck_assert_ptr_null(other[i]);
    ck_fails(trl_field_manager_find(manager, "kept", 1, &found), TRL_ERR_USAGE, "no block 'kept' on patch 1");
    for (int i = 0; i < MANY; i += 2) trl_block_destroy(&block[i]);
    ck_ok(trl_blocks_create(manager, &kept, 3, (const int[]){1, 3, 4}, count, other));
    ck_ok(trl_field_manager_find(manager, "kept", 2, &found));
    ck_assert_ptr_eq(found, block[1]);
}
END_TEST

static size_t array_bytes(const trl_memory_stats *stats)
{
    return stats->bytes - stats->metadata_bytes;
}

START_TEST(a_registered_block_has_no_memory_before_its_first_use)
{
    trl_memory_stats none, before, after;
    close_manager();
    trl_memory_get_stats(test_ctx, &none);
    open_manager();
    trl_memory_get_stats(test_ctx, &before);
    trl_block *block = add("T", 0, 1 << 20, 0);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(array_bytes(&after), array_bytes(&before));
    ck_assert_uint_gt(after.metadata_bytes, before.metadata_bytes);
    acquire(block, 1);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(array_bytes(&after), array_bytes(&before) + ((size_t)8 << 20));
    trl_field_manager_destroy(&manager);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, none.bytes);
}
END_TEST

START_TEST(a_block_changes_its_size_within_its_capacity)
{
    trl_block *block;
    void *memory;
    ck_ok(
        trl_block_create(manager, &(trl_block_desc){.tag = "p", .type = TRL_I32, .count = 10, .capacity = 40}, &block));
    int32_t *values = (int32_t *)acquire(block, 1);
    ck_assert_uint_eq(stats_of(0).in_use, 160);
    ck_ok(trl_block_resize(block, 40));
    values[39] = 7;
    ck_assert_int_eq(trl_block_count(block), 40);
    ck_ok(trl_block_read(block, 0, &memory));
    ck_assert_ptr_eq(memory, values);
    ck_fails(trl_block_resize(block, 41), TRL_ERR_USAGE,
             "the block 'p' on patch 0 cannot hold 41 values: its capacity is 40");
}
END_TEST

/* ---- pools ---- */

START_TEST(small_blocks_that_are_kept_share_a_piece_of_memory)
{
    trl_block *block[MANY];
    void *memory[MANY];
    trl_memory_stats before, after;
    size_t bytes = 0;
    add_many(block);
    trl_memory_get_stats(test_ctx, &before);
    ck_ok(trl_blocks_acquire(MANY, block, memory));
    for (int i = 0; i < MANY; ++i) {
        ck_assert_uint_eq((uintptr_t)memory[i] % 64, 0);
        for (int k = 0; k < 1 + i % 13; ++k) ((double *)memory[i])[k] = i;
        bytes += (size_t)(1 + i % 13) * sizeof(double);
    }
    for (int i = 0; i < MANY; ++i)
        for (int k = 0; k < 1 + i % 13; ++k) ck_assert_double_eq(((double *)memory[i])[k], i);
    ck_assert_int_eq(stats_of(0).allocations, 1);
    ck_assert_uint_eq(stats_of(0).in_use, bytes);
    ck_assert_uint_eq(stats_of(0).peak, bytes);
    ck_assert_uint_eq(stats_of(0).lost, 0);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_ge(array_bytes(&after), array_bytes(&before) + bytes);
    for (int i = 0; i < MANY; ++i) {
        trl_memory_get_stats(test_ctx, &after);
        ck_assert_uint_gt(array_bytes(&after), array_bytes(&before)); /* until the last of them goes */
        if (i % 3)
            trl_block_vacate(block[i]);
        else
            trl_block_destroy(&block[i]);
    }
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(array_bytes(&after), array_bytes(&before));
    ck_assert_uint_eq(stats_of(0).in_use, 0);
}
END_TEST

START_TEST(larger_blocks_have_memory_of_their_own)
{
    trl_block *block[2];
    void *memory[2];
    const int64_t count[2] = {10, 1 << 12};
    ck_ok(trl_blocks_create(manager, &kept, 2, (const int[]){0, 1}, count, block));
    ck_ok(trl_blocks_acquire(2, block, memory));
    ck_assert_int_eq(stats_of(0).allocations, 2);
    ck_assert_uint_eq(stats_of(0).in_use, 80 + (8 << 12));
}
END_TEST

/* Where padding would go beyond the limit, blocks that fit without it are there. */
START_TEST(blocks_that_fit_alone_need_no_shared_piece)
{
    trl_block *block[MANY];
    void *memory[MANY];
    trl_memory_stats stats;
    size_t bytes = 0;
    add_many(block);
    for (int i = 0; i < MANY; ++i) bytes += (size_t)(1 + i % 13) * sizeof(double);
    trl_memory_get_stats(test_ctx, &stats);
    const size_t limit = test_ctx->memory.limit, each = sizeof(trli_extent) + 34; /* beside its values, alone */
    test_ctx->memory.limit = stats.bytes + bytes + MANY * each;
    ck_ok(trl_blocks_acquire(MANY, block, memory));
    test_ctx->memory.limit = limit;
    ck_assert_int_eq(stats_of(0).allocations, MANY);
    ck_assert_uint_eq(stats_of(0).in_use, bytes);
}
END_TEST

START_TEST(a_size_class_loses_less_than_an_eighth)
{
    size_t last = 0;
    int last_class = -1;
    for (size_t bytes = 0; bytes < ((size_t)1 << 46); bytes = bytes < 5000 ? bytes + 1 : bytes + bytes / 97 + 1) {
        size_t given;
        int class = trli_pool_class(bytes, &given);
        ck_assert_int_ge(class, last_class); /* classes ascend with sizes, and one class has one size */
        ck_assert_int_lt(class, TRLI_CLASSES);
        if (class == last_class) ck_assert_uint_eq(given, last);
        if (class > last_class) ck_assert_uint_gt(given, last);
        ck_assert_uint_ge(given, bytes);
        ck_assert_uint_eq(given % 64, 0);
        if (bytes > 512)
            ck_assert_uint_lt(8 * (given - bytes), bytes);
        else
            ck_assert_uint_le(given - bytes, bytes ? 63 : 64);
        last = given;
        last_class = class;
    }
    ck_assert_int_eq(trli_pool_class((size_t)1 << 48, &last), TRLI_CLASSES - 1);
    ck_assert_int_eq(trli_pool_class(((size_t)1 << 48) + 1, &last), -1);
}
END_TEST

START_TEST(released_memory_is_used_again_by_its_class)
{
    trl_block *a = add("a", 0, 1000, 0), *b = add("b", 0, 1010, 0), *c = add("c", 0, 2000, 0);
    double *of_a = acquire(a, 1);
    ck_ok(trl_block_release(a, 0));
    trl_pool_stats stats = stats_of(0);
    ck_assert_uint_eq(stats.in_use, 0);
    ck_assert_uint_eq(stats.cached, 8192); /* 8000 and 8080 bytes have one class */
    ck_assert_ptr_ne(acquire(c, 1), of_a);
    ck_assert_ptr_eq(acquire(b, 1), of_a);
    stats = stats_of(0);
    ck_assert_uint_eq(stats.in_use, 8080 + 16000);
    ck_assert_uint_eq(stats.lost, (8192 - 8080) + (16384 - 16000));
    ck_assert_uint_eq(stats.cached, 0);
    ck_assert_uint_eq(stats.peak, 8192 + 16384);
    ck_assert_int_eq(stats.allocations, 2);
    ck_assert_int_eq(stats.reuses, 1);
    ck_ok(trl_block_release(b, 0));
    trl_field_manager_trim(manager);
    ck_assert_uint_eq(stats_of(0).cached, 0);
    trl_memory_stats memory;
    trl_memory_get_stats(test_ctx, &memory);
    ck_assert_uint_ge(memory.bytes, 16384);
}
END_TEST

START_TEST(a_second_execution_allocates_nothing)
{
    trl_block *block[20];
    int64_t allocations = 0;
    char tag[16];
    for (int i = 0; i < 20; ++i) {
        snprintf(tag, sizeof tag, "f%d", i);
        block[i] = add(tag, 0, (size_t)100 * (size_t)(i % 6), i % 4 ? 0 : TRL_BLOCK_PERSISTENT);
    }
    for (int run = 0; run < 5; ++run) {
        for (int i = 0; i < 20; ++i) {
            acquire(block[i], 2);
            if (i >= 3)
                for (int n = 0; n < 2; ++n) ck_ok(trl_block_release(block[i - 3], 0));
        }
        for (int i = 17; i < 20; ++i)
            for (int n = 0; n < 2; ++n) ck_ok(trl_block_release(block[i], 0));
        if (run > 0) ck_assert_int_eq(stats_of(0).allocations, allocations);
        allocations = stats_of(0).allocations;
    }
    ck_assert_int_lt(allocations, 20);
}
END_TEST

START_TEST(kept_blocks_lose_nothing_to_size_classes)
{
    trl_block *block = add("slot", 0, 1001, TRL_BLOCK_PERSISTENT);
    double *memory = acquire(block, 1);
    ck_assert_uint_eq(stats_of(0).in_use, 8008);
    ck_assert_uint_eq(stats_of(0).peak, 8008);
    ck_assert_uint_eq(stats_of(0).lost, 0);
    ck_ok(trl_block_release(block, 0));
    ck_assert_uint_eq(stats_of(0).in_use, 8008);
    ck_assert_ptr_eq(acquire(block, 0), memory);
    trl_block_destroy(&block);
    ck_assert_uint_eq(stats_of(0).in_use, 0);
    ck_assert_uint_eq(stats_of(0).cached, 0);
}
END_TEST

/* ---- consumers ---- */

START_TEST(the_last_consumer_gives_the_memory_back)
{
    trl_block *q = add("q", 2, 100, 0);
    void *memory;
    double *values = acquire(q, 3);
    values[99] = 4;
    for (int n = 0; n < 2; ++n) ck_ok(trl_block_release(q, 0));
    ck_ok(trl_block_read(q, 0, &memory));
    ck_assert_ptr_eq(memory, values);
    ck_assert_uint_eq(stats_of(0).in_use, 800);
    ck_ok(trl_block_release(q, 0));
    ck_assert_uint_eq(stats_of(0).in_use, 0);
    ck_assert_uint_eq(stats_of(0).cached, 832);
    ck_fails(trl_block_read(q, 0, &memory), TRL_ERR_USAGE,
             "the block 'q' on patch 2 holds no values: nobody acquired it, or its last consumer released it");
    ck_assert_ptr_null(memory);
}
END_TEST

START_TEST(a_release_too_many_is_refused_by_name)
{
    trl_block *q = add("q", 2, 100, 0), *sum = add("sum", TRL_WHOLE_RANK, 1, TRL_BLOCK_PERSISTENT);
    acquire(q, 1);
    ck_ok(trl_block_release(q, 0));
    ck_fails(trl_block_release(q, 0), TRL_ERR_USAGE,
             "the block 'q' on patch 2 is released once too often in memory 'host'");
    acquire(sum, 0);
    ck_fails(trl_block_release(sum, 0), TRL_ERR_USAGE, "the block 'sum' of the rank is released once too often");
}
END_TEST

START_TEST(a_producer_waits_for_the_consumers_of_the_old_values)
{
    trl_block *q = add("q", 2, 100, 0);
    void *memory;
    acquire(q, 2);
    ck_fails(trl_block_acquire(q, 0, 1, &memory), TRL_ERR_USAGE,
             "the block 'q' on patch 2 is to be written while its values in memory 'host' still have 2 consumers");
    ck_assert_ptr_null(memory);
    for (int n = 0; n < 2; ++n) ck_ok(trl_block_release(q, 0));
    ck_fails(trl_block_acquire(q, 0, 0, &memory), TRL_ERR_USAGE,
             "the block 'q' on patch 2 is acquired for 0 consumers: nobody would release it");
    ck_fails(trl_block_acquire(q, 1, 1, &memory), TRL_ERR_USAGE,
             "the block 'q' on patch 2 is asked for in space 1; there are 1");
    acquire(q, 1);
}
END_TEST

START_TEST(a_static_block_is_written_once_and_never_released)
{
    trl_block *k = add("k", 0, 100, TRL_BLOCK_STATIC);
    void *memory;
    double *values = acquire(k, 5);
    values[7] = 7;
    for (int n = 0; n < 20; ++n) ck_ok(trl_block_release(k, 0));
    ck_ok(trl_block_read(k, 0, &memory));
    ck_assert_double_eq(((double *)memory)[7], 7);
    ck_fails(trl_block_acquire(k, 0, 1, &memory), TRL_ERR_USAGE,
             "the block 'k' on patch 0 is static and was written already");
    ck_fails(trl_block_update(k, 0, &memory), TRL_ERR_USAGE, "the block 'k' on patch 0 is static: it cannot change");
    ck_assert_double_eq(values[7], 7);
}
END_TEST

START_TEST(a_locked_block_keeps_its_values_until_it_is_unlocked)
{
    trl_block *q = add("q", 0, 100, TRL_BLOCK_LOCKED);
    void *memory;
    for (int execution = 0; execution < 3; ++execution) {
        acquire(q, 2)[50] = execution;
        for (int n = 0; n < 2; ++n) ck_ok(trl_block_release(q, 0));
        ck_ok(trl_block_read(q, 0, &memory));
        ck_assert_double_eq(((double *)memory)[50], execution);
    }
    trl_block_unlock(q);
    ck_assert_uint_eq(stats_of(0).in_use, 0);
    ck_fails(trl_block_read(q, 0, &memory), TRL_ERR_USAGE, "the block 'q' on patch 0 holds no values");
    acquire(q, 1);
    trl_block_lock(q);
    ck_ok(trl_block_release(q, 0));
    ck_ok(trl_block_read(q, 0, &memory));
    acquire(q, 1);
    trl_block_unlock(q); /* with a consumer to come it stays */
    ck_ok(trl_block_read(q, 0, &memory));
    ck_ok(trl_block_release(q, 0));
    ck_assert_uint_eq(stats_of(0).in_use, 0);
}
END_TEST

/* ---- what is not there ---- */

START_TEST(a_vacated_block_is_as_it_was_registered)
{
    trl_block *block = add("T", 0, 100, TRL_BLOCK_PERSISTENT);
    trl_pool_stats stats;
    void *memory;
    for (int i = 0; i < 2; ++i) {
        ck_ok(trl_block_acquire(block, 0, 3, &memory));
        trl_block_vacate(block); /* whoever was to read it */
        trl_block_vacate(block);
        trl_field_manager_get_stats(manager, 0, &stats);
        ck_assert_uint_eq(stats.in_use, 0);
        ck_assert_uint_eq(stats.cached, 0);
        ck_assert_uint_eq(trl_block_valid(block), 0);
        ck_fails(trl_block_read(block, 0, &memory), TRL_ERR_USAGE, "holds no values");
        test_clear();
    }
}
END_TEST

START_TEST(memory_that_runs_out_is_an_error_that_names_the_block_and_the_pools)
{
    trl_memory_stats all, left;
    size_t limit = test_ctx->memory.limit;
    trl_block *a = add("a", 1, 1000, 0), *b = add("b", 1, 512, 0), *huge = add("T", 7, 1 << 20, 0);
    char expected[512];
    void *memory = &memory;
    acquire(a, 1);
    acquire(b, 1);
    ck_ok(trl_block_release(b, 0));
    trl_memory_get_stats(test_ctx, &all);
    test_ctx->memory.limit = all.bytes + 3000;
    trl_err err = trl_block_acquire(huge, 0, 1, &memory);
    ck_assert_ptr_null(memory);
    trl_memory_get_stats(test_ctx, &left);
    ck_assert_uint_eq(array_bytes(&left), array_bytes(&all) - 4096); /* b's cached extent is given back */
    snprintf(expected, sizeof expected,
             "the block 'T' on patch 7 needs 8388608 bytes (0.00839 GB), more than memory 'host' of rank %d has left: "
             "blocks use 8000 bytes and lose 192 to size classes, 0 are cached, everything on the rank %zu of the %zu "
             "bytes allowed; use a smaller grid or more nodes",
             trl_context_rank(test_ctx), left.bytes, all.bytes + 3000);
    ck_fails(err, TRL_ERR_MEMORY, expected);
    /* What b left in the cache goes to who needs another size. */
    trl_context_clear_diagnostics(test_ctx);
    acquire(b, 1);
    ck_ok(trl_block_release(b, 0));
    trl_block *c = add("c", 1, 800, 0);
    acquire(c, 1);
    ck_assert_uint_eq(stats_of(0).cached, 0);
    ck_assert_str_eq(test_messages(), "");
    test_ctx->memory.limit = limit;
    acquire(huge, 1);
}
END_TEST

START_TEST(a_block_larger_than_any_class_is_refused)
{
    trl_block *block = add("T", 0, INT64_MAX / 16, 0);
    void *memory;
    ck_fails(trl_block_acquire(block, 0, 1, &memory), TRL_ERR_MEMORY, "the block 'T' on patch 0 needs ");
    ck_assert_ptr_null(memory);
}
END_TEST

#ifdef TRL_POISON
START_TEST(values_that_were_released_or_never_written_are_nan)
{
    trl_block *q = add("q", 0, 100, 0), *r = add("r", 0, 100, 0), *i = add("i", 0, 100, TRL_BLOCK_PERSISTENT);
    double *values = acquire(q, 1);
    ck_assert(isnan(values[0]) && isnan(values[99]));
    for (int n = 0; n < 100; ++n) values[n] = n;
    ck_ok(trl_block_release(q, 0));
    for (int n = 0; n < 100; ++n) ck_assert(isnan(values[n])); /* a stale read */
    for (int n = 0; n < 100; ++n) values[n] = n;               /* a stale write */
    ck_assert_ptr_eq(acquire(r, 1), values);
    for (int n = 0; n < 100; ++n) ck_assert(isnan(values[n]));
    values = acquire(i, 0);
    values[5] = 5;
    ck_assert_ptr_eq(acquire(i, 0), values); /* a new execution */
    ck_assert(isnan(values[5]));
}
END_TEST
#endif

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_manager, close_manager);
    tcase_add_test(tc, a_block_is_found_by_tag_and_patch);
    tcase_add_test(tc, refuses_a_block_that_is_registered_already);
    tcase_add_test(tc, refuses_a_block_that_cannot_be);
    tcase_add_test(tc, many_blocks_are_registered_at_once_or_none);
    tcase_add_test(tc, small_blocks_that_are_kept_share_a_piece_of_memory);
    tcase_add_test(tc, larger_blocks_have_memory_of_their_own);
    tcase_add_test(tc, blocks_that_fit_alone_need_no_shared_piece);
    tcase_add_test(tc, a_registered_block_has_no_memory_before_its_first_use);
    tcase_add_test(tc, a_block_changes_its_size_within_its_capacity);
    tcase_add_test(tc, a_size_class_loses_less_than_an_eighth);
    tcase_add_test(tc, released_memory_is_used_again_by_its_class);
    tcase_add_test(tc, a_second_execution_allocates_nothing);
    tcase_add_test(tc, kept_blocks_lose_nothing_to_size_classes);
    tcase_add_test(tc, the_last_consumer_gives_the_memory_back);
    tcase_add_test(tc, a_release_too_many_is_refused_by_name);
    tcase_add_test(tc, a_producer_waits_for_the_consumers_of_the_old_values);
    tcase_add_test(tc, a_static_block_is_written_once_and_never_released);
    tcase_add_test(tc, a_locked_block_keeps_its_values_until_it_is_unlocked);
    tcase_add_test(tc, a_vacated_block_is_as_it_was_registered);
    tcase_add_test(tc, memory_that_runs_out_is_an_error_that_names_the_block_and_the_pools);
    tcase_add_test(tc, a_block_larger_than_any_class_is_refused);
#ifdef TRL_POISON
    tcase_add_test(tc, values_that_were_released_or_never_written_are_nan);
#endif
}

TRL_TEST_MAIN("field_manager", add_tests)

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Blocks of fields: registration, pools, consumers, copies on other devices, and what runs out. */
// ctest: np=1,2 labels=threads
#include "trl_test.h"

#include <math.h>

#include <field_manager_impl.h>

static trl_field_manager *manager;

static void open_manager(void)
{
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(trl_field_manager_create(test_ctx, &manager));
}

static void close_manager(void)
{
    trl_field_manager_destroy(&manager);
    trl_field_manager_destroy(&manager);
}

static trl_block *add(const char *tag, int patch, int64_t count, unsigned flags)
{
    trl_block *block;
    ck_ok(trl_block_create(manager, &(trl_block_desc){.tag = tag, .patch = patch, .count = count, .flags = flags},
                           &block));
    return block;
}

static double *acquire(trl_block *block, int64_t consumers)
{
    void *memory;
    ck_ok(trl_block_acquire(block, 0, consumers, &memory));
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq((uintptr_t)memory % 64, 0);
    return memory;
}

static trl_pool_stats stats_of(int space)
{
    trl_pool_stats stats;
    trl_field_manager_get_stats(manager, space, &stats);
    return stats;
}

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

START_TEST(a_registered_block_has_no_memory_before_its_first_use)
{
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    trl_block *block = add("T", 0, 1 << 20, 0);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
    acquire(block, 1);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes + ((size_t)8 << 20));
    trl_field_manager_destroy(&manager);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
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
    char tag[8];
    for (int i = 0; i < 20; ++i) {
        snprintf(tag, sizeof tag, "f%d", i);
        block[i] = add(tag, 0, 100 * (i % 6), i % 4 ? 0 : TRL_BLOCK_PERSISTENT);
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

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_manager, close_manager);
    tcase_add_test(tc, a_block_is_found_by_tag_and_patch);
    tcase_add_test(tc, refuses_a_block_that_is_registered_already);
    tcase_add_test(tc, refuses_a_block_that_cannot_be);
    tcase_add_test(tc, a_registered_block_has_no_memory_before_its_first_use);
    tcase_add_test(tc, a_block_changes_its_size_within_its_capacity);
    tcase_add_test(tc, a_size_class_loses_less_than_an_eighth);
    tcase_add_test(tc, released_memory_is_used_again_by_its_class);
    tcase_add_test(tc, a_second_execution_allocates_nothing);
    tcase_add_test(tc, kept_blocks_lose_nothing_to_size_classes);
}

TRL_TEST_MAIN("field_manager", add_tests)

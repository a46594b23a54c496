/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Blocks of fields on several devices, of which all but the host are pretended, and used by several workers at once. */
// ctest: np=1 labels=threads
#include <math.h>
#include <stdatomic.h>

#include "field_manager_fixture.h"

/* ---- copies elsewhere ---- */

/* A device in the host's memory, which counts and may be full. */
typedef struct device {
    int copies_in, copies_out, alive;
    size_t room;
} device;

static trl_err device_allocate(void *data, size_t bytes, void **memory)
{
    device *d = data;
    *memory = NULL;
    if (bytes > d->room) return TRL_ERR_MEMORY;
    *memory = malloc(bytes + sizeof(size_t));
    *(size_t *)*memory = bytes;
    d->room -= bytes;
    ++d->alive;
    return TRL_OK;
}

static void device_free(void *data, void *memory)
{
    device *d = data;
    d->room += *(size_t *)memory;
    --d->alive;
    free(memory);
}

/* Device addresses are off by the header, so that a host that reads them fails the tests. */
static trl_err device_copy_in(void *data, void *to, const void *from, size_t bytes)
{
    ++((device *)data)->copies_in;
    memcpy((char *)to + sizeof(size_t), from, bytes);
    return TRL_OK;
}

static trl_err device_copy_out(void *data, void *to, const void *from, size_t bytes)
{
    ++((device *)data)->copies_out;
    memcpy(to, (const char *)from + sizeof(size_t), bytes);
    return TRL_OK;
}

static const trl_space_ops device_ops = {.name = "mock",
                                         .allocate = device_allocate,
                                         .free = device_free,
                                         .copy_in = device_copy_in,
                                         .copy_out = device_copy_out};

static double *device_values(void *memory)
{
    return (double *)((char *)memory + sizeof(size_t));
}

START_TEST(a_consumer_copy_is_made_once_and_released_by_its_own_count)
{
    device d = {.room = 1 << 20};
    int gpu;
    void *memory, *again;
    ck_ok(trl_field_manager_add_space(manager, &device_ops, &d, &gpu));
    ck_assert_int_eq(trl_field_manager_spaces(manager), 2);
    trl_block *u = add("u", 0, 100, 0);
    ck_fails(trl_block_copy(u, gpu, 1, &memory), TRL_ERR_USAGE, "the block 'u' on patch 0 holds no values");
    double *host = acquire(u, 1);
    for (int n = 0; n < 100; ++n) host[n] = n;
    ck_assert_uint_eq(trl_block_valid(u), 1);
    ck_fails(trl_block_read(u, gpu, &memory), TRL_ERR_USAGE,
             "is valid in memory 'host', not in 'mock': ask for a copy");
    ck_ok(trl_block_copy(u, gpu, 1, &memory));
    ck_ok(trl_block_copy(u, gpu, 2, &again));
    ck_assert_ptr_eq(memory, again);
    ck_assert_int_eq(d.copies_in, 1);
    ck_assert_double_eq(device_values(memory)[99], 99);
    ck_assert_uint_eq(trl_block_valid(u), 3);
    ck_ok(trl_block_release(u, 0)); /* the host's consumer is done: the device's copy lives on */
    ck_assert_uint_eq(stats_of(0).in_use, 0);
    ck_assert_uint_eq(trl_block_valid(u), 2);
    for (int n = 0; n < 3; ++n) ck_ok(trl_block_release(u, gpu));
    ck_assert_uint_eq(trl_block_valid(u), 0);
    ck_fails(trl_block_release(u, gpu), TRL_ERR_USAGE,
             "the block 'u' on patch 0 is released once too often in memory 'mock'");
    ck_fails(trl_block_copy(u, gpu, 0, &memory), TRL_ERR_USAGE, "is copied for 0 consumers");
    ck_assert_uint_eq(stats_of(gpu).in_use, 0);
    ck_assert_uint_eq(stats_of(gpu).cached, 832);
    trl_field_manager_destroy(&manager);
    ck_assert_int_eq(d.alive, 0);
}
END_TEST

START_TEST(a_write_leaves_one_valid_copy)
{
    device d = {.room = 1 << 20};
    int gpu;
    void *memory;
    ck_ok(trl_field_manager_add_space(manager, &device_ops, &d, &gpu));
    trl_block *u = add("u", 0, 100, TRL_BLOCK_PERSISTENT);
    double *host = acquire(u, 2);
    for (int n = 0; n < 100; ++n) host[n] = n;
    ck_ok(trl_block_copy(u, gpu, 1, &memory));
    ck_fails(trl_block_update(u, 0, &memory), TRL_ERR_USAGE,
             "is to be written while its values in memory 'mock' still have 1 consumer");
    ck_ok(trl_block_release(u, gpu));
    ck_ok(trl_block_update(u, gpu, &memory)); /* moves, and its two consumers along */
    ck_assert_uint_eq(trl_block_valid(u), 2);
    ck_assert_uint_eq(stats_of(0).in_use, 0);
    device_values(memory)[3] = -3;
    ck_ok(trl_block_copy(u, 0, 1, &memory));
    ck_assert_double_eq(((double *)memory)[3], -3);
    ck_assert_double_eq(((double *)memory)[4], 4);
    ck_assert_uint_eq(trl_block_valid(u), 3);
    ck_ok(trl_block_release(u, 0));
    ck_assert_uint_eq(trl_block_valid(u), 2);
    for (int n = 0; n < 2; ++n) ck_ok(trl_block_release(u, gpu));
    ck_assert_uint_eq(trl_block_valid(u), 2); /* persistent where it is at home */
    ck_ok(trl_block_acquire(u, 0, 1, &memory));
    ck_assert_uint_eq(trl_block_valid(u), 1);
    ck_assert_uint_eq(stats_of(gpu).in_use, 0);
    ck_assert_int_eq(d.copies_in, 2);
    ck_assert_int_eq(d.copies_out, 1);
    trl_field_manager_destroy(&manager);
}
END_TEST

START_TEST(values_go_from_one_device_to_another_by_way_of_the_host)
{
    device d[2] = {{.room = 1 << 20}, {.room = 1 << 20}};
    int space[2];
    void *memory;
    for (int i = 0; i < 2; ++i) ck_ok(trl_field_manager_add_space(manager, &device_ops, &d[i], &space[i]));
    trl_block *u = add("u", 0, 100, 0);
    ck_ok(trl_block_acquire(u, space[0], 1, &memory));
    for (int n = 0; n < 100; ++n) device_values(memory)[n] = 2 * n;
    ck_ok(trl_block_copy(u, space[1], 1, &memory));
    ck_assert_double_eq(device_values(memory)[99], 198);
    ck_assert_uint_eq(trl_block_valid(u), 6);
    ck_assert_uint_eq(stats_of(0).in_use, 0);
    ck_assert_int_eq(d[0].copies_out, 1);
    ck_assert_int_eq(d[1].copies_in, 1);
    trl_field_manager_destroy(&manager);
}
END_TEST

START_TEST(a_full_device_is_an_error_that_leaves_the_block_where_it_was)
{
    device d = {.room = 2048};
    int gpu;
    void *memory;
    ck_ok(trl_field_manager_add_space(manager, &device_ops, &d, &gpu));
    trl_block *u = add("u", 0, 100, 0), *v = add("v", 3, 200, 0);
    acquire(u, 1);
    acquire(v, 1)[10] = 10;
    ck_ok(trl_block_copy(u, gpu, 1, &memory));
    ck_fails(trl_block_copy(v, gpu, 1, &memory), TRL_ERR_MEMORY,
             "the block 'v' on patch 3 needs 1600 bytes (1.6e-06 GB), more than memory 'mock' of rank ");
    ck_fails(trl_block_copy(v, gpu, 1, &memory), TRL_ERR_MEMORY,
             "blocks use 800 bytes and lose 32 to size classes, 0 are cached; use a smaller grid or more nodes");
    ck_assert_uint_eq(trl_block_valid(v), 1);
    ck_ok(trl_block_release(u, gpu)); /* cached by another class, and given back when wanted */
    ck_ok(trl_block_copy(v, gpu, 1, &memory));
    ck_assert_double_eq(device_values(memory)[10], 10);
    trl_field_manager_destroy(&manager);
}
END_TEST

START_TEST(a_space_without_a_required_operation_is_refused)
{
    trl_space_ops ops = device_ops;
    int space;
    ops.copy_out = NULL;
    ck_fails(trl_field_manager_add_space(manager, &ops, NULL, &space), TRL_ERR_USAGE,
             "the memory space 'mock' lacks the required operation copy_out");
    ops.name = NULL;
    ck_fails(trl_field_manager_add_space(manager, &ops, NULL, &space), TRL_ERR_USAGE,
             "the memory space '?' lacks a name");
    for (int s = 1; s < TRL_SPACES_MAX; ++s) ck_ok(trl_field_manager_add_space(manager, &device_ops, NULL, &space));
    ck_fails(trl_field_manager_add_space(manager, &device_ops, NULL, &space), TRL_ERR_USAGE,
             "a field manager has at most 9 spaces");
}
END_TEST

START_TEST(spaces_come_before_blocks)
{
    int space;
    trl_block *block = add("u", 0, 1, 0);
    ck_fails(trl_field_manager_add_space(manager, &device_ops, NULL, &space), TRL_ERR_USAGE,
             "the memory space 'mock' comes after a block was registered");
    trl_block_destroy(&block);
    ck_ok(trl_field_manager_add_space(manager, &device_ops, NULL, &space));
}
END_TEST

/* ---- workers ---- */

static trl_workers *workers;

static void open_workers(int n)
{
    ck_ok(trl_context_set_threads(test_ctx, n));
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    trl_context_clear_diagnostics(test_ctx);
}

static void close_workers(void)
{
    trl_workers_destroy(&workers);
    ck_ok(trl_context_set_threads(test_ctx, 0));
}

START_TEST(workers_touch_every_value_of_new_blocks)
{
    trl_block *block[3] = {add("a", 0, 100003, TRL_BLOCK_PERSISTENT), NULL, add("c", 0, 7, 0)};
    trl_block *none = add("none", 0, 7, 0);
    ck_ok(trl_block_create(manager, &(trl_block_desc){.tag = "b", .type = TRL_F32, .count = 1001}, &block[1]));
    for (int n = 0; n <= 3; ++n) {
        double *a = acquire(block[0], 0), *c;
        float *b = (float *)acquire(block[1], 1);
        c = acquire(block[2], 1);
        memset(a, 0, 100003 * sizeof *a);
        memset(b, 0, 1001 * sizeof *b);
        memset(c, 0, 7 * sizeof *c);
        if (n > 0) open_workers(n);
        ck_ok(trl_field_manager_touch(manager, n > 0 ? workers : NULL, 3, block));
        if (n > 0) close_workers();
        int touched = 0;
        for (int i = 0; i < 100003; ++i) touched += isnan(a[i]) != 0;
        for (int i = 0; i < 1001; ++i) touched += isnan(b[i]) != 0;
        for (int i = 0; i < 7; ++i) touched += isnan(c[i]) != 0;
        ck_assert_int_eq(touched, 100003 + 1001 + 7);
        ck_ok(trl_block_release(block[1], 0));
        ck_ok(trl_block_release(block[2], 0));
    }
    ck_fails(trl_field_manager_touch(manager, NULL, 1, &none), TRL_ERR_USAGE,
             "the block 'none' on patch 0 has no memory to be touched: acquire it first");
}
END_TEST

/* A block of the graph below: written by one task, read by all that release it. */
enum { STORM_BLOCKS = 64, STORM_CONSUMERS = 5, STORM_ROUNDS = 20 };

typedef struct storm {
    trl_block *block;
    _Atomic int wrong;
    int index;
} storm;

static trl_err storm_produce(void *data, const trl_task_args *args, bool *done)
{
    storm *s = data;
    void *memory;
    trl_err err = TRL_OK;
    (void)args, (void)done;
    TRL_TRY(trl_block_acquire(s->block, 0, STORM_CONSUMERS, &memory));
    for (int i = 0; i < trl_block_count(s->block); ++i) ((double *)memory)[i] = s->index;
done:
    return err;
}

static trl_err storm_consume(void *data, const trl_task_args *args, bool *done)
{
    storm *s = data;
    void *memory;
    trl_err err = TRL_OK;
    (void)args, (void)done;
    TRL_TRY(trl_block_read(s->block, 0, &memory));
    for (int i = 0; i < trl_block_count(s->block); ++i)
        if (((double *)memory)[i] != s->index) atomic_fetch_add(&s->wrong, 1);
    TRL_TRY(trl_block_release(s->block, 0));
done:
    return err;
}

/* Each block is written when the consumers of the one four before have read it, so that few are alive. */
static void add_storm(trl_graph *graph, storm *s)
{
    trl_task produce[STORM_BLOCKS], consume[STORM_BLOCKS][STORM_CONSUMERS];
    for (int b = 0; b < STORM_BLOCKS; ++b) {
        const trl_task_desc first = {.name = "produce", .variant = {{storm_produce}}, .data = &s[b], .chunks = 1};
        ck_ok(trl_graph_add_task(graph, &first, &produce[b]));
        for (int c = 0; c < STORM_CONSUMERS; ++c) {
            const trl_task_desc then = {.name = "consume", .variant = {{storm_consume}}, .data = &s[b], .chunks = 1};
            ck_ok(trl_graph_add_task(graph, &then, &consume[b][c]));
            ck_ok(trl_graph_add_dependency(graph, produce[b], consume[b][c]));
            if (b >= 4) ck_ok(trl_graph_add_dependency(graph, consume[b - 4][c], produce[b]));
        }
    }
}

START_TEST(tasks_acquire_and_release_blocks_at_once)
{
    storm s[STORM_BLOCKS];
    trl_graph *graph;
    char tag[16];
    open_workers(4);
    for (int b = 0; b < STORM_BLOCKS; ++b) {
        snprintf(tag, sizeof tag, "s%d", b);
        s[b] = (storm){.block = add(tag, 0, 300 + 5 * (b % 7), 0), .index = b};
    }
    ck_ok(trl_graph_create(test_ctx, "storm", &graph));
    add_storm(graph, s);
    ck_ok(trl_graph_freeze(graph));
    for (int round = 0; round < STORM_ROUNDS; ++round) {
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_uint_eq(stats_of(0).in_use, 0);
    }
    for (int b = 0; b < STORM_BLOCKS; ++b) ck_assert_int_eq(s[b].wrong, 0);
    /* Five dependent chains of blocks at most are alive: far fewer than there are blocks. */
    ck_assert_uint_le(stats_of(0).peak, (size_t)16 * 8 * 384);
    ck_assert_int_le(stats_of(0).allocations, 32);
    trl_graph_destroy(&graph);
    close_workers();
}
END_TEST

static trl_err register_blocks(void *data, const trl_task_args *args, bool *done)
{
    trl_err err = TRL_OK;
    trl_block *block, *found;
    char tag[32];
    (void)done;
    for (int i = 0; i < 50; ++i) {
        void *memory;
        snprintf(tag, sizeof tag, "%d/%d", args->chunk, i);
        TRL_TRY(trl_block_create(data, &(trl_block_desc){.tag = tag, .count = 40}, &block));
        TRL_TRY(trl_field_manager_find(data, tag, 0, &found));
        TRL_TRY(trl_block_acquire(found, 0, 1, &memory));
        if (i % 2) trl_block_destroy(&block);
        if (i % 10 == 0) trl_field_manager_trim(data);
    }
done:
    return err;
}

START_TEST(threads_register_find_and_destroy_blocks_at_once)
{
    trl_graph *graph;
    trl_task task;
    open_workers(4);
    ck_ok(trl_graph_create(test_ctx, "register", &graph));
    const trl_task_desc desc = {.name = "register", .variant = {{register_blocks}}, .data = manager, .chunks = 16};
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_uint_eq(stats_of(0).in_use, (size_t)16 * 25 * 320);
    trl_graph_destroy(&graph);
    close_workers();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_manager, close_manager);
    tcase_add_test(tc, a_consumer_copy_is_made_once_and_released_by_its_own_count);
    tcase_add_test(tc, a_write_leaves_one_valid_copy);
    tcase_add_test(tc, values_go_from_one_device_to_another_by_way_of_the_host);
    tcase_add_test(tc, a_full_device_is_an_error_that_leaves_the_block_where_it_was);
    tcase_add_test(tc, a_space_without_a_required_operation_is_refused);
    tcase_add_test(tc, spaces_come_before_blocks);
    tcase_add_test(tc, workers_touch_every_value_of_new_blocks);
    tcase_add_test(tc, tasks_acquire_and_release_blocks_at_once);
    tcase_add_test(tc, threads_register_find_and_destroy_blocks_at_once);
}

TRL_TEST_MAIN("field_spaces", add_tests)

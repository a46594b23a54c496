/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A field manager in tests: a new one for each. */
#ifndef FIELD_MANAGER_FIXTURE_H
#define FIELD_MANAGER_FIXTURE_H

#include "trl_test.h"

#include <field_manager_impl.h>

static trl_field_manager *manager;

static inline void open_manager(void)
{
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(trl_field_manager_create(test_ctx, &manager));
}

static inline void close_manager(void)
{
    trl_field_manager_destroy(&manager);
    trl_field_manager_destroy(&manager);
}

static inline trl_block *add(const char *tag, int patch, int64_t count, unsigned flags)
{
    trl_block *block;
    ck_ok(trl_block_create(manager, &(trl_block_desc){.tag = tag, .patch = patch, .count = count, .flags = flags},
                           &block));
    return block;
}

static inline double *acquire(trl_block *block, int64_t consumers)
{
    void *memory;
    ck_ok(trl_block_acquire(block, 0, consumers, &memory));
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq((uintptr_t)memory % 64, 0);
    return memory;
}

static inline trl_pool_stats stats_of(int space)
{
    trl_pool_stats stats;
    trl_field_manager_get_stats(manager, space, &stats);
    return stats;
}

#endif

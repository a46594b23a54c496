/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory of blocks: producers, consumers, and copies in several spaces. Of a block's copies the one at home is the
 * block itself; the others have consumers, or they would not be there. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "field_manager_impl.h"
#include "spatialops_impl.h"

trl_err trli_block_fail(const trl_block *b, trl_err code, const char *format, ...)
{
    char text[512], of[32] = "of the rank";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (b->patch != TRL_WHOLE_RANK) snprintf(of, sizeof of, "on patch %d", b->patch);
    return trl_fail(b->manager->ctx, code, NULL, "the block '%s' %s %s", b->tag, of, text);
}

static bool is_kept(const trl_block *b)
{
    return b->locked || b->flags & (TRL_BLOCK_STATIC | TRL_BLOCK_PERSISTENT);
}

static const char *space_name(const trl_block *b, int space)
{
    return b->manager->pool[space].ops->name;
}

static size_t bytes_of(const trl_block *b, int64_t count)
{
    return (size_t)count * trl_scalar_size(b->type);
}

static trl_err check_space(const trl_block *b, int space)
{
    if (space >= 0 && space < b->manager->nspaces) return TRL_OK;
    return trli_block_fail(b, TRL_ERR_USAGE, "is asked for in space %d; there are %d", space, b->manager->nspaces);
}

/* ---- all below: the block's lock is held ---- */

static void drop(trl_block *b, int space)
{
    trli_copy *copy = &b->copy[space];
    if (copy->extent) trli_pool_give(&b->manager->pool[space], copy->extent);
    *copy = (trli_copy){0};
}

static trl_err out_of_memory(const trl_block *b, int space)
{
    trl_context *ctx = b->manager->ctx;
    trl_pool_stats stats;
    trl_memory_stats all;
    char rank[160] = "";
    size_t bytes = bytes_of(b, b->capacity);
    trl_field_manager_get_stats(b->manager, space, &stats);
    trl_memory_get_stats(ctx, &all);
    if (space == 0)
        snprintf(rank, sizeof rank, ", everything on the rank %zu of the %zu bytes allowed", all.bytes,
                 atomic_load_explicit(&ctx->memory.limit, memory_order_relaxed));
    return trli_block_fail(b, TRL_ERR_MEMORY,
                           "needs %zu bytes (%.3g GB), more than memory '%s' of rank %d has left: blocks use %zu "
                           "bytes and lose %zu to size classes, %zu are cached%s; use a smaller grid or more nodes",
                           bytes, (double)bytes * 1e-9, stats.name, ctx->rank, stats.in_use, stats.lost, stats.cached,
                           rank);
}

/* Memory in a space, its values undefined, for the block's home or a passing copy. */
static trl_err provide(trl_block *b, int space, bool home)
{
    trli_copy *copy = &b->copy[space];
    bool exact = home && b->flags & (TRL_BLOCK_STATIC | TRL_BLOCK_PERSISTENT);
    if (copy->extent) return TRL_OK;
    trl_err err = trli_pool_take(&b->manager->pool[space], bytes_of(b, b->capacity), exact, &copy->extent);
    return err == TRL_ERR_MEMORY ? out_of_memory(b, space) : err;
}

static void poison(trl_block *b, int space)
{
#ifdef TRL_POISON /* builds for testing: released values, and those not written yet, show as NaN */
    if (space == 0 && b->copy[0].extent) trli_poison(b->copy[0].extent->memory, bytes_of(b, b->capacity), b->type);
#else
    (void)b, (void)space;
#endif
}

static trl_err transfer(trl_block *b, int from, int to)
{
    const trli_pool *source = &b->manager->pool[from], *target = &b->manager->pool[to];
    const void *memory = b->copy[from].extent->memory;
    size_t bytes = bytes_of(b, b->count);
    if (to == 0) return source->ops->copy_out(source->data, b->copy[to].extent->memory, memory, bytes);
    return target->ops->copy_in(target->data, b->copy[to].extent->memory, memory, bytes);
}

/* Values in a space where they are not: by way of the host, unless it is one of the two. */
static trl_err bring(trl_block *b, int from, int to, bool home)
{
    bool staged = from != 0 && to != 0;
    trl_err err = TRL_OK;
    TRL_TRY(provide(b, to, home));
    if (staged) {
        TRL_TRY(provide(b, 0, false));
        TRL_TRY(transfer(b, from, 0));
    }
    TRL_TRY(transfer(b, staged ? 0 : from, to));
    b->copy[to].valid = true;
done:
    if (staged) drop(b, 0);
    if (err != TRL_OK) drop(b, to);
    return err;
}

/* A space with valid values, the host's first; -1: none. */
static int valid_space(const trl_block *b)
{
    for (int s = 0; s < b->manager->nspaces; ++s)
        if (b->copy[s].valid) return s;
    return -1;
}

static trl_err fail_empty(const trl_block *b)
{
    return trli_block_fail(b, TRL_ERR_USAGE, "holds no values: nobody acquired it, or its last consumer released it");
}

/* USAGE if the copy in a space still has consumers. */
static trl_err check_unread(const trl_block *b, int space)
{
    if (b->copy[space].consumers == 0) return TRL_OK;
    return trli_block_fail(b, TRL_ERR_USAGE,
                           "is to be written while its values in memory '%s' still have %" PRId64 " consumer%s",
                           space_name(b, space), b->copy[space].consumers, b->copy[space].consumers == 1 ? "" : "s");
}

static trl_err acquire(trl_block *b, int space, int64_t consumers, void **memory)
{
    trl_err err = TRL_OK;
    int spaces = b->manager->nspaces;
    if (consumers < 0 || (consumers == 0 && !is_kept(b)))
        TRL_TRY(trli_block_fail(b, TRL_ERR_USAGE, "is acquired for %" PRId64 " consumers: nobody would release it",
                                consumers));
    if (b->flags & TRL_BLOCK_STATIC && b->copy[b->home].valid)
        TRL_TRY(trli_block_fail(b, TRL_ERR_USAGE, "is static and was written already"));
    for (int s = 0; s < spaces; ++s) TRL_TRY(check_unread(b, s));
    TRL_TRY(provide(b, space, true));
    for (int s = 0; s < spaces; ++s)
        if (s != space) drop(b, s);
    poison(b, space);
    b->home = space;
    b->copy[space].valid = true;
    b->copy[space].consumers = b->flags & TRL_BLOCK_STATIC ? 0 : consumers;
    *memory = b->copy[space].extent->memory;
done:
    return err;
}

static trl_err copy_to(trl_block *b, int space, int64_t consumers, void **memory)
{
    trl_err err = TRL_OK;
    int from = valid_space(b);
    bool uncounted = b->flags & TRL_BLOCK_STATIC && space == b->home;
    if (consumers < 1)
        TRL_TRY(trli_block_fail(b, TRL_ERR_USAGE, "is copied for %" PRId64 " consumers: nobody would release it",
                                consumers));
    if (from < 0) TRL_TRY(fail_empty(b));
    if (!b->copy[space].valid) TRL_TRY(bring(b, from, space, false));
    if (!uncounted) b->copy[space].consumers += consumers;
    *memory = b->copy[space].extent->memory;
done:
    return err;
}

static trl_err update(trl_block *b, int space, void **memory)
{
    trl_err err = TRL_OK;
    int home = b->home;
    if (b->flags & TRL_BLOCK_STATIC) TRL_TRY(trli_block_fail(b, TRL_ERR_USAGE, "is static: it cannot change"));
    for (int s = 0; s < b->manager->nspaces; ++s)
        if (s != home) TRL_TRY(check_unread(b, s));
    if (!b->copy[home].valid) TRL_TRY(fail_empty(b));
    if (space != home) {
        TRL_TRY(bring(b, home, space, true));
        b->copy[space].consumers = b->copy[home].consumers;
        drop(b, home);
        b->home = space;
    }
    *memory = b->copy[space].extent->memory;
done:
    return err;
}

/* Give back the memory of a copy without consumers, unless the block is kept. */
static void settle(trl_block *b, int space)
{
    if (b->copy[space].consumers > 0 || (space == b->home && is_kept(b))) return;
    poison(b, space);
    drop(b, space);
}

static trl_err release(trl_block *b, int space)
{
    trli_copy *copy = &b->copy[space];
    if (b->flags & TRL_BLOCK_STATIC && space == b->home && copy->valid) return TRL_OK;
    if (copy->consumers == 0)
        return trli_block_fail(b, TRL_ERR_USAGE, "is released once too often in memory '%s'", space_name(b, space));
    --copy->consumers;
    settle(b, space);
    return TRL_OK;
}

/* ---- what others call ---- */

trl_err trl_block_acquire(trl_block *b, int space, int64_t consumers, void **memory)
{
    trl_err err = TRL_OK;
    *memory = NULL;
    TRL_TRY(check_space(b, space));
    pthread_mutex_lock(&b->lock);
    err = acquire(b, space, consumers, memory);
    pthread_mutex_unlock(&b->lock);
done:
    return err;
}

/* Give blocks that are all small, exact and without memory a bundle. Else, or if there is no memory for one, each gets
 * its own when it is acquired. */
static void share_bundle(int n, trl_block *const *block)
{
    trli_bundle *bundle;
    size_t *bytes = n > 1 ? trli_new(block[0]->manager->ctx, (size_t)n, sizeof *bytes) : NULL;
    bool small = bytes != NULL;
    for (int i = 0; i < n && small; ++i) {
        bytes[i] = bytes_of(block[i], block[i]->capacity);
        small = bytes[i] < TRLI_BUNDLED_BELOW && block[i]->flags & (TRL_BLOCK_STATIC | TRL_BLOCK_PERSISTENT) &&
                !block[i]->copy[0].extent;
    }
    if (small && trli_pool_take_bundle(&block[0]->manager->pool[0], n, bytes, &bundle) == TRL_OK)
        for (int i = 0; i < n; ++i) block[i]->copy[0].extent = &bundle->extent[i];
    trli_free(bytes);
}

trl_err trl_blocks_acquire(int n, trl_block *const *block, void **memory)
{
    trl_err err = TRL_OK;
    share_bundle(n, block);
    for (int i = 0; i < n; ++i) TRL_TRY(trl_block_acquire(block[i], 0, 0, &memory[i]));
done:
    return err;
}

trl_err trl_block_reserve(trl_block *b, int space, void **memory)
{
    trl_err err = TRL_OK;
    *memory = NULL;
    TRL_TRY(check_space(b, space));
    pthread_mutex_lock(&b->lock);
    err = provide(b, space, true);
    if (err == TRL_OK) *memory = b->copy[space].extent->memory;
    pthread_mutex_unlock(&b->lock);
done:
    return err;
}

trl_err trl_block_read(trl_block *b, int space, void **memory)
{
    trl_err err = TRL_OK;
    *memory = NULL;
    TRL_TRY(check_space(b, space));
    pthread_mutex_lock(&b->lock);
    if (b->copy[space].valid) *memory = b->copy[space].extent->memory;
    int elsewhere = valid_space(b);
    pthread_mutex_unlock(&b->lock);
    if (*memory) return TRL_OK;
    if (elsewhere < 0) return fail_empty(b);
    return trli_block_fail(b, TRL_ERR_USAGE, "is valid in memory '%s', not in '%s': ask for a copy",
                           space_name(b, elsewhere), space_name(b, space));
done:
    return err;
}

trl_err trl_block_copy(trl_block *b, int space, int64_t consumers, void **memory)
{
    trl_err err = TRL_OK;
    *memory = NULL;
    TRL_TRY(check_space(b, space));
    pthread_mutex_lock(&b->lock);
    err = copy_to(b, space, consumers, memory);
    pthread_mutex_unlock(&b->lock);
done:
    return err;
}

trl_err trl_block_update(trl_block *b, int space, void **memory)
{
    trl_err err = TRL_OK;
    *memory = NULL;
    TRL_TRY(check_space(b, space));
    pthread_mutex_lock(&b->lock);
    err = update(b, space, memory);
    pthread_mutex_unlock(&b->lock);
done:
    return err;
}

trl_err trl_block_release(trl_block *b, int space)
{
    trl_err err = TRL_OK;
    TRL_TRY(check_space(b, space));
    pthread_mutex_lock(&b->lock);
    err = release(b, space);
    pthread_mutex_unlock(&b->lock);
done:
    return err;
}

void trl_block_lock(trl_block *b)
{
    pthread_mutex_lock(&b->lock);
    b->locked = true;
    pthread_mutex_unlock(&b->lock);
}

void trl_block_unlock(trl_block *b)
{
    pthread_mutex_lock(&b->lock);
    b->locked = false;
    settle(b, b->home);
    pthread_mutex_unlock(&b->lock);
}

void trl_block_vacate(trl_block *b)
{
    pthread_mutex_lock(&b->lock);
    for (int s = 0; s < b->manager->nspaces; ++s) {
        poison(b, s);
        drop(b, s);
    }
    b->home = 0;
    pthread_mutex_unlock(&b->lock);
}

void trli_block_leave(trl_block *b, int space)
{
    pthread_mutex_lock(&b->lock);
    drop(b, space);
    pthread_mutex_unlock(&b->lock);
}

unsigned trl_block_valid(trl_block *b)
{
    unsigned spaces = 0;
    pthread_mutex_lock(&b->lock);
    for (int s = 0; s < b->manager->nspaces; ++s) spaces |= (unsigned)b->copy[s].valid << s;
    pthread_mutex_unlock(&b->lock);
    return spaces;
}

const char *trl_block_tag(const trl_block *b)
{
    return b->tag;
}

int64_t trl_block_count(trl_block *b)
{
    pthread_mutex_lock(&b->lock);
    int64_t count = b->count;
    pthread_mutex_unlock(&b->lock);
    return count;
}

trl_err trl_block_resize(trl_block *b, int64_t count)
{
    if (count < 0 || count > b->capacity)
        return trli_block_fail(b, TRL_ERR_USAGE, "cannot hold %" PRId64 " values: its capacity is %" PRId64, count,
                               b->capacity);
    pthread_mutex_lock(&b->lock);
    b->count = count;
    pthread_mutex_unlock(&b->lock);
    return TRL_OK;
}

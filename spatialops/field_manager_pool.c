/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Pools of memory: a list of free extents for each size class. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "field_manager_impl.h"

enum { SMALL_STEP = 64, SMALL_LOG2 = 9 };
_Static_assert(SMALL_STEP *TRLI_CLASSES_SMALL == 1 << SMALL_LOG2, "small classes end where doublings begin");

trl_err trli_pool_init(trli_pool *pool, trl_context *ctx, const trl_space_ops *ops, void *data)
{
    *pool = (trli_pool){.ctx = ctx, .ops = ops, .data = data};
    pool->class = trli_memory_try(ctx, TRLI_CLASSES * sizeof *pool->class);
    if (!pool->class) return TRL_ERR_MEMORY;
    for (int c = 0; c < TRLI_CLASSES; ++c) {
        pthread_mutex_init(&pool->class[c].lock, NULL);
        pool->class[c].free = NULL;
    }
    return TRL_OK;
}

void trli_pool_destroy(trli_pool *pool)
{
    if (!pool->class) return;
    trli_pool_trim(pool);
    for (int c = 0; c < TRLI_CLASSES; ++c) pthread_mutex_destroy(&pool->class[c].lock);
    void *class = pool->class;
    trl_memory_free(pool->ctx, &class);
    pool->class = NULL;
}

int trli_pool_class(size_t bytes, size_t *class_bytes)
{
    if (bytes <= (size_t)1 << SMALL_LOG2) {
        size_t steps = bytes ? (bytes + SMALL_STEP - 1) / SMALL_STEP : 1;
        *class_bytes = steps * SMALL_STEP;
        return (int)steps - 1;
    }
    int log2 = SMALL_LOG2; /* of the power of two below */
    while (log2 < TRLI_CLASSES_LOG2_MAX && (bytes - 1) >> (log2 + 1)) ++log2;
    if (log2 == TRLI_CLASSES_LOG2_MAX) return -1;
    size_t below = (size_t)1 << log2, step = below / TRLI_CLASSES_PER_DOUBLING;
    size_t steps = (bytes - below + step - 1) / step; /* 1 to TRLI_CLASSES_PER_DOUBLING */
    *class_bytes = below + steps * step;
    return TRLI_CLASSES_SMALL + (log2 - SMALL_LOG2) * TRLI_CLASSES_PER_DOUBLING + (int)steps - 1;
}

static trli_extent *pop(trli_pool *pool, int class)
{
    trli_class *c = &pool->class[class];
    pthread_mutex_lock(&c->lock);
    trli_extent *extent = c->free;
    if (extent) c->free = extent->next;
    pthread_mutex_unlock(&c->lock);
    return extent;
}

static trl_err try_to_allocate(trli_pool *pool, size_t bytes, int class, trli_extent **result)
{
    trli_extent *extent = trli_new(pool->ctx, 1, sizeof *extent);
    *result = NULL;
    if (!extent) return TRL_ERR_MEMORY;
    *extent = (trli_extent){.bytes = bytes, .class = class};
    trl_err err = pool->ops->allocate(pool->data, bytes, &extent->memory);
    if (err != TRL_OK) {
        trli_free(extent);
        return err;
    }
    atomic_fetch_add_explicit(&pool->allocations, 1, memory_order_relaxed);
    *result = extent;
    return TRL_OK;
}

static trl_err allocate(trli_pool *pool, size_t bytes, int class, trli_extent **result)
{
    trl_err err = try_to_allocate(pool, bytes, class, result);
    if (err != TRL_ERR_MEMORY) return err;
    trli_pool_trim(pool); /* other classes may cache what is wanted here */
    return try_to_allocate(pool, bytes, class, result);
}

trl_err trli_pool_take(trli_pool *pool, size_t bytes, bool exact, trli_extent **result)
{
    size_t class_bytes = bytes;
    int class = exact ? -1 : trli_pool_class(bytes, &class_bytes);
    trl_err err = TRL_OK;
    *result = NULL;
    if (!exact && class < 0) return TRL_ERR_MEMORY;
    trli_extent *extent = exact ? NULL : pop(pool, class);
    if (extent) {
        atomic_fetch_sub_explicit(&pool->cached, extent->bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&pool->reuses, 1, memory_order_relaxed);
    } else
        TRL_TRY(allocate(pool, class_bytes, class, &extent));
    extent->next = NULL;
    extent->wanted = bytes;
    atomic_fetch_add_explicit(&pool->in_use, bytes, memory_order_relaxed);
    trli_memory_raise(&pool->peak,
                      atomic_fetch_add_explicit(&pool->held, extent->bytes, memory_order_relaxed) + extent->bytes);
    *result = extent;
done:
    return err;
}

static size_t place_of(size_t bytes)
{
    enum { LINE = 64 };
#ifdef __SANITIZE_ADDRESS__
    bytes += LINE; /* that nobody may touch */
#endif
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Under the address sanitizer, what is between extents is out of bounds. */
static void fence(const trli_extent *extent, size_t place)
{
#ifdef __SANITIZE_ADDRESS__
    ASAN_POISON_MEMORY_REGION((char *)extent->memory + extent->bytes, place - extent->bytes);
#else
    (void)extent, (void)place;
#endif
}

/* Deal the memory of a bundle out. */
static void cut_bundle(trli_pool *pool, trli_bundle *bundle, int n, const size_t *bytes)
{
    size_t at = 0, all = 0;
    for (int i = 0; i < n; ++i) {
        bundle->extent[i] = (trli_extent){.bundle = bundle,
                                          .memory = (char *)bundle->memory + at,
                                          .bytes = bytes[i],
                                          .wanted = bytes[i],
                                          .class = -1};
        fence(&bundle->extent[i], place_of(bytes[i]));
        at += place_of(bytes[i]);
        all += bytes[i];
    }
    atomic_store_explicit(&bundle->left, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->in_use, all, memory_order_relaxed);
    trli_memory_raise(&pool->peak, atomic_fetch_add_explicit(&pool->held, all, memory_order_relaxed) + all);
}

trl_err trli_pool_take_bundle(trli_pool *pool, int n, const size_t *bytes, trli_bundle **result)
{
    trl_err err = TRL_OK;
    size_t all = 0;
    trli_bundle *bundle = trli_new(pool->ctx, 1, sizeof *bundle + (size_t)n * sizeof *bundle->extent);
    *result = NULL;
    if (!bundle) return TRL_ERR_MEMORY;
    for (int i = 0; i < n; ++i) all += place_of(bytes[i]);
    TRL_TRY(pool->ops->allocate(pool->data, all, &bundle->memory));
    cut_bundle(pool, bundle, n, bytes);
    *result = bundle;
    bundle = NULL;
done:
    trli_free(bundle);
    return err;
}

/* The last extent gives the bundle's memory back. Acquire and release: others' uses of their extents come before. */
static void leave_bundle(trli_pool *pool, trli_bundle *bundle)
{
    if (atomic_fetch_sub_explicit(&bundle->left, 1, memory_order_acq_rel) > 1) return;
    pool->ops->free(pool->data, bundle->memory);
    trli_free(bundle);
}

static void discard(trli_pool *pool, trli_extent *extent)
{
    if (extent->bundle) {
        leave_bundle(pool, extent->bundle);
        return;
    }
    pool->ops->free(pool->data, extent->memory);
    trli_free(extent);
}

void trli_pool_give(trli_pool *pool, trli_extent *extent)
{
    atomic_fetch_sub_explicit(&pool->in_use, extent->wanted, memory_order_relaxed);
    atomic_fetch_sub_explicit(&pool->held, extent->bytes, memory_order_relaxed);
    if (extent->class < 0) {
        discard(pool, extent);
        return;
    }
    trli_class *c = &pool->class[extent->class];
    atomic_fetch_add_explicit(&pool->cached, extent->bytes, memory_order_relaxed);
    pthread_mutex_lock(&c->lock);
    extent->next = c->free;
    c->free = extent;
    pthread_mutex_unlock(&c->lock);
}

void trli_pool_trim(trli_pool *pool)
{
    for (int c = 0; c < TRLI_CLASSES; ++c) {
        trli_extent *extent;
        while ((extent = pop(pool, c))) {
            atomic_fetch_sub_explicit(&pool->cached, extent->bytes, memory_order_relaxed);
            discard(pool, extent);
        }
    }
}

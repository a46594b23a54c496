/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "context_impl.h"

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector register */

/* Blocks from this size on start at a huge page and ask for huge pages: fewer misses of the address cache in sweeps. */
static const size_t huge_block = (size_t)4 << 20, huge_page = (size_t)2 << 20;

/* Sits in the 64 bytes before the memory that the caller sees. */
typedef struct block_header {
    size_t bytes;
} block_header;

_Static_assert(sizeof(block_header) <= ALIGNMENT, "the header fits in the alignment gap");

/* Relaxed throughout: see trli_memory. */
static void account(trli_memory *memory, size_t bytes)
{
    size_t now = atomic_fetch_add_explicit(&memory->bytes, bytes, memory_order_relaxed) + bytes;
    size_t peak = atomic_load_explicit(&memory->peak_bytes, memory_order_relaxed);
    while (now > peak) {
        if (atomic_compare_exchange_weak_explicit(&memory->peak_bytes, &peak, now, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            break;
        }
    }
    atomic_fetch_add_explicit(&memory->allocations, 1, memory_order_relaxed);
}

static char *allocate(size_t bytes)
{
    size_t alignment = bytes >= huge_block ? huge_page : ALIGNMENT;
    size_t whole = (bytes + ALIGNMENT + alignment - 1) / alignment * alignment;
    char *block = aligned_alloc(alignment, whole);
    if (block && bytes >= huge_block) (void)madvise(block, whole, MADV_HUGEPAGE); /* a wish: refusal costs only speed */
    return block;
}

trl_err trl_memory_alloc(trl_context *ctx, size_t bytes, const char *what, void **result)
{
    size_t used = atomic_load_explicit(&ctx->memory.bytes, memory_order_relaxed);
    size_t limit = ctx->memory.limit;
    char *block = NULL;
    *result = NULL;
    if (used <= limit && bytes <= limit - used) block = allocate(bytes);
    if (block == NULL) {
        return trl_fail(
            ctx, TRL_ERR_MEMORY, NULL,
            "cannot allocate %zu bytes (%.3g GB) for '%s' on rank %d: %zu bytes are in use and the node has "
            "%.3g GB; use a smaller grid or more nodes",
            bytes, (double)bytes * 1e-9, what, ctx->rank, used, (double)ctx->topology.memory_bytes * 1e-9);
    }
    ((block_header *)block)->bytes = bytes;
    account(&ctx->memory, bytes);
    *result = block + ALIGNMENT;
    return TRL_OK;
}

void trl_memory_free(trl_context *ctx, void **memory)
{
    if (*memory == NULL) return;
    block_header *block = (block_header *)((char *)*memory - ALIGNMENT);
    atomic_fetch_sub_explicit(&ctx->memory.bytes, block->bytes, memory_order_relaxed);
    free(block);
    *memory = NULL;
}

void trl_memory_get_stats(const trl_context *ctx, trl_memory_stats *stats)
{
    stats->bytes = atomic_load_explicit(&ctx->memory.bytes, memory_order_relaxed);
    stats->peak_bytes = atomic_load_explicit(&ctx->memory.peak_bytes, memory_order_relaxed);
    stats->allocations = atomic_load_explicit(&ctx->memory.allocations, memory_order_relaxed);
}

trl_err trli_array_grow(trl_context *ctx, trli_array *array, int64_t more, size_t size, const char *what)
{
    trl_err err = TRL_OK;
    int64_t needed = array->count + more;
    int64_t capacity = array->capacity < 16 ? 16 : array->capacity * 2;
    void *larger;
    if (capacity < needed) capacity = needed;
    TRL_TRY(trl_memory_alloc(ctx, (size_t)capacity * size, what, &larger));
    if (array->count > 0) memcpy(larger, array->data, (size_t)array->count * size);
    trl_memory_free(ctx, &array->data);
    array->data = larger;
    array->capacity = capacity;
done:
    return err;
}

void trli_array_free(trl_context *ctx, trli_array *array)
{
    trl_memory_free(ctx, &array->data);
    array->count = array->capacity = 0;
}

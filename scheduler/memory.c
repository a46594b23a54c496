/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "context_impl.h"

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector register */

/* Blocks of at least this size start at a huge page and ask for huge pages: sweeps then miss the address cache less
 * often. */
static const size_t huge_block = (size_t)2 << 20, huge_page = (size_t)2 << 20;
/* Blocks of at least this size begin at different places of their pages; this costs at most a thirty-second more
 * memory. */
static const size_t staggered_block = (size_t)128 << 10;

/* Sits in the 64 bytes before the memory that the caller sees. */
typedef struct block_header {
    size_t bytes;
    char *start; /* start of the block that the system gave */
} block_header;

_Static_assert(sizeof(block_header) <= ALIGNMENT, "the header fits in the alignment gap");

static size_t machine_bytes(void)
{
    const uint64_t bytes = trli_node_memory();
    return bytes < SIZE_MAX / 2 ? (size_t)bytes : SIZE_MAX / 2;
}

void trli_memory_follow_machine(trl_context *ctx)
{
    const size_t bytes = machine_bytes();
    atomic_store_explicit(&ctx->memory.granted, bytes, memory_order_relaxed);
    atomic_store_explicit(&ctx->memory.limit, bytes, memory_order_relaxed);
}

/* Whether the machine has got more memory than the limit that followed from it. */
static bool raise_limit(trli_memory *memory)
{
    size_t limit = atomic_load_explicit(&memory->granted, memory_order_relaxed);
    const size_t now = machine_bytes();
    if (now <= limit || !atomic_compare_exchange_strong_explicit(&memory->limit, &limit, now, memory_order_relaxed,
                                                                 memory_order_relaxed))
        return false;
    atomic_store_explicit(&memory->granted, now, memory_order_relaxed);
    return true;
}

/* Whether so many bytes more fit under the limit. */
static bool fits(trli_memory *memory, size_t used, size_t bytes)
{
    const size_t limit = atomic_load_explicit(&memory->limit, memory_order_relaxed);
    if (used <= limit && bytes <= limit - used) return true;
    return raise_limit(memory) && fits(memory, used, bytes);
}

/* Count bytes if they fit under the limit. Relaxed throughout: see trli_memory. */
static bool account(trli_memory *memory, size_t bytes)
{
    size_t used = atomic_load_explicit(&memory->bytes, memory_order_relaxed);
    do {
        if (!fits(memory, used, bytes)) return false;
    } while (!atomic_compare_exchange_weak_explicit(&memory->bytes, &used, used + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    trli_memory_raise(&memory->peak_bytes, used + bytes);
    return true;
}

/* Bytes between the start of a block and its header. Arrays that began at equal places of their pages would collide
 * there in every sweep: processors compare the low 12 bits of a load with those of the stores before it, and wait
 * where these are equal; where huge pages make more bits equal, the arrays collide in the second-level cache too. A
 * distance below 256 bytes is as bad. So successive blocks begin at different places: of eight in a row no two are
 * closer than 384 bytes. The number of places is prime: the fields of a patch, every np-th block of np patches,
 * never all begin at one place, unless np is a multiple of it. */
size_t trli_memory_stagger(size_t bytes, int64_t number)
{
    enum { PLACES = 61, STEP = 17 };
    return bytes >= staggered_block ? (size_t)(number * STEP % PLACES) * ALIGNMENT : 0;
}

static char *allocate(size_t bytes, size_t gap)
{
    size_t alignment = bytes >= huge_block ? huge_page : ALIGNMENT;
    size_t needed = bytes + gap + ALIGNMENT, whole = (needed + alignment - 1) / alignment * alignment;
    char *block = aligned_alloc(alignment, whole);
    if (block && bytes >= huge_block) {
        /* A last page that would stay mostly empty is left to small pages. A refusal of huge pages costs only speed. */
        size_t huge = whole - needed <= bytes / 8 ? whole : needed / huge_page * huge_page;
        (void)madvise(block, huge, MADV_HUGEPAGE);
    }
    return block;
}

void trli_memory_raise(_Atomic size_t *peak, size_t now)
{
    size_t most = atomic_load_explicit(peak, memory_order_relaxed);
    while (now > most) {
        if (atomic_compare_exchange_weak_explicit(peak, &most, now, memory_order_relaxed, memory_order_relaxed)) break;
    }
}

void trli_memory_set_peak(trl_context *ctx, size_t bytes)
{
    atomic_store_explicit(&ctx->memory.peak_bytes, bytes, memory_order_relaxed);
}

bool trli_memory_fits(trl_context *ctx, size_t bytes)
{
    return fits(&ctx->memory, atomic_load_explicit(&ctx->memory.bytes, memory_order_relaxed), bytes);
}

bool trli_memory_count(trl_context *ctx, size_t bytes)
{
    if (!account(&ctx->memory, bytes)) return false;
    atomic_fetch_add_explicit(&ctx->memory.arrays, 1, memory_order_relaxed);
    return true;
}

void trli_memory_discount(trl_context *ctx, size_t bytes)
{
    atomic_fetch_sub_explicit(&ctx->memory.bytes, bytes, memory_order_relaxed);
}

void *trli_memory_try(trl_context *ctx, size_t bytes)
{
    if (!account(&ctx->memory, bytes)) return NULL;
    const size_t gap =
        trli_memory_stagger(bytes, atomic_fetch_add_explicit(&ctx->memory.arrays, 1, memory_order_relaxed));
    char *block = allocate(bytes, gap);
    if (block == NULL) {
        atomic_fetch_sub_explicit(&ctx->memory.bytes, bytes, memory_order_relaxed);
        atomic_fetch_sub_explicit(&ctx->memory.arrays, 1, memory_order_relaxed);
        return NULL;
    }
    *(block_header *)(block + gap) = (block_header){bytes, block};
    return block + gap + ALIGNMENT;
}

trl_err trl_memory_alloc(trl_context *ctx, size_t bytes, const char *what, void **result)
{
    *result = trli_memory_try(ctx, bytes);
    if (*result) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_MEMORY, NULL,
                    "cannot allocate %zu bytes (%.3g GB) for '%s' on rank %d: %zu bytes are in use and %.3g GB "
                    "allowed; use a smaller grid or more nodes",
                    bytes, (double)bytes * 1e-9, what, ctx->rank,
                    atomic_load_explicit(&ctx->memory.bytes, memory_order_relaxed),
                    (double)atomic_load_explicit(&ctx->memory.limit, memory_order_relaxed) * 1e-9);
}

void trl_memory_free(trl_context *ctx, void **memory)
{
    if (*memory == NULL) return;
    block_header *block = (block_header *)((char *)*memory - ALIGNMENT);
    trli_memory_discount(ctx, block->bytes);
    free(block->start);
    *memory = NULL;
}

void trl_memory_get_stats(const trl_context *ctx, trl_memory_stats *stats)
{
    stats->bytes = atomic_load_explicit(&ctx->memory.bytes, memory_order_relaxed);
    stats->peak_bytes = atomic_load_explicit(&ctx->memory.peak_bytes, memory_order_relaxed);
    stats->metadata_bytes = atomic_load_explicit(&ctx->memory.metadata_bytes, memory_order_relaxed);
    stats->metadata_peak_bytes = atomic_load_explicit(&ctx->memory.metadata_peak_bytes, memory_order_relaxed);
    stats->metadata_allocations = atomic_load_explicit(&ctx->memory.metadata, memory_order_relaxed);
    stats->allocations = atomic_load_explicit(&ctx->memory.arrays, memory_order_relaxed) + stats->metadata_allocations;
}

/* Precedes metadata. */
typedef union metadata_header {
    struct {
        trli_memory *of;
        size_t bytes; /* including the header */
    };
    max_align_t align;
} metadata_header;

static bool account_metadata(trli_memory *memory, size_t bytes)
{
    if (!account(memory, bytes)) return false;
    size_t used = atomic_fetch_add_explicit(&memory->metadata_bytes, bytes, memory_order_relaxed) + bytes;
    trli_memory_raise(&memory->metadata_peak_bytes, used);
    return true;
}

static void release_metadata(trli_memory *memory, size_t bytes)
{
    atomic_fetch_sub_explicit(&memory->bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&memory->metadata_bytes, bytes, memory_order_relaxed);
}

/* Bytes of a block of metadata with its header; false: the number overflows. */
static bool metadata_size(size_t count, size_t size, size_t *bytes)
{
    return !__builtin_mul_overflow(count, size, bytes) &&
           !__builtin_add_overflow(*bytes, sizeof(metadata_header), bytes);
}

void *trli_new(trl_context *ctx, size_t count, size_t size)
{
    size_t bytes;
    if (!metadata_size(count, size, &bytes) || !account_metadata(&ctx->memory, bytes)) return NULL;
    metadata_header *header = calloc(1, bytes);
    if (!header) {
        release_metadata(&ctx->memory, bytes);
        return NULL;
    }
    header->of = &ctx->memory;
    header->bytes = bytes;
    atomic_fetch_add_explicit(&ctx->memory.metadata, 1, memory_order_relaxed);
    return header + 1;
}

void *trli_resize(trl_context *ctx, void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (!memory) return trli_new(ctx, count, size);
    metadata_header *old = (metadata_header *)memory - 1;
    const size_t before = old->bytes;
    if (!metadata_size(count, size, &bytes) || !account_metadata(&ctx->memory, bytes)) return NULL;
    metadata_header *header = realloc(old, bytes);
    release_metadata(&ctx->memory, header ? before : bytes);
    if (!header) return NULL;
    header->bytes = bytes;
    atomic_fetch_add_explicit(&ctx->memory.metadata, 1, memory_order_relaxed);
    return header + 1;
}

char *trli_copy_text(trl_context *ctx, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = trli_new(ctx, bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void trli_free(void *memory)
{
    if (!memory) return;
    metadata_header *header = (metadata_header *)memory - 1;
    release_metadata(header->of, header->bytes);
    free(header);
}

bool trli_grow(trl_context *ctx, void *list, int64_t count, int64_t more, int32_t *capacity, size_t size)
{
    void *old;
    int64_t wanted = *capacity < 8 ? 16 : 2 * (int64_t)*capacity;
    if (wanted > INT32_MAX) wanted = INT32_MAX;
    if (wanted < count + more) wanted = count + more;
    memcpy(&old, list, sizeof old); /* a pointer of any type */
    void *longer = wanted > INT32_MAX ? NULL : trli_resize(ctx, old, (size_t)wanted, size);
    if (!longer) return false;
    memcpy(list, &longer, sizeof longer);
    *capacity = (int32_t)wanted;
    return true;
}

trl_err trli_no_memory(trl_context *ctx, const trl_place *place, const char *what, ...)
{
    char text[256];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    return trl_fail(
        ctx, TRL_ERR_MEMORY, place,
        "no memory %s on rank %d: %zu bytes are in use and %zu allowed; allow more, or use a smaller grid or "
        "more nodes",
        text, ctx->rank, atomic_load_explicit(&ctx->memory.bytes, memory_order_relaxed),
        atomic_load_explicit(&ctx->memory.limit, memory_order_relaxed));
}

void trli_list_free(trli_list *list)
{
    trli_free(list->data);
    *list = (trli_list){0};
}

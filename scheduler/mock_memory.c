/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdint.h>
#include <string.h>

#include "memory_impl.h"
#include "mock_impl.h"

enum { GUARD = 64 /* bytes before and behind each allocation, so that it is aligned as the host's memory is */ };

static const unsigned char guard_byte = 0xd5;
/* A signalling NaN, and two of them if read as floats. */
static const uint64_t poison = 0x7ff40bad7fa00bad;

typedef struct trli_mock_block {
    char *at;
    size_t bytes;
} block;

/* The first block that ends behind an address. */
static int64_t find(const trli_mock_memory *memory, const char *address)
{
    int64_t low = 0, high = memory->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if ((uintptr_t)memory->block[middle].at + memory->block[middle].bytes > (uintptr_t)address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Count bytes if they fit. */
static bool account(trli_mock *mock, size_t bytes)
{
    trl_device *device = &mock->device;
    const size_t limit = device->info.bytes ? device->info.bytes : SIZE_MAX;
    size_t used = atomic_load_explicit(&device->used, memory_order_relaxed);
    do {
        if (bytes > limit - used) return false;
    } while (!atomic_compare_exchange_weak_explicit(&device->used, &used, used + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    trli_memory_raise(&device->peak, used + bytes);
    return true;
}

trl_err trli_mock_allocate(trli_mock *mock, size_t bytes, void **result)
{
    trli_mock_memory *memory = &mock->memory;
    char *all = NULL;
    *result = NULL;
    if (bytes == 0) bytes = 1; /* so that the block has an address of its own */
    if (!account(mock, bytes)) return TRL_ERR_MEMORY;
    if (bytes <= SIZE_MAX - 2 * GUARD) all = trli_memory_try(mock->device.ctx, bytes + 2 * GUARD);
    if (!all) goto failed;
    memset(all, guard_byte, GUARD);
    memset(all + GUARD + bytes, guard_byte, GUARD);
    for (size_t i = 0; i < bytes; i += sizeof poison)
        memcpy(all + GUARD + i, &poison, bytes - i < sizeof poison ? bytes - i : sizeof poison);
    pthread_mutex_lock(&memory->lock);
    const bool room =
        trli_make_room(mock->device.ctx, &memory->block, memory->count, 1, &memory->capacity, sizeof(block));
    if (room) {
        const int64_t at = find(memory, all);
        memmove(&memory->block[at + 1], &memory->block[at], (size_t)(memory->count - at) * sizeof(block));
        memory->block[at] = (block){all + GUARD, bytes};
        ++memory->count;
    }
    pthread_mutex_unlock(&memory->lock);
    if (!room) goto failed;
    *result = all + GUARD;
    return TRL_OK;
failed:
    atomic_fetch_sub_explicit(&mock->device.used, bytes, memory_order_relaxed);
    trl_memory_free(mock->device.ctx, &(void *){all});
    return TRL_ERR_MEMORY;
}

static void give_back(trli_mock *mock, const block *b)
{
    bool whole = true;
    for (int i = 0; i < GUARD; ++i)
        whole &=
            (unsigned char)b->at[i - GUARD] == guard_byte && (unsigned char)b->at[b->bytes + (size_t)i] == guard_byte;
    if (!whole) {
        (void)trl_fail(mock->device.ctx, TRL_ERR_DEVICE, NULL,
                       "%s: something was written before or behind an allocation of %zu bytes: look for a kernel that "
                       "leaves its box; the sanitizers of a debug build say where",
                       mock->name, b->bytes);
        atomic_store(&mock->damaged, true);
    }
    atomic_fetch_sub_explicit(&mock->device.used, b->bytes, memory_order_relaxed);
    trl_memory_free(mock->device.ctx, &(void *){b->at - GUARD});
}

void trli_mock_release(trl_device *device, void *address)
{
    trli_mock *mock = (trli_mock *)device;
    trli_mock_memory *memory = &mock->memory;
    block b = {0};
    if (!address) return;
    pthread_mutex_lock(&memory->lock);
    const int64_t at = find(memory, address);
    if (at < memory->count && memory->block[at].at == address) {
        b = memory->block[at];
        --memory->count;
        memmove(&memory->block[at], &memory->block[at + 1], (size_t)(memory->count - at) * sizeof(block));
    }
    pthread_mutex_unlock(&memory->lock);
    if (b.at) {
        give_back(mock, &b);
        return;
    }
    (void)trl_fail(device->ctx, TRL_ERR_DEVICE, NULL, "%s: memory was released that is no allocation of it",
                   mock->name);
    atomic_store(&mock->damaged, true);
}

void trli_mock_release_all(trli_mock *mock)
{
    trli_mock_memory *memory = &mock->memory;
    for (int64_t i = 0; i < memory->count; ++i) give_back(mock, &memory->block[i]);
    trli_free(memory->block);
    *memory = (trli_mock_memory){.lock = memory->lock};
}

/* The mock device of a space, as this device sees it; NULL: there is none. */
static trli_mock *mock_of(trli_mock *mock, int space)
{
    const trl_devices *all = mock->device.all;
    if (space == mock->device.space) return mock;
    trl_device *device = all && space >= 1 && space <= all->n ? trli_device_of(all, space) : NULL;
    return device && device->kind == TRL_KIND_MOCK ? (trli_mock *)device : NULL;
}

/* Whether the bytes from first to last lie in an allocation of the device, or overlap one. */
static bool holds(trli_mock *mock, const char *first, const char *last, bool whole)
{
    trli_mock_memory *memory = &mock->memory;
    bool found = false;
    pthread_mutex_lock(&memory->lock);
    const int64_t at = find(memory, first);
    if (at < memory->count) {
        const uintptr_t begin = (uintptr_t)memory->block[at].at, end = begin + memory->block[at].bytes;
        found = whole ? begin <= (uintptr_t)first && (uintptr_t)last < end : begin <= (uintptr_t)last;
    }
    pthread_mutex_unlock(&memory->lock);
    return found;
}

static trl_err check_end(trli_mock *mock, const char *word, int space, const char *first, const char *last)
{
    trl_context *ctx = mock->device.ctx;
    const trl_devices *all = mock->device.all;
    const size_t bytes = (size_t)(last - first) + 1;
    if (space != 0) {
        trli_mock *owner = mock_of(mock, space);
        if (!owner)
            return trl_fail(ctx, TRL_ERR_DEVICE, NULL, "%s: a copy %s space %d, which is no mock device's", mock->name,
                            word, space);
        if (holds(owner, first, last, true)) return TRL_OK;
        return trl_fail(ctx, TRL_ERR_DEVICE, NULL,
                        "%s: a copy %s space %d, but the %zu bytes at %p are not in an allocation of %s: pass an "
                        "address of that space",
                        mock->name, word, space, bytes, (const void *)first, owner->name);
    }
    for (int i = 1; i <= (all ? all->n : 1); ++i) {
        trli_mock *owner = mock_of(mock, all ? i : mock->device.space);
        if (owner && holds(owner, first, last, false))
            return trl_fail(ctx, TRL_ERR_DEVICE, NULL,
                            "%s: a copy %s the host's space, but some of the %zu bytes at %p are memory of %s: pass an "
                            "address of the host's, or space %d",
                            mock->name, word, bytes, (const void *)first, owner->name, owner->device.space);
    }
    return TRL_OK;
}

static trl_err check_box(trli_mock *mock, const char *word, int space, const char *at, ptrdiff_t row, ptrdiff_t plane,
                         const trli_box_copy *copy)
{
    const ptrdiff_t rows = (ptrdiff_t)(copy->rows - 1) * row, planes = (ptrdiff_t)(copy->planes - 1) * plane;
    const char *first = at + (rows < 0 ? rows : 0) + (planes < 0 ? planes : 0);
    const char *last = at + (rows > 0 ? rows : 0) + (planes > 0 ? planes : 0) + copy->row - 1;
    return check_end(mock, word, space, first, last);
}

trl_err trli_mock_check_copy(trli_mock *mock, const trli_box_copy *copy)
{
    if (copy->row == 0 || copy->rows <= 0 || copy->planes <= 0) return TRL_OK;
    const trl_err err = check_box(mock, "to", copy->to_space, copy->to, copy->to_row, copy->to_plane, copy);
    if (err != TRL_OK) return err;
    return check_box(mock, "from", copy->from_space, copy->from, copy->from_row, copy->from_plane, copy);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "arena_impl.h"

enum { CHUNK_BYTES = 1 << 16, FIRST_ITEMS = 8, FIRST_SLOTS = 16 };

typedef struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    alignas(max_align_t) char bytes[];
} arena_chunk;

struct trli_arena {
    trl_context *ctx;
    arena_chunk *chunk; /* the one being filled, then the full ones */
};

trl_err trli_arena_create(trl_context *ctx, trli_arena **arena)
{
    void *memory;
    trl_err err = trl_memory_alloc(ctx, sizeof(trli_arena), "the deck", &memory);
    if (err != TRL_OK) return err;
    *arena = memory;
    **arena = (trli_arena){.ctx = ctx};
    return TRL_OK;
}

void trli_arena_destroy(trli_arena **arena)
{
    if (!*arena) return;
    trl_context *ctx = (*arena)->ctx;
    arena_chunk *next;
    for (arena_chunk *chunk = (*arena)->chunk; chunk; chunk = next) {
        void *memory = chunk;
        next = chunk->next;
        trl_memory_free(ctx, &memory);
    }
    void *memory = *arena;
    trl_memory_free(ctx, &memory);
    *arena = NULL;
}

static trl_err add_chunk(trli_arena *arena, size_t bytes)
{
    void *memory;
    size_t size = bytes > CHUNK_BYTES / 4 ? bytes : CHUNK_BYTES;
    trl_err err = trl_memory_alloc(arena->ctx, sizeof(arena_chunk) + size, "the deck", &memory);
    if (err != TRL_OK) return err;
    arena_chunk *chunk = memory;
    *chunk = (arena_chunk){.size = size};
    /* A large block of its own goes behind the chunk being filled, which keeps its room. */
    arena_chunk **link = arena->chunk && size != CHUNK_BYTES ? &arena->chunk->next : &arena->chunk;
    chunk->next = *link;
    *link = chunk;
    return TRL_OK;
}

trl_err trli_arena_alloc(trli_arena *arena, size_t bytes, void *memory)
{
    size_t rounded = (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    arena_chunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < rounded) {
        trl_err err = add_chunk(arena, rounded);
        if (err != TRL_OK) return err;
        chunk = arena->chunk;
        if (chunk->size - chunk->used < rounded) chunk = chunk->next;
    }
    void *result = chunk->bytes + chunk->used;
    chunk->used += rounded;
    memset(result, 0, rounded);
    memcpy(memory, &result, sizeof result);
    return TRL_OK;
}

trl_err trli_arena_text(trli_arena *arena, const char *chars, size_t length, const char **copy)
{
    char *text;
    trl_err err = trli_arena_alloc(arena, length + 1, &text);
    if (err != TRL_OK) return err;
    memcpy(text, chars, length);
    *copy = text;
    return TRL_OK;
}

trl_err trli_arena_print(trli_arena *arena, const char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) return trl_fail(arena->ctx, TRL_ERR_BUG, NULL, "a text of the deck cannot be composed");
    char *chars;
    trl_err err = trli_arena_alloc(arena, (size_t)length + 1, &chars);
    if (err != TRL_OK) return err;
    va_start(args, format);
    vsnprintf(chars, (size_t)length + 1, format, args);
    va_end(args);
    *text = chars;
    return TRL_OK;
}

trl_err trli_arena_grow(trli_arena *arena, void *array, int count, int *capacity, size_t item_size)
{
    if (count < *capacity) return TRL_OK;
    int larger = *capacity ? 2 * *capacity : FIRST_ITEMS;
    void *old, *items;
    trl_err err = trli_arena_alloc(arena, (size_t)larger * item_size, &items);
    if (err != TRL_OK) return err;
    memcpy(&old, array, sizeof old);
    if (count) memcpy(items, old, (size_t)count * item_size);
    memcpy(array, &items, sizeof items);
    *capacity = larger;
    return TRL_OK;
}

/* FNV-1a. */
static uint32_t hash_text(const char *key)
{
    uint32_t hash = 2166136261u;
    for (; *key; ++key) hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash;
}

static struct trli_map_slot *find_slot(struct trli_map_slot *slot, int capacity, const char *key)
{
    uint32_t mask = (uint32_t)capacity - 1, i = hash_text(key) & mask;
    while (slot[i].key && strcmp(slot[i].key, key) != 0) i = (i + 1) & mask;
    return &slot[i];
}

int trli_map_find(const trli_map *map, const char *key)
{
    if (!map->count) return -1;
    const struct trli_map_slot *slot = find_slot(map->slot, map->capacity, key);
    return slot->key ? slot->value : -1;
}

trl_err trli_map_add(trli_arena *arena, trli_map *map, const char *key, int value)
{
    if (2 * (map->count + 1) > map->capacity) {
        trli_map larger = {.count = map->count, .capacity = map->capacity ? 2 * map->capacity : FIRST_SLOTS};
        trl_err err = trli_arena_alloc(arena, (size_t)larger.capacity * sizeof *larger.slot, &larger.slot);
        if (err != TRL_OK) return err;
        for (int i = 0; i < map->capacity; ++i)
            if (map->slot[i].key) *find_slot(larger.slot, larger.capacity, map->slot[i].key) = map->slot[i];
        *map = larger;
    }
    *find_slot(map->slot, map->capacity, key) = (struct trli_map_slot){key, value};
    ++map->count;
    return TRL_OK;
}

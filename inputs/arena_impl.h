/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory that lives as long as a deck, and what is built in it: texts, growing arrays, maps from names to numbers. */
#ifndef TRLI_ARENA_IMPL_H
#define TRLI_ARENA_IMPL_H

#include <stdarg.h>

#include <trl_context.h>

typedef struct trli_arena trli_arena;

/* All functions fail with MEMORY only. Thread: one at a time per arena. */
TRL_NODISCARD trl_err trli_arena_create(trl_context *ctx, trli_arena **arena);
/* Release everything made in the arena and set to NULL; NULL is allowed. */
void trli_arena_destroy(trli_arena **arena);
/* Zeroed memory, aligned for any type. */
TRL_NODISCARD trl_err trli_arena_alloc(trli_arena *arena, size_t bytes, void *memory);
/* A NUL-terminated copy of length characters. */
TRL_NODISCARD trl_err trli_arena_text(trli_arena *arena, const char *chars, size_t length, const char **copy);
TRL_NODISCARD trl_err trli_arena_print(trli_arena *arena, const char **text, const char *format, ...) TRL_PRINTF(3, 4);
/* Make room for one item more than count in an array of the arena; array is the address of the pointer to its items. */
TRL_NODISCARD trl_err trli_arena_grow(trli_arena *arena, void *array, int count, int *capacity, size_t item_size);

/* A map from texts, which it does not copy, to numbers. Zero-initialised: empty. */
typedef struct trli_map {
    struct trli_map_slot {
        const char *key;
        int value;
    } * slot;
    int count, capacity;
} trli_map;

/* The number of a text, or -1. */
int trli_map_find(const trli_map *map, const char *key);
/* Add a text that is not in the map yet. */
TRL_NODISCARD trl_err trli_map_add(trli_arena *arena, trli_map *map, const char *key, int value);

#endif

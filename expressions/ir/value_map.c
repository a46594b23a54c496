/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "memory_impl.h"
#include "value_map_impl.h"

void trli_value_map_free(trli_value_map *map)
{
    trli_free(map->value);
    trli_free(map->bucket);
    *map = (trli_value_map){0};
}

/* The bucket of a value, or the free one where it belongs. At most half of the buckets are taken. */
static int32_t bucket_of(const trli_value_map *map, trli_ir_value v)
{
    const uint32_t last = (uint32_t)map->nbuckets - 1, h = (uint32_t)v * 0x9e3779b1u;
    uint32_t b = (h ^ h >> 15) & last;
    while (map->bucket[b] >= 0 && map->value[map->bucket[b]] != v) b = (b + 1) & last;
    return (int32_t)b;
}

void trli_value_map_clear(trli_value_map *map)
{
    /* From the last value added to the first, no search passes a bucket that is free already. */
    while (map->count > 0) {
        const int32_t b = bucket_of(map, map->value[map->count - 1]);
        map->bucket[b] = -1;
        --map->count;
    }
}

int32_t trli_value_map_find(const trli_value_map *map, trli_ir_value v)
{
    return map->nbuckets > 0 ? map->bucket[bucket_of(map, v)] : -1;
}

static bool grow_buckets(trl_context *ctx, trli_value_map *map)
{
    const int32_t n = map->nbuckets > 0 ? 2 * map->nbuckets : 64;
    int32_t *bucket = trli_new(ctx, (size_t)n, sizeof *bucket);
    if (!bucket) return false;
    for (int32_t b = 0; b < n; ++b) bucket[b] = -1;
    trli_free(map->bucket);
    map->bucket = bucket;
    map->nbuckets = n;
    for (int32_t i = 0; i < map->count; ++i) map->bucket[bucket_of(map, map->value[i])] = i;
    return true;
}

trl_err trli_value_map_add(trl_context *ctx, trli_value_map *map, trli_ir_value v, int32_t *number)
{
    *number = trli_value_map_find(map, v);
    if (*number >= 0) return TRL_OK;
    if (!trli_make_room(ctx, &map->value, map->count, 1, &map->capacity, sizeof *map->value) ||
        (2 * (map->count + 1) > map->nbuckets && !grow_buckets(ctx, map)))
        return trli_no_memory(ctx, NULL, "for a table of %d values", map->count + 1);
    const int32_t b = bucket_of(map, v);
    *number = map->count;
    map->value[map->count] = v;
    map->bucket[b] = map->count++;
    return TRL_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Numbers for some values of an IR, in a table as large as these, not as the IR. */
#ifndef TRLI_VALUE_MAP_IMPL_H
#define TRLI_VALUE_MAP_IMPL_H

#include "ir_impl.h"

/* All zero: empty. The values are numbered 0, 1, ... in the order in which they were added. */
typedef struct trli_value_map {
    trli_ir_value *value; /* [count] */
    int32_t count, capacity;
    int32_t *bucket; /* [nbuckets] hash of values, open addressing: a number, or -1 */
    int32_t nbuckets;
} trli_value_map;

void trli_value_map_free(trli_value_map *map);
/* Forget all values, in a time that grows with their count; the memory stays. */
void trli_value_map_clear(trli_value_map *map);
/* The number of a value, or -1. */
int32_t trli_value_map_find(const trli_value_map *map, trli_ir_value v);
/* The number of a value, which is added if it is missing: its number is then the count before. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_value_map_add(trl_context *ctx, trli_value_map *map, trli_ir_value v, int32_t *number);

#endif

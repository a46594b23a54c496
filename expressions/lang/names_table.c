/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "memory_impl.h"
#include "names_table_impl.h"

static int find_place(const trli_table *t, const char *key)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = key; *c; ++c) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    int i = (int)(h & (uint64_t)(t->capacity - 1));
    while (t->key[i] && strcmp(t->key[i], key) != 0) i = (i + 1) & (t->capacity - 1);
    return i;
}

static trl_err grow(trl_context *ctx, trli_table *t)
{
    trli_table bigger = {.capacity = t->capacity ? 2 * t->capacity : 64, .count = t->count};
    bigger.key = trli_new(ctx, (size_t)bigger.capacity, sizeof *bigger.key);
    bigger.value = trli_new(ctx, (size_t)bigger.capacity, sizeof *bigger.value);
    if (!bigger.key || !bigger.value) {
        trli_free(bigger.key);
        trli_free(bigger.value);
        return trli_no_memory(ctx, NULL, "for a table of %d names", bigger.capacity);
    }
    for (int i = 0; i < t->capacity; ++i) {
        if (!t->key[i]) continue;
        int place = find_place(&bigger, t->key[i]);
        bigger.key[place] = t->key[i];
        bigger.value[place] = t->value[i];
    }
    trli_table_free(t);
    *t = bigger;
    return TRL_OK;
}

trl_err trli_table_add(trl_context *ctx, trli_table *table, const char *key, int value, int *existing)
{
    if (2 * (table->count + 1) > table->capacity) {
        trl_err err = grow(ctx, table);
        if (err != TRL_OK) return err;
    }
    int i = find_place(table, key);
    *existing = table->key[i] ? table->value[i] : -1;
    if (!table->key[i]) {
        table->key[i] = key;
        table->value[i] = value;
        ++table->count;
    }
    return TRL_OK;
}

int trli_table_find(const trli_table *table, const char *key)
{
    if (table->capacity == 0) return -1;
    int i = find_place(table, key);
    return table->key[i] ? table->value[i] : -1;
}

void trli_table_free(trli_table *table)
{
    trli_free(table->key);
    trli_free(table->value);
    *table = (trli_table){0};
}

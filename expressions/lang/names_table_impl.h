/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A hash table from names to indices. */
#ifndef TRLI_NAMES_TABLE_IMPL_H
#define TRLI_NAMES_TABLE_IMPL_H

#include <trl_context.h>

typedef struct trli_table {
    const char **key; /* not owned */
    int *value;
    int count, capacity;
} trli_table;

/* Add a name; *existing is the value it already has, or -1. An existing value is kept. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_table_add(trl_context *ctx, trli_table *table, const char *key, int value, int *existing);
/* -1: absent. */
int trli_table_find(const trli_table *table, const char *key);
void trli_table_free(trli_table *table);

#endif

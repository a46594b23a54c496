/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "schema_impl.h"

int trli_schema_dimension(const trli_yaml *root)
{
    const trli_yaml *grid = trli_yaml_get(root, "grid");
    const trli_yaml *cells = grid && grid->kind == TRLI_MAPPING_NODE ? trli_yaml_get(grid, "cells") : NULL;
    return cells && cells->kind == TRLI_LIST_NODE ? cells->n : 0;
}

/* A list of one scalar for each axis. */
static trl_err per_axis(trli_arena *arena, const char *text, int dimension, const trl_place *place, trli_yaml **node)
{
    trl_err err;
    trli_yaml *item;
    TRL_TRY(trli_yaml_create(arena, TRLI_LIST_NODE, place, node));
    for (int i = 0; i < dimension; ++i) {
        TRL_TRY(trli_yaml_scalar(arena, text, place, &item));
        TRL_TRY(trli_yaml_append(arena, *node, item));
    }
done:
    return err;
}

static trl_err fallback_node(trli_arena *arena, const trli_key *key, int dimension, const trl_place *place,
                             trli_yaml **node)
{
    if (strcmp(key->fallback, "{}") == 0) return trli_yaml_create(arena, TRLI_MAPPING_NODE, place, node);
    bool list = strcmp(key->fallback, "[]") == 0;
    bool word = trli_schema_word(key, key->fallback) >= 0;
    if (!list && (word || !(key->flags & TRLI_PER_AXIS))) return trli_yaml_scalar(arena, key->fallback, place, node);
    return per_axis(arena, key->fallback, list ? 0 : dimension, place, node);
}

static trl_err fill(trli_arena *arena, const trli_key *key, int dimension, trli_yaml *node, trli_yaml **filled)
{
    trl_err err = TRL_OK;
    trli_yaml *name, *value, *copy;
    *filled = node;
    if (!key) return TRL_OK;
    if (node->kind == TRLI_SCALAR_NODE && key->flags & TRLI_PER_AXIS && !(key->flags & TRLI_ONLY_LIST))
        return per_axis(arena, node->text.chars, dimension, trli_yaml_place(node), filled);
    if (node->kind != TRLI_MAPPING_NODE) {
        if (!(key->flags & TRLI_SHORT)) return TRL_OK;
        TRL_TRY(trli_yaml_scalar(arena, "formula", trli_yaml_place(node), &name));
        TRL_TRY(trli_yaml_create(arena, TRLI_MAPPING_NODE, trli_yaml_place(node), &copy));
        TRL_TRY(trli_yaml_put(arena, copy, name, node));
    } else {
        TRL_TRY(trli_yaml_create(arena, TRLI_MAPPING_NODE, trli_yaml_place(node), &copy));
        for (int i = 0; i < node->n; ++i) {
            TRL_TRY(fill(arena, trli_schema_child(key, node->key[i]->text.chars), dimension, node->item[i], &value));
            TRL_TRY(trli_yaml_put(arena, copy, node->key[i], value));
        }
    }
    for (const trli_key *child = trli_schema_next(key, NULL); child; child = trli_schema_next(key, child)) {
        if (!child->fallback || trli_yaml_find(copy, trli_schema_name(child)) >= 0) continue;
        TRL_TRY(trli_yaml_scalar(arena, trli_schema_name(child), trli_yaml_place(node), &name));
        TRL_TRY(fallback_node(arena, child, dimension, trli_yaml_place(node), &value));
        TRL_TRY(fill(arena, child, dimension, value, &value));
        TRL_TRY(trli_yaml_put(arena, copy, name, value));
    }
    *filled = copy;
done:
    return err;
}

trl_err trli_schema_fill(trli_arena *arena, const trli_yaml *root, trli_yaml **filled)
{
    trli_yaml *copy;
    trl_err err = trli_yaml_copy(arena, root, &copy);
    if (err != TRL_OK) return err;
    return fill(arena, trli_schema_root(), trli_schema_dimension(root), copy, filled);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "yaml_impl.h"

/* Mappings up to this size are searched one key after the other. */
enum { SMALL_MAPPING = 8 };

trl_err trli_yaml_create(trli_arena *arena, trli_yaml_kind kind, const trl_place *place, trli_yaml **node)
{
    trl_err err = trli_arena_alloc(arena, sizeof **node, node);
    if (err != TRL_OK) return err;
    (*node)->kind = kind;
    (*node)->text.place = *place;
    (*node)->size = 1;
    return TRL_OK;
}

trl_err trli_yaml_scalar(trli_arena *arena, const char *chars, const trl_place *place, trli_yaml **node)
{
    trl_err err = trli_yaml_create(arena, TRLI_SCALAR_NODE, place, node);
    if (err == TRL_OK) (*node)->text.chars = chars;
    return err;
}

trl_err trli_yaml_copy(trli_arena *arena, const trli_yaml *node, trli_yaml **copy)
{
    trl_err err = trli_yaml_create(arena, node->kind, &node->text.place, copy);
    if (err != TRL_OK) return err;
    if (node->kind == TRLI_SCALAR_NODE) {
        **copy = *node;
        return TRL_OK;
    }
    for (int i = 0; i < node->n && err == TRL_OK; ++i)
        err = node->kind == TRLI_MAPPING_NODE ? trli_yaml_put(arena, *copy, node->key[i], node->item[i])
                                              : trli_yaml_append(arena, *copy, node->item[i]);
    return err;
}

int trli_yaml_find(const trli_yaml *mapping, const char *key)
{
    if (mapping->n > SMALL_MAPPING) return trli_map_find(&mapping->index, key);
    for (int i = 0; i < mapping->n; ++i)
        if (strcmp(mapping->key[i]->text.chars, key) == 0) return i;
    return -1;
}

trli_yaml *trli_yaml_get(const trli_yaml *mapping, const char *key)
{
    int i = mapping ? trli_yaml_find(mapping, key) : -1;
    return i < 0 ? NULL : mapping->item[i];
}

trl_err trli_yaml_append(trli_arena *arena, trli_yaml *list, trli_yaml *item)
{
    trl_err err = trli_arena_grow(arena, &list->item, list->n, &list->capacity, sizeof(trli_yaml *));
    if (err != TRL_OK) return err;
    list->item[list->n++] = item;
    list->size += item->size;
    return TRL_OK;
}

trl_err trli_yaml_put(trli_arena *arena, trli_yaml *mapping, trli_yaml *key, trli_yaml *value)
{
    int capacity = mapping->capacity, n = mapping->n, at = trli_yaml_find(mapping, key->text.chars);
    trl_err err;
    if (at >= 0) {
        mapping->size += value->size - mapping->item[at]->size;
        mapping->item[at] = value;
        return TRL_OK;
    }
    TRL_TRY(trli_arena_grow(arena, &mapping->key, n, &capacity, sizeof(trli_yaml *)));
    TRL_TRY(trli_arena_grow(arena, &mapping->item, n, &mapping->capacity, sizeof(trli_yaml *)));
    mapping->key[n] = key;
    mapping->item[n] = value;
    mapping->size += value->size;
    ++mapping->n;
    if (mapping->n <= SMALL_MAPPING) return TRL_OK;
    for (int i = mapping->index.count; i < mapping->n; ++i)
        TRL_TRY(trli_map_add(arena, &mapping->index, mapping->key[i]->text.chars, i));
done:
    return err;
}

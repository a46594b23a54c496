/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* YAML text to a tree of nodes that know their places. Every scalar is text; a schema gives types later. */
#ifndef TRLI_YAML_IMPL_H
#define TRLI_YAML_IMPL_H

#include <trl_formula.h>

#include "arena_impl.h"

typedef enum trli_yaml_kind { TRLI_SCALAR_NODE, TRLI_LIST_NODE, TRLI_MAPPING_NODE } trli_yaml_kind;

/* Nodes are shared by aliases and merged trees: once made, a node is changed only by the code that made it. */
typedef struct trli_yaml {
    trli_yaml_kind kind;
    bool literal;  /* SCALAR: to be written as text even where it looks like a number */
    trl_text text; /* SCALAR: the value; others: its place only */
    int n, capacity;
    struct trli_yaml **key;  /* MAPPING: [n] scalars */
    struct trli_yaml **item; /* LIST, MAPPING: [n] */
    trli_map index;          /* of the keys of a large MAPPING */
    int size;                /* as read: nodes of the tree from here, aliases counted where they are used */
} trli_yaml;

/* A text to be read and where it stands. */
typedef struct trli_source {
    const char *file;  /* as the user named it */
    const char *text;  /* NUL-terminated; it and file outlive the nodes */
    const char *first; /* the first line for underlining, where text is only its end; NULL: text itself */
    int line, column;  /* of the first character, from 1 */
} trli_source;

enum { TRLI_YAML_DEPTH = 64, TRLI_YAML_NODES = 1000000, TRLI_YAML_SCALAR_BYTES = 1 << 20 };

/* Read one document; *root is NULL when the text holds none. INPUT errors: what is not YAML (the first fault only);
 * duplicate keys, tags, merge keys, several documents; formulas that flow syntax has torn apart; what exceeds the
 * limits above. Thread: any. */
TRL_NODISCARD trl_err trli_yaml_read(trl_context *ctx, trli_arena *arena, const trli_source *source, trli_yaml **root);

TRL_NODISCARD trl_err trli_yaml_create(trli_arena *arena, trli_yaml_kind kind, const trl_place *place,
                                       trli_yaml **node);
TRL_NODISCARD trl_err trli_yaml_scalar(trli_arena *arena, const char *chars, const trl_place *place, trli_yaml **node);
/* A copy that shares keys and items. */
TRL_NODISCARD trl_err trli_yaml_copy(trli_arena *arena, const trli_yaml *node, trli_yaml **copy);
/* Position of a key in a mapping, or -1. */
int trli_yaml_find(const trli_yaml *mapping, const char *key);
/* Value of a key, or NULL; NULL too when mapping is NULL. */
trli_yaml *trli_yaml_get(const trli_yaml *mapping, const char *key);
/* Set the value of a key, adding the key if it is new. */
TRL_NODISCARD trl_err trli_yaml_put(trli_arena *arena, trli_yaml *mapping, trli_yaml *key, trli_yaml *value);
TRL_NODISCARD trl_err trli_yaml_append(trli_arena *arena, trli_yaml *list, trli_yaml *item);

static inline const trl_place *trli_yaml_place(const trli_yaml *node)
{
    return &node->text.place;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the registry and the loader of plugins share. */
#ifndef TRLI_REGISTRY_IMPL_H
#define TRLI_REGISTRY_IMPL_H

#include <trl_registry.h>

typedef struct trli_registry_entry {
    const trl_expr_type *type; /* the plugin's own descriptor */
    char *origin;
} trli_registry_entry;

struct trl_registry {
    trl_context *ctx;
    int count, capacity;
    trli_registry_entry *entry;
    int nlibraries, libraries_capacity;
    void **library; /* handles of dlopen, each once */
};

#endif

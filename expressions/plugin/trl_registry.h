/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The registry of expression types: built-ins and plugins through one path. */
#ifndef TRL_REGISTRY_H
#define TRL_REGISTRY_H

#include <trl_plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_registry trl_registry;

TRL_API TRL_NODISCARD trl_err trl_registry_create(trl_context *ctx, trl_registry **registry);
/* Closes the plugins too. */
TRL_API void trl_registry_destroy(trl_registry **registry);
/* Register one type; checks abi, size, name, required slots and parameter table (PLUGIN error naming the slot). Not
 * copied. place: of the deck's plugins entry. origin: "built-in" or the library's path. */
TRL_API TRL_NODISCARD trl_err trl_registry_add(trl_registry *registry, const trl_expr_type *type, const char *origin,
                                               const trl_place *place);
/* Load a library by path, or by name searched as NAME, libNAME.so, NAME.so in each folder. PLUGIN errors: not found
 * (the folders searched are listed), cannot be loaded (the loader's message: undefined symbol ...), no
 * trl_plugin_entry, wrong abi (both versions), a type twice. */
TRL_API TRL_NODISCARD trl_err trl_registry_load(trl_registry *registry, const char *name, const char *const *folders,
                                                int nfolders, const trl_place *place);
TRL_API const trl_expr_type *trl_registry_find(const trl_registry *registry, const char *name);
TRL_API int trl_registry_count(const trl_registry *registry);
TRL_API const trl_expr_type *trl_registry_at(const trl_registry *registry, int i, const char **origin);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The expression types that come with Trellis: a new one is declared here and listed in builtins.c. */
#ifndef TRLI_BUILTINS_IMPL_H
#define TRLI_BUILTINS_IMPL_H

#include <trl_registry.h>

/* Reads a field from a dataset of an HDF5 file, once. */
extern const trl_expr_type trli_type_file;

/* Add every built-in type. */
TRL_NODISCARD trl_err trli_register_builtins(trl_registry *registry);

#endif

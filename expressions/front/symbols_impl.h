/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Names of a problem, and what formulas refer to. */
#ifndef TRLI_SYMBOLS_IMPL_H
#define TRLI_SYMBOLS_IMPL_H

#include "front_impl.h"

/* Parse or set up the entries, and add the names of variables and entries. */
TRL_NODISCARD trl_err trli_symbols_build(trli_model *model);
/* Find the tags that a plugin entry requires. */
TRL_NODISCARD trl_err trli_entry_resolve(trli_model *model, trli_entry *entry);
/* Append a variable, before the first instance. A name that is taken is an INPUT error. */
TRL_NODISCARD trl_err trli_variable_add(trli_model *model, const trli_variable *variable);
const trli_symbol *trli_symbol_find(const trli_model *model, const char *name);
/* A stencil of the problem's own, or NULL. */
const trl_operator *trli_stencil_find(const trli_model *model, const char *name);
/* INPUT error: no expression or equation computes the tag; it proposes the nearest name. */
trl_err trli_symbol_missing(trli_model *model, const trl_place *place, const char *name);
/* Call visit for every symbol that a formula refers to (indices expanded, branches of index-only ifs chosen). What sums
 * and products expand to is counted, and limited in a model; not so where formulas are visited again. */
typedef trl_err (*trli_visit)(void *data, const trl_text *text, const trl_ast *node, const char *name);
TRL_NODISCARD trl_err trli_visit_symbols(trli_model *model, const trl_formula *formula, const trl_scope *scope,
                                         trli_visit visit, void *data);
TRL_NODISCARD trl_err trli_visit_again(trli_model *model, const trl_formula *formula, const trl_scope *scope,
                                       trli_visit visit, void *data);
/* The integer range of a family node (sum, prod). operations: counts those of sums within it, or NULL. */
TRL_NODISCARD trl_err trli_family_range(trl_context *ctx, const trl_text *text, const trl_ast *node,
                                        const trl_scope *scope, int64_t *operations, long *lo, long *hi);
/* Whether an expression is made of numbers, indices and parameters only, so that it is decided when the formula is
 * expanded. */
bool trli_decided(const trl_ast *node, const trl_scope *scope);

#endif

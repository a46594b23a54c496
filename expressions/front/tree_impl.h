/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The order of the entries of a problem, and which are used. */
#ifndef TRLI_TREE_IMPL_H
#define TRLI_TREE_IMPL_H

#include "front_impl.h"
#include <stdio.h>

/* Order the entries by their dependencies; a cycle is an INPUT error with its path. */
TRL_NODISCARD trl_err trli_tree_order(trli_model *model);
/* Mark the entries that a formula mentions as used; then, once, what those need through others. */
TRL_NODISCARD trl_err trli_tree_mark_used(trli_model *model, const trl_formula *formula, const trl_scope *scope);
void trli_tree_spread_used(trli_model *model);
/* INPUT error if a formula contains noise, or depends on an entry that does. what: the formula, with its article. */
TRL_NODISCARD trl_err trli_tree_refuse_noise(trli_model *model, const trl_formula *formula, const trl_scope *scope,
                                             const char *what);
/* Whether a formula's value may depend on more than the variables' values and the time: on dt, the values at the start
 * of the step, its number, or what a type knows. */
bool trli_tree_reads_step(trli_model *model, const trl_formula *formula, const trl_scope *scope);
/* Whether a formula's value follows from coordinates, t and parameters alone. */
bool trli_tree_is_given(trli_model *model, const trl_formula *formula, const trl_scope *scope);
TRL_NODISCARD trl_err trli_tree_write_dot(const trli_model *model, FILE *out);

#endif

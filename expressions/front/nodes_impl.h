/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Nodes of formulas by their kind. */
#ifndef TRLI_NODES_IMPL_H
#define TRLI_NODES_IMPL_H

#include "lower_impl.h"

/* Lower a node of a formula. For trli_front_ops; all others call trli_lower_node. */
TRL_NODISCARD trl_err trli_lower_by_kind(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                         trli_operand *operand);
/* Coordinates, times, widths and pi, by their names in formulas; false: another name. *missing_axis: one that the grid
 * lacks, or -1. */
bool trli_lower_reserved(trli_lowering *lw, const char *name, trli_operand *operand, int *missing_axis);
/* A function of the table of trl_functions. b: not read by those of one argument. */
trli_ir_value trli_lower_function_value(trli_ir *ir, const trl_function *f, trli_ir_value a, trli_ir_value b);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Nodes of formulas by their kind. */
#ifndef TRLI_NODES_IMPL_H
#define TRLI_NODES_IMPL_H

#include "lower_impl.h"

/* Lower a node of a formula. For trli_front_ops; all others call trli_lower_node. */
TRL_NODISCARD trl_err trli_lower_by_kind(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                         trli_operand *operand);

#endif

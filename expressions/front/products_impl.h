/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Products of scalars and vectors. */
#ifndef TRLI_PRODUCTS_IMPL_H
#define TRLI_PRODUCTS_IMPL_H

#include "lower_impl.h"

/* A product or quotient: factors are collected along its left side, cell factors interpolated together. */
TRL_NODISCARD trl_err trli_lower_product(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                         trli_operand *operand);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Operators of the formula language. */
#ifndef TRLI_OPERATORS_IMPL_H
#define TRLI_OPERATORS_IMPL_H

#include <trl_formula_operators.h>

#include "lower_impl.h"

/* Lower a call of an operator, whose number of arguments is checked. */
typedef trl_err (*trli_operator_fn)(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                    const trl_scope *scope, trli_operand *operand);
/* Check the number of arguments and lower the call by the function of the operator's family. */
TRL_NODISCARD trl_err trli_lower_operator(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                          const trl_scope *scope, trli_operand *operand);
/* One of spatialops' operators applied to values at its locations; stored, if the operator is wide or fusion is off. */
TRL_NODISCARD trl_err trli_lower_apply(trli_lowering *lw, const char *name, const trl_operator *op,
                                       const trli_ir_value *inputs, trli_ir_value *result);
/* A call of one of the problem's own stencils. */
TRL_NODISCARD trl_err trli_lower_stencil(trli_lowering *lw, const trl_ast *node, const trl_scope *scope,
                                         const trl_operator *stencil, trli_operand *operand);

/* That an argument has one coordinate per axis, and such a coordinate, which is a number inside of the domain, as
 * trli_in_domain says. */
TRL_NODISCARD trl_err trli_check_position(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *where);
TRL_NODISCARD trl_err trli_lower_coordinate(trli_lowering *lw, const trl_ast *where, int axis, const trl_scope *scope,
                                            double *coordinate);

/* The families of TRL_FORMULA_OPERATOR_LIST, each a trli_operator_fn. */
#define TRLI_OPERATOR_FAMILY(family)                                                                                  \
    TRL_NODISCARD trl_err trli_lower_##family(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, \
                                              const trl_scope *scope, trli_operand *operand)
TRLI_OPERATOR_FAMILY(grad); /* linear.c */
TRLI_OPERATOR_FAMILY(div);
TRLI_OPERATOR_FAMILY(laplacian);
TRLI_OPERATOR_FAMILY(curl);
TRLI_OPERATOR_FAMILY(along_axis);
TRLI_OPERATOR_FAMILY(interpolation);
TRLI_OPERATOR_FAMILY(filter);
TRLI_OPERATOR_FAMILY(extrapolation);
TRLI_OPERATOR_FAMILY(strain);             /* strain.c */
TRLI_OPERATOR_FAMILY(product_of_vectors); /* products.c */
TRLI_OPERATOR_FAMILY(advective_flux);     /* fluxes.c */
TRLI_OPERATOR_FAMILY(reconstruction);
TRLI_OPERATOR_FAMILY(reduction); /* reductions.c */
TRLI_OPERATOR_FAMILY(probe);
TRLI_OPERATOR_FAMILY(old); /* operators.c */
TRLI_OPERATOR_FAMILY(ddt);
TRLI_OPERATOR_FAMILY(random);
TRLI_OPERATOR_FAMILY(noise); /* sources.c */
TRLI_OPERATOR_FAMILY(point_source);
#undef TRLI_OPERATOR_FAMILY

#endif

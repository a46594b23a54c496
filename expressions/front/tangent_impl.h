/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Derivatives of what instances hold. */
#ifndef TRLI_TANGENT_IMPL_H
#define TRLI_TANGENT_IMPL_H

#include "instance_impl.h"

/* The variable that is the tangent of a variable along a direction, or -1. */
int trli_tangent_variable(const trli_model *model, int direction, int variable);
/* See trli_tangent. For trli_front_ops. */
TRL_NODISCARD trl_err trli_tangent_of_value(trli_instance *in, int direction, trli_ir_value value,
                                            trli_ir_value *tangent);
void trli_tangents_free(struct trli_tangents **tangents);

#endif

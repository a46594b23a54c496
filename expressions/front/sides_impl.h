/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps that set sides: ghosts, and points on sides. */
#ifndef TRLI_SIDES_IMPL_H
#define TRLI_SIDES_IMPL_H

#include "instance_impl.h"

/* Append the fill of the variables' ghosts with their boundary conditions; the first step of an instance. */
TRL_NODISCARD trl_err trli_instance_fill(trli_instance *instance);
/* Append the fill of some fields' ghosts, whose conditions may read the others, or of one's. */
TRL_NODISCARD trl_err trli_instance_fill_fields(trli_instance *instance, int n, const int *field);
TRL_NODISCARD trl_err trli_instance_fill_field(trli_instance *instance, int field);
/* Call visit for each value in the conditions of a field, as they are lowered in the instance of sides. */
TRL_NODISCARD trl_err trli_sides_visit(trli_instance *instance, int field,
                                       trl_err (*visit)(void *data, trli_ir_value value), void *data);
/* Append what sets points on sides of the variables' fields, after all that their conditions read; check: to finite
 * values. Conditions that need each other's points are an INPUT error that names the cycle. */
TRL_NODISCARD trl_err trli_instance_planes(trli_instance *instance, bool check);
/* Whether conditions may set points on a side of the location, but not all of them for sure. */
bool trli_sides_set_parts(const trli_model *model, const trl_bc_side *deck, trl_location location, int s);
/* *value = there at the points of a field that conditions of such sides set. */
TRL_NODISCARD trl_err trli_sides_replace_set(trli_instance *instance, int field, trli_ir_value there,
                                             trli_ir_value *value);
/* Likewise of one side s, lowered; there = TRLI_NO_VALUE: what the conditions of a tangent say. */
void trli_side_replace_set(trli_ir *ir, const trli_side *side, int s, trli_ir_value there, trli_ir_value *value);

#endif

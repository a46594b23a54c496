/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary conditions, lowered in instances. */
#ifndef TRLI_BOUNDARY_IMPL_H
#define TRLI_BOUNDARY_IMPL_H

#include "instance_impl.h"

/* Lower the conditions of a field's sides in an instance, in the frame of each side. */
TRL_NODISCARD trl_err trli_boundary_lower(trli_instance *instance, int field, trli_side sides[6]);
/* Those of one side, numbered 2*axis + which. */
TRL_NODISCARD trl_err trli_boundary_lower_side(trli_instance *instance, int field, int s, trli_side *side);
/* *value = what conditions set, at the points on sides of the location. */
TRL_NODISCARD trl_err trli_boundary_set_points(trli_instance *instance, const trli_boundary_source *boundary,
                                               trl_location location, trli_ir_value *value);
/* The value of the conditions at the points on a side of a location whose axis bit is set there: for advective fluxes
 * on Dirichlet faces. */
TRL_NODISCARD trl_err trli_boundary_face_value(trli_instance *instance, const trli_boundary_source *boundary, int axis,
                                               int side, trl_location face, trli_ir_value inside, trli_ir_value *value);

#endif

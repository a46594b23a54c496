/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Parameters of formulas, and the directions of differentiation. */
#ifndef TRLI_PARAMETERS_IMPL_H
#define TRLI_PARAMETERS_IMPL_H

#include "lower_impl.h"

/* Declare a direction, before anything is lowered. name: of a global parameter, which becomes a scalar of the model, or
 * any other. */
TRL_NODISCARD trl_err trli_direction_add(trli_model *model, const char *name, int *direction);
/* Declare the direction of time, before anything is lowered: variables with a rate change by it. Tangents along it are
 * asked for on sides only, of rates. */
TRL_NODISCARD trl_err trli_direction_of_time(trli_model *model, int *direction);
/* The value of a name among the parameters and indices. */
TRL_NODISCARD trl_err trli_lower_parameter(trli_lowering *lw, const char *name, const trl_scope *scope,
                                           trli_operand *operand, bool *found);
/* A number that is fixed when a formula is expanded: a bound, a width, a seed. INPUT error if it depends on the
 * parameter of a direction. */
TRL_NODISCARD trl_err trli_lower_number(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, double *number);

#endif

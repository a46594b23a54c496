/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps that plugin entries compute. */
#ifndef TRLI_PLUGIN_STEP_IMPL_H
#define TRLI_PLUGIN_STEP_IMPL_H

#include "instance_impl.h"

/* What a plugin entry requires, in an instance: a scalar at the location that was asked for. */
TRL_NODISCARD trl_err trli_plugin_input(trli_instance *instance, const trli_entry *entry, const trli_advertised *r,
                                        trli_operand *input);
/* The fields that hold what a plugin entry requires, in an instance; stores formulas where needed. */
TRL_NODISCARD trl_err trli_plugin_inputs(trli_instance *instance, int entry, int **fields);
/* Append a plugin entry's evaluation in an instance; its computed fields are then in instance->plugin_field. */
TRL_NODISCARD trl_err trli_plugin_add(trli_instance *instance, int entry);
/* The scalar that holds the smallest stable_dt of a plugin entry over all patches. */
TRL_NODISCARD trl_err trli_plugin_stable_dt(trli_instance *instance, int entry, int *scalar);

#endif

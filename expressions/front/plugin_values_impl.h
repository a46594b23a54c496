/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values of plugin entries whose type is device-neutral. */
#ifndef TRLI_PLUGIN_VALUES_IMPL_H
#define TRLI_PLUGIN_VALUES_IMPL_H

#include "plugin_entry_impl.h"
#include "plugin_step_impl.h"

/* Call evaluate of an entry with a NEUTRAL type in an instance; output: [entry->ncomputed], at the tags' locations. */
TRL_NODISCARD trl_err trli_plugin_values(trli_instance *instance, const trli_entry *entry, trli_operand *output);

#endif

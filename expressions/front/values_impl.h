/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values of symbols in instances. */
#ifndef TRLI_VALUES_IMPL_H
#define TRLI_VALUES_IMPL_H

#include "instance_impl.h"

/* The value of a symbol; finds it at the first call. For trli_front_ops. */
TRL_NODISCARD trl_err trli_value_of_symbol(trli_instance *in, const trli_symbol *symbol, trli_operand *operand);
/* Whether a value is a component of an entry's formula that was lowered in the instance. */
bool trli_value_is_of_entry(const trli_instance *in, int entry, trli_ir_value value);

#endif

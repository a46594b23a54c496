/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Variables that have a rate among the variables. */
#ifndef TRLI_RATES_IMPL_H
#define TRLI_RATES_IMPL_H

#include "instance_impl.h"

/* Whether the time derivative of a value lowered in an instance can be formed: of all variables it reads, the rate is a
 * variable too, and no plugin computes what it reads. */
TRL_NODISCARD trl_err trli_rate_is_known(const trli_instance *in, trli_ir_value value, bool *known);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Entries whose values no step changes. */
#ifndef TRLI_LASTING_IMPL_H
#define TRLI_LASTING_IMPL_H

#include "instance_impl.h"

/* Find out which entries change in time; all are ordered. */
TRL_NODISCARD trl_err trli_lasting_find(trli_model *model);
/* Begin the model's program `lasting`, which the caller runs before all others, if an entry is used that does not
 * change and is stored in any case: until trli_lasting_end, what other programs read of such an entry is the field that
 * this program computes. */
TRL_NODISCARD trl_err trli_lasting_begin(trli_model *model, trli_instance **instance);
void trli_lasting_end(trli_model *model, trli_instance **instance);

#endif

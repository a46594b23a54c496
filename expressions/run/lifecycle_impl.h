/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Models from their making to their end, and the run of their programs. */
#ifndef TRLI_LIFECYCLE_IMPL_H
#define TRLI_LIFECYCLE_IMPL_H

#include "model_impl.h"

/* Make a model of the entries and variables of a problem: parse, set plugin entries up, resolve names, order, check
 * for cycles, missing and duplicate producers. Everything stays valid as long as the description it was made from. */
TRL_NODISCARD trl_err trli_model_create(trl_context *ctx, const trli_model_request *request, trli_model **model);
void trli_model_destroy(trli_model **model);
/* Allocate the slots of all analysed programs, bind exchanges and build the task graphs. Collective: yes. */
TRL_NODISCARD trl_err trli_model_freeze(trli_model *model);
/* Give slots and scratch memory. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_slots_allocate(trli_model *model);
/* Run a frozen program. Collective: yes. */
TRL_NODISCARD trl_err trli_program_run(trli_program *program);

#endif

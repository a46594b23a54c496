/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Models from their making to their end, and the run of their programs. */
#ifndef TRLI_LIFECYCLE_IMPL_H
#define TRLI_LIFECYCLE_IMPL_H

#include "frame_impl.h"
#include "model_impl.h"

/* Make a model of the entries and variables of a problem: parse, set plugin entries up, resolve names, order, check
 * for cycles, missing and duplicate producers. Everything stays valid as long as the description it was made from. */
TRL_NODISCARD trl_err trli_model_create(trl_context *ctx, const trli_model_request *request, trli_model **model);
void trli_model_destroy(trli_model **model);
struct trli_rotation; /* passes/time_plan_impl.h */

/* Plan the memory of all analysed programs, build their task graphs and ask for their kernels. rotation: of the fields
 * that exchange their memory after each run of one program, `step`; NULL: none do. */
TRL_NODISCARD trl_err trli_model_freeze(trli_model *model, const trli_program *step,
                                        const struct trli_rotation *rotation);
/* Whether a run of a frozen program does nothing: the same on all ranks. */
bool trli_program_is_empty(const trli_program *program);
/* Whether devices that do all of a frozen program may be at several programs before when its next runs begin
 * (trli_graph_set_leading). */
void trli_program_set_leading(const trli_program *program, bool leads);
/* Run a frozen program in a frame of its model. Collective: yes. */
TRL_NODISCARD trl_err trli_program_run(const trli_program *program, trli_frame *frame);
/* Take part in the messages of a run of the other ranks, and compute nothing. */
TRL_NODISCARD trl_err trli_program_drain(const trli_program *program, trli_frame *frame);

#endif

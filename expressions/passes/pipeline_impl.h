/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The passes over a program, and the plans that they leave. */
#ifndef TRLI_PIPELINE_IMPL_H
#define TRLI_PIPELINE_IMPL_H

#include "model_impl.h"
#include "plan_impl.h"
#include <stdio.h>

/* Plan all programs of a model, once formulas are lowered: cost_impl.h, plan_impl.h and below. The user hears of
 * mistakes in all programs. That of what lasts waits for trli_passes_run_lasting. Afterwards ghosts may be made deeper,
 * no more; then come trli_slots_plan and execution. */
TRL_NODISCARD trl_err trli_passes_run(trli_model *model);
/* Plan the program of what lasts, once all readers and the depths of their ghosts are known. */
TRL_NODISCARD trl_err trli_passes_run_lasting(trli_model *model);
/* Let kernels set the ghosts at the ends of their rows where no other step reads these. */
TRL_NODISCARD trl_err trli_program_fold(trli_program *program);
/* Another program runs before each run of this one, on the same frame, and in between nothing changes what it
 * exchanges: have it bring what this one's exchanges need of fields of its own exchanges' steps, and leave that out of
 * this one's. Both are planned. */
void trli_program_follow(trli_program *program, trli_program *before);
/* Whether some of these ghosts are those of other patches, or images beyond a periodic side. */
bool trli_needs_exchange(const trl_layout *layout, const trl_footprint *reach);
/* Whether a patch has a slab. */
bool trli_slab_is_at(const trl_layout *layout, const trl_patch *patch, const trli_slab *slab);
/* Box of a slab on a patch. */
trl_box trli_slab_box(const trli_program *program, const trli_slab *slab, int local_patch);
/* Box on a local patch that a step, a kernel or a plugin, computes result o on. */
trl_box trli_step_box(const trli_program *program, const trli_step *s, int o, int local_patch);

/* -- ir_text.c -- */
/* The values of all kernels of a program, one operation a line, with the number of offsets that each is needed at.
 * Fails with MEMORY, IO. */
TRL_NODISCARD trl_err trli_ir_write(trli_program *program, FILE *out);

#endif

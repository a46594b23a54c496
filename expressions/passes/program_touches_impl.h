/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a program touches as a whole: for whoever calls it. */
#ifndef TRLI_PROGRAM_TOUCHES_IMPL_H
#define TRLI_PROGRAM_TOUCHES_IMPL_H

#include "model_impl.h"

/* Sets of these. */
enum { TRLI_TOUCHES_READ = 1, TRLI_TOUCHES_SET = 2 };

typedef struct trli_program_touches {
    unsigned char *field, *scalar; /* [nfields], [nscalars] of the model */
} trli_program_touches;

/* What the live steps of an analysed program touch, or one of them, with programs that are called there. Fail
 * with MEMORY; the caller frees also then. */
TRL_NODISCARD trl_err trli_program_touches_find(const trli_program *program, trli_program_touches *touched);
TRL_NODISCARD trl_err trli_step_touches_find(const trli_program *program, const trli_step *step,
                                             trli_program_touches *touched);
void trli_program_touches_free(trli_program_touches *touched);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a launch of several steps computes and touches. */
#ifndef TRLI_GPU_PASS_PLAN_IMPL_H
#define TRLI_GPU_PASS_PLAN_IMPL_H

#include "emit_impl.h"
#include "parts_impl.h"
#include "time_plan_impl.h"

enum { TRLI_GPU_PASS_FIELDS = 3, TRLI_GPU_PASS_STAGES = 4 };

/* A kernel of a step, whose results are a level. */
typedef struct trli_gpu_stage {
    const trli_step *step;
    trli_step_part part; /* of the step, what changes; it keeps its lists */
    int *number;         /* by input: which field of the level before it is; -1: it lies in memory */
    int *array;          /* by input that lies in memory: of the launch */
    bool *alike;         /* by input: it lies in memory as the fields of a level do */
} trli_gpu_stage;

typedef struct trli_gpu_pass_plan {
    trli_program *program;
    int fields; /* of a level, which change */
    bool cut;   /* patches lie behind one another along z: a launch reads those beside its own */
    int nstages;
    trli_gpu_stage stage[TRLI_GPU_PASS_STAGES];
    int before
        [TRLI_GPU_PASS_FIELDS]; /* the fields of the first level; those of the last are the last stage's results */
    trli_step_part launch;      /* all that lies in memory, the first level before others; and the results */
    int nlasting, *lasting;     /* fields: both levels of what does not change */
    int each;                   /* scalars of a stage, at most; one at least */
} trli_gpu_pass_plan;

/* Before fields have memory: give those that change, and those that do not, the same ghosts, so that they lie in memory
 * alike, if the program can be run so. */
void trli_gpu_pass_plan_deepen(trli_program *program, const trli_rotation *rotation);
/* Once kernels for GPUs have their texts. *why: NULL, or what of the program is in the way. Free it also after a
 * failure. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_pass_plan_make(trli_program *program, const trli_rotation *rotation,
                                              trli_gpu_pass_plan *plan, const char **why);
void trli_gpu_pass_plan_free(trli_gpu_pass_plan *plan);
/* The text by a tile; freed by the caller. NULL: there is none, and why. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_pass_plan_write(const trli_gpu_pass_plan *plan, const trli_emit_steps *tile, char **text,
                                               const char **why);

#endif

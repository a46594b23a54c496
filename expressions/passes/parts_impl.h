/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Parts of kernels (loop fission): results that one compiled function computes. A kernel of many equations is as many
 * functions as its results have little in common, each short to compile; those of one form are one function. */
#ifndef TRLI_PARTS_IMPL_H
#define TRLI_PARTS_IMPL_H

#include "model_impl.h"
#include "plan_impl.h"

typedef struct trli_step_part {
    int nroots, *root;    /* of the step's results, ascending */
    trli_ir_value *value; /* [nroots] */
    trli_reads reads;     /* also of the layers that the part may compute itself */
    int *input;           /* [reads.nfields] of the step's inputs */
    int nslabs, *slab;    /* of the step's slabs those of its inputs that follow from the row beside them */
} trli_step_part;

/* Of a step. */
struct trli_parts {
    int n; /* of kernels that are live 1 or more */
    trli_step_part *part;
    bool whole;      /* it is one part, whose `reads` are those of the step's plan */
    int shared_rows; /* of a point, on all planes that are read, of inputs that several parts read */
};

/* Decide the parts of the kernels of a program, after it is folded. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_program_part(trli_program *program);
/* The same for GPUs, for a launch each. */
TRL_NODISCARD trl_err trli_program_part_for_gpus(trli_program *program);
/* Those of both. */
void trli_parts_destroy(trli_program *program);

static inline const trli_parts *trli_parts_of(const trli_program *program, const trli_step *s)
{
    return &program->parts[s - program->step];
}

static inline const trli_parts *trli_gpu_parts_of(const trli_program *program, const trli_step *s)
{
    return &program->gpu_parts[s - program->step];
}

#endif

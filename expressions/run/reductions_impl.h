/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The reductions of a program: which of them are computed in one sweep over the same points, and which are brought
 * together over the ranks at once. */
#ifndef TRLI_REDUCTIONS_IMPL_H
#define TRLI_REDUCTIONS_IMPL_H

#include <reduction_impl.h>

#include "codes_impl.h"
#include "interpreter_impl.h"
#include "plan_impl.h"

typedef struct trli_reduced_step {
    const trli_step *step;
    trli_merge merge;
} trli_reduced_step;

/* Reductions whose values are computed together; or one that a plugin makes, which has no kernel. */
typedef struct trli_reduction_group {
    int first, n;         /* of the program's reductions */
    trli_ir_value *value; /* [n] */
    trli_merge *merge;    /* [n] */
    trli_reads reads;     /* of all values */
    trli_kernel *kernel;
    trli_code_use use; /* compiled */
    bool merges;       /* the compiled kernel merges values itself */
    trli_code_use gpu; /* for GPUs */
    int64_t points;    /* of a tile: its values stay in the first-level cache, or a sum has room for them */
} trli_reduction_group;

/* Reductions that are ready at once: none needs the result of another. */
typedef struct trli_reduction_batch {
    const trli_step *step; /* the first of them, in whose place all are computed */
    int first, n;          /* of the program's reductions */
    int first_group, ngroups;
} trli_reduction_batch;

typedef struct trli_reductions {
    int n, ngroups, nbatches;
    trli_reduced_step *reduction; /* [n] by batch, and by group */
    trli_reduction_group *group;  /* [ngroups] by batch */
    trli_reduction_batch *batch;  /* [nbatches] */
    int first, first_batch;       /* of those of the model: a frame has what is in flight */
} trli_reductions;

/* Decide the groups and batches of an analysed program, and make the kernels. Fails with MEMORY; the caller
 * frees what was made also after a failure. */
TRL_NODISCARD trl_err trli_reductions_create(trli_program *program, trli_reductions *reductions);
void trli_reductions_free(trli_reductions *reductions);
/* The batch that is computed in a step's place, or NULL. */
const trli_reduction_batch *trli_reductions_at(const trli_reductions *reductions, const trli_step *step);

/* Whether a program reduces something, and only scalars need the results. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_reductions_come_last(const trli_program *program, bool *last);

/* Whether values on sides count less. */
bool trli_is_weighted(const trli_reduced_step *reduction);

/* Scratch of a thread that computes some group. */
size_t trli_reductions_scratch(const trli_reductions *reductions);

#endif

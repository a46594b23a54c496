/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The reductions of a program: which of them are computed in one sweep over the same points, and which are brought
 * together over the ranks at once. */
#ifndef TRLI_REDUCTIONS_IMPL_H
#define TRLI_REDUCTIONS_IMPL_H

#include <reduction_impl.h>
#include <trl_graph.h>

#include "codes_impl.h"
#include "interpreter_impl.h"
#include "plan_impl.h"

typedef struct trli_reduced_step {
    const trli_step *step;
    trli_merge merge;
    int patches; /* for GPUs: the only one that has a share; negative: all, or some (found_scalars.c) */
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
    int fused;         /* of the program's: the kernel that makes it on its way; -1: none */
    bool at_once;      /* a launch of a GPU makes all of it, and brings it together (tasks_reduce.c) */
} trli_reduction_group;

/* Sums that the kernel of a step makes of what it reads and computes, in the sweep that stores its results. */
typedef struct trli_fused_sums {
    const trli_step *step;
    int ngroups, *group;  /* [ngroups] of the program's, in their order */
    int nstored, nroots;  /* the step's results, and behind them the groups' values */
    trli_ir_value *value; /* [nroots] */
    trli_merge *merge;    /* [nroots] of the latter */
    trli_reads reads;     /* of all */
    trli_code_use use;    /* compiled */
    trli_code_use gpu;    /* for GPUs, if these make them */
    trl_handle *share;    /* [ngroups][local patches] of the graph */
} trli_fused_sums;

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
    int nfused;
    trli_fused_sums *fused; /* [nfused] */
    int first, first_batch; /* of those of the model: a frame has what is in flight */
} trli_reductions;

/* Decide the groups and batches of an analysed program, and make the kernels. Fails with MEMORY; the caller
 * frees what was made also after a failure. */
TRL_NODISCARD trl_err trli_reductions_create(trli_program *program, trli_reductions *reductions);
void trli_reductions_free(trli_reductions *reductions);
/* The points of a reduction on a patch; false: it has no share. */
bool trli_reduction_box(const trli_program *program, const trli_step *s, int patch, trl_box *box);
/* The batch that is computed in a step's place, or NULL. */
const trli_reduction_batch *trli_reductions_at(const trli_reductions *reductions, const trli_step *step);

/* Whether a program reduces something, and only scalars need the results. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_reductions_come_last(const trli_program *program, bool *last);

/* Whether values on sides count less. */
bool trli_is_weighted(const trli_reduced_step *reduction);

/* ---- fused_sums.c ---- */

/* Whether GPUs may make a program's sums so: where the host is told of them (told_sums_impl.h). */
bool trli_fused_sums_for_gpus(const trli_program *program);
/* Find the kernels that make groups of a program's reductions, if it fuses these. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_fused_sums_find(trli_program *program);
/* Those of a step's kernel, or NULL. */
trli_fused_sums *trli_fused_sums_of(const trli_program *program, const trli_step *step);
/* What the tasks of a group's kernel on a patch add to; unchanged if no kernel makes the group. */
void trli_fused_sums_share(const trli_program *program, const trli_reduction_group *group, int patch,
                           trl_handle *share);
/* The step whose kernel makes a reduction's sum, or NULL. */
const trli_step *trli_fused_sums_maker(const trli_program *program, const trli_step *reduce);
/* What they need of a thread's scratch in place of the interpreter's registers. */
size_t trli_fused_sums_scratch(const trli_program *program, const trli_fused_sums *fused);

/* Scratch of a thread that computes some group. */
size_t trli_reductions_scratch(const trli_reductions *reductions);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What dividing a kernel for CPUs and for GPUs share. */
#ifndef TRLI_PARTING_IMPL_H
#define TRLI_PARTING_IMPL_H

#include "parts_impl.h"

typedef struct trli_parting {
    trli_program *program;
    const trli_step *step;
    const trli_step_plan *plan;
    trli_ir *ir;
    trli_walk *walk;
    trli_parts *parts;
    int32_t capacity;
    int *input_of; /* by field: which input of the step it is */
    int *slab_of;  /* by field: the first of the step's slabs that follow from the row beside them, or -1 */
    int *next;     /* by slab: the next one of its field, or -1 */
} trli_parting;

/* Decide the parts of each live kernel of a program. parts: destroyed by the caller, also after a failure. Fails with
 * MEMORY, or as decide does. */
TRL_NODISCARD trl_err trli_parting_run(trli_program *program, trl_err (*decide)(trli_parting *), trli_parts **parts);
/* Add a part of some of the results, ascending; or the one part that has all. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_parting_add(trli_parting *d, int nroots, const int *root);
TRL_NODISCARD trl_err trli_parting_add_whole(trli_parting *d);
/* Find the inputs of all parts that were added, and what several read. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_parting_end(trli_parting *d);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a model has once it runs: memory, workers, compiled kernels, and what a step changes. */
#ifndef TRLI_MODEL_RUN_IMPL_H
#define TRLI_MODEL_RUN_IMPL_H

#include <trl_field_manager.h>

#include "model_impl.h"
#include "native_impl.h"

/* The first value that was not finite, in the order of variables and global points. */
typedef struct trli_nonfinite {
    bool found;
    int variable;
    trl_gidx point[3];
    double value;
} trli_nonfinite;

struct trli_model_run {
    trl_workers *workers;
    int nworkers;
    trl_field_manager *memory; /* of slots and scratch */
    void ***base;              /* [slot][local patch] memory, of a block of the manager */
    void **scratch;            /* [nworkers] */
    size_t scratch_bytes;
    int64_t step_number;
    trli_nonfinite *nonfinite; /* [nworkers] */
    trli_compiler *compiler;   /* NULL: never */
    bool compiling;            /* some kernels are still to come */
    double first_run;          /* s; 0: not yet */
};

/* The array of a field on a local patch, as the slot table stands now. */
trl_array trli_model_array(const trli_model *model, int field, int local_patch);
/* Exchange the memory of two persistent fields of one shape: time levels rotate. */
void trli_model_swap(trli_model *model, int field_a, int field_b);

#endif

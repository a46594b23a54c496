/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs: steps in the order in which they are run. */
#ifndef TRLI_PROGRAM_IMPL_H
#define TRLI_PROGRAM_IMPL_H

#include "fields_impl.h"
#include "step_impl.h"
#include <trl_graph.h>

typedef struct trli_model trli_model;
typedef struct trli_program trli_program;
typedef struct trli_plan trli_plan;                           /* of the analysis: passes/plan_impl.h */
typedef struct trli_work trli_work;                           /* of the cost model: passes/cost_impl.h */
typedef struct trli_parts trli_parts;                         /* of kernels: passes/parts_impl.h */
typedef struct trli_program_execution trli_program_execution; /* of execution: run/execution_impl.h */

/* A named value that its readers' kernels compute, or that is stored where that costs less (cost_impl.h). */
typedef struct trli_candidate {
    const char *name;
    trli_ir_value value;
    trl_location location;
    int position; /* of a step that could store it */
    int uses;     /* offsets at which kernels need it */
    int inputs;   /* fields it reads */
    double additions;
    bool weighed, stored;
    bool looked_at, lasting; /* nothing changes it: stored once, by the program of what lasts */
} trli_candidate;

/* What finds scalars while a program runs: a poll task, which the tasks that read them wait for, and no others. */
typedef struct trli_scalar_source {
    const char *name;
    trl_task_fn find;
    void *data;
    int n;
    int *scalar; /* [n] */
} trli_scalar_source;

struct trli_program {
    trli_model *model;
    int number; /* among the model's */
    const char *name;
    bool once;           /* it is run one time */
    bool each_step;      /* or in each step */
    bool arranging;      /* what is appended will be put in another order */
    bool fuses_sums;     /* kernels make sums of what they read and compute on their way */
    bool fetched;        /* whoever reads its scalars fetches them first (trli_frame_fetch_scalars) */
    bool tells;          /* trli_program_tells (run/told_sums_impl.h) */
    bool joins;          /* trli_program_joins (run/joint_sums_impl.h) */
    trli_program *after; /* brings ghosts that this one does not: trli_program_follow; NULL: this one brings them all */
    bool is_followed;    /* it is another one's `after` */
    trl_place place;     /* of the steps that are appended */
    trli_step *step;
    int nsteps, capacity;
    int nroots, *root, roots_capacity; /* fields that must hold values at the end */
    int nscalar_roots, *scalar_root, scalar_roots_capacity;
    const trli_scalar_source *source; /* NULL: all that it does not compute is known before it runs */
    int *stored_field;                /* by value: field that holds it in this program, -1: none */
    int stored_count;
    int ncandidates, candidates_capacity;
    trli_candidate *candidate;
    trli_plan *plan;             /* once it is analysed */
    trli_work *work;             /* [nsteps], likewise */
    trli_parts *parts;           /* [nsteps], likewise */
    trli_parts *gpu_parts;       /* [nsteps], if GPUs are asked for */
    trli_program_execution *run; /* once it is frozen */
};

TRL_NODISCARD trl_err trli_program_create(trli_model *model, const char *name,
                                          trli_program **program); /* owned by the model */
/* Append a kernel that stores values to fields of one location. The arrays are copied. check: variables, or NULL. */
TRL_NODISCARD trl_err trli_program_add_kernel(trli_program *program, const char *label, int n, const int *field,
                                              const trli_ir_value *value, const int *variable);
/* The field that holds a value at a location in this program; appends its kernel on first use. why: see
 * trli_model_field. */
TRL_NODISCARD trl_err trli_program_store(trli_program *program, const char *name, const char *why, trli_ir_value value,
                                         trl_location location, const trli_boundary_source *boundary, int *field);
/* Offer to store a named value at this place, which is decided when all of its readers are known. */
TRL_NODISCARD trl_err trli_program_add_candidate(trli_program *program, const char *name, trli_ir_value value,
                                                 trl_location location);
/* The scalar that a reduction of a value over the points of a location gives; *scalar is its handle. */
TRL_NODISCARD trl_err trli_program_reduce(trli_program *program, const char *label, trli_ir_value value,
                                          trl_location location, trli_reduce_kind kind, bool weighted,
                                          const trl_gidx *point, int *scalar);
/* Have a field hold values at the end, those of points around others', so deep, and beyond sides too: see
 * trli_read_step. */
TRL_NODISCARD trl_err trli_program_read(trli_program *program, int field, int depth, const trl_offsets *side);
/* The step that writes the field or scalar that a node reads, or NULL; *which: its output. */
const trli_step *trli_program_producer(const trli_program *program, const trli_node *n, int *which);
/* The scalar that holds a value which varies nowhere. */
TRL_NODISCARD trl_err trli_program_scalar(trli_program *program, const char *label, trli_ir_value value, int *scalar);
/* Likewise, of a scalar of the model that no other program makes. */
TRL_NODISCARD trl_err trli_program_set_scalar(trli_program *program, const char *label, trli_ir_value value,
                                              int scalar);
/* Reserve the next step, zeroed; NULL and a recorded error without memory. */
trli_step *trli_program_append(trli_program *program, trli_step_kind kind, const char *label);
TRL_NODISCARD trl_err trli_program_add_root(trli_program *program, int field);
TRL_NODISCARD trl_err trli_program_add_scalar_root(trli_program *program, int scalar);
void trli_program_destroy(trli_program **program);
/* Free what a step owns. */
void trli_step_free(trli_step *step);

#endif

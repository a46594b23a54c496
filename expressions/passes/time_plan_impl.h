/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Time blocking, the plan: what is computed in one pass over memory, and how far each part of it has to stay behind. */
#ifndef TRLI_TIME_PLAN_IMPL_H
#define TRLI_TIME_PLAN_IMPL_H

#include "plan_impl.h"

/* Fields that exchange their memory after each execution. */
typedef struct trli_rotation {
    int n;
    const int *state, *next; /* [n] */
} trli_rotation;

/* A kernel of one execution, of a step or of a slab, on its whole box; or the images of a field's points beyond
 * periodic sides that the patch has both of. */
typedef struct trli_time_op {
    const trli_step *step;
    const trli_step_plan *plan;
    const trli_slab *slab; /* NULL: the step's own kernel */
    /* All of a field beyond periodic sides, by no kernel. slab: one of those that a kernel may set itself, or NULL. */
    bool images;
    int execution; /* 0, 1, ... */
    trl_box box;
    trl_lidx shift[2]; /* its distance behind the pass, along the axis of blocks and the axis of fronts */
    trl_lidx start[2]; /* where it begins along them, if they are periodic */
    int ninputs, noutputs;
    int *field; /* [ninputs + noutputs] whose memory it touches, as the fields stand before the first execution */
    const int *output; /* [noutputs] the fields that the step or slab names */
} trli_time_op;

#define TRLI_ANY_PATCH (-1)

typedef struct trli_time_plan {
    trli_model *model;
    int patch; /* local; TRLI_ANY_PATCH: one that shares all its sides with others and has all conditions, too */
    trl_offsets *deep; /* [model->nfields] what is read beyond sides that patches share before it is computed */
    bool *touched;     /* [model->nfields] by a pass, once it is known that patches are thick enough */
    int axis[2];       /* of blocks, of fronts */
    int nops, capacity;
    trli_time_op *op;                      /* in the order of the executions and their steps */
    int nslots;                            /* that are read or written */
    trl_lidx most_shift[2], most_start[2]; /* over all ops */
} trli_time_plan;

/* Before fields have memory: plan as many of *executions as patches are thick enough for, with no more computed points
 * than `excess` times their own. *values: of all fields of a pass on this rank. *why: as below. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_time_plan_fit(const trli_program *program, const trli_rotation *rotation, double excess,
                                         int *executions, trli_time_plan *plan, int64_t *values, const char **why);
/* Give all fields of a pass the ghosts that it needs, and the same ones, so that those of one location can share their
 * memory; what lasts is demanded as deep of its program. */
void trli_time_plan_deepen(const trli_time_plan *plan, trli_program *program);
/* The kernels of `executions` of a program and their boxes on a patch. *why: NULL, or what is in the way of a pass.
 * Free it also after a failure. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_time_plan_list(const trli_program *program, const trli_rotation *rotation, int patch,
                                          int executions, trli_time_plan *plan, const char **why);
/* The same with shifts, once there is memory; with a reason in *why the plan is empty. */
TRL_NODISCARD trl_err trli_time_plan_make(const trli_program *program, const trli_rotation *rotation, int patch,
                                          int executions, trli_time_plan *plan, const char **why);
void trli_time_plan_free(trli_time_plan *plan);
/* Seconds that one worker takes for so many points of each kernel of the steps, as the cost model predicts them. */
double trli_time_plan_seconds(const trli_program *program, const trli_time_plan *plan, int64_t points, int workers);
/* Whether a patch has both sides of a periodic axis. */
bool trli_goes_round(const trl_layout *layout, int axis);

#endif

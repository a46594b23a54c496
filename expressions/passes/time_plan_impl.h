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
    trl_lidx skew;     /* planes by which its box lies beyond the patch, in a pass that is skewed */
    int ninputs, noutputs;
    int *field; /* [ninputs + noutputs] whose memory it touches, as the fields stand before the first execution */
    const int *output; /* [noutputs] the fields that the step or slab names */
} trli_time_op;

#define TRLI_ANY_PATCH (-1)

/* Planes of a result that the next patch computes and this one reads, counted from the end of this one. */
typedef struct trli_time_face {
    int op;    /* whose result they are; -1: what the field holds before the pass */
    int field; /* whose memory has them, as fields stand before the first execution */
    trl_lidx lo, hi;
} trli_time_face;

typedef struct trli_time_plan {
    trli_model *model;
    int patch; /* local; TRLI_ANY_PATCH: one that shares all its sides with others and has all conditions, too */
    trl_offsets *deep; /* [model->nfields] what is read beyond sides that patches share before it is computed */
    bool *touched;     /* [model->nfields] by a pass, once it is known that patches are thick enough */
    int axis[2];       /* of blocks, of fronts */
    bool skewed;       /* patches follow one another along the axis of fronts, and compute nothing twice */
    int nfaces, faces_capacity;
    trli_time_face *face;
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
                                          int executions, bool skewed, trli_time_plan *plan, const char **why);
/* The same with shifts, once there is memory; with a reason in *why the plan is empty. */
TRL_NODISCARD trl_err trli_time_plan_make(const trli_program *program, const trli_rotation *rotation, int patch,
                                          int executions, bool skewed, trli_time_plan *plan, const char **why);
void trli_time_plan_free(trli_time_plan *plan);
/* Seconds that one worker takes for so many points of each kernel of the steps, as the cost model predicts them. */
double trli_time_plan_seconds(const trli_program *program, const trli_time_plan *plan, int64_t points, int workers);
/* ---- time_plan_patch.c ---- */

/* Whether a patch has both sides of a periodic axis. */
bool trli_goes_round(const trl_layout *layout, int axis);
/* What a kernel reads of an input, around the points that it computes. */
trl_offsets trli_time_op_reach(const trli_time_op *op, int input);
/* Whether a side of the plan's patch is shared with another patch; of any patch: all are. */
bool trli_time_plan_shares(const trli_time_plan *plan, int axis, int side);
/* Cells of the plan's patch along an axis; of any patch, the fewest. */
trl_lidx trli_time_plan_cells(const trli_time_plan *plan, int axis);

/* How a pass is cut into blocks and fronts: their number, the first row and plane, rows of a block, planes of a front.
 */
typedef struct trli_time_cuts {
    trl_lidx first[2], thick[2];
    int count[2];
} trli_time_cuts;

/* The points of a kernel in block (which: 0) or front (1) i, along that axis; of a periodic axis possibly those one
 * period further. */
void trli_time_clip(const trli_time_plan *plan, const trli_time_cuts *cuts, const trli_time_op *op, int which, int i,
                    trl_box *box);

/* ---- time_skew.c ---- */

/* Whether each rank has one patch, and others lie behind it along the axis of fronts. */
bool trli_time_may_skew(const trli_model *model);
/* From the first kernel to the last: by how much each has moved. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_time_plan_find_skews(trli_time_plan *plan);
/* From the last kernel to the first: list the faces of the i-th, and correct how much more than the patch it computes,
 * as follows from what is needed of its results. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_time_plan_move(trli_time_plan *plan, int i, trl_offsets *by);
/* After that: list the faces of what fields hold before the pass, and let plan->deep have all that is touched beyond
 * the end of the patch. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_time_plan_first_faces(trli_time_plan *plan);
/* Before there is memory: whether a rank has sent its first planes long before it needs those of the next one. */
bool trli_time_plan_skew_fits(const trli_time_plan *plan);
/* Once there is memory: whether faces stay until they are read and sent, whatever a pass does meanwhile. */
const char *trli_time_plan_refuse_skew(const trli_time_plan *plan);

#endif

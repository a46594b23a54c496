/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The messages of a skewed pass: faces, which the next patch computes first and this one reads last, and the first
 * planes, which the patch before computes and sends back. Each block of a pass has its own. */
#ifndef TRLI_TIME_FACES_IMPL_H
#define TRLI_TIME_FACES_IMPL_H

#include "builder_impl.h"
#include "frame_impl.h"
#include "time_plan_impl.h"

/* Of the frame of a pass: before it, and along the axis of fronts while it is under way. */
enum { TRLI_FACES_EXCHANGE = 1, TRLI_PASS_EXCHANGES };

/* The frame of a pass, as the tasks of messages know it. */
typedef struct trli_pass_frame {
    trli_frame frame; /* first, for the tasks of an exchange */
    int executions;   /* of the pass under way */
} trli_pass_frame;

typedef struct trli_time_faces trli_time_faces;

/* The last front that touches what is sent to the patch before, or comes back from it, and the first one that reads
 * faces. */
void trli_time_faces_fronts(const trli_time_plan *plan, const trli_time_cuts *cuts, int *last, int *first);

/* The plan and the cuts, of the rank's only patch, outlive the faces. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_time_faces_create(const trli_time_plan *plan, const trli_time_cuts *cuts,
                                             trli_time_faces **faces);
/* Make the exchange. loans: of the frame of the fields, if faces may be read there. Collective: yes. Fails with MEMORY,
 * MPI. */
TRL_NODISCARD trl_err trli_time_faces_connect(trli_time_faces *faces, const struct trli_loans *loans,
                                              trli_exchange_run *run);
/* After the exchange. */
void trli_time_faces_destroy(trli_time_faces **faces);

/* The tasks of a graph: what begins; before and after each task of a block, which has fronts up to the last that
 * touches what is sent, or the first that reads faces, or the last of all; what ends. */
typedef enum trli_time_place { TRLI_FACES_SENT = 1, TRLI_FACES_READ = 2, TRLI_FACES_BACK = 4 } trli_time_place;
TRL_NODISCARD trl_err trli_time_faces_begin(trli_time_faces *faces, trli_task_builder *builder);
TRL_NODISCARD trl_err trli_time_faces_before(trli_time_faces *faces, trli_task_builder *builder, int block,
                                             unsigned places, trl_task task);
TRL_NODISCARD trl_err trli_time_faces_after(trli_time_faces *faces, trli_task_builder *builder, int block,
                                            unsigned places, trl_handle *front);
TRL_NODISCARD trl_err trli_time_faces_end(trli_time_faces *faces, trli_task_builder *builder);

#endif

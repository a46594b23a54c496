/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs as bodies of calls: run inside of a task graph, once or until a function says that it is enough. */
#ifndef TRLI_PROGRAM_CALLS_IMPL_H
#define TRLI_PROGRAM_CALLS_IMPL_H

#include "frame_impl.h"
#include "model_impl.h"

/* Programs of a model share the memory of a frame: while a call goes on, no other one, and no run, is in its frame.
 * Kernels that are still being compiled come with the next run of the graph. */
typedef struct trli_program_call {
    const trli_program *program; /* frozen */
    trli_frame *frame;           /* NULL: that of the task graph's run */
    void *data;                  /* of the functions */
    /* OPTIONAL. Before the first round: sets scalars of the frame. Not called after an error. What fails on one rank
     * alone, here or in `again`, the others hear of by the reductions that follow. */
    trl_err (*begin)(void *data, trli_frame *frame);
    /* OPTIONAL; NULL: one round. After each round: may set scalars and exchange fields of the frame, and says whether
     * another round follows (*again: false on entry), the same on all ranks, also where it returns an error: from
     * scalars that are reduced, or from `round`. Called after an error of this rank, too, as others go on until a
     * reduction tells them of it: then it is no longer called on any rank, and the call is over. */
    trl_err (*again)(void *data, trli_frame *frame, int64_t round, bool *again);
    int64_t rounds; /* more are an error */
} trli_program_call;

/* Add a call to a task graph. `call` lives as long as the graph. What the program touches the caller declares, as
 * accesses or dependencies of the task. A run that ends without an error may have ended early on this rank, because of
 * an error of another one: agree on it (trl_context_agree). Workers have no devices. Fails with USAGE, MEMORY. */
TRL_NODISCARD trl_err trli_program_add_call(trl_graph *graph, const char *name, const trli_program_call *call,
                                            trl_task *task);
/* The part of `again` that calls of graphs which contain calls of a program need: whether a rank had failed when it was
 * run last, or communication has: the same on all ranks. */
bool trli_program_call_is_lost(const trli_program *program, const trli_frame *frame);

#endif

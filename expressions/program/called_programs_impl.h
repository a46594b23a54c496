/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs that are called: in the task graph of another program of their model, which has a step for the call, or in
 * a task graph that is no program's (run/program_calls_impl.h). The calls of programs form a tree, known when the model
 * is frozen, and the memory plan follows it: what a program computes on the way is apart from what each of its callers
 * has live meanwhile, and from that of programs that may run at the same time. */
#ifndef TRLI_CALLED_PROGRAMS_IMPL_H
#define TRLI_CALLED_PROGRAMS_IMPL_H

#include "model_impl.h"

struct trli_frame;

typedef struct trli_program_call {
    const trli_program *program;
    struct trli_frame *frame; /* of its model; NULL: that of the task graph's run, or of the calling program */
    void *data;               /* of the functions */
    /* OPTIONAL. Before the first round: sets scalars of the frame. Not called after an error. What fails on one rank
     * alone, here or in `again`, the others hear of by the reductions that follow. */
    trl_err (*begin)(void *data, struct trli_frame *frame);
    /* OPTIONAL; NULL: one round. After each round: may set scalars and exchange fields of the frame (trli_frame_swap),
     * and says whether another round follows (*again: false on entry), the same on all ranks, also where it returns an
     * error: from scalars that are reduced, or from `round`. Called after an error of this rank, too, as others go on
     * until a reduction tells them of it: then it is no longer called on any rank, and the call is over. */
    trl_err (*again)(void *data, struct trli_frame *frame, int64_t round, bool *again);
    int64_t rounds; /* more are an error */
    /* In a step: what the functions change. */
    int nfields, nscalars;
    const int *field, *scalar;
} trli_program_call;

/* Append a step that runs a program in the frame of the calling one. `call` lives as long as the model. The called
 * program was created before the calling one and has all of its steps; what it shares with other programs is
 * persistent. Ghosts of fields that it changes are set again before the calling program reads them, or its analysis
 * fails. Fails with USAGE, MEMORY. */
TRL_NODISCARD trl_err trli_program_append_call(trli_program *program, const char *label, const trli_program_call *call);
/* Before the model is frozen: the two may run in one frame at once, as calls of a task graph that no dependency puts in
 * order. Steps of one program need not say so. Fails with USAGE, MEMORY. */
TRL_NODISCARD trl_err trli_programs_meet(trli_program *one, trli_program *other);
/* Whether a program is another one, or is called in it. */
bool trli_program_is_in(const trli_program *program, const trli_program *other);
/* Whether a step of a program, or of one that it calls, or a function of such a call, sets a scalar. */
bool trli_program_sets(const trli_program *program, int scalar);

#endif

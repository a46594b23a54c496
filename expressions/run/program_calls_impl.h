/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs as bodies of calls: run inside of a task graph, once or until a function says that it is enough. */
#ifndef TRLI_PROGRAM_CALLS_IMPL_H
#define TRLI_PROGRAM_CALLS_IMPL_H

#include "called_programs_impl.h"
#include "frame_impl.h"

/* Add a call of a frozen program to a task graph. `call` lives as long as the graph. What the program touches the
 * caller declares, as accesses or dependencies of the task. Two calls in one frame that no dependency puts in order are
 * refused when the graph is frozen, unless the memory plan has the programs apart (trli_programs_meet); and where only
 * the run knows the frames, the run fails. Kernels that are still being compiled come with the next run of the graph. A
 * run that ends without an error may have ended early on this rank, because of an error of another one: agree on it
 * (trl_context_agree). Workers have no devices. Fails with USAGE, MEMORY. */
TRL_NODISCARD trl_err trli_program_add_call(trl_graph *graph, const char *name, const trli_program_call *call,
                                            trl_task *task);
/* The same in the graph of another program, which has a step for it. */
TRL_NODISCARD trl_err trli_program_add_inner_call(trl_graph *graph, const char *name, const trli_program_call *call,
                                                  trl_task *task);
/* The part of `again` that calls of graphs which contain calls of a program need: whether a rank had failed when it, or
 * a program that it calls, was run last, or communication has: the same on all ranks. */
bool trli_program_call_is_lost(const trli_program *program, const trli_frame *frame);

/* ---- program_claims.c: which programs run in a frame ---- */

/* Before each run of a program, called or not. */
void trli_program_note_run(const trli_program *program, trli_frame *frame);
/* A program begins to run in a frame, by a call or a run of its own, whose name is `owner`. Fails with USAGE if another
 * one runs there that may not meet it. */
TRL_NODISCARD trl_err trli_frame_claim(trli_frame *frame, const trli_program *program, const void *owner);
/* It has ended, whether it was claimed or not. Fails with USAGE if another one was refused meanwhile: its messages have
 * been received, so what the frame holds is not known. */
TRL_NODISCARD trl_err trli_frame_leave(trli_frame *frame, const void *owner);

#endif

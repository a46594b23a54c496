/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sums of several runs of programs in one message. On several ranks a program that joins ends with this rank's part of
 * its sums, which are packed into a message; without other ranks its scalars are known after its run. */
#ifndef TRLI_JOINT_SUMS_IMPL_H
#define TRLI_JOINT_SUMS_IMPL_H

#include "frame_impl.h"
#include "model_impl.h"

/* A run of a program, and which of its scalars go where. */
typedef struct trli_joined {
    const trli_program *program;
    int n;
    const int *scalar; /* [n] */
    double *value;     /* [n] */
} trli_joined;

typedef struct trli_joint_sums {
    trli_batch_run message;
    int n;
    trli_joined *run; /* each has a sum at least */
} trli_joint_sums;

/* ---- before programs are frozen ---- */

/* A program whose reductions are sums, and whose users take scalars with the functions below. most: sums of all
 * programs that are in one message with it. */
void trli_program_joins(trli_program *program, int most);

/* ---- runs ---- */

/* Of a frame that is made, and that ends. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_joint_sums_create(trli_frame *frame);
void trli_joint_sums_destroy(trli_frame *frame);
/* In place of the message of a program that joins: this rank's part is in the batch. */
static inline bool trli_sums_join(const trli_frame *frame, const trli_program *program)
{
    return program->joins && trl_context_ranks(frame->model->ctx) > 1;
}
/* Begin another message. */
void trli_joint_sums_begin(trli_frame *frame);
/* Right after a run of a program that joins: value[n] is to get these scalars of it, now or with the message. */
void trli_joint_sums_add(trli_frame *frame, const trli_program *program, int n, const int *scalar, double *value);
/* The message of all that were added. *failed: a rank had failed before it sent its part. Collective: yes. Fails with
 * MPI. */
TRL_NODISCARD trl_err trli_joint_sums_bring(trli_frame *frame, bool *failed);

#endif

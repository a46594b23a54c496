/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Scalars that a GPU finds for the kernels of a step, which read them from its memory: dt under cfl, which follows from
 * the largest values of a program's reductions, and what follows from dt. The host learns them once the step is
 * enqueued. */
#ifndef TRLI_LATE_SCALARS_IMPL_H
#define TRLI_LATE_SCALARS_IMPL_H

#include "frame_impl.h"
#include "gpu_kernel_impl.h"
#include "tasks_impl.h"

typedef struct trli_late_scalars {
    const trli_program *finder, *reader;
    /* [n] dt, the time after the step, the times of the stages between, half of the last two dt where methods kick. */
    int n, *scalar;
    double cfl, most, end; /* most: dt at most; 0: there is no such thing */
    bool has_end, kicks;
    int stages;
    const double *c; /* [stages] */
    /* Text in TRL_LATE, a namespace: rate(value) finds the largest rate of [nvalues] scalars that the finder's
     * reductions give; all threads of a block call it, and the first one has it. */
    const char *rate;
    int nvalues;
    const int *value;
    int share; /* in the place of this reduction's shares, of patch 0, devices have them */
    trli_gpu_kernel *kernel;
} trli_late_scalars;

/* Once programs are analysed: leave it, if GPUs do not find or read all of them. */
void trli_late_scalars_check(trli_model *model);
/* Write the text of the kernel that finds them. Ask for that kernel; fails with MEMORY. */
void trli_late_scalars_write(const trli_late_scalars *late, FILE *out);
TRL_NODISCARD trl_err trli_late_scalars_request(const trli_model *model);
/* Where a batch of the program's reductions ends: whether a GPU may find them, and the task; numbers and threads of its
 * launch. */
bool trli_late_scalars_found_by(const trli_program *program);
bool trli_late_scalars_found_in(const trli_program *program, const trli_reduction_batch *batch);
trl_err trli_task_late_scalars_gpu(void *data, const trl_task_args *args, bool *done);
enum { TRLI_LATE_NUMBERS = 64, TRLI_LATE_THREADS = 32 };
size_t trli_late_scalars_scratch(const trli_program *program);
/* Of a program whose kernels read them; NULL: it is another one. */
const trli_late_scalars *trli_late_scalars_read_by(const trli_program *program);
/* The place of a scalar among them, or -1. */
int trli_late_scalars_place(const trli_late_scalars *late, int scalar);

/* Whether nothing that kernels of its programs read changes from step to step but them: neither the time at which a
 * step begins, nor its number, nor another scalar. */
bool trli_late_scalars_suffice(const trli_late_scalars *late, int other);

/* Bytes of what the host is told, of so many steps. */
enum { TRLI_LATE_STEPS = 128 };
size_t trli_late_scalars_told(const trli_model *model);
/* What a scalar is given as to kernels: those that they find are not. */
double trli_frame_given(const trli_frame *frame, int scalar);
/* What launches depend on beside it. */
enum { TRLI_LATE_STATE = 5 };
void trli_frame_late_state(const trli_frame *frame, double state[TRLI_LATE_STATE]);
/* Where kernels in a memory space find them in this run; NULL: they are given all scalars. */
const double *trli_frame_late(const trli_frame *frame, int space);
/* Before a run of the finder: of a step that begins at a time, after one of this dt. */
void trli_frame_late_begin(trli_frame *frame, double time, double before);
/* The same of a step that goes on from the one before, whatever that found; false: none was. The host is told of the
 * step in a place of its own, below TRLI_LATE_STEPS, which frame->late.step is. */
bool trli_frame_late_go_on(trli_frame *frame, int step);
/* Right after it: whether a GPU finds them; else the host has its results. */
bool trli_frame_late_find(trli_frame *frame);
/* Once that run is over, in the place frame->late.step: take the results of the finder's reductions, with what workers
 * found, and what the GPU made of its own. */
void trli_frame_late_take(trli_frame *frame);

#endif

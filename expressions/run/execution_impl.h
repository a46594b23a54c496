/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the execution of a program needs beside its plan: compiled kernels, exchanges, the task graph. */
#ifndef TRLI_EXECUTION_IMPL_H
#define TRLI_EXECUTION_IMPL_H

#include <trl_graph.h>

#include "codes_impl.h"
#include "interpreter_impl.h"
#include "parts_impl.h"
#include "reductions_impl.h"

typedef struct trli_slab_run {
    trli_kernel *kernel; /* KERNEL; else NULL */
    trli_code_use use;   /* compiled */
    trli_code_use gpu;   /* for GPUs */
    bool within;         /* the compiled kernel of its step computes it: it needs no ghosts in memory */
} trli_slab_run;

typedef struct trli_step_run {
    trli_kernel *kernel;        /* of all that has values; else NULL */
    trli_code_use *part;        /* KERNEL: [parts] compiled */
    bool native;                /* all of them are; else it is interpreted */
    struct trli_tuning *tuning; /* of a kernel that may be compiled; NULL: it is not */
    uint64_t texts;             /* a digest of the texts of its functions */
    trli_slab_run *slab;        /* [nslabs] */
    trli_code_use *gpu;         /* KERNEL: [parts for GPUs]; SCALAR: one; NULL: GPUs do not do it */
    trli_ir_value twice[2];     /* SCALAR: its value for GPUs, which tell the host */
    bool gpu_folds;             /* these compute the ghosts of its slabs, */
    bool gpu_round;             /* and read points at the other sides of the axes that trli_step_plan.round says */
} trli_step_run;

/* An exchange of a program, and what it moves. */
typedef struct trli_program_exchange {
    const trli_exchanged *what;
    struct trl_exchange *plan;
} trli_program_exchange;

struct trli_program_execution {
    trli_step_run *step; /* [nsteps] */
    trl_graph *graph;
    struct trli_task_data *tasks;
    int64_t bytes_moved; /* read and written by kernels per execution on this rank */
    /* Of those of the model: a frame has what is in flight. */
    int first_exchange, nexchanges, exchanges_capacity;
    trli_program_exchange *exchanged; /* [nexchanges] */
    trli_reductions reductions;
    int told_share; /* in the place of this reduction's shares, of patch 0, devices have told results; -1: never */
};

static inline trli_step_run *trli_run_of(const trli_program *program, const trli_step *s)
{
    return &program->run->step[s - program->step];
}

/* Room for what the execution of an analysed program needs. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_execution_create(trli_program *program);
void trli_execution_destroy(trli_program *program);
struct trli_rotation; /* passes/time_plan_impl.h */

/* Build the tasks of a program and freeze their graph. rotation: of fields that exchange their memory after each run;
 * NULL: none do. Collective: yes. */
TRL_NODISCARD trl_err trli_tasks_build(trli_program *program, const struct trli_rotation *rotation);
void trli_tasks_free(trli_program *program);

/* Seconds of a frozen program's kernel in one run, on all workers of this rank: predicted, the larger of bytes by
 * bandwidth and operations by their rate (Williams, Waterman & Patterson, "Roofline", 2009; memory: bytes take longer),
 * and the mean of timed runs (0: none was). */
typedef struct trli_step_time {
    double predicted, measured;
    bool memory;
} trli_step_time;
trli_step_time trli_step_time_of(const trli_program *program, const trli_step *step);

#endif

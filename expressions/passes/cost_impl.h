/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What kernels cost: operations as they are computed, bytes, seconds by the balance of this machine, and what follows
 * for the choice between storing a named value and computing it again wherever it is read. */
#ifndef TRLI_COST_IMPL_H
#define TRLI_COST_IMPL_H

#include "model_impl.h"

/* A kernel at one of its points. A value that is needed at n offsets is computed n times; one that varies neither along
 * x nor, in more than one dimension, along y is computed outside of the loop over points and counts nothing. */
struct trli_work {
    double flops;         /* + - * / sqrt, comparisons and choices 1 each, functions by a table (cost.c) */
    double additions;     /* the same by the time that they take, with loads and stores */
    int inputs, outputs;  /* fields, 8 bytes each */
    int values, samples;  /* computed values; at all their offsets */
    int call, plane, row; /* of those, once for a call, a plane and a row (or for its points, along x) */
};

/* cut: a value that is read from a field instead of being computed, or TRLI_NO_VALUE. uses: NULL, or by value: how many
 * offsets each is needed at is added. The model's walk is then that of the roots. by: how many additions divisions and
 * functions count. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_work_of(trli_model *model, const trli_balance *by, int nroots, const trli_ir_value *roots,
                                   trli_ir_value cut, int *uses, trli_work *work);

/* Bytes a second that fields of a step are read and written at. */
static inline double trli_model_bandwidth(const trli_model *model)
{
    return model->machine.streaming ? model->machine.balance.memory : model->machine.balance.cache;
}

/* Seconds that a point takes at so many operations a second, on all workers of this rank: the larger of bytes by
 * bandwidth and operations by their rate. *memory: it is the bytes. */
double trli_work_seconds(const trli_model *model, const trli_work *work, double operations, bool *memory);

/* The work of a step of which only is known which fields it reads and writes. */
trli_work trli_work_of_fields(int inputs, int outputs);

/* Seconds that a task of so many points takes on one of the workers of this rank, before any was timed. work: of a
 * point; NULL: it has no points. */
double trli_task_seconds(const trli_model *model, const trli_work *work, int64_t points, int workers);

/* Seconds that the task takes which begins or ends a message, before any was timed. */
#define TRLI_MESSAGE_SECONDS 1e-6

/* Count the work of a program's kernels, reductions and plugins, after analysis. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_program_count_work(trli_program *program);

/* Store the candidates of a program whose storage is cheaper than computing them at each place of use. After lowering,
 * before analysis. The bits stay. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_program_cut(trli_program *program);

#endif

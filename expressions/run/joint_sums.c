/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "joint_sums_impl.h"

#include <math.h>
#include <string.h>

#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "memory_impl.h"
#include "tasks_impl.h"

void trli_program_joins(trli_program *program, int most)
{
    int *sent = &program->model->sent[TRLI_SENT_JOINT];
    program->joins = true;
    if (most > *sent) *sent = most;
}

trl_err trli_joint_sums_create(trli_frame *frame)
{
    trl_context *ctx = frame->model->ctx;
    const int most = frame->model->sent[TRLI_SENT_JOINT];
    trli_joint_sums *j;
    if (most == 0) return TRL_OK;
    frame->joint = j = trli_new(ctx, 1, sizeof *j);
    if (j) j->run = trli_new(ctx, (size_t)most, sizeof *j->run);
    if (!j || !j->run) return trli_no_memory(ctx, NULL, "for reductions");
    return trli_batch_create(ctx, &j->message, TRLI_SENT_JOINT, most, 0);
}

void trli_joint_sums_destroy(trli_frame *frame)
{
    trli_joint_sums *j = frame->joint;
    frame->joint = NULL;
    if (!j) return;
    trli_batch_destroy(frame, &j->message);
    trli_free(j->run);
    trli_free(j);
}

static void take(const trli_frame *frame, const trli_joined *run)
{
    for (int i = 0; i < run->n; ++i) {
        const int scalar = run->scalar[i];
        run->value[i] = frame->scalar_valid[scalar] & 1 ? frame->scalar[scalar] : (double)NAN;
    }
}

void trli_joint_sums_begin(trli_frame *frame)
{
    frame->joint->n = frame->joint->message.nsums = 0;
}

void trli_joint_sums_add(trli_frame *frame, const trli_program *program, int n, const int *scalar, double *value)
{
    const trli_reductions *all = &program->run->reductions;
    const trli_joined run = {program, n, scalar, value};
    trli_joint_sums *j = frame->joint;
    trli_batch_run *to = &j->message;
    if (!trli_sums_join(frame, program)) {
        take(frame, &run);
        return;
    }
    for (int b = 0; b < all->nbatches; ++b) {
        const trli_batch_run *from = &frame->batch[all->first_batch + b];
        memcpy(to->sum + to->nsums, from->sum, (size_t)from->nsums * sizeof *from->sum);
        to->nsums += from->nsums;
    }
    j->run[j->n++] = run;
}

trl_err trli_joint_sums_bring(trli_frame *frame, bool *failed)
{
    trli_joint_sums *j = frame->joint;
    trli_batch_run *from = &j->message;
    const int n = j->n;
    int sums = 0;
    trl_err err = TRL_OK;
    *failed = false;
    if (n == 0) return TRL_OK;
    from->all.n = from->nsums * TRLI_PARTIAL_WORDS;
    TRL_TRY(trli_batch_post(frame, from));
    TRL_TRY(trli_batch_await(frame, from));
    for (int k = 0; k < n; ++k) {
        const trli_program *program = j->run[k].program;
        const trli_reductions *all = &program->run->reductions;
        for (int b = 0; b < all->nbatches; ++b) {
            const trli_batch_run *to = &frame->batch[all->first_batch + b];
            memcpy(to->sum, from->sum + sums, (size_t)to->nsums * sizeof *to->sum);
            sums += to->nsums;
        }
        trli_reductions_end(frame, program, 0);
        *failed |= trli_reductions_failed(frame, program);
        take(frame, &j->run[k]);
    }
done:
    return err;
}

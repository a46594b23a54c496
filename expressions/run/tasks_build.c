/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "tasks_build_impl.h"

#include "builder_impl.h"
#include "context_impl.h"
#include "graph_impl.h"
#include "pipeline_impl.h"

trl_err trli_next_tasks(trli_tasks_builder *b, const trli_step *step, int patch, int n, trli_step_task **task)
{
    trli_task_chunk *chunk;
    trl_err err = TRL_OK;
    TRL_TRY(trli_task_chunk_for(b->model->ctx, b->data, n, &chunk));
    *task = chunk->task + chunk->n;
    chunk->n += n;
    for (int i = 0; i < n; ++i)
        (*task)[i] = (trli_step_task){.program = b->program,
                                      .step = step,
                                      .plan = trli_plan_of(b->program, step),
                                      .run = trli_run_of(b->program, step),
                                      .patch = patch,
                                      .parts = {1, 1, 1}};
done:
    return err;
}

trl_err trli_next_task(trli_tasks_builder *b, const trli_step *step, int patch, trli_step_task **task)
{
    return trli_next_tasks(b, step, patch, 1, task);
}

trl_err trli_access_plugin(trli_tasks_builder *b, trl_task task, const trli_opaque *called)
{
    const trli_scalar_source *source = b->program->source;
    trl_err err = TRL_OK;
    for (int i = 0; source && i < source->n; ++i)
        TRL_TRY(trli_builder_scalar(&b->tasks, task, source->scalar[i], TRL_READ));
    err = trli_builder_plugin(&b->tasks, task, called);
done:
    return err;
}

double trli_seconds_of(const trli_tasks_builder *b, const trli_work *work, int64_t points)
{
    return trli_task_seconds(b->model, work, points, b->model->run->nworkers);
}

double trli_estimate(const trli_tasks_builder *b, const trli_step *s, const trl_box *box)
{
    return trli_seconds_of(b, &b->program->work[s - b->program->step], trl_box_points(box));
}

trl_err trli_set_work(trli_tasks_builder *b, trl_task task, const trli_work *work, int64_t points)
{
    const double bytes = (double)(work->inputs + work->outputs) * sizeof(double);
    return trl_graph_set_work(b->tasks.graph, task, (double)points * bytes, (double)points * work->flops);
}

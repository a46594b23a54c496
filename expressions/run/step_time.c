/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What kernels of a frozen program take, predicted and measured. */
#include "cost_impl.h"
#include "tasks_impl.h"

trli_step_time trli_step_time_of(const trli_program *program, const trli_step *step)
{
    const struct trli_task_data *data = program->run->tasks;
    trli_step_time time = {0};
    int64_t points = 0;
    for (int c = 0; c < data->nchunks; ++c)
        for (int i = 0; i < data->chunk[c].n; ++i) {
            const trli_step_task *t = &data->chunk[c].task[i];
            if (t->step != step || !t->computes) continue;
            points += trl_box_points(&t->box);
            time.measured +=
                trl_graph_task_seconds(program->run->graph, t->task, TRL_KIND_CPU) / program->model->run->nworkers;
        }
    time.predicted = (double)points * trli_work_seconds(program->model, &program->work[step - program->step],
                                                        program->model->machine.balance.operations, &time.memory);
    return time;
}

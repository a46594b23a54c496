/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "program_calls_impl.h"

#include "context_impl.h"
#include "execution_impl.h"
#include "lifecycle_impl.h"
#include "tasks_impl.h"

bool trli_program_call_is_lost(const trli_program *program, const trli_frame *frame)
{
    return trl_context_lost(program->model->ctx) || trli_reductions_failed(frame, program);
}

static trl_err begin(void *data, const trl_task_args *args, void **at)
{
    const trli_program_call *call = data;
    if (call->frame) *at = call->frame;
    trli_program_note_run(call->program, *at);
    return call->begin && !args->failed ? call->begin(call->data, *at) : TRL_OK;
}

static trl_err again(void *data, const trl_task_args *args, int64_t round, bool *goes_on)
{
    const trli_program_call *call = data;
    if (!call->again || trli_program_call_is_lost(call->program, args->frame)) return TRL_OK;
    return call->again(call->data, args->frame, round, goes_on);
}

trl_err trli_program_add_call(trl_graph *graph, const char *name, const trli_program_call *call, trl_task *task)
{
    const trl_call_desc desc = {.name = name,
                                .body = call->program->run->graph,
                                .data = (void *)call,
                                .begin = begin,
                                .again = again,
                                .rounds = call->again ? call->rounds : 1,
                                .flags = TRL_TASK_ALWAYS};
    return trl_graph_add_call(graph, &desc, task);
}

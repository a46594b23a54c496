/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "program_calls_impl.h"

#include "context_impl.h"
#include "execution_impl.h"
#include "slot_plan_impl.h"
#include "tasks_impl.h"

static bool has_failed(const trli_program *program, const trli_frame *frame)
{
    if (trli_reductions_failed(frame, program)) return true;
    for (int i = 0; i < program->nsteps; ++i)
        if (program->step[i].kind == TRLI_STEP_CALL && has_failed(program->step[i].call->program, frame)) return true;
    return false;
}

bool trli_program_call_is_lost(const trli_program *program, const trli_frame *frame)
{
    return trl_context_lost(program->model->ctx) || has_failed(program, frame);
}

/* ---- within another program, which has the frame ---- */

static trl_err begin_inner(void *data, const trl_task_args *args, void **at)
{
    const trli_program_call *call = data;
    trli_program_note_run(call->program, *at);
    return call->begin && !args->failed ? call->begin(call->data, *at) : TRL_OK;
}

static trl_err again_inner(void *data, const trl_task_args *args, int64_t round, bool *goes_on)
{
    const trli_program_call *call = data;
    if (!call->again || trli_program_call_is_lost(call->program, args->frame)) return TRL_OK;
    return call->again(call->data, args->frame, round, goes_on);
}

/* ---- in a graph that is no program's ---- */

static trl_err begin(void *data, const trl_task_args *args, void **at)
{
    const trli_program_call *call = data;
    if (call->frame) *at = call->frame;
    const trl_err err = trli_frame_claim(*at, call->program, data);
    const trl_err began = begin_inner(data, args, at);
    return err != TRL_OK ? err : began;
}

static trl_err again(void *data, const trl_task_args *args, int64_t round, bool *goes_on)
{
    const trli_program_call *call = data;
    const trl_err err = again_inner(data, args, round, goes_on);
    if (*goes_on && round < call->rounds) return err;
    const trl_err left = trli_frame_leave(args->frame, data);
    return err != TRL_OK ? err : left;
}

static const char *apart(const void *data, const void *other_data, bool siblings)
{
    const trli_program_call *one = data, *other = other_data;
    const bool one_frame = one->frame == other->frame && (one->frame || siblings);
    if (!one_frame || one->program->model != other->program->model) return NULL;
    return trli_programs_may_meet(one->program, other->program) ? NULL : "their programs share the memory of a frame";
}

trl_err trli_program_add_call(trl_graph *graph, const char *name, const trli_program_call *call, trl_task *task)
{
    const trl_call_desc desc = {.name = name,
                                .body = call->program->run->graph,
                                .data = (void *)call,
                                .begin = begin,
                                .again = again,
                                .apart = apart,
                                .rounds = call->again ? call->rounds : 1,
                                .flags = TRL_TASK_ALWAYS,
                                .in_frame = !call->frame};
    return trl_graph_add_call(graph, &desc, task);
}

trl_err trli_program_add_inner_call(trl_graph *graph, const char *name, const trli_program_call *call, trl_task *task)
{
    const trl_call_desc desc = {.name = name,
                                .body = call->program->run->graph,
                                .data = (void *)call,
                                .begin = begin_inner,
                                .again = again_inner,
                                .rounds = call->again ? call->rounds : 1,
                                .flags = TRL_TASK_ALWAYS,
                                .in_frame = true};
    return trl_graph_add_call(graph, &desc, task);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "called_programs_impl.h"

#include "memory_impl.h"

bool trli_program_is_in(const trli_program *program, const trli_program *other)
{
    if (program == other) return true;
    if (program->number > other->number) return false;
    for (int i = 0; i < other->nsteps; ++i)
        if (other->step[i].kind == TRLI_STEP_CALL && trli_program_is_in(program, other->step[i].call->program))
            return true;
    return false;
}

static bool has(int n, const int *list, int item)
{
    for (int i = 0; i < n; ++i)
        if (list[i] == item) return true;
    return false;
}

bool trli_program_sets(const trli_program *program, int scalar)
{
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_program_call *call = s->kind == TRLI_STEP_CALL ? s->call : NULL;
        if (s->scalar == scalar) return true;
        if (call && (has(call->nscalars, call->scalar, scalar) || trli_program_sets(call->program, scalar)))
            return true;
    }
    return false;
}

static void add_result(const trli_model *model, trli_step *step, int n, const int *field)
{
    for (int i = 0; i < n; ++i)
        if (model->field[field[i]].persistent && !has(step->nout, step->field, field[i]))
            step->field[step->nout++] = field[i];
}

/* The results of a call: the persistent fields that some step of the called program sets, or their ghosts, and those
 * that its functions change. */
static trl_err find_results(trli_model *model, trli_step *step)
{
    const trli_program_call *call = step->call;
    step->field = trli_model_keep(model, (size_t)model->nfields * sizeof *step->field);
    if (!step->field) return model->ir.err;
    for (int i = 0; i < call->program->nsteps; ++i)
        add_result(model, step, call->program->step[i].nout, call->program->step[i].field);
    add_result(model, step, call->nfields, call->field);
    return TRL_OK;
}

trl_err trli_program_append_call(trli_program *program, const char *label, const trli_program_call *call)
{
    trli_model *model = program->model;
    const trli_program *called = call->program;
    const char *fault = NULL;
    if (called->model != model)
        fault = "it belongs to another model";
    else if (called->number >= program->number)
        fault = "it was created after its caller";
    else if (program->arranging)
        fault = "its steps are being put in order, which a call would not take part in";
    else if (call->frame)
        fault = "it runs in the frame of its caller, not in one of its own";
    if (fault)
        return trl_fail(model->ctx, TRL_ERR_USAGE, NULL, "program '%s' cannot call program '%s': %s", program->name,
                        called->name, fault);
    trli_step *step = trli_program_append(program, TRLI_STEP_CALL, label);
    if (!step) return model->ir.err;
    step->call = call;
    return find_results(model, step);
}

trl_err trli_programs_meet(trli_program *one, trli_program *other)
{
    trli_model *model = one->model;
    if (other->model != model) return TRL_OK;
    if (model->slots || trli_program_is_in(one, other) || trli_program_is_in(other, one))
        return trl_fail(model->ctx, TRL_ERR_USAGE, NULL, "programs '%s' and '%s' cannot run in one frame at once: %s",
                        one->name, other->name, model->slots ? "their model is frozen" : "one of them is in the other");
    if (!trli_make_room(model->ctx, &model->meeting, model->nmeetings, 1, &model->meetings_capacity,
                        sizeof *model->meeting))
        return trli_no_memory(model->ctx, NULL, "for program '%s'", one->name);
    model->meeting[model->nmeetings++] = (trli_meeting){one, other};
    return TRL_OK;
}

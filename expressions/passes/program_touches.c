/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "program_touches_impl.h"

#include "called_programs_impl.h"
#include "memory_impl.h"
#include "plan_impl.h"

static void mark(unsigned char *set, int n, const int *list, int how)
{
    for (int i = 0; i < n; ++i) set[list[i]] |= (unsigned char)how;
}

/* Plugins are told times, and dt. */
static void note_times(const trli_step *s, const trli_program_touches *t)
{
    const int times[] = {TRLI_SCALAR_STEP_TIME, TRLI_SCALAR_DT, s->time_scalar};
    mark(t->scalar, sizeof times / sizeof *times, times, TRLI_TOUCHES_READ);
}

static void note_slab(const trli_step *s, const trli_slab *slab, const trli_program_touches *t)
{
    mark(t->field, 1, &slab->field, TRLI_TOUCHES_READ | TRLI_TOUCHES_SET);
    mark(t->field, slab->ninputs, slab->input, TRLI_TOUCHES_READ);
    if (slab->kind == TRLI_SLAB_KERNEL) mark(t->scalar, slab->reads.nscalars, slab->reads.scalar, TRLI_TOUCHES_READ);
    if (slab->kind == TRLI_SLAB_MODIFIER) note_times(s, t);
}

static void note_step(const trli_program *program, const trli_step *s, const trli_program_touches *t);

static void note_program(const trli_program *program, const trli_program_touches *t)
{
    const trli_scalar_source *source = program->source;
    if (source) mark(t->scalar, source->n, source->scalar, TRLI_TOUCHES_SET);
    for (int i = 0; i < program->nsteps; ++i)
        if (program->plan->step[i].live) note_step(program, &program->step[i], t);
}

static void note_call(const trli_program_call *call, const trli_program_touches *t)
{
    const int how = TRLI_TOUCHES_READ | TRLI_TOUCHES_SET;
    mark(t->field, call->nfields, call->field, how);
    mark(t->scalar, call->nscalars, call->scalar, how);
    note_program(call->program, t);
}

static void note_step(const trli_program *program, const trli_step *s, const trli_program_touches *t)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    mark(t->field, p->ninputs, p->input, TRLI_TOUCHES_READ);
    mark(t->scalar, p->reads.nscalars, p->reads.scalar, TRLI_TOUCHES_READ);
    mark(t->field, p->exchanged.n, p->exchanged.field, TRLI_TOUCHES_READ | TRLI_TOUCHES_SET);
    for (int k = 0; k < p->nslabs; ++k) note_slab(s, &p->slab[k], t);
    if (trli_step_plugin(s)) note_times(s, t);
    if (s->scalar >= 0) mark(t->scalar, 1, &s->scalar, TRLI_TOUCHES_SET);
    for (int o = 0; o < s->nout; ++o)
        if (program->plan->demand[s->field[o]].live) mark(t->field, 1, &s->field[o], TRLI_TOUCHES_SET);
    if (s->kind == TRLI_STEP_CALL) note_call(s->call, t);
}

static trl_err provide(const trli_program *program, trli_program_touches *t)
{
    const trli_model *model = program->model;
    t->field = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *t->field);
    t->scalar = trli_new(model->ctx, (size_t)model->nscalars + 1, sizeof *t->scalar);
    return t->field && t->scalar ? TRL_OK : trli_no_memory(model->ctx, NULL, "for a call in '%s'", program->name);
}

trl_err trli_program_touches_find(const trli_program *program, trli_program_touches *t)
{
    trl_err err = TRL_OK;
    TRL_TRY(provide(program, t));
    note_program(program, t);
done:
    return err;
}

trl_err trli_step_touches_find(const trli_program *program, const trli_step *step, trli_program_touches *t)
{
    trl_err err = TRL_OK;
    TRL_TRY(provide(program, t));
    note_step(program, step, t);
done:
    return err;
}

void trli_program_touches_free(trli_program_touches *t)
{
    trli_free(t->field);
    trli_free(t->scalar);
    *t = (trli_program_touches){0};
}

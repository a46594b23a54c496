/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tasks of calls. All that the called program touches is an access of the call, slots of what it computes on the way
 * included: what shares these slots without being apart in time is put in order so. */
#include "builder_impl.h"
#include "called_programs_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "program_calls_impl.h"
#include "program_touches_impl.h"
#include "tasks_build_impl.h"

/* What the called program computes on the way was nothing before. */
static trl_access access_of(unsigned char how, bool persistent)
{
    if (!persistent) return TRL_WRITE;
    return how & TRLI_TOUCHES_SET ? TRL_READ_WRITE : TRL_READ;
}

static trl_err access_touched(trli_tasks_builder *b, trl_task task, const trli_program_touches *touched)
{
    trl_err err = TRL_OK;
    for (int f = 0; f < b->model->nfields; ++f)
        for (int p = 0; touched->field[f] && p < b->model->layout->nlocal; ++p)
            TRL_TRY(trli_builder_field(&b->tasks, task, f, p, TRLI_OWNED_AND_GHOSTS,
                                       access_of(touched->field[f], b->model->field[f].persistent)));
    for (int i = 0; i < b->model->nscalars; ++i)
        if (touched->scalar[i]) TRL_TRY(trli_builder_scalar(&b->tasks, task, i, access_of(touched->scalar[i], true)));
done:
    return err;
}

static trl_err access_plugins(trli_tasks_builder *b, trl_task task, const trli_program *program)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_plugin_step *plugin = trli_step_plugin(&program->step[i]);
        const trli_step_plan *p = &program->plan->step[i];
        if (plugin && p->live) TRL_TRY(trli_builder_plugin(&b->tasks, task, plugin->called));
        for (int k = 0; k < p->nslabs; ++k)
            if (p->slab[k].kind == TRLI_SLAB_MODIFIER)
                TRL_TRY(trli_builder_plugin(&b->tasks, task, p->slab[k].modifier));
    }
done:
    return err;
}

/* Of reductions, which workers merge in the memory of the host. */
static trl_err access_shares(trli_tasks_builder *b, trl_task task, const trli_reductions *all)
{
    const size_t n = (size_t)b->model->run->nreductions * (size_t)b->model->layout->nlocal;
    trl_err err = TRL_OK;
    if (!b->called) {
        b->called = trli_new(b->model->ctx, n, sizeof *b->called);
        if (!b->called) return trli_no_memory(b->model->ctx, NULL, "for reductions");
        for (size_t i = 0; i < n; ++i) b->called[i] = -1;
    }
    for (int g = 0; g < all->ngroups; ++g)
        for (int p = 0; p < b->model->layout->nlocal; ++p) {
            const int first = all->first + all->group[g].first;
            TRL_TRY(trli_builder_share(&b->tasks, task, first, all->group[g].n, p,
                                       &b->called[p * b->model->run->nreductions + first], TRL_READ_WRITE));
        }
done:
    return err;
}

/* What is not of fields and scalars. */
static trl_err access_programs(trli_tasks_builder *b, trl_task task, const trli_program *called)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < b->model->nprograms; ++i) {
        const trli_program *program = b->model->program[i];
        if (!trli_program_is_in(program, called)) continue;
        TRL_TRY(access_plugins(b, task, program));
        TRL_TRY(access_shares(b, task, &program->run->reductions));
    }
done:
    return err;
}

trl_err trli_add_call(trli_tasks_builder *b, const trli_step *s)
{
    trli_program_touches touched = {0};
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(trli_step_touches_find(b->program, s, &touched));
    TRL_TRY(trli_program_add_inner_call(b->tasks.graph, s->label, s->call, &task));
    TRL_TRY(access_touched(b, task, &touched));
    TRL_TRY(access_programs(b, task, s->call->program));
    b->program->run->bytes_moved += s->call->program->run->bytes_moved;
done:
    trli_program_touches_free(&touched);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs that are in one frame at once. A called program is there with all that its callers have live across the
 * call. Programs meet if the user says so, and if steps of one program call them that no data puts in order; then all
 * that the one calls meets all that the other one calls. What shares memory without that is put in order by the
 * accesses of its tasks, as are kernels that share a slot. */
#include "called_programs_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "program_touches_impl.h"
#include "slots_impl.h"

static trl_err list_calls(const trli_model *model, trli_presence *presence)
{
    int n = 0;
    for (int i = 0; i < model->nprograms; ++i)
        for (int k = 0; k < model->program[i]->nsteps; ++k) n += model->program[i]->step[k].kind == TRLI_STEP_CALL;
    if (n == 0) return TRL_OK;
    presence->call = trli_new(model->ctx, (size_t)n, sizeof *presence->call);
    if (!presence->call) return trli_no_memory(model->ctx, NULL, "to plan %d programs", model->nprograms);
    for (int i = 0; i < model->nprograms; ++i)
        for (int k = 0; k < model->program[i]->nsteps; ++k)
            if (model->program[i]->step[k].kind == TRLI_STEP_CALL)
                presence->call[presence->ncalls++] =
                    (trli_called){.program = i, .step = k, .called = model->program[i]->step[k].call->program};
    return TRL_OK;
}

/* A program that is in two others. */
static const trli_program *find_common(const trli_model *model, const trli_program *one, const trli_program *other)
{
    for (int i = 0; i < model->nprograms; ++i)
        if (trli_program_is_in(model->program[i], one) && trli_program_is_in(model->program[i], other))
            return model->program[i];
    return NULL;
}

static void let_meet(const trli_model *model, const trli_presence *presence, const trli_program *one,
                     const trli_program *other)
{
    const int n = presence->nprograms;
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
            if (trli_program_is_in(model->program[i], one) && trli_program_is_in(model->program[k], other))
                presence->meets[i * n + k] = presence->meets[k * n + i] = 1;
}

static trl_err add_meetings(const trli_model *model, const trli_presence *presence)
{
    for (int i = 0; i < model->nmeetings; ++i) {
        const trli_meeting *m = &model->meeting[i];
        const trli_program *common = find_common(model, m->one, m->other);
        if (common)
            return trl_fail(model->ctx, TRL_ERR_USAGE, NULL,
                            "programs '%s' and '%s' cannot run in one frame at once: '%s' is in both", m->one->name,
                            m->other->name, common->name);
        let_meet(model, presence, m->one, m->other);
    }
    return TRL_OK;
}

/* ---- steps that no data puts in order ---- */

typedef struct order {
    const trli_program *program;
    trli_program_touches *touched; /* [nsteps] */
    bool *follows;                 /* [nsteps] the call that is looked at */
} order;

static bool clash(const unsigned char *a, const unsigned char *b, int n)
{
    for (int i = 0; i < n; ++i)
        if (a[i] && b[i] && (a[i] | b[i]) & TRLI_TOUCHES_SET) return true;
    return false;
}

static bool depends(const order *o, int before, int after)
{
    const trli_model *model = o->program->model;
    const trli_program_touches *a = &o->touched[before], *b = &o->touched[after];
    return clash(a->field, b->field, model->nfields) || clash(a->scalar, b->scalar, model->nscalars);
}

/* Mark the steps that follow a call by what they touch. */
static void mark_followers(const order *o, int call)
{
    for (int i = call; i < o->program->nsteps; ++i) {
        o->follows[i] = i == call;
        for (int k = call; k < i && !o->follows[i] && o->touched[i].field; ++k)
            o->follows[i] = o->follows[k] && depends(o, k, i);
    }
}

static trl_err order_init(order *o, const trli_program *program)
{
    trl_err err = TRL_OK;
    *o = (order){.program = program};
    o->touched = trli_new(program->model->ctx, (size_t)program->nsteps + 1, sizeof *o->touched);
    o->follows = trli_new(program->model->ctx, (size_t)program->nsteps + 1, sizeof *o->follows);
    if (!o->touched || !o->follows)
        return trli_no_memory(program->model->ctx, NULL, "to plan program '%s'", program->name);
    for (int i = 0; i < program->nsteps; ++i)
        if (program->plan->step[i].live) TRL_TRY(trli_step_touches_find(program, &program->step[i], &o->touched[i]));
done:
    return err;
}

static void order_free(order *o)
{
    for (int i = 0; o->touched && i < o->program->nsteps; ++i) trli_program_touches_free(&o->touched[i]);
    trli_free(o->touched);
    trli_free(o->follows);
}

/* calls: n of one program. */
static trl_err add_siblings(const trli_model *model, const trli_presence *presence, int n, const trli_called *calls)
{
    order o;
    trl_err err = TRL_OK;
    TRL_TRY(order_init(&o, model->program[calls->program]));
    for (int i = 0; i < n; ++i) {
        mark_followers(&o, calls[i].step);
        for (int k = i + 1; k < n; ++k)
            if (!o.follows[calls[k].step] && !find_common(model, calls[i].called, calls[k].called))
                let_meet(model, presence, calls[i].called, calls[k].called);
    }
done:
    order_free(&o);
    return err;
}

trl_err trli_presence_find(const trli_model *model, trli_presence *presence)
{
    const size_t n = (size_t)model->nprograms;
    trl_err err = TRL_OK;
    *presence = (trli_presence){.nprograms = model->nprograms};
    TRL_TRY(list_calls(model, presence));
    if (presence->ncalls < 2 && model->nmeetings == 0) return TRL_OK;
    presence->meets = trli_new(model->ctx, n * n, sizeof *presence->meets);
    if (!presence->meets) TRL_TRY(trli_no_memory(model->ctx, NULL, "to plan %d programs", model->nprograms));
    TRL_TRY(add_meetings(model, presence));
    for (int first = 0, end; first < presence->ncalls; first = end) {
        for (end = first; end < presence->ncalls && presence->call[end].program == presence->call[first].program;)
            ++end;
        if (end - first > 1) TRL_TRY(add_siblings(model, presence, end - first, presence->call + first));
    }
done:
    return err;
}

void trli_presence_free(trli_presence *presence)
{
    trli_free(presence->call);
    trli_free(presence->meets);
    *presence = (trli_presence){0};
}

bool trli_presence_binds(const trli_presence *presence, int program)
{
    bool binds = false;
    for (int i = 0; i < presence->ncalls; ++i) binds |= presence->call[i].program == program;
    for (int i = 0; presence->meets && i < presence->nprograms; ++i)
        binds |= presence->meets[program * presence->nprograms + i] != 0;
    return binds;
}

bool trli_presence_has(const trli_presence *presence, const trli_temporary *t, int program)
{
    if (presence->meets && presence->meets[t->program * presence->nprograms + program]) return true;
    for (int i = 0; i < presence->ncalls; ++i) {
        const trli_called *c = &presence->call[i];
        if (c->program == t->program && t->first < c->step && c->step < t->last && c->called->number >= program &&
            trli_program_is_in(c->called->model->program[program], c->called))
            return true;
    }
    return false;
}

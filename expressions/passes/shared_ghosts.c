/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ghosts that a program finds brought already by the one that runs before it, whose messages bring them along. */
#include "pipeline_impl.h"

static bool lies_in(const trl_offsets *wanted, const trl_footprint *reach)
{
    bool found = false;
    for (int p = 0; p < reach->n && !found; ++p) {
        found = true;
        for (int a = 0; a < 3; ++a)
            found &= reach->part[p].lo[a] <= wanted->lo[a] && reach->part[p].hi[a] >= wanted->hi[a];
    }
    return found;
}

static bool lies_within(const trl_footprint *wanted, const trl_footprint *reach)
{
    bool all = true;
    for (int p = 0; p < wanted->n; ++p) all &= lies_in(&wanted->part[p], reach);
    return all;
}

static bool sets(const trli_step *s, int field)
{
    for (int o = 0; o < s->nout; ++o)
        if (s->field[o] == field) return true;
    return false;
}

static void widen(trli_exchanged *e, int field, const trl_footprint *wanted)
{
    int at = 0;
    while (at < e->n && e->field[at] != field) ++at;
    if (at == e->n) {
        e->field[e->n] = field;
        e->reach[e->n++] = (trl_footprint){0};
    }
    if (!lies_within(wanted, &e->reach[at])) trl_footprint_add_all(&e->reach[at], wanted);
}

/* Have a program exchange a field as far, if it sends messages in a step that sets this field's ghosts: there is room
 * for all fields of a step. */
static bool let_bring(const trli_program *program, int field, const trl_footprint *wanted)
{
    for (int i = 0; i < program->nsteps; ++i) {
        trli_step_plan *p = &program->plan->step[i];
        if (!p->live || p->exchanged.n == 0 || !sets(&program->step[i], field)) continue;
        widen(&p->exchanged, field, wanted);
        return true;
    }
    return false;
}

/* Whether a step writes points of a field that patches own: conditions of ghosts do not. */
static bool writes(const trli_program *program, int step, int field)
{
    const trli_step *s = &program->step[step];
    const trli_step_plan *p = &program->plan->step[step];
    const bool ghosts = s->kind == TRLI_STEP_FILL || s->kind == TRLI_STEP_READ;
    bool any = false;
    for (int o = 0; o < s->nout && !ghosts; ++o) any |= s->field[o] == field;
    for (int k = 0; k < p->nslabs; ++k)
        any |= p->slab[k].field == field && (p->slab[k].kind == TRLI_SLAB_MODIFIER || p->slab[k].layer == 0);
    return p->live && any;
}

/* In the first n steps of a program. */
static bool is_written(const trli_program *program, int n, int field)
{
    bool any = false;
    for (int i = 0; i < n && !any; ++i) any = writes(program, i, field);
    return any;
}

/* Take the fields out of an exchange, of step i, that need none. */
static bool leave_out(const trli_program *before, const trli_program *program, int i)
{
    trli_step_plan *p = &program->plan->step[i];
    trli_exchanged *e = &p->exchanged;
    const int n = e->n;
    e->n = 0;
    for (int k = 0; k < n; ++k) {
        const int f = e->field[k];
        if (program->model->field[f].persistent && !is_written(before, before->nsteps, f) &&
            !is_written(program, i, f) && let_bring(before, f, &e->reach[k]))
            continue;
        e->field[e->n] = f;
        e->reach[e->n++] = e->reach[k];
    }
    p->live = p->nslabs > 0 || e->n > 0;
    return e->n < n;
}

void trli_program_follow(trli_program *program, trli_program *before)
{
    bool any = false;
    for (int i = 0; i < program->nsteps; ++i)
        if (program->plan->step[i].live && program->plan->step[i].exchanged.n > 0) any |= leave_out(before, program, i);
    if (!any) return;
    program->after = before;
    before->is_followed = true;
}

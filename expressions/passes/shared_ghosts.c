/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ghosts that a program finds brought already by the one that runs before it. */
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

/* Whether a program exchanges a field as far. */
static bool brings(const trli_program *program, int field, const trl_footprint *wanted)
{
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step_plan *p = &program->plan->step[i];
        for (int e = 0; p->live && e < p->exchanged.n; ++e) {
            bool all = p->exchanged.field[e] == field;
            for (int k = 0; k < wanted->n && all; ++k) all = lies_in(&wanted->part[k], &p->exchanged.reach[e]);
            if (all) return true;
        }
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
        if (program->model->field[f].persistent && brings(before, f, &e->reach[k]) &&
            !is_written(before, before->nsteps, f) && !is_written(program, i, f))
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

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_kernels_impl.h"
#include "cost_impl.h"
#include "kernels_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "model_run_impl.h"
#include "parts_impl.h"
#include "pipeline_impl.h"
#include "sides_impl.h"
#include "tasks_impl.h"

enum { SETTLING = 40 }; /* steps after which each kernel has tried its ways through a box */

static const trl_bc_side no_sides[6];

/* The text of an unknown's formula. */
static void write_formula(const trli_kernel_case *what, int unknown, char *text, size_t room)
{
    const char *from = unknown > 0 && what->formula[1] ? what->formula[1] : what->formula[0];
    size_t n = 0;
    for (; *from && n + 16 < room; ++from) {
        if (*from == '#') {
            char *end = (char *)from + 1;
            const int ahead = from[1] == '+' ? (int)strtol(from + 2, &end, 10) : 0;
            n += (size_t)snprintf(text + n, room - n, "%d", (unknown + ahead) % what->unknowns + 1);
            from = end - 1;
        } else
            text[n++] = *from;
    }
    text[n] = 0;
}

static const trl_bc_side *sides_of(const trli_kernel_case *what, int variable)
{
    return variable < what->unknowns && what->boundary ? what->boundary : no_sides;
}

static trl_err declare(trli_formulas *f)
{
    const trli_kernel_case *what = f->size->what;
    trli_variable variable[TRLI_UNKNOWNS_MOST + TRLI_COEFFICIENTS_MOST];
    char text[1024];
    trl_err err = TRL_OK;
    for (int u = 0; u < what->unknowns; ++u) {
        snprintf(f->name[u], sizeof f->name[u], "f%d", u + 1);
        write_formula(what, u, text, sizeof text);
        TRL_TRY(trl_formula_parse(f->ctx, &(trl_text){.chars = text}, &f->formula[u]));
        variable[u] = (trli_variable){.name = f->name[u], .location = TRL_CELL, .boundary = sides_of(what, u)};
    }
    for (int c = 0; c < what->coefficients; ++c)
        variable[what->unknowns + c] =
            (trli_variable){.name = what->coefficient[c], .location = what->at[c], .boundary = no_sides};
    const trli_model_request request = {.layout = f->layout,
                                        .fusion = TRL_FUSION_FULL,
                                        .compile = TRL_COMPILE_ALWAYS,
                                        .nvariables = what->unknowns + what->coefficients,
                                        .variables = variable,
                                        .workers = f->workers};
    TRL_TRY(trli_model_create(f->ctx, &request, &f->model));
done:
    return err;
}

static trl_err add_field(trli_formulas *f, const char *role, int variable, int *field)
{
    trli_model *model = f->model;
    const trli_variable *v = &model->variable[variable];
    *field = trli_model_add_field(model, trli_model_name(model, "%s %d", role, variable), v->location);
    if (*field < 0) return model->ir.err;
    model->field[*field].persistent = true;
    model->field[*field].exchanged = variable < f->size->what->unknowns; /* ghosts of coefficients are given */
    model->field[*field].boundary = (trli_boundary_source){.side = sides_of(f->size->what, variable), .name = role};
    return TRL_OK;
}

static void drop_boundaries(trli_program *program)
{
    for (int i = 0; i < program->nsteps; ++i) {
        trli_step_plan *s = &program->plan->step[i];
        for (int k = 0; k < s->nslabs; ++k)
            if (s->slab[k].kind == TRLI_SLAB_KERNEL) trli_reads_free(&s->slab[k].reads);
        s->nslabs = 0;
        if (program->step[i].kind == TRLI_STEP_FILL) s->live = s->exchanged.n > 0;
    }
}

/* f + dt*formula of all unknowns in one kernel, after their ghosts; those of coefficients hold for ever. */
static trl_err add_kernel(trli_formulas *f, const char *label, trli_program *step)
{
    const trli_kernel_case *what = f->size->what;
    trli_model *model = f->model;
    trli_ir_value value[TRLI_UNKNOWNS_MOST];
    int variable[TRLI_UNKNOWNS_MOST];
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_create(model, step, TRLI_SCALAR_STEP_TIME, 0, NULL, &in));
    for (int u = 0; u < what->unknowns; ++u) in->variable[u] = f->now[u];
    for (int u = 0; u < what->unknowns && what->coefficients > 0; ++u) TRL_TRY(trli_instance_fill_field(in, f->now[u]));
    if (what->coefficients == 0) TRL_TRY(trli_instance_fill(in)); /* all variables in one exchange */
    for (int c = what->unknowns; c < what->unknowns + what->coefficients; ++c) in->variable[c] = f->now[c];
    TRL_TRY(trli_instance_prepare(in));
    for (int u = 0; u < what->unknowns; ++u) {
        TRL_TRY(trli_lower_at(in, f->formula[u], NULL, TRL_CELL, &value[u]));
        value[u] = trli_ir_binary(
            &model->ir, TRLI_OP_ADD, trli_ir_field(&model->ir, f->now[u]),
            trli_ir_binary(&model->ir, TRLI_OP_MUL, trli_ir_scalar(&model->ir, TRLI_SCALAR_DT), value[u]));
        variable[u] = u;
    }
    TRL_TRY(trli_program_add_kernel(step, label, what->unknowns, f->next, value, variable));
    for (int u = 0; u < what->unknowns; ++u) TRL_TRY(trli_program_add_root(step, f->next[u]));
    TRL_TRY(trli_program_analyse(step));
    TRL_TRY(trli_program_fold(step));
    TRL_TRY(trli_program_count_work(step));
    TRL_TRY(trli_program_part(step));
done:
    trli_instance_destroy(&in);
    return err;
}

static trl_err compile_steps(trli_formulas *f)
{
    const trli_kernel_case *what = f->size->what;
    trli_model *model = f->model;
    trl_err err = TRL_OK;
    for (int v = 0; v < what->unknowns + what->coefficients; ++v) TRL_TRY(add_field(f, "now", v, &f->now[v]));
    for (int u = 0; u < what->unknowns; ++u) TRL_TRY(add_field(f, "next", u, &f->next[u]));
    TRL_TRY(trli_program_create(model, "step", &f->step));
    TRL_TRY(add_kernel(f, "step", f->step));
    if (what->boundary) {
        TRL_TRY(trli_program_create(model, "stale", &f->stale));
        TRL_TRY(add_kernel(f, "stale", f->stale));
        drop_boundaries(f->stale);
    }
    for (int u = 0; u < what->unknowns; ++u) { /* levels that swap have one shape */
        const trli_model_field *now = &model->field[f->now[u]];
        memcpy(model->field[f->next[u]].ghost_lo, now->ghost_lo, sizeof now->ghost_lo);
        memcpy(model->field[f->next[u]].ghost_hi, now->ghost_hi, sizeof now->ghost_hi);
    }
    TRL_TRY(trli_model_freeze(model, NULL, NULL));
    TRL_TRY(trli_frame_create(model, &f->frame));
done:
    return err;
}

static void set_values_of(trli_formulas *f, int variable)
{
    trl_array a = trli_frame_array(f->frame, f->now[variable], 0, 0);
    for (trl_lidx k = a.held.lo[2]; k < a.held.hi[2]; ++k)
        for (trl_lidx j = a.held.lo[1]; j < a.held.hi[1]; ++j)
            for (trl_lidx i = a.held.lo[0]; i < a.held.hi[0]; ++i)
                ((double *)a.at)[trl_array_offset(&a, i, j, k)] = trli_kernel_value(f->size, variable, i, j, k);
}

static void set_values(trli_formulas *f)
{
    for (int v = 0; v < f->size->what->unknowns + f->size->what->coefficients; ++v) set_values_of(f, v);
}

static trl_err run_steps(trli_formulas *f, trli_program *step, int steps)
{
    trl_err err = TRL_OK;
    for (int s = 0; s < steps; ++s) {
        trli_kernels_poll(f->model);
        TRL_TRY(trli_program_run(step, f->frame));
        for (int u = 0; u < f->size->what->unknowns; ++u) trli_frame_swap(f->frame, f->now[u], f->next[u]);
    }
done:
    return err;
}

/* Have the kernel of a step go through the box as that of another one does. */
static void follow(trli_program *step, const trli_program *other)
{
    const trli_step_run *kernel = NULL;
    for (int i = 0; i < other->nsteps; ++i)
        if (other->run->step[i].tuning) kernel = &other->run->step[i];
    for (int i = 0; kernel && i < step->nsteps; ++i)
        if (step->run->step[i].tuning) trli_tuning_follow(step->run->step[i].tuning, kernel->tuning);
}

trl_err trli_formulas_create(trl_context *ctx, const trli_kernel_size *size, trli_formulas *f)
{
    trl_err err = TRL_OK;
    *f = (trli_formulas){.ctx = ctx, .size = size};
    TRL_TRY(trl_layout_create(ctx, &size->grid, (int[3]){1, 1, 1}, NULL, &f->layout));
    TRL_TRY(trl_workers_create(ctx, "priority", &f->workers));
    TRL_TRY(declare(f));
    TRL_TRY(compile_steps(f));
    f->frame->scalar[TRLI_SCALAR_DT] = size->dt;
    set_values(f);
    for (int u = 0; u < size->what->unknowns; ++u) trli_frame_swap(f->frame, f->now[u], f->next[u]);
    set_values(f); /* also the ghosts of the other level, if nobody else does */
    TRL_TRY(run_steps(f, f->step, SETTLING));
    if (f->stale) follow(f->stale, f->step);
    set_values(f);
done:
    return err;
}

void trli_formulas_destroy(trli_formulas *f)
{
    trli_frame_destroy(&f->frame);
    trli_model_destroy(&f->model);
    for (int u = 0; u < TRLI_UNKNOWNS_MOST; ++u) trl_formula_destroy(&f->formula[u]);
    trl_workers_destroy(&f->workers);
    trl_layout_destroy(&f->layout);
}

trl_err trli_formulas_run(void *data)
{
    trli_formulas *f = data;
    return run_steps(f, f->step, f->size->steps);
}

trl_err trli_formulas_run_stale(void *data)
{
    trli_formulas *f = data;
    return run_steps(f, f->stale, f->size->steps);
}

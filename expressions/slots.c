/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory plan: lifetimes of fields, from producer to last reader, are coloured to slots. All programs of a model share the slots of
 * their temporaries, because they never run at once. */
#include <stdlib.h>
#include <string.h>

#include <spatialops_impl.h>

#include "model_impl.h"

typedef struct plan {
    trli_model *model;
    int *last; /* by field: last step of the program that touches it */
    int *free_slot;
    int nfree;
} plan;

static trl_box held_box(const trli_model *model, int field, int p)
{
    const trl_layout *layout = model->layout;
    const trli_field *f = &model->field[field];
    trl_box box = trl_patch_owned(layout, &layout->patch[layout->local[p]], f->location);
    for (int a = 0; a < layout->grid.dim; ++a) {
        box.lo[a] -= f->ghost_lo[a];
        box.hi[a] += f->ghost_hi[a];
    }
    return box;
}

static trl_err new_slot(trli_model *model, bool persistent, int *slot)
{
    if (model->nslots == model->slots_capacity) {
        int more = model->slots_capacity ? 2 * model->slots_capacity : 64;
        trli_slot *longer = realloc(model->slot, (size_t)more * sizeof *longer);
        if (!longer) return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d slots", more);
        model->slot = longer;
        model->slots_capacity = more;
    }
    trli_slot *s = &model->slot[model->nslots];
    *s = (trli_slot){.persistent = persistent};
    s->points = calloc((size_t)model->layout->nlocal + 1, sizeof *s->points);
    s->base = calloc((size_t)model->layout->nlocal + 1, sizeof *s->base);
    *slot = model->nslots++;
    return s->points && s->base ? TRL_OK : trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for a slot");
}

static void take_room(trli_model *model, int field)
{
    trli_slot *s = &model->slot[model->field[field].slot];
    for (int p = 0; p < model->layout->nlocal; ++p) {
        trl_box box = held_box(model, field, p);
        int64_t points = trl_box_points(&box);
        if (points > s->points[p]) s->points[p] = points;
    }
}

static trl_err assign(plan *pl, int field)
{
    trli_model *model = pl->model;
    trli_field *f = &model->field[field];
    trl_err err = TRL_OK;
    if (f->slot < 0) {
        if (f->persistent || pl->nfree == 0)
            TRL_TRY(new_slot(model, f->persistent, &f->slot));
        else
            f->slot = pl->free_slot[--pl->nfree];
    }
    take_room(model, field);
done:
    return err;
}

/* Call visit for every field that a step touches. */
static void visit_fields(const trli_step *s, void (*visit)(void *data, int field), void *data)
{
    for (int i = 0; i < s->nout; ++i) visit(data, s->field[i]);
    for (int i = 0; i < s->ninputs; ++i) visit(data, s->input[i]);
    for (int k = 0; k < s->nslabs; ++k)
        for (int i = 0; i < s->slab[k].ninputs; ++i) visit(data, s->slab[k].input[i]);
}

typedef struct touch {
    plan *pl;
    int step;
} touch;

static void note_last(void *data, int field)
{
    touch *t = data;
    t->pl->last[field] = t->step;
}

static void release(void *data, int field)
{
    touch *t = data;
    const trli_field *f = &t->pl->model->field[field];
    if (f->persistent || f->slot < 0 || t->pl->last[field] != t->step) return;
    t->pl->free_slot[t->pl->nfree++] = f->slot;
    t->pl->last[field] = -1; /* touched twice by its last step: released once */
}

static trl_err plan_program(plan *pl, trli_program *program)
{
    trl_err err = TRL_OK;
    /* Every scratch slot is free when a program starts. */
    pl->nfree = 0;
    for (int s = pl->model->nslots - 1; s >= 0; --s)
        if (!pl->model->slot[s].persistent) pl->free_slot[pl->nfree++] = s;
    for (int f = 0; f < pl->model->nfields; ++f) pl->last[f] = -1;
    for (int i = 0; i < program->nsteps; ++i)
        if (program->step[i].live) visit_fields(&program->step[i], note_last, &(touch){pl, i});
    for (int i = 0; i < program->nsteps; ++i) {
        trli_step *s = &program->step[i];
        if (!s->live) continue;
        for (int o = 0; o < s->nout; ++o)
            if (program->demand[s->field[o]].live) TRL_TRY(assign(pl, s->field[o]));
        visit_fields(s, release, &(touch){pl, i});
    }
done:
    return err;
}

static trl_err set_geometry(trli_model *model)
{
    const trl_layout *layout = model->layout;
    size_t n = (size_t)model->nfields * (size_t)layout->nlocal + 1;
    model->geometry = calloc(n, sizeof *model->geometry);
    model->origin = calloc(n, sizeof *model->origin);
    if (!model->geometry || !model->origin)
        return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for %zu arrays", n);
    for (int f = 0; f < model->nfields; ++f)
        for (int p = 0; p < layout->nlocal; ++p) {
            trl_array *g = &model->geometry[(size_t)f * (size_t)layout->nlocal + (size_t)p];
            ptrdiff_t stride = 1, origin = 0;
            g->type = TRL_F64;
            g->owned = trl_patch_owned(layout, &layout->patch[layout->local[p]], model->field[f].location);
            g->held = held_box(model, f, p);
            for (int a = 0; a < layout->grid.dim; ++a) {
                g->stride[a] = stride;
                origin -= g->held.lo[a] * stride;
                stride *= g->held.hi[a] - g->held.lo[a];
            }
            model->origin[(size_t)f * (size_t)layout->nlocal + (size_t)p] = origin;
        }
    return TRL_OK;
}

trl_err trli_slots_plan(trli_model *model)
{
    plan pl = {.model = model};
    trl_err err = TRL_OK;
    pl.last = malloc(((size_t)model->nfields + 1) * sizeof *pl.last);
    pl.free_slot = malloc(((size_t)model->nfields + 1) * sizeof *pl.free_slot);
    if (!pl.last || !pl.free_slot) {
        err = trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory to plan %d fields", model->nfields);
        goto done;
    }
    for (int i = 0; i < model->nprograms; ++i) TRL_TRY(plan_program(&pl, model->program[i]));
    for (int f = 0; f < model->nfields; ++f)
        if (model->field[f].persistent) TRL_TRY(assign(&pl, f));
    TRL_TRY(set_geometry(model));
    for (int s = 0; s < model->nslots; ++s)
        for (int p = 0; p < model->layout->nlocal; ++p)
            model->planned_bytes += model->slot[s].points[p] * (int64_t)sizeof(double);
done:
    free(pl.last);
    free(pl.free_slot);
    return err;
}

trl_err trli_slots_allocate(trli_model *model)
{
    trl_err err = TRL_OK;
    const char *tenant = "scratch";
    for (int s = 0; s < model->nslots; ++s) {
        trli_slot *slot = &model->slot[s];
        for (int f = 0; f < model->nfields && slot->persistent; ++f)
            if (model->field[f].slot == s) tenant = model->field[f].name;
        for (int p = 0; p < model->layout->nlocal; ++p) {
            TRL_TRY(trl_memory_alloc(model->ctx, (size_t)slot->points[p] * sizeof(double),
                                     slot->persistent ? tenant : "scratch", &slot->base[p]));
            trli_poison(slot->base[p], (size_t)slot->points[p] * sizeof(double), TRL_F64);
        }
    }
done:
    return err;
}

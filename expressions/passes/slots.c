/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory plan: lifetimes of fields, from producer to last reader, are coloured to slots. All programs of a model
 * share the slots of their temporaries, but for those that are in one frame at once (slots_presence.c). A slot is as
 * large as its largest tenant, so tenants should be of like size: three ways of dealing fields to slots are tried, and
 * the one that needs the least memory stays. */
#include <string.h>

#include "memory_impl.h"
#include "pipeline_impl.h"
#include "slots_impl.h"
#include "spatialops_impl.h"

/* Temporaries, and the programs' steps that they live in. */
typedef struct plan {
    trli_model *model;
    trli_temporaries t;
    int *at;         /* [field] its index in list, or -1 */
    int64_t *values; /* those of the list */
    int program;     /* being looked at */
    int step;
    int stray; /* a temporary of two programs: a bug; -1: none */
} plan;

/* The array of a field on patches of a kind, without memory; returns the values that it needs on each. */
static int64_t lay_out(const trli_model *model, int field, int kind, trl_array *array, ptrdiff_t *origin)
{
    const trl_layout *layout = model->layout;
    const trli_model_field *f = &model->field[field];
    *array = (trl_array){.type = TRL_F64};
    array->owned = array->held = trl_patch_owned(layout, &layout->patch[model->slots->kinds.first[kind]], f->location);
    for (int a = 0; a < layout->grid.dim; ++a) {
        array->held.lo[a] -= f->ghost_lo[a];
        array->held.hi[a] += f->ghost_hi[a];
    }
    return trli_lay_out(array, layout->grid.dim, model->settings.line, origin);
}

/* Values that a field needs on a patch of each kind; returns their sum over the patches of this rank. */
static int64_t count_values(const trli_model *model, int field, int64_t *values)
{
    int64_t total = 0;
    for (int k = 0; k < model->slots->kinds.n; ++k) {
        trl_array array;
        ptrdiff_t origin;
        values[k] = lay_out(model, field, k, &array, &origin);
        total += values[k] * model->slots->kinds.count[k];
    }
    return total;
}

/* ---- lifetimes ---- */

/* Call visit for every field that a step touches. */
static void visit_fields(const trli_step *s, const trli_step_plan *p, void (*visit)(plan *pl, int field), plan *pl)
{
    for (int i = 0; i < s->nout; ++i) visit(pl, s->field[i]);
    for (int i = 0; i < p->ninputs; ++i) visit(pl, p->input[i]);
    for (int k = 0; k < p->nslabs; ++k)
        for (int i = 0; i < p->slab[k].ninputs; ++i) visit(pl, p->slab[k].input[i]);
}

static void touch(plan *pl, int field)
{
    trli_temporary *t = pl->at[field] >= 0 ? &pl->t.list[pl->at[field]] : NULL;
    if (t && t->program != pl->program) pl->stray = field;
    if (t) t->last = pl->step;
}

/* A field is born where a step first computes it. */
static void produce(plan *pl, const trli_step *s, const trli_program *program)
{
    for (int o = 0; o < s->nout; ++o) {
        int f = s->field[o];
        if (!program->plan->demand[f].live || pl->model->field[f].persistent || pl->at[f] >= 0) continue;
        trli_temporary *t = &pl->t.list[pl->at[f] = pl->t.n];
        *t = (trli_temporary){.field = f, .program = pl->program, .first = pl->step, .last = pl->step};
        t->values = pl->values + (ptrdiff_t)pl->t.n++ * pl->t.kinds->n;
        t->total = count_values(pl->model, f, t->values);
    }
}

static void find_lifetimes(plan *pl)
{
    for (int f = 0; f < pl->model->nfields; ++f) pl->at[f] = -1;
    for (pl->program = 0; pl->program < pl->model->nprograms; ++pl->program) {
        const trli_program *program = pl->model->program[pl->program];
        for (pl->step = 0; pl->step < program->nsteps; ++pl->step) {
            const trli_step *s = &program->step[pl->step];
            if (!program->plan->step[pl->step].live) continue;
            produce(pl, s, program);
            visit_fields(s, &program->plan->step[pl->step], touch, pl);
        }
    }
}

/* ---- the model's slots ---- */

static trl_err make_slots(const plan *pl, const trli_colouring *c)
{
    trli_model *model = pl->model;
    const size_t nkinds = (size_t)model->slots->kinds.n;
    int persistent = 0;
    for (int f = 0; f < model->nfields; ++f) persistent += model->field[f].persistent;
    model->slots->slot = trli_new(model->ctx, (size_t)(c->nslots + persistent) + 1, sizeof *model->slots->slot);
    if (!model->slots->slot) return trli_no_slots(model);
    for (int s = 0; s < c->nslots + persistent; ++s) {
        trli_slot *slot = &model->slots->slot[model->slots->n++];
        slot->persistent = s >= c->nslots;
        slot->values = trli_new(model->ctx, nkinds, sizeof *slot->values);
        if (!slot->values) return trli_no_slots(model);
        if (s < c->nslots) memcpy(slot->values, c->values + (size_t)s * nkinds, nkinds * sizeof *slot->values);
    }
    for (int i = 0; i < pl->t.n; ++i) model->field[pl->t.list[i].field].slot = c->slot[i];
    for (int f = 0, s = c->nslots; f < model->nfields; ++f)
        if (model->field[f].persistent) {
            count_values(model, f, model->slots->slot[s].values);
            model->field[f].slot = s++;
        }
    return TRL_OK;
}

static trl_err set_geometry(trli_model *model)
{
    const int nkinds = model->slots->kinds.n;
    size_t n = (size_t)model->nfields * (size_t)nkinds + 1;
    model->slots->geometry = trli_new(model->ctx, n, sizeof *model->slots->geometry);
    model->slots->origin = trli_new(model->ctx, n, sizeof *model->slots->origin);
    if (!model->slots->geometry || !model->slots->origin) return trli_no_memory(model->ctx, NULL, "for %zu arrays", n);
    for (int f = 0; f < model->nfields; ++f)
        for (int k = 0; k < nkinds; ++k) {
            const size_t i = (size_t)f * (size_t)nkinds + (size_t)k;
            (void)lay_out(model, f, k, &model->slots->geometry[i], &model->slots->origin[i]);
        }
    return TRL_OK;
}

static trl_err check_box(const trli_program *program, int field, int patch, const trl_box *box)
{
    const trli_model *model = program->model;
    const trl_box *held = &trli_shape_of(model, field, patch)->held;
    const char *name = model->field[field].name, *writer = program->name;
    for (int a = 0; a < 3 && trl_box_points(box) > 0; ++a) {
        const int lo = (int)box->lo[a], last = (int)box->hi[a] - 1;
        if (lo >= held->lo[a] && last < held->hi[a]) continue;
        return trl_fail(model->ctx, TRL_ERR_BUG, NULL,
                        "'%s' has points %d to %d along %c, and program '%s' computes %d to %d", name, (int)held->lo[a],
                        (int)held->hi[a] - 1, "xyz"[a], writer, lo, last);
    }
    return TRL_OK;
}

/* All that a step writes has memory: a mistake of the analysis is told before it costs somebody else's values. */
static trl_err check_room(const trli_program *program, const trli_step *s, int patch)
{
    const trl_layout *layout = program->model->layout;
    const trli_step_plan *plan = trli_plan_of(program, s);
    trl_err err = TRL_OK;
    for (int o = 0; o < s->nout && trli_step_computes(s); ++o) {
        const trl_box box = trli_step_box(program, s, o, patch);
        if (program->plan->demand[s->field[o]].live) TRL_TRY(check_box(program, s->field[o], patch, &box));
    }
    for (int k = 0; k < plan->nslabs; ++k) {
        const trli_slab *slab = &plan->slab[k];
        if (slab->kind == TRLI_SLAB_IMAGE || !trli_slab_is_at(layout, &layout->patch[patch], slab)) continue;
        const trl_box box = trli_slab_box(program, slab, patch);
        TRL_TRY(check_box(program, slab->field, patch, &box));
    }
done:
    return err;
}

static trl_err check_programs(const trli_model *model)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < model->nprograms; ++i)
        for (int k = 0; k < model->program[i]->nsteps; ++k)
            for (int p = 0; p < model->slots->kinds.n && model->program[i]->plan->step[k].live; ++p)
                TRL_TRY(check_room(model->program[i], &model->program[i]->step[k], model->slots->kinds.first[p]));
done:
    return err;
}

trl_err trli_slots_plan(trli_model *model)
{
    plan pl = {.model = model, .t = {.model = model}, .stray = -1};
    trli_colouring c = {0};
    trli_presence presence = {0};
    trl_err err = TRL_OK;
    size_t n = (size_t)model->nfields + 1;
    model->slots = trli_new(model->ctx, 1, sizeof *model->slots);
    if (!model->slots) TRL_TRY(trli_no_slots(model));
    TRL_TRY(trli_patch_kinds_find(model->ctx, model->layout, &model->slots->kinds));
    pl.t.kinds = &model->slots->kinds;
    pl.t.list = trli_new(model->ctx, n, sizeof *pl.t.list);
    pl.at = trli_new(model->ctx, n, sizeof *pl.at);
    pl.values = trli_new(model->ctx, n * (size_t)pl.t.kinds->n, sizeof *pl.values);
    if (!pl.t.list || !pl.at || !pl.values) TRL_TRY(trli_no_slots(model));
    find_lifetimes(&pl);
    if (pl.stray >= 0)
        TRL_TRY(trl_fail(model->ctx, TRL_ERR_BUG, NULL, "two programs use the temporary field '%s'",
                         model->field[pl.stray].name));
    TRL_TRY(trli_presence_find(model, &presence));
    pl.t.presence = &presence;
    TRL_TRY(trli_colouring_choose(&pl.t, &c));
    model->slots->meets = presence.meets;
    presence.meets = NULL;
    TRL_TRY(make_slots(&pl, &c));
    TRL_TRY(set_geometry(model));
    TRL_TRY(check_programs(model));
    for (int s = 0; s < model->slots->n; ++s)
        for (int k = 0; k < pl.t.kinds->n; ++k)
            model->slots->bytes += model->slots->slot[s].values[k] * pl.t.kinds->count[k] * (int64_t)sizeof(double);
done:
    trli_colouring_free(&c);
    trli_presence_free(&presence);
    trli_free(pl.t.list);
    trli_free(pl.at);
    trli_free(pl.values);
    return err;
}

void trli_slot_plan_destroy(trli_slot_plan **plan)
{
    trli_slot_plan *p = *plan;
    *plan = NULL;
    if (!p) return;
    for (int s = 0; s < p->n; ++s) trli_free(p->slot[s].values);
    trli_free(p->slot);
    trli_free(p->geometry);
    trli_free(p->origin);
    trli_free(p->meets);
    trli_patch_kinds_free(&p->kinds);
    trli_free(p);
}

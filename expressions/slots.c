/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory plan: lifetimes of fields, from producer to last reader, are coloured to slots. All programs of a model share the slots of
 * their temporaries, because they never run at once. A slot is as large as its largest tenant, so tenants should be of like size:
 * three ways of dealing fields to slots are tried, and the one that needs the least memory stays. */
#include <stdlib.h>
#include <string.h>

#include "spatialops_impl.h"
#include "tasks_impl.h"

/* A field that needs memory from step `first` to step `last` of a program, and none otherwise. */
typedef struct temporary {
    int field, program, first, last;
    int64_t total;   /* on all patches of this rank */
    int64_t *values; /* [nlocal] */
} temporary;

/* Temporaries, and the programs' steps that they live in. */
typedef struct plan {
    trli_model *model;
    int n;
    temporary *list; /* in the order in which they are produced */
    int *at;         /* [field] its index in list, or -1 */
    int64_t *values; /* those of the list */
    int program;     /* being looked at */
    int step;
    int stray; /* a temporary of two programs: a bug; -1: none */
} plan;

/* A way of dealing temporaries to slots. */
typedef struct colouring {
    bool as_produced; /* temporaries are dealt in the order in which they are produced */
    int nslots;
    int *slot;       /* [temporary] */
    int *head;       /* [slot] its last tenant, or -1 */
    int *next;       /* [temporary] the tenant before it in its slot, or -1 */
    int64_t *values; /* [slot][local patch] */
    int64_t total;   /* of all slots */
} colouring;

/* The array of a field on a patch, without memory; returns the values that it needs. */
static int64_t lay_out(const trli_model *model, int field, int p, trl_array *array, ptrdiff_t *origin)
{
    const trl_layout *layout = model->layout;
    const trli_field *f = &model->field[field];
    *array = (trl_array){.type = TRL_F64};
    array->owned = array->held = trl_patch_owned(layout, &layout->patch[layout->local[p]], f->location);
    for (int a = 0; a < layout->grid.dim; ++a) {
        array->held.lo[a] -= f->ghost_lo[a];
        array->held.hi[a] += f->ghost_hi[a];
    }
    return trli_lay_out(array, layout->grid.dim, origin);
}

/* Values that a field needs on each patch of this rank; returns their sum. */
static int64_t count_values(const trli_model *model, int field, int64_t *values)
{
    int64_t total = 0;
    for (int p = 0; p < model->layout->nlocal; ++p) {
        trl_array array;
        ptrdiff_t origin;
        total += values[p] = lay_out(model, field, p, &array, &origin);
    }
    return total;
}

/* ---- lifetimes ---- */

/* Call visit for every field that a step touches. */
static void visit_fields(const trli_step *s, void (*visit)(plan *pl, int field), plan *pl)
{
    for (int i = 0; i < s->nout; ++i) visit(pl, s->field[i]);
    for (int i = 0; i < s->ninputs; ++i) visit(pl, s->input[i]);
    for (int k = 0; k < s->nslabs; ++k)
        for (int i = 0; i < s->slab[k].ninputs; ++i) visit(pl, s->slab[k].input[i]);
}

static void touch(plan *pl, int field)
{
    temporary *t = pl->at[field] >= 0 ? &pl->list[pl->at[field]] : NULL;
    if (t && t->program != pl->program) pl->stray = field;
    if (t) t->last = pl->step;
}

/* A field is born where a step first computes it. */
static void produce(plan *pl, const trli_step *s, const trli_program *program)
{
    for (int o = 0; o < s->nout; ++o) {
        int f = s->field[o];
        if (!program->demand[f].live || pl->model->field[f].persistent || pl->at[f] >= 0) continue;
        temporary *t = &pl->list[pl->at[f] = pl->n];
        *t = (temporary){.field = f, .program = pl->program, .first = pl->step, .last = pl->step};
        t->values = pl->values + (ptrdiff_t)pl->n++ * pl->model->layout->nlocal;
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
            if (!s->live) continue;
            produce(pl, s, program);
            visit_fields(s, touch, pl);
        }
    }
}

/* ---- slots ---- */

/* Orders that are not that of production are tried up to so many temporaries: they look at all tenants of all slots. */
enum { SEARCHED = 500 };

/* Whether a slot is free while a temporary lives; *since: when its last tenant before, in the same program, left it, or -1. */
static bool is_free(const plan *pl, const colouring *c, int slot, const temporary *t, int *since)
{
    *since = -1;
    for (int i = c->head[slot]; i >= 0; i = c->next[i]) {
        const temporary *other = &pl->list[i];
        bool same = other->program == t->program;
        if (same && other->first <= t->last && t->first <= other->last) return false;
        if (same && other->last < t->first && other->last > *since) *since = other->last;
        if (c->as_produced) break; /* the tenants before left before this one came, or are of earlier programs */
    }
    return true;
}

/* What a slot would have to grow by for a temporary, and what it has too much; both over all patches. */
static void compare(const int64_t *slot, const int64_t *wanted, int npatches, int64_t *growth, int64_t *waste)
{
    *growth = *waste = 0;
    for (int p = 0; p < npatches; ++p) {
        int64_t more = wanted[p] - slot[p];
        *(more > 0 ? growth : waste) += more > 0 ? more : -more;
    }
}

/* The free slot that grows least, then that wastes least, then that was used last: its values may still be in the cache. */
static int find_slot(const plan *pl, const colouring *c, const temporary *t)
{
    int best = -1, best_since = -1, np = pl->model->layout->nlocal;
    int64_t best_growth = 0, best_waste = 0;
    for (int s = 0; s < c->nslots; ++s) {
        int64_t growth, waste;
        int since;
        if (!is_free(pl, c, s, t, &since)) continue;
        compare(c->values + (ptrdiff_t)s * np, t->values, np, &growth, &waste);
        if (best >= 0 && (growth > best_growth || (growth == best_growth && waste > best_waste) ||
                          (growth == best_growth && waste == best_waste && since <= best_since)))
            continue;
        best = s;
        best_growth = growth;
        best_waste = waste;
        best_since = since;
    }
    return best;
}

static int open_slot(const plan *pl, colouring *c)
{
    int np = pl->model->layout->nlocal;
    c->head[c->nslots] = -1;
    memset(c->values + (ptrdiff_t)c->nslots * np, 0, (size_t)np * sizeof *c->values);
    return c->nslots++;
}

static void grow_slot(const plan *pl, colouring *c, int slot, const int64_t *values)
{
    int np = pl->model->layout->nlocal;
    int64_t *room = c->values + (ptrdiff_t)slot * np;
    for (int p = 0; p < np; ++p) {
        if (values[p] <= room[p]) continue;
        c->total += values[p] - room[p];
        room[p] = values[p];
    }
}

/* Deal the temporaries to slots in the given order. */
static void colour(const plan *pl, const int *order, colouring *c)
{
    for (int k = 0; k < pl->n; ++k) {
        int i = order[k], s = pl->model->without & TRL_PASS_SLOTS ? -1 : find_slot(pl, c, &pl->list[i]);
        if (s < 0) s = open_slot(pl, c);
        grow_slot(pl, c, s, pl->list[i].values);
        c->slot[i] = s;
        c->next[i] = c->head[s];
        c->head[s] = i;
    }
}

static trl_err no_memory(const trli_model *model)
{
    return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory to plan %d fields", model->nfields);
}

static trl_err colouring_init(const plan *pl, colouring *c)
{
    size_t n = (size_t)pl->n + 1;
    *c = (colouring){.slot = malloc(n * sizeof *c->slot),
                     .head = malloc(n * sizeof *c->head),
                     .next = malloc(n * sizeof *c->next),
                     .values = malloc(n * (size_t)pl->model->layout->nlocal * sizeof *c->values + 1)};
    return c->slot && c->head && c->next && c->values ? TRL_OK : no_memory(pl->model);
}

static void colouring_free(colouring *c)
{
    free(c->slot);
    free(c->head);
    free(c->next);
    free(c->values);
}

static int by_size(const void *a, const void *b)
{
    const temporary *const *s = a, *const *t = b;
    if ((*s)->total != (*t)->total) return (*s)->total > (*t)->total ? -1 : 1;
    return *s < *t ? -1 : 1;
}

/* Begin with the slots that no plan can do without: as large as the largest temporary, the second largest of those that live at once, ... */
static void seed(const plan *pl, const temporary **live, colouring *c)
{
    int n = 0;
    for (int i = 0; i < pl->n; ++i) { /* most temporaries live where one is produced */
        const temporary *produced = &pl->list[i];
        int left = 0;
        for (int j = 0; j < n; ++j)
            if (live[j]->program == produced->program && live[j]->last >= produced->first) live[left++] = live[j];
        n = left;
        live[n++] = produced;
        qsort((void *)live, (size_t)n, sizeof(temporary *), by_size);
        for (int s = 0; s < n; ++s) {
            if (s == c->nslots) open_slot(pl, c);
            grow_slot(pl, c, s, live[s]->values);
        }
    }
}

/* The colouring that needs less memory stays in best. */
static void keep_less(colouring *best, colouring *other)
{
    colouring more = *best;
    if (other->total >= best->total) return;
    *best = *other;
    *other = more;
}

/* As produced, a slot is taken when the one before has left it: the fewest slots. With slots of the right sizes to begin with, none need
 * grow. From large to small, none does, but there may be more. */
static trl_err choose_colouring(const plan *pl, colouring *best)
{
    trl_err err = TRL_OK;
    colouring seeded = {0}, falling = {0};
    size_t n = (size_t)pl->n;
    const temporary **sorted = malloc((n + 1) * sizeof(temporary *));
    int *order = calloc(n + 1, sizeof *order);
    if (!sorted || !order) TRL_TRY(no_memory(pl->model));
    TRL_TRY(colouring_init(pl, best));
    TRL_TRY(colouring_init(pl, &seeded));
    TRL_TRY(colouring_init(pl, &falling));
    best->as_produced = seeded.as_produced = true;
    for (int i = 0; i < pl->n; ++i) order[i] = i;
    colour(pl, order, best);
    if (pl->model->without & TRL_PASS_SLOTS) goto done;
    seed(pl, sorted, &seeded);
    colour(pl, order, &seeded);
    keep_less(best, &seeded);
    if (pl->n > SEARCHED) goto done;
    for (int i = 0; i < pl->n; ++i) sorted[i] = &pl->list[i];
    qsort((void *)sorted, n, sizeof(temporary *), by_size);
    for (int i = 0; i < pl->n; ++i) order[i] = (int)(sorted[i] - pl->list);
    colour(pl, order, &falling);
    keep_less(best, &falling);
done:
    colouring_free(&seeded);
    colouring_free(&falling);
    free((void *)sorted);
    free(order);
    return err;
}

/* ---- the model's slots ---- */

static trl_err make_slots(const plan *pl, const colouring *c)
{
    trli_model *model = pl->model;
    size_t np = (size_t)model->layout->nlocal;
    int persistent = 0;
    for (int f = 0; f < model->nfields; ++f) persistent += model->field[f].persistent;
    model->slot = calloc((size_t)(c->nslots + persistent) + 1, sizeof *model->slot);
    if (!model->slot) return no_memory(model);
    for (int s = 0; s < c->nslots + persistent; ++s) {
        trli_slot *slot = &model->slot[model->nslots++];
        slot->persistent = s >= c->nslots;
        slot->values = calloc(np + 1, sizeof *slot->values);
        slot->base = calloc(np + 1, sizeof *slot->base);
        if (!slot->values || !slot->base) return no_memory(model);
        if (s < c->nslots) memcpy(slot->values, c->values + (size_t)s * np, np * sizeof *slot->values);
    }
    for (int i = 0; i < pl->n; ++i) model->field[pl->list[i].field].slot = c->slot[i];
    for (int f = 0, s = c->nslots; f < model->nfields; ++f)
        if (model->field[f].persistent) {
            count_values(model, f, model->slot[s].values);
            model->field[f].slot = s++;
        }
    return TRL_OK;
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
            const size_t i = (size_t)f * (size_t)layout->nlocal + (size_t)p;
            (void)lay_out(model, f, p, &model->geometry[i], &model->origin[i]);
        }
    return TRL_OK;
}

static trl_err check_box(const trli_program *program, int field, int patch, const trl_box *box)
{
    const trli_model *model = program->model;
    const trl_box *held = &model->geometry[(ptrdiff_t)field * model->layout->nlocal + patch].held;
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
    const bool computes = s->kind == TRLI_STEP_KERNEL || s->kind == TRLI_STEP_OPAQUE;
    trl_err err = TRL_OK;
    for (int o = 0; o < s->nout && computes; ++o) {
        const trl_box box = trli_program_box(program, s->field[o], patch);
        if (program->demand[s->field[o]].live) TRL_TRY(check_box(program, s->field[o], patch, &box));
    }
    for (int k = 0; k < s->nslabs; ++k) {
        const trli_slab *slab = &s->slab[k];
        if (slab->image || !trli_slab_is_at(layout, &layout->patch[layout->local[patch]], slab)) continue;
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
            for (int p = 0; p < model->layout->nlocal && model->program[i]->step[k].live; ++p)
                TRL_TRY(check_room(model->program[i], &model->program[i]->step[k], p));
done:
    return err;
}

trl_err trli_slots_plan(trli_model *model)
{
    plan pl = {.model = model, .stray = -1};
    colouring c = {0};
    trl_err err = TRL_OK;
    size_t n = (size_t)model->nfields + 1;
    pl.list = malloc(n * sizeof *pl.list);
    pl.at = malloc(n * sizeof *pl.at);
    pl.values = malloc(n * (size_t)model->layout->nlocal * sizeof *pl.values + 1);
    if (!pl.list || !pl.at || !pl.values) TRL_TRY(no_memory(model));
    find_lifetimes(&pl);
    if (pl.stray >= 0)
        TRL_TRY(trl_fail(model->ctx, TRL_ERR_BUG, NULL, "two programs use the temporary field '%s'",
                         model->field[pl.stray].name));
    TRL_TRY(choose_colouring(&pl, &c));
    TRL_TRY(make_slots(&pl, &c));
    TRL_TRY(set_geometry(model));
    TRL_TRY(check_programs(model));
    for (int s = 0; s < model->nslots; ++s)
        for (int p = 0; p < model->layout->nlocal; ++p)
            model->planned_bytes += model->slot[s].values[p] * (int64_t)sizeof(double);
done:
    colouring_free(&c);
    free(pl.list);
    free(pl.at);
    free(pl.values);
    return err;
}

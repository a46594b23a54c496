/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Temporaries are dealt to slots. There may be a hundred thousand of them, but they have few shapes, so that what fits
 * best is sought among shapes, not among slots: all but the searches of small plans is linear in the number of
 * temporaries. */
#include <stdlib.h>
#include <string.h>

#include "memory_impl.h"
#include "slots_impl.h"

trl_err trli_no_slots(const trli_model *model)
{
    return trli_no_memory(model->ctx, NULL, "to plan %d fields", model->nfields);
}

/* Orders that are not that of production are tried up to so many temporaries: they look at all tenants of all slots. */
enum { SEARCHED = 500 };

/* The sizes, on each kind of patch, that temporaries and slots have. */
typedef struct shapes {
    const trli_model *model;
    const trli_patch_kinds *kinds;
    int n, capacity;
    int64_t *values;    /* [n][kind] */
    int *free;          /* [n] the slot of this shape that became free last, or -1 */
    int ntable, *table; /* hash table of shapes, -1: none */
} shapes;

static void shapes_free(shapes *sh)
{
    trli_free(sh->values);
    trli_free(sh->free);
    trli_free(sh->table);
}

static int64_t *values_of(const shapes *sh, int shape)
{
    return sh->values + (ptrdiff_t)shape * sh->kinds->n;
}

/* Where a shape is in the table, or would be put. */
static int *find_shape(const shapes *sh, const int64_t *values)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int k = 0; k < sh->kinds->n; ++k) {
        hash = (hash ^ (uint64_t)values[k]) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    const uint64_t mask = (uint64_t)sh->ntable - 1;
    uint64_t i = hash & mask;
    while (sh->table[i] >= 0 && memcmp(values_of(sh, sh->table[i]), values, (size_t)sh->kinds->n * sizeof *values) != 0)
        i = (i + 1) & mask;
    return &sh->table[i];
}

static trl_err grow_shapes(shapes *sh)
{
    const int more = sh->capacity ? 2 * sh->capacity : 16;
    int64_t *values = trli_resize(sh->model->ctx, sh->values, (size_t)more * (size_t)sh->kinds->n, sizeof *values);
    if (values) sh->values = values;
    int *first = trli_resize(sh->model->ctx, sh->free, (size_t)more, sizeof *first);
    if (first) sh->free = first;
    int *table = trli_new(sh->model->ctx, 4 * (size_t)more, sizeof *table);
    if (!values || !first || !table) {
        trli_free(table);
        return trli_no_slots(sh->model);
    }
    trli_free(sh->table);
    sh->table = table;
    sh->ntable = 4 * more;
    sh->capacity = more;
    for (int i = 0; i < sh->ntable; ++i) table[i] = -1;
    for (int i = 0; i < sh->n; ++i) *find_shape(sh, values_of(sh, i)) = i;
    return TRL_OK;
}

/* The number of a shape, which is noted if it is new. */
static trl_err number_shape(shapes *sh, const int64_t *values, int *shape)
{
    if (sh->n == sh->capacity) {
        trl_err err = grow_shapes(sh);
        if (err != TRL_OK) return err;
    }
    int *at = find_shape(sh, values);
    if (*at < 0) {
        *at = sh->n++;
        memcpy(values_of(sh, *at), values, (size_t)sh->kinds->n * sizeof *values);
        sh->free[*at] = -1;
    }
    *shape = *at;
    return TRL_OK;
}

/* What a slot would have to grow by for a temporary, and what it has too much; both over all patches. */
static void compare(const int64_t *slot, const int64_t *wanted, const trli_patch_kinds *kinds, int64_t *growth,
                    int64_t *waste)
{
    *growth = *waste = 0;
    for (int k = 0; k < kinds->n; ++k) {
        int64_t more = (wanted[k] - slot[k]) * kinds->count[k];
        *(more > 0 ? growth : waste) += more > 0 ? more : -more;
    }
}

static int64_t *room_of(const trli_colouring *c, int slot, const trli_patch_kinds *kinds)
{
    return c->values + (ptrdiff_t)slot * kinds->n;
}

static int open_slot(trli_colouring *c, const trli_patch_kinds *kinds)
{
    memset(room_of(c, c->nslots, kinds), 0, (size_t)kinds->n * sizeof *c->values);
    return c->nslots++;
}

static void grow_slot(trli_colouring *c, int slot, const int64_t *values, const trli_patch_kinds *kinds)
{
    int64_t *room = room_of(c, slot, kinds);
    for (int k = 0; k < kinds->n; ++k) {
        if (values[k] <= room[k]) continue;
        c->total += (values[k] - room[k]) * kinds->count[k];
        room[k] = values[k];
    }
}

/* ---- as produced ---- */

/* Slots, or temporaries, by the step of the present program after which they are left. */
typedef struct leaving {
    int program, step, nsteps; /* looked at up to step */
    int *first;                /* [step] */
    int *next;                 /* [slot or temporary], -1 at the end */
} leaving;

static trl_err leaving_init(const trli_temporaries *t, leaving *l)
{
    *l = (leaving){.program = -1};
    for (int i = 0; i < t->n; ++i) l->nsteps = t->list[i].last >= l->nsteps ? t->list[i].last + 1 : l->nsteps;
    l->first = trli_new(t->model->ctx, (size_t)l->nsteps + 1, sizeof *l->first);
    l->next = trli_new(t->model->ctx, (size_t)t->n + 1, sizeof *l->next);
    return l->first && l->next ? TRL_OK : trli_no_slots(t->model);
}

static void leaving_free(leaving *l)
{
    trli_free(l->first);
    trli_free(l->next);
}

static void leave_after(leaving *l, int who, int step)
{
    l->next[who] = l->first[step];
    l->first[step] = who;
}

/* Whether a temporary is the first one of its program; then no temporary of the program before is live. */
static bool enter_program(leaving *l, const trli_temporary *t)
{
    if (l->program == t->program) return false;
    l->program = t->program;
    l->step = 0;
    for (int s = 0; s < l->nsteps; ++s) l->first[s] = -1;
    return true;
}

/* A dealing in the order of production. */
typedef struct dealing {
    const trli_temporaries *t;
    trli_colouring *c;
    shapes sh;
    leaving l;
    int *shape, *since, *next; /* [slot] its shape; when it was left; the free one of its shape that was left before */
    bool *has;   /* [program][slots] whether some temporary of a program has a slot; NULL: no program minds */
    bool *taken; /* [slots] by programs that are there with the temporary to be dealt; */
    bool binds;  /* some are */
} dealing;

static void set_free(dealing *d, int slot, int since)
{
    d->since[slot] = since;
    d->next[slot] = d->sh.free[d->shape[slot]];
    d->sh.free[d->shape[slot]] = slot;
}

/* At a temporary's first step, all slots are free that were left before. */
static void free_slots(dealing *d, const trli_temporary *t)
{
    if (enter_program(&d->l, t)) {
        for (int s = 0; s < d->sh.n; ++s) d->sh.free[s] = -1;
        for (int s = d->c->nslots - 1; s >= 0; --s) set_free(d, s, -1);
    }
    for (; d->l.step < t->first; ++d->l.step)
        for (int s = d->l.first[d->l.step]; s >= 0; s = d->l.next[s]) set_free(d, s, d->l.step);
}

/* Note which slots other programs have that are in the frame while a temporary is live. */
static void find_taken(dealing *d, const trli_temporary *t)
{
    const trli_presence *presence = d->t->presence;
    if (!d->has) return;
    d->binds = trli_presence_binds(presence, t->program);
    if (!d->binds) return;
    memset(d->taken, 0, (size_t)d->t->n + 1);
    for (int p = 0; p < presence->nprograms; ++p) {
        const bool *has = d->has + (size_t)p * ((size_t)d->t->n + 1);
        if (!trli_presence_has(presence, t, p)) continue;
        for (int s = 0; s < d->c->nslots; ++s) d->taken[s] |= has[s];
    }
}

/* Of free slots of one shape, the link to the first that is nobody else's. */
static int *find_free(dealing *d, int shape)
{
    int *at = &d->sh.free[shape];
    while (d->binds && *at >= 0 && d->taken[*at]) at = &d->next[*at];
    return at;
}

/* The free slot that grows least, then that wastes least, then that was used last: its values may still be in the
 * cache. */
static int take_slot(dealing *d, const trli_temporary *t)
{
    int best = -1, *best_at = NULL;
    int64_t best_growth = 0, best_waste = 0;
    find_taken(d, t);
    for (int k = 0; k < d->sh.n; ++k) {
        int64_t growth, waste;
        int *at = find_free(d, k);
        const int s = *at;
        if (s < 0) continue;
        compare(values_of(&d->sh, k), t->values, d->sh.kinds, &growth, &waste);
        if (best >= 0 && (growth > best_growth || (growth == best_growth && waste > best_waste) ||
                          (growth == best_growth && waste == best_waste && d->since[s] <= d->since[best])))
            continue;
        best = s;
        best_at = at;
        best_growth = growth;
        best_waste = waste;
    }
    if (best >= 0) *best_at = d->next[best];
    return best >= 0 ? best : open_slot(d->c, d->sh.kinds);
}

static trl_err dealing_init(const trli_temporaries *t, trli_colouring *c, dealing *d)
{
    const size_t n = (size_t)t->n + 1;
    trl_err err = TRL_OK;
    *d = (dealing){.t = t, .c = c, .sh = {.model = t->model, .kinds = t->kinds}};
    TRL_TRY(leaving_init(t, &d->l));
    d->shape = trli_new(t->model->ctx, n, sizeof *d->shape);
    d->since = trli_new(t->model->ctx, n, sizeof *d->since);
    d->next = trli_new(t->model->ctx, n, sizeof *d->next);
    if (!d->shape || !d->since || !d->next) TRL_TRY(trli_no_slots(t->model));
    if (t->presence->ncalls > 0 || t->presence->meets) {
        d->has = trli_new(t->model->ctx, n * (size_t)t->presence->nprograms, sizeof *d->has);
        d->taken = trli_new(t->model->ctx, n, sizeof *d->taken);
        if (!d->has || !d->taken) TRL_TRY(trli_no_slots(t->model));
    }
    for (int s = 0; s < c->nslots; ++s) TRL_TRY(number_shape(&d->sh, room_of(c, s, d->sh.kinds), &d->shape[s]));
done:
    return err;
}

/* Deal the temporaries as they are produced, to the slots that are there and new ones. */
static trl_err deal(const trli_temporaries *t, trli_colouring *c)
{
    dealing d;
    const bool no_reuse = t->model->settings.disabled_passes & TRL_PASS_SLOTS;
    trl_err err = TRL_OK;
    TRL_TRY(dealing_init(t, c, &d));
    for (int i = 0; i < t->n; ++i) {
        if (!no_reuse) free_slots(&d, &t->list[i]);
        const int s = c->slot[i] = no_reuse ? open_slot(c, d.sh.kinds) : take_slot(&d, &t->list[i]);
        grow_slot(c, s, t->list[i].values, d.sh.kinds);
        if (d.has) d.has[(size_t)t->list[i].program * ((size_t)t->n + 1) + (size_t)s] = true;
        if (no_reuse) continue;
        TRL_TRY(number_shape(&d.sh, room_of(c, s, d.sh.kinds), &d.shape[s]));
        leave_after(&d.l, s, t->list[i].last);
    }
done:
    shapes_free(&d.sh);
    leaving_free(&d.l);
    trli_free(d.shape);
    trli_free(d.since);
    trli_free(d.next);
    trli_free(d.has);
    trli_free(d.taken);
    return err;
}

/* ---- slots that no plan can do without ---- */

/* Those that live at once, by shape, the largest first. */
typedef struct crowd {
    int live, from, to; /* of a shape; the slots that had room for it last: [from, to) */
} crowd;

typedef struct seeding {
    shapes sh;
    leaving l;
    int *shape; /* [temporary] */
    int *order; /* of shapes */
    crowd *crowd;
} seeding;

static int64_t total_of(const shapes *sh, int shape)
{
    int64_t total = 0;
    for (int k = 0; k < sh->kinds->n; ++k) total += values_of(sh, shape)[k] * sh->kinds->count[k];
    return total;
}

static trl_err seeding_init(const trli_temporaries *t, seeding *s)
{
    trl_err err = TRL_OK;
    *s = (seeding){.sh = {.model = t->model, .kinds = t->kinds}};
    TRL_TRY(leaving_init(t, &s->l));
    s->shape = trli_new(t->model->ctx, (size_t)t->n + 1, sizeof *s->shape);
    if (!s->shape) TRL_TRY(trli_no_slots(t->model));
    for (int i = 0; i < t->n; ++i) TRL_TRY(number_shape(&s->sh, t->list[i].values, &s->shape[i]));
    s->order = trli_new(t->model->ctx, (size_t)s->sh.n + 1, sizeof *s->order);
    s->crowd = trli_new(t->model->ctx, (size_t)s->sh.n + 1, sizeof *s->crowd);
    if (!s->order || !s->crowd) TRL_TRY(trli_no_slots(t->model));
    for (int k = 0; k < s->sh.n; ++k) { /* few: insertion keeps equal ones in their order */
        int at = k;
        for (; at > 0 && total_of(&s->sh, s->order[at - 1]) < total_of(&s->sh, k); --at)
            s->order[at] = s->order[at - 1];
        s->order[at] = k;
    }
done:
    return err;
}

/* Give slots [from, to) room for a shape, but for those that had it when it was looked at last. */
static void cover(trli_colouring *c, const seeding *s, int shape, int from, int to)
{
    crowd *k = &s->crowd[shape];
    for (int slot = from; slot < to; ++slot) {
        if (slot >= k->from && slot < k->to) slot = k->to;
        if (slot >= to) break;
        while (slot >= c->nslots) open_slot(c, s->sh.kinds);
        grow_slot(c, slot, values_of(&s->sh, shape), s->sh.kinds);
    }
    k->from = from;
    k->to = to;
}

/* Begin with the slots that no plan can do without: as large as the largest temporary, the second largest of those that
 * live at once, ... */
static trl_err seed(const trli_temporaries *t, trli_colouring *c)
{
    seeding s;
    trl_err err = TRL_OK;
    TRL_TRY(seeding_init(t, &s));
    for (int i = 0; i < t->n; ++i) { /* most temporaries live where one is produced */
        if (enter_program(&s.l, &t->list[i]))
            for (int k = 0; k < s.sh.n; ++k) s.crowd[k].live = 0;
        for (; s.l.step < t->list[i].first; ++s.l.step)
            for (int j = s.l.first[s.l.step]; j >= 0; j = s.l.next[j]) --s.crowd[s.shape[j]].live;
        ++s.crowd[s.shape[i]].live;
        leave_after(&s.l, i, t->list[i].last);
        for (int k = 0, from = 0; k < s.sh.n; ++k) {
            const int live = s.crowd[s.order[k]].live;
            cover(c, &s, s.order[k], from, from + live);
            from += live;
        }
    }
done:
    shapes_free(&s.sh);
    leaving_free(&s.l);
    trli_free(s.shape);
    trli_free(s.order);
    trli_free(s.crowd);
    return err;
}

/* ---- from large to small ---- */

static bool overlap(const trli_presence *presence, const trli_temporary *a, const trli_temporary *b)
{
    if (a->program == b->program) return a->first <= b->last && b->first <= a->last;
    return trli_presence_has(presence, a, b->program) || trli_presence_has(presence, b, a->program);
}

static int by_size(const void *a, const void *b)
{
    const trli_temporary *const *s = a, *const *t = b;
    if ((*s)->total != (*t)->total) return (*s)->total > (*t)->total ? -1 : 1;
    return *s < *t ? -1 : 1;
}

/* The slot that grows least, then that wastes least, of those that are not taken. */
static int search_slot(const trli_colouring *c, const bool *taken, const int64_t *values, const trli_patch_kinds *kinds)
{
    int best = -1;
    int64_t best_growth = 0, best_waste = 0;
    for (int s = 0; s < c->nslots; ++s) {
        int64_t growth, waste;
        if (taken[s]) continue;
        compare(room_of(c, s, kinds), values, kinds, &growth, &waste);
        if (best >= 0 && (growth > best_growth || (growth == best_growth && waste >= best_waste))) continue;
        best = s;
        best_growth = growth;
        best_waste = waste;
    }
    return best;
}

static trl_err deal_falling(const trli_temporaries *t, trli_colouring *c)
{
    const trli_temporary **sorted = trli_new(t->model->ctx, (size_t)t->n + 1, sizeof(trli_temporary *));
    bool *taken = trli_new(t->model->ctx, (size_t)t->n + 1, 1);
    trl_err err = TRL_OK;
    if (!sorted || !taken) TRL_TRY(trli_no_slots(t->model));
    for (int i = 0; i < t->n; ++i) sorted[i] = &t->list[i];
    qsort((void *)sorted, (size_t)t->n, sizeof(trli_temporary *), by_size);
    for (int i = 0; i < t->n; ++i) {
        memset(taken, 0, (size_t)c->nslots);
        for (int k = 0; k < i; ++k)
            if (overlap(t->presence, sorted[k], sorted[i])) taken[c->slot[sorted[k] - t->list]] = true;
        int s = search_slot(c, taken, sorted[i]->values, t->kinds);
        if (s < 0) s = open_slot(c, t->kinds);
        grow_slot(c, s, sorted[i]->values, t->kinds);
        c->slot[sorted[i] - t->list] = s;
    }
done:
    trli_free(sorted);
    trli_free(taken);
    return err;
}

/* ---- the best ---- */

static trl_err colouring_init(const trli_temporaries *t, trli_colouring *c)
{
    const size_t n = (size_t)t->n + 1;
    *c = (trli_colouring){.slot = trli_new(t->model->ctx, n, sizeof *c->slot),
                          .values = trli_new(t->model->ctx, n * (size_t)t->kinds->n, sizeof *c->values)};
    return c->slot && c->values ? TRL_OK : trli_no_slots(t->model);
}

void trli_colouring_free(trli_colouring *c)
{
    trli_free(c->slot);
    trli_free(c->values);
    *c = (trli_colouring){0};
}

/* The colouring that needs less memory stays in best. */
static void keep_less(trli_colouring *best, trli_colouring *other)
{
    trli_colouring more = *best;
    if (other->total >= best->total) return;
    *best = *other;
    *other = more;
}

/* As produced, a slot is taken when the one before has left it: the fewest slots. With slots of the right sizes to
 * begin with, none need grow. From large to small, none does, but there may be more. */
trl_err trli_colouring_choose(const trli_temporaries *t, trli_colouring *best)
{
    trli_colouring other = {0};
    trl_err err = TRL_OK;
    *best = (trli_colouring){0};
    TRL_TRY(colouring_init(t, best));
    TRL_TRY(deal(t, best));
    if (t->model->settings.disabled_passes & TRL_PASS_SLOTS) goto done;
    TRL_TRY(colouring_init(t, &other));
    TRL_TRY(seed(t, &other));
    TRL_TRY(deal(t, &other));
    keep_less(best, &other);
    if (t->n > SEARCHED) goto done;
    trli_colouring_free(&other);
    TRL_TRY(colouring_init(t, &other));
    TRL_TRY(deal_falling(t, &other));
    keep_less(best, &other);
done:
    trli_colouring_free(&other);
    return err;
}

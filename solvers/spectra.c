/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Spectra of fields along periodic axes, as columns of series. Halves of squares are summed exactly by wave number, so
 * the bits are the same however lines are dealt out. */
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "direct_impl.h"
#include "frame_impl.h"
#include "memory_impl.h"
#include "spectra_impl.h"
#include "tasks_impl.h"

enum { BATCH = 64 /* values that are added to an exact sum at once */ };

typedef struct spectrum {
    const trl_spectrum_entry *entry;
    int nshown, *shown; /* its fields; of a vector all components */
    int columns;        /* wave numbers 0, 1, .. */
    double unit;        /* between them */
} spectrum;

/* Of a spectrum, on its way to the sums. */
typedef struct transformed {
    int field; /* of the model */
    trli_direct_plan plan;
    trli_slabs *slabs;
    double *weight[3], *square[3]; /* by axis and index: of a product with its square; of the wave number, in units */
} transformed;

/* The sums of a spectrum. */
typedef struct gathering {
    const transformed *from;
    int columns;
    trl_sum *sum;  /* [workers][columns] */
    double *batch; /* [workers][columns][BATCH] */
    int *filled;   /* [workers][columns] */
} gathering;

struct trli_spectra {
    spectrum *list; /* [problem->nspectra] */
    trl_loop *loop;
    int nfields;                             /* of all spectra */
    transformed *place[TRLI_SPECTRA_PLACES]; /* [nfields] of a row under way; NULL: not made */
    gathering sums;                          /* of one spectrum at a time, with room for the longest one */
    trli_batch_run all;                      /* columns, on their way between the ranks */
};

/* ---- what is asked for ---- */

/* The field of a name, or a component of a vector of that name; -1: there is none. */
static int find_shown(const trl_simulation *sim, const char *name, const char *component)
{
    const size_t n = strlen(name);
    for (int i = 0; i < sim->nshown; ++i) {
        const trl_field_info *info = &sim->shown[i].info;
        if (!info->is_exact && strncmp(info->name, name, n) == 0 && strcmp(info->name + n, component) == 0) return i;
    }
    return -1;
}

static bool is_along(const trl_spectrum_entry *entry, const trl_grid *grid, int axis)
{
    return entry->axis < 0 ? axis < grid->dim : entry->axis == axis;
}

static trl_err check_axes(const trl_simulation *sim, const trl_spectrum_entry *entry)
{
    const trl_grid *grid = &sim->layout->grid;
    if (entry->axis >= grid->dim)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &entry->place,
                        "the spectrum '%s' is along %c, which a grid of %d dimension%s does not have: use another axis",
                        entry->name, "xyz"[entry->axis], grid -> dim, grid -> dim > 1 ? "s" : "");
    for (int a = 0; a < grid->dim; ++a)
        if (is_along(entry, grid, a) && !grid->periodic[a])
            return trl_fail(sim->ctx, TRL_ERR_INPUT, &entry->place,
                            "the spectrum '%s' is along %c, which is not periodic: use `along` with a periodic axis, "
                            "or make it periodic (grid.periodic)",
                            entry->name, "xyz"[a]);
    return TRL_OK;
}

static trl_err find_fields(const trl_simulation *sim, spectrum *s)
{
    static const char *const component[] = {"", ".x", ".y", ".z"};
    s->shown = trli_new(sim->ctx, 3 * (size_t)s->entry->nfields + 1, sizeof *s->shown);
    if (!s->shown) return trli_no_memory(sim->ctx, NULL, "for the spectrum '%s'", s->entry->name);
    for (int i = 0; i < s->entry->nfields; ++i) {
        const int before = s->nshown;
        for (size_t c = 0; c < sizeof component / sizeof *component; ++c) {
            const int found = find_shown(sim, s->entry->field[i], component[c]);
            if (found >= 0) s->shown[s->nshown++] = found;
        }
        if (s->nshown == before)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, &s->entry->place,
                            "'%s' in the spectrum '%s' is neither an equation nor a field that is written: add it to "
                            "output.fields",
                            s->entry->field[i], s->entry->name);
    }
    return TRL_OK;
}

/* Shells are as wide as the smallest wave number of all axes. */
static void count_columns(const trl_simulation *sim, spectrum *s)
{
    const trl_grid *grid = &sim->layout->grid;
    double longest = 0, most = 0;
    for (int a = 0; a < grid->dim; ++a)
        if (is_along(s->entry, grid, a)) longest = fmax(longest, (double)grid->cells[a] * grid->spacing[a]);
    for (int a = 0; a < grid->dim; ++a) {
        const double unit = longest / ((double)grid->cells[a] * grid->spacing[a]);
        const double last = unit * (double)(grid->cells[a] / 2);
        if (is_along(s->entry, grid, a)) most += last * last;
    }
    s->unit = longest;
    s->columns = 1 + (int)floor(sqrt(most) + 0.5);
}

/* ---- the fields of a row ---- */

/* The order of a half-complex transform: i and n - i are of one wave number. */
static trl_err tabulate(const trl_simulation *sim, const spectrum *s, const trli_line line[3], transformed *t)
{
    const trl_grid *grid = &sim->layout->grid;
    for (int a = 0; a < 3; ++a) {
        const int n = line[a].n;
        const bool along = is_along(s->entry, grid, a);
        const double unit = s->unit / ((double)grid->cells[a] * grid->spacing[a]);
        t->weight[a] = trli_new(sim->ctx, (size_t)n, sizeof *t->weight[a]);
        t->square[a] = trli_new(sim->ctx, (size_t)n, sizeof *t->square[a]);
        if (!t->weight[a] || !t->square[a]) return trli_no_memory(sim->ctx, NULL, "for spectra");
        for (int i = 0; i < n; ++i) {
            const double k = unit * (i < n - i ? i : n - i);
            t->weight[a][i] = along ? (i == 0 || 2 * i == n ? 1.0 : 2.0) / ((double)n * n) : 1.0 / n;
            t->square[a][i] = along ? k * k : 0;
        }
    }
    return TRL_OK;
}

static trl_err plan_transforms(const trl_simulation *sim, const spectrum *s, const trli_line line[3],
                               trli_direct_plan *plan)
{
    trl_err err = TRL_OK;
    *plan = (trli_direct_plan){.scale = 1};
    for (int a = 0; a < 3; ++a) {
        plan->axis[a].n = line[a].n;
        if (line[a].n > 1) plan->last = a;
    }
    for (int a = 0; a < 3; ++a)
        if (line[a].n > 1 && is_along(s->entry, &sim->layout->grid, a))
            TRL_TRY(trli_transform_create(sim->ctx, TRLI_TRANSFORM_PERIODIC, line[a].n, &plan->axis[a].transform));
done:
    return err;
}

static trl_err make_field(trl_simulation *sim, const spectrum *s, const trli_shown *shown, transformed *t)
{
    const trl_location location = shown->info.location;
    trli_line line[3] = {0};
    trl_err err;
    t->field = shown->field;
    for (int a = 0; a < 3; ++a) line[a].n = (int)trl_grid_points(&sim->layout->grid, location, a);
    err = tabulate(sim, s, line, t);
    if (err == TRL_OK) err = plan_transforms(sim, s, line, &t->plan);
    TRL_TRY(trl_context_agree(sim->ctx, err));
    err = trli_slabs_create(sim, location, line, &t->plan, NULL, sim->spectra->loop, &t->slabs);
done:
    return err;
}

static void release_field(transformed *t)
{
    trli_slabs_destroy(&t->slabs);
    trli_direct_plan_destroy(&t->plan);
    for (int a = 0; a < 3; ++a) {
        trli_free(t->weight[a]);
        trli_free(t->square[a]);
    }
    *t = (transformed){0};
}

static void release(int n, transformed **fields)
{
    for (int i = 0; *fields && i < n; ++i) release_field(&(*fields)[i]);
    trli_free(*fields);
    *fields = NULL;
}

trl_err trli_spectra_make(trl_simulation *sim, int place)
{
    struct trli_spectra *all = sim->spectra;
    trl_err err = TRL_OK;
    if (!all || all->place[place]) return TRL_OK;
    trl_context_begin_phase(sim->ctx);
    transformed *t = all->place[place] = trli_new(sim->ctx, (size_t)all->nfields + 1, sizeof *t);
    TRL_TRY(trl_context_agree(sim->ctx, t ? TRL_OK : trli_no_memory(sim->ctx, NULL, "for spectra")));
    for (int i = 0; i < sim->problem->nspectra; ++i)
        for (int k = 0; k < all->list[i].nshown; ++k, ++t)
            TRL_TRY(make_field(sim, &all->list[i], &sim->shown[all->list[i].shown[k]], t));
done:
    return trl_context_end_phase(sim->ctx, err);
}

bool trli_spectra_are_made(const trl_simulation *sim, int place)
{
    return !sim->spectra || sim->spectra->place[place];
}

static trl_err make_sums(const trl_simulation *sim, struct trli_spectra *all)
{
    const size_t workers = (size_t)trl_loop_workers(all->loop);
    gathering *g = &all->sums;
    size_t longest = 0;
    int n = 0;
    for (int i = 0; i < sim->problem->nspectra; ++i) {
        const size_t columns = (size_t)all->list[i].columns;
        n += all->list[i].columns;
        all->nfields += all->list[i].nshown;
        if (columns > longest) longest = columns;
    }
    sim->model->sent[TRLI_SENT_SPECTRA] = n;
    g->sum = trli_new(sim->ctx, workers * longest, sizeof *g->sum);
    g->batch = trli_new(sim->ctx, workers * longest * BATCH, sizeof *g->batch);
    g->filled = trli_new(sim->ctx, workers * longest, sizeof *g->filled);
    if (!g->sum || !g->batch || !g->filled) return trli_no_memory(sim->ctx, NULL, "for %d columns of spectra", n);
    return trli_batch_create(sim->ctx, &all->all, TRLI_SENT_SPECTRA, n, 0);
}

trl_err trli_spectra_compile(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    struct trli_spectra *all;
    trl_err err = TRL_OK;
    if (p->nspectra == 0) return TRL_OK;
    all = sim->spectra = trli_new(sim->ctx, 1, sizeof *all);
    if (!all) return trli_no_memory(sim->ctx, NULL, "for spectra");
    all->list = trli_new(sim->ctx, (size_t)p->nspectra, sizeof *all->list);
    if (!all->list) return trli_no_memory(sim->ctx, NULL, "for %d spectra", p->nspectra);
    for (int i = 0; i < p->nspectra; ++i) {
        all->list[i].entry = &p->spectrum[i];
        TRL_TRY(check_axes(sim, &p->spectrum[i]));
        TRL_TRY(find_fields(sim, &all->list[i]));
        count_columns(sim, &all->list[i]);
    }
    TRL_TRY(trl_loop_create(sim->ctx, sim->workers, &all->loop));
    err = make_sums(sim, all);
done:
    return err;
}

void trli_spectra_destroy(trl_simulation *sim)
{
    struct trli_spectra *all = sim->spectra;
    sim->spectra = NULL;
    if (!all) return;
    for (int i = 0; i < TRLI_SPECTRA_PLACES; ++i) release(all->nfields, &all->place[i]);
    for (int i = 0; all->list && i < sim->problem->nspectra; ++i) trli_free(all->list[i].shown);
    trl_loop_destroy(&all->loop);
    trli_batch_destroy(sim->frame, &all->all);
    trli_free(all->sums.sum);
    trli_free(all->sums.batch);
    trli_free(all->sums.filled);
    trli_free(all->list);
    trli_free(all);
}

int trli_spectrum_columns(const trl_simulation *sim, int i)
{
    return sim->spectra->list[i].columns;
}

/* ---- sums ---- */

static void flush(gathering *g, int at)
{
    trl_sum_add(&g->sum[at], g->batch + (ptrdiff_t)at * BATCH, g->filled[at]);
    g->filled[at] = 0;
}

static void gather_lines(void *data, int worker, const trli_spectral_lines *lines)
{
    gathering *g = data;
    const transformed *t = g->from;
    const int last = lines->last, across = lines->across, rest = 3 - last - across;
    const int other = lines->at[rest];
    for (int l = 0; l < lines->n; ++l) {
        const int beside = lines->at[across] + l;
        const double square = t->square[across][beside] + t->square[rest][other];
        const double weight = t->weight[across][beside] * t->weight[rest][other];
        for (int i = 0; i < lines->points; ++i) {
            const double f = lines->value[(ptrdiff_t)i * TRLI_LANES + l];
            const int column = (int)floor(sqrt(square + t->square[last][i]) + 0.5);
            const int at = worker * g->columns + column;
            g->batch[(ptrdiff_t)at * BATCH + g->filled[at]++] = 0.5 * (weight * t->weight[last][i]) * (f * f);
            if (g->filled[at] == BATCH) flush(g, at);
        }
    }
}

static void begin_sums(struct trli_spectra *all, const spectrum *s)
{
    gathering *g = &all->sums;
    const int n = trl_loop_workers(all->loop) * s->columns;
    g->columns = s->columns;
    for (int at = 0; at < n; ++at) {
        trl_sum_clear(&g->sum[at]);
        g->filled[at] = 0;
    }
}

static void end_sums(struct trli_spectra *all, int64_t (*words)[TRLI_PARTIAL_WORDS])
{
    gathering *g = &all->sums;
    const int n = trl_loop_workers(all->loop) * g->columns;
    for (int at = 0; at < n; ++at) {
        flush(g, at);
        if (at >= g->columns) trl_sum_merge(&g->sum[at % g->columns], &g->sum[at]);
    }
    for (int k = 0; k < g->columns; ++k) trli_partial_pack_sum(&(trli_partial){.sum = g->sum[k]}, words[k]);
}

static trl_err add_field(struct trli_spectra *all, const transformed *t)
{
    all->sums.from = t;
    return trli_slabs_visit(t->slabs, gather_lines, &all->sums);
}

/* ---- a row whose columns come later ---- */

trl_err trli_spectra_begin(trl_simulation *sim, int place, trl_err *own)
{
    struct trli_spectra *all = sim->spectra;
    trl_err err = TRL_OK;
    for (int i = 0; all && i < all->nfields; ++i) {
        const transformed *t = &all->place[place][i];
        if (*own == TRL_OK) *own = trli_frame_fetch(sim->frame, t->field);
        TRL_TRY(trli_slabs_send(t->slabs, t->field));
    }
done:
    return err;
}

trl_err trli_spectra_transform(trl_simulation *sim, int place)
{
    struct trli_spectra *all = sim->spectra;
    trl_err err = TRL_OK;
    for (int i = 0; all && i < all->nfields; ++i) TRL_TRY(trli_slabs_transform(all->place[place][i].slabs));
done:
    return err;
}

trl_err trli_spectra_sum(trl_simulation *sim, int place, bool failed)
{
    struct trli_spectra *all = sim->spectra;
    const transformed *t = all->place[place];
    int64_t(*words)[TRLI_PARTIAL_WORDS] = all->all.sum;
    trl_err err = TRL_OK;
    for (int i = 0; i < sim->problem->nspectra; ++i) {
        begin_sums(all, &all->list[i]);
        for (int k = 0; k < all->list[i].nshown; ++k) TRL_TRY(add_field(all, t++));
        end_sums(all, words);
        words += all->list[i].columns;
    }
    if (failed) trli_partial_spoil_sum(all->all.sum[0]);
    err = trli_batch_post(sim->frame, &all->all);
done:
    return err;
}

trl_err trli_spectra_end(trl_simulation *sim, double *value, bool *failed)
{
    struct trli_spectra *all = sim->spectra;
    trl_err err = TRL_OK;
    TRL_TRY(trli_batch_await(sim->frame, &all->all));
    *failed |= trli_partial_spoilt_sum(all->all.sum[0]);
    for (int k = 0; k < all->all.nsums; ++k) value[k] = trli_partial_unpack_sum(all->all.sum[k]);
done:
    return err;
}

/* ---- at once ---- */

/* In a place that is made. */
static trl_err find_there(trl_simulation *sim, int place)
{
    trl_err own = TRL_OK, err = TRL_OK;
    TRL_TRY(trli_spectra_begin(sim, place, &own));
    TRL_TRY(trl_context_agree(sim->ctx, own));
    TRL_TRY(trli_spectra_transform(sim, place));
    err = trli_spectra_sum(sim, place, false);
done:
    return err;
}

/* Without one: one field after the other, so that there is memory for one. */
static trl_err find_one(trl_simulation *sim, const spectrum *s, int64_t (*words)[TRLI_PARTIAL_WORDS])
{
    transformed t = {0};
    trl_err err = TRL_OK;
    begin_sums(sim->spectra, s);
    for (int i = 0; i < s->nshown; ++i) {
        TRL_TRY(make_field(sim, s, &sim->shown[s->shown[i]], &t));
        TRL_TRY(trl_context_agree(sim->ctx, trli_frame_fetch(sim->frame, t.field)));
        TRL_TRY(trli_slabs_send(t.slabs, t.field));
        TRL_TRY(trli_slabs_transform(t.slabs));
        TRL_TRY(add_field(sim->spectra, &t));
        release_field(&t);
    }
    end_sums(sim->spectra, words);
done:
    release_field(&t);
    return err;
}

static trl_err find_all(trl_simulation *sim)
{
    struct trli_spectra *all = sim->spectra;
    int64_t(*words)[TRLI_PARTIAL_WORDS] = all->all.sum;
    trl_err err = TRL_OK;
    for (int i = 0; i < sim->problem->nspectra; ++i) {
        TRL_TRY(find_one(sim, &all->list[i], words));
        words += all->list[i].columns;
    }
    err = trli_batch_post(sim->frame, &all->all);
done:
    return err;
}

trl_err trli_spectra_find(trl_simulation *sim, double *value)
{
    bool failed = false;
    trl_err err = TRL_OK;
    if (!sim->spectra) return TRL_OK;
    TRL_TRY(trli_spectra_are_made(sim, 0) ? find_there(sim, 0) : find_all(sim));
    err = trli_spectra_end(sim, value, &failed);
done:
    return err;
}

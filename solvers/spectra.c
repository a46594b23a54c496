/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Spectra of fields along periodic axes, as columns of series. Halves of squares are summed exactly by wave number, so
 * the bits are the same however lines are dealt out. */
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "direct_impl.h"
#include "memory_impl.h"
#include "spectra_impl.h"

enum { BATCH = 64 /* values that are added to an exact sum at once */ };

typedef struct spectrum {
    const trl_spectrum_entry *entry;
    int nshown, *shown; /* its fields; of a vector all components */
    int columns;        /* wave numbers 0, 1, .. */
    double unit;        /* between them */
} spectrum;

struct trli_spectra {
    spectrum *list; /* [problem->nspectra] */
    trl_loop *loop;
};

/* Values of a field on their way to the sums. */
typedef struct gathering {
    int columns;
    double *weight[3], *square[3]; /* by axis and index: of a product with its square; of the wave number, in units */
    trl_sum *sum;                  /* [workers][columns] */
    double *batch;                 /* [workers][columns][BATCH] */
    int *filled;                   /* [workers][columns] */
} gathering;

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
    err = trl_loop_create(sim->ctx, sim->workers, &all->loop);
done:
    return err;
}

void trli_spectra_destroy(trl_simulation *sim)
{
    struct trli_spectra *all = sim->spectra;
    sim->spectra = NULL;
    if (!all) return;
    for (int i = 0; all->list && i < sim->problem->nspectra; ++i) trli_free(all->list[i].shown);
    trl_loop_destroy(&all->loop);
    trli_free(all->list);
    trli_free(all);
}

int trli_spectrum_columns(const trl_simulation *sim, int i)
{
    return sim->spectra->list[i].columns;
}

/* ---- one field ---- */

static void flush(gathering *g, int at)
{
    trl_sum_add(&g->sum[at], g->batch + (ptrdiff_t)at * BATCH, g->filled[at]);
    g->filled[at] = 0;
}

static void gather_lines(void *data, int worker, const trli_spectral_lines *lines)
{
    gathering *g = data;
    const int last = lines->last, across = lines->across, rest = 3 - last - across;
    const int other = lines->at[rest];
    for (int l = 0; l < lines->n; ++l) {
        const int beside = lines->at[across] + l;
        const double square = g->square[across][beside] + g->square[rest][other];
        const double weight = g->weight[across][beside] * g->weight[rest][other];
        for (int i = 0; i < lines->points; ++i) {
            const double f = lines->value[(ptrdiff_t)i * TRLI_LANES + l];
            const int column = (int)floor(sqrt(square + g->square[last][i]) + 0.5);
            const int at = worker * g->columns + column;
            g->batch[(ptrdiff_t)at * BATCH + g->filled[at]++] = 0.5 * (weight * g->weight[last][i]) * (f * f);
            if (g->filled[at] == BATCH) flush(g, at);
        }
    }
}

/* The order of a half-complex transform: i and n - i are of one wave number. */
static trl_err tabulate(const trl_simulation *sim, const spectrum *s, const trli_line line[3], gathering *g)
{
    const trl_grid *grid = &sim->layout->grid;
    for (int a = 0; a < 3; ++a) {
        const int n = line[a].n;
        const bool along = is_along(s->entry, grid, a);
        const double unit = s->unit / ((double)grid->cells[a] * grid->spacing[a]);
        g->weight[a] = trli_new(sim->ctx, (size_t)n, sizeof *g->weight[a]);
        g->square[a] = trli_new(sim->ctx, (size_t)n, sizeof *g->square[a]);
        if (!g->weight[a] || !g->square[a]) return trli_no_memory(sim->ctx, NULL, "for spectra");
        for (int i = 0; i < n; ++i) {
            const double k = unit * (i < n - i ? i : n - i);
            g->weight[a][i] = along ? (i == 0 || 2 * i == n ? 1.0 : 2.0) / ((double)n * n) : 1.0 / n;
            g->square[a][i] = along ? k * k : 0;
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

static trl_err add_field(trl_simulation *sim, const spectrum *s, const trli_shown *shown, gathering *g)
{
    const trl_grid *grid = &sim->layout->grid;
    trli_line line[3] = {0};
    trli_direct_plan plan = {0};
    trli_slabs *slabs = NULL;
    trl_err err = TRL_OK;
    for (int a = 0; a < 3; ++a) line[a].n = (int)trl_grid_points(grid, shown->info.location, a);
    err = tabulate(sim, s, line, g);
    if (err == TRL_OK) err = plan_transforms(sim, s, line, &plan);
    TRL_TRY(trl_context_agree(sim->ctx, err));
    TRL_TRY(trli_slabs_create(sim, shown->info.location, line, &plan, NULL, sim->spectra->loop, &slabs));
    err = trli_slabs_visit(slabs, shown->field, gather_lines, g);
done:
    trli_slabs_destroy(&slabs);
    trli_direct_plan_destroy(&plan);
    for (int a = 0; a < 3; ++a) {
        trli_free(g->weight[a]);
        trli_free(g->square[a]);
        g->weight[a] = g->square[a] = NULL;
    }
    return err;
}

/* ---- all of them ---- */

static trl_err find_one(trl_simulation *sim, const spectrum *s, double *value)
{
    const int workers = trl_loop_workers(sim->spectra->loop);
    const size_t n = (size_t)workers * (size_t)s->columns;
    gathering g = {.columns = s->columns};
    trl_err err = TRL_OK;
    g.sum = trli_new(sim->ctx, n, sizeof *g.sum);
    g.batch = trli_new(sim->ctx, n * BATCH, sizeof *g.batch);
    g.filled = trli_new(sim->ctx, n, sizeof *g.filled);
    if (!g.sum || !g.batch || !g.filled) err = trli_no_memory(sim->ctx, NULL, "for the spectrum '%s'", s->entry->name);
    TRL_TRY(trl_context_agree(sim->ctx, err));
    for (size_t i = 0; i < n; ++i) trl_sum_clear(&g.sum[i]);
    for (int i = 0; i < s->nshown; ++i) TRL_TRY(add_field(sim, s, &sim->shown[s->shown[i]], &g));
    for (int at = 0; at < (int)n; ++at) {
        flush(&g, at);
        if (at >= s->columns) trl_sum_merge(&g.sum[at % s->columns], &g.sum[at]);
    }
    TRL_TRY(trl_sum_allreduce(sim->ctx, s->columns, g.sum));
    for (int k = 0; k < s->columns; ++k) value[k] = trl_sum_value(&g.sum[k]);
done:
    trli_free(g.sum);
    trli_free(g.batch);
    trli_free(g.filled);
    return err;
}

trl_err trli_spectra_find(trl_simulation *sim, double *value)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < sim->problem->nspectra; ++i) {
        TRL_TRY(find_one(sim, &sim->spectra->list[i], value));
        value += sim->spectra->list[i].columns;
    }
done:
    return err;
}

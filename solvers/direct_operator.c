/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The rows of an operator along each axis, by products with vectors that are one at a few points, far enough from each
 * other for every row to read one of them at most. */
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "direct_impl.h"
#include "memory_impl.h"

/* An entry of the operator that is wanted: what a point's value adds at a point. */
typedef struct entry {
    int axis; /* along which they may differ */
    int row[3], column[3];
    double *value;
    bool known;
} entry;

typedef struct search {
    trli_solver *s;
    int unknown; /* the others are zero */
    const trli_line *line;
    bool all; /* rows may differ inside */
    entry *list;
    int n;
    double *values; /* [n] of the present product */
    bool *taken[3]; /* of each axis, its points: columns of the present product */
} search;

/* ---- values at points ---- */

typedef struct patch_points {
    trl_array array;
    ptrdiff_t first[3]; /* the index among unknown points of local point 0 */
} patch_points;

static patch_points points_of(const search *f, int field, int p)
{
    const trl_simulation *sim = f->s->sim;
    const trl_patch *patch = &sim->layout->patch[p];
    patch_points m = {.array = trli_frame_array(sim->frame, field, p, 0)};
    for (int a = 0; a < 3; ++a) m.first[a] = (ptrdiff_t)patch->first[a] - f->line[a].first;
    return m;
}

/* NULL: not on this patch. */
static double *find_point(const patch_points *m, const int at[3])
{
    trl_lidx local[3];
    for (int a = 0; a < 3; ++a) {
        local[a] = (trl_lidx)(at[a] - m->first[a]);
        if (local[a] < m->array.owned.lo[a] || local[a] >= m->array.owned.hi[a]) return NULL;
    }
    return (double *)m->array.at + trl_array_offset(&m->array, local[0], local[1], local[2]);
}

static void clear(const trl_array *a)
{
    const trl_box *b = &a->owned;
    for (trl_lidx k = b->lo[2]; k < b->hi[2]; ++k)
        for (trl_lidx j = b->lo[1]; j < b->hi[1]; ++j)
            memset((double *)a->at + trl_array_offset(a, b->lo[0], j, k), 0,
                   (size_t)(b->hi[0] - b->lo[0]) * sizeof(double));
}

/* ---- products ---- */

/* Whether one of the product's columns is within two points of one at index `at` of an axis, but not that one. No row
 * reads both of two that are farther apart. */
static bool near_taken(const search *f, int axis, int at)
{
    const trli_line *l = &f->line[axis];
    for (int k = -2; k <= 2; ++k) {
        const int other = l->periodic ? ((at + k) % l->n + l->n) % l->n : at + k;
        if (other != at && other >= 0 && other < l->n && f->taken[axis][other]) return true;
    }
    return false;
}

/* Columns are on lines through the base. */
static bool joins(const search *f, const entry *e)
{
    const trli_line *l = &f->line[e->axis];
    const int at = e->column[e->axis], distance = abs(at - l->base);
    if (f->taken[e->axis][at]) return true;
    if (near_taken(f, e->axis, at)) return false;
    for (int a = 0; a < 3 && (distance < 3 || (l->periodic && l->n - distance < 3)); ++a)
        if (a != e->axis && near_taken(f, a, f->line[a].base)) return false;
    return true;
}

static void take(search *f, const entry *e)
{
    bool base = true;
    for (int a = 0; a < 3; ++a) base &= e->column[a] == f->line[a].base;
    for (int a = 0; a < 3; ++a)
        if (base || a == e->axis) f->taken[a][e->column[a]] = true;
}

static trl_err multiply(search *f, const int *chosen, int n)
{
    trli_solver *s = f->s;
    const trl_simulation *sim = s->sim;
    const int d = s->d.now[f->unknown], q = s->q.now[f->unknown];
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) {
        for (int p = 0; p < sim->layout->nlocal; ++p) {
            const trl_array a = trli_frame_array(sim->frame, s->d.now[i], p, 0);
            clear(&a);
        }
        trli_frame_written(sim->frame, s->d.now[i]);
    }
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const patch_points m = points_of(f, d, p);
        for (int i = 0; i < n; ++i) {
            double *at = find_point(&m, f->list[chosen[i]].column);
            if (at) *at = 1;
        }
    }
    trli_frame_written(sim->frame, d);
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(trl_context_agree(sim->ctx, trli_frame_fetch(sim->frame, q)));
    for (int i = 0; i < n; ++i) f->values[i] = 0;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const patch_points m = points_of(f, q, p);
        for (int i = 0; i < n; ++i) {
            const double *at = find_point(&m, f->list[chosen[i]].row);
            if (at) f->values[i] = *at;
        }
    }
    TRL_TRY(trli_allreduce(sim->ctx, f->values, n, MPI_DOUBLE, MPI_SUM)); /* one rank has a point */
    for (int i = 0; i < n; ++i) {
        *f->list[chosen[i]].value = f->values[i];
        f->list[chosen[i]].known = true;
    }
done:
    return err;
}

static trl_err find_entries(search *f)
{
    int *chosen = trli_new(f->s->sim->ctx, (size_t)f->n + 1, sizeof *chosen), n;
    trl_err err = TRL_OK;
    if (!chosen) return trli_no_memory(f->s->sim->ctx, NULL, "to look at an operator");
    do {
        n = 0;
        for (int a = 0; a < 3; ++a) memset(f->taken[a], 0, (size_t)f->line[a].n);
        for (int i = 0; i < f->n; ++i) {
            if (f->list[i].known || !joins(f, &f->list[i])) continue;
            take(f, &f->list[i]);
            chosen[n++] = i;
        }
        if (n > 0) TRL_TRY(multiply(f, chosen, n));
    } while (n > 0);
done:
    trli_free(chosen);
    return err;
}

/* ---- rows ---- */

/* Want what point `column` of an axis adds at its point `row`, the others being at the base. */
static void want(search *f, int axis, int row, int column, double *value)
{
    const trli_line *l = &f->line[axis];
    entry *e = &f->list[f->n++];
    *e = (entry){.axis = axis, .value = value};
    for (int a = 0; a < 3; ++a) e->row[a] = e->column[a] = f->line[a].base;
    e->row[axis] = row;
    e->column[axis] = (column + l->n) % l->n;
}

static void want_row(search *f, int axis, int i)
{
    const trli_line *l = &f->line[axis];
    want(f, axis, i, i, &l->diagonal[i]);
    if (l->n == 1) return;
    if (i > 0 || l->periodic) want(f, axis, i, i - 1, &l->lower[i]);
    if (i + 1 < l->n || l->periodic) want(f, axis, i, i + 1, &l->upper[i]);
}

static bool end_of(const trli_line *l, int i)
{
    return !l->periodic && (i == 0 || i == l->n - 1);
}

/* All rows where they may differ, else the first, the last and one between them. */
static void want_rows(search *f, int axis)
{
    const trli_line *l = &f->line[axis];
    for (int i = 0; i < l->n; ++i)
        if (f->all || i == l->base || end_of(l, i)) want_row(f, axis, i);
}

static void fill_rows(bool all, trli_line *l)
{
    for (int i = 0; i < 2 && l->periodic && l->n == 2; ++i) l->lower[i] /= 2, l->upper[i] /= 2;
    for (int i = 0; i < l->n && !all; ++i) {
        if (i == l->base || end_of(l, i)) continue;
        l->lower[i] = l->lower[l->base];
        l->diagonal[i] = l->diagonal[l->base];
        l->upper[i] = l->upper[l->base];
    }
}

/* Room for so many entries; freed by end_search, also after a failure. */
static trl_err begin_search(search *f, size_t most)
{
    trl_context *ctx = f->s->sim->ctx;
    f->list = trli_new(ctx, most, sizeof *f->list);
    f->values = trli_new(ctx, most, sizeof *f->values);
    f->taken[0] = trli_new(ctx, most, sizeof *f->taken[0]);
    if (!f->list || !f->values || !f->taken[0]) return trli_no_memory(ctx, NULL, "to look at an operator");
    for (int a = 1; a < 3; ++a) f->taken[a] = f->taken[a - 1] + f->line[a - 1].n;
    return TRL_OK;
}

static void end_search(const search *f)
{
    trli_free(f->list);
    trli_free(f->values);
    trli_free(f->taken[0]);
}

trl_err trli_lines_find(trli_solver *s, int unknown, bool all, trli_line line[3])
{
    const size_t most = 3 * ((size_t)line[0].n + (size_t)line[1].n + (size_t)line[2].n);
    search f = {.s = s, .unknown = unknown, .line = line, .all = all};
    trl_err err = TRL_OK;
    TRL_TRY(begin_search(&f, most));
    for (int a = 0; a < 3; ++a) want_rows(&f, a);
    TRL_TRY(find_entries(&f));
    for (int a = 0; a < 3; ++a) fill_rows(all, &line[a]);
done:
    end_search(&f);
    return err;
}

trl_err trli_lines_weigh(trli_solver *s, int unknown, const trli_line line[3], int last, double *const weight[3])
{
    const trli_line *l = &line[last];
    search f = {.s = s, .unknown = unknown, .line = line};
    const size_t points = (size_t)line[0].n + (size_t)line[1].n + (size_t)line[2].n;
    trl_err err = TRL_OK;
    TRL_TRY(begin_search(&f, points));
    for (int a = 0; a < 3; ++a) {
        if (!weight[a]) continue;
        f.n = 0;
        for (int i = 0; i < l->n; ++i) {
            want(&f, last, i, i, &weight[a][i]);
            f.list[i].column[a] += f.list[i].column[a] > 0 ? -1 : 1;
        }
        TRL_TRY(find_entries(&f));
        const double base = weight[a][l->base];
        for (int i = 0; i < l->n; ++i) weight[a][i] = base != 0 ? weight[a][i] / base : 1;
    }
done:
    end_search(&f);
    return err;
}

trl_err trli_lines_create(const trli_solver *s, int unknown, trli_line line[3])
{
    const trl_simulation *sim = s->sim;
    const trl_grid *grid = &sim->layout->grid;
    const int8_t *fixed = sim->model->field[s->ask.field[unknown]].fixed_planes;
    const trl_location location = sim->model->variable[s->ask.variable[unknown]].location;
    for (int a = 0; a < 3; ++a) {
        trli_line *l = &line[a];
        const int points = a < grid->dim ? (int)trl_grid_points(grid, location, a) : 1;
        l->first = fixed[2 * a];
        l->n = points - fixed[2 * a] - fixed[2 * a + 1];
        if (l->n < 1) l->n = 0;
        l->base = l->n / 2;
        l->periodic = a < grid->dim && grid->periodic[a];
        l->lower = trli_new(sim->ctx, 3 * (size_t)l->n + 3, sizeof(double));
        if (!l->lower) return trli_no_memory(sim->ctx, NULL, "for a direct solver");
        l->diagonal = l->lower + l->n;
        l->upper = l->diagonal + l->n;
    }
    return TRL_OK;
}

void trli_lines_destroy(trli_line line[3])
{
    for (int a = 0; a < 3; ++a) {
        trli_free(line[a].lower);
        line[a].lower = NULL;
    }
}

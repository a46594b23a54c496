/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Lines along the last axis, TRLI_LANES at a time: elimination, or a transform, division and the transform back. */
#include <string.h>

#include "slabs_impl.h"
#include "vector_impl.h"

/* TRLI_LANES lines along an axis other than x, whose points lie in a cache line each. */
TRLI_CLONES static void gather(const double *from, ptrdiff_t stride, int n, double *to)
{
    for (int i = 0; i < n; ++i) memcpy(to + (ptrdiff_t)i * TRLI_LANES, from + i * stride, TRLI_LANES * sizeof *to);
}

/* Bring lines to the caches while those beside them are worked on. */
static void fetch(const double *from, ptrdiff_t stride, int n)
{
    for (int i = 0; i < n; ++i) __builtin_prefetch(from + i * stride, 1);
}

TRLI_CLONES static void scatter(const double *from, ptrdiff_t stride, int n, double *to)
{
    for (int i = 0; i < n; ++i) memcpy(to + i * stride, from + (ptrdiff_t)i * TRLI_LANES, TRLI_LANES * sizeof *to);
}

/* ---- systems ---- */

/* What stands on the diagonals of a group of lines beside the rows' own. */
typedef struct shift {
    double lambda[TRLI_LANES]; /* the eigenvalues of the other axes, or of the first of them where they have weights */
    double rest;               /* those of the second, where they have */
    const double *weight, *rest_weight; /* [n], or NULL: 1 */
    bool weighted;
} shift;

static void shift_row(const shift *s, int i, double *at)
{
    const double weight = s->weight ? s->weight[i] : 1, rest = (s->rest_weight ? s->rest_weight[i] : 1) * s->rest;
    for (int l = 0; l < TRLI_LANES; ++l) at[l] = weight * s->lambda[l] + rest;
}

/* Gaussian elimination (Thomas 1949). null: the shift of the first line makes the rows dependent. */
TRLI_CLONES static void eliminate(const trli_direct_plan *p, const shift *s, bool null, double *restrict f,
                                  double *restrict above)
{
    const int n = p->axis[p->last].n;
    double weighted[TRLI_LANES];
    const double *lambda = s->weighted ? weighted : s->lambda;
    double before[TRLI_LANES] = {0}, f_before[TRLI_LANES] = {0};
    for (int i = 0; i < n; ++i) {
        const double lower = p->lower[i], middle = p->middle[i], upper = p->upper[i];
        double *restrict fi = f + (ptrdiff_t)i * TRLI_LANES, *restrict ai = above + (ptrdiff_t)i * TRLI_LANES;
        if (s->weighted) shift_row(s, i, weighted);
        for (int l = 0; l < TRLI_LANES; ++l) {
            double inverse = 1 / (middle + lambda[l] - lower * before[l]);
            if (null && i == n - 1 && s->lambda[l] == s->lambda[0]) inverse = 0; /* this row follows from the others */
            before[l] = ai[l] = upper * inverse;
            f_before[l] = fi[l] = (fi[l] * p->scale - lower * f_before[l]) * inverse;
        }
    }
    for (int i = n - 2; i >= 0; --i) {
        double *restrict fi = f + (ptrdiff_t)i * TRLI_LANES;
        for (int l = 0; l < TRLI_LANES; ++l) fi[l] -= above[(ptrdiff_t)i * TRLI_LANES + l] * fi[l + TRLI_LANES];
    }
}

/* Give the first of a group's lines another mean. */
static void set_mean(double *f, int n, double mean)
{
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += f[(ptrdiff_t)i * TRLI_LANES];
    const double more = mean - sum / n;
    for (int i = 0; i < n; ++i) f[(ptrdiff_t)i * TRLI_LANES] += more;
}

/* Divide by eigenvalues, from row `begin` on. */
TRLI_CLONES static void divide_rows(const trli_direct_plan *p, const double *restrict lambda, int begin,
                                    double *restrict f)
{
    const double *restrict value = p->axis[p->last].value;
    const double scale = p->scale, centre = p->centre;
    for (int i = begin; i < p->axis[p->last].n; ++i) {
        const double of_row = centre + (value ? value[i] : 0);
        double *restrict at = f + (ptrdiff_t)i * TRLI_LANES;
        for (int l = 0; l < TRLI_LANES; ++l) at[l] = at[l] * scale / (of_row + lambda[l]);
    }
}

/* Divide by eigenvalues. null: the first of the first line is zero; what it belongs to gets the mean. */
static void divide(const trli_direct_plan *p, const double *lambda, bool null, double mean, double *f)
{
    const double *value = p->axis[p->last].value;
    for (int l = 0; l < TRLI_LANES && null; ++l)
        f[l] = lambda[l] == lambda[0] ? mean : f[l] * p->scale / (p->centre + (value ? value[0] : 0) + lambda[l]);
    divide_rows(p, lambda, null, f);
}

static double eigenvalue_of(const trli_direct_plan *p, int axis, int i)
{
    return p->axis[axis].value ? p->axis[axis].value[i] : 0;
}

/* Of the line at `at` and those beside it along `across`. */
static shift shift_of(const trli_direct_plan *p, const int at[3], int across, int lanes)
{
    const int rest = 3 - p->last - across;
    const double second = eigenvalue_of(p, rest, at[rest]);
    shift s = {.weight = p->axis[across].weight, .rest_weight = p->axis[rest].weight};
    s.weighted = s.weight || s.rest_weight;
    if (s.weighted) s.rest = second;
    for (int l = 0; l < TRLI_LANES; ++l) {
        const double first = eigenvalue_of(p, across, at[across] + (l < lanes ? l : 0));
        s.lambda[l] = s.weighted ? first : first + second;
    }
    return s;
}

/* ---- groups of lines ---- */

/* Lines beside one another: `lanes` of them, the first of which begins at `at`, the next one further along `across`. */
typedef struct group {
    int at[3];
    int across, lanes;
    double *value, *behind; /* [points][TRLI_LANES] the lines; as much again, or a transform's scratch */
} group;

static double *first_in(const trli_slabs *w, const trli_slab_piece *p, const group *g)
{
    int at[3] = {g->at[0], g->at[1], g->at[2]};
    at[w->last] = p->lo;
    return p->view.at + at[0] * p->view.stride[0] + at[1] * p->view.stride[1] + at[2] * p->view.stride[2];
}

static void rows_in(const trli_slabs *w, const trli_slab_piece *p, const group *g, double *row[TRLI_LANES])
{
    double *first = first_in(w, p, g);
    for (int l = 0; l < g->lanes; ++l) row[l] = first + l * p->view.stride[g->across];
}

/* Lines in one piece, none along x, are transformed from where they are, and to there. */
static bool transforms_there(const trli_slabs *w)
{
    return w->pieces == 1 && w->last != 0 && w->plan->axis[w->last].transform;
}

/* Bring lines, transformed if they are to be. */
static void take_group(const trli_slabs *w, const group *g)
{
    const trli_transform *t = w->plan->axis[w->last].transform;
    const bool there = transforms_there(w);
    double *row[TRLI_LANES];
    for (int i = 0; i < w->pieces; ++i) {
        const trli_slab_piece *p = &w->piece[i];
        const ptrdiff_t step = p->view.stride[w->last];
        double *first = first_in(w, p, g), *to = g->value + (ptrdiff_t)p->lo * TRLI_LANES;
        rows_in(w, p, g, row);
        if (there)
            trli_transform_lines(t, false, first, step, g->value, TRLI_LANES, g->behind);
        else if (w->last == 0)
            trli_rows_take(g->lanes, (const double *const *)row, p->hi - p->lo, to);
        else
            gather(first, step, p->hi - p->lo, to);
        if (g->across == 0 && g->at[0] + TRLI_LANES < w->lines.hi[0]) fetch(first + TRLI_LANES, step, p->hi - p->lo);
    }
    if (t && !there) trli_transform_lines(t, false, g->value, TRLI_LANES, g->value, TRLI_LANES, g->behind);
}

/* And back. */
static void give_group(const trli_slabs *w, const group *g)
{
    const trli_transform *t = w->plan->axis[w->last].transform;
    const bool there = transforms_there(w);
    double *row[TRLI_LANES];
    if (t && !there) trli_transform_lines(t, true, g->value, TRLI_LANES, g->value, TRLI_LANES, g->behind);
    for (int i = 0; i < w->pieces; ++i) {
        const trli_slab_piece *p = &w->piece[i];
        const ptrdiff_t step = p->view.stride[w->last];
        const double *from = g->value + (ptrdiff_t)p->lo * TRLI_LANES;
        rows_in(w, p, g, row);
        if (there)
            trli_transform_lines(t, true, g->value, TRLI_LANES, row[0], step, g->behind);
        else if (w->last == 0)
            trli_rows_give(g->lanes, row, p->hi - p->lo, from);
        else
            scatter(from, step, p->hi - p->lo, row[0]);
    }
}

static void visit_group(const trli_slabs *w, const group *g, int worker)
{
    const trli_spectral_lines lines = {.at = {g->at[0], g->at[1], g->at[2]},
                                       .last = w->last,
                                       .across = g->across,
                                       .n = g->lanes,
                                       .points = w->plan->axis[w->last].n,
                                       .value = g->value};
    w->visit(w->visitor, worker, &lines);
}

static void solve_group(const trli_slabs *w, const group *g)
{
    const trli_direct_plan *p = w->plan;
    const int n = p->axis[p->last].n, rest = 3 - w->last - g->across;
    const shift beside = shift_of(p, g->at, g->across, g->lanes);
    const bool null = p->singular && g->at[g->across] == 0 && g->at[rest] == 0;
    if (!p->swept) {
        divide(p, beside.lambda, null, w->mean, g->value);
        return;
    }
    if (null && p->sets_mean && p->balanced) set_mean(g->value, n, 0);
    eliminate(p, &beside, null, g->value, g->behind);
    if (null && p->sets_mean) set_mean(g->value, n, w->mean);
}

static int groups_of(int n)
{
    return (n + TRLI_LANES - 1) / TRLI_LANES;
}

trl_err trli_slabs_work_on_lines(void *data, int chunk, int chunks, int worker)
{
    const trli_slabs *w = data;
    const trli_shuffle_part *s = &w->lines;
    const int across = w->last == 0 ? 1 : 0, rest = 3 - w->last - across,
              groups = groups_of(s->hi[across] - s->lo[across]);
    const int64_t count = (int64_t)groups * (s->hi[rest] - s->lo[rest]);
    double *scratch = w->scratch[worker];
    for (int64_t g = count * chunk / chunks; g < count * (chunk + 1) / chunks; ++g) {
        group lines = {.across = across, .value = scratch};
        lines.behind = scratch + (ptrdiff_t)w->plan->axis[w->last].n * TRLI_LANES;
        lines.at[across] = s->lo[across] + (int)(g % groups) * TRLI_LANES;
        lines.at[rest] = s->lo[rest] + (int)(g / groups);
        const int left = s->hi[across] - lines.at[across];
        lines.lanes = left < TRLI_LANES ? left : TRLI_LANES;
        take_group(w, &lines);
        if (w->visit) {
            visit_group(w, &lines, worker);
        } else {
            solve_group(w, &lines);
            give_group(w, &lines);
        }
    }
    return TRL_OK;
}

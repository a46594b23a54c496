/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solving in two distributions: a rank has planes across the last axis, whose lines along the other axes it transforms,
 * and then, after an exchange, whole lines along the last. Each line is worked on as a whole, by one thread. */
#include <string.h>

#include "context_impl.h"
#include "direct_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "slabs_gpu_impl.h"
#include "spatialops_impl.h"
#include "vector_impl.h"

/* A box of values of this rank; rows begin at cache lines and are filled up to whole ones. */
typedef struct slab {
    int lo[3], n[3];
    void *memory;
    trli_view view;  /* of the grid's indices */
    trli_view local; /* of the box's own */
} slab;

struct trli_slabs {
    trl_context *ctx;
    trl_simulation *sim;
    trl_loop *loop;
    int last, first[3];
    bool direct;                    /* the planes are the only patch: residual and solution are moved on the way */
    slab planes, lines;             /* on one rank lines are in planes, too */
    trli_slabs_gpu *gpu;            /* NULL: there are none */
    trli_shuffle *outside, *inside; /* from patches to planes; from planes to lines; NULL: not needed */
    trli_view *residual, *solution; /* [local patches]; and of ghosts, if solutions may bring these along */
    bool brings;
    double **scratch; /* [workers] */
    void *scratch_memory;
    const trli_direct_plan *plan;
    void (*visit)(void *data, int worker, const trli_spectral_lines *lines); /* NULL: a run solves */
    void *visitor;
    bool back, add; /* of the present run */
    double mean;    /* of the solution, if that is free */
};

/* ---- who has what ---- */

/* Rows of an odd number of cache lines: planes and lines do not fall on the same places of the caches. */
static trl_err make_slab(trl_context *ctx, const trli_shuffle_part *part, slab *s)
{
    size_t values;
    trl_err err = TRL_OK;
    for (int a = 0; a < 3; ++a) {
        s->lo[a] = part->lo[a];
        s->n[a] = part->hi[a] - part->lo[a];
    }
    const ptrdiff_t row = ((s->n[0] + TRLI_LANES - 1) / TRLI_LANES) | 1;
    s->local.stride[0] = 1;
    s->local.stride[1] = row * TRLI_LANES;
    s->local.stride[2] = s->local.stride[1] * (s->n[1] | 1);
    values = (size_t)(s->local.stride[2] * s->n[2]);
    TRL_TRY(trl_memory_alloc(ctx, (values + TRLI_LANES) * sizeof(double), "a direct solver", &s->memory));
    memset(s->memory, 0, (values + TRLI_LANES) * sizeof(double));
    s->local.at = s->memory;
    s->view = s->local;
    for (int a = 0; a < 3; ++a) s->view.at -= s->lo[a] * s->view.stride[a];
done:
    return err;
}

static trl_err make_distributions(trli_slabs *w, trl_location location, const trli_line line[3],
                                  const trl_offsets *around)
{
    static const trli_boxes none = {0};
    const trl_layout *layout = w->sim->layout;
    const int ranks = trl_context_ranks(w->ctx), me = trl_context_rank(w->ctx);
    trli_boxes patches = {0}, ghosts = {0};
    trli_boxes planes = {ranks, trli_new(w->ctx, (size_t)ranks, sizeof *planes.part)};
    trli_boxes lines = {ranks, trli_new(w->ctx, (size_t)ranks, sizeof *lines.part)};
    trl_err err = TRL_OK;
    if (!planes.part || !lines.part) TRL_TRY(trli_no_memory(w->ctx, NULL, "for a direct solver"));
    TRL_TRY(trli_patch_boxes(w->ctx, layout, location, line, &patches));
    if (w->brings) TRL_TRY(trli_ghost_boxes(w->ctx, layout, location, line, around, &ghosts));
    trli_cut_boxes(line, w->last, ranks, planes.part);
    trli_cut_boxes(line, trli_other_axis(line, w->last), ranks, lines.part);
    for (int r = 0; r < ranks; ++r) planes.part[r].rank = lines.part[r].rank = r;
    w->direct = layout->npatches == 1;
    TRL_TRY(make_slab(w->ctx, &planes.part[me], &w->planes));
    if (!w->direct) TRL_TRY(trli_shuffle_create(w->ctx, NULL, &patches, &ghosts, &planes, &w->outside));
    if (ranks == 1) goto done;
    TRL_TRY(make_slab(w->ctx, &lines.part[me], &w->lines));
    TRL_TRY(trli_shuffle_create(w->ctx, NULL, &planes, &none, &lines, &w->inside));
done:
    trli_free(patches.part);
    trli_free(ghosts.part);
    trli_free(planes.part);
    trli_free(lines.part);
    return err;
}

trl_err trli_slabs_create(trl_simulation *sim, trl_location location, const trli_line line[3],
                          const trli_direct_plan *plan, const trl_offsets *around, trl_loop *loop, trli_slabs **slabs)
{
    trl_context *ctx = sim->ctx;
    const size_t workers = (size_t)trl_loop_workers(loop), local = (size_t)sim->layout->nlocal;
    size_t values = 0;
    trl_err err = TRL_OK;
    trli_slabs *w = *slabs = trli_new(ctx, 1, sizeof *w);
    if (!w) return trli_no_memory(ctx, NULL, "for a direct solver");
    w->ctx = ctx;
    w->sim = sim;
    w->loop = loop;
    w->plan = plan;
    w->last = plan->last;
    for (int a = 0; a < 3; ++a) {
        const trli_transform *t = plan->axis[a].transform;
        w->first[a] = line[a].first;
        if (t && trli_transform_scratch(t) > values) values = trli_transform_scratch(t);
    }
    values += 2 * TRLI_LANES * (size_t)line[w->last].n; /* lines, and what elimination keeps of them */
    w->brings = around && trl_context_ranks(ctx) > 1;
    const size_t ghosts = w->brings ? (size_t)trli_ghost_views(sim->layout) : 0;
    w->residual = trli_new(ctx, local, sizeof *w->residual);
    w->solution = trli_new(ctx, local + ghosts, sizeof *w->solution);
    w->scratch = trli_new(ctx, workers, sizeof *w->scratch);
    if (!w->residual || !w->solution || !w->scratch) TRL_TRY(trli_no_memory(ctx, NULL, "for a direct solver"));
    TRL_TRY(trl_memory_alloc(ctx, workers * values * sizeof(double), "a direct solver", &w->scratch_memory));
    for (size_t k = 0; k < workers; ++k) w->scratch[k] = (double *)w->scratch_memory + k * values;
    TRL_TRY(make_distributions(w, location, line, around));
done:
    return err;
}

trl_err trli_slabs_add_gpus(trli_slabs *w, trl_location location, const trli_line line[3])
{
    const trli_slab_grid grid = {
        .sim = w->sim, .plan = w->plan, .location = location, .line = {line[0], line[1], line[2]}};
    return trli_slabs_gpu_create(&grid, &w->gpu);
}

const char *trli_slabs_missing_gpus(const trli_slabs *w)
{
    return w->gpu ? trli_slabs_gpu_missing(w->gpu) : NULL;
}

void trli_slabs_destroy(trli_slabs **slabs)
{
    trli_slabs *w = *slabs;
    *slabs = NULL;
    if (!w) return;
    trli_slabs_gpu_destroy(&w->gpu);
    trli_shuffle_destroy(&w->outside);
    trli_shuffle_destroy(&w->inside);
    trl_memory_free(w->ctx, &w->planes.memory);
    trl_memory_free(w->ctx, &w->lines.memory);
    trl_memory_free(w->ctx, &w->scratch_memory);
    trli_free(w->residual);
    trli_free(w->solution);
    trli_free(w->scratch);
    trli_free(w);
}

/* ---- lines beside one another ---- */

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

/* ---- planes ---- */

static int groups_of(int n)
{
    return (n + TRLI_LANES - 1) / TRLI_LANES;
}

/* Rows along x of a box, TRLI_LANES at a time; outside: from the residual to the planes, or back to the solution. */
static void transform_rows(const trli_slabs *w, const int lo[3], const int hi[3], bool outside, double *scratch)
{
    const trli_transform *t = w->plan->axis[0].transform;
    const trli_view *in = outside && !w->back ? w->residual : &w->planes.local;
    const trli_view *out = outside && w->back ? w->solution : &w->planes.local;
    const int high = hi[1] - lo[1], rows = high * (hi[2] - lo[2]);
    for (int begin = 0; begin < rows; begin += TRLI_LANES) {
        const int count = rows - begin < TRLI_LANES ? rows - begin : TRLI_LANES;
        const double *from[TRLI_LANES];
        double *to[TRLI_LANES];
        for (int r = 0; r < count; ++r) {
            const ptrdiff_t j = lo[1] + (begin + r) % high, k = lo[2] + (begin + r) / high;
            from[r] = in->at + j * in->stride[1] + k * in->stride[2];
            to[r] = out->at + j * out->stride[1] + k * out->stride[2];
        }
        trli_transform_rows(t, w->back, count, from, to, outside && w->back && w->add, scratch);
    }
}

/* Lines along y or z. */
static void transform_lines(const trli_slabs *w, const int lo[3], const int hi[3], int axis, double *scratch)
{
    const trli_transform *t = w->plan->axis[axis].transform;
    const trli_view *v = &w->planes.local;
    const int other = axis == 1 ? 2 : 1;
    for (int o = lo[other]; o < hi[other]; ++o)
        for (int i = lo[0]; i < hi[0]; i += TRLI_LANES) {
            double *at = v->at + i + o * v->stride[other];
            trli_transform_lines(t, w->back, at, v->stride[axis], at, v->stride[axis], scratch);
        }
}

TRLI_CLONES static void take_row(double *restrict to, const double *restrict from, int n, bool add)
{
    for (int i = 0; i < n; ++i) to[i] = add ? to[i] + from[i] : from[i];
}

static void move_rows(const trli_slabs *w, const int lo[3], const int hi[3], bool back)
{
    const trli_view *v = &w->planes.local, *r = w->residual, *c = w->solution;
    const int n = hi[0] - lo[0];
    for (int k = lo[2]; k < hi[2]; ++k)
        for (int j = lo[1]; j < hi[1]; ++j) {
            double *restrict row = v->at + lo[0] + j * v->stride[1] + k * v->stride[2];
            if (!back) {
                memcpy(row, r->at + lo[0] + j * r->stride[1] + k * r->stride[2], (size_t)n * sizeof *row);
                continue;
            }
            double *restrict to = c->at + lo[0] + j * c->stride[1] + k * c->stride[2];
            take_row(to, row, n, w->add);
        }
}

/* Chunks are planes across the last axis, as many at once as have TRLI_LANES rows along x; across x as many as fit in a
 * cache line. The planes may be the only patch: then values come from the residual on the way there, and go to the
 * solution on the way back. */
static trl_err transform_planes(void *data, int chunk, int chunks, int worker)
{
    const trli_slabs *w = data;
    const int beside = w->last == 0 ? 1 : w->planes.n[3 - w->last], n = w->planes.n[w->last];
    const int step = beside < TRLI_LANES ? TRLI_LANES / beside : 1, count = (n + step - 1) / step;
    const int begin = (int)((int64_t)count * chunk / chunks) * step;
    const int end = (int)((int64_t)count * (chunk + 1) / chunks) * step;
    const bool rows = w->last != 0 && w->plan->axis[0].transform;
    double *scratch = w->scratch[worker];
    for (int k = begin; k < end && k < n; k += step) {
        int lo[3] = {0}, hi[3] = {w->planes.n[0], w->planes.n[1], w->planes.n[2]};
        lo[w->last] = k;
        hi[w->last] = k + step < n ? k + step : n;
        if (!w->back && rows) transform_rows(w, lo, hi, w->direct, scratch);
        if (!w->back && !rows && w->direct) move_rows(w, lo, hi, false);
        for (int i = 1; i < 3; ++i) {
            const int axis = w->back ? 3 - i : i;
            if (axis != w->last && w->plan->axis[axis].transform) transform_lines(w, lo, hi, axis, scratch);
        }
        if (w->back && rows) transform_rows(w, lo, hi, w->direct, scratch);
        if (w->back && !rows && w->direct) move_rows(w, lo, hi, true);
    }
    return TRL_OK;
}

/* ---- lines along the last axis ---- */

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

/* Lines beside one another: `lanes` of them, the first of which begins at `at`, the next one further along `across`. */
typedef struct group {
    int at[3]; /* indices of the slab */
    int across, lanes;
    double *row[TRLI_LANES];
    double *value, *behind; /* [points][TRLI_LANES] the lines; as much again, or a transform's scratch */
} group;

/* Bring lines, transformed if they are to be. */
static void take_group(const trli_slabs *w, const slab *s, group *g, double *scratch)
{
    const trli_transform *t = w->plan->axis[w->last].transform;
    const trli_view *v = &s->local;
    const ptrdiff_t step = v->stride[w->last];
    const int n = w->plan->axis[w->last].n;
    double *first = v->at + g->at[0] * v->stride[0] + g->at[1] * v->stride[1] + g->at[2] * v->stride[2];
    for (int l = 0; l < g->lanes; ++l) g->row[l] = first + l * v->stride[g->across];
    g->value = scratch;
    g->behind = scratch + (ptrdiff_t)n * TRLI_LANES;
    if (w->last == 0) trli_rows_take(g->lanes, (const double *const *)g->row, n, scratch);
    if (w->last == 0 && t)
        trli_transform_lines(t, false, scratch, TRLI_LANES, scratch, TRLI_LANES, g->behind);
    else if (t)
        trli_transform_lines(t, false, first, step, scratch, TRLI_LANES, g->behind);
    else if (w->last != 0)
        gather(first, step, n, scratch);
    if (g->across == 0 && g->at[0] + TRLI_LANES < s->n[0]) fetch(first + TRLI_LANES, step, n);
}

/* And back. */
static void give_group(const trli_slabs *w, const slab *s, const group *g)
{
    const trli_transform *t = w->plan->axis[w->last].transform;
    const ptrdiff_t step = s->local.stride[w->last];
    const int n = w->plan->axis[w->last].n;
    if (w->last == 0 && t)
        trli_transform_lines(t, true, g->value, TRLI_LANES, g->value, TRLI_LANES, g->behind);
    else if (t)
        trli_transform_lines(t, true, g->value, TRLI_LANES, g->row[0], step, g->behind);
    else if (w->last != 0)
        scatter(g->value, step, n, g->row[0]);
    if (w->last == 0) trli_rows_give(g->lanes, g->row, n, g->value);
}

static void visit_group(const trli_slabs *w, const slab *s, const group *g, int worker)
{
    trli_spectral_lines lines = {
        .last = w->last, .across = g->across, .n = g->lanes, .points = w->plan->axis[w->last].n, .value = g->value};
    for (int a = 0; a < 3; ++a) lines.at[a] = g->at[a] + s->lo[a];
    w->visit(w->visitor, worker, &lines);
}

static void solve_group(const trli_slabs *w, const slab *s, const group *g)
{
    const trli_direct_plan *p = w->plan;
    const int n = p->axis[w->last].n, rest = 3 - w->last - g->across;
    const int line[3] = {g->at[0] + s->lo[0], g->at[1] + s->lo[1], g->at[2] + s->lo[2]};
    const shift beside = shift_of(p, line, g->across, g->lanes);
    const bool null = p->singular && line[g->across] == 0 && line[rest] == 0;
    if (!p->swept) {
        divide(p, beside.lambda, null, w->mean, g->value);
        return;
    }
    if (null && p->sets_mean && p->balanced) set_mean(g->value, n, 0);
    eliminate(p, &beside, null, g->value, g->behind);
    if (null && p->sets_mean) set_mean(g->value, n, w->mean);
}

/* Chunks are groups of lines. */
static trl_err solve_lines(void *data, int chunk, int chunks, int worker)
{
    const trli_slabs *w = data;
    const slab *s = w->inside ? &w->lines : &w->planes;
    const int across = w->last == 0 ? 1 : 0, rest = 3 - w->last - across, groups = groups_of(s->n[across]);
    const int64_t count = (int64_t)groups * s->n[rest];
    for (int64_t g = count * chunk / chunks; g < count * (chunk + 1) / chunks; ++g) {
        group lines = {.across = across};
        lines.at[across] = (int)(g % groups) * TRLI_LANES;
        lines.at[rest] = (int)(g / groups);
        const int left = s->n[across] - lines.at[across];
        lines.lanes = left < TRLI_LANES ? left : TRLI_LANES;
        take_group(w, s, &lines, w->scratch[worker]);
        if (w->visit) {
            visit_group(w, s, &lines, worker);
        } else {
            solve_group(w, s, &lines);
            give_group(w, s, &lines);
        }
    }
    return TRL_OK;
}

/* ---- a run ---- */

static bool empty(const slab *s)
{
    return s->n[0] < 1 || s->n[1] < 1 || s->n[2] < 1;
}

static trl_err run(trli_slabs *w, const slab *s, trl_loop_fn work)
{
    enum { CHUNKS = 8 /* for each worker */ };
    return empty(s) ? TRL_OK : trl_loop_run(w->loop, CHUNKS * trl_loop_workers(w->loop), work, w);
}

/* Bring a field to planes, behind the one agreement of a run. What follows on it are copies and arithmetic, at which no
 * rank fails: all take part in all messages. err: of this rank so far. */
static trl_err enter(trli_slabs *w, trl_err err)
{
    trl_simulation *sim = w->sim;
    if (err == TRL_OK && w->outside) err = trli_shuffle_pack(w->outside, TRLI_SHUFFLE_THERE, w->residual, w->loop);
    TRL_TRY(trli_agree_within(sim, err));
    if (w->outside)
        err = trli_shuffle_move(w->outside, TRLI_SHUFFLE_THERE, false, w->residual, &w->planes.view, w->loop);
done:
    return err;
}

trl_err trli_slabs_solve(trli_slabs *w, int from, int to, bool add, bool around, double mean)
{
    const trl_simulation *sim = w->sim;
    const trli_shuffle_way back = around && w->brings ? TRLI_SHUFFLE_BACK_TO_ALL : TRLI_SHUFFLE_BACK;
    bool solved = false;
    trl_err err = TRL_OK;
    if (w->gpu) {
        const trli_slabs_request request = {.sim = sim,
                                            .from = from,
                                            .to = to,
                                            .first = {w->first[0], w->first[1], w->first[2]},
                                            .add = add,
                                            .mean = mean};
        TRL_TRY(trli_slabs_gpu_solve(w->gpu, &request, &solved));
        if (solved) return TRL_OK;
    }
    err = trli_frame_fetch(sim->frame, from);
    if (err == TRL_OK && add) err = trli_frame_fetch(sim->frame, to);
    w->add = add;
    w->mean = mean;
    w->back = false;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        w->residual[p] = trli_patch_view(sim, w->first, from, p, 0);
        w->solution[p] = trli_patch_view(sim, w->first, to, p, 0);
    }
    if (w->brings) trli_set_ghost_views(sim->layout, w->solution);
    TRL_TRY(enter(w, err));
    TRL_TRY(run(w, &w->planes, transform_planes));
    if (w->inside)
        TRL_TRY(trli_shuffle_run(w->inside, TRLI_SHUFFLE_THERE, false, &w->planes.view, &w->lines.view, w->loop));
    TRL_TRY(run(w, w->inside ? &w->lines : &w->planes, solve_lines));
    if (w->inside)
        TRL_TRY(trli_shuffle_run(w->inside, TRLI_SHUFFLE_BACK, false, &w->lines.view, &w->planes.view, w->loop));
    w->back = true;
    TRL_TRY(run(w, &w->planes, transform_planes));
    if (w->outside) TRL_TRY(trli_shuffle_run(w->outside, back, add, &w->planes.view, w->solution, w->loop));
    trli_frame_written(sim->frame, to);
done:
    return err;
}

trl_err trli_slabs_visit(trli_slabs *w, int from,
                         void (*visit)(void *data, int worker, const trli_spectral_lines *lines), void *data)
{
    const trl_simulation *sim = w->sim;
    trl_err err = trli_frame_fetch(sim->frame, from);
    w->back = false;
    w->visit = visit;
    w->visitor = data;
    for (int p = 0; p < sim->layout->nlocal; ++p) w->residual[p] = trli_patch_view(sim, w->first, from, p, 0);
    TRL_TRY(enter(w, err));
    TRL_TRY(run(w, &w->planes, transform_planes));
    if (w->inside)
        TRL_TRY(trli_shuffle_run(w->inside, TRLI_SHUFFLE_THERE, false, &w->planes.view, &w->lines.view, w->loop));
    err = run(w, w->inside ? &w->lines : &w->planes, solve_lines);
done:
    return err;
}

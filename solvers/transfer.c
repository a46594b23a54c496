/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Restriction and interpolation between points of two grids of one domain, whose sizes need have no common factor. Each
 * coarse value is computed by one rank from fine values in one order, so decompositions do not show. */
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "spatialops_impl.h"

static int points_of(const trli_grid_transfer *t, bool fine)
{
    int n = 1;
    for (int a = 0; a < 3; ++a) n *= fine ? t->axis[a].fine : t->axis[a].coarse;
    return n;
}

/* Rows of values for each worker. */
static trl_err make_lines(trl_context *ctx, trli_grid_transfer *t, int workers)
{
    const size_t values = (size_t)TRLI_TRANSFER_LINES * (size_t)t->room;
    t->line = trli_new(ctx, (size_t)workers, sizeof *t->line);
    t->lines = trli_new(ctx, (size_t)workers * values, sizeof *t->lines);
    if (!t->line || !t->lines) return trli_no_memory(ctx, NULL, "for a transfer between grids");
    for (int w = 0; w < workers; ++w) t->line[w] = t->lines + (size_t)w * values;
    return TRL_OK;
}

bool trli_transfer_gathers(const trl_layout *layout)
{
    bool thin = false;
    for (int a = 0; a < 3; ++a) {
        const bool neighbours = layout->counts[a] > 1 || layout->grid.periodic[a]; /* itself, in a period of one */
        thin |= neighbours && trli_layout_thinnest(layout, a) < TRLI_TRANSFER_DEPTH;
    }
    return layout->npatches > 1 && thin;
}

trl_err trli_transfer_create(trl_context *ctx, const trli_transfer_request *request, trli_grid_transfer **transfer)
{
    trl_err err = TRL_OK;
    const trl_grid *fine = &request->fine->grid, *coarse = &request->coarse->grid;
    const bool cut = request->fine->npatches > 1;
    trli_grid_transfer *t = *transfer = trli_new(ctx, 1, sizeof *t);
    if (!t) return trli_no_memory(ctx, NULL, "for a transfer between grids");
    t->gathers = trli_transfer_gathers(request->fine);
    t->shared = request->coarse->npatches > 1;
    for (int a = 0; a < 3; ++a) {
        t->axis[a] = (trli_axis_transfer){.fine_cells = (int)fine->cells[a],
                                          .coarse_cells = (int)coarse->cells[a],
                                          .on_faces = request->location >> a & 1,
                                          .periodic = fine->periodic[a]};
        TRL_TRY(trli_axis_transfer_make(ctx, &t->axis[a], request->mean, request->factor + (ptrdiff_t)2 * a));
    }
    t->room = (int)fine->cells[0] + 2 * TRLI_TRANSFER_DEPTH + 3 + 2 * TRLI_TRANSFER_LANES;
    if (cut && !t->shared) {
        t->buffer = trli_new(ctx, (size_t)points_of(t, t->gathers), sizeof *t->buffer);
        if (!t->buffer) TRL_TRY(trli_no_memory(ctx, NULL, "for a transfer between grids"));
    }
    if (t->shared) TRL_TRY(trli_merging_create(ctx, request, &t->parts));
    TRL_TRY(make_lines(ctx, t, request->workers));
    if (!cut) err = trli_transfer_gpu_create(ctx, &t->gpu);
done:
    return err;
}

void trli_transfer_destroy(trli_grid_transfer **transfer)
{
    trli_grid_transfer *t = *transfer;
    *transfer = NULL;
    if (!t) return;
    for (int a = 0; a < 3; ++a) trli_axis_transfer_free(&t->axis[a]);
    trli_transfer_gpu_destroy(&t->gpu);
    trli_merging_destroy(&t->parts);
    trli_free(t->buffer);
    trli_free(t->line);
    trli_free(t->lines);
    trli_free(t);
}

/* ---- loops over a patch of the fine grid ---- */

typedef struct job {
    const trli_grid_transfer *t;
    trl_array fine, coarse;
    trl_gidx first[3];   /* of the patch */
    int first_coarse[3]; /* of the coarse array */
    int lo[3], hi[3];    /* restriction: coarse points that lie in it; interpolation: its points */
    bool whole;          /* the patch is the grid: indices wrap */
} job;

static int wrapped(const job *w, int a, int i)
{
    const int n = w->t->axis[a].fine;
    return w->whole ? (i + n) % n : i - (int)w->first[a];
}

/* Of a coarse point, in the array that has it or one layer of ghosts beyond it. */
static int coarse_index(const job *w, int a, int i)
{
    const int n = w->t->axis[a].coarse, at = i - w->first_coarse[a];
    if (!w->t->axis[a].periodic) return at;
    return at < -1 ? at + n : at > w->coarse.owned.hi[a] ? at - n : at;
}

/* A row along x, indexed by points of the whole grid. */
static double *coarse_row(const job *w, int j, int k)
{
    return (double *)w->coarse.at + trl_array_offset(&w->coarse, 0, coarse_index(w, 1, j), coarse_index(w, 2, k)) -
           w->first_coarse[0];
}

/* Indexed by points of the whole grid. */
static double *fine_row(const job *w, int j, int k)
{
    return (double *)w->fine.at + trl_array_offset(&w->fine, 0, j - (int)w->first[1], k - (int)w->first[2]) -
           w->first[0];
}

/* line[i - begin] = the sum of fine values i; of a whole grid those beyond its ends are those at the others. */
static void sum_line(const job *w, const trli_weighted_rows *of, double *line, int begin, int end)
{
    const int n = w->t->axis[0].fine, lo = w->whole && begin < 0 ? 0 : begin, hi = w->whole && end > n ? n : end;
    trli_transfer_sum(of, line + (lo - begin), hi - lo, lo - (w->whole ? 0 : (int)w->first[0]),
                      (int)w->fine.stride[1]); /* brings the ends, too */
    if (begin < lo) trli_transfer_sum(of, line, lo - begin, begin + n, 0);
    if (hi < end) trli_transfer_sum(of, line + (hi - begin), end - hi, hi - n, 0);
}

/* Rows of a worker, of which it needs some again: one is a sum along z, that of a coarse point k at a fine one j. */
typedef struct restriction {
    const job *w;
    double *line[TRLI_TRANSFER_LINES]; /* line j mod TRANSFER_MOST, and one more */
    int k, made;                       /* of this k those before this j are there */
    int begin, end;                    /* along x */
} restriction;

static double *line_of(const restriction *r, int j)
{
    return r->line[(j + TRLI_TRANSFER_MOST) % TRLI_TRANSFER_MOST];
}

/* Along z first, then y, then x, so that fine values are read once. */
static void restrict_row(restriction *r, int j, int k)
{
    const job *w = r->w;
    const trli_axis_transfer *x = &w->t->axis[0], *y = &w->t->axis[1], *z = &w->t->axis[2];
    const int first = y->first[j], end = first + y->count[j];
    double *to = coarse_row(w, j, k), *line = r->line[TRLI_TRANSFER_MOST];
    trli_weighted_rows of = {.n = z->count[k], .weight = z->back[k]};
    if (r->k != k || r->made < first) r->made = first;
    for (r->k = k; r->made < end; ++r->made) {
        for (int c = 0; c < of.n; ++c)
            of.row[c] = (const double *)w->fine.at +
                        trl_array_offset(&w->fine, 0, wrapped(w, 1, r->made), wrapped(w, 2, z->first[k] + c));
        sum_line(w, &of, line_of(r, r->made), r->begin, r->end);
    }
    of = (trli_weighted_rows){.n = y->count[j], .weight = y->back[j]};
    for (int b = 0; b < of.n; ++b) of.row[b] = line_of(r, first + b);
    trli_transfer_sum(&of, line, r->end - r->begin, 0, 0);
    trli_transfer_restrict(x, to, line - r->begin, w->lo[0], w->hi[0]);
}

/* Chunks are rows of x. */
static void rows_of(const job *w, int chunk, int chunks, int *begin, int *end)
{
    const int64_t rows = (int64_t)(w->hi[1] - w->lo[1]) * (w->hi[2] - w->lo[2]);
    *begin = (int)(rows * chunk / chunks);
    *end = (int)(rows * (chunk + 1) / chunks);
}

static trl_err restrict_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const trli_axis_transfer *x = &w->t->axis[0];
    const int ny = w->hi[1] - w->lo[1], last = w->hi[0] - 1;
    int begin, end;
    if (w->hi[0] == w->lo[0]) return TRL_OK;
    restriction r = {.w = w, .k = -1, .begin = x->first[w->lo[0]], .end = x->first[last] + x->count[last]};
    for (int l = 0; l < TRLI_TRANSFER_LINES; ++l) r.line[l] = w->t->line[worker] + (ptrdiff_t)l * w->t->room;
    rows_of(w, chunk, chunks, &begin, &end);
    for (int row = begin; row < end; ++row) restrict_row(&r, w->lo[1] + row % ny, w->lo[2] + row / ny);
    return TRL_OK;
}

/* Of the coarse points that the array has, and one beyond it on both sides where there is one. */
static void fill_line(const job *w, double *line, double *const from[4], const double weight[4])
{
    const trli_axis_transfer *x = &w->t->axis[0];
    const int n = x->coarse, begin = w->first_coarse[0] - 1, end = w->first_coarse[0] + w->coarse.owned.hi[0] + 1;
    trli_transfer_join(line, begin < 0 ? 0 : begin, end > n ? n : end, 0, from, weight);
    if (!w->t->shared || !x->periodic) return;
    if (begin < 0 && end < n) trli_transfer_join(line, begin, 0, n, from, weight);
    if (end > n && begin > 0) trli_transfer_join(line, n, end, -n, from, weight);
}

/* Across x first. */
static void prolong_row(const job *w, double *line, int j, int k)
{
    const trli_axis_transfer *y = &w->t->axis[1], *z = &w->t->axis[2];
    const double weight[4] = {z->weight[0][k] * y->weight[0][j], z->weight[0][k] * y->weight[1][j],
                              z->weight[1][k] * y->weight[0][j], z->weight[1][k] * y->weight[1][j]};
    double *from[4];
    for (int c = 0; c < 4; ++c) from[c] = coarse_row(w, y->from[c & 1][j], z->from[c >> 1][k]);
    fill_line(w, line, from, weight);
    trli_transfer_add(&w->t->axis[0], fine_row(w, j, k), line, w->lo[0], w->hi[0]);
}

static trl_err prolong_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const int ny = w->hi[1] - w->lo[1];
    int begin, end;
    rows_of(w, chunk, chunks, &begin, &end);
    for (int row = begin; row < end; ++row) {
        prolong_row(w, w->t->line[worker], w->lo[1] + row % ny, w->lo[2] + row / ny);
    }
    return TRL_OK;
}

static int chunks_of(const job *w, const trl_loop *loop)
{
    const int64_t rows = (int64_t)(w->hi[1] - w->lo[1]) * (w->hi[2] - w->lo[2]);
    const int most = 4 * trl_loop_workers(loop);
    return rows < most ? (int)rows : most;
}

/* Values of a box in rows, to a buffer or from it. */
static void move_rows(const trl_array *a, const trl_box *b, double *buffer, const ptrdiff_t stride[3], bool back)
{
    const size_t bytes = (size_t)(b->hi[0] - b->lo[0]) * sizeof *buffer;
    for (trl_lidx k = b->lo[2]; k < b->hi[2]; ++k)
        for (trl_lidx j = b->lo[1]; j < b->hi[1]; ++j) {
            double *values = (double *)a->at + trl_array_offset(a, b->lo[0], j, k);
            double *kept = buffer + b->lo[0] + j * stride[1] + k * stride[2];
            memcpy(back ? values : kept, back ? kept : values, bytes);
        }
}

static void strides_of(const trli_grid_transfer *t, bool fine, ptrdiff_t stride[3])
{
    stride[0] = 1;
    for (int a = 0; a < 2; ++a) stride[a + 1] = stride[a] * (fine ? t->axis[a].fine : t->axis[a].coarse);
}

static void clear(double *buffer, int n)
{
    for (int i = 0; i < n; ++i) buffer[i] = 0;
}

/* Add up what all ranks have of the coarse values, which are zero elsewhere. */
static trl_err join(const trli_grid_transfer *t, const trl_layout *fine, trl_err err, const trl_array *a)
{
    trl_context *ctx = fine->ctx;
    ptrdiff_t stride[3];
    if (trl_context_ranks(ctx) == 1) return err;
    strides_of(t, false, stride);
    if (trli_layout_leads(fine)) move_rows(a, &a->owned, t->buffer, stride, false);
    TRL_TRY(trli_allreduce_after(ctx, err, t->buffer, points_of(t, false), MPI_DOUBLE, MPI_SUM));
    move_rows(a, &a->owned, t->buffer, stride, true);
done:
    return err;
}

static job job_of(const trli_grid_transfer *t, const trl_simulation *fine, int fine_field, const trl_simulation *coarse,
                  int coarse_field, int p)
{
    const int part = t->shared ? p : 0;
    job w = {.t = t,
             .fine = trli_frame_array(fine->frame, fine_field, p, 0),
             .coarse = trli_frame_array(coarse->frame, coarse_field, part, 0),
             .whole = fine->layout->npatches == 1};
    for (int a = 0; a < 3; ++a) {
        w.first[a] = fine->layout->patch[p].first[a];
        w.first_coarse[a] = (int)coarse->layout->patch[part].first[a];
    }
    return w;
}

static void all_coarse(const trli_grid_transfer *t, job *w)
{
    for (int a = 0; a < 3; ++a) {
        w->lo[a] = 0;
        w->hi[a] = t->axis[a].coarse;
    }
}

/* Coarse points that lie in the patch; of a coarse grid that is cut those of its part of the coarse patch. */
static void own_coarse(const trli_grid_transfer *t, const trl_patch *patch, job *w)
{
    const trl_box *own = t->parts ? trli_merging_own(t->parts) : &w->coarse.owned;
    for (int a = 0; a < 3; ++a) {
        if (t->shared) {
            w->lo[a] = w->first_coarse[a] + own->lo[a];
            w->hi[a] = w->first_coarse[a] + own->hi[a];
            continue;
        }
        const int *centre = t->axis[a].centre;
        while (w->lo[a] < t->axis[a].coarse && centre[w->lo[a]] < patch->first[a]) ++w->lo[a];
        w->hi[a] = w->lo[a];
        while (w->hi[a] < t->axis[a].coarse && centre[w->hi[a]] < patch->first[a] + w->fine.owned.hi[a]) ++w->hi[a];
    }
}

/* Patches are thinner than the transfer reaches: every rank gets all fine values. */
static trl_err gather(const trli_grid_transfer *t, const trl_simulation *fine, trl_err err, int from, job *w)
{
    ptrdiff_t stride[3];
    strides_of(t, true, stride);
    clear(t->buffer, points_of(t, true));
    for (int p = 0; p < fine->layout->nlocal && trli_layout_leads(fine->layout); ++p) {
        const trl_patch *patch = &fine->layout->patch[p];
        const trl_array a = trli_frame_array(fine->frame, from, p, 0);
        double *at = t->buffer + patch->first[0] + patch->first[1] * stride[1] + patch->first[2] * stride[2];
        move_rows(&a, &a.owned, at, stride, false);
    }
    TRL_TRY(trli_allreduce_after(fine->ctx, err, t->buffer, points_of(t, true), MPI_DOUBLE, MPI_SUM));
    w->fine.at = t->buffer;
    memcpy(w->fine.stride, stride, sizeof stride);
    w->whole = true;
    all_coarse(t, w);
done:
    return err;
}

static trl_err restrict_field(const trli_grid_transfer *t, trl_simulation *fine, int from, trl_simulation *coarse,
                              int to, trl_loop *loop)
{
    const bool cut = fine->layout->npatches > 1, joins = cut && (!t->shared || t->parts);
    const trl_array target = trli_frame_array(coarse->frame, to, 0, 0);
    trl_err err = trli_frame_fetch(fine->frame, from);
    ptrdiff_t stride[3];
    if (err != TRL_OK && !joins) return err;
    if (t->gathers) {
        job w = job_of(t, fine, from, coarse, to, 0);
        TRL_TRY(gather(t, fine, err, from, &w));
        TRL_TRY(trl_loop_run(loop, chunks_of(&w, loop), restrict_chunk, &w));
        goto done;
    }
    if (joins && !t->parts) {
        strides_of(t, false, stride);
        clear(t->buffer, points_of(t, false));
        move_rows(&target, &target.owned, t->buffer, stride, true);
    }
    for (int p = 0; p < fine->layout->nlocal && err == TRL_OK; ++p) {
        job w = job_of(t, fine, from, coarse, to, p);
        own_coarse(t, &fine->layout->patch[p], &w);
        err = trl_loop_run(loop, chunks_of(&w, loop), restrict_chunk, &w);
    }
    if (t->parts)
        err = trli_merging_join(t->parts, fine->ctx, err, &target);
    else if (joins)
        err = join(t, fine->layout, err, &target);
done:
    return err;
}

trl_err trli_restrict(const trli_grid_transfer *t, trl_simulation *fine, int from, trl_simulation *coarse, int to,
                      trl_loop *loop)
{
    bool done = false;
    trl_err err = TRL_OK;
    if (t->gpu) TRL_TRY(trli_restrict_on_gpu(t, fine, from, coarse, to, &done));
    if (done) return TRL_OK;
    err = restrict_field(t, fine, from, coarse, to, loop);
    trli_frame_written(coarse->frame, to);
done:
    return err;
}

static trl_err prolong_field(const trli_grid_transfer *t, const trl_simulation *coarse, int from, trl_simulation *fine,
                             int to, trl_loop *loop)
{
    trl_err err = TRL_OK;
    for (int p = 0; p < fine->layout->nlocal && err == TRL_OK; ++p) {
        const trl_patch *patch = &fine->layout->patch[p];
        job w = job_of(t, fine, to, coarse, from, p);
        for (int a = 0; a < 3; ++a) {
            w.lo[a] = (int)patch->first[a];
            w.hi[a] = w.lo[a] + w.fine.owned.hi[a];
        }
        err = trl_loop_run(loop, chunks_of(&w, loop), prolong_chunk, &w);
    }
    trli_frame_written(fine->frame, to);
    return err;
}

trl_err trli_prolong(const trli_grid_transfer *t, trl_simulation *coarse, int from, trl_simulation *fine, int to,
                     trl_loop *loop)
{
    bool done = false;
    trl_err err = TRL_OK;
    if (t->gpu) TRL_TRY(trli_prolong_on_gpu(t, coarse, from, fine, to, &done));
    if (done) return TRL_OK;
    TRL_TRY(trli_frame_fetch(coarse->frame, from));
    TRL_TRY(trli_frame_fetch(fine->frame, to));
    err = prolong_field(t, coarse, from, fine, to, loop);
done:
    return err;
}

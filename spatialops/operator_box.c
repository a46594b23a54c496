/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* An operator on a box of arrays. Operators that read few values for a point are one kernel. Others go pass by pass: planes of a pass'
 * results live in a ring in the second-level cache, just long enough for the next pass. */
#include <assert.h>
#include <string.h>

#include "operator_impl.h"

enum {
    BATCH = 2048,          /* values that are computed before they go on to memory: in the first-level cache */
    SCRATCH = 32768,       /* values of the rings of a term */
    SCRATCH_ROW = 128,     /* points of the longest tile with rings */
    SECOND_LEVEL = 1 << 18 /* bytes, where unknown */
};

static trl_lidx least(trl_lidx a, trl_lidx b)
{
    return a < b ? a : b;
}

/* ---- one kernel ---- */

/* Values of an array, or of the last planes of a pass. */
typedef struct view {
    double *at; /* at point (0,0,0); at point (0,0) of the ring's first plane */
    ptrdiff_t step[2];
    trl_lidx ring; /* planes of the ring; 0: an array */
} view;

static view view_array(const trl_array *a)
{
    return (view){.at = a->at, .step = {a->stride[1], a->stride[2]}};
}

static double *point_of(const view *v, const trl_lidx at[3])
{
    trl_lidx k = v->ring ? (at[2] % v->ring + v->ring) % v->ring : at[2];
    return v->at + at[0] + at[1] * v->step[0] + k * v->step[1];
}

static trli_rows rows_of(const view *out, const trl_box *box)
{
    return (trli_rows){.out = point_of(out, box->lo),
                       .out_step = {out->step[0], out->step[1]},
                       .n = box->hi[0] - box->lo[0],
                       .rows = box->hi[1] - box->lo[1],
                       .planes = box->hi[2] - box->lo[2]};
}

/* Leaves and terms that are not set yet become copies: kernels may move what they do not read. */
static void read_leaf(trli_rows *rows, int l, int t, const view *from, const trl_box *box, const int8_t offset[3])
{
    trl_lidx at[3];
    for (int a = 0; a < 3; ++a) at[a] = box->lo[a] + offset[a];
    for (int i = l; i < TRLI_LEAVES; ++i) {
        rows->in[i] = point_of(from, at);
        rows->term[i] = (int8_t)t;
    }
    for (int i = t; i < 3; ++i) memcpy(rows->in_step[i], from->step, sizeof from->step);
}

trli_rows trli_rows_of(const trl_array *out, const trl_box *box)
{
    const view v = view_array(out);
    return rows_of(&v, box);
}

void trli_rows_read(trli_rows *rows, int l, int t, const trl_array *from, const trl_box *box, const int8_t offset[3])
{
    const view v = view_array(from);
    read_leaf(rows, l, t, &v, box, offset);
}

/* The part of rows that begins at a point and has no more than n points, `count` rows and `planes` planes. */
static trli_rows part(const trli_rows *rows, const ptrdiff_t at[3], ptrdiff_t n, ptrdiff_t count, ptrdiff_t planes)
{
    trli_rows p = *rows;
    p.out += at[0] + at[1] * rows->out_step[0] + at[2] * rows->out_step[1];
    for (int l = 0; l < TRLI_LEAVES; ++l) {
        const ptrdiff_t *step = rows->in_step[rows->term[l]];
        p.in[l] += at[0] + at[1] * step[0] + at[2] * step[1];
    }
    p.n = rows->n - at[0] < n ? rows->n - at[0] : n;
    p.rows = rows->rows - at[1] < count ? rows->rows - at[1] : count;
    p.planes = planes;
    return p;
}

/* Rows of n values that make a batch. */
static trl_lidx batch_rows(ptrdiff_t n)
{
    return n >= BATCH ? 1 : (trl_lidx)(BATCH / n);
}

/* Batch by batch through a buffer: a line of memory is written at once, whatever order the kernel stores in. */
static void run_past(trli_rows_kernel kernel, const trli_rows *rows)
{
    double buffer[BATCH];
    const ptrdiff_t n = rows->n < BATCH ? rows->n : BATCH, count = batch_rows(n);
    for (ptrdiff_t k = 0; k < rows->planes; ++k)
        for (ptrdiff_t j = 0; j < rows->rows; j += count)
            for (ptrdiff_t i = 0; i < rows->n; i += n) {
                trli_rows batch = part(rows, (ptrdiff_t[3]){i, j, k}, n, count, 1);
                double *out = batch.out;
                batch.out = buffer;
                batch.out_step[0] = n;
                kernel(&batch);
                trli_stream_rows(out, rows->out_step[0], buffer, n, batch.n, batch.rows);
            }
    trli_stream_end();
}

/* Rows of a block such that the planes that the operator reads of it stay in the second-level cache. */
static trl_lidx block_rows(const trl_operator *op, ptrdiff_t n, ptrdiff_t rows)
{
    size_t cache = trl_context_cache_bytes(op->ctx, 2), row = 0;
    for (int i = 0; i < op->ninputs; ++i) {
        const trl_offsets hull = trl_footprint_hull(&op->reads[i]);
        row += (size_t)(hull.hi[2] - hull.lo[2] + 1) * (size_t)n * sizeof(double);
    }
    const size_t fit = (cache ? cache : SECOND_LEVEL) / 2 / row;
    return fit < 1 ? 1 : fit < (size_t)rows ? (trl_lidx)fit : (trl_lidx)rows;
}

void trli_rows_run(const trl_operator *op, trli_rows_kernel kernel, const trli_rows *rows, bool past)
{
    const ptrdiff_t block = rows->planes > 1 ? block_rows(op, rows->n, rows->rows) : rows->rows;
    for (ptrdiff_t j = 0; j < rows->rows; j += block) {
        const trli_rows p = part(rows, (ptrdiff_t[3]){0, j, 0}, rows->n, block, rows->planes);
        if (past)
            run_past(kernel, &p);
        else
            kernel(&p);
    }
}

/* ---- operators of one kernel ---- */

static int read_term(trli_rows *rows, int l, int t, const trl_term *term, const view *from, const trl_box *box)
{
    static const trl_stencil_point here = {.weight = 1};
    static const trl_pass none = {.npoints = 1, .point = &here, .scale = 1};
    const trl_pass *pass[3];
    for (int p = 0; p < 3; ++p) pass[p] = p < term->npasses ? &term->pass[p] : &none;
    for (int i = 0; i < pass[2]->npoints; ++i)
        for (int j = 0; j < pass[1]->npoints; ++j)
            for (int k = 0; k < pass[0]->npoints; ++k) {
                int8_t offset[3];
                for (int a = 0; a < 3; ++a)
                    offset[a] = (int8_t)(pass[2]->point[i].offset[a] + pass[1]->point[j].offset[a] +
                                         pass[0]->point[k].offset[a]);
                read_leaf(rows, l++, t, from, box, offset);
            }
    return l;
}

/* ---- sums in passes ---- */

/* What the passes of a term share while they go through a tile. */
typedef struct line {
    const trl_operator *op;
    int term;
    bool past;
    view source, out;
    view ring[2];     /* results of the passes but the last */
    trl_box box[3];   /* what each pass computes */
    trl_lidx hi[3];   /* planes that each pass reads ahead */
    trl_lidx next[3]; /* plane that each pass computes next */
} line;

static trl_offsets hull_of(const trl_pass *pass)
{
    trl_footprint f = {.n = 0};
    for (int p = 0; p < pass->npoints; ++p) {
        trl_offsets at;
        for (int a = 0; a < 3; ++a) at.lo[a] = at.hi[a] = pass->point[p].offset[a];
        trl_footprint_add(&f, &at);
    }
    return trl_footprint_hull(&f);
}

/* out = scale * (the weighted sum), for as many points at once as there are kernels for. */
static void sum(const trl_pass *pass, double scale, const view *from, const trl_box *box, const view *out)
{
    for (int first = 0; first < pass->npoints; first += TRLI_SUM_POINTS) {
        int count = pass->npoints - first < TRLI_SUM_POINTS ? pass->npoints - first : TRLI_SUM_POINTS;
        trli_rows rows = rows_of(out, box);
        rows.scale[0] = first + count == pass->npoints ? scale : 1;
        for (int l = 0; l < count; ++l) {
            read_leaf(&rows, l, 0, from, box, pass->point[first + l].offset);
            rows.weight[l] = pass->point[first + l].weight;
        }
        trli_rows_sum(count, first > 0)(&rows);
    }
}

/* out = out + from. */
static void add(const view *from, const trl_box *box, const view *out)
{
    static const int8_t here[3] = {0, 0, 0};
    trli_rows rows = rows_of(out, box);
    read_leaf(&rows, 0, 0, from, box, here);
    rows.weight[0] = rows.scale[0] = 1;
    trli_rows_sum(1, true)(&rows);
}

static void run_batch(const line *l, int p, const view *from, const trl_box *batch)
{
    const trl_term *term = &l->op->term[l->term];
    const trl_pass *pass = &term->pass[p];
    if (p < term->npasses - 1) {
        sum(pass, pass->scale, from, batch, &l->ring[p]);
        return;
    }
    double scale = term->minus ? -pass->scale : pass->scale, buffer[BATCH];
    const trl_lidx *lo = batch->lo, n = batch->hi[0] - lo[0];
    const view own = {.at = buffer - lo[0] - (ptrdiff_t)lo[1] * n, .step = {n, 0}, .ring = 1};
    const bool through = l->term > 0 || l->past;
    sum(pass, scale, from, batch, through ? &own : &l->out);
    if (l->term > 0)
        add(&own, batch, &l->out);
    else if (l->past)
        trli_stream_rows(point_of(&l->out, lo), l->out.step[0], buffer, n, n, batch->hi[1] - lo[1]);
}

/* One plane of a pass, in batches that stay in the first-level cache from one part of a long sum to the next. */
static void run_plane(const line *l, int p, trl_lidx k)
{
    const trl_box *box = &l->box[p];
    const trl_lidx n = least(BATCH, box->hi[0] - box->lo[0]), rows = batch_rows(n);
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; j += rows)
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; i += n) {
            const trl_box batch = {{i, j, k}, {least(i + n, box->hi[0]), least(j + rows, box->hi[1]), k + 1}};
            run_batch(l, p, p == 0 ? &l->source : &l->ring[p - 1], &batch);
        }
}

/* Let pass p compute its planes up to k, and those before it what it reads. */
static void advance(line *l, int p, trl_lidx k)
{
    for (; l->next[p] <= k; ++l->next[p]) {
        if (p > 0) advance(l, p - 1, l->next[p] + l->hi[p]);
        run_plane(l, p, l->next[p]);
    }
}

/* What the passes compute for a tile, and the room of their rings; returns the values of all rings. */
static ptrdiff_t lay_out(line *l, const trl_box *tile, double *scratch)
{
    const trl_term *term = &l->op->term[l->term];
    ptrdiff_t used = 0;
    l->box[term->npasses - 1] = *tile;
    for (int p = term->npasses - 1; p >= 0; --p) {
        const trl_offsets hull = hull_of(&term->pass[p]);
        l->hi[p] = hull.hi[2];
        l->next[p] = l->box[p].lo[2];
        if (p == 0) break;
        trl_box *box = &l->box[p - 1];
        for (int a = 0; a < 3; ++a) {
            box->lo[a] = l->box[p].lo[a] + hull.lo[a];
            box->hi[a] = l->box[p].hi[a] + hull.hi[a];
        }
        const ptrdiff_t n = box->hi[0] - box->lo[0], plane = n * (box->hi[1] - box->lo[1]);
        l->ring[p - 1] = (view){.step = {n, plane}, .ring = hull.hi[2] - hull.lo[2] + 1};
        if (scratch) l->ring[p - 1].at = scratch + used - box->lo[0] - box->lo[1] * n;
        used += plane * l->ring[p - 1].ring;
    }
    return used;
}

/* The largest tile whose rings have room, or whose planes stay in the second-level cache. */
static void choose_tile(line *l, const trl_box *box, trl_lidx shape[3])
{
    const bool rings = l->op->term[l->term].npasses > 1;
    for (int a = 0; a < 3; ++a) shape[a] = box->hi[a] - box->lo[a];
    if (!rings) {
        shape[1] = block_rows(l->op, shape[0], shape[1]);
        return;
    }
    shape[0] = least(shape[0], SCRATCH_ROW);
    for (;;) {
        const trl_box one = {{0, 0, 0}, {shape[0], 1, 1}}, two = {{0, 0, 0}, {shape[0], 2, 1}};
        const ptrdiff_t first = lay_out(l, &one, NULL), more = lay_out(l, &two, NULL) - first;
        if (first <= SCRATCH) {
            shape[1] = least(shape[1], (trl_lidx)(1 + (SCRATCH - first) / more));
            return;
        }
        assert(shape[0] > 1); /* no operator reaches that far */
        shape[0] = (shape[0] + 1) / 2;
    }
}

static void run_term(line *l, const trl_box *box)
{
    double scratch[SCRATCH];
    trl_lidx shape[3];
    choose_tile(l, box, shape);
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; j += shape[1])
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; i += shape[0]) {
            const trl_box tile = {{i, j, box->lo[2]},
                                  {least(i + shape[0], box->hi[0]), least(j + shape[1], box->hi[1]), box->hi[2]}};
            lay_out(l, &tile, scratch);
            advance(l, l->op->term[l->term].npasses - 1, box->hi[2] - 1);
        }
}

/* ---- any operator ---- */

void trli_operator_box(const trl_operator *op, const trl_array *in, const trl_array *out, const trl_box *box, bool past)
{
    if (trl_box_points(box) == 0) return;
    trli_rows rows = trli_rows_of(out, box);
    trli_rows_kernel kernel = trli_rows_fused(op, &rows);
    if (kernel) {
        for (int t = 0, leaf = 0; t < op->nterms; ++t) {
            const view from = view_array(&in[op->term[t].input]);
            leaf = read_term(&rows, leaf, t, &op->term[t], &from, box);
        }
        trli_rows_run(op, kernel, &rows, past);
        return;
    }
    for (int t = 0; t < op->nterms; ++t) {
        line l = {.op = op, .term = t, .past = past && op->nterms == 1};
        l.source = view_array(&in[op->term[t].input]);
        l.out = view_array(out);
        run_term(&l, box);
    }
    if (past) trli_stream_end();
}

void trl_operator_apply_box(const trl_operator *op, const trl_array *in, const trl_array *out, const trl_box *box)
{
    const size_t cache = trl_context_cache_bytes(op->ctx, 0);
    trli_operator_box(op, in, out, box, cache > 0 && (size_t)trl_box_points(box) * sizeof(double) > cache);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* An operator on a box of arrays. Operators that read few values for a point are one kernel. Others go pass by pass:
 * planes of a pass' results live in a ring in the second-level cache, just long enough for the next pass. */
#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "arithmetic_impl.h"
#include "operator_impl.h"

enum {
    SCRATCH = 65536,       /* values of the rings of a term: half of a second-level cache */
    ROW_MOST = 512,        /* points of the rows of a tile with rings */
    ROW_LEAST = 64,        /* shorter only if nothing else has room */
    INTERLEAVE = 2,        /* planes whose rows are interleaved */
    FIRST_LEVEL = 1 << 15, /* bytes of a core's caches, where unknown */
    SECOND_LEVEL = 1 << 18
};

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

static void read_leaf(trli_rows *rows, int t, const view *from, const trl_box *box, const int8_t offset[3])
{
    trl_lidx at[3];
    for (int a = 0; a < 3; ++a) at[a] = box->lo[a] + offset[a];
    rows->in[rows->leaves] = point_of(from, at);
    rows->term[rows->leaves++] = (int8_t)t;
    memcpy(rows->in_step[t], from->step, sizeof from->step);
}

trli_rows trli_rows_of(const trl_array *out, const trl_box *box)
{
    const view v = view_array(out);
    return rows_of(&v, box);
}

void trli_rows_read(trli_rows *rows, int t, const trl_array *from, const trl_box *box, const int8_t offset[3])
{
    const view v = view_array(from);
    read_leaf(rows, t, &v, box, offset);
}

/* The part of rows that begins at a point and has no more than n points, `count` rows and `planes` planes. */
static trli_rows part(const trli_rows *rows, const ptrdiff_t at[3], ptrdiff_t n, ptrdiff_t count, ptrdiff_t planes)
{
    trli_rows p = *rows;
    p.out += at[0] + at[1] * rows->out_step[0] + at[2] * rows->out_step[1];
    for (int l = 0; l < rows->leaves; ++l) {
        const ptrdiff_t *step = rows->in_step[rows->term[l]];
        p.in[l] += at[0] + at[1] * step[0] + at[2] * step[1];
    }
    p.n = rows->n - at[0] < n ? rows->n - at[0] : n;
    p.rows = rows->rows - at[1] < count ? rows->rows - at[1] : count;
    p.planes = rows->planes - at[2] < planes ? rows->planes - at[2] : planes;
    return p;
}

/* Results by streaming stores, except those before and after the whole cache lines of the rows. */
static void run_streaming(trli_rows_kernel kernel, const trli_rows *rows)
{
    const ptrdiff_t into = (ptrdiff_t)((uintptr_t)rows->out / sizeof(double) % TRLI_LINE);
    const ptrdiff_t head = into ? TRLI_LINE - into : 0, lines = (rows->n - head) / TRLI_LINE * TRLI_LINE;
    const ptrdiff_t tail = head + lines, j = rows->rows, k = rows->planes;
    if (!kernel.streaming || lines <= 0 || rows->out_step[0] % TRLI_LINE || rows->out_step[1] % TRLI_LINE) {
        kernel.through(rows);
        return;
    }
    const trli_rows before = part(rows, (ptrdiff_t[3]){0, 0, 0}, head, j, k);
    const trli_rows whole = part(rows, (ptrdiff_t[3]){head, 0, 0}, lines, j, k);
    const trli_rows after = part(rows, (ptrdiff_t[3]){tail, 0, 0}, rows->n - tail, j, k);
    kernel.streaming(&whole);
    if (before.n > 0) kernel.through(&before);
    if (after.n > 0) kernel.through(&after);
}

static trl_lidx planes_read(const trl_operator *op)
{
    trl_lidx planes = 0;
    for (int i = 0; i < op->ninputs; ++i) {
        const trl_offsets hull = trl_footprint_hull(&op->reads[i]);
        planes += hull.hi[2] - hull.lo[2] + 1;
    }
    return planes;
}

/* Rows of n values such that as many planes of them as the operator reads fill no more than half of a cache. */
static ptrdiff_t rows_in_cache(const trl_operator *op, ptrdiff_t n, int level, size_t unknown)
{
    const size_t cache = trl_context_cache_bytes(op->ctx, level), row = (size_t)n * sizeof(double);
    return (ptrdiff_t)((cache ? cache : unknown) / 2 / (row * (size_t)planes_read(op)));
}

static ptrdiff_t block_rows(const trl_operator *op, ptrdiff_t n, ptrdiff_t rows)
{
    const ptrdiff_t fit = rows_in_cache(op, n, 2, SECOND_LEVEL);
    return fit < 1 ? 1 : fit < rows ? fit : rows;
}

/* The same with the axes y and z exchanged. */
static trli_rows exchange_axes(const trli_rows *rows)
{
    trli_rows t = *rows;
    t.rows = rows->planes;
    t.planes = rows->rows;
    t.out_step[0] = rows->out_step[1];
    t.out_step[1] = rows->out_step[0];
    for (int i = 0; i < 3; ++i) {
        t.in_step[i][0] = rows->in_step[i][1];
        t.in_step[i][1] = rows->in_step[i][0];
    }
    return t;
}

/* Fetch ahead what a row is the first to read, while the row a plane step before it is at work. */
static void fetch_ahead(trli_rows *rows)
{
    rows->ahead = rows->in_step[0][1];
    for (int l = 1; l < rows->leaves; ++l)
        if (rows->in[l] > rows->in[rows->first]) rows->first = l;
}

/* Where a kernel without much to compute reads one input along z, more than the first-level cache keeps, and stores by
 * streaming stores, the rows of two planes are interleaved: the row of the second plane finds in the first-level cache
 * what the row of the first one read. More planes, or several inputs, would be more streams from memory, which cost
 * more than they save where memory latency is high: the hardware prefetcher does not see that the rows belong
 * together. */
void trli_rows_run(const trl_operator *op, trli_rows_kernel kernel, const trli_rows *rows, bool streaming)
{
    const bool reaches = rows->planes > 1 && planes_read(op) >= 2 * op->ninputs;
    const bool interleaved = streaming && reaches && op->ninputs == 1 && kernel.streaming &&
                             rows_in_cache(op, rows->n, 1, FIRST_LEVEL) < rows->rows;
    const ptrdiff_t block = reaches ? block_rows(op, rows->n, rows->rows) : rows->rows;
    const ptrdiff_t planes = interleaved ? INTERLEAVE : streaming ? 1 : rows->planes;
    if (!streaming && block == rows->rows) { /* uncut: cutting costs small boxes time */
        kernel.through(rows);
        return;
    }
    for (ptrdiff_t j = 0; j < rows->rows; j += block)
        for (ptrdiff_t k = 0; k < rows->planes; k += planes) {
            trli_rows piece = part(rows, (ptrdiff_t[3]){0, j, k}, rows->n, block, planes);
            if (interleaved) {
                piece = exchange_axes(&piece);
                fetch_ahead(&piece);
            }
            if (streaming)
                run_streaming(kernel, &piece);
            else
                kernel.through(&piece);
        }
    if (streaming) trli_stream_end();
}

/* ---- operators of one kernel ---- */

static void read_term(trli_rows *rows, int t, const trl_term *term, const view *from, const trl_box *box)
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
                read_leaf(rows, t, from, box, offset);
            }
}

/* ---- sums in passes ---- */

/* What the passes of a term share while they go through a tile. */
typedef struct line {
    const trl_operator *op;
    int term;
    bool streaming;
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

/* scale * (points first to first + count of the weighted sum), added to out after the first part. */
static trli_rows rows_of_sum(const trl_pass *pass, int first, int count, double scale, const view *from,
                             const trl_box *box, const view *out)
{
    trli_rows rows = rows_of(out, box);
    rows.scale[0] = scale;
    for (int l = 0; l < count; ++l) {
        read_leaf(&rows, 0, from, box, pass->point[first + l].offset);
        rows.weight[l] = pass->point[first + l].weight;
    }
    return rows;
}

/* A long sum takes several kernels: row by row, so that out stays in the first-level cache between them. */
static void sum_in_parts(const trl_pass *pass, double scale, const view *from, const trl_box *box, const view *out)
{
    trl_box row = *box;
    for (row.lo[1] = box->lo[1]; row.lo[1] < box->hi[1]; ++row.lo[1])
        for (int first = 0; first < pass->npoints; first += TRLI_SUM_POINTS) {
            const int count = (int)trli_min(pass->npoints - first, TRLI_SUM_POINTS);
            row.hi[1] = row.lo[1] + 1;
            const trli_rows rows =
                rows_of_sum(pass, first, count, first + count == pass->npoints ? scale : 1, from, &row, out);
            (first > 0 ? trli_rows_add(count) : trli_rows_sum(pass->point, count)).through(&rows);
        }
}

static void sum(const trl_pass *pass, double scale, const view *from, const trl_box *box, const view *out,
                bool streaming)
{
    if (pass->npoints > TRLI_SUM_POINTS) {
        sum_in_parts(pass, scale, from, box, out);
        return;
    }
    const trli_rows rows = rows_of_sum(pass, 0, pass->npoints, scale, from, box, out);
    const trli_rows_kernel kernel = trli_rows_sum(pass->point, pass->npoints);
    if (streaming)
        run_streaming(kernel, &rows);
    else
        kernel.through(&rows);
}

/* out = out + (the last pass of a term that is not the first), row by row. */
static void add_sum(const trl_pass *pass, double scale, const view *from, const trl_box *box, const view *out)
{
    static const trl_stencil_point here = {.weight = 1};
    static const trl_pass one = {.npoints = 1, .point = &here, .scale = 1};
    double row[ROW_MOST];
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; i += ROW_MOST) {
            const trl_box part = {{i, j, box->lo[2]},
                                  {(trl_lidx)trli_min(i + ROW_MOST, box->hi[0]), j + 1, box->hi[2]}};
            const view own = {.at = row - i, .ring = 1};
            sum(pass, scale, from, &part, &own, false);
            const trli_rows rows = rows_of_sum(&one, 0, 1, 1, &own, &part, out);
            trli_rows_add(1).through(&rows);
        }
}

/* One plane of a pass. */
static void run_plane(const line *l, int p, trl_lidx k)
{
    const trl_term *term = &l->op->term[l->term];
    const trl_pass *pass = &term->pass[p];
    const bool last = p == term->npasses - 1;
    const view *from = p == 0 ? &l->source : &l->ring[p - 1];
    const double scale = last && term->minus ? -pass->scale : pass->scale;
    trl_box box = l->box[p];
    box.lo[2] = k;
    box.hi[2] = k + 1;
    if (last && l->term > 0)
        add_sum(pass, scale, from, &box, &l->out);
    else
        sum(pass, scale, from, &box, last ? &l->out : &l->ring[p], last && l->streaming);
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
        shape[1] = (trl_lidx)block_rows(l->op, shape[0], shape[1]);
        return;
    }
    for (trl_lidx n = (trl_lidx)trli_min(shape[0], ROW_MOST);; n = (n + 1) / 2) {
        const trl_box one = {{0, 0, 0}, {n, 1, 1}}, two = {{0, 0, 0}, {n, 2, 1}};
        const ptrdiff_t first = lay_out(l, &one, NULL), more = lay_out(l, &two, NULL) - first;
        const trl_lidx rows = first > SCRATCH ? 0 : (trl_lidx)(1 + (SCRATCH - first) / more);
        const trl_lidx grown =
            l->box[0].hi[1] - l->box[0].lo[1] - 2; /* rows that the first pass computes more than the last */
        assert(rows > 0 || n > 1);                 /* no operator reaches that far */
        if (rows == 0 || (rows < shape[1] && rows < 2 * grown && n > ROW_LEAST)) continue;
        shape[0] = n;
        shape[1] = (trl_lidx)trli_min(shape[1], rows);
        return;
    }
}

static void run_term(line *l, const trl_box *box)
{
    alignas(TRLI_LINE * sizeof(double)) double scratch[SCRATCH];
    trl_lidx shape[3];
    choose_tile(l, box, shape);
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; j += shape[1])
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; i += shape[0]) {
            const trl_box tile = {{i, j, box->lo[2]},
                                  {(trl_lidx)trli_min(i + shape[0], box->hi[0]),
                                   (trl_lidx)trli_min(j + shape[1], box->hi[1]), box->hi[2]}};
            lay_out(l, &tile, scratch);
            advance(l, l->op->term[l->term].npasses - 1, box->hi[2] - 1);
        }
}

/* ---- any operator ---- */

void trli_operator_box(const trl_operator *op, const trl_array *in, const trl_array *out, const trl_box *box,
                       bool streaming)
{
    if (trl_box_points(box) == 0) return;
    trli_rows rows = trli_rows_of(out, box);
    trli_rows_kernel kernel;
    if (trli_rows_fused(op, &rows, &kernel)) {
        for (int t = 0; t < op->nterms; ++t) {
            const view from = view_array(&in[op->term[t].input]);
            read_term(&rows, t, &op->term[t], &from, box);
        }
        trli_rows_run(op, kernel, &rows, streaming);
        return;
    }
    for (int t = 0; t < op->nterms; ++t) {
        line l = {.op = op, .term = t, .streaming = streaming && op->nterms == 1};
        l.source = view_array(&in[op->term[t].input]);
        l.out = view_array(out);
        run_term(&l, box);
    }
    if (streaming) trli_stream_end();
}

void trl_operator_apply_box(const trl_operator *op, const trl_array *in, const trl_array *out, const trl_box *box)
{
    const size_t cache = trl_context_cache_bytes(op->ctx, 0);
    trli_operator_box(op, in, out, box, cache > 0 && (size_t)trl_box_points(box) * sizeof(double) > cache);
}

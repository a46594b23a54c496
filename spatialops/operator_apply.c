/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Operators on fields: what may be computed, and its chunks. */
#include <string.h>

#include "arithmetic_impl.h"
#include "chunks_impl.h"
#include "field_impl.h"
#include "flux_impl.h"
#include "operator_impl.h"

_Static_assert(sizeof(trli_application) == 64, "an application is one line");

/* ---- checks ---- */

static trl_err check_field(const trl_operator *op, const trl_field *field, const trl_field *out, trl_location wanted,
                           const char *role)
{
    if (field->layout != out->layout)
        return trl_fail(out->ctx, TRL_ERR_USAGE, NULL, "%s: fields '%s' and '%s' have different layouts", op->name,
                        field->name, out->name);
    if (field->location != wanted)
        return trl_fail(out->ctx, TRL_ERR_USAGE, NULL, "%s: %s '%s' is at %s; the operator needs one at %s", op->name,
                        role, field->name, trl_location_name(field->location), trl_location_name(wanted));
    return TRL_OK;
}

static trl_err check_fields(const trl_operator *op, trl_field *const *in, const trl_field *out)
{
    trl_err err;
    TRL_TRY(check_field(op, out, out, op->to, "output"));
    for (int i = 0; i < op->ninputs; ++i) {
        TRL_TRY(check_field(op, in[i], out, op->from[i], "input"));
        if (in[i] == out)
            return trl_fail(out->ctx, TRL_ERR_USAGE, NULL, "%s: field '%s' is both input and output; use another one",
                            op->name, out->name);
    }
    err = trli_field_together(out, op->ninputs, in);
done:
    return err;
}

/* The points that can be computed, and must: the owned ones at least. */
static trl_err choose_box(const trl_operator *op, trl_field *const *in, const trl_field *out, int p, trl_box *box)
{
    trl_err err = TRL_OK;
    const trl_box *owned = &out->array[p].owned;
    *box = out->array[p].held;
    for (int i = 0; i < op->ninputs; ++i) {
        const trl_offsets reach = trl_footprint_hull(&op->reads[i]);
        const trl_box *valid = &in[i]->valid[p];
        trl_box needed = *owned;
        for (int a = 0; a < out->layout->grid.dim; ++a) {
            needed.lo[a] += reach.lo[a];
            needed.hi[a] += reach.hi[a];
            if (valid->lo[a] - reach.lo[a] > box->lo[a]) box->lo[a] = valid->lo[a] - reach.lo[a];
            if (valid->hi[a] - reach.hi[a] < box->hi[a]) box->hi[a] = valid->hi[a] - reach.hi[a];
        }
        TRL_TRY(trl_field_require(in[i], p, &needed));
    }
done:
    return err;
}

/* ---- chunks ---- */

/* Cut a box such that the caller's chunk, the first, is longer than the others. */
static int cut_ahead(trli_field_work *work, int workers, int values)
{
    trl_box first, rest;
    work->ahead = trli_planes_ahead(&work->box, workers, values);
    if (work->ahead == 0) return workers;
    trli_box_split(&work->box, work->ahead, &first, &rest);
    return 1 + trli_box_cut(&rest, workers - 1, work->parts);
}

/* Cut the boxes of all patches into chunks. */
static void cut(trl_field *out, int workers, int values)
{
    int64_t points = 0;
    int chunks = 0;
    for (int p = 0; p < out->layout->nlocal; ++p) points += trl_box_points(&out->work[p].box);
    const int64_t wanted = trli_chunks_wanted(points, workers);
    for (int p = 0; p < out->layout->nlocal; ++p) {
        trli_field_work *work = &out->work[p];
        const int64_t share = trli_ceil_div(wanted * trl_box_points(&work->box), points);
        work->first = chunks;
        work->ahead = 0;
        chunks += trli_box_cut(&work->box, share, work->parts);
    }
    if (chunks == workers && workers > 1 && out->layout->nlocal == 1)
        chunks = cut_ahead(&out->work[0], workers, values);
    out->chunks = chunks;
    out->workers = workers;
    out->values = values;
}

/* The boxes to compute and their chunks. As a rule they are those of the time before: then nothing is written that
 * workers would have to fetch again. */
static trl_err share_out(const trli_application *a, int workers, int values)
{
    trl_err err = TRL_OK;
    trl_field *out = a->out;
    trl_box box;
    for (int p = 0; p < out->layout->nlocal; ++p) {
        TRL_TRY(choose_box(a->op, a->in, out, p, &box));
        if (memcmp(&box, &out->work[p].box, sizeof box) == 0) continue;
        out->work[p].box = box;
        out->workers = 0;
    }
    if (out->workers != workers || out->values != values) cut(out, workers, values);
done:
    return err;
}

/* The local patch of a chunk. */
static int patch_of(const trl_field *out, int chunk)
{
    int first = 0, end = out->layout->nlocal;
    while (end - first > 1) {
        const int middle = (first + end) / 2;
        if (out->work[middle].first <= chunk)
            first = middle;
        else
            end = middle;
    }
    return first;
}

static trl_box box_of(const trli_field_work *work, int chunk)
{
    trl_box first, rest;
    if (work->ahead == 0) return trli_box_part(&work->box, work->parts, chunk);
    trli_box_split(&work->box, work->ahead, &first, &rest);
    return chunk == 0 ? first : trli_box_part(&rest, work->parts, chunk - 1);
}

static trl_err run_chunk(void *data, int chunk, int chunks, int worker)
{
    const trli_application *a = data;
    const int p = patch_of(a->out, chunk);
    const trli_field_work *work = &a->out->work[p];
    const trl_box box = box_of(work, chunk - work->first);
    trl_array in[3];
    (void)chunks, (void)worker;
    for (int i = 0; i < a->ninputs; ++i) in[i] = a->in[i]->array[p];
    a->run(a, in, &a->out->array[p], &box);
    return TRL_OK;
}

/* Whether the field outgrows the workers' caches: then storing past them leaves these to the inputs, and reads nothing
 * that is overwritten. */
static bool is_large(const trl_field *field, int workers)
{
    size_t bytes = 0, cache = trl_context_cache_bytes(field->ctx, 0);
    for (int p = 0; p < field->layout->nlocal; ++p)
        bytes += (size_t)trl_box_points(&field->array[p].held) * sizeof(double);
    return cache > 0 && bytes > cache * (size_t)workers;
}

/* The host's arrays. */
static trl_err take_arrays(const trli_application *a)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < a->ninputs; ++i) TRL_TRY(trli_field_bring(a->in[i], false));
    err = trli_field_bring(a->out, true);
done:
    return err;
}

/* `values`: what a point costs, as values that are read for it. */
static trl_err apply(trli_application *a, int values, trl_loop *loop)
{
    trl_err err;
    trl_field *out = a->out;
    const int workers = trl_loop_workers(loop);
    bool done = false;
    TRL_TRY(check_fields(a->op, a->in, out));
    TRL_TRY(share_out(a, workers, values));
    if (out->device) TRL_TRY(trli_apply_there(a, &done));
    if (done) return TRL_OK;
    TRL_TRY(take_arrays(a));
    a->streaming = is_large(out, workers);
    if (memcmp(&out->application, a, sizeof *a) != 0) out->application = *a;
    TRL_TRY(trl_loop_run(loop, out->chunks, run_chunk, &out->application));
    for (int p = 0; p < out->layout->nlocal; ++p) TRL_TRY(trl_field_set_valid(out, p, &out->work[p].box));
done:
    return err;
}

/* ---- operators ---- */

static void operator_on_box(const trli_application *a, const trl_array *in, const trl_array *out, const trl_box *box)
{
    trli_operator_box(a->op, in, out, box, a->streaming);
}

static int values_read(const trl_operator *op)
{
    int values = 0;
    for (int t = 0; t < op->nterms; ++t)
        for (int p = 0; p < op->term[t].npasses; ++p) values += op->term[t].pass[p].npoints;
    return values;
}

trl_err trl_operator_apply(const trl_operator *op, trl_loop *loop, trl_field *const *in, trl_field *out)
{
    trli_application a = {.op = op, .ninputs = op->ninputs, .out = out, .run = operator_on_box};
    memcpy(a.in, in, (size_t)op->ninputs * sizeof *in);
    return apply(&a, values_read(op), loop);
}

/* ---- fluxes ---- */

enum {
    UNLIMITED = 3, /* values read for a point */
    LIMITED = 16   /* what a limiter computes of its five takes as long as reading so many */
};
static const char flux_name[] = "advective flux";

static void flux_on_box(const trli_application *a, const trl_array *in, const trl_array *out, const trl_box *box)
{
    int8_t offset[3] = {0, 0, 0}, at[4];
    const int n = trli_flux_points(a->limiter, a->op->from[1], a->axis, at);
    trli_rows rows = trli_rows_of(out, box);
    trli_rows_read(&rows, 0, &in[0], box, offset);
    for (int l = 0; l < 4; ++l) { /* kernels may load what their limiter does not use */
        offset[a->axis] = at[l < n ? l : 0];
        trli_rows_read(&rows, 1, &in[1], box, offset);
    }
    trli_rows_run(a->op, trli_rows_flux(a->limiter), &rows, a->streaming);
}

/* As an application, it is written only if it changes. */
static const trl_operator *flux_reads(int limiter, int axis, trl_location phi, trl_field *flux)
{
    trl_operator *reads = &flux->flux_reads;
    const trli_application *last = &flux->application;
    const trl_location face = (trl_location)((int)phi ^ 1 << axis);
    int8_t at[4];
    const int n = trli_flux_points(limiter, phi, axis, at);
    if (last->op == reads && last->limiter == limiter && last->axis == axis && reads->from[1] == phi) return reads;
    flux->application.op = NULL; /* of what was there */
    *reads = (trl_operator){.ctx = flux->ctx,
                            .name = flux_name,
                            .ninputs = 2,
                            .from = {face, phi},
                            .to = face,
                            .reads = {{.n = 1}, {.n = 1}}};
    reads->reads[1].part[0].lo[axis] = at[n - 2 > 0 ? 2 : 0];
    reads->reads[1].part[0].hi[axis] = at[n - 1];
    return reads;
}

trl_err trl_advective_flux_apply(int limiter, int axis, trl_loop *loop, trl_field *phi, trl_field *u, trl_field *flux)
{
    if (limiter < -1 || limiter >= TRL_LIMITER_COUNT)
        return trl_fail(flux->ctx, TRL_ERR_USAGE, NULL, "%s: limiter %d; -1 (central) to %d are possible", flux_name,
                        limiter, TRL_LIMITER_COUNT - 1);
    if (axis < 0 || axis >= flux->layout->grid.dim)
        return trl_fail(flux->ctx, TRL_ERR_USAGE, NULL, "%s: axis %d; 0 to %d are possible", flux_name, axis,
                        flux->layout->grid.dim - 1);
    const trl_operator *reads = flux_reads(limiter, axis, phi->location, flux);
    trli_application a = {.op = reads,
                          .ninputs = reads->ninputs,
                          .in = {u, phi},
                          .out = flux,
                          .run = flux_on_box,
                          .limiter = limiter,
                          .axis = axis};
    return apply(&a, limiter > TRL_LIMITER_UPWIND ? LIMITED : UNLIMITED, loop);
}

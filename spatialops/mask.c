/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <string.h>

#include <context_impl.h>

#include "field_impl.h"
#include "mask_impl.h"
#include "spans_impl.h"
#include "spatialops_impl.h"

static size_t patch_words(const trli_mask_patch *m)
{
    return (size_t)(m->row_words * (m->box.hi[1] - m->box.lo[1]) * (m->box.hi[2] - m->box.lo[2]));
}

static const trl_patch *patch_of(const trl_mask *mask, int p)
{
    return &mask->layout->patch[p];
}

/* A mask without points. */
static trl_err create_empty(const trl_layout *layout, trl_location location, int ghosts, trl_mask **result)
{
    trl_err err = TRL_OK;
    trl_context *ctx = layout->ctx;
    trl_mask *mask = NULL;
    void *memory;
    *result = NULL;
    if (ghosts < 0)
        return trl_fail(ctx, TRL_ERR_USAGE, NULL, "a mask with %d layers of ghosts; 0 or more are possible", ghosts);
    TRL_TRY(trl_memory_alloc(ctx, sizeof *mask, "a mask", &memory));
    mask = memory;
    *mask = (trl_mask){.layout = layout, .location = trl_location_on(location, layout->grid.dim), .ghosts = ghosts};
    TRL_TRY(trl_memory_alloc(ctx, sizeof *mask->copy, "a mask", &memory));
    mask->copy = memset(memory, 0, sizeof *mask->copy);
    TRL_TRY(trl_memory_alloc(ctx, (size_t)layout->nlocal * sizeof *mask->patch, "a mask", &memory));
    mask->patch = memset(memory, 0, (size_t)layout->nlocal * sizeof *mask->patch);
    for (int p = 0; p < layout->nlocal; ++p) {
        trli_mask_patch *m = &mask->patch[p];
        m->box = trl_patch_owned(layout, patch_of(mask, p), mask->location);
        for (int a = 0; a < layout->grid.dim; ++a) {
            m->box.lo[a] -= ghosts;
            m->box.hi[a] += ghosts;
        }
        m->row_words = (m->box.hi[0] - m->box.lo[0] + 63) / 64 + 1;
        TRL_TRY(trl_memory_alloc(ctx, patch_words(m) * sizeof *m->bits, "a mask", &memory));
        m->bits = memset(memory, 0, patch_words(m) * sizeof *m->bits);
    }
    *result = mask;
    mask = NULL;
done:
    trl_mask_destroy(&mask);
    return err;
}

void trl_mask_destroy(trl_mask **mask)
{
    if (*mask == NULL) return;
    trl_context *ctx = (*mask)->layout->ctx;
    void *self = *mask, *patches = (*mask)->patch, *copy = (*mask)->copy;
    if (copy) trli_mask_drop(*mask);
    for (int p = 0; patches && p < (*mask)->layout->nlocal; ++p) {
        void *bits = (*mask)->patch[p].bits;
        trl_memory_free(ctx, &bits);
    }
    trl_memory_free(ctx, &patches);
    trl_memory_free(ctx, &copy);
    trl_memory_free(ctx, &self);
    *mask = NULL;
}

static void set_bit(trli_mask_patch *m, const trl_lidx at[3])
{
    trl_lidx i = at[0] - m->box.lo[0];
    trli_mask_row(m, at[1], at[2])[i / 64] |= (uint64_t)1 << i % 64;
}

/* Step to the next point of a box, x fastest; false after the last. */
static bool next_point(const trl_box *box, trl_lidx at[3])
{
    for (int a = 0; a < 3; ++a) {
        if (++at[a] < box->hi[a]) return true;
        at[a] = box->lo[a];
    }
    return false;
}

trl_err trl_mask_create(const trl_layout *layout, trl_location location, int ghosts, trl_point_fn holds, void *data,
                        double t, trl_mask **result)
{
    trl_err err = create_empty(layout, location, ghosts, result);
    for (int p = 0; err == TRL_OK && p < layout->nlocal; ++p) {
        trli_mask_patch *m = &(*result)->patch[p];
        const trl_patch *patch = patch_of(*result, p);
        trl_lidx at[3] = {m->box.lo[0], m->box.lo[1], m->box.lo[2]};
        do {
            double x[3];
            for (int a = 0; a < 3; ++a)
                x[a] = trl_grid_coordinate(&layout->grid, (*result)->location, a, patch->first[a] + at[a]);
            if (trli_condition_holds(holds(data, x, t))) set_bit(m, at);
        } while (next_point(&m->box, at));
    }
    return err;
}

/* The point of the grid that a local index stands for: round a periodic axis, the nearest one from beyond a side. */
static trl_gidx represented(const trl_mask *mask, int p, int axis, trl_lidx at)
{
    trl_gidx n = trl_grid_points(&mask->layout->grid, mask->location, axis), i = patch_of(mask, p)->first[axis] + at;
    if (mask->layout->grid.periodic[axis]) return (i % n + n) % n;
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* All points of a patch's box that stand for one point of the grid. */
static void set_represented(trl_mask *mask, int p, const trl_gidx point[3])
{
    trli_mask_patch *m = &mask->patch[p];
    trl_lidx at[3];
    for (at[2] = m->box.lo[2]; at[2] < m->box.hi[2]; ++at[2]) {
        if (represented(mask, p, 2, at[2]) != point[2]) continue;
        for (at[1] = m->box.lo[1]; at[1] < m->box.hi[1]; ++at[1]) {
            if (represented(mask, p, 1, at[1]) != point[1]) continue;
            for (at[0] = m->box.lo[0]; at[0] < m->box.hi[0]; ++at[0])
                if (represented(mask, p, 0, at[0]) == point[0]) set_bit(m, at);
        }
    }
}

trl_err trl_mask_create_points(const trl_layout *layout, trl_location location, int ghosts, int64_t npoints,
                               const trl_gidx (*points)[3], trl_mask **result)
{
    trl_err err = TRL_OK;
    trl_mask *mask = NULL;
    *result = NULL;
    TRL_TRY(create_empty(layout, location, ghosts, &mask));
    for (int64_t l = 0; l < npoints; ++l) {
        for (int a = 0; a < 3; ++a) {
            trl_gidx n = trl_grid_points(&layout->grid, mask->location, a);
            if (points[l][a] >= 0 && points[l][a] < n) continue;
            err = trl_fail(layout->ctx, TRL_ERR_USAGE, NULL,
                           "point %" PRId64 " of a mask has index %" TRL_GIDX_FMT
                           " along %c; at %s the grid has 0 to %" TRL_GIDX_FMT,
                           l, points[l][a], trli_axis_name(a), trl_location_name(mask->location), n - 1);
            goto done;
        }
        for (int p = 0; p < layout->nlocal; ++p) set_represented(mask, p, points[l]);
    }
    *result = mask;
    mask = NULL;
done:
    trl_mask_destroy(&mask);
    return err;
}

static trl_err set_nonzero(trl_mask *mask, trl_field *field, int p)
{
    const trli_mask_patch *m = &mask->patch[p];
    trl_box inside = m->box;
    trl_array array;
    trl_err err = TRL_OK;
    trl_lidx at[3] = {m->box.lo[0], m->box.lo[1], m->box.lo[2]};
    for (int a = 0; a < 3; ++a) {
        trl_box owned = trl_patch_owned(mask->layout, patch_of(mask, p), mask->location);
        if (trl_patch_at_side(mask->layout, patch_of(mask, p), a, 0)) inside.lo[a] = owned.lo[a];
        if (trl_patch_at_side(mask->layout, patch_of(mask, p), a, 1)) inside.hi[a] = owned.hi[a];
    }
    TRL_TRY(trl_field_require(field, p, &inside));
    TRL_TRY(trl_field_read(field, p, &array));
    do {
        trl_lidx in[3];
        for (int a = 0; a < 3; ++a)
            in[a] = at[a] < inside.lo[a] ? inside.lo[a] : at[a] >= inside.hi[a] ? inside.hi[a] - 1 : at[a];
        double value = ((const double *)array.at)[trl_array_offset(&array, in[0], in[1], in[2])];
        if (trli_condition_holds(value)) set_bit(&mask->patch[p], at);
    } while (next_point(&m->box, at));
done:
    return err;
}

trl_err trl_mask_create_field(trl_field *field, int ghosts, trl_mask **result)
{
    trl_err err = TRL_OK;
    trl_mask *mask = NULL;
    *result = NULL;
    TRL_TRY(create_empty(trl_field_layout(field), trl_field_location(field), ghosts, &mask));
    for (int p = 0; p < mask->layout->nlocal; ++p) TRL_TRY(set_nonzero(mask, field, p));
    *result = mask;
    mask = NULL;
done:
    trl_mask_destroy(&mask);
    return err;
}

const trl_layout *trl_mask_layout(const trl_mask *mask)
{
    return mask->layout;
}

trl_location trl_mask_location(const trl_mask *mask)
{
    return mask->location;
}

int trl_mask_ghosts(const trl_mask *mask)
{
    return mask->ghosts;
}

bool trl_mask_holds(const trl_mask *mask, int p, trl_lidx i, trl_lidx j, trl_lidx k)
{
    const trli_mask_patch *m = &mask->patch[p];
    return trli_mask_bits(trli_mask_row(m, j, k), i - m->box.lo[0], 1) != 0;
}

static trl_err check_alike(const trl_mask *mask, const trl_mask *other)
{
    if (other->layout == mask->layout && other->location == mask->location && other->ghosts == mask->ghosts)
        return TRL_OK;
    return trl_fail(mask->layout->ctx, TRL_ERR_USAGE, NULL,
                    "masks at %s with %d layers of ghosts and at %s with %d%s cannot be combined",
                    trl_location_name(mask->location), mask->ghosts, trl_location_name(other->location), other->ghosts,
                    other->layout == mask->layout ? "" : ", on another layout,");
}

trl_err trl_mask_and(trl_mask *mask, const trl_mask *other)
{
    trl_err err = check_alike(mask, other);
    trli_mask_drop(mask);
    for (int p = 0; err == TRL_OK && p < mask->layout->nlocal; ++p)
        for (size_t w = 0; w < patch_words(&mask->patch[p]); ++w) mask->patch[p].bits[w] &= other->patch[p].bits[w];
    return err;
}

trl_err trl_mask_or(trl_mask *mask, const trl_mask *other)
{
    trl_err err = check_alike(mask, other);
    trli_mask_drop(mask);
    for (int p = 0; err == TRL_OK && p < mask->layout->nlocal; ++p)
        for (size_t w = 0; w < patch_words(&mask->patch[p]); ++w) mask->patch[p].bits[w] |= other->patch[p].bits[w];
    return err;
}

/* The bits behind the end of a row change, too; no function reads them. */
void trl_mask_not(trl_mask *mask)
{
    trli_mask_drop(mask);
    for (int p = 0; p < mask->layout->nlocal; ++p)
        for (size_t w = 0; w < patch_words(&mask->patch[p]); ++w) mask->patch[p].bits[w] = ~mask->patch[p].bits[w];
}

typedef struct mask_job {
    const trl_mask *mask;
    trl_field *src, *dst;
    double number; /* without src */
    int64_t count;
} mask_job;

static trl_err count_span(void *data, const trli_span *span, int chunk)
{
    mask_job *job = data;
    const trli_mask_patch *m = &job->mask->patch[span->patch];
    const uint64_t *row = trli_mask_row(m, span->j, span->k);
    (void)chunk;
    for (trl_lidx i = 0; i < span->n; i += 64)
        for (uint64_t bits = trli_mask_bits(row, span->i + i - m->box.lo[0], span->n - i); bits; bits &= bits - 1)
            ++job->count;
    return TRL_OK;
}

trl_err trl_mask_count(const trl_mask *mask, int64_t *count)
{
    mask_job job = {.mask = mask};
    trl_context *ctx = mask->layout->ctx;
    trl_context_begin_phase(ctx);
    trl_err err = trli_span_sweep(NULL, mask->layout, mask->location, count_span, &job);
    if (err == TRL_OK) err = trli_allreduce(ctx, &job.count, 1, MPI_INT64_T, MPI_SUM);
    *count = job.count;
    return trl_context_end_phase(ctx, err);
}

/* dst[i] = src[i * step] where a bit is set; n <= 64. */
static void assign_bits(uint64_t bits, trl_lidx n, const double *src, ptrdiff_t step, double *dst)
{
    if (bits == 0) return;
    for (trl_lidx i = 0; i < n; ++i) {
        double value = src[i * step];
        dst[i] = bits >> i & 1 ? value : dst[i];
    }
}

static trl_err assign_span(void *data, const trli_span *span, int chunk)
{
    const mask_job *job = data;
    const trli_mask_patch *m = &job->mask->patch[span->patch];
    const uint64_t *row = trli_mask_row(m, span->j, span->k);
    trl_array dst, src;
    trl_err err = TRL_OK;
    (void)chunk;
    TRL_TRY(trl_field_array(job->dst, span->patch, &dst));
    double *to = (double *)dst.at + trl_array_offset(&dst, span->i, span->j, span->k);
    const double *from = &job->number;
    if (job->src) {
        TRL_TRY(trl_field_read(job->src, span->patch, &src));
        from = (const double *)src.at + trl_array_offset(&src, span->i, span->j, span->k);
    }
    for (trl_lidx i = 0; i < span->n; i += 64) {
        trl_lidx n = span->n - i < 64 ? span->n - i : 64;
        uint64_t bits = trli_mask_bits(row, span->i + i - m->box.lo[0], n);
        if (job->src)
            assign_bits(bits, n, from + i, 1, to + i);
        else
            assign_bits(bits, n, from, 0, to + i);
    }
done:
    return err;
}

/* That a field is at the mask's points, with valid values there. */
static trl_err check_field(const trl_mask *mask, const trl_field *field)
{
    if (trl_field_layout(field) == mask->layout && trl_field_location(field) == mask->location)
        return trli_span_require(field);
    return trl_fail(mask->layout->ctx, TRL_ERR_USAGE, NULL,
                    "field '%s' is at %s and the mask at %s, or their layouts differ", trl_field_name(field),
                    trl_location_name(trl_field_location(field)), trl_location_name(mask->location));
}

static trl_err assign_here(mask_job *job, trl_loop *loop)
{
    trl_err err = TRL_OK;
    if (job->src) TRL_TRY(trli_field_bring(job->src, false));
    TRL_TRY(trli_field_bring(job->dst, true));
    err = trli_span_sweep(loop, job->mask->layout, job->mask->location, assign_span, job);
done:
    return err;
}

static trl_err assign(mask_job *job, trl_loop *loop)
{
    bool done = false;
    trl_err err = TRL_OK;
    if (job->src) TRL_TRY(check_field(job->mask, job->src));
    if (job->src) TRL_TRY(trli_field_together(job->dst, 1, &job->src));
    TRL_TRY(check_field(job->mask, job->dst));
    if (job->dst->device) TRL_TRY(trli_assign_there(job->mask, job->src, job->number, job->dst, &done));
    if (!done) TRL_TRY(assign_here(job, loop));
    trl_field_invalidate_ghosts(job->dst);
done:
    return err;
}

trl_err trl_mask_assign(const trl_mask *mask, trl_loop *loop, trl_field *src, trl_field *dst)
{
    mask_job job = {.mask = mask, .src = src, .dst = dst};
    return assign(&job, loop);
}

trl_err trl_mask_assign_number(const trl_mask *mask, trl_loop *loop, double number, trl_field *dst)
{
    mask_job job = {.mask = mask, .dst = dst, .number = number};
    return assign(&job, loop);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Linear combinations of fields, point by point. */
#include "arithmetic_impl.h"
#include "chunks_impl.h"
#include "field_impl.h"
#include "residence_impl.h"

#include <trl_loop.h>

typedef struct combination {
    trl_field *out, *in[2];
    int n;
    double factor[2];
    int64_t wanted; /* chunks of a patch, about */
    int chunks;     /* the most that one has */
} combination;

/* Where all fields have values, and the result has room. */
static trl_box box_of(const combination *c, int p)
{
    trl_box box = c->out->array[p].held;
    for (int i = 0; i < c->n; ++i)
        for (int a = 0; a < 3; ++a) {
            box.lo[a] = (trl_lidx)trli_max(box.lo[a], c->in[i]->valid[p].lo[a]);
            box.hi[a] = (trl_lidx)trli_min(box.hi[a], c->in[i]->valid[p].hi[a]);
        }
    return box;
}

static trl_err check(const combination *c)
{
    const trl_field *out = c->out;
    trl_err err = TRL_OK;
    for (int i = 0; i < c->n; ++i) {
        const trl_field *in = c->in[i];
        if (in->layout != out->layout || in->location != out->location)
            return trl_fail(out->ctx, TRL_ERR_USAGE, NULL,
                            "fields '%s' at %s and '%s' at %s cannot be combined: they have other locations or layouts",
                            in->name, trl_location_name(in->location), out->name, trl_location_name(out->location));
        for (int p = 0; p < out->layout->nlocal; ++p) TRL_TRY(trl_field_require(in, p, &in->array[p].owned));
    }
    err = trli_field_together(out, c->n, c->in);
done:
    return err;
}

static void combine_row(const combination *c, trl_lidx n, const double *x, const double *y, double *out)
{
    const double a = c->factor[0], b = c->factor[1];
    if (c->n == 1)
        for (trl_lidx i = 0; i < n; ++i) out[i] = a * x[i];
    else
        for (trl_lidx i = 0; i < n; ++i) out[i] = a * x[i] + b * y[i];
}

static const double *row_of(const trl_field *field, int p, const trl_lidx at[3])
{
    const trl_array *a = &field->array[p];
    return (const double *)a->at + trl_array_offset(a, at[0], at[1], at[2]);
}

static trl_err run_chunk(void *data, int chunk, int chunks, int worker)
{
    const combination *c = data;
    const int p = chunk / c->chunks;
    const trl_box all = box_of(c, p);
    int parts[3];
    (void)chunks, (void)worker;
    if (trl_box_points(&all) == 0 || chunk % c->chunks >= trli_box_cut(&all, c->wanted, parts)) return TRL_OK;
    const trl_box box = trli_box_part(&all, parts, chunk % c->chunks);
    trl_lidx at[3] = {box.lo[0], 0, 0};
    for (at[2] = box.lo[2]; at[2] < box.hi[2]; ++at[2])
        for (at[1] = box.lo[1]; at[1] < box.hi[1]; ++at[1]) {
            const double *x = row_of(c->in[0], p, at), *y = c->n > 1 ? row_of(c->in[1], p, at) : NULL;
            const trl_array *out = &c->out->array[p];
            combine_row(c, box.hi[0] - box.lo[0], x, y, (double *)out->at + trl_array_offset(out, at[0], at[1], at[2]));
        }
    return TRL_OK;
}

static trl_err combine_here(combination *c, trl_loop *loop)
{
    trl_err err = TRL_OK;
    int64_t points = 0;
    for (int p = 0; p < c->out->layout->nlocal; ++p) points += trl_box_points(&c->out->array[p].owned);
    c->wanted = trli_ceil_div(trli_chunks_wanted(points, trl_loop_workers(loop)), c->out->layout->nlocal);
    for (int p = 0; p < c->out->layout->nlocal; ++p) {
        const trl_box box = box_of(c, p);
        int parts[3];
        c->chunks = (int)trli_max(c->chunks, trli_box_cut(&box, c->wanted, parts));
    }
    for (int i = 0; i < c->n; ++i) TRL_TRY(trli_field_bring(c->in[i], false));
    TRL_TRY(trli_field_bring(c->out, true));
    err = trl_loop_run(loop, c->out->layout->nlocal * c->chunks, run_chunk, c);
done:
    return err;
}

static trl_err combine_there(const combination *c, bool *done)
{
    trl_field_device *device = c->out->device;
    trl_err err = TRL_OK;
    *done = true;
    for (int p = 0; p < c->out->layout->nlocal && *done; ++p) {
        trli_statement s = {.kind = TRLI_STATEMENT_COMBINE,
                            .label = "combination",
                            .layout = c->out->layout,
                            .patch = p,
                            .box = box_of(c, p),
                            .ninputs = c->n,
                            .nnumbers = c->n,
                            .number = {c->factor[0], c->factor[1]}};
        for (int i = 0; i < c->n; ++i) TRL_TRY(trli_field_there(c->in[i], p, true, &s.input[i]));
        TRL_TRY(trli_field_there(c->out, p, false, &s.output));
        TRL_TRY(device->ops->compute(device, &s, done));
        if (*done) trli_field_changed_there(c->out, p);
    }
done:
    return err;
}

trl_err trl_field_combine(trl_field *out, trl_loop *loop, double a, trl_field *x, double b, trl_field *y)
{
    combination c = {.out = out, .in = {x, y}, .n = y ? 2 : 1, .factor = {a, b}};
    bool done = false;
    trl_err err = TRL_OK;
    TRL_TRY(check(&c));
    if (out->device) TRL_TRY(combine_there(&c, &done));
    if (!done) TRL_TRY(combine_here(&c, loop));
    for (int p = 0; p < out->layout->nlocal; ++p) {
        const trl_box box = box_of(&c, p);
        TRL_TRY(trl_field_set_valid(out, p, &box));
    }
done:
    return err;
}

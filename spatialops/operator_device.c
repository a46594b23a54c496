/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Operators and fluxes of fields that live on a device: a statement for each patch; of a wide operator in several
 * passes one for each pass, since computing a pass again for every point that the next one reads would take longer. */
#include "field_impl.h"
#include "operator_impl.h"
#include "residence_impl.h"

enum { WIDEST_INLINE = 4 /* points of a pass */ };

static bool goes_by_passes(const trl_operator *op)
{
    return op->nterms == 1 && op->term[0].npasses > 1 && op->term[0].pass[0].npoints > WIDEST_INLINE;
}

/* The points at which the result of a pass is needed: grown by what those behind it read. */
static trl_box box_of_pass(const trl_term *term, int pass, const trl_box *box)
{
    trl_box grown = *box;
    for (int later = pass + 1; later < term->npasses; ++later) {
        const trl_pass *p = &term->pass[later];
        int lo[3] = {0, 0, 0}, hi[3] = {0, 0, 0};
        for (int i = 0; i < p->npoints; ++i)
            for (int a = 0; a < 3; ++a) {
                const int by = p->point[i].offset[a];
                if (i == 0 || by < lo[a]) lo[a] = by;
                if (i == 0 || by > hi[a]) hi[a] = by;
            }
        for (int a = 0; a < 3; ++a) {
            grown.lo[a] += lo[a];
            grown.hi[a] += hi[a];
        }
    }
    return grown;
}

/* Values between passes. */
static trl_err take_scratch(trl_field_device *device, int which, int dim, const trl_box *box, trl_array *array)
{
    trl_err err;
    ptrdiff_t origin;
    void *memory;
    *array = (trl_array){.owned = *box, .held = *box, .type = TRL_F64};
    const int64_t values = trli_lay_out(array, dim, TRLI_CACHE_LINE_GPU, &origin);
    TRL_TRY(device->ops->scratch(device, which, (size_t)values * sizeof(double), &memory));
    array->at = (double *)memory + origin;
done:
    return err;
}

static trl_err compute_passes(trl_field_device *device, const trl_operator *op, trli_statement *s, bool *done)
{
    const trl_term *term = &op->term[0];
    const trl_array result = s->output;
    const trl_box all = s->box;
    trl_err err = TRL_OK;
    s->kind = TRLI_STATEMENT_PASS;
    for (int i = 0; i < term->npasses; ++i) {
        s->pass = &term->pass[i];
        s->box = box_of_pass(term, i, &all);
        s->output = result;
        if (i < term->npasses - 1)
            TRL_TRY(take_scratch(device, i % TRLI_FIELD_PASSES, s->layout->grid.dim, &s->box, &s->output));
        TRL_TRY(device->ops->compute(device, s, done));
        if (!*done) return TRL_OK;
        s->input[0] = s->output;
    }
done:
    return err;
}

static trl_err compute_patch(const trli_application *a, int p, bool *done)
{
    trl_field *out = a->out;
    trli_statement s = {.kind = TRLI_STATEMENT_OPERATOR,
                        .label = a->op->name,
                        .layout = out->layout,
                        .patch = p,
                        .box = out->work[p].box,
                        .ninputs = a->ninputs};
    trl_err err = TRL_OK;
    for (int i = 0; i < a->ninputs; ++i) TRL_TRY(trli_field_there(a->in[i], p, true, &s.input[i]));
    TRL_TRY(trli_field_there(out, p, false, &s.output));
    s.op = a->op;
    if (a->op == &out->flux_reads) {
        s.kind = TRLI_STATEMENT_FLUX;
        s.flux.limiter = a->limiter;
        s.flux.axis = a->axis;
        s.flux.phi = a->op->from[1];
    }
    err = goes_by_passes(a->op) ? compute_passes(out->device, a->op, &s, done)
                                : out->device->ops->compute(out->device, &s, done);
    if (err == TRL_OK && *done) trli_field_changed_there(out, p);
done:
    return err;
}

trl_err trli_apply_there(const trli_application *a, bool *done)
{
    trl_field *out = a->out;
    trl_err err = TRL_OK;
    *done = true;
    for (int p = 0; p < out->layout->nlocal && *done; ++p) TRL_TRY(compute_patch(a, p, done));
    for (int p = 0; p < out->layout->nlocal && *done; ++p) TRL_TRY(trl_field_set_valid(out, p, &out->work[p].box));
done:
    return err;
}

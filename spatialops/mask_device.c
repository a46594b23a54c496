/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Masks for fields that live on a device: bits as numbers, which a kernel reads as it reads fields. */
#include "field_impl.h"
#include "mask_impl.h"
#include "memory_impl.h"
#include "residence_impl.h"

void trli_mask_drop(const trl_mask *mask)
{
    trli_mask_copy *c = mask->copy;
    if (!c->device) return;
    trl_device *d = c->device->device;
    (void)!c->device->ops->finish(c->device);
    for (int p = 0; p < mask->layout->nlocal; ++p) d->ops->release(d, c->memory[p]);
    trli_free(c->array);
    trli_free(c->memory);
    *c = (trli_mask_copy){.device = NULL};
}

/* Numbers for the bits of a patch. */
static void write_numbers(const trli_mask_patch *m, double *values)
{
    const trl_lidx n = m->box.hi[0] - m->box.lo[0];
    for (trl_lidx k = m->box.lo[2]; k < m->box.hi[2]; ++k)
        for (trl_lidx j = m->box.lo[1]; j < m->box.hi[1]; ++j) {
            const uint64_t *row = trli_mask_row(m, j, k);
            for (trl_lidx i = 0; i < n; ++i) *values++ = (double)trli_mask_bits(row, i, 1);
        }
}

static trl_err copy_patch(const trl_mask *mask, int p)
{
    const trli_mask_patch *m = &mask->patch[p];
    const trli_mask_copy *c = mask->copy;
    trl_device *d = c->device->device;
    const size_t values = (size_t)trl_box_points(&m->box);
    const ptrdiff_t row = m->box.hi[0] - m->box.lo[0];
    trl_array *a = &c->array[p];
    double *host = trli_new(mask->layout->ctx, values, sizeof *host);
    trl_err err = TRL_OK;
    if (!host) return trli_no_memory(mask->layout->ctx, NULL, "for a mask of a device");
    write_numbers(m, host);
    err = d->ops->allocate(d, values * sizeof *host, &c->memory[p]);
    if (err == TRL_ERR_MEMORY) err = trli_no_memory(mask->layout->ctx, NULL, "of a device for a mask");
    TRL_TRY(err);
    const trli_box_copy copy = {
        .to = c->memory[p], .from = host, .to_space = d->space, .row = values * sizeof *host, .rows = 1, .planes = 1};
    TRL_TRY(trli_device_copy_now(d, 1, &copy));
    *a = (trl_array){.owned = m->box, .held = m->box, .stride = {1, row, row * (m->box.hi[1] - m->box.lo[1])}};
    a->at = (double *)c->memory[p] - trl_array_offset(a, m->box.lo[0], m->box.lo[1], m->box.lo[2]);
done:
    trli_free(host);
    return err;
}

static trl_err make_copy(const trl_mask *mask, trl_field_device *device)
{
    const size_t n = (size_t)mask->layout->nlocal;
    trli_mask_copy *c = mask->copy;
    trl_err err = TRL_OK;
    c->device = device;
    c->array = trli_new(mask->layout->ctx, n + 1, sizeof *c->array);
    c->memory = trli_new(mask->layout->ctx, n + 1, sizeof *c->memory);
    if (!c->array || !c->memory) err = trli_no_memory(mask->layout->ctx, NULL, "for a mask of a device");
    for (int p = 0; p < mask->layout->nlocal; ++p) TRL_TRY(err == TRL_OK ? copy_patch(mask, p) : err);
done:
    if (err != TRL_OK && c->memory) trli_mask_drop(mask);
    return err;
}

trl_err trli_mask_there(const trl_mask *mask, trl_field_device *device, int p, trl_array *array)
{
    trl_err err = TRL_OK;
    if (mask->copy->device != device) {
        trli_mask_drop(mask);
        TRL_TRY(make_copy(mask, device));
    }
    *array = mask->copy->array[p];
done:
    return err;
}

static trl_err assign_patch(const trl_mask *mask, trl_field *src, double number, trl_field *dst, int p, bool *done)
{
    trl_field_device *device = dst->device;
    trli_statement s = {.kind = TRLI_STATEMENT_ASSIGN,
                        .label = "assignment",
                        .layout = dst->layout,
                        .patch = p,
                        .box = dst->array[p].owned,
                        .ninputs = src ? 3 : 2,
                        .nnumbers = 1,
                        .number = {number}};
    trl_err err;
    TRL_TRY(trli_mask_there(mask, device, p, &s.input[0]));
    TRL_TRY(trli_field_there(dst, p, true, &s.output));
    s.input[1] = s.output;
    if (src) TRL_TRY(trli_field_there(src, p, true, &s.input[2]));
    TRL_TRY(device->ops->compute(device, &s, done));
    if (*done) trli_field_changed_there(dst, p);
done:
    return err;
}

trl_err trli_assign_there(const trl_mask *mask, trl_field *src, double number, trl_field *dst, bool *done)
{
    trl_err err = TRL_OK;
    *done = true;
    for (int p = 0; p < dst->layout->nlocal && *done; ++p) TRL_TRY(assign_patch(mask, src, number, dst, p, done));
done:
    return err;
}

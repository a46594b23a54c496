/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields that live on a device: their values are copied when who asks for them does not have them. */
#include "field_impl.h"
#include "field_manager_impl.h"
#include "residence_impl.h"

static trl_err copy_block(trl_field *field, int p, bool in)
{
    trl_field_device *to = field->device;
    const size_t bytes = (size_t)trl_block_count(field->block[p]) * sizeof(double);
    trl_array array = field->array[p];
    ptrdiff_t origin;
    (void)trli_lay_out(&array, field->layout->grid.dim, field->line, &origin);
    void *here = (double *)array.at - origin, *there = field->residence[p].there;
    const trli_box_copy copy = {.to = in ? there : here,
                                .from = in ? here : there,
                                .to_space = in ? to->device->space : 0,
                                .from_space = in ? 0 : to->device->space,
                                .row = bytes,
                                .rows = 1,
                                .planes = 1};
    trl_err err;
    *(in ? &to->bytes_in : &to->bytes_out) += (int64_t)bytes;
    TRL_TRY(to->ops->finish(to)); /* kernels that read or write it */
    err = trli_device_copy_now(to->device, 1, &copy);
done:
    return err;
}

/* Memory of the host, its values undefined. */
static trl_err provide_here(trl_field *field, int p)
{
    trl_err err = TRL_OK;
    ptrdiff_t origin;
    void *memory;
    if (field->array[p].at) return TRL_OK;
    TRL_TRY(field->device ? trl_block_reserve(field->block[p], 0, &memory)
                          : trl_block_acquire(field->block[p], 0, 0, &memory));
    (void)trli_lay_out(&field->array[p], field->layout->grid.dim, field->line, &origin);
    field->array[p].at = (double *)memory + origin;
done:
    return err;
}

static trl_err provide_there(trl_field *field, int p)
{
    trli_residence *r = &field->residence[p];
    return r->there ? TRL_OK : trl_block_reserve(field->block[p], field->device->space, &r->there);
}

static trl_err bring_here(trl_field *field, int p)
{
    trli_residence *r = &field->residence[p];
    trl_err err = TRL_OK;
    TRL_TRY(provide_here(field, p));
    if (!field->device || r->is_here) return TRL_OK;
    if (r->is_there) TRL_TRY(copy_block(field, p, false));
    r->is_here = true;
done:
    return err;
}

trl_err trl_field_array(trl_field *field, int p, trl_array *array)
{
    trl_err err = TRL_OK;
    TRL_TRY(bring_here(field, p));
    if (field->residence[p].is_there) field->residence[p].is_there = false; /* workers write nothing */
    *array = field->array[p];
done:
    return err;
}

trl_err trl_field_read(trl_field *field, int p, trl_array *array)
{
    trl_err err = TRL_OK;
    TRL_TRY(bring_here(field, p));
    *array = field->array[p];
done:
    return err;
}

trl_err trli_field_bring(trl_field *field, bool changes)
{
    trl_err err = TRL_OK;
    trl_array array;
    for (int p = 0; p < field->layout->nlocal; ++p)
        TRL_TRY(changes ? trl_field_array(field, p, &array) : trl_field_read(field, p, &array));
done:
    return err;
}

trl_err trli_field_there(trl_field *field, int p, bool copied, trl_array *array)
{
    trli_residence *r = &field->residence[p];
    trl_err err = TRL_OK;
    ptrdiff_t origin;
    TRL_TRY(provide_there(field, p));
    if (copied && !r->is_there && r->is_here) TRL_TRY(copy_block(field, p, true));
    if (copied) r->is_there = true;
    *array = field->array[p];
    (void)trli_lay_out(array, field->layout->grid.dim, field->line, &origin);
    array->at = (double *)r->there + origin;
done:
    return err;
}

void trli_field_changed_there(trl_field *field, int p)
{
    field->residence[p].is_there = true;
    field->residence[p].is_here = false;
}

trl_err trli_field_together(const trl_field *out, int n, trl_field *const *in)
{
    for (int i = 0; i < n; ++i)
        if (in[i]->device != out->device)
            return trl_fail(out->ctx, TRL_ERR_USAGE, NULL,
                            "fields '%s' and '%s' live in different places: move one of them (trl_field_move)",
                            in[i]->name, out->name);
    return TRL_OK;
}

/* Back to the host. */
static trl_err leave(trl_field *field)
{
    trl_err err = TRL_OK;
    for (int p = 0; p < field->layout->nlocal; ++p)
        if (field->residence[p].is_there) TRL_TRY(bring_here(field, p));
    for (int p = 0; p < field->layout->nlocal; ++p) {
        if (field->residence[p].there) trli_block_leave(field->block[p], field->device->space);
        field->residence[p] = (trli_residence){0};
    }
    --field->device->fields;
    field->device = NULL;
done:
    return err;
}

trl_err trl_field_move(trl_field *field, trl_field_device *device)
{
    trl_err err = TRL_OK;
    if (field->device == device) return TRL_OK;
    if (device && device->manager != field->manager)
        return trl_fail(field->ctx, TRL_ERR_USAGE, NULL,
                        "field '%s' has another manager than the device that it is to live on", field->name);
    if (device && field->line != TRLI_CACHE_LINE_GPU)
        return trl_fail(field->ctx, TRL_ERR_USAGE, NULL,
                        "field '%s' was made before the device that it is to live on: make the device first "
                        "(trl_field_device_create)",
                        field->name);
    if (field->device) TRL_TRY(leave(field));
    if (!device) return TRL_OK;
    field->device = device;
    ++device->fields;
    for (int p = 0; p < field->layout->nlocal; ++p) {
        trl_array array;
        field->residence[p].is_here = field->array[p].at != NULL;
        TRL_TRY(trli_field_there(field, p, true, &array));
    }
done:
    return err;
}

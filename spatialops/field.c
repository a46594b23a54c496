/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields of drivers in C. The valid points of a patch are a box: code that writes a field states the box, and code that
 * reads a field requires one. */
#include <inttypes.h>
#include <string.h>

#include <context_impl.h>

#include "exchange_impl.h"
#include "field_impl.h"

/* ---- creation ---- */

/* Set the array of a patch; returns the values that its block needs. */
static int64_t lay_out(trl_field *field, int p)
{
    const trl_layout *layout = field->layout;
    trl_array *a = &field->array[p];
    ptrdiff_t origin;
    *a = (trl_array){.type = TRL_F64};
    a->owned = a->held = trl_patch_owned(layout, &layout->patch[p], field->location);
    for (int axis = 0; axis < layout->grid.dim; ++axis) {
        a->held.lo[axis] -= field->ghost_lo[axis];
        a->held.hi[axis] += field->ghost_hi[axis];
    }
    return trli_lay_out(a, layout->grid.dim, field->line, &origin);
}

static trl_err allocate(trl_field *field, const char *name)
{
    trl_err err = TRL_OK;
    const size_t n = (size_t)field->layout->nlocal, length = strlen(name) + 1;
    const size_t bytes = n * (sizeof *field->array + sizeof *field->block + sizeof *field->valid + sizeof *field->work +
                              sizeof *field->residence);
    void *memory;
    TRL_TRY(trl_memory_alloc(field->ctx, bytes + length, name, &memory));
    memset(memory, 0, bytes);
    field->array = memory;
    field->block = (trl_block **)(field->array + n);
    field->residence = (trli_residence *)(field->block + n);
    field->valid = (trl_box *)(field->residence + n);
    field->work = (trli_field_work *)(field->valid + n);
    field->name = memcpy(field->work + n, name, length);
done:
    return err;
}

trl_err trl_field_create(trl_field_manager *manager, const trl_layout *layout, const trl_field_desc *desc,
                         trl_field **result)
{
    trl_err err;
    trl_field *field = NULL;
    void *memory;
    *result = NULL;
    TRL_TRY(trl_memory_alloc(layout->ctx, sizeof *field, desc->name, &memory));
    field = memory;
    *field = (trl_field){.ctx = layout->ctx,
                         .manager = manager,
                         .layout = layout,
                         .location = trl_location_on(desc->location, layout->grid.dim),
                         .line = trl_field_manager_spaces(manager) > 1 ? TRLI_CACHE_LINE_GPU : TRLI_CACHE_LINE_CPU};
    for (int a = 0; a < layout->grid.dim; ++a) {
        field->ghost_lo[a] = desc->ghost_lo[a];
        field->ghost_hi[a] = desc->ghost_hi[a];
        if (desc->ghost_lo[a] < 0 || desc->ghost_hi[a] < 0) {
            err = trl_fail(field->ctx, TRL_ERR_USAGE, NULL,
                           "field '%s': %" TRL_LIDX_FMT " and %" TRL_LIDX_FMT
                           " layers of ghosts along %c; give 0 or more",
                           desc->name, desc->ghost_lo[a], desc->ghost_hi[a], trli_axis_name(a));
            goto done;
        }
    }
    TRL_TRY(allocate(field, desc->name));
    for (int p = 0; p < layout->nlocal; ++p)
        TRL_TRY(trl_block_create(manager,
                                 &(trl_block_desc){.tag = field->name,
                                                   .patch = layout->local[p],
                                                   .epoch = layout->epoch,
                                                   .type = TRL_F64,
                                                   .count = lay_out(field, p),
                                                   .flags = TRL_BLOCK_PERSISTENT},
                                 &field->block[p]));
    *result = field;
    field = NULL;
done:
    trl_field_destroy(&field);
    return err;
}

void trl_field_destroy(trl_field **field)
{
    trl_field *self = *field;
    if (self == NULL) return;
    trl_context *ctx = self->ctx;
    void *arrays = self->array, *memory = self;
    trl_exchange_destroy(&self->exchange);
    trli_rooms_destroy(&self->rooms);
    trl_exchange_destroy(&self->exchange_there);
    if (self->device) {
        (void)!self->device->ops->finish(self->device);
        --self->device->fields;
    }
    for (int p = 0; self->array && p < self->layout->nlocal; ++p) trl_block_destroy(&self->block[p]);
    trl_memory_free(ctx, &arrays);
    trl_memory_free(ctx, &memory);
    *field = NULL;
}

const char *trl_field_name(const trl_field *field)
{
    return field->name;
}

trl_location trl_field_location(const trl_field *field)
{
    return field->location;
}

const trl_layout *trl_field_layout(const trl_field *field)
{
    return field->layout;
}

/* ---- validity ---- */

trl_box trl_field_valid(const trl_field *field, int p)
{
    return field->valid[p];
}

static bool holds(const trl_box *outer, const trl_box *inner)
{
    for (int a = 0; a < 3; ++a)
        if (inner->lo[a] < outer->lo[a] || inner->hi[a] > outer->hi[a]) return false;
    return true;
}

trl_err trl_field_set_valid(trl_field *field, int p, const trl_box *valid)
{
    const trl_box *held = &field->array[p].held;
    if (trl_box_points(valid) == 0) {
        field->valid[p] = (trl_box){{0, 0, 0}, {0, 0, 0}};
        return TRL_OK;
    }
    for (int a = 0; a < 3; ++a)
        if (valid->lo[a] < held->lo[a] || valid->hi[a] > held->hi[a])
            return trl_fail(field->ctx, TRL_ERR_USAGE, NULL,
                            "field '%s' on patch %d holds points %" TRL_LIDX_FMT " to %" TRL_LIDX_FMT
                            " along %c: points %" TRL_LIDX_FMT " to %" TRL_LIDX_FMT " cannot be valid",
                            field->name, field->layout->local[p], held->lo[a], held->hi[a] - 1, trli_axis_name(a),
                            valid->lo[a], valid->hi[a] - 1);
    /* As a rule it is what it was: then workers need not fetch the array, on the same line, again. */
    if (memcmp(&field->valid[p], valid, sizeof *valid) != 0) field->valid[p] = *valid;
    return TRL_OK;
}

#ifdef TRL_POISON
/* What is not valid any more must not be read. */
static void poison_ghosts(const trl_array *a)
{
    for (trl_lidx k = a->held.lo[2]; a->at && k < a->held.hi[2]; ++k)
        for (trl_lidx j = a->held.lo[1]; j < a->held.hi[1]; ++j)
            for (trl_lidx i = a->held.lo[0]; i < a->held.hi[0]; ++i) {
                const trl_box point = {{i, j, k}, {i + 1, j + 1, k + 1}};
                if (!holds(&a->owned, &point))
                    trli_poison((double *)a->at + trl_array_offset(a, i, j, k), sizeof(double), TRL_F64);
            }
}
#endif

void trl_field_invalidate_ghosts(trl_field *field)
{
    for (int p = 0; p < field->layout->nlocal; ++p) {
        field->valid[p] = field->array[p].owned;
#ifdef TRL_POISON
        poison_ghosts(&field->array[p]);
#endif
    }
}

static trl_err refuse_side(const trl_field *field, int p, int axis, int side, trl_lidx missing, bool is_held)
{
    const trl_patch *patch = &field->layout->patch[p];
    const char *cure = !is_held                                              ? "create the field with more ghosts"
                       : trl_patch_at_side(field->layout, patch, axis, side) ? "apply a boundary condition there first"
                                                                             : "call trl_field_exchange first";
    return trl_fail(field->ctx, TRL_ERR_USAGE, NULL,
                    "field '%s' on patch %d: on side %c%c, %" TRL_LIDX_FMT " layer%s of values %s; %s", field->name,
                    patch->id, trli_axis_name(axis), side ? '+' : '-', missing, missing == 1 ? "" : "s",
                    is_held ? "are not valid" : "beyond the field's ghosts are read", cure);
}

trl_err trl_field_require(const trl_field *field, int p, const trl_box *box)
{
    const trl_box *valid = &field->valid[p], *held = &field->array[p].held, *owned = &field->array[p].owned;
    if (trl_box_points(box) == 0 || holds(valid, box)) return TRL_OK;
    if (!holds(valid, owned))
        return trl_fail(field->ctx, TRL_ERR_USAGE, NULL,
                        "field '%s' on patch %d: its owned points are not valid; write them, and say so with "
                        "trl_field_set_valid or trl_field_invalidate_ghosts",
                        field->name, field->layout->local[p]);
    for (int a = 0; a < 3; ++a) {
        if (box->lo[a] < held->lo[a]) return refuse_side(field, p, a, 0, held->lo[a] - box->lo[a], false);
        if (box->hi[a] > held->hi[a]) return refuse_side(field, p, a, 1, box->hi[a] - held->hi[a], false);
        if (box->lo[a] < valid->lo[a]) return refuse_side(field, p, a, 0, valid->lo[a] - box->lo[a], true);
        if (box->hi[a] > valid->hi[a]) return refuse_side(field, p, a, 1, box->hi[a] - valid->hi[a], true);
    }
    return TRL_OK;
}

/* ---- exchange ---- */

static trl_err plan_exchange(trl_field *field, trl_exchange **exchange)
{
    trl_err err;
    trl_exchange_field wanted = {.location = field->location, .type = TRL_F64, .name = field->name};
    trl_offsets reach = {{0, 0, 0}, {0, 0, 0}};
    for (int a = 0; a < field->layout->grid.dim; ++a) {
        reach.lo[a] = -field->ghost_lo[a];
        reach.hi[a] = field->ghost_hi[a];
    }
    trl_footprint_add(&wanted.footprint, &reach);
    TRL_TRY(trl_exchange_create(field->ctx, field->layout, 1, &wanted, exchange));
done:
    return err;
}

/* The ghosts that belong to other patches are valid now. Ghosts beyond a side of the domain were valid before, except
 * at corners beside the ghosts that were just received: nothing wrote these corners. */
static void extend_valid(trl_field *field, int p)
{
    const trl_layout *layout = field->layout;
    const trl_patch *patch = &layout->patch[p];
    const trl_array *array = &field->array[p];
    const trl_box before = field->valid[p];
    trl_box *valid = &field->valid[p];
    bool grew[3] = {false, false, false};
    for (int a = 0; a < layout->grid.dim; ++a) {
        if (!trl_patch_at_side(layout, patch, a, 0)) valid->lo[a] = array->held.lo[a];
        if (!trl_patch_at_side(layout, patch, a, 1)) valid->hi[a] = array->held.hi[a];
        grew[a] = valid->lo[a] < before.lo[a] || valid->hi[a] > before.hi[a];
    }
    for (int a = 0; a < layout->grid.dim; ++a) {
        if (!grew[(a + 1) % 3] && !grew[(a + 2) % 3]) continue;
        if (trl_patch_at_side(layout, patch, a, 0)) valid->lo[a] = array->owned.lo[a];
        if (trl_patch_at_side(layout, patch, a, 1)) valid->hi[a] = array->owned.hi[a];
    }
}

trl_err trli_field_require_owned(const trl_field *field)
{
    trl_err err = TRL_OK;
    for (int p = 0; p < field->layout->nlocal; ++p) TRL_TRY(trl_field_require(field, p, &field->array[p].owned));
done:
    return err;
}

static trl_err exchange_here(trl_field *field)
{
    trl_err err = TRL_OK;
    const trl_array *arrays[1] = {field->array};
    bool done = false;
    TRL_TRY(trli_field_bring(field, true));
    if (field->exchange == NULL) TRL_TRY(plan_exchange(field, &field->exchange));
    TRL_TRY(trl_exchange_begin(field->exchange, arrays));
    while (!done) TRL_TRY(trl_exchange_finish(field->exchange, arrays, &done));
done:
    return err;
}

static trl_err plan_exchange_there(trl_field *field)
{
    trl_err err;
    trli_rooms_destroy(&field->rooms);
    trl_exchange_destroy(&field->exchange_there);
    TRL_TRY(plan_exchange(field, &field->exchange_there));
    TRL_TRY(trli_rooms_there(field, field->exchange_there, &field->rooms));
    field->rooms_of = field->device;
done:
    return err;
}

static trl_err exchange(trl_field *field)
{
    enum { HERE, THERE, UNPLANNED, FACTS }; /* on any rank */
    int64_t some[FACTS] = {field->device == NULL, field->device != NULL, field->rooms_of != field->device};
    trl_err err = TRL_OK;
    /* Else the others would wait for a rank that sends nothing. */
    TRL_TRY(trli_agree_max(field->ctx, trli_field_require_owned(field), FACTS, some));
    if (some[HERE] && some[THERE]) TRL_TRY(trl_context_agree(field->ctx, trli_field_bring(field, true)));
    if (!some[HERE] && some[UNPLANNED]) TRL_TRY(plan_exchange_there(field));
    TRL_TRY(some[HERE] ? exchange_here(field) : trli_exchange_there(field, field->exchange_there));
    for (int p = 0; p < field->layout->nlocal; ++p) extend_valid(field, p);
done:
    return err;
}

trl_err trl_field_exchange(trl_field *field)
{
    trl_context_begin_phase(field->ctx);
    return trl_context_end_phase(field->ctx, exchange(field));
}

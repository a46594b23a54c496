/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A frame's data in the memories of devices: slots, shares of reductions, and scalars that GPUs find. Handles of task
 * graphs have keys: a slot's points on a patch count from 0 on, shares from -2 down, then scalars; -1 is no data. */
#include <stdio.h>

#include "builder_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "found_scalars_impl.h"
#include "frame_impl.h"
#include "halos_impl.h"
#include "late_scalars_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "slot_plan_impl.h"
#include "told_sums_impl.h"

enum { NO_DATA = -1, FIRST_SHARE = -2 };

int64_t trli_slot_key(const trli_model *model, int slot, int patch, trli_points which)
{
    return ((int64_t)slot * model->layout->nlocal + patch) * TRLI_POINTS + (int)which;
}

int64_t trli_share_key(const trli_model *model, int reduction, int patch)
{
    return FIRST_SHARE - ((int64_t)patch * model->run->nreductions + reduction);
}

int64_t trli_scalar_key(const trli_model *model, int scalar)
{
    return trli_share_key(model, 0, model->layout->nlocal) - scalar;
}

/* Which scalar a key is; -1: none. */
static int scalar_of(const trli_model *model, int64_t key)
{
    const int64_t first = trli_scalar_key(model, 0);
    return key <= first ? (int)(first - key) : -1;
}

/* ---- memory ---- */

static trl_err space_allocate(void *data, size_t bytes, void **memory)
{
    trl_device *device = data;
    return device->ops->allocate(device, bytes, memory);
}

static void space_free(void *data, void *memory)
{
    trl_device *device = data;
    device->ops->release(device, memory);
}

static trl_err space_copy_in(void *data, void *to, const void *from, size_t bytes)
{
    trl_device *device = data;
    const trli_box_copy copy = {
        .to = to, .from = from, .to_space = device->space, .row = bytes, .rows = 1, .planes = 1};
    return trli_device_copy_now(device, 1, &copy);
}

static trl_err space_copy_out(void *data, void *to, const void *from, size_t bytes)
{
    trl_device *device = data;
    const trli_box_copy copy = {
        .to = to, .from = from, .from_space = device->space, .row = bytes, .rows = 1, .planes = 1};
    return trli_device_copy_now(device, 1, &copy);
}

static const trl_space_ops device_space = {"device", space_allocate, space_free, space_copy_in, space_copy_out};

trl_err trli_frame_add_devices(trli_frame *frame)
{
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    trl_err err = TRL_OK;
    const size_t told = trli_told_sums_bytes(frame->model), found = trli_found_scalars_told(frame->model);
    for (int i = 0; devices && i < devices->n; ++i) {
        int space;
        TRL_TRY(trl_field_manager_add_space(frame->memory, &device_space, devices->device[i], &space));
        if (devices->device[i]->kind != TRL_KIND_GPU) continue;
        TRL_TRY(trli_gpu_host_allocate(devices->device[i], 2 * sizeof(int), (void **)&frame->alarm[space]));
        if (frame->model->late)
            TRL_TRY(trli_gpu_host_allocate(devices->device[i], trli_late_scalars_told(frame->model),
                                           (void **)&frame->late.told[space]));
        if (told > 0) TRL_TRY(trli_gpu_host_allocate(devices->device[i], told, (void **)&frame->told[space]));
        if (found > 0 && !frame->found_told)
            TRL_TRY(trli_gpu_host_allocate(devices->device[i], found, (void **)&frame->found_told));
    }
done:
    return err;
}

trl_err trli_frame_add_space(trli_frame *frame, int space)
{
    const trli_model *model = frame->model;
    const int np = model->layout->nlocal, n = model->slots->n;
    if (frame->base[space]) return TRL_OK;
    frame->rows[space] = trli_new(model->ctx, (size_t)n * (size_t)np, sizeof(void *));
    frame->base[space] = trli_new(model->ctx, (size_t)n, sizeof(void **));
    if (!frame->rows[space] || !frame->base[space]) return trli_no_memory(model->ctx, NULL, "for %d slots", n);
    for (int s = 0; s < n; ++s) frame->base[space][s] = frame->rows[space] + (ptrdiff_t)s * np;
    return TRL_OK;
}

/* Of launches that gather nothing yet. */
static void clear_all(const trli_model *model, trli_partial *all)
{
    for (int p = 0; p < model->layout->nlocal; ++p)
        for (int i = 0; i < model->nprograms; ++i) {
            const trli_reductions *of = &model->program[i]->run->reductions;
            trli_partial *first = all + (ptrdiff_t)p * model->run->nreductions + of->first;
            for (int r = 0; r < of->n; ++r) trli_partial_clear(&first[r], of->reduction[r].merge);
        }
}

/* Memory on a device for all shares, and for what its launches gather. */
static trl_err provide_shares(trli_frame *frame, int space)
{
    const trli_model *model = frame->model;
    trl_device *device = trli_device_of(trl_workers_devices(model->run->workers), space);
    const size_t n = (size_t)model->run->nreductions * (size_t)model->layout->nlocal, bytes = n * sizeof(trli_partial);
    trli_partial *empty = NULL;
    void *memory;
    trl_err err = TRL_OK;
    if (frame->share[space]) return TRL_OK;
    if (!frame->gathering[space]) {
        empty = trli_new(model->ctx, n, sizeof *empty);
        if (!empty) return trli_no_memory(model->ctx, NULL, "for reductions");
        clear_all(model, empty);
        TRL_TRY(space_allocate(device, bytes, &memory));
        frame->gathering[space] = memory;
        TRL_TRY(space_copy_in(device, memory, empty, bytes));
    }
    TRL_TRY(space_allocate(device, bytes, &memory));
    frame->share[space] = memory;
done:
    trli_free(empty);
    return err;
}

/* Memory on a device for all scalars. */
static trl_err provide_scalars(trli_frame *frame, int space)
{
    const trli_model *model = frame->model;
    void *memory;
    trl_err err = TRL_OK;
    if (frame->found[space]) return TRL_OK;
    TRL_TRY(space_allocate(trli_device_of(trl_workers_devices(model->run->workers), space),
                           (size_t)model->nscalars * sizeof(double), &memory));
    frame->found[space] = memory;
done:
    return err;
}

static trl_device *first_device(const trli_frame *frame)
{
    return trli_device_of(trl_workers_devices(frame->model->run->workers), 1);
}

/* Keep memory of the host in place for GPUs, if they can. */
static trl_err pin(trli_frame *frame, void *memory, size_t bytes)
{
    if (first_device(frame)->kind != TRL_KIND_GPU || trli_pinned_has(&frame->pinned, memory)) return TRL_OK;
    if (!trli_gpu_pin(first_device(frame), memory, bytes)) return TRL_OK;
    const trl_err err = trli_pinned_add(frame->model->ctx, &frame->pinned, memory);
    if (err != TRL_OK) trli_gpu_unpin(first_device(frame), memory);
    return err;
}

void trli_frame_unpin(trli_frame *frame, void *memory)
{
    if (trli_pinned_remove(&frame->pinned, memory)) trli_gpu_unpin(first_device(frame), memory);
}

void trli_frame_release_spaces(trli_frame *frame)
{
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    for (size_t i = 0; i < frame->pinned.size; ++i)
        if (frame->pinned.at[i]) trli_gpu_unpin(first_device(frame), frame->pinned.at[i]);
    trli_pinned_free(&frame->pinned);
    if (frame->found_told) trli_gpu_host_release(first_device(frame), frame->found_told);
    for (int s = 1; devices && s <= devices->n; ++s) {
        if (frame->share[s]) space_free(trli_device_of(devices, s), frame->share[s]);
        if (frame->gathering[s]) space_free(trli_device_of(devices, s), frame->gathering[s]);
        if (frame->found[s]) space_free(trli_device_of(devices, s), frame->found[s]);
        if (frame->alarm[s]) trli_gpu_host_release(trli_device_of(devices, s), frame->alarm[s]);
        if (frame->late.told[s]) trli_gpu_host_release(trli_device_of(devices, s), frame->late.told[s]);
        if (frame->told[s]) trli_gpu_host_release(trli_device_of(devices, s), frame->told[s]);
    }
}

static trl_err provide(void *data, void *of, int64_t key, int space)
{
    trli_frame *frame = of;
    const trli_model *model = data;
    const int64_t block = key / TRLI_POINTS;
    const int slot = (int)(block / model->layout->nlocal), patch = (int)(block % model->layout->nlocal);
    trl_err err = TRL_OK;
    if (key == NO_DATA) return TRL_OK;
    if (scalar_of(model, key) >= 0)
        return space == 0 ? pin(frame, frame->scalar, (size_t)model->nscalars * sizeof(double))
                          : provide_scalars(frame, space);
    if (space == 0 && key <= FIRST_SHARE)
        return pin(frame, frame->share[0],
                   (size_t)model->run->nreductions * (size_t)model->layout->nlocal * sizeof(trli_partial));
    if (space == 0)
        return pin(frame, frame->base[0][slot][patch],
                   (size_t)trli_slot_values(model->slots, slot, patch) * sizeof(double));
    if (key <= FIRST_SHARE) return provide_shares(frame, space);
    TRL_TRY(trli_frame_add_space(frame, space));
    if (!frame->base[space][slot][patch])
        err = trl_block_reserve(frame->block[slot][patch], space, &frame->base[space][slot][patch]);
done:
    return err;
}

/* ---- pieces ---- */

static trl_memory_box piece_of(const trl_array *a, const trl_box *box)
{
    const ptrdiff_t value = sizeof(double);
    return (trl_memory_box){.at = (double *)a->at + trl_array_offset(a, box->lo[0], box->lo[1], box->lo[2]),
                            .row = (size_t)(box->hi[0] - box->lo[0]) * sizeof(double),
                            .rows = box->hi[1] - box->lo[1],
                            .planes = box->hi[2] - box->lo[2],
                            .row_stride = a->stride[1] * value,
                            .plane_stride = a->stride[2] * value};
}

/* What is in one box and not in another inside of it: whole planes, then rows of the planes left, then their ends. */
static void cut_around(trl_box outer, const trl_box *inner, trl_box box[6])
{
    for (int axis = 2; axis >= 0; --axis) {
        trl_box *below = box++, *above = box++;
        *below = *above = outer;
        below->hi[axis] = outer.lo[axis] = inner->lo[axis];
        above->lo[axis] = outer.hi[axis] = inner->hi[axis];
    }
}

/* The same, without empty boxes; returns how many are left. */
static int difference(const trl_box *outer, const trl_box *inner, trl_box box[TRL_MEMORY_BOXES])
{
    trl_box every[6];
    int n = 0;
    cut_around(*outer, inner, every);
    for (int i = 0; i < 6; ++i)
        if (trl_box_points(&every[i]) > 0) box[n++] = every[i];
    return n;
}

/* Owned points that no other patch reads: as far inside as ghosts lie outside, and one more along axes on whose faces
 * the points are, which may be owned by one patch or the other. */
static trl_box inner_box(const trl_array *a, trl_location location, unsigned axes)
{
    trl_box inner = a->owned;
    for (int axis = 0; axis < 3; ++axis) {
        if (!(axes & 1u << axis)) continue;
        const trl_lidx below = a->owned.lo[axis] - a->held.lo[axis], above = a->held.hi[axis] - a->owned.hi[axis];
        const trl_lidx width = (below > above ? below : above) + ((int)location >> axis & 1);
        if (inner.hi[axis] - inner.lo[axis] <= 2 * width) {
            inner.hi[axis] = inner.lo[axis];
            continue;
        }
        inner.lo[axis] += width;
        inner.hi[axis] -= width;
    }
    return inner;
}

/* Whether the rim is in parts: so that devices copy less. */
static bool has_rim_in_parts(const trli_model *model)
{
    return trl_workers_devices(model->run->workers) && model->layout->nlocal > 1;
}

unsigned trli_points_of(const trli_model *model)
{
    unsigned points = 1 << TRLI_INNER | TRLI_SET_SIDE;
    if (model->run->exchanged_axes == 0) return points;
    points |= TRLI_SET_RECEIVED;
    if (!trl_workers_devices(model->run->workers) && trl_context_ranks(model->ctx) > 1) points |= TRLI_SET_COPIED;
    if (!has_rim_in_parts(model)) return points | 1 << TRLI_RIM;
    for (int axis = 0; axis < 3; ++axis)
        if (model->run->exchanged_axes >> axis & 1) points |= 3u << (TRLI_RIM + 2 * (2 - axis));
    return points;
}

static int rim_boxes(const trli_model *model, const trl_array *a, const trl_box *inner, trli_points which,
                     trl_box box[TRL_MEMORY_BOXES])
{
    trl_box part[6];
    if (!has_rim_in_parts(model)) return difference(&a->owned, inner, box);
    cut_around(a->owned, inner, part);
    box[0] = part[which - TRLI_RIM];
    return trl_box_points(&box[0]) > 0;
}

int trli_points_boxes(const trli_model *model, int field, const trl_array *a, trli_points which,
                      trl_box box[TRL_MEMORY_BOXES])
{
    const unsigned axes = model->run->exchanged_axes;
    const trl_box inner = inner_box(a, model->field[field].location, axes);
    trl_box core = a->held; /* without what lies beyond others' sides */
    for (int axis = 0; axis < 3; ++axis) {
        if (!(axes & 1u << axis)) continue;
        core.lo[axis] = a->owned.lo[axis];
        core.hi[axis] = a->owned.hi[axis];
    }
    if (which >= TRLI_RIM) return rim_boxes(model, a, &inner, which, box);
    if (which == TRLI_HALO || which == TRLI_COPIED) return difference(&a->held, &core, box);
    if (which == TRLI_SIDE) return difference(&core, &a->owned, box);
    box[0] = inner;
    return trl_box_points(&inner) > 0;
}

unsigned trli_points_sent(const trli_model *model, int field, const trli_exchange_piece *piece)
{
    if (!has_rim_in_parts(model)) return TRLI_SET_RIM;
    const trl_array *a = trli_shape_of(model, field, piece->source_local);
    const trl_box inner = inner_box(a, model->field[field].location, model->run->exchanged_axes);
    trl_box part[6];
    unsigned sent = 0;
    cut_around(a->owned, &inner, part);
    for (int i = 0; i < 6; ++i) {
        bool apart = trl_box_points(&part[i]) == 0;
        for (int axis = 0; axis < 3; ++axis)
            apart |=
                piece->from[axis] >= part[i].hi[axis] || piece->from[axis] + piece->extent[axis] <= part[i].lo[axis];
        if (!apart) sent |= 1u << (TRLI_RIM + i);
    }
    return sent;
}

static int locate(void *data, void *of, int64_t key, int32_t part, int space, trl_memory_box piece[TRL_MEMORY_BOXES])
{
    const trli_frame *frame = of;
    const trli_model *model = data;
    const int scalar = scalar_of(model, key);
    if (key == NO_DATA) return 0;
    if (scalar >= 0) {
        piece[0] = (trl_memory_box){.at = (space == 0 ? frame->scalar : frame->found[space]) + scalar,
                                    .row = sizeof(double),
                                    .rows = 1,
                                    .planes = 1};
        return 1;
    }
    if (key <= FIRST_SHARE) {
        const int64_t share = FIRST_SHARE - key;
        if (space == 0)
            trli_found_scalars_settle(frame, (int)(share / model->run->nreductions),
                                      (int)(share % model->run->nreductions), part);
        piece[0] = (trl_memory_box){
            .at = frame->share[space] + share, .row = (size_t)part * sizeof(trli_partial), .rows = 1, .planes = 1};
        return 1;
    }
    const trl_array a = trli_frame_array(frame, part, (int)(key / TRLI_POINTS % model->layout->nlocal), space);
    trl_box box[TRL_MEMORY_BOXES];
    const int n = trli_points_boxes(model, part, &a, (trli_points)(key % TRLI_POINTS), box);
    for (int i = 0; i < n; ++i) piece[i] = piece_of(&a, &box[i]);
    return n;
}

static uint32_t *valid(void *data, void *of, int64_t key)
{
    const trli_frame *frame = of;
    const trli_model *model = data;
    const int row = model->layout->nlocal * TRLI_POINTS;
    const int scalar = scalar_of(model, key);
    if (key == NO_DATA) return NULL;
    if (scalar >= 0) return &frame->scalar_valid[scalar];
    if (key <= FIRST_SHARE) return &frame->share_valid[FIRST_SHARE - key];
    return &frame->valid[key / row][key % row];
}

trl_graph_memory trli_frame_memory(trli_model *model)
{
    return (trl_graph_memory){model, provide, locate, valid};
}

/* Scalars that kernels read, and what late ones follow from; addresses: of alarms, shares and slots. */
size_t trli_frame_state(void *of, void *in, int space, void *to)
{
    const trli_model *model = of;
    const trli_frame *frame = in;
    const int n = model->slots->n, np = model->layout->nlocal;
    size_t scalars = 0;
    for (int i = 0; i < model->nscalars; ++i) scalars += model->run->gpu_reads[i];
    const size_t bytes = (scalars + TRLI_LATE_STATE) * sizeof(double) + (4 + (size_t)n * (size_t)np) * sizeof(void *);
    if (!to) return bytes;
    double *scalar = to;
    for (int i = 0; i < model->nscalars; ++i)
        if (model->run->gpu_reads[i]) *scalar++ = trli_frame_given(frame, i);
    trli_frame_late_state(frame, scalar);
    scalar += TRLI_LATE_STATE;
    const void **at = (const void **)scalar;
    *at++ = frame;
    *at++ = frame->alarm[space] ? frame->alarm[space] + frame->alternate : NULL;
    *at++ = frame->share[space];
    *at++ = frame->found[space];
    for (int s = 0; s < n; ++s)
        for (int p = 0; p < np; ++p) *at++ = frame->base[space] ? frame->base[space][s][p] : NULL;
    return bytes;
}

uint32_t trli_frame_spaces(const trli_frame *frame, int field, int patch)
{
    const uint32_t *valid = &frame->valid[frame->model->field[field].slot][(ptrdiff_t)patch * TRLI_POINTS];
    uint32_t spaces = valid[TRLI_INNER];
    for (int which = TRLI_RIM; which < TRLI_POINTS; ++which)
        if (frame->model->run->points >> which & 1) spaces &= valid[which];
    return spaces;
}

trl_err trli_frame_provide_patch(trli_frame *frame, int field, int patch, int space)
{
    trli_model *model = frame->model;
    return provide(model, frame, trli_slot_key(model, model->field[field].slot, patch, TRLI_INNER), space);
}

trl_err trli_frame_provide(trli_frame *frame, int field, int space)
{
    trl_err err = TRL_OK;
    for (int p = 0; p < frame->model->layout->nlocal && err == TRL_OK; ++p)
        err = trli_frame_provide_patch(frame, field, p, space);
    return err;
}

/* The whole array, ghosts included. */
trl_err trli_frame_send_patch(trli_frame *frame, int field, int patch, int space)
{
    const trli_model *model = frame->model;
    trl_device *device = trli_device_of(trl_workers_devices(model->run->workers), space);
    uint32_t *spaces = &frame->valid[model->field[field].slot][(ptrdiff_t)patch * TRLI_POINTS];
    trl_err err;
    TRL_TRY(trli_frame_provide_patch(frame, field, patch, space));
    const trl_array from = trli_frame_array(frame, field, patch, 0), to = trli_frame_array(frame, field, patch, space);
    const trl_memory_box source = piece_of(&from, &from.held), target = piece_of(&to, &to.held);
    const trli_box_copy copy = trli_copy_of_boxes(&source, 0, &target, space);
    TRL_TRY(trli_device_copy_now(device, 1, &copy));
    ++frame->sent_copies;
    frame->sent_bytes += (int64_t)copy.row * copy.rows * copy.planes;
    for (int which = 0; which < TRLI_POINTS; ++which) spaces[which] |= (spaces[which] & 1) << space;
done:
    return err;
}

trl_err trli_frame_send(trli_frame *frame, int field, int space)
{
    trl_err err = TRL_OK;
    for (int p = 0; p < frame->model->layout->nlocal && err == TRL_OK; ++p)
        err = trli_frame_send_patch(frame, field, p, space);
    return err;
}

/* ---- the host's ---- */

static trl_err copy_to_host(trli_frame *frame, int field, int64_t key, int from)
{
    trli_model *model = frame->model;
    trl_memory_box source[TRL_MEMORY_BOXES], target[TRL_MEMORY_BOXES];
    trli_box_copy copy[TRL_MEMORY_BOXES];
    const int n = locate(model, frame, key, field, from, source);
    trl_err err;
    (void)locate(model, frame, key, field, 0, target);
    for (int i = 0; i < n; ++i) copy[i] = trli_copy_of_boxes(&source[i], from, &target[i], 0);
    TRL_TRY(trli_device_copy_now(trli_device_of(trl_workers_devices(model->run->workers), from), n, copy));
    ++frame->fetched_copies;
    for (int i = 0; i < n; ++i) frame->fetched_bytes += (int64_t)copy[i].row * copy[i].rows * copy[i].planes;
done:
    return err;
}

/* From the first device that gives it. A copy that fails is tried once more, unless the device was asked for by name:
 * then its failure is the user's concern. */
static trl_err bring_to_host(trli_frame *frame, int field, int64_t key, uint32_t spaces)
{
    enum { TRIES = 2 };
    trl_context *ctx = frame->model->ctx;
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(ctx, &list);
    trl_err err = TRL_ERR_DEVICE;
    for (; spaces && err == TRL_ERR_DEVICE; spaces &= spaces - 1) {
        const int from = __builtin_ctz(spaces);
        for (int i = 0; i < (devices->required ? 1 : TRIES) && err == TRL_ERR_DEVICE; ++i)
            if (!atomic_load(&trli_device_of(devices, from)->lost)) err = copy_to_host(frame, field, key, from);
    }
    if (err == TRL_OK) trli_diagnostics_forgive(ctx, said);
    return err;
}

/* Of the patches first <= p < end. */
static trl_err bring_points(trli_frame *frame, int field, int first, int end, unsigned points)
{
    trli_model *model = frame->model;
    trl_err err = TRL_OK;
    points &= model->run->points;
    for (int p = first; p < end; ++p)
        for (int which = 0; which < TRLI_POINTS; ++which) {
            const int64_t key = trli_slot_key(model, model->field[field].slot, p, (trli_points)which);
            uint32_t *spaces = valid(model, frame, key);
            if (!(points & 1u << which) || *spaces == 0 || *spaces & 1) continue;
            TRL_TRY(bring_to_host(frame, field, key, *spaces));
            *spaces |= 1;
        }
done:
    return err;
}

static const char remedy[] = "restart from the last checkpoint, or run without that device";

static trl_err fetch(trli_frame *frame, int field, int first, int end)
{
    const trli_model *model = frame->model;
    trl_err err = TRL_OK;
    if (!trl_workers_devices(model->run->workers)) return TRL_OK;
    err = bring_points(frame, field, first, end, TRLI_OWNED_AND_GHOSTS);
    if (err != TRL_ERR_DEVICE) return err;
    return trl_fail(model->ctx, err, NULL, "the values of '%s' are lost with the device that had them; %s",
                    model->field[field].name, remedy);
}

trl_err trli_frame_fetch(trli_frame *frame, int field)
{
    return fetch(frame, field, 0, frame->model->layout->nlocal);
}

trl_err trli_frame_fetch_patch(trli_frame *frame, int field, int patch)
{
    return fetch(frame, field, patch, patch + 1);
}

/* ---- devices that failed ---- */

/* Between runs a slot has the values of a field that is persistent. */
trl_err trli_frame_leave_devices(trli_frame *frame, uint32_t spaces, const bool *needed)
{
    const trli_model *model = frame->model;
    const int np = model->layout->nlocal, nslots = model->slots->n * np * TRLI_POINTS;
    const int nshares = model->run->nreductions * np;
    char names[256] = "";
    size_t used = 0;
    trl_err err = TRL_OK;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(model->ctx, &list);
    for (int f = 0; f < model->nfields; ++f) {
        if (!model->field[f].persistent || model->field[f].slot < 0) continue;
        if (bring_points(frame, f, 0, np, needed[f] ? TRLI_OWNED : TRLI_OWNED_AND_GHOSTS) == TRL_OK || !needed[f])
            continue;
        err = TRL_ERR_DEVICE;
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", used ? ", " : "", model->field[f].name);
    }
    for (int i = 0; i < nslots; ++i) frame->valid_rows[i] &= ~spaces;
    for (int i = 0; i < nshares; ++i) frame->share_valid[i] &= ~spaces;
    trli_found_scalars_leave(frame, spaces);
    trli_rooms_look(frame->rooms);
    trli_diagnostics_forgive(model->ctx, said);
    if (err == TRL_OK) return TRL_OK;
    return trl_fail(model->ctx, err, NULL, "the values of %s are lost with the device that had them; %s", names,
                    remedy);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <arithmetic_impl.h>

#include "builder_impl.h"
#include "context_impl.h"
#include "cost_impl.h"
#include "found_scalars_impl.h"
#include "graph_impl.h"
#include "halos_impl.h"
#include "late_scalars_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "slot_plan_impl.h"
#include "tasks_impl.h"

/* How many boxes such points of a field are on patches of a kind, and how many bytes in all. */
static trli_part_size measure(const trli_model *model, int field, int kind, trli_points which)
{
    const trl_array *shape = &model->slots->geometry[(size_t)field * (size_t)model->slots->kinds.n + (size_t)kind];
    trl_box box[TRL_MEMORY_BOXES];
    trli_part_size size = {.boxes = trli_points_boxes(model, field, shape, which, box)};
    for (int i = 0; i < size.boxes; ++i) size.bytes += (size_t)trl_box_points(&box[i]) * sizeof(double);
    return size;
}

/* Where the size of a field's points is. */
static size_t part_of(const trli_model *model, int field, int kind, int which)
{
    return ((size_t)field * (size_t)model->slots->kinds.n + (size_t)kind) * TRLI_POINTS + (size_t)which;
}

/* Note the points that each field has; used, [slot][kind]: by bit, which of them some field of a slot has. */
static void measure_all(trli_model *model, uint16_t *used)
{
    const int nkinds = model->slots->kinds.n;
    for (int f = 0; f < model->nfields; ++f)
        for (int k = 0; k < nkinds && model->field[f].slot >= 0; ++k)
            for (int which = 0; which < TRLI_POINTS; ++which) {
                if (!(model->run->points >> which & 1)) continue;
                trli_part_size *size = &model->run->part[part_of(model, f, k, which)];
                *size = measure(model, f, k, (trli_points)which);
                if (size->boxes > 0) used[model->field[f].slot * nkinds + k] |= (uint16_t)(1u << which);
            }
}

trl_err trli_points_measure(trli_model *model)
{
    const int nkinds = model->slots->kinds.n;
    trl_err err = TRL_OK;
    uint16_t *used = trli_new(model->ctx, (size_t)model->slots->n * (size_t)nkinds + 1, sizeof *used);
    model->run->part = trli_new(model->ctx, part_of(model, model->nfields, 0, 0) + 1, sizeof *model->run->part);
    if (!used || !model->run->part) TRL_TRY(trli_no_memory(model->ctx, NULL, "for %d fields", model->nfields));
    measure_all(model, used);
    /* Fields that share a slot may have such points in different places, or none. */
    for (int f = 0; f < model->nfields; ++f)
        for (int k = 0; k < nkinds && model->field[f].slot >= 0; ++k)
            for (int which = 0; which < TRLI_POINTS; ++which) {
                trli_part_size *size = &model->run->part[part_of(model, f, k, which)];
                if (size->bytes == 0 && used[model->field[f].slot * nkinds + k] >> which & 1)
                    size->bytes = sizeof(double);
            }
done:
    trli_free(used);
    return err;
}

trl_err trli_builder_begin(trli_task_builder *b, const trli_model *model, const char *name, trl_graph **graph)
{
    const size_t np = (size_t)model->layout->nlocal, slots = (size_t)model->slots->n * np * TRLI_POINTS + 1;
    const size_t scalars = (size_t)model->nscalars + 1, opaques = (size_t)model->nopaques + 1;
    trl_err err = TRL_OK;
    *b = (trli_task_builder){.model = model, .late_share = -1};
    b->slot_handle = trli_new(model->ctx, slots, sizeof *b->slot_handle);
    b->scalar_handle = trli_new(model->ctx, scalars, sizeof *b->scalar_handle);
    b->opaque_handle = trli_new(model->ctx, opaques, sizeof *b->opaque_handle);
    if (!b->slot_handle || !b->scalar_handle || !b->opaque_handle)
        return trli_no_memory(model->ctx, NULL, "for the tasks of '%s'", name);
    for (size_t i = 0; i < slots; ++i) b->slot_handle[i] = -1;
    for (size_t i = 0; i < scalars; ++i) b->scalar_handle[i] = -1;
    for (size_t i = 0; i < opaques; ++i) b->opaque_handle[i] = -1;
    TRL_TRY(trl_graph_create(model->ctx, name, graph));
    b->graph = *graph;
done:
    return err;
}

trl_err trli_builder_end(trli_task_builder *b, trl_err err)
{
    TRL_TRY(err);
    const trl_graph_memory memory = trli_frame_memory((trli_model *)b->model);
    TRL_TRY(trl_graph_freeze(b->graph));
    TRL_TRY(trl_graph_set_memory(b->graph, &memory));
    if (b->model->run->gpu_reads) trli_graph_set_state(b->graph, trli_frame_state);
    TRL_TRY(trl_graph_prepare(b->graph, b->model->run->workers));
done:
    trli_free(b->slot_handle);
    trli_free(b->scalar_handle);
    trli_free(b->opaque_handle);
    return err;
}

trl_err trli_builder_add(trli_task_builder *b, const char *name, trl_task_fn run, void *data, int chunks,
                         unsigned flags, double cost, trl_task *task)
{
    const trl_task_desc desc = {
        .name = name, .variant = {{run}}, .data = data, .chunks = chunks, .flags = flags, .cost = cost};
    return trl_graph_add_task(b->graph, &desc, task);
}

trl_err trli_builder_add_for_gpus(trli_task_builder *b, const char *name, trl_task_fn run, trl_task_fn gpu, void *data,
                                  int chunks, unsigned flags, double cost, trl_task *task)
{
    const trl_task_desc desc = {.name = name,
                                .variant = {[TRL_KIND_CPU] = {run}, [TRL_KIND_GPU] = {gpu}},
                                .data = data,
                                .chunks = chunks,
                                .flags = flags,
                                .cost = cost};
    return trl_graph_add_task(b->graph, &desc, task);
}

trl_err trli_builder_add_anywhere(trli_task_builder *b, const char *name, trl_task_fn run, trl_task_fn gpu, void *data,
                                  int chunks, unsigned flags, double cost, trl_task *task)
{
    const trl_task_desc desc = {.name = name,
                                .variant = {[TRL_KIND_CPU] = {run}, [TRL_KIND_MOCK] = {run}, [TRL_KIND_GPU] = {gpu}},
                                .data = data,
                                .chunks = chunks,
                                .flags = flags,
                                .cost = cost};
    return trl_graph_add_task(b->graph, &desc, task);
}

static trl_err handle_of(trli_task_builder *b, trl_handle *entry, const trl_handle_desc *desc, trl_handle *handle)
{
    trl_err err = TRL_OK;
    if (*entry < 0) TRL_TRY(trl_graph_add_handle(b->graph, desc, entry));
    *handle = *entry;
done:
    return err;
}

/* The handle of points of a field's slot on a patch, made if there is none. */
static trl_err part_handle(trli_task_builder *b, int field, int patch, trli_points which, trl_handle *handle)
{
    const trli_model *model = b->model;
    const trli_model_field *f = &model->field[field];
    const int block = f->slot * model->layout->nlocal + patch;
    trl_handle *entry = &b->slot_handle[block * TRLI_POINTS + (int)which];
    trl_err err = TRL_OK;
    if (*entry < 0) {
        const trli_part_size *size =
            &model->run->part[part_of(model, field, model->slots->kinds.of[patch], (int)which)];
        const trl_handle_desc desc = {
            .name = f->name, .bytes = size->bytes, .block = block, .key = trli_slot_key(model, f->slot, patch, which)};
        TRL_TRY(handle_of(b, entry, &desc, handle));
        TRL_TRY(trli_graph_set_pieces(b->graph, *handle, size->boxes > 0 ? size->boxes : 1));
        if (model->joint) TRL_TRY(trli_graph_set_home(b->graph, *handle, patch + 1));
    }
    *handle = *entry;
done:
    return err;
}

static trl_err access_part(trli_task_builder *b, trl_task task, int field, int patch, trli_points which,
                           trl_access access)
{
    trl_handle h;
    trl_err err;
    TRL_TRY(part_handle(b, field, patch, which, &h));
    TRL_TRY(trl_graph_add_part_access(b->graph, task, h, access, field));
done:
    return err;
}

/* Data that no task touches stays where it is. */
static trl_err rotate_part(trli_task_builder *b, int field_a, int field_b, int patch, trli_points which)
{
    const trli_model *model = b->model;
    const int fields[2] = {field_a, field_b};
    trl_handle handles[2];
    trl_err err = TRL_OK;
    bool touched = false;
    for (int i = 0; i < 2; ++i)
        touched |=
            b->slot_handle[(model->field[fields[i]].slot * model->layout->nlocal + patch) * TRLI_POINTS + (int)which] >=
            0;
    if (!touched) return TRL_OK;
    for (int i = 0; i < 2; ++i) TRL_TRY(part_handle(b, fields[i], patch, which, &handles[i]));
    TRL_TRY(trl_graph_rotate(b->graph, 2, handles));
done:
    return err;
}

trl_err trli_builder_rotate(trli_task_builder *b, const trli_rotation *rotation)
{
    trl_err err = TRL_OK;
    for (int v = 0; v < rotation->n; ++v)
        for (int p = 0; p < b->model->layout->nlocal; ++p)
            for (int which = 0; which < TRLI_POINTS; ++which)
                TRL_TRY(rotate_part(b, rotation->state[v], rotation->next[v], p, (trli_points)which));
done:
    return err;
}

trl_err trli_builder_field(trli_task_builder *b, trl_task task, int field, int patch, unsigned points,
                           trl_access access)
{
    trl_err err = TRL_OK;
    points &= b->model->run->points;
    for (int which = 0; which < TRLI_POINTS; ++which)
        if (points & 1u << which) TRL_TRY(access_part(b, task, field, patch, (trli_points)which, access));
done:
    return err;
}

/* Whether some point of a box reads a field where the patch owns no points. */
static bool reads_ghosts(const trli_task_builder *b, int field, const trl_footprint *footprint, const trl_box *box,
                         int patch)
{
    const trl_array *shape = trli_shape_of(b->model, field, patch);
    for (int i = 0; i < footprint->n; ++i)
        for (int a = 0; a < b->model->layout->grid.dim; ++a)
            if (box->lo[a] + footprint->part[i].lo[a] < shape->owned.lo[a] ||
                box->hi[a] + footprint->part[i].hi[a] > shape->owned.hi[a])
                return true;
    return false;
}

trl_err trli_builder_read(trli_task_builder *b, trl_task task, int field, const trl_footprint *footprint,
                          const trl_box *box, int patch)
{
    const bool ghosts = reads_ghosts(b, field, footprint, box, patch);
    return trli_builder_field(b, task, field, patch, ghosts ? TRLI_OWNED_AND_GHOSTS : TRLI_OWNED, TRL_READ);
}

trl_err trli_builder_reads(trli_task_builder *b, trl_task task, const trli_reads *reads, const trl_box *box, int patch)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < reads->nfields; ++i)
        TRL_TRY(trli_builder_read(b, task, reads->field[i], &reads->footprint[i], box, patch));
done:
    return err;
}

trl_err trli_builder_scalar(trli_task_builder *b, trl_task task, int scalar, trl_access access)
{
    trl_handle h;
    trl_err err = TRL_OK;
    const bool found = trli_is_found(b->model, scalar); /* of others devices get the value with a call */
    const int64_t key = found ? trli_scalar_key(b->model, scalar) : -1;
    const trl_handle_desc desc = {.name = "scalar", .bytes = found ? sizeof(double) : 0, .block = key, .key = key};
    TRL_TRY(handle_of(b, &b->scalar_handle[scalar], &desc, &h));
    if (found && b->model->joint) TRL_TRY(trli_graph_set_home(b->graph, h, 1)); /* with the first patch */
    TRL_TRY(trl_graph_add_access(b->graph, task, h, access));
done:
    return err;
}

/* A plugin that is not TILED runs once at a time. */
trl_err trli_builder_plugin(trli_task_builder *b, trl_task task, const trli_opaque *called)
{
    trl_handle h;
    trl_err err = TRL_OK;
    if (called->flags & TRL_EXPR_TILED) return TRL_OK;
    const trl_handle_desc desc = {.name = called->name, .block = -1, .key = -1};
    TRL_TRY(handle_of(b, &b->opaque_handle[called->number], &desc, &h));
    TRL_TRY(trl_graph_add_access(b->graph, task, h, TRL_READ_WRITE));
done:
    return err;
}

trl_err trli_builder_scalars(trli_task_builder *b, trl_task task, const trli_reads *reads)
{
    trl_err err = TRL_OK;
    bool late = false;
    for (int i = 0; i < reads->nscalars; ++i) {
        TRL_TRY(trli_builder_scalar(b, task, reads->scalar[i], TRL_READ));
        late |= trli_late_scalars_place(b->late, reads->scalar[i]) >= 0;
    }
    if (late) err = trli_builder_share(b, task, b->late->share, 1, 0, &b->late_share, TRL_READ);
done:
    return err;
}

trl_err trli_builder_value(trli_task_builder *b, trl_task task, trl_handle *entry, const char *name, trl_access access)
{
    const trl_handle_desc desc = {.name = name, .block = -1, .key = -1};
    trl_handle h;
    trl_err err = TRL_OK;
    TRL_TRY(handle_of(b, entry, &desc, &h));
    TRL_TRY(trl_graph_add_access(b->graph, task, h, access));
done:
    return err;
}

trl_err trli_builder_share(trli_task_builder *b, trl_task task, int reduction, int n, int patch, trl_handle *entry,
                           trl_access access)
{
    const trl_handle_desc desc = {.name = "share",
                                  .bytes = (size_t)n * sizeof(trli_partial),
                                  .block = trli_share_key(b->model, reduction, patch),
                                  .key = trli_share_key(b->model, reduction, patch)};
    trl_handle h;
    trl_err err = TRL_OK;
    TRL_TRY(handle_of(b, entry, &desc, &h));
    if (b->model->joint) TRL_TRY(trli_graph_set_home(b->graph, h, patch + 1));
    TRL_TRY(trl_graph_add_part_access(b->graph, task, h, access, n));
done:
    return err;
}

trl_err trli_builder_late(trli_task_builder *b, trl_task task, int share)
{
    return trli_builder_share(b, task, share, 1, 0, &b->late_share, TRL_WRITE_PART);
}

trl_err trli_builder_halo(trli_task_builder *b, const trli_exchanged *exchanged, trl_task_fn gpu, trli_step_task *data,
                          int chunks, double seconds, trl_task *task)
{
    /* Kernels whose patch waits for messages compute rims, too, if all that these wait for is there. */
    const bool first = b->model->ctx->ranks > 1 && b->model->run->lanes == b->model->run->nworkers;
    const unsigned copied = b->model->run->points & TRLI_SET_COPIED ? TRLI_SET_COPIED : TRLI_SET_HALO;
    const trl_task_desc desc = {
        .name = "halo",
        .variant = {[TRL_KIND_CPU] = {trli_task_halo}, [TRL_KIND_MOCK] = {trli_task_halo}, [TRL_KIND_GPU] = {gpu}},
        .data = data,
        .chunks = chunks,
        .flags = TRL_TASK_URGENT | TRL_TASK_WHOLE,
        .cost = seconds,
        .priority = first};
    trl_err err = TRL_OK;
    TRL_TRY(trl_graph_add_task(b->graph, &desc, task));
    for (int i = 0; i < data->npieces; ++i) {
        const trli_exchange_piece *piece = &data->piece[i];
        const int field = exchanged->field[piece->field];
        const bool again = i > 0 && piece->field == piece[-1].field; /* all are for one patch */
        TRL_TRY(trli_builder_field(b, *task, field, piece->source_local, trli_points_sent(b->model, field, piece),
                                   TRL_READ));
        if (!again) TRL_TRY(trli_builder_field(b, *task, field, piece->target_local, copied, TRL_READ_WRITE));
    }
done:
    return err;
}

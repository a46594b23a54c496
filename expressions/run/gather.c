/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values around points between runs, read where the field is: a GPU copies them, as pieces, to memory of the host. */
#include <string.h>

#include "builder_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "frame_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "slot_plan_impl.h"

enum { PIECES = TRLI_GPU_PIECES, EXTENTS = 3 };

/* Corners of a field on a patch, in a space. */
typedef struct gathering {
    trli_frame *frame;
    int field, patch, space, n;
    const trli_corner *corner;
    double (*value)[TRLI_CORNER_VALUES];
} gathering;

static trl_err read_corners(void *data, const trl_task_args *args, bool *done)
{
    const gathering *g = data;
    const trl_array f = trli_frame_array(g->frame, g->field, g->patch, g->space);
    (void)args;
    (void)done;
    for (int c = 0; c < g->n; ++c) {
        const trli_corner *corner = &g->corner[c];
        for (int v = 0; v < TRLI_CORNER_VALUES; ++v) {
            trl_lidx at[3];
            bool inside = true;
            for (int a = 0; a < 3; ++a) {
                at[a] = corner->at[a] + (v >> a & 1);
                inside = inside && (v >> a & 1) < corner->extent[a];
            }
            g->value[c][v] = inside ? ((const double *)f.at)[trl_array_offset(&f, at[0], at[1], at[2])] : 0;
        }
    }
    return TRL_OK;
}

/* A launch for a number of corners, which threads reach as pieces of at most eight points. */
static trl_err launch(const gathering *g, const trli_corner *corner, int n, double (*value)[TRLI_CORNER_VALUES],
                      void *stream)
{
    const trli_model_run *run = g->frame->model->run;
    const trl_array f = trli_frame_array(g->frame, g->field, g->patch, g->space);
    trl_kernel_array array[2 * PIECES] = {0};
    double extent[EXTENTS * PIECES] = {0};
    trli_gpu_call call = {.label = "receivers", .array = array, .scalar = extent, .shape = TRLI_GPU_BY_PIECES};
    call.launch.hi[0] = TRLI_CORNER_VALUES;
    call.launch.hi[1] = n;
    call.launch.hi[2] = 1;
    for (int c = 0; c < n; ++c) {
        trl_kernel_array *from = &array[2 * (ptrdiff_t)c], *to = from + 1;
        trli_native_set_array(from, &f);
        from->at += trl_array_offset(&f, corner[c].at[0], corner[c].at[1], corner[c].at[2]);
        *to = (trl_kernel_array){.at = value[c], .stride = {1, 2, 4}};
        for (ptrdiff_t a = 0; a < 3; ++a) extent[EXTENTS * c + a] = corner[c].extent[a];
    }
    return trli_gpu_launch(run->gpu_kernels, run->gpu_pieces, &call, g->space, stream);
}

static trl_err launch_all(void *data, const trl_task_args *args, bool *done)
{
    const gathering *g = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int first = 0; first < g->n && err == TRL_OK; first += PIECES) {
        const int left = g->n - first;
        err = launch(g, g->corner + first, left < PIECES ? left : PIECES, g->value + first, args->stream);
    }
    return err;
}

/* Memory of the host into which a GPU's kernels store. */
static trl_err make_room(const gathering *g, trl_device *device)
{
    trli_gathered *room = &g->frame->gathered[g->space];
    trl_err err = TRL_OK;
    if (g->n <= room->n) return TRL_OK;
    if (room->value) trli_gpu_host_release(device, room->value);
    *room = (trli_gathered){0};
    TRL_TRY(trli_gpu_host_allocate(device, (size_t)g->n * sizeof *room->value, (void **)&room->value));
    room->n = g->n;
done:
    return err;
}

void trli_frame_release_gathered(trli_frame *frame)
{
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    for (int s = 1; s < TRL_SPACES_MAX; ++s)
        if (frame->gathered[s].value) trli_gpu_host_release(trli_device_of(devices, s), frame->gathered[s].value);
}

static trl_err read_on_device(const gathering *g, trl_device *device)
{
    const trl_task_args args = {.chunks = 1, .space = g->space, .frame = g->frame};
    const size_t bytes = (size_t)g->n * sizeof *g->value;
    gathering there = *g;
    trl_err err;
    if (device->kind != TRL_KIND_GPU) return trli_device_call_now(device, read_corners, &there, &args);
    TRL_TRY(make_room(g, device));
    there.value = g->frame->gathered[g->space].value;
    memset(there.value, 0, bytes);
    TRL_TRY(trli_device_call_now(device, launch_all, &there, &args));
    memcpy(g->value, there.value, bytes);
done:
    return err;
}

/* A space with all that is read: the host, where it has it; -1: there is none that can read it. */
static int find_space(const gathering *g)
{
    const trli_model *model = g->frame->model;
    const trl_devices *devices = trl_workers_devices(model->run->workers);
    const uint32_t *valid = &g->frame->valid[model->field[g->field].slot][(ptrdiff_t)g->patch * TRLI_POINTS];
    const trl_array f = trli_frame_array(g->frame, g->field, g->patch, 0);
    uint32_t spaces = trli_frame_spaces(g->frame, g->field, g->patch);
    bool beyond = false;
    for (int c = 0; c < g->n; ++c)
        for (int a = 0; a < 3; ++a)
            beyond |= g->corner[c].at[a] < f.owned.lo[a] || g->corner[c].at[a] + g->corner[c].extent[a] > f.owned.hi[a];
    for (int which = TRLI_SIDE; beyond && which <= TRLI_HALO; ++which)
        if (model->run->points >> which & 1) spaces &= valid[which];
    if (spaces == 0) return -1;
    const int space = __builtin_ctz(spaces);
    if (space == 0 || trli_device_of(devices, space)->kind != TRL_KIND_GPU) return space;
    return model->run->gpu_pieces && model->run->gpu_pieces->function ? space : -1;
}

trl_err trli_frame_gather(trli_frame *frame, int field, int patch, int n, const trli_corner *corner,
                          double (*value)[TRLI_CORNER_VALUES])
{
    trl_context *ctx = frame->model->ctx;
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(ctx, &list);
    gathering g = {.frame = frame, .field = field, .patch = patch, .n = n, .corner = corner, .value = value};
    trl_err err = TRL_OK;
    g.space = devices ? find_space(&g) : 0;
    if (g.space > 0 && read_on_device(&g, trli_device_of(devices, g.space)) == TRL_OK) return TRL_OK;
    g.space = 0;
    TRL_TRY(trli_frame_fetch_patch(frame, field, patch));
    trli_diagnostics_forgive(ctx, said); /* the device gave them after all */
    (void)read_corners(&g, NULL, NULL);
done:
    return err;
}

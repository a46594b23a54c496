/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The extremes of a field between runs, found where its values are. */
#include <math.h>
#include <string.h>

#include "chunks_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "slot_plan_impl.h"

/* Least and largest. */
enum { EXTREMES = 2, LANES = 16, PARTS = 1024 };
static const trli_merge merge[EXTREMES] = {TRLI_MERGE_MIN, TRLI_MERGE_MAX};

trl_err trli_gpu_request_extremes(trli_model *model)
{
    const trli_ir_value value = trli_ir_field(&model->ir, 0), root[EXTREMES] = {value, value};
    trli_emit_request wanted = {.nroots = EXTREMES, .roots = root, .merge = merge, .wide = model->run->gpu_wide};
    trli_reads reads = {0};
    trli_emitted emitted = {.text = NULL};
    trl_err err = model->ir.err;
    if (err != TRL_OK) return err;
    TRL_TRY(trli_reads_find(&model->ir, &model->walk, EXTREMES, root, &reads));
    wanted.reads = &reads;
    TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &wanted, &emitted));
    TRL_TRY(trli_gpu_kernels_add_clear(model->run->gpu_kernels, &model->run->gpu_clear));
    TRL_TRY(trli_gpu_kernels_add(model->run->gpu_kernels, emitted.text, 1, 0, &model->run->gpu_extremes));
done:
    trli_free(emitted.text);
    trli_reads_free(&reads);
    return err;
}

/* A field on a patch, in a space. */
typedef struct looked_at {
    trli_frame *frame;
    int field, patch, space;
    double *extreme;           /* on the host */
    trl_kernel_partial *share; /* on a GPU */
} looked_at;

/* A NaN changes nothing. Lanes do not wait for one another. */
static void scan_box(const trl_array *f, const trl_box *box, double extreme[EXTREMES])
{
    double least[LANES], most[LANES];
    for (int l = 0; l < LANES; ++l) {
        least[l] = extreme[0];
        most[l] = extreme[1];
    }
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j) {
            const double *row = (const double *)f->at + trl_array_offset(f, 0, j, k);
            trl_lidx i = box->lo[0];
            for (; i + LANES <= box->hi[0]; i += LANES)
                for (int l = 0; l < LANES; ++l) {
                    least[l] = row[i + l] < least[l] ? row[i + l] : least[l];
                    most[l] = row[i + l] > most[l] ? row[i + l] : most[l];
                }
            for (; i < box->hi[0]; ++i) {
                least[0] = row[i] < least[0] ? row[i] : least[0];
                most[0] = row[i] > most[0] ? row[i] : most[0];
            }
        }
    for (int l = 0; l < LANES; ++l) {
        extreme[0] = fmin(extreme[0], least[l]);
        extreme[1] = fmax(extreme[1], most[l]);
    }
}

static trl_err scan(void *data, const trl_task_args *args, bool *done)
{
    const looked_at *at = data;
    const trl_array f = trli_frame_array(at->frame, at->field, at->patch, at->space);
    (void)args;
    (void)done;
    scan_box(&f, &f.owned, at->extreme);
    return TRL_OK;
}

/* A patch in parts: what they find lies with their number, since several are looked at by the same worker. */
typedef struct parts_of {
    trl_array f;
    int parts[3];
    double extreme[PARTS][EXTREMES];
} parts_of;

static trl_err scan_part(void *data, int chunk, int chunks, int worker)
{
    parts_of *of = data;
    const trl_box box = trli_box_part(&of->f.owned, of->parts, chunk);
    (void)chunks;
    (void)worker;
    scan_box(&of->f, &box, of->extreme[chunk]);
    return TRL_OK;
}

static trl_err scan_parts(const looked_at *at, trl_loop *loop)
{
    parts_of of = {.f = trli_frame_array(at->frame, at->field, at->patch, 0)};
    int64_t wanted = trli_chunks_wanted(trl_box_points(&of.f.owned), trl_loop_workers(loop));
    trl_err err;
    if (wanted > PARTS / 2) wanted = PARTS / 2; /* about as many are made */
    const int parts = trli_box_cut(&of.f.owned, wanted, of.parts);
    if (parts == 1 || parts > PARTS) return scan((void *)at, NULL, NULL);
    for (int c = 0; c < parts; ++c) memcpy(of.extreme[c], at->extreme, sizeof of.extreme[c]);
    TRL_TRY(trl_loop_run(loop, parts, scan_part, &of));
    for (int c = 0; c < parts; ++c) {
        at->extreme[0] = fmin(at->extreme[0], of.extreme[c][0]);
        at->extreme[1] = fmax(at->extreme[1], of.extreme[c][1]);
    }
done:
    return err;
}

static trl_err launch(const looked_at *at, const trli_gpu_kernel *kernel, const trl_box *box, trl_kernel_array array,
                      trli_gpu_shape shape, void *stream)
{
    double start[TRLI_GPU_SHARES] = {INFINITY, -INFINITY};
    trli_gpu_call call = {
        .label = "extremes", .launch.share = at->share, .array = &array, .scalar = start, .shape = shape};
    for (int a = 0; a < 3; ++a) {
        call.launch.lo[a] = box->lo[a];
        call.launch.hi[a] = box->hi[a];
    }
    return trli_gpu_launch(at->frame->model->run->gpu_kernels, kernel, &call, at->space, stream);
}

static trl_err scan_gpu(void *data, const trl_task_args *args, bool *done)
{
    static const trl_box shares = {{0, 0, 0}, {EXTREMES, 1, 1}};
    const looked_at *at = data;
    const trli_model_run *run = at->frame->model->run;
    const trl_array f = trli_frame_array(at->frame, at->field, at->patch, at->space);
    trl_kernel_array array;
    trl_err err;
    (void)done;
    trli_native_set_array(&array, &f);
    TRL_TRY(launch(at, run->gpu_clear, &shares, array, TRLI_GPU_STORING, args->stream));
    TRL_TRY(launch(at, run->gpu_extremes, &f.owned, array, TRLI_GPU_MERGING, args->stream));
done:
    return err;
}

static trl_err look_on_device(const looked_at *at, trl_device *device)
{
    const trl_task_args args = {.chunks = 1, .space = at->space, .frame = at->frame};
    looked_at here = *at;
    trl_kernel_partial share[EXTREMES];
    void *memory = NULL;
    trl_err err;
    if (device->kind != TRL_KIND_GPU) return trli_device_call_now(device, scan, &here, &args);
    TRL_TRY(device->ops->allocate(device, sizeof share, &memory));
    here.share = memory;
    TRL_TRY(trli_device_call_now(device, scan_gpu, &here, &args));
    const trli_box_copy copy = {
        .to = share, .from = memory, .from_space = at->space, .row = sizeof share, .rows = 1, .planes = 1};
    TRL_TRY(trli_device_copy_now(device, 1, &copy));
    for (int i = 0; i < EXTREMES; ++i) at->extreme[i] = share[i].extreme;
done:
    if (memory) device->ops->release(device, memory);
    return err;
}

/* A space with all owned points of a field on a patch: the host, where it has them; -1: they are in several. */
static int find_space(const trli_frame *frame, int field, int patch)
{
    const uint32_t all = trli_frame_spaces(frame, field, patch);
    return all ? __builtin_ctz(all) : -1;
}

static bool finds_there(const trli_model *model, int space)
{
    const trli_gpu_kernel *kernel = model->run->gpu_extremes, *clear = model->run->gpu_clear;
    if (trli_device_of(trl_workers_devices(model->run->workers), space)->kind != TRL_KIND_GPU) return true;
    return kernel && kernel->function && clear && clear->function;
}

trl_err trli_frame_extremes(trli_frame *frame, int field, int patch, trl_loop *loop, double extreme[EXTREMES])
{
    trl_context *ctx = frame->model->ctx;
    const trl_devices *devices = trl_workers_devices(frame->model->run->workers);
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(ctx, &list);
    looked_at at = {.frame = frame, .field = field, .patch = patch, .extreme = extreme};
    trl_err err = TRL_OK;
    at.space = devices ? find_space(frame, field, patch) : 0;
    extreme[0] = INFINITY;
    extreme[1] = -INFINITY;
    if (at.space > 0 && finds_there(frame->model, at.space)) {
        err = look_on_device(&at, trli_device_of(devices, at.space));
        if (err == TRL_OK) return TRL_OK;
    }
    at.space = 0;
    TRL_TRY(trli_frame_fetch_patch(frame, field, patch));
    trli_diagnostics_forgive(ctx, said); /* the device gave them after all */
    TRL_TRY(scan_parts(&at, loop));
done:
    return err;
}

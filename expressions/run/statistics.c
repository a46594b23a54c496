/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Statistics of a field on a patch by a GPU: the same sums, extremes and hash as solvers/stats.c counts on the host. */
#include "statistics_impl.h"

#include <math.h>
#include <string.h>

#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "slot_plan_impl.h"

/* The shares of a call: sums, then extremes. The hash is in the words of the last, which are no sum. */
enum { SHARES = TRLI_SUMS + 3, ARRAYS = 3, SCALARS = 4 };
_Static_assert((int)SHARES == (int)TRLI_GPU_SHARES, "they are cleared at once");

typedef struct counting {
    trli_frame *frame;
    const trli_counted *counted;
    int patch, space;
    trl_kernel_partial *share; /* on the GPU */
} counting;

trl_err trli_gpu_request_statistics(trli_model *model)
{
    return trli_gpu_kernels_add(model->run->gpu_kernels, trli_gpu_statistics_text, ARRAYS, SCALARS,
                                &model->run->gpu_statistics);
}

static trl_kernel_array array_of(const counting *c, int field)
{
    const trl_array array = trli_frame_array(c->frame, field, c->patch, c->space);
    trl_kernel_array to;
    trli_native_set_array(&to, &array);
    return to;
}

/* What is to be emptied begins with `start`; else where points lie on sides is set. */
static trl_err clear(const counting *c, void *stream)
{
    double start[SHARES] = {0};
    trl_kernel_array none = {0};
    trli_gpu_call call = {.label = "statistics", .array = &none, .scalar = start};
    call.launch.share = c->share;
    call.launch.hi[0] = SHARES;
    call.launch.hi[1] = call.launch.hi[2] = 1;
    start[TRLI_SUMS] = start[TRLI_SUMS + 1] = -INFINITY;
    return trli_gpu_launch(c->frame->model->run->gpu_kernels, c->frame->model->run->gpu_clear, &call, c->space, stream);
}

static trl_err count(const counting *c, void *stream)
{
    static const long long nowhere = 1LL << 60;
    const trli_model *model = c->frame->model;
    const trli_counted *of = c->counted;
    const trl_grid *grid = &model->layout->grid;
    const trl_patch *patch = &model->layout->patch[c->patch];
    const trli_kernel_run on = {.grid = grid, .patch = patch};
    const trl_array f = trli_frame_array(c->frame, of->field, c->patch, c->space);
    trl_kernel_array array[ARRAYS];
    double scalar[SCALARS] = {of->mask >= 0, of->exact >= 0, (double)trl_grid_points(grid, of->location, 0),
                              (double)trl_grid_points(grid, of->location, 1)};
    trli_gpu_call call = {.label = "statistics", .array = array, .scalar = scalar, .shape = TRLI_GPU_SWEEPING};
    call.launch.grid = trli_kernel_grid_of(&on);
    call.launch.share = c->share;
    array[0] = array_of(c, of->field);
    array[1] = array_of(c, of->mask >= 0 ? of->mask : of->field);
    array[2] = array_of(c, of->exact >= 0 ? of->exact : of->field);
    for (int a = 0; a < 3; ++a) {
        const bool sides = (int)of->location >> a & 1 && !grid->periodic[a];
        call.launch.lo[a] = f.owned.lo[a];
        call.launch.hi[a] = f.owned.hi[a];
        call.launch.from[a] = sides ? -patch->first[a] : nowhere;
        call.launch.to[a] = sides ? grid->cells[a] - patch->first[a] : nowhere;
    }
    return trli_gpu_launch(model->run->gpu_kernels, model->run->gpu_statistics, &call, c->space, stream);
}

static trl_err count_gpu(void *data, const trl_task_args *args, bool *done)
{
    const counting *c = data;
    trl_err err;
    (void)done;
    TRL_TRY(clear(c, args->stream));
    err = count(c, args->stream);
done:
    return err;
}

static void add(trli_tally *tally, const trli_partial share[SHARES])
{
    uint64_t hash;
    for (int i = 0; i < TRLI_SUMS; ++i) trl_sum_merge(&tally->sum[i], &share[i].sum);
    for (int i = 0; i < 3; ++i)
        if (share[TRLI_SUMS + i].extreme > tally->extreme[i]) tally->extreme[i] = share[TRLI_SUMS + i].extreme;
    tally->invalid |= share[TRLI_SUMS + 1].invalid;
    memcpy(&hash, &share[SHARES - 1], sizeof hash);
    tally->hash += hash;
}

static trl_err count_on_device(counting *c, trl_device *device, trli_tally *tally)
{
    const trl_task_args args = {.chunks = 1, .space = c->space, .frame = c->frame};
    trli_partial share[SHARES];
    void *memory = NULL;
    trl_err err;
    TRL_TRY(device->ops->allocate(device, sizeof share, &memory));
    c->share = memory;
    TRL_TRY(trli_device_call_now(device, count_gpu, c, &args));
    const trli_box_copy copy = {
        .to = share, .from = memory, .from_space = c->space, .row = sizeof share, .rows = 1, .planes = 1};
    TRL_TRY(trli_device_copy_now(device, 1, &copy));
    add(tally, share);
done:
    if (memory) device->ops->release(device, memory);
    return err;
}

static bool is_there(const trli_gpu_kernel *kernel)
{
    return kernel && kernel->function;
}

trl_err trli_frame_count(trli_frame *frame, const trli_counted *counted, int patch, trli_tally *tally, bool *done)
{
    trl_context *ctx = frame->model->ctx;
    const trli_model_run *run = frame->model->run;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(ctx, &list);
    uint32_t spaces = trli_frame_spaces(frame, counted->field, patch);
    *done = false;
    if (!is_there(run->gpu_statistics) || !is_there(run->gpu_clear)) return TRL_OK;
    if (counted->mask >= 0) spaces &= trli_frame_spaces(frame, counted->mask, patch);
    if (counted->exact >= 0) spaces &= trli_frame_spaces(frame, counted->exact, patch);
    if (spaces == 0 || spaces & 1) return TRL_OK;
    counting c = {.frame = frame, .counted = counted, .patch = patch, .space = __builtin_ctz(spaces)};
    const trl_err err = count_on_device(&c, trli_device_of(trl_workers_devices(run->workers), c.space), tally);
    *done = err == TRL_OK;
    if (err != TRL_OK) trli_diagnostics_forgive(ctx, said); /* the host counts, if the device gives it the values */
    return TRL_OK;
}

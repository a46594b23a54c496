/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Restriction and interpolation by a GPU, each point by a thread, with the sums of transfer.c in their order. A table
 * in the GPU's memory has what the axes say: by coarse point its first fine point, how many there are, and their
 * weights; by fine point its two coarse points and their weights. */
#include <string.h>

#include <trl_device.h>

#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "multigrid_impl.h"

enum { TO_COARSE = 2 + TRLI_TRANSFER_MOST, TO_FINE = 4 /* numbers by point */, ARRAYS = 3, SCALARS = 6 };
_Static_assert((int)TO_COARSE == 8, "texts have this number");

struct trli_transfer_gpu {
    trl_context *ctx;
    trli_gpu_kernel *restricts, *prolongs; /* NULL: not asked for yet */
    trl_device *device;                    /* which has the table; NULL: none has */
    double *table;
    bool used;          /* by the last restriction */
    double begin[2][3]; /* in the table, of coarse and fine points by axis */
};

#define COLUMN                                                                                        \
    "    const trl_kernel_array in = arrays.array[0], out = arrays.array[1];\n"                       \
    "    const double *table = arrays.array[2].at;\n"                                                 \
    "    const long long i = call.lo[0] + (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"        \
    "    const long long j = call.lo[1] + (long long)blockIdx.y * blockDim.y + threadIdx.y;\n"        \
    "    const long long first = call.lo[2] + blockIdx.z * call.planes, rest = call.hi[2] - first;\n" \
    "    const long long end = first + (rest < call.planes ? rest : call.planes);\n"                  \
    "    if (i >= call.hi[0] || j >= call.hi[1]) return;\n"
#define HEAD                                                                                                   \
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"                                     \
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<3> " \
    "arrays,\n           const __grid_constant__ trl_kernel_scalars<6> scalars)\n{\n" COLUMN

/* Where coarse points take from four points at most along each axis, all loads are under way at once: beyond the last
 * point that counts the last one is loaded again. */
const char trli_transfer_restrict_text[] =
    "TRL_BODY long long trl_around(const double *at, int a, int n, long long stride)\n"
    "{\n"
    "    const int count = (int)at[1];\n"
    "    return ((int)at[0] + (a < count ? a : count - 1) + n) % n * stride;\n"
    "}\n" HEAD "    const int nx = (int)scalars.value[3], ny = (int)scalars.value[4], nz = (int)scalars.value[5];\n"
    "    const double *x = table + (long long)scalars.value[0] + 8 * i;\n"
    "    const double *y = table + (long long)scalars.value[1] + 8 * j;\n"
    "    const int countx = (int)x[1], county = (int)y[1];\n"
    "    long long atx[4], aty[4], atz[4];\n"
    "    TRL_KERNEL_TOGETHER\n"
    "    for (int a = 0; a < 4; ++a) {\n"
    "        atx[a] = trl_around(x, a, nx, 1);\n"
    "        aty[a] = trl_around(y, a, ny, in.stride[1]);\n"
    "    }\n"
    "    for (long long k = first; k < end; ++k) {\n"
    "        const double *z = table + (long long)scalars.value[2] + 8 * k;\n"
    "        const int countz = (int)z[1];\n"
    "        double sum = 0;\n"
    "        if (countx <= 4 && county <= 4 && countz <= 4) {\n"
    "            TRL_KERNEL_TOGETHER\n"
    "            for (int c = 0; c < 4; ++c) atz[c] = trl_around(z, c, nz, in.stride[2]);\n"
    "            TRL_KERNEL_TOGETHER\n"
    "            for (int a = 0; a < 4; ++a) {\n"
    "                double line = 0;\n"
    "                TRL_KERNEL_TOGETHER\n"
    "                for (int b = 0; b < 4; ++b) {\n"
    "                    double column = 0;\n"
    "                    TRL_KERNEL_TOGETHER\n"
    "                    for (int c = 0; c < 4; ++c) {\n"
    "                        const double more = column + z[2 + c] * in.at[atx[a] + aty[b] + atz[c]];\n"
    "                        column = c < countz ? more : column;\n"
    "                    }\n"
    "                    line = b < county ? line + y[2 + b] * column : line;\n"
    "                }\n"
    "                sum = a < countx ? sum + x[2 + a] * line : sum;\n"
    "            }\n"
    "        } else {\n"
    "            for (int a = 0; a < countx; ++a) {\n"
    "                double line = 0;\n"
    "                for (int b = 0; b < county; ++b) {\n"
    "                    const double *row = in.at + trl_around(x, a, nx, 1) + trl_around(y, b, ny, in.stride[1]);\n"
    "                    double column = 0;\n"
    "                    for (int c = 0; c < countz; ++c)\n"
    "                        column += z[2 + c] * row[trl_around(z, c, nz, in.stride[2])];\n"
    "                    line += y[2 + b] * column;\n"
    "                }\n"
    "                sum += x[2 + a] * line;\n"
    "            }\n"
    "        }\n"
    "        out.at[i + j * out.stride[1] + k * out.stride[2]] = sum + 0.0;\n"
    "    }\n"
    "}\n";

const char trli_transfer_prolong_text[] =
    HEAD "    const double *x = table + (long long)scalars.value[0] + 4 * i;\n"
         "    const double *y = table + (long long)scalars.value[1] + 4 * j;\n"
         "    const long long x0 = (long long)x[0], x1 = (long long)x[1];\n"
         "    const double *__restrict__ const row0 = in.at + (long long)y[0] * in.stride[1];\n"
         "    const double *__restrict__ const row1 = in.at + (long long)y[1] * in.stride[1];\n"
         "    double *__restrict__ const to = out.at + i + j * out.stride[1];\n"
         "#pragma unroll 4\n"
         "    for (long long k = first; k < end; ++k) {\n"
         "        const double *z = table + (long long)scalars.value[2] + 4 * k;\n"
         "        const long long z0 = (long long)z[0] * in.stride[2], z1 = (long long)z[1] * in.stride[2];\n"
         "        double line[2];\n"
         "        TRL_KERNEL_TOGETHER\n"
         "        for (int a = 0; a < 2; ++a) {\n"
         "            const long long from = a ? x1 : x0;\n"
         "            line[a] = z[2] * y[2] * row0[from + z0] + z[2] * y[3] * row1[from + z0] +\n"
         "                      z[3] * y[2] * row0[from + z1] + z[3] * y[3] * row1[from + z1];\n"
         "        }\n"
         "        to[k * out.stride[2]] += x[2] * line[0] + x[3] * line[1];\n"
         "    }\n"
         "}\n";

trl_err trli_transfer_gpu_create(trl_context *ctx, trli_transfer_gpu **gpu)
{
    trli_transfer_gpu *g = *gpu = trli_new(ctx, 1, sizeof *g);
    if (!g) return trli_no_memory(ctx, NULL, "for a transfer between grids");
    g->ctx = ctx;
    return TRL_OK;
}

static void release_table(trli_transfer_gpu *g)
{
    if (g->device) g->device->ops->release(g->device, g->table);
    g->device = NULL;
}

void trli_transfer_gpu_destroy(trli_transfer_gpu **gpu)
{
    trli_transfer_gpu *g = *gpu;
    *gpu = NULL;
    if (!g) return;
    release_table(g);
    trli_free(g);
}

/* ---- what a GPU needs ---- */

static size_t lay_out(const trli_grid_transfer *t)
{
    size_t at = 0;
    for (int a = 0; a < 3; ++a) {
        t->gpu->begin[0][a] = (double)at;
        at += (size_t)t->axis[a].coarse * TO_COARSE;
    }
    for (int a = 0; a < 3; ++a) {
        t->gpu->begin[1][a] = (double)at;
        at += (size_t)t->axis[a].fine * TO_FINE;
    }
    return at;
}

static void write_axis(const trli_axis_transfer *x, double *coarse, double *fine)
{
    for (int j = 0; j < x->coarse; ++j, coarse += TO_COARSE) {
        coarse[0] = x->first[j];
        coarse[1] = x->count[j];
        for (int k = 0; k < x->count[j]; ++k) coarse[2 + k] = x->back[j][k];
    }
    for (int i = 0; i < x->fine; ++i, fine += TO_FINE)
        for (int side = 0; side < 2; ++side) {
            fine[side] = x->from[side][i];
            fine[2 + side] = x->weight[side][i];
        }
}

static trl_err provide_table(const trli_grid_transfer *t, trl_device *device)
{
    trli_transfer_gpu *g = t->gpu;
    const size_t n = lay_out(t);
    void *memory = NULL;
    trl_err err = TRL_OK;
    if (g->device == device) return TRL_OK;
    release_table(g);
    double *values = trli_new(g->ctx, n, sizeof *values);
    if (!values) return trli_no_memory(g->ctx, NULL, "for a transfer between grids");
    for (int a = 0; a < 3; ++a)
        write_axis(&t->axis[a], values + (size_t)g->begin[0][a], values + (size_t)g->begin[1][a]);
    TRL_TRY(trli_device_upload(device, n * sizeof *values, values, n * sizeof *values, &memory));
    g->device = device;
    g->table = memory;
done:
    trli_free(values);
    return err;
}

static trl_err provide_kernels(trli_transfer_gpu *g, trli_gpu_kernels *kernels)
{
    trl_err err = TRL_OK;
    if (g->restricts && g->prolongs) return TRL_OK;
    TRL_TRY(trli_gpu_kernels_add(kernels, trli_transfer_restrict_text, ARRAYS, SCALARS, &g->restricts));
    TRL_TRY(trli_gpu_kernels_add(kernels, trli_transfer_prolong_text, ARRAYS, SCALARS, &g->prolongs));
    trli_gpu_kernels_compile(kernels);
done:
    return err;
}

/* ---- a transfer ---- */

typedef struct moving {
    const trli_grid_transfer *t;
    const trli_gpu_kernels *kernels;
    trl_array from, to;
    bool up; /* to the fine grid */
} moving;

static trli_gpu_call call_of(const moving *m, trl_kernel_array array[ARRAYS], double scalar[SCALARS])
{
    const trli_transfer_gpu *g = m->t->gpu;
    trli_gpu_call call = {.label = m->up ? "prolong" : "restrict", .array = array, .scalar = scalar};
    memset(array, 0, ARRAYS * sizeof *array);
    trli_native_set_array(&array[0], &m->from);
    trli_native_set_array(&array[1], &m->to);
    array[2].at = g->table;
    for (int a = 0; a < 3; ++a) {
        scalar[a] = g->begin[m->up][a];
        scalar[3 + a] = m->t->axis[a].fine;
        call.launch.hi[a] = m->up ? m->t->axis[a].fine : m->t->axis[a].coarse;
    }
    return call;
}

static trl_err launch(void *data, const trl_task_args *args, bool *done)
{
    const moving *m = data;
    const trli_transfer_gpu *g = m->t->gpu;
    trl_kernel_array array[ARRAYS];
    double scalar[SCALARS];
    trli_gpu_call call = call_of(m, array, scalar);
    (void)done;
    return trli_gpu_launch(m->kernels, m->up ? g->prolongs : g->restricts, &call, args->space, args->stream);
}

/* The values of a field that are valid somewhere. */
static trl_err bring(const trl_simulation *sim, int field, int space)
{
    trl_err err = TRL_OK;
    if (!(trli_frame_spaces(sim->frame, field, 0) >> space & 1)) TRL_TRY(trli_frame_fetch(sim->frame, field));
    if (!(trli_frame_spaces(sim->frame, field, 0) >> space & 1)) TRL_TRY(trli_frame_send(sim->frame, field, space));
done:
    return err;
}

static trl_err move(const trli_grid_transfer *t, const trl_simulation *source, int from, const trl_simulation *target,
                    int to, trl_device *device, bool up, bool *done)
{
    const int space = device->space;
    moving m = {.t = t, .kernels = (up ? target : source)->model->run->gpu_kernels, .up = up};
    const trl_task_args args = {.chunks = 1, .space = space};
    trl_err err;
    TRL_TRY(provide_kernels(t->gpu, (up ? target : source)->model->run->gpu_kernels));
    if (!t->gpu->restricts->function || !t->gpu->prolongs->function) return TRL_OK;
    TRL_TRY(provide_table(t, device));
    TRL_TRY(bring(source, from, space));
    TRL_TRY(up ? bring(target, to, space) : trli_frame_provide(target->frame, to, space));
    m.from = trli_frame_array(source->frame, from, 0, space);
    m.to = trli_frame_array(target->frame, to, 0, space);
    TRL_TRY(trli_device_call(device, launch, &m, &args));
    trli_frame_written_in(target->frame, to, space);
    *done = true;
done:
    return err;
}

/* A device that fails leaves the transfer to the host. */
static trl_err try_to_move(const trli_grid_transfer *t, const trl_simulation *source, int from,
                           const trl_simulation *target, int to, trl_device *device, bool up, bool *done)
{
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(t->gpu->ctx, &list);
    trl_err err = move(t, source, from, target, to, device, up, done);
    /* Kernels of the next grid are the CPU's. */
    if (err == TRL_OK && *done && !target->model->run->gpu_kernels) err = trli_frame_fetch(target->frame, to);
    if (err == TRL_OK) return TRL_OK;
    *done = false;
    trli_diagnostics_forgive(t->gpu->ctx, said);
    return TRL_OK;
}

trl_err trli_restrict_on_gpu(const trli_grid_transfer *t, const trl_simulation *fine, int from,
                             const trl_simulation *coarse, int to, bool *done)
{
    const trl_devices *devices = trl_workers_devices(fine->model->run->workers);
    *done = t->gpu->used = false;
    if (!devices || !fine->model->run->gpu_kernels) return TRL_OK;
    const uint32_t spaces = trli_frame_spaces(fine->frame, from, 0);
    if (spaces == 0 || spaces & 1) return TRL_OK;
    trl_device *device = trli_device_of(devices, __builtin_ctz(spaces));
    if (device->kind != TRL_KIND_GPU || !trli_device_usable(device)) return TRL_OK;
    const trl_err err = try_to_move(t, fine, from, coarse, to, device, false, done);
    t->gpu->used = *done;
    return err;
}

trl_err trli_prolong_on_gpu(const trli_grid_transfer *t, const trl_simulation *coarse, int from,
                            const trl_simulation *fine, int to, bool *done)
{
    *done = false;
    if (!t->gpu->used || !trli_device_usable(t->gpu->device)) return TRL_OK;
    return try_to_move(t, coarse, from, fine, to, t->gpu->device, true, done);
}

/* ---- in a row ---- */

static bool has(const trl_simulation *sim, int field, int space)
{
    return trli_frame_spaces(sim->frame, field, 0) >> space & 1;
}

static trl_err add_to_row(const trli_grid_transfer *t, const trl_simulation *source, int from,
                          const trl_simulation *target, int to, bool up, trli_gpu_row *row)
{
    trl_device *device = trli_gpu_row_device(row);
    const int space = device->space;
    moving m = {.t = t, .up = up};
    trl_kernel_array array[ARRAYS];
    double scalar[SCALARS];
    trl_err err;
    TRL_TRY(provide_table(t, device));
    TRL_TRY(trli_frame_provide(target->frame, to, space));
    m.from = trli_frame_array(source->frame, from, 0, space);
    m.to = trli_frame_array(target->frame, to, 0, space);
    const trli_gpu_call call = call_of(&m, array, scalar);
    trli_gpu_row_call(row, up ? trli_transfer_prolong_text : trli_transfer_restrict_text, &call, ARRAYS, SCALARS);
    trli_frame_written_in(target->frame, to, space);
done:
    return err;
}

/* What is not there spoils the row. */
static void try_to_add(const trli_grid_transfer *t, const trl_simulation *source, int from,
                       const trl_simulation *target, int to, bool up, trli_gpu_row *row)
{
    const int space = trli_gpu_row_device(row)->space;
    const trl_diagnostic *list;
    const bool there = t->gpu && has(source, from, space) && (!up || has(target, to, space));
    if (!there) {
        trli_gpu_row_spoil(row);
        return;
    }
    const int said = trl_context_diagnostics(t->gpu->ctx, &list);
    if (add_to_row(t, source, from, target, to, up, row) == TRL_OK) return;
    trli_diagnostics_forgive(t->gpu->ctx, said);
    trli_gpu_row_spoil(row);
}

void trli_restrict_in_row(const trli_grid_transfer *t, const trl_simulation *fine, int from,
                          const trl_simulation *coarse, int to, trli_gpu_row *row)
{
    try_to_add(t, fine, from, coarse, to, false, row);
}

void trli_prolong_in_row(const trli_grid_transfer *t, const trl_simulation *coarse, int from,
                         const trl_simulation *fine, int to, trli_gpu_row *row)
{
    try_to_add(t, coarse, from, fine, to, true, row);
}

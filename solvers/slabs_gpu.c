/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct solutions on the GPU that has all of the right-hand side: the transforms and eliminations of slabs.c, with its
 * bits. What is done to all lines along an axis is one launch; between launches values are in memory of the solver. */
#include "slabs_gpu_impl.h"

#include <string.h>

#include <trl_device.h>

#include "arithmetic_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "model_run_impl.h"

enum {
    ARRAYS = TRLI_LINES_ARRAYS,
    SCALARS = TRLI_LINES_SCALARS,
    STAGES_MOST = 7,
    THREADS = 128,      /* of a block that moves values or eliminates */
    BLOCKS_MOST = 65535 /* along y */
};

typedef enum stage_kind { MOVE, THERE, SOLVE, ELIMINATE, BACK } stage_kind;

/* A launch, for all lines along an axis. */
typedef struct stage {
    stage_kind kind;
    int axis;
    trli_gpu_kernel *kernel;
    trli_gpu_layout layout;
} stage;

/* Where what an axis has begins in the solver's memory, in doubles; 0: it has none. */
typedef struct axis_tables {
    size_t transform, index, value, weight;
} axis_tables;

struct trli_slabs_gpu {
    trl_context *ctx;
    const trli_direct_plan *plan;
    int n[3];
    ptrdiff_t stride[3]; /* of values in the solver's memory */
    int nstages;
    stage stage[STAGES_MOST];
    bool tried, ready;  /* kernels were asked for; and are there */
    bool warned;        /* that the host solves what a GPU should */
    trl_device *device; /* which has the memory; NULL: none has */
    double *memory;     /* in it, each from an offset on: */
    size_t values;      /* of the grid, */
    size_t above;       /* what elimination keeps of them, */
    size_t rows[3];     /* lower, middle, upper */
    axis_tables table[3];
};

/* Lines along an axis lie beside one another along this one. */
static int across_of(int axis)
{
    return axis == 0 ? 1 : 0;
}

static void add_stage(trli_slabs_gpu *g, stage_kind kind, int axis)
{
    g->stage[g->nstages++] = (stage){.kind = kind, .axis = axis};
}

/* As transform_planes, solve_lines and transform_planes have it. */
static void list_stages(trli_slabs_gpu *g)
{
    const trli_direct_plan *p = g->plan;
    const bool rows = p->last != 0 && p->axis[0].transform;
    add_stage(g, rows ? THERE : MOVE, 0);
    for (int a = 1; a < 3; ++a)
        if (a != p->last && p->axis[a].transform) add_stage(g, THERE, a);
    add_stage(g, p->swept ? ELIMINATE : SOLVE, p->last);
    for (int a = 2; a > 0; --a)
        if (a != p->last && p->axis[a].transform) add_stage(g, BACK, a);
    add_stage(g, rows ? BACK : MOVE, 0);
}

trl_err trli_slabs_gpu_create(const trl_simulation *sim, const trli_direct_plan *plan, const int n[3],
                              trli_slabs_gpu **gpu)
{
    trl_context *ctx = sim->ctx;
    *gpu = NULL;
    if (!sim->model->run->gpu_kernels || trl_context_ranks(ctx) > 1) return TRL_OK;
    trli_slabs_gpu *g = *gpu = trli_new(ctx, 1, sizeof *g);
    if (!g) return trli_no_memory(ctx, NULL, "for a direct solver");
    g->ctx = ctx;
    g->plan = plan;
    memcpy(g->n, n, sizeof g->n);
    g->stride[0] = 1;
    g->stride[1] = (ptrdiff_t)trli_ceil_div(n[0], TRLI_LINES_MOST) * TRLI_LINES_MOST;
    g->stride[2] = g->stride[1] * n[1];
    list_stages(g);
    return TRL_OK;
}

static void release(trli_slabs_gpu *g)
{
    if (g->device) g->device->ops->release(g->device, g->memory);
    g->device = NULL;
}

void trli_slabs_gpu_destroy(trli_slabs_gpu **gpu)
{
    trli_slabs_gpu *g = *gpu;
    *gpu = NULL;
    if (!g) return;
    release(g);
    trli_free(g);
}

/* ---- kernels ---- */

/* Points along the lines, across, and along the third axis. */
static void extents_of(const trli_slabs_gpu *g, const stage *s, int n[3])
{
    const int across = across_of(s->axis);
    n[0] = g->n[s->axis];
    n[1] = g->n[across];
    n[2] = g->n[3 - s->axis - across];
}

/* NULL, or why a GPU cannot do it. */
static const char *lay_out(const trli_slabs_gpu *g, stage *s, trli_lines_shape *shape)
{
    int n[3];
    extents_of(g, s, n);
    *shape = (trli_lines_shape){.lanes = THREADS, .workers = 1};
    if (n[2] > BLOCKS_MOST) return "the grid has too many rows for a launch";
    const bool plain = s->kind == MOVE || s->kind == ELIMINATE;
    const trli_transform *t = g->plan->axis[s->axis].transform;
    if (!plain && !t) return "the grid is one point";
    if (!plain && !trli_lines_shape_of(t, s->axis == 0, shape)) return "lines are too long for the memory of a block";
    s->layout = (trli_gpu_layout){
        .blocks = {(unsigned)trli_ceil_div(s->kind == MOVE ? n[0] : n[1], shape->lanes), (unsigned)n[2], 1},
        .threads = (unsigned)(shape->lanes * shape->workers),
        .shared = shape->shared};
    return NULL;
}

static trl_err ask_for(const trli_slabs_gpu *g, stage *s, const trli_lines_shape *shape, trli_gpu_kernels *kernels)
{
    trli_memstream text = {0};
    trl_err err = TRL_OK;
    if (!trli_memstream_open(g->ctx, &text)) return trli_no_memory(g->ctx, NULL, "for the text of a kernel");
    if (s->kind == MOVE || s->kind == ELIMINATE)
        trli_lines_write_plain(s->kind == MOVE ? "trl_lines_move" : "trl_lines_eliminate", THREADS, text.out);
    else
        trli_lines_write(g->plan->axis[s->axis].transform, shape, s->axis == 0, s->kind == BACK, s->kind == SOLVE,
                         text.out);
    if (!trli_memstream_close(&text)) return trli_no_memory(g->ctx, NULL, "for the text of a kernel");
    err = trli_gpu_kernels_add(kernels, text.text, ARRAYS, SCALARS, &s->kernel);
    trli_memstream_discard(&text);
    return err;
}

/* Once. */
static void warn(trli_slabs_gpu *g, const char *why)
{
    if (!g->warned) trl_warn(g->ctx, NULL, "direct solutions are made by the CPU, not by GPUs: %s", why);
    g->warned = true;
}

/* Once. Without all of them the host solves. */
static trl_err provide_kernels(trli_slabs_gpu *g, trli_gpu_kernels *kernels)
{
    trl_err err = TRL_OK;
    const char *why = NULL;
    if (g->tried) return TRL_OK;
    g->tried = true;
    for (int i = 0; i < g->nstages; ++i) {
        trli_lines_shape shape;
        why = lay_out(g, &g->stage[i], &shape);
        if (why) {
            warn(g, why);
            goto done;
        }
        TRL_TRY(ask_for(g, &g->stage[i], &shape, kernels));
    }
    trli_gpu_kernels_compile(kernels);
    for (int i = 0; i < g->nstages; ++i) {
        const stage *s = &g->stage[i];
        if (!s->kernel->function) {
            warn(g, s->kernel->why);
            goto done;
        }
        if (s->layout.shared > 0) trli_gpu_kernels_share(kernels, s->kernel, s->layout.shared, &why);
        if (why) {
            warn(g, why);
            goto done;
        }
    }
    g->ready = true;
done:
    return err;
}

/* ---- memory ---- */

/* Tables and values, laid out twice: to see how much there is, then with memory. */
static void put(double *memory, size_t *used, const void *from, size_t bytes, size_t *at)
{
    *at = from ? *used : 0;
    if (!from) return;
    if (memory) memcpy(memory + *used, from, bytes);
    *used += (bytes + sizeof(double) - 1) / sizeof(double);
}

static size_t lay_tables(trli_slabs_gpu *g, double *memory)
{
    const trli_direct_plan *p = g->plan;
    const size_t line = (size_t)g->n[p->last] * sizeof(double);
    const double *const row[3] = {p->lower, p->middle, p->upper};
    size_t used = 1; /* 0: there is none */
    for (int a = 0; a < 3; ++a) {
        const trli_transform *t = p->axis[a].transform;
        put(memory, &used, t ? t->table : NULL, t ? t->ntable * sizeof(double) : 0, &g->table[a].transform);
        put(memory, &used, t ? t->index : NULL, t ? t->nindex * sizeof(int) : 0, &g->table[a].index);
        put(memory, &used, p->axis[a].value, (size_t)g->n[a] * sizeof(double), &g->table[a].value);
        put(memory, &used, p->axis[a].weight, line, &g->table[a].weight);
        put(memory, &used, p->swept ? row[a] : NULL, line, &g->rows[a]);
    }
    return (size_t)trli_ceil_div((int64_t)used, TRLI_LINES_MOST) * TRLI_LINES_MOST;
}

/* Values are zero at first, and stay so where a row is filled up. */
static trl_err provide_memory(trli_slabs_gpu *g, trl_device *device)
{
    const size_t tables = lay_tables(g, NULL), values = (size_t)g->stride[2] * (size_t)g->n[2];
    void *memory = NULL;
    trl_err err = TRL_OK;
    if (g->device == device) return TRL_OK;
    release(g);
    const size_t all = tables + values * (g->plan->swept ? 2 : 1);
    double *content = trli_new(g->ctx, tables + values, sizeof *content);
    if (!content) return trli_no_memory(g->ctx, NULL, "for a direct solver");
    (void)lay_tables(g, content);
    TRL_TRY(device->ops->allocate(device, all * sizeof *content, &memory));
    g->device = device;
    g->memory = memory;
    g->values = tables;
    g->above = tables + values;
    const trli_box_copy copy = {.to = memory,
                                .from = content,
                                .to_space = device->space,
                                .row = (tables + values) * sizeof *content,
                                .rows = 1,
                                .planes = 1};
    err = trli_device_copy_now(device, 1, &copy);
    if (err != TRL_OK) release(g);
done:
    trli_free(content);
    return err;
}

/* ---- a run ---- */

typedef struct solving {
    trli_slabs_gpu *gpu;
    const trli_slabs_request *request;
    const trli_gpu_kernels *kernels;
    trl_kernel_array residual, solution; /* at the first unknown point */
} solving;

static trl_kernel_array array_of(const trli_slabs_request *r, int field, int space)
{
    const trl_simulation *sim = r->sim;
    const trl_array a = trli_frame_array(sim->frame, field, 0, space);
    trl_kernel_array to;
    trli_native_set_array(&to, &a);
    for (int k = 0; k < 3; ++k) to.at -= ((ptrdiff_t)sim->layout->patch[0].first[k] - r->first[k]) * to.stride[k];
    return to;
}

static trl_kernel_array values_of(const trli_slabs_gpu *g, size_t begin)
{
    return (trl_kernel_array){.at = g->memory + begin, .stride = {g->stride[0], g->stride[1], g->stride[2]}};
}

/* Strides along the lines of an axis, across, and along the third axis. */
static trl_kernel_array turned(const trl_kernel_array *a, int axis)
{
    const int across = across_of(axis);
    return (trl_kernel_array){.at = a->at,
                              .stride = {a->stride[axis], a->stride[across], a->stride[3 - axis - across]}};
}

static double *table_at(const trli_slabs_gpu *g, size_t begin)
{
    return begin > 0 ? g->memory + begin : NULL;
}

/* As trl_lines_body.h wants them. */
static void set_tables(const trli_slabs_gpu *g, const stage *s, trl_kernel_array *array)
{
    const int across = across_of(s->axis), rest = 3 - s->axis - across;
    const axis_tables *own = &g->table[s->axis], *first = &g->table[across], *second = &g->table[rest];
    if (s->kind == ELIMINATE) {
        const trl_kernel_array above = values_of(g, g->above);
        array[1] = turned(&above, s->axis);
        for (int k = 0; k < 3; ++k) array[2 + k].at = table_at(g, g->rows[k]);
        array[5].at = table_at(g, first->value);
        array[6].at = table_at(g, second->value);
        array[7].at = table_at(g, first->weight);
        array[8].at = table_at(g, second->weight);
        return;
    }
    array[2].at = table_at(g, own->transform);
    array[3].at = table_at(g, own->index);
    array[4].at = table_at(g, own->value);
    array[5].at = table_at(g, first->value);
    array[6].at = table_at(g, second->value);
}

static void set_scalars(const solving *v, const stage *s, bool last, double scalar[SCALARS])
{
    const trli_direct_plan *p = v->gpu->plan;
    if (s->kind == ELIMINATE) {
        scalar[0] = p->scale;
        scalar[1] = p->singular;
        scalar[2] = p->sets_mean;
        scalar[3] = p->balanced;
    } else {
        scalar[0] = last && v->request->add;
        scalar[1] = p->scale;
        scalar[2] = p->centre;
        scalar[3] = p->singular;
    }
    scalar[4] = v->request->mean;
}

static trl_err launch(void *data, const trl_task_args *args, bool *done)
{
    static const char *const label[] = {"move values", "transform", "transform and divide", "eliminate",
                                        "transform back"};
    const solving *v = data;
    const trli_slabs_gpu *g = v->gpu;
    const trl_kernel_array values = values_of(g, g->values);
    trl_err err = TRL_OK;
    (void)done;
    for (int i = 0; i < g->nstages; ++i) {
        const stage *s = &g->stage[i];
        const bool last = i == g->nstages - 1;
        trl_kernel_array array[ARRAYS] = {{0}};
        double scalar[SCALARS];
        int n[3];
        trli_gpu_call call = {
            .label = label[s->kind], .array = array, .scalar = scalar, .shape = TRLI_GPU_GIVEN, .layout = &s->layout};
        extents_of(g, s, n);
        for (int a = 0; a < 3; ++a) call.launch.hi[a] = n[a];
        array[0] = turned(i == 0 ? &v->residual : &values, s->axis);
        array[1] = turned(last ? &v->solution : &values, s->axis);
        set_tables(g, s, array);
        set_scalars(v, s, last, scalar);
        TRL_TRY(trli_gpu_launch(v->kernels, s->kernel, &call, args->space, args->stream));
    }
done:
    return err;
}

static trl_err solve(trli_slabs_gpu *g, const trli_slabs_request *r, trl_device *device, bool *done)
{
    const trl_simulation *sim = r->sim;
    const int space = device->space;
    const trl_task_args args = {.chunks = 1, .space = space};
    solving v = {.gpu = g, .request = r, .kernels = sim->model->run->gpu_kernels};
    trl_err err;
    TRL_TRY(provide_kernels(g, sim->model->run->gpu_kernels));
    if (!g->ready) return TRL_OK;
    TRL_TRY(provide_memory(g, device));
    if (r->add && !(trli_frame_spaces(sim->frame, r->to, 0) >> space & 1)) {
        TRL_TRY(trli_frame_fetch(sim->frame, r->to));
        TRL_TRY(trli_frame_send(sim->frame, r->to, space));
    }
    TRL_TRY(trli_frame_provide(sim->frame, r->to, space));
    v.residual = array_of(r, r->from, space);
    v.solution = array_of(r, r->to, space);
    TRL_TRY(trli_device_call(device, launch, &v, &args));
    trli_frame_written_in(sim->frame, r->to, space);
    *done = true;
done:
    return err;
}

trl_err trli_slabs_gpu_solve(trli_slabs_gpu *g, const trli_slabs_request *request, bool *done)
{
    const trl_simulation *sim = request->sim;
    const trl_devices *devices = trl_workers_devices(sim->model->run->workers);
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(g->ctx, &list);
    *done = false;
    if (!devices || !sim->model->run->gpu_kernels || (g->tried && !g->ready)) return TRL_OK;
    const uint32_t spaces = trli_frame_spaces(sim->frame, request->from, 0);
    if (spaces == 0 || spaces & 1) return TRL_OK;
    trl_device *device = trli_device_of(devices, __builtin_ctz(spaces));
    if (device->kind != TRL_KIND_GPU || !trli_device_usable(device)) return TRL_OK;
    if (solve(g, request, device, done) == TRL_OK) return TRL_OK;
    trli_diagnostics_forgive(g->ctx, said); /* the host solves, if the device gives it the values */
    warn(g, "a GPU has no memory left for them, or has failed");
    return TRL_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The kernels of direct solutions on GPUs: one for all lines along an axis, in the order of slabs.c, with its bits; or
 * one for whole planes, where these fit in the memory of a block. */
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "executor_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "slabs_gpu_impl.h"

enum {
    BLOCKS_MOST = 65535, /* along y */
    PLANES_LEAST = 32    /* of a GPU: one block has each, and with fewer blocks most of its multiprocessors wait */
};

static void add_stage(trli_slab_kernels *k, trli_slab_work work, int axis)
{
    const int across = axis == 0 ? 1 : 0;
    k->stage[k->n++] = (trli_slab_stage){.work = work, .axis = axis, .across = across, .rest = 3 - axis - across};
}

static void add_planes(trli_slab_kernels *k, trli_slab_work work, const trli_lines_shape *shape)
{
    const int last = k->plan->last;
    k->stage[k->n++] = (trli_slab_stage){.work = work, .across = 3 - last, .rest = last, .shape = *shape};
}

/* The shared memory that a block of each GPU may have. */
static size_t shared_of(const trl_devices *devices)
{
    size_t most = SIZE_MAX;
    for (int i = 0; i < devices->n; ++i) {
        const trl_device *device = devices->device[i];
        if (device->kind == TRL_KIND_GPU && device->info.shared_bytes < most) most = device->info.shared_bytes;
    }
    return most;
}

/* Whether blocks transform whole planes. */
static bool has_planes(const trli_direct_plan *p, const trl_devices *devices, int parts, trli_lines_shape *shape)
{
    const char *text = getenv("TRELLIS_GPU_PLANES");
    if ((text && strcmp(text, "off") == 0) || p->last == 0) return false;
    const trli_transform *x = p->axis[0].transform, *other = p->axis[3 - p->last].transform;
    return x && other && p->axis[p->last].n / parts >= PLANES_LEAST &&
           trli_planes_shape_of(x, other, shared_of(devices), shape);
}

/* As transform_planes, solve_lines and transform_planes have it. */
static void choose_stages(trli_slab_kernels *k, const trl_devices *devices, int parts)
{
    const trli_direct_plan *p = k->plan;
    trli_lines_shape shape;
    const bool planes = has_planes(p, devices, parts, &shape);
    if (planes) add_planes(k, TRLI_SLAB_PLANES_THERE, &shape);
    for (int a = 0; a < 3 && !planes; ++a)
        if (a != p->last && p->axis[a].transform) add_stage(k, TRLI_SLAB_THERE, a);
    k->solve = k->n;
    add_stage(k, p->swept ? TRLI_SLAB_ELIMINATE : TRLI_SLAB_SOLVE, p->last);
    for (int a = 2; a >= 0 && !planes; --a)
        if (a != p->last && p->axis[a].transform) add_stage(k, TRLI_SLAB_BACK, a);
    if (planes) add_planes(k, TRLI_SLAB_PLANES_BACK, &shape);
}

bool trli_slab_kernels_take_rows(const trli_slab_kernels *k)
{
    return k->plan->last != 0 && k->plan->axis[0].transform;
}

/* NULL, or why a GPU cannot do it. */
static const char *find_shape(const trli_direct_plan *p, trli_slab_stage *s)
{
    const trli_transform *t = p->axis[s->axis].transform;
    if (trli_slab_stage_has_planes(s)) return NULL;
    s->shape = (trli_lines_shape){.lanes = TRLI_SLAB_THREADS, .workers = 1};
    if (p->axis[s->rest].n > BLOCKS_MOST) return "the grid has too many rows for a launch";
    if (s->work == TRLI_SLAB_ELIMINATE) return NULL;
    if (!t) return "the grid is one point";
    return trli_lines_shape_of(t, s->axis == 0, &s->shape) ? NULL : "lines are too long for the memory of a block";
}

static void write_text(const trli_direct_plan *p, const trli_slab_stage *s, FILE *out)
{
    if (s->work == TRLI_SLAB_ELIMINATE)
        trli_lines_write_plain("trl_lines_eliminate", TRLI_SLAB_THREADS, out);
    else if (trli_slab_stage_has_planes(s))
        trli_planes_write(p->axis[0].transform, p->axis[s->across].transform, &s->shape,
                          s->work == TRLI_SLAB_PLANES_BACK, out);
    else
        trli_lines_write(p->axis[s->axis].transform, &s->shape, s->axis == 0, s->work == TRLI_SLAB_BACK,
                         s->work == TRLI_SLAB_SOLVE, out);
}

/* stage: NULL: of what moves values. */
static trl_err ask_for(trl_context *ctx, const trli_direct_plan *p, const trli_slab_stage *stage,
                       trli_gpu_kernels *compiled, trli_gpu_kernel **kernel)
{
    trli_memstream text = {0};
    trl_err err = TRL_OK;
    if (!trli_memstream_open(ctx, &text)) return trli_no_memory(ctx, NULL, "for the text of a kernel");
    if (stage)
        write_text(p, stage, text.out);
    else
        trli_lines_write_plain("trl_lines_move", TRLI_SLAB_THREADS, text.out);
    if (!trli_memstream_close(&text)) return trli_no_memory(ctx, NULL, "for the text of a kernel");
    err = trli_gpu_kernels_add(compiled, text.text, TRLI_LINES_ARRAYS, TRLI_LINES_SCALARS, kernel);
    trli_memstream_discard(&text);
    return err;
}

static trl_err ask_for_all(trl_context *ctx, trli_slab_kernels *k, trli_gpu_kernels *compiled)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < k->n && !k->why; ++i) k->why = find_shape(k->plan, &k->stage[i]);
    for (int i = 0; i < k->n && !k->why; ++i)
        TRL_TRY(ask_for(ctx, k->plan, &k->stage[i], compiled, &k->stage[i].kernel));
    if (!k->why) err = ask_for(ctx, k->plan, NULL, compiled, &k->move);
done:
    return err;
}

trl_err trli_slab_kernels_provide(trl_context *ctx, trli_slab_kernels *k, const trl_devices *devices, int parts,
                                  trli_gpu_kernels *compiled)
{
    trl_err err = TRL_OK;
    if (k->tried) return TRL_OK;
    k->tried = true;
    choose_stages(k, devices, parts);
    TRL_TRY(trli_gpu_kernels_compile_together(ctx, compiled, ask_for_all(ctx, k, compiled)));
    for (int i = 0; i < k->n && !k->why; ++i) {
        const trli_slab_stage *s = &k->stage[i];
        if (!s->kernel->function)
            k->why = s->kernel->why;
        else if (s->shape.shared > 0)
            trli_gpu_kernels_share(compiled, s->kernel, s->shape.shared, &k->why);
    }
    if (!k->why && !k->move->function) k->why = k->move->why;
done:
    if (err != TRL_OK) k->why = "there was no memory for its kernels";
    return err;
}

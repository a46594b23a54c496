/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several steps in one launch: the kernel is that of trl_kernel_steps_body.h, and what it computes of a point is what
 * the step's own kernel does. */
#include <string.h>

#include "builder_impl.h"
#include "compute_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_passes_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"

/* Tiles that are fast on an H100 (docs/gpu.md): a thread has about as many registers as a multiprocessor has room for;
 * larger tiles spill many, that of four steps a few. */
static const trli_emit_steps tiles[] = {{4, 72, 40, 8, 1}, {3, 70, 40, 8, 1}, {2, 36, 36, 6, 2}};

enum { WAYS_MOST = sizeof tiles / sizeof *tiles, CELLS_LEAST = 16 };

struct trli_gpu_passes {
    trli_program *program;
    trli_frame *frame;
    int field, next; /* levels: as the program names them */
    trl_device *device;
    const trli_reads *reads; /* of its kernel */
    trli_step_task task;
    int n;
    const trli_emit_steps *tile[WAYS_MOST];
    trli_gpu_kernel *kernel[WAYS_MOST];
    double *scalar; /* [steps][each] */
    int each;       /* scalars of a step, one at least */
    int way;        /* of the pass under way */
};

/* The one step that there is; NULL: there are others. */
static const trli_step *find_step(const trli_program *program)
{
    const trli_step *found = NULL;
    for (int i = 0; i < program->nsteps; ++i) {
        if (!program->plan->step[i].live) continue;
        if (found) return NULL;
        found = &program->step[i];
    }
    return found;
}

/* What is in the way on this machine; NULL: nothing. */
static const char *find_obstacle(const trli_model *model)
{
    const trl_devices *devices = trl_workers_devices(model->run->workers);
    if (!model->run->gpu_kernels || devices->n != 1) return "devices take part that are not one GPU";
    return NULL;
}

/* The same of the program, whose kernels for GPUs have their texts. */
static const char *find_refusal(const trli_program *program, const trli_rotation *rotation, const trli_step *s)
{
    const trli_model *model = program->model;
    if (trl_context_ranks(model->ctx) > 1 || model->layout->nlocal != 1) return "a GPU has several patches";
    if (model->layout->grid.dim != 3) return "the grid has fewer than three axes";
    if (rotation->n != 1) return "a GPU takes several steps of one equation only";
    if (!s || s->kind != TRLI_STEP_KERNEL) return "a step is more than one kernel";
    const trli_parts *parts = trli_gpu_parts_of(program, s);
    if (parts->n != 1 || parts->part[0].nroots != 1 || parts->part[0].reads.nfields != 1)
        return "a step reads more than its own field";
    if (parts->part[0].reads.field[0] != rotation->state[0] || s->field[parts->part[0].root[0]] != rotation->next[0])
        return "a step is more than one kernel";
    if (!trli_run_of(program, s)->gpu_folds) return "ghosts have to be in memory";
    return NULL;
}

/* Along a periodic axis a tile goes round once, at most. */
static bool fits_grid(const trl_layout *layout, const trli_emit_steps *tile)
{
    const int least[3] = {tile->wide, tile->high, CELLS_LEAST};
    for (int a = 0; a < 3; ++a)
        if (layout->grid.cells[a] < least[a]) return false;
    return true;
}

static trl_err write_text(trli_program *program, const trli_step *s, const trli_emit_steps *tile, char **text,
                          const char **why)
{
    trli_model *model = program->model;
    trli_emit_request request = {0};
    trli_emitted emitted = {0};
    trl_err err;
    *text = NULL;
    TRL_TRY(trli_gpu_request_of_part(program, s, &trli_gpu_parts_of(program, s)->part[0], &request));
    request.steps = tile;
    TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &request, &emitted));
    *text = emitted.text;
    if (!emitted.text) *why = emitted.why;
done:
    trli_free((void *)request.layer);
    return err;
}

trl_err trli_gpu_passes_text(trli_program *program, const trli_rotation *rotation, int number, char **text,
                             const char **why)
{
    const trli_step *s = find_step(program);
    *text = NULL;
    *why = number < WAYS_MOST ? find_refusal(program, rotation, s) : "there are fewer tiles";
    return *why ? TRL_OK : write_text(program, s, &tiles[number], text, why);
}

static trl_err add_way(trli_gpu_passes *p, const trli_emit_steps *tile, const char **why)
{
    char *text;
    trl_err err;
    TRL_TRY(write_text(p->program, p->task.step, tile, &text, why));
    if (!text) return TRL_OK;
    err = trli_gpu_kernels_add(p->program->model->run->gpu_kernels, text, 2, tile->steps * p->each, &p->kernel[p->n]);
    trli_free(text);
    if (err == TRL_OK) p->tile[p->n++] = tile;
done:
    return err;
}

/* Those that are compiled stay. */
static void compile(trli_gpu_passes *p, const char **why)
{
    trli_gpu_kernels *kernels = p->program->model->run->gpu_kernels;
    int n = 0;
    trli_gpu_kernels_compile(kernels);
    for (int w = 0; w < p->n; ++w) {
        const char *refused = p->kernel[w]->function ? NULL : p->kernel[w]->why;
        if (!refused) trli_gpu_kernels_share(kernels, p->kernel[w], p->tile[w], &refused);
        if (refused) *why = refused;
        if (refused) continue;
        p->tile[n] = p->tile[w];
        p->kernel[n++] = p->kernel[w];
    }
    p->n = n;
}

static trl_err add_ways(trli_gpu_passes *p, int most, const char **why)
{
    trl_err err = TRL_OK;
    *why = "the grid is smaller than a tile";
    for (int w = 0; w < WAYS_MOST; ++w)
        if (tiles[w].steps <= most && fits_grid(p->program->model->layout, &tiles[w]))
            TRL_TRY(add_way(p, &tiles[w], why));
    if (p->n > 0) compile(p, why);
    if (p->n > 0) *why = NULL;
done:
    return err;
}

trl_err trli_gpu_passes_create(trli_program *program, trli_frame *frame, const trli_rotation *rotation, int most,
                               trli_gpu_passes **passes, const char **why)
{
    trl_context *ctx = program->model->ctx;
    const trli_step *s = find_step(program);
    trli_gpu_passes *p = NULL;
    trl_err err = TRL_OK;
    *passes = NULL;
    *why = find_obstacle(program->model);
    if (!*why) *why = find_refusal(program, rotation, s);
    if (*why) return TRL_OK;
    p = trli_new(ctx, 1, sizeof *p);
    if (!p) return trli_no_memory(ctx, NULL, "to take several steps at once");
    *p = (trli_gpu_passes){.program = program, .frame = frame, .field = rotation->state[0], .next = rotation->next[0]};
    p->device = trl_workers_devices(program->model->run->workers)->device[0];
    p->reads = &trli_gpu_parts_of(program, s)->part[0].reads;
    p->each = p->reads->nscalars > 0 ? p->reads->nscalars : 1;
    p->task = (trli_step_task){.program = program,
                               .step = s,
                               .plan = trli_plan_of(program, s),
                               .run = trli_run_of(program, s),
                               .box = trli_step_box(program, s, 0, 0)};
    p->scalar = trli_new(ctx, (size_t)tiles[0].steps * (size_t)p->each, sizeof *p->scalar);
    if (!p->scalar) TRL_TRY(trli_no_memory(ctx, NULL, "to take several steps at once"));
    TRL_TRY(add_ways(p, most, why));
    if (*why) goto done;
    *passes = p;
    p = NULL;
done:
    trli_gpu_passes_destroy(&p);
    return err;
}

void trli_gpu_passes_destroy(trli_gpu_passes **passes)
{
    trli_gpu_passes *p = *passes;
    *passes = NULL;
    if (!p) return;
    trli_free(p->scalar);
    trli_free(p);
}

int trli_gpu_passes_count(const trli_gpu_passes *p)
{
    return p->n;
}

int trli_gpu_passes_steps(const trli_gpu_passes *p, int way)
{
    return p->tile[way]->steps;
}

void trli_gpu_passes_tile(const trli_gpu_passes *p, int way, int tile[2])
{
    tile[0] = p->tile[way]->wide;
    tile[1] = p->tile[way]->high;
}

/* ---- running ---- */

static uint32_t *valid_of(const trli_gpu_passes *p, int field)
{
    return p->frame->valid[p->program->model->field[field].slot];
}

bool trli_gpu_passes_ready(const trli_gpu_passes *p)
{
    const int space = p->device->space, next = p->program->model->field[p->next].slot;
    return trli_device_usable(p->device) && valid_of(p, p->field)[TRLI_INNER] >> space & 1 && p->frame->base[space] &&
           p->frame->base[space][next] && p->frame->base[space][next][0];
}

void trli_gpu_passes_set_scalars(trli_gpu_passes *p, int step)
{
    for (int i = 0; i < p->reads->nscalars; ++i) p->scalar[step * p->each + i] = p->frame->scalar[p->reads->scalar[i]];
}

static trl_err launch(void *data, const trl_task_args *args, bool *done)
{
    trli_gpu_passes *p = data;
    trli_gpu_call call;
    (void)done;
    trli_gpu_call_part(args, &p->task, 0, &call);
    call.scalar = p->scalar;
    call.shape = TRLI_GPU_STEPS;
    call.steps = p->tile[p->way];
    return trli_gpu_launch(p->program->model->run->gpu_kernels, p->kernel[p->way], &call, args->space, args->stream);
}

trl_err trli_gpu_passes_run(trli_gpu_passes *p, int way, bool *alarmed)
{
    const trl_task_args args = {.chunks = 1, .space = p->device->space, .frame = p->frame};
    uint32_t *valid = valid_of(p, p->next);
    trl_err err;
    p->way = way;
    trli_frame_forget_nonfinite(p->frame);
    TRL_TRY(trli_device_call_now(p->device, launch, p, &args));
    for (int i = TRLI_INNER; i <= TRLI_RIM; ++i) valid[i] = valid_of(p, p->field)[i] & 1u << p->device->space;
    *alarmed = trli_frame_alarmed(p->frame, false);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several steps in one launch: the kernel is that of trl_kernel_steps_body.h, and what it computes of a point is what
 * the step's own kernel does. */
#include <stdio.h>

#include "builder_impl.h"
#include "compute_impl.h"
#include "executor_impl.h"
#include "gpu_impl.h"
#include "gpu_pass_plan_impl.h"
#include "gpu_passes_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "team_impl.h"
#include "trace_impl.h"
#include "worker_impl.h"

/* Tiles that are fast on an H100 (docs/gpu.md), by fields, those of most steps first: a thread has about as many
 * registers as a multiprocessor has room for; larger tiles spill many. */
static const trli_emit_steps tiles[] = {
    {1, 4, 72, 40, 8, 1, false}, {1, 3, 70, 40, 8, 1, false}, {1, 2, 36, 36, 6, 2, false}, /* 3-D */
    {2, 3, 48, 40, 5, 1, false}, {2, 2, 52, 40, 5, 1, false}, {3, 2, 48, 40, 5, 1, false}, {1, 8, 128, 64, 8, 1, true},
    {1, 4, 64, 64, 8, 2, true},  {1, 3, 64, 64, 8, 2, true}, /* 2-D */
    {1, 2, 64, 64, 8, 2, true},  {2, 6, 64, 64, 8, 1, true},  {2, 4, 64, 64, 8, 1, true},  {2, 3, 64, 64, 8, 1, true},
    {2, 2, 64, 32, 4, 2, true},  {3, 4, 64, 48, 6, 1, true},  {3, 3, 64, 48, 6, 1, true},  {3, 2, 64, 40, 5, 1, true}};

enum { TILES = sizeof tiles / sizeof *tiles, WAYS_MOST = 4, STEPS_MOST = 8, CELLS_LEAST = 16 };

struct trli_gpu_passes {
    trli_program *program;
    trli_frame *frame;
    trli_gpu_pass_plan plan;
    int steady;      /* steps one at a time since GPUs got their fields */
    int *space;      /* [patches] of the GPU that has a patch; 0: none has */
    trli_team *team; /* of these GPUs; NULL: there is none yet */
    uint32_t spaces; /* its own, a bit each */
    trli_step_task task;
    trl_kernel_array *array; /* of a launch */
    int n;
    const trli_emit_steps *tile[WAYS_MOST];
    trli_gpu_kernel *kernel[WAYS_MOST];
    double *scalar; /* [levels][plan.each] */
};

static const char no_tile[] = "no tile has room for so many or so few fields and levels";

/* ---- what can be done ---- */

/* What is in the way on this machine; NULL: nothing. Launches follow one another on GPUs that read each other's
 * memory. */
static const char *find_obstacle(const trli_model *model)
{
    const trl_devices *devices = trl_workers_devices(model->run->workers);
    if (!model->run->gpu_kernels) return "devices take part that are not GPUs";
    for (int d = 0; d < devices->n; ++d) {
        if (devices->device[d]->kind != TRL_KIND_GPU) return "devices take part that are not GPUs";
        for (int of = 1; of <= devices->n; ++of)
            if (!trli_gpu_reaches(devices->device[d], of)) return "GPUs cannot read each other's memory";
    }
    return NULL;
}

/* Along a periodic axis a tile goes round once, at most, and of a patch behind it a launch reads planes of this one
 * alone. */
static bool fits_grid(const trl_layout *layout, const trli_emit_steps *tile)
{
    const int least[3] = {tile->wide, tile->high, CELLS_LEAST};
    for (int a = 0; a < layout->grid.dim; ++a)
        if (layout->grid.cells[a] < least[a]) return false;
    for (int p = 0; p < layout->npatches; ++p)
        if (layout->grid.dim > 2 && layout->patch[p].cells[2] < tile->steps) return false;
    return true;
}

/* The tile of a number among those of a plan; NULL: there are fewer. */
static const trli_emit_steps *find_tile(const trli_gpu_pass_plan *plan, int number)
{
    const bool flat = plan->program->model->layout->grid.dim == 2;
    for (int t = 0; t < TILES; ++t) {
        if (tiles[t].fields != plan->fields || tiles[t].flat != flat) continue;
        if (plan->nstages > 1 && tiles[t].steps != plan->nstages) continue;
        if (number-- == 0) return &tiles[t];
    }
    return NULL;
}

/* Steps of a tile's launch. */
static int steps_of(const trli_gpu_pass_plan *plan, const trli_emit_steps *tile)
{
    return tile->steps / plan->nstages;
}

/* Arrays of a launch: inputs and results, then planes of other patches. */
static int arrays_of(const trli_gpu_pass_plan *plan)
{
    return plan->launch.reads.nfields * (plan->cut ? 3 : 1) + plan->fields;
}

void trli_gpu_passes_deepen(trli_program *program, const trli_rotation *rotation)
{
    trli_gpu_pass_plan_deepen(program, rotation);
}

/* ---- kernels ---- */

trl_err trli_gpu_passes_text(trli_program *program, const trli_rotation *rotation, int most, char **text,
                             const char **why)
{
    const trli_emit_steps *tile = NULL;
    trli_gpu_pass_plan plan;
    trl_err err = TRL_OK;
    *text = NULL;
    TRL_TRY(trli_gpu_pass_plan_make(program, rotation, &plan, why));
    for (int i = 0; !*why && (i == 0 || (tile && steps_of(&plan, tile) > most)); ++i) tile = find_tile(&plan, i);
    if (!*why && !tile) *why = no_tile;
    if (!*why) err = trli_gpu_pass_plan_write(&plan, tile, text, why);
done:
    trli_gpu_pass_plan_free(&plan);
    return err;
}

static trl_err add_way(trli_gpu_passes *p, const trli_emit_steps *tile, const char **why)
{
    char *text;
    trl_err err;
    TRL_TRY(trli_gpu_pass_plan_write(&p->plan, tile, &text, why));
    if (!text) return TRL_OK;
    err = trli_gpu_kernels_add(p->program->model->run->gpu_kernels, text, arrays_of(&p->plan),
                               tile->steps * p->plan.each, &p->kernel[p->n]);
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
        if (!refused) trli_gpu_kernels_share(kernels, p->kernel[w], trli_gpu_tile_bytes(p->tile[w]), &refused);
        if (refused) *why = refused;
        if (refused) continue;
        p->tile[n] = p->tile[w];
        p->kernel[n++] = p->kernel[w];
    }
    p->n = n;
}

static trl_err add_ways(trli_gpu_passes *p, int most, bool one, const char **why)
{
    const trli_emit_steps *tile;
    trl_err err = TRL_OK;
    *why = no_tile;
    for (int i = 0; p->n < (one ? 1 : WAYS_MOST) && (tile = find_tile(&p->plan, i)); ++i) {
        if (steps_of(&p->plan, tile) > most) continue;
        *why = "the grid is smaller than a tile";
        if (fits_grid(p->program->model->layout, tile)) TRL_TRY(add_way(p, tile, why));
    }
    if (p->n > 0) compile(p, why);
    if (p->n > 0) *why = NULL;
done:
    return err;
}

static trl_err prepare(trli_gpu_passes *p)
{
    trli_program *program = p->program;
    trl_context *ctx = program->model->ctx;
    const trli_step *s = p->plan.stage[p->plan.nstages - 1].step;
    p->task = (trli_step_task){
        .program = program, .step = s, .plan = trli_plan_of(program, s), .run = trli_run_of(program, s)};
    p->scalar = trli_new(ctx, (size_t)STEPS_MOST * (size_t)p->plan.each, sizeof *p->scalar);
    p->array = trli_new(ctx, (size_t)arrays_of(&p->plan), sizeof *p->array);
    p->space = trli_new(ctx, (size_t)program->model->layout->npatches, sizeof *p->space);
    return p->scalar && p->array && p->space ? TRL_OK : trli_no_memory(ctx, NULL, "to take several steps at once");
}

trl_err trli_gpu_passes_create(trli_program *program, trli_frame *frame, const trli_rotation *rotation, int most,
                               bool one, trli_gpu_passes **passes, const char **why)
{
    trl_context *ctx = program->model->ctx;
    trli_gpu_passes *p = NULL;
    trl_err err = TRL_OK;
    *passes = NULL;
    *why = find_obstacle(program->model);
    if (*why) return TRL_OK;
    p = trli_new(ctx, 1, sizeof *p);
    if (!p) return trli_no_memory(ctx, NULL, "to take several steps at once");
    *p = (trli_gpu_passes){.program = program, .frame = frame};
    TRL_TRY(trli_gpu_pass_plan_make(program, rotation, &p->plan, why));
    if (*why) goto done;
    TRL_TRY(prepare(p));
    TRL_TRY(add_ways(p, most, one, why));
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
    trli_gpu_pass_plan_free(&p->plan);
    trli_team_destroy(&p->team);
    trli_free(p->space);
    trli_free(p->array);
    trli_free(p->scalar);
    trli_free(p);
}

int trli_gpu_passes_count(const trli_gpu_passes *p)
{
    return p->n;
}

int trli_gpu_passes_steps(const trli_gpu_passes *p, int way)
{
    return steps_of(&p->plan, p->tile[way]);
}

void trli_gpu_passes_describe(const trli_gpu_passes *p, bool only, size_t size, char *text)
{
    const trli_emit_steps *tile = p->tile[0];
    char what[64];
    snprintf(what, sizeof what, "%s%d steps", only ? "" : "up to ", tile->steps);
    if (p->plan.nstages > 1) snprintf(what, sizeof what, "all %d stages of a step", p->plan.nstages);
    snprintf(text, size, "%s in one launch on the GPU, tiles of %d x %d points that overlap by %d at each side", what,
             tile->wide, tile->high, 2 * tile->steps);
}

/* ---- running ---- */

static int patches_of(const trli_gpu_passes *p)
{
    return p->program->model->layout->npatches;
}

static uint32_t *valid_of(const trli_gpu_passes *p, int field, int patch)
{
    return p->frame->valid[p->program->model->field[field].slot] + (ptrdiff_t)patch * TRLI_POINTS;
}

static bool has(const trli_gpu_passes *p, int field, int patch, int space)
{
    return valid_of(p, field, patch)[TRLI_INNER] >> space & 1;
}

static bool has_room(const trli_gpu_passes *p, int field, int patch, int space)
{
    const int slot = p->program->model->field[field].slot;
    return p->frame->base[space] && p->frame->base[space][slot] && p->frame->base[space][slot][patch];
}

static int result_of(const trli_gpu_passes *p, int r)
{
    return p->task.step->field[p->plan.launch.root[r]];
}

static bool is_at(const trli_gpu_passes *p, int patch, int space)
{
    for (int i = 0; i < p->plan.launch.reads.nfields; ++i)
        if (!has(p, p->plan.launch.reads.field[i], patch, space)) return false;
    for (int i = 0; i < p->plan.nlasting; ++i)
        if (!has(p, p->plan.lasting[i], patch, space)) return false;
    for (int r = 0; r < p->plan.fields; ++r)
        if (!has_room(p, result_of(p, r), patch, space)) return false;
    return true;
}

/* Find the GPUs that have the patches. */
static bool are_there(trli_gpu_passes *p)
{
    const trl_devices *devices = trl_workers_devices(p->program->model->run->workers);
    for (int patch = 0; patch < patches_of(p); ++patch) {
        p->space[patch] = 0;
        for (int space = 1; space <= devices->n && p->space[patch] == 0; ++space)
            if (trli_device_usable(trli_device_of(devices, space)) && is_at(p, patch, space)) p->space[patch] = space;
        if (p->space[patch] == 0) return false;
    }
    return true;
}

bool trli_gpu_passes_ready(trli_gpu_passes *p)
{
    enum { STEADY = 2 }; /* steps after which both levels of what lasts are the same */
    if (!are_there(p)) {
        p->steady = 0;
        return false;
    }
    if (p->plan.nlasting == 0 || p->steady == STEADY) return true;
    ++p->steady;
    return false;
}

void trli_gpu_passes_set_scalars(trli_gpu_passes *p, int step)
{
    for (int g = 0; g < p->plan.nstages; ++g) {
        const trli_reads *reads = &p->plan.stage[g].part.reads;
        double *to = p->scalar + (step * p->plan.nstages + g) * p->plan.each;
        for (int i = 0; i < reads->nscalars; ++i) to[i] = p->frame->scalar[reads->scalar[i]];
    }
}

/* What is read of the planes below a patch, or above: those of the patch there, by the indices of this one. If there is
 * none its own, which nothing follows from. */
static trl_kernel_array beyond(const trli_gpu_passes *p, int field, int patch, bool above)
{
    const trl_layout *layout = p->program->model->layout;
    const int n = patches_of(p), side = above ? patch + 1 : patch - 1, other = (side + n) % n;
    const int of = side == other || layout->grid.periodic[2] ? other : patch;
    const trl_array array = trli_frame_array(p->frame, field, of, p->space[of]);
    trl_kernel_array to;
    trli_native_set_array(&to, &array);
    to.at += (above ? -layout->patch[patch].cells[2] : layout->patch[of].cells[2]) * to.stride[2];
    return to;
}

/* A launch for a patch. */
typedef struct pass {
    trli_gpu_passes *passes;
    int patch, way;
} pass;

static trl_err launch(void *data, const trl_task_args *given, bool *done)
{
    const pass *of = data;
    trli_gpu_passes *p = of->passes;
    const int n = p->plan.launch.reads.nfields;
    trli_step_task task = p->task;
    trl_task_args args = *given;
    trli_gpu_call call;
    (void)done;
    args.frame = p->frame;
    task.patch = of->patch;
    task.box = trli_step_box(p->program, task.step, 0, of->patch);
    trli_gpu_call_in(&args, &task, &p->plan.launch, p->array, p->scalar, &call);
    for (int f = 0; f < 2 * n && p->plan.cut; ++f)
        p->array[n + p->plan.fields + f] = beyond(p, p->plan.launch.reads.field[f % n], of->patch, f >= n);
    call.shape = TRLI_GPU_STEPS;
    call.steps = p->tile[of->way];
    return trli_gpu_launch(p->program->model->run->gpu_kernels, p->kernel[of->way], &call, args.space, args.stream);
}

/* A pass among the calls of the devices, by the host's clock, as the host waits for it. */
static void trace(const trli_gpu_passes *p, int way, int64_t begin_ns)
{
    trl_trace *trace = trli_workers_trace(p->program->model->run->workers);
    const int steps = trli_gpu_passes_steps(p, way);
    char name[TRLI_TRACE_NAME];
    if (!trace) return;
    snprintf(name, sizeof name, "%d step%s in one launch", steps, steps == 1 ? "" : "s");
    for (int patch = 0; patch < patches_of(p); ++patch)
        trli_trace_add_device(trace, p->space[patch] - 1, TRLI_STREAM_COMPUTE, TRLI_TRACE_CALL, name, begin_ns,
                              trli_now_ns());
}

/* The GPUs that have the patches now. */
static trl_err find_team(trli_gpu_passes *p)
{
    uint32_t spaces = 0;
    for (int patch = 0; patch < patches_of(p); ++patch) spaces |= 1u << p->space[patch];
    if (p->team && p->spaces == spaces) return TRL_OK;
    trli_team_destroy(&p->team);
    p->spaces = spaces;
    return trli_team_create(trl_workers_devices(p->program->model->run->workers), spaces, &p->team);
}

/* The launches of a member's patches. */
static trl_err launch_all(trli_gpu_passes *p, int way, int member)
{
    trl_err err = TRL_OK;
    for (int patch = 0; patch < patches_of(p) && err == TRL_OK; ++patch) {
        pass of = {p, patch, way};
        if (trli_team_member(p->team, member)->space == p->space[patch])
            err = trli_team_call(p->team, member, launch, &of);
    }
    return err;
}

/* One round: what patches read of one another is there when it begins, and has been read when the host has waited. */
static trl_err launch_and_wait(trli_gpu_passes *p, int way)
{
    trl_err err = trli_team_begin(p->team);
    for (int m = 0; m < trli_team_members(p->team) && err == TRL_OK; ++m) err = launch_all(p, way, m);
    const trl_err ended = trli_team_end(p->team);
    if (err == TRL_OK) err = ended;
    for (int m = 0; m < trli_team_members(p->team); ++m) {
        const trl_err finished = trli_device_finish(trli_team_member(p->team, m));
        if (err == TRL_OK) err = finished;
    }
    return err;
}

/* What a patch has after a pass. */
static void note(const trli_gpu_passes *p, int patch)
{
    for (int r = 0; r < p->plan.fields; ++r) {
        uint32_t *valid = valid_of(p, result_of(p, r), patch);
        const uint32_t *was = valid_of(p, p->plan.before[r], patch);
        for (int i = 0; i < TRLI_POINTS; ++i)
            if (TRLI_OWNED >> i & 1) valid[i] = was[i] & 1u << p->space[patch];
    }
}

trl_err trli_gpu_passes_run(trli_gpu_passes *p, int way, bool *alarmed)
{
    trl_err err;
    TRL_TRY(find_team(p));
    trli_frame_forget_nonfinite(p->frame);
    const int64_t begin_ns = trli_now_ns();
    TRL_TRY(launch_and_wait(p, way));
    trace(p, way, begin_ns);
    for (int patch = 0; patch < patches_of(p); ++patch) note(p, patch);
    *alarmed = trli_frame_alarmed(p->frame, false);
done:
    return err;
}

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

/* Tiles that are fast on an H100 (docs/gpu.md), by fields, those of most steps first: a thread has about as many
 * registers as a multiprocessor has room for; larger tiles spill many. */
static const trli_emit_steps tiles[] = {
    {1, 4, 72, 40, 8, 1, false}, {1, 3, 70, 40, 8, 1, false}, {1, 2, 36, 36, 6, 2, false}, /* 3-D */
    {2, 3, 48, 40, 5, 1, false}, {2, 2, 52, 40, 5, 1, false}, {3, 2, 48, 40, 5, 1, false},
    {1, 8, 128, 64, 8, 1, true}, {1, 4, 64, 64, 8, 2, true},  {1, 2, 64, 64, 8, 2, true}, /* 2-D */
    {2, 6, 64, 64, 8, 1, true},  {2, 4, 64, 64, 8, 1, true},  {2, 2, 64, 32, 4, 2, true},
    {3, 4, 64, 48, 6, 1, true},  {3, 2, 64, 40, 5, 1, true}};

enum { TILES = sizeof tiles / sizeof *tiles, WAYS_MOST = 4, STEPS_MOST = 8, CELLS_LEAST = 16, FIELDS_MOST = 3 };

struct trli_gpu_passes {
    trli_program *program;
    trli_frame *frame;
    trl_device *device;
    trli_step_part part;      /* of the step, what changes */
    int stepped[FIELDS_MOST]; /* by result of the part: its input that is the level before */
    int nlasting, *lasting;   /* fields: what does not change, both levels */
    int steady;               /* steps one at a time since the GPU got its fields */
    trli_step_task task;
    trl_kernel_array *array; /* of a launch */
    int n;
    const trli_emit_steps *tile[WAYS_MOST];
    trli_gpu_kernel *kernel[WAYS_MOST];
    double *scalar; /* [steps][each] */
    int each;       /* scalars of a step, one at least */
    int way;        /* of the pass under way */
};

/* ---- what can be done ---- */

/* What is in the way on this machine; NULL: nothing. */
static const char *find_obstacle(const trli_model *model)
{
    const trl_devices *devices = trl_workers_devices(model->run->workers);
    if (!model->run->gpu_kernels || devices->n != 1) return "devices take part that are not one GPU";
    return NULL;
}

/* The input that a result is a step later; -1: there is none. */
static int stepped_input(const trli_rotation *rotation, const trli_reads *reads, int result)
{
    int m = 0, i = 0;
    while (m < rotation->n && rotation->next[m] != result) ++m;
    while (m < rotation->n && i < reads->nfields && reads->field[i] != rotation->state[m]) ++i;
    return m < rotation->n && i < reads->nfields ? i : -1;
}

/* Whether a result is what it was a step before, once -0 has become 0. */
static bool lasts(const trli_program *program, const trli_step *s, int r)
{
    const trli_ir *ir = &program->model->ir;
    const trli_node *sum = trli_ir_node(ir, s->value[r]);
    if (sum->op != TRLI_OP_ADD || trli_ir_node(ir, sum->arg[0])->op != TRLI_OP_FIELD) return false;
    const trli_node *change = trli_ir_node(ir, sum->arg[1]);
    if (change->op != TRLI_OP_MUL || trli_ir_node(ir, change->arg[0])->op != TRLI_OP_SCALAR) return false;
    const trli_node *rate = trli_ir_node(ir, change->arg[1]);
    return rate->op == TRLI_OP_CONSTANT && rate->number == 0;
}

static int count_changing(const trli_program *program, const trli_step *s)
{
    int n = 0;
    for (int r = 0; r < s->nout; ++r) n += !lasts(program, s, r);
    return n;
}

/* The one step in which something changes; NULL: there are others. */
static const trli_step *find_step(const trli_program *program)
{
    const trli_step *found = NULL;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        if (!program->plan->step[i].live || (s->kind == TRLI_STEP_KERNEL && count_changing(program, s) == 0)) continue;
        if (found) return NULL;
        found = s;
    }
    return found;
}

/* What is in the way of the program, whose kernels for GPUs have their texts. */
static const char *find_refusal(const trli_program *program, const trli_rotation *rotation, const trli_step *s)
{
    const trli_model *model = program->model;
    if (trl_context_ranks(model->ctx) > 1 || model->layout->nlocal != 1) return "a GPU has several patches";
    if (model->layout->grid.dim < 2) return "the grid is 1-D";
    if (!s || s->kind != TRLI_STEP_KERNEL) return "a step is more than one kernel";
    if (count_changing(program, s) > FIELDS_MOST) return "more than three fields change in a step";
    const trli_step_plan *plan = trli_plan_of(program, s);
    for (int r = 0; r < s->nout; ++r)
        if (stepped_input(rotation, &plan->reads, s->field[r]) < 0) return "a step is more than one kernel";
    if (plan->nslabs > 0 && !trli_run_of(program, s)->gpu_folds) return "ghosts have to be in memory";
    return NULL;
}

/* Along a periodic axis a tile goes round once, at most. */
static bool fits_grid(const trl_layout *layout, const trli_emit_steps *tile)
{
    const int least[3] = {tile->wide, tile->high, CELLS_LEAST};
    for (int a = 0; a < layout->grid.dim; ++a)
        if (layout->grid.cells[a] < least[a]) return false;
    return true;
}

/* The tile of a number among those of a program; NULL: there are fewer. */
static const trli_emit_steps *find_tile(const trli_program *program, const trli_step *s, int number)
{
    const int fields = count_changing(program, s);
    for (int t = 0; t < TILES; ++t)
        if (tiles[t].fields == fields && tiles[t].flat == (program->model->layout->grid.dim == 2) && number-- == 0)
            return &tiles[t];
    return NULL;
}

void trli_gpu_passes_deepen(trli_program *program, const trli_rotation *rotation)
{
    trli_model_field *field = program->model->field;
    const trli_step *s = find_step(program);
    if (!s || s->kind != TRLI_STEP_KERNEL || count_changing(program, s) > FIELDS_MOST) return;
    for (int m = 0; m < 2 * rotation->n; ++m)
        for (int n = 0; n < 2 * rotation->n; ++n) {
            trli_model_field *to = &field[m % 2 ? rotation->next[m / 2] : rotation->state[m / 2]];
            const trli_model_field *of = &field[n % 2 ? rotation->next[n / 2] : rotation->state[n / 2]];
            for (int a = 0; a < 3 && to->location == of->location; ++a) {
                if (to->ghost_lo[a] < of->ghost_lo[a]) to->ghost_lo[a] = of->ghost_lo[a];
                if (to->ghost_hi[a] < of->ghost_hi[a]) to->ghost_hi[a] = of->ghost_hi[a];
            }
        }
}

/* ---- kernels ---- */

/* What changes in a step as one part, which keeps nothing but its lists. */
static trl_err list_part(const trli_program *program, const trli_rotation *rotation, const trli_step *s,
                         trli_step_part *part, int stepped[FIELDS_MOST])
{
    trl_context *ctx = program->model->ctx;
    const trli_step_plan *plan = trli_plan_of(program, s);
    *part = (trli_step_part){.root = trli_new(ctx, (size_t)s->nout, sizeof *part->root),
                             .value = trli_new(ctx, (size_t)s->nout, sizeof *part->value),
                             .slab = trli_new(ctx, (size_t)plan->nslabs + 1, sizeof *part->slab),
                             .reads = plan->reads};
    if (!part->root || !part->value || !part->slab) return trli_no_memory(ctx, NULL, "to take several steps at once");
    for (int r = 0; r < s->nout; ++r) {
        if (lasts(program, s, r)) continue;
        stepped[part->nroots] = stepped_input(rotation, &plan->reads, s->field[r]);
        part->value[part->nroots] = s->value[r];
        part->root[part->nroots++] = r;
    }
    for (int k = 0; k < plan->nslabs; ++k)
        if (plan->slab[k].of_row) part->slab[part->nslabs++] = k;
    return TRL_OK;
}

static void free_part(trli_step_part *part)
{
    trli_free(part->root);
    trli_free(part->value);
    trli_free(part->slab);
}

static const char *refuse_shapes(const trli_emit_request *request)
{
    for (int r = 0; r < request->nroots; ++r)
        if (request->shape[request->stepped[r]] != request->shape[request->stepped[0]] ||
            request->shape[request->reads->nfields + r] != request->shape[request->stepped[0]])
            return "fields do not lie in memory alike";
    return NULL;
}

static trl_err write_text(trli_program *program, const trli_step *s, const trli_step_part *part, const int *stepped,
                          const trli_emit_steps *tile, char **text, const char **why)
{
    trli_model *model = program->model;
    trli_emit_request request = {0};
    trli_emitted emitted = {0};
    trl_err err;
    *text = NULL;
    TRL_TRY(trli_gpu_request_of_part(program, s, part, &request));
    request.steps = tile;
    request.stepped = stepped;
    *why = refuse_shapes(&request);
    if (*why) goto done;
    TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &request, &emitted));
    *text = emitted.text;
    if (!emitted.text) *why = emitted.why;
done:
    trli_free((void *)request.layer);
    trli_free((void *)request.shape);
    return err;
}

trl_err trli_gpu_passes_text(trli_program *program, const trli_rotation *rotation, int most, char **text,
                             const char **why)
{
    const trli_step *s = find_step(program);
    const trli_emit_steps *tile = NULL;
    trli_step_part part = {0};
    int stepped[FIELDS_MOST];
    trl_err err = TRL_OK;
    *text = NULL;
    *why = find_refusal(program, rotation, s);
    for (int i = 0; !*why && (i == 0 || (tile && tile->steps > most)); ++i) tile = find_tile(program, s, i);
    if (!*why && !tile) *why = "no tile has so few";
    if (*why) return TRL_OK;
    TRL_TRY(list_part(program, rotation, s, &part, stepped));
    err = write_text(program, s, &part, stepped, tile, text, why);
done:
    free_part(&part);
    return err;
}

static trl_err add_way(trli_gpu_passes *p, const trli_emit_steps *tile, const char **why)
{
    char *text;
    trl_err err;
    TRL_TRY(write_text(p->program, p->task.step, &p->part, p->stepped, tile, &text, why));
    if (!text) return TRL_OK;
    err = trli_gpu_kernels_add(p->program->model->run->gpu_kernels, text, p->part.reads.nfields + p->part.nroots,
                               tile->steps * p->each, &p->kernel[p->n]);
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

static trl_err add_ways(trli_gpu_passes *p, int most, bool one, const char **why)
{
    const trli_emit_steps *tile;
    trl_err err = TRL_OK;
    *why = "the grid is smaller than a tile";
    for (int i = 0; p->n < (one ? 1 : WAYS_MOST) && (tile = find_tile(p->program, p->task.step, i)); ++i)
        if (tile->steps <= most && fits_grid(p->program->model->layout, tile)) TRL_TRY(add_way(p, tile, why));
    if (p->n > 0) compile(p, why);
    if (p->n > 0) *why = NULL;
done:
    return err;
}

static trl_err list_lasting(trli_gpu_passes *p, const trli_rotation *rotation, const trli_step *s)
{
    trl_context *ctx = p->program->model->ctx;
    p->lasting = trli_new(ctx, 2 * (size_t)rotation->n, sizeof *p->lasting);
    if (!p->lasting) return trli_no_memory(ctx, NULL, "to take several steps at once");
    for (int m = 0; m < rotation->n; ++m) {
        bool changes = false;
        for (int r = 0; r < p->part.nroots; ++r) changes |= s->field[p->part.root[r]] == rotation->next[m];
        if (changes) continue;
        p->lasting[p->nlasting++] = rotation->state[m];
        p->lasting[p->nlasting++] = rotation->next[m];
    }
    return TRL_OK;
}

static trl_err prepare(trli_gpu_passes *p, const trli_rotation *rotation, const trli_step *s)
{
    trli_program *program = p->program;
    trl_context *ctx = program->model->ctx;
    trl_err err = TRL_OK;
    p->device = trl_workers_devices(program->model->run->workers)->device[0];
    TRL_TRY(list_part(program, rotation, s, &p->part, p->stepped));
    TRL_TRY(list_lasting(p, rotation, s));
    p->each = p->part.reads.nscalars > 0 ? p->part.reads.nscalars : 1;
    p->task = (trli_step_task){.program = program,
                               .step = s,
                               .plan = trli_plan_of(program, s),
                               .run = trli_run_of(program, s),
                               .box = trli_step_box(program, s, 0, 0)};
    p->scalar = trli_new(ctx, (size_t)STEPS_MOST * (size_t)p->each, sizeof *p->scalar);
    p->array = trli_new(ctx, (size_t)(p->part.reads.nfields + s->nout), sizeof *p->array);
    if (!p->scalar || !p->array) err = trli_no_memory(ctx, NULL, "to take several steps at once");
done:
    return err;
}

trl_err trli_gpu_passes_create(trli_program *program, trli_frame *frame, const trli_rotation *rotation, int most,
                               bool one, trli_gpu_passes **passes, const char **why)
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
    *p = (trli_gpu_passes){.program = program, .frame = frame};
    TRL_TRY(prepare(p, rotation, s));
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
    free_part(&p->part);
    trli_free(p->lasting);
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

static bool has(const trli_gpu_passes *p, int field)
{
    return valid_of(p, field)[TRLI_INNER] >> p->device->space & 1;
}

static bool has_room(const trli_gpu_passes *p, int field)
{
    const int space = p->device->space, slot = p->program->model->field[field].slot;
    return p->frame->base[space] && p->frame->base[space][slot] && p->frame->base[space][slot][0];
}

static bool is_there(const trli_gpu_passes *p)
{
    for (int i = 0; i < p->part.reads.nfields; ++i)
        if (!has(p, p->part.reads.field[i])) return false;
    for (int i = 0; i < p->nlasting; ++i)
        if (!has(p, p->lasting[i])) return false;
    for (int r = 0; r < p->part.nroots; ++r)
        if (!has_room(p, p->task.step->field[p->part.root[r]])) return false;
    return true;
}

bool trli_gpu_passes_ready(trli_gpu_passes *p)
{
    enum { STEADY = 2 }; /* steps after which both levels of what lasts are the same */
    if (!trli_device_usable(p->device) || !is_there(p)) {
        p->steady = 0;
        return false;
    }
    if (p->nlasting == 0 || p->steady == STEADY) return true;
    ++p->steady;
    return false;
}

void trli_gpu_passes_set_scalars(trli_gpu_passes *p, int step)
{
    const trli_reads *reads = &p->part.reads;
    for (int i = 0; i < reads->nscalars; ++i) p->scalar[step * p->each + i] = p->frame->scalar[reads->scalar[i]];
}

static trl_err launch(void *data, const trl_task_args *args, bool *done)
{
    trli_gpu_passes *p = data;
    trli_gpu_call call;
    (void)done;
    trli_gpu_call_in(args, &p->task, &p->part, p->array, p->scalar, &call);
    call.shape = TRLI_GPU_STEPS;
    call.steps = p->tile[p->way];
    return trli_gpu_launch(p->program->model->run->gpu_kernels, p->kernel[p->way], &call, args->space, args->stream);
}

trl_err trli_gpu_passes_run(trli_gpu_passes *p, int way, bool *alarmed)
{
    const trl_task_args args = {.chunks = 1, .space = p->device->space, .frame = p->frame};
    trl_err err;
    p->way = way;
    trli_frame_forget_nonfinite(p->frame);
    TRL_TRY(trli_device_call_now(p->device, launch, p, &args));
    for (int r = 0; r < p->part.nroots; ++r) {
        uint32_t *valid = valid_of(p, p->task.step->field[p->part.root[r]]);
        const uint32_t *was = valid_of(p, p->part.reads.field[p->stepped[r]]);
        for (int i = TRLI_INNER; i <= TRLI_RIM; ++i) valid[i] = was[i] & 1u << p->device->space;
    }
    *alarmed = trli_frame_alarmed(p->frame, false);
done:
    return err;
}

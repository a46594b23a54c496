/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A step is one kernel, or one for each stage of its method, which reads the results of the stage before as a level,
 * and else what lies in memory: the start of the step, and what does not change. Of a step of several stages a launch
 * takes one. */
#include "compute_impl.h"
#include "gpu_impl.h"
#include "gpu_pass_plan_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "pipeline_impl.h"

static trl_err no_memory(const trli_program *program)
{
    return trli_no_memory(program->model->ctx, NULL, "to take several steps at once");
}

static int place_of(int n, const int *list, int field)
{
    int i = 0;
    while (i < n && list[i] != field) ++i;
    return i < n ? i : -1;
}

/* ---- what changes ---- */

/* Whether an input is read at neighbours along an axis, from the first of these on. */
static bool is_read_beside(const trli_reads *reads, int input, int first)
{
    const trl_offsets hull = trl_footprint_hull(&reads->footprint[input]);
    for (int a = first; a < 3; ++a)
        if (hull.lo[a] < 0 || hull.hi[a] > 0) return true;
    return false;
}

/* Whether a result is what it was a step before, once -0 has become 0, and read from memory. What is read at several
 * points goes with the others, as shared memory is faster, if there is room. */
static bool lasts(const trli_program *program, const trli_step *s, int r)
{
    const trli_ir *ir = &program->model->ir;
    const trli_node *sum = trli_ir_node(ir, s->value[r]);
    if (sum->op != TRLI_OP_ADD || trli_ir_node(ir, sum->arg[0])->op != TRLI_OP_FIELD) return false;
    const trli_node *change = trli_ir_node(ir, sum->arg[1]);
    if (change->op != TRLI_OP_MUL || trli_ir_node(ir, change->arg[0])->op != TRLI_OP_SCALAR) return false;
    const trli_node *rate = trli_ir_node(ir, change->arg[1]);
    if (rate->op != TRLI_OP_CONSTANT || rate->number != 0) return false;
    const trli_reads *reads = &trli_plan_of(program, s)->reads;
    const int input = place_of(reads->nfields, reads->field, trli_ir_node(ir, sum->arg[0])->index);
    return s->nout > TRLI_GPU_PASS_FIELDS || input < 0 || !is_read_beside(reads, input, 0);
}

static int count_changing(const trli_program *program, const trli_step *s)
{
    int n = 0;
    for (int r = 0; r < s->nout; ++r) n += !lasts(program, s, r);
    return n;
}

/* What it brings a pass reads where it lies. */
static bool only_exchanges(const trli_program *program, const trli_step *s)
{
    return s->kind == TRLI_STEP_FILL && trli_plan_of(program, s)->nslabs == 0;
}

/* The kernels of a step. If there is one in which something changes, those in which nothing does are left out. */
static const char *find_stages(trli_gpu_pass_plan *plan)
{
    const trli_program *program = plan->program;
    const trli_step *changing[TRLI_GPU_PASS_STAGES];
    int nchanging = 0;
    plan->nstages = 0;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        if (!program->plan->step[i].live || only_exchanges(program, s)) continue;
        if (s->kind != TRLI_STEP_KERNEL) return "a step is more than kernels";
        if (plan->nstages == TRLI_GPU_PASS_STAGES) return "a step has more than four kernels";
        if (count_changing(program, s) > 0) changing[nchanging++] = s;
        plan->stage[plan->nstages++].step = s;
    }
    if (nchanging == 0) return "nothing changes";
    if (nchanging == 1) plan->stage[0].step = changing[0];
    if (nchanging == 1) plan->nstages = 1;
    plan->fields = plan->nstages == 1 ? count_changing(program, changing[0]) : plan->stage[0].step->nout;
    return plan->fields > TRLI_GPU_PASS_FIELDS ? "more than three fields change in a step" : NULL;
}

void trli_gpu_pass_plan_deepen(trli_program *program, const trli_rotation *rotation)
{
    trli_model_field *field = program->model->field;
    trli_gpu_pass_plan plan = {.program = program};
    if (find_stages(&plan)) return;
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

/* ---- stages ---- */

/* What a part reads, with its layers. */
static trl_err find_reads(const trli_gpu_pass_plan *plan, const trli_step *s, trli_step_part *part)
{
    trli_model *model = plan->program->model;
    trli_ir_value *all = trli_new(model->ctx, (size_t)(part->nroots + part->nslabs), sizeof *all);
    if (!all) return no_memory(plan->program);
    for (int r = 0; r < part->nroots; ++r) all[r] = part->value[r];
    for (int k = 0; k < part->nslabs; ++k)
        all[part->nroots + k] = trli_plan_of(plan->program, s)->slab[part->slab[k]].value;
    const trl_err err =
        trli_reads_find_in_depth(&model->ir, &model->walk, part->nroots + part->nslabs, all, &part->reads);
    trli_free(all);
    return err;
}

/* What changes in a step as one part. */
static trl_err list_part(const trli_gpu_pass_plan *plan, trli_gpu_stage *stage)
{
    const trli_step *s = stage->step;
    trl_context *ctx = plan->program->model->ctx;
    const trli_step_plan *of = trli_plan_of(plan->program, s);
    trli_step_part *part = &stage->part;
    *part = (trli_step_part){.root = trli_new(ctx, (size_t)s->nout, sizeof *part->root),
                             .value = trli_new(ctx, (size_t)s->nout, sizeof *part->value),
                             .slab = trli_new(ctx, (size_t)of->nslabs + 1, sizeof *part->slab)};
    trl_err err = TRL_OK;
    if (!part->root || !part->value || !part->slab) return no_memory(plan->program);
    for (int r = 0; r < s->nout; ++r) {
        if (plan->nstages == 1 && lasts(plan->program, s, r)) continue;
        part->value[part->nroots] = s->value[r];
        part->root[part->nroots++] = r;
    }
    for (int k = 0; k < of->nslabs; ++k)
        if (of->slab[k].of_row && of->slab[k].kind != TRLI_SLAB_MODIFIER) part->slab[part->nslabs++] = k;
    TRL_TRY(find_reads(plan, s, part));
    const size_t ninputs = (size_t)part->reads.nfields + 1;
    stage->number = trli_new(ctx, ninputs, sizeof *stage->number);
    stage->array = trli_new(ctx, ninputs, sizeof *stage->array);
    stage->alike = trli_new(ctx, ninputs, sizeof *stage->alike);
    if (!stage->number || !stage->array || !stage->alike) err = no_memory(plan->program);
done:
    return err;
}

static const char *find_before(trli_gpu_pass_plan *plan, const trli_rotation *rotation)
{
    const trli_gpu_stage *last = &plan->stage[plan->nstages - 1];
    for (int r = 0; r < last->part.nroots; ++r) {
        const int m = place_of(rotation->n, rotation->next, last->step->field[last->part.root[r]]);
        if (m < 0) return "a step is more than its stages";
        plan->before[r] = rotation->state[m];
    }
    return NULL;
}

/* Whether a stage reads the points at the other side of an axis in place of the ghosts of its input i. */
static bool goes_round(const trli_gpu_pass_plan *plan, const trli_gpu_stage *stage, int i, int axis)
{
    const trli_step_plan *of = trli_plan_of(plan->program, stage->step);
    const int field = stage->part.reads.field[i], input = place_of(of->ninputs, of->input, field);
    for (int k = 0; k < stage->part.nslabs; ++k) {
        const trli_slab *slab = &of->slab[stage->part.slab[k]];
        if (slab->field == field && slab->axis == axis) return true;
    }
    return trli_run_of(plan->program, stage->step)->gpu_round && input >= 0 && of->round[input] >> axis & 1;
}

/* Whether a stage reads ghosts beyond periodic sides: no launch sets them. */
static bool reads_images(const trli_gpu_pass_plan *plan, const trli_gpu_stage *stage)
{
    const trl_layout *layout = plan->program->model->layout;
    const trli_reads *reads = &stage->part.reads;
    for (int i = 0; i < reads->nfields; ++i) {
        const trl_offsets hull = trl_footprint_hull(&reads->footprint[i]);
        for (int a = 0; a < 3; ++a)
            if (layout->grid.periodic[a] && layout->counts[a] == 1 && (hull.lo[a] < 0 || hull.hi[a] > 0) &&
                !goes_round(plan, stage, i, a))
                return true;
    }
    return false;
}

/* Which fields of a level a stage reads. What earlier stages made, the one before left out, is nowhere. */
static const char *find_numbers(trli_gpu_pass_plan *plan, int g)
{
    trli_gpu_stage *stage = &plan->stage[g];
    if (stage->part.nroots != plan->fields) return "stages keep more than one value of a field";
    for (int i = 0; i < stage->part.reads.nfields; ++i) {
        const int field = stage->part.reads.field[i];
        stage->number[i] = g == 0 ? place_of(plan->fields, plan->before, field) : -1;
        for (int of = 0; of < g; ++of)
            for (int r = 0; r < plan->fields; ++r) {
                if (plan->stage[of].step->field[plan->stage[of].part.root[r]] != field) continue;
                if (of < g - 1) return "a stage reads others than the one before";
                stage->number[i] = r;
            }
    }
    if ((trli_plan_of(plan->program, stage->step)->nslabs > 0 && !trli_run_of(plan->program, stage->step)->gpu_folds) ||
        reads_images(plan, stage))
        return "ghosts have to be in memory";
    return NULL;
}

/* ---- what lies in memory ---- */

static int array_of(trli_gpu_pass_plan *plan, int field)
{
    trli_reads *reads = &plan->launch.reads;
    const int i = place_of(reads->nfields, reads->field, field);
    if (i >= 0) return i;
    reads->field[reads->nfields] = field;
    return reads->nfields++;
}

static const char *list_arrays(trli_gpu_pass_plan *plan)
{
    const trli_gpu_stage *last = &plan->stage[plan->nstages - 1];
    const int like = last->step->field[last->part.root[0]];
    const trli_model *model = plan->program->model;
    for (int r = 0; r < plan->fields; ++r) {
        (void)array_of(plan, plan->before[r]);
        if (!trli_gpu_lie_alike(model, like, plan->before[r]) ||
            !trli_gpu_lie_alike(model, like, last->step->field[last->part.root[r]]))
            return "fields do not lie in memory alike";
    }
    for (int g = 0; g < plan->nstages; ++g) {
        const trli_gpu_stage *stage = &plan->stage[g];
        for (int i = 0; i < stage->part.reads.nfields; ++i) {
            stage->alike[i] = trli_gpu_lie_alike(model, like, stage->part.reads.field[i]);
            if (stage->number[i] >= 0) continue;
            stage->array[i] = array_of(plan, stage->part.reads.field[i]);
            if (plan->cut && is_read_beside(&stage->part.reads, i, 2))
                return "of other patches they read neighbours of what does not change";
        }
        if (plan->each < stage->part.reads.nscalars) plan->each = stage->part.reads.nscalars;
    }
    plan->launch.nroots = plan->fields;
    plan->launch.root = last->part.root;
    return NULL;
}

static trl_err make_room(trli_gpu_pass_plan *plan, const trli_rotation *rotation)
{
    trl_context *ctx = plan->program->model->ctx;
    size_t n = TRLI_GPU_PASS_FIELDS;
    for (int g = 0; g < plan->nstages; ++g) n += (size_t)plan->stage[g].part.reads.nfields;
    plan->launch.reads.field = trli_new(ctx, n, sizeof *plan->launch.reads.field);
    plan->lasting = trli_new(ctx, 2 * (size_t)rotation->n, sizeof *plan->lasting);
    return plan->launch.reads.field && plan->lasting ? TRL_OK : no_memory(plan->program);
}

static void list_lasting(trli_gpu_pass_plan *plan, const trli_rotation *rotation)
{
    for (int m = 0; m < rotation->n; ++m) {
        if (place_of(plan->fields, plan->before, rotation->state[m]) >= 0) continue;
        plan->lasting[plan->nlasting++] = rotation->state[m];
        plan->lasting[plan->nlasting++] = rotation->next[m];
    }
}

/* How the grid is cut. */
static const char *find_cut(trli_gpu_pass_plan *plan)
{
    const trl_layout *layout = plan->program->model->layout;
    if (layout->grid.dim < 2) return "the grid is 1-D";
    if (trl_context_ranks(plan->program->model->ctx) > 1) return "ranks exchange values in each";
    if (layout->counts[0] > 1 || layout->counts[1] > 1) return "patches cut the grid along other axes than z";
    plan->cut = layout->npatches > 1;
    return NULL;
}

trl_err trli_gpu_pass_plan_make(trli_program *program, const trli_rotation *rotation, trli_gpu_pass_plan *plan,
                                const char **why)
{
    trl_err err = TRL_OK;
    *plan = (trli_gpu_pass_plan){.program = program, .each = 1};
    *why = find_cut(plan);
    if (!*why) *why = find_stages(plan);
    if (*why) return TRL_OK;
    for (int g = 0; g < plan->nstages; ++g) TRL_TRY(list_part(plan, &plan->stage[g]));
    TRL_TRY(make_room(plan, rotation));
    *why = find_before(plan, rotation);
    for (int g = 0; g < plan->nstages && !*why; ++g) *why = find_numbers(plan, g);
    if (!*why) *why = list_arrays(plan);
    if (!*why) list_lasting(plan, rotation);
done:
    return err;
}

void trli_gpu_pass_plan_free(trli_gpu_pass_plan *plan)
{
    for (int g = 0; g < plan->nstages; ++g) {
        trli_gpu_stage *stage = &plan->stage[g];
        void *blocks[] = {stage->part.root, stage->part.value, stage->part.slab,
                          stage->number,    stage->array,      stage->alike};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) trli_free(blocks[i]);
        trli_reads_free(&stage->part.reads);
    }
    trli_free(plan->launch.reads.field);
    trli_free(plan->lasting);
    *plan = (trli_gpu_pass_plan){.nstages = 0};
}

/* ---- text ---- */

static trl_err write_stage(const trli_gpu_pass_plan *plan, const trli_emit_steps *tile, int g, FILE *out,
                           const char **why)
{
    const trli_gpu_stage *stage = &plan->stage[g];
    trli_model *model = plan->program->model;
    const trli_emit_level level = {.stage = g,
                                   .nstages = plan->nstages,
                                   .number = stage->number,
                                   .array = stage->array,
                                   .alike = stage->alike,
                                   .narrays = plan->launch.reads.nfields + plan->fields,
                                   .nreads = plan->launch.reads.nfields,
                                   .cut = plan->cut,
                                   .each = plan->each};
    trli_emit_request request = {0};
    trli_emitted emitted = {0};
    trl_err err;
    TRL_TRY(trli_gpu_request_of_part(plan->program, stage->step, &stage->part, &request));
    request.steps = tile;
    request.wide |= plan->cut; /* places in planes below a patch are negative */
    request.level = &level;
    TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &request, &emitted));
    if (emitted.text)
        fputs(emitted.text, out);
    else
        *why = emitted.why;
done:
    trli_free(emitted.text);
    trli_free((void *)request.layer);
    trli_free((void *)request.shape);
    return err;
}

trl_err trli_gpu_pass_plan_write(const trli_gpu_pass_plan *plan, const trli_emit_steps *tile, char **text,
                                 const char **why)
{
    trli_memstream out = {0};
    trl_err err = TRL_OK;
    *text = NULL;
    *why = NULL;
    if (!trli_memstream_open(plan->program->model->ctx, &out)) return no_memory(plan->program);
    for (int g = 0; g < plan->nstages && !*why; ++g) TRL_TRY(write_stage(plan, tile, g, out.out, why));
    if (*why) goto done;
    if (!trli_memstream_close(&out)) TRL_TRY(no_memory(plan->program));
    *text = out.text;
    out.text = NULL;
done:
    trli_memstream_discard(&out);
    return err;
}

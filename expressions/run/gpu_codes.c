/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which kernels GPUs have: those of the parts of steps, of slabs that do not follow within them, and of reductions. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compute_impl.h"
#include "executor_impl.h"
#include "found_scalars_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "late_scalars_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "slot_plan_impl.h"
#include "statistics_impl.h"
#include "told_sums_impl.h"

/* Whether a kernel computes points that are a field's own, along an axis, on all patches of this rank. */
static bool stays_inside(const trli_program *program, const trli_step *s, int field, int axis)
{
    const trl_layout *layout = program->model->layout;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_box box = trli_step_box(program, s, 0, p);
        const trl_box owned = trl_patch_owned(layout, &layout->patch[p], program->model->field[field].location);
        if (box.lo[axis] < owned.lo[axis] || box.hi[axis] > owned.hi[axis]) return false;
    }
    return true;
}

/* Whether a slab reads nothing but what its kernel reads, too. */
static bool reads_the_same(const trli_slab *slab, const trli_reads *of)
{
    for (int i = 0; i < slab->reads.nfields; ++i) {
        bool found = false;
        for (int k = 0; k < of->nfields; ++k) found |= of->field[k] == slab->reads.field[i];
        if (!found) return false;
    }
    for (int i = 0; i < slab->reads.nscalars; ++i) {
        bool found = false;
        for (int k = 0; k < of->nscalars; ++k) found |= of->scalar[k] == slab->reads.scalar[i];
        if (!found) return false;
    }
    return true;
}

/* Cells along a slab's axis with which its ghosts follow from none beyond the other side: as many as an image is from
 * its side, or so many that what is read from a ghost is before that side. */
static trl_gidx cells_needed(const trli_slab *slab)
{
    int reach = 0;
    if (slab->kind == TRLI_SLAB_IMAGE) return slab->layer;
    for (int i = 0; slab->kind == TRLI_SLAB_KERNEL && i < slab->reads.nfields; ++i) {
        const trl_offsets read = trl_footprint_hull(&slab->reads.footprint[i]);
        if (reach < -read.lo[slab->axis]) reach = -read.lo[slab->axis];
        if (reach < read.hi[slab->axis]) reach = read.hi[slab->axis];
    }
    return reach - slab->layer + 1;
}

/* Whether a kernel can compute its ghosts: fields have their sides at the same points, as all have along periodic axes,
 * and there are enough of these that no ghost follows from another. */
static bool may_fold(const trli_program *program, const trli_step *s)
{
    const trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    const trli_slab *first = NULL;
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        if (slab->kind == TRLI_SLAB_MODIFIER || !trli_slab_is_within(model, slab)) return false;
        if (!first && slab->kind != TRLI_SLAB_IMAGE) first = slab;
        if (first && slab->kind != TRLI_SLAB_IMAGE &&
            model->field[slab->field].location != model->field[first->field].location)
            return false;
        if (model->layout->grid.cells[slab->axis] < cells_needed(slab)) return false;
        if (!stays_inside(program, s, slab->field, slab->axis)) return false;
    }
    return p->nslabs > 0;
}

/* Launches depend on these. */
static void note_scalars(const trli_model *model, const trli_reads *reads)
{
    for (int i = 0; i < reads->nscalars; ++i) model->run->gpu_reads[reads->scalar[i]] = true;
}

/* Whether bytes from the lowest point of any array to the last one of another need more than 32 bits. */
static bool has_wide_arrays(const trli_model *model)
{
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems have them, too */
    const long long most = 1 << 14;
#else
    const long long most = UINT32_MAX;
#endif
    const int n = model->nfields * model->slots->kinds.n;
    trl_lidx low[3] = {0, 0, 0};
    for (int i = 0; i < n; ++i)
        for (int a = 0; a < 3; ++a)
            if (low[a] > model->slots->geometry[i].held.lo[a]) low[a] = model->slots->geometry[i].held.lo[a];
    for (int i = 0; i < n; ++i) {
        const trl_array *array = &model->slots->geometry[i];
        long long values = 0;
        for (int a = 0; a < 3; ++a) values += ((long long)array->held.hi[a] - low[a]) * array->stride[a];
        if (values * (long long)sizeof(double) > most) return true;
    }
    return false;
}

/* Axes beyond whose sides a kernel reads a field at the other side, a bit each. */
static unsigned axes_round(const trli_program *program, const trli_step *s, int field)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    for (int i = 0; i < p->ninputs && p->round; ++i)
        if (p->input[i] == field) return p->round[i];
    return 0;
}

/* The layers beyond such sides that a part reads of its input i; layer: NULL, or where they go. Their number. */
static int layers_round(const trli_program *program, const trli_step *s, const trli_step_part *part, int i,
                        trli_emit_layer *layer)
{
    const int field = part->reads.field[i];
    const unsigned axes = axes_round(program, s, field);
    const trl_offsets hull = trl_footprint_hull(&part->reads.footprint[i]);
    int n = 0;
    for (int a = 0; a < 3; ++a)
        for (int side = 0; side < 2 && axes >> a & 1; ++side)
            for (int of = 1; of <= (side ? hull.hi[a] : -hull.lo[a]); ++of, ++n)
                if (layer)
                    layer[n] = (trli_emit_layer){.field = field,
                                                 .axis = a,
                                                 .side = side,
                                                 .layer = of,
                                                 .image = true,
                                                 .value = trli_ir_field(&program->model->ir, field)};
    return n;
}

/* A part, which computes ghosts, or reads others at the other side, if there is a list for them. */
static trli_emit_request request_of(const trli_program *program, const trli_step *s, const trli_step_part *part,
                                    bool folds, bool round, trli_emit_layer *layer)
{
    const trli_model *model = program->model;
    trli_emit_request wanted = {.disabled_passes = model->settings.disabled_passes,
                                .reads = &part->reads,
                                .nroots = part->nroots,
                                .roots = part->value,
                                .check_finite = s->variable != NULL,
                                .found = model->run->found,
                                .wide = model->run->gpu_wide,
                                .layer = layer};
    for (int k = 0; layer && folds && k < part->nslabs; ++k) {
        const trli_slab *slab = &trli_plan_of(program, s)->slab[part->slab[k]];
        layer[wanted.nlayers++] = (trli_emit_layer){.field = slab->field,
                                                    .axis = slab->axis,
                                                    .side = slab->side,
                                                    .layer = slab->layer,
                                                    .image = slab->kind == TRLI_SLAB_IMAGE,
                                                    .value = slab->value};
    }
    for (int i = 0; layer && round && i < part->reads.nfields; ++i)
        wanted.nlayers += layers_round(program, s, part, i, layer + wanted.nlayers);
    return wanted;
}

/* Room for the ghosts of a part. */
static trl_err list_layers(const trli_program *program, const trli_step *s, const trli_step_part *part,
                           trli_emit_layer **layer)
{
    int n = part->nslabs + 1;
    for (int i = 0; i < part->reads.nfields; ++i) n += layers_round(program, s, part, i, NULL);
    *layer = trli_new(program->model->ctx, (size_t)n, sizeof **layer);
    return *layer ? TRL_OK : trli_no_memory(program->model->ctx, NULL, "for kernel '%s'", s->label);
}

bool trli_gpu_lie_alike(const trli_model *model, int a, int b)
{
    const size_t n = (size_t)model->slots->kinds.n;
    const trl_array *of_a = &model->slots->geometry[(size_t)a * n], *of_b = &model->slots->geometry[(size_t)b * n];
    for (size_t k = 0; k < n; ++k)
        if (memcmp(of_a[k].stride, of_b[k].stride, sizeof of_a->stride) != 0) return false;
    return true;
}

/* By array of a part the first that has the same strides: one place serves them. */
static trl_err list_shapes(const trli_program *program, const trli_step *s, const trli_step_part *part, int **shape)
{
    const trli_model *model = program->model;
    const int ninputs = part->reads.nfields, n = ninputs + part->nroots;
    int *field = trli_new(model->ctx, (size_t)n, sizeof *field);
    *shape = trli_new(model->ctx, (size_t)n, sizeof **shape);
    if (!field || !*shape) {
        trli_free(field);
        trli_free(*shape);
        return trli_no_memory(model->ctx, NULL, "for kernel '%s'", s->label);
    }
    for (int i = 0; i < n; ++i) {
        field[i] = i < ninputs ? part->reads.field[i] : s->field[part->root[i - ninputs]];
        int k = 0;
        while (!trli_gpu_lie_alike(model, field[k], field[i])) ++k;
        (*shape)[i] = k;
    }
    trli_free(field);
    return TRL_OK;
}

/* Whether a part has a text with these ghosts. */
static trl_err check_part(const trli_program *program, const trli_step *s, const trli_step_part *part, bool folds,
                          bool round, bool *has)
{
    trli_model *model = program->model;
    trli_emit_layer *layer;
    const char *why = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_layers(program, s, part, &layer));
    const trli_emit_request wanted = request_of(program, s, part, folds, round, layer);
    err = trli_emit_check(&trli_dialect_cuda, &model->ir, &model->walk, &wanted, &why);
    trli_free(layer);
    *has = why == NULL;
done:
    return err;
}

/* TRELLIS_GPU_IMAGES=off: kernels read nothing off the axes at the other side; none: nor do they compute ghosts. */
static bool images_are(const char *what)
{
    const char *text = getenv("TRELLIS_GPU_IMAGES");
    return text && strcmp(text, what) == 0;
}

/* Whether all parts compute their ghosts: ghosts are in memory for all or for none. */
static trl_err find_folds(const trli_program *program, const trli_step *s, bool *folds)
{
    const trli_parts *parts = trli_gpu_parts_of(program, s);
    trl_err err = TRL_OK;
    *folds = may_fold(program, s) && !images_are("none");
    for (int i = 0; i < parts->n && *folds; ++i) {
        const trli_step_part *part = &parts->part[i];
        for (int k = 0; k < part->nslabs; ++k)
            *folds &= reads_the_same(&trli_plan_of(program, s)->slab[part->slab[k]], &part->reads);
        if (*folds) TRL_TRY(check_part(program, s, part, true, false, folds));
    }
done:
    return err;
}

/* Whether all parts read what lies beyond some periodic sides at the other sides. */
static trl_err find_round(const trli_program *program, const trli_step *s, bool folds, bool *round)
{
    const trli_parts *parts = trli_gpu_parts_of(program, s);
    const trli_step_plan *p = trli_plan_of(program, s);
    trl_err err = TRL_OK;
    *round = p->round && !images_are("off") && !images_are("none");
    for (int i = 0; i < p->ninputs && *round; ++i)
        for (int a = 0; a < 3; ++a) *round &= !(p->round[i] >> a & 1) || stays_inside(program, s, p->input[i], a);
    for (int i = 0; i < parts->n && *round; ++i) TRL_TRY(check_part(program, s, &parts->part[i], folds, true, round));
done:
    return err;
}

trl_err trli_gpu_request_of_part(const trli_program *program, const trli_step *s, const trli_step_part *part,
                                 trli_emit_request *request)
{
    trli_emit_layer *layer;
    int *shape;
    trl_err err = TRL_OK;
    TRL_TRY(list_layers(program, s, part, &layer));
    *request = request_of(program, s, part, true, true, layer);
    TRL_TRY(list_shapes(program, s, part, &shape));
    request->shape = shape;
done:
    return err;
}

/* Kernels of a step whose dt comes late find it in memory. */
static void let_come_late(const trli_program *program, trli_emit_request *wanted)
{
    const trli_late_scalars *late = trli_late_scalars_read_by(program);
    if (!late) return;
    wanted->nlate = late->n;
    wanted->late = late->scalar;
}

static trl_err add_parts(const trli_program *program, const trli_step *s)
{
    const trli_parts *parts = trli_gpu_parts_of(program, s);
    trli_step_run *run = trli_run_of(program, s);
    trl_err err = TRL_OK;
    run->gpu = trli_new(program->model->ctx, (size_t)parts->n, sizeof *run->gpu);
    if (!run->gpu) return trli_no_memory(program->model->ctx, NULL, "for kernel '%s'", s->label);
    TRL_TRY(find_folds(program, s, &run->gpu_folds));
    TRL_TRY(find_round(program, s, run->gpu_folds, &run->gpu_round));
    for (int i = 0; i < parts->n; ++i) {
        trli_emit_layer *layer = NULL;
        int *shape;
        TRL_TRY(list_shapes(program, s, &parts->part[i], &shape));
        if (run->gpu_folds || run->gpu_round) err = list_layers(program, s, &parts->part[i], &layer);
        if (err != TRL_OK) trli_free(shape);
        TRL_TRY(err);
        trli_emit_request wanted = request_of(program, s, &parts->part[i], run->gpu_folds, run->gpu_round, layer);
        wanted.shape = shape;
        let_come_late(program, &wanted);
        note_scalars(program->model, wanted.reads);
        TRL_TRY(trli_codes_add(program->model->run->gpu_codes, &wanted, &run->gpu[i]));
    }
done:
    return err;
}

static trli_emit_request slab_of(const trli_program *program, const trli_step *s, const trli_slab *slab)
{
    return (trli_emit_request){.disabled_passes = program->model->settings.disabled_passes,
                               .reads = &slab->reads,
                               .nroots = 1,
                               .roots = &slab->value,
                               .found = program->model->run->found,
                               .wide = program->model->run->gpu_wide,
                               .check_finite = s->kind == TRLI_STEP_PLANES && s->variable};
}

/* Points of a plane are computed at once: no one may read another. */
static bool is_independent(const trli_slab *slab)
{
    for (int i = 0; slab->layer == 0 && i < slab->reads.nfields; ++i) {
        const trl_footprint *f = &slab->reads.footprint[i];
        if (slab->reads.field[i] != slab->field) continue;
        for (int p = 0; p < f->n; ++p)
            for (int a = 0; a < 3; ++a)
                if (a != slab->axis && (f->part[p].lo[a] < 0 || f->part[p].hi[a] > 0)) return false;
    }
    return true;
}

/* What GPUs compute of the values of a group: all of it; their text has room for that. */
trli_emit_request trli_gpu_group(const trli_program *program, const trli_reduction_group *group)
{
    trli_emit_request request = {.disabled_passes = program->model->settings.disabled_passes,
                                 .reads = &group->reads,
                                 .nroots = group->n,
                                 .roots = group->value,
                                 .found = program->model->run->found,
                                 .wide = program->model->run->gpu_wide,
                                 .merge = group->merge};
    for (int r = 0; r < group->n; ++r)
        if (trli_is_weighted(&program->run->reductions.reduction[group->first + r])) request.weighted |= 1u << r;
    return request;
}

/* Of those that GPUs find. */
static trl_err add_scalar(const trli_program *program, const trli_step *s)
{
    const trli_model *model = program->model;
    trli_step_run *run = trli_run_of(program, s);
    run->twice[0] = run->twice[1] = s->value[0];
    trli_emit_request wanted = trli_found_scalar_request(program, s);
    let_come_late(program, &wanted);
    if (!model->run->found || !model->run->found[s->scalar]) return TRL_OK;
    run->gpu = trli_new(model->ctx, 1, sizeof *run->gpu);
    if (!run->gpu) return trli_no_memory(model->ctx, NULL, "for scalar '%s'", s->label);
    note_scalars(model, wanted.reads);
    return trli_codes_add(model->run->gpu_codes, &wanted, run->gpu);
}

static trl_err add_step(const trli_program *program, const trli_step *s)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    trli_step_run *run = trli_run_of(program, s);
    trl_err err = TRL_OK;
    if (s->kind == TRLI_STEP_KERNEL) TRL_TRY(add_parts(program, s));
    if (s->kind == TRLI_STEP_SCALAR) TRL_TRY(add_scalar(program, s));
    for (int k = 0; k < p->nslabs && !run->gpu_folds; ++k) {
        if (p->slab[k].kind != TRLI_SLAB_KERNEL) continue;
        trli_emit_request wanted = slab_of(program, s, &p->slab[k]);
        let_come_late(program, &wanted);
        note_scalars(program->model, wanted.reads);
        if (is_independent(&p->slab[k]))
            TRL_TRY(trli_codes_add(program->model->run->gpu_codes, &wanted, &run->slab[k].gpu));
    }
done:
    return err;
}

/* Sums that the kernel of a step makes beside its results, in one launch. */
static trl_err add_fused(const trli_program *program, trli_fused_sums *f)
{
    const trli_step_part *part = &trli_gpu_parts_of(program, f->step)->part[0];
    const trli_step_run *run = trli_run_of(program, f->step);
    const int n = f->reads.nfields + f->nroots;
    trli_step_part whole = *part; /* reads, and results: of the sums there are none */
    trli_emit_layer *layer = NULL;
    int *of_whole = NULL, *shape = trli_new(program->model->ctx, (size_t)n, sizeof *shape);
    trl_err err = TRL_OK;
    if (!shape) return trli_no_memory(program->model->ctx, NULL, "for kernel '%s'", f->step->label);
    whole.reads = f->reads;
    if (run->gpu_folds || run->gpu_round) TRL_TRY(list_layers(program, f->step, &whole, &layer));
    TRL_TRY(list_shapes(program, f->step, &whole, &of_whole));
    for (int i = 0; i < n; ++i) shape[i] = i < f->reads.nfields + f->nstored ? of_whole[i] : i;
    trli_emit_request wanted = request_of(program, f->step, &whole, run->gpu_folds, run->gpu_round, layer);
    wanted.reads = &f->reads;
    wanted.nroots = f->nroots;
    wanted.roots = f->value;
    wanted.merge = f->merge;
    wanted.nstored = f->nstored;
    wanted.shape = shape;
    shape = NULL;
    layer = NULL;
    note_scalars(program->model, wanted.reads);
    err = trli_codes_add(program->model->run->gpu_codes, &wanted, &f->gpu);
done:
    trli_free(of_whole);
    trli_free(shape);
    trli_free(layer);
    return err;
}

/* One result, and sums of one kernel, which have room in its call. */
static bool makes_sums(const trli_program *program, const trli_fused_sums *f)
{
    return trli_fused_sums_for_gpus(program) && f->ngroups == 1 && f->nstored == 1 &&
           f->nroots - f->nstored <= TRLI_GPU_SHARES && trli_gpu_parts_of(program, f->step)->n == 1;
}

static trl_err add_group(const trli_program *program, trli_reduction_group *group)
{
    trli_emit_request wanted = trli_gpu_group(program, group);
    let_come_late(program, &wanted);
    if (!group->kernel || group->n > TRLI_GPU_SHARES) return TRL_OK;
    note_scalars(program->model, wanted.reads);
    return trli_codes_add(program->model->run->gpu_codes, &wanted, &group->gpu);
}

static trl_err add_program(trli_program *program)
{
    trli_reductions *reductions = &program->run->reductions;
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_part_for_gpus(program));
    for (int s = 0; s < program->nsteps; ++s)
        if (program->plan->step[s].live) TRL_TRY(add_step(program, &program->step[s]));
    for (int g = 0; g < reductions->ngroups; ++g) TRL_TRY(add_group(program, &reductions->group[g]));
    for (int i = 0; i < reductions->nfused; ++i)
        if (makes_sums(program, &reductions->fused[i])) TRL_TRY(add_fused(program, &reductions->fused[i]));
done:
    return err;
}

trl_err trli_gpu_write_texts(trli_model *model)
{
    trl_err err = TRL_OK;
    if (model->run->gpu_codes) return TRL_OK;
    model->run->gpu_reads = trli_new(model->ctx, (size_t)model->nscalars + 1, sizeof *model->run->gpu_reads);
    if (!model->run->gpu_reads) return trli_no_memory(model->ctx, NULL, "for kernels of GPUs");
    model->run->gpu_wide = has_wide_arrays(model);
    TRL_TRY(trli_found_scalars_choose(model));
    trli_late_scalars_check(model);
    TRL_TRY(trli_codes_create(&trli_dialect_cuda, &model->ir, &model->walk, &model->run->gpu_codes));
    for (int i = 0; i < model->nprograms; ++i)
        if (!model->program[i]->once) TRL_TRY(add_program(model->program[i]));
    err = trli_codes_emit(model->run->gpu_codes);
done:
    return err;
}

bool trli_gpu_goes_round(const trli_program *program, const trli_exchanged *exchanged)
{
    bool some = false, all = true;
    for (int i = 0; i < exchanged->n; ++i) some |= exchanged->round[i] != 0;
    for (int i = 0; i < program->nsteps && some && all; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_task task = {.program = (trli_program *)program,
                                     .step = s,
                                     .plan = trli_plan_of(program, s),
                                     .run = trli_run_of(program, s),
                                     .fused = trli_fused_sums_of(program, s)};
        if (task.plan->live && task.plan->round) all = task.run->gpu_round && trli_gpu_does_kernel(&task);
    }
    return some && all;
}

/* Why a kernel is not there; NULL: it is, or nobody wants it. */
static const char *find_why(const trli_code_use *use)
{
    if (!use->code) return NULL;
    if (!use->code->text) return use->code->why;
    return use->code->gpu->function ? NULL : use->code->gpu->why;
}

static const char *find_why_of_step(const trli_program *program, int s)
{
    const trli_step_run *run = &program->run->step[s];
    const char *why = NULL;
    for (int i = 0; run->gpu && i < program->gpu_parts[s].n && !why; ++i) why = find_why(&run->gpu[i]);
    for (int k = 0; k < program->plan->step[s].nslabs && !why; ++k) why = find_why(&run->slab[k].gpu);
    return why;
}

/* Name the first step that the CPU computes. */
static void warn_failed(const trli_model *model)
{
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_program *program = model->program[i];
        const trli_reductions *reductions = &program->run->reductions;
        const char *why = NULL, *label = NULL;
        for (int s = 0; s < program->nsteps && !why; ++s) {
            why = find_why_of_step(program, s);
            label = program->step[s].label;
        }
        for (int g = 0; g < reductions->ngroups && !why; ++g) {
            why = find_why(&reductions->group[g].gpu);
            label = reductions->reduction[reductions->group[g].first].step->label;
        }
        for (int i = 0; i < reductions->nfused && !why; ++i) {
            why = find_why(&reductions->fused[i].gpu);
            label = reductions->fused[i].step->label;
        }
        if (!why) continue;
        trl_warn(model->ctx, NULL, "'%s' is computed by the CPU, not by GPUs: %s", label ? label : "ghosts", why);
        return;
    }
}

static bool has_gpus(const trl_devices *devices)
{
    return devices && devices->n > 0 && devices->device[0]->kind == TRL_KIND_GPU;
}

static trl_err ask(trli_model *model, const trl_devices *devices)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_gpu_write_texts(model));
    TRL_TRY(trli_gpu_kernels_create(model->ctx, devices, &model->run->gpu_kernels));
    TRL_TRY(trli_codes_compile_for_gpus(model->run->gpu_codes, model->run->gpu_kernels));
    TRL_TRY(trli_late_scalars_request(model));
    TRL_TRY(trli_found_scalars_request(model));
    TRL_TRY(trli_told_sums_request(model));
    TRL_TRY(trli_gpu_request_plugins(model));
    TRL_TRY(trli_gpu_request_extremes(model));
    TRL_TRY(trli_gpu_request_statistics(model));
    TRL_TRY(trli_gpu_kernels_add_copy(model->run->gpu_kernels, &model->run->gpu_copy));
    TRL_TRY(trli_gpu_kernels_add_pieces(model->run->gpu_kernels, &model->run->gpu_pieces));
    err = trli_gpu_kernels_add_clear(model->run->gpu_kernels, &model->run->gpu_clear);
done:
    return err;
}

trl_err trli_gpu_request(trli_model *model)
{
    const trl_devices *devices = trl_workers_devices(model->run->workers);
    trl_err err = TRL_OK;
    if (!trli_gpu_api_get() || model->settings.compile == TRL_COMPILE_NEVER) return TRL_OK; /* as small grids */
    if (has_gpus(devices)) err = ask(model, devices);
    TRL_TRY(trli_gpu_kernels_compile_together(model->ctx, model->run->gpu_kernels, err));
    if (!model->run->gpu_kernels) goto done;
    warn_failed(model);
    err = trli_gpu_check_plugins(model);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which reductions share a sweep, and which share a message. */
#include <string.h>

#include "context_impl.h"
#include "execution_impl.h"
#include "executor_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "reductions_impl.h"

enum {
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems have several tiles and groups */
    GROUP_MOST = 3,
    TILE_POINTS = 48,
    SUM_POINTS = TILE_POINTS,
#else
    GROUP_MOST = 8,     /* reductions of a group */
    TILE_POINTS = 2048, /* of all values of a group: half of a first-level cache */
    SUM_POINTS = TRLI_WINDOW_VALUES,
#endif
    VALUES_MOST = 512 /* of a kernel of several reductions: compilers take long for longer ones */
};

typedef struct grouping {
    trli_program *program;
    trli_reductions *to;
} grouping;

static bool is_reduction(const trli_step *s)
{
    return s->kind == TRLI_STEP_REDUCE || s->kind == TRLI_STEP_STABLE_DT;
}

static trli_merge merge_of(const trli_step *s)
{
    if (s->kind == TRLI_STEP_STABLE_DT) return TRLI_MERGE_MIN;
    switch (s->reduce.kind) {
    case TRLI_REDUCE_MIN:
        return TRLI_MERGE_MIN;
    case TRLI_REDUCE_MAX:
        return TRLI_MERGE_MAX;
    default:
        return TRLI_MERGE_SUM;
    }
}

static bool reads_scalar(const trli_program *program, const trli_step *s, int scalar)
{
    const trli_reads *reads = &trli_plan_of(program, s)->reads;
    for (int i = 0; i < reads->nscalars; ++i)
        if (reads->scalar[i] == scalar) return true;
    return trli_step_plugin(s) && s->time_scalar == scalar;
}

/* Whether a reduction may be computed before a step that comes between: another reduction, or a scalar. */
static bool may_pass(const trli_program *program, const trli_step *s, const trli_step *between)
{
    return s->scalar != between->scalar && !reads_scalar(program, s, between->scalar) &&
           !reads_scalar(program, between, s->scalar);
}

/* The step after a batch that begins at a step: what is neither a reduction nor a scalar ends it, and the first
 * reduction that has to wait. */
static const trli_step *end_of_batch(const trli_program *program, const trli_step *first)
{
    const trli_step *end = program->step + program->nsteps;
    for (const trli_step *s = first + 1; s < end; ++s) {
        if (!trli_plan_of(program, s)->live) continue;
        if (s->kind == TRLI_STEP_SCALAR) continue;
        if (!is_reduction(s)) return s;
        for (const trli_step *between = first; between < s; ++between)
            if (trli_plan_of(program, between)->live && !may_pass(program, s, between)) return s;
    }
    return end;
}

/* ---- groups ---- */

static bool share_a_field(const trli_reads *a, const trli_reads *b)
{
    for (int i = 0; i < a->nfields; ++i)
        for (int k = 0; k < b->nfields; ++k)
            if (a->field[i] == b->field[k]) return true;
    return false;
}

static bool is_alone(const trli_step *s)
{
    return s->kind == TRLI_STEP_STABLE_DT || s->reduce.kind == TRLI_REDUCE_POINT;
}

/* Whether a reduction goes over the points of another one and reads something that it reads. */
static bool go_together(const trli_program *program, const trli_step *a, const trli_step *b)
{
    const trli_step_plan *p = trli_plan_of(program, a), *q = trli_plan_of(program, b);
    return !is_alone(a) && !is_alone(b) && a->reduce.location == b->reduce.location &&
           memcmp(p->fixed_planes, q->fixed_planes, sizeof p->fixed_planes) == 0 && share_a_field(&p->reads, &q->reads);
}

static bool is_root(const trli_program *program, const trli_step *s)
{
    for (int i = 0; i < program->nscalar_roots; ++i)
        if (program->scalar_root[i] == s->scalar) return true;
    return false;
}

/* Whether a reduction shares the message of another one. Where there are no messages, but devices, the host learns what
 * it reads after the run, and a device finds what kernels read (found_scalars_impl.h). */
static bool share_message(const trli_program *program, const trli_step *a, const trli_step *b)
{
    const trli_model *model = program->model;
    if (!trl_workers_devices(model->run->workers) || trl_context_ranks(model->ctx) > 1) return true;
    return is_root(program, a) == is_root(program, b);
}

/* Take a reduction into a group unless it makes the kernel too long. */
static trl_err try_to_join(const grouping *g, trli_reduction_group *group, const trli_step *s, bool *joined)
{
    trli_model *model = g->program->model;
    trl_err err = TRL_OK;
    *joined = group->n == 0 || is_alone(s);
    if (group->n == GROUP_MOST) return TRL_OK;
    if (s->value) group->value[group->n] = s->value[0];
    group->merge[group->n] = merge_of(s);
    if (group->n > 0) TRL_TRY(trli_ir_walk(&model->ir, &model->walk, group->n + 1, group->value));
    *joined |= model->walk.count <= VALUES_MOST;
    if (!*joined) return TRL_OK;
    g->to->reduction[group->first + group->n] = (trli_reduced_step){.step = s, .merge = merge_of(s)};
    ++group->n;
done:
    return err;
}

/* A group that begins with a reduction, and all others of its batch that go with it. */
static trl_err add_group(const grouping *g, const trli_step *first, const trli_step *end, bool *taken)
{
    const trli_program *program = g->program;
    trli_reductions *to = g->to;
    trli_reduction_group *group = &to->group[to->ngroups++];
    trl_err err = TRL_OK;
    bool joined;
    *group = (trli_reduction_group){.first = to->n, .fused = -1};
    group->value = trli_new(program->model->ctx, GROUP_MOST, sizeof *group->value);
    group->merge = trli_new(program->model->ctx, GROUP_MOST, sizeof *group->merge);
    if (!group->value || !group->merge) return trli_no_memory(program->model->ctx, NULL, "for reductions");
    for (const trli_step *s = first; s < end; ++s) {
        if (!trli_plan_of(program, s)->live || !is_reduction(s) || taken[s - program->step]) continue;
        if (s > first && !(share_message(program, first, s) && go_together(program, first, s))) continue;
        TRL_TRY(try_to_join(g, group, s, &joined));
        taken[s - program->step] = joined;
    }
    to->n += group->n;
done:
    return err;
}

bool trli_is_weighted(const trli_reduced_step *reduction)
{
    const trli_reduce_step *what = &reduction->step->reduce;
    return what->weighted && what->location != TRL_CELL;
}

/* Whether a compiled kernel merges values itself: as they are, each operation rounded once, wherever it is computed. */
static bool merges_values(const trli_program *program, const trli_reductions *r, const trli_reduction_group *group)
{
    const trli_model *model = program->model;
    for (int i = 0; i < group->n; ++i)
        if (trli_is_weighted(&r->reduction[group->first + i])) return false;
    return model->settings.compile != TRL_COMPILE_NEVER && !model->settings.fast_math &&
           !is_alone(r->reduction[group->first].step);
}

static trl_err make_kernel(trli_program *program, const trli_reductions *r, trli_reduction_group *group)
{
    trli_model *model = program->model;
    trl_err err = TRL_OK;
    group->merges = merges_values(program, r, group);
    group->points = group->merges ? SUM_POINTS : TILE_POINTS / group->n;
    if (!r->reduction[group->first].step->value) return TRL_OK; /* a plugin's */
    TRL_TRY(trli_reads_find(&model->ir, &model->walk, group->n, group->value, &group->reads));
    TRL_TRY(trli_kernel_create(&model->ir, &model->walk, &group->reads, group->n, group->value, &group->kernel));
done:
    return err;
}

/* ---- all of it ---- */

static trl_err add_batch(const grouping *g, const trli_step *first, bool *taken)
{
    const trli_program *program = g->program;
    trli_reductions *to = g->to;
    trli_reduction_batch *batch = &to->batch[to->nbatches++];
    const trli_step *end = end_of_batch(program, first);
    trl_err err = TRL_OK;
    *batch = (trli_reduction_batch){.step = first, .first = to->n, .first_group = to->ngroups};
    for (const trli_step *s = first; s < end; ++s)
        if (trli_plan_of(program, s)->live && is_reduction(s) && !taken[s - program->step] &&
            share_message(program, first, s))
            TRL_TRY(add_group(g, s, end, taken));
    batch->n = to->n - batch->first;
    batch->ngroups = to->ngroups - batch->first_group;
done:
    return err;
}

trl_err trli_reductions_create(trli_program *program, trli_reductions *to)
{
    trli_model_run *run = program->model->run;
    trl_context *ctx = program->model->ctx;
    const size_t steps = (size_t)program->nsteps + 1;
    const grouping g = {.program = program, .to = to};
    trl_err err = TRL_OK;
    bool *taken = trli_new(ctx, steps, sizeof *taken);
    to->reduction = trli_new(ctx, steps, sizeof *to->reduction);
    to->group = trli_new(ctx, steps, sizeof *to->group);
    to->batch = trli_new(ctx, steps, sizeof *to->batch);
    if (!taken || !to->reduction || !to->group || !to->batch) TRL_TRY(trli_no_memory(ctx, NULL, "for reductions"));
    for (int i = 0; i < program->nsteps; ++i)
        if (program->plan->step[i].live && is_reduction(&program->step[i]) && !taken[i])
            TRL_TRY(add_batch(&g, &program->step[i], taken));
    for (int i = 0; i < to->ngroups; ++i) TRL_TRY(make_kernel(program, to, &to->group[i]));
    to->first = run->nreductions;
    to->first_batch = run->nbatches;
    run->nreductions += to->n;
    run->nbatches += to->nbatches;
done:
    trli_free(taken);
    return err;
}

static void free_fused(trli_fused_sums *fused)
{
    trli_free(fused->group);
    trli_free(fused->value);
    trli_free(fused->merge);
    trli_free(fused->share);
    trli_reads_free(&fused->reads);
}

void trli_reductions_free(trli_reductions *r)
{
    for (int i = 0; i < r->ngroups; ++i) {
        trli_kernel_destroy(&r->group[i].kernel);
        trli_reads_free(&r->group[i].reads);
        trli_free(r->group[i].value);
        trli_free(r->group[i].merge);
    }
    for (int i = 0; i < r->nfused; ++i) free_fused(&r->fused[i]);
    trli_free(r->fused);
    trli_free(r->reduction);
    trli_free(r->group);
    trli_free(r->batch);
    *r = (trli_reductions){0};
}

bool trli_reduction_box(const trli_program *program, const trli_step *s, int patch, trl_box *box)
{
    const trl_layout *layout = program->model->layout;
    const trl_patch *p = &layout->patch[patch];
    const int8_t *fixed_planes = trli_plan_of(program, s)->fixed_planes;
    *box = trl_patch_owned(layout, p, s->kind == TRLI_STEP_STABLE_DT ? s->plugin.called->location : s->reduce.location);
    for (int a = 0; a < layout->grid.dim; ++a) {
        if (trl_patch_at_side(layout, p, a, 0)) box->lo[a] += fixed_planes[(ptrdiff_t)2 * a];
        if (trl_patch_at_side(layout, p, a, 1)) box->hi[a] -= fixed_planes[2 * a + 1];
        if (box->hi[a] <= box->lo[a]) return false;
    }
    if (s->kind == TRLI_STEP_STABLE_DT || s->reduce.kind != TRLI_REDUCE_POINT) return true;
    for (int a = 0; a < layout->grid.dim; ++a) {
        trl_gidx local = s->reduce.point[a] - p->first[a];
        if (local < box->lo[a] || local >= box->hi[a]) return false;
        box->lo[a] = (trl_lidx)local;
        box->hi[a] = (trl_lidx)local + 1;
    }
    return true;
}

/* ---- reductions that nothing waits for ---- */

/* Whether a step other than a scalar reads one of these scalars. */
static bool needs_one(const trli_program *program, const trli_step *s, const bool *scalars)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    for (int n = 0; n < program->model->nscalars; ++n)
        if (scalars[n] && reads_scalar(program, s, n)) return true;
    for (int k = 0; k < p->nslabs; ++k)
        for (int i = 0; p->slab[k].kind == TRLI_SLAB_KERNEL && i < p->slab[k].reads.nscalars; ++i)
            if (scalars[p->slab[k].reads.scalar[i]]) return true;
    return false;
}

trl_err trli_reductions_come_last(const trli_program *program, bool *last)
{
    bool *late = trli_new(program->model->ctx, (size_t)program->model->nscalars + 1, sizeof *late);
    if (!late) return trli_no_memory(program->model->ctx, NULL, "for reductions");
    *last = program->run->reductions.nbatches > 0;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        if (!trli_plan_of(program, s)->live) continue;
        const bool needs = needs_one(program, s, late);
        if (is_reduction(s) || (needs && s->kind == TRLI_STEP_SCALAR)) late[s->scalar] = true;
        if ((needs && s->kind != TRLI_STEP_SCALAR) || s->kind == TRLI_STEP_CALL) *last = false;
    }
    trli_free(late);
    return TRL_OK;
}

const trli_reduction_batch *trli_reductions_at(const trli_reductions *r, const trli_step *step)
{
    for (int b = 0; b < r->nbatches; ++b)
        if (r->batch[b].step == step) return &r->batch[b];
    return NULL;
}

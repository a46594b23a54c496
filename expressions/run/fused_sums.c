/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sums that kernels make of what they read and compute, on their way through the points: which, and how. A sum has room
 * for the values of a tile, so the kernel goes from tile to tile. Where it cannot take a tile's values exactly, the
 * group's own kernel does. */
#include <string.h>

#include "called_programs_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "tasks_impl.h"
#include "vector_impl.h"

/* ---- which kernels ---- */

static bool is_written(const trli_program *program, int first, int end, int field)
{
    for (int i = first; i < end; ++i) {
        const trli_step *s = &program->step[i];
        if (!program->plan->step[i].live || s->kind == TRLI_STEP_FILL) continue; /* which sets no points owned */
        for (int o = 0; o < s->nout; ++o)
            if (s->field[o] == field) return true;
    }
    return false;
}

/* Whether all that a group reads is what it was when the k-th step ran, at the points themselves. */
static bool finds_its_values(const trli_program *program, const trli_reduction_group *group, int k, int batch)
{
    const trli_reads *reads = &group->reads;
    for (int i = 0; i < reads->nscalars; ++i)
        if (trli_program_sets(program, reads->scalar[i])) return false;
    for (int i = 0; i < reads->nfields; ++i) {
        const trl_offsets hull = trl_footprint_hull(&reads->footprint[i]);
        for (int a = 0; a < 3; ++a)
            if (hull.lo[a] != 0 || hull.hi[a] != 0) return false;
        if (is_written(program, k + 1, batch, reads->field[i])) return false;
    }
    return true;
}

static bool shares_a_field(const trli_program *program, const trli_reduction_group *group, int k)
{
    const trli_step_plan *p = &program->plan->step[k];
    for (int i = 0; i < group->reads.nfields; ++i) {
        for (int f = 0; f < p->reads.nfields; ++f)
            if (p->reads.field[f] == group->reads.field[i]) return true;
        if (is_written(program, k, k + 1, group->reads.field[i])) return true;
    }
    return false;
}

static bool has_same_points(const trli_program *program, const trli_step *reduce, const trli_step *s)
{
    const trli_model *model = program->model;
    for (int p = 0; p < model->layout->nlocal; ++p) {
        trl_box box;
        if (!trli_reduction_box(program, reduce, p, &box)) return false;
        for (int o = 0; o < s->nout; ++o) {
            const trl_box of_step = trli_step_box(program, s, o, p);
            if (model->field[s->field[o]].location != reduce->reduce.location) return false;
            if (memcmp(&box, &of_step, sizeof box) != 0) return false;
        }
    }
    return true;
}

/* A kernel that stores all of its results, and sets what it needs beyond the ends of its rows itself. */
static bool may_make_sums(const trli_program *program, int k)
{
    const trli_step *s = &program->step[k];
    const trli_step_plan *p = &program->plan->step[k];
    if (!p->live || s->kind != TRLI_STEP_KERNEL || s->variable || p->extent || program->parts[k].n != 1) return false;
    for (int i = 0; i < p->nslabs; ++i)
        if (!trli_slab_is_within(program->model, &p->slab[i])) return false;
    for (int o = 0; o < s->nout; ++o)
        if (!program->plan->demand[s->field[o]].live) return false;
    return true;
}

/* Whether GPUs can do so, if there are some: a launch makes the sums of one group beside one result. */
static bool suits_gpus(const trli_program *program, int k, const trli_reduction_group *group)
{
    const trli_step *s = &program->step[k];
    if (!trl_workers_devices(program->model->run->workers)) return true;
    return s->nout == 1 && group->n <= TRLI_GPU_SHARES && !trli_fused_sums_of(program, s);
}

/* The last kernel before a batch that can make a group of it; -1: none. */
static int find_kernel(const trli_program *program, const trli_reductions *r, const trli_reduction_batch *batch,
                       const trli_reduction_group *group)
{
    const int at = (int)(batch->step - program->step);
    if (!group->merges || !group->kernel) return -1;
    for (int i = 0; i < group->n; ++i)
        if (group->merge[i] != TRLI_MERGE_SUM) return -1;
    for (int k = at - 1; k >= 0; --k)
        if (may_make_sums(program, k) && shares_a_field(program, group, k) && finds_its_values(program, group, k, at) &&
            has_same_points(program, r->reduction[group->first].step, &program->step[k]) &&
            suits_gpus(program, k, group))
            return k;
    return -1;
}

/* ---- their values ---- */

static trl_err take_values(trli_program *program, const trli_reductions *r, trli_fused_sums *f)
{
    trli_model *model = program->model;
    const trli_step *s = f->step;
    int n = f->nstored = s->nout;
    f->nroots = n;
    for (int g = 0; g < f->ngroups; ++g) f->nroots += r->group[f->group[g]].n;
    f->value = trli_new(model->ctx, (size_t)f->nroots, sizeof *f->value);
    f->merge = trli_new(model->ctx, (size_t)f->nroots, sizeof *f->merge);
    f->share = trli_new(model->ctx, (size_t)f->ngroups * (size_t)model->layout->nlocal + 1, sizeof *f->share);
    if (!f->value || !f->merge || !f->share) return trli_no_memory(model->ctx, NULL, "for reductions");
    for (int i = 0; i < f->ngroups * model->layout->nlocal; ++i) f->share[i] = -1;
    for (int o = 0; o < s->nout; ++o) f->value[o] = s->value[o];
    for (int g = 0; g < f->ngroups; ++g) {
        const trli_reduction_group *group = &r->group[f->group[g]];
        for (int i = 0; i < group->n; ++i, ++n) {
            f->merge[n] = group->merge[i];
            f->value[n] = group->value[i];
            for (int o = 0; o < s->nout; ++o)
                f->value[n] =
                    trli_ir_replace(&model->ir, f->value[n], trli_ir_field(&model->ir, s->field[o]), s->value[o]);
        }
    }
    if (model->ir.err != TRL_OK) return model->ir.err;
    return trli_reads_find(&model->ir, &model->walk, f->nroots, f->value, &f->reads);
}

/* Add a group to the sums of a step, or make these. */
static trl_err add_group(trli_program *program, trli_reductions *r, int k, int group)
{
    trli_fused_sums *f = NULL;
    for (int i = 0; i < r->nfused; ++i)
        if (r->fused[i].step == &program->step[k]) f = &r->fused[i];
    if (!f) {
        f = &r->fused[r->nfused++];
        f->step = &program->step[k];
        f->group = trli_new(program->model->ctx, (size_t)r->ngroups, sizeof *f->group);
        if (!f->group) return trli_no_memory(program->model->ctx, NULL, "for reductions");
    }
    f->group[f->ngroups++] = group;
    r->group[group].fused = (int)(f - r->fused);
    return TRL_OK;
}

/* Each share is of one launch. */
bool trli_fused_sums_for_gpus(const trli_program *program)
{
    return program->model->layout->nlocal == 1 && trl_context_ranks(program->model->ctx) == 1;
}

/* Whether there are devices, and others than GPUs that make sums. */
static bool devices_refuse(const trli_program *program)
{
    const trl_devices *devices = trl_workers_devices(program->model->run->workers);
    bool gpus = trli_fused_sums_for_gpus(program);
    for (int i = 0; devices && i < devices->n; ++i) gpus &= devices->device[i]->kind == TRL_KIND_GPU;
    return devices && !gpus;
}

trl_err trli_fused_sums_find(trli_program *program)
{
    trli_reductions *r = &program->run->reductions;
    const trli_model *model = program->model;
    trl_err err = TRL_OK;
    if (!program->fuses_sums || r->ngroups == 0 || devices_refuse(program)) return TRL_OK;
    if (model->settings.fusion != TRL_FUSION_FULL) return TRL_OK;
    r->fused = trli_new(model->ctx, (size_t)r->ngroups, sizeof *r->fused);
    if (!r->fused) return trli_no_memory(model->ctx, NULL, "for reductions");
    for (int b = 0; b < r->nbatches; ++b)
        for (int g = r->batch[b].first_group; g < r->batch[b].first_group + r->batch[b].ngroups; ++g) {
            const int k = find_kernel(program, r, &r->batch[b], &r->group[g]);
            if (k >= 0) TRL_TRY(add_group(program, r, k, g));
        }
    for (int i = 0; i < r->nfused; ++i) TRL_TRY(take_values(program, r, &r->fused[i]));
done:
    return err;
}

trli_fused_sums *trli_fused_sums_of(const trli_program *program, const trli_step *step)
{
    const trli_reductions *r = &program->run->reductions;
    for (int i = 0; i < r->nfused; ++i)
        if (r->fused[i].step == step) return &r->fused[i];
    return NULL;
}

void trli_fused_sums_share(const trli_program *program, const trli_reduction_group *group, int patch, trl_handle *share)
{
    const trli_reductions *all = &program->run->reductions;
    if (group->fused < 0) return;
    const trli_fused_sums *fused = &all->fused[group->fused];
    for (int g = 0; g < fused->ngroups; ++g)
        if (&all->group[fused->group[g]] == group) *share = fused->share[g * program->model->layout->nlocal + patch];
}

const trli_step *trli_fused_sums_maker(const trli_program *program, const trli_step *reduce)
{
    const trli_reductions *r = &program->run->reductions;
    for (int g = 0; g < r->ngroups; ++g)
        for (int i = 0; i < r->group[g].n && r->group[g].fused >= 0; ++i)
            if (r->reduction[r->group[g].first + i].step == reduce) return r->fused[r->group[g].fused].step;
    return NULL;
}

/* ---- a run ---- */

enum {
    PIECES = 6,
    AHEAD = 64 /* points by which inputs are asked for early */
};

/* What a thread needs: arrays and the ends of what the step reads; of what the kernel reads; results; windows; and what
 * a group's own kernel needs. */
typedef struct sums_scratch {
    trl_array *input;
    trl_kernel_inside *of_step, *inside;
    trl_kernel_array *array;
    trl_kernel_merged *merged;
    trli_sum_window *window; /* [nroots] */
    void *of_group;
} sums_scratch;

static size_t find_sizes(const trli_program *program, const trli_fused_sums *f, size_t bytes[PIECES])
{
    const size_t step = (size_t)trli_plan_of(program, f->step)->ninputs, inputs = (size_t)f->reads.nfields;
    const size_t roots = (size_t)f->nroots;
    size_t all = 0;
    bytes[0] = step * sizeof(trl_array);
    bytes[1] = step * sizeof(trl_kernel_inside);
    bytes[2] = inputs * sizeof(trl_kernel_inside);
    bytes[3] = (inputs + roots) * sizeof(trl_kernel_array);
    bytes[4] = roots * sizeof(trl_kernel_merged);
    bytes[5] = roots * sizeof(trli_sum_window);
    for (int i = 0; i < PIECES; ++i) all += bytes[i] = (bytes[i] + 63) / 64 * 64;
    return all;
}

size_t trli_fused_sums_scratch(const trli_program *program, const trli_fused_sums *fused)
{
    size_t bytes[PIECES], most = 0;
    for (int g = 0; g < fused->ngroups; ++g) {
        const size_t one = trli_group_scratch(&program->run->reductions.group[fused->group[g]]);
        if (one > most) most = one;
    }
    return find_sizes(program, fused, bytes) + most;
}

static sums_scratch scratch_of(const trli_program *program, const trli_fused_sums *f, char *at)
{
    size_t bytes[PIECES];
    sums_scratch s;
    const size_t all = find_sizes(program, f, bytes);
    s.of_group = at + all;
    s.input = (trl_array *)at;
    s.of_step = (trl_kernel_inside *)(at += bytes[0]);
    s.inside = (trl_kernel_inside *)(at += bytes[1]);
    s.array = (trl_kernel_array *)(at += bytes[2]);
    s.merged = (trl_kernel_merged *)(at += bytes[3]);
    s.window = (trli_sum_window *)(at + bytes[4]);
    return s;
}

/* A task as if it were that of a group. */
static trli_step_task task_of(const trli_step_task *t, int g)
{
    trli_step_task of = *t;
    of.group = &t->program->run->reductions.group[t->fused->group[g]];
    return of;
}

static void bind_arrays(const trli_step_task *t, const trli_frame *frame, const sums_scratch *s)
{
    const trli_fused_sums *f = t->fused;
    const trli_step_plan *p = t->plan;
    for (int i = 0; i < p->ninputs; ++i) s->input[i] = trli_frame_array(frame, p->input[i], t->patch, 0);
    trli_native_set_inside(t->program, t->step, &frame->model->layout->patch[t->patch], s->input, s->of_step);
    for (int i = 0; i < f->reads.nfields; ++i) {
        const trl_array a = trli_frame_array(frame, f->reads.field[i], t->patch, 0);
        trli_native_set_array(&s->array[i], &a);
        for (int axis = 0; axis < 3; ++axis) {
            s->inside[i].lo[axis] = a.held.lo[axis];
            s->inside[i].hi[axis] = a.held.hi[axis];
        }
        for (int k = 0; k < p->ninputs; ++k)
            if (p->input[k] == f->reads.field[i]) s->inside[i] = s->of_step[k];
    }
    for (int r = 0; r < f->nroots; ++r) { /* nothing is stored of the groups' values */
        const trl_array a = trli_frame_array(frame, t->step->field[r < f->nstored ? r : 0], t->patch, 0);
        trli_native_set_array(&s->array[f->reads.nfields + r], &a);
    }
}

/* Take or return the windows of all groups. */
static void move_windows(const trli_step_task *t, const trl_task_args *args, const sums_scratch *s, bool back)
{
    trli_sum_window *window = s->window + t->fused->nstored;
    for (int g = 0; g < t->fused->ngroups; ++g) {
        const trli_step_task of = task_of(t, g);
        if (back)
            trli_windows_return(&of, args, window);
        else
            trli_windows_take(&of, args, window);
        window += of.group->n;
    }
}

/* Add what the kernel made of a tile; false: it is not all. */
static bool add_units(const trli_step_task *t, const trl_task_args *args, const sums_scratch *s)
{
    const trli_fused_sums *f = t->fused;
    int r = f->nstored;
    for (int k = r; k < f->nroots; ++k)
        if (s->window[k].start[0] == 0 || s->merged[k].failed) return false;
    for (int g = 0; g < f->ngroups; ++g) {
        const trli_step_task of = task_of(t, g);
        for (int i = 0; i < of.group->n; ++i, ++r)
            trli_sum_window_add(&s->window[r], &trli_reduction_part(&of, args, i)->sum, s->merged[r].units);
    }
    return true;
}

static void compute_tile(const trli_step_task *t, const trl_task_args *args, const sums_scratch *s,
                         trli_native_fn native, trl_kernel_call *call, const trl_box *tile)
{
    const trli_fused_sums *f = t->fused;
    trli_native_set_box(call, tile);
    for (int r = f->nstored; r < f->nroots; ++r)
        for (int i = 0; i < 2; ++i) s->merged[r].start[i] = s->window[r].start[i];
    native(call);
    if (add_units(t, args, s)) return;
    move_windows(t, args, s, true);
    for (int g = 0; g < f->ngroups; ++g) {
        const trli_step_task of = task_of(t, g);
        trli_group_compute(&of, args, tile, s->of_group);
    }
    move_windows(t, args, s, false);
}

bool trli_fused_sums_compute(const trli_step_task *t, const trl_task_args *args, const trl_box *box, void *scratch)
{
    const trli_fused_sums *f = t->fused;
    const trli_frame *frame = args->frame;
    const trli_native_fn native = trli_native_of(&f->use);
    if (!native) return false;
    const sums_scratch s = scratch_of(t->program, f, scratch);
    const trli_kernel_run run = {.grid = &frame->model->layout->grid, .patch = &frame->model->layout->patch[t->patch]};
    const trl_kernel_grid grid = trli_kernel_grid_of(&run);
    const int64_t points = t->program->run->reductions.group[f->group[0]].points;
    trl_kernel_call call = {.input = s.array,
                            .output = s.array + f->reads.nfields,
                            .scalar = frame->scalar,
                            .number = f->use.number,
                            .grid = &grid,
                            .block = points,
                            .streaming = t->plan->exceeds_caches,
                            .ahead = AHEAD,
                            .interleave = 1,
                            .inside = s.inside,
                            .merged = s.merged};
    trl_box tile;
    bind_arrays(t, frame, &s);
    move_windows(t, args, &s, false);
    for (trl_lidx z = box->lo[2]; z < box->hi[2]; z = tile.hi[2])
        for (trl_lidx y = box->lo[1]; y < box->hi[1]; y = tile.hi[1])
            for (trl_lidx x = box->lo[0]; x < box->hi[0]; x = tile.hi[0]) {
                tile = trli_tile_at(points, box, (trl_lidx[]){x, y, z});
                compute_tile(t, args, &s, native, &call, &tile);
            }
    move_windows(t, args, &s, true);
    TRLI_STREAM_FENCE();
    return true;
}

void trli_fused_sums_begin(const trli_step_task *t, const trl_task_args *args)
{
    const bool gpus = t->program->model->run->gpu_kernels != NULL; /* else they always are */
    for (int g = 0; gpus && t->fused && g < t->fused->ngroups; ++g) {
        const trli_step_task of = task_of(t, g);
        if (of.group->at_once) trli_note_at_once(args->frame, t->program, of.group, false);
        for (int r = 0; r < of.group->n; ++r)
            trli_partial_clear(trli_reduction_share(&of, args->frame, 0, r), TRLI_MERGE_SUM);
    }
}

void trli_fused_sums_add(const trli_step_task *t, const trl_task_args *args, const trl_box *box)
{
    const trli_frame *frame = args->frame;
    for (int g = 0; g < t->fused->ngroups; ++g) {
        const trli_step_task of = task_of(t, g);
        trli_group_compute(&of, args, box, frame->scratch[args->worker]);
    }
}

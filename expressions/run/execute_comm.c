/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Task functions of reductions. Those that communicate run after an error too, so that no other rank waits for this
 * one. */
#include <limits.h>
#include <string.h>

#include <chunks_impl.h>

#include "clock_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "joint_sums_impl.h"
#include "model_run_impl.h"
#include "tasks_impl.h"

/* What a thread needs to compute a group: arrays of its fields and results, also as a compiled kernel takes them, the
 * values of a tile, and the interpreter's registers. */
typedef struct group_scratch {
    trl_array *input, *output;
    trl_kernel_array *array;
    trl_kernel_merged *merged;
    trli_sum_window *window; /* [n] */
    double *values;          /* [n][points] */
    void *registers;
} group_scratch;

enum { PIECES = 6 };

/* Sizes of all pieces but the registers. */
static void find_sizes(const trli_reduction_group *group, size_t bytes[PIECES])
{
    const size_t inputs = (size_t)group->reads.nfields, n = (size_t)group->n;
    bytes[0] = inputs * sizeof(trl_array);
    bytes[1] = n * sizeof(trl_array);
    bytes[2] = (inputs + n) * sizeof(trl_kernel_array);
    bytes[3] = n * sizeof(trl_kernel_merged);
    bytes[4] = n * sizeof(trli_sum_window);
    bytes[5] = n * (size_t)group->points * sizeof(double);
    for (int i = 0; i < PIECES; ++i) bytes[i] = (bytes[i] + 63) / 64 * 64;
}

static group_scratch scratch_of(const trli_reduction_group *group, char *at)
{
    size_t bytes[PIECES];
    group_scratch s;
    find_sizes(group, bytes);
    s.input = (trl_array *)at;
    s.output = (trl_array *)(at += bytes[0]);
    s.array = (trl_kernel_array *)(at += bytes[1]);
    s.merged = (trl_kernel_merged *)(at += bytes[2]);
    s.window = (trli_sum_window *)(at += bytes[3]);
    s.values = (double *)(at += bytes[4]);
    s.registers = at + bytes[5];
    return s;
}

size_t trli_group_scratch(const trli_reduction_group *group)
{
    size_t bytes[PIECES], all = group->kernel ? trli_kernel_scratch(group->kernel) : 0;
    find_sizes(group, bytes);
    for (int k = 0; k < PIECES && group->kernel; ++k) all += bytes[k];
    return all;
}

size_t trli_reductions_scratch(const trli_reductions *r)
{
    size_t most = 0;
    for (int i = 0; i < r->ngroups; ++i)
        if (trli_group_scratch(&r->group[i]) > most) most = trli_group_scratch(&r->group[i]);
    return most;
}

trl_box trli_tile_at(int64_t points, const trl_box *chunk, const trl_lidx lo[3])
{
    trl_box tile = {{lo[0], lo[1], lo[2]}, {0, 0, 0}};
    int64_t room = points;
    for (int a = 0; a < 3; ++a) {
        const int64_t all = chunk->hi[a] - chunk->lo[a], left = chunk->hi[a] - lo[a];
        const int64_t size = all < room ? all : room;
        tile.hi[a] = lo[a] + (trl_lidx)(size < left ? size : left);
        room /= size;
    }
    return tile;
}

static void point_at_tile(const trli_reduction_group *group, const group_scratch *s, const trl_box *tile)
{
    ptrdiff_t stride[3] = {1}, origin = tile->lo[0];
    for (int a = 1; a < 3; ++a) {
        stride[a] = stride[a - 1] * (tile->hi[a - 1] - tile->lo[a - 1]);
        origin += tile->lo[a] * stride[a];
    }
    for (int r = 0; r < group->n; ++r) {
        s->output[r] = (trl_array){.at = s->values + r * group->points - origin, .type = TRL_F64};
        memcpy(s->output[r].stride, stride, sizeof stride);
        trli_native_set_array(&s->array[group->reads.nfields + r], &s->output[r]);
    }
}

static void weigh_tile(const trli_step_task *t, trl_location location, double *values, const trl_box *tile)
{
    const trl_layout *layout = t->program->model->layout;
    const trl_lidx n = tile->hi[0] - tile->lo[0];
    for (trl_lidx k = tile->lo[2]; k < tile->hi[2]; ++k)
        for (trl_lidx j = tile->lo[1]; j < tile->hi[1]; ++j, values += n)
            trli_weigh_row(layout, &layout->patch[t->patch], location, (trl_lidx[]){tile->lo[0], j, k}, n, values);
}

trli_partial *trli_reduction_share(const trli_step_task *t, const trli_frame *frame, int space, int r)
{
    const int number = t->program->run->reductions.first + t->group->first + r;
    return &frame->share[space][(ptrdiff_t)t->patch * frame->model->run->nreductions + number];
}

trli_partial *trli_reduction_part(const trli_step_task *t, const trl_task_args *args, int r)
{
    const trli_frame *frame = args->frame;
    if (args->space > 0) return trli_reduction_share(t, frame, args->space, r);
    return &trli_parts_of_patch(frame, t->program->run->reductions.first + t->group->first + r, t->patch)[args->worker];
}

/* Add the values of a tile, and expect others like them. */
static void reduce_tile(const trli_step_task *t, const trl_task_args *args, const group_scratch *s, const trl_box *tile)
{
    const trli_reduced_step *reduction = &t->program->run->reductions.reduction[t->group->first];
    double *values = s->values;
    for (int r = 0; r < t->group->n; ++r, values += t->group->points) {
        const trli_merge merge = t->group->merge[r];
        trli_partial *part = trli_reduction_part(t, args, r);
        if (trli_is_weighted(&reduction[r])) weigh_tile(t, reduction[r].step->reduce.location, values, tile);
        trli_partial_add(part, merge, values, trl_box_points(tile));
        if (t->group->merges && merge == TRLI_MERGE_SUM)
            trli_sum_window_choose(&s->window[r], &part->sum, values, trl_box_points(tile));
    }
}

/* Let a kernel begin with what there is; false: it is not known yet how large the terms of some sum are. */
static bool begin_merge(const trli_step_task *t, const trl_task_args *args, const group_scratch *s)
{
    for (int r = 0; r < t->group->n; ++r) {
        const bool sum = t->group->merge[r] == TRLI_MERGE_SUM;
        double *start = s->merged[r].start;
        start[0] = sum ? s->window[r].start[0] : trli_reduction_part(t, args, r)->extreme;
        start[1] = sum ? s->window[r].start[1] : 0;
        if (sum && start[0] == 0) return false;
    }
    return true;
}

/* Add what a kernel has merged; false: it has not merged all, and nothing is added. */
static bool end_merge(const trli_step_task *t, const trl_task_args *args, const group_scratch *s)
{
    for (int r = 0; r < t->group->n; ++r)
        if (s->merged[r].failed) return false;
    for (int r = 0; r < t->group->n; ++r)
        if (t->group->merge[r] == TRLI_MERGE_SUM)
            trli_sum_window_add(&s->window[r], &trli_reduction_part(t, args, r)->sum, s->merged[r].units);
        else
            trli_reduction_part(t, args, r)->extreme = s->merged[r].extreme;
    return true;
}

/* Compute a tile: the kernel merges its values or, where that fails, stores them. */
static void compute_tile(const trli_step_task *t, const trl_task_args *args, const group_scratch *s,
                         const trli_kernel_run *run, trl_kernel_call *call, const trl_box *tile)
{
    const trli_native_fn native = trli_native_of(&t->group->use);
    point_at_tile(t->group, s, tile);
    trli_native_set_box(call, tile);
    if (native && t->group->merges && begin_merge(t, args, s)) {
        call->merged = s->merged;
        native(call);
        call->merged = NULL;
        if (end_merge(t, args, s)) return;
    }
    if (native)
        native(call);
    else
        trli_kernel_evaluate(t->group->kernel, run, tile);
    reduce_tile(t, args, s, tile);
}

/* The first of a group's reductions. */
static const trli_reduction_run *runs_of(const trli_step_task *t, const trli_frame *frame)
{
    return &frame->reduction[t->program->run->reductions.first + t->group->first];
}

void trli_windows_take(const trli_step_task *t, const trl_task_args *args, trli_sum_window *window)
{
    const trli_reduction_run *run = runs_of(t, args->frame);
    for (int r = 0; r < t->group->n; ++r) window[r] = run[r].window[args->worker];
}

void trli_windows_return(const trli_step_task *t, const trl_task_args *args, trli_sum_window *window)
{
    const trli_reduction_run *run = runs_of(t, args->frame);
    for (int r = 0; r < t->group->n; ++r) {
        trli_sum_window_empty(&window[r], &trli_reduction_part(t, args, r)->sum);
        run[r].window[args->worker] = window[r];
    }
}

void trli_group_compute(const trli_step_task *t, const trl_task_args *args, const trl_box *box, void *scratch)
{
    const trli_reduction_group *group = t->group;
    const trli_frame *frame = args->frame;
    const trl_layout *layout = frame->model->layout;
    const group_scratch s = scratch_of(group, scratch);
    const trli_kernel_run run = {.grid = &layout->grid,
                                 .patch = &layout->patch[t->patch],
                                 .input = s.input,
                                 .output = s.output,
                                 .scalar = frame->scalar,
                                 .scratch = s.registers};
    const trl_kernel_grid grid = trli_kernel_grid_of(&run);
    trl_kernel_call call = {.input = s.array,
                            .output = s.array + group->reads.nfields,
                            .scalar = frame->scalar,
                            .number = group->use.number,
                            .grid = &grid,
                            .block = group->points,
                            .ahead = TRLI_POINTS_AHEAD,
                            .interleave = 1};
    trl_box tile;
    for (int i = 0; i < group->reads.nfields; ++i) {
        s.input[i] = trli_frame_array(frame, group->reads.field[i], t->patch, args->space);
        trli_native_set_array(&s.array[i], &s.input[i]);
    }
    trli_windows_take(t, args, s.window);
    for (trl_lidx z = box->lo[2]; z < box->hi[2]; z = tile.hi[2])
        for (trl_lidx y = box->lo[1]; y < box->hi[1]; y = tile.hi[1])
            for (trl_lidx x = box->lo[0]; x < box->hi[0]; x = tile.hi[0]) {
                tile = trli_tile_at(group->points, box, (trl_lidx[]){x, y, z});
                compute_tile(t, args, &s, &run, &call, &tile);
            }
    trli_windows_return(t, args, s.window);
}

trl_err trli_task_reduce(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trl_box box = args->chunks == 1 ? t->box : trli_box_part(&t->box, t->parts, args->chunk);
    (void)done;
    if (t->group->at_once && args->chunk == 0) trli_note_at_once(args->frame, t->program, t->group, false);
    for (int r = 0; (args->space > 0 || args->chunk == 0) && r < t->group->n; ++r)
        trli_partial_clear(trli_reduction_share(t, args->frame, args->space, r), t->group->merge[r]);
    trli_group_compute(t, args, &box, ((const trli_frame *)args->frame)->scratch[args->worker]);
    return TRL_OK;
}

void trli_parts_take(trli_partial *part, int n, trli_merge merge, trli_partial *total)
{
    for (int w = 0; w < n; ++w) {
        trli_partial_merge(total, merge, &part[w]);
        trli_partial_clear(&part[w], merge);
    }
}

void trli_reductions_merge(const trli_program *program, const trli_reduction_batch *batch, const trli_frame *frame,
                           trli_partial *shares, trli_batch_run *message)
{
    const trli_reductions *all = &program->run->reductions;
    message->nsums = message->nextremes = 0;
    for (int r = batch->first; r < batch->first + batch->n; ++r) {
        const trli_merge merge = all->reduction[r].merge;
        trli_partial *part = frame->reduction[all->first + r].part, total;
        trli_partial_clear(&total, merge);
        trli_parts_take(part, frame->model->run->lanes * frame->reduction[all->first + r].patches, merge, &total);
        trli_partial *share = shares + all->first + r;
        for (int p = 0; p < frame->model->layout->nlocal; ++p, share += frame->model->run->nreductions) {
            trli_partial_merge(&total, merge, share);
            trli_partial_clear(share, merge);
        }
        if (merge == TRLI_MERGE_SUM)
            trli_partial_pack_sum(&total, message->sum[message->nsums++]);
        else
            trli_partial_pack_extreme(&total, merge, message->extreme[message->nextremes++]);
    }
}

static void spoil(trli_batch_run *message)
{
    for (int i = 0; i < message->nsums; ++i) trli_partial_spoil_sum(message->sum[i]);
    for (int i = 0; i < message->nextremes; ++i) trli_partial_spoil_extreme(message->extreme[i]);
}

void trli_reductions_set(const trli_program *program, const trli_reduction_batch *batch, const trli_frame *frame,
                         trli_batch_run *message)
{
    const trli_reductions *all = &program->run->reductions;
    int sums = 0, extremes = 0;
    message->failed = message->nsums > 0 ? trli_partial_spoilt_sum(message->sum[0])
                                         : trli_partial_spoilt_extreme(message->extreme[0]);
    for (int r = batch->first; r < batch->first + batch->n; ++r) {
        const trli_reduced_step *reduction = &all->reduction[r];
        frame->scalar[reduction->step->scalar] =
            reduction->merge == TRLI_MERGE_SUM
                ? trli_partial_unpack_sum(message->sum[sums++])
                : trli_partial_unpack_extreme(reduction->merge, message->extreme[extremes++]);
    }
}

void trli_reductions_clear(trli_frame *frame, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    for (int r = 0; r < all->n; ++r)
        for (int w = 0; w < frame->model->run->lanes * frame->reduction[all->first + r].patches; ++w)
            trli_partial_clear(&frame->reduction[all->first + r].part[w], all->reduction[r].merge);
    for (int p = 0; p < frame->model->layout->nlocal; ++p)
        for (int r = 0; r < all->n; ++r)
            trli_partial_clear(&frame->share[0][(ptrdiff_t)p * frame->model->run->nreductions + all->first + r],
                               all->reduction[r].merge);
}

bool trli_reductions_failed(const trli_frame *frame, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    bool failed = false;
    for (int b = 0; b < all->nbatches; ++b) failed |= frame->batch[all->first_batch + b].failed;
    return failed;
}

/* Merge another rank's part. */
static void take_part(const void *batch, int64_t *value, const int64_t *part)
{
    const trli_batch_run *m = batch;
    double *own = m->extreme[0], extreme;
    const int words = m->nsums * TRLI_PARTIAL_WORDS;
    for (int i = 0; i < words; ++i) value[i] += part[i];
    for (int i = 0; i < m->nextremes * TRLI_PARTIAL_PAIR; ++i) {
        memcpy(&extreme, &part[words + i], sizeof extreme);
        if (extreme > own[i]) own[i] = extreme;
    }
}

trl_err trli_batch_create(trl_context *ctx, trli_batch_run *m, int index, int nsums, int nextremes)
{
    const int n = nsums * TRLI_PARTIAL_WORDS + nextremes * TRLI_PARTIAL_PAIR;
    int64_t *numbers = trli_new(ctx, 2 * (size_t)n + 1, sizeof *numbers);
    if (!numbers) return trli_no_memory(ctx, NULL, "for reductions");
    *m = (trli_batch_run){.index = index,
                          .nsums = nsums,
                          .nextremes = nextremes,
                          .sum = (int64_t(*)[TRLI_PARTIAL_WORDS])numbers,
                          .extreme = (double(*)[TRLI_PARTIAL_PAIR])(numbers + nsums * TRLI_PARTIAL_WORDS),
                          .all = {.n = n, .value = numbers, .received = numbers + n, .merge = take_part, .how = m}};
    return TRL_OK;
}

void trli_batch_destroy(const trli_frame *frame, trli_batch_run *m)
{
    if (!m->sum || (m->posted && !trli_reductions_leave(frame, m))) return;
    trli_free(m->all.value);
    m->sum = NULL;
}

/* Send this rank's part, if that is not done; and look whether all have come. */
static trl_err bring_on(const trli_frame *frame, trli_batch_run *m)
{
    trl_err err = TRL_OK;
    if (!m->posted) {
        m->posted = true;
        m->all.comm = frame->comm;
        m->all.tag = m->index;
        m->all.board = frame->board;
        m->all.slot = TRLI_MERGING_SLOTS * m->index;
        TRL_TRY(trli_merging_begin(frame->model->ctx, &m->all));
    }
    err = trli_merging_look(frame->model->ctx, &m->all);
done:
    return err;
}

static trl_err look_at_batch(const trli_frame *frame, trli_batch_run *m, bool *there)
{
    trl_context *ctx = frame->model->ctx;
    const bool by_messages = trli_merging_sends(ctx, frame->board);
    trl_err err = TRL_OK;
    *there = false;
    if (trl_context_lost(ctx)) return TRL_ERR_MPI; /* other ranks may never join the operation */
    if (!by_messages) TRL_TRY(bring_on(frame, m));
    *there = m->posted && !m->all.under_way;
    if (*there || !trl_context_mpi_try_lock(ctx)) return TRL_OK;
    if (by_messages) err = bring_on(frame, m);
    *there = !m->all.under_way;
    if (err == TRL_OK && m->all.under_way && m->all.stage != TRLI_MERGING_ROUNDS) err = trli_agree_call_mpi(ctx);
    trl_context_mpi_unlock(ctx);
done:
    return err;
}

static void end_batch(const trli_program *program, const trli_reduction_batch *batch, const trli_frame *frame,
                      trli_batch_run *m)
{
    m->started = m->posted = false;
    trli_reductions_set(program, batch, frame, m);
}

trl_err trli_task_reduce_finish(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    const trli_reductions *all = &t->program->run->reductions;
    trli_batch_run *m = &frame->batch[all->first_batch + (t->batch - all->batch)];
    bool there = true;
    trl_err err = TRL_OK;
    if (trl_context_lost(frame->model->ctx)) return TRL_ERR_MPI;
    if (!m->started) {
        trli_reductions_merge(t->program, t->batch, frame, frame->share[0], m);
        if (args->failed) spoil(m);
        m->started = !trli_sums_join(frame, t->program);
        m->failed &= m->started;
    }
    if (!m->started) return TRL_OK;
    if (trl_context_ranks(frame->model->ctx) > 1) TRL_TRY(look_at_batch(frame, m, &there));
    *done = there || (frame->defers && m->posted);
    if (there && !frame->defers) end_batch(t->program, t->batch, frame, m);
done:
    return err;
}

void trli_reductions_end(const trli_frame *frame, const trli_program *program, int worker)
{
    const trli_reductions *all = &program->run->reductions;
    const trli_step *end = program->step + program->nsteps;
    for (int b = 0; b < all->nbatches; ++b)
        end_batch(program, &all->batch[b], frame, &frame->batch[all->first_batch + b]);
    for (const trli_step *s = all->batch->step; s < end; ++s)
        if (s->kind == TRLI_STEP_SCALAR && trli_plan_of(program, s)->live)
            trli_scalar_compute(program, s, frame, worker);
}

trl_err trli_reductions_look(const trli_frame *frame, const trli_program *program, int worker, bool *there)
{
    const trli_reductions *all = &program->run->reductions;
    trl_err err = TRL_OK;
    *there = true;
    for (int b = 0; b < all->nbatches && *there; ++b)
        TRL_TRY(look_at_batch(frame, &frame->batch[all->first_batch + b], there));
    if (*there) trli_reductions_end(frame, program, worker);
done:
    return err;
}

static void leave_to_polls(trl_context *ctx, trli_batch_run *m)
{
    if (m->posted && m->all.under_way) trli_merging_leave(ctx, &m->all);
}

trl_err trli_batch_post(const trli_frame *frame, trli_batch_run *m)
{
    trl_context *ctx = frame->model->ctx;
    bool there;
    trl_err err = TRL_OK;
    m->started = true;
    for (int looks = 0; trl_context_ranks(ctx) > 1 && !m->posted; ++looks) {
        TRL_TRY(look_at_batch(frame, m, &there));
        if (!m->posted) trli_agree_rest(ctx, looks);
    }
    leave_to_polls(ctx, m);
done:
    return err;
}

void trli_reductions_leave_to_polls(const trli_frame *frame, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    for (int b = 0; b < all->nbatches; ++b) leave_to_polls(frame->model->ctx, &frame->batch[all->first_batch + b]);
}

trl_err trli_batch_await(const trli_frame *frame, trli_batch_run *m)
{
    trl_context *ctx = frame->model->ctx;
    bool there = trl_context_ranks(ctx) == 1;
    trl_err err = TRL_OK;
    trli_merging_take_back(ctx, &m->all);
    for (int looks = 0; !there; looks += looks < INT_MAX) {
        TRL_TRY(look_at_batch(frame, m, &there));
        if (there) break;
        trli_agree_go_on(ctx);
        trli_notice_look(ctx, false);
        trli_agree_rest(ctx, looks);
    }
    m->started = m->posted = false;
done:
    return err;
}

trl_err trli_reductions_await(trli_frame *frame, const trli_program *program, double *scalar)
{
    const trli_reductions *all = &program->run->reductions;
    double *present = frame->scalar;
    trl_err err = TRL_OK;
    for (int b = 0; b < all->nbatches; ++b) TRL_TRY(trli_batch_await(frame, &frame->batch[all->first_batch + b]));
    frame->scalar = scalar;
    if (all->nbatches > 0) trli_reductions_end(frame, program, 0);
    frame->scalar = present;
done:
    return err;
}

bool trli_reductions_leave(const trli_frame *frame, trli_batch_run *m)
{
    const double patience = 2; /* s; a rank that failed may never send its part */
    const double deadline = trli_clock() + patience;
    bool there = !m->posted || !trli_merging_sends(frame->model->ctx, frame->board);
    trli_merging_take_back(frame->model->ctx, &m->all);
    for (int looks = 0; !there && trli_clock() < deadline; looks += looks < INT_MAX) {
        if (look_at_batch(frame, m, &there) != TRL_OK) return false;
        trli_agree_rest(frame->model->ctx, looks);
    }
    return there;
}

void trli_reductions_drop(const trli_frame *frame, const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    for (int b = 0; b < all->nbatches; ++b) {
        trli_batch_run *m = &frame->batch[all->first_batch + b];
        if (m->started && trli_reductions_leave(frame, m)) m->started = m->posted = false;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Task functions that communicate: exchanges and reductions. They run after an error too, so that no other rank waits
 * for this one. */
#include <chunks_impl.h>

#include "context_impl.h"
#include "model_run_impl.h"
#include "tasks_impl.h"

static void gather_arrays(const trli_frame *frame, const trli_step_task *t)
{
    const int np = frame->model->layout->nlocal;
    for (int i = 0; i < t->exchanged->n; ++i)
        for (int p = 0; p < np; ++p)
            frame->exchange[t->exchange].array[i * np + p] = trli_frame_array(frame, t->exchanged->field[i], p);
}

trl_err trli_task_exchange_begin(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    (void)done;
    gather_arrays(frame, t);
    return trl_exchange_begin(frame->exchange[t->exchange].exchange, frame->exchange[t->exchange].arrays);
}

trl_err trli_task_exchange_finish(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_frame *frame = args->frame;
    return trl_exchange_finish(frame->exchange[t->exchange].exchange, frame->exchange[t->exchange].arrays, done);
}

static trli_merge merge_of(trli_reduce_kind kind)
{
    return kind == TRLI_REDUCE_MIN ? TRLI_MERGE_MIN : kind == TRLI_REDUCE_MAX ? TRLI_MERGE_MAX : TRLI_MERGE_SUM;
}

static trli_reduce_kind reduce_kind(const trli_step *s)
{
    return s->kind == TRLI_STEP_STABLE_DT ? TRLI_REDUCE_MIN : s->reduce.kind;
}

static void reduce_tile(const trli_step_task *t, trli_partial *part, double *values, const trl_box *tile)
{
    const trl_layout *layout = t->program->model->layout;
    const trl_patch *patch = &layout->patch[layout->local[t->patch]];
    trl_lidx n = tile->hi[0] - tile->lo[0];
    double *row = values;
    for (trl_lidx k = tile->lo[2]; k < tile->hi[2]; ++k)
        for (trl_lidx j = tile->lo[1]; j < tile->hi[1]; ++j, row += n) {
            const trl_lidx at[3] = {tile->lo[0], j, k};
            if (t->step->kind == TRLI_STEP_REDUCE && t->step->reduce.weighted)
                trli_weigh_row(layout, patch, t->step->reduce.location, at, n, row);
            trli_partial_add(part, merge_of(reduce_kind(t->step)), row, n);
        }
}

trl_err trli_task_reduce(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trli_step_plan *p = t->plan;
    const trli_frame *frame = args->frame;
    const trl_layout *layout = frame->model->layout;
    const trl_lidx *size = trli_kernel_tile(t->run->kernel);
    char *at = frame->scratch[args->worker];
    trl_array *input = (trl_array *)at;
    size_t arrays = ((size_t)(p->ninputs + 1) * sizeof *input + 63) / 64 * 64;
    size_t tile_bytes = ((size_t)size[0] * (size_t)size[1] * (size_t)size[2] * sizeof(double) + 63) / 64 * 64;
    double *values = (double *)(at + arrays);
    trl_box chunk = args->chunks == 1 ? t->box : trli_box_part(&t->box, t->parts, args->chunk), tile;
    trl_array output = {.type = TRL_F64};
    const trli_kernel_run run = {.grid = &layout->grid,
                                 .patch = &layout->patch[layout->local[t->patch]],
                                 .input = input,
                                 .output = &output,
                                 .scalar = frame->scalar,
                                 .scratch = at + arrays + tile_bytes};
    (void)done;
    for (int i = 0; i < p->ninputs; ++i) input[i] = trli_frame_array(frame, p->input[i], t->patch);
    for (tile.lo[2] = chunk.lo[2]; tile.lo[2] < chunk.hi[2]; tile.lo[2] = tile.hi[2])
        for (tile.lo[1] = chunk.lo[1]; tile.lo[1] < chunk.hi[1]; tile.lo[1] = tile.hi[1])
            for (tile.lo[0] = chunk.lo[0]; tile.lo[0] < chunk.hi[0]; tile.lo[0] = tile.hi[0]) {
                ptrdiff_t stride = 1, origin = 0;
                for (int a = 0; a < 3; ++a) {
                    tile.hi[a] = tile.lo[a] + size[a] < chunk.hi[a] ? tile.lo[a] + size[a] : chunk.hi[a];
                    output.stride[a] = stride;
                    origin += tile.lo[a] * stride;
                    stride *= tile.hi[a] - tile.lo[a];
                }
                output.at = values - origin;
                trli_kernel_evaluate(t->run->kernel, &run, &tile);
                reduce_tile(t, &frame->reduction[t->reduction].part[args->worker], values, &tile);
            }
    return TRL_OK;
}

/* Bring the workers' shares together and leave them ready for the next run. */
static void merge_workers(trli_reduction_run *r, trli_merge merge, int nworkers)
{
    trli_partial total;
    trli_partial_clear(&total, merge);
    for (int w = 0; w < nworkers; ++w) {
        trli_partial_merge(&total, merge, &r->part[w]);
        trli_partial_clear(&r->part[w], merge);
    }
    if (merge == TRLI_MERGE_SUM)
        trli_partial_pack_sum(&total, r->words);
    else
        trli_partial_pack_extreme(&total, merge, r->pair);
}

static double merged_value(const trli_reduction_run *r, trli_merge merge)
{
    return merge == TRLI_MERGE_SUM ? trli_partial_unpack_sum(r->words) : trli_partial_unpack_extreme(merge, r->pair);
}

static int start_allreduce(MPI_Comm comm, trli_reduction_run *r, trli_merge merge)
{
    if (merge == TRLI_MERGE_SUM)
        return MPI_Iallreduce(MPI_IN_PLACE, r->words, TRLI_PARTIAL_WORDS, MPI_INT64_T, MPI_SUM, comm, &r->request);
    return MPI_Iallreduce(MPI_IN_PLACE, r->pair, TRLI_PARTIAL_PAIR, MPI_DOUBLE, MPI_MAX, comm, &r->request);
}

void trli_reductions_clear(trli_frame *frame, const trli_program *program)
{
    const trli_program_execution *run = program->run;
    for (int r = 0; r < run->nreductions; ++r)
        for (int w = 0; w < frame->model->run->nworkers; ++w)
            trli_partial_clear(&frame->reduction[run->first_reduction + r].part[w], merge_of(run->reduces[r]));
}

trl_err trli_task_reduce_finish(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    trli_frame *frame = args->frame;
    trli_reduction_run *r = &frame->reduction[t->reduction];
    const trli_model *model = frame->model;
    trli_merge merge = merge_of(reduce_kind(t->step));
    int finished = 1, status = MPI_SUCCESS;
    if (trl_context_lost(model->ctx)) return TRL_ERR_MPI; /* the others may never come to it */
    if (!r->started) {
        merge_workers(r, merge, model->run->nworkers);
        r->started = true;
    }
    if (trl_context_ranks(model->ctx) > 1) {
        if (!trl_context_mpi_try_lock(model->ctx)) {
            *done = false;
            return TRL_OK;
        }
        finished = 0;
        if (!r->posted) status = start_allreduce(frame->comm, r, merge);
        r->posted = true;
        if (status == MPI_SUCCESS) status = MPI_Test(&r->request, &finished, MPI_STATUS_IGNORE);
        trl_context_mpi_unlock(model->ctx);
    }
    if (status != MPI_SUCCESS) return trli_mpi_check(model->ctx, status, "MPI_Iallreduce");
    *done = finished != 0;
    if (!finished) return TRL_OK;
    r->started = r->posted = false;
    frame->scalar[t->step->scalar] = merged_value(r, merge);
    return TRL_OK;
}

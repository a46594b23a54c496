/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Between the first grid, which the ranks share, and points chosen among its own. Each coarse value is computed by the
 * rank that has its point, from fine values in one order. */
#include "context_impl.h"
#include "galerkin_impl.h"

typedef struct job {
    const trli_entries *a;
    const trli_patch_box *part;
    const double *from;
    double *to;
    trl_array fine;
} job;

static trl_err restrict_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const trli_patch_box *part = w->part;
    const trli_sparse *back = &part->back;
    const int end = (int)((int64_t)back->rows * (chunk + 1) / chunks);
    (void)worker;
    for (int i = (int)((int64_t)back->rows * chunk / chunks); i < end; ++i) {
        double sum = 0;
        for (int e = back->begin[i]; e < back->begin[i + 1]; ++e) sum += back->value[e] * w->from[part->place[e]];
        w->to[part->coarse[i]] = sum + 0.0; /* no negative zero */
    }
    return TRL_OK;
}

static trl_err prolong_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const trli_patch_box *part = w->part;
    const trli_sparse *p = &part->p;
    const int64_t rows = (int64_t)part->n[1] * part->n[2];
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        const int j = (int)(row % part->n[1]), k = (int)(row / part->n[1]);
        const int box[3] = {part->ghosts[0], part->ghosts[1] + j, part->ghosts[2] + k};
        const int64_t first = trli_patch_box_index(part, box);
        double *to = w->to + trl_array_offset(&w->fine, 0, j, k);
        for (int i = 0; i < part->n[0]; ++i) {
            double sum = 0;
            for (int e = p->begin[first + i]; e < p->begin[first + i + 1]; ++e)
                sum += p->value[e] * w->from[p->column[e]];
            to[i] += sum;
        }
    }
    return TRL_OK;
}

static int chunks_of(const trl_loop *loop, int64_t rows)
{
    const int64_t most = 4 * trl_loop_workers(loop);
    return (int)(rows < most ? rows : most);
}

trl_err trli_sparse_restrict(const trli_entries *a, int field, double *to, trl_loop *loop)
{
    trl_simulation *sim = a->s->sim;
    trl_err err = trli_frame_fetch(sim->frame, field);
    if (a->whole) TRL_TRY(trli_entries_collect(a, err, field, a->whole));
    for (int p = 0; p < sim->layout->nlocal && err == TRL_OK; ++p) {
        job w = {a, &a->part[p], a->whole, to, trli_frame_array(sim->frame, field, p, 0)};
        if (!a->whole) w.from = w.fine.at;
        err = trl_loop_run(loop, chunks_of(loop, w.part->back.rows), restrict_chunk, &w);
    }
    err = trl_context_agree(sim->ctx, err);
done:
    return err;
}

trl_err trli_sparse_prolong(const trli_entries *a, const double *from, int field, trl_loop *loop)
{
    trl_simulation *sim = a->s->sim;
    trl_err err = trli_frame_fetch(sim->frame, field);
    for (int p = 0; p < sim->layout->nlocal && err == TRL_OK; ++p) {
        job w = {a, &a->part[p], from, NULL, trli_frame_array(sim->frame, field, p, 0)};
        w.to = w.fine.at;
        err = trl_loop_run(loop, chunks_of(loop, (int64_t)w.part->n[1] * w.part->n[2]), prolong_chunk, &w);
    }
    trli_frame_written(sim->frame, field);
    return err;
}

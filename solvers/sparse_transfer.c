/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Between the first grid, which the ranks share, and points chosen among its own that every rank has. Each coarse value
 * is computed by the rank that has its point, from fine values in one order. */
#include "context_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"

void trli_sparse_transfer_free(trli_sparse_transfer *t)
{
    trli_sparse_free(&t->p);
    trli_sparse_free(&t->back);
    trli_free(t->number);
    trli_free(t->whole);
    *t = (trli_sparse_transfer){0};
}

/* Patches are thinner than restriction reads ghosts. */
static bool is_thin(const trl_layout *layout)
{
    bool thin = false;
    for (int a = 0; a < 3; ++a)
        thin |= layout->counts[a] > 1 && layout->grid.cells[a] / layout->counts[a] < TRLI_TRANSFER_DEPTH;
    return thin;
}

trl_err trli_sparse_transfer_create(trl_simulation *sim, const trli_entries *a, trli_sparse_transfer *t)
{
    const size_t n = (size_t)trli_entries_points(a);
    trl_err err = TRL_OK;
    *t = (trli_sparse_transfer){.number = trli_new(sim->ctx, n, sizeof *t->number)};
    for (int axis = 0; axis < 3; ++axis) t->n[axis] = a->n[axis];
    if (is_thin(sim->layout)) t->whole = trli_new(sim->ctx, n, sizeof *t->whole);
    if (!t->number || (is_thin(sim->layout) && !t->whole)) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for coarser grids"));
    TRL_TRY(trli_entries_split(sim->ctx, a, t->number, &t->p));
    err = trli_sparse_transpose(sim->ctx, &t->p, &t->back);
done:
    return err;
}

typedef struct job {
    const trli_sparse_transfer *t;
    const double *from;
    double *to;
    trl_array fine;
    int first[3];
    bool whole; /* indices wrap */
} job;

/* The place of a point of the whole grid in the patch's array, or its ghosts, near one of its points. */
static ptrdiff_t place(const job *w, int point, const int near[3])
{
    const int *n = w->t->n;
    int at[3] = {point % n[0], point / n[0] % n[1], point / n[0] / n[1]};
    for (int a = 0; a < 3; ++a) {
        const int step = at[a] - near[a];
        if (!w->whole && step > 1) at[a] -= n[a];
        if (!w->whole && step < -1) at[a] += n[a];
    }
    return trl_array_offset(&w->fine, at[0] - w->first[0], at[1] - w->first[1], at[2] - w->first[2]);
}

static void restrict_point(const job *w, const int at[3], int coarse)
{
    const trli_sparse *back = &w->t->back;
    double sum = 0;
    for (int e = back->begin[coarse]; e < back->begin[coarse + 1]; ++e) {
        const ptrdiff_t from = w->t->whole ? back->column[e] : place(w, back->column[e], at);
        sum += back->value[e] * w->from[from];
    }
    w->to[coarse] = sum + 0.0; /* no negative zero: sums over ranks have none */
}

static trl_err restrict_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const trl_lidx *n = w->fine.owned.hi;
    const int64_t rows = (int64_t)n[1] * n[2];
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        int at[3] = {w->first[0], w->first[1] + (int)(row % n[1]), w->first[2] + (int)(row / n[1])};
        const int *number = w->t->number + at[0] + (int64_t)w->t->n[0] * (at[1] + (int64_t)w->t->n[1] * at[2]);
        for (int i = 0; i < n[0]; ++i, ++at[0])
            if (number[i] >= 0) restrict_point(w, at, number[i]);
    }
    return TRL_OK;
}

static trl_err prolong_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const trli_sparse *p = &w->t->p;
    const trl_lidx *n = w->fine.owned.hi;
    const int64_t rows = (int64_t)n[1] * n[2];
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        const int j = (int)(row % n[1]), k = (int)(row / n[1]);
        const int64_t first =
            w->first[0] + (int64_t)w->t->n[0] * (w->first[1] + j + (int64_t)w->t->n[1] * (w->first[2] + k));
        double *to = w->to + trl_array_offset(&w->fine, 0, j, k);
        for (int i = 0; i < n[0]; ++i) {
            double sum = 0;
            for (int e = p->begin[first + i]; e < p->begin[first + i + 1]; ++e)
                sum += p->value[e] * w->from[p->column[e]];
            to[i] = sum;
        }
    }
    return TRL_OK;
}

static job job_of(const trli_sparse_transfer *t, const trl_simulation *sim, int field, int p)
{
    job w = {.t = t, .fine = trli_frame_array(sim->frame, field, p, 0), .whole = sim->layout->npatches == 1};
    for (int a = 0; a < 3; ++a) w.first[a] = (int)sim->layout->patch[p].first[a];
    return w;
}

static trl_err run(const job *w, trl_loop *loop, trl_loop_fn fn)
{
    const int64_t rows = (int64_t)w->fine.owned.hi[1] * w->fine.owned.hi[2], most = 4 * trl_loop_workers(loop);
    return trl_loop_run(loop, (int)(rows < most ? rows : most), fn, (void *)w);
}

trl_err trli_sparse_restrict(const trli_sparse_transfer *t, trl_simulation *sim, int field, double *to, trl_loop *loop)
{
    trl_err err = trli_frame_fetch(sim->frame, field);
    if (t->whole) TRL_TRY(trli_entries_collect(sim, err, field, t->n, t->whole));
    for (int i = 0; i < t->p.columns; ++i) to[i] = 0;
    for (int p = 0; p < sim->layout->nlocal && err == TRL_OK; ++p) {
        job w = job_of(t, sim, field, p);
        w.from = t->whole ? t->whole : w.fine.at;
        w.to = to;
        err = run(&w, loop, restrict_chunk);
    }
    if (trl_context_ranks(sim->ctx) > 1)
        err = trli_allreduce_after(sim->ctx, err, to, t->p.columns, MPI_DOUBLE, MPI_SUM);
done:
    return err;
}

trl_err trli_sparse_prolong(const trli_sparse_transfer *t, const double *from, trl_simulation *sim, int field,
                            trl_loop *loop)
{
    trl_err err = TRL_OK;
    for (int p = 0; p < sim->layout->nlocal && err == TRL_OK; ++p) {
        job w = job_of(t, sim, field, p);
        w.from = from;
        w.to = w.fine.at;
        err = run(&w, loop, prolong_chunk);
    }
    trli_frame_written(sim->frame, field);
    return err;
}

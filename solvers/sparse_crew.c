/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Matrices whose rows are made by all workers, or by those of all ranks: each makes runs of rows, which are joined in
 * their order. */
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "sparse_impl.h"

enum { ROWS_LEAST = 1000, CHUNKS_EACH = 2, MAKING = 100 /* points of a grid in a step, for as long as a row takes */ };

struct trli_sparse_crew {
    trl_context *ctx;
    trl_loop *loop;
    int workers;
    int64_t replicate;  /* ranks share work if each would do others' of so many points */
    trli_sparse run;    /* this rank's rows of such a one */
    int *count, *begin; /* [ranks] */
    trli_sparse *part;  /* [CHUNKS_EACH * workers] of the matrix that is made */
    int **place;        /* [workers] lists of -1, for trli_sparse_add */
    int32_t *places;    /* [workers] their lengths */
};

static trl_err no_memory(const trli_sparse_crew *crew)
{
    return trli_no_memory(crew->ctx, NULL, "for coarser grids");
}

trl_err trli_sparse_crew_create(trl_context *ctx, trl_loop *loop, int64_t replicate, trli_sparse_crew **crew)
{
    const size_t ranks = (size_t)trl_context_ranks(ctx);
    trli_sparse_crew *c = *crew = trli_new(ctx, 1, sizeof *c);
    if (!c) return trli_no_memory(ctx, NULL, "for coarser grids");
    *c = (trli_sparse_crew){.ctx = ctx, .loop = loop, .workers = trl_loop_workers(loop), .replicate = replicate};
    c->count = trli_new(ctx, 2 * ranks, sizeof *c->count);
    if (!c->count) return no_memory(c);
    c->begin = c->count + ranks;
    c->part = trli_new(ctx, (size_t)(CHUNKS_EACH * c->workers), sizeof *c->part);
    c->place = trli_new(ctx, (size_t)c->workers, sizeof *c->place);
    c->places = trli_new(ctx, (size_t)c->workers, sizeof *c->places);
    return c->part && c->place && c->places ? TRL_OK : no_memory(c);
}

void trli_sparse_crew_destroy(trli_sparse_crew **crew)
{
    trli_sparse_crew *c = *crew;
    *crew = NULL;
    if (!c) return;
    for (int i = 0; c->part && i < CHUNKS_EACH * c->workers; ++i) trli_sparse_free(&c->part[i]);
    for (int i = 0; c->place && i < c->workers; ++i) trli_free(c->place[i]);
    trli_sparse_free(&c->run);
    trli_free(c->count);
    trli_free(c->part);
    trli_free(c->place);
    trli_free(c->places);
    trli_free(c);
}

trl_loop *trli_sparse_crew_loop(const trli_sparse_crew *crew)
{
    return crew->loop;
}

int trli_sparse_crew_chunks(const trli_sparse_crew *crew, int64_t rows)
{
    const int64_t most = crew->workers > 1 ? (int64_t)CHUNKS_EACH * crew->workers : 1, chunks = rows / ROWS_LEAST;
    return (int)(chunks < 1 ? 1 : chunks < most ? chunks : most);
}

/* ---- runs of rows ---- */

typedef struct making {
    trli_sparse_crew *crew;
    trli_sparse_row_fn fn;
    const void *data;
    int first; /* row of the matrix of which `all` has some */
    trli_sparse *all;
} making;

static int first_of(const trli_sparse *a, int chunk, int chunks)
{
    return (int)((int64_t)a->rows * chunk / chunks);
}

static trl_err make_rows(void *data, int chunk, int chunks, int worker)
{
    const making *m = data;
    trli_sparse_crew *c = m->crew;
    const int first = first_of(m->all, chunk, chunks), end = first_of(m->all, chunk + 1, chunks);
    trli_sparse_rows rows;
    trl_err err = TRL_OK;
    if (!trli_make_room(c->ctx, &c->place[worker], 0, (int64_t)m->all->columns + 1, &c->places[worker],
                        sizeof *c->place[worker]))
        TRL_TRY(no_memory(c));
    for (int i = 0; i < m->all->columns; ++i) c->place[worker][i] = -1;
    TRL_TRY(trli_sparse_begin(c->ctx, end - first, m->all->columns, &c->part[chunk], &rows));
    for (int row = first; row < end; ++row) {
        TRL_TRY(m->fn(m->data, &rows, c->place[worker], m->first + row));
        trli_sparse_end_row(&rows);
    }
done:
    return err;
}

static trl_err copy_rows(void *data, int chunk, int chunks, int worker)
{
    const making *m = data;
    const trli_sparse *part = &m->crew->part[chunk];
    const int first = first_of(m->all, chunk, chunks), to = m->all->begin[first];
    const size_t n = (size_t)part->begin[part->rows];
    (void)worker;
    memcpy(m->all->column + to, part->column, n * sizeof *part->column);
    memcpy(m->all->value + to, part->value, n * sizeof *part->value);
    return TRL_OK;
}

static trl_err join(making *m, int chunks)
{
    trli_sparse *all = m->all;
    int64_t n = 0;
    trl_err err = TRL_OK;
    for (int k = 0; k < chunks; ++k) n += m->crew->part[k].begin[m->crew->part[k].rows];
    if (n > INT32_MAX) TRL_TRY(no_memory(m->crew));
    TRL_TRY(trli_sparse_reserve_pattern(m->crew->ctx, all, all->rows, all->columns, (int)n));
    TRL_TRY(trli_sparse_reserve(m->crew->ctx, all, (int)n));
    for (int k = 0, row = 0, before = 0; k < chunks; ++k) {
        const trli_sparse *part = &m->crew->part[k];
        for (int i = 0; i < part->rows; ++i) all->begin[row++] = before + part->begin[i];
        all->begin[row] = before += part->begin[part->rows];
    }
    err = trl_loop_run(m->crew->loop, chunks, copy_rows, m);
done:
    return err;
}

/* Rows of a matrix from the first on, as one of their own. */
static trl_err make_run(making *m, int rows, int columns)
{
    trli_sparse_crew *crew = m->crew;
    trli_sparse *a = m->all;
    const int chunks = trli_sparse_crew_chunks(crew, rows);
    trl_err err = TRL_OK;
    a->rows = rows;
    a->columns = columns;
    TRL_TRY(trl_loop_run(crew->loop, chunks, make_rows, m));
    if (chunks > 1) {
        TRL_TRY(join(m, chunks));
    } else { /* what was in its place is made anew next time */
        const trli_sparse other = *a;
        *a = crew->part[0];
        crew->part[0] = other;
    }
    trli_sparse_trim(crew->ctx, a);
done:
    return err;
}

trl_err trli_sparse_make(trli_sparse_crew *crew, int rows, int columns, trli_sparse_row_fn fn, const void *data,
                         trli_sparse *a)
{
    making m = {crew, fn, data, 0, a};
    return make_run(&m, rows, columns);
}

/* ---- by all ranks ---- */

bool trli_sparse_crew_shares(const trli_sparse_crew *crew, int64_t points)
{
    const int ranks = trl_context_ranks(crew->ctx);
    return ranks > 1 && points - points / ranks >= crew->replicate;
}

static int first_of_rank(const trli_sparse *a, const trl_context *ctx, int rank)
{
    return first_of(a, rank, trl_context_ranks(ctx));
}

/* How many entries rows have, and so where they begin. */
static trl_err gather_pattern(trli_sparse_crew *c, trli_sparse *all)
{
    const int ranks = trl_context_ranks(c->ctx), first = first_of_rank(all, c->ctx, trl_context_rank(c->ctx));
    int64_t n = 0;
    trl_err err = TRL_OK;
    for (int i = 0; i < c->run.rows; ++i) all->begin[first + i + 1] = c->run.begin[i + 1] - c->run.begin[i];
    for (int r = 0; r < ranks; ++r) {
        c->begin[r] = first_of_rank(all, c->ctx, r) + 1;
        c->count[r] = first_of_rank(all, c->ctx, r + 1) + 1 - c->begin[r];
    }
    TRL_TRY(trli_allgatherv_further(c->ctx, all->begin, c->count, c->begin, MPI_INT));
    for (int i = 0; i < all->rows; ++i) n += all->begin[i + 1];
    if (n > INT32_MAX) TRL_TRY(no_memory(c));
    all->begin[0] = 0;
    for (int i = 0; i < all->rows; ++i) all->begin[i + 1] += all->begin[i];
done:
    return err;
}

static trl_err gather_entries(trli_sparse_crew *c, trli_sparse *all)
{
    const int ranks = trl_context_ranks(c->ctx), me = trl_context_rank(c->ctx);
    const size_t n = (size_t)c->run.begin[c->run.rows];
    trl_err err = TRL_OK;
    for (int r = 0; r < ranks; ++r) {
        c->begin[r] = all->begin[first_of_rank(all, c->ctx, r)];
        c->count[r] = all->begin[first_of_rank(all, c->ctx, r + 1)] - c->begin[r];
    }
    if (n > 0) memcpy(all->column + c->begin[me], c->run.column, n * sizeof *all->column);
    if (n > 0) memcpy(all->value + c->begin[me], c->run.value, n * sizeof *all->value);
    TRL_TRY(trli_allgatherv_further(c->ctx, all->column, c->count, c->begin, MPI_INT));
    err = trli_allgatherv_further(c->ctx, all->value, c->count, c->begin, MPI_DOUBLE);
done:
    return err;
}

trl_err trli_sparse_make_together(trli_sparse_crew *crew, int rows, int columns, trli_sparse_row_fn fn,
                                  const void *data, trli_sparse *a)
{
    trl_context *ctx = crew->ctx;
    making m = {crew, fn, data, 0, &crew->run};
    if (!trli_sparse_crew_shares(crew, (int64_t)MAKING * rows))
        return trli_sparse_make(crew, rows, columns, fn, data, a);
    trl_err err = trli_sparse_reserve_pattern(ctx, a, rows, columns, 0);
    m.first = first_of_rank(a, ctx, trl_context_rank(ctx));
    if (err == TRL_OK) err = make_run(&m, first_of_rank(a, ctx, trl_context_rank(ctx) + 1) - m.first, columns);
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(gather_pattern(crew, a));
    TRL_TRY(trl_context_agree(ctx, trli_sparse_reserve(ctx, a, a->begin[rows])));
    TRL_TRY(gather_entries(crew, a));
    trli_sparse_trim(ctx, a);
done:
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Matrices whose rows are made by all workers: each makes runs of rows, which are joined in their order. */
#include <string.h>

#include "memory_impl.h"
#include "sparse_impl.h"

enum { ROWS_LEAST = 1000, CHUNKS_EACH = 2 };

struct trli_sparse_crew {
    trl_context *ctx;
    trl_loop *loop;
    int workers;
    trli_sparse *part; /* [CHUNKS_EACH * workers] of the matrix that is made */
    int **place;       /* [workers] lists of -1, for trli_sparse_add */
    int32_t *places;   /* [workers] their lengths */
};

static trl_err no_memory(const trli_sparse_crew *crew)
{
    return trli_no_memory(crew->ctx, NULL, "for coarser grids");
}

trl_err trli_sparse_crew_create(trl_context *ctx, trl_loop *loop, trli_sparse_crew **crew)
{
    trli_sparse_crew *c = *crew = trli_new(ctx, 1, sizeof *c);
    if (!c) return trli_no_memory(ctx, NULL, "for coarser grids");
    *c = (trli_sparse_crew){.ctx = ctx, .loop = loop, .workers = trl_loop_workers(loop)};
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
        TRL_TRY(m->fn(m->data, &rows, c->place[worker], row));
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

trl_err trli_sparse_make(trli_sparse_crew *crew, int rows, int columns, trli_sparse_row_fn fn, const void *data,
                         trli_sparse *a)
{
    making m = {crew, fn, data, a};
    const int chunks = trli_sparse_crew_chunks(crew, rows);
    trl_err err = TRL_OK;
    a->rows = rows;
    a->columns = columns;
    TRL_TRY(trl_loop_run(crew->loop, chunks, make_rows, &m));
    if (chunks > 1) {
        TRL_TRY(join(&m, chunks));
    } else { /* what was in its place is made anew next time */
        const trli_sparse other = *a;
        *a = crew->part[0];
        crew->part[0] = other;
    }
    trli_sparse_trim(crew->ctx, a);
done:
    return err;
}

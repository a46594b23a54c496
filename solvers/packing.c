/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "memory_impl.h"
#include "packing_impl.h"

static int patches_of(const trli_packing *p)
{
    return p->sim->layout->nlocal;
}

typedef struct job {
    const trli_packing *packing;
    int fields;
    const int *field;    /* [fields] */
    const double *from;  /* NULL: from fields to values; else to fields */
    double *values;      /* what fields have, or */
    const double *minus; /* not NULL: these less what fields have, over: */
    double over;
    int stride;
} job;

static void copy_row(const job *w, double *f, int64_t at, trl_lidx n)
{
    if (w->from)
        memcpy(f, w->from + at, (size_t)n * sizeof *f);
    else if (w->minus)
        for (trl_lidx i = 0; i < n; ++i) w->values[at + i] = (w->minus[at + i] - f[i]) / w->over;
    else
        for (trl_lidx i = 0; i < n; ++i) w->values[(at + i) * w->stride] = f[i];
}

static trl_err copy_rows(void *data, int chunk, int chunks, int worker)
{
    const job *w = data;
    const trli_packing *p = w->packing;
    const int patches = patches_of(p), pieces = w->fields * patches;
    const int64_t begin = p->row[pieces] * chunk / chunks, end = p->row[pieces] * (chunk + 1) / chunks;
    (void)worker;
    for (int piece = 0; piece < pieces; ++piece) {
        const int64_t start = p->row[piece], last = end < p->row[piece + 1] ? end : p->row[piece + 1];
        const trl_array a = trli_frame_array(p->sim->frame, w->field[piece / patches], piece % patches, 0);
        const trl_lidx *lo = a.owned.lo, nx = a.owned.hi[0] - lo[0], ny = a.owned.hi[1] - lo[1];
        for (int64_t row = begin > start ? begin : start; row < last; ++row) {
            const trl_lidx y = (trl_lidx)((row - start) % ny), z = (trl_lidx)((row - start) / ny);
            const ptrdiff_t offset = trl_array_offset(&a, lo[0], lo[1] + y, lo[2] + z);
            copy_row(w, (double *)a.at + offset, p->first[piece] + (row - start) * nx, nx);
        }
    }
    return TRL_OK;
}

static trl_err run(job *w)
{
    const int64_t rows = w->packing->row[w->fields * patches_of(w->packing)],
                  most = 4 * trl_loop_workers(w->packing->loop);
    trl_err err = TRL_OK;
    for (int v = 0; v < w->fields && !w->from; ++v) TRL_TRY(trli_frame_fetch(w->packing->sim->frame, w->field[v]));
    TRL_TRY(trl_loop_run(w->packing->loop, (int)(rows < most ? rows : most), copy_rows, w));
    for (int v = 0; v < w->fields && w->from; ++v) trli_frame_written(w->packing->sim->frame, w->field[v]);
done:
    return err;
}

trl_err trli_pack(const trli_packing *packing, const int *field, double *values)
{
    return run(&(job){packing, packing->n, field, .values = values, .stride = 1});
}

trl_err trli_pack_difference(const trli_packing *packing, const double *minus, const int *field, double over,
                             double *values)
{
    return run(&(job){packing, packing->n, field, .values = values, .minus = minus, .over = over});
}

trl_err trli_pack_one(const trli_packing *packing, int field, int stride, double *values)
{
    return run(&(job){packing, 1, &field, .values = values, .stride = stride});
}

trl_err trli_unpack(const trli_packing *packing, const double *values, const int *field)
{
    return run(&(job){packing, packing->n, field, .from = values});
}

trl_err trli_packing_create(trl_simulation *sim, int n, const int *equation, trli_packing *packing)
{
    const int patches = sim->layout->nlocal, pieces = n * patches;
    const size_t bytes = ((size_t)pieces + 1) * sizeof(int64_t);
    trl_err err = TRL_OK;
    *packing =
        (trli_packing){.sim = sim, .n = n, .row = trli_new(sim->ctx, 1, bytes), .first = trli_new(sim->ctx, 1, bytes)};
    if (!packing->row || !packing->first) return trli_no_memory(sim->ctx, NULL, "for vectors");
    TRL_TRY(trl_loop_create(sim->ctx, sim->workers, &packing->loop));
    for (int piece = 0; piece < pieces; ++piece) {
        const int state = sim->equation[equation[piece / patches]].state;
        const trl_box o = trli_frame_array(sim->frame, state, piece % patches, 0).owned;
        const int64_t rows = (int64_t)(o.hi[1] - o.lo[1]) * (o.hi[2] - o.lo[2]);
        packing->row[piece + 1] = packing->row[piece] + rows;
        packing->first[piece + 1] = packing->first[piece] + rows * (o.hi[0] - o.lo[0]);
    }
done:
    return err;
}

void trli_packing_destroy(trli_packing *packing)
{
    trl_loop_destroy(&packing->loop);
    trli_free(packing->row);
    trli_free(packing->first);
    *packing = (trli_packing){0};
}

int64_t trli_packing_size(const trli_packing *packing)
{
    return trli_packing_begin(packing, packing->n);
}

int64_t trli_packing_begin(const trli_packing *packing, int i)
{
    return packing->first[i * patches_of(packing)];
}

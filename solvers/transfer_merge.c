/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Patches of a grid that are one patch of the next coarser grid, which all their ranks have. Each of its values is
 * restricted by one of the ranks that have different patches, and sent to the others. Where several ranks have the same
 * patch of the finer grid, they do the same side by side, each with those at its own place (owners_impl.h). */
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "spatialops_impl.h"

enum { TAG = 3 /* others: 2, and from 64 on */ };

/* What one patch of the finer grid has of the coarse one. */
typedef struct part {
    int rank;
    trl_box box; /* in local indices of the coarse patch */
    int n;
    double *values;
} part;

struct trli_merging_parts {
    int n, own;
    part *part;           /* [n] */
    MPI_Request *request; /* [2n] */
    double *values;
};

/* Points between the coarse cells whose middles are the first ones in the patch and behind it. */
static void find_part(const trli_transfer_request *request, const trl_patch *patch, part *p)
{
    const trl_layout *fine = request->fine, *coarse = request->coarse;
    const trl_patch *whole = &coarse->patch[0];
    const trl_box owned = trl_patch_owned(coarse, whole, request->location);
    p->rank = patch->rank;
    for (int a = 0; a < 3; ++a) {
        const trl_gidx end = patch->first[a] + patch->cells[a];
        p->box.lo[a] =
            (trl_lidx)(trli_layout_coarse_first(&fine->grid, &coarse->grid, a, patch->first[a]) - whole->first[a]);
        p->box.hi[a] = (trl_lidx)(trli_layout_coarse_first(&fine->grid, &coarse->grid, a, end) - whole->first[a]);
        if (trl_patch_at_side(fine, patch, a, 1)) p->box.hi[a] = owned.hi[a]; /* with the final plane */
    }
    p->n = (int)trl_box_points(&p->box);
}

static trl_err no_memory(trl_context *ctx)
{
    return trli_no_memory(ctx, NULL, "for a transfer between grids");
}

static trl_err make_parts(trl_context *ctx, const trli_transfer_request *request, const int by[3],
                          trli_merging_parts *m)
{
    const trl_layout *fine = request->fine;
    const int *whole = request->coarse->patch[0].index;
    size_t values = 0;
    for (int k = 0; k < m->n; ++k) {
        const int at[3] = {whole[0] * by[0] + k % by[0], whole[1] * by[1] + k / by[0] % by[1],
                           whole[2] * by[2] + k / by[0] / by[1]};
        const trl_patch patch = trl_layout_patch(fine, at[0] + fine->counts[0] * (at[1] + fine->counts[1] * at[2]));
        find_part(request, &patch, &m->part[k]);
        if (patch.id == fine->patch[0].id) m->own = k;
        values += (size_t)m->part[k].n;
    }
    m->values = trli_new(ctx, values + 1, sizeof *m->values);
    if (!m->values) return no_memory(ctx);
    m->part[0].values = m->values;
    for (int k = 1; k < m->n; ++k) m->part[k].values = m->part[k - 1].values + m->part[k - 1].n;
    return TRL_OK;
}

trl_err trli_merging_create(trl_context *ctx, const trli_transfer_request *request, trli_merging_parts **parts)
{
    int by[3], n = 1;
    *parts = NULL;
    for (int a = 0; a < 3; ++a) n *= by[a] = request->fine->counts[a] / request->coarse->counts[a];
    if (n == 1) return TRL_OK;
    trli_merging_parts *m = *parts = trli_new(ctx, 1, sizeof *m);
    if (!m) return no_memory(ctx);
    m->n = n;
    m->part = trli_new(ctx, (size_t)n, sizeof *m->part);
    m->request = trli_new(ctx, 2 * (size_t)n, sizeof(MPI_Request));
    return m->part && m->request ? make_parts(ctx, request, by, m) : no_memory(ctx);
}

void trli_merging_destroy(trli_merging_parts **parts)
{
    trli_merging_parts *m = *parts;
    *parts = NULL;
    if (!m) return;
    trli_free(m->part);
    trli_free(m->request);
    trli_free(m->values);
    trli_free(m);
}

const trl_box *trli_merging_own(const trli_merging_parts *parts)
{
    return &parts->part[parts->own].box;
}

/* Values of a part in rows, from the array or back. */
static void move(const part *p, const trl_array *a, bool back)
{
    const size_t n = (size_t)(p->box.hi[0] - p->box.lo[0]);
    double *kept = p->values;
    for (trl_lidx k = p->box.lo[2]; k < p->box.hi[2] && p->n > 0; ++k)
        for (trl_lidx j = p->box.lo[1]; j < p->box.hi[1]; ++j, kept += n) {
            double *values = (double *)a->at + trl_array_offset(a, p->box.lo[0], j, k);
            memcpy(back ? values : kept, back ? kept : values, n * sizeof *kept);
        }
}

static trl_err exchange(const trli_merging_parts *m, trl_context *ctx)
{
    const part *own = &m->part[m->own];
    int n = 0;
    trl_err err = TRL_OK;
    for (int k = 0; k < m->n; ++k) {
        const part *p = &m->part[k];
        if (k == m->own || p->n == 0) continue;
        TRL_TRY(trli_mpi_check(ctx, MPI_Irecv(p->values, p->n, MPI_DOUBLE, p->rank, TAG, ctx->comm, &m->request[n++]),
                               "MPI_Irecv"));
    }
    for (int k = 0; k < m->n; ++k) {
        if (k == m->own || own->n == 0) continue;
        TRL_TRY(trli_send_begin(ctx, own->values, own->n, MPI_DOUBLE, m->part[k].rank, TAG, &m->request[n++]));
    }
    for (int i = 0; i < n; ++i) TRL_TRY(trli_request_await(ctx, &m->request[i], 0));
done:
    return err;
}

trl_err trli_merging_join(const trli_merging_parts *parts, trl_context *ctx, trl_err err, const trl_array *coarse)
{
    move(&parts->part[parts->own], coarse, false);
    const trl_err sent = exchange(parts, ctx);
    for (int k = 0; k < parts->n && sent == TRL_OK; ++k)
        if (k != parts->own) move(&parts->part[k], coarse, true);
    return err != TRL_OK ? err : sent;
}

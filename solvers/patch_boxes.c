/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boxes around patches of the first grid, and how values come to what lies beyond the patches. */
#include "context_impl.h"
#include "galerkin_impl.h"

bool trli_patch_box_point(const trli_entries *a, const trli_patch_box *part, const int box[3], int at[3])
{
    for (int c = 0; c < 3; ++c) {
        at[c] = part->first[c] + box[c] - part->ghosts[c];
        if (a->periodic[c]) at[c] += at[c] < 0 ? a->n[c] : at[c] >= a->n[c] ? -a->n[c] : 0;
        if (at[c] < 0 || at[c] >= a->n[c]) return false;
    }
    return true;
}

trl_err trli_entries_collect(const trli_entries *a, trl_err err, int field, double *values)
{
    const trl_simulation *sim = a->s->sim;
    const int64_t points = trli_entries_points(a);
    for (int64_t i = 0; i < points; ++i) values[i] = 0;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_array array = trli_frame_array(sim->frame, field, p, 0);
        const trl_box *b = &array.owned;
        const trl_gidx *first = sim->layout->patch[p].first;
        for (trl_lidx k = b->lo[2]; k < b->hi[2]; ++k)
            for (trl_lidx j = b->lo[1]; j < b->hi[1]; ++j) {
                double *to = values + first[0] + a->n[0] * (first[1] + j + a->n[1] * (first[2] + k));
                const double *from = (const double *)array.at + trl_array_offset(&array, 0, j, k);
                for (trl_lidx i = b->lo[0]; i < b->hi[0]; ++i) to[i] = from[i] + 0.0; /* no negative zero */
            }
    }
    return trli_allreduce_after(sim->ctx, err, values, (int)points, MPI_DOUBLE, MPI_SUM);
}

/* ---- entries of neighbours ---- */

static void put(const trli_entries *a, int entry, int field)
{
    const trl_simulation *sim = a->s->sim;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trli_patch_box *part = &a->part[p];
        const trl_array array = trli_frame_array(sim->frame, field, p, 0);
        for (int k = 0; k < part->n[2]; ++k)
            for (int j = 0; j < part->n[1]; ++j) {
                const int box[3] = {part->ghosts[0], part->ghosts[1] + j, part->ghosts[2] + k};
                const double *from = part->entry + trli_patch_box_index(part, box) * a->entries + entry;
                double *to = (double *)array.at + trl_array_offset(&array, 0, j, k);
                for (int i = 0; i < part->n[0]; ++i) to[i] = from[(ptrdiff_t)i * a->entries];
            }
    }
    trli_frame_written(sim->frame, field);
}

/* Where all of a part's neighbours are in one place: the values of the whole grid, or the patch's array. */
typedef struct source {
    const double *whole;
    trl_array array;
    bool wraps; /* the array has all points, and no ghosts */
} source;

static double value_at(const trli_entries *a, const trli_patch_box *part, const source *from, const int box[3],
                       const int at[3])
{
    if (from->whole) return from->whole[at[0] + (int64_t)a->n[0] * (at[1] + (int64_t)a->n[1] * at[2])];
    int local[3];
    for (int c = 0; c < 3; ++c) local[c] = from->wraps ? at[c] : box[c] - part->ghosts[c];
    return ((const double *)from->array.at)[trl_array_offset(&from->array, local[0], local[1], local[2])];
}

static void take(const trli_entries *a, trli_patch_box *part, const source *from, int entry)
{
    int box[3], at[3];
    for (box[2] = 0; box[2] < part->size[2]; ++box[2])
        for (box[1] = 0; box[1] < part->size[1]; ++box[1])
            for (box[0] = 0; box[0] < part->size[0]; ++box[0]) {
                const int end = part->ghosts[0] + part->n[0];
                if (trli_patch_box_owns(part, box) && box[0] + 1 < end) box[0] = end - 1;
                if (trli_patch_box_owns(part, box) || !trli_patch_box_point(a, part, box, at)) continue;
                part->entry[trli_patch_box_index(part, box) * a->entries + entry] = value_at(a, part, from, box, at);
            }
}

trl_err trli_entries_exchange(const trli_entries *a, int entry)
{
    const trl_simulation *sim = a->s->sim;
    const int field = a->level->r.now[a->unknown];
    const bool one = sim->layout->npatches == 1;
    trl_err err = TRL_OK;
    put(a, entry, field);
    if (a->whole) {
        TRL_TRY(trli_entries_collect(a, TRL_OK, field, a->whole));
    } else if (!one) {
        TRL_TRY(trli_solver_program(a->s, a->level->ghosts));
        TRL_TRY(trl_context_agree(sim->ctx, trli_frame_fetch(sim->frame, field)));
    }
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const source from = {a->whole, trli_frame_array(sim->frame, field, p, 0), one};
        take(a, &a->part[p], &from, entry);
    }
done:
    return err;
}

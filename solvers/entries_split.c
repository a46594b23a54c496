/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Each point of the first grid that is odd along an axis of strong coupling is left out, and interpolated along such
 * axes alone. */
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"

enum { WORD = 64 };

/* ---- which points ---- */

/* How strongly a point is coupled along each axis, its equation summed over the others. */
static void strengths_of(const trli_entries *a, const double *entry, double strength[3])
{
    const double sign = entry[0] < 0 ? 1 : -1;
    for (int axis = 0; axis < 3; ++axis) {
        double sum = 0;
        for (int e = 1; e < a->entries; ++e)
            if (a->offset[e][axis]) sum += entry[e];
        strength[axis] = fmax(0, sign * sum);
    }
}

static int8_t left_out(const trli_entries *a, const double *entry, const int at[3])
{
    const double weak = 0.28; /* of the strongest: an axis that is about half as strong goes along */
    double strength[3], most = 0;
    int bits = 0;
    strengths_of(a, entry, strength);
    for (int axis = 0; axis < 3; ++axis) most = fmax(most, strength[axis]);
    for (int axis = 0; axis < 3; ++axis)
        if (at[axis] % 2 && strength[axis] > 0 && strength[axis] >= weak * most) bits |= 1 << axis;
    return (int8_t)(entry[0] != 0 ? bits : -1);
}

static int64_t point(const trli_entries *a, const int at[3])
{
    return at[0] + (int64_t)a->n[0] * (at[1] + (int64_t)a->n[1] * at[2]);
}

static void choose(trli_entries *a, trli_patch_box *part)
{
    int box[3], at[3];
    int64_t i = 0;
    for (box[2] = 0; box[2] < part->size[2]; ++box[2])
        for (box[1] = 0; box[1] < part->size[1]; ++box[1])
            for (box[0] = 0; box[0] < part->size[0]; ++box[0], ++i) {
                const bool is = trli_patch_box_point(a, part, box, at);
                part->left_out[i] = is ? left_out(a, part->entry + i * a->entries, at) : -1;
                if (part->left_out[i] || !trli_patch_box_owns(part, box)) continue;
                const int64_t p = point(a, at);
                a->kept[p / WORD] |= (uint64_t)1 << p % WORD;
            }
}

static int count_bits(uint64_t bits)
{
    int n = 0;
    for (; bits; bits &= bits - 1) ++n;
    return n;
}

int trli_entries_number(const trli_entries *a, const int at[3])
{
    const int64_t p = point(a, at);
    return a->before[p / WORD] + count_bits(a->kept[p / WORD] & (((uint64_t)1 << p % WORD) - 1));
}

/* ---- interpolation ---- */

static int code_of(const int offset[3])
{
    return offset[0] + 1 + 3 * (offset[1] + 1) + 9 * (offset[2] + 1);
}

/* weight[code of an offset from the point that is interpolated] += factor times the weights of the point at a place,
 * which lies at an offset from that one: its own, or by its equation those of neighbours along axes on which it is left
 * out. These are left out along fewer. */
static void add_weights(const trli_entries *a, const trli_patch_box *part, const int box[3], const int offset[3],
                        double factor, double *weight)
{
    const int64_t here = trli_patch_box_index(part, box);
    const double *entry = part->entry + here * a->entries;
    const int own = part->left_out[here];
    double centre = 0;
    if (own < 0) return;
    if (own == 0) weight[code_of(offset)] += factor;
    for (int e = 0; e < a->entries && own; ++e) {
        bool along = false;
        for (int axis = 0; axis < 3; ++axis) along |= a->offset[e][axis] && own >> axis & 1;
        if (!along) centre += entry[e];
    }
    for (int e = 1; e < a->entries && own && centre != 0; ++e) {
        int to[3], further[3];
        bool along = false, inside = true;
        for (int axis = 0; axis < 3; ++axis) {
            along |= a->offset[e][axis] && own >> axis & 1;
            to[axis] = box[axis] + a->offset[e][axis];
            further[axis] = offset[axis] + a->offset[e][axis];
            inside &= to[axis] >= 0 && to[axis] < part->size[axis];
        }
        if (along && inside && entry[e] != 0) add_weights(a, part, to, further, -factor * entry[e] / centre, weight);
    }
}

static trl_err interpolate(const trli_entries *a, const trli_patch_box *part, const int box[3],
                           trli_sparse_rows *making)
{
    const int none[3] = {0, 0, 0};
    double weight[TRLI_AROUND] = {0};
    trl_err err = TRL_OK;
    add_weights(a, part, box, none, 1, weight);
    for (int code = 0; code < TRLI_AROUND; ++code) {
        const int to[3] = {box[0] + code % 3 - 1, box[1] + code / 3 % 3 - 1, box[2] + code / 9 - 1};
        int at[3];
        if (weight[code] != 0 && trli_patch_box_point(a, part, to, at))
            TRL_TRY(trli_sparse_entry(making, trli_entries_number(a, at), weight[code]));
    }
    trli_sparse_end_row(making);
done:
    return err;
}

static trl_err interpolate_all(const trli_entries *a, trli_patch_box *part)
{
    const int points = part->size[0] * part->size[1] * part->size[2];
    trli_sparse_rows making;
    int box[3];
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_begin(a->s->sim->ctx, points, a->coarse, &part->p, &making));
    for (box[2] = 0; box[2] < part->size[2]; ++box[2])
        for (box[1] = 0; box[1] < part->size[1]; ++box[1])
            for (box[0] = 0; box[0] < part->size[0]; ++box[0]) TRL_TRY(interpolate(a, part, box, &making));
done:
    return err;
}

/* ---- its transpose ---- */

static trl_err transpose_row(const trli_patch_box *part, const int box[3], int number, trli_sparse_rows *making)
{
    const trli_sparse *p = &part->p;
    trl_err err = TRL_OK;
    for (int code = 0; code < TRLI_AROUND; ++code) {
        const int to[3] = {box[0] + code % 3 - 1, box[1] + code / 3 % 3 - 1, box[2] + code / 9 - 1};
        bool inside = true;
        for (int c = 0; c < 3; ++c) inside &= to[c] >= 0 && to[c] < part->size[c];
        if (!inside) continue;
        const int fine = (int)trli_patch_box_index(part, to);
        for (int e = p->begin[fine]; e < p->begin[fine + 1]; ++e)
            if (p->column[e] == number) TRL_TRY(trli_sparse_entry(making, fine, p->value[e]));
    }
    trli_sparse_end_row(making);
done:
    return err;
}

/* Where restriction finds the values of a box's points. */
static void find_places(const trli_entries *a, const trli_patch_box *part, const trl_array *array)
{
    const int *size = part->size, all = part->back.begin[part->back.rows];
    const bool wraps = a->whole || a->s->sim->layout->npatches == 1; /* there are no ghosts */
    for (int e = 0; e < all; ++e) {
        const int i = part->back.column[e];
        const int box[3] = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
        int at[3] = {box[0] - part->ghosts[0], box[1] - part->ghosts[1], box[2] - part->ghosts[2]};
        if (wraps && !trli_patch_box_point(a, part, box, at)) continue; /* never: it is interpolated */
        part->place[e] = a->whole ? (ptrdiff_t)point(a, at) : trl_array_offset(array, at[0], at[1], at[2]);
    }
}

/* A row for each coarse point of the patch. */
static trl_err transpose(const trli_entries *a, trli_patch_box *part, const trl_array *array)
{
    trl_context *ctx = a->s->sim->ctx;
    trli_sparse_rows making;
    int box[3], at[3], rows = 0;
    trl_err err = TRL_OK;
    for (int pass = 0; pass < 2; ++pass) {
        if (pass == 1) TRL_TRY(trli_sparse_begin(ctx, rows, part->p.rows, &part->back, &making));
        if (pass == 1 && !trli_make_room(ctx, &part->number, 0, rows, &part->numbers, sizeof *part->number))
            TRL_TRY(trli_no_memory(ctx, NULL, "for coarser grids"));
        rows = 0;
        for (box[2] = part->ghosts[2]; box[2] < part->ghosts[2] + part->n[2]; ++box[2])
            for (box[1] = part->ghosts[1]; box[1] < part->ghosts[1] + part->n[1]; ++box[1])
                for (box[0] = part->ghosts[0]; box[0] < part->ghosts[0] + part->n[0]; ++box[0]) {
                    if (part->left_out[trli_patch_box_index(part, box)] || !trli_patch_box_point(a, part, box, at))
                        continue;
                    if (pass == 1) TRL_TRY(transpose_row(part, box, trli_entries_number(a, at), &making));
                    if (pass == 1) part->number[rows] = trli_entries_number(a, at);
                    ++rows;
                }
    }
    const int all = part->back.begin[rows];
    if (!trli_make_room(ctx, &part->place, 0, all, &part->places, sizeof *part->place))
        TRL_TRY(trli_no_memory(ctx, NULL, "for coarser grids"));
    find_places(a, part, array);
done:
    return err;
}

/* ---- all of it ---- */

trl_err trli_entries_split(trli_entries *a)
{
    const trl_simulation *sim = a->s->sim;
    trl_err err = TRL_OK;
    memset(a->kept, 0, (size_t)a->words * sizeof *a->kept);
    for (int p = 0; p < sim->layout->nlocal; ++p) choose(a, &a->part[p]);
    TRL_TRY(trli_allreduce(sim->ctx, a->kept, a->words, MPI_UINT64_T, MPI_BOR));
    a->coarse = 0;
    for (int w = 0; w < a->words; ++w) {
        a->before[w] = a->coarse;
        a->coarse += count_bits(a->kept[w]);
    }
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_array array = trli_frame_array(sim->frame, a->level->r.now[0], p, 0);
        TRL_TRY(interpolate_all(a, &a->part[p]));
        TRL_TRY(transpose(a, &a->part[p], &array));
    }
done:
    return err;
}

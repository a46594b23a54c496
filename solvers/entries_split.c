/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Each point of the first grid that is odd along an axis of strong coupling is left out, and interpolated along such
 * axes alone. */
#include <math.h>
#include <stdlib.h>

#include "galerkin_impl.h"
#include "memory_impl.h"

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
        if (at[axis] & 1 && strength[axis] > 0 && strength[axis] >= weak * most) bits |= 1 << axis;
    return (int8_t)(entry[0] != 0 ? bits : -1);
}

static int64_t point(const trli_entries *a, const int at[3])
{
    return at[0] + (int64_t)a->n[0] * (at[1] + (int64_t)a->n[1] * at[2]);
}

/* What a loop over the rows of a part's box does. */
typedef struct splitting {
    trli_entries *a;
    trli_patch_box *part;
    const trli_row_owners *rows;
    const trl_array *array;
} splitting;

static trl_err choose_rows(void *data, int chunk, int chunks, int worker)
{
    const splitting *w = data;
    trli_patch_box *part = w->part;
    const int64_t rows = (int64_t)part->size[1] * part->size[2];
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        int box[3] = {0, (int)(row % part->size[1]), (int)(row / part->size[1])}, at[3];
        int64_t i = row * part->size[0];
        for (; box[0] < part->size[0]; ++box[0], ++i) {
            const bool is = trli_patch_box_point(w->a, part, box, at);
            part->left_out[i] = is ? left_out(w->a, part->entry + i * w->a->entries, at) : -1;
        }
    }
    return TRL_OK;
}

/* ---- their numbers ---- */

static int compare_points(const void *a, const void *b)
{
    const trl_gidx x = *(const trl_gidx *)a, y = *(const trl_gidx *)b;
    return (x > y) - (x < y);
}

/* Coarse points in a patch, x fastest; list NULL: how many these are. */
static int list_points(const trli_entries *a, const trli_patch_box *part, trl_gidx *list)
{
    int n = 0;
    for (int k = 0; k < part->n[2]; ++k)
        for (int j = 0; j < part->n[1]; ++j) {
            const int box[3] = {part->ghosts[0], part->ghosts[1] + j, part->ghosts[2] + k};
            const int at[3] = {part->first[0], part->first[1] + j, part->first[2] + k};
            const int8_t *left = part->left_out + trli_patch_box_index(part, box);
            const int64_t first = point(a, at);
            for (int i = 0; i < part->n[0]; ++i) {
                if (left[i] == 0 && list) list[n] = first + i;
                n += left[i] == 0;
            }
        }
    return n;
}

/* Those beyond the patch. */
static trl_err add_others(const trli_entries *a, const trli_patch_box *part, trli_row_owners *rows)
{
    int box[3], at[3], row;
    trl_err err = TRL_OK;
    for (box[2] = 0; box[2] < part->size[2]; ++box[2])
        for (box[1] = 0; box[1] < part->size[1]; ++box[1])
            for (box[0] = 0; box[0] < part->size[0]; ++box[0]) {
                if (trli_patch_box_owns(part, box)) {
                    box[0] += part->n[0] - 1;
                    continue;
                }
                if (part->left_out[trli_patch_box_index(part, box)] || !trli_patch_box_point(a, part, box, at))
                    continue;
                TRL_TRY(trli_row_owners_add(rows, point(a, at), &row));
            }
done:
    return err;
}

/* Points of several patches are those of one after the other, until they are sorted. */
static trl_err find_points(const trli_entries *a, trli_row_owners *rows)
{
    const trl_simulation *sim = a->s->sim;
    const int parts = sim->layout->nlocal;
    int own = 0;
    trl_err err = TRL_OK;
    for (int p = 0; p < parts; ++p) own += list_points(a, &a->part[p], NULL);
    TRL_TRY(trli_row_owners_begin(sim->ctx, sim->layout, a->n, own, rows));
    for (int p = 0, n = 0; p < parts; ++p) n += list_points(a, &a->part[p], rows->point + n);
    if (parts > 1) qsort(rows->point, (size_t)own, sizeof *rows->point, compare_points);
    for (int p = 0; p < parts; ++p) TRL_TRY(add_others(a, &a->part[p], rows));
done:
    return err;
}

static trl_err number_rows(void *data, int chunk, int chunks, int worker)
{
    const splitting *w = data;
    const trli_row_owners *known = w->rows;
    trli_patch_box *part = w->part;
    const int64_t rows = (int64_t)part->size[1] * part->size[2];
    int last = 0;
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        int box[3] = {0, (int)(row % part->size[1]), (int)(row / part->size[1])}, at[3];
        int64_t i = row * part->size[0];
        for (; box[0] < part->size[0]; ++box[0], ++i) {
            part->number[i] = -1;
            if (part->left_out[i] || !trli_patch_box_point(w->a, part, box, at)) continue;
            const trl_gidx p = point(w->a, at);
            const bool next = last + 1 < known->own && known->point[last + 1] == p; /* in most cases */
            last = part->number[i] = next ? last + 1 : trli_row_owners_find(known, p);
        }
    }
    return TRL_OK;
}

/* The patch's coarse points get rows, in the order of the box. */
static trl_err add_rows(const trli_entries *a, trli_patch_box *part)
{
    const int64_t points = (int64_t)part->size[0] * part->size[1] * part->size[2];
    int rows = 0;
    for (int64_t i = 0; i < points; ++i) part->row[i] = -1;
    for (int k = 0; k < part->n[2]; ++k)
        for (int j = 0; j < part->n[1]; ++j) {
            const int box[3] = {part->ghosts[0], part->ghosts[1] + j, part->ghosts[2] + k};
            const int64_t first = trli_patch_box_index(part, box);
            for (int64_t i = first; i < first + part->n[0]; ++i)
                if (part->number[i] >= 0) part->row[i] = rows++;
        }
    part->back.rows = rows;
    if (!trli_make_room(a->s->sim->ctx, &part->coarse, 0, rows, &part->coarse_room, sizeof *part->coarse))
        return trli_no_memory(a->s->sim->ctx, NULL, "for coarser grids");
    for (int64_t i = 0; i < points; ++i)
        if (part->row[i] >= 0) part->coarse[part->row[i]] = part->number[i];
    return TRL_OK;
}

/* Run a function for the rows of a part's box. */
static trl_err run_rows(const splitting *w, trl_loop_fn fn)
{
    const int64_t rows = (int64_t)w->part->size[1] * w->part->size[2];
    const int chunks = trli_sparse_crew_chunks(w->a->crew, rows * w->part->size[0]);
    return trl_loop_run(trli_sparse_crew_loop(w->a->crew), rows < chunks ? (int)rows : chunks, fn, (void *)w);
}

/* ---- interpolation ---- */

static int code_of(const int offset[3])
{
    return offset[0] + 1 + 3 * (offset[1] + 1) + 9 * (offset[2] + 1);
}

/* Whether a point's equation has a neighbour along an axis on which the point is left out. */
static bool is_along(const trli_entries *a, int entry, int own)
{
    bool along = false;
    for (int axis = 0; axis < 3; ++axis) along |= a->offset[entry][axis] && own >> axis & 1;
    return along;
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
    if (own == 0) {
        weight[code_of(offset)] += factor;
        return;
    }
    for (int e = 0; e < a->entries; ++e)
        if (!is_along(a, e, own)) centre += entry[e];
    for (int e = 1; e < a->entries && centre != 0; ++e) {
        int to[3], further[3];
        bool inside = true;
        if (entry[e] == 0 || !is_along(a, e, own)) continue;
        for (int axis = 0; axis < 3; ++axis) {
            to[axis] = box[axis] + a->offset[e][axis];
            further[axis] = offset[axis] + a->offset[e][axis];
            inside &= to[axis] >= 0 && to[axis] < part->size[axis];
        }
        if (inside) add_weights(a, part, to, further, -factor * entry[e] / centre, weight);
    }
}

static trl_err interpolate(const void *data, trli_sparse_rows *making, int *place, int here)
{
    const splitting *w = data;
    const trli_patch_box *part = w->part;
    const int none[3] = {0, 0, 0};
    double weight[TRLI_AROUND] = {0};
    trl_err err = TRL_OK;
    (void)place;
    if (part->left_out[here] == 0) TRL_TRY(trli_sparse_entry(making, here, 1));
    if (part->left_out[here] <= 0) return TRL_OK;
    const int box[3] = {here % part->size[0], here / part->size[0] % part->size[1],
                        here / part->size[0] / part->size[1]};
    add_weights(w->a, part, box, none, 1, weight);
    for (int code = 0; code < TRLI_AROUND; ++code) {
        const int offset[3] = {code % 3 - 1, code / 3 % 3 - 1, code / 9 - 1};
        if (weight[code] != 0)
            TRL_TRY(trli_sparse_entry(making, here + (int)trli_patch_box_index(part, offset), weight[code]));
    }
done:
    return err;
}

/* ---- its transpose, times the sizes of cells ---- */

/* Where restriction finds the values of a box's points. */
static trl_err find_places(void *data, int chunk, int chunks, int worker)
{
    const splitting *w = data;
    const trli_entries *a = w->a;
    trli_patch_box *part = w->part;
    const int *size = part->size, all = part->back.begin[part->back.rows];
    const bool wraps = a->whole || a->s->sim->layout->npatches == 1; /* there are no ghosts */
    (void)worker;
    for (int e = (int)((int64_t)all * chunk / chunks); e < (int)((int64_t)all * (chunk + 1) / chunks); ++e) {
        const int i = part->back.column[e];
        const int box[3] = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
        int at[3] = {box[0] - part->ghosts[0], box[1] - part->ghosts[1], box[2] - part->ghosts[2]};
        if (wraps && !trli_patch_box_point(a, part, box, at)) continue; /* never: it is interpolated */
        part->place[e] = a->whole ? (ptrdiff_t)point(a, at) : trl_array_offset(w->array, at[0], at[1], at[2]);
    }
    return TRL_OK;
}

/* Points on a side stand for half a cell: so much their rows count, which makes a symmetric matrix of a symmetric
 * operator. */
static double share(const trli_entries *a, const trli_patch_box *part, int i)
{
    const int *size = part->size, box[3] = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
    const trl_location location = a->s->sim->model->variable[a->s->ask.variable[a->unknown]].location;
    double part_of_cell = 1;
    int at[3];
    if (!trli_patch_box_point(a, part, box, at)) return 1; /* never: it is interpolated */
    for (int c = 0; c < 3; ++c)
        if (location >> c & 1 && !a->periodic[c] && (at[c] == 0 || at[c] + 1 == a->n[c])) part_of_cell /= 2;
    return part_of_cell;
}

/* A row for each coarse point of the patch, of which part->row has the places. */
static trl_err transpose(const splitting *w)
{
    const trli_entries *a = w->a;
    trli_patch_box *part = w->part;
    trl_context *ctx = a->s->sim->ctx;
    const trli_sparse *p = &part->p;
    trli_sparse *back = &part->back;
    trli_sparse_rows making;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_begin(ctx, back->rows, p->rows, back, &making));
    int *end = back->begin + 1; /* of the row before, then of each */
    for (int i = 0; i <= back->rows; ++i) end[i] = 0;
    for (int e = 0; e < p->begin[p->rows]; ++e)
        if (part->row[p->column[e]] >= 0) ++end[part->row[p->column[e]] + 1];
    for (int i = 0; i < back->rows; ++i) end[i + 1] += end[i];
    const int all = end[back->rows];
    TRL_TRY(trli_sparse_reserve(ctx, back, all));
    if (!trli_make_room(ctx, &part->place, 0, all, &part->place_room, sizeof *part->place))
        TRL_TRY(trli_no_memory(ctx, NULL, "for coarser grids"));
    for (int fine = 0; fine < p->rows; ++fine)
        for (int e = p->begin[fine]; e < p->begin[fine + 1]; ++e) {
            const int row = part->row[p->column[e]];
            if (row < 0) continue;
            back->column[end[row]] = fine;
            back->value[end[row]++] = p->value[e] * share(a, part, fine);
        }
    err = trl_loop_run(trli_sparse_crew_loop(a->crew), trli_sparse_crew_chunks(a->crew, all), find_places, (void *)w);
done:
    return err;
}

/* ---- all of it ---- */

static trl_err split_part(const splitting *w)
{
    const trli_patch_box *part = w->part;
    const int points = part->size[0] * part->size[1] * part->size[2];
    trl_err err = TRL_OK;
    TRL_TRY(run_rows(w, number_rows));
    TRL_TRY(add_rows(w->a, w->part));
    TRL_TRY(trli_sparse_make(w->a->crew, points, points, interpolate, w, &w->part->p));
    err = transpose(w);
done:
    return err;
}

trl_err trli_entries_split(trli_entries *a, trli_row_owners *rows)
{
    const trl_simulation *sim = a->s->sim;
    trl_err err = TRL_OK;
    for (int p = 0; p < sim->layout->nlocal; ++p)
        TRL_TRY(run_rows(&(splitting){a, &a->part[p], rows, NULL}, choose_rows));
    TRL_TRY(find_points(a, rows));
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_array array = trli_frame_array(sim->frame, a->level->r.now[a->unknown], p, 0);
        TRL_TRY(split_part(&(splitting){a, &a->part[p], rows, &array}));
    }
done:
    return err;
}

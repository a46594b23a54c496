/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The patches of all ranks as boxes of unknown points, and their ghosts, which are points that other patches own; and
 * the grid cut into slabs. */
#include "context_impl.h"
#include "direct_impl.h"
#include "memory_impl.h"
#include "spatialops_impl.h"

enum { DIRECTIONS = 27, CENTRE = 13 };

static int step_of(int direction, int axis)
{
    static const int place[3] = {1, 3, 9};
    return direction / place[axis] % 3 - 1;
}

/* Indices of the unknown points that a patch owns along an axis; others are left out. */
static void owned_range(const trl_layout *layout, const trl_patch *patch, trl_location location, const trli_line *line,
                        int axis, int *lo, int *hi)
{
    const trl_box box = trl_patch_owned(layout, patch, location);
    const int shift = (int)patch->first[axis] - line->first;
    *lo = box.lo[axis] + shift > 0 ? box.lo[axis] + shift : 0;
    *hi = box.hi[axis] + shift < line->n ? box.hi[axis] + shift : line->n;
}

trl_err trli_patch_boxes(trl_context *ctx, const trl_layout *layout, trl_location location, const trli_line line[3],
                         trli_boxes *boxes)
{
    *boxes = (trli_boxes){.n = layout->npatches, .part = trli_new(ctx, (size_t)layout->npatches, sizeof *boxes->part)};
    if (!boxes->part) return trli_no_memory(ctx, NULL, "for a direct solver");
    for (int p = 0; p < layout->npatches; ++p) {
        const trl_patch patch = trl_layout_patch(layout, p);
        trli_shuffle_part *part = &boxes->part[p];
        part->rank = patch.rank;
        for (int a = 0; a < 3; ++a) owned_range(layout, &patch, location, &line[a], a, &part->lo[a], &part->hi[a]);
    }
    for (int i = 0; i < layout->nlocal; ++i) boxes->part[layout->local[i]].array = i;
    return TRL_OK;
}

bool trli_patch_is_unknown(const trl_layout *layout, int p, trl_location location, const trli_line line[3])
{
    const trl_patch *patch = &layout->patch[p];
    const trl_box owned = trl_patch_owned(layout, patch, location);
    bool all = true;
    for (int a = 0; a < 3; ++a) {
        int lo, hi;
        owned_range(layout, patch, location, &line[a], a, &lo, &hi);
        all &= hi - lo == owned.hi[a] - owned.lo[a];
    }
    return all;
}

trli_view trli_patch_view(const trl_simulation *sim, const int first[3], int field, int p, int space)
{
    const trl_patch *patch = &sim->layout->patch[p];
    const trl_array a = trli_frame_array(sim->frame, field, p, space);
    trli_view v = {.at = a.at, .stride = {a.stride[0], a.stride[1], a.stride[2]}};
    for (int k = 0; k < 3; ++k) v.at -= ((ptrdiff_t)patch->first[k] - first[k]) * v.stride[k];
    return v;
}

/* ---- slabs ---- */

static int first_of(int n, int unit, int parts, int i)
{
    const int first = unit * (int)trli_cut_first((n + unit - 1) / unit, parts, i);
    return first < n ? first : n;
}

void trli_cut_boxes(const trli_line line[3], int axis, int unit, int n, trli_shuffle_part *part)
{
    for (int i = 0; i < n; ++i) {
        part[i] = (trli_shuffle_part){0};
        for (int a = 0; a < 3; ++a) part[i].hi[a] = axis >= 0 || i == 0 ? line[a].n : 0;
        if (axis < 0) continue;
        const int units = (line[axis].n + unit - 1) / unit, parts = units < n ? units : n;
        part[i].lo[axis] = i < parts ? first_of(line[axis].n, unit, parts, i) : 0;
        part[i].hi[axis] = i < parts ? first_of(line[axis].n, unit, parts, i + 1) : 0;
    }
}

int trli_other_axis(const trli_line line[3], int last)
{
    for (int a = 2; a >= 0; --a)
        if (a != last && line[a].n > 1) return a;
    return -1;
}

/* ---- ghosts ---- */

/* By how many points the ghosts of a patch in a direction are away from where these points are owned, round a periodic
 * axis. false: there is no patch. */
static bool find_source(const trl_layout *layout, const trl_patch *patch, int direction, int shift[3], int *rank)
{
    int index[3];
    for (int a = 0; a < 3; ++a) {
        const int count = layout->counts[a], cells = (int)layout->grid.cells[a];
        index[a] = patch->index[a] + step_of(direction, a);
        shift[a] = index[a] < 0 ? cells : index[a] >= count ? -cells : 0;
        if (shift[a] != 0 && !layout->grid.periodic[a]) return false;
        index[a] = (index[a] + count) % count;
    }
    *rank = trl_layout_patch(layout, index[0] + layout->counts[0] * (index[1] + layout->counts[1] * index[2])).rank;
    return true;
}

/* The ghosts of a patch in a direction, if another rank owns them. */
static bool find_ghosts(const trl_layout *layout, trl_location location, const trli_line line[3],
                        const trl_offsets *around, const trl_patch *patch, int direction, trli_shuffle_part *part)
{
    int shift[3], rank;
    for (int a = 0; a < 3; ++a) {
        const int step = step_of(direction, a);
        if ((step < 0 && around->lo[a] == 0) || (step > 0 && around->hi[a] == 0)) return false;
    }
    if (direction == CENTRE || !find_source(layout, patch, direction, shift, &rank) || rank == patch->rank)
        return false;
    *part = (trli_shuffle_part){.rank = patch->rank};
    for (int a = 0; a < 3; ++a) {
        const int step = step_of(direction, a);
        int lo, hi;
        owned_range(layout, patch, location, &line[a], a, &lo, &hi);
        part->lo[a] = (step < 0 ? lo + around->lo[a] : step > 0 ? hi : lo) + shift[a];
        part->hi[a] = (step < 0 ? lo : step > 0 ? hi + around->hi[a] : hi) + shift[a];
    }
    return true;
}

/* Only counts while there is no memory. */
static void enumerate(const trl_layout *layout, trl_location location, const trli_line line[3],
                      const trl_offsets *around, trli_boxes *boxes)
{
    boxes->n = 0;
    for (int p = 0; p < layout->npatches; ++p) {
        const trl_patch patch = trl_layout_patch(layout, p);
        for (int d = 0; d < DIRECTIONS; ++d) {
            trli_shuffle_part part;
            if (!find_ghosts(layout, location, line, around, &patch, d, &part)) continue;
            if (patch.rank == trl_context_rank(layout->ctx))
                part.array = layout->nlocal + trl_layout_local(layout, p) * DIRECTIONS + d;
            if (boxes->part) boxes->part[boxes->n] = part;
            ++boxes->n;
        }
    }
}

trl_err trli_ghost_boxes(trl_context *ctx, const trl_layout *layout, trl_location location, const trli_line line[3],
                         const trl_offsets *around, trli_boxes *boxes)
{
    *boxes = (trli_boxes){0};
    enumerate(layout, location, line, around, boxes);
    boxes->part = trli_new(ctx, (size_t)boxes->n + 1, sizeof *boxes->part);
    if (!boxes->part) return trli_no_memory(ctx, NULL, "for a direct solver");
    enumerate(layout, location, line, around, boxes);
    return TRL_OK;
}

int trli_ghost_views(const trl_layout *layout)
{
    return layout->nlocal * DIRECTIONS;
}

void trli_set_ghost_views(const trl_layout *layout, trli_view *view)
{
    trli_view *ghosts = view + layout->nlocal;
    for (int p = 0; p < layout->nlocal; ++p)
        for (int d = 0; d < DIRECTIONS; ++d, ++ghosts) {
            int shift[3], rank;
            *ghosts = view[p];
            if (!find_source(layout, &layout->patch[p], d, shift, &rank)) continue;
            for (int a = 0; a < 3; ++a) ghosts->at -= shift[a] * ghosts->stride[a];
        }
}

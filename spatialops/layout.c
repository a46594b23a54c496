/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <arithmetic_impl.h>
#include <context_impl.h>

#include "owners_impl.h"
#include "spatialops_impl.h"

/* Local indices must reach any ghost or final plane of a patch without overflow. */
static const trl_gidx patch_cells_max = INT32_MAX / 2;

trl_gidx trli_cut_first(trl_gidx n, trl_gidx parts, trl_gidx i)
{
    trl_gidx even = n / parts, larger = n % parts;
    return i * even + (i < larger ? i : larger);
}

trl_gidx trli_cut_part(trl_gidx n, trl_gidx parts, trl_gidx element)
{
    trl_gidx even = n / parts, larger = n % parts;
    trl_gidx in_larger = larger * (even + 1);
    return element < in_larger ? element / (even + 1) : larger + (element - in_larger) / even;
}

bool trli_layout_in_one_node(const trl_context *ctx)
{
    return ctx->topology.node_ranks == ctx->ranks;
}

static trl_err choose_or_fail(trl_context *ctx, const trl_grid *grid, const trl_place *place, int counts[3])
{
    trli_layout_choice choice;
    const int ranks = trl_context_ranks(ctx);
    if (!trli_layout_choose_patches(grid, ranks, trli_layout_in_one_node(ctx), &choice))
        return trl_fail(ctx, TRL_ERR_INPUT, place,
                        "patches: a grid of %" TRL_GIDX_FMT " x %" TRL_GIDX_FMT " x %" TRL_GIDX_FMT
                        " cells has none for some of %d ranks; use at most %" TRL_GIDX_FMT " ranks",
                        grid->cells[0], grid->cells[1], grid->cells[2], ranks,
                        grid->cells[0] * grid->cells[1] * grid->cells[2]);
    memcpy(counts, choice.counts, sizeof choice.counts);
    return TRL_OK;
}

static trl_err check_grid(trl_context *ctx, const trl_grid *grid, const trl_place *place)
{
    if (grid->dim < 1 || grid->dim > 3) {
        return trl_fail(ctx, TRL_ERR_USAGE, place, "grid: %d dimensions; 1 to 3 are possible", grid->dim);
    }
    for (int a = 0; a < 3; ++a) {
        if (grid->cells[a] < 1 || (a >= grid->dim && (grid->cells[a] > 1 || grid->periodic[a]))) {
            return trl_fail(ctx, TRL_ERR_USAGE, place,
                            "grid: %" TRL_GIDX_FMT
                            " %scells along %c; an axis has at least 1, one that the grid lacks has 1 and is "
                            "not periodic",
                            grid->cells[a], grid->periodic[a] ? "periodic " : "", trli_axis_name(a));
        }
    }
    return TRL_OK;
}

static trl_err check_counts(trl_context *ctx, const trl_grid *grid, const int counts[3], const trl_place *place)
{
    double patches = 1;
    for (int a = 0; a < 3; ++a) {
        if (counts[a] < 1 || counts[a] > grid->cells[a]) {
            return trl_fail(ctx, TRL_ERR_INPUT, place,
                            "patches: %d patches along %c, where the grid has %" TRL_GIDX_FMT
                            " cells; give a count from 1 to that number",
                            counts[a], trli_axis_name(a), grid->cells[a]);
        }
        trl_gidx thickest = trli_cut_first(grid->cells[a], counts[a], 1);
        if (thickest > patch_cells_max) {
            return trl_fail(ctx, TRL_ERR_INPUT, place,
                            "patches: a patch of %" TRL_GIDX_FMT " cells along %c exceeds the limit of %" TRL_GIDX_FMT
                            "; raise the number of patches there",
                            thickest, trli_axis_name(a), patch_cells_max);
        }
        patches *= counts[a];
    }
    if (patches > INT_MAX) {
        return trl_fail(ctx, TRL_ERR_INPUT, place, "patches: %d x %d x %d are more than %d patches; lower a count",
                        counts[0], counts[1], counts[2], INT_MAX);
    }
    if (patches < trl_context_ranks(ctx)) {
        return trl_fail(
            ctx, TRL_ERR_INPUT, place,
            "patches: %d x %d x %d patches for %d ranks, and each rank needs one; raise the counts, leave them to "
            "'auto', or run on at most %d ranks",
            counts[0], counts[1], counts[2], trl_context_ranks(ctx), (int)patches);
    }
    return TRL_OK;
}

trl_gidx trli_layout_first(const trl_layout *layout, int axis, int i)
{
    const trl_gidx *cut = layout->cut[axis];
    return cut ? cut[i] : trli_cut_first(layout->grid.cells[axis], layout->counts[axis], i);
}

static trl_lidx cells_of(const trl_layout *layout, int axis, int i)
{
    return (trl_lidx)(trli_layout_first(layout, axis, i + 1) - trli_layout_first(layout, axis, i));
}

trl_lidx trli_layout_thinnest(const trl_layout *layout, int axis)
{
    trl_lidx least = cells_of(layout, axis, layout->counts[axis] - 1);
    for (int i = 0; layout->cut[axis] && i < layout->counts[axis]; ++i)
        if (cells_of(layout, axis, i) < least) least = cells_of(layout, axis, i);
    return least;
}

trl_lidx trli_layout_thickest(const trl_layout *layout, int axis)
{
    trl_lidx most = cells_of(layout, axis, 0);
    for (int i = 0; layout->cut[axis] && i < layout->counts[axis]; ++i)
        if (cells_of(layout, axis, i) > most) most = cells_of(layout, axis, i);
    return most;
}

trl_patch trl_layout_patch(const trl_layout *layout, int id)
{
    trl_patch patch = {.id = id, .rank = trl_context_rank(layout->ctx)};
    if (layout->owner) patch.rank = trli_owners_rank(layout->owner, id);
    for (int a = 0, rest = id; a < 3; rest /= layout->counts[a++]) {
        const int i = rest % layout->counts[a];
        patch.index[a] = i;
        patch.first[a] = trli_layout_first(layout, a, i);
        patch.cells[a] = (trl_lidx)(trli_layout_first(layout, a, i + 1) - patch.first[a]);
    }
    return patch;
}

int trl_layout_local(const trl_layout *layout, int id)
{
    int low = 0, high = layout->nlocal;
    if (layout->local[high - 1] - layout->local[0] == high - 1) { /* ids in a row */
        const int l = id - layout->local[0];
        return l >= 0 && l < high ? l : -1;
    }
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (layout->local[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < layout->nlocal && layout->local[low] == id ? low : -1;
}

bool trli_layout_leads(const trl_layout *layout)
{
    const trli_owner_map *map = layout->owner;
    return !map || (map->place[0] == 0 && map->place[1] == 0 && map->place[2] == 0);
}

int trli_layout_most(const trl_layout *layout)
{
    return layout->owner ? trli_owners_most(layout->owner) : layout->npatches;
}

int64_t trli_layout_digest(const trl_layout *layout)
{
    uint64_t sum = (uint64_t)layout->npatches;
    for (int a = 0; a < 3; ++a)
        for (int i = 0; i <= layout->counts[a]; i += layout->cut[a] ? 1 : layout->counts[a])
            sum = trl_hash_mix(sum + (uint64_t)layout->counts[a], (double)trli_layout_first(layout, a, i));
    if (layout->owner) sum = trl_hash_mix(sum ^ trli_owners_digest(layout->owner), 0);
    return (int64_t)(sum >> 2);
}

static int by_id(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* Find the patches of this rank. */
static trl_err find_local(trl_layout *layout)
{
    void *memory = NULL;
    trl_err err;
    const trli_owner_map *map = layout->owner;
    const int rank = trl_context_rank(layout->ctx), first = map ? map->first[rank] : 0;
    layout->nlocal = map ? map->first[rank + 1] - first : layout->npatches;
    const size_t n = (size_t)layout->nlocal;
    TRL_TRY(trl_memory_alloc(layout->ctx, n * sizeof *layout->patch, "the patch layout", &memory));
    layout->patch = memory;
    TRL_TRY(trl_memory_alloc(layout->ctx, n * sizeof *layout->local, "the patch layout", &memory));
    layout->local = memory;
    for (int l = 0; l < layout->nlocal; ++l) layout->local[l] = map ? trli_owners_at(map, first + l) : l;
    if (map && map->owners.order != TRL_OWNERS_BLOCKS) qsort(layout->local, n, sizeof *layout->local, by_id);
    for (int l = 0; l < layout->nlocal; ++l) layout->patch[l] = trl_layout_patch(layout, layout->local[l]);
done:
    return err;
}

/* A layout without owners and patches. */
static trl_err make_empty(trl_context *ctx, const trl_grid *grid, const int counts[3], int ranks, trl_layout **layout)
{
    void *memory = NULL;
    const unsigned epoch = ++ctx->layouts;
    trl_err err = trl_memory_alloc(ctx, sizeof **layout, "the patch layout", &memory);
    *layout = memory;
    if (err != TRL_OK) return err;
    **layout = (trl_layout){
        .grid = *grid, .npatches = counts[0] * counts[1] * counts[2], .ranks = ranks, .epoch = epoch, .ctx = ctx};
    memcpy((*layout)->counts, counts, sizeof(*layout)->counts);
    return TRL_OK;
}

static trl_err make_cut(trl_layout *layout, int axis)
{
    void *memory = NULL;
    const size_t n = (size_t)layout->counts[axis] + 1;
    const trl_err err = trl_memory_alloc(layout->ctx, n * sizeof *layout->cut[axis], "the patch layout", &memory);
    layout->cut[axis] = memory;
    if (err == TRL_OK) layout->cut[axis][0] = 0;
    return err;
}

/* A patch for each rank: along an axis, let each layer of patches have the shares of its ranks together, but no less
 * than 4 cells, or than alike where that is less. */
static trl_err cut_by_shares(trl_layout *layout, const double *share, int axis)
{
    const trl_gidx n = layout->grid.cells[axis];
    const int count = layout->counts[axis],
              stride = axis == 0 ? 1 : layout->counts[0] * (axis == 2 ? layout->counts[1] : 1);
    const trl_gidx least = trli_min(n / count, 4);
    void *memory = NULL;
    double all = 0, sum = 0;
    trl_err err = TRL_OK;
    TRL_TRY(make_cut(layout, axis));
    TRL_TRY(trl_memory_alloc(layout->ctx, (size_t)count * sizeof(double), "the shares of ranks", &memory));
    double *layer = memory;
    for (int i = 0; i < count; ++i) layer[i] = 0;
    for (int r = 0; r < layout->ranks; ++r) {
        layer[trli_owners_at(layout->owner, r) / stride % count] += share[r];
        all += share[r];
    }
    for (int i = 0; i < count; ++i) {
        trl_gidx *cut = layout->cut[axis] + i;
        sum += layer[i];
        cut[1] = (trl_gidx)((double)n * (sum / all) + 0.5);
        cut[1] = trli_min(trli_max(cut[1], cut[0] + least), n - (count - i - 1) * least);
    }
done:
    trl_memory_free(layout->ctx, &memory);
    return err;
}

trl_err trl_layout_create(trl_context *ctx, const trl_grid *grid, const int *counts, const trl_place *place,
                          trl_layout **result)
{
    return trl_layout_create_owned(ctx, grid, counts, &(trl_owners){.order = TRL_OWNERS_BLOCKS}, place, result);
}

trl_err trl_layout_create_owned(trl_context *ctx, const trl_grid *grid, const int *counts, const trl_owners *owners,
                                const trl_place *place, trl_layout **result)
{
    trl_err err;
    trl_layout *layout = NULL;
    const int ranks = trl_context_ranks(ctx);
    int chosen[3] = {1, 1, 1};

    *result = NULL;
    TRL_TRY(check_grid(ctx, grid, place));
    if (counts == NULL) {
        TRL_TRY(choose_or_fail(ctx, grid, place, chosen));
    } else {
        memcpy(chosen, counts, sizeof chosen);
    }
    TRL_TRY(check_counts(ctx, grid, chosen, place));
    TRL_TRY(make_empty(ctx, grid, chosen, ranks, &layout));
    if (ranks > 1) {
        double cost[3];
        for (int a = 0; a < 3; ++a) cost[a] = trli_layout_cost_across(grid, a, trli_layout_in_one_node(ctx));
        TRL_TRY(trli_owners_create(layout, owners, cost, &layout->owner));
        for (int a = 0; a < 3 && owners->share && layout->npatches == ranks; ++a)
            if (chosen[a] > 1) TRL_TRY(cut_by_shares(layout, owners->share, a));
    }
    TRL_TRY(find_local(layout));
    *result = layout;
    layout = NULL;
done:
    trl_layout_destroy(&layout);
    return err;
}

trl_err trli_layout_create_whole(trl_context *ctx, const trl_grid *grid, trl_layout **result)
{
    trl_err err;
    trl_layout *layout = NULL;
    *result = NULL;
    TRL_TRY(check_grid(ctx, grid, NULL));
    TRL_TRY(make_empty(ctx, grid, (const int[]){1, 1, 1}, 1, &layout));
    TRL_TRY(find_local(layout));
    *result = layout;
    layout = NULL;
done:
    trl_layout_destroy(&layout);
    return err;
}

/* (j + 1/2) * fine / coarse >= cell */
trl_gidx trli_layout_coarse_first(const trl_grid *fine, const trl_grid *coarse, int axis, trl_gidx cell)
{
    return (2 * coarse->cells[axis] * cell + fine->cells[axis] - 1) / (2 * fine->cells[axis]);
}

/* The first coarse cell of the patch that so many patches of the finer grid are. */
static trl_gidx merged_first(const trl_layout *fine, const trl_grid *grid, int axis, int by, int i)
{
    return trli_layout_coarse_first(&fine->grid, grid, axis, trli_layout_first(fine, axis, i * by));
}

static bool is_thin(const trl_layout *fine, const trl_grid *grid, int axis, int by, trl_lidx thinnest)
{
    bool thin = false;
    for (int i = 0; i < fine->counts[axis] / by; ++i)
        thin |= merged_first(fine, grid, axis, by, i + 1) - merged_first(fine, grid, axis, by, i) < thinnest;
    return thin;
}

static int smallest_factor(int n)
{
    int factor = 2;
    while (n % factor != 0) ++factor;
    return factor;
}

void trli_layout_merging(const trl_layout *fine, const trl_grid *coarse, trl_lidx thinnest, int by[3])
{
    for (int a = 0; a < 3; ++a)
        for (by[a] = 1; by[a] < fine->counts[a] && is_thin(fine, coarse, a, by[a], thinnest);)
            by[a] *= smallest_factor(fine->counts[a] / by[a]);
}

static trl_err cut_coarse(const trl_layout *fine, const int by[3], trl_layout *layout)
{
    trl_err err = TRL_OK;
    for (int a = 0; a < 3; ++a) {
        TRL_TRY(make_cut(layout, a));
        for (int i = 0; i <= layout->counts[a]; ++i) layout->cut[a][i] = merged_first(fine, &layout->grid, a, by[a], i);
    }
done:
    return err;
}

trl_err trli_layout_create_coarse(const trl_layout *fine, const trl_grid *grid, const int by[3], trl_layout **coarse)
{
    trl_err err;
    trl_layout *layout = NULL;
    const int counts[3] = {fine->counts[0] / by[0], fine->counts[1] / by[1], fine->counts[2] / by[2]};
    *coarse = NULL;
    TRL_TRY(check_grid(fine->ctx, grid, NULL));
    TRL_TRY(make_empty(fine->ctx, grid, counts, fine->ranks, &layout));
    TRL_TRY(cut_coarse(fine, by, layout));
    if (fine->owner) TRL_TRY(trli_owners_merge(fine->ctx, fine->owner, by, &layout->owner));
    TRL_TRY(find_local(layout));
    *coarse = layout;
    layout = NULL;
done:
    trl_layout_destroy(&layout);
    return err;
}

void trl_layout_destroy(trl_layout **layout)
{
    if (*layout == NULL) return;
    trl_context *ctx = (*layout)->ctx;
    for (int a = 0; a < 3; ++a) {
        void *cut = (*layout)->cut[a];
        trl_memory_free(ctx, &cut);
    }
    void *patch = (*layout)->patch, *local = (*layout)->local, *self = *layout;
    trli_owners_destroy(ctx, &(*layout)->owner);
    trl_memory_free(ctx, &patch);
    trl_memory_free(ctx, &local);
    trl_memory_free(ctx, &self);
    *layout = NULL;
}

static int part_of(const trl_layout *layout, int axis, trl_gidx cell)
{
    int part = (int)trli_cut_part(layout->grid.cells[axis], layout->counts[axis], cell);
    if (!layout->cut[axis]) return part;
    while (layout->cut[axis][part] > cell) --part;
    while (layout->cut[axis][part + 1] <= cell) ++part;
    return part;
}

int trl_layout_owner(const trl_layout *layout, const trl_gidx cell[3])
{
    int index[3];
    for (int a = 0; a < 3; ++a) {
        if (cell[a] < 0 || cell[a] >= layout->grid.cells[a]) return -1;
        index[a] = part_of(layout, a, cell[a]);
    }
    return index[0] + layout->counts[0] * (index[1] + layout->counts[1] * index[2]);
}

int trli_layout_beside(const trl_layout *layout, const trl_patch *patch, int axis, int step)
{
    const int count = layout->counts[axis];
    int index[3] = {patch->index[0], patch->index[1], patch->index[2]};
    index[axis] += step;
    if (index[axis] < 0 || index[axis] >= count) {
        if (!layout->grid.periodic[axis]) return -1;
        index[axis] = (index[axis] + count) % count;
    }
    return index[0] + layout->counts[0] * (index[1] + layout->counts[1] * index[2]);
}

bool trl_patch_at_side(const trl_layout *layout, const trl_patch *patch, int axis, int side)
{
    if (axis >= layout->grid.dim || layout->grid.periodic[axis]) return false;
    return patch->index[axis] == (side == 0 ? 0 : layout->counts[axis] - 1);
}

trl_box trl_patch_owned(const trl_layout *layout, const trl_patch *patch, trl_location location)
{
    trl_box box = {{0, 0, 0}, {0, 0, 0}};
    for (int a = 0; a < 3; ++a) {
        bool final_plane = ((int)location >> a & 1) && trl_patch_at_side(layout, patch, a, 1);
        box.hi[a] = patch->cells[a] + final_plane;
    }
    return box;
}

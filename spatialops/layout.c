/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include <context_impl.h>

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

enum { THICK = 8 /* cells: of fewer, planes at the two ends are more than a quarter */ };

static bool is_thick(const trl_grid *grid, const int counts[3])
{
    for (int a = 0; a < 3; ++a)
        if (counts[a] > 1 && grid->cells[a] / counts[a] < THICK) return false;
    return true;
}

/* What a value across each axis costs, against one across the last axis. Planes across the last axis lie together.
 * Across x each value has a line of the cache of its own; across y of three axes each row waits for memory. Between
 * nodes all is packed, and the network takes the same for each. */
static double cost_across(const trl_grid *grid, int axis, bool one_node)
{
    if (axis == 0 && grid->dim > 1) return one_node ? 16 : 3;
    return axis == 1 && grid->dim == 3 && one_node ? 1.5 : 1;
}

/* Of thin patches, which some stencils may not allow, the surface. */
static double cost_of_cuts(const trl_grid *grid, const int counts[3], bool one_node)
{
    const bool thick = is_thick(grid, counts);
    double cost = 0;
    for (int a = 0; a < 3; ++a) {
        const double planes = counts[a] == 1 ? 0 : counts[a] - !grid->periodic[a],
                     each = (double)grid->cells[(a + 1) % 3] * (double)grid->cells[(a + 2) % 3];
        cost += thick ? cost_across(grid, a, one_node) * planes * each : planes * each;
    }
    return cost;
}

bool trli_layout_choose(const trl_grid *grid, int n, bool one_node, int best[3])
{
    bool found = false, thick = false;
    double least = 0;
    for (int x = 1; x <= n && x <= grid->cells[0]; ++x) {
        if (n % x != 0) continue;
        for (int y = 1; y <= n / x && y <= grid->cells[1]; ++y) {
            if (n / x % y != 0 || n / x / y > grid->cells[2]) continue;
            const int counts[3] = {x, y, n / x / y};
            const bool is = is_thick(grid, counts);
            const double cost = cost_of_cuts(grid, counts, one_node);
            if (found && (is == thick ? cost >= least : thick)) continue;
            memcpy(best, counts, sizeof counts);
            least = cost;
            thick = is;
            found = true;
        }
    }
    return found;
}

static trl_err choose_or_fail(trl_context *ctx, const trl_grid *grid, const trl_place *place, int counts[3])
{
    int ranks = trl_context_ranks(ctx);
    if (trli_layout_choose(grid, ranks, ctx->topology.node_ranks == ranks, counts)) return TRL_OK;

    double cells = (double)grid->cells[0] * (double)grid->cells[1] * (double)grid->cells[2];
    int fits = cells < ranks ? (int)cells : ranks - 1;
    while (!trli_layout_choose(grid, fits, true, counts)) --fits;
    return trl_fail(
        ctx, TRL_ERR_INPUT, place,
        "patches: a grid of %" TRL_GIDX_FMT " x %" TRL_GIDX_FMT " x %" TRL_GIDX_FMT
        " cells cannot be cut into one patch for each of %d ranks; the next smaller number of ranks that fits is %d",
        grid->cells[0], grid->cells[1], grid->cells[2], ranks, fits);
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
    if (layout->ranks > 1) patch.rank = (int)trli_cut_part(layout->npatches, layout->ranks, id);
    for (int a = 0, rest = id; a < 3; rest /= layout->counts[a++]) {
        const int i = rest % layout->counts[a];
        patch.index[a] = i;
        patch.first[a] = trli_layout_first(layout, a, i);
        patch.cells[a] = (trl_lidx)(trli_layout_first(layout, a, i + 1) - patch.first[a]);
    }
    return patch;
}

/* Find the patches of this rank. */
static trl_err find_local(trl_layout *layout, int rank)
{
    void *memory = NULL;
    trl_err err;
    const int first = (int)trli_cut_first(layout->npatches, layout->ranks, rank);
    layout->nlocal = (int)trli_cut_first(layout->npatches, layout->ranks, rank + 1) - first;
    const size_t n = (size_t)layout->nlocal;
    TRL_TRY(trl_memory_alloc(layout->ctx, n * sizeof *layout->patch, "the patch layout", &memory));
    layout->patch = memory;
    TRL_TRY(trl_memory_alloc(layout->ctx, n * sizeof *layout->local, "the patch layout", &memory));
    layout->local = memory;
    for (int l = 0; l < layout->nlocal; ++l) {
        layout->local[l] = first + l;
        layout->patch[l] = trl_layout_patch(layout, first + l);
    }
done:
    return err;
}

trl_err trl_layout_create(trl_context *ctx, const trl_grid *grid, const int *counts, const trl_place *place,
                          trl_layout **result)
{
    trl_err err;
    trl_layout *layout = NULL;
    int chosen[3] = {1, 1, 1};
    void *memory = NULL;

    *result = NULL;
    TRL_TRY(check_grid(ctx, grid, place));
    if (counts == NULL) {
        TRL_TRY(choose_or_fail(ctx, grid, place, chosen));
    } else {
        memcpy(chosen, counts, sizeof chosen);
    }
    TRL_TRY(check_counts(ctx, grid, chosen, place));

    TRL_TRY(trl_memory_alloc(ctx, sizeof *layout, "the patch layout", &memory));
    layout = memory;
    *layout = (trl_layout){
        .grid = *grid, .npatches = chosen[0] * chosen[1] * chosen[2], .ranks = trl_context_ranks(ctx), .ctx = ctx};
    memcpy(layout->counts, chosen, sizeof chosen);
    TRL_TRY(find_local(layout, trl_context_rank(ctx)));
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
    void *memory = NULL;
    *result = NULL;
    TRL_TRY(check_grid(ctx, grid, NULL));
    TRL_TRY(trl_memory_alloc(ctx, sizeof *layout, "the patch layout", &memory));
    layout = memory;
    *layout = (trl_layout){.grid = *grid, .npatches = 1, .counts = {1, 1, 1}, .ranks = 1, .ctx = ctx};
    TRL_TRY(find_local(layout, 0));
    *result = layout;
    layout = NULL;
done:
    trl_layout_destroy(&layout);
    return err;
}

/* The first coarse cell whose middle lies in fine cell `first` or beyond it: (j + 1/2) * fine / coarse >= first. */
static trl_gidx coarse_first(trl_gidx fine, trl_gidx coarse, trl_gidx first)
{
    return (2 * coarse * first + fine - 1) / (2 * fine);
}

static trl_err cut_coarse(const trl_layout *fine, trl_layout *layout)
{
    void *memory = NULL;
    trl_err err = TRL_OK;
    for (int a = 0; a < 3; ++a) {
        TRL_TRY(trl_memory_alloc(layout->ctx, ((size_t)layout->counts[a] + 1) * sizeof *layout->cut[a],
                                 "the patch layout", &memory));
        layout->cut[a] = memory;
        for (int i = 0; i <= layout->counts[a]; ++i)
            layout->cut[a][i] = coarse_first(fine->grid.cells[a], layout->grid.cells[a], trli_layout_first(fine, a, i));
    }
done:
    return err;
}

trl_err trli_layout_create_coarse(const trl_layout *fine, const trl_grid *grid, trl_lidx thinnest, trl_layout **coarse)
{
    trl_err err;
    trl_layout *layout = NULL;
    void *memory = NULL;
    bool thin = false;
    *coarse = NULL;
    TRL_TRY(check_grid(fine->ctx, grid, NULL));
    TRL_TRY(trl_memory_alloc(fine->ctx, sizeof *layout, "the patch layout", &memory));
    layout = memory;
    *layout = (trl_layout){.grid = *grid, .npatches = fine->npatches, .ranks = fine->ranks, .ctx = fine->ctx};
    memcpy(layout->counts, fine->counts, sizeof layout->counts);
    TRL_TRY(cut_coarse(fine, layout));
    for (int a = 0; a < 3; ++a) thin |= layout->counts[a] > 1 && trli_layout_thinnest(layout, a) < thinnest;
    if (thin) goto done;
    TRL_TRY(find_local(layout, trl_context_rank(layout->ctx)));
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

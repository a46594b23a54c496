/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which patches, and whose: what ways to cut and to deal cost, by a model that knows the grid and the machine alone, so
 * that all ranks, and later runs, come to the same patches. */
#include <math.h>
#include <string.h>

#include <arithmetic_impl.h>
#include <context_impl.h>

#include "spatialops_impl.h"

enum { THICK = 8 /* cells: of fewer, planes at the two ends are more than a quarter */ };

static bool is_thick(const trl_grid *grid, const int counts[3])
{
    for (int a = 0; a < 3; ++a)
        if (counts[a] > 1 && grid->cells[a] / counts[a] < THICK) return false;
    return true;
}

/* Planes across the last axis lie together. Across x each value has a line of the cache of its own; across y of three
 * axes each row waits for memory. Between nodes all is packed, and the network takes the same for each. */
double trli_layout_cost_across(const trl_grid *grid, int axis, bool one_node)
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
        cost += thick ? trli_layout_cost_across(grid, a, one_node) * planes * each : planes * each;
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

/* ---- several patches for each rank ---- */

enum { EACH_MOST = 8 };
static const double tasks_cost = 1000; /* of a patch: in their time so many cells are updated */

/* What ghosts across an axis cost that so many cells have, in patches of the mean thickness. */
static double cost_of_sides(const trl_grid *grid, int axis, double cells, trl_gidx count, bool one_node)
{
    const int sides = count == 1 ? 0 : count == 2 && !grid->periodic[axis] ? 1 : 2;
    return sides * cells * (double)count / (double)grid->cells[axis] * trli_layout_cost_across(grid, axis, one_node);
}

/* Of the rank that has most to do, as if all neighbours of its patches were other ranks'. */
static double cost_of_patches(const trl_grid *grid, int ranks, const int counts[3], bool one_node)
{
    const int64_t patches = trli_ceil_div((int64_t)counts[0] * counts[1] * counts[2], ranks);
    double cells = 1, ghosts = 0;
    for (int a = 0; a < 3; ++a) cells *= (double)trli_ceil_div(grid->cells[a], counts[a]);
    for (int a = 0; a < grid->dim; ++a) ghosts += cost_of_sides(grid, a, cells, counts[a], one_node);
    return (double)patches * (cells + ghosts + tasks_cost);
}

/* Several for some ranks, up to eight for each, of less cost than *choice has. thick: thin ones are left out. false:
 * there are none. */
static bool choose_several(const trl_grid *grid, int ranks, bool one_node, bool thick, trli_layout_choice *choice)
{
    const trl_gidx all = (trl_gidx)EACH_MOST * ranks;
    const double cells = (double)grid->cells[0] * (double)grid->cells[1] * (double)grid->cells[2] / ranks;
    bool found = false;
    trl_gidx most[3];
    for (int a = 0; a < 3; ++a) most[a] = thick ? trli_max(grid->cells[a] / THICK, 1) : grid->cells[a];
    for (trl_gidx x = 1; x <= most[0] && x <= all; ++x) {
        const double least = cells + tasks_cost + cost_of_sides(grid, 0, cells, x, one_node);
        if (least >= choice->cost) break;
        for (trl_gidx y = 1; y <= most[1] && x * y <= all; ++y) {
            if (least + cost_of_sides(grid, 1, cells, y, one_node) >= choice->cost) break;
            for (trl_gidx z = trli_ceil_div(ranks, x * y); z <= most[2] && x * y * z <= all; ++z) {
                const int counts[3] = {(int)x, (int)y, (int)z};
                const double cost = cost_of_patches(grid, ranks, counts, one_node);
                if (x * y * z == ranks || cost >= choice->cost) continue;
                memcpy(choice->counts, counts, sizeof counts);
                choice->cost = cost;
                found = true;
            }
        }
    }
    return found;
}

bool trli_layout_choose_patches(const trl_grid *grid, int ranks, bool one_node, trli_layout_choice *choice)
{
    *choice = (trli_layout_choice){.cost = INFINITY};
    if (!trli_layout_choose(grid, ranks, one_node, choice->one))
        return choose_several(grid, ranks, one_node, true, choice) ||
               choose_several(grid, ranks, one_node, false, choice);
    choice->cost_of_one = cost_of_patches(grid, ranks, choice->one, one_node);
    choice->cost = TRLI_PATCHES_PAY * choice->cost_of_one;
    if (ranks > 1 && choose_several(grid, ranks, one_node, true, choice)) return true;
    memcpy(choice->counts, choice->one, sizeof choice->one);
    choice->cost = choice->cost_of_one;
    return true;
}

/* ---- owners ---- */

/* Ghosts that this rank gets from others, and those that it copies from its own patches at half the cost, since nobody
 * packs them or waits for them; and its cells, each of which costs what a ghost across the last axis does. */
double trli_layout_cost(const trl_layout *layout)
{
    const bool one_node = trli_layout_in_one_node(layout->ctx);
    double cost = 0;
    for (int l = 0; l < layout->nlocal; ++l) {
        const trl_patch *patch = &layout->patch[l];
        const double cells = (double)patch->cells[0] * patch->cells[1] * patch->cells[2];
        cost += cells;
        for (int a = 0; a < layout->grid.dim; ++a)
            for (int side = 0; side < 2; ++side) {
                const int id = trli_layout_beside(layout, patch, a, side ? 1 : -1);
                if (id < 0 || layout->counts[a] == 1) continue;
                const double each = trli_layout_cost_across(&layout->grid, a, one_node);
                cost += cells / patch->cells[a] * (trl_layout_local(layout, id) < 0 ? each : 0.5 * each);
            }
    }
    return cost;
}

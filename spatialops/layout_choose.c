/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which patches, and whose: what ways to cut and to deal cost, by a model that knows the grid and the machine alone, so
 * that all ranks, and later runs, come to the same patches. */
#include <string.h>

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

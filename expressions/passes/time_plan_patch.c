/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Of the plan of several executions: its patch, and where its kernels' points are. */
#include "model_impl.h"
#include "spatialops_impl.h"
#include "time_plan_impl.h"

bool trli_goes_round(const trl_layout *layout, int axis)
{
    return layout->grid.periodic[axis] && layout->counts[axis] == 1;
}

static const trl_patch *patch_of(const trli_time_plan *plan)
{
    return &plan->model->layout->patch[plan->patch];
}

trl_lidx trli_time_plan_cells(const trli_time_plan *plan, int axis)
{
    const trl_layout *layout = plan->model->layout;
    return plan->patch == TRLI_ANY_PATCH ? trli_layout_thinnest(layout, axis) : patch_of(plan)->cells[axis];
}

bool trli_time_plan_shares(const trli_time_plan *plan, int axis, int side)
{
    const trl_layout *layout = plan->model->layout;
    if (layout->counts[axis] == 1) return false;
    return plan->patch == TRLI_ANY_PATCH || !trl_patch_at_side(layout, patch_of(plan), axis, side);
}

trl_offsets trli_time_op_reach(const trli_time_op *op, int input)
{
    const trli_reads *reads = op->slab ? &op->slab->reads : &op->plan->reads;
    return trl_footprint_hull(&reads->footprint[input]);
}

void trli_time_clip(const trli_time_plan *plan, const trli_time_cuts *cuts, const trli_time_op *op, int which, int i,
                    trl_box *box)
{
    const int axis = plan->axis[which];
    box->lo[axis] += op->start[which];
    box->hi[axis] += op->start[which];
    const trl_lidx lo = cuts->first[which] + i * cuts->thick[which] - op->shift[which], hi = lo + cuts->thick[which];
    if (i > 0 && lo > box->lo[axis]) box->lo[axis] = lo;
    if (i + 1 < cuts->count[which] && hi < box->hi[axis]) box->hi[axis] = hi;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The boxes on a patch that steps and slabs are computed on, once a program is analysed. */
#include "model_impl.h"
#include "pipeline_impl.h"
#include "plan_impl.h"

static const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};

trl_box trli_step_box(const trli_program *program, const trli_step *s, int o, int local_patch)
{
    const int field = s->field[o];
    const trli_model *model = program->model;
    const trl_layout *layout = model->layout;
    const trl_patch *patch = &layout->patch[local_patch];
    const trli_model_field *f = &model->field[field];
    const trli_step_plan *p = trli_plan_of(program, s);
    const trli_demand *d = p->extent ? &p->extent[o] : &program->plan->demand[field];
    trl_box box = trl_patch_owned(layout, patch, f->location);
    trl_offsets inner = d->inner.n ? trl_footprint_hull(&d->inner) : none;
    for (int a = 0; a < layout->grid.dim; ++a) {
        bool at_lo = trl_patch_at_side(layout, patch, a, 0), at_hi = trl_patch_at_side(layout, patch, a, 1);
        if (f->exchanged || (f->persistent && !f->lasting)) {
            if (at_lo) box.lo[a] += f->fixed_planes[(ptrdiff_t)2 * a];
            if (at_hi) box.hi[a] -= f->fixed_planes[2 * a + 1];
            continue;
        }
        int lo = at_lo ? d->side.lo[a] : inner.lo[a], hi = at_hi ? d->side.hi[a] : inner.hi[a];
        if (lo < 0 || at_lo) box.lo[a] += lo;
        if (hi > 0 || at_hi) box.hi[a] += hi;
        if (box.hi[a] < box.lo[a]) box.hi[a] = box.lo[a];
    }
    return box;
}

bool trli_slab_is_at(const trl_layout *layout, const trl_patch *patch, const trli_slab *slab)
{
    return slab->kind == TRLI_SLAB_IMAGE || trl_patch_at_side(layout, patch, slab->axis, slab->side);
}

trl_box trli_slab_box(const trli_program *program, const trli_slab *slab, int local_patch)
{
    const trli_model *model = program->model;
    const trl_layout *layout = model->layout;
    const trl_patch *patch = &layout->patch[local_patch];
    trl_box box = trl_patch_owned(layout, patch, model->field[slab->field].location);
    for (int b = 0; b < layout->grid.dim; ++b) {
        if (b == slab->axis) {
            /* A modifier gets all its layers at once; the others one layer each. */
            trl_lidx depth = slab->kind == TRLI_SLAB_MODIFIER && slab->layer > 0 ? slab->layer : 1;
            if (slab->side)
                box.lo[b] = box.hi[b] - 1 + (slab->layer ? slab->layer - depth + 1 : 0);
            else
                box.lo[b] = box.lo[b] - slab->layer;
            box.hi[b] = box.lo[b] + depth;
            continue;
        }
        if (slab->layer == 0) {
            /* Points that a later axis sets are not set here: they may hold nothing yet, where another piece keeps what
             * is there. */
            const int8_t *later = &model->field[slab->field].fixed_planes[(ptrdiff_t)2 * b];
            if (b > slab->axis && trl_patch_at_side(layout, patch, b, 0)) box.lo[b] += later[0];
            if (b > slab->axis && trl_patch_at_side(layout, patch, b, 1)) box.hi[b] -= later[1];
            continue;
        }
        /* Ghosts shared with other patches hold values already; those beyond a side only if that side comes earlier. */
        box.lo[b] -= trl_patch_at_side(layout, patch, b, 0) ? slab->corner_lo[b] : slab->tangential_lo[b];
        box.hi[b] += trl_patch_at_side(layout, patch, b, 1) ? slab->corner_hi[b] : slab->tangential_hi[b];
    }
    return box;
}

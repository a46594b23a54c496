/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Reductions of fields that live on a device: its kernels merge all patches, and a partial result comes to the host.
 * The sum of the weights follows from the grid and the mask, which the host has. */
#include "field_impl.h"
#include "mask_impl.h"
#include "residence_impl.h"

trl_err trli_reduce_there(trl_field *field, trl_reduction kind, trli_merge merge, bool weighted, const trl_mask *mask,
                          trli_partial *partial, bool *done)
{
    trl_field_device *device = field->device;
    trl_err err;
    *done = true;
    TRL_TRY(device->ops->clear_share(device, merge));
    for (int p = 0; p < field->layout->nlocal && *done; ++p) {
        trli_statement s = {.kind = TRLI_STATEMENT_TERM,
                            .label = trl_reduction_name(kind),
                            .layout = field->layout,
                            .patch = p,
                            .box = field->array[p].owned,
                            .ninputs = mask ? 2 : 1};
        s.term.kind = kind;
        s.term.merge = merge;
        s.term.weighted = weighted;
        s.term.location = field->location;
        TRL_TRY(trli_field_there(field, p, true, &s.input[0]));
        if (mask) TRL_TRY(trli_mask_there(mask, device, p, &s.input[1]));
        TRL_TRY(device->ops->compute(device, &s, done));
    }
    if (*done) err = device->ops->fetch_share(device, partial);
done:
    return err;
}

/* Points of a row that count, and those of them that lie on a side along x, of which each counts half. */
typedef struct row_points {
    int64_t n, on_side;
} row_points;

static bool is_on_side(const trl_grid *grid, trl_location location, int axis, trl_gidx i)
{
    return (int)location >> axis & 1 && !grid->periodic[axis] && (i == 0 || i == grid->cells[axis]);
}

static row_points count_row(const trl_layout *layout, trl_location location, const trl_mask *mask, int p,
                            const trl_box *box, trl_lidx j, trl_lidx k)
{
    const trl_lidx n = box->hi[0] - box->lo[0], last = box->hi[0] - 1;
    const trl_gidx first = layout->patch[p].first[0];
    const trli_mask_patch *m = &mask->patch[p];
    const uint64_t *row = trli_mask_row(m, j, k);
    row_points points = {.n = 0};
    for (trl_lidx i = 0; i < n; i += 64)
        points.n += __builtin_popcountll(trli_mask_bits(row, box->lo[0] + i - m->box.lo[0], n - i));
    points.on_side =
        is_on_side(&layout->grid, location, 0, first + box->lo[0]) && trl_mask_holds(mask, p, box->lo[0], j, k);
    if (n > 1)
        points.on_side += is_on_side(&layout->grid, location, 0, first + last) && trl_mask_holds(mask, p, last, j, k);
    return points;
}

/* Of all points of a patch: the product over the axes. */
static int64_t count_all(const trl_layout *layout, trl_location location, bool weighted, int p)
{
    const trl_patch *patch = &layout->patch[p];
    const trl_box box = trl_patch_owned(layout, patch, location);
    int64_t eighths = 1;
    for (int a = 0; a < 3; ++a) {
        const trl_gidx first = patch->first[a] + box.lo[a], last = patch->first[a] + box.hi[a] - 1;
        int64_t halves = 2 * (int64_t)(box.hi[a] - box.lo[a]);
        if (weighted) halves -= is_on_side(&layout->grid, location, a, first);
        if (weighted && last > first) halves -= is_on_side(&layout->grid, location, a, last);
        eighths *= halves;
    }
    return eighths;
}

int64_t trli_weights_eighths(const trl_layout *layout, trl_location location, bool weighted, const trl_mask *mask)
{
    int64_t eighths = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[p];
        const trl_box box = trl_patch_owned(layout, patch, location);
        if (!mask) {
            eighths += count_all(layout, location, weighted, p);
            continue;
        }
        for (trl_lidx k = box.lo[2]; k < box.hi[2]; ++k)
            for (trl_lidx j = box.lo[1]; j < box.hi[1]; ++j) {
                const row_points points = count_row(layout, location, mask, p, &box, j, k);
                int64_t here = weighted ? 8 * points.n - 4 * points.on_side : 8 * points.n;
                if (weighted && is_on_side(&layout->grid, location, 1, patch->first[1] + j)) here /= 2;
                if (weighted && is_on_side(&layout->grid, location, 2, patch->first[2] + k)) here /= 2;
                eighths += here;
            }
    }
    return eighths;
}

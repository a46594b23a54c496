/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "memory_impl.h"
#include "slot_plan_impl.h"

enum { AXIS_BITS = 3, TRAITS = 1 << 3 * AXIS_BITS };

/* Along each axis: whether the patch has the larger of two numbers of cells, and which sides of the domain. */
static int traits_of(const trl_layout *layout, const trl_patch *patch)
{
    int traits = 0;
    for (int a = 0; a < 3; ++a) {
        const int larger = patch->cells[a] > layout->grid.cells[a] / layout->counts[a];
        const int sides = trl_patch_at_side(layout, patch, a, 0) | trl_patch_at_side(layout, patch, a, 1) << 1;
        traits = traits << AXIS_BITS | sides << 1 | larger;
    }
    return traits;
}

trl_err trli_patch_kinds_find(trl_context *ctx, const trl_layout *layout, trli_patch_kinds *kinds)
{
    int kind_of[TRAITS], first[TRAITS];
    int64_t count[TRAITS];
    *kinds = (trli_patch_kinds){.of = trli_new(ctx, (size_t)layout->nlocal, sizeof *kinds->of)};
    if (!kinds->of) return trli_no_memory(ctx, NULL, "for %d patches", layout->nlocal);
    for (int i = 0; i < TRAITS; ++i) kind_of[i] = -1;
    for (int p = 0; p < layout->nlocal; ++p) {
        int *kind = &kind_of[traits_of(layout, &layout->patch[p])];
        if (*kind < 0) {
            *kind = kinds->n++;
            first[*kind] = p;
            count[*kind] = 0;
        }
        ++count[*kind];
        kinds->of[p] = *kind;
    }
    kinds->first = trli_new(ctx, (size_t)kinds->n, sizeof *kinds->first);
    kinds->count = trli_new(ctx, (size_t)kinds->n, sizeof *kinds->count);
    if (!kinds->first || !kinds->count) return trli_no_memory(ctx, NULL, "for %d kinds of patches", kinds->n);
    for (int k = 0; k < kinds->n; ++k) {
        kinds->first[k] = first[k];
        kinds->count[k] = count[k];
    }
    return TRL_OK;
}

void trli_patch_kinds_free(trli_patch_kinds *kinds)
{
    trli_free(kinds->of);
    trli_free(kinds->first);
    trli_free(kinds->count);
    *kinds = (trli_patch_kinds){0};
}

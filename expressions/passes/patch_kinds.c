/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "memory_impl.h"
#include "slot_plan_impl.h"
#include "spatialops_impl.h"

enum { SIDES = 4 /* combinations of those of an axis that a patch is at */ };

/* Which numbers of cells patches have along each axis. */
typedef struct sizes {
    trl_lidx thinnest[3];
    int n[3];
} sizes;

static sizes sizes_of(const trl_layout *layout)
{
    sizes s;
    for (int a = 0; a < 3; ++a) {
        s.thinnest[a] = trli_layout_thinnest(layout, a);
        s.n[a] = trli_layout_thickest(layout, a) - s.thinnest[a] + 1;
    }
    return s;
}

/* Along each axis: the number of cells, and which sides of the domain. */
static size_t traits_of(const trl_layout *layout, const sizes *s, const trl_patch *patch)
{
    size_t traits = 0;
    for (int a = 0; a < 3; ++a) {
        const int at = trl_patch_at_side(layout, patch, a, 0) | trl_patch_at_side(layout, patch, a, 1) << 1;
        traits = (traits * (size_t)s->n[a] + (size_t)(patch->cells[a] - s->thinnest[a])) * SIDES + (size_t)at;
    }
    return traits;
}

/* kind_of: [traits] 0. */
static void find(const trl_layout *layout, const sizes *s, int *kind_of, trli_patch_kinds *kinds)
{
    for (int p = 0; p < layout->nlocal; ++p) {
        int *kind = &kind_of[traits_of(layout, s, &layout->patch[p])];
        if (*kind == 0) {
            *kind = ++kinds->n;
            kinds->first[*kind - 1] = p;
        }
        ++kinds->count[*kind - 1];
        kinds->of[p] = *kind - 1;
    }
}

trl_err trli_patch_kinds_find(trl_context *ctx, const trl_layout *layout, trli_patch_kinds *kinds)
{
    const sizes s = sizes_of(layout);
    const size_t n = (size_t)layout->nlocal,
                 traits = (size_t)s.n[0] * (size_t)s.n[1] * (size_t)s.n[2] * SIDES * SIDES * SIDES;
    int *kind_of = trli_new(ctx, traits, sizeof *kind_of);
    *kinds = (trli_patch_kinds){.of = trli_new(ctx, n, sizeof *kinds->of),
                                .first = trli_new(ctx, n < traits ? n : traits, sizeof *kinds->first),
                                .count = trli_new(ctx, n < traits ? n : traits, sizeof *kinds->count)};
    const bool room = kind_of && kinds->of && kinds->first && kinds->count;
    if (room) find(layout, &s, kind_of, kinds);
    trli_free(kind_of);
    return room ? TRL_OK : trli_no_memory(ctx, NULL, "for %d patches", layout->nlocal);
}

void trli_patch_kinds_free(trli_patch_kinds *kinds)
{
    trli_free(kinds->of);
    trli_free(kinds->first);
    trli_free(kinds->count);
    *kinds = (trli_patch_kinds){0};
}

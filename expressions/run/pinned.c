/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "pinned_impl.h"

#include <stdint.h>

#include "memory_impl.h"

/* Addresses differ in the middle bits: the product's upper half depends on all of them. */
static size_t place_of(const trli_pinned *set, const void *memory)
{
    const uint64_t product = (uint64_t)(uintptr_t)memory * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(product >> 32) & (set->size - 1);
}

/* Where it is, or would be. */
static size_t find(const trli_pinned *set, const void *memory)
{
    size_t i = place_of(set, memory);
    while (set->at[i] && set->at[i] != memory) i = (i + 1) & (set->size - 1);
    return i;
}

bool trli_pinned_has(const trli_pinned *set, const void *memory)
{
    return set->n > 0 && set->at[find(set, memory)];
}

static trl_err grow(trl_context *ctx, trli_pinned *set)
{
    enum { FIRST = 64 };
    trli_pinned larger = {.n = set->n, .size = set->size > 0 ? 2 * set->size : FIRST};
    larger.at = trli_new(ctx, larger.size, sizeof *larger.at);
    if (!larger.at) return trli_no_memory(ctx, NULL, "for copies");
    for (size_t i = 0; i < set->size; ++i)
        if (set->at[i]) larger.at[find(&larger, set->at[i])] = set->at[i];
    trli_free(set->at);
    *set = larger;
    return TRL_OK;
}

trl_err trli_pinned_add(trl_context *ctx, trli_pinned *set, void *memory)
{
    trl_err err = TRL_OK;
    if (2 * (set->n + 1) > set->size) TRL_TRY(grow(ctx, set));
    set->at[find(set, memory)] = memory;
    ++set->n;
done:
    return err;
}

/* What follows without a gap, and could no longer be found, moves to the free place (Knuth's algorithm R). */
bool trli_pinned_remove(trli_pinned *set, const void *memory)
{
    if (!trli_pinned_has(set, memory)) return false;
    const size_t mask = set->size - 1;
    size_t free = find(set, memory);
    for (size_t i = (free + 1) & mask; set->at[i]; i = (i + 1) & mask) {
        const size_t from_home = (i - place_of(set, set->at[i])) & mask;
        if (from_home < ((i - free) & mask)) continue;
        set->at[free] = set->at[i];
        free = i;
    }
    set->at[free] = NULL;
    --set->n;
    return true;
}

void trli_pinned_free(trli_pinned *set)
{
    trli_free(set->at);
    *set = (trli_pinned){0};
}

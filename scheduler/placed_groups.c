/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Transfers to one GPU that follow the same nodes, and that the same nodes follow, are one launch: what a patch needs
 * of another one's fields takes one fence, one wait and few calls of the driver. As their predecessors are the same,
 * none of them is before another one, and the group can be where its first member is. */
#include <string.h>

#include "placed_impl.h"

static bool same_nodes(const int32_t *first, const int32_t *node, int32_t x, int32_t y)
{
    const int32_t n = first[x + 1] - first[x];
    return n == first[y + 1] - first[y] && memcmp(node + first[x], node + first[y], (size_t)n * sizeof *node) == 0;
}

static bool same_group(const trli_placed_nodes *nodes, int32_t x, int32_t y)
{
    return nodes->space[x] == nodes->space[y] && same_nodes(nodes->before_first, nodes->before, x, y) &&
           same_nodes(nodes->after_first, nodes->after, x, y);
}

static bool is_to_gpu(const trli_placed *p, const trli_transfer *t)
{
    return t->to > 0 && trli_device_of(p->devices, t->to)->kind == TRL_KIND_GPU;
}

/* A chain of leaders for each first successor: groups of one have it in common. */
static void find_leaders(const trli_placed *p, const trli_placed_nodes *nodes, int32_t *group, int32_t *head,
                         int32_t *next)
{
    const trli_transfer *transfer = p->transfers.list.data;
    for (int32_t i = 0; i < nodes->n; ++i) head[i] = -1;
    for (int32_t i = 0; i < nodes->n - nodes->tasks; ++i) {
        const int32_t x = nodes->tasks + i;
        group[i] = i;
        if (!is_to_gpu(p, &transfer[i]) || nodes->after_first[x] == nodes->after_first[x + 1]) continue;
        int32_t *chain = &head[nodes->after[nodes->after_first[x]]];
        int32_t leader = *chain;
        while (leader >= 0 && !same_group(nodes, x, nodes->tasks + leader)) leader = next[leader];
        if (leader >= 0) {
            group[i] = leader;
        } else {
            next[i] = *chain;
            *chain = i;
        }
    }
}

/* Members follow the one of them that comes first. */
static void reorder(const trli_placed_nodes *nodes, const int32_t *group, int32_t *order, int32_t *last, int32_t *next,
                    int32_t *first)
{
    const int32_t transfers = nodes->n - nodes->tasks;
    int32_t at = 0;
    for (int32_t i = 0; i < transfers; ++i) first[i] = last[i] = next[i] = -1;
    for (int32_t k = 0; k < nodes->n; ++k) {
        const int32_t i = order[k] - nodes->tasks;
        if (i < 0) continue;
        int32_t *end = &last[group[i]];
        if (*end < 0)
            first[group[i]] = i;
        else
            next[*end] = i;
        *end = i;
    }
    /* `order` shrinks while it is read: a member is left out where it was, and comes no later than that. */
    int32_t *kept = last;
    int32_t n = 0;
    for (int32_t k = 0; k < nodes->n; ++k) {
        const int32_t i = order[k] - nodes->tasks;
        if (i < 0 || first[group[i]] == i) kept[n++] = order[k];
    }
    for (int32_t k = 0; k < n; ++k) {
        const int32_t i = kept[k] - nodes->tasks;
        order[at++] = kept[k];
        for (int32_t m = i < 0 ? -1 : next[i]; m >= 0; m = next[m]) order[at++] = nodes->tasks + m;
    }
}

trl_err trli_groups_find(const trli_placed *p, const trli_placed_nodes *nodes, int32_t *order, int32_t *group)
{
    trl_context *ctx = p->logical->ctx;
    const size_t n = (size_t)nodes->n + 1;
    trl_err err = TRL_OK;
    int32_t *a = trli_new(ctx, n, sizeof *a), *b = trli_new(ctx, n, sizeof *b), *c = trli_new(ctx, n, sizeof *c);
    if (!a || !b || !c) TRL_TRY(trli_no_memory(ctx, NULL, "for a placed graph"));
    find_leaders(p, nodes, group, a, b);
    reorder(nodes, group, order, a, b, c);
done:
    trli_free(a);
    trli_free(b);
    trli_free(c);
    return err;
}

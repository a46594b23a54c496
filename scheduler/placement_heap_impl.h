/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#ifndef TRLI_PLACEMENT_HEAP_IMPL_H
#define TRLI_PLACEMENT_HEAP_IMPL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct trli_heap_item {
    double key;
    int32_t id;
} trli_heap_item;

/* A queue that returns the item of the least key first, and of equal keys the least number: a total order, so that
 * results do not depend on the order of insertion. */
typedef struct trli_heap {
    trli_heap_item *item; /* the user's memory, with room for all items that are queued at once */
    int32_t count;
} trli_heap;

static inline bool trli_heap_before(const trli_heap_item *a, const trli_heap_item *b)
{
    return a->key < b->key || (a->key == b->key && a->id < b->id);
}

static inline void trli_heap_push(trli_heap *heap, double key, int32_t id)
{
    const trli_heap_item item = {key, id};
    int32_t at = heap->count++;
    for (; at > 0; at = (at - 1) / 2) {
        const trli_heap_item *parent = &heap->item[(at - 1) / 2];
        if (!trli_heap_before(&item, parent)) break;
        heap->item[at] = *parent;
    }
    heap->item[at] = item;
}

static inline trli_heap_item trli_heap_pop(trli_heap *heap)
{
    const trli_heap_item first = heap->item[0], last = heap->item[--heap->count];
    int32_t at = 0;
    for (int32_t child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && trli_heap_before(&heap->item[child + 1], &heap->item[child])) ++child;
        if (!trli_heap_before(&heap->item[child], &last)) break;
        heap->item[at] = heap->item[child];
        at = child;
    }
    heap->item[at] = last;
    return first;
}

#endif

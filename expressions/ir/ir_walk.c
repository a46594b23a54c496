/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Walks over the DAG: reachability, hulls of offsets. */
#include <stdlib.h>
#include <string.h>

#include "ir_impl.h"
#include "memory_impl.h"

void trli_walk_free(trli_walk *walk)
{
    trli_free(walk->list);
    trli_free(walk->mark);
    trli_free(walk->place);
    trli_free(walk->stack);
    *walk = (trli_walk){0};
}

static trl_err reserve(const trli_ir *ir, trli_walk *walk)
{
    trl_err err = TRL_OK;
    if (walk->nmark >= ir->count) return TRL_OK;
    int32_t n = ir->count + ir->count / 2;
    int32_t *list = trli_resize(ir->ctx, walk->list, (size_t)n, sizeof *list);
    if (list) walk->list = list;
    int32_t *mark = trli_resize(ir->ctx, walk->mark, (size_t)n, sizeof *mark);
    if (mark) walk->mark = mark;
    int32_t *place = trli_resize(ir->ctx, walk->place, (size_t)n, sizeof *place);
    if (place) walk->place = place;
    int32_t *stack = trli_resize(ir->ctx, walk->stack, (size_t)n, sizeof *stack);
    if (stack) walk->stack = stack;
    if (!list || !mark || !place || !stack) return trli_no_memory(ir->ctx, NULL, "to walk %d values", n);
    memset(walk->mark + walk->nmark, 0, (size_t)(n - walk->nmark) * sizeof *mark);
    walk->nmark = walk->capacity = n;
    return err;
}

static int compare_values(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

trl_err trli_ir_walk(const trli_ir *ir, trli_walk *walk, int nroots, const trli_ir_value *roots)
{
    trl_err err = reserve(ir, walk);
    if (err != TRL_OK) return err;
    ++walk->stamp;
    walk->count = 0;
    for (int r = 0; r < nroots; ++r) {
        if (walk->mark[roots[r]] == walk->stamp) continue;
        walk->mark[roots[r]] = walk->stamp;
        walk->list[walk->count++] = roots[r];
    }
    for (int32_t next = 0; next < walk->count; ++next) {
        const trli_node *n = &ir->node[walk->list[next]];
        for (int i = 0; i < trli_op_operands(n->op); ++i) {
            if (walk->mark[n->arg[i]] == walk->stamp) continue;
            walk->mark[n->arg[i]] = walk->stamp;
            walk->list[walk->count++] = n->arg[i];
        }
    }
    qsort(walk->list, (size_t)walk->count, sizeof *walk->list, compare_values);
    for (int32_t i = 0; i < walk->count; ++i) walk->place[walk->list[i]] = i;
    return TRL_OK;
}

/* Walk from a root. A node on the stack notes in `place` how many of its operands were visited. */
static void walk_root(const trli_ir *ir, trli_walk *walk, trli_ir_value root)
{
    int32_t depth = 0;
    if (walk->mark[root] == walk->stamp) return;
    walk->mark[root] = walk->stamp;
    walk->place[root] = 0;
    walk->stack[depth++] = root;
    while (depth > 0) {
        const int32_t v = walk->stack[depth - 1];
        const trli_node *n = &ir->node[v];
        if (walk->place[v] == trli_op_operands(n->op)) {
            walk->place[v] = walk->count;
            walk->list[walk->count++] = v;
            --depth;
            continue;
        }
        const int32_t arg = n->arg[walk->place[v]++];
        if (walk->mark[arg] == walk->stamp) continue;
        walk->mark[arg] = walk->stamp;
        walk->place[arg] = 0;
        walk->stack[depth++] = arg;
    }
}

trl_err trli_ir_walk_in_depth(const trli_ir *ir, trli_walk *walk, int nroots, const trli_ir_value *roots)
{
    trl_err err = reserve(ir, walk);
    if (err != TRL_OK) return err;
    ++walk->stamp;
    walk->count = 0;
    for (int r = 0; r < nroots; ++r) walk_root(ir, walk, roots[r]);
    return TRL_OK;
}

static void widen(trl_offsets *hull, bool *seen, const trl_offsets *by, const int8_t shift[3])
{
    for (int a = 0; a < 3; ++a) {
        int lo = by->lo[a] + shift[a], hi = by->hi[a] + shift[a];
        hull->lo[a] = *seen && hull->lo[a] < lo ? hull->lo[a] : lo;
        hull->hi[a] = *seen && hull->hi[a] > hi ? hull->hi[a] : hi;
    }
    *seen = true;
}

void trli_ir_hulls(const trli_ir *ir, const trli_walk *walk, int nroots, const trli_ir_value *roots, trl_offsets *hull)
{
    static const int8_t none[3] = {0, 0, 0};
    static const trl_offsets point = {{0, 0, 0}, {0, 0, 0}};
    /* An impossible hull marks "not seen yet". */
    for (int32_t i = 0; i < walk->count; ++i) hull[i] = (trl_offsets){{1, 0, 0}, {0, 0, 0}};
    for (int r = 0; r < nroots; ++r) hull[walk->place[roots[r]]] = point;
    for (int32_t i = walk->count - 1; i >= 0; --i) {
        const trli_node *n = &ir->node[walk->list[i]];
        for (int o = 0; o < trli_op_operands(n->op); ++o) {
            trl_offsets *h = &hull[walk->place[n->arg[o]]];
            bool seen = h->lo[0] <= h->hi[0];
            widen(h, &seen, &hull[i], n->op == TRLI_OP_SHIFT ? n->shift : none);
        }
    }
}

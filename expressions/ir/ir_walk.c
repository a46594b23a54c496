/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Passes over the DAG: reachability, substitution of coordinates, hulls of offsets. */
#include <stdlib.h>
#include <string.h>

#include "ir_impl.h"

void trli_walk_free(trli_walk *walk)
{
    free(walk->list);
    free(walk->mark);
    free(walk->place);
    *walk = (trli_walk){0};
}

static trl_err reserve(const trli_ir *ir, trli_walk *walk)
{
    trl_err err = TRL_OK;
    if (walk->nmark >= ir->count) return TRL_OK;
    int32_t n = ir->count + ir->count / 2;
    int32_t *list = realloc(walk->list, (size_t)n * sizeof *list);
    if (list) walk->list = list;
    int32_t *mark = realloc(walk->mark, (size_t)n * sizeof *mark);
    if (mark) walk->mark = mark;
    int32_t *place = realloc(walk->place, (size_t)n * sizeof *place);
    if (place) walk->place = place;
    if (!list || !mark || !place) return trl_fail(ir->ctx, TRL_ERR_MEMORY, NULL, "no memory to walk %d values", n);
    memset(walk->mark + walk->nmark, 0, (size_t)(n - walk->nmark) * sizeof *mark);
    walk->nmark = walk->capacity = n;
    return err;
}

static int compare_values(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

trl_err trli_ir_walk(const trli_ir *ir, trli_walk *walk, int nroots, const trli_value *roots)
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

static void widen(trl_offsets *hull, bool *seen, const trl_offsets *by, const int8_t shift[3])
{
    for (int a = 0; a < 3; ++a) {
        int lo = by->lo[a] + shift[a], hi = by->hi[a] + shift[a];
        hull->lo[a] = *seen && hull->lo[a] < lo ? hull->lo[a] : lo;
        hull->hi[a] = *seen && hull->hi[a] > hi ? hull->hi[a] : hi;
    }
    *seen = true;
}

void trli_ir_hulls(const trli_ir *ir, const trli_walk *walk, int nroots, const trli_value *roots, trl_offsets *hull)
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

/* Rebuild a value with some nodes replaced. Operands precede users, so one ascending pass over the needed nodes
 * suffices. */
static trli_value rebuild(trli_ir *ir, trli_value root, trli_value (*instead)(trli_ir *, trli_value, const void *),
                          const void *data)
{
    trli_walk walk = ir->spare;
    trli_value *now = NULL, result = 0;
    ir->spare = (trli_walk){0};
    ir->err = trli_ir_walk(ir, &walk, 1, &root);
    if (ir->err != TRL_OK) goto done;
    now = malloc((size_t)walk.count * sizeof *now);
    if (!now) {
        ir->err = trl_fail(ir->ctx, TRL_ERR_MEMORY, NULL, "no memory to rebuild %d values", walk.count);
        goto done;
    }
    for (int32_t i = 0; i < walk.count; ++i) {
        trli_node n = ir->node[walk.list[i]];
        trli_value arg[3] = {TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE};
        for (int o = 0; o < trli_op_operands(n.op); ++o) arg[o] = now[walk.place[n.arg[o]]];
        now[i] = instead(ir, walk.list[i], data);
        if (now[i] != walk.list[i]) continue;
        if (memcmp(arg, n.arg, sizeof arg) == 0) continue;
        now[i] = trli_ir_remake(ir, &n, arg);
    }
    result = now[walk.count - 1];
done:
    free(now);
    trli_walk_free(&ir->spare);
    ir->spare = walk;
    return result;
}

static trli_value place_coordinate(trli_ir *ir, trli_value v, const void *data)
{
    trl_location location = *(const trl_location *)data;
    const trli_node *n = &ir->node[v];
    if (n->op != TRLI_OP_COORDINATE || !n->unplaced) return v;
    return trli_ir_coordinate(ir, n->index, location >> n->index & 1);
}

trli_value trli_ir_place(trli_ir *ir, trli_value a, trl_location location)
{
    if (ir->err != TRL_OK || !ir->node[a].unplaced) return a;
    return rebuild(ir, a, place_coordinate, &location);
}

typedef struct fixed {
    int axis;
    double coordinate;
} fixed;

static trli_value fix_coordinate(trli_ir *ir, trli_value v, const void *data)
{
    const fixed *f = data;
    const trli_node *n = &ir->node[v];
    return n->op == TRLI_OP_COORDINATE && n->index == f->axis ? trli_ir_constant(ir, f->coordinate) : v;
}

trli_value trli_ir_fix_coordinate(trli_ir *ir, trli_value a, int axis, double coordinate)
{
    fixed f = {axis, coordinate};
    if (ir->err != TRL_OK) return 0;
    return rebuild(ir, a, fix_coordinate, &f);
}

static trli_value put_instead(trli_ir *ir, trli_value v, const void *data)
{
    const trli_value *pair = data;
    (void)ir;
    return v == pair[0] ? pair[1] : v;
}

trli_value trli_ir_replace(trli_ir *ir, trli_value a, trli_value from, trli_value to)
{
    const trli_value pair[2] = {from, to};
    if (ir->err != TRL_OK) return 0;
    return rebuild(ir, a, put_instead, pair);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values made again with other nodes in place of some. */
#include <string.h>

#include "ir_impl.h"
#include "memory_impl.h"

/* What takes the place of a value whose operands have given way to others. */
typedef trli_ir_value (*remaking)(trli_ir *ir, trli_ir_value v, const trli_ir_value arg[3], const void *data);

static trli_ir_value with_operands(trli_ir *ir, trli_ir_value v, const trli_ir_value arg[3])
{
    const trli_node n = ir->node[v];
    return memcmp(arg, n.arg, sizeof n.arg) == 0 ? v : trli_ir_remake(ir, &n, arg);
}

/* Operands precede users, so one ascending pass over the needed nodes suffices. */
static trli_ir_value rebuild(trli_ir *ir, trli_ir_value root, remaking remake, const void *data)
{
    trli_walk walk = ir->spare;
    trli_ir_value *now = NULL, result = 0;
    ir->spare = (trli_walk){0};
    ir->err = trli_ir_walk(ir, &walk, 1, &root);
    if (ir->err != TRL_OK) goto done;
    now = trli_new(ir->ctx, (size_t)walk.count, sizeof *now);
    if (!now) {
        ir->err = trli_no_memory(ir->ctx, NULL, "to rebuild %d values", walk.count);
        goto done;
    }
    for (int32_t i = 0; i < walk.count; ++i) {
        const trli_node n = ir->node[walk.list[i]];
        trli_ir_value arg[3] = {TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE};
        for (int o = 0; o < trli_op_operands(n.op); ++o) arg[o] = now[walk.place[n.arg[o]]];
        now[i] = remake(ir, walk.list[i], arg, data);
    }
    result = now[walk.count - 1];
done:
    trli_free(now);
    trli_walk_free(&ir->spare);
    ir->spare = walk;
    return result;
}

static trli_ir_value place_leaf(trli_ir *ir, trli_ir_value v, const trli_ir_value arg[3], const void *data)
{
    trl_location location = *(const trl_location *)data;
    const trli_node *n = &ir->node[v];
    if (trli_op_operands(n->op) > 0 || !n->unplaced) return with_operands(ir, v, arg);
    const int bit = location >> n->index & 1;
    return n->op == TRLI_OP_SHARE ? trli_ir_share(ir, n->index, bit, n->number) : trli_ir_coordinate(ir, n->index, bit);
}

trli_ir_value trli_ir_place(trli_ir *ir, trli_ir_value a, trl_location location)
{
    if (ir->err != TRL_OK || !ir->node[a].unplaced) return a;
    return rebuild(ir, a, place_leaf, &location);
}

typedef struct fixed {
    int axis;
    double coordinate;
} fixed;

static trli_ir_value fix_coordinate(trli_ir *ir, trli_ir_value v, const trli_ir_value arg[3], const void *data)
{
    const fixed *f = data;
    const trli_node *n = &ir->node[v];
    const bool is_fixed = n->op == TRLI_OP_COORDINATE && n->index == f->axis;
    return is_fixed ? trli_ir_constant(ir, f->coordinate) : with_operands(ir, v, arg);
}

trli_ir_value trli_ir_fix_coordinate(trli_ir *ir, trli_ir_value a, int axis, double coordinate)
{
    fixed f = {axis, coordinate};
    if (ir->err != TRL_OK) return 0;
    return rebuild(ir, a, fix_coordinate, &f);
}

static trli_ir_value put_instead(trli_ir *ir, trli_ir_value v, const trli_ir_value arg[3], const void *data)
{
    const trli_ir_value *pair = data;
    return v == pair[0] ? pair[1] : with_operands(ir, v, arg);
}

trli_ir_value trli_ir_replace(trli_ir *ir, trli_ir_value a, trli_ir_value from, trli_ir_value to)
{
    const trli_ir_value pair[2] = {from, to};
    if (ir->err != TRL_OK) return 0;
    return rebuild(ir, a, put_instead, pair);
}

static trli_ir_value size_of(trli_ir *ir, trli_ir_value v, const trli_ir_value arg[3], const void *data)
{
    const trli_node n = ir->node[v];
    (void)data;
    switch (n.op) {
    case TRLI_OP_ADD:
    case TRLI_OP_SUB:
        return trli_ir_binary(ir, TRLI_OP_ADD, arg[0], arg[1]);
    case TRLI_OP_NEG:
        return arg[0];
    case TRLI_OP_MUL:
        return trli_ir_binary(ir, TRLI_OP_MUL, arg[0], arg[1]);
    case TRLI_OP_DIV:
        return trli_ir_binary(ir, TRLI_OP_DIV, arg[0], trli_ir_unary(ir, TRLI_OP_ABS, n.arg[1]));
    case TRLI_OP_SELECT:
        return trli_ir_select(ir, n.arg[0], arg[1], arg[2]);
    default:
        return trli_ir_unary(ir, TRLI_OP_ABS, v);
    }
}

trli_ir_value trli_ir_size_of_terms(trli_ir *ir, trli_ir_value a)
{
    if (ir->err != TRL_OK) return 0;
    return rebuild(ir, a, size_of, NULL);
}

/* Whether an operation is zero because operands are, as a derivative whose terms these are. */
static bool is_gone(trli_op op, const bool zero[3])
{
    switch (op) {
    case TRLI_OP_MUL:
        return zero[0] || zero[1];
    case TRLI_OP_NEG:
    case TRLI_OP_SHIFT:
    case TRLI_OP_DIV:
        return zero[0];
    case TRLI_OP_ADD:
    case TRLI_OP_SUB:
        return zero[0] && zero[1];
    case TRLI_OP_SELECT:
        return zero[1] && zero[2];
    default:
        return false;
    }
}

trli_ir_value trli_ir_without(trli_ir *ir, trli_ir_value a, trli_ir_value zero)
{
    trli_walk walk = {0};
    trli_ir_value *now = NULL, result = 0;
    bool *gone = NULL;
    if (ir->err != TRL_OK) return 0;
    ir->err = trli_ir_walk(ir, &walk, 1, &a);
    if (ir->err != TRL_OK) goto done;
    now = trli_new(ir->ctx, (size_t)walk.count, sizeof *now);
    gone = trli_new(ir->ctx, (size_t)walk.count, sizeof *gone);
    if (!now || !gone) {
        ir->err = trli_no_memory(ir->ctx, NULL, "to rebuild %d values", walk.count);
        goto done;
    }
    for (int32_t i = 0; i < walk.count; ++i) {
        const trli_node n = ir->node[walk.list[i]];
        trli_ir_value arg[3] = {TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE};
        bool without[3] = {false};
        for (int o = 0; o < trli_op_operands((trli_op)n.op); ++o) {
            arg[o] = now[walk.place[n.arg[o]]];
            without[o] = gone[walk.place[n.arg[o]]];
        }
        gone[i] = walk.list[i] == zero || is_gone((trli_op)n.op, without);
        now[i] = gone[i]                               ? trli_ir_constant(ir, 0)
                 : memcmp(arg, n.arg, sizeof arg) == 0 ? walk.list[i]
                                                       : trli_ir_remake(ir, &n, arg);
    }
    result = now[walk.count - 1];
done:
    trli_free(now);
    trli_free(gone);
    trli_walk_free(&walk);
    return result;
}

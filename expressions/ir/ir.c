/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir_impl.h"
#include "memory_impl.h"

static uint64_t mix(uint64_t h, uint64_t x)
{
    h ^= x;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static uint64_t node_hash(const trli_node *n)
{
    uint64_t bits, h = n->op;
    memcpy(&bits, &n->number, sizeof bits);
    h = mix(h, bits);
    h = mix(h, (uint64_t)(uint8_t)n->shift[0] | (uint64_t)(uint8_t)n->shift[1] << 8 |
                   (uint64_t)(uint8_t)n->shift[2] << 16 | (uint64_t)(uint32_t)n->index << 24);
    h = mix(h, (uint64_t)(uint32_t)n->arg[0] | (uint64_t)(uint32_t)n->arg[1] << 32);
    return mix(h, (uint64_t)(uint32_t)n->arg[2] | (uint64_t)(uint32_t)n->bit << 32);
}

static bool node_equal(const trli_node *a, const trli_node *b)
{
    return a->op == b->op && memcmp(a->shift, b->shift, sizeof a->shift) == 0 && a->index == b->index &&
           a->bit == b->bit && memcmp(a->arg, b->arg, sizeof a->arg) == 0 &&
           memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

static trl_err grow_buckets(trli_ir *ir)
{
    int32_t n = ir->nbuckets ? 2 * ir->nbuckets : 4096;
    int32_t *bucket = trli_new(ir->ctx, (size_t)n, sizeof *bucket);
    if (!bucket) return trli_no_memory(ir->ctx, NULL, "for the expression graph's hash table");
    for (int32_t i = 0; i < n; ++i) bucket[i] = -1;
    for (int32_t v = 0; v < ir->count; ++v) {
        uint64_t h = node_hash(&ir->node[v]) & (uint64_t)(n - 1);
        while (bucket[h] >= 0) h = (h + 1) & (uint64_t)(n - 1);
        bucket[h] = v;
    }
    trli_free(ir->bucket);
    ir->bucket = bucket;
    ir->nbuckets = n;
    return TRL_OK;
}

trl_err trli_ir_init(trli_ir *ir, trl_context *ctx, const trl_grid *grid)
{
    *ir = (trli_ir){.ctx = ctx, .grid = grid};
    trli_ir_constant(ir, NAN); /* value 0: what makers return after a failure */
    return ir->err;
}

void trli_ir_free(trli_ir *ir)
{
    trli_free(ir->node);
    trli_free(ir->bucket);
    trli_walk_free(&ir->spare);
    *ir = (trli_ir){0};
}

static uint8_t node_varies(const trli_ir *ir, const trli_node *n)
{
    uint8_t all = (uint8_t)((1 << ir->grid->dim) - 1), v = 0;
    switch (n->op) {
    case TRLI_OP_CONSTANT:
    case TRLI_OP_SCALAR:
        return 0;
    case TRLI_OP_COORDINATE:
    case TRLI_OP_SHARE:
        return (uint8_t)(1 << n->index);
    case TRLI_OP_AT_SIDE:
        return (uint8_t)(1 << n->index / 2);
    case TRLI_OP_RANDOM:
    case TRLI_OP_POINT:
    case TRLI_OP_FIELD:
        return all;
    default:
        break;
    }
    for (int i = 0; i < trli_op_operands(n->op); ++i) v |= ir->node[n->arg[i]].varies;
    return v;
}

static void set_reach(const trli_ir *ir, trli_node *n)
{
    for (int a = 0; a < 3; ++a) {
        int reach = 0;
        for (int i = 0; i < trli_op_operands(n->op); ++i)
            if (ir->node[n->arg[i]].reach[a] > reach) reach = ir->node[n->arg[i]].reach[a];
        if (n->op == TRLI_OP_SHIFT) reach += abs(n->shift[a]);
        n->reach[a] = (uint8_t)(reach < 255 ? reach : 255);
    }
}

const char trli_far_text[] = "it reads values more than 4 points away";

bool trli_ir_reaches_far(const trli_ir *ir, trli_ir_value v)
{
    const int far = 4;
    const trli_node *n = &ir->node[v];
    return n->reach[0] > far || n->reach[1] > far || n->reach[2] > far;
}

static trli_ir_value add_node(trli_ir *ir, const trli_node *wanted)
{
    if (ir->err != TRL_OK) return 0;
    if (2 * (ir->count + 1) > ir->nbuckets) ir->err = grow_buckets(ir);
    if (ir->err == TRL_OK && !trli_make_room(ir->ctx, &ir->node, ir->count, 1, &ir->capacity, sizeof *ir->node))
        ir->err = trli_no_memory(ir->ctx, NULL, "for %d values of the expression graph", ir->count + 1);
    if (ir->err != TRL_OK) return 0;
    uint64_t h = node_hash(wanted) & (uint64_t)(ir->nbuckets - 1);
    const bool computes = trli_op_operands(wanted->op) > 0 && wanted->op != TRLI_OP_SHIFT;
    for (; ir->bucket[h] >= 0; h = (h + 1) & (uint64_t)(ir->nbuckets - 1))
        if (!(computes && ir->no_cse) && node_equal(&ir->node[ir->bucket[h]], wanted)) {
            ir->shared += computes;
            return ir->bucket[h];
        }
    trli_node *n = &ir->node[ir->count];
    *n = *wanted;
    n->varies = node_varies(ir, n);
    n->unplaced = (n->op == TRLI_OP_COORDINATE || n->op == TRLI_OP_SHARE) && n->bit == TRLI_UNPLACED;
    for (int i = 0; i < trli_op_operands(n->op); ++i) n->unplaced |= ir->node[n->arg[i]].unplaced;
    set_reach(ir, n);
    ir->bucket[h] = ir->count;
    return ir->count++;
}

static trli_node blank(trli_op op)
{
    return (trli_node){.op = (uint8_t)op, .arg = {TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE}};
}

trli_ir_value trli_ir_constant(trli_ir *ir, double number)
{
    trli_node n = blank(TRLI_OP_CONSTANT);
    n.number = number;
    return add_node(ir, &n);
}

bool trli_ir_is_zero(const trli_ir *ir, trli_ir_value v)
{
    return ir->node[v].op == TRLI_OP_CONSTANT && ir->node[v].number == 0;
}

trli_ir_value trli_ir_scalar(trli_ir *ir, int scalar)
{
    trli_node n = blank(TRLI_OP_SCALAR);
    n.index = scalar;
    return add_node(ir, &n);
}

trli_ir_value trli_ir_field(trli_ir *ir, int field)
{
    trli_node n = blank(TRLI_OP_FIELD);
    n.index = field;
    return add_node(ir, &n);
}

trli_ir_value trli_ir_field_no_cse(trli_ir *ir, int field)
{
    trli_node n = blank(TRLI_OP_FIELD);
    n.index = field;
    n.bit = 1;
    return add_node(ir, &n);
}

trli_ir_value trli_ir_coordinate(trli_ir *ir, int axis, int bit)
{
    trli_node n = blank(TRLI_OP_COORDINATE);
    n.index = axis;
    n.bit = bit;
    return add_node(ir, &n);
}

trli_ir_value trli_ir_random(trli_ir *ir, double seed)
{
    trli_node n = blank(TRLI_OP_RANDOM);
    n.number = seed;
    return add_node(ir, &n);
}

trli_ir_value trli_ir_point(trli_ir *ir)
{
    const trli_node n = blank(TRLI_OP_POINT);
    return add_node(ir, &n);
}

trli_ir_value trli_ir_share(trli_ir *ir, int axis, int bit, double where)
{
    trli_node n = blank(TRLI_OP_SHARE);
    n.index = axis;
    n.bit = bit;
    n.number = where;
    return add_node(ir, &n);
}

trli_ir_value trli_ir_at_side(trli_ir *ir, int axis, int side)
{
    trli_node n = blank(TRLI_OP_AT_SIDE);
    n.index = 2 * axis + side;
    return add_node(ir, &n);
}

trli_ir_value trli_ir_shift(trli_ir *ir, trli_ir_value a, int axis, int by)
{
    trli_node n = blank(TRLI_OP_SHIFT);
    /* A shift across an axis along which the value does not vary changes nothing. An unplaced coordinate moves with its
     * point. */
    if (by == 0 || !(ir->node[a].varies & 1 << axis)) return a;
    if (ir->node[a].op == TRLI_OP_NEG) /* where signs cancel, they must be seen */
        return trli_ir_unary(ir, TRLI_OP_NEG, trli_ir_shift(ir, ir->node[a].arg[0], axis, by));
    n.arg[0] = a;
    n.shift[axis] = (int8_t)by;
    if (ir->node[a].op == TRLI_OP_SHIFT) {
        n.arg[0] = ir->node[a].arg[0];
        for (int i = 0; i < 3; ++i) n.shift[i] = (int8_t)(n.shift[i] + ir->node[a].shift[i]);
    }
    if (!n.shift[0] && !n.shift[1] && !n.shift[2]) return n.arg[0];
    return add_node(ir, &n);
}

static bool is_constant(const trli_ir *ir, trli_ir_value v, double *number)
{
    *number = ir->node[v].number;
    return ir->node[v].op == TRLI_OP_CONSTANT;
}

static trli_ir_value make(trli_ir *ir, trli_node *n)
{
    double number[3] = {0};
    int operands = trli_op_operands(n->op), constants = 0;
    for (int i = 0; i < operands; ++i) constants += is_constant(ir, n->arg[i], &number[i]);
    if (operands == 0 || constants < operands) return add_node(ir, n);
    ++ir->folded;
    return trli_ir_constant(ir, trli_op_evaluate(n->op, n->index, number));
}

trli_ir_value trli_ir_unary(trli_ir *ir, trli_op op, trli_ir_value a)
{
    trli_node n = blank(op);
    if (op == TRLI_OP_NEG && ir->node[a].op == TRLI_OP_NEG) return ir->node[a].arg[0];
    n.arg[0] = a;
    return make(ir, &n);
}

/* a, or the operand of a negation. */
static trli_ir_value strip_sign(const trli_ir *ir, trli_ir_value a, bool *negative)
{
    *negative = ir->node[a].op == TRLI_OP_NEG;
    return *negative ? ir->node[a].arg[0] : a;
}

/* Products and quotients of negated values: the sign goes into a constant, or to the result, where a sum takes it up.
 */
static trli_ir_value multiply(trli_ir *ir, trli_op op, trli_ir_value a, trli_ir_value b)
{
    trli_node n = blank(op);
    double x, y;
    bool minus_a, minus_b;
    bool constant_a = is_constant(ir, a, &x), constant_b = is_constant(ir, b, &y);
    n.arg[0] = strip_sign(ir, a, &minus_a);
    n.arg[1] = strip_sign(ir, b, &minus_b);
    if (constant_b && (y == 1 || y == -1)) return y == 1 ? a : trli_ir_unary(ir, TRLI_OP_NEG, a);
    if (op == TRLI_OP_MUL && constant_a && (x == 1 || x == -1)) return x == 1 ? b : trli_ir_unary(ir, TRLI_OP_NEG, b);
    if (minus_a == minus_b) return make(ir, &n);
    if (constant_a) n.arg[0] = trli_ir_constant(ir, -x);
    if (constant_b) n.arg[1] = trli_ir_constant(ir, -y);
    trli_ir_value result = make(ir, &n);
    return constant_a || constant_b ? result : trli_ir_unary(ir, TRLI_OP_NEG, result);
}

/* Only identities that hold for every bit pattern but a NaN's sign and payload. */
trli_ir_value trli_ir_binary(trli_ir *ir, trli_op op, trli_ir_value a, trli_ir_value b)
{
    trli_node n = blank(op);
    bool minus_a, minus_b;
    trli_ir_value plain_a = strip_sign(ir, a, &minus_a), plain_b = strip_sign(ir, b, &minus_b);
    if (op == TRLI_OP_MUL || op == TRLI_OP_DIV) return multiply(ir, op, a, b);
    if (op == TRLI_OP_ADD && minus_b) return trli_ir_binary(ir, TRLI_OP_SUB, a, plain_b);
    if (op == TRLI_OP_ADD && minus_a) return trli_ir_binary(ir, TRLI_OP_SUB, b, plain_a);
    if (op == TRLI_OP_SUB && minus_b) return trli_ir_binary(ir, TRLI_OP_ADD, a, plain_b);
    n.arg[0] = a;
    n.arg[1] = b;
    return make(ir, &n);
}

trli_ir_value trli_ir_select(trli_ir *ir, trli_ir_value c, trli_ir_value a, trli_ir_value b)
{
    trli_node n = blank(TRLI_OP_SELECT);
    double x;
    if (is_constant(ir, c, &x)) return x != 0 ? a : b;
    if (a == b) return a;
    n.arg[0] = c;
    n.arg[1] = a;
    n.arg[2] = b;
    return make(ir, &n);
}

trli_ir_value trli_ir_limit(trli_ir *ir, int limiter, trli_ir_value upwind, trli_ir_value centre,
                            trli_ir_value downwind)
{
    trli_node n = blank(TRLI_OP_LIMIT);
    n.index = limiter;
    n.arg[0] = upwind;
    n.arg[1] = centre;
    n.arg[2] = downwind;
    return make(ir, &n);
}

trli_ir_value trli_ir_normal(trli_ir *ir, trli_ir_value point, trli_ir_value step, trli_ir_value seed)
{
    trli_node n = blank(TRLI_OP_NORMAL);
    n.arg[0] = point;
    n.arg[1] = step;
    n.arg[2] = seed;
    return make(ir, &n);
}

trli_ir_value trli_ir_function(trli_ir *ir, int row, trli_ir_value a, trli_ir_value b)
{
    int count;
    const trl_function *f = &trl_functions(&count)[row];
    trli_node n = blank(f->arity == 1 ? TRLI_OP_FUNCTION1 : TRLI_OP_FUNCTION2);
    n.index = row;
    n.arg[0] = a;
    if (f->arity == 2) n.arg[1] = b;
    return make(ir, &n);
}

trli_ir_value trli_ir_power(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    double e;
    if (!is_constant(ir, b, &e) || 2 * e != floor(2 * e) || fabs(e) > 8) return trli_ir_binary(ir, TRLI_OP_POW, a, b);
    if (e == 0) return trli_ir_constant(ir, 1);
    const int n = (int)fabs(e);
    trli_ir_value p = n > 0 ? a : trli_ir_unary(ir, TRLI_OP_SQRT, a);
    for (int i = 1; i < n; ++i) p = trli_ir_binary(ir, TRLI_OP_MUL, p, a);
    if (n > 0 && n < fabs(e)) p = trli_ir_binary(ir, TRLI_OP_MUL, p, trli_ir_unary(ir, TRLI_OP_SQRT, a));
    return e > 0 ? p : trli_ir_binary(ir, TRLI_OP_DIV, trli_ir_constant(ir, 1), p);
}

trli_ir_value trli_ir_remake(trli_ir *ir, const trli_node *n, const trli_ir_value arg[3])
{
    trli_node other = *n;
    if (n->op == TRLI_OP_SHIFT) {
        trli_ir_value v = arg[0];
        for (int a = 0; a < 3; ++a) v = trli_ir_shift(ir, v, a, n->shift[a]);
        return v;
    }
    if (n->op == TRLI_OP_SELECT) return trli_ir_select(ir, arg[0], arg[1], arg[2]);
    if (n->op == TRLI_OP_NEG) return trli_ir_unary(ir, TRLI_OP_NEG, arg[0]);
    if (trli_op_operands(n->op) == 2 && n->op != TRLI_OP_FUNCTION2)
        return trli_ir_binary(ir, (trli_op)n->op, arg[0], arg[1]);
    memcpy(other.arg, arg, sizeof other.arg);
    return make(ir, &other);
}

static trli_ir_value combine(trli_ir *ir, trli_ir_value sum, double weight, trli_ir_value term)
{
    if (weight == 1) return sum < 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum, term);
    if (weight == -1 && sum >= 0) return trli_ir_binary(ir, TRLI_OP_SUB, sum, term);
    term = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, fabs(weight)), term);
    if (weight > 0) return sum < 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum, term);
    return sum < 0 ? trli_ir_unary(ir, TRLI_OP_NEG, term) : trli_ir_binary(ir, TRLI_OP_SUB, sum, term);
}

trli_ir_value trli_ir_pass(trli_ir *ir, const trl_pass *pass, trli_ir_value a)
{
    trli_ir_value sum = TRLI_NO_VALUE;
    for (int i = 0; i < pass->npoints; ++i) {
        const trl_stencil_point *p = &pass->point[i];
        trli_ir_value there = a;
        for (int axis = 0; axis < 3; ++axis) there = trli_ir_shift(ir, there, axis, p->offset[axis]);
        sum = combine(ir, sum, p->weight, there);
    }
    return trli_ir_binary(ir, TRLI_OP_MUL, sum, trli_ir_constant(ir, pass->scale));
}

trli_ir_value trli_ir_operator(trli_ir *ir, const trl_operator *op, const trli_ir_value *inputs)
{
    trli_ir_value sum = TRLI_NO_VALUE;
    for (int t = 0; t < op->nterms; ++t) {
        const trl_term *term = &op->term[t];
        trli_ir_value v = inputs[term->input];
        for (int i = 0; i < term->npasses; ++i) v = trli_ir_pass(ir, &term->pass[i], v);
        sum = t == 0 ? v : trli_ir_binary(ir, term->minus ? TRLI_OP_SUB : TRLI_OP_ADD, sum, v);
    }
    return sum;
}

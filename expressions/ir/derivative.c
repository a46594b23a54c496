/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */

#include <trl_functions_body.h>
#include <trl_limiter_body.h>

#include "derivative_impl.h"
#include "memory_impl.h"

void trli_derivative_free(trli_derivative *d)
{
    trli_value_map_free(&d->known);
    trli_free(d->tangent);
    trli_free(d->stack);
    *d = (trli_derivative){0};
}

static trli_ir_value known_tangent(const trli_derivative *d, trli_ir_value v)
{
    const int32_t number = trli_value_map_find(&d->known, v);
    return number >= 0 ? d->tangent[number] : TRLI_TANGENT_UNKNOWN;
}

trl_err trli_derivative_set(trli_derivative *d, trli_ir_value v, trli_ir_value tangent)
{
    int32_t number;
    if (!trli_make_room(d->ir->ctx, &d->tangent, d->known.count, 1, &d->tangents_capacity, sizeof *d->tangent))
        return trli_no_memory(d->ir->ctx, NULL, "for %d derivatives", d->known.count + 1);
    trl_err err = trli_value_map_add(d->ir->ctx, &d->known, v, &number);
    if (err == TRL_OK) d->tangent[number] = tangent;
    return err;
}

trl_err trli_derivative_need(trli_derivative *d, trli_ir_value v, trli_ir_value *tangent)
{
    *tangent = known_tangent(d, v);
    if (*tangent != TRLI_TANGENT_UNKNOWN) return TRL_OK;
    if (!trli_make_room(d->ir->ctx, &d->stack, d->nstack, 1, &d->stack_capacity, sizeof *d->stack))
        return trli_no_memory(d->ir->ctx, NULL, "for %d derivatives", d->nstack + 1);
    d->stack[d->nstack++] = v;
    return TRL_OK;
}

/* ---- arithmetic ---- */

static trli_ir_value number(trli_ir *ir, double x)
{
    return trli_ir_constant(ir, x);
}

static trli_ir_value add(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_ADD, a, b);
}

static trli_ir_value sub(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_SUB, a, b);
}

static trli_ir_value mul(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_MUL, a, b);
}

static trli_ir_value divide(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_DIV, a, b);
}

static trli_ir_value neg(trli_ir *ir, trli_ir_value a)
{
    return trli_ir_unary(ir, TRLI_OP_NEG, a);
}

static trli_ir_value root(trli_ir *ir, trli_ir_value a)
{
    return trli_ir_unary(ir, TRLI_OP_SQRT, a);
}

static trli_ir_value less(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_LT, a, b);
}

/* (1 - a)(1 + a): no cancellation next to 1. */
static trli_ir_value one_minus_square(trli_ir *ir, trli_ir_value a)
{
    return mul(ir, sub(ir, number(ir, 1), a), add(ir, number(ir, 1), a));
}

/* Sums, products and choices of tangents, any of which may be zero. */
static trli_ir_value tangent_sum(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    if (a < 0) return b;
    return b < 0 ? a : add(ir, a, b);
}

static trli_ir_value tangent_difference(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    if (b < 0) return a;
    return a < 0 ? neg(ir, b) : sub(ir, a, b);
}

static trli_ir_value tangent_scaled(trli_ir *ir, trli_ir_value factor, trli_ir_value a)
{
    return a < 0 ? a : mul(ir, factor, a);
}

static trli_ir_value tangent_choice(trli_ir *ir, trli_ir_value c, trli_ir_value a, trli_ir_value b)
{
    if (a < 0 && b < 0) return a;
    return trli_ir_select(ir, c, a < 0 ? number(ir, 0) : a, b < 0 ? number(ir, 0) : b);
}

/* a' times a factor that may be infinite, and 0 where a does not change. So norms, which are roots of sums of squares,
 * have the subgradient 0 where they are 0. */
static trli_ir_value if_changing(trli_ir *ir, trli_ir_value da, trli_ir_value product)
{
    return trli_ir_select(ir, da, product, number(ir, 0));
}

/* ---- elementary functions: the factor of the argument's tangent, from arguments a, b and the result f ---- */

typedef trli_ir_value (*factor_fn)(trli_ir *ir, trli_ir_value a, trli_ir_value b, trli_ir_value f);

#define FACTOR(name, expression)                                                              \
    static trli_ir_value name(trli_ir *ir, trli_ir_value a, trli_ir_value b, trli_ir_value f) \
    {                                                                                         \
        (void)ir, (void)a, (void)b, (void)f;                                                  \
        return expression;                                                                    \
    }
FACTOR(of_sqrt, divide(ir, number(ir, 0.5), f))
FACTOR(of_cbrt, divide(ir, number(ir, 1), mul(ir, number(ir, 3), mul(ir, f, f))))
FACTOR(of_exp, f)
FACTOR(of_expm1, trli_ir_function(ir, TRL_FUNCTION_EXP, a, TRLI_NO_VALUE))
FACTOR(of_log, divide(ir, number(ir, 1), a))
FACTOR(of_log1p, divide(ir, number(ir, 1), add(ir, number(ir, 1), a)))
FACTOR(of_log2, divide(ir, number(ir, 0x1.71547652b82fep+0), a))
FACTOR(of_log10, divide(ir, number(ir, 0x1.bcb7b1526e50ep-2), a))
FACTOR(of_sin, trli_ir_function(ir, TRL_FUNCTION_COS, a, TRLI_NO_VALUE))
FACTOR(of_cos, neg(ir, trli_ir_function(ir, TRL_FUNCTION_SIN, a, TRLI_NO_VALUE)))
FACTOR(of_tan, add(ir, number(ir, 1), mul(ir, f, f)))
FACTOR(of_asin, divide(ir, number(ir, 1), root(ir, one_minus_square(ir, a))))
FACTOR(of_acos, divide(ir, number(ir, -1), root(ir, one_minus_square(ir, a))))
FACTOR(of_atan, divide(ir, number(ir, 1), add(ir, number(ir, 1), mul(ir, a, a))))
FACTOR(of_atan2_y, divide(ir, b, add(ir, mul(ir, a, a), mul(ir, b, b))))
FACTOR(of_atan2_x, neg(ir, divide(ir, a, add(ir, mul(ir, a, a), mul(ir, b, b)))))
FACTOR(of_sinh, trli_ir_function(ir, TRL_FUNCTION_COSH, a, TRLI_NO_VALUE))
FACTOR(of_cosh, trli_ir_function(ir, TRL_FUNCTION_SINH, a, TRLI_NO_VALUE))
FACTOR(of_asinh, divide(ir, number(ir, 1), trli_ir_function(ir, TRL_FUNCTION_HYPOT, a, number(ir, 1))))
FACTOR(of_acosh,
       divide(ir, number(ir, 1), mul(ir, root(ir, sub(ir, a, number(ir, 1))), root(ir, add(ir, a, number(ir, 1))))))
FACTOR(of_atanh, divide(ir, number(ir, 1), one_minus_square(ir, a)))
FACTOR(of_hypot_a, trli_ir_select(ir, f, divide(ir, a, f), number(ir, 0)))
FACTOR(of_hypot_b, trli_ir_select(ir, f, divide(ir, b, f), number(ir, 0)))
FACTOR(of_fmod_a, number(ir, 1))
FACTOR(of_fmod_b, neg(ir, trli_ir_function(ir, TRL_FUNCTION_TRUNC, divide(ir, a, b), TRLI_NO_VALUE)))
FACTOR(of_abs, trli_ir_select(ir, less(ir, a, number(ir, 0)), number(ir, -1), number(ir, 1)))
FACTOR(of_min_a, trli_ir_select(ir, less(ir, b, a), number(ir, 0), number(ir, 1)))
FACTOR(of_min_b, less(ir, b, a))
FACTOR(of_max_a, trli_ir_select(ir, less(ir, a, b), number(ir, 0), number(ir, 1)))
FACTOR(of_max_b, less(ir, a, b))
#undef FACTOR

static trli_ir_value of_tanh(trli_ir *ir, trli_ir_value a, trli_ir_value b, trli_ir_value f)
{
    trli_ir_value c = trli_ir_function(ir, TRL_FUNCTION_COSH, a, TRLI_NO_VALUE);
    (void)b, (void)f;
    return divide(ir, number(ir, 1), mul(ir, c, c));
}

static trli_ir_value of_erf(trli_ir *ir, trli_ir_value a, trli_ir_value b, trli_ir_value f)
{
    const double two_over_sqrt_pi = 0x1.20dd750429b6dp+0;
    (void)b, (void)f;
    return mul(ir, number(ir, two_over_sqrt_pi),
               trli_ir_function(ir, TRL_FUNCTION_EXP, neg(ir, mul(ir, a, a)), TRLI_NO_VALUE));
}

static trli_ir_value of_erfc(trli_ir *ir, trli_ir_value a, trli_ir_value b, trli_ir_value f)
{
    return neg(ir, of_erf(ir, a, b, f));
}

/* Functions that are not here are constant between their steps. */
static const struct {
    factor_fn by_a, by_b;
    bool steep; /* the first is infinite at 0 */
} rules[TRL_FUNCTION_COUNT] = {
    [TRL_FUNCTION_SQRT] = {of_sqrt, NULL, true},
    [TRL_FUNCTION_CBRT] = {of_cbrt, NULL, true},
    [TRL_FUNCTION_EXP] = {of_exp, NULL},
    [TRL_FUNCTION_EXPM1] = {of_expm1, NULL},
    [TRL_FUNCTION_LOG] = {of_log, NULL},
    [TRL_FUNCTION_LOG1P] = {of_log1p, NULL},
    [TRL_FUNCTION_LOG2] = {of_log2, NULL},
    [TRL_FUNCTION_LOG10] = {of_log10, NULL},
    [TRL_FUNCTION_SIN] = {of_sin, NULL},
    [TRL_FUNCTION_COS] = {of_cos, NULL},
    [TRL_FUNCTION_TAN] = {of_tan, NULL},
    [TRL_FUNCTION_ASIN] = {of_asin, NULL},
    [TRL_FUNCTION_ACOS] = {of_acos, NULL},
    [TRL_FUNCTION_ATAN] = {of_atan, NULL},
    [TRL_FUNCTION_ATAN2] = {of_atan2_y, of_atan2_x},
    [TRL_FUNCTION_SINH] = {of_sinh, NULL},
    [TRL_FUNCTION_COSH] = {of_cosh, NULL},
    [TRL_FUNCTION_TANH] = {of_tanh, NULL},
    [TRL_FUNCTION_ASINH] = {of_asinh, NULL},
    [TRL_FUNCTION_ACOSH] = {of_acosh, NULL},
    [TRL_FUNCTION_ATANH] = {of_atanh, NULL},
    [TRL_FUNCTION_ERF] = {of_erf, NULL},
    [TRL_FUNCTION_ERFC] = {of_erfc, NULL},
    [TRL_FUNCTION_HYPOT] = {of_hypot_a, of_hypot_b},
    [TRL_FUNCTION_FMOD] = {of_fmod_a, of_fmod_b},
    [TRL_FUNCTION_ABS] = {of_abs, NULL},
    [TRL_FUNCTION_MIN] = {of_min_a, of_min_b},
    [TRL_FUNCTION_MAX] = {of_max_a, of_max_b},
};

static trli_ir_value function_tangent(trli_ir *ir, trli_ir_value v, const trli_ir_value t[3])
{
    const trli_node n = ir->node[v];
    const factor_fn by_a = rules[n.index].by_a, by_b = rules[n.index].by_b;
    if (!by_a) return TRLI_NO_VALUE;
    trli_ir_value da = t[0] < 0 ? t[0] : mul(ir, by_a(ir, n.arg[0], n.arg[1], v), t[0]);
    if (da >= 0 && rules[n.index].steep) da = if_changing(ir, t[0], da);
    if (!by_b || t[1] < 0) return da;
    return tangent_sum(ir, da, mul(ir, by_b(ir, n.arg[0], n.arg[1], v), t[1]));
}

/* a^b: b a^(b-1) da + a^b log(a) db. Where a^b = 0 the second term is its limit, 0. */
static trli_ir_value power_tangent(trli_ir *ir, trli_ir_value v, const trli_ir_value t[3])
{
    const trli_node n = ir->node[v];
    trli_ir_value a = n.arg[0], b = n.arg[1], da = t[0], db = t[1];
    if (da >= 0) {
        const trli_ir_value product = mul(ir, mul(ir, b, trli_ir_power(ir, a, sub(ir, b, number(ir, 1)))), da);
        da = ir->node[b].op == TRLI_OP_CONSTANT && ir->node[b].number >= 1 ? product : if_changing(ir, da, product);
    }
    if (db < 0) return da;
    trli_ir_value zero = trli_ir_binary(ir, TRLI_OP_EQ, v, number(ir, 0));
    trli_ir_value factor =
        trli_ir_select(ir, zero, number(ir, 0), mul(ir, v, trli_ir_function(ir, TRL_FUNCTION_LOG, a, TRLI_NO_VALUE)));
    return tangent_sum(ir, da, mul(ir, factor, db));
}

static trli_ir_value quotient_tangent(trli_ir *ir, trli_ir_value v, const trli_ir_value t[3])
{
    trli_ir_value divisor = ir->node[v].arg[1], change = tangent_difference(ir, t[0], tangent_scaled(ir, v, t[1]));
    return change < 0 ? change : divide(ir, change, divisor);
}

/* ---- limiters: written out in operations that have rules ---- */

static trli_ir_value smaller(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_MIN, a, b);
}

static trli_ir_value times(trli_ir *ir, double factor, trli_ir_value a)
{
    return mul(ir, number(ir, factor), a);
}

/* p/(p + q), and 0 where both are zero. */
static trli_ir_value share(trli_ir *ir, trli_ir_value p, trli_ir_value q)
{
    trli_ir_value whole = add(ir, p, q), none = trli_ir_binary(ir, TRLI_OP_EQ, whole, number(ir, 0));
    return divide(ir, p, trli_ir_select(ir, none, number(ir, 1), whole));
}

/* trl_limiter_slope_* of trl_limiter_body.h. */
static trli_ir_value limiter_slope(trli_ir *ir, int limiter, trli_ir_value p, trli_ir_value q)
{
    trli_ir_value both = smaller(ir, times(ir, 2, p), times(ir, 2, q)), c, d;
    switch (limiter) {
    case TRL_LIMITER_MINMOD:
        return smaller(ir, p, q);
    case TRL_LIMITER_VANLEER:
        return times(ir, 2, mul(ir, p, share(ir, q, p)));
    case TRL_LIMITER_SUPERBEE:
        return trli_ir_binary(ir, TRLI_OP_MAX, smaller(ir, times(ir, 2, p), q), smaller(ir, p, times(ir, 2, q)));
    case TRL_LIMITER_MC:
        return smaller(ir, both, times(ir, 0.5, add(ir, p, q)));
    case TRL_LIMITER_KOREN:
        return smaller(ir, both, divide(ir, add(ir, times(ir, 2, q), p), number(ir, 3)));
    case TRL_LIMITER_CHARM:
        c = share(ir, p, q), d = share(ir, q, p);
        return mul(ir, mul(ir, p, d), add(ir, times(ir, 3, d), c));
    case TRL_LIMITER_OSPRE:
        c = share(ir, p, q), d = share(ir, q, p);
        return divide(ir, times(ir, 1.5, mul(ir, p, d)), sub(ir, number(ir, 1), mul(ir, c, d)));
    default: /* SMART */
        return smaller(ir, smaller(ir, times(ir, 4, p), times(ir, 2, q)), times(ir, 0.25, add(ir, times(ir, 3, q), p)));
    }
}

static trli_ir_value limiter_written_out(trli_ir *ir, trli_ir_value v)
{
    const trli_node n = ir->node[v];
    trli_ir_value zero = number(ir, 0), up = sub(ir, n.arg[1], n.arg[0]), down = sub(ir, n.arg[2], n.arg[1]);
    trli_ir_value falls = less(ir, down, zero), rises = less(ir, zero, down);
    if (n.index == TRL_LIMITER_UPWIND) return n.arg[1];
    trli_ir_value along = trli_ir_select(ir, falls, neg(ir, up), trli_ir_select(ir, rises, up, zero));
    trli_ir_value p = trli_ir_select(ir, less(ir, zero, along), along, zero);
    trli_ir_value half = times(ir, 0.5, limiter_slope(ir, n.index, p, trli_ir_unary(ir, TRLI_OP_ABS, down)));
    return trli_ir_select(ir, falls, sub(ir, n.arg[1], half), add(ir, n.arg[1], half));
}

/* ---- nodes ---- */

trli_ir_value trli_node_tangent(trli_ir *ir, trli_ir_value v, const trli_ir_value t[3])
{
    const trli_node n = ir->node[v];
    trli_ir_value s = t[0];
    switch ((trli_op)n.op) {
    case TRLI_OP_SHIFT:
        for (int a = 0; a < 3 && s >= 0; ++a) s = trli_ir_shift(ir, s, a, n.shift[a]);
        return s;
    case TRLI_OP_NEG:
        return s < 0 ? s : neg(ir, s);
    case TRLI_OP_ABS:
        return s < 0 ? s : trli_ir_select(ir, less(ir, n.arg[0], number(ir, 0)), neg(ir, s), s);
    case TRLI_OP_SQRT:
        return s < 0 ? s : if_changing(ir, s, divide(ir, times(ir, 0.5, s), v));
    case TRLI_OP_ADD:
        return tangent_sum(ir, t[0], t[1]);
    case TRLI_OP_SUB:
        return tangent_difference(ir, t[0], t[1]);
    case TRLI_OP_MUL:
        return tangent_sum(ir, tangent_scaled(ir, n.arg[1], t[0]), tangent_scaled(ir, n.arg[0], t[1]));
    case TRLI_OP_DIV:
        return quotient_tangent(ir, v, t);
    case TRLI_OP_MIN:
        return tangent_choice(ir, less(ir, n.arg[1], n.arg[0]), t[1], t[0]);
    case TRLI_OP_MAX:
        return tangent_choice(ir, less(ir, n.arg[0], n.arg[1]), t[1], t[0]);
    case TRLI_OP_POW:
        return power_tangent(ir, v, t);
    case TRLI_OP_FUNCTION1:
    case TRLI_OP_FUNCTION2:
        return function_tangent(ir, v, t);
    case TRLI_OP_SELECT:
        return tangent_choice(ir, n.arg[0], t[1], t[2]);
    default: /* constants, coordinates, random numbers; logic and comparisons: constant between their steps */
        return TRLI_NO_VALUE;
    }
}

unsigned trli_operands_that_count(const trli_node *n)
{
    switch ((trli_op)n->op) {
    case TRLI_OP_NOT:
    case TRLI_OP_LT:
    case TRLI_OP_LE:
    case TRLI_OP_EQ:
    case TRLI_OP_NE:
    case TRLI_OP_AND:
    case TRLI_OP_OR:
    case TRLI_OP_NORMAL:
        return 0;
    case TRLI_OP_SELECT:
        return 6;
    default:
        return (1u << trli_op_operands((trli_op)n->op)) - 1;
    }
}

/* Find the tangent of the value on top of the stack, or put what it needs there. */
static trl_err advance(trli_derivative *d)
{
    trli_ir *ir = d->ir;
    trli_ir_value v = d->stack[d->nstack - 1], t[3] = {TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE};
    const trli_node n = ir->node[v];
    trl_err err = TRL_OK;
    bool ready = true;
    if (n.op == TRLI_OP_FIELD || n.op == TRLI_OP_SCALAR)
        return d->leaf ? d->leaf(d, v) : trli_derivative_set(d, v, TRLI_NO_VALUE);
    if (n.op == TRLI_OP_LIMIT) {
        TRL_TRY(trli_derivative_need(d, limiter_written_out(ir, v), &t[0]));
        return t[0] == TRLI_TANGENT_UNKNOWN ? ir->err : trli_derivative_set(d, v, t[0]);
    }
    unsigned operands = trli_operands_that_count(&n);
    for (int i = 0; i < 3; ++i) {
        if (!(operands >> i & 1)) continue;
        TRL_TRY(trli_derivative_need(d, n.arg[i], &t[i]));
        ready &= t[i] != TRLI_TANGENT_UNKNOWN;
    }
    if (ready) TRL_TRY(trli_derivative_set(d, v, trli_node_tangent(ir, v, t)));
    err = ir->err;
done:
    return err;
}

trl_err trli_derivative_of(trli_derivative *d, trli_ir_value v, trli_ir_value *tangent)
{
    int32_t bottom = d->nstack;
    trl_err err;
    *tangent = TRLI_NO_VALUE;
    TRL_TRY(trli_derivative_need(d, v, tangent));
    while (d->nstack > bottom) {
        if (known_tangent(d, d->stack[d->nstack - 1]) != TRLI_TANGENT_UNKNOWN)
            --d->nstack;
        else
            TRL_TRY(advance(d));
    }
    *tangent = known_tangent(d, v);
done:
    d->nstack = bottom;
    return err;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdbool.h>

#include <trl_formula.h>
#include <trl_functions_body.h>
#include <trl_limiter_body.h>

#include "ir_operators_impl.h"

#define LEAF(name, operands, word, flops) [TRLI_OP_##name] = {TRLI_OP_IS_LEAF, word, flops, NULL, NULL},
#define SAME(name, operands, word, flops, result) [TRLI_OP_##name] = {TRLI_OP_IS_SAME, word, flops, #result, #result},
#define TEST(name, operands, word, flops, condition) \
    [TRLI_OP_##name] = {TRLI_OP_IS_TEST, word, flops, #condition " ? 1.0 : 0.0", #condition},
#define CASE(name, operands, word, flops, result, of_vectors) \
    [TRLI_OP_##name] = {TRLI_OP_IS_CASE, word, flops, #result, #of_vectors},
#define CALL(name, operands, word, flops, result) [TRLI_OP_##name] = {TRLI_OP_IS_CALL, word, flops, #result, NULL},
#define INDEXED(name, operands, word, flops) [TRLI_OP_##name] = {TRLI_OP_IS_INDEXED, word, flops, NULL, NULL},
static const trli_op_info ops[TRLI_OP_COUNT] = {TRLI_OP_LIST(LEAF, SAME, TEST, CASE, CALL, INDEXED)};
#undef LEAF
#undef SAME
#undef TEST
#undef CASE
#undef CALL
#undef INDEXED

const trli_op_info *trli_op_find(trli_op op)
{
    return &ops[op];
}

const char *trli_op_name(trli_op op)
{
    return ops[op].word;
}

bool trli_op_calls(trli_op op)
{
    return ops[op].kind == TRLI_OP_IS_CALL || ops[op].kind == TRLI_OP_IS_INDEXED;
}

const char *trli_limiter_name(int limiter)
{
#define LIMITER(NAME, name, psi) [TRL_LIMITER_##NAME] = #name,
    static const char *const names[TRL_LIMITER_COUNT] = {TRL_LIMITER_LIST(LIMITER)};
#undef LIMITER
    return limiter >= 0 && limiter < TRL_LIMITER_COUNT ? names[limiter] : NULL;
}

static double limit(int limiter, double x, double y, double z)
{
    switch (limiter) {
#define LIMITER(NAME, name, psi) \
    case TRL_LIMITER_##NAME:     \
        return trl_limiter_face_##name(x, y, z);
        TRL_LIMITER_LIST(LIMITER)
#undef LIMITER
    default:
        return 0;
    }
}

double trli_op_evaluate(trli_op op, int index, const double operand[3])
{
    const double x = operand[0], y = operand[1], z = operand[2];
    int count;
    switch (op) {
#define NOTHING(name, ...)
#define RESULT(name, operands, word, flops, result) \
    case TRLI_OP_##name:                            \
        return result;
#define CASE(name, operands, word, flops, result, of_vectors) RESULT(name, operands, word, flops, result)
#define TEST(name, operands, word, flops, condition) \
    case TRLI_OP_##name:                             \
        return condition ? 1.0 : 0.0;
        TRLI_OP_LIST(NOTHING, RESULT, TEST, CASE, RESULT, NOTHING)
#undef NOTHING
#undef RESULT
#undef CASE
#undef TEST
    case TRLI_OP_FUNCTION1:
        return trl_functions(&count)[index].unary(x);
    case TRLI_OP_FUNCTION2:
        return trl_functions(&count)[index].binary(x, y);
    case TRLI_OP_LIMIT:
        return limit(index, x, y, z);
    default:
        return x;
    }
}

/* ---- costs ---- */

/* As many flops as take the time of the function, if TRLI_EXP_FLOPS take that of exp, by `trellis bench functions` on
 * one machine. The functions that are not here are one operation each. */
static const unsigned char function_flops[TRL_FUNCTION_COUNT] = {
    [TRL_FUNCTION_EXP] = TRLI_EXP_FLOPS,
    [TRL_FUNCTION_EXPM1] = 42,
    [TRL_FUNCTION_LOG] = 38,
    [TRL_FUNCTION_LOG1P] = 47,
    [TRL_FUNCTION_LOG2] = 52,
    [TRL_FUNCTION_LOG10] = 53,
    [TRL_FUNCTION_CBRT] = 60,
    [TRL_FUNCTION_SIN] = 55,
    [TRL_FUNCTION_COS] = 55,
    [TRL_FUNCTION_TAN] = 75,
    [TRL_FUNCTION_ASIN] = 31,
    [TRL_FUNCTION_ACOS] = 33,
    [TRL_FUNCTION_ATAN] = 59,
    [TRL_FUNCTION_ATAN2] = 81,
    [TRL_FUNCTION_SINH] = 31,
    [TRL_FUNCTION_COSH] = 30,
    [TRL_FUNCTION_TANH] = 64,
    [TRL_FUNCTION_ASINH] = 79,
    [TRL_FUNCTION_ACOSH] = 61,
    [TRL_FUNCTION_ATANH] = 57,
    [TRL_FUNCTION_ERF] = 95,
    [TRL_FUNCTION_ERFC] = 97,
    [TRL_FUNCTION_HYPOT] = 21,
    [TRL_FUNCTION_FMOD] = 30,
    [TRL_FUNCTION_FLOOR] = 6,
    [TRL_FUNCTION_CEIL] = 6,
    [TRL_FUNCTION_ROUND] = 9,
    [TRL_FUNCTION_TRUNC] = 7,
};

enum { SCALED_ABOVE = 10 }; /* flops; less is a few operations, which take their time on every machine */

double trli_op_flops(trli_op op, int index)
{
    const bool function = op == TRLI_OP_FUNCTION1 || op == TRLI_OP_FUNCTION2;
    return function && function_flops[index] > 0 ? function_flops[index] : ops[op].flops;
}

double trli_op_additions(trli_op op, int index, double division, double exponential)
{
    const double flops = trli_op_flops(op, index);
    if (op == TRLI_OP_DIV || op == TRLI_OP_SQRT) return division;
    return flops <= SCALED_ABOVE ? flops : flops * exponential / TRLI_EXP_FLOPS;
}

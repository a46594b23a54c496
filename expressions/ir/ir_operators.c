/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdbool.h>

#include <trl_formula.h>
#include <trl_functions_body.h>
#include <trl_limiter_body.h>

#include "ir_operators_impl.h"

#define LEAF(name, operands, word, flops) [TRLI_OP_##name] = {TRLI_OP_IS_LEAF, operands, word, flops, NULL, NULL},
#define SAME(name, operands, word, flops, result) \
    [TRLI_OP_##name] = {TRLI_OP_IS_SAME, operands, word, flops, #result, #result},
#define TEST(name, operands, word, flops, condition) \
    [TRLI_OP_##name] = {TRLI_OP_IS_TEST, operands, word, flops, #condition " ? 1.0 : 0.0", #condition},
#define CASE(name, operands, word, flops, result, of_vectors) \
    [TRLI_OP_##name] = {TRLI_OP_IS_CASE, operands, word, flops, #result, #of_vectors},
#define CALL(name, operands, word, flops, result) \
    [TRLI_OP_##name] = {TRLI_OP_IS_CALL, operands, word, flops, #result, NULL},
#define INDEXED(name, operands, word, flops) [TRLI_OP_##name] = {TRLI_OP_IS_INDEXED, operands, word, flops, NULL, NULL},
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

int trli_op_operands(trli_op op)
{
    return ops[op].operands;
}

bool trli_op_calls(trli_op op)
{
    return ops[op].kind == TRLI_OP_IS_CALL || ops[op].kind == TRLI_OP_IS_INDEXED;
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
#define ROW(name, doc) ROW_##name,
enum { TRL_FUNCTION_LIST(ROW, ROW, ROW, ROW) FUNCTIONS };
#undef ROW
static const unsigned char function_flops[FUNCTIONS] = {
    [ROW_exp] = TRLI_EXP_FLOPS,
    [ROW_expm1] = 42,
    [ROW_log] = 38,
    [ROW_log1p] = 47,
    [ROW_log2] = 52,
    [ROW_log10] = 53,
    [ROW_cbrt] = 60,
    [ROW_sin] = 55,
    [ROW_cos] = 55,
    [ROW_tan] = 75,
    [ROW_asin] = 31,
    [ROW_acos] = 33,
    [ROW_atan] = 59,
    [ROW_atan2] = 81,
    [ROW_sinh] = 31,
    [ROW_cosh] = 30,
    [ROW_tanh] = 64,
    [ROW_asinh] = 79,
    [ROW_acosh] = 61,
    [ROW_atanh] = 57,
    [ROW_erf] = 95,
    [ROW_erfc] = 97,
    [ROW_hypot] = 21,
    [ROW_fmod] = 30,
    [ROW_floor] = 6,
    [ROW_ceil] = 6,
    [ROW_round] = 9,
    [ROW_trunc] = 7,
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

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The operators of the IR, and what each of them means: the interpreter's loops, constant folding, and the text for C,
 * for vectors and for CUDA all come from one list. */
#ifndef TRLI_IR_OPERATORS_IMPL_H
#define TRLI_IR_OPERATORS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

/* The expressions are of the operands x, y and z; word: in messages and listings; flops: of one result (trli_op_flops).
 *   LEAF(name, operands, word, flops)
 *     computes nothing from values.
 *   SAME(name, operands, word, flops, result)
 *     result is an expression of numbers, and the same one of vectors, by element.
 *   TEST(name, operands, word, flops, condition)
 *     1 where the condition holds, else 0; of vectors the condition gives a mask.
 *   CASE(name, operands, word, flops, result, of_vectors)
 *     of_vectors: functions of trl_kernel_body.h that do the same without && || ?: and unions, which
 *     are for numbers only.
 *   CALL(name, operands, word, flops, result)
 *     one function, which loops over the elements of vectors.
 *   INDEXED(name, operands, word, flops)
 *     one of TRL_FUNCTION_LIST or TRL_LIMITER_LIST, which say what it means.
 * clang-format would take a product for a pointer. */
/* clang-format off */
#define TRLI_OP_LIST(LEAF, SAME, TEST, CASE, CALL, INDEXED)                   \
    LEAF(CONSTANT, 0, "constant", 0)                                          \
    LEAF(SCALAR, 0, "scalar", 0)                                              \
    LEAF(COORDINATE, 0, "coord", 8)                                           \
    LEAF(RANDOM, 0, "random", 30)                                             \
    LEAF(AT_SIDE, 0, "at_side", 8)                                            \
    LEAF(POINT, 0, "point", 8)                                                \
    LEAF(SHARE, 0, "share", 12)                                               \
    LEAF(FIELD, 0, "field", 0)                                                \
    LEAF(SHIFT, 1, "shift", 0)                                                \
    SAME(NEG, 1, "-", 1, -x)                                                  \
    CASE(NOT, 1, "not", 1, x == 0 ? 1.0 : 0.0, trl_lanes_not(x))              \
    CASE(ABS, 1, "abs", 1, trl_fn_abs(x), trl_lanes_abs(x))                   \
    CASE(SQRT, 1, "sqrt", 1, trl_fn_sqrt(x), trl_lanes_sqrt(x))               \
    INDEXED(FUNCTION1, 1, "f1", 1)                                            \
    SAME(ADD, 2, "+", 1, x + y)                                               \
    SAME(SUB, 2, "-", 1, x - y)                                               \
    SAME(MUL, 2, "*", 1, x * y)                                               \
    SAME(DIV, 2, "/", 1, x / y)                                               \
    CASE(MIN, 2, "min", 1, trl_fn_min(x, y), trl_lanes_min(x, y))             \
    CASE(MAX, 2, "max", 1, trl_fn_max(x, y), trl_lanes_max(x, y))             \
    TEST(LT, 2, "<", 1, x < y)                                                \
    TEST(LE, 2, "<=", 1, x <= y)                                              \
    TEST(EQ, 2, "==", 1, x == y)                                              \
    TEST(NE, 2, "!=", 1, x != y)                                              \
    CASE(AND, 2, "and", 1, x != 0 && y != 0 ? 1.0 : 0.0, trl_lanes_and(x, y)) \
    CASE(OR, 2, "or", 1, x != 0 || y != 0 ? 1.0 : 0.0, trl_lanes_or(x, y))    \
    CALL(POW, 2, "^", 160, trl_fn_pow(x, y))                                  \
    INDEXED(FUNCTION2, 2, "f2", 1)                                            \
    CASE(SELECT, 3, "if", 1, x != 0 ? y : z, trl_lanes_select(x, y, z))       \
    INDEXED(LIMIT, 3, "limit", 10)                                            \
    CALL(NORMAL, 3, "normal", 140, trl_fn_normal(x, y, z))
/* clang-format on */

typedef enum trli_op {
#define TRLI_OP_ENUM(name, ...) TRLI_OP_##name,
    TRLI_OP_LIST(TRLI_OP_ENUM, TRLI_OP_ENUM, TRLI_OP_ENUM, TRLI_OP_ENUM, TRLI_OP_ENUM, TRLI_OP_ENUM)
#undef TRLI_OP_ENUM
        TRLI_OP_COUNT
} trli_op;

typedef enum trli_op_kind {
    TRLI_OP_IS_LEAF,
    TRLI_OP_IS_SAME,
    TRLI_OP_IS_TEST,
    TRLI_OP_IS_CASE,
    TRLI_OP_IS_CALL,
    TRLI_OP_IS_INDEXED
} trli_op_kind;

typedef struct trli_op_info {
    trli_op_kind kind;
    const char *word;
    double flops;
    const char *result;     /* of numbers, in C and CUDA; NULL: LEAF, INDEXED */
    const char *of_vectors; /* in C; TEST: the mask. NULL: LEAF, CALL, INDEXED */
} trli_op_info;

const trli_op_info *trli_op_find(trli_op op);
const char *trli_op_name(trli_op op);
static inline int trli_op_operands(trli_op op)
{
#define TRLI_OP_OPERANDS(name, operands, ...) [TRLI_OP_##name] = operands,
    static const uint8_t operands[TRLI_OP_COUNT] = {TRLI_OP_LIST(TRLI_OP_OPERANDS, TRLI_OP_OPERANDS, TRLI_OP_OPERANDS,
                                                                 TRLI_OP_OPERANDS, TRLI_OP_OPERANDS, TRLI_OP_OPERANDS)};
#undef TRLI_OP_OPERANDS
    return operands[op];
}
/* Whether the operation is a call of a function of trl_functions_body.h or trl_limiter_body.h. */
bool trli_op_calls(trli_op op);
/* The word of a trl_limiter in formulas; NULL past the end of the table. */
const char *trli_limiter_name(int limiter);
/* The result from numbers. index: the function or limiter. Not for leaves, but for SHIFT, which is its operand. */
double trli_op_evaluate(trli_op op, int index, const double operand[3]);

/* The flops of exp. */
enum { TRLI_EXP_FLOPS = 24 };
/* What one result costs in flops: + - * / sqrt, comparisons and choices 1 each; functions as many as take
 * the time of the function. */
double trli_op_flops(trli_op op, int index);
/* The time of one result in additions; division, exponential: additions that take as long as a division or square root,
 * and as an exp. */
double trli_op_additions(trli_op op, int index, double division, double exponential);

#endif

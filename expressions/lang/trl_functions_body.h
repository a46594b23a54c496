/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The elementary functions of formulas, for C and CUDA compilers alike: trl_fn_NAME for each of the lists below, with
 * the special values of C17's Annex F. IEEE + - * /, square root and fused multiply-add (a call of the library where a
 * processor has none), comparisons and operations on bits only: with contraction off (-ffp-contract=off, -fmad=false)
 * every compiler and machine gives the same bits, except for the sign and payload of a NaN. docs/formulas.md lists the
 * greatest errors measured by tests/expressions/test_functions.c.
 *
 * All are free of branches and tables, so that loops over them become vectors (gcc needs -fno-math-errno and
 * -fno-trapping-math for that), but four, whose trl_fn_NAME has one branch. A loop over many values asks
 * trl_fn_NAME_is_near of all of them first, and takes trl_fn_NAME_near if they are: the same bits without the branch.
 *
 * Polynomials are minimax approximations by Remez' exchange algorithm in 60 digits; coefficients were rounded to double
 * one after the other, the rest being fitted again, or all at once where that is no worse. "n coefficients, 2^-b of f"
 * means: rounded coefficients, error in exact arithmetic below 2^-b relative to f. tests/expressions/fit_functions.py
 * finds them. */
#ifndef TRL_FUNCTIONS_BODY_H
#define TRL_FUNCTIONS_BODY_H

/* Qualifiers of every function here; CUDA code defines it as `static __device__ __forceinline__` before it includes
 * this file. */
#ifndef TRL_BODY
#define TRL_BODY static inline __attribute__((always_inline)) /* or loops over long ones would not become vectors */
#endif

/* ONE(NAME, name, doc) for functions of one number, TWO(NAME, name, doc) of two; NEAR1 and NEAR2 for those of them that
 * have a branch. */
#define TRL_FUNCTION_LIST(ONE, TWO, NEAR1, NEAR2)                             \
    ONE(SQRT, sqrt, "square root")                                            \
    ONE(CBRT, cbrt, "cube root")                                              \
    ONE(EXP, exp, "e^a")                                                      \
    ONE(EXPM1, expm1, "e^a - 1, accurate near 0")                             \
    ONE(LOG, log, "natural logarithm")                                        \
    ONE(LOG1P, log1p, "log(1 + a), accurate near 0")                          \
    ONE(LOG2, log2, "logarithm to base 2")                                    \
    ONE(LOG10, log10, "logarithm to base 10")                                 \
    NEAR1(SIN, sin, "sine of an angle in radians")                            \
    NEAR1(COS, cos, "cosine of an angle in radians")                          \
    NEAR1(TAN, tan, "tangent of an angle in radians")                         \
    ONE(ASIN, asin, "arc sine, in [-pi/2, pi/2]")                             \
    ONE(ACOS, acos, "arc cosine, in [0, pi]")                                 \
    ONE(ATAN, atan, "arc tangent, in [-pi/2, pi/2]")                          \
    TWO(ATAN2, atan2, "angle of the point (b, a), in [-pi, pi]: atan2(y, x)") \
    ONE(SINH, sinh, "hyperbolic sine")                                        \
    ONE(COSH, cosh, "hyperbolic cosine")                                      \
    ONE(TANH, tanh, "hyperbolic tangent")                                     \
    ONE(ASINH, asinh, "inverse hyperbolic sine")                              \
    ONE(ACOSH, acosh, "inverse hyperbolic cosine")                            \
    ONE(ATANH, atanh, "inverse hyperbolic tangent")                           \
    ONE(ERF, erf, "error function")                                           \
    ONE(ERFC, erfc, "1 - erf(a), accurate for large a")                       \
    TWO(HYPOT, hypot, "sqrt(a^2 + b^2) without overflow")                     \
    NEAR2(FMOD, fmod, "remainder of a/b, with the sign of a")                 \
    ONE(FLOOR, floor, "largest whole number not above a")                     \
    ONE(CEIL, ceil, "smallest whole number not below a")                      \
    ONE(ROUND, round, "nearest whole number, halves away from 0")             \
    ONE(TRUNC, trunc, "whole part, towards 0")                                \
    ONE(ABS, abs, "absolute value")                                           \
    ONE(SIGN, sign, "1, 0 or -1: the sign of a")                              \
    TWO(MIN, min, "smaller of two or more values; NaN if one is NaN")         \
    TWO(MAX, max, "larger of two or more values; NaN if one is NaN")          \
    ONE(STEP, step, "1 for a >= 0, else 0")

#define TRL_FUNCTION_ENUM(NAME, name, doc) TRL_FUNCTION_##NAME,
typedef enum trl_function_id {
    TRL_FUNCTION_LIST(TRL_FUNCTION_ENUM, TRL_FUNCTION_ENUM, TRL_FUNCTION_ENUM, TRL_FUNCTION_ENUM) TRL_FUNCTION_COUNT
} trl_function_id;
#undef TRL_FUNCTION_ENUM

#include "trl_functions_base_body.h"

#include "trl_functions_exp_body.h"

#include "trl_functions_angle_body.h"

#include "trl_functions_noise_body.h"

#endif

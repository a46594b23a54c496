/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include "formula_impl.h"

/* NaN stays NaN in all of these: a solution that breaks must not be hidden by a clip. */

static double sign(double a)
{
    return a > 0 ? 1 : a < 0 ? -1 : a;
}

static double minimum(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

static double maximum(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static double step(double a)
{
    return a >= 0 ? 1 : a < 0 ? 0 : a;
}

static const trl_function functions[] = {
    {"sqrt", 1, sqrt, NULL, "square root"},
    {"cbrt", 1, cbrt, NULL, "cube root"},
    {"exp", 1, exp, NULL, "e^a"},
    {"expm1", 1, expm1, NULL, "e^a - 1, accurate near 0"},
    {"log", 1, log, NULL, "natural logarithm"},
    {"log1p", 1, log1p, NULL, "log(1 + a), accurate near 0"},
    {"log2", 1, log2, NULL, "logarithm to base 2"},
    {"log10", 1, log10, NULL, "logarithm to base 10"},
    {"sin", 1, sin, NULL, "sine of an angle in radians"},
    {"cos", 1, cos, NULL, "cosine of an angle in radians"},
    {"tan", 1, tan, NULL, "tangent of an angle in radians"},
    {"asin", 1, asin, NULL, "arc sine, in [-pi/2, pi/2]"},
    {"acos", 1, acos, NULL, "arc cosine, in [0, pi]"},
    {"atan", 1, atan, NULL, "arc tangent, in [-pi/2, pi/2]"},
    {"atan2", 2, NULL, atan2, "angle of the point (b, a), in [-pi, pi]: atan2(y, x)"},
    {"sinh", 1, sinh, NULL, "hyperbolic sine"},
    {"cosh", 1, cosh, NULL, "hyperbolic cosine"},
    {"tanh", 1, tanh, NULL, "hyperbolic tangent"},
    {"asinh", 1, asinh, NULL, "inverse hyperbolic sine"},
    {"acosh", 1, acosh, NULL, "inverse hyperbolic cosine"},
    {"atanh", 1, atanh, NULL, "inverse hyperbolic tangent"},
    {"erf", 1, erf, NULL, "error function"},
    {"erfc", 1, erfc, NULL, "1 - erf(a), accurate for large a"},
    {"hypot", 2, NULL, hypot, "sqrt(a^2 + b^2) without overflow"},
    {"fmod", 2, NULL, fmod, "remainder of a/b, with the sign of a"},
    {"floor", 1, floor, NULL, "largest whole number not above a"},
    {"ceil", 1, ceil, NULL, "smallest whole number not below a"},
    {"round", 1, round, NULL, "nearest whole number, halves away from 0"},
    {"trunc", 1, trunc, NULL, "whole part, towards 0"},
    {"abs", 1, fabs, NULL, "absolute value"},
    {"sign", 1, sign, NULL, "1, 0 or -1: the sign of a"},
    {"min", 2, NULL, minimum, "smaller of two or more values; NaN if one is NaN"},
    {"max", 2, NULL, maximum, "larger of two or more values; NaN if one is NaN"},
    {"step", 1, step, NULL, "1 for a >= 0, else 0"},
};

enum { NFUNCTIONS = sizeof functions / sizeof functions[0] };

const trl_function *trl_function_find(const char *name)
{
    for (int i = 0; i < NFUNCTIONS; ++i) {
        if (strcmp(functions[i].name, name) == 0) return &functions[i];
    }
    return NULL;
}

const trl_function *trl_functions(int *count)
{
    *count = NFUNCTIONS;
    return functions;
}

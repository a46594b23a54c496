/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The functions and the operators of the formula language. */
#include <string.h>

#include <trl_formula_operators.h>
#include <trl_functions_body.h>

#include "formula_impl.h"

#define CALL_ONE(NAME, name, doc)       \
    static double call_##name(double x) \
    {                                   \
        return trl_fn_##name(x);        \
    }
#define CALL_TWO(NAME, name, doc)                 \
    static double call_##name(double x, double y) \
    {                                             \
        return trl_fn_##name(x, y);               \
    }
TRL_FUNCTION_LIST(CALL_ONE, CALL_TWO, CALL_ONE, CALL_TWO)

#define ROW_ONE(NAME, name, doc) {TRL_FUNCTION_##NAME, #name, 1, false, call_##name, NULL, doc},
#define ROW_TWO(NAME, name, doc)                                                         \
    {TRL_FUNCTION_##NAME,                                                                \
     #name,                                                                              \
     2,                                                                                  \
     TRL_FUNCTION_##NAME == TRL_FUNCTION_MIN || TRL_FUNCTION_##NAME == TRL_FUNCTION_MAX, \
     NULL,                                                                               \
     call_##name,                                                                        \
     doc},
static const trl_function functions[TRL_FUNCTION_COUNT] = {TRL_FUNCTION_LIST(ROW_ONE, ROW_TWO, ROW_ONE, ROW_TWO)};

const trl_function *trl_function_find(const char *name)
{
    for (int i = 0; i < TRL_FUNCTION_COUNT; ++i) {
        if (strcmp(functions[i].name, name) == 0) return &functions[i];
    }
    return NULL;
}

const trl_function *trl_functions(int *count)
{
    *count = TRL_FUNCTION_COUNT;
    return functions;
}

#define OPERATOR_ROW(NAME, name, least, most, family, kind, axis, signature, doc) \
    {TRL_FORMULA_##NAME, #name, least, most, kind, axis, signature, doc},
static const trl_formula_operator operators[] = {TRL_FORMULA_OPERATOR_LIST(OPERATOR_ROW)};
#undef OPERATOR_ROW

const trl_formula_operator *trl_formula_operator_at(int i)
{
    return i >= 0 && i < TRL_FORMULA_OPERATORS ? &operators[i] : NULL;
}

const trl_formula_operator *trl_formula_operator_find(const char *name)
{
    for (int i = 0; i < TRL_FORMULA_OPERATORS; ++i)
        if (strcmp(operators[i].name, name) == 0) return &operators[i];
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Vector loops of the interpreter for the functions of formulas. */
#include <trl_functions_body.h>

#include "rows_impl.h"

#define ROWS_ONE(NAME, name, doc) ROW1(name, trl_fn_##name(x))
#define ROWS_TWO(NAME, name, doc) ROW2(name, trl_fn_##name(x, y))

/* Whether a condition holds for all points of a block. */
#define EVERY(name, X, Y, condition)                                 \
    TRLI_CLONES static bool name(const trli_row_block *block)        \
    {                                                                \
        int64_t other = 0; /* as wide as a value: becomes vectors */ \
        for (ptrdiff_t row = 0; row < block->rows; ++row) {          \
            const double *a = TRLI_ROW_OF(0);                        \
            const double *b = TRLI_ROW_OF(1);                        \
            const double x0 = *a, y0 = *b;                           \
            (void)x0, (void)y0;                                      \
            for (ptrdiff_t i = 0; i < block->n; ++i) {               \
                const double x = X, y = Y;                           \
                (void)y;                                             \
                other |= (condition) ? 0 : 1;                        \
            }                                                        \
        }                                                            \
        return !other;                                               \
    }
/* The loop without branches where all points allow it. */
#define CHOICE(name, mode)                                                              \
    static void name##_##mode(const trli_row_block *block)                              \
    {                                                                                   \
        (name##_is_near_##mode(block) ? name##_near_##mode : name##_any_##mode)(block); \
    }
#define ROWS_NEAR1(NAME, name, doc)                              \
    ROW1(name##_near, trl_fn_##name##_near(x))                   \
    ROW1(name##_any, trl_fn_##name(x))                           \
    EVERY(name##_is_near_0, a[i], 0, trl_fn_##name##_is_near(x)) \
    CHOICE(name, 0)
#define ROWS_NEAR2(NAME, name, doc)                                    \
    ROW2(name##_near, trl_fn_##name##_near(x, y))                      \
    ROW2(name##_any, trl_fn_##name(x, y))                              \
    EVERY(name##_is_near_0, a[i], b[i], trl_fn_##name##_is_near(x, y)) \
    EVERY(name##_is_near_1, x0, b[i], trl_fn_##name##_is_near(x, y))   \
    EVERY(name##_is_near_2, a[i], y0, trl_fn_##name##_is_near(x, y))   \
    CHOICE(name, 0)                                                    \
    CHOICE(name, 1)                                                    \
    CHOICE(name, 2)
TRL_FUNCTION_LIST(ROWS_ONE, ROWS_TWO, ROWS_NEAR1, ROWS_NEAR2)

#define ENTRY_ONE(NAME, name, doc) MODES1(name),
#define ENTRY_TWO(NAME, name, doc) MODES2(name),
static const trli_row rows[][4] = {TRL_FUNCTION_LIST(ENTRY_ONE, ENTRY_TWO, ENTRY_ONE, ENTRY_TWO)};

trli_row trli_row_of_function(int row, unsigned broadcast)
{
    return rows[row][broadcast];
}

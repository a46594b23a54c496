/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Vector loops of the interpreter: each operation is written once as an expression of x, y, z; the macros make the
 * loops for every combination of row and broadcast operands, and the rows of tables that hold them. */
#ifndef TRLI_ROWS_IMPL_H
#define TRLI_ROWS_IMPL_H

#include "interpreter_impl.h"
#include "vector_impl.h"

static inline void trli_fetch_row(const trli_row_block *block, ptrdiff_t row)
{
    const double *at = block->fetch + row * block->fetch_step;
    for (int l = 0; l < block->fetch_lines; ++l) __builtin_prefetch(at + (ptrdiff_t)l * TRLI_LINE);
}

/* Row `row` of operand o. */
#define TRLI_ROW_OF(o) (block->arg[o] + row * block->arg_step[o])

/* Rows of one point, as of a box along a side of x, are one loop over the rows. */
#define LOOP(name, X, Y, Z, expr)                                                           \
    TRLI_CLONES static void name(const trli_row_block *block)                               \
    {                                                                                       \
        const ptrdiff_t n = block->n;                                                       \
        if (n == 1) {                                                                       \
            TRLI_INDEPENDENT                                                                \
            for (ptrdiff_t row = 0; row < block->rows; ++row) {                             \
                enum { i = 0 };                                                             \
                const double *a = TRLI_ROW_OF(0), *b = TRLI_ROW_OF(1), *c = TRLI_ROW_OF(2); \
                const double x0 = *a, y0 = *b, z0 = *c;                                     \
                (void)x0, (void)y0, (void)z0;                                               \
                const double x = X, y = Y, z = Z;                                           \
                (void)y, (void)z;                                                           \
                block->out[row * block->out_step] = (expr);                                 \
            }                                                                               \
            return;                                                                         \
        }                                                                                   \
        for (ptrdiff_t row = 0; row < block->rows; ++row) {                                 \
            trli_fetch_row(block, row);                                                     \
            double *out = block->out + row * block->out_step;                               \
            const double *a = TRLI_ROW_OF(0), *b = TRLI_ROW_OF(1), *c = TRLI_ROW_OF(2);     \
            const double x0 = *a, y0 = *b, z0 = *c;                                         \
            (void)x0, (void)y0, (void)z0;                                                   \
            TRLI_INDEPENDENT                                                                \
            for (ptrdiff_t i = 0; i < n; ++i) {                                             \
                const double x = X, y = Y, z = Z;                                           \
                (void)y, (void)z;                                                           \
                out[i] = (expr);                                                            \
            }                                                                               \
        }                                                                                   \
    }
#define ROW1(name, expr) LOOP(name##_0, a[i], 0, 0, expr)
#define ROW2(name, expr)                \
    LOOP(name##_0, a[i], b[i], 0, expr) \
    LOOP(name##_1, x0, b[i], 0, expr)   \
    LOOP(name##_2, a[i], y0, 0, expr)
#define ROW3(name, expr)                   \
    LOOP(name##_0, a[i], b[i], c[i], expr) \
    LOOP(name##_1, x0, b[i], c[i], expr)   \
    LOOP(name##_2, a[i], y0, c[i], expr)   \
    LOOP(name##_3, x0, y0, c[i], expr)     \
    LOOP(name##_4, a[i], b[i], z0, expr)   \
    LOOP(name##_5, x0, b[i], z0, expr)     \
    LOOP(name##_6, a[i], y0, z0, expr)

#define MODES1(name) \
    {                \
        name##_0     \
    }
#define MODES2(name)                           \
    {                                          \
        name##_0, name##_1, name##_2, name##_0 \
    }
#define MODES3(name)                                                                   \
    {                                                                                  \
        name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_0 \
    }

/* The loop of a function, the row of trl_functions. */
trli_row trli_row_of_function(int row, unsigned broadcast);

#endif

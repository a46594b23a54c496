/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Vector loops of the interpreter for the operations of the IR, their chains, and limiters. */
#include <stdint.h>

#include <trl_functions_body.h>
#include <trl_limiter_body.h>

#include "rows_impl.h"

ROW1(neg, -x)
ROW1(not, x == 0 ? 1.0 : 0.0)
ROW1(abs, trl_fn_abs(x))
ROW1(sqrt, trl_fn_sqrt(x))
ROW1(copy, x)
LOOP(copy_1, x0, 0, 0, x)
ROW2(add, x + y)
ROW2(sub, x - y)
ROW2(mul, x *y)
ROW2(div, x / y)
ROW2(min, trl_fn_min(x, y))
ROW2(max, trl_fn_max(x, y))
ROW2(lt, x < y ? 1.0 : 0.0)
ROW2(le, x <= y ? 1.0 : 0.0)
ROW2(eq, x == y ? 1.0 : 0.0)
ROW2(ne, x != y ? 1.0 : 0.0)
ROW2(and, x != 0 && y != 0 ? 1.0 : 0.0)
ROW2(or, x != 0 || y != 0 ? 1.0 : 0.0)
ROW2(pow, trl_fn_pow(x, y))
ROW3(select, x != 0 ? y : z)
ROW3(add_add, x + y + z)
ROW3(add_sub, x + y - z)
ROW3(sub_add, x - y + z)
ROW3(mul_mul, x *y *z)
ROW3(add_mul, (x + y) * z)
ROW3(sub_mul, (x - y) * z)
ROW3(mul_add, x *y + z)
ROW3(mul_sub, x *y - z)
ROW3(sub_from_mul, z - x * y)

unsigned trli_row_scales(int op)
{
#define SCALES(name, scales) [TRLI_SCALED_##name] = (scales),
    static const uint8_t scales[TRLI_SCALED_END] = {TRLI_SCALED_LIST(SCALES)};
#undef SCALES
    return scales[op];
}

/* Scaled chains: s, r and q are the scales, consecutive operands from the first on; less than three are named again. */
#define SCALED(name, first, count, expr)                                                                     \
    TRLI_CLONES static void name(const trli_row_block *block)                                                \
    {                                                                                                        \
        const ptrdiff_t n = block->n;                                                                        \
        const double s = *block->arg[first], r = *block->arg[(first) + ((count) > 1)],                       \
                     q = *block->arg[(first) + (count)-1];                                                   \
        (void)r, (void)q;                                                                                    \
        for (ptrdiff_t row = 0; row < block->rows; ++row) {                                                  \
            trli_fetch_row(block, row);                                                                      \
            double *out = block->out + row * block->out_step;                                                \
            const double *a = TRLI_ROW_OF(0), *b = TRLI_ROW_OF(1), *c = TRLI_ROW_OF(2), *d = TRLI_ROW_OF(3); \
            const double *e = TRLI_ROW_OF(4), *f = TRLI_ROW_OF(5), *g = TRLI_ROW_OF(6), *h = TRLI_ROW_OF(7); \
            (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;                                            \
            TRLI_INDEPENDENT                                                                                 \
            for (ptrdiff_t i = 0; i < n; ++i) out[i] = (expr);                                               \
        }                                                                                                    \
    }
SCALED(sub_mul_add, 2, 1, (a[i] - b[i]) * s + d[i])
SCALED(add_sub_mul, 3, 1, (a[i] + b[i] - c[i]) * s)
SCALED(add_sub_mul_add, 3, 1, (a[i] + b[i] - c[i]) * s + e[i])
SCALED(gradients, 4, 1, (a[i] - b[i]) * s - (c[i] - d[i]) * s)
SCALED(gradients_mul, 4, 2, ((a[i] - b[i]) * s - (c[i] - d[i]) * s) * r)
SCALED(gradients_mul_add, 4, 2, ((a[i] - b[i]) * s - (c[i] - d[i]) * s) * r + g[i])
SCALED(flux, 2, 2, (a[i] - b[i]) * s * r)
SCALED(fluxes, 4, 2, (a[i] - b[i]) * s * r - (c[i] - d[i]) * s * r)
SCALED(fluxes_mul, 4, 3, ((a[i] - b[i]) * s * r - (c[i] - d[i]) * s * r) * q)
SCALED(fluxes_mul_add, 4, 3, ((a[i] - b[i]) * s * r - (c[i] - d[i]) * s * r) * q + h[i])

static const trli_row rows[TRLI_SCALED_END][8] = {
    [TRLI_OP_NEG] = MODES1(neg),
    [TRLI_OP_NOT] = MODES1(not ),
    [TRLI_OP_ABS] = MODES1(abs),
    [TRLI_OP_SQRT] = MODES1(sqrt),
    [TRLI_OP_ADD] = MODES2(add),
    [TRLI_OP_SUB] = MODES2(sub),
    [TRLI_OP_MUL] = MODES2(mul),
    [TRLI_OP_DIV] = MODES2(div),
    [TRLI_OP_MIN] = MODES2(min),
    [TRLI_OP_MAX] = MODES2(max),
    [TRLI_OP_LT] = MODES2(lt),
    [TRLI_OP_LE] = MODES2(le),
    [TRLI_OP_EQ] = MODES2(eq),
    [TRLI_OP_NE] = MODES2(ne),
    [TRLI_OP_AND] = MODES2(and),
    [TRLI_OP_OR] = MODES2(or),
    [TRLI_OP_POW] = MODES2(pow),
    [TRLI_OP_SELECT] = MODES3(select),
    [TRLI_CHAIN_COPY] = {copy_0, copy_1},
    [TRLI_CHAIN_ADD_ADD] = MODES3(add_add),
    [TRLI_CHAIN_ADD_SUB] = MODES3(add_sub),
    [TRLI_CHAIN_SUB_ADD] = MODES3(sub_add),
    [TRLI_CHAIN_MUL_MUL] = MODES3(mul_mul),
    [TRLI_CHAIN_ADD_MUL] = MODES3(add_mul),
    [TRLI_CHAIN_SUB_MUL] = MODES3(sub_mul),
    [TRLI_CHAIN_MUL_ADD] = MODES3(mul_add),
    [TRLI_CHAIN_MUL_SUB] = MODES3(mul_sub),
    [TRLI_CHAIN_SUB_FROM_MUL] = MODES3(sub_from_mul),
    [TRLI_SCALED_SUB_MUL_ADD] = {sub_mul_add},
    [TRLI_SCALED_ADD_SUB_MUL] = {add_sub_mul},
    [TRLI_SCALED_ADD_SUB_MUL_ADD] = {add_sub_mul_add},
    [TRLI_SCALED_GRADIENTS] = {gradients},
    [TRLI_SCALED_GRADIENTS_MUL] = {gradients_mul},
    [TRLI_SCALED_GRADIENTS_MUL_ADD] = {gradients_mul_add},
    [TRLI_SCALED_FLUX] = {flux},
    [TRLI_SCALED_FLUXES] = {fluxes},
    [TRLI_SCALED_FLUXES_MUL] = {fluxes_mul},
    [TRLI_SCALED_FLUXES_MUL_ADD] = {fluxes_mul_add},
};

trli_row trli_row_find(int op, unsigned broadcast)
{
    return rows[op][trli_row_scales(op) ? 0 : broadcast];
}

#define LIMITER_ROW(NAME, name, psi) LOOP(limit_##name, a[i], b[i], c[i], trl_limiter_face_##name(x, y, z))
TRL_LIMITER_LIST(LIMITER_ROW)
#undef LIMITER_ROW
#define LIMITER_ENTRY(NAME, name, psi) [TRL_LIMITER_##NAME] = limit_##name,
static const trli_row limiter_rows[TRL_LIMITER_COUNT] = {TRL_LIMITER_LIST(LIMITER_ENTRY)};
#undef LIMITER_ENTRY

/* Point by point: an operand may be one value for a whole row. */
static void limit_pointwise(const trli_row_block *block, trli_row row)
{
    for (ptrdiff_t j = 0; j < block->rows; ++j)
        for (ptrdiff_t i = 0; i < block->n; ++i) {
            trli_row_block point = {.out = block->out + j * block->out_step + i, .n = 1, .rows = 1};
            for (int o = 0; o < 3; ++o)
                point.arg[o] = block->arg[o] + j * block->arg_step[o] + (block->broadcast >> o & 1 ? 0 : i);
            row(&point);
        }
}

void trli_row_indexed(int op, int index, const trli_row_block *block)
{
    if (op != TRLI_OP_LIMIT)
        trli_row_of_function(index, block->broadcast)(block);
    else if (block->broadcast)
        limit_pointwise(block, limiter_rows[index]);
    else
        limiter_rows[index](block);
}

/* What is not 0 in `excess` has met a number that is not finite: x - x is 0 for all others. */
#define STORE(width, attribute)                                                                            \
    attribute static bool is_zero##width(trli_vector##width excess)                                        \
    {                                                                                                      \
        bool zero = true;                                                                                  \
        for (int l = 0; l < (width); ++l) zero &= ((double *)&excess)[l] == 0;                             \
        return zero;                                                                                       \
    }                                                                                                      \
    attribute static bool finite##width(const double *values, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t step) \
    {                                                                                                      \
        trli_vector##width excess = {0};                                                                   \
        double rest = 0;                                                                                   \
        for (ptrdiff_t row = 0; row < rows; ++row, values += step) {                                       \
            ptrdiff_t i = 0;                                                                               \
            for (; i + (width) <= n; i += (width)) {                                                       \
                const trli_vector##width x = *(const trli_loose##width *)&values[i];                       \
                excess += x - x;                                                                           \
            }                                                                                              \
            for (; i < n; ++i) rest += values[i] - values[i];                                              \
        }                                                                                                  \
        return rest == 0 && is_zero##width(excess);                                                        \
    }                                                                                                      \
    attribute static bool store##width(double *out, const double *values, ptrdiff_t n)                     \
    {                                                                                                      \
        trli_vector##width excess = {0};                                                                   \
        double rest = 0;                                                                                   \
        ptrdiff_t i = 0;                                                                                   \
        for (; i < n && (uintptr_t)&out[i] % sizeof excess != 0; ++i) {                                    \
            out[i] = values[i];                                                                            \
            rest += values[i] - values[i];                                                                 \
        }                                                                                                  \
        for (; i + (width) <= n; i += (width)) {                                                           \
            const trli_vector##width x = *(const trli_loose##width *)&values[i];                           \
            TRLI_STREAM_STORE##width(&out[i], x);                                                          \
            excess += x - x;                                                                               \
        }                                                                                                  \
        for (; i < n; ++i) {                                                                               \
            out[i] = values[i];                                                                            \
            rest += values[i] - values[i];                                                                 \
        }                                                                                                  \
        return rest == 0 && is_zero##width(excess);                                                        \
    }
TRLI_STREAM_VARIANTS(STORE)

bool trli_rows_finite(const double *values, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t step)
{
    return TRLI_STREAM_CALL(finite, values, n, rows, step);
}

bool trli_row_store(double *out, const double *values, ptrdiff_t n)
{
    return TRLI_STREAM_CALL(store, out, values, n);
}

void trli_rows_stored(void)
{
    TRLI_STREAM_FENCE();
}

double trli_fold(const trli_node *n, const double number[3])
{
    double out;
    const trli_row_block block = {.out = &out, .arg = {&number[0], &number[1], &number[2]}, .n = 1, .rows = 1};
    trli_row row = rows[n->op][0];
    if (row)
        row(&block);
    else if (n->op == TRLI_OP_SHIFT)
        out = number[0];
    else
        trli_row_indexed(n->op, n->index, &block);
    return out;
}

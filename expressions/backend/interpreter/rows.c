/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Vector loops of the interpreter for the operations of the IR, their chains, and limiters. */
#include <stdint.h>

#include <trl_functions_body.h>
#include <trl_limiter_body.h>

#include "rows_impl.h"

#define NONE(name, ...)
#define RESULT(name, operands, word, flops, result) ROW##operands(name, result)
#define CASE(name, operands, word, flops, result, of_vectors) ROW##operands(name, result)
#define TEST(name, operands, word, flops, condition) ROW##operands(name, condition ? 1.0 : 0.0)
TRLI_OP_LIST(NONE, RESULT, TEST, CASE, RESULT, NONE)
#undef NONE
#undef RESULT
#undef CASE
#undef TEST
#define CHAIN(name, result) ROW3(name, result)
TRLI_CHAIN_LIST(CHAIN)
#undef CHAIN
ROW1(COPY, x)
LOOP(COPY_1, x0, 0, 0, x)

unsigned trli_row_scales(int op)
{
#define SCALES(name, first, count, result) [TRLI_SCALED_##name] = ((1 << (count)) - 1) << (first),
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
TRLI_SCALED_LIST(SCALED)

#define NONE(name, ...)
#define OF_OP(name, operands, ...) [TRLI_OP_##name] = MODES##operands(name),
#define OF_CHAIN(name, result) [TRLI_CHAIN_##name] = MODES3(name),
#define OF_SCALED(name, ...) [TRLI_SCALED_##name] = {name},
static const trli_row rows[TRLI_SCALED_END][8] = {
    TRLI_OP_LIST(NONE, OF_OP, OF_OP, OF_OP, OF_OP, NONE) /* */
    TRLI_CHAIN_LIST(OF_CHAIN)                            /* */
    TRLI_SCALED_LIST(OF_SCALED)                          /* */
        [TRLI_CHAIN_COPY] = {COPY_0, COPY_1},
};
#undef NONE
#undef OF_OP
#undef OF_CHAIN
#undef OF_SCALED

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

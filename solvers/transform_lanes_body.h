/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Passes over TRLI_LANES lines at once, in vectors, and rows. Part of transform_passes.c, once for each width of
 * vectors:
 *
 *     WIDTH      doubles in a vector
 *     OF(name)   the name of a function for this width
 *     TARGET     the attribute of functions for this width
 *     VECTOR, LOOSE  the types of vectors, the second one at any address of a double */

#ifdef TRL_SANITIZED /* copies of instrumented functions take long to compile */
#define INLINE TARGET static inline
#else
#define INLINE TARGET static inline __attribute__((always_inline))
#endif
#define PASS TARGET static
#define EACH_LANE _Pragma("GCC unroll 1") for (int l = 0; l < TRLI_LANES; l += (WIDTH))
#define EACH(i, begin, condition) for (ptrdiff_t i = (begin); condition; ++i)
#define EACH_PAIR(k, begin, end, c, n)                         \
    for (ptrdiff_t k = (begin), c##_end = (n); k < (end); ++k) \
        for (ptrdiff_t c = 0; c < c##_end; ++c)
#define ONCE
#define EACH_COMPLEX(X) X(2, 2) X(3, 3) X(4, 4) X(5, 5) X(8, 8) X(any, p->radix)
#define EACH_REAL(X) X(3, 3) X(5, 5) X(any, p->radix)
#include "transform_passes_body.h"

/* ---- rows, whose values follow one another ---- */

/* As many vectors as one has values: value i of vector k becomes value k of vector i. Of two vectors `apart` from one
 * another, blocks of as many values change places. */
INLINE void OF(transpose)(VECTOR v[WIDTH])
{
#define EXCHANGE(apart, first, second)                          \
    for (int i = 0; i < WIDTH; ++i) {                           \
        if (i & (apart)) continue;                              \
        const VECTOR a = v[i], b = v[i + (apart)];              \
        v[i] = __builtin_shufflevector(a, b, first);            \
        v[i + (apart)] = __builtin_shufflevector(a, b, second); \
    }
    TRANSPOSITION(EXCHANGE)
#undef EXCHANGE
}

/* Lanes without a row get the first one. */
PASS void OF(take_rows)(int rows, const double *const *row, int n, double *to)
{
    const int whole = n / WIDTH * WIDTH;
    EACH_LANE
    {
        const double *at[WIDTH];
        for (int r = 0; r < WIDTH; ++r) at[r] = row[l + r < rows ? l + r : 0];
        for (int i = 0; i < whole; i += WIDTH) {
            VECTOR v[WIDTH];
            for (int r = 0; r < WIDTH; ++r) v[r] = *(const LOOSE *)(at[r] + i);
            OF(transpose)(v);
            for (int r = 0; r < WIDTH; ++r) AT(to + (ptrdiff_t)(i + r) * TRLI_LANES + l) = v[r];
        }
    }
    for (int i = whole; i < n; ++i)
        for (int l = 0; l < TRLI_LANES; ++l) to[(ptrdiff_t)i * TRLI_LANES + l] = row[l < rows ? l : 0][i];
}

/* The first values, in whole vectors of each row. */
INLINE void OF(give_whole)(double *const *row, int whole, bool add, const double *from)
{
    EACH_LANE
    {
        double *at[WIDTH];
        for (int r = 0; r < WIDTH; ++r) at[r] = row[l + r];
        for (int i = 0; i < whole; i += WIDTH) {
            VECTOR v[WIDTH];
            for (int r = 0; r < WIDTH; ++r) v[r] = OF_ALL(from + (ptrdiff_t)(i + r) * TRLI_LANES + l);
            OF(transpose)(v);
            for (int r = 0; r < WIDTH; ++r) {
                LOOSE *to = (LOOSE *)(at[r] + i);
                *to = add ? *to + v[r] : v[r];
            }
        }
    }
}

PASS void OF(give_rows)(int rows, double *const *row, int n, bool add, const double *from)
{
    const int whole = rows < TRLI_LANES ? 0 : n / WIDTH * WIDTH;
    if (whole > 0 && add) OF(give_whole)(row, whole, true, from);
    if (whole > 0 && !add) OF(give_whole)(row, whole, false, from);
    for (int l = 0; l < rows; ++l)
        for (int i = whole; i < n; ++i) {
            const double value = from[(ptrdiff_t)i * TRLI_LANES + l];
            row[l][i] = add ? row[l][i] + value : value;
        }
}

/* ---- all of them ---- */

#define MEMBER(NAME, function) OF(function),
#define COMPLEX_OF(role)                                                                                 \
    {                                                                                                    \
        OF(role##_any), [2] = OF(role##_2), OF(role##_3), OF(role##_4), OF(role##_5), [8] = OF(role##_8) \
    }
#define REAL_OF(role)                                          \
    {                                                          \
        OF(role##_any), [3] = OF(role##_3), [5] = OF(role##_5) \
    }
static const trli_passes OF(passes) = {.complex[TRLI_PASS_WITHIN] = COMPLEX_OF(within),
                                       .complex[TRLI_PASS_FIRST] = COMPLEX_OF(first),
                                       .complex[TRLI_PASS_ENTER] = COMPLEX_OF(enter),
                                       .complex[TRLI_PASS_ENTER_BY] = COMPLEX_OF(enter_by),
                                       .complex[TRLI_PASS_LEAVE] = COMPLEX_OF(leave),
                                       .complex[TRLI_PASS_LEAVE_BY] = COMPLEX_OF(leave_by),
                                       .real[TRLI_PASS_FIRST] = REAL_OF(real),
                                       .real[TRLI_PASS_WITHIN] = REAL_OF(real),
                                       .real[TRLI_PASS_ENTER] = REAL_OF(real_enter),
                                       .real[TRLI_PASS_ENTER_BY] = REAL_OF(real_enter_by),
                                       .enter_convolution = OF(enter_convolution),
                                       .filter = OF(filter),
                                       .leave_convolution = OF(leave_convolution),
                                       .first = {TRLI_FIRST_LIST(MEMBER)},
                                       .last = {TRLI_LAST_LIST(MEMBER)},
                                       .take_rows = OF(take_rows),
                                       .give_rows = OF(give_rows)};
#undef COMPLEX_OF
#undef REAL_OF
#undef MEMBER
#undef EACH_COMPLEX
#undef EACH_REAL

#undef INLINE
#undef EACH
#undef EACH_PAIR
#undef ONCE
#undef PASS
#undef AT
#undef OF_ALL
#undef EACH_LANE
#undef WIDTH
#undef OF
#undef TARGET
#undef VECTOR
#undef LOOSE
#undef TRANSPOSITION

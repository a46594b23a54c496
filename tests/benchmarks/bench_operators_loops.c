/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdint.h>
#include <string.h>

#include <trl_limiter_body.h>

#include "bench_operators_impl.h"
#include "operator_impl.h"
#include "vector_impl.h"

enum { LINE = 8 };

#define ROWS(row, plane)                            \
    for (ptrdiff_t k = plane[0]; k < plane[1]; ++k) \
        for (ptrdiff_t j = row[0]; j < row[1]; ++j)

/* A copy of what the loop works on, and names for it. */
#define SETUP                                                                     \
    const trli_hand c = *hand;                                                    \
    const double h0 = c.h[0], h1 = c.h[1], h2 = c.h[2];                           \
    const double w0 = c.w[0], w1 = c.w[1], w2 = c.w[2], w3 = c.w[3], w4 = c.w[4]; \
    (void)h0, (void)h1, (void)h2, (void)w0, (void)w1, (void)w2, (void)w3, (void)w4
#define ROW                                                                \
    const ptrdiff_t from = j * c.stride[1] + k * c.stride[2];              \
    const double *const a0 = c.in[0] + from, *const a1 = c.in[1] + from;   \
    const double *const a2 = c.in[2] + from;                               \
    double *const out = c.out + j * c.out_stride[1] + k * c.out_stride[2]; \
    (void)a1, (void)a2

/* ---- through the caches ---- */

#define A(p) a0[i + c.at[p]]
#define B(p) a1[i + c.at[p]]
#define C(p) a2[i + c.at[p]]
#define EACH_ROW(count, value)                                    \
    ROWS(row, plane)                                              \
    {                                                             \
        ROW;                                                      \
        TRLI_INDEPENDENT                                          \
        for (ptrdiff_t i = 0; i < (count); ++i) out[i] = (value); \
    }
#define PLAIN(name, value)                                                                                        \
    TRLI_CLONES static void plain_##name(const trli_hand *hand, const ptrdiff_t row[2], const ptrdiff_t plane[2]) \
    {                                                                                                             \
        SETUP;                                                                                                    \
        const ptrdiff_t whole = c.n[0] & -(ptrdiff_t)LINE;                                                        \
        if (whole == c.n[0]) /* without a rest: up to a fifth faster where rows are short */                      \
            EACH_ROW(whole, value)                                                                                \
        else                                                                                                      \
            EACH_ROW(c.n[0], value)                                                                               \
    }
TRLI_HAND_LIST(PLAIN)
#define UPWIND(p, q) (0.0 <= A(0) ? B(p) : B(q))
#define FLUX(NAME, name, psi) \
    PLAIN(FLUX_##NAME, A(0) * trl_limiter_face_##name(UPWIND(3, 4), UPWIND(1, 2), UPWIND(2, 1)))
TRL_LIMITER_LIST(FLUX)
#undef A
#undef B
#undef C

/* ---- streaming stores, vector by vector ---- */

#define A(p) (*(const LOOSE *)&a0[i + c.at[p]])
#define B(p) (*(const LOOSE *)&a1[i + c.at[p]])
#define C(p) (*(const LOOSE *)&a2[i + c.at[p]])
#define STREAM(name, value)                                                                                   \
    ATTRIBUTE static void NAME(name)(const trli_hand *hand, const ptrdiff_t row[2], const ptrdiff_t plane[2]) \
    {                                                                                                         \
        SETUP;                                                                                                \
        ROWS(row, plane)                                                                                      \
        {                                                                                                     \
            ROW;                                                                                              \
            for (ptrdiff_t i = 0; i < c.n[0]; i += WIDTH) STORE(&out[i], value);                              \
        }                                                                                                     \
    }
#if defined(__x86_64__)
#define NAME(name) stream_##name##2
#define WIDTH 2
#define LOOSE trli_loose2
#define STORE TRLI_STREAM_STORE2
#define ATTRIBUTE
TRLI_HAND_LIST(STREAM)
#undef NAME
#undef WIDTH
#undef LOOSE
#undef STORE
#undef ATTRIBUTE
#define NAME(name) stream_##name##4
#define WIDTH 4
#define LOOSE trli_loose4
#define STORE TRLI_STREAM_STORE4
#define ATTRIBUTE __attribute__((target("avx2")))
TRLI_HAND_LIST(STREAM)
#undef NAME
#undef WIDTH
#undef LOOSE
#undef STORE
#undef ATTRIBUTE
#define NAME(name) stream_##name##8
#define WIDTH 8
#define LOOSE trli_loose8
#define STORE TRLI_STREAM_STORE8
#define ATTRIBUTE __attribute__((target("avx512f")))
TRLI_HAND_LIST(STREAM)
#else
#define NAME(name) stream_##name##1
#define WIDTH 1
#define LOOSE trli_loose1
#define STORE TRLI_STREAM_STORE1
#define ATTRIBUTE
TRLI_HAND_LIST(STREAM)
#endif

/* Whole vectors only: rows must begin and end on cache lines. */
static bool has_whole_lines(const trli_hand *hand)
{
    return hand->n[0] % LINE == 0 && hand->out_stride[1] % LINE == 0 && hand->out_stride[2] % LINE == 0 &&
           (uintptr_t)hand->out % (LINE * sizeof(double)) == 0;
}

#define PAST(name, value)                                                                            \
    static void past_##name(const trli_hand *hand, const ptrdiff_t row[2], const ptrdiff_t plane[2]) \
    {                                                                                                \
        if (has_whole_lines(hand))                                                                   \
            TRLI_STREAM_CALL(stream_##name, hand, row, plane);                                       \
        else                                                                                         \
            plain_##name(hand, row, plane);                                                          \
        TRLI_STREAM_FENCE();                                                                         \
    }
TRLI_HAND_LIST(PAST)

/* Rows of what is no expression of vectors go through a buffer. */
#define PAST_FLUX(NAME, name, psi)                                                                               \
    static void past_FLUX_##NAME(const trli_hand *hand, const ptrdiff_t row[2], const ptrdiff_t plane[2])        \
    {                                                                                                            \
        ROWS(row, plane)                                                                                         \
        {                                                                                                        \
            trli_hand one = *hand;                                                                               \
            one.out = hand->scratch - j * hand->out_stride[1] - k * hand->out_stride[2];                         \
            plain_FLUX_##NAME(&one, (ptrdiff_t[2]){j, j + 1}, (ptrdiff_t[2]){k, k + 1});                         \
            trli_stream_rows(hand->out + j * hand->out_stride[1] + k * hand->out_stride[2], 0, hand->scratch, 0, \
                             hand->n[0], 1);                                                                     \
        }                                                                                                        \
        TRLI_STREAM_FENCE();                                                                                     \
    }
TRL_LIMITER_LIST(PAST_FLUX)

/* ---- passes along x, y, z: planes in a ring ---- */

#define SUM_ROW(name, value)                                                                                \
    TRLI_CLONES static void sum_##name(double *restrict out, const double *const *in, const double *weight, \
                                       double scale, ptrdiff_t n)                                           \
    {                                                                                                       \
        const double *a = in[0], *b = in[1], *c = in[2], *d = in[3], *e = in[4];                            \
        const double w0 = weight[0], w1 = weight[1], w2 = weight[2], w3 = weight[3];                        \
        (void)d, (void)e, (void)w0, (void)w1, (void)w2, (void)w3;                                           \
        TRLI_INDEPENDENT                                                                                    \
        for (ptrdiff_t i = 0; i < n; ++i) out[i] = (value)*scale;                                           \
    }
SUM_ROW(3_ones, a[i] + b[i] + c[i])
SUM_ROW(5_ones, a[i] + b[i] + c[i] + d[i] + e[i])
SUM_ROW(3, w0 *a[i] + w1 * b[i] + w2 * c[i])
SUM_ROW(4, w0 *a[i] + w1 * b[i] + w2 * c[i] + w3 * d[i])

/* Row j of plane k of the sums of a pass, from rows that `first` begins and steps lead through. */
static void sum_row(const trli_hand *l, int pass, double *out, const double *const in[TRLI_HAND_WIDTH])
{
    const bool ones = l->w[0] == 1 && l->w[1] == 1;
    if (l->width == 3 && ones)
        sum_3_ones(out, in, l->w, l->h[pass], l->n[0]);
    else if (l->width == 5)
        sum_5_ones(out, in, l->w, l->h[pass], l->n[0]);
    else if (l->width == 3)
        sum_3(out, in, l->w, l->h[pass], l->n[0]);
    else
        sum_4(out, in, l->w, l->h[pass], l->n[0]);
}

static void reach(const trli_hand *l, int pass, ptrdiff_t *lo, ptrdiff_t *hi)
{
    *lo = *hi = 0;
    for (int p = 0; pass < l->npasses && p < l->width; ++p) {
        if (l->offset[pass][p] < *lo) *lo = l->offset[pass][p];
        if (l->offset[pass][p] > *hi) *hi = l->offset[pass][p];
    }
}

static void finish_row(const trli_hand *l, int pass, double *buffer, const double *const in[TRLI_HAND_WIDTH],
                       ptrdiff_t j, ptrdiff_t k)
{
    double *out = l->out + j * l->out_stride[1] + k * l->out_stride[2];
    sum_row(l, pass, l->streaming ? buffer : out, in);
    if (l->streaming) trli_stream_rows(out, 0, buffer, 0, l->n[0], 1);
}

static void passes(const trli_hand *l, const ptrdiff_t row[2], const ptrdiff_t plane[2])
{
    ptrdiff_t lo[3], hi[3];
    for (int p = 0; p < 3; ++p) reach(l, p, &lo[p], &hi[p]);
    const ptrdiff_t n = l->n[0], along_x = row[1] - row[0] + hi[1] - lo[1], ring = hi[2] - lo[2] + 1;
    double *buffer = l->scratch, *x = buffer + n, *y = x + along_x * n;
    const double *in[TRLI_HAND_WIDTH] = {0};
    for (ptrdiff_t k = plane[0] + lo[2]; k < plane[1] + hi[2]; ++k) {
        for (ptrdiff_t j = 0; j < along_x; ++j) {
            for (int p = 0; p < l->width; ++p)
                in[p] = l->in[0] + (row[0] + lo[1] + j) * l->stride[1] + k * l->stride[2] + l->offset[0][p];
            sum_row(l, 0, x + j * n, in);
        }
        double *here = y + (k - plane[0] - lo[2]) % ring * (row[1] - row[0]) * n;
        for (ptrdiff_t j = row[0]; j < row[1]; ++j) {
            for (int p = 0; p < l->width; ++p) in[p] = x + (j - row[0] - lo[1] + l->offset[1][p]) * n;
            if (l->npasses == 2)
                finish_row(l, 1, buffer, in, j, k);
            else
                sum_row(l, 1, here + (j - row[0]) * n, in);
        }
        for (ptrdiff_t j = row[0]; l->npasses == 3 && k >= plane[0] + hi[2] && j < row[1]; ++j) {
            for (int p = 0; p < l->width; ++p)
                in[p] =
                    y + ((k - hi[2] + l->offset[2][p] - plane[0] - lo[2]) % ring * (row[1] - row[0]) + j - row[0]) * n;
            finish_row(l, 2, buffer, in, j, k - hi[2]);
        }
    }
    if (l->streaming) TRLI_STREAM_FENCE();
}

/* ---- all of them ---- */

trli_hand_loop trli_hand_find(int name, bool streaming)
{
#define LINEAR_ENTRY(name, value) [TRLI_HAND_##name] = {plain_##name, past_##name},
#define FLUX_ENTRY(NAME, name, psi) [TRLI_HAND_FLUX + TRL_LIMITER_##NAME] = {plain_FLUX_##NAME, past_FLUX_##NAME},
    static const trli_hand_loop table[TRLI_HAND_FLUX + TRL_LIMITER_COUNT][2] = {
        TRLI_HAND_LIST(LINEAR_ENTRY)[TRLI_HAND_PASSES] = {passes, passes}, TRL_LIMITER_LIST(FLUX_ENTRY)};
    return table[name][streaming];
}

size_t trli_hand_scratch(const trli_hand *hand)
{
    return (size_t)hand->n[0] * (1 + (TRLI_HAND_STRIP + TRLI_HAND_WIDTH) + TRLI_HAND_WIDTH * TRLI_HAND_STRIP);
}

ptrdiff_t trli_hand_block(int name)
{
    return name == TRLI_HAND_PASSES ? TRLI_HAND_STRIP : TRLI_HAND_BLOCK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Operators by hand: what an experienced C programmer would have written for one stencil, in the order of operations of
 * the operator, so that the bits agree. */
#ifndef TRLI_BENCH_OPERATORS_IMPL_H
#define TRLI_BENCH_OPERATORS_IMPL_H

#include "bench_impl.h"

enum {
    TRLI_HAND_LEAVES = 9,
    TRLI_HAND_WIDTH = 5,  /* points of a pass */
    TRLI_HAND_BLOCK = 64, /* rows of a block: its planes stay in the second-level cache */
    TRLI_HAND_STRIP = 32  /* rows of a block of passes */
};

/* What a loop works on: pointers are at point (0,0,0). */
typedef struct trli_hand {
    const double *in[3];
    double *out;
    ptrdiff_t n[3], stride[3], out_stride[3]; /* all inputs have one shape */
    ptrdiff_t at[TRLI_HAND_LEAVES];           /* where the points of the stencil lie, pass by pass the last slowest */
    double w[TRLI_HAND_LEAVES], h[3];         /* weights, and scales of terms or passes */
    int npasses, width;                       /* of passes along x, y, z: points of each */
    int offset[3][TRLI_HAND_WIDTH];
    double *scratch; /* of one thread */
    bool streaming;
} trli_hand;

/* Rows [row, row_end) of planes [plane, plane_end). */
typedef void (*trli_hand_loop)(const trli_hand *hand, const ptrdiff_t row[2], const ptrdiff_t plane[2]);

/* X(name, result at a point, of the values A, B, C of the inputs). */
#define TRLI_HAND_LIST(X)                                                                                             \
    X(COPY, A(0))                                                                                                     \
    X(MEAN, (A(0) + A(1)) * h0)                                                                                       \
    X(DIFFERENCE, (A(0) - A(1)) * h0)                                                                                 \
    X(TWO, (w0 * A(0) + w1 * A(1)) * h0)                                                                              \
    X(SECOND, (A(0) + A(1) - 2.0 * A(2)) * h0)                                                                        \
    X(LAPLACIAN, (A(0) + A(1) - 2.0 * A(2)) * h0 + (A(3) + A(4) - 2.0 * A(2)) * h1 + (A(6) + A(7) - 2.0 * A(2)) * h2) \
    X(MEAN_OF_4, ((A(0) + A(1)) * h0 + (A(2) + A(3)) * h0) * h1)                                                      \
    X(MEAN_OF_8,                                                                                                      \
      (((A(0) + A(1)) * h0 + (A(2) + A(3)) * h0) * h1 + ((A(4) + A(5)) * h0 + (A(6) + A(7)) * h0) * h1) * h2)         \
    X(FOUR, (w0 * A(0) + w1 * A(1) + w2 * A(2) + w3 * A(3)) * h0)                                                     \
    X(FIVE, w0 *A(0) + w1 * A(1) + w2 * A(2) + w3 * A(3) + w4 * A(4))                                                 \
    X(DIVERGENCE, (A(0) - A(1)) * h0 + (B(2) - B(3)) * h1 + (C(4) - C(5)) * h2)                                       \
    X(CURL, (B(0) - B(1)) * h0 - (A(2) - A(3)) * h1)                                                                  \
    X(CENTRAL_FLUX, A(0) * ((B(1) + B(2)) * 0.5))

typedef enum trli_hand_name {
#define TRLI_HAND_ENUM(name, value) TRLI_HAND_##name,
    TRLI_HAND_LIST(TRLI_HAND_ENUM)
#undef TRLI_HAND_ENUM
        TRLI_HAND_PASSES,
    TRLI_HAND_FLUX /* of the first limiter; the others follow in their order */
} trli_hand_name;

trli_hand_loop trli_hand_find(int name, bool streaming);
/* Values of scratch that a thread needs. */
size_t trli_hand_scratch(const trli_hand *hand);
/* Rows of a block. */
ptrdiff_t trli_hand_block(int name);

#endif

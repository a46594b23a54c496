/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The passes of transforms in vectors of the widest kind of the machine that runs. Lanes are apart from one another, so
 * the bits are the same for each width. */
#include <string.h>

#include "transform_passes_impl.h"
#include "vector_impl.h"

#define LIST(...) __VA_ARGS__

#if defined(__x86_64__)
#define WIDTH 2
#define OF(name) name##_2
#define TARGET TRLI_TARGET2
#define VECTOR trli_vector2
#define LOOSE trli_loose2
#define TRANSPOSITION(X) X(1, LIST(0, 2), LIST(1, 3))
#include "transform_lanes_body.h"

#define WIDTH 4
#define OF(name) name##_4
#define TARGET TRLI_TARGET4
#define VECTOR trli_vector4
#define LOOSE trli_loose4
#define TRANSPOSITION(X) X(1, LIST(0, 4, 2, 6), LIST(1, 5, 3, 7)) X(2, LIST(0, 1, 4, 5), LIST(2, 3, 6, 7))
#include "transform_lanes_body.h"

#define WIDTH 8
#define OF(name) name##_8
#define TARGET TRLI_TARGET8
#define VECTOR trli_vector8
#define LOOSE trli_loose8
#define TRANSPOSITION(X)                                                   \
    X(1, LIST(0, 8, 2, 10, 4, 12, 6, 14), LIST(1, 9, 3, 11, 5, 13, 7, 15)) \
    X(2, LIST(0, 1, 8, 9, 4, 5, 12, 13), LIST(2, 3, 10, 11, 6, 7, 14, 15)) \
    X(4, LIST(0, 1, 2, 3, 8, 9, 10, 11), LIST(4, 5, 6, 7, 12, 13, 14, 15))
#include "transform_lanes_body.h"
#else
#define WIDTH 1
#define OF(name) name##_1
#define TARGET TRLI_TARGET1
#define VECTOR trli_vector1
#define LOOSE trli_loose1
#define TRANSPOSITION(X)
#include "transform_lanes_body.h"
#endif

const trli_passes *trli_passes_of(int width)
{
#if defined(__x86_64__)
    switch (width) {
    case 2:
        return &passes_2;
    case 4:
        return __builtin_cpu_supports("avx2") ? &passes_4 : NULL;
    case 8:
        return __builtin_cpu_supports("avx512f") ? &passes_8 : NULL;
    default:
        return NULL;
    }
#else
    return width == 1 ? &passes_1 : NULL;
#endif
}

const trli_passes *trli_passes_widest(void)
{
    const trli_passes *passes = NULL;
    for (int width = TRLI_LANES; !passes; width /= 2) passes = trli_passes_of(width);
    return passes;
}

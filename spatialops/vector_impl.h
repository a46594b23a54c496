/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Loops in vectors of the widest kind of the machine that runs, by the compiler or by hand with streaming stores. */
#ifndef TRLI_VECTOR_IMPL_H
#define TRLI_VECTOR_IMPL_H

#include <stddef.h>

enum { TRLI_LINE = 8 }; /* doubles of a cache line */

/* Of a function: made for several kinds of vector, one of them chosen at load time; the arithmetic is the same in each.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TRLI_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TRLI_CLONES
#endif

/* Of a loop: what it stores is read, if at all, by the same iteration of the loop. */
#if defined(__clang__)
#define TRLI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* sanitizers and -O0 do not vectorise: no fault of the loop */
#else
#define TRLI_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* By hand: a loop is a macro of (doubles in a vector, attribute of the function) that TRLI_STREAM_VARIANTS makes once
 * for each kind; TRLI_STREAM_CALL calls the one that suits. Of a list X(name, ...) of loops, TRLI_STREAM_LIST makes
 * each with LOOP1, LOOP2, LOOP4 or LOOP8 as X. */

#if defined(__x86_64__)
#include <immintrin.h>

typedef double trli_vector2 __attribute__((vector_size(16)));
typedef double trli_vector4 __attribute__((vector_size(32)));
typedef double trli_vector8 __attribute__((vector_size(64)));
/* The same at any address of a double. */
typedef double trli_loose2 __attribute__((vector_size(16), aligned(8)));
typedef double trli_loose4 __attribute__((vector_size(32), aligned(8)));
typedef double trli_loose8 __attribute__((vector_size(64), aligned(8)));

#define TRLI_STREAM_STORE2(at, v) _mm_stream_pd(at, (__m128d)(v))
#define TRLI_STREAM_STORE4(at, v) _mm256_stream_pd(at, (__m256d)(v))
#define TRLI_STREAM_STORE8(at, v) _mm512_stream_pd(at, (__m512d)(v))
/* Streaming stores become visible to other threads. */
#define TRLI_STREAM_FENCE() _mm_sfence()
/* Where x >= 0 a, else b: for each value of vectors. */
#define TRLI_BY_SIGN(x, a, b) \
    ((__typeof__(a))(((0.0 <= (x)) & (__typeof__(0.0 <= (x)))(a)) | (~(0.0 <= (x)) & (__typeof__(0.0 <= (x)))(b))))

#define TRLI_TARGET2
#define TRLI_TARGET4 __attribute__((target("avx2")))
#define TRLI_TARGET8 __attribute__((target("avx512f")))
#define TRLI_STREAM_VARIANTS(LOOP) LOOP(2, TRLI_TARGET2) LOOP(4, TRLI_TARGET4) LOOP(8, TRLI_TARGET8)
#define TRLI_STREAM_LIST(LIST, LOOP) LIST(LOOP##2) LIST(LOOP##4) LIST(LOOP##8)
#define TRLI_STREAM_CALL(name, ...)                           \
    (__builtin_cpu_supports("avx512f") ? name##8(__VA_ARGS__) \
     : __builtin_cpu_supports("avx2")  ? name##4(__VA_ARGS__) \
                                       : name##2(__VA_ARGS__))
#else
typedef double trli_vector1, trli_loose1;
#define TRLI_STREAM_STORE1(at, v) (*(at) = (v))
#define TRLI_STREAM_FENCE() ((void)0)
#define TRLI_BY_SIGN(x, a, b) (0.0 <= (x) ? (a) : (b))
#define TRLI_TARGET1
#define TRLI_STREAM_VARIANTS(LOOP) LOOP(1, TRLI_TARGET1)
#define TRLI_STREAM_LIST(LIST, LOOP) LIST(LOOP##1)
#define TRLI_STREAM_CALL(name, ...) name##1(__VA_ARGS__)
#endif

/* A loop, for TRLI_STREAM_VARIANTS: copy(a, b, n) copies n doubles from b to a with streaming stores, both aligned to,
 * and n of, whole vectors. */
#define TRLI_STREAM_COPY(width, attribute)                                       \
    attribute static void copy##width(double *a, const double *b, ptrdiff_t n)   \
    {                                                                            \
        for (ptrdiff_t i = 0; i < n; i += (width))                               \
            TRLI_STREAM_STORE##width(&a[i], *(const trli_vector##width *)&b[i]); \
        TRLI_STREAM_FENCE();                                                     \
    }

#endif

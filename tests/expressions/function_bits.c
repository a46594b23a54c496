/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A digest of every function's results over many arguments, for test_function_bits.py, which compiles this with several
 * compilers and options: C, or CUDA (nvcc -x cu), where the device computes the results. Each line is a name and a
 * digest. One argument: how many numbers. */
#include <stdio.h>
#include <stdlib.h>

#ifdef __CUDACC__
#define TRL_BODY static __device__ __forceinline__
#define KERNEL __global__
#else
#define KERNEL static __attribute__((noinline))
#endif
#include <trl_functions_body.h>

typedef unsigned long long word;

union number {
    double value;
    word bits;
};

/* SplitMix64 (Steele, Lea and Flood 2014) */
static word random_bits(word *state)
{
    word h = *state += 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* Numbers of all magnitudes, of those near 1, of those that most functions are used for, and of ties. */
static double argument(word *state, long i)
{
    union number x;
    x.bits = random_bits(state);
    double part = (double)(long long)(x.bits >> 11) * 0x1p-53;
    switch (i % 5) {
    case 0:
        return x.value;
    case 1:
        return 2 * part - 1;
    case 2:
        return 40 * part - 20;
    case 3:
        return 1500 * part - 750;
    default:
        return (double)(long long)(part * 4000000 - 2000000) * 0.5;
    }
}

#ifdef __CUDACC__
#define LOOP(statement)                                                                                     \
    {                                                                                                       \
        for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) statement; \
    }
#else
#define LOOP(statement)                         \
    {                                           \
        for (long i = 0; i < n; ++i) statement; \
    }
#endif
#define LOOP1(name, call)                                                                                          \
    KERNEL void name(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ out, long n) \
    {                                                                                                              \
        (void)b;                                                                                                   \
        LOOP(out[i] = call(a[i]))                                                                                  \
    }
#define LOOP2(name, call)                                                                                          \
    KERNEL void name(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ out, long n) \
        LOOP(out[i] = call(a[i], b[i]))
#define ONE(NAME, name, doc) LOOP1(loop_##name, trl_fn_##name)
#define TWO(NAME, name, doc) LOOP2(loop_##name, trl_fn_##name)
#define NEAR1(NAME, name, doc) ONE(NAME, name, doc) LOOP1(loop_##name##_near, trl_fn_##name##_near)
#define NEAR2(NAME, name, doc) TWO(NAME, name, doc) LOOP2(loop_##name##_near, trl_fn_##name##_near)
TRL_FUNCTION_LIST(ONE, TWO, NEAR1, NEAR2)
TWO(POW, pow, "")
#undef ONE
#undef TWO
#undef NEAR1
#undef NEAR2

static word digest(const double *out, long n)
{
    word h = 14695981039346656037u;
    for (long i = 0; i < n; ++i) {
        union number x;
        x.value = out[i];
        h = (h ^ (x.value != x.value ? 0x7ff8000000000000u : x.bits)) * 1099511628211u;
        h ^= h >> 32;
    }
    return h;
}

#ifdef __CUDACC__
static double *take(long n)
{
    void *values = NULL;
    if (cudaMallocManaged(&values, (size_t)n * sizeof(double)) != cudaSuccess) exit(77);
    return (double *)values;
}
#define CALL(loop)                    \
    loop<<<256, 128>>>(a, b, out, n); \
    if (cudaDeviceSynchronize() != cudaSuccess) exit(1)
#else
static double *take(long n)
{
    return (double *)calloc((size_t)n, sizeof(double));
}
#define CALL(loop) loop(a, b, out, n)
#endif

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000000;
    word state = 1;
    double *a = take(n), *b = take(n), *out = take(n);
    if (!a || !b || !out) return 1;
    for (long i = 0; i < n; ++i) {
        a[i] = argument(&state, i);
        b[i] = argument(&state, i / 5);
    }
#define SHOW(loop, name) \
    CALL(loop);          \
    printf("%s %016llx\n", name, digest(out, n));
#define ONE(NAME, name, doc) SHOW(loop_##name, #name)
#define NEAR(NAME, name, doc) SHOW(loop_##name, #name) SHOW(loop_##name##_near, #name " near")
    TRL_FUNCTION_LIST(ONE, ONE, NEAR, NEAR)
    ONE(POW, pow, "")
    return 0;
}

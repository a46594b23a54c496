/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels by hand for a GPU, for benchmarks: bench_gpu_cuda.cu, or bench_gpu_none.c in a build without CUDA. */
#ifndef TRLI_BENCH_GPU_IMPL_H
#define TRLI_BENCH_GPU_IMPL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trli_gpu_heat {
    int n;         /* cells along each axis */
    bool periodic; /* else sides at 0 */
    double k_dt;   /* k * dt: the grid's spacing is 1 / n */
    int steps;
} trli_gpu_heat;

typedef struct trli_gpu_heat_result {
    double updates;   /* per second, of the fastest of several kernels, the median of five times `steps` */
    char variant[64]; /* which it was */
    double copy;      /* values copied per second, read and written */
} trli_gpu_heat_result;

/* NULL, or why nothing was measured. initial, result: n^3 values, x fastest; result: after `steps` steps. */
const char *trli_gpu_heat_by_hand(const trli_gpu_heat *heat, const double *initial, double *result,
                                  trli_gpu_heat_result *rates);

enum { TRLI_GPU_SCALARS = 16 };

typedef struct trli_gpu_transport {
    int n;      /* cells along each axis, periodic, of a cube of length 1 */
    int stages; /* 1: euler; 3: ssprk3 */
    double dt, velocity[3];
    double diffusivity[TRLI_GPU_SCALARS];
    int steps;
} trli_gpu_transport;

typedef struct trli_gpu_transport_result {
    double updates;   /* of scalars' stages, per second, of the fastest of several kernels of all scalars, the median */
    double apart;     /* the same of the fastest kernel of one scalar, launched for each */
    double copy;      /* values copied per second, read and written */
    char variant[64]; /* the fastest of all scalars */
} trli_gpu_transport_result;

/* NULL, or why nothing was measured. field: by scalar n^3 values, x fastest, which become those after `steps` steps. */
const char *trli_gpu_transport_by_hand(const trli_gpu_transport *transport, double *const field[TRLI_GPU_SCALARS],
                                       trli_gpu_transport_result *rates);

#ifdef __cplusplus
}
#else

#include <trl_simulation.h>

/* Read values of a field on the one patch, x fastest; or the largest difference of them to others. */
double trli_gpu_visit(const trl_simulation *sim, int field, double *values, bool compare);
/* Make steps, and wait until they are done. */
TRL_NODISCARD trl_err trli_gpu_make_steps(trl_simulation *sim, int steps);
/* Seconds of a step: the median of five times `steps`. */
TRL_NODISCARD trl_err trli_gpu_time_steps(trl_simulation *sim, int steps, double *seconds);

#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "bench_gpu_impl.h"

const char *trli_gpu_heat_by_hand(const trli_gpu_heat *heat, const double *initial, double *result,
                                  trli_gpu_heat_result *rates)
{
    (void)heat;
    (void)initial;
    (void)result;
    (void)rates;
    return "this build has no CUDA";
}

const char *trli_gpu_transport_by_hand(const trli_gpu_transport *transport, double *const field[TRLI_GPU_SCALARS],
                                       trli_gpu_transport_result *rates)
{
    (void)transport;
    (void)field;
    (void)rates;
    return "this build has no CUDA";
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The CUDA backend. The runtime is linked statically and loads the driver itself: without one there are no devices. */
#include <cstdio>
#include <cuda_runtime.h>

#include "device_impl.h"

bool trli_device_backend_exists(void)
{
    return true;
}

int trli_device_backend_count(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

const char *trli_device_backend_describe(int index, trl_device_info *info)
{
    cudaDeviceProp properties;
    cudaError_t status = cudaGetDeviceProperties(&properties, index);
    if (status != cudaSuccess) return cudaGetErrorString(status);
    std::snprintf(info->name, sizeof info->name, "%s", properties.name);
    info->major = properties.major;
    info->minor = properties.minor;
    info->multiprocessors = properties.multiProcessorCount;
    info->bytes = properties.totalGlobalMem;
    return nullptr;
}

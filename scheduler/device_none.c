/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The backend of a build without CUDA. */
#include "device_impl.h"

bool trli_device_backend_exists(void)
{
    return false;
}

int trli_device_backend_count(void)
{
    return 0;
}

const char *trli_device_backend_describe(int index, trl_device_info *info)
{
    (void)index;
    (void)info;
    return "this build has no CUDA";
}

const trli_gpu_api *trli_gpu_api_get(void)
{
    return NULL;
}

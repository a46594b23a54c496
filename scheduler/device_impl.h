/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a device backend supplies: device_cuda.cu, or device_none.c in a build without CUDA. */
#ifndef TRLI_DEVICE_IMPL_H
#define TRLI_DEVICE_IMPL_H

#include <stdbool.h>

#include <trl_device.h>

#ifdef __cplusplus
extern "C" {
#endif

bool trli_device_backend_exists(void);
int trli_device_backend_count(void);
/* NULL when done, else the backend's reason (static text). */
const char *trli_device_backend_describe(int index, trl_device_info *info);

#ifdef __cplusplus
}
#endif
#endif

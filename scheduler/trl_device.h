/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The accelerators of this machine. A build without CUDA, or a machine without a driver, has none. */
#ifndef TRL_DEVICE_H
#define TRL_DEVICE_H

#include <trl_context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_device_info {
    char name[256];   /* as the driver gives it */
    int major, minor; /* compute capability */
    int multiprocessors;
    size_t bytes; /* memory of the device */
} trl_device_info;

/* Whether this build can use devices at all. Thread: any. */
TRL_API bool trl_device_supported(void);
/* Number of devices this process can use; 0 without driver or support. Thread: any. */
TRL_API int trl_device_count(void);
/* Describe device 0 <= index < trl_device_count(). Fails with INPUT (no such device: the number there is) or DEVICE
 * (the driver's message). Thread: any. */
TRL_API TRL_NODISCARD trl_err trl_device_get_info(trl_context *ctx, int index, trl_device_info *info);

#ifdef __cplusplus
}
#endif
#endif

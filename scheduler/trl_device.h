/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Devices: the accelerators of this machine, of which a build without CUDA, or a machine without a driver, has none;
 * and mock devices, which the environment variable TRL_MOCK_DEVICES adds (docs/hybrid.md). */
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
    size_t cache_bytes;  /* of the cache that all multiprocessors share */
    size_t shared_bytes; /* of the memory that the threads of a block share, at most */
    size_t bytes;        /* memory of the device; 0: as much as the host has */
} trl_device_info;

/* Whether this build can use devices at all. Thread: any. */
TRL_API bool trl_device_supported(void);
/* Number of devices this process can use; 0 without driver or support. Thread: any. */
TRL_API int trl_device_count(void);
/* Describe device 0 <= index < trl_device_count(). Fails with INPUT (no such device: the number there is) or DEVICE
 * (the driver's message). Thread: any. */
TRL_API TRL_NODISCARD trl_err trl_device_get_info(trl_context *ctx, int index, trl_device_info *info);

/* ---- devices that runs use ---- */

typedef struct trl_devices trl_devices;
typedef struct trl_device trl_device;

enum { TRL_DEVICES_MAX = 8 };

/* Open devices: "auto": all that exist, mock devices included; "cpu": none; "gpu": all GPUs, at least one of which
 * must exist; or indices, "0,1". Fails with INPUT, saying which devices exist and what to write; DEVICE; MEMORY. */
TRL_API TRL_NODISCARD trl_err trl_devices_open(trl_context *ctx, const char *which, trl_devices **devices);
/* Open devices that this machine does not have, to plan for them: "2xH100" is a count and a machine of a table
 * (docs/hybrid.md). They run tasks as mock devices do; placement uses the figures of the table. Fails with INPUT,
 * listing the table; MEMORY. */
TRL_API TRL_NODISCARD trl_err trl_devices_open_model(trl_context *ctx, const char *model, trl_devices **devices);
/* Everything that uses the devices must be destroyed before. */
TRL_API void trl_devices_close(trl_devices **devices);
/* Close all but the first n, which nothing uses. */
TRL_API void trl_devices_keep(trl_devices *devices, int n);
TRL_API int trl_devices_opened(const trl_devices *devices);
/* Describe the opened device 0 <= index < trl_devices_opened(). Valid until they are closed. */
TRL_API const trl_device_info *trl_devices_info(const trl_devices *devices, int index);

#ifdef __cplusplus
}
#endif
#endif

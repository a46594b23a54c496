/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* GPUs on which fields of a driver of one's own live: what computes such fields runs there, by kernels that are made
 * and cached as those of formulas are, with the bits of the host (docs/gpu.md). */
#ifndef TRL_FIELD_DEVICE_H
#define TRL_FIELD_DEVICE_H

#include <trl_device.h>
#include <trl_field_manager.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Let fields of a manager live on an opened device: trl_field_move. Made before these fields are; devices and manager
 * outlive it. Fails with DEVICE: it is no GPU, or there is no NVRTC, the message says how to name it; MEMORY.
 * Collective: no. Thread: main, as all here. */
TRL_API TRL_NODISCARD trl_err trl_field_device_create(trl_field_manager *manager, const trl_devices *devices, int index,
                                                      trl_field_device **device);
/* After its fields are destroyed, or moved to the host. */
TRL_API void trl_field_device_destroy(trl_field_device **device);
/* Wait until all that was enqueued is done: to measure time. Whoever reads values waits by itself. Fails with DEVICE.
 */
TRL_API TRL_NODISCARD trl_err trl_field_device_finish(trl_field_device *device);

typedef struct trl_field_device_stats {
    int fields;                  /* that live there */
    int kernels;                 /* made so far; what is computed again has its kernel */
    int64_t launches;            /* of these */
    int64_t bytes_in, bytes_out; /* of fields copied from the host, and to it */
} trl_field_device_stats;
TRL_API trl_field_device_stats trl_field_device_get_stats(const trl_field_device *device);

#ifdef __cplusplus
}
#endif
#endif

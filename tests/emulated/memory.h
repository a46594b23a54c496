/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory of emulated GPUs, which other processes may open where it is whole units. */
#ifndef TRLI_EMULATED_MEMORY_H
#define TRLI_EMULATED_MEMORY_H

#include "device_impl.h"

enum { SUCCESS, FAILURE, NO_MEMORY };

int trli_emulated_allocate(size_t bytes, void **memory);
void trli_emulated_release(void *memory);
int trli_emulated_offer(void *memory, trli_gpu_handle *handle);
int trli_emulated_open(const trli_gpu_handle *handle, void **memory);

#endif

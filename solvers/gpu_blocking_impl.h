/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several steps in one launch of a GPU, or given to it together. */
#ifndef TRLI_GPU_BLOCKING_IMPL_H
#define TRLI_GPU_BLOCKING_IMPL_H

#include <stdio.h>

#include "simulation_impl.h"

typedef struct trli_gpu_blocking trli_gpu_blocking;

/* Once there is memory, and kernels for GPUs. passes: nothing but devices is in the way of time blocking; then *why
 * says why there is none on GPUs, or is NULL. *blocking: NULL: one step at a time, given to the GPU by itself. Fails
 * with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_blocking_create(trl_simulation *sim, bool passes, trli_gpu_blocking **blocking,
                                               const char **why);
void trli_gpu_blocking_destroy(trli_gpu_blocking **blocking);
/* why: there are no passes. */
void trli_gpu_blocking_describe(const trli_gpu_blocking *blocking, const char *why, size_t size, char *text);
/* Write the text of a launch of as many steps as there may be, if there may be several. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_gpu_blocking_write(trl_simulation *sim, FILE *out);
/* One step, or a pass over several, up to an event. */
TRL_NODISCARD trl_err trli_gpu_blocking_advance(trl_simulation *sim, trli_gpu_blocking *blocking, trl_stop stop,
                                                void *data);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What calls enqueue to a GPU, kept to be enqueued again: calls that follow one another become a CUDA graph, one for
 * each rotation of time levels. */
#ifndef TRLI_RELAUNCH_IMPL_H
#define TRLI_RELAUNCH_IMPL_H

#include "executor_impl.h"
#include "graph_impl.h"

/* What makes the state of a frame: see trli_graph_set_state. */
typedef struct trli_relaunch_state {
    trli_state_fn write;
    void *data, *frame;
} trli_relaunch_state;

/* Calls of one region that follow one another without fences between them. */
typedef struct trli_relaunch trli_relaunch;

/* after: [calls] by call, the earlier calls that it follows: after[first[c]..first[c + 1]); both are copied. Fails with
 * MEMORY. */
TRL_NODISCARD trl_err trli_relaunch_create(trl_device *device, trli_stream stream, int32_t calls, const int32_t *first,
                                           const int32_t *after, trli_relaunch **relaunch);
void trli_relaunch_destroy(trli_relaunch **relaunch);
/* The device; NULL: graphs cannot be made there, or are not wanted. */
trl_device *trli_relaunch_device(const trli_relaunch *relaunch);
/* From here to trli_relaunch_end the relaunch is this thread's. *done: the calls were enqueued as they were before in
 * an equal state, and that is all. state: in which calls would be made now; NULL: unknown. Fails with DEVICE, MEMORY.
 */
TRL_NODISCARD trl_err trli_relaunch_begin(trli_relaunch *relaunch, const trli_relaunch_state *state, bool *done);
/* Gather what this thread enqueues to the device: it belongs to a call. */
void trli_relaunch_gather(trli_relaunch *relaunch, int32_t call);
/* Enqueue what was gathered, unless a call failed. Fails with DEVICE, MEMORY. */
TRL_NODISCARD trl_err trli_relaunch_end(trli_relaunch *relaunch, trl_err err);

/* Enqueue a kernel to a stream of a GPU, or gather it for the stream of the relaunch, or of a chain. bytes: of each of
 * its arguments. Fails with DEVICE, naming the label. */
TRL_NODISCARD trl_err trli_gpu_enqueue(trl_device *device, const trli_gpu_work *work,
                                       const size_t bytes[TRLI_GPU_ARGUMENTS], void *stream, const char *label);

#endif

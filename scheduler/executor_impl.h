/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Devices as executors: an address space, and streams on which calls and copies are done in the order in which they
 * were given, while the host goes on. Backends: device_mock.c, and that of CUDA. */
#ifndef TRLI_EXECUTOR_IMPL_H
#define TRLI_EXECUTOR_IMPL_H

#include <stdatomic.h>

#include <trl_graph.h>

#include "device_impl.h"
#include "machines_impl.h"

/* Streams of a device. Each is first in, first out; between two of them only fences give an order. */
typedef enum trli_stream {
    TRLI_STREAM_COMPUTE,
    TRLI_STREAM_IN,  /* copies to the device */
    TRLI_STREAM_OUT, /* copies from the device */
    TRLI_STREAMS
} trli_stream;

/* A point on a stream: passed when all that was given to the stream before it is done. It may be set again once it was
 * passed. */
typedef struct trli_fence trli_fence;

/* How the calls and copies of a run went: the first error, and which of them it ended; 0: all went well so far. */
typedef struct trli_outcome {
    _Atomic uint64_t first; /* the code below the number */
} trli_outcome;

/* Whose a call or a copy is, and its number among the run's, >= 0. */
typedef struct trli_ticket {
    trli_outcome *outcome; /* in use until the call or copy is over */
    int32_t number;
} trli_ticket;

/* What a backend does for one device. Functions that return trl_err fail with DEVICE, or MEMORY, after recording a
 * message that names the device, but for `allocate`, which is silent about MEMORY, and `passed`.
 *   When a call or a copy fails later, after recording a message, its outcome notes that before a fence behind it is
 * passed; from then on nothing of that outcome is done, and fences are passed as ever. What other runs gave to the
 * stream is done. Of a lost device every function fails but `set` and `wait`: a fence that is passed still tells that
 * its stream does nothing before it. Thread: any. */
typedef struct trli_device_ops {
    trl_err (*allocate)(trl_device *device, size_t bytes, void **memory);
    void (*release)(trl_device *device, void *memory);
    trl_err (*copy)(trl_device *device, trli_stream stream, const trli_box_copy *copy, trli_ticket ticket);
    /* Do, or enqueue, a task's call for this kind of executor: args with the device's space, and its worker number. */
    trl_err (*call)(trl_device *device, trli_stream stream, trl_task_fn run, void *data, const trl_task_args *args,
                    trli_ticket ticket);
    trl_err (*fence_create)(trl_device *device, trli_fence **fence);
    /* Streams may still set it, or wait for it. */
    void (*fence_destroy)(trl_device *device, trli_fence *fence);
    trl_err (*set)(trl_device *device, trli_stream stream, trli_fence *fence);
    /* Whether a fence that was set is passed, of one that was not, true: never waits. Fails, without a message, with
     * *passed true, if the device is lost. */
    trl_err (*passed)(trl_device *device, trli_fence *fence, bool *passed);
    /* What is given to the stream from now on is done after the fence, of this or another device of the same backend,
     * is passed, as it was set last. */
    trl_err (*wait)(trl_device *device, trli_stream stream, trli_fence *fence);
    /* Seconds of the device's clock between two fences of it that were passed. */
    double (*seconds)(trl_device *device, trli_fence *from, trli_fence *to);
    /* Wait until all that was given to the device is done. Thread: any that may sleep. */
    void (*finish)(trl_device *device);
    /* After all devices that use it, or its fences, have finished. */
    void (*close)(trl_device *device);
} trli_device_ops;

/* The first member of each backend's own struct. */
struct trl_device {
    const trli_device_ops *ops;
    trl_context *ctx;
    const trl_devices *all; /* it and those whose memory it may copy; NULL: it alone */
    trl_kind kind;
    int space; /* > 0; executor `space` of a placement */
    trl_device_info info;
    trli_figures figures;
    _Atomic size_t used, peak; /* bytes allocated */
    _Atomic bool lost;         /* nothing more can be done with it */
    /* Something that it was given failed by the device's own fault, or it is lost: it is given no more tasks. Backends
     * set it before they report the failure. */
    _Atomic bool failed;
    _Atomic bool full; /* it had no memory for a graph, which is run without it */
    bool told;         /* a warning said that it failed, or was full. Thread: main */
    bool left_out;     /* it failed, and nothing is valid in its memory any more. Thread: main */
    /* The arguments of a call, and what its frame says, are used up when `call` returns: runs whose tasks are all the
     * device's need not wait for it. */
    bool captures;
    trli_fence *end[2]; /* behind the last two such runs, in turns; NULL: made when needed */
    int64_t ends;       /* such runs so far, and since then nobody waited for all that was given */
};

struct trl_devices {
    trl_context *ctx;
    bool required; /* they were asked for by name: if one fails, so does what it was used for */
    int n;
    trl_device *device[TRL_DEVICES_MAX]; /* device i has the space i + 1 */
};

static inline trl_device *trli_device_of(const trl_devices *devices, int space)
{
    return devices->device[space - 1];
}

/* Release and acquire: of the message that was recorded before. */
static inline void trli_outcome_note(trli_ticket ticket, trl_err err)
{
    uint64_t none = 0;
    const uint64_t first = (uint64_t)ticket.number << 32 | (uint32_t)err;
    atomic_compare_exchange_strong_explicit(&ticket.outcome->first, &none, first, memory_order_release,
                                            memory_order_relaxed);
}

static inline trl_err trli_outcome_err(const trli_outcome *outcome)
{
    return (trl_err)(uint32_t)atomic_load_explicit(&outcome->first, memory_order_acquire);
}

/* What failed first, if something did. */
static inline int32_t trli_outcome_number(const trli_outcome *outcome)
{
    return (int32_t)(atomic_load_explicit(&outcome->first, memory_order_acquire) >> 32);
}

/* A copy of a piece of data to its place in another space. */
static inline trli_box_copy trli_copy_of_boxes(const trl_memory_box *from, int from_space, const trl_memory_box *to,
                                               int to_space)
{
    return (trli_box_copy){.to = to->at,
                           .from = from->at,
                           .to_space = to_space,
                           .from_space = from_space,
                           .row = from->row,
                           .rows = from->rows,
                           .planes = from->planes,
                           .to_row = to->row_stride,
                           .to_plane = to->plane_stride,
                           .from_row = from->row_stride,
                           .from_plane = from->plane_stride};
}

/* Nothing more is done with what a device holds. */
static inline void trli_device_lose(trl_device *device)
{
    atomic_store(&device->failed, true);
    atomic_store(&device->lost, true);
}

static inline bool trli_device_usable(const trl_device *device)
{
    return !atomic_load_explicit(&device->failed, memory_order_relaxed) &&
           !atomic_load_explicit(&device->lost, memory_order_relaxed);
}

/* Wait for the runs that a device may be at still, after they returned. */
TRL_NODISCARD trl_err trli_device_finish(trl_device *device);
/* Copy to or from a device, and wait until it is done: not in a task. */
TRL_NODISCARD trl_err trli_device_copy_now(trl_device *device, int n, const trli_box_copy *copies);

/* Open the n-th mock device, 0 <= n, as `settings` say: "speed=4,latency=10us", as in TRL_MOCK_DEVICES behind the
 * number; docs/hybrid.md has them all. Its space is n + 1 until devices.c says otherwise. Fails with INPUT, MEMORY. */
TRL_NODISCARD trl_err trli_mock_open(trl_context *ctx, int n, const char *settings, trl_device **device);

/* Open the GPU of this index, as trl_device_get_info counts them. Its space is 1 until devices.c says otherwise. Fails
 * with MEMORY; with DEVICE, without a message, but with the reason. */
enum { TRLI_GPU_WHY_ROOM = 256 };
TRL_NODISCARD trl_err trli_gpu_open(trl_context *ctx, int index, char why[TRLI_GPU_WHY_ROOM], trl_device **device);
/* Let an opened GPU copy to and from the memory of others directly, where the machine has a way. */
void trli_gpu_befriend(const trl_devices *devices);
/* Memory of the host that a GPU's kernels may write, too. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_gpu_host_allocate(trl_device *device, size_t bytes, void **memory);
void trli_gpu_host_release(trl_device *device, void *memory);
/* What happened to an opened GPU: records a message, and marks it lost if nothing more can be done with it. Returns
 * DEVICE. what: "launching kernel 'u'" */
TRL_NODISCARD trl_err trli_gpu_fail(trl_device *device, int code, const char *what, ...) TRL_PRINTF(3, 4);

#endif

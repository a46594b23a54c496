/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Devices as executors: an address space and streams, on which calls and copies are done in the order in which they
 * were issued while the host continues. Backends: device_mock.c, device_gpu.c. */
#ifndef TRLI_EXECUTOR_IMPL_H
#define TRLI_EXECUTOR_IMPL_H

#include <stdatomic.h>

#include <trl_graph.h>

#include "device_impl.h"
#include "machines_impl.h"

/* Streams of a device. Each is first in, first out; only fences order one stream after another. */
typedef enum trli_stream {
    TRLI_STREAM_COMPUTE,
    TRLI_STREAM_IN,     /* copies to the device */
    TRLI_STREAM_OUT,    /* copies from the device */
    TRLI_STREAM_URGENT, /* calls of a GPU that are done beside, and before, those of the first: TRL_TASK_URGENT */
    TRLI_STREAMS
} trli_stream;

/* A point on a stream. The fence is passed when everything issued to the stream before it is done. It may be set
 * again after it was passed. */
typedef struct trli_fence trli_fence;

/* The outcome of the calls and copies of a run: the first error and the number of the call or copy that failed; 0:
 * none has failed. */
typedef struct trli_outcome {
    _Atomic uint64_t first; /* the number above, the code below */
} trli_outcome;

/* The owner of a call or a copy, and its number >= 0 among those of the run. */
typedef struct trli_ticket {
    trli_outcome *outcome; /* in use until the call or copy is over */
    int32_t number;
} trli_ticket;

/* The operations of a backend on one device. Functions that return trl_err fail with DEVICE or MEMORY after
 * recording a message that names the device; but `allocate` records none for MEMORY, and `passed` none at all. When
 * a call or a copy fails later, a message is recorded and the outcome set before a fence behind it is passed. From
 * then on nothing else of that outcome is done, and fences are passed as usual; what other runs issued to the stream
 * is done. On a lost device every function fails but `set` and `wait`: a passed fence still means that its stream
 * does nothing that was issued before it. Thread: any. */
typedef struct trli_device_ops {
    trl_err (*allocate)(trl_device *device, size_t bytes, void **memory);
    void (*release)(trl_device *device, void *memory);
    trl_err (*copy)(trl_device *device, trli_stream stream, const trli_box_copy *copy, trli_ticket ticket);
    /* OPTIONAL: the same for n <= TRLI_COPIES at once, in any order. */
    trl_err (*copies)(trl_device *device, trli_stream stream, int n, const trli_box_copy *copy, trli_ticket ticket);
    /* Do, or enqueue, a task's call for this kind of executor. args: with the device's space and worker number. */
    trl_err (*call)(trl_device *device, trli_stream stream, trl_task_fn run, void *data, const trl_task_args *args,
                    trli_ticket ticket);
    /* timed: `seconds` may be asked of it. */
    trl_err (*fence_create)(trl_device *device, bool timed, trli_fence **fence);
    /* Streams may still be about to set it, or wait for it. */
    void (*fence_destroy)(trl_device *device, trli_fence *fence);
    trl_err (*set)(trl_device *device, trli_stream stream, trli_fence *fence);
    /* Whether a fence has been passed; true if it was never set. Never waits. Fails, without a message and with
     * *passed true, if the device is lost. */
    trl_err (*passed)(trl_device *device, trli_fence *fence, bool *passed);
    /* What is issued to the stream from now on is done after the fence, as it was set last, is passed. The fence
     * belongs to this or another device of the same backend. */
    trl_err (*wait)(trl_device *device, trli_stream stream, trli_fence *fence);
    /* Seconds on the device's clock between two of its timed fences, both of them passed. */
    double (*seconds)(trl_device *device, trli_fence *from, trli_fence *to);
    /* Wait until everything issued to the device is done. Thread: any that may sleep. */
    void (*finish)(trl_device *device);
    /* Called after all devices that use it, or its fences, have finished. */
    void (*close)(trl_device *device);
} trli_device_ops;

/* The first member of each backend's own struct. */
/* Runs that may be in progress on a device at most: while it does them, the host gathers what comes next. */
enum { TRLI_RUNS_AHEAD = 8 };

struct trl_device {
    const trli_device_ops *ops;
    trl_context *ctx;
    const trl_devices *all; /* this device and those with which it exchanges copies; NULL: none */
    trl_kind kind;
    int space; /* > 0; executor `space` of a placement */
    trl_device_info info;
    trli_figures figures;
    _Atomic size_t used, peak; /* bytes allocated */
    _Atomic bool lost;         /* the device cannot be used any more */
    /* A call or copy failed by the device's own fault, or the device is lost: it gets no more tasks. Backends set
     * this before they report the failure. */
    _Atomic bool failed;
    _Atomic bool full; /* there was not enough memory for a graph, which runs without the device */
    bool told;         /* a warning was given that it failed, or was full. Thread: main */
    bool left_out;     /* it failed, and no data is valid in its memory any more. Thread: main */
    bool adds_up;      /* its streams add up what their commands take, on clocks that are not the host's */
    /* The arguments of a call, and the contents of its frame, have been read when `call` returns: a run whose tasks
     * all run on the device need not wait for it. */
    bool captures;
    trli_fence *end[TRLI_RUNS_AHEAD]; /* behind the last such runs, in turns; NULL: made when needed */
    int64_t ends;                     /* such runs since the host last waited for the device */
    int64_t runs;                     /* such runs in all */
    /* How often the host could not go on before the device had done all, or a part, of what it had been given. */
    _Atomic int64_t waits;
    struct trli_relaunch *chain; /* between trli_chain_begin and trli_chain_end, else NULL */
    bool chained;                /* a run, or a call, was left to the device since its chain was last sent off */
    trli_fence *join;            /* behind the urgent calls of such a run, before its end; NULL: made when needed */
};

struct trl_devices {
    trl_context *ctx;
    bool required; /* the user named devices: if one fails, the run fails */
    int n;
    trl_device *device[TRL_DEVICES_MAX]; /* device i has the space i + 1 */
};

static inline trl_device *trli_device_of(const trl_devices *devices, int space)
{
    return devices->device[space - 1];
}

/* The number of such runs with the last one, which its chain has until it is sent off. */
static inline int64_t trli_device_last_run(const trl_device *device)
{
    return device->runs + (device->chain && device->chained);
}

/* Release, and acquire below: of the message that was recorded before. */
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

/* The number of the call or copy that failed first, if one failed. */
static inline int32_t trli_outcome_number(const trli_outcome *outcome)
{
    return (int32_t)(atomic_load_explicit(&outcome->first, memory_order_acquire) >> 32);
}

/* Copy a piece of data to its place in another space. */
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

/* The contents of a device's memory are not needed any more. */
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

/* Copy n <= TRLI_COPIES boxes, none of which overlaps another one's target: `copies`, or `copy` for each. */
TRL_NODISCARD trl_err trli_device_copies(trl_device *device, trli_stream stream, int n, const trli_box_copy *copies,
                                         trli_ticket ticket);
/* Wait for runs that have returned while devices still work for them. */
TRL_NODISCARD trl_err trli_device_finish(trl_device *device);
/* Wait for such a run, of which there have been `runs` with it. */
TRL_NODISCARD trl_err trli_device_await(trl_device *device, int64_t runs);
/* Copy to or from a device and wait for the copy: not in a task. */
TRL_NODISCARD trl_err trli_device_copy_now(trl_device *device, int n, const trli_box_copy *copies);
/* Memory of a device that begins with `given` bytes of the host's; what follows them is not set. Waits. */
TRL_NODISCARD trl_err trli_device_upload(trl_device *device, size_t bytes, const void *from, size_t given,
                                         void **memory);
/* Make a call behind all that devices were given, and go on, if the device captures: as a run that is left to it. Not
 * in a task. */
TRL_NODISCARD trl_err trli_device_call(trl_device *device, trl_task_fn run, void *data, const trl_task_args *args);
/* Its parts: what the device is given from now on is done after what others are at; and what it was given is a run that
 * is left to it. */
TRL_NODISCARD trl_err trli_device_wait_for_others(trl_device *device);
TRL_NODISCARD trl_err trli_device_leave(trl_device *device);
/* What the one GPU of some devices is given from here to the end, by runs that are left to it and by calls, is gathered
 * and sent off as one launch: a CUDA graph, if it was the same before but for arguments. Who waits for the GPU or gives
 * it anything but kernels sends off first what there is. Nothing without devices, with several, and without GPUs.
 * *chain: NULL at first; trli_chain_destroy gives it back. Thread: main, not during a run. Fail with DEVICE, MEMORY. */
TRL_NODISCARD trl_err trli_chain_begin(const trl_devices *devices, struct trli_relaunch **chain);
TRL_NODISCARD trl_err trli_chain_end(const trl_devices *devices);
void trli_chain_destroy(struct trli_relaunch **chain);
/* Send off what there is. Thread: any. */
TRL_NODISCARD trl_err trli_chain_send(trl_device *device);
/* Make a call, and wait until it is done: not in a task. */
TRL_NODISCARD trl_err trli_device_call_now(trl_device *device, trl_task_fn run, void *data, const trl_task_args *args);

/* Open the n-th mock device, 0 <= n, with `settings` as in TRL_MOCK_DEVICES: "speed=4,latency=10us" (docs/hybrid.md
 * lists all). Its space is n + 1 unless devices.c changes it. Fails with INPUT, MEMORY. */
TRL_NODISCARD trl_err trli_mock_open(trl_context *ctx, int n, const char *settings, trl_device **device);

/* Open the GPU with this index, as trl_device_get_info counts. Its space is 1 unless devices.c changes it. Fails
 * with MEMORY; with DEVICE, without a message, but with the reason in `why`. */
enum { TRLI_GPU_WHY_ROOM = 256 };
TRL_NODISCARD trl_err trli_gpu_open(trl_context *ctx, int index, char why[TRLI_GPU_WHY_ROOM], trl_device **device);
/* Let opened GPUs copy to and from each other's memory directly, if the machine allows it. */
void trli_gpu_befriend(const trl_devices *devices);
/* Whether an opened GPU's kernels can access the memory of a space. */
bool trli_gpu_reaches(const trl_device *device, int space);
/* Memory of the host that a GPU's kernels may write, too. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_gpu_host_allocate(trl_device *device, size_t bytes, void **memory);
void trli_gpu_host_release(trl_device *device, void *memory);
/* Keep memory of the host in place: GPUs copy from it and to it without buffers, and the host does not wait for them.
 * Returns whether that was possible. */
bool trli_gpu_pin(trl_device *device, void *memory, size_t bytes);
void trli_gpu_unpin(trl_device *device, void *memory);
/* Let other processes open memory of a GPU, in whole units of TRLI_GPU_SHARED_UNIT; open another process's memory, so
 * that the GPU's kernels reach it, and close it. Return whether that was possible. */
bool trli_gpu_offer(trl_device *device, void *memory, trli_gpu_handle *handle);
bool trli_gpu_open_memory(trl_device *device, const trli_gpu_handle *handle, void **memory);
void trli_gpu_close_memory(trl_device *device, void *memory);
/* Enqueue a copy from or to a GPU's memory in a call of a task. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_gpu_copy_bytes(trl_device *device, void *to, const void *from, size_t bytes, void *stream);
/* The same copy by another task: waits until it is done. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_gpu_copy_and_wait(trl_device *device, void *to, const void *from, size_t bytes);
/* Use a GPU from this thread: what calls it, and one of its streams. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_gpu_use(trl_device *device, trli_stream stream, const trli_gpu_api **api, void **at);
/* Record a message about a failed call of CUDA, and mark the GPU lost if it cannot be used any more. Returns DEVICE.
 * what: "launching kernel 'u'" */
TRL_NODISCARD trl_err trli_gpu_fail(trl_device *device, int code, const char *what, ...) TRL_PRINTF(3, 4);

/* ---- runs of graphs that devices do ---- */

/* Where devices do all, whether runs may begin while others than the run before are in progress: they leave nothing to
 * be looked at once the next one has begun. */
void trli_graph_set_leading(trl_graph *graph, bool leads);
/* Between runs: whether the last one, and the next one as far as is known, are left to devices; after another placement
 * false. */
bool trli_graph_left_to_devices(trl_graph *graph);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* GPUs as executors. Kernels and copies are enqueued by the thread that issues them. The GPU reports their errors
 * when a fence is queried, and the error is permanent: such a device is lost. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor_impl.h"
#include "memory_impl.h"

enum { KERNEL_FROM = 4 };

typedef struct block {
    void *at;
    size_t bytes;
} block;

typedef struct gpu {
    trl_device device;
    const trli_gpu_api *api;
    int index;
    unsigned reach;  /* spaces whose memory its kernels can access, a bit each */
    int kernel_from; /* boxes that are copied at once: from so many on a kernel does it */
    void *stream[TRLI_STREAMS];
    pthread_mutex_t calls;  /* held during a call: task functions use the scratch memory of the device's lane */
    pthread_mutex_t memory; /* guards the blocks: */
    block *block;
    int64_t blocks;
    int32_t capacity;
} gpu;

struct trli_fence {
    void *event;
};

static gpu *gpu_of(trl_device *device)
{
    return (gpu *)device;
}

static trl_err refuse_lost(trl_device *device)
{
    return trl_fail(device->ctx, TRL_ERR_DEVICE, NULL,
                    "GPU %d (%s) is lost: nothing more can be done with it in this process; run again, with devices "
                    "'cpu' if it stays so",
                    gpu_of(device)->index, device->info.name);
}

trl_err trli_gpu_fail(trl_device *device, int code, const char *what, ...)
{
    const gpu *g = gpu_of(device);
    char said[160];
    va_list args;
    va_start(args, what);
    vsnprintf(said, sizeof said, what, args);
    va_end(args);
    atomic_store(&device->failed, true);
    if (!g->api->is_fatal(code))
        return trl_fail(device->ctx, TRL_ERR_DEVICE, NULL, "GPU %d (%s): %s failed: %s; see nvidia-smi", g->index,
                        device->info.name, said, g->api->message(code));
    if (atomic_exchange(&device->lost, true)) return TRL_ERR_DEVICE; /* the message was recorded */
    return trl_fail(device->ctx, TRL_ERR_DEVICE, NULL,
                    "GPU %d (%s): %s failed: %s; the GPU is lost for this process: run again under compute-sanitizer, "
                    "which names the kernel, or with devices 'cpu'",
                    g->index, device->info.name, said, g->api->message(code));
}

/* ---- memory ---- */

static trl_err allocate(trl_device *device, size_t bytes, void **memory)
{
    gpu *g = gpu_of(device);
    *memory = NULL;
    if (atomic_load(&device->lost)) return refuse_lost(device);
    if (bytes == 0) bytes = 1; /* so that the block has an address of its own */
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->allocate(bytes, memory);
    if (code && g->api->is_memory(code)) return TRL_ERR_MEMORY;
    if (code) return trli_gpu_fail(device, code, "allocating %zu bytes", bytes);
    pthread_mutex_lock(&g->memory);
    const bool room = trli_make_room(device->ctx, &g->block, g->blocks, 1, &g->capacity, sizeof(block));
    if (room) g->block[g->blocks++] = (block){*memory, bytes};
    pthread_mutex_unlock(&g->memory);
    if (!room) {
        (void)g->api->release(*memory);
        *memory = NULL;
        return TRL_ERR_MEMORY;
    }
    trli_memory_raise(&device->peak, atomic_fetch_add(&device->used, bytes) + bytes);
    return TRL_OK;
}

static void release(trl_device *device, void *memory)
{
    gpu *g = gpu_of(device);
    size_t bytes = 0;
    if (!memory) return;
    pthread_mutex_lock(&g->memory);
    for (int64_t i = g->blocks - 1; i >= 0 && bytes == 0; --i) {
        if (g->block[i].at != memory) continue;
        bytes = g->block[i].bytes;
        g->block[i] = g->block[--g->blocks];
    }
    pthread_mutex_unlock(&g->memory);
    atomic_fetch_sub(&device->used, bytes);
    if (g->api->use(g->index) == 0) (void)g->api->release(memory);
}

trl_err trli_gpu_host_allocate(trl_device *device, size_t bytes, void **memory)
{
    const gpu *g = gpu_of(device);
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->host_allocate(bytes, memory);
    if (code == 0) memset(*memory, 0, bytes);
    return code ? trli_gpu_fail(device, code, "allocating %zu bytes of the host's memory", bytes) : TRL_OK;
}

void trli_gpu_host_release(trl_device *device, void *memory)
{
    const gpu *g = gpu_of(device);
    if (g->api->use(g->index) == 0) (void)g->api->host_release(memory);
}

bool trli_gpu_pin(trl_device *device, void *memory, size_t bytes)
{
    const gpu *g = gpu_of(device);
    return !atomic_load(&device->lost) && g->api->use(g->index) == 0 && g->api->pin(memory, bytes) == 0;
}

void trli_gpu_unpin(trl_device *device, void *memory)
{
    const gpu *g = gpu_of(device);
    if (g->api->use(g->index) == 0) (void)g->api->unpin(memory);
}

/* ---- memory that other processes reach ---- */

bool trli_gpu_offer(trl_device *device, void *memory, trli_gpu_handle *handle)
{
    const gpu *g = gpu_of(device);
    return trli_device_usable(device) && g->api->use(g->index) == 0 && g->api->offer(memory, handle) == 0;
}

bool trli_gpu_open_memory(trl_device *device, const trli_gpu_handle *handle, void **memory)
{
    const gpu *g = gpu_of(device);
    return trli_device_usable(device) && g->api->use(g->index) == 0 && g->api->open(handle, memory) == 0;
}

void trli_gpu_close_memory(trl_device *device, void *memory)
{
    const gpu *g = gpu_of(device);
    if (g->api->use(g->index) == 0) (void)g->api->close(memory);
}

trl_err trli_gpu_copy_bytes(trl_device *device, void *to, const void *from, size_t bytes, void *stream)
{
    const gpu *g = gpu_of(device);
    const trli_box_copy what = {.to = to, .from = from, .row = bytes, .rows = 1, .planes = 1};
    if (atomic_load(&device->lost)) return refuse_lost(device);
    const trl_err sent = trli_chain_send(device);
    if (sent != TRL_OK) return sent;
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->copy(&what, stream);
    return code ? trli_gpu_fail(device, code, "a copy of %zu bytes of a message", bytes) : TRL_OK;
}

trl_err trli_gpu_copy_and_wait(trl_device *device, void *to, const void *from, size_t bytes)
{
    const gpu *g = gpu_of(device);
    trl_err err;
    TRL_TRY(trli_gpu_copy_bytes(device, to, from, bytes, g->stream[TRLI_STREAM_OUT]));
    const int code = g->api->stream_finish(g->stream[TRLI_STREAM_OUT]);
    if (code) err = trli_gpu_fail(device, code, "a copy of %zu bytes of a message", bytes);
done:
    return err;
}

/* ---- work ---- */

static trl_err copy(trl_device *device, trli_stream stream, const trli_box_copy *what, trli_ticket ticket)
{
    const gpu *g = gpu_of(device);
    if (trli_outcome_err(ticket.outcome) != TRL_OK) return TRL_OK;
    if (atomic_load(&device->lost)) return refuse_lost(device);
    const trl_err sent = trli_chain_send(device);
    if (sent != TRL_OK) return sent;
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->copy(what, g->stream[stream]);
    return code ? trli_gpu_fail(device, code, "a copy of %lld rows of %zu bytes from space %d to space %d",
                                (long long)(what->rows * what->planes), what->row, what->from_space, what->to_space)
                : TRL_OK;
}

/* A copy by the driver costs the host more than the launch of a kernel, which makes many. */
static bool takes_kernel(const gpu *g, int n, const trli_box_copy *copy)
{
    if (g->kernel_from == 0 || n < g->kernel_from) return false;
    for (int i = 0; i < n; ++i)
        if (!(g->reach >> copy[i].from_space & 1) || !(g->reach >> copy[i].to_space & 1)) return false;
    return true;
}

static trl_err copies(trl_device *device, trli_stream stream, int n, const trli_box_copy *what, trli_ticket ticket)
{
    const gpu *g = gpu_of(device);
    trl_err err = TRL_OK;
    for (int i = 0; i < n && !takes_kernel(g, n, what); ++i) TRL_TRY(copy(device, stream, &what[i], ticket));
    if (!takes_kernel(g, n, what) || trli_outcome_err(ticket.outcome) != TRL_OK) return TRL_OK;
    if (atomic_load(&device->lost)) return refuse_lost(device);
    TRL_TRY(trli_chain_send(device));
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->copy_boxes(n, what, g->stream[stream]);
    if (code) err = trli_gpu_fail(device, code, "copying %d boxes to space %d", n, what[0].to_space);
done:
    return err;
}

static trl_err call(trl_device *device, trli_stream stream, trl_task_fn run, void *data, const trl_task_args *args,
                    trli_ticket ticket)
{
    gpu *g = gpu_of(device);
    trl_task_args own = *args;
    bool done = true;
    if (trli_outcome_err(ticket.outcome) != TRL_OK) return TRL_OK;
    if (atomic_load(&device->lost)) return refuse_lost(device);
    const int code = g->api->use(g->index);
    if (code) return trli_gpu_fail(device, code, "a launch");
    own.stream = g->stream[stream];
    pthread_mutex_lock(&g->calls);
    const trl_err err = run(data, &own, &done);
    pthread_mutex_unlock(&g->calls);
    return err;
}

trl_err trli_gpu_use(trl_device *device, trli_stream stream, const trli_gpu_api **api, void **at)
{
    const gpu *g = gpu_of(device);
    if (atomic_load(&device->lost)) return refuse_lost(device);
    const int code = g->api->use(g->index);
    *api = g->api;
    *at = g->stream[stream];
    return code ? trli_gpu_fail(device, code, "a launch") : TRL_OK;
}

/* ---- fences ---- */

static trl_err fence_create(trl_device *device, bool timed, trli_fence **result)
{
    gpu *g = gpu_of(device);
    *result = NULL;
    if (atomic_load(&device->lost)) return refuse_lost(device);
    trli_fence *fence = trli_new(device->ctx, 1, sizeof *fence);
    if (!fence) return trli_no_memory(device->ctx, NULL, "for a fence of GPU %d", g->index);
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->event_create(&fence->event, timed);
    if (code) {
        trli_free(fence);
        return trli_gpu_fail(device, code, "making an event");
    }
    *result = fence;
    return TRL_OK;
}

static void fence_destroy(trl_device *device, trli_fence *fence)
{
    gpu *g = gpu_of(device);
    if (!fence) return;
    if (g->api->use(g->index) == 0) g->api->event_destroy(fence->event);
    trli_free(fence);
}

static trl_err set(trl_device *device, trli_stream stream, trli_fence *fence)
{
    const gpu *g = gpu_of(device);
    if (atomic_load(&device->lost)) return TRL_OK;
    const trl_err sent = trli_chain_send(device);
    if (sent != TRL_OK) return sent;
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->event_record(fence->event, g->stream[stream]);
    return code ? trli_gpu_fail(device, code, "recording an event") : TRL_OK;
}

static trl_err wait(trl_device *device, trli_stream stream, trli_fence *fence)
{
    const gpu *g = gpu_of(device);
    if (atomic_load(&device->lost)) return TRL_OK;
    const trl_err sent = trli_chain_send(device);
    if (sent != TRL_OK) return sent;
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->event_wait(fence->event, g->stream[stream]);
    return code ? trli_gpu_fail(device, code, "waiting for an event") : TRL_OK;
}

static trl_err passed(trl_device *device, trli_fence *fence, bool *is_passed)
{
    const gpu *g = gpu_of(device);
    *is_passed = true;
    if (atomic_load(&device->lost)) return TRL_ERR_DEVICE;
    int code = g->api->use(g->index);
    if (code == 0) code = g->api->event_query(fence->event, is_passed);
    return code ? trli_gpu_fail(device, code, "work that it was given") : TRL_OK;
}

static double seconds(trl_device *device, trli_fence *from, trli_fence *to)
{
    const gpu *g = gpu_of(device);
    if (atomic_load(&device->lost) || g->api->use(g->index)) return 0;
    const double s = g->api->event_seconds(from->event, to->event);
    return s > 0 ? s : 0;
}

/* ---- the device ---- */

static void finish(trl_device *device)
{
    const gpu *g = gpu_of(device);
    if (g->api->use(g->index) || trli_chain_send(device) != TRL_OK) return;
    for (int i = 0; i < TRLI_STREAMS; ++i)
        if (g->stream[i]) (void)g->api->stream_finish(g->stream[i]);
}

static void close(trl_device *device)
{
    gpu *g = gpu_of(device);
    const bool usable = g->api->use(g->index) == 0;
    for (int i = 0; i < TRLI_STREAMS && usable; ++i)
        if (g->stream[i]) g->api->stream_destroy(g->stream[i]);
    for (int64_t i = 0; i < g->blocks && usable; ++i) (void)g->api->release(g->block[i].at);
    pthread_mutex_destroy(&g->calls);
    pthread_mutex_destroy(&g->memory);
    trli_free(g->block);
    trli_free(g);
}

static const trli_device_ops ops = {
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .copies = copies,
    .call = call,
    .fence_create = fence_create,
    .fence_destroy = fence_destroy,
    .set = set,
    .passed = passed,
    .wait = wait,
    .seconds = seconds,
    .finish = finish,
    .close = close,
};

trl_err trli_gpu_open(trl_context *ctx, int index, char why[TRLI_GPU_WHY_ROOM], trl_device **device)
{
    const trli_gpu_api *api = trli_gpu_api_get();
    gpu *g = trli_new(ctx, 1, sizeof *g);
    *device = NULL;
    if (!g) return trli_no_memory(ctx, NULL, "for GPU %d", index);
    g->device.ops = &ops;
    g->device.ctx = ctx;
    g->device.kind = TRL_KIND_GPU;
    g->device.space = 1;
    g->device.captures = true;
    g->api = api;
    g->index = index;
    const char *from = getenv("TRELLIS_GPU_COPIES");
    g->kernel_from = from ? atoi(from) : KERNEL_FROM; /* a word, as `off`: 0 */
    pthread_mutex_init(&g->calls, NULL);
    pthread_mutex_init(&g->memory, NULL);
    const char *reason = trli_device_backend_describe(index, &g->device.info);
    if (!reason) g->device.figures = trli_figures_of(g->device.info.name, (double)g->device.info.bytes);
    int code = reason ? 0 : api->use(index);
    for (int i = 0; i < TRLI_STREAMS && code == 0 && !reason; ++i)
        code = api->stream_create(&g->stream[i], i != TRLI_STREAM_COMPUTE);
    if (!reason && code == 0) {
        *device = &g->device;
        return TRL_OK;
    }
    snprintf(why, TRLI_GPU_WHY_ROOM, "%s", reason ? reason : api->message(code));
    close(&g->device);
    return TRL_ERR_DEVICE;
}

bool trli_gpu_reaches(const trl_device *device, int space)
{
    return ((const gpu *)device)->reach >> space & 1;
}

void trli_gpu_befriend(const trl_devices *devices)
{
    for (int i = 0; i < devices->n; ++i)
        for (int k = 0; k < devices->n; ++k) {
            gpu *g = gpu_of(devices->device[i]);
            bool near = i == k;
            if (i != k && g->api->use(g->index) == 0) (void)g->api->befriend(gpu_of(devices->device[k])->index, &near);
            if (near) g->reach |= 1u << devices->device[k]->space;
        }
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The CUDA backend. The runtime is linked statically and loads the driver itself: on a machine without a driver
 * there are no devices. */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#include "device_impl.h"

bool trli_device_backend_exists(void)
{
    return true;
}

/* Those that there are. */
static int count_gpus()
{
    static const int found = [] {
        int count = 0;
        return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
    }();
    return found;
}

/* TRELLIS_GPU_TIMES=n: each counts as n. Device i is that number of those, from the beginning again where there are no
 * more. */
int trli_device_backend_count(void)
{
    const char *text = std::getenv("TRELLIS_GPU_TIMES");
    const int times = text ? std::atoi(text) : 1;
    return count_gpus() * (times > 1 && times < 64 ? times : 1);
}

static int gpu_of(int index)
{
    const int count = count_gpus();
    return count > 0 ? index % count : index;
}

const char *trli_device_backend_describe(int index, trl_device_info *info)
{
    cudaDeviceProp properties;
    cudaError_t status = cudaGetDeviceProperties(&properties, gpu_of(index));
    if (status != cudaSuccess) return cudaGetErrorString(status);
    std::snprintf(info->name, sizeof info->name, "%s", properties.name);
    info->major = properties.major;
    info->minor = properties.minor;
    info->multiprocessors = properties.multiProcessorCount;
    info->cache_bytes = static_cast<size_t>(properties.l2CacheSize);
    info->shared_bytes = properties.sharedMemPerBlockOptin;
    info->bytes = properties.totalGlobalMem;
    return nullptr;
}

/* ---- for device_gpu.c and kernels ---- */

static const char *message(int code)
{
    return cudaGetErrorString(static_cast<cudaError_t>(code));
}

static bool is_memory(int code)
{
    return code == cudaErrorMemoryAllocation;
}

/* An error code that a second query still returns is permanent for this process. */
static bool is_fatal(int code)
{
    if (code == cudaSuccess) return false;
    cudaGetLastError();
    return cudaStreamQuery(cudaStreamPerThread) == code || cudaFree(nullptr) == code;
}

static int use(int index)
{
    return cudaSetDevice(gpu_of(index));
}

static int befriend(int other, bool *near)
{
    const int peer = gpu_of(other);
    int self = 0, can = 0;
    cudaError_t status = cudaGetDevice(&self);
    *near = status == cudaSuccess && self == peer;
    if (*near) return status;
    if (status == cudaSuccess) status = cudaDeviceCanAccessPeer(&can, self, peer);
    if (status == cudaSuccess && can) status = cudaDeviceEnablePeerAccess(peer, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
        status = cudaSuccess;
    }
    *near = can && status == cudaSuccess;
    return status;
}

static int stream_create(void **stream, bool urgent)
{
    int least = 0, greatest = 0;
    const cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (status != cudaSuccess) return status;
    return cudaStreamCreateWithPriority(reinterpret_cast<cudaStream_t *>(stream), cudaStreamNonBlocking,
                                        urgent ? greatest : least);
}

static void stream_destroy(void *stream)
{
    cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

static int stream_finish(void *stream)
{
    return cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
}

static int event_create(void **event, bool timed)
{
    return cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t *>(event),
                                    timed ? cudaEventDefault : cudaEventDisableTiming);
}

static void event_destroy(void *event)
{
    cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

static int event_record(void *event, void *stream)
{
    return cudaEventRecord(static_cast<cudaEvent_t>(event), static_cast<cudaStream_t>(stream));
}

static int event_query(void *event, bool *passed)
{
    const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
    *passed = status != cudaErrorNotReady;
    return *passed ? status : cudaSuccess;
}

static int event_wait(void *event, void *stream)
{
    return cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event), 0);
}

static double event_seconds(void *from, void *to)
{
    float ms = -1;
    if (cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(from), static_cast<cudaEvent_t>(to)) != cudaSuccess) {
        cudaGetLastError();
        return -1;
    }
    return 1e-3 * ms;
}

static int allocate(size_t bytes, void **memory)
{
    const cudaError_t status = cudaMalloc(memory, bytes);
    if (status != cudaSuccess) cudaGetLastError();
    return status;
}

static int release(void *memory)
{
    return cudaFree(memory);
}

static_assert(sizeof(trli_gpu_handle) == sizeof(cudaIpcMemHandle_t), "a handle of memory");

static int offer(void *memory, trli_gpu_handle *handle)
{
    const cudaError_t status = cudaIpcGetMemHandle(reinterpret_cast<cudaIpcMemHandle_t *>(handle), memory);
    if (status != cudaSuccess) cudaGetLastError();
    return status;
}

static int open(const trli_gpu_handle *handle, void **memory)
{
    const cudaError_t status = cudaIpcOpenMemHandle(memory, *reinterpret_cast<const cudaIpcMemHandle_t *>(handle),
                                                    cudaIpcMemLazyEnablePeerAccess);
    if (status != cudaSuccess) cudaGetLastError();
    return status;
}

static int close(void *memory)
{
    return cudaIpcCloseMemHandle(memory);
}

static int host_allocate(size_t bytes, void **memory)
{
    const cudaError_t status = cudaHostAlloc(memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    if (status != cudaSuccess) cudaGetLastError();
    return status;
}

static int host_release(void *memory)
{
    return cudaFreeHost(memory);
}

static int pin(void *memory, size_t bytes)
{
    const cudaError_t status = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
    if (status != cudaSuccess) cudaGetLastError();
    return status;
}

static int unpin(void *memory)
{
    return cudaHostUnregister(memory);
}

/* An address determines in whose memory it lies. */
static int copy_rows(const trli_box_copy *c, int64_t plane, int64_t rows, ptrdiff_t to_row, ptrdiff_t from_row,
                     cudaStream_t stream)
{
    char *to = static_cast<char *>(c->to) + plane * c->to_plane;
    const char *from = static_cast<const char *>(c->from) + plane * c->from_plane;
    const ptrdiff_t row = static_cast<ptrdiff_t>(c->row);
    if (rows == 1 || (to_row == row && from_row == row))
        return cudaMemcpyAsync(to, from, c->row * static_cast<size_t>(rows), cudaMemcpyDefault, stream);
    return cudaMemcpy2DAsync(to, static_cast<size_t>(to_row), from, static_cast<size_t>(from_row), c->row,
                             static_cast<size_t>(rows), cudaMemcpyDefault, stream);
}

/* A box in one call: CUDA requires that planes are a whole number of rows apart. */
static int copy_planes(const trli_box_copy *c, cudaStream_t stream)
{
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(const_cast<void *>(c->from), static_cast<size_t>(c->from_row), c->row,
                                   static_cast<size_t>(c->from_plane / c->from_row));
    p.dstPtr = make_cudaPitchedPtr(c->to, static_cast<size_t>(c->to_row), c->row,
                                   static_cast<size_t>(c->to_plane / c->to_row));
    p.extent = make_cudaExtent(c->row, static_cast<size_t>(c->rows), static_cast<size_t>(c->planes));
    p.kind = cudaMemcpyDefault;
    return cudaMemcpy3DAsync(&p, stream);
}

static bool is_regular(const trli_box_copy *c)
{
    const ptrdiff_t row = static_cast<ptrdiff_t>(c->row), rows = static_cast<ptrdiff_t>(c->rows);
    return c->from_row >= row && c->to_row >= row && c->from_plane % c->from_row == 0 && c->to_plane % c->to_row == 0 &&
           c->from_plane / c->from_row >= rows && c->to_plane / c->to_row >= rows;
}

static int copy(const trli_box_copy *c, void *on)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(on);
    int status = cudaSuccess;
    if (c->row == 0 || c->rows == 0 || c->planes == 0) return status;
    if (c->planes == 1) return copy_rows(c, 0, c->rows, c->to_row, c->from_row, stream);
    if (c->rows == 1) return copy_rows(c, 0, c->planes, c->to_plane, c->from_plane, stream);
    if (is_regular(c)) return copy_planes(c, stream);
    for (int64_t k = 0; k < c->planes && status == cudaSuccess; ++k)
        status = copy_rows(c, k, c->rows, c->to_row, c->from_row, stream);
    return status;
}

/* ---- copies by a kernel ---- */

/* A box in units of a type. */
struct unit_box {
    void *to;
    const void *from;
    unsigned row, rows, points; /* points: all units */
    ptrdiff_t to_row, to_plane, from_row, from_plane;
};

struct unit_boxes {
    unit_box box[TRLI_COPIES];
};
static_assert(sizeof(unit_boxes) <= 4096, "a kernel's parameters");

/* A box for each blockIdx.y. A thread reads some units before it writes the first: memory of another GPU is far. */
template <typename unit> static __global__ void copy_kernel(const __grid_constant__ unit_boxes boxes)
{
    enum { AT_ONCE = 4 };
    const unit_box &b = boxes.box[blockIdx.y];
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < b.points; i += AT_ONCE * threads) {
        unit value[AT_ONCE];
        ptrdiff_t to[AT_ONCE];
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; ++u) {
            const unsigned n = i + u * threads, line = n / b.row, x = n % b.row;
            const unsigned plane = line / b.rows, y = line % b.rows;
            to[u] = plane * b.to_plane + y * b.to_row + x;
            if (n < b.points) value[u] = static_cast<const unit *>(b.from)[plane * b.from_plane + y * b.from_row + x];
        }
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; ++u)
            if (i + u * threads < b.points) static_cast<unit *>(b.to)[to[u]] = value[u];
    }
}

/* Bytes by which all of a box is divisible, up to 16. */
static size_t unit_of(const trli_box_copy *c)
{
    const size_t all = reinterpret_cast<size_t>(c->to) | reinterpret_cast<size_t>(c->from) | c->row |
                       static_cast<size_t>(c->to_row) | static_cast<size_t>(c->to_plane) |
                       static_cast<size_t>(c->from_row) | static_cast<size_t>(c->from_plane);
    return all % 16 == 0 ? 16 : all % 8 == 0 ? 8 : 1;
}

static int copy_boxes(int n, const trli_box_copy *c, void *on)
{
    constexpr size_t THREADS = 256, UNITS_MOST = 1 << 30;
    constexpr size_t BLOCKS = 64; /* of all boxes: as fast as more, and they leave most of the GPU to other kernels */
    const cudaStream_t stream = static_cast<cudaStream_t>(on);
    size_t unit = 16, most = 0;
    unit_boxes boxes = {};
    unsigned some = 0;
    for (int i = 0; i < n; ++i) unit = unit_of(&c[i]) < unit ? unit_of(&c[i]) : unit;
    for (int i = 0; i < n; ++i) {
        const size_t units = c[i].row / unit * static_cast<size_t>(c[i].rows) * static_cast<size_t>(c[i].planes);
        const ptrdiff_t u = static_cast<ptrdiff_t>(unit);
        if (units == 0) continue;
        if (units > UNITS_MOST) {
            const int status = copy(&c[i], on);
            if (status != cudaSuccess) return status;
            continue;
        }
        most = units > most ? units : most;
        boxes.box[some++] = {c[i].to,
                             c[i].from,
                             static_cast<unsigned>(c[i].row / unit),
                             static_cast<unsigned>(c[i].rows),
                             static_cast<unsigned>(units),
                             c[i].to_row / u,
                             c[i].to_plane / u,
                             c[i].from_row / u,
                             c[i].from_plane / u};
    }
    if (some == 0) return cudaSuccess;
    const size_t wanted = (most + 4 * THREADS - 1) / (4 * THREADS);
    const size_t each = some < BLOCKS ? BLOCKS / some : 1;
    const dim3 grid(static_cast<unsigned>(wanted < each ? wanted : each), some);
    if (unit == 16)
        copy_kernel<uint4><<<grid, THREADS, 0, stream>>>(boxes);
    else if (unit == 8)
        copy_kernel<double><<<grid, THREADS, 0, stream>>>(boxes);
    else
        copy_kernel<unsigned char><<<grid, THREADS, 0, stream>>>(boxes);
    return cudaGetLastError();
}

static int load(const void *image, void **library, void **kernel)
{
    cudaLibrary_t loaded = nullptr;
    cudaKernel_t found = nullptr;
    cudaError_t status = cudaLibraryLoadData(&loaded, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (status != cudaSuccess) return status;
    status = cudaLibraryGetKernel(&found, loaded, "trl_kernel");
    if (status != cudaSuccess) {
        cudaLibraryUnload(loaded);
        return status;
    }
    *library = loaded;
    *kernel = reinterpret_cast<void *>(found);
    return cudaSuccess;
}

static int share(void *kernel, size_t bytes)
{
    int index = 0;
    const cudaError_t status = cudaGetDevice(&index);
    if (status != cudaSuccess) return status;
    return cudaKernelSetAttributeForDevice(static_cast<cudaKernel_t>(kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes), index);
}

static void unload(void *library)
{
    cudaLibraryUnload(static_cast<cudaLibrary_t>(library));
}

static dim3 triple(const unsigned n[3])
{
    return dim3(n[0], n[1], n[2]);
}

static int launch(const trli_gpu_work *w, void *stream)
{
    return cudaLaunchKernel(w->kernel, triple(w->blocks), triple(w->threads), const_cast<void **>(w->argument),
                            w->shared, static_cast<cudaStream_t>(stream));
}

/* ---- graphs ---- */

static cudaKernelNodeParams parameters(const trli_gpu_work *w)
{
    cudaKernelNodeParams p = {};
    p.func = w->kernel;
    p.gridDim = triple(w->blocks);
    p.blockDim = triple(w->threads);
    p.sharedMemBytes = static_cast<unsigned>(w->shared);
    p.kernelParams = const_cast<void **>(w->argument);
    return p;
}

static int graph_create(void **graph)
{
    return cudaGraphCreate(reinterpret_cast<cudaGraph_t *>(graph), 0);
}

static int graph_add(void *graph, const trli_gpu_work *w, int nafter, void *const *after, void **node)
{
    const cudaKernelNodeParams p = parameters(w);
    return cudaGraphAddKernelNode(reinterpret_cast<cudaGraphNode_t *>(node), static_cast<cudaGraph_t>(graph),
                                  reinterpret_cast<const cudaGraphNode_t *>(after), static_cast<size_t>(nafter), &p);
}

static int graph_make(void *graph, void **executable)
{
    return cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t *>(executable), static_cast<cudaGraph_t>(graph), 0);
}

static int graph_change(void *executable, void *node, const trli_gpu_work *w)
{
    const cudaKernelNodeParams p = parameters(w);
    return cudaGraphExecKernelNodeSetParams(static_cast<cudaGraphExec_t>(executable),
                                            static_cast<cudaGraphNode_t>(node), &p);
}

static int graph_launch(void *executable, void *stream)
{
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable), static_cast<cudaStream_t>(stream));
}

static void graph_destroy(void *graph, void *executable)
{
    if (executable) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable));
    if (graph) cudaGraphDestroy(static_cast<cudaGraph_t>(graph));
}

/* In the order of the struct. */
static const trli_gpu_api api = {
    message,       is_memory,    is_fatal,      use,          befriend,     stream_create, stream_destroy,
    stream_finish, event_create, event_destroy, event_record, event_query,  event_wait,    event_seconds,
    allocate,      release,      offer,         open,         close,        host_allocate, host_release,
    pin,           unpin,        copy,          copy_boxes,   load,         share,         unload,
    launch,        graph_create, graph_add,     graph_make,   graph_change, graph_launch,  graph_destroy};

const trli_gpu_api *trli_gpu_api_get(void)
{
    return &api;
}

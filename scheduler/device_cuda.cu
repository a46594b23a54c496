/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The CUDA backend. The runtime is linked statically and loads the driver itself: on a machine without a driver
 * there are no devices. */
#include <cstdio>
#include <cuda_runtime.h>

#include "device_impl.h"

bool trli_device_backend_exists(void)
{
    return true;
}

int trli_device_backend_count(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

const char *trli_device_backend_describe(int index, trl_device_info *info)
{
    cudaDeviceProp properties;
    cudaError_t status = cudaGetDeviceProperties(&properties, index);
    if (status != cudaSuccess) return cudaGetErrorString(status);
    std::snprintf(info->name, sizeof info->name, "%s", properties.name);
    info->major = properties.major;
    info->minor = properties.minor;
    info->multiprocessors = properties.multiProcessorCount;
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
    return cudaSetDevice(index);
}

static int befriend(int other)
{
    int self = 0, can = 0;
    cudaError_t status = cudaGetDevice(&self);
    if (status == cudaSuccess) status = cudaDeviceCanAccessPeer(&can, self, other);
    if (status == cudaSuccess && can) status = cudaDeviceEnablePeerAccess(other, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
        status = cudaSuccess;
    }
    return status;
}

static int stream_create(void **stream)
{
    return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t *>(stream), cudaStreamNonBlocking);
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
    return cudaLaunchKernel(w->kernel, triple(w->blocks), triple(w->threads), const_cast<void **>(w->argument), 0,
                            static_cast<cudaStream_t>(stream));
}

/* ---- graphs ---- */

static cudaKernelNodeParams parameters(const trli_gpu_work *w)
{
    cudaKernelNodeParams p = {};
    p.func = w->kernel;
    p.gridDim = triple(w->blocks);
    p.blockDim = triple(w->threads);
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
static const trli_gpu_api api = {message,       is_memory,      is_fatal,      use,           befriend,
                                 stream_create, stream_destroy, stream_finish, event_create,  event_destroy,
                                 event_record,  event_query,    event_wait,    event_seconds, allocate,
                                 release,       host_allocate,  host_release,  pin,           unpin,
                                 copy,          load,           unload,        launch,        graph_create,
                                 graph_add,     graph_make,     graph_change,  graph_launch,  graph_destroy};

const trli_gpu_api *trli_gpu_api_get(void)
{
    return &api;
}

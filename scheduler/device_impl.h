/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The interface of a device backend: device_cuda.cu, or device_none.c in a build without CUDA. */
#ifndef TRLI_DEVICE_IMPL_H
#define TRLI_DEVICE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <trl_device.h>

#ifdef __cplusplus
extern "C" {
#endif

bool trli_device_backend_exists(void);
int trli_device_backend_count(void);
/* NULL on success, else the backend's reason (static text). */
const char *trli_device_backend_describe(int index, trl_device_info *info);

/* Bytes of a box: planes of rows. */
typedef struct trli_box_copy {
    void *to;
    const void *from;
    int to_space, from_space; /* 0: the host's */
    size_t row;               /* bytes */
    int64_t rows, planes;
    ptrdiff_t to_row, to_plane, from_row, from_plane; /* bytes from one row, and one plane, to the next */
} trli_box_copy;

enum { TRLI_COPIES = 64 /* boxes that are copied at once: a kernel gets them in its parameters */ };

/* A kernel of three arguments for blocks of threads. What arguments point to is copied before a function returns. */
enum { TRLI_GPU_ARGUMENTS = 3 };
typedef struct trli_gpu_work {
    void *kernel;
    unsigned blocks[3], threads[3];
    size_t shared; /* bytes that the threads of a block have in common, by `share` */
    void *argument[TRLI_GPU_ARGUMENTS];
} trli_gpu_work;

/* By which another process finds memory of a GPU. */
enum { TRLI_GPU_SHARED_UNIT = 1 << 21 };
typedef struct trli_gpu_handle {
    unsigned char byte[64];
} trli_gpu_handle;

/* CUDA's runtime as function pointers without its types. Functions that return an int fail with a code other than 0,
 * which `message` explains. Objects that are made, and work that is enqueued, belong to the GPU in use by the
 * thread. Thread: any. */
typedef struct trli_gpu_api {
    const char *(*message)(int code); /* static text */
    bool (*is_memory)(int code);      /* the device has no memory left, and nothing else is wrong */
    bool (*is_fatal)(int code);       /* this process can no longer use the device */
    int (*use)(int index);            /* calls of this thread are for that GPU from now on */
    /* Let the GPU in use access the memory of another one. *near: whether the machine allows it. */
    int (*befriend)(int other, bool *near);
    int (*stream_create)(void **stream, bool urgent); /* urgent: blocks of its kernels start before those of others */
    void (*stream_destroy)(void *stream);
    int (*stream_finish)(void *stream); /* wait until the stream is done */
    int (*event_create)(void **event, bool timed);
    void (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event, bool *passed); /* an event that was never recorded counts as passed */
    int (*event_wait)(void *event, void *stream);
    double (*event_seconds)(void *from, void *to); /* of timed ones; negative: unknown */
    int (*allocate)(size_t bytes, void **memory);
    int (*release)(void *memory);
    /* Let other processes of this machine open memory, which was allocated in units of TRLI_GPU_SHARED_UNIT; open what
     * another one lets open, for the GPU in use, which may be another one, and close it. Never of this process. */
    int (*offer)(void *memory, trli_gpu_handle *handle);
    int (*open)(const trli_gpu_handle *handle, void **memory);
    int (*close)(void *memory);
    int (*host_allocate)(size_t bytes, void **memory); /* memory of the host that all GPUs can read and write */
    int (*host_release)(void *memory);
    int (*pin)(void *memory,
               size_t bytes); /* keep memory of the host in place: GPUs copy from and to it by themselves */
    int (*unpin)(void *memory);
    int (*copy)(const trli_box_copy *copy, void *stream);
    /* The same for n <= TRLI_COPIES boxes, in memory that kernels of the GPU in use can access, by a kernel. */
    int (*copy_boxes)(int n, const trli_box_copy *copies, void *stream);
    /* Load machine code, and the function trl_kernel in it, for all GPUs of the kind that it was compiled for. */
    int (*load)(const void *image, void **library, void **kernel);
    int (*share)(void *kernel, size_t bytes); /* let launches on the GPU in use have so much shared memory */
    void (*unload)(void *library);
    int (*launch)(const trli_gpu_work *work, void *stream);
    /* Kernels that are enqueued in one go. A node follows nodes that were added before. What is changed in an
     * executable one holds for later launches. */
    int (*graph_create)(void **graph);
    int (*graph_add)(void *graph, const trli_gpu_work *work, int nafter, void *const *after, void **node);
    int (*graph_make)(void *graph, void **executable);
    int (*graph_change)(void *executable, void *node, const trli_gpu_work *work);
    int (*graph_launch)(void *executable, void *stream);
    void (*graph_destroy)(void *graph, void *executable); /* either may be NULL; launches of it may be under way */
} trli_gpu_api;

/* NULL in a build without CUDA. */
const trli_gpu_api *trli_gpu_api_get(void);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a device backend supplies: device_cuda.cu, or device_none.c in a build without CUDA. */
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
/* NULL when done, else the backend's reason (static text). */
const char *trli_device_backend_describe(int index, trl_device_info *info);

/* Bytes of a box: planes of rows. */
typedef struct trli_box_copy {
    void *to;
    const void *from;
    int to_space, from_space; /* 0: the host's */
    size_t row;               /* bytes */
    int64_t rows, planes;
    ptrdiff_t to_row, to_plane, from_row, from_plane; /* bytes from one to the next */
} trli_box_copy;

/* CUDA's runtime, behind pointers without its types. Functions that return an int fail with a code that is not 0, which
 * `message` explains. What is made or enqueued is of the GPU that the thread uses. Thread: any. */
typedef struct trli_gpu_api {
    const char *(*message)(int code); /* static text */
    bool (*is_memory)(int code);      /* the device has no memory left, and no more is wrong */
    bool (*is_fatal)(int code);       /* this process can do nothing more with the device */
    int (*use)(int index);            /* from now on the calls of this thread are of that GPU */
    int (*befriend)(int other);       /* let the GPU in use read and write the memory of another, where it can */
    int (*stream_create)(void **stream);
    void (*stream_destroy)(void *stream);
    int (*stream_finish)(void *stream); /* wait */
    int (*event_create)(void **event);
    void (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event, bool *passed); /* of one that was never recorded: passed */
    int (*event_wait)(void *event, void *stream);
    double (*event_seconds)(void *from, void *to); /* negative: not known */
    int (*allocate)(size_t bytes, void **memory);
    int (*release)(void *memory);
    int (*host_allocate)(size_t bytes, void **memory); /* of the host, which all GPUs read and write */
    int (*host_release)(void *memory);
    int (*copy)(const trli_box_copy *copy, void *stream);
    /* Machine code; the function trl_kernel in it. For all GPUs of the kind that it was compiled for. */
    int (*load)(const void *image, void **library, void **kernel);
    void (*unload)(void *library);
    int (*launch)(void *kernel, const unsigned blocks[3], const unsigned threads[3], void **arguments, void *stream);
} trli_gpu_api;

/* NULL in a build without CUDA. */
const trli_gpu_api *trli_gpu_api_get(void);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* In CUDA's place: GPUs that are the processor, to test what is launched where there is no GPU. What is enqueued is
 * done at once, by the thread that enqueues it. TRL_EMULATED_GPUS: how many there are, 1; TRL_EMULATED_IDLE=1: kernels
 * do nothing, so that what is left is what the host does. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device_impl.h"

enum { SUCCESS, FAILURE, NO_MEMORY, ARGUMENTS = 3 };

typedef struct kernel {
    int file; /* open: its number is in the library's name, by which the loader tells libraries apart */
    void *library;
    void (*run)(void **arguments, const unsigned *blocks, const unsigned *threads);
    size_t size[ARGUMENTS];
} kernel;

typedef struct event {
    bool recorded;
    double at;
} event;

bool trli_device_backend_exists(void)
{
    return true;
}

int trli_device_backend_count(void)
{
    const char *count = getenv("TRL_EMULATED_GPUS");
    return count ? atoi(count) : 1;
}

const char *trli_device_backend_describe(int index, trl_device_info *info)
{
    (void)snprintf(info->name, sizeof info->name, "emulated GPU %d", index);
    info->major = 0;
    info->minor = 1;
    info->multiprocessors = 2;
    info->bytes = (size_t)1 << 33;
    return NULL;
}

static const char *message(int code)
{
    return code == NO_MEMORY ? "no memory" : code == FAILURE ? "failure" : "no error";
}

static bool is_memory(int code)
{
    return code == NO_MEMORY;
}

static bool is_fatal(int code)
{
    return code == FAILURE;
}

static int use(int index)
{
    (void)index;
    return SUCCESS;
}

static int befriend(int other, bool *near)
{
    (void)other;
    *near = true;
    return SUCCESS;
}

static int create(void **made, size_t bytes)
{
    *made = calloc(1, bytes);
    return *made ? SUCCESS : NO_MEMORY;
}

static int stream_create(void **stream, bool urgent)
{
    (void)urgent;
    return create(stream, 1);
}

static int stream_finish(void *stream)
{
    (void)stream;
    return SUCCESS;
}

static int event_create(void **made, bool timed)
{
    (void)timed;
    return create(made, sizeof(event));
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int event_record(void *of, void *stream)
{
    (void)stream;
    *(event *)of = (event){true, now()};
    return SUCCESS;
}

static int event_query(void *of, bool *passed)
{
    (void)of;
    *passed = true;
    return SUCCESS;
}

static int event_wait(void *of, void *stream)
{
    (void)of;
    (void)stream;
    return SUCCESS;
}

static double event_seconds(void *from, void *to)
{
    const event *a = from, *b = to;
    return a->recorded && b->recorded ? b->at - a->at : -1;
}

/* All bits 1: a NaN, as memory is that no one has written. */
static int allocate(size_t bytes, void **memory)
{
    *memory = malloc(bytes);
    if (*memory) memset(*memory, 0xff, bytes);
    return *memory ? SUCCESS : NO_MEMORY;
}

static int release(void *memory)
{
    free(memory);
    return SUCCESS;
}

static int pin(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    return SUCCESS;
}

static int unpin(void *memory)
{
    (void)memory;
    return SUCCESS;
}

static int copy(const trli_box_copy *c, void *stream)
{
    (void)stream;
    for (int64_t k = 0; k < c->planes; ++k)
        for (int64_t j = 0; j < c->rows; ++j)
            memcpy((char *)c->to + k * c->to_plane + j * c->to_row,
                   (const char *)c->from + k * c->from_plane + j * c->from_row, c->row);
    return SUCCESS;
}

static int copy_boxes(int n, const trli_box_copy *copies, void *stream)
{
    for (int i = 0; i < n; ++i) (void)copy(&copies[i], stream);
    return SUCCESS;
}

/* ---- kernels ---- */

static void *find(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

static void *open_image(int file, const void *image, size_t bytes)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return write(file, image, bytes) == (ssize_t)bytes ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Machine code is a library, which ends with the table of its sections. */
static size_t bytes_of(const void *image)
{
    const unsigned char *elf = image;
    uint64_t sections;
    uint16_t size, count;
    memcpy(&sections, elf + 0x28, sizeof sections);
    memcpy(&size, elf + 0x3a, sizeof size);
    memcpy(&count, elf + 0x3c, sizeof count);
    return sections + (size_t)size * count;
}

static int load(const void *image, void **library, void **found)
{
    void (*sizes)(size_t size[ARGUMENTS]);
    kernel *k = calloc(1, sizeof *k);
    if (!k) return NO_MEMORY;
    k->file = memfd_create("trl_emulated", 0);
    k->library = open_image(k->file, image, bytes_of(image));
    void *run = find(k->library, "trl_emulated_run"), *tells = find(k->library, "trl_emulated_sizes");
    if (!run || !tells) {
        (void)fprintf(stderr, "emulated GPU: %s\n", dlerror());
        free(k);
        return FAILURE;
    }
    memcpy(&k->run, &run, sizeof run);
    memcpy(&sizes, &tells, sizeof tells);
    sizes(k->size);
    *library = *found = k;
    return SUCCESS;
}

static void unload(void *library)
{
    kernel *k = library;
    (void)dlclose(k->library);
    (void)close(k->file);
    free(k);
}

static bool idle;

static void find_idle(void)
{
    const char *text = getenv("TRL_EMULATED_IDLE");
    idle = text && strcmp(text, "1") == 0;
}

static bool is_idle(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_idle);
    return idle;
}

static int launch(const trli_gpu_work *w, void *stream)
{
    const kernel *k = w->kernel;
    (void)stream;
    if (!is_idle()) k->run((void **)w->argument, w->blocks, w->threads);
    return SUCCESS;
}

/* ---- graphs ---- */

enum { NODES_MOST = 4096 };

typedef struct node {
    trli_gpu_work work;
    char *copy; /* of the arguments, one behind another */
    int number, nafter, *after;
    bool done;
} node;

typedef struct graph {
    node *node[NODES_MOST];
    int n;
} graph;

static int graph_create(void **made)
{
    return create(made, sizeof(graph));
}

static void take_arguments(node *at, const trli_gpu_work *w)
{
    const kernel *k = w->kernel;
    char *to = at->copy;
    at->work = *w;
    for (int i = 0; i < ARGUMENTS; ++i) {
        memcpy(to, w->argument[i], k->size[i]);
        at->work.argument[i] = to;
        to += (k->size[i] + 15) / 16 * 16;
    }
}

static int graph_add(void *to, const trli_gpu_work *w, int nafter, void *const *after, void **made)
{
    graph *g = to;
    const kernel *k = w->kernel;
    node *at = calloc(1, sizeof *at);
    for (int i = 0; i < nafter; ++i)
        for (int j = 0; j < i; ++j)
            if (after[i] == after[j]) return FAILURE; /* as CUDA wants it */
    if (!at || g->n == NODES_MOST) return NO_MEMORY;
    at->copy = aligned_alloc(16, (k->size[0] + k->size[1] + k->size[2] + 63) / 16 * 16);
    at->after = calloc((size_t)nafter + 1, sizeof *at->after);
    if (!at->copy || !at->after) return NO_MEMORY;
    take_arguments(at, w);
    for (int i = 0; i < nafter; ++i) at->after[i] = ((const node *)after[i])->number;
    at->nafter = nafter;
    at->number = g->n;
    g->node[g->n++] = at;
    *made = at;
    return SUCCESS;
}

/* An executable graph is the graph. */
static int graph_make(void *of, void **executable)
{
    *executable = of;
    return SUCCESS;
}

static int graph_change(void *executable, void *of, const trli_gpu_work *w)
{
    (void)executable;
    take_arguments(of, w);
    return SUCCESS;
}

static bool is_ready(const graph *g, const node *at)
{
    bool ready = !at->done;
    for (int i = 0; i < at->nafter; ++i) ready &= g->node[at->after[i]]->done;
    return ready;
}

/* Of the nodes that are ready the one that was added last: what nodes are not said to follow, they come before. */
static int graph_launch(void *executable, void *stream)
{
    graph *g = executable;
    if (is_idle()) return SUCCESS;
    for (int i = 0; i < g->n; ++i) g->node[i]->done = false;
    for (int left = g->n; left > 0; --left) {
        int i = g->n - 1;
        while (!is_ready(g, g->node[i])) --i;
        (void)launch(&g->node[i]->work, stream);
        g->node[i]->done = true;
    }
    return SUCCESS;
}

static void graph_destroy(void *of, void *executable)
{
    graph *g = of;
    (void)executable;
    for (int i = 0; g && i < g->n; ++i) {
        free(g->node[i]->copy);
        free(g->node[i]->after);
        free(g->node[i]);
    }
    free(g);
}

static const trli_gpu_api api = {
    .message = message,
    .is_memory = is_memory,
    .is_fatal = is_fatal,
    .use = use,
    .befriend = befriend,
    .stream_create = stream_create,
    .stream_destroy = free,
    .stream_finish = stream_finish,
    .event_create = event_create,
    .event_destroy = free,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .event_seconds = event_seconds,
    .allocate = allocate,
    .release = release,
    .host_allocate = allocate,
    .host_release = release,
    .pin = pin,
    .unpin = unpin,
    .copy = copy,
    .copy_boxes = copy_boxes,
    .load = load,
    .unload = unload,
    .launch = launch,
    .graph_create = graph_create,
    .graph_add = graph_add,
    .graph_make = graph_make,
    .graph_change = graph_change,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};

const trli_gpu_api *trli_gpu_api_get(void)
{
    return &api;
}

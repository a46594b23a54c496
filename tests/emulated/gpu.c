/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* In CUDA's place: GPUs that are the processor, to test what is launched where there is no GPU. What is enqueued is
 * done at once, by the thread that enqueues it. TRL_EMULATED_GPUS: how many there are, 1; TRL_EMULATED_IDLE=1: kernels
 * do nothing, so that what is left is what the host does; TRL_EMULATED_LAZY=1: what is enqueued is done when the host
 * waits for it, or for what waits for it, so that what a stream was not told to wait for comes too late;
 * TRL_EMULATED_IPC=off: processes may not open each other's memory, as those of different containers;
 * TRL_EMULATED_FAIL=9: the ninth launch of a process and those behind it fail; TRL_EMULATED_KILL=9: the ninth kills it;
 * TRL_EMULATED_COUNT=FILE: where a process writes in the end how many kernels it launched, by how many launches, and
 * how often it changed a kernel's arguments in a graph. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fibers.h"
#include "memory.h"

enum { ARGUMENTS = 3 };

typedef struct kernel {
    int file; /* open: its number is in the library's name, by which the loader tells libraries apart */
    void *library;
    void (*run)(void **arguments, const unsigned *blocks, const unsigned *threads);
    size_t size[ARGUMENTS];
} kernel;

typedef struct event {
    bool recorded;
    double at;
    struct stream *on;           /* the last record */
    int64_t recorded_to, passed; /* records, given and done */
    int64_t asked;               /* the last one of which the host was told that it is not done */
} event;

typedef enum kind { COPY, LAUNCH, RECORD, WAIT } kind;

/* What a stream is to do. */
typedef struct command {
    kind kind;
    trli_box_copy copy;
    struct node **node; /* copies */
    int nodes;
    event *event;
    int64_t serial;    /* of the record */
    struct stream *on; /* where it is made */
} command;

typedef struct stream {
    command *command;
    int64_t first, n, room; /* those before the first are done */
} stream;

enum { STREAMS_MOST = 256 };
static stream *streams[STREAMS_MOST];
static int nstreams;
static pthread_mutex_t streams_lock; /* guards all streams and events; recursive */
static bool lazy, idle;
static int64_t fails, kills;     /* launches from which on; 0: never */
static _Atomic int64_t launches; /* so far */
static _Atomic int64_t kernels;  /* of these */
static _Atomic int64_t changes;  /* of arguments in graphs */

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoll(text) : 0;
}

static void write_count(void)
{
    FILE *out = fopen(getenv("TRL_EMULATED_COUNT"), "w");
    if (!out) return;
    (void)fprintf(out, "%lld %lld %lld\n", (long long)atomic_load(&kernels), (long long)atomic_load(&launches),
                  (long long)atomic_load(&changes));
    (void)fclose(out);
}

static void find_settings(void)
{
    const char *late = getenv("TRL_EMULATED_LAZY"), *text = getenv("TRL_EMULATED_IDLE");
    pthread_mutexattr_t recursive;
    (void)pthread_mutexattr_init(&recursive);
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&streams_lock, &recursive);
    lazy = late && strcmp(late, "1") == 0;
    idle = text && strcmp(text, "1") == 0;
    fails = number_of("TRL_EMULATED_FAIL");
    kills = number_of("TRL_EMULATED_KILL");
    if (getenv("TRL_EMULATED_COUNT")) (void)atexit(write_count);
}

static void lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_settings);
    (void)pthread_mutex_lock(&streams_lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&streams_lock);
}

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
    info->cache_bytes = (size_t)1 << 20;
    info->shared_bytes = (size_t)227 << 10;
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

static int stream_create(void **made, bool urgent)
{
    (void)urgent;
    lock();
    const int code = nstreams < STREAMS_MOST ? create(made, sizeof(stream)) : NO_MEMORY;
    if (code == SUCCESS) streams[nstreams++] = *made;
    unlock();
    return code;
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

static double event_seconds(void *from, void *to)
{
    const event *a = from, *b = to;
    return a->recorded && b->recorded ? b->at - a->at : -1;
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
    void (*sizes)(size_t size[ARGUMENTS]), (*fibers)(void (*run)(unsigned, trl_fiber_body, void *), void (*wait)(void));
    kernel *k = calloc(1, sizeof *k);
    if (!k) return NO_MEMORY;
    k->file = memfd_create("trl_emulated", 0);
    k->library = open_image(k->file, image, bytes_of(image));
    void *run = find(k->library, "trl_emulated_run"), *tells = find(k->library, "trl_emulated_sizes");
    void *takes = find(k->library, "trl_emulated_fibers");
    if (!run || !tells || !takes) {
        (void)fprintf(stderr, "emulated GPU: %s\n", dlerror());
        free(k);
        return FAILURE;
    }
    memcpy(&k->run, &run, sizeof run);
    memcpy(&sizes, &tells, sizeof tells);
    sizes(k->size);
    memcpy(&fibers, &takes, sizeof takes);
    fibers(trl_fibers_run, trl_fibers_wait);
    *library = *found = k;
    return SUCCESS;
}

/* ---- what streams do ---- */

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

static node *new_node(const trli_gpu_work *w)
{
    const kernel *k = w->kernel;
    node *at = calloc(1, sizeof *at);
    if (at) at->copy = aligned_alloc(16, (k->size[0] + k->size[1] + k->size[2] + 63) / 16 * 16);
    if (!at || !at->copy) abort();
    take_arguments(at, w);
    return at;
}

static void free_node(node *at)
{
    free(at->copy);
    free(at->after);
    free(at);
}

static void do_work(const trli_gpu_work *w)
{
    const kernel *k = w->kernel;
    if (!idle) k->run((void **)w->argument, w->blocks, w->threads);
}

static void do_copy(const trli_box_copy *c)
{
    for (int64_t k = 0; k < c->planes; ++k)
        for (int64_t j = 0; j < c->rows; ++j)
            memcpy((char *)c->to + k * c->to_plane + j * c->to_row,
                   (const char *)c->from + k * c->from_plane + j * c->from_row, c->row);
}

static void pass(event *of, int64_t serial, struct stream *on);

/* What a command points to is freed with it. */
static void do_command(const command *c)
{
    if (c->kind == COPY) do_copy(&c->copy);
    if (c->kind == WAIT) pass(c->event, c->serial, c->on);
    for (int i = 0; i < c->nodes; ++i) {
        do_work(&c->node[i]->work);
        free_node(c->node[i]);
    }
    free(c->node);
    if (c->kind != RECORD) return;
    c->event->at = now();
    c->event->passed = c->serial;
}

/* Do the first command of a stream. */
static void advance(stream *at)
{
    const command c = at->command[at->first++];
    do_command(&c);
}

/* Let a stream come as far as a record of an event. */
static void pass(event *of, int64_t serial, stream *on)
{
    while (of->passed < serial && on->first < on->n) advance(on);
}

static int give(void *to, command c)
{
    stream *at = to;
    lock();
    if (c.kind == RECORD) {
        c.serial = ++c.event->recorded_to;
        c.event->on = at;
        c.event->recorded = true;
    } else if (c.kind == WAIT) {
        c.serial = c.event->recorded_to;
        c.on = c.event->on;
    }
    if (at->first == at->n) at->first = at->n = 0;
    if (at->n == at->room) {
        at->room = 2 * at->room + 64;
        at->command = realloc(at->command, (size_t)at->room * sizeof c);
        if (!at->command) abort();
    }
    at->command[at->n++] = c;
    while (!lazy && at->first < at->n) advance(at);
    unlock();
    return SUCCESS;
}

static int stream_finish(void *of)
{
    stream *at = of;
    lock();
    while (at->first < at->n) advance(at);
    unlock();
    return SUCCESS;
}

static void finish_all(void)
{
    lock();
    for (int i = 0; i < nstreams; ++i) (void)stream_finish(streams[i]);
    unlock();
}

static void stream_destroy(void *of)
{
    int to = 0;
    lock();
    finish_all();
    for (int i = 0; i < nstreams; ++i)
        if (streams[i] != of) streams[to++] = streams[i];
    nstreams = to;
    free(((stream *)of)->command);
    free(of);
    unlock();
}

static int event_record(void *of, void *on)
{
    return give(on, (command){.kind = RECORD, .event = of});
}

/* The host waits for it if it asks again. */
static int event_query(void *of, bool *passed)
{
    event *at = of;
    lock();
    *passed = at->passed == at->recorded_to || at->asked == at->recorded_to;
    at->asked = at->recorded_to;
    if (*passed && at->on) pass(at, at->recorded_to, at->on);
    unlock();
    return SUCCESS;
}

static int event_wait(void *of, void *on)
{
    return ((event *)of)->on ? give(on, (command){.kind = WAIT, .event = of}) : SUCCESS;
}

static void event_destroy(void *of)
{
    finish_all();
    free(of);
}

static int release(void *memory)
{
    finish_all();
    trli_emulated_release(memory);
    return SUCCESS;
}

static int copy(const trli_box_copy *c, void *on)
{
    return give(on, (command){.kind = COPY, .copy = *c});
}

static int copy_boxes(int n, const trli_box_copy *copies, void *on)
{
    for (int i = 0; i < n; ++i) (void)copy(&copies[i], on);
    return SUCCESS;
}

static int share(void *of, size_t bytes)
{
    enum { MOST = 227 << 10 }; /* as an H100 has */
    (void)of;
    return bytes <= MOST ? SUCCESS : FAILURE;
}

static void unload(void *library)
{
    kernel *k = library;
    finish_all();
    (void)dlclose(k->library);
    (void)close(k->file);
    free(k);
}

/* Of this process's next launch. */
static int meet_fault(void)
{
    const int64_t now = atomic_fetch_add(&launches, 1) + 1;
    if (now == kills) (void)raise(SIGKILL);
    return fails > 0 && now >= fails ? FAILURE : SUCCESS;
}

static int launch(const trli_gpu_work *w, void *on)
{
    if (meet_fault() != SUCCESS) return FAILURE;
    node **one = calloc(1, sizeof(node *));
    if (!one) return NO_MEMORY;
    *one = new_node(w);
    (void)atomic_fetch_add(&kernels, 1);
    return give(on, (command){.kind = LAUNCH, .node = one, .nodes = 1});
}

/* ---- graphs ---- */

static int graph_create(void **made)
{
    return create(made, sizeof(graph));
}

static int graph_add(void *to, const trli_gpu_work *w, int nafter, void *const *after, void **made)
{
    graph *g = to;
    for (int i = 0; i < nafter; ++i)
        for (int j = 0; j < i; ++j)
            if (after[i] == after[j]) return FAILURE; /* as CUDA wants it */
    if (g->n == NODES_MOST) return NO_MEMORY;
    node *at = new_node(w);
    at->after = calloc((size_t)nafter + 1, sizeof *at->after);
    if (!at->after) return NO_MEMORY;
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
    (void)atomic_fetch_add(&changes, 1);
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
static int graph_launch(void *executable, void *on)
{
    graph *g = executable;
    if (meet_fault() != SUCCESS) return FAILURE;
    if (idle) return SUCCESS; /* the host's time is what is measured: without that of this emulation */
    command c = {.kind = LAUNCH, .node = calloc((size_t)g->n + 1, sizeof(node *))};
    if (!c.node) return NO_MEMORY;
    (void)atomic_fetch_add(&kernels, g->n);
    for (int i = 0; i < g->n; ++i) g->node[i]->done = false;
    for (int left = g->n; left > 0; --left) {
        int i = g->n - 1;
        while (!is_ready(g, g->node[i])) --i;
        c.node[c.nodes++] = new_node(&g->node[i]->work);
        g->node[i]->done = true;
    }
    return give(on, c);
}

static void graph_destroy(void *of, void *executable)
{
    graph *g = of;
    (void)executable;
    for (int i = 0; g && i < g->n; ++i) free_node(g->node[i]);
    free(g);
}

static const trli_gpu_api api = {
    .message = message,
    .is_memory = is_memory,
    .is_fatal = is_fatal,
    .use = use,
    .befriend = befriend,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_finish = stream_finish,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .event_seconds = event_seconds,
    .allocate = trli_emulated_allocate,
    .release = release,
    .offer = trli_emulated_offer,
    .open = trli_emulated_open,
    .close = release,
    .host_allocate = trli_emulated_allocate,
    .host_release = release,
    .pin = pin,
    .unpin = unpin,
    .copy = copy,
    .copy_boxes = copy_boxes,
    .load = load,
    .share = share,
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

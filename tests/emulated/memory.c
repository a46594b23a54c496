/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whole units are files, which other processes may open. */
typedef struct unit_memory {
    void *at;
    size_t bytes;
    int file;
} unit_memory;

enum { UNITS_MOST = 512 };
static unit_memory units[UNITS_MOST]; /* guarded by the lock */
static pthread_mutex_t units_lock = PTHREAD_MUTEX_INITIALIZER;

static unit_memory *unit_of(const void *memory)
{
    for (int i = 0; i < UNITS_MOST; ++i)
        if (units[i].at == memory) return &units[i];
    return NULL;
}

static int map(int file, size_t bytes, void **memory)
{
    *memory = file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return *memory == MAP_FAILED ? FAILURE : SUCCESS;
}

/* Other memory has no address far below and above: who touches what is not his is caught, as GPUs catch it. Pages are
 * longer than what is asked for, so that one in two begins where a page does, the others end there. The length of all
 * is in front, beside where the memory begins. */
enum { PAGE = 4096, APART = 1 << 20, ALIGNED = 64 };

typedef struct apart {
    size_t all;
    char *memory;
} apart;

static void *allocate_apart(size_t bytes)
{
    static unsigned count; /* guarded by the lock */
    const size_t own = (bytes + PAGE - 1) / PAGE * PAGE, rest = (own - bytes) / ALIGNED * ALIGNED;
    const size_t all = PAGE + APART + own + APART;
    char *base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    const apart is = {all, base + PAGE + APART + (count++ % 2 ? rest : 0)};
    if (mprotect(base, PAGE, PROT_READ | PROT_WRITE) || mprotect(base + PAGE + APART, own, PROT_READ | PROT_WRITE))
        abort();
    memcpy(base, &is, sizeof is);
    memset(base + PAGE + APART, 0xff, own);
    return is.memory;
}

static void release_apart(char *memory)
{
    if (!memory) return;
    char *base = memory - (uintptr_t)memory % PAGE - APART - PAGE;
    apart is;
    memcpy(&is, base, sizeof is);
    if (is.memory != memory) abort();
    (void)munmap(base, is.all);
}

/* All bits 1: a NaN, as memory is that no one has written. */
int trli_emulated_allocate(size_t bytes, void **memory)
{
    (void)pthread_mutex_lock(&units_lock);
    unit_memory *unit = bytes % TRLI_GPU_SHARED_UNIT == 0 ? unit_of(NULL) : NULL;
    if (unit) {
        unit->bytes = bytes;
        unit->file = memfd_create("trl_emulated", 0);
        if (ftruncate(unit->file, (off_t)bytes) || map(unit->file, bytes, &unit->at)) abort();
        *memory = unit->at;
    } else {
        *memory = allocate_apart(bytes);
    }
    (void)pthread_mutex_unlock(&units_lock);
    if (*memory) memset(*memory, 0xff, bytes);
    return *memory ? SUCCESS : NO_MEMORY;
}

/* What a handle holds, after the number of its process. */
typedef struct offered {
    long process;
    int file;
    size_t bytes;
} offered;

int trli_emulated_offer(void *memory, trli_gpu_handle *handle)
{
    (void)pthread_mutex_lock(&units_lock);
    const unit_memory *unit = unit_of(memory);
    const offered what = {(long)getpid(), unit ? unit->file : -1, unit ? unit->bytes : 0};
    (void)pthread_mutex_unlock(&units_lock);
    memcpy(handle, &what, sizeof what);
    return unit ? SUCCESS : FAILURE;
}

int trli_emulated_open(const trli_gpu_handle *handle, void **memory)
{
    const char *text = getenv("TRL_EMULATED_IPC");
    char path[64];
    offered what;
    memcpy(&what, handle, sizeof what);
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", what.process, what.file);
    const int file = text && strcmp(text, "off") == 0 ? -1 : open(path, O_RDWR);
    (void)pthread_mutex_lock(&units_lock);
    unit_memory *unit = unit_of(NULL);
    int code = unit && what.process != (long)getpid() ? map(file, what.bytes, memory) : FAILURE;
    if (code == SUCCESS)
        *unit = (unit_memory){*memory, what.bytes, file};
    else if (file >= 0)
        (void)close(file);
    (void)pthread_mutex_unlock(&units_lock);
    return code;
}

void trli_emulated_release(void *memory)
{
    (void)pthread_mutex_lock(&units_lock);
    unit_memory *unit = memory ? unit_of(memory) : NULL;
    if (unit) {
        (void)munmap(unit->at, unit->bytes);
        (void)close(unit->file);
        unit->at = NULL;
    } else {
        release_apart(memory);
    }
    (void)pthread_mutex_unlock(&units_lock);
}

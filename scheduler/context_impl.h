/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of the context: what the files of scheduler/ share. */
#ifndef TRL_CONTEXT_IMPL_H
#define TRL_CONTEXT_IMPL_H

#include <hwloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include <trl_context.h>

/* More workers than this (or than cores, where there are more) is taken for a typing error. */
#define TRLI_THREADS_MAX 1024

enum { TRLI_CACHE_LEVELS = 5 };

/* The machine as this rank may use it. */
typedef struct trli_topology {
    hwloc_topology_t machine; /* restricted to the processors this rank may run on */
    int first_core, cores;    /* this rank's share: logical indices in machine */
    bool shared;              /* ranks outnumber cores, or a quota hides which cores are ours: nobody is pinned */
    uint64_t memory_bytes;    /* of the node, or what a cgroup leaves of it; 0: unknown */
    /* Of the data cache of a level, per core that shares it; [0]: the last level. All cores are taken to be alike. */
    size_t cache_bytes[TRLI_CACHE_LEVELS + 1];
} trli_topology;

typedef struct trli_diagnostics {
    pthread_mutex_t lock; /* guards the members below while workers run */
    trl_diagnostic *list;
    int count, capacity;
} trli_diagnostics;

/* Counters change from any thread, and nothing is inferred from them about other memory: all accesses are relaxed. */
typedef struct trli_memory {
    _Atomic size_t bytes, peak_bytes;
    _Atomic int64_t allocations;
    size_t limit; /* requests that would take bytes above it fail */
} trli_memory;

struct trl_context {
    MPI_Comm comm;
    int rank, ranks;
    int threads;
    int workers_alive;       /* trl_workers of this context; main thread only */
    _Atomic uint32_t graphs; /* created so far */
    pthread_mutex_t mpi_lock;
    trli_topology topology;
    trli_diagnostics diagnostics;
    trli_memory memory;
};

/* Find the machine and this rank's share of it. Collective on comm. No message: there is no context yet. */
TRL_NODISCARD trl_err trli_topology_init(trli_topology *topology, MPI_Comm comm);
void trli_topology_destroy(trli_topology *topology);
/* Bind the calling thread to the core-th core of the share. Failure is harmless: the thread stays where it was. */
void trli_topology_pin(const trli_topology *topology, int core);
/* Whole pages of memory are to come from the NUMA node of the core-th core of the share. Nothing on machines of one node, and where the
 * system refuses: that costs only speed. */
void trli_topology_bind(const trli_topology *topology, int core, void *memory, size_t bytes);

void trli_diagnostics_init(trli_diagnostics *diagnostics);
void trli_diagnostics_destroy(trli_diagnostics *diagnostics);
/* Whether this thread recorded an error since it last asked. */
bool trli_diagnostics_said(void);

/* TRL_OK for MPI_SUCCESS; else record MPI's own message about the named call and return TRL_ERR_MPI. */
TRL_NODISCARD trl_err trli_mpi_check(trl_context *ctx, int status, const char *call);

/* As trl_memory_alloc, but without a message: NULL where the limit or the system refuses. */
void *trli_memory_try(trl_context *ctx, size_t bytes);
/* Set the peak back, after what was no part of the problem was freed. Thread: main, when no other allocates. */
void trli_memory_set_peak(trl_context *ctx, size_t bytes);
/* Let a peak be at least what is in use now. */
void trli_memory_raise(_Atomic size_t *peak, size_t now);

/* A growing array of elements of one size, which its users know. All zero: empty. */
typedef struct trli_array {
    void *data;
    int64_t count, capacity;
} trli_array;

/* Give the array room for `more` elements of `size` bytes behind the last, and for as many again as it has; on failure nothing changes. */
TRL_NODISCARD trl_err trli_array_grow(trl_context *ctx, trli_array *array, int64_t more, size_t size, const char *what);
static inline trl_err trli_array_reserve(trl_context *ctx, trli_array *array, int64_t more, size_t size,
                                         const char *what)
{
    return array->count + more <= array->capacity ? TRL_OK : trli_array_grow(ctx, array, more, size, what);
}
void trli_array_free(trl_context *ctx, trli_array *array);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of the field manager: pools and blocks.
 *
 * Locks: `table` guards the table of blocks (create, destroy, find); each block has one for everything in it; each size
 * class has one, held for a push or a pop. A thread holds at most one block's lock and, inside, one class's; memory is
 * asked of the system outside of the classes' locks, and the table's lock is never held together with another. Counters
 * are relaxed: nothing is inferred from them. */
#ifndef TRLI_FIELD_MANAGER_IMPL_H
#define TRLI_FIELD_MANAGER_IMPL_H

#include <stdalign.h>

#include <context_impl.h>
#include <open_memory_impl.h>
#include <trl_field_manager.h>

/* Size classes: multiples of 64 bytes up to 512, then eight to a doubling. A block loses less than an eighth of its
 * bytes (or 64 bytes). */
enum { TRLI_CLASSES_SMALL = 8, TRLI_CLASSES_PER_DOUBLING = 8, TRLI_CLASSES_LOG2_MAX = 48 };
enum { TRLI_CLASSES = TRLI_CLASSES_SMALL + (TRLI_CLASSES_LOG2_MAX - 9) * TRLI_CLASSES_PER_DOUBLING };

/* An extent of memory, in use by a block or in the list of its class. */
typedef struct trli_extent {
    struct trli_extent *next;
    struct trli_bundle *bundle; /* that it is part of; NULL: none */
    void *memory;
    size_t bytes;  /* of memory */
    size_t wanted; /* by its user */
    int class;     /* -1: exact */
} trli_extent;

/* Exact extents in one piece of memory, each at the start of a line; it goes back to the system with the last of them.
 */
typedef struct trli_bundle {
    _Atomic int left; /* extents in use */
    void *memory;
    trli_extent extent[];
} trli_bundle;
/* Extents of so many bytes and more are worth a piece of memory of their own. */
enum { TRLI_BUNDLED_BELOW = 1 << 15 };

typedef struct trli_class {
    alignas(64) pthread_mutex_t lock;
    trli_extent *free; /* last released first: its pages are warm */
} trli_class;

typedef struct trli_pool {
    trl_context *ctx;
    const trl_space_ops *ops;
    void *data;
    trli_class *class; /* [TRLI_CLASSES] */
    _Atomic size_t in_use, held, cached, peak;
    _Atomic int64_t allocations, reuses;
} trli_pool;

/* ops, data: of the space; they outlive the pool. MEMORY without a message. */
TRL_NODISCARD trl_err trli_pool_init(trli_pool *pool, trl_context *ctx, const trl_space_ops *ops, void *data);
void trli_pool_destroy(trli_pool *pool);
/* The class of a size, and its bytes; -1 if no class is that large. */
int trli_pool_class(size_t bytes, size_t *class_bytes);
/* MEMORY without a message if there is none, even after the pool's cache was given back. */
TRL_NODISCARD trl_err trli_pool_take(trli_pool *pool, size_t bytes, bool exact, trli_extent **extent);
/* n exact extents in one bundle. MEMORY without a message, and without an effect, if there is none. */
TRL_NODISCARD trl_err trli_pool_take_bundle(trli_pool *pool, int n, const size_t *bytes, trli_bundle **bundle);
void trli_pool_give(trli_pool *pool, trli_extent *extent);
void trli_pool_trim(trli_pool *pool);

typedef struct trli_block_group trli_block_group;

typedef struct trli_copy {
    trli_extent *extent; /* NULL: no memory */
    int64_t consumers;   /* releases to come */
    bool valid;
} trli_copy;

struct trl_block {
    trl_field_manager *manager;
    trl_block *next;         /* in its bucket */
    trli_block_group *group; /* in whose memory it is */
    uint64_t hash;
    const char *tag;
    int patch;
    unsigned epoch;
    trl_scalar_type type;
    int64_t capacity;
    unsigned flags;
    pthread_mutex_t lock; /* guards what follows */
    int64_t count;
    bool locked;
    int home;        /* space of the values themselves; those elsewhere are consumer copies */
    trli_copy *copy; /* [spaces] */
};

/* Blocks registered together: one piece of memory, which is freed with the last of them. */
struct trli_block_group {
    _Atomic int left;
    char *tag;
    trli_copy *copy; /* [blocks][spaces] */
    trl_block block[];
};

struct trl_field_manager {
    trl_context *ctx;
    trli_open_memory *open; /* that the host's pool takes from first; NULL: none */
    pthread_mutex_t table;  /* guards bucket, nbuckets, nblocks */
    trl_block **bucket;
    size_t nbuckets, nblocks; /* nbuckets: a power of two */
    int nspaces;
    trli_pool pool[TRL_SPACES_MAX]; /* [0]: the host's */
};

/* A manager whose blocks on the host are in memory that other ranks can map, which outlives it, as long as there is
 * room; its blocks get memory, and give it back, in one thread at a time. open: NULL: none. */
TRL_NODISCARD trl_err trli_field_manager_create_open(trl_context *ctx, trli_open_memory *open,
                                                     trl_field_manager **manager);
/* Give back the memory that was reserved in a space. Thread: any, while no thread uses the block. */
void trli_block_leave(trl_block *block, int space);
/* Record an error about a block: its tag and patch, then the text; returns code. */
trl_err trli_block_fail(const trl_block *block, trl_err code, const char *format, ...) TRL_PRINTF(3, 4);

#endif

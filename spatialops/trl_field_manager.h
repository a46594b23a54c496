/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory of every field of a rank: blocks of (tag, patch), registered first, given memory at first use from pools
 * of size classes, copied to where they are read. Errors name the tag and the patch. */
#ifndef TRL_FIELD_MANAGER_H
#define TRL_FIELD_MANAGER_H

#include <trl_field.h>
#include <trl_graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_block trl_block;

/* Static and persistent blocks have exactly the bytes registered, from the system and back to it when they are
 * destroyed, alone or many in one piece (trl_blocks_acquire); others share the pools. So what recurs in every execution
 * finds its memory cached from the second one on. */
enum {
    /* Written once, then only read: never released. */
    TRL_BLOCK_STATIC = 1,
    /* Kept across executions: its last consumer gives nothing back. */
    TRL_BLOCK_PERSISTENT = 2,
    /* Registered as if trl_block_lock had been called. */
    TRL_BLOCK_LOCKED = 4,
};

enum { TRL_WHOLE_RANK = -1 }; /* as a patch: a block of the rank */

typedef struct trl_block_desc {
    const char *tag; /* copied; names it in messages */
    int patch;       /* id, or TRL_WHOLE_RANK */
    unsigned epoch;  /* of the layout that has the patch, so that it is no other layout's patch; 0: of all layouts */
    trl_scalar_type type;
    int64_t count;    /* values */
    int64_t capacity; /* values it may come to hold, reserved with the memory; less than count: count */
    unsigned flags;   /* TRL_BLOCK_* */
} trl_block_desc;

TRL_API TRL_NODISCARD trl_err trl_field_manager_create(trl_context *ctx, trl_field_manager **manager);
/* Blocks that are still registered are released and destroyed. */
TRL_API void trl_field_manager_destroy(trl_field_manager **manager);

/* Register a block; it has no memory yet. Fails with USAGE if the tag is registered on the patch in its epoch, or its
 * description is wrong; MEMORY. Thread: any. */
TRL_API TRL_NODISCARD trl_err trl_block_create(trl_field_manager *manager, const trl_block_desc *desc,
                                               trl_block **block);
/* Register blocks of one tag on n patches at once, each with its own patch and count in place of desc's: as
 * trl_block_create does it, all or none. Thread: any. */
TRL_API TRL_NODISCARD trl_err trl_blocks_create(trl_field_manager *manager, const trl_block_desc *desc, int n,
                                                const int *patch, const int64_t *count, trl_block **block);
/* Forget a block; the memory of all its copies goes back to the pools, whatever their consumers. Thread: any, while
 * no thread uses it. */
TRL_API void trl_block_destroy(trl_block **block);
/* The block of a tag on a patch, of the latest epoch; USAGE, by name, if there is none. Thread: any. */
TRL_API TRL_NODISCARD trl_err trl_field_manager_find(trl_field_manager *manager, const char *tag, int patch,
                                                     trl_block **block);
TRL_API const char *trl_block_tag(const trl_block *block);
TRL_API int64_t trl_block_count(trl_block *block);
/* Another number of values, at most the capacity, else USAGE. The memory stays where it is. */
TRL_API TRL_NODISCARD trl_err trl_block_resize(trl_block *block, int64_t count);

/* ---- memory of blocks. `space`: 0 is the host's memory, others are trl_field_manager_add_space's. Pointers belong to
 * that space, are 64-byte aligned on the host, and stay valid until the memory is released. Thread: any; one thread at
 * a time may use a block; threads with different blocks do not wait for each other. All fail with USAGE, by name, and
 * with MEMORY: the message names tag, patch, size and the state of the pools. ---- */

/* Memory in a space for new values of the block: its old values are lost in all spaces. The new values are released
 * by `consumers` calls of trl_block_release; a count above 0, but for blocks that are kept anyway. USAGE if consumers
 * of the old values are still to come, or if the block is static and written. */
TRL_API TRL_NODISCARD trl_err trl_block_acquire(trl_block *block, int space, int64_t consumers, void **memory);
/* Memory on the host for new values of n static or persistent blocks of one manager, as trl_block_acquire gives it. If
 * all are small, they lie in one piece of memory, which goes back to the system with the last of them. memory: [n]. */
TRL_API TRL_NODISCARD trl_err trl_blocks_acquire(int n, trl_block *const *block, void **memory);
/* Memory for the block in a space, and nothing else: whoever asks says himself where values are valid, copies them, and
 * calls none of the functions below. */
TRL_API TRL_NODISCARD trl_err trl_block_reserve(trl_block *block, int space, void **memory);
/* The values in a space where they are valid, else USAGE. */
TRL_API TRL_NODISCARD trl_err trl_block_read(trl_block *block, int space, void **memory);
/* The values in a space, copied there from where they are valid if need be, for `consumers` more releases there: a
 * consumer copy. */
TRL_API TRL_NODISCARD trl_err trl_block_copy(trl_block *block, int space, int64_t consumers, void **memory);
/* The values in a space, copied there if need be, to be changed: only this copy is valid then. Consumers of the block
 * move to it; USAGE if consumer copies are still to be read. */
TRL_API TRL_NODISCARD trl_err trl_block_update(trl_block *block, int space, void **memory);
/* One consumer is done with the values in a space. The last one's release gives the memory back to the pool, unless the
 * block is kept. USAGE for a release too many. */
TRL_API TRL_NODISCARD trl_err trl_block_release(trl_block *block, int space);
/* While locked, a block keeps its values after the last release, for the user to look at; unlocking then releases them.
 */
TRL_API void trl_block_lock(trl_block *block);
TRL_API void trl_block_unlock(trl_block *block);
/* Give the memory of all copies back, whatever their consumers: the block is as it was registered. Thread: any, while
 * no thread uses it. */
TRL_API void trl_block_vacate(trl_block *block);
/* Bits of the spaces that hold valid values. */
TRL_API unsigned trl_block_valid(trl_block *block);

/* Write to the host's memory of blocks just acquired for the first time, each worker to its share of each block, as
 * kernels cut them: so a page lies near the worker that will use it (bound to its NUMA node where there are several),
 * and all fault pages in. The values become signalling NaN. workers NULL: the caller alone. Thread: any that is not in
 * a task. */
TRL_API TRL_NODISCARD trl_err trl_field_manager_touch(trl_field_manager *manager, trl_workers *workers, int nblocks,
                                                      trl_block *const *blocks);

/* ---- other spaces than the host's: memory of devices ---- */

enum { TRL_SPACES_MAX = 9 };

/* Called with a block's lock held, by any thread, several at once for different blocks. The functions return when the
 * copy is made. */
typedef struct trl_space_ops {
    const char *name; /* for messages and statistics */
    /* REQUIRED. MEMORY, without recording a message, if there is no more: the pools then give back what they cache, and
     * ask again. */
    trl_err (*allocate)(void *data, size_t bytes, void **memory);
    void (*free)(void *data, void *memory);                                         /* REQUIRED */
    trl_err (*copy_in)(void *data, void *to, const void *host_from, size_t bytes);  /* REQUIRED. host to space */
    trl_err (*copy_out)(void *data, void *host_to, const void *from, size_t bytes); /* REQUIRED. space to host */
} trl_space_ops;

/* Add a space. Between two spaces other than the host's, copies go by way of the host. ops and data outlive the
 * manager. USAGE: an operation is missing, too many spaces, or a block is registered already. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_field_manager_add_space(trl_field_manager *manager, const trl_space_ops *ops,
                                                          void *data, int *space);

/* ---- seeing ---- */

typedef struct trl_pool_stats {
    const char *name;    /* of the space */
    size_t in_use;       /* bytes of blocks that hold memory, as registered */
    size_t lost;         /* bytes that their size classes add */
    size_t cached;       /* bytes released, kept for use again */
    size_t peak;         /* the most of in_use and lost together */
    int64_t allocations; /* asked of the system, or the device */
    int64_t reuses;      /* met from what was cached */
} trl_pool_stats;
TRL_API int trl_field_manager_spaces(const trl_field_manager *manager);
/* Numbers taken while others work need not fit together. Thread: any. */
TRL_API void trl_field_manager_get_stats(const trl_field_manager *manager, int space, trl_pool_stats *stats);
/* Give cached memory of all pools back to the system. Thread: any. */
TRL_API void trl_field_manager_trim(trl_field_manager *manager);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory of this rank that other ranks of its node can map, and use where it is: a file in memory, without a name in
 * any folder, so that nothing is left behind when a rank dies. Blocks are dealt out of it in turn. */
#ifndef TRL_OPEN_MEMORY_IMPL_H
#define TRL_OPEN_MEMORY_IMPL_H

#include <trl_context.h>

typedef struct trli_open_memory trli_open_memory;

/* By what other processes find the file. */
typedef struct trli_open_name {
    int64_t process, file;
    uint64_t device, inode; /* another file may have the first two where ranks number processes on their own */
    uint64_t bytes;
} trli_open_name;

/* Room for so many bytes of blocks in all; pages are taken when they are touched. NULL: the system has no such memory,
 * or, with `fast`, none that would be as fast as other memory, which has huge pages where it is large. Thread of all
 * calls: any, one at a time. */
trli_open_memory *trli_open_memory_create(trl_context *ctx, size_t bytes, bool fast);
/* Other ranks may still use what they have mapped. Blocks are given back with it. */
void trli_open_memory_destroy(trli_open_memory **memory);
/* Room for blocks of so many bytes, as trli_open_memory_create counts it. */
size_t trli_open_memory_room(size_t bytes);
/* A block, counted as by trli_memory_try; NULL: there is no room, no memory to note it, or the limit refuses. */
void *trli_open_memory_take(trli_open_memory *memory, size_t bytes);
/* Whether there is no room for it. */
bool trli_open_memory_is_full(const trli_open_memory *memory, size_t bytes);
/* Give a block back: its pages go to the system, and its place to the next block of this size. */
void trli_open_memory_give(trli_open_memory *memory, void *block);
/* Before anything is written to some bytes of a block, when all are taken: give the huge pages that begin there memory,
 * near the calling thread. Thread: any. */
void trli_open_memory_settle(const trli_open_memory *memory, const void *at, size_t bytes);
/* Where an address lies, from the start of the memory on; -1: elsewhere. */
int64_t trli_open_memory_offset(const trli_open_memory *memory, const void *at);

void trli_open_memory_name(const trli_open_memory *memory, trli_open_name *name);
/* Map another rank's memory to read it, or to write to it as well, and forget it. NULL: the system refuses. */
void *trli_open_memory_map(const trli_open_name *name, bool writes);
void trli_open_memory_unmap(const void *mapped, const trli_open_name *name);

#endif

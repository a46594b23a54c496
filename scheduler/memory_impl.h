/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The one allocator: arrays (trl_memory_alloc), metadata (trli_new), and what grows (trli_make_room). All of it is
 * counted by the context and stays below its limit. */
#ifndef TRL_MEMORY_IMPL_H
#define TRL_MEMORY_IMPL_H

#include <stdatomic.h>

#include <trl_context.h>

/* Counters change from any thread, and no other memory depends on them: all accesses are relaxed. */
typedef struct trli_memory {
    _Atomic size_t bytes, peak_bytes; /* of arrays and metadata */
    _Atomic int64_t arrays;           /* allocated so far */
    _Atomic size_t metadata_bytes, metadata_peak_bytes;
    _Atomic int64_t metadata; /* allocated so far */
    _Atomic size_t limit;     /* requests that would take bytes above it fail */
    _Atomic size_t granted;   /* what the machine has had: the limit, which grows with it, unless somebody set that */
} trli_memory;

/* As trl_memory_alloc, but without a message: NULL where the limit or the system refuses. */
void *trli_memory_try(trl_context *ctx, size_t bytes);
/* Whether so many bytes more fit under the limit at present. */
bool trli_memory_fits(trl_context *ctx, size_t bytes);
/* An array in memory that the caller has from elsewhere: count it; false: the limit refuses. And forget it. */
bool trli_memory_count(trl_context *ctx, size_t bytes);
void trli_memory_discount(trl_context *ctx, size_t bytes);
/* How far behind a page a block begins, the number-th of those that are used together. */
size_t trli_memory_stagger(size_t bytes, int64_t number);
/* Lower the peak, after memory that was not part of the problem was freed. Thread: main, when no other thread
 * allocates. */
void trli_memory_set_peak(trl_context *ctx, size_t bytes);
/* Bytes of the node's memory, or what a cgroup grants of it, at present; UINT64_MAX: unknown. */
uint64_t trli_node_memory(void);
/* Whether so many bytes more of each rank are free on its node, where all of its ranks take theirs, unless somebody set
 * the limit. Systems grant more than they have, and end processes that use it. Fails with MEMORY on all ranks, MPI.
 * Collective: yes, in a phase. */
TRL_NODISCARD trl_err trli_memory_agree(trl_context *ctx, size_t bytes);
/* Let the limit be the memory of the machine, as it is when memory is asked for. */
void trli_memory_follow_machine(trl_context *ctx);
/* Raise a peak to at least `now`. */
void trli_memory_raise(_Atomic size_t *peak, size_t now);

/* Metadata: whatever grows with equations, steps, tasks or the length of a deck, but is no array of values. Zeroed
 * memory for `count` elements of `size` bytes, aligned as by malloc; a count of 0 is allowed. NULL, without a message,
 * where the limit or the system refuses. trli_free gives it back. Thread: any. */
void *trli_new(trl_context *ctx, size_t count, size_t size);
/* Memory of trli_new, or NULL, with room for `count` elements, perhaps elsewhere; what is new is not set. On failure it
 * returns NULL and the old memory stays. */
void *trli_resize(trl_context *ctx, void *memory, size_t count, size_t size);
/* A copy of a text, for trli_free; NULL as above. */
char *trli_copy_text(trl_context *ctx, const char *text);
/* Free memory of trli_new and its like, while its context lives; NULL is allowed. */
void trli_free(void *memory);

/* Record the message "no memory " followed by its purpose, and return MEMORY. */
trl_err trli_no_memory(trl_context *ctx, const trl_place *place, const char *what, ...) TRL_PRINTF(3, 4);

/* The growth of all growing arrays. *list: pointer to elements of `size` bytes, with room for *capacity of them.
 * Make room for `more` elements behind `count`, and at least double the room, so that adding takes constant time.
 * The memory is that of trli_new; new elements are not set. On failure it returns false without a message and
 * changes nothing: memory is missing, or more than INT32_MAX elements are wanted. */
bool trli_grow(trl_context *ctx, void *list, int64_t count, int64_t more, int32_t *capacity, size_t size);
static inline bool trli_make_room(trl_context *ctx, void *list, int64_t count, int64_t more, int32_t *capacity,
                                  size_t size)
{
    return count + more <= *capacity || trli_grow(ctx, list, count, more, capacity, size);
}

/* A growing array in one struct; its users know the type of the elements. All zero: empty. */
typedef struct trli_list {
    void *data;
    int64_t count;
    int32_t capacity;
} trli_list;

/* trli_make_room with a message that names the array. */
TRL_NODISCARD static inline trl_err trli_list_reserve(trl_context *ctx, trli_list *list, int64_t more, size_t size,
                                                      const char *what)
{
    return trli_make_room(ctx, &list->data, list->count, more, &list->capacity, size)
               ? TRL_OK
               : trli_no_memory(ctx, NULL, "for '%s'", what);
}
void trli_list_free(trli_list *list);

#endif

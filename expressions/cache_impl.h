/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The folder of the user alone that keeps what this machine made: compiled kernels, the way in which each is the fastest, and the machine's
 * measured speed. Entries are named by digests of all that they depend on, written aside and renamed into place, and end with a digest of
 * their content. */
#ifndef TRLI_CACHE_IMPL_H
#define TRLI_CACHE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRLI_PATH_ROOM = 4096, TRLI_DIGEST_TEXT = 33 };

typedef struct trli_cache {
    char folder[TRLI_PATH_ROOM]; /* "": none */
    bool temporary;              /* the folder goes with trli_cache_close, once it is empty */
} trli_cache;

/* Find or make the folder: TRELLIS_CACHE_DIR, XDG_CACHE_HOME or HOME; one that others may write to is not used, then a temporary one is.
 * False, with errno: there is none. */
bool trli_cache_open(trli_cache *cache);
void trli_cache_close(const trli_cache *cache);
/* A new file of two texts, for this user; false if it exists or cannot be written. */
bool trli_cache_write(const char *path, const char *first, const char *second);
/* A line that is kept, with its end: load it if it is whole; keep it in place of the one before. A cache that cannot be written costs finding
 * it out each time, and nothing else. */
bool trli_cache_load(const char *path, char *line, int room);
void trli_cache_keep(const char *path, const char *line);

/* Digests: FNV-1a, twice. */
void trli_digest_start(uint64_t digest[2]);
void trli_digest_bytes(uint64_t digest[2], const void *data, size_t n);
void trli_digest_write(const uint64_t digest[2], char text[TRLI_DIGEST_TEXT]);
/* Add what the processor can do, as the system lists it. */
void trli_digest_processor(uint64_t digest[2]);
/* Of all but the last `tail` bytes of a file, which go to `last`. */
bool trli_digest_file(const char *path, char text[TRLI_DIGEST_TEXT], long tail, char *last);

#endif

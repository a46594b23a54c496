/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The folder of the user alone that keeps what this machine made: compiled kernels, the fastest variant of
 * each, and the machine's measured speed. Entries are named by digests of all that they depend on, written aside and
 * renamed into place, and end with a digest of their content.
 *
 * A user who can put an entry there can have this user run anything. So the folder is opened once, component by
 * component, and only if nobody but this user and root can exchange any of them; everything else goes through its
 * descriptor. An entry counts if the file that was opened is this user's and nobody else may write to it. */
#ifndef TRLI_CACHE_IMPL_H
#define TRLI_CACHE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "aside_impl.h"

enum { TRLI_PATH_ROOM = 4096, TRLI_WHY_ROOM = 640, TRLI_DIGEST_TEXT = 33, TRLI_ENTRY_ROOM = TRLI_DIGEST_TEXT + 16 };

typedef struct trli_cache {
    char path[TRLI_PATH_ROOM]; /* of the folder, for messages; "": no variable names one */
    int folder;                /* open, or -1: not used */
    char why[TRLI_WHY_ROOM];   /* it is not used */
    bool told;                 /* the user should know: a folder that was asked for, or that others could exchange */
} trli_cache;

/* Find or make the folder: TRELLIS_CACHE_DIR, XDG_CACHE_HOME or HOME. */
void trli_cache_open(trli_cache *cache);
void trli_cache_close(trli_cache *cache);
/* Open a sound entry to read it; -1 if there is none. */
int trli_cache_entry(const trli_cache *cache, const char *name);
/* What is kept: load it if it is whole and has room; true with *bytes > room: it is there, perhaps. Keep it in place of
 * what was there before. A cache that cannot be written costs finding it out each time, and nothing else. */
bool trli_cache_load_bytes(const trli_cache *cache, const char *name, size_t room, void *content, size_t *bytes);
void trli_cache_keep_bytes(const trli_cache *cache, const char *name, const void *content, size_t bytes);
/* The same of a text, which has room with its end. */
bool trli_cache_load(const trli_cache *cache, const char *name, char *line, int room);
void trli_cache_keep(const trli_cache *cache, const char *name, const char *line);
/* Keep what another rank made, unless it is there: often this cache is that rank's, too. */
void trli_cache_add_bytes(const trli_cache *cache, const char *name, const void *content, size_t bytes);
/* How much is kept. */
void trli_cache_measure(const trli_cache *cache, int *kernels, int64_t *bytes);

/* A folder for what this process's compilers read and write, which nobody else can enter: in the cache, so that what is
 * made there can be renamed into it, or, without a cache or without room there, among temporary files. What killed
 * processes left beside it goes. */
typedef struct trli_workshop {
    int parent, folder; /* open, or -1 */
    char name[TRLI_ASIDE_ROOM];
    char path[TRLI_PATH_ROOM]; /* that nobody else can exchange, or "" */
} trli_workshop;
/* False, with errno: there is none. */
bool trli_workshop_open(trli_workshop *workshop, const trli_cache *cache);
/* Remove it with all that is in it. */
void trli_workshop_close(trli_workshop *workshop);

/* Open a folder, a path's last one, if nobody but this user and root can exchange any folder on its way. own: it is
 * this user's, nobody else may write to it, and of its last `make` components those that are missing are made. -1, and
 * why. *unsafe: others could. */
int trli_folder_open(const char *path, bool own, int make, char why[TRLI_WHY_ROOM], bool *unsafe);

/* Digests: FNV-1a, twice. */
void trli_digest_start(uint64_t digest[2]);
void trli_digest_bytes(uint64_t digest[2], const void *data, size_t n);
void trli_digest_write(const uint64_t digest[2], char text[TRLI_DIGEST_TEXT]);
/* Add what the processor can do, as the system lists it. */
void trli_digest_processor(uint64_t digest[2]);
/* Of all but the last `tail` bytes of an open file, which go to `last`. */
bool trli_digest_file(int file, char text[TRLI_DIGEST_TEXT], off_t tail, char *last);

#endif

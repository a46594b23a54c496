/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache_impl.h"

/* ---- digests: FNV-1a, twice ---- */

void trli_digest_bytes(uint64_t digest[2], const void *data, size_t n)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < n; ++i) {
        digest[0] = (digest[0] ^ byte[i]) * 1099511628211u;
        digest[1] = (digest[1] ^ (unsigned)(byte[i] + 0x5b)) * 0x9e3779b97f4a7c15u;
        digest[1] ^= digest[1] >> 29;
    }
}

void trli_digest_start(uint64_t digest[2])
{
    digest[0] = 14695981039346656037u;
    digest[1] = 0x2545f4914f6cdd1du;
}

void trli_digest_write(const uint64_t digest[2], char text[TRLI_DIGEST_TEXT])
{
    snprintf(text, TRLI_DIGEST_TEXT, "%016llx%016llx", (unsigned long long)digest[0], (unsigned long long)digest[1]);
}

bool trli_digest_file(int file, char text[TRLI_DIGEST_TEXT], off_t tail, char *last)
{
    char buffer[65536];
    uint64_t digest[2];
    struct stat status;
    if (fstat(file, &status) || status.st_size < tail) return false;
    const off_t end = status.st_size - tail;
    trli_digest_start(digest);
    for (off_t at = 0; at < end;) {
        ssize_t n =
            pread(file, buffer, (size_t)(end - at < (off_t)sizeof buffer ? end - at : (off_t)sizeof buffer), at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        trli_digest_bytes(digest, buffer, (size_t)n);
        at += n;
    }
    trli_digest_write(digest, text);
    return tail == 0 || pread(file, last, (size_t)tail, end) == tail;
}

void trli_digest_processor(uint64_t digest[2])
{
    char line[8192];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file) && line[0] != '\n')
        if (strncmp(line, "model name", 10) == 0 || strncmp(line, "flags", 5) == 0 ||
            strncmp(line, "Features", 8) == 0 || strncmp(line, "CPU part", 8) == 0)
            trli_digest_bytes(digest, line, strlen(line));
    if (file) fclose(file);
}

/* ---- the folder ---- */

void trli_cache_open(trli_cache *c)
{
    const char *own = getenv("TRELLIS_CACHE_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0, make = 2;
    bool unsafe = false;
    *c = (trli_cache){.folder = -1};
    if (own && *own) {
        n = snprintf(c->path, sizeof c->path, "%s", own);
        make = 1;
    } else if (cache && *cache == '/') {
        n = snprintf(c->path, sizeof c->path, "%s/trellis", cache);
    } else if (home && *home == '/') {
        n = snprintf(c->path, sizeof c->path, "%s/.cache/trellis", home);
    }
    if (n == 0)
        snprintf(c->why, sizeof c->why, "none of TRELLIS_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder");
    else if (n >= (int)sizeof c->path)
        snprintf(c->why, sizeof c->why, "its path is too long");
    else
        c->folder = trli_folder_open(c->path, true, make, c->why, &unsafe);
    c->told = c->folder < 0 && (unsafe || (own && *own));
}

void trli_cache_close(trli_cache *c)
{
    if (c->folder >= 0) close(c->folder);
    c->folder = -1;
}

/* ---- entries ---- */

int trli_cache_entry(const trli_cache *cache, const char *name)
{
    struct stat s;
    if (cache->folder < 0) return -1;
    int file = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return -1;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return file;
    close(file);
    return -1;
}

static void digest_content(const void *content, size_t bytes, char text[TRLI_DIGEST_TEXT])
{
    uint64_t digest[2];
    trli_digest_start(digest);
    trli_digest_bytes(digest, content, bytes);
    trli_digest_write(digest, text);
}

static bool read_all(int file, char *to, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = read(file, to, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool write_all(int file, const char *from, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = write(file, from, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        from += n;
        bytes -= (size_t)n;
    }
    return true;
}

bool trli_cache_load_bytes(const trli_cache *cache, const char *name, size_t room, void *content, size_t *bytes)
{
    enum { DIGEST = TRLI_DIGEST_TEXT - 1 };
    char wanted[DIGEST], found[TRLI_DIGEST_TEXT];
    struct stat s;
    const int file = trli_cache_entry(cache, name);
    if (file < 0) return false;
    bool whole = fstat(file, &s) == 0 && s.st_size >= DIGEST;
    *bytes = whole ? (size_t)s.st_size - DIGEST : 0;
    whole = whole && (*bytes > room || (read_all(file, content, *bytes) && read_all(file, wanted, DIGEST)));
    close(file);
    if (!whole || *bytes > room) return whole;
    digest_content(content, *bytes, found);
    return memcmp(wanted, found, DIGEST) == 0;
}

bool trli_cache_load(const trli_cache *cache, const char *name, char *line, int room)
{
    size_t bytes;
    if (!trli_cache_load_bytes(cache, name, (size_t)room - 1, line, &bytes) || bytes > (size_t)room - 1) return false;
    line[bytes] = 0;
    return true;
}

void trli_cache_keep_bytes(const trli_cache *cache, const char *name, const void *content, size_t bytes)
{
    char digest[TRLI_DIGEST_TEXT], aside[TRLI_ASIDE_ROOM];
    if (cache->folder < 0) return;
    digest_content(content, bytes, digest);
    trli_aside_name(aside);
    int file = openat(cache->folder, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return;
    const bool written = write_all(file, content, bytes) && write_all(file, digest, strlen(digest));
    if (close(file) || !written || renameat(cache->folder, aside, cache->folder, name))
        (void)unlinkat(cache->folder, aside, 0);
}

void trli_cache_add_bytes(const trli_cache *cache, const char *name, const void *content, size_t bytes)
{
    const int there = trli_cache_entry(cache, name);
    if (there >= 0)
        close(there);
    else
        trli_cache_keep_bytes(cache, name, content, bytes);
}

void trli_cache_keep(const trli_cache *cache, const char *name, const char *line)
{
    trli_cache_keep_bytes(cache, name, line, strlen(line));
}

void trli_cache_measure(const trli_cache *cache, int *kernels, int64_t *bytes)
{
    int listed = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = listed >= 0 ? fdopendir(listed) : NULL;
    struct stat s;
    *kernels = 0;
    *bytes = 0;
    if (!stream && listed >= 0) close(listed);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (fstatat(cache->folder, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode)) continue;
        *kernels += dot && (strcmp(dot, ".so") == 0 || strcmp(dot, ".cubin") == 0);
        *bytes += s.st_size / (off_t)s.st_nlink;
    }
    if (stream) closedir(stream);
}

/* ---- where compilers work ---- */

/* With temporary files. Its folder may be one that others can exchange: then it has no path that can be relied on, and
 * its descriptor alone is used. */
static bool open_temporary(trli_workshop *w)
{
    const char *tmp = getenv("TMPDIR");
    const char *folder[] = {tmp && *tmp == '/' ? tmp : "/tmp", "/tmp"};
    char why[TRLI_WHY_ROOM];
    bool unsafe;
    for (int i = 0; i < 2 && w->parent < 0; ++i) {
        if (strlen(folder[i]) + sizeof w->name >= sizeof w->path) continue;
        w->parent = trli_folder_open(folder[i], false, 0, why, &unsafe);
        if (w->parent >= 0) snprintf(w->path, sizeof w->path, "%.*s", TRLI_PATH_ROOM - TRLI_ASIDE_ROOM - 2, folder[i]);
    }
    if (w->parent < 0) w->parent = open(folder[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return w->parent >= 0;
}

/* Make the folder below the open parent. Returns 0 or an errno. */
static int make_workshop(trli_workshop *w)
{
    struct stat s;
    trli_aside_sweep(w->parent, w->path[0] != 0);
    trli_aside_name(w->name);
    if (mkdirat(w->parent, w->name, 0700)) return errno;
    w->folder = openat(w->parent, w->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->folder < 0 || fstat(w->folder, &s)) return errno;
    const size_t used = strlen(w->path);
    if (used) snprintf(w->path + used, sizeof w->path - used, "/%s", w->name);
    /* Another one may stand there already, if others can write to the parent. */
    return s.st_uid == geteuid() && (s.st_mode & 077) == 0 ? 0 : EPERM;
}

/* Whether a compilation fits: users' folders are often full, and others are not. */
static int check_room(const trli_workshop *w)
{
    const off_t room = 2 << 20;
    int file = openat(w->folder, "room", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    const int number = posix_fallocate(file, 0, room);
    close(file);
    (void)unlinkat(w->folder, "room", 0);
    return number;
}

bool trli_workshop_open(trli_workshop *w, const trli_cache *cache)
{
    int number;
    *w = (trli_workshop){.parent = -1, .folder = -1};
    if (cache->folder >= 0) {
        w->parent = fcntl(cache->folder, F_DUPFD_CLOEXEC, 3);
        snprintf(w->path, sizeof w->path, "%.*s", TRLI_PATH_ROOM - TRLI_ASIDE_ROOM - 2, cache->path);
        number = w->parent < 0 ? errno : make_workshop(w);
        if (number == 0) number = check_room(w);
        if (number == 0) return true;
        trli_workshop_close(w);
    }
    number = open_temporary(w) ? make_workshop(w) : errno;
    if (number == 0) return true;
    trli_workshop_close(w);
    errno = number;
    return false;
}

void trli_workshop_close(trli_workshop *w)
{
    if (w->folder >= 0) {
        trli_aside_empty(w->folder);
        (void)unlinkat(w->parent, w->name, AT_REMOVEDIR);
        close(w->folder);
    }
    if (w->parent >= 0) close(w->parent);
    *w = (trli_workshop){.parent = -1, .folder = -1};
}

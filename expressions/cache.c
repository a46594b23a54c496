/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
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

bool trli_digest_file(const char *path, char text[TRLI_DIGEST_TEXT], long tail, char *last)
{
    char buffer[65536];
    uint64_t digest[2];
    long left = -1;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    trli_digest_start(digest);
    if (fseek(file, 0, SEEK_END) == 0) left = ftell(file) - tail;
    rewind(file);
    while (left > 0) {
        size_t n = fread(buffer, 1, (size_t)left < sizeof buffer ? (size_t)left : sizeof buffer, file);
        if (n == 0) break;
        trli_digest_bytes(digest, buffer, n);
        left -= (long)n;
    }
    bool whole = left == 0 && (tail == 0 || fread(last, 1, (size_t)tail, file) == (size_t)tail);
    fclose(file);
    trli_digest_write(digest, text);
    return whole;
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

/* Ours alone: whoever could write there could have us run anything. */
static bool is_private(const char *folder)
{
    struct stat s;
    return lstat(folder, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 022) == 0 &&
           access(folder, W_OK | X_OK) == 0;
}

bool trli_cache_open(trli_cache *c)
{
    const char *own = getenv("TRELLIS_CACHE_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *tmp = getenv("TMPDIR");
    char base[TRLI_PATH_ROOM] = "";
    int n = -1;
    c->temporary = false;
    if (own && *own)
        n = snprintf(c->folder, sizeof c->folder, "%s", own);
    else if (cache && *cache == '/')
        n = snprintf(base, sizeof base, "%s", cache);
    else if (home && *home == '/')
        n = snprintf(base, sizeof base, "%s/.cache", home);
    if (base[0] && n > 0 && n < TRLI_PATH_ROOM - 16) {
        (void)mkdir(base, 0700);
        n = snprintf(c->folder, sizeof c->folder, "%.*s/trellis", TRLI_PATH_ROOM - 16, base);
    }
    if (n > 0 && n < TRLI_PATH_ROOM && (mkdir(c->folder, 0700) == 0 || errno == EEXIST) && is_private(c->folder))
        return true;
    snprintf(c->folder, sizeof c->folder, "%s/trellis-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    c->temporary = mkdtemp(c->folder) != NULL;
    if (!c->temporary) c->folder[0] = '\0';
    return c->temporary;
}

void trli_cache_close(const trli_cache *c)
{
    if (c->temporary) (void)rmdir(c->folder);
}

bool trli_cache_write(const char *path, const char *first, const char *second)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (!file) {
        if (descriptor >= 0) close(descriptor);
        return false;
    }
    bool written = fputs(first, file) >= 0 && fputs(second, file) >= 0;
    return fclose(file) == 0 && written;
}

static void digest_line(const char *line, char text[TRLI_DIGEST_TEXT])
{
    uint64_t digest[2];
    trli_digest_start(digest);
    trli_digest_bytes(digest, line, strlen(line));
    trli_digest_write(digest, text);
}

bool trli_cache_load(const char *path, char *line, int room)
{
    char wanted[TRLI_DIGEST_TEXT + 1] = "", found[TRLI_DIGEST_TEXT];
    FILE *file = fopen(path, "r");
    if (!file) return false;
    const bool whole = fgets(line, room, file) && fgets(wanted, sizeof wanted, file);
    fclose(file);
    if (whole) digest_line(line, found);
    return whole && strcmp(wanted, found) == 0;
}

void trli_cache_keep(const char *path, const char *line)
{
    char digest[TRLI_DIGEST_TEXT], own[TRLI_PATH_ROOM + 32];
    digest_line(line, digest);
    snprintf(own, sizeof own, "%s.%ld", path, (long)getpid());
    (void)unlink(own); /* of an earlier process of this number */
    if (!trli_cache_write(own, line, digest) || rename(own, path) != 0) (void)unlink(own);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files that say what memory is granted are looked for in the folder TRL_GROUPS first. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);
    const char *folder = getenv("TRL_GROUPS");
    char other[PATH_MAX];
    if (!next) {
        void *found = dlsym(RTLD_NEXT, "fopen");
        memcpy(&next, &found, sizeof next);
    }
    if (folder && (strncmp(path, "/sys/fs/cgroup", 14) == 0 || strncmp(path, "/proc/", 6) == 0)) {
        snprintf(other, sizeof other, "%s%s", folder, path);
        FILE *file = next(other, mode);
        if (file || strncmp(path, "/sys", 4) == 0) return file;
    }
    return next(path, mode);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The first rank that computes a part of another one's kernel dies in it: what others share to be written to is mapped
 * such that it may only be read, but for small pieces, on which ranks offer and take such parts. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SMALL = 2 << 20 };

static int of_others = -1; /* the file that was opened last */

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, va_arg(more, int));
    va_end(more);
    if (strncmp(path, "/proc/", 6) == 0 && strstr(path, "/fd/") && flags & O_RDWR) of_others = file;
    return file;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

void *mmap(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
    const bool shut = file >= 0 && file == of_others && bytes > SMALL;
    return (void *)syscall(SYS_mmap, at, bytes, shut ? PROT_READ : access, flags, file, offset);
}

void *mmap64(void *at, size_t bytes, int access, int flags, int file, off_t offset) __attribute__((alias("mmap")));

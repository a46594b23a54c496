/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kills the program `trellis` at one of its calls that change files, as a loss of power would: the call before is done,
 * of this one half of the bytes. Loaded by LD_PRELOAD. TRL_KILL_AT: which call, from 1; 0: none. TRL_KILL_COUNT: a file
 * that gets the number of calls at the end. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;
static long wanted = -1; /* -1: another program than trellis */

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void start(void)
{
    char program[4096] = "";
    const char *at = getenv("TRL_KILL_AT");
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (at && length > 8 && strcmp(program + length - 8, "/trellis") == 0) wanted = atol(at);
}

/* A name aside, where the file is. */
static bool is_output(int file)
{
    char link[64];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return wanted >= 0 && file > 2 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

static bool is_last(void)
{
    return wanted >= 0 && atomic_fetch_add(&calls, 1) + 1 == wanted;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("TRL_KILL_COUNT");
    const long n = atomic_load(&calls);
    if (wanted < 0 || !path) return;
    wanted = -1;
    FILE *out = fopen(path, "w");
    if (out) fprintf(out, "%ld\n", n);
    if (out) fclose(out);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
    if (is_output(file) && is_last()) {
        (void)!NEXT(pwrite)(file, bytes, size / 2, at);
        die();
    }
    return NEXT(pwrite)(file, bytes, size, at);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    if (is_output(file) && is_last()) {
        (void)!NEXT(write)(file, bytes, size / 2);
        die();
    }
    return NEXT(write)(file, bytes, size);
}

int posix_fallocate(int file, off_t from, off_t size)
{
    if (is_output(file) && is_last()) {
        (void)!NEXT(posix_fallocate)(file, from, size / 2);
        die();
    }
    return NEXT(posix_fallocate)(file, from, size);
}

int ftruncate(int file, off_t size)
{
    if (is_output(file) && is_last()) die();
    return NEXT(ftruncate)(file, size);
}

int fsync(int file)
{
    if (is_last()) die();
    return NEXT(fsync)(file);
}

int rename(const char *from, const char *to)
{
    if (is_last()) die();
    return NEXT(rename)(from, to);
}

int unlink(const char *path)
{
    if (is_last()) die();
    return NEXT(unlink)(path);
}

int mkdir(const char *path, mode_t mode)
{
    if (is_last()) die();
    return NEXT(mkdir)(path, mode);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (flags & (O_CREAT | O_TRUNC) && is_last()) die();
    return NEXT(open)(path, flags, mode);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "files_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

trl_err trli_format(trl_context *ctx, char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vasprintf(text, format, args);
    va_end(args);
    if (length >= 0) return TRL_OK;
    *text = NULL;
    return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for a text of the output");
}

static const char *advice(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return "; free space there, or set output.directory to a folder on another disk";
    case EFBIG:
        return "; raise the limit on the size of files (ulimit -f), or write fewer fields";
    case EACCES:
    case EPERM:
    case EROFS:
        return "; set output.directory to a folder that you may write to";
    case ENOTDIR:
        return "; a file stands where a folder is needed: move it away, or choose another path";
    case EISDIR:
        return "; a folder stands where a file is needed: move it away, or choose another path";
    default:
        return "";
    }
}

trl_err trli_file_fail(trl_context *ctx, const char *action, const char *path, int number)
{
    return trl_fail(ctx, TRL_ERR_IO, NULL, "cannot %s '%s': %s%s", action, path, strerror(number), advice(number));
}

static trl_err create_one(trl_context *ctx, const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) == 0) return TRL_OK;
    int number = errno;
    if (stat(path, &status)) return trli_file_fail(ctx, "create folder", path, number);
    return S_ISDIR(status.st_mode) ? TRL_OK : trli_file_fail(ctx, "create folder", path, ENOTDIR);
}

trl_err trli_folder_create(trl_context *ctx, const char *path)
{
    char *parent = NULL;
    trl_err err = trli_format(ctx, &parent, "%s", path);
    for (char *slash = parent; err == TRL_OK && *slash && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        err = create_one(ctx, parent);
        *slash = '/';
    }
    if (err == TRL_OK) err = create_one(ctx, path);
    free(parent);
    return err;
}

int trli_file_put(int file, const void *bytes, size_t size, off_t at)
{
    const char *from = bytes;
    while (size > 0) {
        ssize_t put = pwrite(file, from, size, at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        if (put == 0) return ENOSPC;
        from += put;
        at += put;
        size -= (size_t)put;
    }
    return 0;
}

trl_err trli_file_write(trl_context *ctx, const char *path, const void *bytes, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return trli_file_fail(ctx, "write", path, errno);
    int number = trli_file_put(file, bytes, size, 0);
    if (!number && fsync(file)) number = errno;
    /* Network file systems report a full disk as late as here. */
    if (close(file) && !number) number = errno;
    if (!number) return TRL_OK;
    unlink(path);
    return trli_file_fail(ctx, "write", path, number);
}

trl_err trli_file_replace(trl_context *ctx, const char *path, const void *bytes, size_t size)
{
    char *aside = NULL;
    trl_err err;
    TRL_TRY(trli_format(ctx, &aside, "%s.tmp", path));
    TRL_TRY(trli_file_write(ctx, aside, bytes, size));
    if (rename(aside, path) == 0) goto done;
    err = trli_file_fail(ctx, "write", path, errno);
    unlink(aside);
done:
    free(aside);
    return err;
}

/* Bring a file or the entries of a folder to the disk. Returns 0 or an errno. */
static int synchronise(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    int number = fsync(file) ? errno : 0;
    if (close(file) && !number) number = errno;
    return number;
}

trl_err trli_file_publish(trl_context *ctx, const char *from, const char *to)
{
    char *folder = NULL;
    const char *slash = strrchr(to, '/');
    trl_err err = TRL_OK;
    TRL_TRY(trli_format(ctx, &folder, "%.*s", slash ? (int)(slash - to) + 1 : 1, slash ? to : "."));
    int number = synchronise(from);
    if (!number && rename(from, to)) number = errno;
    /* Some file systems cannot synchronise folders; the rename holds all the same. */
    if (!number) (void)synchronise(folder);
    if (number) err = trli_file_fail(ctx, "write", to, number);
done:
    free(folder);
    return err;
}

trl_err trli_file_read(trl_context *ctx, const char *path, char **bytes, size_t *size)
{
    struct stat status;
    size_t got = 0;
    int number = 0;
    *bytes = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status)) {
        number = errno;
        goto done;
    }
    *bytes = malloc((size_t)status.st_size + 1);
    if (!*bytes) {
        close(file);
        return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to read '%s' of %lld bytes", path,
                        (long long)status.st_size);
    }
    while (got < (size_t)status.st_size) {
        ssize_t n = read(file, *bytes + got, (size_t)status.st_size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) number = errno;
        if (n <= 0) break;
        got += (size_t)n;
    }
    (*bytes)[got] = 0;
    *size = got;
done:
    if (file >= 0) close(file);
    if (!number) return TRL_OK;
    free(*bytes);
    *bytes = NULL;
    return trli_file_fail(ctx, "read", path, number);
}

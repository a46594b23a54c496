/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "growing_file_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory_impl.h"

trl_err trli_growing_open(trl_context *ctx, const char *what, const char *path, off_t size, trli_growing_file *file)
{
    *file = (trli_growing_file){.ctx = ctx, .what = what, .file = -1, .end = -1, .size = size};
    trl_err err = trli_format(ctx, &file->path, "%s", path);
    if (err != TRL_OK) return err;
    file->file = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file->file >= 0) file->end = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    return file->end >= 0 ? TRL_OK : trli_file_fail(ctx, "write", path, errno);
}

/* Whether the file that is written to still is the one at its path, and holds what was written. */
static trl_err check(const trli_growing_file *file)
{
    struct stat named, opened;
    const char *what = NULL;
    char size[96];
    if (lstat(file->path, &named) || fstat(file->file, &opened)) {
        if (errno != ENOENT && errno != ENOTDIR) return trli_file_fail(file->ctx, "write", file->path, errno);
        what = "it or its folder was removed";
    } else if (named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) {
        what = "it was replaced by another file";
    } else if (opened.st_size != file->size) {
        snprintf(size, sizeof size, "it was changed: %lld bytes were written, and it has %lld", (long long)file->size,
                 (long long)opened.st_size);
        what = size;
    }
    if (!what) return TRL_OK;
    return trl_fail(file->ctx, TRL_ERR_IO, NULL,
                    "%s in '%s' cannot go on: %s while the run wrote to it; leave a run's files alone until it ends",
                    file->what, file->path, what);
}

trl_err trli_growing_append(trli_growing_file *file, const void *bytes, size_t size)
{
    trl_err err = check(file);
    if (err != TRL_OK) return err;
    /* To where the file ends now, not to where it should: writing there would hide that it was cut since the check. */
    int number = trli_file_put(file->end, bytes, size, -1);
    if (!number) {
        file->size += (off_t)size;
        return TRL_OK;
    }
    if (ftruncate(file->file, file->size)) number = errno;
    return trli_file_fail(file->ctx, "write", file->path, number);
}

trl_err trli_growing_close(trli_growing_file *file)
{
    trl_err err = TRL_OK;
    if (file->file >= 0) {
        int number = fsync(file->file) ? errno : 0;
        err = number ? trli_file_fail(file->ctx, "write", file->path, number) : check(file);
        close(file->file);
        if (file->end >= 0) close(file->end);
    }
    trli_free(file->path);
    *file = (trli_growing_file){.file = -1, .end = -1};
    return err;
}

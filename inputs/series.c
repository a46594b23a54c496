/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "writers_impl.h"

struct trli_series_file {
    trl_context *ctx;
    int n;
    /* rank 0: */
    char *path;
    int file;   /* -1: not open */
    off_t size; /* of whole lines */
};

static trl_err header_of(trl_context *ctx, int n, const char *const *names, char **header)
{
    size_t length = sizeof "step,time\n";
    for (int i = 0; i < n; ++i) length += strlen(names[i]) + 1;
    *header = trli_new(ctx, length, 1);
    if (!*header) return trli_no_memory(ctx, NULL, "for the header of %d series", n);
    char *end = stpcpy(*header, "step,time");
    for (int i = 0; i < n; ++i) {
        *end++ = ',';
        end = stpcpy(end, names[i]);
    }
    stpcpy(end, "\n");
    return TRL_OK;
}

/* Bytes of the lines to keep: whole lines (a crash may leave half a line) in front of the first one later than
 * after_step. */
static size_t kept_bytes(const char *text, size_t header_length, trl_gidx after_step)
{
    const char *line = text + header_length, *newline;
    while ((newline = strchr(line, '\n'))) {
        char *end;
        errno = 0;
        intmax_t step = strtoimax(line, &end, 10);
        if (errno || end == line || *end != ',' || step > after_step) break;
        line = newline + 1;
    }
    return (size_t)(line - text);
}

/* Text the file starts with: the header, and what an earlier run left in it. */
static trl_err initial_text(trli_series_file *file, const char *header, bool append, trl_gidx after_step, char **text,
                            size_t *size)
{
    size_t length = strlen(header);
    trl_err err = TRL_OK;
    if (append && access(file->path, F_OK) == 0) {
        TRL_TRY(trli_file_read(file->ctx, TRL_ERR_IO, NULL, file->path, INT64_MAX, text, size));
        if (strncmp(*text, header, length))
            return trl_fail(file->ctx, TRL_ERR_INPUT, NULL,
                            "the series in '%s' are '%.*s', those of the deck are '%.*s'; a restart continues the "
                            "file: use the same "
                            "output.series.values, or move the file away",
                            file->path, (int)strcspn(*text, "\n"), *text, (int)length - 1, header);
        *size = kept_bytes(*text, length, after_step);
        return TRL_OK;
    }
    TRL_TRY(trli_format(file->ctx, text, "%s", header));
    *size = length;
done:
    return err;
}

/* On rank 0. */
static trl_err open_series(trli_series_file *file, const char *folder, const char *const *names, bool append,
                           trl_gidx after_step)
{
    char *header = NULL, *text = NULL;
    size_t size;
    trl_err err;
    TRL_TRY(trli_folder_create(file->ctx, folder));
    TRL_TRY(trli_format(file->ctx, &file->path, "%s/series.csv", folder));
    TRL_TRY(header_of(file->ctx, file->n, names, &header));
    TRL_TRY(initial_text(file, header, append, after_step, &text, &size));
    TRL_TRY(trli_file_replace(file->ctx, file->path, text, size));
    file->file = open(file->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file->file < 0) err = trli_file_fail(file->ctx, "write", file->path, errno);
    file->size = (off_t)size;
done:
    trli_free(text);
    trli_free(header);
    return err;
}

trl_err trli_series_create(trl_context *ctx, const char *folder, int n, const char *const *names, bool append,
                           trl_gidx after_step, trli_series_file **file)
{
    trl_err err = TRL_OK;
    *file = trli_new(ctx, 1, sizeof **file);
    if (*file) {
        **file = (trli_series_file){.ctx = ctx, .n = n, .file = -1};
    } else {
        err = trli_no_memory(ctx, NULL, "for the file of %d series", n);
    }
    if (err == TRL_OK && trl_context_rank(ctx) == 0) err = open_series(*file, folder, names, append, after_step);
    err = trl_context_agree(ctx, err);
    if (err == TRL_OK) return TRL_OK;
    if (*file && (*file)->file >= 0) close((*file)->file);
    if (*file) trli_free((*file)->path);
    trli_free(*file);
    *file = NULL;
    return err;
}

/* Whether the file that is written to still is the one at its path, and holds what was written. On rank 0. */
static trl_err check_file(const trli_series_file *file)
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
    return trl_fail(
        file->ctx, TRL_ERR_IO, NULL,
        "the series in '%s' cannot go on: %s while the run wrote to it; leave a run's files alone until it ends",
        file->path, what);
}

/* On rank 0. Half a line, where the disk ran full, is taken back. */
static trl_err write_line(trli_series_file *file, trl_gidx step, double time, const double *values)
{
    enum { NUMBER_ROOM = 32 };
    size_t room = (size_t)(file->n + 2) * NUMBER_ROOM, used = 0;
    trl_err err = check_file(file);
    if (err != TRL_OK) return err;
    char *line = trli_new(file->ctx, room, 1);
    if (!line) return trli_no_memory(file->ctx, NULL, "for a line of %d series", file->n);
    used += (size_t)snprintf(line, room, "%" TRL_GIDX_FMT ",%.17g", step, time);
    for (int i = 0; i < file->n; ++i)
        used += (size_t)snprintf(line + used, room - used, ",%.17g", isnan(values[i]) ? NAN : values[i]);
    line[used++] = '\n';
    int number = trli_file_put(file->file, line, used, file->size);
    trli_free(line);
    if (!number) {
        file->size += (off_t)used;
        return TRL_OK;
    }
    if (ftruncate(file->file, file->size)) number = errno;
    return trli_file_fail(file->ctx, "write", file->path, number);
}

trl_err trli_series_write(trli_series_file *file, trl_gidx step, double time, const double *values)
{
    trl_err err = trl_context_rank(file->ctx) == 0 ? write_line(file, step, time, values) : TRL_OK;
    return trl_context_agree(file->ctx, err);
}

trl_err trli_series_close(trli_series_file **file)
{
    trli_series_file *f = *file;
    trl_err err = TRL_OK;
    if (!f) return TRL_OK;
    if (f->file >= 0) {
        int number = fsync(f->file) ? errno : 0;
        err = number ? trli_file_fail(f->ctx, "write", f->path, number) : check_file(f);
        close(f->file);
    }
    err = trl_context_agree(f->ctx, err);
    trli_free(f->path);
    trli_free(f);
    *file = NULL;
    return err;
}

static trl_err open_writer(const trli_writer_request *request, void **state)
{
    trli_series_file *file;
    trl_err err = trli_series_create(request->ctx, request->folder, request->nseries, request->series, request->append,
                                     request->after_step, &file);
    *state = file;
    return err;
}

static trl_err write_series(void *state, trl_gidx step, double time, const double *values)
{
    return trli_series_write(state, step, time, values);
}

static trl_err close_writer(void **state)
{
    trli_series_file *file = *state;
    *state = NULL;
    return trli_series_close(&file);
}

const trli_writer trli_writer_csv = {
    .name = "series.csv", .open = open_writer, .series = write_series, .close = close_writer};

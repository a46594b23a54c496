/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "growing_file_impl.h"
#include "memory_impl.h"
#include "writers_impl.h"

struct trli_series_file {
    trl_context *ctx;
    int n;
    trli_growing_file file; /* rank 0 */
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
static trl_err initial_text(const trli_series_file *file, const char *path, const char *header, bool append,
                            trl_gidx after_step, char **text, size_t *size)
{
    size_t length = strlen(header);
    trl_err err = TRL_OK;
    if (append && access(path, F_OK) == 0) {
        TRL_TRY(trli_file_read(file->ctx, TRL_ERR_IO, NULL, path, INT64_MAX, text, size));
        if (strncmp(*text, header, length))
            return trl_fail(file->ctx, TRL_ERR_INPUT, NULL,
                            "the series in '%s' are '%.*s', those of the deck are '%.*s'; a restart continues the "
                            "file: use the same "
                            "output.series.values, or move the file away",
                            path, (int)strcspn(*text, "\n"), *text, (int)length - 1, header);
        *size = kept_bytes(*text, length, after_step);
        return TRL_OK;
    }
    TRL_TRY(trli_format(file->ctx, text, "%s", header));
    *size = length;
done:
    return err;
}

/* On rank 0. */
static trl_err open_series(trli_series_file *file, const char *folder, const char *name, const char *const *names,
                           bool append, trl_gidx after_step)
{
    char *path = NULL, *header = NULL, *text = NULL;
    size_t size;
    trl_err err;
    TRL_TRY(trli_folder_create(file->ctx, folder));
    TRL_TRY(trli_format(file->ctx, &path, "%s/%s", folder, name));
    TRL_TRY(header_of(file->ctx, file->n, names, &header));
    TRL_TRY(initial_text(file, path, header, append, after_step, &text, &size));
    TRL_TRY(trli_file_replace(file->ctx, path, text, size));
    err = trli_growing_open(file->ctx, "the series", path, (off_t)size, &file->file);
done:
    trli_free(text);
    trli_free(header);
    trli_free(path);
    return err;
}

trl_err trli_series_create(trl_context *ctx, const char *folder, const char *name, int n, const char *const *names,
                           bool append, trl_gidx after_step, trli_series_file **file)
{
    trl_err err = TRL_OK;
    *file = trli_new(ctx, 1, sizeof **file);
    if (*file) {
        **file = (trli_series_file){.ctx = ctx, .n = n, .file = {.file = -1}};
    } else {
        err = trli_no_memory(ctx, NULL, "for the file of %d series", n);
    }
    if (err == TRL_OK && trl_context_rank(ctx) == 0) err = open_series(*file, folder, name, names, append, after_step);
    err = trl_context_agree(ctx, err);
    if (err == TRL_OK) return TRL_OK;
    if (*file) (void)!trli_growing_close(&(*file)->file);
    trli_free(*file);
    *file = NULL;
    return err;
}

trl_err trli_series_append(trli_series_file *file, trl_gidx step, double time, const double *values)
{
    enum { NUMBER_ROOM = 32 };
    if (trl_context_rank(file->ctx) != 0) return TRL_OK;
    size_t room = (size_t)(file->n + 2) * NUMBER_ROOM, used = 0;
    char *line = trli_new(file->ctx, room, 1);
    if (!line) return trli_no_memory(file->ctx, NULL, "for a line of %d series", file->n);
    used += (size_t)snprintf(line, room, "%" TRL_GIDX_FMT ",%.17g", step, time);
    for (int i = 0; i < file->n; ++i)
        used += (size_t)snprintf(line + used, room - used, ",%.17g", isnan(values[i]) ? NAN : values[i]);
    line[used++] = '\n';
    trl_err err = trli_growing_append(&file->file, line, used);
    trli_free(line);
    return err;
}

trl_err trli_series_write(trli_series_file *file, trl_gidx step, double time, const double *values)
{
    return trl_context_agree(file->ctx, trli_series_append(file, step, time, values));
}

trl_err trli_series_close(trli_series_file **file)
{
    trli_series_file *f = *file;
    trl_err err = TRL_OK;
    if (!f) return TRL_OK;
    err = trl_context_agree(f->ctx, trli_growing_close(&f->file));
    trli_free(f);
    *file = NULL;
    return err;
}

static trl_err open_writer(const trli_writer_request *request, void **state)
{
    trli_series_file *file;
    trl_err err = trli_series_create(request->ctx, request->folder, "series.csv", request->nseries, request->series,
                                     request->append, request->after_step, &file);
    *state = file;
    return err;
}

static trl_err write_series(void *state, trl_gidx step, double time, const double *values)
{
    return trli_series_append(state, step, time, values);
}

static trl_err close_writer(void **state)
{
    trli_series_file *file = *state;
    *state = NULL;
    return trli_series_close(&file);
}

const trli_writer trli_writer_csv = {
    .name = "series.csv", .file = "series.csv", .open = open_writer, .series = write_series, .close = close_writer};

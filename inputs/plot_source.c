/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <output_hdf5_impl.h>
#include <plot_impl.h>

#include "files_impl.h"
#include "memory_impl.h"

/* One of the times of a source. */
typedef struct moment {
    trli_step_key file; /* what the file in the folder is named after */
    int index;          /* of the time in it */
    double time;
} moment;

struct trli_plot_source {
    trl_context *ctx;
    const char *path;          /* of the one file, where the source is no folder */
    trli_output_folder folder; /* path NULL: none */
    moment *moment;            /* [n] */
    int n;
    int32_t room;
    trli_plot_file open;    /* at one of its times, or not open */
    char *open_path;        /* of a file of a folder, else NULL */
    trli_step_key open_key; /* that it is named after */
};

/* IO error: the file, then what is wrong with it. */
static trl_err TRL_PRINTF(2, 3) fail_file(const trli_plot_file *f, const char *format, ...)
{
    char text[512];
    trl_place place = {.file = f->path};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return trl_fail(f->ctx, TRL_ERR_IO, &place, "%s", text);
}

static void close_file(trli_plot_source *s)
{
    if (s->open.file >= 0) H5Fclose(s->open.file);
    trli_hdf5_free_tags(s->open.tag, s->open.ntags);
    trli_free(s->open_path);
    s->open = (trli_plot_file){.ctx = s->ctx, .file = -1};
    s->open_path = NULL;
}

static trl_err open_hdf5(trli_plot_file *f)
{
    struct stat status;
    char reason[TRLI_REASON_ROOM];
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (!stat(f->path, &status) && !S_ISREG(status.st_mode))
        return fail_file(f, "is %s, not a file", trli_file_kind(status.st_mode));
    htri_t kind = H5Fis_hdf5(f->path);
    if (kind == 0) return fail_file(f, "is not a file of fields");
    f->file = trli_hdf5_try_open(f->path, reason);
    return f->file >= 0 ? TRL_OK : fail_file(f, "cannot be read: %s", reason);
}

/* Open the file of a folder that is named after a step, or the only file, unless that is done. */
static trl_err open_file(trli_plot_source *s, trli_step_key key)
{
    trl_err err;
    char reason[TRLI_REASON_ROOM];
    trli_plot_file *f = &s->open;
    if (f->file >= 0 && s->open_key.step == key.step && s->open_key.part == key.part) return TRL_OK;
    close_file(s);
    if (s->folder.path) TRL_TRY(trli_step_path(s->ctx, s->folder.path, key, &s->open_path));
    f->path = s->folder.path ? s->open_path : s->path;
    s->open_key = key;
    TRL_TRY(open_hdf5(f));
    if (!trli_hdf5_get_grid(f->file, &f->grid, reason)) TRL_TRY(fail_file(f, "cannot be drawn: %s", reason));
    if (!trli_hdf5_tags(f->ctx, f->file, &f->tag, &f->ntags)) err = trli_hdf5_fail(f->ctx, "read", f->path);
done:
    return err;
}

/* Add the times of a file to those known. */
static trl_err list_file(trli_plot_source *s, trli_step_key file)
{
    char reason[TRLI_REASON_ROOM];
    trl_err err;
    trl_gidx *step = NULL;
    double *time = NULL;
    int n;
    TRL_TRY(open_file(s, file));
    if (!trli_hdf5_times(s->ctx, s->open.file, &step, &time, &n, reason))
        TRL_TRY(fail_file(&s->open, "cannot be drawn: %s", reason));
    for (int i = 0; i < n; ++i) {
        if (!trli_make_room(s->ctx, &s->moment, s->n, 1, &s->room, sizeof *s->moment))
            TRL_TRY(trli_no_memory(s->ctx, NULL, "for a list of %d times", s->n));
        s->moment[s->n++] = (moment){file, i, time[i]};
    }
done:
    trli_free(step);
    trli_free(time);
    return err;
}

/* Of all times keep the last one, or the first of those nearest to the time asked for. */
static void keep_one(trli_plot_source *s, const trli_plot_request *request)
{
    int best = request->timed ? 0 : s->n - 1;
    for (int i = 1; i < s->n && request->timed; ++i)
        if (fabs(s->moment[i].time - request->time) < fabs(s->moment[best].time - request->time)) best = i;
    s->moment[0] = s->moment[best];
    s->n = 1;
}

static trl_err list_times(trli_plot_source *s, const trli_plot_request *request, bool every)
{
    struct stat status;
    trl_err err = TRL_OK;
    if (stat(request->path, &status) == 0 && S_ISDIR(status.st_mode)) {
        TRL_TRY(trli_output_folder_find(s->ctx, request->path, &s->folder));
        const trli_step_list *steps = &s->folder.steps;
        for (int i = every || request->timed ? 0 : steps->n - 1; i < steps->n; ++i)
            TRL_TRY(list_file(s, steps->key[i]));
    } else {
        TRL_TRY(list_file(s, (trli_step_key){0}));
    }
    if (s->n == 0) TRL_TRY(fail_file(&s->open, "cannot be drawn: it holds no time yet"));
    if (!every) keep_one(s, request);
done:
    return err;
}

trl_err trli_plot_source_open(trl_context *ctx, const trli_plot_request *request, bool every, trli_plot_source **source)
{
    *source = trli_new(ctx, 1, sizeof **source);
    if (!*source) return trli_no_memory(ctx, NULL, "to read '%s'", request->path);
    **source = (trli_plot_source){.ctx = ctx, .path = request->path, .open = {.ctx = ctx, .file = -1}};
    trl_err err = list_times(*source, request, every);
    if (err != TRL_OK) trli_plot_source_close(source);
    return err;
}

int trli_plot_source_times(const trli_plot_source *source)
{
    return source->n;
}

/* Put the open file at one of its times. */
static trl_err seek(trli_plot_source *s, const moment *m)
{
    char reason[TRLI_REASON_ROOM];
    trl_err err;
    trl_gidx *step = NULL;
    double *time = NULL;
    int n;
    TRL_TRY(open_file(s, m->file));
    if (!trli_hdf5_times(s->ctx, s->open.file, &step, &time, &n, reason) || m->index >= n)
        TRL_TRY(fail_file(&s->open, "cannot be drawn: it changed while it was read"));
    s->open.index = m->index;
    s->open.step = step[m->index];
    s->open.time = time[m->index];
done:
    trli_free(step);
    trli_free(time);
    return err;
}

trl_err trli_plot_source_read(trli_plot_source *source, const trli_plot_request *request, int which, trli_plot_set *set)
{
    trl_err err;
    *set = (trli_plot_set){0};
    TRL_TRY(seek(source, &source->moment[which]));
    for (int i = 0; i < request->nfields || i == 0; ++i) {
        set->n = i + 1;
        TRL_TRY(
            trli_plot_panel_read(&source->open, request, request->nfields ? request->field[i] : NULL, &set->panel[i]));
    }
done:
    if (err != TRL_OK) trli_plot_release(set);
    return err;
}

void trli_plot_source_close(trli_plot_source **source)
{
    if (!*source) return;
    close_file(*source);
    trli_output_folder_release(&(*source)->folder);
    trli_free((*source)->moment);
    trli_free(*source);
    *source = NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <hdf5.h>

#include <output_hdf5_impl.h>
#include <plot_impl.h>

#include "files_impl.h"
#include <trl_formula.h>

enum { NAME_ROOM = 256 };

/* A file of fields that is open at one of its times. */
typedef struct source {
    trl_context *ctx;
    const char *path;
    char *owned_path; /* the same where a folder was asked for, else NULL */
    hid_t file;       /* -1: not open */
    trl_grid grid;
    int index; /* of the time */
    trl_gidx step;
    double time;
    char **tag; /* [ntags] */
    int ntags;
} source;

/* IO error: the file, then what is wrong with it. */
static trl_err TRL_PRINTF(2, 3) fail_file(const source *s, const char *format, ...)
{
    char text[2 * NAME_ROOM];
    trl_place place = {.file = s->path};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return trl_fail(s->ctx, TRL_ERR_IO, &place, "%s", text);
}

/* IO error with the reason that HDF5 gives. */
static trl_err fail_hdf5(const source *s)
{
    return trli_hdf5_fail(s->ctx, "read", s->path);
}

static trl_err open_file(source *s)
{
    struct stat status;
    char reason[TRLI_REASON_ROOM];
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (!stat(s->path, &status) && !S_ISREG(status.st_mode))
        return fail_file(s, "is %s, not a file", trli_file_kind(status.st_mode));
    htri_t kind = H5Fis_hdf5(s->path);
    if (kind == 0) return fail_file(s, "is not a file of fields");
    s->file = trli_hdf5_try_open(s->path, reason);
    if (s->file >= 0) return TRL_OK;
    return fail_file(s, "cannot be read: %s", reason);
}

static trl_err read_grid(source *s)
{
    char reason[TRLI_REASON_ROOM];
    return trli_hdf5_get_grid(s->file, &s->grid, reason) ? TRL_OK : fail_file(s, "cannot be drawn: %s", reason);
}

/* Of the times of the open file, the last one, or the first of those nearest to the time asked for. */
static trl_err choose_time(source *s, const trli_plot_request *request)
{
    char reason[TRLI_REASON_ROOM];
    trl_gidx *step;
    double *time;
    int n;
    if (!trli_hdf5_times(s->file, &step, &time, &n, reason)) return fail_file(s, "cannot be drawn: %s", reason);
    s->index = request->timed ? 0 : n - 1;
    for (int i = 1; i < n && request->timed; ++i)
        if (fabs(time[i] - request->time) < fabs(time[s->index] - request->time)) s->index = i;
    s->step = step[s->index];
    s->time = time[s->index];
    free(step);
    free(time);
    return TRL_OK;
}

static void close_source(source *s)
{
    if (s->file >= 0) H5Fclose(s->file);
    trli_hdf5_free_tags(s->tag, s->ntags);
    free(s->owned_path);
    *s = (source){.ctx = s->ctx, .file = -1};
}

static trl_err open_at(source *s, const trli_plot_request *request)
{
    trl_err err;
    TRL_TRY(open_file(s));
    TRL_TRY(read_grid(s));
    TRL_TRY(choose_time(s, request));
    if (!trli_hdf5_tags(s->file, &s->tag, &s->ntags)) err = fail_hdf5(s);
done:
    return err;
}

/* Open the file of the last step of a folder, or of the time nearest to that asked for. */
static trl_err open_in_folder(source *s, const trli_plot_request *request)
{
    trli_output_folder folder;
    trl_err err;
    TRL_TRY(trli_output_folder_find(s->ctx, request->path, &folder));
    for (int i = request->timed ? 0 : folder.steps.n - 1; i < folder.steps.n; ++i) {
        source next = {.ctx = s->ctx, .file = -1};
        TRL_TRY(trli_step_path(s->ctx, folder.path, folder.steps.step[i], &next.owned_path));
        next.path = next.owned_path;
        err = open_at(&next, request);
        const bool nearer =
            err == TRL_OK && (s->file < 0 || fabs(next.time - request->time) < fabs(s->time - request->time));
        close_source(nearer ? s : &next);
        if (nearer) *s = next;
        TRL_TRY(err);
    }
done:
    trli_output_folder_release(&folder);
    return err;
}

static trl_err open_source(source *s, const trli_plot_request *request)
{
    struct stat status;
    if (stat(request->path, &status) == 0 && S_ISDIR(status.st_mode)) return open_in_folder(s, request);
    s->path = request->path;
    return open_at(s, request);
}

/* INPUT error for a field that is not there. */
static trl_err fail_field(const source *s, const char *field)
{
    trl_place place = {.file = s->path};
    size_t length = 1;
    for (int i = 0; i < s->ntags; ++i) length += strlen(s->tag[i]) + 2;
    char *list = calloc(length, 1);
    if (!list) return trl_fail(s->ctx, TRL_ERR_MEMORY, NULL, "no memory to list %d fields", s->ntags);
    for (int i = 0; i < s->ntags; ++i) strcat(strcat(list, i ? ", " : ""), s->tag[i]);
    const char *nearest = trl_name_nearest(field, (const char *const *)s->tag, s->ntags);
    trl_err err =
        trl_fail(s->ctx, TRL_ERR_INPUT, &place, "no field '%s' at step %" PRId64 "; there is: %s%s%s%s", field, s->step,
                 list, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    free(list);
    return err;
}

/* The field to read: the one asked for, or the first. */
static trl_err choose_field(const source *s, const char *wanted, const char **name)
{
    if (s->ntags == 0) return fail_file(s, "has no fields");
    *name = s->tag[0];
    if (!wanted) return TRL_OK;
    for (int i = 0; i < s->ntags; ++i) {
        *name = s->tag[i];
        if (strcmp(s->tag[i], wanted) == 0) return TRL_OK;
    }
    return fail_field(s, wanted);
}

/* The points along each axis from the shape, which must be that of the location. */
static trl_err read_shape(const source *s, hid_t dataset, const char *field, trli_plot_axis axis[3])
{
    trl_location location;
    hsize_t shape[H5S_MAX_RANK];
    if (!trli_hdf5_get_location(dataset, &location))
        return fail_file(s, "field '%s' has no attribute 'location' that names one", field);
    hid_t space = H5Dget_space(dataset);
    int rank = H5Sget_simple_extent_dims(space, shape, NULL);
    H5Sclose(space);
    bool fits = rank == s->grid.dim + 1 && (hsize_t)s->index < shape[0];
    for (int a = 0; a < s->grid.dim && fits; ++a) {
        bool on_face = (int)location >> a & 1;
        trl_gidx points = (trl_gidx)shape[s->grid.dim - a];
        double h = s->grid.length[a] / (double)s->grid.cells[a];
        axis[a] = (trli_plot_axis){.axis = a,
                                   .low = s->grid.origin[a],
                                   .high = s->grid.origin[a] + s->grid.length[a],
                                   .spacing = h,
                                   .points = points,
                                   .first = s->grid.origin[a] + (on_face ? 0 : 0.5 * h),
                                   .wraps = on_face && points == s->grid.cells[a]};
        fits = points == s->grid.cells[a] || (on_face && points == s->grid.cells[a] + 1);
    }
    if (fits) return TRL_OK;
    return fail_file(s, "field '%s' at location '%s' has a shape that does not fit the attribute 'cells'", field,
                     trl_location_name(location));
}

/* Index of the points nearest to the plane. */
static trl_err cut(const source *s, const trli_plot_axis *axis, double at, trl_gidx *index)
{
    double slack = 1e-9 * (axis->high - axis->low);
    if (!(at >= axis->low - slack && at <= axis->high + slack))
        return trl_fail(s->ctx, TRL_ERR_INPUT, NULL,
                        "--slice %c=%g lies outside the domain, where %c goes from %g to %g", 'x' + axis->axis, at,
                        'x' + axis->axis, axis->low, axis->high);
    double nearest = floor((at - axis->first) / axis->spacing + 0.5);
    *index = (trl_gidx)fmax(nearest, 0);
    if (axis->wraps) *index %= axis->points;
    if (*index > axis->points - 1) *index = axis->points - 1;
    return TRL_OK;
}

/* Split the axes into those of the picture and the planes that cut it out; index: the points on the planes. */
static trl_err arrange(const source *s, const trli_plot_request *request, const trli_plot_axis axis[3],
                       trli_plot_data *data, trl_gidx index[3])
{
    int asked = 0;
    for (int a = 0; a < 3; ++a) {
        if (request->sliced[a] && a >= s->grid.dim)
            return trl_fail(s->ctx, TRL_ERR_INPUT, NULL, "--slice %c: the grid of '%s' has no axis %c", 'x' + a,
                            s->path, 'x' + a);
        asked += request->sliced[a];
    }
    if (asked >= s->grid.dim)
        return trl_fail(s->ctx, TRL_ERR_INPUT, NULL, "--slice: %d of %d axes are cut, which leaves nothing to draw",
                        asked, s->grid.dim);
    for (int a = 0; a < s->grid.dim; ++a) {
        bool middle = s->grid.dim == 3 && asked == 0 && a == 2;
        if (!request->sliced[a] && !middle) {
            data->axis[data->naxes++] = axis[a];
            continue;
        }
        trl_err err = cut(s, &axis[a], middle ? 0.5 * (axis[a].low + axis[a].high) : request->slice[a], &index[a]);
        if (err != TRL_OK) return err;
        data->plane[data->nplanes].axis = a;
        data->plane[data->nplanes++].at = axis[a].first + (double)index[a] * axis[a].spacing;
    }
    return TRL_OK;
}

static trl_err read_values(const source *s, hid_t dataset, const trl_gidx index[3], trli_plot_data *data)
{
    hsize_t start[4] = {(hsize_t)s->index}, count[4] = {1, 1, 1, 1}, total = 1;
    for (int k = 0; k < data->nplanes; ++k)
        start[s->grid.dim - data->plane[k].axis] = (hsize_t)index[data->plane[k].axis];
    for (int k = 0; k < data->naxes; ++k) {
        count[s->grid.dim - data->axis[k].axis] = (hsize_t)data->axis[k].points;
        total *= (hsize_t)data->axis[k].points;
    }
    data->value = calloc(total, sizeof *data->value);
    if (!data->value)
        return trl_fail(s->ctx, TRL_ERR_MEMORY, NULL, "no memory for %llu values of '%s'", (unsigned long long)total,
                        data->name);
    hid_t file_space = H5Dget_space(dataset), memory_space = H5Screate_simple(1, &total, NULL);
    bool good = H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dread(dataset, H5T_NATIVE_DOUBLE, memory_space, file_space, H5P_DEFAULT, data->value) >= 0;
    hid_t reason = trli_hdf5_keep_reason();
    H5Sclose(memory_space);
    H5Sclose(file_space);
    trli_hdf5_restore_reason(reason);
    if (!good) return fail_hdf5(s);
    data->low = data->high = NAN;
    for (hsize_t i = 0; i < total; ++i) {
        data->not_finite += !isfinite(data->value[i]);
        if (!isfinite(data->value[i])) continue;
        data->low = fmin(data->low, data->value[i]);
        data->high = fmax(data->high, data->value[i]);
    }
    return TRL_OK;
}

static trl_err read_panel(const source *s, const trli_plot_request *request, const char *wanted, trli_plot_data *data)
{
    trl_err err = TRL_OK;
    const char *name = NULL;
    trli_plot_axis axis[3] = {{0}};
    trl_gidx index[3] = {0};
    hid_t dataset = -1;
    TRL_TRY(choose_field(s, wanted, &name));
    data->step = s->step;
    data->time = s->time;
    data->name = strdup(name);
    if (!data->name) return trl_fail(s->ctx, TRL_ERR_MEMORY, NULL, "no memory for the name of a field");
    dataset = H5Dopen2(s->file, name, H5P_DEFAULT);
    if (dataset < 0) return fail_hdf5(s);
    TRL_TRY(read_shape(s, dataset, name, axis));
    TRL_TRY(arrange(s, request, axis, data, index));
    TRL_TRY(read_values(s, dataset, index, data));
done:
    if (dataset >= 0) H5Dclose(dataset);
    return err;
}

trl_err trli_plot_read(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set)
{
    trl_err err = TRL_OK;
    source s = {.ctx = ctx, .file = -1};
    *set = (trli_plot_set){0};
    TRL_TRY(open_source(&s, request));
    for (int i = 0; i < request->nfields || i == 0; ++i) {
        set->n = i + 1;
        TRL_TRY(read_panel(&s, request, request->nfields ? request->field[i] : NULL, &set->panel[i]));
    }
done:
    close_source(&s);
    if (err != TRL_OK) trli_plot_release(set);
    return err;
}

void trli_plot_release(trli_plot_set *set)
{
    for (int i = 0; i < set->n; ++i) {
        free(set->panel[i].name);
        free(set->panel[i].value);
    }
    *set = (trli_plot_set){0};
}

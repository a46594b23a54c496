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

/* A fields.h5 that is open at a step. Negative identifiers: not open. */
typedef struct source {
    trl_context *ctx;
    const char *path;
    hid_t file, group;
    int dim;
    trl_gidx cells[3];
    double origin[3], length[3];
    trl_gidx step;
    double time;
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
    if (!stat(s->path, &status) && S_ISDIR(status.st_mode))
        return fail_file(s, "is a folder; give the fields.h5 in it");
    if (!stat(s->path, &status) && !S_ISREG(status.st_mode))
        return fail_file(s, "is %s, not a file", trli_file_kind(status.st_mode));
    htri_t kind = H5Fis_hdf5(s->path);
    if (kind == 0) return fail_file(s, "is not an HDF5 file, or nothing is written to it yet");
    s->file = trli_hdf5_try_open(s->path, reason);
    if (s->file >= 0) return TRL_OK;
    return fail_file(s, "cannot be read: %s%s", reason,
                     kind > 0 ? "; is it still being written, or was the run stopped while writing?" : "");
}

/* Numbers of an attribute, at most `room` of them; *n of them are there. False: missing or not numbers. */
static bool read_numbers(hid_t object, const char *name, int room, double *value, int *n)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0) return false;
    hid_t space = H5Aget_space(attribute);
    hssize_t points = H5Sget_simple_extent_npoints(space);
    bool good = points >= 1 && points <= room && H5Aread(attribute, H5T_NATIVE_DOUBLE, value) >= 0;
    *n = good ? (int)points : 0;
    H5Sclose(space);
    H5Aclose(attribute);
    return good;
}

static trl_err read_grid(source *s)
{
    double cells[3], schema;
    int n, m;
    if (!read_numbers(s->file, "schema", 1, &schema, &n))
        return fail_file(s, "is not a fields file of Trellis: it has no attribute 'schema'");
    if (schema != TRLI_SCHEMA)
        return fail_file(s, "has schema %g; this version of trellis reads %d", schema, TRLI_SCHEMA);
    if (!read_numbers(s->file, "cells", 3, cells, &s->dim))
        return fail_file(s, "has no attribute 'cells' of 1 to 3 numbers");
    if (!read_numbers(s->file, "origin", 3, s->origin, &n) || !read_numbers(s->file, "length", 3, s->length, &m) ||
        n != s->dim || m != s->dim)
        return fail_file(s, "has no attributes 'origin' and 'length' with as many numbers as 'cells'");
    for (int a = 0; a < s->dim; ++a) {
        if (!(cells[a] >= 1 && cells[a] < 2147483648.0 && s->length[a] > 0 && isfinite(s->length[a]) &&
              isfinite(s->origin[a])))
            return fail_file(s, "has attributes 'cells', 'origin' and 'length' that are no grid");
        s->cells[a] = (trl_gidx)cells[a];
    }
    return TRL_OK;
}

/* Name of link i of a group: in the order of creation where the file keeps it. */
static bool link_name(hid_t group, hsize_t i, char name[NAME_ROOM])
{
    unsigned order = 0;
    hid_t list = H5Gget_create_plist(group);
    if (list >= 0) {
        (void)H5Pget_link_creation_order(list, &order);
        H5Pclose(list);
    }
    H5_index_t by = order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
    return H5Lget_name_by_idx(group, ".", by, H5_ITER_INC, i, name, NAME_ROOM, H5P_DEFAULT) > 0;
}

static trl_err open_group(const source *s, trl_gidx step, hid_t *group, double *time)
{
    char name[TRLI_STEP_ROOM];
    trli_step_name(step, name);
    *group = H5Gopen2(s->file, name, H5P_DEFAULT);
    if (*group < 0) return fail_hdf5(s);
    if (trli_hdf5_get(*group, "time", H5T_NATIVE_DOUBLE, 1, time)) return TRL_OK;
    H5Gclose(*group);
    *group = -1;
    return fail_file(s, "has no attribute 'time' at step %" PRId64, step);
}

/* Open the last step, or the first of those nearest to the time asked for. */
static trl_err open_step(source *s, const trli_plot_request *request)
{
    trl_err err = TRL_OK;
    trl_gidx *steps = NULL;
    int n;
    double nearest = INFINITY;
    TRL_TRY(trli_hdf5_steps(s->ctx, s->path, s->file, &steps, &n));
    if (n == 0) {
        err = fail_file(s, "holds no step yet");
        goto done;
    }
    s->step = steps[n - 1];
    for (int i = 0; i < n && request->timed; ++i) {
        hid_t group;
        double time;
        TRL_TRY(open_group(s, steps[i], &group, &time));
        H5Gclose(group);
        if (!(fabs(time - request->time) < nearest)) continue;
        nearest = fabs(time - request->time);
        s->step = steps[i];
    }
    TRL_TRY(open_group(s, s->step, &s->group, &s->time));
done:
    free(steps);
    return err;
}

/* INPUT error for a field that is not there. */
static trl_err fail_field(const source *s, const char *field, hsize_t count)
{
    trl_place place = {.file = s->path};
    trl_err err;
    char *there = calloc(count, NAME_ROOM), *list = calloc(count, NAME_ROOM + 2);
    const char **name = calloc(count, sizeof *name);
    if (!there || !list || !name) {
        err = trl_fail(s->ctx, TRL_ERR_MEMORY, NULL, "no memory to list %llu fields", (unsigned long long)count);
        goto done;
    }
    int n = 0;
    for (hsize_t i = 0; i < count; ++i) {
        name[n] = there + i * NAME_ROOM;
        if (!link_name(s->group, i, there + i * NAME_ROOM)) continue;
        strcat(strcat(list, n ? ", " : ""), name[n]);
        ++n;
    }
    const char *nearest = trl_name_nearest(field, name, n);
    err = trl_fail(s->ctx, TRL_ERR_INPUT, &place, "no field '%s' at step %" PRId64 "; there is: %s%s%s%s", field,
                   s->step, list, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
done:
    free(there);
    free(list);
    free(name);
    return err;
}

/* Name of the field to read: the one asked for, or the first. */
static trl_err choose_field(const source *s, const char *wanted, char name[NAME_ROOM])
{
    H5G_info_t info;
    if (H5Gget_info(s->group, &info) < 0) return fail_hdf5(s);
    if (info.nlinks == 0) return fail_file(s, "has a step without fields");
    if (!wanted) return link_name(s->group, 0, name) ? TRL_OK : fail_hdf5(s);
    if (!wanted[0] || strlen(wanted) >= NAME_ROOM || strchr(wanted, '/') ||
        H5Lexists(s->group, wanted, H5P_DEFAULT) <= 0)
        return fail_field(s, wanted, info.nlinks);
    snprintf(name, NAME_ROOM, "%s", wanted);
    return TRL_OK;
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
    bool fits = rank == s->dim;
    for (int a = 0; a < s->dim && fits; ++a) {
        bool on_face = (int)location >> a & 1;
        trl_gidx points = (trl_gidx)shape[s->dim - 1 - a];
        double h = s->length[a] / (double)s->cells[a];
        axis[a] = (trli_plot_axis){.axis = a,
                                   .low = s->origin[a],
                                   .high = s->origin[a] + s->length[a],
                                   .spacing = h,
                                   .points = points,
                                   .first = s->origin[a] + (on_face ? 0 : 0.5 * h),
                                   .wraps = on_face && points == s->cells[a]};
        fits = points == s->cells[a] || (on_face && points == s->cells[a] + 1);
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
        if (request->sliced[a] && a >= s->dim)
            return trl_fail(s->ctx, TRL_ERR_INPUT, NULL, "--slice %c: the grid of '%s' has no axis %c", 'x' + a,
                            s->path, 'x' + a);
        asked += request->sliced[a];
    }
    if (asked >= s->dim)
        return trl_fail(s->ctx, TRL_ERR_INPUT, NULL, "--slice: %d of %d axes are cut, which leaves nothing to draw",
                        asked, s->dim);
    for (int a = 0; a < s->dim; ++a) {
        bool middle = s->dim == 3 && asked == 0 && a == 2;
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
    hsize_t start[3] = {0}, count[3] = {1, 1, 1}, total = 1;
    for (int k = 0; k < data->nplanes; ++k)
        start[s->dim - 1 - data->plane[k].axis] = (hsize_t)index[data->plane[k].axis];
    for (int k = 0; k < data->naxes; ++k) {
        count[s->dim - 1 - data->axis[k].axis] = (hsize_t)data->axis[k].points;
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
    char name[NAME_ROOM];
    trli_plot_axis axis[3] = {{0}};
    trl_gidx index[3] = {0};
    hid_t dataset = -1;
    TRL_TRY(choose_field(s, wanted, name));
    data->step = s->step;
    data->time = s->time;
    data->name = strdup(name);
    if (!data->name) return trl_fail(s->ctx, TRL_ERR_MEMORY, NULL, "no memory for the name of a field");
    dataset = H5Dopen2(s->group, name, H5P_DEFAULT);
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
    source s = {.ctx = ctx, .path = request->path, .file = -1, .group = -1};
    *set = (trli_plot_set){0};
    TRL_TRY(open_file(&s));
    TRL_TRY(read_grid(&s));
    TRL_TRY(open_step(&s, request));
    for (int i = 0; i < request->nfields || i == 0; ++i) {
        set->n = i + 1;
        TRL_TRY(read_panel(&s, request, request->nfields ? request->field[i] : NULL, &set->panel[i]));
    }
done:
    if (s.group >= 0) H5Gclose(s.group);
    if (s.file >= 0) H5Fclose(s.file);
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

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis collect`: the files of a run's output times as one. Values go from file to file one chunk at a time. */
#include <string.h>

#include <command_impl.h>
#include <output_file_impl.h>

#include "arithmetic_impl.h"
#include "memory_impl.h"

/* What the files have in common, as the first one says. */
typedef struct collection {
    trl_context *ctx;
    trli_output_folder folder;
    trl_grid grid;
    int patches[3];
    int compression; /* of the first file */
    char **tag;      /* [ntags] */
    int ntags;
    trli_output_field *field; /* [ntags] */
    trl_gidx *step;           /* [folder.steps.n] */
    double *time;
} collection;

static trl_err fail_file(const collection *c, const char *path, const char *reason)
{
    trl_place place = {.file = path};
    return trl_fail(c->ctx, TRL_ERR_IO, &place, "cannot be collected: %s", reason);
}

/* The deflate level of a variable, 0: it is not compressed. */
static int read_compression(hid_t list)
{
    unsigned flags, level[1] = {0};
    size_t n = 1;
    return H5Pget_filter_by_id2(list, H5Z_FILTER_DEFLATE, &flags, &n, level, 0, NULL, NULL) >= 0 ? (int)level[0] : 0;
}

/* How many chunks a variable is cut into along each axis, and their compression. */
static bool read_chunks(hid_t data, const trl_grid *grid, trl_location location, int patches[3], int *compression)
{
    hsize_t chunk[4];
    hid_t list = H5Dget_create_plist(data);
    bool good = list >= 0 && H5Pget_layout(list) == H5D_CHUNKED && H5Pget_chunk(list, 4, chunk) == grid->dim + 1;
    for (int a = 0; good && a < grid->dim; ++a) {
        const trl_gidx points = trl_grid_points(grid, location, a), size = (trl_gidx)chunk[grid->dim - a];
        patches[a] = (int)trli_ceil_div(points, size);
    }
    if (good) *compression = read_compression(list);
    if (list >= 0) H5Pclose(list);
    return good;
}

/* The location of a tag, if the file has it on all its points. as_first: take its chunks for those of all. */
static bool read_location(hid_t file, collection *c, const char *tag, bool as_first, trl_location *location)
{
    const trl_grid *grid = &c->grid;
    hsize_t shape[4], wanted[3];
    hid_t data = H5Lexists(file, tag, H5P_DEFAULT) > 0 ? H5Dopen2(file, tag, H5P_DEFAULT) : -1;
    bool good = data >= 0 && trli_hdf5_get_location(data, location);
    if (good) {
        const int rank = trli_hdf5_shape(grid, *location, wanted);
        hid_t space = H5Dget_space(data);
        good = H5Sget_simple_extent_ndims(space) == rank + 1 && H5Sget_simple_extent_dims(space, shape, NULL) > 0;
        for (int a = 0; good && a < rank; ++a) good = shape[a + 1] == wanted[a];
        if (space >= 0) H5Sclose(space);
    }
    good = good && (!as_first || read_chunks(data, grid, *location, c->patches, &c->compression));
    if (data >= 0) H5Dclose(data);
    return good;
}

/* Take grid and tags from the first file. */
static bool describe(collection *c, hid_t file, char reason[TRLI_REASON_ROOM])
{
    if (!trli_hdf5_get_grid(file, &c->grid, reason)) return false;
    snprintf(reason, TRLI_REASON_ROOM, "its fields cannot be listed");
    if (!trli_hdf5_tags(c->ctx, file, &c->tag, &c->ntags)) return false;
    c->field = trli_new(c->ctx, (size_t)c->ntags + 1, sizeof *c->field);
    for (int i = 0; c->field && i < c->ntags; ++i) {
        c->field[i].name = c->tag[i];
        trl_location written;
        if (read_location(file, c, c->tag[i], i == 0, &written)) {
            c->field[i].word = trl_location_name(written);
            c->field[i].location = trl_location_on(written, c->grid.dim);
            continue;
        }
        snprintf(reason, TRLI_REASON_ROOM, "its field '%s' does not fit its grid", c->tag[i]);
        return false;
    }
    return c->field != NULL;
}

/* Whether a file has the grid and tags of the first one, and its time. */
static bool compare(collection *c, hid_t file, int at, char reason[TRLI_REASON_ROOM])
{
    char **tag;
    trl_gidx *step;
    double *time;
    int n = 0;
    bool good = trli_hdf5_is_grid(&c->grid, file, reason);
    if (good && (!trli_hdf5_tags(c->ctx, file, &tag, &n) || (trli_hdf5_free_tags(tag, n), n != c->ntags))) {
        snprintf(reason, TRLI_REASON_ROOM, "it has %d fields, the first file has %d", n, c->ntags);
        return false;
    }
    for (int i = 0; good && i < c->ntags; ++i) {
        trl_location location;
        good = read_location(file, c, c->tag[i], false, &location) &&
               trl_location_on(location, c->grid.dim) == c->field[i].location;
        if (!good)
            snprintf(reason, TRLI_REASON_ROOM, "it has no field '%s' at location '%s', as the first file does",
                     c->tag[i], c->field[i].word);
    }
    if (!good || !trli_hdf5_times(c->ctx, file, &step, &time, &n, reason)) return false;
    c->step[at] = step[0];
    c->time[at] = time[0];
    trli_free(step);
    trli_free(time);
    if (n != 1) snprintf(reason, TRLI_REASON_ROOM, "it holds %d times; one is wanted", n);
    return n == 1;
}

static trl_err open_time(const collection *c, int at, char **path, hid_t *file)
{
    char reason[TRLI_REASON_ROOM];
    trl_err err = trli_step_path(c->ctx, c->folder.path, c->folder.steps.key[at], path);
    if (err != TRL_OK) return err;
    *file = trli_hdf5_try_open(*path, reason);
    return *file >= 0 ? TRL_OK : fail_file(c, *path, reason);
}

/* Look at all files before anything is written. */
static trl_err survey(collection *c)
{
    const int n = c->folder.steps.n;
    char reason[TRLI_REASON_ROOM];
    trl_err err = TRL_OK;
    c->step = trli_new(c->ctx, (size_t)n, sizeof *c->step);
    c->time = trli_new(c->ctx, (size_t)n, sizeof *c->time);
    if (!c->step || !c->time) return trli_no_memory(c->ctx, NULL, "to collect %d files", n);
    for (int i = 0; i < n && err == TRL_OK; ++i) {
        char *path = NULL;
        hid_t file = -1;
        err = open_time(c, i, &path, &file);
        if (err == TRL_OK && !((i > 0 || describe(c, file, reason)) && compare(c, file, i, reason)))
            err = fail_file(c, path, reason);
        if (file >= 0) H5Fclose(file);
        trli_free(path);
    }
    return err;
}

/* Read the chunk at `at` of a variable to an array in a buffer. False: HDF5 failed. */
static bool read_chunk(hid_t data, const trli_file_variable *v, int dim, const trl_gidx at[3], double *buffer,
                       trl_array *array)
{
    hsize_t start[4] = {0}, count[4] = {1, 1, 1, 1};
    ptrdiff_t stride = 1, offset = 0;
    *array = (trl_array){.type = TRL_F64};
    for (int a = 0; a < 3; ++a) {
        const trl_gidx low = at[a] * v->chunk[a], high = low + v->chunk[a];
        array->owned.lo[a] = (trl_lidx)low;
        array->owned.hi[a] = (trl_lidx)(high < v->points[a] ? high : v->points[a]);
        array->stride[a] = a < dim ? stride : 0;
        offset += array->stride[a] * array->owned.lo[a];
        stride *= array->owned.hi[a] - array->owned.lo[a];
        if (a < dim) {
            start[dim - a] = (hsize_t)low;
            count[dim - a] = (hsize_t)(array->owned.hi[a] - array->owned.lo[a]);
        }
    }
    array->held = array->owned;
    array->at = buffer - offset;
    hid_t there = H5Dget_space(data), here = H5Screate_simple(dim + 1, count, NULL);
    bool good = there >= 0 && here >= 0 && H5Sselect_hyperslab(there, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dread(data, H5T_NATIVE_DOUBLE, here, there, H5P_DEFAULT, buffer) >= 0;
    hid_t reason = trli_hdf5_keep_reason();
    if (there >= 0) H5Sclose(there);
    if (here >= 0) H5Sclose(here);
    trli_hdf5_restore_reason(reason);
    return good;
}

static trl_err write_chunk(const collection *c, trli_output_file *out, const trli_file_variable *v, int time,
                           int64_t number, const trl_array *array)
{
    static const trl_gidx origin[3] = {0};
    const trli_part part = {array, origin, array->owned};
    if (c->compression) return trli_output_deflate(out, v, time, number, number + 1, 1, &part);
    const int reason = trli_output_put(out, v, time, &part);
    return reason ? trli_file_fail(c->ctx, "write", out->path, reason) : TRL_OK;
}

static trl_err copy_variable(const collection *c, const char *path, hid_t file, trli_output_file *out,
                             const trli_file_variable *v, int time)
{
    trl_err err = TRL_OK;
    void *buffer = NULL;
    hid_t data = H5Dopen2(file, v->name, H5P_DEFAULT);
    if (data < 0) return trli_hdf5_fail(c->ctx, "read", path);
    TRL_TRY(trl_memory_alloc(c->ctx, (size_t)trli_file_variable_chunk_points(v) * sizeof(double), v->name, &buffer));
    for (int64_t i = 0; i < trli_file_variable_chunks(v); ++i) {
        const trl_gidx at[3] = {i % v->chunks[0], i / v->chunks[0] % v->chunks[1], i / (v->chunks[0] * v->chunks[1])};
        trl_array array;
        if (!read_chunk(data, v, c->grid.dim, at, buffer, &array)) TRL_TRY(trli_hdf5_fail(c->ctx, "read", path));
        TRL_TRY(write_chunk(c, out, v, time, i, &array));
    }
done:
    trl_memory_free(c->ctx, &buffer);
    H5Dclose(data);
    return err;
}

static trl_err write_all(collection *c, const char *name)
{
    trli_contents contents = {.grid = &c->grid,
                              .ntimes = c->folder.steps.n,
                              .step = c->step,
                              .time = c->time,
                              .compression = c->compression,
                              .nvariables = c->ntags};
    trli_output_file out;
    trl_err err = trli_file_variables_create(c->ctx, &c->grid, c->patches, c->compression, contents.ntimes, c->ntags,
                                             c->field, &contents.variable);
    if (err != TRL_OK) return err;
    err = trli_output_begin(c->ctx, name, -1, &contents, NULL, &out);
    for (int t = 0; t < contents.ntimes && err == TRL_OK; ++t) {
        char *path = NULL;
        hid_t file = -1;
        err = open_time(c, t, &path, &file);
        for (int i = 0; i < c->ntags && err == TRL_OK; ++i)
            err = copy_variable(c, path, file, &out, &contents.variable[i], t);
        if (file >= 0) H5Fclose(file);
        trli_free(path);
    }
    err = trli_output_end(&out, err);
    trli_file_variables_release(&contents.variable);
    return err;
}

/* No file that is read is replaced. */
static trl_err check_target(const collection *c, const char *name)
{
    trl_err err = TRL_OK;
    for (int t = 0; t < c->folder.steps.n && err == TRL_OK; ++t) {
        char *path = NULL;
        TRL_TRY(trli_step_path(c->ctx, c->folder.path, c->folder.steps.key[t], &path));
        if (trli_file_same(path, name))
            err = trl_fail(c->ctx, TRL_ERR_INPUT, NULL,
                           "trellis collect: '%s' is one of the files that are joined; choose another name", name);
        trli_free(path);
    }
done:
    return err;
}

static trl_err collect(collection *c, const char *folder, const char *asked)
{
    char *name = NULL;
    trl_err err;
    TRL_TRY(trli_output_folder_find(c->ctx, folder, &c->folder));
    TRL_TRY(survey(c));
    TRL_TRY(trli_format(c->ctx, &name, "%s%s", asked ? asked : folder, asked ? "" : "/all.nc"));
    TRL_TRY(check_target(c, name));
    TRL_TRY(write_all(c, name));
    printf("%s\n", name);
done:
    trli_free(name);
    return err;
}

int trli_cmd_collect(trl_context *ctx, const trli_arguments *arguments)
{
    collection c = {.ctx = ctx, .patches = {1, 1, 1}};
    trl_err err = collect(&c, arguments->operand[0], trli_arguments_value(arguments, "-o"));
    trli_hdf5_free_tags(c.tag, c.ntags);
    trli_output_folder_release(&c.folder);
    trli_free(c.field);
    trli_free(c.step);
    trli_free(c.time);
    return trli_command_finish(ctx, err);
}

/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "output_hdf5_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files_impl.h"

static herr_t keep_innermost(unsigned n, const H5E_error2_t *error, void *reason)
{
    if (n == 0) snprintf(reason, TRLI_REASON_ROOM, "%s", error->desc ? error->desc : "");
    return 0;
}

void trli_hdf5_reason(char reason[TRLI_REASON_ROOM])
{
    snprintf(reason, TRLI_REASON_ROOM, "no reason given");
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, reason);
    for (char *c = reason; (c = strchr(c, '\n'));) *c = ' ';
}

trl_err trli_hdf5_fail(trl_context *ctx, const char *action, const char *path)
{
    char reason[TRLI_REASON_ROOM];
    trli_hdf5_reason(reason);
    return trl_fail(ctx, TRL_ERR_IO, NULL, "cannot %s '%s': HDF5 says: %s", action, path, reason);
}

hid_t trli_hdf5_keep_reason(void)
{
    return H5Eget_current_stack();
}

void trli_hdf5_restore_reason(hid_t reason)
{
    if (reason >= 0) (void)H5Eset_current_stack(reason);
}

static hid_t open_unlocked(const char *path, unsigned flags)
{
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (access >= 0 && H5Pset_file_locking(access, false, true) >= 0) file = H5Fopen(path, flags, access);
    hid_t reason = trli_hdf5_keep_reason();
    if (access >= 0) H5Pclose(access);
    trli_hdf5_restore_reason(reason);
    return file;
}

hid_t trli_hdf5_try_open(const char *path, char reason[TRLI_REASON_ROOM])
{
    off_t size;
    int probe = trli_file_open(path, &size, reason);
    if (probe < 0) return -1;
    close(probe);
    hid_t file = open_unlocked(path, H5F_ACC_RDONLY);
    if (file < 0) trli_hdf5_reason(reason);
    return file;
}

trl_err trli_hdf5_open(trl_context *ctx, const char *path, hid_t *file)
{
    char reason[TRLI_REASON_ROOM];
    *file = trli_hdf5_try_open(path, reason);
    return *file >= 0 ? TRL_OK : trl_fail(ctx, TRL_ERR_IO, NULL, "cannot read '%s': %s", path, reason);
}

/* Bytes that HDF5 may add beside the values: headers and attributes of datasets, and new tables of the groups, which
 * grow with the file. */
static int64_t structure_bytes(int64_t size, int datasets)
{
    enum { FLAT = 1 << 16, PER_DATASET = 1 << 12, MOST_TABLES = 1 << 24 };
    int64_t tables = size / 64 < MOST_TABLES ? size / 64 : MOST_TABLES;
    return FLAT + (int64_t)datasets * PER_DATASET + tables;
}

static trl_err reserve(trl_context *ctx, const char *path, int64_t bytes, int datasets)
{
    struct stat status;
    int number = 0;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return trli_file_fail(ctx, "write", path, errno);
    if (fstat(file, &status)) {
        number = errno;
        close(file);
        return trli_file_fail(ctx, "write", path, number);
    }
    int64_t more = bytes + structure_bytes(status.st_size, datasets);
    do {
        number = posix_fallocate(file, status.st_size, more);
    } while (number == EINTR);
    if (number && ftruncate(file, status.st_size)) number = errno;
    if (close(file) && !number) number = errno;
    if (!number) return TRL_OK;
    char action[64];
    snprintf(action, sizeof action, "reserve %" PRId64 " bytes in", more);
    return trli_file_fail(ctx, action, path, number);
}

trl_err trli_hdf5_open_reserved(trl_context *ctx, const char *path, int64_t bytes, int datasets, hid_t *file)
{
    *file = -1;
    trl_err err = reserve(ctx, path, bytes, datasets);
    if (err != TRL_OK) return err;
    *file = open_unlocked(path, H5F_ACC_RDWR);
    return *file >= 0 ? TRL_OK : trli_hdf5_fail(ctx, "write", path);
}

trl_err trli_hdf5_close(trl_context *ctx, const char *path, hid_t file)
{
    herr_t flushed = H5Fflush(file, H5F_SCOPE_GLOBAL);
    herr_t closed = H5Fclose(file);
    return flushed >= 0 && closed >= 0 ? TRL_OK : trli_hdf5_fail(ctx, "write", path);
}

bool trli_hdf5_put(hid_t object, const char *name, hid_t type, int n, const void *values)
{
    hsize_t count = (hsize_t)n;
    hid_t space = n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, values) >= 0;
    hid_t reason = trli_hdf5_keep_reason();
    if (attribute >= 0) H5Aclose(attribute);
    if (space >= 0) H5Sclose(space);
    trli_hdf5_restore_reason(reason);
    return good;
}

bool trli_hdf5_get(hid_t object, const char *name, hid_t type, int n, void *values)
{
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0) return false;
    hid_t space = H5Aget_space(attribute);
    bool good = H5Sget_simple_extent_npoints(space) == n && H5Aread(attribute, type, values) >= 0;
    H5Sclose(space);
    H5Aclose(attribute);
    return good;
}

bool trli_hdf5_put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    bool good = H5Tset_size(type, strlen(text) + 1) >= 0 && trli_hdf5_put(object, name, type, 1, text);
    H5Tclose(type);
    return good;
}

bool trli_hdf5_get_location(hid_t dataset, trl_location *location)
{
    char word[16] = "";
    hid_t type = H5Tcopy(H5T_C_S1);
    bool good = H5Tset_size(type, sizeof word) >= 0 && trli_hdf5_get(dataset, "location", type, 1, word);
    H5Tclose(type);
    return good && trl_location_parse(word, location);
}

/* The attributes of the root: one number per axis of the grid, and the version of the layout of these files. */
static bool put_grid(hid_t file, const trl_grid *grid)
{
    int32_t schema = TRLI_SCHEMA, periodic[3];
    for (int a = 0; a < 3; ++a) periodic[a] = grid->periodic[a];
    return trli_hdf5_put(file, "schema", H5T_NATIVE_INT32, 1, &schema) &&
           trli_hdf5_put(file, "cells", H5T_NATIVE_INT64, grid->dim, grid->cells) &&
           trli_hdf5_put(file, "origin", H5T_NATIVE_DOUBLE, grid->dim, grid->origin) &&
           trli_hdf5_put(file, "length", H5T_NATIVE_DOUBLE, grid->dim, grid->length) &&
           trli_hdf5_put(file, "periodic", H5T_NATIVE_INT32, grid->dim, periodic);
}

/* The file is made in memory, so that the disk sees only a whole one. */
trl_err trli_hdf5_create(trl_context *ctx, const trl_grid *grid, const char *path)
{
    enum { GROW = 4096 };
    trl_err err = TRL_OK;
    void *image = NULL;
    ssize_t size = -1;
    hid_t access = -1, file = -1;
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fapl_core(access, GROW, false) >= 0)
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0 && put_grid(file, grid) && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0)
        size = H5Fget_file_image(file, NULL, 0);
    if (size > 0) image = malloc((size_t)size);
    if (size > 0 && !image) TRL_TRY(trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to create '%s'", path));
    if (size < 0 || H5Fget_file_image(file, image, (size_t)size) != size) TRL_TRY(trli_hdf5_fail(ctx, "create", path));
    TRL_TRY(trli_file_replace(ctx, path, image, (size_t)size));
done:
    free(image);
    if (file >= 0) H5Fclose(file);
    if (access >= 0) H5Pclose(access);
    return err;
}

static int print_numbers(char *text, size_t room, int n, const double *number)
{
    int used = snprintf(text, room, "[");
    for (int i = 0; i < n; ++i) used += snprintf(text + used, room - (size_t)used, "%s%.17g", i ? ", " : "", number[i]);
    return used + snprintf(text + used, room - (size_t)used, "]");
}

/* Numbers of an attribute, 3 at most; returns how many, 0: missing or of another kind. */
static int get_few(hid_t object, const char *name, double number[3])
{
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0) return 0;
    hid_t space = H5Aget_space(attribute);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    if (n < 1 || n > 3 || H5Aread(attribute, H5T_NATIVE_DOUBLE, number) < 0) n = 0;
    H5Sclose(space);
    H5Aclose(attribute);
    return (int)n;
}

static trl_err check_numbers(trl_context *ctx, hid_t file, const char *path, const char *name, int n,
                             const double *wanted)
{
    enum { ROOM = 128 };
    double found[3];
    char there[ROOM], here[ROOM];
    int count = get_few(file, name, found);
    bool same = count == n;
    for (int i = 0; same && i < n; ++i) same = found[i] == wanted[i];
    if (same) return TRL_OK;
    print_numbers(there, sizeof there, count, found);
    print_numbers(here, sizeof here, n, wanted);
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "'%s' belongs to another grid: its %s is %s, that of the deck is %s; use the grid it was written "
                    "with, or another "
                    "file",
                    path, name, there, here);
}

trl_err trli_hdf5_check_grid(trl_context *ctx, const trl_grid *grid, hid_t file, const char *path)
{
    double schema[3], cells[3], periodic[3];
    trl_err err = TRL_OK;
    for (int a = 0; a < 3; ++a) {
        cells[a] = (double)grid->cells[a];
        periodic[a] = grid->periodic[a];
    }
    if (get_few(file, "schema", schema) != 1)
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "'%s' is not a file that Trellis wrote: it has no attribute 'schema'", path));
    if (schema[0] != TRLI_SCHEMA)
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "'%s' has schema %g; this version of Trellis reads and continues schema %d", path, schema[0],
                         TRLI_SCHEMA));
    TRL_TRY(check_numbers(ctx, file, path, "cells", grid->dim, cells));
    TRL_TRY(check_numbers(ctx, file, path, "periodic", grid->dim, periodic));
    TRL_TRY(check_numbers(ctx, file, path, "origin", grid->dim, grid->origin));
    TRL_TRY(check_numbers(ctx, file, path, "length", grid->dim, grid->length));
done:
    return err;
}

void trli_step_name(trl_gidx step, char name[TRLI_STEP_ROOM])
{
    snprintf(name, TRLI_STEP_ROOM, "%08" TRL_GIDX_FMT, step);
}

trl_gidx trli_step_of(const char *name)
{
    char same[TRLI_STEP_ROOM];
    if (strspn(name, "0123456789") != strlen(name) || strlen(name) > 18) return -1;
    trl_gidx step = strtoll(name, NULL, 10);
    trli_step_name(step, same);
    return strcmp(name, same) == 0 ? step : -1;
}

typedef struct step_list {
    trl_gidx *step;
    int n, room;
} step_list;

static herr_t collect_step(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    step_list *list = data;
    trl_gidx step = trli_step_of(name);
    (void)group;
    (void)info;
    if (step < 0) return 0;
    if (list->n == list->room) {
        int room = list->room ? 2 * list->room : 64;
        trl_gidx *grown = realloc(list->step, (size_t)room * sizeof *grown);
        if (!grown) return -1;
        list->step = grown;
        list->room = room;
    }
    list->step[list->n++] = step;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    trl_gidx x = *(const trl_gidx *)a, y = *(const trl_gidx *)b;
    return (x > y) - (x < y);
}

trl_err trli_hdf5_steps(trl_context *ctx, const char *path, hid_t group, trl_gidx **steps, int *n)
{
    step_list list = {0};
    herr_t status = H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, collect_step, &list);
    *steps = list.step;
    *n = list.n;
    if (status >= 0) {
        /* Names of more than 8 digits do not sort as their numbers do. */
        if (list.n) qsort(list.step, (size_t)list.n, sizeof *list.step, by_value);
        return TRL_OK;
    }
    free(list.step);
    *steps = NULL;
    return trli_hdf5_fail(ctx, "list the steps in", path);
}

bool trli_hdf5_only_step(hid_t group, trl_gidx *step)
{
    step_list list = {0};
    bool good = H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, collect_step, &list) >= 0 && list.n == 1;
    if (good) *step = list.step[0];
    free(list.step);
    return good;
}

int trli_hdf5_shape(const trl_grid *grid, trl_location location, hsize_t shape[3])
{
    for (int a = 0; a < grid->dim; ++a) shape[grid->dim - 1 - a] = (hsize_t)trl_grid_points(grid, location, a);
    return grid->dim;
}

/* Read the points of one patch into a buffer, x fastest. */
static bool read_patch(hid_t dataset, const trl_grid *grid, const trl_patch *patch, const trl_box *box, double *values)
{
    hsize_t start[3], count[3];
    for (int a = 0; a < grid->dim; ++a) {
        start[grid->dim - 1 - a] = (hsize_t)patch->first[a] + (hsize_t)box->lo[a];
        count[grid->dim - 1 - a] = (hsize_t)(box->hi[a] - box->lo[a]);
    }
    hid_t there = H5Dget_space(dataset), here = H5Screate_simple(grid->dim, count, NULL);
    bool good = there >= 0 && here >= 0 && H5Sselect_hyperslab(there, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dread(dataset, H5T_NATIVE_DOUBLE, here, there, H5P_DEFAULT, values) >= 0;
    hid_t reason = trli_hdf5_keep_reason();
    if (there >= 0) H5Sclose(there);
    if (here >= 0) H5Sclose(here);
    trli_hdf5_restore_reason(reason);
    return good;
}

static void unpack(const double *values, const trl_box *box, const trl_array *array)
{
    size_t row = (size_t)(box->hi[0] - box->lo[0]);
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j, values += row)
            memcpy((double *)array->at + trl_array_offset(array, box->lo[0], j, k), values, row * sizeof *values);
}

trl_err trli_hdf5_read(trl_context *ctx, const trl_layout *layout, const char *path, const char *dataset,
                       const trli_output_field *field)
{
    hid_t file = -1, data = -1;
    trl_err err;
    TRL_TRY(trli_hdf5_open(ctx, path, &file));
    data = H5Dopen2(file, dataset, H5P_DEFAULT);
    if (data < 0) TRL_TRY(trli_hdf5_fail(ctx, "read", path));
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[layout->local[p]];
        const trl_box box = trl_patch_owned(layout, patch, field->location);
        void *values = NULL;
        TRL_TRY(trl_memory_alloc(ctx, (size_t)trl_box_points(&box) * sizeof(double), field->name, &values));
        bool good = read_patch(data, &layout->grid, patch, &box, values);
        if (good) unpack(values, &box, &field->patch[p]);
        trl_memory_free(ctx, &values);
        if (!good) TRL_TRY(trli_hdf5_fail(ctx, "read", path));
    }
done:
    if (data >= 0) H5Dclose(data);
    if (file >= 0) H5Fclose(file);
    return err;
}
